/*
 * flight.c - async scheduling: tokens of steps that are planned and have not come out.
 *
 * When a step is planned, the one before it still runs. That one's sampled tokens count as known,
 * so their requests go on, but nobody can know what they say: a block that holds one gets its
 * identity later. A request whose tokens in flight are its last ones gets nothing. What a step will
 * bring is settled when it is planned, and comes out for every request that is still live then, one
 * that was given up in between as well.
 *
 * Requests that decode undisturbed are counted in a plan and not listed; see steady.c.
 *
 * Source: vllm/v1/core/sched/async_scheduler.py.
 */
#include <inttypes.h>

#include "sched/sched_private.h"

bool flight_is_last(const struct pkv_sched *s, const struct pkv_request *r)
{
    return r->num_in_flight > 0 &&
           ((uint64_t)r->num_emitted + r->num_in_flight >= r->max_tokens ||
            (uint64_t)r->seq.num_known_tokens + r->num_in_flight >= s->max_model_len);
}

uint64_t flight_overrun(const struct pkv_sched *s, const struct pkv_request *r)
{
    uint64_t end = (uint64_t)r->seq.num_prompt_tokens + r->num_output_tokens - 1;
    bool is_told_more = r->max_tokens > r->num_output_tokens && end < s->max_model_len - 1;
    return s->config.async_scheduling && is_told_more ? 1 : 0;
}

uint32_t flight_landed_positions(const struct pkv_sched *s, struct pkv_request *r)
{
    if (r->steady.is_in)
        steady_refresh_one(s, r);
    return r->seq.num_computed_tokens - r->seq.num_flying_tokens;
}

void flight_take_off(struct pkv_sched *s, const struct pkv_plan *plan)
{
    for (size_t i = 0; s->config.async_scheduling && i < plan->num_entries; i++) {
        struct pkv_request *r = plan->entries[i].ref.request;
        r->num_in_flight += plan->entries[i].samples;
        r->seq.num_flying_tokens += plan->entries[i].num_tokens;
    }
}

struct pkv_request *flight_passenger(const struct pkv_plan_entry *entry)
{
    struct pkv_request *r = pkv_request_get(entry->ref);
    if (r && r->status != PKV_REQUEST_RUNNING && r->status != PKV_REQUEST_PREEMPTED)
        return NULL;
    return r;
}

void pkv_sched_drop(struct pkv_sched *s, struct pkv_plan *plan)
{
    PKV_ASSERT(s->num_out == 1 && plan->number == s->num_plans - 1 && plan->num_steady == 0);
    for (size_t i = 0; i < plan->num_entries; i++)
        PKV_ASSERT(!flight_passenger(&plan->entries[i]));
    s->num_out = 0;
}

/* --- recount --------------------------------------------------------------------------------- */

static uint32_t count_entries(const struct pkv_sched *s, const struct pkv_request *of)
{
    uint32_t num = 0;
    for (uint64_t number = s->num_plans - s->num_out; number < s->num_plans; number++) {
        const struct pkv_plan *plan = &s->slots[number & 1].plan;
        for (size_t i = 0; i < plan->num_entries; i++) {
            const struct pkv_request *r = flight_passenger(&plan->entries[i]);
            num += plan->entries[i].samples && r && !r->steady.is_in && (!of || r == of);
        }
    }
    return num;
}

/* Positions that plans which are out are to compute for a running request. */
static uint32_t count_positions(const struct pkv_sched *s, const struct pkv_request *of)
{
    uint32_t num = 0;
    for (uint64_t number = s->num_plans - s->num_out; number < s->num_plans; number++) {
        const struct pkv_plan *plan = &s->slots[number & 1].plan;
        for (size_t i = 0; i < plan->num_entries; i++)
            if (flight_passenger(&plan->entries[i]) == of && of->status == PKV_REQUEST_RUNNING)
                num += plan->entries[i].num_tokens;
    }
    return num;
}

static int check_request(const struct pkv_sched *s, const struct pkv_request *r, uint32_t *sum,
                         struct pkv_err *err)
{
    if (r->steady.is_in || r->steady.is_last)
        return 0;   /* counted, not listed; see S6 */
    uint32_t num_positions = count_positions(s, r);
    if (num_positions != r->seq.num_flying_tokens)
        return pkv_fail(err, PKV_ERR_AUDIT, "S8: row %" PRIu64 " has %" PRIu32 " positions in flight, %"
                        PRIu32 " counted", r->row, r->seq.num_flying_tokens, num_positions);
    uint32_t num = r->num_in_flight > 0 ? count_entries(s, r) : 0;
    *sum += num;
    if (num == r->num_in_flight)
        return 0;
    return pkv_fail(err, PKV_ERR_AUDIT, "S8: row %" PRIu64 " has %" PRIu32 " tokens in flight, %"
                    PRIu32 " counted", r->row, r->num_in_flight, num);
}

int flight_check(const struct pkv_sched *s, struct pkv_err *err)
{
    uint32_t sum = 0;
    if (!s->config.async_scheduling)
        return 0;
    for (size_t i = 0; i < s->num_running; i++)
        if (check_request(s, s->running[i], &sum, err) < 0)
            return -1;
    for (size_t i = 0; i < pkv_waiting_num(s->waiting); i++)
        if (check_request(s, pkv_waiting_any(s->waiting, i), &sum, err) < 0)
            return -1;
    uint32_t counted = count_entries(s, NULL);
    if (sum == counted)
        return 0;
    return pkv_fail(err, PKV_ERR_AUDIT, "S8: %" PRIu32 " tokens are in flight, the plans that are out "
                    "bring %" PRIu32, sum, counted);
}
