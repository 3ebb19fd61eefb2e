/*
 * test_policies_sglang.c - policies after rules of SGLang and TensorRT-LLM, one by one, in steps worked
 * out by hand: a queue that is shut, batches, and what is left behind. (Admission by a ratio:
 * test_ratio.c; growth and mixes: test_mix.c.)
 */
#include <string.h>

#include <check.h>

#include "sched/sched_private.h"
#include "sched_fixture.h"

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
    tcase_add_test(tests, when_a_block_is_found);
    tcase_add_test(tests, what_a_preempted_one_leaves);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
