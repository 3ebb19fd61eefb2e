/*
 * listing.c - what `policies`, `presets` and `formats` have in common.
 */
#include "listing.h"

#include "terminal.h"

#define MAX_WIDTH 100u     /* longer lines are hard to read */

void cli_json_pair(struct pkv_text *out, const char *key, const char *text)
{
    pkv_text_json(out, key);
    pkv_text_add(out, ": ");
    pkv_text_json(out, text);
}

static unsigned width(void)
{
    unsigned columns = cli_style().width;
    return columns < MAX_WIDTH ? columns : MAX_WIDTH;
}

void cli_list_rest(struct pkv_text *out, unsigned indent, unsigned column, const char *text)
{
    cli_wrap(out, text, indent, column, width());
}

void cli_list_item(struct pkv_text *out, unsigned indent, unsigned name_width, const char *name,
                   const char *summary, const char *source)
{
    unsigned column = indent + name_width + 2;
    struct pkv_text text = {0};
    pkv_text_fmt(&text, "%s [%s]", summary, source);
    pkv_text_fmt(out, "%*s%-*s  ", (int)indent, "", (int)name_width, name);
    cli_list_rest(out, column, column, text.text ? text.text : "");
    out->failed |= text.failed;
    pkv_text_free(&text);
}

void cli_list_note(struct pkv_text *out, unsigned indent, unsigned name_width, const char *note)
{
    unsigned column = indent + name_width + 2;
    pkv_text_fmt(out, "%*s", (int)column - 1, "");
    cli_list_rest(out, column + 2, column - 1, note);
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
