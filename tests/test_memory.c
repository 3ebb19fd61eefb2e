/*
 * test_memory.c - small runs in which the first allocation fails, then the second, and so on until
 * one gets by. Each has to say so and to give back everything (the sanitizers look for leaks). The
 * account of requests and blocks stands in every end. The same with sinks that fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "model/random_run.h"
#include "pagedkv/engine.h"
#include "pagedkv/metrics.h"

#define MOST_ALLOCATIONS 20000

static int drop_line(void *ctx, const char *text, size_t length, struct pkv_err *err)
{
    (void)ctx;
    (void)text;
    (void)err;
    ck_assert_uint_gt(length, 0);
    return 0;
}

static int run_engine(const struct random_run *run, bool check, struct pkv_err *err)
{
    const struct pkv_engine_log_config log_config = { .step_ns = 1000, .full = true,
                                                      .line = drop_line };
    struct random_traffic traffic = { run, 0 };
    struct pkv_engine_config config = {
        .sched = run->sched, .step_time = run->step_time, .source = random_source(&traffic),
        .num_sinks = 1, .stuck_steps = run->stuck_steps, .max_steps = 500, .check = check,
        .log_evicted = true };
    struct pkv_engine_log *log = pkv_engine_log_create(&log_config, err);
    struct pkv_engine *engine = NULL;
    int result = -1;

    if (log == NULL)
        return -1;
    config.sinks[0] = pkv_engine_log_sink(log);
    engine = pkv_engine_create(&config, err);
    if (engine != NULL)
        result = pkv_engine_run(engine, err);
    pkv_engine_destroy(engine);
    pkv_engine_log_destroy(log);
    return result;
}

/* Counts what it is told, and fails at one of the calls. */
struct tally {
    uint64_t num_calls, fail_at;   /* from 1; 0 = never */
    uint64_t num_rows;
};

static int count_call(struct tally *tally, struct pkv_err *err)
{
    if (++tally->num_calls == tally->fail_at)
        return pkv_fail(err, PKV_ERR_IO, "no room left on device");
    return 0;
}

static int tally_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    (void)event;
    return count_call(ctx, err);
}

static int tally_planned(void *ctx, struct pkv_sched *sched, const struct pkv_plan *plan,
                         struct pkv_err *err)
{
    (void)sched;
    (void)plan;
    return count_call(ctx, err);
}

static int tally_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct tally *tally = ctx;

    (void)row;
    tally->num_rows++;
    return count_call(ctx, err);
}

static int tally_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                      struct pkv_err *err)
{
    (void)sched;
    (void)row;
    return count_call(ctx, err);
}

static void expect_account(const struct pkv_engine_figures *f, uint64_t seed, uint64_t n)
{
    uint64_t ended = f->completed + f->rejected + f->aborted + f->unfinished;

    ck_assert_msg(f->arrived == ended, "seed %d, failure %d: %d arrived, %d ended", (int)seed,
                  (int)n, (int)f->arrived, (int)ended);
    ck_assert_msg(f->cache.num_free == f->cache.num_blocks, "seed %d, failure %d: %u free of %u",
                  (int)seed, (int)n, f->cache.num_free, f->cache.num_blocks);
}

/* Without an engine there is nothing to account for. */
static int run_with_tally(const struct random_run *run, struct tally *tally, uint64_t n,
                          struct pkv_err *err)
{
    struct random_traffic traffic = { run, 0 };
    const struct pkv_engine_config config = {
        .sched = run->sched, .step_time = run->step_time, .source = random_source(&traffic),
        .sinks = { { .event = tally_event, .planned = tally_planned, .request = tally_request,
                     .step = tally_step, .ctx = tally } },
        .num_sinks = 1, .stuck_steps = run->stuck_steps, .max_steps = 500 };
    struct pkv_engine *engine = pkv_engine_create(&config, err);
    int result = -1;

    if (engine == NULL)
        return -1;
    result = pkv_engine_run(engine, err);
    pkv_alloc_fail_at(0, 0);
    expect_account(pkv_engine_figures(engine), run->seed, n);
    if (err->code != PKV_ERR_IO)   /* every one that came was told of */
        ck_assert_uint_eq(tally->num_rows, pkv_engine_figures(engine)->arrived);
    pkv_engine_destroy(engine);
    return result;
}

/* sticky: from the nth allocation on all fail, else that one alone. */
static void sweep(uint64_t seed, bool check, int sticky)
{
    struct random_run run;
    uint64_t n = 0;
    int result = -1;

    random_run_draw(&run, seed);
    if (run.num_specs > 6)
        run.num_specs = 6;
    while (result < 0) {
        struct pkv_err err = { 0 };

        ck_assert_uint_lt(++n, MOST_ALLOCATIONS);
        pkv_alloc_fail_at(n, sticky);
        result = run_engine(&run, check, &err);
        pkv_alloc_fail_at(0, 0);
        if (result < 0)
            ck_assert_msg(err.code == PKV_ERR_MEMORY, "seed %d, allocation %d: code %d, '%s'",
                          (int)seed, (int)n, (int)err.code, err.text);
    }
    ck_assert_uint_gt(n, 10);
}

START_TEST(one_allocation_fails)
{
    sweep((uint64_t)_i, false, 0);
}
END_TEST

START_TEST(all_fail_from_one_on)
{
    sweep((uint64_t)_i, false, 1);
}
END_TEST

START_TEST(one_fails_under_check)
{
    sweep((uint64_t)_i, true, 0);
}
END_TEST

/* The end of a run needs no memory: everybody is told of, and every block comes back. */
static void sweep_accounts(uint64_t seed, int sticky)
{
    struct random_run run;
    uint64_t n = 0;
    int result = -1;

    random_run_draw(&run, seed);
    while (result < 0) {
        struct tally tally = { 0 };
        struct pkv_err err = { 0 };

        ck_assert_uint_lt(++n, MOST_ALLOCATIONS);
        pkv_alloc_fail_at(n, sticky);
        result = run_with_tally(&run, &tally, n, &err);
        pkv_alloc_fail_at(0, 0);
        if (result < 0)
            ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
    ck_assert_uint_gt(n, 10);
}

START_TEST(the_account_stands_without_memory)
{
    sweep_accounts((uint64_t)_i, 1);
    sweep_accounts((uint64_t)_i, 0);
}
END_TEST

START_TEST(the_account_stands_when_a_sink_fails)
{
    struct random_run run;
    uint64_t n = 0;
    int result = -1;

    random_run_draw(&run, (uint64_t)_i);
    while (result < 0) {
        struct tally tally = { .fail_at = ++n };
        struct pkv_err err = { 0 };

        ck_assert_uint_lt(n, MOST_ALLOCATIONS);
        result = run_with_tally(&run, &tally, n, &err);
        if (result < 0) {
            ck_assert_int_eq(err.code, PKV_ERR_IO);
            ck_assert_str_eq(err.text, "no room left on device");
        } else {
            ck_assert_uint_lt(tally.num_calls, n);
        }
    }
    ck_assert_uint_gt(n, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tests = tcase_create("memory");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, one_allocation_fails, 1, 40);
    tcase_add_loop_test(tests, all_fail_from_one_on, 1, 20);
    tcase_add_loop_test(tests, one_fails_under_check, 1, 5);
    tcase_add_loop_test(tests, the_account_stands_without_memory, 1, 40);
    tcase_add_loop_test(tests, the_account_stands_when_a_sink_fails, 1, 60);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
