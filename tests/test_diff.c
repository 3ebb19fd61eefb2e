/*
 * test_diff.c - two logs that part: what is named, and what is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "files.h"
#include "pagedkv/report.h"

#define STEPS_HEADER "step,time_ns,dur_ns,preempted,sched_tokens\n"
#define REQUESTS_HEADER "id,status,reason,output_tokens\n"

static int diff(const char *a, const char *b, struct pkv_diff_result *out, struct pkv_err *err)
{
    const char *folder = make_folder();
    char *path_a = path_in(folder, "a"), *path_b = path_in(folder, "b");
    int status;

    write_text(folder, "a", a);
    write_text(folder, "b", b);
    status = pkv_diff(path_a, path_b, out, err);
    free(path_a);
    free(path_b);
    remove_folder(folder);
    return status;
}

static void expect_same(const char *a, const char *b)
{
    struct pkv_diff_result result;
    struct pkv_err err = {0};

    ck_assert_msg(diff(a, b, &result, &err) == 0, "%s", err.text);
    ck_assert_msg(result.same, "%s", result.text);
    ck_assert_ptr_nonnull(strstr(result.text, "the same: "));
    pkv_report_free(result.text);
}

/* The text of the difference begins so, and has those totals somewhere. */
static void expect_other(const char *a, const char *b, const char *begin, const char *totals)
{
    struct pkv_diff_result result;
    struct pkv_err err = {0};

    ck_assert_msg(diff(a, b, &result, &err) == 0, "%s", err.text);
    ck_assert(!result.same);
    ck_assert_msg(strncmp(result.text, begin, strlen(begin)) == 0, "'%s'", result.text);
    ck_assert_msg(strstr(result.text, totals) != NULL, "no '%s' in '%s'", totals, result.text);
    pkv_report_free(result.text);
}

static void expect_refused(const char *a, const char *b, const char *file, uint64_t line)
{
    struct pkv_diff_result result;
    struct pkv_err err = {0};

    ck_assert_int_eq(diff(a, b, &result, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_msg(strcmp(strrchr(err.path, '/') + 1, file) == 0, "%s", err.path);
    ck_assert_uint_eq(err.line, line);
}

START_TEST(equal_logs_are_the_same)
{
    expect_same(STEPS_HEADER "0,0,10,0,5\n", STEPS_HEADER "0,0,10,0,5\n");
    expect_same(STEPS_HEADER, STEPS_HEADER);
    expect_same(REQUESTS_HEADER "\"a,\"\"b\",completed,,3\n",
                REQUESTS_HEADER "\"a,\"\"b\",completed,,3\n");
    expect_same("{\"step\":1,\"blocks\":{\"a\":[[1]],\"b\":[[2]]}}\n",
                "{\"blocks\":{\"b\":[[2]], \"a\":[[1]]},\"step\":1}\n");
}
END_TEST

/* A log of which only some rows were kept is compared at those. */
START_TEST(thinned_logs_are_compared_by_step)
{
    static const char all[] = STEPS_HEADER "0,0,10,0,5\n1,10,10,0,6\n2,20,10,1,7\n3,30,10,0,8\n"
                              "4,40,10,2,9\n";
    struct pkv_diff_result result;
    struct pkv_err err = {0};

    expect_same(all, STEPS_HEADER "0,0,10,0,5\n2,20,10,1,7\n4,40,10,2,9\n");
    expect_same(STEPS_HEADER "0,0,10,0,5\n3,30,10,0,8\n", all);
    expect_same(STEPS_HEADER "0,0,10,0,5\n3,30,10,0,8\n", STEPS_HEADER "0,0,10,0,5\n2,20,10,1,7\n");
    expect_other(all, STEPS_HEADER "0,0,10,0,5\n2,20,10,3,7\n",
                 "row 3 differs (step 2): column preempted", "only A has");
    expect_other(all, STEPS_HEADER "0,0,10,0,5\n1,10,10,0,6\n", "row 3 differs: B ends", "rows");
    /* Step 4 is on the stride of 2. */
    expect_other(all, STEPS_HEADER "0,0,10,0,5\n2,20,10,1,7\n",
                 "row 5 differs: B ends before it, A goes on with step 4\n", "only A has 3");
    ck_assert_int_eq(diff(all, STEPS_HEADER "0,0,10,0,5\n3,30,10,0,8\n", &result, &err), 0);
    ck_assert_ptr_nonnull(strstr(result.text, "the same: 2 rows\nthinned out: only A has 3 of the "
                                              "steps, only B 0"));
    pkv_report_free(result.text);
}
END_TEST

/* A log of changes keeps a row only where a count, here of preemptions, is another than before. */
START_TEST(logs_of_changes_may_lack_repeats_alone)
{
    static const char all[] = STEPS_HEADER "0,0,10,0,5\n1,10,10,0,6\n2,20,10,1,7\n3,30,10,1,8\n"
                              "4,40,10,1,9\n5,50,10,0,9\n6,60,10,0,9\n";
    static const char changes[] = STEPS_HEADER "0,0,10,0,5\n2,20,10,1,7\n5,50,10,0,9\n";

    expect_same(all, changes);
    expect_same(changes, all);
    expect_same(changes, STEPS_HEADER "0,0,10,0,5\n3,30,10,1,8\n6,60,10,0,9\n");   /* every 3 */
    expect_other(all, STEPS_HEADER "0,0,10,0,5\n2,20,10,1,7\n3,30,10,0,8\n",
                 "row 4 differs (step 3): column preempted\n", "only A has 4");
    expect_other(all, STEPS_HEADER "0,0,10,0,5\n3,30,10,1,8\n5,50,10,0,9\n",
                 "row 3 differs: A has step 2, B has not, and neither", "only A has 4");
    /* Another run, in which the change came a step sooner. */
    expect_other(changes, STEPS_HEADER "0,0,10,0,5\n1,10,10,1,7\n5,50,10,0,9\n",
                 "row 2 differs: B has step 1, A has not, and neither", "only A has 1");
    /* A difference in a row that both have, but behind the one that only B has. */
    expect_other(changes, STEPS_HEADER "0,0,10,0,5\n1,10,10,1,7\n5,50,11,0,9\n",
                 "row 2 differs: B has step 1, A has not, and neither", "only A has 1");
}
END_TEST

/* The rows that are left show that nothing was thinned out: step 1 repeats the counts of step 0. */
START_TEST(a_log_that_lacks_a_stretch_differs)
{
    static const char all[] = STEPS_HEADER "0,0,10,0,5\n1,10,10,0,6\n2,20,10,0,7\n3,30,10,0,8\n"
                              "4,40,10,0,9\n";

    expect_other(all, STEPS_HEADER "0,0,10,0,5\n1,10,10,0,6\n4,40,10,0,9\n",
                 "row 3 differs: A has step 2, B has not, and neither --every nor --on-change would "
                 "leave it out\n", "only A has 2 of the steps, only B 0");
    expect_other(STEPS_HEADER "2,20,10,0,7\n3,30,10,0,8\n4,40,10,0,9\n", all,
                 "row 1 differs: B has step 0, A has not", "only A has 0 of the steps, only B 2");
    expect_other(STEPS_HEADER, all, "row 1 differs: A ends before it, B goes on with step 0\n",
                 "rows");
}
END_TEST

/* 0, 4, 8, ... and 30: the stride of --every is 2, though the first rows would say 4. */
START_TEST(a_stride_may_turn_out_smaller)
{
    char every[2048] = STEPS_HEADER, all[2048] = STEPS_HEADER, other[2048] = STEPS_HEADER;
    const size_t size = sizeof all;

    for (int step = 0; step <= 66; step++) {
        int count = step < 64 ? step / 4 % 2 : 2 + (step >= 66);    /* changes at 4, 8 .. 64, 66 */
        snprintf(all + strlen(all), size - strlen(all), "%d,%d,1,%d,1\n", step, step, count);
        if (step % 4 == 0 || step == 66)
            snprintf(every + strlen(every), size - strlen(every), "%d,%d,1,%d,1\n", step, step,
                     count);
        /* Now step 2 is a change that was left out, though on the stride. */
        snprintf(other + strlen(other), size - strlen(other), "%d,%d,1,%d,1\n", step, step,
                 step == 2 ? 9 : count);
    }
    expect_same(all, every);
    expect_other(other, every, "row 3 differs: A has step 2, B has not", "only A has 49");
}
END_TEST

START_TEST(logs_without_a_common_step_are_refused)
{
    expect_refused(STEPS_HEADER "0,0,10,0,5\n", STEPS_HEADER "1,10,10,0,6\n", "b", 0);
    expect_refused(STEPS_HEADER "0,0,10,0,5\n2,0,10,0,5\n", STEPS_HEADER "1,10,10,0,6\n", "b", 0);
}
END_TEST

START_TEST(event_logs_are_refused)
{
    static const char events[] = "{\"time_ns\":0,\"step\":0,\"kind\":\"arrive\",\"id\":\"a\"}\n";

    expect_refused(events, events, "a", 0);
}
END_TEST

START_TEST(the_first_row_and_column_that_differ_are_named)
{
    expect_other(STEPS_HEADER "0,0,10,0,5\n1,10,10,2,6\n2,20,10,1,7\n",
                 STEPS_HEADER "0,0,10,0,5\n1,10,10,3,9\n2,20,10,1,7\n",
                 "row 2 differs (step 1): column preempted\n  A  2\n  B  3\n",
                 "preemptions        A                3   B                4   +1\n");
    expect_other(REQUESTS_HEADER "r0,completed,,3\n\"r,1\",aborted,,1\n",
                 REQUESTS_HEADER "r0,completed,,3\n\"r,1\",completed,,1\n",
                 "row 2 differs (id \"r,1\"): column status\n  A  aborted\n  B  completed\n",
                 "completed          A                1   B                2   +1\n");
}
END_TEST

START_TEST(a_quoted_field_may_go_on_over_the_end_of_its_line)
{
    static const char log[] = REQUESTS_HEADER "\"a\n,\"\"b\n\",completed,,3\nr2,completed,,1\n";

    expect_same(log, log);
    expect_other(log, REQUESTS_HEADER "\"a\n,\"\"b\n\",completed,,4\nr2,completed,,1\n",
                 "row 1 differs (id \"a\\x0a,\"\"b\\x0a\"): column output_tokens\n  A  3\n  B  4\n",
                 "output tokens      A                4   B                5   +1\n");
}
END_TEST

START_TEST(names_cannot_steer_a_terminal)
{
    expect_other(REQUESTS_HEADER "\x1b[2J,completed,,3\n", REQUESTS_HEADER,
                 "row 1 differs: B ends before it, A goes on with id \\x1b[2J\n", "rows");
    expect_other("{\"step\":7,\"preempted\":[\"\x7f\"]}\n", "{\"step\":7,\"preempted\":[\"b\"]}\n",
                 "step 7 differs: field preempted, first at preempted[0]\n  A          \"\\x7f\"\n",
                 "records");
}
END_TEST

START_TEST(blank_lines_are_no_rows)
{
    expect_same(STEPS_HEADER "0,0,10,0,5\n", STEPS_HEADER "0,0,10,0,5\n\n");
    expect_same("{\"step\":1}\n", "{\"step\":1}\n \n");
}
END_TEST

START_TEST(standard_input_can_be_only_one_of_them)
{
    struct pkv_diff_result result;
    struct pkv_err err = {0};

    ck_assert_int_eq(pkv_diff("-", "-", &result, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "standard input"));
}
END_TEST

START_TEST(a_shorter_log_is_a_difference)
{
    expect_other(STEPS_HEADER "0,0,10,0,5\n", STEPS_HEADER "0,0,10,0,5\n1,10,10,0,6\n",
                 "row 2 differs: A ends before it, B goes on with step 1\n",
                 "rows               A                1   B                2   +1\n");
    expect_other("{\"step\":4}\n{\"step\":5}\n", "{\"step\":4}\n",
                 "step 5 differs: B ends after 1 record, A goes on\n",
                 "records            A                2   B                1   -1\n");
}
END_TEST

START_TEST(causes_are_named_before_their_consequences)
{
    expect_other("{\"step\":7,\"free\":3,\"gen\":2,\"sched\":[[\"a\",1],[\"b\",4]]}\n",
                 "{\"step\":7,\"free\":2,\"gen\":1,\"sched\":[[\"a\",1],[\"b\",5]]}\n",
                 "step 7 differs: field sched, first at sched[1][1]\n"
                 "  A          4\n  B          5\n"
                 "the whole field\n"
                 "  A          [[\"a\",1],[\"b\",4]]\n  B          [[\"a\",1],[\"b\",5]]\n",
                 "tokens             A                2   B                1   -1\n");
    expect_other("{\"step\":7,\"preempted\":[\"a\"],\"sched\":[]}\n",
                 "{\"step\":7,\"preempted\":[],\"sched\":[1]}\n",
                 "step 7 differs: field preempted, first at preempted[0]\n"
                 "  A          \"a\"\n  B          nothing\n", "records");
}
END_TEST

START_TEST(a_field_that_only_one_side_has_differs)
{
    expect_other("{\"step\":7,\"free\":3}\n", "{\"step\":7}\n",
                 "step 7 differs: field free\n  A          3\n  B          nothing\n", "records");
    expect_other("{\"step\":7}\n", "{\"step\":7,\"odd\":true}\n",
                 "step 7 differs: field odd\n  A          nothing\n  B          true\n", "records");
}
END_TEST

START_TEST(what_cannot_be_compared_is_refused_with_its_place)
{
    expect_refused("", STEPS_HEADER, "a", 0);
    expect_refused(STEPS_HEADER, "{\"step\":1}\n", "b", 0);
    expect_refused("hello\n", "hello\n", "a", 1);
    expect_refused(STEPS_HEADER, "step,time_ns\n", "b", 1);
    expect_refused(STEPS_HEADER "0,0,10,0,5\n1,10\n", STEPS_HEADER "0,0,10,0,5\n", "a", 3);
    expect_refused(STEPS_HEADER "0,0,10,x,5\n", STEPS_HEADER, "a", 2);
    expect_refused(STEPS_HEADER "0,0,10,0,5\n0,10,10,0,5\n", STEPS_HEADER, "a", 3);
    expect_refused(STEPS_HEADER "-1,0,10,0,5\n", STEPS_HEADER, "a", 2);
    expect_refused(REQUESTS_HEADER "\"a,completed,,1\n", REQUESTS_HEADER, "a", 2);
    expect_refused("{\"step\":1}\n", "{\"step\":1}\n{\"step\":\n", "b", 2);
    expect_refused("{\"step\":1}\n", "{\"no\":1}\n", "b", 1);
    expect_refused("{\"step\":1}\n{\"step\":2,\"gen\":1,\"gen\":1}\n", "{\"step\":1}\n", "a", 2);
}
END_TEST

/* Compare with allocation n failing. returns true when it never came to that. */
static bool diff_without_memory(const char *a, const char *b, uint64_t n)
{
    struct pkv_diff_result result;
    struct pkv_err err = {0};
    uint64_t before = pkv_alloc_count();

    pkv_alloc_fail_at(n, 0);
    int status = pkv_diff(a, b, &result, &err);
    bool reached = pkv_alloc_count() - before >= n;
    pkv_alloc_fail_at(0, 0);
    ck_assert_int_eq(status, reached ? -1 : 0);
    ck_assert_int_eq(err.code, reached ? PKV_ERR_MEMORY : PKV_ERR_NONE);
    if (status == 0)
        pkv_report_free(result.text);
    return !reached;
}

START_TEST(every_failed_allocation_is_told)
{
    static const char *const logs[][2] = {
        {STEPS_HEADER "0,0,10,0,5\n", STEPS_HEADER "0,0,10,0,5\n"},
        {STEPS_HEADER "0,0,10,0,5\n1,0,10,0,5\n2,0,10,0,5\n", STEPS_HEADER "0,0,10,0,5\n2,0,10,0,5\n"},
        {"{\"step\":1,\"free\":2}\n", "{\"step\":1,\"free\":2}\n"},
    };
    const char *folder = make_folder();
    char *a = path_in(folder, "a"), *b = path_in(folder, "b");

    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        write_text(folder, "a", logs[i][0]);
        write_text(folder, "b", logs[i][1]);
        uint64_t n = 1;
        while (!diff_without_memory(a, b, n))
            n++;
        ck_assert_uint_gt(n, 3);
    }
    free(a);
    free(b);
    remove_folder(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diff");
    TCase *tcase = tcase_create("diff");

    tcase_add_test(tcase, equal_logs_are_the_same);
    tcase_add_test(tcase, thinned_logs_are_compared_by_step);
    tcase_add_test(tcase, logs_of_changes_may_lack_repeats_alone);
    tcase_add_test(tcase, a_log_that_lacks_a_stretch_differs);
    tcase_add_test(tcase, a_stride_may_turn_out_smaller);
    tcase_add_test(tcase, logs_without_a_common_step_are_refused);
    tcase_add_test(tcase, event_logs_are_refused);
    tcase_add_test(tcase, the_first_row_and_column_that_differ_are_named);
    tcase_add_test(tcase, a_quoted_field_may_go_on_over_the_end_of_its_line);
    tcase_add_test(tcase, names_cannot_steer_a_terminal);
    tcase_add_test(tcase, blank_lines_are_no_rows);
    tcase_add_test(tcase, standard_input_can_be_only_one_of_them);
    tcase_add_test(tcase, a_shorter_log_is_a_difference);
    tcase_add_test(tcase, causes_are_named_before_their_consequences);
    tcase_add_test(tcase, a_field_that_only_one_side_has_differs);
    tcase_add_test(tcase, what_cannot_be_compared_is_refused_with_its_place);
    tcase_add_test(tcase, every_failed_allocation_is_told);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
