/*
 * schedule.c - one step: the running grow, and if nobody had to be given up for it, the waiting are
 * looked at. A mix may part them into two turns, of which the second is for when the first comes to
 * nothing.
 *
 * Two slots take turns, so that a plan lives until the plan after the next is made.
 *
 * Source: vllm/v1/core/sched/scheduler.py, schedule().
 */
#include "sched/sched_private.h"

struct lesson *sched_lesson(struct pkv_sched *s, const struct pkv_plan *plan)
{
    return &s->slots[plan->number & 1].lesson;
}

static struct pkv_plan *begin(struct pkv_sched *s)
{
    struct pkv_plan *plan = &s->slots[s->num_plans & 1].plan;
    *plan = (struct pkv_plan){
        .number = s->num_plans,
        .entries = plan->entries,
        .admissions = plan->admissions,
        .preemptions = plan->preemptions,
        .finished = plan->finished,
        .forks = plan->forks,
    };
    *sched_lesson(s, plan) = (struct lesson){0};
    s->num_plans++;
    s->budget = s->max_budget;
    s->swap.num_awaited = 0;
    s->view.step = plan->number;
    s->num_passes_before = s->view.num_passes;
    s->num_free_before = pkv_cache_num_free(s->cache);
    pkv_cache_clear_evicted(s->cache);
    sched_update_view(s);
    return plan;
}

/* returns 1 when newcomers were looked at, 0, or -1 without memory */
static int run_turn(struct pkv_sched *s, struct pkv_plan *plan, unsigned parts, struct pkv_err *err)
{
    if (parts & PKV_MIX_RUNNING)
        sched_grow_running(s, plan, parts);
    plan->num_grown = plan->num_entries;
    /* What was given up must not be taken by a newcomer. */
    bool looks = (parts & PKV_MIX_NEWCOMERS) && plan->num_preemptions == 0 &&
                 plan->num_stalled == 0;
    if (looks && sched_admit_waiting(s, plan, err) < 0)
        return -1;
    sched_lesson(s, plan)->parts = plan->num_tokens > 0 ? parts : 0;
    return looks;
}

static int run_mix(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_err *err)
{
    struct pkv_mix mix = s->config.policies.mix->choose(s->mix_state, &s->view);
    /* Blocks that were given up for one who decodes go to that one, not back to whom they were of. */
    if (s->swap.was_awaited && mix.otherwise && !(mix.first & PKV_MIX_DECODES))
        mix = (struct pkv_mix){.first = mix.otherwise, .otherwise = mix.first};
    int looked = run_turn(s, plan, mix.first, err), again = 0;
    /* One that comes back from the host takes blocks and no token: who lacked them now would be given up
     * for it, and so in turn for ever. */
    if (looked >= 0 && plan->num_tokens == 0 && plan->num_admissions == 0 && mix.otherwise)
        again = run_turn(s, plan, mix.otherwise, err);
    if (plan->num_steady == 0 && s->steady.num > 0)
        steady_leave_all(s, plan);   /* they did not go on in this step */
    return looked < 0 || again < 0 ? -1 : looked || again;
}

/* A preemption stands above what newcomers were refused for, and opens a queue that was shut. */
static void settle_limit(struct pkv_sched *s, struct pkv_plan *plan, bool looked)
{
    if (plan->num_preemptions > 0) {
        plan->limit = PKV_LIMIT_PREEMPTED;
        plan->head = (struct pkv_request_ref){0};
        plan->head_need_blocks = 0;
        plan->is_latched = false;
        plan->refused = (struct pkv_request_ref){0};
        plan->refused_number = plan->refused_need_blocks = 0;
    } else if (!looked && pkv_waiting_head(s->waiting)) {
        sched_pass_by(s, plan);
        if (plan->num_stalled > 0) {
            plan->limit = PKV_LIMIT_PREEMPTED;
            plan->is_latched = false;
        }
    }
}

/* Nobody was admitted in a step that gave somebody up, so whoever runs now is left over. */
static void count_survivors(struct pkv_sched *s, const struct pkv_plan *plan)
{
    struct lesson *lesson = sched_lesson(s, plan);
    for (size_t i = 0; plan->num_preemptions > 0 && i < s->num_running; i++) {
        lesson->num_survivors++;
        lesson->sum_emitted += s->running[i]->num_emitted;
        lesson->sum_max_tokens += s->running[i]->max_tokens;
    }
}

/* All victims are known: what is in the plan now will run. */
static void settle(struct pkv_sched *s, struct pkv_plan *plan)
{
    count_survivors(s, plan);
    for (size_t i = 0; i < plan->num_entries; i++)
        plan->entries[i].ref.request->num_recomputed_tokens += plan->entries[i].num_recomputed;
    /* One that could not grow may have given back what left its window, for another to take. */
    plan->changed_nothing = plan->num_tokens == 0 && plan->num_preemptions == 0 &&
                            plan->num_transfers == 0 &&
                            pkv_cache_num_free(s->cache) == s->num_free_before;
    s->swap.was_awaited = plan->num_stalled > 0;
    flight_take_off(s, plan);
    steady_settle(s);
    s->num_out++;
}

int pkv_sched_plan(struct pkv_sched *s, struct pkv_plan **out, struct pkv_err *err)
{
    PKV_ASSERT(s->num_out <= s->config.async_scheduling);
    struct pkv_plan *plan = begin(s);
    if (plan_reserve(s, plan, s->num_running, err) < 0 || swap_reserve(s, err) < 0)
        return -1;
    int looked = run_mix(s, plan, err);
    if (looked < 0)
        return -1;
    settle_limit(s, plan, looked);
    settle(s, plan);
    *out = plan;
    return 0;
}
