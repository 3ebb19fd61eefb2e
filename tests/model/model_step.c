/*
 * model_step.c - one step, as the scheduler's source reads: walk the running, give up a victim when
 * blocks run short, admit only if nobody was given up. The tokens come out in model_commit.c.
 */
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

/* Does w, who waits already, stay before r? Those put at the front stay before everybody, those put
 * at the tail past an order of priorities behind everybody. */
static bool stays_before(const struct model *m, const struct model_request *w,
                         const struct model_request *r)
{
    if (w->fronted || r->tailed)
        return true;
    if (w->tailed)
        return false;
    if (model_order_key(m, w) != model_order_key(m, r))
        return model_order_key(m, w) < model_order_key(m, r);
    return m->config.requeue != MODEL_REQUEUE_BY_ORDER || w->place < r->place;
}

/* Behind those that stay before it: behind all its equals, or by arrival under requeue: by_order. */
void model_join(struct model *m, struct model_request *r)
{
    struct model_request *w = m->waiting;

    while (w != NULL && stays_before(m, w, r))
        w = w->next;
    if (w == NULL)
        DL_APPEND(m->waiting, r);
    else
        DL_PREPEND_ELEM(m->waiting, w, r);
}

void model_put_front(struct model *m, struct model_request *r)
{
    r->fronted = true;
    DL_PREPEND(m->waiting, r);
}

static void wait_again(struct model *m, struct model_request *r)
{
    model_comes(m, r);
    r->tailed = m->config.requeue == MODEL_REQUEUE_TAIL && m->config.order != MODEL_ORDER_FCFS;
    if (m->config.requeue == MODEL_REQUEUE_FRONT)
        model_put_front(m, r);
    else
        model_join(m, r);
}

/* Take a request out of this step. Its tokens go back to the budget.
 *   returns  true when it was in */
static bool cancel_entry(struct model *m, const struct model_request *r, uint32_t *budget)
{
    size_t i = 0;

    while (i < m->num_entries && m->entries[i].request != r)
        i++;
    if (i == m->num_entries)
        return false;
    *budget += m->entries[i].num_tokens;
    memmove(&m->entries[i], &m->entries[i + 1],
            (m->num_entries - i - 1) * sizeof *m->entries);
    m->num_entries--;
    return true;
}

static void give_up(struct model *m, struct model_request *r)
{
    if (m->config.drop_cancelled)
        model_unpublish(m, r, r->num_computed);
    r->status = model_swap_out(m, r) ? MODEL_SWAPPED : MODEL_PREEMPTED;
    model_release(m, r);
    DL_DELETE(m->running, r);
    m->num_left++;
    r->num_computed = r->num_drafts = 0;
    r->is_decoding = false;
    r->num_preemptions++;
    r->was_preempted = true;
    m->preempted[m->num_preempted++] = r;
}

/* With all its samples, the last one first. */
static void preempt(struct model *m, struct model_request *r)
{
    for (uint32_t i = r->num_samples; i-- > 0; )
        if (model_sample(r, i) != NULL)
            give_up(m, &r->samples[i]);
    model_gather(r);
    wait_again(m, model_first(r));
}

uint32_t model_num_flying(const struct model *m, const struct model_request *r)
{
    for (size_t i = 0; m->flying.exists && i < m->flying.num_entries; i++)
        if (m->flying.entries[i].request == r)
            return m->flying.entries[i].num_tokens;
    return 0;
}

/* Is it in the batch that still has to bring its tokens, and will bring one? */
static bool is_flying(const struct model *m, const struct model_request *r)
{
    for (size_t i = 0; m->flying.exists && i < m->flying.num_entries; i++)
        if (m->flying.entries[i].request == r)
            return m->flying.entries[i].samples;
    return false;
}

/* A token that is still to come counts, though nobody knows what it says. */
uint32_t model_num_expected(const struct model *m, const struct model_request *r)
{
    return r->num_known + (is_flying(m, r) ? 1 : 0);
}

static bool will_have_all(const struct model *m, const struct model_request *r)
{
    uint32_t allowed = r->max_tokens > 0 ? r->max_tokens : 1;

    return is_flying(m, r) && (r->num_emitted + UINT64_C(1) >= allowed ||
                               r->num_known + UINT64_C(1) >= m->config.max_model_len);
}

static uint32_t tokens_wanted(const struct model *m, const struct model_request *r,
                              uint32_t budget)
{
    uint32_t num = model_num_due(m, r), drafts = r->num_drafts;

    if (will_have_all(m, r))
        return 0;
    while (drafts > 0 && (uint64_t)r->num_computed + num + drafts > m->config.max_model_len - 1)
        drafts--;
    num += drafts;
    if (num > m->config.long_prefill_token_threshold)
        num = m->config.long_prefill_token_threshold;
    return num < budget ? num : budget;
}

uint32_t model_positions_ahead(const struct model *m, uint32_t num_positions)
{
    uint64_t wanted = (uint64_t)num_positions + m->config.lookahead;

    if (wanted > m->config.max_model_len)
        wanted = m->config.max_model_len;
    return wanted > num_positions ? (uint32_t)wanted : num_positions;
}

void model_add_entry(struct model *m, struct model_entry entry)
{
    uint32_t end = entry.first + entry.num_tokens;
    uint32_t expected = model_num_expected(m, entry.request);

    /* Computed again up to the fork, it has its next token already. */
    entry.samples = end >= expected &&
                    !(entry.request->waits_for_fork && entry.request->num_emitted > 0);
    entry.num_drafts = end > expected ? end - expected : 0;
    memcpy(entry.num_blocks_after, entry.request->num_table, sizeof entry.num_blocks_after);
    m->entries[m->num_entries++] = entry;
}

bool model_must_copy(const struct model *m, const struct model_request *r, uint32_t g,
                     uint32_t index, uint64_t num_positions)
{
    const struct model_group *group = &m->config.groups[g];
    uint32_t computed = model_computed(m, r);
    bool is_written = group->kind == MODEL_GROUP_STATE ||
                      (computed % group->block_size != 0 && computed / group->block_size == index);

    return num_positions > computed && is_written && r->table[g][index] != NULL &&
           r->table[g][index]->num_holders > 1;
}

uint32_t model_num_copies(const struct model *m, const struct model_request *r,
                          uint64_t num_positions)
{
    uint32_t num = 0;

    for (uint32_t g = 0; g < m->config.num_groups; g++)
        for (uint32_t i = 0; i < r->num_table[g]; i++)
            num += model_must_copy(m, r, g, i, num_positions);
    return num;
}

static void give_tokens(struct model *m, struct model_request *r, uint32_t num)
{
    uint32_t end = r->num_computed + num;
    struct model_entry entry = { .request = r, .num_tokens = num, .first = r->num_computed };

    memcpy(entry.num_blocks_before, r->num_table, sizeof r->num_table);
    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        for (uint32_t i = 0; i < r->num_table[g]; i++)
            if (model_must_copy(m, r, g, i, end))
                model_copy(m, r, g, i);
        while (r->num_table[g] < model_table_length(m, g, model_positions_ahead(m, end)))
            model_take_new(m, r, g);
    }
    model_add_entry(m, entry);
    if (m->config.publish == MODEL_PUBLISH_ALLOC)
        model_publish(m, r, end < r->num_known ? end : r->num_known);
}

static uint32_t blocks_wanted(const struct model *m, const struct model_request *r,
                              uint32_t num_tokens)
{
    uint32_t end = model_positions_ahead(m, r->num_computed + num_tokens), sum = 0;

    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        uint32_t length = model_table_length(m, g, end);

        sum += length > r->num_table[g] ? length - r->num_table[g] : 0;
    }
    return sum + model_num_copies(m, r, (uint64_t)r->num_computed + num_tokens);
}

/* Who takes part in a walk over the running. */
enum part { PART_ALL, PART_DECODES, PART_PROMPTS };

static bool takes_part(const struct model *m, const struct model_request *r, enum part part)
{
    uint32_t expected = model_num_expected(m, r);
    bool decodes = expected > r->num_prompt && !r->waits_for_fork &&
                   r->num_computed + 1 == expected;

    if (model_follows(r))
        return false;
    return part == PART_ALL || decodes == (part == PART_DECODES);
}

static bool comes_before(const struct model_request *a, const struct model_request *b)
{
    for (const struct model_request *r = a; r != NULL; r = r->next)
        if (r == b)
            return true;
    return false;
}

/* Of so many blocks that somebody is short of, those that are not on their way yet. If all are, they are
 * promised to it. */
static uint64_t count_lacking(struct model *m, uint64_t num_short, bool promise)
{
    uint64_t coming = model_count_coming(m);

    coming -= coming < m->num_promised ? coming : m->num_promised;
    if (num_short > coming)
        return num_short - coming;
    if (promise) {
        m->num_promised += num_short;
        m->stalled = true;
    }
    return 0;
}

/* Of the victim and its samples, those that were scheduled, whose tokens go back, and those that the
 * walk passed by because they are not of this turn. */
static size_t count_before(struct model *m, const struct model_request *victim,
                           const struct model_request *grower, enum part part, uint32_t *budget)
{
    size_t num = 0;

    for (uint32_t i = 0; i < victim->num_samples; i++) {
        const struct model_request *r = model_sample(victim, i);

        if (r == NULL)
            continue;
        if (cancel_entry(m, r, budget) ||
            (r != grower && comes_before(r, grower) && !takes_part(m, r, part)))
            num++;
    }
    return num;
}

/* Grow the request at *index, giving up others while blocks are short. With nobody to give up it
 * gets nothing.
 *   returns  false when it had to give up itself: the walk ends */
static bool grow(struct model *m, struct model_request *r, uint32_t num, enum part part,
                 uint32_t *budget, size_t *index)
{
    model_trim(m, r);
    while (blocks_wanted(m, r, num) > model_count_free(m)) {
        uint64_t num_short = blocks_wanted(m, r, num) - model_count_free(m);
        uint64_t num_lacking = count_lacking(m, num_short, true);
        struct model_request *victim =
            num_lacking > 0 ? model_pick_victim(m, r, (uint32_t)num_lacking) : NULL;

        if (victim == NULL)
            return true;
        *index -= count_before(m, victim, r, part, budget);
        preempt(m, victim);
        if (r->status != MODEL_RUNNING)
            return false;
    }
    give_tokens(m, r, num);
    *budget -= num;
    return true;
}

static struct model_request *running_at(const struct model *m, size_t index)
{
    struct model_request *r = m->running;

    while (r != NULL && index-- > 0)
        r = r->next;
    return r;
}

/* Blocks that those who take part are short of together; *grower is the first to find none left. */
static uint64_t count_short(const struct model *m, enum part part, uint64_t budget,
                            struct model_request **grower)
{
    uint64_t free = model_count_free(m), sum = 0;

    *grower = NULL;
    for (struct model_request *r = m->running; r != NULL; r = r->next) {
        uint32_t num = tokens_wanted(m, r, (uint32_t)budget);
        uint32_t wanted = blocks_wanted(m, r, num);

        if (num == 0 || !takes_part(m, r, part))
            continue;
        budget -= num;
        sum += wanted;
        if (sum > free && *grower == NULL)
            *grower = r;
    }
    return sum > free ? sum - free : 0;
}

static void make_room(struct model *m, enum part part, uint32_t budget)
{
    struct model_request *grower, *victim;
    uint64_t num_short;

    while (m->running != NULL && model_num_running(m) > model_gang_size(m->running) &&
           (num_short = count_short(m, part, budget, &grower)) > 0 &&
           (num_short = count_lacking(m, num_short, false)) > 0) {
        victim = model_pick_victim(m, grower, (uint32_t)num_short);
        if (victim == NULL)
            break;
        preempt(m, victim);
    }
}

static void walk_running(struct model *m, enum part part, uint32_t *budget)
{
    struct model_request *r;

    if (m->config.whole_batch)
        make_room(m, part, *budget);
    for (size_t i = 0; *budget > 0 && (r = running_at(m, i)) != NULL; i++) {
        uint32_t num = tokens_wanted(m, r, *budget);

        if (num > 0 && takes_part(m, r, part) && !grow(m, r, num, part, budget, &i))
            return;
    }
}

/* Positions that were computed once already. */
static uint32_t count_recomputed(const struct model_entry *e)
{
    uint32_t end = e->first + e->num_tokens, highest = e->request->num_highest;

    end = end < highest ? end : highest;
    return end > e->first ? end - e->first : 0;
}

/* Positions grow before the model runs. */
static void count_entry(struct model *m, const struct model_entry *e)
{
    struct model_request *r = e->request;
    uint32_t again = count_recomputed(e);

    r->num_computed = e->first + e->num_tokens;
    r->num_recomputed += again;
    m->row.sched_tokens += e->num_tokens;
    m->row.recomputed_tokens += again;
    m->row.context_tokens += r->num_computed;
    if (e->num_tokens - e->num_drafts > 1)
        m->row.prefill_tokens += e->num_tokens - e->num_drafts;
    else
        m->row.decode_tokens++;
}

/* Running prompts, then newcomers. */
static void turn_of_prompts(struct model *m, uint32_t *budget, bool *looked)
{
    walk_running(m, PART_PROMPTS, budget);
    if (m->num_preempted == 0 && !m->stalled)
        model_admit(m, budget);
    *looked = *looked || (m->num_preempted == 0 && !m->stalled);
}

static void turn_of_decodes(struct model *m, uint32_t *budget)
{
    walk_running(m, PART_DECODES, budget);
    m->lesson.decoded = m->num_entries > 0;
}

/* returns  were newcomers looked at? */
static bool take_turns(struct model *m, uint32_t *budget)
{
    bool decodes_first = m->config.mix == MODEL_MIX_DECODE_FIRST ||
                         (m->config.mix == MODEL_MIX_SEPARATE &&
                          m->num_prefill_steps >= m->config.max_consecutive_prefills) ||
                         m->was_stalled;
    bool looked = false;

    if (decodes_first) {
        turn_of_decodes(m, budget);
        if (m->num_entries == 0)
            turn_of_prompts(m, budget, &looked);
    } else {
        turn_of_prompts(m, budget, &looked);
        if (m->num_entries == 0 && m->num_back == 0)
            turn_of_decodes(m, budget);
    }
    return looked;
}

/* For admit: ratio; before the step's tokens come out. */
static void note_lesson(struct model *m)
{
    double num_out = 0, num_allowed = 1;

    for (const struct model_request *r = m->running; r != NULL; r = r->next) {
        num_out += (double)(r->num_emitted + m->config.retract_steps);
        num_allowed += r->max_tokens > 0 ? r->max_tokens : 1;
    }
    m->lesson.ratio = -1;
    if (m->num_preempted > 0 && m->running != NULL)
        m->lesson.ratio = num_out / num_allowed < 1 ? num_out / num_allowed : 1;
    m->lesson.decodes_alone = m->num_preempted == 0 && m->lesson.decoded &&
                              m->row.prefill_tokens == 0 &&
                              m->row.admitted + m->row.resumed == 0;
}

/* As they are now; beams may change them when the tokens come out. */
static void keep_tables(const struct model *m, struct model_entry *e)
{
    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        e->ids[g] = model_alloc(e->request->num_table[g], sizeof *e->ids[g]);
        for (uint32_t i = 0; i < e->request->num_table[g]; i++)
            if (e->request->table[g][i] != NULL)
                e->ids[g][i] = e->request->table[g][i]->id + m->config.first_block_id;
    }
}

void model_forget_tables(struct model_entry *e)
{
    for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
        free(e->ids[g]);
}

void model_schedule(struct model *m)
{
    uint32_t budget = m->config.max_num_batched_tokens;
    bool looked;

    m->free_before = model_count_free(m);
    m->lesson.decoded = false;
    if (m->config.mix == MODEL_MIX_MIXED) {
        m->lesson.decoded = true;
        walk_running(m, PART_ALL, &budget);
        looked = m->num_preempted == 0 && !m->stalled;
        if (looked)
            model_admit(m, &budget);
    } else {
        looked = take_turns(m, &budget);
    }
    if (m->num_preempted > 0)
        m->limit = PKV_LIMIT_PREEMPTED;
    else if (!looked)
        m->limit = m->waiting == NULL ? PKV_LIMIT_EMPTY
                   : m->stalled ? PKV_LIMIT_PREEMPTED : PKV_LIMIT_LATCH;
    for (size_t i = 0; i < m->num_entries; i++)
        count_entry(m, &m->entries[i]);
    note_lesson(m);
    m->free_sched = model_count_free(m);
    for (size_t i = 0; i < m->num_entries; i++)
        keep_tables(m, &m->entries[i]);
}
