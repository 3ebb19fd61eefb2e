/*
 * test_fingerprint.c - which states are told apart when a livelock is looked for: those, and only
 * those, that may go on in different ways.
 */
#include <stdlib.h>

#include <check.h>

#include "order_fixture.h"

/* --- counts of preemptions ------------------------------------------------------------------- */

static uint64_t state_with(uint32_t first, uint32_t second, uint32_t third)
{
    const uint32_t counts[] = { first, second, third };
    struct pkv_sched_config config = base_config(4);
    struct pkv_sched *sched;
    uint64_t state;

    set(&config, PKV_CHOICE_PREEMPT, "least_preempted");
    sched = make_sched(&config);
    for (uint64_t row = 0; row < 3; row++)
        add(sched, row, 16, 9, 0)->num_preemptions = counts[row];
    ck_assert_int_eq(pkv_sched_fingerprint(sched, &state, NULL), 0);
    pkv_sched_destroy(sched);
    return state;
}

/* Only differences decide who of them is given up next, and those of 256 and more all alike; also
 * between two that are both far ahead of the third. */
START_TEST(a_state_tells_who_was_given_up_more_often)
{
    ck_assert_uint_eq(state_with(0, 300, 305), state_with(7, 307, 312));
    ck_assert_uint_eq(state_with(0, 300, 305), state_with(0, 400, 405));
    ck_assert_uint_ne(state_with(0, 300, 305), state_with(0, 300, 306));
    ck_assert_uint_ne(state_with(0, 300, 305), state_with(0, 305, 300));
    ck_assert_uint_ne(state_with(0, 255, 260), state_with(0, 256, 261));
    ck_assert_uint_eq(state_with(0, 0, 256), state_with(0, 0, 300));
}
END_TEST

/* --- passes missed --------------------------------------------------------------------------- */

/* Three wait for ever, with so many passes between them, and from the last one to now. */
static uint64_t state_of(int first_gap, int second_gap, int last_gap)
{
    struct pkv_sched_config config = one_at_a_time("lpm", 8, 4);
    const int gaps[] = { first_gap, second_gap, last_gap };
    struct pkv_sched *sched;
    uint64_t state;

    set_param(&config, "aging_tokens", 1);
    config.oversized = PKV_OVERSIZED_WAIT;
    sched = make_sched(&config);
    for (uint64_t row = 0; row < 3; row++) {
        add_one(sched, (struct asked_for){ .row = row, .num_own = 100, .num_output = 1 });
        for (int t = 0; t < gaps[row]; t++)
            step(sched);
    }
    ck_assert_int_eq(pkv_sched_fingerprint(sched, &state, NULL), 0);
    pkv_sched_destroy(sched);
    return state;
}

/* Nobody has more than 100 tokens, and a pass counts for one: from 101 passes on it is decided who of
 * two goes first. Below that a gap may decide, also between two that are both far ahead of others. */
START_TEST(a_state_tells_the_gaps_that_decide)
{
    uint64_t state = state_of(1, 150, 5);

    ck_assert_uint_eq(state_of(1, 150, 5), state);
    ck_assert_uint_eq(state_of(1, 101, 5), state);
    ck_assert_uint_ne(state_of(1, 100, 5), state);
    ck_assert_uint_ne(state_of(3, 150, 5), state);
    ck_assert_uint_ne(state_of(100, 150, 5), state);
    ck_assert_uint_ne(state_of(1, 150, 6), state);    /* one given up now would be behind by more */
    ck_assert_uint_eq(state_of(101, 150, 5), state_of(140, 150, 5));
    ck_assert_uint_eq(state_of(60, 60, 5), state_of(60, 60, 5));
    ck_assert_uint_ne(state_of(60, 60, 5), state_of(70, 60, 5));
    ck_assert_uint_eq(state_of(1, 1, 101), state_of(1, 1, 130));
}
END_TEST

/* --- fair shares ----------------------------------------------------------------------------- */

/* Tenants 0, 1 and 2 come in turn; 0 leaves at once, and one of two requests of tenant 1 does when `last`
 * is 1. Each prompt token then counts for one, in thousandths. Of tenant 0 nothing waits. */
static uint64_t shares_of(uint64_t first, uint64_t second, uint64_t third, uint32_t last,
                          struct pkv_sched_view view)
{
    const struct pkv_order_ops *vtc =
        (const struct pkv_order_ops *)pkv_policy_find(PKV_CHOICE_ORDER, "vtc");
    const struct pkv_tenant_tokens tokens[] = { { first, 0 }, { second, 0 }, { third, 0 } };
    const struct pkv_step_facts facts = { .tenants = tokens, .num_tenants = 3 };
    const int64_t weights[] = { 1000, 2000 };
    char *state = calloc(1, vtc->state_size + 3 * vtc->state_size_each);
    struct pkv_request requests[] = { { .tenant_number = 0 }, { .tenant_number = 1 },
                                      { .tenant_number = 2 } };
    uint64_t hash;

    ck_assert_ptr_nonnull(state);
    vtc->init(state, weights);
    for (size_t i = 0; i < 3; i++)
        vtc->joined(state, &requests[i]);
    vtc->joined(state, &requests[1]);
    if (last == 1)
        vtc->left(state, &requests[0]);
    vtc->left(state, &requests[1]);
    if (last == 0)
        vtc->left(state, &requests[0]);
    vtc->observe(state, &facts);
    hash = vtc->fingerprint(state, &view);
    free(state);
    return hash;
}

/* What a tenant with nothing live has had decides nothing, nor how much all have had. */
START_TEST(a_state_tells_shares_of_the_live)
{
    const struct pkv_sched_view nobody = { 0 };
    uint64_t state = shares_of(5, 100, 130, 1, nobody);

    ck_assert_uint_eq(shares_of(50, 100, 130, 1, nobody), state);
    ck_assert_uint_eq(shares_of(500, 100, 130, 1, nobody), state);
    ck_assert_uint_eq(shares_of(5, 110, 140, 1, nobody), state);
    ck_assert_uint_ne(shares_of(5, 100, 131, 1, nobody), state);
    ck_assert_uint_ne(shares_of(5, 130, 100, 1, nobody), state);
}
END_TEST

/* One that runs may be given up and wait again. */
START_TEST(a_state_tells_shares_of_those_who_run)
{
    struct pkv_request running = { .tenant_number = 0 };
    struct pkv_request *const all[] = { &running };
    const struct pkv_sched_view view = { .running = all, .num_running = 1 };

    ck_assert_uint_ne(shares_of(50, 100, 130, 1, view), shares_of(5, 100, 130, 1, view));
    ck_assert_uint_eq(shares_of(15, 110, 140, 1, view), shares_of(5, 100, 130, 1, view));
}
END_TEST

/* The tenant that left last lifts whoever comes into an empty queue, if it has had more. */
START_TEST(a_state_tells_to_what_others_are_lifted)
{
    const struct pkv_sched_view nobody = { 0 };

    ck_assert_uint_ne(shares_of(500, 100, 130, 0, nobody), shares_of(501, 100, 130, 0, nobody));
    ck_assert_uint_eq(shares_of(5, 100, 130, 0, nobody), shares_of(50, 100, 130, 0, nobody));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fingerprint");
    TCase *tests = tcase_create("fingerprint");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_state_tells_who_was_given_up_more_often);
    tcase_add_test(tests, a_state_tells_the_gaps_that_decide);
    tcase_add_test(tests, a_state_tells_shares_of_the_live);
    tcase_add_test(tests, a_state_tells_shares_of_those_who_run);
    tcase_add_test(tests, a_state_tells_to_what_others_are_lifted);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
