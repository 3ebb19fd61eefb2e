/*
 * csv.c - split a line at its commas.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "trace/csv_private.h"

/* The end of a field in quotes: the closing one, doubled ones skipped. NULL = none. */
static const char *closing_quote(const char *at, const char *end)
{
    while (at < end) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        if (!quote || quote + 1 == end || quote[1] != '"')
            return quote;
        at = quote + 2;
    }
    return NULL;
}

/* Take the field at `at`. returns what follows it: a comma or the end. */
static const char *take_field(const char *at, const char *end, struct pkv_field *out)
{
    out->is_quoted = at < end && *at == '"';
    if (out->is_quoted) {
        const char *close = closing_quote(at + 1, end);
        out->text = at + 1;
        out->length = close ? (size_t)(close - at - 1) : 0;
        return close ? close + 1 : NULL;
    }
    const char *comma = memchr(at, ',', (size_t)(end - at));
    out->text = at;
    out->length = (size_t)((comma ? comma : end) - at);
    return comma ? comma : end;
}

int pkv_csv_split(struct pkv_csv *csv, const char *path, uint64_t line, const char *text,
                  size_t length, struct pkv_err *err)
{
    const char *at = text, *end = text + length;
    csv->num_fields = 0;
    for (;;) {
        if (pkv_grow(&csv->fields, &csv->capacity, csv->num_fields + 1, sizeof *csv->fields,
                     err) < 0)
            return -1;
        struct pkv_field *field = &csv->fields[csv->num_fields++];
        field->column = (uint32_t)(at - text) + 1;
        at = take_field(at, end, field);
        if (!at)
            return pkv_fail_at(err, path, line, field->column,
                               "the quote that begins here is not closed on its line");
        if (at == end)
            return 0;
        if (*at != ',')
            return pkv_fail_at(err, path, line, (uint32_t)(at - text) + 1,
                               "a comma should stand behind the closing quote, not '%c'", *at);
        at++;
    }
}

void pkv_csv_finish(struct pkv_csv *csv)
{
    pkv_free(csv->fields);
    *csv = (struct pkv_csv){0};
}

bool pkv_csv_is(const struct pkv_field *field, const char *name)
{
    return field->length == strlen(name) && memcmp(field->text, name, field->length) == 0;
}

size_t pkv_csv_unquote(const struct pkv_field *field, char *out)
{
    size_t num = 0;
    for (size_t i = 0; i < field->length; i++) {
        out[num++] = field->text[i];
        i += field->is_quoted && field->text[i] == '"' ? 1 : 0;
    }
    return num;
}

int pkv_csv_parse_time(const char *text, size_t length, int64_t unit_ns, int64_t *out,
                       bool *rounded, const char **why)
{
    int64_t tenths;
    /* Ten times the unit: the last digit is then the first one below a nanosecond. */
    if (pkv_parse_decimal_ns(text, length, unit_ns * 10, &tenths, why) < 0)
        return -1;
    if (tenths < 0) {
        *why = "is negative";
        return -1;
    }
    *rounded = tenths % 10 != 0;
    *out = tenths / 10 + (tenths % 10 >= 5);
    return 0;
}
