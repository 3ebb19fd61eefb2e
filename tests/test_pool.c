/*
 * test_pool.c - the pool: order of the free queue, all or nothing, and its invariants broken by
 * hand.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "pagedkv/policy.h"
#include "pagedkv/pool.h"
#include "pool/pool_private.h"

extern const struct pkv_evict_ops pkv_evict_lru;

static struct pkv_pool *make_pool(uint32_t num_blocks)
{
    const struct pkv_pool_config config = {
        .num_blocks = num_blocks, .evict = &pkv_evict_lru, .layout = &pkv_layout_paged };
    struct pkv_err err = { 0 };
    struct pkv_pool *pool = pkv_pool_create(&config, &err);

    ck_assert_msg(pool != NULL, "%s", err.text);
    return pool;
}

static void take(struct pkv_pool *pool, uint32_t num, pkv_block_id *out)
{
    ck_assert_int_eq(pkv_pool_take(pool, num, out), PKV_ALLOC_OK);
}

/* True when its last holder left. */
static bool give(struct pkv_pool *pool, pkv_block_id id, enum pkv_pool_end end)
{
    pkv_block_id freed;
    uint32_t num = pkv_pool_unref(pool, &id, 1, end, NULL, &freed);

    ck_assert(num == 0 || freed == id);
    return num == 1;
}

static void expect_free(const struct pkv_pool *pool, const pkv_block_id *want, uint32_t num)
{
    pkv_block_id got[16] = { 0 };

    ck_assert_uint_eq(pkv_pool_num_free(pool), num);
    ck_assert_uint_eq(pkv_pool_list_free(pool, got), num);
    for (uint32_t i = 0; i < num; i++)
        ck_assert_uint_eq(got[i], want[i]);
}

/* The invariant that the audit names, "P2" for "P2: 3 blocks ..." */
static void expect_broken(const struct pkv_pool *pool, const char *id)
{
    struct pkv_err err = { 0 };

    ck_assert_int_eq(pkv_pool_check(pool, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_AUDIT);
    ck_assert_msg(strncmp(err.text, id, strlen(id)) == 0 && err.text[strlen(id)] == ':',
                  "expected %s, got '%s'", id, err.text);
}

static void expect_sound(const struct pkv_pool *pool)
{
    struct pkv_err err = { 0 };

    ck_assert_msg(pkv_pool_check(pool, &err) == 0, "%s", err.text);
}

START_TEST(first_taken_in_order_of_ids)
{
    struct pkv_pool *pool = make_pool(4);
    pkv_block_id ids[4];

    take(pool, 3, ids);
    ck_assert_uint_eq(ids[0], 0);
    ck_assert_uint_eq(ids[1], 1);
    ck_assert_uint_eq(ids[2], 2);
    expect_free(pool, (const pkv_block_id[]){ 3 }, 1);
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(freed_blocks_join_at_either_end)
{
    struct pkv_pool *pool = make_pool(5);
    pkv_block_id ids[5];

    take(pool, 4, ids);
    ck_assert(give(pool, 1, PKV_END_TAIL));
    ck_assert(give(pool, 2, PKV_END_HEAD));
    ck_assert(give(pool, 0, PKV_END_HEAD));
    expect_free(pool, (const pkv_block_id[]){ 0, 2, 4, 1 }, 4);
    take(pool, 2, ids);
    ck_assert_uint_eq(ids[0], 0);
    ck_assert_uint_eq(ids[1], 2);
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

/* Those given back together join one after the other, so the last of them ends up outermost. Block
 * 1 has another holder and is left out. */
START_TEST(given_back_together_they_join_in_turn)
{
    struct pkv_pool *pool = make_pool(5);
    pkv_block_id ids[5], freed[3];

    take(pool, 4, ids);
    pkv_pool_ref(pool, 1);
    ck_assert_uint_eq(pkv_pool_unref(pool, (const pkv_block_id[]){ 2, 1, 0 }, 3, PKV_END_HEAD,
                                     NULL, freed), 2);
    ck_assert_uint_eq(freed[0], 2);
    ck_assert_uint_eq(freed[1], 0);
    expect_free(pool, (const pkv_block_id[]){ 0, 2, 4 }, 3);
    ck_assert_uint_eq(pkv_pool_unref(pool, (const pkv_block_id[]){ 3, 1 }, 2, PKV_END_TAIL, NULL,
                                     freed), 2);
    expect_free(pool, (const pkv_block_id[]){ 0, 2, 4, 3, 1 }, 5);
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(a_hit_leaves_the_middle)
{
    struct pkv_pool *pool = make_pool(4);
    struct pkv_pool_counts counts;

    ck_assert(pkv_pool_ref(pool, 2));      /* it was free */
    expect_free(pool, (const pkv_block_id[]){ 0, 1, 3 }, 3);
    ck_assert(!pkv_pool_ref(pool, 2));     /* a second holder */
    ck_assert_uint_eq(pkv_pool_ref_cnt(pool, 2), 2);
    ck_assert(!give(pool, 2, PKV_END_TAIL));
    ck_assert(give(pool, 2, PKV_END_TAIL));
    expect_free(pool, (const pkv_block_id[]){ 0, 1, 3, 2 }, 4);
    counts = pkv_pool_counts(pool);
    ck_assert_uint_eq(counts.allocated, 0);
    ck_assert_uint_eq(counts.revived, 1);
    ck_assert_uint_eq(counts.released, 1);
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(too_many_takes_none)
{
    struct pkv_pool *pool = make_pool(3);
    pkv_block_id ids[4] = { 77, 77, 77, 77 };

    take(pool, 1, ids);
    ck_assert_int_eq(pkv_pool_take(pool, 3, ids), PKV_ALLOC_SHORT);
    expect_free(pool, (const pkv_block_id[]){ 1, 2 }, 2);
    ck_assert_uint_eq(pkv_pool_counts(pool).allocated, 1);
    ck_assert_uint_eq(ids[1], 77);
    ck_assert_int_eq(pkv_pool_take(pool, 0, ids), PKV_ALLOC_OK);
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(sizes_out_of_range_are_input_errors)
{
    static const uint32_t sizes[] = { 0, UINT32_C(0x80000000), UINT32_MAX };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct pkv_pool_config config = {
            .num_blocks = sizes[i], .evict = &pkv_evict_lru, .layout = &pkv_layout_paged };
        struct pkv_err err = { 0 };

        ck_assert_ptr_null(pkv_pool_create(&config, &err));
        ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    }
}
END_TEST

START_TEST(no_memory_leaves_nothing)
{
    const struct pkv_pool_config config = {
        .num_blocks = 8, .evict = &pkv_evict_lru, .layout = &pkv_layout_paged };
    struct pkv_pool *pool = NULL;
    uint64_t n = 0;

    while (pool == NULL) {
        struct pkv_err err = { 0 };

        ck_assert_uint_lt(++n, 50);
        pkv_alloc_fail_at(n, 0);
        pool = pkv_pool_create(&config, &err);
        pkv_alloc_fail_at(0, 0);
        if (pool == NULL)
            ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
    ck_assert_uint_gt(n, 1);   /* at least one run did fail */
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(p1_held_block_in_the_queue)
{
    struct pkv_pool *pool = make_pool(3);

    pool->ref_cnts[1] = 2;
    expect_broken(pool, "P1");
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(p1_block_nowhere)
{
    struct pkv_pool *pool = make_pool(3);
    pkv_block_id id;

    take(pool, 1, &id);
    pool->ref_cnts[id] = 0;
    expect_broken(pool, "P1");
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(p2_wrong_count)
{
    struct pkv_pool *pool = make_pool(3);

    pool->num_free = 2;
    expect_broken(pool, "P2");
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(p3_wrong_sums)
{
    struct pkv_pool *pool = make_pool(3);

    pool->counts.released = 1;
    expect_broken(pool, "P3");
    pool->counts.revived = 1;
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(p4_wrong_holds)
{
    struct pkv_pool *pool = make_pool(3);

    pool->num_holds = 1;
    expect_broken(pool, "P4");
    pool->num_holds = 0;
    expect_sound(pool);
    pkv_pool_destroy(pool);
}
END_TEST

START_TEST(giving_back_what_nobody_holds_aborts)
{
    struct pkv_pool *pool = make_pool(3);

    give(pool, 1, PKV_END_TAIL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tests = tcase_create("pool");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, first_taken_in_order_of_ids);
    tcase_add_test(tests, freed_blocks_join_at_either_end);
    tcase_add_test(tests, given_back_together_they_join_in_turn);
    tcase_add_test(tests, a_hit_leaves_the_middle);
    tcase_add_test(tests, too_many_takes_none);
    tcase_add_test(tests, sizes_out_of_range_are_input_errors);
    tcase_add_test(tests, no_memory_leaves_nothing);
    tcase_add_test(tests, p1_held_block_in_the_queue);
    tcase_add_test(tests, p1_block_nowhere);
    tcase_add_test(tests, p2_wrong_count);
    tcase_add_test(tests, p3_wrong_sums);
    tcase_add_test(tests, p4_wrong_holds);
    tcase_add_test_raise_signal(tests, giving_back_what_nobody_holds_aborts, SIGABRT);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
