/*
 * value.c - one scalar of a scenario, read into its field by its kind.
 *
 * What is accepted is narrow: a number in quotes is text, a fraction is no count, and a time that
 * is not a whole number of nanoseconds is refused and not rounded.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/out.h"
#include "base/units.h"
#include "scenario/scenario_private.h"

#define NS_PER_MS INT64_C(1000000)

int value_fail(const struct value *v, struct pkv_err *err, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return node_fail(v->node, err, "%s: %s", v->shown, text);
}

int value_want_scalar(const struct value *v, const char *what, struct pkv_err *err)
{
    if (v->node->kind != NODE_SCALAR)
        return value_fail(v, err, "a %s stands where %s belongs",
                          v->node->kind == NODE_LIST ? "list" : "map of keys", what);
    if (node_is_null(v->node))
        return value_fail(v, err, "has no value; %s belongs here", what);
    if (strlen(v->node->text) != v->node->length)
        return value_fail(v, err, "holds a NUL character");
    return 0;
}

int value_want_number(const struct value *v, const char *what, struct pkv_err *err)
{
    if (value_want_scalar(v, what, err) < 0)
        return -1;
    if (v->node->quoted)
        return value_fail(v, err, "\"%.40s\" in quotes is text; %s belongs here", v->node->text,
                          what);
    return 0;
}

void *value_field(const struct value *v)
{
    return (char *)v->scenario + keys[v->key].field;
}

/* A whole number within the range of the key it was said with. */
static int read_count(const struct value *v, uint64_t *out, struct pkv_err *err)
{
    const struct key *key = &keys[v->source];
    uint64_t max = key->max < (double)INT64_MAX ? (uint64_t)key->max : UINT64_MAX;
    const char *why;

    if (value_want_number(v, "a whole number", err) < 0)
        return -1;
    if (pkv_parse_u64(v->node->text, v->node->length, max, out, &why) < 0)
        return value_fail(v, err, "'%.40s' %s", v->node->text, why);
    if ((double)*out < key->min)
        return value_fail(v, err, "%" PRIu64 " is below %.0f", *out, key->min);
    return 0;
}

static int read_u32(const struct value *v, struct pkv_err *err)
{
    uint64_t count;

    if (read_count(v, &count, err) < 0)
        return -1;
    *(uint32_t *)value_field(v) = (uint32_t)count;
    return 0;
}

/* The engine's own figure counts the null block. */
static int read_gpu_blocks(const struct value *v, struct pkv_err *err)
{
    uint64_t count;

    if (read_count(v, &count, err) < 0)
        return -1;
    *(uint32_t *)value_field(v) = (uint32_t)count - 1;
    return 0;
}

static int read_double(const struct value *v, struct pkv_err *err)
{
    const struct key *key = &keys[v->source];
    const char *why;
    double number;

    if (value_want_number(v, "a number", err) < 0)
        return -1;
    if (pkv_parse_double(v->node->text, v->node->length, &number, &why) < 0)
        return value_fail(v, err, "'%.40s' %s", v->node->text, why);
    if (!(number >= key->min && number <= key->max))
        return value_fail(v, err, "%.40s is not within %g .. %g", v->node->text, key->min,
                          key->max);
    *(double *)value_field(v) = number;
    return 0;
}

int value_read_flag(const struct value *v, bool *out, struct pkv_err *err)
{
    const char *text;

    if (value_want_number(v, "true or false", err) < 0)
        return -1;
    text = v->node->text;
    *out = strcmp(text, "true") == 0 || strcmp(text, "on") == 0;
    if (!*out && strcmp(text, "false") != 0 && strcmp(text, "off") != 0)
        return value_fail(v, err, "'%.40s' is neither true nor false", text);
    return 0;
}

/* Decimal zeros of the unit behind a number, in ns (1 min = 6 * 10^10). */
static int unit_digits(const char *unit, int bare)
{
    static const struct { const char *word; int digits; } units[] = {
        { "ns", 0 }, { "us", 3 }, { "ms", 6 }, { "s", 9 }, { "m", 10 }, { "min", 10 }, { "h", 11 },
    };

    while (*unit == ' ')
        unit++;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (strcmp(unit, units[i].word) == 0)
            return units[i].digits;
    return bare;
}

/* Does a decimal number with its unit come to a whole number of nanoseconds? */
static bool is_whole_ns(const char *text, int bare_digits)
{
    int digits = 0, before_point = 0, last_nonzero = 0, exponent = 0, sign = 1;
    bool after_point = false;

    text += *text == '-' || *text == '+';
    for (; isdigit((unsigned char)*text) || *text == '.'; text++) {
        if (*text == '.') {
            after_point = true;
            continue;
        }
        digits++;
        before_point += !after_point;
        last_nonzero = *text != '0' ? digits : last_nonzero;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        sign = *text == '-' ? -1 : 1;
        text += *text == '-' || *text == '+';
        for (; isdigit((unsigned char)*text); text++)
            exponent = exponent < 1000 ? exponent * 10 + (*text - '0') : exponent;
    }
    return last_nonzero == 0 ||
           last_nonzero - before_point - sign * exponent <= unit_digits(text, bare_digits);
}

static bool has_unit(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && isalpha((unsigned char)text[length - 1]);
}

static int read_time(const struct value *v, int64_t bare_ns, int bare_digits, struct pkv_err *err)
{
    const struct key *key = &keys[v->source];
    const char *why, *text = v->node->text;
    int64_t ns;

    if (value_want_number(v, "a time", err) < 0)
        return -1;
    if (pkv_parse_time_ns(text, v->node->length, bare_ns, &ns, &why) < 0)
        return value_fail(v, err, "'%.40s' %s", text, why);
    if ((key->kind == KIND_TIME || key->kind == KIND_TIME_OR_END) && !has_unit(text))
        return value_fail(v, err, "'%.40s' has no unit (like 1ms, 2.5s)", text);
    if (ns < 0 || text[0] == '-')
        return value_fail(v, err, "%.40s is negative", text);
    if (!is_whole_ns(text, bare_digits))
        return value_fail(v, err, "%.40s is not a whole number of nanoseconds", text);
    if ((double)ns < key->min)
        return value_fail(v, err, "%.40s is too short", text);
    if ((double)ns > key->max)
        return value_fail(v, err, "%.40s is too long", text);
    *(int64_t *)value_field(v) = ns;
    return 0;
}

static int read_time_or_end(const struct value *v, struct pkv_err *err)
{
    if (v->node->kind != NODE_SCALAR || strcmp(v->node->text, "end") != 0)
        return read_time(v, 1, 0, err);
    *(int64_t *)value_field(v) = 0;
    return 0;
}

static int read_bytes(const struct value *v, struct pkv_err *err)
{
    const struct key *key = &keys[v->source];
    const char *why;
    uint64_t bytes;
    bool bare = key_is_named_bytes(key) &&
                pkv_parse_u64(v->node->text, v->node->length, UINT64_MAX, &bytes, &why) == 0;

    if (value_want_number(v, "a number of bytes", err) < 0)
        return -1;
    if (!bare && pkv_parse_bytes(v->node->text, v->node->length, &bytes, &why) < 0)
        return value_fail(v, err, "'%.40s' %s", v->node->text, why);
    if ((double)bytes < key->min || (double)bytes > key->max)
        return value_fail(v, err, "%.40s is not within %.0f .. %.0f bytes", v->node->text, key->min,
                          key->max);
    *(uint64_t *)value_field(v) = bytes;
    return 0;
}

int value_keep_text(const struct value *v, char *text)
{
    char **place = value_field(v);

    if (!text)
        return -1;
    pkv_free(*place);
    *place = text;
    return 0;
}

char *path_join(const char *folder, const char *path, struct pkv_err *err)
{
    size_t length = path[0] == '/' || strcmp(path, "-") == 0 ? 0 : strlen(folder);
    char *joined = pkv_alloc(length + strlen(path) + 1, 1, err);

    if (!joined)
        return NULL;
    memcpy(joined, folder, length);
    memcpy(joined + length, path, strlen(path));
    return joined;
}

static int read_path(const struct value *v, struct pkv_err *err)
{
    if (value_want_scalar(v, "a path", err) < 0)
        return -1;
    if (v->node->length == 0)
        return value_fail(v, err, "is empty; a path belongs here");
    return value_keep_text(v, path_join(v->folder, v->node->text, err));
}

static int read_text(const struct value *v, struct pkv_err *err)
{
    if (value_want_scalar(v, "text", err) < 0)
        return -1;
    if (!pkv_is_utf8(v->node->text, v->node->length, NULL))
        return value_fail(v, err, "the text is not UTF-8");
    return value_keep_text(v, pkv_strdup(v->node->text, err));
}

/* A decimal of at most six digits behind the point, kept as a fraction, so that nothing is lost. */
static int read_speedup(const struct value *v, struct pkv_err *err)
{
    uint64_t num = 0, den = 1;
    bool after_point = false;
    const char *text = v->node->text;

    if (value_want_number(v, "a number", err) < 0)
        return -1;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !after_point); text++) {
        if (*text == '.') {
            after_point = true;
            continue;
        }
        num = num * 10 + (uint64_t)(*text - '0');
        den *= after_point ? 10 : 1;
        if (den > 1000000 || num / den > 1000000)
            break;
    }
    if (*text || num == 0)
        return value_fail(v, err, "'%.40s' is not a number from 0.000001 to 1000000 with at most "
                          "six digits behind the point", v->node->text);
    while (den > 1 && num % 10 == 0) {
        num /= 10;
        den /= 10;
    }
    v->scenario->trace_options.speedup_num = num;
    v->scenario->trace_options.speedup_den = den;
    return 0;
}

int value_read(const struct value *v, struct pkv_err *err)
{
    switch (keys[v->source].kind) {
    case KIND_NONE:              break;
    case KIND_TEXT:              return read_text(v, err);
    case KIND_PATH:              return read_path(v, err);
    case KIND_BOOL:              return value_read_flag(v, value_field(v), err);
    case KIND_U32:               return read_u32(v, err);
    case KIND_U64:               return read_count(v, value_field(v), err);
    case KIND_DOUBLE:            return read_double(v, err);
    case KIND_MS:                return read_time(v, NS_PER_MS, 6, err);
    case KIND_NS:
    case KIND_TIME:              return read_time(v, 1, 0, err);
    case KIND_TIME_OR_END:       return read_time_or_end(v, err);
    case KIND_BYTES:             return read_bytes(v, err);
    case KIND_WORD:              return value_read_word(v, err);
    case KIND_CHOICE:            return value_read_choice(v, err);
    case KIND_PRESET:            return value_read_preset(v, err);
    case KIND_FORMAT:            return value_read_format(v, err);
    case KIND_SPEEDUP:           return read_speedup(v, err);
    case KIND_GROUPS:            return value_read_groups(v, err);
    case KIND_MODEL:             return value_read_model(v, err);
    case KIND_STAGES:            return value_read_stages(v, err);
    case KIND_BUDGET:            return value_read_budget(v, err);
    case KIND_PRIORITIES:        return value_read_priorities(v, err);
    case KIND_TENANTS:           return value_read_tenants(v, err);
    case KIND_GPU_BLOCKS:        return read_gpu_blocks(v, err);
    case KIND_SCHEDULING_POLICY: return value_read_scheduling_policy(v, err);
    case KIND_FULL_ISL:          return value_read_full_isl(v, err);
    case KIND_VARY:              return value_read_vary(v, err);
    case KIND_ACCEPTED:          return value_read_accepted(v, err);
    }
    PKV_UNREACHABLE("a key has no kind");
}
