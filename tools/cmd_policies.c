/*
 * cmd_policies.c - `pagedkv policies`: the choices a scheduler is made of. Made from the registry,
 * so a new policy needs no edit here.
 */
#include <string.h>

#include "commands.h"
#include "listing.h"
#include "pagedkv/policy.h"

static const struct cli_option options[] = {CLI_LISTING_OPTIONS};

static void write_params_json(struct pkv_text *out, const struct pkv_policy_info *info)
{
    pkv_text_add(out, ", \"params\": [");
    for (size_t i = 0; i < info->num_params; i++) {
        const struct pkv_policy_param *p = &info->params[i];
        char preset[32], min[32], max[32];
        pkv_policy_param_write(p, p->preset, preset, sizeof preset);
        pkv_policy_param_write(p, p->min, min, sizeof min);
        pkv_policy_param_write(p, p->max, max, sizeof max);
        pkv_text_add(out, i > 0 ? ", {" : "{");
        cli_json_pair(out, "name", p->name);
        pkv_text_add(out, ", ");
        cli_json_pair(out, "summary", p->summary);
        pkv_text_fmt(out, ", \"default\": %s, \"min\": %s, \"max\": %s}", preset, min, max);
    }
    pkv_text_add(out, "]");
}

static void write_policy_json(struct pkv_text *out, enum pkv_choice choice,
                              const struct pkv_policy_info *info)
{
    pkv_text_add(out, "  {");
    cli_json_pair(out, "choice", pkv_choice_name(choice));
    pkv_text_add(out, ", ");
    cli_json_pair(out, "name", info->name);
    pkv_text_add(out, ", ");
    cli_json_pair(out, "summary", info->summary);
    pkv_text_add(out, ", ");
    cli_json_pair(out, "source", info->source);
    write_params_json(out, info);
    pkv_text_add(out, "}");
}

static void write_json(struct pkv_text *out)
{
    const char *comma = "[\n";
    for (enum pkv_choice choice = 0; choice < PKV_CHOICE_COUNT; choice++) {
        size_t num;
        const struct pkv_policy_info *const *list = pkv_policy_list(choice, &num);
        for (size_t i = 0; i < num; i++) {
            pkv_text_add(out, comma);
            write_policy_json(out, choice, list[i]);
            comma = ",\n";
        }
    }
    pkv_text_add(out, "\n]\n");
}

static void write_policy(struct pkv_text *out, unsigned name_width, const struct pkv_policy_info *info)
{
    cli_list_item(out, 2, name_width, info->name, info->summary, info->source);
    for (size_t i = 0; i < info->num_params; i++) {
        const struct pkv_policy_param *p = &info->params[i];
        struct pkv_text note = {0};
        char preset[32];
        pkv_policy_param_write(p, p->preset, preset, sizeof preset);
        pkv_text_fmt(&note, "%s (%s): %s", p->name, preset, p->summary);
        cli_list_note(out, 2, name_width, note.text ? note.text : "");
        out->failed |= note.failed;
        pkv_text_free(&note);
    }
}

/* Of the longest word of a choice. */
static unsigned widest(const struct pkv_policy_info *const *list, size_t num)
{
    size_t width = 0;
    for (size_t i = 0; i < num; i++)
        if (strlen(list[i]->name) > width)
            width = strlen(list[i]->name);
    return (unsigned)width;
}

static void write_text(struct pkv_text *out)
{
    for (enum pkv_choice choice = 0; choice < PKV_CHOICE_COUNT; choice++) {
        size_t num;
        const struct pkv_policy_info *const *list = pkv_policy_list(choice, &num);
        const char *name = pkv_choice_name(choice);
        pkv_text_fmt(out, "%s:", name);
        cli_list_rest(out, 2, (unsigned)strlen(name) + 1, pkv_choice_summary(choice));
        for (size_t i = 0; i < num; i++)
            write_policy(out, widest(list, num), list[i]);
    }
}

static enum cli_exit run(int argc, char **argv)
{
    return cli_list(&cli_policies, argc, argv, write_json, write_text);
}

const struct cli_command cli_policies = {
    .name = "policies",
    .summary = "the policies there are, choice by choice",
    .description =
        "Lists every choice a scheduler is made of and the policies to choose from, the one that "
        "preset vllm uses first. A policy is named in the scheduler section of a scenario "
        "(scheduler: {admit: first_chunk}) or by --set scheduler.admit=first_chunk; its "
        "parameters are keys beside it.",
    .examples = "pagedkv policies\npagedkv policies --json\n",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .run = run,
};
