/*
 * cmd_report.c - `pagedkv report`: report.html of former runs.
 */
#include "commands.h"
#include "outdir.h"

struct values {
    const char *dir;
};

static const struct cli_option options[] = {
    {.name = "output", .letter = 'o', .arg = "DIR", .fallback = "the directory of the run",
     .help = "write report.html to DIR, which is made if missing; of several runs it has to be said",
     .kind = CLI_WORD, .offset = offsetof(struct values, dir)},
};

static enum cli_exit write_report(const struct cli_args *args, const char *out_dir)
{
    struct cli_outdir dir;
    struct pkv_err err = {0};
    int status = cli_outdir_make(&dir, out_dir, &err);
    if (status == 0 &&
        pkv_html_from_dirs((const char *const *)args->words, (size_t)args->num, dir.path, &err) < 0) {
        cli_outdir_unmake(&dir);
        status = -1;
    }
    cli_outdir_free(&dir);
    return status == 0 ? CLI_DONE : cli_report(&err);
}

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {0};
    struct cli_args args = {0};
    if (!cli_parse(&cli_report_command, argc, argv, &values, &args))
        return args.exit;
    if (args.num > 1 && values.dir == NULL) {
        cli_wrong_use(&cli_report_command, "several runs on one page: say with -o DIR where to write it");
        return CLI_WRONG;
    }
    return write_report(&args, values.dir != NULL ? values.dir : args.words[0]);
}

const struct cli_command cli_report_command = {
    .name = "report",
    .summary = "report.html of former runs, several laid over each other",
    .description =
        "Reads the directories that run or replay with -o left and writes report.html: a page that "
        "stands alone, opens in any browser and loads nothing from anywhere. Of one run it shows what "
        "the run's own page shows; of several, the same charts with a line for each run, their "
        "distributions on one axis, and a table of their figures with the differences to the first.\n\n"
        "Where a directory has the report.html of its run, all of it is taken over. Else requests.csv, "
        "summary.json, scenario.yaml and, where it is there, steps.csv are read; what only the run "
        "itself saw is then missing, as the distribution of single gaps, and the page says so. It also "
        "says when steps.csv was thinned out. Files of different runs in one directory are an error.",
    .examples = "pagedkv report out\n"
                "pagedkv report fcfs priority -o both\n",
    .arguments = {{"DIR...", "the directory of a run, or up to 12 of them", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
