/*
 * compare_page_private.h - the parts of a comparison's page.
 */
#ifndef PKV_REPORT_COMPARE_PAGE_PRIVATE_H
#define PKV_REPORT_COMPARE_PAGE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/compare_private.h"
#include "report/report_private.h"

/* ---- compare_panels.c: columns of figures, cut into panels ---- */

#define CELL_SIZE 64u
#define NUMBER_WIDTH 6u      /* of a configuration's number and what stands before it */

/* A cell as it is shown. */
struct shown {
    char value[CELL_SIZE], diff[CELL_SIZE];
    size_t mean_length;      /* of value, its interval left aside */
    bool tied;               /* a worse one that ended prints the same mean */
    bool best;               /* and not tied */
};
struct column {
    char heading[CELL_SIZE];
    struct shown *cells;     /* owned, [num configurations] */
    size_t value_width, diff_width;
};
int column_init(struct column *out, const struct pkv_compare *c, const struct figure_info *info,
                const struct cell *cells, struct pkv_err *err);
void column_finish(struct column *column);
void page_panels(struct page *p, const struct pkv_compare *c, const struct column *columns,
                 size_t num);

/* The number of a configuration, with a mark if it did not come to its end. */
void page_number(struct page *p, const struct pkv_compare *c, size_t i);
/* A latency in steps where all steps take the same, else as a time. */
void add_latency(struct pkv_text *t, const struct pkv_compare *c, double ns);
/* Into CELL_SIZE bytes, and free the text. */
void keep_cell(char *out, struct pkv_text *t, bool *failed);

/* ---- compare_more.c: what stands below the table ---- */

/* Tenants and priorities, if there are several. */
int page_groups(struct page *p, const struct pkv_compare *c, struct pkv_err *err);
/* Free blocks and waiting over time, if there are few configurations. */
int page_overlay(struct page *p, const struct pkv_compare *c, struct pkv_err *err);

#endif
