/*
 * stepper_tell.c - what happens in a step, in short sentences with its numbers.
 */
#include "report/stepper_private.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/units.h"

enum told told_of(enum pkv_event_kind kind)
{
    switch (kind) {
    case PKV_EVENT_ARRIVE:      return TOLD_ARRIVED;
    case PKV_EVENT_REJECT:      return TOLD_REJECTED;
    case PKV_EVENT_ADMIT:       return TOLD_ADMITTED;
    case PKV_EVENT_RESUME:      return TOLD_RESUMED;
    case PKV_EVENT_PREEMPT:     return TOLD_PREEMPTED;
    case PKV_EVENT_FIRST_TOKEN: return TOLD_FIRST;
    case PKV_EVENT_FINISH:      return TOLD_FINISHED;
    case PKV_EVENT_ABORT:       return TOLD_ABORTED;
    case PKV_EVENT_SWAP_OUT:    return TOLD_SWAPPED_OUT;
    case PKV_EVENT_SWAP_IN:     return TOLD_SWAPPED_IN;
    case PKV_EVENT_FORK:        return TOLD_FORKED;
    case PKV_EVENT_BLOCKED:     /* the plan tells it in every step */
    case PKV_EVENT_KIND_COUNT:  break;
    }
    return TOLD_COUNT;
}

static void tell_id(struct pkv_text *t, const struct pkv_request *r)
{
    if (r->id)
        pkv_text_add(t, r->id);
    else
        pkv_text_u64(t, r->row);
}

static void counted(struct pkv_text *t, const char *before, uint64_t n, const char *word)
{
    pkv_text_add(t, before);
    add_counted(t, n, word);
}

static void tell_arrival(struct pkv_text *t, const struct pkv_request *r)
{
    counted(t, " with ", r->seq.num_prompt_tokens, "prompt token");
    counted(t, ", ", r->emits_nothing ? 0 : r->num_output_tokens, "output token");
    if (r->priority != 0)
        pkv_text_fmt(t, "; priority %" PRId64, r->priority);
}

static void tell_admission(struct pkv_text *t, const struct pkv_scenario *scenario,
                           const struct pkv_event *e)
{
    const struct pkv_request *r = e->request;
    if (e->sched_tokens == 0 && e->need_blocks == 0) {
        pkv_text_add(t, "; another sample of its request computes the prompt");
        return;
    }
    uint32_t to_compute = r->seq.num_known_tokens - e->hit_tokens;
    counted(t, " with ", e->sched_tokens, "token");
    if (e->sched_tokens < to_compute) {
        pkv_text_add(t, " of ");
        add_grouped(t, to_compute);
    }
    if (scenario->sched.prefix_cache) {
        pkv_text_add(t, ", hit ");
        add_grouped(t, e->hit_tokens);
    }
    uint32_t highest = r->num_highest_tokens;
    uint32_t again = highest > e->hit_tokens ? highest - e->hit_tokens : 0;
    again = again < e->sched_tokens ? again : e->sched_tokens;
    if (again > 0) {
        pkv_text_add(t, "; ");
        add_grouped(t, again);
        pkv_text_add(t, " of them for the second time");
    }
    pkv_text_add(t, "; took ");
    add_grouped(t, e->need_blocks);
    counted(t, " of ", e->free_blocks, "free block");
}

static void tell_preemption(struct pkv_text *t, const struct pkv_scenario *scenario,
                            const struct pkv_event *e)
{
    if (e->grower == e->request) {
        pkv_text_add(t, ": short of a block itself, and the one to give up");
    } else {
        pkv_text_add(t, " for ");
        tell_id(t, e->grower);
        pkv_text_add(t, ", which was short of a block");
    }
    pkv_text_fmt(t, " (preempt: %s)", scenario->sched.policies.preempt->info.name);
    counted(t, "; lost ", e->lost_tokens, "computed token");
    counted(t, ", ", e->freed_blocks, "block");
    pkv_text_add(t, " became free");
}

static void tell_transfer(struct pkv_text *t, const struct pkv_event *e)
{
    bool is_out = e->kind == PKV_EVENT_SWAP_OUT;
    char span[64];
    counted(t, ": ", e->num_blocks, "block");
    pkv_text_add(t, is_out ? " go to the host (" : " come from the host (");
    add_grouped(t, e->num_bytes);
    pkv_text_add(t, is_out ? " bytes), free in " : " bytes), there in ");
    pkv_text_add(t, pkv_format_duration(e->done_ns - e->time_ns, span, sizeof span));
}

static void tell_fork(struct pkv_text *t, const struct pkv_event *e)
{
    pkv_text_add(t, " from ");
    tell_id(t, e->parent);
    counted(t, ": shares its ", e->shared_blocks, "block");
    if (e->freed_blocks > 0) {
        counted(t, ", ", e->freed_blocks, "block");
        pkv_text_add(t, " of its own became free");
    }
}

static void tell_what(struct pkv_text *t, const struct pkv_scenario *scenario,
                      const struct pkv_event *e)
{
    switch (e->kind) {
    case PKV_EVENT_ARRIVE:
        tell_arrival(t, e->request);
        break;
    case PKV_EVENT_REJECT:
        pkv_text_fmt(t, ": %s", e->reason);
        break;
    case PKV_EVENT_ADMIT:
    case PKV_EVENT_RESUME:
        tell_admission(t, scenario, e);
        break;
    case PKV_EVENT_PREEMPT:
        tell_preemption(t, scenario, e);
        break;
    case PKV_EVENT_FORK:
        tell_fork(t, e);
        break;
    case PKV_EVENT_FINISH:
        counted(t, " with ", e->request->num_emitted, "token");
        break;
    case PKV_EVENT_ABORT:
        pkv_text_fmt(t, " while it was %s", pkv_request_status_name(e->was));
        counted(t, "; ", e->freed_blocks, "block");
        pkv_text_add(t, " became free");
        break;
    case PKV_EVENT_SWAP_OUT:
    case PKV_EVENT_SWAP_IN:
        tell_transfer(t, e);
        break;
    case PKV_EVENT_FIRST_TOKEN:
    case PKV_EVENT_BLOCKED:
    case PKV_EVENT_KIND_COUNT:
        break;
    }
}

/* The sentence that ends in words now. */
static int add_told(struct tick *tick, struct told_item item, struct pkv_err *err)
{
    pkv_text_bytes(&tick->words, "", 1);
    if (tick->words.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a step's page");
    if (pkv_grow(&tick->told, &tick->told_capacity, tick->num_told + 1, sizeof *tick->told,
                 err) < 0)
        return -1;
    tick->told[tick->num_told++] = item;
    return 0;
}

int tell_event(struct tick *tick, const struct pkv_scenario *scenario,
               const struct pkv_event *event, struct pkv_err *err)
{
    struct told_item item = {.what = told_of(event->kind), .other = NOBODY,
                             .row = event->request->row};
    item.who = tick_add_id(tick, event->request);
    if (event->grower || event->parent)
        item.other = tick_add_id(tick, event->grower ? event->grower : event->parent);
    item.text = tick->words.length;
    tell_id(&tick->words, event->request);
    tell_what(&tick->words, scenario, event);
    return add_told(tick, item, err);
}

/* ---- the head of the queue ---- */

/* Most blocks first, ties by admission; at most num of them. */
static size_t find_holders(const struct tick *tick, const struct tick_running **out, size_t num)
{
    size_t found = 0;
    for (size_t i = 0; i < tick->num_running; i++) {
        const struct tick_running *r = &tick->running[i];
        size_t place = found < num ? found++ : num;
        for (; place > 0 && out[place - 1]->num_held < r->num_held; place--)
            if (place < num)
                out[place] = out[place - 1];
        if (place < num)
            out[place] = r;
    }
    return found;
}

static void tell_holders(struct tick *tick)
{
    const struct tick_running *holders[PKV_MAX_HOLDERS] = {NULL};
    size_t num = find_holders(tick, holders, PKV_MAX_HOLDERS);
    for (size_t i = 0; i < num; i++) {
        pkv_text_add(&tick->words, i == 0 ? "; " : i + 1 < num ? ", " : " and ");
        /* Copied first: the text may move while it grows. */
        struct pkv_text id = {0};
        pkv_text_add(&id, tick_word(tick, holders[i]->id));
        pkv_text_add(&tick->words, id.failed ? "" : id.text);
        tick->words.failed |= id.failed;
        pkv_text_free(&id);
        pkv_text_add(&tick->words, i == 0 ? " holds " : " ");
        add_grouped(&tick->words, holders[i]->num_held);
    }
}

static void tell_reason(struct tick *tick, const struct pkv_scenario *scenario,
                        const struct pkv_plan *plan, const struct pkv_request *head)
{
    const struct pkv_request *refused = pkv_request_get(plan->refused);
    struct pkv_text id = {0};
    if (plan->limit != PKV_LIMIT_LATCH || !plan->is_latched) {
        add_limit_reason(&tick->words, plan->limit, scenario);
        return;
    }
    if (refused)
        tell_id(&id, refused);
    add_latch_reason(&tick->words, refused == head ? "it" : id.text,
                     plan->number - plan->refused_number);
    tick->words.failed |= id.failed;
    pkv_text_free(&id);
}

int tell_head(struct tick *tick, const struct pkv_scenario *scenario, struct pkv_sched *sched,
              const struct pkv_plan *plan, struct pkv_err *err)
{
    struct pkv_request *head = pkv_request_get(plan->head);
    uint64_t need = plan->head_need_blocks;
    uint32_t num_free = plan->head_free_blocks;
    bool is_barred = plan->limit == PKV_LIMIT_PREEMPTED || plan->limit == PKV_LIMIT_LATCH;
    if (!head && is_barred) {   /* nobody was looked at */
        if (pkv_sched_find_first(sched, &head, err) < 0)
            return -1;
        num_free = tick->num_free;
    }
    if (!head)
        return 0;
    if (need == 0)   /* it was not asked for: what all its tokens would take */
        need = pkv_sched_blocks_for(sched, head->seq.num_known_tokens);
    struct told_item item = {.what = TOLD_WAITS, .other = NOBODY, .row = head->row};
    item.who = tick_add_id(tick, head);
    item.text = tick->words.length;
    tell_id(&tick->words, head);
    pkv_text_add(&tick->words, ", first in line: ");
    tell_reason(tick, scenario, plan, head);
    counted(&tick->words, "; needs ", need, "block");
    pkv_text_add(&tick->words, ", ");
    add_grouped(&tick->words, num_free);
    pkv_text_add(&tick->words, " free");
    tell_holders(tick);
    return add_told(tick, item, err);
}
