/*
 * session_options.c - the options of `run` and `replay` that take more than a word.
 */
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "session.h"

/* The words of --files and the files they stand for. */
#define SESSION_FILES(X)              \
    X("steps", PKV_FILE_STEPS)        \
    X("requests", PKV_FILE_REQUESTS)  \
    X("events", PKV_FILE_EVENTS)      \
    X("summary", PKV_FILE_SUMMARY)    \
    X("scenario", PKV_FILE_SCENARIO)  \
    X("report", PKV_FILE_REPORT)      \
    X("cache", PKV_FILE_CACHE)

#define SESSION_WORD(word, file) word,
static const char *const file_words[] = {SESSION_FILES(SESSION_WORD)};
#define SESSION_LIST(word, file) word " "
const char *const cli_file_words = SESSION_FILES(SESSION_LIST);
#define SESSION_FLAG(word, file) file,
static const unsigned file_flags[] = {SESSION_FILES(SESSION_FLAG)};
#define NUM_FILES (sizeof file_words / sizeof *file_words)

static int add_file(unsigned *files, const char *word, size_t length, struct pkv_err *err)
{
    char name[64];
    for (size_t i = 0; i < NUM_FILES; i++)
        if (strlen(file_words[i]) == length && memcmp(file_words[i], word, length) == 0) {
            *files |= file_flags[i];
            return 0;
        }
    snprintf(name, sizeof name, "%.*s", length < 60 ? (int)length : 60, word);
    if (name[0] == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--files: a name is empty; write steps, requests, "
                        "events, summary, scenario, report or cache, parted by commas");
    char hint[PKV_SUGGESTION_SIZE];
    return pkv_fail(err, PKV_ERR_INPUT, "--files: unknown file '%s'%s", name,
                    pkv_suggest(hint, name, "", file_words, NUM_FILES));
}

int cli_apply_files(void *values, const char *arg, struct pkv_err *err)
{
    struct cli_session_options *options = values;
    options->files = 0;
    for (;;) {
        size_t length = strcspn(arg, ",");
        if (add_file(&options->files, arg, length, err) < 0)
            return -1;
        if (arg[length] == 0)
            return 0;
        arg += length + 1;
    }
}

int cli_apply_scrape_interval(void *values, const char *arg, struct pkv_err *err)
{
    struct cli_session_options *options = values;
    const int64_t ms = 1000000;
    const char *why = "is not of whole milliseconds, 1 or more";
    if (pkv_parse_time_ns(arg, strlen(arg), 1000 * ms, &options->scrape_ns, &why) < 0 ||
        options->scrape_ns < ms || options->scrape_ns % ms != 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--scrape-interval: '%s' %s", arg, why);
    return 0;
}

int cli_apply_pace(void *values, const char *arg, struct pkv_err *err)
{
    struct cli_session_options *options = values;
    const char *why = "is no time at all";
    if (pkv_parse_time_ns(arg, strlen(arg), 1000000000, &options->pace_ns, &why) < 0 ||
        options->pace_ns <= 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--pace: '%s' %s", arg, why);
    return 0;
}

int cli_apply_warm(void *values, const char *arg, struct pkv_err *err)
{
    struct cli_session_options *options = values;
    if (arg[0] == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--warm: the name of the directory is empty");
    return cli_settings_add_path(&options->flags, "kv.warm", arg, "--warm", err);
}

int cli_apply_set(void *values, const char *arg, struct pkv_err *err)
{
    struct cli_session_options *options = values;
    const char *equals = strchr(arg, '=');
    if (equals == NULL || equals == arg)
        return pkv_fail(err, PKV_ERR_INPUT, "--set: '%s' is not of the form KEY=VALUE", arg);
    return cli_settings_add(&options->sets, arg, (size_t)(equals - arg), equals + 1, "--set", err);
}
