/*
 * report.h - results for people: the terminal summary with its plots; pages of a run step by step;
 * and comparisons of logs.
 *
 * Nothing here prints: texts come back as strings, which the caller frees with pkv_report_free().
 */
#ifndef PAGEDKV_REPORT_H
#define PAGEDKV_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/metrics.h"
#include "pagedkv/scenario.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct pkv_report_style {
    unsigned width;       /* columns; at least 40 */
    bool utf8;            /* block characters, else ASCII */
    bool colour;
    const char *dir;      /* of the files that `explain` reads, if they were written; else NULL */
};

/* The figures that matter, what limited the run, plots over time of free blocks, waiting, running
 * and preemptions. */
char *pkv_report_summary(const struct pkv_scenario *scenario, const struct pkv_summary *summary,
                         const struct pkv_series_point *series, size_t num_points,
                         const struct pkv_trace_notes *notes,   /* NULL = synthetic */
                         const struct pkv_report_style *style, struct pkv_err *err);
void pkv_report_free(char *text);

/* A run under way: a bar of the pool, counts, and the plots of what was so far; at most 22 lines. */
struct pkv_live {
    int64_t begin_ns, time_ns;            /* virtual: of the first step, and now */
    int64_t wall_ns;                      /* since it began; 0 = not told */
    int64_t free_blocks, used_blocks, cached_blocks, running, waiting, preemptions;
    uint64_t num_steps, num_ended, output_tokens;
};
char *pkv_report_live(const struct pkv_live *now, const struct pkv_series_point *series,
                      size_t num_points, const struct pkv_report_style *style, struct pkv_err *err);

/* ---- report.html: a run to look at in a browser ---- */

/* A page that stands alone: it loads nothing from anywhere. It is made while the run goes on: a sink
 * keeps every row of the step log and the request log, packed. The file is opened aside at once and takes its
 * name when it is written, as those of the metrics do.
 *   cost    about 2,000 instructions a step, and as many for states of the pool, all blocks now and then;
 *           memory 2 MB, about 3 bytes a step and 20 a request, and up to 8 MB of such states */
struct pkv_html_config {
    const char *dir;
    const struct pkv_scenario *scenario;   /* borrowed; outlives the page */
};
struct pkv_html;
/* errors: PKV_ERR_INPUT when the file cannot be made, PKV_ERR_MEMORY */
struct pkv_html *pkv_html_create(const struct pkv_html_config *config, struct pkv_err *err);
void pkv_html_destroy(struct pkv_html *html);    /* drops a file that was not written */
struct pkv_sink pkv_html_sink(struct pkv_html *html);

struct pkv_html_run {
    struct pkv_metrics *metrics;           /* finished */
    const struct pkv_trace_notes *notes;   /* NULL = synthetic */
    const struct pkv_run_info *info;       /* what they were finished with */
};
/* Write the page after the run, once; also after one that failed or was interrupted.
 *   errors  PKV_ERR_IO (nothing is kept of it then), PKV_ERR_MEMORY */
int pkv_html_write(struct pkv_html *html, const struct pkv_html_run *run, struct pkv_err *err);

/* The page of former runs, from the directories that they left; several are laid over each other. A
 * whole report.html of the same run is taken over; without one requests.csv, summary.json,
 * scenario.yaml and, where it is there, steps.csv are read. Written to out_dir/report.html, which of
 * several runs is no page of theirs.
 *   errors  PKV_ERR_INPUT with the place: a file that is missing, damaged, or of another run than the
 *           others; PKV_ERR_IO, PKV_ERR_MEMORY */
int pkv_html_from_dirs(const char *const *dirs, size_t num, const char *out_dir, struct pkv_err *err);
/* The state of a cache that a former run left in DIR/cache.csv, for pkv_engine_config.warm. Free with
 * pkv_cache_state_free().
 *   errors   PKV_ERR_INPUT with the place: missing, broken, of a cache with other groups, or written by a
 *            version that makes identities otherwise; PKV_ERR_MEMORY */
int pkv_warm_read(const char *dir, const struct pkv_sched_config *sched,
                  struct pkv_cache_state *out, struct pkv_err *err);

/* ---- a run step by step ---- */

/* Where a run that is looked at pauses next. */
enum pkv_pause {
    PKV_PAUSE_STEP,          /* at the end of a step by its number, or of the first one behind it */
    PKV_PAUSE_PREEMPTION,    /* of one in which somebody is preempted, */
    PKV_PAUSE_ADMISSION,     /* is admitted or resumed, */
    PKV_PAUSE_BLOCKED,       /* is refused at the head of the queue: once for each cause of a wait */
    PKV_PAUSE_NEVER
};

struct pkv_stepper_config {
    const struct pkv_scenario *scenario;            /* borrowed */
    int (*pause)(void *ctx, struct pkv_err *err);   /* the run pauses until it returns; -1 ends it */
    void *ctx;
};

/* A sink that keeps what happens in a step, and what the pool, the block tables and the queues are
 * right after scheduling. It changes nothing. The engine must log_evicted.
 *   cost   O(events + scheduled) a step; O(blocks + running + waiting log waiting) where it pauses */
struct pkv_stepper;
struct pkv_stepper *pkv_stepper_create(const struct pkv_stepper_config *config,
                                       struct pkv_err *err);
void pkv_stepper_destroy(struct pkv_stepper *stepper);
struct pkv_sink pkv_stepper_sink(struct pkv_stepper *stepper);
/* At first it is PKV_PAUSE_STEP, step 0. Numbers of steps that are over pause at the next one. */
void pkv_stepper_pause_at(struct pkv_stepper *stepper, enum pkv_pause pause, uint64_t step);

/* While it pauses: the step's number; does a request of this id run or wait; and the page to show.
 * only: an id, for a page about that one request; NULL = all. Free with pkv_report_free(). */
uint64_t pkv_stepper_step(const struct pkv_stepper *stepper);
bool pkv_stepper_has(const struct pkv_stepper *stepper, const char *id);
char *pkv_stepper_page(const struct pkv_stepper *stepper, const char *only,
                       const struct pkv_report_style *style, struct pkv_err *err);

/* ---- for the tools of others ---- */

/* A sink that writes what a scraper would have had of vLLM's metrics, as OpenMetrics text: names, labels
 * and bounds of buckets are vLLM's; times are virtual, the first scrape at 0, one each interval, and
 * the last at the end of the run, rounded up to a millisecond. A scrape sees the step under way as
 * its row has it, with the preemptions and look-ups of its schedule; tokens and finishes count
 * from the end of their step. It is always the whole run, whatever the window of the figures is.
 *   memory  fixed; scrapes go through a temporary file, 8 bytes for each of about 300 values */
#define PKV_MAX_SCRAPES UINT64_C(1000000)
struct pkv_openmetrics_config {
    const struct pkv_scenario *scenario;   /* borrowed; outlives it */
    const char *path;                      /* "-" = standard output */
    int64_t interval_ns;                   /* whole milliseconds, 1 or more */
};
struct pkv_openmetrics;
/* Opens the file aside. errors: PKV_ERR_INPUT, PKV_ERR_IO, PKV_ERR_MEMORY */
struct pkv_openmetrics *pkv_openmetrics_create(const struct pkv_openmetrics_config *config,
                                               struct pkv_err *err);
void pkv_openmetrics_destroy(struct pkv_openmetrics *metrics);   /* drops a file not finished */
/* It fails with PKV_ERR_INPUT when more than PKV_MAX_SCRAPES would be taken. */
struct pkv_sink pkv_openmetrics_sink(struct pkv_openmetrics *metrics);
/* The last scrape; the file takes its name. Also after a run that failed or was interrupted. */
int pkv_openmetrics_finish(struct pkv_openmetrics *metrics, const struct pkv_engine_figures *figures,
                           struct pkv_err *err);

/* What traffic would hold if every request ran as soon as it came: prefill takes no time, every token
 * takes token_ns. A request of prompt c and output g that comes at a runs in [a, a + g token_ns),
 * holds c tokens at first and one more after each token but the last. At equal times departures come
 * first. An output of 0 is read as 1; aborts are not looked at. */
#define PKV_MAX_TOKEN_TIMES 16u
struct pkv_waste_config {
    int64_t token_ns[PKV_MAX_TOKEN_TIMES];   /* [num_token_times], each > 0 */
    size_t num_token_times;
    uint32_t block_size;       /* of the paged layout; 1 .. 2^20 */
    uint32_t fixed_max;        /* positions that a fixed reservation has; 0 = leave it out */
};

/* How memory is laid out, and what each request holds of it from its start to its end. */
#define PKV_WASTE_LAYOUTS(X)                                                               \
    X(PKV_WASTE_PAGED, "paged")    /* the blocks of what it has stored so far */           \
    X(PKV_WASTE_ORACLE, "oracle")  /* c + g - 1 */                                         \
    X(PKV_WASTE_POW2, "pow2_output")   /* c + the next power of two of g */                \
    X(PKV_WASTE_FIXED, "fixed_max")    /* fixed_max, or c + g - 1 where that is more */
enum pkv_waste_layout {
#define PKV_ENUM(sym, word) sym,
    PKV_WASTE_LAYOUTS(PKV_ENUM)
#undef PKV_ENUM
    PKV_WASTE_LAYOUT_COUNT
};

struct pkv_peak { uint64_t value; int64_t at_ns; };   /* the first time it is reached */

/* What depends on the token time. */
struct pkv_waste_sweep {
    int64_t token_ns, end_ns;                /* the last departure */
    struct pkv_peak running, tokens, blocks;
    struct pkv_peak held[PKV_WASTE_LAYOUT_COUNT];   /* positions; of paged: blocks x block size */
};

/* Sums over requests of token times x positions; the used share of a layout is stored / held, and
 * the mean of running is token_ns x num_tokens / end_ns. Exact. */
struct pkv_waste {
    struct pkv_waste_config config;
    uint64_t num_rows;
    uint64_t num_answers;                    /* more where rows ask for several: each is by itself */
    uint64_t num_longer;                     /* answers longer than fixed_max */
    int64_t last_arrival_ns;
    uint64_t num_tokens;                     /* output */
    pkv_i128 stored, held[PKV_WASTE_LAYOUT_COUNT];
    struct pkv_waste_sweep sweeps[PKV_MAX_TOKEN_TIMES];
};

/* One pass over the source.
 *   cost    O(output tokens) for each token time; memory O(most running at once)
 *   errors  those of the source; PKV_ERR_INPUT beyond 64 bits of nanoseconds; PKV_ERR_MEMORY */
int pkv_waste_measure(const struct pkv_source *source, const struct pkv_waste_config *config,
                      struct pkv_waste *out, struct pkv_err *err);
/* A table for people, name being the trace's; or JSON, times in microseconds. */
char *pkv_waste_table(const struct pkv_waste *waste, const char *name, struct pkv_err *err);
char *pkv_waste_json(const struct pkv_waste *waste, struct pkv_err *err);

/* ---- what is in a trace ---- */

struct pkv_lengths_info {
    uint64_t num, sum;
    uint32_t p50, p90, p99, max;         /* nearest rank; 0 of none */
};

/* Blocks found again on a cache without end: a row's blocks are there for the very next row, answers
 * never are, and a hit is a prefix of blocks that were all seen before. */
#define PKV_PREFIX_RULES(X)                                                                      \
    X(PKV_PREFIX_ALL, "infinite")                        /* the last block even if not full */   \
    X(PKV_PREFIX_FULL, "full_blocks_only")                                                       \
    X(PKV_PREFIX_ONE_LEFT, "full_blocks_only_one_token_left")   /* as engines compute one */     \
    X(PKV_PREFIX_BLIND, "same_timestamp_rows_blind")     /* rows of one time do not meet */
enum pkv_prefix_rule {
#define PKV_ENUM(sym, word) sym,
    PKV_PREFIX_RULES(PKV_ENUM)
#undef PKV_ENUM
    PKV_PREFIX_RULE_COUNT
};
struct pkv_prefix_hits { uint64_t blocks, hit_blocks, tokens, hit_tokens; };

#define PKV_ARRIVAL_BINS 1024u

struct pkv_trace_info {
    uint32_t block_size;                 /* tokens; of the hits */
    int64_t token_ns;                    /* of the peaks */
    uint64_t rows, timed_rows;           /* timed: those that follow no other */
    uint64_t distinct_times, most_at_once;      /* of the timed rows, as what follows */
    int64_t first_ns, last_ns;
    double gap_mean_ns, gap_cv;          /* between neighbours; cv = deviation / mean; 0 of none */
    struct pkv_lengths_info prompt, output;
    struct pkv_prefix_hits hits[PKV_PREFIX_RULE_COUNT];
    struct pkv_lengths_info shared;      /* hit tokens of rows with any, rule PKV_PREFIX_ALL */
    uint64_t distinct_blocks, rows_fully_hit;
    double mean_row_hit_tokens, mean_row_hit_blocks;   /* means over rows of their shares */
    uint64_t sessions, rows_in_sessions, most_turns, rows_that_follow, tenants;
    struct pkv_peak peak_running, peak_tokens;   /* each timed row runs as soon as it comes */
    uint32_t arrivals[PKV_ARRIVAL_BINS];     /* of timed rows; [num_bins] of bin_ns each, from time 0 */
    uint32_t num_bins;
    int64_t bin_ns;
};

/* Read a trace, opened with keep_texts and sessions, to its end. Rows that follow others come
 * when a replay lets them: arrivals, gaps and peaks are of the timed rows alone. Blocks are looked for in
 * the order of the file, the text of the former row being put in place.
 *   block_size  0 = that of the trace's hash ids if its first prompt begins with one, else 16
 *   cost        8 bytes a row, 24 to 48 a different block; time as pkv_waste_measure() */
int pkv_trace_info_read(struct pkv_trace *trace, uint32_t block_size, int64_t token_ns,
                        struct pkv_trace_info *out, struct pkv_err *err);
char *pkv_trace_info_text(const struct pkv_trace_info *info, const struct pkv_trace *trace,
                          const char *name, const struct pkv_report_style *style,
                          struct pkv_err *err);
char *pkv_trace_info_json(const struct pkv_trace_info *info, const struct pkv_trace *trace,
                          struct pkv_err *err);

/* A trace made after another (pkv_remake): each figure of the source, what it should have become, what it
 * is, and the deviation from that. Both traces are read with the remake's block size. */
struct pkv_remake_config;
struct pkv_remake_figures;
char *pkv_remake_text(const struct pkv_remake_config *config,
                      const struct pkv_remake_figures *figures, const struct pkv_trace_info *source,
                      const struct pkv_trace_info *made, struct pkv_err *err);

/* First difference and totals of two step logs or two request logs (CSV), or two engine logs. */
struct pkv_diff_result { bool same; char *text; };   /* text owned: what to print */
int pkv_diff(const char *a, const char *b, struct pkv_diff_result *out, struct pkv_err *err);

/* Run a recorded load and compare decision by decision. emit NULL = do not write our log. */
struct pkv_conform_config {
    const char *config, *requests, *steps;    /* paths; requests and steps may be packed */
    const char *preset;                       /* NULL = from the config */
    const char *emit;
    bool check;                               /* recount invariants after every step */
    bool (*should_stop)(void *ctx);           /* NULL = never; when it says so: PKV_ERR_INTERRUPTED */
    void *stop_ctx;
};
int pkv_conform(const struct pkv_conform_config *config, struct pkv_diff_result *out,
                struct pkv_err *err);

/* ---- comparing configurations ---- */

#define PKV_COMPARE_MAX_BATCHES 100u

struct pkv_compare_config {
    const struct pkv_grid *grid;      /* borrowed; outlives the comparison */
    unsigned num_threads;             /* 1 or more; changes nothing in any result */
    uint32_t num_seeds;               /* each configuration runs with seed, seed + 1, ...; 1 or more,
                                       * and only 1 where the traffic is a trace */
    uint32_t num_batches;             /* equal stretches of the arrivals' time, at most
                                       * PKV_COMPARE_MAX_BATCHES: with one seed and the same traffic
                                       * throughout, the means of requests over them give intervals;
                                       * below 2 = none */
    bool check;                       /* recount invariants after every step */
    const char *version;              /* keep what report.html shows, and say this there; NULL = no page */
    bool (*should_stop)(void *ctx);   /* NULL = never; asked from any thread */
    void (*progress)(void *ctx, size_t num_done, size_t num_runs);   /* NULL, or one call at a time */
    void *ctx;
};

struct pkv_compare;
/* Run every configuration of a grid on the same traffic, each opening its own, and gather their
 * figures. Requests are compared with those of the first configuration row by row, for which each
 * run under way, and the first one of each seed, keeps 32 bytes a request; a run under way keeps 24
 * more for tenants and priorities. What is kept of each run and tenant is 96 bytes, of each
 * configuration over time up to 128 kB, and for a page, of up to 12 of them, their
 * distributions, mostly below 1 MB.
 *   out_failed  which configuration an error is about; NULL is allowed. Of several errors the one
 *               of the earliest run is told, whatever the number of threads
 *   errors      as those of a run; PKV_ERR_INPUT also for several seeds of a trace or under a varied
 *               traffic.seed, and for a trace that cannot be read more than once. A run that was
 *               stopped or could not go on is no error */
struct pkv_compare *pkv_compare_run(const struct pkv_compare_config *config, size_t *out_failed,
                                    struct pkv_err *err);
void pkv_compare_destroy(struct pkv_compare *compare);
size_t pkv_compare_num_done(const struct pkv_compare *compare);   /* runs that ended by themselves */
size_t pkv_compare_num_runs(const struct pkv_compare *compare);
bool pkv_compare_is_finished(const struct pkv_compare *compare);  /* all, with nothing unfinished */

/* The table for people: every figure of each configuration, its difference to the first one in %,
 * the best marked with "*" unless a worse one prints the same, what the signs mean, and how many requests
 * were better and worse. Over several seeds a figure is the mean with its 95 % interval (Student's t),
 * and a difference that lies within the interval of the paired differences has a "~"; over batches mean
 * latencies have such intervals. Where that leaves it open whether the best is better than configuration
 * 1 (or 1, being the best, than another) none is marked. Only configurations that came to their end can
 * be best. Then tenants and priorities, where there are several, and plots of up to five configurations.
 * Latencies are in steps where all steps of all configurations take the same time. */
char *pkv_compare_text(const struct pkv_compare *compare, const struct pkv_report_style *style,
                       struct pkv_err *err);
/* The same as JSON. */
char *pkv_compare_json(const struct pkv_compare *compare, struct pkv_err *err);
/* compare.csv, one row a configuration; compare.json; fairness.csv, figures of each tenant and each
 * priority; overlay.csv, the first seed's runs over time in at most 1,000 bins; and, if a version was given,
 * report.html, into a directory that is there. None takes its name before all are written.
 * errors: PKV_ERR_INPUT, PKV_ERR_IO, PKV_ERR_MEMORY */
int pkv_compare_write(const struct pkv_compare *compare, const char *dir, struct pkv_err *err);
/* To ask before the runs: is none of these files one that the grid, loaded from path, reads? 0, or -1
 * with PKV_ERR_INPUT. */
int pkv_compare_spare(const struct pkv_grid *grid, const char *path, const char *dir,
                      struct pkv_err *err);

/* From the files that a former run left: the life of a request, or the requests most worth asking
 * about, at most `worst` for each reason to ask.
 *   errors  PKV_ERR_INPUT with the place: no such request, a file that is missing or damaged, or of
 *           another run than the others
 *   cost    one pass over events.jsonl, one or two over requests.csv, one over steps.csv when there */
struct pkv_explain_config {
    const char *dir;
    const char *id;       /* NULL = the worst */
    uint64_t worst;       /* 1 .. PKV_MAX_WORST */
    bool json;
};
#define PKV_MAX_WORST 100u
char *pkv_explain(const struct pkv_explain_config *config, const struct pkv_report_style *style,
                  struct pkv_err *err);    /* free with pkv_report_free() */

/* ---- sizing: what a position costs and what fits ---- */

/* Where the memory of a rank goes; what was estimated, and what nobody said. */
struct pkv_size_budget {
    struct pkv_kv_budget terms;
    const char *total_source;              /* "H100, as CUDA tells it"; borrowed */
    bool weights_estimated;                /* from the number of parameters, 2 bytes each */
    bool activation_given, other_given, graphs_given;   /* else counted as 0 */
};
#define PKV_SIZE_MAX_LENGTHS 16u
struct pkv_size_question {
    struct pkv_kv_model model;
    struct pkv_kv_config config;
    const uint64_t *pools;                 /* bytes, see pkv_kv_fit_make(); [num_pools], borrowed */
    size_t num_pools;                      /* 0 = no budget */
    uint64_t num_gpu_blocks;               /* physical blocks instead of bytes; 0 = not given */
    bool has_null_block;                   /* the engine keeps one block back */
    const struct pkv_size_budget *budget;  /* how the one pool came about, or NULL; borrowed */
    uint64_t max_model_len;                /* 0 = that of the model */
    uint64_t prompt, output;               /* tokens; prompt 0 = not asked */
    uint64_t lengths[PKV_SIZE_MAX_LENGTHS];
    size_t num_lengths;                    /* 0 = 4,096, 32,768 and 131,072, as far as they fit */
};
/* The answer for people and as JSON: bytes per position, groups, ranks, blocks, tokens by the old and
 * the new rule of printing them, lengths, requests. Free with pkv_report_free().
 *   errors  PKV_ERR_INPUT as of pkv_kv_plan_make() and pkv_kv_fit_make() */
char *pkv_size_text(const struct pkv_size_question *question, const struct pkv_report_style *style,
                    struct pkv_err *err);
char *pkv_size_json(const struct pkv_size_question *question, struct pkv_err *err);

/* A start-up log against a model: are its blocks what its memory holds, its tokens what its blocks
 * hold, its concurrency and its swap space so, too? Each memory is one of a rank, of which the one with
 * the fewest blocks rules. Where some rank may have fewer than those that were printed (of different
 * memories not all are printed, or not that of the stage with the largest blocks, or
 * log->ranks_differ), fewer blocks than the printed memory holds are right as well. A log tells a model
 * only by the memory of the pool with blocks, tokens or, beside exact bytes, a concurrency: without
 * these figures are held against each other only, and so they are when model is NULL, all layers being
 * of full attention. The text ends with a scenario that has this pool and what else the log says, or
 * with why there can be none.
 *   log          what the user says instead of it is in it as well
 *   config       as the log and the user have it; NULL without a model */
enum pkv_log_answer { PKV_LOG_AGREES, PKV_LOG_DIFFERS, PKV_LOG_CANNOT_TELL };
char *pkv_size_log(const struct pkv_startup_log *log, const struct pkv_kv_model *model,
                   const struct pkv_kv_config *config, const struct pkv_report_style *style,
                   bool json, enum pkv_log_answer *out_answer, struct pkv_err *err);

/* ---- a run for the Perfetto UI ---- */

/* A sink that writes a Chrome trace in JSON to a file of that name, packed when the name ends in .gz:
 * a process "requests" with a slice for each request and, nested in it, for each of its phases, marks
 * and arrows for preemptions, marks for rejections; and a process "pool" with counters of blocks,
 * requests, preemptions and scheduled tokens, written where they change. Times are virtual, in
 * microseconds with three decimals: exact. The order of its events is that of the run.
 *   memory  grows with the most requests live at once, not with the run
 *   cost    O(1) an event and a step */
struct pkv_perfetto;
struct pkv_perfetto *pkv_perfetto_create(const char *path, struct pkv_err *err);
struct pkv_sink pkv_perfetto_sink(struct pkv_perfetto *perfetto);
/* After the run, however it ended: the file takes its name. When the disk was full, what fitted is kept
 * up to its last whole event, and closed, but nothing of a packed file; -1 with PKV_ERR_IO. Call it
 * once. */
int pkv_perfetto_finish(struct pkv_perfetto *perfetto, struct pkv_err *err);
/* After finish: is there a file, whole or cut? */
bool pkv_perfetto_has_kept(const struct pkv_perfetto *perfetto);
/* Unless finished, nothing is left of the file. */
void pkv_perfetto_destroy(struct pkv_perfetto *perfetto);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
