/*
 * test_sched.c - single steps worked by hand, and the scheduler's invariants broken by hand.
 *
 * Blocks of 16 tokens, as in the documents these cases come from; each step is plan, then commit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "pagedkv/policy.h"
#include "sched/sched_private.h"

static struct pkv_sched_config base_config(uint32_t num_blocks)
{
    struct pkv_sched_config config = {
        .num_blocks = num_blocks,
        .groups = { { &pkv_group_full, 16 } },
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

static void set(struct pkv_sched_config *config, enum pkv_choice choice, const char *name)
{
    const struct pkv_policy_info *info = pkv_policy_find(choice, name);

    ck_assert_msg(info != NULL, "no policy %s", name);
    pkv_policies_set(&config->policies, choice, info);
}

static void set_priority(struct pkv_sched_config *config)
{
    set(config, PKV_CHOICE_ORDER, "priority");
    set(config, PKV_CHOICE_PREEMPT, "priority");
    set(config, PKV_CHOICE_REQUEUE, "by_order");
}

static struct pkv_sched *make_sched(const struct pkv_sched_config *config)
{
    struct pkv_err err = { 0 };
    struct pkv_sched *sched = pkv_sched_create(config, &err);

    ck_assert_msg(sched != NULL, "%s", err.text);
    return sched;
}

static struct pkv_request *add(struct pkv_sched *sched, uint64_t row, uint32_t num_prompt,
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

static void expect_sound(struct pkv_sched *sched)
{
    struct pkv_err err = { 0 };

    ck_assert_msg(pkv_sched_check(sched, &err) == 0, "%s", err.text);
}

/* One step; finished requests are forgotten. The plan is still there to read. */
static const struct pkv_plan *step(struct pkv_sched *sched)
{
    struct pkv_plan *plan;

    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    ck_assert_int_eq(pkv_plan_check(sched, plan, NULL), 0);
    pkv_sched_commit(sched, plan);
    for (size_t i = 0; i < plan->num_finished; i++)
        pkv_sched_forget(sched, plan->finished[i]);
    expect_sound(sched);
    return plan;
}

static uint32_t num_used(struct pkv_sched *sched)
{
    struct pkv_cache *cache = pkv_sched_cache(sched);

    return pkv_cache_figures(cache).num_blocks - pkv_cache_num_free(cache);
}

/* --- steps by hand --------------------------------------------------------------------------- */

/* P = 28, O = 6 of priority 5 runs alone; then P = 32, O = 4 of priority 0 comes. In step 2 the
 * first is scheduled for its 30th token (it fits), the second needs a third block and takes the
 * first one's, whose token is taken back: 1 token is scheduled. Blocks in use 2 4 3 3 3 2 2 2 3. */
START_TEST(a_victim_that_was_scheduled_is_taken_back)
{
    static const uint32_t used[] = { 2, 4, 3, 3, 3, 2, 2, 2, 3 };
    static const uint64_t tokens[] = { 28, 33, 1, 1, 1, 30, 1, 1, 1 };
    struct pkv_sched_config config = base_config(4);
    struct pkv_sched *sched;
    struct pkv_request *low;

    set_priority(&config);
    sched = make_sched(&config);
    low = add(sched, 0, 28, 6, 5);
    for (size_t t = 0; t < sizeof used / sizeof used[0]; t++) {
        struct pkv_plan *plan;

        if (t == 1)
            add(sched, 1, 32, 4, 0);
        ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
        ck_assert_uint_eq(num_used(sched), used[t]);
        ck_assert_uint_eq(plan->num_tokens, tokens[t]);
        ck_assert_uint_eq(plan->num_preemptions, (uint64_t)(t == 2));
        if (t == 2) {
            ck_assert_ptr_eq(plan->preemptions[0].ref.request, low);
            ck_assert_uint_eq(plan->preemptions[0].freed_blocks, 2);
            ck_assert_uint_eq(plan->preemptions[0].lost_tokens, 29);
            ck_assert_uint_eq(plan->limit, PKV_LIMIT_PREEMPTED);
        }
        pkv_sched_commit(sched, plan);
        for (size_t i = 0; i < plan->num_finished; i++)
            pkv_sched_forget(sched, plan->finished[i]);
        expect_sound(sched);
    }
    ck_assert_uint_eq(pkv_sched_num_running(sched) + pkv_sched_num_waiting(sched), 0);
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* Budget 8: 4 tokens of the first prompt and 4 of the second; then the other 8. */
START_TEST(the_rest_of_the_budget_goes_to_the_next)
{
    struct pkv_sched_config config = base_config(100);
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    config.groups[0].block_size = 4;
    config.max_num_batched_tokens = 8;
    sched = make_sched(&config);
    add(sched, 0, 4, 1, 0);
    add(sched, 1, 12, 1, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_tokens, 8);
    ck_assert_uint_eq(plan->entries[1].num_tokens, 4);
    ck_assert(plan->entries[0].sampled && !plan->entries[1].sampled);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_tokens, 8);
    ck_assert(plan->entries[0].finished);
    pkv_sched_destroy(sched);
}
END_TEST

/* 10 blocks. A holds 5 when B, who needs 8, and C, who needs 1, wait. Under stop neither comes in,
 * under skip C does; overtaken once, B lets nobody else pass under max_overtakes 1. */
static size_t admitted_past_the_head(const char *on_blocked, int64_t max_overtakes,
                                     enum pkv_limit *out_limit)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_sched *sched;
    const struct pkv_plan *plan;
    size_t num;

    set(&config, PKV_CHOICE_ON_BLOCKED, on_blocked);
    config.policies.on_blocked_param = max_overtakes;
    sched = make_sched(&config);
    add(sched, 0, 64, 20, 0);
    step(sched);
    add(sched, 1, 128, 1, 0);
    add(sched, 2, 16, 1, 0);
    add(sched, 3, 16, 1, 0);
    plan = step(sched);
    num = plan->num_admissions;
    *out_limit = plan->limit;
    pkv_sched_destroy(sched);
    return num;
}

START_TEST(who_may_pass_a_refused_head)
{
    enum pkv_limit limit;

    ck_assert_uint_eq(admitted_past_the_head("stop", 0, &limit), 0);
    ck_assert_int_eq(limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(admitted_past_the_head("skip", 0, &limit), 2);
    ck_assert_int_eq(limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(admitted_past_the_head("skip", 1, &limit), 1);
    ck_assert_uint_eq(admitted_past_the_head("skip", 2, &limit), 2);
}
END_TEST

/* 12 blocks, budget 64: A takes 4 and decodes; X has 160 tokens = 10 blocks. The gate lets X wait
 * although its first chunk of 63 tokens would fit. */
START_TEST(the_gate_looks_at_the_whole_prompt)
{
    struct pkv_sched_config config = base_config(12);
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    config.max_num_batched_tokens = 64;
    sched = make_sched(&config);
    add(sched, 0, 64, 40, 0);
    step(sched);
    add(sched, 1, 160, 2, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 0);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_GATE);
    pkv_sched_destroy(sched);

    set(&config, PKV_CHOICE_ADMIT, "first_chunk");
    sched = make_sched(&config);
    add(sched, 0, 64, 40, 0);
    step(sched);
    add(sched, 1, 160, 2, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 1);
    ck_assert_uint_eq(plan->admissions[0].num_tokens, 63);
    pkv_sched_destroy(sched);
}
END_TEST

/* Chunking off, budget 48: of 20, 40 and 8 tokens the second exceeds what is left. stop ends the
 * pass there; skip lets the third in. Two that were put aside come back the other way round. */
START_TEST(a_prompt_over_the_budget_stops_or_is_put_aside)
{
    struct pkv_sched_config config = base_config(64);
    struct pkv_request *waiting[2];
    struct pkv_sched *sched;

    config.enable_chunked_prefill = false;
    config.max_num_batched_tokens = 48;
    sched = make_sched(&config);
    add(sched, 0, 20, 5, 0);
    add(sched, 1, 40, 5, 0);
    add(sched, 2, 8, 5, 0);
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    pkv_sched_destroy(sched);

    config.blocked_prefill = PKV_BLOCKED_PREFILL_SKIP;
    sched = make_sched(&config);
    add(sched, 0, 20, 5, 0);
    add(sched, 1, 40, 5, 0);
    add(sched, 2, 8, 5, 0);
    add(sched, 3, 30, 5, 0);
    ck_assert_uint_eq(step(sched)->num_admissions, 2);
    pkv_sched_list_waiting(sched, waiting);
    ck_assert_uint_eq(waiting[0]->row, 3);
    ck_assert_uint_eq(waiting[1]->row, 1);
    pkv_sched_destroy(sched);
}
END_TEST

/* 60 + 5 - 1 = 64 positions are exactly 4 blocks; with one token more it can never run. */
START_TEST(what_can_never_fit_is_refused_with_both_numbers)
{
    struct pkv_sched_config config = base_config(4);
    struct pkv_sched *sched = make_sched(&config);
    const struct pkv_span own = { 1, 0, 60 };
    struct pkv_request_spec spec = {
        .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME, .num_prompt_tokens = 60,
        .num_output_tokens = 6, .max_tokens = 6,
        .content = { .prompt = &own, .num_prompt_spans = 1 } };
    struct pkv_request *request = NULL;
    char reason[256] = "";

    ck_assert_uint_eq(add(sched, 0, 60, 5, 0)->status, PKV_REQUEST_WAITING);
    spec.row = 1;
    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, reason, sizeof reason, NULL), 0);
    ck_assert_uint_eq(request->status, PKV_REQUEST_REJECTED);
    ck_assert_msg(strstr(reason, "5") != NULL && strstr(reason, "4") != NULL, "%s", reason);
    pkv_sched_forget(sched, request);
    expect_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

/* Cancelled in every state: waiting, in mid prefill, decoding, preempted. All blocks come back. */
START_TEST(an_abort_works_in_every_state)
{
    struct pkv_sched_config config = base_config(4);
    struct pkv_request *r[4];
    struct pkv_sched *sched;

    config.max_num_batched_tokens = 30;
    sched = make_sched(&config);
    r[0] = add(sched, 0, 10, 30, 0);
    r[1] = add(sched, 1, 30, 8, 0);
    r[2] = add(sched, 2, 64, 1, 0);
    step(sched);                                   /* 10 + 20 tokens, 1 + 2 blocks */
    ck_assert_uint_eq(r[2]->status, PKV_REQUEST_WAITING);
    ck_assert_uint_eq(pkv_sched_abort(sched, r[2]), 0);
    pkv_sched_forget(sched, r[2]);
    ck_assert_uint_eq(pkv_sched_abort(sched, r[1]), 2);   /* 20 of its 30 tokens computed */
    pkv_sched_forget(sched, r[1]);
    expect_sound(sched);
    r[3] = add(sched, 3, 20, 40, 0);
    for (int t = 0; t < 40 && r[3]->status != PKV_REQUEST_PREEMPTED; t++)
        step(sched);
    ck_assert_uint_eq(r[3]->status, PKV_REQUEST_PREEMPTED);
    ck_assert_uint_eq(pkv_sched_abort(sched, r[3]), 0);
    pkv_sched_forget(sched, r[3]);
    ck_assert_uint_gt(pkv_sched_abort(sched, r[0]), 0);   /* decoding */
    pkv_sched_forget(sched, r[0]);
    expect_sound(sched);
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- invariants broken by hand --------------------------------------------------------------- */

static struct pkv_sched *broken;
static struct pkv_request *runner, *waiter;

/* One in mid prefill, 8 of its 20 tokens computed, and one that waits. */
static void set_up(void)
{
    struct pkv_sched_config config = base_config(4);

    config.max_num_seqs = 1;
    config.max_num_batched_tokens = 8;
    broken = make_sched(&config);
    runner = add(broken, 0, 20, 5, 0);
    waiter = add(broken, 1, 20, 5, 0);
    step(broken);
    ck_assert_uint_eq(runner->status, PKV_REQUEST_RUNNING);
    ck_assert_uint_eq(waiter->status, PKV_REQUEST_WAITING);
}

/* What was broken is mended by then. */
static void tear_down(void)
{
    expect_sound(broken);
    pkv_sched_destroy(broken);
}

static void expect_id(int result, const struct pkv_err *err, const char *id)
{
    ck_assert_int_eq(result, -1);
    ck_assert_int_eq(err->code, PKV_ERR_AUDIT);
    ck_assert_msg(strncmp(err->text, id, strlen(id)) == 0 && err->text[strlen(id)] == ':',
                  "expected %s, got '%s'", id, err->text);
}

static void expect_broken(const char *id)
{
    struct pkv_err err = { 0 };
    int result = pkv_sched_check(broken, &err);

    expect_id(result, &err, id);
}

START_TEST(s1_running_one_in_the_queue)
{
    waiter->status = PKV_REQUEST_RUNNING;
    expect_broken("S1");
    waiter->status = PKV_REQUEST_WAITING;
}
END_TEST

START_TEST(s1_waiting_one_in_running)
{
    runner->status = PKV_REQUEST_PREEMPTED;
    expect_broken("S1");
    runner->status = PKV_REQUEST_RUNNING;
}
END_TEST

START_TEST(s1_live_one_in_neither)
{
    pkv_waiting_remove(broken->waiting, waiter);
    expect_broken("S1");
    pkv_waiting_put_back(broken->waiting, waiter);
}
END_TEST

START_TEST(s2_waiting_with_positions)
{
    waiter->seq.num_computed_tokens = 3;
    expect_broken("S2");
    waiter->seq.num_computed_tokens = 0;
}
END_TEST

START_TEST(s3_more_computed_than_known)
{
    runner->seq.num_known_tokens = 7;
    expect_broken("S3");
    runner->seq.num_known_tokens = 20;
}
END_TEST

START_TEST(s4_too_many_running)
{
    broken->max_seqs = 0;
    expect_broken("S4");
    broken->max_seqs = 1;
}
END_TEST

START_TEST(s5_over_the_budget)
{
    struct pkv_err err = { 0 };
    struct pkv_plan *plan;
    int result;

    ck_assert_int_eq(pkv_sched_plan(broken, &plan, NULL), 0);
    broken->max_budget = 0;
    result = pkv_plan_check(broken, plan, &err);
    broken->max_budget = 8;
    expect_id(result, &err, "S5");
    plan->num_tokens++;
    result = pkv_plan_check(broken, plan, &err);
    plan->num_tokens--;
    expect_id(result, &err, "S5");
    pkv_sched_commit(broken, plan);
}
END_TEST

START_TEST(s6_steady_sums_are_wrong)
{
    step(broken);
    step(broken);   /* the prefill is done: from here on it decodes */
    ck_assert(runner->steady.is_in);
    broken->steady.num_positions++;
    expect_broken("S6");
    broken->steady.num_positions--;
    broken->steady.num++;
    expect_broken("S6");
    broken->steady.num--;
    runner->steady.phase ^= 1;
    expect_broken("S6");
    runner->steady.phase ^= 1;
}
END_TEST

START_TEST(the_cache_is_checked_as_well)
{
    runner->seq.num_computed_tokens = 9;
    expect_broken("C5");
    runner->seq.num_computed_tokens = 8;
}
END_TEST

static Suite *sched_suite(void)
{
    Suite *suite = suite_create("sched");
    TCase *tests = tcase_create("steps"), *invariants = tcase_create("invariants");

    tcase_add_test(tests, a_victim_that_was_scheduled_is_taken_back);
    tcase_add_test(tests, the_rest_of_the_budget_goes_to_the_next);
    tcase_add_test(tests, who_may_pass_a_refused_head);
    tcase_add_test(tests, the_gate_looks_at_the_whole_prompt);
    tcase_add_test(tests, a_prompt_over_the_budget_stops_or_is_put_aside);
    tcase_add_test(tests, what_can_never_fit_is_refused_with_both_numbers);
    tcase_add_test(tests, an_abort_works_in_every_state);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(invariants, set_up, tear_down);
    tcase_add_test(invariants, s1_running_one_in_the_queue);
    tcase_add_test(invariants, s1_waiting_one_in_running);
    tcase_add_test(invariants, s1_live_one_in_neither);
    tcase_add_test(invariants, s2_waiting_with_positions);
    tcase_add_test(invariants, s3_more_computed_than_known);
    tcase_add_test(invariants, s4_too_many_running);
    tcase_add_test(invariants, s5_over_the_budget);
    tcase_add_test(invariants, s6_steady_sums_are_wrong);
    tcase_add_test(invariants, the_cache_is_checked_as_well);
    suite_add_tcase(suite, invariants);
    return suite;
}

int main(void)
{
    SRunner *suite_runner = srunner_create(sched_suite());
    int failed;

    srunner_run_all(suite_runner, CK_ENV);
    failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed > 0;
}
