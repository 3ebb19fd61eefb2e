/*
 * cmd_size.c - `pagedkv size`: what a position of KV costs, and what fits into memory.
 */
#include <string.h>

#include "commands.h"
#include "size_options.h"
#include "terminal.h"

#define AT(field) offsetof(struct size_options, field)
#define WORD(word, argument, left_out, field, text)                                        \
    {.name = word, .arg = argument, .fallback = left_out, .help = text, .kind = CLI_WORD,  \
     .offset = AT(field)}
#define COUNT(word, left_out, field, text)                                                 \
    {.name = word, .arg = "N", .fallback = left_out, .help = text, .kind = CLI_COUNT,      \
     .offset = AT(field)}
#define SWITCH(word, field, text)                                                          \
    {.name = word, .help = text, .kind = CLI_SWITCH, .offset = AT(field)}

static const struct cli_option options[] = {
    WORD("kv-budget", "BYTES,...", "none", kv_budget,
         "memory of the pool, like 40GiB or 40GB: one for all ranks, one for each pipeline stage, or "
         "one for each rank, stage by stage; the rank with the fewest blocks rules"),
    COUNT("num-gpu-blocks", NULL, num_gpu_blocks,
          "blocks of the pool instead of bytes, the null block included"),
    WORD("gpu", "NAME", NULL, gpu,
         "take the pool from a GPU's memory, by name (`pagedkv gpus`) or in bytes"),
    WORD("utilisation", "X", "0.92", utilisation, "share of the GPU's memory that may be used"),
    WORD("weights", "BYTES", "2 bytes a parameter, where known", weights, "weights on one rank"),
    WORD("activation", "BYTES", "0", activation, "peak of activation on one rank"),
    WORD("other", "BYTES", "0", other, "what else takes memory on one rank"),
    WORD("graphs", "BYTES", "0", graphs, "captured graphs on one rank"),
    WORD("kv-dtype", "TYPE", "that of the weights", kv_dtype,
         "bf16, fp16, fp32, fp8, int8, nvfp4, q8_0, q4_0, fp8_token_head, int8_token_head or "
         "fp8_ds_mla"),
    WORD("state-dtype", "TYPE", "that of the config", state_dtype,
         "of recurrent state: bf16, fp16 or fp32; its convolution is as the weights"),
    COUNT("block-size", "16", block_size, "tokens in a block"),
    COUNT("tp", "1", tp, "tensor parallel ranks"),
    COUNT("pp", "1", pp, "pipeline stages"),
    WORD("pp-layers", "N,...", "even", pp_layers, "layers of each stage, like 56,8"),
    WORD("pp-split", "ENGINE", "vllm", pp_split,
         "whose way of dealing out layers that are left over: vllm or sglang"),
    COUNT("dcp", "1", dcp, "decode context parallel ranks"),
    COUNT("draft-layers", "0", draft_layers, "layers of a draft head, as the model's last one"),
    SWITCH("mtp", mtp, "count the model's own layers for multi-token prediction"),
    COUNT("speculative-tokens", "0", speculative_tokens, "drafted tokens a step"),
    COUNT("max-model-len", "the model's", max_model_len, "longest request"),
    COUNT("max-num-batched-tokens", "8192", max_num_batched_tokens,
          "tokens of one step, which a window holds beside itself"),
    SWITCH("async-scheduling", async_scheduling, "two steps are in flight"),
    SWITCH("no-prefix-cache", no_prefix_cache, "one block of state a request, not two"),
    WORD("state-mode", "MODE", "align, or none without prefix cache", state_mode,
         "blocks of recurrent state: none, align or all"),
    SWITCH("no-hybrid-manager", no_hybrid_manager, "charge windows at full length"),
    COUNT("prompt", NULL, prompt, "how many requests of such a prompt fit?"),
    COUNT("output", "0", output, "tokens that each of them generates"),
    WORD("lengths", "N,...", "4096,32768,131072, as far as they fit", lengths,
         "positions to say bytes and blocks for"),
    COUNT("layers", NULL, layers, "a model by its dimensions: layers,"),
    COUNT("kv-heads", NULL, kv_heads, "KV heads,"),
    COUNT("head-dim", NULL, head_dim, "values of a head,"),
    COUNT("head-dim-v", "as --head-dim", head_dim_v, "values of a head of V,"),
    COUNT("heads", "not checked", heads, "attention heads, which TP has to divide,"),
    COUNT("window", "none", window, "positions of a sliding window in all layers,"),
    WORD("latent", "N,N", NULL, latent, "or a latent cache: values of the vector and its rotary part"),
    COUNT("indexer", "none", indexer, "values of a sparse indexer's key beside a latent cache"),
    COUNT("indexer-layers", "all", indexer_layers, "layers that have an indexer, the last ones"),
    WORD("log", "FILE", NULL, log, "hold the start-up log of vLLM or SGLang against the model"),
    SWITCH("ranks-differ", ranks_differ,
           "another rank has less memory than the log prints, so fewer blocks agree as well"),
    SWITCH("json", json, "print JSON"),
};

static enum cli_exit print(char *text, struct pkv_err *err)
{
    if (text == NULL)
        return cli_report(err);
    enum cli_exit status = cli_write(text, strlen(text));
    pkv_report_free(text);
    return status;
}

static enum cli_exit hold_log(const struct size_options *o, const char *word)
{
    struct pkv_report_style style = cli_style();
    struct pkv_startup_log log;
    struct pkv_kv_model model;
    struct pkv_kv_config config;
    struct pkv_err err = {0};
    enum pkv_log_answer says = PKV_LOG_AGREES;
    bool known;
    if (size_check_log(o, &err) < 0 || pkv_startup_log_read(o->log, &log, &err) < 0)
        return cli_report(&err);
    size_stand_above(o, &log);
    if (size_read_model(o, word, &log, &model, &known, &err) < 0 ||
        (known && size_read_config(o, &model, &log, &config, &err) < 0))
        return cli_report(&err);
    char *text = pkv_size_log(&log, known ? &model : NULL, known ? &config : NULL, &style, o->json,
                              &says, &err);
    if (text == NULL && known)
        size_place_ranks(o, &log, &err);
    enum cli_exit status = print(text, &err);
    return status == CLI_DONE && says != PKV_LOG_AGREES ? CLI_DIFFERS : status;
}

static enum cli_exit answer(const struct size_options *o, const char *word)
{
    struct pkv_report_style style = cli_style();
    struct pkv_size_question question = {.has_null_block = true};
    struct pkv_size_budget budget = {.total_source = ""};
    struct size_pools pools;
    struct pkv_err err = {0};
    bool known;
    if (size_check_log(o, &err) < 0 || size_read_model(o, word, NULL, &question.model, &known, &err) < 0 ||
        size_read_config(o, &question.model, NULL, &question.config, &err) < 0 ||
        size_read_pools(o, &question.model, &question.config, &pools, &budget, &err) < 0 ||
        size_read_lengths(o, &question, &err) < 0)
        return cli_report(&err);
    question.pools = pools.bytes;
    question.num_pools = pools.num;
    question.num_gpu_blocks = o->num_gpu_blocks;
    question.budget = o->gpu != NULL ? &budget : NULL;
    return print(o->json ? pkv_size_json(&question, &err)
                         : pkv_size_text(&question, &style, &err), &err);
}

static enum cli_exit run(int argc, char **argv)
{
    struct size_options values = {0};
    struct cli_args args = {0};
    if (!cli_parse(&cli_size, argc, argv, &values, &args))
        return args.exit;
    const char *word = args.num > 0 ? args.words[0] : NULL;
    return values.log != NULL ? hold_log(&values, word) : answer(&values, word);
}

const struct cli_command cli_size = {
    .name = "size",
    .summary = "what one position of KV costs, and what fits into memory",
    .description =
        "Says how many bytes of KV a position takes, of all layers and of those that go on growing; "
        "what is fixed for each sequence; pages, blocks and KV groups; and, for a budget, blocks, "
        "tokens as engines print them, and how many requests fit: by their bytes now, by blocks "
        "now, with prompt and output reserved, and to their end, which is prompt + output - 1 "
        "positions. The model is a known name, the path of a config.json as Hugging Face has it, or "
        "dimensions. A config that leaves out what decides the size is refused with the key.\n\n"
        "GB is 10^9 bytes and GiB 2^30; they are never mixed. Memory is never added up over ranks: "
        "the rank with the fewest blocks rules, and what the others cannot use is shown. In a "
        "budget of a GPU's memory every term is printed and estimates are marked; activation is not "
        "predicted.\n\n"
        "--log reads what the engine printed at its start, says whether its blocks, tokens and "
        "concurrency are those of the model, and ends with a scenario that has its pool, and what the "
        "log says of prefix cache, batches, async scheduling and drafts. A log that does not agree is "
        "exit status 1, and so is one that does not say enough to tell, as without the memory of the "
        "pool any model has such tokens. Each memory is held against the layers of its rank where lines "
        "are marked with one (PP1, TP0, rank=3). Fewer blocks than the memory holds differ, unless ranks "
        "printed different memory and not all did, or --ranks-differ says so.",
    .examples = "pagedkv size llama-3.1-70b --kv-budget 40GiB --prompt 4096 --output 1024\n"
                "pagedkv size config.json --kv-dtype fp8 --tp 8 --json\n"
                "pagedkv size llama-3.1-8b --gpu h100 --utilisation 0.9 --activation 5GiB\n"
                "pagedkv size qwen3-14b --log vllm.log\n",
    .arguments = {{"MODEL", "a name that `pagedkv models` lists, or a config.json", true}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
