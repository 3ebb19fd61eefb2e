/*
 * terminal.c - what can be shown where, and the progress line.
 *
 * The total of a run is not known while its trace is read, so the line says how far it has come
 * and not how far there is to go.
 */
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

#define SECOND_NS INT64_C(1000000000)
#define STEPS_PER_LOOK 64u    /* the clock is read once in so many steps */
#define MAX_WIDTH 400u

static const char *environment(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != 0 ? text : NULL;
}

static unsigned width(void)
{
    const char *columns = environment("COLUMNS");
    struct winsize size;
    uint64_t n = 0;
    if (columns != NULL && pkv_parse_u64(columns, strlen(columns), MAX_WIDTH, &n, NULL) == 0 &&
        n >= 40)
        return (unsigned)n;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col < MAX_WIDTH ? size.ws_col : MAX_WIDTH;
    return 80;
}

/* The locale's name ends in its character set: "de_DE.UTF-8", "C.utf8". */
static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *locale = environment(names[i]);
        if (locale == NULL)
            continue;
        const char *set = strchr(locale, '.');
        return set != NULL &&
               (strncasecmp(set, ".utf-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
    }
    return false;
}

bool cli_can_draw(void)
{
    const char *term = environment("TERM");
    return isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

static bool has_colour(void)
{
    return cli_can_draw() && environment("NO_COLOR") == NULL;
}

struct pkv_report_style cli_style(void)
{
    return (struct pkv_report_style){
        .width = width(), .utf8 = is_utf8(), .colour = has_colour()};
}

bool cli_is_all_on_terminal(void)
{
    return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

int64_t cli_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

void cli_progress_begin(struct cli_progress *progress, bool wanted)
{
    *progress = (struct cli_progress){.on = wanted && isatty(STDERR_FILENO)};
    progress->begin_ns = progress->last_ns = cli_now_ns();
}

/* Columns that a line on stderr may have: one that went on in the next could not be written over. */
static int line_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col - 1 : 79;
}

static void show(struct cli_progress *p, const struct pkv_step_row *row, int64_t now_ns)
{
    char virtual_time[48], real_time[48], steps[32], ended[32], line[256];
    snprintf(line, sizeof line, "%s of virtual time, %s steps, %s requests ended, %lld waiting, after %s",
             pkv_format_duration(row->time_ns + row->dur_ns, virtual_time, sizeof virtual_time),
             pkv_format_count(p->num_steps, steps), pkv_format_count(p->num_ended, ended),
             (long long)row->waiting,
             pkv_format_duration(now_ns - p->begin_ns, real_time, sizeof real_time));
    fprintf(stderr, "\r%.*s\033[K", line_width(), line);
    fflush(stderr);
    p->shown = true;
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct cli_progress *p = ctx;
    (void)sched;
    (void)err;
    if (++p->num_steps % STEPS_PER_LOOK != 0)
        return 0;
    int64_t now_ns = cli_now_ns();
    if (now_ns - p->begin_ns < SECOND_NS || now_ns - p->last_ns < SECOND_NS / 10)
        return 0;
    p->last_ns = now_ns;
    show(p, row, now_ns);
    return 0;
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct cli_progress *p = ctx;
    (void)row;
    (void)err;
    p->num_ended++;
    return 0;
}

struct pkv_sink cli_progress_sink(struct cli_progress *progress)
{
    return (struct pkv_sink){.request = on_request, .step = on_step, .ctx = progress};
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
