/*
 * compare_files.c - a comparison as CSV: figures, tenants and priorities, series over time; and all
 * of its files put in place.
 *
 * A figure that a configuration does not have is empty. No clock and no number of threads goes into
 * them. All files are written before the first one takes its name.
 */
#include "report/compare_private.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

void add_decimal(struct pkv_text *t, double number, unsigned num_decimals)
{
    __int128 scale = 1, whole;
    double size = fabs(number);
    for (unsigned i = 0; i < num_decimals; i++)
        scale *= 10;
    if (size > 1e18)
        size = 1e18;
    whole = (__int128)size * scale + (__int128)((size - floor(size)) * (double)scale + 0.5);
    if (number < 0 && whole > 0)
        pkv_text_add(t, "-");
    pkv_text_ratio(t, whole, scale, num_decimals);
}

/* A value, or a difference of values, in the unit that files have. */
static void add_value(struct pkv_text *t, enum figure_unit unit, double value)
{
    add_decimal(t, unit == UNIT_MS ? value / COMPARE_NS_PER_MS : value, COMPARE_VALUE_DECIMALS);
}

struct cell *compare_cells(const struct pkv_compare *c, struct pkv_err *err)
{
    struct cell *cells = pkv_alloc(FIGURE_COUNT * c->num, sizeof *cells, err);
    for (size_t f = 0; f < FIGURE_COUNT && cells; f++)
        compare_column(c, (enum figure)f, &cells[f * c->num]);
    return cells;
}

void add_median(struct pkv_text *t, const struct pkv_histogram *h)
{
    struct pkv_distribution d;
    pkv_histogram_read(h, &d);
    pkv_text_ratio(t, d.p50, COMPARE_NS_PER_MS, COMPARE_VALUE_DECIMALS);
}

bool compare_has_pairs(const struct pkv_compare *c, size_t i)
{
    return i > 0 && compare_is_done(c, 0) && compare_is_done(c, i);
}

/* ---- compare.csv ---- */

/* The columns that one figure has. */
static void csv_names(struct pkv_text *t, const char *name, bool intervals)
{
    pkv_text_fmt(t, ",%s", name);
    if (intervals)
        pkv_text_fmt(t, ",%s_half95", name);
    pkv_text_fmt(t, ",%s_diff_percent", name);
    if (intervals)
        pkv_text_fmt(t, ",%s_diff,%s_diff_half95", name, name);
    pkv_text_fmt(t, ",%s_best", name);
}

static void csv_header(struct pkv_text *t, const struct pkv_compare *c)
{
    pkv_text_add(t, "configuration,");
    for (size_t i = 0; i < c->grid->num_axes; i++) {
        pkv_text_csv(t, c->grid->axes[i].key);
        pkv_text_add(t, ",");
    }
    pkv_text_add(t, "outcome");
    for (size_t f = 0; f < FIGURE_COUNT; f++)
        csv_names(t, figure_infos[f].name, compare_has_intervals(c));
    pkv_text_add(t, ",better,worse,same,lost,gained,better_p50_ms,worse_p50_ms\n");
}

static void csv_cell(struct pkv_text *t, enum figure_unit unit, const struct cell *cell,
                     bool intervals)
{
    pkv_text_add(t, ",");
    if (cell->has)
        add_value(t, unit, cell->mean);
    if (intervals)
        pkv_text_add(t, ",");
    if (cell->has_half)
        add_value(t, unit, cell->half);
    pkv_text_add(t, ",");
    if (cell->has_percent)
        add_decimal(t, cell->percent, COMPARE_PERCENT_DECIMALS);
    if (intervals)
        pkv_text_add(t, ",");
    if (intervals && cell->has_diff)
        add_value(t, unit, cell->diff);
    if (intervals)
        pkv_text_add(t, ",");
    if (cell->has_diff_half)
        add_value(t, unit, cell->diff_half);
    pkv_text_add(t, cell->best ? ",1" : ",0");
}

static void csv_pairs(struct pkv_text *t, const struct pairs *p)
{
    pkv_text_fmt(t, ",%llu,%llu,%llu,%llu,%llu,", (unsigned long long)p->better,
                 (unsigned long long)p->worse, (unsigned long long)p->same,
                 (unsigned long long)p->lost, (unsigned long long)p->gained);
    if (p->better > 0)
        add_median(t, p->by_better);
    pkv_text_add(t, ",");
    if (p->worse > 0)
        add_median(t, p->by_worse);
}

static void csv_row(struct pkv_text *t, const struct pkv_compare *c, const struct cell *cells,
                    size_t i)
{
    pkv_text_fmt(t, "%zu", i + 1);
    for (size_t axis = 0; axis < c->grid->num_axes; axis++) {
        pkv_text_add(t, ",");
        pkv_text_csv(t, c->grid->axes[axis].values[pkv_grid_place(c->grid, i, axis)]);
    }
    pkv_text_fmt(t, ",%s", compare_outcome(c, i));
    for (size_t f = 0; f < FIGURE_COUNT; f++)
        csv_cell(t, figure_infos[f].unit, &cells[f * c->num + i], compare_has_intervals(c));
    if (compare_has_pairs(c, i))
        csv_pairs(t, &c->pairs[i]);
    else
        pkv_text_add(t, ",,,,,,,");
    pkv_text_add(t, "\n");
}

static int write_csv(struct pkv_text *t, const struct pkv_compare *c, struct pkv_err *err)
{
    struct cell *cells = compare_cells(c, err);
    if (!cells)
        return -1;
    csv_header(t, c);
    for (size_t i = 0; i < c->num; i++)
        csv_row(t, c, cells, i);
    pkv_free(cells);
    return 0;
}

/* ---- fairness.csv ---- */

static void fairness_header(struct pkv_text *t, const struct pkv_compare *c)
{
    pkv_text_add(t, "configuration,group,name");
    for (size_t f = 0; f < GROUP_FIGURE_COUNT; f++)
        csv_names(t, group_figure_infos[f].name, c->num_seeds > 1);
    pkv_text_add(t, "\n");
}

static void fairness_row(struct pkv_text *t, const struct pkv_compare *c, size_t i,
                         const struct group_key *key, const struct cell *cells)
{
    pkv_text_fmt(t, "%zu,%s,", i + 1, group_kind_names[key->kind]);
    if (key->kind == GROUP_PRIORITY)
        pkv_text_i64(t, key->priority);
    else if (key->tenant)
        pkv_text_csv(t, key->tenant);
    for (size_t f = 0; f < GROUP_FIGURE_COUNT; f++)
        csv_cell(t, group_figure_infos[f].unit, &cells[f * c->num + i], c->num_seeds > 1);
    pkv_text_add(t, "\n");
}

/* Group by group, so that what is to be compared stands together. */
static int write_fairness(struct pkv_text *t, const struct pkv_compare *c, struct pkv_err *err)
{
    struct cell *cells = pkv_alloc(GROUP_FIGURE_COUNT * c->num, sizeof *cells, err);
    if (!cells)
        return -1;
    fairness_header(t, c);
    for (size_t i = 0; i < c->groups.num; i++) {
        const struct compare_group *group = &c->groups.items[i];
        for (size_t f = 0; f < GROUP_FIGURE_COUNT; f++)
            compare_group_column(c, group, (enum group_figure)f, &cells[f * c->num]);
        for (size_t configuration = 0; configuration < c->num; configuration++)
            fairness_row(t, c, configuration, &group->key, cells);
    }
    pkv_free(cells);
    return 0;
}

/* ---- overlay.csv ---- */

static int write_overlay(struct pkv_out *out, const struct pkv_compare *c, struct pkv_err *err)
{
    struct pkv_series_point *points = pkv_alloc(OVERLAY_BINS, sizeof *points, err);
    struct overlay_grid grid;
    if (!points)
        return -1;
    overlay_grid_read(c, &grid);
    pkv_out_text(out, "configuration,begin_ns,end_ns,free_blocks_min,free_blocks_max,waiting_min,"
                      "waiting_max,running_min,running_max,preemptions_total\n");
    for (size_t i = 0; i < c->num; i++) {
        size_t num = overlay_read(&c->series[i], &grid, points);
        int64_t preemptions = 0;
        for (size_t at = 0; at < num; at++) {
            const struct pkv_series_point *p = &points[at];
            preemptions += p->preemptions;
            const int64_t values[] = {(int64_t)i + 1, p->begin_ns, p->begin_ns + grid.width_ns,
                                      p->min_free, p->max_free, p->min_waiting, p->max_waiting,
                                      p->min_running, p->max_running, preemptions};
            pkv_out_csv_row(out, values, sizeof values / sizeof values[0]);
        }
    }
    pkv_free(points);
    return 0;
}

/* ---- all of them ---- */

typedef int write_text(struct pkv_text *t, const struct pkv_compare *c, struct pkv_err *err);

static int put_text(struct pkv_out *out, const struct pkv_compare *c, write_text *write,
                    struct pkv_err *err)
{
    struct pkv_text t = {0};
    int status = write(&t, c, err);
    if (status == 0 && t.failed)
        status = pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a comparison");
    if (status == 0)
        pkv_out_bytes(out, t.text, t.length);
    pkv_text_free(&t);
    return status;
}

enum compare_file { FILE_CSV, FILE_JSON, FILE_FAIRNESS, FILE_OVERLAY, FILE_HTML,
                    FILE_COUNT };

static int write_file(struct pkv_out *out, enum compare_file file, const struct pkv_compare *c,
                      struct pkv_err *err)
{
    switch (file) {
    case FILE_CSV:      return put_text(out, c, write_csv, err);
    case FILE_JSON:     return put_text(out, c, compare_json, err);
    case FILE_FAIRNESS: return put_text(out, c, write_fairness, err);
    case FILE_OVERLAY:  return write_overlay(out, c, err);
    case FILE_HTML:     return compare_html(out, c, err);
    case FILE_COUNT:    break;
    }
    PKV_UNREACHABLE("a file");
}

static const char *const names[FILE_COUNT] = {"compare.csv", "compare.json", "fairness.csv",
                                              "overlay.csv", "report.html"};

int pkv_compare_spare(const struct pkv_grid *grid, const char *path, const char *dir,
                      struct pkv_err *err)
{
    for (int i = 0; i < FILE_COUNT; i++)
        for (size_t k = 0; k < grid->num; k++)
            if (pkv_scenario_spare(grid->scenarios[k], path, dir, names[i], err) < 0)
                return -1;
    return 0;
}

int pkv_compare_write(const struct pkv_compare *compare, const char *dir, struct pkv_err *err)
{
    struct pkv_out *files[FILE_COUNT] = {NULL};
    int status = 0;
    int num = compare->version ? FILE_COUNT : FILE_HTML;    /* the page is the last of them */
    for (int i = 0; i < num && status == 0; i++) {
        files[i] = pkv_out_open(dir, names[i], err);
        if (!files[i] || write_file(files[i], (enum compare_file)i, compare, err) < 0 ||
            pkv_out_close(files[i], err) < 0)
            status = -1;
    }
    bool is_whole = status == 0;
    for (int i = 0; i < num; i++) {
        if (!is_whole)
            pkv_out_drop(files[i]);
        else if (pkv_out_install(files[i], status < 0 ? NULL : err) < 0)
            status = -1;
    }
    return status;
}
