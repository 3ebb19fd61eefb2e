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
/* Name, summary and source; name_width columns for the name. What is longer than a line of the terminal
 * (80 columns where there is none, at most 100) goes on below the summary. */
void cli_list_item(struct pkv_text *out, unsigned indent, unsigned name_width, const char *name,
                   const char *summary, const char *source);
/* Words that follow what stands before `column`; further lines begin at `indent`. */
void cli_list_rest(struct pkv_text *out, unsigned indent, unsigned column, const char *text);
/* More about an item, below its summary. */
void cli_list_note(struct pkv_text *out, unsigned indent, unsigned name_width, const char *note);

/* Read the command line, then print what write_json or write_text makes. */
enum cli_exit cli_list(const struct cli_command *command, int argc, char **argv,
                       void (*write_json)(struct pkv_text *out),
                       void (*write_text)(struct pkv_text *out));

#endif
