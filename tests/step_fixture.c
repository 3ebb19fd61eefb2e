/*
 * step_fixture.c - see step_fixture.h.
 */
#include "step_fixture.h"

#include <string.h>

#include <check.h>

static int give(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct walk *w = ctx;
    const struct asked *asked = &w->asked[w->num_given];
    size_t num = 0;

    (void)err;
    if (w->num_given == w->num_asked)
        return 0;
    if (asked->num_common > 0)
        w->spans[num++] = (struct pkv_span){ pkv_origin(PKV_ORIGIN_NAME, 7), 0, asked->num_common };
    if (asked->num_own > 0)
        w->spans[num++] = (struct pkv_span){ pkv_origin(PKV_ORIGIN_OWN, w->num_given), 0,
                                             asked->num_own };
    *out = (struct pkv_request_spec){
        .row = w->num_given, .id = asked->id, .arrival_ns = asked->at_ms * MS,
        .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = asked->num_common + asked->num_own,
        .num_output_tokens = asked->num_output, .max_tokens = asked->num_output,
        .content = { .prompt = w->spans, .num_prompt_spans = num,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, w->num_given) } };
    w->num_given++;
    return 1;
}

static int on_pause(void *ctx, struct pkv_err *err)
{
    struct walk *w = ctx;
    uint64_t step = pkv_stepper_step(w->stepper);
    char *page = pkv_stepper_page(w->stepper, w->only, &w->style, err);

    if (page == NULL)
        return -1;
    ck_assert_uint_lt(w->num_pages, MOST_PAGES);
    w->steps[w->num_pages] = step;
    w->pages[w->num_pages++] = page;
    pkv_stepper_pause_at(w->stepper, w->next, step + 1);
    return 0;
}

void begin_walk(struct walk *w, uint32_t num_blocks, bool prefix_cache)
{
    memset(w, 0, sizeof *w);
    w->style.width = 80;
    w->scenario.step_time = (struct pkv_step_time){ .law = PKV_STEP_TIME_FIXED, .fixed_ns = MS };
    w->scenario.sched = (struct pkv_sched_config){
        .num_blocks = num_blocks, .groups = { { &pkv_group_full, 2 } }, .num_groups = 1,
        .prefix_cache = prefix_cache, .has_null_block = true, .max_num_seqs = 8,
        .max_num_batched_tokens = 512, .max_model_len = 4096, .enable_chunked_prefill = true,
        .unhashed_free = PKV_END_HEAD };
    for (int i = 0; i < PKV_CHOICE_COUNT; i++) {
        size_t num;
        pkv_policies_set(&w->scenario.sched.policies, (enum pkv_choice)i,
                         pkv_policy_list((enum pkv_choice)i, &num)[0]);
    }
}

void set_choice(struct walk *w, enum pkv_choice choice, const char *name)
{
    pkv_policies_set(&w->scenario.sched.policies, choice, pkv_policy_find(choice, name));
}

void ask(struct walk *w, const char *id, int64_t at_ms, uint32_t num_common,
                uint32_t num_own, uint32_t num_output)
{
    ck_assert_uint_lt(w->num_asked, MOST_ROWS);
    w->asked[w->num_asked++] = (struct asked){ id, at_ms, num_common, num_own, num_output };
}

int try_walk(struct walk *w, struct pkv_err *err)
{
    const struct pkv_stepper_config stepper = { .scenario = &w->scenario, .pause = on_pause,
                                                .ctx = w };
    struct pkv_engine_config config = { .sched = w->scenario.sched,
                                        .step_time = w->scenario.step_time, .source = { give, w },
                                        .num_sinks = 1, .stuck_steps = 1, .check = true,
                                        .log_evicted = true };
    struct pkv_engine *engine = NULL;
    int result = -1;

    w->stepper = pkv_stepper_create(&stepper, err);
    if (w->stepper != NULL) {
        config.sinks[0] = pkv_stepper_sink(w->stepper);
        if (w->also.ctx != NULL)
            config.sinks[config.num_sinks++] = w->also;
        engine = pkv_engine_create(&config, err);
    }
    if (engine != NULL)
        result = pkv_engine_run(engine, err);
    pkv_engine_destroy(engine);
    pkv_stepper_destroy(w->stepper);
    return result;
}

void walk(struct walk *w)
{
    struct pkv_err err = {0};

    ck_assert_msg(try_walk(w, &err) == 0, "%s", err.text);
}

void end_walk(struct walk *w)
{
    for (size_t i = 0; i < w->num_pages; i++)
        pkv_report_free(w->pages[i]);
}

void expect_page(const struct walk *w, size_t i, const char *want)
{
    ck_assert_uint_lt(i, w->num_pages);
    ck_assert_str_eq(w->pages[i], want);
}

void expect_has(const struct walk *w, size_t i, const char *part)
{
    ck_assert_uint_lt(i, w->num_pages);
    ck_assert_msg(strstr(w->pages[i], part) != NULL, "no '%s' in\n%s", part, w->pages[i]);
}

void expect_lacks(const struct walk *w, size_t i, const char *part)
{
    ck_assert_uint_lt(i, w->num_pages);
    ck_assert_msg(strstr(w->pages[i], part) == NULL, "'%s' in\n%s", part, w->pages[i]);
}

void expect_steps(const struct walk *w, size_t num, const uint64_t *steps)
{
    ck_assert_uint_eq(w->num_pages, num);
    for (size_t i = 0; i < num; i++)
        ck_assert_uint_eq(w->steps[i], steps[i]);
}
