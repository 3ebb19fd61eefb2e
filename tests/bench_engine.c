/*
 * bench_engine.c - what a token, a block reference and a step row cost, in ns a unit.
 *
 * Run by `meson test --benchmark`. Seconds of a shared machine are noisy: compare ratios within one
 * run, and count instructions with valgrind --tool=callgrind on a run of the program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/out.h"
#include "pagedkv/engine.h"
#include "pagedkv/policy.h"
#include "pagedkv/trace.h"

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void need(int ok, const struct pkv_err *err)
{
    if (ok)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void report(const char *what, double ns, uint64_t units, const char *unit)
{
    printf("%-52s %9.2f ns a %s\n", what, ns / (double)units, unit);
}

static struct pkv_sched_config scheduler(uint32_t num_blocks, uint32_t block_size, bool cache)
{
    struct pkv_sched_config config = {
        .num_blocks = num_blocks,
        .groups = {{.ops = &pkv_group_full, .block_size = block_size}},
        .num_groups = 1,
        .prefix_cache = cache,
        .has_null_block = true,
        .max_num_batched_tokens = 8192,
        .enable_chunked_prefill = true,
    };
    for (int choice = 0; choice < PKV_CHOICE_COUNT; choice++) {
        size_t num;
        pkv_policies_set(&config.policies, (enum pkv_choice)choice,
                         pkv_policy_list((enum pkv_choice)choice, &num)[0]);
    }
    return config;
}

static double run(const struct pkv_sched_config *sched, const struct pkv_synth_config *traffic,
                  struct pkv_engine_figures *out)
{
    struct pkv_err err = {0};
    struct pkv_synth *synth = pkv_synth_create(traffic, &err);
    need(synth != NULL, &err);
    struct pkv_engine_config config = {
        .sched = *sched,
        .step_time = {.law = PKV_STEP_TIME_FIXED, .fixed_ns = 1000000},
        .source = pkv_synth_source(synth),
        .stuck_steps = 1,
    };
    struct pkv_engine *engine = pkv_engine_create(&config, &err);
    need(engine != NULL, &err);
    double begin = now_ns();
    need(pkv_engine_run(engine, &err) == 0, &err);
    double spent = now_ns() - begin;
    *out = *pkv_engine_figures(engine);
    pkv_engine_destroy(engine);
    pkv_synth_destroy(synth);
    return spent;
}

/* 256 requests decode side by side. */
static void bench_decode(uint32_t block_size)
{
    struct pkv_sched_config sched = scheduler(1600000 / block_size, block_size, false);
    struct pkv_synth_config traffic = {
        .num_requests = 256, .seed = 1, .arrival = PKV_ARRIVAL_AT_ONCE,
        .prompt = {.law = PKV_LENGTH_CONSTANT, .value = 16},
        .output = {.law = PKV_LENGTH_CONSTANT, .value = 6000},
    };
    struct pkv_engine_figures f;
    char what[80];
    double spent = run(&sched, &traffic, &f);
    snprintf(what, sizeof what, "decode, 256 running, block %" PRIu32, block_size);
    report(what, spent, f.output_tokens, "token");
}

/* Prompts with shared beginnings, one token each: the prefix layer at work. */
static void bench_prefix(uint32_t num_blocks)
{
    struct pkv_sched_config sched = scheduler(num_blocks, 16, true);
    struct pkv_synth_config traffic = {
        .num_requests = 20000, .seed = 1, .arrival = PKV_ARRIVAL_CONSTANT, .rate_per_s = 400,
        .prompt = {.law = PKV_LENGTH_UNIFORM, .min = 1000, .max = 9000},
        .output = {.law = PKV_LENGTH_CONSTANT, .value = 1},
        .prefix_num = 200, .prefix_share = 0.8,
        .prefix_tokens = {.law = PKV_LENGTH_UNIFORM, .min = 500, .max = 3000},
    };
    struct pkv_engine_figures f;
    char what[80];
    double spent = run(&sched, &traffic, &f);
    uint64_t references = f.cache.pool.allocated + (f.hit_tokens + f.resumed_hit_tokens) / 16;
    snprintf(what, sizeof what, "prefix layer, %" PRIu32 " blocks of 16", num_blocks);
    report(what, spent, references, "reference");
}

static void bench_row(void)
{
    enum { NUM_ROWS = 400000 };
    struct pkv_err err = {0};
    struct pkv_out *out = pkv_out_open(NULL, "/dev/null", &err);
    need(out != NULL, &err);
    struct pkv_step_row row = {.time_ns = 1234567890123, .dur_ns = 10650000, .running = 31,
                               .free_blocks = 345, .used_blocks = 1655, .cached_blocks = 300,
                               .free_blocks_end = 345, .preemptions_total = 77,
                               .sched_tokens = 31, .decode_tokens = 31, .stored_tokens = 26000,
                               .context_tokens = 26031, .max_gap_ns = 10650000};
    int64_t values[sizeof row / sizeof(int64_t)];
    double begin = now_ns();
    for (int i = 0; i < NUM_ROWS; i++) {
        row.step = i;
        row.time_ns += row.dur_ns;
        memcpy(values, &row, sizeof row);
        pkv_out_csv_row(out, values, 28);
    }
    report("step row of 28 numbers", now_ns() - begin, NUM_ROWS, "row");
    need(pkv_out_commit(out, &err) == 0, &err);
}

int main(void)
{
    bench_decode(16);
    bench_decode(128);
    bench_prefix(2000);
    bench_prefix(80000);
    bench_prefix(1000000);
    bench_row();
    return 0;
}
