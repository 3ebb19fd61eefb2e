/*
 * test_vtc.c - fair shares of tenants: counters by hand, the paper's bound, and what an order is told
 * of tenants.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "order_fixture.h"

/* --- fair shares ----------------------------------------------------------------------------- */

static void add_for(struct pkv_sched *sched, const char *tenant, uint64_t row, uint32_t num_prompt,
                    uint32_t num_output)
{
    add_one(sched, (struct asked_for){ .row = row, .num_own = num_prompt, .tenant = tenant,
                                       .num_output = num_output });
}

static void expect_rows(struct pkv_sched *sched, const uint64_t *rows, size_t num)
{
    for (size_t i = 0; i < num; i++)
        ck_assert_uint_eq(row_admitted(sched), rows[i]);
}

/* Both have 10 tokens a request. Counters (a, b) as they rise within the pass: row 0 as it came first
 * (10, 0), 4 (10, 10), 1 (20, 10), 5 (20, 20), 2, and 3 as b has no more. */
START_TEST(vtc_counts_within_a_pass)
{
    static const uint64_t wanted[] = { 0, 4, 1, 5, 2, 3 };
    struct pkv_sched_config config = one_at_a_time("vtc", 40, 4);
    struct pkv_sched *sched;
    struct pkv_plan *plan;

    config.max_num_seqs = 0;
    sched = make_sched(&config);
    for (uint64_t row = 0; row < 6; row++)
        add_for(sched, row < 4 ? "a" : "b", row, 10, 3);
    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    ck_assert_uint_eq(plan->num_admissions, 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_uint_eq(pkv_request_get(plan->admissions[i].ref)->row, wanted[i]);
    pkv_sched_commit(sched, plan);
    pkv_sched_destroy(sched);
}
END_TEST

/* A request of a (10 tokens, one generated) counts 10 + 2 = 12, one of b (20, 1) counts 22. Counters
 * (a, b) after each step: row 0 (12, 0), 8 (12, 22), 1 (24, 22), 9 (24, 44), 2 (36, 44), 3 (48, 44),
 * 10 (48, 66), 4 (60, 66), 5 (72, 66), 11 (72, 88). */
START_TEST(vtc_gives_to_whom_had_least)
{
    static const uint64_t wanted[] = { 0, 8, 1, 9, 2, 3, 10, 4, 5, 11 };
    struct pkv_sched_config config = one_at_a_time("vtc", 20, 4);
    struct pkv_sched *sched = make_sched(&config);

    for (uint64_t row = 0; row < 12; row++)
        add_for(sched, row < 8 ? "a" : "b", row, row < 8 ? 10 : 20, 1);
    expect_rows(sched, wanted, 10);
    pkv_sched_destroy(sched);
}
END_TEST

/* The same with weights 0.5 and 0: 5 and 10 a request. Row 0 (5, 0), 8 (5, 10), 1 (10, 10), 2 as it
 * came before 9 (15, 10), 9 (15, 20), 3 (20, 20), 4 (25, 20), 10. */
START_TEST(vtc_weighs_as_it_is_told)
{
    static const uint64_t wanted[] = { 0, 8, 1, 2, 9, 3, 4, 10 };
    struct pkv_sched_config config = one_at_a_time("vtc", 20, 4);
    struct pkv_sched *sched;

    set_param(&config, "vtc_prompt_weight", 500);
    set_param(&config, "vtc_output_weight", 0);
    sched = make_sched(&config);
    for (uint64_t row = 0; row < 12; row++)
        add_for(sched, row < 8 ? "a" : "b", row, row < 8 ? 10 : 20, 1);
    expect_rows(sched, wanted, 8);
    pkv_sched_destroy(sched);
}
END_TEST

/* a has had three requests of 12 when those without a tenant come for the first time, and are lifted
 * to 36: they get every second place, and not the next three. */
START_TEST(vtc_gives_no_credit_while_others_wait)
{
    static const uint64_t before[] = { 0, 1, 2 }, after[] = { 3, 20, 4, 21, 5, 22 };
    struct pkv_sched_config config = one_at_a_time("vtc", 20, 4);
    struct pkv_sched *sched = make_sched(&config);

    for (uint64_t row = 0; row < 10; row++)
        add_for(sched, "a", row, 10, 1);
    expect_rows(sched, before, 3);
    for (uint64_t row = 20; row < 23; row++)
        add_for(sched, NULL, row, 10, 1);
    expect_rows(sched, after, 6);
    pkv_sched_destroy(sched);
}
END_TEST

/* The queue is empty when b comes, a left it last with 36: so b begins at 36. (a, b): 10 (36, 48),
 * 3 (48, 48), 11 as it came before 4. From 0 b would have had 10 and 11. */
START_TEST(vtc_gives_no_credit_after_an_empty_queue)
{
    static const uint64_t before[] = { 0, 1, 2 }, after[] = { 10, 3, 11, 4 };
    struct pkv_sched_config config = one_at_a_time("vtc", 20, 4);
    struct pkv_sched *sched = make_sched(&config);

    for (uint64_t row = 0; row < 3; row++)
        add_for(sched, "a", row, 10, 1);
    expect_rows(sched, before, 3);
    step(sched);
    add_for(sched, "b", 10, 10, 1);
    add_for(sched, "b", 11, 10, 1);
    add_for(sched, "a", 3, 10, 1);
    add_for(sched, "a", 4, 10, 1);
    expect_rows(sched, after, 4);
    pkv_sched_destroy(sched);
}
END_TEST

/* Service of (a, b) counted from the plans: prompts at admission, two for each token. */
static void count_service(const struct pkv_plan *plan, int64_t *service)
{
    for (size_t i = 0; i < plan->num_admissions; i++) {
        const struct pkv_request *r = pkv_request_get(plan->admissions[i].ref);

        service[r->tenant[0] - 'a'] += plan->admissions[i].resumed ? 0 : r->seq.num_prompt_tokens;
    }
}

static bool has_waiting(struct pkv_sched *sched, char tenant)
{
    struct pkv_request *waiting[128];
    size_t num = pkv_sched_num_waiting(sched);

    ck_assert_uint_le(num, 128);
    pkv_sched_list_waiting(sched, waiting);
    for (size_t i = 0; i < num; i++)
        if (waiting[i]->tenant[0] == tenant)
            return true;
    return false;
}

/* 60 requests of a (8, 10), then 20 of b (12, 6), on 16 blocks of 4: at most 64 tokens in a batch.
 *   returns  the largest difference of service while both have something waiting */
static int64_t largest_difference(const char *order)
{
    struct pkv_sched_config config = one_at_a_time(order, 16, 4);
    int64_t service[2] = { 0, 0 }, largest = 0;
    struct pkv_sched *sched;

    config.max_num_seqs = 0;
    config.prefix_cache = false;
    sched = make_sched(&config);
    for (uint64_t row = 0; row < 80; row++)
        add_for(sched, row < 60 ? "a" : "b", row, row < 60 ? 8 : 12, row < 60 ? 10 : 6);
    do {
        struct pkv_plan_entry entries[64];
        struct pkv_plan *plan;
        size_t num;

        ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
        count_service(plan, service);
        num = pkv_plan_num_scheduled(plan);
        ck_assert_uint_le(num, 64);
        pkv_sched_list_entries(sched, plan, entries);
        for (size_t i = 0; i < num; i++)
            service[pkv_request_get(entries[i].ref)->tenant[0] - 'a'] += 2 * entries[i].samples;
        pkv_sched_commit(sched, plan);
        for (size_t i = 0; i < plan->num_finished; i++)
            pkv_sched_forget(sched, plan->finished[i]);
        if (llabs(service[0] - service[1]) > largest)
            largest = llabs(service[0] - service[1]);
    } while (has_waiting(sched, 'a') && has_waiting(sched, 'b'));
    pkv_sched_destroy(sched);
    return largest;
}

/* The paper's bound is twice the larger of 1 x 12 and 2 x 64. First come first served lets a have
 * nearly all of its 60 x (8 + 20) = 1,680 before b has anything. */
START_TEST(vtc_keeps_within_the_bound)
{
    ck_assert_int_le(largest_difference("vtc"), 2 * 2 * 64);
    ck_assert_int_gt(largest_difference("fcfs"), 1500);
}
END_TEST

/* --- what an order is told of tenants -------------------------------------------------------- */

static uint64_t num_prompt[3], num_generated[3];

static void add_up(void *state, const struct pkv_step_facts *facts)
{
    (void)state;
    ck_assert_uint_eq(facts->num_tenants, 3);
    for (size_t i = 0; i < 3; i++) {
        num_prompt[i] += facts->tenants[i].num_prompt;
        num_generated[i] += facts->tenants[i].num_generated;
    }
}

static int64_t same_key(const void *state, const struct pkv_sched_view *view,
                        const struct pkv_request *r)
{
    (void)state;
    (void)view;
    (void)r;
    return 0;
}

static const struct pkv_order_ops counting_order = {
    .info = { .name = "counting" }, .key = same_key, .needs_tenant_tokens = true,
    .observe = add_up };

/* 5 blocks of 4. Row 0 of b (8, 9) and row 1 of a (8, 12) hold 2 each and want a third for their ninth
 * position in step 1: row 0 takes the last one, row 1 gives itself up and comes back when row 0 has
 * ended. Row 2 of nobody (4, 2) is last. Tokens count once, however they came: while several decode
 * undisturbed, at a prefill, and after a preemption; a prompt counts at the first admission. */
START_TEST(every_token_is_told_once)
{
    struct pkv_sched_config config = one_at_a_time("fcfs", 5, 4);
    uint64_t num_preemptions = 0;
    struct pkv_sched *sched;

    memset(num_prompt, 0, sizeof num_prompt);
    memset(num_generated, 0, sizeof num_generated);
    config.policies.order = &counting_order;
    config.max_num_seqs = 0;
    config.prefix_cache = false;
    sched = make_sched(&config);
    add_for(sched, "b", 0, 8, 9);
    add_for(sched, "a", 1, 8, 12);
    add_for(sched, NULL, 2, 4, 2);
    for (int t = 0; t < 60; t++)
        num_preemptions += step(sched)->num_preemptions;
    ck_assert_uint_eq(pkv_sched_num_running(sched) + pkv_sched_num_waiting(sched), 0);
    ck_assert_uint_ge(num_preemptions, 1);
    ck_assert_uint_eq(num_prompt[0], 4);       /* nobody is 0, b came first: 1, a: 2 */
    ck_assert_uint_eq(num_prompt[1], 8);
    ck_assert_uint_eq(num_prompt[2], 8);
    ck_assert_uint_eq(num_generated[0], 2);
    ck_assert_uint_eq(num_generated[1], 9);
    ck_assert_uint_eq(num_generated[2], 12);
    pkv_sched_destroy(sched);
}
END_TEST

/* More names than the table of them begins with. */
START_TEST(many_tenants_keep_their_numbers)
{
    struct pkv_sched_config config = one_at_a_time("vtc", 5, 4);
    struct pkv_sched *sched = make_sched(&config);

    for (uint64_t row = 0; row < 300; row++) {
        uint64_t number = row % 100;
        char name[3] = { (char)('a' + number / 10), (char)('a' + number % 10), '\0' };
        struct pkv_request *r = add_one(sched, (struct asked_for){ .row = row, .num_own = 4,
                                                                   .tenant = name,
                                                                   .num_output = 1 });

        ck_assert_uint_eq(r->tenant_number, 1 + number);
    }
    pkv_sched_destroy(sched);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vtc");
    TCase *tests = tcase_create("vtc");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, vtc_counts_within_a_pass);
    tcase_add_test(tests, vtc_gives_to_whom_had_least);
    tcase_add_test(tests, vtc_weighs_as_it_is_told);
    tcase_add_test(tests, vtc_gives_no_credit_while_others_wait);
    tcase_add_test(tests, vtc_gives_no_credit_after_an_empty_queue);
    tcase_add_test(tests, vtc_keeps_within_the_bound);
    tcase_add_test(tests, every_token_is_told_once);
    tcase_add_test(tests, many_tenants_keep_their_numbers);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
