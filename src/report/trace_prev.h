/*
 * trace_prev.h - the text of a session's former row, put in the place where a trace says "@prev".
 *
 * Of each session the text of its last row is kept: prompt, then answer.
 */
#ifndef PKV_REPORT_TRACE_PREV_H
#define PKV_REPORT_TRACE_PREV_H

#include "base/id_map.h"
#include "pagedkv/trace.h"

struct prev_text;

/* Zero-initialise, finish with trace_prev_free(). */
struct trace_prev {
    struct prev_text *texts;         /* [num] owned; of each session */
    size_t num, capacity;
    struct pkv_id_map sessions;      /* hash of a name -> its text + 1 */
    struct pkv_span *spans;          /* owned; the row put together */
    struct pkv_trace_text *of;       /* [num_spans] owned */
    size_t num_spans, spans_capacity, of_capacity;
};

/* Rows in their order. content and texts are those of the row; where it contains the former one
 * they are pointed to the whole, until the next call. What the former row does not have, or that
 * there is none, is text that nobody shares. 0, or -1 with PKV_ERR_MEMORY. */
int trace_prev_put(struct trace_prev *prev, const struct pkv_request_spec *spec,
                   struct pkv_content *content, struct pkv_trace_texts *texts,
                   struct pkv_err *err);
void trace_prev_free(struct trace_prev *prev);

#endif
