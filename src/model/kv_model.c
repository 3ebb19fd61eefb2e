/*
 * kv_model.c - a model's layers, and the bytes one of them stores on one rank.
 *
 * Bounds hold before anything is multiplied: at most 2^24 values a position and layer, 2^20 tokens a
 * block, 1,088 layers; so a block stays below 2^60 bytes. A state is at most 2^37 values, and drafts
 * make it at most 4,097 times as long: 2^51 bytes a layer.
 */
#include <string.h>

#include "model/kv_private.h"

#define MAX_HEADS 65536u
#define MAX_VALUES (1u << 24)
#define MAX_BLOCK_SIZE (1u << 20)
#define MAX_STATE_VALUES (UINT64_C(1) << 37)
#define MAX_SPECULATIVE_TOKENS 4096u

static bool types_equal(const struct pkv_kv_type *a, const struct pkv_kv_type *b)
{
    const struct pkv_kv_state *s = &a->state, *t = &b->state;

    return a->kind == b->kind && a->num_kv_heads == b->num_kv_heads &&
           a->head_dim_k == b->head_dim_k && a->head_dim_v == b->head_dim_v &&
           a->window == b->window && a->latent_dim == b->latent_dim &&
           a->rope_dim == b->rope_dim && a->index_dim == b->index_dim && s->inner == t->inner &&
           s->num_groups == t->num_groups && s->group_values == t->group_values &&
           s->cut_as_one == t->cut_as_one && s->kernel == t->kernel &&
           s->num_heads == t->num_heads && s->head_values == t->head_values;
}

int pkv_kv_model_add_type(struct pkv_kv_model *model, const struct pkv_kv_type *type,
                          struct pkv_err *err)
{
    for (uint32_t i = 0; i < model->num_types; i++)
        if (types_equal(&model->types[i], type))
            return (int)i;
    if (model->num_types == PKV_KV_MAX_TYPES)
        return pkv_fail(err, PKV_ERR_INPUT, "the layers are of more than %u different types",
                        PKV_KV_MAX_TYPES);
    model->types[model->num_types] = *type;
    return (int)model->num_types++;
}

static int check_heads(const struct pkv_kv_type *type, uint32_t num_attention_heads,
                       struct pkv_err *err)
{
    if (type->num_kv_heads == 0 || type->num_kv_heads > MAX_HEADS)
        return pkv_fail(err, PKV_ERR_INPUT, "%u KV heads are not within 1 .. %u",
                        type->num_kv_heads, MAX_HEADS);
    if (num_attention_heads % type->num_kv_heads != 0)
        return pkv_fail(err, PKV_ERR_INPUT, "%u KV heads do not divide %u attention heads",
                        type->num_kv_heads, num_attention_heads);
    if (type->head_dim_k == 0 || type->head_dim_v > MAX_VALUES / type->num_kv_heads ||
        type->head_dim_k > MAX_VALUES / type->num_kv_heads)
        return pkv_fail(err, PKV_ERR_INPUT, "a head of %u and %u values is not within 1 .. %u",
                        type->head_dim_k, type->head_dim_v, MAX_VALUES / type->num_kv_heads);
    if ((type->kind == PKV_KV_SLIDING || type->kind == PKV_KV_CHUNKED) && type->window == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "a window of 0 positions");
    return 0;
}

static int check_state(const struct pkv_kv_state *s, struct pkv_err *err)
{
    __int128 conv = s->inner + (__int128)2 * s->num_groups * s->group_values;

    conv *= s->kernel > 0 ? s->kernel - 1 : 0;
    if (s->num_heads == 0 || s->head_values == 0 ||
        conv + (__int128)s->num_heads * s->head_values > MAX_STATE_VALUES)
        return pkv_fail(err, PKV_ERR_INPUT, "a recurrent state of %u heads with %u values is out of "
                        "bounds", s->num_heads, s->head_values);
    return 0;
}

int pkv_kv_model_check(const struct pkv_kv_model *model, struct pkv_err *err)
{
    if (model->num_layers == 0 || model->num_layers > PKV_KV_MAX_LAYERS)
        return pkv_fail(err, PKV_ERR_INPUT, "%u layers are not within 1 .. %u", model->num_layers,
                        PKV_KV_MAX_LAYERS);
    if (model->num_types == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "no layer stores anything");
    for (uint32_t i = 0; i < model->num_types; i++) {
        const struct pkv_kv_type *type = &model->types[i];
        uint64_t latent = (uint64_t)type->latent_dim + type->rope_dim + type->index_dim;

        if (type->kind == PKV_KV_STATE && check_state(&type->state, err) < 0)
            return -1;
        if (type->kind == PKV_KV_LATENT && (latent == 0 || latent > MAX_VALUES))
            return pkv_fail(err, PKV_ERR_INPUT, "a latent vector of %llu values",
                            (unsigned long long)latent);
        if (type->kind != PKV_KV_STATE && type->kind != PKV_KV_LATENT &&
            check_heads(type, model->num_attention_heads, err) < 0)
            return -1;
    }
    return 0;
}

uint32_t kv_num_layers(const struct pkv_kv_model *model, const struct pkv_kv_config *config)
{
    return model->num_layers + config->num_draft_layers;
}

/* Would a draft layer be of this type rather than of one further back? Layers that share an indexer
 * have none of their own; a draft layer has. */
static bool is_better_draft(const struct pkv_kv_type *type, const struct pkv_kv_type *than)
{
    if (!kv_grows(than->kind))
        return kv_grows(type->kind);
    return than->kind == PKV_KV_LATENT && type->index_dim > 0 && than->index_dim == 0;
}

/* A draft layer is built like the model's last layer of full attention, or its last at all. */
static uint32_t draft_type(const struct pkv_kv_model *model)
{
    uint32_t last = PKV_KV_NO_TYPE;

    for (uint32_t i = model->num_layers; i-- > 0;) {
        uint32_t type = model->layers[i];

        if (type != PKV_KV_NO_TYPE &&
            (last == PKV_KV_NO_TYPE || is_better_draft(&model->types[type], &model->types[last])))
            last = type;
    }
    return last;
}

uint32_t kv_layer_type(const struct pkv_kv_model *model, uint32_t layer)
{
    return layer < model->num_layers ? model->layers[layer] : draft_type(model);
}

static int check_kv_heads(uint32_t heads, uint32_t tp, struct pkv_err *err)
{
    if (heads >= tp && heads % tp != 0)
        return pkv_fail(err, PKV_ERR_INPUT, "TP %u does not divide %u KV heads", tp, heads);
    if (heads < tp && tp % heads != 0)
        return pkv_fail(err, PKV_ERR_INPUT, "TP %u is no multiple of %u KV heads, so they cannot be "
                        "copied evenly", tp, heads);
    return 0;
}

static int check_dcp(const struct pkv_kv_type *type, const struct pkv_kv_config *config,
                     struct pkv_err *err)
{
    uint32_t heads = type->kind == PKV_KV_LATENT ? 1 : type->num_kv_heads;

    if (config->dcp == 1)
        return 0;
    if (!kv_grows(type->kind))
        return pkv_fail(err, PKV_ERR_INPUT, "DCP goes with layers of full attention only");
    if (config->tp % config->dcp != 0 || config->tp <= heads || config->dcp > config->tp / heads)
        return pkv_fail(err, PKV_ERR_INPUT, "DCP %u needs a TP that is a multiple of it and of at "
                        "least %u times %u KV heads, not %u", config->dcp, config->dcp, heads,
                        config->tp);
    return 0;
}

int kv_check_tp(const struct pkv_kv_model *model, const struct pkv_kv_config *config,
                struct pkv_err *err)
{
    if (config->tp == 0 || config->tp > MAX_HEADS)
        return pkv_fail(err, PKV_ERR_INPUT, "TP %u is not within 1 .. %u", config->tp, MAX_HEADS);
    if (config->dcp == 0 || config->dcp > MAX_HEADS)
        return pkv_fail(err, PKV_ERR_INPUT, "DCP %u is not within 1 .. %u", config->dcp, MAX_HEADS);
    if (config->block_size == 0 || config->block_size > MAX_BLOCK_SIZE)
        return pkv_fail(err, PKV_ERR_INPUT, "a block of %u tokens is not within 1 .. %u",
                        config->block_size, MAX_BLOCK_SIZE);
    if (config->num_speculative_tokens > MAX_SPECULATIVE_TOKENS)
        return pkv_fail(err, PKV_ERR_INPUT, "%u speculative tokens are more than %u",
                        config->num_speculative_tokens, MAX_SPECULATIVE_TOKENS);
    if (model->num_attention_heads % config->tp != 0)
        return pkv_fail(err, PKV_ERR_INPUT, "TP %u does not divide %u attention heads",
                        config->tp, model->num_attention_heads);
    for (uint32_t i = 0; i < model->num_types; i++) {
        const struct pkv_kv_type *type = &model->types[i];

        if (type->kind != PKV_KV_LATENT && type->kind != PKV_KV_STATE &&
            check_kv_heads(type->num_kv_heads, config->tp, err) < 0)
            return -1;
        if (check_dcp(type, config, err) < 0)
            return -1;
    }
    return 0;
}

/* A latent vector is stored whole on every rank. */
static int latent_bytes(const struct pkv_kv_type *type, enum pkv_kv_dtype dtype, uint64_t *out,
                        struct pkv_err *err)
{
    if (dtype == PKV_KV_FP8_TOKEN_HEAD || dtype == PKV_KV_INT8_TOKEN_HEAD)
        return pkv_fail(err, PKV_ERR_INPUT, "%s has a scale for each head, and a latent cache (MLA) "
                        "has no heads", pkv_kv_dtype_name(dtype));
    if (dtype != PKV_KV_FP8_DS_MLA) {
        if (kv_vector_bytes(dtype, (uint64_t)type->latent_dim + type->rope_dim, out, err) < 0)
            return -1;
    } else {
        *out = type->latent_dim + 4 * kv_ceil_div(type->latent_dim, 128) +
               2 * (uint64_t)type->rope_dim;
    }
    if (type->index_dim > 0)
        *out += type->index_dim + 4 * kv_ceil_div(type->index_dim, 128);
    return 0;
}

static int check_divides(uint64_t values, uint32_t tp, const char *what, struct pkv_err *err)
{
    if (values % tp != 0)
        return pkv_fail(err, PKV_ERR_INPUT, "TP %u does not divide the %llu %s of the recurrent state",
                        tp, (unsigned long long)values, what);
    return 0;
}

/* Channels of the convolution on one rank. */
static int state_channels(const struct pkv_kv_state *s, uint32_t tp, uint64_t *out,
                          struct pkv_err *err)
{
    /* Fewer groups than ranks: each rank has a copy of the one that its heads need. */
    bool copied = !s->cut_as_one && s->num_groups > 0 && s->num_groups < tp;
    uint64_t groups = copied ? tp : s->num_groups;

    *out = (s->inner + 2 * groups * s->group_values) / tp;
    if (s->cut_as_one)
        return check_divides(s->inner + 2 * groups * s->group_values, tp, "channels", err);
    if (check_divides(groups, tp, "groups", err) < 0)
        return -1;
    return check_divides(s->inner, tp, "inner values", err);
}

/* Positions of the convolution: with drafts so many more, to go back to the last one accepted. */
static uint64_t state_positions(const struct pkv_kv_state *s, const struct pkv_kv_config *config)
{
    if (s->kernel == 0)
        return 0;
    return s->kernel - 1 + (uint64_t)(s->num_groups > 0 ? config->num_speculative_tokens : 0);
}

static int state_bytes(const struct pkv_kv_state *s, const struct pkv_kv_config *config,
                       const struct pkv_kv_model *model, uint64_t *out, struct pkv_err *err)
{
    uint64_t conv_value = model->dtype == PKV_KV_FP32 ? 4 : 2;
    uint64_t state_value = config->fp32_state ? 4 : conv_value;
    uint64_t channels;

    if (check_divides(s->num_heads, config->tp, "heads", err) < 0 ||
        state_channels(s, config->tp, &channels, err) < 0)
        return -1;
    *out = channels * state_positions(s, config) * conv_value +
           (uint64_t)s->num_heads / config->tp * s->head_values * state_value;
    return 0;
}

enum pkv_kv_dtype pkv_kv_stored_dtype(const struct pkv_kv_model *model, enum pkv_kv_dtype dtype)
{
    bool is_sparse = false;
    for (uint32_t i = 0; i < model->num_types; i++)
        is_sparse |= model->types[i].kind == PKV_KV_LATENT && model->types[i].index_dim > 0;
    return is_sparse && dtype == PKV_KV_FP8 ? PKV_KV_FP8_DS_MLA : dtype;
}

int kv_type_bytes(const struct pkv_kv_type *type, const struct pkv_kv_config *config,
                  const struct pkv_kv_model *model, uint64_t *out_position, uint64_t *out_state,
                  struct pkv_err *err)
{
    uint64_t heads, k, v;

    *out_position = *out_state = 0;
    if (type->kind == PKV_KV_STATE)
        return state_bytes(&type->state, config, model, out_state, err);
    if (type->kind == PKV_KV_LATENT)
        return latent_bytes(type, pkv_kv_stored_dtype(model, config->dtype), out_position, err);
    heads = type->num_kv_heads > config->tp ? type->num_kv_heads / config->tp : 1;
    if (kv_vector_bytes(config->dtype, type->head_dim_k, &k, err) < 0 ||
        kv_vector_bytes(config->dtype, type->head_dim_v, &v, err) < 0)
        return -1;
    *out_position = heads * (k + v);
    return 0;
}
