/*
 * ask.c - names the request that got stuck or starved, and the command that tells why.
 *
 * Unasked it is named when it never ended or waited for more than half the run; with the files of
 * the run at hand also one that was preempted often or waited long against the others.
 */
#include "report/report_private.h"

#include <string.h>

#define OFTEN_PREEMPTED 3u       /* more than */
#define LONG_WAIT 10             /* times the median wait, more than */

static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+,=-";
    return word[0] && word[0] != '-' && word[strspn(word, plain)] == '\0';
}

/* As a shell takes it for one word. */
static void add_word(struct pkv_text *t, const char *word)
{
    if (is_plain(word)) {
        pkv_text_add(t, word);
        return;
    }
    pkv_text_add(t, "'");
    for (; *word; word++)
        if (*word == '\'')
            pkv_text_add(t, "'\\''");
        else
            pkv_text_bytes(t, word, 1);
    pkv_text_add(t, "'");
}

static void add_span(struct pkv_text *t, int64_t ns, int64_t step_ns)
{
    if (step_ns == 0) {
        add_time(t, ns);
        return;
    }
    add_steps(t, ns, step_ns);
    pkv_text_add(t, ns == step_ns ? " step" : " steps");
}

/* Who waited is told of the whole run, with a window too. */
static int64_t run_ns(const struct pkv_summary *s)
{
    return s->has_window ? s->whole.makespan_ns : s->makespan_ns;
}

static void add_share_of_run(struct pkv_text *t, const char *before, int64_t ns,
                             const struct pkv_summary *s, int64_t step_ns)
{
    pkv_text_add(t, before);
    add_span(t, ns, step_ns);
    pkv_text_add(t, ", ");
    add_percent(t, (double)ns / (double)run_ns(s));
    pkv_text_add(t, " of the run");
}

/* What is worth naming unasked, into t; NULL = nothing. */
static const struct pkv_notable *find_starving(struct pkv_text *t, const struct pkv_summary *s,
                                               int64_t step_ns)
{
    bool cut_short = s->engine.outcome == PKV_OUTCOME_INTERRUPTED ||
                     s->engine.outcome == PKV_OUTCOME_MAX_STEPS ||
                     s->engine.outcome == PKV_OUTCOME_HORIZON;
    if (run_ns(s) <= 0)
        return NULL;
    if (s->first_unfinished.exists && !cut_short) {
        pkv_text_add(t, "unfinished ");
        add_span(t, s->first_unfinished.ns, step_ns);
        pkv_text_add(t, " after its arrival");
        return &s->first_unfinished;
    }
    if (s->longest_wait.exists && s->longest_wait.ns > run_ns(s) / 2) {
        add_share_of_run(t, "waited ", s->longest_wait.ns, s, step_ns);
        return &s->longest_wait;
    }
    if (s->longest_away.exists && s->longest_away.ns > run_ns(s) / 2) {
        add_share_of_run(t, "preempted and without a token for ", s->longest_away.ns, s, step_ns);
        return &s->longest_away;
    }
    return NULL;
}

static const struct pkv_notable *find_odd(struct pkv_text *t, const struct pkv_summary *s,
                                          int64_t step_ns)
{
    /* Where most did not wait at all, the time to their first token is the measure. */
    int64_t median = s->queue.p50 > 0 ? s->queue.p50 : s->ttft.p50;
    if (s->most_preempted.exists && s->most_preempted.num > OFTEN_PREEMPTED) {
        pkv_text_add(t, "preempted ");
        add_counted(t, s->most_preempted.num, "time");
        return &s->most_preempted;
    }
    if (s->longest_wait.exists && median > 0 && s->longest_wait.ns / LONG_WAIT > median) {
        pkv_text_add(t, "waited ");
        add_span(t, s->longest_wait.ns, step_ns);
        pkv_text_add(t, s->queue.p50 > 0 ? ", the median " : ", the median first token came after ");
        add_span(t, median, step_ns);
        return &s->longest_wait;
    }
    return NULL;
}

void page_ask(struct page *p, const struct pkv_summary *s, int64_t step_ns)
{
    const char *dir = p->style->dir;
    struct pkv_text why = {0}, line = {0};
    const struct pkv_notable *who = find_starving(&why, s, step_ns);
    if (!who && dir)
        who = find_odd(&why, s, step_ns);
    if (who && dir && !who->is_cut) {
        pkv_text_add(&line, "pagedkv explain ");
        add_word(&line, dir);
        pkv_text_add(&line, who->id[0] == '-' ? " -- " : " ");
        add_word(&line, who->id);
        pkv_text_fmt(&line, "  (%s)", why.text ? why.text : "");
        page_item(p, "ask", line.text ? line.text : "");
    } else if (who) {
        pkv_text_fmt(&line, "request %s: %s", who->id, why.text ? why.text : "");
        page_item(p, "starving", line.text ? line.text : "");
    }
    p->text.failed |= why.failed | line.failed;
    pkv_text_free(&why);
    pkv_text_free(&line);
}
