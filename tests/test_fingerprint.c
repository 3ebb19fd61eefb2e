/*
 * test_fingerprint.c - which states are told apart when a livelock is looked for: those, and only
 * those, that may go on in different ways; and a run that a wrong answer would end too early.
 */
#include <stdlib.h>

#include <check.h>

#include "order_fixture.h"
#include "pagedkv/engine.h"

static uint64_t state_now(struct pkv_sched *sched)
{
    struct pkv_fingerprint state = { 0 };
    uint64_t number;

    ck_assert_int_eq(pkv_sched_fingerprint(sched, &state, NULL), 0);
    number = state.number;
    pkv_fingerprint_free(&state);
    return number;
}

/* --- counts of preemptions ------------------------------------------------------------------- */

/* Three wait, given up so often at first and so often when all else is the same again. */
static bool is_again(const char *preempt, const uint32_t before[3], const uint32_t now[3])
{
    struct pkv_sched_config config = base_config(4);
    struct pkv_fingerprint first = { 0 }, second = { 0 };
    struct pkv_request *requests[3];
    struct pkv_sched *sched;
    bool again;

    set(&config, PKV_CHOICE_PREEMPT, preempt);
    sched = make_sched(&config);
    for (uint64_t row = 0; row < 3; row++) {
        requests[row] = add(sched, row, 16, 9, 0);
        requests[row]->num_preemptions = before[row];
    }
    ck_assert_int_eq(pkv_sched_fingerprint(sched, &first, NULL), 0);
    for (uint64_t row = 0; row < 3; row++)
        requests[row]->num_preemptions = now[row];
    ck_assert_int_eq(pkv_sched_fingerprint(sched, &second, NULL), 0);
    again = pkv_fingerprint_is_again(&first, &second);
    pkv_fingerprint_free(&first);
    pkv_fingerprint_free(&second);
    pkv_sched_destroy(sched);
    return again;
}

#define COUNTS(...) ((const uint32_t[]){ __VA_ARGS__ })

/* Who is given up is who has the lowest count: all rise by the same, or the higher ones by more. */
START_TEST(counts_that_keep_their_distance_or_go_apart)
{
    const char *name = "least_preempted";

    ck_assert(is_again(name, COUNTS(0, 300, 305), COUNTS(0, 300, 305)));
    ck_assert(is_again(name, COUNTS(0, 300, 305), COUNTS(7, 307, 312)));
    ck_assert(is_again(name, COUNTS(2, 2, 0), COUNTS(3, 3, 0)));
    ck_assert(is_again(name, COUNTS(0, 300, 305), COUNTS(0, 400, 405)));
    ck_assert(is_again(name, COUNTS(0, 300, 305), COUNTS(0, 300, 306)));
    ck_assert(is_again(name, COUNTS(0, 1, 1), COUNTS(0, 2, 2)));
    ck_assert(is_again(name, COUNTS(0, 5, 9), COUNTS(4, 10, 14)));
}
END_TEST

/* However far one is ahead: when another comes up to it, or may have done so on the way, who is given
 * up will change, or may. */
START_TEST(counts_that_come_closer_or_cross)
{
    const char *name = "least_preempted";

    ck_assert(!is_again(name, COUNTS(0, 1000, 1000), COUNTS(1, 1000, 1000)));
    ck_assert(!is_again(name, COUNTS(0, 100000, 100000), COUNTS(2, 100001, 100001)));
    ck_assert(!is_again(name, COUNTS(0, 300, 305), COUNTS(0, 306, 305)));
    ck_assert(!is_again(name, COUNTS(0, 300, 306), COUNTS(0, 302, 307)));
    ck_assert(!is_again(name, COUNTS(0, 2, 2), COUNTS(0, 2, 3)));
    ck_assert(!is_again(name, COUNTS(0, 5, 9), COUNTS(5, 11, 15)));
    ck_assert(is_again("newest", COUNTS(0, 1000, 1000), COUNTS(1, 1000, 1000)));
}
END_TEST

/* Two prompts of 5 that can never be complete on 4 positions, and at step 2000 one that needs 3 of
 * them. Until then each of the two is given up once in five steps. From then on the third is given up
 * whenever it runs and somebody is, as it has the lowest count, and never gets to its third token. When
 * its count is up to theirs it is their turn: it ends, and the two go on for ever. */
static int give_three(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    static const uint32_t lengths[] = { 5, 5, 1 };
    static struct pkv_span span;
    uint64_t *row = ctx;

    (void)err;
    if (*row == 3)
        return 0;
    span = (struct pkv_span){ pkv_origin(PKV_ORIGIN_OWN, *row), 0, lengths[*row] };
    *out = (struct pkv_request_spec){
        .row = *row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .arrival_ns = *row == 2 ? 2000 * 1000 : 0,
        .num_prompt_tokens = span.count, .num_output_tokens = 3, .max_tokens = 3,
        .content = { .prompt = &span, .num_prompt_spans = 1 } };
    ++*row;
    return 1;
}

static struct pkv_engine_figures figures_of_three(bool every_step)
{
    uint64_t row = 0;
    struct pkv_engine_config config = {
        .sched = base_config(2), .source = { give_three, &row }, .stuck_steps = 1,
        .max_steps = 20000, .check = true, .every_step = every_step,
        .step_time = { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 1000 } };
    struct pkv_engine_figures figures;
    struct pkv_engine *engine;

    config.sched.groups[0].block_size = 2;
    config.sched.oversized = PKV_OVERSIZED_WAIT;
    config.sched.long_prefill_token_threshold = 1;
    set(&config.sched, PKV_CHOICE_ADMIT, "first_chunk");
    set(&config.sched, PKV_CHOICE_PREEMPT, "least_preempted");
    set(&config.sched, PKV_CHOICE_REQUEUE, "tail");
    engine = pkv_engine_create(&config, NULL);
    ck_assert_ptr_nonnull(engine);
    ck_assert_int_eq(pkv_engine_run(engine, NULL), 0);
    figures = *pkv_engine_figures(engine);
    pkv_engine_destroy(engine);
    return figures;
}

/* With every_step nothing is judged: the run goes on to the limit. */
START_TEST(one_that_comes_up_to_the_others_ends)
{
    struct pkv_engine_figures judged = figures_of_three(false), on = figures_of_three(true);

    ck_assert_int_eq(on.outcome, PKV_OUTCOME_MAX_STEPS);
    ck_assert_uint_eq(on.completed, 1);
    ck_assert_uint_eq(on.output_tokens, 3);
    ck_assert_int_eq(judged.outcome, PKV_OUTCOME_LIVELOCK);
    ck_assert_uint_eq(judged.completed, 1);
    ck_assert_uint_eq(judged.output_tokens, 3);
    ck_assert_uint_lt(judged.num_steps, 10000);
    ck_assert_uint_eq(judged.unfinished, 2);
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
    state = state_now(sched);
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

/* Looked at between two steps, after one of two that ran has been cancelled: two more wait for ever. */
START_TEST(a_state_tells_nothing_of_one_that_is_gone)
{
    struct pkv_sched_config config = one_at_a_time("vtc", 8, 4);
    struct pkv_request *running, *first;
    struct pkv_sched *sched;
    uint64_t state;

    config.max_num_seqs = 2;
    config.oversized = PKV_OVERSIZED_WAIT;
    sched = make_sched(&config);
    running = add_one(sched, (struct asked_for){ .row = 0, .num_own = 5, .num_output = 9,
                                                 .tenant = "t" });
    add_one(sched, (struct asked_for){ .row = 1, .num_own = 9, .num_output = 9, .tenant = "u" });
    step(sched);
    add_one(sched, (struct asked_for){ .row = 2, .num_own = 100, .num_output = 1, .tenant = "v" });
    add_one(sched, (struct asked_for){ .row = 3, .num_own = 100, .num_output = 1, .tenant = "v" });
    cancel(sched, running);
    state = state_now(sched);
    ck_assert_int_eq(pkv_sched_find_first(sched, &first, NULL), 0);   /* looks around, changes nothing */
    ck_assert_uint_eq(state_now(sched), state);
    pkv_sched_destroy(sched);
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

    tcase_add_test(tests, counts_that_keep_their_distance_or_go_apart);
    tcase_add_test(tests, counts_that_come_closer_or_cross);
    tcase_add_test(tests, one_that_comes_up_to_the_others_ends);
    tcase_add_test(tests, a_state_tells_the_gaps_that_decide);
    tcase_add_test(tests, a_state_tells_shares_of_the_live);
    tcase_add_test(tests, a_state_tells_shares_of_those_who_run);
    tcase_add_test(tests, a_state_tells_nothing_of_one_that_is_gone);
    tcase_add_test(tests, a_state_tells_to_what_others_are_lifted);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
