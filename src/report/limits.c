/*
 * limits.c - what limited the run: why the first in line waited, in shares of time, and the one
 * thing to try next.
 *
 * The advice is derived: it names the cause with the largest share, and is silent when nobody
 * waited for a twentieth of the time or the run did not come to its end.
 */
#include "report/report_private.h"

#define SHARE_COLUMNS 12u     /* of "    61.3 %  " */
#define BAR_COLUMNS 16u
#define SHOWN_FRAC 0.0005     /* shares below are not worth a line */
#define ADVICE_FRAC 0.05

static void add_reason(struct pkv_text *t, enum pkv_limit limit, const struct pkv_scenario *s)
{
    const struct pkv_sched_config *c = &s->sched;
    switch (limit) {
    case PKV_LIMIT_EMPTY:
    case PKV_LIMIT_NOTHING:
        pkv_text_add(t, "nobody waited");
        break;
    case PKV_LIMIT_BLOCKS:
        pkv_text_add(t, "blocks: its next chunk did not fit");
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
        pkv_text_add(t, "gate: its next chunk would fit, the rest would not");
        break;
    case PKV_LIMIT_LATCH:
        pkv_text_add(t, "latch: shut until a running request leaves");
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

static void add_line(struct page *p, double frac, enum pkv_limit limit,
                     const struct pkv_scenario *s)
{
    struct pkv_text reason = {0};
    size_t indent = SHARE_COLUMNS;
    unsigned tenths = (unsigned)(frac * 1000.0 + 0.5);
    pkv_text_fmt(&p->text, "%6u.%u %%  ", tenths / 10, tenths % 10);
    if (p->style->width >= 72) {
        page_ink(p, limit == PKV_LIMIT_NOTHING ? INK_RUNNING : INK_WAITING);
        add_bar(p, frac);
        page_ink(p, INK_PLAIN);
        pkv_text_add(&p->text, "  ");
        indent += BAR_COLUMNS + 2;
    }
    add_reason(&reason, limit, s);
    page_wrap(p, indent, reason.text ? reason.text : "");
    p->text.failed |= reason.failed;
    pkv_text_free(&reason);
}

/* Causes that made someone wait, the largest share first; ties in their order. */
static size_t sort_causes(const double *frac, enum pkv_limit *out)
{
    size_t num = 0;
    for (int i = PKV_LIMIT_NOTHING + 1; i < PKV_LIMIT_COUNT; i++) {
        if (frac[i] < SHOWN_FRAC)
            continue;
        size_t at = num++;
        for (; at > 0 && frac[out[at - 1]] < frac[i]; at--)
            out[at] = out[at - 1];
        out[at] = (enum pkv_limit)i;
    }
    return num;
}

static const char *advice(enum pkv_limit cause, const struct pkv_summary *s)
{
    switch (cause) {
    case PKV_LIMIT_BLOCKS:
    case PKV_LIMIT_GATE:
        return "a larger pool (num_blocks): the first in line waited for blocks";
    case PKV_LIMIT_PREEMPTED:
        return "a larger pool, a watermark, or fewer sequences: growth ran out of blocks";
    case PKV_LIMIT_BUDGET:
        return "a larger max_num_batched_tokens";
    case PKV_LIMIT_SEQS:
        return s->mean_used_frac < 0.9 ? "a larger max_num_seqs: there were blocks left" : NULL;
    case PKV_LIMIT_EMPTY:
    case PKV_LIMIT_NOTHING:
    case PKV_LIMIT_LATCH:
    case PKV_LIMIT_COUNT:
        break;
    }
    return NULL;
}

void page_limits(struct page *p, const struct pkv_scenario *scenario,
                 const struct pkv_summary *summary)
{
    enum pkv_limit causes[PKV_LIMIT_COUNT];
    const double *frac = summary->limit_frac;
    size_t num = sort_causes(frac, causes);
    if (summary->makespan_ns == 0)
        return;
    page_heading(p, "What the first in line waited for, by share of time");
    for (size_t i = 0; i < num; i++)
        add_line(p, frac[causes[i]], causes[i], scenario);
    add_line(p, frac[PKV_LIMIT_EMPTY] + frac[PKV_LIMIT_NOTHING], PKV_LIMIT_NOTHING, scenario);
    if (num == 0 || frac[causes[0]] < ADVICE_FRAC || summary->engine.outcome != PKV_OUTCOME_DONE)
        return;
    const char *next = advice(causes[0], summary);
    if (next)
        page_item(p, "try next", next);
}
