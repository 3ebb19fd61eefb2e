/*
 * interrupt.h - SIGINT, SIGTERM and SIGHUP ask the run to stop after its step; a second one kills.
 */
#ifndef PKV_TOOLS_INTERRUPT_H
#define PKV_TOOLS_INTERRUPT_H

#include <stdbool.h>

/* From now on the signals set the flag. reads_stdin: standard input is made to end as well, as a
 * pipe with nothing in it would keep the run from ever reaching the next step. */
void cli_interrupt_begin(bool reads_stdin);
void cli_interrupt_end(void);            /* the signals have their former meaning again */
bool cli_interrupted(void);

#endif
