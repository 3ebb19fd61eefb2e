/*
 * kv_fit.c - what a plan makes of a number of bytes: blocks, tokens, requests.
 *
 *   F1  on every rank num_blocks x block_bytes <= pool_bytes, and the rest is stranded_bytes
 */
#include "model/kv_private.h"

/* Positions of a sequence that a layer of the kind still stores. */
static uint64_t stored_positions(enum pkv_kv_kind kind, uint32_t window, uint64_t num)
{
    switch (kind) {
    case PKV_KV_FULL:
    case PKV_KV_LATENT:
        return num;
    case PKV_KV_SLIDING:
        return num < window ? num : window;
    case PKV_KV_CHUNKED:
        return num == 0 ? 0 : (num - 1) % window + 1;
    case PKV_KV_STATE:
        return 0;
    case PKV_KV_KIND_COUNT:
        break;
    }
    PKV_UNREACHABLE("a kind of layer");
}

uint64_t pkv_kv_sequence_bytes(const struct pkv_kv_model *model, const struct pkv_kv_plan *plan,
                               uint32_t stage, uint64_t num_positions)
{
    uint32_t first = 0, end = kv_num_layers(model, &plan->config);
    unsigned __int128 sum = 0;

    if (stage != PKV_KV_ALL_STAGES) {
        first = plan->stages[stage].first_layer;
        end = first + plan->stages[stage].num_layers;
    }
    for (uint32_t layer = first; layer < end; layer++) {
        uint32_t index = kv_layer_type(model, layer);
        const struct pkv_kv_type *type;

        if (index == PKV_KV_NO_TYPE)
            continue;
        type = &model->types[index];
        enum pkv_kv_kind kind = plan->config.no_windows && type->kind != PKV_KV_STATE ? PKV_KV_FULL
                                                                                      : type->kind;
        bool is_dealt_out = kind == PKV_KV_FULL || kind == PKV_KV_LATENT;   /* among the ranks of context */
        sum += (unsigned __int128)plan->type_bytes[index] *
               stored_positions(kind, type->window,
                                is_dealt_out ? kv_ceil_div(num_positions, plan->config.dcp) : num_positions);
    }
    return sum < UINT64_MAX ? (uint64_t)sum : UINT64_MAX;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* a + b, or the largest number. */
static uint64_t add(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static uint64_t state_blocks(const struct pkv_kv_config *c, uint64_t num, uint32_t block_size)
{
    switch (c->state_mode) {
    case PKV_KV_STATE_NONE:
        return add(1, c->num_speculative_tokens);
    case PKV_KV_STATE_ALIGN:
        return add(2, c->num_speculative_tokens);
    case PKV_KV_STATE_ALL:
        return kv_ceil_div(num, block_size);
    case PKV_KV_STATE_MODE_COUNT:
        break;
    }
    PKV_UNREACHABLE("a mode of recurrent state");
}

static uint64_t group_blocks(const struct pkv_kv_plan *plan, const struct pkv_kv_group *group,
                             uint64_t num)
{
    const struct pkv_kv_config *c = &plan->config;
    uint64_t window;

    switch (group->kind) {
    case PKV_KV_FULL:
    case PKV_KV_LATENT:
        return kv_ceil_div(kv_ceil_div(num, c->dcp), group->block_size);
    case PKV_KV_SLIDING:
        window = add(group->window - 1, c->in_flight_tokens);
        return kv_ceil_div(smaller(window, num), group->block_size) + 1;
    case PKV_KV_CHUNKED:
        window = add(group->window, c->in_flight_tokens);
        return kv_ceil_div(smaller(window, num), group->block_size);
    case PKV_KV_STATE:
        return state_blocks(c, num, group->block_size);
    case PKV_KV_KIND_COUNT:
        break;
    }
    PKV_UNREACHABLE("a kind of group");
}

uint64_t pkv_kv_request_blocks(const struct pkv_kv_plan *plan, uint64_t num_positions)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < plan->num_groups; i++)
        sum = add(sum, group_blocks(plan, &plan->groups[i], num_positions));
    return sum;
}

uint64_t pkv_kv_longest_request(const struct pkv_kv_plan *plan, uint64_t num_blocks, uint64_t limit)
{
    uint64_t low = 0, high = limit;   /* low fits, or is 0 */

    if (num_blocks == 0)
        return 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2 + 1;

        if (pkv_kv_request_blocks(plan, middle) <= num_blocks)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint64_t pkv_kv_smallest_block(const struct pkv_kv_plan *plan)
{
    uint64_t smallest = UINT64_MAX;

    for (uint32_t i = 0; i < plan->num_groups; i++)
        smallest = smaller(smallest, plan->groups[i].block_size);
    return smallest * plan->config.dcp;
}

uint64_t pkv_kv_tokens_old_rule(const struct pkv_kv_plan *plan, uint64_t num_blocks)
{
    unsigned __int128 tokens = (unsigned __int128)(num_blocks / plan->num_groups) *
                               pkv_kv_smallest_block(plan);

    return tokens < UINT64_MAX ? (uint64_t)tokens : UINT64_MAX;
}

uint64_t pkv_kv_tokens_new_rule(const struct pkv_kv_plan *plan, uint64_t num_blocks,
                                uint64_t max_model_len)
{
    uint64_t need = pkv_kv_request_blocks(plan, max_model_len);
    unsigned __int128 tokens = (unsigned __int128)num_blocks * max_model_len;

    PKV_ASSERT(need > 0);
    return tokens / need < UINT64_MAX ? (uint64_t)(tokens / need) : UINT64_MAX;
}

static void fill_rank(const struct pkv_kv_plan *plan, struct pkv_kv_fit *fit, uint64_t pool)
{
    struct pkv_kv_rank *rank = &fit->ranks[fit->num_ranks++];

    rank->pool_bytes = pool;
    rank->block_bytes = plan->stages[rank->stage].block_bytes;
    rank->num_blocks = rank->block_bytes > 0 ? pool / rank->block_bytes : UINT64_MAX;
    if (rank->num_blocks < fit->num_blocks) {
        fit->num_blocks = rank->num_blocks;
        fit->limiting_rank = fit->num_ranks - 1;
    }
}

int pkv_kv_fit_make(const struct pkv_kv_plan *plan, const uint64_t *pools, size_t num_pools,
                    struct pkv_kv_fit *out, struct pkv_err *err)
{
    uint64_t num_all = (uint64_t)plan->num_stages * plan->config.tp;
    bool single = num_pools == 1, by_stage = num_pools == plan->num_stages;
    uint64_t num = single || by_stage ? plan->num_stages : num_all;

    out->num_blocks = UINT64_MAX;
    out->num_ranks = out->limiting_rank = 0;
    out->alike = single || by_stage;
    if (!single && !by_stage && num_pools != num_all)
        return pkv_fail(err, PKV_ERR_INPUT, "%zu sizes of memory for %u stage%s of %u rank%s; give one, "
                        "one for each stage, or one for each rank", num_pools, plan->num_stages,
                        plan->num_stages == 1 ? "" : "s", plan->config.tp,
                        plan->config.tp == 1 ? "" : "s");
    if (num > PKV_KV_MAX_RANKS)
        return pkv_fail(err, PKV_ERR_INPUT, "more than %u ranks", PKV_KV_MAX_RANKS);
    for (uint32_t i = 0; i < num; i++) {
        out->ranks[i].stage = out->alike ? i : i / plan->config.tp;
        out->ranks[i].tp_rank = out->alike ? 0 : i % plan->config.tp;
        fill_rank(plan, out, pools[single ? 0 : i]);
    }
    if (out->num_blocks == UINT64_MAX)
        return pkv_fail(err, PKV_ERR_INPUT, "no rank stores anything");
    for (uint32_t i = 0; i < num; i++)
        out->ranks[i].stranded_bytes =
            out->ranks[i].pool_bytes - out->num_blocks * out->ranks[i].block_bytes;
    return 0;
}

uint64_t pkv_kv_payload_requests(const struct pkv_kv_model *model, const struct pkv_kv_plan *plan,
                                 const struct pkv_kv_fit *fit, uint64_t num_positions)
{
    uint64_t fewest = UINT64_MAX;

    for (uint32_t i = 0; i < fit->num_ranks; i++) {
        const struct pkv_kv_rank *rank = &fit->ranks[i];
        uint64_t bytes = add(pkv_kv_sequence_bytes(model, plan, rank->stage, num_positions),
                             plan->stages[rank->stage].state_bytes);

        if (bytes > 0)
            fewest = smaller(fewest, rank->pool_bytes / bytes);
    }
    return fewest == UINT64_MAX ? 0 : fewest;
}

int pkv_kv_budget_pool(const struct pkv_kv_budget *budget, uint64_t *out, struct pkv_err *err)
{
    unsigned __int128 asked = (unsigned __int128)budget->total_bytes * budget->share_millionths /
                              1000000;
    unsigned __int128 taken = (unsigned __int128)budget->weights_bytes + budget->activation_bytes +
                              budget->other_bytes + budget->graphs_bytes;

    if (budget->share_millionths == 0 || budget->share_millionths > 1000000)
        return pkv_fail(err, PKV_ERR_INPUT, "a share of memory is above 0 and at most 1");
    if (taken >= asked)
        return pkv_fail(err, PKV_ERR_INPUT, "nothing is left for the cache: %llu bytes of memory may "
                        "be used, and the rest takes %llu", (unsigned long long)asked,
                        (unsigned long long)(taken < UINT64_MAX ? taken : UINT64_MAX));
    *out = (uint64_t)(asked - taken);
    return 0;
}
