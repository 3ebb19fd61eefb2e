/*
 * cmd_compare.c - `pagedkv compare`: the configurations of a grid side by side.
 */
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "commands.h"
#include "interrupt.h"
#include "mistaken.h"
#include "outdir.h"
#include "session.h"
#include "terminal.h"

#define SECOND_NS INT64_C(1000000000)
#define MAX_THREADS 1024u
#define MAX_SEEDS 100000u
#define TRACE_BATCHES 20u

struct values {
    struct cli_session_options session;   /* the first: --set writes into it */
    struct cli_settings varies;           /* owned */
    uint64_t jobs, seeds, batches;        /* 0 = not given */
    bool json;
};

static int apply_vary(void *values, const char *arg, struct pkv_err *err)
{
    struct values *v = values;
    const char *equals = strchr(arg, '=');
    if (equals == NULL || equals == arg)
        return pkv_fail(err, PKV_ERR_INPUT, "--vary: '%s' is not of the form KEY=V1,V2", arg);
    return cli_settings_add(&v->varies, arg, (size_t)(equals - arg), equals + 1, "--vary", err);
}

static int take_up_to(uint64_t *out, const char *flag, const char *arg, uint64_t max,
                      struct pkv_err *err)
{
    const char *why = NULL;
    if (pkv_parse_u64(arg, strlen(arg), max, out, &why) < 0)
        return pkv_fail(err, PKV_ERR_INPUT, "%s: '%s' %s", flag, arg, why);
    return *out > 0 ? 0 : pkv_fail(err, PKV_ERR_INPUT, "%s: must be 1 or more, not 0", flag);
}

static int apply_jobs(void *values, const char *arg, struct pkv_err *err)
{
    return take_up_to(&((struct values *)values)->jobs, "--jobs", arg, MAX_THREADS, err);
}

static int apply_seeds(void *values, const char *arg, struct pkv_err *err)
{
    return take_up_to(&((struct values *)values)->seeds, "--seeds", arg, MAX_SEEDS, err);
}

static int apply_batches(void *values, const char *arg, struct pkv_err *err)
{
    return take_up_to(&((struct values *)values)->batches, "--batches", arg,
                      PKV_COMPARE_MAX_BATCHES, err);
}

static const struct cli_option options[] = {
    {.name = "vary", .arg = "KEY=V1,V2", .fallback = "the scenario's vary:",
     .help = "a key of the scenario and the values it takes; may be given many times. The scenario's "
             "own vary: is then left aside, all of it. Every combination is run, the first key "
             "changing slowest", .kind = CLI_APPLY, .apply = apply_vary},
    {.name = "seeds", .arg = "N", .fallback = "1", .help = "run each configuration N times on "
     "synthetic traffic, with seeds seed to seed + N - 1; figures are means with 95 % intervals",
     .kind = CLI_APPLY, .apply = apply_seeds},
    {.name = "batches", .arg = "N", .fallback = "20 for a trace, else 1", .help = "with one seed, cut "
     "the time of the arrivals into N equal stretches; the means over them give mean latencies a 95 % "
     "interval (1: none)", .kind = CLI_APPLY, .apply = apply_batches},
    {.name = "jobs", .letter = 'j', .arg = "N", .fallback = "one for each processor",
     .help = "runs side by side; changes nothing in the results", .kind = CLI_APPLY,
     .apply = apply_jobs},
    {.name = "output", .letter = 'o', .arg = "DIR", .fallback = "no files are written",
     .help = "write compare.csv, compare.json, fairness.csv, overlay.csv and report.html to DIR, which "
             "is made if missing",
     .kind = CLI_WORD, .offset = CLI_SESSION_AT(dir)},
    {.name = "json", .help = "print compare.json instead of the table", .kind = CLI_SWITCH,
     .offset = offsetof(struct values, json)},
    {.name = "set", .arg = "KEY=VALUE",
     .help = "set a key of the scenario in all configurations; may be given many times",
     .kind = CLI_APPLY, .apply = cli_apply_set},
    {.name = "seed", .arg = "N", .fallback = "1", .help = "seed of everything that is drawn",
     .kind = CLI_KEY, .key = "traffic.seed", .offset = CLI_SESSION_AT(flags)},
    {.name = "check", .help = "recount every invariant after each step; a broken one ends the "
     "comparison with its id and both numbers", .kind = CLI_SWITCH,
     .offset = CLI_SESSION_AT(check)},
    {.name = "quiet", .letter = 'q', .help = "print nothing but errors", .kind = CLI_SWITCH,
     .offset = CLI_SESSION_AT(quiet)},
};

/* ---- progress ---- */

struct watch {
    bool wanted, shown;
    int64_t begin_ns;
};

static bool should_stop(void *ctx)
{
    (void)ctx;
    return cli_interrupted();
}

/* On a terminal, once it has taken a second. */
static void show_progress(void *ctx, size_t num_done, size_t num_runs)
{
    struct watch *w = ctx;
    char done[32], all[32];
    if (!w->wanted || cli_now_ns() - w->begin_ns < SECOND_NS)
        return;
    fprintf(stderr, "\r%s of %s runs\033[K", pkv_format_count(num_done, done),
            pkv_format_count(num_runs, all));
    fflush(stderr);
    w->shown = true;
}

static uint64_t num_processors(void)
{
    long num = sysconf(_SC_NPROCESSORS_ONLN);
    return num < 1 ? 1 : (uint64_t)num < MAX_THREADS ? (uint64_t)num : MAX_THREADS;
}

/* ---- the comparison ---- */

static void say_configuration(const struct pkv_grid *grid, size_t configuration)
{
    struct pkv_text t = {0};
    for (size_t i = 0; i < grid->num_axes; i++)
        pkv_text_fmt(&t, "%s%s=%s", i > 0 ? ", " : "", grid->axes[i].key,
                     grid->axes[i].values[pkv_grid_place(grid, configuration, i)]);
    cli_complain("that was configuration %zu: %s", configuration + 1, t.text ? t.text : "");
    pkv_text_free(&t);
}

/* Requests of a trace come but once, so its parts stand for repetitions. */
static uint32_t num_batches(const struct values *v, const struct pkv_grid *grid)
{
    return v->batches > 0 ? (uint32_t)v->batches : grid->scenarios[0]->is_trace ? TRACE_BATCHES : 1;
}

static struct pkv_compare *run_all(const struct values *v, const struct pkv_grid *grid,
                                   struct pkv_err *err)
{
    struct watch watch = {.wanted = !v->session.quiet && isatty(STDERR_FILENO),
                          .begin_ns = cli_now_ns()};
    const struct pkv_compare_config config = {
        .grid = grid,
        .num_threads = (unsigned)(v->jobs > 0 ? v->jobs : num_processors()),
        .num_seeds = (uint32_t)(v->seeds > 0 ? v->seeds : 1),
        .num_batches = num_batches(v, grid),
        .check = v->session.check,
        .version = v->session.dir != NULL ? PKV_VERSION : NULL,
        .should_stop = should_stop,
        .progress = show_progress,
        .ctx = &watch,
    };
    size_t failed = 0;
    cli_interrupt_begin(false);
    struct pkv_compare *compare = pkv_compare_run(&config, &failed, err);
    cli_interrupt_end();
    if (watch.shown)
        fputs("\r\033[K", stderr);
    if (compare == NULL && err->code != PKV_ERR_INPUT)
        say_configuration(grid, failed);
    return compare;
}

static int write_files(const struct pkv_compare *compare, const char *path, struct pkv_err *err)
{
    struct cli_outdir dir;
    if (path == NULL)
        return 0;
    int status = cli_outdir_make(&dir, path, err);
    if (status == 0 && pkv_compare_write(compare, dir.path, err) < 0) {
        cli_outdir_unmake(&dir);
        status = -1;
    }
    cli_outdir_free(&dir);
    return status;
}

static enum cli_exit print(const struct values *v, const struct pkv_compare *compare)
{
    struct pkv_report_style style = cli_style();
    struct pkv_err err = {0};
    if (v->session.quiet)
        return CLI_DONE;
    char *text = v->json ? pkv_compare_json(compare, &err)
                         : pkv_compare_text(compare, &style, &err);
    if (text == NULL)
        return cli_report(&err);
    enum cli_exit status = cli_write(text, strlen(text));
    pkv_report_free(text);
    return status;
}

static enum cli_exit say_outcome(const struct pkv_compare *compare, const char *dir)
{
    size_t num_done = pkv_compare_num_done(compare), num_runs = pkv_compare_num_runs(compare);
    if (pkv_compare_is_finished(compare))
        return CLI_DONE;
    if (num_done < num_runs)
        cli_complain("interrupted after %zu of %zu runs%s%s", num_done, num_runs,
                     dir != NULL ? "; those are kept in " : "", dir != NULL ? dir : "");
    else
        cli_complain("not every configuration could come to its end; pagedkv run with the values of "
                     "one (--set) says what it is stuck on");
    return CLI_UNFINISHED;
}

static enum cli_exit go(const struct values *v, const char *path)
{
    const struct cli_settings *settings = &v->session.flags;
    struct pkv_err err = {0};
    enum cli_exit status = CLI_DONE;
    struct pkv_compare *compare = NULL;
    struct pkv_grid *grid = pkv_grid_load(path, settings->items, settings->num, v->varies.items,
                                          v->varies.num, &err);
    if (grid == NULL)
        cli_fail_scenario(path, "replay", &err);
    else if (v->session.dir == NULL ||
             pkv_compare_spare(grid, path, v->session.dir, &err) == 0)
        compare = run_all(v, grid, &err);
    if (compare == NULL || write_files(compare, v->session.dir, &err) < 0) {
        status = cli_report(&err);
    } else {
        enum cli_exit printed = print(v, compare);
        status = say_outcome(compare, v->session.dir);
        status = status != CLI_DONE ? status : printed;
    }
    pkv_compare_destroy(compare);
    pkv_grid_destroy(grid);
    return status;
}

static enum cli_exit run(int argc, char **argv)
{
    struct values values = {0};
    struct cli_args args;
    struct pkv_err err = {0};
    enum cli_exit status;
    if (!cli_parse(&cli_compare, argc, argv, &values, &args))
        status = args.exit;
    else if (cli_settings_append(&values.session.flags, &values.session.sets, &err) < 0)
        status = cli_report(&err);
    else
        status = go(&values, args.words[0]);
    cli_settings_free(&values.session.flags);
    cli_settings_free(&values.session.sets);
    cli_settings_free(&values.varies);
    return status;
}

const struct cli_command cli_compare = {
    .name = "compare",
    .summary = "run the configurations of a grid and show them side by side",
    .description =
        "Runs a scenario once for each combination of the values in its section vary: (or of "
        "--vary, which replaces that section, all of it), on all processors and on the same traffic, "
        "and prints one table: every figure of each configuration, its difference to the first one in "
        "%, and a * at the best. Below it stands what the signs mean, and how many requests were "
        "better and worse off, from arrival to end, than the same requests in the first "
        "configuration, and by how much in the median.\n\n"
        "With --seeds each configuration runs several times on synthetic traffic, and figures are "
        "means with 95 % intervals; a difference marked with ~ may be noise, and then it makes no best. "
        "Nor is there a best where a worse one prints the same. A trace "
        "is one sample, and mean latencies get their intervals from its parts. The shares of the "
        "pool that were held and filled have no best: they say nothing by themselves.\n\n"
        "Where there are several tenants or priorities, each of the six largest has a table, and Jain's "
        "fairness index over tenants is one of the figures: of their mean times to the first token, and "
        "of the service they received a second from their first arrival to their last end, a prompt "
        "token counting 1 and a generated one 2. Of five configurations or fewer, free blocks and "
        "waiting are drawn over time on the same axes. Where all steps take the same time, latencies "
        "are counted in steps.\n\n"
        "Values of --vary are parted by commas; those in quotes or brackets part nothing. A varied "
        "value wins over everything else that is said about its key.",
    .examples = "pagedkv compare scenarios/thrash_and_the_gate.yaml --vary "
                "scheduler.watermark=0,0.05,0.1\n"
                "pagedkv compare scenarios/priority.yaml --vary scheduler.policy=fcfs,priority -o out\n",
    .arguments = {{"SCENARIO.yaml", "the scenario file", false}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
