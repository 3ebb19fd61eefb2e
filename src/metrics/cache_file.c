/*
 * cache_file.c - cache.csv: what lies free in the cache when a run is over, in the order in which it would
 * be taken, with what another cache has to have in common with it. Read again by report/warm.c.
 */
#include <inttypes.h>

#include "metrics/metrics_private.h"

static void write_block(struct pkv_text *t, const struct pkv_kept_block *block)
{
    pkv_text_fmt(t, "1,%016" PRIx64 ",", block->key);
    if (block->second_key)
        pkv_text_fmt(t, "%016" PRIx64, block->second_key);
    pkv_text_fmt(t, ",%" PRIu32 "\n", block->twin);
}

/* Blocks without content, from one place to another. */
static void write_empty(struct pkv_text *t, uint32_t from, uint32_t to)
{
    uint32_t num = to - from;
    if (num > 0)
        pkv_text_fmt(t, "%" PRIu32 ",,,\n", num);
}

int cache_file_write(struct pkv_out *out, const struct pkv_cache *cache, struct pkv_err *err)
{
    struct pkv_cache_state state;
    struct pkv_text t = {0};
    uint32_t done = 0;
    if (pkv_cache_save(cache, &state, err) < 0)
        return -1;
    pkv_text_fmt(&t, "# identities %u\n# groups %s\n# blocks %" PRIu32 "\n# runs %" PRIu64 "\n"
                 "blocks,identity,second,twin\n", PKV_CACHE_SCHEME, state.groups, state.num,
                 state.num_runs);
    for (uint32_t i = 0; i < state.num_kept && !t.failed; i++) {
        write_empty(&t, done, state.blocks[i].place);
        done = state.blocks[i].place + 1;
        write_block(&t, &state.blocks[i]);
        pkv_out_bytes(out, t.text, t.length);
        pkv_text_clear(&t);
    }
    write_empty(&t, done, state.num);
    if (!t.failed)
        pkv_out_bytes(out, t.text, t.length);
    int failed = t.failed;
    pkv_text_free(&t);
    pkv_cache_state_free(&state);
    return failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a row of "
                             PKV_CACHE_FILE) : 0;
}
