/*
 * trace_fixture.h - traces from text, all their rows at once, and errors with their place.
 */
#ifndef TESTS_TRACE_FIXTURE_H
#define TESTS_TRACE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/trace.h"

#define MAX_ROWS 64
#define MAX_SPANS 16
#define MS INT64_C(1000000)

/* A row that outlives the next one. */
struct row {
    struct pkv_request_spec spec;     /* its pointers are not to be used */
    char id[64], tenant[64], session[64];   /* "" = none */
    struct pkv_span spans[MAX_SPANS];
};
struct rows {
    struct row row[MAX_ROWS];
    size_t num;
    struct pkv_trace_notes notes;
    int status;                       /* of the last call: 0, or -1 with err */
    struct pkv_err err;
};

/* Open, read to the end, close. Every row is checked: T1 to T3 of trace.c. */
void read_memory(const void *bytes, size_t length, const struct pkv_trace_options *options,
                 struct rows *out);
void read_rows(const char *text, const struct pkv_trace_options *options, struct rows *out);
void take_rows(struct pkv_trace *trace, struct rows *out);

/* Rows of text must be readable. */
void expect_rows(const char *text, const struct pkv_trace_options *options, struct rows *out);
/* Reading text must fail at that place (0 = no line, no column) with these words. */
void expect_error(const char *text, const struct pkv_trace_options *options, uint64_t line,
                  uint32_t column, const char *words);
void expect_span(const struct row *row, size_t i, uint64_t origin, uint32_t first, uint32_t count);

#endif
