/*
 * test_openmetrics.c - an OpenMetrics file and a frame of a live run, from rows made by hand; and what
 * becomes of them without memory.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "files.h"
#include "pagedkv/report.h"

#define MS INT64_C(1000000)

static struct pkv_scenario *scenario_of_a_pool(void)
{
    const struct pkv_setting settings[] = {
        {"kv.num_blocks", "8", "--num-blocks"}, {"traffic.requests", "1", "--set"},
        {"traffic.arrivals", "{law: at_once}", "--set"}, {"traffic.prompt_tokens", "8", "--set"},
        {"traffic.output_tokens", "2", "--set"},
    };
    struct pkv_err err = {0};
    struct pkv_scenario *s = pkv_scenario_load(NULL, settings, sizeof settings / sizeof *settings, &err);
    ck_assert_msg(s != NULL, "%s", err.text);
    return s;
}

/* Two steps with ten seconds between them: 3 of 8 blocks held from 0 to 2 s, 5 from 12 to 14 s. */
static int feed(struct pkv_openmetrics *m, struct pkv_engine_figures *figures, struct pkv_err *err)
{
    struct pkv_sink sink = pkv_openmetrics_sink(m);
    struct pkv_step_row row = {.dur_ns = 2000 * MS, .running = 1, .used_blocks = 3, .free_blocks = 5,
                               .output_tokens = 4, .regular_gaps = 3, .regular_gap_ns = 2000 * MS,
                               .queried_tokens = 40, .counted = figures};
    if (sink.step(sink.ctx, NULL, &row, err) < 0)
        return -1;
    row.time_ns = 12000 * MS;
    row.used_blocks = 5;
    row.waiting = 2;
    row.preempted = 1;
    figures->end_ns = 14000 * MS;
    figures->unfinished = 2;
    return sink.step(sink.ctx, NULL, &row, err);
}

static int write_file(const struct pkv_scenario *scenario, const char *path, int64_t interval_ns,
                      struct pkv_err *err)
{
    const struct pkv_openmetrics_config config = {scenario, path, interval_ns};
    struct pkv_engine_figures figures = {0};
    struct pkv_openmetrics *m = pkv_openmetrics_create(&config, err);
    int status = m != NULL ? feed(m, &figures, err) : -1;
    if (status == 0)
        status = pkv_openmetrics_finish(m, &figures, err);
    pkv_openmetrics_destroy(m);
    return status;
}

static void expect_line(const char *text, const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "no line %s", line);
}

START_TEST(scrapes_see_the_step_under_way)
{
    const char *folder = make_folder();
    char *path = path_in(folder, "m.txt"), *text;
    struct pkv_scenario *scenario = scenario_of_a_pool();
    struct pkv_err err = {0};
    ck_assert_int_eq(write_file(scenario, path, 2000 * MS, &err), 0);
    text = read_text(folder, "m.txt");
#define USAGE "\nvllm:kv_cache_usage_perc{engine=\"0\",model_name=\"pagedkv\"} "
    expect_line(text, USAGE "0.375 0.000" USAGE "0 2.000" USAGE "0 4.000");
    expect_line(text, USAGE "0 10.000" USAGE "0.625 12.000" USAGE "0.625 14.000\n#");
#define PREEMPTED "\nvllm:num_preemptions_total{engine=\"0\",model_name=\"pagedkv\"} "
    expect_line(text, PREEMPTED "0 10.000" PREEMPTED "1 12.000");
#define GAPS "\nvllm:inter_token_latency_seconds_"
#define LABELS "{engine=\"0\",model_name=\"pagedkv\"} "
    expect_line(text, GAPS "count" LABELS "0 0.000" GAPS "sum" LABELS "0 0.000");
    expect_line(text, GAPS "count" LABELS "3 2.000" GAPS "sum" LABELS "6 2.000");
    expect_line(text, GAPS "bucket{engine=\"0\",model_name=\"pagedkv\",le=\"1.0\"} 0 14.000" GAPS
                "bucket{engine=\"0\",model_name=\"pagedkv\",le=\"2.5\"} 6 14.000");
    ck_assert_str_eq(text + strlen(text) - 7, "\n# EOF\n");
    free(text);
    free(path);
    pkv_scenario_destroy(scenario);
    remove_folder(folder);
}
END_TEST

START_TEST(without_memory_nothing_is_left)
{
    const char *folder = make_folder();
    char *path = path_in(folder, "m.txt");
    struct pkv_scenario *scenario = scenario_of_a_pool();
    uint64_t n = 0;
    int status = -1;
    while (status < 0) {
        struct pkv_err err = {0};
        ck_assert_uint_eq(num_files(folder), 0);
        pkv_alloc_fail_at(++n, _i);
        status = write_file(scenario, path, 5000 * MS, &err);
        pkv_alloc_fail_at(0, 0);
        ck_assert_msg(status == 0 || err.code == PKV_ERR_MEMORY, "allocation %d: %s", (int)n, err.text);
    }
    ck_assert_uint_gt(n, 10);
    ck_assert_uint_eq(num_files(folder), 1);
    free(path);
    pkv_scenario_destroy(scenario);
    remove_folder(folder);
}
END_TEST

/* ---- a frame ---- */

static const struct pkv_live now = {
    .time_ns = 90000 * MS, .wall_ns = 1000 * MS, .free_blocks = 40, .used_blocks = 60,
    .cached_blocks = 10, .running = 7, .waiting = 12, .preemptions = 1, .num_steps = 9000,
    .num_ended = 1234, .output_tokens = 56789,
};
static const struct pkv_series_point series[] = {
    {.end_ns = 45000 * MS, .min_free = 80, .max_free = 100, .max_waiting = 1, .max_running = 3},
    {.begin_ns = 45000 * MS, .end_ns = 90000 * MS, .min_free = 40, .max_free = 80, .max_waiting = 12,
     .max_running = 7, .preemptions = 1},
};

START_TEST(a_frame_says_what_is_now)
{
    const struct pkv_report_style style = {.width = 63};
    struct pkv_err err = {0};
    char *text = pkv_report_live(&now, series, 2, &style, &err);
    /* Fifty columns: 60 of 100 blocks are 30, 10 are 5. */
    const char *head =
        "blocks       ##############################=====...............\n"
        "             60 used, 10 cached, 30 empty\n"
        "requests     7 running, 12 waiting, 1,234 ended; 1 preemption\n"
        "virtual time 1 min 30 s, 9,000 steps, 56,789 tokens; 90.00 time";
    ck_assert_msg(text != NULL && strncmp(text, head, strlen(head)) == 0, "%s", text);
    pkv_report_free(text);
}
END_TEST

START_TEST(a_frame_fits)
{
    for (unsigned width = 40; width <= 200; width += 10) {
        const struct pkv_report_style style = {.width = width};
        struct pkv_err err = {0};
        char *text = pkv_report_live(&now, series, 2, &style, &err);
        size_t lines = 0;
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++)
            ck_assert_uint_le(strlen(line), width);
        ck_assert_uint_le(lines, 22);
        pkv_report_free(text);
    }
}
END_TEST

START_TEST(a_frame_without_memory)
{
    const struct pkv_report_style style = {.width = 80, .utf8 = true, .colour = true};
    char *text = NULL;
    for (uint64_t n = 1; text == NULL; n++) {
        struct pkv_err err = {0};
        pkv_alloc_fail_at(n, _i);
        text = pkv_report_live(&now, series, 2, &style, &err);
        pkv_alloc_fail_at(0, 0);
        ck_assert(text != NULL || err.code == PKV_ERR_MEMORY);
    }
    pkv_report_free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("openmetrics");
    TCase *tests = tcase_create("openmetrics");
    SRunner *runner;
    int failed;
    tcase_add_test(tests, scrapes_see_the_step_under_way);
    tcase_add_loop_test(tests, without_memory_nothing_is_left, 0, 2);
    tcase_add_test(tests, a_frame_says_what_is_now);
    tcase_add_test(tests, a_frame_fits);
    tcase_add_loop_test(tests, a_frame_without_memory, 0, 2);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
