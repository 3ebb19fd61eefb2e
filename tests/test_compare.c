/*
 * test_compare.c - comparisons whose figures were worked out by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "compare_fixture.h"
#include "report/compare_page_private.h"
#include "scenario_fixture.h"

/* Six steps of 1, 2 and 4 ms. */
START_TEST(figures_by_hand)
{
    struct pkv_grid *grid = grid_of(SMALL "targets: {ttft_ms: 2}\nvary: {step_time.ms: [1, 2, 4]}\n");
    struct pkv_compare *c = compare_of(grid, 1, 1);
    struct cell cells[3];

    compare_column(c, FIGURE_MAKESPAN, cells);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(cells[i].mean, 6e6 * (1 << i));
    ck_assert(cells[0].best && !cells[1].best && !cells[2].best && !cells[0].has_diff);
    ck_assert_double_eq(cells[1].percent, 100);
    ck_assert_double_eq(cells[2].percent, 300);
    compare_column(c, FIGURE_OUTPUT, cells);       /* 1000, 500 and 250 a second */
    ck_assert_double_eq(cells[0].mean, 1000);
    ck_assert_double_eq(cells[1].percent, -50);
    ck_assert_double_eq(cells[2].percent, -75);
    ck_assert(cells[0].best);
    compare_column(c, FIGURE_COMPLETED, cells);    /* all the same: none is the best */
    ck_assert(!cells[0].best && !cells[1].best && cells[1].has_percent);
    ck_assert_double_eq(cells[1].percent, 0);
    compare_column(c, FIGURE_GOOD, cells);         /* first tokens after 1, 2 and 4 ms */
    ck_assert(cells[0].best && cells[1].best && !cells[2].best);
    ck_assert_double_eq(cells[2].percent, -100);
    ck_assert_uint_eq(c->pairs[1].worse, 1);
    ck_assert_uint_eq(c->pairs[2].better + c->pairs[2].same + c->pairs[2].lost, 0);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

START_TEST(json_by_hand)
{
    struct pkv_grid *grid = grid_of(SMALL "vary: {step_time.ms: [1, 2]}\n");
    struct pkv_compare *c = compare_of(grid, 1, 1);
    struct pkv_err err = {0};
    char *json = pkv_compare_json(c, &err);

    expect_has(json, "\"seeds\": 1,\n  \"batches\": 0,\n  \"same_traffic\": true");
    expect_has(json, "\"configuration\": 2, \"set\": {\"step_time.ms\": \"2\"}, \"outcome\": \"done\"");
    expect_has(json, "\"makespan_ns\": {\"value\": 12000000, \"diff_percent\": 100, \"best\": false}");
    expect_has(json, "\"e2e_mean_ms\": {\"value\": 6, \"diff_percent\": null, \"best\": true}");
    expect_has(json, "\"jain_service\": {\"value\": null, \"diff_percent\": null, \"best\": false}");
    expect_has(json, "\"tenants\": [\n    {\"tenant\": null, \"configurations\": [\n     "
                     "{\"configuration\": 1,\n      \"requests\": {\"value\": 1, ");
    expect_has(json, "\"priorities\": [\n    {\"priority\": 0, \"configurations\": [\n");
    expect_has(json, "\"good_frac\": {\"value\": null, \"diff_percent\": null, \"best\": false}");
    expect_has(json, "\"worse\": 1, \"same\": 0, \"lost\": 0, \"gained\": 0, \"better_p50_ms\": null, "
                     "\"worse_p50_ms\": 6}");
    pkv_report_free(json);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* A pool of two blocks of 4 tokens rejects what pools of eight and nine complete. */
START_TEST(lost_and_gained)
{
    struct pkv_grid *grid = grid_of(SMALL "vary: {kv.num_blocks: [8, 2, 9]}\n");
    struct pkv_compare *c = compare_of(grid, 2, 1);
    struct cell cells[3];

    ck_assert_uint_eq(c->pairs[1].lost, 1);
    ck_assert_uint_eq(c->pairs[1].gained + c->pairs[1].better + c->pairs[1].worse, 0);
    ck_assert_uint_eq(c->pairs[2].same, 1);
    compare_column(c, FIGURE_REJECTED, cells);     /* 0, 1, 0: from 0 there is no per cent */
    ck_assert(cells[1].has_diff && !cells[1].has_percent && cells[2].has_percent);
    ck_assert(cells[0].best && !cells[1].best && cells[2].best);
    compare_column(c, FIGURE_E2E_MEAN, cells);     /* nothing completed, nothing to compare */
    ck_assert(!cells[1].has && !cells[1].has_diff && cells[2].has_diff);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* ---- statistics, on runs made by hand ---- */

#define SEEDS 3u

static void fill_runs(struct run_figures *runs, const double *values, size_t num)
{
    memset(runs, 0, num * sizeof *runs);
    for (size_t i = 0; i < num; i++) {
        runs[i].done = runs[i].has[FIGURE_E2E_MEAN] = true;
        runs[i].outcome = PKV_OUTCOME_DONE;
        runs[i].values[FIGURE_E2E_MEAN] = values[i];
    }
}

/* 10, 20, 30 have a deviation of 10, so half their interval is 4.303 x 10 / sqrt(3) = 24.8434. The
 * others are above by 1, 2, 3 (2 +- 2.48434: may be noise) and by 2, 2, 2 (none at all). */
START_TEST(intervals_by_hand)
{
    static const double values[] = { 10, 20, 30, 11, 22, 33, 12, 22, 32 };
    struct run_figures runs[3 * SEEDS];
    const struct pkv_compare c = { .num = 3, .num_seeds = SEEDS, .runs = runs };
    struct cell cells[3];

    fill_runs(runs, values, 3 * SEEDS);
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    ck_assert_double_eq(cells[0].mean, 20);
    ck_assert_double_eq_tol(cells[0].half, 24.843382, 1e-6);
    ck_assert_double_eq(cells[1].percent, 10);
    ck_assert_double_eq(cells[1].diff, 2);
    ck_assert_double_eq_tol(cells[1].diff_half, 2.4843382, 1e-7);
    ck_assert(cells[1].within_noise);
    ck_assert_double_eq(cells[2].diff, 2);
    ck_assert_double_eq(cells[2].diff_half, 0);
    ck_assert(!cells[2].within_noise);
    runs[4].done = false;                            /* one seed less: nothing to say of it */
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    ck_assert(!cells[1].has && cells[2].has);
    ck_assert_str_eq(compare_outcome(&c, 1), "not_run");
}
END_TEST

/* Is the star where it should be, and only there? -1 = nowhere. */
static void expect_best(const struct cell *cells, int num, int best)
{
    for (int i = 0; i < num; i++)
        ck_assert_msg(cells[i].best == (i == best), "configuration %d", i + 1);
}

/* Of three seeds. 11, 22, 33 differ from 10, 20, 30 by 2 +- 2.48: noise. 12, 22, 32 by 2 +- 0, and
 * 9, 19, 29 by -1 +- 0: no noise. 9, 18, 27 by -2 +- 2.48: noise. */
START_TEST(noise_is_not_the_best)
{
    static const struct {
        double values[3 * SEEDS];
        int best;
    } known[] = {
        { { 10, 20, 30, 12, 22, 32, 12, 22, 32 }, 0 },
        { { 10, 20, 30, 12, 22, 32, 11, 22, 33 }, -1 },    /* the third may be as good as the first */
        { { 10, 20, 30, 12, 22, 32, 9, 19, 29 }, 2 },
        { { 10, 20, 30, 11, 22, 33, 9, 19, 29 }, 2 },
        { { 10, 20, 30, 12, 22, 32, 9, 18, 27 }, -1 },     /* it is lower, but that may be chance */
        { { 10, 20, 30, 9, 19, 29, 9, 18, 30 }, 1 },       /* as low, and perhaps by chance */
    };
    struct run_figures runs[3 * SEEDS];
    const struct pkv_compare c = { .num = 3, .num_seeds = SEEDS, .runs = runs };
    struct cell cells[3];

    fill_runs(runs, known[_i].values, 3 * SEEDS);
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    expect_best(cells, 3, known[_i].best);
}
END_TEST

/* 20, 19.96 and 19.9 ms: with one decimal the second prints the same as the first. */
START_TEST(what_prints_as_a_worse_one_has_no_star)
{
    static const struct {
        double ns[3];
        const char *values[3];
        bool best[3];
    } known[] = {
        { { 20e6, 19.96e6, 30e6 }, { "20.0 ms", "20.0 ms", "30.0 ms" }, { false, false, false } },
        { { 20e6, 19.94e6, 30e6 }, { "20.0 ms", "19.9 ms", "30.0 ms" }, { false, true, false } },
        { { 20e6, 19.9e6, 19.9e6 }, { "20.0 ms", "19.9 ms", "19.9 ms" }, { false, true, true } },
        { { 20e6, 30e6, 30e6 }, { "20.0 ms", "30.0 ms", "30.0 ms" }, { true, false, false } },
    };
    struct run_figures runs[3];
    const struct pkv_compare c = { .num = 3, .num_seeds = 1, .runs = runs };
    struct pkv_err err = {0};
    struct column column;
    struct cell cells[3];

    fill_runs(runs, known[_i].ns, 3);
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    ck_assert_int_eq(column_init(&column, &c, &figure_infos[FIGURE_E2E_MEAN], cells, &err), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(column.cells[i].value, known[_i].values[i]);
        ck_assert_msg(column.cells[i].best == known[_i].best[i], "configuration %d", i + 1);
    }
    column_finish(&column);
}
END_TEST

/* Their intervals do not part what prints the same. */
START_TEST(ties_with_intervals)
{
    static const double values[] = { 10.04e6, 10.04e6, 10.04e6, 10e6, 10e6, 10e6 };
    struct run_figures runs[2 * SEEDS];
    const struct pkv_compare c = { .num = 2, .num_seeds = SEEDS, .runs = runs };
    struct pkv_err err = {0};
    struct column column;
    struct cell cells[2];

    fill_runs(runs, values, 2 * SEEDS);
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    expect_best(cells, 2, 1);
    cells[0].half = 1e6;
    ck_assert_int_eq(column_init(&column, &c, &figure_infos[FIGURE_E2E_MEAN], cells, &err), 0);
    ck_assert_str_eq(column.cells[0].value, "10.0 ms +-1.0 ms");
    ck_assert_str_eq(column.cells[1].value, "10.0 ms +-0 ns");
    ck_assert(!column.cells[0].best && !column.cells[1].best);
    column_finish(&column);
}
END_TEST

/* Arrivals from 0 to 19: the stretches are 0 .. 9 and 10 .. 19. */
START_TEST(batches_by_hand)
{
    const int64_t none = PKV_NO_TIME;
    struct request_times rows[] = { { 0, { 1, none, 10 } }, { 9, { 3, none, 20 } },
                                    { 10, { 5, none, none } }, { 19, { 8, 2, 50 } } };
    struct request_times others[] = { { 0, { 1, none, 10 } }, { 9, { 3, none, 20 } } };
    /* The same in another order, as rows that follow others come, and one before a window. */
    struct request_times mixed[] = { { 19, { 8, 2, 50 } }, { -5, { none, none, none } },
                                     { 9, { 3, none, 20 } }, { 0, { 1, none, 10 } },
                                     { 10, { 5, none, none } } };
    const struct run_times times = { .rows = rows, .num = 4 }, fewer = { .rows = others, .num = 2 };
    const struct run_times late = { .window = { 0, 30 }, .rows = mixed, .num = 5 };
    struct batch out[2] = { { .has = { false } } };

    batches_read(out, 2, &times, &fewer);
    ck_assert(!out[0].has[TIME_TTFT]);
    batches_read(out, 2, &times, &times);
    ck_assert_double_eq(out[0].means[TIME_TTFT], 2);
    ck_assert_double_eq(out[1].means[TIME_TTFT], 6.5);
    ck_assert(!out[0].has[TIME_TPOT] && out[1].has[TIME_TPOT]);
    ck_assert_double_eq(out[0].means[TIME_E2E], 15);
    ck_assert_double_eq(out[1].means[TIME_E2E], 50);
    memset(out, 0, sizeof out);
    batches_read(out, 2, &late, &late);
    ck_assert_double_eq(out[0].means[TIME_TTFT], 2);
    ck_assert_double_eq(out[1].means[TIME_TTFT], 6.5);
    ck_assert_double_eq(out[0].means[TIME_E2E], 15);
    ck_assert_double_eq(out[1].means[TIME_E2E], 50);
}
END_TEST

/* Means of 10, 20 and of 11, 23: the differences 1 and 3 have a deviation of sqrt(2), so half their
 * interval is 12.706 x sqrt(2) / sqrt(2). Above by 8 and 8 there is no doubt. */
START_TEST(intervals_over_batches)
{
    static const double values[] = { 15, 18, 24 }, means[] = { 10, 20, 11, 23, 18, 28 };
    struct run_figures runs[3];
    struct batch batches[6] = { { .has = { false } } };
    const struct pkv_compare c = { .num = 3, .num_seeds = 1, .runs = runs, .num_batches = 2,
                                   .batches = batches };
    struct cell cells[3];

    fill_runs(runs, values, 3);
    for (int i = 0; i < 6; i++) {
        batches[i].has[TIME_E2E] = true;
        batches[i].means[TIME_E2E] = means[i];
    }
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    ck_assert_double_eq(cells[1].mean, 18);
    ck_assert_double_eq(cells[1].percent, 20);
    ck_assert_double_eq_tol(cells[0].half, 12.706 * 5, 1e-9);
    ck_assert_double_eq_tol(cells[1].diff_half, 12.706, 1e-9);
    ck_assert(cells[1].within_noise && cells[2].has_diff_half && !cells[2].within_noise);
    batches[3].has[TIME_E2E] = false;
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    ck_assert(!cells[1].has_half && !cells[1].has_diff_half && !cells[1].within_noise);
}
END_TEST

/* What ended before its time is never the best. */
START_TEST(only_the_finished_are_best)
{
    static const double values[] = { 5, 3, 4 };
    struct run_figures runs[3];
    const struct pkv_compare c = { .num = 3, .num_seeds = 1, .runs = runs };
    struct cell cells[3];

    fill_runs(runs, values, 3);
    runs[1].outcome = PKV_OUTCOME_STUCK;
    compare_column(&c, FIGURE_E2E_MEAN, cells);
    ck_assert(!cells[0].best && !cells[1].best && cells[2].best);
    ck_assert_double_eq(cells[1].percent, -40);
    ck_assert(!pkv_compare_is_finished(&c));
}
END_TEST

/* NIST/SEMATECH e-Handbook, 1.3.6.7.2; between its rows the one with fewer degrees holds. */
START_TEST(quantiles)
{
    static const struct { uint64_t df; double t; } known[] = {
        { 1, 12.706 }, { 2, 4.303 }, { 9, 2.262 }, { 19, 2.093 }, { 29, 2.045 }, { 30, 2.042 },
        { 39, 2.042 }, { 40, 2.021 }, { 60, 2.000 }, { 99, 1.990 }, { 100, 1.984 }, { 100000, 1.984 },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ck_assert_double_eq(student_t975(known[i].df), known[i].t);
}
END_TEST

START_TEST(decimals)
{
    static const struct { double number; unsigned digits; const char *text; } known[] = {
        { 0, 6, "0" }, { 0.5, 0, "1" }, { -0.25, 1, "-0.3" }, { 1234567, 3, "1234567" },
        { 2.0000004, 6, "2" }, { -12.34, 4, "-12.34" }, { 0.999, 2, "1" }, { -1e-9, 4, "0" },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct pkv_text t = {0};

        add_decimal(&t, known[i].number, known[i].digits);
        ck_assert_str_eq(t.text, known[i].text);
        pkv_text_free(&t);
    }
}
END_TEST

/* ---- runs ---- */

#define RANDOM                                                                              \
    "kv: {block_size: 4, num_blocks: 40}\nstep_time: {model: fixed, ms: 1}\n"               \
    "traffic:\n  requests: 60\n  arrivals: {law: poisson, rate_per_s: 200}\n"               \
    "  prompt_tokens: {law: uniform, min: 4, max: 40}\n"                                    \
    "  output_tokens: {law: uniform, min: 2, max: 30}\n"

START_TEST(threads_change_nothing)
{
    struct pkv_grid *grid = grid_of(RANDOM "vary:\n  kv.num_blocks: [20, 30, 40, 50]\n"
                                    "  scheduler.admit: [whole_prompt, first_chunk]\n");
    struct pkv_err err = {0};
    char *texts[3];

    for (unsigned i = 0; i < 3; i++) {
        struct pkv_compare *c = compare_of(grid, i == 2 ? 9 : i + 1, 5);

        ck_assert(pkv_compare_is_finished(c));
        ck_assert_uint_eq(pkv_compare_num_done(c), 40);
        texts[i] = pkv_compare_json(c, &err);
        pkv_compare_destroy(c);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    ck_assert_str_eq(texts[0], texts[2]);
    for (int i = 0; i < 3; i++)
        pkv_report_free(texts[i]);
    pkv_grid_destroy(grid);
}
END_TEST

/* Three seeds from 1 on have the mean of seeds 1, 2 and 3 run one by one. */
START_TEST(seeds_are_runs)
{
    struct pkv_grid *one_by_one = grid_of(RANDOM "vary: {traffic.seed: [1, 2, 3]}\n");
    struct pkv_grid *grid = grid_of(RANDOM "vary: {kv.num_blocks: [40]}\n");
    struct pkv_compare *single = compare_of(one_by_one, 1, 1), *c = compare_of(grid, 1, 3);
    struct cell of_single[3], cell;

    compare_column(single, FIGURE_E2E_MEAN, of_single);
    compare_column(c, FIGURE_E2E_MEAN, &cell);
    ck_assert_double_eq_tol(cell.mean, (of_single[0].mean + of_single[1].mean + of_single[2].mean) / 3,
                            1e-3);
    ck_assert(fabs(of_single[0].mean - of_single[1].mean) > 1 && cell.half > 0);
    pkv_compare_destroy(c);
    pkv_compare_destroy(single);
    pkv_grid_destroy(grid);
    pkv_grid_destroy(one_by_one);
}
END_TEST

static const struct { const char *text; uint32_t seeds; const char *words; } refused[] = {
    { MINIMAL "vary: {kv.num_blocks: [1, 2]}\n", 2, "several seeds are for synthetic traffic" },
    { SMALL "vary: {traffic.seed: [1, 2]}\n", 2, "traffic.seed is varied" },
    { SMALL "vary: {traffic.seed: [18446744073709551615]}\n", 2, "traffic.seed is varied" },
    { "kv: {num_blocks: 9}\ntraffic: {trace: '-'}\nvary: {kv.num_blocks: [1, 2]}\n", 1,
      "can be read only once" },
    { MINIMAL "vary: {kv.num_blocks: [1, 2]}\n", 1, "cannot be opened" },
};

START_TEST(what_cannot_be_compared)
{
    struct pkv_grid *grid = grid_of(refused[_i].text);
    const struct pkv_compare_config config = {.grid = grid, .num_threads = 2,
                                              .num_seeds = refused[_i].seeds};
    struct pkv_err err = {0};

    ck_assert_ptr_null(pkv_compare_run(&config, NULL, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    expect_has(err.text, refused[_i].words);
    pkv_grid_destroy(grid);
}
END_TEST

#define ROW "{\"timestamp\": 0, \"input_length\": 8, \"output_length\": 400}\n"

/* The second and the third trace are broken, and the third one sooner. */
START_TEST(the_earliest_failure_is_told)
{
    struct pkv_grid *grid;

    fixture_write("a", ROW ROW);
    fixture_write("b", ROW "{\"timestamp\": 200, \"input_length\": 8}\n");
    fixture_write("c", "{\"timestamp\": 0}\n");
    grid = grid_of("kv: {num_blocks: 99}\ntraffic: {trace: a}\nvary: {traffic.trace: [a, b, c]}\n");
    for (unsigned threads = 1; threads < 5; threads++) {
        const struct pkv_compare_config config = {.grid = grid, .num_threads = threads,
                                                  .num_seeds = 1};
        struct pkv_err err = {0};
        size_t failed = 99;

        ck_assert_ptr_null(pkv_compare_run(&config, &failed, &err));
        ck_assert_uint_eq(failed, 1);
        ck_assert_str_eq(err.path, fixture_path("b"));
        ck_assert_uint_eq(err.line, 2);
    }
    pkv_grid_destroy(grid);
}
END_TEST

static bool stop_now(void *ctx)
{
    (void)ctx;
    return true;
}

START_TEST(what_was_stopped_is_no_error)
{
    struct pkv_grid *grid = grid_of(SMALL "vary: {step_time.ms: [1, 2]}\n");
    const struct pkv_compare_config config = {.grid = grid, .num_threads = 2, .num_seeds = 1,
                                              .should_stop = stop_now};
    const struct pkv_report_style style = {.width = 80};
    struct pkv_err err = {0};
    struct pkv_compare *c = pkv_compare_run(&config, NULL, &err);
    char *text;

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(pkv_compare_num_done(c), 0);
    ck_assert(!pkv_compare_is_finished(c));
    text = pkv_compare_text(c, &style, &err);
    expect_has(text, "   2! step_time.ms=2  NOT FINISHED (not_run)\n");
    pkv_report_free(text);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* ---- the table ---- */

START_TEST(table_by_hand)
{
    struct pkv_grid *grid = grid_of(SMALL "title: Slow steps\nvary: {step_time.ms: [2, 1, 4]}\n");
    struct pkv_compare *c = compare_of(grid, 1, 1);
    const struct pkv_report_style plain = {.width = 80}, colour = {.width = 80, .colour = true};
    struct pkv_err err = {0};
    char *text = pkv_compare_text(c, &plain, &err), *coloured = pkv_compare_text(c, &colour, &err);

    expect_has(text, "Slow steps\ncompared    3 configurations on the same traffic\n");
    expect_has(text, "   1  step_time.ms=2\n   2  step_time.ms=1\n   3  step_time.ms=4\n");
    /* One request of 6 tokens in 12, 6, and 24 ms. */
    expect_has(text, "   1  12.0 ms             83.33             500.0 ");
    expect_has(text, "   2   6.0 ms  -50.0 % *  166.7 +100.0 % *  1,000 +100.0 % *");
    expect_has(text, "   3  24.0 ms +100.0 %    41.67  -50.0 %    250.0  -50.0 %");
    expect_has(text, "\n   *  the best, or all that are; none where a worse one prints the same\n"
                     "\nRequests against");
    ck_assert_ptr_null(strstr(text, "~"));
    expect_has(text, "   2  1 by 6.0 ms          0                    0           0        0\n");
    ck_assert_ptr_null(strstr(text, "\033"));
    expect_has(coloured, "\033[32m 6.0 ms  -50.0 % *\033[0m");
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        ck_assert_uint_le(strcspn(line, "\n"), 80);
    pkv_report_free(text);
    pkv_report_free(coloured);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* Steps of 1 ms in both, so latencies are in steps: admitted one after the other, the second one's
 * first token comes after 7 of them, not 1. */
START_TEST(latencies_in_steps)
{
    struct pkv_grid *grid = grid_of("kv: {block_size: 4, num_blocks: 8}\n"
        "step_time: {model: fixed, ms: 2}\n"
        "traffic: {requests: 2, arrivals: {law: at_once}, prompt_tokens: 8, output_tokens: 6}\n"
        "vary: {scheduler.max_num_seqs: [1, 2]}\n");
    struct pkv_compare *c = compare_of(grid, 1, 1);
    const struct pkv_report_style plain = {.width = 80};
    struct pkv_err err = {0};
    char *text = pkv_compare_text(c, &plain, &err), *json = pkv_compare_json(c, &err);

    expect_has(text, "            latencies are counted in steps of 2.0 ms\n");
    expect_has(text, "ttft mean, steps");
    expect_has(text, "  83.33             500.0             4\n");
    expect_has(text, "   1  7        ");
    expect_has(text, "  1 -75.0 % *\n");
    expect_has(text, "   2  1 -85.7 % *  ");
    expect_has(text, "with the median of the change in\nsteps\n");
    expect_has(text, "   2  1 by 6               0                    1 ");
    expect_has(json, "\"ttft_mean_ms\": {\"value\": 8,");
    pkv_report_free(text);
    pkv_report_free(json);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

START_TEST(a_narrow_page_is_kept_to)
{
    struct pkv_grid *grid = grid_of(SMALL "title: A title that is longer than the page is wide, too\n"
                                    "vary: {step_time.ms: [2, 1, 4]}\n");
    struct pkv_compare *c = compare_of(grid, 1, 1);
    const struct pkv_report_style narrow = {.width = 40};
    struct pkv_err err = {0};
    char *text = pkv_compare_text(c, &narrow, &err);

    expect_has(text, "   2  1 by 6.0 ms better, 0 worse, 0\n      same, 0 lost, 0 gained\n");
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        ck_assert_uint_le(strcspn(line, "\n"), 40);
    pkv_report_free(text);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
}
END_TEST

/* ---- without memory ---- */

/* Everything from the file to the table; false when memory was short. */
static bool whole_way(void)
{
    const struct pkv_setting vary = { "kv.num_blocks", "8,9", "--vary" };
    const struct pkv_report_style style = {.width = 80};
    struct pkv_err err = {0};
    struct pkv_grid *grid = pkv_grid_load(fixture_path("scenario.yaml"), NULL, 0, &vary, 1, &err);
    const struct pkv_compare_config config = {.grid = grid, .num_threads = 2,
                                              .num_seeds = 1, .num_batches = 3};
    struct pkv_compare *c = grid ? pkv_compare_run(&config, NULL, &err) : NULL;
    char *text = c ? pkv_compare_text(c, &style, &err) : NULL;
    int written = text ? pkv_compare_write(c, fixture_path(NULL), &err) : -1;

    ck_assert_int_eq(err.code, written == 0 ? PKV_ERR_NONE : PKV_ERR_MEMORY);
    pkv_report_free(text);
    pkv_compare_destroy(c);
    pkv_grid_destroy(grid);
    return written == 0;
}

START_TEST(every_allocation_may_fail)
{
    uint64_t n = 0;
    bool done = false;

    fixture_write("scenario.yaml", SMALL);
    while (!done) {
        ck_assert_uint_lt(n, 100000);
        pkv_alloc_fail_at(++n, _i);
        done = whole_way() && (pkv_alloc_fail_at(0, 0), true);
        pkv_alloc_fail_at(0, 0);
    }
    ck_assert_uint_gt(n, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *tests = tcase_create("compare");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tests, fixture_begin, fixture_end);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, figures_by_hand);
    tcase_add_test(tests, json_by_hand);
    tcase_add_test(tests, lost_and_gained);
    tcase_add_test(tests, intervals_by_hand);
    tcase_add_loop_test(tests, noise_is_not_the_best, 0, 6);
    tcase_add_loop_test(tests, what_prints_as_a_worse_one_has_no_star, 0, 4);
    tcase_add_test(tests, ties_with_intervals);
    tcase_add_test(tests, batches_by_hand);
    tcase_add_test(tests, intervals_over_batches);
    tcase_add_test(tests, only_the_finished_are_best);
    tcase_add_test(tests, quantiles);
    tcase_add_test(tests, decimals);
    tcase_add_test(tests, threads_change_nothing);
    tcase_add_test(tests, seeds_are_runs);
    tcase_add_loop_test(tests, what_cannot_be_compared, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(tests, the_earliest_failure_is_told);
    tcase_add_test(tests, what_was_stopped_is_no_error);
    tcase_add_test(tests, table_by_hand);
    tcase_add_test(tests, latencies_in_steps);
    tcase_add_test(tests, a_narrow_page_is_kept_to);
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, 2);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
