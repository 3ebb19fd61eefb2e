/*
 * size_options.h - what `pagedkv size` was asked, from its command line.
 */
#ifndef PKV_TOOLS_SIZE_OPTIONS_H
#define PKV_TOOLS_SIZE_OPTIONS_H

#include "cli.h"
#include "pagedkv/report.h"
#include "pagedkv/sizing.h"

/* Values of the options; 0, NULL and false = not given. */
struct size_options {
    const char *kv_budget, *gpu, *utilisation;
    const char *weights, *activation, *other, *graphs;
    const char *kv_dtype, *state_dtype, *state_mode;
    const char *pp_layers, *pp_split;
    const char *lengths, *latent;
    const char *log;
    uint64_t num_gpu_blocks, block_size, tp, pp, dcp, draft_layers, speculative_tokens;
    uint64_t max_model_len, max_num_batched_tokens, prompt, output;
    uint64_t layers, heads, kv_heads, head_dim, head_dim_v, window, indexer, indexer_layers;
    bool mtp, async_scheduling, no_prefix_cache, no_hybrid_manager, ranks_differ, json;
};

struct size_pools {
    uint64_t bytes[PKV_KV_MAX_RANKS];
    size_t num;
};

/* The model: by name or path, of the log, or of the dimensions given. word NULL = no argument.
 *   returns  0 with *out_known false when a log names a model that is not known */
int size_read_model(const struct size_options *o, const char *word,
                    const struct pkv_startup_log *log, struct pkv_kv_model *out, bool *out_known,
                    struct pkv_err *err);
/* How it is laid over ranks; log NULL = none. What the options say stands above the log. */
int size_read_config(const struct size_options *o, const struct pkv_kv_model *model,
                     const struct pkv_startup_log *log, struct pkv_kv_config *out,
                     struct pkv_err *err);
/* The memory: a list of bytes, or a budget of one, whose terms go to *out_budget. */
int size_read_pools(const struct size_options *o, const struct pkv_kv_model *model,
                    const struct pkv_kv_config *config, struct size_pools *out,
                    struct pkv_size_budget *out_budget, struct pkv_err *err);
/* What the options say of the engine, said in its log. */
/* An error about ranks that the log told of, and no option, is one of the log: its place is there. */
void size_place_ranks(const struct size_options *o, const struct pkv_startup_log *log, struct pkv_err *err);
void size_stand_above(const struct size_options *o, struct pkv_startup_log *log);
/* What says which pool or length is asked for has no place beside a log. */
int size_check_log(const struct size_options *o, struct pkv_err *err);
int size_read_lengths(const struct size_options *o, struct pkv_size_question *out,
                      struct pkv_err *err);

#endif
