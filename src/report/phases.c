/*
 * phases.c - what each live request is in the middle of.
 *
 * The engine's events begin every phase but three: nobody tells when what was lost has been computed
 * again, when a token comes out that is not the first, and when blocks are back from the host. Those who
 * wait for one of these are in a list that is looked through at the end of each step.
 *
 * The engine uses the records of requests again, so a slot goes with a record.
 */
#include "report/phases.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/id_map.h"

struct slot {
    const struct pkv_request *request;   /* borrowed */
    enum phase phase;
    int64_t since_ns;
    uint32_t highest_tokens;     /* when it was preempted last: most positions ever computed */
    uint32_t num_emitted;        /* when it was resumed last */
    int64_t done_ns;             /* swap in */
    size_t place;                /* in the list, from 1; 0 = not in it */
    bool is_live;
};

struct phases {
    struct phases_listener listener;
    struct slot *slots;          /* [num] owned */
    size_t num, capacity;
    struct pkv_id_map records;   /* address of a record -> its slot + 1 */
    size_t *returning;           /* [num_returning] owned: slots in recompute or swap in */
    size_t num_returning, returning_capacity;
    int64_t now_ns;              /* the end of the last step */
};

const char *phase_name(enum phase phase)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PHASES(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)phase < PHASE_COUNT);
    return names[phase];
}

struct phases *phases_create(const struct phases_listener *listener, struct pkv_err *err)
{
    struct phases *p = pkv_alloc(1, sizeof *p, err);
    if (!p)
        return NULL;
    p->listener = *listener;
    p->now_ns = PKV_NO_TIME;
    return p;
}

void phases_destroy(struct phases *p)
{
    if (!p)
        return;
    pkv_id_map_free(&p->records);
    pkv_free(p->slots);
    pkv_free(p->returning);
    pkv_free(p);
}

size_t phases_slot(struct phases *p, const struct pkv_request *r)
{
    const uint64_t *found = pkv_id_map_find(&p->records, (uintptr_t)r);
    PKV_ASSERT(found && *found > 0);
    return (size_t)*found - 1;
}

/* Positions that are computed, those that a plan which is out will compute left aside. */
static uint32_t num_computed(const struct pkv_request *r)
{
    return r->seq.num_computed_tokens - r->seq.num_flying_tokens;
}

static void forget_return(struct phases *p, struct slot *s)
{
    if (s->place == 0)
        return;
    size_t last = p->returning[--p->num_returning];
    p->returning[s->place - 1] = last;
    p->slots[last].place = s->place;
    s->place = 0;
}

/* There is room for every slot. */
static void watch_return(struct phases *p, struct slot *s)
{
    if (s->place > 0)
        return;
    p->returning[p->num_returning++] = (size_t)(s - p->slots);
    s->place = p->num_returning;
}

static int enter(struct phases *p, struct slot *s, enum phase phase, int64_t time_ns,
                 const struct pkv_event *cause, struct pkv_err *err)
{
    s->phase = phase;
    s->since_ns = time_ns;
    if (phase == PHASE_RECOMPUTE || phase == PHASE_SWAP_IN)
        watch_return(p, s);
    else
        forget_return(p, s);
    return p->listener.entered(p->listener.ctx, (size_t)(s - p->slots), s->request, phase, time_ns,
                               cause, err);
}

static int come(struct phases *p, const struct pkv_event *e, struct pkv_err *err)
{
    const struct pkv_request *r = e->request;
    uint64_t *slot = pkv_id_map_at(&p->records, (uintptr_t)r, err);
    if (!slot)
        return -1;
    if (*slot == 0) {
        if (pkv_grow(&p->slots, &p->capacity, p->num + 1, sizeof *p->slots, err) < 0 ||
            pkv_grow(&p->returning, &p->returning_capacity, p->num + 1, sizeof *p->returning, err) < 0)
            return -1;
        *slot = ++p->num;
    }
    struct slot *s = &p->slots[*slot - 1];
    *s = (struct slot){.request = r, .since_ns = r->arrival_ns};
    if (p->listener.came(p->listener.ctx, (size_t)*slot - 1, r, err) < 0)
        return -1;
    s->is_live = true;    /* the listener knows it: it is to be told of its end */
    return r->status == PKV_REQUEST_REJECTED ? 0 : enter(p, s, PHASE_WAITING, r->arrival_ns, e, err);
}

/* What one that has so many positions does next. */
static enum phase phase_from(const struct slot *s, uint32_t num_positions)
{
    if (num_positions < s->highest_tokens)
        return PHASE_RECOMPUTE;
    return s->request->num_emitted > 0 ? PHASE_DECODE : PHASE_PREFILL;
}

static int resume(struct phases *p, struct slot *s, const struct pkv_event *e, struct pkv_err *err)
{
    s->num_emitted = s->request->num_emitted;
    s->done_ns = INT64_MAX;    /* of a swap in, it is told next */
    bool is_swapped = s->phase == PHASE_SWAPPED && s->request->status == PKV_REQUEST_RESUMING;
    return enter(p, s, is_swapped ? PHASE_SWAP_IN : phase_from(s, e->hit_tokens), e->time_ns, e, err);
}

static int preempt(struct phases *p, struct slot *s, const struct pkv_event *e, struct pkv_err *err)
{
    enum pkv_request_status status = s->request->status;
    bool is_swapped = status == PKV_REQUEST_SWAPPED || status == PKV_REQUEST_RESUMING;
    s->highest_tokens = s->request->num_highest_tokens;
    if (s->highest_tokens < e->lost_tokens)    /* of a plan that is out yet */
        s->highest_tokens = e->lost_tokens;
    return enter(p, s, is_swapped ? PHASE_SWAPPED : PHASE_PREEMPTED, e->time_ns, e, err);
}

/* Under async_scheduling a first token may still come out of one that was preempted meanwhile. */
static int first_token(struct phases *p, struct slot *s, const struct pkv_event *e, struct pkv_err *err)
{
    if (s->phase != PHASE_PREFILL && s->phase != PHASE_RECOMPUTE)
        return 0;
    return enter(p, s, PHASE_DECODE, e->time_ns, e, err);
}

int phases_event(struct phases *p, const struct pkv_event *e, struct pkv_err *err)
{
    struct slot *s = e->kind == PKV_EVENT_ARRIVE ? NULL : &p->slots[phases_slot(p, e->request)];
    switch (e->kind) {
    case PKV_EVENT_ARRIVE:
        return come(p, e, err);
    case PKV_EVENT_ADMIT:
        return enter(p, s, PHASE_PREFILL, e->time_ns, e, err);
    case PKV_EVENT_RESUME:
        return resume(p, s, e, err);
    case PKV_EVENT_PREEMPT:
        return preempt(p, s, e, err);
    case PKV_EVENT_FIRST_TOKEN:
        return first_token(p, s, e, err);
    case PKV_EVENT_SWAP_IN:
        s->done_ns = e->done_ns;
        return 0;
    case PKV_EVENT_REJECT:
    case PKV_EVENT_BLOCKED:
    case PKV_EVENT_FINISH:
    case PKV_EVENT_ABORT:
    case PKV_EVENT_SWAP_OUT:
    case PKV_EVENT_FORK:
    case PKV_EVENT_KIND_COUNT:
        break;
    }
    return 0;
}

int phases_request(struct phases *p, const struct pkv_request_row *row, struct pkv_err *err)
{
    const uint64_t *found = pkv_id_map_find(&p->records, (uintptr_t)row->request);
    if (!found || *found == 0 || !p->slots[*found - 1].is_live)    /* the run failed while it came */
        return 0;
    size_t slot = (size_t)*found - 1;
    struct slot *s = &p->slots[slot];
    s->is_live = false;
    int64_t end_ns = row->finish_ns;
    if (end_ns == PKV_NO_TIME)
        end_ns = s->since_ns > p->now_ns ? s->since_ns : p->now_ns;
    if (row->status == PKV_REQUEST_REJECTED)
        end_ns = row->request->arrival_ns;
    forget_return(p, s);
    return p->listener.ended(p->listener.ctx, slot, row, end_ns, err);
}

static int look_at_return(struct phases *p, struct slot *s, struct pkv_err *err)
{
    const struct pkv_request *r = s->request;
    uint32_t computed = num_computed(r);
    if (s->phase == PHASE_SWAP_IN)
        return s->done_ns > p->now_ns ? 0 : enter(p, s, phase_from(s, computed), p->now_ns, NULL, err);
    if (r->num_emitted == s->num_emitted && computed < s->highest_tokens)
        return 0;
    return enter(p, s, r->num_emitted > 0 ? PHASE_DECODE : PHASE_PREFILL, p->now_ns, NULL, err);
}

int phases_step(struct phases *p, const struct pkv_step_row *row, struct pkv_err *err)
{
    p->now_ns = row->time_ns + row->dur_ns;
    for (size_t i = p->num_returning; i-- > 0;)    /* the last one takes the place of one that leaves */
        if (look_at_return(p, &p->slots[p->returning[i]], err) < 0)
            return -1;
    return 0;
}
