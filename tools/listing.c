/*
 * listing.c - what `policies`, `presets` and `formats` have in common.
 */
#include "listing.h"

#include <string.h>

#include "base/nearest.h"
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

bool cli_is_listed(const char *name, const char *only)
{
    return only == NULL || strcmp(name, only) == 0;
}

static enum cli_exit unknown_name(const struct cli_command *command, const struct cli_listing *listing,
                                  const char *given)
{
    struct pkv_nearest nearest;
    char hint[PKV_SUGGESTION_SIZE];
    const char *name;
    pkv_nearest_begin(&nearest, given);
    for (size_t i = 0; (name = listing->name_at(i)) != NULL; i++)
        pkv_nearest_offer(&nearest, name);
    return cli_wrong_use(command, "there is no %s '%s'%s", listing->kind, given,
                         pkv_nearest_say(&nearest, "", hint));
}

enum cli_exit cli_list(const struct cli_command *command, int argc, char **argv,
                       const struct cli_listing *listing)
{
    struct cli_listing_options values = {0};
    struct cli_args args;
    struct pkv_text text = {0};
    if (!cli_parse(command, argc, argv, &values, &args))
        return args.exit;
    const char *only = args.num > 0 ? args.words[0] : NULL, *name = "";
    for (size_t i = 0; only != NULL && name != NULL && strcmp(name, only) != 0; i++)
        name = listing->name_at(i);
    if (name == NULL)
        return unknown_name(command, listing, only);
    if (values.json)
        listing->write_json(&text, only);
    else
        listing->write_text(&text, only);
    return cli_print(&text);
}
