/*
 * test_out.c - files that appear whole or not at all, numbers, and text as JSON and CSV want it.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "base/alloc.h"
#include "base/out.h"
#include "files.h"

static struct pkv_out *open_in(const char *folder, const char *name)
{
    struct pkv_err err = {0};
    struct pkv_out *out = pkv_out_open(folder, name, &err);

    ck_assert_msg(out != NULL, "%s", err.text);
    return out;
}

static void commit(struct pkv_out *out)
{
    struct pkv_err err = {0};

    ck_assert_msg(pkv_out_commit(out, &err) == 0, "%s", err.text);
}

static void expect_text(const char *folder, const char *name, const char *want)
{
    char *text = read_text(folder, name);

    ck_assert_str_eq(text, want);
    free(text);
}

START_TEST(a_file_appears_at_commit)
{
    const char *folder = make_folder();
    struct pkv_out *out;

    write_text(folder, "f", "old");
    out = open_in(folder, "f");
    pkv_out_text(out, "new");
    expect_text(folder, "f", "old");
    ck_assert(file_exists(folder, "f.partial"));
    commit(out);
    expect_text(folder, "f", "new");
    ck_assert_uint_eq(num_files(folder), 1);
    remove_folder(folder);
}
END_TEST

START_TEST(a_dropped_file_leaves_nothing)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");

    pkv_out_text(out, "lost");
    pkv_out_drop(out);
    pkv_out_drop(NULL);
    ck_assert_uint_eq(num_files(folder), 0);
    remove_folder(folder);
}
END_TEST

START_TEST(a_path_that_cannot_be_written_is_named)
{
    const char *folder = make_folder();
    struct pkv_err err = {0};
    char *inside = path_in(folder, "no/f");

    ck_assert_ptr_null(pkv_out_open(NULL, folder, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, folder);
    ck_assert_ptr_null(pkv_out_open(NULL, inside, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, inside);
    free(inside);
    remove_folder(folder);
}
END_TEST

START_TEST(a_full_disk_is_told_at_commit)
{
    struct pkv_err err = {0};
    struct pkv_out *out = pkv_out_open(NULL, "/dev/full", &err);

    if (!out)    /* a system without that device */
        return;
    for (int i = 0; i < 100000; i++)
        pkv_out_text(out, "more than the buffer holds");
    ck_assert_int_eq(pkv_out_flush(out, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_IO);
    ck_assert_int_eq(pkv_out_commit(out, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_IO);
    ck_assert_str_eq(err.path, "/dev/full");
}
END_TEST

/* No file of this process may grow beyond it: a write then fails as on a full disk. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Rows of nine bytes with a line break inside, into a file that may have 100,005: 11,111 of them. */
START_TEST(what_was_written_before_the_disk_was_full_is_kept)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");
    struct pkv_err err = {0};
    char row[16];

    write_text(folder, "f", "of an earlier run");
    limit_files(100005);
    for (int i = 0; i < 20000; i++) {
        snprintf(row, sizeof row, "\"%05d\n\"\n", i);
        pkv_out_text(out, row);
        pkv_out_end_row(out);
    }
    ck_assert_int_eq(pkv_out_commit(out, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_IO);
    char *text = read_text(folder, "f");
    ck_assert_uint_eq(strlen(text), 99999);
    ck_assert_str_eq(text + 99990, "\"11110\n\"\n");
    ck_assert_uint_eq(num_files(folder), 1);
    free(text);
    remove_folder(folder);
}
END_TEST

/* Two bytes are for the tail, so 11,110 rows have room where 11,111 would without it. */
START_TEST(a_full_disk_has_room_for_the_tail)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");
    struct pkv_err err = {0};

    pkv_out_end_with(out, "]\n");
    limit_files(100000);
    for (int i = 0; i < 20000; i++) {
        pkv_out_text(out, "12345678\n");
        pkv_out_end_row(out);
    }
    ck_assert_int_eq(pkv_out_commit(out, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_IO);
    char *text = read_text(folder, "f");
    ck_assert_uint_eq(strlen(text), 99992);
    ck_assert_str_eq(text + 99981, "12345678\n]\n");
    free(text);
    remove_folder(folder);
}
END_TEST

START_TEST(a_whole_file_has_its_tail_once)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");

    pkv_out_end_with(out, "]\n");
    pkv_out_text(out, "row\n");
    pkv_out_end_row(out);
    commit(out);
    expect_text(folder, "f", "row\n]\n");
    remove_folder(folder);
}
END_TEST

START_TEST(without_a_whole_row_nothing_takes_the_name)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");
    struct pkv_err err = {0};

    write_text(folder, "f", "of an earlier run");
    limit_files(1000);
    for (int i = 0; i < 1000; i++)
        pkv_out_text(out, "a line, but not marked as a row\n");
    ck_assert_int_eq(pkv_out_commit(out, &err), -1);
    expect_text(folder, "f", "of an earlier run");
    ck_assert_uint_eq(num_files(folder), 1);
    remove_folder(folder);
}
END_TEST

START_TEST(a_row_that_was_not_ended_is_cut_off)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");

    pkv_out_text(out, "whole\n");
    pkv_out_end_row(out);
    pkv_out_text(out, "ha");
    commit(out);
    expect_text(folder, "f", "whole\n");
    remove_folder(folder);
}
END_TEST

START_TEST(two_writers_of_one_file_do_not_meet)
{
    const char *folder = make_folder();
    char *planted = path_in(folder, "f.partial"), *victim = path_in(folder, "victim");
    struct pkv_out *a, *b;

    write_text(folder, "victim", "precious");
    ck_assert_int_eq(symlink("victim", planted), 0);
    a = open_in(folder, "f");
    b = open_in(folder, "f");
    pkv_out_text(a, "first");
    pkv_out_text(b, "second");
    commit(a);
    expect_text(folder, "f", "first");
    commit(b);
    expect_text(folder, "f", "second");
    expect_text(folder, "victim", "precious");
    ck_assert_uint_eq(num_files(folder), 3);    /* f, the planted link, its victim */
    free(planted);
    free(victim);
    remove_folder(folder);
}
END_TEST

/* Nobody holds the lock of what a killed writer left; what is no plain file of one name stays. */
START_TEST(a_file_left_behind_is_taken_over)
{
    const char *folder = make_folder();
    char *linked = path_in(folder, "f.2.partial"), *victim = path_in(folder, "victim");
    char *pipe_path = path_in(folder, "f.3.partial");

    write_text(folder, "f.partial", "left behind by a killed writer");
    write_text(folder, "victim", "precious");
    ck_assert_int_eq(link(victim, linked), 0);
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
    struct pkv_out *a = open_in(folder, "f"), *b = open_in(folder, "f");
    ck_assert(file_exists(folder, "f.4.partial"));
    pkv_out_text(a, "first");
    pkv_out_text(b, "second");
    /* Closed, but without its name yet: still not to be taken over. */
    ck_assert_int_eq(pkv_out_close(a, NULL), 0);
    struct pkv_out *c = open_in(folder, "f");
    ck_assert(file_exists(folder, "f.5.partial"));
    pkv_out_drop(c);
    ck_assert_int_eq(pkv_out_install(a, NULL), 0);
    expect_text(folder, "f", "first");
    commit(b);
    expect_text(folder, "f", "second");
    expect_text(folder, "victim", "precious");
    ck_assert_uint_eq(num_files(folder), 4);    /* f, the victim, its link, the pipe */
    free(linked);
    free(victim);
    free(pipe_path);
    remove_folder(folder);
}
END_TEST

START_TEST(numbers_are_those_of_printf)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");
    char want[8192] = "";
    size_t used = 0;
    int64_t n = 1;

    for (; n <= INT64_MAX / 10; n *= 10)
        for (int64_t i = -1; i <= 1; i++) {
            pkv_out_i64(out, n + i);
            pkv_out_char(out, ' ');
            pkv_out_i64(out, -(n + i));
            pkv_out_char(out, '\n');
            used += (size_t)snprintf(want + used, sizeof want - used,
                                     "%" PRId64 " %" PRId64 "\n", n + i, -(n + i));
        }
    pkv_out_i64(out, INT64_MIN);
    pkv_out_u64(out, UINT64_MAX);
    snprintf(want + used, sizeof want - used, "%" PRId64 "%" PRIu64, INT64_MIN, UINT64_MAX);
    commit(out);
    expect_text(folder, "f", want);
    remove_folder(folder);
}
END_TEST

START_TEST(a_row_has_commas_between_and_a_newline_behind)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");
    const int64_t row[] = {0, 9, 10, 99, 100, -1, 123456789012};

    pkv_out_csv_row(out, row, 7);
    pkv_out_csv_row(out, row + 6, 1);
    commit(out);
    expect_text(folder, "f", "0,9,10,99,100,-1,123456789012\n123456789012\n");
    remove_folder(folder);
}
END_TEST

START_TEST(long_files_are_whole)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");
    char *text, *at;

    for (int i = 0; i < 200000; i++) {    /* many times the buffer */
        pkv_out_i64(out, i);
        pkv_out_char(out, '\n');
    }
    commit(out);
    text = at = read_text(folder, "f");
    for (int i = 0; i < 200000; i++) {    /* an assertion each would be slow */
        char line[16];
        size_t length = (size_t)snprintf(line, sizeof line, "%d\n", i);
        if (memcmp(at, line, length) != 0)
            ck_abort_msg("line %d is wrong", i + 1);
        at += length;
    }
    ck_assert_int_eq(*at, '\0');
    free(text);
    remove_folder(folder);
}
END_TEST

/* By both ways: to a file and to growing text. */
static void expect_json(const char *text, const char *want)
{
    const char *folder = make_folder();
    struct pkv_out *out = open_in(folder, "f");
    struct pkv_text t = {0};

    pkv_out_json_text(out, text);
    commit(out);
    expect_text(folder, "f", want);
    pkv_text_json(&t, text);
    ck_assert_str_eq(t.text, want);
    pkv_text_free(&t);
    remove_folder(folder);
}

START_TEST(json_text_is_escaped_as_rfc_8259_wants)
{
    expect_json("", "\"\"");
    expect_json("plain", "\"plain\"");
    expect_json("a\"b\\c\n\t\r\x01", "\"a\\\"b\\\\c\\n\\t\\r\\u0001\"");
    expect_json("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}
END_TEST

START_TEST(bytes_that_are_no_utf8_stay_readable)
{
    expect_json("\xff", "\"\\u00ff\"");
    expect_json("\xc3", "\"\\u00c3\"");                      /* cut */
    expect_json("\xc0\xaf", "\"\\u00c0\\u00af\"");           /* overlong */
    expect_json("\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\"");   /* surrogate */
    expect_json("\xf4\x90\x80\x80", "\"\\u00f4\\u0090\\u0080\\u0080\"");   /* above U+10FFFF */
}
END_TEST

static void expect_csv(const char *text, const char *want)
{
    struct pkv_text t = {0};

    pkv_text_csv(&t, text);
    ck_assert_str_eq(t.text, want);
    pkv_text_free(&t);
}

START_TEST(csv_fields_are_quoted_when_they_have_to_be)
{
    expect_csv("plain text", "plain text");
    expect_csv("a,b", "\"a,b\"");
    expect_csv("say \"so\"", "\"say \"\"so\"\"\"");
    expect_csv("two\nlines", "\"two\nlines\"");
    expect_csv("\"", "\"\"\"\"");
    expect_csv(" a", "\" a\"");      /* readers drop blanks around a field without quotes */
    expect_csv("a\t", "\"a\t\"");
    expect_csv("a b", "a b");
    expect_csv("", "");
}
END_TEST

static void expect_visible(const char *text, const char *want)
{
    struct pkv_text t = {0};

    pkv_text_visible(&t, text, strlen(text));
    ck_assert_str_eq(t.text, want);
    pkv_text_free(&t);
}

START_TEST(what_would_steer_a_terminal_is_shown)
{
    expect_visible("plain \xc3\xa9 \xe2\x82\xac", "plain \xc3\xa9 \xe2\x82\xac");
    expect_visible("a\x1b[31m\n\x7f", "a\\x1b[31m\\x0a\\x7f");
    expect_visible("\xc2\x9b" "31m", "\\xc2\\x9b31m");       /* CSI in one character */
    expect_visible("\xff\xc3", "\\xff\\xc3");
}
END_TEST

START_TEST(the_first_byte_that_is_no_utf8_is_found)
{
    size_t at = 99;

    ck_assert(pkv_is_utf8("", 0, &at));
    ck_assert(pkv_is_utf8("\xf0\x9f\x98\x80", 4, &at));
    ck_assert(!pkv_is_utf8("ab\xf0\x9f\x98\x80", 5, &at));      /* cut */
    ck_assert_uint_eq(at, 2);
    ck_assert(!pkv_is_utf8("\xed\xa0\x80", 3, NULL));
}
END_TEST

static void expect_ratio(__int128 num, __int128 den, unsigned decimals, const char *want)
{
    struct pkv_text t = {0};

    pkv_text_ratio(&t, num, den, decimals);
    ck_assert_str_eq(t.text, want);
    pkv_text_free(&t);
}

START_TEST(ratios_are_exact_and_cut)
{
    expect_ratio(0, 7, 9, "0");
    expect_ratio(6, 3, 9, "2");
    expect_ratio(1, 8, 9, "0.125");
    expect_ratio(2, 3, 4, "0.6666");
    expect_ratio(1, 1000, 2, "0");
    expect_ratio(10001, 10, 9, "1000.1");
    expect_ratio(1, 0, 9, "0");
    expect_ratio(INT64_MAX, 1000000, 9, "9223372036854.775807");
    expect_ratio((__int128)INT64_MAX * INT64_MAX, (__int128)INT64_MAX * 2, 9,
                 "4611686018427387903.5");
}
END_TEST

START_TEST(text_remembers_that_memory_ran_out)
{
    struct pkv_text t = {0};

    pkv_text_add(&t, "kept");
    pkv_alloc_fail_at(1, 1);
    for (int i = 0; i < 100; i++)
        pkv_text_fmt(&t, " %d", i);
    pkv_alloc_fail_at(0, 0);
    ck_assert_int_eq(t.failed, 1);
    ck_assert_int_eq(strncmp(t.text, "kept", 4), 0);
    ck_assert_uint_eq(strlen(t.text), t.length);
    pkv_text_free(&t);
}
END_TEST

START_TEST(folders_are_made_with_their_parents)
{
    const char *folder = make_folder();
    char *deep = path_in(folder, "a/b//c/");
    char *below_a_file = path_in(folder, "file/d");
    char *path;
    struct pkv_err err = {0};

    ck_assert_int_eq(pkv_make_dir(deep, &err), 0);
    ck_assert_int_eq(pkv_make_dir(deep, &err), 0);
    ck_assert(file_exists(folder, "a/b/c"));
    write_text(folder, "file", "");
    ck_assert_int_eq(pkv_make_dir(below_a_file, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    free(below_a_file);
    free(deep);
    static const char *const made[] = {"a/b/c", "a/b", "a"};
    for (size_t i = 0; i < 3; i++) {
        path = path_in(folder, made[i]);
        ck_assert_int_eq(remove(path), 0);
        free(path);
    }
    remove_folder(folder);
}
END_TEST

START_TEST(every_failed_allocation_is_told)
{
    const char *folder = make_folder();
    struct pkv_err err = {0};

    for (uint64_t n = 1;; n++) {
        pkv_alloc_fail_at(n, 0);
        struct pkv_out *out = pkv_out_open(folder, "f", &err);
        pkv_alloc_fail_at(0, 0);
        if (out) {
            ck_assert_uint_gt(n, 3);
            pkv_out_drop(out);
            break;
        }
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
        ck_assert_uint_eq(num_files(folder), 0);
    }
    remove_folder(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("out");
    TCase *files = tcase_create("files"), *texts = tcase_create("text");

    tcase_add_test(files, a_file_appears_at_commit);
    tcase_add_test(files, a_dropped_file_leaves_nothing);
    tcase_add_test(files, a_path_that_cannot_be_written_is_named);
    tcase_add_test(files, a_full_disk_is_told_at_commit);
    tcase_add_test(files, what_was_written_before_the_disk_was_full_is_kept);
    tcase_add_test(files, a_full_disk_has_room_for_the_tail);
    tcase_add_test(files, a_whole_file_has_its_tail_once);
    tcase_add_test(files, without_a_whole_row_nothing_takes_the_name);
    tcase_add_test(files, a_row_that_was_not_ended_is_cut_off);
    tcase_add_test(files, two_writers_of_one_file_do_not_meet);
    tcase_add_test(files, a_file_left_behind_is_taken_over);
    tcase_add_test(files, numbers_are_those_of_printf);
    tcase_add_test(files, a_row_has_commas_between_and_a_newline_behind);
    tcase_add_test(files, long_files_are_whole);
    tcase_add_test(files, folders_are_made_with_their_parents);
    tcase_add_test(files, every_failed_allocation_is_told);
    tcase_add_test(texts, json_text_is_escaped_as_rfc_8259_wants);
    tcase_add_test(texts, bytes_that_are_no_utf8_stay_readable);
    tcase_add_test(texts, csv_fields_are_quoted_when_they_have_to_be);
    tcase_add_test(texts, what_would_steer_a_terminal_is_shown);
    tcase_add_test(texts, the_first_byte_that_is_no_utf8_is_found);
    tcase_add_test(texts, ratios_are_exact_and_cut);
    tcase_add_test(texts, text_remembers_that_memory_ran_out);
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, texts);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
