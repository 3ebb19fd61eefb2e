/*
 * trace_prev.c - see trace_prev.h.
 */
#include "report/trace_prev.h"

#include <string.h>

#include "base/alloc.h"

struct prev_text {
    struct pkv_span *spans;          /* [num] owned */
    struct pkv_trace_text *of;       /* [num] owned; their names are not kept */
    size_t num, spans_capacity, of_capacity;
};

static int add_span(struct trace_prev *p, struct pkv_span span, struct pkv_trace_text of,
                    struct pkv_err *err)
{
    if (pkv_grow(&p->spans, &p->spans_capacity, p->num_spans + 1, sizeof *p->spans, err) < 0 ||
        pkv_grow(&p->of, &p->of_capacity, p->num_spans + 1, sizeof *p->of, err) < 0)
        return -1;
    p->spans[p->num_spans] = span;
    p->of[p->num_spans++] = of;
    return 0;
}

/* The first `count` tokens of the former row. */
static int add_former(struct trace_prev *p, const struct prev_text *former, uint32_t count,
                      const struct pkv_span *span, struct pkv_err *err)
{
    struct pkv_trace_text rest = {PKV_ORIGIN_PREV, 0, NULL};
    for (size_t i = 0; former && i < former->num && count > 0; i++) {
        struct pkv_span part = former->spans[i];
        part.count = part.count < count ? part.count : count;
        count -= part.count;
        if (add_span(p, part, former->of[i], err) < 0)
            return -1;
    }
    if (count == 0)
        return 0;
    return add_span(p, (struct pkv_span){span->origin, span->first, count}, rest, err);
}

/* The whole prompt of the row, in p. */
static int put_together(struct trace_prev *p, const struct prev_text *former,
                        const struct pkv_content *content, const struct pkv_trace_texts *texts,
                        struct pkv_err *err)
{
    p->num_spans = 0;
    for (size_t i = 0; i < content->num_prompt_spans; i++) {
        const struct pkv_span *span = &content->prompt[i];
        int status = texts->spans[i].kind == PKV_ORIGIN_PREV
                         ? add_former(p, former, span->count, span, err)
                         : add_span(p, *span, texts->spans[i], err);
        if (status < 0)
            return -1;
    }
    return 0;
}

/* Keep what is in p, and the answer, as the last row of the session. */
static int keep(struct prev_text *text, const struct trace_prev *p,
                const struct pkv_request_spec *spec, struct pkv_err *err)
{
    size_t num = p->num_spans + (spec->num_output_tokens > 0 ? 1 : 0);
    if (pkv_grow(&text->spans, &text->spans_capacity, num, sizeof *text->spans, err) < 0 ||
        pkv_grow(&text->of, &text->of_capacity, num, sizeof *text->of, err) < 0)
        return -1;
    memcpy(text->spans, p->spans, p->num_spans * sizeof *text->spans);
    memcpy(text->of, p->of, p->num_spans * sizeof *text->of);
    text->num = num;
    if (num > p->num_spans) {
        text->spans[num - 1] = (struct pkv_span){spec->content.output_origin,
                                                 spec->content.output_first,
                                                 spec->num_output_tokens};
        text->of[num - 1] = (struct pkv_trace_text){PKV_ORIGIN_OUTPUT, spec->row, NULL};
    }
    return 0;
}

int trace_prev_put(struct trace_prev *p, const struct pkv_request_spec *spec,
                   struct pkv_content *content, struct pkv_trace_texts *texts,
                   struct pkv_err *err)
{
    if (!spec->session)
        return 0;
    uint64_t *entry = pkv_id_map_at(&p->sessions,
                                    pkv_hash_name(spec->session, strlen(spec->session)), err);
    if (!entry || pkv_grow(&p->texts, &p->capacity, p->num + 1, sizeof *p->texts, err) < 0)
        return -1;
    struct prev_text *former = *entry ? &p->texts[*entry - 1] : NULL;
    if (put_together(p, former, content, texts, err) < 0)
        return -1;
    if (!former) {
        former = &p->texts[p->num++];
        *former = (struct prev_text){0};
        *entry = p->num;
    }
    if (keep(former, p, spec, err) < 0)
        return -1;
    content->prompt = p->spans;
    content->num_prompt_spans = p->num_spans;
    texts->spans = p->of;
    return 0;
}

void trace_prev_free(struct trace_prev *p)
{
    for (size_t i = 0; i < p->num; i++) {
        pkv_free(p->texts[i].spans);
        pkv_free(p->texts[i].of);
    }
    pkv_free(p->texts);
    pkv_free(p->spans);
    pkv_free(p->of);
    pkv_id_map_free(&p->sessions);
}
