/*
 * foreign.h - flags that engines have and that people know, and what says the same here.
 */
#ifndef PKV_TOOLS_FOREIGN_H
#define PKV_TOOLS_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

/* One of the lists is enough; NULL = nothing is known. */
struct cli_foreign {
    const char *name;       /* without dashes; _ and - are the same */
    const char *option;     /* ours */
    const char *key;        /* KEY=VALUE for --set, where a command has no such option */
    const char *note;       /* how it is said otherwise; told where neither of these can be */
};
extern const struct cli_foreign cli_foreign[];
extern const size_t cli_num_foreign;

/* The row of a flag as it was typed, dashes and "=value" included; NULL = it is no known one. */
const struct cli_foreign *cli_foreign_find(const char *given);

#endif
