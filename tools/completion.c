/*
 * completion.c - bash completion, made from the tables when the program is built.
 */
#include "cli.h"
#include "session.h"
#include "pagedkv/policy.h"
#include "pagedkv/trace.h"

static void options_of(struct pkv_text *out, const struct cli_command *command)
{
    pkv_text_fmt(out, "    %s) words='--help", command->name);
    for (size_t i = 0; i < command->num_options; i++)
        pkv_text_fmt(out, " --%s", command->options[i].name);
    pkv_text_add(out, "' ;;\n");
}

/* What may stand behind an option: words that the registries know. */
static void values_of_options(struct pkv_text *out)
{
    size_t num;
    const struct pkv_preset *const *presets = pkv_preset_list(&num);
    pkv_text_add(out, "    case ${COMP_WORDS[COMP_CWORD-1]} in\n    --preset) words='");
    for (size_t i = 0; i < num; i++)
        pkv_text_fmt(out, " %s", presets[i]->name);
    const struct pkv_trace_format *const *formats = pkv_trace_format_list(&num);
    pkv_text_add(out, "' ;;\n    --format|--to) words='");
    for (size_t i = 0; i < num; i++)
        pkv_text_fmt(out, " %s", formats[i]->name);
    pkv_text_fmt(out, "' ;;\n    --files) words='%s' ;;\n    trace) words='info convert' ;;\n"
                      "    help) words='", cli_file_words);
    for (size_t i = 0; i < cli_num_commands; i++)
        pkv_text_fmt(out, " %s", cli_commands[i]->name);
    pkv_text_add(out, "' ;;\n    esac\n    if [ -n \"$words\" ]; then\n"
                      "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                      "        return\n    fi\n");
}

void cli_completion(struct pkv_text *out)
{
    pkv_text_add(out, "# bash completion for pagedkv " PKV_VERSION "\n_pagedkv()\n{\n"
                      "    local word=${COMP_WORDS[COMP_CWORD]} words=''\n"
                      "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='--help --version");
    for (size_t i = 0; i < cli_num_commands; i++)
        pkv_text_fmt(out, " %s", cli_commands[i]->name);
    pkv_text_add(out, "'\n        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                      "        return\n    fi\n");
    values_of_options(out);
    pkv_text_add(out, "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < cli_num_commands; i++)
        options_of(out, cli_commands[i]);
    pkv_text_add(out, "    esac\n    case $word in\n"
                      "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
                      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\n"
                      "complete -o filenames -F _pagedkv pagedkv\n");
}
