/*
 * heap.h - a binary heap of nodes that are embedded in what is queued, so that any of them can
 * leave from the middle. Smaller (key[0], key[1]) first; equal keys are the caller's mistake, as
 * their order would be that of the heap's insides.
 */
#ifndef PKV_BASE_HEAP_H
#define PKV_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/heap_node.h"

struct pkv_heap {
    struct pkv_heap_node **nodes; /* [num], owned array of borrowed nodes */
    size_t num, capacity;
};

void pkv_heap_free(struct pkv_heap *heap);
int pkv_heap_reserve(struct pkv_heap *heap, size_t num, struct pkv_err *err);
void pkv_heap_push(struct pkv_heap *heap, struct pkv_heap_node *node);   /* room was reserved */
void pkv_heap_remove(struct pkv_heap *heap, struct pkv_heap_node *node);
void pkv_heap_rebuild(struct pkv_heap *heap);                            /* keys have changed; O(num) */
struct pkv_heap_node *pkv_heap_first(const struct pkv_heap *heap);       /* NULL = empty */
bool pkv_heap_before(const struct pkv_heap_node *a, const struct pkv_heap_node *b);

#endif
