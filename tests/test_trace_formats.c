/*
 * test_trace_formats.c - the formats of other simulators and load generators: Dynamo and AIPerf,
 * Vidur, splitwise-sim, BLIS, LLMServingSim, Bailian, and any CSV whose columns are told.
 *
 * The rows are made after the descriptions and examples of these projects.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_fixture.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define S INT64_C(1000000000)
#define OWN(row) pkv_origin(PKV_ORIGIN_OWN, row)
#define ID(id) pkv_origin(PKV_ORIGIN_HASH_ID, id)

static struct rows rows;
static const struct pkv_trace_options with_sessions = {.sessions = true};

START_TEST(dynamo)
{
    expect_rows("{\"created_time\":1.5,\"input_tokens\":600,\"output_tokens\":4,\"hash_ids\":[7,8],"
                "\"session_id\":\"a\",\"request_id\":\"r\",\"policy_class\":\"x\"}\n"
                "{\"input_length\":700,\"output_length\":5,\"session_id\":\"a\",\"delay\":20}\n"
                "{\"timestamp\":3,\"input_length\":9,\"output_length\":1}\n", &with_sessions, &rows);
    ck_assert_str_eq(rows.notes.format, "dynamo");
    ck_assert_uint_eq(rows.num, 3);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 1500000);
    ck_assert_str_eq(rows.row[0].session, "a");
    ck_assert_str_eq(rows.row[0].id, "r");
    ck_assert(!rows.row[0].spec.follows);
    expect_span(&rows.row[0], 1, ID(8), 0, 88);
    ck_assert(rows.row[1].spec.follows);
    ck_assert_int_eq(rows.row[1].spec.delay_ns, 20 * MS);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 1500000);   /* its place */
    ck_assert_ptr_null(rows.row[2].spec.session);
    ck_assert_uint_eq(rows.notes.fields_left_out, 1);
}
END_TEST

START_TEST(native_sessions)
{
    expect_rows("{\"timestamp\":0,\"input_length\":9,\"output_length\":4,\"session\":\"s\",\"turn\":1}\n"
                "{\"delay_ms\":2.5,\"prompt\":[[\"@prev\",13],[null,3]],\"output_length\":5,"
                "\"session\":\"s\",\"turn\":2}\n", &with_sessions, &rows);
    expect_span(&rows.row[1], 0, pkv_origin(PKV_ORIGIN_PREV, 0), 0, 13);
    expect_span(&rows.row[1], 1, OWN(1), 0, 3);
    ck_assert_int_eq(rows.row[1].spec.delay_ns, 2500000);
    ck_assert_uint_eq(rows.row[1].spec.turn, 2);
    ck_assert_uint_eq(rows.row[1].spec.num_prompt_tokens, 16);
}
END_TEST

START_TEST(vidur)
{
    expect_rows("arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n"
                "5.8926549999999995,91,16\n11.836632999999999,369,74\n", NULL, &rows);
    ck_assert_str_eq(rows.notes.format, "vidur");
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, INT64_C(5892655000));   /* the nearest */
    ck_assert_int_eq(rows.row[2].spec.arrival_ns, INT64_C(11836633000));
    ck_assert_uint_eq(rows.notes.rows_rounded, 2);
    ck_assert_uint_eq(rows.row[2].spec.num_prompt_tokens, 369);
    ck_assert_uint_eq(rows.row[2].spec.num_output_tokens, 74);
    expect_rows("num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n"
                "3772,54,3826,69.85185185185185\n2015,156,2171,12.9\n", NULL, &rows);
    ck_assert(rows.notes.untimed);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 0);
    ck_assert_uint_eq(rows.row[1].spec.num_output_tokens, 156);
}
END_TEST

START_TEST(splitwise)
{
    static const char head[] =
        "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n";
    char text[400];
    snprintf(text, sizeof text, "%s0,2,0,1,1,4096,32\n1,2,0,3.25,1,2048,8\n", head);
    expect_rows(text, NULL, &rows);
    ck_assert_str_eq(rows.notes.format, "splitwise");
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, S);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 3250000000);
    ck_assert_str_eq(rows.row[1].id, "1");
    ck_assert_uint_eq(rows.row[1].spec.num_prompt_tokens, 2048);
    snprintf(text, sizeof text, "%s0,2,0,1,4,4096,32\n", head);
    expect_error(text, NULL, 2, 9, "batch_size '4' is not 1");
}
END_TEST

#define BLIS                                                                                   \
    "request_id,client_id,tenant_id,slo_class,vllm_priority,session_id,round_index,prefix_group," \
    "prefix_length,streaming,input_tokens,output_tokens,text_tokens,image_tokens,audio_tokens,"   \
    "video_tokens,reason_ratio,model,deadline_us,slo_target_us,server_input_tokens,"              \
    "arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,status,"      \
    "error_message,finish_reason,adapter\n"

START_TEST(blis)
{
    expect_rows(BLIS
                "0,c,t,batch,3,s,0,g,128,true,307,20,0,0,0,0,0,m,9000,500,440,100,200,0,0,0,ok,,stop,l\n"
                "1,c,,,0,,0,,0,true,307,21,0,0,0,0,0,,0,0,311,300,0,0,0,0,ok,,,\n"
                "2,c,,,0,s,1,,0,true,30,0,0,0,0,0,0,,0,0,0,400,0,0,0,0,error,\"a, b\",,\n",
                NULL, &rows);
    const struct pkv_request_spec *first = &rows.row[0].spec;
    ck_assert_str_eq(rows.notes.format, "blis");
    ck_assert_uint_eq(rows.num, 2);
    ck_assert_uint_eq(rows.notes.skipped_no_output, 1);
    ck_assert_uint_eq(first->num_prompt_tokens, 435);        /* 307 behind a prefix of 128 */
    expect_span(&rows.row[0], 0, pkv_origin(PKV_ORIGIN_NAME, pkv_hash_name("g", 1)), 0, 128);
    expect_span(&rows.row[0], 1, OWN(0), 0, 307);
    ck_assert_int_eq(first->arrival_ns, 200000);             /* when it was sent */
    ck_assert_int_eq(first->abort_ns, 9000000);
    ck_assert_int_eq(first->deadline_ns, 700000);
    ck_assert_int_eq(first->priority, 3);
    ck_assert_uint_eq(first->turn, 1);
    ck_assert_uint_eq(first->content.root, pkv_content_root(NULL, "l"));
    ck_assert_str_eq(rows.row[0].session, "s");
    ck_assert_str_eq(rows.row[0].tenant, "t");
    ck_assert_uint_eq(rows.row[1].spec.num_prompt_tokens, 311);   /* the server knows best */
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 300000);
    ck_assert_ptr_null(rows.row[1].spec.session);
}
END_TEST

START_TEST(llmservingsim)
{
    expect_rows("{\"input_toks\":4,\"output_toks\":2,\"arrival_time_ns\":5,"
                "\"input_tok_ids\":[1,2,9,4294967296],\"output_tok_ids\":[3,4]}\n"
                "{\"session_id\":\"t\",\"arrival_time_ns\":10,\"sub_requests\":["
                "{\"input_toks\":1472,\"output_toks\":133,\"tool_duration_ns\":127348767},"
                "{\"input_toks\":1582,\"output_toks\":125,\"tool_duration_ns\":0}]}\n"
                "{\"input_toks\":1,\"output_toks\":1,\"arrival_time_ns\":11}\n", &with_sessions,
                &rows);
    ck_assert_str_eq(rows.notes.format, "llmservingsim");
    ck_assert_uint_eq(rows.num, 4);
    expect_span(&rows.row[0], 0, pkv_origin(PKV_ORIGIN_TOKEN, 0), 1, 2);
    expect_span(&rows.row[0], 1, pkv_origin(PKV_ORIGIN_TOKEN, 0), 9, 1);
    expect_span(&rows.row[0], 2, pkv_origin(PKV_ORIGIN_TOKEN, 1), 0, 1);
    ck_assert_uint_eq(rows.notes.fields_left_out, 1);
    ck_assert(!rows.row[1].spec.follows && rows.row[2].spec.follows && !rows.row[3].spec.follows);
    ck_assert_int_eq(rows.row[2].spec.delay_ns, 127348767);
    ck_assert_uint_eq(rows.row[2].spec.turn, 2);
    ck_assert_uint_eq(rows.row[2].spec.num_prompt_tokens, 1582);
    ck_assert_str_eq(rows.row[2].session, "t");
    ck_assert_int_eq(rows.row[3].spec.arrival_ns, 11);
}
END_TEST

START_TEST(bailian)
{
    expect_rows("{\"chat_id\":159,\"parent_chat_id\":-1,\"timestamp\":61.114,\"input_length\":33,"
                "\"output_length\":132,\"type\":\"text\",\"turn\":1,\"hash_ids\":[1089,1090,1091]}\n"
                "{\"chat_id\":7,\"parent_chat_id\":159,\"timestamp\":62.5,\"input_length\":16,"
                "\"output_length\":80,\"type\":\"search\",\"turn\":2,\"hash_ids\":[1089]}\n"
                "{\"chat_id\":8,\"parent_chat_id\":7,\"timestamp\":63,\"input_length\":16,"
                "\"output_length\":80,\"type\":\"text\",\"turn\":3,\"hash_ids\":[1089]}\n"
                "{\"chat_id\":9,\"parent_chat_id\":4,\"timestamp\":63,\"input_length\":1,"
                "\"output_length\":1,\"type\":\"text\",\"turn\":5,\"hash_ids\":[3]}\n", NULL, &rows);
    static const char *const sessions[] = {"159", "159", "159", "4"};
    ck_assert_str_eq(rows.notes.format, "bailian");
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(rows.row[i].session, sessions[i]);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, INT64_C(61114000000));
    expect_span(&rows.row[0], 2, ID(1091), 0, 1);
    ck_assert_uint_eq(rows.row[2].spec.turn, 3);
    ck_assert_str_eq(rows.row[1].id, "7");
}
END_TEST

START_TEST(columns_that_are_told)
{
    struct pkv_trace_options options = {
        .columns = "arrival=ts,prompt=in,output=out,id=rid,tenant=who,priority=p,max_tokens=cap,"
                   "session=talk",
        .time_unit = "us",
    };
    expect_rows("rid,ts,in,out,who,p,cap,talk,more\n"
                "a,10.5,7,3,\"x \"\"y\"\"\",-2,9,s1,z\n,12,8,4,,0,0,,z\n", &options, &rows);
    ck_assert_str_eq(rows.notes.format, "csv");
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 10500);
    ck_assert_str_eq(rows.row[0].tenant, "x \"y\"");
    ck_assert_int_eq(rows.row[0].spec.priority, -2);
    ck_assert_uint_eq(rows.row[0].spec.max_tokens, 9);
    ck_assert_uint_eq(rows.row[0].spec.num_output_tokens, 3);
    ck_assert_str_eq(rows.row[0].session, "s1");
    ck_assert_ptr_null(rows.row[1].spec.id);
    ck_assert_uint_eq(rows.row[1].spec.max_tokens, 4);
    options = (struct pkv_trace_options){.columns = "prompt=in,output=out,arrival=when",
                                         .time_unit = "date"};
    expect_rows("when,in,out\n2026-01-01 00:00:01,1,1\n2026-01-01 00:00:02.25,1,1\n", &options,
                &rows);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 0);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, 1250000000);
}
END_TEST

static const struct {
    const char *columns, *unit, *words;
    uint64_t line;
} told_wrong[] = {
    {"prompt=in", NULL, "output=NAME is missing", 0},
    {"prompt=in,output", NULL, "'output' is not of the form ROLE=NAME", 0},
    {"prompt=in,output=out,colour=c", NULL, "'colour' is unknown (known: arrival,", 0},
    {"prompt=in,prompt=out", NULL, "'prompt' stands there twice, as 'in' and 'out'", 0},
    {"prompt=in,output=out", "h", "time unit 'h' is unknown", 0},
    {"prompt=in,output=away", NULL, "column 'away' is missing; this file has 'in', 'out'", 1},
};

START_TEST(columns_told_wrong)
{
    struct pkv_trace_options options = {.columns = told_wrong[_i].columns,
                                        .time_unit = told_wrong[_i].unit};
    expect_error("in,out\n1,1\n", &options, told_wrong[_i].line, 0, told_wrong[_i].words);
    options = (struct pkv_trace_options){.format = "csv"};
    expect_error("in,out\n1,1\n", &options, 0, 0, "needs to be told its columns");
    options = (struct pkv_trace_options){.format = "azure", .columns = "prompt=in,output=out"};
    expect_error("in,out\n1,1\n", &options, 0, 0, "has columns of its own");
}
END_TEST

#define SPLIT(arrival) "arrival_timestamp,prompt_size,token_size\n" arrival "\n"
#define LSS "{\"session_id\":\"t\",\"arrival_time_ns\":10,\"sub_requests\":"
#define CHAT "{\"chat_id\":1,\"timestamp\":0,\"input_length\":20,\"output_length\":1"
static const struct {
    const char *text;
    uint64_t line;
    uint32_t column;
    const char *words;
} wrong[] = {
    {"arrived_at,num_prefill_tokens,num_decode_tokens\n-1,2,3\n", 2, 1, "'-1' is negative"},
    {"arrived_at,num_prefill_tokens,num_decode_tokens\n1,2.5,3\n", 2, 3, "'2.5' is not a whole"},
    {"trace_version: 3\ntime_unit: microseconds\n", 1, 0, "its rows are in the CSV beside it"},
    {"arrived_at,num_decode_tokens\n1,2\n", 1, 0, "column 'num_prefill_tokens' is missing"},
    {SPLIT("x,1,1"), 2, 1, "arrival_timestamp 'x'"},
    {SPLIT("1,0,1"), 2, 3, "must be at least 1"},
    {BLIS "0,c,t,b,0,s,0,g,1,true,3,2,0,0,0,0,0,m,50,0,0,100,0,0,0,0,ok,,,\n", 2, 40,
     "deadline_us '50' is before the request comes"},
    {BLIS "0,c,t,b,0,s,0,,1,true,0,2,0,0,0,0,0,m,0,0,0,100,0,0,0,0,ok,,,\n", 2, 23, "no prompt"},
    {BLIS "0,c,t,b,0,s,0\n", 2, 13, "this row has 7 fields, the header has 30"},
    {LSS "[]}\n", 1, 55, "sub_requests is empty"},
    {LSS "[{\"input_toks\":1}]}\n", 1, 56, "this request has no output_toks"},
    {LSS "[{\"input_toks\":1,\"output_toks\":1,\"arrival_time_ns\":3}]}\n", 1, 88,
     "field 'arrival_time_ns' is unknown"},
    {LSS "[{\"input_toks\":0,\"output_toks\":1}]}\n", 1, 70, "input_toks is 0"},
    {"{\"arrival_time_ns\":1,\"input_toks\":3,\"output_toks\":1,\"input_tok_ids\":[1,2]}\n", 1, 69,
     "has 2 ids, but input_toks is 3"},
    {"{\"input_toks\":3,\"output_toks\":1}\n", 1, 1, "this row has no arrival_time_ns"},
    {CHAT ",\"hash_ids\":[1]}\n", 1, 75, "has 1 ids, but 20 tokens in blocks of 16 need 2"},
    {CHAT ",\"parent_chat_id\":-2}\n", 1, 81, "parent_chat_id is -2, not -1 or more"},
    {"{\"chat_id\":1,\"timestamp\":-1,\"input_length\":20,\"output_length\":1}\n", 1, 26,
     "timestamp is negative"},
};

START_TEST(wrong_rows)
{
    expect_error(wrong[_i].text, &with_sessions, wrong[_i].line, wrong[_i].column, wrong[_i].words);
}
END_TEST

START_TEST(texts_are_kept)
{
    struct pkv_trace_options options = {.keep_texts = true, .sessions = true, .sort = _i == 1};
    static const char text[] =
        "{\"timestamp\":0,\"prompt\":[[\"g\",4],[null,1],[\"h\",2]],\"output_length\":1,\"salt\":\"x\","
        "\"adapter\":\"y\",\"session\":\"s\"}\n"
        "{\"timestamp\":1,\"input_length\":3,\"output_length\":1,\"hash_ids\":[77]}\n";
    struct pkv_err err = {0};
    struct pkv_request_spec spec;
    struct pkv_trace *t = pkv_trace_open_memory("t", text, strlen(text), &options, &err);
    struct pkv_source source = pkv_trace_source(t);
    ck_assert_int_eq(source.next(source.ctx, &spec, &err), 1);
    const struct pkv_trace_texts *texts = pkv_trace_texts(t);
    ck_assert_str_eq(texts->spans[0].name, "g");
    ck_assert_int_eq(texts->spans[1].kind, PKV_ORIGIN_OWN);
    ck_assert_str_eq(texts->spans[2].name, "h");
    ck_assert_str_eq(texts->salt, "x");
    ck_assert_str_eq(texts->adapter, "y");
    ck_assert_str_eq(spec.session, "s");
    ck_assert_int_eq(source.next(source.ctx, &spec, &err), 1);
    texts = pkv_trace_texts(t);
    ck_assert_int_eq(texts->spans[0].kind, PKV_ORIGIN_HASH_ID);
    ck_assert_uint_eq(texts->spans[0].number, 77);
    ck_assert_ptr_null(texts->salt);
    pkv_trace_close(t);
}
END_TEST

START_TEST(what_lines_are_like)
{
    expect_rows("\xef\xbb\xbf" "arrived_at,num_prefill_tokens,num_decode_tokens\r\n1,2,3\r\n\r\n2,2,3",
                NULL, &rows);
    ck_assert(rows.notes.has_bom && rows.notes.has_crlf && rows.notes.has_open_end);
    ck_assert_uint_eq(rows.notes.blank_lines, 1);
    expect_rows("arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,3\n", NULL, &rows);
    ck_assert(!rows.notes.has_bom && !rows.notes.has_crlf && !rows.notes.has_open_end);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_formats");
    TCase *c = tcase_create("trace_formats");
    tcase_add_test(c, dynamo);
    tcase_add_test(c, native_sessions);
    tcase_add_test(c, vidur);
    tcase_add_test(c, splitwise);
    tcase_add_test(c, blis);
    tcase_add_test(c, llmservingsim);
    tcase_add_test(c, bailian);
    tcase_add_test(c, columns_that_are_told);
    tcase_add_loop_test(c, columns_told_wrong, 0, NUM(told_wrong));
    tcase_add_loop_test(c, wrong_rows, 0, NUM(wrong));
    tcase_add_loop_test(c, texts_are_kept, 0, 2);
    tcase_add_test(c, what_lines_are_like);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
