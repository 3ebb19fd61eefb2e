/*
 * test_compare_groups.c - tenants, priorities and series over time of comparisons, by hand.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "compare_fixture.h"
#include "scenario_fixture.h"

/* ---- tenants and priorities ---- */

/* (1 + 3)^2 / (2 (1 + 9)) = 16 / 20. */
START_TEST(jain_by_hand)
{
    struct jain jain = {0}, even = {0}, alone = {0}, nothing = {0}, one_of_four = {0};
    double index = -1;

    jain_add(&jain, 1);
    jain_add(&jain, 3);
    ck_assert(jain_read(&jain, &index));
    ck_assert_double_eq_tol(index, 0.8, 1e-12);
    jain_add(&alone, 3);
    ck_assert(!jain_read(&alone, &index));
    for (int i = 0; i < 4; i++) {
        jain_add(&even, 7);
        jain_add(&nothing, 0);
        jain_add(&one_of_four, i == 2 ? 5 : 0);
    }
    ck_assert(!jain_read(&nothing, &index));
    ck_assert(jain_read(&even, &index));
    ck_assert_double_eq(index, 1);
    ck_assert(jain_read(&one_of_four, &index));
    ck_assert_double_eq(index, 0.25);
}
END_TEST

#define TENANT_ROW(prompt, output, tenant, priority)                                              \
    "{\"timestamp\": 0, \"input_length\": " #prompt ", \"output_length\": " #output               \
    ", \"tenant\": \"" tenant "\", \"priority\": " #priority "}\n"
#define TENANTS "kv: {block_size: 4, num_blocks: 100}\nstep_time: {model: fixed, ms: 1}\n"       \
                "traffic: {trace: t.jsonl}\n"

static void expect_group(const struct compare_group *group, size_t run, const double *values)
{
    for (int f = 0; f < GROUP_FIGURE_COUNT; f++) {
        ck_assert_msg(group->runs[run].has[f], "%s", group_figure_infos[f].name);
        ck_assert_msg(fabs(group->runs[run].values[f] - values[f]) < 1e-6, "%s: %f, not %f",
                      group_figure_infos[f].name, group->runs[run].values[f], values[f]);
    }
}

/* One at a time, a step of 1 ms a token: first tokens at 1, 3 and 7, ends at 2, 6 and 8 ms. Tenant a
 * has 16 prompt and 6 output tokens in 6 ms, 28 / 6 a ms; b 8 and 2 in 8 ms, 12 / 8. That is 28 to 9,
 * so Jain's index is 37^2 / (2 (28^2 + 9^2)); of the mean first tokens, 2 and 7, it is 81 / 106. All
 * at once: first tokens at 1, ends at 2, 4 and 2; 28 / 4 to 12 / 2. */
START_TEST(groups_by_hand)
{
    static const double ms = 1e6;
    const double a[] = { 2, 2, 6, 28000 / 6., 0, 2 * ms, 3 * ms, 4 * ms, 6 * ms };
    const double b[] = { 1, 1, 2, 12000 / 8., 0, 7 * ms, 7 * ms, 8 * ms, 8 * ms };
    const double a_at_once[] = { 2, 2, 6, 7000, 0, ms, ms, 3 * ms, 4 * ms };
    struct cell cells[2];
    struct pkv_grid *grid;
    struct pkv_compare *c;
    size_t first = 9;

    fixture_write("t.jsonl", TENANT_ROW(8, 2, "a", 5) TENANT_ROW(8, 4, "a", 5)
                  TENANT_ROW(8, 2, "b", -5));
    grid = grid_of(TENANTS "vary: {scheduler.max_num_seqs: [1, 256]}\n");
    c = compare_of(grid, 2, 1);
    ck_assert_uint_eq(compare_groups_of(&c->groups, GROUP_TENANT, &first), 2);
    ck_assert_uint_eq(first, 0);
    ck_assert_str_eq(c->groups.items[0].key.tenant, "a");
    expect_group(&c->groups.items[0], 0, a);
    expect_group(&c->groups.items[1], 0, b);
    expect_group(&c->groups.items[0], 1, a_at_once);
    ck_assert_uint_eq(compare_groups_of(&c->groups, GROUP_PRIORITY, &first), 2);
    ck_assert_uint_eq(first, 2);
    ck_assert_int_eq(c->groups.items[2].key.priority, -5);
    expect_group(&c->groups.items[2], 0, b);
    compare_column(c, FIGURE_JAIN_SERVICE, cells);
    ck_assert_double_eq_tol(cells[0].mean, 1369 / 1730., 1e-12);
    ck_assert_double_eq_tol(cells[1].mean, 169 / 170., 1e-12);
    ck_assert(cells[1].best && !cells[0].best);
    compare_column(c, FIGURE_JAIN_TTFT, cells);
    ck_assert_double_eq_tol(cells[0].mean, 81 / 106., 1e-12);
    ck_assert_double_eq(cells[1].mean, 1);
    compare_group_column(c, &c->groups.items[1], GROUP_TTFT_MEAN, cells);
    ck_assert_double_eq_tol(cells[1].percent, (1 - 7) / 7. * 100, 1e-9);
    ck_assert(cells[1].best);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* 800 tokens never fit into 400: tenant z is given nothing, and has no first token to tell of. */
START_TEST(a_tenant_without_anything)
{
    struct cell cells[2];
    struct pkv_grid *grid;
    struct pkv_compare *c;

    fixture_write("t.jsonl", TENANT_ROW(8, 2, "a", 0) TENANT_ROW(800, 2, "z", 0));
    grid = grid_of(TENANTS "vary: {kv.num_blocks: [100, 300]}\n");
    c = compare_of(grid, 1, 1);
    compare_column(c, FIGURE_JAIN_SERVICE, cells);
    ck_assert_double_eq(cells[0].mean, 0.5);
    compare_column(c, FIGURE_JAIN_TTFT, cells);
    ck_assert(!cells[0].has && cells[1].has);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* Eight blocks hold 32 positions: 8 of the prompt in the first step and 24 more, with 25 tokens, after
 * which it can neither grow nor start again. Its service goes on being 8 + 2 x 25 until the run ends. */
START_TEST(unfinished_lasts_to_the_end)
{
    struct pkv_grid *grid = grid_of("kv: {block_size: 4, num_blocks: 8}\n"
        "step_time: {model: fixed, ms: 1}\nscheduler: {oversized: wait}\n"
        "traffic: {requests: 1, prompt_tokens: 8, output_tokens: 400}\nvary: {step_time.ms: [1]}\n");
    struct pkv_compare *c = compare_of(grid, 1, 1);
    struct cell cell;

    ck_assert_str_ne(compare_outcome(c, 0), "done");
    compare_column(c, FIGURE_MAKESPAN, &cell);
    ck_assert_double_ge(cell.mean, 25e6);
    ck_assert_double_eq(c->groups.items[0].runs[0].values[GROUP_OUTPUT], 25);
    ck_assert_double_eq_tol(c->groups.items[0].runs[0].values[GROUP_SERVICE], 58e9 / cell.mean, 1e-6);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* The traces of two configurations have other tenants: who is not there has no requests. */
START_TEST(tenants_of_one_configuration)
{
    struct cell cells[2];
    struct pkv_grid *grid;
    struct pkv_compare *c;

    fixture_write("t.jsonl", TENANT_ROW(8, 2, "m", 0));
    fixture_write("u.jsonl", TENANT_ROW(8, 2, "z", 0) TENANT_ROW(8, 2, "a", 0)
                  "{\"timestamp\": 0, \"input_length\": 8, \"output_length\": 2}\n");
    grid = grid_of(TENANTS "vary: {traffic.trace: [t.jsonl, u.jsonl]}\n");
    c = compare_of(grid, 1, 1);
    ck_assert_uint_eq(c->groups.num, 5);
    ck_assert_ptr_null(c->groups.items[0].key.tenant);
    ck_assert_str_eq(c->groups.items[1].key.tenant, "a");
    ck_assert_str_eq(c->groups.items[2].key.tenant, "m");
    ck_assert_str_eq(c->groups.items[3].key.tenant, "z");
    compare_group_column(c, &c->groups.items[3], GROUP_REQUESTS, cells);
    ck_assert(cells[0].has && cells[1].has);
    ck_assert_double_eq(cells[0].mean, 0);
    ck_assert_double_eq(cells[1].mean, 1);
    compare_group_column(c, &c->groups.items[3], GROUP_E2E_MEAN, cells);
    ck_assert(!cells[0].has && cells[1].has && !cells[1].has_diff);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* ---- over time ---- */

static void add_row(struct run_series *s, int64_t begin, int64_t end, int64_t waiting)
{
    const struct pkv_step_row row = {.time_ns = 50 + begin, .dur_ns = end - begin,
                                     .waiting = waiting, .running = 1, .free_blocks = 7 - waiting,
                                     .used_blocks = 3 + waiting, .preempted = waiting};
    struct pkv_err err = {0};

    ck_assert_int_eq(run_series_add(s, 50, &row, &err), 0);
}

/* 100,000 steps of one width each: 4,000 bins do not suffice until they are 2 x 5 x 2 x 5 wide. */
START_TEST(a_peak_of_one_step_survives)
{
    struct run_series s = {.width_ns = 1};
    const struct pkv_compare c = { .num = 1, .series = &s };
    static struct pkv_series_point points[OVERLAY_BINS];
    struct overlay_grid grid;

    for (int64_t i = 0; i < 100000; i++)
        add_row(&s, i, i + 1, i == 54321 ? 3 : 0);
    ck_assert_int_eq(s.width_ns, 100);
    overlay_grid_read(&c, &grid);
    ck_assert_int_eq(grid.width_ns, 100);
    ck_assert_uint_eq(overlay_read(&s, &grid, points), 1000);
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(points[i].begin_ns, (int64_t)i * 100);
        ck_assert_int_eq(points[i].max_waiting, i == 543 ? 3 : 0);
        ck_assert_int_eq(points[i].min_free, i == 543 ? 4 : 7);
        ck_assert_int_eq(points[i].preemptions, i == 543 ? 3 : 0);
        ck_assert(points[i].min_waiting == 0 && points[i].max_free == 7);
    }
    run_series_finish(&s);
}
END_TEST

/* Steps of 10 and of 40 in bins of 10, a pause between 50 and 90 and one at the beginning. */
START_TEST(pauses_are_free)
{
    struct run_series s = {.width_ns = 10}, longer = {.width_ns = 10};
    struct run_series both[2];
    const struct pkv_compare c = { .num = 2, .series = both };
    static struct pkv_series_point points[OVERLAY_BINS];
    static const int64_t min_free[] = { 5, 5, 5, 5, 5, 10, 10, 10, 10, 6 };
    struct overlay_grid grid;

    add_row(&s, 5, 10, 2);
    add_row(&s, 10, 50, 2);
    add_row(&s, 90, 95, 1);
    add_row(&longer, 0, 1500 * 10, 0);
    both[0] = s;
    both[1] = longer;
    overlay_grid_read(&c, &grid);                     /* 1,500 bins are too many */
    ck_assert_int_eq(grid.width_ns, 20);
    ck_assert_int_eq(grid.end_ns, 15000);
    ck_assert_uint_eq(overlay_read(&longer, &grid, points), 750);
    grid.width_ns = 10;
    ck_assert_uint_eq(overlay_read(&s, &grid, points), 10);
    for (size_t i = 0; i < 10; i++)
        ck_assert_int_eq(points[i].min_free, min_free[i]);
    ck_assert(points[0].max_free == 10 && points[0].min_running == 0 && points[1].min_running == 1);
    ck_assert_int_eq(points[1].preemptions, 2);
    ck_assert_int_eq(points[2].preemptions, 0);
    ck_assert_int_eq(points[9].end_ns, 95);
    run_series_finish(&s);
    run_series_finish(&longer);
}
END_TEST

/* ---- on the page ---- */

/* The run of configuration 1 takes 6 ms, that of 2 takes 12 ms, in 28 columns. 8 blocks: 6 are free
 * in the first step, then 5 or 4; two lines have 6 levels, so these are 4 of them and 3. A first step
 * of 1 ms is alone in two columns, one of 2 ms in four. */
START_TEST(plots_on_the_same_axes)
{
    struct pkv_grid *grid = grid_of(SMALL "vary: {step_time.ms: [1, 2]}\n");
    struct pkv_grid *six = grid_of(SMALL "vary: {step_time.ms: [1, 2, 3, 4, 5, 6]}\n");
    struct pkv_compare *c = compare_of(grid, 1, 1), *many = compare_of(six, 1, 1);
    const struct pkv_report_style narrow = {.width = 40};
    struct pkv_err err = {0};
    char *text = pkv_compare_text(c, &narrow, &err);

    expect_has(text, "            free blocks, configuration 1\n"
                     "         8 +..            |\n"
                     "         0 +##############|\n"
                     "            free blocks, configuration 2\n"
                     "         8 +....                        \n"
                     "         0 +############################\n"
                     "            waiting: nobody at any time\n");
    pkv_report_free(text);
    text = pkv_compare_text(many, &narrow, &err);
    ck_assert_ptr_null(strstr(text, "over time"));
    pkv_report_free(text);
    pkv_compare_destroy(c);
    pkv_compare_destroy(many);
    pkv_grid_destroy(grid);
    pkv_grid_destroy(six);
}
END_TEST

/* Eight tenants with 1 to 8 requests: the six largest are shown. */
START_TEST(the_largest_tenants_are_shown)
{
    static const char *const names[] = {"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"};
    const struct pkv_report_style plain = {.width = 80};
    struct pkv_err err = {0};
    char rows[8192] = "";
    struct pkv_grid *grid;
    struct pkv_compare *c;
    char *text;

    for (int i = 0; i < 8; i++)
        for (int n = 0; n <= i; n++)
            snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "{\"timestamp\": 0, "
                     "\"input_length\": 8, \"output_length\": 2, \"tenant\": \"%s\"}\n", names[i]);
    fixture_write("t.jsonl", rows);
    grid = grid_of(TENANTS "vary: {kv.num_blocks: [100, 200]}\n");
    c = compare_of(grid, 1, 1);
    text = pkv_compare_text(c, &plain, &err);
    for (int i = 0; i < 8; i++) {
        char line[32];
        snprintf(line, sizeof line, "\ntenant %s\n", names[i]);
        ck_assert_int_eq(strstr(text, line) != NULL, i >= 2);
    }
    expect_has(text, "\nand 2 with fewer requests, which fairness.csv of -o has, too\n");
    expect_has(text, "Jain service");
    ck_assert_ptr_null(strstr(text, "Priorities"));
    pkv_report_free(text);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare_groups");
    TCase *tests = tcase_create("compare_groups");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tests, fixture_begin, fixture_end);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, jain_by_hand);
    tcase_add_test(tests, groups_by_hand);
    tcase_add_test(tests, a_tenant_without_anything);
    tcase_add_test(tests, unfinished_lasts_to_the_end);
    tcase_add_test(tests, tenants_of_one_configuration);
    tcase_add_test(tests, a_peak_of_one_step_survives);
    tcase_add_test(tests, pauses_are_free);
    tcase_add_test(tests, plots_on_the_same_axes);
    tcase_add_test(tests, the_largest_tenants_are_shown);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
