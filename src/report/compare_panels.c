/*
 * compare_panels.c - columns of figures, cut into panels as wide as the page.
 *
 * A table of twenty figures is wider than any terminal, so it is cut into panels of as many columns
 * as fit, each with all configurations by number.
 */
#include "report/compare_page_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define GAP 2u

void keep_cell(char *out, struct pkv_text *t, bool *failed)
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

void add_latency(struct pkv_text *t, const struct pkv_compare *c, double ns)
{
    int64_t rounded_ns = (int64_t)(ns + 0.5);
    if (c->step_ns > 0)
        add_steps(t, rounded_ns, c->step_ns);
    else
        add_time(t, rounded_ns);
}

static void add_amount(struct pkv_text *t, const struct pkv_compare *c, enum figure_unit unit,
                       double value)
{
    switch (unit) {
    case UNIT_COUNT: add_plain(t, value, 1);                   break;
    case UNIT_SHARE: add_plain(t, value * 100.0, 2);
                     pkv_text_add(t, " %");                    break;
    case UNIT_RATE:  add_plain(t, value, value < 10 ? 3 : 1);  break;
    case UNIT_INDEX: add_decimal(t, value, 3);                 break;
    case UNIT_NS:    add_time(t, (int64_t)(value + 0.5));      break;
    case UNIT_MS:    add_latency(t, c, value);                 break;
    }
}

static void show_value(struct shown *out, const struct pkv_compare *c, enum figure_unit unit,
                       const struct cell *cell, bool *failed)
{
    struct pkv_text t = {0};
    if (!cell->has) {
        pkv_text_add(&t, "-");
    } else {
        add_amount(&t, c, unit, cell->mean);
        out->mean_length = t.length;
        if (cell->has_half) {
            pkv_text_add(&t, " +-");
            add_amount(&t, c, unit, cell->half);
        }
    }
    keep_cell(out->value, &t, failed);
    out->tied = false;
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
    keep_cell(out->diff, &t, failed);
}

/* What tells the best from a worse one is perhaps in digits that are not shown: then nothing shows
 * it. Equal ones are all the best. */
static void drop_ties(const struct pkv_compare *c, struct shown *cells)
{
    for (size_t i = 0; i < c->num; i++)
        for (size_t other = 0; other < c->num && cells[i].best; other++) {
            size_t length = cells[i].mean_length;
            bool same = cells[other].mean_length == length &&
                        memcmp(cells[other].value, cells[i].value, length) == 0;
            cells[i].tied |= same && !cells[other].best &&
                             compare_is_whole(c, other);
        }
    for (size_t i = 0; i < c->num; i++)
        cells[i].best = cells[i].best && !cells[i].tied;
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

int column_init(struct column *out, const struct pkv_compare *c, const struct figure_info *info,
                const struct cell *cells, struct pkv_err *err)
{
    bool failed = false, in_steps = info->unit == UNIT_MS && c->step_ns > 0;
    memset(out, 0, sizeof *out);
    snprintf(out->heading, sizeof out->heading, "%s%s", info->heading, in_steps ? ", steps" : "");
    out->cells = pkv_alloc(c->num, sizeof *out->cells, err);
    if (!out->cells)
        return -1;
    for (size_t i = 0; i < c->num; i++) {
        show_value(&out->cells[i], c, info->unit, &cells[i], &failed);
        show_diff(&out->cells[i], &cells[i], &failed);
        out->value_width = larger(out->value_width, strlen(out->cells[i].value));
        out->diff_width = larger(out->diff_width, strlen(out->cells[i].diff));
    }
    drop_ties(c, out->cells);
    return failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the report") : 0;
}

void column_finish(struct column *column)
{
    pkv_free(column->cells);
}

void page_number(struct page *p, const struct pkv_compare *c, size_t i)
{
    bool done = compare_is_whole(c, i);
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
        page_number(p, c, row);
        for (size_t i = 0; i < num; i++) {
            add_cell(p, &columns[i], &columns[i].cells[row]);
            page_repeat(p, " ", i + 1 < num ? GAP : 0);
        }
        end_line(p);
    }
}

void page_panels(struct page *p, const struct pkv_compare *c, const struct column *columns,
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
