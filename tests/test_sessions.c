/*
 * test_sessions.c - requests that follow others: when they come, with what prompt, and what of it is
 * still cached.
 *
 * All runs are small enough to be walked through by hand: steps of one millisecond, so step n ends at
 * n + 1 ms; blocks of 4 tokens.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "pagedkv/engine.h"
#include "pagedkv/trace.h"
#include "sched_fixture.h"

#define MS INT64_C(1000000)
#define MOST 128

struct told {
    bool came, follows;
    uint64_t order;                    /* among those that came */
    int64_t arrival_ns, finish_ns;
    enum pkv_request_status status;
    uint32_t num_hit, former_tokens, retained_tokens;
    struct pkv_span spans[4];
    size_t num_spans;
};

static struct {
    struct pkv_engine_config config;
    struct told told[MOST];            /* by row */
    uint64_t num_came;
    int64_t in_flight[1024];           /* of each step */
    size_t num_steps;
    struct pkv_engine_figures figures;
    struct pkv_err err;
} run;

static int note_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    const struct pkv_request *r = event->request;
    struct told *told = &run.told[r->row];

    (void)ctx;
    (void)err;
    if (event->kind != PKV_EVENT_ARRIVE)
        return 0;
    ck_assert_uint_lt(r->row, MOST);
    *told = (struct told){ .came = true, .follows = event->follows, .order = run.num_came++,
                           .arrival_ns = r->arrival_ns, .former_tokens = event->former_tokens,
                           .retained_tokens = event->retained_tokens,
                           .num_spans = r->seq.num_spans };
    for (size_t i = 0; i < told->num_spans && i < 4; i++)
        told->spans[i] = r->seq.spans[i];
    return 0;
}

static int note_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct told *told = &run.told[row->request->row];

    (void)ctx;
    (void)err;
    told->status = row->status;
    told->finish_ns = row->finish_ns;
    told->num_hit = row->request->num_hit_tokens;
    return 0;
}

static int note_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                     struct pkv_err *err)
{
    (void)ctx;
    (void)sched;
    (void)err;
    if (run.num_steps < 1024)
        run.in_flight[run.num_steps++] = row->waiting + row->running;
    return 0;
}

static void begin(uint32_t num_blocks)
{
    memset(&run, 0, sizeof run);
    run.config = (struct pkv_engine_config){
        .sched = base_config(num_blocks),
        .step_time = { .law = PKV_STEP_TIME_FIXED, .fixed_ns = MS },
        .sinks = { { .event = note_event, .request = note_request, .step = note_step } },
        .num_sinks = 1,
        .stuck_steps = 1,
        .check = true,
    };
    run.config.sched.groups[0].block_size = 4;
    run.config.sched.prefix_cache = true;
}

static int go(const char *text)
{
    const struct pkv_trace_options options = { .sessions = true };
    struct pkv_trace *trace =
        pkv_trace_open_memory("text", text, strlen(text), &options, &run.err);
    struct pkv_engine *engine = NULL;
    int result = -1;

    if (trace != NULL) {
        run.config.source = pkv_trace_source(trace);
        engine = pkv_engine_create(&run.config, &run.err);
    }
    if (engine != NULL) {
        result = pkv_engine_run(engine, &run.err);
        run.figures = *pkv_engine_figures(engine);
    }
    pkv_engine_destroy(engine);
    pkv_trace_close(trace);
    return result;
}

static void expect_done(const char *text)
{
    ck_assert_msg(go(text) == 0, "%s", run.err.text);
    ck_assert_str_eq(pkv_outcome_name(run.figures.outcome), "done");
}

#define FIRST(id, ms, prompt, output) \
    "{\"timestamp\":" #ms ",\"prompt\":" prompt ",\"output_length\":" #output ",\"session\":\"" id "\"}\n"
#define NEXT(id, delay, prompt, output) \
    "{\"delay_ms\":" #delay ",\"prompt\":" prompt ",\"output_length\":" #output ",\"session\":\"" id "\"}\n"

/* --- when they come, and with what ----------------------------------------------------------- */

/* A turn of P prompt and O output tokens stores P + O - 1; its whole blocks stay. 13 + 5 - 1 = 17:
 * 16 of them are hit by the next turn, of 24 tokens; 24 + 7 - 1 = 30: 28; 37 + 9 - 1 = 45: 44;
 * 52 + 11 - 1 = 62: 60. A turn that comes in step t with O tokens ends at t + O. */
static const char five_turns[] =
    FIRST("s", 1, "[[\"a\",13]]", 5)
    NEXT("s", 9, "[[\"@prev\",18],[null,6]]", 7)
    NEXT("s", 7, "[[\"@prev\",31],[null,6]]", 9)
    NEXT("s", 5, "[[\"@prev\",46],[null,6]]", 11)
    NEXT("s", 3, "[[\"@prev\",63],[null,6]]", 13);

START_TEST(five_turns_of_a_chat)
{
    static const int64_t arrivals[] = { 1, 15, 29, 43, 57 };
    static const int64_t ends[] = { 6, 22, 38, 54, 70 };
    static const uint32_t hits[] = { 0, 16, 28, 44, 60 }, before[] = { 0, 18, 31, 46, 63 };

    begin(40);
    expect_done(five_turns);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(run.told[i].arrival_ns, arrivals[i] * MS);
        ck_assert_int_eq(run.told[i].finish_ns, ends[i] * MS);
        ck_assert_uint_eq(run.told[i].num_hit, hits[i]);
        ck_assert_uint_eq(run.told[i].retained_tokens, hits[i]);
        ck_assert_uint_eq(run.told[i].former_tokens, before[i]);
        ck_assert(run.told[i].follows == (i > 0));
    }
    ck_assert_uint_eq(run.figures.turns, 4);
    ck_assert_uint_eq(run.figures.former_tokens, 18 + 31 + 46 + 63);
    ck_assert_uint_eq(run.figures.retained_tokens, 16 + 28 + 44 + 60);
}
END_TEST

START_TEST(no_cache_keeps_nothing)
{
    begin(40);
    run.config.sched.prefix_cache = false;
    expect_done(five_turns);
    ck_assert_int_eq(run.told[4].arrival_ns, 57 * MS);
    ck_assert_uint_eq(run.figures.former_tokens, 18 + 31 + 46 + 63);
    ck_assert_uint_eq(run.figures.retained_tokens, 0);
}
END_TEST

/* The first turn leaves 4 blocks cached; 10 blocks are all there are. Another prompt of 37 tokens
 * takes all of them in step 8, so of the second turn, in step 15, nothing is left. */
START_TEST(others_take_what_a_chat_kept)
{
    begin(10);
    expect_done("{\"timestamp\":1,\"prompt\":[[\"a\",13]],\"output_length\":5,\"session\":\"s\"}\n"
                NEXT("s", 9, "[[\"@prev\",18],[null,6]]", 7)
                "{\"timestamp\":8,\"prompt\":37,\"output_length\":2}\n");
    ck_assert_int_eq(run.told[1].arrival_ns, 15 * MS);
    ck_assert_uint_eq(run.told[1].former_tokens, 18);
    ck_assert_uint_eq(run.told[1].retained_tokens, 0);
    ck_assert_uint_eq(run.told[1].num_hit, 0);
}
END_TEST

/* 8 + 10 tokens from step 0 on, cancelled at 3 ms: 3 tokens have come out. The next turn asks for 18
 * tokens of it, and there are 11; the others are nobody's. */
START_TEST(one_that_is_aborted_is_followed_too)
{
    begin(40);
    expect_done("{\"timestamp\":0,\"prompt\":[[\"a\",8]],\"output_length\":10,\"session\":\"s\","
                "\"abort_ms\":3}\n"
                NEXT("s", 4, "[[\"@prev\",18],[null,2]]", 1));
    ck_assert_int_eq(run.told[0].status, PKV_REQUEST_ABORTED);
    ck_assert_int_eq(run.told[1].arrival_ns, 7 * MS);
    ck_assert_uint_eq(run.told[1].former_tokens, 11);
    ck_assert_uint_eq(run.told[1].num_spans, 4);
    ck_assert_uint_eq(run.told[1].spans[1].origin, pkv_origin(PKV_ORIGIN_OUTPUT, 0));
    ck_assert_uint_eq(run.told[1].spans[1].count, 3);
    ck_assert_uint_eq(run.told[1].spans[2].origin, pkv_origin(PKV_ORIGIN_PREV, 2));
    ck_assert_uint_eq(run.told[1].spans[2].count, 7);
    ck_assert_uint_eq(run.told[1].num_hit, 8);
}
END_TEST

/* 10 blocks hold 40 positions. The second turn comes 2 ms after the first was refused. */
START_TEST(one_that_is_refused_is_followed_too)
{
    begin(10);
    expect_done("{\"timestamp\":5,\"prompt\":[[\"a\",80]],\"output_length\":1,\"session\":\"s\"}\n"
                NEXT("s", 2, "[[\"@prev\",7],[null,2]]", 3));
    ck_assert_int_eq(run.told[0].status, PKV_REQUEST_REJECTED);
    ck_assert_int_eq(run.told[1].status, PKV_REQUEST_COMPLETED);
    ck_assert_int_eq(run.told[1].arrival_ns, 7 * MS);
    ck_assert_uint_eq(run.told[1].former_tokens, 7);
    ck_assert_uint_eq(run.told[1].retained_tokens, 0);
}
END_TEST

/* The abort of a row that follows counts from its arrival: 4 + 3 ms. In its step the one behind it,
 * without a delay, comes in the same step. */
START_TEST(an_abort_counts_from_the_arrival)
{
    begin(40);
    expect_done(FIRST("s", 0, "8", 2)
                "{\"delay_ms\":2,\"prompt\":9,\"output_length\":30,\"session\":\"s\",\"abort_ms\":3}\n"
                NEXT("s", 0, "5", 2));
    ck_assert_int_eq(run.told[1].arrival_ns, 4 * MS);
    ck_assert_int_eq(run.told[1].finish_ns, 7 * MS);
    ck_assert_int_eq(run.told[2].arrival_ns, 7 * MS);
    ck_assert_int_eq(run.told[2].finish_ns, 9 * MS);
}
END_TEST

/* A row behind the one that is marked as the last still follows it, as long as that is there. */
START_TEST(a_row_behind_the_last)
{
    begin(40);
    expect_done("{\"timestamp\":0,\"prompt\":40,\"output_length\":9,\"session\":\"a\",\"last\":true}\n"
                "{\"timestamp\":1,\"prompt\":[[\"@prev\",49],[null,1]],\"output_length\":2,\"session\":\"a\","
                "\"delay_ms\":10}\n");
    ck_assert_int_eq(run.told[1].arrival_ns, 19 * MS);
    ck_assert_uint_eq(run.told[1].former_tokens, 49);
}
END_TEST

/* A row does not come before its place: its own time, or that of the row above it. */
START_TEST(no_row_comes_before_its_place)
{
    begin(40);
    expect_done(FIRST("s", 0, "8", 1)
                "{\"timestamp\":50,\"delay_ms\":2,\"prompt\":8,\"output_length\":1,\"session\":\"s\"}\n"
                "{\"timestamp\":90,\"prompt\":8,\"output_length\":1}\n"
                NEXT("s", 1, "8", 1)
                NEXT("t", 5, "8", 1));
    ck_assert_int_eq(run.told[1].arrival_ns, 50 * MS);
    ck_assert_int_eq(run.told[2].arrival_ns, 90 * MS);
    ck_assert_int_eq(run.told[3].arrival_ns, 90 * MS);
    ck_assert_int_eq(run.told[4].arrival_ns, 90 * MS);   /* nobody before it */
    ck_assert_uint_lt(run.told[3].order, run.told[4].order);
}
END_TEST

/* --- closed loops ---------------------------------------------------------------------------- */

/* Three at once, of 1, 2 and 5 tokens; each later one of 3 follows whoever ends: rows 3 at 1 ms, 4 at
 * 2, 5 at 4 (after 3), 6 and 7 at 5 (after 2, admitted before 4). */
START_TEST(a_closed_loop)
{
    static const int64_t arrivals[] = { 0, 0, 0, 1, 2, 4, 5, 5 };

    begin(40);
    expect_done(FIRST("l", 0, "4", 1) FIRST("l", 0, "4", 2) FIRST("l", 0, "4", 5)
                NEXT("l", 0, "4", 3) NEXT("l", 0, "4", 3) NEXT("l", 0, "4", 3)
                NEXT("l", 0, "4", 3) NEXT("l", 0, "4", 3));
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(run.told[i].arrival_ns, arrivals[i] * MS);
    for (size_t i = 0; i < 7; i++)
        ck_assert_int_eq(run.in_flight[i], 3);
    ck_assert_int_eq(run.in_flight[7], 2);               /* 5 has ended at 7 ms, nobody is left */
    ck_assert_uint_eq(run.num_steps, 8);
}
END_TEST

#define TALK(id, more, prompt, output) \
    "{" more "\"prompt\":" prompt ",\"output_length\":" #output ",\"session\":\"" id "\",\"loop\":\"l\"}\n"
#define AT_ONCE "\"timestamp\":0,"
#define AFTER(delay) "\"delay_ms\":" #delay ","
#define LAST "\"last\":true,"

/* Two users. a: 2 tokens, to 2 ms, and from 5 on one more, to 6. b: 4 tokens, to 4 ms: c follows it at 5,
 * as a is not over. Then a is over, at 6: d follows it. e is the next, after c and d, which end together
 * at 7, and f comes with it. */
START_TEST(a_closed_loop_of_conversations)
{
    static const int64_t arrivals[] = { 0, 5, 0, 5, 6, 7, 9 };
    static const bool follows[] = { false, true, false, false, false, false, false };

    begin(40);
    expect_done(TALK("a", AT_ONCE, "4", 2) TALK("a", AFTER(3) LAST, "[[\"@prev\",6],[null,1]]", 1)
                TALK("b", AT_ONCE LAST, "4", 4) TALK("c", AFTER(1) LAST, "4", 2)
                TALK("d", AFTER(0) LAST, "4", 1) TALK("e", AFTER(0) LAST, "4", 1)
                TALK("f", AFTER(2) LAST, "4", 1));
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(run.told[i].arrival_ns, arrivals[i] * MS);
        ck_assert(run.told[i].follows == follows[i]);
    }
    ck_assert_uint_eq(run.told[1].former_tokens, 6);
    ck_assert_uint_eq(run.figures.turns, 1);
}
END_TEST

/* What a row follows is what it contains: row 2 follows row 1, which ends first. */
START_TEST(a_row_contains_the_one_it_follows)
{
    begin(40);
    expect_done(FIRST("l", 0, "[[\"a\",4]]", 9) FIRST("l", 0, "[[\"b\",4]]", 2)
                NEXT("l", 0, "[[\"@prev\",6],[null,1]]", 1));
    ck_assert_int_eq(run.told[2].arrival_ns, 2 * MS);
    ck_assert_uint_eq(run.told[2].spans[0].origin,
                      pkv_origin(PKV_ORIGIN_NAME, pkv_hash_name("b", 1)));
    ck_assert_uint_eq(run.told[2].spans[1].origin, pkv_origin(PKV_ORIGIN_OUTPUT, 1));
    ck_assert_uint_eq(run.told[2].spans[1].count, 2);
}
END_TEST

/* --- ends ------------------------------------------------------------------------------------ */

/* 100 tokens never fit 10 blocks of 4. What waits for its end never comes. */
START_TEST(what_follows_one_without_end_never_comes)
{
    begin(10);
    run.config.sched.oversized = PKV_OVERSIZED_WAIT;
    ck_assert_int_eq(go(FIRST("s", 0, "100", 3) NEXT("s", 1, "4", 1) NEXT("s", 1, "4", 1)), 0);
    ck_assert_str_eq(pkv_outcome_name(run.figures.outcome), "stuck");
    ck_assert_uint_eq(run.figures.arrived, 1);
    ck_assert_uint_eq(run.figures.unfinished, 1);
    ck_assert(!run.told[1].came);
}
END_TEST

/* The same beside another session: a step in which nothing changes lasts until its next turn comes,
 * 20 ms after 2 ms. */
START_TEST(a_later_turn_is_something_to_come)
{
    begin(10);
    run.config.sched.oversized = PKV_OVERSIZED_WAIT;
    set(&run.config.sched, PKV_CHOICE_ON_BLOCKED, "skip");
    ck_assert_int_eq(go(FIRST("t", 0, "8", 2) NEXT("t", 20, "8", 2) FIRST("s", 0, "100", 3)), 0);
    ck_assert_str_eq(pkv_outcome_name(run.figures.outcome), "stuck");
    ck_assert_int_eq(run.told[1].arrival_ns, 22 * MS);
    ck_assert_int_eq(run.told[1].status, PKV_REQUEST_COMPLETED);
    ck_assert_uint_eq(run.figures.unfinished, 1);
    ck_assert_uint_le(run.figures.num_steps, 6);
}
END_TEST

/* Many rows of one session, then one of another at `last_ms`. The session has 1 ms a row. */
static char *many_rows(size_t num, int last_ms)
{
    char *text = malloc(96 * (num + 2));
    size_t used = 0;

    used += (size_t)sprintf(text, FIRST("s", 0, "1", 1));
    for (size_t i = 0; i < num; i++)
        used += (size_t)sprintf(text + used, NEXT("s", 0, "1", 1));
    sprintf(text + used, "{\"timestamp\":%d,\"input_length\":1,\"output_length\":1}\n", last_ms);
    return text;
}

/* 4,096 rows ahead are held; what stands behind more of them is read too late, unless its time is
 * late enough: 200 rows too many have gone at 201 ms. */
START_TEST(how_far_a_session_may_run_ahead)
{
    char *text = many_rows(4096, 0);

    begin(40);
    run.config.sinks[0] = (struct pkv_sink){ .step = note_step };
    expect_done(text);
    ck_assert_uint_eq(run.figures.completed, 4098);
    free(text);
    text = many_rows(4296, 300);
    begin(40);
    run.config.sinks[0] = (struct pkv_sink){ .step = note_step };
    expect_done(text);
    ck_assert_uint_eq(run.figures.completed, 4298);
    free(text);
    text = many_rows(4296, 100);
    begin(40);
    run.config.sinks[0] = (struct pkv_sink){ .step = note_step };
    ck_assert_int_eq(go(text), -1);
    ck_assert_int_eq(run.err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(run.err.text, "request 4297 (from 0) should have come at 100000000 "
                                               "ns"));
    free(text);
}
END_TEST

static const struct {
    const char *text, *words;
} wrong[] = {
    { FIRST("s", 0, "8", 1) FIRST("s", 5, "[[\"@prev\",3],[null,1]]", 1),
      "comes at a time of its own: give it a delay" },
    { FIRST("s", 0, "8", 1) NEXT("s", 9223372036854, "8", 1),
      "a time of it would be beyond the range of virtual time" },
    { TALK("a", AT_ONCE, "4", 1) TALK("b", AFTER(0) LAST, "4", 1) TALK("c", AFTER(0) LAST, "4", 1)
      TALK("c", AFTER(0) LAST, "4", 1),
      "2 rows of loop 'l' never come, the first of them request 1 (from 0): no row of the session that "
      "began with request 0 is marked \"last\"" },
    { TALK("a", AT_ONCE LAST, "4", 1) TALK("b", AT_ONCE, "4", 1) TALK("c", AFTER(0), "4", 1)
      TALK("d", AFTER(0) LAST, "4", 1),
      "1 row of loop 'l' never comes, the first of them request 3 (from 0): no row of the session that "
      "began with request 1 is marked \"last\"" },
    { FIRST("a", 0, "4", 1) TALK("a", AFTER(0) LAST, "4", 1),
      "request 1 (from 0) is in loop 'l', but its session 'a' began with request 0 in no loop" },
    { FIRST("a", 0, "4", 1) TALK("a", AT_ONCE LAST, "4", 1),
      "request 1 (from 0) is in loop 'l', but its session 'a' began with request 0 in no loop" },
    { TALK("a", AT_ONCE, "4", 1)
      "{" AFTER(0) LAST "\"prompt\":4,\"output_length\":1,\"session\":\"a\",\"loop\":\"k\"}\n",
      "request 1 (from 0) is in loop 'k', but its session 'a' began with request 0 in another loop" },
};

START_TEST(impossible_rows)
{
    begin(40);
    ck_assert_int_eq(go(wrong[_i].text), -1);
    ck_assert_int_eq(run.err.code, PKV_ERR_INPUT);
    ck_assert_msg(strstr(run.err.text, wrong[_i].words) != NULL, "%s", run.err.text);
}
END_TEST

/* Sessions of two turns in a loop of one, all first turns before all last ones: those cannot be reached
 * once so many wait that no more are read, and that is not taken for the end of the trace. */
START_TEST(rows_that_cannot_be_reached)
{
    char *text = malloc(1 << 20), *at = text;
    ck_assert_ptr_nonnull(text);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 5000; i++)
            at += sprintf(at, "{%s%s\"prompt\":4,\"output_length\":1,\"session\":\"%d\",\"loop\":\"l\"}\n",
                          turn == 0 && i == 0 ? AT_ONCE : AFTER(0), turn == 1 ? LAST : "", i);
    begin(40);
    run.config.num_sinks = 0;
    ck_assert_int_eq(go(text), -1);
    free(text);
    ck_assert_int_eq(run.err.code, PKV_ERR_INPUT);
    ck_assert_msg(strstr(run.err.text, "request 4097 (from 0) and those behind it never come: it stands "
                         "behind more than 4096 rows") != NULL, "%s", run.err.text);
    ck_assert_uint_eq(run.figures.arrived, 1);
}
END_TEST

/* Whatever allocation fails, the run ends with that error and gives everything back. */
START_TEST(memory_runs_out)
{
    int result = -1;

    for (uint64_t n = 1; result < 0; n++) {
        begin(40);
        run.config.sinks[0] = (struct pkv_sink){ .step = note_step };
        pkv_alloc_fail_at(n, 1);
        result = go(five_turns);
        pkv_alloc_fail_at(0, 0);
        ck_assert(result == 0 || run.err.code == PKV_ERR_MEMORY);
        ck_assert_uint_lt(n, 1000);
    }
}
END_TEST

/* --- memory ---------------------------------------------------------------------------------- */

struct many {
    uint64_t row, num;
    bool marks_last;
    char name[24];
    struct pkv_span spans[2];
};

/* Conversations of two turns, one a millisecond. */
static int give_many(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct many *m = ctx;
    bool follows = m->row & 1;

    (void)err;
    if (m->row == m->num)
        return 0;
    snprintf(m->name, sizeof m->name, "%" PRIu64, m->row / 2);
    m->spans[0] = (struct pkv_span){ pkv_origin(PKV_ORIGIN_PREV, 0), 0, 6 };
    m->spans[1] = (struct pkv_span){ pkv_origin(PKV_ORIGIN_OWN, m->row), 0, 4 };
    *out = (struct pkv_request_spec){
        .row = m->row, .session = m->name, .follows = follows, .is_last = follows && m->marks_last,
        .arrival_ns = (int64_t)(m->row / 2) * MS, .abort_ns = PKV_NO_TIME,
        .deadline_ns = PKV_NO_TIME, .num_prompt_tokens = follows ? 10 : 4, .num_output_tokens = 2,
        .max_tokens = 2,
        .content = { .prompt = m->spans + !follows, .num_prompt_spans = follows ? 2 : 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, m->row) } };
    m->row++;
    return 1;
}

/* Bytes that the allocator has in use are not ours to ask for; but a table that never grows needs no
 * room beyond that of its first thousand conversations. */
static uint64_t count_allocations(uint64_t num, bool marks_last)
{
    struct many many = { .num = num, .marks_last = marks_last };
    uint64_t before = pkv_alloc_count();
    struct pkv_engine *engine;

    begin(100);
    run.config.check = false;
    run.config.num_sinks = 0;
    run.config.source = (struct pkv_source){ .next = give_many, .ctx = &many,
                                             .has_followers = true };
    engine = pkv_engine_create(&run.config, &run.err);
    ck_assert_int_eq(pkv_engine_run(engine, &run.err), 0);
    ck_assert_uint_eq(pkv_engine_figures(engine)->completed, num);
    pkv_engine_destroy(engine);
    return pkv_alloc_count() - before;
}

/* One allocation for the session, two for the row that is held, one for an end: with `last` each of
 * the conversations takes the same number, however many there were before. */
START_TEST(sessions_are_forgotten)
{
    uint64_t few = count_allocations(2000, true), many = count_allocations(4000, true);
    uint64_t more = count_allocations(8000, true);

    ck_assert_uint_eq(more - many, 2 * (many - few));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sessions");
    TCase *c = tcase_create("sessions");
    SRunner *runner;
    int failed;

    tcase_add_test(c, five_turns_of_a_chat);
    tcase_add_test(c, no_cache_keeps_nothing);
    tcase_add_test(c, others_take_what_a_chat_kept);
    tcase_add_test(c, one_that_is_aborted_is_followed_too);
    tcase_add_test(c, one_that_is_refused_is_followed_too);
    tcase_add_test(c, an_abort_counts_from_the_arrival);
    tcase_add_test(c, no_row_comes_before_its_place);
    tcase_add_test(c, a_row_behind_the_last);
    tcase_add_test(c, a_closed_loop);
    tcase_add_test(c, a_closed_loop_of_conversations);
    tcase_add_test(c, a_row_contains_the_one_it_follows);
    tcase_add_test(c, what_follows_one_without_end_never_comes);
    tcase_add_test(c, a_later_turn_is_something_to_come);
    tcase_add_test(c, how_far_a_session_may_run_ahead);
    tcase_add_loop_test(c, impossible_rows, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(c, rows_that_cannot_be_reached);
    tcase_add_test(c, memory_runs_out);
    tcase_add_test(c, sessions_are_forgotten);
    suite_add_tcase(suite, c);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
