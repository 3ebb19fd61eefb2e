/*
 * compare_text.c - a comparison as a table for people.
 *
 * A table of twenty figures is wider than any terminal, so it is cut into panels of as many columns
 * as fit, each with all configurations by number; which number is which stands above them. What the
 * best is, and what may be noise, is said by signs, so it can be read without colour.
 */
#include "report/report_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "report/compare_private.h"

#define CELL_SIZE 64u
#define NUMBER_WIDTH 6u      /* of a configuration's number and what stands before it */
#define GAP 2u
#define PAIRS_FORMAT "%-21s%-21s%-12s%-9s%s\n"
#define PAIRS_WIDTH 80u      /* a narrower page has them as sentences */

/* A cell as it is shown. */
struct shown {
    char value[CELL_SIZE], diff[CELL_SIZE];
    bool best;
};

struct column {
    const char *heading;
    struct shown *cells;     /* owned, [num configurations] */
    size_t value_width, diff_width;
};

static void keep(char *out, struct pkv_text *t, bool *failed)
{
    *failed |= t->failed;
    snprintf(out, CELL_SIZE, "%s", t->text ? t->text : "");
    pkv_text_free(t);
}

/* Thousands parted; below that, with what decimals still say something. */
static void add_plain(struct pkv_text *t, double value, unsigned num_decimals)
{
    if (value >= 1000)
        add_grouped(t, (uint64_t)(value + 0.5));
    else
        add_decimal(t, value, value >= 100 ? 1 : num_decimals);
}

static void add_amount(struct pkv_text *t, enum figure_unit unit, double value)
{
    switch (unit) {
    case UNIT_COUNT: add_plain(t, value, 1);                   break;
    case UNIT_SHARE: add_plain(t, value * 100.0, 2);
                     pkv_text_add(t, " %");                    break;
    case UNIT_RATE:  add_plain(t, value, value < 10 ? 3 : 1);  break;
    case UNIT_NS:
    case UNIT_MS:    add_time(t, (int64_t)(value + 0.5));      break;
    }
}

static void show_value(struct shown *out, enum figure f, const struct cell *cell, bool *failed)
{
    struct pkv_text t = {0};
    if (!cell->has) {
        pkv_text_add(&t, "-");
    } else {
        add_amount(&t, figure_infos[f].unit, cell->mean);
        if (cell->has_half) {
            pkv_text_add(&t, " +-");
            add_amount(&t, figure_infos[f].unit, cell->half);
        }
    }
    keep(out->value, &t, failed);
    out->best = cell->best;
}

/* With one decimal always, so that points stand below each other. */
static void add_change(struct pkv_text *t, double percent)
{
    double size = percent < 0 ? -percent : percent;
    uint64_t tenths = size < 1e15 ? (uint64_t)(size * 10.0 + 0.5) : UINT64_C(10000000000000000);
    pkv_text_fmt(t, "%s%llu.%llu %%", percent < 0 ? "-" : percent > 0 ? "+" : "",
                 (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10));
}

static void show_diff(struct shown *out, const struct cell *cell, bool *failed)
{
    struct pkv_text t = {0};
    if (cell->has_percent)
        add_change(&t, cell->percent);
    else if (cell->has_diff)
        pkv_text_add(&t, "from 0");
    if (cell->within_noise)
        pkv_text_add(&t, "~");
    keep(out->diff, &t, failed);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Value, difference and mark. */
static size_t column_width(const struct column *col)
{
    size_t width = col->value_width + (col->diff_width > 0 ? 1 + col->diff_width : 0) + 2;
    return larger(width, strlen(col->heading));
}

static int make_column(struct column *out, const struct pkv_compare *c, enum figure f,
                       const struct cell *cells, struct pkv_err *err)
{
    bool failed = false;
    *out = (struct column){.heading = figure_infos[f].heading};
    out->cells = pkv_alloc(c->num, sizeof *out->cells, err);
    if (!out->cells)
        return -1;
    for (size_t i = 0; i < c->num; i++) {
        show_value(&out->cells[i], f, &cells[i], &failed);
        show_diff(&out->cells[i], &cells[i], &failed);
        out->value_width = larger(out->value_width, strlen(out->cells[i].value));
        out->diff_width = larger(out->diff_width, strlen(out->cells[i].diff));
    }
    return failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the report") : 0;
}

static void add_number(struct page *p, const struct pkv_compare *c, size_t i)
{
    bool done = strcmp(compare_outcome(c, i), "done") == 0;
    pkv_text_fmt(&p->text, "%4zu%s", i + 1, done ? "  " : "! ");
}

static void add_cell(struct page *p, const struct column *col, const struct shown *cell)
{
    size_t used = col->value_width + (col->diff_width > 0 ? 1 + col->diff_width : 0) + 2;
    if (cell->best)
        page_ink(p, INK_RUNNING);
    pkv_text_fmt(&p->text, "%*s", (int)col->value_width, cell->value);
    if (col->diff_width > 0)
        pkv_text_fmt(&p->text, " %*s", (int)col->diff_width, cell->diff);
    pkv_text_add(&p->text, cell->best ? " *" : "  ");
    if (cell->best)
        page_ink(p, INK_PLAIN);
    page_repeat(p, " ", column_width(col) - used);
}

/* Blanks at the end of a line say nothing. */
static void end_line(struct page *p)
{
    struct pkv_text *t = &p->text;
    while (t->length > 0 && t->text[t->length - 1] == ' ')
        t->text[--t->length] = '\0';
    pkv_text_add(t, "\n");
}

static void add_panel(struct page *p, const struct pkv_compare *c, const struct column *columns,
                      size_t num)
{
    pkv_text_add(&p->text, "\n");
    page_ink(p, INK_FAINT);
    page_repeat(p, " ", NUMBER_WIDTH);
    for (size_t i = 0; i < num; i++)
        pkv_text_fmt(&p->text, "%-*s", (int)(column_width(&columns[i]) + GAP),
                     columns[i].heading);
    end_line(p);
    page_ink(p, INK_PLAIN);
    for (size_t row = 0; row < c->num; row++) {
        add_number(p, c, row);
        for (size_t i = 0; i < num; i++) {
            add_cell(p, &columns[i], &columns[i].cells[row]);
            page_repeat(p, " ", i + 1 < num ? GAP : 0);
        }
        end_line(p);
    }
}

static void add_panels(struct page *p, const struct pkv_compare *c, const struct column *columns,
                       size_t num)
{
    for (size_t begin = 0; begin < num;) {
        size_t end = begin, used = NUMBER_WIDTH;
        while (end < num && (end == begin ||
                             used + column_width(&columns[end]) <= p->style->width))
            used += column_width(&columns[end++]) + GAP;
        add_panel(p, c, columns + begin, end - begin);
        begin = end;
    }
}

/* ---- what stands around the panels ---- */

static void add_values(struct page *p, const struct pkv_compare *c)
{
    struct pkv_text t = {0};
    for (size_t i = 0; i < c->num; i++) {
        add_number(p, c, i);
        pkv_text_clear(&t);
        for (size_t axis = 0; axis < c->grid->num_axes; axis++) {
            const struct pkv_grid_axis *a = &c->grid->axes[axis];
            pkv_text_fmt(&t, "%s%s=%s", axis > 0 ? ", " : "", a->key,
                         a->values[pkv_grid_place(c->grid, i, axis)]);
        }
        if (strcmp(compare_outcome(c, i), "done") != 0)
            pkv_text_fmt(&t, "  NOT FINISHED (%s)", compare_outcome(c, i));
        page_wrap(p, NUMBER_WIDTH, t.text ? t.text : "");
    }
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

static void add_head(struct page *p, const struct pkv_compare *c)
{
    const struct pkv_scenario *first = c->grid->scenarios[0];
    struct pkv_text t = {0};
    if (first->title) {
        page_ink(p, INK_HEAD);
        page_wrap(p, 0, first->title);
        page_ink(p, INK_PLAIN);
    }
    if (first->question)
        page_item(p, "question", first->question);
    add_counted(&t, c->num, "configuration");
    pkv_text_add(&t, compare_varies_traffic(c) ? "; their traffic is not the same"
                                               : " on the same traffic");
    if (c->num_seeds > 1)
        pkv_text_fmt(&t, ", seeds %llu to %llu", (unsigned long long)first->seed,
                     (unsigned long long)(first->seed + c->num_seeds - 1));
    page_item(p, "compared", t.text ? t.text : "");
    page_item(p, "", "differences are to configuration 1; * is the best");
    if (c->num_seeds > 1)
        page_item(p, "", "means over seeds, +- half their 95 % interval (Student's t); a difference "
                  "with ~ lies within the interval of the paired differences");
    if (c->num_batches > 1)
        page_item(p, "", "mean latencies: +- half the 95 % interval (Student's t) of the means over "
                  "equal stretches of time; a difference with ~ lies within the interval of the paired "
                  "differences");
    if (!pkv_compare_is_finished(c))
        page_item(p, "", "! did not come to its end; its figures are of what was done until then");
    p->text.failed |= t.failed;
    pkv_text_free(&t);
    pkv_text_add(&p->text, "\n");
}

/* "120 by 1.2 s" */
static void show_pairs(char *out, uint64_t num, const struct pkv_histogram *by, bool *failed)
{
    struct pkv_text t = {0};
    struct pkv_distribution d;
    add_grouped(&t, num);
    if (by && num > 0) {
        pkv_histogram_read(by, &d);
        pkv_text_add(&t, " by ");
        add_time(&t, d.p50);
    }
    keep(out, &t, failed);
}

static void add_pair_row(struct page *p, const struct pkv_compare *c, size_t i)
{
    const struct pairs *pairs = &c->pairs[i];
    char better[CELL_SIZE], worse[CELL_SIZE], same[CELL_SIZE], lost[CELL_SIZE], gained[CELL_SIZE];
    char line[6 * CELL_SIZE];
    bool failed = false;
    show_pairs(better, pairs->better, pairs->by_better, &failed);
    show_pairs(worse, pairs->worse, pairs->by_worse, &failed);
    show_pairs(same, pairs->same, NULL, &failed);
    show_pairs(lost, pairs->lost, NULL, &failed);
    show_pairs(gained, pairs->gained, NULL, &failed);
    add_number(p, c, i);
    if (p->style->width >= PAIRS_WIDTH) {
        pkv_text_fmt(&p->text, PAIRS_FORMAT, better, worse, same, lost, gained);
    } else {
        snprintf(line, sizeof line, "%s better, %s worse, %s same, %s lost, %s gained", better, worse,
                 same, lost, gained);
        page_wrap(p, NUMBER_WIDTH, line);
    }
    p->text.failed |= failed;
}

static void add_pairs(struct page *p, const struct pkv_compare *c)
{
    if (c->num < 2 || !compare_is_done(c, 0))
        return;
    page_heading(p, "Requests against configuration 1, end to end, with the median of the change");
    if (p->style->width >= PAIRS_WIDTH) {
        page_ink(p, INK_FAINT);
        page_repeat(p, " ", NUMBER_WIDTH);
        pkv_text_fmt(&p->text, PAIRS_FORMAT, "better", "worse", "same", "lost", "gained");
        page_ink(p, INK_PLAIN);
    }
    for (size_t i = 1; i < c->num; i++)
        if (compare_is_done(c, i))
            add_pair_row(p, c, i);
    page_wrap(p, 0, "lost: completed in configuration 1 and not here; gained: the other way round");
}

/* The columns there is something to show in. */
static int make_columns(const struct pkv_compare *c, struct column *columns, size_t *out_num,
                        struct pkv_err *err)
{
    struct cell *cells = pkv_alloc(c->num, sizeof *cells, err);
    int status = cells ? 0 : -1;
    for (size_t f = 0; f < FIGURE_COUNT && status == 0; f++) {
        compare_column(c, (enum figure)f, cells);
        if (compare_has_column(c, cells))
            status = make_column(&columns[(*out_num)++], c, (enum figure)f, cells, err);
    }
    pkv_free(cells);
    return status;
}

char *pkv_compare_text(const struct pkv_compare *compare, const struct pkv_report_style *style,
                       struct pkv_err *err)
{
    PKV_ASSERT(style->width >= 40);
    struct page p = {.style = style};
    struct column columns[FIGURE_COUNT];
    size_t num = 0;
    int status = make_columns(compare, columns, &num, err);
    if (status == 0) {
        add_head(&p, compare);
        add_values(&p, compare);
        add_panels(&p, compare, columns, num);
        add_pairs(&p, compare);
    }
    for (size_t i = 0; i < num; i++)
        pkv_free(columns[i].cells);
    if (status == 0)
        return take_text(&p.text, err);
    pkv_text_free(&p.text);
    return NULL;
}
