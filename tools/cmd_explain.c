/*
 * cmd_explain.c - `pagedkv explain`: the life of one request of a former run.
 */
#include <string.h>

#include "commands.h"
#include "terminal.h"

struct values {
    uint64_t worst;
    bool json;
};

static const struct cli_option options[] = {
    {.name = "worst", .arg = "N",
     .help = "instead of one request's life, list up to N requests for each reason to ask: late "
             "against the run's median a token, most preempted, not finished, rejected",
     .kind = CLI_COUNT, .offset = offsetof(struct values, worst)},
    {.name = "json", .help = "print JSON; times in ns", .kind = CLI_SWITCH,
     .offset = offsetof(struct values, json)},
};

static bool has_sense(const struct cli_args *args, const struct values *values)
{
    bool has_id = args->num > 1;
    if (has_id && values->worst > 0)
        cli_wrong_use(&cli_explain, "an ID and --worst are two questions: ask one");
    else if (!has_id && values->worst == 0)
        cli_wrong_use(&cli_explain, "which request? Give an ID, or --worst N to find some");
    else if (values->worst > PKV_MAX_WORST)
        cli_wrong_use(&cli_explain, "--worst: at most %u", PKV_MAX_WORST);
    else
        return true;
    return false;
}

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {0};
    struct cli_args args = {0};
    struct pkv_err err = {0};
    if (!cli_parse(&cli_explain, argc, argv, &values, &args))
        return args.exit;
    if (!has_sense(&args, &values))
        return CLI_WRONG;
    const struct pkv_explain_config config = {
        .dir = args.words[0], .id = values.worst > 0 ? NULL : args.words[1],
        .worst = values.worst, .json = values.json};
    struct pkv_report_style style = cli_style();
    char *text = pkv_explain(&config, &style, &err);
    if (text == NULL)
        return cli_report(&err);
    enum cli_exit status = cli_write(text, strlen(text));
    pkv_report_free(text);
    return status;
}

const struct cli_command cli_explain = {
    .name = "explain",
    .summary = "the life of one request: why it waited, by whom it was preempted, what that cost",
    .description =
        "Reads the directory that run or replay with -o left (events.jsonl, requests.csv, "
        "summary.json, scenario.yaml, and steps.csv when it is there) and tells the life of a "
        "request moment by moment: each wait with what it needed, what was free, who held how many "
        "blocks, who was first in line before it and what ended it; each admission with its prefix "
        "hits; each preemption with for whom, what was lost and when it was computed again; its "
        "largest gap between two tokens and what that was; where its time went.\n\n"
        "The log names a cause once for each wait, so the numbers are those of the first time. Where "
        "on_blocked: latch kept the queue shut, that is for how many steps nobody was looked at after a "
        "refusal until a running request left for the first time: latched_steps in --json, from the "
        "step after refused_step on, 0 when none left.\n\n"
        "Time is told in steps when every step of the run takes the same time. A request without an "
        "id is asked for by the number of its row. Files of different runs are an error.",
    .examples = "pagedkv explain out R1\n"
                "pagedkv explain out --worst 10\n"
                "pagedkv explain out R1 --json\n",
    .arguments = {{"DIR", "the directory of a run", false},
                  {"ID", "a request of it; left out with --worst", true}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
