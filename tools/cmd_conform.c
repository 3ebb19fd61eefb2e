/*
 * cmd_conform.c - `pagedkv conform`: replay a recorded engine log decision by decision.
 */
#include <string.h>

#include "commands.h"
#include "interrupt.h"
#include "pagedkv/report.h"

struct values {
    const char *preset, *emit;
    bool check, quiet;
};

static const struct cli_option options[] = {
    {.name = "preset", .arg = "NAME", .fallback = "all settings from CONFIG.json",
     .help = "run with another preset's settings, which win over those of CONFIG.json",
     .kind = CLI_WORD, .offset = offsetof(struct values, preset)},
    {.name = "emit", .arg = "FILE",
     .help = "write our own log of the run in the same form; an interrupted run leaves what it had "
             "written",
     .kind = CLI_WORD, .offset = offsetof(struct values, emit)},
    {.name = "check", .help = "recount every invariant after each step", .kind = CLI_SWITCH,
     .offset = offsetof(struct values, check)},
    {.name = "quiet", .letter = 'q', .help = "print nothing but errors; the status tells",
     .kind = CLI_SWITCH, .offset = offsetof(struct values, quiet)},
};

enum cli_exit cli_print_difference(struct pkv_diff_result *result, bool quiet)
{
    enum cli_exit status = result->same ? CLI_DONE : CLI_DIFFERS;
    if (!quiet && result->text != NULL) {
        enum cli_exit printed = cli_write(result->text, strlen(result->text));
        status = printed != CLI_DONE ? printed : status;
    }
    pkv_report_free(result->text);
    return status;
}

static bool should_stop(void *ctx)
{
    (void)ctx;
    return cli_interrupted();
}

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {0};
    struct cli_args args;
    struct pkv_diff_result result = {0};
    struct pkv_err err = {0};
    if (!cli_parse(&cli_conform, argc, argv, &values, &args))
        return args.exit;
    struct pkv_conform_config config = {
        .config = args.words[0], .requests = args.words[1], .steps = args.words[2],
        .preset = values.preset, .emit = values.emit, .check = values.check,
        .should_stop = should_stop,
    };
    bool reads_stdin = strcmp(config.requests, "-") == 0 || strcmp(config.steps, "-") == 0;
    cli_interrupt_begin(reads_stdin);
    int rc = pkv_conform(&config, &result, &err);
    cli_interrupt_end();
    /* An input that was made to end. */
    if (rc < 0 && err.code == PKV_ERR_INPUT && reads_stdin && cli_interrupted())
        pkv_fail(&err, PKV_ERR_INTERRUPTED, "interrupted");
    if (rc < 0)
        return cli_report(&err);
    return cli_print_difference(&result, values.quiet);
}

const struct cli_command cli_conform = {
    .name = "conform",
    .summary = "replay a recorded engine log and compare every decision",
    .description =
        "Runs the load of a recording with its settings and compares our log with the recorded one "
        "field by field: who is admitted, with how many cached tokens, who gets how many tokens, "
        "who is preempted, which block ids are handed out and evicted. Prints the first difference "
        "(step, field, both values), or that there is none.\n\n"
        "In these files num_blocks includes the engine's null block.",
    .examples = "pagedkv conform abort.config.json abort.requests.jsonl abort.steps.jsonl\n",
    .arguments = {{"CONFIG.json", "settings of the recording", false},
                  {"REQUESTS.jsonl", "its load; may be packed (.gz)", false},
                  {"STEPS.jsonl", "its log; may be packed (.gz)", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
