/*
 * test_sim.c - a run as a whole, its rows as columns: values reckoned by hand, places of errors, stopping,
 * and what happens without memory.
 *
 * One request of 8 tokens on blocks of 4, which says 3: prefill in the first step of 1 ms, then two
 * decodes; its last token is never stored, so it holds 2, 3 and 3 blocks.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "files.h"
#include "pagedkv/sim.h"

#define MOST_ALLOCATIONS 20000

static const char scenario[] = "kv: {block_size: 4, num_blocks: 8}\n"
                               "step_time: {model: fixed, ms: 1}\n"
                               "traffic:\n"
                               "  requests: 1\n"
                               "  arrivals: {law: constant, rate_per_s: 1}\n"
                               "  prompt_tokens: 8\n"
                               "  output_tokens: 3\n";

static const struct pkv_sim_config whole = {
    .text = scenario,
    .text_name = "scenario",
    .columns = { .has_table = { true, true, true, true } },
};

static struct pkv_sim *run_all(const struct pkv_sim_config *config)
{
    struct pkv_err err = { 0 };
    struct pkv_sim *sim = pkv_sim_create(config, &err);

    ck_assert_msg(sim != NULL, "%s", err.text);
    ck_assert_int_eq(pkv_sim_run(sim, &err), 0);
    ck_assert_int_eq(pkv_sim_finish(sim, 17, &err), 0);
    return sim;
}

static const int64_t *column(const struct pkv_sim *sim, enum pkv_columns_table table, const char *name)
{
    for (size_t i = 0; i < pkv_columns_num(table); i++)
        if (strcmp(pkv_columns_name(table, i), name) == 0)
            return pkv_columns_values(pkv_sim_columns(sim), table, i);
    ck_abort_msg("no column %s", name);
}

static void expect(const struct pkv_sim *sim, enum pkv_columns_table table, const char *name,
                   const int64_t *values, size_t num)
{
    const int64_t *found = column(sim, table, name);

    ck_assert_uint_eq(pkv_columns_num_rows(pkv_sim_columns(sim), table), num);
    for (size_t i = 0; i < num; i++)
        ck_assert_msg(found[i] == values[i], "%s, row %zu: %lld, not %lld", name, i,
                      (long long)found[i], (long long)values[i]);
}

#define EXPECT(sim, table, name, ...)                                                     \
    expect(sim, table, name, (const int64_t[]){ __VA_ARGS__ },                            \
           sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

START_TEST(columns_of_one_request)
{
    struct pkv_sim *sim = run_all(&whole);
    size_t length;
    const char *texts = pkv_columns_texts(pkv_sim_columns(sim), &length);

    EXPECT(sim, PKV_COLUMNS_STEPS, "time_ns", 0, 1000000, 2000000);
    EXPECT(sim, PKV_COLUMNS_STEPS, "used_blocks", 2, 3, 3);
    EXPECT(sim, PKV_COLUMNS_STEPS, "sched_tokens", 8, 1, 1);
    EXPECT(sim, PKV_COLUMNS_STEPS, "finished", 0, 0, 1);
    EXPECT(sim, PKV_COLUMNS_EXTRA, "output_tokens", 1, 1, 1);
    EXPECT(sim, PKV_COLUMNS_EXTRA, "prompt_tokens", 8, 0, 0);
    EXPECT(sim, PKV_COLUMNS_EXTRA, "table_blocks", 2, 3, 3);
    EXPECT(sim, PKV_COLUMNS_EXTRA, "allocated_total", 2, 3, 3);
    EXPECT(sim, PKV_COLUMNS_EXTRA, "released_total", 0, 0, 3);
    EXPECT(sim, PKV_COLUMNS_GAPS, "time_ns", 1000000, 2000000);
    EXPECT(sim, PKV_COLUMNS_GAPS, "gap_ns", 1000000, 1000000);
    EXPECT(sim, PKV_COLUMNS_GAPS, "num", 1, 1);
    EXPECT(sim, PKV_COLUMNS_REQUESTS, "first_token_ns", 1000000);
    EXPECT(sim, PKV_COLUMNS_REQUESTS, "finish_ns", 3000000);
    EXPECT(sim, PKV_COLUMNS_REQUESTS, "status", PKV_REQUEST_COMPLETED);
    EXPECT(sim, PKV_COLUMNS_REQUESTS, "peak_blocks", 3);
    EXPECT(sim, PKV_COLUMNS_REQUESTS, "id_length", 1);
    EXPECT(sim, PKV_COLUMNS_REQUESTS, "tenant_length", 0);
    ck_assert_uint_eq(length, 1);
    ck_assert_int_eq(texts[0], '0');
    ck_assert_ptr_nonnull(strstr(pkv_sim_summary_json(sim), "\"wall_ns\": 17"));
    ck_assert_ptr_nonnull(strstr(pkv_sim_scenario_yaml(sim), "num_blocks: 8"));
    ck_assert_int_eq(pkv_sim_figures(sim)->outcome, PKV_OUTCOME_DONE);
    ck_assert_str_eq(pkv_sim_diagnosis(sim), "");
    ck_assert_ptr_null(pkv_columns_name(PKV_COLUMNS_GAPS, 3));
    pkv_sim_destroy(sim);
}
END_TEST

START_TEST(every_second_step)
{
    struct pkv_sim_config config = whole;

    config.columns.every = 2;
    struct pkv_sim *sim = run_all(&config);
    EXPECT(sim, PKV_COLUMNS_STEPS, "step", 0, 2);
    EXPECT(sim, PKV_COLUMNS_EXTRA, "allocated_total", 2, 3);
    EXPECT(sim, PKV_COLUMNS_GAPS, "num", 1, 1);
    pkv_sim_destroy(sim);
}
END_TEST

START_TEST(nothing_is_kept)
{
    struct pkv_sim_config config = whole;

    memset(config.columns.has_table, 0, sizeof(config.columns.has_table));
    struct pkv_sim *sim = run_all(&config);
    for (int i = 0; i < PKV_COLUMNS_COUNT; i++) {
        ck_assert_uint_eq(pkv_columns_num_rows(pkv_sim_columns(sim), (enum pkv_columns_table)i), 0);
        ck_assert_ptr_null(pkv_columns_values(pkv_sim_columns(sim), (enum pkv_columns_table)i, 0));
    }
    ck_assert_uint_eq(pkv_sim_figures(sim)->num_steps, 3);
    pkv_sim_destroy(sim);
}
END_TEST

START_TEST(errors_have_places)
{
    const struct pkv_setting misspelt = { "kv.num_block", "9", "here" };
    const struct { struct pkv_sim_config config; const char *path; uint64_t line; uint32_t column; }
    cases[] = {
        { { .text = "kv:\n  num_blocks: many\n", .text_name = "a text" }, "a text", 2, 15 },
        { { .text = "", .text_name = "a text" }, "a text", 0, 0 },
        { { .text = "[1, 2]\n", .text_name = "a text" }, "a text", 1, 1 },
        { { .path = "none.yaml", .text = scenario }, "none.yaml", 0, 0 },
        { { .text = scenario, .settings = &misspelt, .num_settings = 1 }, "here", 0, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pkv_err err = { 0 };

        ck_assert_ptr_null(pkv_sim_create(&cases[i].config, &err));
        ck_assert_int_eq(err.code, PKV_ERR_INPUT);
        ck_assert_str_eq(err.path, cases[i].path);
        ck_assert_uint_eq(err.line, cases[i].line);
        ck_assert_uint_eq(err.column, cases[i].column);
    }
}
END_TEST

START_TEST(stopped_before_it_began)
{
    struct pkv_err err = { 0 };
    struct pkv_sim *sim = pkv_sim_create(&whole, &err);

    pkv_sim_stop(sim);
    ck_assert_int_eq(pkv_sim_run(sim, &err), 0);
    ck_assert_int_eq(pkv_sim_finish(sim, 0, &err), 0);
    ck_assert_int_eq(pkv_sim_figures(sim)->outcome, PKV_OUTCOME_INTERRUPTED);
    ck_assert_uint_lt(pkv_columns_num_rows(pkv_sim_columns(sim), PKV_COLUMNS_STEPS), 3);
    pkv_sim_destroy(sim);
}
END_TEST

START_TEST(files_beside_the_columns)
{
    const char *folder = make_folder();
    struct pkv_sim_config config = whole;

    config.dir = folder;
    config.files = PKV_FILE_SUMMARY | PKV_FILE_STEPS;
    struct pkv_sim *sim = run_all(&config);
    char *text = read_text(folder, "summary.json");
    ck_assert_str_eq(text, pkv_sim_summary_json(sim));
    ck_assert_uint_eq(num_files(folder), 2);
    free(text);
    pkv_sim_destroy(sim);
    remove_folder(folder);
}
END_TEST

/* Which of the calls had no memory? NULL = none. */
static const char *run_with_failure(uint64_t n, struct pkv_err *err)
{
    const char *failed = NULL;

    pkv_alloc_fail_at(n, 0);
    struct pkv_sim *sim = pkv_sim_create(&whole, err);
    if (sim == NULL)
        failed = "create";
    else if (pkv_sim_run(sim, err) < 0)
        failed = "run";
    else if (pkv_sim_finish(sim, 0, err) < 0)
        failed = "finish";
    pkv_alloc_fail_at(0, 0);
    pkv_sim_destroy(sim);
    return failed;
}

START_TEST(without_memory)
{
    bool create = false, run = false, finish = false;
    uint64_t n = 0;

    for (;;) {
        struct pkv_err err = { 0 };
        const char *failed = run_with_failure(++n, &err);

        if (failed == NULL)
            break;
        ck_assert_msg(err.code == PKV_ERR_MEMORY, "allocation %d: %s", (int)n, err.text);
        create |= strcmp(failed, "create") == 0;
        run |= strcmp(failed, "run") == 0;
        finish |= strcmp(failed, "finish") == 0;
        ck_assert_uint_lt(n, MOST_ALLOCATIONS);
    }
    ck_assert(create && run && finish);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *tests = tcase_create("sim");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, columns_of_one_request);
    tcase_add_test(tests, every_second_step);
    tcase_add_test(tests, nothing_is_kept);
    tcase_add_test(tests, errors_have_places);
    tcase_add_test(tests, stopped_before_it_began);
    tcase_add_test(tests, files_beside_the_columns);
    tcase_add_test(tests, without_memory);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
