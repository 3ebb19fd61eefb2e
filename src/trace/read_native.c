/*
 * read_native.c - rows of JSON lines: the library's own format, and Mooncake's, which it contains.
 *
 * A row is scanned once; each field may stand once and must be known. What a prompt is made of is
 * put together at the end, since hash_ids may stand before the length that they are for.
 *
 * Source of hash_ids: the Mooncake traces (FAST'25), one id for each 512 tokens, the last one for
 * what is left. An id here is (id, position in its block), never id * 512 in 64 bits.
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
    X(F_N, "n")
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
    uint64_t input_length, prompt_length, output_length, max_tokens;
    uint64_t own_used;                 /* tokens of the row's own text given to segments */
    bool has_segments;
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
    if (*out == 0 && (field == F_INPUT_LENGTH || field == F_PROMPT))
        return pkv_fields_fail(&f->fields, (int)field, err, "is 0; a prompt has at least 1 token");
    return 0;
}

static int read_hash_ids(struct found *f, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    int more = 1;
    if (pkv_json_enter_array(&f->fields.j, err) < 0)
        return -1;
    while (more > 0) {
        size_t num;
        if (pkv_grow(&t->hash_ids, &t->hash_ids_capacity, t->num_hash_ids + 1,
                     sizeof *t->hash_ids, err) < 0)
            return -1;
        more = pkv_json_u64_items(&f->fields.j, t->hash_ids + t->num_hash_ids,
                                  t->hash_ids_capacity - t->num_hash_ids, &num, err);
        t->num_hash_ids += num;
    }
    return more;
}

/* The text a segment is from: a name's, or the row's own for null. */
static int read_segment_text(struct found *f, uint64_t *out_origin, bool *out_own,
                             struct pkv_err *err)
{
    struct pkv_json_text name;
    struct pkv_json *j = &f->fields.j;
    struct pkv_slot *slot = &f->trace->scratch;
    *out_own = pkv_json_peek(j) == PKV_JSON_NULL;
    if (*out_own) {
        *out_origin = pkv_origin(PKV_ORIGIN_OWN, f->trace->num_read);
        return pkv_json_value(j, NULL, err);
    }
    if (pkv_json_string(j, &name, err) < 0)
        return -1;
    if (name.length == 0)
        return pkv_json_fail_at(j, name.column, err, "a segment's name is empty");
    if (pkv_json_text_is(&name, "@prev"))
        return pkv_json_fail_at(j, name.column, err, "segment '@prev' is not supported by this "
                                                     "version");
    if (pkv_slot_set(slot, &name, err) < 0)
        return -1;
    *out_origin = pkv_origin(PKV_ORIGIN_NAME, pkv_hash_name(slot->text, strlen(slot->text)));
    return 0;
}

/* ["g1", 32] is the first 32 tokens of the text g1; [null, 1] goes on in the row's own text. */
static int read_segment(struct found *f, struct pkv_err *err)
{
    struct pkv_json *j = &f->fields.j;
    uint64_t origin = 0, count = 0;
    bool own;
    if (pkv_json_enter_array(j, err) < 0 || pkv_json_need_item(j, "a name or null", err) < 0 ||
        read_segment_text(f, &origin, &own, err) < 0 ||
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
    uint32_t first = own ? (uint32_t)f->own_used : 0;
    f->own_used += own ? count : 0;
    return pkv_row_add_span(f->trace, origin, first, (uint32_t)count, err);
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

static int read_field(struct found *f, enum field field, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    struct pkv_request_spec *spec = &f->row->spec;
    switch (field) {
    case F_TIMESTAMP:
    case F_ARRIVAL_MS:    return read_ms(f, field, &spec->arrival_ns, err);
    case F_ABORT_MS:      return read_ms(f, field, &spec->abort_ns, err);
    case F_DEADLINE_MS:   return read_ms(f, field, &spec->deadline_ns, err);
    case F_INPUT_LENGTH:  return read_length(f, field, &f->input_length, err);
    case F_OUTPUT_LENGTH:
    case F_OUTPUT_TOKENS: return read_length(f, field, &f->output_length, err);
    case F_MAX_TOKENS:    return read_length(f, field, &f->max_tokens, err);
    case F_PROMPT:        return read_prompt(f, err);
    case F_HASH_IDS:      return read_hash_ids(f, err);
    case F_PRIORITY:      return pkv_json_i64(&f->fields.j, &spec->priority, err);
    case F_ID:            return pkv_fields_text(&f->fields, &t->id, err);
    case F_TENANT:        return pkv_fields_text(&f->fields, &t->tenant, err);
    case F_ADAPTER:       return pkv_fields_text(&f->fields, &t->adapter, err);
    case F_SALT:
    case F_CACHE_SALT:    return pkv_fields_text(&f->fields, &t->salt, err);
    case F_SESSION:
    case F_DELAY_MS:
    case F_N:
        return pkv_fields_fail(&f->fields, (int)field, err, "is not supported by this version");
    case NUM_FIELDS:      break;
    }
    PKV_UNREACHABLE("a field of the list");
}

static int read_fields(struct found *f, struct pkv_err *err)
{
    int more;
    if (pkv_json_enter_object(&f->fields.j, err) < 0)
        return -1;
    while ((more = pkv_fields_next(&f->fields, err)) > 0)
        if (read_field(f, (enum field)f->fields.at, err) < 0)
            return -1;
    return more < 0 ? -1 : pkv_json_end(&f->fields.j, err);
}

/* Two names of one thing: exactly one of them, or at most one. */
static int one_of(const struct found *f, enum field a, enum field b, bool required,
                  struct pkv_err *err)
{
    if (has(f, a) && has(f, b))
        return pkv_fields_fail(&f->fields, (int)b, err, "says the same as %s; give one", words[a]);
    if (required && !has(f, a) && !has(f, b))
        return pkv_json_fail_at(&f->fields.j, 1, err, "this row has no %s", words[a]);
    return 0;
}

static int check_together(struct found *f, struct pkv_err *err)
{
    const struct pkv_request_spec *spec = &f->row->spec;
    if (one_of(f, F_TIMESTAMP, F_ARRIVAL_MS, true, err) < 0 ||
        one_of(f, F_OUTPUT_LENGTH, F_OUTPUT_TOKENS, true, err) < 0 ||
        one_of(f, F_SALT, F_CACHE_SALT, false, err) < 0)
        return -1;
    if (!has(f, F_PROMPT) && !has(f, F_INPUT_LENGTH))
        return pkv_json_fail_at(&f->fields.j, 1, err, "this row has neither input_length nor "
                                                      "prompt");
    if (has(f, F_PROMPT) && has(f, F_INPUT_LENGTH) && f->prompt_length != f->input_length)
        return pkv_fields_fail(&f->fields, F_PROMPT, err, "has %" PRIu64 " tokens, but "
                               "input_length is %" PRIu64, f->prompt_length, f->input_length);
    if (f->has_segments && has(f, F_HASH_IDS))
        return pkv_fields_fail(&f->fields, F_HASH_IDS, err, "and segments of a prompt exclude "
                                                            "each other");
    if (has(f, F_ABORT_MS) && spec->abort_ns < spec->arrival_ns)
        return pkv_fields_fail(&f->fields, F_ABORT_MS, err, "is %" PRId64 " ns before the arrival",
                               spec->arrival_ns - spec->abort_ns);
    return 0;
}

/* The prompt as blocks of hash ids; mended under lenient_ids where their number is wrong. */
static int add_hash_ids(struct found *f, uint64_t length, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    uint64_t block = t->options.hash_block_size;
    uint64_t want = (length + block - 1) / block;
    if (t->num_hash_ids != want) {
        if (!t->options.lenient_ids)
            return pkv_fields_fail(&f->fields, F_HASH_IDS, err, "has %zu ids, but %" PRIu64
                                   " tokens in blocks of %" PRIu64 " need %" PRIu64,
                                   t->num_hash_ids, length, block, want);
        t->notes.ids_padded++;
    }
    if (pkv_grow(&t->spans, &t->spans_capacity, t->num_hash_ids + 1, sizeof *t->spans, err) < 0)
        return -1;
    uint64_t left = length;
    for (size_t i = 0; i < t->num_hash_ids && left > 0; i++) {
        uint64_t count = left < block ? left : block;
        t->spans[t->num_spans++] = (struct pkv_span){
            pkv_origin(PKV_ORIGIN_HASH_ID, t->hash_ids[i]), 0, (uint32_t)count,
        };
        left -= count;
    }
    if (left == 0)
        return 0;
    return pkv_row_add_span(t, pkv_origin(PKV_ORIGIN_OWN, t->num_read), 0, (uint32_t)left, err);
}

static int add_prompt(struct found *f, struct pkv_err *err)
{
    uint64_t length = has(f, F_PROMPT) ? f->prompt_length : f->input_length;
    f->trace->notes.has_prompts |= f->has_segments || has(f, F_HASH_IDS);
    if (f->has_segments)
        return 0;
    if (has(f, F_HASH_IDS))
        return add_hash_ids(f, length, err);
    return pkv_row_add_span(f->trace, pkv_origin(PKV_ORIGIN_OWN, f->trace->num_read), 0,
                            (uint32_t)length, err);
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
    spec->id = has(&f, F_ID) ? t->id.text : NULL;
    spec->tenant = has(&f, F_TENANT) ? t->tenant.text : NULL;
    spec->content.root =
        pkv_content_root(has(&f, F_SALT) || has(&f, F_CACHE_SALT) ? t->salt.text : NULL,
                         has(&f, F_ADAPTER) ? t->adapter.text : NULL);
    out->arrival_column = f.fields.column[has(&f, F_TIMESTAMP) ? F_TIMESTAMP : F_ARRIVAL_MS];
    return PKV_ROW_GIVEN;
}

/* Fields that only this format has; `id`, `prompt` and the like are others' too. */
static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    static const enum field telling[] = {F_TIMESTAMP, F_ARRIVAL_MS, F_INPUT_LENGTH, F_HASH_IDS};
    int found = 0;
    bool has_ids = false;
    for (size_t i = 0; i < num_keys; i++) {
        int field = pkv_fields_find(words, NUM_FIELDS, keys[i].text, keys[i].length);
        for (size_t k = 0; k < sizeof telling / sizeof *telling; k++)
            found += field == (int)telling[k];
        has_ids |= field == F_HASH_IDS;
    }
    return has_ids == (reader == &pkv_reader_mooncake) ? found : 0;
}

const struct pkv_reader pkv_reader_native = {
    .info = {"native", "JSON lines: timestamp (ms), input_length or prompt, output_length, ...",
             "ours; a superset of mooncake",
             "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 4}"},
    .rate = rate, .read = read_row,
};
const struct pkv_reader pkv_reader_mooncake = {
    .info = {"mooncake", "JSON lines with hash_ids, one for each 512 tokens of the prompt",
             "Mooncake traces (FAST'25)", "{\"timestamp\": 0, ..., \"hash_ids\": [1]}"},
    .rate = rate, .read = read_row,
};
