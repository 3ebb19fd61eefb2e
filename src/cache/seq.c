/*
 * seq.c - a sequence's text and the identities of its units, one a block where all are of one size.
 *
 * The prompt is kept as canonical spans; what is generated is one span that needs no storing. A
 * block's identity is its predecessor's mixed with the spans inside the block, merged where they
 * continue each other, so that no segmentation of equal text hashes differently. Each identity is
 * computed once. In a cache that began with another run's content, the number of runs before it is mixed
 * in where a text stops being the same in every run.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "cache/cache_private.h"

static int copy_spans(struct pkv_cache *cache, struct pkv_seq *seq,
                      const struct pkv_content *content, struct pkv_err *err)
{
    size_t capacity;
    seq->spans = pkv_slab_take(&cache->slab, content->num_prompt_spans, sizeof(*seq->spans),
                               &capacity, err);
    if (!seq->spans)
        return -1;
    seq->spans_capacity = (uint32_t)capacity;
    struct pkv_span *last = NULL;
    for (size_t i = 0; i < content->num_prompt_spans; i++) {
        const struct pkv_span *span = &content->prompt[i];
        PKV_ASSERT(span->count > 0);
        seq->num_prompt_tokens += span->count;
        if (last && last->origin == span->origin && last->first + last->count == span->first &&
            last->count <= UINT32_MAX - span->count) {
            last->count += span->count;
            continue;
        }
        last = &seq->spans[seq->num_spans++];
        *last = *span;
    }
    return 0;
}

int pkv_seq_init(struct pkv_cache *cache, struct pkv_seq *seq, const struct pkv_content *content,
                 struct pkv_err *err)
{
    PKV_ASSERT(content->num_prompt_spans > 0);
    *seq = (struct pkv_seq){
        .root = content->root,
        .output_origin = content->output_origin,
        .output_first = content->output_first,
        .prompt_only = content->prompt_only,
        .num_named_tokens = content->num_named_tokens,
    };
    if (copy_spans(cache, seq, content, err) < 0)
        return -1;
    seq->num_known_tokens = seq->num_prompt_tokens;
    return 0;
}

uint32_t pkv_seq_num_blocks(const struct pkv_seq *seq)
{
    uint32_t num = 0;
    for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
        num += seq->tables[g].num - seq->tables[g].num_null;
    return num;
}

void pkv_seq_finish(struct pkv_cache *cache, struct pkv_seq *seq)
{
    for (uint32_t g = 0; g < cache->num_groups; g++)
        PKV_ASSERT(seq->tables[g].num == 0 && seq->copies.num == 0);
    for (uint32_t g = 0; g < cache->num_groups; g++)
        pkv_slab_give(&cache->slab, seq->tables[g].ids, seq->tables[g].capacity,
                      sizeof(*seq->tables[g].ids));
    pkv_slab_give(&cache->slab, seq->copies.ids, seq->copies.capacity, sizeof(*seq->copies.ids));
    pkv_slab_give(&cache->slab, seq->keys, seq->keys_capacity, sizeof(*seq->keys));
    pkv_slab_give(&cache->slab, seq->spans, seq->spans_capacity, sizeof(*seq->spans));
    *seq = (struct pkv_seq){0};
}

/* The piece of text at `position`, at most `room` tokens of it; moves the cursor on. */
static struct pkv_span next_piece(struct pkv_seq *seq, uint32_t position, uint32_t room)
{
    if (position >= seq->num_prompt_tokens)
        return (struct pkv_span){seq->output_origin,
                                 seq->output_first + (position - seq->num_prompt_tokens), room};
    const struct pkv_span *span = &seq->spans[seq->next_span];
    uint32_t rest = span->count - seq->next_in_span;
    struct pkv_span piece = {span->origin, span->first + seq->next_in_span,
                             rest < room ? rest : room};
    seq->next_in_span += piece.count;
    if (seq->next_in_span == span->count) {
        seq->next_span++;
        seq->next_in_span = 0;
    }
    return piece;
}

static uint64_t mix_piece(uint64_t hash, struct pkv_span piece)
{
    return pkv_mix(pkv_mix(hash, piece.origin), (uint64_t)piece.first << 32 | piece.count);
}

static uint64_t hash_block(struct pkv_seq *seq, uint64_t parent, uint32_t begin, uint32_t size)
{
    uint64_t hash = parent;
    struct pkv_span run = next_piece(seq, begin, size);
    for (uint32_t done = run.count; done < size;) {
        struct pkv_span piece = next_piece(seq, begin + done, size - done);
        done += piece.count;
        if (piece.origin == run.origin && piece.first == run.first + run.count) {
            run.count += piece.count;
            continue;
        }
        hash = mix_piece(hash, run);
        run = piece;
    }
    hash = mix_piece(hash, run);
    return hash != PKV_NO_KEY ? hash : 1;
}

uint64_t pkv_seq_hash_first(const struct pkv_seq *seq, uint32_t num_tokens)
{
    uint64_t hash = seq->root;
    struct pkv_span run = {0};
    PKV_ASSERT(num_tokens > 0 && num_tokens <= seq->num_known_tokens);
    for (uint32_t i = 0, left = num_tokens; left > 0; i++) {
        struct pkv_span piece = {seq->output_origin, seq->output_first, left};
        if (i < seq->num_spans)
            piece = seq->spans[i];
        piece.count = piece.count < left ? piece.count : left;
        left -= piece.count;
        if (i > 0 && piece.origin == run.origin && piece.first == run.first + run.count) {
            run.count += piece.count;
            continue;
        }
        hash = i > 0 ? mix_piece(hash, run) : hash;
        run = piece;
    }
    return mix_piece(hash, run);
}

/* Of the next blocks, those that lie wholly inside the prompt's present span with a token to spare:
 * one piece each, no boundary to mind. */
static uint32_t blocks_inside_span(const struct pkv_seq *seq, uint32_t index, uint32_t most,
                                   uint32_t size)
{
    if ((uint64_t)index * size >= seq->num_prompt_tokens)
        return 0;
    uint32_t rest = seq->spans[seq->next_span].count - seq->next_in_span;
    uint32_t num = (rest - 1) / size;
    return num < most ? num : most;
}

static uint64_t hash_inside(const struct pkv_seq *seq, uint64_t parent, uint32_t size)
{
    const struct pkv_span *span = &seq->spans[seq->next_span];
    struct pkv_span piece = {span->origin, span->first + seq->next_in_span, size};
    uint64_t hash = mix_piece(parent, piece);
    return hash != PKV_NO_KEY ? hash : 1;
}

static int grow_keys(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num,
                     struct pkv_err *err)
{
    if (num <= seq->keys_capacity)
        return 0;
    size_t capacity;
    uint64_t *keys = pkv_slab_take(&cache->slab, num, sizeof(*keys), &capacity, err);
    if (!keys)
        return -1;
    if (seq->num_keys)
        memcpy(keys, seq->keys, seq->num_keys * sizeof(*keys));
    pkv_slab_give(&cache->slab, seq->keys, seq->keys_capacity, sizeof(*keys));
    seq->keys = keys;
    seq->keys_capacity = capacity < UINT32_MAX ? (uint32_t)capacity : UINT32_MAX;
    return 0;
}

int seq_hash(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num, struct pkv_err *err)
{
    if (num <= seq->num_keys)
        return 0;
    if (grow_keys(cache, seq, num, err) < 0)
        return -1;
    uint64_t parent = seq->num_keys ? seq->keys[seq->num_keys - 1] : seq->root;
    uint32_t size = cache->unit, i = seq->num_keys, own = seq->num_named_tokens / size;
    while (i < num) {
        if (i == own && cache->num_former_runs > 0)
            parent = pkv_mix(parent, cache->num_former_runs);
        uint32_t most = i < own && own < num ? own - i : num - i;
        uint32_t inside = blocks_inside_span(seq, i, most, size);
        for (uint32_t end = i + inside; i < end; i++) {
            seq->keys[i] = parent = hash_inside(seq, parent, size);
            seq->next_in_span += size;
        }
        if (inside == most)
            continue;
        seq->keys[i] = parent = hash_block(seq, parent, i * size, size);
        i++;
    }
    seq->num_keys = num;
    return 0;
}

static int grow_table(struct pkv_cache *cache, struct pkv_table *table, uint64_t num,
                      struct pkv_err *err)
{
    if (num <= table->capacity)
        return 0;
    size_t capacity;
    pkv_block_id *ids = pkv_slab_take(&cache->slab, num, sizeof(*ids), &capacity, err);
    if (!ids)
        return -1;
    if (table->num)
        memcpy(ids, table->ids, table->num * sizeof(*ids));
    pkv_slab_give(&cache->slab, table->ids, table->capacity, sizeof(*ids));
    table->ids = ids;
    table->capacity = capacity < UINT32_MAX ? (uint32_t)capacity : UINT32_MAX;
    return 0;
}

/* Scratch for giving back the longest table. */
static int grow_scratch(struct pkv_cache *cache, uint64_t num, struct pkv_err *err)
{
    if (pkv_grow(&cache->freed, &cache->freed_capacity, num, sizeof(*cache->freed), err) < 0)
        return -1;
    if (!cache->needs_hint)
        return 0;
    return pkv_grow(&cache->hints, &cache->hints_capacity, num, sizeof(*cache->hints), err);
}

int pkv_cache_prepare(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_positions,
                      struct pkv_err *err)
{
    for (uint32_t g = 0; num_positions && g < cache->num_groups; g++) {
        const struct pkv_group_config *group = &cache->groups[g];
        uint64_t num = group->ops->table_blocks(group, num_positions);
        if (grow_table(cache, &seq->tables[g], num, err) < 0 || grow_scratch(cache, num, err) < 0)
            return -1;
        if (cache->keeps_copies && grow_table(cache, &seq->copies, num, err) < 0)
            return -1;
    }
    if (!cache->prefix_cache)
        return 0;
    if (grow_keys(cache, seq, num_positions / cache->unit, err) < 0)
        return -1;
    if (seq_hash(cache, seq, seq_identified(seq, seq->num_known_tokens) / cache->unit, err) < 0)
        return -1;
    uint64_t num_hit = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++)
        num_hit += seq->num_known_tokens / cache->groups[g].block_size;
    return pkv_grow(&cache->hit_blocks, &cache->hit_capacity, num_hit,
                    sizeof(*cache->hit_blocks), err);
}
