/*
 * diagnose.c - why a run cannot go on, in sentences with numbers: who is at the head of the queue,
 * what it needs, what there is, and who holds the rest; or that nobody may be given up.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
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

/* A number with its thousands parted; its text lasts to the end of the call that it is handed to. */
struct count {
    char text[32];
};

static struct count count(uint64_t n)
{
    struct count out;
    pkv_format_count(n, out.text);
    return out;
}

static void say_holders(struct pkv_engine *e, const char *before)
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
        say(e, "%s request %s (%s)", i == 0 ? before : ",", id, count(holders[i].num_blocks).text);
    }
}

/* What keeps the request from ever running: the budget, the pool, or what else the admission asks. */
static void say_need(struct pkv_engine *e, const struct pkv_request *r, const struct pkv_plan *plan)
{
    const struct pkv_sched_config *config = pkv_sched_config(e->sched);
    struct pkv_cache *cache = pkv_sched_cache(e->sched);
    uint32_t known = r->seq.num_known_tokens, budget = config->max_num_batched_tokens;
    if (plan->limit == PKV_LIMIT_BUDGET && !config->enable_chunked_prefill) {
        say(e, ": without chunked prefill its %s tokens exceed the token budget %s",
            count(known).text, count(budget).text);
        return;
    }
    if (plan->limit == PKV_LIMIT_SEQS && r->sample.num > config->max_num_seqs) {
        say(e, ": its %s samples exceed max_num_seqs %s", count(r->sample.num).text,
            count(config->max_num_seqs).text);
        return;
    }
    uint64_t need = pkv_sched_blocks_for(e->sched, known);
    say(e, ": its %s tokens take %s blocks", count(known).text, count(need).text);
    if (plan->head_need_blocks > need)
        say(e, ", its admission asks for %s", count(plan->head_need_blocks).text);
    say(e, ", the pool has %s and %s are free", count(config->num_blocks).text,
        count(pkv_cache_num_free(cache)).text);
}

/* Several run, none can grow, and the rule gives nobody up: no single request is to blame. */
static bool is_deadlock(const struct pkv_engine *e)
{
    const struct pkv_preempt_ops *preempt = pkv_sched_config(e->sched)->policies.preempt;
    return strcmp(preempt->info.name, "never") == 0 && pkv_sched_num_running(e->sched) > 1;
}

static void say_deadlock(struct pkv_engine *e)
{
    size_t num_waiting = pkv_sched_num_waiting(e->sched);
    say(e, "nobody is given up (preempt: never), and each of the %s requests that run lacks a block to "
        "go on: of %s blocks %s are free", count(pkv_sched_num_running(e->sched)).text,
        count(pkv_sched_config(e->sched)->num_blocks).text,
        count(pkv_cache_num_free(pkv_sched_cache(e->sched))).text);
    say_holders(e, "; the most are held by");
    if (num_waiting > 0)
        say(e, "; %s more wait to be admitted", count(num_waiting).text);
}

void engine_diagnose_stuck(struct pkv_engine *e, const struct pkv_plan *plan)
{
    pkv_sched_refresh(e->sched);
    if (is_deadlock(e)) {
        e->figures.is_deadlock = true;
        say_deadlock(e);
        return;
    }
    const struct pkv_request *r = pkv_request_get(plan->head);
    if (!r)
        r = pkv_sched_num_running(e->sched) ? pkv_sched_running(e->sched, 0)
                                            : pkv_sched_head(e->sched);
    char id[64];
    pkv_request_id(r, id, sizeof id);
    say(e, "request %s can never go on", id);
    say_need(e, r, plan);
    say_holders(e, "; the rest is held by");
    size_t behind = pkv_sched_num_waiting(e->sched);
    if (behind > 1)
        say(e, "; %s more wait behind it", count(behind - 1).text);
}

static void say_mutual(struct pkv_engine *e, const struct pkv_plan_preemption *last)
{
    char id[64], grower[64];
    pkv_request_id(last->ref.request, id, sizeof id);
    pkv_request_id(last->grower.request, grower, sizeof grower);
    say(e, "%s requests give one another up for ever and no token comes out: request %s has lost "
        "%s computed tokens for request %s again, the pool has %s blocks",
        count(engine_num_live(e)).text, id, count(last->lost_tokens).text, grower,
        count(pkv_sched_config(e->sched)->num_blocks).text);
    say_holders(e, "; the rest is held by");
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
    uint64_t need = pkv_sched_blocks_for(e->sched, r->seq.num_known_tokens);
    say(e, "request %s preempts itself for ever: its %s tokens need %s blocks, the pool has %s and "
        "nobody else holds any", id, count(r->seq.num_known_tokens).text, count(need).text,
        count(config->num_blocks).text);
}
