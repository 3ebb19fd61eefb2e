/*
 * test_engine.c - how runs end: done, in a livelock, stuck, stopped, beyond the end of time; and
 * what is told of a request that waits.
 *
 * All of them are small enough to be walked through by hand: blocks of 16 tokens, steps of one
 * millisecond, so step n is at n ms.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "engine_fixture.h"
#include "sched_fixture.h"

static struct run run;

/* --- livelocks ------------------------------------------------------------------------------- */

/* No gate, no refusal: prompts that cannot fit are begun all the same. */
static void begin_raw_run(uint32_t num_blocks, uint32_t budget)
{
    begin_run(&run, num_blocks);
    set(&run.config.sched, PKV_CHOICE_ADMIT, "first_chunk");
    run.config.sched.oversized = PKV_OVERSIZED_WAIT;
    run.config.sched.max_num_batched_tokens = budget;
    run.config.max_steps = 200;
}

/* Step 0: 48 tokens of the first (3 blocks), 16 of the second (1). Step 1: the first wants 3 blocks
 * more; the second's one does not help, so it gives itself up as well. Step 2 is step 0 again. */
START_TEST(two_given_up_in_one_step_for_ever)
{
    const struct told_event *given_up[MOST_TOLD];

    begin_raw_run(4, 64);
    run.config.sched.long_prefill_token_threshold = 48;
    ask(&run, (struct asked){ .num_prompt = 100, .num_output = 5 });
    ask(&run, (struct asked){ .num_prompt = 60, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_LIVELOCK);
    ck_assert_uint_le(run.figures.num_steps, 8);
    ck_assert_uint_eq(run.figures.preemptions, run.figures.num_steps);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_PREEMPT, 1, given_up), run.figures.num_steps / 2);
    ck_assert_uint_eq(given_up[0]->step, 1);
    ck_assert_uint_eq(given_up[0]->grower_row, 0);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_PREEMPT, 0, given_up), run.figures.num_steps / 2);
    ck_assert_uint_eq(given_up[0]->step, 1);
    ck_assert_uint_eq(given_up[0]->grower_row, 0);
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "request 0 preempts itself"));
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "100 tokens need 7 blocks"));
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "the pool has 4"));
    ck_assert_uint_eq(run.figures.unfinished, 2);
    ck_assert_uint_eq(run.figures.output_tokens, 0);
    ck_assert_str_ne(run.requests[0].reason, "");
}
END_TEST

/* 100 tokens by 48 on 4 blocks: begun in steps 0 and 2, given up in steps 1 and 3; 3 is again. */
START_TEST(a_lone_one_that_gives_itself_up_again)
{
    begin_raw_run(4, 48);
    ask(&run, (struct asked){ .num_prompt = 100, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_LIVELOCK);
    ck_assert_uint_eq(run.figures.num_steps, 4);
    ck_assert_uint_eq(run.figures.preemptions, 2);
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "request 0"));
}
END_TEST

/* One more comes in a second: it could never start, as the first goes on for ever. */
START_TEST(a_lone_one_is_not_saved_by_later_arrivals)
{
    begin_raw_run(4, 48);
    ask(&run, (struct asked){ .num_prompt = 100, .num_output = 5 });
    ask(&run, (struct asked){ .arrival_ns = 1000 * MS, .num_prompt = 10, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_LIVELOCK);
    ck_assert_uint_eq(run.figures.num_steps, 4);
    ck_assert_uint_eq(run.figures.arrived, 1);
    ck_assert_uint_eq(run.figures.unfinished, 1);
}
END_TEST

/* It will be cancelled at 10 ms, so it goes round until then: given up in steps 1, 3, 5, 7 and 9.
 * The step that takes the abort has a row, and the one that comes at 20 ms runs. */
START_TEST(a_lone_one_goes_on_until_its_abort)
{
    begin_raw_run(4, 48);
    ask(&run, (struct asked){ .abort_ns = 10 * MS, .num_prompt = 100, .num_output = 5 });
    ask(&run, (struct asked){ .arrival_ns = 20 * MS, .num_prompt = 10, .num_output = 2 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.preemptions, 5);
    ck_assert_uint_eq(run.figures.aborted, 1);
    ck_assert_uint_eq(run.figures.completed, 1);
    ck_assert_uint_eq(run.num_steps, 11 + 2);
    ck_assert_int_eq(run.steps[10].aborted, 1);
    ck_assert_int_eq(run.steps[11].time_ns, 20 * MS);
    ck_assert_str_eq(run.figures.diagnosis, "");
}
END_TEST

/* --- max_model_len --------------------------------------------------------------------------- */

/* 60 + 5 = 65 known tokens end it, and the 65th is never stored: 64 positions, 4 blocks. */
START_TEST(the_token_that_reaches_max_model_len_is_not_stored)
{
    begin_run(&run, 4);
    run.config.sched.max_model_len = 65;
    ask(&run, (struct asked){ .num_prompt = 60, .num_output = 100, .max_tokens = 5 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.completed, 1);
    ck_assert_uint_eq(run.requests[0].num_emitted, 5);
    ck_assert_uint_eq(run.requests[0].peak_blocks, 4);
    ck_assert_uint_eq(run.figures.scheduled_tokens, 64);
    ck_assert_uint_eq(run.figures.preemptions, 0);
    ck_assert_uint_eq(run.figures.num_steps, 5);
}
END_TEST

/* Under wait the limit ends a request instead of refusing it: prompts of 65 and 70 tokens are computed
 * and end with their first token, as does one of 64. Two of them fill the pool, 5 blocks each. */
START_TEST(prompts_that_fill_max_model_len_end_with_one_token_under_wait)
{
    begin_run(&run, 10);
    run.config.sched.max_model_len = 65;
    run.config.sched.oversized = PKV_OVERSIZED_WAIT;
    ask(&run, (struct asked){ .num_prompt = 65, .num_output = 5 });
    ask(&run, (struct asked){ .num_prompt = 70, .num_output = 5 });
    ask(&run, (struct asked){ .num_prompt = 64, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.rejected, 0);
    ck_assert_uint_eq(run.figures.completed, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(run.requests[i].row, i);
        ck_assert_uint_eq(run.requests[i].num_emitted, 1);
        ck_assert_uint_eq(run.requests[i].peak_blocks, i < 2 ? 5 : 4);
    }
    ck_assert_uint_eq(run.figures.scheduled_tokens, 65 + 70 + 64);
    ck_assert_uint_eq(run.figures.num_steps, 2);
}
END_TEST

/* The same under reject: they are refused, with both numbers; 60 + 5 passes. */
START_TEST(prompts_that_fill_max_model_len_are_refused_under_reject)
{
    begin_run(&run, 10);
    run.config.sched.max_model_len = 65;
    ask(&run, (struct asked){ .num_prompt = 65, .num_output = 5 });
    ask(&run, (struct asked){ .num_prompt = 60, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.rejected, 1);
    ck_assert_uint_eq(run.figures.completed, 1);
    ck_assert_int_eq(run.requests[0].status, PKV_REQUEST_REJECTED);
    ck_assert_ptr_nonnull(strstr(run.requests[0].reason, "70"));   /* 65 + 5 */
    ck_assert_ptr_nonnull(strstr(run.requests[0].reason, "65"));
}
END_TEST

/* --- the end of time ------------------------------------------------------------------------- */

static void expect_no_time(void)
{
    do_run(&run);
    ck_assert_int_eq(run.result, -1);
    ck_assert_int_eq(run.err.code, PKV_ERR_INPUT);
    ck_assert_int_eq(run.figures.outcome, PKV_OUTCOME_FAILED);
    ck_assert_uint_eq(run.figures.unfinished, 1);
}

/* A step that ends at the last nanosecond of all is fine; one that would end behind it is not. */
START_TEST(a_step_may_end_at_the_last_nanosecond)
{
    begin_run(&run, 4);
    ask(&run, (struct asked){ .arrival_ns = INT64_MAX - MS, .num_prompt = 10, .num_output = 1 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_int_eq(run.figures.end_ns, INT64_MAX);

    begin_run(&run, 4);
    ask(&run, (struct asked){ .arrival_ns = INT64_MAX - MS + 1, .num_prompt = 10,
                              .num_output = 1 });
    expect_no_time();

    begin_run(&run, 4);   /* the second step has no room */
    ask(&run, (struct asked){ .arrival_ns = INT64_MAX - MS, .num_prompt = 10, .num_output = 2 });
    expect_no_time();
    ck_assert_uint_eq(run.figures.num_steps, 1);
}
END_TEST

START_TEST(steps_that_are_too_long_are_wrong_input)
{
    begin_run(&run, 4);
    run.config.step_time.fixed_ns = INT64_MAX;
    ask(&run, (struct asked){ .num_prompt = 10, .num_output = 1 });
    expect_no_time();

    begin_run(&run, 4);   /* 10 x 2^62 ns does not fit in 64 bits */
    run.config.step_time = (struct pkv_step_time){
        .law = PKV_STEP_TIME_AFFINE, .base_ns = 1, .per_prefill_token_ns = INT64_C(1) << 62 };
    ask(&run, (struct asked){ .num_prompt = 10, .num_output = 1 });
    expect_no_time();
    ck_assert_uint_eq(run.figures.num_steps, 0);
    ck_assert_ptr_nonnull(strstr(run.err.text, "10 prefill tokens"));
}
END_TEST

/* --- why the head waits ---------------------------------------------------------------------- */

/* Row 0: 16 + 20. Row 1: 32 + 1, gone after step 0. Row 2: 20 + 20. Step 0: blocks 1 and 2, one is
 * free, row 2 needs two: blocked. Step 1: row 2 comes in; it needs its third block at position 33,
 * in step 14, and gives itself up, the other being older. From step 15 on it needs 3 blocks for 33
 * tokens and 2, later 1, are free: blocked, told once. Row 0 ends with step 19; row 2 is back in
 * step 20, has 14 tokens then, and 20 after step 26. */
START_TEST(blocked_is_told_anew_after_a_preemption)
{
    const struct told_event *e[MOST_TOLD];

    begin_run(&run, 4);
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 20 });
    ask(&run, (struct asked){ .num_prompt = 32, .num_output = 1 });
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 20 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.num_steps, 27);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_PREEMPT, 2, e), 1);
    ck_assert_uint_eq(e[0]->step, 14);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_RESUME, 2, e), 1);
    ck_assert_uint_eq(e[0]->step, 20);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_BLOCKED, 2, e), 2);
    ck_assert_uint_eq(e[0]->step, 0);
    ck_assert_int_eq(e[0]->limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(e[0]->need_blocks, 2);
    ck_assert_uint_eq(e[0]->free_blocks, 1);
    ck_assert_uint_eq(e[0]->num_holders, 2);
    ck_assert_uint_eq(e[0]->holder_rows[0], 1);   /* the most blocks first */
    ck_assert_uint_eq(e[0]->holder_blocks[0], 2);
    ck_assert_uint_eq(e[0]->holder_rows[1], 0);
    ck_assert_uint_eq(e[0]->holder_blocks[1], 1);
    ck_assert_uint_eq(e[1]->step, 15);
    ck_assert_int_eq(e[1]->limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(e[1]->need_blocks, 3);
    ck_assert_uint_eq(e[1]->free_blocks, 2);
    ck_assert_uint_eq(e[1]->num_holders, 1);
}
END_TEST

/* At most two run. Row 2 (3 blocks) waits for a place in steps 0 to 2 although 2, then 0 blocks are
 * free; row 1 ends with step 2, and from step 3 on it waits for blocks. Row 0 ends with step 29. */
START_TEST(blocked_is_told_once_for_each_cause)
{
    const struct told_event *e[MOST_TOLD];

    begin_run(&run, 4);
    run.config.sched.max_num_seqs = 2;
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 30 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 3 });
    ask(&run, (struct asked){ .num_prompt = 48, .num_output = 1 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.num_steps, 31);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_BLOCKED, 2, e), 2);
    ck_assert_uint_eq(e[0]->step, 0);
    ck_assert_int_eq(e[0]->limit, PKV_LIMIT_SEQS);
    ck_assert_uint_eq(e[0]->need_blocks, 3);
    ck_assert_uint_eq(e[0]->free_blocks, 2);
    ck_assert_uint_eq(e[1]->step, 3);
    ck_assert_int_eq(e[1]->limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(e[1]->need_blocks, 3);
    ck_assert_uint_eq(e[1]->free_blocks, 2);
    ck_assert_int_eq(run.steps[2].limit, PKV_LIMIT_SEQS);
    ck_assert_int_eq(run.steps[29].limit, PKV_LIMIT_BLOCKS);
}
END_TEST

/* --- stopped --------------------------------------------------------------------------------- */

/* Three steps: 10 + 3. */
static void begin_three_steps(void)
{
    begin_run(&run, 4);
    ask(&run, (struct asked){ .num_prompt = 10, .num_output = 3 });
}

START_TEST(max_steps_at_the_last_step_is_done)
{
    begin_three_steps();
    run.config.max_steps = 3;
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.completed, 1);

    begin_three_steps();
    run.config.max_steps = 2;
    expect_outcome(&run, PKV_OUTCOME_MAX_STEPS);
    ck_assert_uint_eq(run.figures.num_steps, 2);
    ck_assert_uint_eq(run.figures.unfinished, 1);
}
END_TEST

static uint64_t stop_after;

static bool stop_then(void *ctx)
{
    const struct run *now = ctx;

    return now->num_steps >= stop_after;
}

START_TEST(an_interrupt_in_the_last_step_is_done)
{
    for (stop_after = 3; stop_after > 0; stop_after--) {
        begin_three_steps();
        run.config.should_stop = stop_then;
        run.config.stop_ctx = &run;
        expect_outcome(&run, stop_after == 3 ? PKV_OUTCOME_DONE : PKV_OUTCOME_INTERRUPTED);
        ck_assert_uint_eq(run.figures.num_steps, stop_after);
        ck_assert_uint_eq(run.figures.unfinished, (uint64_t)(stop_after < 3));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *tests = tcase_create("engine");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, two_given_up_in_one_step_for_ever);
    tcase_add_test(tests, a_lone_one_that_gives_itself_up_again);
    tcase_add_test(tests, a_lone_one_is_not_saved_by_later_arrivals);
    tcase_add_test(tests, a_lone_one_goes_on_until_its_abort);
    tcase_add_test(tests, the_token_that_reaches_max_model_len_is_not_stored);
    tcase_add_test(tests, prompts_that_fill_max_model_len_end_with_one_token_under_wait);
    tcase_add_test(tests, prompts_that_fill_max_model_len_are_refused_under_reject);
    tcase_add_test(tests, a_step_may_end_at_the_last_nanosecond);
    tcase_add_test(tests, steps_that_are_too_long_are_wrong_input);
    tcase_add_test(tests, blocked_is_told_anew_after_a_preemption);
    tcase_add_test(tests, blocked_is_told_once_for_each_cause);
    tcase_add_test(tests, max_steps_at_the_last_step_is_done);
    tcase_add_test(tests, an_interrupt_in_the_last_step_is_done);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
