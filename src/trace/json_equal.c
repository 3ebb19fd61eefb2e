/*
 * json_equal.c - whether two JSON values mean the same, and where they differ first.
 *
 * Both sides were scanned before, so scanning them again cannot fail. Keys usually come in the same
 * order on both sides: each is tried where the last one ended before it is searched from the start.
 */
#include <stdio.h>
#include <string.h>

#include "trace/json_private.h"

/* A number as digits d1 .. dn without zeros at either end, value = 0.d1 .. dn * 10^point. */
struct number {
    bool negative;
    const char *first, *last;   /* of the digits; a dot may stand between; last is behind them */
    int64_t point;
};

static int64_t exponent_of(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    int64_t value = 0;
    for (at += at < end && (*at == '-' || *at == '+'); at < end; at++)
        if (value < INT64_MAX / 100)
            value = value * 10 + (*at - '0');
    return negative ? -value : value;
}

static struct number take_number(const struct pkv_json_text *raw)
{
    const char *at = raw->text, *end = at + raw->length;
    struct number n = {.negative = *at == '-'};
    bool dot = false;
    for (at += n.negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            dot = true;
            continue;
        }
        if (!n.first && *at != '0')
            n.first = at;
        if (*at != '0')
            n.last = at + 1;
        n.point += n.first && !dot ? 1 : !n.first && dot ? -1 : 0;
    }
    if (at < end)
        n.point += exponent_of(at + 1, end);
    return n;
}

static bool equal_numbers(const struct pkv_json_text *a, const struct pkv_json_text *b)
{
    if (a->length == b->length && memcmp(a->text, b->text, a->length) == 0)
        return true;
    struct number x = take_number(a), y = take_number(b);
    if (!x.first || !y.first)
        return !x.first && !y.first;      /* 0, 0.0 and -0 are one number */
    if (x.negative != y.negative || x.point != y.point)
        return false;
    while (x.first < x.last && y.first < y.last) {
        x.first += *x.first == '.';
        y.first += *y.first == '.';
        if (*x.first++ != *y.first++)
            return false;
    }
    return x.first == x.last && y.first == y.last;
}

static bool equal_strings(const struct pkv_json_text *a, const struct pkv_json_text *b)
{
    const char *x = a->text, *x_end = x + a->length, *y = b->text, *y_end = y + b->length;
    if (a->length == b->length && memcmp(x, y, a->length) == 0)
        return true;
    while (x < x_end && y < y_end)
        if (pkv_json_next_char(&x, x_end) != pkv_json_next_char(&y, y_end))
            return false;
    return x == x_end && y == y_end;
}

static void open_inside(struct pkv_json *j, const struct pkv_json_value *value)
{
    pkv_json_init(j, NULL, 0, value->raw.text, value->raw.length);
    j->at++;
    j->first = true;
}

static bool next_pair(struct pkv_json *j, struct pkv_json_text *key, struct pkv_json_value *value)
{
    return pkv_json_next_member(j, key, NULL) > 0 && pkv_json_value(j, value, NULL) == 0;
}

static bool next_value(struct pkv_json *j, struct pkv_json_value *value)
{
    return pkv_json_next_item(j, NULL) > 0 && pkv_json_value(j, value, NULL) == 0;
}

/* Find key in object: at the cursor first, else from its start (the cursor then stays). */
static bool find_member(const struct pkv_json_value *object, struct pkv_json *cursor,
                        const struct pkv_json_text *key, struct pkv_json_value *out)
{
    struct pkv_json ahead = *cursor, j;
    struct pkv_json_text name;
    if (next_pair(&ahead, &name, out) && equal_strings(&name, key)) {
        *cursor = ahead;
        return true;
    }
    open_inside(&j, object);
    while (next_pair(&j, &name, out))
        if (equal_strings(&name, key))
            return true;
    *out = (struct pkv_json_value){.kind = PKV_JSON_NONE};
    return false;
}

static void cut(char *path, size_t length)
{
    path[length] = '\0';
}

static void append_key(struct pkv_json_difference *d, const struct pkv_json_text *key)
{
    size_t used = strlen(d->path);
    snprintf(d->path + used, sizeof d->path - used, "%s%.*s", used ? "." : "",
             key->length > 60 ? 60 : (int)key->length, key->text);
}

static void append_index(struct pkv_json_difference *d, size_t index)
{
    size_t used = strlen(d->path);
    snprintf(d->path + used, sizeof d->path - used, "[%zu]", index);
}

/* Walk a; the path in d is that of a and b on entry, and that of the difference on false. */
static bool walk(const struct pkv_json_value *a, const struct pkv_json_value *b,
                 struct pkv_json_difference *d);

static bool differ(struct pkv_json_difference *d, const struct pkv_json_value *a,
                   const struct pkv_json_value *b)
{
    d->a = *a;
    d->b = *b;
    return false;
}

/* Members of a that are missing or other in b; with only_missing, just the missing ones, seen from
 * the other side. */
static bool walk_members(const struct pkv_json_value *a, const struct pkv_json_value *b,
                         struct pkv_json_difference *d, bool only_missing)
{
    struct pkv_json j, cursor;
    struct pkv_json_text key;
    struct pkv_json_value ours, theirs;
    size_t length = strlen(d->path);
    open_inside(&j, a);
    open_inside(&cursor, b);
    while (next_pair(&j, &key, &ours)) {
        bool found = find_member(b, &cursor, &key, &theirs);
        append_key(d, &key);
        if (only_missing && !found)
            return differ(d, &theirs, &ours);
        if (!only_missing && !walk(&ours, &theirs, d))
            return false;
        cut(d->path, length);
    }
    return true;
}

static bool walk_items(const struct pkv_json_value *a, const struct pkv_json_value *b,
                       struct pkv_json_difference *d)
{
    struct pkv_json x, y;
    size_t length = strlen(d->path);
    open_inside(&x, a);
    open_inside(&y, b);
    for (size_t i = 0;; i++) {
        struct pkv_json_value ours = {.kind = PKV_JSON_NONE}, theirs = {.kind = PKV_JSON_NONE};
        bool left = next_value(&x, &ours), right = next_value(&y, &theirs);
        if (!left && !right)
            return true;
        append_index(d, i);
        if (left != right)
            return differ(d, &ours, &theirs);
        if (!walk(&ours, &theirs, d))
            return false;
        cut(d->path, length);
    }
}

static bool walk(const struct pkv_json_value *a, const struct pkv_json_value *b,
                 struct pkv_json_difference *d)
{
    bool same = a->kind == b->kind;
    if (same && a->kind == PKV_JSON_OBJECT)
        return walk_members(a, b, d, false) && walk_members(b, a, d, true);
    if (same && a->kind == PKV_JSON_ARRAY)
        return walk_items(a, b, d);
    if (same && a->kind == PKV_JSON_NUMBER)
        same = equal_numbers(&a->raw, &b->raw);
    else if (same && a->kind == PKV_JSON_STRING)
        same = equal_strings(&a->raw, &b->raw);
    return same || differ(d, a, b);
}

bool pkv_json_equal(const struct pkv_json_value *a, const struct pkv_json_value *b,
                    struct pkv_json_difference *out)
{
    struct pkv_json_difference own = {.path = ""};
    bool same = walk(a, b, &own);
    if (out)
        *out = own;
    return same;
}
