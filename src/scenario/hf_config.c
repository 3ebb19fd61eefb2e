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
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
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
    { "qwen2_vl",        HF_FROM_LAYER,  0, N, N, 0, false, false },
    { "qwen2_5_vl",      HF_FROM_LAYER,  0, N, N, 0, false, false },
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
    { "deepseek",        HF_PLAIN,       0, N, N, 0, false, false },
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
    { "gptj",            HF_PLAIN,       0, N, 0, 0, false, false },
    { "codegen",         HF_PLAIN,       0, N, 0, 0, false, false },
    { "bloom",           HF_PLAIN,       0, N, 0, 0, false, false },
    { "baichuan",        HF_PLAIN,       0, N, 0, 0, false, false },
    { "mpt",             HF_PLAIN,       0, N, 0, 0, false, false },
    { "dbrx",            HF_PLAIN,       0, N, N, 0, false, false },
    { "olmo",            HF_PLAIN,       0, N, 0, 0, false, false },
    { "olmo2",           HF_PLAIN,       0, N, 0, 0, false, false },
    { "stablelm",        HF_PLAIN,       0, N, N, 0, false, false },
    { "internlm2",       HF_PLAIN,       0, N, N, 0, false, false },
    { "exaone",          HF_PLAIN,       0, N, N, 0, false, false },
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
    { "minimax_m2",      HF_LIST,        0, N, N, N, false, false },
    { "mimo_v2_flash",   HF_MIXED_HEADS, 0, N, N, N, false, false },
};
/* What is taken for a type that is not known. */
static const struct hf_family plain = { "", HF_PLAIN, 0, N, N, 0, false, false };
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

void hf_assume(struct hf *hf, const char *key, uint32_t value)
{
    assert(hf->num_assumed < HF_MAX_ASSUMED);
    hf->assumed[hf->num_assumed].key = key;
    hf->assumed[hf->num_assumed++].value = value;
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
    if (type && (type->kind != NODE_SCALAR || !type->quoted))
        return node_fail(type, err, "model_type: a name in quotes belongs here");
    hf->type = type ? type->text : "";
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
                                         "new_decoder_architecture", "multi_query_attention",
                                         "use_mla", "use_cla" };

    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        const struct node *node = hf_get(hf, flags[i]);

        if (node && (node->kind != NODE_SCALAR || node->quoted ||
                     (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)))
            return node_fail(node, err, "%s: true or false belongs here", flags[i]);
    }
    return 0;
}

/* Classes whose layers of a role differ from the others by a default of their own: MiMo's sliding
 * ones in their number, Gemma 4's full ones in their size (its KV heads may well be the same). */
static bool needs_own_heads(const struct hf *hf, enum hf_role role, size_t field)
{
    if (role == HF_SLIDING)
        return hf->family->rule == HF_MIXED_HEADS && field == 0;
    return hf->family->last_is_full && field > 0;
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

        if (!node && needs_own_heads(hf, role, i))
            return hf_missing(hf, names[i], "its layers have heads of their own", err);
        if (node && (hf_count(node, 1, MAX_DIM, fields[i], err) < 0 ||
                     (i == 0 && hf_check_evenly(hf, node, *fields[i], err) < 0)))
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

    if (hf_read_latent(hf, &latent, err) < 0)
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

static void note_heads(const struct hf *hf, struct pkv_kv_model *out)
{
    char said[128];

    for (uint32_t i = 0; i < hf->num_assumed; i++) {
        snprintf(said, sizeof(said), "%s is not in the config: taken as its class has it (%u)",
                 hf->assumed[i].key, hf->assumed[i].value);
        add_note(out, said);
    }
    if (!hf->kv_heads_assumed)
        return;
    snprintf(said, sizeof(said), "num_key_value_heads is not in the config: taken as %s (%u)",
             hf->family->kv_heads == 0 ? "num_attention_heads" : "its class has it",
             hf->num_kv_heads);
    add_note(out, said);
}

static bool is_of_weights(enum pkv_kv_dtype dtype)
{
    return dtype == PKV_KV_BF16 || dtype == PKV_KV_FP16 || dtype == PKV_KV_FP32;
}

static const char *shape_of(const struct node *node)
{
    return node->kind == NODE_LIST ? "a list" : "an object";
}

/* What recurrent state is stored in; auto is what its model is. */
static int read_state_dtype(const struct hf *hf, const char *name, bool *out_fp32,
                            struct pkv_err *err)
{
    const struct node *node = hf_get(hf, name);
    enum pkv_kv_dtype found = PKV_KV_INT8;

    if (!node || (node->kind == NODE_SCALAR && strcmp(node->text, "auto") == 0))
        return 0;
    if (node->kind != NODE_SCALAR)
        return node_fail(node, err, "%s: %s is none of \"float32\", \"bfloat16\", \"float16\", "
                         "\"auto\"", name, shape_of(node));
    if (!node->quoted || !pkv_kv_dtype_find(node->text, &found) || !is_of_weights(found))
        return node_fail(node, err, "%s: '%.40s' is none of \"float32\", \"bfloat16\", \"float16\", "
                         "\"auto\"", name, node->text);
    *out_fp32 |= found == PKV_KV_FP32;
    return 0;
}

/* A word for a type that is not known is no error: it may be any of the engine's, and --kv-dtype says
 * which the cache has. */
static int read_dtypes(const struct hf *hf, struct pkv_kv_model *out, struct pkv_err *err)
{
    static const char *const names[] = { "torch_dtype", "dtype", NULL };
    const struct node *dtype = hf_find(hf, names);
    enum pkv_kv_dtype found = PKV_KV_BF16;
    char said[96] = "";

    if (dtype && (dtype->kind != NODE_SCALAR || !dtype->quoted))
        return node_fail(dtype, err, "%s: a name in quotes, like \"bfloat16\", belongs here", dtype->key);
    if (!dtype)
        snprintf(said, sizeof(said), "it says no dtype: taken as bf16");
    else if (!pkv_kv_dtype_find(dtype->text, &found))
        snprintf(said, sizeof(said), "%s '%.30s' is not known: taken as bf16", dtype->key, dtype->text);
    else if (!is_of_weights(found))
        snprintf(said, sizeof(said), "%s '%.30s' is no dtype of a cache's own: taken as bf16", dtype->key,
                 dtype->text);
    else if (found == PKV_KV_FP32)
        snprintf(said, sizeof(said), "fp32 weights: the engine's auto makes them 16 bits, and so the cache");
    out->dtype = found == PKV_KV_FP16 || found == PKV_KV_FP32 ? PKV_KV_FP16 : PKV_KV_BF16;
    if (*said)
        add_note(out, said);
    return read_state_dtype(hf, "mamba_ssm_dtype", &out->fp32_state, err) < 0
               ? -1 : read_state_dtype(hf, "mamba_ssm_cache_dtype", &out->fp32_state, err);
}

/* Tokenizers have such a number, like 1e30, where they know no limit. */
static bool is_no_limit(const struct node *node)
{
    const char *why, *exponent = node->kind == NODE_SCALAR ? strpbrk(node->text, "eE") : NULL;
    uint64_t n;

    if (node->kind != NODE_SCALAR || node->quoted || !strchr("123456789", node->text[0]))
        return false;
    if (exponent)
        return strtol(exponent + 1, NULL, 10) >= 10;
    return node->text[strspn(node->text, "0123456789")] == '\0' &&
           pkv_parse_u64(node->text, node->length, MAX_LEN, &n, &why) < 0;
}

/* model_max_length stands above the length of the positions (Command R+). */
static int read_length(const struct hf *hf, uint32_t *out, struct pkv_err *err)
{
    static const char *const names[] = { "max_position_embeddings", "n_positions",
                                         "max_sequence_length", "max_seq_len", "seq_length", NULL };
    const struct node *length = hf_get(hf, "model_max_length");

    if (!length || is_no_limit(length))
        length = hf_find(hf, names);
    return length ? hf_count(length, 1, MAX_LEN, out, err) : 0;
}

static void note_type(const struct hf *hf, struct pkv_kv_model *out)
{
    const char *taken = hf->is_latent ? "a latent cache (MLA)" : "plain attention";

    for (uint32_t i = 0; i < hf->num_layers && !hf->is_latent; i++)
        if (hf->roles[i] == HF_SLIDING)
            taken = "attention with the windows that it says";
    if (hf->type[0])
        snprintf(out->note, sizeof(out->note), "model_type '%.60s' is not known: taken as %s", hf->type,
                 taken);
    else
        snprintf(out->note, sizeof(out->note), "it says no model_type: taken as %s", taken);
}

static bool has_state(const struct pkv_kv_model *model)
{
    for (uint32_t i = 0; i < model->num_types; i++)
        if (model->types[i].kind == PKV_KV_STATE)
            return true;
    return false;
}

/* What is not said changes the state's bytes, or what is told of a request of full length. */
static void note_unsaid(const struct hf *hf, struct pkv_kv_model *out)
{
    static const char *const dtypes[] = { "mamba_ssm_dtype", "mamba_ssm_cache_dtype", NULL };
    char said[96];

    if (has_state(out) && !hf_find(hf, dtypes)) {
        snprintf(said, sizeof(said), "mamba_ssm_dtype is not in the config: the state is taken as %s",
                 out->dtype == PKV_KV_FP16 ? "fp16" : "bf16");
        add_note(out, said);
    }
    if (out->max_model_len == 0)
        add_note(out, "max_position_embeddings is not in the config: no longest request is told");
}

static int read_rest(const struct hf *hf, struct pkv_kv_model *out, struct pkv_err *err)
{
    static const char *const mtp[] = { "num_nextn_predict_layers", "mtp_num_hidden_layers", NULL };
    const struct node *draft = hf_find(hf, mtp);

    if (!hf->is_known)
        note_type(hf, out);
    note_heads(hf, out);
    out->num_attention_heads = hf->num_heads;
    if (read_dtypes(hf, out, err) < 0 || read_length(hf, &out->max_model_len, err) < 0)
        return -1;
    note_unsaid(hf, out);
    return draft ? hf_count(draft, 0, 64, &out->num_mtp_layers, err) : 0;
}

static int read_model(struct hf *hf, struct pkv_kv_model *out, struct pkv_err *err)
{
    struct pkv_err why;

    if (find_text(hf, err) < 0 || check_flags(hf, err) < 0 || hf_settle_latent(hf, err) < 0 ||
        (!hf->is_known && hf_check_unknown(hf, err) < 0) || hf_read_heads(hf, err) < 0)
        return -1;
    if (!hf->is_latent && (hf_read_kv_heads(hf, err) < 0 || hf_read_head_dim(hf, err) < 0))
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
