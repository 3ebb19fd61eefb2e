/*
 * diff_private.h - two logs side by side; records of engine logs.
 */
#ifndef PKV_REPORT_DIFF_PRIVATE_H
#define PKV_REPORT_DIFF_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "pagedkv/report.h"
#include "trace/input.h"
#include "trace/json_scan.h"

/* ---- side.c: one of two files, line by line ---- */

struct side {
    const char *path;            /* borrowed */
    struct pkv_input *input;     /* owned */
    struct pkv_lines lines;
    const char *text;            /* the current line, valid until the next; NULL = at the end */
    size_t length;
    struct pkv_text joined;      /* owned; lines of one row */
};
int side_open(struct side *s, const char *path, struct pkv_err *err);
void side_close(struct side *s);      /* a zeroed one is fine */
/* 0, or -1 with an error; text is NULL at the end. Blank lines are passed over. */
int side_next(struct side *s, struct pkv_err *err);
/* The same for CSV: a row goes on over the end of a line while a quote is open. */
int side_next_row(struct side *s, struct pkv_err *err);

#define ROW_MAX_FIELDS 64u
struct row {
    const char *fields[ROW_MAX_FIELDS];     /* slices of the line, quotes and all */
    size_t lengths[ROW_MAX_FIELDS];
    size_t num;
};
/* Cut the current line at its commas, those in quotes left alone. */
int side_split(const struct side *s, struct row *row, struct pkv_err *err);

/* ---- record.c: one line of an engine log ---- */

#define RECORD_MAX_FIELDS 32u

struct record {
    struct pkv_json scanner;     /* over the whole line */
    struct pkv_json_text keys[RECORD_MAX_FIELDS];
    struct pkv_json_value values[RECORD_MAX_FIELDS];
    size_t num_fields;
};
/* The texts must outlive the record. PKV_ERR_INPUT when it is not a step record. */
int record_read(struct record *r, const char *path, uint64_t line, const char *text,
                size_t length, struct pkv_err *err);
const struct pkv_json_value *record_field(const struct record *r, const char *key);
uint64_t record_number(const struct record *r, const char *key);    /* 0 when it is absent */

/* What the two sides are called in sentences. */
struct record_names {
    const char *a, *b;
    bool only_fields_of_a;       /* fields that only b has are no difference */
};
/* Compare field by field, causes before consequences. A difference is written to out.
 *   returns  true when there is none */
bool record_compare(const struct record *a, const struct record *b,
                    const struct record_names *names, struct pkv_text *out);
/* Names of the fields that any record had, in the order of their coming. Zero-initialise. */
#define RECORD_NAME_SIZE 32u
struct record_fields {
    char names[RECORD_MAX_FIELDS][RECORD_NAME_SIZE];
    size_t num;
};
void record_add_names(struct record_fields *fields, const struct record *r);
void record_list_names(const struct record_fields *fields, struct pkv_text *out);
/* One side has ended, the other goes on with this record. */
void record_tell_end(const struct record *next, uint64_t num_same, const char *ended,
                     const char *goes_on, struct pkv_text *out);

/* ---- thinned.c: may a step log have left out a row that the other has? ---- */

/* What --on-change looks at; 0 where the log has no such column. */
#define STEP_COUNTS(X)                                                                     \
    X(waiting) X(running) X(free_blocks) X(cached_blocks) X(free_blocks_end) X(admitted)   \
    X(resumed) X(preempted) X(finished) X(rejected) X(aborted) X(evicted_blocks)           \
    X(swapped_out_blocks) X(swapped_in_blocks) X(limit)
enum {
#define COUNT_ONE(name) COUNT_##name,
    STEP_COUNTS(COUNT_ONE)
#undef COUNT_ONE
    NUM_STEP_COUNTS
};
struct step_counts {
    int64_t values[NUM_STEP_COUNTS];
};

/* A row of the other log. */
struct absence {
    int64_t step, row;           /* row: counted from 1 in the log that has it */
    int64_t sort;                /* set by thinned_add_absence(), as is the next */
    bool is_repeat;              /* of the counts of the row before it */
    bool is_behind_end;
};
/* What is known of one log. Zero-initialise. */
struct thinned {
    int64_t num_rows, step;      /* so far; of the last row */
    struct step_counts counts, former;   /* of the last row and the one before */
    int64_t first_gap, stride;   /* stride: the greatest divisor of all steps; 0 = none yet */
    bool has_gaps, repeats;      /* steps are missing; a row has the counts of the row before */
    bool is_uneven;              /* the steps are not 0, N, 2 N, ... */
    struct absence *absences;    /* owned */
    size_t num_absences, capacity;
};
/* Steps rise. */
void thinned_add_row(struct thinned *t, int64_t step, const struct step_counts *counts);
/* A row that only the other log has; this one's row at hand is the first behind it, or its last. */
int thinned_add_absence(struct thinned *t, const struct absence *absence,
                        const struct step_counts *counts, struct pkv_err *err);
/* At the end: the first absence that no thinning out explains, or NULL. */
const struct absence *thinned_unexplained(const struct thinned *t);
void thinned_finish(struct thinned *t);

/* ---- diff_csv.c, diff_log.c: both sides stand at their first line ---- */

int diff_csv(struct side *a, struct side *b, bool is_steps, struct pkv_diff_result *out,
             struct pkv_text *text, struct pkv_err *err);
int diff_log(struct side *a, struct side *b, struct pkv_diff_result *out, struct pkv_text *text,
             struct pkv_err *err);

/* A line of the totals below a difference. */
void add_total(struct pkv_text *t, const char *name, int64_t a, int64_t b);

#endif
