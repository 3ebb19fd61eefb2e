/*
 * format.c - digits and JSON characters.
 *
 * Digits come in pairs from a table: half the divisions of the plain way, and small numbers, which
 * most are, need none.
 */
#include "base/format_private.h"

#include <string.h>

static const char pairs[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/* Eight digits or fewer, the common case, in 32-bit arithmetic; end is one behind the last. */
static char *put_backwards(char *end, uint32_t n)
{
    while (n >= 100) {
        end -= 2;
        memcpy(end, pairs + 2 * (n % 100), 2);
        n /= 100;
    }
    if (n >= 10) {
        end -= 2;
        memcpy(end, pairs + 2 * n, 2);
    } else {
        *--end = (char)('0' + n);
    }
    return end;
}

static char *put_eight(char *end, uint32_t n)
{
    for (int i = 0; i < 4; i++) {
        end -= 2;
        memcpy(end, pairs + 2 * (n % 100), 2);
        n /= 100;
    }
    return end;
}

size_t pkv_put_u64(char *out, uint64_t n)
{
    if (n < 10) {
        *out = (char)('0' + n);
        return 1;
    }
    char digits[PKV_DIGITS_MAX];
    char *end = digits + sizeof digits, *at = end;
    while (n >= 100000000) {
        at = put_eight(at, (uint32_t)(n % 100000000));
        n /= 100000000;
    }
    at = put_backwards(at, (uint32_t)n);
    size_t length = (size_t)(end - at);
    memcpy(out, at, length);
    return length;
}

size_t pkv_put_i64(char *out, int64_t n)
{
    if (n >= 0)
        return pkv_put_u64(out, (uint64_t)n);
    *out = '-';
    return 1 + pkv_put_u64(out + 1, 0 - (uint64_t)n);
}

static int is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Bytes of the UTF-8 character at s, 0 when there is none: no overlong forms, no surrogates,
 * nothing above U+10FFFF (RFC 3629). */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || !is_tail(s[1]))
        return 0;
    if (s[0] < 0xe0)
        return 2;
    if (s[0] < 0xf0) {
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
            return 0;
        return is_tail(s[2]) ? 3 : 0;
    }
    if (s[0] > 0xf4 || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return is_tail(s[2]) && is_tail(s[3]) ? 4 : 0;
}

/* The letter behind the backslash of a short escape; 0 = there is none. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '"':  return '"';
    case '\\': return '\\';
    case '\n': return 'n';
    case '\t': return 't';
    case '\r': return 'r';
    default:   return 0;
    }
}

size_t pkv_json_unit(const char *text, char *out, size_t *out_num)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)text;
    size_t length = utf8_length(s);
    char letter = short_escape(s[0]);
    if (letter) {
        out[0] = '\\';
        out[1] = letter;
        *out_num = 2;
        return 1;
    }
    if (length == 0 || s[0] < 0x20 || s[0] == 0x7f) {
        memcpy(out, "\\u00", 4);
        out[4] = hex[s[0] >> 4];
        out[5] = hex[s[0] & 15];
        *out_num = 6;
        return 1;
    }
    memcpy(out, text, length);
    *out_num = length;
    return length;
}
