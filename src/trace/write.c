/*
 * write.c - rows in a format of choice, and the account of what it cannot hold.
 */
#include "trace/write_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/units.h"

#define BIT(loss) PKV_LOSS_BIT(loss)
#define FLUSH_BYTES ((size_t)1 << 16)
#define DEFAULT_HASH_BLOCK_SIZE 512u

static const struct pkv_encoder *const encoders[] = {
    &pkv_encoder_native, &pkv_encoder_mooncake, &pkv_encoder_dynamo, &pkv_encoder_azure,
    &pkv_encoder_burstgpt, &pkv_encoder_vidur, &pkv_encoder_splitwise, &pkv_encoder_blis,
    &pkv_encoder_llmservingsim, &pkv_encoder_bailian, &pkv_encoder_tokens,
};
#define NUM_ENCODERS (sizeof encoders / sizeof *encoders)

const char *pkv_trace_loss_text(enum pkv_trace_loss loss)
{
#define PKV_NAME(sym, text) [sym] = text,
    static const char *const texts[] = { PKV_TRACE_LOSSES(PKV_NAME) };
#undef PKV_NAME
    PKV_ASSERT((unsigned)loss < PKV_TRACE_LOSS_COUNT);
    return texts[loss];
}

static const struct pkv_encoder *find_encoder(const char *name, struct pkv_err *err)
{
    char names[200] = "", hint[PKV_SUGGESTION_SIZE];
    struct pkv_nearest nearest;
    size_t used = 0;
    pkv_nearest_begin(&nearest, name);
    for (size_t i = 0; i < NUM_ENCODERS; i++) {
        pkv_nearest_offer(&nearest, encoders[i]->name);
        if (strcmp(encoders[i]->name, name) == 0)
            return encoders[i];
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 encoders[i]->name);
    }
    pkv_fail(err, PKV_ERR_INPUT, "'%.60s' is no format to write%s (known: %s)", name,
             pkv_nearest_say(&nearest, "", hint), names);
    return NULL;
}

struct pkv_trace_writer *pkv_trace_writer_create(const struct pkv_trace_writer_config *config,
                                                 struct pkv_err *err)
{
    const struct pkv_encoder *encoder = find_encoder(config->format, err);
    struct pkv_trace_writer *w = encoder ? pkv_alloc(1, sizeof *w, err) : NULL;
    if (!w)
        return NULL;
    w->config = *config;
    w->encoder = encoder;
    if (!w->config.from_block_size)
        w->config.from_block_size = DEFAULT_HASH_BLOCK_SIZE;
    if (!w->config.hash_block_size)
        w->config.hash_block_size =
            encoder->hash_block_size ? encoder->hash_block_size : w->config.from_block_size;
    if (encoder->begin)
        encoder->begin(w);
    return w;
}

void pkv_trace_writer_destroy(struct pkv_trace_writer *w)
{
    if (!w)
        return;
    pkv_text_free(&w->text);
    pkv_id_map_free(&w->map);
    pkv_free(w);
}

const uint64_t *pkv_trace_writer_losses(const struct pkv_trace_writer *w)
{
    return w->losses;
}

uint32_t pkv_trace_writer_block_size(const struct pkv_trace_writer *w)
{
    return w->has_ids ? w->config.hash_block_size : 0;
}

void pkv_write_lose(struct pkv_trace_writer *w, enum pkv_trace_loss loss)
{
    w->lost |= BIT(loss);
}

void pkv_write_id(struct pkv_trace_writer *w, const struct pkv_request_spec *spec, char out[24],
                  const char **out_id)
{
    (void)w;
    snprintf(out, 24, "%" PRIu64, spec->row);
    *out_id = spec->id ? spec->id : out;
}

uint64_t pkv_write_session(const struct pkv_request_spec *spec)
{
    return spec->session ? pkv_hash_name(spec->session, strlen(spec->session)) : 0;
}

bool pkv_write_is_number(const char *text, uint64_t *out)
{
    return (text[0] != '0' || text[1] == '\0') &&
           pkv_parse_u64(text, strlen(text), UINT64_C(1) << 53, out, NULL) == 0;
}

/* What a row has, as bits of what is lost where a format has no place for it. */
static unsigned features(const struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                         const struct pkv_trace_texts *texts)
{
    unsigned has = 0;
    has |= spec->id ? BIT(PKV_LOSS_ID) : 0;
    has |= spec->tenant ? BIT(PKV_LOSS_TENANT) : 0;
    has |= spec->session ? BIT(PKV_LOSS_SESSION) : 0;
    has |= spec->turn ? BIT(PKV_LOSS_TURN) : 0;
    has |= spec->loop ? BIT(PKV_LOSS_LOOP) : 0;
    has |= spec->max_tokens != (spec->num_output_tokens ? spec->num_output_tokens : 1)
               ? BIT(PKV_LOSS_MAX_TOKENS) : 0;
    has |= spec->priority ? BIT(PKV_LOSS_PRIORITY) : 0;
    has |= spec->deadline_ns != PKV_NO_TIME ? BIT(PKV_LOSS_DEADLINE) : 0;
    has |= spec->abort_ns != PKV_NO_TIME ? BIT(PKV_LOSS_ABORT) : 0;
    has |= texts->salt ? BIT(PKV_LOSS_SALT) : 0;
    has |= texts->adapter ? BIT(PKV_LOSS_ADAPTER) : 0;
    has |= spec->num_samples > 1 ? BIT(PKV_LOSS_SAMPLES) : 0;
    has |= spec->arrival_ns % w->encoder->unit_ns != 0 ? BIT(PKV_LOSS_TIME) : 0;
    has |= w->num_written == 0 && spec->arrival_ns > 0 && w->encoder->starts_at_zero
               ? BIT(PKV_LOSS_BEGIN) : 0;
    return has;
}

/* Is the prompt a named text, or nothing, and then its own? */
static bool is_prefix(const struct pkv_request_spec *spec, const struct pkv_trace_texts *texts)
{
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++)
        if (texts->spans[i].kind != PKV_ORIGIN_OWN &&
            (i > 0 || texts->spans[i].kind != PKV_ORIGIN_NAME))
            return false;
    return true;
}

static bool is_segment(const struct pkv_trace_text *of, const struct pkv_span *span)
{
    return of->kind == PKV_ORIGIN_OWN ||
           (span->first == 0 && (of->kind == PKV_ORIGIN_NAME || of->kind == PKV_ORIGIN_PREV ||
                                 of->kind == PKV_ORIGIN_PREFIX));
}

enum pkv_write_form pkv_write_form_of(const struct pkv_trace_writer *w,
                                      const struct pkv_request_spec *spec,
                                      const struct pkv_trace_texts *texts)
{
    size_t num = spec->content.num_prompt_spans;
    uint32_t block = w->config.hash_block_size;
    bool own = true, segments = true;
    /* Where a salt has no place the ids must tell texts under different ones apart. */
    bool ids = block == w->config.from_block_size &&
               ((!texts->salt && !texts->adapter) || (w->encoder->holds & BIT(PKV_LOSS_SALT)));
    for (size_t i = 0; i < num; i++) {
        const struct pkv_span *span = &spec->content.prompt[i];
        own &= texts->spans[i].kind == PKV_ORIGIN_OWN;
        ids &= texts->spans[i].kind == PKV_ORIGIN_HASH_ID && span->first == 0 &&
               (i + 1 == num ? span->count <= block : span->count == block);
        segments &= is_segment(&texts->spans[i], span);
    }
    return own ? PKV_FORM_LENGTH : ids ? PKV_FORM_IDS
         : segments && w->encoder->content == PKV_WRITE_SEGMENTS ? PKV_FORM_SEGMENTS
         : PKV_FORM_BLOCKS;
}

/* What a block made here does not say: text beyond whole blocks, unless it came in ids whose size
 * is a multiple of theirs. */
static unsigned block_losses(const struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                             const struct pkv_trace_texts *texts)
{
    bool divides = w->config.from_block_size % w->config.hash_block_size == 0;
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++)
        if (texts->spans[i].kind != PKV_ORIGIN_OWN &&
            (texts->spans[i].kind != PKV_ORIGIN_HASH_ID || !divides))
            return BIT(PKV_LOSS_BLOCKS);
    return 0;
}

/* Answers of other rows in a prompt: as token ids above a mark, or as the text of the row before. */
static unsigned answer_losses(const struct pkv_trace_writer *w,
                              const struct pkv_request_spec *spec,
                              const struct pkv_trace_texts *texts)
{
    bool in_place = w->encoder->has_answers && w->num_written == spec->row;
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        const struct pkv_trace_text *of = &texts->spans[i];
        if (of->kind == PKV_ORIGIN_PREV || (pkv_write_is_answer(of) && !in_place))
            return BIT(PKV_LOSS_ANSWERS);
    }
    return 0;
}

/* What the format cannot say of the prompt. */
static unsigned content_losses(const struct pkv_trace_writer *w,
                               const struct pkv_request_spec *spec,
                               const struct pkv_trace_texts *texts)
{
    enum pkv_write_form form = pkv_write_form_of(w, spec, texts);
    switch (w->encoder->content) {
    case PKV_WRITE_LENGTHS:
        return form == PKV_FORM_LENGTH ? 0 : BIT(PKV_LOSS_CONTENT);
    case PKV_WRITE_PREFIX:
        return is_prefix(spec, texts) ? 0 : BIT(PKV_LOSS_CONTENT);
    case PKV_WRITE_IDS:
    case PKV_WRITE_SEGMENTS:
        if (form != PKV_FORM_BLOCKS)
            return 0;
        return block_losses(w, spec, texts) | answer_losses(w, spec, texts);
    case PKV_WRITE_TOKENS:
        return answer_losses(w, spec, texts);
    }
    PKV_UNREACHABLE("a way to say what is shared");
}

/* Must the whole row stay away? PKV_TRACE_LOSS_COUNT = no. */
static enum pkv_trace_loss must_leave_out(const struct pkv_trace_writer *w,
                                          const struct pkv_request_spec *spec)
{
    const struct pkv_encoder *e = w->encoder;
    if (spec->num_output_tokens == 0 && !(e->holds & BIT(PKV_LOSS_NO_OUTPUT)))
        return PKV_LOSS_NO_OUTPUT;
    if (spec->follows && (!e->can_follow || !e->can_follow(w, spec)))
        return PKV_LOSS_FOLLOWS;
    if ((e->max_prompt_tokens && spec->num_prompt_tokens > e->max_prompt_tokens) ||
        (e->max_output_tokens && spec->num_output_tokens > e->max_output_tokens))
        return PKV_LOSS_LARGE;
    return PKV_TRACE_LOSS_COUNT;
}

static int flush(struct pkv_trace_writer *w, struct pkv_err *err)
{
    if (w->text.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a row");
    if (w->text.length == 0)
        return 0;
    int status = w->config.put(w->config.ctx, w->text.text, w->text.length, err);
    pkv_text_clear(&w->text);
    return status;
}

int pkv_trace_writer_row(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                         const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    enum pkv_trace_loss left_out = must_leave_out(w, spec);
    w->lost = 0;
    if (left_out == PKV_TRACE_LOSS_COUNT) {
        w->lost = (features(w, spec, texts) & ~w->encoder->holds) |
                  content_losses(w, spec, texts);
        if (w->encoder->row(w, spec, texts, err) < 0)
            return -1;
        w->num_written++;
    } else {
        pkv_write_lose(w, left_out);
    }
    w->num_rows++;
    for (int loss = 0; loss < PKV_TRACE_LOSS_COUNT; loss++)
        w->losses[loss] += (w->lost >> loss) & 1;
    return w->text.length < FLUSH_BYTES && !w->text.failed ? 0 : flush(w, err);
}

int pkv_trace_writer_end(struct pkv_trace_writer *w, struct pkv_err *err)
{
    if (w->encoder->end)
        w->encoder->end(w);
    return flush(w, err);
}
