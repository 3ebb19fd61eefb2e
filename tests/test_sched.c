/*
 * test_sched.c - single steps worked by hand, and the scheduler's invariants broken by hand.
 *
 * Blocks of 16 tokens, as in the documents these cases come from; each step is plan, then commit.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "pagedkv/policy.h"
#include "sched/sched_private.h"
#include "sched_fixture.h"

static void set_priority(struct pkv_sched_config *config)
{
    set(config, PKV_CHOICE_ORDER, "priority");
    set(config, PKV_CHOICE_PREEMPT, "priority");
    set(config, PKV_CHOICE_REQUEUE, "by_order");
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
        expect_sched_sound(sched);
    }
    ck_assert_uint_eq(pkv_sched_num_running(sched) + pkv_sched_num_waiting(sched), 0);
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* As before, but with P = 30 for the first: the token taken back in step 2 is the 32nd, which
 * would have filled its second block. The block is the next to be taken, by the second request: it
 * loses an identity only if it had been given one. The first one's first block and the second
 * one's two keep theirs, and the first comes back with a hit of 16. */
static uint64_t evicted_after_a_cancelled_token(const char *publish,
                                                enum pkv_priority_victim priority_victim)
{
    struct pkv_sched_config config = base_config(4);
    struct pkv_cache_figures figures;
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    set_priority(&config);
    set(&config, PKV_CHOICE_PUBLISH, publish);
    config.prefix_cache = true;
    config.priority_victim = priority_victim;
    sched = make_sched(&config);
    add(sched, 0, 30, 6, 5);
    step(sched);
    add(sched, 1, 32, 4, 0);
    step(sched);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_preemptions, 1);
    ck_assert_uint_eq(plan->preemptions[0].lost_tokens, 31);
    figures = pkv_cache_figures(pkv_sched_cache(sched));
    ck_assert_uint_eq(figures.num_keys, 3);
    ck_assert_uint_eq(figures.num_cached, 1);
    for (int t = 3; t < 5; t++)
        step(sched);   /* the second one's third and fourth token */
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 1);
    ck_assert_uint_eq(plan->admissions[0].num_hit_tokens, 16);
    pkv_sched_destroy(sched);
    return figures.num_evicted;
}

START_TEST(a_cancelled_token_gives_no_identity)
{
    ck_assert_uint_eq(evicted_after_a_cancelled_token("alloc", PKV_PRIORITY_VICTIM_VLLM), 1);
    ck_assert_uint_eq(evicted_after_a_cancelled_token("alloc", PKV_PRIORITY_VICTIM_SAFE), 0);
    ck_assert_uint_eq(evicted_after_a_cancelled_token("computed", PKV_PRIORITY_VICTIM_VLLM), 0);
    ck_assert_uint_eq(evicted_after_a_cancelled_token("computed", PKV_PRIORITY_VICTIM_SAFE), 0);
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
    ck_assert(plan->entries[0].num_sampled == 1 && plan->entries[1].num_sampled == 0);
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
    config.policies.params[PKV_CHOICE_ON_BLOCKED][0] = max_overtakes;
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
    expect_sched_sound(sched);
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
    expect_sched_sound(sched);
    r[3] = add(sched, 3, 20, 40, 0);
    for (int t = 0; t < 40 && r[3]->status != PKV_REQUEST_PREEMPTED; t++)
        step(sched);
    ck_assert_uint_eq(r[3]->status, PKV_REQUEST_PREEMPTED);
    ck_assert_uint_eq(pkv_sched_abort(sched, r[3]), 0);
    pkv_sched_forget(sched, r[3]);
    ck_assert_uint_gt(pkv_sched_abort(sched, r[0]), 0);   /* decoding */
    pkv_sched_forget(sched, r[0]);
    expect_sched_sound(sched);
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
    expect_sched_sound(broken);
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

/* Three whose prompts are in: two of 20 tokens, which end together and stand in one bucket, and
 * one of 21. */
static struct pkv_request *decoding[3];

static struct pkv_sched *make_decoding(void)
{
    struct pkv_sched_config config = base_config(20);
    struct pkv_sched *sched = make_sched(&config);

    decoding[0] = add(sched, 0, 20, 9, 0);
    decoding[1] = add(sched, 1, 20, 9, 0);
    decoding[2] = add(sched, 2, 21, 9, 0);
    step(sched);
    for (int i = 0; i < 3; i++)
        ck_assert(decoding[i]->steady.is_in);
    ck_assert_uint_eq(decoding[0]->steady.phase, decoding[1]->steady.phase);
    return sched;
}

static void expect_sched_broken(struct pkv_sched *sched, const char *id)
{
    struct pkv_err err = { 0 };
    int result = pkv_sched_check(sched, &err);

    expect_id(result, &err, id);
}

START_TEST(s1_running_out_of_the_order_of_admission)
{
    struct pkv_sched *sched = make_decoding();

    sched->running[0] = decoding[1];
    sched->running[1] = decoding[0];
    expect_sched_broken(sched, "S1");
    sched->running[0] = sched->running[1] = decoding[0];   /* one is lost, one is there twice */
    expect_sched_broken(sched, "S1");
    sched->running[1] = decoding[1];
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
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

/* A decode, and the second chunk of a prompt beside it; each sum of the plan is off by one in
 * turn. */
START_TEST(s5_a_sum_that_its_entries_do_not_have)
{
    struct pkv_sched_config config = base_config(20);
    struct pkv_sched *sched;
    struct pkv_plan *plan;
    uint64_t *sums[5];

    config.max_num_batched_tokens = 30;
    sched = make_sched(&config);
    add(sched, 0, 20, 9, 0);
    add(sched, 1, 60, 2, 0);
    step(sched);   /* 20 + 10 */
    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    ck_assert_uint_eq(plan->num_tokens, 30);   /* 1 + 29 */
    ck_assert_uint_eq(plan->num_prefill_tokens, 29);
    ck_assert_uint_eq(plan->num_decodes, 1);
    ck_assert_uint_eq(plan->num_context_tokens, 21 + 39);
    sums[0] = &plan->num_tokens;
    sums[1] = &plan->num_prefill_tokens;
    sums[2] = &plan->num_decodes;
    sums[3] = &plan->num_context_tokens;
    sums[4] = &plan->num_recomputed_tokens;
    for (size_t i = 0; i < 5; i++) {
        struct pkv_err err = { 0 };
        int result;

        ck_assert_int_eq(pkv_plan_check(sched, plan, NULL), 0);
        ++*sums[i];
        result = pkv_plan_check(sched, plan, &err);
        expect_id(result, &err, "S5");
        --*sums[i];
    }
    pkv_sched_commit(sched, plan);
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(s6_a_bucket_that_is_wrong)
{
    struct pkv_sched *sched = make_decoding();
    struct bucket *bucket = &sched->steady.buckets[decoding[0]->steady.phase];

    ck_assert_ptr_eq(bucket->first, decoding[0]);
    ck_assert_ptr_eq(bucket->last, decoding[1]);
    bucket->num = 3;
    expect_sched_broken(sched, "S6");
    bucket->num = 2;
    bucket->last = decoding[0];
    expect_sched_broken(sched, "S6");
    bucket->last = decoding[1];
    decoding[1]->steady.prev = NULL;
    expect_sched_broken(sched, "S6");
    decoding[1]->steady.prev = decoding[0];
    decoding[0]->steady.next = NULL;   /* the second one is lost */
    expect_sched_broken(sched, "S6");
    decoding[0]->steady.next = decoding[1];
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(s6_an_end_at_the_wrong_time)
{
    struct pkv_sched *sched = make_decoding();

    decoding[2]->waiting_node.key[0]++;
    expect_sched_broken(sched, "S6");
    decoding[2]->waiting_node.key[0]--;
    sched->steady.ends.num--;
    expect_sched_broken(sched, "S6");
    sched->steady.ends.num++;
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
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
    tcase_add_test(tests, a_cancelled_token_gives_no_identity);
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
    tcase_add_test(invariants, s1_running_out_of_the_order_of_admission);
    tcase_add_test(invariants, s2_waiting_with_positions);
    tcase_add_test(invariants, s3_more_computed_than_known);
    tcase_add_test(invariants, s4_too_many_running);
    tcase_add_test(invariants, s5_over_the_budget);
    tcase_add_test(invariants, s5_a_sum_that_its_entries_do_not_have);
    tcase_add_test(invariants, s6_a_bucket_that_is_wrong);
    tcase_add_test(invariants, s6_an_end_at_the_wrong_time);
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
