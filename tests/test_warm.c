/*
 * test_warm.c - the free queue of one cache put into another.
 *
 * Blocks of 4 tokens. A text of 12 tokens has three blocks, which lie free as 2, 1, 0: the tail first.
 */
#include <stdlib.h>

#include <check.h>

#include "cache/cache_private.h"
#include "cache_fixture.h"

#define BLOCK 4

static struct pkv_seq say(struct pkv_cache *cache, uint64_t origin, uint32_t count, uint32_t num_named)
{
    const struct pkv_span span = { origin, 0, count };
    const struct pkv_content content = { .prompt = &span, .num_prompt_spans = 1,
                                         .output_origin = OUTPUT_ORIGIN,
                                         .num_named_tokens = num_named };
    struct pkv_seq seq;

    ck_assert_int_eq(pkv_seq_init(cache, &seq, &content, NULL), 0);
    return seq;
}

/* Computed and over. returns  tokens hit */
static uint32_t run(struct pkv_cache *cache, uint64_t origin, uint32_t count, uint32_t num_named)
{
    struct pkv_seq seq = say(cache, origin, count, num_named);
    uint32_t hit = admit(cache, &seq);

    end(cache, &seq);
    return hit;
}

static struct pkv_cache *warm(const struct pkv_cache *from, uint32_t num_blocks)
{
    struct pkv_cache_state state;
    struct pkv_cache *cache = make_cache(num_blocks, BLOCK, true);

    ck_assert_int_eq(pkv_cache_save(from, &state, NULL), 0);
    ck_assert_int_eq(pkv_cache_restore(cache, &state, NULL), 0);
    pkv_cache_state_free(&state);
    expect_sound(cache, NULL, 0);
    return cache;
}

/* Identities in the order in which their blocks would be taken; 0 = none. */
static void list_keys(const struct pkv_cache *cache, uint64_t *out)
{
    pkv_block_id ids[16];
    uint32_t num = pkv_cache_list_free(cache, ids);

    for (uint32_t i = 0; i < num; i++)
        out[i] = cache->index.records[ids[i]].key;
}

START_TEST(the_queue_is_the_same_in_a_pool_of_its_size)
{
    uint64_t before[8], after[8];
    struct pkv_cache *cold = make_cache(8, BLOCK, true), *then;

    run(cold, 1, 12, 12);
    run(cold, 2, 8, 8);
    list_keys(cold, before);
    then = warm(cold, 8);
    list_keys(then, after);
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(after[i], before[i]);
    ck_assert_uint_eq(before[2], 0);      /* 8 blocks, 5 of them with content */
    ck_assert_uint_ne(before[3], 0);
    ck_assert_uint_eq(pkv_cache_figures(then).num_cached, 5);
    ck_assert_uint_eq(run(then, 1, 13, 13), 12);
    ck_assert_uint_eq(run(then, 2, 9, 9), 8);
    pkv_cache_destroy(cold);
    pkv_cache_destroy(then);
}
END_TEST

START_TEST(a_larger_pool_keeps_all_behind_its_empty_blocks)
{
    uint64_t before[4], after[7];
    struct pkv_cache *cold = make_cache(4, BLOCK, true), *then;

    run(cold, 1, 16, 16);                 /* fills the pool */
    list_keys(cold, before);
    then = warm(cold, 7);
    list_keys(then, after);
    for (int i = 0; i < 7; i++)
        ck_assert_uint_eq(after[i], i < 3 ? 0 : before[i - 3]);
    run(then, 9, 12, 12);                 /* takes the empty ones */
    ck_assert_uint_eq(run(then, 1, 17, 17), 16);
    pkv_cache_destroy(cold);
    pkv_cache_destroy(then);
}
END_TEST

START_TEST(a_smaller_pool_loses_what_would_go_first)
{
    uint64_t before[8], after[3];
    struct pkv_cache *cold = make_cache(8, BLOCK, true), *then;

    run(cold, 1, 12, 12);                 /* lie as 2, 1, 0 */
    run(cold, 2, 8, 8);                   /* and behind them 1, 0 */
    list_keys(cold, before);
    then = warm(cold, 3);                 /* block 0 of the first, both of the second */
    list_keys(then, after);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(after[i], before[5 + i]);
    ck_assert_uint_eq(run(then, 2, 9, 9), 8);
    pkv_cache_destroy(then);
    then = warm(cold, 3);
    ck_assert_uint_eq(run(then, 1, 9, 9), 4);
    pkv_cache_destroy(cold);
    pkv_cache_destroy(then);
}
END_TEST

/* Two that were computed at once, neither of which found the other: the older block is hit, wherever the
 * two lie in the queue. */
START_TEST(of_twins_the_older_one_is_hit_again)
{
    struct pkv_cache *cold = make_cache_with(6, BLOCK, true, PKV_END_HEAD, PKV_PUBLISH_COMPUTED);
    struct pkv_seq old = say(cold, 1, 5, 4), young = say(cold, 1, 5, 4), again;

    ck_assert_uint_eq(admit(cold, &old), 0);
    ck_assert_uint_eq(admit(cold, &young), 0);
    pkv_cache_publish(cold, &old);
    pkv_cache_publish(cold, &young);
    end(cold, &young);                    /* lies before the older one */
    end(cold, &old);
    ck_assert_uint_eq(pkv_cache_figures(cold).num_keys, 1);
    struct pkv_cache *then = warm(cold, 6);
    ck_assert_uint_eq(pkv_cache_figures(then).num_keys, 1);
    ck_assert_uint_eq(pkv_cache_figures(then).num_cached, 2);
    again = say(then, 1, 5, 4);
    ck_assert_uint_eq(admit(then, &again), 4);
    ck_assert_uint_eq(again.tables[0].ids[0], 5);   /* the last of the queue */
    end(then, &again);
    pkv_cache_destroy(cold);
    pkv_cache_destroy(then);
}
END_TEST

/* 6 tokens are the same in every run: that is one whole block. */
START_TEST(a_run_s_own_text_is_hit_in_that_run_only)
{
    struct pkv_cache *cold = make_cache(12, BLOCK, true), *then, *third;

    ck_assert_uint_eq(run(cold, 1, 13, 6), 0);
    ck_assert_uint_eq(run(cold, 1, 13, 6), 12);
    then = warm(cold, 12);
    ck_assert_uint_eq(run(then, 1, 13, 6), 4);
    ck_assert_uint_eq(run(then, 1, 13, 6), 12);
    third = warm(then, 12);
    ck_assert_uint_eq(run(third, 1, 13, 6), 4);
    ck_assert_uint_eq(run(third, 1, 13, 6), 12);
    pkv_cache_destroy(cold);
    pkv_cache_destroy(then);
    pkv_cache_destroy(third);
}
END_TEST

/* An identity is the same whether a text is hashed at once or piece by piece. */
START_TEST(identities_do_not_depend_on_when_they_are_made)
{
    struct pkv_cache *cold = make_cache(12, BLOCK, true), *then = warm(cold, 12);

    for (uint32_t named = 0; named <= 20; named++) {
        struct pkv_seq whole = say(then, 1, 20, named), parts = say(then, 1, 20, named);
        ck_assert_int_eq(seq_hash(then, &whole, 5, NULL), 0);
        for (uint32_t num = 1; num <= 5; num++)
            ck_assert_int_eq(seq_hash(then, &parts, num, NULL), 0);
        for (int i = 0; i < 5; i++)
            ck_assert_uint_eq(whole.keys[i], parts.keys[i]);
        pkv_seq_finish(then, &whole);
        pkv_seq_finish(then, &parts);
    }
    pkv_cache_destroy(cold);
    pkv_cache_destroy(then);
}
END_TEST

START_TEST(groups_are_named_with_their_sizes)
{
    char label[PKV_GROUPS_LABEL_SIZE];
    const struct pkv_group_config groups[] = {
        { .ops = &pkv_group_full, .block_size = 16 },
        { .ops = &pkv_group_sliding, .block_size = 32, .size = 1024 },
        { .ops = &pkv_group_state, .block_size = 16, .size = 1 },
    };

    pkv_groups_label(groups, 3, label);
    ck_assert_str_eq(label, "full:16 sliding:32:1024 state:16:1");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("warm");
    TCase *c = tcase_create("state");

    tcase_add_test(c, the_queue_is_the_same_in_a_pool_of_its_size);
    tcase_add_test(c, a_larger_pool_keeps_all_behind_its_empty_blocks);
    tcase_add_test(c, a_smaller_pool_loses_what_would_go_first);
    tcase_add_test(c, of_twins_the_older_one_is_hit_again);
    tcase_add_test(c, a_run_s_own_text_is_hit_in_that_run_only);
    tcase_add_test(c, identities_do_not_depend_on_when_they_are_made);
    tcase_add_test(c, groups_are_named_with_their_sizes);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
