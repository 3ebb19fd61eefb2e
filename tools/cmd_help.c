/*
 * cmd_help.c - `pagedkv help [COMMAND]`.
 */
#include "commands.h"

static enum cli_exit run(int argc, char **argv)
{
    struct pkv_text text = {0};
    struct cli_args args;
    if (!cli_parse(&cli_help_command, argc, argv, NULL, &args))
        return args.exit;
    if (args.num == 0) {
        cli_help_program(&text);
        return cli_print(&text);
    }
    const struct cli_command *command = cli_find_command(args.words[0]);
    if (command == NULL)
        return cli_unknown_command(args.words[0]);
    cli_help(&text, command);
    return cli_print(&text);
}

const struct cli_command cli_help_command = {
    .name = "help",
    .summary = "what the program or a command does",
    .description = "Prints the commands, or the arguments and options of one of them.",
    .examples = "pagedkv help replay\n",
    .arguments = {{"COMMAND", "a command of pagedkv", true}},
    .run = run,
};
