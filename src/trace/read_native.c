/*
 * read_native.c - rows of JSON lines: the library's own format, and those that it contains:
 * Mooncake's, and what Dynamo and AIPerf made of it.
 *
 * A row is scanned once; each field may stand once and must be known. What a prompt is made of is
 * put together at the end, since hash_ids may stand before the length that they are for.
 *
 * Source of hash_ids: the Mooncake traces (FAST'25), one id for each 512 tokens, the last one for
 * what is left. An id here is (id, position in its block), never id * 512 in 64 bits.
 * Source of the other names (created_time, input_tokens, session_id, delay, request_id): the
 * mooncake traces of Dynamo's replay and AIPerf's MooncakeTrace (aiperf, dataset/loader/models.py).
 * A row with a delay follows the former row of its session, and its abort and deadline count from its
 * arrival; one without comes at its time. `last` marks a session's last row.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "trace/fields_private.h"
#include "trace/trace_private.h"

#define FIELDS(X)                                                                    \
    X(F_TIMESTAMP, "timestamp") X(F_INPUT_LENGTH, "input_length")                    \
    X(F_OUTPUT_LENGTH, "output_length") X(F_HASH_IDS, "hash_ids")                    \
    X(F_ARRIVAL_MS, "arrival_ms") X(F_OUTPUT_TOKENS, "output_tokens")                \
    X(F_PROMPT, "prompt") X(F_ID, "id") X(F_MAX_TOKENS, "max_tokens")                \
    X(F_PRIORITY, "priority") X(F_DEADLINE_MS, "deadline_ms") X(F_SALT, "salt")      \
    X(F_CACHE_SALT, "cache_salt") X(F_ADAPTER, "adapter") X(F_TENANT, "tenant")      \
    X(F_ABORT_MS, "abort_ms") X(F_SESSION, "session") X(F_DELAY_MS, "delay_ms")      \
    X(F_TURN, "turn") X(F_LAST, "last") X(F_LOOP, "loop") X(F_N, "n") X(F_BEAM_WIDTH, "beam_width")          \
    X(F_CREATED_TIME, "created_time") X(F_INPUT_TOKENS, "input_tokens")              \
    X(F_SESSION_ID, "session_id") X(F_DELAY, "delay") X(F_REQUEST_ID, "request_id")  \
    X(F_STRICT_PRIORITY, "strict_priority") X(F_POLICY_CLASS, "policy_class")        \
    X(F_OUTPUT_TOKEN_IDS, "output_token_ids")
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

/* What a row says, before it is put together. */
struct found {
    struct pkv_fields fields;
    struct pkv_trace *trace;
    struct pkv_row *row;
    uint64_t input_length, prompt_length, output_length, max_tokens, turn;
    uint64_t own_used;                 /* tokens of the row's own text given to segments */
    uint64_t n, beam_width;
    bool has_segments;
    bool has_list;                     /* output_length is a list, one number a sample */
};

static bool has(const struct found *f, enum field field)
{
    return pkv_fields_has(&f->fields, (int)field);
}

/* Is there a digit other than 0 before the exponent? -0.0 is 0, -0.0000001 is less. */
static bool has_value(const struct pkv_json_text *number)
{
    for (size_t i = 0; i < number->length && (number->text[i] | 0x20) != 'e'; i++)
        if (number->text[i] >= '1' && number->text[i] <= '9')
            return true;
    return false;
}

static bool has_either(const struct found *f, enum field a, enum field b)
{
    return has(f, a) || has(f, b);
}

static int read_ms(struct found *f, enum field field, int64_t *out, struct pkv_err *err)
{
    struct pkv_json_text raw;
    const char *why;
    if (pkv_json_number(&f->fields.j, &raw, err) < 0)
        return -1;
    if (pkv_parse_decimal_ns(raw.text, raw.length, PKV_NS_PER_MS, out, &why) < 0)
        return pkv_fields_fail(&f->fields, (int)field, err, "%s", why);
    if (raw.text[0] == '-' && has_value(&raw))
        return pkv_fields_fail(&f->fields, (int)field, err, "is negative");
    return 0;
}

static int read_length(struct found *f, enum field field, uint64_t *out, struct pkv_err *err)
{
    if (pkv_json_u64(&f->fields.j, PKV_MAX_LENGTH_TOKENS, out, err) < 0)
        return -1;
    if (*out == 0 && (field == F_INPUT_LENGTH || field == F_INPUT_TOKENS || field == F_PROMPT))
        return pkv_fields_fail(&f->fields, (int)field, err, "is 0; a prompt has at least 1 token");
    return 0;
}

/* How many samples, or beams. */
static int read_width(struct found *f, enum field field, uint64_t *out, struct pkv_err *err)
{
    if (pkv_json_u64(&f->fields.j, PKV_MAX_SAMPLES, out, err) < 0)
        return -1;
    if (*out == 0)
        return pkv_fields_fail(&f->fields, (int)field, err, "is 0; a request has at least 1");
    if (field == F_BEAM_WIDTH && *out > 1 && f->trace->options.without_beams)
        return pkv_fields_fail(&f->fields, (int)field, err, "is %" PRIu64 "; beams need "
                               "scheduler.fork: on", *out);
    return 0;
}

/* One length for all samples, or a list of them; the longest one is what max_tokens stands for. */
static int read_outputs(struct found *f, enum field field, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    int more;
    if (pkv_json_peek(&f->fields.j) != PKV_JSON_ARRAY)
        return read_length(f, field, &f->output_length, err);
    f->has_list = true;
    if (pkv_json_enter_array(&f->fields.j, err) < 0)
        return -1;
    while ((more = pkv_json_next_item(&f->fields.j, err)) > 0) {
        uint64_t length;
        if (pkv_json_u64(&f->fields.j, PKV_MAX_LENGTH_TOKENS, &length, err) < 0 ||
            pkv_grow(&t->outputs, &t->outputs_capacity, t->num_outputs + 1, sizeof *t->outputs,
                     err) < 0)
            return -1;
        t->outputs[t->num_outputs++] = (uint32_t)length;
        f->output_length = length > f->output_length ? length : f->output_length;
    }
    return more;
}

/* The text a segment is from: a name's, the row's own for null, or of the row before. */
static int read_segment_text(struct found *f, struct pkv_trace_text *out, struct pkv_err *err)
{
    struct pkv_json_text name;
    struct pkv_json *j = &f->fields.j;
    struct pkv_slot *slot = &f->trace->scratch;
    if (pkv_json_peek(j) == PKV_JSON_NULL) {
        *out = (struct pkv_trace_text){PKV_ORIGIN_OWN, f->trace->num_read, NULL};
        return pkv_json_value(j, NULL, err);
    }
    if (pkv_json_string(j, &name, err) < 0)
        return -1;
    if (name.length == 0)
        return pkv_json_fail_at(j, name.column, err, "a segment's name is empty");
    if (pkv_json_text_is(&name, "@prev")) {
        *out = (struct pkv_trace_text){PKV_ORIGIN_PREV, 0, NULL};
        f->row->prev_column = name.column;
        return 0;
    }
    if (pkv_slot_set(slot, &name, err) < 0)
        return -1;
    *out = (struct pkv_trace_text){PKV_ORIGIN_NAME, pkv_hash_name(slot->text, strlen(slot->text)),
                                   slot->text};
    return 0;
}

/* ["g1", 32] is the first 32 tokens of the text g1; [null, 1] goes on in the row's own text. */
static int read_segment(struct found *f, struct pkv_err *err)
{
    struct pkv_json *j = &f->fields.j;
    struct pkv_trace_text of = {0};
    uint64_t count = 0;
    if (pkv_json_enter_array(j, err) < 0 || pkv_json_need_item(j, "a name or null", err) < 0 ||
        read_segment_text(f, &of, err) < 0 ||
        pkv_json_need_item(j, "a number of tokens", err) < 0)
        return -1;
    uint32_t column = pkv_json_column(j);
    if (pkv_json_u64(j, PKV_MAX_LENGTH_TOKENS, &count, err) < 0 ||
        pkv_json_need_array_end(j, err) < 0)
        return -1;
    f->prompt_length += count;
    if (count == 0)
        return pkv_json_fail_at(j, column, err, "a segment has at least 1 token, not 0");
    if (f->prompt_length > PKV_MAX_LENGTH_TOKENS)
        return pkv_json_fail_at(j, column, err, "the segments have more than %" PRIu64 " tokens",
                                PKV_MAX_LENGTH_TOKENS);
    uint32_t first = of.kind == PKV_ORIGIN_OWN ? (uint32_t)f->own_used : 0;
    f->own_used += of.kind == PKV_ORIGIN_OWN ? count : 0;
    return pkv_row_add_span(f->trace, of, first, (uint32_t)count, err);
}

static int read_prompt(struct found *f, struct pkv_err *err)
{
    int more;
    if (pkv_json_peek(&f->fields.j) == PKV_JSON_NUMBER)
        return read_length(f, F_PROMPT, &f->prompt_length, err);
    if (pkv_json_peek(&f->fields.j) != PKV_JSON_ARRAY)
        return pkv_fields_fail(&f->fields, F_PROMPT, err, "is neither a whole number of tokens "
                               "nor a list of segments");
    f->has_segments = true;
    if (pkv_json_enter_array(&f->fields.j, err) < 0)
        return -1;
    while ((more = pkv_json_next_item(&f->fields.j, err)) > 0)
        if (read_segment(f, err) < 0)
            return -1;
    if (more == 0 && f->prompt_length == 0)
        return pkv_fields_fail(&f->fields, F_PROMPT, err, "is 0; a prompt has at least 1 token");
    return more;
}

static int read_last(struct found *f, struct pkv_err *err)
{
    struct pkv_json_value value;
    if (pkv_json_value(&f->fields.j, &value, err) < 0)
        return -1;
    f->row->spec.is_last = pkv_json_text_is(&value.raw, "true");
    if (f->row->spec.is_last || pkv_json_text_is(&value.raw, "false"))
        return 0;
    return pkv_fields_fail(&f->fields, F_LAST, err, "is neither true nor false");
}

static int read_field(void *ctx, int at, struct pkv_err *err)
{
    struct found *f = ctx;
    enum field field = (enum field)at;
    struct pkv_trace *t = f->trace;
    struct pkv_request_spec *spec = &f->row->spec;
    switch (field) {
    case F_TIMESTAMP:
    case F_CREATED_TIME:
    case F_ARRIVAL_MS:    return read_ms(f, field, &spec->arrival_ns, err);
    case F_ABORT_MS:      return read_ms(f, field, &spec->abort_ns, err);
    case F_DEADLINE_MS:   return read_ms(f, field, &spec->deadline_ns, err);
    case F_INPUT_TOKENS:
    case F_INPUT_LENGTH:  return read_length(f, field, &f->input_length, err);
    case F_OUTPUT_LENGTH:
    case F_OUTPUT_TOKENS: return read_outputs(f, field, err);
    case F_N:             return read_width(f, field, &f->n, err);
    case F_BEAM_WIDTH:    return read_width(f, field, &f->beam_width, err);
    case F_MAX_TOKENS:    return read_length(f, field, &f->max_tokens, err);
    case F_PROMPT:        return read_prompt(f, err);
    case F_HASH_IDS:      return pkv_fields_ids(&f->fields, t, err);
    case F_PRIORITY:      return pkv_json_i64(&f->fields.j, &spec->priority, err);
    case F_REQUEST_ID:
    case F_ID:            return pkv_fields_text(&f->fields, &t->id, err);
    case F_TENANT:        return pkv_fields_text(&f->fields, &t->tenant, err);
    case F_ADAPTER:       return pkv_fields_text(&f->fields, &t->adapter, err);
    case F_SALT:
    case F_CACHE_SALT:    return pkv_fields_text(&f->fields, &t->salt, err);
    case F_SESSION:
    case F_SESSION_ID:    return pkv_fields_text(&f->fields, &t->session, err);
    case F_DELAY_MS:
    case F_DELAY:         return read_ms(f, field, &spec->delay_ns, err);
    case F_LAST:          return read_last(f, err);
    case F_LOOP:          return pkv_fields_text(&f->fields, &t->loop, err);
    case F_TURN:          return pkv_json_u64(&f->fields.j, UINT32_MAX, &f->turn, err);
    case F_STRICT_PRIORITY:
    case F_POLICY_CLASS:
    case F_OUTPUT_TOKEN_IDS:
        t->notes.fields_left_out++;
        return pkv_json_value(&f->fields.j, NULL, err);
        return pkv_fields_fail(&f->fields, (int)field, err, "is not supported by this version");
    case NUM_FIELDS:      break;
    }
    PKV_UNREACHABLE("a field of the list");
}

static int read_fields(struct found *f, struct pkv_err *err)
{
    if (pkv_fields_read(&f->fields, read_field, f, err) < 0)
        return -1;
    return pkv_json_end(&f->fields.j, err);
}

/* Names of one thing, the first of them being ours: at most one of them. */
static const enum field same[][3] = {
    {F_TIMESTAMP, F_ARRIVAL_MS, F_CREATED_TIME},
    {F_OUTPUT_LENGTH, F_OUTPUT_TOKENS, F_OUTPUT_LENGTH},
    {F_INPUT_LENGTH, F_INPUT_TOKENS, F_INPUT_LENGTH},
    {F_SALT, F_CACHE_SALT, F_SALT},
    {F_SESSION, F_SESSION_ID, F_SESSION},
    {F_DELAY_MS, F_DELAY, F_DELAY_MS},
    {F_ID, F_REQUEST_ID, F_ID},
};

static int check_names(const struct found *f, struct pkv_err *err)
{
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        enum field given = NUM_FIELDS;
        for (size_t k = 0; k < 3; k++) {
            if (!has(f, same[i][k]) || same[i][k] == given)
                continue;
            if (given != NUM_FIELDS)
                return pkv_fields_fail(&f->fields, (int)same[i][k], err, "says the same as %s; "
                                       "give one", words[given]);
            given = same[i][k];
        }
    }
    return 0;
}

static bool has_time(const struct found *f)
{
    return has_either(f, F_TIMESTAMP, F_ARRIVAL_MS) || has(f, F_CREATED_TIME);
}

static bool has_length(const struct found *f)
{
    return has_either(f, F_INPUT_LENGTH, F_INPUT_TOKENS);
}

static int check_required(const struct found *f, struct pkv_err *err)
{
    if (!has_time(f) && !has_either(f, F_DELAY_MS, F_DELAY))
        return pkv_json_fail_at(&f->fields.j, 1, err, "this row has no timestamp");
    if (!has_either(f, F_OUTPUT_LENGTH, F_OUTPUT_TOKENS))
        return pkv_json_fail_at(&f->fields.j, 1, err, "this row has no output_length");
    if (!has(f, F_PROMPT) && !has_length(f))
        return pkv_json_fail_at(&f->fields.j, 1, err, "this row has neither input_length nor "
                                                      "prompt");
    return 0;
}

static int check_session(const struct found *f, struct pkv_err *err)
{
    if (has_either(f, F_SESSION, F_SESSION_ID))
        return 0;
    if (has_either(f, F_DELAY_MS, F_DELAY))
        return pkv_fields_fail(&f->fields, has(f, F_DELAY) ? F_DELAY : F_DELAY_MS, err,
                               "needs a session: it is the time after the session's former row");
    if (has(f, F_LAST))
        return pkv_fields_fail(&f->fields, F_LAST, err, "needs a session: it tells its last row");
    if (has(f, F_LOOP))
        return pkv_fields_fail(&f->fields, F_LOOP, err, "needs a session: when one is over the next one "
                               "of the loop begins");
    if (f->row->prev_column)
        return pkv_json_fail_at(&f->fields.j, f->row->prev_column, err, "segment '@prev' needs a "
                                "session: it is the text of the session's former row");
    return 0;
}

static int check_samples(struct found *f, struct pkv_err *err)
{
    enum field outputs = has(f, F_OUTPUT_LENGTH) ? F_OUTPUT_LENGTH : F_OUTPUT_TOKENS;
    uint64_t num = has(f, F_N) ? f->n : 1;
    if ((f->n > 1 || f->beam_width > 1) && has_either(f, F_SESSION, F_SESSION_ID))
        return pkv_fields_fail(&f->fields, f->n > 1 ? F_N : F_BEAM_WIDTH, err, "goes without a session: "
                               "the next turn would follow one of several answers");
    if (has(f, F_N) && has(f, F_BEAM_WIDTH))
        return pkv_fields_fail(&f->fields, F_BEAM_WIDTH, err, "and n exclude each other");
    if (f->has_list && f->trace->num_outputs != num)
        return pkv_fields_fail(&f->fields, (int)outputs, err, "has %zu lengths, but n is %" PRIu64,
                               f->trace->num_outputs, num);
    return 0;
}

static int check_together(struct found *f, struct pkv_err *err)
{
    const struct pkv_request_spec *spec = &f->row->spec;
    if (check_names(f, err) < 0 || check_required(f, err) < 0 || check_session(f, err) < 0 ||
        check_samples(f, err) < 0)
        return -1;
    if (has(f, F_PROMPT) && has_length(f) && f->prompt_length != f->input_length)
        return pkv_fields_fail(&f->fields, F_PROMPT, err, "has %" PRIu64 " tokens, but "
                               "input_length is %" PRIu64, f->prompt_length, f->input_length);
    if (f->has_segments && has(f, F_HASH_IDS))
        return pkv_fields_fail(&f->fields, F_HASH_IDS, err, "and segments of a prompt exclude "
                                                            "each other");
    if (has(f, F_ABORT_MS) && !has_either(f, F_DELAY_MS, F_DELAY) &&
        spec->abort_ns < spec->arrival_ns)
        return pkv_fields_fail(&f->fields, F_ABORT_MS, err, "is %" PRId64 " ns before the arrival",
                               spec->arrival_ns - spec->abort_ns);
    return 0;
}

/* The prompt as blocks of hash ids; mended under lenient_ids where their number is wrong. */
static int add_hash_ids(struct found *f, uint64_t length, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    uint64_t want = pkv_row_want_ids(t, length);
    if (t->num_hash_ids != want && !t->options.lenient_ids)
        return pkv_fields_fail(&f->fields, F_HASH_IDS, err, "has %zu ids, but %" PRIu64
                               " tokens in blocks of %" PRIu32 " need %" PRIu64, t->num_hash_ids,
                               length, t->options.hash_block_size, want);
    return pkv_row_add_hash_ids(t, length, err);
}

static int add_prompt(struct found *f, struct pkv_err *err)
{
    uint64_t length = has(f, F_PROMPT) ? f->prompt_length : f->input_length;
    f->trace->notes.has_prompts |= f->has_segments || has(f, F_HASH_IDS);
    if (f->has_segments)
        return 0;
    if (has(f, F_HASH_IDS))
        return add_hash_ids(f, length, err);
    return pkv_row_add_own(f->trace, 0, (uint32_t)length, err);
}

/* A row that follows another may have no time; its place is then that of the row above. */
static void set_session(struct found *f)
{
    struct pkv_trace *t = f->trace;
    struct pkv_request_spec *spec = &f->row->spec;
    spec->session = has_either(f, F_SESSION, F_SESSION_ID) ? t->session.text : NULL;
    spec->loop = has(f, F_LOOP) ? t->loop.text : NULL;
    spec->turn = (uint32_t)f->turn;
    spec->follows = has_either(f, F_DELAY_MS, F_DELAY);
    if (!has_time(f))
        spec->arrival_ns = t->last_arrival_ns == INT64_MIN ? 0 : t->last_arrival_ns;
    enum field place = has(f, F_TIMESTAMP) ? F_TIMESTAMP : has(f, F_ARRIVAL_MS) ? F_ARRIVAL_MS
                     : has(f, F_CREATED_TIME) ? F_CREATED_TIME
                     : has(f, F_DELAY_MS) ? F_DELAY_MS : F_DELAY;
    f->row->arrival_column = f->fields.column[place];
}

static void set_texts(struct found *f)
{
    struct pkv_trace *t = f->trace;
    const char *salt = has_either(f, F_SALT, F_CACHE_SALT) ? t->salt.text : NULL;
    const char *adapter = has(f, F_ADAPTER) ? t->adapter.text : NULL;
    f->row->spec.content.root = pkv_content_root(salt, adapter);
    t->texts.given.salt = salt;
    t->texts.given.adapter = adapter;
}

static int read_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                    struct pkv_err *err)
{
    struct found f = {
        .fields = {.words = words, .num_words = NUM_FIELDS, .allowed = UINT32_MAX},
        .trace = t, .row = out,
    };
    struct pkv_request_spec *spec = &out->spec;
    pkv_json_init(&f.fields.j, pkv_trace_path(t), t->lines.number, text, length);
    if (read_fields(&f, err) < 0 || check_together(&f, err) < 0 || add_prompt(&f, err) < 0)
        return -1;
    uint64_t max_tokens = has(&f, F_MAX_TOKENS) ? f.max_tokens : f.output_length;
    spec->max_tokens = max_tokens ? (uint32_t)max_tokens : 1;
    spec->num_output_tokens = (uint32_t)f.output_length;
    spec->is_beam_search = f.beam_width > 1;
    spec->num_samples = (uint32_t)(f.beam_width > 1 ? f.beam_width : f.n);
    spec->sample_output_tokens = f.has_list && f.n > 1 ? t->outputs : NULL;
    spec->id = has_either(&f, F_ID, F_REQUEST_ID) ? t->id.text : NULL;
    spec->tenant = has(&f, F_TENANT) ? t->tenant.text : NULL;
    set_session(&f);
    set_texts(&f);
    return PKV_ROW_GIVEN;
}

/* Fields that only these formats have; `id`, `prompt` and the like are others' too. */
static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    static const enum field telling[] = {F_TIMESTAMP, F_ARRIVAL_MS, F_INPUT_LENGTH, F_HASH_IDS};
    int found = 0, others = 0;
    bool has_ids = false;
    for (size_t i = 0; i < num_keys; i++) {
        int field = pkv_fields_find(words, NUM_FIELDS, keys[i].text, keys[i].length);
        for (size_t k = 0; k < sizeof telling / sizeof *telling; k++)
            found += field == (int)telling[k];
        has_ids |= field == F_HASH_IDS;
        others += field >= F_CREATED_TIME;
    }
    if (reader == &pkv_reader_dynamo)
        return others > 0 ? found + others : 0;
    return has_ids == (reader == &pkv_reader_mooncake) ? found : 0;
}

const struct pkv_reader pkv_reader_native = {
    .info = {"native", "JSON lines: timestamp (ms), input_length or prompt, output_length, ...",
             "ours; a superset of mooncake",
             "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 4}"},
    .has_followers = true, .rate = rate, .read = read_row,
};
const struct pkv_reader pkv_reader_mooncake = {
    .info = {"mooncake", "JSON lines with hash_ids, one for each 512 tokens of the prompt",
             "Mooncake traces (FAST'25)", "{\"timestamp\": 0, ..., \"hash_ids\": [1]}"},
    .has_followers = true, .rate = rate, .read = read_row,
};
const struct pkv_reader pkv_reader_dynamo = {
    .info = {"dynamo", "Mooncake rows with input_tokens, created_time, session_id, delay, ...",
             "Dynamo's replay; AIPerf",
             "{\"created_time\": 0, \"input_tokens\": 9, ...}"},
    .has_followers = true, .rate = rate, .read = read_row,
};
