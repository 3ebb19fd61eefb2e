/*
 * reserve.c - see reserve.h.
 */
#include "policy/reserve.h"

uint64_t reserve_positions_wanted(const struct pkv_request *r)
{
    return (uint64_t)r->seq.num_prompt_tokens + r->max_tokens - 1;
}

/* With the drafts of the step that brings the last token, and what is asked for beyond. */
static uint32_t positions_to_end(const struct pkv_sched_view *view, const struct pkv_request *r)
{
    uint32_t ahead = (r->max_tokens > 1 ? view->num_drafts : 0) + view->num_lookahead_tokens;
    uint64_t wanted = reserve_positions_wanted(r);
    uint32_t last = view->max_model_len - 1;   /* the token that reaches it is never stored */
    uint32_t end = wanted < last ? (uint32_t)wanted : last;
    end = end > r->seq.num_known_tokens ? end : r->seq.num_known_tokens;
    uint32_t room = view->max_model_len > end ? view->max_model_len - end : 0;
    return end + (ahead < room ? ahead : room);
}

static uint64_t need_to_end(const struct pkv_sched_view *view, const struct pkv_request *r,
                            const struct pkv_hit *hit)
{
    return pkv_cache_need_to_end(view->cache, &r->seq, hit, positions_to_end(view, r),
                                 view->max_chunk_tokens);
}

/* What it may still take. Of one that waits for its fork, what it will not share. */
static uint64_t blocks_to_come(const struct pkv_sched_view *view, const struct pkv_request *r)
{
    uint32_t end = positions_to_end(view, r), prompt = r->seq.num_prompt_tokens;
    if (!pkv_sample_follows(r))
        return need_to_end(view, r, NULL);
    return end > prompt ? pkv_cache_blocks_for(view->cache, end, view->max_chunk_tokens) -
                              pkv_cache_full_blocks(view->cache, prompt) : 0;
}

/* The same of all that are admitted with it. */
static uint64_t others_to_come(const struct pkv_sched_view *view, const struct pkv_request *r)
{
    uint64_t sum = 0;
    const struct pkv_request *other = r->sample.next;
    for (; r->sample.waits_for_fork && other != r; other = other->sample.next)
        sum += blocks_to_come(view, other);
    return sum;
}

void reserve_begin(struct reserve_pass *pass, const struct pkv_sched_view *view)
{
    pass->outstanding = 0;
    for (size_t i = 0; !view->takes_runs && i < pkv_view_num_in(view); i++)
        pass->outstanding += blocks_to_come(view, pkv_view_in(view, i));
}

enum pkv_admit_verdict reserve_consider(const struct reserve_pass *pass,
                                        const struct pkv_sched_view *view,
                                        const struct pkv_candidate *c, uint64_t *need_blocks)
{
    uint64_t need = view->takes_runs ? c->need_blocks : need_to_end(view, c->request, c->hit);
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    *need_blocks = need + others_to_come(view, c->request) + pass->outstanding;
    return *need_blocks > view->num_free_blocks ? PKV_ADMIT_GATE : PKV_ADMIT;
}

void reserve_took(struct reserve_pass *pass, const struct pkv_sched_view *view,
                  const struct pkv_candidate *c)
{
    if (view->takes_runs)
        return;
    pass->outstanding += blocks_to_come(view, c->request) + others_to_come(view, c->request);
}
