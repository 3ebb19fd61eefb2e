/*
 * test_sizes.c - sizes at their ends: what a cache and a scheduler refuse, and what the prefix
 * index takes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "cache/cache_private.h"
#include "cache_fixture.h"
#include "sched_fixture.h"

/* --- the prefix index ------------------------------------------------------------------------ */

/* At least two buckets a block, and a power of two: 2^20 blocks are the last that 2^21 do for. */
START_TEST(the_index_has_two_buckets_a_block)
{
    static const struct { uint32_t num_blocks, num_buckets; } sizes[] = {
        { 1, 8 }, { 4, 8 }, { 5, 16 }, { UINT32_C(1) << 20, UINT32_C(1) << 21 },
        { (UINT32_C(1) << 20) + 1, UINT32_C(1) << 22 } };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct prefix_index index = { 0 };

        ck_assert_int_eq(prefix_index_init(&index, sizes[i].num_blocks, NULL), 0);
        ck_assert_uint_eq(index.mask, sizes[i].num_buckets - 1);
        ck_assert_uint_eq(prefix_index_find(&index, UINT64_MAX), PKV_BLOCK_NULL);
        prefix_index_finish(&index);
    }
}
END_TEST

/* The largest pool's index is 2^31 - 1 records and 2^32 buckets. No machine of this test has them
 * to spare, so they are refused; that it comes to the refusal is the point. */
START_TEST(the_largest_index_is_asked_for)
{
    struct prefix_index index = { 0 };
    struct pkv_err err = { 0 };

    pkv_alloc_fail_at(1, 1);
    ck_assert_int_eq(prefix_index_init(&index, INT32_MAX, &err), -1);
    pkv_alloc_fail_at(0, 0);
    ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    prefix_index_finish(&index);
}
END_TEST

/* A pool over 2^20 blocks works: the last block is taken, keyed and hit. */
START_TEST(a_million_blocks_and_one)
{
    static const struct pkv_span text[] = { { 7, 0, (1u << 20) + 1 } };
    struct pkv_cache *cache = make_cache((1u << 20) + 1, 1, true);
    struct pkv_seq seq = begin(cache, text, 1, 0), twin = begin(cache, text, 1, 0);

    ck_assert_uint_eq(admit(cache, &seq), 0);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 0);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, (1u << 20) + 1);
    end(cache, &seq);
    ck_assert_uint_eq(admit(cache, &twin), 1u << 20);   /* all but the last token */
    end(cache, &twin);
    expect_sound(cache, NULL, 0);
    pkv_cache_destroy(cache);
}
END_TEST

static uint64_t allocations_of(bool prefix_cache)
{
    uint64_t before = pkv_alloc_count();
    struct pkv_cache *cache = make_cache(1000, 16, prefix_cache);
    uint64_t num = pkv_alloc_count() - before;

    ck_assert_int_eq(cache->index.records != NULL, prefix_cache);
    ck_assert_int_eq(cache->index.heads != NULL, prefix_cache);
    pkv_cache_destroy(cache);
    return num;
}

START_TEST(no_index_without_prefix_cache)
{
    ck_assert_uint_eq(allocations_of(true) - allocations_of(false), 2);   /* records and buckets */
}
END_TEST

/* --- refused at create ----------------------------------------------------------------------- */

static void expect_sched(const struct pkv_sched_config *config, bool is_fine, const char *number)
{
    struct pkv_err err = { 0 };
    struct pkv_sched *sched = pkv_sched_create(config, &err);

    ck_assert_int_eq(sched != NULL, is_fine);
    pkv_sched_destroy(sched);
    if (is_fine)
        return;
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_msg(strstr(err.text, number) != NULL, "no %s in '%s'", number, err.text);
}

START_TEST(a_watermark_is_a_share)
{
    static const struct { double watermark; bool is_fine; const char *number; } cases[] = {
        { NAN, false, "nan" }, { -1, false, "-1" }, { 2, false, "2" }, { INFINITY, false, "inf" },
        { -0.01, false, "-0.01" }, { 1.01, false, "1.01" }, { 0, true, "" }, { 0.5, true, "" },
        { 1, true, "" } };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pkv_sched_config config = base_config(4);

        config.watermark = cases[i].watermark;
        expect_sched(&config, cases[i].is_fine, cases[i].number);
    }
}
END_TEST

START_TEST(one_to_eight_groups)
{
    static const char *const numbers[] = { "not 0", "", "", "", "", "", "", "", "", "not 9" };

    for (uint32_t num = 0; num <= PKV_MAX_GROUPS + 1; num++) {
        struct pkv_sched_config config = base_config(4);

        for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
            config.groups[g] = config.groups[0];
        config.num_groups = num;
        expect_sched(&config, num > 0 && num <= 8, numbers[num]);
    }
}
END_TEST

START_TEST(a_block_has_a_million_tokens_at_most)
{
    static const struct { uint32_t size; bool is_fine; const char *number; } cases[] = {
        { 0, false, "not 0" }, { 1, true, "" }, { PKV_MAX_BLOCK_SIZE, true, "" },
        { PKV_MAX_BLOCK_SIZE + 1, false, "1048577" }, { UINT32_MAX, false, "4294967295" } };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pkv_sched_config config = base_config(4);

        config.groups[0].block_size = cases[i].size;
        expect_sched(&config, cases[i].is_fine, cases[i].number);
    }
}
END_TEST

START_TEST(a_pool_has_a_block_and_less_than_2_31)
{
    static const struct { uint32_t num; bool is_fine; const char *number; } cases[] = {
        { 0, false, "not 0" }, { 1, true, "" }, { UINT32_C(1) << 31, false, "2147483648" },
        { UINT32_MAX, false, "4294967295" } };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pkv_sched_config config = base_config(4);

        config.num_blocks = cases[i].num;
        expect_sched(&config, cases[i].is_fine, cases[i].number);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sizes");
    TCase *tests = tcase_create("sizes");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_index_has_two_buckets_a_block);
    tcase_add_test(tests, the_largest_index_is_asked_for);
    tcase_add_test(tests, a_million_blocks_and_one);
    tcase_add_test(tests, no_index_without_prefix_cache);
    tcase_add_test(tests, a_watermark_is_a_share);
    tcase_add_test(tests, one_to_eight_groups);
    tcase_add_test(tests, a_block_has_a_million_tokens_at_most);
    tcase_add_test(tests, a_pool_has_a_block_and_less_than_2_31);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
