/*
 * test_fork.c - parallel samples share a prompt's blocks and copy the one they write into.
 *
 * The numbers are worked by hand: prompt of 20 tokens, blocks of 16, four samples. The prompt
 * takes one full block and one with 4 tokens. Each sample writes its 21st token into the second
 * one: the first three copy it, the last holder writes in place.
 *
 * With identities given late or taken back, a block's own record says whether it has one, as a
 * table does not know what the others did.
 */
#include <stdlib.h>

#include <check.h>

#include "cache/cache_private.h"
#include "cache_fixture.h"

#define SAMPLES 4

static struct pkv_cache *cache;
static struct pkv_seq samples[SAMPLES];
static const struct pkv_seq *const all[SAMPLES] = { &samples[0], &samples[1], &samples[2],
                                                    &samples[3] };

static void set_up(void)
{
    static const struct pkv_span prompt[] = { { 5, 0, 20 } };

    cache = make_cache(10, 16, true);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = begin(cache, prompt, 1, 0);
    admit(cache, &samples[0]);
    for (int i = 1; i < SAMPLES; i++)
        ck_assert_int_eq(pkv_cache_fork(cache, &samples[0], &samples[i], NULL), 0);
}

static void tear_down(void)
{
    pkv_cache_destroy(cache);
}

static uint32_t num_used(void)
{
    return 10 - pkv_cache_num_free(cache);
}

START_TEST(a_fork_takes_no_block)
{
    ck_assert_uint_eq(num_used(), 2);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, 20);
    for (int i = 1; i < SAMPLES; i++) {
        ck_assert_uint_eq(samples[i].num_computed_tokens, 20);
        ck_assert_uint_eq(samples[i].tables[0].ids[0], samples[0].tables[0].ids[0]);
        ck_assert_uint_eq(samples[i].tables[0].ids[1], samples[0].tables[0].ids[1]);
    }
    expect_sound(cache, all, SAMPLES);
    for (int i = 0; i < SAMPLES; i++)
        end(cache, &samples[i]);
    ck_assert_uint_eq(num_used(), 0);
}
END_TEST

START_TEST(the_first_write_copies)
{
    ck_assert_uint_eq(pkv_cache_need(cache, &samples[0], NULL, 21), 1);
    for (int i = 0; i < SAMPLES; i++) {
        emit(cache, &samples[i]);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_copied, (uint64_t)(i < 3 ? i + 1 : 3));
        expect_sound(cache, all, SAMPLES);
    }
    ck_assert_uint_eq(num_used(), 5);   /* 1 shared, 4 own */
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, 16 + 4 * 5);
    for (int i = 0; i < SAMPLES; i++) {
        ck_assert_uint_eq(samples[i].tables[0].ids[0], samples[0].tables[0].ids[0]);
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(samples[i].tables[0].ids[1], samples[k].tables[0].ids[1]);
        ck_assert_uint_eq(pkv_cache_need(cache, &samples[i], NULL, 22), 0);   /* its own now */
    }
    for (int i = 0; i < SAMPLES; i++)
        end(cache, &samples[i]);
}
END_TEST

START_TEST(one_sample_frees_only_its_own)
{
    for (int i = 0; i < SAMPLES; i++)
        emit(cache, &samples[i]);
    ck_assert_uint_eq(pkv_cache_release(cache, &samples[2]), 1);
    ck_assert_uint_eq(num_used(), 4);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, 16 + 3 * 5);
    expect_sound(cache, all, SAMPLES);
    ck_assert_uint_eq(pkv_cache_release(cache, &samples[0]), 1);
    ck_assert_uint_eq(pkv_cache_release(cache, &samples[1]), 1);
    ck_assert_uint_eq(pkv_cache_release(cache, &samples[3]), 2);   /* and the shared one */
    for (int i = 0; i < SAMPLES; i++)
        pkv_seq_finish(cache, &samples[i]);
    ck_assert_uint_eq(num_used(), 0);
}
END_TEST

/* Eight others hold the rest: three copies and no free block. Nothing may have changed. */
START_TEST(no_room_for_a_copy_leaves_no_trace)
{
    static const struct pkv_span filler[] = { { 6, 0, 128 } };
    struct pkv_seq other = begin(cache, filler, 1, 0);
    pkv_block_id shared = samples[1].tables[0].ids[1];

    admit(cache, &other);
    samples[1].num_known_tokens++;
    ck_assert_int_eq(grow_to(cache, &samples[1], 21), PKV_ALLOC_SHORT);
    ck_assert_uint_eq(samples[1].tables[0].ids[1], shared);
    ck_assert_uint_eq(samples[1].num_computed_tokens, 20);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_copied, 0);
    end(cache, &other);
    expect_sound(cache, all, SAMPLES);
    for (int i = 0; i < SAMPLES; i++)
        end(cache, &samples[i]);
}
END_TEST

/* --- identities ------------------------------------------------------------------------------ */

/* Two that share 40 tokens, under publish: computed: two full blocks and one with 8 tokens. */
static struct pkv_seq parent, child;
static const struct pkv_seq *const two[] = { &parent, &child };

static void set_up_computed(enum pkv_pool_end unhashed)
{
    static const struct pkv_span prompt[] = { { 5, 0, 40 } };

    cache = make_cache_with(10, 16, true, unhashed, PKV_PUBLISH_COMPUTED);
    parent = begin(cache, prompt, 1, 0);
    child = begin(cache, prompt, 1, 0);
    ck_assert_int_eq(grow_to(cache, &parent, 40), PKV_ALLOC_OK);
    ck_assert_int_eq(pkv_cache_fork(cache, &parent, &child, NULL), 0);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 0);
}

static bool has_key(pkv_block_id id)
{
    return cache->index.records[id].key != PKV_NO_KEY;
}

/* Blocks with an identity, all in all, and different identities among them. */
static void expect_keys(uint32_t num_blocks, uint32_t num_different)
{
    uint32_t num = 0;

    for (pkv_block_id id = 0; id < 10; id++)
        num += has_key(id);
    ck_assert_uint_eq(num, num_blocks);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, num_different);
}

/* The one publishes and goes, then the other, which never did: the blocks are free with identities,
 * and a third with the same text hits both. */
START_TEST(what_one_published_is_kept_by_the_other)
{
    static const struct pkv_span prompt[] = { { 5, 0, 40 } };

    for (int end_at = 0; end_at < 2; end_at++) {
        struct pkv_seq third;

        set_up_computed(end_at ? PKV_END_TAIL : PKV_END_HEAD);
        pkv_cache_publish(cache, &parent);
        expect_keys(2, 2);
        expect_sound(cache, two, 2);
        ck_assert_uint_eq(pkv_cache_release(cache, &parent), 0);
        expect_sound(cache, two + 1, 1);
        ck_assert_uint_eq(pkv_cache_release(cache, &child), 3);
        expect_sound(cache, NULL, 0);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_cached, 2);
        pkv_seq_finish(cache, &parent);
        pkv_seq_finish(cache, &child);
        third = begin(cache, prompt, 1, 0);
        ck_assert_uint_eq(admit(cache, &third), 32);
        end(cache, &third);
        expect_sound(cache, NULL, 0);
        pkv_cache_destroy(cache);
    }
}
END_TEST

/* Both publish: a shared block gets its identity once, their third blocks are two with one
 * identity: both went on with the same text, the first in a copy. The shared block with 8 tokens
 * had none. */
START_TEST(both_publish_what_they_share_once)
{
    set_up_computed(PKV_END_HEAD);
    pkv_cache_publish(cache, &child);
    pkv_cache_publish(cache, &parent);
    expect_keys(2, 2);
    for (int i = 0; i < 8; i++)
        emit(cache, &parent);
    ck_assert_uint_ne(parent.tables[0].ids[2], child.tables[0].ids[2]);
    pkv_cache_publish(cache, &parent);
    expect_keys(3, 3);
    ck_assert(has_key(parent.tables[0].ids[2]) && !has_key(child.tables[0].ids[2]));
    for (int i = 0; i < 8; i++)
        emit(cache, &child);
    pkv_cache_publish(cache, &child);
    expect_keys(4, 3);
    expect_sound(cache, two, 2);
    ck_assert_uint_eq(pkv_cache_release(cache, &parent), 1);
    expect_sound(cache, two + 1, 1);
    ck_assert_uint_eq(pkv_cache_release(cache, &child), 3);
    expect_sound(cache, NULL, 0);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_cached, 4);
    pkv_seq_finish(cache, &parent);
    pkv_seq_finish(cache, &child);
    pkv_cache_destroy(cache);
}
END_TEST

/* Tokens from the 20th on are cancelled: the second block loses its identity, for the other one as
 * well, who then finds nothing more to take back. */
START_TEST(cancelled_tokens_take_the_identity_for_both)
{
    set_up_computed(PKV_END_HEAD);
    pkv_cache_publish(cache, &parent);
    pkv_cache_publish(cache, &child);
    pkv_cache_unpublish(cache, &parent, 20);
    expect_keys(1, 1);
    ck_assert(has_key(child.tables[0].ids[0]) && !has_key(child.tables[0].ids[1]));
    expect_sound(cache, two, 2);
    ck_assert_uint_eq(pkv_cache_release(cache, &parent), 0);
    pkv_cache_unpublish(cache, &child, 20);
    expect_keys(1, 1);
    ck_assert_uint_eq(pkv_cache_release(cache, &child), 3);
    expect_keys(1, 1);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_cached, 1);
    expect_sound(cache, NULL, 0);
    pkv_seq_finish(cache, &parent);
    pkv_seq_finish(cache, &child);
    pkv_cache_destroy(cache);
}
END_TEST

/* The one publishes after the fork, the other only takes back: it entered nothing, so nothing
 * goes. */
START_TEST(who_published_nothing_takes_nothing_back)
{
    set_up_computed(PKV_END_TAIL);
    pkv_cache_publish(cache, &parent);
    pkv_cache_unpublish(cache, &child, 20);
    expect_keys(2, 2);
    ck_assert_uint_eq(pkv_cache_release(cache, &child), 0);
    ck_assert_uint_eq(pkv_cache_release(cache, &parent), 3);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_cached, 2);
    expect_sound(cache, NULL, 0);
    pkv_seq_finish(cache, &parent);
    pkv_seq_finish(cache, &child);
    pkv_cache_destroy(cache);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *tests = tcase_create("fork"), *keys = tcase_create("identities");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_fork_takes_no_block);
    tcase_add_test(tests, the_first_write_copies);
    tcase_add_test(tests, one_sample_frees_only_its_own);
    tcase_add_test(tests, no_room_for_a_copy_leaves_no_trace);
    suite_add_tcase(suite, tests);
    tcase_add_test(keys, what_one_published_is_kept_by_the_other);
    tcase_add_test(keys, both_publish_what_they_share_once);
    tcase_add_test(keys, cancelled_tokens_take_the_identity_for_both);
    tcase_add_test(keys, who_published_nothing_takes_nothing_back);
    suite_add_tcase(suite, keys);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
