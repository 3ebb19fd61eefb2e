/*
 * stepper_tick.c - the state right after scheduling, copied; and the letters of requests.
 *
 * Everything is copied, as tables move on when the step ends and records of requests go with them.
 */
#include "report/stepper_private.h"

#include <string.h>

#include "base/alloc.h"

void tick_clear(struct tick *t)
{
    pkv_text_clear(&t->words);
    t->num_told = t->num_running = t->num_waiting = t->num_places = t->num_evicted = 0;
    t->num_free = 0;
}

void tick_free(struct tick *t)
{
    pkv_text_free(&t->words);
    pkv_free(t->told);
    pkv_free(t->running);
    pkv_free(t->waiting);
    pkv_free(t->places);
    pkv_free(t->free);
    pkv_free(t->evicted);
    pkv_free(t->ref_cnts);
    pkv_free(t->cached);
    pkv_free(t->queue);
}

const char *tick_word(const struct tick *t, size_t word)
{
    return t->words.text + word;
}

size_t tick_add_id(struct tick *t, const struct pkv_request *r)
{
    size_t at = t->words.length;
    if (r->id)
        pkv_text_add(&t->words, r->id);
    else
        pkv_text_u64(&t->words, r->row);
    pkv_text_bytes(&t->words, "", 1);
    return at;
}

/* ---- letters ---- */

static const char alphabet[NUM_LETTERS + 1] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static unsigned place_of(const struct letters *l, uint64_t row)
{
    unsigned i = 0;
    while (i < NUM_LETTERS && !(l->owners[i].is_taken && l->owners[i].row == row))
        i++;
    return i;
}

char letters_find(const struct letters *l, uint64_t row)
{
    unsigned place = place_of(l, row);
    return place < NUM_LETTERS ? alphabet[place] : NO_LETTER;
}

/* A request called by a letter has that one, if it can; others go round, so that a letter just given
 * back is not another's at once. */
static unsigned find_place(struct letters *l, const char *id)
{
    const char *own = id && id[0] && !id[1] ? strchr(alphabet, id[0]) : NULL;
    if (own && !l->owners[own - alphabet].is_taken)
        return (unsigned)(own - alphabet);
    for (unsigned i = 0; i < NUM_LETTERS; i++) {
        unsigned place = (l->next + i) % NUM_LETTERS;
        if (l->owners[place].is_taken)
            continue;
        l->next = (place + 1) % NUM_LETTERS;
        return place;
    }
    return NUM_LETTERS;
}

void letters_give(struct letters *l, const struct pkv_request *r)
{
    if (place_of(l, r->row) < NUM_LETTERS)
        return;
    unsigned place = find_place(l, r->id);
    if (place == NUM_LETTERS)
        return;
    l->owners[place].is_taken = true;
    l->owners[place].row = r->row;
}

void letters_take_back(struct letters *l, uint64_t row)
{
    unsigned place = place_of(l, row);
    if (place < NUM_LETTERS)
        l->owners[place].is_taken = false;
}

/* ---- the state ---- */

static size_t count_places(const struct tick *t, const struct pkv_request *r)
{
    size_t num = 0;
    for (uint32_t g = 0; g < t->num_groups; g++)
        num += r->seq.tables[g].num;
    return num;
}

static int reserve(struct tick *t, struct pkv_sched *sched, struct pkv_err *err)
{
    size_t num_running = pkv_sched_num_running(sched), num_blocks = t->num_blocks;
    size_t num_waiting = pkv_sched_num_waiting(sched), num_places = 0;
    size_t num_resuming = pkv_sched_num_resuming(sched);
    for (size_t i = 0; i < num_running; i++)
        num_places += count_places(t, pkv_sched_running(sched, i));
    for (size_t i = 0; i < num_resuming; i++)
        num_places += count_places(t, pkv_sched_resuming(sched, i));
    num_running += num_resuming;
    if (pkv_grow(&t->running, &t->running_capacity, num_running, sizeof *t->running, err) < 0 ||
        pkv_grow(&t->waiting, &t->waiting_capacity, num_waiting, sizeof *t->waiting, err) < 0 ||
        pkv_grow(&t->queue, &t->queue_capacity, num_waiting, sizeof(void *), err) < 0 ||
        pkv_grow(&t->places, &t->places_capacity, num_places, sizeof *t->places, err) < 0 ||
        pkv_grow(&t->free, &t->free_capacity, num_blocks, sizeof *t->free, err) < 0 ||
        pkv_grow(&t->ref_cnts, &t->ref_cnts_capacity, num_blocks, sizeof *t->ref_cnts, err) < 0 ||
        pkv_grow(&t->cached, &t->cached_capacity, num_blocks, sizeof *t->cached, err) < 0)
        return -1;
    return 0;
}

static void take_blocks(struct tick *t, const struct pkv_cache *cache)
{
    for (uint32_t id = 0; id < t->num_blocks; id++) {
        t->ref_cnts[id] = pkv_cache_ref_cnt(cache, id);
        t->cached[id] = pkv_cache_has_identity(cache, id);
    }
    t->num_free = pkv_cache_list_free(cache, t->free);
}

static void take_tables(struct tick *t, struct tick_running *out, const struct pkv_seq *seq)
{
    for (uint32_t g = 0; g < t->num_groups; g++) {
        const struct pkv_table *table = &seq->tables[g];
        out->tables[g] = (struct tick_table){
            .first = t->num_places, .num = table->num, .num_before = table->num};
        if (table->num > 0)
            memcpy(t->places + t->num_places, table->ids, table->num * sizeof *table->ids);
        t->num_places += table->num;
        out->num_places += table->num;
    }
    out->num_held = pkv_seq_num_blocks(seq);
}

static void take_running(struct tick *t, struct pkv_sched *sched, const struct letters *letters)
{
    size_t num = pkv_sched_num_running(sched);
    for (size_t i = 0; i < num + pkv_sched_num_resuming(sched); i++) {
        struct pkv_request *r = i < num ? pkv_sched_running(sched, i)
                                        : pkv_sched_resuming(sched, i - num);
        struct tick_running *out = &t->running[t->num_running++];
        *out = (struct tick_running){
            .id = tick_add_id(t, r),
            .row = r->row,
            .letter = letters_find(letters, r->row),
            .num_computed = r->seq.num_computed_tokens,
            .num_known = r->seq.num_known_tokens,
            .end_positions = pkv_sched_end_positions(sched, r),
            .is_resuming = i >= num,
        };
        take_tables(t, out, &r->seq);
    }
}

/* Entries stand in the order of running; some of those who run have none. */
static void take_entries(struct tick *t, const struct pkv_plan *plan)
{
    size_t at = 0;
    for (size_t i = 0; i < plan->num_entries; i++) {
        const struct pkv_plan_entry *entry = &plan->entries[i];
        while (at < t->num_running && t->running[at].row != entry->ref.request->row)
            at++;
        PKV_ASSERT(at < t->num_running);
        t->running[at].num_tokens = entry->num_tokens;
        for (uint32_t g = 0; entry->kind == PKV_ENTRY_RUNNING && g < t->num_groups; g++)
            t->running[at].tables[g].num_before = entry->num_blocks_before[g];
    }
}

static void take_waiting(struct tick *t, struct pkv_sched *sched)
{
    size_t num = pkv_sched_num_waiting(sched);
    if (num > 0)
        pkv_sched_list_waiting(sched, t->queue);
    for (size_t i = 0; i < num; i++) {
        const struct pkv_request *r = t->queue[i];
        t->waiting[t->num_waiting++] = (struct tick_waiting){
            .id = tick_add_id(t, r),
            .num_tokens = r->seq.num_known_tokens,
            .num_preemptions = r->num_preemptions,
            .num_copies = r->seq.copies.num,
            .num_blocks = t->takes_runs ? pkv_sched_peak_blocks(sched, r)
                                        : pkv_sched_blocks_for(sched, r->seq.num_known_tokens),
        };
    }
}

static int take_evicted(struct tick *t, const struct pkv_cache *cache, struct pkv_err *err)
{
    const pkv_block_id *ids = NULL;
    if (pkv_cache_evicted(cache, &ids, &t->num_evicted, err) < 0 ||
        pkv_grow(&t->evicted, &t->evicted_capacity, t->num_evicted, sizeof *ids, err) < 0)
        return -1;
    if (t->num_evicted > 0)
        memcpy(t->evicted, ids, t->num_evicted * sizeof *ids);
    return 0;
}

int tick_take(struct tick *t, struct pkv_sched *sched, const struct pkv_plan *plan,
              const struct letters *letters, struct pkv_err *err)
{
    struct pkv_cache *cache = pkv_sched_cache(sched);
    const struct pkv_sched_config *config = pkv_sched_config(sched);
    t->num_blocks = config->num_blocks;
    t->num_groups = config->num_groups;
    memcpy(t->groups, config->groups, sizeof t->groups);
    t->takes_runs = pkv_cache_takes_runs(cache);
    pkv_sched_refresh(sched);
    if (reserve(t, sched, err) < 0 || take_evicted(t, cache, err) < 0)
        return -1;
    take_blocks(t, cache);
    take_running(t, sched, letters);
    take_entries(t, plan);
    take_waiting(t, sched);
    if (t->words.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a step's page");
    return 0;
}
