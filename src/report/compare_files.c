/*
 * compare_files.c - a comparison as CSV and as JSON.
 *
 * Both are made from the same cells. A figure that a configuration does not have is empty in the
 * CSV and null in the JSON. No clock and no number of threads goes into them.
 */
#include "report/compare_private.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define SCHEMA 1
#define NS_PER_MS 1000000
#define VALUE_DECIMALS 6u
#define PERCENT_DECIMALS 4u

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
static void add_value(struct pkv_text *t, enum figure f, double value)
{
    add_decimal(t, figure_infos[f].unit == UNIT_MS ? value / NS_PER_MS : value, VALUE_DECIMALS);
}

/* The cells of all figures, [FIGURE_COUNT][num]; NULL = out of memory. */
static struct cell *make_cells(const struct pkv_compare *c, struct pkv_err *err)
{
    struct cell *cells = pkv_alloc(FIGURE_COUNT * c->num, sizeof *cells, err);
    for (size_t f = 0; f < FIGURE_COUNT && cells; f++)
        compare_column(c, (enum figure)f, &cells[f * c->num]);
    return cells;
}

static int64_t median(const struct pkv_histogram *h)
{
    struct pkv_distribution d;
    pkv_histogram_read(h, &d);
    return d.p50;
}

/* ---- CSV ---- */

static void csv_header(struct pkv_text *t, const struct pkv_compare *c)
{
    bool intervals = compare_has_intervals(c);
    pkv_text_add(t, "configuration,");
    for (size_t i = 0; i < c->grid->num_axes; i++) {
        pkv_text_csv(t, c->grid->axes[i].key);
        pkv_text_add(t, ",");
    }
    pkv_text_add(t, "outcome");
    for (size_t f = 0; f < FIGURE_COUNT; f++) {
        const char *name = figure_infos[f].name;
        pkv_text_fmt(t, ",%s%s%s", name, intervals ? "," : "",
                     intervals ? name : "");
        pkv_text_fmt(t, "%s,%s_diff_percent", intervals ? "_half95" : "", name);
        if (intervals)
            pkv_text_fmt(t, ",%s_diff,%s_diff_half95", name, name);
        pkv_text_fmt(t, ",%s_best", name);
    }
    pkv_text_add(t, ",better,worse,same,lost,gained,better_p50_ms,worse_p50_ms\n");
}

static void csv_cell(struct pkv_text *t, enum figure f, const struct cell *cell, bool intervals)
{
    pkv_text_add(t, ",");
    if (cell->has)
        add_value(t, f, cell->mean);
    if (intervals)
        pkv_text_add(t, ",");
    if (cell->has_half)
        add_value(t, f, cell->half);
    pkv_text_add(t, ",");
    if (cell->has_percent)
        add_decimal(t, cell->percent, PERCENT_DECIMALS);
    if (intervals)
        pkv_text_add(t, ",");
    if (intervals && cell->has_diff)
        add_value(t, f, cell->diff);
    if (intervals)
        pkv_text_add(t, ",");
    if (cell->has_diff_half)
        add_value(t, f, cell->diff_half);
    pkv_text_add(t, cell->best ? ",1" : ",0");
}

static void csv_pairs(struct pkv_text *t, const struct pairs *p)
{
    pkv_text_fmt(t, ",%llu,%llu,%llu,%llu,%llu,", (unsigned long long)p->better,
                 (unsigned long long)p->worse, (unsigned long long)p->same,
                 (unsigned long long)p->lost, (unsigned long long)p->gained);
    if (p->better > 0)
        pkv_text_ratio(t, median(p->by_better), NS_PER_MS, VALUE_DECIMALS);
    pkv_text_add(t, ",");
    if (p->worse > 0)
        pkv_text_ratio(t, median(p->by_worse), NS_PER_MS, VALUE_DECIMALS);
}

static bool has_pairs(const struct pkv_compare *c, size_t i)
{
    return i > 0 && compare_is_done(c, 0) && compare_is_done(c, i);
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
        csv_cell(t, (enum figure)f, &cells[f * c->num + i],
                 compare_has_intervals(c));
    if (has_pairs(c, i))
        csv_pairs(t, &c->pairs[i]);
    else
        pkv_text_add(t, ",,,,,,,");
    pkv_text_add(t, "\n");
}

static void write_csv(struct pkv_text *t, const struct pkv_compare *c, const struct cell *cells)
{
    csv_header(t, c);
    for (size_t i = 0; i < c->num; i++)
        csv_row(t, c, cells, i);
}

/* ---- JSON ---- */

static void json_number(struct pkv_text *t, const char *key, bool has, double number,
                        unsigned num_decimals)
{
    pkv_text_fmt(t, "\"%s\": ", key);
    if (has)
        add_decimal(t, number, num_decimals);
    else
        pkv_text_add(t, "null");
}

static void json_cell(struct pkv_text *t, enum figure f, const struct cell *cell, bool intervals)
{
    double scale = figure_infos[f].unit == UNIT_MS ? NS_PER_MS : 1;
    pkv_text_fmt(t, "\"%s\": {", figure_infos[f].name);
    json_number(t, "value", cell->has, cell->mean / scale, VALUE_DECIMALS);
    pkv_text_add(t, ", ");
    if (intervals) {
        json_number(t, "half95", cell->has_half, cell->half / scale, VALUE_DECIMALS);
        pkv_text_add(t, ", ");
        json_number(t, "diff", cell->has_diff, cell->diff / scale, VALUE_DECIMALS);
        pkv_text_add(t, ", ");
        json_number(t, "diff_half95", cell->has_diff_half, cell->diff_half / scale, VALUE_DECIMALS);
        pkv_text_add(t, ", ");
    }
    json_number(t, "diff_percent", cell->has_percent, cell->percent, PERCENT_DECIMALS);
    pkv_text_fmt(t, ", \"best\": %s}", cell->best ? "true" : "false");
}

static void json_pairs(struct pkv_text *t, const struct pairs *p)
{
    pkv_text_fmt(t, "{\"better\": %llu, \"worse\": %llu, \"same\": %llu, \"lost\": %llu, "
                 "\"gained\": %llu, \"better_p50_ms\": ", (unsigned long long)p->better,
                 (unsigned long long)p->worse, (unsigned long long)p->same,
                 (unsigned long long)p->lost, (unsigned long long)p->gained);
    if (p->better > 0)
        pkv_text_ratio(t, median(p->by_better), NS_PER_MS, VALUE_DECIMALS);
    pkv_text_add(t, p->better > 0 ? ", \"worse_p50_ms\": " : "null, \"worse_p50_ms\": ");
    if (p->worse > 0)
        pkv_text_ratio(t, median(p->by_worse), NS_PER_MS, VALUE_DECIMALS);
    pkv_text_add(t, p->worse > 0 ? "}" : "null}");
}

static void json_set(struct pkv_text *t, const struct pkv_compare *c, size_t i)
{
    for (size_t axis = 0; axis < c->grid->num_axes; axis++) {
        pkv_text_add(t, axis > 0 ? ", " : "");
        pkv_text_json(t, c->grid->axes[axis].key);
        pkv_text_add(t, ": ");
        pkv_text_json(t, c->grid->axes[axis].values[pkv_grid_place(c->grid, i, axis)]);
    }
}

static void json_row(struct pkv_text *t, const struct pkv_compare *c, const struct cell *cells,
                     size_t i)
{
    pkv_text_fmt(t, "    {\"configuration\": %zu, \"set\": {", i + 1);
    json_set(t, c, i);
    pkv_text_fmt(t, "}, \"outcome\": \"%s\",\n     \"figures\": {", compare_outcome(c, i));
    for (size_t f = 0; f < FIGURE_COUNT; f++) {
        pkv_text_add(t, f > 0 ? ",\n       " : "\n       ");
        json_cell(t, (enum figure)f, &cells[f * c->num + i],
                 compare_has_intervals(c));
    }
    pkv_text_add(t, "},\n     \"requests_against_first\": ");
    if (has_pairs(c, i))
        json_pairs(t, &c->pairs[i]);
    else
        pkv_text_add(t, "null");
    pkv_text_add(t, i + 1 < c->num ? "},\n" : "}\n");
}

static void write_json(struct pkv_text *t, const struct pkv_compare *c, const struct cell *cells)
{
    pkv_text_fmt(t, "{\n  \"schema\": %d,\n  \"seeds\": %u,\n  \"batches\": %u,\n  \"same_traffic\": %s,\n"
                 "  \"configurations\": [\n", SCHEMA, c->num_seeds,
                 c->num_batches,
                 compare_varies_traffic(c) ? "false" : "true");
    for (size_t i = 0; i < c->num; i++)
        json_row(t, c, cells, i);
    pkv_text_add(t, "  ]\n}\n");
}

/* ---- both ---- */

static char *make_text(const struct pkv_compare *c,
                       void (*write)(struct pkv_text *t, const struct pkv_compare *c,
                                     const struct cell *cells), struct pkv_err *err)
{
    struct pkv_text t = {0};
    struct cell *cells = make_cells(c, err);
    if (!cells)
        return NULL;
    write(&t, c, cells);
    pkv_free(cells);
    if (!t.failed)
        return t.text;
    pkv_text_free(&t);
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a comparison");
    return NULL;
}

char *pkv_compare_json(const struct pkv_compare *compare, struct pkv_err *err)
{
    return make_text(compare, write_json, err);
}

/* Closed, and told apart: is all of it there? */
static bool write_file(struct pkv_out *out, const char *text, int *status, struct pkv_err *err)
{
    pkv_out_text(out, text);
    if (pkv_out_close(out, *status < 0 ? NULL : err) < 0)
        *status = -1;
    return *status == 0;
}

int pkv_compare_write(const struct pkv_compare *compare, const char *dir, struct pkv_err *err)
{
    struct pkv_out *csv_out = NULL, *json_out = NULL;
    int status = 0;
    char *csv = make_text(compare, write_csv, err);
    char *json = csv ? make_text(compare, write_json, err) : NULL;
    if (json)
        csv_out = pkv_out_open(dir, "compare.csv", err);
    if (csv_out)
        json_out = pkv_out_open(dir, "compare.json", err);
    if (!json_out || !write_file(csv_out, csv, &status, err) ||
        !write_file(json_out, json, &status, err)) {
        pkv_out_drop(csv_out);
        pkv_out_drop(json_out);
        status = -1;
    } else {
        status = pkv_out_install(csv_out, err);
        status = pkv_out_install(json_out, status < 0 ? NULL : err) < 0 ? -1 : status;
    }
    pkv_free(csv);
    pkv_free(json);
    return status;
}
