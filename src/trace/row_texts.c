/*
 * row_texts.c - what the spans of a row are of, for those who write it in another format.
 *
 * An origin is mixed so well that nothing can be read out of it again; so kind, number and name are
 * kept beside the spans where somebody asks for them.
 */
#include <string.h>

#include "base/alloc.h"
#include "trace/trace_private.h"

int pkv_row_texts_add(struct pkv_row_texts *t, const struct pkv_trace_text *of,
                      struct pkv_err *err)
{
    size_t size = of->name ? strlen(of->name) + 1 : 0;
    if (pkv_grow(&t->spans, &t->spans_capacity, t->num + 1, sizeof *t->spans, err) < 0 ||
        pkv_grow(&t->name_at, &t->name_at_capacity, t->num + 1, sizeof *t->name_at, err) < 0 ||
        pkv_grow(&t->names, &t->names_capacity, t->names_length + size, 1, err) < 0)
        return -1;
    t->spans[t->num] = *of;
    t->name_at[t->num] = of->name ? t->names_length : PKV_NO_TEXT;
    if (of->name)
        memcpy(t->names + t->names_length, of->name, size);
    t->names_length += size;
    t->num++;
    return 0;
}

void pkv_row_texts_end(struct pkv_row_texts *t)
{
    for (size_t i = 0; i < t->num; i++)
        t->spans[i].name = t->name_at[i] == PKV_NO_TEXT ? NULL : t->names + t->name_at[i];
    t->given.spans = t->spans;
}

void pkv_row_texts_clear(struct pkv_row_texts *t)
{
    t->num = t->names_length = 0;
    t->given = (struct pkv_trace_texts){0};
}

void pkv_row_texts_free(struct pkv_row_texts *t)
{
    pkv_free(t->spans);
    pkv_free(t->name_at);
    pkv_free(t->names);
}
