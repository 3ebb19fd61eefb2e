/*
 * waste.c - what traffic would hold if every request ran as soon as it came.
 *
 * As every token takes the same time, whoever has just got one is the last to get the next: those who
 * run stand in a ring in the order of their next tokens, and a token moves the first one to the end.
 * Memory follows the number that run at once, time the number of tokens. What does not depend on the
 * token time is summed up in closed form, a request at a time.
 *
 *   the ring is sorted by next_ns; all of them lie within one token time
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "pagedkv/report.h"

struct runner {
    int64_t next_ns;            /* its next token comes out */
    uint32_t num_output, num_done;
    uint64_t num_stored;        /* positions */
    uint64_t reserved[PKV_WASTE_LAYOUT_COUNT];   /* positions; paged: unused */
};

struct sweep {
    struct pkv_waste_sweep *out;    /* borrowed */
    struct runner *ring;            /* [capacity], owned; num of them from `first` on */
    size_t first, num, capacity;    /* capacity is a power of two */
    uint32_t block_size;
    uint64_t num_tokens, num_blocks;
    uint64_t held[PKV_WASTE_LAYOUT_COUNT];
};

/* --- the ring -------------------------------------------------------------------------------- */

static struct runner *at(const struct sweep *s, size_t i)
{
    return &s->ring[(s->first + i) & (s->capacity - 1)];
}

static int make_room(struct sweep *s, struct pkv_err *err)
{
    if (s->num < s->capacity)
        return 0;
    size_t capacity = s->capacity > 0 ? 2 * s->capacity : 64;
    struct runner *ring = pkv_alloc(capacity, sizeof(*ring), err);
    if (!ring)
        return -1;
    for (size_t i = 0; i < s->num; i++)
        ring[i] = *at(s, i);
    pkv_free(s->ring);
    s->ring = ring;
    s->first = 0;
    s->capacity = capacity;
    return 0;
}

/* --- coming and going ------------------------------------------------------------------------ */

static uint64_t blocks_for(const struct sweep *s, uint64_t num_positions)
{
    return (num_positions + s->block_size - 1) / s->block_size;
}

static void raise_to(struct pkv_peak *peak, uint64_t value, int64_t now_ns)
{
    if (value > peak->value)
        *peak = (struct pkv_peak){value, now_ns};
}

static void note_peaks(struct sweep *s, int64_t now_ns)
{
    s->held[PKV_WASTE_PAGED] = s->num_blocks * s->block_size;
    raise_to(&s->out->running, s->num, now_ns);
    raise_to(&s->out->tokens, s->num_tokens, now_ns);
    raise_to(&s->out->blocks, s->num_blocks, now_ns);
    for (int i = 0; i < PKV_WASTE_LAYOUT_COUNT; i++)
        raise_to(&s->out->held[i], s->held[i], now_ns);
}

static bool is_last(const struct runner *r)
{
    return r->num_done + 1 == r->num_output;
}

static void depart(struct sweep *s, const struct runner *r)
{
    s->num_tokens -= r->num_stored;
    s->num_blocks -= blocks_for(s, r->num_stored);
    for (int i = PKV_WASTE_ORACLE; i < PKV_WASTE_LAYOUT_COUNT; i++)
        s->held[i] -= r->reserved[i];
}

/* The first in the ring has its token, and is gone, or behind all others. */
static void step_first(struct sweep *s)
{
    struct runner r = *at(s, 0);
    s->first++;
    s->num--;
    if (is_last(&r))
        return;
    s->num_blocks += r.num_stored % s->block_size == 0;
    s->num_tokens++;
    r.num_stored++;
    r.num_done++;
    r.next_ns += s->out->token_ns;
    *at(s, s->num++) = r;
}

/* All tokens that come out at one moment: departures first. */
static void step_moment(struct sweep *s)
{
    int64_t now_ns = at(s, 0)->next_ns;
    size_t num = 0;
    for (; num < s->num && at(s, num)->next_ns == now_ns; num++)
        if (is_last(at(s, num)))
            depart(s, at(s, num));
    for (size_t i = 0; i < num; i++)
        step_first(s);
    note_peaks(s, now_ns);
}

/* Up to and including `until_ns`. */
static void advance(struct sweep *s, int64_t until_ns)
{
    while (s->num > 0 && at(s, 0)->next_ns <= until_ns)
        step_moment(s);
}

static int arrive(struct sweep *s, struct runner r, uint64_t row, int64_t now_ns,
                  struct pkv_err *err)
{
    int64_t token_ns = s->out->token_ns, end_ns;
    if (__builtin_mul_overflow(token_ns, (int64_t)r.num_output, &end_ns) ||
        __builtin_add_overflow(end_ns, now_ns, &end_ns))
        return pkv_fail(err, PKV_ERR_INPUT, "row %" PRIu64 ": %" PRIu32 " tokens of %" PRId64
                        " ns each end beyond the range of virtual time", row, r.num_output, token_ns);
    advance(s, now_ns);
    if (make_room(s, err) < 0)
        return -1;
    r.next_ns = now_ns + token_ns;
    *at(s, s->num++) = r;
    s->num_tokens += r.num_stored;
    s->num_blocks += blocks_for(s, r.num_stored);
    for (int i = PKV_WASTE_ORACLE; i < PKV_WASTE_LAYOUT_COUNT; i++)
        s->held[i] += r.reserved[i];
    if (end_ns > s->out->end_ns)
        s->out->end_ns = end_ns;
    note_peaks(s, now_ns);
    return 0;
}

/* --- the sums -------------------------------------------------------------------------------- */

/* Blocks of 1, of 2, ... of num_positions positions, added up. */
static pkv_i128 sum_of_blocks(uint64_t num_positions, uint32_t block_size)
{
    pkv_i128 full = num_positions / block_size, rest = num_positions % block_size;
    return full * (full + 1) / 2 * block_size + rest * (full + 1);
}

static uint64_t next_power_of_two(uint32_t n)
{
    uint64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static void add_request(struct pkv_waste *w, struct runner *r)
{
    uint64_t prompt = r->num_stored, output = r->num_output, most = prompt + output - 1;
    uint32_t block_size = w->config.block_size, fixed = w->config.fixed_max;
    r->reserved[PKV_WASTE_ORACLE] = most;
    r->reserved[PKV_WASTE_POW2] = prompt + next_power_of_two(r->num_output);
    if (fixed > 0)
        r->reserved[PKV_WASTE_FIXED] = most > fixed ? most : fixed;
    w->num_longer += fixed > 0 && most > fixed;
    w->num_tokens += output;
    w->stored += (pkv_i128)output * prompt + (pkv_i128)output * (output - 1) / 2;
    w->held[PKV_WASTE_PAGED] += block_size * (sum_of_blocks(most, block_size) -
                                              sum_of_blocks(prompt - 1, block_size));
    for (int i = PKV_WASTE_ORACLE; i < PKV_WASTE_LAYOUT_COUNT; i++)
        w->held[i] += (pkv_i128)output * r->reserved[i];
}

/* One answer, by itself: its prompt is stored for it alone. */
static int add_answer(struct pkv_waste *w, struct sweep *sweeps, const struct pkv_request_spec *spec,
                      uint32_t output, struct pkv_err *err)
{
    struct runner r = {.num_stored = spec->num_prompt_tokens, .num_output = output > 0 ? output : 1};
    add_request(w, &r);
    w->num_answers++;
    for (size_t i = 0; i < w->config.num_token_times; i++)
        if (arrive(&sweeps[i], r, spec->row, spec->arrival_ns, err) < 0)
            return -1;
    return 0;
}

static int add_row(struct pkv_waste *w, struct sweep *sweeps, const struct pkv_request_spec *spec,
                   struct pkv_err *err)
{
    uint32_t num = spec->num_samples > 1 ? spec->num_samples : 1;
    w->num_rows++;
    w->last_arrival_ns = spec->arrival_ns;
    for (uint32_t i = 0; i < num; i++)
        if (add_answer(w, sweeps, spec, pkv_spec_outputs(spec, i), err) < 0)
            return -1;
    return 0;
}

int pkv_waste_measure(const struct pkv_source *source, const struct pkv_waste_config *config,
                      struct pkv_waste *out, struct pkv_err *err)
{
    struct sweep sweeps[PKV_MAX_TOKEN_TIMES] = {0};
    struct pkv_request_spec spec;
    int more;
    memset(out, 0, sizeof(*out));
    out->config = *config;
    PKV_ASSERT(config->num_token_times <= PKV_MAX_TOKEN_TIMES && config->block_size > 0);
    for (size_t i = 0; i < config->num_token_times; i++) {
        PKV_ASSERT(config->token_ns[i] > 0);
        out->sweeps[i].token_ns = config->token_ns[i];
        sweeps[i].out = &out->sweeps[i];
        sweeps[i].block_size = config->block_size;
    }
    while ((more = source->next(source->ctx, &spec, err)) > 0)
        if (add_row(out, sweeps, &spec, err) < 0) {
            more = -1;
            break;
        }
    for (size_t i = 0; i < config->num_token_times; i++) {
        if (more == 0)
            advance(&sweeps[i], INT64_MAX);
        pkv_free(sweeps[i].ring);
    }
    return more;
}
