/*
 * live.c - a run as it goes, drawn on the terminal again and again in the same place.
 *
 * A frame goes over the one before it, line by line, so that nothing flickers; the cursor stands below
 * it and is never hidden, so that a program that is killed leaves nothing to mend. When the terminal
 * has changed its size the screen is wiped, as nobody knows where the lines went.
 */
#include "live.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/out.h"
#include "cli.h"
#include "interrupt.h"
#include "terminal.h"

#define SECOND_NS INT64_C(1000000000)
#define FRAME_NS (SECOND_NS / 10)
#define STEPS_PER_LOOK 64u    /* the clock is read once in so many steps, unless it is slowed down */

void cli_live_begin(struct cli_live *live, struct pkv_metrics *metrics, int64_t pace_ns)
{
    *live = (struct cli_live){
        .on = cli_can_draw(), .pace_ns = pace_ns, .metrics = metrics, .begin_ns = cli_now_ns()};
}

/* Lines of the terminal that a frame may have; 0 when one of this width would not fit. */
static unsigned height_for(unsigned width)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        return 23;
    return size.ws_col >= width && size.ws_row > 1 ? size.ws_row - 1u : 0;
}

/* To where the frame begins. */
static void go_back(const struct cli_live *l, struct pkv_text *out)
{
    if (l->num_lines > 0)
        pkv_text_fmt(out, "\033[%uA\r", l->num_lines);
}

static void put_lines(struct cli_live *l, struct pkv_text *out, const char *text)
{
    l->num_lines = 0;
    while (*text != 0 && l->num_lines < l->height) {
        size_t length = strcspn(text, "\n");
        pkv_text_bytes(out, text, length);
        pkv_text_add(out, "\033[K\n");
        l->num_lines++;
        text += length + (text[length] != 0);
    }
    pkv_text_add(out, "\033[J");
}

static int draw(struct cli_live *l, struct pkv_err *err)
{
    struct pkv_series_point series[PKV_SERIES_POINTS];
    struct pkv_report_style style = cli_style();
    struct pkv_text out = {0};
    unsigned rows = height_for(style.width);
    size_t num = pkv_metrics_series(l->metrics, series, PKV_SERIES_POINTS);
    bool has_moved = l->num_lines > 0 && (l->width != style.width || l->height != rows);
    l->drawn_ns = cli_now_ns();
    l->now.wall_ns = l->drawn_ns - l->begin_ns;
    if (rows == 0)
        return 0;
    char *text = pkv_report_live(&l->now, series, num, &style, err);
    if (text == NULL)
        return -1;
    if (has_moved)
        pkv_text_add(&out, "\033[H\033[2J");
    else
        go_back(l, &out);
    l->width = style.width;
    l->height = rows;
    put_lines(l, &out, text);
    if (!out.failed)
        fwrite(out.text, 1, out.length, stdout);
    fflush(stdout);
    pkv_text_free(&out);
    pkv_report_free(text);
    return 0;
}

/* Let real time catch up with the end of the step, drawing on. */
static int wait_for(struct cli_live *l, int64_t time_ns, struct pkv_err *err)
{
    double seconds = (double)(time_ns - l->now.begin_ns) / (double)l->pace_ns;
    double limit = 1e9;    /* 31 years */
    int64_t due_ns = l->begin_ns + (int64_t)((seconds < limit ? seconds : limit) * 1e9);
    for (;;) {
        int64_t now_ns = cli_now_ns(), left_ns = due_ns - now_ns;
        if (left_ns <= 0 || cli_interrupted())
            return 0;
        if (now_ns - l->drawn_ns >= FRAME_NS && draw(l, err) < 0)
            return -1;
        struct timespec nap = {.tv_nsec = left_ns < FRAME_NS / 2 ? left_ns : FRAME_NS / 2};
        nanosleep(&nap, NULL);
    }
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct cli_live *l = ctx;
    (void)sched;
    if (l->now.num_steps++ == 0)
        l->now.begin_ns = row->time_ns;
    l->now.time_ns = row->time_ns + row->dur_ns;
    l->now.free_blocks = row->free_blocks;
    l->now.used_blocks = row->used_blocks;
    l->now.cached_blocks = row->cached_blocks;
    l->now.running = row->running;
    l->now.waiting = row->waiting;
    l->now.preemptions = row->preemptions_total;
    l->now.output_tokens += (uint64_t)row->output_tokens;
    if (l->pace_ns > 0)
        return wait_for(l, l->now.time_ns, err);
    if (l->now.num_steps % STEPS_PER_LOOK != 0 || cli_now_ns() - l->drawn_ns < FRAME_NS)
        return 0;
    return draw(l, err);
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct cli_live *l = ctx;
    (void)row;
    (void)err;
    l->now.num_ended++;
    return 0;
}

struct pkv_sink cli_live_sink(struct cli_live *live)
{
    return (struct pkv_sink){.request = on_request, .step = on_step, .ctx = live};
}

void cli_live_end(struct cli_live *live)
{
    if (!live->on || live->now.num_steps == 0)
        return;
    draw(live, NULL);
    fputs("\n", stdout);
    live->on = false;
}
