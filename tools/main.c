/*
 * main.c - finds the command and hands it the rest of the line.
 *
 * Every command is a row of the table below; nothing else in the program knows them by name.
 */
#include <signal.h>
#include <string.h>

#include "base/nearest.h"
#include "cli.h"
#include "commands.h"
#include "man.h"

const struct cli_command *const cli_commands[] = {
    &cli_run, &cli_replay, &cli_compare, &cli_report_command, &cli_explain, &cli_conform, &cli_diff,
    &cli_waste, &cli_trace, &cli_gen, &cli_synth, &cli_size, &cli_policies, &cli_presets, &cli_models,
    &cli_gpus, &cli_formats, &cli_help_command,
};
const size_t cli_num_commands = sizeof cli_commands / sizeof *cli_commands;

const struct cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < cli_num_commands; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

static enum cli_exit show_help(FILE *stream)
{
    struct pkv_text text = {0};
    cli_help_program(&text);
    if (stream == stdout)
        return cli_print(&text);
    fputs(text.text ? text.text : "", stream);
    pkv_text_free(&text);
    return CLI_WRONG;
}

static enum cli_exit show_version(void)
{
    struct pkv_text text = {0};
    pkv_text_fmt(&text, "pagedkv %s\n", PKV_VERSION);
    return cli_print(&text);
}

/* For the build and for packagers: the page of a command, of "files" or "scenario"; "pagedkv" is
 * the program's own. */
static enum cli_exit show_man(const char *name)
{
    const struct cli_command *command = cli_find_command(name);
    struct pkv_text text = {0};
    if (strcmp(name, "files") == 0 || strcmp(name, "scenario") == 0) {
        (name[0] == 'f' ? man_files : man_scenario)(&text);
        return cli_print(&text);
    }
    if (command == NULL && strcmp(name, "pagedkv") != 0)
        return cli_wrong_use(NULL, "no manual page for '%s'", name);
    cli_man(&text, command);
    return cli_print(&text);
}

static enum cli_exit show_completion(const char *shell)
{
    struct pkv_text text = {0};
    if (strcmp(shell, "bash") != 0)
        return cli_wrong_use(NULL, "completion is made for bash, not for '%s'", shell);
    cli_completion(&text);
    return cli_print(&text);
}

enum cli_exit cli_unknown_command(const char *word)
{
    const char *names[sizeof cli_commands / sizeof *cli_commands];
    char hint[PKV_SUGGESTION_SIZE];
    for (size_t i = 0; i < cli_num_commands; i++)
        names[i] = cli_commands[i]->name;
    return cli_wrong_use(NULL, "unknown command '%s'%s", word,
                         pkv_suggest(hint, word, "", names, cli_num_commands));
}

static enum cli_exit unknown(const char *word)
{
    if (word[0] == '-')
        return cli_wrong_use(NULL, "unknown option %s before the command; the program itself has "
                             "only --help and --version", word);
    return cli_unknown_command(word);
}

static enum cli_exit go(int argc, char **argv)
{
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return show_help(stdout);
    if (strcmp(word, "--version") == 0)
        return show_version();
    if (strcmp(word, "--man") == 0 && argc == 3)
        return show_man(argv[2]);
    if (strcmp(word, "--completion") == 0 && argc == 3)
        return show_completion(argv[2]);
    const struct cli_command *command = cli_find_command(word);
    return command != NULL ? command->run(argc - 1, argv + 1) : unknown(word);
}

int main(int argc, char **argv)
{
    /* A limit on the size of files is then an error of write(), as a full disk is. */
    signal(SIGXFSZ, SIG_IGN);
    return (int)(argc < 2 ? show_help(stderr) : go(argc, argv));
}
