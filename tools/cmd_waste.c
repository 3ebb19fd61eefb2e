/*
 * cmd_waste.c - `pagedkv waste`: what paging and reserving would hold for a trace if memory had no
 * end.
 */
#include <string.h>

#include "base/units.h"
#include "commands.h"
#include "mistaken.h"
#include "trace_options.h"

#define NS_PER_MS 1000000
#define LONGEST_TOKEN_NS INT64_C(3600000000000)
#define MAX_BLOCK_SIZE (1u << 20)

struct values {
    struct pkv_waste_config config;
    uint64_t block_size, fixed_max;   /* 0 = not given */
    struct cli_trace_options trace;
    bool json;
};

static int apply_token_time(void *values, const char *arg, struct pkv_err *err)
{
    struct pkv_waste_config *config = &((struct values *)values)->config;
    config->num_token_times = 0;
    for (const char *text = arg;; text++) {
        size_t length = strcspn(text, ",");
        int64_t ns;
        const char *why = "is not within 1 ns .. 1 h";
        if (config->num_token_times == PKV_MAX_TOKEN_TIMES)
            return pkv_fail_at(err, "--token-time", 0, 0, "more than %u times", PKV_MAX_TOKEN_TIMES);
        if (pkv_parse_time_ns(text, length, NS_PER_MS, &ns, &why) < 0 || ns <= 0 ||
            ns > LONGEST_TOKEN_NS)
            return pkv_fail_at(err, "--token-time", 0, 0, "'%.*s' %s", (int)length, text, why);
        config->token_ns[config->num_token_times++] = ns;
        text += length;
        if (*text == '\0')
            return 0;
    }
}

#define AT(field) offsetof(struct values, field)

static const struct cli_option options[] = {
    {.name = "token-time", .arg = "TIME,...", .fallback = "20ms,50ms,100ms",
     .help = "how long each token of an answer takes; a bare number is in ms",
     .kind = CLI_APPLY, .apply = apply_token_time},
    {.name = "fixed-max", .arg = "N", .fallback = "left out",
     .help = "positions of a reservation that is the same for all", .kind = CLI_COUNT,
     .offset = AT(fixed_max)},
    {.name = "block-size", .arg = "N", .fallback = "16", .help = "tokens in a block of the paged "
     "layout", .kind = CLI_COUNT, .offset = AT(block_size)},
    {.name = "json", .help = "print JSON, times in microseconds", .kind = CLI_SWITCH,
     .offset = AT(json)},
    CLI_TRACE_OPTIONS(struct values, trace),
};

static int settle(struct values *v, struct pkv_err *err)
{
    if (v->block_size > MAX_BLOCK_SIZE)
        return pkv_fail_at(err, "--block-size", 0, 0, "is not within 1 .. %u", MAX_BLOCK_SIZE);
    if (v->fixed_max > UINT32_MAX)
        return pkv_fail_at(err, "--fixed-max", 0, 0, "is not within 1 .. %u", UINT32_MAX);
    v->config.block_size = v->block_size > 0 ? (uint32_t)v->block_size : 16;
    v->config.fixed_max = (uint32_t)v->fixed_max;
    return v->config.num_token_times > 0 ? 0 : apply_token_time(v, "20ms,50ms,100ms", err);
}

static int measure(const char *path, const struct values *v, struct pkv_waste *out,
                   struct pkv_err *err)
{
    struct pkv_trace_options trace_options;
    if (cli_trace_settle(&v->trace, &trace_options, err) < 0)
        return -1;
    struct pkv_trace *trace = pkv_trace_open(path, &trace_options, err);
    if (trace == NULL)
        return cli_fail_trace(path, "run", err);
    struct pkv_source source = pkv_trace_source(trace);
    int status = pkv_waste_measure(&source, &v->config, out, err);
    pkv_trace_close(trace);
    return status;
}

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {0};
    struct cli_args args;
    struct pkv_waste waste;
    struct pkv_err err = {0};
    if (!cli_parse(&cli_waste, argc, argv, &values, &args))
        return args.exit;
    if (settle(&values, &err) < 0 || measure(args.words[0], &values, &waste, &err) < 0)
        return cli_report(&err);
    char *text = values.json ? pkv_waste_json(&waste, &err)
                             : pkv_waste_table(&waste, cli_trace_name(args.words[0]), &err);
    if (text == NULL)
        return cli_report(&err);
    enum cli_exit status = cli_write(text, strlen(text));
    pkv_report_free(text);
    return status;
}

const struct cli_command cli_waste = {
    .name = "waste",
    .summary = "what paging and reserving would hold for a trace",
    .description =
        "Lets every request of a trace run as soon as it comes, on memory without end, and shows how "
        "many run at once, what they store, and what paged blocks and three ways of reserving would "
        "hold for it: the true length, the prompt with the next power of two of the output, and a "
        "fixed number of positions (--fixed-max). Prefill takes no time and every token the same; an "
        "answer's last token is never stored. At equal times departures come first.\n\n"
        "The shares do not depend on the time that a token takes. A request longer than the fixed "
        "number holds what it needs. Aborts are not looked at; an output of 0 is read as 1. Each of several "
        "answers (n, beam_width) is a request of its own that shares nothing.",
    .examples = "pagedkv waste azure.csv --token-time 20ms,50ms,100ms --fixed-max 8192\n"
                "pagedkv waste trace.jsonl.gz --block-size 64 --json\n",
    .arguments = {{"TRACE", "the trace, or - for standard input", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
