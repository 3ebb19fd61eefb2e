/*
 * engine_log.c - the step log in the form of the engine's own recordings, one JSON object a step.
 *
 * A record mixes two moments: what schedule decided, and what is there after the tokens came out.
 * The first half is written down when the plan is made, as later the tables have moved on. Block 0
 * is the engine's null block, so a recorded block id is ours plus 1.
 *
 *   keys      step new resumed sched preempted [aborted] finished gen [updated_step] free_sched free
 *             [waiting running] n_waiting n_running preempt_total [cached_blocks] [blocks evicted]
 *             [spec]
 *   blocks    new requests first, then running, then resumed ones: whole tables for those admitted,
 *             for running ones what they got
 */
#include "base/alloc.h"
#include "base/out.h"
#include "metrics/metrics_private.h"

struct pkv_engine_log {
    struct pkv_engine_log_config config;
    struct pkv_text decided, blocks;     /* owned; of the plan: admissions .. preemptions; tables */
    struct pkv_text aborted, finished;   /* owned; lists of ids */
    struct pkv_text line, id;            /* owned */
    struct pkv_request **queue;          /* [queue_capacity], owned; scratch */
    size_t queue_capacity;
    uint32_t free_after_schedule;
};

struct pkv_engine_log *pkv_engine_log_create(const struct pkv_engine_log_config *config,
                                             struct pkv_err *err)
{
    struct pkv_engine_log *log = pkv_alloc(1, sizeof *log, err);
    if (log)
        log->config = *config;
    return log;
}

void pkv_engine_log_destroy(struct pkv_engine_log *log)
{
    if (!log)
        return;
    pkv_text_free(&log->decided);
    pkv_text_free(&log->blocks);
    pkv_text_free(&log->aborted);
    pkv_text_free(&log->finished);
    pkv_text_free(&log->line);
    pkv_text_free(&log->id);
    pkv_free(log->queue);
    pkv_free(log);
}

static int out_of_memory(struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a line of the engine log");
}

static void comma(struct pkv_text *t)
{
    if (t->length > 0 && t->text[t->length - 1] != '[' && t->text[t->length - 1] != '{')
        pkv_text_add(t, ",");
}

static void add_number(struct pkv_text *t, const char *key, uint64_t n)
{
    pkv_text_add(t, key);
    pkv_text_u64(t, n);
}

static void add_id(struct pkv_engine_log *log, struct pkv_text *t, const struct pkv_request *r)
{
    const char *id = request_id(&log->id, r, NULL);
    if (id)
        pkv_text_json(t, id);
    else
        t->failed = 1;
}

/* ["id",n] */
static void add_pair(struct pkv_engine_log *log, struct pkv_text *t, const struct pkv_request *r,
                     uint32_t n)
{
    comma(t);
    pkv_text_add(t, "[");
    add_id(log, t, r);
    pkv_text_add(t, ",");
    pkv_text_u64(t, n);
    pkv_text_add(t, "]");
}

static void add_listed(struct pkv_engine_log *log, struct pkv_text *t, const struct pkv_request *r)
{
    comma(t);
    add_id(log, t, r);
}

static void add_admissions(struct pkv_engine_log *log, const struct pkv_plan *plan, bool resumed)
{
    struct pkv_text *t = &log->decided;
    pkv_text_add(t, resumed ? "],\"resumed\":[" : "\"new\":[");
    for (size_t i = 0; i < plan->num_admissions; i++) {
        const struct pkv_plan_admission *a = &plan->admissions[i];
        if (a->resumed == resumed)
            add_pair(log, t, a->ref.request, a->num_hit_tokens);
    }
}

static void add_decisions(struct pkv_engine_log *log, const struct pkv_plan *plan)
{
    struct pkv_text *t = &log->decided;
    add_admissions(log, plan, false);
    add_admissions(log, plan, true);
    pkv_text_add(t, "],\"sched\":[");
    for (size_t i = 0; i < plan->num_entries; i++)
        add_pair(log, t, plan->entries[i].ref.request, plan->entries[i].num_tokens);
    pkv_text_add(t, "],\"preempted\":[");
    for (size_t i = 0; i < plan->num_preemptions; i++)
        add_listed(log, t, plan->preemptions[i].ref.request);
    pkv_text_add(t, "]");
}

/* The blocks an entry got in this step, one list a group; nothing when it got none. */
static void add_blocks(struct pkv_engine_log *log, const struct pkv_plan_entry *entry,
                       uint32_t num_groups)
{
    struct pkv_text *t = &log->blocks;
    const struct pkv_seq *seq = &entry->ref.request->seq;
    bool got = false;
    for (uint32_t g = 0; g < num_groups; g++)
        got |= seq->tables[g].num > entry->num_blocks_before[g];
    if (!got)
        return;
    add_listed(log, t, entry->ref.request);
    pkv_text_add(t, ":[");
    for (uint32_t g = 0; g < num_groups; g++) {
        pkv_text_add(t, g ? ",[" : "[");
        for (uint32_t i = entry->num_blocks_before[g]; i < seq->tables[g].num; i++) {
            pkv_block_id id = seq->tables[g].ids[i];
            comma(t);
            pkv_text_u64(t, id == PKV_BLOCK_NULL ? 0 : (uint64_t)id + 1);
        }
        pkv_text_add(t, "]");
    }
    pkv_text_add(t, "]");
}

static void add_drafts(struct pkv_engine_log *log, const struct pkv_plan *plan)
{
    struct pkv_text *t = &log->blocks;
    pkv_text_add(t, ",\"spec\":{");
    for (size_t i = 0; i < plan->num_entries; i++) {
        if (plan->entries[i].num_drafts == 0)
            continue;
        add_listed(log, t, plan->entries[i].ref.request);
        add_number(t, ":", plan->entries[i].num_drafts);
    }
    pkv_text_add(t, "}");
}

static int add_tables(struct pkv_engine_log *log, const struct pkv_cache *cache,
                      const struct pkv_plan *plan, struct pkv_err *err)
{
    static const enum pkv_entry_kind order[] = {PKV_ENTRY_NEW, PKV_ENTRY_RUNNING,
                                                PKV_ENTRY_RESUMED};
    struct pkv_text *t = &log->blocks;
    pkv_text_add(t, ",\"blocks\":{");
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < plan->num_entries; i++)
            if (plan->entries[i].kind == order[k])
                add_blocks(log, &plan->entries[i], pkv_cache_num_groups(cache));
    size_t num_evicted = 0;
    const pkv_block_id *evicted = NULL;
    if (pkv_cache_evicted(cache, &evicted, &num_evicted, err) < 0)
        return -1;
    pkv_text_add(t, "},\"evicted\":[");
    for (size_t i = 0; i < num_evicted; i++) {
        comma(t);
        pkv_text_u64(t, (uint64_t)evicted[i] + 1);
    }
    pkv_text_add(t, "]");
    if (log->config.drafts)
        add_drafts(log, plan);
    return 0;
}

static int on_planned(void *ctx, struct pkv_sched *sched, const struct pkv_plan *plan,
                      struct pkv_err *err)
{
    struct pkv_engine_log *log = ctx;
    const struct pkv_cache *cache = pkv_sched_cache(sched);
    pkv_text_clear(&log->decided);
    pkv_text_clear(&log->blocks);
    add_decisions(log, plan);
    if (log->config.full && add_tables(log, cache, plan, err) < 0)
        return -1;
    log->free_after_schedule = pkv_cache_num_free(cache);
    return log->decided.failed || log->blocks.failed ? out_of_memory(err) : 0;
}

static int on_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct pkv_engine_log *log = ctx;
    if (event->kind == PKV_EVENT_ABORT)
        add_listed(log, &log->aborted, event->request);
    return log->aborted.failed ? out_of_memory(err) : 0;
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct pkv_engine_log *log = ctx;
    if (row->status == PKV_REQUEST_COMPLETED)
        add_listed(log, &log->finished, row->request);
    return log->finished.failed ? out_of_memory(err) : 0;
}

static void add_list(struct pkv_text *t, const char *key, struct pkv_text *list)
{
    pkv_text_add(t, key);
    pkv_text_bytes(t, list->text, list->length);
    pkv_text_add(t, "]");
    pkv_text_clear(list);
}

static int add_queues(struct pkv_engine_log *log, struct pkv_sched *sched, struct pkv_err *err)
{
    struct pkv_text *t = &log->line;
    size_t num_waiting = pkv_sched_num_waiting(sched);
    if (pkv_grow(&log->queue, &log->queue_capacity, num_waiting, sizeof(void *), err) < 0)
        return -1;
    if (num_waiting > 0)
        pkv_sched_list_waiting(sched, log->queue);
    pkv_text_add(t, ",\"waiting\":[");
    for (size_t i = 0; i < num_waiting; i++)
        add_listed(log, t, log->queue[i]);
    pkv_text_add(t, "],\"running\":[");
    for (size_t i = 0; i < pkv_sched_num_running(sched); i++)
        add_listed(log, t, pkv_sched_running(sched, i));
    pkv_text_add(t, "]");
    return 0;
}

static int send(struct pkv_engine_log *log, struct pkv_err *err)
{
    if (log->line.failed)
        return out_of_memory(err);
    return log->config.line(log->config.ctx, log->line.text, log->line.length, err);
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct pkv_engine_log *log = ctx;
    struct pkv_text *t = &log->line;
    struct pkv_cache_figures cache = pkv_cache_figures(pkv_sched_cache(sched));
    pkv_text_clear(t);
    add_number(t, "{\"step\":", (uint64_t)(row->time_ns / log->config.step_ns));
    pkv_text_add(t, ",");
    pkv_text_bytes(t, log->decided.text, log->decided.length);
    if (!log->config.brief)
        add_list(t, ",\"aborted\":[", &log->aborted);
    add_list(t, ",\"finished\":[", &log->finished);
    add_number(t, ",\"gen\":", (uint64_t)row->output_tokens);
    if (log->config.async)
        add_number(t, ",\"updated_step\":", row->updated_ns == PKV_NO_TIME ? 0
                   : (uint64_t)(row->updated_ns / log->config.step_ns));
    add_number(t, ",\"free_sched\":", log->free_after_schedule);
    add_number(t, ",\"free\":", cache.num_free);
    if (log->config.full && add_queues(log, sched, err) < 0)
        return -1;
    add_number(t, ",\"n_waiting\":", pkv_sched_num_waiting(sched));
    add_number(t, ",\"n_running\":", pkv_sched_num_running(sched));
    add_number(t, ",\"preempt_total\":", pkv_sched_num_preemptions(sched));
    if (!log->config.brief)
        add_number(t, ",\"cached_blocks\":", cache.num_keys);
    if (log->config.full)
        pkv_text_bytes(t, log->blocks.text, log->blocks.length);
    pkv_text_add(t, "}");
    return send(log, err);
}

struct pkv_sink pkv_engine_log_sink(struct pkv_engine_log *log)
{
    return (struct pkv_sink){
        .event = log->config.brief ? NULL : on_event,
        .planned = on_planned,
        .request = on_request,
        .step = on_step,
        .ctx = log,
    };
}

int pkv_engine_log_stuck(struct pkv_engine_log *log, uint64_t step, size_t num_waiting,
                         size_t num_running, struct pkv_err *err)
{
    struct pkv_text *t = &log->line;
    pkv_text_clear(t);
    add_number(t, "{\"step\":", step);
    add_number(t, ",\"stuck\":true,\"n_waiting\":", num_waiting);
    add_number(t, ",\"n_running\":", num_running);
    pkv_text_add(t, "}");
    return send(log, err);
}
