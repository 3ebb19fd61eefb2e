/*
 * test_nearest.c - which word or file was meant. Edits are counted by hand.
 */
#include "base/nearest.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))

static const char *const words[] = {"newest", "oldest", "least_lost", "least_preempted", "fit"};

static const struct {
    const char *text, *dashes, *said;
} suggestions[] = {
    {"newst", "", "; the nearest is 'newest'"},          /* one edit, and one is a third of 5 */
    {"newist", "", "; the nearest is 'newest'"},
    {"olwest", "", "; the nearest is 'oldest'"},         /* one edit, newest would be two */
    {"nldest", "", "; the nearest is 'oldest'"},
    {"least", "", "; the nearest is 'least_lost'"},      /* begins two: the first */
    {"least_p", "", "; the nearest is 'least_preempted'"},
    {"lest-lost", "", "; the nearest is 'least_lost'"},  /* two edits of three */
    {"fat", "", "; the nearest is 'fit'"},
    {"fa", "", ""},                                      /* no edit is allowed to two letters */
    {"neweost", "--", "; the nearest is --newest"},
    {"random", "", ""},
    {"", "", ""},
};

START_TEST(words_are_suggested)
{
    char out[PKV_SUGGESTION_SIZE];
    ck_assert_str_eq(pkv_suggest(out, suggestions[_i].text, suggestions[_i].dashes, words, NUM(words)),
                     suggestions[_i].said);
}
END_TEST

START_TEST(of_equally_near_ones_the_first)
{
    static const char *const both[] = {"bat", "cat"};
    char out[PKV_SUGGESTION_SIZE];
    ck_assert_str_eq(pkv_suggest(out, "rat", "", both, 2), "; the nearest is 'bat'");
}
END_TEST

START_TEST(a_word_under_another_name)
{
    struct pkv_nearest nearest;
    char out[PKV_SUGGESTION_SIZE];
    pkv_nearest_begin(&nearest, "num_block");
    pkv_nearest_offer_as(&nearest, "block_size", "kv.block_size");
    pkv_nearest_offer_as(&nearest, "num_blocks", "kv.num_blocks");
    ck_assert_str_eq(pkv_nearest_say(&nearest, "", out), "; the nearest is 'kv.num_blocks'");
}
END_TEST

/* NULL = nothing is suggested. The tests run in the folder. */
static const struct {
    const char *path, *near;
} files[] = {
    {"spik.yaml", "spike.yaml"},
    {"spike", "spike.yaml"},                      /* its beginning */
    {"./spika.yaml", "./spike.yaml"},
    {"spam.yaml", NULL},                          /* 3 edits; one is allowed to its four letters */
    {"bat.yaml", "cat.yaml"},                     /* as near as rat.yaml, and first by its bytes */
    {"victims.yaml", "scenarios/victims.yaml"},   /* below */
    {"victim", "scenarios/victims.yaml"},
    {"scenarios/spike.yaml", "spike.yaml"},       /* not there, but here */
    {"sample.jsonl", "scenarios/traces/sample.jsonl"},
    {"traces", NULL},                             /* a folder below, and no file */
    {"hid", NULL},                                /* .hidden, and two letters are too few */
    {"sp", NULL},
    {"folder.yam", NULL},                         /* a folder is no file */
    {"", NULL},
};

static void make_files(const char *folder)
{
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(mkdir("scenarios", 0777) | mkdir("scenarios/traces", 0777) |
                     mkdir("folder.yaml", 0777), 0);
    write_text(".", "spike.yaml", "");
    write_text(".", "rat.yaml", "");
    write_text(".", "cat.yaml", "");
    write_text(".", ".hidden", "");
    write_text("scenarios", "victims.yaml", "");
    write_text("scenarios/traces", "sample.jsonl", "");
}

static void remove_files(const char *folder)
{
    remove_folder("scenarios/traces");
    remove_folder("scenarios");
    remove_folder("folder.yaml");
    ck_assert_int_eq(chdir(".."), 0);
    remove_folder(folder);
}

START_TEST(files_are_suggested)
{
    const char *folder = make_folder();
    char want[200] = "cannot be opened: No such file or directory";
    struct pkv_err err = {0};
    make_files(folder);
    if (files[_i].near)
        snprintf(want + strlen(want), sizeof want - strlen(want), "; the nearest is '%s'",
                 files[_i].near);
    ck_assert_int_eq(pkv_fail_open(&err, files[_i].path, ENOENT), -1);
    remove_files(folder);
    ck_assert_str_eq(err.text, want);
    ck_assert_str_eq(err.path, files[_i].path);
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
}
END_TEST

START_TEST(only_what_is_not_there_is_looked_for)
{
    const char *folder = make_folder();
    struct pkv_err err = {0};
    make_files(folder);
    ck_assert_int_eq(pkv_fail_open(&err, "spik.yaml", EACCES), -1);
    remove_files(folder);
    ck_assert_str_eq(err.text, "cannot be opened: Permission denied");
}
END_TEST

/* A name may be longer than an error: then the error is told alone. */
START_TEST(long_names)
{
    char path[4000];
    struct pkv_err err = {0};
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '\0';
    path[2000] = '/';
    ck_assert_int_eq(pkv_fail_open(&err, path, ENOENT), -1);
    ck_assert_str_eq(err.text, "cannot be opened: No such file or directory");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nearest");
    TCase *c = tcase_create("nearest");
    tcase_add_loop_test(c, words_are_suggested, 0, NUM(suggestions));
    tcase_add_test(c, of_equally_near_ones_the_first);
    tcase_add_test(c, a_word_under_another_name);
    tcase_add_loop_test(c, files_are_suggested, 0, NUM(files));
    tcase_add_test(c, only_what_is_not_there_is_looked_for);
    tcase_add_test(c, long_names);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
