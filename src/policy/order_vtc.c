/*
 * order_vtc.c - fair shares by virtual token counters: the tenant that has been given least comes
 * first, and of its requests the earliest.
 *
 * A tenant's counter rises by vtc_prompt_weight for each prompt token when a request is admitted, and
 * by vtc_output_weight for each generated one. A tenant that comes into the queue and has nothing
 * there is lifted to the least counter of those who have, or where nobody has, to the counter of the
 * tenant that left the queue last: time in which it asked for nothing gives no credit. Equal counters:
 * the tenant whose earliest request came first.
 *
 * Within a pass counters rise with each admission, so the queue is ranked as if all were admitted one
 * after another. That is what happens up to the first that is refused; if others may then overtake it
 * (on_blocked: skip), they keep this order.
 *
 * The paper knows no preemption. Here a request pays for its prompt once, when it is admitted first:
 * what is computed again is no service to its tenant. One that was given up comes into the queue like
 * any other, so its tenant is lifted if it had nothing there. Those without a tenant are one tenant.
 *
 * The counters of two tenants that have something waiting all the time differ by at most the larger of
 * vtc_prompt_weight x the longest prompt and vtc_output_weight x the tokens a batch can hold, and what
 * they are given in such a time by at most twice that (the paper's bound).
 */
#include <stdlib.h>

#include "base/mix.h"
#include "pagedkv/policy.h"

enum { PROMPT, OUTPUT };
enum { SCALE = 1000 };   /* of the weights, so of the counters */

struct tenant {
    uint64_t counter;
    uint64_t num_waiting;
};

struct state {
    uint64_t weights[2];
    uint32_t num_tenants;
    uint32_t last_left;          /* whose request left the queue last */
    bool somebody_left;
    struct tenant tenants[];     /* by number */
};
_Static_assert(offsetof(struct state, tenants) == sizeof(struct state), "tenants follow the rest");

static void init(void *memory, const int64_t *params)
{
    struct state *state = memory;
    state->weights[PROMPT] = (uint64_t)params[PROMPT];
    state->weights[OUTPUT] = (uint64_t)params[OUTPUT];
}

/* --- who waits, and what they have had ------------------------------------------------------- */

/* What one that comes into the queue is lifted to. */
static uint64_t least_counter(const struct state *state)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < state->num_tenants; i++)
        if (state->tenants[i].num_waiting > 0 && state->tenants[i].counter < least)
            least = state->tenants[i].counter;
    if (least != UINT64_MAX)
        return least;
    return state->somebody_left ? state->tenants[state->last_left].counter : 0;
}

static void joined(void *memory, const struct pkv_request *r)
{
    struct state *state = memory;
    struct tenant *tenant = &state->tenants[r->tenant_number];
    if (state->num_tenants <= r->tenant_number)
        state->num_tenants = r->tenant_number + 1;
    if (tenant->num_waiting == 0) {
        uint64_t least = least_counter(state);
        tenant->counter = tenant->counter > least ? tenant->counter : least;
    }
    tenant->num_waiting++;
}

static void left(void *memory, const struct pkv_request *r)
{
    struct state *state = memory;
    state->tenants[r->tenant_number].num_waiting--;
    state->last_left = r->tenant_number;
    state->somebody_left = true;
}

static void observe(void *memory, const struct pkv_step_facts *facts)
{
    struct state *state = memory;
    for (size_t i = 0; i < facts->num_tenants; i++)
        state->tenants[i].counter += state->weights[PROMPT] * facts->tenants[i].num_prompt +
                                     state->weights[OUTPUT] * facts->tenants[i].num_generated;
}

static uint64_t counter_of(const struct state *state, const struct pkv_request *r)
{
    return state->tenants[r->tenant_number].counter;
}

/* Counters by how far they are above the least of those who wait, or run and may wait again. Of others
 * nothing is asked any more, but what the tenant that left last has had may lift one. */
static uint64_t fingerprint(const void *memory, const struct pkv_sched_view *view)
{
    const struct state *state = memory;
    uint64_t least = UINT64_MAX, hash = 0;
    for (uint32_t i = 0; i < state->num_tenants; i++)
        if (state->tenants[i].num_waiting > 0 && state->tenants[i].counter < least)
            least = state->tenants[i].counter;
    for (size_t i = 0; i < view->num_running; i++)
        if (counter_of(state, view->running[i]) < least)
            least = counter_of(state, view->running[i]);
    for (uint32_t i = 0; i < state->num_tenants; i++)
        if (state->tenants[i].num_waiting > 0)
            hash = pkv_mix(pkv_mix(hash, i), state->tenants[i].counter - least);
    for (size_t i = 0; i < view->num_running; i++)
        hash = pkv_mix(hash, counter_of(state, view->running[i]) - least);
    if (!state->somebody_left)
        return hash;
    uint64_t last = state->tenants[state->last_left].counter;
    return pkv_mix(pkv_mix(hash, 1 + (uint64_t)state->last_left), last > least ? last - least : 0);
}

/* --- the queue, as if all were admitted one after another ------------------------------------ */

struct item {
    const struct pkv_request *request;
    int64_t *key;
};

static int by_tenant(const void *a, const void *b)
{
    const struct pkv_request *x = ((const struct item *)a)->request;
    const struct pkv_request *y = ((const struct item *)b)->request;
    if (x->tenant_number != y->tenant_number)
        return x->tenant_number < y->tenant_number ? -1 : 1;
    return x->arrival_order < y->arrival_order ? -1 : 1;
}

/* The key is what the counter of its tenant will be when all before it are admitted. Counters only rise
 * on the way, so going by that number, equal ones by arrival, is asking for the least each time. */
static void rank(const void *memory, const struct pkv_sched_view *view,
                 struct pkv_request *const *waiting, size_t num, void *scratch, int64_t *out_keys)
{
    (void)view;
    const struct state *state = memory;
    struct item *items = scratch;
    for (size_t i = 0; i < num; i++)
        items[i] = (struct item){waiting[i], &out_keys[i]};
    qsort(items, num, sizeof(*items), by_tenant);
    uint64_t counter = 0;
    for (size_t i = 0; i < num; i++) {
        const struct pkv_request *r = items[i].request;
        if (i == 0 || items[i - 1].request->tenant_number != r->tenant_number)
            counter = state->tenants[r->tenant_number].counter;
        *items[i].key = (int64_t)counter;
        if (r->status == PKV_REQUEST_WAITING)
            counter += state->weights[PROMPT] * r->seq.num_prompt_tokens;
    }
}

static const struct pkv_policy_param params[] = {
    [PROMPT] = {.name = "vtc_prompt_weight",
                .summary = "what a prompt token counts for",
                .preset = 1 * SCALE,
                .min = 0,
                .max = 1000 * SCALE,
                .scale = SCALE},
    [OUTPUT] = {.name = "vtc_output_weight",
                .summary = "what a generated token counts for",
                .preset = 2 * SCALE,
                .min = 0,
                .max = 1000 * SCALE,
                .scale = SCALE},
};

const struct pkv_order_ops pkv_order_vtc = {
    .info = {.name = "vtc",
             .summary = "fair shares: the tenant that has been given least first, by weighted tokens",
             .source = "Sheng et al., OSDI 2024, Fairness in Serving Large Language Models, algorithm 2",
             .params = params,
             .num_params = sizeof params / sizeof params[0]},
    .rank = rank,
    .rank_size_each = sizeof(struct item),
    .state_size = sizeof(struct state),
    .state_size_each = sizeof(struct tenant),
    .needs_tenant_tokens = true,
    .init = init,
    .observe = observe,
    .joined = joined,
    .left = left,
    .fingerprint = fingerprint,
};
