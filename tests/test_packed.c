/*
 * test_packed.c - tables for report.html: what comes out of the island is what went in, and a table that
 * finds no memory says so. The island is unpacked here by zlib and by the words of packed.h alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <zlib.h>

#include "base/alloc.h"
#include "files.h"
#include "report/packed.h"

#define NUM_COLUMNS 6u
#define NUM_ROWS 20000u
#define MOST_ALLOCATIONS 4000

static const char *const columns[NUM_COLUMNS] = {"step", "same", "any", "less", "plus", "edges"};

static uint64_t any_number(uint64_t row)
{
    return (row * UINT64_C(0x9e3779b97f4a7c15)) >> (row % 64);
}

/* Evenly growing with a jump; mostly the same; anything; like `any` but for little; what it lacks. */
static void make_row(int64_t *out, uint64_t row)
{
    out[0] = (int64_t)(3 * row + (row > 700 ? 1000000 : 0));
    out[1] = row % 500 == 499 ? -7 : 4;
    out[2] = (int64_t)any_number(row);
    out[3] = (int64_t)(any_number(row) - row % 2);
    out[4] = (int64_t)(100 - any_number(row));
    out[5] = row % 3 == 0 ? INT64_MAX : row % 3 == 1 ? INT64_MIN : 0;
}

static struct packed *make_table(struct pkv_err *err)
{
    struct packed *p = packed_create(columns, NUM_COLUMNS, err);
    if (!p)
        return NULL;
    packed_set_linear(p, 0);
    packed_set_like(p, 3, 2, false);
    packed_set_like(p, 4, 2, true);
    return p;
}

static int fill_and_write(struct packed *p, uint64_t num_rows, struct pkv_out *out, struct pkv_err *err)
{
    for (uint64_t row = 0; row < num_rows; row++) {
        int64_t values[NUM_COLUMNS];
        make_row(values, row);
        if (packed_row(p, values, err) < 0)
            return -1;
    }
    ck_assert_uint_eq(packed_num_rows(p), num_rows);
    return packed_write(p, "r1-", "steps", out, err);
}

/* ---- reading it back ---- */

static unsigned digit(char c)
{
    const char *digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    ck_assert_msg(c != 0 && at != NULL, "'%c' is no digit of base64", c);
    return (unsigned)(at - digits);
}

/* One line of base64 of gzip, unpacked into out; returns the length. */
static size_t unpack_line(const char *line, size_t length, unsigned char *out, size_t room)
{
    unsigned char *packed = malloc(length);
    size_t num = 0;
    z_stream z = {0};
    ck_assert_uint_eq(length % 4, 0);
    for (size_t i = 0; i < length; i += 4) {
        unsigned three = digit(line[i]) << 18 | digit(line[i + 1]) << 12;
        packed[num++] = (unsigned char)(three >> 16);
        if (line[i + 2] != '=')
            packed[num++] = (unsigned char)((three |= digit(line[i + 2]) << 6) >> 8);
        if (line[i + 3] != '=')
            packed[num++] = (unsigned char)(three | digit(line[i + 3]));
    }
    z.next_in = packed;
    z.avail_in = (unsigned)num;
    z.next_out = out;
    z.avail_out = (unsigned)room;
    ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(z.avail_in, 0);
    inflateEnd(&z);
    free(packed);
    return room - z.avail_out;
}

static uint64_t take_varint(const unsigned char **at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

static void decode(const unsigned char *bytes, size_t length, bool is_linear, uint64_t *out,
                   uint64_t num_rows)
{
    const unsigned char *at = bytes;
    uint64_t last = 0, growth = 0, row = 0;
    while (row < num_rows) {
        uint64_t zigzag = take_varint(&at), times = zigzag == 0 ? take_varint(&at) : 1;
        growth += zigzag >> 1 ^ (zigzag & 1 ? UINT64_MAX : 0);
        ck_assert_uint_le(times, num_rows - row);
        for (; times > 0; times--)
            out[row++] = last += growth;
        growth = is_linear ? growth : 0;
    }
    ck_assert_uint_eq((size_t)(at - bytes), length);
}

START_TEST(test_what_goes_in_comes_out)
{
    const uint64_t sizes[] = {0, 1, 2, 701, NUM_ROWS};
    const char *folder = make_folder();
    uint64_t *values[NUM_COLUMNS];
    unsigned char *bytes = malloc(NUM_ROWS * 12);
    char head[300];
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        values[i] = malloc(NUM_ROWS * sizeof *values[i]);
    uint64_t num_rows = sizes[_i];
    struct packed *p = make_table(NULL);
    struct pkv_out *out = pkv_out_open(folder, "page", NULL);
    ck_assert_int_eq(fill_and_write(p, num_rows, out, NULL), 0);
    ck_assert_int_eq(pkv_out_commit(out, NULL), 0);
    packed_destroy(p);
    char *text = read_text(folder, "page");
    snprintf(head, sizeof head, "<script type=\"text/plain\" id=\"pkv-r1-steps\">{\"columns\":[\"step\","
             "\"same\",\"any\",\"less\",\"plus\",\"edges\"],\"linear\":[\"step\"],"
             "\"less\":{\"less\":\"any\"},\"plus\":{\"plus\":\"any\"},\"rows\":%llu}\n",
             (unsigned long long)num_rows);
    ck_assert_int_eq(strncmp(text, head, strlen(head)), 0);
    const char *line = text + strlen(head);
    for (size_t i = 0; i < NUM_COLUMNS; i++, line += strcspn(line, "\n") + 1)
        decode(bytes, unpack_line(line, strcspn(line, "\n"), bytes, NUM_ROWS * 12), i == 0, values[i],
               num_rows);
    ck_assert_str_eq(line, "</script>\n");
    for (uint64_t row = 0; row < num_rows; row++) {
        int64_t want[NUM_COLUMNS];
        make_row(want, row);
        ck_assert_int_eq((int64_t)values[0][row], want[0]);
        ck_assert_int_eq((int64_t)values[1][row], want[1]);
        ck_assert_int_eq((int64_t)values[2][row], want[2]);
        ck_assert_int_eq((int64_t)(values[3][row] + values[2][row]), want[3]);
        ck_assert_int_eq((int64_t)(values[4][row] - values[2][row]), want[4]);
        ck_assert_int_eq((int64_t)values[5][row], want[5]);
    }
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        free(values[i]);
    free(bytes);
    free(text);
    remove_folder(folder);
}
END_TEST

START_TEST(test_texts)
{
    const char *folder = make_folder();
    unsigned char bytes[256];
    const char head[] = "<script type=\"text/plain\" id=\"pkv-ids\">{\"texts\":4}\n";
    struct packed_texts *t = packed_texts_create(NULL);
    struct pkv_out *out = pkv_out_open(folder, "page", NULL);
    packed_texts_add(t, "a", NULL);
    packed_texts_add(t, "", NULL);
    packed_texts_add(t, "two\nlines \\n </script>", NULL);
    packed_texts_add(t, "\xc3\xa4", NULL);
    ck_assert_int_eq(packed_texts_write(t, "", "ids", out, NULL), 0);
    ck_assert_int_eq(pkv_out_commit(out, NULL), 0);
    packed_texts_destroy(t);
    char *text = read_text(folder, "page");
    ck_assert_int_eq(strncmp(text, head, sizeof head - 1), 0);
    const char *line = text + sizeof head - 1;
    size_t length = unpack_line(line, strcspn(line, "\n"), bytes, sizeof bytes - 1);
    bytes[length] = 0;
    ck_assert_str_eq((const char *)bytes, "a\n\ntwo\\nlines \\\\n </script>\n\xc3\xa4\n");
    ck_assert_str_eq(line + strcspn(line, "\n"), "\n</script>\n");
    free(text);
    remove_folder(folder);
}
END_TEST

/* Everything that is packed needs memory at some time; each lack is told. */
START_TEST(test_no_memory)
{
    const char *folder = make_folder();
    struct pkv_out *out = pkv_out_open(folder, "page", NULL);
    int num_failed = 0;
    for (int n = 1; n <= MOST_ALLOCATIONS; n++) {
        struct pkv_err err = {0};
        pkv_alloc_fail_at((uint64_t)n, 1);
        struct packed *p = make_table(&err);
        int status = p ? fill_and_write(p, 3000, out, &err) : -1;
        pkv_alloc_fail_at(0, 0);
        packed_destroy(p);
        if (status == 0)
            break;
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
        num_failed++;
    }
    ck_assert_int_gt(num_failed, 12);
    ck_assert_int_lt(num_failed, MOST_ALLOCATIONS);
    pkv_out_drop(out);
    remove_folder(folder);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("packed");
    TCase *t = tcase_create("packed");
    tcase_add_loop_test(t, test_what_goes_in_comes_out, 0, 5);
    tcase_add_test(t, test_texts);
    tcase_add_test(t, test_no_memory);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed > 0;
}
