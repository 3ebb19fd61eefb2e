/*
 * session_run.c - see session_run.h.
 */
#include "session_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define NUM_SESSIONS 3u

static const char *const names[NUM_SESSIONS] = { "a", "b", "c" };

static uint32_t below(struct pkv_rng *rng, uint32_t n)
{
    return (uint32_t)pkv_rng_below(rng, n);
}

/* All that was said before or a part of it, or more than there is, and text of its own. */
static void follow(struct session_run *s, struct pkv_request_spec *spec, struct pkv_rng *rng)
{
    struct pkv_span *spans = s->spans[spec->row];
    uint32_t before = below(rng, 3) == 0 ? 0 : 1 + below(rng, 40), own = 1 + below(rng, 12);
    size_t num = 0;

    spec->follows = true;
    spec->delay_ns = (int64_t)below(rng, 3) * below(rng, 20000);
    if (before > 0)
        spans[num++] = (struct pkv_span){ pkv_origin(PKV_ORIGIN_PREV, 0), 0, before };
    spans[num++] = (struct pkv_span){ pkv_origin(PKV_ORIGIN_OWN, spec->row), 0, own };
    spec->content.prompt = spans;
    spec->content.num_prompt_spans = num;
    spec->num_prompt_tokens = before + own;
    if (spec->abort_ns != PKV_NO_TIME)
        spec->abort_ns -= spec->arrival_ns;
    if (spec->deadline_ns != PKV_NO_TIME)
        spec->deadline_ns -= spec->arrival_ns;
}

void session_run_draw(struct session_run *s, const struct random_run *run)
{
    struct pkv_rng rng;
    struct pkv_request_spec *last[NUM_SESSIONS] = { NULL };

    memset(s, 0, sizeof *s);
    pkv_rng_init(&rng, run->seed, "sessions");
    s->num_asked = run->num_specs;
    for (size_t i = 0; i < run->num_specs; i++) {
        struct pkv_request_spec *spec = &s->asked[i];
        uint32_t session = below(&rng, NUM_SESSIONS + 1);

        *spec = run->specs[i];
        if (session == NUM_SESSIONS)
            continue;
        spec->session = names[session];
        if (below(&rng, 5) > 0)
            follow(s, spec, &rng);
        /* Who follows one that is aborted in a step comes behind that abort, and once flattened before
         * it. To an order that listens to who leaves these are two things. */
        if (spec->follows && run->sched.policies.order->left != NULL)
            spec->delay_ns++;
        last[session] = spec;
    }
    for (size_t i = 0; i < NUM_SESSIONS; i++)
        if (last[i] != NULL && below(&rng, 2) == 0)
            last[i]->is_last = true;
}

static int give(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct session_run *s = ctx;

    (void)err;
    if (s->next == s->num_asked)
        return 0;
    *out = s->asked[s->next++];
    return 1;
}

struct pkv_source session_run_source(struct session_run *s)
{
    s->next = 0;
    return (struct pkv_source){ .next = give, .ctx = s, .has_followers = true };
}

static int note(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct session_run *s = ctx;
    const struct pkv_request *r = event->request;
    struct pkv_request_spec *spec;
    size_t num = r->seq.num_spans;

    (void)err;
    if (event->kind != PKV_EVENT_ARRIVE)
        return 0;
    s->num_followed += event->follows;
    spec = &s->came[s->num_came];
    *spec = s->asked[r->row];
    spec->session = NULL;
    spec->follows = spec->is_last = false;
    spec->delay_ns = 0;
    spec->arrival_ns = r->arrival_ns;
    spec->abort_ns = r->abort_ns;
    spec->deadline_ns = r->deadline_ns;
    s->came_spans[s->num_came] = calloc(num, sizeof(struct pkv_span));
    if (s->came_spans[s->num_came] == NULL)
        abort();
    memcpy(s->came_spans[s->num_came], r->seq.spans, num * sizeof(struct pkv_span));
    spec->content.prompt = s->came_spans[s->num_came++];
    spec->content.num_prompt_spans = num;
    return 0;
}

/* Who comes after the steps that are compared is known to the product then, so the model must know it. */
#define LONGER 20

bool session_run_flatten(struct session_run *s, struct random_run *run,
                         const struct pkv_engine_config *config)
{
    struct pkv_engine_config noting = *config;
    struct pkv_engine *engine;
    bool all_came;

    noting.source = session_run_source(s);
    noting.sinks[0] = (struct pkv_sink){ .event = note, .ctx = s };
    noting.num_sinks = 1;
    noting.max_steps *= LONGER;
    engine = pkv_engine_create(&noting, NULL);
    if (engine == NULL || pkv_engine_run(engine, NULL) < 0)
        abort();
    all_came = pkv_engine_figures(engine)->outcome != PKV_OUTCOME_MAX_STEPS;
    pkv_engine_destroy(engine);
    if (!all_came)
        return false;
    memcpy(run->specs, s->came, sizeof s->came);
    run->num_specs = s->num_came;
    return true;
}

void session_run_finish(struct session_run *s)
{
    for (size_t i = 0; i < s->num_came; i++)
        free(s->came_spans[i]);
}
