/*
 * test_drafts_policies.c - drafts and steps in flight under the policies that count tokens, reserve
 * blocks, part a step or publish late: worked by hand, in blocks of 4 tokens.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "engine_fixture.h"
#include "pagedkv/policy.h"
#include "sched_fixture.h"

static struct run run;

static struct pkv_sched_config small_config(uint32_t num_blocks)
{
    struct pkv_sched_config config = base_config(num_blocks);

    config.groups[0].block_size = 4;
    config.lookahead_at_admission = true;
    return config;
}

/* A pattern of how many drafts are right, by tokens out. */
static void draft(struct pkv_sched_config *config, enum pkv_speculation_method method,
                  uint32_t num_drafts, const uint32_t *accepted, uint32_t num)
{
    config->speculation.method = method;
    config->speculation.num_tokens = num_drafts;
    memcpy(config->speculation.accepted, accepted, num * sizeof *accepted);
    config->speculation.num_accepted = num;
}

static struct pkv_request *add_of(struct pkv_sched *sched, uint64_t row, const char *tenant,
                                  uint32_t num_prompt, uint32_t num_output)
{
    const struct pkv_span own = { pkv_origin(PKV_ORIGIN_OWN, row), 0, num_prompt };
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME, .tenant = tenant,
        .num_prompt_tokens = num_prompt, .num_output_tokens = num_output,
        .max_tokens = num_output,
        .content = { .prompt = &own, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *r;
    char reason[64];

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &r, reason, sizeof reason, NULL), 0);
    return r;
}

/* --- who is told what ------------------------------------------------------------------------ */

static struct pkv_step_facts told;
static struct pkv_tenant_tokens told_tenants[4];
static size_t num_in_queue;            /* as told by those who come and go */

static void note(void *state, const struct pkv_step_facts *facts)
{
    (void)state;
    told = *facts;
    for (size_t i = 0; i < facts->num_tenants && i < 4; i++)
        told_tenants[i] = facts->tenants[i];
}

static void come(void *state, const struct pkv_request *r)
{
    (void)state, (void)r;
    num_in_queue++;
}

static void go(void *state, const struct pkv_request *r)
{
    (void)state, (void)r;
    num_in_queue--;
}

/* First come, first served, by somebody who listens. */
static struct pkv_order_ops listener;

static void listen(struct pkv_sched_config *config)
{
    listener = *config->policies.order;
    listener.observe = note;
    listener.joined = come;
    listener.left = go;
    listener.needs_tenant_tokens = true;
    num_in_queue = 0;
    config->policies.order = &listener;
    memset(&told, 0, sizeof told);
    memset(told_tenants, 0, sizeof told_tenants);
}

/* P = 6, O = 9, three drafts of which 2, 0, 3 are right by tokens out: 1, 1, 4 and 3 tokens come out. */
START_TEST(a_tenant_pays_for_accepted_drafts)
{
    static const uint32_t accepted[] = { 2, 0, 3 }, generated[] = { 1, 1, 4, 3 };
    struct pkv_sched_config config = small_config(20);
    struct pkv_sched *sched;

    draft(&config, PKV_SPECULATION_NGRAM, 3, accepted, 3);
    listen(&config);
    sched = make_sched(&config);
    add_of(sched, 0, "a", 6, 9);
    for (int i = 0; i < 4; i++) {
        step(sched);
        ck_assert_uint_eq(told.num_tenants, 2);   /* number 0 is who has none */
        ck_assert_uint_eq(told_tenants[1].num_prompt, i == 0 ? 6 : 0);
        ck_assert_uint_eq(told_tenants[1].num_generated, generated[i]);
    }
    ck_assert(told.is_idle);
    pkv_sched_destroy(sched);
}
END_TEST

/* Two tenants of 3 prompt tokens each, 5 and 2 to say, with a plan in flight all the time: each step
 * that lands brings one token to whoever still has one to come. */
START_TEST(a_tenant_pays_when_its_tokens_land)
{
    static const uint32_t of_a[] = { 1, 1, 1, 1, 1 }, of_b[] = { 1, 1, 0, 0, 0 };
    struct pkv_sched_config config = small_config(20);
    struct pkv_plan *out, *next;
    struct pkv_sched *sched;

    config.async_scheduling = true;
    listen(&config);
    sched = make_sched(&config);
    add_of(sched, 0, "a", 3, 5);
    add_of(sched, 1, "b", 3, 2);
    out = plan_one(sched);
    ck_assert_uint_eq(told.num_tenants, 0);   /* nothing has landed */
    for (int i = 0; i < 5; i++) {
        next = plan_one(sched);
        commit_one(sched, out);
        ck_assert_uint_eq(told.num_tenants, 3);
        ck_assert_uint_eq(told_tenants[1].num_prompt, i == 0 ? 3 : 0);
        ck_assert_uint_eq(told_tenants[1].num_generated, of_a[i]);
        ck_assert_uint_eq(told_tenants[2].num_generated, of_b[i]);
        out = next;
    }
    pkv_sched_drop(sched, out);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(who_is_cancelled_in_flight_pays_nothing)
{
    struct pkv_sched_config config = small_config(20);
    struct pkv_plan *plan;
    struct pkv_sched *sched;
    struct pkv_request *r;

    config.async_scheduling = true;
    listen(&config);
    sched = make_sched(&config);
    r = add_of(sched, 0, "a", 3, 5);
    add_of(sched, 1, "b", 2, 5);
    plan = plan_one(sched);
    pkv_sched_abort(sched, r);
    pkv_sched_forget(sched, r);
    commit_one(sched, plan);
    ck_assert_uint_eq(told_tenants[1].num_prompt + told_tenants[1].num_generated, 0);
    ck_assert_uint_eq(told_tenants[2].num_prompt, 2);
    ck_assert_uint_eq(told_tenants[2].num_generated, 1);
    pkv_sched_destroy(sched);
}
END_TEST

/* Prompts first. Plan 0 takes the first one in; plan 1 the second, while the first, whose token is in
 * flight, stands still as one that decodes; plan 2 lets both decode. What is told of a step is told
 * when it lands, with the next one planned already. */
START_TEST(a_step_is_told_of_itself_and_not_of_the_next)
{
    const unsigned prompts = PKV_MIX_PROMPTS | PKV_MIX_NEWCOMERS;
    struct pkv_sched_config config = small_config(20);
    struct pkv_plan *plans[3];
    struct pkv_sched *sched;
    struct pkv_request *first;

    config.async_scheduling = true;
    set(&config, PKV_CHOICE_MIX, "prefill_first");
    listen(&config);
    sched = make_sched(&config);
    first = add_of(sched, 0, NULL, 3, 5);
    plans[0] = plan_one(sched);
    add_of(sched, 1, NULL, 3, 5);
    plans[1] = plan_one(sched);
    ck_assert_uint_eq(plans[1]->num_tokens, 3);
    ck_assert_uint_eq(first->seq.num_computed_tokens, 3);
    commit_one(sched, plans[0]);
    ck_assert_uint_eq(told.parts, prompts);
    plans[2] = plan_one(sched);
    ck_assert_uint_eq(plans[2]->num_tokens, 2);
    commit_one(sched, plans[1]);
    ck_assert_uint_eq(told.parts, prompts);
    ck_assert_uint_eq(told.num_prefill_tokens, 3);
    plan_one(sched);
    commit_one(sched, plans[2]);
    ck_assert_uint_eq(told.parts, PKV_MIX_DECODES);
    ck_assert_uint_eq(told.num_decodes, 2);
    pkv_sched_destroy(sched);
}
END_TEST

/* Two on 2 blocks: plan 2 gives the younger one up, when one token of each is out. Step 1 lands after
 * that and had no preemption. */
START_TEST(survivors_belong_to_their_step)
{
    struct pkv_sched_config config = small_config(2);
    struct pkv_plan *plans[3];
    struct pkv_sched *sched;

    config.async_scheduling = true;
    listen(&config);
    sched = make_sched(&config);
    add_of(sched, 0, NULL, 3, 5);
    add_of(sched, 1, NULL, 3, 3);
    plans[0] = plan_one(sched);
    plans[1] = plan_one(sched);
    commit_one(sched, plans[0]);
    plans[2] = plan_one(sched);
    ck_assert_uint_eq(plans[2]->num_preemptions, 1);
    commit_one(sched, plans[1]);
    ck_assert_uint_eq(told.num_survivors, 0);
    plan_one(sched);
    commit_one(sched, plans[2]);
    ck_assert_uint_eq(told.num_survivors, 1);
    ck_assert_uint_eq(told.sum_emitted, 1);
    ck_assert_uint_eq(told.sum_max_tokens, 5);
    pkv_sched_destroy(sched);
}
END_TEST

/* The same two, but the younger one ends with its 2nd token, which it is not told: it is given up while
 * that is in flight, and ends in the queue. */
START_TEST(who_ends_in_the_queue_leaves_it)
{
    struct pkv_sched_config config = small_config(2);
    struct pkv_plan *plans[3];
    struct pkv_sched *sched;
    struct pkv_request *younger;

    config.async_scheduling = true;
    listen(&config);
    sched = make_sched(&config);
    add_of(sched, 0, NULL, 3, 5);
    younger = add_of(sched, 1, NULL, 3, 2);
    younger->max_tokens = 9;
    plans[0] = plan_one(sched);
    ck_assert_uint_eq(num_in_queue, 0);
    plans[1] = plan_one(sched);
    commit_one(sched, plans[0]);
    plans[2] = plan_one(sched);
    ck_assert_uint_eq(plans[2]->num_preemptions, 1);
    ck_assert_uint_eq(num_in_queue, 1);
    commit_one(sched, plans[1]);
    ck_assert_uint_eq(plans[1]->num_finished, 1);
    ck_assert_uint_eq(pkv_sched_num_waiting(sched), 0);
    ck_assert_uint_eq(num_in_queue, 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- what is published ----------------------------------------------------------------------- */

/* Identities after each of 4 steps, three drafts of which 2, 0, 3 are right by tokens out. */
static void expect_keys(const char *publish, uint32_t num_prompt, uint32_t num_output,
                        const uint32_t *want)
{
    static const uint32_t accepted[] = { 2, 0, 3 };
    struct pkv_sched_config config = small_config(20);
    struct pkv_sched *sched;

    config.prefix_cache = true;
    draft(&config, PKV_SPECULATION_NGRAM, 3, accepted, 3);
    set(&config, PKV_CHOICE_PUBLISH, publish);
    sched = make_sched(&config);
    add(sched, 0, num_prompt, num_output, 0);
    for (int i = 0; i < 4; i++) {
        step(sched);
        ck_assert_uint_eq(num_keys(sched), want[i]);
    }
    ck_assert_uint_eq(pkv_sched_num_running(sched), 0);
    pkv_sched_destroy(sched);
}

/* P = 6, O = 9: after the steps 6, 7, 11 and 14 positions are right, the last time of 15 known tokens.
 * P = 4, O = 7: 4, 5, 9 and 12, the last time of 11 known ones, as the drafts beyond its end were
 * right and did not come out: 2 blocks. Steps of drafts are no chunks of a prompt. */
START_TEST(drafts_are_published_at_the_end_and_as_far_as_known)
{
    expect_keys("chunk_end", 6, 9, (const uint32_t[]){ 1, 1, 1, 3 });
    expect_keys("finish", 6, 9, (const uint32_t[]){ 0, 0, 0, 3 });
    expect_keys("chunk_end", 4, 7, (const uint32_t[]){ 1, 1, 1, 2 });
    expect_keys("finish", 4, 7, (const uint32_t[]){ 0, 0, 0, 2 });
}
END_TEST

/* Cancelled when `commits` steps have landed and one more is out, which computes the 4th position.
 *   returns  identities that it leaves */
static uint32_t keys_after_abort(uint32_t num_prompt, int commits, bool lets_land)
{
    struct pkv_sched_config config = small_config(4);
    struct pkv_sched *sched;
    struct pkv_request *r;
    struct pkv_plan *out, *next;
    uint32_t num;

    config.prefix_cache = config.async_scheduling = true;
    set(&config, PKV_CHOICE_PUBLISH, "finish");
    sched = make_sched(&config);
    r = add(sched, 0, num_prompt, 9, 0);
    out = plan_one(sched);
    for (int i = 0; i < commits; i++) {
        next = plan_one(sched);
        commit_one(sched, out);
        out = next;
    }
    if (lets_land)
        commit_one(sched, out);
    ck_assert_uint_eq(r->seq.num_prompt_tokens + (uint32_t)commits, 4);
    pkv_sched_abort(sched, r);
    num = num_keys(sched);
    pkv_sched_forget(sched, r);
    if (!lets_land)
        pkv_sched_drop(sched, out);
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
    return num;
}

/* With 3 prompt tokens the step in flight lists it, with 2 it is counted with those who decode. */
START_TEST(a_position_in_flight_is_not_published)
{
    ck_assert_uint_eq(keys_after_abort(3, 1, false), 0);
    ck_assert_uint_eq(keys_after_abort(2, 2, false), 0);
    ck_assert_uint_eq(keys_after_abort(3, 1, true), 1);
    ck_assert_uint_eq(keys_after_abort(2, 2, true), 1);
}
END_TEST

/* --- room for drafts ------------------------------------------------------------------------- */

/* P = 4, O = 5, three drafts, and blocks asked for three positions beyond: the last token may come out
 * of a step from position 7 to 11, and that asks for 14 positions, 4 blocks. Two of them need all of
 * 8. On 7 the second waits: the first holds 2 of its 4, so 2 + 4 are asked for of 5. */
START_TEST(a_reservation_holds_the_drafts_as_well)
{
    static const uint32_t none[] = { 0 };
    struct pkv_sched_config config = small_config(8);
    const struct pkv_plan *plan;
    struct pkv_sched *sched;
    uint32_t most = 0;

    draft(&config, PKV_SPECULATION_DRAFT_MODEL, 3, none, 1);
    set(&config, PKV_CHOICE_ADMIT, "reserve_max");
    sched = make_sched(&config);
    add(sched, 0, 4, 5, 0);
    add(sched, 1, 4, 5, 0);
    plan = plan_one(sched);
    ck_assert_uint_eq(plan->num_admissions, 2);
    commit_one(sched, (struct pkv_plan *)plan);
    while (pkv_sched_num_running(sched) > 0) {
        struct pkv_plan *next = plan_one(sched);

        most = num_used(sched) > most ? num_used(sched) : most;
        commit_one(sched, next);
    }
    ck_assert_uint_eq(most, 8);
    ck_assert_uint_eq(pkv_sched_num_preemptions(sched), 0);
    pkv_sched_destroy(sched);

    config.num_blocks = 7;
    sched = make_sched(&config);
    add(sched, 0, 4, 5, 0);
    add(sched, 1, 4, 5, 0);
    plan = plan_one(sched);
    ck_assert_uint_eq(plan->num_admissions, 1);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_GATE);
    ck_assert_uint_eq(plan->head_need_blocks, 6);
    ck_assert_uint_eq(plan->head_free_blocks, 5);
    pkv_sched_destroy(sched);

    config.num_blocks = 3;   /* and alone on 3 it could never come in */
    sched = make_sched(&config);
    ck_assert_int_eq(add(sched, 0, 4, 5, 0)->status, PKV_REQUEST_REJECTED);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(hindsight_of_single_tokens_is_refused)
{
    static const uint32_t none[] = { 0 };
    struct pkv_sched_config config = small_config(8), drafts = config;
    struct pkv_err err = { 0 };

    set(&config, PKV_CHOICE_ADMIT, "mc_sf");
    config.async_scheduling = true;
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "admit mc_sf looks into a future of one token a step"));
    set(&drafts, PKV_CHOICE_ADMIT, "mc_sf");
    draft(&drafts, PKV_SPECULATION_NGRAM, 2, none, 1);
    ck_assert_ptr_null(pkv_sched_create(&drafts, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "no speculation"));
}
END_TEST

/* --- the end --------------------------------------------------------------------------------- */

/* 4 blocks of 2, chunks of 3, three drafts looked ahead for at growth only; P = 2, O = 5, on a pool that
 * is too small for all it will ask for (5 blocks and more).
 *   1  position 2 and two drafts, both right: 4 tokens are out, 6 known, 5 computed
 *   2  1 + 2 to position 8, blocks for 11: 6. It gives itself up.
 *   3  finds the 1st block and computes 3 more, to position 5
 *   4  the 6th, blocks for 9: 5. It gives itself up again, with no token in between,
 *   5  but finds 2 blocks now, and computes the 2 that are left: the last token is out. */
START_TEST(one_that_finds_more_each_time_gets_through)
{
    static const uint32_t all[] = { 3 };

    begin_run(&run, 4);
    run.config.sched.groups[0].block_size = 2;
    run.config.sched.prefix_cache = true;
    run.config.sched.long_prefill_token_threshold = 3;
    run.config.sched.oversized = PKV_OVERSIZED_WAIT;
    run.config.sched.lookahead_at_admission = false;
    draft(&run.config.sched, PKV_SPECULATION_DRAFT_MODEL, 3, all, 1);
    ask(&run, (struct asked){ .num_prompt = 2, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.completed, 1);
    ck_assert_uint_eq(run.figures.output_tokens, 5);
    ck_assert_uint_eq(run.figures.preemptions, 2);
    ck_assert_uint_eq(run.figures.resumed_hit_tokens, 2 + 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drafts_policies");
    TCase *tests = tcase_create("drafts_policies");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_tenant_pays_for_accepted_drafts);
    tcase_add_test(tests, a_tenant_pays_when_its_tokens_land);
    tcase_add_test(tests, who_is_cancelled_in_flight_pays_nothing);
    tcase_add_test(tests, a_step_is_told_of_itself_and_not_of_the_next);
    tcase_add_test(tests, survivors_belong_to_their_step);
    tcase_add_test(tests, who_ends_in_the_queue_leaves_it);
    tcase_add_test(tests, drafts_are_published_at_the_end_and_as_far_as_known);
    tcase_add_test(tests, a_position_in_flight_is_not_published);
    tcase_add_test(tests, a_reservation_holds_the_drafts_as_well);
    tcase_add_test(tests, hindsight_of_single_tokens_is_refused);
    tcase_add_test(tests, one_that_finds_more_each_time_gets_through);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
