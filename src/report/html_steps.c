/*
 * html_steps.c - the step log as an island of report.html: every row, in the columns of steps.csv.
 */
#include "report/html_private.h"

#include "report/packed.h"

static const char *const columns[] = {
#define NAME(name) #name,
    PKV_STEP_COLUMNS(NAME)
#undef NAME
};
#define NUM_COLUMNS (sizeof columns / sizeof *columns)

enum {
#define PLACE(name) STEP_##name,
    PKV_STEP_COLUMNS(PLACE)
#undef PLACE
};

static void *create(const struct pkv_html_config *config, struct pkv_err *err)
{
    (void)config;
    struct packed *p = packed_create(columns, NUM_COLUMNS, err);
    if (!p)
        return NULL;
    /* While nobody comes or goes each step is like the one before: so long, so many tokens more. */
    packed_set_linear(p, STEP_step);
    packed_set_linear(p, STEP_time_ns);
    packed_set_linear(p, STEP_stored_tokens);
    packed_set_like(p, STEP_used_blocks, STEP_free_blocks, true);
    packed_set_like(p, STEP_cached_blocks, STEP_free_blocks, false);
    packed_set_like(p, STEP_free_blocks_end, STEP_free_blocks, false);
    packed_set_like(p, STEP_decode_tokens, STEP_running, false);
    packed_set_like(p, STEP_sched_tokens, STEP_prefill_tokens, false);
    packed_set_like(p, STEP_context_tokens, STEP_stored_tokens, false);
    packed_set_like(p, STEP_max_gap_ns, STEP_dur_ns, false);
    return p;
}

static void destroy(void *part)
{
    packed_destroy(part);
}

int html_steps_add(void *part, const int64_t *row, struct pkv_err *err)
{
    return packed_row(part, row, err);
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    (void)sched;
    return packed_row(ctx, (const int64_t *)row, err);   /* its first fields are the columns */
}

static struct pkv_sink sink(void *part)
{
    return (struct pkv_sink){.step = on_step, .ctx = part};
}

static int write(void *part, const char *prefix, struct pkv_out *out, struct pkv_err *err)
{
    return packed_write(part, prefix, "steps", out, err);
}

const struct html_part html_steps = {create, destroy, sink, write};
