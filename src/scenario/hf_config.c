/*
 * hf_config.c - a model's sizes from its config.json as Hugging Face has it.
 *
 * Strict: what decides how much is stored is in the config, or is a default of the model's class that
 * the table below knows, or the config is refused with the key that is missing. Nothing is guessed
 * from a name. A type that is not in the table is taken as plain attention when nothing in its config
 * speaks against that, and the model's note says so.
 *
 * Quantised weights do not change the cache, so quantization_config is not looked at.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "pagedkv/scenario.h"
#include "scenario/hf_private.h"

#define MAX_LEN INT32_MAX
#define MAX_DIM (1u << 20)

#define N HF_NEEDED
static const struct hf_family families[] = {
    /* type              rule            pattern heads kv head_dim */
    { "llama",           HF_PLAIN,       0, N, 0, 0, false, false },
    { "mistral",         HF_ALL_SLIDE,   0, N, N, 0, false, false },
    { "mixtral",         HF_ALL_SLIDE,   0, N, N, 0, false, false },
    { "ministral3",      HF_ALL_SLIDE,   0, N, N, 0, false, false },
    { "starcoder2",      HF_ALL_SLIDE,   0, N, N, 0, false, false },
    { "phi3",            HF_ALL_SLIDE,   0, N, 0, 0, false, false },
    { "phi",             HF_PLAIN,       0, N, 0, 0, false, false },
    { "qwen",            HF_PLAIN,       0, N, 0, 0, false, false },
    { "qwen2",           HF_FROM_LAYER,  0, N, N, 0, false, false },
    { "qwen2_moe",       HF_FROM_LAYER,  0, N, N, 0, false, false },
    { "qwen2_vl_text",   HF_FROM_LAYER,  0, N, N, 0, false, false },
    { "qwen2_5_vl_text", HF_FROM_LAYER,  0, N, N, 0, false, false },
    { "qwen3",           HF_FROM_LAYER,  0, N, N, N, false, false },
    { "qwen3_moe",       HF_FROM_LAYER,  0, N, N, N, false, false },
    { "qwen3_vl_text",   HF_PLAIN,       0, N, N, N, false, false },
    { "qwen3_next",      HF_INTERVAL,    0, N, N, N, false, false },
    { "qwen3_5",         HF_INTERVAL,    0, N, N, N, false, false },
    { "qwen3_5_text",    HF_INTERVAL,    0, N, N, N, false, false },
    { "qwen3_5_moe",     HF_INTERVAL,    0, N, N, N, false, false },
    { "qwen3_5_moe_text", HF_INTERVAL,   0, N, N, N, false, false },
    { "gemma",           HF_PLAIN,       0, N, N, 256, false, false },
    { "gemma2",          HF_PATTERN,     2, N, N, 256, false, false },
    { "gemma3",          HF_PATTERN,     6, 8, 4, 256, false, false },
    { "gemma3_text",     HF_PATTERN,     6, 8, 4, 256, false, false },
    { "gemma4",          HF_PATTERN,     6, N, N, N, true, false },
    { "gemma4_text",     HF_PATTERN,     6, N, N, N, true, false },
    { "cohere",          HF_PLAIN,       0, N, 0, 0, false, false },
    { "cohere2",         HF_PATTERN,     4, N, 0, 0, false, false },
    { "gpt_oss",         HF_PATTERN,     2, N, N, N, false, false },
    { "llama4",          HF_CHUNKED,     0, N, N, 0, false, false },
    { "llama4_text",     HF_CHUNKED,     0, N, N, 0, false, false },
    { "deepseek_v2",     HF_PLAIN,       0, N, 0, 0, false, true },
    { "deepseek_v3",     HF_PLAIN,       0, N, 0, 0, false, true },
    { "deepseek_v32",    HF_PLAIN,       0, N, 0, 0, false, true },
    { "deepseek_vl_v2",  HF_PLAIN,       0, N, 0, 0, false, true },
    { "kimi_k2",         HF_PLAIN,       0, N, 0, 0, false, true },
    { "glm_moe_dsa",     HF_PLAIN,       0, N, 0, 0, false, true },
    { "falcon",          HF_PLAIN,       0, N, 0, 0, false, false },
    { "RefinedWeb",      HF_PLAIN,       0, N, 0, 0, false, false },
    { "RefinedWebModel", HF_PLAIN,       0, N, 0, 0, false, false },
    { "gpt_bigcode",     HF_PLAIN,       0, N, 0, 0, false, false },
    { "gpt2",            HF_PLAIN,       0, N, 0, 0, false, false },
    { "gpt_neox",        HF_PLAIN,       0, N, 0, 0, false, false },
    { "opt",             HF_PLAIN,       0, N, 0, 0, false, false },
    { "chatglm",         HF_PLAIN,       0, N, 0, 0, false, false },
    { "glm4_moe",        HF_PLAIN,       0, N, N, N, false, false },
    { "granite",         HF_PLAIN,       0, N, 0, 0, false, false },
    { "granitemoe",      HF_PLAIN,       0, N, 0, 0, false, false },
    { "granitemoehybrid", HF_TYPES,      0, N, N, 0, false, false },
    { "bamba",           HF_INDICES,     0, N, N, 0, false, false },
    { "jamba",           HF_PERIOD,      0, N, N, 0, false, false },
    { "nemotron_h",      HF_OVERRIDE,    0, N, N, 0, false, false },
    { "minimax_m1",      HF_LIST,        0, N, N, N, false, false },
    { "minimax_text_01", HF_LIST,        0, N, N, N, false, false },
    { "minimax",         HF_LIST,        0, N, N, N, false, false },
    { "mimo_v2_flash",   HF_MIXED_HEADS, 0, N, N, N, false, false },
};
/* What is taken for a type that is not known. */
static const struct hf_family plain = { "", HF_PLAIN, 0, N, 0, 0, false, false };
#undef N

const struct node *hf_get(const struct hf *hf, const char *name)
{
    const struct node *node = node_child(hf->text, name);

    if (!node || node_is_null(node))
        node = node_child(hf->outer, name);
    return node && !node_is_null(node) ? node : NULL;
}

const struct node *hf_find(const struct hf *hf, const char *const *names)
{
    for (; *names; names++) {
        const struct node *node = hf_get(hf, *names);

        if (node)
            return node;
    }
    return NULL;
}

int hf_count(const struct node *node, uint32_t min, uint32_t max, uint32_t *out,
             struct pkv_err *err)
{
    const char *name = node->key ? node->key : "an item";
    const char *why = "is not a whole number";
    uint64_t n = 0;

    if (node->kind != NODE_SCALAR || node->quoted)
        return node_fail(node, err, "%s: a whole number belongs here", name);
    if (pkv_parse_u64(node->text, node->length, max, &n, &why) < 0)
        return node_fail(node, err, "%s: '%.40s' %s", name, node->text, why);
    if (n < min)
        return node_fail(node, err, "%s: %.40s is below %u", name, node->text, min);
    *out = (uint32_t)n;
    return 0;
}

int hf_missing(const struct hf *hf, const char *name, const char *why, struct pkv_err *err)
{
    return node_fail(hf->text, err, "%s is missing%s%s", name, *why ? ": " : "", why);
}

int hf_need(const struct hf *hf, const char *const *names, uint32_t max, uint32_t *out,
            struct pkv_err *err)
{
    const struct node *node = hf_find(hf, names);

    return node ? hf_count(node, 1, max, out, err) : hf_missing(hf, names[0], "", err);
}

int hf_need_one(const struct hf *hf, const char *name, uint32_t max, uint32_t *out,
                struct pkv_err *err)
{
    const char *const names[] = { name, NULL };

    return hf_need(hf, names, max, out, err);
}

int hf_want_list(const struct hf *hf, const struct node *list, struct pkv_err *err)
{
    uint32_t num = 0;

    if (list->kind != NODE_LIST)
        return node_fail(list, err, "%s: a list with an item for each layer belongs here",
                         list->key);
    for (const struct node *item = list->children; item; item = item->next)
        num++;
    if (num != hf->num_layers)
        return node_fail(list, err, "%s: %u items for %u layers", list->key, num, hf->num_layers);
    return 0;
}

bool hf_flag(const struct hf *hf, const char *name, bool fallback)
{
    const struct node *node = hf_get(hf, name);

    return node && node->kind == NODE_SCALAR ? strcmp(node->text, "true") == 0 : fallback;
}

/* The map of the text model, and of what type it is. */
static int find_text(struct hf *hf, struct pkv_err *err)
{
    static const char *const nested[] = { "text_config", "language_config", "llm_config", NULL };
    const struct node *type;

    if (hf->outer->kind != NODE_MAP)
        return node_fail(hf->outer, err, "a config.json is an object with keys like "
                         "num_hidden_layers");
    hf->text = hf->outer;
    for (size_t i = 0; nested[i]; i++) {
        const struct node *map = node_child(hf->outer, nested[i]);

        if (map && map->kind == NODE_MAP) {
            hf->text = map;
            break;
        }
    }
    type = hf_get(hf, "model_type");
    hf->type = type && type->kind == NODE_SCALAR ? type->text : "";
    hf->family = &plain;
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (strcmp(families[i].type, hf->type) == 0) {
            hf->family = &families[i];
            hf->is_known = true;
        }
    return 0;
}

/* What is asked with hf_flag() says true or false. */
static int check_flags(const struct hf *hf, struct pkv_err *err)
{
    static const char *const flags[] = { "use_sliding_window", "multi_query",
                                         "new_decoder_architecture", "multi_query_attention" };

    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        const struct node *node = hf_get(hf, flags[i]);

        if (node && (node->kind != NODE_SCALAR || node->quoted ||
                     (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)))
            return node_fail(node, err, "%s: true or false belongs here", flags[i]);
    }
    return 0;
}

/* A type that is not known must not have what plain attention has no use for. */
static int check_unknown(const struct hf *hf, struct pkv_err *err)
{
    static const char *const telling[] = {
        "full_attention_interval", "attn_layer_period", "attn_layer_indices", "mamba_d_state",
        "hybrid_override_pattern", "attn_type_list", "layers_block_type", "ssm_state_size",
        "linear_num_value_heads", "attention_chunk_size", "hybrid_layer_pattern", "state_size",
        "num_kv_shared_layers", "num_global_key_value_heads", "linear_attn_config",
        "hybrid_layer_ids", "block_types", "is_encoder_decoder",
    };

    if (hf->is_known)
        return 0;
    for (size_t i = 0; i < sizeof(telling) / sizeof(*telling); i++) {
        const struct node *node = hf_get(hf, telling[i]);

        if (node && !(node->kind == NODE_SCALAR &&
                      (strcmp(node->text, "0") == 0 || strcmp(node->text, "false") == 0)))
            return node_fail_key(node, err, "%s: model_type '%.40s' is not known, and this key says "
                                 "that it is not plain attention", telling[i], hf->type);
    }
    if (hf_get(hf, "sliding_window") && hf_flag(hf, "use_sliding_window", true) &&
        !hf_get(hf, "layer_types") && !hf_get(hf, "sliding_window_pattern"))
        return hf_missing(hf, "layer_types", "there is a sliding_window, and the model_type is not "
                          "known, so it does not say which layers have it", err);
    return 0;
}

static int read_heads(struct hf *hf, struct pkv_err *err)
{
    static const char *const layers[] = { "num_hidden_layers", "n_layer", "num_layers", "n_layers",
                                          NULL };
    static const char *const heads[] = { "num_attention_heads", "n_head", "n_heads", "num_heads",
                                         NULL };
    static const char *const hidden[] = { "hidden_size", "n_embd", "d_model", NULL };

    if (hf_need(hf, layers, PKV_KV_MAX_LAYERS, &hf->num_layers, err) < 0)
        return -1;
    hf->num_heads = hf->family->heads;
    if ((hf_find(hf, heads) || hf->num_heads == HF_NEEDED) &&
        hf_need(hf, heads, 65536, &hf->num_heads, err) < 0)
        return -1;
    return hf_find(hf, hidden) ? hf_need(hf, hidden, MAX_DIM * 64, &hf->hidden_size, err) : 0;
}

static bool is_falcon(const struct hf *hf)
{
    return strcmp(hf->type, "falcon") == 0 || strncmp(hf->type, "RefinedWeb", 10) == 0;
}

/* Classes that know of no KV heads but one for each head of the query. */
static bool is_multi_head(const struct hf *hf)
{
    static const char *const types[] = { "gpt2", "gpt_neox", "opt", "qwen" };

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(hf->type, types[i]) == 0)
            return true;
    return false;
}

static int check_evenly(const struct hf *hf, const struct node *node, uint32_t num_kv_heads,
                        struct pkv_err *err)
{
    if (hf->num_heads % num_kv_heads != 0)
        return node_fail(node, err, "%s: %u does not divide num_attention_heads, which is %u",
                         node->key, num_kv_heads, hf->num_heads);
    return 0;
}

static int read_kv_heads(struct hf *hf, struct pkv_err *err)
{
    static const char *const names[] = { "num_key_value_heads", "num_kv_heads", "n_head_kv",
                                         NULL };
    const struct node *groups = hf_get(hf, "multi_query_group_num");

    hf->num_kv_heads = hf->family->kv_heads == 0 ? hf->num_heads : hf->family->kv_heads;
    if (groups && hf_flag(hf, "multi_query_attention", true))
        return hf_count(groups, 1, MAX_DIM, &hf->num_kv_heads, err) < 0
                   ? -1 : check_evenly(hf, groups, hf->num_kv_heads, err);
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
    return check_evenly(hf, hf_find(hf, names), hf->num_kv_heads, err);
}

static int read_head_dim(struct hf *hf, struct pkv_err *err)
{
    static const char *const names[] = { "head_dim", "kv_channels", "attention_head_dim", NULL };
    const struct node *v = hf_get(hf, "v_head_dim");

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
    }
    hf->head_dim_v = hf->head_dim_k;
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

/* Is it a latent cache? It has neither KV heads nor a head size. */
static int read_latent(struct hf *hf, struct pkv_kv_type *out, struct pkv_err *err)
{
    const struct node *index = hf_get(hf, "index_head_dim");

    if (!hf_get(hf, "kv_lora_rank") && !hf->family->is_latent)
        return 0;
    out->kind = PKV_KV_LATENT;
    if (hf_need_one(hf, "kv_lora_rank", MAX_DIM, &out->latent_dim, err) < 0 ||
        hf_need_one(hf, "qk_rope_head_dim", MAX_DIM, &out->rope_dim, err) < 0 ||
        (index && hf_count(index, 1, MAX_DIM, &out->index_dim, err) < 0))
        return -1;
    return read_indexers(hf, out->index_dim, err);
}

/* Full layers may have heads of their own, and so may sliding ones. */
static int own_heads(const struct hf *hf, enum hf_role role, struct pkv_kv_type *type,
                     struct pkv_err *err)
{
    static const char *const full[] = { "num_global_key_value_heads", "global_head_dim",
                                        "global_head_dim" };
    static const char *const sliding[] = { "swa_num_key_value_heads", "swa_head_dim",
                                           "swa_v_head_dim" };
    const char *const *names = role == HF_FULL ? full : sliding;
    uint32_t *const fields[] = { &type->num_kv_heads, &type->head_dim_k, &type->head_dim_v };

    for (size_t i = 0; i < 3; i++) {
        const struct node *node = hf_get(hf, names[i]);

        if (node && (hf_count(node, 1, MAX_DIM, fields[i], err) < 0 ||
                     (i == 0 && check_evenly(hf, node, *fields[i], err) < 0)))
            return -1;
    }
    return 0;
}

static int make_type(const struct hf *hf, uint32_t layer, const struct pkv_kv_type *latent,
                     struct pkv_kv_type *out, struct pkv_err *err)
{
    enum hf_role role = (enum hf_role)hf->roles[layer];

    *out = (struct pkv_kv_type){ .kind = PKV_KV_FULL };
    if (role == HF_STATE) {
        out->kind = PKV_KV_STATE;
        return hf_read_state(hf, &out->state, err);
    }
    if (latent->kind == PKV_KV_LATENT) {
        *out = *latent;
        out->index_dim = hf->shares_index[layer] ? 0 : latent->index_dim;
        return 0;
    }
    out->num_kv_heads = hf->num_kv_heads;
    out->head_dim_k = hf->head_dim_k;
    out->head_dim_v = hf->head_dim_v;
    if (role == HF_SLIDING || role == HF_CHUNK) {
        out->kind = role == HF_SLIDING ? PKV_KV_SLIDING : PKV_KV_CHUNKED;
        out->window = hf->windows[layer];
    }
    return own_heads(hf, role, out, err);
}

static int add_layers(struct hf *hf, struct pkv_kv_model *out, struct pkv_err *err)
{
    struct pkv_kv_type latent = { .kind = PKV_KV_FULL }, type;

    if (read_latent(hf, &latent, err) < 0)
        return -1;
    out->num_layers = hf->num_layers;
    for (uint32_t i = 0; i < hf->num_layers; i++) {
        struct pkv_err why;
        int index;

        out->layers[i] = PKV_KV_NO_TYPE;
        if (hf->roles[i] == HF_NOTHING)
            continue;
        if (make_type(hf, i, &latent, &type, err) < 0)
            return -1;
        index = pkv_kv_model_add_type(out, &type, &why);
        if (index < 0)
            return node_fail(hf->text, err, "%s", why.text);
        out->layers[i] = (uint8_t)index;
    }
    return 0;
}

static void add_note(struct pkv_kv_model *out, const char *said)
{
    size_t used = strlen(out->note);

    snprintf(out->note + used, sizeof(out->note) - used, "%s%s", used ? "; " : "", said);
}

static void note_kv_heads(const struct hf *hf, struct pkv_kv_model *out)
{
    char said[96];

    if (!hf->kv_heads_assumed)
        return;
    snprintf(said, sizeof(said), "num_key_value_heads is not in the config: taken as %s (%u)",
             hf->family->kv_heads == 0 ? "num_attention_heads" : "its class has it",
             hf->num_kv_heads);
    add_note(out, said);
}

/* An unknown word for a type is not an error: it may be any of the engine's, and --kv-dtype says it. */
static void read_dtypes(const struct hf *hf, struct pkv_kv_model *out)
{
    static const char *const names[] = { "torch_dtype", "dtype", NULL };
    static const char *const states[] = { "mamba_ssm_dtype", "mamba_ssm_cache_dtype", NULL };
    const struct node *dtype = hf_find(hf, names), *state = hf_find(hf, states);
    enum pkv_kv_dtype found = PKV_KV_BF16;
    const char *said = "";

    if (!dtype || dtype->kind != NODE_SCALAR || !pkv_kv_dtype_find(dtype->text, &found))
        said = "it says no dtype: taken as bf16";
    else if (found == PKV_KV_FP32)
        said = "fp32 weights: the engine's auto makes them 16 bits, and so the cache";
    out->dtype = found == PKV_KV_FP16 || found == PKV_KV_FP32 ? PKV_KV_FP16 : PKV_KV_BF16;
    if (*said)
        add_note(out, said);
    out->fp32_state = state && state->kind == NODE_SCALAR && strstr(state->text, "float32");
}

/* model_max_length stands above the length of the positions (Command R+). */
static int read_rest(const struct hf *hf, struct pkv_kv_model *out, struct pkv_err *err)
{
    static const char *const lengths[] = { "model_max_length", "max_position_embeddings",
                                           "n_positions", "max_sequence_length", "max_seq_len",
                                           "seq_length", NULL };
    static const char *const mtp[] = { "num_nextn_predict_layers", "mtp_num_hidden_layers", NULL };
    const struct node *length = hf_find(hf, lengths), *draft = hf_find(hf, mtp);

    if (!hf->is_known)
        snprintf(out->note, sizeof(out->note), "model_type '%.60s' is not known: taken as plain "
                 "attention", hf->type);
    note_kv_heads(hf, out);
    read_dtypes(hf, out);
    out->num_attention_heads = hf->num_heads;
    if (length && hf_count(length, 1, MAX_LEN, &out->max_model_len, err) < 0)
        return -1;
    return draft ? hf_count(draft, 0, 64, &out->num_mtp_layers, err) : 0;
}

static int read_model(struct hf *hf, struct pkv_kv_model *out, struct pkv_err *err)
{
    struct pkv_err why;

    if (find_text(hf, err) < 0 || check_flags(hf, err) < 0 || check_unknown(hf, err) < 0 ||
        read_heads(hf, err) < 0)
        return -1;
    if (!hf_get(hf, "kv_lora_rank") && !hf->family->is_latent &&
        (read_kv_heads(hf, err) < 0 || read_head_dim(hf, err) < 0))
        return -1;
    if (hf_read_layers(hf, err) < 0 || add_layers(hf, out, err) < 0 ||
        read_rest(hf, out, err) < 0)
        return -1;
    return pkv_kv_model_check(out, &why) < 0 ? node_fail(hf->text, err, "%s", why.text) : 0;
}

static void name_after(const char *path, struct pkv_kv_model *out)
{
    snprintf(out->name, sizeof(out->name), "%.*s", (int)sizeof(out->name) - 1, path);
}

int pkv_kv_model_load(const char *path, struct pkv_kv_model *out, struct pkv_err *err)
{
    struct forest forest = { .pieces = NULL };
    struct hf hf = { .text = NULL };
    struct node *root = NULL;
    int result = -1;

    memset(out, 0, sizeof(*out));
    name_after(path, out);
    if (tree_load(&forest, path, TREE_JSON, &root, err) == 0) {
        hf.outer = root;
        result = read_model(&hf, out, err);
    }
    forest_finish(&forest);
    return result;
}

int pkv_kv_model_open(const char *name_or_path, struct pkv_kv_model *out, struct pkv_err *err)
{
    char hint[PKV_KV_NEAREST_SIZE];

    if (pkv_kv_model_find(name_or_path, out))
        return 0;
    if (!strstr(name_or_path, ".json") && access(name_or_path, F_OK) != 0)
        return pkv_fail(err, PKV_ERR_INPUT, "'%.80s' is neither a known model (`pagedkv models` lists "
                        "them) nor a file%s", name_or_path, pkv_kv_model_nearest(name_or_path, hint));
    return pkv_kv_model_load(name_or_path, out, err);
}
