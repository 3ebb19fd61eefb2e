/*
 * test_engine_log.c - the step log of small runs, line by line, worked out by hand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "base/out.h"
#include "pagedkv/engine.h"
#include "pagedkv/metrics.h"

#define STEP_NS INT64_C(1000000)

/* Rows from an array; a prompt is text of the request's own. */
struct load {
    const struct pkv_request_spec *specs;
    size_t num, next;
    struct pkv_span prompt;
};

static int next_spec(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct load *load = ctx;

    (void)err;
    if (load->next == load->num)
        return 0;
    *out = load->specs[load->next];
    out->row = load->next++;
    load->prompt = (struct pkv_span){.origin = pkv_origin(PKV_ORIGIN_OWN, out->row),
                                     .count = out->num_prompt_tokens};
    out->max_tokens = out->num_output_tokens;
    out->content = (struct pkv_content){
        .root = pkv_content_root(NULL, NULL), .prompt = &load->prompt, .num_prompt_spans = 1,
        .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, out->row)};
    return 1;
}

static struct pkv_request_spec spec(const char *id, int64_t step, uint32_t prompt,
                                    uint32_t output)
{
    return (struct pkv_request_spec){
        .id = id, .arrival_ns = step * STEP_NS, .abort_ns = PKV_NO_TIME,
        .deadline_ns = PKV_NO_TIME, .num_prompt_tokens = prompt, .num_output_tokens = output};
}

/* Preset vllm on blocks of 4 tokens, six tokens a step. */
static struct pkv_sched_config small_sched(uint32_t num_blocks)
{
    struct pkv_sched_config config = {
        .num_blocks = num_blocks, .groups = {{&pkv_group_full, 4, 0}}, .num_groups = 1,
        .prefix_cache = true, .has_null_block = true, .max_num_seqs = 8,
        .max_num_batched_tokens = 6, .enable_chunked_prefill = true,
        .unhashed_free = PKV_END_HEAD, .oversized = PKV_OVERSIZED_WAIT};

    for (int i = 0; i < PKV_CHOICE_COUNT; i++) {
        size_t num;
        pkv_policies_set(&config.policies, (enum pkv_choice)i,
                         pkv_policy_list((enum pkv_choice)i, &num)[0]);
    }
    return config;
}

static int keep_line(void *ctx, const char *text, size_t length, struct pkv_err *err)
{
    struct pkv_text *lines = ctx;

    (void)err;
    pkv_text_bytes(lines, text, length);
    pkv_text_add(lines, "\n");
    return 0;
}

static int run(struct pkv_engine_log_config log_config, uint32_t num_blocks,
               const struct pkv_request_spec *specs, size_t num, struct pkv_text *lines,
               struct pkv_err *err)
{
    struct load load = {.specs = specs, .num = num};
    int status = -1;

    log_config.step_ns = STEP_NS;
    log_config.line = keep_line;
    log_config.ctx = lines;
    struct pkv_engine_log *log = pkv_engine_log_create(&log_config, err);
    if (!log)
        return -1;
    const struct pkv_engine_config config = {
        .sched = small_sched(num_blocks),
        .step_time = {.law = PKV_STEP_TIME_FIXED, .fixed_ns = STEP_NS},
        .source = {next_spec, &load}, .sinks = {pkv_engine_log_sink(log)}, .num_sinks = 1,
        .every_step = true, .stuck_steps = 3, .log_evicted = log_config.full};
    struct pkv_engine *engine = pkv_engine_create(&config, err);
    if (engine)
        status = pkv_engine_run(engine, err);
    if (status == 0 && pkv_engine_figures(engine)->outcome == PKV_OUTCOME_STUCK)
        status = pkv_engine_log_stuck(log, 3, 1, 0, err);
    pkv_engine_destroy(engine);
    pkv_engine_log_destroy(log);
    return status;
}

static void expect_lines(struct pkv_engine_log_config config, uint32_t num_blocks,
                         const struct pkv_request_spec *specs, size_t num, const char *want)
{
    struct pkv_text lines = {0};
    struct pkv_err err = {0};

    ck_assert_msg(run(config, num_blocks, specs, num, &lines, &err) == 0, "%s", err.text);
    ck_assert_str_eq(lines.text, want);
    pkv_text_free(&lines);
}

/*
 * Two requests, 3 + 3 and 5 + 2 tokens, a pool of 6 blocks.
 *   step 1  a takes 3 tokens and block 1, b what is left of the budget, 3 tokens and block 2; a
 *           emits. No block is full.
 *   step 2  a stores its 4th position and fills block 1; b its 4th and 5th, fills block 2 and takes
 *           block 3. Both emit; two identities.
 *   step 3  a stores its 5th position in block 4, b its 6th in block 3. Both end.
 */
static const struct pkv_request_spec *two_requests(void)
{
    static struct pkv_request_spec specs[2];

    specs[0] = spec("a", 1, 3, 3);
    specs[1] = spec("b", 1, 5, 2);
    return specs;
}

START_TEST(a_full_log_has_every_field)
{
    expect_lines((struct pkv_engine_log_config){.full = true}, 6, two_requests(), 2,
        "{\"step\":1,\"new\":[[\"a\",0],[\"b\",0]],\"resumed\":[],"
        "\"sched\":[[\"a\",3],[\"b\",3]],\"preempted\":[],\"aborted\":[],\"finished\":[],"
        "\"gen\":1,\"free_sched\":4,\"free\":4,\"waiting\":[],\"running\":[\"a\",\"b\"],"
        "\"n_waiting\":0,\"n_running\":2,\"preempt_total\":0,\"cached_blocks\":0,"
        "\"blocks\":{\"a\":[[1]],\"b\":[[2]]},\"evicted\":[]}\n"
        "{\"step\":2,\"new\":[],\"resumed\":[],\"sched\":[[\"a\",1],[\"b\",2]],"
        "\"preempted\":[],\"aborted\":[],\"finished\":[],\"gen\":2,\"free_sched\":3,\"free\":3,"
        "\"waiting\":[],\"running\":[\"a\",\"b\"],\"n_waiting\":0,\"n_running\":2,"
        "\"preempt_total\":0,\"cached_blocks\":2,\"blocks\":{\"b\":[[3]]},\"evicted\":[]}\n"
        "{\"step\":3,\"new\":[],\"resumed\":[],\"sched\":[[\"a\",1],[\"b\",1]],"
        "\"preempted\":[],\"aborted\":[],\"finished\":[\"a\",\"b\"],\"gen\":2,\"free_sched\":2,"
        "\"free\":6,\"waiting\":[],\"running\":[],\"n_waiting\":0,\"n_running\":0,"
        "\"preempt_total\":0,\"cached_blocks\":2,\"blocks\":{\"a\":[[4]]},\"evicted\":[]}\n");
}
END_TEST

START_TEST(a_brief_log_has_the_fields_of_trace_recordings)
{
    expect_lines((struct pkv_engine_log_config){.brief = true}, 6, two_requests(), 1,
        "{\"step\":1,\"new\":[[\"a\",0]],\"resumed\":[],\"sched\":[[\"a\",3]],\"preempted\":[],"
        "\"finished\":[],\"gen\":1,\"free_sched\":5,\"free\":5,\"n_waiting\":0,\"n_running\":1,"
        "\"preempt_total\":0}\n"
        "{\"step\":2,\"new\":[],\"resumed\":[],\"sched\":[[\"a\",1]],\"preempted\":[],"
        "\"finished\":[],\"gen\":1,\"free_sched\":5,\"free\":5,\"n_waiting\":0,\"n_running\":1,"
        "\"preempt_total\":0}\n"
        "{\"step\":3,\"new\":[],\"resumed\":[],\"sched\":[[\"a\",1]],\"preempted\":[],"
        "\"finished\":[\"a\"],\"gen\":1,\"free_sched\":4,\"free\":6,\"n_waiting\":0,"
        "\"n_running\":0,\"preempt_total\":0}\n");
}
END_TEST

/* An abort in the arrival step of a request without an id: a step with nothing in it, as it was the
 * only one. The default log has no block ids and no queues. */
START_TEST(an_abort_is_listed_and_a_row_number_is_an_id)
{
    struct pkv_request_spec only = spec(NULL, 2, 3, 3);

    only.abort_ns = only.arrival_ns;
    expect_lines((struct pkv_engine_log_config){0}, 6, &only, 1,
        "{\"step\":2,\"new\":[],\"resumed\":[],\"sched\":[],\"preempted\":[],"
        "\"aborted\":[\"0\"],\"finished\":[],\"gen\":0,\"free_sched\":6,\"free\":6,"
        "\"n_waiting\":0,\"n_running\":0,\"preempt_total\":0,\"cached_blocks\":0}\n");
}
END_TEST

/* 13 tokens need 4 blocks, the pool has 2: three idle steps and the closing record. */
START_TEST(a_stuck_run_has_a_closing_record)
{
    struct pkv_request_spec only = spec("big", 1, 13, 2);
    char want[2048] = "";

    for (int step = 1; step <= 3; step++) {
        char line[512];
        snprintf(line, sizeof line,
                 "{\"step\":%d,\"new\":[],\"resumed\":[],\"sched\":[],\"preempted\":[],"
                 "\"finished\":[],\"gen\":0,\"free_sched\":2,\"free\":2,\"n_waiting\":1,"
                 "\"n_running\":0,\"preempt_total\":0}\n", step);
        strcat(want, line);
    }
    strcat(want, "{\"step\":3,\"stuck\":true,\"n_waiting\":1,\"n_running\":0}\n");
    expect_lines((struct pkv_engine_log_config){.brief = true}, 2, &only, 1, want);
}
END_TEST

START_TEST(every_failed_allocation_is_told)
{
    for (uint64_t n = 1;; n++) {
        struct pkv_text lines = {0};
        struct pkv_err err = {0};
        uint64_t before = pkv_alloc_count();
        pkv_alloc_fail_at(n, 0);
        int status = run((struct pkv_engine_log_config){.full = true}, 6, two_requests(), 2,
                         &lines, &err);
        bool reached = pkv_alloc_count() - before >= n;
        pkv_alloc_fail_at(0, 0);
        bool told = status < 0 ? err.code == PKV_ERR_MEMORY : lines.failed;
        pkv_text_free(&lines);
        if (!reached) {
            ck_assert_int_eq(status, 0);
            break;
        }
        ck_assert_msg(told, "allocation %llu failed silently", (unsigned long long)n);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_log");
    TCase *tcase = tcase_create("engine_log");

    tcase_add_test(tcase, a_full_log_has_every_field);
    tcase_add_test(tcase, a_brief_log_has_the_fields_of_trace_recordings);
    tcase_add_test(tcase, an_abort_is_listed_and_a_row_number_is_an_id);
    tcase_add_test(tcase, a_stuck_run_has_a_closing_record);
    tcase_add_test(tcase, every_failed_allocation_is_told);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
