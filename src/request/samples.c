/*
 * samples.c - the ring in which the live samples of one request hang together, by their index.
 */
#include "pagedkv/request.h"

void pkv_sample_join(struct pkv_request *first, struct pkv_request *newcomer)
{
    struct pkv_request *last = first->sample.prev;
    PKV_ASSERT(newcomer->sample.next == newcomer &&
               last->sample.index < newcomer->sample.index);
    newcomer->sample.prev = last;
    newcomer->sample.next = first;
    last->sample.next = first->sample.prev = newcomer;
}

void pkv_sample_leave(struct pkv_request *r)
{
    r->sample.prev->sample.next = r->sample.next;
    r->sample.next->sample.prev = r->sample.prev;
    r->sample.next = r->sample.prev = r;
}

struct pkv_request *pkv_sample_first(const struct pkv_request *r)
{
    const struct pkv_request *first = r;
    while (first->sample.prev->sample.index < first->sample.index)
        first = first->sample.prev;
    return first->sample.next->sample.prev;   /* itself, and not const */
}

uint32_t pkv_sample_count(const struct pkv_request *r)
{
    uint32_t num = 1;
    for (const struct pkv_request *other = r->sample.next; other != r; other = other->sample.next)
        num++;
    return num;
}

bool pkv_sample_follows(const struct pkv_request *r)
{
    return r->sample.waits_for_fork && r->sample.prev->sample.index < r->sample.index;
}
