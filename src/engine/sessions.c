/*
 * sessions.c - see sessions.h.
 *
 *   waiting   rows read ahead that no end is left for, in their order
 *   ends      rows that ended and are not followed yet, in the order of their ends; at most one of
 *             the two lists has anything in it
 *
 * A loop of sessions is kept as a session of its own, whose rows are whole sessions: the first rows wait
 * in it, and the end of a session's last row is an end in it. It is never forgotten.
 */
#include "engine/sessions.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"

/* What a row said, prompt and answer. */
struct former {
    const struct pkv_span *spans;        /* [num], borrowed */
    size_t num;
    uint32_t num_named_tokens;           /* before the first that is this run's alone */
};

/* The same, kept, and when it was over. */
struct row_end {
    struct row_end *next;
    int64_t time_ns;
    size_t num_spans;
    uint32_t num_named_tokens;
    struct pkv_span spans[];
};

struct pkv_session {
    uint64_t name;                       /* its hash */
    uint64_t first_row;                  /* the one it began with */
    uint32_t num_live;                   /* rows that are live, or whose time is known */
    uint32_t num_waiting;
    bool is_closed;                      /* the row marked as the last has been read */
    struct pkv_session *loop;            /* borrowed: in which it is one of the rows; NULL = none */
    struct held_row *waiting, *last_waiting;
    struct row_end *ends, *last_end;
};

/* --- the table ------------------------------------------------------------------------------- */

static uint64_t name_of(const struct pkv_request_spec *spec)
{
    return pkv_hash_name(spec->session, strlen(spec->session));
}

/* No session has the name of a loop. */
static uint64_t loop_name_of(const struct pkv_request_spec *spec)
{
    return pkv_mix(pkv_hash_name(spec->loop, strlen(spec->loop)), 1);
}

/* Where the session stands, or would. */
static size_t find_slot(const struct sessions *s, uint64_t name)
{
    size_t mask = s->num_slots - 1, i = (size_t)pkv_scramble(name) & mask;
    while (s->slots[i] && s->slots[i]->name != name)
        i = (i + 1) & mask;
    return i;
}

static struct pkv_session *find(const struct sessions *s, uint64_t name)
{
    return s->num_slots ? s->slots[find_slot(s, name)] : NULL;
}

static int make_room(struct sessions *s, struct pkv_err *err)
{
    struct sessions larger = {.num_slots = s->num_slots ? 2 * s->num_slots : 64};
    if (2 * (s->num + 1) <= s->num_slots)
        return 0;
    larger.slots = pkv_alloc(larger.num_slots, sizeof(*larger.slots), err);
    if (!larger.slots)
        return -1;
    for (size_t i = 0; i < s->num_slots; i++)
        if (s->slots[i])
            larger.slots[find_slot(&larger, s->slots[i]->name)] = s->slots[i];
    pkv_free(s->slots);
    s->slots = larger.slots;
    s->num_slots = larger.num_slots;
    return 0;
}

static struct pkv_session *find_or_add(struct sessions *s, uint64_t name, uint64_t row,
                                       struct pkv_err *err)
{
    struct pkv_session *session = find(s, name);
    if (session)
        return session;
    if (make_room(s, err) < 0 || !(session = pkv_alloc(1, sizeof(*session), err)))
        return NULL;
    session->name = name;
    session->first_row = row;
    s->slots[find_slot(s, name)] = session;
    s->num++;
    return session;
}

static void free_session(struct pkv_session *session)
{
    while (session->waiting) {
        struct held_row *next = session->waiting->next;
        sessions_drop(session->waiting);
        session->waiting = next;
    }
    while (session->ends) {
        struct row_end *next = session->ends->next;
        pkv_free(session->ends);
        session->ends = next;
    }
    pkv_free(session);
}

/* Take it out of the table; those behind it that would not be found any more move up. */
static void forget(struct sessions *s, struct pkv_session *session)
{
    size_t mask = s->num_slots - 1, hole = find_slot(s, session->name);
    for (size_t i = (hole + 1) & mask; s->slots[i]; i = (i + 1) & mask) {
        size_t home = (size_t)pkv_scramble(s->slots[i]->name) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        s->slots[hole] = s->slots[i];
        hole = i;
    }
    s->slots[hole] = NULL;
    s->num--;
    free_session(session);
}

static bool is_over(const struct pkv_session *session)
{
    return session->is_closed && session->num_live == 0 && session->num_waiting == 0;
}

void sessions_finish(struct sessions *s)
{
    struct held_row *held;
    while ((held = sessions_first(s))) {
        sessions_remove_first(s);
        sessions_drop(held);
    }
    pkv_heap_free(&s->coming);
    for (size_t i = 0; i < s->num_slots; i++)
        if (s->slots[i])
            free_session(s->slots[i]);
    pkv_free(s->slots);
    pkv_free(s->text);
}

/* --- rows that are held ---------------------------------------------------------------------- */

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *put_text(char **at, const char *text)
{
    const char *copy = *at;
    if (!text)
        return NULL;
    memcpy(*at, text, strlen(text) + 1);
    *at += strlen(text) + 1;
    return copy;
}

/* The row with room for other spans than it has. */
static struct held_row *copy_row(const struct pkv_request_spec *spec, size_t num_spans,
                                 struct pkv_err *err)
{
    size_t size = sizeof(struct held_row) + num_spans * sizeof(struct pkv_span) +
                  text_size(spec->id) + text_size(spec->tenant) + text_size(spec->session) +
                  text_size(spec->loop);
    struct held_row *held = pkv_alloc(1, size, err);
    if (!held)
        return NULL;
    struct pkv_span *spans = (struct pkv_span *)(held + 1);
    char *texts = (char *)(spans + num_spans);
    held->node.index = PKV_HEAP_NOWHERE;
    held->spec = *spec;
    held->spec.id = put_text(&texts, spec->id);
    held->spec.tenant = put_text(&texts, spec->tenant);
    held->spec.session = put_text(&texts, spec->session);
    held->spec.loop = put_text(&texts, spec->loop);
    held->spec.content.prompt = spans;
    held->spec.content.num_prompt_spans = num_spans;
    return held;
}

static struct held_row *hold(const struct pkv_request_spec *spec, struct pkv_err *err)
{
    size_t num = spec->content.num_prompt_spans;
    struct held_row *held = copy_row(spec, num, err);
    if (held)
        memcpy((struct pkv_span *)(held + 1), spec->content.prompt, num * sizeof(struct pkv_span));
    return held;
}

void sessions_drop(struct held_row *held)
{
    pkv_free(held);
}

/* The first tokens of what the former row said in the place of a span; what it did not say is text
 * that nobody shares. returns  the spans it takes; out NULL = only count */
static size_t put_former(const struct former *former, uint64_t row, struct pkv_span span,
                         struct pkv_span *out, uint32_t *out_found)
{
    size_t used = 0;
    uint32_t left = span.count;
    for (size_t i = 0; i < former->num && left > 0; i++) {
        const struct pkv_span *of = &former->spans[i];
        uint32_t count = of->count < left ? of->count : left;
        left -= count;
        if (out)
            out[used] = (struct pkv_span){of->origin, of->first, count};
        used++;
    }
    *out_found = span.count - left;
    if (left > 0 && out)
        out[used] = (struct pkv_span){pkv_origin(PKV_ORIGIN_PREV, row + 1), *out_found, left};
    return used + (left > 0);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The row's prompt with the text of the row it follows; out NULL = only count its spans. */
static size_t put_prompt(const struct pkv_request_spec *spec, const struct former *former,
                         struct pkv_span *out, uint32_t *out_former_tokens, uint32_t *out_named)
{
    uint64_t prev = pkv_origin(PKV_ORIGIN_PREV, 0);
    uint32_t at = 0, found;
    size_t used = 0;
    *out_former_tokens = 0;
    *out_named = spec->content.num_named_tokens;
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        struct pkv_span span = spec->content.prompt[i];
        if (span.origin == prev) {
            used += put_former(former, spec->row, span, out ? out + used : NULL, &found);
            *out_former_tokens = found > 0 ? at + found : *out_former_tokens;
            uint32_t named = smaller(found, former->num_named_tokens);
            if (named < span.count)
                *out_named = smaller(*out_named, at + named);
        } else {
            if (out)
                out[used] = span;
            used++;
        }
        at += span.count;
    }
    return used;
}

static int too_late(const struct pkv_request_spec *spec, struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " (from 0) comes after another of its "
                    "session, and a time of it would be beyond the range of virtual time", spec->row);
}

static bool move_on(int64_t *time_ns, int64_t by_ns)
{
    if (*time_ns == PKV_NO_TIME)
        return true;
    if (*time_ns > INT64_MAX - by_ns)
        return false;
    *time_ns += by_ns;
    return true;
}

/* Its time is known: that of the end and its delay, but not before its place among the rows. */
static int set_times(struct pkv_request_spec *spec, int64_t end_ns, struct pkv_err *err)
{
    int64_t arrival_ns = end_ns;
    if (!move_on(&arrival_ns, spec->delay_ns))
        return too_late(spec, err);
    if (arrival_ns > spec->arrival_ns)
        spec->arrival_ns = arrival_ns;
    if (!move_on(&spec->abort_ns, spec->arrival_ns) ||
        !move_on(&spec->deadline_ns, spec->arrival_ns))
        return too_late(spec, err);
    return 0;
}

/* The row follows one that ended at end_ns and said this. held is taken over. */
static int follow(struct sessions *s, struct held_row *held, const struct former *former,
                  int64_t end_ns, int64_t *out_arrival_ns, struct pkv_err *err)
{
    struct pkv_session *session = held->session, *loop = held->loop;
    uint32_t former_tokens, named;
    size_t num_spans = put_prompt(&held->spec, former, NULL, &former_tokens, &named);
    struct held_row *whole = NULL;
    if (pkv_heap_reserve(&s->coming, s->coming.num + 1, err) == 0)
        whole = copy_row(&held->spec, num_spans, err);
    if (whole)
        put_prompt(&held->spec, former, (struct pkv_span *)(whole + 1), &whole->former_tokens,
                   &whole->spec.content.num_named_tokens);
    sessions_drop(held);
    if (!whole)
        return -1;
    if (set_times(&whole->spec, end_ns, err) < 0) {
        sessions_drop(whole);
        return -1;
    }
    whole->session = session;
    whole->loop = loop;
    whole->node.key[0] = whole->spec.arrival_ns;
    whole->node.key[1] = (int64_t)whole->spec.row;
    pkv_heap_push(&s->coming, &whole->node);
    (loop ? loop : session)->num_live++;
    *out_arrival_ns = whole->spec.arrival_ns;
    return 0;
}

/* --- what happens ---------------------------------------------------------------------------- */

bool sessions_is_full(const struct sessions *s, const struct pkv_request_spec *spec)
{
    const struct pkv_session *session = find(s, name_of(spec));
    if (!session && spec->loop)
        session = find(s, loop_name_of(spec));
    return session && session->num_waiting >= PKV_MOST_ROWS_AHEAD;
}

static void add_waiting(struct pkv_session *session, struct held_row *held)
{
    *(session->waiting ? &session->last_waiting->next : &session->waiting) = held;
    session->last_waiting = held;
    session->num_waiting++;
}

/* Follow the first end that nobody follows yet. */
static int follow_end(struct sessions *s, struct held_row *held, struct pkv_session *in,
                      int64_t *out_arrival_ns, struct pkv_err *err)
{
    struct row_end *end = in->ends;
    in->ends = end->next;
    const struct former former = {end->spans, end->num_spans, end->num_named_tokens};
    int status = follow(s, held, &former, end->time_ns, out_arrival_ns, err);
    pkv_free(end);
    return status;
}

/* A session is in the loop that its first row names; the others may name it again. */
static int join_loop(struct sessions *s, const struct pkv_request_spec *spec,
                     struct pkv_session *session, struct pkv_err *err)
{
    if (!spec->loop)
        return 0;
    if (session->first_row == spec->row) {
        session->loop = find_or_add(s, loop_name_of(spec), spec->row, err);
        return session->loop ? 0 : -1;
    }
    if (session->loop && session->loop->name == loop_name_of(spec))
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " (from 0) is in loop '%s', but its session "
                    "'%s' began with request %" PRIu64 " %s; name the loop in the session's first row",
                    spec->row, spec->loop, spec->session, session->first_row,
                    session->loop ? "in another loop" : "in no loop");
}

int sessions_take(struct sessions *s, const struct pkv_request_spec *spec,
                  int64_t *out_arrival_ns, struct pkv_err *err)
{
    bool is_first = spec->loop && !find(s, name_of(spec));
    struct pkv_session *session = find_or_add(s, name_of(spec), spec->row, err), *in = session;
    struct held_row *held = session && join_loop(s, spec, session, err) == 0 ? hold(spec, err) : NULL;
    *out_arrival_ns = PKV_NO_TIME;
    if (!held)
        return -1;
    held->session = session;
    session->is_closed |= spec->is_last;
    if (is_first) {
        in = held->loop = session->loop;
        session->num_live++;
    }
    if (in->ends)
        return follow_end(s, held, in, out_arrival_ns, err);
    if (in->num_live == 0)                /* there is nobody before it: it comes at its place */
        return follow(s, held, &(struct former){0}, spec->arrival_ns - spec->delay_ns,
                      out_arrival_ns, err);
    add_waiting(in, held);
    return 0;
}

struct held_row *sessions_first(const struct sessions *s)
{
    return (struct held_row *)pkv_heap_first(&s->coming);   /* the node comes first in it */
}

void sessions_remove_first(struct sessions *s)
{
    pkv_heap_remove(&s->coming, pkv_heap_first(&s->coming));
}

int sessions_arrived(struct sessions *s, const struct pkv_request_spec *spec,
                     const struct held_row *held, struct pkv_request *r, struct pkv_err *err)
{
    struct pkv_session *session = held ? held->session : NULL;
    if (!spec->session)
        return 0;
    if (!held) {
        session = find_or_add(s, name_of(spec), spec->row, err);
        if (!session)
            return -1;
        bool had_loop = session->loop != NULL;
        if (join_loop(s, spec, session, err) < 0)
            return -1;
        if (session->loop && !had_loop)
            session->loop->num_live++;
        session->is_closed |= spec->is_last;
        session->num_live++;
    }
    r->session = session;
    return 0;
}

/* What it said, in the scratch. */
static int text_of(struct sessions *s, const struct pkv_request *r, struct former *out,
                   struct pkv_err *err)
{
    const struct pkv_seq *seq = &r->seq;
    size_t num = seq->num_spans;
    if (pkv_grow(&s->text, &s->text_capacity, num + 1, sizeof(*s->text), err) < 0)
        return -1;
    memcpy(s->text, seq->spans, num * sizeof(*s->text));
    if (r->num_emitted > 0)
        s->text[num++] = (struct pkv_span){seq->output_origin, seq->output_first, r->num_emitted};
    *out = (struct former){s->text, num, seq->num_named_tokens};
    return 0;
}

static int add_end(struct pkv_session *session, const struct former *said, int64_t time_ns,
                   struct pkv_err *err)
{
    struct row_end *end = pkv_alloc(1, sizeof(*end) + said->num * sizeof(*said->spans), err);
    if (!end)
        return -1;
    end->time_ns = time_ns;
    end->num_spans = said->num;
    end->num_named_tokens = said->num_named_tokens;
    if (said->num > 0)   /* a session as a whole has no text */
        memcpy(end->spans, said->spans, said->num * sizeof(*said->spans));
    *(session->ends ? &session->last_end->next : &session->ends) = end;
    session->last_end = end;
    return 0;
}

/* One of a session's rows, or of a loop's sessions, has ended. */
static int end_row(struct sessions *s, struct pkv_session *session, const struct former *said,
                   int64_t time_ns, struct pkv_err *err)
{
    struct held_row *held = session->waiting;
    int64_t arrival_ns;
    if (!held)
        return add_end(session, said, time_ns, err);
    session->waiting = held->next;
    session->num_waiting--;
    return follow(s, held, said, time_ns, &arrival_ns, err);
}

int sessions_over(struct sessions *s, struct pkv_request *r, int64_t time_ns, struct pkv_err *err)
{
    struct pkv_session *session = r->session;
    struct former said = {0};
    if (!session)
        return 0;
    r->session = NULL;
    session->num_live--;
    if ((session->waiting || !session->is_closed) &&
        (text_of(s, r, &said, err) < 0 || end_row(s, session, &said, time_ns, err) < 0))
        return -1;
    if (!is_over(session))
        return 0;
    struct pkv_session *loop = session->loop;
    forget(s, session);
    if (!loop)
        return 0;
    loop->num_live--;
    return end_row(s, loop, &(struct former){0}, time_ns, err);
}

/* The first of its sessions that never ends, as no row of it is marked as the last. */
static const struct pkv_session *first_open(const struct sessions *s, const struct pkv_session *loop)
{
    const struct pkv_session *first = NULL;
    for (size_t i = 0; i < s->num_slots; i++) {
        const struct pkv_session *session = s->slots[i];
        if (session && session->loop == loop && !session->is_closed &&
            (!first || session->first_row < first->first_row))
            first = session;
    }
    return first;
}

int sessions_check_left(const struct sessions *s, struct pkv_err *err)
{
    const struct pkv_session *loop = NULL;
    for (size_t i = 0; i < s->num_slots; i++) {
        const struct pkv_session *session = s->slots[i];
        if (session && session->num_waiting > 0 &&
            (!loop || session->waiting->spec.row < loop->waiting->spec.row))
            loop = session;
    }
    if (!loop)
        return 0;
    const struct pkv_session *open = first_open(s, loop);
    PKV_ASSERT(open);   /* in a session somebody waits only while another of it is live */
    return pkv_fail(err, PKV_ERR_INPUT, "%u row%s of loop '%s' never come%s, the first of them request "
                    "%" PRIu64 " (from 0): no row of the session that began with request %" PRIu64
                    " is marked \"last\", so it is never over", loop->num_waiting,
                    loop->num_waiting == 1 ? "" : "s", loop->waiting->spec.loop,
                    loop->num_waiting == 1 ? "s" : "", loop->waiting->spec.row, open->first_row);
}
