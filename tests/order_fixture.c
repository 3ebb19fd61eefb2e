/*
 * order_fixture.c - see order_fixture.h.
 */
#include "order_fixture.h"

#include <string.h>

#include <check.h>

struct pkv_request *add_one(struct pkv_sched *sched, struct asked_for a)
{
    struct pkv_span spans[3];
    struct pkv_request_spec spec = {
        .row = a.row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME, .tenant = a.tenant,
        .num_output_tokens = a.num_output, .max_tokens = a.num_output,
        .content = { .root = pkv_content_root(a.salt, NULL), .prompt = spans,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, a.row) } };
    struct pkv_request *request = NULL;

    for (size_t i = 0; i < 3; i++) {
        struct pkv_span span = { pkv_origin(PKV_ORIGIN_OWN, a.row), 0, a.num_own };

        if (i < 2)
            span = (struct pkv_span){ pkv_origin(PKV_ORIGIN_NAME, a.shared[i].name), 0,
                                      a.shared[i].count };
        if (span.count == 0)
            continue;
        spans[spec.content.num_prompt_spans++] = span;
        spec.num_prompt_tokens += span.count;
    }
    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, NULL, 0, NULL), 0);
    return request;
}

struct pkv_sched_config one_at_a_time(const char *order, uint32_t num_blocks, uint32_t block_size)
{
    struct pkv_sched_config config = base_config(num_blocks);

    config.groups[0].block_size = block_size;
    config.prefix_cache = true;
    config.max_num_seqs = 1;
    set(&config, PKV_CHOICE_ORDER, order);
    return config;
}

void set_param(struct pkv_sched_config *config, const char *name, int64_t value)
{
    const struct pkv_policy_info *info = &config->policies.order->info;
    size_t i = 0;

    while (i < info->num_params && strcmp(info->params[i].name, name) != 0)
        i++;
    ck_assert_uint_lt(i, info->num_params);
    config->policies.params[PKV_CHOICE_ORDER][i] = value;
}

uint64_t row_admitted(struct pkv_sched *sched)
{
    struct pkv_plan *plan;
    uint64_t row;

    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    ck_assert_uint_eq(plan->num_admissions, 1);
    row = pkv_request_get(plan->admissions[0].ref)->row;
    pkv_sched_commit(sched, plan);
    for (size_t i = 0; i < plan->num_finished; i++)
        pkv_sched_forget(sched, plan->finished[i]);
    expect_sched_sound(sched);
    return row;
}

void cancel(struct pkv_sched *sched, struct pkv_request *request)
{
    pkv_sched_abort(sched, request);
    pkv_sched_forget(sched, request);
}
