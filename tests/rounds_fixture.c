/*
 * rounds_fixture.c - see rounds_fixture.h.
 *
 * What the policy is shown is made anew for each look at the queue, so nothing but the words of the
 * rounds decides what a request holds.
 */
#include "rounds_fixture.h"

#include <stdlib.h>

#include <check.h>

#include "policy/peak.h"
#include "sched_fixture.h"

#define MOST_RUNNING 256

struct live { uint32_t num_prompt, num_output, num_decoded; };

struct rounds {
    const struct rounds_config *config;
    const struct pkv_admit_ops *admit;
    struct live *waiting;           /* [num_waiting], the front last; owned */
    size_t num_waiting;
    struct live running[MOST_RUNNING];   /* as they were let in */
    size_t num_running;
    struct rounds_figures figures;
    /* What the policy sees. */
    struct pkv_sched *sched;        /* for its cache: blocks of one token; owned */
    struct pkv_sched_view view;
    struct pkv_request shown[MOST_RUNNING];
    struct pkv_request *listed[MOST_RUNNING];
    _Alignas(max_align_t) unsigned char pass[64 + MOST_RUNNING * 32];
};

static uint64_t usage(const struct rounds *r)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < r->num_running; i++)
        sum += r->running[i].num_prompt + r->running[i].num_decoded;
    return sum;
}

static uint64_t sample_usage(struct rounds *r)
{
    uint64_t now = usage(r);

    r->figures.usage_sum += now;
    r->figures.num_usages++;
    return now;
}

static void decode(struct rounds *r)
{
    size_t num = 0;
    uint64_t held;

    for (size_t i = 0; i < r->num_running; i++)
        if (++r->running[i].num_decoded < r->running[i].num_output)
            r->running[num++] = r->running[i];
    r->figures.num_finished += r->num_running - num;
    r->num_running = num;
    for (held = sample_usage(r); held > r->config->memory_tokens; held = usage(r)) {
        r->waiting[r->num_waiting++] = r->running[--r->num_running];
        r->figures.num_evicted++;
    }
    r->figures.num_steps++;
}

/* --- a look at the queue --------------------------------------------------------------------- */

/* The place behind the running ones is the candidate's. It holds nothing yet. */
static struct pkv_request *show(struct rounds *r, size_t place, const struct live *live)
{
    uint32_t most = r->config->max_tokens - 1;
    uint32_t generated = live->num_decoded < most ? live->num_decoded : most;
    struct pkv_request *shown = &r->shown[place];

    shown->num_emitted = generated;
    shown->max_tokens = r->config->max_tokens;
    shown->num_output_tokens = live->num_output;
    shown->seq.num_prompt_tokens = live->num_prompt;
    shown->seq.num_known_tokens = live->num_prompt + generated;
    shown->seq.num_computed_tokens = shown->seq.tables[0].num = 0;
    r->listed[place] = shown;
    return shown;
}

static void hold(struct rounds *r, struct pkv_request *shown)
{
    uint32_t num = shown->seq.num_known_tokens;

    shown->seq.num_computed_tokens = shown->seq.tables[0].num = num;
    /* One who comes back brings more than the prompt that was asked for. */
    r->view.num_free_blocks -= num < r->view.num_free_blocks ? num : r->view.num_free_blocks;
    r->view.num_running++;
}

static void begin_pass(struct rounds *r)
{
    r->view = (struct pkv_sched_view){
        .cache = pkv_sched_cache(r->sched), .running = r->listed,
        .num_free_blocks = r->config->memory_tokens, .num_blocks = r->config->memory_tokens,
        .num_watermark_blocks = r->config->watermark_tokens, .max_model_len = UINT32_MAX };
    for (size_t i = 0; i < r->num_running; i++)
        hold(r, show(r, i, &r->running[i]));
    ck_assert_uint_le(r->admit->pass_size + r->admit->pass_size_each * MOST_RUNNING, sizeof r->pass);
    if (r->admit->begin)
        r->admit->begin(NULL, &r->view, r->pass);
}

/* returns the prompt tokens let in; 0 if it must wait */
static uint32_t admit_front(struct rounds *r)
{
    const struct live *front = &r->waiting[r->num_waiting - 1];
    struct pkv_request *shown = show(r, r->num_running, front);
    const struct pkv_hit none = { 0 };
    const struct pkv_candidate c = { .request = shown, .hit = &none,
                                     .num_tokens = front->num_prompt,
                                     .num_positions = front->num_prompt,
                                     .need_blocks = front->num_prompt };
    uint64_t need = c.need_blocks;

    ck_assert_uint_lt(r->num_running, MOST_RUNNING - 1);
    if (r->admit->consider(NULL, &r->view, r->pass, &c, &need) != PKV_ADMIT)
        return 0;
    r->running[r->num_running++] = *front;
    r->num_waiting--;
    hold(r, shown);
    if (r->admit->took)
        r->admit->took(NULL, &r->view, r->pass, &c);
    return c.num_tokens;
}

static void look_at_the_queue(struct rounds *r)
{
    uint64_t num_tokens = 0;
    uint32_t more = 1;

    begin_pass(r);
    while (more && r->num_waiting > 0 && num_tokens < r->config->enough_prompt_tokens)
        num_tokens += more = admit_front(r);
    if (r->admit->end)
        r->admit->end(NULL, &r->view, r->pass);
    ck_assert_uint_gt(r->num_running, 0);
    sample_usage(r);
}

static uint64_t future_peak(const struct rounds *r)
{
    struct peak_item items[MOST_RUNNING];

    for (size_t i = 0; i < r->num_running; i++) {
        const struct live *live = &r->running[i];

        items[i] = (struct peak_item){ live->num_prompt + live->num_decoded,
                                       live->num_output - live->num_decoded };
    }
    peak_sort(items, r->num_running);
    return peak_positions(items, r->num_running, NULL);
}

void run_rounds(const struct rounds_config *config, const struct rounds_row *rows, size_t num,
                struct rounds_figures *out)
{
    struct pkv_sched_config sched = base_config(config->memory_tokens);
    struct rounds *r = calloc(1, sizeof *r);

    ck_assert_ptr_nonnull(r);
    sched.groups[0].block_size = 1;
    *r = (struct rounds){ .config = config, .sched = make_sched(&sched),
                          .waiting = calloc(num, sizeof *r->waiting) };
    r->admit = (const struct pkv_admit_ops *)pkv_policy_find(PKV_CHOICE_ADMIT, config->admit);
    ck_assert_ptr_nonnull(r->admit);
    ck_assert_ptr_nonnull(r->waiting);
    while (r->num_waiting < num) {
        const struct rounds_row *row = &rows[num - 1 - r->num_waiting];

        r->waiting[r->num_waiting++] = (struct live){ row->num_prompt, row->num_output, 0 };
    }
    while (r->num_waiting > 0) {
        for (uint32_t i = 0; i < config->num_steps; i++)
            decode(r);
        look_at_the_queue(r);
        r->figures.peak_sum += future_peak(r);
        r->figures.num_rounds++;
    }
    *out = r->figures;
    pkv_sched_destroy(r->sched);
    free(r->waiting);
    free(r);
}
