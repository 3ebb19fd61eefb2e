/*
 * write_tokens.c - rows whose prompts are token ids: the ranges of recorded loads, and
 * LLMServingSim's lists, with its sessions on one line each.
 *
 * A text that is no token range gets a range of its own: number n, from 2^31 on, is the ids
 * n * 2^32 .. (n + 1) * 2^32 - 1, far above the ids of answers. Ids up there that came so get others, too,
 * so that no two texts share a range. Formats after read_tokens.c and
 * read_llmservingsim.c.
 */
#include <inttypes.h>

#include "trace/trace_private.h"
#include "trace/write_private.h"

#define BIT(loss) PKV_LOSS_BIT(loss)
#define MAX_LISTED_TOKENS (UINT64_C(1) << 24)

/* The id of the first token of a span. Answers stand where the format has them, or are text like
 * any other. */
static int first_id(struct pkv_trace_writer *w, const struct pkv_span *span,
                    const struct pkv_trace_text *of, uint64_t *out, struct pkv_err *err)
{
    bool is_kept = of->kind == PKV_ORIGIN_TOKEN && of->number < PKV_FIRST_TEXT_NUMBER &&
                   (!pkv_write_is_answer(of) || !(w->lost & BIT(PKV_LOSS_ANSWERS)));
    uint64_t number = of->number;
    if (!is_kept) {
        /* What came before in another row's session is nobody else's here. */
        uint64_t key = of->kind == PKV_ORIGIN_PREV ? pkv_origin(of->kind, w->num_rows + 1)
                                                   : span->origin;
        uint64_t *entry = pkv_id_map_at(&w->map, key, err);
        if (!entry)
            return -1;
        if (*entry == 0)
            *entry = ++w->num_texts;
        if (*entry >= PKV_FIRST_TEXT_NUMBER)
            return pkv_fail(err, PKV_ERR_INPUT, "more than %" PRIu64 " texts are too many for ids of "
                            "tokens", PKV_FIRST_TEXT_NUMBER - 1);
        number = PKV_FIRST_TEXT_NUMBER + *entry;
    }
    *out = number << 32 | span->first;
    return 0;
}

static int row_tokens(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                      const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    struct pkv_text *t = &w->text;
    int64_t step = spec->arrival_ns / PKV_NS_PER_MS;
    char number[24];
    const char *id;
    if (step == 0)
        pkv_write_lose(w, PKV_LOSS_TIME);    /* steps begin at 1 */
    pkv_write_id(w, spec, number, &id);
    pkv_text_add(t, "{\"id\": ");
    pkv_text_json(t, id);
    pkv_text_fmt(t, ", \"arrival_step\": %" PRId64 ", \"prompt\": [", step ? step : 1);
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        uint64_t first = 0;
        if (first_id(w, &spec->content.prompt[i], &texts->spans[i], &first, err) < 0)
            return -1;
        pkv_text_fmt(t, "%s[%" PRIu64 ", %" PRIu32 "]", i ? ", " : "", first,
                     spec->content.prompt[i].count);
    }
    pkv_text_fmt(t, "], \"max_tokens\": %" PRIu32, spec->num_output_tokens);
    if (texts->salt) {
        pkv_text_add(t, ", \"cache_salt\": ");
        pkv_text_json(t, texts->salt);
    }
    if (spec->priority)
        pkv_text_fmt(t, ", \"priority\": %" PRId64, spec->priority);
    if (spec->abort_ns != PKV_NO_TIME) {
        if (spec->abort_ns % PKV_NS_PER_MS != 0 || spec->abort_ns < PKV_NS_PER_MS)
            pkv_write_lose(w, PKV_LOSS_ABORT);
        int64_t abort_step = spec->abort_ns / PKV_NS_PER_MS;
        pkv_text_fmt(t, ", \"abort_step\": %" PRId64, abort_step ? abort_step : 1);
    }
    pkv_text_add(t, "}\n");
    return 0;
}

/* Fields of one request, without braces; the ids only where others could have them, too. */
static int add_request(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                       const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    struct pkv_text *t = &w->text;
    pkv_text_fmt(t, "\"input_toks\": %" PRIu32 ", \"output_toks\": %" PRIu32,
                 spec->num_prompt_tokens, spec->num_output_tokens);
    if (pkv_write_form_of(w, spec, texts) == PKV_FORM_LENGTH)
        return 0;
    pkv_text_add(t, ", \"input_tok_ids\": [");
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        uint64_t first = 0;
        if (first_id(w, &spec->content.prompt[i], &texts->spans[i], &first, err) < 0)
            return -1;
        for (uint32_t k = 0; k < spec->content.prompt[i].count; k++) {
            pkv_text_add(t, i || k ? ", " : "");
            pkv_text_u64(t, first + k);
        }
    }
    pkv_text_add(t, "]");
    return 0;
}

static void close_line(struct pkv_trace_writer *w)
{
    if (w->is_open)
        pkv_text_add(&w->text, ", \"tool_duration_ns\": 0}]}\n");
    w->is_open = false;
}

static bool can_follow(const struct pkv_trace_writer *w, const struct pkv_request_spec *spec)
{
    return w->is_open && w->open_session == pkv_write_session(spec);
}

static int row_llmservingsim(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                             const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    struct pkv_text *t = &w->text;
    if (spec->follows) {
        pkv_text_fmt(t, ", \"tool_duration_ns\": %" PRId64 "}, {", spec->delay_ns);
        w->open_turns++;
    } else {
        close_line(w);
        pkv_text_fmt(t, "{\"arrival_time_ns\": %" PRId64 ", ", spec->arrival_ns);
    }
    if (spec->session && !spec->follows) {
        w->is_open = true;
        w->open_session = pkv_write_session(spec);
        w->open_turns = 1;
        pkv_text_add(t, "\"session_id\": ");
        pkv_text_json(t, spec->session);
        pkv_text_add(t, ", \"sub_requests\": [{");
    }
    if (spec->turn != (spec->session ? w->open_turns : 0))
        pkv_write_lose(w, PKV_LOSS_TURN);
    if (add_request(w, spec, texts, err) < 0)
        return -1;
    if (!spec->session)
        pkv_text_add(t, "}\n");
    return 0;
}

const struct pkv_encoder pkv_encoder_tokens = {
    .name = "tokens", .content = PKV_WRITE_TOKENS, .unit_ns = PKV_NS_PER_MS,
    .max_output_tokens = UINT64_C(1) << 20, .has_answers = true,
    .holds = BIT(PKV_LOSS_ID) | BIT(PKV_LOSS_PRIORITY) | BIT(PKV_LOSS_SALT) | BIT(PKV_LOSS_ABORT),
    .row = row_tokens,
};
const struct pkv_encoder pkv_encoder_llmservingsim = {
    .name = "llmservingsim", .content = PKV_WRITE_TOKENS, .unit_ns = 1,
    .max_prompt_tokens = MAX_LISTED_TOKENS, .can_follow = can_follow,
    .holds = BIT(PKV_LOSS_SESSION) | BIT(PKV_LOSS_TURN), .row = row_llmservingsim,
    .end = close_line,
};
