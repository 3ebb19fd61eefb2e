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
    pkv_lines_finish(&s->lines);
    pkv_input_close(s->input);
}

int side_next(struct side *s, struct pkv_err *err)
{
    int more = pkv_lines_next(&s->lines, &s->text, &s->length, err);
    if (more <= 0)
        s->text = NULL;
    return more < 0 ? -1 : 0;
}
