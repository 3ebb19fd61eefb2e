/*
 * arrivals.c - who comes and who is cancelled when a step begins.
 *
 * A request joins at the first step that starts at or after its arrival. Those that follow others are
 * read ahead as far as they go; when they come is decided by the end of the others. Aborts due are
 * taken after the arrivals, in the order of (time, row), so a request can be aborted in the step it
 * came in.
 */
#include "engine/engine_private.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/alloc.h"

/* A row that should have come in a step that is over: rows before it could not be read on from. */
static int check_in_time(const struct pkv_engine *e, int64_t arrival_ns, struct pkv_err *err)
{
    if (arrival_ns == PKV_NO_TIME || arrival_ns > e->stopped_ns)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " (from 0) should have come at %" PRId64
                    " ns, but stands behind more than %u rows of one session that wait for one "
                    "another; put it before them", e->next.row, arrival_ns, PKV_MOST_ROWS_AHEAD);
}

/* Nobody is live and nobody is coming: what is held or not read yet would never come. */
int engine_check_left(const struct pkv_engine *e, struct pkv_err *err)
{
    if (e->has_next)
        return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " (from 0) and those behind it never come: "
                        "it stands behind more than %u rows that wait for the end of something that "
                        "comes later; put each session's rows nearer to its first one", e->next.row,
                        PKV_MOST_ROWS_AHEAD);
    return sessions_check_left(&e->sessions, err);
}

static bool has_prev(const struct pkv_content *content)
{
    uint64_t prev = pkv_origin(PKV_ORIGIN_PREV, 0);
    for (size_t i = 0; i < content->num_prompt_spans; i++)
        if (content->prompt[i].origin == prev)
            return true;
    return false;
}

static int read_row(struct pkv_engine *e, struct pkv_err *err)
{
    int got = samples_next(e, err);
    e->has_next = got == 1;
    if (got <= 0)
        return got;
    PKV_ASSERT(!e->next.follows || (e->next.session && e->config.source.has_followers));
    if (e->next.follows)
        return 0;
    if (e->next.session && has_prev(&e->next.content))
        return pkv_fail(err, PKV_ERR_INPUT, "the prompt of request %" PRIu64 " (from 0) contains the "
                        "former one of its session, but it comes at a time of its own: give it a "
                        "delay", e->next.row);
    return check_in_time(e, e->next.arrival_ns, err);
}

/* Hold rows that follow others, up to the next one with a time of its own. */
static int read_on(struct pkv_engine *e, struct pkv_err *err)
{
    int64_t arrival_ns;
    while (e->has_next && e->next.follows && !sessions_is_full(&e->sessions, &e->next))
        if (sessions_take(&e->sessions, &e->next, &arrival_ns, err) < 0 ||
            check_in_time(e, arrival_ns, err) < 0 || read_row(e, err) < 0)
            return -1;
    return 0;
}

int engine_fetch(struct pkv_engine *e, struct pkv_err *err)
{
    return read_row(e, err) < 0 ? -1 : read_on(e, err);
}

/* The one that comes first of the source's next row and those held; out_held NULL = the former. */
static const struct pkv_request_spec *next_arrival(const struct pkv_engine *e,
                                                   struct held_row **out_held)
{
    const struct pkv_request_spec *next = e->has_next && !e->next.follows ? &e->next : NULL;
    struct held_row *held = sessions_first(&e->sessions);
    *out_held = held;
    if (!held)
        return next;
    if (!next || held->spec.arrival_ns < next->arrival_ns ||
        (held->spec.arrival_ns == next->arrival_ns && held->spec.row < next->row))
        return &held->spec;
    *out_held = NULL;
    return next;
}

int64_t engine_next_arrival_ns(const struct pkv_engine *e)
{
    struct held_row *held;
    const struct pkv_request_spec *next = next_arrival(e, &held);
    return next ? next->arrival_ns : PKV_NO_TIME;
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
    if (emit_event(e, &event, err) < 0 || emit_request(e, r, reason, PKV_NO_TIME, err) < 0 ||
        sessions_over(&e->sessions, r, r->arrival_ns, err) < 0)
        return -1;
    pkv_sched_forget(e->sched, r);
    return 0;
}

/* How much of what its session said before does the cache have now? */
static int look_back(struct pkv_engine *e, const struct held_row *held, struct pkv_request *r,
                     struct pkv_event *event, struct pkv_err *err)
{
    struct pkv_cache *cache = pkv_sched_cache(e->sched);
    struct pkv_hit hit = {0};
    if (!held || held->loop || r->status == PKV_REQUEST_REJECTED)
        return 0;
    event->follows = true;
    event->former_tokens = held->former_tokens;
    if (held->former_tokens > 0 && pkv_sched_config(e->sched)->prefix_cache) {
        if (pkv_cache_prepare(cache, &r->seq, 0, err) < 0)
            return -1;
        pkv_cache_find_prefix(cache, &r->seq, &hit);
    }
    event->retained_tokens =
        hit.num_tokens < held->former_tokens ? hit.num_tokens : held->former_tokens;
    e->figures.turns++;
    e->figures.former_tokens += event->former_tokens;
    e->figures.retained_tokens += event->retained_tokens;
    return 0;
}

/* held NULL = the source's next row. */
static int arrive(struct pkv_engine *e, const struct pkv_request_spec *spec,
                  const struct held_row *held, struct pkv_err *err)
{
    char reason[256];
    struct pkv_request *r;
    if (pkv_sched_add(e->sched, spec, &r, reason, sizeof reason, err) < 0)
        return -1;
    e->figures.arrived++;
    if (e->figures.first_arrival_ns == PKV_NO_TIME)
        e->figures.first_arrival_ns = r->arrival_ns;
    bool rejected = r->status == PKV_REQUEST_REJECTED;
    e->figures.sampled_requests += spec->num_samples > 1 && spec->sample == 0;
    e->figures.samples += spec->num_samples > 1;
    e->figures.rejected += rejected;
    e->row.rejected += rejected;
    struct pkv_event event = event_of(e, PKV_EVENT_ARRIVE, r->arrival_ns, r);
    if ((e->config.source.has_followers &&
         sessions_arrived(&e->sessions, spec, held, r, err) < 0) ||
        look_back(e, held, r, &event, err) < 0 || emit_event(e, &event, err) < 0)
        return -1;
    if (rejected)
        return reject(e, r, reason, err);
    return note_abort(e, r, err);
}

static int arrive_held(struct pkv_engine *e, struct held_row *held, struct pkv_err *err)
{
    sessions_remove_first(&e->sessions);
    int status = arrive(e, &held->spec, held, err);
    sessions_drop(held);
    return status < 0 ? -1 : read_on(e, err);
}

int engine_arrivals(struct pkv_engine *e, struct pkv_err *err)
{
    struct held_row *held;
    const struct pkv_request_spec *next;
    if (read_on(e, err) < 0)
        return -1;
    while ((next = next_arrival(e, &held)) && next->arrival_ns <= e->now_ns)
        if (held ? arrive_held(e, held, err) < 0
                 : arrive(e, next, NULL, err) < 0 || engine_fetch(e, err) < 0)
            return -1;
    if (e->has_next && e->next.follows)
        e->stopped_ns = e->now_ns;
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
    if (emit_event(e, &event, err) < 0 || emit_request(e, r, "", e->now_ns, err) < 0 ||
        sessions_over(&e->sessions, r, e->now_ns, err) < 0)
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
