/*
 * compare_private.h - the parts of a comparison: its figures, its runs, pairs of requests, tenants
 * and classes, series over time.
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
    UNIT_MEAN,       /* of a count over time */
    UNIT_SHARE,      /* 0 .. 1 */
    UNIT_RATE,       /* a second */
    UNIT_INDEX,      /* Jain's: 1 / number of tenants .. 1 */
    UNIT_NS,         /* in files: ns */
    UNIT_MS          /* held in ns; in files: ms */
};
enum figure_better { BETTER_LOWER, BETTER_HIGHER, BETTER_NEITHER };

/* Name in files, heading of its column, unit, and what is better. How much of the pool is held or
 * filled says nothing by itself: more work done at once and a thrashing queue both raise it. */
#define COMPARE_FIGURES(X)                                                               \
    X(FIGURE_COMPLETED, "completed", "completed", UNIT_COUNT, BETTER_HIGHER)             \
    X(FIGURE_REJECTED, "rejected", "rejected", UNIT_COUNT, BETTER_LOWER)                 \
    X(FIGURE_ABORTED, "aborted", "aborted", UNIT_COUNT, BETTER_NEITHER)                  \
    X(FIGURE_UNFINISHED, "unfinished", "unfinished", UNIT_COUNT, BETTER_LOWER)           \
    X(FIGURE_PREEMPTIONS, "preemptions", "preemptions", UNIT_COUNT, BETTER_LOWER)        \
    X(FIGURE_RECOMPUTED, "recomputed_frac", "recomputed", UNIT_SHARE, BETTER_LOWER)      \
    X(FIGURE_SWAPPED, "swapped_bytes", "bytes moved", UNIT_COUNT, BETTER_NEITHER)        \
    X(FIGURE_MAKESPAN, "makespan_ns", "makespan", UNIT_NS, BETTER_LOWER)                 \
    X(FIGURE_REQUESTS, "requests_per_s", "requests/s", UNIT_RATE, BETTER_HIGHER)         \
    X(FIGURE_OUTPUT, "output_tokens_per_s", "output tok/s", UNIT_RATE, BETTER_HIGHER)    \
    X(FIGURE_GOOD, "good_frac", "within targets", UNIT_SHARE, BETTER_HIGHER)             \
    X(FIGURE_GOODPUT, "good_requests_per_s", "goodput req/s", UNIT_RATE, BETTER_HIGHER)  \
    X(FIGURE_TTFT_MEAN, "ttft_mean_ms", "ttft mean", UNIT_MS, BETTER_LOWER)              \
    X(FIGURE_TTFT_P99, "ttft_p99_ms", "ttft p99", UNIT_MS, BETTER_LOWER)                 \
    X(FIGURE_TPOT_MEAN, "tpot_mean_ms", "tpot mean", UNIT_MS, BETTER_LOWER)              \
    X(FIGURE_GAP_MEAN, "itl_mean_ms", "gap mean", UNIT_MS, BETTER_LOWER)                 \
    X(FIGURE_GAP_P99, "itl_p99_ms", "gap p99", UNIT_MS, BETTER_LOWER)                    \
    X(FIGURE_MAX_GAP_P99, "max_gap_p99_ms", "max gap p99", UNIT_MS, BETTER_LOWER)        \
    X(FIGURE_E2E_MEAN, "e2e_mean_ms", "e2e mean", UNIT_MS, BETTER_LOWER)                 \
    X(FIGURE_E2E_P99, "e2e_p99_ms", "e2e p99", UNIT_MS, BETTER_LOWER)                    \
    X(FIGURE_QUEUE_P99, "queue_p99_ms", "queue p99", UNIT_MS, BETTER_LOWER)              \
    X(FIGURE_RUNNING, "running_mean", "running", UNIT_MEAN, BETTER_NEITHER)              \
    X(FIGURE_USED, "used_frac", "blocks held", UNIT_SHARE, BETTER_NEITHER)               \
    X(FIGURE_SLOT_USE, "slot_use_frac", "slots filled", UNIT_SHARE, BETTER_NEITHER)      \
    X(FIGURE_HIT, "hit_frac", "prefix hits", UNIT_SHARE, BETTER_HIGHER)                  \
    X(FIGURE_JAIN_SERVICE, "jain_service", "Jain service", UNIT_INDEX, BETTER_HIGHER)    \
    X(FIGURE_JAIN_TTFT, "jain_ttft", "Jain ttft", UNIT_INDEX, BETTER_HIGHER)

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

/* ---- compare_groups.c: the requests of one tenant, or of one priority ---- */

#define GROUP_FIGURES(X)                                                                     \
    X(GROUP_REQUESTS, "requests", "requests", UNIT_COUNT, BETTER_NEITHER)                    \
    X(GROUP_COMPLETED, "completed", "completed", UNIT_COUNT, BETTER_HIGHER)                  \
    X(GROUP_OUTPUT, "output_tokens", "output tokens", UNIT_COUNT, BETTER_HIGHER)             \
    X(GROUP_SERVICE, "service_per_s", "service/s", UNIT_RATE, BETTER_HIGHER)                 \
    X(GROUP_PREEMPTIONS, "preemptions", "preemptions", UNIT_COUNT, BETTER_LOWER)             \
    X(GROUP_TTFT_MEAN, "ttft_mean_ms", "ttft mean", UNIT_MS, BETTER_LOWER)                   \
    X(GROUP_TTFT_P99, "ttft_p99_ms", "ttft p99", UNIT_MS, BETTER_LOWER)                      \
    X(GROUP_E2E_MEAN, "e2e_mean_ms", "e2e mean", UNIT_MS, BETTER_LOWER)                      \
    X(GROUP_E2E_P99, "e2e_p99_ms", "e2e p99", UNIT_MS, BETTER_LOWER)

enum group_figure {
#define FIGURE_ENUM(sym, name, heading, unit, better) sym,
    GROUP_FIGURES(FIGURE_ENUM)
#undef FIGURE_ENUM
    GROUP_FIGURE_COUNT
};
extern const struct figure_info group_figure_infos[GROUP_FIGURE_COUNT];

struct group_figures {
    bool has[GROUP_FIGURE_COUNT];     /* false = the thing never happened */
    double values[GROUP_FIGURE_COUNT];
};

/* Those without a tenant are one of their own. In order: by kind, none before the others, then by
 * bytes of the name; priorities by number. */
#define GROUP_KINDS(X) X(GROUP_TENANT, "tenant") X(GROUP_PRIORITY, "priority")
enum group_kind {
#define KIND_ENUM(sym, word) sym,
    GROUP_KINDS(KIND_ENUM)
#undef KIND_ENUM
    GROUP_KIND_COUNT
};
extern const char *const group_kind_names[GROUP_KIND_COUNT];
struct group_key {
    enum group_kind kind;
    const char *tenant;               /* NULL = none is said, and of a priority */
    int64_t priority;                 /* 0 of a tenant */
};
/* < 0, 0 or > 0, as strcmp() does. */
int group_key_compare(const struct group_key *a, const struct group_key *b);

/* Only requests that arrive in it count. */
struct request_window {
    int64_t after_ns, until_ns;       /* until 0 = to the end */
};
static inline bool is_in_window(const struct request_window *w, int64_t arrival_ns)
{
    return arrival_ns >= w->after_ns && (w->until_ns == 0 || arrival_ns < w->until_ns);
}

/* What one run did for each. */
struct run_group;
struct group_member;
struct run_groups {
    struct request_window window;
    struct run_group *groups;         /* owned, [num of capacity]; in the order they came */
    size_t num, capacity;
    size_t last[GROUP_KIND_COUNT];    /* that of the former request */
    size_t *slots;                    /* owned, [num_slots], a hash table: index + 1, or 0 */
    size_t num_slots;
    struct group_member *members;     /* owned: one for each request with a token */
    size_t num_members, members_capacity;
};
struct pkv_sink run_groups_sink(struct run_groups *groups);
/* The figures of each after a run that ended at end_ns; out has room for groups->num, zeroed. */
int run_groups_read(const struct run_groups *groups, int64_t end_ns, struct group_figures *out,
                    struct pkv_err *err);
const struct group_key *run_groups_key(const struct run_groups *groups, size_t i);
void run_groups_finish(struct run_groups *groups);

/* ---- compare_fairness.c: the groups of all runs ---- */

struct compare_group {
    struct group_key key;
    char *tenant;                     /* owned; what the key points to */
    struct group_figures *runs;       /* owned, [num x num_seeds], as those of the comparison */
};
struct compare_groups {
    struct compare_group *items;      /* owned, [num of capacity]; in order */
    size_t num, capacity;
};
/* Take in what run number `run` of num_runs did; figures are those of its groups. */
int compare_groups_add(struct compare_groups *all, const struct run_groups *groups,
                       const struct group_figures *figures, size_t run, size_t num_runs,
                       struct pkv_err *err);
void compare_groups_finish(struct compare_groups *all);
/* How many of a kind there are, and where they begin: they stand together. */
size_t compare_groups_of(const struct compare_groups *all, enum group_kind kind, size_t *out_first);

/* Jain's index, (sum x)^2 / (n sum x^2): 1 when all are the same, 1 / n when one has everything.
 * false = fewer than two numbers, or all are 0. */
struct jain {
    uint64_t num;
    double sum, squares;
};
void jain_add(struct jain *jain, double value);
bool jain_read(const struct jain *jain, double *out);
/* Of one figure over the tenants of a run; false also when one of them has no such figure. */
bool run_groups_jain(const struct run_groups *groups, const struct group_figures *figures,
                     enum group_figure figure, double *out);

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
    struct request_window window;     /* others have no times */
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

/* The requests that arrived in one of num equal stretches of the time between the first arrival (in the
 * window) and the last: the means of their times. */
struct batch {
    bool has[TIME_COUNT];
    double means[TIME_COUNT];
};
/* No batch has anything if `times` lacks arrivals that `first` has: the stretches would differ. */
void batches_read(struct batch *out, uint32_t num, const struct run_times *first,
                  const struct run_times *times);

/* ---- compare_series.c: over time ---- */

struct series_bin {
    uint32_t min_free, max_free, min_waiting, max_waiting, min_running, max_running;
    uint64_t preemptions;             /* in it */
};
/* One run from its first arrival on, in equal bins. */
struct run_series {
    struct series_bin *bins;          /* owned, [num of capacity] */
    size_t num, capacity;
    int64_t width_ns;                 /* set it before the first row, for all runs the same */
    int64_t end_ns;                   /* of the last row, from the first arrival */
    unsigned num_widenings;
};
int run_series_add(struct run_series *series, int64_t first_arrival_ns,
                   const struct pkv_step_row *row, struct pkv_err *err);
void run_series_finish(struct run_series *series);

/* Bins of one width for all configurations, the least that is enough for the longest run. */
#define OVERLAY_BINS 1000
struct pkv_compare;
struct overlay_grid {
    int64_t width_ns;                 /* 0 = no run was done */
    int64_t end_ns;                   /* of the run that took longest */
};
void overlay_grid_read(const struct pkv_compare *c, struct overlay_grid *out);
/* The bins of one run, the last one cut at its end; out has room for OVERLAY_BINS. returns how
 * many. */
size_t overlay_read(const struct run_series *series, const struct overlay_grid *grid,
                    struct pkv_series_point *out);

/* ---- compare_html.c: report.html ---- */

/* What the page asks a configuration's first run. Beyond so many it shows figures only. */
#define COMPARE_PAGE_RUNS 12u
struct kept_run {
    struct pkv_metrics *metrics;      /* owned; NULL = not run to its end, or not asked for */
    bool has_notes;
    struct pkv_trace_notes notes;
};
int compare_html(struct pkv_out *out, const struct pkv_compare *c, struct pkv_err *err);

/* ---- the comparison ---- */

struct pkv_compare {
    const struct pkv_grid *grid;      /* borrowed */
    size_t num;                       /* configurations */
    uint32_t num_seeds;
    int64_t step_ns;                  /* of every step of every run; 0 = they differ */
    struct run_figures *runs;         /* owned, [num x num_seeds], those of a configuration together */
    struct pairs *pairs;              /* owned, [num]; the first one's are empty */
    uint32_t num_batches;             /* of each run; below 2 = none */
    struct batch *batches;            /* owned, [num x num_batches] */
    struct compare_groups groups;
    struct run_series *series;        /* owned, [num]; of the first seed */
    struct kept_run *kept;            /* owned, [num]; of the first seed */
    const char *version;              /* for the page; NULL = no page is wanted */
    size_t num_done;
};

/* All runs of it ended by themselves. */
bool compare_is_done(const struct pkv_compare *c, size_t configuration);
/* "done", how the first of its runs that was not done ended, or "not_run". */
const char *compare_outcome(const struct pkv_compare *c, size_t configuration);
/* It came to its end, or to the horizon that was set. */
bool compare_is_whole(const struct pkv_compare *c, size_t configuration);
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
void compare_group_column(const struct pkv_compare *c, const struct compare_group *group,
                          enum group_figure figure, struct cell *out);
/* Is there an interval to some of the figures? */
bool compare_has_intervals(const struct pkv_compare *c);
/* Has any configuration such a figure to show? */
bool compare_has_column(const struct pkv_compare *c, const struct cell *cells);

/* The 97.5 % quantile of Student's t; from the largest tabulated df that is not above, so that an
 * interval is never too narrow. df is 1 or more. */
double student_t975(uint64_t df);

/* ---- compare_files.c, compare_json.c ---- */

#define COMPARE_VALUE_DECIMALS 6u
#define COMPARE_PERCENT_DECIMALS 4u
#define COMPARE_NS_PER_MS 1000000

/* A number in plain decimals, rounded to nearest (halves away from zero), without zeros at the
 * end. */
void add_decimal(struct pkv_text *t, double number, unsigned num_decimals);
/* The median in ms. */
void add_median(struct pkv_text *t, const struct pkv_histogram *h);
/* The cells of all figures, [FIGURE_COUNT][num]; NULL = out of memory. The caller frees. */
struct cell *compare_cells(const struct pkv_compare *c, struct pkv_err *err);
/* Can its requests be told better or worse than those of configuration 1? */
bool compare_has_pairs(const struct pkv_compare *c, size_t configuration);
/* The whole text of compare.json. */
int compare_json(struct pkv_text *t, const struct pkv_compare *c, struct pkv_err *err);

#endif
