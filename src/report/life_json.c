/*
 * life_json.c - the life of a request as data: what tell_life.c says in sentences.
 */
#include "report/explain_private.h"

#include <string.h>

/* A comma where one is due, and the key. */
static void key(struct pkv_text *t, const char *name)
{
    if (t->length > 0 && t->text[t->length - 1] != '{')
        pkv_text_add(t, ", ");
    pkv_text_json(t, name);
    pkv_text_add(t, ": ");
}

static void count(struct pkv_text *t, const char *name, uint64_t n)
{
    key(t, name);
    pkv_text_u64(t, n);
}

static void moment(struct pkv_text *t, const char *name, int64_t ns)
{
    key(t, name);
    if (ns == PKV_NO_TIME)
        pkv_text_add(t, "null");
    else
        pkv_text_i64(t, ns);
}

static void word(struct pkv_text *t, const char *name, const char *text)
{
    key(t, name);
    pkv_text_json(t, text);
}

static void add_cause(struct pkv_text *t, const struct cause *c)
{
    pkv_text_add(t, "{");
    word(t, "id", c->names.text);
    moment(t, "time_ns", c->time_ns);
    count(t, "step", c->step);
    word(t, "limit", pkv_limit_name(c->limit));
    count(t, "need_blocks", c->need_blocks);
    count(t, "free_blocks", c->free_blocks);
    if (c->is_latched) {
        count(t, "refused_step", c->refused_step);
        word(t, "refused", tell_name_of(c, c->refused));
        count(t, "latched_steps", c->num_latched_steps);
    }
    key(t, "holders");
    for (size_t i = 0; i < c->num_holders; i++) {
        pkv_text_add(t, i == 0 ? "[[" : ", [");
        pkv_text_json(t, tell_name_of(c, c->holders[i].name));
        pkv_text_add(t, ", ");
        pkv_text_u64(t, c->holders[i].num_blocks);
        pkv_text_add(t, "]");
    }
    pkv_text_add(t, c->num_holders == 0 ? "[]}" : "]}");
}

static void add_ended_by(struct pkv_text *t, const struct leavers *l)
{
    size_t named = l->num < MAX_LEAVERS ? (size_t)l->num : MAX_LEAVERS;
    key(t, "ended_by");
    pkv_text_add(t, "[");
    for (size_t i = 0; l->time_ns != PKV_NO_TIME && i < named; i++) {
        pkv_text_add(t, i == 0 ? "{" : ", {");
        word(t, "id", l->names[i].text);
        word(t, "kind", pkv_event_kind_name(l->kinds[i]));
        moment(t, "time_ns", l->time_ns);
        count(t, "step", l->step);
        pkv_text_add(t, "}");
    }
    pkv_text_add(t, "]");
}

static void add_wait(struct pkv_text *t, const struct wait *w)
{
    moment(t, "end_ns", w->end_ns);
    key(t, "admitted");
    pkv_text_add(t, w->has_ended ? "true" : "false");
    key(t, "causes");
    pkv_text_add(t, "[");
    for (size_t i = 0; i < w->num_own; i++) {
        pkv_text_add(t, i > 0 ? ", " : "");
        add_cause(t, &w->own[i]);
    }
    pkv_text_add(t, "]");
    count(t, "num_ahead", w->num_ahead);
    moment(t, "behind_ns", w->ahead_ns);
    moment(t, "longest_behind_ns", w->longest_ns);
    key(t, "longest_ahead");
    if (w->num_ahead > 0)
        add_cause(t, &w->longest);
    else
        pkv_text_add(t, "null");
    add_ended_by(t, &w->leavers);
    key(t, "let_in_before");
    if (w->let_in.length > 0)
        pkv_text_json(t, w->let_in.text);
    else
        pkv_text_add(t, "null");
}

static void add_admission(struct pkv_text *t, const struct life_entry *e)
{
    count(t, "need_blocks", e->need_blocks);
    count(t, "free_blocks", e->free_blocks);
    count(t, "hit_tokens", e->hit_tokens);
    count(t, "sched_tokens", e->sched_tokens);
    count(t, "known_tokens", e->known_tokens);
    if (e->kind == PKV_EVENT_RESUME)
        count(t, "recomputed_tokens", e->again_tokens);
}

static void add_entry(struct pkv_text *t, const struct life_entry *e)
{
    pkv_text_add(t, "{");
    word(t, "kind", e->kind == PKV_EVENT_BLOCKED ? "wait" : pkv_event_kind_name(e->kind));
    moment(t, "time_ns", e->time_ns);
    count(t, "step", e->step);
    if (e->wait)
        add_wait(t, e->wait);
    if (e->kind == PKV_EVENT_ADMIT || e->kind == PKV_EVENT_RESUME)
        add_admission(t, e);
    if (e->kind == PKV_EVENT_PREEMPT) {
        word(t, "for", e->who.text);
        count(t, "freed_blocks", e->freed_blocks);
        count(t, "lost_tokens", e->lost_tokens);
        moment(t, "resumed_ns", e->back_ns);
    }
    if (e->swapped_blocks > 0) {
        count(t, "swapped_blocks", e->swapped_blocks);
        count(t, "swapped_bytes", e->swapped_bytes);
        moment(t, "swap_done_ns", e->swap_done_ns);
    }
    if (e->kind == PKV_EVENT_FORK) {
        word(t, "from", e->who.text);
        count(t, "shared_blocks", e->shared_blocks);
        count(t, "shared_tokens", e->shared_tokens);
        count(t, "freed_blocks", e->freed_blocks);
    }
    if (e->kind == PKV_EVENT_REJECT)
        word(t, "reason", e->who.text);
    if (e->kind == PKV_EVENT_ABORT) {
        word(t, "was", e->who.text);
        count(t, "freed_blocks", e->freed_blocks);
    }
    pkv_text_add(t, "}");
}

static void add_row(struct pkv_text *t, const struct run_row *row)
{
    word(t, "id", row->id.text);
    word(t, "status", pkv_request_status_name(row->status));
    word(t, "reason", row->reason.text);
    moment(t, "arrival_ns", row->arrival_ns);
    moment(t, "admitted_ns", row->admitted_ns);
    moment(t, "first_token_ns", row->first_token_ns);
    moment(t, "finish_ns", row->finish_ns);
    count(t, "prompt_tokens", row->prompt_tokens);
    count(t, "output_tokens", row->output_tokens);
    count(t, "hit_tokens", row->hit_tokens);
    count(t, "recomputed_tokens", row->recomputed_tokens);
    count(t, "preemptions", row->preemptions);
    count(t, "peak_blocks", row->peak_blocks);
    word(t, "tenant", row->tenant.text);
    moment(t, "priority", row->priority);
}

static void add_gap(struct pkv_text *t, const struct gap *gap)
{
    pkv_text_add(t, ",\n  \"largest_gap\": {");
    moment(t, "ns", gap->ns);
    word(t, "cause", gap_cause_name(gap->cause));
    if (gap->cause == GAP_PREEMPTION) {
        moment(t, "time_ns", gap->preemption->time_ns);
        count(t, "step", gap->preemption->step);
    } else if (gap->cause == GAP_STEP) {
        moment(t, "time_ns", gap->time_ns);
        count(t, "step", gap->step);
        count(t, "prefill_tokens", gap->prefill_tokens);
        count(t, "decode_tokens", gap->decode_tokens);
    }
    pkv_text_add(t, "}");
}

void life_json(struct pkv_text *t, const struct life *life, const struct gap *gap)
{
    pkv_text_add(t, "{");
    add_row(t, &life->row);
    pkv_text_add(t, ",\n  \"time_ns\": {");
    moment(t, "waiting", life->waiting_ns);
    moment(t, "prefill", life->prefill_ns);
    moment(t, "decoding", life->decoding_ns);
    moment(t, "preempted", life->preempted_ns);
    pkv_text_add(t, "}");
    add_gap(t, gap);
    pkv_text_add(t, ",\n  \"life\": [");
    for (size_t i = 0; i < life->num; i++) {
        if (life_is_no_wait(&life->entries[i]))
            continue;
        pkv_text_add(t, i > 0 ? ",\n    " : "\n    ");
        add_entry(t, &life->entries[i]);
    }
    pkv_text_add(t, "\n  ]}\n");
}
