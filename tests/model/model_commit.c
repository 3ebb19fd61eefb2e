/*
 * model_commit.c - a step's tokens come out, in the order it was scheduled: with drafts that were right,
 * with forks, and with what was learnt from the step.
 */
#include <stdlib.h>

#include "model_private.h"

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
    return !e->admitted && e->request->num_emitted > 0 && !e->request->waits_for_fork &&
           e->first + 1 == e->request->num_known;
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
    model_part(r);
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

/* Those who share its prompt have their first token from it, too. */
static void bring_first_tokens(struct model *m, const struct model_request *first, int64_t end_ns)
{
    for (uint32_t i = 0; i < first->num_samples; i++) {
        struct model_request *r = model_sample(first, i);

        if (r == NULL || r == first)
            continue;
        if (!r->emits_nothing)
            emit(m, r, end_ns);
        if (has_all(m, r))
            complete(m, r, r->num_computed, end_ns);
    }
}

static void land(struct model *m, const struct model_entry *e, int64_t end_ns)
{
    struct model_request *r = e->request;
    uint32_t wrong = 0, computed = e->first + e->num_tokens;
    bool decoded = is_decode(e), forks = r->waits_for_fork && computed == r->num_known;

    if (e->admitted && !e->resumed)
        r->tenant->counter += m->config.prompt_weight * r->num_prompt * (1 + e->num_followers);
    if (forks) {
        publish_after(m, r, computed, decoded);
        model_fork(m, r);
    }
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
    if (forks && e->samples)
        bring_first_tokens(m, r, end_ns);
    model_draw_beams(m, r);
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
