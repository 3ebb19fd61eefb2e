/*
 * cmd_models.c - `pagedkv models`: the models whose sizes are known by name.
 */
#include <inttypes.h>

#include "commands.h"
#include "listing.h"
#include "pagedkv/sizing.h"

static const struct cli_option options[] = {CLI_LISTING_OPTIONS};

/* All layers, bf16, one rank. */
static uint64_t position_bytes(const struct pkv_kv_model *model, uint64_t *out_growing)
{
    struct pkv_kv_config config = {.dtype = PKV_KV_BF16, .block_size = 16, .tp = 1, .dcp = 1,
                                   .num_stages = 1, .stage_layers = {model->num_layers}};
    struct pkv_kv_plan plan;
    int result = pkv_kv_plan_make(model, &config, &plan, NULL);
    PKV_ASSERT(result == 0);
    *out_growing = plan.growing_bytes;
    return plan.position_bytes;
}

static void write_one(struct pkv_text *out, size_t i, const char *word, bool json)
{
    const struct pkv_kv_model_info *info = pkv_kv_model_info(i);
    struct pkv_kv_model model;
    uint64_t growing, all;
    bool found = pkv_kv_model_find(info->name, &model);
    PKV_ASSERT(found);
    all = position_bytes(&model, &growing);
    if (!json) {
        pkv_text_fmt(out, "%-26s %7" PRIu64 " B a position at bf16, %7" PRIu64 " growing  %s%s[%s]\n",
                     word, all, growing, info->hf_id, info->hf_id[0] ? " " : "", info->source);
        return;
    }
    cli_json_pair(out, "name", word);
    pkv_text_add(out, ", ");
    cli_json_pair(out, "hf_id", info->hf_id);
    pkv_text_fmt(out, ", \"verified\": %s, \"num_layers\": %u, \"bf16_position_bytes\": %" PRIu64
                 ", \"bf16_growing_position_bytes\": %" PRIu64 ", ",
                 info->verified ? "true" : "false", model.num_layers, all, growing);
    cli_json_pair(out, "source", info->source);
    pkv_text_add(out, "}");
}

static void write_json(struct pkv_text *out, const char *only)
{
    char word[PKV_KV_NAME_SIZE];
    for (size_t i = 0, before = 0; i < pkv_kv_model_count(); i++) {
        pkv_kv_model_word(pkv_kv_model_info(i)->name, word);
        if (!cli_is_listed(word, only))
            continue;
        pkv_text_add(out, before++ > 0 ? ",\n  {" : "[\n  {");
        write_one(out, i, word, true);
    }
    pkv_text_add(out, "\n]\n");
}

static void write_text(struct pkv_text *out, const char *only)
{
    char word[PKV_KV_NAME_SIZE];
    for (size_t i = 0; i < pkv_kv_model_count(); i++) {
        pkv_kv_model_word(pkv_kv_model_info(i)->name, word);
        if (cli_is_listed(word, only))
            write_one(out, i, word, false);
    }
}

/* Good until the next call. */
static const char *name_at(size_t i)
{
    static char word[PKV_KV_NAME_SIZE];
    if (i >= pkv_kv_model_count())
        return NULL;
    pkv_kv_model_word(pkv_kv_model_info(i)->name, word);
    return word;
}

static enum cli_exit run(int argc, char **argv)
{
    static const struct cli_listing listing = {"model", name_at, write_json, write_text};
    return cli_list(&cli_models, argc, argv, &listing);
}

const struct cli_command cli_models = {
    .name = "models",
    .summary = "the models whose KV sizes are known by name",
    .description =
        "Lists the models that `pagedkv size` and the key kv.model know by name: the usual name in "
        "lower case with '-' for spaces, or the Hugging Face id. With --json, \"verified\" is false "
        "where a part of the sizes is recalled or inferred.",
    .examples = "pagedkv models\npagedkv models --json\n",
    .arguments = {{"NAME", "only this model", true}},
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
