/*
 * id_map.c - see id_map.h. Nothing is ever taken out, so a search ends at the first free slot.
 */
#include "base/id_map.h"

#include "base/alloc.h"
#include "base/mix.h"

static struct pkv_id_entry *find(const struct pkv_id_map *map, uint64_t key)
{
    size_t mask = map->num_slots - 1;
    size_t i = (size_t)pkv_scramble(key) & mask;
    while (map->slots[i].is_used && map->slots[i].key != key)
        i = (i + 1) & mask;
    return &map->slots[i];
}

static int make_room(struct pkv_id_map *map, struct pkv_err *err)
{
    struct pkv_id_map larger = {.num = map->num};
    if (2 * (map->num + 1) <= map->num_slots)
        return 0;
    larger.num_slots = map->num_slots ? 2 * map->num_slots : 64;
    larger.slots = pkv_alloc(larger.num_slots, sizeof *larger.slots, err);
    if (!larger.slots)
        return -1;
    for (size_t i = 0; i < map->num_slots; i++)
        if (map->slots[i].is_used)
            *find(&larger, map->slots[i].key) = map->slots[i];
    pkv_free(map->slots);
    *map = larger;
    return 0;
}

uint64_t *pkv_id_map_at(struct pkv_id_map *map, uint64_t key, struct pkv_err *err)
{
    if (make_room(map, err) < 0)
        return NULL;
    struct pkv_id_entry *entry = find(map, key);
    if (!entry->is_used) {
        *entry = (struct pkv_id_entry){.key = key, .is_used = true};
        map->num++;
    }
    return &entry->value;
}

const uint64_t *pkv_id_map_find(const struct pkv_id_map *map, uint64_t key)
{
    const struct pkv_id_entry *entry = map->num_slots ? find(map, key) : NULL;
    return entry && entry->is_used ? &entry->value : NULL;
}

void pkv_id_map_free(struct pkv_id_map *map)
{
    pkv_free(map->slots);
    *map = (struct pkv_id_map){0};
}
