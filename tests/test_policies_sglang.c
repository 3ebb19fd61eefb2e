/*
 * test_policies_sglang.c - policies after rules of SGLang and TensorRT-LLM, one by one, in steps worked
 * out by hand: a queue that is shut, batches, what is set aside, and what is left behind. (Growth and
 * mixes: test_mix.c.)
 */
#include <math.h>
#include <string.h>

#include <check.h>

#include "engine_fixture.h"
#include "policy/admit_ratio.h"
#include "sched/sched_private.h"
#include "sched_fixture.h"

static struct run run;

/* --- on_blocked: latch ----------------------------------------------------------------------- */

static uint64_t head_row(const struct pkv_plan *plan)
{
    return plan->head.request ? plan->head.request->row : UINT64_MAX;
}

/* 10 blocks. Row 0 (16 + 40) and row 1 (16 + 3) run; row 2 (160 tokens) asks for all ten blocks and is
 * refused in step 0. Nobody is looked at until row 1 has ended with step 2; then once more until row 0
 * is aborted. Row 3 would fit at any time. */
START_TEST(a_latch_is_opened_by_those_who_leave)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_request *first, *third;
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_ON_BLOCKED, "latch");
    sched = make_sched(&config);
    first = add(sched, 0, 16, 40, 0);
    add(sched, 1, 16, 3, 0);
    third = add(sched, 2, 160, 1, 0);
    add(sched, 3, 16, 40, 0);
    plan = step(sched);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(plan->num_admissions, 2);
    for (int t = 1; t <= 2; t++) {
        plan = step(sched);
        ck_assert_int_eq(plan->limit, PKV_LIMIT_LATCH);
        ck_assert_uint_eq(head_row(plan), 2);
        ck_assert_uint_eq(plan->head_need_blocks, 10);
        ck_assert_uint_eq(plan->head_free_blocks, 10 - 2 * 2);
    }
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);    /* looked at again, and shut again */
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_LATCH);
    pkv_sched_abort(sched, third);          /* it did not run: nothing is opened */
    pkv_sched_forget(sched, third);
    plan = step(sched);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_LATCH);
    ck_assert_uint_eq(head_row(plan), 3);
    ck_assert_uint_eq(plan->head_need_blocks, 0);    /* nobody has asked for it yet */
    pkv_sched_abort(sched, first);
    pkv_sched_forget(sched, first);
    plan = step(sched);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_NOTHING);
    ck_assert_uint_eq(plan->num_admissions, 1);
    pkv_sched_destroy(sched);
}
END_TEST

/* 4 blocks, two of 16 + 40: each takes its second block in step 1. Row 2 comes before step 2 and is
 * refused. In step 17 row 0 wants its third block (16 + 17 positions) and row 1 is given up: in
 * step 18 the queue is looked at again, and row 1, in front with 33 tokens, wants 3 of one. */
START_TEST(a_latch_is_opened_by_a_preemption)
{
    struct pkv_sched_config config = base_config(4);
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_ON_BLOCKED, "latch");
    sched = make_sched(&config);
    add(sched, 0, 16, 40, 0);
    add(sched, 1, 16, 40, 0);
    step(sched);
    step(sched);
    add(sched, 2, 16, 4, 0);
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);
    for (int t = 3; t <= 16; t++)
        ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_LATCH);
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_PREEMPTED);
    plan = step(sched);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(head_row(plan), 1);
    ck_assert_uint_eq(plan->head_need_blocks, 3);
    pkv_sched_destroy(sched);
}
END_TEST

/* A prompt of 7 blocks on 4: with nobody running nothing is ever shut. Nor is it for want of a place,
 * or of budget. */
START_TEST(a_latch_needs_a_refusal_and_somebody_who_can_leave)
{
    struct pkv_sched_config config = base_config(4);
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_ON_BLOCKED, "latch");
    config.oversized = PKV_OVERSIZED_WAIT;
    sched = make_sched(&config);
    add(sched, 0, 100, 1, 0);
    for (int t = 0; t < 3; t++)
        ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);
    pkv_sched_destroy(sched);
    config.max_num_seqs = 1;
    sched = make_sched(&config);
    add(sched, 0, 16, 9, 0);
    add(sched, 1, 16, 9, 0);
    for (int t = 0; t < 3; t++)
        ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_SEQS);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(s7_a_queue_that_is_shut_for_nobody)
{
    struct pkv_sched_config config = base_config(4);
    struct pkv_err err = { 0 };
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_ON_BLOCKED, "latch");
    sched = make_sched(&config);
    add(sched, 0, 16, 9, 0);
    add(sched, 1, 64, 1, 0);
    step(sched);
    ck_assert(sched->latch.is_shut);
    sched->latch.num_running++;
    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_msg(strncmp(err.text, "S7:", 3) == 0, "%s", err.text);
    sched->latch.num_running--;
    sched->latch.num_admissions--;
    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_msg(strncmp(err.text, "S7:", 3) == 0, "%s", err.text);
    sched->latch.num_admissions++;
    expect_sched_sound(sched);
    set(&sched->config, PKV_CHOICE_ON_BLOCKED, "stop");
    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_msg(strncmp(err.text, "S7:", 3) == 0, "%s", err.text);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- admit: reserve_max and static_batch ----------------------------------------------------- */

static struct pkv_sched *make_small_blocks(const char *admit, uint32_t num_blocks)
{
    struct pkv_sched_config config = base_config(num_blocks);

    config.groups[0].block_size = 4;
    set(&config, PKV_CHOICE_ADMIT, admit);
    return make_sched(&config);
}

/* 10 blocks of 4: a (7, at most 9) needs 4, b (4, at most 20) needs 6, c (8, at most 8) needs 4. a and
 * b start in the first step, all is set aside, although 7 blocks are free after it. a ends in the
 * ninth. In the tenth 6 are free once b has its fourth, b needs two more, and c starts. */
START_TEST(reserve_max_as_tensorrt_never_evicts)
{
    struct pkv_sched *sched = make_small_blocks("reserve_max", 10);
    const struct pkv_plan *plan;

    add(sched, 0, 7, 9, 0);
    add(sched, 1, 4, 20, 0);
    add(sched, 2, 8, 8, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 2);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_GATE);
    ck_assert_uint_eq(plan->head_need_blocks, 4 + 2 + 5);
    ck_assert_uint_eq(num_used(sched), 3);
    for (int t = 2; t <= 9; t++) {
        plan = step(sched);
        ck_assert_uint_eq(plan->num_admissions, 0);
        ck_assert_uint_eq(plan->num_finished, t == 9);
    }
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 1);
    ck_assert_uint_eq(num_used(sched), 4 + 2);
    pkv_sched_destroy(sched);
}
END_TEST

/* The same three as a static batch: c waits until b has ended with the twentieth step. */
START_TEST(a_static_batch_runs_to_its_end)
{
    struct pkv_sched *sched = make_small_blocks("static_batch", 10);
    const struct pkv_plan *plan;

    add(sched, 0, 7, 9, 0);
    add(sched, 1, 4, 20, 0);
    add(sched, 2, 8, 8, 0);
    ck_assert_uint_eq(step(sched)->num_admissions, 2);
    for (int t = 2; t <= 20; t++) {
        plan = step(sched);
        ck_assert_uint_eq(plan->num_admissions, 0);
        ck_assert_int_eq(plan->limit, PKV_LIMIT_GATE);
    }
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    pkv_sched_destroy(sched);
}
END_TEST

/* Chunks of 8: the first of 20 tokens has its first token after step 2. Who comes before step 2 still
 * joins, who comes before step 3 does not, whatever is free. */
START_TEST(a_static_batch_is_open_until_its_first_token)
{
    struct pkv_sched_config config = base_config(100);
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    set(&config, PKV_CHOICE_ADMIT, "static_batch");
    config.long_prefill_token_threshold = 8;
    sched = make_sched(&config);
    add(sched, 0, 20, 3, 0);
    step(sched);
    step(sched);
    add(sched, 1, 24, 2, 0);
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    add(sched, 2, 16, 2, 0);
    for (int t = 3; t <= 5; t++) {   /* row 1 has its tokens in steps 4 and 5 */
        plan = step(sched);
        ck_assert_uint_eq(plan->num_admissions, 0);
        ck_assert_int_eq(plan->limit, PKV_LIMIT_GATE);
    }
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    pkv_sched_destroy(sched);
}
END_TEST

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

/* --- publish: chunk_end and finish ----------------------------------------------------------- */

/* Row 0 is 40 tokens of a text and says 30; whoever asks has the same text, 24 of row 0's tokens and
 * one more. */
static struct pkv_request *add_spoken(struct pkv_sched *sched, uint64_t row, uint32_t num_said)
{
    const struct pkv_span spans[] = { { pkv_origin(PKV_ORIGIN_NAME, 1), 0, 40 },
                                      { pkv_origin(PKV_ORIGIN_OUTPUT, 0), 0, num_said },
                                      { pkv_origin(PKV_ORIGIN_OWN, row), 0, 1 } };
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = num_said > 0 ? 40 + num_said + 1 : 40, .num_output_tokens = 30,
        .max_tokens = 30,
        .content = { .prompt = spans, .num_prompt_spans = num_said > 0 ? 3 : 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *request = NULL;

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, NULL, 0, NULL), 0);
    return request;
}

/* What is found of row 0 by one who comes after so many steps, in chunks of 16. */
static uint32_t found_after(const char *publish, int num_steps, bool is_aborted)
{
    struct pkv_sched_config config = base_config(40);
    struct pkv_request *first;
    struct pkv_sched *sched;
    uint32_t num_hit;

    config.prefix_cache = true;
    config.long_prefill_token_threshold = 16;
    set(&config, PKV_CHOICE_PUBLISH, publish);
    sched = make_sched(&config);
    first = add_spoken(sched, 0, 0);
    for (int t = 0; t < num_steps; t++)
        step(sched);
    if (is_aborted) {
        pkv_sched_abort(sched, first);
        pkv_sched_forget(sched, first);
    }
    add_spoken(sched, 1, 24);
    num_hit = step(sched)->admissions[0].num_hit_tokens;
    pkv_sched_destroy(sched);
    return num_hit;
}

/* Chunks of row 0 end with steps 0, 1 and 2 (16, 32 and 40 tokens). Its third block is full with step
 * 10, and it ends with step 31 and 69 positions, four full blocks. */
START_TEST(when_a_block_is_found)
{
    static const struct { const char *publish; uint32_t after[6], aborted; } wanted[] = {
        /* steps      1   2   3   10  11  32    aborted after 12, with 49 positions */
        { "alloc",     { 32, 32, 32, 48, 48, 64 }, 48 },
        { "computed",  { 16, 32, 32, 32, 48, 64 }, 48 },
        { "chunk_end", { 16, 32, 32, 32, 32, 64 }, 48 },
        { "finish",    {  0,  0,  0,  0,  0, 64 }, 48 },
    };
    static const int steps[] = { 1, 2, 3, 10, 11, 32 };

    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 6; k++)
            ck_assert_msg(found_after(wanted[i].publish, steps[k], false) == wanted[i].after[k],
                          "%s after %d steps", wanted[i].publish, steps[k]);
        ck_assert_uint_eq(found_after(wanted[i].publish, 12, true), wanted[i].aborted);
    }
}
END_TEST

/* 5 blocks; row 9 (16 + 60) comes first, row 0 whole beside it. In step 9 row 0 wants a fourth block
 * for its 49th position and gives itself up. When row 9 is gone it finds what it left: all that it had
 * computed, its prompt's two full blocks, or nothing. */
START_TEST(what_a_preempted_one_leaves)
{
    static const struct { const char *publish; uint32_t num_hit; } wanted[] = {
        { "computed", 48 }, { "chunk_end", 32 }, { "finish", 0 } };

    for (size_t i = 0; i < 3; i++) {
        struct pkv_sched_config config = base_config(5);
        const struct pkv_plan *plan;
        struct pkv_request *other;
        struct pkv_sched *sched;

        config.prefix_cache = true;
        set(&config, PKV_CHOICE_PUBLISH, wanted[i].publish);
        sched = make_sched(&config);
        other = add(sched, 9, 16, 60, 0);
        add_spoken(sched, 0, 0);
        for (int t = 0; t < 9; t++)
            ck_assert_uint_eq(step(sched)->num_preemptions, 0);
        ck_assert_uint_eq(step(sched)->num_preemptions, 1);
        pkv_sched_abort(sched, other);
        pkv_sched_forget(sched, other);
        plan = step(sched);
        ck_assert_uint_eq(plan->num_admissions, 1);
        ck_assert_uint_eq(plan->admissions[0].num_hit_tokens, wanted[i].num_hit);
        pkv_sched_destroy(sched);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policies_sglang");
    TCase *tests = tcase_create("policies_sglang");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_latch_is_opened_by_those_who_leave);
    tcase_add_test(tests, a_latch_is_opened_by_a_preemption);
    tcase_add_test(tests, a_latch_needs_a_refusal_and_somebody_who_can_leave);
    tcase_add_test(tests, s7_a_queue_that_is_shut_for_nobody);
    tcase_add_test(tests, reserve_max_as_tensorrt_never_evicts);
    tcase_add_test(tests, a_static_batch_runs_to_its_end);
    tcase_add_test(tests, a_static_batch_is_open_until_its_first_token);
    tcase_add_test(tests, ratio_admits_c_and_not_d);
    tcase_add_test(tests, others_beside_ratio);
    tcase_add_test(tests, ratio_of_prompts_in_pieces_and_of_long_outputs);
    tcase_add_test(tests, ratio_is_learnt_from_survivors);
    tcase_add_test(tests, ratio_decays_while_only_decoding);
    tcase_add_test(tests, ratio_is_strict);
    tcase_add_test(tests, ratio_lets_in_whoever_is_alone);
    tcase_add_test(tests, when_a_block_is_found);
    tcase_add_test(tests, what_a_preempted_one_leaves);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
