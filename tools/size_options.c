/*
 * size_options.c - the options of `pagedkv size` made into a model, its ranks and its memory.
 */
#include "size_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define DEFAULT_UTILISATION "0.92"
#define DEFAULT_BATCHED_TOKENS 8192
#define MAX_LENGTH (UINT64_C(1) << 40)
#define MAX_NUMBER (1u << 20)

static int fail(struct pkv_err *err, const char *option, const char *text, const char *why)
{
    return pkv_fail_at(err, option, 0, 0, "'%.80s' %s", text, why);
}

/* Numbers parted by commas, read by `parse`. */
static int read_list(const char *option, const char *text, size_t room,
                     int (*parse)(const char *, size_t, uint64_t *, const char **), uint64_t *out,
                     size_t *out_num, struct pkv_err *err)
{
    const char *why = "";
    for (*out_num = 0;; text++) {
        size_t length = strcspn(text, ",");
        if (*out_num == room)
            return pkv_fail_at(err, option, 0, 0, "more than %zu values", room);
        if (parse(text, length, &out[(*out_num)++], &why) < 0)
            return pkv_fail_at(err, option, 0, 0, "'%.*s' %s", (int)length, text, why);
        text += length;
        if (*text == '\0')
            return 0;
    }
}

static int parse_length(const char *text, size_t length, uint64_t *out, const char **why)
{
    return pkv_parse_u64(text, length, MAX_LENGTH, out, why);
}

static int check_number(const char *option, uint64_t n, struct pkv_err *err)
{
    return n <= MAX_NUMBER ? 0 : pkv_fail_at(err, option, 0, 0, "is not within 1 .. %u", MAX_NUMBER);
}

static int read_bytes(const char *option, const char *text, uint64_t *out, struct pkv_err *err)
{
    const char *why = "";
    if (text != NULL && pkv_parse_bytes(text, strlen(text), out, &why) < 0)
        return fail(err, option, text, why);
    return 0;
}

/* ---- the model ---- */

static bool has_dimensions(const struct size_options *o)
{
    return o->layers > 0 || o->kv_heads > 0 || o->head_dim > 0 || o->latent != NULL ||
           o->heads > 0 || o->head_dim_v > 0 || o->window > 0;
}

static int read_latent(const struct size_options *o, struct pkv_kv_type *type, struct pkv_err *err)
{
    uint64_t parts[2] = {0};
    size_t num;
    if (read_list("--latent", o->latent, 2, parse_length, parts, &num, err) < 0 ||
        check_number("--latent", parts[0], err) < 0 || check_number("--latent", parts[1], err) < 0)
        return -1;
    type->kind = PKV_KV_LATENT;
    type->latent_dim = (uint32_t)parts[0];
    type->rope_dim = (uint32_t)parts[1];
    return 0;
}

static int read_heads(const struct size_options *o, struct pkv_kv_type *type, struct pkv_err *err)
{
    if (o->kv_heads == 0 || o->head_dim == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "%s is missing; a model given by its dimensions has "
                        "--layers, --kv-heads and --head-dim",
                        o->kv_heads == 0 ? "--kv-heads" : "--head-dim");
    if (check_number("--kv-heads", o->kv_heads, err) < 0 ||
        check_number("--head-dim", o->head_dim, err) < 0 ||
        check_number("--head-dim-v", o->head_dim_v, err) < 0 ||
        check_number("--window", o->window, err) < 0)
        return -1;
    type->kind = o->window > 0 ? PKV_KV_SLIDING : PKV_KV_FULL;
    type->window = (uint32_t)o->window;
    type->num_kv_heads = (uint32_t)o->kv_heads;
    type->head_dim_k = (uint32_t)o->head_dim;
    type->head_dim_v = o->head_dim_v > 0 ? (uint32_t)o->head_dim_v : type->head_dim_k;
    return 0;
}

static int make_model(const struct size_options *o, struct pkv_kv_model *out, struct pkv_err *err)
{
    struct pkv_kv_type type = {.kind = PKV_KV_FULL};
    memset(out, 0, sizeof *out);
    strcpy(out->name, "the dimensions given");
    if (o->layers == 0 || o->layers > PKV_KV_MAX_LAYERS)
        return pkv_fail(err, PKV_ERR_INPUT, "--layers %s", o->layers == 0 ? "is missing"
                                                                       : "is above 1024");
    if (o->latent != NULL ? read_latent(o, &type, err) < 0 : read_heads(o, &type, err) < 0)
        return -1;
    if (check_number("--heads", o->heads, err) < 0)
        return -1;
    out->num_layers = (uint32_t)o->layers;
    out->num_attention_heads = (uint32_t)o->heads;
    out->num_types = 1;
    out->types[0] = type;
    return 0;
}

/* An indexer in the last layers; in all of them when their number is not given. */
static int add_indexer(const struct size_options *o, struct pkv_kv_model *model,
                       struct pkv_err *err)
{
    uint32_t num = o->indexer_layers > 0 ? (uint32_t)o->indexer_layers : model->num_layers;
    if (o->indexer == 0)
        return 0;
    if (o->indexer > MAX_NUMBER || o->indexer_layers > model->num_layers)
        return pkv_fail(err, PKV_ERR_INPUT, "--indexer or --indexer-layers is out of range");
    for (uint32_t i = model->num_layers - num; i < model->num_layers; i++) {
        struct pkv_kv_type type;
        int index;
        if (model->layers[i] == PKV_KV_NO_TYPE)
            continue;
        type = model->types[model->layers[i]];
        if (type.kind != PKV_KV_LATENT)
            return pkv_fail(err, PKV_ERR_INPUT, "--indexer is for latent caches (MLA)");
        type.index_dim = (uint32_t)o->indexer;
        index = pkv_kv_model_add_type(model, &type, err);
        if (index < 0)
            return -1;
        model->layers[i] = (uint8_t)index;
    }
    return 0;
}

int size_read_model(const struct size_options *o, const char *word,
                    const struct pkv_startup_log *log, struct pkv_kv_model *out, bool *out_known,
                    struct pkv_err *err)
{
    int result = 0;
    *out_known = true;
    if (word != NULL && has_dimensions(o))
        return pkv_fail(err, PKV_ERR_INPUT, "a model's name and its dimensions are two ways of saying "
                        "the same; give one of them");
    if (word != NULL)
        result = pkv_kv_model_open(word, out, err);
    else if (has_dimensions(o))
        result = make_model(o, out, err);
    else if (log != NULL)
        *out_known = pkv_kv_model_find(log->model, out);
    else
        return pkv_fail(err, PKV_ERR_INPUT, "which model? Give a name (`pagedkv models`), a "
                        "config.json, or --layers, --kv-heads and --head-dim");
    return result == 0 && *out_known ? add_indexer(o, out, err) : result;
}

/* ---- ranks ---- */

static int read_dtypes(const struct size_options *o, const struct pkv_kv_model *model,
                       const struct pkv_startup_log *log, struct pkv_kv_config *out,
                       struct pkv_err *err)
{
    const char *word = o->kv_dtype != NULL ? o->kv_dtype
                       : log != NULL && log->kv_dtype[0] ? log->kv_dtype : "auto";
    enum pkv_kv_dtype state;
    out->dtype = model->dtype;
    out->fp32_state = model->fp32_state;
    if (strcmp(word, "auto") == 0 && log != NULL && log->dtype[0])
        pkv_kv_dtype_find(log->dtype, &out->dtype);
    else if (strcmp(word, "auto") != 0 && !pkv_kv_dtype_find(word, &out->dtype))
        return pkv_fail_at(err, o->kv_dtype != NULL ? "--kv-dtype" : o->log,
                           o->kv_dtype != NULL ? 0 : log->kv_dtype_line,
                           o->kv_dtype != NULL ? 0 : log->kv_dtype_column,
                           "%s'%.40s' is not known; known: auto, %s",
                           o->kv_dtype != NULL ? "" : "kv_cache_dtype ", word,
                           pkv_kv_dtype_words());
    if (o->state_dtype == NULL)
        return 0;
    if (!pkv_kv_dtype_find(o->state_dtype, &state) || (state != PKV_KV_FP32 &&
        state != PKV_KV_BF16 && state != PKV_KV_FP16))
        return fail(err, "--state-dtype", o->state_dtype, "is none of bf16, fp16, fp32");
    out->fp32_state = state == PKV_KV_FP32;
    return 0;
}

static int read_state_mode(const struct size_options *o, struct pkv_kv_config *out,
                           struct pkv_err *err)
{
    if (o->state_mode == NULL)
        return 0;
    for (int i = 0; i < PKV_KV_STATE_MODE_COUNT; i++)
        if (strcmp(o->state_mode, pkv_kv_state_mode_name((enum pkv_kv_state_mode)i)) == 0) {
            out->state_mode = (enum pkv_kv_state_mode)i;
            return 0;
        }
    return fail(err, "--state-mode", o->state_mode, "is none of none, align, all");
}

static int read_stage_list(const struct size_options *o, struct pkv_kv_config *out,
                           struct pkv_err *err)
{
    uint64_t layers[PKV_KV_MAX_STAGES];
    size_t num;
    if (read_list("--pp-layers", o->pp_layers, PKV_KV_MAX_STAGES, parse_length, layers, &num,
                  err) < 0)
        return -1;
    if (o->pp > 0 && o->pp != num)
        return pkv_fail_at(err, "--pp-layers", 0, 0, "%zu stage%s, and --pp says %llu", num,
                           num == 1 ? "" : "s", (unsigned long long)o->pp);
    out->num_stages = (uint32_t)num;
    for (size_t i = 0; i < num; i++) {
        if (layers[i] > PKV_KV_MAX_LAYERS)
            return pkv_fail_at(err, "--pp-layers", 0, 0, "more than %u layers", PKV_KV_MAX_LAYERS);
        out->stage_layers[i] = (uint32_t)layers[i];
    }
    return 0;
}

static void put_in_log(const struct size_options *o, uint64_t line, struct pkv_err *err)
{
    char text[sizeof err->text];
    if (line == 0 || err->path[0] != '\0' || err->code != PKV_ERR_INPUT)
        return;
    memcpy(text, err->text, sizeof text);
    pkv_fail_at(err, o->log, line, 0, "%s", text);
}

static int read_stages(const struct size_options *o, const struct pkv_kv_model *model,
                       const struct pkv_startup_log *log, struct pkv_kv_config *out,
                       struct pkv_err *err)
{
    uint64_t pp = o->pp > 0 ? o->pp : log != NULL && log->pp > 0 ? log->pp : 1;
    bool sglang = log != NULL && log->is_sglang;
    if (o->pp_layers != NULL)
        return read_stage_list(o, out, err);
    if (o->pp_split != NULL) {
        sglang = strcmp(o->pp_split, "sglang") == 0;
        if (!sglang && strcmp(o->pp_split, "vllm") != 0)
            return fail(err, "--pp-split", o->pp_split, "is neither vllm nor sglang");
    }
    if (check_number("--pp", pp, err) < 0)
        return -1;
    out->num_stages = (uint32_t)pp;
    if (pkv_kv_split(sglang ? PKV_KV_SPLIT_SGLANG : PKV_KV_SPLIT_VLLM, model->num_layers,
                     (uint32_t)pp, out->stage_layers, err) == 0)
        return 0;
    if (log != NULL && o->pp == 0)
        put_in_log(o, log->pp_line, err);
    return -1;
}

static uint32_t pick(uint64_t option, uint32_t logged, uint32_t fallback)
{
    return option > 0 ? (uint32_t)option : logged > 0 ? logged : fallback;
}

static int read_draft(const struct size_options *o, const struct pkv_kv_model *model,
                      struct pkv_kv_engine *out, struct pkv_err *err)
{
    if (o->mtp && o->draft_layers > 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--mtp and --draft-layers exclude each other");
    if (o->mtp && model->num_mtp_layers == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--mtp: this model has no such layers; a draft head is "
                        "given by --draft-layers");
    out->num_draft_layers = o->mtp ? model->num_mtp_layers : (uint32_t)o->draft_layers;
    return 0;
}

int size_read_config(const struct size_options *o, const struct pkv_kv_model *model,
                     const struct pkv_startup_log *log, struct pkv_kv_config *out,
                     struct pkv_err *err)
{
    static const struct pkv_startup_log none = {.num_gpu_blocks = 0};
    const struct pkv_startup_log *l = log != NULL ? log : &none;
    struct pkv_kv_engine engine = {
        .max_num_batched_tokens = o->max_num_batched_tokens > 0 ? o->max_num_batched_tokens
                                  : l->max_num_batched_tokens > 0 ? l->max_num_batched_tokens
                                                                  : DEFAULT_BATCHED_TOKENS,
        .async_scheduling = o->async_scheduling || l->async_scheduling,
        .prefix_cache = !o->no_prefix_cache && !l->prefix_cache_off,
        .num_speculative_tokens = pick(o->speculative_tokens, l->num_speculative_tokens, 0),
    };
    memset(out, 0, sizeof *out);
    if (check_number("--tp", o->tp, err) < 0 || check_number("--dcp", o->dcp, err) < 0 ||
        check_number("--block-size", o->block_size, err) < 0 ||
        check_number("--draft-layers", o->draft_layers, err) < 0 ||
        check_number("--speculative-tokens", o->speculative_tokens, err) < 0 ||
        read_dtypes(o, model, log, out, err) < 0 || read_stages(o, model, log, out, err) < 0 ||
        read_draft(o, model, &engine, err) < 0)
        return -1;
    if (engine.max_num_batched_tokens > MAX_LENGTH)
        return pkv_fail_at(err, "--max-num-batched-tokens", 0, 0, "is out of range");
    pkv_kv_config_engine(out, &engine);
    out->tp = pick(o->tp, l->tp, 1);
    out->dcp = pick(o->dcp, l->dcp, 1);
    out->block_size = pick(o->block_size, l->block_size, l->is_sglang ? 1 : 16);
    out->no_windows = o->no_hybrid_manager;
    return read_state_mode(o, out, err);
}

/* ---- a log ---- */

static void set_u32(uint64_t option, uint32_t *out)
{
    if (option > 0)
        *out = option < UINT32_MAX ? (uint32_t)option : UINT32_MAX;
}

void size_place_ranks(const struct size_options *o, const struct pkv_startup_log *log,
                      struct pkv_err *err)
{
    if (o->tp > 0)
        return;
    put_in_log(o, log->dcp > 1 && o->dcp == 0 ? log->dcp_line : log->tp_line, err);
}

void size_stand_above(const struct size_options *o, struct pkv_startup_log *log)
{
    log->ranks_differ = o->ranks_differ;
    log->prefix_cache_off |= o->no_prefix_cache;
    log->async_scheduling |= o->async_scheduling;
    if (o->max_num_batched_tokens > 0)
        log->max_num_batched_tokens = o->max_num_batched_tokens;
    set_u32(o->speculative_tokens, &log->num_speculative_tokens);
    set_u32(o->block_size, &log->block_size);
    set_u32(o->tp, &log->tp);
    set_u32(o->pp, &log->pp);
    set_u32(o->dcp, &log->dcp);
}

/* ---- memory ---- */

static int read_total(const struct size_options *o, struct pkv_size_budget *b, struct pkv_err *err)
{
    const struct pkv_gpu *gpu = pkv_gpu_find(o->gpu);
    char hint[PKV_KV_NEAREST_SIZE];
    const char *why = "";
    if (gpu != NULL) {
        b->terms.total_bytes = pkv_gpu_total_bytes(gpu);
        b->total_source = gpu->cuda_gib_hundredths > 0
                              ? "what programs are told of this GPU, to 0.01 GiB [estimate]"
                              : "what nvidia-smi shows of this GPU; programs are told about 0.5 GiB "
                                "less [estimate]";
        return 0;
    }
    b->total_source = "given";
    if (pkv_parse_bytes(o->gpu, strlen(o->gpu), &b->terms.total_bytes, &why) < 0)
        return o->gpu[strspn(o->gpu, "0123456789.")] == '\0'
                   ? fail(err, "--gpu", o->gpu, why)
                   : pkv_fail_at(err, "--gpu", 0, 0, "'%.80s' is neither a GPU that `pagedkv gpus` lists "
                                 "nor a number of bytes%s", o->gpu, pkv_gpu_nearest(o->gpu, hint));
    return 0;
}

static int read_weights(const struct size_options *o, const struct pkv_kv_model *model,
                        const struct pkv_kv_config *config, struct pkv_size_budget *b,
                        struct pkv_err *err)
{
    uint64_t ranks = (uint64_t)config->tp * config->num_stages;
    if (o->weights != NULL)
        return read_bytes("--weights", o->weights, &b->terms.weights_bytes, err);
    if (model->num_params == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--weights is missing: how large this model's weights are "
                        "on a rank is not known");
    b->terms.weights_bytes = (model->num_params * 2 + ranks - 1) / ranks;
    b->weights_estimated = true;
    return 0;
}

static int read_budget(const struct size_options *o, const struct pkv_kv_model *model,
                       const struct pkv_kv_config *config, struct pkv_size_budget *b,
                       struct pkv_err *err)
{
    const char *share = o->utilisation != NULL ? o->utilisation : DEFAULT_UTILISATION;
    const char *why = "";
    int64_t millionths;
    if (pkv_parse_scaled(share, strlen(share), 1000000, &millionths, &why) < 0)
        return fail(err, "--utilisation", share, why);
    if (millionths <= 0 || millionths > 1000000)
        return fail(err, "--utilisation", share, "is not above 0 and at most 1");
    b->terms.share_millionths = (uint32_t)millionths;
    b->activation_given = o->activation != NULL;
    b->other_given = o->other != NULL;
    b->graphs_given = o->graphs != NULL;
    if (read_total(o, b, err) < 0 || read_weights(o, model, config, b, err) < 0 ||
        read_bytes("--activation", o->activation, &b->terms.activation_bytes, err) < 0 ||
        read_bytes("--other", o->other, &b->terms.other_bytes, err) < 0)
        return -1;
    return read_bytes("--graphs", o->graphs, &b->terms.graphs_bytes, err);
}

int size_read_pools(const struct size_options *o, const struct pkv_kv_model *model,
                    const struct pkv_kv_config *config, struct size_pools *out,
                    struct pkv_size_budget *out_budget, struct pkv_err *err)
{
    bool has_terms = o->utilisation != NULL || o->weights != NULL || o->activation != NULL ||
                     o->other != NULL || o->graphs != NULL;
    int ways = (o->kv_budget != NULL) + (o->gpu != NULL) + (o->num_gpu_blocks > 0);
    out->num = 0;
    if (ways > 1)
        return pkv_fail(err, PKV_ERR_INPUT, "--kv-budget, --gpu and --num-gpu-blocks exclude each "
                        "other; give one of them");
    if (has_terms && o->gpu == NULL)
        return pkv_fail(err, PKV_ERR_INPUT, "--utilisation, --weights, --activation, --other and "
                        "--graphs belong to --gpu");
    if (o->kv_budget != NULL)
        return read_list("--kv-budget", o->kv_budget, PKV_KV_MAX_RANKS, pkv_parse_bytes, out->bytes,
                         &out->num, err);
    if (o->gpu == NULL)
        return 0;
    if (read_budget(o, model, config, out_budget, err) < 0)
        return -1;
    out->num = 1;
    return pkv_kv_budget_pool(&out_budget->terms, &out->bytes[0], err);
}

int size_check_log(const struct size_options *o, struct pkv_err *err)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {
        {"--kv-budget", o->kv_budget != NULL}, {"--num-gpu-blocks", o->num_gpu_blocks > 0},
        {"--gpu", o->gpu != NULL}, {"--utilisation", o->utilisation != NULL},
        {"--weights", o->weights != NULL}, {"--activation", o->activation != NULL},
        {"--other", o->other != NULL}, {"--graphs", o->graphs != NULL},
        {"--prompt", o->prompt > 0}, {"--output", o->output > 0}, {"--lengths", o->lengths != NULL},
        {"--max-model-len", o->max_model_len > 0},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (o->log != NULL && others[i].given)
            return pkv_fail(err, PKV_ERR_INPUT, "--log and %s exclude each other: the log says how large "
                            "the pool and its requests are", others[i].name);
    if (o->ranks_differ && o->log == NULL)
        return pkv_fail(err, PKV_ERR_INPUT, "--ranks-differ goes with --log");
    return 0;
}

int size_read_lengths(const struct size_options *o, struct pkv_size_question *out,
                      struct pkv_err *err)
{
    if (o->prompt > MAX_LENGTH || o->output > MAX_LENGTH || o->max_model_len > MAX_LENGTH)
        return pkv_fail(err, PKV_ERR_INPUT, "--prompt, --output and --max-model-len are at most 2^40");
    if (o->output > 0 && o->prompt == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--output goes with --prompt");
    out->prompt = o->prompt;
    out->output = o->output;
    out->max_model_len = o->max_model_len;
    if (o->lengths == NULL)
        return 0;
    return read_list("--lengths", o->lengths, PKV_SIZE_MAX_LENGTHS, parse_length, out->lengths,
                     &out->num_lengths, err);
}
