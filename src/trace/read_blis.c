/*
 * read_blis.c - the rows of a BLIS trace, version 2 and later: the CSV beside its YAML header.
 *
 * Columns are found by name; those that later versions have added may be missing. Times are whole
 * microseconds. input_tokens leaves the shared prefix out: the prompt is prefix_length +
 * input_tokens where the row has a prefix_group, else what the server counted, if it did. Rows of
 * one group share the text of the prefix; all else is text of its own.
 *
 * A request comes at send_time_us if that was recorded, else at arrival_time_us. deadline_us is
 * when the client hangs up, so it is an abort here; slo_target_us is the time allowed to the first
 * token, so arrival + target is the deadline. Rounds of a session come at their own times, as BLIS
 * replays them unless told otherwise: round_index and session_id are carried, think times are not.
 *
 * Source: inference-sim (BLIS), sim/workload/tracev2.go and replay.go.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "trace/trace_private.h"

#define NS_PER_US INT64_C(1000)

/* Required ones first: those that the first version had. */
#define COLUMNS(X)                                                                       \
    X(C_REQUEST_ID, "request_id") X(C_TENANT_ID, "tenant_id")                            \
    X(C_SESSION_ID, "session_id") X(C_ROUND_INDEX, "round_index")                        \
    X(C_PREFIX_GROUP, "prefix_group") X(C_INPUT_TOKENS, "input_tokens")                  \
    X(C_OUTPUT_TOKENS, "output_tokens") X(C_ARRIVAL, "arrival_time_us")                  \
    X(C_PREFIX_LENGTH, "prefix_length") X(C_DEADLINE, "deadline_us")                     \
    X(C_SERVER_TOKENS, "server_input_tokens") X(C_SEND, "send_time_us")                  \
    X(C_PRIORITY, "vllm_priority") X(C_SLO_TARGET, "slo_target_us") X(C_ADAPTER, "adapter")
enum column {
#define PKV_ENUM(sym, word) sym,
    COLUMNS(PKV_ENUM)
#undef PKV_ENUM
    NUM_COLUMNS
};
#define NUM_REQUIRED C_PREFIX_LENGTH
static const char *const words[] = {
#define PKV_WORD(sym, word) [sym] = word,
    COLUMNS(PKV_WORD)
#undef PKV_WORD
};

struct blis {
    size_t index[NUM_COLUMNS];   /* PKV_CSV_NONE = missing */
};

/* What a row says in numbers; 0 where it does not. */
struct found {
    uint64_t round, prefix, input, output, server;
    uint64_t arrival_us, send_us, deadline_us, slo_target_us, priority;
};

static int find_columns(struct pkv_trace *t, struct blis *b, struct pkv_err *err)
{
    for (size_t c = 0; c < NUM_COLUMNS; c++) {
        if (pkv_csv_find(t, words[c], &b->index[c], err) < 0)
            return -1;
        if (c < NUM_REQUIRED && b->index[c] == PKV_CSV_NONE)
            return pkv_csv_missing(t, words[c], false, err);
    }
    return 0;
}

static int begin(struct pkv_trace *t, struct pkv_err *err)
{
    struct blis *b = t->state = pkv_alloc(1, sizeof *b, err);
    if (!b)
        return -1;
    t->csv.num_columns = t->csv.num_fields;
    return find_columns(t, b, err);
}

static const struct pkv_field *field_of(const struct pkv_trace *t, enum column column)
{
    const struct blis *b = t->state;
    return b->index[column] == PKV_CSV_NONE ? NULL : &t->csv.fields[b->index[column]];
}

static int bad_field(struct pkv_trace *t, enum column column, const char *why,
                     struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, column);
    int shown = f->length > 60 ? 60 : (int)f->length;
    return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, f->column, "%s '%.*s' %s",
                       words[column], shown, f->text, why);
}

static int read_number(struct pkv_trace *t, enum column column, uint64_t max, uint64_t *out,
                       struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, column);
    const char *why;
    if (f && pkv_parse_u64(f->text, f->length, max, out, &why) < 0)
        return bad_field(t, column, why, err);
    return 0;
}

static int read_numbers(struct pkv_trace *t, struct found *f, struct pkv_err *err)
{
    const uint64_t tokens = PKV_MAX_LENGTH_TOKENS, us = (uint64_t)INT64_MAX / NS_PER_US / 2;
    const struct { enum column column; uint64_t max, *out; } all[] = {
        {C_ROUND_INDEX, UINT32_MAX - 1, &f->round}, {C_PREFIX_LENGTH, tokens, &f->prefix},
        {C_INPUT_TOKENS, tokens, &f->input}, {C_OUTPUT_TOKENS, tokens, &f->output},
        {C_SERVER_TOKENS, tokens, &f->server}, {C_ARRIVAL, us, &f->arrival_us},
        {C_SEND, us, &f->send_us}, {C_DEADLINE, us, &f->deadline_us},
        {C_SLO_TARGET, us, &f->slo_target_us}, {C_PRIORITY, INT64_MAX, &f->priority},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (read_number(t, all[i].column, all[i].max, all[i].out, err) < 0)
            return -1;
    return 0;
}

/* A text into its slot; *out stays NULL where there is none. */
static int read_text(struct pkv_trace *t, enum column column, struct pkv_slot *slot,
                     const char **out, struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, column);
    int given = f ? pkv_slot_set_field(t, slot, f, err) : 0;
    if (given > 0)
        *out = slot->text;
    return given < 0 ? -1 : 0;
}

static int set_times(struct pkv_trace *t, const struct found *f, struct pkv_request_spec *spec,
                     struct pkv_err *err)
{
    uint64_t at_us = f->send_us ? f->send_us : f->arrival_us;
    spec->arrival_ns = (int64_t)at_us * NS_PER_US;
    if (f->deadline_us && f->deadline_us < at_us)
        return bad_field(t, C_DEADLINE, "is before the request comes", err);
    if (f->deadline_us)
        spec->abort_ns = (int64_t)f->deadline_us * NS_PER_US;
    if (f->slo_target_us)
        spec->deadline_ns = spec->arrival_ns + (int64_t)f->slo_target_us * NS_PER_US;
    return 0;
}

static int add_prompt(struct pkv_trace *t, const struct found *f, struct pkv_err *err)
{
    const char *group = NULL;
    if (read_text(t, C_PREFIX_GROUP, &t->scratch, &group, err) < 0)
        return -1;
    uint64_t prefix = group ? f->prefix : 0;
    uint64_t own = !group && f->server ? f->server : f->input;
    if (prefix + own == 0)
        return bad_field(t, C_INPUT_TOKENS, "leaves no prompt; it has at least 1 token", err);
    if (prefix + own > PKV_MAX_LENGTH_TOKENS)
        return bad_field(t, C_INPUT_TOKENS, "and the prefix are too many tokens", err);
    if (prefix > 0) {
        struct pkv_trace_text of = {PKV_ORIGIN_NAME, pkv_hash_name(group, strlen(group)), group};
        t->notes.has_prompts = true;
        if (pkv_row_add_span(t, of, 0, (uint32_t)prefix, err) < 0)
            return -1;
    }
    return own == 0 ? 0 : pkv_row_add_own(t, 0, (uint32_t)own, err);
}

static int read_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                    struct pkv_err *err)
{
    struct pkv_request_spec *spec = &out->spec;
    struct found f = {0};
    if (pkv_row_split(t, text, length, err) < 0 || read_numbers(t, &f, err) < 0 ||
        set_times(t, &f, spec, err) < 0)
        return -1;
    out->arrival_column = field_of(t, f.send_us ? C_SEND : C_ARRIVAL)->column;
    if (f.output == 0)
        return PKV_ROW_NO_OUTPUT;
    if (add_prompt(t, &f, err) < 0 ||
        read_text(t, C_REQUEST_ID, &t->id, &spec->id, err) < 0 ||
        read_text(t, C_TENANT_ID, &t->tenant, &spec->tenant, err) < 0 ||
        read_text(t, C_SESSION_ID, &t->session, &spec->session, err) < 0 ||
        read_text(t, C_ADAPTER, &t->adapter, &t->texts.given.adapter, err) < 0)
        return -1;
    spec->turn = spec->session ? (uint32_t)f.round + 1 : 0;
    spec->priority = (int64_t)f.priority;
    spec->num_output_tokens = spec->max_tokens = (uint32_t)f.output;
    spec->content.root = pkv_content_root(NULL, t->texts.given.adapter);
    return PKV_ROW_GIVEN;
}

static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    int found = 0;
    (void)reader;
    for (size_t c = 0; c < NUM_COLUMNS; c++)
        for (size_t i = 0; i < num_keys; i++)
            found += pkv_csv_is(&keys[i], words[c]);
    return found;
}

const struct pkv_reader pkv_reader_blis = {
    .info = {"blis", "CSV of a BLIS trace (version 2 or later), beside its YAML header",
             "inference-sim (BLIS), sim/workload/tracev2.go",
             "request_id,client_id,tenant_id,slo_class,session_id,..."},
    .has_header = true,
    .rate = rate, .begin = begin, .read = read_row, .finish = pkv_free,
};
