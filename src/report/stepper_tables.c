/*
 * stepper_tables.c - the block tables of running requests, the queue of the waiting, the free queue.
 */
#include "report/stepper_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_LINES 16u      /* of a table, and pieces of a list, that one page shows */
#define MOST_WAITING 10u
#define MOST_SHARED 6u
#define LONGEST_ID 20u
#define LETTER_COLUMNS 5u   /* the columns of a running request */
#define COUNTS_COLUMNS 21u
#define LAST_COLUMNS 11u    /* with the blanks before the next one, as below */
#define NAME_COLUMNS 7      /* "sliding" */
#define GROUP_COLUMNS (NAME_COLUMNS + 2u)
#define BLOCKS_COLUMNS 16u  /* at least, beside the other columns */

/* An id in so many columns; what is longer is cut. */
static void add_cut(struct pkv_text *out, const char *id, size_t columns)
{
    struct pkv_text t = {0};
    size_t used = 0, at = 0;
    pkv_text_visible(&t, id, strlen(id));
    for (; at < t.length; at++) {
        bool begins = ((unsigned char)t.text[at] & 0xc0) != 0x80;
        if (begins && used == columns)
            break;
        used += begins;
    }
    bool is_cut = at < t.length;
    for (size_t dots = 0; is_cut && dots < 3;)   /* the last characters make room */
        dots += ((unsigned char)t.text[--at] & 0xc0) != 0x80;
    pkv_text_bytes(out, t.text, at);
    pkv_text_add(out, is_cut ? "..." : "");
    pkv_text_fmt(out, "%*s", (int)(columns - used), "");
    out->failed |= t.failed;
    pkv_text_free(&t);
}

static size_t wider(size_t columns, const char *id)
{
    size_t length = strlen(id);   /* bytes: at least as many as columns, but for what is escaped */
    length = length < LONGEST_ID ? length : LONGEST_ID;
    return length > columns ? length : columns;
}

static void end_list(struct step_page *p, size_t num, size_t num_shown)
{
    if (num > num_shown)
        pkv_text_fmt(&p->page.text, "  and %zu more\n", num - num_shown);
}

/* ---- running ---- */

/* With several groups each has a line of its own, which begins with what its last block holds. */
static bool names_groups(const struct step_page *p)
{
    return p->tick->num_groups > 1;
}

static void add_counts(struct pkv_text *t, const struct tick_running *r)
{
    char computed[32];
    snprintf(computed, sizeof computed, "%" PRIu32 "/%" PRIu32, r->num_computed, r->num_known);
    pkv_text_fmt(t, "  %+6d  %11s", (int)r->num_tokens, computed);
}

static void add_last(struct pkv_text *t, const struct tick *tick, const struct tick_running *r,
                     uint32_t group)
{
    char last[32] = "-";    /* a state holds no positions */
    uint32_t filled = num_filled_blocks(tick, r, group), size = tick->groups[group].block_size;
    uint32_t in_last = filled > 0 ? r->num_computed - (filled - 1) * size : 0;
    if (tick->groups[group].ops != &pkv_group_state)
        snprintf(last, sizeof last, "%" PRIu32 "/%" PRIu32, in_last, size);
    pkv_text_fmt(t, "  %7s", last);
}

/* Behind `at` columns of a line. */
static void add_table(struct step_page *p, const struct tick_running *r, uint32_t group, size_t at)
{
    struct pkv_text *t = &p->page.text, blocks = {0};
    const struct tick *tick = p->tick;
    const char *name = names_groups(p) ? pkv_group_name(&tick->groups[group]) : NULL;
    at += LAST_COLUMNS + (name ? GROUP_COLUMNS : 0);
    add_last(t, tick, r, group);
    if (name)
        pkv_text_fmt(t, "  %s", name);
    if (at + BLOCKS_COLUMNS > p->page.style->width) {
        at = NAME_WIDTH;
        pkv_text_fmt(t, "\n%*s", (int)at, "");
    } else {
        page_repeat(&p->page, " ", name ? GROUP_COLUMNS - strlen(name) : 2);
    }
    if (r->is_resuming)
        pkv_text_add(&blocks, "coming from the host: ");
    add_blocks(&blocks, p, tick->places + r->tables[group].first, r->tables[group].num,
               p->only ? SIZE_MAX : MOST_LINES);
    page_wrap(&p->page, at, blocks.text ? blocks.text : "-");
    t->failed |= blocks.failed;
    pkv_text_free(&blocks);
}

static void add_running(struct step_page *p, const struct tick_running *r, size_t id_columns)
{
    struct pkv_text *t = &p->page.text;
    size_t at = LETTER_COLUMNS + id_columns + COUNTS_COLUMNS;
    pkv_text_add(t, "  ");
    page_letter(p, r->letter);
    pkv_text_add(t, "  ");
    add_cut(t, tick_word(p->tick, r->id), id_columns);
    add_counts(t, r);
    for (uint32_t g = 0; g < p->tick->num_groups; g++) {
        if (g > 0)
            page_repeat(&p->page, " ", at);
        add_table(p, r, g, at);
    }
}

static void head_running(struct step_page *p, size_t num_listed, size_t id_columns)
{
    struct pkv_text t = {0};
    size_t num = p->tick->num_running;
    uint32_t most = p->stepper->config.scenario->sched.max_num_seqs;
    add_grouped(&t, num);
    if (most > 0) {
        pkv_text_add(&t, " of at most ");
        add_grouped(&t, most);
    }
    pkv_text_add(&t, num > 0 ? ", in the order of admission" : "");
    page_item(&p->page, "running", t.text ? t.text : "");
    p->page.text.failed |= t.failed;
    pkv_text_free(&t);
    if (num_listed == 0)
        return;
    page_ink(&p->page, INK_FAINT);
    pkv_text_fmt(&p->page.text, "     %-*s  %6s  %11s  %7s", (int)id_columns, "request", "tokens",
                 "computed", "in last");
    if (names_groups(p))
        pkv_text_fmt(&p->page.text, "  %-*s", NAME_COLUMNS, "group");
    pkv_text_add(&p->page.text, "  blocks\n");
    page_ink(&p->page, INK_PLAIN);
}

void page_running(struct step_page *p)
{
    const struct tick *tick = p->tick;
    size_t num = 0, num_shown = 0, id_columns = strlen("request");
    for (size_t i = 0; i < tick->num_running; i++)
        if (is_shown(p, tick->running[i].id) && num++ < MOST_LINES)
            id_columns = wider(id_columns, tick_word(tick, tick->running[i].id));
    head_running(p, num, id_columns);
    for (size_t i = 0; i < tick->num_running && num_shown < MOST_LINES; i++)
        if (is_shown(p, tick->running[i].id) && ++num_shown)
            add_running(p, &tick->running[i], id_columns);
    end_list(p, num, num_shown);
}

/* ---- shared blocks ---- */

static bool holds(const struct tick *tick, const struct tick_running *r, pkv_block_id id)
{
    for (uint32_t i = 0; i < r->num_places; i++)
        if (tick->places[r->tables[0].first + i] == id)
            return true;
    return false;
}

static void add_shared(struct pkv_text *t, const struct tick *tick, pkv_block_id first,
                       pkv_block_id last)
{
    size_t num = 0;
    pkv_text_fmt(t, "%" PRIu32, first);
    if (last > first)
        pkv_text_fmt(t, last > first + 1 ? "..%" PRIu32 : " %" PRIu32, last);
    pkv_text_fmt(t, " by %" PRIu32 ":", tick->ref_cnts[first]);
    for (size_t i = 0; i < tick->num_running; i++)
        if (holds(tick, &tick->running[i], first) && num++ < MOST_LINES)
            pkv_text_fmt(t, " %c", tick->running[i].letter);
    pkv_text_add(t, num > MOST_LINES ? " ..." : "");
}

/* Which blocks have more than one holder, and whose they are; neighbours of the same in one. */
void page_shared(struct step_page *p)
{
    const struct tick *tick = p->tick;
    struct pkv_text t = {0};
    uint32_t num = 0;
    for (uint32_t id = 0, last = 0; id < tick->num_blocks; id = last + 1) {
        for (last = id; last + 1 < tick->num_blocks && tick->ref_cnts[last + 1] > 1 &&
                        p->cells[last + 1].holders == p->cells[id].holders;)
            last++;
        if (tick->ref_cnts[id] < 2 || p->cells[id].letter == ANOTHER || ++num > MOST_SHARED)
            continue;
        pkv_text_add(&t, num > 1 ? "; " : "");
        add_shared(&t, tick, id, last);
    }
    if (num > MOST_SHARED)
        pkv_text_fmt(&t, "; and %" PRIu32 " more", num - MOST_SHARED);
    if (num > 0)
        page_item(&p->page, "shared", t.text ? t.text : "");
    p->page.text.failed |= t.failed;
    pkv_text_free(&t);
}

/* ---- waiting ---- */

static void add_waiting(struct step_page *p, const struct tick_waiting *w, size_t place,
                        size_t id_columns)
{
    struct pkv_text *t = &p->page.text;
    pkv_text_fmt(t, "%4zu ", place);
    add_cut(t, tick_word(p->tick, w->id), id_columns);
    pkv_text_fmt(t, "  %6" PRIu32 "  %11" PRIu64 "  %9" PRIu32, w->num_tokens, w->num_blocks,
                 w->num_preemptions);
    if (w->num_copies > 0)
        pkv_text_fmt(t, "  %" PRIu32 " on the host", w->num_copies);
    pkv_text_add(t, "\n");
}

static void head_waiting(struct step_page *p, size_t num_listed, size_t id_columns)
{
    struct pkv_text t = {0};
    add_grouped(&t, p->tick->num_waiting);
    pkv_text_add(&t, p->tick->num_waiting > 0 ? ", first in line first" : "");
    page_item(&p->page, "waiting", t.text ? t.text : "");
    p->page.text.failed |= t.failed;
    pkv_text_free(&t);
    if (num_listed == 0)
        return;
    page_ink(&p->page, INK_FAINT);
    pkv_text_fmt(&p->page.text, "     %-*s  %6s  %11s  %9s\n", (int)id_columns, "request", "tokens",
                 "blocks", "preempted");
    page_ink(&p->page, INK_PLAIN);
}

void page_waiting(struct step_page *p)
{
    const struct tick *tick = p->tick;
    size_t num = 0, num_shown = 0, id_columns = strlen("request");
    for (size_t i = 0; i < tick->num_waiting; i++)
        if (is_shown(p, tick->waiting[i].id) && num++ < MOST_WAITING)
            id_columns = wider(id_columns, tick_word(tick, tick->waiting[i].id));
    head_waiting(p, num, id_columns);
    for (size_t i = 0; i < tick->num_waiting && num_shown < MOST_WAITING; i++)
        if (is_shown(p, tick->waiting[i].id) && ++num_shown)
            add_waiting(p, &tick->waiting[i], i + 1, id_columns);
    end_list(p, num, num_shown);
}

/* ---- free ---- */

void page_free(struct step_page *p)
{
    const struct tick *tick = p->tick;
    struct pkv_text t = {0};
    if (tick->num_free == 0)
        pkv_text_add(&t, "empty");
    else if (!tick->takes_runs)
        pkv_text_add(&t, "next to be taken first: ");
    add_blocks(&t, p, tick->free, tick->num_free, MOST_LINES);
    page_item(&p->page, tick->takes_runs ? "free blocks" : "free queue", t.text ? t.text : "");
    p->page.text.failed |= t.failed;
    pkv_text_free(&t);
}
