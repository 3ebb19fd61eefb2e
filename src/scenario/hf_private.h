/*
 * hf_private.h - a Hugging Face config.json on its way to a model.
 */
#ifndef PKV_SCENARIO_HF_PRIVATE_H
#define PKV_SCENARIO_HF_PRIVATE_H

#include "pagedkv/sizing.h"
#include "scenario/tree_private.h"

/* How a class of models says which layers are of which kind, where there is no layer_types. */
enum hf_rule {
    HF_PLAIN,        /* full attention, but for a sliding_window that somebody put there: as below */
    HF_ALL_SLIDE,    /* sliding_window, if there is one, holds for every layer */
    HF_FROM_LAYER,   /* with use_sliding_window, from layer max_window_layers on */
    HF_PATTERN,      /* every pattern-th layer is full, the others slide */
    HF_CHUNKED,      /* no_rope_layers are full, the others chunked */
    HF_INTERVAL,     /* every full_attention_interval-th layer attends, others are Gated DeltaNet */
    HF_PERIOD,       /* attn_layer_period and _offset; others are Mamba-1 */
    HF_INDICES,      /* attn_layer_indices; others are Mamba-2 */
    HF_TYPES,        /* layer_types or layers_block_type: attention, mamba (2) */
    HF_OVERRIDE,     /* hybrid_override_pattern: M (Mamba-2), *, - */
    HF_LIST,         /* attn_type_list: 1 attention, 0 lightning attention */
    HF_MIXED_HEADS   /* hybrid_layer_pattern: 0 full, 1 sliding with heads of its own */
};

#define HF_NEEDED UINT32_MAX   /* the class has no default: the key must be there */

struct hf_family {
    const char *type;        /* model_type */
    enum hf_rule rule;
    uint32_t pattern;        /* HF_PATTERN: the class default, or HF_NEEDED */
    uint32_t heads;          /* attention heads: a default, or HF_NEEDED */
    uint32_t kv_heads;       /* a default, HF_NEEDED, or 0 = as many as attention heads */
    uint32_t head_dim;       /* a default, HF_NEEDED, or 0 = hidden size / attention heads */
    bool last_is_full;       /* whatever the pattern says */
    bool is_latent;          /* kv_lora_rank must be there, unless use_mla is false */
};

enum hf_role { HF_FULL, HF_SLIDING, HF_CHUNK, HF_STATE, HF_NOTHING };

#define HF_MAX_ASSUMED 8u

struct hf {
    const struct node *outer, *text;     /* the document; the map of the text model */
    const char *type;                    /* "" = not said */
    const struct hf_family *family;
    bool is_known;                       /* the family is that of its type */
    bool is_latent;                      /* its cache is latent */
    uint32_t num_layers, num_heads, hidden_size;   /* hidden_size 0 = not said */
    uint32_t num_kv_heads, head_dim_k, head_dim_v;
    struct { const char *key; uint32_t value; } assumed[HF_MAX_ASSUMED];   /* as its class has them */
    uint32_t num_assumed;
    bool kv_heads_assumed;               /* neither said nor all that the class knows */
    uint8_t roles[PKV_KV_MAX_LAYERS];    /* [num_layers] */
    uint32_t windows[PKV_KV_MAX_LAYERS]; /* of sliding and chunked layers */
    bool shares_index[PKV_KV_MAX_LAYERS];   /* latent: it uses what a former layer's indexer found */
};

/* The first of the keys (ends with NULL) that is there and not null, in the text model or, failing
 * that, outside of it. */
const struct node *hf_find(const struct hf *hf, const char *const *names);
const struct node *hf_get(const struct hf *hf, const char *name);
/* A whole number from min up to max. The error names the key. */
int hf_count(const struct node *node, uint32_t min, uint32_t max, uint32_t *out,
             struct pkv_err *err);
/* The same of a key that must be there: the first of its names. */
int hf_need(const struct hf *hf, const char *const *names, uint32_t max, uint32_t *out,
            struct pkv_err *err);
int hf_need_one(const struct hf *hf, const char *name, uint32_t max, uint32_t *out,
                struct pkv_err *err);
/* A key that is not there is taken as its class has it, and the note says so. */
void hf_assume(struct hf *hf, const char *key, uint32_t value);
int hf_missing(const struct hf *hf, const char *name, const char *why, struct pkv_err *err);
/* A list of num_layers items. */
int hf_want_list(const struct hf *hf, const struct node *list, struct pkv_err *err);
bool hf_flag(const struct hf *hf, const char *name, bool fallback);

/* -1 when the type is not known and a key, named at its place, says that it is not plain attention. */
int hf_check_unknown(const struct hf *hf, struct pkv_err *err);
/* Layers, query heads and the hidden size; then is_latent; then, where it is not, KV heads and their
 * size, or, where it is, the latent vector and which layers have an indexer. */
int hf_read_heads(struct hf *hf, struct pkv_err *err);
int hf_settle_latent(struct hf *hf, struct pkv_err *err);
int hf_read_kv_heads(struct hf *hf, struct pkv_err *err);
int hf_read_head_dim(struct hf *hf, struct pkv_err *err);
int hf_read_latent(struct hf *hf, struct pkv_kv_type *out, struct pkv_err *err);
/* KV heads that were read from this node have to divide the query heads. */
int hf_check_evenly(const struct hf *hf, const struct node *node, uint32_t num_kv_heads,
                    struct pkv_err *err);
/* Roles and windows of all layers. */
int hf_read_layers(struct hf *hf, struct pkv_err *err);
/* The recurrent state of one layer. */
int hf_read_state(const struct hf *hf, struct pkv_kv_state *out, struct pkv_err *err);

#endif
