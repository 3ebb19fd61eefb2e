/*
 * listing.c - what `policies`, `presets` and `formats` have in common.
 */
#include "listing.h"

void cli_json_pair(struct pkv_text *out, const char *key, const char *text)
{
    pkv_text_json(out, key);
    pkv_text_add(out, ": ");
    pkv_text_json(out, text);
}

void cli_list_line(struct pkv_text *out, const char *indent, int name_width, const char *name,
                   const char *summary, const char *source)
{
    pkv_text_fmt(out, "%s%-*s  %s [%s]\n", indent, name_width, name, summary, source);
}

enum cli_exit cli_list(const struct cli_command *command, int argc, char **argv,
                       void (*write_json)(struct pkv_text *out),
                       void (*write_text)(struct pkv_text *out))
{
    struct cli_listing_options values = {0};
    struct cli_args args;
    struct pkv_text text = {0};
    if (!cli_parse(command, argc, argv, &values, &args))
        return args.exit;
    if (values.json)
        write_json(&text);
    else
        write_text(&text);
    return cli_print(&text);
}
