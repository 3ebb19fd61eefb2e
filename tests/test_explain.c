/*
 * test_explain.c - lives from logs written by hand: a line with several heads in turn, requests let
 * in front of the line, and what happens without memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "base/out.h"
#include "files.h"
#include "pagedkv/report.h"

static const char scenario[] =
    "kv: {num_blocks: 10}\nscheduler: {max_num_seqs: 2}\nstep_time: {model: fixed, ms: 1}\n"
    "traffic: {trace: none.jsonl}\n";
static const char header[] =
    "id,arrival_ns,admitted_ns,first_token_ns,finish_ns,status,reason,prompt_tokens,output_tokens,"
    "hit_tokens,recomputed_tokens,preemptions,peak_blocks,max_gap_ns,queue_ns,tenant,priority\n";

/* One event line; time in steps, the rest as JSON members. */
static void event(struct pkv_text *t, int ms, int step, const char *kind, const char *id,
                  const char *rest)
{
    pkv_text_fmt(t, "{\"time_ns\":%lld,\"step\":%d,\"kind\":\"%s\",\"id\":\"%s\"%s}\n", ms * 1000000LL,
                 step, kind, id, rest);
}

#define ARRIVE ",\"prompt_tokens\":16,\"output_tokens\":1"
#define ADMIT ",\"need_blocks\":1,\"free_blocks\":3,\"hit_tokens\":0,\"sched_tokens\":16"
#define FINISH ",\"output_tokens\":1"
#define BLOCKED(limit, need, free, holders)                                                   \
    ",\"limit\":" limit ",\"need_blocks\":" need ",\"free_blocks\":" free ",\"holders\":[" holders "]"

static void write_summary(const char *folder, int arrived, int completed, int unfinished,
                          int preemptions, int steps)
{
    struct pkv_text t = {0};
    char sha256[65];
    pkv_scenario_sha256(scenario, sha256);
    pkv_text_fmt(&t, "{\"schema\": 1, \"requests\": {\"arrived\": %d, \"completed\": %d, "
                 "\"rejected\": 0, \"aborted\": 0, \"unfinished\": %d}, \"preemptions\": %d, "
                 "\"makespan_ns\": %lld, \"scenario_sha256\": \"%s\"}\n", arrived, completed,
                 unfinished, preemptions, steps * 1000000LL, sha256);
    write_text(folder, "summary.json", t.text);
    write_text(folder, "scenario.yaml", scenario);
    pkv_text_free(&t);
}

/* b is first in line until 30, c until 80, then r itself, for a place among the running. */
static const char *line_of_three(void)
{
    const char *folder = make_folder();
    struct pkv_text t = {0};
    event(&t, 0, 0, "arrive", "a", ARRIVE);
    event(&t, 0, 0, "admit", "a", ADMIT);
    event(&t, 1, 1, "arrive", "b", ARRIVE);
    event(&t, 1, 1, "blocked", "b", BLOCKED("2", "8", "5", "[\"a\",5]"));
    event(&t, 2, 2, "arrive", "c", ARRIVE);
    event(&t, 2, 2, "arrive", "r", ARRIVE);
    event(&t, 30, 29, "finish", "a", FINISH);
    event(&t, 30, 30, "admit", "b", ADMIT);
    event(&t, 30, 30, "blocked", "c", BLOCKED("2", "6", "2", "[\"b\",7],[\"x\",1]"));
    event(&t, 80, 79, "finish", "b", FINISH);
    event(&t, 80, 80, "admit", "c", ADMIT);
    event(&t, 80, 80, "blocked", "r", BLOCKED("4", "1", "4", "[\"c\",6]"));
    event(&t, 100, 99, "finish", "c", FINISH);
    event(&t, 100, 100, "admit", "r", ADMIT);
    event(&t, 101, 100, "first_token", "r", "");
    event(&t, 101, 100, "finish", "r", FINISH);
    write_text(folder, "events.jsonl", t.text);
    pkv_text_clear(&t);
    pkv_text_add(&t, header);
    pkv_text_add(&t, "a,0,0,1000000,30000000,completed,,16,30,0,0,0,1,1000000,0,,0\n"
                     "b,1000000,30000000,31000000,80000000,completed,,16,50,0,0,0,1,1000000,29000000,,0\n"
                     "c,2000000,80000000,81000000,100000000,completed,,16,20,0,0,0,1,1000000,78000000,,0\n"
                     "r,2000000,100000000,101000000,101000000,completed,,16,1,0,0,0,1,,98000000,,0\n");
    write_text(folder, "requests.csv", t.text);
    pkv_text_free(&t);
    write_summary(folder, 4, 4, 0, 0, 101);
    return folder;
}

/* b was refused, then v falls and goes in front of it; w falls, goes in front of v, comes back first.
 * The run ends while b waits. */
static const char *front_of_the_line(void)
{
    const char *folder = make_folder();
    struct pkv_text t = {0};
    event(&t, 0, 0, "arrive", "v", ARRIVE);
    event(&t, 0, 0, "admit", "v", ADMIT);
    event(&t, 0, 0, "arrive", "w", ARRIVE);
    event(&t, 0, 0, "admit", "w", ADMIT);
    event(&t, 1, 0, "first_token", "v", "");
    event(&t, 1, 0, "first_token", "w", "");
    event(&t, 2, 2, "arrive", "b", ARRIVE);
    event(&t, 2, 2, "blocked", "b", BLOCKED("2", "8", "5", ""));
    event(&t, 5, 5, "preempt", "v", ",\"for\":\"w\",\"freed_blocks\":2,\"lost_tokens\":20");
    event(&t, 6, 6, "blocked", "v", BLOCKED("2", "3", "2", "[\"w\",8]"));
    event(&t, 10, 10, "preempt", "w", ",\"for\":\"w\",\"freed_blocks\":8,\"lost_tokens\":25");
    event(&t, 11, 11, "blocked", "w", BLOCKED("5", "11", "10", ""));
    event(&t, 19, 19, "resume", "w", ADMIT);
    event(&t, 20, 20, "preempt", "w", ",\"for\":\"w\",\"freed_blocks\":1,\"lost_tokens\":16");
    event(&t, 21, 21, "resume", "w", ADMIT);
    event(&t, 25, 24, "finish", "w", FINISH);
    event(&t, 25, 25, "resume", "v", ",\"need_blocks\":3,\"free_blocks\":10,\"hit_tokens\":16,"
          "\"sched_tokens\":5");
    event(&t, 26, 25, "finish", "v", FINISH);
    write_text(folder, "events.jsonl", t.text);
    pkv_text_clear(&t);
    pkv_text_add(&t, header);
    pkv_text_add(&t, "w,0,0,1000000,25000000,completed,,16,11,0,41,2,8,9000000,0,,0\n"
                     "v,0,0,1000000,26000000,completed,,16,6,0,4,1,3,21000000,0,,0\n"
                     "b,2000000,,,,unfinished,it ended,16,0,0,0,0,0,,,,0\n");
    write_text(folder, "requests.csv", t.text);
    pkv_text_free(&t);
    write_summary(folder, 3, 2, 1, 3, 30);
    return folder;
}

static char *explain(const char *folder, const char *id, bool json, struct pkv_err *err)
{
    const struct pkv_explain_config config = {.dir = folder, .id = id, .worst = 2, .json = json};
    const struct pkv_report_style style = {.width = 2000};
    return pkv_explain(&config, &style, err);
}

static void expect_told(const char *folder, const char *id, const char *const *parts)
{
    struct pkv_err err = {0};
    char *text = explain(folder, id, false, &err);
    ck_assert_msg(text != NULL, "%s: %s", err.path, err.text);
    for (; *parts; parts++)
        ck_assert_msg(strstr(text, *parts) != NULL, "no '%s' in\n%s", *parts, text);
    pkv_report_free(text);
}

START_TEST(others_in_turn_are_counted_and_the_longest_is_named)
{
    static const char *const parts[] = {
        "step 2      waited 98 steps to be admitted. For 78 steps others were first in line, in 2 "
        "turns; the longest turn, 50 steps, was c's, refused for blocks: its next chunk did not fit "
        "(6 blocks needed, "
        "2 free; b held 7 and x 1). First in line at step 80, refused for sequences: all 2 places taken "
        "(1 block needed, 4 free; c held 6). It ended when c finished\n",
        "99 steps: waiting 98 steps (99.0 %), prefill 1 step (1.0 %), decoding 0 steps, preempted 0 "
        "steps\n", NULL};
    const char *folder = line_of_three();
    expect_told(folder, "r", parts);
    remove_folder(folder);
}
END_TEST

START_TEST(a_preempted_one_is_behind_those_preempted_after_it)
{
    static const char *const of_v[] = {
        /* Not behind b, which it went in front of, but behind w from 11, told at 11, to 19. */
        "step 5      waited 20 steps to be resumed. For 8 steps w was first in line, refused for gate: its "
        "next chunk would fit, the rest would not (11 blocks needed, 10 free). First in line at step 6, "
        "refused for blocks: its next chunk did not fit (3 blocks needed, 2 free; w held 8). It ended when "
        "w finished\n",
        /* 20 lost: the 21st is new; 16 found, 4 again. */
        "step 25     resumed: took 3 of 10 free blocks; 16 tokens found in the prefix cache; 5 tokens "
        "scheduled, 4 of them for the second time\n",
        "26 steps: waiting 0 steps, prefill 1 step (3.8 %), decoding 5 steps (19.2 %), preempted 20 steps "
        "(76.9 %)\n", NULL};
    static const char *const of_w[] = {
        "step 10     preempted itself: short of a block, and the one to give up (preempt: newest); gave "
        "up 8 blocks with 25 computed tokens; computed again 9 steps later\n",
        "step 19     resumed: took 1 of 3 free blocks; nothing of it in the prefix cache; 16 tokens "
        "scheduled of 26 to compute, 16 of them for the second time\n", NULL};
    static const char *const of_b[] = {
        "Request b: unfinished: it ended\n", "step 2      waited 28 steps, and was not let in any more. "
        /* v from 6 to 11, w to 19, v again to 25. */
        "For 19 steps others were first in line, in 3 turns; the longest turn, 8 steps, was w's, refused "
        "for gate: ", "28 steps: waiting 28 steps (100.0 %)", NULL};
    const char *folder = front_of_the_line();
    expect_told(folder, "v", of_v);
    expect_told(folder, "w", of_w);
    expect_told(folder, "b", of_b);
    remove_folder(folder);
}
END_TEST

START_TEST(the_worst_are_sorted_by_what_they_lost)
{
    /* Ends minus arrivals by tokens: a 30/30, b 79/50, c 98/20, r 99/1 ms; the median is the second of
     * four, 1.58 ms. Late: r 99 - 1.58, c 98 - 31.6.
     * c was behind b for 28 of its 78 steps, and first for 50. */
    static const char *const parts[] = {
        "\n  r         late by 97.4 steps: waited 98 steps, 50 steps of it behind c (blocks: 6 blocks "
        "needed, 2 free)\n  c         late by 66.4 steps: waited 78 steps (blocks: 6 blocks "
        "needed, 2 free)\n", NULL};
    const char *folder = line_of_three();
    expect_told(folder, NULL, parts);
    remove_folder(folder);
}
END_TEST

/* Fail the first allocation, the second and so on, with all that follow, until none is left. */
static void fail_each(const char *folder, const char *id, bool json)
{
    for (uint64_t n = 1;; n++) {
        struct pkv_err err = {0};
        pkv_alloc_fail_at(n, 1);
        char *text = explain(folder, id, json, &err);
        pkv_alloc_fail_at(0, 0);
        if (text) {
            pkv_report_free(text);
            ck_assert_uint_gt(n, 20);
            return;
        }
        ck_assert_msg(err.code == PKV_ERR_MEMORY, "allocation %d: %s", (int)n, err.text);
    }
}

START_TEST(every_failed_allocation_is_an_error_of_its_own)
{
    for (int i = 0; i < 4; i++) {
        const char *folder = i / 2 ? front_of_the_line() : line_of_three();
        fail_each(folder, i / 2 ? "v" : "r", i % 2);
        fail_each(folder, NULL, i % 2);
        remove_folder(folder);
    }
}
END_TEST

START_TEST(a_log_of_another_run_is_told)
{
    struct pkv_err err = {0};
    const char *folder = line_of_three();
    write_summary(folder, 4, 4, 0, 1, 101);
    ck_assert_ptr_null(explain(folder, "r", false, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.path, "events.jsonl"));
    ck_assert_ptr_nonnull(strstr(err.text, "preemptions: 0 here, 1 in summary.json"));
    write_summary(folder, 4, 4, 0, 0, 101);
    write_text(folder, "scenario.yaml", "kv: {num_blocks: 10}\ntraffic: {trace: other.jsonl}\n");
    ck_assert_ptr_null(explain(folder, "r", false, &err));
    ck_assert_ptr_nonnull(strstr(err.path, "scenario.yaml"));
    ck_assert_ptr_nonnull(strstr(err.text, "files of different runs"));
    remove_folder(folder);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("explain");
    Suite *suite = suite_create("explain");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, others_in_turn_are_counted_and_the_longest_is_named);
    tcase_add_test(tcase, a_preempted_one_is_behind_those_preempted_after_it);
    tcase_add_test(tcase, the_worst_are_sorted_by_what_they_lost);
    tcase_add_test(tcase, every_failed_allocation_is_an_error_of_its_own);
    tcase_add_test(tcase, a_log_of_another_run_is_told);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
