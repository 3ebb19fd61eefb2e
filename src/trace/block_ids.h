/*
 * block_ids.h - the identities of the blocks of a prompt: equal identity, equal text up to there.
 *
 * The text is cut into blocks; each is mixed with the identity of the one before, so that an
 * identity says all that came first, its root (salt, adapter) included. How the prompt is split
 * into spans makes no difference. A last block that is not full has an identity of its own, with
 * one exception: what stands at its end and comes from a hash id is taken for the whole id, since
 * a trace gives the same id to a block that is filled further in another row. The text of a
 * session's former row (PKV_ORIGIN_PREV) counts as the row's own.
 */
#ifndef PKV_TRACE_BLOCK_IDS_H
#define PKV_TRACE_BLOCK_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/trace.h"

struct pkv_block_walk {
    const struct pkv_content *content;    /* borrowed */
    const struct pkv_trace_text *of;      /* [num_prompt_spans] borrowed */
    uint32_t block_size;
    size_t span;                          /* where it goes on */
    uint32_t in_span;
    uint64_t chain;
    bool met_own;                         /* the row's own text began: nobody has these blocks but
                                           * later rows of its session */
};

void pkv_block_walk_begin(struct pkv_block_walk *walk, const struct pkv_content *content,
                          const struct pkv_trace_texts *texts, uint32_t block_size);
/* The next block: its identity and its tokens, less than block_size only of the last. false = end. */
bool pkv_block_walk_next(struct pkv_block_walk *walk, uint64_t *out_id, uint32_t *out_tokens);

#endif
