/*
 * heap_node.h - the place of a queued thing in its queue; embedded in the thing.
 */
#ifndef PAGEDKV_HEAP_NODE_H
#define PAGEDKV_HEAP_NODE_H

#include <stddef.h>
#include <stdint.h>

#define PKV_HEAP_NOWHERE SIZE_MAX

struct pkv_heap_node {
    int64_t key[2];               /* smaller first, the second breaks ties */
    size_t index;                 /* place in the heap; PKV_HEAP_NOWHERE = not queued */
};

#endif
