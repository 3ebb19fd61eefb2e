/*
 * metrics.h - what a run leaves behind: step log, request log, event log, figures. Sinks of the
 * engine.
 */
#ifndef PAGEDKV_METRICS_H
#define PAGEDKV_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/engine.h"
#include "pagedkv/err.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A type that C++ has only as an extension, too. */
__extension__ typedef __int128 pkv_i128;

/* Counts with at most 2^-10 relative error: values below 2048 exactly, above in 1024 buckets a
 * power of two. Percentiles are nearest rank, upper edge of the bucket (never above the maximum). */
struct pkv_histogram;
struct pkv_histogram *pkv_histogram_create(struct pkv_err *err);
void pkv_histogram_destroy(struct pkv_histogram *h);
/* 0, or -1 with PKV_ERR_MEMORY */
int pkv_histogram_add(struct pkv_histogram *h, int64_t value, uint64_t count, struct pkv_err *err);

struct pkv_distribution {
    uint64_t count;
    pkv_i128 sum;                        /* exact */
    int64_t p50, p90, p95, p99, max;     /* 0 when count is 0 */
};
void pkv_histogram_read(const struct pkv_histogram *h, struct pkv_distribution *out);
/* The next bucket that is not empty, its upper edge (never above the maximum) and its count; *place is 0
 * at first. false = there is none. */
bool pkv_histogram_next(const struct pkv_histogram *h, size_t *place, int64_t *out_upper,
                        uint64_t *out_count);

/* A request that stands out. */
#define PKV_NOTABLE_ID_SIZE 128u
struct pkv_notable {
    char id[PKV_NOTABLE_ID_SIZE];
    bool exists, is_cut;          /* is_cut: the id is longer */
    int64_t ns;
    uint64_t num;
};

/* The numbers of summary.json. Shares are time weighted over first arrival .. end of last step.
 *
 * With a window, figures cover what is in it: requests and their latencies are those that arrive in
 * it, whenever they end, samples among them; steps, tokens, preemptions, evictions, gaps, drafts,
 * transfers, forks and turns (by the step before which they came) those of steps that begin in it;
 * states, for means and peaks, count for as long as they last in it; makespan_ns is the part of the run
 * in it. The outcome, what the engine says of itself, peak_host_blocks and the series are the whole
 * run's. */
struct pkv_summary {
    struct pkv_engine_figures engine;    /* with a window: of the window */
    int64_t makespan_ns;
    bool has_window;
    int64_t after_ns, until_ns;          /* until: 0 = to the end */
    struct {                             /* with a window: the same counts of the whole run */
        uint64_t arrived, completed, rejected, aborted, unfinished, preemptions;
        int64_t makespan_ns;
    } whole;
    uint64_t peak_used_blocks, peak_waiting, peak_running;
    double mean_used_frac;        /* held blocks, of all blocks */
    double mean_slot_use_frac;    /* positions stored in held blocks, of all slots of the pool */
    double mean_running, mean_waiting;
    /* Under a layout of runs, of all slots of the pool (see pkv_step_row). What is left beside them
     * and the stored positions is free, and nobody waited for it. */
    bool has_speculation;
    bool has_waste;
    bool has_sessions, has_samples;      /* turns, samples in the whole run */
    double waste_reserved_frac, waste_internal_frac, waste_external_frac;
    struct pkv_distribution ttft, tpot, itl, max_gap, e2e, queue;    /* ns */
    /* Blocks that sharing saved, of those that all tables have together. */
    double mean_shared_frac, peak_shared_frac;
    /* ns, from arrival to the first token of any of a request's samples, and to the last one's end */
    struct pkv_distribution ttft_all, e2e_all;
    double requests_per_s, output_tokens_per_s;
    double limit_frac[PKV_LIMIT_COUNT];
    bool has_targets;
    int64_t target_ttft_ns, target_itl_ns;
    /* Completed with a token, the first one within target_ttft_ns and every gap within
     * target_itl_ns. */
    uint64_t good_requests, good_output_tokens;
    /* Why requests were rejected: of those with the first one's kind of reason, the longest one's
     * sentence. "" = none was. */
    char rejected_reason[256];
    uint64_t num_with_priority;   /* requests with a priority other than 0 */
    uint64_t num_with_deadline;
    /* The first of several in the order of their ends: ns from arrival to admission or, without one,
     * to the end; the largest gap of a preempted one; the most preemptions; the unfinished one that
     * came first, and ns until the end of the run. */
    struct pkv_notable longest_wait, longest_away, most_preempted, first_unfinished;
};

/* A series over time in PKV_SERIES_POINTS equal stretches, each with its smallest and largest
 * value, for pictures. The stretch doubles as the run goes on, so memory is fixed. */
#define PKV_SERIES_POINTS 512u
struct pkv_series_point {
    int64_t begin_ns, end_ns;
    int64_t min_free, max_free, min_waiting, max_waiting, min_running, max_running, preemptions;
};

/* The files of a run: a bit, and a name. Of report.html see report.h: metrics do not write it. */
#define PKV_FILES(X)                                                                          \
    X(PKV_FILE_STEPS, 1, "steps.csv") X(PKV_FILE_REQUESTS, 2, "requests.csv")                 \
    X(PKV_FILE_EVENTS, 4, "events.jsonl") X(PKV_FILE_SUMMARY, 8, "summary.json")              \
    X(PKV_FILE_SCENARIO, 16, "scenario.yaml") X(PKV_FILE_REPORT, 32, "report.html")             \
    X(PKV_FILE_CACHE, 64, PKV_CACHE_FILE)
#define PKV_CACHE_FILE "cache.csv"
enum pkv_file {
#define PKV_ENUM(sym, bit, name) sym = bit,
    PKV_FILES(PKV_ENUM)
#undef PKV_ENUM
#define PKV_FILE_OR(sym, bit, name) | (bit)
    PKV_FILE_ALL = 0 PKV_FILES(PKV_FILE_OR)
#undef PKV_FILE_OR
};

struct pkv_metrics_config {
    const char *dir;              /* NULL = no files */
    unsigned files;               /* of enum pkv_file */
    uint64_t every;               /* every nth step row; 0 or 1 = all */
    bool on_change;               /* only rows in which a count of requests or blocks, or limit,
                                   * differs from the last kept row; times and tokens always do */
    uint32_t block_size;          /* of the first group */
    uint32_t num_gpu_blocks;
    bool has_speculation;         /* tell what came of the drafts */
    bool has_waste;               /* the layout gives runs: tell what they waste */
    int64_t target_ttft_ns, target_itl_ns;   /* 0 = none */
    int64_t after_ns, until_ns;   /* the window of the figures; until 0 = to the end */
};

struct pkv_metrics;
/* Opens the files aside. errors: PKV_ERR_INPUT (directory, file), PKV_ERR_MEMORY */
struct pkv_metrics *pkv_metrics_create(const struct pkv_metrics_config *config,
                                       struct pkv_err *err);
void pkv_metrics_destroy(struct pkv_metrics *metrics);   /* drops files not yet finished */
struct pkv_sink pkv_metrics_sink(struct pkv_metrics *metrics);

struct pkv_run_info {
    const char *version;
    uint64_t seed;
    const char *scenario_sha256;  /* hex */
    const char *scenario_yaml;    /* resolved; written to scenario.yaml */
    int64_t wall_ns;
    /* Its end state is written to cache.csv, unless the run failed; only looked at where that is wanted,
     * and then its prefix cache is on. */
    const struct pkv_cache *cache;
};
/* Compute the summary, write summary.json and scenario.yaml, rename all files. Also after a run
 * that failed or was interrupted: what was done is kept. After a failed write (PKV_ERR_IO) each file
 * is kept up to its last whole row, and a file of an earlier run whose successor was lost is
 * removed, so that a directory never mixes two runs; when no row at all could be written, nothing is
 * renamed or removed. */
int pkv_metrics_finish(struct pkv_metrics *metrics, const struct pkv_engine_figures *figures,
                       const struct pkv_run_info *info, struct pkv_err *err);
/* After finish: have any files been put in place? */
bool pkv_metrics_has_kept(const struct pkv_metrics *metrics);
/* And which of those wanted (of enum pkv_file, but the report) have not, or end with the last row that
 * could be written? */
unsigned pkv_metrics_missing(const struct pkv_metrics *metrics);
unsigned pkv_metrics_cut(const struct pkv_metrics *metrics);
/* After finish: the text of summary.json, good until the next call; NULL = no memory. */
const char *pkv_metrics_json(struct pkv_metrics *metrics, const struct pkv_run_info *info,
                             struct pkv_err *err);
const struct pkv_summary *pkv_metrics_summary(const struct pkv_metrics *metrics);
/* The latencies of which there are distributions; those of figures, so of the window. */
#define PKV_LATENCIES(X) X(ttft) X(tpot) X(itl) X(max_gap) X(e2e) X(queue)
enum pkv_latency {
#define PKV_ENUM(name) PKV_LATENCY_##name,
    PKV_LATENCIES(PKV_ENUM)
#undef PKV_ENUM
    PKV_LATENCY_COUNT
};
const struct pkv_histogram *pkv_metrics_histogram(const struct pkv_metrics *metrics,
                                                  enum pkv_latency latency);
/* The stretches so far, in time order. */
size_t pkv_metrics_series(const struct pkv_metrics *metrics, struct pkv_series_point *out,
                          size_t room);

/* The step log in the form that recordings of the engine have: one JSON line a step, given to
 * `line` without its newline. full = also queues, block ids and evictions. */
struct pkv_engine_log_config {
    int64_t step_ns;              /* step number = time / step_ns */
    bool full;
    bool brief;                   /* the fields of a trace recording: no aborted, no cached_blocks */
    bool async;                   /* also whose tokens came out */
    bool drafts;                  /* full: also the drafts scheduled */
    int (*line)(void *ctx, const char *text, size_t length, struct pkv_err *err);
    void *ctx;
};
struct pkv_engine_log;
struct pkv_engine_log *pkv_engine_log_create(const struct pkv_engine_log_config *config,
                                             struct pkv_err *err);
void pkv_engine_log_destroy(struct pkv_engine_log *log);
struct pkv_sink pkv_engine_log_sink(struct pkv_engine_log *log);
/* The closing record of a run that got stuck. */
int pkv_engine_log_stuck(struct pkv_engine_log *log, uint64_t step, size_t num_waiting,
                         size_t num_running, struct pkv_err *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
