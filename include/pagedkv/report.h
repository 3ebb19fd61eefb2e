/*
 * report.h - results for people: the terminal summary with its plots; and comparisons of logs.
 *
 * Nothing here prints: texts come back as strings, which the caller frees with pkv_report_free().
 */
#ifndef PAGEDKV_REPORT_H
#define PAGEDKV_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/metrics.h"
#include "pagedkv/scenario.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pkv_report_style {
    unsigned width;       /* columns; at least 40 */
    bool utf8;            /* block characters, else ASCII */
    bool colour;
};

/* The figures that matter, what limited the run, plots over time of free blocks, waiting, running
 * and preemptions. */
char *pkv_report_summary(const struct pkv_scenario *scenario, const struct pkv_summary *summary,
                         const struct pkv_series_point *series, size_t num_points,
                         const struct pkv_trace_notes *notes,   /* NULL = synthetic */
                         const struct pkv_report_style *style, struct pkv_err *err);
void pkv_report_free(char *text);

/* First difference and totals of two step logs or two request logs (CSV), or two engine logs. */
struct pkv_diff_result { bool same; char *text; };   /* text owned: what to print */
int pkv_diff(const char *a, const char *b, struct pkv_diff_result *out, struct pkv_err *err);

/* Run a recorded load and compare decision by decision. emit NULL = do not write our log. */
struct pkv_conform_config {
    const char *config, *requests, *steps;    /* paths; requests and steps may be packed */
    const char *preset;                       /* NULL = from the config */
    const char *emit;
    bool check;                               /* recount invariants after every step */
    bool (*should_stop)(void *ctx);           /* NULL = never; when it says so: PKV_ERR_INTERRUPTED */
    void *stop_ctx;
};
int pkv_conform(const struct pkv_conform_config *config, struct pkv_diff_result *out,
                struct pkv_err *err);

#ifdef __cplusplus
}
#endif
#endif
