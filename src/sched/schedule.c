/*
 * schedule.c - one step: the running grow, and if nobody had to be given up for it, the waiting are
 * looked at.
 *
 * Two slots take turns, so that a plan lives until the plan after the next is made.
 *
 * Source: vllm/v1/core/sched/scheduler.py, schedule().
 */
#include "sched/sched_private.h"

static struct pkv_plan *begin(struct pkv_sched *s)
{
    struct pkv_plan *plan = &s->slots[s->num_plans & 1].plan;
    *plan = (struct pkv_plan){
        .number = s->num_plans,
        .entries = plan->entries,
        .admissions = plan->admissions,
        .preemptions = plan->preemptions,
        .finished = plan->finished,
    };
    s->num_plans++;
    s->budget = s->max_budget;
    s->view.step = plan->number;
    pkv_cache_clear_evicted(s->cache);
    sched_update_view(s);
    return plan;
}

/* All victims are known: what is in the plan now will run. */
static void settle(struct pkv_sched *s, struct pkv_plan *plan)
{
    for (size_t i = 0; i < plan->num_entries; i++)
        plan->entries[i].ref.request->num_recomputed_tokens += plan->entries[i].num_recomputed;
    plan->changed_nothing = plan->num_tokens == 0 && plan->num_preemptions == 0;
    flight_take_off(s, plan);
    steady_settle(s);
    s->num_out++;
}

int pkv_sched_plan(struct pkv_sched *s, struct pkv_plan **out, struct pkv_err *err)
{
    PKV_ASSERT(s->num_out <= s->config.async_scheduling);
    struct pkv_plan *plan = begin(s);
    if (plan_reserve(s, plan, s->num_running, err) < 0)
        return -1;
    struct pkv_mix mix = s->config.policies.mix->choose(&s->view);
    if (mix.grow)
        sched_grow_running(s, plan);
    else
        steady_leave_all(s, plan);   /* they do not go on in this step */
    plan->num_grown = plan->num_entries;
    if (plan->num_preemptions > 0)
        plan->limit = PKV_LIMIT_PREEMPTED;   /* what was given up must not be taken by a newcomer */
    else if (mix.admit && sched_admit_waiting(s, plan, err) < 0)
        return -1;
    else if (!mix.admit && pkv_waiting_head(s->waiting))
        plan->limit = PKV_LIMIT_LATCH;   /* nobody was looked at */
    settle(s, plan);
    *out = plan;
    return 0;
}
