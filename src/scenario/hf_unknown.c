/*
 * hf_unknown.c - a type of model that is not known: does its config speak against plain attention?
 *
 * Not only the keys of known classes are looked for. Any key whose name has to do with what a layer
 * stores, and which plain attention has no use for, refuses the config, unless its value says that it
 * is off. Better to refuse a plain model with an odd key than to size an odd one as plain.
 */
#include <string.h>

#include "scenario/hf_private.h"

/* Parts of such names. */
static const char *const telling[] = {
    /* recurrent state */
    "mamba", "ssm", "conv", "recurrent", "rwkv", "rnn", "lru_", "d_state", "state_size", "state_dim",
    "time_step", "delta_net", "deltanet", "gated_delta", "lightning", "kda_", "retention", "linear_att",
    "linear_num", "linear_key", "linear_value", "linear_head", "expand_",
    /* layers of several kinds */
    "hybrid", "block_type", "blocks_type", "block_config", "layer_pattern", "layer_group", "override_pattern",
    "attn_type_list", "attention_types", "attention_layers", "attn_layer", "attn_idx", "full_att",
    "sparse_att", "sparse_config", "moba", "nsa_", "compress",
    /* windows and chunks */
    "window", "swa_", "_swa", "local_att", "global_att", "global_head", "num_global", "attention_chunk",
    /* layers that store nothing, or what others compute */
    "cla_", "_cla", "share_kv", "shared_kv", "kv_shar", "kv_reuse", "yoco", "cross_att", "encoder",
    "attention_free", "no_attention", "skip_attention", "local_layers", "memory_tokens",
    /* heads of their own */
    "attn_config", "heads_per_layer", "dim_per_layer", "attention_groups", "query_groups", "kv_groups",
    "value_groups", "qk_head_dim", "query_head_dim", "key_head_dim", "value_head_dim",
};

/* Parts of names that go with a latent cache. */
static const char *const latent[] = { "lora_rank", "qk_rope", "qk_nope", "latent", "index_head",
                                      "index_topk", "indexer" };

/* Types whose keys look like others', and which are not sized as these. */
static const struct { const char *type, *why; } odd[] = {
    { "longcat_flash", "each of its layers has two of attention" },
    { "minicpm3", "the engine stores heads for it, not the latent vector that its keys tell of" },
};

static bool has_part(const char *name, const char *const *parts, size_t num)
{
    for (size_t i = 0; i < num; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Nothing, false, 0, or an empty list or map. */
static bool is_off(const struct node *node)
{
    static const char *const off[] = { "", "0", "false", NULL };

    if (node->kind != NODE_SCALAR)
        return node->children == NULL;
    return node_is_null(node) || is_one_of(node->text, off);
}

/* Anything of keys and values but what projects them. */
static bool is_of_kv(const char *name)
{
    const char *part = strstr(name, "kv_");

    return part && (part == name || part[-1] != 'q');
}

static int check_key(const struct hf *hf, const struct node *node, struct pkv_err *err)
{
    static const char *const read[] = { "layer_types", "sliding_window", "sliding_window_pattern",
                                        "_sliding_window_pattern", "use_sliding_window",
                                        "max_window_layers", "kv_lora_rank", "kv_channels",
                                        "num_kv_heads", "n_kv_heads", NULL };
    bool unused = strncmp(node->key, "cla_", 4) == 0 && !hf_flag(hf, "use_cla", true);

    if (is_one_of(node->key, read) || is_off(node) || unused)
        return 0;
    if (!hf_get(hf, "kv_lora_rank") &&
        has_part(node->key, latent, sizeof(latent) / sizeof(*latent)))
        return node_fail_key(node, err, "%.60s: model_type '%.40s' is not known, and this key says that "
                             "its cache is latent, but kv_lora_rank is missing", node->key, hf->type);
    if (is_of_kv(node->key) || has_part(node->key, telling, sizeof(telling) / sizeof(*telling)))
        return node_fail_key(node, err, "%.60s: model_type '%.40s' is not known, and this key says "
                             "that it is not plain attention", node->key, hf->type);
    return 0;
}

/* What stands outside of the text model and is of another part of it. */
static bool is_elsewhere(const char *name)
{
    static const char *const parts[] = { "vision", "visual", "image", "video", "audio", "speech", "mm_",
                                         "projector" };

    return has_part(name, parts, sizeof(parts) / sizeof(*parts));
}

static int check_window(const struct hf *hf, struct pkv_err *err)
{
    static const char *const says[] = { "layer_types", "sliding_window_pattern",
                                        "_sliding_window_pattern", NULL };
    const struct node *window = hf_get(hf, "sliding_window");

    if (!window || window->kind == NODE_LIST || !hf_flag(hf, "use_sliding_window", true) ||
        hf_find(hf, says))
        return 0;
    return hf_missing(hf, "layer_types", "there is a sliding_window, and the model_type is not known, so it "
                      "does not say which layers have it", err);
}

int hf_check_unknown(const struct hf *hf, struct pkv_err *err)
{
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
        if (strcmp(hf->type, odd[i].type) == 0)
            return node_fail(hf_get(hf, "model_type"), err, "model_type: '%s' cannot be sized: %s",
                             hf->type, odd[i].why);
    for (const struct node *node = hf->text->children; node; node = node->next)
        if (check_key(hf, node, err) < 0)
            return -1;
    for (const struct node *node = hf->outer->children; node; node = node->next)
        if (hf->outer != hf->text && node != hf->text && !is_elsewhere(node->key) &&
            check_key(hf, node, err) < 0)
            return -1;
    return check_window(hf, err);
}
