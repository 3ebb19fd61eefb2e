/*
 * test_mix.c - who is too much when a whole batch grows, which part of the work a step does, and how
 * long those who stand still wait for their next token.
 */
#include <check.h>

#include "engine_fixture.h"
#include "sched_fixture.h"

/* --- grow: whole_batch ----------------------------------------------------------------------- */

/* 5 blocks, two of 16 + 40, the oldest is given up. In step 17 both want a third block and one is free.
 * Row 0 has not taken it yet when it is given up for row 1, which would lack one. */
START_TEST(a_batch_is_summed_up_before_anybody_grows)
{
    struct pkv_sched_config config = base_config(5);
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_GROW, "whole_batch");
    set(&config, PKV_CHOICE_PREEMPT, "oldest");
    sched = make_sched(&config);
    add(sched, 0, 16, 40, 0);
    add(sched, 1, 16, 40, 0);
    for (int t = 0; t < 17; t++)
        ck_assert_uint_eq(step(sched)->num_preemptions, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_preemptions, 1);
    ck_assert_uint_eq(pkv_request_get(plan->preemptions[0].ref)->row, 0);
    ck_assert_uint_eq(pkv_request_get(plan->preemptions[0].grower)->row, 1);
    ck_assert_uint_eq(plan->preemptions[0].freed_blocks, 2);
    ck_assert_uint_eq(plan->num_tokens, 1);
    ck_assert_uint_eq(num_used(sched), 3);
    pkv_sched_destroy(sched);
}
END_TEST

static void add_text(struct pkv_sched *sched, uint64_t row, uint64_t origin, uint32_t num_prompt)
{
    const struct pkv_span span = { origin, 0, num_prompt };
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = num_prompt, .num_output_tokens = 90, .max_tokens = 90,
        .content = { .prompt = &span, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *request = NULL;

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, NULL, 0, NULL), 0);
}

/* As SGLang retracts: (out, in) A (10, 100), B (10, 500), C (50, 15), K (49, 496). B goes, then A.
 *
 * 40 blocks of 16. C comes in step 0, K in step 1, A and B in step 40, whose prompts are the beginning
 * of K's. In step 50 C (64 positions) and K (544) need a block each, and none is free: C has 4, K 34, A
 * and B one each of their own. B gives back one, so A must go as well. */
START_TEST(a_batch_retracts_until_the_rest_fits)
{
    const uint64_t text = pkv_origin(PKV_ORIGIN_NAME, 1);
    struct pkv_sched_config config = base_config(40);
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    config.prefix_cache = true;
    set(&config, PKV_CHOICE_GROW, "whole_batch");
    set(&config, PKV_CHOICE_PREEMPT, "fewest_outputs");
    set(&config, PKV_CHOICE_REQUEUE, "tail");
    sched = make_sched(&config);
    add_text(sched, 0, pkv_origin(PKV_ORIGIN_OWN, 0), 15);
    step(sched);
    add_text(sched, 1, text, 496);
    for (int t = 1; t < 40; t++)
        step(sched);
    add_text(sched, 2, text, 100);
    add_text(sched, 3, text, 500);
    ck_assert_uint_eq(step(sched)->num_admissions, 2);
    for (int t = 41; t < 50; t++)
        ck_assert_uint_eq(step(sched)->num_tokens, 4);
    ck_assert_uint_eq(num_used(sched), 40);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_preemptions, 2);
    for (uint64_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(pkv_request_get(plan->preemptions[i].ref)->row, 3 - i);
        ck_assert_uint_eq(pkv_request_get(plan->preemptions[i].ref)->num_emitted, 10);
        ck_assert_uint_eq(plan->preemptions[i].freed_blocks, 1);
    }
    /* the first to find none; with one of the two blocks there it is K */
    ck_assert_uint_eq(pkv_request_get(plan->preemptions[0].grower)->row, 0);
    ck_assert_uint_eq(pkv_request_get(plan->preemptions[1].grower)->row, 1);
    ck_assert_uint_eq(plan->num_tokens, 2);
    expect_waiting(sched, "3 2");
    pkv_sched_destroy(sched);
}
END_TEST

/* With nobody to give up the first ones grow, as far as it goes: 5 blocks as above. */
START_TEST(a_batch_without_victims)
{
    struct pkv_sched_config config = base_config(5);
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_GROW, "whole_batch");
    set(&config, PKV_CHOICE_PREEMPT, "never");
    sched = make_sched(&config);
    add(sched, 0, 16, 40, 0);
    add(sched, 1, 16, 40, 0);
    for (int t = 0; t < 17; t++)
        step(sched);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_preemptions, 0);
    ck_assert_uint_eq(plan->num_tokens, 1);
    ck_assert_uint_eq(num_used(sched), 5);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- mix ------------------------------------------------------------------------------------- */

static struct run run;

static void expect_steps(const char *mix, size_t num, const int64_t *tokens, const int64_t *gaps,
                         const int64_t *limits)
{
    set(&run.config.sched, PKV_CHOICE_MIX, mix);
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.num_steps, num);
    for (size_t i = 0; i < num; i++) {
        ck_assert_msg(run.steps[i].sched_tokens == tokens[i] &&
                      run.steps[i].max_gap_ns == gaps[i] * MS && run.steps[i].limit == limits[i],
                      "%s, step %zu: %d tokens, gap %d ns, limit %d", mix, i,
                      (int)run.steps[i].sched_tokens, (int)run.steps[i].max_gap_ns,
                      (int)run.steps[i].limit);
    }
}

/* Row 0 (16 + 4) at once; row 1 (32 in two pieces, + 2) at 1 ms. */
static void ask_for_two(void)
{
    begin_run(&run, 20);
    run.config.sched.long_prefill_token_threshold = 16;
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 4 });
    ask(&run, (struct asked){ .arrival_ns = MS, .num_prompt = 32, .num_output = 2 });
}

/* Row 0's first token comes at 1 ms, the next at 4 ms, after both pieces of row 1. */
START_TEST(prefill_first_stops_the_decoding_ones)
{
    ask_for_two();
    expect_steps("prefill_first", 6, (int64_t[]){ 16, 16, 16, 2, 1, 1 },
                 (int64_t[]){ 0, 0, 0, 3, 1, 1 }, (int64_t[]){ 1, 1, 0, 0, 0, 0 });
    ask_for_two();
    expect_steps("mixed", 4, (int64_t[]){ 16, 17, 17, 2 }, (int64_t[]){ 0, 1, 1, 1 },
                 (int64_t[]){ 1, 1, 0, 0 });
}
END_TEST

/* Row 1 is not looked at until row 0 has its four tokens. */
START_TEST(decode_first_ends_what_it_has)
{
    ask_for_two();
    expect_steps("decode_first", 7, (int64_t[]){ 16, 1, 1, 1, 16, 16, 1 },
                 (int64_t[]){ 0, 1, 1, 1, 0, 0, 1 }, (int64_t[]){ 1, 6, 6, 6, 1, 0, 0 });
}
END_TEST

/* A budget of 16, row 0 (16 + 3) and four of 16 + 1 at 1 ms, each of which fills a step. After four
 * steps of prompts, its own among them, row 0 has one; then the last prompt has its turn. */
START_TEST(separate_with_limit_lets_decodes_through)
{
    begin_run(&run, 20);
    run.config.sched.max_num_batched_tokens = 16;
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 3 });
    for (int i = 0; i < 4; i++)
        ask(&run, (struct asked){ .arrival_ns = MS, .num_prompt = 16, .num_output = 1 });
    set(&run.config.sched, PKV_CHOICE_MIX, "separate_with_limit");
    ck_assert_int_eq(run.config.sched.policies.params[PKV_CHOICE_MIX][0], 4);
    expect_steps("separate_with_limit", 7, (int64_t[]){ 16, 16, 16, 16, 1, 16, 1 },
                 (int64_t[]){ 0, 0, 0, 0, 4, 0, 2 }, (int64_t[]){ 1, 3, 3, 3, 6, 1, 0 });
}
END_TEST

/* The same with a limit of one: every second step is row 0's, while it is there. */
START_TEST(separate_with_limit_of_one)
{
    struct pkv_sched_config config = base_config(20);
    static const uint64_t tokens[] = { 16, 1, 16, 1, 16, 16, 16 };
    struct pkv_sched *sched;

    config.max_num_batched_tokens = 16;
    set(&config, PKV_CHOICE_MIX, "separate_with_limit");
    config.policies.params[PKV_CHOICE_MIX][0] = 1;
    sched = make_sched(&config);
    add(sched, 0, 16, 3, 0);
    for (uint64_t row = 1; row < 5; row++)
        add(sched, row, 16, 1, 0);
    for (size_t t = 0; t < 7; t++)
        ck_assert_uint_eq(step(sched)->num_tokens, tokens[t]);
    ck_assert_uint_eq(pkv_sched_num_running(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* 2 blocks: row 1 (32) is refused while row 0 (16 + 3) holds any, so row 0 decodes. */
START_TEST(prefill_first_decodes_when_nobody_fits)
{
    begin_run(&run, 2);
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 3 });
    ask(&run, (struct asked){ .num_prompt = 32, .num_output = 1 });
    expect_steps("prefill_first", 4, (int64_t[]){ 16, 1, 1, 32 }, (int64_t[]){ 0, 1, 1, 0 },
                 (int64_t[]){ 2, 2, 2, 1 });
}
END_TEST

/* 6 blocks: rows 0 and 1 (40) hold 3 each. Row 2 is refused in step 1 and shuts the queue: in each step
 * nobody is looked at, so the two decode. With 48 positions each after step 8, row 0 wants a fourth block
 * in step 9: row 1 is given up, and that, not the shut queue, is what newcomers wait for. */
START_TEST(a_preemption_stands_above_a_shut_queue)
{
    struct pkv_sched_config config = base_config(6);
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_MIX, "prefill_first");
    set(&config, PKV_CHOICE_ON_BLOCKED, "latch");
    sched = make_sched(&config);
    add(sched, 0, 40, 30, 0);
    add(sched, 1, 40, 30, 0);
    step(sched);
    add(sched, 2, 16, 1, 0);
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);
    for (int t = 2; t < 9; t++) {
        plan = step(sched);
        ck_assert_int_eq(plan->limit, PKV_LIMIT_LATCH);
        ck_assert(plan->is_latched);
        ck_assert_uint_eq(pkv_request_get(plan->refused)->row, 2);
    }
    plan = step(sched);
    ck_assert_uint_eq(plan->num_preemptions, 1);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_PREEMPTED);
    ck_assert(!plan->is_latched);
    ck_assert_ptr_null(plan->refused.request);
    ck_assert_uint_eq(plan->refused_number, 0);
    ck_assert_uint_eq(plan->refused_need_blocks, 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* Who decodes undisturbed is not walked, and stands still as a whole in a step of prompts. */
START_TEST(the_decoding_ones_go_on_together_between_prompts)
{
    struct pkv_sched_config config = base_config(20);
    const struct pkv_plan *plan;
    struct pkv_request *first;
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_MIX, "prefill_first");
    sched = make_sched(&config);
    first = add(sched, 0, 16, 40, 0);
    step(sched);
    for (int t = 1; t < 5; t++)
        ck_assert_uint_eq(step(sched)->num_steady, 1);
    add(sched, 1, 32, 40, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_steady, 0);
    ck_assert(plan->left_steady);
    ck_assert_uint_eq(plan->num_tokens, 32);
    ck_assert_uint_eq(first->num_emitted, 5);
    ck_assert_uint_eq(step(sched)->num_tokens, 2);
    ck_assert_uint_eq(first->num_emitted, 6);
    pkv_sched_destroy(sched);
}
END_TEST

/* 4 blocks, rows 0 and 1 (16 + 40) take their second block in step 1; with `never` both stand still
 * from step 17 on. Row 2 (16) finds no block either, under any mix. */
START_TEST(every_mix_can_be_stuck_and_none_hangs)
{
    static const char *const mixes[] = { "mixed", "prefill_first", "decode_first",
                                         "separate_with_limit" };

    for (size_t i = 0; i < 4; i++) {
        begin_run(&run, 4);
        set(&run.config.sched, PKV_CHOICE_MIX, mixes[i]);
        set(&run.config.sched, PKV_CHOICE_PREEMPT, "never");
        ask(&run, (struct asked){ .num_prompt = 16, .num_output = 40 });
        ask(&run, (struct asked){ .num_prompt = 16, .num_output = 40 });
        ask(&run, (struct asked){ .arrival_ns = 2 * MS, .num_prompt = 16, .num_output = 1 });
        expect_outcome(&run, PKV_OUTCOME_STUCK);
        ck_assert_uint_eq(run.figures.output_tokens, 2 * 17);
        ck_assert_uint_eq(run.num_steps, 18);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mix");
    TCase *tests = tcase_create("mix");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_batch_is_summed_up_before_anybody_grows);
    tcase_add_test(tests, a_batch_retracts_until_the_rest_fits);
    tcase_add_test(tests, a_batch_without_victims);
    tcase_add_test(tests, prefill_first_stops_the_decoding_ones);
    tcase_add_test(tests, decode_first_ends_what_it_has);
    tcase_add_test(tests, separate_with_limit_lets_decodes_through);
    tcase_add_test(tests, separate_with_limit_of_one);
    tcase_add_test(tests, prefill_first_decodes_when_nobody_fits);
    tcase_add_test(tests, a_preemption_stands_above_a_shut_queue);
    tcase_add_test(tests, the_decoding_ones_go_on_together_between_prompts);
    tcase_add_test(tests, every_mix_can_be_stuck_and_none_hangs);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
