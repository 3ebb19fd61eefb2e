/*
 * session.c - one run from its scenario to its files and its summary.
 *
 * One question decides what becomes of the files: is the user's input at fault? Then (exit 2)
 * nothing is left behind, neither a file nor a directory that this run made. In every other case,
 * an interruption, a full disk, a run that can go on no more, what was done so far is kept.
 */
#include "session.h"

#include <string.h>
#include <sys/stat.h>

#include "interrupt.h"
#include "live.h"
#include "mistaken.h"
#include "outdir.h"
#include "pagedkv/report.h"
#include "pagedkv/sim.h"
#include "stepping.h"
#include "terminal.h"

struct session {
    const struct cli_session_options *options;   /* borrowed */
    const char *path;                            /* borrowed; of the scenario, NULL = none */
    struct pkv_scenario *scenario;               /* owned, as all below */
    char *resolved;
    struct pkv_traffic traffic;
    struct cli_outdir dir;
    unsigned files;                              /* to be written */
    struct pkv_metrics *metrics;
    struct pkv_openmetrics *openmetrics;         /* NULL = not wanted */
    struct pkv_html *html;                       /* NULL = no report.html */
    struct pkv_perfetto *perfetto;               /* NULL = none */
    struct pkv_cache_state warm;                 /* until the engine has it */
    struct pkv_engine *engine;
    bool has_html, has_openmetrics;              /* they have their names, whole */
    bool perfetto_failed;                        /* it is cut, or not there */
    struct cli_progress progress;
    struct cli_live live;
    struct cli_stepping stepping;
    int64_t begin_ns;
    bool kept;                                   /* the files have their names */
    bool reads_stdin;
    bool watches;                                /* for interruptions */
};

static bool should_stop(void *ctx)
{
    const struct session *s = ctx;
    return cli_interrupted() || s->stepping.has_stopped;
}

/* One file beside those of -o: it takes the place of nothing that is read or written as well. */
static int spare_for(const struct session *s, const char *flag, const char *path, struct pkv_err *err)
{
    const char *warm = s->scenario->warm;
    if (path == NULL)
        return 0;
    if (!s->options->quiet && pkv_out_same("-", path))
        return pkv_fail(err, PKV_ERR_INPUT, "%s %s writes to standard output, where the summary goes: add "
                        "--quiet", flag, path);
    if (pkv_scenario_spare(s->scenario, s->path, NULL, path, err) < 0 ||
        cli_outdir_spare(&s->dir, s->files, path, flag, err) < 0)
        return -1;
    return warm != NULL ? cli_outdir_spare_former(warm, path, flag, err) : 0;
}

/* Once the directory is there: until then its names cannot be told from others. */
static int spare_outputs(const struct session *s, struct pkv_err *err)
{
    const struct cli_session_options *o = s->options;
    if (!o->quiet && cli_outdir_spare(&s->dir, s->files, "-", "standard output", err) < 0)
        return -1;
    if (spare_for(s, "--openmetrics", o->openmetrics, err) < 0 ||
        spare_for(s, "--perfetto", o->perfetto, err) < 0)
        return -1;
    if (o->perfetto != NULL && o->openmetrics != NULL && pkv_out_same(o->perfetto, o->openmetrics))
        return pkv_fail(err, PKV_ERR_INPUT, "--perfetto and --openmetrics name the same file");
    return 0;
}

static int open_metrics(struct session *s, struct pkv_err *err)
{
    const struct cli_session_options *o = s->options;
    if (pkv_sim_files(s->scenario, o->files, &s->files, err) < 0)
        return -1;
    if (o->dir != NULL && (s->files & PKV_FILE_SCENARIO) != 0 &&
        pkv_scenario_check_paths(s->scenario, err) < 0)
        return -1;
    if (pkv_sim_spare(s->scenario, s->path, o->dir, s->files, err) < 0 ||
        cli_outdir_make(&s->dir, o->dir, err) < 0 || spare_outputs(s, err) < 0)
        return -1;
    struct pkv_metrics_config config = pkv_sim_metrics_config(s->scenario);
    config.dir = s->dir.path;
    config.files = s->files;
    config.every = o->every;
    config.on_change = o->on_change;
    s->metrics = pkv_metrics_create(&config, err);
    if (s->metrics == NULL || s->dir.path == NULL || (s->files & PKV_FILE_REPORT) == 0)
        return s->metrics != NULL ? 0 : -1;
    const struct pkv_html_config page = {.dir = s->dir.path, .scenario = s->scenario};
    s->html = pkv_html_create(&page, err);
    return s->html != NULL ? 0 : -1;
}

static int open_openmetrics(struct session *s, struct pkv_err *err)
{
    const struct cli_session_options *o = s->options;
    const struct pkv_openmetrics_config config = {
        .scenario = s->scenario,
        .path = o->openmetrics,
        .interval_ns = o->scrape_ns != 0 ? o->scrape_ns : INT64_C(1000000000),
    };
    if (o->openmetrics == NULL)
        return 0;
    s->openmetrics = pkv_openmetrics_create(&config, err);
    return s->openmetrics != NULL ? 0 : -1;
}

static int open_perfetto(struct session *s, struct pkv_err *err)
{
    if (s->options->perfetto == NULL)
        return 0;
    s->perfetto = pkv_perfetto_create(s->options->perfetto, err);
    return s->perfetto != NULL ? 0 : -1;
}

static int open_engine(struct session *s, struct pkv_err *err)
{
    struct pkv_engine_config config = pkv_sim_engine_config(s->scenario, &s->traffic);
    config.warm = s->scenario->warm != NULL ? &s->warm : NULL;
    config.check = s->options->check;
    config.log_evicted = s->options->step;
    config.should_stop = should_stop;
    config.stop_ctx = s;
    config.sinks[config.num_sinks++] = pkv_metrics_sink(s->metrics);
    if (s->openmetrics != NULL)
        config.sinks[config.num_sinks++] = pkv_openmetrics_sink(s->openmetrics);
    if (s->html != NULL)
        config.sinks[config.num_sinks++] = pkv_html_sink(s->html);
    if (s->perfetto != NULL)
        config.sinks[config.num_sinks++] = pkv_perfetto_sink(s->perfetto);
    if (s->options->step) {
        if (cli_stepping_begin(&s->stepping, s->scenario, err) < 0)
            return -1;
        config.sinks[config.num_sinks++] = pkv_stepper_sink(s->stepping.stepper);
    }
    if (s->options->live)
        cli_live_begin(&s->live, s->metrics, s->options->pace_ns);
    if (s->live.on)
        config.sinks[config.num_sinks++] = cli_live_sink(&s->live);
    cli_progress_begin(&s->progress, !s->options->quiet && !s->options->step && !s->live.on);
    if (s->progress.on)
        config.sinks[config.num_sinks++] = cli_progress_sink(&s->progress);
    s->engine = pkv_engine_create(&config, err);
    pkv_cache_state_free(&s->warm);
    return s->engine != NULL ? 0 : -1;
}

/* `replay` was given a trace and no scenario. */
static int fail_traffic(const struct session *s, const char *path, struct pkv_err *err)
{
    return cli_fail_trace(path == NULL ? s->scenario->trace : NULL, "run", err);
}

static int open_session(struct session *s, const char *path, const struct cli_settings *settings,
                        struct pkv_err *err)
{
    s->begin_ns = cli_now_ns();
    s->path = path;
    s->scenario = pkv_scenario_load(path, settings->items, settings->num, err);
    if (s->scenario == NULL)
        return cli_fail_scenario(path, "replay", err);
    s->reads_stdin = s->scenario->is_trace && strcmp(s->scenario->trace, "-") == 0;
    if (s->options->step && (s->reads_stdin || (path != NULL && strcmp(path, "-") == 0)))
        return pkv_fail(err, PKV_ERR_INPUT, "--step reads its commands from standard input, so the "
                        "%s cannot come from there", s->reads_stdin ? "trace" : "scenario");
    /* From here on: reading the first row, or a command, may take for ever. */
    cli_interrupt_begin(s->reads_stdin || s->options->step);
    s->watches = true;
    s->resolved = pkv_scenario_resolved(s->scenario, err);
    if (s->resolved == NULL)
        return -1;
    if (s->scenario->warm != NULL &&
        pkv_warm_read(s->scenario->warm, &s->scenario->sched, &s->warm, err) < 0)
        return -1;
    if (pkv_scenario_open_traffic(s->scenario, &s->traffic, err) < 0)
        return fail_traffic(s, path, err);
    if (open_metrics(s, err) < 0 || open_openmetrics(s, err) < 0 || open_perfetto(s, err) < 0)
        return -1;
    return open_engine(s, err);
}

/* A standard input that was made to end looks like one that ended, or like a broken row. */
static bool was_cut_short(const struct session *s)
{
    return s->reads_stdin && cli_interrupted();
}

static const struct pkv_trace_notes *trace_notes(const struct session *s)
{
    return s->traffic.trace != NULL ? pkv_trace_notes(s->traffic.trace) : NULL;
}

/* After the metrics are finished. */
static int keep_html(struct session *s, const struct pkv_run_info *info, struct pkv_err *err)
{
    if (s->html == NULL)
        return 0;
    const struct pkv_html_run run = {.metrics = s->metrics, .notes = trace_notes(s), .info = info};
    return pkv_html_write(s->html, &run, err);
}

/* Files get their names, the summary is reckoned. */
static int keep(struct session *s, struct pkv_err *err)
{
    char sha256[65];
    pkv_scenario_sha256(s->resolved, sha256);
    struct pkv_run_info info = {
        .version = pkv_version(),
        .seed = s->scenario->seed,
        .scenario_sha256 = sha256,
        .scenario_yaml = s->resolved,
        .wall_ns = cli_now_ns() - s->begin_ns,
        .cache = pkv_engine_cache(s->engine),
    };
    struct pkv_engine_figures figures = *pkv_engine_figures(s->engine);
    if (was_cut_short(s))
        figures.outcome = PKV_OUTCOME_INTERRUPTED;
    int status = pkv_metrics_finish(s->metrics, &figures, &info, err);
    s->kept = status == 0 || pkv_metrics_has_kept(s->metrics);
    s->has_openmetrics = s->openmetrics != NULL &&
        pkv_openmetrics_finish(s->openmetrics, &figures, status < 0 ? NULL : err) == 0;
    if (s->openmetrics != NULL && !s->has_openmetrics)
        status = -1;
    s->has_html = s->kept && keep_html(s, &info, status < 0 ? NULL : err) == 0;
    if (s->html != NULL && !s->has_html)
        status = -1;
    s->perfetto_failed = s->perfetto != NULL &&
        pkv_perfetto_finish(s->perfetto, status < 0 ? NULL : err) < 0;
    if (s->perfetto_failed)
        status = -1;
    if (s->kept && !s->options->quiet && s->options->dir != NULL)
        cli_outdir_say_older(&s->dir, s->files);
    return status;
}

/* Where `explain` will find what it reads; NULL = nowhere. */
static const char *dir_to_explain(const struct session *s)
{
    const unsigned needed = PKV_FILE_REQUESTS | PKV_FILE_EVENTS | PKV_FILE_SUMMARY |
                            PKV_FILE_SCENARIO;
    return s->kept && (s->files & needed) == needed ? s->options->dir : NULL;
}

static enum cli_exit print_summary(struct session *s)
{
    struct pkv_series_point series[PKV_SERIES_POINTS];
    struct pkv_report_style style = cli_style();
    struct pkv_err err = {0};
    style.dir = dir_to_explain(s);
    const struct pkv_trace_notes *notes = trace_notes(s);
    if (s->options->step)
        cli_write("\n", 1);    /* the pages end here */
    size_t num_points = pkv_metrics_series(s->metrics, series, PKV_SERIES_POINTS);
    char *text = pkv_report_summary(s->scenario, pkv_metrics_summary(s->metrics), series,
                                    num_points, notes, &style, &err);
    if (text == NULL)
        return cli_report(&err);
    enum cli_exit status = cli_write(text, strlen(text));
    pkv_report_free(text);
    return status;
}

static void unwatch(struct session *s)
{
    if (s->watches)
        cli_interrupt_end();
    s->watches = false;
}

static void close_session(struct session *s)
{
    unwatch(s);
    pkv_engine_destroy(s->engine);
    cli_stepping_end(&s->stepping);
    pkv_openmetrics_destroy(s->openmetrics);
    pkv_metrics_destroy(s->metrics);
    pkv_html_destroy(s->html);
    pkv_perfetto_destroy(s->perfetto);
    if (!s->kept)
        cli_outdir_unmake(&s->dir);
    cli_outdir_free(&s->dir);
    pkv_cache_state_free(&s->warm);
    pkv_traffic_close(&s->traffic);
    pkv_scenario_free_text(s->resolved);
    pkv_scenario_destroy(s->scenario);
}

static void add_name(struct pkv_text *list, const char *name, bool wanted)
{
    if (wanted)
        pkv_text_fmt(list, "%s%s", list->length > 0 ? ", " : "", name);
}

/* A file by its name; not standard output, nor a device. */
static bool is_named(const char *path)
{
    struct stat there;
    return path != NULL && pkv_out_descriptor(path) < 0 && stat(path, &there) == 0 && S_ISREG(there.st_mode);
}

/* Where there is something: the directory, and the files beside it. */
static void list_kept(const struct session *s, struct pkv_text *list)
{
    const struct cli_session_options *o = s->options;
    add_name(list, o->dir, s->kept && o->dir != NULL);
    add_name(list, o->openmetrics, s->has_openmetrics && is_named(o->openmetrics));
    add_name(list, o->perfetto,
             s->perfetto != NULL && pkv_perfetto_has_kept(s->perfetto) && is_named(o->perfetto));
}

static enum cli_exit say_interrupted(const struct session *s)
{
    const struct pkv_engine_figures *f = pkv_engine_figures(s->engine);
    struct pkv_text places = {0};
    list_kept(s, &places);
    bool has_files = places.length > 0 && !places.failed;
    cli_complain("interrupted after %llu step%s%s%s", (unsigned long long)f->num_steps,
                 f->num_steps == 1 ? "" : "s", has_files ? "; what was done until then is kept in " : "",
                 has_files ? places.text : "");
    pkv_text_free(&places);
    return CLI_UNFINISHED;
}

/* Does the summary, which has it too, stand right above on the same screen? */
static bool has_shown_diagnosis(const struct session *s)
{
    return !s->options->quiet && cli_is_all_on_terminal();
}

static enum cli_exit say_outcome(const struct session *s)
{
    switch (pkv_engine_figures(s->engine)->outcome) {
    case PKV_OUTCOME_HORIZON:
    case PKV_OUTCOME_DONE:
        return was_cut_short(s) ? say_interrupted(s) : CLI_DONE;
    case PKV_OUTCOME_STUCK:
    case PKV_OUTCOME_LIVELOCK:
        if (!has_shown_diagnosis(s))
            cli_complain("%s", pkv_engine_figures(s->engine)->diagnosis);
        return CLI_UNFINISHED;
    case PKV_OUTCOME_INTERRUPTED:
    case PKV_OUTCOME_MAX_STEPS:
        return say_interrupted(s);
    case PKV_OUTCOME_FAILED:
    case PKV_OUTCOME_COUNT:
        break;
    }
    return CLI_UNFINISHED;
}

static void say_list(const char *what, struct pkv_text *list)
{
    if (list->length > 0 && !list->failed)
        cli_complain("%s%s", what, list->text);
    pkv_text_free(list);
}

/* What became of each output after an error. Where the directory has nothing, no file of it is named. */
static void say_kept(const struct session *s)
{
    const struct cli_session_options *o = s->options;
    struct pkv_text kept = {0}, cut = {0}, missing = {0};
    bool has_perfetto = s->perfetto != NULL && pkv_perfetto_has_kept(s->perfetto);
    list_kept(s, &kept);
    if (s->kept) {
        unsigned page = s->html != NULL && !s->has_html ? PKV_FILE_REPORT : 0u;
        cli_outdir_list(&s->dir, pkv_metrics_cut(s->metrics), &cut);
        cli_outdir_list(&s->dir, pkv_metrics_missing(s->metrics) | page, &missing);
    }
    add_name(&missing, o->openmetrics, s->openmetrics != NULL && !s->has_openmetrics);
    add_name(&cut, o->perfetto, has_perfetto && s->perfetto_failed);
    add_name(&missing, o->perfetto, s->perfetto != NULL && !has_perfetto);
    if (o->dir != NULL && !s->kept)
        cli_complain("nothing could be kept in %s", o->dir);
    say_list("what was done until then is kept in ", &kept);
    say_list("cut behind the last row that could be written: ", &cut);
    say_list("not written: ", &missing);
}

/* The run ended with an error. */
static enum cli_exit fail(struct session *s, const struct pkv_err *err)
{
    struct pkv_err again = {0};
    bool is_cut_short = err->code == PKV_ERR_INPUT && was_cut_short(s);
    if (is_cut_short && keep(s, &again) == 0)
        return say_interrupted(s);
    enum cli_exit status = cli_report(is_cut_short ? &again : err);
    if (err->code != PKV_ERR_INPUT)
        keep(s, &again);
    if (err->code != PKV_ERR_INPUT || is_cut_short)
        say_kept(s);
    return status;
}

static enum cli_exit go(struct session *s)
{
    struct pkv_err err = {0};
    enum cli_exit printed = CLI_DONE;
    int rc = pkv_engine_run(s->engine, &err);
    unwatch(s);
    cli_progress_end(&s->progress);
    cli_live_end(&s->live);
    if (rc < 0)
        return fail(s, &err);
    if (keep(s, &err) < 0) {
        enum cli_exit status = cli_report(&err);
        say_kept(s);
        return status;
    }
    if (!s->options->quiet)
        printed = print_summary(s);
    enum cli_exit outcome = say_outcome(s);
    return outcome != CLI_DONE ? outcome : printed;
}

/* Interrupted while waiting for the first row: its absence is no fault of the input. */
static enum cli_exit say_no_step(void)
{
    fputs("pagedkv: interrupted before the first step\n", stderr);
    return CLI_UNFINISHED;
}

static bool has_sense(const struct cli_command *command, const struct cli_session_options *o)
{
    if (o->step && o->quiet) {
        cli_wrong_use(command, "--step shows every step, and --quiet nothing: leave one out");
        return false;
    }
    if (o->live && (o->quiet || o->step)) {
        cli_wrong_use(command, "--live and %s do not go together", o->quiet ? "--quiet" : "--step");
        return false;
    }
    if (o->pace_ns != 0 && !o->live) {
        cli_wrong_use(command, "--pace slows down what --live draws: give both");
        return false;
    }
    if (o->scrape_ns != 0 && o->openmetrics == NULL) {
        cli_wrong_use(command, "--scrape-interval is about a file that no --openmetrics FILE names");
        return false;
    }
    const char *flag = o->files != 0 ? "--files" : o->every != 0 ? "--every"
                     : o->on_change ? "--on-change" : NULL;
    if (o->dir != NULL || flag == NULL)
        return true;
    cli_wrong_use(command, "%s is about files, and no -o DIR says where to write them", flag);
    return false;
}

enum cli_exit cli_session_run(const struct cli_command *command, const char *path,
                              struct cli_session_options *options)
{
    struct session s = {.options = options};
    struct pkv_err err = {0};
    enum cli_exit status = CLI_WRONG;
    if (has_sense(command, options)) {
        if (cli_settings_append(&options->flags, &options->sets, &err) < 0 ||
            open_session(&s, path, &options->flags, &err) < 0)
            status = s.watches && cli_interrupted() ? say_no_step() : cli_report(&err);
        else
            status = go(&s);
    }
    close_session(&s);
    cli_settings_free(&options->flags);
    cli_settings_free(&options->sets);
    return status;
}
