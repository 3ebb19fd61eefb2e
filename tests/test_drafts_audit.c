/*
 * test_drafts_audit.c - the invariants that drafts touch, broken by hand: S3 and S9 of sched.h, C6 of
 * cache.h.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "cache/cache_private.h"
#include "sched/sched_private.h"
#include "sched_fixture.h"

/* Blocks of 4, three drafts of a draft model, none of them right. */
static struct pkv_sched_config draft_config(void)
{
    struct pkv_sched_config config = base_config(20);

    config.groups[0].block_size = 4;
    config.speculation.method = PKV_SPECULATION_DRAFT_MODEL;
    config.speculation.num_tokens = 3;
    return config;
}

static void expect_broken(struct pkv_sched *sched, const char *id)
{
    struct pkv_err err = { 0 };

    ck_assert_int_eq(pkv_sched_check(sched, &err), -1);
    ck_assert_msg(strncmp(err.text, id, strlen(id)) == 0, "expected %s, got '%s'", id, err.text);
}

START_TEST(s3_computed_beyond_the_drafts)
{
    struct pkv_sched_config config = draft_config();
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *r = add(sched, 0, 6, 9, 0);
    struct pkv_plan *plan;

    step(sched);
    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    expect_sched_sound(sched);   /* 7 known, 3 drafts, 10 computed */
    r->seq.num_known_tokens--;
    expect_broken(sched, "S3");
    r->seq.num_known_tokens++;
    pkv_sched_commit(sched, plan);
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(s9_drafts_of_nobody_and_too_few)
{
    struct pkv_sched_config config = draft_config();
    struct pkv_sched *sched;
    struct pkv_request *runs, *waits;

    config.max_num_seqs = 1;
    sched = make_sched(&config);
    runs = add(sched, 0, 6, 9, 0);
    waits = add(sched, 1, 6, 9, 0);
    step(sched);
    waits->num_drafts = 3;
    expect_broken(sched, "S9");
    waits->num_drafts = 0;
    runs->num_drafts = 2;
    expect_broken(sched, "S9");
    runs->num_drafts = 3;
    expect_sched_sound(sched);
    pkv_sched_destroy(sched);
}
END_TEST

/* 7 computed, and 6 ahead at most: 13 positions are 4 blocks, a fifth is too many. */
START_TEST(c6_more_blocks_than_the_positions_ahead_need)
{
    struct pkv_sched_config config = draft_config();
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *r = add(sched, 0, 6, 9, 0);
    struct pkv_table *table = &r->seq.tables[0];

    step(sched);
    step(sched);
    ck_assert_uint_eq(table->num, 4);
    ck_assert_uint_ge(table->capacity, 5);
    ck_assert_int_eq(pkv_pool_take(sched->cache->pool, 1, &table->ids[4]), PKV_ALLOC_OK);
    table->num = 5;
    expect_broken(sched, "C6");
    pkv_sched_destroy(sched);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drafts_audit");
    TCase *tests = tcase_create("drafts_audit");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, s3_computed_beyond_the_drafts);
    tcase_add_test(tests, s9_drafts_of_nobody_and_too_few);
    tcase_add_test(tests, c6_more_blocks_than_the_positions_ahead_need);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
