/*
 * test_trace_input.c - files, lines, and packed traces: every byte flipped, cut and left out.
 *
 * A packed trace with one damaged byte must be an error or give the very same rows (a byte of a
 * header that says nothing about the content). Rows that came out before the damage was met are no
 * fault: the end is an error. zstd data made without its checksum cannot tell a damaged literal, so
 * there only crashes and endless loops are looked for.
 */
#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "files.h"
#include "trace/input.h"
#include "trace_fixture.h"

/* ROWS packed by `zstd -19 --check` and `zstd -19 --no-check`. */
static const unsigned char zst_bytes[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0xdd, 0x02, 0x00, 0xd2, 0x84, 0x11, 0x17, 0x80, 0x59,
    0x07, 0x5a, 0x51, 0xa2, 0x88, 0xb6, 0xba, 0x69, 0x60, 0x09, 0x91, 0x37, 0x3c, 0x01, 0xfd,
    0x42, 0xc4, 0x16, 0xa6, 0x80, 0x3a, 0xa6, 0xa2, 0x93, 0x88, 0x80, 0x31, 0xb4, 0x10, 0x52,
    0xb9, 0x96, 0x09, 0x7b, 0xf7, 0xb5, 0xd4, 0x9b, 0xe3, 0x4c, 0xf8, 0x3b, 0x00, 0xc8, 0xd4,
    0xd4, 0x74, 0x7e, 0x0b, 0x75, 0xa4, 0x9d, 0x6c, 0xd0, 0x68, 0xca, 0xf2, 0x7d, 0x8f, 0x3a,
    0xc7, 0xa3, 0x95, 0x16, 0x5f, 0x7f, 0x09, 0x06, 0x00, 0x57, 0x67, 0xb4, 0x03, 0xc2, 0xa0,
    0x13, 0x0f, 0x61, 0x76, 0x56, 0x1d, 0x83, 0xc5, 0xcd, 0x27, 0x4d, 0x99, 0x60, 0xfa,
};
static const unsigned char zst_plain_bytes[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68, 0xdd, 0x02, 0x00, 0xd2, 0x84, 0x11, 0x17, 0x80, 0x59,
    0x07, 0x5a, 0x51, 0xa2, 0x88, 0xb6, 0xba, 0x69, 0x60, 0x09, 0x91, 0x37, 0x3c, 0x01, 0xfd,
    0x42, 0xc4, 0x16, 0xa6, 0x80, 0x3a, 0xa6, 0xa2, 0x93, 0x88, 0x80, 0x31, 0xb4, 0x10, 0x52,
    0xb9, 0x96, 0x09, 0x7b, 0xf7, 0xb5, 0xd4, 0x9b, 0xe3, 0x4c, 0xf8, 0x3b, 0x00, 0xc8, 0xd4,
    0xd4, 0x74, 0x7e, 0x0b, 0x75, 0xa4, 0x9d, 0x6c, 0xd0, 0x68, 0xca, 0xf2, 0x7d, 0x8f, 0x3a,
    0xc7, 0xa3, 0x95, 0x16, 0x5f, 0x7f, 0x09, 0x06, 0x00, 0x57, 0x67, 0xb4, 0x03, 0xc2, 0xa0,
    0x13, 0x0f, 0x61, 0x76, 0x56, 0x1d, 0x83, 0xc5, 0xcd, 0x27,
};
static const char ROWS[] =
    "{\"timestamp\":0,\"input_length\":9,\"output_length\":3}\n"
    "{\"timestamp\":1.5,\"prompt\":[[\"g\",4],[null,1]],\"output_length\":2}\n"
    "{\"timestamp\":7,\"input_length\":30,\"output_length\":1}\n";

static struct rows rows, want;

struct packed {
    const char *name;
    unsigned char *bytes;        /* owned */
    size_t length;
    bool has_checksum;
};

static struct packed copy_of(const char *name, const void *bytes, size_t length)
{
    struct packed p = {name, malloc(length), length, true};
    memcpy(p.bytes, bytes, length);
    return p;
}

/* One member, appended. */
static void add_gzip(struct packed *p, const char *text, size_t length)
{
    z_stream z = {0};
    p->bytes = realloc(p->bytes, p->length + 4096);
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)length;
    z.next_out = p->bytes + p->length;
    z.avail_out = 4096;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    p->length += z.total_out;
    deflateEnd(&z);
}

static struct packed pack_gzip(void)
{
    struct packed p = {"gzip", NULL, 0, true};
    add_gzip(&p, ROWS, sizeof ROWS - 1);
    return p;
}

static struct packed pack_gzip_twice(void)
{
    struct packed p = {"gzip, two members", NULL, 0, true};
    add_gzip(&p, ROWS, 70);                       /* the first ends within a row */
    add_gzip(&p, ROWS + 70, sizeof ROWS - 1 - 70);
    return p;
}

static struct packed pack_xz(void)
{
    struct packed p = {"xz", malloc(4096), 0, true};
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_add_filter_xz(a);
    archive_write_set_format_raw(a);
    archive_write_set_bytes_in_last_block(a, 1);
    ck_assert_int_eq(archive_write_open_memory(a, p.bytes, 4096, &p.length), ARCHIVE_OK);
    archive_entry_set_filetype(entry, AE_IFREG);
    ck_assert_int_eq(archive_write_header(a, entry), ARCHIVE_OK);
    ck_assert_int_eq(archive_write_data(a, ROWS, sizeof ROWS - 1), (la_ssize_t)sizeof ROWS - 1);
    archive_write_close(a);
    archive_entry_free(entry);
    archive_write_free(a);
    return p;
}

static struct packed pack_zstd(void)
{
    return copy_of("zstd", zst_bytes, sizeof zst_bytes);
}

static struct packed pack_zstd_plain(void)
{
    struct packed p = copy_of("zstd, no checksum", zst_plain_bytes, sizeof zst_plain_bytes);
    p.has_checksum = false;
    return p;
}

static struct packed (*const packers[])(void) = {
    pack_gzip, pack_gzip_twice, pack_zstd, pack_xz, pack_zstd_plain,
};
#define NUM_PACKERS ((int)(sizeof packers / sizeof *packers))

static bool same_rows(const struct rows *a, const struct rows *b)
{
    if (a->num != b->num)
        return false;
    for (size_t i = 0; i < a->num; i++)
        if (a->row[i].spec.arrival_ns != b->row[i].spec.arrival_ns ||
            a->row[i].spec.num_output_tokens != b->row[i].spec.num_output_tokens ||
            memcmp(a->row[i].spans, b->row[i].spans, sizeof a->row[i].spans) != 0)
            return false;
    return true;
}

static void expect_error_or_same(const struct packed *p, const char *what, size_t at,
                                 const unsigned char *bytes, size_t length)
{
    /* A copy of exactly this size, so that a sanitizer sees a look beyond its end. */
    unsigned char *exact = malloc(length ? length : 1);
    memcpy(exact, bytes, length);
    read_memory(exact, length, NULL, &rows);
    free(exact);
    if (rows.status < 0) {
        ck_assert_int_eq(rows.err.code, PKV_ERR_INPUT);
        ck_assert_uint_gt(strlen(rows.err.text), 5);
        ck_assert_str_eq(rows.err.path, "rows");
    } else if (p->has_checksum) {
        ck_assert_msg(same_rows(&rows, &want), "%s: %s byte %zu: other rows", p->name, what, at);
    }
}

START_TEST(unpacks)
{
    struct packed p = packers[_i]();
    read_memory(p.bytes, p.length, NULL, &rows);
    ck_assert_msg(rows.status == 0, "%s: %s", p.name, rows.err.text);
    ck_assert(same_rows(&rows, &want));
    free(p.bytes);
}
END_TEST

START_TEST(every_bit_flipped)
{
    struct packed p = packers[_i]();
    for (size_t at = 0; at < p.length; at++)
        for (int bit = 0; bit < 8; bit++) {
            p.bytes[at] ^= (unsigned char)(1 << bit);
            expect_error_or_same(&p, "flipped", at, p.bytes, p.length);
            p.bytes[at] ^= (unsigned char)(1 << bit);
        }
    free(p.bytes);
}
END_TEST

START_TEST(every_byte_left_out)
{
    struct packed p = packers[_i]();
    unsigned char *bytes = malloc(p.length);
    for (size_t at = 0; at < p.length; at++) {
        memcpy(bytes, p.bytes, at);
        memcpy(bytes + at, p.bytes + at + 1, p.length - at - 1);
        expect_error_or_same(&p, "left out", at, bytes, p.length - 1);
    }
    free(bytes);
    free(p.bytes);
}
END_TEST

START_TEST(every_cut)
{
    struct packed p = packers[_i]();
    for (size_t length = 0; length < p.length; length++) {
        read_memory(p.bytes, length, NULL, &rows);
        if (_i == 1 && rows.status == 0)      /* between two members a file may end */
            ck_assert_uint_lt(rows.num, want.num);
        else
            ck_assert_msg(rows.status < 0, "%s: cut to %zu of %zu", p.name, length, p.length);
        if (length >= 6 && strstr(rows.err.text, "data is"))
            ck_assert_msg(strstr(rows.err.text, "cut off") || strstr(rows.err.text, "damaged"),
                          "%s", rows.err.text);
    }
    free(p.bytes);
}
END_TEST

START_TEST(says_cut_off)
{
    struct packed p = packers[_i]();
    char words[64];
    snprintf(words, sizeof words, "the %.*s data is cut off", (int)strcspn(p.name, ","), p.name);
    read_memory(p.bytes, p.length - 9, NULL, &rows);
    ck_assert_str_eq(rows.err.text, words);
    free(p.bytes);
}
END_TEST

START_TEST(garbage_behind_the_end)
{
    struct packed p = packers[_i]();
    p.bytes = realloc(p.bytes, p.length + 5);
    memcpy(p.bytes + p.length, "junk\n", 5);
    read_memory(p.bytes, p.length + 5, NULL, &rows);
    ck_assert_msg(rows.status < 0, "%s", p.name);
    free(p.bytes);
}
END_TEST

START_TEST(memory_runs_out)
{
    struct packed p = packers[_i]();
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        ck_assert_uint_lt(n, 1000);
        pkv_alloc_fail_at(n, 1);
        read_memory(p.bytes, p.length, NULL, &rows);
        pkv_alloc_fail_at(0, 0);
        failed = rows.status < 0;
        if (failed)
            ck_assert_int_eq(rows.err.code, PKV_ERR_MEMORY);
    }
    free(p.bytes);
}
END_TEST

static void expect_open_error(const char *path, const char *words)
{
    struct pkv_err err = {0};
    ck_assert_ptr_null(pkv_trace_open(path, NULL, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, path);
    ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
}

START_TEST(files)
{
    const char *folder = make_folder();
    write_text(folder, "rows.xz", ROWS);          /* the name tells nothing */
    write_text(folder, "empty", "");
    char *path = path_in(folder, "rows.xz"), *empty = path_in(folder, "empty");
    char *missing = path_in(folder, "missing");
    struct pkv_trace *t = pkv_trace_open(path, NULL, NULL);
    ck_assert_ptr_nonnull(t);
    memset(&rows, 0, sizeof rows);
    take_rows(t, &rows);
    pkv_trace_close(t);
    ck_assert(same_rows(&rows, &want));
    expect_open_error(missing, "cannot be opened: No such file or directory");
    expect_open_error(folder, "is a directory, not a file");
    expect_open_error(empty, "is empty");
    chmod(path, 0);
    if (geteuid() != 0)                            /* root may read everything */
        expect_open_error(path, "cannot be opened: Permission denied");
    free(path);
    free(empty);
    free(missing);
    remove_folder(folder);
}
END_TEST

START_TEST(standard_input)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], zst_bytes, sizeof zst_bytes), (ssize_t)sizeof zst_bytes);
    close(ends[1]);
    ck_assert_int_eq(dup2(ends[0], 0), 0);
    close(ends[0]);
    struct pkv_trace *t = pkv_trace_open("-", NULL, NULL);
    ck_assert_ptr_nonnull(t);
    memset(&rows, 0, sizeof rows);
    take_rows(t, &rows);
    pkv_trace_close(t);
    ck_assert(same_rows(&rows, &want));
    ck_assert_int_eq(close(0), 0);                 /* closing the trace left it open */
}
END_TEST

/* All lines of a text, joined by '|'. */
static const char *join_lines(const void *bytes, size_t length)
{
    static char out[256];
    struct pkv_input *input = pkv_input_open_memory("text", bytes, length, NULL);
    struct pkv_lines lines;
    const char *text;
    size_t size, used = 0;
    uint64_t number = 0;
    pkv_lines_init(&lines, input);
    while (pkv_lines_next(&lines, &text, &size, NULL) > 0) {
        ck_assert_uint_eq(lines.number, ++number);
        used += (size_t)snprintf(out + used, sizeof out - used, "%.*s|", (int)size, text);
    }
    pkv_lines_finish(&lines);
    pkv_input_close(input);
    out[used] = '\0';
    return out;
}

START_TEST(line_ends)
{
    ck_assert_str_eq(join_lines("", 0), "");
    ck_assert_str_eq(join_lines("a", 1), "a|");
    ck_assert_str_eq(join_lines("a\n", 2), "a|");
    ck_assert_str_eq(join_lines("a\r\nb\n\nc\r", 8), "a|b||c|");
    ck_assert_str_eq(join_lines("\n", 1), "|");
    ck_assert_str_eq(join_lines("\xef\xbb\xbf" "a\n\xef\xbb\xbf" "b", 9), "a|\xef\xbb\xbf" "b|");
}
END_TEST

START_TEST(long_lines)
{
    /* Lines of 1, 2, .. bytes past several sizes of the buffer. */
    size_t length = (size_t)3 << 20, at = 0, size;
    char *bytes = malloc(length);
    const char *text;
    struct pkv_lines lines;
    size_t sizes[] = {1, 262143, 262144, 262145, 700000, 0, 1000000};
    for (size_t i = 0; i < 7; i++) {
        memset(bytes + at, 'a' + (int)i, sizes[i]);
        at += sizes[i];
        bytes[at++] = '\n';
    }
    struct pkv_input *input = pkv_input_open_memory("text", bytes, at, NULL);
    pkv_lines_init(&lines, input);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_int_eq(pkv_lines_next(&lines, &text, &size, NULL), 1);
        ck_assert_uint_eq(size, sizes[i]);
        for (size_t k = 0; k < size; k++)
            if (text[k] != 'a' + (int)i)
                ck_abort_msg("line %zu, byte %zu", i, k);
    }
    ck_assert_int_eq(pkv_lines_next(&lines, &text, &size, NULL), 0);
    pkv_lines_finish(&lines);
    pkv_input_close(input);
    free(bytes);
}
END_TEST

START_TEST(a_line_without_end_is_refused)
{
    size_t length = PKV_MAX_LINE_BYTES + ((size_t)1 << 20);
    char *bytes = malloc(length);
    memset(bytes, '{', length);
    read_memory(bytes, length, NULL, &rows);
    ck_assert_int_eq(rows.status, -1);
    ck_assert_ptr_nonnull(strstr(rows.err.text, "longer than 67108864 bytes"));
    ck_assert_uint_eq(rows.err.line, 1);
    free(bytes);
}
END_TEST

static void read_want(void)
{
    expect_rows(ROWS, NULL, &want);
}

int main(void)
{
    Suite *s = suite_create("trace_input");
    TCase *c = tcase_create("trace_input");
    tcase_add_checked_fixture(c, read_want, NULL);
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, unpacks, 0, NUM_PACKERS);
    tcase_add_loop_test(c, every_bit_flipped, 0, NUM_PACKERS);
    tcase_add_loop_test(c, every_byte_left_out, 0, NUM_PACKERS);
    tcase_add_loop_test(c, every_cut, 0, NUM_PACKERS);
    tcase_add_loop_test(c, says_cut_off, 0, NUM_PACKERS);
    tcase_add_loop_test(c, garbage_behind_the_end, 0, NUM_PACKERS);
    tcase_add_loop_test(c, memory_runs_out, 0, NUM_PACKERS);
    tcase_add_test(c, files);
    tcase_add_test(c, standard_input);
    tcase_add_test(c, line_ends);
    tcase_add_test(c, long_lines);
    tcase_add_test(c, a_line_without_end_is_refused);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
