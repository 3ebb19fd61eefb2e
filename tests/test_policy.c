/*
 * test_policy.c - policies of a program's own, handed to the scheduler by pointer: state that
 * learns, keys that change while waiting, a mix that admits nobody.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "engine_fixture.h"
#include "sched_fixture.h"

/* --- state that learns ----------------------------------------------------------------------- */

/* State of a policy: what observe was told. */
struct learnt {
    uint64_t num_steps, num_finished;
};

static struct pkv_step_facts facts[32];   /* by step */
static size_t num_facts;

static void learn(void *state, const struct pkv_step_facts *told)
{
    struct learnt *learnt = state;

    ck_assert_uint_eq(learnt->num_steps, num_facts);
    facts[num_facts++] = *told;
    learnt->num_steps++;
    learnt->num_finished += told->num_finished;
}

static struct learnt seen_by_pick, seen_by_key, seen_by_consider;
static size_t num_picks;

static size_t pick_newest(const void *state, const struct pkv_sched_view *view,
                          const struct pkv_request *grower)
{
    (void)grower;
    seen_by_pick = *(const struct learnt *)state;
    num_picks++;
    return view->num_running - 1;
}

static void learn_for_the_order(void *state, const struct pkv_step_facts *told)
{
    struct learnt *learnt = state;

    learnt->num_steps++;
    learnt->num_finished += told->num_finished;
}

static int64_t by_row(const void *state, const struct pkv_sched_view *view,
                      const struct pkv_request *r)
{
    (void)view;
    seen_by_key = *(const struct learnt *)state;
    return (int64_t)r->row;
}

static enum pkv_admit_verdict admit_what_fits(const void *state, const struct pkv_sched_view *view,
                                              void *pass, const struct pkv_candidate *c,
                                              uint64_t *need_blocks)
{
    (void)pass;
    (void)need_blocks;
    seen_by_consider = *(const struct learnt *)state;
    return c->need_blocks > view->num_free_blocks ? PKV_ADMIT_BLOCKS : PKV_ADMIT;
}

static const struct pkv_preempt_ops learning_preempt = {
    .info = { .name = "learning" }, .pick = pick_newest, .state_size = sizeof(struct learnt),
    .observe = learn };
static const struct pkv_order_ops learning_order = {
    .info = { .name = "learning" }, .key = by_row, .state_size = sizeof(struct learnt),
    .observe = learn_for_the_order };
static const struct pkv_admit_ops learning_admit = {
    .info = { .name = "learning" }, .consider = admit_what_fits,
    .state_size = sizeof(struct learnt), .observe = learn_for_the_order };

static void expect_facts(size_t at, struct pkv_step_facts want)
{
    ck_assert_uint_eq(facts[at].num_tokens, want.num_tokens);
    ck_assert_uint_eq(facts[at].num_prefill_tokens, want.num_prefill_tokens);
    ck_assert_uint_eq(facts[at].num_decodes, want.num_decodes);
    ck_assert_uint_eq(facts[at].num_admitted, want.num_admitted);
    ck_assert_uint_eq(facts[at].num_preempted, want.num_preempted);
    ck_assert_uint_eq(facts[at].num_finished, want.num_finished);
    ck_assert_int_eq(facts[at].is_idle, want.is_idle);
    ck_assert_uint_eq(facts[at].parts, want.parts);
    ck_assert_uint_eq(facts[at].num_survivors, want.num_survivors);
    ck_assert_uint_eq(facts[at].sum_emitted, want.sum_emitted);
    ck_assert_uint_eq(facts[at].sum_max_tokens, want.sum_max_tokens);
}

/* 4 blocks. Row 0: 16 + 20. Row 1: 32 + 1, gone after step 0. Row 2: 20 + 20, comes in in step 1,
 * lacks a third block in step 14 and gives itself up, is back with 33 tokens in step 20, when row 0
 * has gone, and ends with step 26. */
START_TEST(state_learns_after_each_step_and_choices_see_it)
{
    struct pkv_sched_config config = base_config(4);
    struct pkv_sched *sched;

    config.policies.preempt = &learning_preempt;
    config.policies.order = &learning_order;
    config.policies.admit = &learning_admit;
    set(&config, PKV_CHOICE_REQUEUE, "by_order");
    num_facts = num_picks = 0;
    sched = make_sched(&config);
    add(sched, 0, 16, 20, 0);
    add(sched, 1, 32, 1, 0);
    add(sched, 2, 20, 20, 0);
    ck_assert_uint_eq(seen_by_key.num_steps, 0);
    for (size_t t = 0; t < 27; t++) {
        ck_assert_uint_eq(num_facts, t);
        step(sched);
        ck_assert_uint_eq(num_facts, t + 1);
    }
    expect_facts(0, (struct pkv_step_facts){ 48, 48, 0, 2, 0, 1, false, PKV_MIX_ALL, 0, 0, 0, NULL, 0 });
    expect_facts(1, (struct pkv_step_facts){ 21, 20, 1, 1, 0, 0, false, PKV_MIX_ALL, 0, 0, 0, NULL, 0 });
    for (size_t t = 2; t < 14; t++)
        expect_facts(t, (struct pkv_step_facts){ 2, 0, 2, 0, 0, 0, false, PKV_MIX_ALL, 0, 0, 0, NULL, 0 });
    /* row 0 is left, with 14 tokens of 20 out before this one */
    expect_facts(14, (struct pkv_step_facts){ 1, 0, 1, 0, 1, 0, false, PKV_MIX_ALL, 1, 14, 20, NULL, 0 });
    expect_facts(19, (struct pkv_step_facts){ 1, 0, 1, 0, 0, 1, false, PKV_MIX_ALL, 0, 0, 0, NULL, 0 });
    expect_facts(20, (struct pkv_step_facts){ 33, 33, 0, 1, 0, 0, false, PKV_MIX_ALL, 0, 0, 0, NULL, 0 });
    expect_facts(26, (struct pkv_step_facts){ 1, 0, 1, 0, 0, 1, true, PKV_MIX_ALL, 0, 0, 0, NULL, 0 });
    ck_assert_uint_eq(num_picks, 1);
    ck_assert_uint_eq(seen_by_pick.num_steps, 14);      /* steps 0 .. 13 are over */
    ck_assert_uint_eq(seen_by_pick.num_finished, 1);
    ck_assert_uint_eq(seen_by_key.num_steps, 14);       /* where it waits again */
    ck_assert_uint_eq(seen_by_consider.num_steps, 20);
    ck_assert_uint_eq(seen_by_consider.num_finished, 2);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- keys that change ------------------------------------------------------------------------ */

static bool latest_first;

static int64_t turning_key(const void *state, const struct pkv_sched_view *view,
                           const struct pkv_request *r)
{
    (void)state;
    (void)view;
    return latest_first ? -(int64_t)r->row : (int64_t)r->row;
}

static struct pkv_order_ops turning_order = {
    .info = { .name = "turning" }, .needs_every_step = true, .key = turning_key };

/* 6 blocks, two run. Rows 0 and 1 hold 3 each for 40 tokens; in step 9 row 0 needs a fourth for its
 * 49th position, and row 1 is given up. Rows 2 and 3 have waited all the time. */
static struct pkv_sched *make_one_given_up(const char *requeue)
{
    struct pkv_sched_config config = base_config(6);
    struct pkv_sched *sched;

    config.policies.order = &turning_order;
    config.max_num_seqs = 2;
    set(&config, PKV_CHOICE_REQUEUE, requeue);
    latest_first = false;
    sched = make_sched(&config);
    for (uint64_t row = 0; row < 4; row++)
        add(sched, row, 40, 30, 0);
    for (int t = 0; t < 9; t++)
        step(sched);
    expect_waiting(sched, "2 3");
    ck_assert_uint_eq(step(sched)->num_preemptions, 1);
    ck_assert_uint_eq(pkv_sched_num_running(sched), 1);
    return sched;
}

/* The head needs more than the 2 blocks that are free, so nobody comes in. */
static void expect_order(struct pkv_sched *sched, bool turned, const char *rows)
{
    latest_first = turned;
    ck_assert_uint_eq(step(sched)->num_admissions, 0);
    expect_waiting(sched, rows);
}

START_TEST(keys_are_asked_anew_before_every_pass)
{
    struct pkv_sched *sched = make_one_given_up("by_order");

    expect_waiting(sched, "1 2 3");
    expect_order(sched, true, "3 2 1");
    expect_order(sched, false, "1 2 3");
    pkv_sched_destroy(sched);

    turning_order.needs_every_step = false;
    sched = make_one_given_up("by_order");
    expect_order(sched, true, "1 2 3");
    turning_order.needs_every_step = true;
    pkv_sched_destroy(sched);
}
END_TEST

/* 6 blocks. Row 0 holds three when rows 1 and 2 ask for four each: row 1 is refused and the queue shut.
 * Whoever would be first is named by the keys of the moment, and stays where it is. */
START_TEST(the_head_of_a_queue_that_is_shut)
{
    struct pkv_sched_config config = base_config(6);
    struct pkv_sched *sched;
    struct pkv_plan *plan;

    config.policies.order = &turning_order;
    set(&config, PKV_CHOICE_ON_BLOCKED, "latch");
    latest_first = false;
    sched = make_sched(&config);
    add(sched, 0, 40, 30, 0);
    step(sched);
    add(sched, 1, 60, 30, 0);
    add(sched, 2, 60, 30, 0);
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);
    for (uint64_t turned = 0; turned < 2; turned++) {
        latest_first = turned > 0;
        ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
        ck_assert_int_eq(plan->limit, PKV_LIMIT_LATCH);
        ck_assert_ptr_null(plan->head.request);
        ck_assert_int_eq(pkv_sched_find_head(sched, plan, NULL), 0);
        ck_assert_uint_eq(plan->head.request->row, turned ? 2 : 1);
        ck_assert_uint_eq(plan->head_need_blocks, turned ? 0 : 4);   /* nobody has asked for row 2 */
        ck_assert_uint_eq(plan->head_free_blocks, 3);
        ck_assert(plan->is_latched);
        ck_assert_uint_eq(plan->refused.request->row, 1);
        ck_assert_uint_eq(plan->number - plan->refused_number, 1 + turned);
        expect_waiting(sched, "1 2");
        pkv_sched_commit(sched, plan);
    }
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(a_place_at_the_tail_is_kept)
{
    struct pkv_sched *sched = make_one_given_up("tail");

    expect_waiting(sched, "2 3 1");
    expect_order(sched, true, "3 2 1");
    expect_order(sched, false, "2 3 1");
    add(sched, 4, 40, 30, 0);   /* a newcomer is not behind the tail */
    expect_order(sched, true, "4 3 2 1");
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(a_place_at_the_front_is_kept)
{
    struct pkv_sched *sched = make_one_given_up("front");

    expect_waiting(sched, "1 2 3");
    expect_order(sched, true, "1 3 2");
    expect_order(sched, false, "1 2 3");
    pkv_sched_destroy(sched);
}
END_TEST

/* --- what a policy sees ---------------------------------------------------------------------- */

static size_t seen_waiting[8], num_seen;

static enum pkv_admit_verdict note_waiting(const void *state, const struct pkv_sched_view *view,
                                           void *pass, const struct pkv_candidate *c,
                                           uint64_t *need_blocks)
{
    (void)state;
    (void)pass;
    (void)need_blocks;
    ck_assert_uint_lt(num_seen, 8);
    seen_waiting[num_seen++] = view->num_waiting;
    return c->need_blocks > view->num_free_blocks ? PKV_ADMIT_BLOCKS : PKV_ADMIT;
}

static const struct pkv_admit_ops noting_admit = { .info = { .name = "noting" },
                                                   .consider = note_waiting };

/* 10 blocks; row 0 holds 4, in step 1 one more. Row 1 needs 8 and is put aside, rows 2 and 3 pass
 * it. Row 1 waits all the same: 3, 3 and then 2 are seen to wait, in the next step row 1 alone. */
START_TEST(those_put_aside_are_seen_to_wait)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_sched *sched;

    config.policies.admit = &noting_admit;
    set(&config, PKV_CHOICE_ON_BLOCKED, "skip");
    sched = make_sched(&config);
    add(sched, 0, 64, 20, 0);
    step(sched);
    add(sched, 1, 128, 1, 0);
    add(sched, 2, 16, 9, 0);
    add(sched, 3, 16, 9, 0);
    num_seen = 0;
    ck_assert_uint_eq(step(sched)->num_admissions, 2);
    ck_assert_uint_eq(num_seen, 3);
    ck_assert_uint_eq(seen_waiting[0], 3);
    ck_assert_uint_eq(seen_waiting[1], 3);
    ck_assert_uint_eq(seen_waiting[2], 2);
    step(sched);
    ck_assert_uint_eq(num_seen, 4);
    ck_assert_uint_eq(seen_waiting[3], 1);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(a_parameter_is_written_as_people_write_it)
{
    static const struct { int64_t scale, value; const char *text; } rows[] = {
        {0, 12, "12"}, {1000, 700, "0.7"}, {1000, 1000, "1"}, {1000, 1250, "1.25"},
        {100, 14, "0.14"}, {1000, -5, "-0.005"}, {10, -25, "-2.5"}, {1000, 0, "0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pkv_policy_param param = {.name = "x", .scale = rows[i].scale};
        char text[32];
        pkv_policy_param_write(&param, rows[i].value, text, sizeof text);
        ck_assert_str_eq(text, rows[i].text);
    }
}
END_TEST

/* --- a mix that leaves out a half ------------------------------------------------------------ */

static struct pkv_mix mix_now;

static struct pkv_mix choose_mix(const void *state, const struct pkv_sched_view *view)
{
    (void)state;
    (void)view;
    return mix_now;
}

static const struct pkv_mix_ops test_mix = { .info = { .name = "test" }, .choose = choose_mix };

START_TEST(a_mix_may_leave_out_a_half)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_request *first, *second;
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    config.policies.mix = &test_mix;
    mix_now = (struct pkv_mix){ .first = PKV_MIX_RUNNING };
    sched = make_sched(&config);
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_EMPTY);
    first = add(sched, 0, 20, 9, 0);
    plan = step(sched);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_LATCH);
    ck_assert_int_eq(plan->limit, 6);
    ck_assert_uint_eq(plan->num_admissions, 0);
    ck_assert(plan->changed_nothing);
    mix_now.first = PKV_MIX_ALL;
    ck_assert_uint_eq(step(sched)->num_tokens, 20);
    second = add(sched, 1, 30, 9, 0);
    mix_now.first = PKV_MIX_RUNNING;
    plan = step(sched);   /* the first one goes on, the second waits although it fits */
    ck_assert_uint_eq(plan->num_tokens, 1);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_LATCH);
    ck_assert_int_eq(second->status, PKV_REQUEST_WAITING);
    mix_now = (struct pkv_mix){ .first = PKV_MIX_NEWCOMERS };
    plan = step(sched);   /* and the other way round */
    ck_assert_uint_eq(plan->num_tokens, 30);
    ck_assert_uint_eq(plan->num_admissions, 1);
    pkv_sched_refresh(sched);
    ck_assert_uint_eq(first->num_emitted, 2);
    ck_assert_uint_eq(second->num_emitted, 1);
    pkv_sched_destroy(sched);
}
END_TEST

/* The run ends and says who waits. */
START_TEST(a_mix_that_never_admits_is_stuck)
{
    static struct run run;

    begin_run(&run, 10);
    run.config.sched.policies.mix = &test_mix;
    mix_now = (struct pkv_mix){ .first = PKV_MIX_RUNNING };
    ask(&run, (struct asked){ .num_prompt = 20, .num_output = 5 });
    ask(&run, (struct asked){ .arrival_ns = 7 * MS, .num_prompt = 20, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_STUCK);
    ck_assert_uint_eq(run.num_steps, 2);   /* the first row reaches to the second arrival */
    ck_assert_int_eq(run.steps[0].dur_ns, 7 * MS);
    ck_assert_int_eq(run.steps[0].limit, 6);
    ck_assert_int_eq(run.steps[1].limit, 6);
    ck_assert_uint_eq(run.figures.unfinished, 2);
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "request 0"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy");
    TCase *tests = tcase_create("policy");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, state_learns_after_each_step_and_choices_see_it);
    tcase_add_test(tests, keys_are_asked_anew_before_every_pass);
    tcase_add_test(tests, the_head_of_a_queue_that_is_shut);
    tcase_add_test(tests, a_place_at_the_tail_is_kept);
    tcase_add_test(tests, a_place_at_the_front_is_kept);
    tcase_add_test(tests, those_put_aside_are_seen_to_wait);
    tcase_add_test(tests, a_parameter_is_written_as_people_write_it);
    tcase_add_test(tests, a_mix_may_leave_out_a_half);
    tcase_add_test(tests, a_mix_that_never_admits_is_stuck);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
