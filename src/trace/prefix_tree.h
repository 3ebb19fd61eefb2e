/*
 * prefix_tree.h - the prefixes that rows of a trace share, as a tree of blocks.
 */
#ifndef PKV_TRACE_PREFIX_TREE_H
#define PKV_TRACE_PREFIX_TREE_H

#include "base/id_map.h"
#include "pagedkv/trace.h"

/* A block behind all those before it. */
struct prefix_node {
    uint32_t parent;             /* PREFIX_NONE = it is the first */
    uint32_t depth;              /* blocks before it */
    uint32_t rows;               /* that have it */
    uint32_t root;               /* of a shared first one: its number; else not written */
};
#define PREFIX_NONE UINT32_MAX

/* Zero-initialise, finish with prefix_tree_free(). */
struct prefix_tree {
    uint32_t block_size;
    struct prefix_node *nodes;   /* [num] owned */
    size_t num, capacity;
    struct pkv_id_map ids;       /* identity of a block -> its node + 1 */
    uint32_t num_roots;          /* after prefix_tree_number() */
    uint64_t num_texts;
};
void prefix_tree_free(struct prefix_tree *tree);
/* The prompt's blocks are counted once more; *out_last is the last of them. */
int prefix_tree_add(struct prefix_tree *tree, const struct pkv_content *content,
                    const struct pkv_trace_texts *texts, uint32_t *out_last, struct pkv_err *err);
/* Once all rows are in: number the shared roots, count the shared texts. */
void prefix_tree_number(struct prefix_tree *tree);

/* The last shared block of a row that ends with this one; PREFIX_NONE = it shares nothing. */
uint32_t prefix_tree_shared(const struct prefix_tree *tree, uint32_t last);
/* Blocks that the same rows have one after the other are one text: the one that this block's begins
 * with. */
uint32_t prefix_tree_head(const struct prefix_tree *tree, uint32_t node);

#endif
