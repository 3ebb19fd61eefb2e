/*
 * fingerprint.c - the state of a scheduler as one number.
 *
 * Who runs and who waits, in which order, how often each was overtaken or given up where somebody
 * asks, and what the blocks hold: with no arrival, abort or token in between, the same number twice
 * means that the same goes on for ever. What a policy has learnt is not in it.
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

static uint64_t mix_request(const struct pkv_sched *s, uint64_t hash, const struct pkv_request *r,
                            uint32_t least)
{
    const struct pkv_policies *p = &s->config.policies;
    bool overtakes = p->on_blocked_param > 0;   /* else a count decides nothing */
    hash = pkv_mix(pkv_mix(hash, r->row), overtakes ? r->num_overtakes : 0);
    hash = pkv_mix(hash, (uint64_t)r->num_drafts << 32 | r->num_in_flight);
    uint32_t ahead = r->num_preemptions - least;
    if (!p->preempt->counts_preemptions)
        return hash;
    return pkv_mix(hash, ahead < FAR_AHEAD ? ahead : FAR_AHEAD);
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
    for (size_t i = 0; i < num; i++)
        *out = pkv_mix(mix_request(s, *out, waiting[i], least), pkv_waiting_has_place(waiting[i]));
    result = 0;
out:
    pkv_free(waiting);
    pkv_free(seqs);
    return result;
}
