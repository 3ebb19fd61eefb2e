/*
 * cmd_run.c - `pagedkv run`: one run of a scenario file.
 */
#include "commands.h"
#include "session.h"

static const struct cli_option options[] = {CLI_SESSION_OPTIONS};

static enum cli_exit run(int argc, char **argv)
{
    struct cli_session_options values = {0};
    struct cli_args args;
    if (!cli_parse(&cli_run, argc, argv, &values, &args)) {
        cli_settings_free(&values.flags);
        cli_settings_free(&values.sets);
        return args.exit;
    }
    return cli_session_run(&cli_run, args.words[0], &values);
}

const struct cli_command cli_run = {
    .name = "run",
    .summary = "run a scenario and show what happened",
    .description =
        "Runs the traffic of a scenario file on its pool of KV blocks, scheduler step by scheduler "
        "step, and prints a summary: the figures that matter, what limited the run, and small "
        "plots over time of free blocks, waiting and running requests and preemptions.\n\n"
        "With -o the run leaves steps.csv (one row a step), requests.csv (one row a request), "
        "events.jsonl (what happened to whom), summary.json (the figures), scenario.yaml (the "
        "scenario with every key written out; running it gives the same bytes), report.html (the "
        "run as a page for any browser) and cache.csv (what the prefix cache still has). With --warm a "
        "run begins with the cache that another left: a text that both know by the same name or hash "
        "id is hit, a request's own never is.\n\n"
        "With --perfetto the run is a trace to open in ui.perfetto.dev: when each request waited, computed "
        "its prompt, decoded, was preempted and computed again, beside counters of the pool.\n\n"
        "With --step the run pauses at every step and shows why each thing happened, a map of the "
        "pool, the block tables and the queues. Commands are read from standard input, from a "
        "terminal or a pipe: Enter goes to the next step, a number so many steps on, g N to step N, "
        "p to the next preemption, a to the next admission, b to the next head of the queue that is "
        "refused, r ID shows one request alone, c goes on to the end, q stops and keeps what was "
        "done, h lists the commands.\n\n"
        "With --live a terminal shows the run while it goes; --pace slows it down for watching. "
        "--openmetrics writes vLLM's metrics in virtual time: `promtool tsdb create-blocks-from "
        "openmetrics FILE DIR` makes blocks of them that Prometheus serves.\n\n"
        "What wins: the preset, then every key of the file, then flags, then --set.",
    .examples = "pagedkv run scenarios/sample.yaml\n"
                "pagedkv run scenarios/sample.yaml -o out --set kv.num_blocks=512 --check\n"
                "pagedkv run scenarios/sample.yaml --perfetto sample.json.gz\n"
                "pagedkv run scenarios/sample.yaml --warm out\n",
    .arguments = {{"SCENARIO.yaml", "the scenario file", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
