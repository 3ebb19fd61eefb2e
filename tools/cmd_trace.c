/*
 * cmd_trace.c - `pagedkv trace`: what is in a trace, and the same rows in another format.
 */
#include <string.h>

#include "base/units.h"
#include "commands.h"
#include "terminal.h"
#include "trace_file.h"
#include "trace_options.h"

#define NS_PER_MS 1000000
#define LONGEST_TOKEN_NS INT64_C(3600000000000)
#define DEFAULT_TOKEN_NS INT64_C(50000000)
#define MAX_BLOCK_SIZE (1u << 20)

struct values {
    struct cli_trace_options trace;
    uint64_t block_size;             /* 0 = not given */
    int64_t token_ns;
    const char *to, *output;
    bool json, quiet;
};

static int apply_token_time(void *values, const char *arg, struct pkv_err *err)
{
    int64_t *ns = &((struct values *)values)->token_ns;
    const char *why = "is not within 1 ns .. 1 h";
    if (pkv_parse_time_ns(arg, strlen(arg), NS_PER_MS, ns, &why) < 0 || *ns <= 0 ||
        *ns > LONGEST_TOKEN_NS)
        return pkv_fail_at(err, "--token-time", 0, 0, "'%s' %s", arg, why);
    return 0;
}

#define AT(field) offsetof(struct values, field)

static const struct cli_option options[] = {
    {.name = "to", .arg = "FORMAT", .help = "convert: the format to write; `pagedkv formats` lists "
     "them", .kind = CLI_WORD, .offset = AT(to)},
    {.name = "output", .letter = 'o', .arg = "FILE", .fallback = "standard output",
     .help = "convert: where to write", .kind = CLI_WORD, .offset = AT(output)},
    {.name = "block-size", .arg = "N", .fallback = "that of the hash ids; else 16, or the format's",
     .help = "tokens of a block: info looks for blocks of prompts that were there before; convert "
             "writes one hash id for each", .kind = CLI_COUNT, .offset = AT(block_size)},
    {.name = "token-time", .arg = "TIME", .fallback = "50ms",
     .help = "info: how long each token of an answer takes, for the peak; a bare number is in ms",
     .kind = CLI_APPLY, .apply = apply_token_time},
    {.name = "json", .help = "info: print JSON", .kind = CLI_SWITCH, .offset = AT(json)},
    {.name = "quiet", .letter = 'q', .help = "convert: do not say what the format cannot hold",
     .kind = CLI_SWITCH, .offset = AT(quiet)},
    CLI_TRACE_OPTIONS(struct values, trace),
};

static struct pkv_trace *open_trace(const char *path, const struct values *v, struct pkv_err *err)
{
    struct pkv_trace_options trace_options;
    if (v->block_size > MAX_BLOCK_SIZE) {
        pkv_fail_at(err, "--block-size", 0, 0, "is not within 1 .. %u", MAX_BLOCK_SIZE);
        return NULL;
    }
    if (cli_trace_settle(&v->trace, &trace_options, err) < 0)
        return NULL;
    trace_options.keep_texts = trace_options.sessions = true;
    return pkv_trace_open(path, &trace_options, err);
}

/* --- info ------------------------------------------------------------------------------------ */

static enum cli_exit show_info(const char *path, const struct values *v)
{
    struct pkv_err err = {0};
    struct pkv_report_style style = cli_style();
    static struct pkv_trace_info info;
    char *text = NULL;
    struct pkv_trace *trace = open_trace(path, v, &err);
    if (trace != NULL && pkv_trace_info_read(trace, (uint32_t)v->block_size, v->token_ns, &info,
                                             &err) == 0)
        text = v->json ? pkv_trace_info_json(&info, trace, &err)
                       : pkv_trace_info_text(&info, trace, cli_trace_name(path), &style, &err);
    pkv_trace_close(trace);
    if (text == NULL)
        return cli_report(&err);
    enum cli_exit status = cli_write(text, strlen(text));
    pkv_report_free(text);
    return status;
}

/* --- convert --------------------------------------------------------------------------------- */

static int copy_rows(struct pkv_trace *trace, struct pkv_trace_writer *writer,
                     struct pkv_err *err)
{
    struct pkv_source source = pkv_trace_source(trace);
    struct pkv_request_spec spec;
    int more;
    while ((more = source.next(source.ctx, &spec, err)) > 0)
        if (pkv_trace_writer_row(writer, &spec, pkv_trace_texts(trace), err) < 0)
            return -1;
    return more < 0 ? -1 : pkv_trace_writer_end(writer, err);
}

/* What the user has to know about the file that was made. */
static void say_result(const struct values *v, const struct pkv_trace *trace,
                       const struct pkv_trace_writer *writer)
{
    const uint64_t *losses = pkv_trace_writer_losses(writer);
    uint32_t block_size = pkv_trace_writer_block_size(writer);
    char digits[32];
    if (v->quiet)
        return;
    const struct pkv_trace_notes *notes = pkv_trace_notes(trace);
    fprintf(stderr, "%s row%s of format %s read; written as %s\n", pkv_format_count(notes->rows, digits),
            notes->rows == 1 ? "" : "s", notes->format, v->to);
    if (notes->skipped_no_output > 0)
        fprintf(stderr, "%s row%s without output left out\n",
                pkv_format_count(notes->skipped_no_output, digits),
                notes->skipped_no_output == 1 ? "" : "s");
    if (block_size > 0)
        fprintf(stderr, "a hash id stands for %u tokens: read it with --hash-block-size %u\n",
                block_size, block_size);
    if (block_size > 0 && !notes->has_prompts)
        fputs("the trace tells lengths and no content: each row got hash ids that no other one has, so "
              "nothing will be found shared\n", stderr);
    if (strcmp(v->to, "azure") == 0)
        fputs("the format has dates: the trace's time 0 is written as 1970-01-01 00:00:00\n", stderr);
    if (strcmp(v->to, "blis") == 0)
        fputs("BLIS wants a header beside it: trace_version: 3, time_unit: microseconds, mode: "
              "generated, warm_up_requests: 0\n", stderr);
    for (int loss = 0; loss < PKV_TRACE_LOSS_COUNT; loss++)
        if (losses[loss] > 0)
            fprintf(stderr, "lost in %s row%s: %s\n", pkv_format_count(losses[loss], digits),
                    losses[loss] == 1 ? "" : "s",
                    pkv_trace_loss_text((enum pkv_trace_loss)loss));
}

static int write_trace(struct pkv_trace *trace, const struct values *v, struct pkv_out *out,
                       struct pkv_err *err)
{
    struct pkv_trace_writer_config config = {
        .format = v->to,
        .hash_block_size = (uint32_t)v->block_size,
        .from_block_size = pkv_trace_options(trace)->hash_block_size,
        .put = cli_trace_put,
        .ctx = out,
    };
    struct pkv_trace_writer *writer = pkv_trace_writer_create(&config, err);
    int status = writer != NULL ? copy_rows(trace, writer, err) : -1;
    if (status == 0)
        say_result(v, trace, writer);
    pkv_trace_writer_destroy(writer);
    return status;
}

static enum cli_exit convert(const char *path, const struct values *v)
{
    struct pkv_err err = {0};
    const char *output = v->output != NULL ? v->output : "-";
    struct pkv_trace *trace = NULL;
    struct pkv_out *out = NULL;
    int status = -1;
    if (pkv_out_spare(NULL, output, path, &err) == 0)
        trace = open_trace(path, v, &err);
    if (trace != NULL)
        out = pkv_out_open(NULL, output, &err);
    if (out != NULL)
        status = write_trace(trace, v, out, &err);
    pkv_trace_close(trace);
    if (status == 0)
        status = pkv_out_commit(out, &err);
    else
        pkv_out_drop(out);
    return status == 0 ? CLI_DONE : cli_report(&err);
}

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {.token_ns = DEFAULT_TOKEN_NS};
    struct cli_args args;
    if (!cli_parse(&cli_trace, argc, argv, &values, &args))
        return args.exit;
    bool is_info = strcmp(args.words[0], "info") == 0;
    if (!is_info && strcmp(args.words[0], "convert") != 0)
        return cli_wrong_use(&cli_trace, "'%s' is neither info nor convert", args.words[0]);
    if (is_info && (values.to != NULL || values.output != NULL))
        return cli_wrong_use(&cli_trace, "--to and --output are for convert");
    if (!is_info && values.to == NULL)
        return cli_wrong_use(&cli_trace, "--to FORMAT is missing: the format to write");
    return is_info ? show_info(args.words[1], &values) : convert(args.words[1], &values);
}

const struct cli_command cli_trace = {
    .name = "trace",
    .summary = "what is in a trace, and the same rows in another format",
    .description =
        "`trace info` reads a trace to its end and shows when requests come and how evenly, how long "
        "prompts and outputs are, how much of the prompts was there before, sessions, the most tokens "
        "that an unlimited memory would hold, and what is odd about the file.\n\n"
        "`trace convert` writes the rows in another format. What that cannot hold is left out, said "
        "and counted on standard error. Formats with hash ids take any prompt: those that came "
        "otherwise are cut into blocks, and equal blocks behind equal blocks get the same id.",
    .examples = "pagedkv trace info conversation.jsonl.gz\n"
                "pagedkv trace info azure.csv --json\n"
                "pagedkv trace convert log.csv --columns arrival=ts,prompt=in,output=out "
                "--to native -o log.jsonl\n"
                "pagedkv trace convert qwen.jsonl --to mooncake --block-size 16 -o qwen16.jsonl\n",
    .arguments = {{"info|convert", "what to do", false},
                  {"TRACE", "the trace, or - for standard input", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
