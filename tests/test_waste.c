/*
 * test_waste.c - traffic without limits, counted by hand.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "pagedkv/report.h"

struct row { int64_t at_ns; uint32_t prompt, output; uint32_t num_answers, answers[3]; };
struct rows { const struct row *rows; size_t num, next; };

static int next(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct rows *rows = ctx;
    const struct row *row = &rows->rows[rows->next];

    (void)err;
    if (rows->next == rows->num)
        return 0;
    *out = (struct pkv_request_spec){ .row = rows->next++, .arrival_ns = row->at_ns,
                                      .num_prompt_tokens = row->prompt,
                                      .num_output_tokens = row->output,
                                      .num_samples = row->num_answers,
                                      .sample_output_tokens =
                                          row->answers[0] ? row->answers : NULL };
    return 1;
}

static int measure(const struct row *rows, size_t num, const struct pkv_waste_config *config,
                   struct pkv_waste *out, struct pkv_err *err)
{
    struct rows ctx = { rows, num, 0 };
    const struct pkv_source source = { .next = next, .ctx = &ctx };

    return pkv_waste_measure(&source, config, out, err);
}

static const struct row three[] = { { 0, 3, 3, 0, { 0 } }, { 10, 4, 1, 0, { 0 } },
                                   { 20, 7, 2, 0, { 0 } } };
static const struct pkv_waste_config blocks_of_four = {
    .token_ns = { 10, 5 }, .num_token_times = 2, .block_size = 4, .fixed_max = 6 };

static void expect_peak(const struct pkv_peak *peak, uint64_t value, int64_t at_ns)
{
    ck_assert_uint_eq(peak->value, value);
    ck_assert_int_eq(peak->at_ns, at_ns);
}

/* Row 0 runs in [0, 30) with 3, 4, 5 positions, row 1 in [10, 20) with 4, row 2 in [20, 40) with 7, 8.
 * At 20 row 1 leaves before row 2 comes. */
START_TEST(peaks_of_three_requests)
{
    struct pkv_waste w;

    ck_assert_int_eq(measure(three, 3, &blocks_of_four, &w, NULL), 0);
    const struct pkv_waste_sweep *s = &w.sweeps[0];
    ck_assert_int_eq(s->end_ns, 40);
    expect_peak(&s->running, 2, 10);
    expect_peak(&s->tokens, 5 + 7, 20);
    expect_peak(&s->blocks, 2 + 2, 20);
    expect_peak(&s->held[PKV_WASTE_PAGED], 16, 20);
    expect_peak(&s->held[PKV_WASTE_ORACLE], 5 + 8, 20);
    expect_peak(&s->held[PKV_WASTE_POW2], (3 + 4) + (7 + 2), 20);
    expect_peak(&s->held[PKV_WASTE_FIXED], 6 + 8, 20);   /* the last one does not fit into 6 */
    ck_assert_uint_eq(w.num_longer, 1);
    ck_assert_int_eq(w.last_arrival_ns, 20);

    /* Twice as fast, row 0 runs in [0, 15), row 1 in [10, 15), row 2 in [20, 30). */
    s = &w.sweeps[1];
    ck_assert_int_eq(s->end_ns, 30);
    expect_peak(&s->running, 2, 10);
    expect_peak(&s->tokens, 5 + 4, 10);
}
END_TEST

/* In token times: 3 + 4 + 5, 4 and 7 + 8 positions stored. */
START_TEST(sums_of_three_requests)
{
    struct pkv_waste w;

    ck_assert_int_eq(measure(three, 3, &blocks_of_four, &w, NULL), 0);
    ck_assert_uint_eq(w.num_rows, 3);
    ck_assert_uint_eq(w.num_tokens, 6);
    ck_assert(w.stored == 31);
    ck_assert(w.held[PKV_WASTE_PAGED] == (4 + 4 + 8) + 4 + (8 + 8));
    ck_assert(w.held[PKV_WASTE_ORACLE] == 3 * 5 + 4 + 2 * 8);
    ck_assert(w.held[PKV_WASTE_POW2] == 3 * 7 + 5 + 2 * 9);
    ck_assert(w.held[PKV_WASTE_FIXED] == 3 * 6 + 6 + 2 * 8);
}
END_TEST

static void expect_in(char *text, const char *piece)
{
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, piece) != NULL, "'%s' is not in\n%s", piece, text);
}

START_TEST(what_is_printed)
{
    struct pkv_waste w;
    char *text;

    ck_assert_int_eq(measure(three, 3, &blocks_of_four, &w, NULL), 0);
    text = pkv_waste_json(&w, NULL);
    expect_in(text, "\"tbt_10ns\": {\n    \"peak_running\": 2,\n    \"peak_running_at_us\": 0.01,\n");
    expect_in(text, "\"mean_running\": 1.5,");   /* 6 x 10 / 40 */
    expect_in(text, "\"peak_blocks_4\": 4,");
    expect_in(text, "\"paged_4_used_fraction\": 0.86111111111111111,");        /* 31 / 36 */
    expect_in(text, "\"reserve_oracle_used_fraction\": 0.88571428571428571,"); /* 31 / 35 */
    expect_in(text, "\"reserve_pow2_output_used_fraction\": 0.70454545454545454,");
    expect_in(text, "\"reserve_fixed_max_used_fraction\": 0.775\n");           /* 31 / 40 */
    pkv_report_free(text);
    text = pkv_waste_table(&w, "t.csv", NULL);
    expect_in(text, "t.csv: 3 requests");
    expect_in(text, "  paged, blocks of 4                 86.11 %\n");
    expect_in(text, "1 request longer than 6 positions held as many as needed\n");
    pkv_report_free(text);
}
END_TEST

/* A row of three answers, of 3, 1 and 2 tokens, is as three rows that come at once: positions 3 + 4 + 5,
 * 3 and 3 + 4. With one length said it is that of each. */
START_TEST(answers_count_by_themselves)
{
    static const struct row row[] = { { 0, 3, 3, 3, { 3, 1, 2 } } }, even[] = { { 0, 3, 2, 3, { 0 } } };
    struct pkv_waste w;
    char *text;

    ck_assert_int_eq(measure(row, 1, &blocks_of_four, &w, NULL), 0);
    ck_assert_uint_eq(w.num_rows, 1);
    ck_assert_uint_eq(w.num_answers, 3);
    ck_assert_uint_eq(w.num_tokens, 6);
    ck_assert(w.stored == 12 + 3 + 7);
    ck_assert(w.held[PKV_WASTE_ORACLE] == 3 * 5 + 3 + 2 * 4);
    expect_peak(&w.sweeps[0].running, 3, 0);
    expect_peak(&w.sweeps[0].tokens, 9, 0);     /* at 10 one is gone: 4 + 4 */
    text = pkv_waste_json(&w, NULL);
    expect_in(text, "\"rows\": 1,\n  \"answers\": 3,");
    pkv_report_free(text);
    text = pkv_waste_table(&w, "t", NULL);
    expect_in(text, "t: 1 request for 3 answers");
    pkv_report_free(text);
    ck_assert_int_eq(measure(even, 1, &blocks_of_four, &w, NULL), 0);
    ck_assert_uint_eq(w.num_tokens, 6);
    ck_assert(w.stored == 3 * 7);
}
END_TEST

/* One a nanosecond for 200; each stays for 70. 70 are there from 69 on. */
START_TEST(the_ring_grows_and_turns)
{
    static const struct pkv_waste_config config = {
        .token_ns = { 35 }, .num_token_times = 1, .block_size = 16 };
    struct row rows[200];
    struct pkv_waste w;

    for (int i = 0; i < 200; i++)
        rows[i] = (struct row){ i, 1, 2, 0, { 0 } };
    ck_assert_int_eq(measure(rows, 200, &config, &w, NULL), 0);
    expect_peak(&w.sweeps[0].running, 70, 69);
    expect_peak(&w.sweeps[0].tokens, 35 + 2 * 35, 69);
    ck_assert_int_eq(w.sweeps[0].end_ns, 199 + 70);
    ck_assert(w.held[PKV_WASTE_FIXED] == 0);
}
END_TEST

START_TEST(no_output_is_read_as_one)
{
    const struct row row = { 5, 16, 0, 0, { 0 } };
    struct pkv_waste w;

    ck_assert_int_eq(measure(&row, 1, &blocks_of_four, &w, NULL), 0);
    ck_assert_uint_eq(w.num_tokens, 1);
    ck_assert_int_eq(w.sweeps[0].end_ns, 15);
    ck_assert(w.stored == 16);
}
END_TEST

START_TEST(nothing_comes)
{
    struct pkv_waste w;
    char *text;

    ck_assert_int_eq(measure(three, 0, &blocks_of_four, &w, NULL), 0);
    ck_assert_uint_eq(w.num_rows, 0);
    text = pkv_waste_json(&w, NULL);
    expect_in(text, "\"paged_4_used_fraction\": 0,");
    pkv_report_free(text);
    text = pkv_waste_table(&w, "t", NULL);
    expect_in(text, "0 requests");
    pkv_report_free(text);
}
END_TEST

START_TEST(time_has_an_end)
{
    static const struct pkv_waste_config config = {
        .token_ns = { INT64_C(3600000000000) }, .num_token_times = 1, .block_size = 16 };
    const struct row rows[] = { { 0, 1, 1, 0, { 0 } }, { 5, 1, UINT32_MAX, 0, { 0 } } };
    struct pkv_waste w;
    struct pkv_err err = { 0 };

    ck_assert_int_eq(measure(rows, 2, &config, &w, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "row 1: 4294967295 tokens"));
}
END_TEST

START_TEST(without_memory)
{
    for (uint64_t n = 1; n <= 2; n++) {   /* one ring for each token time */
        struct pkv_waste w;
        struct pkv_err err = { 0 };

        pkv_alloc_fail_at(n, 0);
        ck_assert_int_eq(measure(three, 3, &blocks_of_four, &w, &err), -1);
        pkv_alloc_fail_at(0, 0);
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waste");
    TCase *tests = tcase_create("waste");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, peaks_of_three_requests);
    tcase_add_test(tests, sums_of_three_requests);
    tcase_add_test(tests, what_is_printed);
    tcase_add_test(tests, answers_count_by_themselves);
    tcase_add_test(tests, the_ring_grows_and_turns);
    tcase_add_test(tests, no_output_is_read_as_one);
    tcase_add_test(tests, nothing_comes);
    tcase_add_test(tests, time_has_an_end);
    tcase_add_test(tests, without_memory);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
