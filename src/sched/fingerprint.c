/*
 * fingerprint.c - the state of a scheduler as one number.
 *
 * Who runs and who waits, in which order, how often each was overtaken or given up where somebody
 * asks, and what the blocks hold: with no arrival, abort or token in between, the same number twice
 * means that the same goes on for ever. What order, admission and mix have learnt is in it, and what
 * the latter two will be told of the step at hand; what a preempt policy has learnt is not.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "sched/sched_private.h"

/* Policies compare counts of preemptions, so their differences decide. One that is given up again and
 * again while others wait gets ever further ahead of them: beyond this, how far no longer counts. */
#define FAR_AHEAD 256

/* A count of one request that is compared with those of others. */
struct standing { uint64_t count, row; };

static int by_count(const void *a, const void *b)
{
    const struct standing *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* How far each is above the next one below, the lowest above `from`. Across a gap of `far` it is
 * decided how two compare, so that within what lies between such gaps all differences are told. */
static uint64_t mix_gaps(uint64_t hash, struct standing *all, size_t num, uint64_t from, uint64_t far)
{
    if (num > 1)
        qsort(all, num, sizeof(*all), by_count);
    for (size_t i = 0; i < num; i++) {
        uint64_t gap = all[i].count - from;
        hash = pkv_mix(pkv_mix(hash, all[i].row), gap < far ? gap : far);
        from = all[i].count;
    }
    return hash;
}

static uint64_t mix_preemptions(const struct pkv_sched *s, uint64_t hash,
                                struct pkv_request *const *waiting, size_t num,
                                struct standing *scratch)
{
    uint64_t least = UINT64_MAX;
    if (!s->config.policies.preempt->counts_preemptions)
        return hash;
    for (size_t i = 0; i < num + s->num_running; i++) {
        const struct pkv_request *r = i < num ? waiting[i] : s->running[i - num];
        scratch[i] = (struct standing){r->num_preemptions, r->row};
        least = r->num_preemptions < least ? r->num_preemptions : least;
    }
    return mix_gaps(hash, scratch, num + s->num_running, least, FAR_AHEAD);
}

/* Passes missed, beside one that would come into the queue now. */
static uint64_t mix_missed(const struct pkv_sched *s, uint64_t hash,
                           struct pkv_request *const *waiting, size_t num, struct standing *scratch)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    uint32_t most_tokens = 0;
    if (!order->far_behind)
        return hash;
    for (size_t i = 0; i < num + s->num_running; i++) {
        const struct pkv_request *r = i < num ? waiting[i] : s->running[i - num];
        if (i < num)
            scratch[i] = (struct standing){s->view.num_passes - r->waits_since_pass, r->row};
        if (r->seq.num_known_tokens > most_tokens)
            most_tokens = r->seq.num_known_tokens;
    }
    uint64_t far = order->far_behind(s->config.policies.params[PKV_CHOICE_ORDER], most_tokens);
    return far > 0 ? mix_gaps(hash, scratch, num, 0, far) : hash;
}

static uint64_t mix_request(const struct pkv_sched *s, uint64_t hash, const struct pkv_request *r)
{
    bool overtakes = sched_counts_overtakes(s);   /* else a count decides nothing */
    return pkv_mix(pkv_mix(hash, r->row), overtakes ? r->num_overtakes : 0);
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t num)
{
    for (size_t i = 0; i < num; i++)
        hash = pkv_mix(hash, ((const unsigned char *)bytes)[i]);
    return hash;
}

static uint64_t mix_learnt(const struct pkv_sched *s, uint64_t hash)
{
    const struct pkv_policies *p = &s->config.policies;
    const struct pkv_plan *plan = &s->slots[(s->num_plans - 1) & 1].plan;
    if (!p->admit->observe && !p->mix->observe)
        return hash;
    hash = mix_bytes(hash, s->admit_state, p->admit->state_size);
    hash = mix_bytes(hash, s->mix_state, p->mix->state_size);
    hash = pkv_mix(pkv_mix(hash, s->parts), plan->num_admissions);
    return pkv_mix(pkv_mix(hash, plan->num_prefill_tokens), plan->num_decodes);
}

int pkv_sched_fingerprint(struct pkv_sched *s, uint64_t *out, struct pkv_err *err)
{
    size_t num = pkv_waiting_num(s->waiting);
    struct pkv_request **waiting = pkv_alloc(num, sizeof(struct pkv_request *), err);
    const struct pkv_seq **seqs = pkv_alloc(s->num_running, sizeof(struct pkv_seq *), err);
    struct standing *scratch = pkv_alloc(num + s->num_running, sizeof(*scratch), err);
    int result = -1;
    if (!waiting || !seqs || !scratch)
        goto out;
    steady_refresh(s);
    sched_update_view(s);
    for (size_t i = 0; i < s->num_running; i++)
        seqs[i] = &s->running[i]->seq;
    if (pkv_cache_fingerprint(s->cache, seqs, s->num_running, out, err) < 0)
        goto out;
    pkv_waiting_list(s->waiting, waiting);
    for (size_t i = 0; i < s->num_running; i++)
        *out = mix_request(s, *out, s->running[i]);
    for (size_t i = 0; i < num; i++)
        *out = pkv_mix(mix_request(s, *out, waiting[i]), pkv_waiting_has_place(waiting[i]));
    *out = mix_preemptions(s, *out, waiting, num, scratch);
    *out = mix_missed(s, *out, waiting, num, scratch);
    if (s->config.policies.order->fingerprint)
        *out = pkv_mix(*out, s->config.policies.order->fingerprint(s->order_state, &s->view));
    *out = mix_learnt(s, pkv_mix(*out, s->latch.is_shut));
    result = 0;
out:
    pkv_free(waiting);
    pkv_free(seqs);
    pkv_free(scratch);
    return result;
}
