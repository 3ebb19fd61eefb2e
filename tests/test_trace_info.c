/*
 * test_trace_info.c - what is in a trace, on rows small enough to count by hand.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pagedkv/report.h"

#define MS INT64_C(1000000)

static struct pkv_trace_info info;

static int measure(const char *text, uint32_t block_size, char **out_json, struct pkv_err *err)
{
    struct pkv_trace_options options = {.sessions = true, .keep_texts = true};
    struct pkv_report_style style = {.width = 80, .utf8 = true};
    struct pkv_trace *t = pkv_trace_open_memory("rows", text, strlen(text), &options, err);
    int status = t ? pkv_trace_info_read(t, block_size, 50 * MS, &info, err) : -1;
    char *page = NULL;
    *out_json = NULL;
    if (status == 0 && (!(page = pkv_trace_info_text(&info, t, "rows", &style, err)) ||
                        !(*out_json = pkv_trace_info_json(&info, t, err))))
        status = -1;
    pkv_report_free(page);
    pkv_trace_close(t);
    return status;
}

static void expect(const char *text, uint32_t block_size)
{
    struct pkv_err err = {0};
    char *json;
    ck_assert_msg(measure(text, block_size, &json, &err) == 0, "%s", err.text);
    pkv_report_free(json);
}

static void expect_hits(enum pkv_prefix_rule rule, uint64_t blocks, uint64_t hit_blocks,
                        uint64_t tokens, uint64_t hit_tokens)
{
    const struct pkv_prefix_hits *h = &info.hits[rule];
    ck_assert_uint_eq(h->blocks, blocks);
    ck_assert_uint_eq(h->hit_blocks, hit_blocks);
    ck_assert_uint_eq(h->tokens, tokens);
    ck_assert_uint_eq(h->hit_tokens, hit_tokens);
}

/* Blocks of 4: 4 4 2, then 4 4 2 of which the first is known, then all full ones are. */
static const char segments[] =
    "{\"timestamp\":0,\"prompt\":[[\"g\",8],[null,2]],\"output_length\":3,\"tenant\":\"a\"}\n"
    "{\"timestamp\":0,\"prompt\":[[\"g\",6],[null,4]],\"output_length\":3,\"tenant\":\"b\"}\n"
    "{\"timestamp\":10,\"prompt\":[[\"g\",8],[null,2]],\"output_length\":9,\"tenant\":\"a\"}\n";

START_TEST(counted_by_hand)
{
    expect(segments, 4);
    ck_assert_uint_eq(info.rows, 3);
    expect_hits(PKV_PREFIX_ALL, 9, 3, 30, 12);
    expect_hits(PKV_PREFIX_FULL, 6, 3, 30, 12);
    expect_hits(PKV_PREFIX_ONE_LEFT, 6, 3, 30, 12);
    expect_hits(PKV_PREFIX_BLIND, 9, 2, 30, 8);
    ck_assert_uint_eq(info.distinct_blocks, 6);     /* 9 less the 3 that were there */
    ck_assert_uint_eq(info.shared.num, 2);
    ck_assert_uint_eq(info.shared.max, 8);
    ck_assert_uint_eq(info.tenants, 2);
    ck_assert_uint_eq(info.distinct_times, 2);
    ck_assert_uint_eq(info.most_at_once, 2);
    /* Gaps of 0 and 10 ms: mean 5, deviation 5. */
    ck_assert_double_eq_tol(info.gap_mean_ns, 5e6, 1e-6);
    ck_assert_double_eq_tol(info.gap_cv, 1, 1e-12);
    ck_assert_uint_eq(info.peak_running.value, 3);
    /* Each has 10 and its first two tokens of output, the third being never stored. */
    ck_assert_uint_eq(info.peak_tokens.value, 36);
    ck_assert_uint_eq(info.output.sum, 15);
    ck_assert_uint_eq(info.output.p50, 3);
    ck_assert_uint_eq(info.output.p90, 9);
}
END_TEST

/* A whole prompt that is known: all of it is found, but one token is left to compute. */
START_TEST(the_same_prompt_twice)
{
    expect("{\"timestamp\":0,\"prompt\":[[\"g\",8]],\"output_length\":1}\n"
           "{\"timestamp\":1,\"prompt\":[[\"g\",3],[\"h\",5]],\"output_length\":1,\"salt\":\"s\"}\n"
           "{\"timestamp\":2,\"prompt\":[[\"g\",8]],\"output_length\":1}\n", 4);
    expect_hits(PKV_PREFIX_ALL, 6, 2, 24, 8);
    expect_hits(PKV_PREFIX_ONE_LEFT, 6, 1, 24, 4);
    ck_assert_uint_eq(info.rows_fully_hit, 1);
    ck_assert_double_eq_tol(info.mean_row_hit_tokens, 1.0 / 3, 1e-15);
}
END_TEST

/* An id whose block is filled further counts as known, as in Mooncake's own figures. */
START_TEST(hash_ids)
{
    expect("{\"timestamp\":0,\"input_length\":600,\"output_length\":1,\"hash_ids\":[5,6]}\n"
           "{\"timestamp\":1,\"input_length\":1024,\"output_length\":1,\"hash_ids\":[5,6]}\n"
           "{\"timestamp\":2,\"input_length\":1024,\"output_length\":1,\"hash_ids\":[6,5]}\n", 0);
    ck_assert_uint_eq(info.block_size, 512);
    expect_hits(PKV_PREFIX_ALL, 6, 2, 2648, 1024);
    expect_hits(PKV_PREFIX_FULL, 5, 1, 2648, 512);
}
END_TEST

/* The second turn repeats prompt and answer of the first, the third those of the second. */
START_TEST(sessions)
{
    expect("{\"timestamp\":0,\"input_length\":6,\"output_length\":4,\"session\":\"s\"}\n"
           "{\"timestamp\":0,\"input_length\":6,\"output_length\":4,\"session\":\"t\"}\n"
           "{\"delay_ms\":1,\"prompt\":[[\"@prev\",10],[null,2]],\"output_length\":4,\"session\":\"s\"}\n"
           "{\"delay_ms\":1,\"prompt\":[[\"@prev\",16],[null,1]],\"output_length\":4,\"session\":\"s\"}\n"
           "{\"delay_ms\":1,\"prompt\":[[\"@prev\",20]],\"output_length\":4,\"session\":\"t\"}\n", 4);
    ck_assert_uint_eq(info.sessions, 2);
    ck_assert_uint_eq(info.rows_in_sessions, 5);
    ck_assert_uint_eq(info.most_turns, 3);
    ck_assert_uint_eq(info.rows_that_follow, 3);
    /* 2 + 2 + 3 + 5 + 5 blocks; known: the first of turn 2, all three of turn 2 in turn 3, and the
     * first one of t's. */
    expect_hits(PKV_PREFIX_ALL, 17, 1 + 3 + 1, 61, 4 + 12 + 4);
}
END_TEST

/* Three rows with times 0, 0 and 6 s and three that follow, one of these first in the file behind the first
 * row: gaps 0 and 6 s, mean 3 s, deviation 3 s. A token takes 50 ms: a, 3 + 2 tokens, and b, 4 + 2, are
 * there at 0 with 3 + 4 positions, and one more each at 50 ms; c is alone. */
START_TEST(rows_that_follow_have_no_time)
{
    expect("{\"timestamp\":0,\"input_length\":3,\"output_length\":2,\"session\":\"a\"}\n"
           "{\"delay_ms\":5,\"input_length\":50,\"output_length\":9,\"session\":\"a\"}\n"
           "{\"timestamp\":0,\"input_length\":4,\"output_length\":2,\"session\":\"b\"}\n"
           "{\"delay_ms\":5,\"input_length\":50,\"output_length\":9,\"session\":\"a\"}\n"
           "{\"timestamp\":6000,\"input_length\":5,\"output_length\":1,\"session\":\"c\"}\n"
           "{\"delay_ms\":5,\"input_length\":50,\"output_length\":9,\"session\":\"c\"}\n", 4);
    ck_assert_uint_eq(info.rows, 6);
    ck_assert_uint_eq(info.timed_rows, 3);
    ck_assert_uint_eq(info.rows_that_follow, 3);
    ck_assert_uint_eq(info.distinct_times, 2);
    ck_assert_uint_eq(info.most_at_once, 2);
    ck_assert_double_eq_tol(info.gap_mean_ns, 3e9, 1e-3);
    ck_assert_double_eq_tol(info.gap_cv, 1, 1e-12);
    ck_assert_uint_eq(info.peak_running.value, 2);
    ck_assert_uint_eq(info.peak_tokens.value, 3 + 4 + 2);
    ck_assert_uint_eq(info.arrivals[0], 2);
    ck_assert_uint_eq(info.prompt.num, 6);
    ck_assert_uint_eq(info.prompt.sum, 3 + 4 + 5 + 3 * 50);
}
END_TEST

START_TEST(long_traces_fill_wider_bins)
{
    expect("{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n"
           "{\"timestamp\":1023,\"input_length\":1,\"output_length\":1}\n"
           "{\"timestamp\":5000,\"input_length\":1,\"output_length\":1}\n"
           "{\"timestamp\":5000,\"input_length\":1,\"output_length\":1}\n", 0);
    ck_assert_int_eq(info.bin_ns, 8 * MS);
    ck_assert_uint_eq(info.num_bins, 626);
    ck_assert_uint_eq(info.arrivals[0], 1);
    ck_assert_uint_eq(info.arrivals[127], 1);
    ck_assert_uint_eq(info.arrivals[625], 2);
}
END_TEST

START_TEST(memory_runs_out)
{
    static const char *const texts[] = {segments,
        "{\"timestamp\":0,\"input_length\":6,\"output_length\":4,\"session\":\"s\"}\n"
        "{\"delay_ms\":1,\"prompt\":[[\"@prev\",10],[null,2]],\"output_length\":4,\"session\":\"s\"}\n"};
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        struct pkv_err err = {0};
        char *json;
        ck_assert_uint_lt(n, 1000);
        pkv_alloc_fail_at(n, 1);
        failed = measure(texts[_i], 4, &json, &err) < 0;
        pkv_alloc_fail_at(0, 0);
        pkv_report_free(json);
        if (failed)
            ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_info");
    TCase *c = tcase_create("trace_info");
    tcase_add_test(c, counted_by_hand);
    tcase_add_test(c, the_same_prompt_twice);
    tcase_add_test(c, hash_ids);
    tcase_add_test(c, sessions);
    tcase_add_test(c, rows_that_follow_have_no_time);
    tcase_add_test(c, long_traces_fill_wider_bins);
    tcase_add_loop_test(c, memory_runs_out, 0, 2);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
