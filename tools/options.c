/*
 * options.c - reads a command line by the command's table of options.
 *
 * getopt_long does the cutting. It would also take "--block" for "--block-size"; here an option is
 * written whole or it is unknown, so that a later version may add the shorter word without
 * changing what today's scripts mean.
 */
#include <getopt.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "cli.h"
#include "foreign.h"

#define MAX_OPTIONS 48u
#define FIRST_VALUE 256    /* of getopt's values: above every letter; 1 is a word, no option */
#define HELP_VALUE (FIRST_VALUE + (int)MAX_OPTIONS)

struct getopt_tables {
    struct option longs[MAX_OPTIONS + 2];
    char shorts[2 * MAX_OPTIONS + 8];
};

static void make_tables(const struct cli_command *command, struct getopt_tables *t)
{
    size_t n = 0, s = 0;
    memset(t, 0, sizeof *t);
    PKV_ASSERT(command->num_options <= MAX_OPTIONS);
    t->shorts[s++] = '-';   /* words come in their place, as value 1 */
    t->shorts[s++] = ':';   /* a missing argument is told apart from an unknown option */
    t->shorts[s++] = 'h';
    for (; n < command->num_options; n++) {
        const struct cli_option *o = &command->options[n];
        t->longs[n].name = o->name;
        t->longs[n].has_arg = o->arg != NULL ? required_argument : no_argument;
        t->longs[n].val = FIRST_VALUE + (int)n;
        if (o->letter != 0) {
            t->shorts[s++] = o->letter;
            if (o->arg != NULL)
                t->shorts[s++] = ':';
        }
    }
    t->longs[n].name = "help";
    t->longs[n].val = HELP_VALUE;
}

/* Is `given` (as typed, maybe with "=value") the option `name`, written whole? */
static bool is_whole(const char *given, const char *name)
{
    size_t length = strlen(name);
    return strncmp(given, "--", 2) == 0 && strncmp(given + 2, name, length) == 0 &&
           (given[2 + length] == 0 || given[2 + length] == '=');
}

static const struct cli_option *find_whole(const struct cli_command *command, const char *given)
{
    for (size_t i = 0; i < command->num_options; i++)
        if (is_whole(given, command->options[i].name))
            return &command->options[i];
    return NULL;
}

/* Whose it is, and how a scenario's own keys are said everywhere. */
static const struct cli_option *find_elsewhere(const char *given, const struct cli_command **out_command)
{
    const struct cli_option *found = NULL;
    for (size_t i = 0; i < cli_num_commands && found == NULL; i++) {
        found = find_whole(cli_commands[i], given);
        *out_command = cli_commands[i];
    }
    return found;
}

static bool takes_keys(const struct cli_command *command)
{
    return find_whole(command, "--set") != NULL;
}

static enum cli_exit foreign_option(const struct cli_command *command, const struct cli_command *owner,
                                    const struct cli_option *o)
{
    if (o->key == NULL || !takes_keys(command))
        return cli_wrong_use(command, "unknown option --%s; it is one of pagedkv %s", o->name, owner->name);
    return cli_wrong_use(command, "unknown option --%s; it is one of pagedkv %s, here say --set %s=%s",
                         o->name, owner->name, o->key, o->value != NULL ? o->value : o->arg);
}

static const struct cli_option *find_named(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; name != NULL && i < command->num_options; i++)
        if (strcmp(command->options[i].name, name) == 0)
            return &command->options[i];
    return NULL;
}

/* A flag of an engine. returns whether the command has something that says the same. */
static bool foreign_flag(const struct cli_command *command, const char *given)
{
    const struct cli_foreign *f = cli_foreign_find(given);
    const struct cli_option *ours = f != NULL ? find_named(command, f->option) : NULL;
    int length = (int)strcspn(given, "=");
    if (ours != NULL)
        cli_wrong_use(command, "unknown option %.*s; here it is --%s%s%s", length, given, ours->name,
                      ours->arg != NULL ? " " : "", ours->arg != NULL ? ours->arg : "");
    else if (f != NULL && f->key != NULL && takes_keys(command))
        cli_wrong_use(command, "unknown option %.*s; here say --set %s%s%s", length, given, f->key,
                      f->note != NULL ? "; " : "", f->note != NULL ? f->note : "");
    else if (f != NULL && f->note != NULL)
        cli_wrong_use(command, "unknown option %.*s; %s", length, given, f->note);
    else
        return false;
    return true;
}

static enum cli_exit unknown_option(const struct cli_command *command, const char *given)
{
    const char *names[MAX_OPTIONS + 1];
    char word[64];
    size_t n = 0;
    if (find_whole(command, given) != NULL || is_whole(given, "help"))
        return cli_wrong_use(command, "option %.*s takes no value", (int)strcspn(given, "="),
                             given);
    for (; n < command->num_options; n++)
        names[n] = command->options[n].name;
    names[n++] = "help";
    if (strncmp(given, "--", 2) != 0)
        return cli_wrong_use(command, "unknown option -%c", optopt);
    const struct cli_command *owner = NULL;
    if (foreign_flag(command, given))
        return CLI_WRONG;
    const struct cli_option *elsewhere = find_elsewhere(given, &owner);
    if (elsewhere != NULL)
        return foreign_option(command, owner, elsewhere);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(given + 2, "="), given + 2);
    char hint[PKV_SUGGESTION_SIZE];
    return cli_wrong_use(command, "unknown option --%s%s", word,
                         pkv_suggest(hint, word, "--", names, n));
}

static int set_count(uint64_t *out, const struct cli_option *o, const char *arg,
                     struct pkv_err *err)
{
    const char *why = NULL;
    if (pkv_parse_u64(arg, strlen(arg), UINT64_MAX, out, &why) < 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--%s: '%s' %s", o->name, arg, why);
    if (*out == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "--%s: must be 1 or more, not 0", o->name);
    return 0;
}

/* Errors about the key will name the option as it is typed. */
static int set_key(struct cli_settings *settings, const struct cli_option *o, const char *value,
                   struct pkv_err *err)
{
    char origin[64];
    snprintf(origin, sizeof origin, "--%s", o->name);
    return o->kind == CLI_KEY_TEXT
               ? cli_settings_add_text(settings, o->key, value, origin, err)
               : cli_settings_add(settings, o->key, strlen(o->key), value, origin, err);
}

static int apply(const struct cli_option *o, void *values, const char *arg, struct pkv_err *err)
{
    void *field = (char *)values + o->offset;
    switch (o->kind) {
    case CLI_SWITCH:    *(bool *)field = true;                   return 0;
    case CLI_WORD:      *(const char **)field = arg;             return 0;
    case CLI_COUNT:     return set_count(field, o, arg, err);
    case CLI_KEY:
    case CLI_KEY_TEXT:  return set_key(field, o, arg, err);
    case CLI_KEY_FIXED: return set_key(field, o, o->value, err);
    case CLI_APPLY:     return o->apply(values, arg, err);
    }
    return 0;
}

static const struct cli_option *by_value(const struct cli_command *command, int value)
{
    if (value >= FIRST_VALUE)
        return &command->options[value - FIRST_VALUE];
    for (size_t i = 0; i < command->num_options; i++)
        if (command->options[i].letter == value)
            return &command->options[i];
    return NULL;
}

/* getopt_long has left in optopt which one it is. */
static enum cli_exit missing_argument(const struct cli_command *command, const char *given)
{
    const struct cli_option *o = by_value(command, optopt);
    if (o == NULL || (optopt >= FIRST_VALUE && !is_whole(given, o->name)))
        return unknown_option(command, given);
    return cli_wrong_use(command, "option %s needs a value: %s %s", given, given, o->arg);
}

static bool stop(struct cli_args *args, enum cli_exit status)
{
    args->exit = status;
    return false;
}

static bool show_help(const struct cli_command *command, struct cli_args *args)
{
    struct pkv_text text = {0};
    cli_help(&text, command);
    return stop(args, cli_print(&text));
}

/* Is there an argument for one more word? */
static bool takes_more(const struct cli_command *command, size_t num_words)
{
    size_t num = 0, length;
    while (command->arguments[num].name != NULL)
        num++;
    length = num > 0 ? strlen(command->arguments[num - 1].name) : 0;
    return num_words < num || (length > 3 && num_words < CLI_MAX_WORDS &&
                               strcmp(command->arguments[num - 1].name + length - 3, "...") == 0);
}

static bool take_word(const struct cli_command *command, struct cli_args *args, const char *word)
{
    if (!takes_more(command, args->num))
        return stop(args, cli_wrong_use(command, "'%s' is one argument too many", word));
    args->words[args->num++] = word;
    return true;
}

/* One result of getopt_long; given is the word it came from. */
static bool take(const struct cli_command *command, void *values, struct cli_args *args,
                 const char *given, int value)
{
    struct pkv_err err = {0};
    if (value == 1)
        return take_word(command, args, optarg);
    if (value == 'h' || (value == HELP_VALUE && is_whole(given, "help")))
        return show_help(command, args);
    if (value == ':')
        return stop(args, missing_argument(command, given));
    const struct cli_option *o = value == HELP_VALUE ? NULL : by_value(command, value);
    if (o == NULL || (value >= FIRST_VALUE && !is_whole(given, o->name)))
        return stop(args, unknown_option(command, given));
    if (apply(o, values, optarg, &err) < 0)
        return stop(args, cli_report(&err));
    return true;
}

bool cli_parse(const struct cli_command *command, int argc, char **argv, void *values,
               struct cli_args *args)
{
    struct getopt_tables tables;
    memset(args, 0, sizeof *args);
    make_tables(command, &tables);
    opterr = 0;
    optind = 1;
    for (;;) {
        const char *given = optind < argc ? argv[optind] : "";
        int value = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
        if (value == -1)
            break;
        if (!take(command, values, args, given, value))
            return false;
    }
    for (int i = optind; i < argc; i++)     /* behind a "--" */
        if (!take_word(command, args, argv[i]))
            return false;
    size_t num = args->num < CLI_MAX_ARGUMENTS ? args->num : CLI_MAX_ARGUMENTS;
    const struct cli_argument *next = &command->arguments[num];
    if (next->name != NULL && !next->optional)
        return stop(args, cli_wrong_use(command, "%s is missing: %s", next->name, next->help));
    return true;
}
