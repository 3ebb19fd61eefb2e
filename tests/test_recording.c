/*
 * test_recording.c - settings files of recorded engine logs: every key, presets laid over them, and
 * what is refused with its place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "scenario_fixture.h"

static const char whole[] =
    "{\n"
    " \"name\": \"n\", \"note\": \"x\", \"trees\": [\"new\", \"old\"],\n"
    " \"block_size\": 4,\n"
    " \"num_blocks\": 41,\n"
    " \"max_num_seqs\": 3,\n"
    " \"max_num_batched_tokens\": 32,\n"
    " \"enable_prefix_caching\": false,\n"
    " \"enable_chunked_prefill\": false,\n"
    " \"policy\": \"priority\",\n"
    " \"long_prefill_token_threshold\": 12,\n"
    " \"watermark\": 0.2,\n"
    " \"reserve_full_isl\": false,\n"
    " \"max_model_len\": 20,\n"
    " \"groups\": [{\"type\": \"full\", \"block_size\": 8}],\n"
    " \"spec\": null,\n"
    " \"async_scheduling\": false,\n"
    " \"log_blocks\": false,\n"
    " \"max_steps\": 70,\n"
    " \"stuck_steps\": 5,\n"
    " \"prefix_match_unit\": null,\n"
    " \"trace\": {\"file\": \"../data/t.jsonl\", \"rows\": 2000, \"step_ms\": 50, "
    "\"tokens_per_hash_id\": 512}\n"
    "}\n";

static struct pkv_recording *load(const char *text, const char *preset)
{
    struct pkv_err err = { .code = PKV_ERR_NONE };
    struct pkv_recording *r;

    fixture_write("x.config.json", text);
    r = pkv_recording_load(fixture_path("x.config.json"), preset, &err);
    ck_assert_msg(r != NULL, "%llu:%u: %s", (unsigned long long)err.line, err.column, err.text);
    return r;
}

static const char *chosen(const struct pkv_recording *r, enum pkv_choice choice)
{
    return pkv_policies_get(&r->sched.policies, choice)->name;
}

START_TEST(every_key_is_read)
{
    struct pkv_recording *r = load(whole, NULL);

    ck_assert_uint_eq(r->sched.num_blocks, 40);   /* the null block is not usable */
    ck_assert(r->sched.has_null_block);
    ck_assert_uint_eq(r->sched.groups[0].block_size, 8);   /* group-wise sizes win */
    ck_assert_uint_eq(r->sched.num_groups, 1);
    ck_assert_uint_eq(r->sched.max_num_seqs, 3);
    ck_assert_uint_eq(r->sched.max_num_batched_tokens, 32);
    ck_assert(!r->sched.prefix_cache);
    ck_assert(!r->sched.enable_chunked_prefill);
    ck_assert_str_eq(chosen(r, PKV_CHOICE_ORDER), "priority");
    ck_assert_str_eq(chosen(r, PKV_CHOICE_PREEMPT), "priority");
    ck_assert_str_eq(chosen(r, PKV_CHOICE_REQUEUE), "by_order");
    ck_assert_uint_eq(r->sched.long_prefill_token_threshold, 12);
    ck_assert_double_eq(r->sched.watermark, 0.2);
    ck_assert_str_eq(chosen(r, PKV_CHOICE_ADMIT), "first_chunk");
    ck_assert_uint_eq(r->sched.max_model_len, 20);
    ck_assert_int_eq(r->sched.oversized, PKV_OVERSIZED_WAIT);
    ck_assert_int_eq(r->sched.unhashed_free, PKV_END_HEAD);
    ck_assert(!r->log_blocks);
    ck_assert_uint_eq(r->max_steps, 70);
    ck_assert_uint_eq(r->stuck_steps, 5);
    ck_assert_str_eq(r->trace, fixture_path("../data/t.jsonl"));
    ck_assert_uint_eq(r->trace_rows, 2000);
    ck_assert_int_eq(r->trace_step_ms, 50);
    ck_assert_uint_eq(r->tokens_per_hash_id, 512);
    pkv_recording_destroy(r);
}
END_TEST

START_TEST(what_is_left_out_is_as_documented)
{
    struct pkv_recording *r = load("{}", "vllm");

    ck_assert_uint_eq(r->sched.num_blocks, 63);
    ck_assert_uint_eq(r->sched.groups[0].block_size, 16);
    ck_assert_uint_eq(r->sched.max_num_seqs, 128);
    ck_assert_uint_eq(r->sched.max_num_batched_tokens, 2048);
    ck_assert(r->sched.prefix_cache && r->sched.enable_chunked_prefill);
    ck_assert_str_eq(chosen(r, PKV_CHOICE_ORDER), "fcfs");
    ck_assert_str_eq(chosen(r, PKV_CHOICE_ADMIT), "whole_prompt");
    ck_assert(!(r->sched.watermark > 0));
    ck_assert_uint_eq(r->sched.max_model_len, 1048576);
    ck_assert(r->log_blocks);
    ck_assert_uint_eq(r->max_steps, 1000000);
    ck_assert_uint_eq(r->stuck_steps, 3);
    ck_assert_ptr_null(r->trace);
    pkv_recording_destroy(r);
}
END_TEST

START_TEST(another_presets_switches_win_but_not_its_policy)
{
    const char *text = "{\"watermark\": 0.2, \"reserve_full_isl\": true, \"policy\": \"priority\"}";
    struct pkv_recording *r = load(text, "vllm-2025-09");

    ck_assert_str_eq(chosen(r, PKV_CHOICE_ADMIT), "first_chunk");
    ck_assert(!(r->sched.watermark > 0));
    ck_assert_int_eq(r->sched.unhashed_free, PKV_END_TAIL);
    ck_assert_int_eq(r->sched.blocked_prefill, PKV_BLOCKED_PREFILL_SKIP);
    ck_assert_int_eq(r->sched.oversized, PKV_OVERSIZED_WAIT);
    ck_assert_str_eq(chosen(r, PKV_CHOICE_ORDER), "priority");
    ck_assert_str_eq(chosen(r, PKV_CHOICE_PREEMPT), "priority");
    pkv_recording_destroy(r);
    r = load(text, "vllm");
    ck_assert_str_eq(chosen(r, PKV_CHOICE_ADMIT), "whole_prompt");
    ck_assert_double_eq(r->sched.watermark, 0.2);
    pkv_recording_destroy(r);
}
END_TEST

struct wrong {
    const char *text;
    unsigned line, column;
    const char *words;
};
static const struct wrong wrongs[] = {
    { "", 0, 0, "is empty" },
    { "[1]", 1, 1, "one JSON object" },
    { "block_size: 16\n", 1, 0, "" },
    { "{\"block_size\": 16\n", 2, 1, "missing comma" },
    { "{\"block_size\": 16}\n{}\n", 2, 1, "" },
    { "{\"block_size\": [16", 2, 1, "array without a closing bracket" },   /* in JSON's words */
    { "{\"block_size\": sixteen}", 1, 16, "is no JSON value" },
    { "{'block_size': 16}", 1, 2, "in double quotes, not in single ones" },
    { "{\"block_size\": 16, \"block_size\": 16}", 1, 20, "is here twice" },
    { "{\n \"blocks\": 16}", 2, 2, "unknown key 'blocks'" },
    { "{\"kv.block_size\": 16}", 1, 2, "unknown key 'kv.block_size'" },
    { "{\"num_block\": 16}", 1, 2, "recording; the nearest is 'num_blocks'" },
    { "{\"block_size\": \"16\"}", 1, 16, "block_size: \"16\" in quotes is text" },
    { "{\"block_size\": 0}", 1, 16, "block_size: 0 is below 1" },
    { "{\"block_size\": 1.5}", 1, 16, "'1.5' is not a whole number" },
    { "{\"num_blocks\": 1}", 1, 16, "num_blocks: 1 is below 2" },
    { "{\"num_blocks\": null}", 1, 16, "num_blocks: has no value" },
    { "{\"num_blocks\": [4]}", 1, 16, "a list stands where" },
    { "{\"enable_prefix_caching\": 1}", 1, 27, "'1' is neither true nor false" },
    { "{\"policy\": \"lifo\"}", 1, 12, "policy: 'lifo' is not known; known: fcfs, priority" },
    { "{\"watermark\": 2}", 1, 15, "watermark: 2 is not within 0 .. 1" },
    { "{\"async_scheduling\": 1}", 1, 22, "'1' is neither true nor false" },
    { "{\"spec\": 3}", 1, 10, "null or a map of k, method and accept" },
    { "{\"spec\": {\"k\": 3}}", 1, 10, "method is missing" },
    { "{\"spec\": {\"k\": 3, \"method\": \"medusa\", \"accept\": [1]}}", 1, 29,
      "method: 'medusa' is not known" },
    { "{\"spec\": {\"k\": 3, \"method\": \"eagle\", \"accept\": [4]}}", 1, 49,
      "accept: '4' is larger than 3" },
    { "{\"spec\": {\"k\": 3, \"method\": \"eagle\", \"accept\": [3], \"x\": 1}}", 1, 53,
      "spec: unknown key 'x'" },
    { "{\"prefix_match_unit\": 4}", 1, 23, "must be null" },
    { "{\"groups\": [{\"type\": \"sliding\"}]}", 1, 13, "has a window" },
    { "{\"groups\": [{\"type\": \"mamba\"}]}", 1, 22, "'mamba' is not known" },
    { "{\"engine\": \"sglang\", \"page_size\": 1}", 1, 12, "not of 'sglang'" },
    { "{\"max_steps\": 0}", 1, 15, "max_steps: 0 is below 1" },
    { "{\"stuck_steps\": -1}", 1, 17, "stuck_steps: '-1' is negative" },
    { "{\"log_blocks\": \"true\"}", 1, 16, "in quotes is text" },
    { "{\"trace\": 4}", 1, 11, "a map of file, rows" },
    { "{\"trace\": {\"file\": \"t\", \"rows\": 1, \"step_ms\": 1}}", 1, 11,
      "tokens_per_hash_id is missing" },
    { "{\"trace\": {\"file\": \"t\", \"rows\": 1, \"step_ms\": 1, "
      "\"tokens_per_hash_id\": 1, \"x\": 1}}", 1, 75,
      "unknown key 'x'" },
    { "{\"trace\": {\"file\": 3, \"rows\": 0, \"step_ms\": 1, \"tokens_per_hash_id\": 1}}", 1, 31,
      "0 is below 1" },
};

START_TEST(wrong_settings_are_refused_at_their_place)
{
    const struct wrong *w = &wrongs[_i];
    struct pkv_err err = { .code = PKV_ERR_NONE };

    fixture_write("x.config.json", w->text);
    ck_assert_ptr_null(pkv_recording_load(fixture_path("x.config.json"), NULL, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, fixture_path("x.config.json"));
    ck_assert_msg(strstr(err.text, w->words), "'%s' does not say '%s'", err.text, w->words);
    ck_assert_msg(err.line == w->line && (w->column == 0 || err.column == w->column),
                  "%llu:%u instead of %u:%u: %s\n%s", (unsigned long long)err.line, err.column,
                  w->line, w->column, err.text, w->text);
}
END_TEST

START_TEST(an_unknown_preset_and_a_missing_file_are_named)
{
    struct pkv_err err = { .code = PKV_ERR_NONE };

    fixture_write("x.config.json", whole);
    ck_assert_ptr_null(pkv_recording_load(fixture_path("x.config.json"), "vlm", &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "preset: 'vlm' is not known; the nearest is 'vllm'; known: vllm"));
    ck_assert_ptr_null(pkv_recording_load(fixture_path("y.config.json"), NULL, &err));
    ck_assert_str_eq(err.path, fixture_path("y.config.json"));
}
END_TEST

START_TEST(no_memory_leaves_nothing)
{
    uint64_t n = 1;

    fixture_write("x.config.json", whole);
    for (;; n++) {
        struct pkv_err err = { .code = PKV_ERR_NONE };
        struct pkv_recording *r;

        pkv_alloc_fail_at(n, n % 2);
        r = pkv_recording_load(fixture_path("x.config.json"), "vllm-2025-09", &err);
        pkv_alloc_fail_at(0, 0);
        if (r) {
            pkv_recording_destroy(r);
            break;
        }
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
    ck_assert_uint_gt(n, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recording");
    TCase *tests = tcase_create("recording");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, fixture_begin, fixture_end);
    tcase_add_test(tests, every_key_is_read);
    tcase_add_test(tests, what_is_left_out_is_as_documented);
    tcase_add_test(tests, another_presets_switches_win_but_not_its_policy);
    tcase_add_loop_test(tests, wrong_settings_are_refused_at_their_place, 0,
                        (int)(sizeof(wrongs) / sizeof(*wrongs)));
    tcase_add_test(tests, an_unknown_preset_and_a_missing_file_are_named);
    tcase_add_test(tests, no_memory_leaves_nothing);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
