/*
 * tell_life.c - the life of a request, moment by moment, in sentences.
 */
#include "report/explain_private.h"

#include <string.h>

struct teller {
    struct page *page;
    const struct run_dir *run;
    const struct life *life;
    struct pkv_text label, text;    /* owned; of the item at hand */
};

static void put(struct teller *t, const char *label)
{
    page_item(t->page, label, t->text.text ? t->text.text : "");
    t->page->text.failed |= t->text.failed | t->label.failed;
    pkv_text_clear(&t->text);
    pkv_text_clear(&t->label);
}

static void put_at(struct teller *t, int64_t time_ns, uint64_t step)
{
    tell_moment(&t->label, t->run, time_ns, step);
    put(t, t->label.text ? t->label.text : "");
}

static void span(struct teller *t, const char *before, int64_t ns, const char *after)
{
    pkv_text_add(&t->text, before);
    tell_span(&t->text, t->run, ns);
    pkv_text_add(&t->text, after);
}

static void counted(struct teller *t, const char *before, uint64_t n, const char *word)
{
    pkv_text_add(&t->text, before);
    add_counted(&t->text, n, word);
}

/* ---- a wait ---- */

/* Under a latch it is not refused: nobody looks. */
static bool was_passed_by(const struct cause *c)
{
    return c->limit == PKV_LIMIT_LATCH;
}

static void tell_own(struct teller *t, const struct wait *w)
{
    for (size_t i = 0; i < w->num_own; i++) {
        const struct cause *c = &w->own[i];
        pkv_text_add(&t->text, i == 0 ? ". First in line at " : "; at ");
        tell_moment(&t->text, t->run, c->time_ns, c->step);
        bool was_refused = i > 0 && !was_passed_by(&w->own[i - 1]);
        pkv_text_add(&t->text, was_passed_by(c) ? ", " : was_refused ? ", for " : ", refused for ");
        tell_cause(&t->text, t->run, c);
    }
}

static void tell_ahead(struct teller *t, const struct wait *w)
{
    if (w->num_ahead == 0)
        return;
    span(t, ". For ", w->ahead_ns, " ");
    if (w->num_ahead > 1) {
        pkv_text_add(&t->text, "others were first in line, in ");
        add_grouped(&t->text, w->num_ahead);
        span(t, " turns; the longest turn, ", w->longest_ns, ", was ");
    }
    tell_name(&t->text, w->longest.names.text);
    pkv_text_add(&t->text, w->num_ahead > 1 ? "'s" : " was first in line");
    pkv_text_add(&t->text, was_passed_by(&w->longest) ? ", " : ", refused for ");
    tell_cause(&t->text, t->run, &w->longest);
}

static const char *how_left(enum pkv_event_kind kind)
{
    return kind == PKV_EVENT_FINISH ? " finished" : kind == PKV_EVENT_ABORT ? " was aborted"
                                                                            : " was preempted";
}

static void tell_leavers(struct teller *t, const struct leavers *l)
{
    size_t named = l->num < MAX_LEAVERS ? (size_t)l->num : MAX_LEAVERS;
    for (size_t i = 0; i < named; i++) {
        if (i > 0)
            pkv_text_add(&t->text, i + 1 < l->num ? ", " : " and ");
        tell_name(&t->text, l->names[i].text);
        pkv_text_add(&t->text, how_left(l->kinds[i]));
    }
    if (l->num > named) {
        counted(t, " and ", l->num - named, "other");
        pkv_text_add(&t->text, " left");
    }
}

static void tell_wait_end(struct teller *t, const struct wait *w)
{
    bool has_leavers = w->leavers.time_ns != PKV_NO_TIME && w->leavers.num > 0;
    bool has_let_in = w->let_in.length > 0;
    if (!w->has_ended || (!has_leavers && !has_let_in))
        return;
    pkv_text_add(&t->text, ". It ended when ");
    if (has_leavers)
        tell_leavers(t, &w->leavers);
    if (has_let_in) {
        pkv_text_add(&t->text, has_leavers ? ", and " : "");
        tell_name(&t->text, w->let_in.text);
        pkv_text_add(&t->text, " was let in before it");
    }
}

/* Where no cause is told. */
static void tell_no_cause(struct teller *t, const struct wait *w)
{
    if (w->num_own > 0 || w->num_ahead > 0)
        return;
    pkv_text_add(&t->text, w->after_preemption
                               ? ": a step that preempts admits nobody"
                               : ": for the end of the step under way, or of others' preemptions");
}

static void tell_wait(struct teller *t, const struct life_entry *entry)
{
    const struct wait *w = entry->wait;
    if (life_is_no_wait(entry))
        return;
    span(t, "waited ", w->end_ns - w->begin_ns, w->has_ended ? w->after_preemption
                                                               ? " to be resumed" : " to be admitted"
                                                             : ", and was not let in any more");
    tell_no_cause(t, w);
    tell_ahead(t, w);
    tell_own(t, w);
    tell_wait_end(t, w);
    put_at(t, w->begin_ns, w->begin_step);
}

/* ---- the other moments ---- */

static void tell_hit(struct teller *t, const struct life_entry *e)
{
    uint64_t prompt = t->life->row.prompt_tokens;
    if (e->hit_tokens == 0) {
        pkv_text_add(&t->text, "; nothing of it in the prefix cache");
        return;
    }
    counted(t, "; ", e->hit_tokens, "token");
    pkv_text_add(&t->text, " found in the prefix cache");
    if (e->kind == PKV_EVENT_RESUME || prompt == 0)
        return;
    pkv_text_add(&t->text, ", ");
    add_percent(&t->text, (double)e->hit_tokens / (double)prompt);
    pkv_text_add(&t->text, " of the prompt");
}

/* What went over the link, and how long it was on its way, queued or moving. */
static void tell_swap(struct teller *t, const struct life_entry *e, const char *how)
{
    counted(t, "; ", e->swapped_blocks, "block");
    pkv_text_add(&t->text, " (");
    add_grouped(&t->text, e->swapped_bytes);
    pkv_text_fmt(&t->text, " bytes) %s the host within ", how);
    tell_span(&t->text, t->run, e->swap_done_ns - e->time_ns);
}

static void tell_admission(struct teller *t, const struct life_entry *e)
{
    bool resumes = e->kind == PKV_EVENT_RESUME;
    if (e->sched_tokens == 0 && e->need_blocks == 0) {
        pkv_text_fmt(&t->text, "%s: another sample of its request computes the prompt",
                     resumes ? "resumed" : "admitted");
        put_at(t, e->time_ns, e->step);
        return;
    }
    pkv_text_add(&t->text, resumes ? "resumed: took " : "admitted: took ");
    add_grouped(&t->text, e->need_blocks);
    counted(t, " of ", e->free_blocks, "free block");
    if (t->run->scenario->sched.prefix_cache)
        tell_hit(t, e);
    if (e->swapped_blocks > 0) {
        tell_swap(t, e, "come back from");
        put_at(t, e->time_ns, e->step);
        return;
    }
    counted(t, "; ", e->sched_tokens, "token");
    pkv_text_add(&t->text, " scheduled");
    if (e->hit_tokens + e->sched_tokens < e->known_tokens) {
        pkv_text_add(&t->text, " of ");
        add_grouped(&t->text, e->known_tokens - e->hit_tokens);
        pkv_text_add(&t->text, " to compute");
    }
    if (resumes) {
        pkv_text_add(&t->text, ", ");
        add_grouped(&t->text, e->again_tokens);
        pkv_text_add(&t->text, " of them for the second time");
    }
    put_at(t, e->time_ns, e->step);
}

static void tell_preemption(struct teller *t, const struct life_entry *e)
{
    const struct pkv_policies *policies = &t->run->scenario->sched.policies;
    if (strcmp(e->who.text, t->life->row.id.text) == 0) {
        pkv_text_fmt(&t->text, "preempted itself: short of a block, and the one to give up "
                     "(preempt: %s)", policies->preempt->info.name);
    } else {
        pkv_text_add(&t->text, "preempted for ");
        tell_name(&t->text, e->who.text);
        pkv_text_fmt(&t->text, ", which was short of a block (preempt: %s)",
                     policies->preempt->info.name);
    }
    bool swapped = e->swapped_blocks > 0;
    if (swapped) {
        tell_swap(t, e, "go to");
    } else {
        counted(t, "; gave up ", e->freed_blocks, "block");
        counted(t, " with ", e->lost_tokens, "computed token");
    }
    if (e->back_ns != PKV_NO_TIME)
        span(t, swapped ? "; let in again " : "; computed again ", e->back_ns - e->time_ns, " later");
    else
        pkv_text_add(&t->text, swapped ? "; never let in again" : "; never computed again");
    put_at(t, e->time_ns, e->step);
}

/* At the end of its prompt it holds nothing; a beam that gives way does. */
static void tell_fork(struct teller *t, const struct life_entry *e)
{
    bool gives_way = e->shared_tokens > t->life->row.prompt_tokens;
    pkv_text_add(&t->text, gives_way ? "gave way: goes on from " : "forked from ");
    tell_name(&t->text, e->who.text);
    counted(t, ", whose ", e->shared_blocks, "block");
    counted(t, " with ", e->shared_tokens, "token");
    pkv_text_add(&t->text, " it shares");
    if (gives_way) {
        counted(t, "; ", e->freed_blocks, "block");
        pkv_text_add(&t->text, " of its own became free");
    }
    put_at(t, e->time_ns, e->step);
}

static void tell_finish(struct teller *t, const struct life_entry *e)
{
    counted(t, "finished with ", t->life->row.output_tokens, "token");
    span(t, ", ", e->time_ns - t->life->row.arrival_ns, " after its arrival");
    put_at(t, e->time_ns, e->step);
}

static void tell_abort(struct teller *t, const struct life_entry *e)
{
    pkv_text_fmt(&t->text, "aborted while it was %s", e->who.text);
    counted(t, "; gave up ", e->freed_blocks, "block");
    counted(t, "; ", t->life->row.output_tokens, "token");
    span(t, " had come out; ", e->time_ns - t->life->row.arrival_ns, " after its arrival");
    put_at(t, e->time_ns, e->step);
}

static void tell_entry(struct teller *t, const struct life_entry *e)
{
    switch (e->kind) {
    case PKV_EVENT_ARRIVE:
        pkv_text_add(&t->text, "arrived");
        put_at(t, e->time_ns, e->step);
        break;
    case PKV_EVENT_BLOCKED:
        tell_wait(t, e);
        break;
    case PKV_EVENT_ADMIT:
    case PKV_EVENT_RESUME:
        tell_admission(t, e);
        break;
    case PKV_EVENT_PREEMPT:
        tell_preemption(t, e);
        break;
    case PKV_EVENT_FORK:
        tell_fork(t, e);
        break;
    case PKV_EVENT_FIRST_TOKEN:
        span(t, "first token, ", e->time_ns - t->life->row.arrival_ns, " after its arrival");
        put_at(t, e->time_ns, e->step);
        break;
    case PKV_EVENT_FINISH:
        tell_finish(t, e);
        break;
    case PKV_EVENT_ABORT:
        tell_abort(t, e);
        break;
    case PKV_EVENT_REJECT:
        pkv_text_add(&t->text, "rejected: ");
        pkv_text_add(&t->text, e->who.text);
        put_at(t, e->time_ns, e->step);
        break;
    case PKV_EVENT_SWAP_OUT:    /* told with what they are of */
    case PKV_EVENT_SWAP_IN:
    case PKV_EVENT_KIND_COUNT:
        break;
    }
}

/* ---- head and foot ---- */

static void tell_head(struct teller *t)
{
    const struct run_row *row = &t->life->row;
    struct pkv_text title = {0};
    pkv_text_add(&title, "Request ");
    tell_name(&title, row->id.text);
    pkv_text_fmt(&title, ": %s", pkv_request_status_name(row->status));
    if (row->reason.length > 0)
        pkv_text_fmt(&title, ": %s", row->reason.text);
    page_ink(t->page, INK_HEAD);
    page_wrap(t->page, 0, title.text ? title.text : "");
    page_ink(t->page, INK_PLAIN);
    t->page->text.failed |= title.failed;
    pkv_text_free(&title);
    counted(t, "", row->prompt_tokens, "prompt token");
    counted(t, ", ", row->output_tokens, "token");
    pkv_text_add(&t->text, " came out");
    if (row->priority != PKV_NO_TIME && row->priority != 0)
        pkv_text_fmt(&t->text, "; priority %lld", (long long)row->priority);
    if (row->tenant.length > 0)
        pkv_text_fmt(&t->text, "; tenant %s", row->tenant.text);
    put(t, "tokens");
    if (row->peak_blocks > 0) {
        counted(t, "", row->peak_blocks, "block");
        pkv_text_add(&t->text, " held at most");
        put(t, "blocks");
    }
}

static void tell_part(struct teller *t, const char *before, int64_t ns, int64_t whole)
{
    span(t, before, ns, "");
    if (whole > 0 && ns > 0) {
        pkv_text_add(&t->text, " (");
        add_percent(&t->text, (double)ns / (double)whole);
        pkv_text_add(&t->text, ")");
    }
}

static void tell_totals(struct teller *t)
{
    const struct life *life = t->life;
    int64_t whole = life->waiting_ns + life->prefill_ns + life->decoding_ns + life->preempted_ns;
    if (life->row.status == PKV_REQUEST_REJECTED)
        return;
    span(t, "", whole, ": ");
    tell_part(t, "waiting ", life->waiting_ns, whole);
    tell_part(t, ", prefill ", life->prefill_ns, whole);
    tell_part(t, ", decoding ", life->decoding_ns, whole);
    tell_part(t, ", preempted ", life->preempted_ns, whole);
    put(t, "time");
    if (life->row.preemptions == 0)
        return;
    counted(t, "", life->row.preemptions, "preemption");
    counted(t, ", ", life->row.recomputed_tokens, "token");
    pkv_text_add(&t->text, " computed again");
    put(t, "cost");
}

static void tell_gap(struct teller *t, const struct gap *gap)
{
    if (gap->cause == GAP_NONE)
        return;
    span(t, "", gap->ns, " between two tokens: ");
    switch (gap->cause) {
    case GAP_PREEMPTION:
        pkv_text_add(&t->text, "it was preempted at ");
        tell_moment(&t->text, t->run, gap->preemption->time_ns, gap->preemption->step);
        span(t, ", away for ", gap->preemption->back_ns - gap->preemption->time_ns,
             gap->preemption->swapped_blocks > 0 ? ", and came back from the host"
                                                 : ", and had to compute again");
        break;
    case GAP_STEP:
        if (gap->ns == t->run->step_ns) {
            pkv_text_add(&t->text, "a step like every other");
            break;
        }
        pkv_text_add(&t->text, "the step at ");
        tell_moment(&t->text, t->run, gap->time_ns, gap->step);
        counted(t, ", with ", gap->prefill_tokens, "prompt token");
        pkv_text_add(&t->text, " of all requests in it and ");
        counted(t, "", gap->decode_tokens, "decode");
        break;
    case GAP_UNKNOWN:
        pkv_text_add(&t->text, "no preemption, and no step that long in steps.csv: it was left out of "
                               "steps, or steps.csv is not there whole");
        break;
    case GAP_NONE:
    case GAP_CAUSE_COUNT:
        break;
    }
    put(t, "largest gap");
}

void tell_life(struct page *p, const struct run_dir *run, const struct life *life,
               const struct gap *gap)
{
    struct teller t = {.page = p, .run = run, .life = life};
    tell_head(&t);
    pkv_text_add(&p->text, "\n");
    for (size_t i = 0; i < life->num; i++)
        tell_entry(&t, &life->entries[i]);
    if (life->row.status == PKV_REQUEST_UNFINISHED) {
        pkv_text_add(&t.text, "the run ended; it was not finished");
        put(&t, run->step_ns > 0 ? "the end" : "end");
    }
    pkv_text_add(&p->text, "\n");
    tell_gap(&t, gap);
    tell_totals(&t);
    pkv_text_free(&t.label);
    pkv_text_free(&t.text);
}
