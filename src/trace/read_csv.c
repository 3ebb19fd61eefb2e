/*
 * read_csv.c - traces with a header line: when, how many tokens in, how many out.
 *
 * Columns are found by name, so further ones may stand anywhere. Such traces have rows whose
 * request failed and gave no token; they are left out and counted. Prompts have no content: each is
 * text of its own.
 *
 * Sources: Azure LLM inference traces 2023 and 2024 (dates; 2024 may carry an offset from UTC) and
 * BurstGPT (seconds), after the descriptions of the data sets; Vidur's processed traces (seconds,
 * written as binary fractions print; some have no times at all); splitwise-sim's request traces
 * (generate_trace.py: seconds; a batch is always 1). Any other file is read with a layout made of the
 * names that the options give (read_told.c).
 */
#include <string.h>

#include "base/units.h"
#include "trace/date_private.h"
#include "trace/trace_private.h"

#define BIT(role) PKV_CSV_BIT(role)

static int parse_seconds(const char *text, size_t length, int64_t *out, bool *rounded,
                         const char **why)
{
    *rounded = false;
    if (pkv_parse_decimal_ns(text, length, PKV_NS_PER_S, out, why) < 0)
        return -1;
    if (*out >= 0)
        return 0;
    *why = "is negative";
    return -1;
}

static int parse_date(const char *text, size_t length, int64_t *out, bool *rounded,
                      const char **why)
{
    *rounded = false;
    return pkv_parse_date_ns(text, length, out, why);
}

static int parse_near_s(const char *text, size_t length, int64_t *out, bool *rounded,
                        const char **why)
{
    return pkv_csv_parse_time(text, length, PKV_NS_PER_S, out, rounded, why);
}

/* A file that has another program's names and times of its own kind. */
static const char *mend_date(const char *text, size_t length)
{
    int64_t ns;
    const char *ignored;
    if (pkv_parse_decimal_ns(text, length, 1, &ns, &ignored) < 0)
        return "";
    return "; numbers are read with --columns arrival=NAME,prompt=NAME,output=NAME and --time-unit s, ms, "
           "us or ns";
}

static const char *mend_seconds(const char *text, size_t length)
{
    int64_t ns;
    const char *ignored;
    if (pkv_parse_date_ns(text, length, &ns, &ignored) == 0)
        return "; dates are read with --columns arrival=NAME,prompt=NAME,output=NAME --time-unit date";
    if (pkv_parse_decimal_ns(text, length, 1, &ns, &ignored) == 0 && ns > 0)
        return "; other units than s are read with --columns arrival=NAME,prompt=NAME,output=NAME "
               "--time-unit ms, us or ns";
    return pkv_csv_mend_number(text, length);
}

static const struct pkv_csv_layout azure = {
    .columns = {[PKV_CSV_ARRIVAL] = "TIMESTAMP", [PKV_CSV_PROMPT] = "ContextTokens",
                [PKV_CSV_OUTPUT] = "GeneratedTokens"},
    .parse_time = parse_date, .mend_time = mend_date,
};
static const struct pkv_csv_layout burstgpt = {
    .columns = {[PKV_CSV_ARRIVAL] = "Timestamp", [PKV_CSV_PROMPT] = "Request tokens",
                [PKV_CSV_OUTPUT] = "Response tokens", [PKV_CSV_SESSION] = "Session ID"},
    .optional = BIT(PKV_CSV_SESSION),
    .parse_time = parse_seconds, .mend_time = mend_seconds,
};
static const struct pkv_csv_layout vidur = {
    .columns = {[PKV_CSV_ARRIVAL] = "arrived_at", [PKV_CSV_PROMPT] = "num_prefill_tokens",
                [PKV_CSV_OUTPUT] = "num_decode_tokens"},
    .optional = BIT(PKV_CSV_ARRIVAL),
    .parse_time = parse_near_s, .mend_time = mend_seconds,
};
static const struct pkv_csv_layout splitwise = {
    .columns = {[PKV_CSV_ARRIVAL] = "arrival_timestamp", [PKV_CSV_PROMPT] = "prompt_size",
                [PKV_CSV_OUTPUT] = "token_size", [PKV_CSV_ID] = "request_id",
                [PKV_CSV_BATCH] = "batch_size"},
    .optional = BIT(PKV_CSV_ID) | BIT(PKV_CSV_BATCH),
    .parse_time = parse_near_s, .mend_time = mend_seconds,
};

/* How many of its columns are there. */
static int rate(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys)
{
    const struct pkv_csv_layout *layout = reader->layout;
    int found = 0;
    for (size_t role = 0; role <= PKV_CSV_OUTPUT; role++)
        for (size_t i = 0; i < num_keys; i++)
            found += pkv_csv_is(&keys[i], layout->columns[role]);
    return found;
}

int pkv_csv_begin(struct pkv_trace *t, struct pkv_err *err)
{
    const struct pkv_csv_layout *layout = t->layout;
    struct pkv_csv *csv = &t->csv;
    csv->num_columns = csv->num_fields;
    for (size_t role = 0; role < PKV_CSV_ROLE_COUNT; role++) {
        const char *name = layout->columns[role];
        csv->index[role] = PKV_CSV_NONE;
        if (name && pkv_csv_find(t, name, &csv->index[role], err) < 0)
            return -1;
        if (name && csv->index[role] == PKV_CSV_NONE && !(layout->optional & BIT(role)))
            return pkv_csv_missing(t, name, layout->is_told, err);
    }
    t->notes.untimed = csv->index[PKV_CSV_ARRIVAL] == PKV_CSV_NONE;
    return 0;
}

static int begin(struct pkv_trace *t, struct pkv_err *err)
{
    t->layout = t->reader->layout;
    return pkv_csv_begin(t, err);
}

/* The field of a role in the row at hand; NULL = no column has it. */
static const struct pkv_field *field_of(const struct pkv_trace *t, enum pkv_csv_role role)
{
    size_t index = t->csv.index[role];
    return index == PKV_CSV_NONE ? NULL : &t->csv.fields[index];
}

static int bad_field(struct pkv_trace *t, enum pkv_csv_role role, const char *why,
                     const char *mend, struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, role);
    int shown = f->length > 60 ? 60 : (int)f->length;
    return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, f->column, "%.100s '%.*s' %s%s",
                       t->layout->columns[role], shown, f->text, why, mend);
}

/* A whole number that went through a float and came out as 512.0. More zeros may be thousands. */
static size_t without_point_zero(const char *text, size_t length)
{
    return length > 2 && memcmp(text + length - 2, ".0", 2) == 0 ? length - 2 : length;
}

static int read_tokens(struct pkv_trace *t, enum pkv_csv_role role, uint64_t *out,
                       struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, role);
    const char *why;
    if (!f || pkv_parse_u64(f->text, without_point_zero(f->text, f->length), PKV_MAX_LENGTH_TOKENS,
                            out, &why) == 0)
        return 0;
    const char *mend = pkv_csv_mend_number(f->text, f->length);
    if (f->length == 0 && role == PKV_CSV_OUTPUT)
        mend = "; a request that gave no token has 0, and is left out";
    return bad_field(t, role, why, mend, err);
}

static int read_arrival(struct pkv_trace *t, struct pkv_row *out, struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, PKV_CSV_ARRIVAL);
    const char *why;
    bool rounded;
    if (!f)
        return 0;
    if (t->layout->parse_time(f->text, f->length, &out->spec.arrival_ns, &rounded, &why) < 0)
        return bad_field(t, PKV_CSV_ARRIVAL, why,
                         t->layout->mend_time ? t->layout->mend_time(f->text, f->length) : "", err);
    /* The first row of a log that tells times since 1970. */
    if (t->layout->is_told && t->last_arrival_ns == INT64_MIN)
        t->has_dates |= out->spec.arrival_ns >= PKV_CSV_NS_OF_2000;
    t->notes.rows_rounded += rounded ? 1 : 0;
    out->arrival_column = f->column;
    return 0;
}

/* A text of the row into its slot; *out stays NULL where the column is missing or empty. */
static int read_text(struct pkv_trace *t, enum pkv_csv_role role, struct pkv_slot *slot,
                     const char **out, struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, role);
    int found = f ? pkv_slot_set_field(t, slot, f, err) : 0;
    if (found > 0)
        *out = slot->text;
    return found < 0 ? -1 : 0;
}

/* What only some formats have. */
static int read_others(struct pkv_trace *t, struct pkv_request_spec *spec, struct pkv_err *err)
{
    const struct pkv_field *priority = field_of(t, PKV_CSV_PRIORITY);
    uint64_t batch = 1, max_tokens = 0;
    const char *why;
    if (read_text(t, PKV_CSV_ID, &t->id, &spec->id, err) < 0 ||
        read_text(t, PKV_CSV_TENANT, &t->tenant, &spec->tenant, err) < 0 ||
        read_text(t, PKV_CSV_SESSION, &t->session, &spec->session, err) < 0 ||
        read_tokens(t, PKV_CSV_MAX_TOKENS, &max_tokens, err) < 0 ||
        read_tokens(t, PKV_CSV_BATCH, &batch, err) < 0)
        return -1;
    if (priority &&
        pkv_parse_i64(priority->text, priority->length, &spec->priority, &why) < 0)
        return bad_field(t, PKV_CSV_PRIORITY, why, "", err);
    if (batch != 1)
        return bad_field(t, PKV_CSV_BATCH, "is not 1; a row is one request", "", err);
    if (max_tokens > 0)
        spec->max_tokens = (uint32_t)max_tokens;
    return 0;
}

int pkv_csv_read(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
                 struct pkv_err *err)
{
    uint64_t prompt = 0, output = 0;
    if (pkv_row_split(t, text, length, err) < 0 || read_arrival(t, out, err) < 0 ||
        read_tokens(t, PKV_CSV_PROMPT, &prompt, err) < 0 ||
        read_tokens(t, PKV_CSV_OUTPUT, &output, err) < 0)
        return -1;
    if (output == 0)
        return PKV_ROW_NO_OUTPUT;
    if (prompt == 0)
        return bad_field(t, PKV_CSV_PROMPT, "must be at least 1", "", err);
    out->spec.num_output_tokens = out->spec.max_tokens = (uint32_t)output;
    if (read_others(t, &out->spec, err) < 0 ||
        pkv_row_add_own(t, 0, (uint32_t)prompt, err) < 0)
        return -1;
    return PKV_ROW_GIVEN;
}

const struct pkv_reader pkv_reader_azure = {
    .info = {"azure", "CSV with TIMESTAMP, ContextTokens, GeneratedTokens; dates, the first is 0",
             "Azure Public Dataset, LLM inference traces 2023 and 2024",
             "TIMESTAMP,ContextTokens,GeneratedTokens"},
    .has_header = true, .has_dates = true, .layout = &azure,
    .rate = rate, .begin = begin, .read = pkv_csv_read,
};
const struct pkv_reader pkv_reader_burstgpt = {
    .info = {"burstgpt", "CSV with Timestamp (s), Request tokens, Response tokens",
             "BurstGPT data set (HPMLL)", "Timestamp,Model,Request tokens,Response tokens,..."},
    .has_header = true, .layout = &burstgpt,
    .rate = rate, .begin = begin, .read = pkv_csv_read,
};
const struct pkv_reader pkv_reader_vidur = {
    .info = {"vidur", "CSV with arrived_at (s; may be missing), num_prefill_tokens, "
             "num_decode_tokens", "Vidur, data/processed_traces",
             "arrived_at,num_prefill_tokens,num_decode_tokens"},
    .has_header = true, .layout = &vidur,
    .rate = rate, .begin = begin, .read = pkv_csv_read,
};
const struct pkv_reader pkv_reader_splitwise = {
    .info = {"splitwise", "CSV with arrival_timestamp (s), prompt_size, token_size",
             "splitwise-sim, generate_trace.py",
             "request_id,...,arrival_timestamp,...,prompt_size,token_size"},
    .has_header = true, .layout = &splitwise,
    .rate = rate, .begin = begin, .read = pkv_csv_read,
};
