/*
 * stepper.c - a sink that lets a run pause: it keeps the step at hand and says when to look at it.
 *
 * Whether a step is one to pause at is known when its plan is; only then is its state kept. The pause
 * comes when the step has ended, so that a page tells all of it. What the steps in between brought is
 * counted, and told on the next page.
 */
#include "report/stepper_private.h"

#include <string.h>

#include "base/alloc.h"

struct pkv_stepper *pkv_stepper_create(const struct pkv_stepper_config *config,
                                       struct pkv_err *err)
{
    struct pkv_stepper *s = pkv_alloc(1, sizeof *s, err);
    if (s)
        s->config = *config;
    return s;
}

void pkv_stepper_destroy(struct pkv_stepper *s)
{
    if (!s)
        return;
    tick_free(&s->tick);
    pkv_free(s);
}

void pkv_stepper_pause_at(struct pkv_stepper *s, enum pkv_pause pause, uint64_t step)
{
    s->pause = pause;
    s->pause_step = step;
}

uint64_t pkv_stepper_step(const struct pkv_stepper *s)
{
    return (uint64_t)s->tick.row.step;
}

bool pkv_stepper_has(const struct pkv_stepper *s, const char *id)
{
    const struct tick *tick = &s->tick;
    for (size_t i = 0; i < tick->num_running; i++)
        if (strcmp(tick_word(tick, tick->running[i].id), id) == 0)
            return true;
    for (size_t i = 0; i < tick->num_waiting; i++)
        if (strcmp(tick_word(tick, tick->waiting[i].id), id) == 0)
            return true;
    return false;
}

static void give_letter(struct pkv_stepper *s, const struct pkv_event *event)
{
    switch (event->kind) {
    case PKV_EVENT_ADMIT:
    case PKV_EVENT_RESUME:
        letters_give(&s->letters, event->request);
        break;
    case PKV_EVENT_FINISH:
    case PKV_EVENT_ABORT:
        letters_take_back(&s->letters, event->request->row);
        break;
    case PKV_EVENT_ARRIVE:
    case PKV_EVENT_REJECT:
    case PKV_EVENT_BLOCKED:
    case PKV_EVENT_PREEMPT:
    case PKV_EVENT_FIRST_TOKEN:
    case PKV_EVENT_SWAP_OUT:
    case PKV_EVENT_SWAP_IN:
    case PKV_EVENT_FORK:
    case PKV_EVENT_KIND_COUNT:
        break;
    }
}

static int on_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct pkv_stepper *s = ctx;
    enum told what = told_of(event->kind);
    s->is_blocked |= event->kind == PKV_EVENT_BLOCKED;
    if (s->pause == PKV_PAUSE_NEVER)
        return 0;
    give_letter(s, event);
    if (what == TOLD_COUNT)
        return 0;
    s->passed.counts[what]++;
    return tell_event(&s->tick, s->config.scenario, event, err);
}

static bool is_wanted(const struct pkv_stepper *s, const struct pkv_plan *plan)
{
    switch (s->pause) {
    case PKV_PAUSE_STEP:       return s->num_steps >= s->pause_step;
    case PKV_PAUSE_PREEMPTION: return plan->num_preemptions > 0;
    case PKV_PAUSE_ADMISSION:  return plan->num_admissions > 0;
    case PKV_PAUSE_BLOCKED:    return s->is_blocked;
    case PKV_PAUSE_NEVER:      return false;
    }
    PKV_UNREACHABLE("a pause");
}

static int on_planned(void *ctx, struct pkv_sched *sched, const struct pkv_plan *plan,
                      struct pkv_err *err)
{
    struct pkv_stepper *s = ctx;
    if (!is_wanted(s, plan))
        return 0;
    s->has_tick = true;
    if (tick_take(&s->tick, sched, plan, &s->letters, err) < 0)
        return -1;
    return tell_head(&s->tick, s->config.scenario, sched, plan, err);
}

/* What this step itself brought stands on its own page. */
static void leave_out_own(struct passed *passed, const struct tick *tick)
{
    for (size_t i = 0; i < tick->num_told; i++)
        if (tick->told[i].what != TOLD_WAITS)
            passed->counts[tick->told[i].what]--;
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct pkv_stepper *s = ctx;
    int result = 0;
    (void)sched;
    s->num_steps++;
    s->is_blocked = false;
    if (s->has_tick) {
        s->tick.row = *row;
        s->passed.num_steps = (uint64_t)row->step - s->passed.first_step;
        leave_out_own(&s->passed, &s->tick);
        result = s->config.pause(s->config.ctx, err);
        s->passed = (struct passed){.first_step = s->num_steps};
    }
    s->has_tick = false;
    tick_clear(&s->tick);
    return result;
}

struct pkv_sink pkv_stepper_sink(struct pkv_stepper *s)
{
    return (struct pkv_sink){
        .event = on_event, .planned = on_planned, .step = on_step, .ctx = s};
}
