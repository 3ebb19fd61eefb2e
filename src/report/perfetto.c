/*
 * perfetto.c - a run as a Chrome trace in JSON, for ui.perfetto.dev and chrome://tracing.
 *
 * A process "requests" has lanes, each a thread: a request takes the lowest lane that is free at its
 * arrival and keeps it to its end, so there are as many lanes as requests were live at once and no
 * more, however many came. In its lane stands a slice with its id as long as it lives and, nested in it,
 * its phases. An arrow goes from the phase in which a request was short of blocks to that of the one
 * that was preempted for it. Two threads more have a mark for each preemption and each rejection.
 * A process "pool" has the counters, written where they change.
 *
 *   F1  events of one thread stand in the order of their times, and so do those of one counter
 *   F2  each begin has its end, in the same thread, unless the file was cut off
 *
 * The file is an array, which may end anywhere behind an event. Times are microseconds with three
 * decimals: nanoseconds, exactly.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/heap.h"
#include "base/out.h"
#include "pagedkv/report.h"
#include "report/packer.h"
#include "report/phases.h"

#define REQUESTS "\"pid\":1,\"tid\":"
#define PREEMPTIONS_THREAD 1u
#define REJECTIONS_THREAD 2u
#define FIRST_LANE_THREAD 11u

/* A lane that a request has left is free for whoever comes from then on. One step brings arrivals from
 * the middle of the step before it, so it may not be free for them yet. */
struct lane {
    struct pkv_heap_node node;    /* key: its number */
    size_t number;
    int64_t left_ns;
    struct lane *next_left;       /* in the order of left_ns */
};

#define COUNTERS(X)                                                                        \
    X(COUNTER_FREE, "blocks", "free") X(COUNTER_USED, "blocks", "used")                    \
    X(COUNTER_CACHED, "blocks", "cached") X(COUNTER_WAITING, "requests", "waiting")        \
    X(COUNTER_RUNNING, "requests", "running")                                              \
    X(COUNTER_PREEMPTIONS, "preemptions", "total") X(COUNTER_TOKENS, "tokens", "scheduled")
enum counter {
#define PKV_ENUM(sym, name, key) sym,
    COUNTERS(PKV_ENUM)
#undef PKV_ENUM
    COUNTER_COUNT
};

struct pkv_perfetto {
    struct packer *file;          /* owned */
    struct phases *phases;        /* owned */
    struct pkv_text text, id;     /* owned scratch: an event; an id */
    bool has_event, has_kept;
    struct lane **lanes;          /* [num_lanes] owned, each owned */
    size_t num_lanes, lanes_capacity;
    struct pkv_heap free_lanes;
    struct lane *first_left, *last_left;
    struct live { struct lane *lane; bool in_phase; } *live;    /* by slot, owned */
    size_t live_capacity;
    uint64_t num_arrows;
    int64_t counters[COUNTER_COUNT], after[COUNTER_COUNT];    /* as written; behind the last step */
    bool has_counters;
    int64_t end_ns;               /* of the last step; PKV_NO_TIME = there was none */
};

/* --- events ---------------------------------------------------------------------------------- */

static void add_time(struct pkv_text *t, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    pkv_text_fmt(t, ",\"ts\":%s%llu.%03llu", ns < 0 ? "-" : "", (unsigned long long)(size / 1000),
                 (unsigned long long)(size % 1000));
}

/* Begin one: ph, then the thread. */
static void open_event(struct pkv_perfetto *p, const char *ph, size_t thread)
{
    pkv_text_clear(&p->text);
    pkv_text_add(&p->text, p->has_event ? ",\n{\"ph\":\"" : "[\n{\"ph\":\"");
    pkv_text_add(&p->text, ph);
    pkv_text_add(&p->text, "\"," REQUESTS);
    pkv_text_u64(&p->text, thread);
}

static int close_event(struct pkv_perfetto *p, struct pkv_err *err)
{
    pkv_text_add(&p->text, "}");
    if (p->text.failed || p->id.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for an event of a trace");
    p->has_event = true;
    return packer_row(p->file, p->text.text, p->text.length, err);
}

static void add_name(struct pkv_text *t, const char *name)
{
    pkv_text_add(t, ",\"name\":");
    pkv_text_json(t, name);
}

static const char *id_of(struct pkv_perfetto *p, const struct pkv_request *r)
{
    pkv_text_clear(&p->id);
    if (r->id)
        pkv_text_add(&p->id, r->id);
    else
        pkv_text_u64(&p->id, r->row);
    return p->id.failed ? "" : p->id.text;
}

static void open_args(struct pkv_text *t)
{
    pkv_text_add(t, ",\"args\":{");
}

static void add_key(struct pkv_text *t, const char *key)
{
    bool is_first = t->length == 0 || t->text[t->length - 1] == '{';
    pkv_text_fmt(t, "%s\"%s\":", is_first ? "" : ",", key);
}

static void add_number(struct pkv_text *t, const char *key, uint64_t n)
{
    add_key(t, key);
    pkv_text_u64(t, n);
}

static void add_word(struct pkv_text *t, const char *key, const char *text)
{
    add_key(t, key);
    pkv_text_json(t, text);
}

static int name_thread(struct pkv_perfetto *p, size_t thread, const char *name, struct pkv_err *err)
{
    open_event(p, "M", thread);
    pkv_text_fmt(&p->text, ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}", name);
    if (close_event(p, err) < 0)
        return -1;
    open_event(p, "M", thread);
    pkv_text_fmt(&p->text, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%zu}", thread);
    return close_event(p, err);
}

static int name_process(struct pkv_perfetto *p, unsigned pid, const char *name, struct pkv_err *err)
{
    pkv_text_clear(&p->text);
    pkv_text_fmt(&p->text, "%s{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}",
                 p->has_event ? ",\n" : "[\n", pid, name);
    return close_event(p, err);
}

/* --- lanes ----------------------------------------------------------------------------------- */

static struct lane *new_lane(struct pkv_perfetto *p, struct pkv_err *err)
{
    char name[32];
    if (pkv_grow(&p->lanes, &p->lanes_capacity, p->num_lanes + 1, sizeof(struct lane *), err) < 0 ||
        pkv_heap_reserve(&p->free_lanes, p->num_lanes + 1, err) < 0)
        return NULL;
    struct lane *lane = pkv_alloc(1, sizeof *lane, err);
    if (!lane)
        return NULL;
    lane->number = p->num_lanes;
    lane->node = (struct pkv_heap_node){.key = {(int64_t)lane->number}, .index = PKV_HEAP_NOWHERE};
    p->lanes[p->num_lanes++] = lane;
    snprintf(name, sizeof name, "lane %zu", lane->number + 1);
    return name_thread(p, FIRST_LANE_THREAD + lane->number, name, err) < 0 ? NULL : lane;
}

static struct lane *take_lane(struct pkv_perfetto *p, int64_t now_ns, struct pkv_err *err)
{
    while (p->first_left && p->first_left->left_ns <= now_ns) {
        struct lane *left = p->first_left;
        p->first_left = left->next_left;
        pkv_heap_push(&p->free_lanes, &left->node);
    }
    struct pkv_heap_node *first = pkv_heap_first(&p->free_lanes);
    if (!first)
        return new_lane(p, err);
    pkv_heap_remove(&p->free_lanes, first);
    return p->lanes[first->key[0]];
}

static void leave_lane(struct pkv_perfetto *p, struct lane *lane, int64_t now_ns)
{
    lane->left_ns = now_ns;
    lane->next_left = NULL;
    if (p->first_left)
        p->last_left->next_left = lane;
    else
        p->first_left = lane;
    p->last_left = lane;
}

static size_t thread_of(const struct pkv_perfetto *p, size_t slot)
{
    return FIRST_LANE_THREAD + p->live[slot].lane->number;
}

/* --- requests -------------------------------------------------------------------------------- */

static int on_came(void *ctx, size_t slot, const struct pkv_request *r, struct pkv_err *err)
{
    struct pkv_perfetto *p = ctx;
    if (pkv_grow(&p->live, &p->live_capacity, slot + 1, sizeof *p->live, err) < 0)
        return -1;
    p->live[slot] = (struct live){.lane = take_lane(p, r->arrival_ns, err)};
    if (!p->live[slot].lane)
        return -1;
    open_event(p, "B", thread_of(p, slot));
    add_time(&p->text, r->arrival_ns);
    add_name(&p->text, id_of(p, r));
    open_args(&p->text);
    add_number(&p->text, "prompt_tokens", r->seq.num_prompt_tokens);
    pkv_text_add(&p->text, "}");
    return close_event(p, err);
}

/* What its phase began with. */
static void add_cause(struct pkv_perfetto *p, const struct pkv_event *e)
{
    struct pkv_text *t = &p->text;
    open_args(t);
    if (e->kind == PKV_EVENT_PREEMPT) {
        add_word(t, "for", id_of(p, e->grower));
        add_number(t, "freed_blocks", e->freed_blocks);
        add_number(t, "lost_tokens", e->lost_tokens);
    } else {
        add_number(t, "need_blocks", e->need_blocks);
        add_number(t, "free_blocks", e->free_blocks);
        add_number(t, "hit_tokens", e->hit_tokens);
        add_number(t, "sched_tokens", e->sched_tokens);
    }
    pkv_text_add(t, "}");
}

static int end_slice(struct pkv_perfetto *p, size_t slot, int64_t time_ns, struct pkv_err *err)
{
    open_event(p, "E", thread_of(p, slot));
    add_time(&p->text, time_ns);
    return close_event(p, err);
}

/* One end of an arrow, at the phase its thread is in. */
static int add_arrow(struct pkv_perfetto *p, const char *ph, size_t slot, int64_t time_ns,
                     struct pkv_err *err)
{
    open_event(p, ph, thread_of(p, slot));
    add_time(&p->text, time_ns);
    pkv_text_fmt(&p->text, ",\"id\":%llu,\"cat\":\"preemption\",\"name\":\"preempted for\"%s",
                 (unsigned long long)p->num_arrows, *ph == 'f' ? ",\"bp\":\"e\"" : "");
    return close_event(p, err);
}

/* From whom it was for; one that gives itself up has none. */
static int add_arrows(struct pkv_perfetto *p, size_t slot, const struct pkv_event *e, struct pkv_err *err)
{
    if (e->grower == e->request)
        return 0;
    p->num_arrows++;
    return add_arrow(p, "s", phases_slot(p->phases, e->grower), e->time_ns, err) < 0
               ? -1 : add_arrow(p, "f", slot, e->time_ns, err);
}

static int on_entered(void *ctx, size_t slot, const struct pkv_request *r, enum phase phase,
                      int64_t time_ns, const struct pkv_event *cause, struct pkv_err *err)
{
    struct pkv_perfetto *p = ctx;
    (void)r;
    if (p->live[slot].in_phase && end_slice(p, slot, time_ns, err) < 0)
        return -1;
    p->live[slot].in_phase = true;
    open_event(p, "B", thread_of(p, slot));
    add_time(&p->text, time_ns);
    add_name(&p->text, phase_name(phase));
    if (cause && (cause->kind == PKV_EVENT_ADMIT || cause->kind == PKV_EVENT_RESUME ||
                  cause->kind == PKV_EVENT_PREEMPT))
        add_cause(p, cause);
    if (close_event(p, err) < 0)
        return -1;
    return cause && cause->kind == PKV_EVENT_PREEMPT ? add_arrows(p, slot, cause, err) : 0;
}

static void add_end(struct pkv_text *t, const struct pkv_request_row *row)
{
    const struct pkv_request *r = row->request;
    open_args(t);
    add_word(t, "status", pkv_request_status_name(row->status));
    if (row->reason[0])
        add_word(t, "reason", row->reason);
    add_number(t, "output_tokens", r->num_emitted);
    add_number(t, "hit_tokens", r->num_hit_tokens);
    add_number(t, "recomputed_tokens", r->num_recomputed_tokens);
    add_number(t, "preemptions", r->num_preemptions);
    add_number(t, "peak_blocks", r->peak_blocks);
    pkv_text_add(t, "}");
}

static int on_ended(void *ctx, size_t slot, const struct pkv_request_row *row, int64_t time_ns,
                    struct pkv_err *err)
{
    struct pkv_perfetto *p = ctx;
    if (p->live[slot].in_phase && end_slice(p, slot, time_ns, err) < 0)
        return -1;
    open_event(p, "E", thread_of(p, slot));
    add_time(&p->text, time_ns);
    add_end(&p->text, row);
    leave_lane(p, p->live[slot].lane, time_ns);
    return close_event(p, err);
}

/* --- marks ----------------------------------------------------------------------------------- */

/* One in the thread of its kind, with the id as its name. */
static void open_mark(struct pkv_perfetto *p, size_t thread, const struct pkv_event *e)
{
    open_event(p, "i", thread);
    add_time(&p->text, e->time_ns);
    pkv_text_add(&p->text, ",\"s\":\"t\"");
    add_name(&p->text, id_of(p, e->request));
}

static int add_rejection(struct pkv_perfetto *p, const struct pkv_event *e, struct pkv_err *err)
{
    open_mark(p, REJECTIONS_THREAD, e);
    open_args(&p->text);
    add_word(&p->text, "reason", e->reason);
    pkv_text_add(&p->text, "}");
    return close_event(p, err);
}

static int add_preemption(struct pkv_perfetto *p, const struct pkv_event *e, struct pkv_err *err)
{
    open_mark(p, PREEMPTIONS_THREAD, e);
    add_cause(p, e);
    return close_event(p, err);
}

/* --- counters -------------------------------------------------------------------------------- */

static int write_counter(struct pkv_perfetto *p, enum counter which, int64_t value, int64_t time_ns,
                         struct pkv_err *err)
{
    static const char *const names[][2] = {
#define PKV_NAMES(sym, name, key) [sym] = {name, key},
        COUNTERS(PKV_NAMES)
#undef PKV_NAMES
    };
    p->counters[which] = value;
    pkv_text_clear(&p->text);
    pkv_text_add(&p->text, ",\n{\"ph\":\"C\",\"pid\":2");
    add_time(&p->text, time_ns);
    pkv_text_fmt(&p->text, ",\"name\":\"%s\",\"args\":{\"%s\":%lld}", names[which][0], names[which][1],
                 (long long)value);
    return close_event(p, err);
}

static int write_counters(struct pkv_perfetto *p, const int64_t *values, int64_t time_ns,
                          struct pkv_err *err)
{
    for (int i = 0; i < COUNTER_COUNT; i++)
        if ((!p->has_counters || values[i] != p->counters[i]) &&
            write_counter(p, (enum counter)i, values[i], time_ns, err) < 0)
            return -1;
    p->has_counters = true;
    return 0;
}

/* What holds when no step follows this one at once. */
static void note_after(struct pkv_perfetto *p, struct pkv_sched *sched)
{
    struct pkv_cache_figures cache = pkv_cache_figures(pkv_sched_cache(sched));
    p->after[COUNTER_FREE] = cache.num_free;
    p->after[COUNTER_USED] = (int64_t)cache.num_blocks - cache.num_free;
    p->after[COUNTER_CACHED] = cache.num_cached;
    p->after[COUNTER_WAITING] = (int64_t)pkv_sched_num_waiting(sched);
    p->after[COUNTER_RUNNING] = (int64_t)(pkv_sched_num_running(sched) + pkv_sched_num_resuming(sched));
    p->after[COUNTER_PREEMPTIONS] = (int64_t)pkv_sched_num_preemptions(sched);
    p->after[COUNTER_TOKENS] = 0;
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct pkv_perfetto *p = ctx;
    const int64_t values[COUNTER_COUNT] = {
        [COUNTER_FREE] = row->free_blocks, [COUNTER_USED] = row->used_blocks,
        [COUNTER_CACHED] = row->cached_blocks, [COUNTER_WAITING] = row->waiting,
        [COUNTER_RUNNING] = row->running, [COUNTER_PREEMPTIONS] = row->preemptions_total,
        [COUNTER_TOKENS] = row->sched_tokens,
    };
    bool has_pause = p->end_ns != PKV_NO_TIME && row->time_ns > p->end_ns;
    if (has_pause && write_counters(p, p->after, p->end_ns, err) < 0)
        return -1;
    p->end_ns = row->time_ns + row->dur_ns;
    note_after(p, sched);
    if (write_counters(p, values, row->time_ns, err) < 0 || phases_step(p->phases, row, err) < 0)
        return -1;
    return packer_check(p->file, err);
}

/* --- the sink -------------------------------------------------------------------------------- */

static int on_event(void *ctx, const struct pkv_event *e, struct pkv_err *err)
{
    struct pkv_perfetto *p = ctx;
    if (e->kind == PKV_EVENT_REJECT && add_rejection(p, e, err) < 0)
        return -1;
    if (e->kind == PKV_EVENT_PREEMPT && add_preemption(p, e, err) < 0)
        return -1;
    return phases_event(p->phases, e, err);
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct pkv_perfetto *p = ctx;
    return phases_request(p->phases, row, err);
}

struct pkv_perfetto *pkv_perfetto_create(const char *path, struct pkv_err *err)
{
    struct pkv_perfetto *p = pkv_alloc(1, sizeof *p, err);
    if (!p)
        return NULL;
    const struct phases_listener listener = {
        .came = on_came, .entered = on_entered, .ended = on_ended, .ctx = p};
    p->end_ns = PKV_NO_TIME;
    p->phases = phases_create(&listener, err);
    p->file = p->phases ? packer_open(path, "\n]\n", err) : NULL;
    if (p->file && name_process(p, 1, "requests", err) == 0 && name_process(p, 2, "pool", err) == 0 &&
        name_thread(p, PREEMPTIONS_THREAD, "preemptions", err) == 0 &&
        name_thread(p, REJECTIONS_THREAD, "rejections", err) == 0)
        return p;
    pkv_perfetto_destroy(p);
    return NULL;
}

void pkv_perfetto_destroy(struct pkv_perfetto *p)
{
    if (!p)
        return;
    packer_drop(p->file);
    phases_destroy(p->phases);
    for (size_t i = 0; i < p->num_lanes; i++)
        pkv_free(p->lanes[i]);
    pkv_free(p->lanes);
    pkv_heap_free(&p->free_lanes);
    pkv_free(p->live);
    pkv_text_free(&p->text);
    pkv_text_free(&p->id);
    pkv_free(p);
}

struct pkv_sink pkv_perfetto_sink(struct pkv_perfetto *perfetto)
{
    return (struct pkv_sink){
        .event = on_event, .request = on_request, .step = on_step, .ctx = perfetto};
}

int pkv_perfetto_finish(struct pkv_perfetto *p, struct pkv_err *err)
{
    struct packer *file = p->file;
    int status = 0;
    if (p->end_ns != PKV_NO_TIME)
        status = write_counters(p, p->after, p->end_ns, err);
    p->file = NULL;
    return packer_commit(file, &p->has_kept, status == 0 ? err : NULL) < 0 ? -1 : status;
}

bool pkv_perfetto_has_kept(const struct pkv_perfetto *perfetto)
{
    return perfetto->has_kept;
}
