/*
 * cmd_replay.c - `pagedkv replay`: a run of a trace, its scenario being told by flags.
 *
 * Every flag is a key of the scenario, so that the resolved scenario.yaml repeats the run.
 */
#include <string.h>

#include "commands.h"
#include "session.h"

#define FLAGS offsetof(struct cli_session_options, flags)

#define NUMBER(word, argument, left_out, scenario_key, text)                                  \
    {.name = word, .arg = argument, .fallback = left_out, .help = text, .kind = CLI_KEY,      \
     .offset = FLAGS, .key = scenario_key}
#define TEXT(word, argument, left_out, scenario_key, text)                                    \
    {.name = word, .arg = argument, .fallback = left_out, .help = text, .kind = CLI_KEY_TEXT, \
     .offset = FLAGS, .key = scenario_key}
#define FIXED(word, scenario_key, scenario_value, text)                                       \
    {.name = word, .help = text, .kind = CLI_KEY_FIXED, .offset = FLAGS, .key = scenario_key, \
     .value = scenario_value}

static const struct cli_option options[] = {
    NUMBER("num-blocks", "N", NULL, "kv.num_blocks",
           "usable blocks of the pool; this or --num-gpu-blocks is required"),
    NUMBER("num-gpu-blocks", "N", NULL, "kv.num_gpu_blocks",
           "the same as vLLM counts them, its null block included: usable blocks + 1"),
    NUMBER("block-size", "N", "16", "kv.block_size", "tokens in a block"),
    FIXED("no-prefix-cache", "kv.prefix_cache", "false", "do not look prompts up in cached blocks"),
    TEXT("preset", "NAME", "vllm", "scheduler.preset",
         "bundle of policies and switches; `pagedkv presets` lists them"),
    NUMBER("max-num-seqs", "N", "256", "scheduler.max_num_seqs",
           "most running requests; 0 = unlimited"),
    NUMBER("max-num-batched-tokens", "N", "8192", "scheduler.max_num_batched_tokens",
           "most tokens in one step; 0 = unlimited"),
    NUMBER("max-model-len", "N", "none", "scheduler.max_model_len",
           "longest request, prompt and output together"),
    TEXT("step-time", "LAW", "affine:10,0.025,0,0", "step_time",
         "how long a step takes: fixed:MS, or affine:A,B,C,D = base ms, ms per prefill token, ms "
         "per decode, ns per context token; the default is a round figure for an 8B model on a "
         "large GPU, not calibrated"),
    TEXT("format", "NAME", "found by content", "traffic.format",
         "format of the trace; `pagedkv formats` lists them"),
    TEXT("columns", "ROLE=NAME,...", NULL, "traffic.columns",
         "read any CSV by its header: arrival=, prompt=, output= and, if there, id=, tenant=, "
         "session=, priority=, max_tokens="),
    TEXT("time-unit", "UNIT", "s", "traffic.time_unit",
         "of the arrivals in such a CSV: s, ms, us, ns or date"),
    NUMBER("hash-block-size", "N", "512", "traffic.hash_block_size",
           "tokens that one hash id of the trace stands for; left out, 16 under the format bailian"),
    NUMBER("speedup", "X", "1", "traffic.speedup", "divide arrival times by X"),
    NUMBER("limit", "N", "all", "traffic.limit", "read only the first N rows"),
    NUMBER("after", "TIME", "0s", "measure.after", "what comes or begins earlier is not in the summary's "
           "figures: 30s, 1500ms"),
    NUMBER("until", "TIME", "end", "measure.until", "nor is what comes or begins from here on"),
    FIXED("sort", "traffic.sort", "true", "sort the rows by arrival; else the first one out of "
          "order is an error"),
    FIXED("lenient-ids", "traffic.lenient_ids", "true", "pad or cut the hash ids of a row whose "
          "number does not fit its length; else it is an error"),
    CLI_SESSION_OPTIONS,
};

static bool names_pool(const struct cli_settings *settings)
{
    static const char *const keys[] = {"kv", "kv.num_blocks", "kv.num_gpu_blocks"};
    for (size_t i = 0; i < settings->num; i++)
        for (size_t j = 0; j < sizeof keys / sizeof *keys; j++)
            if (strcmp(settings->items[i].key, keys[j]) == 0)
                return true;
    return false;
}

/* The scenario would say it in terms of its keys. */
static bool has_pool(const struct cli_session_options *values)
{
    if (names_pool(&values->flags) || names_pool(&values->sets))
        return true;
    cli_wrong_use(&cli_replay, "--num-blocks N or --num-gpu-blocks N is required");
    return false;
}

static enum cli_exit run(int argc, char **argv)
{
    struct cli_session_options values = {0};
    struct pkv_err err = {0};
    struct cli_args args;
    enum cli_exit status = CLI_WRONG;
    if (!cli_parse(&cli_replay, argc, argv, &values, &args))
        status = args.exit;
    else if (cli_settings_add_path(&values.flags, "traffic.trace", args.words[0], "TRACE",
                                   &err) < 0)
        status = cli_report(&err);
    else if (has_pool(&values))
        return cli_session_run(&cli_replay, NULL, &values);
    cli_settings_free(&values.flags);
    cli_settings_free(&values.sets);
    return status;
}

const struct cli_command cli_replay = {
    .name = "replay",
    .summary = "run a request trace on a pool of blocks",
    .description =
        "Replays a trace against a fixed number of KV blocks and shows free blocks, the waiting "
        "queue and preemptions over time. It is `run` with the scenario given by flags; -o writes "
        "the same files, and the scenario.yaml among them repeats the run.\n\n"
        "The format of a trace is found by its content; .gz, .zst and .xz are unpacked, and - is "
        "standard input. Rows are read one by one, so memory does not grow with the trace.",
    .examples = "pagedkv replay trace.jsonl --num-blocks 8192\n"
                "pagedkv replay azure.csv.gz --num-gpu-blocks 2588 --preset vllm-2025-09 -o out\n"
                "zcat trace.jsonl.gz | pagedkv replay - --num-blocks 8192 --step-time fixed:1\n",
    .arguments = {{"TRACE", "the trace, or - for standard input", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
