/*
 * trace_info_text.c - what trace_info.c gathered, as a page and as JSON.
 *
 * JSON divides in integers, digit by digit; only means over rows and the spread of gaps, which are
 * no ratios of whole numbers, are printed from doubles, with all their digits.
 */
#include "report/report_private.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000
#define DECIMALS 17u

static const char *rule_word(enum pkv_prefix_rule rule)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const words[] = {PKV_PREFIX_RULES(PKV_NAME)};
#undef PKV_NAME
    return words[rule];
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void add_ratio(struct pkv_text *t, const char *before, uint64_t num, uint64_t den)
{
    pkv_text_add(t, before);
    pkv_text_ratio(t, num, den, DECIMALS);
}

static void add_ms(struct pkv_text *t, const char *name, int64_t ns)
{
    pkv_text_fmt(t, ",\n    \"%s\": ", name);
    pkv_text_ratio(t, ns, NS_PER_MS, 6);
}

static void add_lengths(struct pkv_text *t, const char *name, const struct pkv_lengths_info *l)
{
    pkv_text_fmt(t, ",\n  \"%s\": {\"count\": %" PRIu64 ", \"sum\": %" PRIu64 ", \"mean\": ", name,
                 l->num, l->sum);
    pkv_text_ratio(t, l->sum, l->num, DECIMALS);
    pkv_text_fmt(t, ", \"p50\": %" PRIu32 ", \"p90\": %" PRIu32 ", \"p99\": %" PRIu32
                 ", \"max\": %" PRIu32 "}", l->p50, l->p90, l->p99, l->max);
}

static void add_hits(struct pkv_text *t, const struct pkv_prefix_hits *h, const char *indent)
{
    pkv_text_fmt(t, "%s\"block_refs\": %" PRIu64 ", \"hit_blocks\": %" PRIu64, indent, h->blocks,
                 h->hit_blocks);
    add_ratio(t, ", \"hit_ratio_blocks\": ", h->hit_blocks, h->blocks);
    pkv_text_fmt(t, ",%s\"hit_tokens\": %" PRIu64, indent, h->hit_tokens);
    add_ratio(t, ", \"hit_ratio_tokens\": ", h->hit_tokens, h->tokens);
}

static void add_sharing_json(struct pkv_text *t, const struct pkv_trace_info *info)
{
    pkv_text_fmt(t, ",\n  \"block_size\": %" PRIu32 ",\n  \"unique_blocks\": %" PRIu64
                 ",\n  \"infinite\": {", info->block_size, info->distinct_blocks);
    add_hits(t, &info->hits[PKV_PREFIX_ALL], "\n    ");
    pkv_text_fmt(t, ",\n    \"mean_of_per_request_token_ratio\": %.17g,\n"
                 "    \"mean_of_per_request_block_ratio\": %.17g,\n"
                 "    \"rows_with_any_hit\": %" PRIu64 ", \"rows_fully_hit\": %" PRIu64,
                 info->mean_row_hit_tokens, info->mean_row_hit_blocks, info->shared.num,
                 info->rows_fully_hit);
    for (int rule = PKV_PREFIX_FULL; rule < PKV_PREFIX_RULE_COUNT; rule++) {
        pkv_text_fmt(t, ",\n    \"%s\": {", rule_word((enum pkv_prefix_rule)rule));
        add_hits(t, &info->hits[rule], "\n      ");
        pkv_text_add(t, "}");
    }
    pkv_text_add(t, "}");
    add_lengths(t, "shared_tokens", &info->shared);
}

static void add_arrivals_json(struct pkv_text *t, const struct pkv_trace_info *info)
{
    int64_t span = info->last_ns - info->first_ns;
    pkv_text_fmt(t, ",\n  \"arrivals\": {\n    \"timed_rows\": %" PRIu64, info->timed_rows);
    add_ms(t, "first_ms", info->first_ns);
    add_ms(t, "last_ms", info->last_ns);
    pkv_text_add(t, ",\n    \"rate_per_s\": ");
    pkv_text_ratio(t, (pkv_i128)info->timed_rows * NS_PER_S, span, DECIMALS);
    pkv_text_fmt(t, ",\n    \"gap_mean_ms\": %.17g, \"gap_cv\": %.17g,\n"
                 "    \"distinct_times\": %" PRIu64 ", \"most_at_once\": %" PRIu64 ",\n"
                 "    \"bin_ms\": ", info->gap_mean_ns / NS_PER_MS, info->gap_cv,
                 info->distinct_times, info->most_at_once);
    pkv_text_ratio(t, info->bin_ns, NS_PER_MS, 6);
    pkv_text_add(t, ", \"bins\": [");
    for (uint32_t i = 0; i < info->num_bins; i++)
        pkv_text_fmt(t, "%s%" PRIu32, i ? "," : "", info->arrivals[i]);
    pkv_text_add(t, "]}");
}

static void add_peaks_json(struct pkv_text *t, const struct pkv_trace_info *info)
{
    pkv_text_add(t, ",\n  \"unlimited\": {\n    \"token_ms\": ");
    pkv_text_ratio(t, info->token_ns, NS_PER_MS, 6);
    pkv_text_fmt(t, ",\n    \"peak_running\": %" PRIu64, info->peak_running.value);
    add_ms(t, "peak_running_at_ms", info->peak_running.at_ns);
    pkv_text_fmt(t, ",\n    \"peak_tokens\": %" PRIu64, info->peak_tokens.value);
    add_ms(t, "peak_tokens_at_ms", info->peak_tokens.at_ns);
    pkv_text_add(t, "}");
}

static void add_quirks_json(struct pkv_text *t, const struct pkv_trace_notes *n)
{
    pkv_text_fmt(t, ",\n  \"quirks\": {\n    \"skipped_no_output\": %" PRIu64
                 ", \"ids_mended\": %" PRIu64 ", \"times_rounded\": %" PRIu64
                 ",\n    \"fields_left_out\": %" PRIu64 ", \"blank_lines\": %" PRIu64
                 ",\n    \"untimed\": %s, \"crlf\": %s, \"byte_order_mark\": %s, \"open_end\": %s}",
                 n->skipped_no_output, n->ids_padded, n->rows_rounded, n->fields_left_out,
                 n->blank_lines, n->untimed ? "true" : "false", n->has_crlf ? "true" : "false",
                 n->has_bom ? "true" : "false", n->has_open_end ? "true" : "false");
}

char *pkv_trace_info_json(const struct pkv_trace_info *info, const struct pkv_trace *trace,
                          struct pkv_err *err)
{
    struct pkv_text t = {0};
    pkv_text_fmt(&t, "{\n  \"format\": \"%s\",\n  \"rows\": %" PRIu64,
                 pkv_trace_notes(trace)->format, info->rows);
    add_arrivals_json(&t, info);
    add_lengths(&t, "prompt_tokens", &info->prompt);
    add_lengths(&t, "output_tokens", &info->output);
    add_sharing_json(&t, info);
    pkv_text_fmt(&t, ",\n  \"sessions\": {\"sessions\": %" PRIu64 ", \"rows\": %" PRIu64
                 ", \"most_rows\": %" PRIu64 ", \"rows_that_follow\": %" PRIu64
                 "},\n  \"tenants\": %" PRIu64, info->sessions, info->rows_in_sessions,
                 info->most_turns, info->rows_that_follow, info->tenants);
    add_peaks_json(&t, info);
    add_quirks_json(&t, pkv_trace_notes(trace));
    pkv_text_add(&t, "\n}\n");
    return take_text(&t, err);
}

/* --- for people ------------------------------------------------------------------------------ */

/* A whole number of hundredths, so that the last digit is rounded to nearest. */
static void add_mean(struct pkv_text *t, uint64_t sum, uint64_t num)
{
    pkv_text_ratio(t, ((pkv_i128)sum * 200 + num) / (2 * (pkv_i128)(num ? num : 1)), 100, 2);
}

static void add_hundredths(struct pkv_text *t, double value)
{
    pkv_text_ratio(t, (pkv_i128)(value * 100 + 0.5), 100, 2);
}

static void item(struct page *p, const char *name, struct pkv_text *t)
{
    page_item(p, name, t->text ? t->text : "");
    p->text.failed |= t->failed;
    pkv_text_clear(t);
}

static void page_arrivals(struct page *p, struct pkv_text *t, const struct pkv_trace_info *info,
                          const struct pkv_trace_notes *notes)
{
    int64_t span = info->last_ns - info->first_ns;
    if (notes->untimed) {
        pkv_text_add(t, "the file tells no times: all come at 0");
        item(p, "arrivals", t);
        return;
    }
    pkv_text_add(t, "from ");
    add_time(t, info->first_ns);
    pkv_text_add(t, " to ");
    add_time(t, info->last_ns);
    if (span > 0) {
        pkv_text_add(t, "; ");
        add_rate(t, (double)info->timed_rows * NS_PER_S / (double)span);
        pkv_text_add(t, " a second");
    }
    if (info->timed_rows < info->rows) {
        pkv_text_add(t, "; arrivals, burstiness and peak are of the ");
        add_counted(t, info->timed_rows, "row");
        pkv_text_add(t, " with a time, not of those that follow others");
    }
    item(p, "arrivals", t);
    if (span <= 0)
        return;
    pkv_text_add(t, "cv of the gaps ");
    add_hundredths(t, info->gap_cv);
    pkv_text_add(t, " (a Poisson process has 1); ");
    add_counted(t, info->distinct_times, "different time");
    pkv_text_add(t, ", at most ");
    add_counted(t, info->most_at_once, "row");
    pkv_text_add(t, " at one");
    item(p, "burstiness", t);
}

static void page_lengths(struct page *p, struct pkv_text *t, const char *name,
                         const struct pkv_lengths_info *l)
{
    add_counted(t, l->sum, "token");
    pkv_text_add(t, "; mean ");
    add_mean(t, l->sum, l->num);
    pkv_text_add(t, ", p50 ");
    add_grouped(t, l->p50);
    pkv_text_add(t, ", p90 ");
    add_grouped(t, l->p90);
    pkv_text_add(t, ", p99 ");
    add_grouped(t, l->p99);
    pkv_text_add(t, ", max ");
    add_grouped(t, l->max);
    item(p, name, t);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void page_sharing(struct page *p, struct pkv_text *t, const struct pkv_trace_info *info)
{
    const struct pkv_prefix_hits *all = &info->hits[PKV_PREFIX_ALL];
    const struct pkv_prefix_hits *engine = &info->hits[PKV_PREFIX_ONE_LEFT];
    if (all->hit_blocks == 0) {
        if (info->block_size > 0)
            pkv_text_fmt(t, "none in blocks of %" PRIu32 " tokens: no prompt begins with a block of an "
                         "earlier one", info->block_size);
        else
            pkv_text_add(t, "none");
        item(p, "sharing", t);
        return;
    }
    pkv_text_fmt(t, "on a cache without end, in blocks of %" PRIu32 " tokens: ", info->block_size);
    add_percent(t, share(all->hit_blocks, all->blocks));
    pkv_text_add(t, " of blocks and ");
    add_percent(t, share(all->hit_tokens, all->tokens));
    pkv_text_add(t, " of tokens are found again; of full blocks, one token left to compute, ");
    add_percent(t, share(engine->hit_blocks, engine->blocks));
    pkv_text_add(t, " and ");
    add_percent(t, share(engine->hit_tokens, engine->tokens));
    item(p, "sharing", t);
    add_counted(t, info->shared.num, "row");
    pkv_text_add(t, " with a hit; of ");
    add_mean(t, info->shared.sum, info->shared.num);
    pkv_text_add(t, " tokens on average, p50 ");
    add_grouped(t, info->shared.p50);
    pkv_text_add(t, ", p90 ");
    add_grouped(t, info->shared.p90);
    pkv_text_add(t, ", max ");
    add_grouped(t, info->shared.max);
    pkv_text_add(t, "; ");
    add_counted(t, info->distinct_blocks, "different block");
    item(p, "depth", t);
}

static void page_sessions(struct page *p, struct pkv_text *t, const struct pkv_trace_info *info)
{
    if (info->sessions == 0) {
        pkv_text_add(t, "none");
    } else {
        add_grouped(t, info->sessions);
        pkv_text_add(t, " with ");
        add_counted(t, info->rows_in_sessions, "row");
        pkv_text_add(t, ", at most ");
        add_grouped(t, info->most_turns);
        pkv_text_add(t, "; ");
        add_counted(t, info->rows_that_follow, "row");
        pkv_text_add(t, info->rows_that_follow == 1 ? " waits" : " wait");
        pkv_text_add(t, " for the end of the former one");
    }
    item(p, "sessions", t);
    if (info->tenants == 0)
        return;
    add_grouped(t, info->tenants);
    item(p, "tenants", t);
}

static void add_quirk(struct pkv_text *t, uint64_t n, const char *word, const char *what)
{
    if (n == 0)
        return;
    pkv_text_add(t, t->length ? "; " : "");
    add_counted(t, n, word);
    pkv_text_add(t, what);
}

static void add_flag(struct pkv_text *t, bool is_so, const char *what)
{
    if (!is_so)
        return;
    pkv_text_add(t, t->length ? "; " : "");
    pkv_text_add(t, what);
}

static void page_quirks(struct page *p, struct pkv_text *t, const struct pkv_trace_notes *n)
{
    add_quirk(t, n->skipped_no_output, "row", " without output left out");
    add_quirk(t, n->ids_padded, "row", " whose number of ids was mended");
    add_quirk(t, n->rows_rounded, "time", " finer than a nanosecond, now the nearest one");
    add_quirk(t, n->fields_left_out, "value", " of fields that mean nothing here left out");
    add_quirk(t, n->blank_lines, "empty line", "");
    add_flag(t, n->untimed, "no arrival times");
    add_flag(t, n->has_crlf, "lines end with CR LF");
    add_flag(t, n->has_bom, "begins with a byte order mark");
    add_flag(t, n->has_open_end, "no end of line behind the last row");
    if (t->length == 0)
        pkv_text_add(t, "none");
    item(p, "quirks", t);
}

static void page_peaks(struct page *p, struct pkv_text *t, const struct pkv_trace_info *info)
{
    add_counted(t, info->peak_tokens.value, "token");
    pkv_text_add(t, " stored after ");
    add_time(t, info->peak_tokens.at_ns);
    pkv_text_add(t, ", ");
    add_counted(t, info->peak_running.value, "request");
    pkv_text_add(t, " at once, if each runs as soon as it comes and a token takes ");
    add_time(t, info->token_ns);
    item(p, "peak", t);
}

char *pkv_trace_info_text(const struct pkv_trace_info *info, const struct pkv_trace *trace,
                          const char *name, const struct pkv_report_style *style,
                          struct pkv_err *err)
{
    const struct pkv_trace_notes *notes = pkv_trace_notes(trace);
    struct page p = {.style = style};
    struct pkv_text t = {0};
    pkv_text_fmt(&t, "%s: ", name);
    add_counted(&t, info->rows, "row");
    pkv_text_fmt(&t, ", format %s", notes->format);
    page_wrap(&p, 0, t.text ? t.text : "");
    pkv_text_clear(&t);
    page_arrivals(&p, &t, info, notes);
    page_lengths(&p, &t, "prompts", &info->prompt);
    page_lengths(&p, &t, "outputs", &info->output);
    page_sharing(&p, &t, info);
    page_sessions(&p, &t, info);
    page_peaks(&p, &t, info);
    page_quirks(&p, &t, notes);
    if (!notes->untimed) {
        pkv_text_add(&p.text, "\n");
        page_plot_counts(&p, "arrivals a column", info->arrivals, info->num_bins, info->bin_ns);
    }
    p.text.failed |= t.failed;
    pkv_text_free(&t);
    return take_text(&p.text, err);
}
