/*
 * test_memory.c - small runs in which the first allocation fails, then the second, and so on until
 * one gets by. Each has to say so and to give back everything (the sanitizers look for leaks).
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

struct traffic {
    const struct random_run *run;
    size_t next;
};

static int give_spec(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct traffic *traffic = ctx;

    (void)err;
    if (traffic->next == traffic->run->num_specs)
        return 0;
    *out = traffic->run->specs[traffic->next++];
    return 1;
}

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
    struct traffic traffic = { run, 0 };
    struct pkv_engine_config config = {
        .sched = run->sched, .step_time = run->step_time, .source = { give_spec, &traffic },
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
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
