/*
 * man.c - manual pages, made from the tables when the program is built.
 */
#include <ctype.h>
#include <string.h>

#include "cli.h"
#include "man.h"

/* Text of a page: backslashes doubled, hyphens that are minus signs, and no line that begins with
 * a control character. An empty line parts paragraphs. */
static void plain(struct pkv_text *out, const char *text)
{
    bool line_begins = true;
    for (const char *c = text; *c != 0; c++) {
        if (*c == '\n') {
            pkv_text_add(out, "\n.PP\n");
            c += strspn(c, "\n") - 1;
            line_begins = true;
            continue;
        }
        if (line_begins && (*c == '.' || *c == '\''))
            pkv_text_add(out, "\\&");
        if (*c == '\\')
            pkv_text_add(out, "\\e");
        else if (*c == '-')
            pkv_text_add(out, "\\-");
        else
            pkv_text_bytes(out, c, 1);
        line_begins = false;
    }
}

void man_line(struct pkv_text *out, const char *text)
{
    plain(out, text);
    pkv_text_add(out, "\n");
}

void man_heading(struct pkv_text *out, const char *name, int section)
{
    pkv_text_add(out, ".TH PAGEDKV");
    if (name != NULL)
        pkv_text_add(out, "\\-");
    for (const char *c = name != NULL ? name : ""; *c != 0; c++)
        pkv_text_fmt(out, "%c", toupper((unsigned char)*c));
    pkv_text_fmt(out, " %d", section);
    pkv_text_add(out, " \"\" \"pagedkv " PKV_VERSION "\" \"pagedkv\"\n.SH NAME\npagedkv");
    if (name != NULL)
        pkv_text_fmt(out, "\\-%s", name);
    pkv_text_add(out, " \\- ");
}

void man_facts(struct pkv_text *out, const char *heading, const char *intro,
               const struct man_fact *facts, size_t num)
{
    pkv_text_fmt(out, ".SH %s\n", heading);
    if (intro != NULL)
        man_line(out, intro);
    for (size_t i = 0; i < num; i++) {
        pkv_text_add(out, ".TP\n\\fB");
        plain(out, facts[i].name);
        pkv_text_add(out, "\\fR\n");
        man_line(out, facts[i].text);
    }
}

static void option(struct pkv_text *out, const struct cli_option *o)
{
    pkv_text_add(out, ".TP\n");
    if (o->letter != 0)
        pkv_text_fmt(out, "\\fB\\-%c\\fR, ", o->letter);
    pkv_text_add(out, "\\fB\\-\\-");
    plain(out, o->name);
    pkv_text_add(out, "\\fR");
    if (o->arg != NULL)
        pkv_text_fmt(out, " \\fI%s\\fR", o->arg);
    pkv_text_add(out, "\n");
    plain(out, o->help);
    pkv_text_add(out, ".");
    if (o->fallback != NULL) {
        pkv_text_add(out, " Default: ");
        plain(out, o->fallback);
        pkv_text_add(out, ".");
    }
    pkv_text_add(out, "\n");
}

static void exit_status(struct pkv_text *out)
{
    pkv_text_add(out, ".SH EXIT STATUS\n");
    for (unsigned i = 0; i < 4; i++) {
        pkv_text_fmt(out, ".TP\n\\fB%u\\fR\n", i);
        man_line(out, cli_exit_texts[i]);
    }
}

static void examples(struct pkv_text *out, const char *text)
{
    pkv_text_add(out, ".SH EXAMPLES\n.nf\n");
    for (; *text != 0; text += strcspn(text, "\n") + 1) {
        struct pkv_text example = {0};
        pkv_text_bytes(&example, text, strcspn(text, "\n"));
        man_line(out, example.text != NULL ? example.text : "");
        pkv_text_free(&example);
    }
    pkv_text_add(out, ".fi\n");
}

static void page(struct pkv_text *out, const struct cli_command *command)
{
    man_heading(out, command->name, 1);
    man_line(out, command->summary);
    pkv_text_fmt(out, ".SH SYNOPSIS\n\\fBpagedkv %s\\fR", command->name);
    for (const struct cli_argument *a = command->arguments; a->name != NULL; a++)
        pkv_text_fmt(out, a->optional ? " [\\fI%s\\fR]" : " \\fI%s\\fR", a->name);
    pkv_text_add(out, command->num_options > 0 ? " [\\fIOPTION\\fR]...\n" : "\n");
    pkv_text_add(out, ".SH DESCRIPTION\n");
    man_line(out, command->description);
    for (const struct cli_argument *a = command->arguments; a->name != NULL; a++) {
        pkv_text_fmt(out, ".TP\n\\fI%s\\fR\n", a->name);
        man_line(out, a->help);
    }
    if (command->num_options > 0)
        pkv_text_add(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < command->num_options; i++)
        option(out, &command->options[i]);
    examples(out, command->examples);
    exit_status(out);
    pkv_text_add(out, ".SH SEE ALSO\n\\fBpagedkv\\fR(1), \\fBpagedkv\\-files\\fR(5), "
                      "\\fBpagedkv\\-scenario\\fR(5)\n");
}

static void program_page(struct pkv_text *out)
{
    man_heading(out, NULL, 1);
    man_line(out, "replay LLM-serving traffic on an exact paged KV cache");
    pkv_text_add(out, ".SH SYNOPSIS\n\\fBpagedkv\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR]... "
                      "[\\fIOPTION\\fR]...\n.SH DESCRIPTION\n");
    man_line(out, "Runs request traces and synthetic traffic on a fixed number of KV blocks under a "
              "scheduler that decides step by step as vLLM's does, and shows free blocks, the "
              "waiting queue and preemptions at every step. Time is virtual; the same input gives "
              "the same bytes.");
    pkv_text_add(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < cli_num_commands; i++) {
        pkv_text_fmt(out, ".TP\n\\fB%s\\fR\n", cli_commands[i]->name);
        man_line(out, cli_commands[i]->summary);
    }
    pkv_text_add(out, ".SH PYTHON AND NOTEBOOKS\n");
    man_line(out, "The module pagedkv (python3-numpy; import pagedkv) runs scenarios by the shared library "
              "and gives steps and requests as NumPy arrays; pydoc pagedkv is its manual.");
    exit_status(out);
    pkv_text_add(out, ".SH SEE ALSO\n");
    for (size_t i = 0; i < cli_num_commands; i++)
        pkv_text_fmt(out, "\\fBpagedkv\\-%s\\fR(1),\n", cli_commands[i]->name);
    pkv_text_add(out, "\\fBpagedkv\\-files\\fR(5),\n\\fBpagedkv\\-scenario\\fR(5)\n");
}

void cli_man(struct pkv_text *out, const struct cli_command *command)
{
    if (command != NULL)
        page(out, command);
    else
        program_page(out);
}
