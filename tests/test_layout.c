/*
 * test_layout.c - a layout of runs: a request gets all its blocks at admission, in one piece.
 *
 * The layout is the test's own: first fit over a row of 10 blocks, no run, no answer.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "pool/pool_private.h"
#include "sched_fixture.h"

extern const struct pkv_evict_ops pkv_evict_lru;

struct row_of_blocks {
    uint32_t num;
    bool *is_held;   /* [num], owned */
};

static void destroy(void *state)
{
    struct row_of_blocks *row = state;

    pkv_free(row->is_held);
    pkv_free(row);
}

static void *create(uint32_t num_blocks, struct pkv_err *err)
{
    struct row_of_blocks *row = pkv_alloc(1, sizeof *row, err);

    if (row == NULL)
        return NULL;
    row->num = num_blocks;
    row->is_held = pkv_alloc(num_blocks, sizeof *row->is_held, err);
    if (row->is_held == NULL) {
        destroy(row);
        return NULL;
    }
    return row;
}

static uint32_t reserve_blocks(const void *state, uint32_t num_prompt_tokens,
                               uint32_t num_positions, uint32_t max_model_len, uint32_t block_size)
{
    (void)state;
    (void)num_prompt_tokens;
    (void)max_model_len;
    return (num_positions + block_size - 1) / block_size;
}

static unsigned num_takes;

static bool take(void *state, uint32_t num, pkv_block_id *out)
{
    struct row_of_blocks *row = state;
    uint32_t length = 0;

    num_takes++;
    for (uint32_t i = 0; i < row->num; i++) {
        length = row->is_held[i] ? 0 : length + 1;
        if (length < num)
            continue;
        for (uint32_t k = 0; k < num; k++) {
            out[k] = i + 1 - num + k;
            row->is_held[out[k]] = true;
        }
        return true;
    }
    return false;
}

static void give(void *state, const pkv_block_id *ids, uint32_t num)
{
    struct row_of_blocks *row = state;

    for (uint32_t i = 0; i < num; i++) {
        ck_assert(row->is_held[ids[i]]);
        row->is_held[ids[i]] = false;
    }
}

static uint32_t list_free(const void *state, pkv_block_id *out)
{
    const struct row_of_blocks *row = state;
    uint32_t num = 0;

    for (uint32_t i = 0; i < row->num; i++)
        if (!row->is_held[i])
            out[num++] = i;
    return num;
}

static const struct pkv_layout_ops runs = {
    .info = { .name = "runs" }, .create = create, .destroy = destroy,
    .reserve_blocks = reserve_blocks, .take = take, .give = give, .list_free = list_free };

/* --- the pool alone -------------------------------------------------------------------------- */

static struct pkv_pool *make_pool(void)
{
    const struct pkv_pool_config config = {
        .num_blocks = 10, .evict = &pkv_evict_lru, .layout = &runs };
    struct pkv_pool *pool = pkv_pool_create(&config, NULL);

    ck_assert_ptr_nonnull(pool);
    return pool;
}

static void expect_whole(const struct pkv_pool *pool)
{
    struct pkv_err err = { 0 };

    ck_assert_msg(pkv_pool_check(pool, &err) == 0, "%s", err.text);
}

/* 0 .. 2, 3 .. 5 and 6 .. 8 are held and the middle one goes: 4 are free, 3 of them in a row. */
START_TEST(free_but_scattered_is_short)
{
    struct pkv_pool *pool = make_pool();
    pkv_block_id a[3], b[3], c[3], d[4];

    ck_assert_int_eq(pkv_pool_take(pool, 3, a), PKV_ALLOC_OK);
    ck_assert_int_eq(pkv_pool_take(pool, 3, b), PKV_ALLOC_OK);
    ck_assert_int_eq(pkv_pool_take(pool, 3, c), PKV_ALLOC_OK);
    ck_assert_uint_eq(pkv_pool_unref(pool, b, 3, PKV_END_TAIL, NULL, b), 3);
    ck_assert_uint_eq(pkv_pool_num_free(pool), 4);
    ck_assert_int_eq(pkv_pool_take(pool, 4, d), PKV_ALLOC_SHORT);
    ck_assert_uint_eq(pkv_pool_num_free(pool), 4);
    ck_assert_uint_eq(pkv_pool_counts(pool).allocated, 9);
    expect_whole(pool);
    ck_assert_int_eq(pkv_pool_take(pool, 3, d), PKV_ALLOC_OK);
    ck_assert_uint_eq(d[0], 3);
    expect_whole(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(no_memory_leaves_nothing)
{
    const struct pkv_pool_config config = {
        .num_blocks = 10, .evict = &pkv_evict_lru, .layout = &runs };

    for (uint64_t n = 1; n <= 4; n++) {   /* pool, counts, the layout's two */
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

/* --- the scheduler --------------------------------------------------------------------------- */

static void expect_run(const struct pkv_request *r, pkv_block_id first, uint32_t num)
{
    ck_assert_uint_eq(r->seq.tables[0].num, num);
    for (uint32_t i = 0; i < num; i++)
        ck_assert_uint_eq(r->seq.tables[0].ids[i], first + i);
}

static void expect_refused(const struct pkv_plan *plan, struct pkv_request *r, uint32_t num_free)
{
    ck_assert_uint_eq(plan->num_admissions, 0);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_BLOCKS);
    ck_assert_ptr_eq(plan->head.request, r);
    ck_assert_uint_eq(plan->head_need_blocks, 4);
    ck_assert_uint_eq(plan->head_free_blocks, num_free);
    ck_assert_int_eq(r->status, PKV_REQUEST_WAITING);
    ck_assert_uint_eq(r->seq.tables[0].num, 0);
}

/* 10 blocks. Three of 3 blocks each; the middle one ends with step 0, the last one with step 2. The
 * fourth wants 4: one is free in step 0, in steps 1 and 2 four that do not lie together, in step 3
 * seven do. Each has its blocks to the end from the start and takes no more; 48, 48, 42 and 64
 * positions are theirs. */
START_TEST(in_one_piece_or_not_at_all)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_request *a, *b, *c, *d;
    const struct pkv_plan *plan;
    struct pkv_sched *sched;

    config.policies.layout = &runs;
    num_takes = 0;
    sched = make_sched(&config);
    a = add(sched, 0, 32, 17, 0);
    b = add(sched, 1, 48, 1, 0);
    c = add(sched, 2, 40, 3, 0);
    d = add(sched, 3, 60, 5, 0);
    ck_assert_int_eq(b->status, PKV_REQUEST_WAITING);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_admissions, 3);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_BLOCKS);
    ck_assert_uint_eq(plan->head_free_blocks, 1);
    expect_run(a, 0, 3);
    expect_run(c, 6, 3);
    expect_refused(step(sched), d, 4);
    expect_refused(step(sched), d, 4);
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    expect_run(d, 3, 4);
    for (int t = 4; t < 8; t++) {   /* a takes position 33 in step 1, d its 64th in step 7 */
        expect_run(a, 0, 3);
        expect_run(d, 3, 4);
        step(sched);
    }
    ck_assert_uint_eq(num_used(sched), 3);
    for (int t = 8; t < 17; t++)
        step(sched);
    ck_assert_uint_eq(pkv_sched_num_running(sched), 0);
    ck_assert_uint_eq(num_used(sched), 0);
    ck_assert_uint_eq(num_takes, 3 + 2 + 1);   /* two of them in vain */
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

/* Those behind a refused one may fit between: row 3 wants 3 blocks, which lie together. */
START_TEST(a_smaller_one_fits_where_a_larger_does_not)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_request *small, *large;
    struct pkv_sched *sched;

    config.policies.layout = &runs;
    set(&config, PKV_CHOICE_ON_BLOCKED, "skip");
    sched = make_sched(&config);
    add(sched, 0, 40, 9, 0);
    add(sched, 1, 48, 1, 0);
    add(sched, 2, 40, 9, 0);
    step(sched);
    large = add(sched, 3, 60, 5, 0);
    small = add(sched, 4, 40, 9, 0);
    ck_assert_uint_eq(step(sched)->num_admissions, 1);
    expect_run(small, 3, 3);
    ck_assert_int_eq(large->status, PKV_REQUEST_WAITING);
    expect_waiting(sched, "3");
    pkv_sched_destroy(sched);
}
END_TEST

/* An abort gives the whole run back. */
START_TEST(an_abort_gives_back_the_run)
{
    struct pkv_sched_config config = base_config(10);
    struct pkv_request *r;
    struct pkv_sched *sched;

    config.policies.layout = &runs;
    sched = make_sched(&config);
    r = add(sched, 0, 20, 100, 0);   /* 119 positions, 8 blocks, 2 of them begun */
    step(sched);
    expect_run(r, 0, 8);
    ck_assert_uint_eq(pkv_sched_abort(sched, r), 8);
    pkv_sched_forget(sched, r);
    ck_assert_uint_eq(num_used(sched), 0);
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout");
    TCase *tests = tcase_create("layout");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, free_but_scattered_is_short);
    tcase_add_test(tests, no_memory_leaves_nothing);
    tcase_add_test(tests, in_one_piece_or_not_at_all);
    tcase_add_test(tests, a_smaller_one_fits_where_a_larger_does_not);
    tcase_add_test(tests, an_abort_gives_back_the_run);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
