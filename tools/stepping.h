/*
 * stepping.h - --step: a page at each pause, and commands from standard input that say where to go on.
 */
#ifndef PKV_TOOLS_STEPPING_H
#define PKV_TOOLS_STEPPING_H

#include <stdbool.h>

#include "base/out.h"
#include "pagedkv/report.h"

struct cli_stepping {
    struct pkv_stepper *stepper;    /* owned; its sink goes to the engine */
    struct pkv_text only;           /* owned: the id that pages are about; empty = all */
    struct pkv_text line;           /* owned: the command at hand */
    bool has_stopped;               /* the run is to end here */
};

int cli_stepping_begin(struct cli_stepping *stepping, const struct pkv_scenario *scenario,
                       struct pkv_err *err);
void cli_stepping_end(struct cli_stepping *stepping);    /* also when it has not begun */

#endif
