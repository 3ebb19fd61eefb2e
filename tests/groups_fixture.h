/*
 * groups_fixture.h - caches of several KV groups, with little to write.
 */
#ifndef TESTS_GROUPS_FIXTURE_H
#define TESTS_GROUPS_FIXTURE_H

#include "cache/cache_private.h"
#include "cache_fixture.h"

#define FULL(block_size) { &pkv_group_full, (block_size), 0 }
#define SLIDING(window, block_size) { &pkv_group_sliding, (block_size), (window) }
#define CHUNKED(chunk, block_size) { &pkv_group_chunked, (block_size), (chunk) }
#define STATE(blocks) { &pkv_group_state, 16, (blocks) }
#define GROUPS(...) (struct pkv_group_config[]){ __VA_ARGS__ }, \
    (uint32_t)(sizeof((struct pkv_group_config[]){ __VA_ARGS__ }) / sizeof(struct pkv_group_config))

/* Unhashed blocks to the head, publish: alloc. */
struct pkv_cache *make_groups(uint32_t num_blocks, bool prefix_cache,
                              const struct pkv_group_config *groups, uint32_t num_groups);
/* A text of so many tokens, the same for everybody. */
struct pkv_seq begin_text(struct pkv_cache *cache, uint32_t num_tokens);
/* A look-up of a new sequence with so many tokens of that text. */
struct pkv_hit hit_of(struct pkv_cache *cache, uint32_t num_tokens);
/* A block of a table loses its identity, as if it had been taken. */
void lose(struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group, uint32_t index);
void expect_sound_alone(const struct pkv_cache *cache, const struct pkv_seq *seq);
/* The free blocks in the order in which they will be taken, as text: "7 3 2". */
void expect_free(const struct pkv_cache *cache, const char *ids);

#endif
