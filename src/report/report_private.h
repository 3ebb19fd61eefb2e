/*
 * report_private.h - laying out text for people; plots; the parts of the summary.
 */
#ifndef PKV_REPORT_PRIVATE_H
#define PKV_REPORT_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "pagedkv/report.h"

/* DIR/NAME; the caller's to free. NULL and PKV_ERR_MEMORY. run_dir.c */
char *join_path(const char *dir, const char *name, struct pkv_err *err);

/* ---- layout.c ---- */

/* A page that is being written. */
struct page {
    struct pkv_text text;                  /* owned */
    const struct pkv_report_style *style;  /* borrowed */
};

#define NAME_WIDTH 12u    /* of the words on the left */

enum ink { INK_PLAIN, INK_HEAD, INK_FAINT, INK_FREE, INK_WAITING, INK_RUNNING, INK_PREEMPTED };
void page_ink(struct page *p, enum ink ink);   /* nothing without colour */

/* Words on the left, sentences beside them, wrapped to the page. */
void page_item(struct page *p, const char *name, const char *text);
/* Text that begins in column `at` of a line already begun; later lines are indented so far. */
void page_wrap(struct page *p, size_t at, const char *text);
void page_heading(struct page *p, const char *text);
void page_repeat(struct page *p, const char *piece, size_t num);

/* "1,234 requests", "1 request": the plural is the word and an s. */
void add_counted(struct pkv_text *t, uint64_t n, const char *word);
void add_grouped(struct pkv_text *t, uint64_t n);
/* "61.3 %", of a share from 0 to 1. */
void add_percent(struct pkv_text *t, double frac);
void add_time(struct pkv_text *t, int64_t ns);
/* A time in steps of step_ns, with a tenth while that says something. */
void add_steps(struct pkv_text *t, __int128 ns, int64_t step_ns);
/* A number of at least 0, rounded, with all of its decimals: "18.70". */
void add_fixed(struct pkv_text *t, double value, unsigned num_decimals);
/* How often in a second, rounded to four digits that matter: "0.7133", "1.018", "18.75", "467.9"; a whole
 * number from 1,000 on, and at most nine decimals. */
void add_rate(struct pkv_text *t, double rate);

/* Give the text of a page or a difference away. NULL and PKV_ERR_MEMORY when it is cut. */
char *take_text(struct pkv_text *t, struct pkv_err *err);

/* ---- plot.c ---- */

/* Free blocks, waiting, running, preemptions over time. */
void page_plots(struct page *p, const struct pkv_series_point *series, size_t num_points,
                uint32_t num_blocks);

/* The same without a heading, of a series that takes some time. */
void page_plot_rows(struct page *p, const struct pkv_series_point *series, size_t num_points,
                    uint32_t num_blocks);

/* Several runs on the same axes, time from 0 to end_ns: the fewest free blocks of each, then the
 * most waiting. */
struct plot_line {
    size_t number;                         /* of the configuration */
    const struct pkv_series_point *points; /* borrowed, [num_points]; none = not run */
    size_t num_points;
    uint32_t num_blocks;
};
void page_plot_lines(struct page *p, const struct plot_line *lines, size_t num_lines, int64_t end_ns);

/* Counts of bin_ns each, from time 0, under one title. */
void page_plot_counts(struct page *p, const char *title, const uint32_t *bins, size_t num_bins,
                      int64_t bin_ns);

/* ---- limits.c ---- */

/* Why the first in line is not let in, in words: "blocks: its next chunk did not fit". Limit latch: by the
 * mix; a queue that is shut is told with the next one. */
void add_limit_reason(struct pkv_text *t, enum pkv_limit limit, const struct pkv_scenario *s);
/* The queue is shut by a refusal. refused: who, in words, NULL = it has left; num_steps: for how long nobody
 * has been looked at, 0 = that is not known. */
void add_latch_reason(struct pkv_text *t, const char *refused, uint64_t num_steps);

/* What kept the queue waiting, the largest share first, and what to try next. can_hit: prompts of this
 * traffic may have text in common. */
void page_limits(struct page *p, const struct pkv_scenario *scenario,
                 const struct pkv_summary *summary, bool can_hit);

/* Its parts: causes that made someone wait, the largest share first, ties in their order (out has room
 * for PKV_LIMIT_COUNT); one of them in words; what to try next, of these causes. */
size_t sort_causes(const double *frac, enum pkv_limit *out);
void add_limit_words(struct pkv_text *t, enum pkv_limit limit, const struct pkv_scenario *s);
void add_next(struct pkv_text *t, const enum pkv_limit *causes, size_t num,
              const struct pkv_scenario *s, const struct pkv_summary *summary, bool can_hit);

/* ---- summary.c ---- */

/* How the run ended when that was not well; NULL when it was. */
const char *summary_warning(const struct pkv_engine_figures *e);
/* Why no prompt can be found in the cache, whatever the pool; NULL = some may be. */
const char *why_no_hits(const struct pkv_scenario *scenario, const struct pkv_trace_notes *notes);

/* ---- ask.c ---- */

/* The request that starved, and how to ask why. step_ns > 0: times in steps. */
void page_ask(struct page *p, const struct pkv_summary *summary, int64_t step_ns);

/* ---- setup.c ---- */

/* What requests said that nothing in this run looks at. */
void page_unused(struct page *p, const struct pkv_scenario *scenario,
                 const struct pkv_summary *summary);

/* "full, sliding 8 in blocks of 4"; nothing when all there is is one group of full attention. */
void add_kv_groups(struct pkv_text *t, const struct pkv_group_config *groups, uint32_t num_groups);
/* The model behind the pool, and the memory of its ranks; nothing without a model. */
void page_kv(struct page *p, const struct pkv_scenario *scenario);

/* What was run: traffic, pool, scheduler, step time. */
void page_setup(struct page *p, const struct pkv_scenario *scenario,
                const struct pkv_trace_notes *notes);

#endif
