/*
 * test_groups.c - each kind of KV group by itself: what becomes null at which position, what a hit
 * needs, and what is asked for. Several groups together are in test_hybrid.c.
 *
 * All numbers are worked by hand, in the comments; those of sliding windows and chunks follow from
 * which positions the next token looks at. No recording has a state: its numbers are those of the
 * rule that src/cache/group_state.c states.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "groups_fixture.h"
#include "sched_fixture.h"

/* --- sliding --------------------------------------------------------------------------------- */

/* Window 8: with c positions computed the next token looks at c - 7 and later. So block 0 (0-3) is out
 * from c = 11 on, block 1 (4-7) from 15, block 2 from 19; each is given back before position c, that
 * is when the sequence grows to c + 1. Blocks held: those of the positions less those given back. */
START_TEST(a_window_of_8_lets_go_at_11_and_15)
{
    static const struct { uint32_t positions, num_null, num_held; } rows[] = {
        { 1, 0, 1 }, { 8, 0, 2 }, { 9, 0, 3 }, { 11, 0, 3 }, { 12, 1, 2 }, { 13, 1, 3 },
        { 15, 1, 3 }, { 16, 2, 2 }, { 17, 2, 3 }, { 19, 2, 3 }, { 20, 3, 2 }, { 21, 3, 3 } };
    struct pkv_cache *cache = make_groups(6, true, GROUPS(SLIDING(8, 4)));
    struct pkv_seq seq = begin_text(cache, 21);
    uint32_t at = 0;

    for (uint32_t p = 1; p <= 21; p++) {
        ck_assert_int_eq(grow_to(cache, &seq, p), PKV_ALLOC_OK);
        expect_sound_alone(cache, &seq);
        if (rows[at].positions != p)
            continue;
        ck_assert_uint_eq(seq.tables[0].num_null, rows[at].num_null);
        ck_assert_uint_eq(pkv_seq_num_blocks(&seq), rows[at].num_held);
        ck_assert_uint_eq(6 - pkv_cache_num_free(cache), rows[at++].num_held);
    }
    ck_assert_uint_eq(at, 12);
    end(cache, &seq);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 6);
    pkv_cache_destroy(cache);
}
END_TEST

/* 24 positions take blocks 0 to 5 of 8. At 24 computed, 17 is the first that is looked at: four
 * whole blocks lie below, 3 first of them. Position 25 then takes block 6, the first free one. Without
 * a cache all go to the tail. */
START_TEST(what_leaves_the_window_goes_last_block_first)
{
    struct pkv_cache *cache = make_groups(8, false, GROUPS(SLIDING(8, 4)));
    struct pkv_seq seq = begin_text(cache, 30);

    grow_to(cache, &seq, 24);
    expect_free(cache, "6 7");
    grow_to(cache, &seq, 25);
    expect_free(cache, "7 3 2 1 0");
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, 25 - 16);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* All six blocks are held at 24 positions; 20 more need five, and only four are given back. */
START_TEST(it_lets_go_even_if_it_gets_nothing)
{
    struct pkv_cache *cache = make_groups(6, false, GROUPS(SLIDING(8, 4)));
    struct pkv_seq seq = begin_text(cache, 50);

    grow_to(cache, &seq, 24);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 0);
    ck_assert_int_eq(grow_to(cache, &seq, 44), PKV_ALLOC_SHORT);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 4);
    ck_assert_uint_eq(seq.num_computed_tokens, 24);
    expect_sound_alone(cache, &seq);
    ck_assert_int_eq(grow_to(cache, &seq, 40), PKV_ALLOC_OK);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* Window 10: the token after a hit looks at nine positions, ceil(9 / 4) = 3 blocks. A text of 41
 * tokens can hit 40, blocks 0 to 9. Losing block after block: 8 leaves 5 6 7 as the last run of three,
 * 6 leaves 3 4 5, 4 leaves 1 2 3, 3 leaves 0 1 2, 2 the prefix 0 1, and 0 nothing. */
START_TEST(a_hit_needs_three_blocks_in_a_row)
{
    static const struct { uint32_t lost, hit, num_null; } rows[] = {
        { 8, 32, 5 }, { 6, 24, 3 }, { 4, 16, 1 }, { 3, 12, 0 }, { 2, 8, 0 }, { 0, 0, 0 } };
    struct pkv_cache *cache = make_groups(12, true, GROUPS(SLIDING(10, 4)));
    struct pkv_seq seq = begin_text(cache, 41);
    struct pkv_hit hit;

    admit(cache, &seq);
    hit = hit_of(cache, 41);
    ck_assert_uint_eq(hit.num_tokens, 40);
    ck_assert_uint_eq(hit.num_blocks[0], 10);
    ck_assert_uint_eq(hit.num_null[0], 7);
    ck_assert_uint_eq(hit.blocks[0][6], PKV_BLOCK_NULL);
    ck_assert_uint_eq(hit.blocks[0][7], seq.tables[0].ids[7]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lose(cache, &seq, 0, rows[i].lost);
        hit = hit_of(cache, 41);
        ck_assert_uint_eq(hit.num_tokens, rows[i].hit);
        ck_assert_uint_eq(hit.num_null[0], rows[i].num_null);
    }
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* The null blocks of a hit are had without being taken: 41 positions are eleven blocks, ten of them
 * hit, so one is new; of the three real ones those that lie free are needed as well. */
START_TEST(null_blocks_count_among_those_hit)
{
    struct pkv_cache *cache = make_groups(12, true, GROUPS(SLIDING(10, 4)));
    struct pkv_seq seq = begin_text(cache, 41), twin = begin_text(cache, 41);
    struct pkv_hit hit;

    admit(cache, &seq);
    end(cache, &seq);
    ck_assert_int_eq(pkv_cache_prepare(cache, &twin, 41, NULL), 0);
    pkv_cache_find_prefix(cache, &twin, &hit);
    ck_assert_uint_eq(hit.num_free_blocks, 3);
    ck_assert_uint_eq(pkv_cache_need(cache, &twin, &hit, 41), 4);
    ck_assert_uint_eq(admit(cache, &twin), 40);
    ck_assert_uint_eq(pkv_seq_num_blocks(&twin), 4);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, 13);
    expect_sound_alone(cache, &twin);
    end(cache, &twin);
    pkv_cache_destroy(cache);
}
END_TEST

/* --- chunked --------------------------------------------------------------------------------- */

/* Chunks of 16: before position 16 is computed the blocks of 0-15 go, before 32 those of 16-31. */
START_TEST(a_chunk_is_given_back_whole)
{
    struct pkv_cache *cache = make_groups(6, false, GROUPS(CHUNKED(16, 4)));
    struct pkv_seq seq = begin_text(cache, 40);

    for (uint32_t p = 1; p <= 40; p++) {
        ck_assert_int_eq(grow_to(cache, &seq, p), PKV_ALLOC_OK);
        ck_assert_uint_eq(seq.tables[0].num_null, p <= 16 ? 0 : p <= 32 ? 4 : 8);
        expect_sound_alone(cache, &seq);
    }
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* Of 41 tokens 40 can be hit, and 32 is the last multiple of 16: blocks 8 and 9 count up to the first
 * miss, those below are not needed. Even a text that nobody has seen begins at its last chunk. */
START_TEST(a_hit_begins_at_the_last_chunk)
{
    struct pkv_cache *cache = make_groups(12, true, GROUPS(CHUNKED(16, 4)));
    struct pkv_seq seq = begin_text(cache, 41);

    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 32);
    ck_assert_uint_eq(hit_of(cache, 16).num_tokens, 0);
    ck_assert_int_eq(grow_to(cache, &seq, 41), PKV_ALLOC_OK);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 40);
    ck_assert_uint_eq(hit_of(cache, 41).num_null[0], 8);
    lose(cache, &seq, 0, 9);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 36);
    lose(cache, &seq, 0, 8);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 32);
    ck_assert_uint_eq(hit_of(cache, 41).num_free_blocks, 0);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* chunk_end: keep. At 16 computed all four blocks have an identity, so the fourth stays; at 20 there
 * are five, and the chunk's four go. Without a cache nothing is kept. */
START_TEST(the_older_engine_keeps_the_last_hashed_block)
{
    for (int caches = 0; caches < 2; caches++) {
        struct pkv_cache_config config =
            cache_config(8, 4, caches, PKV_END_TAIL, PKV_PUBLISH_ALLOC);
        struct pkv_cache *cache;
        struct pkv_seq seq;

        config.groups[0] = (struct pkv_group_config)CHUNKED(16, 4);
        config.keeps_chunk_end = true;
        cache = pkv_cache_create(&config, NULL);
        seq = begin_text(cache, 40);
        grow_to(cache, &seq, 16);
        grow_to(cache, &seq, 17);
        ck_assert_uint_eq(seq.tables[0].num_null, caches ? 3 : 4);
        grow_to(cache, &seq, 20);
        grow_to(cache, &seq, 21);
        ck_assert_uint_eq(seq.tables[0].num_null, 4);
        expect_sound_alone(cache, &seq);
        end(cache, &seq);
        pkv_cache_destroy(cache);
    }
}
END_TEST

/* --- state ----------------------------------------------------------------------------------- */

/* Two blocks from the first token to the last, and not one position in them. */
START_TEST(a_state_never_grows)
{
    struct pkv_cache *cache = make_groups(4, false, GROUPS(STATE(2)));
    struct pkv_seq seq = begin_text(cache, 1000);

    ck_assert_uint_eq(pkv_cache_need(cache, &seq, NULL, 1), 2);
    ck_assert_uint_eq(pkv_cache_need(cache, &seq, NULL, 1000), 2);
    for (uint32_t p = 1; p <= 1000; p += 333) {
        ck_assert_int_eq(grow_to(cache, &seq, p), PKV_ALLOC_OK);
        ck_assert_uint_eq(pkv_cache_num_free(cache), 2);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, 0);
        expect_sound_alone(cache, &seq);
    }
    end(cache, &seq);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 4);
    pkv_cache_destroy(cache);
}
END_TEST

/* --- what is asked for ----------------------------------------------------------------------- */

/* 60 tokens in blocks of 4, at most 24 in a step. Full: 15. Sliding 10: ceil((9 + 24) / 4) + 1 = 10.
 * Chunked 16: ceil((16 + 24) / 4) = 10. State: 2. In one step there is nothing to give back. */
START_TEST(the_most_blocks_of_each_kind)
{
    static const struct { struct pkv_group_config group; uint64_t in_steps, at_once; } rows[] = {
        { FULL(4), 15, 15 }, { SLIDING(10, 4), 10, 15 }, { CHUNKED(16, 4), 10, 15 },
        { STATE(2), 2, 2 } };

    for (size_t i = 0; i < 4; i++) {
        struct pkv_cache *cache = make_groups(20, false, &rows[i].group, 1);

        ck_assert_uint_eq(pkv_cache_blocks_for(cache, 60, 24), rows[i].in_steps);
        ck_assert_uint_eq(pkv_cache_blocks_for(cache, 60, UINT64_MAX), rows[i].at_once);
        pkv_cache_destroy(cache);
    }
}
END_TEST

/* A prompt of 60 on a window of 10 is asked for ten blocks by the gate, as above, so ten blocks are
 * enough for a request of any length and nine are not. One that counts chunks of 8 at most asks for
 * ceil((9 + 8) / 4) + 1 = 6. */
START_TEST(a_request_that_can_never_fit)
{
    static const struct { uint32_t num_blocks, threshold; const char *admit; bool fits; } rows[] = {
        { 10, 0, "whole_prompt", true }, { 9, 0, "whole_prompt", false },
        { 9, 8, "whole_prompt", false }, { 10, 0, "first_chunk", true },
        { 9, 0, "first_chunk", false }, { 6, 8, "first_chunk", true },
        { 5, 8, "first_chunk", false }, { 6, 8, "reserve_max", true } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pkv_sched_config config = base_config(rows[i].num_blocks);
        struct pkv_sched *sched;
        struct pkv_request *r;

        config.groups[0] = (struct pkv_group_config)SLIDING(10, 4);
        config.max_num_batched_tokens = 24;
        config.long_prefill_token_threshold = rows[i].threshold;
        set(&config, PKV_CHOICE_ADMIT, rows[i].admit);
        sched = make_sched(&config);
        r = add(sched, 0, 60, 40, 0);
        ck_assert_int_eq(r->status == PKV_REQUEST_REJECTED, !rows[i].fits);
        if (!rows[i].fits)
            pkv_sched_forget(sched, r);
        for (int n = 0; n < 60 && rows[i].fits; n++) {
            ck_assert_uint_eq(step(sched)->num_preemptions, 0);
            expect_sched_sound(sched);
        }
        ck_assert_uint_eq(pkv_sched_num_running(sched), 0);
        pkv_sched_destroy(sched);
    }
}
END_TEST

/* Window 10, chunks of 4: never more than ceil((9 + 4) / 4) + 1 = 5 blocks. One that holds 3 of
 * 60 positions to come may take 2 more, whatever it has given back. */
START_TEST(what_may_still_come_beside_null_blocks)
{
    struct pkv_cache *cache = make_groups(20, false, GROUPS(SLIDING(10, 4)));
    struct pkv_seq seq = begin_text(cache, 60);

    for (uint32_t p = 1; p <= 24; p++)
        grow_to(cache, &seq, p);
    ck_assert_uint_eq(seq.tables[0].num, 6);
    ck_assert_uint_eq(pkv_seq_num_blocks(&seq), 3);   /* 23 - 9 = 14: three whole blocks are out */
    ck_assert_uint_eq(pkv_cache_need_to_end(cache, &seq, NULL, 60, 4), 2);
    ck_assert_uint_eq(pkv_cache_need_gate(cache, &seq, NULL, 60, 4), 0);
    ck_assert_uint_eq(pkv_cache_need(cache, &seq, NULL, 60), 9);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* A prompt of 9 on a window of 8, then a token a step; the step that brings the positions to p holds
 * what the first table above has for p. It is steady from the second decode on at the latest, as what
 * its prompt left behind goes in the first. A chunk of 6 in blocks of 4 ends at phases that do not
 * come again with the blocks: such a request is walked in every step. */
START_TEST(a_window_decodes_by_phase)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        struct pkv_sched_config config = base_config(8);
        struct pkv_sched *sched;
        uint64_t num_steady = 0;

        config.groups[0] = (struct pkv_group_config)SLIDING(8, 4);
        if (chunked)
            config.groups[0] = (struct pkv_group_config)CHUNKED(6, 4);
        config.max_num_batched_tokens = 12;   /* else it would be asked for all at once */
        sched = make_sched(&config);
        add(sched, 0, 9, 30, 0);
        step(sched);
        for (uint32_t p = 10; p <= 38; p++) {
            uint32_t looked_at = chunked ? (p - 1) / 6 * 6 : p > 8 ? p - 8 : 0;

            num_steady += step(sched)->num_steady;
            expect_sched_sound(sched);
            if (p < 38)   /* the last step gives all back */
                ck_assert_uint_eq(num_used(sched), (p + 3) / 4 - looked_at / 4);
        }
        ck_assert_uint_eq(num_used(sched), 0);
        if (chunked)
            ck_assert_uint_eq(num_steady, 0);
        else
            ck_assert_uint_ge(num_steady, 28);
        pkv_sched_destroy(sched);
    }
}
END_TEST

/* Blocks of 1 and of 40 tokens: at each of 40 lengths a block is taken, more than are listed, so each
 * step is walked; what all need together is then counted without them. */
START_TEST(too_many_phases_are_walked)
{
    struct pkv_sched_config config = base_config(64);
    struct pkv_sched *sched;

    config.groups[0] = (struct pkv_group_config)FULL(1);
    config.groups[1] = (struct pkv_group_config)FULL(40);
    config.num_groups = 2;
    set(&config, PKV_CHOICE_GROW, "whole_batch");
    sched = make_sched(&config);
    add(sched, 0, 9, 35, 0);
    step(sched);
    for (uint32_t p = 10; p < 43; p++) {
        ck_assert_uint_eq(step(sched)->num_steady, 0);
        expect_sched_sound(sched);
        ck_assert_uint_eq(num_used(sched), p + (p > 40 ? 2 : 1));
    }
    step(sched);
    ck_assert_uint_eq(num_used(sched), 0);
    pkv_sched_destroy(sched);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("groups");
    TCase *tests = tcase_create("groups");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_window_of_8_lets_go_at_11_and_15);
    tcase_add_test(tests, what_leaves_the_window_goes_last_block_first);
    tcase_add_test(tests, it_lets_go_even_if_it_gets_nothing);
    tcase_add_test(tests, a_hit_needs_three_blocks_in_a_row);
    tcase_add_test(tests, null_blocks_count_among_those_hit);
    tcase_add_test(tests, a_chunk_is_given_back_whole);
    tcase_add_test(tests, a_hit_begins_at_the_last_chunk);
    tcase_add_test(tests, the_older_engine_keeps_the_last_hashed_block);
    tcase_add_test(tests, a_state_never_grows);
    tcase_add_test(tests, the_most_blocks_of_each_kind);
    tcase_add_test(tests, a_request_that_can_never_fit);
    tcase_add_test(tests, what_may_still_come_beside_null_blocks);
    tcase_add_test(tests, a_window_decodes_by_phase);
    tcase_add_test(tests, too_many_phases_are_walked);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
