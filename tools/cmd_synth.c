/*
 * cmd_synth.c - `pagedkv synth from`: a trace made after another one, and how near it comes.
 */
#include <string.h>

#include "base/units.h"
#include "commands.h"
#include "trace_file.h"
#include "trace_options.h"

#define TOKEN_NS INT64_C(50000000)   /* of the peaks, which are not shown */

struct values {
    struct cli_trace_options trace;
    struct pkv_remake_config config;
    const char *output;
    bool quiet;
};

static int take_double(double *out, const char *flag, const char *arg, struct pkv_err *err)
{
    const char *why = NULL;
    if (pkv_parse_double(arg, strlen(arg), out, &why) < 0)
        return pkv_fail_at(err, flag, 0, 0, "'%s' %s", arg, why);
    return 0;
}

static int apply_rate(void *values, const char *arg, struct pkv_err *err)
{
    return take_double(&((struct values *)values)->config.rate, "--rate", arg, err);
}

static int apply_prefix_length(void *values, const char *arg, struct pkv_err *err)
{
    return take_double(&((struct values *)values)->config.prefix_length, "--prefix-length", arg, err);
}

static int apply_roots(void *values, const char *arg, struct pkv_err *err)
{
    return take_double(&((struct values *)values)->config.roots, "--roots", arg, err);
}

static int apply_seed(void *values, const char *arg, struct pkv_err *err)
{
    const char *why = NULL;
    if (pkv_parse_u64(arg, strlen(arg), UINT64_MAX, &((struct values *)values)->config.seed,
                      &why) < 0)
        return pkv_fail_at(err, "--seed", 0, 0, "'%s' %s", arg, why);
    return 0;
}

#define AT(field) offsetof(struct values, field)

static const struct cli_option options[] = {
    {.name = "output", .letter = 'o', .arg = "TRACE", .help = "where to write: a file; required",
     .kind = CLI_WORD, .offset = AT(output)},
    {.name = "rate", .arg = "X", .fallback = "1", .help = "so many times as many arrivals a second",
     .kind = CLI_APPLY, .apply = apply_rate},
    {.name = "prefix-length", .arg = "X", .fallback = "1",
     .help = "what prompts share becomes so many times as long; the rest of each stays",
     .kind = CLI_APPLY, .apply = apply_prefix_length},
    {.name = "roots", .arg = "X", .fallback = "1",
     .help = "so many times as many different texts that several prompts begin with",
     .kind = CLI_APPLY, .apply = apply_roots},
    {.name = "requests", .arg = "N", .fallback = "as many as the trace has",
     .help = "how many rows to write", .kind = CLI_COUNT, .offset = AT(config.num_requests)},
    {.name = "run", .arg = "N", .fallback = "100",
     .help = "rows that stay together; the order of such runs is drawn", .kind = CLI_COUNT,
     .offset = AT(config.run)},
    {.name = "seed", .arg = "N", .fallback = "1", .help = "seed of what is drawn", .kind = CLI_APPLY,
     .apply = apply_seed},
    {.name = "quiet", .letter = 'q', .help = "do not show the deviations", .kind = CLI_SWITCH,
     .offset = AT(quiet)},
    CLI_TRACE_OPTIONS(struct values, trace),
};

static const struct pkv_trace_texts *texts(const void *ctx)
{
    return pkv_remake_texts(ctx);
}

static struct pkv_trace *open_source(const char *path, const struct values *v, bool sessions,
                                     struct pkv_err *err)
{
    struct pkv_trace_options trace_options;
    if (cli_trace_settle(&v->trace, &trace_options, err) < 0)
        return NULL;
    trace_options.keep_texts = true;
    trace_options.sessions = sessions;
    return pkv_trace_open(path, &trace_options, err);
}

static struct pkv_remake *make(const char *path, const struct values *v, struct pkv_err *err)
{
    if (pkv_out_spare(NULL, v->output, path, err) < 0)
        return NULL;
    struct pkv_trace *trace = open_source(path, v, false, err);
    struct pkv_remake *remake = trace != NULL ? pkv_remake_create(trace, &v->config, err) : NULL;
    uint64_t num_rows;
    pkv_trace_close(trace);
    if (remake == NULL)
        return NULL;
    struct pkv_source source = pkv_remake_source(remake);
    if (cli_trace_write(v->output, &source, texts, remake, &num_rows, err) == 0)
        return remake;
    pkv_remake_destroy(remake);
    return NULL;
}

static int read_info(struct pkv_trace *trace, uint32_t block_size, struct pkv_trace_info *out,
                     struct pkv_err *err)
{
    int status = trace != NULL ? pkv_trace_info_read(trace, block_size, TOKEN_NS, out, err) : -1;
    pkv_trace_close(trace);
    return status;
}

/* Both traces are read once more, in the same way. */
static char *compare(const char *path, const struct values *v, const struct pkv_remake *remake,
                     struct pkv_err *err)
{
    static struct pkv_trace_info source, made;
    const struct pkv_remake_figures *figures = pkv_remake_figures(remake);
    const struct pkv_trace_options native = {.format = "native", .keep_texts = true};
    if (read_info(open_source(path, v, true, err), figures->block_size, &source, err) < 0 ||
        read_info(pkv_trace_open(v->output, &native, err), figures->block_size, &made, err) < 0)
        return NULL;
    return pkv_remake_text(&v->config, figures, &source, &made, err);
}

static enum cli_exit synth(const char *path, const struct values *v)
{
    struct pkv_err err = {0};
    struct pkv_remake *remake = make(path, v, &err);
    char *text = NULL;
    if (remake != NULL && !v->quiet)
        text = compare(path, v, remake, &err);
    pkv_remake_destroy(remake);
    if (err.code != PKV_ERR_NONE)
        return cli_report(&err);
    enum cli_exit status = text != NULL ? cli_write(text, strlen(text)) : CLI_DONE;
    pkv_report_free(text);
    return status;
}

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {
        .config = {.rate = 1, .prefix_length = 1, .roots = 1, .seed = 1},
    };
    struct cli_args args;
    if (!cli_parse(&cli_synth, argc, argv, &values, &args))
        return args.exit;
    if (strcmp(args.words[0], "from") != 0)
        return cli_wrong_use(&cli_synth, "'%s' is not from", args.words[0]);
    if (values.output == NULL || pkv_out_same("-", values.output))
        return cli_wrong_use(&cli_synth, "-o TRACE is missing: a file to write, which is read again "
                             "for the deviations");
    if (strcmp(args.words[1], "-") == 0)
        return cli_wrong_use(&cli_synth, "the trace is read twice and cannot be standard input");
    return synth(args.words[1], &values);
}

const struct cli_command cli_synth = {
    .name = "synth",
    .summary = "make a trace after another one, scaled",
    .description =
        "Writes a native trace whose rows are those of another one in a drawn order, with their gaps, "
        "their lengths, and the prefixes that they share; what a prompt shares with no other becomes "
        "text of its own. Runs of rows (--run) stay together, so that what follows closely in the "
        "source does so here; how long it takes for a text to come again beyond a run is not kept.\n\n"
        "The rate, the length of what is shared and the number of texts that prompts begin with may "
        "be scaled. A first text that becomes several is split by what comes behind it: prompts that "
        "go on in the same way stay together. With fewer, the shorter of two that become one begins "
        "the longer.\n\n"
        "Then both traces are read and the deviations are shown: of the rate and the spread of the "
        "gaps, of means and percentiles of the lengths, and of what was there before. Where a scale "
        "does not tell what a figure should become there is a dash.\n\n"
        "Rows that follow others of their session have no time and are refused.",
    .examples = "pagedkv synth from conversation.jsonl -o double.jsonl --rate 2\n"
                "pagedkv synth from agents.jsonl.gz -o wide.jsonl --roots 4 --prefix-length 0.5 "
                "--requests 100000\n",
    .arguments = {{"from", "the word from", false},
                  {"TRACE", "the trace to go by", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
