/*
 * model_step.c - one step, as the scheduler's source reads: walk the running, give up a victim when
 * blocks run short, admit only if nobody was given up, then bring the tokens out.
 */
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

uint32_t model_blocks_for(const struct model *m, uint64_t num_positions)
{
    uint64_t size = m->config.block_size;

    return (uint32_t)((num_positions + size - 1) / size);
}

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
    model_release(m, r);
    DL_DELETE(m->running, r);
    m->num_left++;
    r->num_computed = 0;
    r->num_preemptions++;
    r->was_preempted = true;
    r->status = MODEL_PREEMPTED;
    wait_again(m, r);
    m->preempted[m->num_preempted++] = r;
}

static uint32_t tokens_wanted(const struct model *m, const struct model_request *r,
                              uint32_t budget)
{
    uint32_t num = r->num_known - r->num_computed;

    if (num > m->config.long_prefill_token_threshold)
        num = m->config.long_prefill_token_threshold;
    return num < budget ? num : budget;
}

static void give_tokens(struct model *m, struct model_request *r, uint32_t num, uint32_t wanted)
{
    uint32_t end = r->num_computed + num;

    m->entries[m->num_entries++] = (struct model_entry){
        .request = r, .num_tokens = num, .first = r->num_computed,
        .num_blocks_before = r->num_table };
    while (r->num_table < wanted)
        model_take_new(m, r);
    if (m->config.publish == MODEL_PUBLISH_ALLOC)
        model_publish(m, r, end < r->num_known ? end : r->num_known);
}

/* Who takes part in a walk over the running. */
enum part { PART_ALL, PART_DECODES, PART_PROMPTS };

static bool takes_part(const struct model_request *r, enum part part)
{
    bool decodes = r->num_emitted > 0 && r->num_computed + 1 == r->num_known;

    return part == PART_ALL || decodes == (part == PART_DECODES);
}

static bool comes_before(const struct model_request *a, const struct model_request *b)
{
    for (const struct model_request *r = a; r != NULL; r = r->next)
        if (r == b)
            return true;
    return false;
}

/* Grow the request at *index, giving up others while blocks are short. With nobody to give up it
 * gets nothing.
 *   returns  false when it had to give up itself: the walk ends */
static bool grow(struct model *m, struct model_request *r, uint32_t num, enum part part,
                 uint32_t *budget, size_t *index)
{
    uint32_t wanted = model_blocks_for(m, (uint64_t)r->num_computed + num);

    while (wanted > r->num_table && wanted - r->num_table > model_count_free(m)) {
        struct model_request *victim =
            model_pick_victim(m, r, wanted - r->num_table - model_count_free(m));

        if (victim == NULL)
            return true;
        if (cancel_entry(m, victim, budget) ||
            (victim != r && comes_before(victim, r) && !takes_part(victim, part)))
            --*index;
        preempt(m, victim);
        if (victim == r)
            return false;
    }
    give_tokens(m, r, num, wanted);
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
        uint32_t wanted = model_blocks_for(m, (uint64_t)r->num_computed + num);

        if (num == 0 || !takes_part(r, part))
            continue;
        budget -= num;
        sum += wanted > r->num_table ? wanted - r->num_table : 0;
        if (sum > free && *grower == NULL)
            *grower = r;
    }
    return sum > free ? sum - free : 0;
}

static void make_room(struct model *m, enum part part, uint32_t budget)
{
    struct model_request *grower, *victim;
    uint64_t num_short;

    while (model_num_running(m) > 1 && (num_short = count_short(m, part, budget, &grower)) > 0) {
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

        if (num > 0 && takes_part(r, part) && !grow(m, r, num, part, budget, &i))
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
    if (r->num_computed > r->num_highest)
        r->num_highest = r->num_computed;
    r->num_recomputed += again;
    m->row.sched_tokens += e->num_tokens;
    m->row.recomputed_tokens += again;
    m->row.context_tokens += r->num_computed;
    if (e->num_tokens > 1)
        m->row.prefill_tokens += e->num_tokens;
    else
        m->row.decode_tokens++;
}

/* Running prompts, then newcomers. */
static void turn_of_prompts(struct model *m, uint32_t *budget, bool *looked)
{
    walk_running(m, PART_PROMPTS, budget);
    if (m->num_preempted == 0)
        model_admit(m, budget);
    *looked = *looked || m->num_preempted == 0;
    if (m->num_entries > 0)
        m->num_prefill_steps++;
}

static void turn_of_decodes(struct model *m, uint32_t *budget)
{
    walk_running(m, PART_DECODES, budget);
    m->decoded = m->num_entries > 0;
    if (m->decoded)
        m->num_prefill_steps = 0;
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
static void learn(struct model *m, bool decodes_alone)
{
    double num_out = 0, num_allowed = 1;

    for (const struct model_request *r = m->running; r != NULL; r = r->next) {
        num_out += (double)(r->num_emitted + m->config.retract_steps);
        num_allowed += r->max_tokens > 0 ? r->max_tokens : 1;
    }
    if (m->num_preempted > 0 && m->running != NULL) {
        m->ratio = num_out / num_allowed < 1 ? num_out / num_allowed : 1;
    } else if (m->num_preempted == 0 && decodes_alone && m->num_entries > 0) {
        m->ratio -= m->config.ratio_step;
        m->ratio = m->ratio > m->config.ratio_min ? m->ratio : m->config.ratio_min;
    }
}

void model_schedule(struct model *m)
{
    uint32_t budget = m->config.max_num_batched_tokens;
    bool looked;

    m->decoded = false;
    if (m->config.mix == MODEL_MIX_MIXED) {
        m->decoded = true;
        walk_running(m, PART_ALL, &budget);
        looked = m->num_preempted == 0;
        if (looked)
            model_admit(m, &budget);
    } else {
        looked = take_turns(m, &budget);
    }
    if (m->num_preempted > 0)
        m->limit = PKV_LIMIT_PREEMPTED;
    else if (!looked)
        m->limit = m->waiting != NULL ? PKV_LIMIT_LATCH : PKV_LIMIT_EMPTY;
    for (size_t i = 0; i < m->num_entries; i++)
        count_entry(m, &m->entries[i]);
    learn(m, m->decoded && m->row.prefill_tokens == 0 && m->row.admitted + m->row.resumed == 0);
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

/* A running one's single token after the first one that came out. */
static bool is_decode(const struct model_entry *e)
{
    return !e->admitted && e->request->num_emitted > 0 && e->first + 1 == e->request->num_known;
}

void model_commit(struct model *m, int64_t end_ns)
{
    for (size_t i = 0; i < m->num_entries; i++) {
        struct model_request *r = m->entries[i].request;

        if (m->config.publish == MODEL_PUBLISH_COMPUTED ||
            (m->config.publish == MODEL_PUBLISH_CHUNK_END && !is_decode(&m->entries[i])))
            model_publish(m, r, r->num_computed);
        if (r->num_computed < r->num_known)
            continue;
        if (!r->emits_nothing)
            emit(m, r, end_ns);
        if (!r->emits_nothing && r->num_emitted < r->num_output &&
            r->num_known < m->config.max_model_len)
            continue;
        if (m->config.publish >= MODEL_PUBLISH_CHUNK_END)
            model_publish(m, r, r->num_computed);
        model_release(m, r);
        DL_DELETE(m->running, r);
        m->num_left++;
        r->status = MODEL_COMPLETED;
        r->finish_ns = end_ns;
        m->finished[m->num_finished++] = r;
    }
    if (m->running == NULL && m->waiting == NULL)
        m->ratio = m->config.ratio_init;
}
