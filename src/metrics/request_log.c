/*
 * request_log.c - requests.csv: one row a request, in the order in which they ended.
 *
 * Ties go by the row in the trace, and a refused request stands at its arrival. Both need a little
 * patience: a row is held back until no other can come before it, which is when a step begins at
 * its time or later. Those left at the end never ended; they come last, by row.
 *
 * What never happened is empty; a count of things that did not happen is 0.
 */
#include "base/alloc.h"
#include "metrics/metrics_private.h"

#include <stdlib.h>
#include <string.h>

static const char header[] =
    "id,arrival_ns,admitted_ns,first_token_ns,finish_ns,status,reason,prompt_tokens,output_tokens,"
    "hit_tokens,recomputed_tokens,preemptions,peak_blocks,max_gap_ns,queue_ns,tenant,priority\n";

void request_log_begin(struct request_log *log, struct pkv_out *out)
{
    log->out = out;
    if (out)
        pkv_out_bytes(out, header, sizeof header - 1);
}

void request_log_finish(struct request_log *log)
{
    for (size_t i = 0; i < log->num_ready; i++)
        pkv_text_free(&log->pending[i].line);
    pkv_free(log->pending);
    pkv_text_free(&log->id);
}

const char *request_id(struct pkv_text *scratch, const struct pkv_request *r, struct pkv_err *err)
{
    pkv_text_clear(scratch);
    if (r->id)
        pkv_text_add(scratch, r->id);
    else
        pkv_text_u64(scratch, r->row);
    if (!scratch->failed)
        return scratch->text;
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the id of a request");
    return NULL;
}

static void add_time(struct pkv_text *t, int64_t ns)
{
    if (ns != PKV_NO_TIME)
        pkv_text_i64(t, ns);
    pkv_text_add(t, ",");
}

static void add_count(struct pkv_text *t, uint64_t n)
{
    pkv_text_u64(t, n);
    pkv_text_add(t, ",");
}

static void add_word(struct pkv_text *t, const char *text)
{
    pkv_text_csv(t, text ? text : "");
    pkv_text_add(t, ",");
}

static void write_line(struct pkv_text *t, const char *id, const struct pkv_request_row *row)
{
    const struct pkv_request *r = row->request;
    add_word(t, id);
    add_time(t, r->arrival_ns);
    add_time(t, r->admitted_ns);
    add_time(t, r->first_token_ns);
    add_time(t, row->finish_ns);
    add_word(t, pkv_request_status_name(row->status));
    add_word(t, row->reason);
    add_count(t, r->seq.num_prompt_tokens);
    add_count(t, r->num_emitted);
    add_count(t, r->num_hit_tokens);
    add_count(t, r->num_recomputed_tokens);
    add_count(t, r->num_preemptions);
    add_count(t, r->peak_blocks);
    add_time(t, request_max_gap_ns(r));
    add_time(t, request_queue_ns(r));
    add_word(t, r->tenant);
    pkv_text_i64(t, r->priority);
    pkv_text_add(t, "\n");
}

int64_t request_place_ns(const struct pkv_request_row *row)
{
    if (row->status == PKV_REQUEST_REJECTED)
        return row->request->arrival_ns;
    return row->status == PKV_REQUEST_UNFINISHED ? INT64_MAX : row->finish_ns;
}

int request_log_add(struct request_log *log, const struct pkv_request_row *row,
                    struct pkv_err *err)
{
    if (!log->out)
        return 0;
    if (pkv_grow(&log->pending, &log->capacity, log->num + 1, sizeof *log->pending, err) < 0)
        return -1;
    struct pending_row *p = &log->pending[log->num];
    if (log->num == log->num_ready) {
        memset(p, 0, sizeof *p);
        log->num_ready++;
    }
    const char *id = request_id(&log->id, row->request, err);
    if (!id)
        return -1;
    p->time_ns = request_place_ns(row);
    p->row = row->request->row;
    pkv_text_clear(&p->line);
    write_line(&p->line, id, row);
    if (p->line.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a row of requests.csv");
    log->num++;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct pending_row *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

void request_log_advance(struct request_log *log, int64_t now_ns)
{
    size_t num_due = 0;
    for (size_t i = 0; i < log->num; i++)
        num_due += log->pending[i].time_ns <= now_ns;
    if (num_due == 0)
        return;
    qsort(log->pending, log->num, sizeof *log->pending, compare);
    for (size_t i = 0; i < num_due; i++) {
        pkv_out_bytes(log->out, log->pending[i].line.text, log->pending[i].line.length);
        pkv_out_end_row(log->out);
    }
    log->num -= num_due;
    for (size_t i = 0; i < log->num; i++) {    /* swapped, so that no line's memory is lost */
        struct pending_row due = log->pending[i];
        log->pending[i] = log->pending[i + num_due];
        log->pending[i + num_due] = due;
    }
}
