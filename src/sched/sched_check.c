/*
 * sched_check.c - recount the scheduler from nothing: S1 to S4 and S6 to S11 of sched.h, then cache
 * and pool; and a plan: S5.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "sched/sched_private.h"

static int check_waiting(const struct pkv_sched *s, struct pkv_err *err)
{
    for (size_t i = 0; i < pkv_waiting_num(s->waiting); i++) {
        const struct pkv_request *r = pkv_waiting_any(s->waiting, i);
        if (r->status != PKV_REQUEST_WAITING && r->status != PKV_REQUEST_PREEMPTED &&
            r->status != PKV_REQUEST_SWAPPED)
            return pkv_fail(err, PKV_ERR_AUDIT, "S1: row %" PRIu64 " is in the queue and %s",
                            r->row, pkv_request_status_name(r->status));
        if (r->num_drafts > 0)
            return pkv_fail(err, PKV_ERR_AUDIT, "S9: row %" PRIu64 " waits with %" PRIu32 " drafts",
                            r->row, r->num_drafts);
        for (uint32_t g = 0; g < s->config.num_groups; g++)
            if (r->seq.tables[g].num || r->seq.num_computed_tokens)
                return pkv_fail(err, PKV_ERR_AUDIT,
                                "S2: row %" PRIu64 " waits with %" PRIu32 " blocks and %" PRIu32
                                " computed positions",
                                r->row, r->seq.tables[g].num, r->seq.num_computed_tokens);
    }
    return 0;
}

static int check_running(const struct pkv_sched *s, struct pkv_err *err)
{
    if (s->num_running + s->swap.num_resuming > s->max_seqs)
        return pkv_fail(err, PKV_ERR_AUDIT, "S4: %zu running, max_num_seqs is %" PRIu64,
                        s->num_running + s->swap.num_resuming, s->max_seqs);
    for (size_t i = 0; i < s->num_running; i++) {
        const struct pkv_request *r = s->running[i];
        if (r->status != PKV_REQUEST_RUNNING)
            return pkv_fail(err, PKV_ERR_AUDIT, "S1: row %" PRIu64 " runs and is %s", r->row,
                            pkv_request_status_name(r->status));
        if (i > 0 && s->running[i - 1]->steady.admission >= r->steady.admission)
            return pkv_fail(err, PKV_ERR_AUDIT, "S1: row %" PRIu64 " runs behind row %" PRIu64
                            ", which was not admitted before it", r->row, s->running[i - 1]->row);
        if (r->num_drafts != 0 && r->num_drafts != s->num_drafts)
            return pkv_fail(err, PKV_ERR_AUDIT, "S9: row %" PRIu64 " has %" PRIu32 " drafts of %"
                            PRIu32, r->row, r->num_drafts, s->num_drafts);
        uint32_t in_step = s->num_out > 0 ? r->num_drafts : 0;
        if (r->seq.num_computed_tokens > sched_known_tokens(r) + in_step)
            return pkv_fail(err, PKV_ERR_AUDIT,
                            "S3: row %" PRIu64 " has %" PRIu32 " positions computed of %" PRIu32,
                            r->row, r->seq.num_computed_tokens, sched_known_tokens(r) + in_step);
    }
    return 0;
}

static int check_latch(const struct pkv_sched *s, struct pkv_err *err)
{
    const struct latch *latch = &s->latch;
    if (!latch->is_shut)
        return 0;
    if (!s->config.policies.on_blocked->latches)
        return pkv_fail(err, PKV_ERR_AUDIT, "S7: the queue is shut under on_blocked: %s",
                        s->config.policies.on_blocked->info.name);
    if (s->num_running == 0 || s->num_running != latch->num_running ||
        s->num_admissions != latch->num_admissions)
        return pkv_fail(err, PKV_ERR_AUDIT, "S7: the queue is shut with %zu running after %" PRIu64
                        " admissions, it was with %zu after %" PRIu64, s->num_running,
                        s->num_admissions, latch->num_running, latch->num_admissions);
    return 0;
}

size_t sched_list_held(const struct pkv_sched *s, const struct pkv_seq **out)
{
    size_t num = 0;
    for (size_t i = 0; i < s->num_running; i++)
        out[num++] = &s->running[i]->seq;
    for (size_t i = 0; i < s->swap.num_resuming; i++)
        out[num++] = &s->swap.resuming[i]->seq;
    return num;
}

int pkv_sched_check(struct pkv_sched *s, struct pkv_err *err)
{
    steady_refresh(s);
    size_t num_listed = s->num_running + s->swap.num_resuming + pkv_sched_num_waiting(s);
    if (num_listed != pkv_request_store_num_live(s->store))
        return pkv_fail(err, PKV_ERR_AUDIT, "S1: %zu requests live, %zu in queue and running",
                        pkv_request_store_num_live(s->store), num_listed);
    if (check_waiting(s, err) < 0 || check_running(s, err) < 0 || steady_check(s, err) < 0 ||
        check_latch(s, err) < 0 || flight_check(s, err) < 0 || swap_check(s, err) < 0 ||
        gang_check(s, err) < 0)
        return -1;
    const struct pkv_seq **seqs = pkv_alloc(num_listed, sizeof(*seqs), err);
    if (!seqs)
        return -1;
    size_t num = sched_list_held(s, seqs);
    for (size_t i = 0; i < pkv_waiting_num(s->waiting); i++)
        seqs[num++] = &pkv_waiting_any(s->waiting, i)->seq;
    int result = pkv_cache_check(s->cache, seqs, num, err);
    pkv_free(seqs);
    return result;
}

struct plan_sums { uint64_t tokens, prefill, decodes, context, recomputed, drafts; };

static int compare_sum(const char *what, uint64_t counted, uint64_t told, struct pkv_err *err)
{
    if (counted == told)
        return 0;
    return pkv_fail(err, PKV_ERR_AUDIT, "S5: the plan has %" PRIu64 " %s, its entries %" PRIu64,
                    told, what, counted);
}

int pkv_plan_check(const struct pkv_sched *s, const struct pkv_plan *plan, struct pkv_err *err)
{
    struct plan_sums sum = {.tokens = plan->num_steady, .decodes = plan->num_steady};
    if (plan->num_steady)
        sum.context = s->steady.num_positions;
    for (size_t i = 0; i < plan->num_entries; i++) {
        const struct pkv_plan_entry *e = &plan->entries[i];
        sum.tokens += e->num_tokens;
        uint32_t own = e->num_tokens - e->num_drafts;
        sum.prefill += own > 1 ? own : 0;
        sum.decodes += own == 1;
        sum.drafts += e->num_drafts;
        sum.context += e->first_position + (uint64_t)e->num_tokens;
        sum.recomputed += e->num_recomputed;
    }
    if (compare_sum("tokens", sum.tokens, plan->num_tokens, err) < 0 ||
        compare_sum("prefill tokens", sum.prefill, plan->num_prefill_tokens, err) < 0 ||
        compare_sum("decodes", sum.decodes, plan->num_decodes, err) < 0 ||
        compare_sum("context tokens", sum.context, plan->num_context_tokens, err) < 0 ||
        compare_sum("drafts", sum.drafts, plan->num_drafts, err) < 0 ||
        compare_sum("recomputed tokens", sum.recomputed, plan->num_recomputed_tokens, err) < 0)
        return -1;
    if (plan->num_tokens > s->max_budget)
        return pkv_fail(err, PKV_ERR_AUDIT, "S5: %" PRIu64 " tokens scheduled, the budget is %"
                        PRIu64, plan->num_tokens, s->max_budget);
    return 0;
}
