/*
 * blockmap.c - which ticks have a frame: a sink that keeps as many as there is room for.
 */
#include "report/blockmap_private.h"

#include <string.h>

#include "base/alloc.h"

#define MOST_BYTES ((size_t)8 << 20)
#define MOST_WRITTEN ((size_t)1400 << 10)   /* packed and in base64 mostly less, at most 4/3 of it */
#define MOST_BLOCKS 32768u
#define MOST_CELLS 4096u                    /* where a cell has several */

/* One block each, or a power of two so that there are few enough. */
static uint32_t blocks_per_cell(uint32_t num_blocks, uint32_t most_blocks)
{
    uint32_t num = 1, most_cells = most_blocks < MOST_CELLS ? most_blocks : MOST_CELLS;
    while (num_blocks > most_blocks && ((uint64_t)num_blocks + num - 1) / num > most_cells)
        num *= 2;
    return num;
}

struct blockmap *blockmap_create(const struct blockmap_config *config, struct pkv_err *err)
{
    const struct pkv_sched_config *sched = config->sched;
    struct blockmap *map = pkv_alloc(1, sizeof *map, err);
    if (!map)
        return NULL;
    map->num_blocks = sched->num_blocks;
    map->num_groups = sched->num_groups;
    memcpy(map->groups, sched->groups, sizeof map->groups);
    map->layout = sched->policies.layout->info.name;
    map->takes_runs = sched->policies.layout->create != NULL;
    map->looks_ahead = pkv_speculation_lookahead(&sched->speculation) > 0;
    map->most_bytes = config->most_bytes ? config->most_bytes : MOST_BYTES;
    map->most_written = config->most_written ? config->most_written : MOST_WRITTEN;
    map->cell_blocks = blocks_per_cell(map->num_blocks,
                                       config->most_blocks ? config->most_blocks : MOST_BLOCKS);
    map->stride = 1;
    map->marks = pkv_alloc(map->num_blocks, sizeof *map->marks, err);
    if (map->marks)
        return map;
    blockmap_destroy(map);
    return NULL;
}

void blockmap_destroy(struct blockmap *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->num; i++)
        frame_free(&map->frames[i]);
    frame_free(&map->taken);
    pkv_free(map->frames);
    pkv_free(map->marks);
    pkv_free(map);
}

uint32_t blockmap_num_cells(const struct blockmap *map)
{
    return (uint32_t)(((uint64_t)map->num_blocks + map->cell_blocks - 1) / map->cell_blocks);
}

/* A frame counts for at least as much as looking at all blocks costs. */
static size_t weight(const struct blockmap *map, const struct map_frame *frame)
{
    size_t bytes = frame_bytes(frame), least = (size_t)2 * map->num_blocks;
    return bytes > least ? bytes : least;
}

/* The first one stays, every second one goes. */
static void thin_out(struct blockmap *map)
{
    size_t kept = 0;
    map->num_bytes = 0;
    for (size_t i = 0; i < map->num; i++) {
        if (i % 2 == 1) {
            frame_free(&map->frames[i]);
            continue;
        }
        map->num_bytes += weight(map, &map->frames[i]);
        map->frames[kept++] = map->frames[i];
    }
    map->num = kept;
    map->stride *= 2;
}

static int keep(struct blockmap *map, const struct pkv_step_row *row, struct pkv_err *err)
{
    struct map_frame *taken = &map->taken;
#define TAKE(name) taken->counts.name = row->name;
    MAP_COUNTS(TAKE)
#undef TAKE
    if (pkv_grow(&map->frames, &map->capacity, map->num + 1, sizeof *map->frames, err) < 0 ||
        frame_copy(taken, &map->frames[map->num], err) < 0)
        return -1;
    map->num_bytes += weight(map, &map->frames[map->num]);
    map->num++;
    while (map->num_bytes > map->most_bytes && map->num > 1)
        thin_out(map);
    return 0;
}

static int on_scheduled(void *ctx, struct pkv_sched *sched, struct pkv_err *err)
{
    struct blockmap *map = ctx;
    map->has_taken = map->num_ticks % map->stride == 0;
    return map->has_taken ? frame_take(map, sched, err) : 0;
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct blockmap *map = ctx;
    (void)sched;
    map->num_ticks++;
    return map->has_taken ? keep(map, row, err) : 0;
}

struct pkv_sink blockmap_sink(struct blockmap *map)
{
    return (struct pkv_sink){.scheduled = on_scheduled, .step = on_step, .ctx = map};
}
