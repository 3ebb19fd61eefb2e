/*
 * run_events.c - events.jsonl of a former run, event by event, each checked to have what its kind
 * has.
 */
#include "report/explain_private.h"

#include <string.h>

enum number {
#define PKV_ENUM(name) NUMBER_##name,
    EVENT_NUMBERS(PKV_ENUM)
#undef PKV_ENUM
    NUMBER_COUNT
};
#define BIT(number) (1u << NUMBER_##number)
#define ADMISSION (BIT(need_blocks) | BIT(free_blocks) | BIT(hit_tokens) | BIT(sched_tokens))

/* Which numbers an event of a kind has to have, besides its step. */
static unsigned numbers_of(enum pkv_event_kind kind)
{
    switch (kind) {
    case PKV_EVENT_ARRIVE:      return BIT(prompt_tokens) | BIT(output_tokens);
    case PKV_EVENT_ADMIT:
    case PKV_EVENT_RESUME:      return ADMISSION;
    case PKV_EVENT_BLOCKED:     return BIT(limit) | BIT(need_blocks) | BIT(free_blocks);
    case PKV_EVENT_PREEMPT:     return BIT(freed_blocks) | BIT(lost_tokens);
    case PKV_EVENT_FINISH:      return BIT(output_tokens);
    case PKV_EVENT_ABORT:       return BIT(freed_blocks);
    case PKV_EVENT_SWAP_OUT:
    case PKV_EVENT_SWAP_IN:     return BIT(blocks) | BIT(bytes) | BIT(done_ns);
    case PKV_EVENT_FORK:        return BIT(shared_blocks) | BIT(shared_tokens) | BIT(freed_blocks);
    case PKV_EVENT_REJECT:
    case PKV_EVENT_FIRST_TOKEN:
    case PKV_EVENT_KIND_COUNT:  break;
    }
    return 0;
}

int run_events_open(struct run_events *e, const struct run_dir *run, struct pkv_err *err)
{
    *e = (struct run_events){.run = run, .first_arrival_ns = PKV_NO_TIME};
    return side_open(&e->side, run->events, err);
}

void run_events_close(struct run_events *e)
{
    side_close(&e->side);
    pkv_text_free(&e->event.id);
    pkv_text_free(&e->event.who);
    pkv_text_free(&e->event.names);
    pkv_text_free(&e->scratch);
}

/* Add the characters of a string to a text, which goes on behind a NUL if asked to. */
static int add_string(struct run_events *e, struct pkv_json *j, struct pkv_text *out, bool ended,
                      struct pkv_err *err)
{
    struct pkv_json_text string;
    if (pkv_json_string(j, &string, err) < 0)
        return -1;
    if (!string.has_escapes) {
        pkv_text_bytes(out, string.text, string.length);
    } else {
        pkv_text_clear(&e->scratch);
        pkv_text_bytes(&e->scratch, string.text, string.length);
        if (!e->scratch.failed)
            pkv_text_bytes(out, e->scratch.text, pkv_json_unescape(&string, e->scratch.text));
        out->failed |= e->scratch.failed;
    }
    if (ended)
        pkv_text_bytes(out, "", 1);
    return 0;
}

static int take_word(struct run_events *e, struct pkv_json *j, struct pkv_text *out,
                     struct pkv_err *err)
{
    pkv_text_clear(out);
    return add_string(e, j, out, false, err);
}

static int take_kind(struct pkv_json *j, enum pkv_event_kind *out, struct pkv_err *err)
{
    struct pkv_json_text word;
    if (pkv_json_string(j, &word, err) < 0)
        return -1;
    for (int i = 0; i < PKV_EVENT_KIND_COUNT; i++)
        if (pkv_json_text_is(&word, pkv_event_kind_name((enum pkv_event_kind)i))) {
            *out = (enum pkv_event_kind)i;
            return 0;
        }
    return pkv_json_fail_at(j, word.column, err, "'%.*s' is no kind of event of this version",
                            word.length < 60 ? (int)word.length : 60, word.text);
}

static int take_holders(struct run_events *e, struct pkv_json *j, struct pkv_err *err)
{
    struct run_event *v = &e->event;
    int more;
    if (pkv_json_enter_array(j, err) < 0)
        return -1;
    while ((more = pkv_json_next_item(j, err)) > 0) {
        struct held *h = &v->holders[v->num_holders];
        if (v->num_holders == PKV_MAX_HOLDERS)
            return pkv_json_fail(j, err, "more than %u holders", PKV_MAX_HOLDERS);
        h->name = v->names.length;
        if (pkv_json_enter_array(j, err) < 0 || pkv_json_need_item(j, "an id", err) < 0 ||
            add_string(e, j, &v->names, true, err) < 0 ||
            pkv_json_need_item(j, "a number of blocks", err) < 0 ||
            pkv_json_u64(j, UINT32_MAX, &h->num_blocks, err) < 0 ||
            pkv_json_need_array_end(j, err) < 0)
            return -1;
        v->num_holders++;
    }
    return more;
}

/* One member; numbers are noted in `seen`. has: of time, kind, id. */
struct found { unsigned numbers; bool time, kind, id, who; };

static int take_member(struct run_events *e, struct pkv_json *j, const struct pkv_json_text *key,
                       struct found *found, struct pkv_err *err)
{
    struct run_event *v = &e->event;
#define TAKE(name)                                                       \
    if (pkv_json_text_is(key, #name)) {                                  \
        found->numbers |= BIT(name);                                     \
        return pkv_json_u64(j, INT64_MAX, &v->name, err);                \
    }
    EVENT_NUMBERS(TAKE)
#undef TAKE
    if (pkv_json_text_is(key, "time_ns")) {
        found->time = true;
        return pkv_json_i64(j, &v->time_ns, err);
    }
    if (pkv_json_text_is(key, "kind")) {
        found->kind = true;
        return take_kind(j, &v->kind, err);
    }
    if (pkv_json_text_is(key, "id")) {
        found->id = true;
        return take_word(e, j, &v->id, err);
    }
    if (pkv_json_text_is(key, "for") || pkv_json_text_is(key, "reason") ||
        pkv_json_text_is(key, "was") || pkv_json_text_is(key, "refused") ||
        pkv_json_text_is(key, "from")) {
        found->who = true;
        return take_word(e, j, &v->who, err);
    }
    if (pkv_json_text_is(key, "holders"))
        return take_holders(e, j, err);
    return pkv_json_value(j, NULL, err);
}

static int check_event(const struct run_events *e, const struct found *found, struct pkv_err *err)
{
    const struct run_event *v = &e->event;
    unsigned wanted = BIT(step) | (found->kind ? numbers_of(v->kind) : 0);
    bool needs_who = v->kind == PKV_EVENT_REJECT || v->kind == PKV_EVENT_PREEMPT ||
                     v->kind == PKV_EVENT_ABORT || v->kind == PKV_EVENT_FORK;
    if (!found->time || !found->kind || !found->id || (found->numbers & wanted) != wanted ||
        (needs_who && !found->who))
        return pkv_fail_at(err, e->side.path, e->side.lines.number, 0,
                           "an event lacks something: time_ns, step, kind, id, or what its kind has");
    if (v->limit >= PKV_LIMIT_COUNT)
        return pkv_fail_at(err, e->side.path, e->side.lines.number, 0, "limit %llu is not known",
                           (unsigned long long)v->limit);
    if (v->id.failed || v->who.failed || v->names.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for an event");
    return 0;
}

static int take_event(struct run_events *e, struct pkv_err *err)
{
    struct run_event *v = &e->event;
    struct found found = {0};
    struct pkv_json j;
    struct pkv_json_text key;
    int more;
    v->limit = 0;
    v->num_holders = 0;
    pkv_text_clear(&v->who);
    pkv_text_clear(&v->names);
    pkv_json_init(&j, e->side.path, e->side.lines.number, e->side.text, e->side.length);
    if (pkv_json_enter_object(&j, err) < 0)
        return -1;
    while ((more = pkv_json_next_member(&j, &key, err)) > 0)
        if (take_member(e, &j, &key, &found, err) < 0)
            return -1;
    v->is_latched = found.numbers & BIT(refused_step);
    if (more < 0 || pkv_json_end(&j, err) < 0 || check_event(e, &found, err) < 0)
        return -1;
    e->num[v->kind]++;
    if (e->first_arrival_ns == PKV_NO_TIME)
        e->first_arrival_ns = v->time_ns;
    return 1;
}

/* At the end: is this the log of the run that the summary is of? */
static int check_counts(const struct run_events *e, struct pkv_err *err)
{
    const struct run_counts *c = &e->run->counts;
    const struct { const char *what; enum pkv_event_kind kind; uint64_t want; } all[] = {
        {"arrivals", PKV_EVENT_ARRIVE, c->arrived},
        {"rejections", PKV_EVENT_REJECT, c->rejected},
        {"preemptions", PKV_EVENT_PREEMPT, c->preemptions},
        {"finished requests", PKV_EVENT_FINISH, c->completed},
        {"aborts", PKV_EVENT_ABORT, c->aborted},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (e->num[all[i].kind] != all[i].want)
            return run_dir_mixed(e->side.path, all[i].what, e->num[all[i].kind], all[i].want, err);
    return 0;
}

int run_events_next(struct run_events *e, struct pkv_err *err)
{
    if (e->started && e->side.text && side_next(&e->side, err) < 0)
        return -1;
    e->started = true;
    return e->side.text ? take_event(e, err) : check_counts(e, err);
}
