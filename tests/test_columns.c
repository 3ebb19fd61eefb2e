/*
 * test_columns.c - a CSV that its user brings: names, separators and times as people's programs write
 * them are read, or refused with what mends them.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_fixture.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define S INT64_C(1000000000)
#define TOLD "arrival=ts,prompt=in,output=out"

static struct rows rows;

/* Each is two requests at 1 s and 2.5 s, of 700 and 8 tokens that answer with 3 and 4. */
static const char *const same[] = {
    "ts,in,out\n1,700,3\n2.5,8,4\n",
    "ts;in;out\n1;700;3\n2.5;8;4\n",
    "ts\tin\tout\n1\t700\t3\n2.5\t8\t4\n",
    "ts|in|out\n1|700|3\n2.5|8|4\n",
    "\"ts\";\"in\";\"out\"\r\n\"1\";\"700\";\"3\"\r\n\"2.5\";\"8\";\"4\"\r\n",
    "sep=;\r\nts;in;out\r\n1;700;3\r\n2.5;8;4\r\n",
    "\xef\xbb\xbfts,in,out\r\n1,700,3\r\n2.5,8,4\r\n",
    "ts, in , out\n 1 , 700, 3\n2.5,8 ,\t\"4\" \n",
    "note,ts,in,out\n\"a;b;c;d\",1,700,3\n\"said \"\"no\"\", twice\",2.5,8,4\n",
    "a;b,ts,in,out\nx;y,1,700,3\n,2.5,8,4\n",
    "ts,in,out\n1,700.0,3.0\n2.5,8.0,4.0\n",
    "ts,in,out\n\n1,700,3\n2.5,8,4\n,,\n\n  \n,,",
    "ts;in;out\n1;700;3\n2.5;8;4\n;;\n",
    "ts\tin\tout\n1\t700\t3\n2.5\t8\t4\n\t\t\n",
    "ts,in,out\n1,700,3\n1.7,5,0\n2.5,8,4\n",
};

START_TEST(the_same_rows)
{
    struct pkv_trace_options options = {.columns = TOLD};
    expect_rows(same[_i], &options, &rows);
    ck_assert_uint_eq(rows.num, 2);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, S);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, S * 5 / 2);
    ck_assert_uint_eq(rows.row[0].spec.num_prompt_tokens, 700);
    ck_assert_uint_eq(rows.row[1].spec.num_prompt_tokens, 8);
    ck_assert_uint_eq(rows.row[0].spec.num_output_tokens, 3);
    ck_assert_uint_eq(rows.row[1].spec.num_output_tokens, 4);
}
END_TEST

/* Known formats that a spreadsheet has saved once more. */
START_TEST(known_names_behind_other_separators)
{
    expect_rows("TIMESTAMP;ContextTokens;GeneratedTokens\n2023-11-16 18:17:03;48;10\n", NULL, &rows);
    ck_assert_str_eq(rows.notes.format, "azure");
    ck_assert_uint_eq(rows.row[0].spec.num_prompt_tokens, 48);
    expect_rows("arrived_at\tnum_prefill_tokens\tnum_decode_tokens\n1\t7\t3\n", NULL, &rows);
    ck_assert_str_eq(rows.notes.format, "vidur");
    struct pkv_trace_options options = {.format = "vidur"};
    expect_rows("arrived_at;num_prefill_tokens;num_decode_tokens\n1;7;3\n", &options, &rows);
    ck_assert_uint_eq(rows.row[0].spec.num_prompt_tokens, 7);
}
END_TEST

/* 1700000000 s since 1970, and a quarter of a second later: the first row is 0. */
static const struct {
    const char *unit, *first, *second;
} since_1970[] = {
    {NULL, "1700000000.5", "1700000000.75"}, {"s", "1700000000", "1700000000.25"},
    {"ms", "1700000000500", "1700000000750"}, {"us", "1700000000000000", "1700000000250000"},
    {"ns", "1700000000000000001", "1700000000250000001"},
    {"date", "2023-11-14T22:13:20Z", "2023-11-14 22:13:20.25"}, {NULL, "1.7e9", "1700000000.25"},
};

START_TEST(times_since_1970_count_from_the_first)
{
    char text[160];
    struct pkv_trace_options options = {.columns = TOLD, .time_unit = since_1970[_i].unit};
    snprintf(text, sizeof text, "ts,in,out\n%s,7,3\n%s,8,4\n", since_1970[_i].first,
             since_1970[_i].second);
    expect_rows(text, &options, &rows);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 0);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, S / 4);
}
END_TEST

START_TEST(unsorted_times_since_1970)
{
    struct pkv_trace_options options = {.columns = TOLD, .sort = true};
    expect_rows("ts,in,out\n1700000002,7,3\n1700000000,8,4\n", &options, &rows);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 0);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 2 * S);
}
END_TEST

/* Times that are not: a second short of 2000, they stay. */
START_TEST(other_times_stay)
{
    struct pkv_trace_options options = {.columns = TOLD};
    expect_rows("ts,in,out\n946684799,7,3\n946684800,7,3\n", &options, &rows);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 946684799 * S);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 946684800 * S);
}
END_TEST

#define HEAD "ts,in,out\n"
static const struct {
    const char *unit, *text;
    uint64_t line;
    uint32_t column;
    const char *words;
} wrong[] = {
    {NULL, "ts,In,out\n1,2,3\n", 1, 0,
     "column 'in' is missing; the nearest is 'In'; this file has 'ts', "
     "'In', 'out'"},
    {NULL, "TS;IN;out\n1;2;3\n", 1, 0,
     "column 'ts' is missing; the nearest is 'TS'; this file has 'TS', "
     "'IN', 'out'"},
    {NULL, "TS;IN;OUT\n1;2;3\n", 1, 0,
     "column 'ts' is missing; the nearest is 'TS'; this file has 'TS', "
     "'IN', 'OUT'"},
    {NULL, "\"TS\";\"IN\"\n1;2\n", 1, 0,
     "column 'ts' is missing; the nearest is 'TS'; this file has 'TS', "
     "'IN'"},
    {NULL, "A IN\n1 2\n", 1, 0, "column 'ts' is missing; this file has 'A IN'"},
    {NULL, "when,inn,out\n1,2,3\n", 1, 0, "column 'ts' is missing; this file has 'when', 'inn', 'out'"},
    {NULL, "1,700,3\n2,8,4\n", 1, 0,
     "the first line should name the columns, and this one holds values ('1', "
     "'700', '3'); write a head line before it"},
    {NULL, "2023-11-16 18:17:03,a,b\n", 1, 0, "the first line should name the columns"},
    {NULL, "{\"ts\":1,\"in\":2,\"out\":3}\n", 1, 0, "this is a row of JSON; format csv is CSV"},
    {NULL, HEAD "2023-11-16T18:17:03Z,2,3\n", 2, 1,
     "ts '2023-11-16T18:17:03Z' is not a number; dates are read "
     "with --time-unit date"},
    {NULL, HEAD "1700000000000,2,3\n", 2, 1, "; in ms since 1970 it lies in 2023: --time-unit ms"},
    {"s", HEAD "1700000000000,2,3\n", 2, 1, "; in ms since 1970 it lies in 2023: --time-unit ms"},
    {NULL, HEAD "1700000000000000,2,3\n", 2, 1, "--time-unit us"},
    {NULL, HEAD "1700000000000000000,2,3\n", 2, 1, "--time-unit ns"},
    {"ms", HEAD "1700000000000000,2,3\n", 2, 1, "--time-unit us"},
    {"ms", HEAD "1700000000000000000,2,3\n", 2, 1, "--time-unit ns"},
    {NULL, HEAD "5000000000,2,3\n", 2, 1, "ts '5000000000' lies after the year 2100"},
    {NULL, HEAD "1,2,3\n4102444800,2,3\n", 3, 1, "ts '4102444800' lies after the year 2100"},
    {"date", HEAD "1700000000.5,2,3\n", 2, 1, "--time-unit s"},
    {"date", HEAD "1700000000000,2,3\n", 2, 1, "--time-unit ms"},
    {"date", HEAD "17,2,3\n", 2, 1, "numbers are read with --time-unit s, ms, us or ns"},
    {"date", HEAD "16/11/2023 18:17,2,3\n", 2, 1,
     "is not a date like 2023-11-16 18:15:46.680590, the year first"},
    {NULL, HEAD ",2,3\n", 2, 1, "ts '' is empty"},
    {NULL, "ts;in;out\n1,5;2;3\n", 2, 1, "ts '1,5' is not a number; decimals stand behind a point"},
    {NULL, HEAD "1,\"1,234\",3\n", 2, 3, "in '1,234' is not a whole number; thousands stand "
     "together: 1234"},
    {NULL, "ts;in;out\n1;1.234.567;3\n", 2, 3, "thousands stand together: 1234567"},
    {NULL, "ts;in;out\n1;1.000;3\n", 2, 3, "thousands stand together: 1000"},
    {NULL, HEAD "1,1 234,3\n", 2, 3, "thousands stand together: 1234"},
    {NULL, HEAD "1,12\xc2\xa0" "345,3\n", 2, 3, "thousands stand together: 12345"},
    {NULL, HEAD "1,\"1,23\",3\n", 2, 3, "in '1,23' is not a whole number; decimals"},
    {NULL, HEAD "1,512.5,3\n", 2, 3, "in '512.5' is not a whole number"},
    {NULL, HEAD "1,.0,3\n", 2, 3, "in '.0' is not a whole number"},
    {NULL, HEAD "1,-2,3\n", 2, 3, "in '-2' is negative"},
    {NULL, HEAD "1,,3\n", 2, 3, "in '' is empty"},
    {NULL, HEAD "1,2,\n", 2, 5, "out '' is empty; a request that gave no token has 0, and is left out"},
    {NULL, HEAD "1,1,234,3\n", 2, 9,
     "this row has 4 fields, the header has 3; a value with a comma in it"},
    {NULL, "ts;in;out\n1;2;3;4\n", 2, 7, "this row has 4 fields, the header has 3"},
    {NULL, "ts;in;out\n1;\"2\"x;3\n", 2, 6,
     "a semicolon should stand behind the closing quote, not 'x'"},
    {NULL, HEAD "1,2,\"a\nb\"\n", 2, 5, "a text with line breaks in it is not read"},
};

START_TEST(wrong_file)
{
    struct pkv_trace_options options = {.columns = TOLD, .time_unit = wrong[_i].unit};
    expect_error(wrong[_i].text, &options, wrong[_i].line, wrong[_i].column, wrong[_i].words);
}
END_TEST

/* Names beyond what a sentence holds are counted. */
START_TEST(many_columns)
{
    struct pkv_trace_options options = {.columns = TOLD};
    char text[4000] = "ts,out";
    for (int i = 0; i < 200; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",column %03d", i);
    strcat(text, "\n");
    expect_error(text, &options, 1, 0, "this file has 'ts', 'out', 'column 000', ");
    expect_error(text, &options, 1, 0, " more");
}
END_TEST

START_TEST(files_that_are_no_text)
{
    static const struct { const char *bytes; size_t length; const char *words; } kinds[] = {
        {"\xff\xfet\0s\0,\0", 8, "is UTF-16 text; save it as CSV in UTF-8"},
        {"\xfe\xff\0t\0s", 6, "is UTF-16 text"},
        {"t\0s\0,\0", 6, "is UTF-16 text"},
        {"\0t\0s\0,", 6, "is UTF-16 text"},
        {"PK\003\004....", 8, "a workbook (.xlsx, .ods) is saved as CSV first"},
        {"PAR1....", 8, "is Parquet"},
    };
    struct pkv_trace_options options = {.columns = TOLD};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        read_memory(kinds[i].bytes, kinds[i].length, &options, &rows);
        ck_assert_int_eq(rows.status, -1);
        ck_assert_msg(strstr(rows.err.text, kinds[i].words) != NULL, "%s", rows.err.text);
    }
}
END_TEST

static const struct {
    const char *columns, *words;
} told_wrong[] = {
    {"prompt=in", "--columns (traffic.columns): output=NAME is missing"},
    {"arrival=ts,output=out", "--columns (traffic.columns): prompt=NAME is missing"},
    {"arrival=ts", "prompt=NAME and output=NAME are missing"},
    {"arival=ts,prompt=in,output=out",
     "--columns (traffic.columns): 'arival' is unknown; the nearest is 'arrival' "
     "(known: arrival, prompt, output, id, tenant, session, priority, max_tokens)"},
    {"batch=in,prompt=in,output=out", "'batch' is unknown (known: "},
    {"prompt=in,prompt=inn,output=out", "'prompt' stands there twice, as 'in' and 'inn'"},
    {"prompt=in,output", "'output' is not of the form ROLE=NAME"},
    {"prompt=in,output=", "'output=' is not of the form ROLE=NAME"},
};

START_TEST(columns_told_wrong)
{
    struct pkv_trace_options options = {.columns = told_wrong[_i].columns};
    expect_error(HEAD "1,2,3\n", &options, 0, 0, told_wrong[_i].words);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("columns");
    TCase *c = tcase_create("columns");
    tcase_add_loop_test(c, the_same_rows, 0, NUM(same));
    tcase_add_test(c, known_names_behind_other_separators);
    tcase_add_loop_test(c, times_since_1970_count_from_the_first, 0, NUM(since_1970));
    tcase_add_test(c, unsorted_times_since_1970);
    tcase_add_test(c, other_times_stay);
    tcase_add_loop_test(c, wrong_file, 0, NUM(wrong));
    tcase_add_test(c, many_columns);
    tcase_add_test(c, files_that_are_no_text);
    tcase_add_loop_test(c, columns_told_wrong, 0, NUM(told_wrong));
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
