/*
 * plot.c - small column charts over time, one below the other on one time axis.
 *
 * A column stands for an equal share of the run and shows the extreme in it, so that a short spike
 * is never lost between two samples: the lowest number of free blocks, the most waiting and
 * running, the sum of preemptions. A value above 0 shows at least the thinnest line, the largest fills its
 * column.
 */
#include "base/units.h"
#include "report/report_private.h"

#include <stdio.h>
#include <string.h>

#define MAX_COLUMNS 160u
#define GUTTER 10u        /* of the numbers on the left, without the tick */

struct plot_scale {
    int64_t begin_ns, end_ns;    /* the whole run */
};

enum figure { FIGURE_FREE, FIGURE_WAITING, FIGURE_RUNNING, FIGURE_PREEMPTIONS };

static int64_t value_of(const struct pkv_series_point *p, enum figure figure)
{
    switch (figure) {
    case FIGURE_FREE:        return p->min_free;
    case FIGURE_WAITING:     return p->max_waiting;
    case FIGURE_RUNNING:     return p->max_running;
    case FIGURE_PREEMPTIONS: return p->preemptions;
    }
    return 0;
}

static int64_t combine(int64_t a, int64_t b, enum figure figure)
{
    switch (figure) {
    case FIGURE_FREE:        return a < b ? a : b;
    case FIGURE_WAITING:
    case FIGURE_RUNNING:     return a > b ? a : b;
    case FIGURE_PREEMPTIONS: return a + b;
    }
    return 0;
}

/* The column in which a moment lies. */
static size_t column_of(int64_t ns, const struct plot_scale *scale, size_t num_columns)
{
    __int128 span = scale->end_ns - scale->begin_ns;
    return (size_t)((__int128)(ns - scale->begin_ns) * (__int128)num_columns / span);
}

/* Cut the series into columns. A stretch counts in every column it touches; its preemptions in the
 * one in which it begins, so that their sum stays right. */
static void fill_columns(const struct pkv_series_point *series, size_t num_points,
                         const struct plot_scale *scale, enum figure figure, size_t num_columns,
                         int64_t *out)
{
    bool filled[MAX_COLUMNS] = {false};
    memset(out, 0, num_columns * sizeof *out);
    for (size_t i = 0; i < num_points; i++) {
        size_t first = column_of(series[i].begin_ns, scale, num_columns);
        size_t last = figure == FIGURE_PREEMPTIONS
                          ? first : column_of(series[i].end_ns - 1, scale, num_columns);
        int64_t value = value_of(&series[i], figure);
        for (size_t c = first; c <= last; c++) {
            out[c] = filled[c] ? combine(out[c], value, figure) : value;
            filled[c] = true;
        }
    }
}

static int64_t largest(const int64_t *values, size_t num)
{
    int64_t top = 0;
    for (size_t i = 0; i < num; i++)
        top = values[i] > top ? values[i] : top;
    return top;
}

/* How much of row `row` (0 = lowest) a value fills, in parts of a row. */
static unsigned fill_of(int64_t value, int64_t top, unsigned row, unsigned height, unsigned parts)
{
    if (value <= 0)
        return 0;
    uint64_t levels = (uint64_t)height * parts;
    uint64_t level = (uint64_t)((__int128)value * levels / top);
    level = level == 0 ? 1 : level;
    if (level <= (uint64_t)row * parts)
        return 0;
    level -= (uint64_t)row * parts;
    return level > parts ? parts : (unsigned)level;
}

static void draw_row(struct page *p, const int64_t *values, size_t num_columns, int64_t top,
                     unsigned row, unsigned height)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[] = {" ", ".", ":", "#"};
    for (size_t c = 0; c < num_columns; c++) {
        if (p->style->utf8)
            pkv_text_add(&p->text, blocks[fill_of(values[c], top, row, height, 8)]);
        else
            pkv_text_add(&p->text, ascii[fill_of(values[c], top, row, height, 3)]);
    }
}

static void draw_label(struct page *p, unsigned row, unsigned height, int64_t top)
{
    char digits[32];
    bool has_number = row + 1 == height || row == 0;
    pkv_format_count(row == 0 && height > 1 ? 0 : (uint64_t)top, digits);
    pkv_text_fmt(&p->text, "%*s ", (int)GUTTER, has_number ? digits : "");
    if (p->style->utf8)
        pkv_text_add(&p->text, has_number ? "┤" : "│");
    else
        pkv_text_add(&p->text, has_number ? "+" : "|");
}

/* ends: a line behind the last column says that nothing comes after it. */
static void draw(struct page *p, const char *title, enum ink ink, const int64_t *values,
                 size_t num_columns, int64_t top, unsigned height, bool ends)
{
    pkv_text_fmt(&p->text, "%*s  %s\n", (int)GUTTER, "", title);
    for (unsigned row = height; row-- > 0;) {
        draw_label(p, row, height, top);
        page_ink(p, ink);
        draw_row(p, values, num_columns, top, row, height);
        page_ink(p, INK_PLAIN);
        if (ends)
            pkv_text_add(&p->text, p->style->utf8 ? "│" : "|");
        pkv_text_add(&p->text, "\n");
    }
}

/* A moment of the run, from its beginning. */
static void format_moment(int64_t ns, char *out, size_t size)
{
    if (ns == 0)
        snprintf(out, size, "0 s");
    else
        pkv_format_duration(ns, out, size);
}

static void draw_axis(struct page *p, const struct plot_scale *scale, size_t num_columns)
{
    char begin[48], middle[48], end[48];
    int64_t span = scale->end_ns - scale->begin_ns;
    size_t half = num_columns / 2;
    format_moment(0, begin, sizeof begin);
    format_moment(span / 2, middle, sizeof middle);
    format_moment(span, end, sizeof end);
    bool utf8 = p->style->utf8;
    page_repeat(p, " ", GUTTER + 1);
    pkv_text_add(&p->text, utf8 ? "└" : "+");
    page_repeat(p, utf8 ? "─" : "-", half);
    pkv_text_add(&p->text, utf8 ? "┴" : "+");
    page_repeat(p, utf8 ? "─" : "-", num_columns - half - 2);
    pkv_text_add(&p->text, utf8 ? "┘\n" : "+\n");
    int room = (int)num_columns - (int)strlen(begin) - (int)strlen(end);
    pkv_text_fmt(&p->text, "%*s%s", (int)GUTTER + 2, "", begin);
    int before = (int)half - (int)strlen(begin) - (int)strlen(middle) / 2;
    before = before > 1 ? before : 1;
    if (room > before + (int)strlen(middle)) {
        pkv_text_fmt(&p->text, "%*s%s", before, "", middle);
        room -= before + (int)strlen(middle);
    }
    pkv_text_fmt(&p->text, "%*s%s\n", room > 1 ? room : 1, "", end);
}

static void draw_figure(struct page *p, const struct pkv_series_point *series, size_t num_points,
                        const struct plot_scale *scale, size_t num_columns, enum figure figure,
                        uint32_t num_blocks)
{
    static const struct { const char *title, *none; enum ink ink; unsigned height; } looks[] = {
        [FIGURE_FREE] = {"free blocks, lowest", "free blocks: none at any time", INK_FREE, 4},
        [FIGURE_WAITING] = {"waiting, most", "waiting: nobody at any time", INK_WAITING, 3},
        [FIGURE_RUNNING] = {"running, most", "running: nobody at any time", INK_RUNNING, 3},
        [FIGURE_PREEMPTIONS] = {"preemptions a column", "preemptions: none", INK_PREEMPTED, 2},
    };
    int64_t values[MAX_COLUMNS];
    fill_columns(series, num_points, scale, figure, num_columns, values);
    int64_t top = largest(values, num_columns);
    if (top == 0) {
        pkv_text_fmt(&p->text, "%*s  %s\n", (int)GUTTER, "", looks[figure].none);
        return;
    }
    if (figure == FIGURE_FREE)
        top = num_blocks > top ? num_blocks : top;
    draw(p, looks[figure].title, looks[figure].ink, values, num_columns, top,
         looks[figure].height, false);
}

static size_t columns_of_page(const struct page *p)
{
    size_t num_columns = p->style->width - GUTTER - 2;
    return num_columns < MAX_COLUMNS ? num_columns : MAX_COLUMNS;
}

void page_plot_rows(struct page *p, const struct pkv_series_point *series, size_t num_points,
                    uint32_t num_blocks)
{
    struct plot_scale scale = {.begin_ns = series[0].begin_ns,
                               .end_ns = series[num_points - 1].end_ns};
    size_t num_columns = columns_of_page(p);
    for (int f = FIGURE_FREE; f <= FIGURE_PREEMPTIONS; f++)
        draw_figure(p, series, num_points, &scale, num_columns, (enum figure)f, num_blocks);
    draw_axis(p, &scale, num_columns);
}

void page_plots(struct page *p, const struct pkv_series_point *series, size_t num_points,
                uint32_t num_blocks)
{
    if (num_points == 0)
        return;
    page_heading(p, "Over time");
    page_plot_rows(p, series, num_points, num_blocks);
}

void page_plot_counts(struct page *p, const char *title, const uint32_t *bins, size_t num_bins,
                      int64_t bin_ns)
{
    size_t room = columns_of_page(p), each = (num_bins + room - 1) / room;
    size_t num_columns = num_bins ? (num_bins + each - 1) / each : 0;
    struct plot_scale scale = {.end_ns = (int64_t)(num_columns * each) * bin_ns};
    int64_t values[MAX_COLUMNS] = {0};
    for (size_t i = 0; i < num_bins; i++)
        values[i / each] += bins[i];
    if (num_columns < 2)
        return;
    draw(p, title, INK_WAITING, values, num_columns, largest(values, num_columns), 4, false);
    draw_axis(p, &scale, num_columns);
}

/* ---- several runs on the same axes ---- */

#define LINE_HEIGHT 2u

/* A run's own columns: those up to its end. */
static size_t columns_of_line(const struct plot_line *line, const struct plot_scale *scale,
                              size_t num_columns)
{
    if (line->num_points == 0)
        return 0;
    return column_of(line->points[line->num_points - 1].end_ns - 1, scale, num_columns) + 1;
}

static int64_t top_of_lines(const struct plot_line *lines, size_t num_lines, enum figure figure)
{
    int64_t top = 0;
    for (size_t i = 0; i < num_lines; i++) {
        if (figure == FIGURE_FREE && lines[i].num_blocks > top)
            top = lines[i].num_blocks;
        for (size_t at = 0; at < lines[i].num_points && figure != FIGURE_FREE; at++)
            if (value_of(&lines[i].points[at], figure) > top)
                top = value_of(&lines[i].points[at], figure);
    }
    return top;
}

static void draw_lines(struct page *p, const struct plot_line *lines, size_t num_lines,
                       const struct plot_scale *scale, enum figure figure, const char *title,
                       enum ink ink)
{
    size_t num_columns = columns_of_page(p);
    int64_t values[MAX_COLUMNS], top = top_of_lines(lines, num_lines, figure);
    char text[64];
    if (top == 0) {
        pkv_text_fmt(&p->text, "%*s  %s: nobody at any time\n", (int)GUTTER, "", title);
        return;
    }
    for (size_t i = 0; i < num_lines; i++) {
        size_t own = columns_of_line(&lines[i], scale, num_columns);
        fill_columns(lines[i].points, lines[i].num_points, scale, figure, num_columns, values);
        snprintf(text, sizeof text, "%s, configuration %zu", title, lines[i].number);
        draw(p, text, ink, values, own, top, LINE_HEIGHT, own < num_columns);
    }
}

void page_plot_lines(struct page *p, const struct plot_line *lines, size_t num_lines, int64_t end_ns)
{
    struct plot_scale scale = {.begin_ns = 0, .end_ns = end_ns};
    draw_lines(p, lines, num_lines, &scale, FIGURE_FREE, "free blocks", INK_FREE);
    draw_lines(p, lines, num_lines, &scale, FIGURE_WAITING, "waiting", INK_WAITING);
    draw_axis(p, &scale, columns_of_page(p));
}
