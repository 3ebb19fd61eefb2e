/*
 * order_lpm.c - the longest cached prefix first; equal ones by arrival.
 *
 * Looked up are all known tokens but the last one, in whole blocks. Whoever shares little with the
 * cache waits behind every hit that comes, so a steady stream of hits starves it; with aging_tokens
 * a pass that went by counts as so many tokens found.
 *
 * In the batch: of those that find next to nothing and begin with the same text, only the first in
 * the queue keeps its place. The others go last, whatever their age, as the next pass finds that text
 * cached; the first of them is the next to keep its place. Sharing at least so many tokens with any
 * earlier one that kept its place is beginning with the same so many tokens as it.
 *
 * With more than lpm_max_waiting in the queue nobody is looked up: first come, first served.
 *
 * SGLang looks up whole pages of a radix tree, sorts what the last pass has sorted, and has no aging.
 */
#include <stdlib.h>

#include "pagedkv/policy.h"

enum { AGING, MAX_WAITING, IN_BATCH };

#define LAST (INT64_MAX - 2)            /* before those who came after the pass */
#define MOST (UINT64_MAX / 4)           /* beyond it nobody ages */

struct state {
    uint64_t aging_tokens, max_waiting, in_batch_tokens;
};

/* One that finds next to nothing. */
struct beginning {
    uint64_t hash;                            /* of its first tokens */
    const struct pkv_heap_node *place;        /* in the queue as it stands */
    int64_t *key;
};

static void init(void *memory, const int64_t *params)
{
    struct state *state = memory;
    state->aging_tokens = (uint64_t)params[AGING];
    state->max_waiting = (uint64_t)params[MAX_WAITING];
    state->in_batch_tokens = (uint64_t)params[IN_BATCH];
}

static bool needs_hits(const void *memory, const struct pkv_sched_view *view)
{
    const struct state *state = memory;
    return view->prefix_cache &&
           (state->max_waiting == 0 || view->num_waiting <= state->max_waiting);
}

/* Of hit + aging_tokens x missed passes all that differs between two: so a key stands while its hit
 * does. */
static int64_t key_of(const struct state *state, const struct pkv_request *r)
{
    uint64_t since = r->waits_since_pass;
    if (state->aging_tokens > 0 && since > MOST / state->aging_tokens)
        since = MOST / state->aging_tokens;
    return (int64_t)(since * state->aging_tokens) - (int64_t)r->num_waiting_hit;
}

static int by_beginning(const void *a, const void *b)
{
    const struct beginning *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->place->key[0] != y->place->key[0])
        return x->place->key[0] < y->place->key[0] ? -1 : 1;
    return x->place->key[1] < y->place->key[1] ? -1 : 1;
}

static void put_sharers_last(const struct state *state, struct pkv_request *const *waiting,
                             size_t num, struct beginning *beginnings, int64_t *keys)
{
    size_t num_beginnings = 0;
    for (size_t i = 0; state->in_batch_tokens > 0 && i < num; i++) {
        const struct pkv_request *r = waiting[i];
        if (r->num_waiting_hit > state->in_batch_tokens ||
            r->seq.num_known_tokens < state->in_batch_tokens)
            continue;
        uint64_t hash = pkv_seq_hash_first(&r->seq, (uint32_t)state->in_batch_tokens);
        beginnings[num_beginnings++] = (struct beginning){hash, &r->waiting_node, &keys[i]};
    }
    if (num_beginnings > 1)
        qsort(beginnings, num_beginnings, sizeof(*beginnings), by_beginning);
    for (size_t i = 1; i < num_beginnings; i++)
        if (beginnings[i].hash == beginnings[i - 1].hash)
            *beginnings[i].key = LAST;
}

static void rank(const void *memory, const struct pkv_sched_view *view,
                 struct pkv_request *const *waiting, size_t num, void *scratch, int64_t *out_keys)
{
    const struct state *state = memory;
    bool looked_up = needs_hits(state, view);
    for (size_t i = 0; i < num; i++)
        out_keys[i] = looked_up ? key_of(state, waiting[i]) : 0;
    if (looked_up)
        put_sharers_last(state, waiting, num, scratch, out_keys);
}

/* By so many, the longest hit is less than what they count for. */
static uint64_t far_behind(const int64_t *params, uint32_t most_tokens)
{
    return params[AGING] > 0 ? most_tokens / (uint64_t)params[AGING] + 1 : 0;
}

static const struct pkv_policy_param params[] = {
    [AGING] = {.name = "aging_tokens",
               .summary = "cached tokens that a missed pass counts for; 0 = no aging",
               .preset = 0,
               .min = 0,
               .max = 1000000000},
    [MAX_WAITING] = {.name = "lpm_max_waiting",
                     .summary = "with more waiting: first come, first served; 0 = no bound",
                     .preset = 128,
                     .min = 0,
                     .max = UINT32_MAX},
    [IN_BATCH] = {.name = "in_batch_prefix_tokens",
                  .summary = "of those who find no more than so many tokens and share as many first "
                             "ones, all but the first go last; 0 = nobody does",
                  .preset = 32,
                  .min = 0,
                  .max = UINT32_MAX},
};

const struct pkv_order_ops pkv_order_lpm = {
    .info = {.name = "lpm",
             .summary = "the longest cached prefix first, aging_tokens more for each missed pass",
             .source = "SGLang 0.5.18, schedule_policy.py, for its radix tree; here over hashed blocks; "
                       "aging is ours",
             .params = params,
             .num_params = sizeof params / sizeof params[0]},
    .rank = rank,
    .rank_size_each = sizeof(struct beginning),
    .needs_hits = needs_hits,
    .far_behind = far_behind,
    .state_size = sizeof(struct state),
    .init = init,
};
