/*
 * packed.c - tables of whole numbers for report.html, packed row by row while a run goes on.
 *
 * Each column has a stream of its own, as its neighbours in a column foretell a value better than
 * those in its row. A window of 4 kB is enough: what repeats does so soon.
 */
#include "report/packed.h"

#include <stdbool.h>
#include <zlib.h>

#include "base/alloc.h"

#define ROW_BYTES 32u       /* at most: a run of the same and a value */
#define PLAIN_BYTES 4096u
#define WINDOW_BITS 12
#define GZIP_HEADER 16      /* added to the window bits */
#define MEMORY_LEVEL 5
#define LEVEL 4
#define MORE_BYTES 1024u

#define LIKE_NONE 0u
#define LIKE_PLUS 1u
#define LIKE_LESS UINT64_MAX    /* -1 */

struct column {
    z_stream stream;
    int64_t last;
    uint64_t growth;                    /* expected: 0, of a linear one what it was the last time */
    bool is_linear;
    uint64_t like;                      /* the other is added so often */
    size_t other;
    uint64_t num_same;                  /* rows that were as expected, not written yet */
    size_t num_plain;
    unsigned char plain[PLAIN_BYTES];   /* not packed yet */
    unsigned char *bytes;               /* owned, [num of capacity] */
    size_t num, capacity;
    bool has_stream;
};

struct packed {
    const char *const *names;           /* borrowed, [num_columns] */
    size_t num_columns;
    uint64_t num_rows;
    struct column columns[];
};

static void *take_memory(void *opaque, unsigned num, unsigned size)
{
    (void)opaque;
    return pkv_alloc(num, size, NULL);
}

static void give_memory(void *opaque, void *memory)
{
    (void)opaque;
    pkv_free(memory);
}

static int fail_memory(struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the rows of report.html");
}

static int column_init(struct column *c, struct pkv_err *err)
{
    c->stream.zalloc = take_memory;
    c->stream.zfree = give_memory;
    if (deflateInit2(&c->stream, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_HEADER, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return fail_memory(err);
    c->has_stream = true;
    return 0;
}

static void column_finish(struct column *c)
{
    if (c->has_stream)
        deflateEnd(&c->stream);
    pkv_free(c->bytes);
}

struct packed *packed_create(const char *const *columns, size_t num, struct pkv_err *err)
{
    struct packed *p = pkv_alloc(1, sizeof *p + num * sizeof p->columns[0], err);
    if (!p)
        return NULL;
    p->names = columns;
    p->num_columns = num;
    for (size_t i = 0; i < num; i++) {
        if (column_init(&p->columns[i], err) < 0) {
            packed_destroy(p);
            return NULL;
        }
    }
    return p;
}

void packed_destroy(struct packed *p)
{
    for (size_t i = 0; p && i < p->num_columns; i++)
        column_finish(&p->columns[i]);
    pkv_free(p);
}

void packed_set_linear(struct packed *p, size_t column)
{
    PKV_ASSERT(column < p->num_columns && p->num_rows == 0);
    p->columns[column].is_linear = true;
}

void packed_set_like(struct packed *p, size_t column, size_t other, bool mirrored)
{
    PKV_ASSERT(column < p->num_columns && other < p->num_columns && p->num_rows == 0);
    PKV_ASSERT(column != other && p->columns[other].like == LIKE_NONE);
    p->columns[column].like = mirrored ? LIKE_PLUS : LIKE_LESS;
    p->columns[column].other = other;
}

/* Pack what is there; flush: Z_NO_FLUSH, or Z_FINISH for the last time. */
static int pack(struct column *c, int flush, struct pkv_err *err)
{
    z_stream *z = &c->stream;
    int status;
    z->next_in = c->plain;
    z->avail_in = (unsigned)c->num_plain;
    do {
        if (pkv_grow(&c->bytes, &c->capacity, c->num + MORE_BYTES, 1, err) < 0)
            return -1;
        unsigned room = (unsigned)(c->capacity - c->num < UINT32_MAX ? c->capacity - c->num
                                                                     : UINT32_MAX);
        z->next_out = c->bytes + c->num;
        z->avail_out = room;
        status = deflate(z, flush);
        PKV_ASSERT(status != Z_STREAM_ERROR);
        c->num += room - z->avail_out;
    } while (z->avail_out == 0 || (flush == Z_FINISH && status != Z_STREAM_END));
    c->num_plain = 0;
    return 0;
}

static void put_varint(struct column *c, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        c->plain[c->num_plain++] = (unsigned char)(value | 0x80);
    c->plain[c->num_plain++] = (unsigned char)value;
}

static void put_same(struct column *c)
{
    if (c->num_same == 0)
        return;
    put_varint(c, 0);
    put_varint(c, c->num_same);
    c->num_same = 0;
}

static int put_value(struct column *c, int64_t value, struct pkv_err *err)
{
    uint64_t growth = (uint64_t)value - (uint64_t)c->last, up = growth - c->growth;
    c->last = value;
    c->growth = c->is_linear ? growth : 0;
    put_same(c);
    put_varint(c, up << 1 ^ (up >> 63 ? UINT64_MAX : 0));
    return c->num_plain > PLAIN_BYTES - ROW_BYTES ? pack(c, Z_NO_FLUSH, err) : 0;
}

int packed_row(struct packed *p, const int64_t *values, struct pkv_err *err)
{
    for (size_t i = 0; i < p->num_columns; i++) {
        struct column *c = &p->columns[i];
        uint64_t value = (uint64_t)values[i] + c->like * (uint64_t)values[c->other];
        int64_t expected = (int64_t)((uint64_t)c->last + c->growth);
        if ((int64_t)value == expected) {
            c->last = expected;
            c->num_same++;
        } else if (put_value(c, (int64_t)value, err) < 0) {
            return -1;
        }
    }
    p->num_rows++;
    return 0;
}

uint64_t packed_num_rows(const struct packed *p)
{
    return p->num_rows;
}

static void write_base64(struct pkv_out *out, const unsigned char *bytes, size_t num)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < num; i += 3) {
        size_t left = num - i;
        unsigned three = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0u);
        const char four[] = {digits[three >> 18], digits[three >> 12 & 63],
                             left > 1 ? digits[three >> 6 & 63] : '=',
                             left > 2 ? digits[three & 63] : '='};
        pkv_out_bytes(out, four, sizeof four);
    }
}

static void begin_island(struct pkv_out *out, const char *prefix, const char *name)
{
    pkv_out_text(out, "<script type=\"text/plain\" id=\"pkv-");
    pkv_out_text(out, prefix);
    pkv_out_text(out, name);
    pkv_out_text(out, "\">");
}

static int write_column(struct column *c, struct pkv_out *out, struct pkv_err *err)
{
    put_same(c);
    if (pack(c, Z_FINISH, err) < 0)
        return -1;
    write_base64(out, c->bytes, c->num);
    pkv_out_char(out, '\n');
    return 0;
}

/* A name in quotes, behind a comma unless it is the first. */
static void write_name(struct pkv_out *out, const char *name, bool *is_first)
{
    pkv_out_text(out, *is_first ? "\"" : ",\"");
    pkv_out_text(out, name);
    pkv_out_char(out, '"');
    *is_first = false;
}

static void write_linear(const struct packed *p, struct pkv_out *out)
{
    bool is_first = true;
    pkv_out_text(out, "\"linear\":[");
    for (size_t i = 0; i < p->num_columns; i++)
        if (p->columns[i].is_linear)
            write_name(out, p->names[i], &is_first);
    pkv_out_text(out, "],");
}

static void write_like(const struct packed *p, const char *key, uint64_t like, struct pkv_out *out)
{
    bool is_first = true;
    pkv_out_char(out, '"');
    pkv_out_text(out, key);
    pkv_out_text(out, "\":{");
    for (size_t i = 0; i < p->num_columns; i++) {
        if (p->columns[i].like != like)
            continue;
        write_name(out, p->names[i], &is_first);
        pkv_out_char(out, ':');
        bool is_other = true;
        write_name(out, p->names[p->columns[i].other], &is_other);
    }
    pkv_out_text(out, "},");
}

int packed_write(struct packed *p, const char *prefix, const char *name, struct pkv_out *out,
                 struct pkv_err *err)
{
    begin_island(out, prefix, name);
    pkv_out_text(out, "{\"columns\":[");
    bool is_first = true;
    for (size_t i = 0; i < p->num_columns; i++)
        write_name(out, p->names[i], &is_first);
    pkv_out_text(out, "],");
    write_linear(p, out);
    write_like(p, "less", LIKE_LESS, out);
    write_like(p, "plus", LIKE_PLUS, out);
    pkv_out_text(out, "\"rows\":");
    pkv_out_u64(out, p->num_rows);
    pkv_out_text(out, "}\n");
    for (size_t i = 0; i < p->num_columns; i++)
        if (write_column(&p->columns[i], out, err) < 0)
            return -1;
    pkv_out_text(out, "</script>\n");
    return 0;
}

/* ---- texts ---- */

struct packed_texts {
    struct column column;
    uint64_t num;
};

struct packed_texts *packed_texts_create(struct pkv_err *err)
{
    struct packed_texts *t = pkv_alloc(1, sizeof *t, err);
    if (t && column_init(&t->column, err) < 0) {
        packed_texts_destroy(t);
        return NULL;
    }
    return t;
}

void packed_texts_destroy(struct packed_texts *t)
{
    if (t)
        column_finish(&t->column);
    pkv_free(t);
}

static int put_char(struct column *c, char byte, struct pkv_err *err)
{
    c->plain[c->num_plain++] = (unsigned char)byte;
    return c->num_plain == PLAIN_BYTES ? pack(c, Z_NO_FLUSH, err) : 0;
}

int packed_texts_add(struct packed_texts *t, const char *text, struct pkv_err *err)
{
    t->num++;
    for (; *text; text++) {
        bool is_escaped = *text == '\\' || *text == '\n';
        if ((is_escaped && put_char(&t->column, '\\', err) < 0) ||
            put_char(&t->column, *text == '\n' ? 'n' : *text, err) < 0)
            return -1;
    }
    return put_char(&t->column, '\n', err);
}

int packed_texts_write(struct packed_texts *t, const char *prefix, const char *name,
                       struct pkv_out *out, struct pkv_err *err)
{
    begin_island(out, prefix, name);
    pkv_out_text(out, "{\"texts\":");
    pkv_out_u64(out, t->num);
    pkv_out_text(out, "}\n");
    if (write_column(&t->column, out, err) < 0)
        return -1;
    pkv_out_text(out, "</script>\n");
    return 0;
}
