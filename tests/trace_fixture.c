/*
 * trace_fixture.c - see trace_fixture.h.
 */
#include "trace_fixture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void check_row(const struct pkv_request_spec *spec, uint64_t number, int64_t *last_ns)
{
    uint64_t sum = 0;
    ck_assert_uint_eq(spec->row, number);
    ck_assert_int_ge(spec->arrival_ns, *last_ns);
    *last_ns = spec->arrival_ns;
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        ck_assert_uint_gt(spec->content.prompt[i].count, 0);
        sum += spec->content.prompt[i].count;
    }
    ck_assert_uint_gt(sum, 0);
    ck_assert_uint_eq(sum, spec->num_prompt_tokens);
    ck_assert_uint_gt(spec->max_tokens, 0);
    ck_assert(spec->abort_ns == PKV_NO_TIME || spec->follows ||
              spec->abort_ns >= spec->arrival_ns);
    ck_assert(!spec->follows || spec->session);
    ck_assert_int_ge(spec->delay_ns, 0);
}

static void keep(struct row *row, const struct pkv_request_spec *spec)
{
    size_t num = spec->content.num_prompt_spans;
    row->spec = *spec;
    snprintf(row->id, sizeof row->id, "%s", spec->id ? spec->id : "");
    snprintf(row->tenant, sizeof row->tenant, "%s", spec->tenant ? spec->tenant : "");
    snprintf(row->session, sizeof row->session, "%s", spec->session ? spec->session : "");
    memcpy(row->spans, spec->content.prompt,
           (num < MAX_SPANS ? num : MAX_SPANS) * sizeof *row->spans);
}

void take_rows(struct pkv_trace *trace, struct rows *out)
{
    struct pkv_source source = pkv_trace_source(trace);
    struct pkv_request_spec spec;
    int64_t last_ns = INT64_MIN;
    int more;
    while ((more = source.next(source.ctx, &spec, &out->err)) > 0) {
        check_row(&spec, out->num, &last_ns);
        if (out->num < MAX_ROWS)
            keep(&out->row[out->num], &spec);
        out->num++;
    }
    out->status = more;
    out->notes = *pkv_trace_notes(trace);
    if (more < 0) {      /* an error stays */
        struct pkv_err again = {0};
        ck_assert_int_eq(source.next(source.ctx, &spec, &again), -1);
        ck_assert_str_eq(again.text, out->err.text);
    }
}

void read_memory(const void *bytes, size_t length, const struct pkv_trace_options *options,
                 struct rows *out)
{
    memset(out, 0, sizeof *out);
    struct pkv_trace *trace = pkv_trace_open_memory("rows", bytes, length, options, &out->err);
    out->status = -1;
    if (trace)
        take_rows(trace, out);
    pkv_trace_close(trace);
    ck_assert_int_eq(out->status < 0, out->err.code != PKV_ERR_NONE);
}

void read_rows(const char *text, const struct pkv_trace_options *options, struct rows *out)
{
    read_memory(text, strlen(text), options, out);
}

void expect_rows(const char *text, const struct pkv_trace_options *options, struct rows *out)
{
    read_rows(text, options, out);
    ck_assert_msg(out->status == 0, "%s\n%llu:%u: %s", text, (unsigned long long)out->err.line,
                  out->err.column, out->err.text);
}

void expect_error(const char *text, const struct pkv_trace_options *options, uint64_t line,
                  uint32_t column, const char *words)
{
    static struct rows rows;
    read_rows(text, options, &rows);
    ck_assert_msg(rows.status < 0, "%s\nwas taken", text);
    ck_assert_int_eq(rows.err.code, PKV_ERR_INPUT);
    ck_assert_msg(strstr(rows.err.text, words) != NULL, "%s\nsaid: %s", text, rows.err.text);
    ck_assert_msg(rows.err.line == line && rows.err.column == column, "%s\n%llu:%u: %s", text,
                  (unsigned long long)rows.err.line, rows.err.column, rows.err.text);
    if (line)
        ck_assert_str_eq(rows.err.path, "rows");
}

void expect_span(const struct row *row, size_t i, uint64_t origin, uint32_t first, uint32_t count)
{
    ck_assert_uint_lt(i, row->spec.content.num_prompt_spans);
    ck_assert_uint_eq(row->spans[i].origin, origin);
    ck_assert_uint_eq(row->spans[i].first, first);
    ck_assert_uint_eq(row->spans[i].count, count);
}
