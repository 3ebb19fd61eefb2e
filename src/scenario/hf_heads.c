/*
 * hf_heads.c - heads, their sizes and latent vectors, in the many ways in which configs say them.
 */
#include <stdio.h>
#include <string.h>

#include "scenario/hf_private.h"

#define MAX_DIM (1u << 20)
#define CLASS_INDEX_DIM 128u

int hf_read_heads(struct hf *hf, struct pkv_err *err)
{
    static const char *const layers[] = { "num_hidden_layers", "n_layer", "num_layers", "n_layers",
                                          NULL };
    static const char *const heads[] = { "num_attention_heads", "n_head", "n_heads", "num_heads",
                                         NULL };
    static const char *const hidden[] = { "hidden_size", "n_embd", "n_embed", "d_model", NULL };

    if (hf_need(hf, layers, PKV_KV_MAX_LAYERS, &hf->num_layers, err) < 0)
        return -1;
    hf->num_heads = hf->family->heads;
    if ((hf_find(hf, heads) || hf->num_heads == HF_NEEDED) &&
        hf_need(hf, heads, 65536, &hf->num_heads, err) < 0)
        return -1;
    if (!hf_find(hf, heads))
        hf_assume(hf, heads[0], hf->num_heads);
    return hf_find(hf, hidden) ? hf_need(hf, hidden, MAX_DIM * 64, &hf->hidden_size, err) : 0;
}

static bool is_falcon(const struct hf *hf)
{
    return strcmp(hf->type, "falcon") == 0 || strncmp(hf->type, "RefinedWeb", 10) == 0;
}

/* Classes that know of no KV heads but one for each head of the query. */
static bool is_multi_head(const struct hf *hf)
{
    static const char *const types[] = { "gpt2", "gpt_neox", "gptj", "codegen", "bloom", "baichuan",
                                         "mpt", "opt", "qwen" };

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(hf->type, types[i]) == 0)
            return true;
    return false;
}

int hf_check_evenly(const struct hf *hf, const struct node *node, uint32_t num_kv_heads,
                    struct pkv_err *err)
{
    if (hf->num_heads % num_kv_heads != 0)
        return node_fail(node, err, "%s: %u does not divide num_attention_heads, which is %u",
                         node->key, num_kv_heads, hf->num_heads);
    return 0;
}

/* DBRX and MPT have them in a map of their own; MPT as many as query heads where it does not say. */
static int read_nested_heads(struct hf *hf, struct pkv_err *err)
{
    const struct node *map = hf_get(hf, "attn_config");
    bool is_map = map && map->kind == NODE_MAP;
    const struct node *heads = is_map ? node_child(map, "kv_n_heads") : NULL;
    const struct node *kind = is_map ? node_child(map, "attn_type") : NULL;

    if (map && !is_map)
        return node_fail(map, err, "attn_config: an object with kv_n_heads belongs here");
    if (heads && !node_is_null(heads))
        return hf_count(heads, 1, MAX_DIM, &hf->num_kv_heads, err) < 0
                   ? -1 : hf_check_evenly(hf, heads, hf->num_kv_heads, err);
    hf->num_kv_heads = hf->num_heads;
    if (strcmp(hf->type, "dbrx") == 0 ||
        (kind && (kind->kind != NODE_SCALAR || strcmp(kind->text, "multihead_attention") != 0)))
        return hf_missing(hf, "attn_config.kv_n_heads", "", err);
    return 0;
}

static bool has_nested_heads(const struct hf *hf)
{
    return strcmp(hf->type, "dbrx") == 0 || strcmp(hf->type, "mpt") == 0;
}

int hf_read_kv_heads(struct hf *hf, struct pkv_err *err)
{
    static const char *const names[] = { "num_key_value_heads", "num_kv_heads", "n_head_kv",
                                         "n_kv_heads", NULL };
    const struct node *groups = hf_get(hf, "multi_query_group_num");

    if (has_nested_heads(hf))
        return read_nested_heads(hf, err);
    hf->num_kv_heads = hf->family->kv_heads == 0 ? hf->num_heads : hf->family->kv_heads;
    if (groups && hf_flag(hf, "multi_query_attention", true))
        return hf_count(groups, 1, MAX_DIM, &hf->num_kv_heads, err) < 0
                   ? -1 : hf_check_evenly(hf, groups, hf->num_kv_heads, err);
    if (!hf_flag(hf, "new_decoder_architecture", false) &&
        hf_flag(hf, "multi_query", is_falcon(hf) || strcmp(hf->type, "gpt_bigcode") == 0)) {
        hf->num_kv_heads = 1;
        return 0;
    }
    if (!hf_find(hf, names) && hf->family->kv_heads != HF_NEEDED) {
        hf->kv_heads_assumed = !is_multi_head(hf);
        return 0;
    }
    if (hf_need(hf, names, MAX_DIM, &hf->num_kv_heads, err) < 0)
        return -1;
    return hf_check_evenly(hf, hf_find(hf, names), hf->num_kv_heads, err);
}

int hf_read_head_dim(struct hf *hf, struct pkv_err *err)
{
    static const char *const names[] = { "head_dim", "kv_channels", "attention_head_dim", NULL };
    const struct node *v = hf->family->is_latent ? NULL : hf_get(hf, "v_head_dim");

    hf->head_dim_k = hf->family->head_dim;
    if (hf_find(hf, names) || hf->head_dim_k == HF_NEEDED) {
        if (hf_need(hf, names, MAX_DIM, &hf->head_dim_k, err) < 0)
            return -1;
    } else if (hf->head_dim_k == 0) {
        if (hf->hidden_size == 0)
            return hf_missing(hf, "head_dim", "and there is no hidden_size to take it from", err);
        if (hf->hidden_size % hf->num_heads != 0)
            return hf_missing(hf, "head_dim", "hidden_size is no multiple of num_attention_heads",
                              err);
        hf->head_dim_k = hf->hidden_size / hf->num_heads;
    } else {
        hf_assume(hf, names[0], hf->head_dim_k);
    }
    hf->head_dim_v = hf->head_dim_k;
    if (!v && hf->family->rule == HF_MIXED_HEADS)
        return hf_missing(hf, "v_head_dim", "its values have a size of their own", err);
    return v ? hf_count(v, 1, MAX_DIM, &hf->head_dim_v, err) : 0;
}

/* Which layers of a sparse latent cache have an indexer, and so its keys, of their own. */
static int read_indexers(struct hf *hf, uint32_t index_dim, struct pkv_err *err)
{
    const struct node *list = hf_get(hf, "indexer_types"), *every = hf_get(hf, "index_topk_freq");
    uint32_t layer = 0, interval = 1;

    if (!list && every && hf_count(every, 1, PKV_KV_MAX_LAYERS, &interval, err) < 0)
        return -1;
    if (!list && (interval > 1 || hf_get(hf, "index_topk_pattern")))
        return hf_missing(hf, "indexer_types", interval > 1 ? "index_topk_freq says that not every layer has "
                          "an indexer" : "index_topk_pattern says that not every layer has an indexer", err);
    if (!list)
        return 0;
    if (index_dim == 0)
        return hf_missing(hf, "index_head_dim", "there are indexer_types", err);
    if (hf_want_list(hf, list, err) < 0)
        return -1;
    for (const struct node *item = list->children; item; item = item->next) {
        const char *word = item->kind == NODE_SCALAR ? item->text : "";

        if (strcmp(word, "full") != 0 && strcmp(word, "shared") != 0)
            return node_fail(item, err, "indexer_types: '%.40s' is neither full nor shared", word);
        hf->shares_index[layer++] = strcmp(word, "shared") == 0;
    }
    return 0;
}

/* A type that may be latent is not with use_mla: false; the engine goes by the sizes, so these have
 * to say the same. */
int hf_settle_latent(struct hf *hf, struct pkv_err *err)
{
    const struct node *rank = hf_get(hf, "kv_lora_rank"), *rope = hf_get(hf, "qk_rope_head_dim");
    const struct node *use = hf_get(hf, "use_mla");
    uint32_t size = 0;

    hf->is_latent = hf_flag(hf, "use_mla", rank || hf->family->is_latent);
    if (!use || hf->is_latent)
        return 0;
    if (rank)
        return node_fail(use, err, "use_mla: false, and kv_lora_rank says that the cache is latent");
    if (rope && hf_count(rope, 0, MAX_DIM, &size, err) < 0)
        return -1;
    if (size > 0)
        return node_fail(use, err, "use_mla: false, and qk_rope_head_dim says that the cache is latent");
    return 0;
}

/* DeepSeek V3.2 and GLM 5, whose classes have an indexer whether or not the config speaks of it. */
static bool has_class_indexer(const struct hf *hf)
{
    return strcmp(hf->type, "deepseek_v32") == 0 || strcmp(hf->type, "glm_moe_dsa") == 0;
}

/* The keys of an indexer; 0 = there is none. */
static int read_index_dim(struct hf *hf, uint32_t *out, struct pkv_err *err)
{
    static const char *const speaking[] = { "index_topk", "index_n_heads", NULL };
    const struct node *dim = hf_get(hf, "index_head_dim"), *other = hf_find(hf, speaking);
    char why[64];

    if (dim)
        return hf_count(dim, 1, MAX_DIM, out, err);
    *out = has_class_indexer(hf) ? CLASS_INDEX_DIM : 0;
    if (*out > 0)
        hf_assume(hf, "index_head_dim", *out);
    if (!other || *out > 0)
        return 0;
    snprintf(why, sizeof(why), "%s says that there is an indexer", other->key);
    return hf_missing(hf, "index_head_dim", why, err);
}

/* A latent cache has neither KV heads nor a head size. */
int hf_read_latent(struct hf *hf, struct pkv_kv_type *out, struct pkv_err *err)
{
    if (!hf->is_latent)
        return 0;
    out->kind = PKV_KV_LATENT;
    if (hf_need_one(hf, "kv_lora_rank", MAX_DIM, &out->latent_dim, err) < 0 ||
        hf_need_one(hf, "qk_rope_head_dim", MAX_DIM, &out->rope_dim, err) < 0 ||
        read_index_dim(hf, &out->index_dim, err) < 0)
        return -1;
    return read_indexers(hf, out->index_dim, err);
}
