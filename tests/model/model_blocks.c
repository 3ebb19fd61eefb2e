/*
 * model_blocks.c - blocks, the free queue as a linked list, and the prefix index keyed by tokens.
 *
 * An index entry's key is every token from the first one to the end of the block, compared byte by
 * byte. A hit is looked for from the longest length down. Freed blocks go back last block first: those
 * with an identity to the tail of the queue, those without to the head or the tail.
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

static struct model_key *key_find(const struct model *m, uint32_t g,
                                  const struct model_token *tokens, size_t num)
{
    struct model_key *found;

    HASH_FIND(hh, m->index[g], tokens, num * sizeof *tokens, found);
    return found;
}

/* The first item of a text is its salt, so a prefix of n tokens has n + 1 items. */
static struct model_key *key_make(struct model *m, uint32_t g, const struct model_request *r,
                                  uint64_t num_tokens)
{
    size_t num = 1 + (size_t)num_tokens;
    struct model_key *key = key_find(m, g, r->text, num);

    if (key != NULL)
        return key;
    key = model_alloc(1, sizeof *key);
    key->tokens = model_alloc(num, sizeof *r->text);
    memcpy(key->tokens, r->text, num * sizeof *r->text);
    key->num_tokens = num;
    key->group = g;
    HASH_ADD_KEYPTR(hh, m->index[g], key->tokens, num * sizeof *r->text, key);
    return key;
}

static void key_drop_if_unused(struct model *m, struct model_key *key)
{
    if (key->blocks != NULL || key->num_second > 0)
        return;
    HASH_DEL(m->index[key->group], key);
    free(key->tokens);
    free(key);
}

static void key_leave(struct model *m, struct model_block *block)
{
    struct model_key *key = block->key, *second = block->second;

    DL_DELETE2(key->blocks, block, same_prev, same_next);
    block->key = block->second = NULL;
    key_drop_if_unused(m, key);
    if (second == NULL)
        return;
    second->num_second--;
    key_drop_if_unused(m, second);
}

size_t model_count_keys(const struct model *m)
{
    size_t num = 0;

    for (uint32_t g = 0; g < m->config.num_groups; g++)
        num += HASH_COUNT(m->index[g]);
    return num;
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

static struct model_block *oldest(const struct model *m, const struct model_request *r, uint32_t g,
                                  uint32_t index)
{
    size_t end = (size_t)(index + 1) * m->config.groups[g].block_size;
    const struct model_key *key = key_find(m, g, r->text, 1 + end);

    return key != NULL ? key->blocks : NULL;
}

/* Has every group what a hit of so many tokens needs? */
static bool is_hit(const struct model *m, const struct model_request *r, uint32_t num_tokens)
{
    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        const struct model_group *group = &m->config.groups[g];

        if (group->kind == MODEL_GROUP_STATE)
            return false;
        for (uint32_t i = model_first_needed(group, num_tokens);
             i < num_tokens / group->block_size; i++)
            if (oldest(m, r, g, i) == NULL)
                return false;
    }
    return true;
}

static void list_hit(const struct model *m, const struct model_request *r, uint32_t g,
                     struct model_hit *out)
{
    const struct model_group *group = &m->config.groups[g];

    out->num[g] = out->num_tokens / group->block_size;
    out->num_null[g] = out->num_tokens > 0 ? model_first_needed(group, out->num_tokens) : 0;
    for (uint32_t i = 0; i < out->num[g]; i++) {
        out->blocks[g][i] = i < out->num_null[g] ? NULL : oldest(m, r, g, i);
        out->num_unheld += out->blocks[g][i] != NULL && out->blocks[g][i]->num_holders == 0;
    }
}

void model_hit_finish(struct model_hit *hit)
{
    for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
        free(hit->blocks[g]);
    *hit = (struct model_hit){ 0 };
}

void model_find_prefix(const struct model *m, const struct model_request *r, struct model_hit *out)
{
    uint32_t num = r->num_known - 1;

    if (r->prompt_only && num > r->num_prompt)
        num = r->num_prompt;
    model_hit_finish(out);
    for (uint32_t g = 0; g < m->config.num_groups; g++)
        out->blocks[g] = model_alloc(r->num_known, sizeof(struct model_block *));
    num -= num % m->config.align;
    while (num > 0 && (!m->config.prefix_cache || !is_hit(m, r, num)))
        num -= m->config.align;
    if (m->config.drops_last_hit && num > 0)
        num -= m->config.align;
    out->num_tokens = num;
    for (uint32_t g = 0; g < m->config.num_groups; g++)
        list_hit(m, r, g, out);
}

void model_hold(struct model *m, struct model_request *r, uint32_t g, struct model_block *block)
{
    uint32_t num;

    r->table[g][r->num_table[g]++] = block;
    if (block == NULL)
        return;
    if (block->num_holders == 0)
        DL_DELETE(m->free, block);
    block->num_holders++;
    num = model_num_held(r);
    r->peak_blocks = num > r->peak_blocks ? num : r->peak_blocks;
}

void model_take_new(struct model *m, struct model_request *r, uint32_t g)
{
    struct model_block *block = m->free;

    if (block->key != NULL) {
        key_leave(m, block);
        m->evicted[m->num_evicted++] = block->id;
        m->totals.evicted++;
    }
    m->totals.allocated++;
    model_hold(m, r, g, block);
}

void model_take_all(struct model *m, struct model_request *r, uint64_t num_positions)
{
    for (uint32_t g = 0; g < m->config.num_groups; g++)
        while (r->num_table[g] < model_table_length(m, g, num_positions))
            model_take_new(m, r, g);
}

/* The prompt's last whole unit, if it ends inside this block, off its beginning and end. */
static void enter_second(struct model *m, const struct model_request *r, uint32_t g, uint32_t index)
{
    uint32_t size = m->config.groups[g].block_size, end = r->num_prompt;
    struct model_block *block = r->table[g][index];

    if (m->config.groups[g].kind != MODEL_GROUP_FULL || end / size != index)
        return;
    end -= end % m->config.unit;
    if (end % size == 0)
        return;
    block->second = key_make(m, g, r, end);
    block->second->num_second++;
}

void model_copy(struct model *m, struct model_request *r, uint32_t g, uint32_t index)
{
    uint32_t num = r->num_table[g], peak = r->peak_blocks;
    struct model_block *shared = r->table[g][index];

    model_take_new(m, r, g);
    shared->num_holders--;
    r->table[g][index] = r->table[g][num];
    r->num_table[g] = num;
    r->peak_blocks = peak;
    m->totals.copied++;
}

void model_publish(struct model *m, struct model_request *r, uint32_t num_tokens)
{
    if (r->prompt_only && num_tokens > r->num_prompt)
        num_tokens = r->num_prompt;
    num_tokens -= num_tokens % m->config.align;
    for (uint32_t g = 0; g < m->config.num_groups && m->config.prefix_cache; g++) {
        uint32_t size = m->config.groups[g].block_size;

        for (uint32_t i = 0; i < r->num_table[g] && (uint64_t)(i + 1) * size <= num_tokens; i++) {
            struct model_block *block = r->table[g][i];

            if (!model_is_useful(m, g, i))
                continue;
            r->num_hashed[g] = r->num_hashed[g] > i + 1 ? r->num_hashed[g] : i + 1;
            if (block == NULL || block->key != NULL)
                continue;
            block->key = key_make(m, g, r, (uint64_t)(i + 1) * size);
            DL_APPEND2(block->key->blocks, block, same_prev, same_next);
            enter_second(m, r, g, i);
        }
    }
}

void model_unpublish(struct model *m, struct model_request *r, uint32_t num_tokens)
{
    for (uint32_t g = 0; g < m->config.num_groups; g++)
        for (uint32_t i = 0; i < r->num_table[g]; i++) {
            struct model_block *block = r->table[g][i];
            uint64_t end = (uint64_t)(i + 1) * m->config.groups[g].block_size;

            if (block != NULL && block->key != NULL && end > num_tokens)
                key_leave(m, block);
        }
}

/* Last block first; but what goes to the head must end up with the last block foremost. */
uint32_t model_give_back(struct model *m, struct model_block *const *blocks, uint32_t begin,
                         uint32_t end)
{
    bool to_head = m->config.prefix_cache && m->config.unhashed_to_head;
    uint32_t num_freed = 0;

    for (uint32_t i = end; i-- > begin; ) {
        if (blocks[i] == NULL || --blocks[i]->num_holders > 0)
            continue;
        num_freed++;
        if (blocks[i]->key != NULL || !to_head)
            DL_APPEND(m->free, blocks[i]);
    }
    for (uint32_t i = begin; i < end; i++)
        if (blocks[i] != NULL && blocks[i]->num_holders == 0 && blocks[i]->key == NULL && to_head)
            DL_PREPEND(m->free, blocks[i]);
    m->totals.released += num_freed;
    return num_freed;
}

void model_trim(struct model *m, struct model_request *r)
{
    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        uint32_t end = model_num_out(m, r, g);

        model_give_back(m, r->table[g], 0, end);
        for (uint32_t i = 0; i < end; i++)
            r->table[g][i] = NULL;
    }
}

uint32_t model_release(struct model *m, struct model_request *r)
{
    uint32_t num_freed = 0;

    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        num_freed += model_give_back(m, r->table[g], 0, r->num_table[g]);
        r->num_table[g] = r->num_hashed[g] = 0;
    }
    return num_freed;
}

/* How many positions each block of a group holds, as far as this table tells. */
static void fill(const struct model *m, uint64_t *filled, uint32_t g,
                 struct model_block *const *table, uint32_t num, uint32_t num_computed)
{
    uint64_t size = m->config.groups[g].block_size;

    for (uint32_t i = 0; i < num && i * size < num_computed; i++) {
        uint64_t here = num_computed - i * size;

        if (table[i] == NULL || m->config.groups[g].kind == MODEL_GROUP_STATE)
            continue;
        here = here < size ? here : size;
        if (filled[table[i]->id] < here)
            filled[table[i]->id] = here;
    }
}

uint64_t model_count_stored(const struct model *m)
{
    uint64_t *filled = model_alloc(m->config.num_blocks, sizeof *filled), sum = 0;

    for (const struct model_request *r = m->running; r != NULL; r = r->next)
        for (uint32_t g = 0; g < m->config.num_groups; g++)
            fill(m, filled, g, r->table[g], r->num_table[g], r->num_computed);
    for (const struct model_request *r = m->resuming; r != NULL; r = r->next)
        fill(m, filled, 0, r->table[0], r->num_table[0], r->num_computed);
    for (const struct model_transfer *t = m->transfers; t != NULL; t = t->next)
        fill(m, filled, 0, t->held, t->num_held, t->num_positions);
    for (uint32_t i = 0; i < m->config.num_blocks; i++)
        sum += filled[i];
    free(filled);
    return sum;
}
