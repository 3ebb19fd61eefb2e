/*
 * test_request.c - the waiting queue's order, records that are reused, and the ways of a status.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "cache_fixture.h"
#include "pagedkv/request.h"

#define NUM 5

static struct pkv_cache *cache;
static struct pkv_request_store *store;
static struct pkv_waiting *queue;
static struct pkv_request *r[NUM];   /* rows 0 .. 4 */

static struct pkv_request *open_request(uint64_t row, const char *id)
{
    static const struct pkv_span text = { 5, 0, 3 };
    const struct pkv_request_spec spec = {
        .row = row, .id = id, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = 3, .num_output_tokens = 1, .max_tokens = 1,
        .content = { .prompt = &text, .num_prompt_spans = 1 } };
    struct pkv_request *request = pkv_request_open(store, cache, &spec, NULL);

    ck_assert_ptr_nonnull(request);
    return request;
}

static void set_up(void)
{
    cache = make_cache(4, 4, true);
    store = pkv_request_store_create(NULL);
    queue = pkv_waiting_create(NULL);
    ck_assert(store != NULL && queue != NULL);
    ck_assert_int_eq(pkv_waiting_reserve(queue, NUM, NULL), 0);
    for (uint64_t row = 0; row < NUM; row++)
        r[row] = open_request(row, NULL);
}

static void tear_down(void)
{
    pkv_waiting_destroy(queue);
    pkv_request_store_destroy(store, cache);
    pkv_cache_destroy(cache);
}

/* The rows in queue order, as listed and as popped. */
static void expect_rows(const char *rows)
{
    struct pkv_request *listed[NUM];
    size_t num = strlen(rows);

    ck_assert_uint_eq(pkv_waiting_num(queue), num);
    pkv_waiting_list(queue, listed);
    for (size_t i = 0; i < num; i++)
        ck_assert_uint_eq(listed[i]->row, (uint64_t)(rows[i] - '0'));
    for (size_t i = 0; i < num; i++) {
        struct pkv_request *head = pkv_waiting_head(queue);

        ck_assert_uint_eq(head->row, (uint64_t)(rows[i] - '0'));
        pkv_waiting_remove(queue, head);
    }
    ck_assert_ptr_null(pkv_waiting_head(queue));
}

START_TEST(smaller_keys_first_then_arrival)
{
    pkv_waiting_put_new(queue, r[0], 3);
    pkv_waiting_put_new(queue, r[1], -1);
    pkv_waiting_put_new(queue, r[2], 3);
    pkv_waiting_put_new(queue, r[3], -1);
    pkv_waiting_put_new(queue, r[4], 0);
    expect_rows("13402");
}
END_TEST

/* Of two that are put at the front, the later stands first, past every key. */
START_TEST(the_front_is_before_all)
{
    pkv_waiting_put_new(queue, r[0], -9);
    pkv_waiting_put_front(queue, r[1]);
    pkv_waiting_put_front(queue, r[2]);
    pkv_waiting_put_new(queue, r[3], INT64_MIN);
    expect_rows("2130");
}
END_TEST

START_TEST(the_tail_is_behind_its_equals)
{
    pkv_waiting_put_new(queue, r[0], 0);
    pkv_waiting_put_new(queue, r[1], 0);
    pkv_waiting_remove(queue, r[0]);
    pkv_waiting_put_tail(queue, r[0], 0);
    pkv_waiting_put_new(queue, r[2], 0);
    expect_rows("102");
}
END_TEST

/* Back by order: where its arrival puts it, however late it comes back. */
START_TEST(again_is_by_arrival)
{
    pkv_waiting_put_new(queue, r[0], 0);
    pkv_waiting_put_new(queue, r[1], 0);
    pkv_waiting_remove(queue, r[0]);
    pkv_waiting_put_new(queue, r[2], 0);
    pkv_waiting_put_again(queue, r[0], 0);
    expect_rows("012");
}
END_TEST

START_TEST(back_is_where_it_was)
{
    pkv_waiting_put_new(queue, r[0], 1);
    pkv_waiting_put_new(queue, r[1], 2);
    pkv_waiting_put_front(queue, r[2]);
    pkv_waiting_remove(queue, r[2]);
    pkv_waiting_remove(queue, r[1]);
    pkv_waiting_put_back(queue, r[1]);
    pkv_waiting_put_back(queue, r[2]);
    expect_rows("201");
}
END_TEST

START_TEST(an_abort_leaves_the_middle)
{
    for (size_t i = 0; i < NUM; i++)
        pkv_waiting_put_new(queue, r[i], 0);
    pkv_waiting_remove(queue, r[2]);
    expect_rows("0134");
}
END_TEST

START_TEST(a_reference_ends_with_its_request)
{
    struct pkv_request_ref ref = pkv_request_ref(r[1]);
    struct pkv_request *reused;

    ck_assert_ptr_eq(pkv_request_get(ref), r[1]);
    ck_assert_uint_eq(pkv_request_store_num_live(store), NUM);
    pkv_request_close(store, cache, r[1]);
    ck_assert_ptr_null(pkv_request_get(ref));
    reused = open_request(7, "seven");
    ck_assert_ptr_eq(reused, r[1]);
    ck_assert_ptr_null(pkv_request_get(ref));
    ck_assert_uint_eq(pkv_request_store_num_live(store), NUM);
}
END_TEST

START_TEST(an_id_is_its_own_or_the_row)
{
    char id[16];

    ck_assert_uint_eq(pkv_request_id(r[3], id, sizeof id), 1);
    ck_assert_str_eq(id, "3");
    pkv_request_close(store, cache, r[0]);
    r[0] = open_request(9, "abcdef");
    ck_assert_uint_eq(pkv_request_id(r[0], id, 4), 6);   /* cut, with the whole length */
    ck_assert_str_eq(id, "abc");
}
END_TEST

/* For 0 tokens read 1, but nothing comes out. */
START_TEST(no_output_counts_as_one_token)
{
    static const struct pkv_span text = { 5, 0, 3 };
    const struct pkv_request_spec spec = { .num_prompt_tokens = 3, .content = {
        .prompt = &text, .num_prompt_spans = 1 } };
    struct pkv_request *request = pkv_request_open(store, cache, &spec, NULL);

    ck_assert_ptr_nonnull(request);
    ck_assert(request->emits_nothing);
    ck_assert_uint_eq(request->num_output_tokens, 1);
    ck_assert_uint_eq(request->max_tokens, 1);
}
END_TEST

START_TEST(the_ways_of_a_status)
{
    pkv_request_set_status(r[0], PKV_REQUEST_RUNNING);
    pkv_request_set_status(r[0], PKV_REQUEST_PREEMPTED);
    pkv_request_set_status(r[0], PKV_REQUEST_RUNNING);
    pkv_request_set_status(r[0], PKV_REQUEST_COMPLETED);
    ck_assert_str_eq(pkv_request_status_name(r[0]->status), "completed");
    pkv_request_set_status(r[1], PKV_REQUEST_REJECTED);
    pkv_request_set_status(r[2], PKV_REQUEST_ABORTED);
}
END_TEST

START_TEST(nothing_comes_after_the_end)
{
    pkv_request_set_status(r[0], PKV_REQUEST_ABORTED);
    pkv_request_set_status(r[0], PKV_REQUEST_RUNNING);
}
END_TEST

START_TEST(who_runs_can_not_be_rejected)
{
    pkv_request_set_status(r[0], PKV_REQUEST_RUNNING);
    pkv_request_set_status(r[0], PKV_REQUEST_REJECTED);
}
END_TEST

static Suite *request_suite(void)
{
    Suite *suite = suite_create("request");
    TCase *tests = tcase_create("request");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, smaller_keys_first_then_arrival);
    tcase_add_test(tests, the_front_is_before_all);
    tcase_add_test(tests, the_tail_is_behind_its_equals);
    tcase_add_test(tests, again_is_by_arrival);
    tcase_add_test(tests, back_is_where_it_was);
    tcase_add_test(tests, an_abort_leaves_the_middle);
    tcase_add_test(tests, a_reference_ends_with_its_request);
    tcase_add_test(tests, an_id_is_its_own_or_the_row);
    tcase_add_test(tests, no_output_counts_as_one_token);
    tcase_add_test(tests, the_ways_of_a_status);
    tcase_add_test_raise_signal(tests, nothing_comes_after_the_end, SIGABRT);
    tcase_add_test_raise_signal(tests, who_runs_can_not_be_rejected, SIGABRT);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(request_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
