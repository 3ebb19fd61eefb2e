/*
 * test_choices.c - the policies that are one rule each: whom they look at first, whom they give up,
 * whom they let in. Requests are made by hand where the rule looks at numbers only.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "engine_fixture.h"
#include "policy/peak.h"
#include "sched_fixture.h"

/* --- whom to give up ------------------------------------------------------------------------- */

static struct pkv_request made[4];
static struct pkv_request *running[4];

static void make(size_t i, uint32_t num_prompt, uint32_t num_emitted, uint32_t num_computed,
                 uint32_t num_blocks, uint32_t max_tokens, uint32_t num_preemptions)
{
    made[i] = (struct pkv_request){ .row = i, .num_emitted = num_emitted, .max_tokens = max_tokens,
                                    .num_preemptions = num_preemptions };
    made[i].seq.num_prompt_tokens = num_prompt;
    made[i].seq.num_computed_tokens = num_computed;
    made[i].seq.tables[0].num = num_blocks;
}

/* order: rows in the order of running, "0123"; returns the row picked, or -1 */
static int pick(const char *name, const char *order, uint64_t seed)
{
    const struct pkv_preempt_ops *ops =
        (const struct pkv_preempt_ops *)pkv_policy_find(PKV_CHOICE_PREEMPT, name);
    struct pkv_sched_view view = { .running = running, .num_running = strlen(order), .seed = seed };
    size_t i;

    ck_assert_ptr_nonnull(ops);
    for (i = 0; i < view.num_running; i++)
        running[i] = &made[order[i] - '0'];
    i = ops->pick(NULL, &view, running[0]);
    ck_assert(i == SIZE_MAX || i < view.num_running);
    return i == SIZE_MAX ? -1 : (int)running[i]->row;
}

/* Two share the extreme of each number, so the order of running decides between them. */
START_TEST(victims_by_one_number)
{
    static const struct { const char *name; int as_made, turned; } wanted[] = {
        { "newest", 3, 0 },
        { "oldest", 0, 3 },
        { "least_lost", 2, 3 },          /* 69 computed: 2 and 3, the earlier */
        { "most_blocks", 2, 1 },         /* 19 blocks: 1 and 2, the later */
        { "largest_remaining", 2, 0 },   /* 30 to come: 0 and 2, the later */
        { "least_preempted", 2, 1 },     /* never yet: 1 and 2, the later */
        { "fewest_outputs", 1, 1 },      /* 10 generated: 0 and 1, the longer prompt */
        { "never", -1, -1 },
    };

    make(0, 100, 10, 109, 7, 40, 1);
    make(1, 500, 10, 300, 19, 12, 0);
    make(2, 20, 50, 69, 19, 80, 0);
    make(3, 30, 60, 69, 6, 60, 2);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        ck_assert_int_eq(pick(wanted[i].name, "0123", 0), wanted[i].as_made);
        ck_assert_int_eq(pick(wanted[i].name, "3210", 0), wanted[i].turned);
    }
}
END_TEST

/* SGLang's retraction, (output, input): A (10, 100), B (10, 500), C (50, 20): B goes, then A; C stays.
 * Two with the same numbers: the later one. */
START_TEST(fewest_outputs_as_sglang_retracts)
{
    make(0, 100, 10, 109, 7, 40, 0);
    make(1, 500, 10, 509, 32, 40, 0);
    make(2, 20, 50, 69, 5, 80, 0);
    ck_assert_int_eq(pick("fewest_outputs", "012", 0), 1);
    ck_assert_int_eq(pick("fewest_outputs", "02", 0), 0);
    make(3, 500, 10, 509, 32, 40, 0);
    ck_assert_int_eq(pick("fewest_outputs", "0123", 0), 3);
    ck_assert_int_eq(pick("fewest_outputs", "3210", 0), 1);
}
END_TEST

/* Whoever has outlived its max_tokens has less than nothing to come. */
START_TEST(remaining_may_be_negative)
{
    make(0, 10, 9, 18, 2, 5, 0);    /* -4 */
    make(1, 10, 7, 16, 1, 5, 0);    /* -2 */
    make(2, 10, 8, 17, 2, 5, 0);    /* -3 */
    ck_assert_int_eq(pick("largest_remaining", "012", 0), 1);
}
END_TEST

/* Of 3,000 seeds each of three is given up by a third of them: 1,000 give or take 100, which is
 * nearly four times the standard deviation of 26. The order of running does not matter. A token more
 * is another draw: the victim changes in two thirds of the cases. */
START_TEST(random_victims_are_fair)
{
    int counts[3] = { 0, 0, 0 }, changed = 0;

    for (uint64_t seed = 0; seed < 3000; seed++) {
        int row;

        for (size_t i = 0; i < 3; i++)
            make(i, 10, 5, 14, 1, 9, 0);
        row = pick("random", "012", seed);
        ck_assert_int_eq(pick("random", "210", seed), row);
        counts[row]++;
        for (size_t i = 0; i < 3; i++)
            make(i, 10, 6, 15, 1, 9, 0);
        changed += pick("random", "012", seed) != row;
    }
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_le(abs(counts[i] - 1000), 100);
    ck_assert_int_le(abs(changed - 2000), 100);
}
END_TEST

/* --- fit: what would really come free -------------------------------------------------------- */

static void add_sharing(struct pkv_sched *sched, uint64_t row, uint32_t num_shared, uint32_t num_own)
{
    struct pkv_span spans[2] = { { pkv_origin(PKV_ORIGIN_NAME, 1), 0, num_shared },
                                 { pkv_origin(PKV_ORIGIN_OWN, row), 0, num_own } };
    size_t skip = num_shared > 0 ? 0 : 1;
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = num_shared + num_own, .num_output_tokens = 9, .max_tokens = 9,
        .content = { .prompt = spans + skip, .num_prompt_spans = 2 - skip,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *request = NULL;

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, NULL, 0, NULL), 0);
}

/* Rows 0 and 1 share 3 blocks of 16 and have one of their own each; row 2 has 2, row 3 has 5. */
static struct pkv_sched *make_four(void)
{
    struct pkv_sched_config config = base_config(20);
    struct pkv_sched *sched;

    config.prefix_cache = true;
    sched = make_sched(&config);
    add_sharing(sched, 0, 48, 16);
    add_sharing(sched, 1, 48, 16);
    add_sharing(sched, 2, 0, 32);
    add_sharing(sched, 3, 0, 80);
    step(sched);
    ck_assert_uint_eq(num_used(sched), 3 + 1 + 1 + 2 + 5);
    return sched;
}

static uint64_t pick_fit(struct pkv_sched *sched, const char *rows, uint32_t num_short)
{
    const struct pkv_preempt_ops *fit =
        (const struct pkv_preempt_ops *)pkv_policy_find(PKV_CHOICE_PREEMPT, "fit");
    struct pkv_sched_view view = { .cache = pkv_sched_cache(sched), .running = running,
                                   .num_running = strlen(rows), .num_short_blocks = num_short };

    pkv_sched_refresh(sched);
    for (size_t i = 0; i < view.num_running; i++)
        running[i] = pkv_sched_running(sched, (size_t)(rows[i] - '0'));
    return running[fit->pick(NULL, &view, running[0])]->row;
}

/* The first of the rows grows. Computed are 64, 64, 32 and 80 tokens. */
START_TEST(fit_takes_the_cheapest_that_covers)
{
    struct pkv_sched *sched = make_four();

    ck_assert_uint_eq(pick_fit(sched, "0123", 1), 2);
    ck_assert_uint_eq(pick_fit(sched, "0123", 2), 2);
    ck_assert_uint_eq(pick_fit(sched, "013", 1), 1);    /* its own block alone will do */
    ck_assert_uint_eq(pick_fit(sched, "013", 2), 3);    /* the three shared ones would not come free */
    ck_assert_uint_eq(pick_fit(sched, "0123", 5), 3);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(fit_without_anybody_who_covers)
{
    struct pkv_sched *sched = make_four();

    ck_assert_uint_eq(pick_fit(sched, "0123", 6), 3);   /* frees most */
    ck_assert_uint_eq(pick_fit(sched, "012", 3), 2);
    ck_assert_uint_eq(pick_fit(sched, "01", 2), 1);
    ck_assert_uint_eq(pick_fit(sched, "31", 9), 1);     /* not the grower, who holds more */
    ck_assert_uint_eq(pick_fit(sched, "0", 1), 0);      /* nobody else is there */
    pkv_sched_destroy(sched);
}
END_TEST

/* The shortage is what the scheduler counts: 10 blocks, rows of 32, 48 and 80 tokens hold 2, 3 and 5.
 * Each needs one more in step 1. Row 0 lacks one: of the others row 1 is the cheapest that covers,
 * so it goes, and its three blocks are enough for row 2 as well. */
START_TEST(fit_in_a_step)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    set(&config, PKV_CHOICE_PREEMPT, "fit");
    sched = make_sched(&config);
    add(sched, 0, 32, 9, 0);
    add(sched, 1, 48, 9, 0);
    add(sched, 2, 80, 9, 0);
    step(sched);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_preemptions, 1);
    ck_assert_uint_eq(pkv_request_get(plan->preemptions[0].ref)->row, 1);
    ck_assert_uint_eq(plan->preemptions[0].freed_blocks, 3);
    ck_assert_uint_eq(plan->preemptions[0].lost_tokens, 48);
    ck_assert_uint_eq(plan->num_tokens, 2);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- runs that cannot go on ------------------------------------------------------------------ */

static struct run run;

/* 4 blocks, two of 16 + 40: both hold 2 with 32 positions after step 16 and want a third in step 17.
 * Nobody is given up, nobody can go on. */
START_TEST(never_ends_stuck_and_says_so)
{
    begin_run(&run, 4);
    set(&run.config.sched, PKV_CHOICE_PREEMPT, "never");
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 40 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 40 });
    expect_outcome(&run, PKV_OUTCOME_STUCK);
    ck_assert_uint_eq(run.figures.preemptions, 0);
    ck_assert_uint_eq(run.figures.output_tokens, 2 * 17);
    ck_assert_uint_eq(run.num_steps, 18);
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "nobody is given up (preempt: never), and each of "
                                 "the 2 requests that run lacks a block to go on: of 4 blocks 0 are free"));
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "request 1 (2)"));
    ck_assert(run.figures.is_deadlock);
}
END_TEST

/* 5 blocks, 16 + 20 and 16 + 40. In step 17 the first takes the fifth block and the second waits for
 * one, until the first has ended in step 19; it ends three steps late, in step 42. */
START_TEST(never_waits_for_a_block)
{
    begin_run(&run, 5);
    set(&run.config.sched, PKV_CHOICE_PREEMPT, "never");
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 20 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 40 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.preemptions, 0);
    ck_assert_uint_eq(run.num_steps, 43);
    ck_assert_int_eq(run.steps[16].sched_tokens, 2);
    ck_assert_int_eq(run.steps[17].sched_tokens, 1);
    ck_assert_int_eq(run.steps[19].finished, 1);
    ck_assert_int_eq(run.steps[20].max_gap_ns, 4 * MS);
    ck_assert_int_eq(run.steps[21].max_gap_ns, MS);
}
END_TEST

/* The other way round the first wants a fourth block in step 33, and both wait for ever. */
START_TEST(never_lets_two_wait_for_each_other)
{
    begin_run(&run, 5);
    set(&run.config.sched, PKV_CHOICE_PREEMPT, "never");
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 40 });
    ask(&run, (struct asked){ .num_prompt = 16, .num_output = 20 });
    expect_outcome(&run, PKV_OUTCOME_STUCK);
    ck_assert_uint_eq(run.figures.output_tokens, 33 + 17);
    ck_assert_uint_eq(run.num_steps, 34);
}
END_TEST

/* 10 blocks, two prompts of 9, one block of each a step. Blocks held by (0, 1) after a step; <- is a
 * victim:
 *    4 (5, 5)   5 (<-, 5)   6 (1, 6)   7 (2, 7)   8 (3, <-)   9 (4, 1)   10 (5, 2)   11 (6, 3)
 *   12 (<-, 4) 13 (1, 5)   14 (2, 6)  15 (3, 7)  16 (3, <-)  17 (4, 1)  and so on as from 9.
 * Somebody is always running, and no prompt is ever complete. The state of step 12 is there again in
 * step 20. */
START_TEST(two_that_give_each_other_up_for_ever)
{
    const struct told_event *events[MOST_TOLD];

    begin_run(&run, 10);
    set(&run.config.sched, PKV_CHOICE_PREEMPT, "oldest");
    set(&run.config.sched, PKV_CHOICE_ADMIT, "first_chunk");
    run.config.sched.long_prefill_token_threshold = 16;
    run.config.max_steps = 200;
    ask(&run, (struct asked){ .num_prompt = 144, .num_output = 5 });
    ask(&run, (struct asked){ .num_prompt = 144, .num_output = 5 });
    expect_outcome(&run, PKV_OUTCOME_LIVELOCK);
    ck_assert_uint_eq(run.figures.num_steps, 21);
    ck_assert_uint_eq(run.figures.output_tokens, 0);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_PREEMPT, 0, events), 3);
    ck_assert_uint_eq(events[0]->step, 5);
    ck_assert_uint_eq(events[1]->step, 12);
    ck_assert_uint_eq(events[2]->step, 20);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_PREEMPT, 1, events), 2);
    ck_assert_uint_eq(events[0]->step, 8);
    ck_assert_uint_eq(events[1]->step, 16);
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis, "2 requests give one another up for ever"));
    ck_assert_ptr_nonnull(strstr(run.figures.diagnosis,
                                 "request 0 has lost 96 computed tokens for request 1 again"));
}
END_TEST

static size_t num_given;

/* 100 tokens and 200; neither can ever end on 4 blocks. */
static int give_two(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    static struct pkv_span span;

    (void)ctx;
    (void)err;
    if (num_given == 2)
        return 0;
    span = (struct pkv_span){ pkv_origin(PKV_ORIGIN_OWN, num_given), 0, num_given ? 200 : 100 };
    *out = (struct pkv_request_spec){
        .row = num_given++, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = span.count, .num_output_tokens = 5, .max_tokens = 5,
        .content = { .prompt = &span, .num_prompt_spans = 1 } };
    return 1;
}

/* The first begins by 48 tokens and gives itself up in every second step, the other never comes in:
 * the first gets ever further ahead in preemptions, and nothing else changes. */
START_TEST(one_that_gets_ever_further_ahead)
{
    struct pkv_engine_config config = {
        .sched = base_config(4), .source = { give_two, NULL }, .stuck_steps = 1,
        .max_steps = 10000, .check = true,
        .step_time = { .law = PKV_STEP_TIME_FIXED, .fixed_ns = MS } };
    struct pkv_engine *engine;

    set(&config.sched, PKV_CHOICE_PREEMPT, "least_preempted");
    set(&config.sched, PKV_CHOICE_ADMIT, "future_peak");
    config.sched.oversized = PKV_OVERSIZED_WAIT;
    config.sched.long_prefill_token_threshold = 48;
    num_given = 0;
    engine = pkv_engine_create(&config, NULL);
    ck_assert_ptr_nonnull(engine);
    ck_assert_int_eq(pkv_engine_run(engine, NULL), 0);
    ck_assert_int_eq(pkv_engine_figures(engine)->outcome, PKV_OUTCOME_LIVELOCK);
    ck_assert_uint_eq(pkv_engine_figures(engine)->preemptions,
                      pkv_engine_figures(engine)->num_steps / 2);
    pkv_engine_destroy(engine);
}
END_TEST

/* --- whom to look at first ------------------------------------------------------------------- */

static void expect_order(const char *name, uint64_t seed, const char *rows)
{
    struct pkv_sched_config config = base_config(100);
    struct pkv_sched *sched;

    set(&config, PKV_CHOICE_ORDER, name);
    config.seed = seed;
    sched = make_sched(&config);
    add(sched, 0, 10, 9, 0);
    add(sched, 1, 50, 3, 0);
    add(sched, 2, 5, 9, 0);
    add(sched, 3, 60, 4, 0);
    expect_waiting(sched, rows);
    pkv_sched_destroy(sched);
}

/* (prompt, max_tokens): (10, 9), (50, 3), (5, 9), (60, 4); together 19, 53, 14, 64. */
START_TEST(orders_by_length)
{
    expect_order("sjf", 0, "1 3 0 2");
    expect_order("sjf_true", 0, "1 3 0 2");
    expect_order("lof", 0, "0 2 3 1");
    expect_order("ljf", 0, "3 1 0 2");
}
END_TEST

static int64_t key_of(const char *name, const struct pkv_request *r, uint64_t seed)
{
    const struct pkv_order_ops *ops =
        (const struct pkv_order_ops *)pkv_policy_find(PKV_CHOICE_ORDER, name);
    const struct pkv_sched_view view = { .seed = seed };

    ck_assert_ptr_nonnull(ops);
    ck_assert(!ops->by_arrival);
    return ops->key(NULL, &view, r);
}

START_TEST(the_truth_and_what_is_told)
{
    struct pkv_request r = { .max_tokens = 7, .num_output_tokens = 3 };

    ck_assert_int_eq(key_of("sjf", &r, 0), 7);
    ck_assert_int_eq(key_of("sjf_true", &r, 0), 3);
    ck_assert_int_eq(key_of("lof", &r, 0), -7);
    r.max_tokens = UINT32_MAX;
    r.seq.num_prompt_tokens = UINT32_MAX;
    ck_assert_int_eq(key_of("ljf", &r, 0), -2 * (int64_t)UINT32_MAX);
}
END_TEST

/* No deadline is behind every deadline, and before the tail of the queue. */
START_TEST(deadlines)
{
    struct pkv_request soon = { .deadline_ns = 5 * MS }, late = { .deadline_ns = INT64_MAX },
                       none = { .deadline_ns = PKV_NO_TIME }, past = { .deadline_ns = -MS };

    ck_assert_int_eq(key_of("edf", &soon, 0), 5 * MS);
    ck_assert_int_eq(key_of("edf", &past, 0), -MS);
    ck_assert_int_eq(key_of("edf", &none, 0), INT64_MAX - 1);
    ck_assert_int_eq(key_of("edf", &late, 0), INT64_MAX - 1);
}
END_TEST

/* Of 3,000 seeds each of three is first in a third, give or take 100 as above. */
START_TEST(random_order_is_fair)
{
    int counts[3] = { 0, 0, 0 };

    for (uint64_t seed = 0; seed < 3000; seed++) {
        int64_t keys[3];

        for (uint64_t row = 0; row < 3; row++) {
            struct pkv_request r = { .row = row };

            keys[row] = key_of("random", &r, seed);
            ck_assert_int_ge(keys[row], 0);
            ck_assert_int_lt(keys[row], INT64_MAX);
            ck_assert_int_eq(key_of("random", &r, seed), keys[row]);
        }
        counts[keys[0] < keys[1] && keys[0] < keys[2] ? 0 : keys[1] < keys[2] ? 1 : 2]++;
    }
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_le(abs(counts[i] - 1000), 100);
}
END_TEST

/* --- how full it will get -------------------------------------------------------------------- */

/* (3000, 2000), (1100, 900), (2500, 100): 2000 + 3000 = 5,000; 900 * 2 + 4100 = 5,900;
 * 100 * 3 + 6600 = 6,900, while the sum of the maxima is 9,600. In blocks of 16 at the third end:
 * 3100, 1200 and 2600 positions are 194 + 75 + 163 = 432. */
START_TEST(the_published_peak)
{
    const struct peak_item items[] = { { 3000, 2000 }, { 1100, 900 }, { 2500, 100 } };
    struct peak_item sorted[3] = { items[2], items[0], items[1] };

    ck_assert_uint_eq(peak_positions(items, 1, NULL), 5000);
    ck_assert_uint_eq(peak_positions(items, 2, NULL), 5900);
    ck_assert_uint_eq(peak_positions(items, 3, NULL), 6900);
    ck_assert_uint_eq(peak_blocks(items, 3, NULL, 1), 6900);
    ck_assert_uint_eq(peak_blocks(items, 3, NULL, 16), 432);
    peak_sort(sorted, 3);
    ck_assert_int_eq(memcmp(sorted, items, sizeof items), 0);
    for (size_t i = 0; i < 3; i++) {   /* each as the one that comes last */
        struct peak_item rest[3];
        size_t num = 0;

        for (size_t j = 0; j < 3; j++)
            if (j != i)
                rest[num++] = items[j];
        ck_assert_uint_eq(peak_positions(rest, 2, &items[i]), 6900);
        ck_assert_uint_eq(peak_blocks(rest, 2, &items[i], 16), 432);
        peak_insert(rest, 2, items[i]);
        ck_assert_int_eq(memcmp(rest, items, sizeof items), 0);
    }
    ck_assert_uint_eq(peak_positions(NULL, 0, NULL), 0);
    ck_assert_uint_eq(peak_blocks(NULL, 0, NULL, 16), 0);
}
END_TEST

/* (31, 10) and four of (1, 1): 41 positions at the first one's end, 5 + 35 = 40 at the others'. In
 * blocks of 16 it is the other way round: 3, and 2 + 4 = 6. */
START_TEST(the_peak_in_blocks_is_at_another_end)
{
    const struct peak_item items[] = { { 31, 10 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };

    ck_assert_uint_eq(peak_positions(items, 5, NULL), 41);
    ck_assert_uint_eq(peak_blocks(items, 5, NULL, 16), 6);
    ck_assert_uint_eq(peak_blocks(items, 4, &items[4], 16), 6);
}
END_TEST

/* Requests of (30, 20), (11, 9), (25, 5) on blocks of one token: 50; 9 * 2 + 41 = 59;
 * 5 * 3 + 66 = 81. returns how many of them come in in the first step */
static size_t num_admitted(struct pkv_sched **out, const char *admit, uint32_t num_blocks)
{
    struct pkv_sched_config config = base_config(num_blocks);

    config.groups[0].block_size = 1;
    set(&config, PKV_CHOICE_ADMIT, admit);
    *out = make_sched(&config);
    add(*out, 0, 30, 20, 0);
    add(*out, 1, 11, 9, 0);
    add(*out, 2, 25, 5, 0);
    return step(*out)->num_admissions;
}

/* The peak must stay below the pool. */
START_TEST(future_peak_is_strict)
{
    struct pkv_sched *sched;

    ck_assert_uint_eq(num_admitted(&sched, "future_peak", 82), 3);
    pkv_sched_destroy(sched);
    ck_assert_uint_eq(num_admitted(&sched, "future_peak", 81), 2);
    ck_assert_uint_eq(step(sched)->head_need_blocks, 5 * 3 + 31 + 12 + 25);
    pkv_sched_destroy(sched);
    ck_assert_uint_eq(num_admitted(&sched, "future_peak", 60), 2);
    pkv_sched_destroy(sched);
    ck_assert_uint_eq(num_admitted(&sched, "future_peak", 59), 1);
    pkv_sched_destroy(sched);
    ck_assert_uint_eq(num_admitted(&sched, "future_peak", 49), 1);   /* alone it just fits */
    pkv_sched_destroy(sched);
}
END_TEST

/* A last token is never stored, so three blocks fewer do; and then the pool is filled to the last
 * block and nobody is given up. */
START_TEST(mc_sf_fills_the_pool)
{
    struct pkv_sched *sched;
    uint32_t most = 0;

    ck_assert_uint_eq(num_admitted(&sched, "mc_sf", 77), 2);
    pkv_sched_destroy(sched);
    ck_assert_uint_eq(num_admitted(&sched, "mc_sf", 57), 2);
    pkv_sched_destroy(sched);
    ck_assert_uint_eq(num_admitted(&sched, "mc_sf", 56), 1);
    pkv_sched_destroy(sched);
    ck_assert_uint_eq(num_admitted(&sched, "mc_sf", 78), 3);
    for (int t = 1; t < 20; t++) {
        struct pkv_plan *plan;

        ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
        most = num_used(sched) > most ? num_used(sched) : most;
        ck_assert_uint_eq(plan->num_preemptions, 0);
        pkv_sched_commit(sched, plan);
        for (size_t i = 0; i < plan->num_finished; i++)
            pkv_sched_forget(sched, plan->finished[i]);
    }
    ck_assert_uint_eq(most, 78);
    ck_assert_uint_eq(pkv_sched_num_running(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choices");
    TCase *tests = tcase_create("choices");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, victims_by_one_number);
    tcase_add_test(tests, fewest_outputs_as_sglang_retracts);
    tcase_add_test(tests, remaining_may_be_negative);
    tcase_add_test(tests, random_victims_are_fair);
    tcase_add_test(tests, fit_takes_the_cheapest_that_covers);
    tcase_add_test(tests, fit_without_anybody_who_covers);
    tcase_add_test(tests, fit_in_a_step);
    tcase_add_test(tests, never_ends_stuck_and_says_so);
    tcase_add_test(tests, never_waits_for_a_block);
    tcase_add_test(tests, never_lets_two_wait_for_each_other);
    tcase_add_test(tests, two_that_give_each_other_up_for_ever);
    tcase_add_test(tests, one_that_gets_ever_further_ahead);
    tcase_add_test(tests, orders_by_length);
    tcase_add_test(tests, the_truth_and_what_is_told);
    tcase_add_test(tests, deadlines);
    tcase_add_test(tests, random_order_is_fair);
    tcase_add_test(tests, the_published_peak);
    tcase_add_test(tests, the_peak_in_blocks_is_at_another_end);
    tcase_add_test(tests, future_peak_is_strict);
    tcase_add_test(tests, mc_sf_fills_the_pool);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
