/*
 * compare_text.c - a comparison as a table for people.
 *
 * Configurations are told by their numbers; which number is which stands above the table. What the
 * best is, and what may be noise, is said by signs, so it can be read without colour; below the table
 * stands what they mean.
 */
#include "report/compare_page_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define PAIRS_FORMAT "%-21s%-21s%-12s%-9s%s\n"
#define PAIRS_WIDTH 80u      /* a narrower page has them as sentences */

static void add_values(struct page *p, const struct pkv_compare *c)
{
    struct pkv_text t = {0};
    for (size_t i = 0; i < c->num; i++) {
        page_number(p, c, i);
        pkv_text_clear(&t);
        for (size_t axis = 0; axis < c->grid->num_axes; axis++) {
            const struct pkv_grid_axis *a = &c->grid->axes[axis];
            pkv_text_fmt(&t, "%s%s=%s", axis > 0 ? ", " : "", a->key,
                         a->values[pkv_grid_place(c->grid, i, axis)]);
        }
        if (!compare_is_whole(c, i))
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
    page_item(p, "", "differences are to configuration 1; signs are explained below the table");
    if (c->step_ns > 0) {
        pkv_text_clear(&t);
        pkv_text_add(&t, "latencies are counted in steps of ");
        add_time(&t, c->step_ns);
        page_item(p, "", t.text ? t.text : "");
    }
    p->text.failed |= t.failed;
    pkv_text_free(&t);
    pkv_text_add(&p->text, "\n");
}

static void add_sign(struct page *p, const char *sign, const char *meaning)
{
    pkv_text_fmt(&p->text, "%4s  ", sign);
    page_wrap(p, NUMBER_WIDTH, meaning);
}

/* The signs that the table may have. */
static void add_legend(struct page *p, const struct pkv_compare *c)
{
    pkv_text_add(&p->text, "\n");
    if (compare_has_intervals(c)) {
        add_sign(p, "*", "the best, or all that are; none where a worse one prints the same, or where ~ "
                 "leaves it open whether configuration 1 is as good");
        add_sign(p, "~", "may be noise: the 95 % interval of this difference to configuration 1 has 0 in "
                 "it");
        add_sign(p, "+-", c->num_seeds > 1
                     ? "half the 95 % interval (Student's t) of a mean over seeds; that of a difference "
                       "is taken seed by seed"
                     : "half the 95 % interval (Student's t) of a mean latency, from the means over equal "
                       "stretches of time; that of a difference is taken stretch by stretch");
    } else {
        add_sign(p, "*", "the best, or all that are; none where a worse one prints the same");
    }
    if (!pkv_compare_is_finished(c))
        add_sign(p, "!", "did not come to its end; its figures are of what was done until then");
}

/* "120 by 1.2 s", or "120 by 12" steps. */
static void show_pairs(char *out, const struct pkv_compare *c, uint64_t num,
                       const struct pkv_histogram *by, bool *failed)
{
    struct pkv_text t = {0};
    struct pkv_distribution d;
    add_grouped(&t, num);
    if (by && num > 0) {
        pkv_histogram_read(by, &d);
        pkv_text_add(&t, " by ");
        add_latency(&t, c, (double)d.p50);
    }
    keep_cell(out, &t, failed);
}

static void add_pair_row(struct page *p, const struct pkv_compare *c, size_t i)
{
    const struct pairs *pairs = &c->pairs[i];
    char better[CELL_SIZE], worse[CELL_SIZE], same[CELL_SIZE], lost[CELL_SIZE], gained[CELL_SIZE];
    char line[6 * CELL_SIZE];
    bool failed = false;
    show_pairs(better, c, pairs->better, pairs->by_better, &failed);
    show_pairs(worse, c, pairs->worse, pairs->by_worse, &failed);
    show_pairs(same, c, pairs->same, NULL, &failed);
    show_pairs(lost, c, pairs->lost, NULL, &failed);
    show_pairs(gained, c, pairs->gained, NULL, &failed);
    page_number(p, c, i);
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
    page_heading(p, c->step_ns > 0 ? "Requests against configuration 1, end to end, with the median "
                                     "of the change in steps"
                                   : "Requests against configuration 1, end to end, with the median "
                                     "of the change");
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
            status = column_init(&columns[(*out_num)++], c, &figure_infos[f], cells, err);
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
        page_panels(&p, compare, columns, num);
        add_legend(&p, compare);
        add_pairs(&p, compare);
        status = page_groups(&p, compare, err);
    }
    if (status == 0)
        status = page_overlay(&p, compare, err);
    for (size_t i = 0; i < num; i++)
        column_finish(&columns[i]);
    if (status == 0)
        return take_text(&p.text, err);
    pkv_text_free(&p.text);
    return NULL;
}
