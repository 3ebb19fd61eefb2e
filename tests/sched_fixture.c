/*
 * sched_fixture.c - see sched_fixture.h.
 */
#include "sched_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <check.h>

struct pkv_sched_config base_config(uint32_t num_blocks)
{
    struct pkv_sched_config config = {
        .num_blocks = num_blocks,
        .groups = { { &pkv_group_full, 16, 0 } },
        .num_groups = 1,
        .has_null_block = true,
        .enable_chunked_prefill = true,
    };

    for (int choice = 0; choice < PKV_CHOICE_COUNT; choice++) {
        size_t num;

        pkv_policies_set(&config.policies, (enum pkv_choice)choice,
                         pkv_policy_list((enum pkv_choice)choice, &num)[0]);
    }
    return config;
}

void set(struct pkv_sched_config *config, enum pkv_choice choice, const char *name)
{
    const struct pkv_policy_info *info = pkv_policy_find(choice, name);

    ck_assert_msg(info != NULL, "no policy %s", name);
    pkv_policies_set(&config->policies, choice, info);
}

struct pkv_sched *make_sched(const struct pkv_sched_config *config)
{
    struct pkv_err err = { 0 };
    struct pkv_sched *sched = pkv_sched_create(config, &err);

    ck_assert_msg(sched != NULL, "%s", err.text);
    return sched;
}

struct pkv_request *add(struct pkv_sched *sched, uint64_t row, uint32_t num_prompt,
                        uint32_t num_output, int64_t priority)
{
    const struct pkv_span own = { pkv_origin(PKV_ORIGIN_OWN, row), 0, num_prompt };
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME, .priority = priority,
        .num_prompt_tokens = num_prompt, .num_output_tokens = num_output, .max_tokens = num_output,
        .content = { .prompt = &own, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *request = NULL;
    char reason[256] = "";

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, reason, sizeof reason, NULL), 0);
    return request;
}

void expect_sched_sound(struct pkv_sched *sched)
{
    struct pkv_err err = { 0 };

    ck_assert_msg(pkv_sched_check(sched, &err) == 0, "%s", err.text);
}

struct pkv_plan *plan_one(struct pkv_sched *sched)
{
    struct pkv_plan *plan;

    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    ck_assert_int_eq(pkv_plan_check(sched, plan, NULL), 0);
    expect_sched_sound(sched);
    return plan;
}

void commit_one(struct pkv_sched *sched, struct pkv_plan *plan)
{
    pkv_sched_commit(sched, plan);
    for (size_t i = 0; i < plan->num_finished; i++)
        pkv_sched_forget(sched, plan->finished[i]);
    expect_sched_sound(sched);
}

const struct pkv_plan *step(struct pkv_sched *sched)
{
    struct pkv_plan *plan = plan_one(sched);

    commit_one(sched, plan);
    return plan;
}

uint32_t num_used(struct pkv_sched *sched)
{
    struct pkv_cache *cache = pkv_sched_cache(sched);

    return pkv_cache_figures(cache).num_blocks - pkv_cache_num_free(cache);
}

void expect_waiting(struct pkv_sched *sched, const char *rows)
{
    struct pkv_request *waiting[16];
    size_t num = pkv_sched_num_waiting(sched), length = 0;
    char text[64] = "";

    ck_assert_uint_le(num, 16);
    pkv_sched_list_waiting(sched, waiting);
    for (size_t i = 0; i < num; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64,
                                   i > 0 ? " " : "", waiting[i]->row);
    ck_assert_str_eq(text, rows);
}

uint32_t num_keys(struct pkv_sched *sched)
{
    return pkv_cache_figures(pkv_sched_cache(sched)).num_keys;
}
