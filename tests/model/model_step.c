/*
 * model_step.c - one step, as the scheduler's source reads: walk the running, give up a victim when
 * blocks run short, admit only if nobody was given up, then bring the tokens out.
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

static void preempt(struct model *m, struct model_request *r)
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
    wait_again(m, r);
    m->preempted[m->num_preempted++] = r;
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
    uint32_t num = model_num_expected(m, r) - r->num_computed, drafts = r->num_drafts;

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

    entry.samples = end >= expected;
    entry.num_drafts = end > expected ? end - expected : 0;
    memcpy(entry.num_blocks_after, entry.request->num_table, sizeof entry.num_blocks_after);
    m->entries[m->num_entries++] = entry;
}

static void give_tokens(struct model *m, struct model_request *r, uint32_t num)
{
    uint32_t end = r->num_computed + num;
    struct model_entry entry = { .request = r, .num_tokens = num, .first = r->num_computed };

    memcpy(entry.num_blocks_before, r->num_table, sizeof r->num_table);
    model_take_all(m, r, model_positions_ahead(m, end));
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
    return sum;
}

/* Who takes part in a walk over the running. */
enum part { PART_ALL, PART_DECODES, PART_PROMPTS };

static bool takes_part(const struct model *m, const struct model_request *r, enum part part)
{
    uint32_t expected = model_num_expected(m, r);
    bool decodes = expected > r->num_prompt && r->num_computed + 1 == expected;

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

/* Grow the request at *index, giving up others while blocks are short. With nobody to give up it
 * gets nothing.
 *   returns  false when it had to give up itself: the walk ends */
static bool grow(struct model *m, struct model_request *r, uint32_t num, enum part part,
                 uint32_t *budget, size_t *index)
{
    uint32_t wanted;

    model_trim(m, r);
    wanted = blocks_wanted(m, r, num);
    while (wanted > model_count_free(m)) {
        uint64_t num_lacking = count_lacking(m, wanted - model_count_free(m), true);
        struct model_request *victim =
            num_lacking > 0 ? model_pick_victim(m, r, (uint32_t)num_lacking) : NULL;

        if (victim == NULL)
            return true;
        if (cancel_entry(m, victim, budget) ||
            (victim != r && comes_before(victim, r) && !takes_part(m, victim, part)))
            --*index;
        preempt(m, victim);
        if (victim == r)
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

    while (model_num_running(m) > 1 && (num_short = count_short(m, part, budget, &grower)) > 0 &&
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
                          m->num_prefill_steps >= m->config.max_consecutive_prefills);
    bool looked = false;

    if (decodes_first) {
        turn_of_decodes(m, budget);
        if (m->num_entries == 0)
            turn_of_prompts(m, budget, &looked);
    } else {
        turn_of_prompts(m, budget, &looked);
        if (m->num_entries == 0)
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
}

static void emit(struct model *m, struct model_request *r, int64_t end_ns)
{
    r->text[1 + r->num_known] = (struct model_token){
        r->output_origin, (uint64_t)r->output_first + r->num_emitted };
    r->num_known++;
    r->num_emitted++;
    m->num_generated++;
    r->tenant->counter += m->config.output_weight;
    if (r->first_token_ns == PKV_NO_TIME) {
        r->first_token_ns = end_ns;
    } else {
        int64_t gap = end_ns - r->last_token_ns;

        r->max_gap_ns = gap > r->max_gap_ns ? gap : r->max_gap_ns;
        m->row.max_gap_ns = gap > m->row.max_gap_ns ? gap : m->row.max_gap_ns;
    }
    r->last_token_ns = end_ns;
}

/* A running one's step after the first token that came out, with one known token to compute. */
static bool is_decode(const struct model_entry *e)
{
    return !e->admitted && e->request->num_emitted > 0 && e->first + 1 == e->request->num_known;
}

static bool has_all(const struct model *m, const struct model_request *r)
{
    return r->emits_nothing || r->num_emitted >= r->num_output ||
           r->num_known >= m->config.max_model_len;
}

static uint32_t num_right(const struct model *m, const struct model_entry *e)
{
    const struct model_request *r = e->request;
    const struct model_config *c = &m->config;
    uint32_t num = 0;

    if (c->num_accepted > 0)
        num = c->accepted[(r->row + r->num_emitted) % c->num_accepted];
    else
        while (num < e->num_drafts && model_is_guessed(m, r, r->num_emitted + num))
            num++;
    return num < e->num_drafts ? num : e->num_drafts;
}

/* returns  how many drafts were wrong */
static uint32_t bring_tokens(struct model *m, const struct model_entry *e, int64_t end_ns)
{
    struct model_request *r = e->request;
    uint32_t right = num_right(m, e), num = 0;

    while (!r->emits_nothing && num < 1 + right && (num == 0 || !has_all(m, r))) {
        emit(m, r, end_ns);
        num++;
    }
    if (e->num_drafts > 0) {
        m->totals.num_verifications++;
        m->totals.drafted += e->num_drafts;
        m->totals.accepted += right;
        m->totals.verified += num;
    }
    return e->num_drafts - right;
}

static void publish_known(struct model *m, struct model_request *r, uint32_t computed)
{
    model_publish(m, r, computed < r->num_known ? computed : r->num_known);
}

/* Not before all that is in a block is known and computed. In flight, the position after the last
 * known token is being computed already. */
static void publish_after(struct model *m, struct model_request *r, uint32_t computed, bool decoded)
{
    if (r->status != MODEL_RUNNING)
        return;
    switch (m->config.publish) {
    case MODEL_PUBLISH_ALLOC:
        if (!m->config.async)
            return;
        computed = r->num_computed;
        for (size_t i = 0; i < m->num_entries; i++)
            if (m->entries[i].request == r && m->entries[i].samples)
                computed--;
        break;
    case MODEL_PUBLISH_COMPUTED:
        break;
    case MODEL_PUBLISH_CHUNK_END:
        if (decoded)
            return;
        break;
    case MODEL_PUBLISH_FINISH:
        return;
    }
    publish_known(m, r, computed);
}

static void complete(struct model *m, struct model_request *r, uint32_t computed, int64_t end_ns)
{
    if (r->status == MODEL_RUNNING) {
        if (m->config.publish >= MODEL_PUBLISH_CHUNK_END)
            publish_known(m, r, computed);
        model_release(m, r);
        DL_DELETE(m->running, r);
        m->num_left++;
    } else {
        DL_DELETE(m->waiting, r);
        m->last_left = r->tenant;
    }
    r->status = MODEL_COMPLETED;
    r->finish_ns = end_ns;
    m->finished[m->num_finished++] = r;
}

/* What its batch has taught: at the same time as its tokens. */
static void learn(struct model *m)
{
    const struct model_lesson *lesson = &m->landing.lesson;

    if (m->landing.num_entries > 0)
        m->num_prefill_steps = lesson->decoded ? 0 : m->num_prefill_steps + 1;
    if (lesson->ratio >= 0)
        m->ratio = lesson->ratio;
    else if (lesson->decodes_alone && m->landing.num_entries > 0)
        m->ratio = m->ratio - m->config.ratio_step > m->config.ratio_min
                       ? m->ratio - m->config.ratio_step : m->config.ratio_min;
    if (m->running == NULL && m->waiting == NULL && m->resuming == NULL)
        m->ratio = m->config.ratio_init;
}

static void land(struct model *m, const struct model_entry *e, int64_t end_ns)
{
    struct model_request *r = e->request;
    uint32_t wrong = 0, computed = e->first + e->num_tokens;
    bool decoded = is_decode(e);

    if (e->admitted && !e->resumed)
        r->tenant->counter += m->config.prompt_weight * r->num_prompt;
    if (e->samples)
        wrong = bring_tokens(m, e, end_ns);
    computed -= wrong;
    if (r->status == MODEL_RUNNING) {
        r->num_computed -= wrong;
        r->num_drafts = e->samples ? m->config.num_drafts : 0;
        r->is_decoding = e->samples;
    }
    if (computed > r->num_highest)
        r->num_highest = computed;
    publish_after(m, r, computed, decoded);
    if (e->samples && has_all(m, r))
        complete(m, r, computed, end_ns);
}

void model_commit(struct model *m, int64_t end_ns)
{
    if (!m->landing.exists)
        return;
    for (size_t i = 0; i < m->landing.num_entries; i++) {
        const struct model_entry *e = &m->landing.entries[i];

        if (e->request->status == MODEL_RUNNING || e->request->status == MODEL_PREEMPTED)
            land(m, e, end_ns);
    }
    learn(m);
}
