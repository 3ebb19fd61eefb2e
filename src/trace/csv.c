/*
 * csv.c - split a line at its commas, or at what stands in their place.
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

/* A tab may be what parts the fields. */
static bool is_blank(char c, char separator)
{
    return c == ' ' || (c == '\t' && separator != '\t');
}

/* Take the field at `at`, without blanks around it. returns what follows it: a separator or the end. */
static const char *take_field(const char *at, const char *end, char separator, struct pkv_field *out)
{
    out->is_quoted = at < end && *at == '"';
    out->text = at;
    if (out->is_quoted) {
        const char *close = closing_quote(at + 1, end);
        out->text = at + 1;
        out->length = close ? (size_t)(close - at - 1) : 0;
        for (at = close ? close + 1 : NULL; at && at < end && is_blank(*at, separator);)
            at++;
        return at;
    }
    const char *next = memchr(at, separator, (size_t)(end - at));
    const char *last = next ? next : end;
    while (last > at && is_blank(last[-1], separator))
        last--;
    out->length = (size_t)(last - at);
    return next ? next : end;
}

static int fail_behind_quote(const char *path, uint64_t line, uint32_t column, char separator,
                             char found, struct pkv_err *err)
{
    const char *name = separator == ',' ? "a comma" : separator == ';' ? "a semicolon"
                     : separator == '\t' ? "a tab" : "a bar";
    return pkv_fail_at(err, path, line, column, "%s should stand behind the closing quote, not '%c'",
                       name, found);
}

int pkv_csv_split(struct pkv_csv *csv, const char *path, uint64_t line, const char *text,
                  size_t length, struct pkv_err *err)
{
    const char *at = text, *end = text + length;
    char separator = csv->separator ? csv->separator : ',';
    csv->num_fields = 0;
    for (;;) {
        if (pkv_grow(&csv->fields, &csv->capacity, csv->num_fields + 1, sizeof *csv->fields,
                     err) < 0)
            return -1;
        struct pkv_field *field = &csv->fields[csv->num_fields++];
        while (at < end && is_blank(*at, separator))
            at++;
        field->column = (uint32_t)(at - text) + 1;
        at = take_field(at, end, separator, field);
        if (!at)
            return pkv_fail_at(err, path, line, field->column,
                               "the quote that begins here is not closed on its line; a text with "
                               "line breaks in it is not read");
        if (at == end)
            return 0;
        if (*at != separator)
            return fail_behind_quote(path, line, (uint32_t)(at - text) + 1, separator, *at, err);
        at++;
    }
}

int pkv_csv_split_head(struct pkv_csv *csv, const char *path, uint64_t line, const char *text,
                       size_t length,
                       int (*count)(const void *ctx, const struct pkv_field *names, size_t num),
                       const void *ctx, struct pkv_err *err)
{
    static const char separators[] = {',', ';', '\t', '|'};
    struct pkv_err broken = {0};
    char best = separators[0];
    int most = -1;
    size_t num_fields = 0;
    for (size_t i = 0; i < sizeof separators; i++) {
        csv->separator = separators[i];
        if (pkv_csv_split(csv, path, line, text, length, &broken) < 0) {
            if (broken.code == PKV_ERR_INPUT)
                continue;
            if (err)
                *err = broken;
            return -1;
        }
        int known = count(ctx, csv->fields, csv->num_fields);
        /* What leaves the line in one piece parts nothing. */
        if (known > most || (known == 0 && most == 0 && num_fields == 1 && csv->num_fields > 1)) {
            most = known;
            best = separators[i];
            num_fields = csv->num_fields;
        }
    }
    csv->separator = best;
    return pkv_csv_split(csv, path, line, text, length, err);
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
    if (pkv_parse_nearest_ns(text, length, unit_ns, out, rounded, why) < 0)
        return -1;
    if (*out < 0) {
        *why = "is negative";
        return -1;
    }
    return 0;
}
