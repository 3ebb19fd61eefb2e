/*
 * help.c - --help, made from the tables.
 */
#include <string.h>

#include "cli.h"

#define WIDTH 80u

void cli_wrap(struct pkv_text *out, const char *text, unsigned indent, unsigned column,
              unsigned width)
{
    bool first = column == indent;
    while (*text != 0) {
        if (*text == '\n') {
            pkv_text_fmt(out, "\n\n%*s", (int)indent, "");
            text += strspn(text, "\n");
            column = indent;
            first = true;
        }
        size_t length = strcspn(text, " \n");
        if (!first && column + 1 + length > width) {
            pkv_text_fmt(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        pkv_text_add(out, first ? "" : " ");
        pkv_text_bytes(out, text, length);
        column += (unsigned)length + !first;
        first = false;
        text += length;
        text += *text == ' ';
    }
    pkv_text_add(out, "\n");
}

static void wrap(struct pkv_text *out, const char *text, unsigned indent)
{
    cli_wrap(out, text, indent, indent, WIDTH);
}

/* "  left   text", the text in its own column. */
static void row(struct pkv_text *out, const char *left, unsigned indent, const char *text)
{
    unsigned length = (unsigned)strlen(left) + 2;
    pkv_text_fmt(out, "  %s", left);
    if (length + 2 > indent)
        pkv_text_fmt(out, "\n%*s", (int)indent, "");
    else
        pkv_text_fmt(out, "%*s", (int)(indent - length), "");
    wrap(out, text, indent);
}

static void option(struct pkv_text *out, const struct cli_option *o)
{
    char left[64];
    struct pkv_text text = {0};
    char dash = o->letter ? '-' : ' ', letter = o->letter ? o->letter : ' ';
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", dash, letter, o->letter ? ", " : "  ", o->name,
             o->arg ? " " : "", o->arg ? o->arg : "");
    pkv_text_add(&text, o->help);
    if (o->fallback != NULL)
        pkv_text_fmt(&text, " (default: %s)", o->fallback);
    row(out, left, 36, text.failed ? o->help : text.text);
    pkv_text_free(&text);
}

static void usage(struct pkv_text *out, const struct cli_command *command)
{
    pkv_text_fmt(out, "usage: pagedkv %s", command->name);
    for (const struct cli_argument *a = command->arguments; a->name != NULL; a++)
        pkv_text_fmt(out, a->optional ? " [%s]" : " %s", a->name);
    pkv_text_add(out, command->num_options > 0 ? " [OPTION]...\n\n" : "\n\n");
}

static void exit_codes(struct pkv_text *out)
{
    char number[8];
    pkv_text_add(out, "\nexit status:\n");
    for (unsigned i = 0; i < 4; i++) {
        snprintf(number, sizeof number, "%u", i);
        row(out, number, 5, cli_exit_texts[i]);
    }
}

void cli_help(struct pkv_text *out, const struct cli_command *command)
{
    static const struct cli_option help = {
        .name = "help", .letter = 'h', .help = "print this text"};
    usage(out, command);
    wrap(out, command->description, 0);
    if (command->arguments[0].name != NULL)
        pkv_text_add(out, "\narguments:\n");
    for (const struct cli_argument *a = command->arguments; a->name != NULL; a++)
        row(out, a->name, 36, a->help);
    pkv_text_add(out, "\noptions:\n");
    for (size_t i = 0; i < command->num_options; i++)
        option(out, &command->options[i]);
    option(out, &help);
    pkv_text_add(out, "\nexamples:\n");
    for (const char *line = command->examples; *line != 0; line += strcspn(line, "\n") + 1) {
        pkv_text_add(out, "  ");
        pkv_text_bytes(out, line, strcspn(line, "\n") + 1);
    }
    exit_codes(out);
}

void cli_help_program(struct pkv_text *out)
{
    pkv_text_add(out, "usage: pagedkv COMMAND [ARGUMENT]... [OPTION]...\n\n");
    wrap(out, "Replays LLM-serving traffic on an exact paged KV-cache pool and scheduler: free "
              "blocks, waiting queue and preemptions at every step.", 0);
    pkv_text_add(out, "\ncommands:\n");
    for (size_t i = 0; i < cli_num_commands; i++)
        row(out, cli_commands[i]->name, 14, cli_commands[i]->summary);
    pkv_text_add(out, "\noptions:\n");
    row(out, "--help", 14, "print this text; `pagedkv COMMAND --help` tells a command's options");
    row(out, "--version", 14, "print the version");
    exit_codes(out);
}
