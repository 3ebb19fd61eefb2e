/*
 * read_told.c - any CSV: the options tell which column says what, and the unit of the arrivals.
 *
 * Arrivals may be times since 1970, as logs have them. A first one that lies after 2000 is one, as no
 * trace lasts thirty years; times then count from the first row, as those of dates do. One after 2100
 * is in a smaller unit than was told.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/units.h"
#include "trace/date_private.h"
#include "trace/trace_private.h"

#define ROLES_TOLD PKV_CSV_BATCH                    /* those before it can be told */
#define NS_OF_2100 (INT64_C(4102444800) * PKV_NS_PER_S)

struct told_layout {
    struct pkv_csv_layout layout;
    char *text;                  /* owned; the names point into it */
};

static const struct time_unit {
    const char *word;
    int64_t ns;                  /* 0 = dates */
} units[] = {{"s", PKV_NS_PER_S}, {"ms", PKV_NS_PER_MS}, {"us", 1000}, {"ns", 1}, {"date", 0}};
#define NUM_UNITS (sizeof units / sizeof *units)

static int parse_told(const char *text, size_t length, int64_t unit_ns, int64_t *out, bool *rounded,
                      const char **why)
{
    if (pkv_csv_parse_time(text, length, unit_ns, out, rounded, why) < 0)
        return -1;
    if (*out < NS_OF_2100)
        return 0;
    *why = "lies after the year 2100, or 130 years after the first";
    return -1;
}

/* "; in ms it lies in 2023 (--time-unit ms)" for the unit that makes it a time of our days. */
static const char *mend_time(const char *text, size_t length)
{
    static _Thread_local char phrase[128];
    const char *ignored;
    int64_t ns;
    bool rounded;
    if (pkv_parse_date_ns(text, length, &ns, &ignored) == 0)
        return "; dates are read with --time-unit date";
    for (size_t i = 0; i < NUM_UNITS && units[i].ns > 0; i++)
        if (pkv_csv_parse_time(text, length, units[i].ns, &ns, &rounded, &ignored) == 0 &&
            ns >= PKV_CSV_NS_OF_2000 && ns < NS_OF_2100) {
            snprintf(phrase, sizeof phrase, "; in %s since 1970 it lies in %d: --time-unit %s",
                     units[i].word, (int)(1970 + ns / PKV_NS_PER_S / 31556952), units[i].word);
            return phrase;
        }
    return pkv_csv_mend_number(text, length);
}

static int parse_date(const char *text, size_t length, int64_t *out, bool *rounded,
                      const char **why)
{
    *rounded = false;
    return pkv_parse_date_ns(text, length, out, why);
}

/* A number where a date should be. */
static const char *mend_date(const char *text, size_t length)
{
    int64_t ns;
    const char *ignored;
    if (pkv_parse_decimal_ns(text, length, 1, &ns, &ignored) < 0)
        return "";
    const char *mend = mend_time(text, length);
    return *mend ? mend : "; numbers are read with --time-unit s, ms, us or ns";
}

#define PARSER(name, unit_ns)                                                                 \
    static int name(const char *text, size_t length, int64_t *out, bool *rounded,             \
                    const char **why)                                                         \
    {                                                                                         \
        return parse_told(text, length, unit_ns, out, rounded, why);                          \
    }
PARSER(parse_s, PKV_NS_PER_S)
PARSER(parse_ms, PKV_NS_PER_MS)
PARSER(parse_us, 1000)
PARSER(parse_ns, 1)

static int set_time_unit(struct pkv_trace *t, struct told_layout *told, struct pkv_err *err)
{
    static int (*const parsers[NUM_UNITS])(const char *text, size_t length, int64_t *out,
                                           bool *rounded, const char **why) = {
        parse_s, parse_ms, parse_us, parse_ns, parse_date,
    };
    const char *given = t->options.time_unit ? t->options.time_unit : units[0].word;
    for (size_t i = 0; i < NUM_UNITS; i++)
        if (strcmp(units[i].word, given) == 0) {
            told->layout.parse_time = parsers[i];
            told->layout.mend_time = units[i].ns > 0 ? mend_time : mend_date;
            t->has_dates = units[i].ns == 0;
            return 0;
        }
    return pkv_fail(err, PKV_ERR_INPUT, "time unit '%.100s' is unknown; --time-unit (traffic.time_unit) "
                    "is s, ms, us, ns or date", given);
}

/* --- the list of columns ---------------------------------------------------------------------- */

#define LIST "--columns (traffic.columns)"

static const char *const role_words[] = {
#define PKV_NAME(sym, word) [sym] = word,
    PKV_CSV_ROLES(PKV_NAME)
#undef PKV_NAME
};

static int fail_role(const char *word, struct pkv_err *err)
{
    char hint[PKV_SUGGESTION_SIZE];
    return pkv_fail(err, PKV_ERR_INPUT, LIST ": '%.100s' is unknown%s (known: arrival, prompt, output, "
                    "id, tenant, session, priority, max_tokens)", word,
                    pkv_suggest(hint, word, "", role_words, ROLES_TOLD));
}

/* One "role=name", cut out of the text; returns what follows, or NULL with an error. */
static char *take_told(struct told_layout *told, char *at, struct pkv_err *err)
{
    at += strspn(at, " ");
    char *comma = strchr(at, ','), *equals = strchr(at, '=');
    char *next = comma ? comma + 1 : at + strlen(at);
    if (comma)
        *comma = '\0';
    if (!equals || equals > next || !equals[1]) {
        pkv_fail(err, PKV_ERR_INPUT, LIST ": '%.100s' is not of the form ROLE=NAME, like prompt=tokens_in",
                 at);
        return NULL;
    }
    *equals = '\0';
    for (size_t role = 0; role < ROLES_TOLD; role++) {
        const char **column = &told->layout.columns[role];
        if (strcmp(role_words[role], at) != 0)
            continue;
        if (*column) {
            pkv_fail(err, PKV_ERR_INPUT, LIST ": '%s' stands there twice, as '%.100s' and '%.100s'", at,
                     *column, equals + 1);
            return NULL;
        }
        *column = equals + 1;
        return next;
    }
    fail_role(at, err);
    return NULL;
}

static int check_required(const struct told_layout *told, struct pkv_err *err)
{
    bool prompt = told->layout.columns[PKV_CSV_PROMPT], output = told->layout.columns[PKV_CSV_OUTPUT];
    if (prompt && output)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, LIST ": %s missing", prompt ? "output=NAME is"
                    : output ? "prompt=NAME is" : "prompt=NAME and output=NAME are");
}

static int count_told(const void *ctx, const struct pkv_field *names, size_t num)
{
    const struct told_layout *told = ctx;
    int known = 0;
    for (size_t role = 0; role < ROLES_TOLD; role++)
        for (size_t i = 0; i < num && told->layout.columns[role]; i++)
            known += pkv_csv_is(&names[i], told->layout.columns[role]);
    return known;
}

static int begin(struct pkv_trace *t, struct pkv_err *err)
{
    struct told_layout *told = t->state = pkv_alloc(1, sizeof *told, err);
    if (!told || !(told->text = pkv_strdup(t->options.columns, err)) ||
        set_time_unit(t, told, err) < 0)
        return -1;
    told->layout.is_told = true;
    for (char *at = told->text; *at;)
        if (!(at = take_told(told, at, err)))
            return -1;
    t->layout = &told->layout;
    if (check_required(told, err) < 0 ||
        pkv_csv_split_head(&t->csv, pkv_trace_path(t), t->lines.number, t->head, t->head_length,
                           count_told, told, err) < 0)
        return -1;
    return pkv_csv_begin(t, err);
}

static void finish(void *state)
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

const struct pkv_reader pkv_reader_csv = {
    .info = {"csv", "any CSV with a header whose columns are named: arrival, prompt, output, ...",
             "--columns and --time-unit", "any names"},
    .has_header = true,
    .rate = rate_never, .begin = begin, .read = pkv_csv_read, .finish = finish,
};
