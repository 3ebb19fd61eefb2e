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

void reserve_begin(struct reserve_pass *pass, const struct pkv_sched_view *view)
{
    pass->outstanding = 0;
    for (size_t i = 0; !view->takes_runs && i < view->num_running; i++) {
        const struct pkv_request *r = view->running[i];
        pass->outstanding += need_to_end(view, r, NULL);
    }
}

enum pkv_admit_verdict reserve_consider(const struct reserve_pass *pass,
                                        const struct pkv_sched_view *view,
                                        const struct pkv_candidate *c, uint64_t *need_blocks)
{
    uint64_t need = view->takes_runs ? c->need_blocks : need_to_end(view, c->request, c->hit);
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    *need_blocks = need + pass->outstanding;
    return *need_blocks > view->num_free_blocks ? PKV_ADMIT_GATE : PKV_ADMIT;
}

void reserve_took(struct reserve_pass *pass, const struct pkv_sched_view *view,
                  const struct pkv_candidate *c)
{
    if (view->takes_runs)
        return;
    pass->outstanding += need_to_end(view, c->request, NULL);
}
