/*
 * metrics_private.h - the parts of a run's record: figures, series, the logs.
 */
#ifndef PKV_METRICS_PRIVATE_H
#define PKV_METRICS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "pagedkv/metrics.h"

/* ---- samples.c: requests of several samples ---- */

struct open_request {
    uint64_t first_row;
    uint32_t num_left;
    int64_t first_ns;    /* the first token of all; PKV_NO_TIME = none */
    int64_t last_ns;     /* end of the latest sample; PKV_NO_TIME = none */
    bool is_whole;       /* all that ended are completed */
};
struct open_requests {
    struct open_request *items;   /* [num], owned; by first_row */
    size_t num, capacity;
};
void open_requests_free(struct open_requests *open);
/* Of a whole request, from its arrival: to the first token of any sample, if there was one; to the end
 * of the last sample, if all completed. Else PKV_NO_TIME. */
struct request_times { int64_t ttft_ns, e2e_ns; };
/* A sample has ended. *out has times if it was the last. 0 or -1. */
int open_requests_end(struct open_requests *open, const struct pkv_request_row *row,
                      struct request_times *out, struct pkv_err *err);

/* ---- figures.c: sums over rows and requests ---- */

/* An exact share or mean, divided only when printed. */
struct ratio {
    __int128 num, den;
};

/* What the engine counts and no row tells. */
#define ENGINE_COUNTS(X)                                                                          \
    X(num_verifications) X(drafted_tokens) X(accepted_tokens) X(verified_tokens)                  \
    X(swaps) X(swap_fallbacks) X(swapped_out_blocks) X(swapped_in_blocks)                         \
    X(turns) X(former_tokens) X(retained_tokens) X(forks) X(forked_tokens) X(dropped_beams)

/* At one step. */
struct window_counts {
    struct pkv_cache_figures cache;
    int64_t link_busy_ns;
#define FIELD(name) uint64_t name;
    ENGINE_COUNTS(FIELD)
#undef FIELD
};

struct figures {
    struct pkv_histogram *ttft, *tpot, *itl, *max_gap, *e2e, *queue;   /* owned */
    /* Sums of value x dur_ns over the rows. */
    __int128 used_time, stored_time, running_time, waiting_time;
    __int128 reserved_time, internal_time, external_time;
    __int128 rows_time, limit_time[PKV_LIMIT_COUNT];
    /* Blocks that sharing saves = lengths of all tables - blocks held. */
    __int128 tables_time, saved_time;
    uint64_t peak_saved, peak_saved_tables;    /* where the share was largest */
    struct open_requests open;
    struct pkv_histogram *ttft_all, *e2e_all;  /* owned */
    uint64_t peak_used, peak_waiting, peak_running;
    uint64_t good_requests, good_output_tokens;
    int64_t target_ttft_ns, target_itl_ns;   /* 0 = none */
    char rejected_reason[sizeof ((struct pkv_summary *)0)->rejected_reason];
    uint64_t rejected_tokens;   /* prompt and max_tokens of the request it is about */
    uint64_t num_with_priority, num_with_deadline;
    struct pkv_notable longest_wait, longest_away, most_preempted;
    struct pkv_notable first_unfinished, first_unadmitted;    /* ns: their arrivals */
    /* A window, and what is counted in it: else the engine's own counts are the figures. */
    bool has_window;
    int64_t after_ns, until_ns;             /* until: INT64_MAX = to the end */
    struct pkv_engine_figures seen;         /* without outcome, diagnosis and times */
    struct window_counts before, within;    /* when the window began, and at the last step in it */
    bool is_past;                           /* a step began behind it */
    int64_t *gaps;                          /* [num_gaps] owned; of the step at hand */
    size_t num_gaps, gaps_capacity;
};

/* What only the printed summary needs: the summary's doubles before they were divided. */
struct exact_means {
    struct ratio used_frac, slot_use_frac, running, waiting;
    struct ratio requests_per_s, output_tokens_per_s;
    struct ratio limit_frac[PKV_LIMIT_COUNT];
    struct ratio shared_frac, peak_shared_frac;
    struct ratio reserved_frac, internal_frac, external_frac;
    struct ratio good_requests_per_s, good_output_tokens_per_s;
};

int figures_init(struct figures *f, struct pkv_err *err);
void figures_finish(struct figures *f);
int figures_add_row(struct figures *f, const struct pkv_step_row *row,
                    const struct pkv_cache_figures *cache, struct pkv_err *err);
/* A gap that closed in the step whose row comes next. */
int figures_add_gap(struct figures *f, int64_t gap_ns, struct pkv_err *err);
int figures_add_request(struct figures *f, const struct pkv_request_row *row, struct pkv_err *err);
void figures_read(const struct figures *f, const struct pkv_engine_figures *engine,
                  uint32_t block_size, struct exact_means *means, struct pkv_summary *out);

/* A request's times as its row prints them; PKV_NO_TIME where it is empty. */
int64_t request_queue_ns(const struct pkv_request *r);
int64_t request_max_gap_ns(const struct pkv_request *r);

/* ---- series.c: stretches of time for pictures ---- */

struct series {
    struct pkv_series_point points[PKV_SERIES_POINTS];
    size_t num;
    int64_t begin_ns, end_ns;   /* covered so far */
    int64_t stretch_end_ns;     /* of the last one; a row up to there goes into it */
    int64_t width_ns;           /* of a stretch; 0 = no row yet */
};

void series_add(struct series *s, const struct pkv_step_row *row);

/* ---- thinning.c: rows of the step log that are kept ---- */

/* The printed columns are the first fields of a row, in order. */
#define NUM_STEP_COLUMNS (offsetof(struct pkv_step_row, regular_gap_ns) / sizeof(int64_t))

struct thinning {
    uint64_t every;             /* 0 or 1 = all */
    bool on_change, has_last_kept;
    struct pkv_step_row last_kept;
};
bool thinning_keeps(struct thinning *t, const struct pkv_step_row *row);

/* ---- request_log.c: requests.csv ---- */

/* Where a row stands: its time, INT64_MAX = behind all others. Ties go by the row in the trace. */
int64_t request_place_ns(const struct pkv_request_row *row);

/* A row that waits for its place: rows are written in the order of their time, ties by trace row,
 * and the engine reports the end of a step before it knows what ends at the same moment. */
struct pending_row {
    int64_t time_ns;
    uint64_t row;
    struct pkv_text line;       /* owned */
};

struct request_log {
    struct pkv_out *out;        /* borrowed; NULL = not wanted */
    struct pending_row *pending;   /* [num of capacity], owned; lines beyond num are reused */
    size_t num, capacity, num_ready;
    struct pkv_text id;         /* scratch */
};

void request_log_begin(struct request_log *log, struct pkv_out *out);
void request_log_finish(struct request_log *log);
int request_log_add(struct request_log *log, const struct pkv_request_row *row,
                    struct pkv_err *err);
/* Nothing that ends at now_ns or before will be added any more. */
void request_log_advance(struct request_log *log, int64_t now_ns);

/* ---- event_log.c, summary_json.c, cache_file.c ---- */

/* The id of a request, or its row number; NULL when there is no memory. */
const char *request_id(struct pkv_text *scratch, const struct pkv_request *r, struct pkv_err *err);

int event_log_add(struct pkv_out *out, struct pkv_text *scratch, const struct pkv_event *event,
                  struct pkv_err *err);

/* Added to t. 0 or -1. */
int summary_json_text(struct pkv_text *t, const struct pkv_summary *s, const struct exact_means *means,
                      const struct pkv_metrics_config *config, const struct pkv_run_info *info,
                      struct pkv_err *err);
int summary_json_write(struct pkv_out *out, const struct pkv_summary *s,
                       const struct exact_means *means, const struct pkv_metrics_config *config,
                       const struct pkv_run_info *info, struct pkv_err *err);

int cache_file_write(struct pkv_out *out, const struct pkv_cache *cache, struct pkv_err *err);

#endif
