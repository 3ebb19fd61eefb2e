/*
 * summary_json.c - summary.json: the figures of a run, keys stable and in a fixed order.
 *
 * Numbers with decimals are divided in integers, digit by digit, and cut: no floating point, no
 * locale. Times of latency_ms have six decimals of a millisecond, which is the nanosecond; means
 * and shares have nine.
 */
#include "metrics/metrics_private.h"

#define SCHEMA 1
#define NS_PER_MS 1000000
#define DECIMALS 9

/* A comma where one is due, and the key. */
static void key(struct pkv_text *t, const char *name)
{
    if (t->length > 0 && t->text[t->length - 1] != '{')
        pkv_text_add(t, ", ");
    pkv_text_json(t, name);
    pkv_text_add(t, ": ");
}

/* The same for a key of the outermost object, each on its line. */
static void top_key(struct pkv_text *t, const char *name)
{
    pkv_text_add(t, t->length > 1 ? ",\n  " : "\n  ");
    pkv_text_json(t, name);
    pkv_text_add(t, ": ");
}

static void begin(struct pkv_text *t, const char *name)
{
    top_key(t, name);
    pkv_text_add(t, "{");
}

static void end(struct pkv_text *t)
{
    pkv_text_add(t, "}");
}

static void count(struct pkv_text *t, const char *name, uint64_t n)
{
    key(t, name);
    pkv_text_u64(t, n);
}

static void top_count(struct pkv_text *t, const char *name, uint64_t n)
{
    top_key(t, name);
    pkv_text_u64(t, n);
}

static void ratio(struct pkv_text *t, const char *name, struct ratio r)
{
    key(t, name);
    pkv_text_ratio(t, r.num, r.den, DECIMALS);
}

static void milliseconds(struct pkv_text *t, const char *name, int64_t ns)
{
    key(t, name);
    pkv_text_ratio(t, ns, NS_PER_MS, DECIMALS);
}

static void add_warm(struct pkv_text *t, const struct pkv_engine_figures *e)
{
    begin(t, "warm");
    count(t, "blocks", e->warm_blocks);
    count(t, "left_out", e->warm_blocks_left_out);
    end(t);
}

static void add_counts(struct pkv_text *t, const struct pkv_summary *s,
                       const struct pkv_metrics_config *config)
{
    const struct pkv_engine_figures *e = &s->engine;
    begin(t, "requests");
    count(t, "arrived", e->arrived);
    count(t, "completed", e->completed);
    count(t, "rejected", e->rejected);
    count(t, "aborted", e->aborted);
    count(t, "unfinished", e->unfinished);
    end(t);
    begin(t, "tokens");
    count(t, "prompt", e->prompt_tokens);
    count(t, "output", e->output_tokens);
    count(t, "scheduled", e->scheduled_tokens);
    count(t, "recomputed", e->recomputed_tokens);
    count(t, "queried", e->queried_tokens);
    count(t, "hit", e->hit_tokens);
    count(t, "resumed_queried", e->resumed_queried_tokens);
    count(t, "resumed_hit", e->resumed_hit_tokens);
    end(t);
    if (s->has_sessions) {
        begin(t, "sessions");
        count(t, "turns", e->turns);
        count(t, "former_tokens", e->former_tokens);
        count(t, "retained_tokens", e->retained_tokens);
        end(t);
    }
    begin(t, "blocks");
    count(t, "num_blocks", e->cache.num_blocks);
    count(t, "num_gpu_blocks", config->num_gpu_blocks);
    count(t, "block_size", config->block_size);
    count(t, "allocated", e->cache.pool.allocated);
    count(t, "released", e->cache.pool.released);
    count(t, "copied", e->cache.num_copied);
    end(t);
    top_count(t, "preemptions", e->preemptions);
    top_count(t, "evicted_blocks", e->cache.num_evicted);
    top_count(t, "steps", e->num_steps);
    top_count(t, "makespan_ns", (uint64_t)s->makespan_ns);
}

static void add_means(struct pkv_text *t, const struct pkv_summary *s, const struct exact_means *m)
{
    begin(t, "peak");
    count(t, "used_blocks", s->peak_used_blocks);
    count(t, "waiting", s->peak_waiting);
    count(t, "running", s->peak_running);
    end(t);
    begin(t, "mean");
    ratio(t, "used_frac", m->used_frac);
    ratio(t, "slot_use_frac", m->slot_use_frac);
    ratio(t, "running", m->running);
    ratio(t, "waiting", m->waiting);
    end(t);
}

/* A sum of at most 2^64 times below 2^63; printed in two halves of the digits when it is large. */
static void add_sum(struct pkv_text *t, __int128 sum)
{
    const __int128 half = (__int128)1000000000000000000;
    if (sum < half) {
        pkv_text_u64(t, (uint64_t)sum);
        return;
    }
    add_sum(t, sum / half);
    pkv_text_fmt(t, "%018llu", (unsigned long long)(sum % half));
}

static void add_distribution(struct pkv_text *t, const char *name, bool last,
                             const struct pkv_distribution *d)
{
    pkv_text_add(t, "\n    ");
    pkv_text_json(t, name);
    pkv_text_add(t, ": {");
    count(t, "count", d->count);
    key(t, "sum_ns");
    add_sum(t, d->sum);
    ratio(t, "mean", (struct ratio){d->sum, (__int128)d->count * NS_PER_MS});
    milliseconds(t, "p50", d->p50);
    milliseconds(t, "p90", d->p90);
    milliseconds(t, "p95", d->p95);
    milliseconds(t, "p99", d->p99);
    milliseconds(t, "max", d->max);
    pkv_text_add(t, last ? "}\n  " : "},");
}

static void add_rates(struct pkv_text *t, const struct pkv_summary *s, const struct exact_means *m)
{
    begin(t, "latency_ms");
    add_distribution(t, "ttft", false, &s->ttft);
    add_distribution(t, "tpot", false, &s->tpot);
    add_distribution(t, "itl", false, &s->itl);
    add_distribution(t, "max_gap", false, &s->max_gap);
    add_distribution(t, "e2e", false, &s->e2e);
    add_distribution(t, "queue", true, &s->queue);
    end(t);
    begin(t, "throughput");
    ratio(t, "requests_per_s", m->requests_per_s);
    ratio(t, "output_tokens_per_s", m->output_tokens_per_s);
    end(t);
    if (s->has_targets) {
        begin(t, "goodput");
        count(t, "requests", s->good_requests);
        ratio(t, "requests_per_s", m->good_requests_per_s);
        ratio(t, "output_tokens_per_s", m->good_output_tokens_per_s);
        end(t);
    }
    begin(t, "limit_frac");
    for (int i = 0; i < PKV_LIMIT_COUNT; i++)
        ratio(t, pkv_limit_name((enum pkv_limit)i), m->limit_frac[i]);
    end(t);
}

/* Shares of all slots of the pool, as mean.slot_use_frac is. */
static void add_waste(struct pkv_text *t, const struct exact_means *m)
{
    begin(t, "waste");
    ratio(t, "reserved_frac", m->reserved_frac);
    ratio(t, "internal_frac", m->internal_frac);
    ratio(t, "external_frac", m->external_frac);
    end(t);
}

static void add_speculation(struct pkv_text *t, const struct pkv_engine_figures *e)
{
    begin(t, "speculation");
    count(t, "verifications", e->num_verifications);
    count(t, "drafted", e->drafted_tokens);
    count(t, "accepted", e->accepted_tokens);
    count(t, "emitted", e->verified_tokens);
    end(t);
}

/* What the other files of the run add up to, which the figures of a window do not tell. */
static void add_whole(struct pkv_text *t, const struct pkv_summary *s)
{
    begin(t, "whole");
    key(t, "requests");
    pkv_text_add(t, "{");
    count(t, "arrived", s->whole.arrived);
    count(t, "completed", s->whole.completed);
    count(t, "rejected", s->whole.rejected);
    count(t, "aborted", s->whole.aborted);
    count(t, "unfinished", s->whole.unfinished);
    end(t);
    count(t, "preemptions", s->whole.preemptions);
    count(t, "makespan_ns", (uint64_t)s->whole.makespan_ns);
    end(t);
}

static void add_swap(struct pkv_text *t, const struct pkv_engine_figures *e)
{
    begin(t, "swap");
    count(t, "preemptions", e->swaps);
    count(t, "host_full", e->swap_fallbacks);
    count(t, "out_blocks", e->swapped_out_blocks);
    count(t, "in_blocks", e->swapped_in_blocks);
    count(t, "out_bytes", e->swapped_out_blocks * e->swap_block_bytes);
    count(t, "in_bytes", e->swapped_in_blocks * e->swap_block_bytes);
    count(t, "link_busy_ns", (uint64_t)e->link_busy_ns);
    count(t, "host_blocks", e->cache.num_host_blocks);
    count(t, "peak_host_blocks", e->peak_host_blocks);
    end(t);
}

/* How samples fared together, and what sharing saved of the blocks that all tables have. */
static void add_samples(struct pkv_text *t, const struct pkv_summary *s, const struct exact_means *m)
{
    const struct pkv_engine_figures *e = &s->engine;
    begin(t, "samples");
    count(t, "requests", e->sampled_requests);
    count(t, "samples", e->samples);
    count(t, "forks", e->forks);
    count(t, "forked_tokens", e->forked_tokens);
    count(t, "dropped_beams", e->dropped_beams);
    count(t, "copied_blocks", e->cache.num_copied);
    ratio(t, "shared_frac", m->shared_frac);
    ratio(t, "peak_shared_frac", m->peak_shared_frac);
    pkv_text_add(t, ",");
    add_distribution(t, "ttft_ms", false, &s->ttft_all);
    add_distribution(t, "e2e_ms", true, &s->e2e_all);
    end(t);
}

int summary_json_text(struct pkv_text *t, const struct pkv_summary *s, const struct exact_means *means,
                      const struct pkv_metrics_config *config, const struct pkv_run_info *info,
                      struct pkv_err *err)
{
    pkv_text_add(t, "{");
    top_count(t, "schema", SCHEMA);
    add_counts(t, s, config);
    add_means(t, s, means);
    add_rates(t, s, means);
    top_count(t, "wall_ns", (uint64_t)info->wall_ns);
    top_key(t, "version");
    pkv_text_json(t, info->version);
    top_count(t, "seed", info->seed);
    top_key(t, "scenario_sha256");
    pkv_text_json(t, info->scenario_sha256);
    top_key(t, "outcome");
    pkv_text_json(t, pkv_outcome_name(s->engine.outcome));
    if (s->engine.is_warm)
        add_warm(t, &s->engine);
    if (s->has_waste)
        add_waste(t, means);
    if (s->has_speculation)
        add_speculation(t, &s->engine);
    if (s->engine.swap_block_bytes > 0)
        add_swap(t, &s->engine);
    if (s->has_samples)
        add_samples(t, s, means);
    if (s->has_window)
        add_whole(t, s);
    pkv_text_add(t, "\n}\n");
    return t->failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for summary.json") : 0;
}

int summary_json_write(struct pkv_out *out, const struct pkv_summary *s,
                       const struct exact_means *means, const struct pkv_metrics_config *config,
                       const struct pkv_run_info *info, struct pkv_err *err)
{
    struct pkv_text t = {0};
    int status = summary_json_text(&t, s, means, config, info, err);
    if (status == 0)
        pkv_out_bytes(out, t.text, t.length);
    pkv_text_free(&t);
    return status;
}
