/*
 * waiting.c - the waiting queue: a heap of (key, place), so that first come first served, priority
 * and every other order are one structure, and an abort leaves from the middle.
 *
 * Places count up from 0 for newcomers and the tail, and down from -1 for the front.
 */
#include <stddef.h>

#include "base/alloc.h"
#include "base/heap.h"
#include "pagedkv/request.h"

struct pkv_waiting {
    struct pkv_heap heap;
    int64_t next_place, front_place;
};

struct pkv_waiting *pkv_waiting_create(struct pkv_err *err)
{
    struct pkv_waiting *queue = pkv_alloc(1, sizeof(*queue), err);
    if (queue)
        queue->front_place = -1;
    return queue;
}

void pkv_waiting_destroy(struct pkv_waiting *queue)
{
    if (!queue)
        return;
    pkv_heap_free(&queue->heap);
    pkv_free(queue);
}

int pkv_waiting_reserve(struct pkv_waiting *queue, size_t num, struct pkv_err *err)
{
    return pkv_heap_reserve(&queue->heap, num, err);
}

static void put(struct pkv_waiting *queue, struct pkv_request *r, int64_t key, int64_t place)
{
    r->waiting_node.key[0] = key;
    r->waiting_node.key[1] = place;
    pkv_heap_push(&queue->heap, &r->waiting_node);
}

void pkv_waiting_put_new(struct pkv_waiting *queue, struct pkv_request *r, int64_t key)
{
    r->arrival_order = queue->next_place++;
    put(queue, r, key, r->arrival_order);
}

void pkv_waiting_put_again(struct pkv_waiting *queue, struct pkv_request *r, int64_t key)
{
    put(queue, r, key, r->arrival_order);
}

void pkv_waiting_put_front(struct pkv_waiting *queue, struct pkv_request *r)
{
    put(queue, r, INT64_MIN, queue->front_place--);
}

void pkv_waiting_put_tail(struct pkv_waiting *queue, struct pkv_request *r, int64_t key)
{
    put(queue, r, key, queue->next_place++);
}

void pkv_waiting_put_back(struct pkv_waiting *queue, struct pkv_request *r)
{
    pkv_heap_push(&queue->heap, &r->waiting_node);
}

bool pkv_waiting_has_place(const struct pkv_request *r)
{
    return r->waiting_node.key[0] == INT64_MIN || r->waiting_node.key[0] == INT64_MAX;
}

static struct pkv_request *owner(struct pkv_heap_node *node)
{
    return (struct pkv_request *)((char *)node - offsetof(struct pkv_request, waiting_node));
}

struct pkv_request *pkv_waiting_head(const struct pkv_waiting *queue)
{
    struct pkv_heap_node *first = pkv_heap_first(&queue->heap);
    return first ? owner(first) : NULL;
}

void pkv_waiting_remove(struct pkv_waiting *queue, struct pkv_request *r)
{
    pkv_heap_remove(&queue->heap, &r->waiting_node);
}

size_t pkv_waiting_num(const struct pkv_waiting *queue)
{
    return queue->heap.num;
}

struct pkv_request *pkv_waiting_any(const struct pkv_waiting *queue, size_t i)
{
    PKV_ASSERT(i < queue->heap.num);
    return owner(queue->heap.nodes[i]);
}

/* Where one stands whose key becomes this one. */
static struct pkv_heap_node moved(const struct pkv_request *r, int64_t key)
{
    struct pkv_heap_node node = r->waiting_node;
    if (pkv_waiting_has_place(r) || node.key[0] == key)
        return node;
    node.key[0] = key;
    node.key[1] = r->arrival_order;
    return node;
}

void pkv_waiting_set_keys(struct pkv_waiting *queue, const int64_t *keys)
{
    bool changed = false;
    for (size_t i = 0; i < queue->heap.num; i++) {
        struct pkv_request *r = owner(queue->heap.nodes[i]);
        struct pkv_heap_node node = moved(r, keys[i]);
        changed |= r->waiting_node.key[0] != node.key[0];
        r->waiting_node = node;
    }
    if (changed)
        pkv_heap_rebuild(&queue->heap);
}

struct pkv_request *pkv_waiting_head_by(const struct pkv_waiting *queue, const int64_t *keys)
{
    struct pkv_request *head = NULL;
    struct pkv_heap_node first = {0};
    for (size_t i = 0; i < queue->heap.num; i++) {
        struct pkv_request *r = owner(queue->heap.nodes[i]);
        struct pkv_heap_node node = moved(r, keys[i]);
        if (head && !pkv_heap_before(&node, &first))
            continue;
        head = r;
        first = node;
    }
    return head;
}

static void sift(struct pkv_request **all, size_t index, size_t num)
{
    struct pkv_request *r = all[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= num)
            break;
        if (child + 1 < num &&
            pkv_heap_before(&all[child]->waiting_node, &all[child + 1]->waiting_node))
            child++;
        if (!pkv_heap_before(&r->waiting_node, &all[child]->waiting_node))
            break;
        all[index] = all[child];
        index = child;
    }
    all[index] = r;
}

/* Heap sort: in place, no allocation, n log n whatever the order. */
void pkv_waiting_list(const struct pkv_waiting *queue, struct pkv_request **out)
{
    size_t num = queue->heap.num;
    for (size_t i = 0; i < num; i++)
        out[i] = owner(queue->heap.nodes[i]);
    for (size_t i = num / 2; i-- > 0;)
        sift(out, i, num);
    while (num > 1) {
        struct pkv_request *last = out[0];
        out[0] = out[--num];
        out[num] = last;
        sift(out, 0, num);
    }
}
