/*
 * openmetrics_private.h - the parts of an OpenMetrics file: what is counted, scrapes, the text.
 *
 * A scrape is a row of 64-bit slots. A metric, one set of labels of a family, has some of them next to each
 * other: a gauge or counter one; a histogram one a bucket (cumulative, the last is +Inf), two for its
 * sum. Scrapes come row by row, and the text wants them metric by metric.
 *
 * Names, labels and bounds are those of vLLM (vllm/v1/metrics/loggers.py, vllm/v1/spec_decode/metrics.py).
 */
#ifndef PKV_OPENMETRICS_PRIVATE_H
#define PKV_OPENMETRICS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/out.h"
#include "pagedkv/report.h"

#define OM_MAX_BOUNDS 32u
#define OM_NS_PER_MS INT64_C(1000000)

enum om_bounds { OM_BOUNDS_TTFT, OM_BOUNDS_GAP, OM_BOUNDS_REQUEST, OM_BOUNDS_STEP, OM_BOUNDS_LENGTH };

/* Bounds of times are in milliseconds. */
#define OM_HISTOGRAMS(X)                                                                           \
    X(OM_TTFT, "time_to_first_token_seconds", OM_BOUNDS_TTFT,                                      \
      "Time from a request's arrival to its first token")                                          \
    X(OM_GAP, "inter_token_latency_seconds", OM_BOUNDS_GAP,                                        \
      "Time between two outputs of a request")                                                     \
    X(OM_TPOT, "request_time_per_output_token_seconds", OM_BOUNDS_GAP,                             \
      "Mean time between the tokens of a finished request, 0 of a single token")                   \
    X(OM_E2E, "e2e_request_latency_seconds", OM_BOUNDS_REQUEST,                                    \
      "Time from arrival to last token of a finished request")                                     \
    X(OM_QUEUE, "request_queue_time_seconds", OM_BOUNDS_REQUEST,                                   \
      "Time from arrival to first admission of a finished request")                                \
    X(OM_INFERENCE, "request_inference_time_seconds", OM_BOUNDS_REQUEST,                           \
      "Time from first admission to last token of a finished request")                             \
    X(OM_PREFILL, "request_prefill_time_seconds", OM_BOUNDS_REQUEST,                               \
      "Time from first admission to first token of a finished request")                            \
    X(OM_DECODE, "request_decode_time_seconds", OM_BOUNDS_REQUEST,                                 \
      "Time from first to last token of a finished request")                                       \
    X(OM_PROMPT, "request_prompt_tokens", OM_BOUNDS_LENGTH, "Prompt of a finished request")        \
    X(OM_GENERATION, "request_generation_tokens", OM_BOUNDS_LENGTH,                                \
      "Tokens that a finished request said")                                                       \
    X(OM_COMPUTED, "request_prefill_kv_computed_tokens", OM_BOUNDS_LENGTH,                         \
      "Prompt of a finished request without what its admission found in the cache")                \
    X(OM_ITERATION, "iteration_tokens_total", OM_BOUNDS_STEP,                                      \
      "Tokens of a step that brought any: these, and computed prompts that they were the first of")

enum om_histogram {
#define OM_SYM(sym, name, bounds, help) sym,
    OM_HISTOGRAMS(OM_SYM)
#undef OM_SYM
    OM_HISTOGRAM_COUNT
};

/* Kind, name, text. */
#define OM_COUNTERS(X)                                                                             \
    X(OM_RUNNING, OM_GAUGE, "num_requests_running", "Requests that hold blocks")                   \
    X(OM_WAITING, OM_GAUGE, "num_requests_waiting", "Requests in the queue")                       \
    X(OM_WAITING_WHY, OM_GAUGE, "num_requests_waiting_by_reason", "Requests in the queue, by why") \
    X(OM_USAGE, OM_SHARE, "kv_cache_usage_perc", "Held blocks, as a share of all: 1 is full")      \
    X(OM_INFO, OM_GAUGE, "cache_config_info", "How the cache is set up")                           \
    X(OM_PREEMPTIONS, OM_COUNTER, "num_preemptions", "Preemptions")                                \
    X(OM_PROMPT_TOKENS, OM_COUNTER, "prompt_tokens", "Prompts that have a first token")            \
    X(OM_CACHED_TOKENS, OM_COUNTER, "prompt_tokens_cached", "Of these, found at first admission")  \
    X(OM_BY_SOURCE, OM_COUNTER, "prompt_tokens_by_source", "Of these, by where their KV is from")  \
    X(OM_GENERATED, OM_COUNTER, "generation_tokens", "Tokens that came out")                       \
    X(OM_QUERIES, OM_COUNTER, "prefix_cache_queries", "Tokens looked up at first admissions")      \
    X(OM_HITS, OM_COUNTER, "prefix_cache_hits", "Tokens found at first admissions")                \
    X(OM_SUCCESS, OM_COUNTER, "request_success", "Requests that ended, by why")                    \
    X(OM_DRAFTS, OM_COUNTER, "spec_decode_num_drafts", "Drafts")                                   \
    X(OM_DRAFT_TOKENS, OM_COUNTER, "spec_decode_num_draft_tokens", "Tokens of drafts")             \
    X(OM_ACCEPTED, OM_COUNTER, "spec_decode_num_accepted_tokens", "Draft tokens that were right")  \
    X(OM_ACCEPTED_AT, OM_COUNTER, "spec_decode_num_accepted_tokens_per_pos",                       \
      "Draft tokens that were right, by place in their draft")

enum om_kind { OM_GAUGE, OM_SHARE, OM_COUNTER, OM_HISTOGRAM };
enum om_family {
#define OM_SYM(sym, kind, name, help) sym,
    OM_COUNTERS(OM_SYM)
#undef OM_SYM
    OM_FIRST_HISTOGRAM
};

/* Why requests end; those that cannot happen here stay at 0, as dashboards ask for them. */
#define OM_ENDS(X) X(OM_STOP, "stop") X(OM_LENGTH, "length") X(OM_ABORT, "abort") X(OM_ERROR, "error") \
    X(OM_REPETITION, "repetition")
enum om_end {
#define OM_SYM(sym, word) sym,
    OM_ENDS(OM_SYM)
#undef OM_SYM
    OM_END_COUNT
};

struct om_tally {
    uint64_t counts[OM_MAX_BOUNDS + 1];   /* not cumulative; the last one used is +Inf */
    __int128 sum;                         /* ns or tokens */
};

/* All that has been counted up to some time. */
struct om_counts {
    uint64_t preemptions, prompt_tokens, cached_tokens, generated, queries, hits;
    uint64_t ends[OM_END_COUNT];
    uint64_t drafts, draft_tokens, accepted, accepted_at[PKV_MAX_DRAFTS];
    struct om_tally tallies[OM_HISTOGRAM_COUNT];
};
struct om_gauges { int64_t running, waiting, used_blocks; };

/* ---- openmetrics_text.c ---- */

#define OM_MAX_METRICS (OM_FIRST_HISTOGRAM + OM_HISTOGRAM_COUNT + OM_END_COUNT + PKV_MAX_DRAFTS + 3)

struct om_metric {
    unsigned family;        /* enum om_family, or OM_FIRST_HISTOGRAM + enum om_histogram */
    size_t slot, num_slots;
    char label[96];         /* beside engine and model_name: "position=\"2\""; "" = none */
};
struct om_layout {
    struct om_metric metrics[OM_MAX_METRICS];   /* [num], those of a family side by side */
    size_t num, num_slots;
    int64_t bounds[OM_BOUNDS_LENGTH + 1][OM_MAX_BOUNDS];
    size_t num_bounds[OM_BOUNDS_LENGTH + 1];
    uint32_t num_blocks;
    struct pkv_text model_name;                 /* owned; as a label's value */
};

int om_layout_init(struct om_layout *layout, const struct pkv_scenario *scenario, struct pkv_err *err);
void om_layout_finish(struct om_layout *layout);
/* Which of a histogram's counts a value belongs to. */
size_t om_bucket(const struct om_layout *layout, enum om_histogram histogram, int64_t value);
void om_pack(const struct om_layout *layout, const struct om_counts *counts,
             const struct om_gauges *gauges, int64_t *slots);

/* Writes one metric's scrapes, from the first to the last. */
struct om_writer {
    const struct om_layout *layout;   /* borrowed, as the next ones */
    const struct om_metric *metric;
    struct pkv_out *out;
    struct pkv_text starts[OM_MAX_BOUNDS + 3];   /* owned; a line up to its value */
    struct pkv_text number;                      /* owned; scratch */
};
void om_writer_begin(struct om_writer *w, size_t metric);
void om_writer_scrape(struct om_writer *w, const int64_t *slots, int64_t time_ms);   /* the metric's */
int om_writer_check(const struct om_writer *w, struct pkv_err *err);
void om_writer_finish(struct om_writer *w);

/* ---- openmetrics_scrapes.c ---- */

/* The newest scrapes are in memory; full rows of chunks, turned metric by metric, go to a file without
 * a name. */
#define OM_CHUNK_SCRAPES 1024u
struct om_scrapes {
    const struct om_layout *layout;   /* borrowed */
    int64_t *rows;                    /* [OM_CHUNK_SCRAPES][num_slots] owned */
    int64_t *turned;                  /* [OM_CHUNK_SCRAPES * num_slots] owned; scratch */
    FILE *spool;                      /* owned; NULL while all are in memory */
    size_t num_rows;                  /* in memory */
    uint64_t num_chunks;              /* in the file */
    int64_t interval_ms;
};
int om_scrapes_init(struct om_scrapes *s, const struct om_layout *layout, int64_t interval_ms,
                    struct pkv_err *err);
void om_scrapes_finish(struct om_scrapes *s);
uint64_t om_scrapes_num(const struct om_scrapes *s);
/* Room for the next one's slots; NULL on error. */
int64_t *om_scrapes_add(struct om_scrapes *s, struct pkv_err *err);
/* The whole text; the last scrape is at end_ms, all others at multiples of the interval. */
int om_scrapes_write(struct om_scrapes *s, int64_t end_ms, struct pkv_out *out, struct pkv_err *err);

#endif
