/*
 * units.c - numbers as people write them, read exactly.
 *
 * A decimal number is never rounded on its way to nanoseconds or bytes: its digits are multiplied
 * by the unit as whole numbers, and what lies below one is cut. Only pkv_parse_double() rounds,
 * once, to the nearest double.
 */
#include "base/units.h"

#include <inttypes.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S INT64_C(1000000000)
#define MAX_EXPONENT 100000       /* beyond it every number is 0 or out of range */

/* A decimal number taken apart: value = 0.d1 d2 .. dn * 10^point, the digits without the dot. */
struct decimal {
    bool negative;
    const char *digits;           /* first digit or dot */
    size_t length;                /* of digits and dot */
    int64_t point;                /* digits before the decimal point, the exponent included */
    int64_t num_digits;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int refuse(const char **why, const char *phrase)
{
    if (why)
        *why = phrase;
    return -1;
}

static int refuse_larger(const char **why, uint64_t max)
{
    static _Thread_local char phrase[48];
    snprintf(phrase, sizeof phrase, "is larger than %" PRIu64, max);
    return refuse(why, phrase);
}

/* Why text is no whole number: the phrase a reader of the message needs. */
static int refuse_whole(const char *text, size_t length, const char **why)
{
    double number;
    if (length == 0)
        return refuse(why, "is empty");
    if (pkv_parse_double(text, length, &number, NULL) == 0 && text[0] == '-')
        return refuse(why, "is negative");
    return refuse(why, "is not a whole number");
}

int pkv_parse_u64(const char *text, size_t length, uint64_t max, uint64_t *out, const char **why)
{
    uint64_t value = 0;
    bool too_large = false;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i]))
            return refuse_whole(text, length, why);
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            too_large = true;
        else
            value = value * 10 + digit;
    }
    if (length == 0)
        return refuse_whole(text, length, why);
    if (too_large || value > max)
        return refuse_larger(why, max);
    *out = value;
    return 0;
}

int pkv_parse_i64(const char *text, size_t length, int64_t *out, const char **why)
{
    bool negative = length > 1 && text[0] == '-';
    const char *digits = text + negative;
    size_t num_digits = length - negative;
    uint64_t value;
    for (size_t i = 0; i < num_digits; i++)
        if (!is_digit(digits[i]))
            return refuse(why, "is not a whole number");
    if (num_digits == 0)
        return refuse(why, "is empty");
    uint64_t max = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    if (pkv_parse_u64(digits, num_digits, max, &value, why) < 0)
        return negative ? refuse(why, "is smaller than -9223372036854775808") : -1;
    *out = negative ? -(int64_t)(value - (value > 0)) - (value > 0) : (int64_t)value;
    return 0;
}

/* Read the exponent after 'e'; it is cut to +-MAX_EXPONENT. Returns characters read, 0 = broken. */
static size_t split_exponent(const char *text, size_t length, int64_t *out)
{
    size_t i = 0;
    bool negative = length > 0 && text[0] == '-';
    if (length > 0 && (text[0] == '-' || text[0] == '+'))
        i++;
    size_t first = i;
    int64_t value = 0;
    for (; i < length && is_digit(text[i]); i++)
        if (value < MAX_EXPONENT)
            value = value * 10 + (text[i] - '0');
    if (i == first)
        return 0;
    *out = negative ? -value : value;
    return i;
}

/* Take the longest decimal number at the beginning of text apart.
 *   returns   characters read, 0 = there is none */
static size_t split_decimal(const char *text, size_t length, struct decimal *out)
{
    size_t i = 0;
    bool dot = false;
    *out = (struct decimal){0};
    if (length > 0 && (text[0] == '-' || text[0] == '+')) {
        out->negative = text[0] == '-';
        i++;
    }
    out->digits = text + i;
    for (; i < length && (is_digit(text[i]) || (text[i] == '.' && !dot)); i++) {
        if (text[i] == '.') {
            dot = true;
            continue;
        }
        out->num_digits++;
        out->point += !dot;
    }
    out->length = (size_t)(text + i - out->digits);
    if (out->num_digits == 0)
        return 0;
    if (i < length && (text[i] == 'e' || text[i] == 'E')) {
        int64_t exponent = 0;
        size_t used = split_exponent(text + i + 1, length - i - 1, &exponent);
        if (used == 0)
            return 0;
        out->point += exponent;
        i += 1 + used;
    }
    return i;
}

/* The part before the point, in units of 1. false = over 2^64. */
static bool whole_part(const struct decimal *d, uint64_t *out)
{
    int64_t seen = 0;
    uint64_t value = 0;
    for (size_t i = 0; i < d->length && seen < d->point; i++) {
        if (d->digits[i] == '.')
            continue;
        uint64_t digit = (uint64_t)(d->digits[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
        seen++;
    }
    for (; value && seen < d->point; seen++) {
        if (value > UINT64_MAX / 10)
            return false;
        value *= 10;
    }
    *out = value;
    return true;
}

/* The part behind the point times unit, cut to a whole number: Horner's rule from the last digit,
 * where cutting at each step comes to the same as cutting once. */
static uint64_t fraction_part(const struct decimal *d, uint64_t unit)
{
    uint64_t rest = 0;
    int64_t index = d->num_digits;
    for (size_t i = d->length; i-- > 0 && index > d->point;) {
        if (d->digits[i] == '.')
            continue;
        index--;
        rest = (rest + (uint64_t)(d->digits[i] - '0') * unit) / 10;
    }
    for (int64_t zeros = d->point; zeros < 0 && rest; zeros++)
        rest /= 10;
    return rest;
}

/* |number| * unit, cut. unit < 2^60. */
static int scale_decimal(const struct decimal *d, uint64_t unit, uint64_t max, uint64_t *out)
{
    uint64_t whole;
    if (!whole_part(d, &whole) || whole > max / unit)
        return -1;
    uint64_t fraction = fraction_part(d, unit);
    if (fraction > max - whole * unit)
        return -1;
    *out = whole * unit + fraction;
    return 0;
}

static int scale_ns(const struct decimal *d, uint64_t unit, int64_t *out, const char **why)
{
    uint64_t value;
    if (scale_decimal(d, unit, INT64_MAX, &value) < 0)
        return refuse(why, "is beyond 9223372036854775807 ns");
    *out = d->negative ? -(int64_t)value : (int64_t)value;
    return 0;
}

int pkv_parse_decimal_ns(const char *text, size_t length, int64_t unit_ns, int64_t *out,
                         const char **why)
{
    struct decimal d;
    if (length == 0)
        return refuse(why, "is empty");
    if (split_decimal(text, length, &d) != length)
        return refuse(why, "is not a number");
    return scale_ns(&d, (uint64_t)unit_ns, out, why);
}

int pkv_parse_nearest_ns(const char *text, size_t length, int64_t unit_ns, int64_t *out,
                         bool *rounded, const char **why)
{
    struct decimal d;
    if (pkv_parse_decimal_ns(text, length, unit_ns, out, why) < 0)
        return -1;
    split_decimal(text, length, &d);
    uint64_t tenths = fraction_part(&d, (uint64_t)unit_ns * 10) % 10;
    *rounded = tenths != 0;
    if (tenths >= 5 && (*out == INT64_MAX || *out == -INT64_MAX))
        return refuse(why, "is beyond 9223372036854775807 ns");
    *out += tenths < 5 ? 0 : d.negative ? -1 : 1;
    return 0;
}

int pkv_parse_scaled(const char *text, size_t length, int64_t scale, int64_t *out,
                     const char **why)
{
    static _Thread_local char phrase[48];
    size_t dot = 0, num_decimals = 0;
    while (dot < length && text[dot] != '.')
        dot++;
    int64_t whole;
    if (pkv_parse_i64(text, dot, &whole, why) < 0)
        return dot < length ? refuse(why, "is not a number") : -1;
    uint64_t fraction = 0;
    int64_t unit = scale;
    for (size_t i = dot + 1; i < length; i++) {
        if (!is_digit(text[i]))
            return refuse(why, "is not a number");
        if (unit > 1)
            unit /= 10;
        else if (text[i] != '0')
            goto too_fine;
        fraction += (uint64_t)(text[i] - '0') * (uint64_t)unit * (text[i] != '0');
    }
    if (dot + 1 == length)
        return refuse(why, "is not a number");
    if (whole > INT64_MAX / scale - 1 || whole < INT64_MIN / scale + 1)
        return refuse(why, "is out of range");
    *out = whole * scale + (text[0] == '-' ? -(int64_t)fraction : (int64_t)fraction);
    return 0;
too_fine:
    for (int64_t rest = scale; rest > 1; rest /= 10)
        num_decimals++;
    snprintf(phrase, sizeof phrase, "has more than %zu decimals", num_decimals);
    return refuse(why, phrase);
}

struct unit {
    const char *word;
    uint64_t size;
};

/* The unit that fills the rest of the text, spaces before it allowed; NULL = no such unit. */
static const struct unit *find_unit(const struct unit *units, size_t num, const char *text,
                                    size_t length)
{
    while (length > 0 && text[0] == ' ') {
        text++;
        length--;
    }
    for (size_t i = 0; i < num; i++)
        if (strlen(units[i].word) == length && memcmp(units[i].word, text, length) == 0)
            return &units[i];
    return NULL;
}

int pkv_parse_time_ns(const char *text, size_t length, int64_t bare_unit_ns, int64_t *out,
                      const char **why)
{
    static const struct unit units[] = {
        {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", NS_PER_S},
        {"m", 60 * (uint64_t)NS_PER_S}, {"min", 60 * (uint64_t)NS_PER_S},
        {"h", 3600 * (uint64_t)NS_PER_S},
    };
    struct decimal d;
    if (length == 0)
        return refuse(why, "is empty");
    size_t used = split_decimal(text, length, &d);
    if (used == 0)
        return refuse(why, "is not a time (like 1ms, 2.5s, 10us)");
    if (used == length)
        return scale_ns(&d, (uint64_t)bare_unit_ns, out, why);
    const struct unit *unit = find_unit(units, sizeof units / sizeof *units, text + used,
                                        length - used);
    if (!unit)
        return refuse(why, "has an unknown unit of time (known: ns, us, ms, s, m, h)");
    return scale_ns(&d, unit->size, out, why);
}

static bool is_zero(const struct decimal *d)
{
    for (size_t i = 0; i < d->length; i++)
        if (d->digits[i] != '0' && d->digits[i] != '.')
            return false;
    return true;
}

static int refuse_unitless(const char **why, const char *text, size_t length)
{
    static _Thread_local char phrase[64];
    int shown = length < 24 ? (int)length : 24;
    snprintf(phrase, sizeof phrase, "has no unit, like %.*sGB or %.*sB", shown, text, shown, text);
    return refuse(why, length <= 24 ? phrase : "has no unit (like B, GB, GiB)");
}

int pkv_parse_bytes(const char *text, size_t length, uint64_t *out, const char **why)
{
    static const struct unit units[] = {
        {"B", 1}, {"kB", 1000}, {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000},
        {"TB", UINT64_C(1000000000000)}, {"KiB", UINT64_C(1) << 10}, {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30}, {"TiB", UINT64_C(1) << 40},
    };
    struct decimal d;
    uint64_t size = 1;
    if (length == 0)
        return refuse(why, "is empty");
    size_t used = split_decimal(text, length, &d);
    if (used == 0)
        return refuse(why, "is not a number of bytes (like 40GiB, 80GB)");
    if (d.negative)
        return refuse(why, "is negative");
    if (used < length) {
        const struct unit *unit = find_unit(units, sizeof units / sizeof *units, text + used,
                                            length - used);
        if (!unit)
            return refuse(why, "has an unknown unit of bytes (known: kB, MB, GB, TB, KiB, MiB, "
                               "GiB, TiB)");
        size = unit->size;
    } else if (!is_zero(&d)) {
        return refuse_unitless(why, text, length);
    }
    if (scale_decimal(&d, size, UINT64_MAX, out) < 0)
        return refuse_larger(why, UINT64_MAX);
    return 0;
}

/* The nearest double. strtod rounds rightly but listens to the locale, so the point is handed over
 * in the form it expects. */
static int nearest_double(const char *text, size_t length, double *out)
{
    char copy[512];
    const char *point = localeconv()->decimal_point;
    size_t used = 0, room = strlen(point);
    for (size_t i = 0; i < length; i++) {
        if (used + room >= sizeof copy)
            return -1;
        if (text[i] == '.') {
            memcpy(copy + used, point, room);
            used += room;
        } else {
            copy[used++] = text[i];
        }
    }
    copy[used] = '\0';
    *out = strtod(copy, NULL);
    return 0;
}

int pkv_parse_double(const char *text, size_t length, double *out, const char **why)
{
    struct decimal d;
    double value;
    if (length == 0)
        return refuse(why, "is empty");
    if (split_decimal(text, length, &d) != length)
        return refuse(why, "is not a number");
    if (nearest_double(text, length, &value) < 0)
        return refuse(why, "has too many digits");
    if (value - value != 0)
        return refuse(why, "is too large");
    *out = value;
    return 0;
}

char *pkv_format_count(uint64_t n, char *out)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *at = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return out;
}

char *pkv_format_duration(int64_t ns, char *out, size_t size)
{
    uint64_t t = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    const char *sign = ns < 0 ? "-" : "";
    /* The time in units of the last digit that each form shows, rounded to nearest. */
    uint64_t us10 = (t + 50) / 100, ms10 = (t + 50000) / 100000, s100 = (t + 5000000) / 10000000;
    uint64_t s = (t + NS_PER_S / 2) / NS_PER_S, min = (t + 30 * NS_PER_S) / (60 * NS_PER_S);
    if (t < 1000)
        snprintf(out, size, "%s%" PRIu64 " ns", sign, t);
    else if (us10 < 10000)
        snprintf(out, size, "%s%" PRIu64 ".%" PRIu64 " us", sign, us10 / 10, us10 % 10);
    else if (ms10 < 10000)
        snprintf(out, size, "%s%" PRIu64 ".%" PRIu64 " ms", sign, ms10 / 10, ms10 % 10);
    else if (s100 < 6000)
        snprintf(out, size, "%s%" PRIu64 ".%02" PRIu64 " s", sign, s100 / 100, s100 % 100);
    else if (s < 3600)
        snprintf(out, size, "%s%" PRIu64 " min %" PRIu64 " s", sign, s / 60, s % 60);
    else
        snprintf(out, size, "%s%" PRIu64 " h %" PRIu64 " min", sign, min / 60, min % 60);
    return out;
}
