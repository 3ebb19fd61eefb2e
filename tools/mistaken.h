/*
 * mistaken.h - a file of the other kind: a trace where a scenario belongs, or the other way round.
 */
#ifndef PKV_TOOLS_MISTAKEN_H
#define PKV_TOOLS_MISTAKEN_H

#include "pagedkv/err.h"

/* Reading the file has failed with err. If it can be read as one of the other kind, say that instead.
 *   path     NULL = there was none
 *   command  which command takes it, as in "use pagedkv replay"
 *   returns  -1 */
int cli_fail_scenario(const char *path, const char *command, struct pkv_err *err);
int cli_fail_trace(const char *path, const char *command, struct pkv_err *err);

#endif
