/*
 * stepper_map.c - the pool as a map: one cell a block, or one for several where the pool is large.
 *
 * A cell of one block has the letter of its holder, of several that of the first admitted, and a mark
 * behind it. It is read without colour; colours only help to see what belongs together.
 */
#include "report/stepper_private.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"

#define MAX_ROWS 16u
#define GROUP 8u              /* cells, then a gap */
#define MOST_CELLS 64u        /* in a row of a condensed map */

bool is_shown(const struct step_page *p, size_t id)
{
    return !p->only || strcmp(tick_word(p->tick, id), p->only) == 0;
}

static uint32_t blocks_of(uint64_t num_positions, uint32_t block_size)
{
    return (uint32_t)((num_positions + block_size - 1) / block_size);
}

/* A state has all of its blocks from its first token on. */
uint32_t num_filled_blocks(const struct tick *tick, const struct tick_running *r, uint32_t group)
{
    if (tick->groups[group].ops == &pkv_group_state)
        return r->tables[group].num;
    return blocks_of(r->num_computed, tick->groups[group].block_size);
}

static void fill_cells_of_table(struct step_page *p, const struct tick_running *r, uint32_t group)
{
    const struct tick *tick = p->tick;
    uint32_t filled = num_filled_blocks(tick, r, group);
    uint32_t wanted = blocks_of(r->end_positions, tick->groups[group].block_size);
    for (uint32_t i = 0; i < r->tables[group].num; i++) {
        pkv_block_id id = tick->places[r->tables[group].first + i];
        if (id == PKV_BLOCK_NULL)
            continue;
        struct cell *cell = &p->cells[id];
        cell->letter = is_shown(p, r->id) ? r->letter : ANOTHER;
        if (i >= filled)
            cell->mark = i < wanted ? RESERVED : UNUSED;
        else
            cell->mark = tick->ref_cnts[id] > 1 ? SHARED : ' ';
    }
}

static void fill_cells_of(struct step_page *p, const struct tick_running *r)
{
    for (uint32_t g = 0; g < p->tick->num_groups; g++)
        fill_cells_of_table(p, r, g);
}

static void note_holders(struct step_page *p, const struct tick_running *r)
{
    const pkv_block_id *places = p->tick->places + r->tables[0].first;
    for (uint32_t i = 0; i < r->num_places; i++)
        if (places[i] != PKV_BLOCK_NULL)
            p->cells[places[i]].holders += pkv_mix(r->row, 1);
}

/* The last one to write a cell is the first one admitted; before all, the one that is asked about. */
void fill_cells(struct step_page *p)
{
    const struct tick *tick = p->tick;
    for (uint32_t id = 0; id < tick->num_blocks; id++)
        p->cells[id] = (struct cell){
            .letter = tick->ref_cnts[id] > 0 ? LEAVING : tick->cached[id] ? CACHED : EMPTY,
            .mark = ' ',
        };
    for (size_t i = tick->num_running; i-- > 0;)
        fill_cells_of(p, &tick->running[i]);
    for (size_t i = 0; i < tick->num_running; i++)
        note_holders(p, &tick->running[i]);
    for (size_t i = tick->num_running; p->only && i-- > 0;)
        if (is_shown(p, tick->running[i].id))
            fill_cells_of(p, &tick->running[i]);
}

void page_letter(struct step_page *p, char letter)
{
    bool is_free = letter == CACHED || letter == EMPTY, colour = p->page.style->colour;
    if (colour && is_free)
        page_ink(&p->page, letter == CACHED ? INK_FREE : INK_FAINT);
    else if (colour && isalpha((unsigned char)letter))
        pkv_text_fmt(&p->page.text, "\033[1;3%um", 1 + (unsigned)letter % 6);
    pkv_text_bytes(&p->page.text, &letter, 1);
    page_ink(&p->page, INK_PLAIN);
}

/* ---- one cell a block ---- */

/* Cells are a letter, a mark and a blank; a power of two of them, with a gap behind each group. The
 * last one has neither blank nor gap. */
static uint32_t columns_of_cells(uint32_t num)
{
    return 3 * num + num / GROUP - 2;
}

static uint32_t cells_of_row(unsigned width)
{
    uint32_t num = GROUP;
    while (NAME_WIDTH + columns_of_cells(2 * num) <= width)
        num *= 2;
    return num;
}

static void begin_row(struct step_page *p, uint32_t id)
{
    page_ink(&p->page, INK_FAINT);
    pkv_text_fmt(&p->page.text, "%*" PRIu32 "  ", (int)NAME_WIDTH - 2, id);
    page_ink(&p->page, INK_PLAIN);
}

static void add_row(struct step_page *p, uint32_t first, uint32_t end)
{
    size_t blanks = 0;   /* owed, so that no line ends in one */
    begin_row(p, first);
    for (uint32_t id = first; id < end; id++) {
        const struct cell *cell = &p->cells[id];
        blanks += id > first && (id - first) % GROUP == 0;
        page_repeat(&p->page, " ", blanks);
        page_letter(p, cell->letter);
        blanks = cell->mark == ' ' ? 2 : 1;
        if (cell->mark != ' ')
            pkv_text_bytes(&p->page.text, &cell->mark, 1);
    }
    pkv_text_add(&p->page.text, "\n");
}

static bool has_leaving(const struct step_page *p)
{
    for (uint32_t id = 0; id < p->tick->num_blocks; id++)
        if (p->cells[id].letter == LEAVING)
            return true;
    return false;
}

static void add_legend(struct step_page *p)
{
    bool runs = p->tick->takes_runs;
    if (has_leaving(p))
        page_item(&p->page, "", "> on the link, free when that is done");
    if (p->only)
        page_item(&p->page, "", runs
            ? "letter: its own; + others'; - reserved for later; x never used; . free"
            : "letter: its own; + others'; * shared; : free, content cached; . free");
    else
        page_item(&p->page, "", runs
            ? "letter: its holder; - reserved for later; x never used; . free"
            : "letter: its holder; * shared; : free, content cached; . free");
}

/* ---- one character a cell ---- */

struct several { uint32_t held, filled, cached, num; char letter; bool is_mixed, has_only; };

static struct several look_at(const struct step_page *p, uint32_t first, uint32_t end)
{
    struct several s = {.num = end - first};
    for (uint32_t id = first; id < end; id++) {
        const struct cell *cell = &p->cells[id];
        s.cached += cell->letter == CACHED;
        if (cell->letter == CACHED || cell->letter == EMPTY)
            continue;
        s.is_mixed |= s.held > 0 && cell->letter != s.letter;
        s.letter = cell->letter;
        s.held++;
        s.filled += cell->mark != RESERVED && cell->mark != UNUSED;
        s.has_only |= p->only && cell->letter != ANOTHER;
    }
    return s;
}

static char glyph_of(const struct several *s)
{
    if (s->held == 0)
        return s->cached > 0 ? CACHED : EMPTY;
    if (s->has_only && s->num > 1)
        return '@';
    if (s->filled == 0)
        return RESERVED;
    if (s->held == s->num)
        return s->is_mixed ? '#' : s->letter;
    uint64_t tenths = (uint64_t)s->held * 10 / s->num;
    return (char)('0' + (tenths > 0 ? tenths : 1));
}

static void add_condensed_row(struct step_page *p, uint64_t first, uint64_t end, uint32_t step)
{
    begin_row(p, (uint32_t)first);
    for (uint64_t id = first; id < end; id += step) {
        struct several s = look_at(p, (uint32_t)id, (uint32_t)(id + step < end ? id + step : end));
        page_letter(p, glyph_of(&s));
    }
    pkv_text_add(&p->page.text, "\n");
}

static void add_condensed_legend(struct step_page *p, uint32_t blocks_per_cell)
{
    struct pkv_text t = {0};
    bool runs = p->tick->takes_runs;
    pkv_text_add(&t, "a cell is ");
    add_counted(&t, blocks_per_cell, "block");
    if (blocks_per_cell > 1) {
        pkv_text_add(&t, p->only ? ": @ has one of its own; + all others'; "
                                 : ": letter: all of one request; # all held; ");
        pkv_text_add(&t, "1..9: so many tenths held; ");
    } else {
        pkv_text_add(&t, p->only ? ": letter: its own; + others'; " : ": letter: its holder; ");
    }
    pkv_text_add(&t, runs ? "- held, nothing stored yet; . free"
                          : blocks_per_cell > 1 ? ": none held, some cached; . free"
                                                : ": free, content cached; . free");
    page_item(&p->page, "", t.text ? t.text : "");
    p->page.text.failed |= t.failed;
    pkv_text_free(&t);
}

static void add_condensed(struct step_page *p)
{
    uint64_t num = p->tick->num_blocks, in_row = GROUP;
    uint32_t step = 1;
    while (NAME_WIDTH + 2 * in_row <= p->page.style->width && in_row < MOST_CELLS)
        in_row *= 2;
    while (step * in_row * MAX_ROWS < num)
        step *= 2;
    for (uint64_t first = 0; first < num; first += step * in_row)
        add_condensed_row(p, first, first + step * in_row < num ? first + step * in_row : num, step);
    add_condensed_legend(p, step);
}

void page_map(struct step_page *p)
{
    uint32_t num = p->tick->num_blocks, in_row = cells_of_row(p->page.style->width);
    if (num > in_row * MAX_ROWS) {
        add_condensed(p);
        return;
    }
    for (uint32_t first = 0; first < num; first += in_row)
        add_row(p, first, first + in_row < num ? first + in_row : num);
    add_legend(p);
}

/* ---- lists of blocks ---- */

static char mark_of(const struct step_page *p, pkv_block_id id)
{
    if (id == PKV_BLOCK_NULL)
        return ' ';
    return p->cells[id].letter == CACHED ? CACHED : p->cells[id].mark;
}

/* Blocks from ids[0] on that follow one another and have one mark, or are all null. */
static size_t length_of_run(const struct step_page *p, const pkv_block_id *ids, size_t num)
{
    uint32_t apart = ids[0] != PKV_BLOCK_NULL;
    size_t n = 1;
    while (n < num && ids[n] == ids[n - 1] + apart && mark_of(p, ids[n]) == mark_of(p, ids[0]))
        n++;
    return n;
}

/* The first n of them, which are a run; how many are told. */
static size_t add_run(struct pkv_text *t, const struct step_page *p, const pkv_block_id *ids, size_t n)
{
    char mark = mark_of(p, ids[0]);
    if (ids[0] == PKV_BLOCK_NULL) {
        pkv_text_fmt(t, "%zu null", n);
        return n;
    }
    n = n > 2 ? n : 1;
    pkv_text_u64(t, ids[0]);
    if (n > 1)
        pkv_text_fmt(t, "..%" PRIu32, ids[n - 1]);
    if (mark != ' ')
        pkv_text_bytes(t, &mark, 1);
    return n;
}

void add_blocks(struct pkv_text *t, const struct step_page *p, const pkv_block_id *ids, size_t num,
                size_t max_pieces)
{
    size_t at = 0;
    for (size_t pieces = 0; at < num && pieces < max_pieces; pieces++) {
        pkv_text_add(t, pieces > 0 ? " " : "");
        at += add_run(t, p, ids + at, length_of_run(p, ids + at, num - at));
    }
    if (at < num) {
        pkv_text_add(t, " and ");
        add_grouped(t, num - at);
        pkv_text_add(t, " more");
    }
}
