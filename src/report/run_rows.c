/*
 * run_rows.c - requests.csv of a former run, row by row.
 */
#include "report/explain_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"

/* The columns, in their order: what a field is, and where it goes. */
#define COLUMNS(X)                                                                       \
    X(TEXT, id) X(TIME, arrival_ns) X(TIME, admitted_ns) X(TIME, first_token_ns)         \
    X(TIME, finish_ns) X(STATUS, status) X(TEXT, reason) X(COUNT, prompt_tokens)         \
    X(COUNT, output_tokens) X(COUNT, hit_tokens) X(COUNT, recomputed_tokens)             \
    X(COUNT, preemptions) X(COUNT, peak_blocks) X(TIME, max_gap_ns) X(TIME, queue_ns)    \
    X(TEXT, tenant) X(TIME, priority)

static const char header[] =
    "id,arrival_ns,admitted_ns,first_token_ns,finish_ns,status,reason,prompt_tokens,output_tokens,"
    "hit_tokens,recomputed_tokens,preemptions,peak_blocks,max_gap_ns,queue_ns,tenant,priority";

enum column {
#define PKV_ENUM(type, name) COLUMN_##name,
    COLUMNS(PKV_ENUM)
#undef PKV_ENUM
    COLUMN_COUNT
};

void run_row_free(struct run_row *row)
{
    pkv_text_free(&row->id);
    pkv_text_free(&row->reason);
    pkv_text_free(&row->tenant);
}

static void copy_text(struct pkv_text *to, const struct pkv_text *from)
{
    pkv_text_clear(to);
    pkv_text_bytes(to, from->text, from->length);
}

int run_row_copy(struct run_row *to, const struct run_row *from, struct pkv_err *err)
{
    struct pkv_text id = to->id, reason = to->reason, tenant = to->tenant;
    copy_text(&id, &from->id);
    copy_text(&reason, &from->reason);
    copy_text(&tenant, &from->tenant);
    *to = *from;
    to->id = id;
    to->reason = reason;
    to->tenant = tenant;
    if (id.failed || reason.failed || tenant.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a row of requests.csv");
    return 0;
}

int run_rows_open(struct run_rows *rows, const struct run_dir *run, struct pkv_err *err)
{
    *rows = (struct run_rows){.run = run};
    if (side_open(&rows->side, run->requests, err) < 0)
        return -1;
    if (rows->side.text && rows->side.length == sizeof header - 1 &&
        memcmp(rows->side.text, header, sizeof header - 1) == 0)
        return 0;
    return pkv_fail_at(err, run->requests, 1, 1, "does not begin with the columns of requests.csv");
}

static int fail_field(const struct run_rows *r, enum column column, const char *name,
                      const char *why, struct pkv_err *err)
{
    size_t length = r->fields.lengths[column];
    return pkv_fail_at(err, r->side.path, r->side.lines.number,
                       (uint32_t)(r->fields.fields[column] - r->side.text) + 1, "%s '%.*s' %s", name,
                       length < 100 ? (int)length : 100, r->fields.fields[column], why);
}

/* A field without its quotes, those inside being doubled. */
static int take_TEXT(const struct run_rows *r, enum column column, const char *name,
                     struct pkv_text *out, struct pkv_err *err)
{
    const char *at = r->fields.fields[column], *end = at + r->fields.lengths[column];
    pkv_text_clear(out);
    if (at < end && *at == '"') {
        for (at++; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++) {
            pkv_text_bytes(out, at, 1);
            at += *at == '"';
        }
        if (at + 1 != end)
            return fail_field(r, column, name, "goes on behind its closing quote", err);
    } else {
        pkv_text_bytes(out, at, (size_t)(end - at));
    }
    if (out->failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a row of requests.csv");
    return 0;
}

static int take_TIME(const struct run_rows *r, enum column column, const char *name, int64_t *out,
                     struct pkv_err *err)
{
    const char *why;
    *out = PKV_NO_TIME;
    if (r->fields.lengths[column] == 0)
        return 0;
    if (pkv_parse_i64(r->fields.fields[column], r->fields.lengths[column], out, &why) < 0)
        return fail_field(r, column, name, why, err);
    return 0;
}

static int take_COUNT(const struct run_rows *r, enum column column, const char *name,
                      uint64_t *out, struct pkv_err *err)
{
    const char *why;
    if (pkv_parse_u64(r->fields.fields[column], r->fields.lengths[column], INT64_MAX, out, &why) < 0)
        return fail_field(r, column, name, why, err);
    return 0;
}

static int take_STATUS(const struct run_rows *r, enum column column, const char *name,
                       enum pkv_request_status *out, struct pkv_err *err)
{
    for (int i = 0; i < PKV_REQUEST_STATUS_COUNT; i++) {
        const char *word = pkv_request_status_name((enum pkv_request_status)i);
        if (strlen(word) == r->fields.lengths[column] &&
            memcmp(word, r->fields.fields[column], strlen(word)) == 0) {
            *out = (enum pkv_request_status)i;
            return 0;
        }
    }
    return fail_field(r, column, name, "is no status", err);
}

/* What has to be there is, and times are in an order that can be. */
static int check_row(const struct run_rows *r, struct pkv_err *err)
{
    const struct run_row *row = &r->row;
    const int64_t times[] = {row->arrival_ns, row->admitted_ns, row->first_token_ns, row->finish_ns};
    int64_t last = row->arrival_ns;
    bool ends = row->status == PKV_REQUEST_COMPLETED || row->status == PKV_REQUEST_ABORTED;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (times[i] != PKV_NO_TIME && times[i] < last)
            return pkv_fail_at(err, r->side.path, r->side.lines.number, 0,
                               "its times are not in their order");
        last = times[i] != PKV_NO_TIME ? times[i] : last;
    }
    if (row->arrival_ns == PKV_NO_TIME || (ends && row->finish_ns == PKV_NO_TIME))
        return pkv_fail_at(err, r->side.path, r->side.lines.number, 0,
                           "a request that %s has no %s", ends ? "ended" : "came",
                           ends ? "finish_ns" : "arrival_ns");
    return 0;
}

static int take_row(struct run_rows *r, struct pkv_err *err)
{
    if (side_split(&r->side, &r->fields, err) < 0)
        return -1;
    if (r->fields.num != COLUMN_COUNT)
        return pkv_fail_at(err, r->side.path, r->side.lines.number, 0,
                           "a row of %zu fields under a header of %d", r->fields.num, COLUMN_COUNT);
#define TAKE(type, name)                                                   \
    if (take_##type(r, COLUMN_##name, #name, &r->row.name, err) < 0)       \
        return -1;
    COLUMNS(TAKE)
#undef TAKE
    return check_row(r, err);
}

int run_rows_next(struct run_rows *r, struct pkv_err *err)
{
    if (side_next_row(&r->side, err) < 0)
        return -1;
    if (r->side.text) {
        r->num++;
        return take_row(r, err) < 0 ? -1 : 1;
    }
    if (r->num == r->run->counts.arrived)
        return 0;
    return run_dir_mixed(r->side.path, "requests", r->num, r->run->counts.arrived, err);
}

void run_rows_close(struct run_rows *rows)
{
    side_close(&rows->side);
    run_row_free(&rows->row);
}
