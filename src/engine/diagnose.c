/*
 * diagnose.c - why a run cannot go on, in sentences with numbers: who is at the head of the queue,
 * what it needs, what there is, and who holds the rest.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine_private.h"

static void say(struct pkv_engine *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct pkv_engine *e, const char *fmt, ...)
{
    size_t length = strlen(e->figures.diagnosis);
    va_list args;
    va_start(args, fmt);
    vsnprintf(e->figures.diagnosis + length, sizeof e->figures.diagnosis - length, fmt, args);
    va_end(args);
}

static void say_holders(struct pkv_engine *e)
{
    struct pkv_holder holders[PKV_MAX_HOLDERS];
    size_t num = engine_holders(e, holders);
    if (num == 0) {
        say(e, "; nobody holds a block");
        return;
    }
    for (size_t i = 0; i < num; i++) {
        char id[64];
        pkv_request_id(holders[i].request, id, sizeof id);
        say(e, "%s request %s (%" PRIu32 ")", i == 0 ? "; the rest is held by" : ",", id,
            holders[i].num_blocks);
    }
}

/* What keeps the request from ever running: the budget, the pool, or what else the admission asks. */
static void say_need(struct pkv_engine *e, const struct pkv_request *r, const struct pkv_plan *plan)
{
    const struct pkv_sched_config *config = pkv_sched_config(e->sched);
    struct pkv_cache *cache = pkv_sched_cache(e->sched);
    uint32_t known = r->seq.num_known_tokens, budget = config->max_num_batched_tokens;
    if (plan->limit == PKV_LIMIT_BUDGET && !config->enable_chunked_prefill) {
        say(e, ": without chunked prefill its %" PRIu32 " tokens exceed the token budget %" PRIu32,
            known, budget);
        return;
    }
    uint64_t need = pkv_sched_blocks_for(e->sched, known);
    say(e, ": its %" PRIu32 " tokens take %" PRIu64 " blocks", known, need);
    if (plan->head_need_blocks > need)
        say(e, ", its admission asks for %" PRIu64, plan->head_need_blocks);
    say(e, ", the pool has %" PRIu32 " and %" PRIu32 " are free", config->num_blocks,
        pkv_cache_num_free(cache));
}

void engine_diagnose_stuck(struct pkv_engine *e, const struct pkv_plan *plan)
{
    pkv_sched_refresh(e->sched);
    const struct pkv_request *r = pkv_request_get(plan->head);
    if (!r)
        r = pkv_sched_num_running(e->sched) ? pkv_sched_running(e->sched, 0)
                                            : pkv_sched_head(e->sched);
    char id[64];
    pkv_request_id(r, id, sizeof id);
    say(e, "request %s can never go on", id);
    say_need(e, r, plan);
    say_holders(e);
    size_t behind = pkv_sched_num_waiting(e->sched);
    if (behind > 1)
        say(e, "; %zu more wait behind it", behind - 1);
}

static void say_mutual(struct pkv_engine *e, const struct pkv_plan_preemption *last)
{
    char id[64], grower[64];
    pkv_request_id(last->ref.request, id, sizeof id);
    pkv_request_id(last->grower.request, grower, sizeof grower);
    say(e, "%zu requests give one another up for ever and no token comes out: request %s has lost "
        "%" PRIu32 " computed tokens for request %s again, the pool has %" PRIu32 " blocks",
        engine_num_live(e), id, last->lost_tokens, grower,
        pkv_sched_config(e->sched)->num_blocks);
    say_holders(e);
}

void engine_diagnose_livelock(struct pkv_engine *e, const struct pkv_plan_preemption *last)
{
    const struct pkv_sched_config *config = pkv_sched_config(e->sched);
    const struct pkv_request *r = last->ref.request;
    char id[64];
    if (pkv_sched_num_running(e->sched) > 0) {
        say_mutual(e, last);
        return;
    }
    pkv_request_id(r, id, sizeof id);
    say(e, "request %s preempts itself for ever: its %" PRIu32 " tokens need %" PRIu64
        " blocks, the pool has %" PRIu32 " and nobody else holds any",
        id, r->seq.num_known_tokens, pkv_sched_blocks_for(e->sched, r->seq.num_known_tokens),
        config->num_blocks);
}
