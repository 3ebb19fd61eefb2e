/*
 * json_scan.c - the scanner: one pass, one character of look-ahead, no state but a place and
 * whether a comma is due.
 */
#include "trace/json_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

const char *pkv_json_kind_name(enum pkv_json_kind kind)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { PKV_JSON_KINDS(PKV_NAME) };
#undef PKV_NAME
    PKV_ASSERT((unsigned)kind < PKV_JSON_KIND_COUNT);
    return names[kind];
}

void pkv_json_init(struct pkv_json *j, const char *path, uint64_t line, const char *text,
                   size_t length)
{
    *j = (struct pkv_json){
        .path = path, .line = line, .begin = text, .at = text, .end = text + length,
    };
}

uint32_t pkv_json_column(const struct pkv_json *j)
{
    size_t column = (size_t)(j->at - j->begin) + 1;
    return column < UINT32_MAX ? (uint32_t)column : UINT32_MAX;
}

static int fail_va(const struct pkv_json *j, uint32_t column, struct pkv_err *err,
                   const char *fmt, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof text, fmt, args);
    return pkv_fail_at(err, j->path, j->line, column, "%s", text);
}

int pkv_json_fail(const struct pkv_json *j, struct pkv_err *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fail_va(j, pkv_json_column(j), err, fmt, args);
    va_end(args);
    return -1;
}

int pkv_json_fail_at(const struct pkv_json *j, uint32_t column, struct pkv_err *err,
                     const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fail_va(j, column, err, fmt, args);
    va_end(args);
    return -1;
}

static inline void skip_space(struct pkv_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\r' || *j->at == '\n'))
        j->at++;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

enum pkv_json_kind pkv_json_peek(struct pkv_json *j)
{
    skip_space(j);
    if (j->at == j->end)
        return PKV_JSON_NONE;
    switch (*j->at) {
    case '{': return PKV_JSON_OBJECT;
    case '[': return PKV_JSON_ARRAY;
    case '"': return PKV_JSON_STRING;
    case 't': return PKV_JSON_TRUE;
    case 'f': return PKV_JSON_FALSE;
    case 'n': return PKV_JSON_NULL;
    default:  return *j->at == '-' || is_digit(*j->at) ? PKV_JSON_NUMBER : PKV_JSON_NONE;
    }
}

/* What stands here instead of what was wanted. */
static int unexpected(struct pkv_json *j, struct pkv_err *err, const char *wanted)
{
    if (j->at >= j->end)
        return pkv_json_fail(j, err, "the row ends here where %s should stand", wanted);
    enum pkv_json_kind kind = pkv_json_peek(j);
    if (kind != PKV_JSON_NONE)
        return pkv_json_fail(j, err, "%s should stand here, not %s", wanted,
                             pkv_json_kind_name(kind));
    unsigned char c = (unsigned char)*j->at;
    if (c > ' ' && c < 0x7f)
        return pkv_json_fail(j, err, "%s should stand here, not '%c'", wanted, c);
    return pkv_json_fail(j, err, "%s should stand here, not byte 0x%02x", wanted, c);
}

static int enter(struct pkv_json *j, char open, const char *wanted, struct pkv_err *err)
{
    skip_space(j);
    if (j->at == j->end || *j->at != open)
        return unexpected(j, err, wanted);
    j->at++;
    j->first = true;
    return 0;
}

int pkv_json_enter_object(struct pkv_json *j, struct pkv_err *err)
{
    return enter(j, '{', "an object", err);
}

int pkv_json_enter_array(struct pkv_json *j, struct pkv_err *err)
{
    return enter(j, '[', "a list", err);
}

/* On to the next item or past the closing bracket. */
static inline int next(struct pkv_json *j, char close, struct pkv_err *err)
{
    bool first = j->first;
    skip_space(j);
    j->first = false;
    if (j->at < j->end && *j->at == close) {
        j->at++;
        return 0;
    }
    if (first)
        return 1;
    if (j->at == j->end || *j->at != ',')
        return unexpected(j, err, close == '}' ? "',' or '}'" : "',' or ']'");
    j->at++;
    skip_space(j);
    return 1;
}

int pkv_json_next_item(struct pkv_json *j, struct pkv_err *err)
{
    return next(j, ']', err);
}

int pkv_json_need_item(struct pkv_json *j, const char *wanted, struct pkv_err *err)
{
    int more = pkv_json_next_item(j, err);
    if (more == 0)
        return pkv_json_fail(j, err, "the list ends before %s", wanted);
    return more < 0 ? -1 : 0;
}

int pkv_json_need_array_end(struct pkv_json *j, struct pkv_err *err)
{
    int more = pkv_json_next_item(j, err);
    if (more > 0)
        return pkv_json_fail(j, err, "the list should end here with ']'");
    return more;
}

int pkv_json_next_member(struct pkv_json *j, struct pkv_json_text *out_key, struct pkv_err *err)
{
    int more = next(j, '}', err);
    if (more <= 0)
        return more;
    if (pkv_json_peek(j) != PKV_JSON_STRING)
        return unexpected(j, err, "a field name in quotes");
    if (pkv_json_string(j, out_key, err) < 0)
        return -1;
    skip_space(j);
    if (j->at == j->end || *j->at != ':')
        return unexpected(j, err, "':'");
    j->at++;
    skip_space(j);
    return 1;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

/* The end of the number that begins at `at`, or NULL when it is none by RFC 8259. */
static const char *number_end(const char *at, const char *end)
{
    const char *from;
    if (at < end && *at == '-')
        at++;
    from = at;
    at = skip_digits(at, end);
    if (at == from || (*from == '0' && at - from > 1))
        return NULL;
    if (at < end && *at == '.') {
        from = ++at;
        at = skip_digits(at, end);
        if (at == from)
            return NULL;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '-' || *at == '+'))
            at++;
        from = at;
        at = skip_digits(at, end);
        if (at == from)
            return NULL;
    }
    return at;
}

int pkv_json_number(struct pkv_json *j, struct pkv_json_text *out, struct pkv_err *err)
{
    if (pkv_json_peek(j) != PKV_JSON_NUMBER)
        return unexpected(j, err, "a number");
    const char *end = number_end(j->at, j->end);
    if (!end)
        return pkv_json_fail(j, err, "this is not a number as JSON writes them");
    *out = (struct pkv_json_text){
        .text = j->at, .length = (size_t)(end - j->at), .column = pkv_json_column(j),
    };
    j->at = end;
    return 0;
}

static int bad_whole(struct pkv_json *j, const struct pkv_json_text *raw, const char *why,
                     struct pkv_err *err)
{
    int shown = raw->length > 40 ? 40 : (int)raw->length;
    return pkv_json_fail_at(j, raw->column, err, "%.*s%s %s", shown, raw->text,
                            raw->length > 40 ? "..." : "", why);
}

/* The common case: up to 18 digits, no leading zero, and what ends a number behind them. */
static inline bool short_u64(struct pkv_json *j, uint64_t *out)
{
    skip_space(j);
    const char *from = j->at, *at = from, *end = j->end;
    const char *last = end - at > 18 ? at + 18 : end;
    uint64_t value = 0;
    while (at < last && is_digit(*at))
        value = value * 10 + (uint64_t)(*at++ - '0');
    if (at == from || at == end || (*at != ',' && *at != ']' && *at != '}') ||
        (*from == '0' && at - from > 1))
        return false;
    j->at = at;
    *out = value;
    return true;
}

int pkv_json_u64(struct pkv_json *j, uint64_t max, uint64_t *out, struct pkv_err *err)
{
    struct pkv_json_text raw;
    const char *why, *from = j->at;
    if (short_u64(j, out) && *out <= max)
        return 0;
    j->at = from;
    if (pkv_json_peek(j) != PKV_JSON_NUMBER)
        return unexpected(j, err, "a whole number");
    if (pkv_json_number(j, &raw, err) < 0)
        return -1;
    if (pkv_parse_u64(raw.text, raw.length, max, out, &why) < 0)
        return bad_whole(j, &raw, why, err);
    return 0;
}

int pkv_json_u64_items(struct pkv_json *j, uint64_t *out, size_t room, size_t *out_num,
                       struct pkv_err *err)
{
    for (*out_num = 0; *out_num < room; ++*out_num) {
        int more = next(j, ']', err);
        if (more <= 0)
            return more;
        if (!short_u64(j, &out[*out_num]) &&
            pkv_json_u64(j, UINT64_MAX, &out[*out_num], err) < 0)
            return -1;
    }
    return 1;
}

int pkv_json_i64(struct pkv_json *j, int64_t *out, struct pkv_err *err)
{
    struct pkv_json_text raw;
    const char *why;
    if (pkv_json_peek(j) != PKV_JSON_NUMBER)
        return unexpected(j, err, "a whole number");
    if (pkv_json_number(j, &raw, err) < 0)
        return -1;
    if (pkv_parse_i64(raw.text, raw.length, out, &why) < 0)
        return bad_whole(j, &raw, why, err);
    return 0;
}

static int take_word(struct pkv_json *j, const char *word, struct pkv_err *err)
{
    size_t length = strlen(word);
    if ((size_t)(j->end - j->at) < length || memcmp(j->at, word, length) != 0)
        return pkv_json_fail(j, err, "this is not a JSON value");
    j->at += length;
    return 0;
}

static int skip_nested(struct pkv_json *j, unsigned depth, struct pkv_err *err);

static int skip_one(struct pkv_json *j, unsigned depth, struct pkv_err *err)
{
    struct pkv_json_text ignored;
    switch (pkv_json_peek(j)) {
    case PKV_JSON_OBJECT:
    case PKV_JSON_ARRAY:  return skip_nested(j, depth, err);
    case PKV_JSON_STRING: return pkv_json_string(j, &ignored, err);
    case PKV_JSON_NUMBER: return pkv_json_number(j, &ignored, err);
    case PKV_JSON_TRUE:   return take_word(j, "true", err);
    case PKV_JSON_FALSE:  return take_word(j, "false", err);
    case PKV_JSON_NULL:   return take_word(j, "null", err);
    case PKV_JSON_NONE:
    case PKV_JSON_KIND_COUNT: break;
    }
    return unexpected(j, err, "a value");
}

static int skip_nested(struct pkv_json *j, unsigned depth, struct pkv_err *err)
{
    struct pkv_json_text key;
    bool object = *j->at == '{';
    int more;
    if (depth == PKV_JSON_MAX_DEPTH)
        return pkv_json_fail(j, err, "values are nested deeper than %u", PKV_JSON_MAX_DEPTH);
    j->at++;
    j->first = true;
    while ((more = object ? pkv_json_next_member(j, &key, err) : pkv_json_next_item(j, err)) > 0)
        if (skip_one(j, depth + 1, err) < 0)
            return -1;
    return more;
}

int pkv_json_value(struct pkv_json *j, struct pkv_json_value *out, struct pkv_err *err)
{
    enum pkv_json_kind kind = pkv_json_peek(j);
    const char *from = j->at;
    uint32_t column = pkv_json_column(j);
    if (skip_one(j, 0, err) < 0)
        return -1;
    if (out)
        *out = (struct pkv_json_value){
            .kind = kind,
            .raw = {.text = from, .length = (size_t)(j->at - from), .column = column},
        };
    return 0;
}

int pkv_json_end(struct pkv_json *j, struct pkv_err *err)
{
    skip_space(j);
    if (j->at != j->end)
        return unexpected(j, err, "the end of the row");
    return 0;
}

void pkv_json_reopen(struct pkv_json *j, const struct pkv_json *from,
                     const struct pkv_json_value *value)
{
    *j = (struct pkv_json){
        .path = from->path, .line = from->line, .begin = from->begin, .at = value->raw.text,
        .end = value->raw.text + value->raw.length,
    };
}
