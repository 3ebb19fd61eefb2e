/*
 * gang.c - samples of one request that share what they have in common (fork: on).
 *
 * They come and go together. In the queue the first of them stands for all; it is admitted with a place
 * in running for each, computes the prompt once, and with the step in which that is whole the others
 * fork from it: they share all its blocks, and each gets a first token. From then on each is a running
 * request like any other, which copies the last block if others hold it when it writes (cache/fork.c).
 * When one is given up, all are; then the prompt is computed once more, they fork again, and each
 * computes its own outputs.
 *
 *   known tokens of one that waits for the fork = its prompt, whatever it has generated
 *
 * Beams wait for one another at each token. Then some give way, drawn by seed, row and length: such a
 * one gives back its blocks and goes on from all that another beam has. What beams generate gets no
 * identity, as it is not one request's own text.
 *
 * After Kwon et al., SOSP 2023, sections 4.4 and 4.5: "sequences of one request are always preempted or
 * rescheduled together".
 */
#include <inttypes.h>

#include "base/mix.h"
#include "sched/sched_private.h"

static bool is_alone(const struct pkv_request *r)
{
    return r->sample.next == r;
}

int gang_check_config(const struct pkv_sched_config *config, struct pkv_err *err)
{
    if (!config->fork)
        return 0;
    if (config->policies.layout->create)
        return pkv_fail(err, PKV_ERR_INPUT, "layout %s gives blocks in one piece and shares none: fork "
                        "must be off", config->policies.layout->info.name);
    if (config->speculation.method != PKV_SPECULATION_NONE || config->async_scheduling)
        return pkv_fail(err, PKV_ERR_INPUT, "samples that fork get one token a step, known when the "
                        "next is planned: no speculation, no async_scheduling");
    if (config->policies.on_preempt->swaps)
        return pkv_fail(err, PKV_ERR_INPUT, "on_preempt %s moves blocks of one request: fork must be off",
                        config->policies.on_preempt->info.name);
    return 0;
}

/* --- coming ---------------------------------------------------------------------------------- */

bool gang_add(struct pkv_sched *s, struct pkv_request *r, const struct pkv_request_spec *spec)
{
    r->sample.index = spec->sample;
    r->sample.num = spec->num_samples > 1 ? spec->num_samples : 1;
    if (!s->config.fork || r->sample.num == 1)
        return false;
    r->sample.is_beam = spec->is_beam_search;
    r->sample.waits_for_fork = true;
    if (spec->sample == 0) {
        s->newest_first = pkv_request_ref(r);
        return false;
    }
    struct pkv_request *first = pkv_request_get(s->newest_first);
    PKV_ASSERT(first && first->sample.num == r->sample.num);
    pkv_sample_join(first, r);
    r->arrival_order = first->arrival_order;
    s->num_followers++;
    return true;
}

/* They go in step when nobody else runs, so the peak is where one of them ends: each holds the blocks of
 * the prompt that are full together with the others, and the rest for itself. */
uint64_t gang_peak_blocks(const struct pkv_sched *s, const struct pkv_request *r,
                          const struct pkv_request_spec *spec)
{
    uint32_t prompt = r->seq.num_prompt_tokens;
    uint64_t shared = pkv_cache_full_blocks(s->cache, prompt);
    uint64_t peak = pkv_sched_blocks_for(s, prompt);
    for (uint32_t i = 0; i < spec->num_samples; i++) {
        uint64_t end = sched_positions_wanted(s, r, pkv_spec_outputs(spec, i)), num = 0;
        for (uint32_t k = 0; end > prompt && k < spec->num_samples; k++)
            num += sched_positions_wanted(s, r, pkv_spec_outputs(spec, k)) >= end;
        uint64_t held = shared + num * (pkv_sched_blocks_for(s, end) - shared);
        peak = held > peak ? held : peak;
    }
    return peak;
}

size_t gang_num_seats(const struct pkv_request *r)
{
    return r->sample.waits_for_fork ? pkv_sample_count(r) : 1;
}

int gang_prepare(struct pkv_sched *s, struct pkv_request *r, struct pkv_err *err)
{
    for (struct pkv_request *other = r->sample.next; other != r; other = other->sample.next)
        if (pkv_cache_prepare(s->cache, &other->seq, sched_table_positions(s, other, 0), err) < 0)
            return -1;
    return 0;
}

void gang_admit(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r)
{
    for (struct pkv_request *other = r->sample.next; other != r; other = other->sample.next) {
        plan->admissions[plan->num_admissions++] = (struct pkv_plan_admission){
            .ref = pkv_request_ref(other),
            .resumed = other->status == PKV_REQUEST_PREEMPTED,
            .free_blocks = pkv_cache_num_free(s->cache),
        };
        pkv_request_set_status(other, PKV_REQUEST_RUNNING);
        other->steady.admission = s->num_admissions++;
        s->running[s->num_running++] = other;
        s->num_followers--;
    }
}

/* --- going ----------------------------------------------------------------------------------- */

struct pkv_request *gang_gather(struct pkv_sched *s, struct pkv_request *r)
{
    struct pkv_request *first = pkv_sample_first(r), *each = first;
    if (is_alone(r))
        return r;
    do {
        each->sample.waits_for_fork = true;
        each->seq.num_known_tokens = each->seq.num_prompt_tokens;
        each = each->sample.next;
    } while (each != first);
    s->num_followers += pkv_sample_count(first) - 1;
    return first;
}

/* The last one left need not wait for a fork. */
static void stand_alone(struct pkv_sched *s, struct pkv_request *r)
{
    r->sample.waits_for_fork = false;
    r->seq.num_known_tokens = r->seq.num_prompt_tokens + r->num_emitted;
    r->looked_up_at = UINT64_MAX;
    if (s->remembered.ref.request == r)
        s->remembered.ref.request = NULL;
}

static bool all_have_their_token(const struct pkv_request *r)
{
    const struct pkv_request *each = r;
    do {
        if (each->sample.waits_for_fork || each->num_emitted != each->sample.num_drawn + 1 ||
            each->seq.num_computed_tokens + 1 != each->seq.num_known_tokens)
            return false;
        each = each->sample.next;
    } while (each != r);
    return true;
}

static void note_drawn(struct pkv_request *r)
{
    struct pkv_request *each = r;
    do {
        each->sample.num_drawn = each->num_emitted;
        each = each->sample.next;
    } while (each != r);
}

struct pkv_request *gang_leave(struct pkv_sched *s, struct pkv_request *r)
{
    if (is_alone(r))
        return NULL;
    struct pkv_request *next = r->sample.next;
    bool was_first = pkv_sample_first(r) == r, waits = r->sample.waits_for_fork;
    bool in_queue = r->status != PKV_REQUEST_RUNNING;
    pkv_sample_leave(r);
    s->num_followers -= in_queue;   /* it, or the one that is none any more */
    if (is_alone(next) && waits)
        stand_alone(s, next);
    if (next->sample.is_beam && all_have_their_token(next))
        note_drawn(next);           /* it was waited for */
    return in_queue && was_first ? next : NULL;
}

/* --- forking --------------------------------------------------------------------------------- */

static void take_over(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *parent,
                      struct pkv_request *child, uint32_t num_freed)
{
    /* Room for it was made when they were admitted. */
    int forked = pkv_cache_fork(s->cache, &parent->seq, &child->seq, NULL);
    PKV_ASSERT(forked == 0);
    uint32_t num_tokens = parent->seq.num_computed_tokens;
    bool is_again = child->num_emitted > 0;
    if (num_tokens > child->num_highest_tokens)
        child->num_highest_tokens = num_tokens;
    sched_note_peak(child);
    plan->forks[plan->num_forks++] = (struct pkv_plan_fork){
        .ref = pkv_request_ref(child),
        .parent = pkv_request_ref(parent),
        .num_shared_blocks = pkv_seq_num_blocks(&child->seq),
        .num_tokens = num_tokens,
        .freed_blocks = num_freed,
        .is_again = is_again,
    };
}

void gang_fork(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *first)
{
    struct pkv_request *each = first;
    do {
        if (each != first)
            take_over(s, plan, first, each, 0);
        each->sample.waits_for_fork = false;
        each->seq.num_known_tokens = each->seq.num_prompt_tokens + each->num_emitted;
        if (each->sample.num_drawn == 0)
            each->sample.num_drawn = 1;   /* nobody gives way at the first token */
        each = each->sample.next;
    } while (each != first);
}

/* --- beams ----------------------------------------------------------------------------------- */

uint32_t gang_num_due(const struct pkv_request *r)
{
    bool is_ahead = r->sample.is_beam && !r->sample.waits_for_fork &&
                    r->num_emitted > r->sample.num_drawn;
    return sched_known_tokens(r) - r->seq.num_computed_tokens - (is_ahead ? 1 : 0);
}

static uint64_t draw(const struct pkv_sched *s, const struct pkv_request *r)
{
    return pkv_scramble(pkv_mix(pkv_mix(pkv_scramble(s->config.seed), r->row), r->num_emitted));
}

static bool gives_way(const struct pkv_sched *s, const struct pkv_request *r)
{
    return draw(s, r) % 1000 < s->config.beam_drop;
}

/* The one of those who stay that r goes on from; the first beam stays if nobody else does. */
static struct pkv_request *pick_parent(const struct pkv_sched *s, struct pkv_request *first,
                                       const struct pkv_request *r)
{
    uint64_t num = 0;
    struct pkv_request *each = first;
    do {
        num += !gives_way(s, each);
        each = each->sample.next;
    } while (each != first);
    if (num == 0)
        return first;
    uint64_t left = draw(s, r) / 1000 % num;
    for (each = first; gives_way(s, each) || left-- > 0; each = each->sample.next)
        ;
    return each;
}

/* Its table's arrays go back and come again, so this needs no memory. */
static void replace(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *parent,
                    struct pkv_request *child)
{
    uint32_t num_freed = pkv_cache_release(s->cache, &child->seq);
    int made = pkv_cache_prepare(s->cache, &child->seq, sched_table_positions(s, child, 0), NULL);
    PKV_ASSERT(made == 0);
    take_over(s, plan, parent, child, num_freed);
}

void gang_draw_beams(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r)
{
    if (!r->sample.is_beam || !all_have_their_token(r))
        return;
    struct pkv_request *first = pkv_sample_first(r), *each = first;
    do {
        struct pkv_request *parent = pick_parent(s, first, each);
        if (gives_way(s, each) && parent != each)
            replace(s, plan, parent, each);
        each = each->sample.next;
    } while (each != first);
    note_drawn(first);
}

bool gang_is_steady(const struct pkv_sched *s, const struct pkv_request *r)
{
    return !r->sample.is_beam && !pkv_cache_writes_shared(s->cache, &r->seq);
}

/* --- recount --------------------------------------------------------------------------------- */

static int check_running(const struct pkv_sched *s, size_t index, struct pkv_err *err)
{
    const struct pkv_request *r = s->running[index], *next = r->sample.next;
    bool follows = pkv_sample_follows(r), is_last = next->sample.index <= r->sample.index;
    if (!is_last && (index + 1 == s->num_running || s->running[index + 1] != next))
        return pkv_fail(err, PKV_ERR_AUDIT, "S11: sample %" PRIu32 " of row %" PRIu64
                        " does not run behind sample %" PRIu32, next->sample.index, next->row,
                        r->sample.index);
    if (follows && (pkv_seq_num_blocks(&r->seq) || r->seq.num_computed_tokens))
        return pkv_fail(err, PKV_ERR_AUDIT, "S11: row %" PRIu64 " waits for its fork with %" PRIu32
                        " blocks and %" PRIu32 " computed positions", r->row,
                        pkv_seq_num_blocks(&r->seq), r->seq.num_computed_tokens);
    return 0;
}

int gang_check(const struct pkv_sched *s, struct pkv_err *err)
{
    size_t num_followers = 0;
    for (size_t i = 0; i < pkv_waiting_num(s->waiting); i++) {
        const struct pkv_request *r = pkv_waiting_any(s->waiting, i);
        if (pkv_sample_follows(r))
            return pkv_fail(err, PKV_ERR_AUDIT, "S11: row %" PRIu64 " is in the queue behind the "
                            "first of its samples", r->row);
        for (const struct pkv_request *f = r->sample.next; f != r; f = f->sample.next) {
            num_followers++;
            if (f->status != r->status || pkv_seq_num_blocks(&f->seq))
                return pkv_fail(err, PKV_ERR_AUDIT, "S11: row %" PRIu64 " is %s with %" PRIu32
                                " blocks, the first of its samples is %s", f->row,
                                pkv_request_status_name(f->status), pkv_seq_num_blocks(&f->seq),
                                pkv_request_status_name(r->status));
        }
    }
    if (num_followers != s->num_followers)
        return pkv_fail(err, PKV_ERR_AUDIT, "S11: %zu samples wait behind their first, %zu counted",
                        num_followers, s->num_followers);
    for (size_t i = 0; i < s->num_running; i++)
        if (check_running(s, i, err) < 0)
            return -1;
    return 0;
}
