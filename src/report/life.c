/*
 * life.c - what happened to a request, put together from its own events and, while it waits, from
 * those of others: who was first in line before it, and who left when it was let in.
 *
 * Not in the log, and so derived: how many tokens a preempted request knows (its prompt, or one more
 * than the positions it lost), and therefore how many scheduled ones had been computed before.
 */
#include "report/explain_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

static void wait_free(struct wait *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->num_own; i++)
        cause_free(&w->own[i]);
    pkv_free(w->own);
    cause_free(&w->longest);
    cause_free(&w->now);
    leavers_free(&w->leavers);
    pkv_text_free(&w->let_in);
    pkv_free(w);
}

void life_free(struct life *life)
{
    for (size_t i = 0; i < life->num; i++) {
        pkv_text_free(&life->entries[i].who);
        wait_free(life->entries[i].wait);
    }
    pkv_free(life->entries);
    run_row_free(&life->row);
}

bool life_is_no_wait(const struct life_entry *entry)
{
    const struct wait *w = entry->wait;
    return w && w->end_ns == w->begin_ns && w->num_own == 0;
}

static struct life_entry *add_entry(struct life *life, enum pkv_event_kind kind, int64_t time_ns,
                                    uint64_t step, struct pkv_err *err)
{
    if (pkv_grow(&life->entries, &life->capacity, life->num + 1, sizeof *life->entries, err) < 0)
        return NULL;
    struct life_entry *entry = &life->entries[life->num++];
    *entry = (struct life_entry){
        .kind = kind, .time_ns = time_ns, .step = step, .back_ns = PKV_NO_TIME};
    return entry;
}

/* ---- a wait ---- */

static bool is_own(const struct life *life, const struct cause *c)
{
    return strcmp(c->names.text, life->row.id.text) == 0;
}

/* The one ahead is ahead no longer. One that was so for no time was none. */
static int leave_behind(struct wait *w, int64_t now_ns, struct pkv_err *err)
{
    int64_t ns = now_ns - w->behind_since_ns;
    bool was_behind = w->is_behind;
    w->is_behind = false;
    if (!was_behind || ns == 0)
        return 0;
    w->ahead_ns += ns;
    w->num_ahead++;
    if (w->num_ahead > 1 && ns <= w->longest_ns)
        return 0;
    w->longest_ns = ns;
    return cause_copy(&w->longest, &w->now, err);
}

/* Is it known by now who is first in line? Who came or was preempted has its place in the line, and
 * is told of if it is the first, from the next admission pass on. */
static bool knows_line(const struct wait *w, const struct run_event *e)
{
    return e->kind != PKV_EVENT_ARRIVE && e->step >= w->begin_step + w->after_preemption;
}

/* Who is first in line now? One whose cause changes is the same one. */
static int look_ahead(struct life *life, const struct heads *heads, const struct run_event *e,
                      struct pkv_err *err)
{
    struct wait *w = life->waiting;
    const struct cause *first = heads_first(heads);
    bool is_behind = first && !is_own(life, first), had_looked = w->has_looked;
    if (!had_looked && !knows_line(w, e))
        return 0;
    w->has_looked = true;
    if (w->is_behind && is_behind && strcmp(w->now.names.text, first->names.text) == 0)
        return 0;
    if (leave_behind(w, e->time_ns, err) < 0)
        return -1;
    if (!is_behind)
        return 0;
    w->is_behind = true;    /* nothing happened since it came: it was so all the time */
    w->behind_since_ns = !had_looked && e->step > w->begin_step + 1 ? w->begin_ns : e->time_ns;
    return cause_copy(&w->now, first, err);
}

static int begin_wait(struct life *life, const struct run_event *e, struct pkv_err *err)
{
    struct life_entry *entry = add_entry(life, PKV_EVENT_BLOCKED, e->time_ns, e->step, err);
    if (!entry || !(entry->wait = pkv_alloc(1, sizeof *entry->wait, err)))
        return -1;
    life->waiting = entry->wait;
    *life->waiting = (struct wait){
        .begin_ns = e->time_ns, .begin_step = e->step, .end_ns = e->time_ns,
        .after_preemption = e->kind == PKV_EVENT_PREEMPT, .leavers = {.time_ns = PKV_NO_TIME}};
    return 0;
}

static int add_own_cause(struct life *life, const struct cause *cause, struct pkv_err *err)
{
    struct wait *w = life->waiting;
    if (!w)
        return 0;
    if (pkv_grow(&w->own, &w->capacity, w->num_own + 1, sizeof *w->own, err) < 0)
        return -1;
    memset(&w->own[w->num_own], 0, sizeof *w->own);
    w->num_own++;
    return cause_copy(&w->own[w->num_own - 1], cause, err);
}

/* When did it last learn why it waits? Who left before that did not help. */
static int64_t since(const struct wait *w)
{
    int64_t ns = w->begin_ns;
    if (w->num_own > 0 && w->own[w->num_own - 1].time_ns > ns)
        ns = w->own[w->num_own - 1].time_ns;
    return ns;
}

/* Did it wait for something that others give back? */
static bool waits_for_others(const struct wait *w)
{
    if (w->num_own > 0)
        return w->own[w->num_own - 1].limit != PKV_LIMIT_BUDGET;
    return w->num_ahead > 0 ? w->longest.limit != PKV_LIMIT_BUDGET : w->after_preemption;
}

static int end_wait(struct life *life, int64_t now_ns, uint64_t step, const struct leavers *leavers,
                    struct pkv_err *err)
{
    struct wait *w = life->waiting;
    if (!w)
        return 0;
    if (leave_behind(w, now_ns, err) < 0)
        return -1;
    life->waiting = NULL;
    if (w->end_step != step)
        pkv_text_clear(&w->let_in);
    w->end_ns = now_ns;
    w->end_step = step;
    w->has_ended = leavers != NULL;
    if (!leavers || leavers->time_ns == PKV_NO_TIME || leavers->time_ns < since(w) ||
        now_ns == w->begin_ns || !waits_for_others(w))
        return 0;
    return leavers_copy(&w->leavers, leavers, life->row.id.text, err);
}

/* ---- its own events ---- */

static int on_admission(struct life *life, const struct run_event *e, const struct leavers *leavers,
                        struct pkv_err *err)
{
    if (end_wait(life, e->time_ns, e->step, leavers, err) < 0)
        return -1;
    for (size_t i = life->num; i-- > 0 && e->kind == PKV_EVENT_RESUME;)
        if (life->entries[i].kind == PKV_EVENT_PREEMPT) {
            life->entries[i].back_ns = e->time_ns;
            break;
        }
    struct life_entry *entry = add_entry(life, e->kind, e->time_ns, e->step, err);
    if (!entry)
        return -1;
    uint64_t end = e->hit_tokens + e->sched_tokens;
    uint64_t lost_end = end < life->lost_most ? end : life->lost_most;
    entry->need_blocks = e->need_blocks;
    entry->free_blocks = e->free_blocks;
    entry->hit_tokens = e->hit_tokens;
    entry->sched_tokens = e->sched_tokens;
    entry->again_tokens = lost_end > e->hit_tokens ? lost_end - e->hit_tokens : 0;
    entry->known_tokens = life->known_tokens;
    return 0;
}

static int on_preemption(struct life *life, const struct run_event *e, struct pkv_err *err)
{
    struct life_entry *entry = add_entry(life, e->kind, e->time_ns, e->step, err);
    if (!entry)
        return -1;
    pkv_text_bytes(&entry->who, e->who.text, e->who.length);
    if (entry->who.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a preemption");
    entry->freed_blocks = e->freed_blocks;
    entry->lost_tokens = e->lost_tokens;
    if (e->lost_tokens > life->lost_most)
        life->lost_most = e->lost_tokens;
    if (life->has_first_token && e->lost_tokens >= life->known_tokens)
        life->known_tokens = e->lost_tokens + 1;
    return begin_wait(life, e, err);
}

/* It stands behind the preemption or the admission that it is of. */
static void on_swap(struct life *life, const struct run_event *e)
{
    enum pkv_event_kind of = e->kind == PKV_EVENT_SWAP_OUT ? PKV_EVENT_PREEMPT : PKV_EVENT_RESUME;
    for (size_t i = life->num; i-- > 0;) {
        struct life_entry *entry = &life->entries[i];
        if (entry->kind != of)
            continue;
        entry->swapped_blocks = e->blocks;
        entry->swapped_bytes = e->bytes;
        entry->swap_done_ns = (int64_t)e->done_ns;
        return;
    }
}

static int on_fork(struct life *life, const struct run_event *e, struct pkv_err *err)
{
    struct life_entry *entry = add_entry(life, e->kind, e->time_ns, e->step, err);
    if (!entry)
        return -1;
    entry->shared_blocks = e->shared_blocks;
    entry->shared_tokens = e->shared_tokens;
    entry->freed_blocks = e->freed_blocks;
    pkv_text_bytes(&entry->who, e->who.text, e->who.length);
    return entry->who.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a fork") : 0;
}

static int on_end(struct life *life, const struct run_event *e, struct pkv_err *err)
{
    if (end_wait(life, e->time_ns, e->step, NULL, err) < 0)
        return -1;
    struct life_entry *entry = add_entry(life, e->kind, e->time_ns, e->step, err);
    if (!entry)
        return -1;
    entry->freed_blocks = e->kind == PKV_EVENT_ABORT ? e->freed_blocks : 0;
    if (e->who.text)
        pkv_text_add(&entry->who, e->who.text);
    life->has_ended = true;
    return entry->who.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for an end") : 0;
}

static int on_arrival(struct life *life, const struct run_events *events, struct pkv_err *err)
{
    const struct run_event *e = &events->event;
    if (life->num > 0)
        return pkv_fail_at(err, events->side.path, events->side.lines.number, 0, "a second request "
                           "has the id '%.100s': their events cannot be told apart", e->id.text);
    life->known_tokens = e->prompt_tokens;
    if (!add_entry(life, e->kind, e->time_ns, e->step, err))
        return -1;
    return begin_wait(life, e, err);
}

static int on_own(struct watch *w, struct life *life, const struct run_events *events,
                  struct pkv_err *err)
{
    const struct run_event *e = &events->event;
    if (e->kind != PKV_EVENT_ARRIVE && life->num == 0)
        return pkv_fail_at(err, events->side.path, events->side.lines.number, 0,
                           "request '%.100s' has not arrived yet", e->id.text);
    switch (e->kind) {
    case PKV_EVENT_ARRIVE:
        return on_arrival(life, events, err);
    case PKV_EVENT_ADMIT:
    case PKV_EVENT_RESUME:
        return on_admission(life, e, &w->leavers, err);
    case PKV_EVENT_BLOCKED:
        return add_own_cause(life, heads_first(&w->heads), err);
    case PKV_EVENT_PREEMPT:
        return on_preemption(life, e, err);
    case PKV_EVENT_SWAP_OUT:
    case PKV_EVENT_SWAP_IN:
        on_swap(life, e);
        return 0;
    case PKV_EVENT_FORK:
        return on_fork(life, e, err);
    case PKV_EVENT_FIRST_TOKEN:
        life->has_first_token = true;
        life->known_tokens++;
        return add_entry(life, e->kind, e->time_ns, e->step, err) ? 0 : -1;
    case PKV_EVENT_REJECT:
    case PKV_EVENT_FINISH:
    case PKV_EVENT_ABORT:
        return on_end(life, e, err);
    case PKV_EVENT_KIND_COUNT:
        break;
    }
    return 0;
}

/* ---- all events ---- */

/* Somebody leaves running, so that a queue that was shut is looked at again. */
static void note_opened(struct watch *w, const struct run_event *e)
{
    const char *running = pkv_request_status_name(PKV_REQUEST_RUNNING);
    if (e->kind != PKV_EVENT_FINISH && e->kind != PKV_EVENT_PREEMPT &&
        (e->kind != PKV_EVENT_ABORT || !e->who.text || strcmp(e->who.text, running) != 0))
        return;
    heads_opened(&w->heads, e);
    for (size_t i = 0; i < w->num; i++) {
        struct wait *wait = w->lives[i].waiting;
        for (size_t k = 0; wait && k < wait->num_own; k++)
            cause_opened(&wait->own[k], e);
        if (wait)
            cause_opened(&wait->now, e);
        if (wait)
            cause_opened(&wait->longest, e);
    }
}

/* What an event does to the line, whosoever it is. */
static int note_line(struct watch *w, const struct run_event *e, struct pkv_err *err)
{
    if (e->kind == PKV_EVENT_BLOCKED)
        return heads_note(&w->heads, e, err);
    if (e->kind == PKV_EVENT_ADMIT || e->kind == PKV_EVENT_RESUME || e->kind == PKV_EVENT_ABORT)
        heads_leave(&w->heads, e->id.text);
    bool leaves = e->kind == PKV_EVENT_FINISH || e->kind == PKV_EVENT_PREEMPT ||
                  (e->kind == PKV_EVENT_ABORT && e->freed_blocks > 0);
    return leaves ? leavers_note(&w->leavers, e, err) : 0;
}

/* The one ahead was let in: when that is at the end of the wait, it is what let this one in, too. */
static int note_let_in(struct life *life, const struct run_event *e, struct pkv_err *err)
{
    struct wait *w = life->waiting;
    if (!w->is_behind || strcmp(w->now.names.text, e->id.text) != 0 ||
        (e->kind != PKV_EVENT_ADMIT && e->kind != PKV_EVENT_RESUME))
        return 0;
    pkv_text_clear(&w->let_in);
    pkv_text_bytes(&w->let_in, e->id.text, e->id.length);
    w->end_step = e->step;    /* until the end is known */
    return w->let_in.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for an id") : 0;
}

static int feed_life(struct watch *w, struct life *life, const struct run_events *events,
                     bool is_own_event, struct pkv_err *err)
{
    if (is_own_event && on_own(w, life, events, err) < 0)
        return -1;
    return life->waiting ? look_ahead(life, &w->heads, &events->event, err) : 0;
}

static int feed(struct watch *w, const struct run_events *events, struct pkv_err *err)
{
    const struct run_event *e = &events->event;
    note_opened(w, e);
    for (size_t i = 0; i < w->num; i++) {
        struct life *life = &w->lives[i];
        if (!life->waiting || strcmp(life->row.id.text, e->id.text) == 0)
            continue;
        if (look_ahead(life, &w->heads, e, err) < 0 || note_let_in(life, e, err) < 0)
            return -1;
    }
    if (note_line(w, e, err) < 0)
        return -1;
    for (size_t i = 0; i < w->num; i++) {
        bool own = strcmp(w->lives[i].row.id.text, e->id.text) == 0;
        if (feed_life(w, &w->lives[i], events, own, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the end ---- */

static void add_up(struct life *life)
{
    const struct run_row *row = &life->row;
    int64_t first = row->first_token_ns, admitted = row->admitted_ns, before = 0;
    for (size_t i = 0; i < life->num; i++) {
        const struct wait *w = life->entries[i].wait;
        if (!w || !w->after_preemption)
            continue;
        life->preempted_ns += w->end_ns - w->begin_ns;
        if (first == PKV_NO_TIME || w->begin_ns < first)   /* async: it may come while it waits */
            before += (first == PKV_NO_TIME || w->end_ns < first ? w->end_ns : first) - w->begin_ns;
    }
    if (row->status == PKV_REQUEST_REJECTED)
        return;
    life->waiting_ns = (admitted != PKV_NO_TIME ? admitted : life->end_ns) - row->arrival_ns;
    if (admitted != PKV_NO_TIME)
        life->prefill_ns = (first != PKV_NO_TIME ? first : life->end_ns) - admitted - before;
    if (first != PKV_NO_TIME)
        life->decoding_ns = life->end_ns - first - (life->preempted_ns - before);
}

static uint64_t count_kind(const struct life *life, enum pkv_event_kind kind)
{
    uint64_t num = 0;
    for (size_t i = 0; i < life->num; i++)
        num += life->entries[i].kind == kind;
    return num;
}

/* requests.csv and events.jsonl tell of the same request. */
static int check_life(const struct life *life, const struct run_dir *run, struct pkv_err *err)
{
    const struct run_row *row = &life->row;
    if (life->num == 0 || life->entries[0].time_ns != row->arrival_ns ||
        count_kind(life, PKV_EVENT_PREEMPT) != row->preemptions ||
        life->has_ended != (row->status != PKV_REQUEST_UNFINISHED))
        return pkv_fail_at(err, run->events, 0, 0, "request '%.100s' came, was preempted or ended "
                           "otherwise than %s says: files of different runs, or a log that was cut "
                           "off", row->id.text, run->requests);
    return 0;
}

static int close_life(struct life *life, const struct run_dir *run, int64_t run_end_ns,
                      struct pkv_err *err)
{
    life->end_ns = life->row.finish_ns != PKV_NO_TIME ? life->row.finish_ns : run_end_ns;
    if (check_life(life, run, err) < 0)
        return -1;
    if (life->waiting && end_wait(life, run_end_ns, 0, NULL, err) < 0)
        return -1;
    add_up(life);
    return 0;
}

int watch_run(struct watch *w, const struct run_dir *run, struct pkv_err *err)
{
    struct run_events events = {0};
    int more = -1;
    w->leavers.time_ns = PKV_NO_TIME;
    if (run_events_open(&events, run, err) == 0)
        while ((more = run_events_next(&events, err)) > 0)
            if (feed(w, &events, err) < 0) {
                more = -1;
                break;
            }
    int64_t end_ns = events.first_arrival_ns != PKV_NO_TIME
                         ? events.first_arrival_ns + (int64_t)run->counts.makespan_ns : 0;
    run_events_close(&events);
    for (size_t i = 0; more == 0 && i < w->num; i++)
        more = close_life(&w->lives[i], run, end_ns, err);
    return more;
}

void watch_free(struct watch *w)
{
    heads_free(&w->heads);
    leavers_free(&w->leavers);
}
