/*
 * test_samples.c - parallel samples and beams, step by step.
 *
 * All numbers are worked by hand: blocks of 16 tokens, steps of one millisecond. A prompt of 20 tokens
 * takes one full block, which its samples share for good, and one with 4 tokens, which each of them
 * copies when it writes but the last, who is alone with it by then.
 */
#include <string.h>

#include <check.h>

#include "engine_fixture.h"
#include "sched/sched_private.h"
#include "sched_fixture.h"

static struct run run;

static void begin(uint32_t num_blocks)
{
    begin_run(&run, num_blocks);
    run.config.sched.fork = true;
    run.config.sched.seed = 7;
}

/* used_blocks of the first steps, and all tables' lengths. */
static void expect_blocks(const int64_t *used, const int64_t *tables, size_t num)
{
    ck_assert_uint_eq(run.num_steps, num);
    for (size_t i = 0; i < num; i++) {
        ck_assert_msg(run.steps[i].used_blocks == used[i], "step %zu uses %lld blocks", i,
                      (long long)run.steps[i].used_blocks);
        ck_assert_msg(run.steps[i].table_blocks == tables[i], "step %zu has %lld in tables", i,
                      (long long)run.steps[i].table_blocks);
    }
}

#define EXPECT_BLOCKS(used, tables) \
    expect_blocks(used, tables, sizeof(used) / sizeof *(used))

/* --- samples --------------------------------------------------------------------------------- */

/* Without sharing, four times two blocks: 8, of which 3 are saved. */
START_TEST(four_samples_share_a_full_block)
{
    static const int64_t used[] = { 2, 5, 5, 5, 5 }, tables[] = { 2, 8, 8, 8, 8 };
    const struct told_event *forks[MOST_TOLD];

    begin(10);
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5, .num_samples = 4 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    EXPECT_BLOCKS(used, tables);
    ck_assert_uint_eq(run.figures.cache.num_copied, 3);
    ck_assert_uint_eq(run.figures.forks, 3);
    ck_assert_uint_eq(run.figures.forked_tokens, 60);
    ck_assert_uint_eq(run.figures.scheduled_tokens, 20 + 4 * 4);
    ck_assert_uint_eq(run.figures.output_tokens, 20);
    ck_assert_int_eq(run.steps[0].output_tokens, 4);   /* from the prompt's last position */
    ck_assert_int_eq(run.steps[0].running, 4);
    ck_assert_int_eq(run.steps[1].stored_tokens, 16 + 4 * 5);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_FORK, 3, forks), 1);
    ck_assert_str_eq(forks[0]->id, "0/3");
    ck_assert_uint_eq(forks[0]->parent_row, 0);
    ck_assert_uint_eq(forks[0]->shared_blocks, 2);
}
END_TEST

/* Nobody writes into a block that is full: nothing to copy. */
START_TEST(a_whole_number_of_blocks_is_never_copied)
{
    static const int64_t used[] = { 2, 5, 5 }, tables[] = { 2, 9, 9 };

    begin(10);
    ask(&run, (struct asked){ .num_prompt = 32, .num_output = 3, .num_samples = 3 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    EXPECT_BLOCKS(used, tables);
    ck_assert_uint_eq(run.figures.cache.num_copied, 0);
}
END_TEST

/* The one that says 1 token holds the prompt's two blocks with the others, so it frees none; the next
 * ones free their copies; the last one its own and the shared one. */
START_TEST(one_that_ends_frees_only_its_own)
{
    static const uint32_t outputs[] = { 1, 2, 3, 5 };
    static const int64_t used[] = { 2, 4, 3, 2, 2 }, tables[] = { 2, 6, 4, 2, 2 };

    begin(10);
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5, .num_samples = 4,
                              .outputs = outputs });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    EXPECT_BLOCKS(used, tables);
    ck_assert_int_eq(run.steps[0].free_blocks_end, 8);
    ck_assert_int_eq(run.steps[1].free_blocks_end, 7);
    ck_assert_int_eq(run.steps[4].free_blocks_end, 10);
    ck_assert_uint_eq(run.figures.cache.num_copied, 2);   /* three writers, the last in place */
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(run.requests[i].row, i);
        ck_assert_uint_eq(run.requests[i].num_emitted, outputs[i]);
    }
}
END_TEST

/* Beside request 0 (24 tokens, 2 blocks) the samples hold 1 + 2 blocks of 5. In step 9 request 0 wants a
 * third one: both samples are given up, for all three of theirs. It ends with step 9, so in step 10 the
 * prompt is computed again, and they fork without a token; in step 11 each computes its 9 tokens, 8 of
 * them for the second time, and the tenth comes out. */
START_TEST(samples_are_given_up_and_come_back_together)
{
    static const int64_t used[] = { 3, 5, 5, 5, 5, 5, 5, 5, 5, 3, 1, 3, 3, 3 };
    static const int64_t recomputed[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 16, 0, 0 };
    const struct told_event *given_up[MOST_TOLD];

    begin(5);
    ask(&run, (struct asked){ .num_prompt = 24, .num_output = 10 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 12, .num_samples = 2 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.num_steps, 14);
    for (size_t i = 0; i < 14; i++) {
        ck_assert_msg(run.steps[i].used_blocks == used[i], "step %zu uses %lld", i,
                      (long long)run.steps[i].used_blocks);
        ck_assert_int_eq(run.steps[i].recomputed_tokens, recomputed[i]);
        ck_assert_int_eq(run.steps[i].output_tokens, i < 9 ? 3 : i == 9 ? 1 : i == 10 ? 0 : 2);
    }
    ck_assert_int_eq(run.steps[9].preempted, 2);
    ck_assert_int_eq(run.steps[9].waiting, 2);
    ck_assert_int_eq(run.steps[10].resumed, 2);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_PREEMPT, 2, given_up), 1);
    ck_assert_uint_eq(given_up[0]->freed_blocks, 1);   /* the last one goes first: its own */
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_PREEMPT, 1, given_up), 1);
    ck_assert_uint_eq(given_up[0]->freed_blocks, 2);   /* and then the shared one, too */
    ck_assert_uint_eq(run.figures.forks, 2);
    ck_assert_uint_eq(run.figures.forked_tokens, 16);  /* for the first time */
}
END_TEST

/* Three places are taken for three samples, from the admission on. */
START_TEST(each_sample_takes_a_place)
{
    begin(20);
    run.config.sched.max_num_seqs = 4;
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 4 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 2 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 2, .num_samples = 3 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_int_eq(run.steps[0].running, 2);
    ck_assert_int_eq(run.steps[0].waiting, 3);
    ck_assert_int_eq(run.steps[0].limit, PKV_LIMIT_SEQS);
    ck_assert_int_eq(run.steps[2].running, 4);
    ck_assert_int_eq(run.steps[2].admitted, 3);
}
END_TEST

/* 1 + 4 blocks at their ends; with one token each they never write, and hold 2. */
START_TEST(too_many_for_the_pool_are_refused)
{
    begin(4);
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5, .num_samples = 4 });
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 1, .num_samples = 4 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.rejected, 4);
    ck_assert_uint_eq(run.figures.completed, 4);
    ck_assert_str_eq(run.requests[0].reason, "its 4 samples need 5 blocks, the pool has 4");
}
END_TEST

START_TEST(too_many_for_max_num_seqs)
{
    begin(40);
    run.config.sched.max_num_seqs = 3;
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5, .num_samples = 4 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_str_eq(run.requests[0].reason, "its 4 samples exceed max_num_seqs 3");
    begin(40);
    run.config.sched.max_num_seqs = 3;
    run.config.sched.oversized = PKV_OVERSIZED_WAIT;
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5, .num_samples = 4 });
    expect_outcome(&run, PKV_OUTCOME_STUCK);
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "its 4 samples exceed max_num_seqs 3"));
}
END_TEST

/* While they wait, while one computes the prompt, and while all decode: nobody stays behind. */
START_TEST(an_abort_takes_all_samples)
{
    for (int64_t at = 0; at < 6; at++) {
        begin(10);
        run.config.sched.max_num_batched_tokens = 8;   /* the prompt takes steps 0 to 2 */
        ask(&run, (struct asked){ .num_prompt = 20, .num_output = 9, .num_samples = 3,
                                  .abort_ns = at * MS + 1 });
        expect_outcome(&run, PKV_OUTCOME_DONE);
        ck_assert_uint_eq(run.figures.aborted, 3);
    }
}
END_TEST

/* Two blocks for the first; each other one finds the full one in the prefix cache and takes one of its
 * own: as many as with fork after the first step, but the prompt's end is computed four times. */
START_TEST(without_fork_each_is_admitted_by_itself)
{
    begin(10);
    run.config.sched.fork = false;
    run.config.sched.prefix_cache = true;
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5, .num_samples = 4 });
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_int_eq(run.steps[0].used_blocks, 5 + 2);
    ck_assert_int_eq(run.steps[0].hit_tokens, 3 * 16);
    ck_assert_int_eq(run.steps[0].sched_tokens, 20 + 3 * 4 + 20);
    ck_assert_uint_eq(run.figures.forks + run.figures.cache.num_copied, 0);
    ck_assert_str_eq(run.events[0].id, "0/0");
    ck_assert_str_eq(run.events[3].id, "0/3");
    ck_assert_str_eq(run.events[4].id, "1");
    ck_assert_uint_eq(run.events[4].row, 4);
}
END_TEST

/* --- beams ----------------------------------------------------------------------------------- */

/* In step 1 beam 0 copies the block with 4 tokens, beam 1 writes in place. When all give way, the first
 * stays: beam 1 gives back its own block and shares both of beam 0's, which has to copy again. The last
 * tokens come out with step 3, and nothing is drawn any more. */
START_TEST(a_beam_that_gives_way_frees_its_own)
{
    static const int64_t used[] = { 2, 3, 3, 3 }, tables[] = { 2, 4, 4, 4 };
    const struct told_event *forks[MOST_TOLD];

    begin(10);
    run.config.sched.beam_drop = 1000;
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 4, .num_samples = 2,
                              .is_beam_search = true });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    EXPECT_BLOCKS(used, tables);
    ck_assert_uint_eq(run.figures.cache.num_copied, 3);
    ck_assert_uint_eq(run.figures.dropped_beams, 2);
    ck_assert_int_eq(run.steps[1].free_blocks_end, 8);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_FORK, 1, forks), 3);
    ck_assert_uint_eq(forks[1]->freed_blocks, 1);
    ck_assert_uint_eq(forks[1]->shared_blocks, 2);
}
END_TEST

START_TEST(beams_that_stay_are_samples)
{
    static const int64_t used[] = { 2, 4, 4, 4 }, tables[] = { 2, 6, 6, 6 };

    begin(10);
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 4, .num_samples = 3,
                              .is_beam_search = true });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    EXPECT_BLOCKS(used, tables);
    ck_assert_uint_eq(run.figures.cache.num_copied, 2);
    ck_assert_uint_eq(run.figures.dropped_beams, 0);
}
END_TEST

/* Two tokens a step for three beams: the third has to wait for the next step, and then the first two wait
 * for it. So a generation takes two steps. */
START_TEST(beams_wait_for_one_another)
{
    static const int64_t outputs[] = { 2, 1, 2, 1 };

    begin(20);
    run.config.sched.max_num_batched_tokens = 3;   /* one for request 0, two for the beams */
    ask(&run, (struct asked){ .num_prompt = 18, .num_output = 20 });
    ask(&run, (struct asked){ .num_prompt = 2, .num_output = 3, .num_samples = 3,
                              .is_beam_search = true });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    size_t at = 0;
    while (run.steps[at].prefill_tokens > 0 || run.steps[at].running < 4)
        at++;
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(run.steps[at + i].output_tokens - 1, outputs[i]);
}
END_TEST

START_TEST(beams_need_the_fork)
{
    begin(10);
    run.config.sched.fork = false;
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 4, .num_samples = 2,
                              .is_beam_search = true });
    do_run(&run);
    ck_assert_int_eq(run.result, -1);
    ck_assert_str_eq(run.err.text, "row 0 asks for 2 beams, which need scheduler.fork: on");
}
END_TEST

START_TEST(runs_are_not_shared)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_err err = { 0 };

    config.fork = true;
    set(&config, PKV_CHOICE_LAYOUT, "contiguous_exact");
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "fork must be off"));
}
END_TEST

/* They bring one token a step, and it is known when the next one is planned. */
START_TEST(one_token_a_step)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_err err = { 0 };

    config.fork = config.async_scheduling = true;
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "no speculation, no async_scheduling"));
    config.async_scheduling = false;
    config.speculation = (struct pkv_speculation){ .method = PKV_SPECULATION_NGRAM, .num_tokens = 2,
                                                   .acceptance_rate = 1 };
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "no speculation, no async_scheduling"));
}
END_TEST

START_TEST(swapping_moves_blocks_of_one_request)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_err err = { 0 };

    config.fork = true;
    config.swap = (struct pkv_swap_config){ .num_host_blocks = 10, .bytes_per_token = 1,
                                            .link = { .bytes_per_s = 1000 } };
    set(&config, PKV_CHOICE_ON_PREEMPT, "swap");
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "on_preempt swap moves blocks of one request"));
}
END_TEST

/* Each by itself they draft: one token with the prompt, then 2 drafts that are right and one more. With
 * steps that overlap the third comes out of the third step. Two blocks each, none shared. */
START_TEST(without_fork_they_draft_and_overlap)
{
    for (int drafts = 0; drafts < 2; drafts++) {
        begin(10);
        run.config.sched.fork = false;
        run.config.sched.async_scheduling = !drafts;
        if (drafts)
            run.config.sched.speculation = (struct pkv_speculation){
                .method = PKV_SPECULATION_NGRAM, .num_tokens = 2, .acceptance_rate = 1 };
        ask(&run, (struct asked){ .num_prompt = 20, .num_output = drafts ? 4 : 3, .num_samples = 4 });
        expect_outcome(&run, PKV_OUTCOME_DONE);
        ck_assert_uint_eq(run.figures.completed, 4);
        ck_assert_uint_eq(run.figures.accepted_tokens, drafts ? 4 * 2 : 0);
        ck_assert_uint_eq(run.figures.scheduled_tokens, drafts ? 4 * (20 + 3) : 4 * (20 + 2));
        ck_assert_int_eq(run.steps[1].used_blocks, 4 * 2);
        ck_assert_uint_eq(run.figures.forks + run.figures.cache.num_copied, 0);
    }
}
END_TEST

/* --- the audit ------------------------------------------------------------------------------- */

static void expect_s11(struct pkv_sched *sched)
{
    struct pkv_err err = { 0 };

    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_AUDIT);
    ck_assert_msg(strncmp(err.text, "S11:", 4) == 0, "%s", err.text);
}

/* Two requests that are not a gang are made one by hand, in the queue and in running. */
START_TEST(s11_samples_that_are_apart)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_sched *sched;
    struct pkv_request *a, *b;
    struct pkv_plan *plan;

    config.fork = true;
    sched = make_sched(&config);
    a = add(sched, 0, 20, 5, 0);
    b = add(sched, 1, 20, 5, 0);
    b->sample.index = 1;
    a->sample.waits_for_fork = b->sample.waits_for_fork = true;
    pkv_sample_join(a, b);
    expect_s11(sched);
    pkv_sample_leave(b);
    a->sample.waits_for_fork = b->sample.waits_for_fork = false;
    ck_assert_int_eq(pkv_sched_check(sched, NULL), 0);
    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    pkv_sched_commit(sched, plan);
    a->sample.index = 2;               /* a runs before b, but is behind it in the ring */
    pkv_sample_join(b, a);
    expect_s11(sched);
    pkv_sample_leave(a);
    a->sample.index = 0;
    ck_assert_int_eq(pkv_sched_check(sched, NULL), 0);
    pkv_sched_destroy(sched);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("samples");
    TCase *tc = tcase_create("samples");
    SRunner *runner;

    tcase_add_test(tc, four_samples_share_a_full_block);
    tcase_add_test(tc, a_whole_number_of_blocks_is_never_copied);
    tcase_add_test(tc, one_that_ends_frees_only_its_own);
    tcase_add_test(tc, samples_are_given_up_and_come_back_together);
    tcase_add_test(tc, each_sample_takes_a_place);
    tcase_add_test(tc, too_many_for_the_pool_are_refused);
    tcase_add_test(tc, too_many_for_max_num_seqs);
    tcase_add_test(tc, an_abort_takes_all_samples);
    tcase_add_test(tc, without_fork_each_is_admitted_by_itself);
    tcase_add_test(tc, a_beam_that_gives_way_frees_its_own);
    tcase_add_test(tc, beams_that_stay_are_samples);
    tcase_add_test(tc, beams_wait_for_one_another);
    tcase_add_test(tc, beams_need_the_fork);
    tcase_add_test(tc, runs_are_not_shared);
    tcase_add_test(tc, one_token_a_step);
    tcase_add_test(tc, swapping_moves_blocks_of_one_request);
    tcase_add_test(tc, without_fork_they_draft_and_overlap);
    tcase_add_test(tc, s11_samples_that_are_apart);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
