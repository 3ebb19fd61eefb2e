/*
 * test_scenario.c - what a scenario means: defaults, layers, other names, traffic, and the resolved
 * text that loads back to the same.
 */
#include <stdio.h>
#include <stdlib.h>
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

static const char *chosen(const struct pkv_scenario *s, enum pkv_choice choice)
{
    return pkv_policies_get(&s->sched.policies, choice)->name;
}

START_TEST(what_is_left_out_is_as_documented)
{
    struct pkv_scenario *s = fixture_load(MINIMAL, NULL, 0);

    ck_assert_uint_eq(s->sched.num_blocks, 100);
    ck_assert_uint_eq(s->sched.num_groups, 1);
    ck_assert_ptr_eq(s->sched.groups[0].ops, &pkv_group_full);
    ck_assert_uint_eq(s->sched.groups[0].block_size, 16);
    ck_assert(s->sched.prefix_cache);
    ck_assert(s->sched.has_null_block);
    ck_assert_str_eq(s->preset, "vllm");
    ck_assert_uint_eq(s->sched.max_num_seqs, 256);
    ck_assert_uint_eq(s->sched.max_num_batched_tokens, 8192);
    ck_assert(s->sched.enable_chunked_prefill);
    ck_assert_uint_eq(s->sched.long_prefill_token_threshold, 0);
    ck_assert_uint_eq(s->sched.max_model_len, 0);
    ck_assert(!(s->sched.watermark > 0));
    ck_assert_int_eq(s->sched.unhashed_free, PKV_END_HEAD);
    ck_assert_int_eq(s->sched.blocked_prefill, PKV_BLOCKED_PREFILL_STOP);
    ck_assert_int_eq(s->sched.priority_victim, PKV_PRIORITY_VICTIM_VLLM);
    ck_assert_int_eq(s->sched.oversized, PKV_OVERSIZED_REJECT);
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ORDER), "fcfs");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ADMIT), "whole_prompt");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ON_BLOCKED), "stop");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_PREEMPT), "newest");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_REQUEUE), "front");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_PUBLISH), "alloc");
    ck_assert_int_eq(s->step_time.law, PKV_STEP_TIME_AFFINE);
    ck_assert_int_eq(s->step_time.base_ns, 10000000);
    ck_assert_int_eq(s->step_time.per_prefill_token_ns, 25000);
    ck_assert_int_eq(s->step_time.per_decode_ns, 0);
    ck_assert_int_eq(s->step_time.per_context_token_ns, 0);
    ck_assert(!s->step_time_given);
    ck_assert(s->is_trace);
    ck_assert_str_eq(s->trace, fixture_path("t.jsonl"));
    ck_assert_ptr_null(s->trace_options.format);
    ck_assert_uint_eq(s->trace_options.hash_block_size, 0);      /* as the format has it */
    ck_assert_uint_eq(s->trace_options.limit, 0);
    ck_assert_uint_eq(s->trace_options.speedup_num, 1);
    ck_assert_uint_eq(s->trace_options.speedup_den, 1);
    ck_assert(!s->trace_options.sort && !s->trace_options.lenient_ids);
    ck_assert_uint_eq(s->seed, 1);
    ck_assert_uint_eq(s->sched.seed, 1);
    ck_assert_int_eq(s->target_ttft_ns, 0);
    ck_assert_ptr_null(s->title);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(presets_stand_below_the_file)
{
    struct pkv_scenario *s =
        fixture_load(MINIMAL "scheduler: {blocked_prefill: stop, preset: vllm-2025-09}\n", NULL, 0);

    ck_assert_str_eq(s->preset, "vllm-2025-09");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ADMIT), "first_chunk");
    ck_assert_int_eq(s->sched.unhashed_free, PKV_END_TAIL);
    ck_assert_int_eq(s->sched.blocked_prefill, PKV_BLOCKED_PREFILL_STOP);
    pkv_scenario_destroy(s);

    s = fixture_load_set(MINIMAL, PAIRS("scheduler.preset", "vllm-0.19"));
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ADMIT), "whole_prompt");
    ck_assert_int_eq(s->sched.unhashed_free, PKV_END_TAIL);
    ck_assert_int_eq(s->sched.blocked_prefill, PKV_BLOCKED_PREFILL_STOP);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(settings_win_over_the_file_and_set_over_flags)
{
    const struct pkv_setting settings[] = {
        { .key = "scheduler.max_num_seqs", .value = "7", .origin = "--set" },
        { .key = "scheduler.max_num_seqs", .value = "9", .origin = "--max-num-seqs" },
        { .key = "kv.block_size", .value = "32", .origin = "--block-size" },
        { .key = "scheduler.unhashed_free", .value = "tail", .origin = "--set" },
        { .key = "scheduler.unhashed_free", .value = "head", .origin = "--set" },
    };
    struct pkv_scenario *s =
        fixture_load(MINIMAL "scheduler: {max_num_seqs: 5, unhashed_free: tail}\n", settings, 5);

    ck_assert_uint_eq(s->sched.max_num_seqs, 7);
    ck_assert_uint_eq(s->sched.groups[0].block_size, 32);
    ck_assert_int_eq(s->sched.unhashed_free, PKV_END_HEAD);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(a_setting_replaces_the_same_thing_said_with_another_key)
{
    struct pkv_scenario *s = fixture_load_set(MINIMAL "scheduler: {admit: reserve_max}\n",
                                              PAIRS("kv.num_gpu_blocks", "51",
                                                    "scheduler.reserve_full_isl", "false"));

    ck_assert_uint_eq(s->sched.num_blocks, 50);
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ADMIT), "first_chunk");
    pkv_scenario_destroy(s);

    s = fixture_load_set("kv: {num_gpu_blocks: 9}\ntraffic: {trace: t}\n"
                         "scheduler: {policy: priority, reserve_full_isl: off}\n",
                         PAIRS("kv.num_blocks", "5", "scheduler.requeue", "tail",
                               "scheduler.admit", "whole_prompt"));
    ck_assert_uint_eq(s->sched.num_blocks, 5);
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ADMIT), "whole_prompt");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ORDER), "priority");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_PREEMPT), "priority");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_REQUEUE), "tail");
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(policy_says_order_preempt_and_requeue)
{
    struct pkv_scenario *s = fixture_load(MINIMAL "scheduler: {policy: priority}\n", NULL, 0);

    ck_assert_str_eq(chosen(s, PKV_CHOICE_ORDER), "priority");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_PREEMPT), "priority");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_REQUEUE), "by_order");
    pkv_scenario_destroy(s);
    s = fixture_load_set(MINIMAL "scheduler: {order: priority, preempt: priority}\n",
                         PAIRS("scheduler.policy", "fcfs"));
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ORDER), "fcfs");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_PREEMPT), "newest");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_REQUEUE), "front");
    pkv_scenario_destroy(s);
    s = fixture_load(MINIMAL "scheduler: {order: priority, requeue: tail}\n", NULL, 0);
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ORDER), "priority");
    ck_assert_str_eq(chosen(s, PKV_CHOICE_REQUEUE), "tail");
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(parameters_belong_to_their_policy)
{
    struct pkv_scenario *s =
        fixture_load(MINIMAL "scheduler: {max_overtakes: 12, on_blocked: skip}\n", NULL, 0);

    ck_assert_int_eq(s->sched.policies.params[PKV_CHOICE_ON_BLOCKED][0], 12);
    pkv_scenario_destroy(s);
    s = fixture_load(MINIMAL "scheduler: {on_blocked: skip}\n", NULL, 0);
    ck_assert_int_eq(s->sched.policies.params[PKV_CHOICE_ON_BLOCKED][0], 0);
    pkv_scenario_destroy(s);
    /* another policy set over the file's: its parameter goes with it */
    s = fixture_load_set(MINIMAL "scheduler: {on_blocked: skip, max_overtakes: 12}\n",
                         PAIRS("scheduler.on_blocked", "stop"));
    ck_assert_str_eq(chosen(s, PKV_CHOICE_ON_BLOCKED), "stop");
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(a_groups_block_size_stands_above_the_general_one)
{
    const char *text = "kv: {num_blocks: 9, groups: [{type: full, block_size: 8}], block_size: 4}\n"
                       "traffic: {trace: t}\n";
    struct pkv_scenario *s = fixture_load(text, NULL, 0);

    ck_assert_uint_eq(s->sched.groups[0].block_size, 8);
    pkv_scenario_destroy(s);
    s = fixture_load_set(text, PAIRS("kv.block_size", "64"));
    ck_assert_uint_eq(s->sched.groups[0].block_size, 64);
    pkv_scenario_destroy(s);
}
END_TEST

struct step_time_text {
    const char *text;
    struct pkv_step_time want;
};
static const struct step_time_text step_times[] = {
    { "fixed:1", { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 1000000 } },
    { "fixed:0.000001", { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 1 } },
    { "{model: fixed, ms: 2.5s}", { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 2500000000 } },
    { "{model: fixed, ms: 1500us}", { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 1500000 } },
    { "{model: fixed, ms: 25e-1}", { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 2500000 } },
    { "{model: fixed, ms: 1000e-9}", { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 1 } },
    { "affine:17.8,0.105,0.05,138", { PKV_STEP_TIME_AFFINE, 0, 17800000, 105000, 50000, 138 } },
    { "{model: affine, base_ms: 17.8, per_prefill_token_ms: 0.105, per_decode_ms: 0.05, "
      "per_context_token_ns: 138}", { PKV_STEP_TIME_AFFINE, 0, 17800000, 105000, 50000, 138 } },
    { "{base_ms: 7}", { PKV_STEP_TIME_AFFINE, 0, 7000000, 25000, 0, 0 } },
};

START_TEST(step_times_are_exact)
{
    const struct pkv_step_time *want = &step_times[_i].want;
    struct pkv_scenario *s = fixture_load_set(MINIMAL "step_time: {model: affine, base_ms: 3, "
                                              "per_decode_ms: 9}\n",
                                              PAIRS("step_time", step_times[_i].text));

    ck_assert_int_eq(s->step_time.law, want->law);
    ck_assert_int_eq(s->step_time.fixed_ns, want->fixed_ns);
    ck_assert_int_eq(s->step_time.base_ns, want->base_ns);
    ck_assert_int_eq(s->step_time.per_prefill_token_ns, want->per_prefill_token_ns);
    ck_assert_int_eq(s->step_time.per_decode_ns, want->per_decode_ns);
    ck_assert_int_eq(s->step_time.per_context_token_ns, want->per_context_token_ns);
    ck_assert(s->step_time_given);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(a_part_of_the_step_time_can_be_set_alone)
{
    struct pkv_scenario *s = fixture_load_set(MINIMAL "step_time: affine:3,1,2,4\n",
                                              PAIRS("step_time.per_decode_ms", "9"));

    ck_assert_int_eq(s->step_time.base_ns, 3000000);
    ck_assert_int_eq(s->step_time.per_decode_ns, 9000000);
    pkv_scenario_destroy(s);
    s = fixture_load_set(MINIMAL "step_time: affine:3,1,2,4\n",
                         PAIRS("step_time.model", "fixed", "step_time.ms", "5"));
    ck_assert_int_eq(s->step_time.law, PKV_STEP_TIME_FIXED);
    ck_assert_int_eq(s->step_time.fixed_ns, 5000000);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(synthetic_traffic_is_read_whole)
{
    struct pkv_scenario *s = fixture_load(
        "kv: {num_blocks: 5}\n"
        "traffic:\n"
        "  requests: 1000000\n"
        "  arrivals: {law: poisson, rate_per_s: 2.5}\n"
        "  prompt_tokens: {law: lognormal, mean: 161, cv: 1.2, max: 4096}\n"
        "  output_tokens: {law: empirical, trace: old.jsonl, min: 2}\n"
        "  prefixes: {num: 3, tokens: {law: uniform, min: 10, max: 20}, share: 0.25}\n"
        "  priorities: [-4, {priority: 2, weight: 3.5}]\n"
        "  aborts: {share: 0.125, min: 1ms, max: 2.5s}\n"
        "  seed: 18446744073709551615\n", NULL, 0);
    const struct pkv_synth_config *c = &s->synth;

    ck_assert(!s->is_trace);
    ck_assert_uint_eq(c->num_requests, 1000000);
    ck_assert_uint_eq(c->seed, UINT64_MAX);
    ck_assert_int_eq(c->arrival, PKV_ARRIVAL_POISSON);
    ck_assert_double_eq(c->rate_per_s, 2.5);
    ck_assert_int_eq(c->prompt.law, PKV_LENGTH_LOGNORMAL);
    ck_assert_double_eq(c->prompt.mean, 161);
    ck_assert_double_eq(c->prompt.cv, 1.2);
    ck_assert_uint_eq(c->prompt.max, 4096);
    ck_assert_int_eq(c->output.law, PKV_LENGTH_EMPIRICAL);
    ck_assert_str_eq(c->output.trace, fixture_path("old.jsonl"));
    ck_assert_uint_eq(c->output.min, 2);
    ck_assert_uint_eq(c->output.max, 0);
    ck_assert_uint_eq(c->prefix_num, 3);
    ck_assert_int_eq(c->prefix_tokens.law, PKV_LENGTH_UNIFORM);
    ck_assert_uint_eq(c->prefix_tokens.min, 10);
    ck_assert_uint_eq(c->prefix_tokens.max, 20);
    ck_assert_double_eq(c->prefix_share, 0.25);
    ck_assert_uint_eq(c->num_priorities, 2);
    ck_assert_int_eq(c->priorities[0], -4);
    ck_assert_int_eq(c->priorities[1], 2);
    ck_assert_double_eq(c->priority_weights[0], 1);
    ck_assert_double_eq(c->priority_weights[1], 3.5);
    ck_assert_double_eq(c->abort_share, 0.125);
    ck_assert_int_eq(c->abort_min_ns, 1000000);
    ck_assert_int_eq(c->abort_max_ns, 2500000000);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(bare_numbers_are_constant_lengths)
{
    struct pkv_scenario *s = fixture_load_set(SYNTHETIC, PAIRS("traffic.output_tokens", "0"));

    ck_assert_int_eq(s->synth.arrival, PKV_ARRIVAL_AT_ONCE);
    ck_assert_int_eq(s->synth.prompt.law, PKV_LENGTH_CONSTANT);
    ck_assert_uint_eq(s->synth.prompt.value, 8);
    ck_assert_uint_eq(s->synth.output.value, 0);
    pkv_scenario_destroy(s);
    /* a whole law set anew leaves nothing of the former one */
    s = fixture_load_set("kv: {num_blocks: 5}\ntraffic: {requests: 3, output_tokens: 4, "
                         "prompt_tokens: {law: lognormal, mean: 5, cv: 1, max: 9}}\n",
                         PAIRS("traffic.prompt_tokens", "{law: lognormal, mean: 7, cv: 2}"));
    ck_assert_double_eq(s->synth.prompt.mean, 7);
    ck_assert_uint_eq(s->synth.prompt.max, 0);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(one_kind_of_traffic_replaces_the_other)
{
    struct pkv_scenario *s =
        fixture_load_set("kv: {num_blocks: 5}\ntraffic: {requests: 3, prompt_tokens: 8, "
                         "output_tokens: 4, arrivals: {law: poisson, rate_per_s: 1}, "
                         "priorities: [1, 2]}\n", PAIRS("traffic.trace", "other.jsonl"));

    ck_assert(s->is_trace);
    ck_assert_str_eq(s->trace, "other.jsonl");
    ck_assert_uint_eq(s->synth.num_priorities, 0);
    pkv_scenario_destroy(s);
    s = fixture_load_set("kv: {num_blocks: 5}\n"
                         "traffic: {trace: t, sort: true, speedup: 2, seed: 4}\n",
                         PAIRS("traffic.requests", "3", "traffic.prompt_tokens", "1",
                               "traffic.output_tokens", "1"));
    ck_assert(!s->is_trace);
    ck_assert_ptr_null(s->trace);
    ck_assert_uint_eq(s->synth.num_requests, 3);
    ck_assert_uint_eq(s->seed, 4);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(trace_options_are_read)
{
    struct pkv_scenario *s = fixture_load(
        "kv: {num_blocks: 5, prefix_cache: off}\n"
        "traffic: {trace: /abs/t.jsonl, format: mooncake, columns: 'prompt=a,output=b', time_unit: us, "
        "hash_block_size: 16, lenient_ids: on, sort: true, limit: 10, speedup: 12.50}\n"
        "targets: {ttft_ms: 500, itl_ms: 0.05s}\nmeasure: {after: 250ms, until: 2.5s}\nhorizon: 3s\n",
        NULL, 0);
    ck_assert_int_eq(s->measure_after_ns, 250000000);
    ck_assert_int_eq(s->measure_until_ns + s->horizon_ns, INT64_C(5500000000));
    ck_assert(!s->sched.prefix_cache);
    ck_assert_str_eq(s->trace, "/abs/t.jsonl");
    ck_assert_str_eq(s->trace_options.format, "mooncake");
    ck_assert_uint_eq(s->trace_options.hash_block_size, 16);
    ck_assert_str_eq(s->trace_options.columns, "prompt=a,output=b");
    ck_assert(s->trace_options.lenient_ids && s->trace_options.sort && s->trace_options.time_unit);
    ck_assert_uint_eq(s->trace_options.limit, 10);
    ck_assert_uint_eq(s->trace_options.speedup_num * 10, s->trace_options.speedup_den * 125);
    ck_assert_int_eq(s->target_ttft_ns, 500000000);
    ck_assert_int_eq(s->target_itl_ns, 50000000);
    pkv_scenario_destroy(s);
}
END_TEST

START_TEST(texts_and_paths_of_settings_are_taken_as_they_are)
{
    struct pkv_scenario *s =
        fixture_load_set(MINIMAL, PAIRS("title", "a: [b # c", "traffic.trace", "-"));

    ck_assert_str_eq(s->title, "a: [b # c");
    ck_assert_str_eq(s->trace, "-");
    pkv_scenario_destroy(s);
    s = fixture_load_set(MINIMAL, PAIRS("title", "\"two\\nlines\"", "traffic.trace", "here/t"));
    ck_assert_str_eq(s->title, "two\nlines");
    ck_assert_str_eq(s->trace, "here/t");
    pkv_scenario_destroy(s);
}
END_TEST

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
    MINIMAL "scheduler: {on_blocked: skip, max_overtakes: 3, watermark: 0.29}\n",
    MINIMAL "scheduler: {preset: vllm-2025-09, policy: priority, admit: reserve_max}\n",
    MINIMAL "step_time: fixed:0.000003\n",
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
                     "  oversized: reject\n  max_num_seqs: 256\n  max_num_batched_tokens: 8192\n"
                     "  enable_chunked_prefill: true\n  long_prefill_token_threshold: 0\n"
                     "  max_model_len: 0\n"
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
        if (key->kind == KIND_LATER)
            ck_assert_ptr_nonnull(key->hint);
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
    Suite *suite = suite_create("scenario");
    TCase *tests = tcase_create("scenario");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, fixture_begin, fixture_end);
    tcase_add_test(tests, what_is_left_out_is_as_documented);
    tcase_add_test(tests, presets_stand_below_the_file);
    tcase_add_test(tests, settings_win_over_the_file_and_set_over_flags);
    tcase_add_test(tests, a_setting_replaces_the_same_thing_said_with_another_key);
    tcase_add_test(tests, policy_says_order_preempt_and_requeue);
    tcase_add_test(tests, parameters_belong_to_their_policy);
    tcase_add_test(tests, a_groups_block_size_stands_above_the_general_one);
    tcase_add_loop_test(tests, step_times_are_exact, 0,
                        (int)(sizeof(step_times) / sizeof(*step_times)));
    tcase_add_test(tests, a_part_of_the_step_time_can_be_set_alone);
    tcase_add_test(tests, synthetic_traffic_is_read_whole);
    tcase_add_test(tests, bare_numbers_are_constant_lengths);
    tcase_add_test(tests, one_kind_of_traffic_replaces_the_other);
    tcase_add_test(tests, trace_options_are_read);
    tcase_add_test(tests, texts_and_paths_of_settings_are_taken_as_they_are);
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
