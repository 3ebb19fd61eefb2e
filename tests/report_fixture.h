/*
 * report_fixture.h - a scenario, a summary and a series made by hand, and the page they make.
 */
#ifndef TESTS_REPORT_FIXTURE_H
#define TESTS_REPORT_FIXTURE_H

#include <stdbool.h>

#include "pagedkv/report.h"

#define MS INT64_C(1000000)
#define NUM_POINTS 64u

/* Preset vllm on 100 blocks of 16, steps of 1 ms, at most 8 sequences and 512 tokens. */
struct pkv_scenario fixed_scenario(void);
/* 64 steps, 1,200 requests, 77 preemptions; the gate kept the first in line for 60 % of the time. */
struct pkv_summary plain_summary(void);
/* [NUM_POINTS]: free blocks fall from 100 to 37 and then stay, waiting peaks once in stretch 40, 3 are
 * running throughout, and stretches 0 and 63 have 1 and 4 preemptions. */
void fill_series(struct pkv_series_point *points);
/* To be freed with pkv_report_free(). */
char *report(const struct pkv_scenario *scenario, const struct pkv_summary *summary, size_t num_points,
             const struct pkv_trace_notes *notes, unsigned width, bool utf8, bool colour);
void expect_has(const char *text, const char *part);
void expect_lacks(const char *text, const char *part);

#endif
