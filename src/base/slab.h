/*
 * slab.h - arrays that are given back and taken again, so that no step has to ask the allocator.
 *
 * Arrays come in sizes of powers of two bytes; each size has a list of unused ones.
 */
#ifndef PKV_BASE_SLAB_H
#define PKV_BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

#define PKV_SLAB_CLASSES 48u

struct pkv_slab {
    void *unused[PKV_SLAB_CLASSES];   /* owned, linked through their first bytes */
};

/* At least num items of `size` bytes, content undefined; *out_capacity = items it has room for. */
void *pkv_slab_take(struct pkv_slab *slab, size_t num, size_t size, size_t *out_capacity,
                    struct pkv_err *err);
/* capacity and size as they were at take. NULL is fine. */
void pkv_slab_give(struct pkv_slab *slab, void *array, size_t capacity, size_t size);
void pkv_slab_free(struct pkv_slab *slab);   /* all unused arrays */

#endif
