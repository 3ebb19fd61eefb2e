/*
 * test_blockmap.c - states of the pool over time: frames of small runs worked out by hand, frames of any
 * run counted against its rows, and which frames stay when there is no room for all.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "files.h"
#include "model/random_run.h"
#include "report/blockmap_private.h"
#include "step_fixture.h"

static struct blockmap *new_map(const struct pkv_sched_config *sched)
{
    struct pkv_err err = {0};
    struct blockmap *map = blockmap_create(&(struct blockmap_config){ .sched = sched }, &err);

    ck_assert_msg(map != NULL, "%s", err.text);
    return map;
}

static struct blockmap *map_of(struct walk *w)
{
    struct blockmap *map = new_map(&w->scenario.sched);

    w->also = blockmap_sink(map);
    walk(w);
    end_walk(w);
    return map;
}

/* "0:0 1 2 4 | 1:0 1 3": rows and blocks of all tables; ">" in place of the row for those on the link,
 * "+" behind it for one that is being copied in, "-" for each null block. */
static const char *tables_text(const struct map_frame *f)
{
    static char text[256];
    size_t length = 0, place = 0;

    text[0] = '\0';
    for (size_t i = 0; i < f->num_tables; i++) {
        const struct map_table *t = &f->tables[i];
        length += (size_t)snprintf(text + length, sizeof text - length, "%s", i > 0 ? " | " : "");
        if (t->holder == MAP_LINK)
            length += (size_t)snprintf(text + length, sizeof text - length, ">:");
        else
            length += (size_t)snprintf(text + length, sizeof text - length, "%" PRIu64 "%s:", t->row,
                                       t->holder == MAP_RESUMING ? "+" : "");
        for (uint32_t k = 0; k < t->num; k++)
            length += k < t->num_null
                ? (size_t)snprintf(text + length, sizeof text - length, "%s-", k > 0 ? " " : "")
                : (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu32,
                                   k > 0 ? " " : "", f->places[place++]);
    }
    ck_assert_uint_eq(place, f->num_places);
    return text;
}

static void expect_tables(const struct blockmap *map, size_t frame, const char *want)
{
    ck_assert_uint_lt(frame, map->num);
    ck_assert_str_eq(tables_text(&map->frames[frame]), want);
}

/* ---- worked out by hand ---- */

/*
 * Six blocks of two tokens; the same runs as in test_stepper.c, where it is told why. a has the 4 common
 * tokens and 1 of its own, b the same a step later, on a's first two blocks; c and d come when both have
 * gone, c without anything in common.
 */
static void ask_sharers(struct walk *w)
{
    begin_walk(w, 6, true);
    ask(w, "a", 0, 4, 1, 3);
    ask(w, "b", 1, 4, 1, 2);
    ask(w, "c", 3, 0, 3, 1);
    ask(w, "d", 4, 4, 3, 1);
}

START_TEST(every_tick_of_a_small_run_has_a_frame)
{
    struct walk w;

    ask_sharers(&w);
    struct blockmap *map = map_of(&w);
    ck_assert_uint_eq(map->num, 5);
    ck_assert_uint_eq(map->num_ticks, 5);
    ck_assert_uint_eq(map->stride, 1);
    expect_tables(map, 0, "0:0 1 2");
    expect_tables(map, 1, "0:0 1 2 | 1:0 1 3");
    expect_tables(map, 2, "0:0 1 2 4 | 1:0 1 3");
    expect_tables(map, 3, "2:4 5");
    expect_tables(map, 4, "3:0 1 5 2");
    for (size_t i = 0; i < map->num; i++)
        ck_assert_int_eq(map->frames[i].counts.step, (int64_t)i);
    blockmap_destroy(map);
}
END_TEST

/* While a and b run no free block has been used; when they have gone 0 to 3 are full and free, and c
 * has taken 4 and 5. d takes 0, 1 and 2, and c leaves 4. */
START_TEST(free_blocks_with_an_identity_are_told)
{
    struct walk w;

    ask_sharers(&w);
    struct blockmap *map = map_of(&w);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(map->frames[i].num_words, 0);
    ck_assert_uint_eq(map->frames[3].num_words, 1);
    ck_assert_uint_eq(map->frames[3].cached[0], 0xf);
    ck_assert_uint_eq(map->frames[4].cached[0], 0x18);
    ck_assert_int_eq(map->frames[3].counts.cached_blocks, 4);
    blockmap_destroy(map);
}
END_TEST

START_TEST(a_table_goes_with_its_request)
{
    struct walk w;

    ask_sharers(&w);
    struct blockmap *map = map_of(&w);
    const struct map_frame *f = &map->frames[2];
    ck_assert_mem_eq(f->ids, "a\0b", 4);
    ck_assert_uint_eq(f->ids_length, 4);
    ck_assert_uint_eq(f->tables[0].num_computed, 7);   /* 5 and two more, 2 generated tokens in front */
    ck_assert_uint_eq(f->tables[1].num_computed, 6);
    ck_assert_uint_eq(f->tables[1].end_positions, 0);  /* nothing is reserved */
    blockmap_destroy(map);
}
END_TEST

/* As in test_stepper.c: a wants 3 + 4 positions, and has a run of 4 blocks; it will store 6. */
START_TEST(a_run_tells_where_it_will_end)
{
    struct walk w;

    begin_walk(&w, 8, false);
    set_choice(&w, PKV_CHOICE_LAYOUT, "contiguous_pow2");
    ask(&w, "a", 0, 0, 3, 4);
    ask(&w, "b", 0, 0, 10, 4);
    struct blockmap *map = map_of(&w);
    expect_tables(map, 0, "0:0 1 2 3");
    ck_assert_uint_eq(map->frames[0].tables[0].end_positions, 6);
    ck_assert_int_eq(map->frames[0].counts.reserved_slots, 3);
    ck_assert_int_eq(map->frames[0].counts.internal_slots, 2);
    ck_assert_int_eq(map->frames[0].counts.external_slots, 8);
    blockmap_destroy(map);
}
END_TEST

/*
 * Four blocks of two tokens, of which a and b have two each. In step 2 a stores its 5th position; b goes
 * out, 2 blocks of 2,000 bytes at 1 ms each, which nobody else may have before 4 ms: step 3 waits.
 */
START_TEST(what_the_link_holds_is_nobodys)
{
    struct walk w;

    begin_walk(&w, 4, false);
    set_choice(&w, PKV_CHOICE_ON_PREEMPT, "swap");
    w.scenario.sched.swap = (struct pkv_swap_config){ .num_host_blocks = 8, .bytes_per_token = 1000,
                                                      .link = { .bytes_per_s = 2000000 } };
    ask(&w, "a", 0, 0, 3, 4);
    ask(&w, "b", 0, 0, 3, 3);
    struct blockmap *map = map_of(&w);
    expect_tables(map, 1, "0:0 1 | 1:2 3");
    expect_tables(map, 2, "0:0 1 | >:2 3");
    expect_tables(map, 3, "0:0 1 | >:2 3");
    ck_assert_int_eq(map->frames[3].counts.used_blocks, 4);
    ck_assert_int_eq(map->frames[4].counts.time_ns, 4 * MS);
    ck_assert_int_eq(map->frames[4].counts.used_blocks, 3);
    ck_assert_uint_eq(map->frames[4].num_tables, 1);
    blockmap_destroy(map);
}
END_TEST

/* A window of 4 beside full attention, blocks of 2, 4 tokens a step: with 8 computed positions the next
 * one, the 9th, looks back to the 6th, which is in the third block. */
START_TEST(places_that_a_window_has_left_are_null)
{
    static const struct pkv_group_config groups[] = { { &pkv_group_full, 2, 0 },
                                                      { &pkv_group_sliding, 2, 4 } };
    struct walk w;

    begin_walk(&w, 16, false);
    memcpy(w.scenario.sched.groups, groups, sizeof groups);
    w.scenario.sched.num_groups = 2;
    w.scenario.sched.max_num_batched_tokens = 4;
    ask(&w, "a", 0, 0, 8, 2);
    struct blockmap *map = map_of(&w);
    expect_tables(map, 0, "0:0 1 | 0:2 3");
    ck_assert_uint_eq(map->frames[2].tables[1].group, 1);
    ck_assert_uint_eq(map->frames[2].tables[1].num, 5);
    ck_assert_uint_eq(map->frames[2].tables[1].num_null, 2);
    ck_assert_uint_eq(map->frames[2].num_places, 5 + 3);
    blockmap_destroy(map);
}
END_TEST

/* ---- any run ---- */

#define MOST_FRAMES 500u

struct any_run {
    struct random_run run;
    size_t next;
    struct pkv_step_row rows[MOST_FRAMES];
    size_t num;
};

static int give_spec(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct any_run *any = ctx;

    (void)err;
    if (any->next == any->run.num_specs)
        return 0;
    *out = any->run.specs[any->next++];
    return 1;
}

static int note_row(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                    struct pkv_err *err)
{
    struct any_run *any = ctx;

    (void)sched;
    (void)err;
    ck_assert_uint_lt(any->num, MOST_FRAMES);
    any->rows[any->num++] = *row;
    return 0;
}

/* Each map sees the same run. */
static void run_any(struct any_run *any, struct blockmap *const *maps, size_t num_maps)
{
    struct pkv_err err = {0};
    struct pkv_engine_config config = {
        .sched = any->run.sched, .step_time = any->run.step_time, .source = { give_spec, any },
        .sinks = { { .step = note_row, .ctx = any } }, .num_sinks = 1, .max_steps = MOST_FRAMES,
        .stuck_steps = any->run.stuck_steps };

    for (size_t i = 0; i < num_maps; i++)
        config.sinks[config.num_sinks++] = blockmap_sink(maps[i]);
    struct pkv_engine *engine = pkv_engine_create(&config, &err);
    ck_assert_msg(engine != NULL && pkv_engine_run(engine, &err) == 0, "%s", err.text);
    pkv_engine_destroy(engine);
}

struct recount { int64_t used, cached, free, stored, end; };

static struct recount count_blocks(const struct blockmap *map, const struct map_frame *f)
{
    uint32_t *holders = calloc(map->num_blocks, sizeof *holders);
    struct recount n = {0};

    for (size_t i = 0; i < f->num_places; i++)
        holders[f->places[i]]++;
    for (uint32_t id = 0; id < map->num_blocks; id++) {
        bool is_cached = f->num_words > 0 && (f->cached[id / 32] >> (id % 32) & 1) != 0;
        ck_assert(!is_cached || holders[id] == 0);
        n.used += holders[id] > 0;
        n.cached += is_cached;
        n.free += holders[id] == 0;
    }
    for (size_t i = 0; i < f->num_tables; i++) {
        n.stored += f->tables[i].num_computed;
        n.end += (int64_t)f->tables[i].end_positions;
    }
    free(holders);
    return n;
}

static void expect_row(const struct blockmap *map, const struct map_frame *f,
                       const struct pkv_step_row *row)
{
    struct recount n = count_blocks(map, f);

    ck_assert_int_eq(f->counts.step, row->step);
    ck_assert_int_eq(f->counts.time_ns, row->time_ns);
    ck_assert_int_eq(n.used, row->used_blocks);
    ck_assert_int_eq(n.cached, row->cached_blocks);
    ck_assert_int_eq(n.free, row->free_blocks);
    if (!map->takes_runs)
        return;
    ck_assert_int_eq(n.stored, row->stored_tokens);
    ck_assert_int_eq(n.end - n.stored, row->reserved_slots);
    ck_assert_int_eq(n.used * map->groups[0].block_size - n.end, row->internal_slots);
}

/* Under all policies, layouts and switches that are drawn. */
START_TEST(every_frame_is_that_of_its_row)
{
    static struct any_run any;

    any = (struct any_run){0};
    random_run_draw(&any.run, (uint64_t)_i);
    struct blockmap *map = new_map(&any.run.sched);
    run_any(&any, &map, 1);
    ck_assert_uint_eq(map->num, any.num);
    for (size_t i = 0; i < map->num; i++)
        expect_row(map, &map->frames[i], &any.rows[i]);
    blockmap_destroy(map);
}
END_TEST

/* ---- no room for all ---- */

static void expect_same(const struct map_frame *a, const struct map_frame *b)
{
    ck_assert_mem_eq(&a->counts, &b->counts, sizeof a->counts);
    ck_assert_uint_eq(a->num_tables, b->num_tables);
    ck_assert_uint_eq(a->num_places, b->num_places);
    ck_assert_uint_eq(a->num_words, b->num_words);
    ck_assert_uint_eq(a->ids_length, b->ids_length);
    if (a->num_places > 0)
        ck_assert_mem_eq(a->places, b->places, a->num_places * sizeof *a->places);
    if (a->num_words > 0)
        ck_assert_mem_eq(a->cached, b->cached, a->num_words * sizeof *a->cached);
    if (a->ids_length > 0)
        ck_assert_mem_eq(a->ids, b->ids, a->ids_length);
}

static size_t most_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Whatever the room, the frames are those of the ticks 0, stride, 2 stride ... up to the end, exact, in
 * their order, and there is no room for twice as many. */
START_TEST(without_room_every_second_frame_goes)
{
    static const size_t rooms[] = { 1, 1000, 4000, 16000 };
    static struct any_run any;

    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        any = (struct any_run){0};
        random_run_draw(&any.run, (uint64_t)_i);
        struct blockmap *whole = new_map(&any.run.sched), *map = new_map(&any.run.sched);
        map->most_bytes = rooms[i];
        run_any(&any, (struct blockmap *const[]){ whole, map }, 2);
        ck_assert_uint_eq(map->num_ticks, whole->num_ticks);
        ck_assert_uint_eq(map->stride & (map->stride - 1), 0);
        ck_assert_uint_eq(map->num, (whole->num + map->stride - 1) / map->stride);
        ck_assert(map->num_bytes <= map->most_bytes || map->num == 1);
        size_t sum = 0;
        for (size_t k = 0; k < map->num; k++) {
            expect_same(&map->frames[k], &whole->frames[k * map->stride]);
            sum += most_of(frame_bytes(&map->frames[k]), (size_t)2 * map->num_blocks);
        }
        ck_assert_uint_eq(sum, map->num_bytes);
        blockmap_destroy(whole);
        blockmap_destroy(map);
    }
}
END_TEST

/* One of three walks: 5 frames of about 300 bytes have room, then 2. */
START_TEST(the_stride_doubles)
{
    struct walk w;
    struct pkv_err err = {0};

    begin_walk(&w, 64, false);
    w.next = PKV_PAUSE_NEVER;
    ask(&w, "a", 0, 0, 2, 100);
    struct blockmap *map = blockmap_create(
        &(struct blockmap_config){ .sched = &w.scenario.sched, .most_bytes = 5 * 400 }, &err);
    ck_assert(map != NULL);
    w.also = blockmap_sink(map);
    walk(&w);
    end_walk(&w);
    ck_assert_uint_eq(map->num_ticks, 100);
    ck_assert_uint_ge(map->stride, 16);
    ck_assert_uint_eq(map->num, (100 + map->stride - 1) / map->stride);
    blockmap_destroy(map);
}
END_TEST

/* ---- cells of several blocks ---- */

/* Cells of two: the sharers' blocks 0 1, 2 3, 4 5. */
START_TEST(a_cell_may_be_of_several_blocks)
{
    static const struct map_cell wanted[][3] = {
        { { 2, 2, 0, 0, 0 }, { 2, 0, 0, 0, 0 }, { 1, 0, 0, 0, 0 } },
        { { 0, 0, 2, 0, 0 }, { 0, 0, 2, 0, 0 }, { 2, 0, 0, 0, 0 } },
        { { 2, 0, 0, 0, 0 }, { 1, 0, 1, 0, 0 }, { 1, 0, 1, 0, 0 } } };
    struct walk w;
    struct pkv_err err = {0};

    ask_sharers(&w);
    struct blockmap *map = blockmap_create(
        &(struct blockmap_config){ .sched = &w.scenario.sched, .most_blocks = 5 }, &err);
    w.also = blockmap_sink(map);
    walk(&w);
    end_walk(&w);
    ck_assert_uint_eq(map->cell_blocks, 2);
    for (size_t i = 0; i < 3; i++) {
        const struct map_frame *f = &map->frames[i + 2];
        ck_assert_uint_eq(f->num_places, 0);
        ck_assert_uint_eq(f->num_cells, 3);
        ck_assert_mem_eq(f->cells, wanted[i], sizeof wanted[i]);
    }
    blockmap_destroy(map);
}
END_TEST

/* The run of 8 blocks by cells of two: 3 positions in 2 blocks; one reserved, one for nothing. */
START_TEST(cells_tell_what_a_run_wastes)
{
    static const struct map_cell wanted[4] = { { 2, 0, 0, 0, 0 }, { 2, 0, 0, 1, 1 } };
    struct walk w;
    struct pkv_err err = {0};

    begin_walk(&w, 8, false);
    set_choice(&w, PKV_CHOICE_LAYOUT, "contiguous_pow2");
    ask(&w, "a", 0, 0, 3, 4);
    struct blockmap *map = blockmap_create(
        &(struct blockmap_config){ .sched = &w.scenario.sched, .most_blocks = 4 }, &err);
    w.also = blockmap_sink(map);
    walk(&w);
    end_walk(&w);
    ck_assert_uint_eq(map->frames[0].num_cells, 4);
    ck_assert_mem_eq(map->frames[0].cells, wanted, sizeof wanted);
    blockmap_destroy(map);
}
END_TEST

START_TEST(any_cells_are_the_blocks_in_them)
{
    static struct any_run any;
    struct pkv_err err = {0};

    any = (struct any_run){0};
    random_run_draw(&any.run, (uint64_t)_i);
    struct blockmap *map = blockmap_create(
        &(struct blockmap_config){ .sched = &any.run.sched, .most_blocks = 3 }, &err);
    run_any(&any, &map, 1);
    for (size_t i = 0; i < map->num; i++) {
        int64_t used = 0, cached = 0;
        for (size_t k = 0; k < map->frames[i].num_cells; k++) {
            used += map->frames[i].cells[k].used;
            cached += map->frames[i].cells[k].cached;
        }
        ck_assert(map->cell_blocks == 1 || used == any.rows[i].used_blocks);
        ck_assert(map->cell_blocks == 1 || cached == any.rows[i].cached_blocks);
    }
    blockmap_destroy(map);
}
END_TEST

/* ---- written ---- */

/* The islands of a map as text; free() it. */
static char *written(struct blockmap *map, int *out_result, struct pkv_err *err)
{
    const char *folder = make_folder();
    struct pkv_out *out = pkv_out_open(folder, "map", err);
    char *text = NULL;

    *out_result = out ? blockmap_write(map, "", out, err) : -1;
    if (*out_result == 0 && pkv_out_commit(out, err) == 0)
        text = read_text(folder, "map");
    else
        pkv_out_drop(out);
    remove_folder(folder);
    return text;
}

static void expect_rows(const char *text, const char *table, unsigned num)
{
    char id[64], rows[32];

    snprintf(id, sizeof id, "id=\"pkv-%s\">{", table);
    snprintf(rows, sizeof rows, "\"rows\":%u}\n", num);
    const char *head = strstr(text, id), *end = head ? strchr(head, '\n') : NULL;
    ck_assert_msg(end && strncmp(end + 1 - strlen(rows), rows, strlen(rows)) == 0, "%s: not %u rows", table,
                  num);
}

START_TEST(every_nth_frame_is_written)
{
    struct walk w;
    struct pkv_err err = {0};
    int result;

    ask_sharers(&w);
    struct blockmap *map = map_of(&w);
    char *all = written(map, &result, &err);
    ck_assert_msg(all != NULL, "%s", err.text);
    ck_assert_ptr_nonnull(strstr(all,
        "id=\"pkv-blockmap\">{\"blocks\":6,\"cell_blocks\":1,\"ticks\":5,\"stride\":1,"
        "\"layout\":\"paged\",\"takes_runs\":false,\"looks_ahead\":false,"
        "\"groups\":[{\"name\":\"full\",\"block_size\":2}]}<"));
    expect_rows(all, "blockmap-frames", 5);
    expect_rows(all, "blockmap-tables", 7);
    /* 3 of a, 3 of b, of which none was b's; a's fourth; c's 2; d's 4. */
    expect_rows(all, "blockmap-places", 13);
    expect_rows(all, "blockmap-requests", 4);
    free(all);
    map->most_written = 1;
    char *one = written(map, &result, &err);
    ck_assert_ptr_nonnull(strstr(one, "\"stride\":5,"));
    expect_rows(one, "blockmap-frames", 1);
    free(one);
    blockmap_destroy(map);
}
END_TEST

/* The first allocation fails, then the second, until it goes by: each says so. */
START_TEST(without_memory_it_says_so)
{
    for (uint64_t n = 1;; n++) {
        struct walk w;
        struct pkv_err err = {0};
        int result = -1;
        char *text = NULL;
        ask_sharers(&w);
        pkv_alloc_fail_at(n, 0);
        struct blockmap *map = blockmap_create(
            &(struct blockmap_config){ .sched = &w.scenario.sched }, &err);
        if (map) {
            w.also = blockmap_sink(map);
            result = try_walk(&w, &err);
        }
        if (result == 0)
            text = written(map, &result, &err);
        pkv_alloc_fail_at(0, 0);
        end_walk(&w);
        blockmap_destroy(map);
        free(text);
        if (result == 0)
            break;
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
        ck_assert_uint_lt(n, 5000);
    }
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    suite_add_tcase(suite, tcase);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("blockmap");
    TCase *by_hand = add_case(suite, "by hand"), *any = add_case(suite, "any");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(by_hand, every_tick_of_a_small_run_has_a_frame);
    tcase_add_test(by_hand, free_blocks_with_an_identity_are_told);
    tcase_add_test(by_hand, a_table_goes_with_its_request);
    tcase_add_test(by_hand, a_run_tells_where_it_will_end);
    tcase_add_test(by_hand, what_the_link_holds_is_nobodys);
    tcase_add_test(by_hand, places_that_a_window_has_left_are_null);
    tcase_add_test(by_hand, a_cell_may_be_of_several_blocks);
    tcase_add_test(by_hand, cells_tell_what_a_run_wastes);
    tcase_add_test(by_hand, the_stride_doubles);
    tcase_add_test(by_hand, every_nth_frame_is_written);
    tcase_add_test(by_hand, without_memory_it_says_so);
    tcase_add_loop_test(any, every_frame_is_that_of_its_row, 0, 300);
    tcase_add_loop_test(any, without_room_every_second_frame_goes, 0, 100);
    tcase_add_loop_test(any, any_cells_are_the_blocks_in_them, 0, 100);
    tcase_set_timeout(any, 60);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
