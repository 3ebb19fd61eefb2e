/*
 * read_tokens.c - rows of a load recorded with token ids, as ranges; and rows that point into a
 * trace for their prompt.
 *
 * Token n is (origin of n >> 32, low 32 bits of n). Generated token j of row i is the id
 * 2^40 + i * 2^20 + j, and prompts may hold such ids: that is how a later turn of a conversation
 * contains the answer of an earlier one. Step n is n ms. An abort before the arrival never happens,
 * as in the recordings.
 */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "trace/fields_private.h"
#include "trace/trace_private.h"

#define FIRST_OUTPUT_ID (UINT64_C(1) << 40)
#define OUTPUTS_PER_ROW (UINT64_C(1) << 20)
#define MAX_STEP ((uint64_t)(INT64_MAX / PKV_NS_PER_MS))

#define FIELDS(X)                                                                     \
    X(F_ID, "id") X(F_ARRIVAL_STEP, "arrival_step") X(F_MAX_TOKENS, "max_tokens")     \
    X(F_PROMPT, "prompt") X(F_TRACE_ROW, "trace_row") X(F_PROMPT_LEN, "prompt_len")   \
    X(F_PRIORITY, "priority") X(F_CACHE_SALT, "cache_salt") X(F_ABORT_STEP, "abort_step")
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
#define COMMON (BIT(F_ID) | BIT(F_ARRIVAL_STEP) | BIT(F_MAX_TOKENS))
#define OPTIONAL (BIT(F_PRIORITY) | BIT(F_CACHE_SALT) | BIT(F_ABORT_STEP))

struct found {
    struct pkv_fields fields;
    struct pkv_trace *trace;
    struct pkv_row *row;
    uint64_t arrival_step, abort_step, max_tokens, trace_row, prompt_len;
};

/* Tokens first .. first + count - 1, split where the upper half of the id changes. */
static int add_range(struct pkv_trace *t, uint64_t first, uint64_t count, struct pkv_err *err)
{
    while (count > 0) {
        uint64_t room = (UINT64_C(1) << 32) - (uint32_t)first;
        uint64_t part = count < room ? count : room;
        struct pkv_trace_text of = {PKV_ORIGIN_TOKEN, first >> 32, NULL};
        if (pkv_row_add_span(t, of, (uint32_t)first, (uint32_t)part, err) < 0)
            return -1;
        first += part;
        count -= part;
    }
    return 0;
}

static int read_range(struct found *f, struct pkv_err *err)
{
    struct pkv_json *j = &f->fields.j;
    uint64_t first, count;
    if (pkv_json_enter_array(j, err) < 0 || pkv_json_need_item(j, "a token id", err) < 0 ||
        pkv_json_u64(j, UINT64_MAX, &first, err) < 0 ||
        pkv_json_need_item(j, "a number of tokens", err) < 0)
        return -1;
    uint32_t column = pkv_json_column(j);
    if (pkv_json_u64(j, PKV_MAX_LENGTH_TOKENS, &count, err) < 0 ||
        pkv_json_need_array_end(j, err) < 0)
        return -1;
    f->prompt_len += count;
    if (count == 0)
        return pkv_json_fail_at(j, column, err, "a range has at least 1 token, not 0");
    if (first > UINT64_MAX - count + 1)
        return pkv_json_fail_at(j, column, err, "this range goes beyond token id %" PRIu64,
                                UINT64_MAX);
    if (f->prompt_len > PKV_MAX_LENGTH_TOKENS)
        return pkv_json_fail_at(j, column, err, "the prompt has more than %" PRIu64 " tokens",
                                PKV_MAX_LENGTH_TOKENS);
    return add_range(f->trace, first, count, err);
}

static int read_prompt(struct found *f, struct pkv_err *err)
{
    struct pkv_json *j = &f->fields.j;
    int more;
    if (pkv_json_enter_array(j, err) < 0)
        return -1;
    while ((more = pkv_json_next_item(j, err)) > 0)
        if (read_range(f, err) < 0)
            return -1;
    if (more == 0 && f->prompt_len == 0)
        return pkv_fields_fail(&f->fields, F_PROMPT, err, "is empty; it has at least 1 token");
    return more;
}

static int read_field(void *ctx, int at, struct pkv_err *err)
{
    struct found *f = ctx;
    struct pkv_json *j = &f->fields.j;
    switch ((enum field)at) {
    case F_ID:           return pkv_fields_text(&f->fields, &f->trace->id, err);
    case F_CACHE_SALT:   return pkv_fields_text(&f->fields, &f->trace->salt, err);
    case F_ARRIVAL_STEP: return pkv_json_u64(j, MAX_STEP, &f->arrival_step, err);
    case F_ABORT_STEP:   return pkv_json_u64(j, MAX_STEP, &f->abort_step, err);
    case F_MAX_TOKENS:   return pkv_json_u64(j, OUTPUTS_PER_ROW, &f->max_tokens, err);
    case F_TRACE_ROW:    return pkv_json_u64(j, UINT64_MAX, &f->trace_row, err);
    case F_PROMPT_LEN:   return pkv_json_u64(j, PKV_MAX_LENGTH_TOKENS, &f->prompt_len, err);
    case F_PRIORITY:     return pkv_json_i64(j, &f->row->spec.priority, err);
    case F_PROMPT:       return read_prompt(f, err);
    case NUM_FIELDS:     break;
    }
    PKV_UNREACHABLE("a field of the list");
}

static int read_fields(struct found *f, struct pkv_err *err)
{
    if (pkv_fields_read(&f->fields, read_field, f, err) < 0)
        return -1;
    return pkv_json_end(&f->fields.j, err);
}

static int check_fields(const struct found *f, uint32_t required, struct pkv_err *err)
{
    if (pkv_fields_need(&f->fields, required, 1, err) < 0)
        return -1;
    if (f->arrival_step == 0)
        return pkv_fields_fail(&f->fields, F_ARRIVAL_STEP, err, "is 0; steps begin at 1");
    if (f->max_tokens == 0)
        return pkv_fields_fail(&f->fields, F_MAX_TOKENS, err, "is 0; a recorded request has at "
                                                              "least 1");
    return 0;
}

/* Everything but the prompt. */
static int read_request(struct found *f, uint32_t own_fields, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    struct pkv_request_spec *spec = &f->row->spec;
    f->fields.words = words;
    f->fields.num_words = NUM_FIELDS;
    f->fields.allowed = COMMON | OPTIONAL | own_fields;
    if (read_fields(f, err) < 0 || check_fields(f, COMMON | own_fields, err) < 0)
        return -1;
    uint64_t first_output = FIRST_OUTPUT_ID + t->num_read * OUTPUTS_PER_ROW;
    spec->content.output_origin = pkv_origin(PKV_ORIGIN_TOKEN, first_output >> 32);
    spec->content.output_first = (uint32_t)first_output;
    spec->id = t->id.text;
    spec->arrival_ns = (int64_t)f->arrival_step * PKV_NS_PER_MS;
    if (pkv_fields_has(&f->fields, F_ABORT_STEP) && f->abort_step >= f->arrival_step)
        spec->abort_ns = (int64_t)f->abort_step * PKV_NS_PER_MS;
    spec->num_output_tokens = spec->max_tokens = (uint32_t)f->max_tokens;
    if (pkv_fields_has(&f->fields, F_CACHE_SALT))
        spec->content.root = pkv_content_root(t->texts.given.salt = t->salt.text, NULL);
    f->row->arrival_column = f->fields.column[F_ARRIVAL_STEP];
    t->notes.has_prompts = true;
    return PKV_ROW_GIVEN;
}

static int read_tokens(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                       struct pkv_err *err)
{
    struct found f = {.trace = t, .row = out};
    pkv_json_init(&f.fields.j, pkv_trace_path(t), t->lines.number, text, length);
    return read_request(&f, BIT(F_PROMPT), err);
}

/* Move on in the other trace to the row that is pointed to. */
static int fetch_prompt(struct found *f, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    struct pkv_source source = pkv_trace_source(t->prompts);
    const char *other = pkv_trace_path(t->prompts);
    if (t->prompts_given > f->trace_row + 1)
        return pkv_fields_fail(&f->fields, F_TRACE_ROW, err, "is %" PRIu64 ", behind row %" PRIu64
                               "; they must not fall", f->trace_row, t->prompts_given - 1);
    while (t->prompts_given <= f->trace_row) {
        int more = source.next(source.ctx, &t->prompts_spec, err);
        if (more < 0)
            return -1;
        if (more == 0)
            return pkv_fields_fail(&f->fields, F_TRACE_ROW, err, "is %" PRIu64 ", but %s has "
                                   "only %" PRIu64 " rows", f->trace_row, other,
                                   t->prompts_given);
        t->prompts_given++;
    }
    if (t->prompts_spec.num_prompt_tokens != f->prompt_len)
        return pkv_fields_fail(&f->fields, F_PROMPT_LEN, err, "is %" PRIu64 ", but row %" PRIu64
                               " of %s has %" PRIu32 " tokens", f->prompt_len, f->trace_row,
                               other, t->prompts_spec.num_prompt_tokens);
    return 0;
}

static int read_joined(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                       struct pkv_err *err)
{
    struct found f = {.trace = t, .row = out};
    pkv_json_init(&f.fields.j, pkv_trace_path(t), t->lines.number, text, length);
    if (read_request(&f, BIT(F_TRACE_ROW) | BIT(F_PROMPT_LEN), err) < 0 ||
        fetch_prompt(&f, err) < 0)
        return -1;
    out->spec.num_prompt_tokens = t->prompts_spec.num_prompt_tokens;
    out->spec.content.prompt = t->prompts_spec.content.prompt;
    out->spec.content.num_prompt_spans = t->prompts_spec.content.num_prompt_spans;
    out->spec.content.num_named_tokens = t->prompts_spec.content.num_named_tokens;
    return PKV_ROW_GIVEN;
}

static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    int found = 0;
    (void)reader;
    for (size_t i = 0; i < num_keys; i++) {
        int field = pkv_fields_find(words, NUM_FIELDS, keys[i].text, keys[i].length);
        found += field == F_ARRIVAL_STEP || field == F_ABORT_STEP;
    }
    return found;
}

const struct pkv_reader pkv_reader_tokens = {
    .info = {"tokens", "JSON lines: id, arrival_step, prompt as ranges of token ids, max_tokens",
             "loads recorded with a real scheduler",
             "{\"id\": \"a\", \"arrival_step\": 1, \"prompt\": [[7, 3]], ...}"},
    .rate = rate, .read = read_tokens,
};
const struct pkv_reader pkv_reader_joined = {
    .info = {"joined", "JSON lines: id, arrival_step, trace_row, prompt_len, max_tokens",
             "loads recorded with a real scheduler; prompts are those of another trace",
             ""},
    .read = read_joined,
};
