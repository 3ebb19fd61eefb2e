/*
 * csv_columns.c - columns found by name; and what to say where one is not there.
 *
 * A name in other letters ("Prompt" for "prompt") is never taken for the same: it is only named.
 */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "trace/date_private.h"
#include "trace/trace_private.h"

#define MAX_NAME (PKV_NEAREST_SIZE - 1u)

int pkv_csv_find(struct pkv_trace *t, const char *name, size_t *out, struct pkv_err *err)
{
    const struct pkv_csv *csv = &t->csv;
    *out = PKV_CSV_NONE;
    for (size_t i = 0; i < csv->num_fields; i++) {
        if (!pkv_csv_is(&csv->fields[i], name))
            continue;
        if (*out != PKV_CSV_NONE)
            return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, csv->fields[i].column,
                               "column '%s' stands here a second time", name);
        *out = i;
    }
    return 0;
}

/* Small letters, and one sign for what parts words, so that "Prompt Tokens" is like prompt_tokens. */
static void fold(char *out, const char *text, size_t length)
{
    length = length < MAX_NAME ? length : MAX_NAME;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' || c == ' ' ? '_' : c;
    }
    out[length] = '\0';
}

static const char *suggest(const struct pkv_csv *csv, const char *name, char out[PKV_SUGGESTION_SIZE])
{
    struct pkv_nearest nearest;
    char wanted[MAX_NAME + 1], there[MAX_NAME + 1], shown[MAX_NAME + 1];
    fold(wanted, name, strlen(name));
    pkv_nearest_begin(&nearest, wanted);
    for (size_t i = 0; i < csv->num_fields; i++) {
        const struct pkv_field *f = &csv->fields[i];
        fold(there, f->text, f->length);
        snprintf(shown, sizeof shown, "%.*s", (int)(f->length < MAX_NAME ? f->length : MAX_NAME), f->text);
        pkv_nearest_offer_as(&nearest, there, shown);
    }
    return pkv_nearest_say(&nearest, "", out);
}

const char *pkv_csv_list(const struct pkv_field *names, size_t num, char *out, size_t size)
{
    const size_t end = sizeof " and 18446744073709551615 more";
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < num; i++) {
        size_t length = names[i].length < 60 ? names[i].length : 60;
        if (used + length + 4 + end > size) {
            snprintf(out + used, size - used, " and %zu more", num - i);
            break;
        }
        used += (size_t)snprintf(out + used, size - used, "%s'%.*s'", i ? ", " : "", (int)length,
                                 names[i].text);
    }
    return out;
}

/* Is there no head line? Then what stands in its place are numbers and dates. */
static bool are_values(const struct pkv_csv *csv)
{
    for (size_t i = 0; i < csv->num_fields; i++) {
        const struct pkv_field *f = &csv->fields[i];
        double number;
        int64_t ns;
        const char *why;
        if (pkv_parse_double(f->text, f->length, &number, &why) == 0 ||
            pkv_parse_date_ns(f->text, f->length, &ns, &why) == 0)
            return true;
    }
    return false;
}

int pkv_csv_missing(const struct pkv_trace *t, const char *name, bool is_told, struct pkv_err *err)
{
    const struct pkv_csv *csv = &t->csv;
    char nearest[PKV_SUGGESTION_SIZE], there[200];
    pkv_csv_list(csv->fields, csv->num_fields, there, sizeof there);
    if (are_values(csv))
        return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "column '%.100s' is missing: the "
                           "first line should name the columns, and this one holds values (%s); write a "
                           "head line before it, like arrival,prompt,output", name, there);
    return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "column '%.100s' is missing%s; this "
                       "file has %s%s", name, suggest(csv, name, nearest), there,
                       is_told ? "" : "; names of its own are told by --columns "
                       "arrival=NAME,prompt=NAME,output=NAME");
}

/* --- numbers as people's programs write them -------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* How many bytes at `at` part thousands in some country, 0 = none: , . ' a blank, or a no-break one. */
static size_t thousands_sign(const char *at, const char *end)
{
    if (at == end)
        return 0;
    if (end - at >= 2 && memcmp(at, "\xc2\xa0", 2) == 0)
        return 2;
    if (end - at >= 3 && (memcmp(at, "\xe2\x80\xaf", 3) == 0 || memcmp(at, "\xe2\x80\x99", 3) == 0))
        return 3;
    return strchr(",.' _", *at) && *at ? 1 : 0;
}

/* Digits in groups of three, all parted alike: "1,234", "12 345 678". out: the digits alone. */
static bool take_groups(const char *at, const char *end, char out[32])
{
    size_t num = 0, in_group = 0, groups = 1, sign = 0;
    const char *first_sign = NULL;
    while (at < end && num < 31) {
        if (is_digit(*at)) {
            out[num++] = *at++;
            in_group++;
            continue;
        }
        size_t length = thousands_sign(at, end);
        if (!length || (first_sign && (length != sign || memcmp(at, first_sign, sign) != 0)) ||
            (groups == 1 ? in_group < 1 || in_group > 3 : in_group != 3))
            return false;
        first_sign = at;
        sign = length;
        at += length;
        in_group = 0;
        groups++;
    }
    out[num] = '\0';
    return at == end && groups > 1 && in_group == 3;
}

static bool has_decimal_comma(const char *text, size_t length)
{
    size_t commas = 0;
    for (size_t i = 0; i < length; i++) {
        commas += text[i] == ',';
        if (!is_digit(text[i]) && text[i] != ',')
            return false;
    }
    return commas == 1 && is_digit(text[0]) && is_digit(text[length - 1]);
}

const char *pkv_csv_mend_number(const char *text, size_t length)
{
    static _Thread_local char phrase[80];
    char digits[32];
    if (take_groups(text, text + length, digits)) {
        snprintf(phrase, sizeof phrase, "; thousands stand together: %s", digits);
        return phrase;
    }
    if (has_decimal_comma(text, length))
        return "; decimals stand behind a point, not a comma";
    return "";
}
