/*
 * kv_plan.c - a model laid over pipeline stages, its layers put into groups with equal pages.
 *
 * Groups are made for the whole model and projected to the stages: the layers of a type are dealt
 * to its groups in turn, so that each stage gets a like part of every group, and a block on a stage
 * is a page in as many layers as the fullest group has there. Where all layers are of full
 * attention there is one group, and a block is the sum of its layers' pages.
 *
 * Order and rules after vllm/v1/core/kv_cache_utils.py; block sizes beside recurrent state after
 * vllm/model_executor/models/config.py.
 */
#include <string.h>

#include "model/kv_private.h"

#define STATE_ALIGNMENT 16u   /* tokens; of the attention kernels beside recurrent state */
#define MAX_BLOCK_SIZE (1u << 20)

int pkv_kv_split(enum pkv_kv_split split, uint32_t num_layers, uint32_t num_stages,
                 uint32_t *out_layers, struct pkv_err *err)
{
    uint32_t left;

    if (num_stages == 0 || num_stages > PKV_KV_MAX_STAGES || num_stages > num_layers)
        return pkv_fail(err, PKV_ERR_INPUT, "%u pipeline stages for %u layers; from 1 to %u are "
                        "possible", num_stages, num_layers,
                        num_layers < PKV_KV_MAX_STAGES ? num_layers : PKV_KV_MAX_STAGES);
    for (uint32_t i = 0; i < num_stages; i++)
        out_layers[i] = num_layers / num_stages;
    left = num_layers % num_stages;
    for (uint32_t i = 1; i <= left; i++)
        out_layers[num_stages - i - (split == PKV_KV_SPLIT_VLLM ? 1 : 0)]++;
    return 0;
}

void pkv_kv_config_engine(struct pkv_kv_config *config, const struct pkv_kv_engine *engine)
{
    uint64_t batched = engine->max_num_batched_tokens;

    config->num_draft_layers = engine->num_draft_layers;
    config->num_speculative_tokens = engine->num_speculative_tokens;
    config->state_mode = engine->prefix_cache ? PKV_KV_STATE_ALIGN : PKV_KV_STATE_NONE;
    if (batched == 0 || (engine->async_scheduling && batched > UINT64_MAX / 2))
        config->in_flight_tokens = UINT64_MAX;
    else
        config->in_flight_tokens = engine->async_scheduling ? 2 * batched : batched;
}

/* What is made of the types: layers of each, and which are one for the block tables. */
struct deal {
    const struct pkv_kv_model *model;
    struct pkv_kv_plan *plan;
    uint32_t num_layers;                         /* draft layers with them */
    uint32_t counts[PKV_KV_MAX_TYPES];           /* layers of a type */
    uint32_t first_group[PKV_KV_MAX_TYPES];      /* of a type, and how many it has */
    uint32_t num_groups[PKV_KV_MAX_TYPES];
};

static enum pkv_kv_kind charged_kind(const struct deal *d, uint32_t type)
{
    enum pkv_kv_kind kind = d->model->types[type].kind;

    if (d->plan->config.no_windows && (kind == PKV_KV_SLIDING || kind == PKV_KV_CHUNKED))
        return PKV_KV_FULL;
    return kind;
}

static int check_stages(const struct deal *d, struct pkv_err *err)
{
    const struct pkv_kv_config *c = &d->plan->config;
    uint64_t sum = 0;

    if (c->num_stages == 0 || c->num_stages > PKV_KV_MAX_STAGES)
        return pkv_fail(err, PKV_ERR_INPUT, "%u pipeline stages are not within 1 .. %u",
                        c->num_stages, PKV_KV_MAX_STAGES);
    for (uint32_t i = 0; i < c->num_stages; i++)
        sum += c->stage_layers[i];
    if (sum != d->model->num_layers)
        return pkv_fail(err, PKV_ERR_INPUT, "the pipeline stages have %llu layers and the model has "
                        "%u", (unsigned long long)sum, d->model->num_layers);
    if (c->num_draft_layers > PKV_KV_MAX_STAGES)
        return pkv_fail(err, PKV_ERR_INPUT, "%u draft layers are more than %u",
                        c->num_draft_layers, PKV_KV_MAX_STAGES);
    return 0;
}

static uint32_t stage_of_layer(const struct pkv_kv_plan *plan, uint32_t layer)
{
    uint32_t stage = plan->num_stages - 1;

    while (stage > 0 && plan->stages[stage].first_layer > layer)
        stage--;
    return stage;
}

/* Bytes of each type, and their sums over the layers of each stage. */
static int add_up(struct deal *d, struct pkv_err *err)
{
    struct pkv_kv_plan *plan = d->plan;
    uint32_t first = 0;

    for (uint32_t t = 0; t < d->model->num_types; t++)
        if (kv_type_bytes(&d->model->types[t], &plan->config, d->model, &plan->type_bytes[t],
                          &plan->state_bytes[t], err) < 0)
            return -1;
    for (uint32_t i = 0; i < plan->num_stages; i++) {
        plan->stages[i] = (struct pkv_kv_stage){ .first_layer = first,
                                                 .num_layers = plan->config.stage_layers[i] };
        first += plan->config.stage_layers[i];
    }
    plan->stages[plan->num_stages - 1].num_layers += plan->config.num_draft_layers;
    for (uint32_t layer = 0; layer < d->num_layers; layer++) {
        struct pkv_kv_stage *stage = &plan->stages[stage_of_layer(plan, layer)];
        uint32_t type = kv_layer_type(d->model, layer);

        if (type == PKV_KV_NO_TYPE)
            continue;
        d->counts[type]++;
        stage->position_bytes += plan->type_bytes[type];
        stage->state_bytes += plan->state_bytes[type];
        if (kv_grows(charged_kind(d, type)))
            stage->growing_bytes += plan->type_bytes[type];
    }
    for (uint32_t i = 0; i < plan->num_stages; i++) {
        plan->position_bytes += plan->stages[i].position_bytes;
        plan->growing_bytes += plan->stages[i].growing_bytes;
        plan->state_total_bytes += plan->stages[i].state_bytes;
    }
    return 0;
}

/* Do all layers that store anything fit one block table, whatever their sizes? */
static bool is_uniform(const struct deal *d)
{
    uint32_t first = PKV_KV_NO_TYPE;

    for (uint32_t t = 0; t < d->model->num_types; t++) {
        if (d->counts[t] == 0)
            continue;
        if (first == PKV_KV_NO_TYPE)
            first = t;
        else if (!kv_grows(charged_kind(d, t)) || !kv_grows(charged_kind(d, first)))
            return false;
    }
    return true;
}

static void add_groups(struct deal *d, uint32_t type, uint32_t num, uint32_t block_size)
{
    struct pkv_kv_plan *plan = d->plan;

    d->first_group[type] = plan->num_groups;
    d->num_groups[type] = num;
    for (uint32_t i = 0; i < num; i++)
        plan->groups[plan->num_groups++] = (struct pkv_kv_group){
            .type = type, .kind = charged_kind(d, type), .window = d->model->types[type].window,
            .block_size = block_size,
        };
}

/* One group of all layers. */
static void group_together(struct deal *d)
{
    struct pkv_kv_plan *plan = d->plan;
    uint64_t smallest = UINT64_MAX, largest = 0;
    uint32_t first = PKV_KV_NO_TYPE;

    for (uint32_t t = 0; t < d->model->num_types; t++) {
        if (d->counts[t] == 0)
            continue;
        if (first == PKV_KV_NO_TYPE)
            add_groups(d, first = t, 1, plan->config.block_size);
        d->first_group[t] = 0;
        d->num_groups[t] = 1;
        plan->group_size += d->counts[t];
        smallest = plan->type_bytes[t] < smallest ? plan->type_bytes[t] : smallest;
        largest = plan->type_bytes[t] > largest ? plan->type_bytes[t] : largest;
    }
    plan->page_bytes = smallest == largest ? smallest * plan->config.block_size : 0;
}

/* Beside state the blocks of attention grow until a page holds a whole state. */
static void raise_block_size(struct deal *d, uint64_t state_page, uint64_t *attention)
{
    uint64_t per_token = 0, wanted;

    for (uint32_t t = 0; t < d->model->num_types; t++)
        if (d->counts[t] > 0 && d->plan->type_bytes[t] > per_token)
            per_token = d->plan->type_bytes[t];
    if (per_token > 0 && state_page > 0) {
        wanted = STATE_ALIGNMENT * kv_ceil_div(state_page, STATE_ALIGNMENT * per_token);
        wanted = wanted < MAX_BLOCK_SIZE ? wanted : MAX_BLOCK_SIZE + 1;
        if (wanted > d->plan->config.block_size)
            d->plan->config.block_size = (uint32_t)wanted;
    }
    *attention = per_token * d->plan->config.block_size;
}

/* The page that all groups have; in *out_state what a page of state needs of it. */
static int find_page(struct deal *d, uint64_t *out_state, struct pkv_err *err)
{
    struct pkv_kv_plan *plan = d->plan;
    uint64_t attention, state = 0;

    for (uint32_t t = 0; t < d->model->num_types; t++)
        if (d->counts[t] > 0 && plan->state_bytes[t] > state)
            state = plan->state_bytes[t];
    raise_block_size(d, state, &attention);
    plan->page_bytes = attention > state ? attention : state;
    plan->state_padding_bytes = state > 0 ? plan->page_bytes - state : 0;
    *out_state = state;
    if (plan->config.block_size > MAX_BLOCK_SIZE)
        return pkv_fail(err, PKV_ERR_INPUT, "a page of attention would need a block of more than %u "
                        "tokens to hold a recurrent state of %llu bytes", MAX_BLOCK_SIZE,
                        (unsigned long long)state);
    return 0;
}

static uint32_t find_group_size(const struct deal *d)
{
    uint32_t smallest = UINT32_MAX, largest = 0;

    for (uint32_t t = 0; t < d->model->num_types; t++) {
        if (d->counts[t] == 0)
            continue;
        smallest = d->counts[t] < smallest ? d->counts[t] : smallest;
        largest = d->counts[t] > largest ? d->counts[t] : largest;
    }
    return (uint64_t)largest * 2 < (uint64_t)smallest * 3 ? largest : smallest;
}

/* Several block tables: every type cut into groups of one size, with equal pages. */
static int group_apart(struct deal *d, struct pkv_err *err)
{
    struct pkv_kv_plan *plan = d->plan;
    uint64_t state;

    if (find_page(d, &state, err) < 0)
        return -1;
    plan->group_size = find_group_size(d);
    for (uint32_t t = 0; t < d->model->num_types; t++) {
        uint64_t bytes = plan->type_bytes[t] * plan->config.block_size, factor = 1;
        uint32_t num = (uint32_t)kv_ceil_div(d->counts[t], plan->group_size);

        if (d->counts[t] == 0)
            continue;
        if (bytes > 0 && plan->page_bytes % bytes != 0)
            return pkv_fail(err, PKV_ERR_INPUT, "pages of %llu and %llu bytes cannot be made equal "
                            "by larger blocks", (unsigned long long)plan->page_bytes,
                            (unsigned long long)bytes);
        factor = bytes > 0 ? plan->page_bytes / bytes : 1;
        if (plan->num_groups + num > PKV_KV_MAX_GROUPS || factor > MAX_BLOCK_SIZE / plan->config.block_size)
            return pkv_fail(err, PKV_ERR_INPUT, "the layers make more than %u groups, or blocks of "
                            "more than %u tokens", PKV_KV_MAX_GROUPS, MAX_BLOCK_SIZE);
        add_groups(d, t, num, plan->config.block_size * (uint32_t)factor);
    }
    return 0;
}

/* How many layers of each group lie on a stage, and what a block takes there. */
static void project(struct deal *d)
{
    struct pkv_kv_plan *plan = d->plan;
    uint32_t dealt[PKV_KV_MAX_TYPES] = { 0 };
    uint32_t on_stage[PKV_KV_MAX_GROUPS];
    uint32_t layer = 0;

    for (uint32_t i = 0; i < plan->num_stages; i++) {
        struct pkv_kv_stage *stage = &plan->stages[i];

        memset(on_stage, 0, sizeof(on_stage));
        for (uint32_t end = layer + stage->num_layers; layer < end; layer++) {
            uint32_t type = kv_layer_type(d->model, layer), group;

            if (type == PKV_KV_NO_TYPE)
                continue;
            group = d->first_group[type] + dealt[type]++ % d->num_groups[type];
            plan->groups[group].num_layers++;
            if (++on_stage[group] > stage->block_layers)
                stage->block_layers = on_stage[group];
        }
        stage->block_bytes = plan->page_bytes > 0
                                 ? plan->page_bytes * stage->block_layers
                                 : stage->position_bytes * plan->config.block_size;
    }
}

int pkv_kv_plan_make(const struct pkv_kv_model *model, const struct pkv_kv_config *config,
                     struct pkv_kv_plan *out, struct pkv_err *err)
{
    struct deal d = { .model = model, .plan = out };

    memset(out, 0, sizeof(*out));
    out->config = *config;
    out->num_stages = config->num_stages;
    d.num_layers = kv_num_layers(model, config);
    if (pkv_kv_model_check(model, err) < 0 || check_stages(&d, err) < 0 ||
        kv_check_tp(model, config, err) < 0 || add_up(&d, err) < 0)
        return -1;
    if (is_uniform(&d) && out->position_bytes > 0)
        group_together(&d);
    else if (group_apart(&d, err) < 0)
        return -1;
    project(&d);
    return 0;
}
