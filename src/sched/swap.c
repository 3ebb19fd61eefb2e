/*
 * swap.c - whoever is given up may go to the host and come back: when, and what waits for it meanwhile.
 *
 * The cache moves blocks, the engine knows when a transfer is done; here stand who it is for and what may
 * not happen before. Transfers are done in the order in which they were begun, so this list and the
 * cache's go in step.
 *
 * Source of the idea: Kwon et al., SOSP 2023, section 4.5. That blocks go out beside the compute and are
 * free only then, and that resuming ones wait for their copies without holding others up, is ours; vLLM
 * V0 copied before each step and waited for it.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "sched/sched_private.h"

int swap_check_config(const struct pkv_sched_config *config, struct pkv_err *err)
{
    const struct pkv_policies *p = &config->policies;
    const char *name = p->on_preempt->info.name;
    if (!p->on_preempt->swaps)
        return 0;
    if (p->layout->create)
        return pkv_fail(err, PKV_ERR_INPUT, "on_preempt: %s moves blocks one by one, layout %s gives "
                        "them in one piece", name, p->layout->info.name);
    if (config->num_groups != 1 || config->groups[0].ops != &pkv_group_full)
        return pkv_fail(err, PKV_ERR_INPUT, "on_preempt: %s moves the blocks of one growing table and "
                        "serves one group of full attention", name);
    if (config->async_scheduling || config->speculation.method != PKV_SPECULATION_NONE)
        return pkv_fail(err, PKV_ERR_INPUT, "on_preempt: %s moves blocks between steps that do not "
                        "overlap and bring one token: no speculation, no async_scheduling", name);
    if (config->swap.num_host_blocks > UINT32_MAX || config->swap.link.bytes_per_s == 0 ||
        config->swap.link.latency_ns < 0)
        return pkv_fail(err, PKV_ERR_INPUT, "on_preempt: %s needs fewer than 2^32 blocks on the host, a "
                        "bandwidth above 0 and a latency not below 0", name);
    return 0;
}

void swap_free(struct pkv_sched *s)
{
    pkv_free(s->swap.transfers);
    pkv_free(s->swap.resuming);
}

int swap_reserve(struct pkv_sched *s, struct pkv_err *err)
{
    struct swap *w = &s->swap;
    size_t num = s->num_running + 1;
    if (!w->is_on)
        return 0;
    if (pkv_grow(&w->transfers, &w->transfers_capacity, w->num_transfers + num,
                 sizeof(*w->transfers), err) < 0 ||
        pkv_grow(&w->resuming, &w->resuming_capacity, w->num_resuming + 1,
                 sizeof(struct pkv_request *), err) < 0)
        return -1;
    return pkv_cache_reserve_transfers(s->cache, num, err);
}

uint64_t pkv_swap_block_bytes(const struct pkv_sched_config *config)
{
    return config->swap.bytes_per_token * config->groups[0].block_size;
}

static int64_t transfer_ns(const struct pkv_sched *s, uint32_t num_blocks)
{
    return pkv_link_time_ns(&s->config.swap.link, num_blocks, pkv_swap_block_bytes(&s->config));
}

static void begin(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r, bool is_out,
                  uint32_t num_blocks)
{
    struct swap *w = &s->swap;
    PKV_ASSERT(w->num_transfers < w->transfers_capacity);
    w->transfers[w->num_transfers++] = (struct pkv_transfer){
        .is_out = is_out, .num_blocks = num_blocks, .ref = pkv_request_ref(r)};
    plan->num_transfers++;
    int64_t ns = transfer_ns(s, num_blocks);
    w->wait_ns = w->wait_ns < INT64_MAX - ns ? w->wait_ns + ns : INT64_MAX;
}

/* --- out ------------------------------------------------------------------------------------- */

bool swap_out(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
              uint32_t num_positions, struct pkv_plan_preemption *out)
{
    struct swap *w = &s->swap;
    if (!w->is_on)
        return false;
    struct pkv_swap_case c = {.wait_ns = w->wait_ns, .step_time = &s->config.swap.step_time};
    c.num_blocks = pkv_cache_num_movable(s->cache, &r->seq, num_positions, &c.num_positions);
    c.transfer_ns = transfer_ns(s, c.num_blocks);
    if (c.num_blocks == 0 || !s->config.policies.on_preempt->swaps(&c))
        return false;
    struct pkv_cache_figures figures = pkv_cache_figures(s->cache);
    out->host_was_full = c.num_blocks > figures.num_host_blocks - figures.num_host_used;
    if (out->host_was_full)
        return false;
    out->freed_blocks = pkv_cache_swap_out(s->cache, &r->seq, num_positions);
    out->num_swapped_blocks = c.num_blocks;
    begin(s, plan, r, true, c.num_blocks);
    pkv_request_set_status(r, PKV_REQUEST_SWAPPED);
    return true;
}

uint32_t swap_lacks(const struct pkv_sched *s, uint64_t num_short)
{
    uint32_t coming = s->swap.is_on ? pkv_cache_num_coming(s->cache) : 0;
    uint64_t rest = coming > s->swap.num_awaited ? coming - s->swap.num_awaited : 0;
    return num_short > rest ? (uint32_t)(num_short - rest) : 0;
}

void swap_await(struct pkv_sched *s, struct pkv_plan *plan, uint32_t num_short)
{
    s->swap.num_awaited += num_short;
    plan->num_stalled++;
}

/* --- in -------------------------------------------------------------------------------------- */

struct pkv_restore swap_find(const struct pkv_sched *s, const struct pkv_request *r,
                             const struct pkv_hit *hit)
{
    if (r->status != PKV_REQUEST_SWAPPED)
        return (struct pkv_restore){0};
    return pkv_cache_find_copies(s->cache, &r->seq, hit);
}

void swap_in(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
             const struct pkv_hit *hit, struct pkv_restore restore)
{
    struct swap *w = &s->swap;
    PKV_ASSERT(w->num_resuming < w->resuming_capacity);
    pkv_cache_swap_in(s->cache, &r->seq, hit, restore);
    begin(s, plan, r, false, restore.num_blocks);
    pkv_request_set_status(r, PKV_REQUEST_RESUMING);
    w->resuming[w->num_resuming++] = r;
}

static void remove_resuming(struct swap *w, const struct pkv_request *r)
{
    size_t i = 0;
    while (i < w->num_resuming && w->resuming[i] != r)
        i++;
    PKV_ASSERT(i < w->num_resuming);
    w->num_resuming--;
    memmove(&w->resuming[i], &w->resuming[i + 1],
            (w->num_resuming - i) * sizeof(struct pkv_request *));
}

/* A shut queue stays shut: it waits for somebody to leave. */
static void arrive(struct pkv_sched *s, struct pkv_request *r)
{
    remove_resuming(&s->swap, r);
    pkv_cache_arrived(s->cache, &r->seq);
    pkv_request_set_status(r, PKV_REQUEST_RUNNING);
    r->steady.admission = s->num_admissions++;
    s->running[s->num_running++] = r;
    if (s->latch.is_shut) {
        s->latch.num_running++;
        s->latch.num_admissions++;
    }
}

void pkv_sched_transfer_done(struct pkv_sched *s)
{
    struct swap *w = &s->swap;
    PKV_ASSERT(s->num_out == 0 && w->num_transfers > 0);
    struct pkv_transfer t = w->transfers[0];
    struct pkv_request *r = pkv_request_get(t.ref);
    w->num_transfers--;
    memmove(w->transfers, w->transfers + 1, w->num_transfers * sizeof(t));
    pkv_cache_transfer_done(s->cache);
    if (!t.is_out && r)
        arrive(s, r);
}

void swap_abort(struct pkv_sched *s, struct pkv_request *r)
{
    struct swap *w = &s->swap;
    size_t i = 0;
    while (i < w->num_transfers && (w->transfers[i].is_out || w->transfers[i].ref.request != r))
        i++;
    PKV_ASSERT(i < w->num_transfers);
    pkv_cache_abandon(s->cache, &r->seq, i);
    w->transfers[i].ref = (struct pkv_request_ref){0};
    remove_resuming(w, r);
}

/* At the end of a run nobody waits for what is under way. */
void swap_finish_all(struct pkv_sched *s)
{
    while (s->swap.num_transfers > 0) {
        s->swap.num_transfers--;
        pkv_cache_transfer_done(s->cache);
    }
}

/* --- reading --------------------------------------------------------------------------------- */

struct pkv_transfer *pkv_sched_transfers(struct pkv_sched *s, size_t *out_num)
{
    *out_num = s->swap.num_transfers;
    return s->swap.transfers;
}

void pkv_sched_set_link_wait(struct pkv_sched *s, int64_t wait_ns)
{
    s->swap.wait_ns = wait_ns;
}

size_t pkv_sched_num_resuming(const struct pkv_sched *s)
{
    return s->swap.num_resuming;
}

struct pkv_request *pkv_sched_resuming(const struct pkv_sched *s, size_t i)
{
    PKV_ASSERT(i < s->swap.num_resuming);
    return s->swap.resuming[i];
}

/* --- recount --------------------------------------------------------------------------------- */

static int check_copies(const struct pkv_request *r, struct pkv_err *err)
{
    bool may_have = r->status == PKV_REQUEST_SWAPPED || r->status == PKV_REQUEST_RESUMING;
    if (may_have == (r->seq.copies.num > 0))
        return 0;
    return pkv_fail(err, PKV_ERR_AUDIT, "S10: row %" PRIu64 " is %s and has %" PRIu32
                    " copies on the host", r->row, pkv_request_status_name(r->status),
                    r->seq.copies.num);
}

static int check_resuming(const struct pkv_sched *s, struct pkv_err *err)
{
    const struct swap *w = &s->swap;
    size_t num = 0;
    for (size_t i = 0; i < w->num_resuming; i++)
        if (w->resuming[i]->status != PKV_REQUEST_RESUMING)
            return pkv_fail(err, PKV_ERR_AUDIT, "S1: row %" PRIu64 " is on its way back and %s",
                            w->resuming[i]->row, pkv_request_status_name(w->resuming[i]->status));
    for (size_t i = 0; i < w->num_transfers; i++) {
        const struct pkv_transfer *t = &w->transfers[i];
        if (t->is_out || !t->ref.request)
            continue;
        if (num == w->num_resuming || pkv_request_get(t->ref) != w->resuming[num])
            return pkv_fail(err, PKV_ERR_AUDIT, "S10: transfer %zu is of row %" PRIu64
                            ", which is not number %zu of those on their way back", i,
                            t->ref.request->row, num);
        num++;
    }
    if (num != w->num_resuming || w->num_transfers != pkv_cache_num_transfers(s->cache))
        return pkv_fail(err, PKV_ERR_AUDIT, "S10: %zu on their way back, %zu transfers of them; %zu "
                        "transfers, the cache has %zu", w->num_resuming, num, w->num_transfers,
                        pkv_cache_num_transfers(s->cache));
    return 0;
}

int swap_check(const struct pkv_sched *s, struct pkv_err *err)
{
    size_t num_waiting = pkv_waiting_num(s->waiting);
    for (size_t i = 0; i < num_waiting; i++)
        if (check_copies(pkv_waiting_any(s->waiting, i), err) < 0)
            return -1;
    for (size_t i = 0; i < s->num_running; i++)
        if (check_copies(s->running[i], err) < 0)
            return -1;
    for (size_t i = 0; i < s->swap.num_resuming; i++)
        if (check_copies(s->swap.resuming[i], err) < 0)
            return -1;
    return check_resuming(s, err);
}
