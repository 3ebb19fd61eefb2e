/*
 * test_audit.c - the engine's own invariants, broken by a sink in the middle of a run that is
 * checked: E1 to E4 of engine.h.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "cache/cache_private.h"
#include "engine/engine_private.h"
#include "engine_fixture.h"
#include "sched/sched_private.h"

static struct run run;
static struct pkv_engine *engine;
static uint64_t now;   /* the step that is told */

/* What the saboteur does, and in which step. */
static void (*sabotage)(void);
static uint64_t when;

static int on_planned(void *ctx, struct pkv_sched *sched, const struct pkv_plan *plan,
                      struct pkv_err *err)
{
    (void)ctx;
    (void)sched;
    (void)err;
    now = plan->number;
    if (now == when)
        sabotage();
    return 0;
}

/* 10 tokens, then 2 more, on a pool of 4 blocks: three steps, one block used in each. */
static int run_with(void (*what)(void), uint64_t at)
{
    int result;

    begin_run(&run, 4);
    ask(&run, (struct asked){ .num_prompt = 10, .num_output = 3 });
    run.config.sinks[0] = (struct pkv_sink){ .planned = on_planned };
    sabotage = what;
    when = at;
    engine = pkv_engine_create(&run.config, &run.err);
    ck_assert_ptr_nonnull(engine);
    result = pkv_engine_run(engine, &run.err);
    run.figures = *pkv_engine_figures(engine);
    return result;
}

static void expect_id(const char *id)
{
    ck_assert_int_eq(run.err.code, PKV_ERR_AUDIT);
    ck_assert_msg(strncmp(run.err.text, id, strlen(id)) == 0 && run.err.text[strlen(id)] == ':',
                  "expected %s, got '%s'", id, run.err.text);
    pkv_engine_destroy(engine);
}

static void do_nothing(void)
{
}

START_TEST(a_sound_run_passes)
{
    ck_assert_int_eq(run_with(do_nothing, 2), 0);
    ck_assert_uint_eq(now, 2);
    pkv_engine_destroy(engine);
}
END_TEST

static void count_one_more(void)
{
    engine->figures.arrived++;
}

START_TEST(e1_one_that_never_ends)
{
    ck_assert_int_eq(run_with(count_one_more, 1), -1);
    ck_assert_uint_eq(now, 2);   /* at the end of the run, not before */
    expect_id("E1");
}
END_TEST

/* Beside the cache, so that nobody gives it back. */
static pkv_block_id taken;
static void hold_a_block(void)
{
    ck_assert_int_eq(pkv_pool_take(engine->sched->cache->pool, 1, &taken), PKV_ALLOC_OK);
}

/* The last step has been recounted by then. */
static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    (void)ctx;
    (void)sched;
    (void)err;
    if (row->step == 2)
        hold_a_block();
    return 0;
}

START_TEST(e2_a_block_that_is_held_in_the_end)
{
    begin_run(&run, 4);
    ask(&run, (struct asked){ .num_prompt = 10, .num_output = 3 });
    run.config.sinks[0] = (struct pkv_sink){ .step = on_step };
    engine = pkv_engine_create(&run.config, &run.err);
    ck_assert_ptr_nonnull(engine);
    ck_assert_int_eq(pkv_engine_run(engine, &run.err), -1);
    ck_assert_ptr_nonnull(strstr(run.err.text, "3 blocks of 4"));
    expect_id("E2");
}
END_TEST

START_TEST(a_block_held_in_between_is_found_in_its_step)
{
    ck_assert_int_eq(run_with(hold_a_block, 0), -1);
    ck_assert_uint_eq(now, 0);
    expect_id("C1");
}
END_TEST

static void store_too_much(void)
{
    engine->row.stored_tokens = 17;
}

START_TEST(e3_more_positions_than_room)
{
    ck_assert_int_eq(run_with(store_too_much, 1), -1);
    ck_assert_uint_eq(now, 1);
    ck_assert_ptr_nonnull(strstr(run.err.text, "17"));
    ck_assert_ptr_nonnull(strstr(run.err.text, "16"));
    expect_id("E3");
}
END_TEST

static void store_as_much_as_fits(void)
{
    engine->row.stored_tokens = 16;
}

START_TEST(e3_a_full_block_is_no_fault)
{
    ck_assert_int_eq(run_with(store_as_much_as_fits, 1), 0);
    pkv_engine_destroy(engine);
}
END_TEST

static void promise_too_little(void)
{
    engine->row.reserved_slots = -1;
}

/* 12 positions in a run of one block of 16: 10 or 11 stored, 2 or 1 reserved, 4 never used. */
START_TEST(e4_fewer_promised_than_stored)
{
    begin_run(&run, 4);
    ask(&run, (struct asked){ .num_prompt = 10, .num_output = 3 });
    pkv_policies_set(&run.config.sched.policies, PKV_CHOICE_LAYOUT,
                     pkv_policy_find(PKV_CHOICE_LAYOUT, "contiguous_exact"));
    run.config.sinks[0] = (struct pkv_sink){ .planned = on_planned };
    sabotage = promise_too_little;
    when = 1;
    engine = pkv_engine_create(&run.config, &run.err);
    ck_assert_ptr_nonnull(engine);
    ck_assert_int_eq(pkv_engine_run(engine, &run.err), -1);
    ck_assert_uint_eq(now, 1);
    ck_assert_ptr_nonnull(strstr(run.err.text, "11 positions stored, -1 reserved and 4 never used"));
    expect_id("E4");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit");
    TCase *tests = tcase_create("audit");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_sound_run_passes);
    tcase_add_test(tests, e1_one_that_never_ends);
    tcase_add_test(tests, e2_a_block_that_is_held_in_the_end);
    tcase_add_test(tests, a_block_held_in_between_is_found_in_its_step);
    tcase_add_test(tests, e3_more_positions_than_room);
    tcase_add_test(tests, e4_fewer_promised_than_stored);
    tcase_add_test(tests, e3_a_full_block_is_no_fault);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
