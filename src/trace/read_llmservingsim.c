/*
 * read_llmservingsim.c - rows of LLMServingSim: single requests, and sessions of several on a line.
 *
 * A line with sub_requests is a session: its first request comes at the line's time, each later one
 * tool_duration_ns of the request before after that one has finished. The line is kept until all of
 * them are given. Token ids of a prompt become its content; a run of rising ids is one span.
 * output_tok_ids are left out: an answer is text of its own here, so that a later prompt which
 * repeats it shares only what was in the prompt before.
 *
 * Source: LLMServingSim, workloads/README.md ("Format").
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/fields_private.h"
#include "trace/trace_private.h"

#define FIELDS(X)                                                                        \
    X(F_INPUT_TOKS, "input_toks") X(F_OUTPUT_TOKS, "output_toks")                        \
    X(F_ARRIVAL, "arrival_time_ns") X(F_INPUT_IDS, "input_tok_ids")                      \
    X(F_OUTPUT_IDS, "output_tok_ids") X(F_SESSION_ID, "session_id")                      \
    X(F_SUB_REQUESTS, "sub_requests") X(F_TOOL, "tool_duration_ns")
enum field {
#define PKV_ENUM(sym, word) sym,
    FIELDS(PKV_ENUM)
#undef PKV_ENUM
    NUM_FIELDS
};
static const char *const words[] = {
#define PKV_WORD(sym, word) [sym] = word,
    FIELDS(PKV_WORD)
#undef PKV_WORD
};
#define BIT(field) PKV_FIELD_BIT(field)
#define OF_REQUEST (BIT(F_INPUT_TOKS) | BIT(F_OUTPUT_TOKS) | BIT(F_INPUT_IDS) | BIT(F_OUTPUT_IDS))
#define OF_LINE (OF_REQUEST | BIT(F_ARRIVAL) | BIT(F_SESSION_ID) | BIT(F_SUB_REQUESTS))
#define OF_PART (OF_REQUEST | BIT(F_TOOL))

/* A session whose line is at hand. */
struct session {
    struct pkv_json parts;       /* within sub_requests, before the next one */
    bool is_open;
    uint32_t num_given, arrival_column;
    int64_t arrival_ns, delay_ns;   /* delay: of the next one */
};

/* What one request says. */
struct found {
    struct pkv_fields fields;
    struct pkv_trace *trace;
    struct pkv_json_value parts;
    uint64_t input, output, arrival_ns, tool_ns;
};

static bool has(const struct found *f, enum field field)
{
    return pkv_fields_has(&f->fields, (int)field);
}

static int read_field(void *ctx, int at, struct pkv_err *err)
{
    struct found *f = ctx;
    struct pkv_json *j = &f->fields.j;
    switch ((enum field)at) {
    case F_INPUT_TOKS:   return pkv_json_u64(j, PKV_MAX_LENGTH_TOKENS, &f->input, err);
    case F_OUTPUT_TOKS:  return pkv_json_u64(j, PKV_MAX_LENGTH_TOKENS, &f->output, err);
    case F_ARRIVAL:      return pkv_json_u64(j, INT64_MAX, &f->arrival_ns, err);
    case F_TOOL:         return pkv_json_u64(j, INT64_MAX, &f->tool_ns, err);
    case F_INPUT_IDS:    return pkv_fields_ids(&f->fields, f->trace, err);
    case F_SESSION_ID:   return pkv_fields_text(&f->fields, &f->trace->session, err);
    case F_SUB_REQUESTS: return pkv_json_value(j, &f->parts, err);
    case F_OUTPUT_IDS:
        f->trace->notes.fields_left_out++;
        return pkv_json_value(j, NULL, err);
    case NUM_FIELDS:     break;
    }
    PKV_UNREACHABLE("a field of the list");
}

static int read_fields(struct found *f, uint32_t allowed, struct pkv_err *err)
{
    f->fields.words = words;
    f->fields.num_words = NUM_FIELDS;
    f->fields.allowed = allowed;
    return pkv_fields_read(&f->fields, read_field, f, err);
}

/* Ids as spans; what they do not cover is the row's own. */
static int add_ids(struct found *f, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    size_t num = t->num_hash_ids < f->input ? t->num_hash_ids : (size_t)f->input;
    for (size_t from = 0, to; from < num; from = to) {
        uint64_t first = t->hash_ids[from];
        to = from + 1;
        while (to < num && t->hash_ids[to] == t->hash_ids[to - 1] + 1 && (uint32_t)t->hash_ids[to])
            to++;
        struct pkv_trace_text of = {PKV_ORIGIN_TOKEN, first >> 32, NULL};
        if (pkv_row_add_span(t, of, (uint32_t)first, (uint32_t)(to - from), err) < 0)
            return -1;
    }
    t->notes.has_prompts |= num > 0;
    return num == f->input ? 0 : pkv_row_add_own(t, 0, (uint32_t)(f->input - num), err);
}

/* Lengths and prompt of a request, wherever it stands. returns a kind of row, or -1. */
static int take_request(struct found *f, uint32_t column, struct pkv_request_spec *spec,
                        struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    if (pkv_fields_need(&f->fields, BIT(F_INPUT_TOKS) | BIT(F_OUTPUT_TOKS), column, err) < 0)
        return -1;
    if (f->input == 0)
        return pkv_fields_fail(&f->fields, F_INPUT_TOKS, err, "is 0; a prompt has at least 1 "
                                                              "token");
    if (has(f, F_INPUT_IDS) && t->num_hash_ids != f->input) {
        if (!t->options.lenient_ids)
            return pkv_fields_fail(&f->fields, F_INPUT_IDS, err, "has %zu ids, but input_toks is "
                                   "%" PRIu64, t->num_hash_ids, f->input);
        t->notes.ids_padded++;
    }
    if (add_ids(f, err) < 0)
        return -1;
    spec->num_output_tokens = (uint32_t)f->output;
    spec->max_tokens = f->output ? (uint32_t)f->output : 1;
    return f->output ? PKV_ROW_GIVEN : PKV_ROW_NO_OUTPUT;
}

/* The next request of the session at hand; the line is put back while there are more. */
static int next_part(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                     struct pkv_err *err)
{
    struct session *s = t->state;
    struct found f = {.trace = t};
    uint32_t column = pkv_json_column(&s->parts);
    f.fields.j = s->parts;
    if (read_fields(&f, OF_PART, err) < 0)
        return -1;
    int kind = take_request(&f, column, &out->spec, err);
    if (kind < 0)
        return -1;
    s->parts = f.fields.j;
    int more = pkv_json_next_item(&s->parts, err);
    if (more < 0)
        return -1;
    out->arrival_column = s->arrival_column;
    out->spec.arrival_ns = s->arrival_ns;
    out->spec.session = t->session.text;
    out->spec.turn = ++s->num_given;
    out->spec.follows = s->num_given > 1;
    out->spec.delay_ns = s->num_given > 1 ? s->delay_ns : 0;
    if (f.tool_ns > (uint64_t)INT64_MAX / 4)
        return pkv_fields_fail(&f.fields, F_TOOL, err, "is longer than 73 years");
    s->delay_ns = (int64_t)f.tool_ns;
    s->is_open = more > 0;
    out->spec.is_last = more == 0;
    if (s->is_open)
        pkv_lines_put_back(&t->lines, text, length);
    return kind;
}

static int open_session(struct found *f, struct session *s, struct pkv_err *err)
{
    struct pkv_json *j = &f->fields.j;
    if (pkv_fields_need(&f->fields, BIT(F_ARRIVAL) | BIT(F_SESSION_ID), 1, err) < 0)
        return -1;
    if (f->fields.seen & OF_REQUEST)
        return pkv_fields_fail(&f->fields, F_SUB_REQUESTS, err, "and the fields of a single "
                               "request exclude each other");
    pkv_json_reopen(&s->parts, j, &f->parts);
    if (pkv_json_enter_array(&s->parts, err) < 0)
        return -1;
    int more = pkv_json_next_item(&s->parts, err);
    if (more == 0)
        return pkv_fields_fail(&f->fields, F_SUB_REQUESTS, err, "is empty; a session has at least "
                                                                "1 request");
    s->num_given = 0;
    s->arrival_ns = (int64_t)f->arrival_ns;
    s->arrival_column = f->fields.column[F_ARRIVAL];
    return more < 0 ? -1 : 0;
}

static int read_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                    struct pkv_err *err)
{
    struct session *s = t->state;
    struct found f = {.trace = t};
    if (!s && !(s = t->state = pkv_alloc(1, sizeof *s, err)))
        return -1;
    if (s->is_open)
        return next_part(t, text, length, out, err);
    pkv_json_init(&f.fields.j, pkv_trace_path(t), t->lines.number, text, length);
    if (read_fields(&f, OF_LINE, err) < 0 || pkv_json_end(&f.fields.j, err) < 0)
        return -1;
    if (has(&f, F_SUB_REQUESTS))
        return open_session(&f, s, err) < 0 ? -1 : next_part(t, text, length, out, err);
    if (pkv_fields_need(&f.fields, BIT(F_ARRIVAL), 1, err) < 0)
        return -1;
    out->spec.arrival_ns = (int64_t)f.arrival_ns;
    out->spec.session = has(&f, F_SESSION_ID) ? t->session.text : NULL;
    out->arrival_column = f.fields.column[F_ARRIVAL];
    return take_request(&f, 1, &out->spec, err);
}

static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    int found = 0;
    (void)reader;
    for (size_t i = 0; i < num_keys; i++) {
        int field = pkv_fields_find(words, NUM_FIELDS, keys[i].text, keys[i].length);
        found += field >= 0 && field != F_SESSION_ID;
    }
    return found;
}

const struct pkv_reader pkv_reader_llmservingsim = {
    .info = {"llmservingsim", "JSON lines: input_toks, output_toks, arrival_time_ns, "
             "input_tok_ids; or sessions with sub_requests",
             "LLMServingSim, workloads/README.md",
             "{\"input_toks\": 9, \"output_toks\": 4, \"arrival_time_ns\": 0}"},
    .has_followers = true, .rate = rate, .read = read_row, .finish = pkv_free,
};
