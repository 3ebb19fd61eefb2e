/*
 * summary.c - what a run says at its end: what was run, how it went, what limited it, a picture.
 *
 * People see this first. The order is the order of their questions; nothing is said twice. Times
 * are counted in steps where every step takes the same time.
 */
#include "report/report_private.h"

#include <string.h>

/* Write one item with a text made by pieces. */
static void put(struct page *p, const char *name, struct pkv_text *t)
{
    page_item(p, name, t->text ? t->text : "");
    p->text.failed |= t->failed;
    pkv_text_clear(t);
}

static void add_other(struct pkv_text *t, uint64_t n, const char *word)
{
    if (n == 0)
        return;
    pkv_text_add(t, ", ");
    add_grouped(t, n);
    pkv_text_add(t, word);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

static void add_share_of(struct pkv_text *t, uint64_t part, uint64_t whole)
{
    add_grouped(t, part);
    pkv_text_add(t, " of ");
    add_grouped(t, whole);
}

static void add_rejected(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    if (s->engine.rejected == 0)
        return;
    add_grouped(t, s->engine.rejected);
    pkv_text_add(t, s->engine.rejected == 1 ? " could never run: "
                                            : " could never run; the longest: ");
    pkv_text_add(t, s->rejected_reason);
    put(p, "rejected", t);
}

/* On average over time, and the most. */
static void add_at_once(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    add_fixed(t, s->mean_running, 1);
    pkv_text_add(t, " running on average, ");
    add_grouped(t, s->peak_running);
    pkv_text_add(t, " at most; ");
    add_fixed(t, s->mean_waiting, 1);
    pkv_text_add(t, " waiting, ");
    add_grouped(t, s->peak_waiting);
    pkv_text_add(t, " at most");
    put(p, "at once", t);
}

static void add_requests(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    const struct pkv_engine_figures *e = &s->engine;
    add_grouped(t, e->arrived);
    pkv_text_add(t, " arrived, ");
    add_grouped(t, e->completed);
    pkv_text_add(t, " completed");
    add_other(t, e->rejected, " rejected");
    add_other(t, e->aborted, " aborted");
    add_other(t, e->unfinished, " unfinished");
    put(p, "requests", t);
    add_rejected(p, t, s);
    add_counted(t, e->num_steps, "step");
    pkv_text_add(t, " in ");
    add_time(t, s->makespan_ns);
    pkv_text_add(t, "; ");
    add_rate(t, s->requests_per_s);
    pkv_text_add(t, " requests/s, ");
    add_rate(t, s->output_tokens_per_s);
    pkv_text_add(t, " output tokens/s");
    put(p, "run", t);
    add_at_once(p, t, s);
    if (!s->has_targets)
        return;
    add_share_of(t, s->good_requests, e->arrived);
    pkv_text_add(t, " (");
    add_percent(t, share(s->good_requests, e->arrived));
    pkv_text_add(t, ") completed within the targets");
    put(p, "goodput", t);
}

/* Can two requests of this traffic have text in common? */
static bool has_common_text(const struct pkv_scenario *scenario,
                            const struct pkv_trace_notes *notes)
{
    if (!scenario->is_trace)
        return scenario->synth.prefix_num > 0 || scenario->synth.session_share > 0;
    return !notes || notes->rows_own_text < notes->rows_read;
}

const char *why_no_hits(const struct pkv_scenario *scenario, const struct pkv_trace_notes *notes)
{
    if (has_common_text(scenario, notes))
        return NULL;
    if (!scenario->is_trace)
        return "none: without traffic.prefixes or traffic.sessions nothing is shared";
    return notes->has_prompts ? "none: no two prompts have text in common"
                              : "none: the trace has no prompt content, nothing can be shared";
}

static void add_warm(struct page *p, struct pkv_text *t, const struct pkv_engine_figures *e)
{
    if (!e->is_warm)
        return;
    pkv_text_add(t, "began with ");
    add_counted(t, e->warm_blocks, "cached block");
    pkv_text_add(t, " of the former run");
    if (e->warm_blocks_left_out > 0) {
        pkv_text_add(t, "; ");
        add_grouped(t, e->warm_blocks_left_out);
        pkv_text_add(t, " more had no room");
    }
    put(p, "", t);
}

static void add_hits(struct page *p, struct pkv_text *t, const struct pkv_summary *s,
                     const char *why_none)
{
    const struct pkv_engine_figures *e = &s->engine;
    if (e->queried_tokens > 0 && why_none) {
        page_item(p, "prefix hits", why_none);
    } else if (e->queried_tokens > 0) {
        add_percent(t, share(e->hit_tokens, e->queried_tokens));
        pkv_text_add(t, " of prompt tokens (");
        add_share_of(t, e->hit_tokens, e->queried_tokens);
        pkv_text_add(t, ")");
        put(p, "prefix hits", t);
    }
    add_warm(p, t, e);
    if (e->resumed_queried_tokens == 0)
        return;
    pkv_text_add(t, "resumed requests found ");
    add_percent(t, share(e->resumed_hit_tokens, e->resumed_queried_tokens));
    pkv_text_add(t, " of their tokens again");
    put(p, "", t);
}

/* Does a chat keep its state? */
static void add_sessions(struct page *p, struct pkv_text *t, const struct pkv_engine_figures *e)
{
    if (e->former_tokens == 0)
        return;
    pkv_text_add(t, "of what was said before ");
    add_counted(t, e->turns, "later turn");
    pkv_text_add(t, ", ");
    add_percent(t, share(e->retained_tokens, e->former_tokens));
    pkv_text_add(t, " was still cached");
    put(p, "sessions", t);
}

/* Shares of the pool, on average over time. */
static void add_speculation(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    const struct pkv_engine_figures *e = &s->engine;
    if (!s->has_speculation)
        return;
    add_share_of(t, e->accepted_tokens, e->drafted_tokens);
    pkv_text_add(t, " drafts accepted (");
    add_percent(t, share(e->accepted_tokens, e->drafted_tokens));
    pkv_text_add(t, "), ");
    add_fixed(t, share(e->verified_tokens, e->num_verifications), 2);
    pkv_text_add(t, " tokens a step of a request with drafts");
    put(p, "speculation", t);
}

static void add_waste(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    if (!s->has_waste)
        return;
    add_percent(t, s->waste_reserved_frac);
    pkv_text_add(t, " of the pool reserved for later tokens, ");
    add_percent(t, s->waste_internal_frac);
    pkv_text_add(t, " never used within runs, ");
    add_percent(t, s->waste_external_frac);
    pkv_text_add(t, " free in runs too short for the first in line");
    put(p, "waste", t);
}

/* What went to the host and came back. */
static void add_swap(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    const struct pkv_engine_figures *e = &s->engine;
    if (e->swaps + e->swap_fallbacks == 0)
        return;
    add_grouped(t, e->swaps);
    pkv_text_add(t, " of the preempted went to the host");
    if (e->swap_fallbacks > 0) {
        pkv_text_add(t, "; ");
        add_grouped(t, e->swap_fallbacks);
        pkv_text_add(t, " found it full and were computed again");
    }
    put(p, "swap", t);
    add_counted(t, e->swapped_out_blocks, "block");
    pkv_text_add(t, " out, ");
    add_grouped(t, e->swapped_in_blocks);
    pkv_text_add(t, " back, of ");
    add_counted(t, e->swap_block_bytes, "byte");
    pkv_text_add(t, "; the link took ");
    add_time(t, e->link_busy_ns);
    pkv_text_add(t, " for them; at most ");
    add_share_of(t, e->peak_host_blocks, e->cache.num_host_blocks);
    pkv_text_add(t, " host blocks");
    put(p, "", t);
}

/* What sharing saved of the blocks that all tables have together. */
static void add_samples(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    const struct pkv_engine_figures *e = &s->engine;
    if (!s->has_samples)
        return;
    add_counted(t, e->samples, "answer");
    pkv_text_add(t, " to ");
    add_counted(t, e->sampled_requests, "request");
    pkv_text_add(t, "; ");
    add_counted(t, e->forks, "fork");
    pkv_text_add(t, ", ");
    add_counted(t, e->cache.num_copied, "block");
    pkv_text_add(t, " copied on write; sharing saves ");
    add_percent(t, s->mean_shared_frac);
    pkv_text_add(t, " of the blocks in all tables");
    put(p, "samples", t);
}

static void add_tokens(struct page *p, struct pkv_text *t, const struct pkv_summary *s,
                       const char *why_no_hit)
{
    const struct pkv_engine_figures *e = &s->engine;
    add_grouped(t, e->prompt_tokens);
    pkv_text_add(t, " prompt, ");
    add_grouped(t, e->output_tokens);
    pkv_text_add(t, " output");
    if (e->rejected > 0)
        pkv_text_add(t, "; prompts of the rejected not counted");
    put(p, "tokens", t);
    add_hits(p, t, s, why_no_hit);
    add_sessions(p, t, e);
    add_grouped(t, e->preemptions);
    if (e->preemptions > 0) {
        pkv_text_add(t, "; ");
        add_percent(t, share(e->recomputed_tokens, e->scheduled_tokens));
        pkv_text_add(t, " of scheduled tokens were computed again (");
        add_grouped(t, e->recomputed_tokens);
        pkv_text_add(t, ")");
    }
    put(p, "preemptions", t);
    add_swap(p, t, s);
    add_percent(t, s->mean_used_frac);
    pkv_text_add(t, " of the pool held on average, ");
    add_percent(t, share(s->peak_used_blocks, e->cache.num_blocks));
    pkv_text_add(t, " at most; ");
    add_percent(t, s->mean_slot_use_frac);
    pkv_text_add(t, " filled");
    put(p, "blocks", t);
    add_samples(p, t, s);
    add_waste(p, t, s);
    add_speculation(p, t, s);
}

/* ---- latencies ---- */

#define CELL_COLUMNS 12u
#define MAX_CELLS 5u

struct latency_table {
    struct page *page;
    int64_t step_ns;     /* > 0: in steps */
    size_t num_cells;    /* that the page has room for */
};

/* Which figures, when there is room for so many. */
static const char *const cell_names[MAX_CELLS + 1][MAX_CELLS] = {
    [1] = {"mean"}, [2] = {"mean", "max"}, [3] = {"mean", "p50", "max"},
    [4] = {"mean", "p50", "p99", "max"}, [5] = {"mean", "p50", "p90", "p99", "max"},
};

static __int128 figure(const struct pkv_distribution *d, const char *name)
{
    if (strcmp(name, "mean") == 0)
        return d->sum / (__int128)d->count;
    if (strcmp(name, "p50") == 0)
        return d->p50;
    if (strcmp(name, "p90") == 0)
        return d->p90;
    return strcmp(name, "p99") == 0 ? d->p99 : d->max;
}

static void time_cell(struct latency_table *tab, const struct pkv_distribution *d,
                      const char *name)
{
    struct pkv_text t = {0};
    if (d->count == 0)
        pkv_text_add(&t, "-");
    else if (tab->step_ns > 0)
        add_steps(&t, figure(d, name), tab->step_ns);
    else
        add_time(&t, (int64_t)figure(d, name));
    pkv_text_fmt(&tab->page->text, "%*s", (int)CELL_COLUMNS, t.text ? t.text : "");
    tab->page->text.failed |= t.failed;
    pkv_text_free(&t);
}

static void line(struct latency_table *tab, const char *name, const struct pkv_distribution *d)
{
    pkv_text_fmt(&tab->page->text, "%-*s", (int)NAME_WIDTH, name);
    for (size_t i = 0; i < tab->num_cells; i++)
        time_cell(tab, d, cell_names[tab->num_cells][i]);
    pkv_text_add(&tab->page->text, "\n");
}

static void add_latencies(struct page *p, const struct pkv_summary *s, int64_t step_ns)
{
    size_t room = (p->style->width - NAME_WIDTH) / CELL_COLUMNS;
    struct latency_table tab = {.page = p, .step_ns = step_ns,
                                .num_cells = room < MAX_CELLS ? room : MAX_CELLS};
    if (s->ttft.count == 0 && s->queue.count == 0)
        return;
    page_heading(p, step_ns > 0 ? "Latencies in steps" : "Latencies");
    page_repeat(p, " ", NAME_WIDTH);
    for (size_t i = 0; i < tab.num_cells; i++)
        pkv_text_fmt(&p->text, "%*s", (int)CELL_COLUMNS, cell_names[tab.num_cells][i]);
    pkv_text_add(&p->text, "\n");
    line(&tab, "queue", &s->queue);
    line(&tab, "first token", &s->ttft);
    line(&tab, "per token", &s->tpot);
    line(&tab, "each gap", &s->itl);
    line(&tab, "largest gap", &s->max_gap);
    line(&tab, "end to end", &s->e2e);
}

/* How the run ended when it did not come to its end; NULL when it did. */
static const char *unfinished(enum pkv_outcome outcome)
{
    switch (outcome) {
    case PKV_OUTCOME_STUCK:
    case PKV_OUTCOME_LIVELOCK:
        return "NOT FINISHED: the run could not go on; figures are of what was done until then";
    case PKV_OUTCOME_INTERRUPTED:
        return "NOT FINISHED: the run was interrupted; figures are of what was done until then";
    case PKV_OUTCOME_MAX_STEPS:
        return "NOT FINISHED: the run reached its limit of steps; figures are of what was done "
               "until then";
    case PKV_OUTCOME_HORIZON:
        return "The run stopped at its horizon; figures are of what was done until then";
    case PKV_OUTCOME_FAILED:
        return "NOT FINISHED: the run failed; figures are of what was done until then";
    case PKV_OUTCOME_DONE:
    case PKV_OUTCOME_COUNT:
        break;
    }
    return NULL;
}

const char *summary_warning(const struct pkv_engine_figures *e)
{
    const char *text = unfinished(e->outcome);
    if (!text && e->arrived > 0 && e->rejected == e->arrived)
        text = "NOTHING RAN: every request was rejected, as it could never run";
    return text;
}

static void add_warning(struct page *p, const struct pkv_engine_figures *e)
{
    const char *text = summary_warning(e);
    if (!text)
        return;
    page_ink(p, INK_PREEMPTED);
    page_wrap(p, 0, text);
    page_ink(p, INK_PLAIN);
}

static void add_diagnosis(struct page *p, const struct pkv_engine_figures *e)
{
    if (!e->diagnosis[0])
        return;
    page_heading(p, "The run could not go on");
    page_item(p, "diagnosis", e->diagnosis);
}

/* What of the run the figures below are about. */
static void add_window(struct page *p, struct pkv_text *t, const struct pkv_summary *s)
{
    if (!s->has_window)
        return;
    pkv_text_add(t, "figures cover what comes and begins from ");
    add_time(t, s->after_ns);
    pkv_text_add(t, " to ");
    if (s->until_ns > 0)
        add_time(t, s->until_ns);
    else
        pkv_text_add(t, "the end");
    pkv_text_add(t, "; plots and files the whole run");
    put(p, "window", t);
}

char *pkv_report_summary(const struct pkv_scenario *scenario, const struct pkv_summary *summary,
                         const struct pkv_series_point *series, size_t num_points,
                         const struct pkv_trace_notes *notes, const struct pkv_report_style *style,
                         struct pkv_err *err)
{
    PKV_ASSERT(style->width >= 40);
    struct page p = {.style = style};
    struct pkv_text t = {0};
    int64_t step_ns = scenario->step_time.law == PKV_STEP_TIME_FIXED ? scenario->step_time.fixed_ns
                                                                     : 0;
    add_warning(&p, &summary->engine);
    page_setup(&p, scenario, notes);
    page_unused(&p, scenario, summary);
    pkv_text_add(&p.text, "\n");
    add_window(&p, &t, summary);
    add_requests(&p, &t, summary);
    add_tokens(&p, &t, summary, why_no_hits(scenario, notes));
    add_latencies(&p, summary, step_ns);
    page_limits(&p, scenario, summary, why_no_hits(scenario, notes) == NULL);
    page_ask(&p, summary, step_ns);
    page_plots(&p, series, num_points, scenario->sched.num_blocks);
    add_diagnosis(&p, &summary->engine);
    p.text.failed |= t.failed;
    pkv_text_free(&t);
    return take_text(&p.text, err);
}
