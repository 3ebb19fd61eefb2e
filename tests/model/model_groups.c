/*
 * model_groups.c - what each kind of KV group keeps, needs for a hit, and asks for at most.
 *
 * All of it comes from one question: which is the first position that the token at `position` looks
 * at? Sliding: the window's first; chunked: the chunk's first; full: 0. Blocks that lie wholly below
 * it are given back, and a hit that ends there has to bring the blocks from it on.
 */
#include <stdlib.h>

#include "model_private.h"

static uint64_t round_up(uint64_t num, uint64_t size)
{
    return (num + size - 1) / size;
}

static uint64_t first_looked_at(const struct model_group *group, uint64_t position)
{
    switch (group->kind) {
    case MODEL_GROUP_FULL:    return 0;
    case MODEL_GROUP_SLIDING: return position + 1 > group->size ? position + 1 - group->size : 0;
    case MODEL_GROUP_CHUNKED: return position - position % group->size;
    case MODEL_GROUP_STATE:   return 0;
    }
    abort();
}

uint32_t model_num_out(const struct model *m, const struct model_request *r, uint32_t g)
{
    const struct model_group *group = &m->config.groups[g];
    uint32_t next = r->num_computed - model_num_flying(m, r);   /* the batch before still looks */
    uint32_t num = (uint32_t)(first_looked_at(group, next) / group->block_size);

    if (m->config.keeps_chunk_end && m->config.prefix_cache && group->kind == MODEL_GROUP_CHUNKED)
        while (num > 0 && num >= r->num_hashed[g] && r->num_hashed[g] > 0)
            num--;
    return num < r->num_table[g] ? num : r->num_table[g];
}

/* First block that a hit which ends at `end` has to bring. A window of one token looks at nothing
 * before itself, but the engine wants one block all the same. */
uint32_t model_first_needed(const struct model_group *group, uint64_t end)
{
    uint32_t first = (uint32_t)(first_looked_at(group, end) / group->block_size);

    if (group->kind == MODEL_GROUP_SLIDING && first > 0 && first == end / group->block_size)
        first--;
    return first;
}

/* A block is worth an identity if a hit that ends at the next common end needs it. */
bool model_is_useful(const struct model *m, uint32_t g, uint32_t index)
{
    const struct model_group *group = &m->config.groups[g];
    uint64_t end = (uint64_t)(index + 1) * group->block_size, common = end;

    if (group->kind != MODEL_GROUP_SLIDING)
        return group->kind != MODEL_GROUP_STATE;
    while (common % m->config.align != 0)
        common++;
    return index >= model_first_needed(group, common);
}

uint32_t model_table_length(const struct model *m, uint32_t g, uint64_t num_positions)
{
    const struct model_group *group = &m->config.groups[g];

    if (group->kind == MODEL_GROUP_STATE)
        return num_positions > 0 ? group->size : 0;
    return (uint32_t)round_up(num_positions, group->block_size);
}

uint64_t model_most_blocks(const struct model *m, uint32_t g, uint64_t num_positions,
                           uint64_t step_tokens)
{
    const struct model_group *group = &m->config.groups[g];
    uint64_t whole = model_table_length(m, g, num_positions), most = whole;

    if (step_tokens >= UINT32_MAX)
        return whole;
    if (group->kind == MODEL_GROUP_SLIDING)
        most = round_up(group->size - 1 + step_tokens, group->block_size) + 1;
    if (group->kind == MODEL_GROUP_CHUNKED)
        most = round_up(group->size + step_tokens, group->block_size) +
               (group->size % group->block_size != 0 ? 1 : 0);
    return most < whole ? most : whole;
}

uint64_t model_most_blocks_of_all(const struct model *m, uint64_t num_positions,
                                  uint64_t step_tokens)
{
    uint64_t sum = 0;

    for (uint32_t g = 0; g < m->config.num_groups; g++)
        sum += model_most_blocks(m, g, num_positions, step_tokens);
    return sum;
}

uint32_t model_num_held(const struct model_request *r)
{
    uint32_t num = 0;

    for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
        for (uint32_t i = 0; i < r->num_table[g]; i++)
            num += r->table[g][i] != NULL;
    return num;
}

/* Trial and error: every unit up to the smallest block, every end from the largest block on. */
void model_groups_finish_config(struct model_config *c)
{
    bool fits = false;

    c->unit = c->align = 0;
    for (uint32_t g = 0; g < c->num_groups; g++)
        if (c->groups[g].kind != MODEL_GROUP_STATE && c->groups[g].block_size > c->unit)
            c->unit = c->groups[g].block_size;
    if (c->unit == 0)
        c->unit = 1;
    for (fits = false; !fits; c->unit -= !fits) {
        fits = true;
        for (uint32_t g = 0; g < c->num_groups; g++)
            fits = fits && (c->groups[g].kind == MODEL_GROUP_STATE ||
                            c->groups[g].block_size % c->unit == 0);
    }
    for (fits = false; !fits; ) {
        fits = true;
        c->align += c->unit;
        for (uint32_t g = 0; g < c->num_groups; g++)
            fits = fits && (c->groups[g].kind == MODEL_GROUP_STATE ||
                            c->align % c->groups[g].block_size == 0);
    }
}
