/*
 * compare.c - figures side by side: means over seeds, differences to the first, the best.
 *
 * Differences are taken seed by seed: both configurations see the same traffic, so what the seed
 * does to both is no noise between them. Sums run in the order of the seeds, so the same runs give
 * the same digits.
 */
#include "report/compare_private.h"

#include <math.h>
#include <string.h>

#define TABLED 30u

const struct figure_info figure_infos[FIGURE_COUNT] = {
#define FIGURE_ROW(sym, name, heading, unit, better) [sym] = {name, heading, unit, better},
    COMPARE_FIGURES(FIGURE_ROW)
#undef FIGURE_ROW
};

static void put(struct run_figures *r, enum figure f, double value)
{
    r->has[f] = true;
    r->values[f] = value;
}

static void put_mean(struct run_figures *r, enum figure f, const struct pkv_distribution *d)
{
    if (d->count > 0)
        put(r, f, (double)d->sum / (double)d->count);
}

static void put_p99(struct run_figures *r, enum figure f, const struct pkv_distribution *d)
{
    if (d->count > 0)
        put(r, f, (double)d->p99);
}

static void put_share(struct run_figures *r, enum figure f, uint64_t part, uint64_t whole)
{
    if (whole > 0)
        put(r, f, (double)part / (double)whole);
}

static void put_goodput(struct run_figures *r, const struct pkv_summary *s)
{
    if (!s->has_targets)
        return;
    put_share(r, FIGURE_GOOD, s->good_requests, s->engine.arrived);
    if (s->makespan_ns > 0)
        put(r, FIGURE_GOODPUT, (double)s->good_requests * 1e9 / (double)s->makespan_ns);
}

void run_figures_read(struct run_figures *out, const struct pkv_summary *s)
{
    const struct pkv_engine_figures *e = &s->engine;
    out->done = true;
    out->outcome = e->outcome;
    put(out, FIGURE_COMPLETED, (double)e->completed);
    put(out, FIGURE_REJECTED, (double)e->rejected);
    put(out, FIGURE_ABORTED, (double)e->aborted);
    put(out, FIGURE_UNFINISHED, (double)e->unfinished);
    put(out, FIGURE_PREEMPTIONS, (double)e->preemptions);
    put_share(out, FIGURE_RECOMPUTED, e->recomputed_tokens, e->scheduled_tokens);
    if (e->swap_block_bytes > 0)
        put(out, FIGURE_SWAPPED, (double)(e->swapped_out_blocks + e->swapped_in_blocks) *
                                     (double)e->swap_block_bytes);
    put(out, FIGURE_MAKESPAN, (double)s->makespan_ns);
    put(out, FIGURE_REQUESTS, s->requests_per_s);
    put(out, FIGURE_OUTPUT, s->output_tokens_per_s);
    put_goodput(out, s);
    put_mean(out, FIGURE_TTFT_MEAN, &s->ttft);
    put_p99(out, FIGURE_TTFT_P99, &s->ttft);
    put_mean(out, FIGURE_TPOT_MEAN, &s->tpot);
    put_mean(out, FIGURE_GAP_MEAN, &s->itl);
    put_p99(out, FIGURE_GAP_P99, &s->itl);
    put_p99(out, FIGURE_MAX_GAP_P99, &s->max_gap);
    put_mean(out, FIGURE_E2E_MEAN, &s->e2e);
    put_p99(out, FIGURE_E2E_P99, &s->e2e);
    put_p99(out, FIGURE_QUEUE_P99, &s->queue);
    put(out, FIGURE_RUNNING, s->mean_running);
    put(out, FIGURE_USED, s->mean_used_frac);
    put(out, FIGURE_SLOT_USE, s->mean_slot_use_frac);
    put_share(out, FIGURE_HIT, e->hit_tokens, e->queried_tokens);
}

/* Critical values of Student's t, upper tail 0.025: NIST/SEMATECH e-Handbook of Statistical
 * Methods, section 1.3.6.7.2. */
double student_t975(uint64_t df)
{
    static const double values[TABLED + 1] = {
        [1] = 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
        2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    static const struct { uint64_t df; double value; } wide[] = {
        {100, 1.984}, {80, 1.990}, {60, 2.000}, {50, 2.009}, {40, 2.021}};
    PKV_ASSERT(df > 0);
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (df >= wide[i].df)
            return wide[i].value;
    return values[df < TABLED ? df : TABLED];
}

/* One figure of every run: where that of run 0 is, and how many bytes further the next one. */
struct readings {
    const bool *has;
    const double *values;
    size_t stride;
};

static double value_at(const struct readings *r, size_t run)
{
    return *(const double *)(const void *)((const char *)r->values + run * r->stride);
}

static bool has_all(const struct pkv_compare *c, const struct readings *r, size_t configuration)
{
    size_t run = configuration * c->num_seeds;
    for (uint32_t i = 0; i < c->num_seeds; i++, run++)
        if (!c->runs[run].done ||
            !*(const bool *)(const void *)((const char *)r->has + run * r->stride))
            return false;
    return true;
}

/* Mean over the seeds of a configuration and half its interval; less_first: of the differences to
 * the first configuration. */
static void average(const struct pkv_compare *c, const struct readings *r, size_t configuration,
                    bool less_first, double *out_mean, double *out_half)
{
    size_t run = configuration * c->num_seeds;
    uint32_t n = c->num_seeds;
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += value_at(r, run + i) - (less_first ? value_at(r, i) : 0.0);
    *out_mean = sum / n;
    *out_half = 0;
    if (n < 2)
        return;
    for (uint32_t i = 0; i < n; i++) {
        double off = value_at(r, run + i) - (less_first ? value_at(r, i) : 0.0) - *out_mean;
        squares += off * off;
    }
    *out_half = student_t975(n - 1) * sqrt(squares / (n - 1) / n);
}

/* Means of n numbers and half their interval. */
static bool read_interval(const double *values, size_t n, double *out_mean, double *out_half)
{
    double sum = 0, squares = 0;
    if (n < 2)
        return false;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    *out_mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - *out_mean) * (values[i] - *out_mean);
    *out_half = student_t975(n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
    return true;
}

/* The time that a figure is the mean of; TIME_COUNT = of none. */
static enum batch_time batch_time_of(enum figure figure)
{
    static const enum figure figures[TIME_COUNT] = {
#define TIME_FIGURE(sym, of) [sym] = of,
        BATCH_TIMES(TIME_FIGURE)
#undef TIME_FIGURE
    };
    int kind = 0;
    while (kind < TIME_COUNT && figures[kind] != figure)
        kind++;
    return (enum batch_time)kind;
}

/* Intervals over batches: what a configuration's means differ by, and what its differences to the
 * first one do, stretch by stretch. */
static void add_batches(const struct pkv_compare *c, enum figure figure, size_t configuration,
                        struct cell *cell)
{
    enum batch_time kind = batch_time_of(figure);
    const struct batch *first = c->batches;
    double values[PKV_COMPARE_MAX_BATCHES], diffs[PKV_COMPARE_MAX_BATCHES], mean = 0;
    size_t num = 0, num_diffs = 0;
    if (kind == TIME_COUNT || c->num_batches < 2)
        return;
    for (size_t i = 0; i < c->num_batches; i++) {
        const struct batch *b = &first[configuration * c->num_batches + i];
        if (b->has[kind])
            values[num++] = b->means[kind];
        if (b->has[kind] && first[i].has[kind])
            diffs[num_diffs++] = b->means[kind] - first[i].means[kind];
    }
    cell->has_half = read_interval(values, num, &mean, &cell->half);
    if (!cell->has_diff)
        return;
    cell->has_diff_half = read_interval(diffs, num_diffs, &mean, &cell->diff_half);
    cell->within_noise = cell->has_diff_half && cell->diff_half > 0 &&
                         fabs(mean) <= cell->diff_half;
}

static void fill_difference(struct cell *cell, const struct cell *first, uint32_t num_seeds)
{
    bool from_zero = !(first->mean > 0 || first->mean < 0);
    cell->has_diff = true;
    cell->has_diff_half = num_seeds > 1;
    cell->within_noise = num_seeds > 1 && cell->diff_half > 0 &&
                         fabs(cell->diff) <= cell->diff_half;
    cell->has_percent = !from_zero || !(cell->diff > 0 || cell->diff < 0);
    if (cell->has_percent)
        cell->percent = from_zero ? 0.0 : cell->diff / first->mean * 100.0;
}

static bool is_better(enum figure_better better, double a, double b)
{
    return better == BETTER_LOWER ? a < b : a > b;
}

static bool is_finished(const struct pkv_compare *c, const struct cell *cells, size_t i)
{
    return cells[i].has && compare_is_whole(c, i);
}

/* Of those that ended; c->num = there is none. *out_differ: are some worse? */
static size_t find_best(const struct pkv_compare *c, enum figure_better better,
                        const struct cell *cells, bool *out_differ)
{
    size_t best = c->num;
    *out_differ = false;
    for (size_t i = 0; i < c->num; i++) {
        if (!is_finished(c, cells, i))
            continue;
        if (best == c->num) {
            best = i;
        } else if (is_better(better, cells[i].mean, cells[best].mean)) {
            best = i;
            *out_differ = true;
        } else {
            *out_differ |= is_better(better, cells[best].mean, cells[i].mean);
        }
    }
    return best;
}

/* Is what makes it the best perhaps noise? Differences are known to the first configuration alone: so
 * the best one's own if it is another, and those of all others if it is the first. */
static bool best_is_noise(const struct pkv_compare *c, const struct cell *cells, size_t best)
{
    if (best > 0)
        return cells[best].within_noise;
    for (size_t i = 1; i < c->num; i++)
        if (is_finished(c, cells, i) && cells[i].within_noise)
            return true;
    return false;
}

/* The best ones, unless all that ended are the same, or may be. */
static void mark_best(const struct pkv_compare *c, enum figure_better better, struct cell *cells)
{
    bool differ;
    size_t best = better == BETTER_NEITHER ? c->num : find_best(c, better, cells, &differ);
    if (best == c->num || !differ || best_is_noise(c, cells, best))
        return;
    for (size_t i = 0; i < c->num; i++)
        cells[i].best = is_finished(c, cells, i) && !cells[i].within_noise &&
                        !is_better(better, cells[best].mean, cells[i].mean);
}

static void read_column(const struct pkv_compare *c, const struct readings *r, struct cell *out)
{
    for (size_t i = 0; i < c->num; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].has = has_all(c, r, i);
        if (!out[i].has)
            continue;
        average(c, r, i, false, &out[i].mean, &out[i].half);
        out[i].has_half = c->num_seeds > 1;
        if (i > 0 && out[0].has) {
            average(c, r, i, true, &out[i].diff, &out[i].diff_half);
            fill_difference(&out[i], &out[0], c->num_seeds);
        }
    }
}

void compare_column(const struct pkv_compare *c, enum figure figure, struct cell *out)
{
    const struct readings r = {&c->runs->has[figure], &c->runs->values[figure], sizeof *c->runs};
    read_column(c, &r, out);
    for (size_t i = 0; i < c->num; i++)
        if (out[i].has)
            add_batches(c, figure, i, &out[i]);
    mark_best(c, figure_infos[figure].better, out);
}

void compare_group_column(const struct pkv_compare *c, const struct compare_group *group,
                          enum group_figure figure, struct cell *out)
{
    const struct readings r = {&group->runs->has[figure], &group->runs->values[figure],
                               sizeof *group->runs};
    read_column(c, &r, out);
    mark_best(c, group_figure_infos[figure].better, out);
}

bool compare_has_intervals(const struct pkv_compare *c)
{
    return c->num_seeds > 1 || c->num_batches > 1;
}

bool compare_has_column(const struct pkv_compare *c, const struct cell *cells)
{
    for (size_t i = 0; i < c->num; i++)
        if (cells[i].has)
            return true;
    return false;
}

bool compare_is_done(const struct pkv_compare *c, size_t configuration)
{
    for (uint32_t i = 0; i < c->num_seeds; i++)
        if (!c->runs[configuration * c->num_seeds + i].done)
            return false;
    return true;
}

const char *compare_outcome(const struct pkv_compare *c, size_t configuration)
{
    const struct run_figures *runs = &c->runs[configuration * c->num_seeds];
    if (!compare_is_done(c, configuration))
        return "not_run";
    for (uint32_t i = 0; i < c->num_seeds; i++)
        if (runs[i].outcome != PKV_OUTCOME_DONE)
            return pkv_outcome_name(runs[i].outcome);
    return pkv_outcome_name(PKV_OUTCOME_DONE);
}

bool compare_is_whole(const struct pkv_compare *c, size_t configuration)
{
    const char *outcome = compare_outcome(c, configuration);
    return strcmp(outcome, pkv_outcome_name(PKV_OUTCOME_DONE)) == 0 ||
           strcmp(outcome, pkv_outcome_name(PKV_OUTCOME_HORIZON)) == 0;
}

bool compare_varies_traffic(const struct pkv_compare *c)
{
    for (size_t i = 0; i < c->grid->num_axes; i++)
        if (strncmp(c->grid->axes[i].key, "traffic", strlen("traffic")) == 0 &&
            c->grid->axes[i].num_values > 1)
            return true;
    return false;
}

size_t pkv_compare_num_done(const struct pkv_compare *compare)
{
    return compare->num_done;
}

size_t pkv_compare_num_runs(const struct pkv_compare *compare)
{
    return compare->num * compare->num_seeds;
}

bool pkv_compare_is_finished(const struct pkv_compare *compare)
{
    for (size_t i = 0; i < compare->num; i++)
        if (!compare_is_whole(compare, i))
            return false;
    return true;
}
