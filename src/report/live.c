/*
 * live.c - a run that is under way, in some twenty lines: what is now, and plots of what was so far.
 */
#include <string.h>

#include "report/report_private.h"

/* So many columns of a bar for a count of a whole; at least one for what is not 0. */
static size_t share_of(int64_t count, int64_t whole, size_t width)
{
    size_t share = (size_t)((__int128)count * (__int128)width / whole);
    return share == 0 && count > 0 ? 1 : share;
}

static void add_bar(struct page *p, const struct pkv_live *now, int64_t num_blocks)
{
    bool utf8 = p->style->utf8;
    size_t width = p->style->width - NAME_WIDTH - 1;
    size_t used = share_of(now->used_blocks, num_blocks, width);
    size_t cached = share_of(now->cached_blocks, num_blocks, width);
    cached = used + cached > width ? width - used : cached;
    pkv_text_fmt(&p->text, "%-*s", (int)NAME_WIDTH + 1, "blocks");
    page_ink(p, INK_RUNNING);
    page_repeat(p, utf8 ? "█" : "#", used);
    page_ink(p, INK_FREE);
    page_repeat(p, utf8 ? "▒" : "=", cached);
    page_ink(p, INK_FAINT);
    page_repeat(p, utf8 ? "░" : ".", width - used - cached);
    page_ink(p, INK_PLAIN);
    pkv_text_add(&p->text, "\n");
}

/* Cut to the page: a frame's lines must not wrap. */
static void put_line(struct page *p, const char *name, struct pkv_text *t)
{
    size_t room = p->style->width - NAME_WIDTH - 1;
    size_t length = t->length < room ? t->length : room;
    pkv_text_fmt(&p->text, "%-*s%.*s\n", (int)NAME_WIDTH + 1, name, (int)length,
                 t->length > 0 ? t->text : "");
    p->text.failed |= t->failed;
    pkv_text_clear(t);
}

static void add_counts(struct page *p, struct pkv_text *t, const struct pkv_live *now)
{
    add_grouped(t, (uint64_t)now->used_blocks);
    pkv_text_add(t, " used, ");
    add_grouped(t, (uint64_t)now->cached_blocks);
    pkv_text_add(t, " cached, ");
    add_grouped(t, (uint64_t)(now->free_blocks - now->cached_blocks));
    pkv_text_add(t, " empty");
    put_line(p, "", t);
    add_grouped(t, (uint64_t)now->running);
    pkv_text_add(t, " running, ");
    add_grouped(t, (uint64_t)now->waiting);
    pkv_text_add(t, " waiting, ");
    add_grouped(t, now->num_ended);
    pkv_text_add(t, " ended; ");
    add_counted(t, (uint64_t)now->preemptions, "preemption");
    put_line(p, "requests", t);
    add_time(t, now->time_ns);
    pkv_text_add(t, ", ");
    add_counted(t, now->num_steps, "step");
    pkv_text_add(t, ", ");
    add_counted(t, now->output_tokens, "token");
    if (now->wall_ns > 0) {
        pkv_text_add(t, "; ");
        add_rate(t, (double)(now->time_ns - now->begin_ns) / (double)now->wall_ns);
        pkv_text_add(t, " times real time");
    }
    put_line(p, "virtual time", t);
}

char *pkv_report_live(const struct pkv_live *now, const struct pkv_series_point *series,
                      size_t num_points, const struct pkv_report_style *style, struct pkv_err *err)
{
    PKV_ASSERT(style->width >= 40);
    struct page p = {.style = style};
    struct pkv_text t = {0};
    add_bar(&p, now, now->used_blocks + now->free_blocks);
    add_counts(&p, &t, now);
    if (num_points > 0 && series[num_points - 1].end_ns > series[0].begin_ns)
        page_plot_rows(&p, series, num_points, (uint32_t)(now->used_blocks + now->free_blocks));
    pkv_text_free(&t);
    return take_text(&p.text, err);
}
