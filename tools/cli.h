/*
 * cli.h - what the commands of the program share.
 *
 * One idea: a command is a table. Its options, their defaults and their texts stand in one const
 * array, and the parser, --help, the man page and the shell completion all read that array, so
 * that none of them can say something the others do not.
 *
 * Only files under tools/ print, exit, read the clock or the environment.
 */
#ifndef PKV_TOOLS_CLI_H
#define PKV_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/out.h"
#include "pagedkv/err.h"
#include "pagedkv/scenario.h"

enum cli_exit {
    CLI_DONE,         /* 0 */
    CLI_DIFFERS,      /* 1: a check or a comparison failed */
    CLI_WRONG,        /* 2: wrong use or wrong input */
    CLI_UNFINISHED    /* 3: interrupted, out of memory, disk full, or nothing can go on */
};

/* Keys given on the command line, in order; they go to the scenario as they stand. */
struct cli_settings {
    struct pkv_setting *items;   /* owned, [num], with their texts */
    size_t num, capacity;
};

/* value is YAML, origin what errors name as its place. 0, or -1 with PKV_ERR_MEMORY */
int cli_settings_add(struct cli_settings *settings, const char *key, size_t key_length,
                     const char *value, const char *origin, struct pkv_err *err);
/* The same with a value that is text whatever it looks like: it is quoted. */
int cli_settings_add_text(struct cli_settings *settings, const char *key, const char *text,
                          const char *origin, struct pkv_err *err);
/* The same with a path, which may be any bytes. */
int cli_settings_add_path(struct cli_settings *settings, const char *key, const char *path,
                          const char *origin, struct pkv_err *err);
/* Move all of `from` behind those of `into`. */
int cli_settings_append(struct cli_settings *into, struct cli_settings *from,
                        struct pkv_err *err);
void cli_settings_free(struct cli_settings *settings);

enum cli_kind {
    CLI_SWITCH,     /* the bool at `offset` becomes true */
    CLI_WORD,       /* the const char * at `offset` becomes the argument */
    CLI_COUNT,      /* the uint64_t at `offset` becomes the argument, 1 or more */
    CLI_KEY,        /* `key` is set to the argument, a number, in the cli_settings at `offset` */
    CLI_KEY_TEXT,   /* the same, the argument being text */
    CLI_KEY_FIXED,  /* `key` is set to `value`; no argument */
    CLI_APPLY       /* apply() says what it does */
};

struct cli_option {
    const char *name;        /* without the dashes */
    char letter;             /* 0 = none */
    const char *arg;         /* what --help calls its argument; NULL = takes none */
    const char *fallback;    /* what holds when it is left out, for people; NULL = nothing to say */
    const char *help;        /* one sentence without a full stop */
    enum cli_kind kind;
    size_t offset;           /* in the command's own struct of values */
    const char *key, *value;
    int (*apply)(void *values, const char *arg, struct pkv_err *err);
};

struct cli_argument {
    const char *name, *help;   /* a name that ends with "..." is that of the last, which may be many */
    bool optional;
};
#define CLI_MAX_ARGUMENTS 3u
#define CLI_MAX_WORDS 12u

struct cli_command {
    const char *name;
    const char *summary;                       /* one line, no full stop */
    const char *description;                   /* paragraphs, parted by an empty line */
    const char *examples;                      /* one command a line */
    struct cli_argument arguments[CLI_MAX_ARGUMENTS + 1];   /* ends with a NULL name */
    const struct cli_option *options;          /* [num_options]; --help is everybody's */
    size_t num_options;
    enum cli_exit (*run)(int argc, char **argv);   /* argv[0] is the command's name */
};

/* All commands, in the order of --help. */
extern const struct cli_command *const cli_commands[];
extern const size_t cli_num_commands;
const struct cli_command *cli_find_command(const char *name);   /* NULL = none */
enum cli_exit cli_unknown_command(const char *name);

/* The words that are not options, [num]; borrowed from argv. */
struct cli_args {
    const char *words[CLI_MAX_WORDS];
    size_t num;
    enum cli_exit exit;      /* when cli_parse() says false: the status to end with */
};

/* Read a command line into the command's values.
 *   returns  true to go on; false when help was printed or an error was (see args->exit) */
bool cli_parse(const struct cli_command *command, int argc, char **argv, void *values,
               struct cli_args *args);

/* Print "file:line:column: sentence" on stderr; the exit status that this kind of error means. */
enum cli_exit cli_report(const struct pkv_err *err);
/* A sentence of the program on stderr; names in it are shown as pkv_text_visible() does. */
void cli_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for wrong use of `command` (NULL = of the program). */
enum cli_exit cli_wrong_use(const struct cli_command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Write to stdout; a full disk is CLI_UNFINISHED. */
enum cli_exit cli_write(const char *text, size_t length);
/* The same, and free the text. */
enum cli_exit cli_print(struct pkv_text *text);

/* Words of text and a newline, broken before `width`, the next lines from column `indent` on. `column`
 * is where we are; unless that is `indent`, a blank comes first. An empty line parts paragraphs. */
void cli_wrap(struct pkv_text *out, const char *text, unsigned indent, unsigned column,
              unsigned width);

/* Texts made from the tables. */
void cli_help(struct pkv_text *out, const struct cli_command *command);
void cli_help_program(struct pkv_text *out);
void cli_man(struct pkv_text *out, const struct cli_command *command);   /* NULL = the program */
void cli_completion(struct pkv_text *out);   /* for bash */

/* Exit codes in words, one line each. */
extern const char *const cli_exit_texts[4];

#endif
