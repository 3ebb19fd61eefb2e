/*
 * commands.h - the commands, one a file: cmd_NAME.c defines cli_NAME.
 */
#ifndef PKV_TOOLS_COMMANDS_H
#define PKV_TOOLS_COMMANDS_H

#include "cli.h"
#include "pagedkv/report.h"

extern const struct cli_command cli_run;
extern const struct cli_command cli_replay;
extern const struct cli_command cli_compare;
extern const struct cli_command cli_conform;
extern const struct cli_command cli_diff;
extern const struct cli_command cli_waste;
extern const struct cli_command cli_size;
extern const struct cli_command cli_trace;
extern const struct cli_command cli_gen;
extern const struct cli_command cli_synth;
extern const struct cli_command cli_explain;
extern const struct cli_command cli_report_command;
extern const struct cli_command cli_policies;
extern const struct cli_command cli_presets;
extern const struct cli_command cli_models;
extern const struct cli_command cli_gpus;
extern const struct cli_command cli_formats;
extern const struct cli_command cli_help_command;

/* Shared by conform and diff: print the text unless quiet, free it, give the status. */
enum cli_exit cli_print_difference(struct pkv_diff_result *result, bool quiet);

#endif
