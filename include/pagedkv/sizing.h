/*
 * sizing.h - what one position of KV costs, and how many blocks, tokens and requests fit.
 *
 * "Bytes per token" is three numbers. All layers together store so much for each position; of that
 * only the layers of full attention go on growing; windows, chunks and recurrent state end at a
 * fixed size. A model is a plain value: a list of layers, each of one of a few types. A plan lays it
 * over ranks: pipeline stages, heads cut by tensor parallelism, and groups of layers whose pages are
 * equal, so that one block is a page in each layer of one group and every group draws from one pool.
 *
 * All figures are exact bytes in 64 bits; numbers too large for that are refused when a model is
 * checked. Memory is never added up over ranks: the rank that holds the fewest blocks rules.
 *
 * Source of the arithmetic: vllm/v1/core/kv_cache_utils.py and kv_cache_interface.py;
 * vllm/distributed/utils.py (stages); vllm/model_executor/layers/mamba/mamba_utils.py (state).
 */
#ifndef PAGEDKV_SIZING_H
#define PAGEDKV_SIZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* How a value of the cache is stored. int8_token_head and fp8_token_head have an fp32 scale for each
 * token and head of K and of V inside the page; nvfp4 has one byte of scale for 16 values; q8_0 and
 * q4_0 one fp16 scale for 32; fp8_ds_mla is for latent caches: fp8 with an fp32 scale for 128 values,
 * then the rotary part in bf16. */
#define PKV_KV_DTYPES(X)                          \
    X(PKV_KV_BF16, "bf16")                        \
    X(PKV_KV_FP16, "fp16")                        \
    X(PKV_KV_FP32, "fp32")                        \
    X(PKV_KV_FP8, "fp8")                          \
    X(PKV_KV_INT8, "int8")                        \
    X(PKV_KV_NVFP4, "nvfp4")                      \
    X(PKV_KV_Q8_0, "q8_0")                        \
    X(PKV_KV_Q4_0, "q4_0")                        \
    X(PKV_KV_FP8_TOKEN_HEAD, "fp8_token_head")    \
    X(PKV_KV_INT8_TOKEN_HEAD, "int8_token_head")  \
    X(PKV_KV_FP8_DS_MLA, "fp8_ds_mla")

/* What a layer keeps. */
#define PKV_KV_KINDS(X)                                                                   \
    X(PKV_KV_FULL, "full")          /* K and V of every position */                       \
    X(PKV_KV_LATENT, "latent")      /* one vector a position for all heads (MLA) */       \
    X(PKV_KV_SLIDING, "sliding")    /* K and V of the last `window` positions */          \
    X(PKV_KV_CHUNKED, "chunked")    /* those since the last multiple of `window` */       \
    X(PKV_KV_STATE, "state")        /* a recurrent state, however long the text */

/* Blocks of state that a request holds in each group of state layers. In all three a block is as long
 * as align needs it; that an engine rounds it up to a kernel's chunk for all is not followed. */
#define PKV_KV_STATE_MODES(X)                                                             \
    X(PKV_KV_STATE_NONE, "none")    /* 1, and one for each speculative token */           \
    X(PKV_KV_STATE_ALIGN, "align")  /* 2, and one for each speculative token */           \
    X(PKV_KV_STATE_ALL, "all")      /* one for every block of positions */

/* Which stages get the layers that are left over when the number of stages does not divide. */
#define PKV_KV_SPLITS(X)                                                                  \
    X(PKV_KV_SPLIT_VLLM, "vllm")      /* back from the last but one, never the last */    \
    X(PKV_KV_SPLIT_SGLANG, "sglang")  /* the last ones */

#define PKV_ENUM(sym, word) sym,
enum pkv_kv_dtype { PKV_KV_DTYPES(PKV_ENUM) PKV_KV_DTYPE_COUNT };
enum pkv_kv_kind { PKV_KV_KINDS(PKV_ENUM) PKV_KV_KIND_COUNT };
enum pkv_kv_state_mode { PKV_KV_STATE_MODES(PKV_ENUM) PKV_KV_STATE_MODE_COUNT };
enum pkv_kv_split { PKV_KV_SPLITS(PKV_ENUM) PKV_KV_SPLIT_COUNT };
#undef PKV_ENUM

const char *pkv_kv_dtype_name(enum pkv_kv_dtype dtype);
const char *pkv_kv_kind_name(enum pkv_kv_kind kind);
const char *pkv_kv_state_mode_name(enum pkv_kv_state_mode mode);
const char *pkv_kv_split_name(enum pkv_kv_split split);
/* Also the names that engines and configs use: bfloat16, half, fp8_e4m3 ... False = no such type. */
bool pkv_kv_dtype_find(const char *word, enum pkv_kv_dtype *out);
/* "bf16, fp16, ..." for a sentence. */
const char *pkv_kv_dtype_words(void);

/* A recurrent state, in values on one rank at TP 1:
 *   convolution  (inner + 2 * num_groups * group_values) * (kernel - 1)
 *   state        num_heads * head_values
 * Mamba-1: inner = heads = width, head_values = d_state. Mamba-2: groups of B and C, head_values =
 * head_dim * d_state. Gated DeltaNet: groups = key heads, inner = value heads * their size.
 * Lightning: no convolution. Where there are groups, each speculative token makes the convolution one
 * position longer. Tensor parallelism has to divide heads, inner and groups, but groups fewer than
 * ranks are copied (an engine may still refuse more than one of them); or heads and, cut_as_one, the
 * convolution's channels. */
struct pkv_kv_state {
    uint32_t inner, num_groups, group_values, kernel;
    uint32_t num_heads, head_values;
    bool cut_as_one;             /* Gated DeltaNet */
};

struct pkv_kv_type {
    enum pkv_kv_kind kind;
    uint32_t num_kv_heads, head_dim_k, head_dim_v;   /* full, sliding, chunked */
    uint32_t window;                                 /* sliding, chunked: positions */
    uint32_t latent_dim, rope_dim;                   /* latent */
    uint32_t index_dim;                              /* latent: of its sparse indexer, 0 = none */
    struct pkv_kv_state state;                       /* state */
};

#define PKV_KV_MAX_TYPES 8u
#define PKV_KV_MAX_LAYERS 1024u
#define PKV_KV_NO_TYPE 255u        /* a layer that stores nothing */
#define PKV_KV_NAME_SIZE 128u

struct pkv_kv_model {
    char name[PKV_KV_NAME_SIZE];
    char note[2048];                         /* what was assumed about it; "" = nothing */
    uint32_t num_layers, num_types;
    uint8_t layers[PKV_KV_MAX_LAYERS];       /* [num_layers] index of its type */
    struct pkv_kv_type types[PKV_KV_MAX_TYPES];
    uint32_t num_attention_heads;            /* 0 = not known: TP is not checked against them */
    uint32_t max_model_len;                  /* positions; 0 = not known */
    uint32_t num_mtp_layers;                 /* that speculative decoding could use */
    enum pkv_kv_dtype dtype;                 /* of the weights, which the cache follows */
    bool fp32_state;                         /* state in fp32, the convolution still as dtype */
    uint64_t num_params;                     /* weights; 0 = not known */
};

/* Find or add a type. Its index, or -1 with PKV_ERR_INPUT when there are too many. */
int pkv_kv_model_add_type(struct pkv_kv_model *model, const struct pkv_kv_type *type,
                          struct pkv_err *err);
/* 0, or -1 with PKV_ERR_INPUT when a size is 0 where it must not be, or beyond all bounds. */
int pkv_kv_model_check(const struct pkv_kv_model *model, struct pkv_err *err);

/* ---- the models and GPUs that are known by name ---- */

struct pkv_kv_model_info {
    const char *name, *hf_id;     /* usual name; Hugging Face id, or "" */
    const char *source;           /* where its sizes were read */
    bool verified;                /* false: a part of it is recalled or inferred */
};
size_t pkv_kv_model_count(void);
const struct pkv_kv_model_info *pkv_kv_model_info(size_t i);
/* By its usual name in lower case with '-' for spaces, or its Hugging Face id; capitals do not
 * matter. false = not known. */
/* "; the nearest is 'name'", or "" when none is near; out [PKV_KV_NEAREST_SIZE]. Returns out. */
#define PKV_KV_NEAREST_SIZE 160u
const char *pkv_kv_model_nearest(const char *name, char *out);
const char *pkv_gpu_nearest(const char *name, char *out);
bool pkv_kv_model_find(const char *name, struct pkv_kv_model *out);
/* The name as it is written on a command line: size PKV_KV_NAME_SIZE. */
void pkv_kv_model_word(const char *name, char *out);

struct pkv_gpu {
    const char *name, *alias;     /* alias: another word for it, or "" */
    uint64_t nvml_bytes;          /* what nvidia-smi shows; 0 = not known */
    uint32_t cuda_gib_hundredths; /* what programs are told, to 0.01 GiB; 0 = not known */
    const char *source;
};
size_t pkv_gpu_count(void);
const struct pkv_gpu *pkv_gpu_at(size_t i);
const struct pkv_gpu *pkv_gpu_find(const char *name);   /* as a model's name; NULL = not known */
/* The total that a share of memory is taken of: what programs are told, else what nvidia-smi shows,
 * which is 0.5 to 0.6 GiB more. Rounded to the hundredths that are known. */
uint64_t pkv_gpu_total_bytes(const struct pkv_gpu *gpu);

/* ---- a model laid over ranks ---- */

#define PKV_KV_MAX_STAGES 64u
#define PKV_KV_MAX_GROUPS 128u
#define PKV_KV_MAX_RANKS 256u

struct pkv_kv_config {
    enum pkv_kv_dtype dtype;
    bool fp32_state;
    uint32_t block_size;             /* tokens asked for; state raises it where pages must be equal */
    uint32_t tp, dcp;                /* tensor and decode context parallel, 1 = none */
    uint32_t num_stages;             /* pipeline */
    uint32_t stage_layers[PKV_KV_MAX_STAGES];   /* [num_stages]; adds up to the model's layers */
    uint32_t num_draft_layers;       /* of a draft head or MTP, on the last stage */
    uint32_t num_speculative_tokens;
    enum pkv_kv_state_mode state_mode;
    bool no_windows;                 /* every windowed layer is charged at full length */
    uint64_t in_flight_tokens;       /* scheduled and not yet out of a window: batched tokens, twice that
                                        with asynchronous scheduling */
};
/* How an engine runs the model, as far as blocks hang on it. */
struct pkv_kv_engine {
    uint64_t max_num_batched_tokens;   /* 0 = unlimited */
    bool async_scheduling, prefix_cache;
    uint32_t num_draft_layers, num_speculative_tokens;
};
/* Draft layers and tokens, the state mode and what is in flight, as they follow from it: one batch, two
 * with asynchronous scheduling. */
void pkv_kv_config_engine(struct pkv_kv_config *config, const struct pkv_kv_engine *engine);
/* Cut layers into stages. 0, or -1 when there are more stages than layers. */
int pkv_kv_split(enum pkv_kv_split split, uint32_t num_layers, uint32_t num_stages,
                 uint32_t *out_layers, struct pkv_err *err);

/* Layers of one type that share a block table. */
struct pkv_kv_group {
    uint32_t type;                   /* of its first layer */
    enum pkv_kv_kind kind;           /* as it is charged */
    uint32_t window;                 /* sliding, chunked */
    uint32_t block_size;             /* tokens */
    uint32_t num_layers;             /* without padding */
};
struct pkv_kv_stage {
    uint32_t first_layer, num_layers;
    uint64_t position_bytes;         /* all layers of one TP rank of this stage, for one position */
    uint64_t growing_bytes;          /* of these, layers of full attention */
    uint64_t state_bytes;            /* recurrent state of one sequence, not padded */
    uint32_t block_layers;           /* pages in a block on this stage */
    uint64_t block_bytes;            /* 0 = the stage stores nothing */
};
struct pkv_kv_plan {
    struct pkv_kv_config config;
    uint32_t num_stages, num_groups, group_size;   /* group_size: layers of a group with padding */
    struct pkv_kv_stage stages[PKV_KV_MAX_STAGES];
    struct pkv_kv_group groups[PKV_KV_MAX_GROUPS];
    uint64_t type_bytes[PKV_KV_MAX_TYPES];    /* one layer, one position, one rank */
    uint64_t state_bytes[PKV_KV_MAX_TYPES];   /* one layer, one sequence, one rank */
    uint64_t page_bytes;             /* one layer, one block; 0 = layers of one group differ */
    uint64_t state_padding_bytes;    /* of a page of state */
    uint64_t position_bytes, growing_bytes, state_total_bytes;   /* all stages, one TP rank */
};
/* Refused with PKV_ERR_INPUT: a TP that the engine would refuse, DCP without replicated heads, a
 * data type that does not fit the heads, pages that cannot be made equal.
 *   cost  O(layers) */
int pkv_kv_plan_make(const struct pkv_kv_model *model, const struct pkv_kv_config *config,
                     struct pkv_kv_plan *out, struct pkv_err *err);

/* How values of the type are stored: beside a sparse indexer fp8 is fp8_ds_mla.
 *   source  vllm/model_executor/models/config.py, DeepseekV32ForCausalLM */
enum pkv_kv_dtype pkv_kv_stored_dtype(const struct pkv_kv_model *model, enum pkv_kv_dtype dtype);

/* What one sequence of so many positions stores on all stages of one TP rank, windows cut, of DCP its
 * share of the positions rounded up, without state and without rounding to blocks; UINT64_MAX = 2^64 or
 * more. stage: one of them, or PKV_KV_ALL_STAGES. */
#define PKV_KV_ALL_STAGES UINT32_MAX
uint64_t pkv_kv_sequence_bytes(const struct pkv_kv_model *model, const struct pkv_kv_plan *plan,
                               uint32_t stage, uint64_t num_positions);
/* Blocks that one request of so many positions may come to hold, over all groups. */
uint64_t pkv_kv_request_blocks(const struct pkv_kv_plan *plan, uint64_t num_positions);
/* The longest request for which so many blocks are enough, at most `limit`; 0 = none. */
uint64_t pkv_kv_longest_request(const struct pkv_kv_plan *plan, uint64_t num_blocks,
                                uint64_t limit);
/* Positions in a block of the group with the smallest one, over all of DCP. */
uint64_t pkv_kv_smallest_block(const struct pkv_kv_plan *plan);
/* The "KV cache size" in tokens that engines print. Old rule: blocks // groups x smallest block. New
 * rule: floor(blocks x max_model_len / blocks of one request of max_model_len). */
uint64_t pkv_kv_tokens_old_rule(const struct pkv_kv_plan *plan, uint64_t num_blocks);
uint64_t pkv_kv_tokens_new_rule(const struct pkv_kv_plan *plan, uint64_t num_blocks,
                                uint64_t max_model_len);

/* One rank, or the TP ranks of a stage that have equal memory. */
struct pkv_kv_rank {
    uint32_t stage, tp_rank;
    uint64_t pool_bytes, block_bytes;
    uint64_t num_blocks;             /* that it could hold */
    uint64_t stranded_bytes;         /* what it cannot use, as all ranks hold the same blocks */
};
struct pkv_kv_fit {
    uint64_t num_blocks;             /* physical, the smallest rank's */
    uint32_t num_ranks, limiting_rank;
    bool alike;                      /* a row stands for all TP ranks of its stage */
    struct pkv_kv_rank ranks[PKV_KV_MAX_RANKS];
};
/* pools: one for all ranks, one for each stage, or one for each rank (stage by stage). 0, or -1 with
 * PKV_ERR_INPUT on another number of them, or when no rank stores anything.
 * For every rank: num_blocks x block_bytes + stranded_bytes = pool_bytes. */
int pkv_kv_fit_make(const struct pkv_kv_plan *plan, const uint64_t *pools, size_t num_pools,
                    struct pkv_kv_fit *out, struct pkv_err *err);
/* As many requests of so many positions as their bytes alone allow, state with it, on every rank. */
uint64_t pkv_kv_payload_requests(const struct pkv_kv_model *model, const struct pkv_kv_plan *plan,
                                 const struct pkv_kv_fit *fit, uint64_t num_positions);

/* What is left of a GPU's memory for the cache: total x share, less what else takes room. */
struct pkv_kv_budget {
    uint64_t total_bytes;
    uint32_t share_millionths;       /* the engine's gpu_memory_utilization, 920000 = 0.92 */
    uint64_t weights_bytes, activation_bytes, other_bytes, graphs_bytes;   /* on one rank */
};
/* Cut to whole bytes. 0, or -1 with PKV_ERR_INPUT when nothing is left or the share is above 1. */
int pkv_kv_budget_pool(const struct pkv_kv_budget *budget, uint64_t *out, struct pkv_err *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
