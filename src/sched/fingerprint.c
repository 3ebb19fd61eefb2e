/*
 * fingerprint.c - the state of a scheduler with nobody running, as one number.
 *
 * Policies that learn are not in it. Who waits, in which order, how often each was overtaken, and what the free blocks hold: with no
 * arrival, abort or token in between, the same number twice means that the same goes on for ever.
 */
#include "base/alloc.h"
#include "base/mix.h"
#include "sched/sched_private.h"

int pkv_sched_fingerprint(const struct pkv_sched *s, uint64_t *out, struct pkv_err *err)
{
    size_t num = pkv_waiting_num(s->waiting);
    bool counts = s->config.policies.on_blocked_param > 0;   /* else a count decides nothing */
    if (pkv_cache_fingerprint(s->cache, out, err) < 0)
        return -1;
    struct pkv_request **waiting = pkv_alloc(num, sizeof(struct pkv_request *), err);
    if (!waiting)
        return -1;
    pkv_waiting_list(s->waiting, waiting);
    for (size_t i = 0; i < num; i++)
        *out = pkv_mix(pkv_mix(*out, waiting[i]->row), counts ? waiting[i]->num_overtakes : 0);
    pkv_free(waiting);
    return 0;
}
