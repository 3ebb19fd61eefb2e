/*
 * completion.c - bash completion, made from the tables when the program is built.
 */
#include "cli.h"

static void options_of(struct pkv_text *out, const struct cli_command *command)
{
    pkv_text_fmt(out, "    %s) words='--help", command->name);
    for (size_t i = 0; i < command->num_options; i++)
        pkv_text_fmt(out, " --%s", command->options[i].name);
    pkv_text_add(out, "' ;;\n");
}

void cli_completion(struct pkv_text *out)
{
    pkv_text_add(out, "# bash completion for pagedkv " PKV_VERSION "\n_pagedkv()\n{\n"
                      "    local word=${COMP_WORDS[COMP_CWORD]} words=''\n"
                      "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='--help --version");
    for (size_t i = 0; i < cli_num_commands; i++)
        pkv_text_fmt(out, " %s", cli_commands[i]->name);
    pkv_text_add(out, "'\n        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                      "        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < cli_num_commands; i++)
        options_of(out, cli_commands[i]);
    pkv_text_add(out, "    esac\n    case $word in\n"
                      "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
                      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\n"
                      "complete -o filenames -F _pagedkv pagedkv\n");
}
