/*
 * alloc.h - checked allocation. Every allocation of the library goes through here, so that a test
 * can make the nth one fail. Sizes are multiplied with a check for overflow.
 */
#ifndef PKV_BASE_ALLOC_H
#define PKV_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

/* num * size zeroed bytes, or NULL with PKV_ERR_MEMORY. num = 0 gives a pointer to free, too. */
void *pkv_alloc(size_t num, size_t size, struct pkv_err *err);

/* Make *array (items of `size` bytes, owned, may be NULL) hold at least `want` items, at least
 * doubling. New items are not cleared. On failure nothing is changed.
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int pkv_grow_more(void *array, size_t *capacity, size_t want, size_t size, struct pkv_err *err);
static inline int pkv_grow(void *array, size_t *capacity, size_t want, size_t size,
                           struct pkv_err *err)
{
    return want <= *capacity ? 0 : pkv_grow_more(array, capacity, want, size, err);
}

char *pkv_strdup(const char *text, struct pkv_err *err);
void pkv_free(void *memory);

/* For tests: allocation number n from now (1 = the next) fails, and every later one too while
 * `sticky`; 0 = never. Per thread. */
void pkv_alloc_fail_at(uint64_t n, int sticky);
uint64_t pkv_alloc_count(void);   /* allocations so far in this thread */

#endif
