/*
 * group.c - the kinds of KV groups by name, and which of them can share a pool.
 *
 * A block of the pool is as many bytes in whichever group it serves, so groups whose layers take
 * fewer bytes a token have blocks of more tokens. Text is hashed in the greatest unit that divides
 * every block size, and hits end where blocks of every group do. A state has no tokens in its blocks
 * and no say in either.
 */
#include <string.h>

#include "cache/cache_private.h"

static const struct pkv_group_ops *const kinds[] = {
    &pkv_group_full, &pkv_group_sliding, &pkv_group_chunked, &pkv_group_state,
};
#define NUM_KINDS (sizeof(kinds) / sizeof(*kinds))

const char *pkv_group_name(const struct pkv_group_config *group)
{
    return group->ops->name;
}

const struct pkv_group_ops *pkv_group_find(const char *name, const char **out_size)
{
    for (size_t i = 0; i < NUM_KINDS; i++) {
        if (strcmp(kinds[i]->name, name) != 0)
            continue;
        *out_size = kinds[i]->size_name;
        return kinds[i];
    }
    return NULL;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct group_sizes group_sizes(const struct pkv_group_config *groups, uint32_t num_groups)
{
    struct group_sizes sizes = {.unit = 0, .align = 1};
    for (uint32_t g = 0; g < num_groups; g++) {
        uint64_t size = groups[g].block_size;
        if (size > sizes.largest)
            sizes.largest = size;
        if (!groups[g].ops->stores_positions || sizes.align > PKV_MAX_BLOCK_SIZE)
            continue;
        sizes.unit = gcd(sizes.unit, size);
        sizes.align = sizes.align / gcd(sizes.align, size) * size;
    }
    if (sizes.unit == 0)   /* states only */
        sizes.unit = sizes.align = sizes.largest;
    return sizes;
}

bool pkv_groups_have_second_keys(const struct pkv_group_config *groups, uint32_t num_groups)
{
    uint64_t unit = group_sizes(groups, num_groups).unit;
    for (uint32_t g = 0; g < num_groups; g++)
        if (groups[g].ops->has_second_key && groups[g].block_size > unit)
            return true;
    return false;
}

uint32_t pkv_groups_block_size(const struct pkv_group_config *groups, uint32_t num_groups)
{
    return (uint32_t)group_sizes(groups, num_groups).largest;
}

int pkv_groups_check(const struct pkv_group_config *groups, uint32_t num_groups,
                     struct pkv_err *err)
{
    if (num_groups == 0 || num_groups > PKV_MAX_GROUPS)
        return pkv_fail(err, PKV_ERR_INPUT, "1 to %u KV groups share a pool, not %u",
                        PKV_MAX_GROUPS, num_groups);
    for (uint32_t g = 0; g < num_groups; g++) {
        uint32_t size = groups[g].block_size;
        if (size == 0 || size > PKV_MAX_BLOCK_SIZE)
            return pkv_fail(err, PKV_ERR_INPUT, "a block has 1 to %u tokens, not %u",
                            PKV_MAX_BLOCK_SIZE, size);
        if (groups[g].ops->size_name && groups[g].size == 0)
            return pkv_fail(err, PKV_ERR_INPUT, "the %s of a %s group is at least 1, not 0",
                            groups[g].ops->size_name, groups[g].ops->name);
    }
    if (group_sizes(groups, num_groups).align > PKV_MAX_BLOCK_SIZE)
        return pkv_fail(err, PKV_ERR_INPUT, "the groups' block sizes have no common multiple up to "
                        "%u tokens, so no hit could end where blocks of every group do",
                        PKV_MAX_BLOCK_SIZE);
    return 0;
}
