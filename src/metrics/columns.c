/*
 * columns.c - the rows of a run as columns in memory.
 *
 * A row is spread over the columns as it comes, so that each column lies in one piece. Gaps come
 * before the step in which they closed; their time is filled in by it. Requests come in an order that
 * is not quite that of requests.csv, and are put into it at the end.
 */
#include "pagedkv/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "metrics/metrics_private.h"

#define MAX_COLUMNS 32u

enum {
#define INDEX(name) EXTRA_##name,
    PKV_EXTRA_COLUMNS(INDEX)
#undef INDEX
    NUM_EXTRA_COLUMNS
};
enum {
#define INDEX(name) REQUEST_##name,
    PKV_REQUEST_COLUMNS(INDEX)
#undef INDEX
    NUM_REQUEST_COLUMNS
};
enum { GAP_TIME_NS, GAP_NS, GAP_NUM, NUM_GAP_COLUMNS };

static const char *const step_names[] = {
#define NAME(name) #name,
    PKV_STEP_COLUMNS(NAME)
};
static const char *const extra_names[] = {PKV_EXTRA_COLUMNS(NAME)};
static const char *const gap_names[] = {"time_ns", "gap_ns", "num"};
static const char *const request_names[] = {
    PKV_REQUEST_COLUMNS(NAME)
#undef NAME
};

static const struct {
    const char *const *names;
    size_t num;
} tables[] = {
    [PKV_COLUMNS_STEPS] = {step_names, NUM_STEP_COLUMNS},
    [PKV_COLUMNS_EXTRA] = {extra_names, NUM_EXTRA_COLUMNS},
    [PKV_COLUMNS_GAPS] = {gap_names, NUM_GAP_COLUMNS},
    [PKV_COLUMNS_REQUESTS] = {request_names, NUM_REQUEST_COLUMNS},
};

struct table {
    size_t num, capacity;
    int64_t *columns[MAX_COLUMNS];   /* [num of capacity] each, owned */
};

/* The same text again is not stored again. */
struct last_text {
    size_t at, length;
};

struct pkv_columns {
    struct pkv_columns_config config;
    struct table tables[PKV_COLUMNS_COUNT];
    struct thinning thinning;
    struct pkv_text texts, id;       /* of all requests; scratch */
    int64_t *places;                 /* [requests of capacity] owned: the time each row stands at */
    size_t places_capacity;
    struct last_text last_reason, last_tenant;
    size_t num_timed;                /* gaps whose time is known */
    bool gap_failed;
    struct pkv_err gap_err;          /* told at the next step */
};

struct pkv_columns *pkv_columns_create(const struct pkv_columns_config *config, struct pkv_err *err)
{
    struct pkv_columns *c = pkv_alloc(1, sizeof *c, err);
    if (!c)
        return NULL;
    c->config = *config;
    c->thinning = (struct thinning){.every = config->every, .on_change = config->on_change};
    return c;
}

void pkv_columns_destroy(struct pkv_columns *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < PKV_COLUMNS_COUNT; i++)
        for (size_t j = 0; j < MAX_COLUMNS; j++)
            pkv_free(c->tables[i].columns[j]);
    pkv_text_free(&c->texts);
    pkv_text_free(&c->id);
    pkv_free(c->places);
    pkv_free(c);
}

/* Room for one row more. Some columns may have grown when one cannot; the capacity is that of all. */
static int reserve(struct table *t, size_t num_columns, struct pkv_err *err)
{
    size_t capacity = t->capacity;
    if (t->num < capacity)
        return 0;
    for (size_t i = 0; i < num_columns; i++) {
        capacity = t->capacity;
        if (pkv_grow_more(&t->columns[i], &capacity, t->num + 1, sizeof *t->columns[i], err) < 0)
            return -1;
    }
    t->capacity = capacity;
    return 0;
}

static int add_row(struct pkv_columns *c, enum pkv_columns_table table, const int64_t *values,
                   struct pkv_err *err)
{
    struct table *t = &c->tables[table];
    if (reserve(t, tables[table].num, err) < 0)
        return -1;
    for (size_t i = 0; i < tables[table].num; i++)
        t->columns[i][t->num] = values[i];
    t->num++;
    return 0;
}

static int add_step(struct pkv_columns *c, const struct pkv_step_row *row, struct pkv_err *err)
{
    int64_t values[NUM_STEP_COLUMNS];
    memcpy(values, row, sizeof values);    /* the printed columns are the first fields, in order */
    return add_row(c, PKV_COLUMNS_STEPS, values, err);
}

static int add_extra(struct pkv_columns *c, struct pkv_sched *sched, const struct pkv_step_row *row,
                     struct pkv_err *err)
{
    const struct pkv_cache_figures cache = pkv_cache_figures(pkv_sched_cache(sched));
    const int64_t values[] = {
        [EXTRA_output_tokens] = row->output_tokens,
        [EXTRA_prompt_tokens] = row->prompt_tokens,
        [EXTRA_queried_tokens] = row->queried_tokens,
        [EXTRA_first_hit_tokens] = row->first_hit_tokens,
        [EXTRA_resumed_queried_tokens] = row->resumed_queried_tokens,
        [EXTRA_resumed_hit_tokens] = row->resumed_hit_tokens,
        [EXTRA_reserved_slots] = row->reserved_slots,
        [EXTRA_internal_slots] = row->internal_slots,
        [EXTRA_external_slots] = row->external_slots,
        [EXTRA_table_blocks] = row->table_blocks,
        [EXTRA_allocated_total] = (int64_t)cache.pool.allocated,
        [EXTRA_released_total] = (int64_t)cache.pool.released,
        [EXTRA_copied_total] = (int64_t)cache.num_copied,
    };
    return add_row(c, PKV_COLUMNS_EXTRA, values, err);
}

/* The gaps that closed in this step, the regular one last. */
static int add_gaps(struct pkv_columns *c, const struct pkv_step_row *row, struct pkv_err *err)
{
    const int64_t regular[] = {0, row->regular_gap_ns, row->regular_gaps};
    struct table *gaps = &c->tables[PKV_COLUMNS_GAPS];
    if (c->gap_failed) {
        if (err)
            *err = c->gap_err;
        return -1;
    }
    if (row->regular_gaps > 0 && add_row(c, PKV_COLUMNS_GAPS, regular, err) < 0)
        return -1;
    for (; c->num_timed < gaps->num; c->num_timed++)
        gaps->columns[GAP_TIME_NS][c->num_timed] = row->time_ns;
    return 0;
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct pkv_columns *c = ctx;
    const bool *has_table = c->config.has_table;
    if (has_table[PKV_COLUMNS_GAPS] && add_gaps(c, row, err) < 0)
        return -1;
    if ((!has_table[PKV_COLUMNS_STEPS] && !has_table[PKV_COLUMNS_EXTRA]) ||
        !thinning_keeps(&c->thinning, row))
        return 0;
    if (has_table[PKV_COLUMNS_STEPS] && add_step(c, row, err) < 0)
        return -1;
    return has_table[PKV_COLUMNS_EXTRA] ? add_extra(c, sched, row, err) : 0;
}

static void on_gap(void *ctx, int64_t gap_ns)
{
    struct pkv_columns *c = ctx;
    const int64_t values[] = {0, gap_ns, 1};
    if (add_row(c, PKV_COLUMNS_GAPS, values, c->gap_failed ? NULL : &c->gap_err) < 0)
        c->gap_failed = true;
}

static void put_text(struct pkv_columns *c, const char *text, struct last_text *last,
                     int64_t *out_at, int64_t *out_length)
{
    size_t length = text ? strlen(text) : 0;
    if (length == 0) {
        *out_at = *out_length = 0;
        return;
    }
    if (!last || last->length != length || memcmp(c->texts.text + last->at, text, length) != 0) {
        struct last_text here = {c->texts.length, length};
        pkv_text_bytes(&c->texts, text, length);
        *out_at = (int64_t)here.at;
        if (last)
            *last = here;
    } else {
        *out_at = (int64_t)last->at;
    }
    *out_length = (int64_t)length;
}

static int put_texts(struct pkv_columns *c, const struct pkv_request_row *row, int64_t *values,
                     struct pkv_err *err)
{
    const char *id = request_id(&c->id, row->request, err);
    if (!id)
        return -1;
    put_text(c, id, NULL, &values[REQUEST_id_at], &values[REQUEST_id_length]);
    put_text(c, row->reason, &c->last_reason, &values[REQUEST_reason_at],
             &values[REQUEST_reason_length]);
    put_text(c, row->request->tenant, &c->last_tenant, &values[REQUEST_tenant_at],
             &values[REQUEST_tenant_length]);
    return c->texts.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the texts of "
                                      "a request") : 0;
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct pkv_columns *c = ctx;
    const struct pkv_request *r = row->request;
    size_t num = c->tables[PKV_COLUMNS_REQUESTS].num;
    int64_t values[NUM_REQUEST_COLUMNS] = {
        [REQUEST_arrival_ns] = r->arrival_ns,
        [REQUEST_admitted_ns] = r->admitted_ns,
        [REQUEST_first_token_ns] = r->first_token_ns,
        [REQUEST_finish_ns] = row->finish_ns,
        [REQUEST_status] = row->status,
        [REQUEST_prompt_tokens] = r->seq.num_prompt_tokens,
        [REQUEST_output_tokens] = r->num_emitted,
        [REQUEST_hit_tokens] = r->num_hit_tokens,
        [REQUEST_recomputed_tokens] = (int64_t)r->num_recomputed_tokens,
        [REQUEST_preemptions] = r->num_preemptions,
        [REQUEST_peak_blocks] = r->peak_blocks,
        [REQUEST_max_gap_ns] = request_max_gap_ns(r),
        [REQUEST_queue_ns] = request_queue_ns(r),
        [REQUEST_priority] = r->priority,
        [REQUEST_row] = (int64_t)r->row,
    };
    if (pkv_grow(&c->places, &c->places_capacity, num + 1, sizeof *c->places, err) < 0 ||
        put_texts(c, row, values, err) < 0)
        return -1;
    c->places[num] = request_place_ns(row);
    return add_row(c, PKV_COLUMNS_REQUESTS, values, err);
}

struct pkv_sink pkv_columns_sink(struct pkv_columns *columns)
{
    const bool *has_table = columns->config.has_table;
    return (struct pkv_sink){
        .request = has_table[PKV_COLUMNS_REQUESTS] ? on_request : NULL,
        .gap = has_table[PKV_COLUMNS_GAPS] ? on_gap : NULL,
        .step = on_step,
        .ctx = columns,
    };
}

/* ---- the order of requests ---- */

struct place {
    int64_t time_ns, row;
    size_t from;
};

static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void reorder(int64_t *column, const struct place *order, size_t num, int64_t *scratch)
{
    for (size_t i = 0; i < num; i++)
        scratch[i] = column[order[i].from];
    memcpy(column, scratch, num * sizeof *column);
}

int pkv_columns_finish(struct pkv_columns *c, struct pkv_err *err)
{
    struct table *t = &c->tables[PKV_COLUMNS_REQUESTS];
    struct place *order = pkv_alloc(t->num, sizeof *order, err);
    if (!order)
        return -1;
    for (size_t i = 0; i < t->num; i++)
        order[i] = (struct place){c->places[i], t->columns[REQUEST_row][i], i};
    if (t->num > 0)
        qsort(order, t->num, sizeof *order, compare);
    for (size_t i = 0; i < NUM_REQUEST_COLUMNS && t->num > 0; i++)
        reorder(t->columns[i], order, t->num, c->places);
    pkv_free(c->places);
    c->places = NULL;
    pkv_free(order);
    return 0;
}

/* ---- what there is ---- */

size_t pkv_columns_num_rows(const struct pkv_columns *columns, enum pkv_columns_table table)
{
    PKV_ASSERT((unsigned)table < PKV_COLUMNS_COUNT);
    return columns->tables[table].num;
}

size_t pkv_columns_num(enum pkv_columns_table table)
{
    PKV_ASSERT((unsigned)table < PKV_COLUMNS_COUNT);
    return tables[table].num;
}

const char *pkv_columns_name(enum pkv_columns_table table, size_t column)
{
    return column < pkv_columns_num(table) ? tables[table].names[column] : NULL;
}

const int64_t *pkv_columns_values(const struct pkv_columns *columns, enum pkv_columns_table table,
                                  size_t column)
{
    PKV_ASSERT(column < pkv_columns_num(table));
    return columns->tables[table].columns[column];
}

const char *pkv_columns_texts(const struct pkv_columns *columns, size_t *out_length)
{
    *out_length = columns->texts.length;
    return columns->texts.text;
}
