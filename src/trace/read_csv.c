/*
 * read_csv.c - public traces with a header line: when, how many tokens in, how many out.
 *
 * Columns are found by name, so further ones may stand anywhere. Such traces have rows whose
 * request failed and gave no token; they are left out and counted. Prompts have no content: each is
 * text of its own.
 *
 * Sources: Azure LLM inference traces 2023 and 2024 (dates; 2024 may carry an offset from UTC) and
 * BurstGPT (seconds), after the descriptions of the data sets.
 */
#include <string.h>

#include "base/units.h"
#include "trace/date_private.h"
#include "trace/trace_private.h"

struct pkv_csv_layout {
    const char *columns[PKV_CSV_ROLE_COUNT];
    int (*parse_time)(const char *text, size_t length, int64_t *out, const char **why);
};

static int parse_seconds(const char *text, size_t length, int64_t *out, const char **why)
{
    if (pkv_parse_decimal_ns(text, length, PKV_NS_PER_S, out, why) < 0)
        return -1;
    if (*out >= 0)
        return 0;
    *why = "is negative";
    return -1;
}

static const struct pkv_csv_layout azure = {
    .columns = {[PKV_CSV_ARRIVAL] = "TIMESTAMP", [PKV_CSV_PROMPT] = "ContextTokens",
                [PKV_CSV_OUTPUT] = "GeneratedTokens"},
    .parse_time = pkv_parse_date_ns,
};
static const struct pkv_csv_layout burstgpt = {
    .columns = {[PKV_CSV_ARRIVAL] = "Timestamp", [PKV_CSV_PROMPT] = "Request tokens",
                [PKV_CSV_OUTPUT] = "Response tokens"},
    .parse_time = parse_seconds,
};

static bool field_is(const struct pkv_field *field, const char *name)
{
    return field->length == strlen(name) && memcmp(field->text, name, field->length) == 0;
}

/* How many of its columns are there. */
static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    int found = 0;
    for (size_t role = 0; role < PKV_CSV_ROLE_COUNT; role++)
        for (size_t i = 0; i < num_keys; i++)
            found += field_is(&keys[i], reader->layout->columns[role]);
    return found;
}

static int begin(struct pkv_trace *t, struct pkv_err *err)
{
    const struct pkv_csv_layout *layout = t->reader->layout;
    struct pkv_csv *csv = &t->csv;
    csv->num_columns = csv->num_fields;
    for (size_t role = 0; role < PKV_CSV_ROLE_COUNT; role++) {
        size_t found = 0;
        for (size_t i = 0; i < csv->num_fields; i++) {
            if (!field_is(&csv->fields[i], layout->columns[role]))
                continue;
            csv->index[role] = i;
            if (found++)
                return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, csv->fields[i].column,
                                   "column '%s' stands here a second time", layout->columns[role]);
        }
        if (!found)
            return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0,
                               "column '%s' is missing", layout->columns[role]);
    }
    return 0;
}

static int bad_field(struct pkv_trace *t, enum pkv_csv_role role, const char *why,
                     struct pkv_err *err)
{
    const struct pkv_field *f = &t->csv.fields[t->csv.index[role]];
    int shown = f->length > 60 ? 60 : (int)f->length;
    return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, f->column, "%s '%.*s' %s",
                       t->reader->layout->columns[role], shown, f->text, why);
}

static int read_tokens(struct pkv_trace *t, enum pkv_csv_role role, uint64_t *out,
                       struct pkv_err *err)
{
    const struct pkv_field *f = &t->csv.fields[t->csv.index[role]];
    const char *why;
    if (pkv_parse_u64(f->text, f->length, PKV_MAX_LENGTH_TOKENS, out, &why) < 0)
        return bad_field(t, role, why, err);
    return 0;
}

static int split_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_err *err)
{
    struct pkv_csv *csv = &t->csv;
    if (pkv_csv_split(csv, pkv_trace_path(t), t->lines.number, text, length, err) < 0)
        return -1;
    if (csv->num_fields != csv->num_columns)
        return pkv_fail_at(err, pkv_trace_path(t), t->lines.number,
                           csv->fields[csv->num_fields - 1].column,
                           "this row has %zu fields, the header has %zu", csv->num_fields,
                           csv->num_columns);
    return 0;
}

static int read_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                    struct pkv_err *err)
{
    uint64_t prompt, output;
    const char *why;
    if (split_row(t, text, length, err) < 0)
        return -1;
    const struct pkv_field *arrival = &t->csv.fields[t->csv.index[PKV_CSV_ARRIVAL]];
    if (t->reader->layout->parse_time(arrival->text, arrival->length, &out->spec.arrival_ns,
                                      &why) < 0)
        return bad_field(t, PKV_CSV_ARRIVAL, why, err);
    out->arrival_column = arrival->column;
    if (read_tokens(t, PKV_CSV_PROMPT, &prompt, err) < 0 ||
        read_tokens(t, PKV_CSV_OUTPUT, &output, err) < 0)
        return -1;
    if (output == 0)
        return PKV_ROW_NO_OUTPUT;
    if (prompt == 0)
        return bad_field(t, PKV_CSV_PROMPT, "must be at least 1", err);
    out->spec.num_output_tokens = out->spec.max_tokens = (uint32_t)output;
    if (pkv_row_add_span(t, pkv_origin(PKV_ORIGIN_OWN, t->num_read), 0, (uint32_t)prompt, err) < 0)
        return -1;
    return PKV_ROW_GIVEN;
}

const struct pkv_reader pkv_reader_azure = {
    .info = {"azure", "CSV with TIMESTAMP, ContextTokens, GeneratedTokens; dates, the first is 0",
             "Azure Public Dataset, LLM inference traces 2023 and 2024",
             "TIMESTAMP,ContextTokens,GeneratedTokens"},
    .has_header = true, .has_dates = true, .layout = &azure,
    .rate = rate, .begin = begin, .read = read_row,
};
const struct pkv_reader pkv_reader_burstgpt = {
    .info = {"burstgpt", "CSV with Timestamp (s), Request tokens, Response tokens",
             "BurstGPT data set (HPMLL)", "Timestamp,Model,Request tokens,Response tokens,..."},
    .has_header = true, .layout = &burstgpt,
    .rate = rate, .begin = begin, .read = read_row,
};
