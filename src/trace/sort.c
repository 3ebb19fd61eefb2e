/*
 * sort.c - all rows of a trace, kept so that they can be given in time order.
 *
 * What a row points to is kept in four long arrays by offset, since these move as they grow.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/trace_private.h"

struct kept {
    struct pkv_request_spec spec;
    size_t number;               /* order of adding, for ties */
    size_t first_span, first_output;
    size_t id, tenant, session, loop, salt, adapter;   /* in text; PKV_NO_TEXT = none */
};

struct pkv_sorted {
    struct kept *rows;           /* [num_rows] owned */
    size_t num_rows, rows_capacity, next;
    struct pkv_span *spans;      /* [num_spans] owned */
    size_t num_spans, spans_capacity;
    struct pkv_trace_text *of;   /* [num_spans] owned; what they are of, where that is kept */
    size_t *of_name;             /* [num_spans] owned; their names in text */
    size_t of_capacity, of_name_capacity;
    uint32_t *outputs;           /* [num_outputs] owned */
    size_t num_outputs, outputs_capacity;
    char *text;                  /* [text_length] owned; texts with their NUL */
    size_t text_length, text_capacity;
};

struct pkv_sorted *pkv_sorted_create(struct pkv_err *err)
{
    return pkv_alloc(1, sizeof(struct pkv_sorted), err);
}

void pkv_sorted_destroy(struct pkv_sorted *s)
{
    if (!s)
        return;
    pkv_free(s->rows);
    pkv_free(s->spans);
    pkv_free(s->of);
    pkv_free(s->of_name);
    pkv_free(s->outputs);
    pkv_free(s->text);
    pkv_free(s);
}

static int keep_text(struct pkv_sorted *s, const char *text, size_t *out, struct pkv_err *err)
{
    *out = PKV_NO_TEXT;
    if (!text)
        return 0;
    size_t size = strlen(text) + 1;
    if (pkv_grow(&s->text, &s->text_capacity, s->text_length + size, 1, err) < 0)
        return -1;
    memcpy(s->text + s->text_length, text, size);
    *out = s->text_length;
    s->text_length += size;
    return 0;
}

static int keep_outputs(struct pkv_sorted *s, const struct pkv_request_spec *spec, size_t *out,
                        struct pkv_err *err)
{
    size_t num = spec->sample_output_tokens ? spec->num_samples : 0;
    *out = s->num_outputs;
    if (num == 0)
        return 0;
    if (pkv_grow(&s->outputs, &s->outputs_capacity, s->num_outputs + num, sizeof *s->outputs,
                 err) < 0)
        return -1;
    memcpy(s->outputs + s->num_outputs, spec->sample_output_tokens, num * sizeof *s->outputs);
    s->num_outputs += num;
    return 0;
}

static int keep_texts(struct pkv_sorted *s, struct kept *row, const struct pkv_trace_texts *texts,
                      size_t num, struct pkv_err *err)
{
    if (pkv_grow(&s->of, &s->of_capacity, s->num_spans + num, sizeof *s->of, err) < 0 ||
        pkv_grow(&s->of_name, &s->of_name_capacity, s->num_spans + num, sizeof *s->of_name,
                 err) < 0)
        return -1;
    for (size_t i = 0; i < num; i++) {
        s->of[s->num_spans + i] = texts->spans[i];
        if (keep_text(s, texts->spans[i].name, &s->of_name[s->num_spans + i], err) < 0)
            return -1;
    }
    if (keep_text(s, texts->salt, &row->salt, err) < 0)
        return -1;
    return keep_text(s, texts->adapter, &row->adapter, err);
}

int pkv_sorted_add(struct pkv_sorted *s, const struct pkv_request_spec *spec,
                   const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    size_t num = spec->content.num_prompt_spans;
    if (pkv_grow(&s->rows, &s->rows_capacity, s->num_rows + 1, sizeof *s->rows, err) < 0 ||
        pkv_grow(&s->spans, &s->spans_capacity, s->num_spans + num, sizeof *s->spans, err) < 0)
        return -1;
    struct kept *row = &s->rows[s->num_rows];
    *row = (struct kept){.spec = *spec, .number = s->num_rows, .first_span = s->num_spans};
    if (keep_text(s, spec->id, &row->id, err) < 0 ||
        keep_text(s, spec->tenant, &row->tenant, err) < 0 ||
        keep_text(s, spec->session, &row->session, err) < 0 ||
        keep_text(s, spec->loop, &row->loop, err) < 0 ||
        keep_outputs(s, spec, &row->first_output, err) < 0 ||
        (texts && keep_texts(s, row, texts, num, err) < 0))
        return -1;
    memcpy(s->spans + s->num_spans, spec->content.prompt, num * sizeof *s->spans);
    s->num_spans += num;
    s->num_rows++;
    return 0;
}

static int by_arrival(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    if (x->spec.arrival_ns != y->spec.arrival_ns)
        return x->spec.arrival_ns < y->spec.arrival_ns ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void pkv_sorted_order(struct pkv_sorted *s)
{
    if (s->num_rows > 1)
        qsort(s->rows, s->num_rows, sizeof *s->rows, by_arrival);
}

static const char *text_at(const struct pkv_sorted *s, size_t at)
{
    return at == PKV_NO_TEXT ? NULL : s->text + at;
}

bool pkv_sorted_next(struct pkv_sorted *s, struct pkv_request_spec *out,
                     struct pkv_row_texts *texts)
{
    if (s->next == s->num_rows)
        return false;
    const struct kept *row = &s->rows[s->next++];
    *out = row->spec;
    out->content.prompt = s->spans + row->first_span;
    if (out->sample_output_tokens)
        out->sample_output_tokens = s->outputs + row->first_output;
    out->id = text_at(s, row->id);
    out->tenant = text_at(s, row->tenant);
    out->session = text_at(s, row->session);
    out->loop = text_at(s, row->loop);
    if (!s->of)
        return true;
    for (size_t i = row->first_span; i < row->first_span + out->content.num_prompt_spans; i++)
        s->of[i].name = text_at(s, s->of_name[i]);
    texts->given = (struct pkv_trace_texts){s->of + row->first_span, text_at(s, row->salt),
                                            text_at(s, row->adapter)};
    return true;
}
