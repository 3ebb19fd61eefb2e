/*
 * model_blocks.c - blocks, the free queue as a linked list, and the prefix index keyed by tokens.
 *
 * An index entry's key is every token from the first one to the end of the block, compared byte by
 * byte. Freed blocks go back last block first: those with an identity to the tail of the queue,
 * those without to the head or the tail.
 */
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

void *model_alloc(size_t num, size_t size)
{
    void *memory = calloc(num > 0 ? num : 1, size);

    if (memory == NULL)
        abort();
    return memory;
}

void model_blocks_init(struct model *m)
{
    m->blocks = model_alloc(m->config.num_blocks, sizeof *m->blocks);
    for (uint32_t i = 0; i < m->config.num_blocks; i++) {
        m->blocks[i].id = i;
        DL_APPEND(m->free, &m->blocks[i]);
    }
}

static struct model_key *key_find(const struct model *m, const struct model_token *tokens,
                                  size_t num)
{
    struct model_key *found;

    HASH_FIND(hh, m->index, tokens, num * sizeof *tokens, found);
    return found;
}

static void key_enter(struct model *m, struct model_block *block, const struct model_token *tokens,
                      size_t num)
{
    struct model_key *key = key_find(m, tokens, num);

    if (key == NULL) {
        key = model_alloc(1, sizeof *key);
        key->tokens = model_alloc(num, sizeof *tokens);
        memcpy(key->tokens, tokens, num * sizeof *tokens);
        key->num_tokens = num;
        HASH_ADD_KEYPTR(hh, m->index, key->tokens, num * sizeof *tokens, key);
    }
    DL_APPEND2(key->blocks, block, same_prev, same_next);
    block->key = key;
}

static void key_leave(struct model *m, struct model_block *block)
{
    struct model_key *key = block->key;

    DL_DELETE2(key->blocks, block, same_prev, same_next);
    block->key = NULL;
    if (key->blocks != NULL)
        return;
    HASH_DEL(m->index, key);
    free(key->tokens);
    free(key);
}

void model_blocks_finish(struct model *m)
{
    for (uint32_t i = 0; i < m->config.num_blocks; i++)
        if (m->blocks[i].key != NULL)
            key_leave(m, &m->blocks[i]);
    free(m->blocks);
}

uint32_t model_count_free(const struct model *m)
{
    uint32_t num = 0;

    for (uint32_t i = 0; i < m->config.num_blocks; i++)
        num += m->blocks[i].num_holders == 0;
    return num;
}

uint32_t model_count_cached_free(const struct model *m)
{
    uint32_t num = 0;

    for (uint32_t i = 0; i < m->config.num_blocks; i++)
        num += m->blocks[i].num_holders == 0 && m->blocks[i].key != NULL;
    return num;
}

/* The first item of a text is its salt, so a prefix of n tokens has n + 1 items. */
uint32_t model_find_prefix(const struct model *m, const struct model_request *r,
                           struct model_block **out)
{
    uint32_t num = 0, size = m->config.block_size;

    if (!m->config.prefix_cache)
        return 0;
    while ((uint64_t)(num + 1) * size <= r->num_known - 1) {
        const struct model_key *key = key_find(m, r->text, 1 + (size_t)(num + 1) * size);

        if (key == NULL)
            break;
        out[num++] = key->blocks;
    }
    return num;
}

uint32_t model_count_unheld(struct model_block *const *blocks, uint32_t num)
{
    uint32_t unheld = 0;

    for (uint32_t i = 0; i < num; i++)
        unheld += blocks[i]->num_holders == 0;
    return unheld;
}

void model_hold(struct model *m, struct model_request *r, struct model_block *block)
{
    if (block->num_holders == 0)
        DL_DELETE(m->free, block);
    block->num_holders++;
    r->table[r->num_table++] = block;
    if (r->num_table > r->peak_blocks)
        r->peak_blocks = r->num_table;
}

void model_take_new(struct model *m, struct model_request *r)
{
    struct model_block *block = m->free;

    if (block->key != NULL) {
        key_leave(m, block);
        m->evicted[m->num_evicted++] = block->id;
        m->totals.evicted++;
    }
    m->totals.allocated++;
    model_hold(m, r, block);
}

void model_publish(struct model *m, struct model_request *r, uint32_t num_tokens)
{
    uint32_t size = m->config.block_size;

    if (!m->config.prefix_cache)
        return;
    for (uint32_t i = 0; i < r->num_table && (uint64_t)(i + 1) * size <= num_tokens; i++)
        if (r->table[i]->key == NULL)
            key_enter(m, r->table[i], r->text, 1 + (size_t)(i + 1) * size);
}

void model_unpublish(struct model *m, struct model_request *r, uint32_t num_tokens)
{
    uint32_t size = m->config.block_size;

    for (uint32_t i = 0; i < r->num_table; i++)
        if (r->table[i]->key != NULL && (uint64_t)(i + 1) * size > num_tokens)
            key_leave(m, r->table[i]);
}

/* Last block first; but what goes to the head must end up with the last block foremost. */
uint32_t model_release(struct model *m, struct model_request *r)
{
    bool to_head = m->config.prefix_cache && m->config.unhashed_to_head;
    uint32_t num_freed = 0;

    for (uint32_t i = r->num_table; i-- > 0; ) {
        r->table[i]->num_holders--;
        num_freed += r->table[i]->num_holders == 0;
        if (r->table[i]->num_holders == 0 && (r->table[i]->key != NULL || !to_head))
            DL_APPEND(m->free, r->table[i]);
    }
    for (uint32_t i = 0; i < r->num_table; i++)
        if (r->table[i]->num_holders == 0 && r->table[i]->key == NULL && to_head)
            DL_PREPEND(m->free, r->table[i]);
    r->num_table = 0;
    m->totals.released += num_freed;
    return num_freed;
}

uint64_t model_count_stored(const struct model *m)
{
    uint32_t size = m->config.block_size;
    uint64_t *filled = model_alloc(m->config.num_blocks, sizeof *filled), sum = 0;

    for (const struct model_request *r = m->running; r != NULL; r = r->next)
        for (uint32_t i = 0; i < r->num_table && (uint64_t)i * size < r->num_computed; i++) {
            uint64_t here = r->num_computed - (uint64_t)i * size;
            uint64_t *slot = &filled[r->table[i]->id];

            here = here < size ? here : size;
            *slot = *slot > here ? *slot : here;
        }
    for (uint32_t i = 0; i < m->config.num_blocks; i++)
        sum += filled[i];
    free(filled);
    return sum;
}
