/*
 * stepper_page.c - the page of one step: what was decided, what is there right after scheduling, what
 * the end of the step brought.
 */
#include "report/stepper_private.h"

#include <inttypes.h>

#include "base/alloc.h"

#define MOST_TOLD 6u         /* sentences of one kind on a page */
#define MOST_GROWN 8u

/* Exact, as it decides who is there in time. */
static void add_exact_time(struct pkv_text *t, int64_t ns)
{
    bool in_seconds = ns >= INT64_C(10000000000);
    pkv_text_ratio(t, ns, in_seconds ? 1000000000 : 1000000, in_seconds ? 9 : 6);
    pkv_text_add(t, in_seconds ? " s" : " ms");
}

static void put(struct step_page *p, const char *name, struct pkv_text *t)
{
    page_item(&p->page, name, t->text ? t->text : "");
    p->page.text.failed |= t->failed;
    pkv_text_clear(t);
}

/* ---- before the state ---- */

static void add_heading(struct step_page *p)
{
    const struct pkv_step_row *row = &p->tick->row;
    struct pkv_text t = {0};
    pkv_text_fmt(&t, "Step %" PRId64 " at ", row->step);
    add_exact_time(&t, row->time_ns);
    pkv_text_add(&t, " for ");
    add_exact_time(&t, row->dur_ns);
    pkv_text_add(&t, ": ");
    add_counted(&t, (uint64_t)row->sched_tokens, "token");
    if (row->sched_tokens > 0)
        pkv_text_fmt(&t, ", %" PRId64 " prefill, %" PRId64 " decode", row->prefill_tokens,
                     row->decode_tokens);
    page_heading(&p->page, t.text ? t.text : "");
    p->page.text.failed |= t.failed;
    pkv_text_free(&t);
}

static void add_passed(struct step_page *p, struct pkv_text *t)
{
    static const char *const names[] = {
#define PKV_NAME(sym, word) [sym] = word,
        TOLD(PKV_NAME)
#undef PKV_NAME
    };
    const struct passed *passed = &p->stepper->passed;
    bool first = true;
    if (passed->num_steps == 0)
        return;
    add_counted(t, passed->num_steps, "step");
    for (size_t i = 0; i < TOLD_COUNT; i++) {
        if (passed->counts[i] == 0 || i == TOLD_FIRST)
            continue;
        pkv_text_add(t, first ? ": " : ", ");
        add_grouped(t, passed->counts[i]);
        pkv_text_fmt(t, " %s", names[i]);
        first = false;
    }
    put(p, "passed", t);
}

static bool is_told(const struct step_page *p, const struct told_item *item)
{
    return is_shown(p, item->who) || (item->other != NOBODY && is_shown(p, item->other));
}

/* All of a kind; those after the first stand below it without its name. */
static void add_told(struct step_page *p, enum told what, const char *name)
{
    const struct tick *tick = p->tick;
    uint64_t num = 0;
    for (size_t i = 0; i < tick->num_told; i++) {
        const struct told_item *item = &tick->told[i];
        if (item->what == what && is_told(p, item) && ++num <= MOST_TOLD)
            page_item(&p->page, num == 1 ? name : "", tick_word(tick, item->text));
    }
    if (num > MOST_TOLD)
        pkv_text_fmt(&p->page.text, "%*sand %" PRIu64 " more\n", (int)NAME_WIDTH, "",
                     num - MOST_TOLD);
}

static uint32_t num_taken(const struct tick *tick, const struct tick_running *r)
{
    uint32_t num = 0;
    for (uint32_t g = 0; g < tick->num_groups; g++)
        num += r->tables[g].num - r->tables[g].num_before;
    return num;
}

/* Group after group, as they are taken. */
static void add_taken(struct step_page *p, struct pkv_text *t, const struct tick_running *r)
{
    const struct tick *tick = p->tick;
    pkv_text_add(t, tick_word(tick, r->id));
    pkv_text_add(t, num_taken(tick, r) == 1 ? " took block" : " took blocks");
    for (uint32_t g = 0; g < tick->num_groups; g++) {
        const struct tick_table *table = &r->tables[g];
        if (table->num == table->num_before)
            continue;
        pkv_text_add(t, " ");
        add_blocks(t, p, tick->places + table->first + table->num_before,
                   table->num - table->num_before, MOST_GROWN);
    }
}

static void add_grown(struct step_page *p, struct pkv_text *t)
{
    const struct tick *tick = p->tick;
    uint64_t num = 0;
    for (size_t i = 0; i < tick->num_running; i++) {
        const struct tick_running *r = &tick->running[i];
        if (num_taken(tick, r) == 0 || !is_shown(p, r->id) || ++num > MOST_GROWN)
            continue;
        pkv_text_add(t, num > 1 ? "; " : "");
        add_taken(p, t, r);
    }
    if (num > MOST_GROWN)
        pkv_text_fmt(t, "; and %" PRIu64 " others", num - MOST_GROWN);
    if (num > 0)
        put(p, "grew", t);
}

static void add_evicted(struct step_page *p, struct pkv_text *t)
{
    const struct tick *tick = p->tick;
    if (tick->num_evicted == 0)
        return;
    pkv_text_add(t, tick->num_evicted == 1 ? "block " : "blocks ");
    for (size_t i = 0; i < tick->num_evicted && i < MOST_GROWN; i++)
        pkv_text_fmt(t, "%s%" PRIu32, i > 0 ? " " : "", tick->evicted[i]);
    if (tick->num_evicted > MOST_GROWN)
        pkv_text_fmt(t, " and %zu more", tick->num_evicted - MOST_GROWN);
    pkv_text_add(t, tick->num_evicted == 1 ? ": its cached content is lost to the taker"
                                           : ": their cached content is lost to the takers");
    put(p, "evicted", t);
}

/* ---- the state ---- */

static void add_waste(struct step_page *p, struct pkv_text *t)
{
    const struct pkv_step_row *row = &p->tick->row;
    if (!p->tick->takes_runs)
        return;
    pkv_text_add(t, "positions: ");
    add_grouped(t, (uint64_t)row->stored_tokens);
    pkv_text_add(t, " stored, ");
    add_grouped(t, (uint64_t)row->reserved_slots);
    pkv_text_add(t, " reserved for later tokens, ");
    add_grouped(t, (uint64_t)row->internal_slots);
    pkv_text_add(t, " never used in runs, ");
    add_grouped(t, (uint64_t)row->external_slots);
    pkv_text_add(t, " free in runs too short for the first in line");
    put(p, "waste", t);
}

static void add_pool(struct step_page *p, struct pkv_text *t)
{
    const struct tick *tick = p->tick;
    const struct pkv_step_row *row = &tick->row;
    uint32_t num_shared = 0;
    for (uint32_t id = 0; id < tick->num_blocks; id++)
        num_shared += tick->ref_cnts[id] > 1;
    add_counted(t, tick->num_blocks, "block");
    pkv_text_add(t, " of ");
    add_counted(t, pkv_groups_block_size(tick->groups, tick->num_groups), "token");
    pkv_text_add(t, ": ");
    add_grouped(t, (uint64_t)row->used_blocks);
    pkv_text_add(t, " held");
    if (num_shared > 0) {
        pkv_text_add(t, ", ");
        add_grouped(t, num_shared);
        pkv_text_add(t, " of them shared");
    }
    pkv_text_add(t, "; ");
    add_grouped(t, tick->num_free);
    pkv_text_add(t, " free");
    if (row->cached_blocks > 0) {
        pkv_text_add(t, ", ");
        add_grouped(t, (uint64_t)row->cached_blocks);
        pkv_text_add(t, " of them cached");
    }
    put(p, "pool", t);
    add_kv_groups(t, tick->groups, tick->num_groups);
    if (t->length > 0)
        put(p, "KV groups", t);
}

/* ---- after the state ---- */

static const struct tick_running *find_running(const struct tick *tick, uint64_t row)
{
    for (size_t i = 0; i < tick->num_running; i++)
        if (tick->running[i].row == row)
            return &tick->running[i];
    return NULL;
}

static void add_finished(struct step_page *p, struct pkv_text *t, const struct told_item *item)
{
    const struct tick_running *r = find_running(p->tick, item->row);
    pkv_text_add(t, tick_word(p->tick, item->text));
    if (r) {
        pkv_text_add(t, "; gives back ");
        add_counted(t, r->num_held, "block");
    }
}

static void add_end(struct step_page *p, struct pkv_text *t)
{
    const struct tick *tick = p->tick;
    uint64_t num_first = 0, num_finished = 0;
    add_exact_time(t, tick->row.time_ns + tick->row.dur_ns);
    pkv_text_add(t, ": ");
    add_counted(t, (uint64_t)tick->row.output_tokens, "token");
    pkv_text_add(t, tick->row.output_tokens == 1 ? " comes out" : " come out");
    for (size_t i = 0; i < tick->num_told; i++) {
        const struct told_item *item = &tick->told[i];
        if (item->what != TOLD_FIRST || !is_told(p, item) || ++num_first > MOST_TOLD)
            continue;
        pkv_text_add(t, num_first == 1 ? ", the first of " : ", ");
        pkv_text_add(t, tick_word(tick, item->text));
    }
    if (num_first > MOST_TOLD)
        pkv_text_fmt(t, " and %" PRIu64 " more", num_first - MOST_TOLD);
    put(p, "at its end", t);
    for (size_t i = 0; i < tick->num_told; i++) {
        const struct told_item *item = &tick->told[i];
        if (item->what != TOLD_FINISHED || !is_told(p, item) || ++num_finished > MOST_TOLD)
            continue;
        add_finished(p, t, item);
        put(p, num_finished == 1 ? "finished" : "", t);
    }
    if (num_finished > MOST_TOLD)
        pkv_text_fmt(&p->page.text, "%*sand %" PRIu64 " more\n", (int)NAME_WIDTH, "",
                     num_finished - MOST_TOLD);
}

/* ---- the page ---- */

static void add_only(struct step_page *p, struct pkv_text *t)
{
    if (!p->only)
        return;
    pkv_text_add(t, "request ");
    pkv_text_add(t, p->only);
    pkv_text_add(t, pkv_stepper_has(p->stepper, p->only) ? "" : ", which neither runs nor waits");
    put(p, "only", t);
}

static void add_page(struct step_page *p)
{
    struct pkv_text t = {0};
    add_heading(p);
    add_only(p, &t);
    add_passed(p, &t);
    add_told(p, TOLD_ARRIVED, "arrived");
    add_told(p, TOLD_REJECTED, "rejected");
    add_told(p, TOLD_ABORTED, "aborted");
    add_told(p, TOLD_PREEMPTED, "preempted");
    add_told(p, TOLD_SWAPPED_OUT, "swap out");
    add_grown(p, &t);
    add_told(p, TOLD_RESUMED, "resumed");
    add_told(p, TOLD_SWAPPED_IN, "swap in");
    add_told(p, TOLD_ADMITTED, "admitted");
    add_evicted(p, &t);
    add_told(p, TOLD_WAITS, "waits");
    add_pool(p, &t);
    page_map(p);
    page_shared(p);
    add_waste(p, &t);
    page_free(p);
    page_running(p);
    page_waiting(p);
    add_end(p, &t);
    add_told(p, TOLD_FORKED, "forked");
    pkv_text_free(&t);
}

char *pkv_stepper_page(const struct pkv_stepper *stepper, const char *only,
                       const struct pkv_report_style *style, struct pkv_err *err)
{
    PKV_ASSERT(stepper->has_tick && style->width >= 40);
    struct step_page p = {.page = {.style = style}, .tick = &stepper->tick, .stepper = stepper,
                          .only = only};
    p.cells = pkv_alloc(stepper->tick.num_blocks, sizeof *p.cells, err);
    if (!p.cells)
        return NULL;
    fill_cells(&p);
    add_page(&p);
    pkv_free(p.cells);
    return take_text(&p.page.text, err);
}
