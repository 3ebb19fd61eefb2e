/*
 * blockmap_frame.c - one state of the pool, copied right after scheduling.
 *
 * Reference counts are not copied, nor asked for: a block is held as often as it stands in the tables,
 * but for what the link holds (invariant C1 of the cache), which is looked for while something is under way.
 */
#include "report/blockmap_private.h"

#include <string.h>

#include "base/alloc.h"

#define WORD_BITS 32u

static void clear(struct map_frame *f)
{
    f->num_tables = f->num_places = f->num_words = f->num_cells = f->ids_length = 0;
}

static int add_places(struct map_frame *f, const pkv_block_id *ids, size_t num, struct pkv_err *err)
{
    if (pkv_grow(&f->places, &f->places_capacity, f->num_places + num, sizeof *ids, err) < 0)
        return -1;
    if (num > 0)
        memcpy(f->places + f->num_places, ids, num * sizeof *ids);
    f->num_places += num;
    return 0;
}

static int add_table(struct map_frame *f, const struct map_table *table, struct pkv_err *err)
{
    if (pkv_grow(&f->tables, &f->tables_capacity, f->num_tables + 1, sizeof *table, err) < 0)
        return -1;
    f->tables[f->num_tables++] = *table;
    return 0;
}

static int add_id(struct map_frame *f, const struct pkv_request *r, struct pkv_err *err)
{
    const char *id = r->id ? r->id : "";
    size_t size = strlen(id) + 1;
    if (pkv_grow(&f->ids, &f->ids_capacity, f->ids_length + size, 1, err) < 0)
        return -1;
    memcpy(f->ids + f->ids_length, id, size);
    f->ids_length += size;
    return 0;
}

static int take_request(struct blockmap *map, struct pkv_sched *sched, const struct pkv_request *r,
                        enum map_holder holder, struct pkv_err *err)
{
    struct map_frame *f = &map->taken;
    uint64_t end = map->takes_runs ? pkv_sched_end_positions(sched, r) : 0;
    for (uint32_t g = 0; g < map->num_groups; g++) {
        const struct pkv_table *t = &r->seq.tables[g];
        const struct map_table table = {
            .row = r->row, .end_positions = end, .holder = holder, .group = g, .num = t->num,
            .num_null = t->num_null, .num_computed = r->seq.num_computed_tokens};
        if (add_table(f, &table, err) < 0 ||
            add_places(f, t->ids + t->num_null, t->num - t->num_null, err) < 0)
            return -1;
    }
    return add_id(f, r, err);
}

static int take_requests(struct blockmap *map, struct pkv_sched *sched, struct pkv_err *err)
{
    size_t num = pkv_sched_num_running(sched), num_resuming = pkv_sched_num_resuming(sched);
    for (size_t i = 0; i < num; i++)
        if (take_request(map, sched, pkv_sched_running(sched, i), MAP_RUNNING, err) < 0)
            return -1;
    for (size_t i = 0; i < num_resuming; i++)
        if (take_request(map, sched, pkv_sched_resuming(sched, i), MAP_RESUMING, err) < 0)
            return -1;
    return 0;
}

static void mark_holders(struct blockmap *map)
{
    memset(map->marks, 0, map->num_blocks * sizeof *map->marks);
    for (size_t i = 0; i < map->taken.num_places; i++)
        map->marks[map->taken.places[i]]++;
}

/* As a table of nobody: what is held and stands in no table. */
static int take_link(struct blockmap *map, const struct pkv_cache *cache, struct pkv_err *err)
{
    struct map_table table = {.holder = MAP_LINK};
    if (pkv_cache_num_transfers(cache) == 0)
        return 0;
    mark_holders(map);
    for (pkv_block_id id = 0; id < map->num_blocks; id++) {
        if (map->marks[id] > 0 || pkv_cache_ref_cnt(cache, id) == 0)
            continue;
        if (add_places(&map->taken, &id, 1, err) < 0)
            return -1;
        table.num++;
    }
    return add_table(&map->taken, &table, err);
}

/* No words at all where no free block has an identity. */
static int take_cached(struct blockmap *map, const struct pkv_cache *cache, struct pkv_err *err)
{
    struct map_frame *f = &map->taken;
    size_t num = ((size_t)map->num_blocks + WORD_BITS - 1) / WORD_BITS;
    if (pkv_cache_figures(cache).num_cached == 0)
        return 0;
    if (pkv_grow(&f->cached, &f->words_capacity, num, sizeof *f->cached, err) < 0)
        return -1;
    f->num_words = num;
    pkv_cache_identity_bits(cache, f->cached);
    for (size_t i = 0; i < f->num_places; i++)
        f->cached[f->places[i] / WORD_BITS] &= ~(UINT32_C(1) << f->places[i] % WORD_BITS);
    return 0;
}

/* ---- cells of several blocks ---- */

static uint32_t blocks_of(uint64_t num_positions, uint32_t block_size)
{
    return (uint32_t)((num_positions + block_size - 1) / block_size);
}

/* What stands in a table beyond its computed positions; a state has all of its blocks from its first
 * token on, and only runs have blocks that nothing will be stored in. */
static void count_idle(const struct blockmap *map, const struct map_table *t,
                       const pkv_block_id *places)
{
    const struct pkv_group_config *group = &map->groups[t->group];
    if (t->holder == MAP_LINK || group->ops == &pkv_group_state)
        return;
    uint32_t filled = blocks_of(t->num_computed, group->block_size);
    uint32_t wanted = map->takes_runs ? blocks_of(t->end_positions, group->block_size) : t->num;
    for (uint32_t i = filled > t->num_null ? filled : t->num_null; i < t->num; i++) {
        struct map_cell *cell = &map->taken.cells[places[i - t->num_null] / map->cell_blocks];
        *(i < wanted ? &cell->reserved : &cell->unused) += 1;
    }
}

static void count_blocks(struct blockmap *map, const struct pkv_cache *cache)
{
    for (pkv_block_id id = 0; id < map->num_blocks; id++) {
        struct map_cell *cell = &map->taken.cells[id / map->cell_blocks];
        bool is_free = map->marks[id] == 0;
        cell->used += !is_free;
        cell->shared += map->marks[id] > 1;
        cell->cached += is_free && pkv_cache_has_identity(cache, id);
    }
}

static int take_cells(struct blockmap *map, const struct pkv_cache *cache, struct pkv_err *err)
{
    struct map_frame *f = &map->taken;
    size_t num = blockmap_num_cells(map), at = 0;
    if (pkv_grow(&f->cells, &f->cells_capacity, num, sizeof *f->cells, err) < 0)
        return -1;
    f->num_cells = num;
    memset(f->cells, 0, num * sizeof *f->cells);
    mark_holders(map);
    count_blocks(map, cache);
    for (size_t i = 0; i < f->num_tables; i++) {
        count_idle(map, &f->tables[i], f->places + at);
        at += f->tables[i].num - f->tables[i].num_null;
    }
    f->num_places = 0;
    return 0;
}

int frame_take(struct blockmap *map, struct pkv_sched *sched, struct pkv_err *err)
{
    const struct pkv_cache *cache = pkv_sched_cache(sched);
    pkv_sched_refresh(sched);
    clear(&map->taken);
    if (take_requests(map, sched, err) < 0 || take_link(map, cache, err) < 0)
        return -1;
    return map->cell_blocks > 1 ? take_cells(map, cache, err) : take_cached(map, cache, err);
}

/* ---- frames as values ---- */

static void *copy(const void *from, size_t num, size_t size, bool *failed, struct pkv_err *err)
{
    void *to = num > 0 && !*failed ? pkv_alloc(num, size, err) : NULL;
    *failed |= num > 0 && !to;
    if (to)
        memcpy(to, from, num * size);
    return to;
}

int frame_copy(const struct map_frame *f, struct map_frame *out, struct pkv_err *err)
{
    bool failed = false;
    *out = (struct map_frame){
        .counts = f->counts,
        .tables = copy(f->tables, f->num_tables, sizeof *f->tables, &failed, err),
        .places = copy(f->places, f->num_places, sizeof *f->places, &failed, err),
        .cached = copy(f->cached, f->num_words, sizeof *f->cached, &failed, err),
        .cells = copy(f->cells, f->num_cells, sizeof *f->cells, &failed, err),
        .ids = copy(f->ids, f->ids_length, 1, &failed, err),
        .num_tables = f->num_tables,
        .num_places = f->num_places,
        .num_words = f->num_words,
        .num_cells = f->num_cells,
        .ids_length = f->ids_length,
    };
    if (failed)
        frame_free(out);
    return failed ? -1 : 0;
}

size_t frame_bytes(const struct map_frame *f)
{
    return sizeof *f + f->num_tables * sizeof *f->tables + f->num_places * sizeof *f->places +
           f->num_words * sizeof *f->cached + f->num_cells * sizeof *f->cells + f->ids_length;
}

void frame_free(struct map_frame *f)
{
    pkv_free(f->tables);
    pkv_free(f->places);
    pkv_free(f->cached);
    pkv_free(f->cells);
    pkv_free(f->ids);
    *f = (struct map_frame){0};
}
