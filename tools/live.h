/*
 * live.h - a run as it goes, drawn on the terminal again and again in the same place.
 */
#ifndef PKV_TOOLS_LIVE_H
#define PKV_TOOLS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "pagedkv/engine.h"
#include "pagedkv/report.h"

/* A sink of the engine, behind that of the metrics. */
struct cli_live {
    bool on;
    int64_t pace_ns;                     /* of virtual time in a second; 0 = as fast as it goes */
    struct pkv_metrics *metrics;         /* borrowed; whose series is drawn */
    struct pkv_live now;
    int64_t begin_ns, drawn_ns;          /* of cli_now_ns(); drawn: 0 = not yet */
    unsigned num_lines, width, height;   /* of the frame that stands there, and of its terminal */
};

/* It draws only if standard output is a terminal on which the cursor can be moved. */
void cli_live_begin(struct cli_live *live, struct pkv_metrics *metrics, int64_t pace_ns);
struct pkv_sink cli_live_sink(struct cli_live *live);
/* The last frame stays. */
void cli_live_end(struct cli_live *live);

#endif
