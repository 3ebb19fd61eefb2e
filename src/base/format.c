/*
 * format.c - digits and JSON characters.
 *
 * Eight digits are split with three multiplications and no loop; numbers of up to four, which most
 * are, come from a table of pairs.
 */
#include "base/format_private.h"

#include "base/out.h"

#include <string.h>

static const char pairs[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/* The eight digits of n < 10^8 as bytes 0 to 9, the first digit in the lowest byte. Halves are split
 * all at once by multiplying with the reciprocal of 100, then of 10. */
static uint64_t eight_digits(uint32_t n)
{
    uint64_t v = n / 10000 | (uint64_t)(n % 10000) << 32;
    uint64_t q = (v * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    v = q | (v - q * 100) << 16;
    q = (v * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return q | (v - q * 10) << 8;
}

static void put_eight(char *out, uint64_t digits)
{
    digits |= UINT64_C(0x3030303030303030);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(out, &digits, 8);
#else
    for (int i = 0; i < 8; i++)
        out[i] = (char)(digits >> (8 * i));
#endif
}

static size_t put_up_to_four(char *out, uint32_t n)
{
    if (n < 10) {
        *out = (char)('0' + n);
        return 1;
    }
    uint32_t high = n / 100;
    size_t length = 0;
    if (high >= 10) {
        memcpy(out, pairs + 2 * high, 2);
        length = 2;
    } else if (high > 0) {
        *out = (char)('0' + high);
        length = 1;
    }
    memcpy(out + length, pairs + 2 * (n % 100), 2);
    return length + 2;
}

size_t pkv_put_u64(char *out, uint64_t n)
{
    enum { EIGHT_DIGITS = 100000000 };
    if (n < 10000)
        return put_up_to_four(out, (uint32_t)n);
    if (n >= EIGHT_DIGITS) {
        size_t length = pkv_put_u64(out, n / EIGHT_DIGITS);
        put_eight(out + length, eight_digits((uint32_t)(n % EIGHT_DIGITS)));
        return length + 8;
    }
    uint64_t digits = eight_digits((uint32_t)n);
    unsigned num_zeros = (unsigned)__builtin_ctzll(digits) / 8;
    put_eight(out, digits >> (8 * num_zeros));
    return 8 - num_zeros;
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

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t pkv_utf8_length(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t want = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (want == 0 || s[0] > 0xf4 || want > length)
        return 0;
    for (size_t i = 1; i < want; i++)
        if (!is_tail(s[i]))
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return want;
}

int pkv_is_utf8(const char *bytes, size_t length, size_t *out_at)
{
    for (size_t at = 0; at < length;) {
        size_t num = pkv_utf8_length(bytes + at, length - at);
        if (num == 0) {
            if (out_at)
                *out_at = at;
            return 0;
        }
        at += num;
    }
    return 1;
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
    size_t length = pkv_utf8_length(text, strnlen(text, 4));
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
