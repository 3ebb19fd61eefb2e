/*
 * test_trace_csv.c - Azure and BurstGPT: dates, columns by name, rows without output, wrong rows.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "trace/date_private.h"
#include "trace_fixture.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define BURST "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"

static struct rows rows;

START_TEST(azure_2023)
{
    /* CR LF, seven fraction digits, no end of line behind the last row. */
    expect_rows("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                "2023-11-16 18:17:03.9799600,4808,10\r\n"
                "2023-11-16 18:17:04.0319601,3180,8", NULL, &rows);
    ck_assert_str_eq(rows.notes.format, "azure");
    ck_assert_uint_eq(rows.num, 2);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 0);         /* dates begin with the first row */
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 52000100);
    ck_assert_uint_eq(rows.row[0].spec.num_prompt_tokens, 4808);
    ck_assert_uint_eq(rows.row[0].spec.num_output_tokens, 10);
    ck_assert_uint_eq(rows.row[0].spec.max_tokens, 10);
    expect_span(&rows.row[1], 0, pkv_origin(PKV_ORIGIN_OWN, 1), 0, 3180);
    ck_assert_uint_eq(rows.row[1].spec.content.output_origin, pkv_origin(PKV_ORIGIN_OUTPUT, 1));
}
END_TEST

START_TEST(azure_2024)
{
    expect_rows(AZURE "2024-05-10 00:00:00.009930+00:00,2162,5\n"
                "2024-05-10 00:00:01+00:00,2399,6\n"
                "2024-05-10 02:00:02.5+02:00,76,15\n", NULL, &rows);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 990070000);
    ck_assert_int_eq(rows.row[2].spec.arrival_ns, INT64_C(2490070000));
}
END_TEST

START_TEST(skipped_rows_are_counted)
{
    expect_rows(BURST "5,ChatGPT,472,18,490,Conversation log\n"
                "45,ChatGPT,1087,0,1087,API log\n"
                "118.25,GPT-4,417,276,693,\"API, log\"\n", NULL, &rows);
    ck_assert_str_eq(rows.notes.format, "burstgpt");
    ck_assert_uint_eq(rows.notes.skipped_no_output, 1);
    ck_assert_uint_eq(rows.notes.rows, 2);
    ck_assert_uint_eq(rows.num, 2);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, INT64_C(5000000000));   /* numbers stay */
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, INT64_C(118250000000));
    ck_assert_uint_eq(rows.row[1].spec.num_prompt_tokens, 417);
    expect_span(&rows.row[1], 0, pkv_origin(PKV_ORIGIN_OWN, 1), 0, 417);
    expect_rows(AZURE "2023-11-16 18:17:03,4808,0\n2023-11-16 18:17:04,0,0\n"
                "2023-11-16 18:17:05,1,1\n", NULL, &rows);
    ck_assert_uint_eq(rows.notes.skipped_no_output, 2);
    /* Dates count from the first row of the file. */
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, INT64_C(2000000000));
}
END_TEST

START_TEST(skipped_rows_have_their_place_in_time)
{
    const struct pkv_trace_options sorted = {.sort = true};
    static const char text[] = AZURE "2023-11-16 18:17:05,1,1\n2023-11-16 18:17:03,4808,0\n";

    expect_error(text, NULL, 3, 1, "2 s before the one above it");
    expect_error(BURST "5,M,10,0,10,x\n4,M,10,10,20,x\n", NULL, 3, 1, "1 s before the one");
    expect_rows(text, &sorted, &rows);
    ck_assert_uint_eq(rows.num, 1);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, INT64_C(2000000000));
}
END_TEST

START_TEST(columns_are_found_by_name)
{
    expect_rows("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total "
                "tokens,Log Type\n5,s1,1.5,ChatGPT,472,18,490,Conversation log\n", NULL, &rows);
    ck_assert_uint_eq(rows.row[0].spec.num_prompt_tokens, 472);
    ck_assert_uint_eq(rows.row[0].spec.num_output_tokens, 18);
    expect_rows("\"GeneratedTokens\",\"TIMESTAMP\",\"ContextTokens\"\n"
                "\"3\",\"2023-11-16 18:17:03\",\"7\"\n", NULL, &rows);
    ck_assert_uint_eq(rows.row[0].spec.num_prompt_tokens, 7);
    ck_assert_uint_eq(rows.row[0].spec.num_output_tokens, 3);
}
END_TEST

static const struct {
    const char *text;
    uint64_t line;
    uint32_t column;
    const char *words;
} wrong[] = {
    {"TIMESTAMP,ContextTokens\n2023-11-16 18:17:03,5\n", 1, 0,
     "column 'GeneratedTokens' is missing"},
    {"ContextTokens,GeneratedTokens\n5,5\n", 1, 0, "column 'TIMESTAMP' is missing"},
    {"Timestamp,Model,Request tokens\n5,x,5\n", 1, 0, "column 'Response tokens' is missing"},
    {"TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n", 1, 41,
     "'TIMESTAMP' stands here a second"},
    {"a,b,c\n1,2,3\n", 1, 0, "the format is unknown"},
    {"a,b,c\n1,2,3\n", 1, 0, "this one has 'a', 'b', 'c'"},
    {"Timestamp,Model,Request tokens\n5,x,5\n", 1, 0, "this file has 'Timestamp', 'Model', "
     "'Request tokens'; names of its own are told by --columns arrival=NAME,prompt=NAME,output=NAME"},
    {AZURE "17,5,5\n", 2, 1, "numbers are read with --columns"},
    {BURST "2023-11-16 18:17:03,M,10,10,20,x\n", 2, 1, "--time-unit date"},
    {BURST "1700158546000,M,10,10,20,x\n", 2, 1, "--time-unit ms"},
    {AZURE "2023-11-16 18:17:03,1,234,5\n", 2, 27, "a value with a comma in it stands in quotes"},
    {AZURE "2023-11-16 18:17:03,\"1,234\",5\n", 2, 21,
     "ContextTokens '1,234' is not a whole number; thousands "
     "stand together: 1234"},
    {AZURE "2023-11-16 18:17:03,5,\n", 2, 23, "'' is empty; a request that gave no token has 0"},
    {"[{\"timestamp\":0}]\n", 1, 0, "jq -c '.[]'"},
    {"{\"ts\":0,\"in\":3}\n", 1, 0, "input_length, output_length: this one has 'ts', 'in'"},
    {AZURE, 0, 0, "has no requests"},
    {AZURE "\n\n", 0, 0, "has no requests"},
    {AZURE "2023-11-16 18:17:03,5,0\n", 0, 0, "has no requests: its one row is without output"},
    {AZURE "2023-11-16 18:17:03,5,0\n2023-11-16 18:17:04,5,0\n", 0, 0,
     "has no requests: all 2 rows are without output"},
    {AZURE "2023-11-16 18:17:03,12k,5\n", 2, 21, "ContextTokens '12k' is not a whole number"},
    {AZURE "2023-11-16 18:17:03,-5,5\n", 2, 21, "ContextTokens '-5' is negative"},
    {AZURE "2023-11-16 18:17:03,0,5\n", 2, 21, "ContextTokens '0' must be at least 1"},
    {AZURE "2023-11-16 18:17:03,,5\n", 2, 21, "ContextTokens '' is empty"},
    {AZURE "2023-11-16 18:17:03,5,1.5\n", 2, 23, "GeneratedTokens '1.5' is not a whole number"},
    {AZURE "2023-11-16 18:17:03,5,nan\n", 2, 23, "GeneratedTokens 'nan' is not a whole number"},
    {AZURE "2023-11-16 18:17:03,2147483648,5\n", 2, 21, "is larger than 2147483647"},
    {AZURE "2023-11-16 18:17:03,5\n", 2, 21, "this row has 2 fields, the header has 3"},
    {AZURE "2023-11-16 18:17:03,5,5,5\n", 2, 25, "this row has 4 fields, the header has 3"},
    {AZURE "2023-11-16 18:17:03,\"5,5\n", 2, 21, "the quote that begins here is not closed"},
    {AZURE "2023-11-16 18:17:03,\"5\"x,5\n", 2, 24,
     "a comma should stand behind the closing quote"},
    {AZURE "2023-11-16,5,5\n", 2, 1, "TIMESTAMP '2023-11-16' is not a date"},
    {AZURE "17,5,5\n", 2, 1, "TIMESTAMP '17' is not a date"},
    {AZURE "2023-11-16 18:17:03,5,5\n2023-11-16 18:17:02.999,5,5\n", 3, 1,
     "0.001 s before the one"},
    {AZURE "2023-11-16 18:17:03,5,5\n\n2023-11-16 18:17:0", 4, 1, "this row has 1 fields"},
    {BURST "5,M,10,10,20,x\n4.999,M,10,10,20,x\n", 3, 1, "0.001 s before the one above it"},
    {BURST "abc,M,10,10,20,x\n", 2, 1, "Timestamp 'abc' is not a number"},
    {BURST "-1,M,10,10,20,x\n", 2, 1, "Timestamp '-1' is negative"},
    {BURST "9223372037,M,10,10,20,x\n", 2, 1, "is beyond 9223372036854775807 ns"},
    {BURST "5,M,10,ten,20,x\n", 2, 8, "Response tokens 'ten' is not a whole number"},
};

START_TEST(wrong_row)
{
    expect_error(wrong[_i].text, NULL, wrong[_i].line, wrong[_i].column, wrong[_i].words);
}
END_TEST

/* Seconds since 1970 as `date -u +%s` gives them. */
static const struct {
    const char *text;
    int64_t seconds, ns;
} dates[] = {
    {"1970-01-01 00:00:00", 0, 0},
    {"2023-11-16 18:15:46.6805900", 1700158546, 680590000},
    {"2023-11-16T18:15:46.680590Z", 1700158546, 680590000},
    {"2024-05-10 00:00:00.009930+00:00", 1715299200, 9930000},
    {"2024-02-29 23:59:59.999999999", 1709251199, 999999999},
    {"2024-02-29 23:59:59.9999999999", 1709251199, 999999999},
    {"2000-03-01 00:00:00", 951868800, 0},
    {"1999-12-31 23:59:59-0130", 946690199, 0},
    {"2024-05-10 02:00:00+02", 1715299200, 0},
    {"1969-12-31 23:59:59", -1, 0},
    {"2023/11/16 18:15:46", 1700158546, 0},
    {"2023-11-16 18:15", 1700158500, 0},
    {"2023-11-16 18:15Z", 1700158500, 0},
    {"2023-11-16t18:15:46z", 1700158546, 0},
    {"2023-11-16 18:15:46,680", 1700158546, 680000000},
    {"2023-11-16 18:15:46.680590 UTC", 1700158546, 680590000},
    {"2023-11-16 20:15:46 +0200", 1700158546, 0},
    {"2023-11-16 18:15:46 +00:00", 1700158546, 0},
};

START_TEST(good_date)
{
    int64_t out;
    const char *why, *text = dates[_i].text;
    ck_assert_int_eq(pkv_parse_date_ns(text, strlen(text), &out, &why), 0);
    ck_assert_int_eq(out, dates[_i].seconds * 1000000000 + dates[_i].ns);
}
END_TEST

static const char *const bad_dates[] = {
    "", "2023", "2023-11-16", "2023-11-16 ", "2023-11-16 18", "2023-11-16 18:", "2023-13-01 00:00:00",
    "2023-00-01 00:00:00", "2023-02-29 00:00:00", "2100-02-29 00:00:00", "2023-04-31 00:00:00",
    "2023-11-16 24:00:00", "2023-11-16 00:60:00", "2023-11-16 00:00:60", "2023-11-16 00:00:00.",
    "2023-11-16 00:00:00+", "2023-11-16 00:00:00+1", "2023-11-16 00:00:00+24:00",
    "2023-11-16 00:00:00+00:", "2023-11-16 00:00:00 ", "2023-11-16 00:00:00 CET",
     "2023-11-16 00:00:00x",
    "2023-11-16 00:00:00,", "2023-11-16 18:15.5", "23-11-16 00:00:00", "2023/11-16 00:00:00",
    "16/11/2023 00:00:00", "11/16/2023 00:00:00", "2023-11-16 00:00:00  UTC",
    "9999-01-01 00:00:00", "0001-01-01 00:00:00",
    "2023-11-16 00:00:00Zx", "-023-11-16 00:00:00",
};

START_TEST(bad_date)
{
    int64_t out;
    const char *why = NULL, *text = bad_dates[_i];
    ck_assert_msg(pkv_parse_date_ns(text, strlen(text), &out, &why) < 0, "%s", text);
    ck_assert_ptr_nonnull(why);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_csv");
    TCase *c = tcase_create("trace_csv");
    tcase_add_test(c, azure_2023);
    tcase_add_test(c, azure_2024);
    tcase_add_test(c, skipped_rows_are_counted);
    tcase_add_test(c, skipped_rows_have_their_place_in_time);
    tcase_add_test(c, columns_are_found_by_name);
    tcase_add_loop_test(c, wrong_row, 0, NUM(wrong));
    tcase_add_loop_test(c, good_date, 0, NUM(dates));
    tcase_add_loop_test(c, bad_date, 0, NUM(bad_dates));
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
