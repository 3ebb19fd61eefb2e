/*
 * test_groups_ahead.c - windows beside steps that overlap and beside drafts: when a block leaves the
 * window, what a request may come to hold, and what wrong drafts leave behind.
 *
 * All numbers are worked by hand, in the comments.
 */
#include <stdlib.h>

#include <check.h>

#include "cache/cache_private.h"
#include "pagedkv/policy.h"
#include "sched_fixture.h"

static struct pkv_sched_config window_config(uint32_t window, uint32_t block_size)
{
    struct pkv_sched_config config = base_config(40);

    config.groups[0] = (struct pkv_group_config){
        .ops = &pkv_group_sliding, .size = window, .block_size = block_size };
    config.lookahead_at_admission = true;
    return config;
}

/* So many null blocks and blocks held when each plan is made, while the one before it is out. */
static void expect_held(struct pkv_sched *sched, const struct pkv_request *r, const uint32_t (*want)[2],
                        size_t num)
{
    struct pkv_plan *before = NULL;

    for (size_t i = 0; i < num; i++) {
        struct pkv_plan *plan = plan_one(sched);

        ck_assert_msg(r->seq.tables[0].num_null == want[i][0] && num_used(sched) == want[i][1],
                      "plan %zu: %u null, %u held", i, r->seq.tables[0].num_null, num_used(sched));
        if (before)
            commit_one(sched, before);
        before = plan;
    }
}

/* Window 8, blocks of 4, P = 9. Plan 0 computes 9 positions; plans 1 to 3 the 10th to the 12th, and the
 * step before them begins at 0, 9, 10. Plan 4 finds it at 11: its token looks at 4 to 11, so block 0 goes,
 * and block 3 comes for the 13th. Block 1 goes in plan 8, where the step begins at 15. */
START_TEST(a_block_leaves_the_window_of_the_step_in_flight)
{
    static const uint32_t want[][2] = { { 0, 3 }, { 0, 3 }, { 0, 3 }, { 0, 3 }, { 1, 3 },
                                        { 1, 3 }, { 1, 3 }, { 1, 3 }, { 2, 3 }, { 2, 3 } };
    struct pkv_sched_config config = window_config(8, 4);
    struct pkv_sched *sched;

    config.async_scheduling = true;
    sched = make_sched(&config);
    expect_held(sched, add(sched, 0, 9, 20, 0), want, 10);
    pkv_sched_destroy(sched);
}
END_TEST

/* The same without overlap: 11 are computed when the 12th is planned, and block 0 goes. */
START_TEST(without_overlap_it_leaves_a_step_earlier)
{
    static const uint32_t want[][2] = { { 0, 3 }, { 0, 3 }, { 0, 3 }, { 1, 2 }, { 1, 3 } };
    struct pkv_sched_config config = window_config(8, 4);
    struct pkv_sched *sched = make_sched(&config);
    const struct pkv_request *r = add(sched, 0, 9, 20, 0);

    for (size_t i = 0; i < 5; i++) {
        step(sched);
        ck_assert_uint_eq(r->seq.tables[0].num_null, want[i][0]);
        ck_assert_uint_eq(num_used(sched), want[i][1]);
    }
    pkv_sched_destroy(sched);
}
END_TEST

/* Window 4, blocks of 4, 8 tokens a step, P = 17: 8, 8 and 1 token. A chunk in flight looks back from its
 * own beginning: 0, then 8, where 5 are out and so block 0; then 16, where 13 are and three blocks. */
START_TEST(a_chunk_in_flight_keeps_what_it_looks_at)
{
    static const uint32_t want[][2] = { { 0, 2 }, { 0, 4 }, { 1, 4 }, { 3, 2 } };
    struct pkv_sched_config config = window_config(4, 4);
    struct pkv_sched *sched;

    config.async_scheduling = true;
    config.max_num_batched_tokens = 8;
    sched = make_sched(&config);
    expect_held(sched, add(sched, 0, 17, 9, 0), want, 4);
    pkv_sched_destroy(sched);
}
END_TEST

/* Given up beside a chunk in flight, it has nothing in flight: what it takes next is its own. */
START_TEST(who_is_given_up_flies_no_more)
{
    struct pkv_sched_config config = window_config(64, 4);
    struct pkv_sched *sched;
    struct pkv_plan *plans[2];
    struct pkv_request *younger;

    config.num_blocks = 4;
    config.async_scheduling = true;
    sched = make_sched(&config);
    add(sched, 0, 8, 9, 0);
    younger = add(sched, 1, 8, 9, 0);
    plans[0] = plan_one(sched);
    ck_assert_uint_eq(younger->seq.num_flying_tokens, 8);
    plans[1] = plan_one(sched);   /* the 9th position of the elder takes a third block */
    ck_assert_uint_eq(plans[1]->num_preemptions, 1);
    ck_assert_uint_eq(younger->seq.num_flying_tokens, 0);
    commit_one(sched, plans[0]);
    ck_assert_uint_eq(younger->num_emitted, 1);
    ck_assert_uint_eq(younger->seq.num_flying_tokens, 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* Window 10, blocks of 4, 24 tokens a step, a long prompt.
 *   alone                        ceil((9 + 24) / 4) + 1 = 10
 *   two steps at once            ceil((9 + 48) / 4) + 1 = 16
 *   four positions looked ahead  ceil((9 + 24 + 4) / 4) + 1 = 11, though the gate asks for 10 */
START_TEST(the_most_it_holds_counts_what_is_ahead)
{
    static const struct { bool overlap; uint32_t num_drafts, want; } cases[] = {
        { false, 0, 10 }, { true, 0, 16 }, { false, 4, 11 } };

    for (size_t i = 0; i < 3; i++) {
        struct pkv_sched_config config = window_config(10, 4);
        struct pkv_sched *sched;

        config.max_num_batched_tokens = 24;
        config.async_scheduling = cases[i].overlap;
        if (cases[i].num_drafts > 0)
            config.speculation = (struct pkv_speculation){
                .method = PKV_SPECULATION_DRAFT_MODEL, .num_tokens = cases[i].num_drafts };
        sched = make_sched(&config);
        ck_assert_uint_eq(pkv_sched_peak_blocks(sched, add(sched, 0, 200, 9, 0)), cases[i].want);
        pkv_sched_destroy(sched);
    }
}
END_TEST

/* Window 4, blocks of 4, three of them, chunks of 8, and nobody is given up. The first decodes and lacks a
 * block; the second lets block 0 go, but its next chunk takes two. So nothing is computed in this step,
 * and the next one is another all the same: the first has its block. */
START_TEST(a_step_that_gives_back_changes_something)
{
    struct pkv_sched_config config = window_config(4, 4);
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    config.num_blocks = 3;
    config.long_prefill_token_threshold = 8;
    config.oversized = PKV_OVERSIZED_WAIT;
    set(&config, PKV_CHOICE_PREEMPT, "never");
    set(&config, PKV_CHOICE_ADMIT, "first_chunk");
    sched = make_sched(&config);
    add(sched, 0, 4, 3, 0);
    add(sched, 1, 24, 3, 0);
    ck_assert_uint_eq(step(sched)->num_tokens, 4 + 8);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_tokens, 0);
    ck_assert_uint_eq(num_used(sched), 2);
    ck_assert(!plan->changed_nothing);
    ck_assert_uint_eq(step(sched)->num_tokens, 1);
    pkv_sched_destroy(sched);
}
END_TEST

/* Full attention and a window of 8, blocks of 4, three drafts looked ahead for, all of them wrong. P = 11.
 *   1  11 positions, blocks for 14: 4 and 4
 *   2  4 more, blocks for 18: 5 and 5; block 0 is out of the window. Three are given back: 12 positions,
 *      of which the window holds 8
 *   3  to 16, blocks for 19: as before. 13 positions, the window holds 9 */
START_TEST(wrong_drafts_leave_their_blocks_to_every_group)
{
    static const struct { uint32_t used; uint64_t stored; } want[] = {
        { 4 + 4, 11 + 11 }, { 5 + 4, 12 + 8 }, { 5 + 4, 13 + 9 } };
    struct pkv_sched_config config = window_config(8, 4);
    struct pkv_sched *sched;
    const struct pkv_request *r;

    config.groups[config.num_groups++] = (struct pkv_group_config){ .ops = &pkv_group_full,
                                                                     .block_size = 4 };
    config.speculation = (struct pkv_speculation){ .method = PKV_SPECULATION_DRAFT_MODEL,
                                                   .num_tokens = 3, .num_accepted = 1 };
    sched = make_sched(&config);
    r = add(sched, 0, 11, 9, 0);
    for (uint32_t i = 0; i < 3; i++) {
        step(sched);
        ck_assert_uint_eq(r->seq.num_computed_tokens, 11 + i);
        ck_assert_uint_eq(num_used(sched), want[i].used);
        ck_assert_uint_eq(pkv_cache_figures(pkv_sched_cache(sched)).num_stored, want[i].stored);
        expect_sched_sound(sched);
    }
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(eagle_is_refused_beside_windows)
{
    struct pkv_sched_config config = window_config(8, 4);
    struct pkv_err err = { 0 };

    config.speculation = (struct pkv_speculation){ .method = PKV_SPECULATION_EAGLE, .num_tokens = 2 };
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.text, "speculation method eagle drops the last block of a hit and serves one group "
                     "of full attention");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("groups_ahead");
    TCase *tests = tcase_create("groups_ahead");
    SRunner *runner;
    int num_failed;

    tcase_add_test(tests, a_block_leaves_the_window_of_the_step_in_flight);
    tcase_add_test(tests, without_overlap_it_leaves_a_step_earlier);
    tcase_add_test(tests, a_chunk_in_flight_keeps_what_it_looks_at);
    tcase_add_test(tests, who_is_given_up_flies_no_more);
    tcase_add_test(tests, the_most_it_holds_counts_what_is_ahead);
    tcase_add_test(tests, a_step_that_gives_back_changes_something);
    tcase_add_test(tests, wrong_drafts_leave_their_blocks_to_every_group);
    tcase_add_test(tests, eagle_is_refused_beside_windows);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    num_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return num_failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
