/*
 * html_summary.c - summary.json of a former run back into figures, those that the words of a page ask for.
 *
 * A figure is named by its path. Shares have nine decimals in the file, which is all that words need.
 */
#include "report/html_private.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "trace/json_scan.h"

#define PATH_SIZE 128u

#define COUNTS(X)                                                                            \
    X("requests.arrived", engine.arrived) X("requests.completed", engine.completed)          \
    X("requests.rejected", engine.rejected) X("requests.aborted", engine.aborted)            \
    X("requests.unfinished", engine.unfinished)                                              \
    X("tokens.prompt", engine.prompt_tokens) X("tokens.output", engine.output_tokens)        \
    X("tokens.scheduled", engine.scheduled_tokens)                                           \
    X("tokens.recomputed", engine.recomputed_tokens)                                         \
    X("tokens.queried", engine.queried_tokens) X("tokens.hit", engine.hit_tokens)            \
    X("preemptions", engine.preemptions) X("evicted_blocks", engine.cache.num_evicted)       \
    X("steps", engine.num_steps) X("peak.used_blocks", peak_used_blocks)                     \
    X("peak.waiting", peak_waiting) X("peak.running", peak_running)

static void take_count(struct pkv_summary *s, const char *path, uint64_t n)
{
#define TAKE(name, field)                  \
    if (strcmp(path, name) == 0)           \
        s->field = n;
    COUNTS(TAKE)
#undef TAKE
    if (strcmp(path, "makespan_ns") == 0)
        s->makespan_ns = (int64_t)n;
    if (strcmp(path, "whole.makespan_ns") == 0)
        s->whole.makespan_ns = (int64_t)n;
}

static void take_share(struct pkv_summary *s, const char *path, double frac)
{
    static const char limits[] = "limit_frac.";
    if (strcmp(path, "latency_ms.queue.p50") == 0)
        s->queue.p50 = (int64_t)(frac * 1e6 + 0.5);
    if (strcmp(path, "latency_ms.ttft.p50") == 0)
        s->ttft.p50 = (int64_t)(frac * 1e6 + 0.5);
    for (int i = 0; strncmp(path, limits, sizeof limits - 1) == 0 && i < PKV_LIMIT_COUNT; i++)
        if (strcmp(path + sizeof limits - 1, pkv_limit_name((enum pkv_limit)i)) == 0)
            s->limit_frac[i] = frac;
}

/* Digits, and a point with more of them: no locale, no exponent. */
static void take_number(struct pkv_summary *s, const char *path, const struct pkv_json_text *number)
{
    double value = 0, scale = 1;
    uint64_t whole = 0;
    bool is_whole = true;
    for (size_t i = 0; i < number->length; i++) {
        if (number->text[i] == '.') {
            is_whole = false;
        } else if (is_whole) {
            whole = whole * 10 + (uint64_t)(number->text[i] - '0');
            value = (double)whole;
        } else {
            scale /= 10;
            value += scale * (number->text[i] - '0');
        }
    }
    if (is_whole)
        take_count(s, path, whole);
    take_share(s, path, value);
}

static void take_outcome(struct pkv_summary *s, const struct pkv_json_text *word)
{
    for (int i = 0; i < PKV_OUTCOME_COUNT; i++)
        if (pkv_json_text_is(word, pkv_outcome_name((enum pkv_outcome)i)))
            s->engine.outcome = (enum pkv_outcome)i;
}

static int take_object(struct pkv_json *j, const char *path, struct pkv_summary *s,
                       struct pkv_err *err);

static int take_member(struct pkv_json *j, const char *path, struct pkv_summary *s, struct pkv_err *err)
{
    struct pkv_json_text text;
    enum pkv_json_kind kind = pkv_json_peek(j);
    if (kind == PKV_JSON_OBJECT)
        return take_object(j, path, s, err);
    if (kind == PKV_JSON_NUMBER) {
        if (pkv_json_number(j, &text, err) < 0)
            return -1;
        take_number(s, path, &text);
        return 0;
    }
    if (kind != PKV_JSON_STRING || strcmp(path, "outcome") != 0)
        return pkv_json_value(j, NULL, err);
    if (pkv_json_string(j, &text, err) < 0)
        return -1;
    take_outcome(s, &text);
    return 0;
}

/* Objects below others are at most two deep: see PATH_SIZE. */
static int take_object(struct pkv_json *j, const char *path, struct pkv_summary *s, struct pkv_err *err)
{
    struct pkv_json_text key;
    char below[PATH_SIZE];
    int more;
    if (pkv_json_enter_object(j, err) < 0)
        return -1;
    while ((more = pkv_json_next_member(j, &key, err)) > 0) {
        size_t used = strlen(path);
        if (used + key.length + 2 > sizeof below) {
            if (pkv_json_value(j, NULL, err) < 0)
                return -1;
            continue;
        }
        snprintf(below, sizeof below, "%s%s%.*s", path, used > 0 ? "." : "", (int)key.length, key.text);
        if (take_member(j, below, s, err) < 0)
            return -1;
    }
    return more;
}

int html_summary_read(const char *path, const char *text, size_t length, struct pkv_summary *out,
                      struct pkv_err *err)
{
    struct pkv_json j;
    *out = (struct pkv_summary){.engine.outcome = PKV_OUTCOME_FAILED};
    pkv_json_init(&j, path, 0, text, length);
    if (take_object(&j, "", out, err) < 0)
        return -1;
    return pkv_json_end(&j, err);
}
