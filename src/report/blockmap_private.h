/*
 * blockmap_private.h - states of the pool over time, for the block map of report.html.
 *
 * A frame is the state right after the scheduling of one tick, copied whole, so that each is exact by
 * itself: the block tables, which free blocks have an identity, and the counts of the tick's row. As
 * long as there is room every tick has one. When there is none, every second frame is dropped and from
 * then on every second tick is left out, again and again: at any time the frames are those of the ticks
 * 0, stride, 2 stride ..., and the stride is a power of two.
 *
 * Where there are more blocks than a picture has room for, a cell stands for several neighbours: the
 * frames keep counts by cell and only the lengths of tables.
 */
#ifndef PKV_BLOCKMAP_PRIVATE_H
#define PKV_BLOCKMAP_PRIVATE_H

#include "report/report_private.h"

/* Counts of a tick's row that go with its frame. */
#define MAP_COUNTS(X)                                                                             \
    X(step) X(time_ns) X(dur_ns) X(waiting) X(running) X(free_blocks) X(used_blocks)              \
    X(cached_blocks) X(stored_tokens) X(reserved_slots) X(internal_slots) X(external_slots)
struct map_counts {
#define MAP_FIELD(name) int64_t name;
    MAP_COUNTS(MAP_FIELD)
#undef MAP_FIELD
};

enum map_holder {
    MAP_RUNNING,
    MAP_RESUMING,    /* its blocks are being copied in */
    MAP_LINK         /* nobody's: blocks held by transfers alone, until these are done */
};

/* One table of one request; those of one request, group after group, follow one another. */
struct map_table {
    uint64_t row, end_positions;     /* end: that it will have stored; under a layout of runs, else 0 */
    enum map_holder holder;
    uint32_t group;
    uint32_t num, num_null;          /* blocks, leading null ones included */
    uint32_t num_computed;
};

/* Blocks of one cell; shared, reserved and unused ones are among the used. */
#define MAP_CELL_COUNTS(X) X(used) X(shared) X(cached) X(reserved) X(unused)
struct map_cell {
#define MAP_FIELD(name) uint32_t name;
    MAP_CELL_COUNTS(MAP_FIELD)
#undef MAP_FIELD
};

struct map_frame {
    struct map_counts counts;
    struct map_table *tables;        /* owned, as all below; in the order of admission */
    pkv_block_id *places;            /* of the tables, one behind the other, without the null ones */
    uint32_t *cached;                /* bit b of word w: block 32 w + b is free and has an identity */
    struct map_cell *cells;          /* instead of places and cached where cells are of several blocks */
    char *ids;                       /* of the requests in their order, each ended by NUL; "" = its row */
    size_t num_tables, num_places, num_words, num_cells, ids_length;
    size_t tables_capacity, places_capacity, words_capacity, cells_capacity, ids_capacity;
};

struct blockmap_config {
    const struct pkv_sched_config *sched;   /* borrowed for the call */
    /* 0 = as the report has it; for tests. Frames are thinned out when they are larger: in memory, or
     * in bytes before packing when they are written. */
    size_t most_bytes, most_written;
    uint32_t most_blocks;                   /* of which each has a cell of its own */
};

struct blockmap {
    uint32_t num_blocks, num_groups, cell_blocks;   /* cell_blocks: a power of two */
    struct pkv_group_config groups[PKV_MAX_GROUPS];
    const char *layout;
    bool takes_runs;                 /* a request has blocks for all it may store, from the beginning */
    bool looks_ahead;                /* tables may be ahead of what is computed */
    size_t most_bytes, most_written;
    uint64_t stride, num_ticks;
    struct map_frame *frames;        /* owned, [num] */
    size_t num, capacity;
    size_t num_bytes;                /* of all frames, one counting for at least 2 bytes a block */
    struct map_frame taken;          /* owned: of this tick, until its row is there */
    bool has_taken;
    uint32_t *marks;                 /* owned, [num_blocks]: holders counted in the frame being taken */
};

/* errors: PKV_ERR_MEMORY. Cost O(num_blocks). */
struct blockmap *blockmap_create(const struct blockmap_config *config, struct pkv_err *err);
void blockmap_destroy(struct blockmap *map);
/* The engine's sink.
 *   cost     nothing in a tick that has no frame, else O(blocks + their holders); of n ticks with room for
 *            k frames O(k log(n / k)) have one for a time
 *   memory   at most most_bytes, and one frame more */
struct pkv_sink blockmap_sink(struct blockmap *map);

/* The state right after scheduling. */
int frame_take(struct blockmap *map, struct pkv_sched *sched, struct pkv_err *err);
/* A copy without spare room. */
int frame_copy(const struct map_frame *frame, struct map_frame *out, struct pkv_err *err);
size_t frame_bytes(const struct map_frame *frame);
void frame_free(struct map_frame *frame);
uint32_t blockmap_num_cells(const struct blockmap *map);

/* The islands of a page (see blockmap_write.c, packed.h). Where all frames would take too much room only
 * every nth is written, n being as small as it can.
 *   prefix   of the islands' names
 *   errors   PKV_ERR_MEMORY; write errors are out's */
int blockmap_write(const struct blockmap *map, const char *prefix, struct pkv_out *out,
                   struct pkv_err *err);

#endif
