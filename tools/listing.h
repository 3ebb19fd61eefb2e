/*
 * listing.h - what `policies`, `presets` and `formats` have in common.
 */
#ifndef PKV_TOOLS_LISTING_H
#define PKV_TOOLS_LISTING_H

#include "cli.h"

struct cli_listing_options {
    bool json;
};

#define CLI_LISTING_OPTIONS                                                        \
    {.name = "json", .help = "print JSON", .kind = CLI_SWITCH,                     \
     .offset = offsetof(struct cli_listing_options, json)}

/* "key": "text" */
void cli_json_pair(struct pkv_text *out, const char *key, const char *text);
/* name, summary and source in one line; name_width columns for the name. */
void cli_list_line(struct pkv_text *out, const char *indent, int name_width, const char *name,
                   const char *summary, const char *source);

/* Read the command line, then print what write_json or write_text makes. */
enum cli_exit cli_list(const struct cli_command *command, int argc, char **argv,
                       void (*write_json)(struct pkv_text *out),
                       void (*write_text)(struct pkv_text *out));

#endif
