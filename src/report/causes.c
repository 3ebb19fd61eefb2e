/*
 * causes.c - who is first in line and was refused, as far as the events tell; who left last.
 *
 * A refusal is told once for each head and cause. The heads that still wait form a stack: a
 * preempted request goes in front of the one that was first, and when it is admitted, the other one
 * is first again.
 */
#include "report/explain_private.h"

#include <string.h>

static int fail_memory(struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for what a request waits for");
}

static int copy_text(struct pkv_text *to, const struct pkv_text *from, struct pkv_err *err)
{
    pkv_text_clear(to);
    pkv_text_bytes(to, from->text, from->length);
    return to->failed ? fail_memory(err) : 0;
}

/* In the step of a finish nobody was looked at either. */
void cause_opened(struct cause *c, const struct run_event *e)
{
    uint64_t end_step = e->step + (e->kind == PKV_EVENT_FINISH);
    if (c->is_latched && c->num_latched_steps == 0 && end_step > c->refused_step)
        c->num_latched_steps = end_step - c->refused_step - 1;
}

void cause_free(struct cause *c)
{
    pkv_text_free(&c->names);
}

int cause_copy(struct cause *to, const struct cause *from, struct pkv_err *err)
{
    struct pkv_text names = to->names;
    int status = copy_text(&names, &from->names, err);
    *to = *from;
    to->names = names;
    return status;
}

/* ---- heads ---- */

const struct cause *heads_first(const struct heads *h)
{
    return h->num > 0 ? &h->items[h->num - 1] : NULL;
}

void heads_leave(struct heads *h, const char *id)
{
    for (size_t i = h->num; i-- > 0;)
        if (strcmp(h->items[i].names.text, id) == 0) {
            cause_free(&h->items[i]);
            memmove(&h->items[i], &h->items[i + 1], (h->num - i - 1) * sizeof *h->items);
            h->num--;
            return;
        }
}

void heads_opened(struct heads *h, const struct run_event *e)
{
    for (size_t i = 0; i < h->num; i++)
        cause_opened(&h->items[i], e);
}

int heads_note(struct heads *h, const struct run_event *e, struct pkv_err *err)
{
    heads_leave(h, e->id.text);
    if (h->num == MAX_HEADS)
        heads_leave(h, h->items[0].names.text);
    struct cause *c = &h->items[h->num++];
    *c = (struct cause){.time_ns = e->time_ns, .step = e->step, .need_blocks = e->need_blocks,
                        .free_blocks = e->free_blocks, .limit = (enum pkv_limit)e->limit,
                        .num_holders = e->num_holders, .is_latched = e->is_latched,
                        .refused_step = e->refused_step};
    pkv_text_bytes(&c->names, e->id.text, e->id.length + 1);    /* with its NUL */
    for (size_t i = 0; i < e->num_holders; i++) {
        c->holders[i] = e->holders[i];
        c->holders[i].name += c->names.length;
    }
    pkv_text_bytes(&c->names, e->names.text, e->names.length);
    c->refused = c->names.length;
    pkv_text_bytes(&c->names, e->who.text, e->who.length);
    pkv_text_bytes(&c->names, "", 1);
    if (!c->names.failed)
        return 0;
    cause_free(c);
    h->num--;
    return fail_memory(err);
}

void heads_free(struct heads *h)
{
    for (size_t i = 0; i < h->num; i++)
        cause_free(&h->items[i]);
    h->num = 0;
}

/* ---- leavers ---- */

int leavers_note(struct leavers *l, const struct run_event *e, struct pkv_err *err)
{
    if (l->time_ns != e->time_ns)
        l->num = 0;
    l->time_ns = e->time_ns;
    l->step = e->step;
    if (l->num < MAX_LEAVERS) {
        l->kinds[l->num] = e->kind;
        if (copy_text(&l->names[l->num], &e->id, err) < 0)
            return -1;
    }
    l->num++;
    return 0;
}

int leavers_copy(struct leavers *to, const struct leavers *from, const char *except,
                 struct pkv_err *err)
{
    uint64_t named = from->num < MAX_LEAVERS ? from->num : MAX_LEAVERS, kept = 0;
    for (size_t i = 0; i < named; i++) {
        if (strcmp(from->names[i].text, except) == 0)
            continue;
        to->kinds[kept] = from->kinds[i];
        if (copy_text(&to->names[kept++], &from->names[i], err) < 0)
            return -1;
    }
    to->time_ns = from->time_ns;
    to->step = from->step;
    to->num = kept + (from->num - named);
    return 0;
}

void leavers_free(struct leavers *l)
{
    for (size_t i = 0; i < MAX_LEAVERS; i++)
        pkv_text_free(&l->names[i]);
}
