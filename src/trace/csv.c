/*
 * csv.c - split a line at its commas.
 */
#include <string.h>

#include "base/alloc.h"
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
    if (at < end && *at == '"') {
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
