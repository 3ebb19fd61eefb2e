/*
 * test_swap_audit.c - the invariants of swapping, each broken by hand.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "cache/cache_private.h"
#include "sched/sched_private.h"
#include "sched_fixture.h"

static struct pkv_sched *broken;
static struct pkv_request *runner, *gone;

/* Row 1 is on its way out with 2 of 4 blocks. */
static void set_up(void)
{
    struct pkv_sched_config config = base_config(4);

    set(&config, PKV_CHOICE_ON_PREEMPT, "swap");
    config.swap = (struct pkv_swap_config){
        .num_host_blocks = 8, .bytes_per_token = 1, .link = { .bytes_per_s = 1 } };
    broken = make_sched(&config);
    runner = add(broken, 0, 32, 17, 0);
    gone = add(broken, 1, 30, 10, 0);
    step(broken);
    step(broken);
    ck_assert_uint_eq(gone->status, PKV_REQUEST_SWAPPED);
}

/* What was broken is mended by then. */
static void tear_down(void)
{
    expect_sched_sound(broken);
    pkv_sched_destroy(broken);
}

static void expect_broken(const char *id)
{
    struct pkv_err err = { 0 };

    ck_assert_int_eq(pkv_sched_check(broken, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_AUDIT);
    ck_assert_msg(strncmp(err.text, id, strlen(id)) == 0 && err.text[strlen(id)] == ':',
                  "expected %s, got '%s'", id, err.text);
}

/* Row 0 ends, and row 1 is on its way back. */
static void bring_back(void)
{
    pkv_sched_transfer_done(broken);
    while (gone->status == PKV_REQUEST_SWAPPED)
        step(broken);
    ck_assert_uint_eq(gone->status, PKV_REQUEST_RESUMING);
}

START_TEST(c1_block_lost_by_a_transfer)
{
    pkv_block_id *id = &broken->cache->transfers[0].held.ids[0], kept = *id;

    *id = PKV_BLOCK_NULL;
    expect_broken("C1");
    *id = kept;
}
END_TEST

START_TEST(c5_positions_lost_by_a_transfer)
{
    broken->cache->transfers[0].num_positions--;
    expect_broken("C5");
    broken->cache->transfers[0].num_positions++;
}
END_TEST

START_TEST(c10_copy_not_counted)
{
    broken->cache->num_host_used--;
    expect_broken("C10");
    broken->cache->num_host_used++;
}
END_TEST

START_TEST(c10_more_copies_than_room)
{
    broken->cache->num_host_blocks = 1;
    expect_broken("C10");
    broken->cache->num_host_blocks = 8;
}
END_TEST

START_TEST(c10_copy_of_no_block)
{
    gone->seq.copies.ids[1] = 2;
    expect_broken("C10");
    gone->seq.copies.ids[1] = 1;
}
END_TEST

START_TEST(s1_preempted_one_is_swapped)
{
    gone->status = PKV_REQUEST_RESUMING;
    expect_broken("S1");
    gone->status = PKV_REQUEST_SWAPPED;
}
END_TEST

START_TEST(s1_resuming_one_runs)
{
    bring_back();
    gone->status = PKV_REQUEST_RUNNING;
    gone->seq.copies.num = 0;
    expect_broken("S1");
    gone->seq.copies.num = 2;
    gone->status = PKV_REQUEST_RESUMING;
}
END_TEST

START_TEST(s4_resuming_one_counts)
{
    bring_back();
    broken->max_seqs = 0;
    expect_broken("S4");
    broken->max_seqs = UINT64_MAX;
}
END_TEST

START_TEST(s10_copies_of_one_that_runs)
{
    runner->seq.copies.num = 1;
    expect_broken("S10");
    runner->seq.copies.num = 0;
}
END_TEST

START_TEST(s10_swapped_one_without_copies)
{
    gone->status = PKV_REQUEST_PREEMPTED;
    expect_broken("S10");
    gone->status = PKV_REQUEST_SWAPPED;
}
END_TEST

START_TEST(s10_transfer_of_the_cache_alone)
{
    broken->swap.num_transfers--;
    expect_broken("S10");
    broken->swap.num_transfers++;
}
END_TEST

START_TEST(s10_transfer_in_of_another)
{
    bring_back();
    broken->swap.transfers[0].is_out = true;
    expect_broken("S10");
    broken->swap.transfers[0].is_out = false;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("swap_audit");
    TCase *all = tcase_create("all");
    SRunner *srunner;
    int num_failed;

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, c1_block_lost_by_a_transfer);
    tcase_add_test(all, c5_positions_lost_by_a_transfer);
    tcase_add_test(all, c10_copy_not_counted);
    tcase_add_test(all, c10_more_copies_than_room);
    tcase_add_test(all, c10_copy_of_no_block);
    tcase_add_test(all, s1_preempted_one_is_swapped);
    tcase_add_test(all, s1_resuming_one_runs);
    tcase_add_test(all, s4_resuming_one_counts);
    tcase_add_test(all, s10_copies_of_one_that_runs);
    tcase_add_test(all, s10_swapped_one_without_copies);
    tcase_add_test(all, s10_transfer_of_the_cache_alone);
    tcase_add_test(all, s10_transfer_in_of_another);
    suite_add_tcase(suite, all);
    srunner = srunner_create(suite);
    srunner_run_all(srunner, CK_ENV);
    num_failed = srunner_ntests_failed(srunner);
    srunner_free(srunner);
    return num_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
