/*
 * alloc.c - checked allocation, with a lever by which a test makes the nth one fail.
 */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local uint64_t num_allocations;
static _Thread_local uint64_t fail_at;      /* number of the allocation that fails; 0 = none */
static _Thread_local int fail_sticky;

void pkv_alloc_fail_at(uint64_t n, int sticky)
{
    fail_at = n ? num_allocations + n : 0;
    fail_sticky = sticky;
}

uint64_t pkv_alloc_count(void)
{
    return num_allocations;
}

static int must_fail(void)
{
    num_allocations++;
    return fail_at && (num_allocations == fail_at || (fail_sticky && num_allocations > fail_at));
}

static void *out_of_memory(size_t num, size_t size, struct pkv_err *err)
{
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for %zu x %zu bytes", num, size);
    return NULL;
}

void *pkv_alloc(size_t num, size_t size, struct pkv_err *err)
{
    if (must_fail())
        return out_of_memory(num, size, err);
    void *memory = calloc(num ? num : 1, size ? size : 1);
    return memory ? memory : out_of_memory(num, size, err);
}

int pkv_grow_more(void *array, size_t *capacity, size_t want, size_t size, struct pkv_err *err)
{
    size_t room = *capacity ? *capacity : 8;
    while (room < want)
        room = room > SIZE_MAX / 2 ? want : room * 2;
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = NULL;
    if (!must_fail() && room <= SIZE_MAX / size)
        grown = realloc(old, room * size);
    if (!grown) {
        out_of_memory(room, size, err);
        return -1;
    }
    memcpy(array, &grown, sizeof grown);
    *capacity = room;
    return 0;
}

char *pkv_strdup(const char *text, struct pkv_err *err)
{
    size_t size = strlen(text) + 1;
    char *copy = pkv_alloc(size, 1, err);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void pkv_free(void *memory)
{
    free(memory);
}
