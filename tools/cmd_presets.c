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

static void write_json(struct pkv_text *out)
{
    size_t num;
    const struct pkv_preset *const *list = pkv_preset_list(&num);
    for (size_t i = 0; i < num; i++) {
        pkv_text_add(out, i > 0 ? ",\n" : "[\n");
        write_preset_json(out, list[i]);
    }
    pkv_text_add(out, "\n]\n");
}

static void write_text(struct pkv_text *out)
{
    size_t num;
    const struct pkv_preset *const *list = pkv_preset_list(&num);
    for (size_t i = 0; i < num; i++) {
        cli_list_item(out, 0, 14, list[i]->name, list[i]->summary, list[i]->source);
        if (list[i]->priority_note != NULL)
            cli_list_note(out, 0, 14, list[i]->priority_note);
    }
}

static enum cli_exit run(int argc, char **argv)
{
    return cli_list(&cli_presets, argc, argv, write_json, write_text);
}

const struct cli_command cli_presets = {
    .name = "presets",
    .summary = "the presets there are, with commit and date of the engine they follow",
    .description =
        "Lists the presets, each a bundle of policies and switches that makes the scheduler decide "
        "as a certain version of an engine does. A preset sets no sizes. "
        "--json tells the settings of each.",
    .examples = "pagedkv presets\npagedkv presets --json\n",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
