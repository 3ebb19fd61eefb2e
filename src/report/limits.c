/*
 * limits.c - what limited the run: why the first in line waited, in shares of time, and the one
 * thing to try next.
 *
 * The advice is derived. Work done twice stands above all: what the head waited for is then only
 * its symptom. Else it is about the cause with the largest share, and says nothing when that is
 * below a twentieth of the time, when the cause has no remedy that is sure to help, or when the run
 * did not come to its end, unless it is plain why. To let more in is no remedy where those that ran were
 * already preempted for want of blocks, or could not be.
 */
#include "report/report_private.h"

#include <string.h>

#define SHARE_COLUMNS 13u     /* of "under 0.1 %  " */
#define BAR_COLUMNS 15u
#define SHOWN_FRAC 0.0005     /* shares below have no figure */
#define ADVICE_FRAC 0.05      /* of the time, or of the requests */
#define THRASH_FRAC 0.2       /* of the scheduled tokens */

static bool admits_by(const struct pkv_scenario *s, const char *name)
{
    return strcmp(s->sched.policies.admit->info.name, name) == 0;
}

static bool takes_runs(const struct pkv_scenario *s)
{
    return s->sched.policies.layout->create != NULL;
}

/* The chunk would fit: what else does the admit policy ask for? */
static void add_gate_reason(struct pkv_text *t, const struct pkv_scenario *s)
{
    bool watermark = s->sched.watermark > 0;
    if (admits_by(s, "reserve_max")) {
        pkv_text_add(t, "reserve: its output to the end would not fit beside the others'");
    } else if (admits_by(s, "static_batch")) {
        pkv_text_add(t, "static batch: one that runs has a token, or its output to the end would not "
                        "fit beside the others'");
    } else if (admits_by(s, "ratio")) {
        pkv_text_add(t, "ratio: its output would not fit beside what the others are reckoned to say");
    } else if (admits_by(s, "first_chunk") && watermark) {
        pkv_text_add(t, "watermark: its chunk would fit, but leave too few blocks free");
    } else if (admits_by(s, "whole_prompt") && watermark) {
        pkv_text_add(t, "gate and watermark: its next chunk would fit, its whole prompt and the "
                        "watermark would not");
    } else if (admits_by(s, "whole_prompt")) {
        pkv_text_add(t, "gate: its next chunk would fit, the rest would not");
    } else {
        pkv_text_fmt(t, "admit: %s: its next chunk would fit", s->sched.policies.admit->info.name);
    }
}

void add_latch_reason(struct pkv_text *t, const char *refused, uint64_t num_steps)
{
    const char *who = refused ? refused : "one that is gone";
    pkv_text_add(t, "latch: nobody was looked at");
    if (num_steps > 0) {
        pkv_text_add(t, " for ");
        add_counted(t, num_steps, "step");
    }
    pkv_text_add(t, " after ");
    pkv_text_visible(t, who, strlen(who));
    pkv_text_add(t, " was refused");
}

/* The mix had only decodes run. */
static void add_mix_reason(struct pkv_text *t, const struct pkv_scenario *s)
{
    pkv_text_fmt(t, "mix: %s: nobody was looked at while others decoded",
                 s->sched.policies.mix->info.name);
}

/* Of all the time in which nobody was looked at: the queue was shut, or the mix had only decodes run. */
static void add_unseen_reason(struct pkv_text *t, const struct pkv_scenario *s)
{
    const struct pkv_policies *p = &s->sched.policies;
    bool decodes_alone = strcmp(p->mix->info.name, "decode_first") == 0 ||
                         strcmp(p->mix->info.name, "separate_with_limit") == 0;
    if (p->on_blocked->latches)
        pkv_text_add(t, "latch: nobody was looked at since a refusal, until a running request left");
    if (p->on_blocked->latches && decodes_alone)
        pkv_text_add(t, "; or ");
    if (decodes_alone || !p->on_blocked->latches)
        add_mix_reason(t, s);
}

void add_limit_reason(struct pkv_text *t, enum pkv_limit limit, const struct pkv_scenario *s)
{
    const struct pkv_sched_config *c = &s->sched;
    switch (limit) {
    case PKV_LIMIT_EMPTY:
    case PKV_LIMIT_NOTHING:
        pkv_text_add(t, "nobody waited, but for the step under way");
        break;
    case PKV_LIMIT_BLOCKS:
        pkv_text_add(t, takes_runs(s) ? "blocks: no run of them is long enough"
                                      : "blocks: its next chunk did not fit");
        break;
    case PKV_LIMIT_BUDGET:
        pkv_text_add(t, "token budget: all ");
        add_counted(t, c->max_num_batched_tokens, "token");
        pkv_text_add(t, " given out");
        break;
    case PKV_LIMIT_SEQS:
        pkv_text_add(t, "sequences: all ");
        add_counted(t, c->max_num_seqs, "place");
        pkv_text_add(t, " taken");
        break;
    case PKV_LIMIT_GATE:
        add_gate_reason(t, s);
        break;
    case PKV_LIMIT_LATCH:
        add_mix_reason(t, s);
        break;
    case PKV_LIMIT_PREEMPTED:
        pkv_text_add(t, "preempted: running requests gave up blocks");
        break;
    case PKV_LIMIT_COUNT:
        break;
    }
}

static void add_bar(struct page *p, double frac)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    unsigned units = (unsigned)(frac * BAR_COLUMNS * 8 + 0.5);
    size_t columns = units / 8;
    if (!p->style->utf8) {
        columns = (units + 4) / 8;
        page_repeat(p, "#", columns);
    } else {
        page_repeat(p, "█", columns);
        pkv_text_add(&p->text, eighths[units % 8]);
        columns += units % 8 > 0;
    }
    page_repeat(p, " ", BAR_COLUMNS - (columns < BAR_COLUMNS ? columns : BAR_COLUMNS));
}

void add_limit_words(struct pkv_text *t, enum pkv_limit limit, const struct pkv_scenario *s)
{
    if (limit == PKV_LIMIT_LATCH)
        add_unseen_reason(t, s);
    else
        add_limit_reason(t, limit, s);
}

static void add_line(struct page *p, double frac, enum pkv_limit limit,
                     const struct pkv_scenario *s)
{
    struct pkv_text reason = {0};
    size_t indent = SHARE_COLUMNS;
    unsigned tenths = (unsigned)(frac * 1000.0 + 0.5);
    if (frac > 0 && frac < SHOWN_FRAC)
        pkv_text_add(&p->text, "under 0.1 %  ");
    else
        pkv_text_fmt(&p->text, "%7u.%u %%  ", tenths / 10, tenths % 10);
    if (p->style->width >= 72) {
        page_ink(p, limit == PKV_LIMIT_NOTHING ? INK_RUNNING : INK_WAITING);
        add_bar(p, frac);
        page_ink(p, INK_PLAIN);
        pkv_text_add(&p->text, "  ");
        indent += BAR_COLUMNS + 2;
    }
    add_limit_words(&reason, limit, s);
    page_wrap(p, indent, reason.text ? reason.text : "");
    p->text.failed |= reason.failed;
    pkv_text_free(&reason);
}

size_t sort_causes(const double *frac, enum pkv_limit *out)
{
    size_t num = 0;
    for (int i = PKV_LIMIT_NOTHING + 1; i < PKV_LIMIT_COUNT; i++) {
        if (frac[i] <= 0)
            continue;
        size_t at = num++;
        for (; at > 0 && frac[out[at - 1]] < frac[i]; at--)
            out[at] = out[at - 1];
        out[at] = (enum pkv_limit)i;
    }
    return num;
}

/* A full step takes as long as its prompt tokens: more of them a step are not faster. */
static bool is_compute_bound(const struct pkv_scenario *s)
{
    const struct pkv_step_time *law = &s->step_time;
    return law->law != PKV_STEP_TIME_FIXED && law->per_prefill_token_ns > 0 &&
           s->sched.max_num_batched_tokens >= law->base_ns / law->per_prefill_token_ns;
}

static void add_budget_advice(struct pkv_text *t, const struct pkv_scenario *s)
{
    const struct pkv_step_time *law = &s->step_time;
    if (law->law == PKV_STEP_TIME_FIXED) {
        pkv_text_add(t, "a larger max_num_batched_tokens: by this step time a step takes no longer "
                        "for it");
    } else if (!is_compute_bound(s)) {
        pkv_text_add(t, "a larger max_num_batched_tokens: a full step takes only its base time");
    } else {
        pkv_text_add(t, "no setting of the scheduler: the run is compute-bound; a full step takes as "
                        "long as its prompt tokens, so a larger budget only makes steps longer");
    }
}

static bool never_preempts(const struct pkv_scenario *s)
{
    return strcmp(s->sched.policies.preempt->info.name, "never") == 0;
}

/* Nobody who is let in ever lacks a block. */
static bool reserves_to_end(const struct pkv_scenario *s)
{
    return admits_by(s, "reserve_max") || admits_by(s, "static_batch");
}

/* A larger pool helps whatever the admission asks for; to ask for less may not. */
static void add_pool_advice(struct pkv_text *t, const struct pkv_scenario *s,
                            const struct pkv_summary *summary)
{
    pkv_text_add(t, "a larger pool (num_blocks): ");
    if (summary->engine.preemptions > 0) {
        pkv_text_add(t, "to let in more makes more preemptions, and there were ");
        add_grouped(t, summary->engine.preemptions);
    } else if (never_preempts(s)) {
        pkv_text_add(t, "to let in more may end stuck, as nobody is given up (preempt: never)");
    } else {
        pkv_text_add(t, "there was no room for what the admission of the first in line asked for");
    }
}

static void add_gate_advice(struct pkv_text *t, const struct pkv_scenario *s,
                            const struct pkv_summary *summary)
{
    bool may_let_in_more = summary->engine.preemptions == 0 && !never_preempts(s);
    if (admits_by(s, "static_batch"))
        pkv_text_add(t, "admit: reserve_max, which starts newcomers beside those that decode");
    else if (admits_by(s, "reserve_max") && may_let_in_more)
        pkv_text_add(t, "admit: whole_prompt, which reserves nothing; a smaller max_tokens; or a "
                        "larger pool (num_blocks)");
    else if (admits_by(s, "reserve_max"))
        pkv_text_add(t, "a smaller max_tokens, or a larger pool (num_blocks): what reserves less may "
                        "run out of blocks");
    else if (admits_by(s, "ratio") && may_let_in_more)
        pkv_text_add(t, "a smaller max_tokens, a smaller schedule_conservativeness, or a larger pool "
                        "(num_blocks)");
    else if (s->sched.watermark > 0 && may_let_in_more)
        pkv_text_add(t, "a smaller watermark, or a larger pool (num_blocks)");
    else
        add_pool_advice(t, s, summary);
}

/* One more needs as much as each of those that ran held when they held the most, and may have to be
 * given up when all grow. */
static void add_seqs_advice(struct pkv_text *t, const struct pkv_scenario *s,
                            const struct pkv_summary *summary)
{
    uint64_t num_seqs = s->sched.max_num_seqs;
    bool has_room = summary->peak_used_blocks * (num_seqs + 1) <= s->sched.num_blocks * num_seqs;
    bool may_grow = reserves_to_end(s) || takes_runs(s) || !never_preempts(s);
    if (has_room && summary->engine.preemptions == 0 && may_grow)
        pkv_text_add(t, "a larger max_num_seqs: there were blocks left");
}

/* Under preempt: never this cause does not arise. */
static void add_preempted_advice(struct pkv_text *t, const struct pkv_scenario *s)
{
    pkv_text_add(t, "a larger pool");
    pkv_text_add(t, s->sched.watermark > 0 ? " or" : ", a watermark, or");
    pkv_text_add(t, " fewer sequences: growth ran out of blocks");
}

static void add_latch_advice(struct pkv_text *t, const struct pkv_scenario *s,
                             const struct pkv_summary *summary)
{
    if (!s->sched.policies.on_blocked->latches)
        pkv_text_add(t, "mix: mixed, which lets newcomers in beside those that decode");
    else if (summary->engine.preemptions == 0 && (reserves_to_end(s) || !never_preempts(s)))
        pkv_text_add(t, "on_blocked: stop, which looks again in every step; or a larger pool "
                        "(num_blocks)");
    else
        add_pool_advice(t, s, summary);
}

/* Were prompts computed whose blocks a larger pool might have kept? */
static bool has_lost_hits(const struct pkv_summary *summary, bool can_hit)
{
    const struct pkv_engine_figures *e = &summary->engine;
    return can_hit && e->cache.num_evicted > 0 &&
           (double)e->hit_tokens < (1 - ADVICE_FRAC) * (double)e->queried_tokens;
}

static void add_lost_hits_advice(struct pkv_text *t, const struct pkv_summary *summary)
{
    const struct pkv_engine_figures *e = &summary->engine;
    pkv_text_add(t, "a larger pool (num_blocks), which may keep what prompts share: ");
    add_counted(t, e->cache.num_evicted, "cached block");
    pkv_text_add(t, e->cache.num_evicted == 1 ? " was evicted, and " : " were evicted, and ");
    add_percent(t, (double)(e->queried_tokens - e->hit_tokens) / (double)e->queried_tokens);
    pkv_text_add(t, " of prompt tokens not found");
}

static void add_advice(struct pkv_text *t, enum pkv_limit cause, const struct pkv_scenario *s,
                       const struct pkv_summary *summary)
{
    switch (cause) {
    case PKV_LIMIT_BLOCKS:
        if (takes_runs(s) && !never_preempts(s))
            pkv_text_add(t, "layout: paged, which needs no runs; or ");
        pkv_text_add(t, "a larger pool (num_blocks): the first in line waited for blocks");
        break;
    case PKV_LIMIT_GATE:
        add_gate_advice(t, s, summary);
        break;
    case PKV_LIMIT_PREEMPTED:
        add_preempted_advice(t, s);
        break;
    case PKV_LIMIT_BUDGET:
        add_budget_advice(t, s);
        break;
    case PKV_LIMIT_SEQS:
        add_seqs_advice(t, s, summary);
        break;
    case PKV_LIMIT_LATCH:
        add_latch_advice(t, s, summary);
        break;
    case PKV_LIMIT_EMPTY:
    case PKV_LIMIT_NOTHING:
    case PKV_LIMIT_COUNT:
        break;
    }
}

static void add_thrash_advice(struct pkv_text *t, const struct pkv_scenario *s, double frac)
{
    if (admits_by(s, "first_chunk"))
        pkv_text_add(t, "the gate (admit: whole_prompt), ");
    pkv_text_add(t, "a larger pool (num_blocks), or fewer sequences (max_num_seqs): preempted "
                    "requests made ");
    add_percent(t, frac);
    pkv_text_add(t, " of the work a second time");
}

/* The largest cause is the budget, and a larger one is no remedy: what else would let more in, or leave
 * less to compute? Only where there is nothing of that kind is nothing left to set. */
static void add_compute_bound_advice(struct pkv_text *t, const enum pkv_limit *causes, size_t num,
                                     const struct pkv_scenario *s,
                                     const struct pkv_summary *summary, bool can_hit)
{
    bool has_other = false;
    for (size_t i = 1; i < num && t->length == 0; i++)
        if (summary->limit_frac[causes[i]] >= ADVICE_FRAC) {
            add_advice(t, causes[i], s, summary);
            has_other = true;
        }
    if (t->length == 0 && has_lost_hits(summary, can_hit))
        add_lost_hits_advice(t, summary);
    else if (!has_other)
        return add_advice(t, PKV_LIMIT_BUDGET, s, summary);
    if (t->length > 0)
        pkv_text_add(t, "; a larger budget only makes steps longer");
}

void add_next(struct pkv_text *t, const enum pkv_limit *causes, size_t num,
              const struct pkv_scenario *s, const struct pkv_summary *summary, bool can_hit)
{
    const struct pkv_engine_figures *e = &summary->engine;
    double frac = num > 0 ? summary->limit_frac[causes[0]] : 0;
    double again = e->scheduled_tokens > 0
                       ? (double)e->recomputed_tokens / (double)e->scheduled_tokens : 0;
    if (e->is_deadlock)
        pkv_text_add(t, "a rule that gives somebody up (preempt: newest), or admit: reserve_max, under "
                        "which nobody who runs ever lacks a block");
    if (e->outcome != PKV_OUTCOME_DONE)
        return;
    if ((double)e->rejected > ADVICE_FRAC * (double)e->arrived)
        pkv_text_fmt(t, "room for what was rejected: %s", summary->rejected_reason);
    else if (again > THRASH_FRAC)
        add_thrash_advice(t, s, again);
    else if (frac >= ADVICE_FRAC && causes[0] == PKV_LIMIT_BUDGET && is_compute_bound(s))
        add_compute_bound_advice(t, causes, num, s, summary, can_hit);
    else if (frac >= ADVICE_FRAC)
        add_advice(t, causes[0], s, summary);
}

void page_limits(struct page *p, const struct pkv_scenario *scenario,
                 const struct pkv_summary *summary, bool can_hit)
{
    enum pkv_limit causes[PKV_LIMIT_COUNT] = {PKV_LIMIT_EMPTY};
    struct pkv_text next = {0};
    const double *frac = summary->limit_frac;
    size_t num = sort_causes(frac, causes);
    if (summary->makespan_ns > 0) {
        page_heading(p, "What the first in line waited for, by share of time");
        for (size_t i = 0; i < num; i++)
            add_line(p, frac[causes[i]], causes[i], scenario);
        add_line(p, frac[PKV_LIMIT_EMPTY] + frac[PKV_LIMIT_NOTHING], PKV_LIMIT_NOTHING, scenario);
    }
    add_next(&next, causes, num, scenario, summary, can_hit);
    if (next.length > 0)
        page_item(p, "try next", next.text);
    p->text.failed |= next.failed;
    pkv_text_free(&next);
}
