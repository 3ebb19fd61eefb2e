/*
 * model_run.c - virtual time: arrivals due, aborts due, schedule, the model runs, tokens and ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

const char *model_status_name(enum model_status status)
{
    static const char *const names[] = { "waiting", "running", "preempted", "completed",
                                         "aborted", "rejected", "unfinished" };

    return names[status];
}

struct model *model_create(const struct model_config *config, const struct pkv_request_spec *specs,
                           size_t num_specs)
{
    struct model *m = model_alloc(1, sizeof *m);

    m->config = *config;
    m->specs = specs;
    m->num_specs = num_specs;
    model_blocks_init(m);
    m->requests = model_alloc(num_specs, sizeof *m->requests);
    m->tenants = model_alloc(num_specs, sizeof *m->tenants);
    m->entries = model_alloc(num_specs, sizeof *m->entries);
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
    model_blocks_finish(m);
    for (size_t i = 0; i < m->num_arrived; i++) {
        free(m->requests[i].id);
        free(m->requests[i].text);
        free(m->requests[i].table);
    }
    free(m->requests);
    free(m->tenants);
    free(m->entries);
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
    r->table = model_alloc(m->config.num_blocks, sizeof(struct model_block *));
    spell_out(r, &spec->content);
}

/* Could it never run, even alone? */
static bool is_oversized(const struct model *m, const struct model_request *r)
{
    const struct model_config *c = &m->config;
    uint64_t allowed = r->max_tokens > 0 ? r->max_tokens : 1;
    uint64_t positions = (uint64_t)r->num_prompt + r->num_output - 1;
    uint32_t whole = r->num_prompt;

    if (r->num_prompt + allowed > c->max_model_len)
        return true;
    if ((c->admit == MODEL_ADMIT_RESERVE_MAX || c->admit == MODEL_ADMIT_STATIC_BATCH) &&
        r->num_prompt + allowed - 1 > positions)
        positions = r->num_prompt + allowed - 1;
    if (positions > c->max_model_len - 1)
        positions = c->max_model_len - 1;
    if (model_blocks_for(m, positions) > c->num_blocks)
        return true;
    if (whole > c->long_prefill_token_threshold)
        whole = c->long_prefill_token_threshold;
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
    case MODEL_WAITING: case MODEL_RUNNING: case MODEL_PREEMPTED: abort();
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
        if (m->config.reject_oversized && is_oversized(m, r)) {
            r->status = MODEL_REJECTED;
            m->row.rejected++;
            end_request(m, r);
        } else {
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

static void take_aborts(struct model *m)
{
    struct model_request *r;

    while ((r = first_due_abort(m)) != NULL) {
        if (r->status == MODEL_RUNNING) {
            if (m->config.publish >= MODEL_PUBLISH_CHUNK_END)
                model_publish(m, r, r->num_computed);
            model_release(m, r);
            DL_DELETE(m->running, r);
            m->num_left++;
        } else {
            DL_DELETE(m->waiting, r);
            m->last_left = r->tenant;
        }
        r->status = MODEL_ABORTED;
        r->finish_ns = m->now;
        m->aborted[m->num_aborted++] = r;
        end_request(m, r);
    }
}

size_t model_num_waiting(const struct model *m)
{
    const struct model_request *r;
    size_t num = 0;

    DL_COUNT(m->waiting, r, num);
    return num;
}

size_t model_num_running(const struct model *m)
{
    const struct model_request *r;
    size_t num = 0;

    DL_COUNT(m->running, r, num);
    return num;
}

/* The next arrival or abort of a live request; PKV_NO_TIME when nothing is to come. */
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

/* Somebody waits, and nothing was scheduled or given up: the same would happen until somebody comes
 * or goes. */
static bool is_idle(const struct model *m)
{
    return m->num_entries == 0 && m->num_preempted == 0 &&
           (m->waiting != NULL || m->running != NULL);
}

/* The steps that the row stands for are gone through for their passes. */
static int64_t stretched(struct model *m, int64_t dur)
{
    int64_t next = next_event(m);

    if (m->config.every_step || !is_idle(m) || next == PKV_NO_TIME || next - m->now < dur)
        return dur;
    for (int64_t begin = m->now + dur; begin < next; begin += dur)
        model_miss(m, m->num_passes);
    return next - m->now;
}

static void fill_row(struct model *m)
{
    struct model_row *row = &m->row;

    row->step = (int64_t)m->totals.num_steps;
    row->time_ns = m->now;
    row->waiting = (int64_t)model_num_waiting(m);
    row->running = (int64_t)model_num_running(m);
    row->free_blocks = m->free_sched;
    row->used_blocks = (int64_t)m->config.num_blocks - m->free_sched;
    row->cached_blocks = model_count_cached_free(m);
    row->preempted = (int64_t)m->num_preempted;
    row->aborted = (int64_t)m->num_aborted;
    row->evicted_blocks = (int64_t)m->num_evicted;
    row->stored_tokens = (int64_t)model_count_stored(m);
    row->limit = (int64_t)m->limit;
    row->dur_ns = stretched(m, duration(m));
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

static void count_idle(struct model *m)
{
    if (!is_idle(m) || next_event(m) != PKV_NO_TIME)
        m->num_idle = 0;
    else if (++m->num_idle >= m->config.stuck_steps)
        m->totals.stuck = m->ended = true;
}

static void do_step(struct model *m)
{
    model_schedule(m);
    fill_row(m);
    model_commit(m, m->now + m->row.dur_ns);
    m->row.finished = (int64_t)m->num_finished;
    m->row.free_blocks_end = model_count_free(m);
    m->totals.output_tokens += m->num_generated;
    m->totals.num_steps++;
    end_finished(m);
    model_write_line(m);
    m->now += m->row.dur_ns;
    m->totals.end_ns = m->now;
    count_idle(m);
    if (m->config.max_steps > 0 && m->totals.num_steps >= m->config.max_steps)
        m->ended = true;
}

static void begin_step(struct model *m)
{
    memset(&m->row, 0, sizeof m->row);
    m->num_entries = m->num_preempted = m->num_aborted = m->num_finished = m->num_evicted = 0;
    m->num_generated = 0;
    m->num_passes = 0;
}

bool model_next(struct model *m)
{
    while (!m->ended) {
        if (m->waiting == NULL && m->running == NULL) {
            if (m->num_arrived == m->num_specs)
                break;
            if (m->specs[m->num_arrived].arrival_ns > m->now)
                m->now = m->specs[m->num_arrived].arrival_ns;
        }
        begin_step(m);
        take_arrivals(m);
        take_aborts(m);
        if (m->waiting == NULL && m->running == NULL && m->num_aborted == 0)
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
