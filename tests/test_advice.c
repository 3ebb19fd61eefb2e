/*
 * test_advice.c - what the summary advises to try next: what follows from the counts of the run.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "report_fixture.h"

static void expect_next(const struct pkv_scenario *scenario, const struct pkv_summary *summary,
                        const char *label, const char *next)
{
    char *text = report(scenario, summary, NUM_POINTS, NULL, 220, false, false);

    expect_has(text, label);
    if (next)
        expect_has(text, next);
    else
        expect_lacks(text, "try next");
    pkv_report_free(text);
}

/* Three quarters of the work twice: 3000 of 4000. */
START_TEST(thrash_stands_above_every_cause)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();

    memset(summary.limit_frac, 0, sizeof summary.limit_frac);
    summary.limit_frac[PKV_LIMIT_BUDGET] = 1;
    summary.engine.recomputed_tokens = 3000;
    expect_next(&scenario, &summary, "token budget: all 512 tokens given out",
                "try next    a larger pool (num_blocks), or fewer sequences (max_num_seqs): "
                "preempted requests made 75.0 % of the work a second time\n");
    pkv_policies_set(&scenario.sched.policies, PKV_CHOICE_ADMIT,
                     pkv_policy_find(PKV_CHOICE_ADMIT, "first_chunk"));
    expect_next(&scenario, &summary, "token budget",
                "try next    the gate (admit: whole_prompt), a larger pool");
}
END_TEST

/* 512 tokens of 25 us are 12.8 ms: above a base of 10 ms, below one of 20 ms. */
START_TEST(a_budget_is_only_advised_where_it_helps)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();

    memset(summary.limit_frac, 0, sizeof summary.limit_frac);
    summary.limit_frac[PKV_LIMIT_BUDGET] = 1;
    expect_next(&scenario, &summary, "token budget", "try next    a larger max_num_batched_tokens");
    scenario.step_time = (struct pkv_step_time){
        .law = PKV_STEP_TIME_AFFINE, .base_ns = 10 * MS, .per_prefill_token_ns = 25000};
    expect_next(&scenario, &summary, "token budget",
                "try next    no setting of the scheduler: the run is compute-bound");
    scenario.step_time.base_ns = 20 * MS;
    expect_next(&scenario, &summary, "token budget", "try next    a larger max_num_batched_tokens");
}
END_TEST

/* 512 tokens of 25 us are 12.8 ms, above the base: a larger budget is no remedy. */
static struct pkv_scenario compute_bound_scenario(void)
{
    struct pkv_scenario scenario = fixed_scenario();

    scenario.step_time = (struct pkv_step_time){
        .law = PKV_STEP_TIME_AFFINE, .base_ns = 10 * MS, .per_prefill_token_ns = 25000};
    return scenario;
}

/* The budget stands first; one in twenty steps that waited for something else is enough. */
START_TEST(nothing_left_to_set_is_not_said_beside_another_cause)
{
    static const struct { enum pkv_limit other; double frac; const char *next; } runs[] = {
        {PKV_LIMIT_BLOCKS, 0.316, "try next    a larger pool (num_blocks): the first in line waited for "
                                  "blocks; a larger budget only makes steps longer\n"},
        {PKV_LIMIT_GATE, 0.417, "try next    a larger pool (num_blocks): there was no room for what the "
                                "admission of the first in line asked for; a larger budget only makes"},
        {PKV_LIMIT_BLOCKS, 0.05, "try next    a larger pool (num_blocks): the first in line waited"},
        {PKV_LIMIT_BLOCKS, 0.049, "try next    no setting of the scheduler: the run is compute-bound"},
        {PKV_LIMIT_PREEMPTED, 0.1, "try next    a larger pool, a watermark, or fewer sequences"},
        {PKV_LIMIT_SEQS, 0.3, NULL}};    /* all blocks were held: no place more would help */
    struct pkv_scenario scenario = compute_bound_scenario();
    struct pkv_summary summary = plain_summary();

    summary.engine.preemptions = 0;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        memset(summary.limit_frac, 0, sizeof summary.limit_frac);
        summary.limit_frac[PKV_LIMIT_BUDGET] = 0.5;
        summary.limit_frac[runs[i].other] = runs[i].frac;
        expect_next(&scenario, &summary, "token budget: all 512", runs[i].next);
    }
    summary.limit_frac[PKV_LIMIT_GATE] = 0.1;    /* behind places, for which there is no remedy */
    expect_next(&scenario, &summary, "token budget", "try next    a larger pool (num_blocks): there was");
}
END_TEST

/* 1,250 of 5,000 prompt tokens found: 75 % are not. From 95 % on there is nothing to win. */
START_TEST(nothing_left_to_set_is_not_said_where_hits_were_lost)
{
    static const char claim[] = "try next    no setting of the scheduler: the run is compute-bound";
    struct pkv_scenario scenario = compute_bound_scenario();
    struct pkv_summary summary = plain_summary();

    memset(summary.limit_frac, 0, sizeof summary.limit_frac);
    summary.limit_frac[PKV_LIMIT_BUDGET] = 0.06;
    expect_next(&scenario, &summary, "token budget", claim);
    summary.engine.cache.num_evicted = 1234;
    expect_next(&scenario, &summary, "token budget",
                "try next    a larger pool (num_blocks), which may keep what prompts share: 1,234 cached "
                "blocks were evicted, and 75.0 % of prompt tokens not found; a larger budget only");
    summary.engine.hit_tokens = 4750;
    expect_next(&scenario, &summary, "token budget", claim);
    summary.engine.hit_tokens = 0;
    expect_next(&scenario, &summary, "token budget", "100.0 % of prompt tokens not found");
    scenario.is_trace = false;    /* prompts that share nothing */
    expect_next(&scenario, &summary, "token budget", claim);
}
END_TEST

static struct pkv_scenario scenario_with(const char *admit, const char *preempt, double watermark)
{
    struct pkv_scenario scenario = fixed_scenario();

    pkv_policies_set(&scenario.sched.policies, PKV_CHOICE_ADMIT, pkv_policy_find(PKV_CHOICE_ADMIT, admit));
    pkv_policies_set(&scenario.sched.policies, PKV_CHOICE_PREEMPT,
                     pkv_policy_find(PKV_CHOICE_PREEMPT, preempt));
    scenario.sched.watermark = watermark;
    return scenario;
}

/* To let in more is advised where nobody was preempted, and somebody could be. */
START_TEST(a_refusal_names_the_rule_that_applies)
{
    static const struct { const char *admit; double watermark; const char *label, *next; } rules[] = {
        {"whole_prompt", 0, "gate: its", "try next    a larger pool (num_blocks): there was no room for"},
        {"whole_prompt", 0.1, "gate and watermark: ", "try next    a smaller watermark"},
        {"first_chunk", 0.1, "watermark: ", "try next    a smaller watermark"},
        {"reserve_max", 0, "reserve: ", "try next    admit: whole_prompt"},
        {"static_batch", 0, "static batch: ", "try next    admit: reserve_max"},
        {"ratio", 0, "ratio: ", "try next    a smaller max_tokens"}};
    static const char more[] = "try next    a larger pool (num_blocks): to let in more makes more "
                               "preemptions, and there were 77\n";
    static const char stuck[] = "try next    a larger pool (num_blocks): to let in more may end stuck, as "
                                "nobody is given up (preempt: never)\n";
    static const char least[] = "try next    a smaller max_tokens, or a larger pool (num_blocks): what "
                                "reserves less may run out of blocks\n";
    struct pkv_summary summary = plain_summary();

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        bool reserves = strcmp(rules[i].admit, "reserve_max") == 0;
        bool is_static = strcmp(rules[i].admit, "static_batch") == 0;
        struct pkv_scenario some = scenario_with(rules[i].admit, "newest", rules[i].watermark);
        struct pkv_scenario never = scenario_with(rules[i].admit, "never", rules[i].watermark);
        summary.engine.preemptions = 0;
        expect_next(&some, &summary, rules[i].label, rules[i].next);
        expect_next(&never, &summary, rules[i].label, is_static ? rules[i].next : reserves ? least : stuck);
        summary.engine.preemptions = 77;
        expect_next(&some, &summary, rules[i].label, is_static ? rules[i].next : reserves ? least : more);
    }
}
END_TEST

/* 8 sequences, 100 blocks: with 88 held at most a ninth one of 11 fits, with 89 it does not. */
START_TEST(more_sequences_are_only_advised_where_one_more_fits)
{
    static const char next[] = "try next    a larger max_num_seqs: there were blocks left\n";
    struct pkv_scenario some = scenario_with("whole_prompt", "newest", 0);
    struct pkv_scenario never = scenario_with("whole_prompt", "never", 0);
    struct pkv_scenario reserve = scenario_with("reserve_max", "never", 0);
    struct pkv_summary summary = plain_summary();

    memset(summary.limit_frac, 0, sizeof summary.limit_frac);
    summary.limit_frac[PKV_LIMIT_SEQS] = 1;
    summary.engine.preemptions = 0;
    summary.peak_used_blocks = 88;
    expect_next(&some, &summary, "sequences: all 8 places taken", next);
    expect_next(&never, &summary, "sequences: ", NULL);
    expect_next(&reserve, &summary, "sequences: ", next);
    summary.engine.preemptions = 1;
    expect_next(&some, &summary, "sequences: ", NULL);
    summary.engine.preemptions = 0;
    summary.peak_used_blocks = 89;
    expect_next(&some, &summary, "sequences: ", NULL);
}
END_TEST

START_TEST(small_causes_are_not_hidden)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();

    memset(summary.limit_frac, 0, sizeof summary.limit_frac);
    summary.limit_frac[PKV_LIMIT_BLOCKS] = 0.0001;
    summary.limit_frac[PKV_LIMIT_NOTHING] = 0.9999;
    expect_next(&scenario, &summary, "\nunder 0.1 %                   blocks: its", NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("advice");
    TCase *tests = tcase_create("advice");

    tcase_add_test(tests, thrash_stands_above_every_cause);
    tcase_add_test(tests, a_budget_is_only_advised_where_it_helps);
    tcase_add_test(tests, nothing_left_to_set_is_not_said_beside_another_cause);
    tcase_add_test(tests, nothing_left_to_set_is_not_said_where_hits_were_lost);
    tcase_add_test(tests, a_refusal_names_the_rule_that_applies);
    tcase_add_test(tests, more_sequences_are_only_advised_where_one_more_fits);
    tcase_add_test(tests, small_causes_are_not_hidden);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
