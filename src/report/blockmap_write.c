/*
 * blockmap_write.c - the frames as islands of a page, a part of report.html.
 *
 *   blockmap             JSON: what the frames are of
 *   blockmap-requests    a row a request, in the order in which they come up: its row in the traffic; and
 *   blockmap-ids         their ids, where any has one: "" = none
 *   blockmap-frames      a row a frame: the counts of its tick; how many rows of the next are its own
 *   blockmap-tables      a row a table. request: a row above, -1 on the link; kept: places that are those
 *                        of the same table in the frame before, from its first one on that is not null;
 *                        computed: the increase since then
 *   blockmap-places      a row a place that is new: the block in it
 *   blockmap-cached      a row a word of each frame that has cached blocks: the bits that changed
 *   blockmap-cells       a row a cell of each frame: by how much its counts changed
 *
 * A request goes on and its table grows at its end, so that most of a frame is not told again.
 */
#include "report/blockmap_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id_map.h"
#include "report/html_private.h"
#include "report/packed.h"

#define MOST_COLUMNS 16u

enum { REQUESTS, FRAMES, TABLES, PLACES, CACHED, CELLS, NUM_ISLANDS };

static const struct island {
    const char *name;
    size_t num;
    const char *columns[MOST_COLUMNS];
} islands[NUM_ISLANDS] = {
#define NAME(name) #name,
#define ONE(name) + 1
    {"blockmap-requests", 1, {"row"}},
    {"blockmap-frames", 0 MAP_COUNTS(ONE) + 1, {MAP_COUNTS(NAME) "tables"}},
    {"blockmap-tables", 8,
     {"request", "holder", "group", "blocks", "nulls", "kept", "computed", "end"}},
    {"blockmap-places", 1, {"block"}},
    {"blockmap-cached", 1, {"bits"}},
    {"blockmap-cells", 0 MAP_CELL_COUNTS(ONE), {MAP_CELL_COUNTS(NAME)}},
#undef NAME
#undef ONE
};

struct writer {
    const struct blockmap *map;
    struct packed *tables[NUM_ISLANDS];   /* owned, as the next two */
    struct packed_texts *ids;
    struct pkv_id_map known;              /* row of a request -> its row in the table of them, + 1 */
    bool has_ids;
    const struct map_frame *before;       /* borrowed; NULL = none */
    size_t num_bytes;                     /* before packing */
    bool counts_only;                     /* nothing is written */
};

static size_t varint_bytes(int64_t value)
{
    uint64_t zigzag = value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1;
    size_t num = 1;
    while (zigzag >>= 7)
        num++;
    return num;
}

/* A row of a table, or what it would take: of most columns a byte, as they follow those above, of the
 * first one its number. */
static int put(struct writer *w, size_t island, const int64_t *values, struct pkv_err *err)
{
    w->num_bytes += islands[island].num - 1 + varint_bytes(values[0]);
    return w->counts_only ? 0 : packed_row(w->tables[island], values, err);
}

/* The number of a request, -1 of none. */
static int put_request(struct writer *w, const struct map_table *t, const char *id, int64_t *out,
                       struct pkv_err *err)
{
    const int64_t row = (int64_t)t->row;
    *out = -1;
    if (t->holder == MAP_LINK)
        return 0;
    uint64_t *number = pkv_id_map_at(&w->known, t->row, err);
    if (!number)
        return -1;
    *out = (int64_t)(*number > 0 ? *number - 1 : w->known.num - 1);
    if (*number > 0)
        return 0;
    *number = w->known.num;
    w->has_ids |= *id != 0;
    w->num_bytes += strlen(id);
    if (put(w, REQUESTS, &row, err) < 0)
        return -1;
    return w->counts_only ? 0 : packed_texts_add(w->ids, id, err);
}

/* ---- tables ---- */

struct place_of_table { const struct map_table *table; const pkv_block_id *places; };

/* Where both have requests in the same order, the next one is it. */
static struct place_of_table find_before(const struct map_frame *f, const struct map_table *wanted,
                                         size_t *at, size_t *at_place)
{
    for (size_t n = 0; f && n < f->num_tables; n++) {
        *at_place = *at < f->num_tables ? *at_place : 0;
        *at = *at < f->num_tables ? *at : 0;
        const struct map_table *t = &f->tables[(*at)++];
        const pkv_block_id *places = f->num_places > 0 ? f->places + *at_place : NULL;
        *at_place += t->num - t->num_null;
        if (t->row == wanted->row && t->group == wanted->group && t->holder != MAP_LINK)
            return (struct place_of_table){t, places};
    }
    return (struct place_of_table){0};
}

static uint32_t num_kept(const struct place_of_table *before, const struct map_table *t,
                         const pkv_block_id *places)
{
    const struct map_table *b = before->table;
    uint32_t i = t->num_null;
    if (!b || b->num_null > t->num_null)
        return 0;
    while (i < t->num && i < b->num && places[i - t->num_null] == before->places[i - b->num_null])
        i++;
    return i - t->num_null;
}

static int put_places(struct writer *w, const pkv_block_id *places, uint32_t begin, uint32_t end,
                      struct pkv_err *err)
{
    int64_t above = 0;
    for (uint32_t i = begin; i < end; i++) {
        const int64_t block = places[i];
        w->num_bytes += varint_bytes(block - above);
        above = block;
        if (!w->counts_only && packed_row(w->tables[PLACES], &block, err) < 0)
            return -1;
    }
    return 0;
}

static int put_table(struct writer *w, const struct map_table *t, int64_t request,
                     const pkv_block_id *places, const struct place_of_table *before,
                     struct pkv_err *err)
{
    uint32_t kept = places ? num_kept(before, t, places) : 0;
    int64_t computed = (int64_t)t->num_computed - (before->table ? before->table->num_computed : 0);
    const int64_t row[] = {request, t->holder, t->group, t->num, t->num_null, kept, computed,
                           (int64_t)t->end_positions};
    w->num_bytes += varint_bytes(computed);
    if (put(w, TABLES, row, err) < 0)
        return -1;
    return places ? put_places(w, places, kept, t->num - t->num_null, err) : 0;
}

static int put_tables(struct writer *w, const struct map_frame *f, struct pkv_err *err)
{
    size_t at_place = 0, before_at = 0, before_place = 0;
    const char *id = f->ids;
    int64_t request = -1;
    for (size_t i = 0; i < f->num_tables; i++) {
        const struct map_table *t = &f->tables[i];
        const pkv_block_id *places = f->num_places > 0 ? f->places + at_place : NULL;
        struct place_of_table before = {0};
        if (t->group == 0 && put_request(w, t, id, &request, err) < 0)
            return -1;
        if (t->group == 0 && t->holder != MAP_LINK)
            id += strlen(id) + 1;
        if (t->holder != MAP_LINK)
            before = find_before(w->before, t, &before_at, &before_place);
        if (put_table(w, t, request, places, &before, err) < 0)
            return -1;
        at_place += t->num - t->num_null;
    }
    return 0;
}

/* ---- blocks and cells ---- */

static int put_cached(struct writer *w, const struct map_frame *f, struct pkv_err *err)
{
    for (size_t i = 0; i < f->num_words; i++) {
        bool has_before = w->before && w->before->num_words > 0;
        int64_t bits = f->cached[i] ^ (has_before ? w->before->cached[i] : 0);
        if (put(w, CACHED, &bits, err) < 0)
            return -1;
    }
    return 0;
}

static int put_cells(struct writer *w, const struct map_frame *f, struct pkv_err *err)
{
    static const struct map_cell nothing;
    for (size_t i = 0; i < f->num_cells; i++) {
        const struct map_cell *cell = &f->cells[i];
        const struct map_cell *before = w->before ? &w->before->cells[i] : &nothing;
#define CHANGE(name) (int64_t)cell->name - before->name,
        const int64_t row[] = {MAP_CELL_COUNTS(CHANGE)};
#undef CHANGE
        if (put(w, CELLS, row, err) < 0)
            return -1;
    }
    return 0;
}

static int put_frame(struct writer *w, const struct map_frame *f, struct pkv_err *err)
{
#define VALUE(name) f->counts.name,
    const int64_t row[] = {MAP_COUNTS(VALUE) (int64_t)f->num_tables};
#undef VALUE
    if (put(w, FRAMES, row, err) < 0 || put_tables(w, f, err) < 0 || put_cached(w, f, err) < 0 ||
        put_cells(w, f, err) < 0)
        return -1;
    w->before = f;
    return 0;
}

static int put_every(struct writer *w, size_t nth, struct pkv_err *err)
{
    for (size_t i = 0; i < w->map->num; i += nth)
        if (put_frame(w, &w->map->frames[i], err) < 0)
            return -1;
    return 0;
}

/* The smallest n so that every nth frame has room. */
static int choose_nth(const struct blockmap *map, size_t *out, struct pkv_err *err)
{
    for (*out = 1;; ++*out) {
        struct writer w = {.map = map, .counts_only = true};
        int result = put_every(&w, *out, err);
        pkv_id_map_free(&w.known);
        if (result < 0 || w.num_bytes <= map->most_written || *out >= map->num)
            return result;
    }
}

/* ---- islands ---- */

static void add_groups(struct pkv_text *t, const struct blockmap *map)
{
    for (uint32_t g = 0; g < map->num_groups; g++) {
        pkv_text_add(t, g > 0 ? ",{\"name\":" : "{\"name\":");
        pkv_text_json(t, pkv_group_name(&map->groups[g]));
        pkv_text_fmt(t, ",\"block_size\":%" PRIu32 "}", map->groups[g].block_size);
    }
}

static const char *word_of(bool is_so)
{
    return is_so ? "true" : "false";
}

static int write_head(const struct blockmap *map, size_t nth, const char *prefix, struct pkv_out *out,
                      struct pkv_err *err)
{
    struct pkv_text t = {0};
    pkv_text_fmt(&t, "{\"blocks\":%" PRIu32 ",\"cell_blocks\":%" PRIu32 ",\"ticks\":%" PRIu64
                 ",\"stride\":%" PRIu64 ",\"layout\":", map->num_blocks, map->cell_blocks,
                 map->num_ticks, map->stride * nth);
    pkv_text_json(&t, map->layout);
    pkv_text_fmt(&t, ",\"takes_runs\":%s,\"looks_ahead\":%s,\"groups\":[", word_of(map->takes_runs),
                 word_of(map->looks_ahead));
    add_groups(&t, map);
    pkv_text_add(&t, "]}");
    int result = t.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the block map") : 0;
    if (result == 0)
        html_json(out, prefix, "blockmap", t.text);
    pkv_text_free(&t);
    return result;
}

static bool is_wanted(const struct writer *w, size_t island)
{
    bool has_cells = w->map->cell_blocks > 1;
    return island == CELLS ? has_cells : !has_cells || (island != PLACES && island != CACHED);
}

static int open_tables(struct writer *w, struct pkv_err *err)
{
    w->ids = packed_texts_create(err);
    int result = w->ids ? 0 : -1;
    for (size_t i = 0; result == 0 && i < NUM_ISLANDS; i++) {
        w->tables[i] = packed_create(islands[i].columns, islands[i].num, err);
        result = w->tables[i] ? 0 : -1;
    }
    return result;
}

static int write_tables(struct writer *w, const char *prefix, struct pkv_out *out, struct pkv_err *err)
{
    for (size_t i = 0; i < NUM_ISLANDS; i++)
        if (is_wanted(w, i) && packed_write(w->tables[i], prefix, islands[i].name, out, err) < 0)
            return -1;
    return w->has_ids ? packed_texts_write(w->ids, prefix, "blockmap-ids", out, err) : 0;
}

int blockmap_write(const struct blockmap *map, const char *prefix, struct pkv_out *out,
                   struct pkv_err *err)
{
    struct writer w = {.map = map};
    size_t nth;
    int result = choose_nth(map, &nth, err);
    if (result == 0)
        result = write_head(map, nth, prefix, out, err);
    if (result == 0)
        result = open_tables(&w, err);
    if (result == 0)
        result = put_every(&w, nth, err);
    if (result == 0)
        result = write_tables(&w, prefix, out, err);
    for (size_t i = 0; i < NUM_ISLANDS; i++)
        packed_destroy(w.tables[i]);
    packed_texts_destroy(w.ids);
    pkv_id_map_free(&w.known);
    return result;
}

/* ---- as a part of report.html ---- */

static void *create_part(const struct pkv_html_config *config, struct pkv_err *err)
{
    return blockmap_create(&(struct blockmap_config){.sched = &config->scenario->sched}, err);
}

static void destroy_part(void *part)
{
    blockmap_destroy(part);
}

static struct pkv_sink sink_of_part(void *part)
{
    return blockmap_sink(part);
}

static int write_part(void *part, const char *prefix, struct pkv_out *out, struct pkv_err *err)
{
    return blockmap_write(part, prefix, out, err);
}

const struct html_part html_blockmap = {create_part, destroy_part, sink_of_part, write_part};
