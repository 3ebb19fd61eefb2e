/*
 * model_swap.c - blocks that go to the host and come back over one link.
 *
 * Whether a block of a request has a copy on the host is one flag; how many there are is counted each
 * time. A transfer holds the blocks that nobody else does, from the preemption until it is done, or from
 * the moment on that a request is cancelled on its way back.
 */
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

static uint64_t count_copies(const struct model *m)
{
    uint64_t num = 0;

    for (size_t i = 0; i < m->num_arrived; i++)
        for (uint32_t k = 0; k < m->config.num_blocks; k++)
            num += m->requests[i].on_host[k];
    return num;
}

static int64_t link_ns(const struct model *m, uint32_t num_blocks)
{
    uint64_t bytes = m->config.bytes_per_token * m->config.groups[0].block_size;
    uint64_t ns = bytes * 1000000000u / m->config.link_bytes_per_s;

    ns += ns * m->config.link_bytes_per_s < bytes * 1000000000u;
    return (int64_t)num_blocks * ((int64_t)ns + m->config.link_latency_ns);
}

static int64_t link_wait(const struct model *m)
{
    return m->link_free_ns > m->now ? m->link_free_ns - m->now : 0;
}

static struct model_transfer *begin(struct model *m, struct model_request *r, bool is_out,
                                    uint32_t num_blocks)
{
    struct model_transfer *t = model_alloc(1, sizeof *t);
    uint64_t num_copies = count_copies(m);

    t->request = r;
    t->is_out = is_out;
    t->held = model_alloc(m->config.num_blocks, sizeof(struct model_block *));
    t->done_ns = m->link_free_ns = m->now + link_wait(m) + link_ns(m, num_blocks);
    DL_APPEND(m->transfers, t);
    m->totals.link_busy_ns += link_ns(m, num_blocks);
    *(is_out ? &m->row.swapped_out_blocks : &m->row.swapped_in_blocks) += num_blocks;
    *(is_out ? &m->totals.swapped_out_blocks : &m->totals.swapped_in_blocks) += num_blocks;
    if (num_copies > m->totals.peak_host_blocks)
        m->totals.peak_host_blocks = num_copies;
    return t;
}

static int64_t compute_ns(const struct model *m, uint32_t positions)
{
    const struct pkv_step_time *t = &m->config.step_time;
    int64_t prefill = positions > 1 ? positions * t->per_prefill_token_ns : 0;

    if (t->law == PKV_STEP_TIME_FIXED)
        return t->fixed_ns;
    return (prefill > t->base_ns ? prefill : t->base_ns) +
           (positions == 1 ? t->per_decode_ns : 0) + positions * t->per_context_token_ns;
}

/* Positions of a block, of so many in all. */
static uint32_t positions_in(const struct model *m, uint32_t index, uint32_t num_positions)
{
    uint32_t begin = index * m->config.groups[0].block_size, rest = num_positions - begin;

    if (num_positions <= begin)
        return 0;
    return rest < m->config.groups[0].block_size ? rest : m->config.groups[0].block_size;
}

static bool wants_swap(const struct model *m, uint32_t num_blocks, uint32_t num_positions)
{
    if (num_blocks == 0)
        return false;
    return m->config.on_preempt == MODEL_ON_PREEMPT_SWAP ||
           link_wait(m) + 2 * link_ns(m, num_blocks) < compute_ns(m, num_positions);
}

bool model_swap_out(struct model *m, struct model_request *r)
{
    uint32_t num = model_table_length(m, 0, r->num_computed), num_own = 0, num_positions = 0;
    struct model_transfer *t;

    if (m->config.on_preempt == MODEL_ON_PREEMPT_RECOMPUTE)
        return false;   /* only here may a table have gaps */
    for (uint32_t i = 0; i < num; i++)
        if (r->table[0][i]->num_holders == 1) {
            num_own++;
            num_positions += positions_in(m, i, r->num_computed);
        }
    if (!wants_swap(m, num_own, num_positions))
        return false;
    if (count_copies(m) + num_own > m->config.num_host_blocks) {
        m->totals.swap_fallbacks++;
        return false;
    }
    model_give_back(m, r->table[0], num, r->num_table[0]);
    for (uint32_t i = 0; i < num; i++)
        r->on_host[i] = r->table[0][i]->num_holders == 1;
    t = begin(m, r, true, num_own);
    for (uint32_t i = 0; i < num; i++) {
        if (r->on_host[i])
            t->held[i] = r->table[0][i];
        else
            r->table[0][i]->num_holders--;
    }
    t->num_held = num;
    t->num_positions = r->num_copied = r->num_computed;
    r->num_table[0] = 0;
    m->totals.swaps++;
    return true;
}

uint32_t model_find_copies(const struct model *m, const struct model_request *r, uint32_t num_hit,
                           uint32_t *out_positions)
{
    uint32_t num = model_table_length(m, 0, r->num_copied), end = num_hit;

    *out_positions = 0;
    if (r->status != MODEL_SWAPPED)
        return 0;
    while (end < num && r->on_host[end])
        end++;
    if (end > num_hit)
        *out_positions = end < num ? end * m->config.groups[0].block_size : r->num_copied;
    return end - num_hit;
}

void model_swap_in(struct model *m, struct model_request *r, uint32_t num_blocks,
                   uint32_t num_positions)
{
    begin(m, r, false, num_blocks);
    r->num_computed = num_positions;
    r->status = MODEL_RESUMING;
    DL_APPEND(m->resuming, r);
}

void model_forget_copies(const struct model *m, struct model_request *r)
{
    memset(r->on_host, 0, m->config.num_blocks * sizeof *r->on_host);
    r->num_copied = 0;
}

static void arrive(struct model *m, struct model_request *r)
{
    DL_DELETE(m->resuming, r);
    DL_APPEND(m->running, r);
    r->status = MODEL_RUNNING;
    model_forget_copies(m, r);
    if (m->config.publish != MODEL_PUBLISH_FINISH)
        model_publish(m, r, r->num_computed);
}

void model_transfers_due(struct model *m, int64_t now)
{
    struct model_transfer *t;

    while ((t = m->transfers) != NULL && t->done_ns <= now) {
        DL_DELETE(m->transfers, t);
        model_give_back(m, t->held, 0, t->num_held);
        if (!t->is_out && t->request != NULL)
            arrive(m, t->request);
        free(t->held);
        free(t);
    }
}

void model_abort_resuming(struct model *m, struct model_request *r)
{
    struct model_transfer *t = m->transfers;

    while (t->is_out || t->request != r)
        t = t->next;
    t->request = NULL;
    memcpy(t->held, r->table[0], r->num_table[0] * sizeof(struct model_block *));
    t->num_held = r->num_table[0];
    t->num_positions = r->num_computed;
    r->num_table[0] = 0;
    DL_DELETE(m->resuming, r);
}

uint64_t model_count_coming(const struct model *m)
{
    uint64_t num = 0;

    for (const struct model_transfer *t = m->transfers; t != NULL; t = t->next)
        for (uint32_t i = 0; i < t->num_held; i++)
            num += t->held[i] != NULL && t->held[i]->num_holders == 1;
    return num;
}

const struct model_request *model_next_in(const struct model *m, const struct model_request *r)
{
    if (r == NULL)
        return m->running != NULL ? m->running : m->resuming;
    if (r->next == NULL && r->status != MODEL_RESUMING)
        return m->resuming;
    return r->next;
}

size_t model_num_resuming(const struct model *m)
{
    const struct model_request *r;
    size_t num = 0;

    DL_COUNT(m->resuming, r, num);
    return num;
}
