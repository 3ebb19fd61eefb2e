/*
 * cmd_gpus.c - `pagedkv gpus`: GPUs whose memory is known by name.
 */
#include <inttypes.h>

#include "base/units.h"
#include "commands.h"
#include "listing.h"
#include "pagedkv/sizing.h"

static const struct cli_option options[] = {CLI_LISTING_OPTIONS};

static void write_json(struct pkv_text *out, const char *only)
{
    for (size_t i = 0, before = 0; i < pkv_gpu_count(); i++) {
        const struct pkv_gpu *gpu = pkv_gpu_at(i);
        if (!cli_is_listed(gpu->name, only))
            continue;
        pkv_text_add(out, before++ > 0 ? ",\n  {" : "[\n  {");
        cli_json_pair(out, "name", gpu->name);
        pkv_text_add(out, ", ");
        cli_json_pair(out, "alias", gpu->alias);
        pkv_text_fmt(out, ", \"nvml_bytes\": %" PRIu64 ", \"cuda_gib_hundredths\": %u, "
                     "\"total_bytes\": %" PRIu64 ", ", gpu->nvml_bytes, gpu->cuda_gib_hundredths,
                     pkv_gpu_total_bytes(gpu));
        cli_json_pair(out, "source", gpu->source);
        pkv_text_add(out, "}");
    }
    pkv_text_add(out, "\n]\n");
}

static void write_text(struct pkv_text *out, const char *only)
{
    char digits[32];
    for (size_t i = 0; i < pkv_gpu_count(); i++) {
        const struct pkv_gpu *gpu = pkv_gpu_at(i);
        if (!cli_is_listed(gpu->name, only))
            continue;
        pkv_text_fmt(out, "%-15s", gpu->name);
        pkv_text_fmt(out, " %15s B by nvidia-smi",
                     gpu->nvml_bytes > 0 ? pkv_format_count(gpu->nvml_bytes, digits) : "?");
        if (gpu->cuda_gib_hundredths > 0)
            pkv_text_fmt(out, ", programs see %3u.%02u GiB", gpu->cuda_gib_hundredths / 100,
                         gpu->cuda_gib_hundredths % 100);
        else
            pkv_text_add(out, ", programs see    ?   GiB");
        pkv_text_fmt(out, "  [%s]\n", gpu->source);
    }
}

static const char *name_at(size_t i)
{
    return i < pkv_gpu_count() ? pkv_gpu_at(i)->name : NULL;
}

static enum cli_exit run(int argc, char **argv)
{
    static const struct cli_listing listing = {"GPU", name_at, write_json, write_text};
    return cli_list(&cli_gpus, argc, argv, &listing);
}

const struct cli_command cli_gpus = {
    .name = "gpus",
    .summary = "the GPUs whose memory is known by name",
    .description =
        "Lists the GPUs that `pagedkv size --gpu` knows: what nvidia-smi shows, and what programs are "
        "told, which is about half a GiB less and of which engines take their share. Neither is the "
        "size in the name. What is not known is a question mark, in JSON 0.",
    .examples = "pagedkv gpus\npagedkv gpus --json\n",
    .arguments = {{"NAME", "only this GPU", true}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
