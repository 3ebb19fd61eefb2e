/*
 * test_trace_order.c - what is done behind every reader: order, sorting, limit, speed-up, choice of
 * the format, and memory that runs out.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace_fixture.h"

static struct rows rows;

#define ROW(time, length)                                                                   \
    "{\"timestamp\":" time ",\"input_length\":" length ",\"output_length\":1}\n"

START_TEST(out_of_order)
{
    expect_error(ROW("5", "1") ROW("7", "2") ROW("6.5", "3"), NULL, 3, 14,
                 "this row arrives 0.5 ms before the one above it; rows must stand in time order, "
                 "or be sorted (--sort, or traffic.sort)");
}
END_TEST

START_TEST(sorted)
{
    struct pkv_trace_options options = {.sort = true};
    expect_rows("{\"timestamp\":5,\"prompt\":[[\"g\",4],[null,1]],\"output_length\":1,\"id\":\"late\","
                "\"tenant\":\"t\"}\n" ROW("3", "2") ROW("5", "3") ROW("3", "4") ROW("0", "5"),
                &options, &rows);
    static const uint32_t lengths[] = {5, 2, 4, 5, 3};    /* equal times stay as they stood */
    ck_assert_uint_eq(rows.num, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(rows.row[i].spec.num_prompt_tokens, lengths[i]);
    ck_assert_str_eq(rows.row[3].id, "late");
    ck_assert_str_eq(rows.row[3].tenant, "t");
    expect_span(&rows.row[3], 0, pkv_origin(PKV_ORIGIN_NAME, pkv_hash_name("g", 1)), 0, 4);
    ck_assert_ptr_null(rows.row[4].spec.id);
    /* Own texts of different rows stay different. */
    ck_assert_uint_ne(rows.row[0].spans[0].origin, rows.row[1].spans[0].origin);
}
END_TEST

START_TEST(sorted_dates_begin_with_the_earliest)
{
    struct pkv_trace_options options = {.sort = true, .limit = 2};
    expect_rows("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:05,5,1\n"
                "2023-11-16 18:17:03,3,1\n2023-11-16 18:17:04,4,1\n", &options, &rows);
    ck_assert_uint_eq(rows.num, 2);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 0);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, INT64_C(1000000000));
    ck_assert_uint_eq(rows.row[1].spec.num_prompt_tokens, 4);
}
END_TEST

START_TEST(limit)
{
    struct pkv_trace_options options = {.limit = 2};
    expect_rows(ROW("0", "1") ROW("1", "2") "this is no row\n", &options, &rows);
    ck_assert_uint_eq(rows.num, 2);
    ck_assert_uint_eq(rows.notes.rows, 2);
    options.limit = 3;
    expect_error(ROW("0", "1") ROW("1", "2") "this is no row\n", &options, 3, 1, "an object");
}
END_TEST

START_TEST(speedup)
{
    struct pkv_trace_options options = {.speedup_num = 3, .speedup_den = 2};
    expect_rows("{\"timestamp\":0.000010,\"input_length\":1,\"output_length\":1,"
                "\"abort_ms\":0.000011,\"deadline_ms\":3}\n" ROW("9223372036854", "1"), &options,
                &rows);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, 6);          /* floor(20 / 3) */
    ck_assert_int_eq(rows.row[0].spec.abort_ns, 7);            /* floor(22 / 3) */
    ck_assert_int_eq(rows.row[0].spec.deadline_ns, 2 * MS);
    ck_assert_int_eq(rows.row[1].spec.arrival_ns, INT64_C(6148914691236000000));
    ck_assert_int_eq(rows.row[1].spec.abort_ns, PKV_NO_TIME);
    options = (struct pkv_trace_options){.speedup_num = 1, .speedup_den = 2};
    expect_rows(ROW("4611686018427", "1"), &options, &rows);
    ck_assert_int_eq(rows.row[0].spec.arrival_ns, INT64_C(9223372036854000000));
    expect_error(ROW("4611686018428", "1"), &options, 1, 0, "beyond 9223372036854775807 ns");
    options = (struct pkv_trace_options){.speedup_num = 1000000001};
    expect_error(ROW("0", "1"), &options, 0, 0, "1000000001 / 1 is out of range");
}
END_TEST

START_TEST(dates_far_apart)
{
    expect_error("TIMESTAMP,ContextTokens,GeneratedTokens\n1700-01-01 00:00:00,1,1\n"
                 "2200-01-01 00:00:00,1,1\n", NULL, 3, 0, "beyond 9223372036854775807 ns");
}
END_TEST

START_TEST(format_by_name)
{
    struct pkv_trace_options options = {.format = "native"};
    expect_rows("{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[1]}\n",
                &options, &rows);
    ck_assert_str_eq(rows.notes.format, "native");
    options.format = "azure";
    expect_error("a,b\n1,2\n", &options, 1, 0, "column 'TIMESTAMP' is missing");
    options.format = "tokens";
    expect_error(ROW("0", "1"), &options, 1, 2, "field 'timestamp' is unknown");
    options.format = "orca";
    expect_error(ROW("0", "1"), &options, 0, 0, "'orca' is no trace format (known: native, ");
}
END_TEST

START_TEST(formats_are_listed)
{
    size_t num;
    const struct pkv_trace_format *const *list = pkv_trace_format_list(&num);
    static const char *const names[] = {
        "native", "mooncake", "dynamo", "azure", "burstgpt", "vidur", "splitwise", "blis",
        "llmservingsim", "bailian", "tokens", "csv",
    };
    ck_assert_uint_eq(num, sizeof names / sizeof *names);
    for (size_t i = 0; i < num; i++) {
        ck_assert_str_eq(list[i]->name, names[i]);
        ck_assert(*list[i]->summary && *list[i]->source);
    }
}
END_TEST

static const char *const every_kind[] = {
    "{\"timestamp\":0,\"prompt\":[[\"g\",4],[null,1]],\"output_length\":1,\"id\":\"i\",\"tenant\":\"t\","
    "\"salt\":\"s\",\"adapter\":\"a\"}\n",
    "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[1]}\n",
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:05,5,1\n",
    "{\"id\":\"a\",\"arrival_step\":1,\"prompt\":[[1,1]],\"max_tokens\":1,\"cache_salt\":\"s\"}\n",
    "{\"created_time\":0,\"input_tokens\":5,\"output_tokens\":1,\"session_id\":\"s\"}\n",
    "request_id,tenant_id,session_id,round_index,prefix_group,prefix_length,input_tokens,"
    "output_tokens,arrival_time_us,adapter\n1,t,s,0,g,4,5,1,0,a\n",
    "{\"session_id\":\"s\",\"arrival_time_ns\":0,\"sub_requests\":[{\"input_toks\":2,\"output_toks\":1,"
    "\"input_tok_ids\":[1,2]}]}\n",
    "{\"chat_id\":1,\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[1]}\n",
};

START_TEST(memory_runs_out)
{
    for (int sort = 0; sort < 2; sort++) {
        struct pkv_trace_options options = {.sort = sort == 1, .keep_texts = true};
        read_rows(every_kind[_i], &options, &rows);
        ck_assert_int_eq(rows.status, 0);
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            ck_assert_uint_lt(n, 1000);
            pkv_alloc_fail_at(n, 1);
            read_rows(every_kind[_i], &options, &rows);
            pkv_alloc_fail_at(0, 0);
            failed = rows.status < 0;
            if (failed)
                ck_assert_int_eq(rows.err.code, PKV_ERR_MEMORY);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_order");
    TCase *c = tcase_create("trace_order");
    tcase_add_test(c, out_of_order);
    tcase_add_test(c, sorted);
    tcase_add_test(c, sorted_dates_begin_with_the_earliest);
    tcase_add_test(c, limit);
    tcase_add_test(c, speedup);
    tcase_add_test(c, dates_far_apart);
    tcase_add_test(c, format_by_name);
    tcase_add_test(c, formats_are_listed);
    tcase_add_loop_test(c, memory_runs_out, 0, (int)(sizeof every_kind / sizeof *every_kind));
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
