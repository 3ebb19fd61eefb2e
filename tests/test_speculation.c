/*
 * test_speculation.c - steps with drafts worked by hand: how far a request is computed, which blocks
 * that takes, what an accepted draft brings and what a rejected one leaves.
 *
 * Blocks of 4 tokens throughout, so that every step shows.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "pagedkv/policy.h"
#include "sched_fixture.h"

static struct pkv_sched_config spec_config(uint32_t num_blocks, enum pkv_speculation_method method,
                                           uint32_t num_drafts)
{
    struct pkv_sched_config config = base_config(num_blocks);

    config.groups[0].block_size = 4;
    config.lookahead_at_admission = true;
    config.speculation.method = method;
    config.speculation.num_tokens = num_drafts;
    config.speculation.acceptance_rate = 0;
    return config;
}

static void accept_by(struct pkv_sched_config *config, const uint32_t *accepted, uint32_t num)
{
    memcpy(config->speculation.accepted, accepted, num * sizeof *accepted);
    config->speculation.num_accepted = num;
}

/* What one step of a lone request comes to. */
struct seen { uint32_t num_tokens, num_drafts, held, stored, num_sampled, stored_after, keys; };

static void expect_step(struct pkv_sched *sched, struct seen want)
{
    struct pkv_cache *cache = pkv_sched_cache(sched);
    struct pkv_plan *plan;

    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    ck_assert_int_eq(pkv_plan_check(sched, plan, NULL), 0);
    expect_sched_sound(sched);
    ck_assert_uint_eq(plan->num_entries, 1);
    ck_assert_uint_eq(plan->entries[0].num_tokens, want.num_tokens);
    ck_assert_uint_eq(plan->entries[0].num_drafts, want.num_drafts);
    ck_assert_uint_eq(num_used(sched), want.held);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, want.stored);
    pkv_sched_commit(sched, plan);
    ck_assert_uint_eq(plan->entries[0].num_sampled, want.num_sampled);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, want.stored_after);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, want.keys);
    for (size_t i = 0; i < plan->num_finished; i++)
        pkv_sched_forget(sched, plan->finished[i]);
    expect_sched_sound(sched);
}

static const uint32_t two_none_three[] = { 2, 0, 3 };

/* P = 6, O = 9, three drafts, of which accepted[o mod 3] are right when o tokens are out:
 *   0  6 tokens; blocks for 6 + 3 = 9 positions: 3. One token out: o = 1.
 *   1  1 + 3 to position 10; blocks for 13: 4. None right: one token out, 3 positions given back.
 *   2  1 + 3 to position 11; blocks for 14: 4, the ones it kept. 3 right: 4 tokens out, o = 6.
 *   3  1 + 3 to position 15; blocks for 18: 5. 2 right: the last 3 tokens.
 * Full blocks of known tokens when planned: 6, 7, 8 and 12 tokens are 1, 1, 2 and 3 blocks; drafts,
 * right or not, gave none an identity. */
START_TEST(drafts_take_blocks_ahead_and_leave_them)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_DRAFT_MODEL, 3);
    struct pkv_sched *sched;

    accept_by(&config, two_none_three, 3);
    config.prefix_cache = true;
    sched = make_sched(&config);
    add(sched, 0, 6, 9, 0);
    expect_step(sched, (struct seen){ 6, 0, 3, 6, 1, 6, 1 });
    expect_step(sched, (struct seen){ 4, 3, 4, 10, 1, 7, 1 });
    expect_step(sched, (struct seen){ 4, 3, 4, 11, 4, 11, 2 });
    expect_step(sched, (struct seen){ 4, 3, 5, 15, 3, 0, 3 });
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* The same drafts looked up in the text: no position more than the step's own. */
START_TEST(ngram_takes_no_blocks_ahead)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_NGRAM, 3);
    struct pkv_sched *sched;

    accept_by(&config, two_none_three, 3);
    sched = make_sched(&config);
    add(sched, 0, 6, 9, 0);
    expect_step(sched, (struct seen){ 6, 0, 2, 6, 1, 6, 0 });
    expect_step(sched, (struct seen){ 4, 3, 3, 10, 1, 7, 0 });
    expect_step(sched, (struct seen){ 4, 3, 3, 11, 4, 11, 0 });
    expect_step(sched, (struct seen){ 4, 3, 4, 15, 3, 0, 0 });
    pkv_sched_destroy(sched);
}
END_TEST

/* Under publish: computed a block has its identity as soon as it is full of tokens that are known:
 * after the steps 6, 7, 11 and 14 of them are computed. */
START_TEST(accepted_drafts_are_published_when_computed)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_NGRAM, 3);
    struct pkv_sched *sched;

    accept_by(&config, two_none_three, 3);
    config.prefix_cache = true;
    set(&config, PKV_CHOICE_PUBLISH, "computed");
    sched = make_sched(&config);
    add(sched, 0, 6, 9, 0);
    expect_step(sched, (struct seen){ 6, 0, 2, 6, 1, 6, 1 });
    expect_step(sched, (struct seen){ 4, 3, 3, 10, 1, 7, 1 });
    expect_step(sched, (struct seen){ 4, 3, 3, 11, 4, 11, 2 });
    expect_step(sched, (struct seen){ 4, 3, 4, 15, 3, 0, 3 });
    pkv_sched_destroy(sched);
}
END_TEST

/* With O = 7 one token is missing before step 3: of the three that are right one comes out. */
START_TEST(tokens_beyond_the_end_are_dropped)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_DRAFT_MODEL, 3);
    struct pkv_sched *sched;
    const struct pkv_plan *plan = NULL;

    accept_by(&config, two_none_three, 3);
    sched = make_sched(&config);
    add(sched, 0, 6, 7, 0);
    for (int i = 0; i < 4; i++)
        plan = step(sched);
    ck_assert(plan->entries[0].finished);
    ck_assert_uint_eq(plan->entries[0].num_accepted, 2);
    ck_assert_uint_eq(plan->entries[0].num_sampled, 1);
    ck_assert_uint_eq(pkv_sched_num_running(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* All drafts right, at most 12 tokens: 6, 7, 11 known. Then a draft would be the 12th position, which
 * is never stored: 1 token, and blocks for min(11 + 3, 12) positions. */
START_TEST(no_draft_goes_beyond_max_model_len)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_DRAFT_MODEL, 3);
    struct pkv_sched *sched;

    config.speculation.acceptance_rate = 1;
    config.max_model_len = 12;
    sched = make_sched(&config);
    add(sched, 0, 6, 6, 0);
    expect_step(sched, (struct seen){ 6, 0, 3, 6, 1, 6, 0 });
    expect_step(sched, (struct seen){ 4, 3, 3, 10, 4, 10, 0 });
    expect_step(sched, (struct seen){ 1, 0, 3, 11, 1, 0, 0 });
    ck_assert_uint_eq(pkv_sched_num_running(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* A budget of 6 leaves 2 of the 4 tokens to the second request: one draft. */
START_TEST(the_budget_cuts_drafts)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_DRAFT_MODEL, 3);
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    config.max_num_batched_tokens = 6;
    sched = make_sched(&config);
    add(sched, 0, 3, 20, 0);
    add(sched, 1, 3, 20, 0);
    step(sched);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_entries, 2);
    ck_assert_uint_eq(plan->entries[0].num_tokens, 4);
    ck_assert_uint_eq(plan->entries[0].num_drafts, 3);
    ck_assert_uint_eq(plan->entries[1].num_tokens, 2);
    ck_assert_uint_eq(plan->entries[1].num_drafts, 1);
    ck_assert_uint_eq(plan->num_decodes, 2);   /* drafts are no prefill */
    ck_assert_uint_eq(plan->num_prefill_tokens, 0);
    ck_assert_uint_eq(plan->num_drafts, 4);
    ck_assert_uint_eq(plan->num_context_tokens, 7 + 5);
    pkv_sched_destroy(sched);
}
END_TEST

/* The second is given up with its drafts proposed; back again it has none, and computes its 5 + 1
 * known tokens in one piece. Blocks: 5 + 3 = 8 positions take 2 each; then 5 + 1 + 3 + 3 = 12 take a
 * third, and there are 4. */
START_TEST(a_victim_loses_its_drafts)
{
    struct pkv_sched_config config = spec_config(5, PKV_SPECULATION_DRAFT_MODEL, 3);
    struct pkv_sched *sched;
    struct pkv_request *second;
    const struct pkv_plan *plan;

    config.oversized = PKV_OVERSIZED_WAIT;
    sched = make_sched(&config);
    add(sched, 0, 5, 2, 0);
    second = add(sched, 1, 5, 9, 0);
    step(sched);
    ck_assert_uint_eq(num_used(sched), 4);
    ck_assert_uint_eq(second->num_drafts, 3);
    plan = step(sched);   /* the first takes the last block, says its second token and ends */
    ck_assert_uint_eq(plan->num_preemptions, 1);
    ck_assert_uint_eq(second->num_drafts, 0);
    ck_assert_int_eq(second->status, PKV_REQUEST_PREEMPTED);
    plan = step(sched);
    ck_assert_uint_eq(plan->entries[0].num_tokens, 6);
    ck_assert_uint_eq(plan->entries[0].num_drafts, 0);
    ck_assert_uint_eq(plan->entries[0].num_recomputed, 5);
    pkv_sched_destroy(sched);
}
END_TEST

/* The rejected positions are computed again by the next step; that is no recomputing. */
START_TEST(rejected_positions_are_not_recomputed)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_DRAFT_MODEL, 3);
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *r = add(sched, 0, 6, 9, 0);

    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(step(sched)->num_recomputed_tokens, 0);
    ck_assert_uint_eq(r->num_recomputed_tokens, 0);
    ck_assert_uint_eq(r->seq.num_computed_tokens, 9);
    ck_assert_uint_eq(r->num_highest_tokens, 9);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- admission ------------------------------------------------------------------------------- */

/* 8 tokens are 2 blocks, 8 + 3 are 3, and 2 are free. */
START_TEST(admission_asks_for_the_lookahead_by_the_switch)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct pkv_sched_config config = spec_config(2, PKV_SPECULATION_DRAFT_MODEL, 3);
        struct pkv_sched *sched;
        const struct pkv_plan *plan;

        config.oversized = PKV_OVERSIZED_WAIT;
        config.lookahead_at_admission = ahead;
        sched = make_sched(&config);
        add(sched, 0, 8, 1, 0);
        plan = step(sched);
        ck_assert_uint_eq(plan->num_admissions, (uint64_t)!ahead);
        ck_assert_uint_eq(plan->limit, ahead ? PKV_LIMIT_BLOCKS : PKV_LIMIT_NOTHING);
        ck_assert_uint_eq(plan->head_need_blocks, ahead ? 3 : 0);
        pkv_sched_destroy(sched);
    }
}
END_TEST

/* The most that P = 6, O = 9 may ask for: 14 positions at its end, 3 of them guessed anew and as many
 * ahead make 20, 5 blocks; looked up in the text 17, 5 as well; without drafts 4. Of O = 1 only the
 * prompt and the positions ahead: 9, 3 blocks. */
START_TEST(what_can_never_fit_counts_drafts_and_lookahead)
{
    static const struct { enum pkv_speculation_method method; uint32_t num_output, want; } cases[] = {
        { PKV_SPECULATION_DRAFT_MODEL, 9, 5 }, { PKV_SPECULATION_NGRAM, 9, 5 },
        { PKV_SPECULATION_NONE, 9, 4 }, { PKV_SPECULATION_DRAFT_MODEL, 1, 3 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pkv_sched_config config = spec_config(cases[i].want, cases[i].method, 3);
        struct pkv_sched *sched = make_sched(&config);

        ck_assert_int_eq(add(sched, 0, 6, cases[i].num_output, 0)->status, PKV_REQUEST_WAITING);
        pkv_sched_destroy(sched);
        config.num_blocks--;
        sched = make_sched(&config);
        struct pkv_request *r = add(sched, 0, 6, cases[i].num_output, 0);
        ck_assert_int_eq(r->status, PKV_REQUEST_REJECTED);
        ck_assert_uint_eq(pkv_sched_peak_blocks(sched, r), cases[i].want);
        pkv_sched_forget(sched, r);
        pkv_sched_destroy(sched);
    }
}
END_TEST

/* One of many that begin with the same text. */
static struct pkv_request *add_twin(struct pkv_sched *sched, uint64_t row, uint32_t num_prompt,
                                    uint32_t num_output)
{
    const struct pkv_span text = { pkv_origin(PKV_ORIGIN_NAME, 7), 0, num_prompt };
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = num_prompt, .num_output_tokens = num_output, .max_tokens = num_output,
        .content = { .prompt = &text, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *request = NULL;
    char reason[64];

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, reason, sizeof reason, NULL), 0);
    return request;
}

/* After 17 tokens of a text 4 blocks are known: a twin hits 16 tokens, under EAGLE 12; of 5 tokens it
 * would hit one block, which is the last one. */
START_TEST(eagle_computes_the_last_block_of_a_hit_anew)
{
    static const struct { enum pkv_speculation_method method; uint32_t of_17, of_5; } cases[] = {
        { PKV_SPECULATION_DRAFT_MODEL, 16, 4 }, { PKV_SPECULATION_EAGLE, 12, 0 },
    };

    for (size_t i = 0; i < 2; i++) {
        struct pkv_sched_config config = spec_config(20, cases[i].method, 2);
        struct pkv_sched *sched;

        config.prefix_cache = true;
        sched = make_sched(&config);
        add_twin(sched, 0, 17, 1);
        step(sched);
        add_twin(sched, 1, 17, 1);
        ck_assert_uint_eq(step(sched)->admissions[0].num_hit_tokens, cases[i].of_17);
        add_twin(sched, 2, 5, 1);
        ck_assert_uint_eq(step(sched)->admissions[0].num_hit_tokens, cases[i].of_5);
        pkv_sched_destroy(sched);
    }
}
END_TEST

/* 5 blocks, prompts in chunks of 4. The first computes 16 tokens of a text in 4 steps; its twin of 20
 * tokens needs 5 blocks and is refused each time, with what its look-up found remembered: at first one
 * block, which is the last one and does not count. In the fifth step all are free, 4 blocks of the
 * text are found, and 3 of them count. */
START_TEST(a_remembered_look_up_sees_what_eagle_drops)
{
    struct pkv_sched_config config = spec_config(5, PKV_SPECULATION_EAGLE, 1);
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    config.prefix_cache = true;
    config.long_prefill_token_threshold = 4;
    config.lookahead_at_admission = false;
    config.oversized = PKV_OVERSIZED_WAIT;
    sched = make_sched(&config);
    add_twin(sched, 0, 16, 1);
    add_twin(sched, 1, 20, 1);
    for (int i = 0; i < 4; i++) {
        plan = step(sched);
        ck_assert_uint_eq(plan->num_admissions, (uint64_t)(i == 0));
        ck_assert_uint_eq(plan->entries[0].ref.request->row, 0);
    }
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 1);
    ck_assert_uint_eq(plan->admissions[0].num_hit_tokens, 12);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- padding --------------------------------------------------------------------------------- */

/* Three drafts. 17 tokens of a text have been computed, so a twin has one token left. It comes to
 * `num_beside` tokens of another prompt, which decodes, or is cut into chunks of the budget. */
static const struct pkv_plan *come_beside(struct pkv_sched **out, uint32_t budget, uint32_t num_beside,
                                          int steps_before, bool lookahead)
{
    struct pkv_sched_config config = spec_config(40, PKV_SPECULATION_DRAFT_MODEL, 3);

    config.prefix_cache = true;
    config.max_num_batched_tokens = budget;
    config.lookahead_at_admission = lookahead;
    *out = make_sched(&config);
    add_twin(*out, 0, 17, 1);
    while (pkv_sched_num_running(*out) + pkv_sched_num_waiting(*out) > 0)
        step(*out);
    if (num_beside > 0)
        add(*out, 1, num_beside, 20, 0);
    for (int i = 0; i < steps_before; i++)
        step(*out);
    add_twin(*out, 2, 17, 4);
    return step(*out);
}

static void expect_newcomer(const struct pkv_plan *plan, uint32_t num_tokens, uint32_t num_drafts)
{
    const struct pkv_plan_entry *last = &plan->entries[plan->num_entries - 1];

    ck_assert_uint_gt(plan->num_admissions, 0);
    ck_assert_uint_eq(plan->admissions[plan->num_admissions - 1].num_hit_tokens, 16);
    ck_assert_uint_eq(last->num_tokens, num_tokens);
    ck_assert_uint_eq(last->num_drafts, num_drafts);
    ck_assert_uint_eq(last->num_sampled, 1);
}

START_TEST(a_newcomer_of_one_token_is_padded_beside_decodes)
{
    struct pkv_sched *sched;

    /* 4 beside, of a budget of 8: 4 are left. Blocks for 16 + 4 + 3 = 23 positions: 6. */
    const struct pkv_plan *plan = come_beside(&sched, 8, 5, 1, true);
    expect_newcomer(plan, 4, 3);
    ck_assert_uint_eq(pkv_seq_num_blocks(&plan->admissions[0].ref.request->seq), 6);
    pkv_sched_destroy(sched);
    /* 3 are left: 4 do not fit, and 1 is not given. */
    plan = come_beside(&sched, 7, 5, 1, true);
    ck_assert_uint_eq(plan->num_admissions, 0);
    ck_assert_uint_eq(plan->limit, PKV_LIMIT_BUDGET);
    pkv_sched_destroy(sched);
    /* the older engine does not pad */
    plan = come_beside(&sched, 7, 5, 1, false);
    expect_newcomer(plan, 1, 0);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(nobody_is_padded_beside_a_prefill_or_alone)
{
    struct pkv_sched *sched;

    /* 17 = 8 + 8 + 1: the last chunk is scheduled by the walk over the running, and is none past
     * its prefill, though it has a single token. */
    const struct pkv_plan *plan = come_beside(&sched, 8, 17, 2, true);
    ck_assert_uint_eq(plan->entries[0].num_tokens, 1);
    expect_newcomer(plan, 1, 0);
    pkv_sched_destroy(sched);
    /* nobody else */
    plan = come_beside(&sched, 8, 0, 0, true);
    expect_newcomer(plan, 1, 0);
    pkv_sched_destroy(sched);
    /* beside one that was admitted in the same step */
    plan = come_beside(&sched, 8, 5, 0, true);
    expect_newcomer(plan, 1, 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- luck ------------------------------------------------------------------------------------ */

/* Steps with drafts, and drafts that were right, of row 0 until it has said 2,000 tokens. */
static void count_luck(double rate, uint32_t num_beside, uint64_t seed, uint32_t *steps, uint32_t *right)
{
    struct pkv_sched_config config = spec_config(2000, PKV_SPECULATION_NGRAM, 1);
    struct pkv_sched *sched;
    bool finished = false;

    config.speculation.acceptance_rate = rate;
    config.max_num_batched_tokens = 9;
    config.seed = seed;
    sched = make_sched(&config);
    add(sched, 0, 6, 2000, 0);
    for (uint32_t i = 0; i < num_beside; i++)
        add(sched, 1 + i, 40, 100, 0);
    *steps = *right = 0;
    while (!finished) {
        const struct pkv_plan *plan = step(sched);

        finished = plan->entries[0].finished;
        *steps += plan->entries[0].num_drafts > 0;
        *right += plan->entries[0].num_accepted;
    }
    pkv_sched_destroy(sched);
}

START_TEST(luck_has_its_rate_and_belongs_to_the_request)
{
    uint32_t steps, right, others_steps, others_right;

    /* One token of the prompt's step; then 1,999 of one a step, or of two. */
    count_luck(0, 0, 1, &steps, &right);
    ck_assert_uint_eq(steps, 1999);
    ck_assert_uint_eq(right, 0);
    count_luck(1, 0, 1, &steps, &right);
    ck_assert_uint_eq(steps, 1000);
    ck_assert_uint_eq(right, 1000);
    /* 0.7 of about 1,176 drafts; four standard deviations are 0.053. */
    count_luck(0.7, 0, 1, &steps, &right);
    ck_assert_double_eq_tol((double)right / steps, 0.7, 0.053);
    count_luck(0.7, 3, 1, &others_steps, &others_right);
    ck_assert_uint_eq(others_steps, steps);
    ck_assert_uint_eq(others_right, right);
    count_luck(0.7, 0, 2, &others_steps, &others_right);
    ck_assert_uint_ne(others_right, right);
}
END_TEST

static void expect_refused(const struct pkv_sched_config *config, const char *text)
{
    struct pkv_err err = { 0 };

    ck_assert_ptr_null(pkv_sched_create(config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_msg(strstr(err.text, text) != NULL, "'%s' does not say '%s'", err.text, text);
}

START_TEST(impossible_configurations_are_refused)
{
    struct pkv_sched_config config = spec_config(20, PKV_SPECULATION_EAGLE, 0);

    expect_refused(&config, "1 to 64 drafts, not 0");
    config.speculation.num_tokens = 65;
    expect_refused(&config, "1 to 64 drafts, not 65");
    config.speculation.num_tokens = 3;
    config.speculation.acceptance_rate = 1.5;
    expect_refused(&config, "an acceptance rate is 0 to 1");
    config.speculation.acceptance_rate = 0.5;
    config.async_scheduling = true;
    expect_refused(&config, "do not go together");
    config.async_scheduling = false;
    set(&config, PKV_CHOICE_LAYOUT, "contiguous_exact");
    expect_refused(&config, "gives a request all its blocks at once");
    config.speculation.method = PKV_SPECULATION_NONE;
    config.async_scheduling = true;
    expect_refused(&config, "gives a request all its blocks at once");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("speculation");
    TCase *tests = tcase_create("speculation");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, drafts_take_blocks_ahead_and_leave_them);
    tcase_add_test(tests, ngram_takes_no_blocks_ahead);
    tcase_add_test(tests, accepted_drafts_are_published_when_computed);
    tcase_add_test(tests, tokens_beyond_the_end_are_dropped);
    tcase_add_test(tests, no_draft_goes_beyond_max_model_len);
    tcase_add_test(tests, the_budget_cuts_drafts);
    tcase_add_test(tests, a_victim_loses_its_drafts);
    tcase_add_test(tests, rejected_positions_are_not_recomputed);
    tcase_add_test(tests, admission_asks_for_the_lookahead_by_the_switch);
    tcase_add_test(tests, what_can_never_fit_counts_drafts_and_lookahead);
    tcase_add_test(tests, eagle_computes_the_last_block_of_a_hit_anew);
    tcase_add_test(tests, a_remembered_look_up_sees_what_eagle_drops);
    tcase_add_test(tests, a_newcomer_of_one_token_is_padded_beside_decodes);
    tcase_add_test(tests, nobody_is_padded_beside_a_prefill_or_alone);
    tcase_add_test(tests, luck_has_its_rate_and_belongs_to_the_request);
    tcase_add_test(tests, impossible_configurations_are_refused);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
