/*
 * test_ratio.c - admission by a share of what the running ones may still say: what is set aside, what is
 * learnt, and that whoever is alone starts. Worked numbers of SGLang's rules, in blocks of one token.
 */
#include <math.h>

#include <check.h>

#include "engine_fixture.h"
#include "policy/admit_ratio.h"
#include "sched_fixture.h"

static struct run run;

/* --- admit: ratio ---------------------------------------------------------------------------- */

static const struct pkv_admit_ops *admit_ops(const char *name)
{
    const struct pkv_policy_info *info = pkv_policy_find(PKV_CHOICE_ADMIT, name);

    ck_assert_ptr_nonnull(info);
    return (const struct pkv_admit_ops *)info;
}

/* Parameters at their presets. */
static struct ratio_state fresh_ratio(void)
{
    const struct pkv_admit_ops *ratio = admit_ops("ratio");
    int64_t params[PKV_MAX_POLICY_PARAMS];
    struct ratio_state state = { 0 };

    ck_assert_uint_eq(ratio->info.num_params, 6);
    for (size_t i = 0; i < 6; i++)
        params[i] = ratio->info.params[i].preset;
    ratio->init(&state, params);
    return state;
}

/* In blocks of one token. */
static struct pkv_request made(uint32_t num_prompt, uint32_t num_emitted, uint32_t max_tokens,
                               uint32_t num_held)
{
    struct pkv_request r = { .num_emitted = num_emitted, .max_tokens = max_tokens };

    r.seq.num_prompt_tokens = num_prompt;
    r.seq.num_known_tokens = num_prompt + num_emitted;
    r.seq.num_computed_tokens = num_held;
    r.seq.tables[0].num = num_held;
    return r;
}

/* Ask for c, and if it is admitted let it take its blocks. */
static enum pkv_admit_verdict ask_for(const struct pkv_admit_ops *ops, const void *state, void *pass,
                                      struct pkv_sched_view *view, struct pkv_request *c,
                                      uint64_t *need)
{
    const struct pkv_hit no_hit = { 0 };
    const struct pkv_candidate candidate = {
        .request = c, .hit = &no_hit, .num_tokens = c->seq.num_known_tokens,
        .num_positions = c->seq.num_known_tokens, .need_blocks = c->seq.num_known_tokens };
    enum pkv_admit_verdict verdict;

    *need = candidate.need_blocks;
    verdict = ops->consider(state, view, pass, &candidate, need);
    if (verdict != PKV_ADMIT)
        return verdict;
    view->num_free_blocks -= candidate.need_blocks;
    c->seq.tables[0].num = c->seq.num_computed_tokens = c->seq.num_known_tokens;
    if (ops->took)
        ops->took(state, view, pass, &candidate);
    return verdict;
}

/* Pool 10,000, blocks of one. R1: 1,000 in, 100 out of 1,000; R2: 2,000 in, 500 out of 600; 6,400 are
 * free. C: 3,000 in, at most 2,000; D: 500 in, at most 500. */
static struct pkv_request r1, r2, c, d;
static struct pkv_request *both[] = { &r1, &r2 };

static struct pkv_sched_view view_of_two(struct pkv_sched *sched)
{
    r1 = made(1000, 100, 1000, 1100);
    r2 = made(2000, 500, 600, 2500);
    c = made(3000, 0, 2000, 0);
    d = made(500, 0, 500, 0);
    return (struct pkv_sched_view){ .cache = pkv_sched_cache(sched), .running = both,
                                    .num_running = 2, .num_free_blocks = 6400,
                                    .num_blocks = 10000, .max_model_len = UINT32_MAX };
}

static struct pkv_sched *make_single_tokens(uint32_t num_blocks)
{
    struct pkv_sched_config config = base_config(num_blocks);

    config.groups[0].block_size = 1;
    return make_sched(&config);
}

/* The offset is (900 + 100) x 0.7 = 700, 5,700 are left. C asks for 3,000 + 2,000 + 1 and is admitted,
 * 699 are left. D asks for 1,001 and is not; beside what is set aside by then (700 + 2,001, the rest
 * is taken) that is 3,702, and it takes one more to be above it. */
START_TEST(ratio_admits_c_and_not_d)
{
    struct pkv_sched *sched = make_single_tokens(10000);
    const struct pkv_admit_ops *ratio = admit_ops("ratio");
    const struct ratio_state state = fresh_ratio();
    struct pkv_sched_view view = view_of_two(sched);
    struct ratio_pass pass;
    uint64_t need;

    ratio->begin(&state, &view, &pass);
    ck_assert(pass.offset == 700);
    ck_assert(6400 - pass.offset == 5700);
    ck_assert_int_eq(ask_for(ratio, &state, &pass, &view, &c, &need), PKV_ADMIT);
    ck_assert(view.num_free_blocks + (double)pass.num_taken_tokens - pass.offset == 699);
    ck_assert_int_eq(ask_for(ratio, &state, &pass, &view, &d, &need), PKV_ADMIT_GATE);
    ck_assert_uint_eq(need, 3703);
    pkv_sched_destroy(sched);
}
END_TEST

/* vLLM looks at the prompts alone and admits both. A reservation to the end sets 899 + 99 aside, C takes
 * 4,999 of the 5,402 left, and D does not find its 999. */
START_TEST(others_beside_ratio)
{
    struct pkv_sched *sched = make_single_tokens(10000);
    const struct pkv_admit_ops *gate = admit_ops("whole_prompt"), *max = admit_ops("reserve_max");
    struct pkv_sched_view view = view_of_two(sched);
    uint64_t need, pass = 0;

    ck_assert_int_eq(ask_for(gate, NULL, NULL, &view, &c, &need), PKV_ADMIT);
    ck_assert_int_eq(ask_for(gate, NULL, NULL, &view, &d, &need), PKV_ADMIT);
    view = view_of_two(sched);
    max->begin(NULL, &view, &pass);
    ck_assert_uint_eq(pass, 998);
    ck_assert_int_eq(ask_for(max, NULL, &pass, &view, &c, &need), PKV_ADMIT);
    ck_assert_int_eq(ask_for(max, NULL, &pass, &view, &d, &need), PKV_ADMIT_GATE);
    ck_assert_uint_eq(need, 999 + 998 + 1999);
    ck_assert_uint_eq(view.num_free_blocks, 3400);
    pkv_sched_destroy(sched);
}
END_TEST

/* A prompt of 100 with 40 computed counts its 60 in full, and its 10 to come by the ratio; no more than
 * 4,096 to come are reckoned with, and one that has said more than it was allowed has none. */
START_TEST(ratio_of_prompts_in_pieces_and_of_long_outputs)
{
    struct pkv_sched *sched = make_single_tokens(10000);
    const struct pkv_admit_ops *ratio = admit_ops("ratio");
    struct ratio_state state = fresh_ratio();
    struct pkv_sched_view view = view_of_two(sched);
    struct ratio_pass pass;

    state.ratio = 0.5;
    r1 = made(100, 0, 10, 40);
    r2 = made(10, 9, 5, 19);
    ratio->begin(&state, &view, &pass);
    ck_assert(pass.offset == 60 + 5);
    r1 = made(100, 5, 5005, 104);   /* it decodes: the one known token to compute is no rest */
    ratio->begin(&state, &view, &pass);
    ck_assert(pass.offset == 2048);
    pkv_sched_destroy(sched);
}
END_TEST

static struct pkv_step_facts decodes(void)
{
    return (struct pkv_step_facts){ .num_tokens = 2, .num_decodes = 2, .parts = PKV_MIX_ALL };
}

static double ratio_after(struct ratio_state state, size_t num_survivors, uint64_t sum_emitted,
                          uint64_t sum_max_tokens)
{
    struct pkv_step_facts facts = decodes();

    facts.num_preempted = 1;
    facts.num_survivors = num_survivors;
    facts.sum_emitted = sum_emitted;
    facts.sum_max_tokens = sum_max_tokens;
    admit_ops("ratio")->observe(&state, &facts);
    return state.ratio;
}

/* Survivors with 500 of 600 and 100 of 1,000: (600 + 2 x 20) / 1,601. The first alone: 520 / 601. Five
 * with 11 of 60 each and 2 steps: (55 + 10) / 301. Never above 1; without survivors as it was. */
START_TEST(ratio_is_learnt_from_survivors)
{
    struct ratio_state state = fresh_ratio();

    ck_assert(fabs(ratio_after(state, 2, 600, 1600) - 0.3998) < 0.00005);
    ck_assert(fabs(ratio_after(state, 1, 500, 600) - 0.8652) < 0.00005);
    ck_assert(ratio_after(state, 1, 595, 600) == 1);
    ck_assert(ratio_after(state, 0, 0, 0) == state.init);
    state.retract_steps = 2;
    ck_assert(ratio_after(state, 5, 55, 300) == 0.2159468438538206);
}
END_TEST

/* From 0.7 to 0.7 x 0.14 in 600 clean decode steps, and not below. Steps with any prompt in them, with
 * a newcomer or with a preemption leave it; when all is done it is 0.7 again. */
START_TEST(ratio_decays_while_only_decoding)
{
    const struct pkv_admit_ops *ratio = admit_ops("ratio");
    struct ratio_state state = fresh_ratio();
    struct pkv_step_facts facts = decodes(), other[4] = { decodes(), decodes(), decodes(), { 0 } };

    ck_assert(state.ratio == 0.7);
    for (int t = 0; t < 600; t++)
        ratio->observe(&state, &facts);
    ck_assert(fabs(state.ratio - 0.098) < 1e-12);
    ratio->observe(&state, &facts);
    ck_assert(state.ratio == state.min);
    state.ratio = 0.5;
    other[0].num_prefill_tokens = 7;
    other[1].num_admitted = 1;
    other[2].parts = PKV_MIX_PROMPTS | PKV_MIX_NEWCOMERS;
    for (int i = 0; i < 4; i++)
        ratio->observe(&state, &other[i]);
    ck_assert(state.ratio == 0.5);
    facts.is_idle = true;
    ratio->observe(&state, &facts);
    ck_assert(state.ratio == 0.7);
}
END_TEST

/* Ratio 1, 100 blocks of one; the first holds 10 and has 19 to come, so 71 are left. */
static const struct pkv_plan *boundary(struct pkv_sched **out, uint32_t num_prompt)
{
    struct pkv_sched_config config = base_config(100);

    config.groups[0].block_size = 1;
    set(&config, PKV_CHOICE_ADMIT, "ratio");
    set(&config, PKV_CHOICE_MIX, "prefill_first");
    config.policies.params[PKV_CHOICE_ADMIT][0] = 1000000;
    *out = make_sched(&config);
    add(*out, 0, 10, 20, 0);
    step(*out);
    add(*out, 1, num_prompt, 20, 0);
    return step(*out);
}

/* (50, at most 20) asks for 71, (49, at most 20) for 70. */
START_TEST(ratio_is_strict)
{
    struct pkv_sched *sched;
    const struct pkv_plan *plan = boundary(&sched, 50);

    ck_assert_uint_eq(plan->num_admissions, 0);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_GATE);
    ck_assert_uint_eq(plan->head_need_blocks, 71 + 19 + 1);
    ck_assert_uint_eq(plan->head_free_blocks, 90);
    ck_assert_uint_eq(plan->num_decodes, 1);   /* the first one goes on */
    pkv_sched_destroy(sched);
    plan = boundary(&sched, 49);
    ck_assert_uint_eq(plan->num_admissions, 1);
    ck_assert_uint_eq(plan->num_tokens, 49);
    pkv_sched_destroy(sched);
}
END_TEST

/* 90 and at most 50 are more than 100, but the truth is 5: alone it starts. What its estimate asks for
 * keeps the next one out until it has ended. */
START_TEST(ratio_lets_in_whoever_is_alone)
{
    begin_run(&run, 7);
    set(&run.config.sched, PKV_CHOICE_ADMIT, "ratio");
    ask(&run, (struct asked){ .num_prompt = 90, .num_output = 5, .max_tokens = 50 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 2, .max_tokens = 50 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.num_steps, 7);
    ck_assert_int_eq(run.steps[0].limit, PKV_LIMIT_GATE);
    ck_assert_int_eq(run.steps[5].admitted, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ratio");
    TCase *tests = tcase_create("ratio");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, ratio_admits_c_and_not_d);
    tcase_add_test(tests, others_beside_ratio);
    tcase_add_test(tests, ratio_of_prompts_in_pieces_and_of_long_outputs);
    tcase_add_test(tests, ratio_is_learnt_from_survivors);
    tcase_add_test(tests, ratio_decays_while_only_decoding);
    tcase_add_test(tests, ratio_is_strict);
    tcase_add_test(tests, ratio_lets_in_whoever_is_alone);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
