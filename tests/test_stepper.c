/*
 * test_stepper.c - pages of steps on pools of a few blocks, each worked out by hand from the rules
 * before it was compared; where runs pause; and what becomes of them without memory.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "model/random_run.h"
#include "step_fixture.h"

/* ---- sharing, and free blocks that are still cached ---- */

/*
 * Six blocks. a has the 4 common tokens and 1 of its own: blocks 0 1 2, of which 0 and 1 are full and
 * have an identity. b, the same a step later, hits them: 4 of its 5 tokens, one block more, 3.
 *
 * Step 2: a stores its 7th position and takes block 4; b its 6th, which fills block 3. Both end. a
 * goes first, last block first among those with an identity: 2 becomes free and goes to the tail,
 * 1 and 0 are still b's; 4, which is not full, goes to the head. Then b: 3, 1, 0 to the tail. The
 * queue was 5, and is now 4 5 2 3 1 0.
 *
 * Step 3: c takes 4 and 5 for 3 tokens. It ends with its first token: 4, full, goes to the tail, 5,
 * half full, to the head: 5 2 3 1 0 4.
 *
 * Step 4: d has the common 4 and 3 of its own. It hits 0 and 1, which lie free, and takes 5 and 2;
 * block 2 had an identity. 3 and 4 are left, both with one.
 */
static void ask_sharers(struct walk *w)
{
    begin_walk(w, 6, true);
    ask(w, "a", 0, 4, 1, 3);
    ask(w, "b", 1, 4, 1, 2);
    ask(w, "c", 3, 0, 3, 1);
    ask(w, "d", 4, 4, 3, 1);
}

START_TEST(shared_blocks_are_marked_with_their_holders)
{
    struct walk w;

    ask_sharers(&w);
    walk(&w);
    ck_assert_uint_eq(w.num_pages, 5);
    expect_page(&w, 1,
        "\nStep 1 at 1 ms for 1 ms: 2 tokens, 0 prefill, 2 decode\n"
        "arrived     b with 5 prompt tokens, 2 output tokens\n"
        "admitted    b with 1 token, hit 4; took 1 of 3 free blocks\n"
        "pool        6 blocks of 2 tokens: 4 held, 2 of them shared; 2 free\n"
        "         0  a* a* a  b  .  .\n"
        "            letter: its holder; * shared; : free, content cached; . free\n"
        "shared      0 1 by 2: a b\n"
        "free queue  next to be taken first: 4 5\n"
        "running     2 of at most 8, in the order of admission\n"
        "     request  tokens     computed  in last  blocks\n"
        "  a  a            +1          6/6      2/2  0* 1* 2\n"
        "  b  b            +1          5/5      1/2  0* 1* 3\n"
        "waiting     0\n"
        "at its end  2 ms: 2 tokens come out, the first of b\n");
    end_walk(&w);
}
END_TEST

START_TEST(what_ends_with_a_step_is_told_below_its_state)
{
    struct walk w;

    ask_sharers(&w);
    walk(&w);
    expect_page(&w, 2,
        "\nStep 2 at 2 ms for 1 ms: 2 tokens, 0 prefill, 2 decode\n"
        "grew        a took block 4\n"
        "pool        6 blocks of 2 tokens: 5 held, 2 of them shared; 1 free\n"
        "         0  a* a* a  b  a  .\n"
        "            letter: its holder; * shared; : free, content cached; . free\n"
        "shared      0 1 by 2: a b\n"
        "free queue  next to be taken first: 5\n"
        "running     2 of at most 8, in the order of admission\n"
        "     request  tokens     computed  in last  blocks\n"
        "  a  a            +1          7/7      1/2  0* 1* 2 4\n"
        "  b  b            +1          6/6      2/2  0* 1* 3\n"
        "waiting     0\n"
        "at its end  3 ms: 2 tokens come out\n"
        "finished    a with 3 tokens; gives back 4 blocks\n"
        "            b with 2 tokens; gives back 3 blocks\n");
    end_walk(&w);
}
END_TEST

START_TEST(free_blocks_keep_their_content_until_taken)
{
    struct walk w;

    ask_sharers(&w);
    walk(&w);
    expect_has(&w, 3, "pool        6 blocks of 2 tokens: 2 held; 4 free, 4 of them cached\n"
                      "         0  :  :  :  :  c  c\n");
    expect_has(&w, 3, "free queue  next to be taken first: 2: 3: 1: 0:\n");
    expect_has(&w, 3, "  c  c            +3          3/3      1/2  4 5\n");
    expect_page(&w, 4,
        "\nStep 4 at 4 ms for 1 ms: 3 tokens, 3 prefill, 0 decode\n"
        "arrived     d with 7 prompt tokens, 1 output token\n"
        "admitted    d with 3 tokens, hit 4; took 4 of 6 free blocks\n"
        "evicted     block 2: its cached content is lost to the taker\n"
        "pool        6 blocks of 2 tokens: 4 held; 2 free, 2 of them cached\n"
        "         0  d  d  d  :  :  d\n"
        "            letter: its holder; * shared; : free, content cached; . free\n"
        "free queue  next to be taken first: 3: 4:\n"
        "running     1 of at most 8, in the order of admission\n"
        "     request  tokens     computed  in last  blocks\n"
        "  d  d            +3          7/7      1/2  0 1 5 2\n"
        "waiting     0\n"
        "at its end  5 ms: 1 token comes out, the first of d\n"
        "finished    d with 1 token; gives back 4 blocks\n");
    end_walk(&w);
}
END_TEST

/* The same step, about b: a's blocks are another's, those they share are b's. */
START_TEST(a_page_may_be_about_one_request)
{
    struct walk w;

    ask_sharers(&w);
    w.only = "b";
    walk(&w);
    expect_page(&w, 0,
        "\nStep 0 at 0 ms for 1 ms: 5 tokens, 5 prefill, 0 decode\n"
        "only        request b, which neither runs nor waits\n"
        "pool        6 blocks of 2 tokens: 3 held; 3 free\n"
        "         0  +  +  +  .  .  .\n"
        "            letter: its own; + others'; * shared; : free, content cached; . free\n"
        "free queue  next to be taken first: 3..5\n"
        "running     1 of at most 8, in the order of admission\n"
        "waiting     0\n"
        "at its end  1 ms: 1 token comes out\n");
    expect_has(&w, 2, "\nonly        request b\npool        6 blocks");
    expect_has(&w, 2, "         0  b* b* +  b  +  .\n");
    expect_has(&w, 2, "shared      0 1 by 2: a b\n");
    expect_has(&w, 2, "  b  b            +1          6/6      2/2  0* 1* 3\nwaiting");
    expect_has(&w, 2, "\nfinished    b with 2 tokens; gives back 3 blocks\n");
    expect_lacks(&w, 2, "grew");
    end_walk(&w);
}
END_TEST

/* ---- preemption ---- */

/*
 * Four blocks, no prefix cache. a and b have 3 prompt tokens and so two blocks each. In step 2 a
 * stores its 5th position: the newest, b, is given up with its 4 positions, blocks 3 and 2 become free
 * in that order, a takes 3. b needs 3 blocks for 3 prompt and 2 emitted tokens. In step 3 there is 1.
 * a ends; its blocks go back as 3, 1, 0 behind block 2, and b takes 2, 3 and 1.
 */
static void ask_rivals(struct walk *w)
{
    begin_walk(w, 4, false);
    ask(w, "a", 0, 0, 3, 4);
    ask(w, "b", 0, 0, 3, 3);
}

START_TEST(a_preemption_is_told_with_its_cost)
{
    struct walk w;

    ask_rivals(&w);
    walk(&w);
    ck_assert_uint_eq(w.num_pages, 5);
    expect_page(&w, 2,
        "\nStep 2 at 2 ms for 1 ms: 1 token, 0 prefill, 1 decode\n"
        "preempted   b for a, which was short of a block (preempt: newest); lost 4\n"
        "            computed tokens, 2 blocks became free\n"
        "grew        a took block 3\n"
        "waits       b, first in line: preempted: running requests gave up blocks; needs\n"
        "            3 blocks, 1 free; a holds 3\n"
        "pool        4 blocks of 2 tokens: 3 held; 1 free\n"
        "         0  a  a  .  a\n"
        "            letter: its holder; * shared; : free, content cached; . free\n"
        "free queue  next to be taken first: 2\n"
        "running     1 of at most 8, in the order of admission\n"
        "     request  tokens     computed  in last  blocks\n"
        "  a  a            +1          5/5      1/2  0 1 3\n"
        "waiting     1, first in line first\n"
        "     request  tokens       blocks  preempted\n"
        "   1 b             5            3          1\n"
        "at its end  3 ms: 1 token comes out\n");
    end_walk(&w);
}
END_TEST

START_TEST(a_wait_is_told_in_every_step_and_so_is_its_end)
{
    struct walk w;

    ask_rivals(&w);
    walk(&w);
    expect_has(&w, 3, "waits       b, first in line: blocks: its next chunk did not fit; needs 3\n"
                      "            blocks, 1 free; a holds 3\n");
    expect_has(&w, 4, "resumed     b with 5 tokens; 4 of them for the second time; took 3 of 4 free\n"
                      "            blocks\n");
    expect_has(&w, 4, "         0  .  b  b  b\n");
    expect_has(&w, 4, "  b  b            +5          5/5      1/2  2 3 1\n");
    end_walk(&w);
}
END_TEST

/* b wants 3 blocks and 2 are free: refused in step 0. a goes on to step 3 and nobody is looked at. */
START_TEST(a_shut_queue_is_told_with_its_length)
{
    struct walk w;

    begin_walk(&w, 4, false);
    set_choice(&w, PKV_CHOICE_ON_BLOCKED, "latch");
    ask(&w, "a", 0, 0, 3, 4);
    ask(&w, "b", 0, 0, 5, 1);
    walk(&w);
    expect_has(&w, 0, "waits       b, first in line: blocks: its next chunk did not fit; needs 3\n");
    expect_has(&w, 1, "waits       b, first in line: latch: nobody was looked at for 1 step after");
    expect_has(&w, 3, "waits       b, first in line: latch: nobody was looked at for 3 steps after");
    expect_has(&w, 4, "admitted    b with 5 tokens");
    end_walk(&w);
}
END_TEST

/* The only one running, and its third block is not there: it gives itself up. */
START_TEST(who_gives_itself_up_is_told_so)
{
    struct walk w;

    begin_walk(&w, 2, false);
    w.scenario.sched.oversized = PKV_OVERSIZED_WAIT;
    ask(&w, "a", 0, 0, 3, 3);
    walk(&w);
    expect_has(&w, 2, "preempted   a: short of a block itself, and the one to give up (preempt:\n"
                      "            newest); lost 4 computed tokens, 2 blocks became free\n");
    expect_has(&w, 2, "running     0 of at most 8\nwaiting     1, first in line first\n");
    expect_has(&w, 2, "Step 2 at 2 ms for 1 ms: 0 tokens\n");
    end_walk(&w);
}
END_TEST

/* ---- runs ---- */

/*
 * Eight blocks in runs. a wants 3 + 4 positions, so 4 blocks, and will store 3 + 4 - 1 = 6 in 3 of
 * them: two are filled, the third is reserved for later tokens, the fourth is never used. b wants
 * 10 + 4 positions, 7 blocks, a run of 8.
 */
START_TEST(what_a_run_reserves_is_marked)
{
    struct walk w;

    begin_walk(&w, 8, false);
    set_choice(&w, PKV_CHOICE_LAYOUT, "contiguous_pow2");
    ask(&w, "a", 0, 0, 3, 4);
    ask(&w, "b", 0, 0, 10, 4);
    walk(&w);
    expect_page(&w, 0,
        "\nStep 0 at 0 ms for 1 ms: 3 tokens, 3 prefill, 0 decode\n"
        "arrived     a with 3 prompt tokens, 4 output tokens\n"
        "            b with 10 prompt tokens, 4 output tokens\n"
        "admitted    a with 3 tokens; took 4 of 8 free blocks\n"
        "waits       b, first in line: blocks: no run of them is long enough; needs 8\n"
        "            blocks, 4 free; a holds 4\n"
        "pool        8 blocks of 2 tokens: 4 held; 4 free\n"
        "         0  a  a  a- ax .  .  .  .\n"
        "            letter: its holder; - reserved for later; x never used; . free\n"
        "waste       positions: 3 stored, 3 reserved for later tokens, 2 never used in\n"
        "            runs, 8 free in runs too short for the first in line\n"
        "free blocks 4..7\n"
        "running     1 of at most 8, in the order of admission\n"
        "     request  tokens     computed  in last  blocks\n"
        "  a  a            +3          3/3      1/2  0 1 2- 3x\n"
        "waiting     1, first in line first\n"
        "     request  tokens       blocks  preempted\n"
        "   1 b            10            8          0\n"
        "at its end  1 ms: 1 token comes out, the first of a\n");
    end_walk(&w);
}
END_TEST

/* ---- maps of larger pools ---- */

/* A row of 40 columns has room for 8 cells of one block: 16 such rows show 128 blocks. A row of 128
 * cells of a letter has 16 of them: 600 blocks take 4 a cell. a has 5 blocks: one cell and a quarter
 * of the next, two tenths. */
START_TEST(a_large_pool_has_several_blocks_a_cell)
{
    struct walk w;

    begin_walk(&w, 600, false);
    w.style.width = 40;
    ask(&w, "a", 0, 0, 10, 1);
    walk(&w);
    expect_has(&w, 0, "\n         0  a2..............\n        64  ................\n");
    expect_has(&w, 0, "\n       512  ................\n       576  ......\n"
                      "            a cell is 4 blocks: letter:");
    end_walk(&w);
    begin_walk(&w, 128, false);
    w.style.width = 40;
    ask(&w, "a", 0, 0, 3, 1);
    walk(&w);
    expect_has(&w, 0, "\n         0  a  a  .  .  .  .  .  .\n         8  .  .");
    expect_has(&w, 0, "\n       120  .  .  .  .  .  .  .  .\n");
    end_walk(&w);
}
END_TEST

/* Sixteen cells of one block and a gap take 49 of 68 columns; 600 blocks are more than 16 such rows,
 * and have room as letters: 64 in a row. */
START_TEST(a_pool_between_has_a_letter_a_block)
{
    struct walk w;

    begin_walk(&w, 600, false);
    ask(&w, "a", 0, 0, 3, 1);
    ask(&w, "b", 0, 0, 5, 1);
    walk(&w);
    expect_has(&w, 0, "\n         0  aabbb...........................................................\n");
    expect_has(&w, 0, "a cell is 1 block: letter: its holder;");
    end_walk(&w);
    begin_walk(&w, 32, false);
    ask(&w, "a", 0, 0, 34, 1);
    walk(&w);
    expect_has(&w, 0, "\n         0  a  a  a  a  a  a  a  a   a  a  a  a  a  a  a  a\n        16  a  .");
    end_walk(&w);
}
END_TEST

/* ---- letters ---- */

/* Rows without an id get letters in turn; who is called by a letter has it; 52 letters are all. */
START_TEST(letters_are_given_once)
{
    struct walk w;

    begin_walk(&w, 64, false);
    w.scenario.sched.max_num_seqs = 0;
    w.next = PKV_PAUSE_NEVER;
    ask(&w, "B", 0, 0, 1, 1);
    for (int i = 1; i < 53; i++)
        ask(&w, NULL, 0, 0, 1, 1);
    walk(&w);
    expect_has(&w, 0, "         0  B  A  C  D  E  F  G  H   I  J  K  L  M  N  O  P\n");
    expect_has(&w, 0, "        48  w  x  y  z  ?  .  .  .   .  .");
    expect_has(&w, 0, "  B  B            +1          1/1      1/2  0\n  A  1  ");
    expect_has(&w, 0, "  and 37 more\n");
    expect_has(&w, 0, "            and 47 more\nadmitted    B with");
    end_walk(&w);
}
END_TEST

/* ---- where a run pauses ---- */

/* Of the rivals: b is given up in step 2 and, for another cause, still waits in step 3; it is let in
 * again in step 4. That nobody is looked at in a step that preempts refuses no head. */
START_TEST(a_run_pauses_where_it_was_asked_to)
{
    static const uint64_t preempted[] = {0, 2}, admitted[] = {0, 4};
    static const uint64_t blocked[] = {0, 3}, never[] = {0};
    static const struct { enum pkv_pause pause; size_t num; const uint64_t *steps; } cases[] = {
        {PKV_PAUSE_PREEMPTION, 2, preempted}, {PKV_PAUSE_ADMISSION, 2, admitted},
        {PKV_PAUSE_BLOCKED, 2, blocked}, {PKV_PAUSE_NEVER, 1, never}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct walk w;
        ask_rivals(&w);
        w.next = cases[i].pause;
        walk(&w);
        expect_steps(&w, cases[i].num, cases[i].steps);
        end_walk(&w);
    }
}
END_TEST

START_TEST(what_was_passed_is_counted)
{
    struct walk w;

    ask_sharers(&w);
    w.next = PKV_PAUSE_ADMISSION;
    walk(&w);
    expect_lacks(&w, 1, "passed");
    expect_has(&w, 2, "Step 3 at 3 ms for 1 ms: 3 tokens, 3 prefill, 0 decode\n"
                      "passed      1 step: 2 finished\narrived     c");
    expect_lacks(&w, 3, "passed");
    end_walk(&w);
}
END_TEST

/* ---- what is shown is safe, and says all ---- */

START_TEST(names_are_cut_and_cannot_steer_a_terminal)
{
    struct walk w;

    begin_walk(&w, 4, false);
    ask(&w, "ab\033[31m and a name of many words", 0, 0, 3, 1);
    walk(&w);
    expect_lacks(&w, 0, "\033");
    expect_has(&w, 0, "\n  A  ab\\x1b[31m and a ...      +3          3/3");
    end_walk(&w);
}
END_TEST

START_TEST(colours_are_only_added)
{
    struct walk plain, coloured;

    ask_sharers(&plain);
    walk(&plain);
    ask_sharers(&coloured);
    coloured.style.colour = true;
    walk(&coloured);
    for (size_t i = 0; i < plain.num_pages; i++) {
        char *to = coloured.pages[i];
        ck_assert_str_ne(coloured.pages[i], plain.pages[i]);
        for (const char *from = coloured.pages[i]; *from != 0; from++) {
            if (*from == '\033')
                from = strchr(from, 'm');
            else
                *to++ = *from;
        }
        *to = 0;
        ck_assert_str_eq(coloured.pages[i], plain.pages[i]);
    }
    end_walk(&plain);
    end_walk(&coloured);
}
END_TEST

/* ---- any run ---- */

struct rows {
    const struct random_run *run;
    size_t next;
    struct pkv_step_row rows[600];
    size_t num;
    struct pkv_stepper *stepper;
    uint64_t num_pages;
};

static int give_spec(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct rows *rows = ctx;

    (void)err;
    if (rows->next == rows->run->num_specs)
        return 0;
    *out = rows->run->specs[rows->next++];
    return 1;
}

static int note_row(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                    struct pkv_err *err)
{
    struct rows *rows = ctx;

    (void)sched;
    (void)err;
    ck_assert_uint_lt(rows->num, sizeof rows->rows / sizeof *rows->rows);
    rows->rows[rows->num] = *row;
    rows->rows[rows->num++].counted = NULL;   /* lives as long as its engine */
    return 0;
}

/* Letters and marks of the map, counted against the row: the pool is of at most 128 blocks. */
static void expect_map(const char *page, const struct pkv_step_row *row)
{
    const char *line = strstr(page, "\n         0  ") + 1;
    int64_t num_free = 0, num_cached = 0, num_held = 0;

    for (; strncmp(line, "            ", 12) != 0; line = strchr(line, '\n') + 1)
        for (const char *c = line + 12; *c != '\n'; c++) {
            num_free += *c == '.' || *c == ':';
            num_cached += *c == ':';
            num_held += (*c != 'x' || c[-1] == ' ') && strchr(".:*- ", *c) == NULL;
        }
    ck_assert_int_eq(num_free, row->free_blocks);
    ck_assert_int_eq(num_cached, row->cached_blocks);
    ck_assert_int_eq(num_held, row->used_blocks);
}

static void expect_width(const char *page, size_t width)
{
    for (; *page != '\0'; page += strcspn(page, "\n") + 1)
        ck_assert_msg(strcspn(page, "\n") <= width, "more than %zu columns:\n%s", width, page);
}

static int look(void *ctx, struct pkv_err *err)
{
    struct rows *rows = ctx;
    const struct pkv_report_style wide = { .width = 60 }, narrow = { .width = 40, .colour = true };
    const char *only = rows->run->ids[rows->num_pages++ % rows->run->num_specs];
    char *page = pkv_stepper_page(rows->stepper, NULL, &wide, err);
    char *other = pkv_stepper_page(rows->stepper, only, &narrow, err);

    ck_assert(page != NULL && other != NULL);
    expect_map(page, &rows->rows[rows->num - 1]);
    expect_width(page, wide.width);
    pkv_report_free(page);
    pkv_report_free(other);
    pkv_stepper_pause_at(rows->stepper, PKV_PAUSE_STEP, 0);
    return 0;
}

static void run_rows(struct rows *rows, bool steps)
{
    struct pkv_scenario scenario = { .sched = rows->run->sched };
    const struct pkv_stepper_config stepper = { .scenario = &scenario, .pause = look, .ctx = rows };
    struct pkv_engine_config config = {
        .sched = rows->run->sched, .step_time = rows->run->step_time, .source = { give_spec, rows },
        .sinks = { { .step = note_row, .ctx = rows } }, .num_sinks = 1, .max_steps = 500,
        .stuck_steps = rows->run->stuck_steps, .check = true, .log_evicted = steps };
    struct pkv_err err = {0};
    struct pkv_engine *engine;

    if (steps) {
        rows->stepper = pkv_stepper_create(&stepper, &err);
        config.sinks[config.num_sinks++] = pkv_stepper_sink(rows->stepper);
    }
    engine = pkv_engine_create(&config, &err);
    ck_assert_msg(engine != NULL && pkv_engine_run(engine, &err) == 0, "%s", err.text);
    pkv_engine_destroy(engine);
    pkv_stepper_destroy(rows->stepper);
}

/* Under all policies, layouts and switches that are drawn, every step can be looked at, its map is
 * that of its row, and no row is another for it. */
START_TEST(looking_changes_nothing)
{
    static struct rows plain, looked_at;
    struct random_run run;

    random_run_draw(&run, (uint64_t)_i);
    plain = looked_at = (struct rows){ .run = &run };
    run_rows(&plain, false);
    run_rows(&looked_at, true);
    ck_assert_uint_eq(plain.num, looked_at.num);
    ck_assert_uint_eq(looked_at.num_pages, looked_at.num);
    ck_assert_mem_eq(plain.rows, looked_at.rows, plain.num * sizeof *plain.rows);
}
END_TEST

/* The first allocation fails, then the second, until a walk gets by: each says so. */
START_TEST(without_memory_a_walk_says_so)
{
    for (uint64_t n = 1;; n++) {
        struct walk w;
        struct pkv_err err = {0};
        ask_sharers(&w);
        pkv_alloc_fail_at(n, 0);
        int result = try_walk(&w, &err);
        pkv_alloc_fail_at(0, 0);
        end_walk(&w);
        if (result == 0) {
            ck_assert_uint_gt(n, 50);
            break;
        }
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
        ck_assert_uint_lt(n, 20000);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stepper");
    TCase *c = tcase_create("stepper");
    SRunner *runner;
    int failed;

    tcase_add_test(c, shared_blocks_are_marked_with_their_holders);
    tcase_add_test(c, what_ends_with_a_step_is_told_below_its_state);
    tcase_add_test(c, free_blocks_keep_their_content_until_taken);
    tcase_add_test(c, a_page_may_be_about_one_request);
    tcase_add_test(c, a_preemption_is_told_with_its_cost);
    tcase_add_test(c, a_wait_is_told_in_every_step_and_so_is_its_end);
    tcase_add_test(c, a_shut_queue_is_told_with_its_length);
    tcase_add_test(c, who_gives_itself_up_is_told_so);
    tcase_add_test(c, what_a_run_reserves_is_marked);
    tcase_add_test(c, a_large_pool_has_several_blocks_a_cell);
    tcase_add_test(c, a_pool_between_has_a_letter_a_block);
    tcase_add_test(c, letters_are_given_once);
    tcase_add_test(c, a_run_pauses_where_it_was_asked_to);
    tcase_add_test(c, what_was_passed_is_counted);
    tcase_add_test(c, names_are_cut_and_cannot_steer_a_terminal);
    tcase_add_test(c, colours_are_only_added);
    tcase_add_loop_test(c, looking_changes_nothing, 1, 151);
    tcase_add_test(c, without_memory_a_walk_says_so);
    suite_add_tcase(suite, c);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
