/*
 * man.h - writing manual pages: what the pages of commands and of files have in common.
 */
#ifndef PKV_TOOLS_MAN_H
#define PKV_TOOLS_MAN_H

#include "cli.h"

/* A column, a key, a field: its name and what it means. */
struct man_fact {
    const char *name, *text;
};

/* The title and NAME up to its dash; name NULL = the program's page. */
void man_heading(struct pkv_text *out, const char *name, int section);
void man_line(struct pkv_text *out, const char *text);
/* A section; intro may be NULL. */
void man_facts(struct pkv_text *out, const char *heading, const char *intro,
               const struct man_fact *facts, size_t num);

/* JSON that commands print: every key, with those above it before a dot. */
void man_json(struct pkv_text *out);

void man_files(struct pkv_text *out);      /* pagedkv-files(5) */
void man_scenario(struct pkv_text *out);   /* pagedkv-scenario(5) */

#endif
