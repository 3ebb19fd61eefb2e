/*
 * fingerprint.c - the state of a scheduler as one number.
 *
 * Who runs and who waits, in which order, how often each was overtaken or given up where somebody
 * asks, and what the blocks hold: with no arrival, abort or token in between, the same number twice
 * means that the same goes on for ever. What order, admission and mix have learnt is in it, and what
 * the latter two will be told of the step at hand; what a preempt policy has learnt is not.
 */
#include "base/alloc.h"
#include "base/mix.h"
#include "sched/sched_private.h"

/* Policies compare counts of preemptions, so their differences decide. One that is given up again and
 * again while others wait gets ever further ahead of them: beyond this, how far no longer counts. */
#define FAR_AHEAD 256

static uint32_t least_preempted(const struct pkv_sched *s, struct pkv_request *const *waiting,
                                size_t num)
{
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < s->num_running; i++)
        least = s->running[i]->num_preemptions < least ? s->running[i]->num_preemptions : least;
    for (size_t i = 0; i < num; i++)
        least = waiting[i]->num_preemptions < least ? waiting[i]->num_preemptions : least;
    return least;
}

/* Passes missed by the one that came last, and beyond how many more it no longer matters. */
struct missed { uint64_t least, far_behind; };

static struct missed missed_passes(const struct pkv_sched *s, struct pkv_request *const *waiting,
                                   size_t num)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    const int64_t *params = s->config.policies.params[PKV_CHOICE_ORDER];
    struct missed missed = {UINT64_MAX, 0};
    uint32_t most_tokens = 0;
    for (size_t i = 0; i < num + s->num_running; i++) {
        const struct pkv_request *r = i < num ? waiting[i] : s->running[i - num];
        uint64_t passes = s->view.num_passes - r->waits_since_pass;
        if (i < num && passes < missed.least)
            missed.least = passes;
        if (r->seq.num_known_tokens > most_tokens)
            most_tokens = r->seq.num_known_tokens;
    }
    if (order->far_behind)
        missed.far_behind = order->far_behind(params, most_tokens);
    return missed;
}

static uint64_t mix_missed(const struct pkv_sched *s, uint64_t hash, const struct pkv_request *r,
                           struct missed missed)
{
    uint64_t behind = s->view.num_passes - r->waits_since_pass - missed.least;
    return pkv_mix(hash, behind < missed.far_behind ? behind : missed.far_behind);
}

static uint64_t mix_request(const struct pkv_sched *s, uint64_t hash, const struct pkv_request *r,
                            uint32_t least)
{
    const struct pkv_policies *p = &s->config.policies;
    bool overtakes = sched_counts_overtakes(s);   /* else a count decides nothing */
    hash = pkv_mix(pkv_mix(hash, r->row), overtakes ? r->num_overtakes : 0);
    uint32_t ahead = r->num_preemptions - least;
    if (!p->preempt->counts_preemptions)
        return hash;
    return pkv_mix(hash, ahead < FAR_AHEAD ? ahead : FAR_AHEAD);
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
    int result = -1;
    if (!waiting || !seqs)
        goto out;
    steady_refresh(s);
    for (size_t i = 0; i < s->num_running; i++)
        seqs[i] = &s->running[i]->seq;
    if (pkv_cache_fingerprint(s->cache, seqs, s->num_running, out, err) < 0)
        goto out;
    pkv_waiting_list(s->waiting, waiting);
    uint32_t least = least_preempted(s, waiting, num);
    for (size_t i = 0; i < s->num_running; i++)
        *out = mix_request(s, *out, s->running[i], least);
    struct missed missed = missed_passes(s, waiting, num);
    for (size_t i = 0; i < num; i++) {
        *out = pkv_mix(mix_request(s, *out, waiting[i], least), pkv_waiting_has_place(waiting[i]));
        *out = mix_missed(s, *out, waiting[i], missed);
    }
    if (s->config.policies.order->fingerprint)
        *out = pkv_mix(*out, s->config.policies.order->fingerprint(s->order_state));
    *out = mix_learnt(s, pkv_mix(*out, s->latch.is_shut));
    result = 0;
out:
    pkv_free(waiting);
    pkv_free(seqs);
    return result;
}
