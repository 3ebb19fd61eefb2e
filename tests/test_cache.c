/*
 * test_cache.c - identities, hits, the order in which freed blocks are lost, and invariants broken
 * by hand. Forks are in test_fork.c.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "cache/cache_private.h"
#include "cache_fixture.h"
#include "pool/pool_private.h"

/* --- identities ------------------------------------------------------------------------------ */

START_TEST(equal_text_in_other_pieces_hits)
{
    struct pkv_cache *cache = make_cache(8, 4, true);
    struct pkv_span whole[] = { { 5, 100, 9 } };
    struct pkv_span pieces[] = { { 5, 100, 1 }, { 5, 101, 5 }, { 5, 106, 3 } };
    struct pkv_seq a = begin(cache, whole, 1, 0), b = begin(cache, pieces, 3, 0);

    ck_assert_uint_eq(admit(cache, &a), 0);
    ck_assert_uint_eq(admit(cache, &b), 8);
    expect_sound(cache, (const struct pkv_seq *[]){ &a, &b }, 2);
    end(cache, &a);
    end(cache, &b);
    pkv_cache_destroy(cache);
}
END_TEST

START_TEST(other_text_misses)
{
    struct pkv_cache *cache = make_cache(16, 4, true);
    struct pkv_span first[] = { { 5, 100, 9 } };
    struct pkv_span other_origin[] = { { 6, 100, 9 } };
    struct pkv_span shifted[] = { { 5, 101, 9 } };
    struct pkv_span last_token[] = { { 5, 100, 7 }, { 5, 108, 2 } };
    struct pkv_seq a = begin(cache, first, 1, 0), b = begin(cache, other_origin, 1, 0);
    struct pkv_seq c = begin(cache, shifted, 1, 0), d = begin(cache, last_token, 2, 0);

    admit(cache, &a);
    ck_assert_uint_eq(admit(cache, &b), 0);
    ck_assert_uint_eq(admit(cache, &c), 0);
    ck_assert_uint_eq(admit(cache, &d), 4);   /* the second block differs in its last token */
    end(cache, &a);
    end(cache, &b);
    end(cache, &c);
    end(cache, &d);
    pkv_cache_destroy(cache);
}
END_TEST

START_TEST(a_later_prompt_hits_what_was_generated)
{
    struct pkv_cache *cache = make_cache(8, 4, true);
    struct pkv_span prompt[] = { { 5, 0, 6 } };
    struct pkv_span next_turn[] = { { 5, 0, 6 }, { OUTPUT_ORIGIN, 0, 3 }, { 5, 50, 4 } };
    struct pkv_seq a = begin(cache, prompt, 1, 0), b;

    admit(cache, &a);
    emit(cache, &a);
    emit(cache, &a);
    end(cache, &a);
    b = begin(cache, next_turn, 3, 0);
    ck_assert_uint_eq(admit(cache, &b), 8);
    end(cache, &b);
    pkv_cache_destroy(cache);
}
END_TEST

/* 32 tokens of 16 are 2 blocks, of which at most floor(31 / 16) = 1 is hit; 33 hit both. */
START_TEST(one_token_is_left_to_compute)
{
    struct pkv_cache *cache = make_cache(8, 16, true);
    struct pkv_span even[] = { { 5, 0, 32 } }, odd[] = { { 5, 0, 33 } };
    struct pkv_seq a = begin(cache, even, 1, 0), b = begin(cache, even, 1, 0);
    struct pkv_seq c = begin(cache, odd, 1, 0);

    ck_assert_uint_eq(admit(cache, &a), 0);
    ck_assert_uint_eq(admit(cache, &b), 16);
    ck_assert_uint_eq(admit(cache, &c), 32);
    ck_assert_uint_eq(c.tables[0].ids[1], a.tables[0].ids[1]);   /* of equal ones the oldest */
    end(cache, &a);
    end(cache, &b);
    end(cache, &c);
    pkv_cache_destroy(cache);
}
END_TEST

START_TEST(salt_and_adapter_are_apart)
{
    struct pkv_cache *cache = make_cache(32, 16, true);
    const uint64_t roots[] = { pkv_content_root("a", NULL), pkv_content_root("b", NULL),
                               pkv_content_root("a", NULL), pkv_content_root(NULL, NULL),
                               pkv_content_root(NULL, "a"), pkv_content_root("a", "a") };
    static const uint32_t hits[] = { 0, 0, 32, 0, 0, 0 };
    struct pkv_span prompt[] = { { 5, 0, 33 } };

    for (size_t i = 0; i < sizeof hits / sizeof hits[0]; i++) {
        struct pkv_seq seq = begin(cache, prompt, 1, roots[i]);

        ck_assert_uint_eq(admit(cache, &seq), hits[i]);
        end(cache, &seq);
    }
    pkv_cache_destroy(cache);
}
END_TEST

START_TEST(origins_of_different_kinds_differ)
{
    static const enum pkv_origin_kind kinds[] = { PKV_ORIGIN_TOKEN, PKV_ORIGIN_HASH_ID,
                                                  PKV_ORIGIN_NAME, PKV_ORIGIN_OWN,
                                                  PKV_ORIGIN_OUTPUT, PKV_ORIGIN_PREFIX };

    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < i; k++)
            for (uint64_t n = 0; n < 100; n++)
                ck_assert_uint_ne(pkv_origin(kinds[i], n), pkv_origin(kinds[k], n));
}
END_TEST

/* --- hits and free blocks -------------------------------------------------------------------- */

/* Two cached blocks lie free; three more are free. A prompt of six blocks that hits the two needs
 * all four others, and the two count as needed as well: 6 of 5. */
START_TEST(hits_that_lie_free_are_needed)
{
    struct pkv_cache *cache = make_cache(7, 16, true);
    struct pkv_span first[] = { { 5, 0, 33 } }, second[] = { { 6, 0, 20 } };
    struct pkv_span third[] = { { 5, 0, 32 }, { 7, 0, 64 } };
    struct pkv_seq a = begin(cache, first, 1, 0), b = begin(cache, second, 1, 0);
    struct pkv_seq c = begin(cache, third, 2, 0);
    struct pkv_hit hit;

    admit(cache, &a);
    admit(cache, &b);
    end(cache, &a);
    ck_assert_int_eq(pkv_cache_prepare(cache, &c, 96, NULL), 0);
    pkv_cache_find_prefix(cache, &c, &hit);
    ck_assert_uint_eq(hit.num_tokens, 32);
    ck_assert_uint_eq(pkv_cache_need(cache, &c, &hit, 96), 6);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 5);
    ck_assert_int_eq(pkv_cache_grow(cache, &c, &hit, 64, 96), PKV_ALLOC_SHORT);
    ck_assert_uint_eq(c.tables[0].num, 0);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 5);
    expect_sound(cache, (const struct pkv_seq *[]){ &b }, 1);
    end(cache, &b);
    ck_assert_uint_eq(admit(cache, &c), 32);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 1);
    expect_sound(cache, (const struct pkv_seq *[]){ &c }, 1);
    end(cache, &c);
    pkv_cache_destroy(cache);
}
END_TEST

/* Of two equal blocks the older answers; when it is taken away the younger one does. */
START_TEST(the_younger_twin_outlives_the_older)
{
    struct pkv_cache *cache = make_cache(4, 4, true);
    struct pkv_span twin[] = { { 5, 0, 4 } }, asks[] = { { 5, 0, 5 } };
    struct pkv_seq a = begin(cache, twin, 1, 0), b = begin(cache, twin, 1, 0);
    struct pkv_seq c = begin(cache, asks, 1, 0);
    pkv_block_id younger;

    admit(cache, &a);
    admit(cache, &b);   /* a whole prompt is never hit: a second block of the same content */
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 1);
    younger = b.tables[0].ids[0];
    pkv_cache_unpublish(cache, &a, 0);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 1);
    ck_assert_uint_eq(admit(cache, &c), 4);
    ck_assert_uint_eq(c.tables[0].ids[0], younger);
    expect_sound(cache, (const struct pkv_seq *[]){ &a, &b, &c }, 3);
    end(cache, &a);
    end(cache, &b);
    end(cache, &c);
    pkv_cache_destroy(cache);
}
END_TEST

/* Three blocks, the last one not full: 0 and 1 have an identity. They go to the tail, the end of
 * the chain first; block 2 to the head, or to the tail before them. Block 3 was never used. */
static void check_release_order(enum pkv_pool_end unhashed, bool prefix_cache,
                                const pkv_block_id *want)
{
    struct pkv_cache *cache = make_cache_with(4, 4, prefix_cache, unhashed, PKV_PUBLISH_ALLOC);
    struct pkv_span prompt[] = { { 5, 0, 9 } };
    struct pkv_seq a = begin(cache, prompt, 1, 0);
    pkv_block_id free[4];

    admit(cache, &a);
    end(cache, &a);
    ck_assert_uint_eq(pkv_pool_list_free(cache->pool, free), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(free[i], want[i]);
    pkv_cache_destroy(cache);
}

START_TEST(freed_blocks_go_where_they_should)
{
    check_release_order(PKV_END_HEAD, true, (const pkv_block_id[]){ 2, 3, 1, 0 });
    check_release_order(PKV_END_TAIL, true, (const pkv_block_id[]){ 3, 2, 1, 0 });
    check_release_order(PKV_END_HEAD, false, (const pkv_block_id[]){ 3, 2, 1, 0 });
}
END_TEST

/* Published only when computed: none of the three has an identity yet, and the last block given
 * back first means that it is the first to be taken. */
START_TEST(unhashed_blocks_at_the_head_last_block_first)
{
    struct pkv_cache *cache = make_cache_with(4, 4, true, PKV_END_HEAD, PKV_PUBLISH_COMPUTED);
    struct pkv_span prompt[] = { { 5, 0, 12 } };
    struct pkv_seq a = begin(cache, prompt, 1, 0);
    static const pkv_block_id want[] = { 2, 1, 0, 3 };
    pkv_block_id free[4];

    admit(cache, &a);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 0);
    end(cache, &a);
    ck_assert_uint_eq(pkv_pool_list_free(cache->pool, free), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(free[i], want[i]);
    pkv_cache_destroy(cache);
}
END_TEST

START_TEST(published_when_computed)
{
    struct pkv_cache *cache = make_cache_with(8, 4, true, PKV_END_HEAD, PKV_PUBLISH_COMPUTED);
    struct pkv_span prompt[] = { { 5, 0, 9 } };
    struct pkv_seq a = begin(cache, prompt, 1, 0), b = begin(cache, prompt, 1, 0);
    struct pkv_seq c = begin(cache, prompt, 1, 0);

    ck_assert_uint_eq(admit(cache, &a), 0);
    ck_assert_uint_eq(admit(cache, &b), 0);
    pkv_cache_publish(cache, &a);
    ck_assert_uint_eq(admit(cache, &c), 8);
    end(cache, &a);
    end(cache, &b);
    end(cache, &c);
    pkv_cache_destroy(cache);
}
END_TEST

/* A taken block loses its identity: no later prompt finds it. */
START_TEST(a_reused_block_is_no_hit)
{
    struct pkv_cache *cache = make_cache(3, 16, true);
    struct pkv_span shared[] = { { 5, 0, 33 } }, other[] = { { 6, 0, 48 } };
    struct pkv_seq a = begin(cache, shared, 1, 0), b = begin(cache, other, 1, 0);
    struct pkv_seq c = begin(cache, shared, 1, 0);
    const pkv_block_id *evicted;
    size_t num_evicted;

    pkv_cache_log_evicted(cache, true);
    admit(cache, &a);
    end(cache, &a);
    admit(cache, &b);
    ck_assert_int_eq(pkv_cache_evicted(cache, &evicted, &num_evicted, NULL), 0);
    ck_assert_uint_eq(num_evicted, 2);
    ck_assert_uint_eq(evicted[0], 1);   /* the tail of the chain is lost first */
    ck_assert_uint_eq(evicted[1], 0);
    end(cache, &b);
    ck_assert_uint_eq(admit(cache, &c), 0);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_evicted, 5);
    end(cache, &c);
    pkv_cache_destroy(cache);
}
END_TEST

START_TEST(cache_off_looks_nothing_up)
{
    struct pkv_cache *cache = make_cache(8, 4, false);
    struct pkv_span prompt[] = { { 5, 0, 9 } };
    struct pkv_seq a = begin(cache, prompt, 1, 0), b = begin(cache, prompt, 1, 0);

    admit(cache, &a);
    ck_assert_uint_eq(admit(cache, &b), 0);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 0);
    end(cache, &a);
    end(cache, &b);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_cached, 0);
    pkv_cache_destroy(cache);
}
END_TEST

/* --- a failed allocation leaves no trace ----------------------------------------------------- */

/* Three blocks of 16. A has 32 tokens, C 16. Growing A to 33 fails, and works once C is gone;
 * growing it to 80 fails. Then all three are free, once each. */
START_TEST(a_failed_grow_leaves_no_trace)
{
    struct pkv_cache *cache = make_cache(3, 16, false);
    struct pkv_span of_a[] = { { 5, 0, 80 } }, of_c[] = { { 6, 0, 16 } };
    struct pkv_seq a = begin(cache, of_a, 1, 0), c = begin(cache, of_c, 1, 0);
    pkv_block_id ids[2], free[3];

    ck_assert_int_eq(grow_to(cache, &a, 32), PKV_ALLOC_OK);
    ck_assert_int_eq(grow_to(cache, &c, 16), PKV_ALLOC_OK);
    memcpy(ids, a.tables[0].ids, sizeof ids);
    ck_assert_int_eq(grow_to(cache, &a, 33), PKV_ALLOC_SHORT);
    ck_assert_uint_eq(a.tables[0].num, 2);
    ck_assert_uint_eq(a.num_computed_tokens, 32);
    ck_assert_mem_eq(ids, a.tables[0].ids, sizeof ids);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 0);
    end(cache, &c);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 1);
    ck_assert_int_eq(grow_to(cache, &a, 33), PKV_ALLOC_OK);
    ck_assert_uint_eq(a.tables[0].num, 3);
    ck_assert_int_eq(grow_to(cache, &a, 80), PKV_ALLOC_SHORT);
    ck_assert_uint_eq(a.tables[0].num, 3);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 0);
    expect_sound(cache, (const struct pkv_seq *[]){ &a }, 1);
    end(cache, &a);
    ck_assert_uint_eq(pkv_pool_list_free(cache->pool, free), 3);
    ck_assert_uint_eq(free[0] + free[1] + free[2], 3);
    expect_sound(cache, NULL, 0);
    pkv_cache_destroy(cache);
}
END_TEST

static int one_request(struct pkv_err *err)
{
    const struct pkv_cache_config config =
        cache_config(4, 4, true, PKV_END_HEAD, PKV_PUBLISH_ALLOC);
    struct pkv_cache *cache = pkv_cache_create(&config, err);
    struct pkv_span spans[] = { { 5, 0, 9 }, { 6, 0, 3 } };
    const struct pkv_content content = { .prompt = spans, .num_prompt_spans = 2 };
    struct pkv_seq seq;
    int result = -1;

    if (cache == NULL)
        return -1;
    if (pkv_seq_init(cache, &seq, &content, err) == 0) {
        result = pkv_cache_prepare(cache, &seq, 12, err);
        if (result == 0)
            ck_assert_int_eq(pkv_cache_grow(cache, &seq, NULL, 12, 12), PKV_ALLOC_OK);
        pkv_cache_release(cache, &seq);
        pkv_seq_finish(cache, &seq);
    }
    pkv_cache_destroy(cache);
    return result;
}

START_TEST(no_memory_is_said_and_leaks_nothing)
{
    uint64_t n = 0;
    int result = -1;

    while (result < 0) {
        struct pkv_err err = { 0 };

        ck_assert_uint_lt(++n, 100);
        pkv_alloc_fail_at(n, 0);
        result = one_request(&err);
        pkv_alloc_fail_at(0, 0);
        if (result < 0)
            ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
    ck_assert_uint_gt(n, 5);
}
END_TEST

/* --- invariants broken by hand --------------------------------------------------------------- */

/* Two sequences: 9 tokens with two published blocks, and its twin of 5 that hits the first. */
static struct pkv_cache *broken_cache;
static struct pkv_seq first, second;
static const struct pkv_seq *const both[] = { &first, &second };

static void set_up(void)
{
    static const struct pkv_span nine[] = { { 5, 0, 9 } }, five[] = { { 5, 0, 5 } };

    broken_cache = make_cache(8, 4, true);
    first = begin(broken_cache, nine, 1, 0);
    second = begin(broken_cache, five, 1, 0);
    admit(broken_cache, &first);
    ck_assert_uint_eq(admit(broken_cache, &second), 4);
    expect_sound(broken_cache, both, 2);
}

static void expect_broken(const char *id)
{
    struct pkv_err err = { 0 };

    ck_assert_int_eq(pkv_cache_check(broken_cache, both, 2, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_AUDIT);
    ck_assert_msg(strncmp(err.text, id, strlen(id)) == 0 && err.text[strlen(id)] == ':',
                  "expected %s, got '%s'", id, err.text);
}

/* What was broken is mended, so that the cache can be taken down. */
static void tear_down(void)
{
    expect_sound(broken_cache, both, 2);
    end(broken_cache, &first);
    end(broken_cache, &second);
    pkv_cache_destroy(broken_cache);
}

START_TEST(c1_one_hold_too_many)
{
    pkv_block_id id = first.tables[0].ids[0];

    pkv_pool_ref(broken_cache->pool, id);
    expect_broken("C1");
    pkv_pool_unref(broken_cache->pool, &id, 1, PKV_END_TAIL, NULL, &id);
}
END_TEST

START_TEST(c2_key_in_the_wrong_place)
{
    struct index_record *record = &broken_cache->index.records[first.tables[0].ids[1]];
    uint64_t key = record->key;

    record->key = key ^ 1;
    expect_broken("C2");
    record->key = key;
}
END_TEST

START_TEST(c2_key_that_nobody_finds)
{
    struct index_record *record = &broken_cache->index.records[first.tables[0].ids[2]];

    record->key = 12345;
    expect_broken("C2");
    record->key = PKV_NO_KEY;
}
END_TEST

START_TEST(c3_wrong_number_of_keys)
{
    broken_cache->index.num_keys++;
    expect_broken("C3");
    broken_cache->index.num_keys--;
}
END_TEST

START_TEST(c4_wrong_number_of_cached)
{
    broken_cache->num_cached++;
    expect_broken("C4");
    broken_cache->num_cached--;
}
END_TEST

START_TEST(c5_wrong_number_stored)
{
    ck_assert_uint_eq(broken_cache->num_stored, 10);   /* 9, and the twin's fifth */
    broken_cache->num_stored--;
    expect_broken("C5");
    broken_cache->num_stored++;
}
END_TEST

START_TEST(c6_table_too_short)
{
    first.num_computed_tokens = 13;
    expect_broken("C6");
    first.num_computed_tokens = 9;
}
END_TEST

START_TEST(c7_published_blocks_are_not_those_with_a_key)
{
    struct pkv_table *table = &first.tables[0];

    table->num_published = 1;   /* the second one has a key all the same */
    expect_broken("C7");
    table->num_published = 2;
    first.keys[1] ^= 1;
    expect_broken("C7");
    first.keys[1] ^= 1;
    first.num_computed_tokens = 7;   /* the second one is published and not full */
    table->num = 2;
    expect_broken("C7");
    table->num = 3;
    first.num_computed_tokens = 9;
}
END_TEST

START_TEST(pool_is_checked_as_well)
{
    broken_cache->pool->counts.released++;
    expect_broken("P3");
    broken_cache->pool->counts.released--;
}
END_TEST

static Suite *cache_suite(void)
{
    Suite *suite = suite_create("cache");
    TCase *tests = tcase_create("cache"), *broken = tcase_create("invariants");

    tcase_add_test(tests, equal_text_in_other_pieces_hits);
    tcase_add_test(tests, other_text_misses);
    tcase_add_test(tests, a_later_prompt_hits_what_was_generated);
    tcase_add_test(tests, one_token_is_left_to_compute);
    tcase_add_test(tests, salt_and_adapter_are_apart);
    tcase_add_test(tests, origins_of_different_kinds_differ);
    tcase_add_test(tests, hits_that_lie_free_are_needed);
    tcase_add_test(tests, the_younger_twin_outlives_the_older);
    tcase_add_test(tests, freed_blocks_go_where_they_should);
    tcase_add_test(tests, unhashed_blocks_at_the_head_last_block_first);
    tcase_add_test(tests, published_when_computed);
    tcase_add_test(tests, a_reused_block_is_no_hit);
    tcase_add_test(tests, cache_off_looks_nothing_up);
    tcase_add_test(tests, a_failed_grow_leaves_no_trace);
    tcase_add_test(tests, no_memory_is_said_and_leaks_nothing);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(broken, set_up, tear_down);
    tcase_add_test(broken, c1_one_hold_too_many);
    tcase_add_test(broken, c2_key_in_the_wrong_place);
    tcase_add_test(broken, c2_key_that_nobody_finds);
    tcase_add_test(broken, c3_wrong_number_of_keys);
    tcase_add_test(broken, c4_wrong_number_of_cached);
    tcase_add_test(broken, c5_wrong_number_stored);
    tcase_add_test(broken, c6_table_too_short);
    tcase_add_test(broken, c7_published_blocks_are_not_those_with_a_key);
    tcase_add_test(broken, pool_is_checked_as_well);
    suite_add_tcase(suite, broken);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(cache_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
