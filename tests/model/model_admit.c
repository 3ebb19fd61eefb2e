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
    struct model_hit hit;
    uint32_t num_tokens;
    uint32_t positions;              /* after this step; of one that comes back, all */
    uint32_t num_copies, num_restored;   /* blocks that come back from the host, positions then there */
};

enum answer {
    ANSWER_YES, ANSWER_NO_BLOCKS, ANSWER_NO_GATE, ANSWER_NO_BUDGET, ANSWER_NO_PADDING,
    ANSWER_OVER_BUDGET
};

/* Positions it may come to fill, as far as the scheduler is told, and to have blocks for beyond. The
 * token that makes it max_model_len long is not stored. */
static uint64_t positions_to_end(const struct model *m, const struct model_request *r)
{
    uint64_t told = (uint64_t)r->num_prompt + (r->max_tokens > 0 ? r->max_tokens : 1) - 1;
    uint64_t ahead = model_most_ahead(m, r->max_tokens), most = m->config.max_model_len;

    if (told > most - 1)
        told = most - 1;
    if (told < r->num_known)
        told = r->num_known;
    return told + ahead < most ? told + ahead : told > most ? told : most;
}

/* Free blocks it takes to bring the candidate to so many positions, in steps of so many tokens. */
static uint64_t blocks_needed(const struct model *m, const struct candidate *c, uint64_t positions,
                              uint64_t step_tokens)
{
    uint64_t sum = c->hit.num_unheld;

    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        uint64_t wanted = model_most_blocks(m, g, positions, step_tokens);

        sum += wanted > c->hit.num[g] ? wanted - c->hit.num[g] : 0;
    }
    return sum;
}

/* Blocks that it may come to hold at once beyond those of `held` that are not null. */
static uint64_t more_to_come(const struct model *m, const struct model_request *r,
                             const uint32_t *num_held)
{
    uint64_t sum = 0;

    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        uint64_t most = model_most_blocks(m, g, positions_to_end(m, r), model_longest_reach(m));

        sum += most > num_held[g] ? most - num_held[g] : 0;
    }
    return sum;
}

/* One that waits for its fork will share the full blocks of the prompt. */
static uint64_t blocks_to_come(const struct model *m, const struct model_request *r)
{
    uint64_t end = positions_to_end(m, r);
    uint32_t num_held[PKV_MAX_GROUPS] = { 0 };

    if (model_follows(r))
        return end > r->num_prompt ? model_most_blocks_of_all(m, end, model_longest_reach(m)) -
                                         model_num_shared(m, r) : 0;
    for (uint32_t g = 0; g < m->config.num_groups; g++)
        for (uint32_t i = 0; i < r->num_table[g]; i++)
            num_held[g] += r->table[g][i] != NULL;
    return more_to_come(m, r, num_held) + model_num_copies(m, r, end);
}

/* Blocks that those in may still take until they have said all they may. */
static uint64_t blocks_promised(const struct model *m)
{
    uint64_t sum = 0;

    for (const struct model_request *r = NULL; (r = model_next_in(m, r)) != NULL;)
        sum += blocks_to_come(m, r);
    return sum;
}

/* The same of those that come in with it. */
static uint64_t blocks_of_followers(const struct model *m, const struct model_request *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; r->waits_for_fork && i < r->num_samples; i++)
        if (model_sample(r, i) != NULL && model_follows(&r->samples[i]))
            sum += blocks_to_come(m, &r->samples[i]);
    return sum;
}

static bool somebody_has_a_token(const struct model *m)
{
    for (const struct model_request *r = NULL; (r = model_next_in(m, r)) != NULL;)
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

/* By the estimate, of one that runs or comes back: what is left of its prompt, and what it may say. */
static double estimate(double sum, const struct model *m, const struct model_request *r,
                       uint32_t computed)
{
    uint32_t expected = model_num_expected(m, r);
    uint32_t rest = expected > computed && !model_follows(r) ? expected - computed : 0;

    sum += rest == 1 && expected > r->num_prompt && !r->waits_for_fork ? 0 : rest;
    return sum + (double)tokens_to_come(m, r) * m->ratio;
}

/* Let in to come back in this step, when so many others had been scheduled. */
static double estimate_back(double sum, const struct model *m, size_t num_before)
{
    for (size_t k = 0; k < m->num_back; k++)
        if (m->back[k].num_before == num_before)
            sum = estimate(sum, m, m->back[k].request, m->back[k].request->num_computed);
    return sum;
}

static bool is_back_now(const struct model *m, const struct model_request *r)
{
    for (size_t k = 0; k < m->num_back; k++)
        if (m->back[k].request == r)
            return true;
    return false;
}

/* Tokens that those in may come to take, by the estimate, and those taken in this step with all of
 * what they take and may say. */
static double tokens_set_aside(const struct model *m, double *taken_back)
{
    double sum = 0;

    *taken_back = 0;
    for (const struct model_request *r = NULL; (r = model_next_in(m, r)) != NULL;) {
        const struct model_entry *e = entry_of(m, r);
        const struct model_entry *of_first = entry_of(m, model_first(r));
        uint32_t computed = r->num_computed + (e != NULL && !e->admitted ? e->num_tokens : 0);

        if ((e != NULL && e->admitted) || is_back_now(m, r) ||
            (model_follows(r) && of_first != NULL && of_first->admitted))
            continue;
        sum = estimate(sum, m, r, computed);
    }
    for (size_t i = 0; i < m->num_entries; i++) {
        const struct model_entry *e = &m->entries[i];
        const struct model_request *r = e->request;
        double taken = (double)e->num_blocks_after[0] * m->config.groups[0].block_size - e->num_hit;
        int64_t most = r->max_tokens > 0 ? r->max_tokens : 1;

        sum = estimate_back(sum, m, i);
        if (!e->admitted)
            continue;
        most = most < m->config.clip_tokens ? most : m->config.clip_tokens;
        most *= 1 + e->num_followers;   /* max_tokens is the request's */
        sum += taken + (e->first + e->num_tokens >= r->num_known ? (double)most : 0) +
               (double)(m->config.groups[0].block_size * (1 + e->num_followers));
        *taken_back += taken;
    }
    return estimate_back(sum, m, m->num_entries);
}

static bool passes_ratio(const struct model *m, const struct candidate *c, uint64_t free)
{
    double size = m->config.groups[0].block_size, taken_back;
    double aside = tokens_set_aside(m, &taken_back);
    double asked = c->request->num_known - c->hit.num_tokens;

    for (uint32_t i = 0; i < c->request->num_samples; i++) {
        const struct model_request *r = model_sample(c->request, i);

        if (r == c->request || (r != NULL && c->request->waits_for_fork))
            asked += (double)tokens_to_come(m, r) + size;
    }
    if (model_next_in(m, NULL) == NULL)
        return blocks_needed(m, c, c->request->num_known, UINT32_MAX) <= free;
    return asked < ((double)free - c->hit.num_unheld) * size + taken_back - aside;
}

static uint64_t blocks_reserved(const struct model *m, const struct candidate *c)
{
    uint32_t num_held[PKV_MAX_GROUPS];

    for (uint32_t g = 0; g < m->config.num_groups; g++)
        num_held[g] = c->hit.num[g] - c->hit.num_null[g];
    return more_to_come(m, c->request, num_held) + c->hit.num_unheld;
}

static bool passes(const struct model *m, const struct candidate *c, uint64_t need, uint64_t free)
{
    const struct model_request *r = c->request;
    uint64_t spare = model_next_in(m, NULL) != NULL ? m->config.num_watermark_blocks : 0;

    switch (m->config.admit) {
    case MODEL_ADMIT_FIRST_CHUNK:
        return need + spare <= free;
    case MODEL_ADMIT_WHOLE_PROMPT:
        return need + spare <= free &&
               blocks_needed(m, c, r->num_known, model_batches_at_once(m)) + spare <= free;
    case MODEL_ADMIT_FUTURE_PEAK:
        return need <= free &&
               (model_next_in(m, NULL) == NULL || model_future_peak(m, r) < m->config.num_blocks);
    case MODEL_ADMIT_MC_SF:
        return need <= free && model_future_peak(m, r) <= m->config.num_blocks;
    case MODEL_ADMIT_RATIO:
        return need <= free && passes_ratio(m, c, free);
    case MODEL_ADMIT_STATIC_BATCH:
        if (somebody_has_a_token(m))
            return false;
        /* fall through */
    case MODEL_ADMIT_RESERVE_MAX:
        return need <= free && blocks_reserved(m, c) + blocks_of_followers(m, r) +
                                       blocks_promised(m) <= free;
    }
    abort();
}

/* Those who go on are all past their prompts, so a newcomer of one token is to look like them. */
static bool has_to_be_padded(const struct model *m, const struct candidate *c)
{
    const struct model_config *config = &m->config;

    if (config->num_drafts == 0 || !config->lookahead_at_admission || m->num_walked == 0 ||
        c->hit.num_tokens + 1 != c->request->num_known)
        return false;
    for (size_t i = 0; i < m->num_walked; i++)
        if (!m->entries[i].request->is_decoding)
            return false;
    return true;
}

static uint32_t positions_to_take(const struct model *m, const struct candidate *c)
{
    return m->config.lookahead_at_admission ? model_positions_ahead(m, c->positions)
                                            : c->positions;
}

static enum answer consider(const struct model *m, struct candidate *c, uint32_t budget)
{
    const struct model_request *r = c->request;
    uint64_t need, free = model_count_free(m);

    model_find_prefix(m, r, &c->hit);
    c->num_copies = model_find_copies(m, r, c->hit.num[0], &c->num_restored);
    c->num_tokens = r->num_known - c->hit.num_tokens;
    if (c->num_copies == 0 && budget == 0)
        return ANSWER_OVER_BUDGET;
    if (c->num_copies == 0 && c->num_tokens > m->config.long_prefill_token_threshold)
        c->num_tokens = m->config.long_prefill_token_threshold;
    if (c->num_copies == 0 && has_to_be_padded(m, c)) {
        c->num_tokens += m->config.num_drafts;
        if (c->num_tokens > budget ||
            r->num_known + (uint64_t)m->config.num_drafts > m->config.max_model_len)
            return ANSWER_NO_PADDING;
    }
    if (c->num_copies == 0 && c->num_tokens > budget) {
        if (!m->config.chunked_prefill)
            return ANSWER_NO_BUDGET;
        c->num_tokens = budget;
    }
    c->positions = c->hit.num_tokens + c->num_tokens;
    need = blocks_needed(m, c, positions_to_take(m, c), UINT32_MAX);
    if (passes(m, c, need, free))
        return ANSWER_YES;
    if (m->config.admit == MODEL_ADMIT_STATIC_BATCH && somebody_has_a_token(m))
        return ANSWER_NO_GATE;
    return need > free ? ANSWER_NO_BLOCKS : ANSWER_NO_GATE;
}

static void count_look_up(struct model *m, struct model_request *r, uint32_t num_hit_tokens)
{
    uint32_t queried = m->config.prefix_cache && !model_follows(r) ? r->num_known : 0;

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

static void begin_to_run(struct model *m, struct model_request *r, uint32_t num_hit_tokens)
{
    DL_APPEND(m->running, r);
    count_look_up(m, r, num_hit_tokens);
    r->status = MODEL_RUNNING;
}

static void take(struct model *m, const struct candidate *c)
{
    struct model_request *r = c->request;
    uint32_t num_hit_tokens = c->hit.num_tokens;
    struct model_entry entry = {
        .request = r, .num_tokens = c->num_tokens, .first = num_hit_tokens, .admitted = true,
        .resumed = r->was_preempted, .num_hit = num_hit_tokens };
    bool comes_back = c->num_copies > 0;

    DL_DELETE(m->waiting, r);
    m->last_left = r->tenant;
    if (comes_back) {
        count_look_up(m, r, num_hit_tokens);
        m->back[m->num_back++] = (struct model_back){ r, num_hit_tokens, m->num_entries };
    }
    for (uint32_t i = 0; !comes_back && i < r->num_samples; i++) {
        struct model_request *other = model_sample(r, i);

        if (other != r && (other == NULL || !r->waits_for_fork))
            continue;
        begin_to_run(m, other, other == r ? num_hit_tokens : 0);
        if (other != r)
            entry.followers[entry.num_followers++] = other;
    }
    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        for (uint32_t i = 0; i < c->hit.num[g]; i++)
            model_hold(m, r, g, c->hit.blocks[g][i]);
        r->num_hashed[g] = c->hit.num[g];
    }
    model_take_all(m, r, comes_back ? c->num_restored : positions_to_take(m, c));
    if (num_hit_tokens > r->num_highest)
        r->num_highest = num_hit_tokens;
    r->num_overtakes = 0;
    r->fronted = r->tailed = false;
    if (comes_back) {
        model_swap_in(m, r, c->num_copies, c->num_restored);
        return;
    }
    model_add_entry(m, entry);
    if (m->config.publish == MODEL_PUBLISH_ALLOC)
        model_publish(m, r, c->positions < r->num_known ? c->positions : r->num_known);
    model_forget_copies(m, r);
    r->num_computed = num_hit_tokens;
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
        *budget -= c->num_copies > 0 ? 0 : c->num_tokens;
        return count_overtakes(m, w);
    case ANSWER_NO_PADDING:
    case ANSWER_OVER_BUDGET:
        note(m, w, PKV_LIMIT_BUDGET);
        return false;
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

static bool may_go_on(struct model *m, struct walk *w, const struct model_request *next,
                      uint32_t budget)
{
    if (budget == 0 && next->status != MODEL_SWAPPED)
        note(m, w, PKV_LIMIT_BUDGET);
    else if (model_num_running(m) + model_num_resuming(m) + model_num_admitted(next) >
             m->config.max_num_seqs)
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
    size_t num = model_num_queued(m);
    struct walk w = { .refused = model_alloc(num, sizeof *w.refused),
                      .aside = model_alloc(num, sizeof *w.aside) };
    struct candidate c = { .num_tokens = 0 };
    struct model_request *next;
    bool is_shut = is_latched(m);

    m->num_walked = m->num_entries;
    m->limit = num == 0 ? PKV_LIMIT_EMPTY : is_shut ? PKV_LIMIT_LATCH : PKV_LIMIT_NOTHING;
    if (!is_shut)
        model_rank(m);
    for (c.request = is_shut ? NULL : m->waiting; c.request != NULL; c.request = next) {
        next = c.request->next;
        if (!may_go_on(m, &w, c.request, *budget) || !visit(m, &w, &c, budget))
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
    model_hit_finish(&c.hit);
    free(w.refused);
    free(w.aside);
}
