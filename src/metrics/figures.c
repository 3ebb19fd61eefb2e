/*
 * figures.c - the sums behind summary.json.
 *
 * Everything is summed in integers, 128 bits wide where a time is a factor; a quotient is taken
 * once, at the very end. Means weigh each row by its duration over first arrival .. end of the last
 * step; time without a row counts as an idle engine.
 */
#include "metrics/metrics_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

int figures_init(struct figures *f, struct pkv_err *err)
{
    struct pkv_histogram **all[] = {&f->ttft, &f->tpot, &f->itl, &f->max_gap, &f->e2e, &f->queue,
                                    &f->ttft_all, &f->e2e_all};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i] = pkv_histogram_create(err);
        if (!*all[i])
            return -1;
    }
    return 0;
}

void figures_finish(struct figures *f)
{
    pkv_histogram_destroy(f->ttft);
    pkv_histogram_destroy(f->tpot);
    pkv_histogram_destroy(f->itl);
    pkv_histogram_destroy(f->max_gap);
    pkv_histogram_destroy(f->e2e);
    pkv_histogram_destroy(f->queue);
    pkv_free(f->gaps);
    pkv_histogram_destroy(f->ttft_all);
    pkv_histogram_destroy(f->e2e_all);
    open_requests_free(&f->open);
}

static void raise_to(uint64_t *peak, int64_t value)
{
    if ((uint64_t)value > *peak)
        *peak = (uint64_t)value;
}

static void add_shared(struct figures *f, const struct pkv_step_row *row)
{
    uint64_t tables = (uint64_t)row->table_blocks, saved = tables - (uint64_t)row->used_blocks;
    f->tables_time += (__int128)tables * row->dur_ns;
    f->saved_time += (__int128)saved * row->dur_ns;
    if ((__int128)saved * f->peak_saved_tables <= (__int128)f->peak_saved * tables &&
        f->peak_saved_tables > 0)
        return;
    f->peak_saved = saved;
    f->peak_saved_tables = tables;
}

int figures_add_gap(struct figures *f, int64_t gap_ns, struct pkv_err *err)
{
    if (!f->has_window)
        return pkv_histogram_add(f->itl, gap_ns, 1, err);
    if (pkv_grow(&f->gaps, &f->gaps_capacity, f->num_gaps + 1, sizeof *f->gaps, err) < 0)
        return -1;
    f->gaps[f->num_gaps++] = gap_ns;
    return 0;
}

/* The gaps of this step, if it counts. */
static int settle_gaps(struct figures *f, bool counts, struct pkv_err *err)
{
    size_t num = counts ? f->num_gaps : 0;
    f->num_gaps = 0;
    for (size_t i = 0; i < num; i++)
        if (pkv_histogram_add(f->itl, f->gaps[i], 1, err) < 0)
            return -1;
    return 0;
}

/* How long a step's state lasts within the window. */
static int64_t overlap(const struct figures *f, const struct pkv_step_row *row)
{
    int64_t begin = row->time_ns, end = row->time_ns + row->dur_ns;
    begin = begin > f->after_ns ? begin : f->after_ns;
    end = end < f->until_ns ? end : f->until_ns;
    return end > begin ? end - begin : 0;
}

static bool is_within(const struct figures *f, int64_t ns)
{
    return ns >= f->after_ns && ns < f->until_ns;
}

static void read_counts(struct window_counts *out, const struct pkv_engine_figures *engine,
                        const struct pkv_cache_figures *cache)
{
    out->cache = *cache;
    out->link_busy_ns = engine->link_busy_ns;
#define COUNT(name) out->name = engine->name;
    ENGINE_COUNTS(COUNT)
#undef COUNT
}

static void count_step(struct figures *f, const struct pkv_step_row *row)
{
    struct pkv_engine_figures *s = &f->seen;
    s->num_steps++;
    s->scheduled_tokens += (uint64_t)row->sched_tokens;
    s->recomputed_tokens += (uint64_t)row->recomputed_tokens;
    s->output_tokens += (uint64_t)row->output_tokens;
    s->prompt_tokens += (uint64_t)row->prompt_tokens;
    s->queried_tokens += (uint64_t)row->queried_tokens;
    s->hit_tokens += (uint64_t)row->first_hit_tokens;
    s->preemptions += (uint64_t)row->preempted;
    s->resumed_queried_tokens += (uint64_t)row->resumed_queried_tokens;
    s->resumed_hit_tokens += (uint64_t)row->resumed_hit_tokens;
}

static void add_to_window(struct figures *f, const struct pkv_step_row *row,
                          const struct pkv_cache_figures *cache)
{
    PKV_ASSERT(row->counted);
    if (row->time_ns >= f->until_ns) {
        f->is_past = true;
        return;
    }
    read_counts(&f->within, row->counted, cache);
    if (row->time_ns < f->after_ns)
        f->before = f->within;
    else
        count_step(f, row);
}

int figures_add_row(struct figures *f, const struct pkv_step_row *row,
                    const struct pkv_cache_figures *cache, struct pkv_err *err)
{
    PKV_ASSERT(row->limit >= 0 && row->limit < PKV_LIMIT_COUNT);
    bool counts = !f->has_window || is_within(f, row->time_ns);
    __int128 dur = f->has_window ? overlap(f, row) : row->dur_ns;
    if (settle_gaps(f, counts, err) < 0)
        return -1;
    if (f->has_window)
        add_to_window(f, row, cache);
    if (!counts && dur == 0)
        return 0;
    f->used_time += row->used_blocks * dur;
    f->stored_time += row->stored_tokens * dur;
    f->running_time += row->running * dur;
    f->waiting_time += row->waiting * dur;
    f->reserved_time += row->reserved_slots * dur;
    f->internal_time += row->internal_slots * dur;
    f->external_time += row->external_slots * dur;
    f->rows_time += dur;
    add_shared(f, row);
    f->limit_time[row->limit] += dur;
    raise_to(&f->peak_used, row->used_blocks);
    raise_to(&f->peak_waiting, row->waiting);
    raise_to(&f->peak_running, row->running);
    if (!counts)
        return 0;
    return pkv_histogram_add(f->itl, row->regular_gap_ns, (uint64_t)row->regular_gaps, err);
}

int64_t request_queue_ns(const struct pkv_request *r)
{
    return r->admitted_ns == PKV_NO_TIME ? PKV_NO_TIME : r->admitted_ns - r->arrival_ns;
}

int64_t request_max_gap_ns(const struct pkv_request *r)
{
    return r->num_emitted < 2 ? PKV_NO_TIME : r->max_gap_ns;
}

/* Add a time that may not have happened. */
static int add_time(struct pkv_histogram *h, int64_t ns, struct pkv_err *err)
{
    return ns == PKV_NO_TIME ? 0 : pkv_histogram_add(h, ns, 1, err);
}

static int add_completed(struct figures *f, const struct pkv_request_row *row, struct pkv_err *err)
{
    const struct pkv_request *r = row->request;
    int64_t ttft = r->first_token_ns - r->arrival_ns;
    int64_t decode = row->finish_ns - r->first_token_ns;
    if (r->num_emitted > 1 && pkv_histogram_add(f->tpot, decode / (r->num_emitted - 1), 1, err) < 0)
        return -1;
    if ((f->target_ttft_ns == 0 || ttft <= f->target_ttft_ns) &&
        (f->target_itl_ns == 0 || request_max_gap_ns(r) <= f->target_itl_ns)) {
        f->good_requests++;
        f->good_output_tokens += r->num_emitted;
    }
    return pkv_histogram_add(f->e2e, row->finish_ns - r->arrival_ns, 1, err);
}

/* The same sentence but for its numbers. */
static bool same_kind(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    for (;;) {
        size_t of_a = strspn(a, digits), of_b = strspn(b, digits);
        if ((of_a > 0) != (of_b > 0))
            return false;
        a += of_a;
        b += of_b;
        if (*a != *b || !*a)
            return *a == *b;
        a++;
        b++;
    }
}

static void note_rejection(struct figures *f, const struct pkv_request_row *row)
{
    const struct pkv_request *r = row->request;
    uint64_t tokens = (uint64_t)r->seq.num_prompt_tokens + r->max_tokens;
    bool first = !f->rejected_reason[0];
    if (!first && (tokens <= f->rejected_tokens || !same_kind(row->reason, f->rejected_reason)))
        return;
    snprintf(f->rejected_reason, sizeof f->rejected_reason, "%s", row->reason);
    f->rejected_tokens = tokens;
}

static void set_notable(struct pkv_notable *n, const struct pkv_request *r, int64_t ns, uint64_t num)
{
    n->exists = true;
    n->is_cut = pkv_request_id(r, n->id, sizeof n->id) >= sizeof n->id;
    n->ns = ns;
    n->num = num;
}

static void note_notable(struct figures *f, const struct pkv_request_row *row)
{
    const struct pkv_request *r = row->request;
    int64_t wait = request_queue_ns(r), away = request_max_gap_ns(r);
    if (wait == PKV_NO_TIME && row->finish_ns != PKV_NO_TIME)
        wait = row->finish_ns - r->arrival_ns;
    if (wait != PKV_NO_TIME && wait > f->longest_wait.ns)
        set_notable(&f->longest_wait, r, wait, 0);
    if (wait == PKV_NO_TIME && row->status == PKV_REQUEST_UNFINISHED &&
        (!f->first_unadmitted.exists || r->arrival_ns < f->first_unadmitted.ns))
        set_notable(&f->first_unadmitted, r, r->arrival_ns, 0);
    if (r->num_preemptions > 0 && away != PKV_NO_TIME && away > f->longest_away.ns)
        set_notable(&f->longest_away, r, away, 0);
    if (r->num_preemptions > f->most_preempted.num)
        set_notable(&f->most_preempted, r, 0, r->num_preemptions);
    if (row->status == PKV_REQUEST_UNFINISHED &&
        (!f->first_unfinished.exists || r->arrival_ns < f->first_unfinished.ns))
        set_notable(&f->first_unfinished, r, r->arrival_ns, 0);
}

static void count_request(struct figures *f, const struct pkv_request_row *row)
{
    struct pkv_engine_figures *s = &f->seen;
    s->arrived++;
    s->completed += row->status == PKV_REQUEST_COMPLETED;
    s->rejected += row->status == PKV_REQUEST_REJECTED;
    s->aborted += row->status == PKV_REQUEST_ABORTED;
    s->unfinished += row->status == PKV_REQUEST_UNFINISHED;
    s->samples += row->request->sample.num > 1;
    s->sampled_requests += row->request->sample.num > 1 && row->request->sample.index == 0;
}

static int add_sample(struct figures *f, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct request_times times;
    if (open_requests_end(&f->open, row, &times, err) < 0 ||
        add_time(f->ttft_all, times.ttft_ns, err) < 0)
        return -1;
    return add_time(f->e2e_all, times.e2e_ns, err);
}

int figures_add_request(struct figures *f, const struct pkv_request_row *row, struct pkv_err *err)
{
    const struct pkv_request *r = row->request;
    if (f->has_window && !is_within(f, r->arrival_ns))
        return 0;
    count_request(f, row);
    f->num_with_priority += r->priority != 0;
    f->num_with_deadline += r->deadline_ns != PKV_NO_TIME;
    if (row->status == PKV_REQUEST_REJECTED)
        note_rejection(f, row);
    note_notable(f, row);
    if (r->sample.num > 1 && add_sample(f, row, err) < 0)
        return -1;
    if (add_time(f->queue, request_queue_ns(r), err) < 0)
        return -1;
    if (r->first_token_ns == PKV_NO_TIME)
        return 0;
    if (pkv_histogram_add(f->ttft, r->first_token_ns - r->arrival_ns, 1, err) < 0 ||
        add_time(f->max_gap, request_max_gap_ns(r), err) < 0)
        return -1;
    return row->status == PKV_REQUEST_COMPLETED ? add_completed(f, row, err) : 0;
}

static double divide(struct ratio r)
{
    return r.den > 0 ? (double)r.num / (double)r.den : 0.0;
}

static struct ratio per_second(uint64_t count, int64_t ns)
{
    return (struct ratio){(__int128)count * 1000000000, ns};
}

static void read_means(const struct figures *f, const struct pkv_summary *s, uint32_t block_size,
                       struct exact_means *m)
{
    __int128 time = s->makespan_ns, blocks = s->engine.cache.num_blocks;
    m->used_frac = (struct ratio){f->used_time, time * blocks};
    m->slot_use_frac = (struct ratio){f->stored_time, time * blocks * block_size};
    m->reserved_frac = (struct ratio){f->reserved_time, time * blocks * block_size};
    m->internal_frac = (struct ratio){f->internal_time, time * blocks * block_size};
    m->external_frac = (struct ratio){f->external_time, time * blocks * block_size};
    m->shared_frac = (struct ratio){f->saved_time, f->tables_time};
    m->peak_shared_frac = (struct ratio){f->peak_saved, f->peak_saved_tables};
    m->running = (struct ratio){f->running_time, time};
    m->waiting = (struct ratio){f->waiting_time, time};
    m->requests_per_s = per_second(s->engine.completed, s->makespan_ns);
    m->output_tokens_per_s = per_second(s->engine.output_tokens, s->makespan_ns);
    m->good_requests_per_s = per_second(s->good_requests, s->makespan_ns);
    m->good_output_tokens_per_s = per_second(s->good_output_tokens, s->makespan_ns);
    for (size_t i = 0; i < PKV_LIMIT_COUNT; i++)
        m->limit_frac[i] = (struct ratio){f->limit_time[i], time};
    if (time > f->rows_time)
        m->limit_frac[PKV_LIMIT_EMPTY].num += time - f->rows_time;
}

static int64_t makespan(const struct pkv_engine_figures *e)
{
    if (e->first_arrival_ns == PKV_NO_TIME || e->end_ns == PKV_NO_TIME)
        return 0;
    return e->end_ns - e->first_arrival_ns;
}

/* The part of the run that is in the window. */
static int64_t span_within(const struct figures *f, const struct pkv_engine_figures *e)
{
    if (makespan(e) == 0)
        return 0;
    int64_t begin = e->first_arrival_ns > f->after_ns ? e->first_arrival_ns : f->after_ns;
    int64_t end = e->end_ns < f->until_ns ? e->end_ns : f->until_ns;
    return end > begin ? end - begin : 0;
}

/* What came after the last step belongs to a window that no step left. */
static void read_differences(const struct figures *f, const struct pkv_engine_figures *whole,
                             struct pkv_engine_figures *out)
{
    struct window_counts within = f->within;
    const struct window_counts *before = &f->before;
    if (!f->is_past)
        read_counts(&within, whole, &whole->cache);
#define SUBTRACT(name) out->name = within.name - before->name;
    ENGINE_COUNTS(SUBTRACT)
#undef SUBTRACT
    out->link_busy_ns = within.link_busy_ns - before->link_busy_ns;
    out->swap_block_bytes = whole->swap_block_bytes;
    out->is_warm = whole->is_warm;
    out->warm_blocks = whole->warm_blocks;
    out->warm_blocks_left_out = whole->warm_blocks_left_out;
    out->peak_host_blocks = whole->peak_host_blocks;
    out->cache = whole->cache;
    out->cache.pool.allocated = within.cache.pool.allocated - before->cache.pool.allocated;
    out->cache.pool.released = within.cache.pool.released - before->cache.pool.released;
    out->cache.num_evicted = within.cache.num_evicted - before->cache.num_evicted;
    out->cache.num_copied = within.cache.num_copied - before->cache.num_copied;
}

/* The engine's counts give way to those of the window. */
static void read_window(const struct figures *f, struct pkv_summary *out)
{
    const struct pkv_engine_figures whole = out->engine;
    out->has_window = true;
    out->after_ns = f->after_ns;
    out->until_ns = f->until_ns == INT64_MAX ? 0 : f->until_ns;
    out->whole.arrived = whole.arrived;
    out->whole.completed = whole.completed;
    out->whole.rejected = whole.rejected;
    out->whole.aborted = whole.aborted;
    out->whole.unfinished = whole.unfinished;
    out->whole.preemptions = whole.preemptions;
    out->whole.makespan_ns = makespan(&whole);
    out->makespan_ns = span_within(f, &whole);
    out->engine = f->seen;
    out->engine.outcome = whole.outcome;
    out->engine.first_arrival_ns = whole.first_arrival_ns;
    out->engine.end_ns = whole.end_ns;
    memcpy(out->engine.diagnosis, whole.diagnosis, sizeof whole.diagnosis);
    read_differences(f, &whole, &out->engine);
}

void figures_read(const struct figures *f, const struct pkv_engine_figures *engine,
                  uint32_t block_size, struct exact_means *means, struct pkv_summary *out)
{
    memset(out, 0, sizeof *out);
    out->engine = *engine;
    out->makespan_ns = makespan(engine);
    out->has_sessions = engine->turns > 0;
    out->has_samples = engine->samples > 0;
    if (f->has_window)
        read_window(f, out);
    out->peak_used_blocks = f->peak_used;
    out->peak_waiting = f->peak_waiting;
    out->peak_running = f->peak_running;
    pkv_histogram_read(f->ttft, &out->ttft);
    pkv_histogram_read(f->tpot, &out->tpot);
    pkv_histogram_read(f->itl, &out->itl);
    pkv_histogram_read(f->max_gap, &out->max_gap);
    pkv_histogram_read(f->e2e, &out->e2e);
    pkv_histogram_read(f->queue, &out->queue);
    pkv_histogram_read(f->ttft_all, &out->ttft_all);
    pkv_histogram_read(f->e2e_all, &out->e2e_all);
    out->target_ttft_ns = f->target_ttft_ns;
    out->target_itl_ns = f->target_itl_ns;
    out->has_targets = f->target_ttft_ns > 0 || f->target_itl_ns > 0;
    memcpy(out->rejected_reason, f->rejected_reason, sizeof out->rejected_reason);
    out->num_with_priority = f->num_with_priority;
    out->num_with_deadline = f->num_with_deadline;
    out->longest_wait = f->longest_wait;
    out->longest_away = f->longest_away;
    out->most_preempted = f->most_preempted;
    out->first_unfinished = f->first_unfinished;
    if (f->first_unadmitted.exists && engine->end_ns - f->first_unadmitted.ns > out->longest_wait.ns) {
        out->longest_wait = f->first_unadmitted;
        out->longest_wait.ns = engine->end_ns - f->first_unadmitted.ns;
    }
    if (f->first_unfinished.exists)
        out->first_unfinished.ns = engine->end_ns - f->first_unfinished.ns;
    out->good_requests = f->good_requests;
    out->good_output_tokens = f->good_output_tokens;
    read_means(f, out, block_size, means);
    out->mean_used_frac = divide(means->used_frac);
    out->mean_slot_use_frac = divide(means->slot_use_frac);
    out->waste_reserved_frac = divide(means->reserved_frac);
    out->waste_internal_frac = divide(means->internal_frac);
    out->waste_external_frac = divide(means->external_frac);
    out->mean_shared_frac = divide(means->shared_frac);
    out->peak_shared_frac = divide(means->peak_shared_frac);
    out->mean_running = divide(means->running);
    out->mean_waiting = divide(means->waiting);
    out->requests_per_s = divide(means->requests_per_s);
    out->output_tokens_per_s = divide(means->output_tokens_per_s);
    for (size_t i = 0; i < PKV_LIMIT_COUNT; i++)
        out->limit_frac[i] = divide(means->limit_frac[i]);
}
