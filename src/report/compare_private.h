/*
 * compare_private.h - the parts of a comparison: its figures, its runs, pairs of requests.
 */
#ifndef PKV_REPORT_COMPARE_PRIVATE_H
#define PKV_REPORT_COMPARE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "pagedkv/report.h"

/* ---- the table of figures ---- */

enum figure_unit {
    UNIT_COUNT,
    UNIT_SHARE,      /* 0 .. 1 */
    UNIT_RATE,       /* a second */
    UNIT_NS,         /* in files: ns */
    UNIT_MS          /* held in ns; in files: ms */
};
enum figure_better { BETTER_LOWER, BETTER_HIGHER, BETTER_NEITHER };

/* Name in files, heading of its column, unit, and what is better. How much of the pool is held or
 * filled says nothing by itself: more work done at once and a thrashing queue both raise it. */
#define COMPARE_FIGURES(X)                                                               \
    X(FIGURE_COMPLETED, "completed", "completed", UNIT_COUNT, BETTER_HIGHER)             \
    X(FIGURE_REJECTED, "rejected", "rejected", UNIT_COUNT, BETTER_LOWER)                 \
    X(FIGURE_UNFINISHED, "unfinished", "unfinished", UNIT_COUNT, BETTER_LOWER)           \
    X(FIGURE_PREEMPTIONS, "preemptions", "preemptions", UNIT_COUNT, BETTER_LOWER)        \
    X(FIGURE_RECOMPUTED, "recomputed_frac", "recomputed", UNIT_SHARE, BETTER_LOWER)      \
    X(FIGURE_MAKESPAN, "makespan_ns", "makespan", UNIT_NS, BETTER_LOWER)                 \
    X(FIGURE_OUTPUT, "output_tokens_per_s", "output tok/s", UNIT_RATE, BETTER_HIGHER)    \
    X(FIGURE_GOOD, "good_frac", "within targets", UNIT_SHARE, BETTER_HIGHER)             \
    X(FIGURE_GOODPUT, "good_requests_per_s", "goodput req/s", UNIT_RATE, BETTER_HIGHER)  \
    X(FIGURE_TTFT_MEAN, "ttft_mean_ms", "ttft mean", UNIT_MS, BETTER_LOWER)              \
    X(FIGURE_TTFT_P99, "ttft_p99_ms", "ttft p99", UNIT_MS, BETTER_LOWER)                 \
    X(FIGURE_TPOT_MEAN, "tpot_mean_ms", "tpot mean", UNIT_MS, BETTER_LOWER)              \
    X(FIGURE_MAX_GAP_P99, "max_gap_p99_ms", "max gap p99", UNIT_MS, BETTER_LOWER)        \
    X(FIGURE_E2E_MEAN, "e2e_mean_ms", "e2e mean", UNIT_MS, BETTER_LOWER)                 \
    X(FIGURE_E2E_P99, "e2e_p99_ms", "e2e p99", UNIT_MS, BETTER_LOWER)                    \
    X(FIGURE_QUEUE_P99, "queue_p99_ms", "queue p99", UNIT_MS, BETTER_LOWER)              \
    X(FIGURE_USED, "used_frac", "blocks held", UNIT_SHARE, BETTER_NEITHER)               \
    X(FIGURE_SLOT_USE, "slot_use_frac", "slots filled", UNIT_SHARE, BETTER_NEITHER)      \
    X(FIGURE_HIT, "hit_frac", "prefix hits", UNIT_SHARE, BETTER_HIGHER)

enum figure {
#define FIGURE_ENUM(sym, name, heading, unit, better) sym,
    COMPARE_FIGURES(FIGURE_ENUM)
#undef FIGURE_ENUM
    FIGURE_COUNT
};
struct figure_info {
    const char *name, *heading;
    enum figure_unit unit;
    enum figure_better better;
};
extern const struct figure_info figure_infos[FIGURE_COUNT];

/* The figures of one run. */
struct run_figures {
    bool done;                        /* false = it never ended, or was stopped */
    enum pkv_outcome outcome;
    bool has[FIGURE_COUNT];           /* false = the thing never happened */
    double values[FIGURE_COUNT];
};
void run_figures_read(struct run_figures *out, const struct pkv_summary *summary);

/* ---- compare_pairs.c: the same requests in two configurations ---- */

/* Times of which a batch has means. */
#define BATCH_TIMES(X) X(TIME_TTFT, FIGURE_TTFT_MEAN) X(TIME_TPOT, FIGURE_TPOT_MEAN) \
                       X(TIME_E2E, FIGURE_E2E_MEAN)
enum batch_time {
#define TIME_ENUM(sym, figure) sym,
    BATCH_TIMES(TIME_ENUM)
#undef TIME_ENUM
    TIME_COUNT
};
/* One request, by row. PKV_NO_TIME where the thing never happened; end to end and per token only of
 * those that completed with a token. */
struct request_times {
    int64_t arrival_ns, ns[TIME_COUNT];
};
struct run_times {
    struct request_times *rows;       /* owned, [num of capacity] */
    size_t num, capacity;
};
struct pkv_sink run_times_sink(struct run_times *times);
void run_times_finish(struct run_times *times);

struct pairs {
    uint64_t better, worse, same;
    uint64_t lost, gained;            /* completed only in the first; only in this one */
    struct pkv_histogram *by_better, *by_worse;   /* owned; by how much */
};
int pairs_init(struct pairs *pairs, struct pkv_err *err);
void pairs_finish(struct pairs *pairs);
int pairs_add(struct pairs *pairs, const struct run_times *first, const struct run_times *times,
              struct pkv_err *err);

/* The requests that arrived in one of num equal stretches of the time between the first arrival and
 * the last: the means of their times. */
struct batch {
    bool has[TIME_COUNT];
    double means[TIME_COUNT];
};
/* No batch has anything if `times` lacks arrivals that `first` has: the stretches would differ. */
void batches_read(struct batch *out, uint32_t num, const struct run_times *first,
                  const struct run_times *times);

/* ---- the comparison ---- */

struct pkv_compare {
    const struct pkv_grid *grid;      /* borrowed */
    size_t num;                       /* configurations */
    uint32_t num_seeds;
    struct run_figures *runs;         /* owned, [num x num_seeds], those of a configuration together */
    struct pairs *pairs;              /* owned, [num]; the first one's are empty */
    uint32_t num_batches;             /* of each run; below 2 = none */
    struct batch *batches;            /* owned, [num x num_batches] */
    size_t num_done;
};

/* All runs of it ended by themselves. */
bool compare_is_done(const struct pkv_compare *c, size_t configuration);
/* "done", how the first of its runs that was not done ended, or "not_run". */
const char *compare_outcome(const struct pkv_compare *c, size_t configuration);
/* Are two configurations given different traffic? */
bool compare_varies_traffic(const struct pkv_compare *c);

/* One figure of one configuration over its seeds. */
struct cell {
    bool has;                 /* every seed has it */
    double mean, half;        /* half the 95 % interval, over seeds or batches */
    bool has_half, has_diff_half;
    bool has_diff;            /* to the first configuration, which has it too */
    double diff, diff_half;   /* mean of the differences seed by seed, and half their interval */
    bool has_percent;         /* the first one's is not 0, or both are */
    double percent;
    bool within_noise;        /* the interval of the differences has 0 in it */
    bool best;
};
/* Of all configurations; out has room for them. */
void compare_column(const struct pkv_compare *c, enum figure figure, struct cell *out);
/* Is there an interval to some of the figures? */
bool compare_has_intervals(const struct pkv_compare *c);
/* Has any configuration such a figure to show? */
bool compare_has_column(const struct pkv_compare *c, const struct cell *cells);

/* The 97.5 % quantile of Student's t; from the largest tabulated df that is not above, so that an
 * interval is never too narrow. df is 1 or more. */
double student_t975(uint64_t df);

/* A number in plain decimals, rounded to nearest (halves away from zero), without zeros at the
 * end. */
void add_decimal(struct pkv_text *t, double number, unsigned num_decimals);

#endif
