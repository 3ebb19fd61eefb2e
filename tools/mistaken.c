/*
 * mistaken.c - which kind of file it is, told by that it can be read as one.
 */
#include "mistaken.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "pagedkv/scenario.h"

/* Can it be read a second time? A pipe has nothing more to give, and may keep us waiting. */
static bool may_look_again(const char *path, const struct pkv_err *err)
{
    struct stat info;
    return path != NULL && strcmp(path, "-") != 0 && err->code == PKV_ERR_INPUT &&
           strcmp(err->path, path) == 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

int cli_fail_scenario(const char *path, const char *command, struct pkv_err *err)
{
    struct pkv_err ignored = {0};
    struct pkv_trace *trace = may_look_again(path, err) ? pkv_trace_open(path, NULL, &ignored) : NULL;
    if (trace != NULL)
        pkv_fail_at(err, path, 0, 0, "is a trace (%s), not a scenario: use pagedkv %s",
                    pkv_trace_notes(trace)->format, command);
    pkv_trace_close(trace);
    return -1;
}

int cli_fail_trace(const char *path, const char *command, struct pkv_err *err)
{
    struct pkv_err ignored = {0};
    struct pkv_scenario *scenario =
        may_look_again(path, err) ? pkv_scenario_load(path, NULL, 0, &ignored) : NULL;
    if (scenario != NULL)
        pkv_fail_at(err, path, 0, 0, "is a scenario, not a trace: use pagedkv %s", command);
    pkv_scenario_destroy(scenario);
    return -1;
}
