/*
 * cache.h - sequences of tokens on blocks, and the prefix cache over them.
 *
 * The only door to memory: a scheduler talks to the cache, the cache alone talks to the pool.
 *
 * Content is never spelled out. A token is (origin, position) and a text is a list of spans of
 * them, so a prompt of 100,000 tokens from one document is one span. Two tokens are equal if and
 * only if both numbers are. A full block's identity is a 64-bit hash chained over all tokens from
 * the first one, so equal identity means equal prefix (the odds of one collision among 10^8
 * different blocks are 3 in 10,000).
 *
 * A sequence has one block table per KV group; all groups draw from one pool.
 *
 * Invariants, recounted by pkv_cache_check() from the sequences it is given:
 *   C1  a block's reference count is the number of times it stands in the tables
 *   C2  every indexed block is found under its key, the oldest of equal ones first
 *   C3  num_keys is the number of different keys in the index
 *   C4  num_cached is the number of free blocks that have a key
 *   C5  num_stored is the number of different positions in blocks with a holder
 *   C6  a table has exactly the blocks its computed positions need (more under a layout of runs)
 *   C7  the published blocks of a table come first, are full, and carry the sequence's identities
 * Order of identities and of freed blocks: vllm/v1/core/block_pool.py and kv_cache_utils.py.
 */
#ifndef PAGEDKV_CACHE_H
#define PAGEDKV_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PKV_MAX_GROUPS 4u            /* tables a sequence has room for; this version fills one */
#define PKV_MAX_BLOCK_SIZE 1048576u  /* tokens */

/* Tokens (origin, first) .. (origin, first + count - 1). */
struct pkv_span {
    uint64_t origin;
    uint32_t first;
    uint32_t count;    /* > 0 */
};

/* Origins of different kinds of text never meet: each kind is mixed in by a bijection of its own. */
enum pkv_origin_kind {
    PKV_ORIGIN_TOKEN,    /* number = token id >> 32, first = its low 32 bits */
    PKV_ORIGIN_HASH_ID,  /* number = hash id, position within its block of tokens */
    PKV_ORIGIN_NAME,     /* number = hash of a name; one endless text a name */
    PKV_ORIGIN_OWN,      /* number = row; text of one request alone */
    PKV_ORIGIN_OUTPUT,   /* number = row; what a request generated */
    PKV_ORIGIN_PREFIX,   /* number = synthetic prefix */
    PKV_ORIGIN_PREV      /* number = 0; prompt and answer of the former row of the session: stands
                          * in the rows of a trace, and is put in place before anything is hashed */
};
uint64_t pkv_origin(enum pkv_origin_kind kind, uint64_t number);
uint64_t pkv_hash_name(const char *text, size_t length);

/* Root of a chain. NULL = none; salt and adapter are tagged apart, so that adapter "a" never meets
 * salt "a". An empty salt is the caller's error (see trace.h). */
uint64_t pkv_content_root(const char *salt, const char *adapter);

/* What a request says, prompt and answer. Spans may be in any segmentation: neighbours that
 * continue each other are merged before anything is hashed. */
struct pkv_content {
    uint64_t root;                   /* pkv_content_root() */
    const struct pkv_span *prompt;   /* [num_prompt_spans], borrowed for the call */
    size_t num_prompt_spans;
    uint64_t output_origin;          /* generated token j is (output_origin, output_first + j) */
    uint32_t output_first;
};

struct pkv_cache;
struct pkv_group_ops;
extern const struct pkv_group_ops pkv_group_full;

struct pkv_group_config {
    const struct pkv_group_ops *ops;   /* borrowed */
    uint32_t block_size;               /* tokens, > 0 */
};

enum pkv_publish {
    PKV_PUBLISH_ALLOC,       /* the cache does it, when tokens are scheduled; else the caller: */
    PKV_PUBLISH_COMPUTED,    /* after each step */
    PKV_PUBLISH_CHUNK_END,   /* after each chunk of a prompt, and at the end */
    PKV_PUBLISH_FINISH       /* at the end */
};

struct pkv_cache_config {
    struct pkv_pool_config pool;
    struct pkv_group_config groups[PKV_MAX_GROUPS];
    uint32_t num_groups;               /* 1 in this version */
    bool prefix_cache;
    enum pkv_pool_end unhashed_free;   /* where freed blocks without identity go, cache on */
    enum pkv_publish publish;          /* when a full block answers look-ups */
};

/* One block table. */
struct pkv_table {
    pkv_block_id *ids;       /* [num], owned */
    uint32_t num, capacity;
    uint32_t num_published;  /* leading blocks whose identity was entered or hit */
};

/* A text being computed on blocks. Fields are for reading; only cache calls write them, but for
 * num_known_tokens, which the owner raises as tokens come out. */
struct pkv_seq {
    uint32_t num_prompt_tokens;
    uint32_t num_known_tokens;      /* prompt and generated */
    uint32_t num_computed_tokens;   /* positions in its blocks, those of this step included */
    uint32_t num_spans;
    uint32_t num_keys;              /* identities known so far */
    uint32_t keys_capacity, spans_capacity;
    uint32_t next_span, next_in_span;  /* where hashing of the prompt goes on */
    struct pkv_span *spans;         /* owned: the prompt, canonical */
    uint64_t *keys;                 /* owned: identity of each leading full block */
    uint64_t root, output_origin;
    uint32_t output_first;
    struct pkv_table tables[PKV_MAX_GROUPS];
};

/* What a look-up found. blocks point into the cache's scratch: valid until its next look-up. */
struct pkv_hit {
    uint32_t num_tokens;
    uint32_t num_free_blocks;       /* of these blocks, those that lie free now */
    uint32_t num_blocks[PKV_MAX_GROUPS];
    const pkv_block_id *blocks[PKV_MAX_GROUPS];
};

struct pkv_cache_figures {
    uint32_t num_blocks, num_free, num_cached;   /* cached: free with an identity */
    uint32_t num_keys;                           /* different identities in the index */
    uint64_t num_stored;                         /* different positions in held blocks */
    uint64_t num_evicted, num_copied;            /* identities lost to a taker; copies on write */
    struct pkv_pool_counts pool;
};

/* errors: PKV_ERR_MEMORY, PKV_ERR_INPUT (sizes out of range). Cost O(num_blocks). */
struct pkv_cache *pkv_cache_create(const struct pkv_cache_config *config, struct pkv_err *err);
void pkv_cache_destroy(struct pkv_cache *cache);

/* Begin a sequence: copies the prompt's spans, holds no block. seq may have been finished before.
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int pkv_seq_init(struct pkv_cache *cache, struct pkv_seq *seq, const struct pkv_content *content,
                 struct pkv_err *err);
/* Give the buffers back; the sequence must hold no block. */
void pkv_seq_finish(struct pkv_cache *cache, struct pkv_seq *seq);

/* One number for its first num_tokens, from 1 to those known: equal if and only if they and the roots
 * are. Cost O(spans). */
uint64_t pkv_seq_hash_first(const struct pkv_seq *seq, uint32_t num_tokens);

/* Make room, so that no later call has to allocate: tables for num_positions positions, and the
 * identities of all full blocks among the known tokens (cache on).
 *   cost     O(new identities); nothing when there is nothing new */
int pkv_cache_prepare(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_positions,
                      struct pkv_err *err);

/* The longest cached prefix of the known tokens but the last one, in whole blocks. Changes
 * nothing: only taking a hit moves a block. Needs pkv_cache_prepare().
 *   cost     O(blocks found)
 *   source   vllm/v1/core/kv_cache_manager.py, get_computed_blocks */
void pkv_cache_find_prefix(struct pkv_cache *cache, const struct pkv_seq *seq,
                           struct pkv_hit *out_hit);

/* Free blocks it takes for seq to have num_positions positions: new ones, hit ones that lie free,
 * and a copy of a shared block that would be written into. hit may be NULL. */
uint32_t pkv_cache_need(const struct pkv_cache *cache, const struct pkv_seq *seq,
                        const struct pkv_hit *hit, uint32_t num_positions);

/* Take the hit (NULL = none), then blocks up to num_positions, and move num_computed_tokens on to
 * hit + what it was + num_tokens. Under publish: alloc full blocks are entered in the index up to
 * the known tokens. All or nothing. Needs pkv_cache_prepare() for num_positions.
 *   num_positions  >= computed + num_tokens; more under lookahead
 *   cost           O(blocks taken) */
enum pkv_alloc pkv_cache_grow(struct pkv_cache *cache, struct pkv_seq *seq,
                              const struct pkv_hit *hit, uint32_t num_tokens,
                              uint32_t num_positions);

/* One position more, as pkv_cache_grow() would give it, for a sequence that shares no partly filled
 * block. The caller knows that the block it may take is free. */
void pkv_cache_extend(struct pkv_cache *cache, struct pkv_seq *seq);

/* Many sequences at once went on by one position each in blocks that they have; their own counts
 * are brought up to date later, before anything else is done with them, by catch_up. */
void pkv_cache_advance(struct pkv_cache *cache, uint64_t num_sequences);
void pkv_seq_catch_up(struct pkv_seq *seq, uint32_t num_computed_tokens);

/* Enter the full blocks below num_computed_tokens; for publish other than alloc. */
void pkv_cache_publish(struct pkv_cache *cache, struct pkv_seq *seq);

/* Take back the identities of blocks not wholly below num_tokens (their tokens were cancelled). */
void pkv_cache_unpublish(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens);

/* Give back all blocks, group after group, last block first; nothing is computed any more.
 *   returns  blocks that became free */
uint32_t pkv_cache_release(struct pkv_cache *cache, struct pkv_seq *seq);

/* child (begun with the same content) shares all of parent's blocks. A shared block that is not
 * full is copied by the first that writes into it. Full groups only. */
int pkv_cache_fork(struct pkv_cache *cache, const struct pkv_seq *parent, struct pkv_seq *child,
                   struct pkv_err *err);

struct pkv_cache_figures pkv_cache_figures(const struct pkv_cache *cache);
uint32_t pkv_cache_num_free(const struct pkv_cache *cache);
uint32_t pkv_cache_num_groups(const struct pkv_cache *cache);
uint32_t pkv_cache_block_size(const struct pkv_cache *cache);

/* Blocks that would become free if it gave back all of its own: those nobody else holds.
 *   cost   O(its blocks) */
uint32_t pkv_cache_num_freed(const struct pkv_cache *cache, const struct pkv_seq *seq);

/* Blocks in its tables, all groups together, shared ones included. */
uint32_t pkv_seq_num_blocks(const struct pkv_seq *seq);

/* The most blocks a sequence holds with so many positions, all groups together. */
uint64_t pkv_cache_blocks_for(const struct pkv_cache *cache, uint64_t num_positions);

/* Blocks the layout must give at admission at least. */
uint32_t pkv_cache_reserve_blocks(const struct pkv_cache *cache, uint32_t num_prompt_tokens,
                                  uint32_t num_positions, uint32_t max_model_len);

/* Does the layout give a request all its blocks at admission, in one piece? Then nobody takes any
 * later. */
bool pkv_cache_takes_runs(const struct pkv_cache *cache);

/* Reading single blocks: how many sequences hold it; whether it has an identity, so that a look-up may
 * find it. The free blocks in the order in which they would be taken (under a layout of runs by their
 * ids); out has room for all blocks. */
uint32_t pkv_cache_ref_cnt(const struct pkv_cache *cache, pkv_block_id id);
bool pkv_cache_has_identity(const struct pkv_cache *cache, pkv_block_id id);
uint32_t pkv_cache_list_free(const struct pkv_cache *cache, pkv_block_id *out);

/* Identities lost since pkv_cache_clear_evicted(), block ids in order. Kept only after
 * pkv_cache_log_evicted(cache, true).
 *   returns  0, or -1 with PKV_ERR_MEMORY when there was no room for one of them */
void pkv_cache_log_evicted(struct pkv_cache *cache, bool on);
void pkv_cache_clear_evicted(struct pkv_cache *cache);
int pkv_cache_evicted(const struct pkv_cache *cache, const pkv_block_id **out, size_t *out_num,
                      struct pkv_err *err);

/* For a request that was looked up, refused, and will be looked up again: the version is raised
 * whenever that look-up could come out differently. One sequence is watched at a time.
 *   cost   O(blocks of the hit); nothing per step */
void pkv_cache_watch(struct pkv_cache *cache, const struct pkv_seq *seq, const struct pkv_hit *hit);
uint64_t pkv_cache_version(const struct pkv_cache *cache);
/* How often an identity has come or gone: while the number stands, every look-up finds as many tokens as
 * before. */
uint64_t pkv_cache_num_key_changes(const struct pkv_cache *cache);

/* One number for what the blocks hold, those of the sequences and the free ones in their order. seqs
 * are all sequences that hold blocks. Cost O(num_blocks).
 *   errors   PKV_ERR_MEMORY */
int pkv_cache_fingerprint(const struct pkv_cache *cache, const struct pkv_seq *const *seqs,
                          size_t num_seqs, uint64_t *out, struct pkv_err *err);

/* Recount everything. seqs are all sequences that hold blocks. 0, or -1 with PKV_ERR_AUDIT. */
int pkv_cache_check(const struct pkv_cache *cache, const struct pkv_seq *const *seqs,
                    size_t num_seqs, struct pkv_err *err);

#ifdef __cplusplus
}
#endif
#endif
