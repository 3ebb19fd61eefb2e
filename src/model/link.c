/*
 * link.c - how long blocks take between the pool and the host.
 *
 * Products are formed in 128 whole, so no input can overflow.
 */
#include "pagedkv/err.h"
#include "pagedkv/model.h"

int64_t pkv_link_time_ns(const struct pkv_link *link, uint64_t num_blocks, uint64_t block_bytes)
{
    PKV_ASSERT(link->bytes_per_s > 0 && link->latency_ns >= 0);
    unsigned __int128 whole = (unsigned __int128)block_bytes * 1000000000u + link->bytes_per_s - 1;
    unsigned __int128 one = whole / link->bytes_per_s + (uint64_t)link->latency_ns;
    if (one >= PKV_LONGEST_STEP_NS || one * num_blocks >= PKV_LONGEST_STEP_NS)
        return num_blocks > 0 ? PKV_LONGEST_STEP_NS : 0;
    return (int64_t)(one * num_blocks);
}
