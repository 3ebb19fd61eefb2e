/*
 * say.c - what the program prints: errors on stderr in one line with their place, results on
 * stdout; and the exit status that goes with each.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char *const cli_exit_texts[4] = {
    "done",
    "a check or a comparison failed",
    "wrong use or wrong input; nothing is left behind",
    ("could not finish: interrupted, out of memory, disk full, or no request can go on; "
     "what was done so far is kept"),
};

static enum cli_exit status_of(enum pkv_err_code code)
{
    switch (code) {
    case PKV_ERR_NONE:        return CLI_DONE;
    case PKV_ERR_INPUT:       return CLI_WRONG;
    case PKV_ERR_AUDIT:       return CLI_DIFFERS;
    case PKV_ERR_MEMORY:
    case PKV_ERR_IO:
    case PKV_ERR_INTERRUPTED: return CLI_UNFINISHED;
    }
    return CLI_UNFINISHED;
}

/* Names in it may hold anything; what would steer a terminal is shown instead. */
static void say_line(const char *program, const char *text)
{
    struct pkv_text line = {0};
    pkv_text_visible(&line, text, strlen(text));
    fprintf(stderr, "%s%s\n", program, line.text != NULL ? line.text : "out of memory");
    pkv_text_free(&line);
}

enum cli_exit cli_report(const struct pkv_err *err)
{
    char line[sizeof err->path + sizeof err->text + 64];
    pkv_err_format(err, line, sizeof line);
    say_line(err->path[0] == 0 ? "pagedkv: " : "", line);
    return status_of(err->code);
}

void cli_complain(const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    say_line("pagedkv: ", text);
}

enum cli_exit cli_wrong_use(const struct cli_command *command, const char *fmt, ...)
{
    char text[512], line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *name = command != NULL ? command->name : "", *gap = command != NULL ? " " : "";
    snprintf(line, sizeof line, "pagedkv%s%s: %s (see pagedkv%s%s --help)", gap, name, text, gap,
             name);
    say_line("", line);
    return CLI_WRONG;
}

enum cli_exit cli_write(const char *text, size_t length)
{
    if (fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0)
        return CLI_DONE;
    if (errno != EPIPE)      /* a reader that has seen enough (head) is no fault of ours */
        fprintf(stderr, "pagedkv: standard output: %s\n", strerror(errno));
    return CLI_UNFINISHED;
}

enum cli_exit cli_print(struct pkv_text *text)
{
    enum cli_exit status = CLI_UNFINISHED;
    if (text->failed)
        fprintf(stderr, "pagedkv: out of memory\n");
    else
        status = cli_write(text->text != NULL ? text->text : "", text->length);
    pkv_text_free(text);
    return status;
}
