/*
 * reserve.h - room to the end: what a pass over the waiting queue sets aside for those who run, so that
 * nobody who is let in will ever lack a block.
 *
 * A request may come to fill prompt + max_tokens - 1 positions, and under speculation those of its last
 * drafts and of the lookahead. What the running ones may still take is
 * summed up when a pass begins; a newcomer fits if its own blocks to the end are free beside that. So
 * nobody is ever preempted, as long as no request produces more than its max_tokens.
 *
 * Under a layout of runs the run is the reservation, whatever max_tokens says: it is taken whole at
 * the admission, so nothing is outstanding, and what this step takes is all there is to ask for.
 */
#ifndef PKV_POLICY_RESERVE_H
#define PKV_POLICY_RESERVE_H

#include "pagedkv/policy.h"

struct reserve_pass {
    uint64_t outstanding;   /* blocks that those admitted may still take */
};

uint64_t reserve_positions_wanted(const struct pkv_request *r);
void reserve_begin(struct reserve_pass *pass, const struct pkv_sched_view *view);
enum pkv_admit_verdict reserve_consider(const struct reserve_pass *pass,
                                        const struct pkv_sched_view *view,
                                        const struct pkv_candidate *c, uint64_t *need_blocks);
void reserve_took(struct reserve_pass *pass, const struct pkv_sched_view *view,
                  const struct pkv_candidate *c);

#endif
