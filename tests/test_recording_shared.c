/*
 * test_recording_shared.c - the settings of every recorded log beside the checkout. What is
 * expected is found in the file's text by plain search, not by our reader.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <check.h>

#include "pagedkv/scenario.h"

static char shared[1024];

/* A whole file; NULL when it cannot be read. The caller frees. */
static char *slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);

    ck_assert_ptr_nonnull(text);
    if (!file) {
        free(text);
        return NULL;
    }
    ck_assert_uint_lt(fread(text, 1, (1 << 16) - 1, file), (1 << 16) - 1);
    fclose(file);
    return text;
}

static bool is_config(const char *name)
{
    size_t length = strlen(name);

    return length > 12 && strcmp(name + length - 12, ".config.json") == 0;
}

static long number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    ck_assert_ptr_nonnull(at);
    return strtol(at + strlen(key), NULL, 10);
}

/* The settings say one "type" a group, then its window or chunk and its block size. */
static void check_groups(const char *text, const struct pkv_sched_config *c)
{
    uint32_t num = 0;

    for (const char *at = strstr(text, "\"type\": "); at; at = strstr(at + 1, "\"type\": "), num++) {
        const char *name = strchr(at + 7, '"') + 1, *end = strchr(at, '}');
        const char *window = strstr(at, "\"window\": "), *chunk = strstr(at, "\"chunk\": ");

        ck_assert_uint_lt(num, c->num_groups);
        ck_assert_int_eq(strncmp(pkv_group_name(&c->groups[num]), name, strcspn(name, "\"")), 0);
        ck_assert_int_eq(c->groups[num].block_size, number_after(at, "\"block_size\": "));
        if (window && window < end)
            ck_assert_int_eq(c->groups[num].size, number_after(at, "\"window\": "));
        else if (chunk && chunk < end)
            ck_assert_int_eq(c->groups[num].size, number_after(at, "\"chunk\": "));
        else
            ck_assert_uint_eq(c->groups[num].size, 0);
    }
    ck_assert_uint_eq(num, c->num_groups);
}

static void check_config(const char *path, const char *preset)
{
    char *text = slurp(path);
    struct pkv_err err = { .code = PKV_ERR_NONE };
    struct pkv_recording *r = pkv_recording_load(path, preset, &err);
    struct stat info;

    ck_assert_ptr_nonnull(text);
    ck_assert_msg(r != NULL, "%s:%llu: %s", path, (unsigned long long)err.line, err.text);
    ck_assert_int_eq(r->sched.num_blocks + 1, number_after(text, "\"num_blocks\": "));
    check_groups(text, &r->sched);
    ck_assert_int_eq(r->sched.max_num_seqs, number_after(text, "\"max_num_seqs\": "));
    ck_assert_int_eq((long)r->max_steps, number_after(text, "\"max_steps\": "));
    ck_assert_int_eq(r->log_blocks, strstr(text, "\"log_blocks\": true") != NULL);
    ck_assert_int_eq(r->sched.prefix_cache,
                     strstr(text, "\"enable_prefix_caching\": true") != NULL);
    ck_assert_int_eq(strcmp(r->sched.policies.order->info.name, "priority") == 0,
                     strstr(text, "\"policy\": \"priority\"") != NULL);
    ck_assert_int_eq(strcmp(r->sched.policies.admit->info.name, "whole_prompt") == 0,
                     !preset && strstr(text, "\"reserve_full_isl\": true") != NULL);
    ck_assert_int_eq(r->sched.async_scheduling,
                     strstr(text, "\"async_scheduling\": true") != NULL);
    ck_assert_int_eq(r->sched.speculation.method == PKV_SPECULATION_NONE,
                     strstr(text, "\"spec\": null") != NULL);
    if (r->sched.speculation.method != PKV_SPECULATION_NONE)
        ck_assert_int_eq(r->sched.speculation.num_tokens, number_after(text, "\"k\": "));
    ck_assert_int_eq(r->trace != NULL, strstr(text, "\"trace\": ") != NULL);
    if (r->trace)
        ck_assert_msg(stat(r->trace, &info) == 0, "no trace at %s", r->trace);
    pkv_recording_destroy(r);
    free(text);
}

static unsigned each_config(const char *folder,
                            void (*check)(const char *path, const char *preset),
                            const char *preset)
{
    char path[2048];
    DIR *dir;
    struct dirent *entry;
    unsigned num = 0;

    snprintf(path, sizeof(path), "%s/%s", shared, folder);
    dir = opendir(path);
    ck_assert_msg(dir != NULL, "no folder %s", path);
    while ((entry = readdir(dir))) {
        if (!is_config(entry->d_name))
            continue;
        snprintf(path, sizeof(path), "%s/%s/%s", shared, folder, entry->d_name);
        check(path, preset);
        num++;
    }
    closedir(dir);
    return num;
}

START_TEST(every_recording_is_read_or_refused)
{
    ck_assert_uint_ge(each_config("golden", check_config, NULL), 46);
    ck_assert_uint_ge(each_config("golden", check_config, "vllm-2025-09"), 46);
}
END_TEST

static void check_other_engine(const char *path, const char *preset)
{
    struct pkv_err err = { .code = PKV_ERR_NONE };

    ck_assert_ptr_null(pkv_recording_load(path, preset, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_msg(strstr(err.text, "this version replays logs of vllm"), "%s: %s", path, err.text);
}

START_TEST(recordings_of_other_engines_are_refused_by_their_name)
{
    ck_assert_uint_gt(each_config("golden_sglang", check_other_engine, NULL), 0);
    ck_assert_uint_gt(each_config("golden_trtllm", check_other_engine, NULL), 0);
}
END_TEST

/* argv[1] = the source root. */
int main(int argc, char **argv)
{
    const char *given = getenv("PKV_SHARED");
    Suite *suite;
    TCase *tests;
    SRunner *runner;
    struct stat info;
    int failed;

    snprintf(shared, sizeof(shared), "%s%s", given ? given : argc > 1 ? argv[1] : ".",
             given ? "" : "/../shared");
    if (stat(shared, &info) != 0) {
        printf("1..0 # SKIP no recorded logs at %s\n", shared);
        return 77;
    }
    suite = suite_create("recording_shared");
    tests = tcase_create("recording_shared");
    tcase_add_test(tests, every_recording_is_read_or_refused);
    tcase_add_test(tests, recordings_of_other_engines_are_refused_by_their_name);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
