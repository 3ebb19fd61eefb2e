/*
 * event_log.c - events.jsonl: one line for each thing that happened to a request.
 *
 * The keys of a line stand in a fixed order: time_ns, step, kind, id, then those of its kind.
 */
#include "metrics/metrics_private.h"

static void number(struct pkv_out *out, const char *key, uint64_t n)
{
    pkv_out_text(out, key);
    pkv_out_u64(out, n);
}

static void word(struct pkv_out *out, const char *key, const char *text)
{
    pkv_out_text(out, key);
    pkv_out_json_text(out, text);
}

static void admission(struct pkv_out *out, const struct pkv_event *e)
{
    number(out, ",\"need_blocks\":", e->need_blocks);
    number(out, ",\"free_blocks\":", e->free_blocks);
    number(out, ",\"hit_tokens\":", e->hit_tokens);
    number(out, ",\"sched_tokens\":", e->sched_tokens);
}

static int blocked(struct pkv_out *out, struct pkv_text *scratch, const struct pkv_event *e,
                   struct pkv_err *err)
{
    number(out, ",\"limit\":", (uint64_t)e->limit);
    number(out, ",\"need_blocks\":", e->need_blocks);
    number(out, ",\"free_blocks\":", e->free_blocks);
    pkv_out_text(out, ",\"holders\":[");
    for (size_t i = 0; i < e->num_holders; i++) {
        const char *id = request_id(scratch, e->holders[i].request, err);
        if (!id)
            return -1;
        word(out, i ? ",[" : "[", id);
        number(out, ",", e->holders[i].num_blocks);
        pkv_out_char(out, ']');
    }
    pkv_out_char(out, ']');
    if (!e->is_latched)
        return 0;
    number(out, ",\"refused_step\":", e->refused_step);
    const char *id = e->refused ? request_id(scratch, e->refused, err) : NULL;
    if (id)
        word(out, ",\"refused\":", id);
    return e->refused && !id ? -1 : 0;
}

static int preemption(struct pkv_out *out, struct pkv_text *scratch, const struct pkv_event *e,
                      struct pkv_err *err)
{
    const char *grower = request_id(scratch, e->grower, err);
    if (!grower)
        return -1;
    word(out, ",\"for\":", grower);
    number(out, ",\"freed_blocks\":", e->freed_blocks);
    number(out, ",\"lost_tokens\":", e->lost_tokens);
    return 0;
}

static int fork_of(struct pkv_out *out, struct pkv_text *scratch, const struct pkv_event *e,
                   struct pkv_err *err)
{
    const char *parent = request_id(scratch, e->parent, err);
    if (!parent)
        return -1;
    word(out, ",\"from\":", parent);
    number(out, ",\"shared_blocks\":", e->shared_blocks);
    number(out, ",\"shared_tokens\":", e->shared_tokens);
    number(out, ",\"freed_blocks\":", e->freed_blocks);
    return 0;
}

static int by_kind(struct pkv_out *out, struct pkv_text *scratch, const struct pkv_event *e,
                   struct pkv_err *err)
{
    PKV_ASSERT((unsigned)e->kind < PKV_EVENT_KIND_COUNT);
    switch (e->kind) {
    case PKV_EVENT_ARRIVE:
        number(out, ",\"prompt_tokens\":", e->request->seq.num_prompt_tokens);
        number(out, ",\"output_tokens\":",
               e->request->emits_nothing ? 0 : e->request->num_output_tokens);
        if (e->follows) {
            number(out, ",\"former_tokens\":", e->former_tokens);
            number(out, ",\"retained_tokens\":", e->retained_tokens);
        }
        return 0;
    case PKV_EVENT_REJECT:
        word(out, ",\"reason\":", e->reason);
        return 0;
    case PKV_EVENT_ADMIT:
    case PKV_EVENT_RESUME:
        admission(out, e);
        return 0;
    case PKV_EVENT_BLOCKED:
        return blocked(out, scratch, e, err);
    case PKV_EVENT_PREEMPT:
        return preemption(out, scratch, e, err);
    case PKV_EVENT_FIRST_TOKEN:
        return 0;
    case PKV_EVENT_FINISH:
        number(out, ",\"output_tokens\":", e->request->num_emitted);
        return 0;
    case PKV_EVENT_ABORT:
        word(out, ",\"was\":", pkv_request_status_name(e->was));
        number(out, ",\"freed_blocks\":", e->freed_blocks);
        return 0;
    case PKV_EVENT_SWAP_OUT:
    case PKV_EVENT_SWAP_IN:
        number(out, ",\"blocks\":", e->num_blocks);
        number(out, ",\"bytes\":", e->num_bytes);
        number(out, ",\"done_ns\":", (uint64_t)e->done_ns);
        return 0;
    case PKV_EVENT_FORK:
        return fork_of(out, scratch, e, err);
    case PKV_EVENT_KIND_COUNT:
        break;
    }
    return 0;
}

int event_log_add(struct pkv_out *out, struct pkv_text *scratch, const struct pkv_event *event,
                  struct pkv_err *err)
{
    const char *id = request_id(scratch, event->request, err);
    if (!id)
        return -1;
    pkv_out_text(out, "{\"time_ns\":");
    pkv_out_i64(out, event->time_ns);
    number(out, ",\"step\":", event->step);
    word(out, ",\"kind\":", pkv_event_kind_name(event->kind));
    word(out, ",\"id\":", id);
    if (by_kind(out, scratch, event, err) < 0)
        return -1;
    pkv_out_text(out, "}\n");
    pkv_out_end_row(out);
    return 0;
}
