/*
 * report_fixture.c - a scenario, a summary and a series made by hand, and the page they make.
 */
#include "report_fixture.h"

#include <string.h>

#include <check.h>

struct pkv_scenario fixed_scenario(void)
{
    static char preset[] = "vllm", trace[] = "traces/day.jsonl";
    struct pkv_scenario s = {
        .preset = preset, .is_trace = true, .trace = trace,
        .step_time = {.law = PKV_STEP_TIME_FIXED, .fixed_ns = MS}, .step_time_given = true,
        .sched = {.num_blocks = 100, .groups = {{&pkv_group_full, 16, 0}}, .num_groups = 1,
                  .prefix_cache = true, .has_null_block = true, .max_num_seqs = 8,
                  .max_num_batched_tokens = 512, .enable_chunked_prefill = true,
                  .unhashed_free = PKV_END_HEAD}};

    for (int i = 0; i < PKV_CHOICE_COUNT; i++) {
        size_t num;
        pkv_policies_set(&s.sched.policies, (enum pkv_choice)i,
                         pkv_policy_list((enum pkv_choice)i, &num)[0]);
    }
    return s;
}

struct pkv_summary plain_summary(void)
{
    return (struct pkv_summary){
        .engine = {.num_steps = 64, .arrived = 1200, .completed = 1190, .rejected = 10,
                   .prompt_tokens = 5000, .output_tokens = 900, .scheduled_tokens = 4000,
                   .recomputed_tokens = 500, .queried_tokens = 5000, .hit_tokens = 1250,
                   .preemptions = 77, .end_ns = 64 * MS, .cache = {.num_blocks = 100}},
        .makespan_ns = 64 * MS, .peak_used_blocks = 100, .mean_used_frac = 0.613,
        .mean_slot_use_frac = 0.5, .requests_per_s = 18.75, .output_tokens_per_s = 14062.5,
        .ttft = {.count = 1190, .sum = (__int128)1190 * 25 * MS / 10, .p50 = 2 * MS,
                 .p90 = 7 * MS, .p95 = 8 * MS, .p99 = 9 * MS, .max = 11 * MS},
        .limit_frac = {[PKV_LIMIT_EMPTY] = 0.05, [PKV_LIMIT_NOTHING] = 0.15,
                       [PKV_LIMIT_BLOCKS] = 0.2, [PKV_LIMIT_GATE] = 0.6}};
}

void fill_series(struct pkv_series_point *points)
{
    for (int64_t i = 0; i < NUM_POINTS; i++) {
        int64_t free = i < 63 ? 100 - i : 37;
        points[i] = (struct pkv_series_point){
            .begin_ns = i * MS, .end_ns = (i + 1) * MS, .min_free = free, .max_free = free,
            .max_waiting = i == 40 ? 1234 : 0, .min_running = 3, .max_running = 3,
            .preemptions = i == 0 ? 1 : i == 63 ? 4 : 0};
    }
}

char *report(const struct pkv_scenario *scenario, const struct pkv_summary *summary,
                    size_t num_points, const struct pkv_trace_notes *notes, unsigned width,
                    bool utf8, bool colour)
{
    struct pkv_series_point points[NUM_POINTS];
    const struct pkv_report_style style = {.width = width, .utf8 = utf8, .colour = colour};
    struct pkv_err err = {0};
    char *text;

    fill_series(points);
    text = pkv_report_summary(scenario, summary, points, num_points, notes, &style, &err);
    ck_assert_msg(text != NULL, "%s", err.text);
    return text;
}

void expect_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in\n%s", part, text);
}

void expect_lacks(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "'%s' in\n%s", part, text);
}
