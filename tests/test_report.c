/*
 * test_report.c - the terminal summary: its sentences, and plots of series made by hand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "report_fixture.h"

static char *plain_report(unsigned width, bool utf8)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();

    return report(&scenario, &summary, NUM_POINTS, NULL, width, utf8, false);
}

static size_t columns_of_line(const char *line)
{
    size_t columns = 0;

    for (; *line && *line != '\n'; line++)
        columns += ((unsigned char)*line & 0xc0) != 0x80;
    return columns;
}

/* The n-th line (from 0) below the one that holds the title. */
static const char *line_below(const char *text, const char *title, int n)
{
    const char *line = strstr(text, title);

    ck_assert_msg(line != NULL, "no '%s' in\n%s", title, text);
    for (int i = 0; i <= n; i++)
        line = strchr(line, '\n') + 1;
    return line;
}

static void expect_line(const char *text, const char *title, int n, const char *want)
{
    const char *line = line_below(text, title, n);

    ck_assert_msg(strncmp(line, want, strlen(want)) == 0 && line[strlen(want)] == '\n',
                  "expected '%s', got '%.*s'", want, (int)strcspn(line, "\n"), line);
}

START_TEST(the_figures_that_matter_are_said)
{
    char *text = plain_report(100, false);

    expect_has(text, "day.jsonl");
    expect_has(text, "100 blocks of 16 tokens (num_gpu_blocks 101), prefix cache on\n");
    expect_has(text, "preset vllm; at most 8 sequences and 512 tokens a step\n");
    expect_has(text, "1,200 arrived, 1,190 completed, 10 rejected\n");
    expect_lacks(text, "unfinished");
    expect_has(text, "64 steps in 64.0 ms; 18.75 requests/s, 14,063 output tokens/s\n");
    expect_has(text, "25.0 % of prompt tokens (1,250 of 5,000)\n");
    expect_has(text, "77; 12.5 % of scheduled tokens were computed again (500)\n");
    expect_has(text, "61.3 % of the pool held on average, 100.0 % at most; 50.0 % filled\n");
    pkv_report_free(text);
}
END_TEST

/* Rounded, with four digits that matter. */
START_TEST(rates_below_each_other_can_be_told_apart)
{
    static const struct { double rate; const char *said; } known[] = {
        {1.0177, "1.018"}, {1.0196, "1.020"}, {1, "1.000"}, {8.1759, "8.176"}, {18.78, "18.78"},
        {7.4, "7.400"}, {9.9996, "10.00"}, {99.996, "100.0"}, {467.94, "467.9"}, {999.96, "1,000"},
        {0.71334, "0.7133"}, {0.99996, "1.000"}, {0.0021342, "0.002134"}, {0, "0"}};
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char said[64];
        summary.requests_per_s = summary.output_tokens_per_s = known[i].rate;
        snprintf(said, sizeof said, " %s requests/s, %s output tokens/s\n", known[i].said, known[i].said);
        char *text = report(&scenario, &summary, NUM_POINTS, NULL, 100, false, false);
        expect_has(text, said);
        pkv_report_free(text);
    }
}
END_TEST

START_TEST(latencies_are_counted_in_steps_when_a_step_is_fixed)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    char *text = plain_report(80, false);

    expect_line(text, "Latencies in steps", 2,
                "first token          2.5           2           7           9          11");
    expect_lacks(text, "not calibrated");
    pkv_report_free(text);
    scenario.step_time = (struct pkv_step_time){
        .law = PKV_STEP_TIME_AFFINE, .base_ns = 10 * MS, .per_prefill_token_ns = 25000,
        .per_context_token_ns = 138};
    scenario.step_time_given = false;
    text = report(&scenario, &summary, NUM_POINTS, NULL, 100, false, false);
    expect_line(text, "Latencies\n", 2,
                "first token       2.5 ms      2.0 ms      7.0 ms      9.0 ms     11.0 ms");
    expect_has(text, "the larger of 10.0 ms and 25.0 us a prefill token + 138 ns a context token");
    expect_has(text, "step time is a round figure, not calibrated\n");
    pkv_report_free(text);
}
END_TEST

START_TEST(the_largest_cause_stands_first)
{
    char *text = plain_report(80, false);

    expect_line(text, "What the first in line waited for", 0,
                "     60.0 %  #########        gate: its next chunk would fit, the rest would not");
    expect_line(text, "What the first in line waited for", 1,
                "     20.0 %  ###              blocks: its next chunk did not fit");
    expect_line(text, "What the first in line waited for", 2,
                "     20.0 %  ###              nobody waited, but for the step under way");
    expect_has(text, "try next    a larger pool");
    pkv_report_free(text);
}
END_TEST

START_TEST(what_differs_from_the_preset_is_named)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    char *text;

    pkv_policies_set(&scenario.sched.policies, PKV_CHOICE_ADMIT,
                     pkv_policy_find(PKV_CHOICE_ADMIT, "first_chunk"));
    scenario.sched.watermark = 0.05;
    scenario.sched.unhashed_free = PKV_END_TAIL;
    scenario.sched.max_num_seqs = 0;
    text = report(&scenario, &summary, NUM_POINTS, NULL, 200, false, false);
    expect_has(text, "preset vllm, admit: first_chunk, unhashed_free: tail, watermark 0.05; "
                     "unlimited sequences and 512 tokens a step\n");
    pkv_report_free(text);
}
END_TEST

START_TEST(rows_left_out_are_told)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    struct pkv_trace_notes notes = {.format = "azure", .rows = 9, .skipped_no_output = 1};
    char *text = report(&scenario, &summary, NUM_POINTS, &notes, 80, false, false);

    expect_has(text, "day.jsonl (azure)\n            1 row skipped: no response\n");
    pkv_report_free(text);
    notes.skipped_no_output = 1500;
    notes.ids_padded = 2;
    text = report(&scenario, &summary, NUM_POINTS, &notes, 80, false, false);
    expect_has(text, "1,500 rows skipped: no response\n");
    expect_has(text, "2 rows mended");
    pkv_report_free(text);
}
END_TEST

START_TEST(a_run_that_got_stuck_says_why)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    char *text;

    summary.engine.outcome = PKV_OUTCOME_STUCK;
    summary.engine.unfinished = 2;
    strcpy(summary.engine.diagnosis, "request big needs 66 blocks, the pool has 50");
    text = report(&scenario, &summary, NUM_POINTS, NULL, 80, false, false);
    expect_has(text, "2 unfinished\n");
    expect_has(text, "The run could not go on\n"
                     "diagnosis   request big needs 66 blocks, the pool has 50\n");
    expect_lacks(text, "try next");
    pkv_report_free(text);
    summary.engine.is_deadlock = true;
    text = report(&scenario, &summary, NUM_POINTS, NULL, 180, false, false);
    expect_has(text, "try next    a rule that gives somebody up (preempt: newest), or admit: "
                     "reserve_max, under which nobody who runs ever lacks a block\n");
    pkv_report_free(text);
}
END_TEST

/* With the prefix cache empty-handed for want of content, and with two texts in common. */
START_TEST(what_nobody_can_share_is_told)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    struct pkv_trace_notes notes = {.format = "azure", .rows = 9, .rows_read = 9,
                                    .rows_own_text = 9};
    char *text;

    summary.engine.resumed_queried_tokens = 400;
    summary.engine.resumed_hit_tokens = 300;
    text = report(&scenario, &summary, NUM_POINTS, &notes, 100, false, false);
    expect_has(text, "prefix hits none: the trace has no prompt content, nothing can be shared\n"
                     "            resumed requests found 75.0 % of their tokens again\n");
    pkv_report_free(text);
    notes.has_prompts = true;
    text = report(&scenario, &summary, NUM_POINTS, &notes, 100, false, false);
    expect_has(text, "prefix hits none: no two prompts have text in common\n");
    pkv_report_free(text);
    notes.rows_own_text = 7;
    text = report(&scenario, &summary, NUM_POINTS, &notes, 100, false, false);
    expect_has(text, "25.0 % of prompt tokens");
    pkv_report_free(text);
}
END_TEST

START_TEST(what_was_rejected_is_told_with_its_reason)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    char *text;

    strcpy(summary.rejected_reason, "needs 366 blocks, the pool has 100");
    text = report(&scenario, &summary, NUM_POINTS, NULL, 100, false, false);
    expect_has(text, "rejected    10 could never run; the longest: needs 366 blocks, the pool has "
                     "100\n");
    expect_has(text, "900 output; prompts of the rejected not counted\n");
    expect_lacks(text, "room for what was rejected");    /* 10 of 1,200 */
    expect_lacks(text, "NOTHING RAN");
    pkv_report_free(text);
    summary.makespan_ns = 0;
    summary.engine.completed = 0;
    summary.engine.rejected = 1200;
    text = report(&scenario, &summary, 0, NULL, 100, false, false);
    ck_assert_ptr_eq(strstr(text, "NOTHING RAN: every request was rejected, as it could never run\n"),
                     text);
    expect_has(text, "\ntry next    room for what was rejected: needs 366 blocks, the pool has 100\n");
    pkv_report_free(text);
}
END_TEST

START_TEST(what_nothing_looks_at_is_told)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    static char preset[] = "vllm-2025-09";
    char *text;

    summary.num_with_priority = 1;
    summary.num_with_deadline = 1200;
    text = report(&scenario, &summary, NUM_POINTS, NULL, 100, false, false);
    expect_has(text, "1 request has a priority, which is not looked at: order is fcfs\n");
    expect_has(text, "1,200 requests have a deadline, which only order: edf looks at\n");
    pkv_report_free(text);
    scenario.preset = preset;
    pkv_policies_set(&scenario.sched.policies, PKV_CHOICE_ORDER,
                     pkv_policy_find(PKV_CHOICE_ORDER, "priority"));
    text = report(&scenario, &summary, NUM_POINTS, NULL, 200, false, false);
    expect_lacks(text, "order is fcfs");
    expect_has(text, "under order: priority it is known to differ from that engine");
    pkv_report_free(text);
}
END_TEST

START_TEST(goodput_has_its_whole)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    char *text;

    summary.has_targets = true;
    summary.good_requests = 300;
    text = report(&scenario, &summary, NUM_POINTS, NULL, 100, false, false);
    expect_has(text, "goodput     300 of 1,200 (25.0 %) completed within the targets\n");
    pkv_report_free(text);
}
END_TEST

/* 124,816 / 45,396 = 2.7495 and 819 / 250 = 3.276. */
START_TEST(tokens_with_drafts_are_rounded)
{
    static const struct { uint64_t tokens, steps; const char *want; } runs[] = {
        {124816, 45396, "2.75 tokens"}, {819, 250, "3.28 tokens"}, {2, 1, "2.00 tokens"},
        {5, 4, "1.25 tokens"}, {0, 0, "0.00 tokens"}};
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();

    summary.has_speculation = true;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        summary.engine.verified_tokens = runs[i].tokens;
        summary.engine.num_verifications = runs[i].steps;
        char *text = report(&scenario, &summary, NUM_POINTS, NULL, 120, false, false);
        expect_has(text, runs[i].want);
        pkv_report_free(text);
    }
}
END_TEST

START_TEST(a_run_that_was_interrupted_says_so_first)
{
    static const enum pkv_outcome outcomes[] = {PKV_OUTCOME_STUCK, PKV_OUTCOME_LIVELOCK,
                                                PKV_OUTCOME_INTERRUPTED, PKV_OUTCOME_MAX_STEPS,
                                                PKV_OUTCOME_FAILED};
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();

    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        char *text;

        summary.engine.outcome = outcomes[i];
        text = report(&scenario, &summary, NUM_POINTS, NULL, 80, false, false);
        ck_assert_msg(strncmp(text, "NOT FINISHED: ", 14) == 0, "%s", text);
        expect_lacks(text, "try next");
        pkv_report_free(text);
    }
}
END_TEST

/* 64 columns for 64 stretches: width 76. In ASCII a row has three levels, and 100 free blocks are
 * the 12 levels of four rows: f free blocks have int(f x 12 / 100) of them. */
START_TEST(a_plot_shows_every_stretch)
{
    static const char marks[] = " .:#";
    char *text = plain_report(76, false);

    for (int row = 0; row < 4; row++) {
        const char *line = line_below(text, "free blocks, lowest", 3 - row) + 12;
        for (int c = 0; c < 64; c++) {
            int level = (c < 63 ? 100 - c : 37) * 12 / 100 - row * 3;
            level = level < 0 ? 0 : level > 3 ? 3 : level;
            ck_assert_msg(line[c] == marks[level], "row %d column %d: '%c'", row, c, line[c]);
        }
        ck_assert_int_eq(line[64], '\n');
    }
    pkv_report_free(text);
}
END_TEST

START_TEST(a_single_spike_is_never_lost)
{
    for (unsigned width = 40; width <= 180; width++) {
        char *text = plain_report(width, false);
        const char *top = line_below(text, "waiting, most", 0);

        ck_assert_int_eq(strncmp(top, "     1,234 +", 12), 0);
        ck_assert_ptr_nonnull(memchr(top + 12, '#', strcspn(top + 12, "\n")));
        pkv_report_free(text);
    }
}
END_TEST

START_TEST(preemptions_are_counted_once)
{
    char *text = plain_report(76, false);

    /* 4 in the last column fill both rows; 1 of 4 is int(1 x 6 / 4) = 1 level. */
    expect_line(text, "preemptions a column", 0,
                "         4 +                                                               #");
    expect_line(text, "preemptions a column", 1,
                "         0 +.                                                              #");
    pkv_report_free(text);
}
END_TEST

START_TEST(the_axis_spans_the_run)
{
    char *text = plain_report(76, false);

    expect_line(text, "preemptions a column", 2,
                "           +--------------------------------+------------------------------+");
    expect_line(text, "preemptions a column", 3,
                "            0 s                          32.0 ms                     64.0 ms");
    pkv_report_free(text);
}
END_TEST

START_TEST(nothing_to_plot_takes_one_line)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    char *text = report(&scenario, &summary, 30, NULL, 80, false, false);

    expect_has(text, "waiting: nobody at any time\n");
    expect_lacks(text, "waiting, most");
    pkv_report_free(text);
    text = report(&scenario, &summary, 0, NULL, 80, false, false);
    expect_lacks(text, "Over time");
    pkv_report_free(text);
}
END_TEST

START_TEST(no_line_is_wider_than_the_page)
{
    for (unsigned width = 40; width <= 180; width += 7)
        for (int utf8 = 0; utf8 <= 1; utf8++) {
            char *text = plain_report(width, utf8);
            for (const char *line = text; *line; line = strchr(line, '\n') + 1)
                ck_assert_msg(columns_of_line(line) <= width, "%u: '%.*s'", width,
                              (int)strcspn(line, "\n"), line);
            pkv_report_free(text);
        }
}
END_TEST

START_TEST(style_is_kept_to)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    char *text = plain_report(80, false);

    for (const char *at = text; *at; at++)
        ck_assert_int_lt((unsigned char)*at, 128);
    expect_lacks(text, "\033");
    pkv_report_free(text);
    text = report(&scenario, &summary, NUM_POINTS, NULL, 80, true, false);
    expect_has(text, "█");
    expect_lacks(text, "\033");
    pkv_report_free(text);
    text = report(&scenario, &summary, NUM_POINTS, NULL, 80, true, true);
    expect_has(text, "\033[36m");
    pkv_report_free(text);
}
END_TEST

START_TEST(every_failed_allocation_is_told)
{
    struct pkv_scenario scenario = fixed_scenario();
    struct pkv_summary summary = plain_summary();
    struct pkv_series_point points[NUM_POINTS];
    const struct pkv_report_style style = {.width = 80, .utf8 = true};

    fill_series(points);
    for (uint64_t n = 1;; n++) {
        struct pkv_err err = {0};
        pkv_alloc_fail_at(n, 0);
        char *text = pkv_report_summary(&scenario, &summary, points, NUM_POINTS, NULL, &style,
                                        &err);
        pkv_alloc_fail_at(0, 0);
        if (text) {
            ck_assert_uint_gt(n, 5);
            pkv_report_free(text);
            break;
        }
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report");
    TCase *words = tcase_create("words"), *plots = tcase_create("plots");

    tcase_add_test(words, the_figures_that_matter_are_said);
    tcase_add_test(words, rates_below_each_other_can_be_told_apart);
    tcase_add_test(words, latencies_are_counted_in_steps_when_a_step_is_fixed);
    tcase_add_test(words, the_largest_cause_stands_first);
    tcase_add_test(words, what_differs_from_the_preset_is_named);
    tcase_add_test(words, rows_left_out_are_told);
    tcase_add_test(words, a_run_that_got_stuck_says_why);
    tcase_add_test(words, a_run_that_was_interrupted_says_so_first);
    tcase_add_test(words, what_nobody_can_share_is_told);
    tcase_add_test(words, what_was_rejected_is_told_with_its_reason);
    tcase_add_test(words, what_nothing_looks_at_is_told);
    tcase_add_test(words, goodput_has_its_whole);
    tcase_add_test(words, tokens_with_drafts_are_rounded);
    tcase_add_test(words, every_failed_allocation_is_told);
    tcase_add_test(plots, a_plot_shows_every_stretch);
    tcase_add_test(plots, a_single_spike_is_never_lost);
    tcase_add_test(plots, preemptions_are_counted_once);
    tcase_add_test(plots, the_axis_spans_the_run);
    tcase_add_test(plots, nothing_to_plot_takes_one_line);
    tcase_add_test(plots, no_line_is_wider_than_the_page);
    tcase_add_test(plots, style_is_kept_to);
    suite_add_tcase(suite, words);
    suite_add_tcase(suite, plots);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
