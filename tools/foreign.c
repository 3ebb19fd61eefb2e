/*
 * foreign.c - see foreign.h.
 *
 * Names after `vllm serve` and `vllm bench serve`, SGLang's server arguments and TensorRT-LLM's
 * KvCacheConfig and build options. The nearest name would not find ours: they share few letters.
 */
#include "foreign.h"

#include <string.h>

#define MEMORY                                                                                      \
    "the pool is given in blocks or bytes (replay: --num-blocks, --num-gpu-blocks, --kv-budget; scenario: " \
    "kv.num_blocks, kv.num_gpu_blocks, kv.budget); pagedkv size MODEL --gpu NAME --utilisation X tells them"
#define CACHE "the prefix cache is on unless --no-prefix-cache (kv.prefix_cache: false) says otherwise"
#define HOST "kv.host_blocks=N --set scheduler.on_preempt=swap"
#define ONE_ENGINE "one engine is simulated: give it the share of the traffic that one replica gets"
#define RATE "times are those of the trace; replay divides them by --speedup X"

const struct cli_foreign cli_foreign[] = {
    {"gpu-memory-utilization", "utilisation", NULL, MEMORY},
    {"utilization", "utilisation", NULL, MEMORY},
    {"gpu-memory-utilisation", "utilisation", NULL, MEMORY},
    {"mem-fraction-static", "utilisation", NULL, MEMORY},
    {"free-gpu-memory-fraction", "utilisation", NULL, MEMORY},
    {"kv-cache-free-gpu-mem-fraction", "utilisation", NULL, MEMORY},
    {"num-gpu-blocks-override", "num-gpu-blocks", "kv.num_gpu_blocks=N", NULL},
    {"kv-cache-memory-bytes", "kv-budget", "kv.budget=BYTES", NULL},
    {"kv-cache-memory", "kv-budget", "kv.budget=BYTES", NULL},
    {"kv-cache-dtype", "kv-dtype", "kv.dtype=TYPE", NULL},
    {"tensor-parallel-size", "tp", "kv.tp=N", NULL},
    {"tp-size", "tp", "kv.tp=N", NULL},
    {"pipeline-parallel-size", "pp", "kv.pp=N", NULL},
    {"pp-size", "pp", "kv.pp=N", NULL},
    {"decode-context-parallel-size", "dcp", NULL, NULL},
    {"data-parallel-size", NULL, NULL, ONE_ENGINE},
    {"dp-size", NULL, NULL, ONE_ENGINE},
    {"page-size", "block-size", "kv.block_size=N", NULL},
    {"tokens-per-block", "block-size", "kv.block_size=N", NULL},
    {"enable-prefix-caching", NULL, "kv.prefix_cache=true", CACHE},
    {"no-enable-prefix-caching", "no-prefix-cache", "kv.prefix_cache=false", NULL},
    {"disable-radix-cache", "no-prefix-cache", "kv.prefix_cache=false", NULL},
    {"max-running-requests", "max-num-seqs", "scheduler.max_num_seqs=N", NULL},
    {"max-batch-size", "max-num-seqs", "scheduler.max_num_seqs=N", NULL},
    {"max-num-tokens", "max-num-batched-tokens", "scheduler.max_num_batched_tokens=N", NULL},
    {"context-length", "max-model-len", "scheduler.max_model_len=N", NULL},
    {"max-seq-len", "max-model-len", "scheduler.max_model_len=N", NULL},
    {"enable-chunked-prefill", NULL, "scheduler.enable_chunked_prefill=true", NULL},
    {"no-enable-chunked-prefill", NULL, "scheduler.enable_chunked_prefill=false", NULL},
    {"long-prefill-token-threshold", NULL, "scheduler.long_prefill_token_threshold=N", NULL},
    {"scheduling-policy", NULL, "scheduler.policy=fcfs|priority", NULL},
    {"schedule-policy", NULL, "scheduler.order=NAME", NULL},
    {"async-scheduling", "async-scheduling", "scheduler.async_scheduling=true", NULL},
    {"no-async-scheduling", NULL, "scheduler.async_scheduling=false", NULL},
    {"num-speculative-tokens", "speculative-tokens", "speculation.num_tokens=N", NULL},
    {"speculative-config", NULL, "speculation={method: ngram, num_tokens: N}", NULL},
    {"swap-space", NULL, HOST, NULL},
    {"kv-offloading-size", NULL, HOST, NULL},
    {"request-rate", NULL, NULL, RATE},
    {"num-prompts", "limit", "traffic.requests=N", NULL},
    {"dataset-path", NULL, NULL, "the trace is an argument of replay, or traffic.trace of a scenario"},
};
const size_t cli_num_foreign = sizeof cli_foreign / sizeof *cli_foreign;

static bool is_same(const char *given, const char *name)
{
    while (*name && (*given == *name || (*given == '_' && *name == '-'))) {
        given++;
        name++;
    }
    return !*name && (!*given || *given == '=');
}

const struct cli_foreign *cli_foreign_find(const char *given)
{
    for (size_t i = 0; i < cli_num_foreign; i++)
        if (is_same(given + strspn(given, "-"), cli_foreign[i].name))
            return &cli_foreign[i];
    return NULL;
}
