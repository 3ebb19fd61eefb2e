/*
 * cmd_presets.c - `pagedkv presets`: named bundles of policies and switches.
 */
#include "commands.h"
#include "listing.h"
#include "pagedkv/policy.h"

static const struct cli_option options[] = {CLI_LISTING_OPTIONS};

static void write_preset_json(struct pkv_text *out, const struct pkv_preset *preset)
{
    pkv_text_add(out, "  {");
    cli_json_pair(out, "name", preset->name);
    pkv_text_add(out, ", ");
    cli_json_pair(out, "summary", preset->summary);
    pkv_text_add(out, ", ");
    cli_json_pair(out, "source", preset->source);
    if (preset->priority_note != NULL) {
        pkv_text_add(out, ", ");
        cli_json_pair(out, "note", preset->priority_note);
    }
    pkv_text_add(out, ", \"settings\": {");
    for (size_t i = 0; i < preset->num_settings; i++) {
        pkv_text_add(out, i > 0 ? ", " : "");
        cli_json_pair(out, preset->settings[i].key, preset->settings[i].value);
    }
    pkv_text_add(out, "}}");
}

static void write_json(struct pkv_text *out, const char *only)
{
    size_t num;
    const struct pkv_preset *const *list = pkv_preset_list(&num);
    for (size_t i = 0, before = 0; i < num; i++) {
        if (!cli_is_listed(list[i]->name, only))
            continue;
        pkv_text_add(out, before++ > 0 ? ",\n" : "[\n");
        write_preset_json(out, list[i]);
    }
    pkv_text_add(out, "\n]\n");
}

static void write_text(struct pkv_text *out, const char *only)
{
    size_t num;
    const struct pkv_preset *const *list = pkv_preset_list(&num);
    for (size_t i = 0; i < num; i++) {
        if (!cli_is_listed(list[i]->name, only))
            continue;
        cli_list_item(out, 0, 14, list[i]->name, list[i]->summary, list[i]->source);
        if (list[i]->priority_note != NULL)
            cli_list_note(out, 0, 14, list[i]->priority_note);
    }
}

static const char *name_at(size_t i)
{
    size_t num;
    const struct pkv_preset *const *list = pkv_preset_list(&num);
    return i < num ? list[i]->name : NULL;
}

static enum cli_exit run(int argc, char **argv)
{
    static const struct cli_listing listing = {"preset", name_at, write_json, write_text};
    return cli_list(&cli_presets, argc, argv, &listing);
}

const struct cli_command cli_presets = {
    .name = "presets",
    .summary = "the presets there are, with commit and date of the engine they follow",
    .description =
        "Lists the presets, each a bundle of policies and switches that makes the scheduler decide "
        "as a certain version of an engine does. A preset sets no sizes. "
        "--json tells the settings of each.",
    .examples = "pagedkv presets\npagedkv presets orca-max\npagedkv presets --json\n",
    .arguments = {{"NAME", "only this preset", true}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
