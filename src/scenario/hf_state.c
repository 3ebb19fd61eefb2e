/*
 * hf_state.c - the recurrent state of one layer, by the keys of its class.
 */
#include <string.h>

#include "scenario/hf_private.h"

#define MAX_DIM (1u << 20)

/* Keys that must all be there, in this order. */
static int read_all(const struct hf *hf, const char *const *names, uint32_t *const *fields,
                    struct pkv_err *err)
{
    for (size_t i = 0; names[i]; i++)
        if (hf_need_one(hf, names[i], MAX_DIM, fields[i], err) < 0)
            return -1;
    return 0;
}

static int multiply(const struct hf *hf, uint32_t a, uint32_t b, uint32_t *out,
                    struct pkv_err *err)
{
    uint64_t product = (uint64_t)a * b;

    *out = (uint32_t)product;
    return product <= INT32_MAX ? 0
                                : node_fail(hf->text, err, "the recurrent state is too large");
}

static int gated_delta_net(const struct hf *hf, struct pkv_kv_state *s, struct pkv_err *err)
{
    static const char *const names[] = { "linear_num_key_heads", "linear_key_head_dim",
                                         "linear_num_value_heads", "linear_value_head_dim",
                                         "linear_conv_kernel_dim", NULL };
    uint32_t dv = 0;
    uint32_t *const fields[] = { &s->num_groups, &s->group_values, &s->num_heads, &dv, &s->kernel };

    s->cut_as_one = true;
    if (read_all(hf, names, fields, err) < 0 || multiply(hf, s->num_heads, dv, &s->inner, err) < 0)
        return -1;
    return multiply(hf, dv, s->group_values, &s->head_values, err);
}

static int mamba_1(const struct hf *hf, struct pkv_kv_state *s, struct pkv_err *err)
{
    static const char *const names[] = { "mamba_expand", "mamba_d_state", "mamba_d_conv", NULL };
    uint32_t expand = 0;
    uint32_t *const fields[] = { &expand, &s->head_values, &s->kernel };

    if (read_all(hf, names, fields, err) < 0)
        return -1;
    if (hf->hidden_size == 0)
        return hf_missing(hf, "hidden_size", "", err);
    if (multiply(hf, expand, hf->hidden_size, &s->inner, err) < 0)
        return -1;
    s->num_heads = s->inner;
    return 0;
}

/* mamba_d_head may be "auto": the expanded width shared by the heads. */
static int read_d_head(const struct hf *hf, uint32_t num_heads, uint32_t *out, struct pkv_err *err)
{
    const struct node *node = hf_get(hf, "mamba_d_head");
    uint32_t expand = 0;

    if (!node || node->kind != NODE_SCALAR || strcmp(node->text, "auto") != 0)
        return hf_need_one(hf, "mamba_d_head", MAX_DIM, out, err);
    if (hf_need_one(hf, "mamba_expand", 1024, &expand, err) < 0)
        return -1;
    *out = (uint32_t)((uint64_t)expand * hf->hidden_size / num_heads);
    return *out > 0 ? 0 : hf_missing(hf, "hidden_size", "", err);
}

static int mamba_2(const struct hf *hf, struct pkv_kv_state *s, struct pkv_err *err)
{
    static const char *const usual[] = { "mamba_n_heads", "mamba_n_groups", "mamba_d_state",
                                         "mamba_d_conv", NULL };
    static const char *const nemotron[] = { "mamba_num_heads", "n_groups", "ssm_state_size",
                                            "conv_kernel", NULL };
    bool is_nemotron = hf->family->rule == HF_OVERRIDE;
    uint32_t *const fields[] = { &s->num_heads, &s->num_groups, &s->group_values, &s->kernel };
    uint32_t dim = 0;

    if (read_all(hf, is_nemotron ? nemotron : usual, fields, err) < 0 ||
        (is_nemotron ? hf_need_one(hf, "mamba_head_dim", MAX_DIM, &dim, err)
                     : read_d_head(hf, s->num_heads, &dim, err)) < 0 ||
        multiply(hf, s->num_heads, dim, &s->inner, err) < 0)
        return -1;
    return multiply(hf, dim, s->group_values, &s->head_values, err);
}

int hf_read_state(const struct hf *hf, struct pkv_kv_state *out, struct pkv_err *err)
{
    *out = (struct pkv_kv_state){ .inner = 0 };
    switch (hf->family->rule) {
    case HF_INTERVAL:
        return gated_delta_net(hf, out, err);
    case HF_PERIOD:
        return mamba_1(hf, out, err);
    case HF_INDICES:
    case HF_TYPES:
    case HF_OVERRIDE:
        return mamba_2(hf, out, err);
    case HF_LIST:
        out->num_heads = hf->num_heads;
        return multiply(hf, hf->head_dim_k, hf->head_dim_k, &out->head_values, err);
    case HF_PLAIN:
    case HF_ALL_SLIDE:
    case HF_FROM_LAYER:
    case HF_PATTERN:
    case HF_CHUNKED:
    case HF_MIXED_HEADS:
        break;
    }
    return node_fail(hf_get(hf, "layer_types"), err, "layer_types: model_type '%.40s' is not known to "
                     "have layers with a recurrent state", hf->type);
}
