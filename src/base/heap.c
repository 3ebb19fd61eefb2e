/*
 * heap.c - binary heap, each node knowing its place.
 */
#include "base/heap.h"

#include "base/alloc.h"

void pkv_heap_free(struct pkv_heap *heap)
{
    pkv_free(heap->nodes);
    *heap = (struct pkv_heap){0};
}

int pkv_heap_reserve(struct pkv_heap *heap, size_t num, struct pkv_err *err)
{
    return pkv_grow(&heap->nodes, &heap->capacity, num, sizeof(*heap->nodes), err);
}

bool pkv_heap_before(const struct pkv_heap_node *a, const struct pkv_heap_node *b)
{
    return a->key[0] != b->key[0] ? a->key[0] < b->key[0] : a->key[1] < b->key[1];
}

static void set(struct pkv_heap *heap, size_t index, struct pkv_heap_node *node)
{
    heap->nodes[index] = node;
    node->index = index;
}

static size_t rise(struct pkv_heap *heap, size_t index, const struct pkv_heap_node *node)
{
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (!pkv_heap_before(node, heap->nodes[parent]))
            break;
        set(heap, index, heap->nodes[parent]);
        index = parent;
    }
    return index;
}

static size_t sink(struct pkv_heap *heap, size_t index, const struct pkv_heap_node *node)
{
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= heap->num)
            return index;
        if (child + 1 < heap->num && pkv_heap_before(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!pkv_heap_before(heap->nodes[child], node))
            return index;
        set(heap, index, heap->nodes[child]);
        index = child;
    }
}

void pkv_heap_push(struct pkv_heap *heap, struct pkv_heap_node *node)
{
    PKV_ASSERT(heap->num < heap->capacity);
    size_t index = rise(heap, heap->num++, node);
    set(heap, index, node);
}

void pkv_heap_remove(struct pkv_heap *heap, struct pkv_heap_node *node)
{
    size_t index = node->index;
    PKV_ASSERT(index < heap->num && heap->nodes[index] == node);
    node->index = PKV_HEAP_NOWHERE;
    struct pkv_heap_node *last = heap->nodes[--heap->num];
    if (last == node)
        return;
    index = rise(heap, index, last);
    index = sink(heap, index, last);
    set(heap, index, last);
}

void pkv_heap_rebuild(struct pkv_heap *heap)
{
    for (size_t i = heap->num / 2; i-- > 0;) {
        struct pkv_heap_node *node = heap->nodes[i];
        set(heap, sink(heap, i, node), node);
    }
}

struct pkv_heap_node *pkv_heap_first(const struct pkv_heap *heap)
{
    return heap->num ? heap->nodes[0] : NULL;
}
