/*
 * peak.h - the most memory that a set of requests will hold at once, if nobody else comes in and
 * each gets one token a step.
 *
 * Memory only grows until somebody ends, so the peak is at one of the ends. With the requests sorted
 * by what remains to them, most first, those still there when the i-th ends are the first i:
 *
 *     peak = max over i of  remaining_i * i + held_1 + ... + held_i
 *
 * Beside windows a request is counted with the most blocks that it holds on the way to a length,
 * which only grows as well.
 *
 * Past-Future (Gong et al., ASPLOS 2025; LightLLM, req_queue/continues_batch/impl.py).
 */
#ifndef PKV_POLICY_PEAK_H
#define PKV_POLICY_PEAK_H

#include <stddef.h>
#include <stdint.h>

#include "pagedkv/policy.h"

/* One request: positions it holds and positions to come. */
struct peak_item { uint64_t held, remaining; };

/* Most remaining first. */
void peak_sort(struct peak_item *items, size_t num);
/* Into a sorted list of num items, which has room for one more. */
void peak_insert(struct peak_item *items, size_t num, struct peak_item item);

/* The list sorted, most remaining first, and one more among it (NULL = none). In positions: O(num).
 * In blocks, each request's positions rounded up by itself: O(num), seldom O(num^2). */
uint64_t peak_positions(const struct peak_item *items, size_t num, const struct peak_item *more);
uint64_t peak_blocks(const struct peak_item *items, size_t num, const struct peak_item *more,
                     uint32_t block_size);

/* What a pass over the waiting queue knows of those who run, with their true lengths. A last token is
 * counted as held or not, as the rule has it. Its scratch is sizeof(struct peak_pass) and
 * sizeof(struct peak_item) for each running request. */
struct peak_pass {
    size_t num;
    struct peak_item items[];   /* [num], sorted; behind them room for one more and its samples */
};
void peak_pass_begin(struct peak_pass *pass, const struct pkv_sched_view *view, bool counts_last);
void peak_pass_took(struct peak_pass *pass, const struct pkv_sched_view *view,
                    const struct pkv_request *r, bool counts_last);
/* The peak in blocks with one more among them, and those that are admitted with it. */
uint64_t peak_pass_with(struct peak_pass *pass, const struct pkv_sched_view *view,
                        const struct pkv_request *r, bool counts_last);

#endif
