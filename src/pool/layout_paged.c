/*
 * layout_paged.c - any free block will do, in the order of the evict policy.
 */
#include "base/alloc.h"
#include "pagedkv/pool.h"

struct paged {
    const struct pkv_evict_ops *evict;   /* borrowed */
    void *free_blocks;                   /* owned: the evict policy's state */
    uint32_t num_free;
};

static void destroy(void *state)
{
    struct paged *paged = state;
    if (paged->free_blocks)
        paged->evict->destroy(paged->free_blocks);
    pkv_free(paged);
}

static void *create(uint32_t num_blocks, const struct pkv_evict_ops *evict, uint64_t seed,
                    struct pkv_err *err)
{
    struct paged *paged = pkv_alloc(1, sizeof(*paged), err);
    if (!paged)
        return NULL;
    paged->evict = evict;
    paged->free_blocks = evict->create(num_blocks, seed, err);
    if (!paged->free_blocks) {
        destroy(paged);
        return NULL;
    }
    const struct pkv_evict_hint nothing = {0};
    for (pkv_block_id id = 0; id < num_blocks; id++)
        evict->push(paged->free_blocks, id, PKV_END_TAIL, evict->needs_hint ? &nothing : NULL);
    paged->num_free = num_blocks;
    return paged;
}

static uint32_t reserve_blocks(const void *state, uint32_t num_prompt_tokens,
                               uint32_t num_positions, uint32_t max_model_len, uint32_t block_size)
{
    (void)state, (void)num_prompt_tokens, (void)num_positions;
    (void)max_model_len, (void)block_size;
    return 0;
}

static bool take(void *state, uint32_t num, pkv_block_id *out)
{
    struct paged *paged = state;
    if (num > paged->num_free)
        return false;
    for (uint32_t i = 0; i < num; i++)
        out[i] = paged->evict->pop(paged->free_blocks);
    paged->num_free -= num;
    return true;
}

static void give(void *state, pkv_block_id id, enum pkv_pool_end end,
                 const struct pkv_evict_hint *hint)
{
    struct paged *paged = state;
    paged->evict->push(paged->free_blocks, id, end, hint);
    paged->num_free++;
}

static void revive(void *state, pkv_block_id id)
{
    struct paged *paged = state;
    paged->evict->remove(paged->free_blocks, id);
    paged->num_free--;
}

static uint32_t list_free(const void *state, pkv_block_id *out)
{
    const struct paged *paged = state;
    return paged->evict->list(paged->free_blocks, out);
}

const struct pkv_layout_ops pkv_layout_paged = {
    .info = {.name = "paged",
             .summary = "any free block, one at a time as the request grows",
             .source = "Kwon et al., SOSP 2023"},
    .create = create,
    .destroy = destroy,
    .reserve_blocks = reserve_blocks,
    .take = take,
    .give = give,
    .revive = revive,
    .list_free = list_free,
};
