/*
 * cmd_gen.c - `pagedkv gen`: the synthetic traffic of a scenario, written as a trace.
 */
#include "base/units.h"
#include "commands.h"
#include "pagedkv/scenario.h"
#include "session.h"
#include "trace_file.h"

static const struct cli_option options[] = {
    {.name = "output", .letter = 'o', .arg = "TRACE", .fallback = "standard output",
     .help = "where to write", .kind = CLI_WORD, .offset = CLI_SESSION_AT(dir)},
    {.name = "set", .arg = "KEY=VALUE",
     .help = "set a key of the scenario (traffic.requests=1000); wins over everything else; may be "
             "given many times", .kind = CLI_APPLY, .apply = cli_apply_set},
    {.name = "seed", .arg = "N", .fallback = "1", .help = "seed of everything that is drawn",
     .kind = CLI_KEY, .key = "traffic.seed", .offset = CLI_SESSION_AT(flags)},
    {.name = "quiet", .letter = 'q', .help = "do not say how many rows were written",
     .kind = CLI_SWITCH, .offset = CLI_SESSION_AT(quiet)},
};

static const struct pkv_trace_texts *texts(const void *ctx)
{
    return pkv_synth_texts(ctx);
}

static int write_traffic(const struct pkv_scenario *scenario, const char *scenario_path,
                         const char *path, uint64_t *out_rows, struct pkv_err *err)
{
    struct pkv_traffic traffic;
    if (scenario->is_trace)
        return pkv_fail(err, PKV_ERR_INPUT, "the traffic of this scenario is a trace already (%s); "
                        "gen writes synthetic traffic, which traffic.requests asks for",
                        scenario->trace);
    if (pkv_scenario_spare(scenario, scenario_path, NULL, path, err) < 0 ||
        pkv_scenario_open_traffic(scenario, &traffic, err) < 0)
        return -1;
    int status = cli_trace_write(path, &traffic.source, texts, traffic.synth, out_rows, err);
    pkv_traffic_close(&traffic);
    return status;
}

static enum cli_exit generate(const char *path, struct cli_session_options *o)
{
    struct pkv_err err = {0};
    struct pkv_scenario *scenario = NULL;
    uint64_t num_rows;
    int status = cli_settings_append(&o->flags, &o->sets, &err);
    if (status == 0) {
        scenario = pkv_scenario_load(path, o->flags.items, o->flags.num, &err);
        status = scenario != NULL ? write_traffic(scenario, path, o->dir != NULL ? o->dir : "-",
                                                  &num_rows, &err)
                                  : -1;
    }
    pkv_scenario_destroy(scenario);
    if (status < 0)
        return cli_report(&err);
    char digits[32];
    if (!o->quiet)
        fprintf(stderr, "%s row%s written as a native trace\n", pkv_format_count(num_rows, digits),
                num_rows == 1 ? "" : "s");
    return CLI_DONE;
}

static enum cli_exit run(int argc, char **argv)
{
    struct cli_session_options values = {0};
    struct cli_args args;
    enum cli_exit status;
    if (cli_parse(&cli_gen, argc, argv, &values, &args))
        status = generate(args.words[0], &values);
    else
        status = args.exit;
    cli_settings_free(&values.flags);
    cli_settings_free(&values.sets);
    return status;
}

const struct cli_command cli_gen = {
    .name = "gen",
    .summary = "write the synthetic traffic of a scenario as a trace",
    .description =
        "Draws the requests that the scenario describes under traffic: and writes them as rows of a "
        "native trace. A replay of it with the same pool and scheduler gives the same steps.csv, "
        "requests.csv and events.jsonl, byte for byte, as a run of the scenario.\n\n"
        "Turns of a conversation are rows of one session that follow one another by their delay_ms; "
        "their prompts contain the former row (\"@prev\"). A closed loop is one session with as many "
        "rows at time 0: each later one follows whichever ends. When these come is for the replay to "
        "find out.",
    .examples = "pagedkv gen scenarios/short_and_long.yaml --set traffic.requests=1000 -o thousand.jsonl\n"
                "pagedkv gen chat.yaml --seed 7 | gzip > chat.jsonl.gz\n",
    .arguments = {{"SCENARIO.yaml", "the scenario file", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
