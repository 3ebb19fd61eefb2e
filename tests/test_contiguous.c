/*
 * test_contiguous.c - runs out of the buddy allocator, and what the contiguous layouts reserve.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "pool/pool_private.h"
#include "sched_fixture.h"

extern const struct pkv_evict_ops pkv_evict_lru;
extern const struct pkv_layout_ops pkv_layout_contiguous_max, pkv_layout_contiguous_pow2,
    pkv_layout_contiguous_exact;

/* --- runs ------------------------------------------------------------------------------------ */

static struct pkv_pool *make_pool(uint32_t num_blocks)
{
    const struct pkv_pool_config config = {
        .num_blocks = num_blocks, .evict = &pkv_evict_lru, .layout = &pkv_layout_contiguous_exact };
    struct pkv_pool *pool = pkv_pool_create(&config, NULL);

    ck_assert_ptr_nonnull(pool);
    return pool;
}

static void expect_whole(const struct pkv_pool *pool)
{
    struct pkv_err err = { 0 };

    ck_assert_msg(pkv_pool_check(pool, &err) == 0, "%s", err.text);
}

static void expect_taken(struct pkv_pool *pool, uint32_t num, pkv_block_id first)
{
    pkv_block_id ids[64];

    ck_assert_int_eq(pkv_pool_take(pool, num, ids), PKV_ALLOC_OK);
    for (uint32_t i = 0; i < num; i++)
        ck_assert_uint_eq(ids[i], first + i);
    expect_whole(pool);
}

static void expect_short(struct pkv_pool *pool, uint32_t num)
{
    pkv_block_id ids[64];
    uint32_t num_free = pkv_pool_num_free(pool);

    ck_assert_int_eq(pkv_pool_take(pool, num, ids), PKV_ALLOC_SHORT);
    ck_assert_uint_eq(pkv_pool_num_free(pool), num_free);
    expect_whole(pool);
}

/* The last one first, as a finished request gives them. */
static void give(struct pkv_pool *pool, pkv_block_id first, uint32_t num)
{
    for (uint32_t i = num; i-- > 0;) {
        pkv_block_id id = first + i;

        ck_assert_uint_eq(pkv_pool_unref(pool, &id, 1, PKV_END_TAIL, NULL, &id), 1);
    }
    expect_whole(pool);
}

/* 10 = 8 + 2: there is no run of 16 blocks nor a second one of 8. */
START_TEST(a_pool_is_covered_by_runs)
{
    struct pkv_pool *pool = make_pool(10);

    expect_short(pool, 9);
    expect_taken(pool, 2, 8);   /* the shortest that is long enough */
    expect_taken(pool, 8, 0);
    expect_short(pool, 1);
    give(pool, 0, 8);
    expect_taken(pool, 1, 0);
    expect_short(pool, 8);
    expect_taken(pool, 4, 4);
    expect_taken(pool, 2, 2);
    expect_taken(pool, 1, 1);
    expect_short(pool, 1);
    pkv_pool_destroy(pool);
}
END_TEST

/* Two neighbours join only if they are the halves of one run: 2..3 and 4..5 do not. */
START_TEST(buddies_join_again)
{
    struct pkv_pool *pool = make_pool(8);

    for (uint32_t first = 0; first < 8; first += 2)
        expect_taken(pool, 2, first);
    give(pool, 2, 2);
    give(pool, 4, 2);
    expect_short(pool, 4);
    give(pool, 0, 2);
    expect_taken(pool, 4, 0);
    give(pool, 6, 2);
    give(pool, 0, 4);
    expect_taken(pool, 8, 0);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(what_is_over_stays_free)
{
    struct pkv_pool *pool = make_pool(8);

    expect_taken(pool, 3, 0);
    expect_taken(pool, 1, 3);
    expect_taken(pool, 3, 4);
    ck_assert_uint_eq(pkv_pool_num_free(pool), 1);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(one_block_is_a_pool)
{
    struct pkv_pool *pool = make_pool(1);

    expect_short(pool, 2);
    expect_taken(pool, 1, 0);
    give(pool, 0, 1);
    expect_taken(pool, 1, 0);
    pkv_pool_destroy(pool);
}
END_TEST

/* --- against a search of everything ---------------------------------------------------------- */

#define MAX_MODEL 64

struct model {
    bool is_free[MAX_MODEL];   /* false beyond the pool */
};

static bool is_run(const struct model *m, uint32_t first, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        if (!m->is_free[first + i])
            return false;
    return true;
}

/* Free as a whole, and not a part of a longer one. */
static bool is_maximal(const struct model *m, uint32_t first, uint32_t length)
{
    uint32_t twice = first / (2 * length) * (2 * length);

    return is_run(m, first, length) && (2 * length > MAX_MODEL || !is_run(m, twice, 2 * length));
}

/* The first of the shortest maximal runs; MAX_MODEL = none. */
static uint32_t search(const struct model *m, uint32_t num)
{
    for (uint32_t length = 1; length <= MAX_MODEL; length *= 2)
        for (uint32_t first = 0; length >= num && first < MAX_MODEL; first += length)
            if (is_maximal(m, first, length))
                return first;
    return MAX_MODEL;
}

struct held { uint32_t first, num; };

static uint32_t drawn;
static uint32_t draw(uint32_t below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (drawn >> 8) % below;
}

static void take_or_give(struct pkv_pool *pool, struct model *m, struct held *held, uint32_t *num)
{
    uint32_t want = 1u << draw(5);
    uint32_t first = search(m, want);

    if (*num > 0 && draw(2) == 0) {
        struct held *gone = &held[draw(*num)];

        give(pool, gone->first, gone->num);
        for (uint32_t i = 0; i < gone->num; i++)
            m->is_free[gone->first + i] = true;
        *gone = held[--*num];
    } else if (first == MAX_MODEL) {
        expect_short(pool, want);
    } else {
        expect_taken(pool, want, first);
        for (uint32_t i = 0; i < want; i++)
            m->is_free[first + i] = false;
        held[(*num)++] = (struct held){ first, want };
    }
}

START_TEST(the_search_finds_the_same)
{
    for (uint32_t num_blocks = 1; num_blocks <= MAX_MODEL; num_blocks += 3) {
        struct pkv_pool *pool = make_pool(num_blocks);
        struct model model = { { false } };
        struct held held[MAX_MODEL];
        uint32_t num = 0;

        drawn = num_blocks;
        for (uint32_t i = 0; i < num_blocks; i++)
            model.is_free[i] = true;
        for (int i = 0; i < 300; i++)
            take_or_give(pool, &model, held, &num);
        pkv_pool_destroy(pool);
    }
}
END_TEST

START_TEST(no_memory_leaves_nothing)
{
    const struct pkv_pool_config config = {
        .num_blocks = 10, .evict = &pkv_evict_lru, .layout = &pkv_layout_contiguous_max };

    for (uint64_t n = 1; n <= 4; n++) {   /* pool, counts, the allocator's two */
        struct pkv_err err = { 0 };
        struct pkv_pool *pool;

        pkv_alloc_fail_at(n, 0);
        pool = pkv_pool_create(&config, &err);
        pkv_alloc_fail_at(0, 0);
        ck_assert_ptr_null(pool);
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
}
END_TEST

/* --- what is reserved ------------------------------------------------------------------------ */

static uint32_t reserve(const struct pkv_layout_ops *layout, uint32_t prompt, uint32_t output,
                        uint32_t max_model_len)
{
    return layout->reserve_blocks(NULL, prompt, prompt + output - 1, max_model_len, 16);
}

START_TEST(max_reserves_the_longest)
{
    const struct pkv_layout_ops *max = &pkv_layout_contiguous_max;

    ck_assert_uint_eq(reserve(max, 10, 5, 2048), 128);
    ck_assert_uint_eq(reserve(max, 10, 5, 2049), 256);   /* 129 blocks */
    ck_assert_uint_eq(reserve(max, 10, 5, 2000), 128);   /* 125 */
    ck_assert_uint_eq(max->reserve_blocks(NULL, 1, 1, UINT32_MAX, 1), UINT32_C(1) << 31);
}
END_TEST

/* 100 + 32 = 132 positions are 9 blocks, in a run of 16. */
START_TEST(pow2_reserves_a_guess_of_the_output)
{
    const struct pkv_layout_ops *pow2 = &pkv_layout_contiguous_pow2;

    ck_assert_uint_eq(reserve(pow2, 100, 20, 2048), 16);
    ck_assert_uint_eq(reserve(pow2, 96, 32, 2048), 8);   /* 128 */
    ck_assert_uint_eq(reserve(pow2, 96, 33, 2048), 16);  /* 160 */
    ck_assert_uint_eq(reserve(pow2, 15, 1, 2048), 1);
    ck_assert_uint_eq(reserve(pow2, 16, 1, 2048), 2);
    ck_assert_uint_eq(reserve(pow2, 1500, 520, UINT32_MAX), 256);   /* 2524 are 158 blocks */
    ck_assert_uint_eq(reserve(pow2, 1500, 520, 2048), 128);
}
END_TEST

START_TEST(exact_reserves_what_will_be_stored)
{
    const struct pkv_layout_ops *exact = &pkv_layout_contiguous_exact;

    ck_assert_uint_eq(reserve(exact, 100, 20, 2048), 8);    /* 119 */
    ck_assert_uint_eq(reserve(exact, 100, 29, 2048), 8);    /* 128 */
    ck_assert_uint_eq(reserve(exact, 100, 30, 2048), 16);
    ck_assert_uint_eq(reserve(exact, 16, 1, 2048), 1);
}
END_TEST

/* --- the scheduler --------------------------------------------------------------------------- */

static struct pkv_sched *make_orca(uint32_t num_blocks, const char *layout, uint32_t max_model_len)
{
    struct pkv_sched_config config = base_config(num_blocks);

    set(&config, PKV_CHOICE_LAYOUT, layout);
    set(&config, PKV_CHOICE_ADMIT, "reserve_max");
    config.max_model_len = max_model_len;
    return make_sched(&config);
}

static struct pkv_request *add_told(struct pkv_sched *sched, uint64_t row, uint32_t num_prompt,
                                    uint32_t num_output, uint32_t max_tokens, char *reason,
                                    size_t reason_size)
{
    const struct pkv_span own = { pkv_origin(PKV_ORIGIN_OWN, row), 0, num_prompt };
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = num_prompt, .num_output_tokens = num_output, .max_tokens = max_tokens,
        .content = { .prompt = &own, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *request = NULL;

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, reason, reason_size, NULL), 0);
    return request;
}

static uint32_t num_held(const struct pkv_request *r)
{
    return r->seq.tables[0].num;
}

/* 10 blocks. 119 positions take the run of 8, 29 the one of 2; the third finds none. The second ends
 * with step 9, and step 10 gives its run away. */
START_TEST(the_head_waits_for_a_run)
{
    struct pkv_sched *sched = make_orca(10, "contiguous_exact", 2048);
    struct pkv_request *a = add(sched, 0, 20, 100, 0), *c;
    const struct pkv_plan *plan;

    add(sched, 1, 20, 10, 0);
    c = add(sched, 2, 20, 2, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 2);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_BLOCKS);
    ck_assert_ptr_eq(plan->head.request, c);
    ck_assert_uint_eq(plan->head_need_blocks, 2);
    ck_assert_uint_eq(num_held(a), 8);
    ck_assert_uint_eq(pkv_sched_promised_positions(sched), 119 + 29);
    for (int t = 1; t < 10; t++)
        ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    ck_assert_uint_eq(c->seq.tables[0].ids[0], 8);
    ck_assert_uint_eq(pkv_sched_promised_positions(sched), 119 + 21);
    pkv_sched_destroy(sched);
}
END_TEST

/* Blocks 0 to 1 and 4 to 5 are free after step 0; the head wants 4 in one piece. */
START_TEST(scattered_runs_do_not_help)
{
    struct pkv_sched *sched = make_orca(8, "contiguous_exact", 0);
    struct pkv_request *large;

    for (uint64_t row = 0; row < 4; row++)
        add(sched, row, 20, row % 2 == 0 ? 1 : 10, 0);   /* 2 blocks each */
    step(sched);
    ck_assert_uint_eq(num_used(sched), 4);
    large = add(sched, 4, 60, 5, 0);
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);
    ck_assert_int_eq(large->status, PKV_REQUEST_WAITING);
    for (int t = 2; t < 10; t++)
        step(sched);
    ck_assert_uint_eq(num_used(sched), 0);
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    ck_assert_uint_eq(num_held(large), 4);
    pkv_sched_destroy(sched);
}
END_TEST

/* What it was told to expect has no say: the run is the reservation. */
START_TEST(max_tokens_reserves_nothing_beyond_the_run)
{
    struct pkv_sched *sched = make_orca(10, "contiguous_exact", 0);
    char reason[256] = "";

    add_told(sched, 0, 20, 100, 4000, reason, sizeof reason);
    add_told(sched, 1, 20, 10, 4000, reason, sizeof reason);
    ck_assert_uint_eq(step(sched)->num_admissions, 2);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(a_run_longer_than_the_pool_is_refused)
{
    struct pkv_sched *sched = make_orca(100, "contiguous_max", 2048);
    char reason[256] = "";
    struct pkv_request *r = add_told(sched, 0, 20, 10, 10, reason, sizeof reason);

    ck_assert_int_eq(r->status, PKV_REQUEST_REJECTED);
    ck_assert_str_eq(reason, "needs a run of 128 blocks, the pool has 100");
    pkv_sched_forget(sched, r);
    pkv_sched_destroy(sched);
}
END_TEST

/* One run of 8 of 12 blocks, held to the end whatever comes out. */
START_TEST(nobody_grows_and_nobody_is_preempted)
{
    struct pkv_sched *sched = make_orca(12, "contiguous_max", 128);
    struct pkv_request *a = add(sched, 0, 20, 100, 0);

    add(sched, 1, 20, 100, 0);
    for (int t = 0; t < 100; t++) {
        const struct pkv_plan *plan = step(sched);

        ck_assert_uint_eq(plan->num_preemptions, 0);
        ck_assert_int_eq(plan->limit, PKV_LIMIT_BLOCKS);
        if (t < 99)
            ck_assert_uint_eq(num_held(a), 8);
    }
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(a_prefix_cache_is_refused)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_err err = { 0 };

    set(&config, PKV_CHOICE_LAYOUT, "contiguous_pow2");
    config.prefix_cache = true;
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "contiguous_pow2"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("contiguous");
    TCase *tests = tcase_create("contiguous");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_pool_is_covered_by_runs);
    tcase_add_test(tests, buddies_join_again);
    tcase_add_test(tests, what_is_over_stays_free);
    tcase_add_test(tests, one_block_is_a_pool);
    tcase_add_test(tests, the_search_finds_the_same);
    tcase_add_test(tests, no_memory_leaves_nothing);
    tcase_add_test(tests, max_reserves_the_longest);
    tcase_add_test(tests, pow2_reserves_a_guess_of_the_output);
    tcase_add_test(tests, exact_reserves_what_will_be_stored);
    tcase_add_test(tests, the_head_waits_for_a_run);
    tcase_add_test(tests, scattered_runs_do_not_help);
    tcase_add_test(tests, max_tokens_reserves_nothing_beyond_the_run);
    tcase_add_test(tests, a_run_longer_than_the_pool_is_refused);
    tcase_add_test(tests, nobody_grows_and_nobody_is_preempted);
    tcase_add_test(tests, a_prefix_cache_is_refused);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
