/*
 * prefix_tree.c - see prefix_tree.h.
 */
#include "trace/prefix_tree.h"

#include "base/alloc.h"
#include "trace/block_ids.h"

void prefix_tree_free(struct prefix_tree *t)
{
    pkv_free(t->nodes);
    pkv_id_map_free(&t->ids);
}

static int add_node(struct prefix_tree *t, uint32_t parent, uint32_t depth, struct pkv_err *err)
{
    if (t->num >= PREFIX_NONE)
        return pkv_fail(err, PKV_ERR_INPUT, "the trace has more than %u different blocks",
                        PREFIX_NONE);
    if (pkv_grow(&t->nodes, &t->capacity, t->num + 1, sizeof *t->nodes, err) < 0)
        return -1;
    t->nodes[t->num++] = (struct prefix_node){.parent = parent, .depth = depth};
    return 0;
}

int prefix_tree_add(struct prefix_tree *t, const struct pkv_content *content,
                    const struct pkv_trace_texts *texts, uint32_t *out_last, struct pkv_err *err)
{
    struct pkv_block_walk walk;
    uint32_t depth = 0, tokens, last = PREFIX_NONE;
    uint64_t id;
    pkv_block_walk_begin(&walk, content, texts, t->block_size);
    while (pkv_block_walk_next(&walk, &id, &tokens)) {
        uint64_t *node = pkv_id_map_at(&t->ids, id, err);
        if (!node || (*node == 0 && add_node(t, last, depth, err) < 0))
            return -1;
        *node = *node ? *node : t->num;
        last = (uint32_t)(*node - 1);
        t->nodes[last].rows++;
        depth++;
    }
    *out_last = last;
    return 0;
}

static bool is_shared(const struct prefix_node *node)
{
    return node->rows >= 2;
}

static bool is_head(const struct prefix_tree *t, uint32_t node)
{
    uint32_t parent = t->nodes[node].parent;
    return parent == PREFIX_NONE || t->nodes[parent].rows != t->nodes[node].rows;
}

void prefix_tree_number(struct prefix_tree *t)
{
    for (uint32_t i = 0; i < t->num; i++) {
        if (!is_shared(&t->nodes[i]) || !is_head(t, i))
            continue;
        t->num_texts++;
        if (t->nodes[i].parent == PREFIX_NONE)
            t->nodes[i].root = t->num_roots++;
    }
}

uint32_t prefix_tree_shared(const struct prefix_tree *t, uint32_t last)
{
    while (last != PREFIX_NONE && !is_shared(&t->nodes[last]))
        last = t->nodes[last].parent;
    return last;
}

uint32_t prefix_tree_head(const struct prefix_tree *t, uint32_t node)
{
    while (!is_head(t, node))
        node = t->nodes[node].parent;
    return node;
}
