/*
 * arrivals.c - who comes and who is cancelled when a step begins.
 *
 * A request joins at the first step that starts at or after its arrival. Aborts due are taken after
 * the arrivals, in the order of (time, row), so a request can be aborted in the step it came in.
 */
#include "engine/engine_private.h"

#include <stddef.h>

#include "base/alloc.h"

int engine_fetch(struct pkv_engine *e, struct pkv_err *err)
{
    int got = e->config.source.next(e->config.source.ctx, &e->next, err);
    e->has_next = got == 1;
    return got < 0 ? -1 : 0;
}

static int note_abort(struct pkv_engine *e, struct pkv_request *r, struct pkv_err *err)
{
    if (r->abort_ns == PKV_NO_TIME)
        return 0;
    if (pkv_heap_reserve(&e->aborts, e->aborts.num + 1, err) < 0)
        return -1;
    r->abort_node.key[0] = r->abort_ns;
    r->abort_node.key[1] = (int64_t)r->row;
    pkv_heap_push(&e->aborts, &r->abort_node);
    return 0;
}

static int reject(struct pkv_engine *e, struct pkv_request *r, const char *reason,
                  struct pkv_err *err)
{
    struct pkv_event event = event_of(e, PKV_EVENT_REJECT, r->arrival_ns, r);
    event.reason = reason;
    if (emit_event(e, &event, err) < 0 || emit_request(e, r, reason, PKV_NO_TIME, err) < 0)
        return -1;
    pkv_sched_forget(e->sched, r);
    return 0;
}

static int arrive(struct pkv_engine *e, struct pkv_err *err)
{
    char reason[256];
    struct pkv_request *r;
    if (pkv_sched_add(e->sched, &e->next, &r, reason, sizeof reason, err) < 0)
        return -1;
    e->figures.arrived++;
    if (e->figures.first_arrival_ns == PKV_NO_TIME)
        e->figures.first_arrival_ns = r->arrival_ns;
    bool rejected = r->status == PKV_REQUEST_REJECTED;
    e->figures.rejected += rejected;
    e->row.rejected += rejected;
    struct pkv_event event = event_of(e, PKV_EVENT_ARRIVE, r->arrival_ns, r);
    if (emit_event(e, &event, err) < 0)
        return -1;
    if (rejected)
        return reject(e, r, reason, err);
    return note_abort(e, r, err);
}

int engine_arrivals(struct pkv_engine *e, struct pkv_err *err)
{
    while (e->has_next && e->next.arrival_ns <= e->now_ns)
        if (arrive(e, err) < 0 || engine_fetch(e, err) < 0)
            return -1;
    return 0;
}

static struct pkv_request *owner(struct pkv_heap_node *node)
{
    return (struct pkv_request *)((char *)node - offsetof(struct pkv_request, abort_node));
}

static int abort_request(struct pkv_engine *e, struct pkv_request *r, struct pkv_err *err)
{
    struct pkv_event event = event_of(e, PKV_EVENT_ABORT, e->now_ns, r);
    event.was = r->status;
    event.freed_blocks = pkv_sched_abort(e->sched, r);
    gaps_settle(e, r, e->now_ns);
    e->figures.aborted++;
    e->row.aborted++;
    if (emit_event(e, &event, err) < 0 || emit_request(e, r, "", e->now_ns, err) < 0)
        return -1;
    pkv_sched_forget(e->sched, r);
    return 0;
}

int engine_aborts(struct pkv_engine *e, struct pkv_err *err)
{
    struct pkv_heap_node *first;
    while ((first = pkv_heap_first(&e->aborts)) && first->key[0] <= e->now_ns) {
        pkv_heap_remove(&e->aborts, first);
        if (abort_request(e, owner(first), err) < 0)
            return -1;
    }
    return 0;
}
