/*
 * slab.c - unused arrays by size class. Class c holds arrays of 2^(c + 5) bytes.
 */
#include "base/slab.h"

#include <string.h>

#include "base/alloc.h"

enum { SMALLEST_SHIFT = 5 };

static unsigned class_of(size_t bytes)
{
    unsigned c = 0;
    while (((size_t)1 << (c + SMALLEST_SHIFT)) < bytes)
        c++;
    PKV_ASSERT(c < PKV_SLAB_CLASSES);
    return c;
}

void *pkv_slab_take(struct pkv_slab *slab, size_t num, size_t size, size_t *out_capacity,
                    struct pkv_err *err)
{
    PKV_ASSERT(num <= (SIZE_MAX >> 16) / size);
    unsigned c = class_of(num * size);
    size_t bytes = (size_t)1 << (c + SMALLEST_SHIFT);
    void *array = slab->unused[c];
    if (array)
        memcpy(&slab->unused[c], array, sizeof array);
    else
        array = pkv_alloc(bytes, 1, err);
    if (array)
        *out_capacity = bytes / size;
    return array;
}

void pkv_slab_give(struct pkv_slab *slab, void *array, size_t capacity, size_t size)
{
    if (!array)
        return;
    unsigned c = class_of(capacity * size);
    memcpy(array, &slab->unused[c], sizeof slab->unused[c]);
    slab->unused[c] = array;
}

void pkv_slab_free(struct pkv_slab *slab)
{
    for (unsigned c = 0; c < PKV_SLAB_CLASSES; c++) {
        while (slab->unused[c]) {
            void *next;
            memcpy(&next, slab->unused[c], sizeof next);
            pkv_free(slab->unused[c]);
            slab->unused[c] = next;
        }
    }
}
