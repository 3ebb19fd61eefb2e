/*
 * model_admit.c - the walk over the waiting queue.
 *
 * Each one is looked up, cut to the budget and tested against the free blocks. A refused one stops
 * the walk or is passed by; one that is passed by keeps its place. A prompt that exceeds what is
 * left of the budget, with chunking off, is put aside: under fcfs those put aside come back to the
 * front, the last one first; under priority each keeps its place.
 */
#include <stdlib.h>

#include "model_private.h"

struct candidate {
    struct model_request *request;
    struct model_block **hit;        /* [num_hit] */
    uint32_t num_hit, num_unheld;
    uint32_t num_tokens;
    uint32_t positions;              /* after this step */
};

enum answer { ANSWER_YES, ANSWER_NO_BLOCKS, ANSWER_NO_GATE, ANSWER_NO_BUDGET };

/* Positions it may come to fill, as far as the scheduler is told. The token that makes it
 * max_model_len long is not stored. */
static uint64_t positions_to_end(const struct model *m, const struct model_request *r)
{
    uint64_t told = (uint64_t)r->num_prompt + (r->max_tokens > 0 ? r->max_tokens : 1) - 1;

    if (told > m->config.max_model_len - 1)
        told = m->config.max_model_len - 1;
    return told > r->num_known ? told : r->num_known;
}

/* Free blocks it takes to bring the candidate to so many positions. */
static uint64_t blocks_needed(const struct model *m, const struct candidate *c, uint64_t positions)
{
    uint32_t wanted = model_blocks_for(m, positions);

    return (wanted > c->num_hit ? wanted - c->num_hit : 0) + (uint64_t)c->num_unheld;
}

/* Blocks that the running may still take until they have said all they may. */
static uint64_t blocks_promised(const struct model *m)
{
    uint64_t sum = 0;

    for (const struct model_request *r = m->running; r != NULL; r = r->next) {
        uint32_t wanted = model_blocks_for(m, positions_to_end(m, r));

        sum += wanted > r->num_table ? wanted - r->num_table : 0;
    }
    return sum;
}

static bool somebody_has_a_token(const struct model *m)
{
    for (const struct model_request *r = m->running; r != NULL; r = r->next)
        if (r->num_emitted > 0)
            return true;
    return false;
}

static int64_t tokens_to_come(const struct model *m, const struct model_request *r)
{
    int64_t allowed = r->max_tokens > 0 ? r->max_tokens : 1, rest = allowed - r->num_emitted;

    rest = rest > 0 ? rest : 0;
    return rest < m->config.clip_tokens ? rest : m->config.clip_tokens;
}

static const struct model_entry *entry_of(const struct model *m, const struct model_request *r)
{
    for (size_t i = 0; i < m->num_entries; i++)
        if (m->entries[i].request == r)
            return &m->entries[i];
    return NULL;
}

/* Tokens that the running may come to take, by the estimate, and those taken in this step with all of
 * what they take and may say. */
static double tokens_set_aside(const struct model *m, double *taken_back)
{
    double sum = 0;

    *taken_back = 0;
    for (const struct model_request *r = m->running; r != NULL; r = r->next) {
        const struct model_entry *e = entry_of(m, r);
        uint32_t computed = r->num_computed + (e != NULL && !e->admitted ? e->num_tokens : 0);
        uint32_t rest = r->num_known - computed;

        if (e != NULL && e->admitted)
            continue;
        sum += rest == 1 && r->num_emitted > 0 ? 0 : rest;
        sum += (double)tokens_to_come(m, r) * m->ratio;
    }
    for (size_t i = 0; i < m->num_entries; i++) {
        const struct model_entry *e = &m->entries[i];
        const struct model_request *r = e->request;
        double taken = (double)model_blocks_for(m, e->num_tokens) * m->config.block_size;
        int64_t most = r->max_tokens > 0 ? r->max_tokens : 1;

        if (!e->admitted)
            continue;
        most = most < m->config.clip_tokens ? most : m->config.clip_tokens;
        sum += taken + (e->first + e->num_tokens == r->num_known ? (double)most : 0) +
               m->config.block_size;
        *taken_back += taken;
    }
    return sum;
}

static bool passes_ratio(const struct model *m, const struct candidate *c, uint64_t free)
{
    double size = m->config.block_size, taken_back;
    double aside = tokens_set_aside(m, &taken_back);
    double asked = c->request->num_known - c->num_hit * size +
                   (double)tokens_to_come(m, c->request) + size;

    if (m->running == NULL)
        return blocks_needed(m, c, c->request->num_known) <= free;
    return asked < ((double)free - c->num_unheld) * size + taken_back - aside;
}

static bool passes(const struct model *m, const struct candidate *c, uint64_t need, uint64_t free)
{
    const struct model_request *r = c->request;
    uint64_t spare = m->running != NULL ? m->config.num_watermark_blocks : 0;

    switch (m->config.admit) {
    case MODEL_ADMIT_FIRST_CHUNK:
        return need + spare <= free;
    case MODEL_ADMIT_WHOLE_PROMPT:
        return need + spare <= free && blocks_needed(m, c, r->num_known) + spare <= free;
    case MODEL_ADMIT_FUTURE_PEAK:
        return need <= free &&
               (m->running == NULL || model_future_peak(m, r) < m->config.num_blocks);
    case MODEL_ADMIT_MC_SF:
        return need <= free && model_future_peak(m, r) <= m->config.num_blocks;
    case MODEL_ADMIT_RATIO:
        return need <= free && passes_ratio(m, c, free);
    case MODEL_ADMIT_STATIC_BATCH:
        if (somebody_has_a_token(m))
            return false;
        /* fall through */
    case MODEL_ADMIT_RESERVE_MAX:
        return need <= free &&
               blocks_needed(m, c, positions_to_end(m, r)) + blocks_promised(m) <= free;
    }
    abort();
}

static enum answer consider(const struct model *m, struct candidate *c, uint32_t budget)
{
    const struct model_request *r = c->request;
    uint64_t need, free = model_count_free(m);

    c->num_hit = model_find_prefix(m, r, c->hit);
    c->num_unheld = model_count_unheld(c->hit, c->num_hit);
    c->num_tokens = r->num_known - c->num_hit * m->config.block_size;
    if (c->num_tokens > m->config.long_prefill_token_threshold)
        c->num_tokens = m->config.long_prefill_token_threshold;
    if (c->num_tokens > budget) {
        if (!m->config.chunked_prefill)
            return ANSWER_NO_BUDGET;
        c->num_tokens = budget;
    }
    c->positions = c->num_hit * m->config.block_size + c->num_tokens;
    need = blocks_needed(m, c, c->positions);
    if (passes(m, c, need, free))
        return ANSWER_YES;
    if (m->config.admit == MODEL_ADMIT_STATIC_BATCH && somebody_has_a_token(m))
        return ANSWER_NO_GATE;
    return need > free ? ANSWER_NO_BLOCKS : ANSWER_NO_GATE;
}

static void count_look_up(struct model *m, struct model_request *r, uint32_t num_hit_tokens)
{
    uint32_t queried = m->config.prefix_cache ? r->num_known : 0;

    if (r->was_preempted) {
        m->row.resumed++;
        m->totals.resumed_queried_tokens += queried;
        m->totals.resumed_hit_tokens += num_hit_tokens;
    } else {
        m->row.admitted++;
        r->num_hit = num_hit_tokens;
        r->admitted_ns = m->now;
        m->totals.prompt_tokens += r->num_prompt;
        m->totals.queried_tokens += queried;
        m->totals.hit_tokens += num_hit_tokens;
    }
    m->row.hit_tokens += num_hit_tokens;
}

static void take(struct model *m, const struct candidate *c)
{
    struct model_request *r = c->request;
    uint32_t num_hit_tokens = c->num_hit * m->config.block_size;
    uint32_t wanted = model_blocks_for(m, c->positions);

    DL_DELETE(m->waiting, r);
    DL_APPEND(m->running, r);
    m->last_left = r->tenant;
    if (!r->was_preempted)
        r->tenant->counter += m->config.prompt_weight * r->num_prompt;
    count_look_up(m, r, num_hit_tokens);
    m->entries[m->num_entries++] = (struct model_entry){
        .request = r, .num_tokens = c->num_tokens, .first = num_hit_tokens, .admitted = true,
        .resumed = r->was_preempted, .num_hit = num_hit_tokens };
    for (uint32_t i = 0; i < c->num_hit; i++)
        model_hold(m, r, c->hit[i]);
    while (r->num_table < wanted)
        model_take_new(m, r);
    if (m->config.publish == MODEL_PUBLISH_ALLOC)
        model_publish(m, r, c->positions);
    r->num_computed = num_hit_tokens;
    if (num_hit_tokens > r->num_highest)
        r->num_highest = num_hit_tokens;
    r->status = MODEL_RUNNING;
    r->num_overtakes = 0;
    r->fronted = r->tailed = false;
}

/* The walk's own memory, in queue order. */
struct walk {
    struct model_request **refused;  /* passed by */
    size_t num_refused;
    struct model_request **aside;    /* exceed the budget */
    size_t num_aside;
    bool limit_known;
};

static void note(struct model *m, struct walk *w, enum pkv_limit limit)
{
    if (!w->limit_known)
        m->limit = limit;
    w->limit_known = true;
}

static bool overtaken_enough(const struct model *m, const struct model_request *r)
{
    return m->config.max_overtakes > 0 && r->num_overtakes >= m->config.max_overtakes;
}

/* Somebody behind the refused ones was admitted.
 *   returns  false when one of them may not be overtaken any more */
static bool count_overtakes(const struct model *m, struct walk *w)
{
    bool goes_on = true;

    for (size_t i = 0; i < w->num_refused; i++) {
        w->refused[i]->num_overtakes++;
        if (overtaken_enough(m, w->refused[i]))
            goes_on = false;
    }
    return goes_on;
}

/* returns  false when the walk ends with this one */
static bool visit(struct model *m, struct walk *w, struct candidate *c, uint32_t *budget)
{
    enum answer answer = consider(m, c, *budget);

    switch (answer) {
    case ANSWER_YES:
        take(m, c);
        *budget -= c->num_tokens;
        return count_overtakes(m, w);
    case ANSWER_NO_BUDGET:
        note(m, w, PKV_LIMIT_BUDGET);
        if (!m->config.skip_blocked_prefill)
            return false;
        w->aside[w->num_aside++] = c->request;
        return true;
    case ANSWER_NO_BLOCKS:
    case ANSWER_NO_GATE:
        if (m->running != NULL)
            m->num_left_at_refusal = m->num_left;
        note(m, w, answer == ANSWER_NO_BLOCKS ? PKV_LIMIT_BLOCKS : PKV_LIMIT_GATE);
        w->refused[w->num_refused++] = c->request;
        return m->config.skip_blocked && !overtaken_enough(m, c->request);
    }
    abort();
}

static bool may_go_on(struct model *m, struct walk *w, uint32_t budget)
{
    if (budget == 0)
        note(m, w, PKV_LIMIT_BUDGET);
    else if (model_num_running(m) >= m->config.max_num_seqs)
        note(m, w, PKV_LIMIT_SEQS);
    else
        return true;
    return false;
}

/* A refusal while others ran, and none of them has left since. */
static bool is_latched(const struct model *m)
{
    return m->config.latch && m->num_left_at_refusal == m->num_left;
}

void model_admit(struct model *m, uint32_t *budget)
{
    size_t num = model_num_waiting(m);
    struct walk w = { .refused = model_alloc(num, sizeof *w.refused),
                      .aside = model_alloc(num, sizeof *w.aside) };
    struct candidate c = { .hit = model_alloc(m->config.num_blocks, sizeof *c.hit) };
    struct model_request *next;
    bool is_shut = is_latched(m);

    m->limit = num == 0 ? PKV_LIMIT_EMPTY : is_shut ? PKV_LIMIT_LATCH : PKV_LIMIT_NOTHING;
    if (!is_shut)
        model_rank(m);
    for (c.request = is_shut ? NULL : m->waiting; c.request != NULL; c.request = next) {
        next = c.request->next;
        if (!may_go_on(m, &w, *budget) || !visit(m, &w, &c, budget))
            break;
    }
    for (size_t i = 0; i < w.num_aside && m->config.order == MODEL_ORDER_FCFS; i++) {
        DL_DELETE(m->waiting, w.aside[i]);
        model_put_front(m, w.aside[i]);
    }
    if (!is_shut && num > 0) {
        m->num_passes++;
        model_miss(m, 1);
    }
    free(c.hit);
    free(w.refused);
    free(w.aside);
}
