/*
 * tenants.c - what each tenant gets in a step, for an order that shares between them.
 *
 * Nobody else pays for it: without such an order tenants have no numbers, and nothing is counted.
 */
#include "sched/sched_private.h"

#include <string.h>

#include "base/alloc.h"

/* The policy's state and the tally grow together. */
static int make_room(struct pkv_sched *s, size_t num, struct pkv_err *err)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    size_t each = order->state_size_each, size = order->state_size + num * each;
    if (num <= s->num_tenants)
        return 0;
    if (pkv_grow(&s->order_state, &s->order_state_capacity, size, 1, err) < 0 ||
        pkv_grow(&s->tenant_tokens, &s->tenants_capacity, num, sizeof(*s->tenant_tokens), err) < 0)
        return -1;
    size_t num_new = num - s->num_tenants;
    memset(s->order_state + order->state_size + s->num_tenants * each, 0, num_new * each);
    s->num_tenants = num;
    return 0;
}

int tenants_add(struct pkv_sched *s, struct pkv_request *r, struct pkv_err *err)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    if (!order->needs_tenant_tokens && order->state_size_each == 0)
        return 0;
    if (pkv_request_number_tenant(s->store, r, err) < 0)
        return -1;
    return make_room(s, (size_t)r->tenant_number + 1, err);
}

/* A steady request gets one token in a step that has any. One that was cancelled while its step ran
 * pays for nothing of it. */
void tenants_begin_count(struct pkv_sched *s, const struct pkv_plan *plan)
{
    struct pkv_tenant_tokens *tally = s->tenant_tokens;
    if (s->num_tenants == 0)
        return;
    memset(tally, 0, s->num_tenants * sizeof(*tally));
    for (size_t i = 0; plan->num_steady && i < s->num_running; i++)
        tally[s->running[i]->tenant_number].num_generated += steady_is_counted(s->running[i], plan);
    for (size_t i = 0; i < plan->num_admissions; i++) {
        const struct pkv_request *r = pkv_request_get(plan->admissions[i].ref);
        if (r && !plan->admissions[i].resumed && r->status != PKV_REQUEST_ABORTED)
            tally[r->tenant_number].num_prompt += r->seq.num_prompt_tokens;
    }
}

/* Whoever samples gets the tokens that came out, accepted drafts among them. */
void tenants_count_sampled(struct pkv_sched *s, const struct pkv_plan *plan)
{
    for (size_t i = 0; s->num_tenants && i < plan->num_entries; i++) {
        const struct pkv_plan_entry *entry = &plan->entries[i];
        if (entry->num_sampled > 0)
            s->tenant_tokens[entry->ref.request->tenant_number].num_generated += entry->num_sampled;
    }    for (size_t i = 0; s->num_tenants && i < plan->num_forks; i++)
        if (plan->forks[i].sampled)
            s->tenant_tokens[plan->forks[i].ref.request->tenant_number].num_generated++;
}
