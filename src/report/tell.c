/*
 * tell.c - the words of a life: spans, moments, names, causes. Times are told in steps where every
 * step takes the same time, as the summary does.
 */
#include "report/explain_private.h"

#include <inttypes.h>
#include <string.h>

void tell_span(struct pkv_text *t, const struct run_dir *run, int64_t ns)
{
    if (run->step_ns == 0) {
        add_time(t, ns);
        return;
    }
    add_steps(t, ns, run->step_ns);
    pkv_text_add(t, ns == run->step_ns ? " step" : " steps");
}

void tell_moment(struct pkv_text *t, const struct run_dir *run, int64_t time_ns, uint64_t step)
{
    if (run->step_ns > 0)
        pkv_text_fmt(t, "step %" PRIu64, step);
    else
        pkv_text_fmt(t, "%" PRId64 ".%03d s", time_ns / 1000000000,
                     (int)(time_ns / 1000000 % 1000));
}

void tell_name(struct pkv_text *t, const char *id)
{
    pkv_text_visible(t, id, strlen(id));
}

const char *tell_name_of(const struct cause *c, size_t name)
{
    return c->names.text + name;
}

static void tell_holders(struct pkv_text *t, const struct cause *c)
{
    for (size_t i = 0; i < c->num_holders; i++) {
        pkv_text_add(t, i == 0 ? "; " : i + 1 < c->num_holders ? ", " : " and ");
        tell_name(t, tell_name_of(c, c->holders[i].name));
        pkv_text_add(t, i == 0 ? " held " : " ");
        add_grouped(t, c->holders[i].num_blocks);
    }
}

static void tell_latch(struct pkv_text *t, const struct cause *c)
{
    const char *refused = tell_name_of(c, c->refused);
    bool itself = strcmp(refused, c->names.text) == 0;
    add_latch_reason(t, itself ? "it" : *refused ? refused : NULL, c->num_latched_steps);
    if (c->num_latched_steps > 0)
        pkv_text_add(t, ", until a running request left");
}

void tell_cause(struct pkv_text *t, const struct run_dir *run, const struct cause *c)
{
    if (c->is_latched)
        tell_latch(t, c);
    else
        add_limit_reason(t, c->limit, run->scenario);
    pkv_text_add(t, " (");
    add_counted(t, c->need_blocks, "block");
    pkv_text_add(t, " needed, ");
    add_grouped(t, c->free_blocks);
    pkv_text_add(t, " free");
    tell_holders(t, c);
    pkv_text_add(t, ")");
}
