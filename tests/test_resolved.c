/*
 * test_resolved.c - the resolved text of a scenario: it has every key, loads back to the same, and its
 * sum does not depend on where the file lies; what is left when memory runs out; the list of keys.
 */
#include <string.h>
#include <sys/stat.h>

#include <check.h>

#include "base/alloc.h"
#include "scenario/keys_private.h"
#include "scenario_fixture.h"

#define PAIRS(...) ((const char *const[]){ __VA_ARGS__, NULL, NULL })
#define NO_PAIRS ((const char *const[]){ NULL, NULL })
#define SYNTHETIC                                                                    \
    "kv: {num_blocks: 5}\n"                                                          \
    "traffic: {requests: 3, prompt_tokens: 8, output_tokens: 4}\n"

static char *resolve(const struct pkv_scenario *s)
{
    struct pkv_err err = { .code = PKV_ERR_NONE };
    char *text = pkv_scenario_resolved(s, &err);

    ck_assert_msg(text != NULL, "%s", err.text);
    return text;
}

static const char *const texts[] = {
    MINIMAL,
    SYNTHETIC,
    "title: \"quote \\\" and\\nline \xc3\xa9\"\nquestion: 'why: not?'\n" MINIMAL,
    "kv: {num_gpu_blocks: 2588, block_size: 1}\ntraffic: {trace: t, speedup: 0.000001, limit: 3}\n"
    "step_time: affine:17.8,0.105,0.05,138\ntargets: {ttft_ms: 0.5}\n",
    MINIMAL "scheduler: {on_blocked: skip, max_overtakes: 3, watermark: 0.29}\nstep_time: fixed:0.000003\n",
    MINIMAL "speculation: {method: ngram, num_tokens: 4, accepted: [3, 0, 4]}\n",
    MINIMAL "speculation: {method: eagle, num_tokens: 2, acceptance_rate: 0.7}\n",
    MINIMAL "scheduler: {preset: vllm-2025-09, policy: priority, admit: reserve_max}\n",
    "kv: {num_blocks: 5}\ntraffic: {requests: 3, prompt_tokens: {law: lognormal, mean: 0.1, cv: "
    "1.7976931348623157e2}, output_tokens: {law: uniform, min: 1, max: 3}, prefixes: {num: 1, "
    "tokens: 4}, priorities: [{priority: -9223372036854775808, weight: 0.1}], aborts: {share: "
    "0.3, min: 1ns, max: 2h}, arrivals: {law: constant, rate_per_s: 1e-3}}\n",
    "kv: {num_blocks: 5}\ntraffic: {requests: 3, prompt_tokens: {law: empirical, trace: t}, "
    "output_tokens: {law: empirical, trace: ./t, max: 7}}\n",
};
#define NUM_TEXTS ((int)(sizeof(texts) / sizeof(*texts)))

/* Some keys of each kind, varied by the bits of `bits`. */
static size_t vary(unsigned bits, struct pkv_setting *out)
{
    static const struct pkv_setting variants[] = {
        { "kv.block_size", "512", "--set" },
        { "kv.prefix_cache", "off", "--set" },
        { "scheduler.policy", "priority", "--set" },
        { "scheduler.reserve_full_isl", "false", "--set" },
        { "scheduler.publish", "computed", "--set" },
        { "scheduler.max_model_len", "131072", "--set" },
        { "traffic.seed", "18446744073709551615", "--set" },
        { "scheduler.priority_victim", "safe", "--set" },
    };
    size_t num = 0;

    for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++)
        if (bits >> i & 1)
            out[num++] = variants[i];
    return num;
}

START_TEST(the_resolved_text_loads_back_to_the_same_from_another_folder)
{
    struct pkv_setting settings[8];
    struct pkv_err err = { .code = PKV_ERR_NONE };

    fixture_make_dir("elsewhere");
    for (unsigned bits = 0; bits < 256; bits++) {
        size_t num = vary(bits, settings);
        struct pkv_scenario *s = fixture_load(texts[_i], settings, num), *back;
        char *text = resolve(s), *again;
        struct stat former, latter;

        fixture_write("elsewhere/scenario.yaml", text);
        back = pkv_scenario_load(fixture_path("elsewhere/scenario.yaml"), NULL, 0, &err);
        ck_assert_msg(back != NULL, "%llu: %s\n%s", (unsigned long long)err.line, err.text, text);
        again = resolve(back);
        ck_assert_str_eq(text, again);
        ck_assert_uint_eq(back->sched.num_blocks, s->sched.num_blocks);
        ck_assert_mem_eq(&back->sched.policies, &s->sched.policies, sizeof(s->sched.policies));
        ck_assert_mem_eq(&back->step_time, &s->step_time, sizeof(s->step_time));
        ck_assert_double_eq(back->sched.watermark, s->sched.watermark);
        ck_assert_int_eq(back->is_trace, s->is_trace);
        ck_assert_int_eq(back->step_time_given, s->step_time_given);
        ck_assert_uint_eq(back->seed, s->seed);
        ck_assert_double_eq(back->synth.prompt.mean, s->synth.prompt.mean);
        ck_assert_uint_eq(back->synth.num_priorities, s->synth.num_priorities);
        fixture_write("t", "");
        fixture_write("t.jsonl", "");
        if (s->is_trace) {
            ck_assert_int_eq(stat(s->trace, &former), 0);
            ck_assert_int_eq(stat(back->trace, &latter), 0);
            ck_assert_uint_eq(former.st_ino, latter.st_ino);
        }
        pkv_scenario_free_text(text);
        pkv_scenario_free_text(again);
        pkv_scenario_destroy(s);
        pkv_scenario_destroy(back);
    }
}
END_TEST

START_TEST(the_resolved_text_has_every_key_and_no_other)
{
    struct pkv_scenario *s = fixture_load("kv: {num_blocks: 8}\ntraffic: {trace: /t}\n"
                                          "step_time: fixed:1\n", NULL, 0);
    char *text = resolve(s);

    ck_assert_str_eq(text,
                     "# Every key of the run. num_gpu_blocks, which counts the null block, is 9.\n"
                     "kv:\n  block_size: 16\n  num_blocks: 8\n  prefix_cache: true\n"
                     "  groups: [{type: full}]\n"
                     "scheduler:\n  preset: vllm\n  order: fcfs\n  admit: whole_prompt\n"
                     "  on_blocked: stop\n  preempt: newest\n  on_preempt: recompute\n"
                     "  requeue: front\n  grow: one_by_one\n  publish: alloc\n  mix: mixed\n"
                     "  evict: lru\n  cache: blocks\n  layout: paged\n  watermark: 0\n"
                     "  unhashed_free: head\n  blocked_prefill: stop\n  priority_victim: vllm\n"
                     "  chunk_end: free\n  oversized: reject\n  fork: false\n  max_num_seqs: 256\n"
                     "  max_num_batched_tokens: 8192\n  enable_chunked_prefill: true\n"
                     "  long_prefill_token_threshold: 0\n  max_model_len: 0\n  async_scheduling: false\n"
                     "  lookahead_at_admission: true\nspeculation:\n  method: none\n"
                     "step_time:\n  model: fixed\n  ms: 1\n"
                     "traffic:\n  trace: \"/t\"\n  format: auto\n  lenient_ids: false\n"
                     "  sort: false\n  speedup: 1\n  hash_block_size: 0\n"
                     "  seed: 1\nmeasure:\n  after: 0s\n  until: end\n");
    pkv_scenario_free_text(text);
    pkv_scenario_destroy(s);
}
END_TEST

static void sum_of(const char *text, const char *const *pairs, char out[65])
{
    struct pkv_scenario *s = fixture_load_set(text, pairs);
    char *resolved = resolve(s);

    pkv_scenario_sha256(resolved, out);
    pkv_scenario_free_text(resolved);
    pkv_scenario_destroy(s);
}

START_TEST(the_sum_does_not_depend_on_where_the_scenario_lies)
{
    char here[65], there[65], other[65], abc[65];

    sum_of("kv: {num_blocks: 8}\ntraffic: {trace: t.jsonl}\n", NO_PAIRS, here);
    sum_of("kv: {num_blocks: 8}\ntraffic: {trace: /another/place/t.jsonl}\n", NO_PAIRS, there);
    ck_assert_str_eq(here, there);
    sum_of("kv: {num_blocks: 8}\ntraffic: {trace: u.jsonl}\n", NO_PAIRS, other);
    ck_assert_str_ne(here, other);
    sum_of("kv: {num_blocks: 8}\ntraffic: {trace: t.jsonl}\n", PAIRS("kv.block_size", "17"), other);
    ck_assert_str_ne(here, other);
    /* FIPS 180-4, one-block message */
    pkv_scenario_sha256("abc", abc);
    ck_assert_str_eq(abc, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
END_TEST

START_TEST(no_memory_leaves_nothing)
{
    const struct pkv_setting setting = { .key = "scheduler.on_blocked", .value = "skip",
                                         .origin = "--set" };
    uint64_t n = 1;

    fixture_write("scenario.yaml", texts[_i]);
    for (;; n++) {
        struct pkv_err err = { .code = PKV_ERR_NONE };
        struct pkv_scenario *s;
        char *text = NULL;

        pkv_alloc_fail_at(n, n % 2);
        s = pkv_scenario_load(fixture_path("scenario.yaml"), &setting, 1, &err);
        if (s)
            text = pkv_scenario_resolved(s, &err);
        pkv_alloc_fail_at(0, 0);
        if (!text)
            ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
        pkv_scenario_destroy(s);
        pkv_scenario_free_text(text);
        if (text)
            break;
    }
    ck_assert_uint_gt(n, 20);
}
END_TEST

START_TEST(the_list_of_keys_is_sound)
{
    ck_assert_int_gt(KEY_COUNT, 1);
    for (int i = KEY_NONE + 1; i < KEY_COUNT; i++) {
        const struct key *key = &keys[i];

        ck_assert_ptr_nonnull(key->name);
        ck_assert_int_ne(key->kind, KIND_NONE);
        ck_assert_int_eq(key_find(key->name), i);
        ck_assert_ptr_null(section_find(key->name));
        ck_assert_int_lt(key->decider, i);   /* read before it */
        ck_assert(!(key->standard && key->required));
        if (key->kind == KIND_WORD)
            ck_assert_ptr_nonnull(key->words);
        for (const char *dot = strchr(key->name, '.'); dot; dot = strchr(dot + 1, '.')) {
            char section[64] = "";

            memcpy(section, key->name, (size_t)(dot - key->name));
            ck_assert_msg(section_find(section) != NULL, "no section %s", section);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resolved");
    TCase *tests = tcase_create("resolved");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, fixture_begin, fixture_end);
    tcase_add_loop_test(tests, the_resolved_text_loads_back_to_the_same_from_another_folder, 0,
                        NUM_TEXTS);
    tcase_add_test(tests, the_resolved_text_has_every_key_and_no_other);
    tcase_add_test(tests, the_sum_does_not_depend_on_where_the_scenario_lies);
    tcase_add_loop_test(tests, no_memory_leaves_nothing, 0, NUM_TEXTS);
    tcase_add_test(tests, the_list_of_keys_is_sound);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
