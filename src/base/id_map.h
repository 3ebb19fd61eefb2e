/*
 * id_map.h - 64-bit numbers to 64-bit numbers: an open table, at most half full, that only grows.
 */
#ifndef PKV_BASE_ID_MAP_H
#define PKV_BASE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

struct pkv_id_entry {
    uint64_t key, value;
    bool is_used;
};
struct pkv_id_map {
    struct pkv_id_entry *slots;   /* [num_slots] owned; a power of two */
    size_t num, num_slots;        /* num: entries in use */
};

/* The value of a key, 0 where it is new and now entered: it may be written until the next call.
 * returns  NULL with PKV_ERR_MEMORY
 * cost     O(1) */
uint64_t *pkv_id_map_at(struct pkv_id_map *map, uint64_t key, struct pkv_err *err);
/* NULL = it has not been entered. */
const uint64_t *pkv_id_map_find(const struct pkv_id_map *map, uint64_t key);
void pkv_id_map_free(struct pkv_id_map *map);

#endif
