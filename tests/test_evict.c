/*
 * test_evict.c - an evict policy that asks for hints: the depth it is told is the block's place in
 * its table, whichever way the blocks come back.
 *
 * The policy is lru with an ear on push. Blocks of 16 tokens.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "cache_fixture.h"

extern const struct pkv_evict_ops pkv_evict_lru;

struct heard {
    pkv_block_id id;
    enum pkv_pool_end end;
    struct pkv_evict_hint hint;
};

static struct heard heard[64];
static size_t num_heard;

static void push(void *state, const pkv_block_id *ids, uint32_t num, enum pkv_pool_end end,
                 const struct pkv_evict_hint *hints)
{
    ck_assert_ptr_nonnull(hints);
    for (uint32_t i = 0; i < num; i++) {
        ck_assert_uint_lt(num_heard, sizeof heard / sizeof heard[0]);
        heard[num_heard++] = (struct heard){ ids[i], end, hints[i] };
        ck_assert_uint_eq(hints[i].next_use, UINT64_MAX);   /* not known */
        ck_assert_int_eq(hints[i].priority, 0);
        ck_assert_uint_eq(hints[i].cached_children, 0);
        ck_assert_uint_eq(hints[i].step, 0);
    }
    pkv_evict_lru.push(state, ids, num, end, NULL);
}

static struct pkv_evict_ops listening;
static struct pkv_cache *cache;

static void listen(void)
{
    listening = pkv_evict_lru;
    listening.needs_hint = true;
    listening.push = push;
    num_heard = 0;
}

static void make(enum pkv_pool_end unhashed, enum pkv_publish publish)
{
    struct pkv_cache_config config = cache_config(16, 16, true, unhashed, publish);

    listen();
    config.pool.evict = &listening;
    cache = pkv_cache_create(&config, NULL);
    ck_assert_ptr_nonnull(cache);
    ck_assert_uint_eq(num_heard, 16);   /* all are free at first, in the order of their ids */
    for (size_t i = 0; i < num_heard; i++) {
        ck_assert_uint_eq(heard[i].id, i);
        ck_assert_uint_eq(heard[i].hint.depth, 0);
    }
}

/* Give back a sequence. order: places in its table as they are to come free, "210"; ends: where
 * each joins the free blocks, H or T. A block's place is its depth. */
static void expect_release(struct pkv_seq *seq, const char *order, const char *ends)
{
    pkv_block_id table[16];
    uint32_t num = seq->tables[0].num;

    ck_assert_uint_le(num, 16);
    memcpy(table, seq->tables[0].ids, num * sizeof *table);
    num_heard = 0;
    ck_assert_uint_eq(pkv_cache_release(cache, seq), strlen(order));
    ck_assert_uint_eq(num_heard, strlen(order));
    for (size_t i = 0; i < num_heard; i++) {
        uint32_t place = (uint32_t)(order[i] - '0');

        ck_assert_uint_lt(place, num);
        ck_assert_uint_eq(heard[i].id, table[place]);
        ck_assert_uint_eq(heard[i].hint.depth, place);
        ck_assert_int_eq(heard[i].end, ends[i] == 'H' ? PKV_END_HEAD : PKV_END_TAIL);
    }
}

/* Five blocks of 75 tokens, after another that takes blocks 0 and 1: ids are not places. */
static struct pkv_seq other, seq;

static void fill(uint32_t num_published_tokens)
{
    static const struct pkv_span text[] = { { 3, 0, 75 } }, before[] = { { 4, 0, 20 } };

    other = begin(cache, before, 1, 0);
    ck_assert_int_eq(grow_to(cache, &other, 20), PKV_ALLOC_OK);
    seq = begin(cache, text, 1, 0);
    if (num_published_tokens) {
        ck_assert_int_eq(grow_to(cache, &seq, num_published_tokens), PKV_ALLOC_OK);
        pkv_cache_publish(cache, &seq);
    }
    ck_assert_int_eq(grow_to(cache, &seq, 75), PKV_ALLOC_OK);
    ck_assert_uint_eq(seq.tables[0].num, 5);
    ck_assert_uint_eq(seq.tables[0].ids[0], 2);
}

static void finish(void)
{
    const struct pkv_seq *const rest[] = { &other };

    expect_sound(cache, rest, 1);
    pkv_seq_finish(cache, &seq);
    end(cache, &other);
    expect_sound(cache, NULL, 0);
    pkv_cache_destroy(cache);
}

/* Four full blocks and one with 11 tokens, no identity: to the head in rising order, so that the
 * last one is foremost, or to the tail in falling order. */
START_TEST(depths_rise_to_the_head_and_fall_to_the_tail)
{
    make(PKV_END_HEAD, PKV_PUBLISH_COMPUTED);
    fill(0);
    expect_release(&seq, "01234", "HHHHH");
    finish();
    make(PKV_END_TAIL, PKV_PUBLISH_COMPUTED);
    fill(0);
    expect_release(&seq, "43210", "TTTTT");
    finish();
}
END_TEST

/* The full ones have identities: they go to the tail. */
START_TEST(depths_of_blocks_with_identity_fall)
{
    make(PKV_END_HEAD, PKV_PUBLISH_ALLOC);
    fill(0);
    expect_release(&seq, "32104", "TTTTH");
    finish();
    make(PKV_END_TAIL, PKV_PUBLISH_ALLOC);
    fill(0);
    expect_release(&seq, "43210", "TTTTT");
    finish();
}
END_TEST

/* Two are published, two full ones are not yet. */
START_TEST(depths_of_a_table_that_is_published_in_part)
{
    make(PKV_END_HEAD, PKV_PUBLISH_COMPUTED);
    fill(40);
    expect_release(&seq, "10234", "TTHHH");
    finish();
    make(PKV_END_TAIL, PKV_PUBLISH_COMPUTED);
    fill(40);
    expect_release(&seq, "43210", "TTTTT");
    finish();
}
END_TEST

/* A twin holds the first four as well: one block comes free with the first of the two, with its own
 * depth and not that of another. The twin's last block is its own. */
START_TEST(depths_of_those_that_are_not_shared)
{
    static const struct pkv_span text[] = { { 3, 0, 75 } };
    struct pkv_seq twin;

    make(PKV_END_TAIL, PKV_PUBLISH_ALLOC);
    fill(0);
    twin = begin(cache, text, 1, 0);
    ck_assert_uint_eq(admit(cache, &twin), 64);
    expect_release(&seq, "4", "T");
    expect_release(&twin, "43210", "TTTTT");
    pkv_seq_finish(cache, &twin);
    finish();
}
END_TEST

/* The same after a fork, when each block is asked for itself. The child's fifth block is a copy. */
START_TEST(depths_after_a_fork)
{
    static const struct pkv_span text[] = { { 3, 0, 75 } };

    for (int at_head = 0; at_head < 2; at_head++) {
        struct pkv_seq child;

        make(at_head ? PKV_END_HEAD : PKV_END_TAIL, PKV_PUBLISH_ALLOC);
        fill(0);
        child = begin(cache, text, 1, 0);
        ck_assert_int_eq(pkv_cache_fork(cache, &seq, &child, NULL), 0);
        emit(cache, &child);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_copied, 1);
        expect_release(&child, "4", at_head ? "H" : "T");
        expect_release(&seq, at_head ? "32104" : "43210", at_head ? "TTTTH" : "TTTTT");
        pkv_seq_finish(cache, &child);
        finish();
    }
}
END_TEST

/* Of three given back together the first is still held: the others keep their own hints. */
START_TEST(a_hint_goes_with_its_block)
{
    const struct pkv_evict_hint hints[] = { { .depth = 7, .next_use = UINT64_MAX },
                                            { .depth = 8, .next_use = UINT64_MAX },
                                            { .depth = 9, .next_use = UINT64_MAX } };
    struct pkv_pool_config config = { .num_blocks = 4, .evict = &listening,
                                      .layout = &pkv_layout_paged };
    pkv_block_id ids[3], freed[3];
    struct pkv_pool *pool;

    listen();
    pool = pkv_pool_create(&config, NULL);
    ck_assert_ptr_nonnull(pool);
    ck_assert_int_eq(pkv_pool_take(pool, 3, ids), PKV_ALLOC_OK);
    pkv_pool_ref(pool, ids[0]);
    num_heard = 0;
    ck_assert_uint_eq(pkv_pool_unref(pool, ids, 3, PKV_END_TAIL, hints, freed), 2);
    ck_assert_uint_eq(num_heard, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(heard[i].id, ids[i + 1]);
        ck_assert_uint_eq(heard[i].hint.depth, 8 + i);
    }
    pkv_pool_destroy(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("evict");
    TCase *tests = tcase_create("evict");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, depths_rise_to_the_head_and_fall_to_the_tail);
    tcase_add_test(tests, depths_of_blocks_with_identity_fall);
    tcase_add_test(tests, depths_of_a_table_that_is_published_in_part);
    tcase_add_test(tests, depths_of_those_that_are_not_shared);
    tcase_add_test(tests, depths_after_a_fork);
    tcase_add_test(tests, a_hint_goes_with_its_block);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
