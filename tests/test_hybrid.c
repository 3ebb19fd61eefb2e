/*
 * test_hybrid.c - several KV groups on one pool: hits that hold for all of them, blocks of different
 * sizes, second identities, the order of giving back, forks, and invariants broken by hand.
 *
 * All numbers are worked by hand, in the comments.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "groups_fixture.h"
#include "scenario_fixture.h"

/* Full and sliding 10, blocks of 4, 40 tokens cached in both. Without full block 8 the first 32 are
 * left, which the window's blocks 5 6 7 reach. Without its block 7 the window has 4 5 6, so 28; full
 * blocks below that are all there. */
START_TEST(a_hit_holds_for_every_group)
{
    struct pkv_cache *cache = make_groups(30, true, GROUPS(FULL(4), SLIDING(10, 4)));
    struct pkv_seq seq = begin_text(cache, 41);
    struct pkv_hit hit;

    admit(cache, &seq);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 40);
    lose(cache, &seq, 0, 8);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 32);
    lose(cache, &seq, 1, 7);
    hit = hit_of(cache, 41);
    ck_assert_uint_eq(hit.num_tokens, 28);
    ck_assert_uint_eq(hit.num_blocks[0], 7);
    ck_assert_uint_eq(hit.num_null[0], 0);
    ck_assert_uint_eq(hit.num_blocks[1], 7);
    ck_assert_uint_eq(hit.num_null[1], 4);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* It goes round: sliding 6 (two blocks in a row) beside chunks of 16. Both have 0 to 39. Without the
 * window's block 9 it ends at 36, where the chunk has block 8. Without block 8 of the chunk that
 * falls to 32, where the chunk needs nothing and the window 6 and 7. Without 7 the window falls to
 * 28; there the chunk needs 4 to 6, and without 6 of them both end at 24. */
START_TEST(groups_shorten_each_other)
{
    struct pkv_cache *cache = make_groups(30, true, GROUPS(SLIDING(6, 4), CHUNKED(16, 4)));
    struct pkv_seq seq = begin_text(cache, 41);

    ck_assert_int_eq(grow_to(cache, &seq, 41), PKV_ALLOC_OK);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 40);
    lose(cache, &seq, 0, 9);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 36);
    lose(cache, &seq, 1, 8);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 32);
    lose(cache, &seq, 0, 7);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 28);
    lose(cache, &seq, 1, 6);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 24);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* Full blocks of 8 and sliding 10 in blocks of 4: hits and hashed blocks end at multiples of 8. Of 44
 * positions five full and ten sliding blocks are hashed, 40-43 waits. Without full block 4 a hit ends
 * at 32; without sliding 28-31 the next run that ends at a multiple of 8 is 12-23. */
START_TEST(hits_are_multiples_of_8)
{
    struct pkv_cache *cache = make_groups(30, true, GROUPS(FULL(8), SLIDING(10, 4)));
    struct pkv_seq seq = begin_text(cache, 44);

    ck_assert_uint_eq(cache->unit, 4);
    ck_assert_uint_eq(cache->align, 8);
    admit(cache, &seq);
    ck_assert_uint_eq(seq.tables[0].num_published, 5);
    ck_assert_uint_eq(seq.tables[1].num_published, 10);
    ck_assert_uint_eq(seq.tables[1].num, 11);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 40);
    ck_assert_uint_eq(hit_of(cache, 40).num_tokens, 32);
    lose(cache, &seq, 0, 4);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 32);
    lose(cache, &seq, 1, 7);
    ck_assert_uint_eq(hit_of(cache, 41).num_tokens, 24);
    ck_assert_uint_eq(hit_of(cache, 41).num_null[1], 3);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* Blocks of 6 and 4: units of 2, common ends at 12 and 24. A window of 5 needs one block, so of the six
 * sliding blocks below 24 only those that end at 12 and at 24 are hashed: 4 + 2 keys. */
START_TEST(a_window_hashes_what_a_hit_can_use)
{
    struct pkv_cache *cache = make_groups(30, true, GROUPS(FULL(6), SLIDING(5, 4)));
    struct pkv_seq seq = begin_text(cache, 26);

    admit(cache, &seq);
    ck_assert_uint_eq(cache->unit, 2);
    ck_assert_uint_eq(cache->align, 12);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 6);
    for (uint32_t i = 0; i < 7; i++)
        ck_assert_int_eq(cache_has_key(cache, seq.tables[1].ids[i]), i == 2 || i == 5);
    ck_assert_uint_eq(hit_of(cache, 26).num_tokens, 24);
    ck_assert_uint_eq(hit_of(cache, 24).num_tokens, 12);
    expect_sound_alone(cache, &seq);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* Full 8, sliding 10 in blocks of 4. A prompt of 13: below 8 are one full and two sliding blocks, 3
 * keys. Three tokens on, at 16, come one and two more; the prompt ends inside full block 1 after the
 * unit 8-11, so that block has a second one: 3 + 3 + 1. A prompt of 11 has no whole unit in it, and
 * one of 16 ends with it: 6 keys. The second goes with the block. */
START_TEST(a_prompts_end_gives_a_second_identity)
{
    static const struct { uint32_t prompt, num_keys; } rows[] = {
        { 13, 7 }, { 12, 7 }, { 11, 6 }, { 15, 7 }, { 16, 6 } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pkv_cache *cache = make_groups(8, true, GROUPS(FULL(8), SLIDING(10, 4)));
        struct pkv_seq seq = begin_text(cache, rows[i].prompt);
        pkv_block_id all[8];

        admit(cache, &seq);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, rows[i].prompt < 16 ? 3 : 6);
        while (seq.num_known_tokens < 16)
            emit(cache, &seq);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, rows[i].num_keys);
        expect_sound_alone(cache, &seq);
        end(cache, &seq);
        cache_take(cache, 8, all);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 0);
        ck_assert_uint_eq(pkv_cache_figures(cache).num_evicted, 6);
        pkv_cache_destroy(cache);
    }
}
END_TEST

/* Ten tokens: blocks 0 1 2 in the first group, 3 4 5 in the second; the last of each is not full. First
 * group: 1 and 0 to the tail, 2 to the head; then the second: 4 and 3 to the tail, 5 before 2. */
START_TEST(groups_are_given_back_one_after_another)
{
    struct pkv_cache *cache = make_groups(8, true, GROUPS(FULL(4), SLIDING(10, 4)));
    struct pkv_seq seq = begin_text(cache, 10);

    admit(cache, &seq);
    expect_free(cache, "6 7");
    end(cache, &seq);
    expect_free(cache, "5 2 6 7 1 0 4 3");
    pkv_cache_destroy(cache);
}
END_TEST

/* Nothing is hit beside a state, though every full block is cached. Nine tokens: 3 + 2 blocks. */
START_TEST(a_state_answers_no_look_up)
{
    struct pkv_cache *cache = make_groups(12, true, GROUPS(FULL(4), STATE(2)));
    struct pkv_seq seq = begin_text(cache, 9);

    admit(cache, &seq);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 7);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 2);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_stored, 9);
    ck_assert_uint_eq(hit_of(cache, 9).num_tokens, 0);
    ck_assert_uint_eq(hit_of(cache, 9).num_blocks[0], 0);
    expect_sound_alone(cache, &seq);
    end(cache, &seq);
    pkv_cache_destroy(cache);
}
END_TEST

/* Window 4 at ten positions: block 0 is out, so the parent holds full 0-2, sliding 1-2 and two state
 * blocks: 7. The child shares them. Its 11th token is written into the third full and sliding block and
 * over the state: 2 + 2 copies. The parent then writes in place. */
START_TEST(a_fork_copies_what_it_writes_into)
{
    struct pkv_cache *cache = make_groups(16, true, GROUPS(FULL(4), SLIDING(4, 4), STATE(2)));
    struct pkv_seq parent = begin_text(cache, 10), child = begin_text(cache, 10);
    const struct pkv_seq *const both[] = { &parent, &child };

    grow_to(cache, &parent, 8);
    grow_to(cache, &parent, 10);
    ck_assert_uint_eq(pkv_seq_num_blocks(&parent), 7);
    ck_assert_int_eq(pkv_cache_fork(cache, &parent, &child, NULL), 0);
    expect_sound(cache, both, 2);
    ck_assert_uint_eq(pkv_cache_need(cache, &child, NULL, 11), 4);
    emit(cache, &child);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_copied, 4);
    expect_sound(cache, both, 2);
    emit(cache, &parent);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_copied, 4);
    expect_sound(cache, both, 2);
    end(cache, &child);
    end(cache, &parent);
    ck_assert_uint_eq(pkv_cache_num_free(cache), 16);
    pkv_cache_destroy(cache);
}
END_TEST

/* Full 8, sliding 10 in blocks of 4, all of 24 positions scheduled and then cancelled back to 12: what
 * is not wholly below loses its identity, full 1 and 2 (one of them with a second), sliding 3 to 5. */
START_TEST(cancelled_tokens_lose_their_identities)
{
    struct pkv_cache *cache = make_groups(12, true, GROUPS(FULL(8), SLIDING(10, 4)));
    struct pkv_seq seq = begin_text(cache, 24), other;

    admit(cache, &seq);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 9);
    pkv_cache_unpublish(cache, &seq, 12);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 4);
    expect_sound_alone(cache, &seq);
    ck_assert_uint_eq(hit_of(cache, 24).num_tokens, 8);
    end(cache, &seq);
    other = begin_text(cache, 14);   /* with a second identity, once it is 16 long */
    ck_assert_uint_eq(admit(cache, &other), 8);
    emit(cache, &other);
    emit(cache, &other);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 4 + 3 + 1 - 1);   /* sliding 2 is there twice */
    pkv_cache_unpublish(cache, &other, 12);
    ck_assert_uint_eq(pkv_cache_figures(cache).num_keys, 4);
    expect_sound_alone(cache, &other);
    end(cache, &other);
    pkv_cache_destroy(cache);
}
END_TEST

/* What the refused look-up at the head of the queue found stands until something that it could see
 * changes; beside windows that is any block with an identity. */
START_TEST(a_change_anywhere_raises_the_version)
{
    struct pkv_cache *cache = make_groups(12, true, GROUPS(FULL(4), SLIDING(6, 4)));
    struct pkv_seq seq = begin_text(cache, 9), waiting = begin_text(cache, 20);
    struct pkv_hit hit;
    uint64_t version;

    ck_assert_int_eq(pkv_cache_prepare(cache, &waiting, 20, NULL), 0);
    for (int i = 0; i < 2; i++) {
        pkv_cache_find_prefix(cache, &waiting, &hit);
        pkv_cache_watch(cache, &waiting, &hit);
        version = pkv_cache_version(cache);
        if (i == 0)
            admit(cache, &seq);
        else
            end(cache, &seq);
        ck_assert_uint_ne(pkv_cache_version(cache), version);
    }
    pkv_seq_finish(cache, &waiting);
    pkv_cache_destroy(cache);
}
END_TEST

/* --- broken by hand -------------------------------------------------------------------------- */

static struct pkv_cache *broken;
static struct pkv_seq whole;

/* Full 8 and sliding 6 in blocks of 4. A prompt of 13 grown to 21: full 0-2 with a second identity at
 * block 1, sliding 0 to 5, of which the blocks below 20 - 5 = 15, that is three, are null. */
static void set_up(void)
{
    broken = make_groups(16, true, GROUPS(FULL(8), SLIDING(6, 4)));
    whole = begin_text(broken, 13);
    admit(broken, &whole);
    while (whole.num_known_tokens < 21)
        emit(broken, &whole);
    expect_sound_alone(broken, &whole);
    ck_assert_uint_eq(whole.tables[1].num_null, 3);
}

static void tear_down(void)
{
    expect_sound_alone(broken, &whole);
    end(broken, &whole);
    pkv_cache_destroy(broken);
}

static void expect_broken(const char *id)
{
    const struct pkv_seq *seqs[] = { &whole };
    struct pkv_err err = { 0 };

    ck_assert_int_eq(pkv_cache_check(broken, seqs, 1, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_AUDIT);
    ck_assert_msg(strncmp(err.text, id, strlen(id)) == 0, "%s, not %s", err.text, id);
}

START_TEST(c8_null_blocks)
{
    struct pkv_table *table = &whole.tables[1];
    pkv_block_id id = table->ids[4], other = table->ids[3];

    table->num_null = 2;
    expect_broken("C8");
    table->num_null = 3;
    table->ids[4] = PKV_BLOCK_NULL;   /* not at the beginning */
    expect_broken("C8");
    table->num_null = 4;
    expect_broken("C8");
    table->num_null = 5;              /* at the beginning, and 16 is still looked at */
    table->ids[3] = PKV_BLOCK_NULL;
    expect_broken("C8");
    table->ids[3] = other;
    table->ids[4] = id;
    table->num_null = 3;
    whole.tables[0].ids[0] = PKV_BLOCK_NULL;
    whole.tables[0].num_null = 1;     /* full attention has no window */
    expect_broken("C8");
    whole.tables[0].ids[0] = 0;
    whole.tables[0].num_null = 0;
}
END_TEST

START_TEST(c9_a_second_identity_without_a_first)
{
    pkv_block_id id = whole.tables[0].ids[2];   /* not full, so without any */

    prefix_index_insert(&broken->second, id, 77);
    expect_broken("C9");
    prefix_index_remove(&broken->second, id);
}
END_TEST

START_TEST(c2_c3_of_the_second_index)
{
    struct index_record *record = &broken->second.records[whole.tables[0].ids[1]];

    ck_assert_uint_ne(record->key, PKV_NO_KEY);
    broken->second.num_keys++;
    expect_broken("C3");
    broken->second.num_keys--;
    record->key ^= 1;
    expect_broken("C2");
    record->key ^= 1;
}
END_TEST

START_TEST(c1_c5_c6_c7_of_a_window)
{
    struct pkv_table *table = &whole.tables[1];
    pkv_block_id id = table->ids[3];

    pkv_pool_ref(broken->pool, id);
    expect_broken("C1");
    pkv_pool_unref(broken->pool, &id, 1, PKV_END_TAIL, NULL, &id);
    ck_assert_uint_eq(broken->num_stored, 21 + 9);
    broken->num_stored--;
    expect_broken("C5");
    broken->num_stored++;
    table->num--;
    expect_broken("C6");
    table->num++;
    table->num_published = 3;   /* 12-15 has an identity */
    expect_broken("C7");
    table->num_published = 4;
}
END_TEST

/* --- scenarios ------------------------------------------------------------------------------- */

/* Own sizes stand above the general one of the same layer, and --set above both; what is written out
 * reads back to the same. */
START_TEST(a_scenario_says_groups)
{
    static const char text[] =
        "kv:\n  num_blocks: 9\n  block_size: 32\n  groups: [{type: full}, {type: sliding, window: 1024, "
        "block_size: 16}, {type: chunked, chunk: 8192}, {type: state, blocks: 2}]\n"
        "traffic: {trace: t}\n";
    struct pkv_scenario *s = fixture_load(text, NULL, 0);
    char *resolved = pkv_scenario_resolved(s, NULL);

    ck_assert_uint_eq(s->sched.num_groups, 4);
    ck_assert_ptr_eq(s->sched.groups[1].ops, &pkv_group_sliding);
    ck_assert_uint_eq(s->sched.groups[1].size, 1024);
    ck_assert_uint_eq(s->sched.groups[1].block_size, 16);
    ck_assert_uint_eq(s->sched.groups[2].block_size, 32);
    ck_assert_uint_eq(s->sched.groups[3].size, 2);
    ck_assert_ptr_nonnull(strstr(resolved, "  block_size: 32\n"));
    ck_assert_ptr_nonnull(strstr(resolved, "  groups: [{type: full}, {type: sliding, window: 1024, "
                                 "block_size: 16}, {type: chunked, chunk: 8192}, "
                                 "{type: state, blocks: 2}]\n"));
    pkv_scenario_free_text(resolved);
    pkv_scenario_destroy(s);
    s = fixture_load_set(text, (const char *const[]){ "kv.block_size", "64", NULL });
    for (uint32_t g = 0; g < 4; g++)
        ck_assert_uint_eq(s->sched.groups[g].block_size, 64);
    pkv_scenario_destroy(s);
    s = fixture_load_set(text, (const char *const[]){ "kv.groups", "[{type: state, blocks: 1}]",
                                                      NULL });
    ck_assert_uint_eq(s->sched.num_groups, 1);
    ck_assert_uint_eq(s->sched.groups[0].block_size, 32);
    pkv_scenario_destroy(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hybrid");
    TCase *tests = tcase_create("hybrid"), *invariants = tcase_create("invariants");
    TCase *scenarios = tcase_create("scenarios");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_hit_holds_for_every_group);
    tcase_add_test(tests, groups_shorten_each_other);
    tcase_add_test(tests, hits_are_multiples_of_8);
    tcase_add_test(tests, a_window_hashes_what_a_hit_can_use);
    tcase_add_test(tests, a_prompts_end_gives_a_second_identity);
    tcase_add_test(tests, groups_are_given_back_one_after_another);
    tcase_add_test(tests, a_state_answers_no_look_up);
    tcase_add_test(tests, a_fork_copies_what_it_writes_into);
    tcase_add_test(tests, cancelled_tokens_lose_their_identities);
    tcase_add_test(tests, a_change_anywhere_raises_the_version);
    tcase_add_checked_fixture(invariants, set_up, tear_down);
    tcase_add_test(invariants, c8_null_blocks);
    tcase_add_test(invariants, c9_a_second_identity_without_a_first);
    tcase_add_test(invariants, c2_c3_of_the_second_index);
    tcase_add_test(invariants, c1_c5_c6_c7_of_a_window);
    tcase_add_checked_fixture(scenarios, fixture_begin, fixture_end);
    tcase_add_test(scenarios, a_scenario_says_groups);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, invariants);
    suite_add_tcase(suite, scenarios);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
