/*
 * lines.c - lines out of one buffer that is refilled behind the last whole line. It grows only for
 * a line longer than itself.
 */
#include <string.h>

#include "base/alloc.h"
#include "trace/input.h"

#define FIRST_CAPACITY ((size_t)1 << 18)

void pkv_lines_init(struct pkv_lines *l, struct pkv_input *input)
{
    *l = (struct pkv_lines){.input = input};
}

void pkv_lines_finish(struct pkv_lines *l)
{
    pkv_free(l->buffer);
    *l = (struct pkv_lines){0};
}

/* Move the rest to the front and read more behind it. */
static int refill(struct pkv_lines *l, struct pkv_err *err)
{
    size_t rest = l->end - l->begin, num;
    if (rest > PKV_MAX_LINE_BYTES)
        return pkv_fail_at(err, pkv_input_path(l->input), l->number + 1, 0,
                           "this line is longer than %zu bytes", PKV_MAX_LINE_BYTES);
    if (l->begin > 0 && rest > 0)
        memmove(l->buffer, l->buffer + l->begin, rest);
    l->begin = 0;
    l->end = rest;
    if (l->end == l->capacity) {
        size_t want = l->capacity ? l->capacity * 2 : FIRST_CAPACITY;
        if (pkv_grow(&l->buffer, &l->capacity, want, 1, err) < 0)
            return -1;
    }
    if (pkv_input_read(l->input, l->buffer + l->end, l->capacity - l->end, &num, err) < 0)
        return -1;
    l->end += num;
    l->at_end = num == 0;
    return 0;
}

/* Find the end of the line at begin, looking from `from` bytes behind it. */
static int find_end(struct pkv_lines *l, const char **out, struct pkv_err *err)
{
    size_t looked = 0;
    for (;;) {
        const char *text = l->buffer ? l->buffer + l->begin : NULL;
        size_t length = l->end - l->begin;
        *out = length > looked ? memchr(text + looked, '\n', length - looked) : NULL;
        if (*out)
            return 0;
        looked = length;
        if (l->at_end) {
            *out = length ? text + length : NULL;
            return 0;
        }
        if (refill(l, err) < 0)
            return -1;
    }
}

int pkv_lines_next(struct pkv_lines *l, const char **out_text, size_t *out_length,
                   struct pkv_err *err)
{
    const char *end;
    if (l->kept) {
        *out_text = l->kept;
        *out_length = l->kept_length;
        l->kept = NULL;
        return 1;
    }
    if (find_end(l, &end, err) < 0)
        return -1;
    if (!end)
        return 0;
    const char *text = l->buffer + l->begin;
    l->has_open_end = end == l->buffer + l->end;
    l->begin = (size_t)(end - l->buffer) + !l->has_open_end;
    if (end > text && end[-1] == '\r') {
        l->has_crlf = true;
        end--;
    }
    if (l->number == 0 && end - text >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        l->has_bom = true;
        text += 3;
    }
    l->number++;
    *out_text = text;
    *out_length = (size_t)(end - text);
    return 1;
}

void pkv_lines_put_back(struct pkv_lines *l, const char *text, size_t length)
{
    l->kept = text;
    l->kept_length = length;
}
