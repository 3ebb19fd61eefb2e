/*
 * columns.h - the rows of a run as columns in memory, for programs that compute with them. A sink of
 * the engine.
 *
 * Tables, each of int64_t columns as long as it has rows:
 *   steps     the columns of steps.csv, in its order; thinned out as the file would be
 *   extra     beside each row of steps, what steps.csv does not print (PKV_EXTRA_COLUMNS)
 *   gaps      time_ns, gap_ns, num: so many requests waited so long for their next token, which came
 *             out at the end of the step that began then. Of every step, whatever is thinned out
 *   requests  the numbers of requests.csv (PKV_REQUEST_COLUMNS), rows in its order. A time that
 *             never was is PKV_NO_TIME. Texts are told by a place and a length, see below
 *
 * Cost: 8 bytes a row and column, so 224 a kept step, 104 with extra, 24 a gap that differs, 168 a
 * request and its texts; up to twice that is reserved while a table grows.
 */
#ifndef PAGEDKV_COLUMNS_H
#define PAGEDKV_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/engine.h"
#include "pagedkv/err.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* output_tokens came out at the step's end. prompt_tokens, queried_tokens and first_hit_tokens are of
 * those admitted for the first time in it: their prompts, what was looked up, what was found; then
 * the same of the resumed. Slots are positions that lie waste under a layout of runs. table_blocks are
 * the lengths of all block tables. The last three are counted from the beginning of the run. */
#define PKV_EXTRA_COLUMNS(X)                                                                    \
    X(output_tokens) X(prompt_tokens) X(queried_tokens) X(first_hit_tokens)                     \
    X(resumed_queried_tokens) X(resumed_hit_tokens) X(reserved_slots) X(internal_slots)         \
    X(external_slots) X(table_blocks) X(allocated_total) X(released_total) X(copied_total)

/* status is an enum pkv_request_status. row is the number of the request in the trace. The last ones are
 * places and lengths, in bytes, in the text of pkv_columns_texts(). */
#define PKV_REQUEST_COLUMNS(X)                                                                  \
    X(arrival_ns) X(admitted_ns) X(first_token_ns) X(finish_ns) X(status) X(prompt_tokens)      \
    X(output_tokens) X(hit_tokens) X(recomputed_tokens) X(preemptions) X(peak_blocks)           \
    X(max_gap_ns) X(queue_ns) X(priority) X(row) X(id_at) X(id_length) X(reason_at)             \
    X(reason_length) X(tenant_at) X(tenant_length)

enum pkv_columns_table {
    PKV_COLUMNS_STEPS, PKV_COLUMNS_EXTRA, PKV_COLUMNS_GAPS, PKV_COLUMNS_REQUESTS, PKV_COLUMNS_COUNT
};

struct pkv_columns_config {
    bool has_table[PKV_COLUMNS_COUNT];   /* which are kept */
    uint64_t every;                    /* every nth step; 0 or 1 = all */
    bool on_change;                    /* as in metrics.h */
};

struct pkv_columns;
struct pkv_columns *pkv_columns_create(const struct pkv_columns_config *config, struct pkv_err *err);
void pkv_columns_destroy(struct pkv_columns *columns);
struct pkv_sink pkv_columns_sink(struct pkv_columns *columns);
/* Once, after the run: put the requests in their order. 0, or -1 with PKV_ERR_MEMORY. */
int pkv_columns_finish(struct pkv_columns *columns, struct pkv_err *err);

size_t pkv_columns_num_rows(const struct pkv_columns *columns, enum pkv_columns_table table);
/* How many columns has a table, and what is one called? NULL = there is none of this number. */
size_t pkv_columns_num(enum pkv_columns_table table);
const char *pkv_columns_name(enum pkv_columns_table table, size_t column);
/* [num_rows], borrowed; NULL when the table is not kept or has no row. They move while it grows, so
 * look after the run. */
const int64_t *pkv_columns_values(const struct pkv_columns *columns, enum pkv_columns_table table,
                                  size_t column);
/* The texts of the requests, without NUL between them. */
const char *pkv_columns_texts(const struct pkv_columns *columns, size_t *out_length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
