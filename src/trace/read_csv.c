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
 * (generate_trace.py: seconds; a batch is always 1). Any other file is read by the names that the
 * options give.
 */
#include <string.h>

#include "base/alloc.h"
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

#define PARSER(name, unit_ns)                                                                 \
    static int name(const char *text, size_t length, int64_t *out, bool *rounded,             \
                    const char **why)                                                         \
    {                                                                                         \
        return pkv_csv_parse_time(text, length, unit_ns, out, rounded, why);                  \
    }
PARSER(parse_near_s, PKV_NS_PER_S)
PARSER(parse_near_ms, PKV_NS_PER_MS)
PARSER(parse_near_us, 1000)
PARSER(parse_near_ns, 1)

static const struct pkv_csv_layout azure = {
    .columns = {[PKV_CSV_ARRIVAL] = "TIMESTAMP", [PKV_CSV_PROMPT] = "ContextTokens",
                [PKV_CSV_OUTPUT] = "GeneratedTokens"},
    .parse_time = parse_date,
};
static const struct pkv_csv_layout burstgpt = {
    .columns = {[PKV_CSV_ARRIVAL] = "Timestamp", [PKV_CSV_PROMPT] = "Request tokens",
                [PKV_CSV_OUTPUT] = "Response tokens", [PKV_CSV_SESSION] = "Session ID"},
    .optional = BIT(PKV_CSV_SESSION),
    .parse_time = parse_seconds,
};
static const struct pkv_csv_layout vidur = {
    .columns = {[PKV_CSV_ARRIVAL] = "arrived_at", [PKV_CSV_PROMPT] = "num_prefill_tokens",
                [PKV_CSV_OUTPUT] = "num_decode_tokens"},
    .optional = BIT(PKV_CSV_ARRIVAL),
    .parse_time = parse_near_s,
};
static const struct pkv_csv_layout splitwise = {
    .columns = {[PKV_CSV_ARRIVAL] = "arrival_timestamp", [PKV_CSV_PROMPT] = "prompt_size",
                [PKV_CSV_OUTPUT] = "token_size", [PKV_CSV_ID] = "request_id",
                [PKV_CSV_BATCH] = "batch_size"},
    .optional = BIT(PKV_CSV_ID) | BIT(PKV_CSV_BATCH),
    .parse_time = parse_near_s,
};

/* Columns that the options name, for one trace. */
struct told_layout {
    struct pkv_csv_layout layout;
    char *text;                  /* owned; the names point into it */
};

static const struct pkv_csv_layout *layout_of(const struct pkv_trace *t)
{
    const struct told_layout *told = t->state;
    return t->reader->layout ? t->reader->layout : &told->layout;
}

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

static int find_column(struct pkv_trace *t, size_t role, struct pkv_err *err)
{
    const struct pkv_csv_layout *layout = layout_of(t);
    const char *name = layout->columns[role];
    struct pkv_csv *csv = &t->csv;
    csv->index[role] = PKV_CSV_NONE;
    for (size_t i = 0; name && i < csv->num_fields; i++) {
        if (!pkv_csv_is(&csv->fields[i], name))
            continue;
        if (csv->index[role] != PKV_CSV_NONE)
            return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, csv->fields[i].column,
                               "column '%s' stands here a second time", name);
        csv->index[role] = i;
    }
    if (name && csv->index[role] == PKV_CSV_NONE && !(layout->optional & BIT(role)))
        return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "column '%s' is missing",
                           name);
    return 0;
}

static int begin(struct pkv_trace *t, struct pkv_err *err)
{
    t->csv.num_columns = t->csv.num_fields;
    for (size_t role = 0; role < PKV_CSV_ROLE_COUNT; role++)
        if (find_column(t, role, err) < 0)
            return -1;
    t->notes.untimed = t->csv.index[PKV_CSV_ARRIVAL] == PKV_CSV_NONE;
    return 0;
}

/* The field of a role in the row at hand; NULL = no column has it. */
static const struct pkv_field *field_of(const struct pkv_trace *t, enum pkv_csv_role role)
{
    size_t index = t->csv.index[role];
    return index == PKV_CSV_NONE ? NULL : &t->csv.fields[index];
}

static int bad_field(struct pkv_trace *t, enum pkv_csv_role role, const char *why,
                     struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, role);
    int shown = f->length > 60 ? 60 : (int)f->length;
    return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, f->column, "%s '%.*s' %s",
                       layout_of(t)->columns[role], shown, f->text, why);
}

static int read_tokens(struct pkv_trace *t, enum pkv_csv_role role, uint64_t *out,
                       struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, role);
    const char *why;
    if (f && pkv_parse_u64(f->text, f->length, PKV_MAX_LENGTH_TOKENS, out, &why) < 0)
        return bad_field(t, role, why, err);
    return 0;
}

static int read_arrival(struct pkv_trace *t, struct pkv_row *out, struct pkv_err *err)
{
    const struct pkv_field *f = field_of(t, PKV_CSV_ARRIVAL);
    const char *why;
    bool rounded;
    if (!f)
        return 0;
    if (layout_of(t)->parse_time(f->text, f->length, &out->spec.arrival_ns, &rounded, &why) < 0)
        return bad_field(t, PKV_CSV_ARRIVAL, why, err);
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
        return bad_field(t, PKV_CSV_PRIORITY, why, err);
    if (batch != 1)
        return bad_field(t, PKV_CSV_BATCH, "is not 1; a row is one request", err);
    if (max_tokens > 0)
        spec->max_tokens = (uint32_t)max_tokens;
    return 0;
}

static int read_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_row *out,
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
        return bad_field(t, PKV_CSV_PROMPT, "must be at least 1", err);
    out->spec.num_output_tokens = out->spec.max_tokens = (uint32_t)output;
    if (read_others(t, &out->spec, err) < 0 ||
        pkv_row_add_own(t, 0, (uint32_t)prompt, err) < 0)
        return -1;
    return PKV_ROW_GIVEN;
}

/* --- columns that the options name ----------------------------------------------------------- */

static const char *const role_words[] = {
#define PKV_NAME(sym, word) [sym] = word,
    PKV_CSV_ROLES(PKV_NAME)
#undef PKV_NAME
};

/* One "role=name", cut out of the text; returns what follows, or NULL with an error. */
static char *take_told(struct told_layout *told, char *at, struct pkv_err *err)
{
    char *comma = strchr(at, ','), *equals = strchr(at, '=');
    char *next = comma ? comma + 1 : at + strlen(at);
    if (comma)
        *comma = '\0';
    if (!equals || equals > next || !equals[1]) {
        pkv_fail(err, PKV_ERR_INPUT, "columns: '%s' is not of the form ROLE=NAME", at);
        return NULL;
    }
    *equals = '\0';
    for (size_t role = 0; role < PKV_CSV_BATCH; role++)
        if (strcmp(role_words[role], at) == 0 && !told->layout.columns[role]) {
            told->layout.columns[role] = equals + 1;
            return next;
        }
    pkv_fail(err, PKV_ERR_INPUT, "columns: '%s' is unknown or stands there twice (arrival, prompt, "
             "output, id, tenant, session, priority, max_tokens)", at);
    return NULL;
}

static int set_time_unit(struct pkv_trace *t, struct told_layout *told, struct pkv_err *err)
{
    static const struct {
        const char *word;
        int (*parse)(const char *text, size_t length, int64_t *out, bool *rounded,
                     const char **why);
    } units[] = {{"s", parse_near_s}, {"ms", parse_near_ms}, {"us", parse_near_us},
                 {"ns", parse_near_ns}, {"date", parse_date}};
    const char *given = t->options.time_unit ? t->options.time_unit : units[0].word;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].word, given) == 0) {
            told->layout.parse_time = units[i].parse;
            t->has_dates = units[i].parse == parse_date;
            return 0;
        }
    return pkv_fail(err, PKV_ERR_INPUT, "time unit '%s' is unknown (s, ms, us, ns, date)", given);
}

static int begin_told(struct pkv_trace *t, struct pkv_err *err)
{
    struct told_layout *told = t->state = pkv_alloc(1, sizeof *told, err);
    if (!told || !(told->text = pkv_strdup(t->options.columns, err)) ||
        set_time_unit(t, told, err) < 0)
        return -1;
    for (char *at = told->text; *at;)
        if (!(at = take_told(told, at, err)))
            return -1;
    if (!told->layout.columns[PKV_CSV_PROMPT] || !told->layout.columns[PKV_CSV_OUTPUT])
        return pkv_fail(err, PKV_ERR_INPUT, "columns: prompt=NAME and output=NAME are required");
    return begin(t, err);
}

static void finish_told(void *state)
{
    struct told_layout *told = state;
    if (!told)
        return;
    pkv_free(told->text);
    pkv_free(told);
}

static int rate_never(const struct pkv_reader *reader, const struct pkv_field *keys,
                      size_t num_keys)
{
    (void)reader;
    (void)keys;
    (void)num_keys;
    return 0;
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
const struct pkv_reader pkv_reader_vidur = {
    .info = {"vidur", "CSV with arrived_at (s; may be missing), num_prefill_tokens, "
             "num_decode_tokens", "Vidur, data/processed_traces",
             "arrived_at,num_prefill_tokens,num_decode_tokens"},
    .has_header = true, .layout = &vidur,
    .rate = rate, .begin = begin, .read = read_row,
};
const struct pkv_reader pkv_reader_splitwise = {
    .info = {"splitwise", "CSV with arrival_timestamp (s), prompt_size, token_size",
             "splitwise-sim, generate_trace.py",
             "request_id,...,arrival_timestamp,...,prompt_size,token_size"},
    .has_header = true, .layout = &splitwise,
    .rate = rate, .begin = begin, .read = read_row,
};
const struct pkv_reader pkv_reader_csv = {
    .info = {"csv", "any CSV with a header whose columns are named: arrival, prompt, output, ...",
             "--columns and --time-unit", "any names"},
    .has_header = true,
    .rate = rate_never, .begin = begin_told, .read = read_row, .finish = finish_told,
};
