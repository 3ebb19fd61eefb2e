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
 * A sequence has one block table per KV group; all groups draw from one pool. A group of layers with
 * a window gives the blocks behind it back: they become null in the table (PKV_BLOCK_NULL) and count
 * among its blocks, so that a block's place in the table still says which tokens it holds. Blocks of
 * different groups may have different sizes: text is hashed in units of their greatest common
 * divisor, and what is hashed or hit ends at a multiple of their least common multiple.
 *
 * Invariants, recounted by pkv_cache_check() from the sequences it is given:
 *   C1  a block's reference count is the number of times it stands in the tables and in transfers
 *   C2  every indexed block is found under its key, the oldest of equal ones first
 *   C3  num_keys is the number of different keys in the index
 *   C4  num_cached is the number of free blocks that have a key
 *   C5  num_stored is the number of different positions in blocks with a holder, group by group
 *   C6  a table has exactly the blocks its computed positions need (more under a layout of runs, and
 *       under speculation as many as the positions ahead may need)
 *   C7  the published blocks of a table come first, are full, and carry the sequence's identities,
 *       but for those that no hit of their group could use
 *   C8  the null blocks of a table come first, and no later position looks at what was in them
 *   C9  a block with a second identity has a first one
 *   C10 the host blocks in use are the copies of the sequences, and no more than there are
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
#pragma GCC visibility push(default)

#define PKV_MAX_GROUPS 8u            /* tables a sequence has room for */
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
    PKV_ORIGIN_PREFIX,   /* number = synthetic prefix; the text that the name "prefix NUMBER" has */
    PKV_ORIGIN_SAMPLE,   /* number = row, and above bit 44 the sample; what it generated */
    PKV_ORIGIN_PREV      /* number = 0; prompt and answer of the former row of the session: stands
                          * in the rows of a trace, and is put in place before anything is hashed */
};
uint64_t pkv_origin(enum pkv_origin_kind kind, uint64_t number);
/* Is it the same text in every run? Hash ids, names, shared prefixes and ids of tokens below 2^40 are; what
 * is numbered by the rows of one trace is that run's alone. */
bool pkv_origin_is_named(enum pkv_origin_kind kind, uint64_t number);
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
    bool prompt_only;                /* what it generates gets no identity */
    /* Tokens of the prompt before the first one whose text is this run's alone (see
     * pkv_origin_is_named(); PKV_ORIGIN_PREV counts as if it were not). 0 = another run that begins with
     * this one's cache shares nothing of it. */
    uint32_t num_named_tokens;
};

struct pkv_cache;
struct pkv_group_ops;
extern const struct pkv_group_ops pkv_group_full;      /* every position, for ever */
extern const struct pkv_group_ops pkv_group_sliding;   /* the last `size` positions */
extern const struct pkv_group_ops pkv_group_chunked;   /* those since the last multiple of `size` */
extern const struct pkv_group_ops pkv_group_state;     /* `size` blocks, however long the text */

struct pkv_group_config {
    const struct pkv_group_ops *ops;   /* borrowed */
    uint32_t block_size;               /* tokens, > 0; of a state without meaning */
    uint32_t size;                     /* see above; > 0, but 0 for full */
};
const char *pkv_group_name(const struct pkv_group_config *group);   /* full, sliding, ... */
/* The group of that name, or NULL; what its size is called (NULL = it has none) goes to out_size. */
const struct pkv_group_ops *pkv_group_find(const char *name, const char **out_size);
/* Tokens in the largest block of them. */
uint32_t pkv_groups_block_size(const struct pkv_group_config *groups, uint32_t num_groups);
/* 0, or -1 with PKV_ERR_INPUT when these groups cannot share a pool: too many or too few, or block
 * sizes whose least common multiple is no block size any more. */
int pkv_groups_check(const struct pkv_group_config *groups, uint32_t num_groups,
                     struct pkv_err *err);

enum pkv_publish {
    PKV_PUBLISH_ALLOC,       /* the cache does it, when tokens are scheduled; else the caller: */
    PKV_PUBLISH_COMPUTED,    /* after each step */
    PKV_PUBLISH_CHUNK_END,   /* after each chunk of a prompt, and at the end */
    PKV_PUBLISH_FINISH       /* at the end */
};

struct pkv_cache_config {
    struct pkv_pool_config pool;
    struct pkv_group_config groups[PKV_MAX_GROUPS];
    uint32_t num_groups;
    bool prefix_cache;
    bool keeps_chunk_end;              /* cache on: a chunked group keeps its last hashed block */
    enum pkv_pool_end unhashed_free;   /* where freed blocks without identity go, cache on */
    enum pkv_publish publish;          /* when a full block answers look-ups */
    uint32_t max_ahead_tokens;         /* positions beyond the computed ones that a table may have */
    bool drops_last_hit;               /* the last block of a hit is computed anew (EAGLE) */
    uint32_t num_host_blocks;          /* room for copies on the host; see below */
    bool keeps_copies;                 /* copies may be asked for: sequences have room to list them */
};

/* One block table. */
struct pkv_table {
    pkv_block_id *ids;       /* [num], owned */
    uint32_t num, capacity;
    uint32_t num_published;  /* leading blocks whose identity was entered or hit, if hits use it */
    uint32_t num_null;       /* leading blocks that were given back, PKV_BLOCK_NULL in ids */
};

/* A text being computed on blocks. Fields are for reading; only cache calls write them, but for
 * num_known_tokens, which the owner raises as tokens come out. */
struct pkv_seq {
    uint32_t num_prompt_tokens;
    uint32_t num_known_tokens;      /* prompt and generated */
    uint32_t num_computed_tokens;   /* positions in its blocks, those of this step included */
    /* Of these, the last ones, which a step that still runs is computing: what they look at stays. The
     * caller's; 0 again when the blocks are released. */
    uint32_t num_flying_tokens;
    uint32_t num_spans;
    uint32_t num_keys;              /* identities known so far */
    uint32_t keys_capacity, spans_capacity;
    uint32_t next_span, next_in_span;  /* where hashing of the prompt goes on */
    struct pkv_span *spans;         /* owned: the prompt, canonical */
    uint64_t *keys;                 /* owned: identity of the text up to the end of each unit */
    uint64_t root, output_origin;
    uint32_t output_first;
    bool prompt_only;               /* no identity beyond the prompt: others write its text */
    uint32_t num_named_tokens;      /* of the prompt; what follows is this run's alone */
    struct pkv_table tables[PKV_MAX_GROUPS];
    struct pkv_table copies;        /* of blocks on the host: their places in the table, rising */
    uint32_t num_copied_tokens;     /* positions it had when they were made */
};

/* What a look-up found. blocks point into the cache's scratch: valid until its next look-up. */
struct pkv_hit {
    uint32_t num_tokens;
    uint32_t num_free_blocks;       /* of these blocks, those that lie free now */
    uint32_t num_dropped_blocks;    /* found behind them and not used */
    uint32_t num_blocks[PKV_MAX_GROUPS];     /* null ones included */
    uint32_t num_null[PKV_MAX_GROUPS];       /* leading blocks that are not needed */
    const pkv_block_id *blocks[PKV_MAX_GROUPS];
};

struct pkv_cache_figures {
    uint32_t num_blocks, num_free, num_cached;   /* cached: free with an identity */
    uint32_t num_keys;                           /* different identities in the index */
    uint64_t num_stored;                         /* different positions in held blocks */
    uint64_t num_evicted, num_copied;            /* identities lost to a taker; copies on write */
    uint32_t num_host_blocks, num_host_used;     /* room for copies, and copies */
    uint64_t num_holds;                          /* lengths of all tables together */
    struct pkv_pool_counts pool;
};

/* errors: PKV_ERR_MEMORY, PKV_ERR_INPUT (sizes out of range). Cost O(num_blocks). */
struct pkv_cache *pkv_cache_create(const struct pkv_cache_config *config, struct pkv_err *err);
void pkv_cache_destroy(struct pkv_cache *cache);

/* What lies free in a cache when nobody holds a block any more, for another cache to begin with.
 *
 * Identities are of content, so they mean the same in another run, up to the first token that is one
 * run's alone (num_named_tokens). From there on an identity has the number of its run mixed in: what was
 * a request's own in one run is never hit in another, although rows are numbered from 0 in each, and
 * still is in its place of the free queue. */
#define PKV_CACHE_SCHEME 1u          /* how identities are made */
struct pkv_kept_block {
    uint64_t key, second_key;        /* 0 = none */
    uint32_t twin;                   /* of blocks with one key, how many are older: the oldest is hit */
    uint32_t place;                  /* among all blocks, in the order in which they would be taken */
};
#define PKV_GROUPS_LABEL_SIZE 512u
struct pkv_cache_state {
    char groups[PKV_GROUPS_LABEL_SIZE];   /* of the cache, see pkv_groups_label() */
    struct pkv_kept_block *blocks;   /* [num_kept], owned; those with content, by rising place */
    uint32_t num_kept;
    uint32_t num;                    /* blocks of the pool */
    uint64_t num_runs;               /* runs whose content may be in it: 1, and more after warm starts */
};
/* No block is held. Free with pkv_cache_state_free(). 0, or -1 with PKV_ERR_MEMORY. */
int pkv_cache_save(const struct pkv_cache *cache, struct pkv_cache_state *out, struct pkv_err *err);
void pkv_cache_state_free(struct pkv_cache_state *state);
/* A cache that was just made, with equal groups and its prefix cache on, begins with what the state has.
 * Of a smaller pool the blocks that would have been taken first are left out; in a larger one blocks
 * without content come before all others. 0, or -1 with PKV_ERR_MEMORY. */
int pkv_cache_restore(struct pkv_cache *cache, const struct pkv_cache_state *state,
                      struct pkv_err *err);
/* Can a block of theirs have a second identity? */
bool pkv_groups_have_second_keys(const struct pkv_group_config *groups, uint32_t num_groups);
/* The groups as a state names them: "full:16 sliding:16:1024". */
void pkv_groups_label(const struct pkv_group_config *groups, uint32_t num_groups,
                      char out[PKV_GROUPS_LABEL_SIZE]);

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

/* The longest cached prefix of the known tokens but the last one, in whole blocks of every group.
 * A group with a window needs only the blocks that it will look at, so a hit may end in the middle
 * of what was lost; a state is not kept at all, and with it nothing is hit. Changes nothing: only
 * taking a hit moves a block. Needs pkv_cache_prepare().
 *   cost     O(blocks found), with windows O(blocks)
 *   source   vllm/v1/core/kv_cache_manager.py, get_computed_blocks, and kv_cache_coordinator.py */
void pkv_cache_find_prefix(struct pkv_cache *cache, const struct pkv_seq *seq,
                           struct pkv_hit *out_hit);

/* Free blocks it takes for seq to have num_positions positions: new ones, hit ones that lie free,
 * and a copy of a shared block that would be written into. hit may be NULL. */
uint32_t pkv_cache_need(const struct pkv_cache *cache, const struct pkv_seq *seq,
                        const struct pkv_hit *hit, uint32_t num_positions);

/* The same when it gets there in steps of so many tokens (UINT64_MAX = at once), as a group with a
 * window gives blocks back on the way. gate counts as the engine's gate does, null blocks among
 * those it has; to_end is what it may still come to hold beyond what it holds. */
uint32_t pkv_cache_need_gate(const struct pkv_cache *cache, const struct pkv_seq *seq,
                             const struct pkv_hit *hit, uint32_t num_positions,
                             uint64_t num_step_tokens);
uint32_t pkv_cache_need_to_end(const struct pkv_cache *cache, const struct pkv_seq *seq,
                               const struct pkv_hit *hit, uint32_t num_positions,
                               uint64_t num_step_tokens);

/* Give back what is out of its windows, take the hit (NULL = none), then blocks up to num_positions,
 * group after group, and move num_computed_tokens on to hit + what it was + num_tokens. Under
 * publish: alloc full blocks are entered in the index up to the known tokens. All or nothing, but
 * for what was given back. Needs pkv_cache_prepare() for num_positions.
 *   num_positions  >= computed + num_tokens; more under lookahead
 *   cost           O(blocks taken) */
enum pkv_alloc pkv_cache_grow(struct pkv_cache *cache, struct pkv_seq *seq,
                              const struct pkv_hit *hit, uint32_t num_tokens,
                              uint32_t num_positions);

/* One position more, as pkv_cache_grow() would give it, for a sequence that shares no partly filled
 * block. The caller knows that the blocks it may take are free. */
void pkv_cache_extend(struct pkv_cache *cache, struct pkv_seq *seq);

/* For many that decode undisturbed: after how many positions what one does to its blocks comes again.
 * 0 = it does not. */
uint32_t pkv_cache_period(const struct pkv_cache *cache);
/* Does a sequence take or give back a block when it goes on to one position more than num_computed, of
 * which num_flying still fly? It may be told to when it need not. out: how many it takes. The same after
 * every period. */
bool pkv_cache_moves_blocks(const struct pkv_cache *cache, uint32_t num_computed, uint32_t num_flying,
                            uint32_t *out_num_taken);

/* Does it hold blocks that its next position will give back? After a prompt a window may have left many
 * at once. */
bool pkv_cache_has_left_blocks(const struct pkv_cache *cache, const struct pkv_seq *seq);
/* Does the group's table get longer with this position? */
bool pkv_cache_takes_block(const struct pkv_cache *cache, uint32_t group, uint32_t position);

/* Many sequences at once went on by one position each in blocks that they have; their own counts
 * are brought up to date later, before anything else is done with them, by catch_up. */
void pkv_cache_advance(struct pkv_cache *cache, uint64_t num_sequences);
void pkv_seq_catch_up(struct pkv_seq *seq, uint32_t num_computed_tokens);

/* Enter the full blocks below num_computed_tokens; for publish other than alloc. */
void pkv_cache_publish(struct pkv_cache *cache, struct pkv_seq *seq);

/* The last positions were computed with tokens that were not right; the blocks stay. None of them
 * lies in a block with an identity. */
void pkv_cache_rewind(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens);

/* The same below num_tokens under either publish, for tokens that became known after they were
 * computed. */
void pkv_cache_publish_known(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens);

/* Take back the identities of blocks not wholly below num_tokens (their tokens were cancelled). */
void pkv_cache_unpublish(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens);

/* Give back all blocks, group after group, last block first; nothing is computed any more. Copies on the
 * host are dropped.
 *   returns  blocks that became free */
uint32_t pkv_cache_release(struct pkv_cache *cache, struct pkv_seq *seq);

/* child (begun with the same content) shares all of parent's blocks. A shared block that is not
 * full, or holds a state, is copied by the first that writes into it. */
int pkv_cache_fork(struct pkv_cache *cache, const struct pkv_seq *parent, struct pkv_seq *child,
                   struct pkv_err *err);

/* Copies on the host, of one group of full attention.
 *
 * A sequence that gives up its blocks may have them copied out. Those that somebody else holds are not
 * moved: they stay with the other holder and are found again by their identity, or are lost with it. What
 * is being copied is held by the transfer, keeps its identity, may be hit meanwhile, and is free when the
 * transfer is done; then it is a free block as any other, evicted in its turn.
 *
 * To come back, a sequence is looked up as any that waits; what the pool still has is shared, and the
 * copies that follow without a gap are copied in. Behind a gap everything is computed again. Its new
 * blocks get their identities when the transfer is done, and then the copies are dropped. Nothing is
 * kept on the host for others.
 *
 * Transfers are done in the order in which they were begun. The cache does not know how long they take. */

/* Room for so many transfers more, so that beginning one never allocates.
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int pkv_cache_reserve_transfers(struct pkv_cache *cache, size_t num, struct pkv_err *err);

/* Of the blocks of the first num_positions those that nobody else holds; out: positions in them. */
uint32_t pkv_cache_num_movable(const struct pkv_cache *cache, const struct pkv_seq *seq,
                               uint32_t num_positions, uint64_t *out_num_positions);

/* Begin to copy out the first num_positions, and hold no block any more; what is computed beyond them is
 * given up. There is room on the host for all that is movable, and something is.
 *   returns  blocks that became free at once: those beyond num_positions */
uint32_t pkv_cache_swap_out(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_positions);

/* What would be there again with a hit and the copies behind it; all 0 when no copy would be used. */
struct pkv_restore { uint32_t num_blocks, num_positions; };
struct pkv_restore pkv_cache_find_copies(const struct pkv_cache *cache, const struct pkv_seq *seq,
                                         const struct pkv_hit *hit);

/* Begin to copy in: takes the hit and new blocks for `restore`, whose positions count as computed from
 * now on. The caller knows that they are free. Needs pkv_cache_prepare(). */
void pkv_cache_swap_in(struct pkv_cache *cache, struct pkv_seq *seq, const struct pkv_hit *hit,
                       struct pkv_restore restore);

/* The oldest transfer is done: what it holds is given back, as pkv_cache_release() does. returns how many
 * blocks became free. A sequence that was copied in has arrived, which its owner says. */
uint32_t pkv_cache_transfer_done(struct pkv_cache *cache);
void pkv_cache_arrived(struct pkv_cache *cache, struct pkv_seq *seq);
void pkv_cache_drop_copies(struct pkv_cache *cache, struct pkv_seq *seq);

/* The sequence of this transfer in, counted from the oldest one under way, is given up: nothing may be
 * written over its blocks before the transfer is done, so that holds them from now on. */
void pkv_cache_abandon(struct pkv_cache *cache, struct pkv_seq *seq, size_t transfer);

/* Blocks that will be free when all transfers are done. O(blocks under way) */
uint32_t pkv_cache_num_coming(const struct pkv_cache *cache);
size_t pkv_cache_num_transfers(const struct pkv_cache *cache);

/* Would it write its next position into a block that others hold, too? */
bool pkv_cache_writes_shared(const struct pkv_cache *cache, const struct pkv_seq *seq);

struct pkv_cache_figures pkv_cache_figures(const struct pkv_cache *cache);
uint32_t pkv_cache_num_free(const struct pkv_cache *cache);
uint32_t pkv_cache_num_groups(const struct pkv_cache *cache);
/* One group of full attention, nothing else? */
bool pkv_cache_is_plain(const struct pkv_cache *cache);
/* Tokens in the largest block: what a block of the pool has room for. */
uint32_t pkv_cache_block_size(const struct pkv_cache *cache);
/* Tokens from one identity of a text to its next one: what divides the block size of every group. */
uint32_t pkv_cache_hash_block_size(const struct pkv_cache *cache);

/* Blocks that would become free if it gave back all of its own: those nobody else holds.
 *   cost   O(its blocks) */
uint32_t pkv_cache_num_freed(const struct pkv_cache *cache, const struct pkv_seq *seq);

/* Blocks that it holds, all groups together, shared ones included. */
uint32_t pkv_seq_num_blocks(const struct pkv_seq *seq);

/* The most blocks a sequence holds on its way to so many positions in steps of so many tokens
 * (UINT64_MAX = at once), all groups together. */
uint64_t pkv_cache_blocks_for(const struct pkv_cache *cache, uint64_t num_positions,
                              uint64_t num_step_tokens);
/* The most positions a sequence can have before the pool is too small for it; UINT32_MAX when a
 * window or a state never asks for more. */
uint32_t pkv_cache_room(const struct pkv_cache *cache);

/* Of these, those that are full and so never written again. */
uint64_t pkv_cache_full_blocks(const struct pkv_cache *cache, uint64_t num_positions);

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
/* All at once: bit b of words[w] is set when block 32 w + b has an identity. words has room for num_blocks
 * bits, rounded up to whole words. */
void pkv_cache_identity_bits(const struct pkv_cache *cache, uint32_t *words);

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

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
