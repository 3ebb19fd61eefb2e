/*
 * date.c - dates read exactly, on the Gregorian calendar, without the machine's time zone.
 *
 * Days since 1970 by counting days of 400-year cycles with the year beginning in March, so that the
 * leap day is the last (Howard Hinnant, "chrono-compatible low-level date algorithms").
 *
 * The year comes first, and parts that stand in one order only may be written as programs write them:
 * 2023/11/16, T or a blank before the clock, no seconds, a comma before their fraction, Z, UTC or an
 * offset behind it. Days and months before the year may be either, so they are refused.
 */
#include "trace/date_private.h"

#include <stdbool.h>
#include <string.h>

#define NS_PER_S INT64_C(1000000000)
#define S_PER_DAY INT64_C(86400)

struct cursor {
    const char *at, *end;
};

/* Exactly `digits` digits. */
static bool take_number(struct cursor *c, int digits, int *out)
{
    int value = 0;
    if (c->end - c->at < digits)
        return false;
    for (int i = 0; i < digits; i++) {
        if (c->at[i] < '0' || c->at[i] > '9')
            return false;
        value = value * 10 + (c->at[i] - '0');
    }
    c->at += digits;
    *out = value;
    return true;
}

static bool take_char(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t cycle = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_cycle = y - cycle * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 +
                           day_of_year;
    return cycle * 146097 + day_of_cycle - 719468;
}

static bool take_day(struct cursor *c, int64_t *out)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    if (!take_number(c, 4, &year))
        return false;
    char between = c->at < c->end && *c->at == '/' ? '/' : '-';
    if (!take_char(c, between) || !take_number(c, 2, &month) || !take_char(c, between) ||
        !take_number(c, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 ||
        day > lengths[month - 1] + (month == 2 && is_leap(year)))
        return false;
    *out = days_since_1970(year, month, day);
    return true;
}

/* ".6805900", or nothing. */
static bool take_fraction(struct cursor *c, int64_t *out)
{
    int64_t unit = NS_PER_S;
    *out = 0;
    if (!take_char(c, '.') && !take_char(c, ','))
        return true;
    const char *from = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        unit /= 10;
        *out += (*c->at - '0') * unit;
    }
    return c->at > from;
}

/* Seconds of the day, and nanoseconds behind them. */
static bool take_clock(struct cursor *c, int64_t *out, int64_t *out_fraction)
{
    int hour, minute, second = 0;
    if (!take_number(c, 2, &hour) || !take_char(c, ':') || !take_number(c, 2, &minute) ||
        (take_char(c, ':') && (!take_number(c, 2, &second) || !take_fraction(c, out_fraction))))
        return false;
    *out = hour * 3600 + minute * 60 + second;
    return hour < 24 && minute < 60 && second < 60;
}

/* Seconds east of UTC. */
static bool take_zone(struct cursor *c, int64_t *out)
{
    int hours, minutes = 0;
    *out = 0;
    bool blank = take_char(c, ' ');
    if ((!blank && c->at == c->end) || take_char(c, 'Z') || take_char(c, 'z'))
        return true;
    if (c->end - c->at == 3 && (memcmp(c->at, "UTC", 3) == 0 || memcmp(c->at, "GMT", 3) == 0)) {
        c->at += 3;
        return true;
    }
    int sign = take_char(c, '+') ? 1 : take_char(c, '-') ? -1 : 0;
    if (!sign || !take_number(c, 2, &hours))
        return false;
    bool colon = take_char(c, ':');
    if ((colon || c->at < c->end) && !take_number(c, 2, &minutes))
        return false;
    *out = sign * (hours * 3600 + minutes * 60);
    return hours < 24 && minutes < 60;
}

int pkv_parse_date_ns(const char *text, size_t length, int64_t *out, const char **why)
{
    struct cursor c = {text, text + length};
    int64_t day, clock, fraction = 0, zone;
    *why = "is not a date like 2023-11-16 18:15:46.680590, the year first";
    if (!take_day(&c, &day) || (!take_char(&c, ' ') && !take_char(&c, 'T') && !take_char(&c, 't')) ||
        !take_clock(&c, &clock, &fraction) || !take_zone(&c, &zone) ||
        c.at != c.end)
        return -1;
    int64_t seconds = day * S_PER_DAY + clock - zone;
    *why = "is not between 1678 and 2261";
    if (seconds <= INT64_MIN / NS_PER_S || seconds >= INT64_MAX / NS_PER_S)
        return -1;
    *out = seconds * NS_PER_S + fraction;
    return 0;
}
