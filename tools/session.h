/*
 * session.h - one run from its scenario to its files and its summary; what `run` and `replay`
 * have in common.
 */
#ifndef PKV_TOOLS_SESSION_H
#define PKV_TOOLS_SESSION_H

#include "cli.h"
#include "pagedkv/metrics.h"

/* Values of the options that both commands take. */
struct cli_session_options {
    const char *dir;             /* NULL = write no files */
    unsigned files;              /* of enum pkv_file; 0 = all */
    bool quiet, check, on_change, step, live;
    const char *perfetto;        /* NULL = none */
    uint64_t every;              /* 0 = not given */
    const char *openmetrics;     /* path; NULL = none */
    int64_t scrape_ns;           /* 0 = not given */
    int64_t pace_ns;             /* of virtual time in a second; 0 = not given */
    struct cli_settings flags;   /* owned: keys from flags */
    struct cli_settings sets;    /* owned: keys from --set, which win over flags */
};

/* Rows for a command's table whose values begin with a struct cli_session_options. */
#define CLI_SESSION_AT(field) offsetof(struct cli_session_options, field)
#define CLI_SESSION_OPTIONS                                                                      \
    {.name = "output", .letter = 'o', .arg = "DIR", .fallback = "no files are written",          \
     .help = "write the files of the run to DIR, which is made if missing; files of the same "   \
             "names are replaced", .kind = CLI_WORD, .offset = CLI_SESSION_AT(dir)},             \
    {.name = "files", .arg = "LIST", .fallback = "all of them",                                  \
     .help = "write only these: steps,requests,events,summary,scenario,report,cache",             \
     .kind = CLI_APPLY, .apply = cli_apply_files},                                               \
    {.name = "every", .arg = "N", .fallback = "1", .help = "keep every Nth row of steps.csv",    \
     .kind = CLI_COUNT, .offset = CLI_SESSION_AT(every)},                                        \
    {.name = "on-change", .help = "keep a row of steps.csv only if a count in it differs from "  \
     "the last kept row", .kind = CLI_SWITCH, .offset = CLI_SESSION_AT(on_change)},              \
    {.name = "perfetto", .arg = "FILE", .fallback = "none is written",                           \
     .help = "write the run as a Chrome trace to open in ui.perfetto.dev: requests with their "  \
             "phases, preemptions, counters over time; packed if FILE ends in .gz",              \
     .kind = CLI_WORD, .offset = CLI_SESSION_AT(perfetto)},                                      \
    {.name = "warm", .arg = "DIR", .fallback = "an empty one",                                   \
     .help = "begin with the prefix cache that a former run left in DIR (cache.csv)",            \
     .kind = CLI_APPLY, .apply = cli_apply_warm},                                                \
    {.name = "set", .arg = "KEY=VALUE",                                                          \
     .help = "set a key of the scenario (scheduler.watermark=0.1); wins over everything else; "  \
             "may be given many times", .kind = CLI_APPLY, .apply = cli_apply_set},              \
    {.name = "seed", .arg = "N", .fallback = "1", .help = "seed of everything that is drawn",    \
     .kind = CLI_KEY, .key = "traffic.seed", .offset = CLI_SESSION_AT(flags)},                   \
    {.name = "check", .help = "recount every invariant after each step; a broken one ends the "  \
     "run with its id and both numbers", .kind = CLI_SWITCH, .offset = CLI_SESSION_AT(check)},   \
    {.name = "step", .help = "pause at every step: show what the scheduler did, the pool, the "    \
     "block tables and the queues, and read from standard input where to go on; h lists the "    \
     "commands", .kind = CLI_SWITCH, .offset = CLI_SESSION_AT(step)},                            \
    {.name = "live", .help = "on a terminal: draw the pool, the queue, who runs and preemptions while "   \
     "the run goes; elsewhere it changes nothing", .kind = CLI_SWITCH,                            \
     .offset = CLI_SESSION_AT(live)},                                                            \
    {.name = "pace", .arg = "TIME", .fallback = "as fast as it goes",                            \
     .help = "with --live: so much virtual time in a second (200ms, 10s), for watching",         \
     .kind = CLI_APPLY, .apply = cli_apply_pace},                                                \
    {.name = "openmetrics", .arg = "FILE", .fallback = "none is written",                        \
     .help = "write what a scraper would have had of vLLM's metrics, in virtual time, as "       \
             "OpenMetrics text", .kind = CLI_WORD, .offset = CLI_SESSION_AT(openmetrics)},       \
    {.name = "scrape-interval", .arg = "TIME", .fallback = "1s",                                 \
     .help = "virtual time between two scrapes: 250ms, 5s, 1m; whole milliseconds",              \
     .kind = CLI_APPLY, .apply = cli_apply_scrape_interval},                                     \
    {.name = "quiet", .letter = 'q', .help = "print nothing but errors", .kind = CLI_SWITCH,     \
     .offset = CLI_SESSION_AT(quiet)}

extern const char *const cli_file_words;   /* of --files, parted by blanks */
int cli_apply_files(void *values, const char *arg, struct pkv_err *err);
int cli_apply_pace(void *values, const char *arg, struct pkv_err *err);
int cli_apply_scrape_interval(void *values, const char *arg, struct pkv_err *err);
int cli_apply_warm(void *values, const char *arg, struct pkv_err *err);
int cli_apply_set(void *values, const char *arg, struct pkv_err *err);

/* Run it, print what is to be printed, free the options.
 *   path     scenario file; NULL = the settings are all there is */
enum cli_exit cli_session_run(const struct cli_command *command, const char *path,
                              struct cli_session_options *options);

#endif
