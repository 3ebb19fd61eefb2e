/*
 * test_trace_native.c - rows of the native format and of Mooncake: every field, every wrong row.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "trace_fixture.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define OWN(row) pkv_origin(PKV_ORIGIN_OWN, row)
#define ID(id) pkv_origin(PKV_ORIGIN_HASH_ID, id)
#define NAME(text) pkv_origin(PKV_ORIGIN_NAME, pkv_hash_name(text, strlen(text)))

static struct rows rows;

START_TEST(plain_rows)
{
    expect_rows("{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 3}\n"
                "{\"arrival_ms\": 46.926808, \"input_length\": 7, \"output_tokens\": 0}", NULL, &rows);
    ck_assert_uint_eq(rows.num, 2);
    ck_assert_str_eq(rows.notes.format, "native");
    const struct row *a = &rows.row[0], *b = &rows.row[1];
    ck_assert_int_eq(a->spec.arrival_ns, 0);
    ck_assert_uint_eq(a->spec.num_prompt_tokens, 9);
    ck_assert_uint_eq(a->spec.num_output_tokens, 3);
    ck_assert_uint_eq(a->spec.max_tokens, 3);
    ck_assert_int_eq(a->spec.priority, 0);
    ck_assert_int_eq(a->spec.abort_ns, PKV_NO_TIME);
    ck_assert_int_eq(a->spec.deadline_ns, PKV_NO_TIME);
    ck_assert_ptr_null(a->spec.id);
    ck_assert_ptr_null(a->spec.tenant);
    ck_assert_uint_eq(a->spec.content.root, pkv_content_root(NULL, NULL));
    ck_assert_uint_eq(a->spec.content.output_origin, pkv_origin(PKV_ORIGIN_OUTPUT, 0));
    expect_span(a, 0, OWN(0), 0, 9);
    ck_assert_int_eq(b->spec.arrival_ns, 46926808);
    ck_assert_uint_eq(b->spec.num_output_tokens, 0);
    ck_assert_uint_eq(b->spec.max_tokens, 1);          /* 0 is read as 1 */
    expect_span(b, 0, OWN(1), 0, 7);
}
END_TEST

START_TEST(all_fields)
{
    expect_rows("{\"id\": \"q\\u00e9\", \"timestamp\": 5, \"prompt\": 12, \"output_length\": 4, "
                "\"max_tokens\": 100, \"priority\": -3, \"deadline_ms\": 90.5, \"salt\": \"s\", "
                "\"adapter\": \"lora\", \"tenant\": \"acme\", \"abort_ms\": 5.000001}\n"
                "{\"timestamp\": 6, \"prompt\": 12, \"input_length\": 12, \"output_length\": 4, "
                "\"cache_salt\": \"s\", \"max_tokens\": 0}\n", NULL, &rows);
    const struct row *a = &rows.row[0], *b = &rows.row[1];
    ck_assert_str_eq(a->id, "q\xc3\xa9");
    ck_assert_str_eq(a->tenant, "acme");
    ck_assert_uint_eq(a->spec.num_prompt_tokens, 12);
    ck_assert_uint_eq(a->spec.max_tokens, 100);
    ck_assert_int_eq(a->spec.priority, -3);
    ck_assert_int_eq(a->spec.deadline_ns, 90500000);
    ck_assert_int_eq(a->spec.abort_ns, 5000001);
    ck_assert_uint_eq(a->spec.content.root, pkv_content_root("s", "lora"));
    ck_assert_uint_eq(b->spec.content.root, pkv_content_root("s", NULL));
    ck_assert_uint_eq(b->spec.max_tokens, 1);
    ck_assert_str_eq(b->id, "");
    ck_assert_ptr_null(b->spec.tenant);               /* nothing is left over from the row above */
}
END_TEST

START_TEST(segments)
{
    expect_rows("{\"timestamp\": 0, \"prompt\": [[\"g1\", 32], [null, 8], [\"g1\", 48], [null, 2]], "
                "\"output_length\": 1, \"input_length\": 90}", NULL, &rows);
    const struct row *a = &rows.row[0];
    ck_assert_uint_eq(a->spec.content.num_prompt_spans, 4);
    expect_span(a, 0, NAME("g1"), 0, 32);
    expect_span(a, 1, OWN(0), 0, 8);
    expect_span(a, 2, NAME("g1"), 0, 48);             /* a name is always its first n tokens */
    expect_span(a, 3, OWN(0), 8, 2);                  /* the row's own text goes on */
}
END_TEST

START_TEST(hash_ids)
{
    struct pkv_trace_options small = {.hash_block_size = 16};
    expect_rows("{\"timestamp\": 0, \"input_length\": 1300, \"output_length\": 1, "
                "\"hash_ids\": [0, 1, 18446744073709551615]}\n"
                "{\"hash_ids\":[7],\"timestamp\":1,\"input_length\":512,\"output_length\":1}\n",
                NULL, &rows);
    ck_assert_str_eq(rows.notes.format, "mooncake");
    expect_span(&rows.row[0], 0, ID(0), 0, 512);
    expect_span(&rows.row[0], 1, ID(1), 0, 512);
    expect_span(&rows.row[0], 2, ID(UINT64_MAX), 0, 276);    /* 1300 - 1024 */
    expect_span(&rows.row[1], 0, ID(7), 0, 512);
    expect_rows("{\"timestamp\": 0, \"input_length\": 33, \"output_length\": 1, "
                "\"hash_ids\": [4, 4, 5]}", &small, &rows);
    expect_span(&rows.row[0], 1, ID(4), 0, 16);
    expect_span(&rows.row[0], 2, ID(5), 0, 1);
}
END_TEST

START_TEST(lenient_ids)
{
    struct pkv_trace_options lenient = {.lenient_ids = true};
    expect_rows("{\"timestamp\":0,\"input_length\":20,\"output_length\":8,\"hash_ids\":[0,1]}\n"
                "{\"timestamp\":0,\"input_length\":1300,\"output_length\":1,\"hash_ids\":[0,1]}\n"
                "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,\"hash_ids\":[3]}\n"
                "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[]}\n",
                &lenient, &rows);
    ck_assert_uint_eq(rows.notes.ids_padded, 3);
    ck_assert_uint_eq(rows.row[0].spec.content.num_prompt_spans, 1);
    expect_span(&rows.row[0], 0, ID(0), 0, 20);       /* cut */
    expect_span(&rows.row[1], 1, ID(1), 0, 512);
    expect_span(&rows.row[1], 2, OWN(1), 0, 276);     /* padded with its own text */
    expect_span(&rows.row[3], 0, OWN(3), 0, 5);
}
END_TEST

/* A row that is right but for one thing, and where that stands. */
#define T "\"timestamp\":0,"
#define I "\"input_length\":9,"
#define O "\"output_length\":1"
static const struct {
    const char *text;
    uint32_t column;
    const char *words;
} wrong[] = {
    {"{" T I O ",\"colour\":1}", 51, "field 'colour' is unknown"},
    {"{" T I "\"output_lenght\":1}", 33, "field 'output_lenght' is unknown; the nearest is 'output_length'"},
    {"{" T I O "," O "}", 51, "field 'output_length' stands here a second time"},
    {"{" T I O ",\"output_tokens\":1}", 67, "output_tokens says the same as output_length"},
    {"{" T I O ",\"arrival_ms\":1}", 64, "arrival_ms says the same as timestamp"},
    {"{" T I O ",\"salt\":\"a\",\"cache_salt\":\"a\"}", 75, "cache_salt says the same as salt"},
    {"{" I O "}", 1, "no timestamp"},
    {"{" T O "}", 1, "neither input_length nor prompt"},
    {"{\"timestamp\":0,\"input_length\":9}", 1, "no output_length"},
    {"{\"timestamp\":\"0\"," I O "}", 14, "a number should stand here, not a string"},
    {"{\"timestamp\":-1," I O "}", 14, "timestamp is negative"},
    {"{\"timestamp\":-0.0000001," I O "}", 14, "timestamp is negative"},
    {"{\"timestamp\":NaN," I O "}", 14, "a number should stand here, not 'N'"},
    {"{\"timestamp\":null," I O "}", 14, "a number should stand here, not null"},
    {"{\"timestamp\":9223372036855," I O "}", 14, "timestamp is beyond 9223372036854775807 ns"},
    {"{\"timestamp\":1e300," I O "}", 14, "timestamp is beyond"},
    {"{" T "\"input_length\":0," O "}", 31, "input_length is 0"},
    {"{" T "\"input_length\":-5," O "}", 31, "-5 is negative"},
    {"{" T "\"input_length\":2.5," O "}", 31, "2.5 is not a whole number"},
    {"{" T "\"input_length\":\"12k\"," O "}", 31, "a whole number should stand here, not a string"},
    {"{" T "\"input_length\":2147483648," O "}", 31, "2147483648 is larger than 2147483647"},
    {"{" T "\"input_length\":99999999999999999999," O "}", 31, "is larger than 2147483647"},
    {"{" T "\"input_length\":true," O "}", 31, "a whole number should stand here, not true"},
    {"{" T I "\"output_length\":-1}", 49, "-1 is negative"},
    {"{" T I "\"output_length\":2147483648}", 49, "2147483648 is larger than 2147483647"},
    {"{" T I O ",\"max_tokens\":1.5}", 64, "1.5 is not a whole number"},
    {"{" T I O ",\"priority\":0.5}", 62, "0.5 is not a whole number"},
    {"{" T I O ",\"priority\":9223372036854775808}", 62, "is larger than 9223372036854775807"},
    {"{" T I O ",\"id\":5}", 56, "a string should stand here, not a number"},
    {"{" T I O ",\"id\":\"\"}", 56, "id is empty"},
    {"{" T I O ",\"salt\":\"\"}", 58, "salt is empty"},
    {"{" T I O ",\"cache_salt\":\"\"}", 64, "cache_salt is empty"},
    {"{" T I O ",\"adapter\":\"\"}", 61, "adapter is empty"},
    {"{" T I O ",\"tenant\":null}", 60, "a string should stand here, not null"},
    {"{\"timestamp\":5," I O ",\"abort_ms\":4.999999}", 62, "abort_ms is 1 ns before the arrival"},
    {"{" T I O ",\"abort_ms\":-1}", 62, "abort_ms is negative"},
    {"{" T I O ",\"delay_ms\":5}", 62, "delay_ms needs a session"},
    {"{" T I O ",\"session\":\"s\",\"delay_ms\":5}", 14, "this row comes after the former row"},
    {"{" T "\"prompt\":[[\"@prev\",9]]," O ",\"session\":\"s\"}", 27,
     "this prompt contains the former row"},
    {"{" I O ",\"session\":\"s\",\"delay\":5,\"delay_ms\":5}", 59, "delay says the same as delay_ms"},
    {"{" T I O ",\"session\":\"s\",\"session_id\":\"s\"}", 78, "session_id says the same as session"},
    {"{" T "\"created_time\":1," I O "}", 31, "created_time says the same as timestamp"},
    {"{" T I O ",\"n\":0}", 55, "n is 0; a request has at least 1"},
    {"{" T I O ",\"n\":2000}", 55, "2000 is larger than 1024"},
    {"{" T I O ",\"n\":2,\"beam_width\":2}", 70, "beam_width and n exclude each other"},
    {"{" T I O ",\"n\":2,\"session\":\"s\"}", 55, "n goes without a session"},
    {"{" T I "\"output_length\":[1,2],\"n\":3}", 49, "output_length has 2 lengths, but n is 3"},
    {"{" T I "\"output_length\":[1,2]}", 49, "output_length has 2 lengths, but n is 1"},
    {"{" T "\"prompt\":0," O "}", 25, "prompt is 0"},
    {"{" T "\"prompt\":[]," O "}", 25, "prompt is 0"},
    {"{" T "\"prompt\":\"g1\"," O "}", 25, "prompt is neither a whole number"},
    {"{" T "\"prompt\":[[\"g1\",0]]," O "}", 32, "at least 1 token, not 0"},
    {"{" T "\"prompt\":[[\"g1\",-1]]," O "}", 32, "-1 is negative"},
    {"{" T "\"prompt\":[[\"g1\"]]," O "}", 32, "the list ends before a number of tokens"},
    {"{" T "\"prompt\":[[]]," O "}", 28, "the list ends before a name or null"},
    {"{" T "\"prompt\":[[\"g1\",1,1]]," O "}", 34, "the list should end here"},
    {"{" T "\"prompt\":[[5,1]]," O "}", 27, "a string should stand here, not a number"},
    {"{" T "\"prompt\":[[\"\",1]]," O "}", 27, "a segment's name is empty"},
    {"{" T "\"prompt\":[[\"@prev\",1]]," O "}", 27, "'@prev' needs a session"},
    {"{" T "\"prompt\":[[\"g\",2147483647],[null,1]]," O "}", 49, "more than 2147483647 tokens"},
    {"{" T "\"prompt\":8," I O "}", 25, "prompt has 8 tokens, but input_length is 9"},
    {"{" T "\"prompt\":[[\"g\",8]]," I O "}", 25, "prompt has 8 tokens, but input_length is 9"},
    {"{" T "\"prompt\":[[\"g\",8]],\"hash_ids\":[1]," O "}", 46, "exclude each other"},
    {"{" T "\"input_length\":20," O ",\"hash_ids\":[0,1]}", 63,
     "has 2 ids, but 20 tokens in blocks of "
     "512 need 1"},
    {"{" T "\"input_length\":1300," O ",\"hash_ids\":[0,1]}", 65, "need 3"},
    {"{" T I O ",\"hash_ids\":[-1]}", 63, "-1 is negative"},
    {"{" T I O ",\"hash_ids\":[18446744073709551616]}", 63, "is larger than"},
    {"{" T I O ",\"hash_ids\":[1.0]}", 63, "1.0 is not a whole number"},
    {"{" T I O ",\"hash_ids\":[\"a\"]}", 63, "a whole number should stand here, not a string"},
    {"{" T I O ",\"hash_ids\":[1}", 64, "',' or ']' should stand here, not '}'"},
    {"{" T I O ",\"hash_ids\":5}", 62, "a list should stand here, not a number"},
    {"{" T I O "} x", 52, "the end of the row should stand here, not 'x'"},
    {"{" T I O "}{}", 51, "the end of the row should stand here"},
};

START_TEST(wrong_row)
{
    /* As the second row, behind a good one. */
    char text[512] = "{" T I O "}\n";
    strcat(text, wrong[_i].text);
    strcat(text, "\n");
    expect_error(text, NULL, 2, wrong[_i].column, wrong[_i].words);
}
END_TEST

START_TEST(every_cut_of_the_last_row)
{
    static const char good[] = "{" T I O "}\n";
    static const char last[] = "{" T "\"prompt\":[[\"g1\",3],[null,2]]," O ",\"id\":\"a\"}";
    char text[256];
    for (size_t length = 1; length < sizeof last - 1; length++) {
        memcpy(text, good, sizeof good - 1);
        memcpy(text + sizeof good - 1, last, length);
        text[sizeof good - 1 + length] = '\0';
        read_rows(text, NULL, &rows);
        ck_assert_int_eq(rows.status, -1);
        ck_assert_uint_eq(rows.num, 1);
        ck_assert_uint_eq(rows.err.line, 2);
    }
}
END_TEST

START_TEST(first_row_is_wrong)
{
    expect_error("{\"timestamp\": 0, \"input_length\"", NULL, 1, 32, "the row ends here");
    expect_error("{\"foo\": 1}\n", NULL, 1, 0, "the format is unknown (known: "
                 "native, mooncake, ");
    expect_error("{}\n", NULL, 1, 0, "the format is unknown");
    expect_error("[1, 2]\n", NULL, 1, 0, "this file is one JSON array; a trace has one object on each line");
    expect_error("\n\n  \n", NULL, 0, 0, "is empty");
    expect_error("", NULL, 0, 0, "is empty");
}
END_TEST

START_TEST(blank_lines_crlf_and_byte_order_mark)
{
    expect_rows("\xef\xbb\xbf{" T I O "}\r\n\r\n \t\n{" T I O "}\r\n\n", NULL, &rows);
    ck_assert_uint_eq(rows.num, 2);
    expect_error("{" T I O "}\n\n\n{\"x\":1}\n", NULL, 4, 2, "field 'x' is unknown");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_native");
    TCase *c = tcase_create("trace_native");
    tcase_add_test(c, plain_rows);
    tcase_add_test(c, all_fields);
    tcase_add_test(c, segments);
    tcase_add_test(c, hash_ids);
    tcase_add_test(c, lenient_ids);
    tcase_add_loop_test(c, wrong_row, 0, NUM(wrong));
    tcase_add_test(c, every_cut_of_the_last_row);
    tcase_add_test(c, first_row_is_wrong);
    tcase_add_test(c, blank_lines_crlf_and_byte_order_mark);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
