/*
 * cmd_formats.c - `pagedkv formats`: the trace formats that are read.
 */
#include "commands.h"
#include "listing.h"
#include "pagedkv/trace.h"

static const struct cli_option options[] = {CLI_LISTING_OPTIONS};

static void write_json(struct pkv_text *out)
{
    size_t num;
    const struct pkv_trace_format *const *list = pkv_trace_format_list(&num);
    for (size_t i = 0; i < num; i++) {
        pkv_text_add(out, i > 0 ? ",\n  {" : "[\n  {");
        cli_json_pair(out, "name", list[i]->name);
        pkv_text_add(out, ", ");
        cli_json_pair(out, "summary", list[i]->summary);
        pkv_text_add(out, ", ");
        cli_json_pair(out, "source", list[i]->source);
        pkv_text_add(out, ", ");
        cli_json_pair(out, "example", list[i]->example);
        pkv_text_add(out, "}");
    }
    pkv_text_add(out, "\n]\n");
}

static void write_text(struct pkv_text *out)
{
    size_t num;
    const struct pkv_trace_format *const *list = pkv_trace_format_list(&num);
    for (size_t i = 0; i < num; i++) {
        cli_list_item(out, 0, 13, list[i]->name, list[i]->summary, list[i]->source);
        pkv_text_fmt(out, "%15s%s\n", "", list[i]->example);
    }
}

static enum cli_exit run(int argc, char **argv)
{
    return cli_list(&cli_formats, argc, argv, write_json, write_text);
}

const struct cli_command cli_formats = {
    .name = "formats",
    .summary = "the trace formats that are read",
    .description =
        "Lists the trace formats. Which one a file has is found by its content, or said by "
        "--format; .gz, .zst and .xz are unpacked by content, too.",
    .examples = "pagedkv formats\npagedkv formats --json\n",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
