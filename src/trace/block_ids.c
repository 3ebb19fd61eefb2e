/*
 * block_ids.c - see block_ids.h.
 */
#include "trace/block_ids.h"

#include "base/mix.h"

void pkv_block_walk_begin(struct pkv_block_walk *w, const struct pkv_content *content,
                          const struct pkv_trace_texts *texts, uint32_t block_size)
{
    *w = (struct pkv_block_walk){
        .content = content, .of = texts->spans, .block_size = block_size, .chain = content->root,
    };
}

/* Text that goes on without a break, up to `room` tokens, over spans that continue each other. */
static struct pkv_span take_piece(struct pkv_block_walk *w, uint32_t room)
{
    const struct pkv_content *c = w->content;
    struct pkv_span piece = {c->prompt[w->span].origin, c->prompt[w->span].first + w->in_span, 0};
    while (room > 0 && w->span < c->num_prompt_spans) {
        const struct pkv_span *s = &c->prompt[w->span];
        if (s->origin != piece.origin || s->first + w->in_span != piece.first + piece.count)
            break;
        uint32_t left = s->count - w->in_span, count = left < room ? left : room;
        piece.count += count;
        room -= count;
        w->in_span += count;
        if (w->in_span == s->count) {
            w->span++;
            w->in_span = 0;
        }
    }
    return piece;
}

bool pkv_block_walk_next(struct pkv_block_walk *w, uint64_t *out_id, uint32_t *out_tokens)
{
    uint32_t tokens = 0;
    while (tokens < w->block_size && w->span < w->content->num_prompt_spans) {
        enum pkv_origin_kind kind = w->of[w->span].kind;
        struct pkv_span piece = take_piece(w, w->block_size - tokens);
        tokens += piece.count;
        bool is_last = tokens == w->block_size || w->span == w->content->num_prompt_spans;
        w->met_own |= kind == PKV_ORIGIN_OWN;
        if (kind == PKV_ORIGIN_PREV)
            piece.origin = pkv_mix(w->content->output_origin, piece.origin);
        w->chain = pkv_mix(pkv_mix(w->chain, piece.origin), piece.first);
        w->chain = pkv_mix(w->chain, kind == PKV_ORIGIN_HASH_ID && is_last ? 0 : piece.count);
    }
    *out_id = pkv_mix(w->chain, 1);
    *out_tokens = tokens;
    w->chain = *out_id;
    return tokens > 0;
}
