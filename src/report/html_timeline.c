/*
 * html_timeline.c - the phases of requests as islands of report.html.
 *
 *   timeline          a row a request: its row in "requests", how many came before it, its phases
 *   timeline-phases   theirs, one after another: which, when it began, and of a preemption for whom, as
 *                     how many had come before that one plus 1, 0 = for nobody
 *   timeline-about    when the run ended, how many requests it had, and which of them are here
 *
 * There is room for MAX_SIZE requests and phases. When they are more, every second request in the order
 * of arrival is kept, then every fourth, and so on, and with them those that were worst off: the
 * NUM_WORST that waited longest for their first admission, and as many that were preempted most. Of one
 * with more than MAX_OF_ONE phases the rest stands as one, PHASE_COUNT. Memory: 24 bytes a phase and 64 a
 * request, so at most 10 MB, and the phases of those that live.
 */
#include "report/html_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "report/packed.h"
#include "report/phases.h"

#define MAX_SIZE 160000u
#define MAX_OF_ONE 1000u
#define NUM_WORST 50u

struct entry { int64_t begin_ns, phase, for_whom; };

/* What is known of one request, live or ended. */
struct record {
    struct entry *entries;     /* [num] owned */
    size_t num, capacity;
    int64_t row, came;         /* its row in "requests"; how many came before it */
    int64_t waited_ns, num_preemptions;
    bool is_worst;
};

struct timeline {
    struct phases *phases;     /* owned */
    struct record *live;       /* [live_capacity] owned; by slot */
    size_t num_slots, live_capacity;
    struct record *kept;       /* [num_kept] owned, in the order of their ends */
    size_t num_kept, kept_capacity, size;    /* size: they and their phases, counted */
    struct record **ranks;     /* owned scratch */
    size_t ranks_capacity;
    int64_t num_came, num_ended, end_ns, stride;
};

/* --- what phases tell ------------------------------------------------------------------------ */

static int on_came(void *ctx, size_t slot, const struct pkv_request *r, struct pkv_err *err)
{
    struct timeline *t = ctx;
    (void)r;
    if (pkv_grow(&t->live, &t->live_capacity, slot + 1, sizeof *t->live, err) < 0)
        return -1;
    while (t->num_slots <= slot)
        t->live[t->num_slots++] = (struct record){0};
    struct record *live = &t->live[slot];
    *live = (struct record){.entries = live->entries, .capacity = live->capacity, .came = t->num_came++};
    return 0;
}

static int on_entered(void *ctx, size_t slot, const struct pkv_request *r, enum phase phase,
                      int64_t time_ns, const struct pkv_event *cause, struct pkv_err *err)
{
    struct timeline *t = ctx;
    struct record *live = &t->live[slot];
    bool is_preempted = cause && cause->kind == PKV_EVENT_PREEMPT;
    (void)r;
    if (live->num == MAX_OF_ONE)
        live->entries[live->num - 1].phase = PHASE_COUNT;
    else if (pkv_grow(&live->entries, &live->capacity, live->num + 1, sizeof *live->entries, err) < 0)
        return -1;
    else
        live->entries[live->num++] = (struct entry){
            time_ns, phase, is_preempted ? t->live[phases_slot(t->phases, cause->grower)].came + 1 : 0};
    return 0;
}

static int by_wait(const void *a, const void *b)
{
    const struct record *x = *(struct record *const *)a, *y = *(struct record *const *)b;
    if (x->waited_ns != y->waited_ns)
        return x->waited_ns > y->waited_ns ? -1 : 1;
    return x->came < y->came ? -1 : 1;
}

static int by_preemptions(const void *a, const void *b)
{
    const struct record *x = *(struct record *const *)a, *y = *(struct record *const *)b;
    if (x->num_preemptions != y->num_preemptions)
        return x->num_preemptions > y->num_preemptions ? -1 : 1;
    return by_wait(a, b);
}

static void mark_worst(struct timeline *t, int (*by)(const void *, const void *))
{
    qsort(t->ranks, t->num_kept, sizeof *t->ranks, by);
    for (size_t i = 0; i < t->num_kept && i < NUM_WORST; i++)
        t->ranks[i]->is_worst = true;
}

/* Leave those at the stride, and the worst of all so far. Who is not one of them now never will be. */
static int thin_out(struct timeline *t, struct pkv_err *err)
{
    size_t num = 0;
    if (pkv_grow(&t->ranks, &t->ranks_capacity, t->num_kept, sizeof *t->ranks, err) < 0)
        return -1;
    for (size_t i = 0; i < t->num_kept; i++) {
        t->kept[i].is_worst = false;
        t->ranks[i] = &t->kept[i];
    }
    mark_worst(t, by_wait);
    mark_worst(t, by_preemptions);
    for (size_t i = 0; i < t->num_kept; i++) {
        struct record *r = &t->kept[i];
        if (r->is_worst || r->came % t->stride == 0) {
            t->kept[num++] = *r;
        } else {
            t->size -= r->num + 1;
            pkv_free(r->entries);
        }
    }
    t->num_kept = num;
    return 0;
}

static int keep(struct timeline *t, const struct record *live, struct pkv_err *err)
{
    struct record r = *live;
    if (pkv_grow(&t->kept, &t->kept_capacity, t->num_kept + 1, sizeof *t->kept, err) < 0)
        return -1;
    r.entries = pkv_alloc(r.num, sizeof *r.entries, err);
    if (!r.entries)
        return -1;
    r.capacity = r.num;
    if (r.num > 0)
        memcpy(r.entries, live->entries, r.num * sizeof *r.entries);
    t->kept[t->num_kept++] = r;
    t->size += r.num + 1;
    while (t->size > MAX_SIZE) {    /* the worst alone are fewer */
        t->stride *= 2;
        if (thin_out(t, err) < 0)
            return -1;
    }
    return 0;
}

static int on_ended(void *ctx, size_t slot, const struct pkv_request_row *row, int64_t time_ns,
                    struct pkv_err *err)
{
    struct timeline *t = ctx;
    struct record *live = &t->live[slot];
    const struct pkv_request *r = row->request;
    live->row = t->num_ended;
    live->waited_ns = (r->admitted_ns == PKV_NO_TIME ? time_ns : r->admitted_ns) - r->arrival_ns;
    live->num_preemptions = r->num_preemptions;
    if (time_ns > t->end_ns)
        t->end_ns = time_ns;
    return keep(t, live, err);
}

/* --- the part -------------------------------------------------------------------------------- */

static void destroy(void *part)
{
    struct timeline *t = part;
    phases_destroy(t->phases);
    for (size_t i = 0; i < t->num_slots; i++)
        pkv_free(t->live[i].entries);
    for (size_t i = 0; i < t->num_kept; i++)
        pkv_free(t->kept[i].entries);
    pkv_free(t->live);
    pkv_free(t->kept);
    pkv_free(t->ranks);
    pkv_free(t);
}

static void *create(const struct pkv_html_config *config, struct pkv_err *err)
{
    (void)config;
    struct timeline *t = pkv_alloc(1, sizeof *t, err);
    if (!t)
        return NULL;
    const struct phases_listener listener = {
        .came = on_came, .entered = on_entered, .ended = on_ended, .ctx = t};
    t->stride = 1;
    t->phases = phases_create(&listener, err);
    if (t->phases)
        return t;
    destroy(t);
    return NULL;
}

static int on_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct timeline *t = ctx;
    return phases_event(t->phases, event, err);
}

/* Those that the run left in the middle of something are told, too. */
static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct timeline *t = ctx;
    int status = phases_request(t->phases, row, err);
    t->num_ended++;
    return status;
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct timeline *t = ctx;
    (void)sched;
    t->end_ns = row->time_ns + row->dur_ns;
    return phases_step(t->phases, row, err);
}

static struct pkv_sink sink(void *part)
{
    return (struct pkv_sink){
        .event = on_event, .request = on_request, .step = on_step, .ctx = part};
}

/* --- the islands ----------------------------------------------------------------------------- */

static int write_about(const struct timeline *t, const char *prefix, struct pkv_out *out,
                       struct pkv_err *err)
{
    struct pkv_text json = {0};
    pkv_text_fmt(&json, "{\"end_ns\":%lld,\"requests\":%lld,\"stride\":%lld,\"worst\":%u,\"phases\":[",
                 (long long)t->end_ns, (long long)t->num_ended, (long long)t->stride,
                 t->stride > 1 ? NUM_WORST : 0);
    for (int i = 0; i < PHASE_COUNT; i++)
        pkv_text_fmt(&json, "%s\"%s\"", i > 0 ? "," : "", phase_name((enum phase)i));
    pkv_text_add(&json, "],\"statuses\":[");
    for (int i = 0; i < PKV_REQUEST_STATUS_COUNT; i++)
        pkv_text_fmt(&json, "%s\"%s\"", i > 0 ? "," : "",
                     pkv_request_status_name((enum pkv_request_status)i));
    pkv_text_add(&json, "]}");
    bool failed = json.failed;
    if (!failed)
        html_json(out, prefix, "timeline-about", json.text);
    pkv_text_free(&json);
    return failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a timeline") : 0;
}

static int write_requests(const struct timeline *t, struct packed *requests, struct packed *phases,
                          struct pkv_err *err)
{
    for (size_t i = 0; i < t->num_kept; i++) {
        const struct record *r = &t->kept[i];
        const int64_t values[] = {r->row, r->came, (int64_t)r->num};
        if (packed_row(requests, values, err) < 0)
            return -1;
        for (size_t k = 0; k < r->num; k++) {
            const struct entry *e = &r->entries[k];
            const int64_t phase[] = {e->phase, e->begin_ns, e->for_whom};
            if (packed_row(phases, phase, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int write(void *part, const char *prefix, struct pkv_out *out, struct pkv_err *err)
{
    static const char *const request_columns[] = {"row", "came", "num_phases"};
    static const char *const phase_columns[] = {"phase", "begin_ns", "for"};
    struct timeline *t = part;
    int status = t->stride > 1 ? thin_out(t, err) : 0;
    struct packed *requests = packed_create(request_columns, 3, err);
    struct packed *phases = requests ? packed_create(phase_columns, 3, err) : NULL;
    if (!phases)
        status = -1;
    if (status == 0)
        status = write_requests(t, requests, phases, err);
    if (status == 0)
        status = packed_write(requests, prefix, "timeline", out, err);
    if (status == 0)
        status = packed_write(phases, prefix, "timeline-phases", out, err);
    if (status == 0)
        status = write_about(t, prefix, out, err);
    packed_destroy(requests);
    packed_destroy(phases);
    return status;
}

const struct html_part html_timeline = {create, destroy, sink, write};
