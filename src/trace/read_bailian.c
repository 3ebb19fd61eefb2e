/*
 * read_bailian.c - the traces of Qwen on Aliyun Bailian: blocks of 16 tokens, and chats that go on.
 *
 * Times are in seconds. An id stands for the content of 16 tokens, wherever they are; that equal
 * ids mean a shared prefix only behind equal prefixes comes of the chain over all that is before.
 * Turns are tied together by chat_id and parent_chat_id (-1 = the first); the session of a row is
 * the chat it began with. To find it, up to 48 bytes are kept for each chat: the one reader whose memory
 * grows with its rows. A parent that never came (the traces are cut out of longer ones) begins a
 * session of its own.
 *
 * Source: alibaba-edu/qwen-bailian-usagetraces-anon, README.md ("Data Specification").
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id_map.h"
#include "trace/fields_private.h"
#include "trace/trace_private.h"

#define FIELDS(X)                                                                        \
    X(F_CHAT_ID, "chat_id") X(F_PARENT, "parent_chat_id") X(F_TIMESTAMP, "timestamp")    \
    X(F_INPUT_LENGTH, "input_length") X(F_OUTPUT_LENGTH, "output_length")                \
    X(F_TYPE, "type") X(F_TURN, "turn") X(F_HASH_IDS, "hash_ids")
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
#define REQUIRED (BIT(F_CHAT_ID) | BIT(F_TIMESTAMP) | BIT(F_INPUT_LENGTH) | BIT(F_OUTPUT_LENGTH))

struct chats {
    struct pkv_id_map roots;     /* the chat that each began with, plus 1 */
    char session[24], id[24];    /* of the row at hand */
};

struct found {
    struct pkv_fields fields;
    struct pkv_trace *trace;
    int64_t chat, parent, arrival_ns;
    uint64_t input, output, turn;
};

static bool has(const struct found *f, enum field field)
{
    return pkv_fields_has(&f->fields, (int)field);
}

/* The chat that this one began with, which is noted. */
static int note_chat(struct chats *c, const struct found *f, int64_t *out_root,
                     struct pkv_err *err)
{
    *out_root = f->chat;
    if (f->parent >= 0) {
        const uint64_t *root = pkv_id_map_find(&c->roots, (uint64_t)f->parent);
        *out_root = root ? (int64_t)(*root - 1) : f->parent;
    }
    uint64_t *entry = pkv_id_map_at(&c->roots, (uint64_t)f->chat, err);
    if (!entry)
        return -1;
    *entry = (uint64_t)*out_root + 1;
    return 0;
}

static int read_time(struct found *f, struct pkv_err *err)
{
    struct pkv_json_text raw;
    const char *why;
    bool rounded;
    if (pkv_json_number(&f->fields.j, &raw, err) < 0)
        return -1;
    if (pkv_csv_parse_time(raw.text, raw.length, PKV_NS_PER_S, &f->arrival_ns, &rounded,
                           &why) < 0)
        return pkv_fields_fail(&f->fields, F_TIMESTAMP, err, "%s", why);
    f->trace->notes.rows_rounded += rounded ? 1 : 0;
    return 0;
}

static int read_chat(struct found *f, int64_t least, int64_t *out, struct pkv_err *err)
{
    if (pkv_json_i64(&f->fields.j, out, err) < 0)
        return -1;
    if (*out < least || *out == INT64_MAX)
        return pkv_fields_fail(&f->fields, f->fields.at, err, "is %" PRId64 ", not %" PRId64
                               " or more", *out, least);
    return 0;
}

static int read_field(void *ctx, int at, struct pkv_err *err)
{
    struct found *f = ctx;
    struct pkv_json *j = &f->fields.j;
    switch ((enum field)at) {
    case F_CHAT_ID:       return read_chat(f, 0, &f->chat, err);
    case F_PARENT:        return read_chat(f, -1, &f->parent, err);
    case F_TIMESTAMP:     return read_time(f, err);
    case F_INPUT_LENGTH:  return pkv_json_u64(j, PKV_MAX_LENGTH_TOKENS, &f->input, err);
    case F_OUTPUT_LENGTH: return pkv_json_u64(j, PKV_MAX_LENGTH_TOKENS, &f->output, err);
    case F_TURN:          return pkv_json_u64(j, UINT32_MAX, &f->turn, err);
    case F_HASH_IDS:      return pkv_fields_ids(&f->fields, f->trace, err);
    case F_TYPE:
        f->trace->notes.fields_left_out++;
        return pkv_json_value(j, NULL, err);
    case NUM_FIELDS:      break;
    }
    PKV_UNREACHABLE("a field of the list");
}

static int read_fields(struct found *f, struct pkv_err *err)
{
    if (pkv_fields_read(&f->fields, read_field, f, err) < 0 ||
        pkv_json_end(&f->fields.j, err) < 0 || pkv_fields_need(&f->fields, REQUIRED, 1, err) < 0)
        return -1;
    if (f->input == 0)
        return pkv_fields_fail(&f->fields, F_INPUT_LENGTH, err, "is 0; a prompt has at least 1 "
                                                                "token");
    return 0;
}

static int add_prompt(struct found *f, struct pkv_err *err)
{
    struct pkv_trace *t = f->trace;
    uint64_t want = pkv_row_want_ids(t, f->input);
    if (!has(f, F_HASH_IDS))
        return pkv_row_add_own(t, 0, (uint32_t)f->input, err);
    t->notes.has_prompts = true;
    if (t->num_hash_ids != want && !t->options.lenient_ids)
        return pkv_fields_fail(&f->fields, F_HASH_IDS, err, "has %zu ids, but %" PRIu64
                               " tokens in blocks of %" PRIu32 " need %" PRIu64, t->num_hash_ids,
                               f->input, t->options.hash_block_size, want);
    return pkv_row_add_hash_ids(t, f->input, err);
}

static int read_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                    struct pkv_err *err)
{
    struct found f = {
        .fields = {.words = words, .num_words = NUM_FIELDS, .allowed = UINT32_MAX},
        .trace = t, .parent = -1,
    };
    struct chats *c = t->state;
    int64_t root;
    if (!c && !(c = t->state = pkv_alloc(1, sizeof *c, err)))
        return -1;
    pkv_json_init(&f.fields.j, pkv_trace_path(t), t->lines.number, text, length);
    if (read_fields(&f, err) < 0 || note_chat(c, &f, &root, err) < 0 || add_prompt(&f, err) < 0)
        return -1;
    snprintf(c->session, sizeof c->session, "%" PRId64, root);
    snprintf(c->id, sizeof c->id, "%" PRId64, f.chat);
    out->spec.id = c->id;
    out->spec.session = c->session;
    out->spec.turn = (uint32_t)f.turn;
    out->spec.arrival_ns = f.arrival_ns;
    out->spec.num_output_tokens = (uint32_t)f.output;
    out->spec.max_tokens = f.output ? (uint32_t)f.output : 1;
    out->arrival_column = f.fields.column[F_TIMESTAMP];
    return f.output ? PKV_ROW_GIVEN : PKV_ROW_NO_OUTPUT;
}

static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    int found = 0;
    bool has_chat = false;
    (void)reader;
    for (size_t i = 0; i < num_keys; i++) {
        int field = pkv_fields_find(words, NUM_FIELDS, keys[i].text, keys[i].length);
        found += field >= 0;
        has_chat |= field == F_CHAT_ID || field == F_PARENT;
    }
    return has_chat ? found : 0;
}

static void finish(void *state)
{
    struct chats *c = state;
    if (c)
        pkv_id_map_free(&c->roots);
    pkv_free(c);
}

const struct pkv_reader pkv_reader_bailian = {
    .info = {"bailian", "JSON lines: chat_id, parent_chat_id, timestamp (s), hash_ids of 16 tokens",
             "Qwen-Bailian usage traces (ATC'25)",
             "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 0.5, ...}"},
    .hash_block_size = 16,
    .rate = rate, .read = read_row, .finish = finish,
};
