/*
 * test_step_groups.c - pages of steps where a request has a block table for each KV group, worked out
 * by hand from what a window keeps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "groups_fixture.h"
#include "step_fixture.h"

static void set_groups(struct walk *w, const struct pkv_group_config *groups, uint32_t num)
{
    memcpy(w->scenario.sched.groups, groups, num * sizeof *groups);
    w->scenario.sched.num_groups = num;
}

/*
 * Twelve blocks, 8 tokens a step. a has 11 prompt tokens and says 4; b has 28 and says 1.
 *
 * Step 0: a's 8 first tokens take 0 1 for full attention and 2 3 for the window. Step 1: its other 3
 * take 4 and 5. The gate asks for all of b: 7 blocks, and for the window, in steps of 8, no more than
 * ceil((7 + 8) / 4) + 1 = 5: 12, though for what is left of the budget, 5 tokens, 2 and 2 would do.
 *
 * Step 2: with 11 positions computed the next one looks back to 4, so that the window's first block,
 * 2, goes back; it is full, has an identity and goes to the tail. Step 3: the 13th position takes 6
 * and 7. a ends with step 4: 0 1 4 6 go back, then 3 5 7, those with an identity last block first to
 * the tail, 6 and then 7, which are not full, to the head.
 *
 * Step 5: the queue is 7 6 8 9 10 11 2 4 1 0 5 3, and b's first 8 tokens take 7 6 and 8 9.
 */
static void ask_pair(struct walk *w)
{
    static const struct pkv_group_config groups[] = { FULL(4), SLIDING(8, 4) };

    begin_walk(w, 12, true);
    set_groups(w, groups, 2);
    w->scenario.sched.max_num_batched_tokens = 8;
    ask(w, "a", 0, 0, 11, 4);
    ask(w, "b", 1, 0, 28, 1);
}

START_TEST(every_group_has_a_table)
{
    struct walk w;

    ask_pair(&w);
    walk(&w);
    expect_has(&w, 0, "\nadmitted    a with 8 tokens of 11, hit 0; took 4 of 12 free blocks\n");
    expect_page(&w, 1,
        "\nStep 1 at 1 ms for 1 ms: 3 tokens, 3 prefill, 0 decode\n"
        "arrived     b with 28 prompt tokens, 1 output token\n"
        "grew        a took blocks 4 5\n"
        "waits       b, first in line: gate: its next chunk would fit, the rest would\n"
        "            not; needs 12 blocks, 6 free; a holds 6\n"
        "pool        12 blocks of 4 tokens: 6 held; 6 free\n"
        "KV groups   full, sliding 8\n"
        "         0  a  a  a  a  a  a  .  .   .  .  .  .\n"
        "            letter: its holder; * shared; : free, content cached; . free\n"
        "free queue  next to be taken first: 6..11\n"
        "running     1 of at most 8, in the order of admission\n"
        "     request  tokens     computed  in last  group    blocks\n"
        "  a  a            +3        11/11      3/4  full     0 1 4\n"
        "                                       3/4  sliding  2 3 5\n"
        "waiting     1, first in line first\n"
        "     request  tokens       blocks  preempted\n"
        "   1 b            28           12          0\n"
        "at its end  2 ms: 1 token comes out, the first of a\n");
    end_walk(&w);
}
END_TEST

START_TEST(what_a_window_has_left_is_null)
{
    struct walk w;

    ask_pair(&w);
    walk(&w);
    expect_page(&w, 2,
        "\nStep 2 at 2 ms for 1 ms: 1 token, 0 prefill, 1 decode\n"
        "waits       b, first in line: gate: its next chunk would fit, the rest would\n"
        "            not; needs 12 blocks, 7 free; a holds 5\n"
        "pool        12 blocks of 4 tokens: 5 held; 7 free, 1 of them cached\n"
        "KV groups   full, sliding 8\n"
        "         0  a  a  :  a  a  a  .  .   .  .  .  .\n"
        "            letter: its holder; * shared; : free, content cached; . free\n"
        "free queue  next to be taken first: 6..11 2:\n"
        "running     1 of at most 8, in the order of admission\n"
        "     request  tokens     computed  in last  group    blocks\n"
        "  a  a            +1        12/12      4/4  full     0 1 4\n"
        "                                       4/4  sliding  1 null 3 5\n"
        "waiting     1, first in line first\n"
        "     request  tokens       blocks  preempted\n"
        "   1 b            28           12          0\n"
        "at its end  3 ms: 1 token comes out\n");
    expect_has(&w, 3, "\ngrew        a took blocks 6 7\n");
    expect_has(&w, 3, "      1/4  sliding  1 null 3 5 7\n");
    expect_has(&w, 4, "\nfinished    a with 4 tokens; gives back 7 blocks\n");
    expect_has(&w, 5, "\nadmitted    b with 8 tokens of 28, hit 0; took 4 of 12 free blocks\n");
    expect_has(&w, 5, "  b  b            +8         8/28      4/4  full     7 6\n"
                      "                                       4/4  sliding  8 9\n");
    expect_has(&w, 5, "\nfree queue  next to be taken first: 10 11 2: 4: 1: 0: 5: 3:\n");
    end_walk(&w);
}
END_TEST

/* Nobody is asked for blocks when the budget is spent: what all of b's tokens would take is counted as its
 * admission would, so 12 again; one that looks at chunks of 4 at most counts 7 and ceil((7 + 4) / 4) + 1. */
START_TEST(what_was_not_asked_for_is_counted_alike)
{
    static const struct { const char *admit, *num_blocks; } rows[] = {
        { "whole_prompt", "12" }, { "first_chunk", "11" } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct walk w;
        char text[128];

        ask_pair(&w);
        w.asked[1].at_ms = 0;
        if (i == 1) {
            w.scenario.sched.long_prefill_token_threshold = 4;
            w.scenario.sched.max_num_batched_tokens = 4;
        }
        set_choice(&w, PKV_CHOICE_ADMIT, rows[i].admit);
        walk(&w);
        snprintf(text, sizeof text, "needs %s", rows[i].num_blocks);
        expect_has(&w, 0, text);
        snprintf(text, sizeof text, "   1 b            28           %s          0\n",
                 rows[i].num_blocks);
        expect_has(&w, 0, text);
        end_walk(&w);
    }
}
END_TEST

/* What does not fit beside goes on below its column. Blocks begin in column 53, so that on 73 columns
 * those of 20 columns have room. a has 0 and 1, and then, with b, two of every four from 6 on. */
START_TEST(a_long_table_goes_on_below_its_beginning)
{
    static const struct pkv_group_config groups[] = { FULL(1), SLIDING(20, 1) };
    struct walk w;

    begin_walk(&w, 40, true);
    set_groups(&w, groups, 2);
    w.style.width = 73;
    ask(&w, "a", 0, 0, 1, 9);
    ask(&w, "b", 0, 0, 2, 9);
    walk(&w);
    expect_has(&w, 7, "  a  a            +1          8/8      1/1  full     0 6 10 14 18 22 26\n"
                      "                                                     30\n"
                      "                                       1/1  sliding  1 7 11 15 19 23 27\n"
                      "                                                     31\n");
    end_walk(&w);
}
END_TEST

/* On 40 columns blocks stand below: those of each group below what its last one holds. */
START_TEST(tables_have_room_on_a_narrow_page)
{
    struct walk w;

    ask_pair(&w);
    w.style.width = 40;
    walk(&w);
    expect_has(&w, 2, "  a  a            +1        12/12      4/4  full\n"
                      "            0 1 4\n"
                      "                                       4/4  sliding\n"
                      "            1 null 3 5\n");
    end_walk(&w);
}
END_TEST

/* 5 positions take 2 blocks, and a state of 2 blocks those it will always have. d, a step later, hits
 * nothing beside a state. */
START_TEST(a_state_holds_no_positions)
{
    static const struct pkv_group_config groups[] = { FULL(4), { &pkv_group_state, 4, 2 } };
    struct walk w;

    begin_walk(&w, 8, true);
    set_groups(&w, groups, 2);
    ask(&w, "c", 0, 4, 1, 2);
    ask(&w, "d", 1, 4, 1, 1);
    walk(&w);
    expect_has(&w, 1, "\nKV groups   full, state 2\n");
    expect_has(&w, 1, "  c  c            +1          6/6      2/4  full     0 1\n"
                      "                                         -  state    2 3\n"
                      "  d  d            +5          5/5      1/4  full     4 5\n"
                      "                                         -  state    6 7\n");
    end_walk(&w);
}
END_TEST

/* Two prompts of 17 tokens, the first 16 the same. c takes 0 to 4 for full attention and 5 to 9 for the
 * window. d hits 16 tokens: of full attention all 4 blocks, of the window the last 2, as the next token
 * looks at 7 positions before it; c's window lets go of nothing before its next token. */
START_TEST(blocks_are_shared_group_by_group)
{
    static const struct pkv_group_config groups[] = { FULL(4), SLIDING(8, 4) };
    struct walk w;

    begin_walk(&w, 16, true);
    set_groups(&w, groups, 2);
    ask(&w, "c", 0, 16, 1, 3);
    ask(&w, "d", 0, 16, 1, 3);
    walk(&w);
    expect_has(&w, 0, "\nadmitted    c with 17 tokens, hit 0; took 10 of 16 free blocks\n"
                      "            d with 1 token, hit 16; took 2 of 6 free blocks\n");
    expect_has(&w, 0, "\nshared      0..3 by 2: c d; 7 8 by 2: c d\n");
    expect_has(&w, 0, "full     0..3* 4\n"
                      "                                       1/4  sliding  5 6 7* 8* 9\n");
    expect_has(&w, 0, "full     0..3* 10\n"
                      "                                       1/4  sliding  2 null 7* 8* 11\n");
    end_walk(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_groups");
    TCase *c = tcase_create("step_groups");
    SRunner *runner;
    int failed;

    tcase_add_test(c, every_group_has_a_table);
    tcase_add_test(c, what_a_window_has_left_is_null);
    tcase_add_test(c, what_was_not_asked_for_is_counted_alike);
    tcase_add_test(c, a_long_table_goes_on_below_its_beginning);
    tcase_add_test(c, tables_have_room_on_a_narrow_page);
    tcase_add_test(c, a_state_holds_no_positions);
    tcase_add_test(c, blocks_are_shared_group_by_group);
    suite_add_tcase(suite, c);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
