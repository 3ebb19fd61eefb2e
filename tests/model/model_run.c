/*
 * model_run.c - virtual time: arrivals due, aborts due, schedule, the model runs, tokens and ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

const char *model_status_name(enum model_status status)
{
    static const char *const names[] = { "waiting", "running", "preempted", "swapped", "resuming",
                                         "completed", "aborted", "rejected", "unfinished" };

    return names[status];
}

struct model *model_create(const struct model_config *config, const struct pkv_request_spec *specs,
                           size_t num_specs)
{
    struct model *m = model_alloc(1, sizeof *m);

    m->config = *config;
    model_expand(m, specs, num_specs);
    num_specs = m->num_specs;
    specs = m->specs;
    model_blocks_init(m);
    m->requests = model_alloc(num_specs, sizeof *m->requests);
    m->tenants = model_alloc(num_specs, sizeof *m->tenants);
    m->entries = model_alloc(num_specs, sizeof *m->entries);
    m->flying.entries = model_alloc(num_specs, sizeof *m->entries);
    m->landing.entries = model_alloc(num_specs, sizeof *m->entries);
    m->back = model_alloc(num_specs, sizeof *m->back);
    m->preempted = model_alloc(num_specs, sizeof(struct model_request *));
    m->aborted = model_alloc(num_specs, sizeof(struct model_request *));
    m->finished = model_alloc(num_specs, sizeof(struct model_request *));
    m->order = model_alloc(num_specs, sizeof(struct model_request *));
    m->evicted = model_alloc(config->num_blocks, sizeof *m->evicted);
    m->now = num_specs > 0 ? specs[0].arrival_ns : 0;
    m->totals.first_arrival_ns = num_specs > 0 ? m->now : PKV_NO_TIME;
    m->totals.end_ns = PKV_NO_TIME;
    m->num_left_at_refusal = SIZE_MAX;
    m->ratio = config->ratio_init;
    return m;
}

void model_destroy(struct model *m)
{
    if (m == NULL)
        return;
    model_transfers_due(m, INT64_MAX);
    model_blocks_finish(m);
    for (size_t i = 0; i < m->num_arrived; i++) {
        free(m->requests[i].id);
        free(m->requests[i].text);
        for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
            free(m->requests[i].table[g]);
        free(m->requests[i].on_host);
    }
    for (size_t i = 0; i < m->num_entries; i++)
        model_forget_tables(&m->entries[i]);
    model_forget_specs(m);
    free(m->requests);
    free(m->tenants);
    free(m->entries);
    free(m->flying.entries);
    free(m->landing.entries);
    free(m->back);
    free(m->preempted);
    free(m->aborted);
    free(m->finished);
    free(m->order);
    free(m->evicted);
    free(m->line);
    free(m);
}

static void spell_out(struct model_request *r, const struct pkv_content *content)
{
    struct model_token *t;

    r->text = model_alloc(1 + (size_t)r->num_prompt + r->num_output, sizeof *r->text);
    t = r->text;
    *t++ = (struct model_token){ content->root, UINT64_MAX };
    for (size_t i = 0; i < content->num_prompt_spans; i++)
        for (uint32_t k = 0; k < content->prompt[i].count; k++)
            *t++ = (struct model_token){ content->prompt[i].origin,
                                         (uint64_t)content->prompt[i].first + k };
}

static void read_spec(const struct model *m, struct model_request *r,
                      const struct pkv_request_spec *spec)
{
    char number[32];
    uint64_t longest;

    snprintf(number, sizeof number, "%llu", (unsigned long long)spec->row);
    r->id = strcpy(model_alloc(strlen(spec->id != NULL ? spec->id : number) + 1, 1),
                   spec->id != NULL ? spec->id : number);
    r->row = spec->row;
    r->arrival_ns = spec->arrival_ns;
    r->abort_ns = spec->abort_ns;
    r->deadline_ns = spec->deadline_ns;
    r->priority = spec->priority;
    r->num_prompt = r->num_known = spec->num_prompt_tokens;
    r->num_output = spec->num_output_tokens > 0 ? spec->num_output_tokens : 1;
    r->emits_nothing = spec->num_output_tokens == 0;
    r->max_tokens = spec->max_tokens;
    r->output_origin = spec->content.output_origin;
    r->output_first = spec->content.output_first;
    r->admitted_ns = r->first_token_ns = r->last_token_ns = r->finish_ns = PKV_NO_TIME;
    /* An admission is padded with all drafts, whatever a later step may verify of them. */
    longest = (uint64_t)r->num_prompt + r->num_output + m->config.lookahead + m->config.num_drafts;
    for (uint32_t g = 0; g < m->config.num_groups; g++)
        r->table[g] = model_alloc(1 + (size_t)model_table_length(m, g, longest),
                                  sizeof(struct model_block *));
    r->on_host = model_alloc(m->config.num_blocks, sizeof *r->on_host);
    r->num_samples = m->config.fork && spec->num_samples > 1 ? spec->num_samples : 1;
    r->samples = r->num_samples > 1 ? r - spec->sample : r;
    r->waits_for_fork = r->num_samples > 1;
    r->is_beam = r->num_samples > 1 && spec->is_beam_search;
    r->prompt_only = spec->is_beam_search && spec->num_samples > 1;
    spell_out(r, &spec->content);
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t model_most_ahead(const struct model *m, uint32_t num_output)
{
    const struct model_config *c = &m->config;
    uint64_t verified = at_most(at_most(1 + c->num_drafts, c->long_prefill_token_threshold),
                                c->max_num_batched_tokens);

    return c->lookahead + (num_output > 1 ? verified - 1 : 0);
}

static uint64_t num_at_once(const struct model *m)
{
    return m->config.async ? 2 : 1;
}

uint64_t model_batches_at_once(const struct model *m)
{
    return num_at_once(m) * m->config.max_num_batched_tokens;
}

uint64_t model_longest_reach(const struct model *m)
{
    uint64_t chunk = at_most(m->config.max_num_batched_tokens,
                             m->config.long_prefill_token_threshold);

    return num_at_once(m) * chunk + m->config.lookahead;
}

/* Could it never run, even alone? */
static bool is_oversized(const struct model *m, const struct model_request *r,
                         const struct pkv_request_spec *spec)
{
    const struct model_config *c = &m->config;
    uint64_t allowed = r->max_tokens > 0 ? r->max_tokens : 1;
    uint64_t positions = (uint64_t)r->num_prompt + r->num_output - 1;
    uint64_t told = at_most(r->num_prompt + allowed - 1 + model_most_ahead(m, r->max_tokens),
                            c->max_model_len);
    uint64_t step = model_longest_reach(m);
    uint32_t whole = r->num_prompt;

    if (r->num_prompt + allowed > c->max_model_len)
        return true;
    positions = at_most(positions, c->max_model_len - 1);
    if (c->async && allowed > r->num_output && positions < c->max_model_len - 1)
        positions++;   /* it goes on for a step, as its end is seen too late */
    positions = at_most(positions + model_most_ahead(m, r->num_output), c->max_model_len);
    if ((c->admit == MODEL_ADMIT_RESERVE_MAX || c->admit == MODEL_ADMIT_STATIC_BATCH) &&
        told > positions)
        positions = told;
    if (whole > c->long_prefill_token_threshold)
        whole = c->long_prefill_token_threshold;
    if (c->admit == MODEL_ADMIT_WHOLE_PROMPT && model_batches_at_once(m) > step)
        step = model_batches_at_once(m);   /* as the gate counts */
    if (r->num_samples > 1 ? model_are_oversized(m, r, spec, step)
                           : model_most_blocks_of_all(m, positions, step) > c->num_blocks)
        return true;
    return !c->chunked_prefill && whole > c->max_num_batched_tokens;
}

static void end_request(struct model *m, struct model_request *r)
{
    r->gone = true;
    m->order[m->num_order++] = r;
    switch (r->status) {
    case MODEL_COMPLETED:  m->totals.completed++;  break;
    case MODEL_ABORTED:    m->totals.aborted++;    break;
    case MODEL_REJECTED:   m->totals.rejected++;   break;
    case MODEL_UNFINISHED: m->totals.unfinished++; break;
    case MODEL_WAITING: case MODEL_RUNNING: case MODEL_PREEMPTED: case MODEL_SWAPPED:
    case MODEL_RESUMING: abort();
    }
}

static void take_arrivals(struct model *m)
{
    while (m->num_arrived < m->num_specs && m->specs[m->num_arrived].arrival_ns <= m->now) {
        struct model_request *r = &m->requests[m->num_arrived];

        r->tenant = model_tenant(m, m->specs[m->num_arrived].tenant);
        r->place = (int64_t)m->num_arrived;
        read_spec(m, r, &m->specs[m->num_arrived++]);
        m->totals.arrived++;
        if (m->config.reject_oversized && is_oversized(m, r, &m->specs[m->num_arrived - 1])) {
            r->status = MODEL_REJECTED;
            m->row.rejected++;
            end_request(m, r);
        } else if (!model_follows(r)) {
            model_comes(m, r);
            model_join(m, r);
        }
    }
}

static struct model_request *first_due_abort(const struct model *m)
{
    struct model_request *due = NULL;

    for (size_t i = 0; i < m->num_arrived; i++) {
        struct model_request *r = &m->requests[i];

        if (!r->gone && r->abort_ns != PKV_NO_TIME && r->abort_ns <= m->now &&
            (due == NULL || r->abort_ns < due->abort_ns))
            due = r;
    }
    return due;
}

/* r leaves the queue; the next of its samples comes into its place. */
static void replace_waiting(struct model *m, struct model_request *r)
{
    struct model_request *behind = r->next, *other = NULL;

    for (uint32_t i = r->num_samples; i-- > 0; )
        if (&r->samples[i] != r && model_sample(r, i) != NULL)
            other = &r->samples[i];
    DL_DELETE(m->waiting, r);
    m->last_left = r->tenant;
    if (other == NULL)
        return;
    other->fronted = r->fronted;
    other->tailed = r->tailed;
    other->rank = r->rank;
    model_comes(m, other);
    if (behind == NULL)
        DL_APPEND(m->waiting, other);
    else
        DL_PREPEND_ELEM(m->waiting, behind, other);
}

static void take_aborts(struct model *m)
{
    struct model_request *r;

    while ((r = first_due_abort(m)) != NULL) {
        if (r->status == MODEL_RUNNING) {
            if (m->config.publish >= MODEL_PUBLISH_CHUNK_END)
                model_publish(m, r, r->num_computed - model_num_flying(m, r));
            model_release(m, r);
            DL_DELETE(m->running, r);
            m->num_left++;
        } else if (r->status == MODEL_RESUMING) {
            model_abort_resuming(m, r);
        } else if (!model_follows(r)) {
            replace_waiting(m, r);
        }
        model_forget_copies(m, r);
        r->status = MODEL_ABORTED;
        model_part(r);
        r->finish_ns = m->now;
        m->aborted[m->num_aborted++] = r;
        end_request(m, r);
    }
}

size_t model_num_queued(const struct model *m)
{
    const struct model_request *r;
    size_t num = 0;

    DL_COUNT(m->waiting, r, num);
    return num;
}

size_t model_num_waiting(const struct model *m)
{
    size_t num = 0;

    for (const struct model_request *r = m->waiting; r != NULL; r = r->next)
        num += model_gang_size(r);
    return num;
}

size_t model_num_running(const struct model *m)
{
    const struct model_request *r;
    size_t num = 0;

    DL_COUNT(m->running, r, num);
    return num;
}

static bool is_empty(const struct model *m)
{
    return m->waiting == NULL && m->running == NULL && m->resuming == NULL;
}

/* The next arrival, abort of a live request, or end of a transfer; PKV_NO_TIME when nothing is to come. */
static int64_t next_event(const struct model *m)
{
    int64_t next = PKV_NO_TIME;

    if (m->num_arrived < m->num_specs)
        next = m->specs[m->num_arrived].arrival_ns;
    for (size_t i = 0; i < m->num_arrived; i++) {
        const struct model_request *r = &m->requests[i];

        if (!r->gone && r->abort_ns != PKV_NO_TIME && (next == PKV_NO_TIME || r->abort_ns < next))
            next = r->abort_ns;
    }
    if (m->transfers != NULL && (next == PKV_NO_TIME || m->transfers->done_ns < next))
        next = m->transfers->done_ns;
    return next;
}

static int64_t duration(const struct model *m)
{
    const struct pkv_step_time *t = &m->config.step_time;
    const struct model_row *row = &m->row;
    int64_t prefill = row->prefill_tokens * t->per_prefill_token_ns;

    if (t->law == PKV_STEP_TIME_FIXED)
        return t->fixed_ns;
    return (prefill > t->base_ns ? prefill : t->base_ns) + row->decode_tokens * t->per_decode_ns +
           row->context_tokens * t->per_context_token_ns;
}

/* Somebody waits, and nothing was scheduled, given up or let out of a window: the same would happen until
 * somebody comes or goes. */
static bool is_idle(const struct model *m)
{
    return m->num_entries == 0 && m->num_preempted == 0 && m->num_back == 0 &&
           m->free_sched == m->free_before &&
           (!m->landing.exists || m->landing.num_entries == 0) && !is_empty(m);
}

/* The steps that the row stands for are gone through for their passes. */
static int64_t stretched(struct model *m, int64_t dur)
{
    int64_t next = next_event(m);

    if (dur == 0 || m->config.every_step || !is_idle(m) || next == PKV_NO_TIME || next - m->now < dur)
        return dur;
    for (int64_t begin = m->now + dur; begin < next; begin += dur)
        model_miss(m, m->num_passes);
    return next - m->now;
}

static void copy_batch(struct model_batch *to, const struct model_entry *entries, size_t num)
{
    memcpy(to->entries, entries, num * sizeof *entries);
    to->num_entries = num;
    to->exists = true;
}

/* What was scheduled lands in this step, or takes the place of what flew until now. */
static void take_off(struct model *m)
{
    struct model_batch *now = m->config.async ? &m->flying : &m->landing;

    m->landing.exists = false;
    if (m->config.async && m->flying.exists) {
        copy_batch(&m->landing, m->flying.entries, m->flying.num_entries);
        m->landing.time_ns = m->flying.time_ns;
        m->landing.lesson = m->flying.lesson;
        m->landing.dur_ns = m->flying.dur_ns;
    }
    copy_batch(now, m->entries, m->num_entries);
    now->lesson = m->lesson;
    now->time_ns = m->now;
    now->dur_ns = duration(m);
}

static int64_t row_duration(const struct model *m)
{
    if (m->config.row_ns > 0)
        return m->config.row_ns;
    return m->landing.exists ? m->landing.dur_ns : 0;
}

static void fill_row(struct model *m)
{
    struct model_row *row = &m->row;

    row->step = (int64_t)m->totals.num_steps;
    row->time_ns = m->now;
    row->waiting = (int64_t)model_num_waiting(m);
    row->running = (int64_t)(model_num_running(m) + model_num_resuming(m));
    row->free_blocks = m->free_sched;
    row->used_blocks = (int64_t)m->config.num_blocks - m->free_sched;
    row->cached_blocks = model_count_cached_free(m);
    row->preempted = (int64_t)m->num_preempted;
    row->aborted = (int64_t)m->num_aborted;
    row->evicted_blocks = (int64_t)m->num_evicted;
    row->stored_tokens = (int64_t)model_count_stored(m);
    row->limit = (int64_t)m->limit;
    take_off(m);
    row->dur_ns = stretched(m, row_duration(m));
    m->totals.preemptions += m->num_preempted;
    row->preemptions_total = (int64_t)m->totals.preemptions;
    m->totals.scheduled_tokens += (uint64_t)row->sched_tokens;
    m->totals.recomputed_tokens += (uint64_t)row->recomputed_tokens;
}

static void end_finished(struct model *m)
{
    for (size_t i = 0; i < m->num_finished; i++)
        end_request(m, m->finished[i]);
}

static void count_idle(struct model *m, bool was_idle)
{
    if (!was_idle || next_event(m) != PKV_NO_TIME)
        m->num_idle = 0;
    else if (++m->num_idle >= m->config.stuck_steps)
        m->totals.stuck = m->ended = true;
}

static void do_step(struct model *m)
{
    bool was_idle;

    model_schedule(m);
    fill_row(m);
    was_idle = is_idle(m);
    model_commit(m, m->now + m->row.dur_ns);
    m->row.finished = (int64_t)m->num_finished;
    m->row.free_blocks_end = model_count_free(m);
    m->totals.output_tokens += m->num_generated;
    m->totals.num_steps++;
    end_finished(m);
    model_write_line(m);
    m->now += m->row.dur_ns;
    m->totals.end_ns = m->now;
    count_idle(m, was_idle);
    if (is_empty(m))
        m->flying.exists = false;   /* for nobody any more */
    if (m->config.max_steps > 0 && m->totals.num_steps >= m->config.max_steps)
        m->ended = true;
}

static void begin_step(struct model *m)
{
    memset(&m->row, 0, sizeof m->row);
    for (size_t i = 0; i < m->num_entries; i++)
        model_forget_tables(&m->entries[i]);
    m->num_entries = m->num_preempted = m->num_aborted = m->num_finished = m->num_evicted = 0;
    m->num_generated = m->num_back = 0;
    m->num_passes = 0;
    m->num_promised = 0;
    m->was_stalled = m->stalled;
    m->stalled = false;
    model_transfers_due(m, m->now);
}

bool model_next(struct model *m)
{
    while (!m->ended) {
        if (is_empty(m)) {
            if (m->num_arrived == m->num_specs)
                break;
            if (m->specs[m->num_arrived].arrival_ns > m->now)
                m->now = m->specs[m->num_arrived].arrival_ns;
        }
        begin_step(m);
        take_arrivals(m);
        take_aborts(m);
        if (is_empty(m) && m->num_aborted == 0)
            continue;
        do_step(m);
        return true;
    }
    m->ended = true;
    return false;
}

void model_stop(struct model *m)
{
    m->ended = true;
    model_transfers_due(m, INT64_MAX);
    for (size_t i = 0; i < m->num_arrived; i++) {
        struct model_request *r = &m->requests[i];

        if (r->gone)
            continue;
        if (r->status == MODEL_RUNNING)
            model_release(m, r);
        r->status = MODEL_UNFINISHED;
        end_request(m, r);
    }
    m->waiting = m->running = NULL;
}

const struct model_row *model_row(const struct model *m) { return &m->row; }
const char *model_line(const struct model *m) { return m->line; }
size_t model_num_ended(const struct model *m) { return m->num_order; }
const struct model_request *model_ended(const struct model *m, size_t i) { return m->order[i]; }
struct model_totals model_totals(const struct model *m) { return m->totals; }
