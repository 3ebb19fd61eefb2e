/*
 * html_private.h - the parts of report.html.
 *
 * The page is one file: its words and code come from src/report/web and are the same in every report;
 * what a run was stands in islands, script elements that a browser does not run. Of several runs on one
 * page each has its own islands, told apart by a prefix of their names.
 */
#ifndef PKV_REPORT_HTML_PRIVATE_H
#define PKV_REPORT_HTML_PRIVATE_H

#include "base/out.h"
#include "pagedkv/report.h"

/* ---- html_frame.c: what is the same on every page ---- */

void html_begin(struct pkv_out *out, const char *title);
void html_end(struct pkv_out *out);
/* An island "pkv-" + prefix + name of JSON. Text from outside is safe in it. */
void html_json(struct pkv_out *out, const char *prefix, const char *name, const char *json);
/* Is that JSON what stands in an island? */
bool html_json_is(const char *json, const char *island, size_t length);
/* Does the text of a page go on to where a page ends? */
bool html_is_whole(const struct pkv_text *page);

/* ---- html.c ---- */

/* What a run is called: its title, or what its traffic is. */
void html_title(struct pkv_text *t, const struct pkv_scenario *scenario);

/* Islands "summary" and "scenario". 0, or -1 with PKV_ERR_MEMORY. */
int html_run_texts(struct pkv_out *out, const char *prefix, const char *summary_json,
                   const char *scenario_yaml, struct pkv_err *err);

/* These, "words" and the distributions, of a run that has ended. 0 or -1. */
int html_run_figures(struct pkv_out *out, const char *prefix, const struct pkv_scenario *scenario,
                     const struct pkv_html_run *run, struct pkv_err *err);

/* ---- html_words.c: islands of what a whole run was ---- */

struct html_words {
    const struct pkv_scenario *scenario;
    const struct pkv_summary *summary;
    const struct pkv_trace_notes *notes;   /* NULL = synthetic */
    uint32_t block_size;
};
/* "words". *out_failed: set when there was no memory. */
void html_words_write(const struct html_words *words, const char *prefix, struct pkv_out *out,
                      bool *out_failed);
/* A table of upper_ns, count: one row a bucket. 0, or -1 with PKV_ERR_MEMORY. */
int html_histogram_write(const struct pkv_histogram *h, const char *prefix, const char *name,
                         struct pkv_out *out, struct pkv_err *err);

/* ---- the parts of a run ---- */

/* A part sees a run as sinks do, and writes its islands when it is over. To add one, add it to the list
 * in html.c. */
struct html_part {
    /* NULL with an error. */
    void *(*create)(const struct pkv_html_config *config, struct pkv_err *err);
    void (*destroy)(void *part);
    /* Calls that are NULL cost nothing. */
    struct pkv_sink (*sink)(void *part);
    /* Island ids are "pkv-" + prefix + a name. 0 or -1; write errors are out's. */
    int (*write)(void *part, const char *prefix, struct pkv_out *out, struct pkv_err *err);
};
extern const struct html_part html_steps;      /* html_steps.c */
extern const struct html_part html_requests;   /* html_requests.c */
extern const struct html_part html_blockmap;   /* blockmap_write.c */
extern const struct html_part html_timeline;   /* html_timeline.c */

/* Rows that come from files. */
int html_steps_add(void *steps, const int64_t *row, struct pkv_err *err);
#define HTML_REQUEST_COLUMNS(X)                                                                       \
    X(arrival_ns) X(admitted_ns) X(first_token_ns) X(finish_ns) X(status) X(prompt_tokens)            \
    X(output_tokens) X(hit_tokens) X(recomputed_tokens) X(preemptions) X(peak_blocks) X(max_gap_ns)   \
    X(priority)
struct html_request {
#define PKV_FIELD(name) int64_t name;      /* -1 = it never happened */
    HTML_REQUEST_COLUMNS(PKV_FIELD)
#undef PKV_FIELD
    const char *id, *tenant;               /* tenant: "" = none */
};
int html_requests_add(void *requests, const struct html_request *row, struct pkv_err *err);

/* ---- html_islands.c: the islands of a page that there is ---- */

/* Write all islands of a page of one run but that of its runs, with another prefix. page: its text.
 *   returns  false when it is no page of one run */
bool html_islands_copy(struct pkv_out *out, const char *prefix, const char *page);
/* Into `out` the text of an island of JSON. false = there is none. */
bool html_island_read(const char *page, const char *name, struct pkv_text *out);

/* ---- html_former.c: the islands of a run from its other files ---- */

/* thinned: a sentence when rows were left out of steps.csv. */
int html_former_write(struct pkv_out *out, const char *prefix, const char *dir,
                      struct pkv_text *title, struct pkv_text *thinned, struct pkv_err *err);
/* summary.json back into figures: those that the words of a page ask for. */
int html_summary_read(const char *path, const char *text, size_t length, struct pkv_summary *out,
                      struct pkv_err *err);

#endif
