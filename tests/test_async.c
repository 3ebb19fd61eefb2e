/*
 * test_async.c - steps that are scheduled while the one before them runs: what counts as known, when
 * a block gets its identity, when blocks are seen free, and when all that is in time.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "cache/cache_private.h"
#include "engine_fixture.h"
#include "pagedkv/policy.h"
#include "sched/sched_private.h"
#include "sched_fixture.h"

static struct run run;

static struct pkv_sched_config async_config(uint32_t num_blocks)
{
    struct pkv_sched_config config = base_config(num_blocks);

    config.groups[0].block_size = 4;
    config.async_scheduling = true;
    return config;
}

/* P = 3, O = 2.
 *   plan 0    3 tokens, so that the first token will come
 *   plan 1    that one counts: 1 token, position 3 is filled. What it says is not known: no identity.
 *   commit 0  it is said; its place is being computed, but in flight: no identity yet
 *   plan 2    the token in flight is the last one: nothing
 *   commit 1  the last token. Now the block has its identity, and is free.
 *   plan 3    sees it free */
START_TEST(a_token_in_flight_counts_but_says_nothing)
{
    struct pkv_sched_config config = async_config(1);
    struct pkv_sched *sched;
    struct pkv_plan *plans[3];
    struct pkv_request *r;

    config.prefix_cache = true;
    sched = make_sched(&config);
    r = add(sched, 0, 3, 2, 0);
    plans[0] = plan_one(sched);
    ck_assert(plans[0]->entries[0].samples);
    ck_assert_uint_eq(r->num_in_flight, 1);
    plans[1] = plan_one(sched);
    ck_assert_uint_eq(plans[1]->num_tokens, 1);
    ck_assert_uint_eq(plans[1]->entries[0].first_position, 3);
    ck_assert_uint_eq(r->num_in_flight, 2);
    ck_assert_uint_eq(num_keys(sched), 0);
    commit_one(sched, plans[0]);
    ck_assert_uint_eq(r->num_emitted, 1);
    ck_assert_uint_eq(r->num_in_flight, 1);
    ck_assert_uint_eq(num_keys(sched), 0);
    plans[2] = plan_one(sched);
    ck_assert_uint_eq(plans[2]->num_tokens, 0);
    ck_assert_uint_eq(pkv_sched_num_running(sched), 1);
    commit_one(sched, plans[1]);
    ck_assert_uint_eq(num_keys(sched), 1);
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_drop(sched, plans[2]);
    add(sched, 1, 3, 2, 0);
    ck_assert_uint_eq(plan_one(sched)->num_admissions, 1);
    pkv_sched_destroy(sched);
}
END_TEST

/* Told 9 tokens, it ends with its 2nd: that is seen when the place of its 2nd is being computed, the
 * 5th position and so a second block, for nothing. */
START_TEST(an_end_nobody_was_told_of_is_seen_a_step_late)
{
    struct pkv_sched_config config = async_config(2);
    struct pkv_sched *sched = make_sched(&config);
    const struct pkv_span own = { pkv_origin(PKV_ORIGIN_OWN, 0), 0, 3 };
    const struct pkv_request_spec spec = {
        .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME, .num_prompt_tokens = 3,
        .num_output_tokens = 2, .max_tokens = 9,
        .content = { .prompt = &own, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, 0) } };
    struct pkv_request *r;
    struct pkv_plan *plans[3];
    char reason[64];

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &r, reason, sizeof reason, NULL), 0);
    ck_assert_uint_eq(pkv_sched_peak_blocks(sched, r), 2);   /* 3 + 2 - 1, and one more: 5 positions */
    plans[0] = plan_one(sched);
    plans[1] = plan_one(sched);
    commit_one(sched, plans[0]);
    plans[2] = plan_one(sched);
    ck_assert_uint_eq(plans[2]->num_tokens, 1);
    ck_assert_uint_eq(num_used(sched), 2);
    pkv_sched_commit(sched, plans[1]);
    ck_assert_uint_eq(plans[1]->num_finished, 1);
    ck_assert_uint_eq(r->num_emitted, 2);
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_commit(sched, plans[2]);   /* of one that has ended: nothing */
    ck_assert_uint_eq(plans[2]->num_finished, 0);
    ck_assert_uint_eq(plans[2]->entries[0].num_sampled, 0);
    pkv_sched_forget(sched, r);
    pkv_sched_destroy(sched);
}
END_TEST

/* Two on 2 blocks: 3 prompt tokens each, then position 3, then both need a second block. The older
 * one gives up the younger, whose 2nd token is in flight: it comes out while it waits. With that it
 * waits on, or ends there, if it was its last and nobody knew. */
START_TEST(a_victim_may_end_while_it_waits)
{
    struct pkv_sched_config config = async_config(2);
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *older = add(sched, 0, 3, 5, 0), *younger = add(sched, 1, 3, 3, 0);
    struct pkv_plan *plans[4];

    plans[0] = plan_one(sched);
    plans[1] = plan_one(sched);
    commit_one(sched, plans[0]);
    plans[2] = plan_one(sched);
    ck_assert_uint_eq(plans[2]->num_preemptions, 1);
    ck_assert_ptr_eq(plans[2]->preemptions[0].ref.request, younger);
    ck_assert_uint_eq(plans[2]->num_entries, 1);
    ck_assert_int_eq(younger->status, PKV_REQUEST_PREEMPTED);
    ck_assert_uint_eq(younger->num_in_flight, 1);
    commit_one(sched, plans[1]);
    ck_assert_uint_eq(younger->num_emitted, 2);   /* said while it waits */
    ck_assert_uint_eq(younger->seq.num_known_tokens, 5);
    ck_assert_int_eq(younger->status, PKV_REQUEST_PREEMPTED);
    ck_assert_uint_eq(older->num_emitted, 2);
    pkv_sched_destroy(sched);

    config = async_config(2);
    sched = make_sched(&config);
    add(sched, 0, 3, 5, 0);
    younger = add(sched, 1, 3, 2, 0);
    younger->max_tokens = 9;   /* so that it is scheduled beside its last token */
    plans[0] = plan_one(sched);
    plans[1] = plan_one(sched);
    commit_one(sched, plans[0]);
    plans[2] = plan_one(sched);
    ck_assert_uint_eq(plans[2]->num_preemptions, 1);
    pkv_sched_commit(sched, plans[1]);
    ck_assert_uint_eq(plans[1]->num_finished, 1);
    ck_assert_int_eq(younger->status, PKV_REQUEST_COMPLETED);
    ck_assert_uint_eq(pkv_sched_num_waiting(sched), 0);
    pkv_sched_forget(sched, younger);
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(one_that_was_aborted_gets_no_token)
{
    struct pkv_sched_config config = async_config(4);
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *r = add(sched, 0, 3, 5, 0);
    struct pkv_plan *plan = plan_one(sched);

    pkv_sched_abort(sched, r);
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_commit(sched, plan);
    ck_assert_uint_eq(plan->entries[0].num_sampled, 0);
    ck_assert_uint_eq(r->num_emitted, 0);
    pkv_sched_forget(sched, r);
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(s8_positions_in_flight_that_no_plan_computes)
{
    struct pkv_sched_config config = async_config(4);
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *r = add(sched, 0, 3, 5, 0);
    struct pkv_err err = { 0 };

    plan_one(sched);
    r->seq.num_flying_tokens = 2;
    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_str_eq(err.text, "S8: row 0 has 2 positions in flight, 3 counted");
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(s8_tokens_in_flight_that_no_plan_brings)
{
    struct pkv_sched_config config = async_config(4);
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *r = add(sched, 0, 3, 5, 0);
    struct pkv_err err = { 0 };

    plan_one(sched);
    r->num_in_flight = 2;
    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_str_eq(err.text, "S8: row 0 has 2 tokens in flight, 1 counted");
    r->num_in_flight = 0;
    r->seq.num_known_tokens++;   /* or S3 would speak first */
    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_str_eq(err.text, "S8: 0 tokens are in flight, the plans that are out bring 1");
    pkv_sched_destroy(sched);
}
END_TEST

/* Three of 6 prompt tokens each and 20 to say, blocks for all. When the first tokens are out they are
 * listed in the plan that is out, and counted from the next one on. */
static struct pkv_sched *three_that_decode(struct pkv_plan **out, struct pkv_request **requests)
{
    struct pkv_sched_config config = async_config(30);
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_plan *plans[2];

    for (uint64_t i = 0; i < 3; i++)
        requests[i] = add(sched, i, 6, 20, 0);
    plans[0] = plan_one(sched);
    plans[1] = plan_one(sched);
    ck_assert_uint_eq(plans[1]->num_entries, 3);
    commit_one(sched, plans[0]);
    *out = plan_one(sched);
    ck_assert_uint_eq((*out)->num_entries, 0);
    ck_assert_uint_eq((*out)->num_steady, 3);
    commit_one(sched, plans[1]);
    ck_assert_uint_eq(plans[1]->entries[2].num_sampled, 1);
    pkv_sched_refresh(sched);
    ck_assert_uint_eq(requests[2]->num_emitted, 2);
    ck_assert_uint_eq(requests[2]->num_in_flight, 1);
    return sched;
}

START_TEST(those_who_decode_are_counted_and_not_listed)
{
    struct pkv_request *r[3];
    struct pkv_plan *plan;
    struct pkv_sched *sched = three_that_decode(&plan, r);

    pkv_sched_abort(sched, r[1]);   /* its token does not come out */
    pkv_sched_forget(sched, r[1]);
    ck_assert_uint_eq(plan->num_steady, 2);
    expect_sched_sound(sched);
    commit_one(sched, plan);
    pkv_sched_refresh(sched);
    ck_assert_uint_eq(r[0]->num_emitted, 3);
    ck_assert_uint_eq(r[2]->num_emitted, 3);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(s6_a_plan_that_counts_wrongly)
{
    struct pkv_request *r[3];
    struct pkv_plan *plan;
    struct pkv_sched *sched = three_that_decode(&plan, r);
    struct pkv_err err = { 0 };

    plan->num_steady = 2;
    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_str_eq(err.text, "S6: plan 2 has 2 steady requests, 3 counted");
    pkv_sched_destroy(sched);
}
END_TEST

/* --- in time --------------------------------------------------------------------------------- */

/* Steps of 1 ms, P = 3, O = 3, at 5 ms. Rows begin at 5, 5, 6, 7 ms and last 0, 1, 1, 1 ms: nothing
 * runs in the first; in the last nothing is scheduled. Tokens at 6, 7, 8 ms. */
START_TEST(a_row_is_as_long_as_what_runs_in_it)
{
    static const int64_t begin_ms[] = { 5, 5, 6, 7 }, dur_ms[] = { 0, 1, 1, 1 };
    static const int64_t sched[] = { 3, 1, 1, 0 }, out[] = { 0, 1, 1, 1 };

    begin_run(&run, 4);
    run.config.sched.async_scheduling = true;
    ask(&run, (struct asked){ .arrival_ns = 5 * MS, .num_prompt = 3, .num_output = 3 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.num_steps, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(run.steps[i].time_ns, begin_ms[i] * MS);
        ck_assert_int_eq(run.steps[i].dur_ns, dur_ms[i] * MS);
        ck_assert_int_eq(run.steps[i].sched_tokens, sched[i]);
        ck_assert_int_eq(run.steps[i].output_tokens, out[i]);
        ck_assert_int_eq(run.steps[i].finished, i == 3);
        ck_assert_int_eq(run.steps[i].free_blocks_end, i == 3 ? 4 : 3);
    }
    ck_assert_int_eq(run.steps[0].updated_ns, PKV_NO_TIME);
    ck_assert_int_eq(run.steps[2].updated_ns, 5 * MS);
    ck_assert_int_eq(run.steps[3].updated_ns, 6 * MS);
    ck_assert_int_eq(run.figures.end_ns, 8 * MS);
    ck_assert_uint_eq(run.figures.scheduled_tokens, 5);
}
END_TEST

/* The second comes at 5.5 ms, while the first step runs, and is seen by the schedule at 6 ms; its
 * step is the one after that: from 7 to 8 ms. Synchronously it would be from 6 to 7 ms. */
START_TEST(an_arrival_waits_for_one_step_more)
{
    for (int async = 0; async < 2; async++) {
        begin_run(&run, 8);
        run.config.sched.async_scheduling = async;
        ask(&run, (struct asked){ .arrival_ns = 5 * MS, .num_prompt = 3, .num_output = 9 });
        ask(&run, (struct asked){ .arrival_ns = 11 * MS / 2, .num_prompt = 3, .num_output = 1 });
        expect_outcome(&run, PKV_OUTCOME_DONE);
        ck_assert_uint_eq(run.requests[0].row, 1);
        for (size_t i = 0; i < run.num_steps; i++)
            if (run.steps[i].finished && run.steps[i].time_ns < 9 * MS)
                ck_assert_int_eq(run.steps[i].time_ns + run.steps[i].dur_ns, (async ? 8 : 7) * MS);
    }
}
END_TEST

/* What still ran when the last one ended is for nobody: the next arrival finds an idle engine. */
START_TEST(nothing_runs_on_for_nobody)
{
    begin_run(&run, 8);
    run.config.sched.async_scheduling = true;
    ask(&run, (struct asked){ .num_prompt = 3, .num_output = 2, .max_tokens = 9 });
    ask(&run, (struct asked){ .arrival_ns = 20 * MS, .num_prompt = 3, .num_output = 1 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    /* 0, 0, 1 ms: the third schedules a token for nothing. Then 20, 20 ms. */
    ck_assert_uint_eq(run.num_steps, 5);
    ck_assert_int_eq(run.steps[2].sched_tokens, 1);
    ck_assert_int_eq(run.steps[2].finished, 1);
    ck_assert_int_eq(run.steps[3].time_ns, 20 * MS);
    ck_assert_int_eq(run.steps[3].dur_ns, 0);
    ck_assert_int_eq(run.steps[4].time_ns, 20 * MS);
    ck_assert_int_eq(run.figures.end_ns, 21 * MS);
    ck_assert_uint_eq(run.figures.output_tokens, 3);
}
END_TEST

/* --- drafts in time -------------------------------------------------------------------------- */

static uint64_t num_zero_gaps, num_other_gaps;

static void on_gap(void *ctx, int64_t gap_ns)
{
    (void)ctx;
    num_zero_gaps += gap_ns == 0;
    num_other_gaps += gap_ns != 0;
}

/* Steps of 1 ms, all of 3 drafts right: tokens at 1 ms (1), 2 ms (4), 3 ms (4), 4 ms (1 of 4). Of 9
 * gaps 3 are a step long and 6 are none, as tokens come out together. */
START_TEST(tokens_of_one_step_come_out_together)
{
    begin_run(&run, 8);
    run.config.sched.speculation = (struct pkv_speculation){
        .method = PKV_SPECULATION_DRAFT_MODEL, .num_tokens = 3, .acceptance_rate = 1 };
    run.config.sinks[run.config.num_sinks++] = (struct pkv_sink){ .gap = on_gap };
    num_zero_gaps = num_other_gaps = 0;
    ask(&run, (struct asked){ .num_prompt = 3, .num_output = 10 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.num_steps, 4);
    ck_assert_int_eq(run.steps[0].regular_gaps, 0);
    for (size_t i = 1; i < 4; i++) {
        ck_assert_int_eq(run.steps[i].output_tokens, i < 3 ? 4 : 1);
        ck_assert_int_eq(run.steps[i].regular_gaps, 1);
        ck_assert_int_eq(run.steps[i].max_gap_ns, MS);
        ck_assert_int_eq(run.steps[i].decode_tokens, 1);
        ck_assert_int_eq(run.steps[i].prefill_tokens, 0);
        ck_assert_int_eq(run.steps[i].sched_tokens, 4);
    }
    ck_assert_uint_eq(num_zero_gaps, 6);
    ck_assert_uint_eq(num_other_gaps, 0);
    ck_assert_uint_eq(run.figures.output_tokens, 10);
    ck_assert_uint_eq(run.figures.num_verifications, 3);
    ck_assert_uint_eq(run.figures.drafted_tokens, 9);
    ck_assert_uint_eq(run.figures.accepted_tokens, 9);
    ck_assert_uint_eq(run.figures.verified_tokens, 9);
    /* P + O - 1, and what drafts added: those that were wrong, and those beyond the end. */
    ck_assert_uint_eq(run.figures.scheduled_tokens, 12 + 9 + 3 - 9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("async");
    TCase *tests = tcase_create("async");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_token_in_flight_counts_but_says_nothing);
    tcase_add_test(tests, an_end_nobody_was_told_of_is_seen_a_step_late);
    tcase_add_test(tests, a_victim_may_end_while_it_waits);
    tcase_add_test(tests, one_that_was_aborted_gets_no_token);
    tcase_add_test(tests, s8_positions_in_flight_that_no_plan_computes);
    tcase_add_test(tests, s8_tokens_in_flight_that_no_plan_brings);
    tcase_add_test(tests, those_who_decode_are_counted_and_not_listed);
    tcase_add_test(tests, s6_a_plan_that_counts_wrongly);
    tcase_add_test(tests, a_row_is_as_long_as_what_runs_in_it);
    tcase_add_test(tests, an_arrival_waits_for_one_step_more);
    tcase_add_test(tests, nothing_runs_on_for_nobody);
    tcase_add_test(tests, tokens_of_one_step_come_out_together);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
