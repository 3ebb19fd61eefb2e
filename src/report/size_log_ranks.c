/*
 * size_log_ranks.c - the memories that ranks printed, and how many blocks they hold.
 *
 * Stages of a pipeline that have different layers have blocks of different bytes, so it is the rank
 * with the fewest blocks that rules, not the one with the least memory. A log that does not say which
 * memory is whose leaves a wider range, from the worst to the best way of dealing them out.
 */
#include "report/size_log_private.h"

#include <stdlib.h>

static uint64_t cut(unsigned __int128 n)
{
    return n < UINT64_MAX ? (uint64_t)n : UINT64_MAX;
}

/* A figure is rounded to its last decimal, so it stands for half a unit less to half a unit more. */
static void set_bytes(struct log_rank *r)
{
    const struct pkv_log_memory *m = r->memory;
    unsigned __int128 unit = 2;
    for (uint32_t i = 0; i < m->places; i++)
        unit *= 10;
    if (m->printed > 0)
        r->low_bytes = cut(((unsigned __int128)(2 * m->printed - m->num_terms) << 30) / unit);
    r->high_bytes = cut(((unsigned __int128)(2 * m->printed + m->num_terms) << 30) / unit);
}

static void set_place(const struct log_view *v, struct log_rank *r)
{
    const struct pkv_log_memory *m = r->memory;
    uint32_t tp = v->plan.config.tp, stages = v->plan.num_stages;
    int64_t stage = stages == 1 ? 0 : m->stage, rank = m->tp_rank;
    if (m->rank >= 0 && m->stage < 0 && m->tp_rank < 0) {
        stage = (uint32_t)m->rank / tp;
        rank = (uint32_t)m->rank % tp;
    }
    r->stage = stage >= 0 && stage < stages ? (int32_t)stage : -1;
    r->tp_rank = rank >= 0 && rank < tp ? (int32_t)rank : -1;
}

static bool are_stages_alike(const struct log_view *v)
{
    for (uint32_t i = 1; i < v->plan.num_stages; i++)
        if (v->plan.stages[i].block_bytes != v->plan.stages[0].block_bytes)
            return false;
    return true;
}

static void count(struct log_view *v, struct log_rank *r)
{
    r->block_bytes = r->stage >= 0 ? v->plan.stages[r->stage].block_bytes
                     : are_stages_alike(v) ? v->block_bytes : 0;
    if (r->block_bytes == 0)
        return;
    r->low = r->low_bytes / r->block_bytes;
    r->high = r->high_bytes / r->block_bytes;
}

static void fill_ranks(struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    for (uint32_t i = 0; log->memory_bytes > 0 && i < v->plan.num_stages; i++)
        v->ranks[v->num_ranks++] = (struct log_rank){
            .stage = (int32_t)i, .tp_rank = -1, .low_bytes = log->memory_bytes,
            .high_bytes = log->memory_bytes};
    for (uint32_t i = 0; log->memory_bytes == 0 && i < log->num_memories; i++) {
        struct log_rank *r = &v->ranks[v->num_ranks++];
        r->memory = &log->memories[i];
        set_bytes(r);
        set_place(v, r);
    }
    for (uint32_t i = 0; i < v->num_ranks; i++)
        count(v, &v->ranks[i]);
}

static void narrow(struct log_view *v, uint64_t low, uint64_t high)
{
    v->low = !v->has_range || low < v->low ? low : v->low;
    v->high = !v->has_range || high < v->high ? high : v->high;
    v->has_range = true;
}

static int is_more(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The largest memory to the stage with the largest blocks, and so on: no other way holds more. */
static uint64_t best_deal(const struct log_view *v, uint64_t *memories, uint32_t num)
{
    uint32_t stages = v->plan.num_stages, each = num / stages;
    uint64_t blocks[PKV_KV_MAX_STAGES], fewest = UINT64_MAX;
    for (uint32_t i = 0; i < stages; i++)
        blocks[i] = v->plan.stages[i].block_bytes;
    qsort(blocks, stages, sizeof *blocks, is_more);
    qsort(memories, num, sizeof *memories, is_more);
    for (uint32_t i = 0; i < num; i++)
        if (blocks[i / each] > 0 && memories[i] / blocks[i / each] < fewest)
            fewest = memories[i] / blocks[i / each];
    return fewest;
}

/* Ranks of which the stage is not said while it matters. Where some of them are missing, they have as
 * much as the least of those that are there. */
static void deal_out(struct log_view *v)
{
    uint64_t memories[PKV_LOG_MAX_MEMORIES], least_low = UINT64_MAX, least_high = UINT64_MAX, best;
    uint32_t num = 0, stages = v->plan.num_stages;
    for (uint32_t i = 0; i < v->num_ranks; i++) {
        const struct log_rank *r = &v->ranks[i];
        if (r->stage >= 0 || r->block_bytes > 0)
            continue;
        least_low = r->low_bytes < least_low ? r->low_bytes : least_low;
        least_high = r->high_bytes < least_high ? r->high_bytes : least_high;
        memories[num++] = r->high_bytes;
    }
    if (num == 0)
        return;
    best = num == stages || num == (uint64_t)stages * v->plan.config.tp
               ? best_deal(v, memories, num) : least_high / v->block_bytes;
    narrow(v, least_low / v->block_bytes, best);
}

void log_find_range(struct log_view *v)
{
    v->limiting_rank = -1;
    if (v->block_bytes == 0)
        return;
    fill_ranks(v);
    for (uint32_t i = 0; i < v->num_ranks; i++) {
        const struct log_rank *r = &v->ranks[i];
        if (r->block_bytes == 0)
            continue;
        if (v->limiting_rank < 0 || r->low < v->ranks[v->limiting_rank].low)
            v->limiting_rank = (int32_t)i;
        narrow(v, r->low, r->high);
    }
    deal_out(v);
}

static bool has_printed(const struct log_view *v, uint32_t stage)
{
    for (uint32_t i = 0; i < v->num_ranks; i++)
        if (v->ranks[i].stage == (int32_t)stage)
            return true;
    return false;
}

/* Not all ranks printed their memory, and those that did have different ones, or a stage with larger
 * blocks is not among them; or the user says so. */
bool log_may_be_less(const struct log_view *v)
{
    uint64_t num = (uint64_t)v->plan.config.tp * v->plan.num_stages;
    bool may = v->log->ranks_differ;
    if (v->log->memory_bytes > 0 || v->num_ranks >= num)
        return may;
    for (uint32_t i = 1; i < v->num_ranks; i++)
        may |= v->ranks[i].low_bytes != v->ranks[0].low_bytes;
    for (uint32_t i = 0; v->limiting_rank >= 0 && i < v->plan.num_stages; i++)
        may |= !has_printed(v, i) &&
               v->plan.stages[i].block_bytes > v->ranks[v->limiting_rank].block_bytes;
    return may;
}

bool log_stranded(const struct log_rank *r, uint64_t num_blocks, uint64_t *out_low,
                  uint64_t *out_high)
{
    uint64_t used;
    if (__builtin_mul_overflow(num_blocks, r->block_bytes, &used) || used > r->high_bytes)
        return false;
    *out_low = r->low_bytes > used ? r->low_bytes - used : 0;
    *out_high = r->high_bytes - used;
    return true;
}
