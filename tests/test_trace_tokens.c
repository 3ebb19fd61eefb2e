/*
 * test_trace_tokens.c - rows with ranges of token ids, and rows that point into another trace.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "trace_fixture.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define TOKEN(upper) pkv_origin(PKV_ORIGIN_TOKEN, upper)

static struct rows rows;

START_TEST(ranges)
{
    expect_rows("{\"id\":\"t0\",\"arrival_step\":1,\"prompt\":[[100,3],[7,1]],\"max_tokens\":5}\n"
                "{\"id\":\"t1\",\"arrival_step\":15,\"prompt\":[[1099511627776,5],[1208611,6]],"
                "\"max_tokens\":7,\"priority\":-2,\"cache_salt\":\"x\",\"abort_step\":15}\n",
                NULL, &rows);
    const struct row *a = &rows.row[0], *b = &rows.row[1];
    ck_assert_str_eq(rows.notes.format, "tokens");
    ck_assert_str_eq(a->id, "t0");
    ck_assert_int_eq(a->spec.arrival_ns, MS);
    expect_span(a, 0, TOKEN(0), 100, 3);
    expect_span(a, 1, TOKEN(0), 7, 1);
    ck_assert_uint_eq(a->spec.num_output_tokens, 5);
    ck_assert_uint_eq(a->spec.max_tokens, 5);
    ck_assert_int_eq(b->spec.abort_ns, 15 * MS);
    ck_assert_int_eq(b->spec.priority, -2);
    ck_assert_uint_eq(b->spec.content.root, pkv_content_root("x", NULL));
    /* 2^40 + 0 * 2^20: what row 0 generates is what the prompt of row 1 begins with. */
    ck_assert_uint_eq(a->spec.content.output_origin, TOKEN(256));
    ck_assert_uint_eq(a->spec.content.output_first, 0);
    expect_span(b, 0, TOKEN(256), 0, 5);
    ck_assert_uint_eq(b->spec.content.output_origin, TOKEN(256));
    ck_assert_uint_eq(b->spec.content.output_first, 1048576);
}
END_TEST

START_TEST(ranges_are_split_at_32_bits)
{
    expect_rows("{\"id\":\"a\",\"arrival_step\":1,\"prompt\":[[4294967290,10]],\"max_tokens\":1}\n"
                "{\"id\":\"b\",\"arrival_step\":1,\"prompt\":[[18446744073709551614,2]],"
                "\"max_tokens\":1048576}\n", NULL, &rows);
    expect_span(&rows.row[0], 0, TOKEN(0), UINT32_C(4294967290), 6);
    expect_span(&rows.row[0], 1, TOKEN(1), 0, 4);
    expect_span(&rows.row[1], 0, TOKEN(UINT32_MAX), UINT32_C(4294967294), 2);
    ck_assert_uint_eq(rows.row[1].spec.content.num_prompt_spans, 1);
}
END_TEST

START_TEST(abort_before_arrival_never_happens)
{
    expect_rows("{\"id\":\"a\",\"arrival_step\":5,\"prompt\":[[1,1]],\"max_tokens\":1,"
                "\"abort_step\":4}\n", NULL, &rows);
    ck_assert_int_eq(rows.row[0].spec.abort_ns, PKV_NO_TIME);
}
END_TEST

#define A "\"id\":\"a\",\"arrival_step\":1,"
static const struct {
    const char *text;
    uint32_t column;
    const char *words;
} wrong[] = {
    {"{" A "\"prompt\":[[1,1]]}", 1, "this row has no max_tokens"},
    {"{" A "\"max_tokens\":1}", 1, "this row has no prompt"},
    {"{\"arrival_step\":1,\"prompt\":[[1,1]],\"max_tokens\":1}", 1, "this row has no id"},
    {"{\"id\":\"a\",\"arrival_step\":0,\"prompt\":[[1,1]],\"max_tokens\":1}", 26,
     "arrival_step is 0"},
    {"{\"id\":\"a\",\"arrival_step\":1.5,\"prompt\":[[1,1]]}", 26, "1.5 is not a whole number"},
    {"{\"id\":\"a\",\"arrival_step\":9223372036855,\"prompt\":[]}", 26,
     "is larger than 9223372036854"},
    {"{" A "\"prompt\":[[1,1]],\"max_tokens\":1048577}", 58, "1048577 is larger than 1048576"},
    {"{" A "\"prompt\":[[1,1]],\"max_tokens\":0}", 58, "max_tokens is 0"},
    {"{" A "\"prompt\":[],\"max_tokens\":1}", 37, "prompt is empty"},
    {"{" A "\"prompt\":[[1,0]],\"max_tokens\":1}", 41, "at least 1 token, not 0"},
    {"{" A "\"prompt\":[[1]],\"max_tokens\":1}", 41, "the list ends before a number of tokens"},
    {"{" A "\"prompt\":[[-1,1]],\"max_tokens\":1}", 39, "-1 is negative"},
    {"{" A "\"prompt\":[[18446744073709551615,2]]}", 60, "beyond token id 18446744073709551615"},
    {"{" A "\"prompt\":[[1,2147483647],[1,1]]}", 56, "the prompt has more than 2147483647 tokens"},
    {"{" A "\"prompt\":5,\"max_tokens\":1}", 37, "a list should stand here, not a number"},
    {"{" A "\"trace_row\":1}", 28, "field 'trace_row' is unknown"},
    {"{" A "\"colour\":1}", 28, "field 'colour' is unknown"},
    {"{" A A "\"prompt\":[[1,1]]}", 28, "field 'id' stands here a second time"},
    {"{" A "\"cache_salt\":\"\"}", 41, "cache_salt is empty"},
};

START_TEST(wrong_row)
{
    expect_error(wrong[_i].text, NULL, 1, wrong[_i].column, wrong[_i].words);
}
END_TEST

/* Two files in a folder; read the first joined with the second. */
static void read_joined(const char *requests, const char *trace, uint32_t tokens_per_id)
{
    const char *folder = make_folder();
    write_text(folder, "requests", requests);
    write_text(folder, "trace", trace);
    char *requests_path = path_in(folder, "requests"), *trace_path = path_in(folder, "trace");
    memset(&rows, 0, sizeof rows);
    struct pkv_trace *t = pkv_trace_open_joined(requests_path, trace_path, tokens_per_id, NULL,
                                                &rows.err);
    rows.status = -1;
    if (t)
        take_rows(t, &rows);
    pkv_trace_close(t);
    free(requests_path);
    free(trace_path);
    remove_folder(folder);
}

#define PROMPTS                                                                              \
    "{\"timestamp\":0,\"input_length\":20,\"output_length\":3,\"hash_ids\":[5,6]}\n"                \
    "{\"timestamp\":0,\"input_length\":16,\"output_length\":3,\"hash_ids\":[7]}\n"                  \
    "{\"timestamp\":9,\"input_length\":1,\"output_length\":3,\"hash_ids\":[5]}\n"

START_TEST(joined_rows)
{
    read_joined("{\"id\":\"m0\",\"trace_row\":0,\"arrival_step\":1,\"prompt_len\":20,\"max_tokens\":5}\n"
                "{\"id\":\"m2\",\"trace_row\":2,\"arrival_step\":4,\"prompt_len\":1,\"max_tokens\":6}\n"
                "{\"id\":\"m2\",\"trace_row\":2,\"arrival_step\":4,\"prompt_len\":1,\"max_tokens\":6}\n",
                PROMPTS, 16);
    ck_assert_int_eq(rows.status, 0);
    ck_assert_uint_eq(rows.num, 3);
    expect_span(&rows.row[0], 0, pkv_origin(PKV_ORIGIN_HASH_ID, 5), 0, 16);
    expect_span(&rows.row[0], 1, pkv_origin(PKV_ORIGIN_HASH_ID, 6), 0, 4);
    expect_span(&rows.row[1], 0, pkv_origin(PKV_ORIGIN_HASH_ID, 5), 0, 1);
    ck_assert_uint_eq(rows.row[1].spec.num_output_tokens, 6);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 4 * MS);
    expect_span(&rows.row[2], 0, pkv_origin(PKV_ORIGIN_HASH_ID, 5), 0, 1);
}
END_TEST

START_TEST(joined_rows_are_checked)
{
#define ROW(row, length)                                                                     \
    "{\"id\":\"m\",\"arrival_step\":1,\"max_tokens\":5,\"trace_row\":" row ",\"prompt_len\":" length "}\n"
    read_joined(ROW("1", "17"), PROMPTS, 16);
    ck_assert_int_eq(rows.status, -1);
    ck_assert_ptr_nonnull(strstr(rows.err.text, "prompt_len is 17, but row 1 of "));
    ck_assert_ptr_nonnull(strstr(rows.err.text, " has 16 tokens"));
    read_joined(ROW("3", "1"), PROMPTS, 16);
    ck_assert_ptr_nonnull(strstr(rows.err.text, "trace_row is 3, but "));
    ck_assert_ptr_nonnull(strstr(rows.err.text, " has only 3 rows"));
    read_joined(ROW("1", "16") ROW("0", "20"), PROMPTS, 16);
    ck_assert_ptr_nonnull(strstr(rows.err.text, "trace_row is 0, behind row 1"));
    ck_assert_uint_eq(rows.err.line, 2);
    read_joined(ROW("1", "16"), PROMPTS, 0);         /* 512 tokens an id: row 0 has too many */
    ck_assert_ptr_nonnull(strstr(rows.err.path, "trace"));
    ck_assert_ptr_nonnull(strstr(rows.err.text, "hash_ids has 2 ids"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_tokens");
    TCase *c = tcase_create("trace_tokens");
    tcase_add_test(c, ranges);
    tcase_add_test(c, ranges_are_split_at_32_bits);
    tcase_add_test(c, abort_before_arrival_never_happens);
    tcase_add_loop_test(c, wrong_row, 0, NUM(wrong));
    tcase_add_test(c, joined_rows);
    tcase_add_test(c, joined_rows_are_checked);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
