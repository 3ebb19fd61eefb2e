/*
 * model_choose.c - whom to look at first, whom to give up, and how full it will get.
 *
 * A victim is the one whose list of numbers is the largest, compared place by place; the last place
 * is that in the order of running, so the later one loses where nothing else differs (or the earlier
 * one, where the rule says so).
 */
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

/* One multiplication to 128 bits, its halves laid over one another. */
static uint64_t mix(uint64_t hash, uint64_t number)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ UINT64_C(0xa0761d6478bd642f)) *
                                (number ^ UINT64_C(0xe7037ed1a0b428db));

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

uint64_t model_lot(const struct model *m, uint64_t row, uint64_t num)
{
    return scramble(mix(mix(scramble(m->config.seed), row), num));
}

/* Who asks for none is told to have one. */
static int64_t allowed(const struct model_request *r)
{
    return r->max_tokens > 0 ? r->max_tokens : 1;
}

int64_t model_order_key(const struct model *m, const struct model_request *r)
{
    switch (m->config.order) {
    case MODEL_ORDER_FCFS:     return 0;
    case MODEL_ORDER_PRIORITY: return r->priority;
    case MODEL_ORDER_SJF:      return allowed(r);
    case MODEL_ORDER_SJF_TRUE: return r->num_output;
    case MODEL_ORDER_LJF:      return -(int64_t)r->num_prompt - allowed(r);
    case MODEL_ORDER_LOF:      return -allowed(r);
    case MODEL_ORDER_EDF:
        return r->deadline_ns == PKV_NO_TIME ? INT64_MAX - 1 : r->deadline_ns;
    case MODEL_ORDER_RANDOM:
        return (int64_t)(scramble(mix(scramble(m->config.seed), r->row)) / 4);
    case MODEL_ORDER_LPM:
    case MODEL_ORDER_DFS_WEIGHT:
    case MODEL_ORDER_VTC:
        return r->rank;
    }
    abort();
}

bool model_is_guessed(const struct model *m, const struct model_request *r, uint32_t token)
{
    uint64_t lot = mix(mix(mix(scramble(m->config.seed), 0x64726166), r->row), token);

    return (double)(scramble(lot) >> 11) < m->config.acceptance_rate * 9007199254740992.0;
}

/* Positions in its blocks once this step's tokens are there. */
uint32_t model_computed(const struct model *m, const struct model_request *r)
{
    uint32_t num = r->num_computed;

    for (size_t i = 0; i < m->num_entries; i++)
        if (m->entries[i].request == r)
            num += m->entries[i].num_tokens;
    return num;
}

static uint32_t num_own_blocks(const struct model_request *r)
{
    uint32_t num = 0;

    for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
        for (uint32_t i = 0; i < r->num_table[g]; i++)
            num += r->table[g][i] != NULL && r->table[g][i]->num_holders == 1;
    return num;
}

struct rank { int64_t first, second, third; };

static bool is_above(struct rank a, struct rank b)
{
    if (a.first != b.first)
        return a.first > b.first;
    if (a.second != b.second)
        return a.second > b.second;
    return a.third > b.third;
}

static struct rank fit_rank(const struct model *m, const struct model_request *r,
                            const struct model_request *grower, uint32_t num_short)
{
    uint32_t num = num_own_blocks(r);

    if (r == grower)
        return (struct rank){ 0, 0, 0 };
    if (num < num_short)
        return (struct rank){ 1, num, 0 };
    return (struct rank){ 2, -(int64_t)model_computed(m, r), 0 };
}

/* place: from 0 in the order of running */
static struct rank rank_of(const struct model *m, const struct model_request *r, int64_t place,
                           const struct model_request *grower, uint32_t num_short)
{
    struct rank rank = { 0, 0, place };
    uint64_t number;

    switch (m->config.preempt) {
    case MODEL_PREEMPT_NEWEST:
        break;
    case MODEL_PREEMPT_OLDEST:
        rank.third = -place;
        break;
    case MODEL_PREEMPT_PRIORITY:
        rank = (struct rank){ r->priority, r->place, 0 };
        break;
    case MODEL_PREEMPT_FEWEST_OUTPUTS:
        rank = (struct rank){ -(int64_t)r->num_emitted, r->num_prompt, place };
        break;
    case MODEL_PREEMPT_LEAST_LOST:
        rank = (struct rank){ -(int64_t)model_computed(m, r), 0, -place };
        break;
    case MODEL_PREEMPT_MOST_BLOCKS:
        rank.first = model_num_held(r);
        break;
    case MODEL_PREEMPT_LARGEST_REMAINING:
        rank.first = allowed(r) - (int64_t)r->num_emitted;
        break;
    case MODEL_PREEMPT_LEAST_PREEMPTED:
        rank.first = -(int64_t)r->num_preemptions;
        break;
    case MODEL_PREEMPT_FIT:
        rank = fit_rank(m, r, grower, num_short);
        rank.third = place;
        break;
    case MODEL_PREEMPT_RANDOM:
        number = model_lot(m, r->row, r->num_emitted);
        rank = (struct rank){ (int64_t)(number / 2), (int64_t)(number % 2), -place };
        break;
    case MODEL_PREEMPT_NEVER:
        abort();
    }
    return rank;
}

struct model_request *model_pick_victim(const struct model *m, const struct model_request *grower,
                                        uint32_t num_short)
{
    struct model_request *victim = m->running;
    struct rank worst = { 0, 0, 0 };
    int64_t place = 0;

    if (m->config.preempt == MODEL_PREEMPT_NEVER)
        return NULL;
    for (struct model_request *r = m->running; r != NULL; r = r->next) {
        struct rank rank = rank_of(m, r, place++, grower, num_short);

        if (r == m->running || is_above(rank, worst)) {
            victim = r;
            worst = rank;
        }
    }
    return victim;
}

/* --- the future ------------------------------------------------------------------------------ */

/* Tokens it will still say, at least one; max_model_len ends it as well. */
static uint64_t num_to_come(const struct model *m, const struct model_request *r)
{
    uint64_t end = (uint64_t)r->num_prompt + r->num_output;

    if (end > m->config.max_model_len)
        end = m->config.max_model_len;
    return end > r->num_known ? end - r->num_known : 1;
}

/* Of its samples; the first of equals. */
static bool lasts_longest(const struct model *m, const struct model_request *r)
{
    for (uint32_t i = 0; i < r->num_samples; i++) {
        const struct model_request *other = model_sample(r, i);

        if (other != NULL && (num_to_come(m, other) > num_to_come(m, r) ||
                              (num_to_come(m, other) == num_to_come(m, r) && other < r)))
            return false;
    }
    return true;
}

/* Blocks when so many steps have gone by; nothing for one that ended before. */
static uint64_t blocks_after(const struct model *m, const struct model_request *r, uint64_t steps)
{
    bool counts_last = m->config.admit == MODEL_ADMIT_FUTURE_PEAK;
    uint64_t positions = r->num_known + steps - (counts_last ? 0 : 1);

    if (steps > num_to_come(m, r))
        return 0;
    if (m->config.num_groups == 1 && m->config.groups[0].kind == MODEL_GROUP_FULL &&
        !lasts_longest(m, r))   /* the prompt's full blocks are reckoned with another sample's */
        positions -= r->num_prompt - r->num_prompt % m->config.groups[0].block_size;
    return model_most_blocks_of_all(m, positions, 1);
}

/* Step by step until everybody has ended. */
uint64_t model_future_peak(const struct model *m, const struct model_request *more)
{
    uint64_t peak = 0, sum = 1;

    for (uint64_t steps = 1; sum > 0; steps++) {
        sum = 0;
        for (uint32_t i = 0; i < more->num_samples; i++) {
            const struct model_request *r = model_sample(more, i);

            if (r == more || (r != NULL && more->waits_for_fork))
                sum += blocks_after(m, r, steps);
        }
        for (const struct model_request *r = NULL; (r = model_next_in(m, r)) != NULL;)
            sum += blocks_after(m, r, steps);
        peak = sum > peak ? sum : peak;
    }
    return peak;
}
