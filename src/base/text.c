/*
 * text.c - text that grows. A failed allocation is remembered in the text itself, so that a writer
 * of many pieces looks once, at the end.
 */
#include "base/out.h"

#include "base/alloc.h"
#include "base/format_private.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Room for `extra` bytes and the NUL; NULL when there is none. */
static char *make_room(struct pkv_text *t, size_t extra)
{
    if (t->failed || pkv_grow(&t->text, &t->capacity, t->length + extra + 1, 1, NULL) < 0) {
        t->failed = 1;
        return NULL;
    }
    return t->text + t->length;
}

static void advance(struct pkv_text *t, size_t length)
{
    t->length += length;
    t->text[t->length] = '\0';
}

void pkv_text_bytes(struct pkv_text *t, const char *bytes, size_t length)
{
    char *at = make_room(t, length);
    if (!at)
        return;
    if (length > 0)
        memcpy(at, bytes, length);
    advance(t, length);
}

void pkv_text_add(struct pkv_text *t, const char *text)
{
    pkv_text_bytes(t, text, strlen(text));
}

void pkv_text_fmt(struct pkv_text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *at = length < 0 ? NULL : make_room(t, (size_t)length);
    if (!at) {
        t->failed = 1;
        return;
    }
    va_start(args, fmt);
    vsnprintf(at, (size_t)length + 1, fmt, args);
    va_end(args);
    advance(t, (size_t)length);
}

void pkv_text_u64(struct pkv_text *t, uint64_t n)
{
    char *at = make_room(t, PKV_DIGITS_MAX);
    if (at)
        advance(t, pkv_put_u64(at, n));
}

void pkv_text_i64(struct pkv_text *t, int64_t n)
{
    char *at = make_room(t, PKV_DIGITS_MAX);
    if (at)
        advance(t, pkv_put_i64(at, n));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Readers drop blanks around a field without quotes. */
static bool needs_quotes(const char *text)
{
    return strpbrk(text, ",\"\r\n") || is_blank(*text) || (*text && is_blank(text[strlen(text) - 1]));
}

void pkv_text_csv(struct pkv_text *t, const char *text)
{
    if (!needs_quotes(text)) {
        pkv_text_add(t, text);
        return;
    }
    pkv_text_bytes(t, "\"", 1);
    for (const char *quote; (quote = strchr(text, '"')) != NULL; text = quote + 1) {
        pkv_text_bytes(t, text, (size_t)(quote - text));
        pkv_text_bytes(t, "\"\"", 2);
    }
    pkv_text_add(t, text);
    pkv_text_bytes(t, "\"", 1);
}

void pkv_text_json(struct pkv_text *t, const char *text)
{
    pkv_text_bytes(t, "\"", 1);
    while (*text) {
        char *at = make_room(t, PKV_JSON_UNIT_MAX);
        size_t num = 0;
        if (!at)
            return;
        text += pkv_json_unit(text, at, &num);
        advance(t, num);
    }
    pkv_text_bytes(t, "\"", 1);
}

/* C0, DEL and, as U+0080 to U+009F, C1. */
static int is_control(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    return length == 1 ? s[0] < 0x20 || s[0] == 0x7f : length == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

void pkv_text_visible(struct pkv_text *t, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t num = pkv_utf8_length(bytes + at, length - at);
        if (num > 0 && !is_control(bytes + at, num)) {
            pkv_text_bytes(t, bytes + at, num);
            at += num;
            continue;
        }
        for (num += num == 0; num > 0; num--, at++)
            pkv_text_fmt(t, "\\x%02x", (unsigned)(unsigned char)bytes[at]);
    }
}

/* Long division, digit after digit: exact, and the same on every machine and in every locale. */
void pkv_text_ratio(struct pkv_text *t, __int128 num, __int128 den, unsigned num_decimals)
{
    if (den <= 0 || num < 0) {
        num = 0;
        den = 1;
    }
    pkv_text_u64(t, (uint64_t)(num / den));
    __int128 rest = num % den;
    if (rest == 0)
        return;
    char digits[32] = ".";
    size_t used = 1;
    for (; rest != 0 && used <= num_decimals && used < sizeof digits; used++) {
        rest *= 10;
        digits[used] = (char)('0' + (int)(rest / den));
        rest %= den;
    }
    while (used > 1 && digits[used - 1] == '0')
        used--;
    if (used > 1)
        pkv_text_bytes(t, digits, used);
}

void pkv_text_clear(struct pkv_text *t)
{
    t->length = 0;
    if (t->text)
        t->text[0] = '\0';
}

void pkv_text_free(struct pkv_text *t)
{
    pkv_free(t->text);
    memset(t, 0, sizeof *t);
}
