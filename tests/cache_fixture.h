/*
 * cache_fixture.h - a small cache and sequences on it, as a scheduler would drive them.
 */
#ifndef TESTS_CACHE_FIXTURE_H
#define TESTS_CACHE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/cache.h"

#define OUTPUT_ORIGIN UINT64_C(900)   /* of what every sequence generates */

struct pkv_cache_config cache_config(uint32_t num_blocks, uint32_t block_size, bool prefix_cache,
                                     enum pkv_pool_end unhashed, enum pkv_publish publish);
/* Unhashed blocks to the head, publish: alloc. */
struct pkv_cache *make_cache(uint32_t num_blocks, uint32_t block_size, bool prefix_cache);
struct pkv_cache *make_cache_with(uint32_t num_blocks, uint32_t block_size, bool prefix_cache,
                                  enum pkv_pool_end unhashed, enum pkv_publish publish);

struct pkv_seq begin(struct pkv_cache *cache, const struct pkv_span *spans, size_t num_spans,
                     uint64_t root);
/* Blocks up to so many positions. */
enum pkv_alloc grow_to(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_positions);
/* Look up, take the hit and all blocks of the known tokens.
 *   returns  tokens hit */
uint32_t admit(struct pkv_cache *cache, struct pkv_seq *seq);
/* One token comes out, and its position is computed. */
void emit(struct pkv_cache *cache, struct pkv_seq *seq);
void end(struct pkv_cache *cache, struct pkv_seq *seq);
void expect_sound(const struct pkv_cache *cache, const struct pkv_seq *const *seqs, size_t num);

#endif
