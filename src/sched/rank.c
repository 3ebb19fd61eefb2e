/*
 * rank.c - keys that change while waiting, asked anew before a pass, and orders that need the whole
 * queue at once: look everybody up, ask for all keys, put everybody in their place.
 *
 * A look-up of one that waits stands while no identity has come into the cache or left it, so a
 * queue that nothing happens to is not looked up again in every step.
 */
#include "base/alloc.h"
#include "sched/sched_private.h"

void sched_joined(struct pkv_sched *s, struct pkv_request *r)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    r->waits_since_pass = s->view.num_passes;
    r->looked_up_at = UINT64_MAX;
    if (order->joined)
        order->joined(s->order_state, r);
}

void sched_left(struct pkv_sched *s, const struct pkv_request *r)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    if (order->left)
        order->left(s->order_state, r);
}

/* The same passes in each of them, and in a state that stays as it is all that they leave is their
 * number. Nobody, not even one yet to come, finds more than the pool holds. */
void pkv_sched_repeat(struct pkv_sched *s, const struct pkv_plan *plan, uint64_t num_more)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    PKV_ASSERT(s->in_flight && plan->changed_nothing);
    if (!order->far_behind)
        return;
    uint64_t room = (uint64_t)s->config.num_blocks * s->config.groups[0].block_size;
    uint32_t most_tokens = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
    uint64_t enough = order->far_behind(s->config.policies.params[PKV_CHOICE_ORDER], most_tokens);
    uint64_t num_passes = s->view.num_passes - s->num_passes_before;
    s->view.num_passes += num_passes * (num_more < enough ? num_more : enough);
}

static int look_up_waiting(struct pkv_sched *s, size_t num, struct pkv_err *err)
{
    uint64_t version = pkv_cache_num_key_changes(s->cache);
    for (size_t i = 0; i < num; i++) {
        struct pkv_request *r = s->aside[i];
        if (r->looked_up_at == version)
            continue;
        if (pkv_cache_prepare(s->cache, &r->seq, 0, err) < 0)
            return -1;
        struct pkv_hit hit;
        pkv_cache_find_prefix(s->cache, &r->seq, &hit);
        r->num_waiting_hit = hit.num_tokens;
        r->looked_up_at = version;
    }
    return 0;
}

static int reserve(struct pkv_sched *s, size_t num, struct pkv_err *err)
{
    size_t size = num * s->config.policies.order->rank_size_each;
    if (pkv_grow(&s->aside, &s->aside_capacity, num, sizeof(*s->aside), err) < 0 ||
        pkv_grow(&s->rank_keys, &s->rank_keys_capacity, num, sizeof(*s->rank_keys), err) < 0)
        return -1;
    return pkv_grow(&s->ranking, &s->ranking_capacity, size, 1, err);
}

/* The key that each would have in a pass now, as pkv_waiting_any() numbers them. */
static int ask_keys(struct pkv_sched *s, size_t num, struct pkv_err *err)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    if (reserve(s, num, err) < 0)
        return -1;
    for (size_t i = 0; i < num; i++)
        s->aside[i] = pkv_waiting_any(s->waiting, i);
    if (!order->rank) {
        for (size_t i = 0; i < num; i++)
            s->rank_keys[i] = order->key(s->order_state, &s->view, s->aside[i]);
        return 0;
    }
    bool needs_hits = order->needs_hits && order->needs_hits(s->order_state, &s->view);
    if (needs_hits && look_up_waiting(s, num, err) < 0)
        return -1;
    order->rank(s->order_state, &s->view, s->aside, num, s->ranking, s->rank_keys);
    return 0;
}

bool sched_asks_anew(const struct pkv_sched *s)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    return order->rank || order->needs_every_step;
}

int sched_rank_waiting(struct pkv_sched *s, struct pkv_err *err)
{
    if (ask_keys(s, pkv_waiting_num(s->waiting), err) < 0)
        return -1;
    pkv_waiting_set_keys(s->waiting, s->rank_keys);
    return 0;
}

int pkv_sched_find_first(struct pkv_sched *s, struct pkv_request **out, struct pkv_err *err)
{
    size_t num = pkv_waiting_num(s->waiting);
    *out = pkv_waiting_head(s->waiting);
    if (num < 2 || !sched_asks_anew(s))
        return 0;
    sched_update_view(s);
    if (ask_keys(s, num, err) < 0)
        return -1;
    *out = pkv_waiting_head_by(s->waiting, s->rank_keys);
    return 0;
}
