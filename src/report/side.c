/*
 * side.c - one of two files that are compared, line by line, unpacked on the way.
 */
#include "report/diff_private.h"

int side_open(struct side *s, const char *path, struct pkv_err *err)
{
    s->path = path;
    s->input = pkv_input_open(path, err);
    if (!s->input)
        return -1;
    pkv_lines_init(&s->lines, s->input);
    return side_next(s, err);
}

void side_close(struct side *s)
{
    if (!s->input)
        return;
    pkv_text_free(&s->joined);
    pkv_lines_finish(&s->lines);
    pkv_input_close(s->input);
}

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

int side_next(struct side *s, struct pkv_err *err)
{
    int more;
    do
        more = pkv_lines_next(&s->lines, &s->text, &s->length, err);
    while (more > 0 && is_blank(s->text, s->length));
    if (more <= 0)
        s->text = NULL;
    return more < 0 ? -1 : 0;
}

/* A quote inside a quoted field is doubled, so only the sum matters. */
static bool ends_in_quotes(const char *text, size_t length)
{
    bool quoted = false;
    for (size_t i = 0; i < length; i++)
        quoted ^= text[i] == '"';
    return quoted;
}

int side_next_row(struct side *s, struct pkv_err *err)
{
    if (side_next(s, err) < 0)
        return -1;
    if (!s->text || !ends_in_quotes(s->text, s->length))
        return 0;
    pkv_text_clear(&s->joined);
    pkv_text_bytes(&s->joined, s->text, s->length);
    for (bool open = true; open;) {
        int more = pkv_lines_next(&s->lines, &s->text, &s->length, err);
        if (more < 0)
            return -1;
        if (more == 0)    /* the quote never ends, which is told where the row is split */
            break;
        pkv_text_bytes(&s->joined, "\n", 1);
        pkv_text_bytes(&s->joined, s->text, s->length);
        open ^= ends_in_quotes(s->text, s->length);
    }
    if (s->joined.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a row of %s", s->path);
    s->text = s->joined.text;
    s->length = s->joined.length;
    return 0;
}

int side_split(const struct side *s, struct row *row, struct pkv_err *err)
{
    bool quoted = false;
    const char *begin = s->text, *end = s->text + s->length;
    row->num = 0;
    for (const char *at = begin;; at++) {
        if (at < end && *at == '"')
            quoted = !quoted;
        if (at < end && (quoted || *at != ','))
            continue;
        if (row->num == ROW_MAX_FIELDS)
            return pkv_fail_at(err, s->path, s->lines.number, (uint32_t)(begin - s->text) + 1,
                               "a row has more than %u fields", ROW_MAX_FIELDS);
        row->fields[row->num] = begin;
        row->lengths[row->num++] = (size_t)(at - begin);
        begin = at + 1;
        if (at >= end)
            break;
    }
    if (quoted)
        return pkv_fail_at(err, s->path, s->lines.number, 0, "a quoted field does not end");
    return 0;
}
