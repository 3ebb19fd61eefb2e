/*
 * waste_text.c - what waste.c measured, as a table and as JSON.
 *
 * Shares are divided in integers, digit by digit: no floating point, no locale.
 */
#include "report/report_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_US 1000
#define DECIMALS 17u
#define LABEL_COLUMNS 30
#define CELL_COLUMNS 14

/* "20ms": in the largest unit of which it is a whole number. */
static void add_short_time(struct pkv_text *t, int64_t ns)
{
    static const struct { int64_t ns; const char *name; } units[] = {
        {1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t i = 0;
    while (ns % units[i].ns != 0)
        i++;
    pkv_text_fmt(t, "%" PRId64 "%s", ns / units[i].ns, units[i].name);
}

static bool is_shown(const struct pkv_waste *w, int layout)
{
    return layout != PKV_WASTE_FIXED || w->config.fixed_max > 0;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void add_us(struct pkv_text *t, const char *name, int64_t ns)
{
    pkv_text_fmt(t, ",\n    \"%s\": ", name);
    pkv_text_ratio(t, ns, NS_PER_US, 3);
}

static void add_peak(struct pkv_text *t, const char *name, const struct pkv_peak *peak)
{
    pkv_text_fmt(t, ",\n    \"peak_%s\": %" PRIu64 ",\n    \"peak_%s_at_us\": ", name, peak->value,
                 name);
    pkv_text_ratio(t, peak->at_ns, NS_PER_US, 3);
}

static void add_layout_json(struct pkv_text *t, const struct pkv_waste *w,
                            const struct pkv_waste_sweep *s, int layout)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PKV_WASTE_LAYOUTS(PKV_NAME)};
#undef PKV_NAME
    if (layout == PKV_WASTE_PAGED) {
        pkv_text_fmt(t, ",\n    \"paged_%" PRIu32 "_used_fraction\": ", w->config.block_size);
    } else {
        pkv_text_fmt(t, ",\n    \"reserve_%s_peak_tokens\": %" PRIu64, names[layout],
                     s->held[layout].value);
        pkv_text_fmt(t, ",\n    \"reserve_%s_used_fraction\": ", names[layout]);
    }
    pkv_text_ratio(t, w->stored, w->held[layout], DECIMALS);
}

static void add_sweep_json(struct pkv_text *t, const struct pkv_waste *w,
                           const struct pkv_waste_sweep *s)
{
    char blocks[32];
    snprintf(blocks, sizeof blocks, "blocks_%" PRIu32, w->config.block_size);
    pkv_text_add(t, ",\n  \"tbt_");
    add_short_time(t, s->token_ns);
    pkv_text_fmt(t, "\": {\n    \"peak_running\": %" PRIu64, s->running.value);
    add_us(t, "peak_running_at_us", s->running.at_ns);
    add_us(t, "end_us", s->end_ns);
    pkv_text_add(t, ",\n    \"mean_running\": ");
    pkv_text_ratio(t, (pkv_i128)w->num_tokens * s->token_ns, s->end_ns, DECIMALS);
    add_peak(t, "tokens", &s->tokens);
    add_peak(t, blocks, &s->blocks);
    for (int i = 0; i < PKV_WASTE_LAYOUT_COUNT; i++)
        if (is_shown(w, i))
            add_layout_json(t, w, s, i);
    pkv_text_add(t, "\n  }");
}

char *pkv_waste_json(const struct pkv_waste *w, struct pkv_err *err)
{
    struct pkv_text t = {0};
    pkv_text_fmt(&t, "{\n  \"rows\": %" PRIu64, w->num_rows);
    if (w->num_answers > w->num_rows)
        pkv_text_fmt(&t, ",\n  \"answers\": %" PRIu64, w->num_answers);
    pkv_text_add(&t, ",\n  \"last_arrival_us\": ");
    pkv_text_ratio(&t, w->last_arrival_ns, NS_PER_US, 3);
    pkv_text_fmt(&t, ",\n  \"block_size\": %" PRIu32, w->config.block_size);
    if (w->config.fixed_max > 0)
        pkv_text_fmt(&t, ",\n  \"fixed_max\": %" PRIu32 ",\n  \"longer_than_fixed_max\": %" PRIu64,
                     w->config.fixed_max, w->num_longer);
    for (size_t i = 0; i < w->config.num_token_times; i++)
        add_sweep_json(&t, w, &w->sweeps[i]);
    pkv_text_add(&t, "\n}\n");
    return take_text(&t, err);
}

/* --- the table ------------------------------------------------------------------------------- */

static void cell(struct pkv_text *t, struct pkv_text *content)
{
    pkv_text_fmt(t, "%*s", CELL_COLUMNS, content->text ? content->text : "");
    t->failed |= content->failed;
    pkv_text_free(content);
}

static void count_cell(struct pkv_text *t, uint64_t n)
{
    struct pkv_text content = {0};
    add_grouped(&content, n);
    cell(t, &content);
}

/* Rounded to two decimals. */
static void rounded_cell(struct pkv_text *t, pkv_i128 num, pkv_i128 den, const char *unit)
{
    struct pkv_text content = {0};
    uint64_t hundredths = den > 0 ? (uint64_t)((num * 200 + den) / (den * 2)) : 0;
    add_grouped(&content, hundredths / 100);
    pkv_text_fmt(&content, ".%02u%s", (unsigned)(hundredths % 100), unit);
    cell(t, &content);
}

static void label(struct pkv_text *t, const struct pkv_waste *w, int layout)
{
    struct pkv_text name = {0};
    switch ((enum pkv_waste_layout)layout) {
    case PKV_WASTE_PAGED:
        pkv_text_fmt(&name, "  paged, blocks of %" PRIu32, w->config.block_size);
        break;
    case PKV_WASTE_ORACLE:
        pkv_text_add(&name, "  reserved, true length");
        break;
    case PKV_WASTE_POW2:
        pkv_text_add(&name, "  reserved, power of two");
        break;
    case PKV_WASTE_FIXED:
        pkv_text_add(&name, "  reserved, fixed ");
        add_grouped(&name, w->config.fixed_max);
        break;
    case PKV_WASTE_LAYOUT_COUNT:
        break;
    }
    pkv_text_fmt(t, "%-*s", LABEL_COLUMNS, name.text ? name.text : "");
    t->failed |= name.failed;
    pkv_text_free(&name);
}

static void add_running(struct pkv_text *t, const struct pkv_waste *w)
{
    size_t num = w->config.num_token_times;
    pkv_text_fmt(t, "\n%-*s", LABEL_COLUMNS, "a token takes");
    for (size_t i = 0; i < num; i++) {
        struct pkv_text time = {0};
        add_short_time(&time, w->sweeps[i].token_ns);
        cell(t, &time);
    }
    pkv_text_fmt(t, "\n%-*s", LABEL_COLUMNS, "requests at once, most");
    for (size_t i = 0; i < num; i++)
        count_cell(t, w->sweeps[i].running.value);
    pkv_text_fmt(t, "\n%-*s", LABEL_COLUMNS, "requests at once, mean");
    for (size_t i = 0; i < num; i++)
        rounded_cell(t, (pkv_i128)w->num_tokens * w->sweeps[i].token_ns, w->sweeps[i].end_ns, "");
    pkv_text_fmt(t, "\n%-*s", LABEL_COLUMNS, "tokens stored, most");
    for (size_t i = 0; i < num; i++)
        count_cell(t, w->sweeps[i].tokens.value);
    pkv_text_fmt(t, "\n%-*s", LABEL_COLUMNS, "blocks held, most");
    for (size_t i = 0; i < num; i++)
        count_cell(t, w->sweeps[i].blocks.value);
}

static void add_layouts(struct pkv_text *t, const struct pkv_waste *w)
{
    pkv_text_add(t, "\n\npositions held, most\n");
    for (int i = 0; i < PKV_WASTE_LAYOUT_COUNT; i++) {
        if (!is_shown(w, i))
            continue;
        label(t, w, i);
        for (size_t k = 0; k < w->config.num_token_times; k++)
            count_cell(t, w->sweeps[k].held[i].value);
        pkv_text_add(t, "\n");
    }
    pkv_text_add(t, "\nshare of what is held that is used, whatever a token takes\n");
    for (int i = 0; i < PKV_WASTE_LAYOUT_COUNT; i++) {
        if (!is_shown(w, i))
            continue;
        label(t, w, i);
        rounded_cell(t, w->stored * 100, w->held[i], " %");
        pkv_text_add(t, "\n");
    }
}

char *pkv_waste_table(const struct pkv_waste *w, const char *name, struct pkv_err *err)
{
    struct pkv_text t = {0};
    pkv_text_visible(&t, name, strlen(name));
    pkv_text_add(&t, ": ");
    add_counted(&t, w->num_rows, "request");
    if (w->num_answers > w->num_rows) {
        pkv_text_add(&t, " for ");
        add_counted(&t, w->num_answers, "answer");
        pkv_text_add(&t, " (each counts as a request of its own below)");
    }
    pkv_text_add(&t, ", the last one after ");
    add_time(&t, w->last_arrival_ns);
    pkv_text_add(&t, "; each runs as soon as it comes\n");
    add_running(&t, w);
    add_layouts(&t, w);
    if (w->num_longer > 0) {
        pkv_text_add(&t, "\n");
        add_counted(&t, w->num_longer, "request");
        pkv_text_add(&t, " longer than ");
        add_grouped(&t, w->config.fixed_max);
        pkv_text_add(&t, " positions held as many as needed\n");
    }
    return take_text(&t, err);
}
