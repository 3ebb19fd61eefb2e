/*
 * cmd_diff.c - `pagedkv diff`: where two logs part.
 */
#include "commands.h"
#include "pagedkv/report.h"

struct values {
    bool quiet;
};

static const struct cli_option options[] = {
    {.name = "quiet", .letter = 'q', .help = "print nothing but errors; the status tells",
     .kind = CLI_SWITCH, .offset = offsetof(struct values, quiet)},
};

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {0};
    struct cli_args args;
    struct pkv_diff_result result = {0};
    struct pkv_err err = {0};
    if (!cli_parse(&cli_diff, argc, argv, &values, &args))
        return args.exit;
    if (pkv_diff(args.words[0], args.words[1], &result, &err) < 0)
        return cli_report(&err);
    return cli_print_difference(&result, values.quiet);
}

const struct cli_command cli_diff = {
    .name = "diff",
    .summary = "the first differing row of two logs, and their totals",
    .description =
        "Compares two step logs (steps.csv), two request logs (requests.csv) or two engine logs "
        "(STEPS.jsonl), row by row. Prints the first row and column that differ with both values, "
        "and the totals of both. Of step logs that were thinned out (--every, --on-change) the steps "
        "are compared that both have. A step that only one has is a difference unless the other "
        "shows by its own rows that it would have left it out. Logs without a common step are "
        "refused.",
    .examples = "pagedkv diff before/steps.csv after/steps.csv\n",
    .arguments = {{"A", "a log", false}, {"B", "another one of the same kind", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
