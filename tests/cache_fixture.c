/*
 * cache_fixture.c - see cache_fixture.h.
 */
#include "cache_fixture.h"

#include <check.h>

extern const struct pkv_evict_ops pkv_evict_lru;

struct pkv_cache_config cache_config(uint32_t num_blocks, uint32_t block_size, bool prefix_cache,
                                     enum pkv_pool_end unhashed, enum pkv_publish publish)
{
    return (struct pkv_cache_config){
        .pool = { .num_blocks = num_blocks, .evict = &pkv_evict_lru,
                  .layout = &pkv_layout_paged },
        .groups = { { .ops = &pkv_group_full, .block_size = block_size } },
        .num_groups = 1,
        .prefix_cache = prefix_cache,
        .unhashed_free = unhashed,
        .publish = publish,
    };
}

struct pkv_cache *make_cache_with(uint32_t num_blocks, uint32_t block_size, bool prefix_cache,
                                  enum pkv_pool_end unhashed, enum pkv_publish publish)
{
    const struct pkv_cache_config config =
        cache_config(num_blocks, block_size, prefix_cache, unhashed, publish);
    struct pkv_err err = { 0 };
    struct pkv_cache *cache = pkv_cache_create(&config, &err);

    ck_assert_msg(cache != NULL, "%s", err.text);
    return cache;
}

struct pkv_cache *make_cache(uint32_t num_blocks, uint32_t block_size, bool prefix_cache)
{
    return make_cache_with(num_blocks, block_size, prefix_cache, PKV_END_HEAD, PKV_PUBLISH_ALLOC);
}

struct pkv_seq begin(struct pkv_cache *cache, const struct pkv_span *spans, size_t num_spans,
                     uint64_t root)
{
    const struct pkv_content content = { .root = root, .prompt = spans,
                                         .num_prompt_spans = num_spans,
                                         .output_origin = OUTPUT_ORIGIN };
    struct pkv_seq seq;

    ck_assert_int_eq(pkv_seq_init(cache, &seq, &content, NULL), 0);
    return seq;
}

enum pkv_alloc grow_to(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_positions)
{
    ck_assert_int_eq(pkv_cache_prepare(cache, seq, num_positions, NULL), 0);
    return pkv_cache_grow(cache, seq, NULL, num_positions - seq->num_computed_tokens,
                          num_positions);
}

uint32_t admit(struct pkv_cache *cache, struct pkv_seq *seq)
{
    uint32_t known = seq->num_known_tokens;
    struct pkv_hit hit;

    ck_assert_int_eq(pkv_cache_prepare(cache, seq, known, NULL), 0);
    pkv_cache_find_prefix(cache, seq, &hit);
    ck_assert_int_eq(pkv_cache_grow(cache, seq, &hit, known - hit.num_tokens, known),
                     PKV_ALLOC_OK);
    ck_assert_uint_eq(seq->num_computed_tokens, known);
    return hit.num_tokens;
}

void emit(struct pkv_cache *cache, struct pkv_seq *seq)
{
    seq->num_known_tokens++;
    ck_assert_int_eq(grow_to(cache, seq, seq->num_known_tokens), PKV_ALLOC_OK);
}

void end(struct pkv_cache *cache, struct pkv_seq *seq)
{
    pkv_cache_release(cache, seq);
    pkv_seq_finish(cache, seq);
}

void expect_sound(const struct pkv_cache *cache, const struct pkv_seq *const *seqs, size_t num)
{
    struct pkv_err err = { 0 };

    ck_assert_msg(pkv_cache_check(cache, seqs, num, &err) == 0, "%s", err.text);
}
