/*
 * fingerprint.c - the state of a scheduler as one number, and how often each was given up.
 *
 * Who runs and who waits, in which order, how often each was overtaken where somebody asks, and what
 * the blocks hold are in the number. So is what order, admission and mix have learnt, and what the
 * latter two will be told of the steps that are out; what a preempt policy has learnt is not.
 *
 * Counts of preemptions only rise, and are only compared, so their differences decide. One that is
 * given up again and again gets ever further ahead of others, or comes up to them: then who is given up
 * may change one day. So counts are kept beside the number, and judged two states at a time.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "sched/sched_private.h"

static int by_count(const void *a, const void *b)
{
    const struct pkv_standing *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void sort(struct pkv_standing *all, size_t num)
{
    if (num > 1)
        qsort(all, num, sizeof(*all), by_count);
}

/* Those who wait, who run, and who are on their way back. */
static size_t num_live(const struct pkv_sched *s, size_t num_waiting)
{
    return num_waiting + s->num_running + s->swap.num_resuming;
}

static const struct pkv_request *live_one(const struct pkv_sched *s,
                                          struct pkv_request *const *waiting, size_t num_waiting,
                                          size_t i)
{
    if (i < num_waiting)
        return waiting[i];
    i -= num_waiting;
    return i < s->num_running ? s->running[i] : s->swap.resuming[i - s->num_running];
}

/* --- preemptions ----------------------------------------------------------------------------- */

static int note_preemptions(const struct pkv_sched *s, struct pkv_request *const *waiting, size_t num,
                            struct pkv_fingerprint *out, struct pkv_err *err)
{
    out->num_standings = 0;
    if (!s->config.policies.preempt->counts_preemptions)
        return 0;
    if (pkv_grow(&out->standings, &out->capacity, num_live(s, num), sizeof(*out->standings), err) < 0)
        return -1;
    for (size_t i = 0; i < num_live(s, num); i++) {
        const struct pkv_request *r = live_one(s, waiting, num, i);
        out->standings[i] = (struct pkv_standing){r->num_preemptions, r->row};
    }
    out->num_standings = num_live(s, num);
    sort(out->standings, out->num_standings);
    return 0;
}

/* Will all comparisons made between the two states come out the same in all that follows? From the
 * one to the other each is given up so many times, and so again each time. Of two with the same
 * distance both times, all is the same. Of two that go apart, the lower one must not even have come up
 * to where the higher one began: then it never will. Neighbours stand for all: who is further below
 * comes no higher. */
static bool compare_alike(const struct pkv_fingerprint *before, const struct pkv_fingerprint *now)
{
    const struct pkv_standing *from = before->standings, *to = now->standings;
    if (before->num_standings != now->num_standings)
        return false;
    for (size_t i = 0; i < now->num_standings; i++)
        if (from[i].row != to[i].row)
            return false;
    for (size_t i = 0; i + 1 < now->num_standings; i++) {
        uint64_t gap_before = from[i + 1].count - from[i].count;
        uint64_t gap = to[i + 1].count - to[i].count;
        if (gap != gap_before && (gap < gap_before || to[i].count >= from[i + 1].count))
            return false;
    }
    return true;
}

bool pkv_fingerprint_is_again(const struct pkv_fingerprint *before, const struct pkv_fingerprint *now)
{
    return before->number == now->number && compare_alike(before, now);
}

void pkv_fingerprint_free(struct pkv_fingerprint *fingerprint)
{
    pkv_free(fingerprint->standings);
    *fingerprint = (struct pkv_fingerprint){0};
}

/* --- passes missed --------------------------------------------------------------------------- */

/* How far each is above the next one below, the lowest above `from`. Across a gap of `far` it is
 * decided how two compare, so that within what lies between such gaps all differences are told. A gap
 * only grows, until one of the two comes into the queue anew. */
static uint64_t mix_gaps(uint64_t hash, struct pkv_standing *all, size_t num, uint64_t from,
                         uint64_t far)
{
    sort(all, num);
    for (size_t i = 0; i < num; i++) {
        uint64_t gap = all[i].count - from;
        hash = pkv_mix(pkv_mix(hash, all[i].row), gap < far ? gap : far);
        from = all[i].count;
    }
    return hash;
}

static uint64_t mix_missed(const struct pkv_sched *s, uint64_t hash,
                           struct pkv_request *const *waiting, size_t num,
                           struct pkv_standing *scratch)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    uint32_t most_tokens = 0;
    if (!order->far_behind)
        return hash;
    for (size_t i = 0; i < num_live(s, num); i++) {
        const struct pkv_request *r = live_one(s, waiting, num, i);
        if (i < num)
            scratch[i] = (struct pkv_standing){s->view.num_passes - r->waits_since_pass, r->row};
        if (r->seq.num_known_tokens > most_tokens)
            most_tokens = r->seq.num_known_tokens;
    }
    uint64_t far = order->far_behind(s->config.policies.params[PKV_CHOICE_ORDER], most_tokens);
    return far > 0 ? mix_gaps(hash, scratch, num, 0, far) : hash;
}

/* --- all of it ------------------------------------------------------------------------------- */

static uint64_t mix_request(const struct pkv_sched *s, uint64_t hash, const struct pkv_request *r)
{
    bool overtakes = sched_counts_overtakes(s);   /* else a count decides nothing */
    hash = pkv_mix(pkv_mix(hash, r->row), r->status);
    hash = pkv_mix(hash, overtakes ? r->num_overtakes : 0);
    hash = pkv_mix(hash, (uint64_t)r->num_drafts << 32 | r->num_in_flight);
    if (r->sample.num > 1)
        hash = pkv_mix(pkv_mix(hash, r->sample.waits_for_fork), pkv_sample_count(r));
    return pkv_mix(hash, r->seq.num_flying_tokens);
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t num)
{
    for (size_t i = 0; i < num; i++)
        hash = pkv_mix(hash, ((const unsigned char *)bytes)[i]);
    return hash;
}

static uint64_t mix_learnt(const struct pkv_sched *s, uint64_t hash)
{
    const struct pkv_policies *p = &s->config.policies;
    if (!p->admit->observe && !p->mix->observe)
        return hash;
    hash = mix_bytes(hash, s->admit_state, p->admit->state_size);
    hash = mix_bytes(hash, s->mix_state, p->mix->state_size);
    for (uint64_t number = s->num_plans - s->num_out; number < s->num_plans; number++) {
        const struct plan_slot *slot = &s->slots[number & 1];
        hash = pkv_mix(pkv_mix(hash, slot->lesson.parts), slot->plan.num_admissions);
        hash = pkv_mix(pkv_mix(hash, slot->plan.num_prefill_tokens), slot->plan.num_decodes);
    }
    return hash;
}

int pkv_sched_fingerprint(struct pkv_sched *s, struct pkv_fingerprint *out, struct pkv_err *err)
{
    size_t num = pkv_waiting_num(s->waiting);
    struct pkv_request **waiting = pkv_alloc(num, sizeof(struct pkv_request *), err);
    const struct pkv_seq **seqs = pkv_alloc(num_live(s, num), sizeof(struct pkv_seq *), err);
    struct pkv_standing *scratch = pkv_alloc(num, sizeof(*scratch), err);
    uint64_t hash;
    int result = -1;
    if (!waiting || !seqs || !scratch)
        goto out;
    steady_refresh(s);
    sched_update_view(s);
    pkv_waiting_list(s->waiting, waiting);
    size_t num_seqs = sched_list_held(s, seqs);
    for (size_t i = 0; i < num; i++)   /* whose copies count */
        if (waiting[i]->status == PKV_REQUEST_SWAPPED)
            seqs[num_seqs++] = &waiting[i]->seq;
    if (pkv_cache_fingerprint(s->cache, seqs, num_seqs, &hash, err) < 0 ||
        note_preemptions(s, waiting, num, out, err) < 0)
        goto out;
    for (size_t i = 0; i < s->num_running; i++)
        hash = mix_request(s, hash, s->running[i]);
    for (size_t i = 0; i < num; i++)
        hash = pkv_mix(mix_request(s, hash, waiting[i]), pkv_waiting_has_place(waiting[i]));
    hash = mix_missed(s, hash, waiting, num, scratch);
    if (s->config.policies.order->fingerprint)
        hash = pkv_mix(hash, s->config.policies.order->fingerprint(s->order_state, &s->view));
    for (size_t i = 0; i < s->swap.num_resuming; i++)
        hash = mix_request(s, hash, s->swap.resuming[i]);
    for (size_t i = 0; i < s->swap.num_transfers; i++)
        hash = pkv_mix(pkv_mix(hash, s->swap.transfers[i].is_out), s->swap.transfers[i].num_blocks);
    hash = pkv_mix(hash, s->swap.was_awaited);
    out->number = mix_learnt(s, pkv_mix(hash, s->latch.is_shut));
    result = 0;
out:
    pkv_free(waiting);
    pkv_free(seqs);
    pkv_free(scratch);
    return result;
}
