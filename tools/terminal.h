/*
 * terminal.h - what can be shown where, and the progress line.
 */
#ifndef PKV_TOOLS_TERMINAL_H
#define PKV_TOOLS_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "pagedkv/engine.h"
#include "pagedkv/report.h"

/* COLUMNS, else the width of the terminal on stdout, else 80; UTF-8 by the locale; colour on a
 * terminal unless NO_COLOR is set. */
struct pkv_report_style cli_style(void);

bool cli_is_all_on_terminal(void);    /* results and errors are read in one place */

bool cli_can_draw(void);    /* standard output is a terminal that can move its cursor */

int64_t cli_now_ns(void);    /* of a clock that never jumps */

/* A line on stderr that says how far a long run is: once it has taken a second, at most ten times
 * a second, and only on a terminal. A sink of the engine. */
struct cli_progress {
    bool on, shown;
    int64_t begin_ns, last_ns;       /* of cli_now_ns() */
    uint64_t num_steps, num_ended;
};
void cli_progress_begin(struct cli_progress *progress, bool wanted);
struct pkv_sink cli_progress_sink(struct cli_progress *progress);
void cli_progress_end(struct cli_progress *progress);    /* wipe the line */

#endif
