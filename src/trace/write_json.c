/*
 * write_json.c - rows of JSON lines with hash ids or segments: native, Mooncake, Dynamo, Bailian.
 *
 * A prompt that did not come with ids of the size that is written gets ids of its blocks: 63 bits
 * of their identities (block_ids.h), which equal each other if and only if all the text up to there
 * does. Fields and units are those of read_native.c's and read_bailian.c's sources.
 */
#include <inttypes.h>
#include <stdio.h>

#include "trace/block_ids.h"
#include "trace/trace_private.h"
#include "trace/synth_private.h"
#include "trace/write_private.h"

#define BIT(loss) PKV_LOSS_BIT(loss)

static void add_number(struct pkv_text *t, const char *name, uint64_t number)
{
    pkv_text_fmt(t, ", \"%s\": %" PRIu64, name, number);
}

static void add_string(struct pkv_text *t, const char *name, const char *text)
{
    if (!text)
        return;
    pkv_text_fmt(t, ", \"%s\": ", name);
    pkv_text_json(t, text);
}

static void add_ms(struct pkv_text *t, const char *name, int64_t ns)
{
    if (ns == PKV_NO_TIME)
        return;
    pkv_text_fmt(t, ", \"%s\": ", name);
    pkv_text_ratio(t, ns, PKV_NS_PER_MS, 6);
}

/* The ids a row came with, or those of its blocks. */
static void add_ids(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                    const struct pkv_trace_texts *texts)
{
    struct pkv_text *t = &w->text;
    struct pkv_block_walk walk;
    uint64_t id;
    uint32_t tokens;
    w->has_ids = true;
    pkv_text_add(t, ", \"hash_ids\": [");
    if (pkv_write_form_of(w, spec, texts) == PKV_FORM_IDS) {
        for (size_t i = 0; i < spec->content.num_prompt_spans; i++)
            pkv_text_fmt(t, "%s%" PRIu64, i ? ", " : "", texts->spans[i].number);
    } else {
        pkv_block_walk_begin(&walk, &spec->content, texts, w->config.hash_block_size);
        /* What reads numbers as doubles has 53 bits of them. */
        for (size_t i = 0; pkv_block_walk_next(&walk, &id, &tokens); i++)
            pkv_text_fmt(t, "%s%" PRIu64, i ? ", " : "", id >> 11);
    }
    pkv_text_add(t, "]");
}

static void add_segment(struct pkv_text *t, const struct pkv_trace_text *of, uint32_t count)
{
    char name[PKV_PREFIX_NAME_SIZE];
    switch (of->kind) {
    case PKV_ORIGIN_OWN:
        pkv_text_add(t, "[null");
        break;
    case PKV_ORIGIN_PREV:
        pkv_text_add(t, "[\"@prev\"");
        break;
    case PKV_ORIGIN_NAME:
        pkv_text_add(t, "[");
        pkv_text_json(t, of->name);
        break;
    case PKV_ORIGIN_TOKEN: case PKV_ORIGIN_HASH_ID: case PKV_ORIGIN_OUTPUT: case PKV_ORIGIN_SAMPLE:
        PKV_UNREACHABLE("no segment is of this kind");
    case PKV_ORIGIN_PREFIX:
        pkv_prefix_name(of->number, name);
        pkv_text_add(t, "[");
        pkv_text_json(t, name);
        break;
    }
    pkv_text_fmt(t, ", %" PRIu32 "]", count);
}

static void add_segments(struct pkv_text *t, const struct pkv_request_spec *spec,
                         const struct pkv_trace_texts *texts)
{
    pkv_text_add(t, ", \"prompt\": [");
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        pkv_text_add(t, i ? ", " : "");
        add_segment(t, &texts->spans[i], spec->content.prompt[i].count);
    }
    pkv_text_add(t, "]");
}

/* Mooncake's own fields, but for how long the output is. A time that nobody can know is left out. */
static void begin_row(struct pkv_trace_writer *w, const struct pkv_request_spec *spec)
{
    struct pkv_text *t = &w->text;
    pkv_text_add(t, "{\"timestamp\": ");
    pkv_text_ratio(t, spec->arrival_ns, PKV_NS_PER_MS, 6);
    add_number(t, "input_length", spec->num_prompt_tokens);
}

static void add_row(struct pkv_trace_writer *w, const struct pkv_request_spec *spec)
{
    begin_row(w, spec);
    add_number(&w->text, "output_length", spec->num_output_tokens);
}

/* One length, or one for each sample. */
static void add_outputs(struct pkv_text *t, const struct pkv_request_spec *spec)
{
    if (!spec->sample_output_tokens) {
        add_number(t, "output_length", spec->num_output_tokens);
    } else {
        pkv_text_add(t, ", \"output_length\": [");
        for (uint32_t i = 0; i < spec->num_samples; i++)
            pkv_text_fmt(t, "%s%" PRIu32, i ? ", " : "", spec->sample_output_tokens[i]);
        pkv_text_add(t, "]");
    }
    if (spec->num_samples > 1)
        add_number(t, spec->is_beam_search ? "beam_width" : "n", spec->num_samples);
}

static void add_native_fields(struct pkv_text *t, const struct pkv_request_spec *spec,
                              const struct pkv_trace_texts *texts)
{
    if (spec->max_tokens != (spec->num_output_tokens ? spec->num_output_tokens : 1))
        add_number(t, "max_tokens", spec->max_tokens);
    if (spec->priority)
        pkv_text_fmt(t, ", \"priority\": %" PRId64, spec->priority);
    add_string(t, "id", spec->id);
    add_string(t, "tenant", spec->tenant);
    add_string(t, "salt", texts->salt);
    add_string(t, "adapter", texts->adapter);
    add_ms(t, "deadline_ms", spec->deadline_ns);
    add_ms(t, "abort_ms", spec->abort_ns);
    add_string(t, "session", spec->session);
    if (spec->turn)
        add_number(t, "turn", spec->turn);
    if (spec->follows)
        add_ms(t, "delay_ms", spec->delay_ns);
    if (spec->session && spec->is_last)
        pkv_text_add(t, ", \"last\": true");
    add_string(t, "loop", spec->loop);
}

static int row_native(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                      const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    (void)err;
    begin_row(w, spec);
    add_outputs(&w->text, spec);
    switch (pkv_write_form_of(w, spec, texts)) {
    case PKV_FORM_LENGTH:   break;
    case PKV_FORM_SEGMENTS: add_segments(&w->text, spec, texts); break;
    case PKV_FORM_IDS:
    case PKV_FORM_BLOCKS:   add_ids(w, spec, texts); break;
    }
    add_native_fields(&w->text, spec, texts);
    pkv_text_add(&w->text, "}\n");
    return 0;
}

static int row_mooncake(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                        const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    (void)err;
    add_row(w, spec);
    add_ids(w, spec, texts);
    pkv_text_add(&w->text, "}\n");
    return 0;
}

static int row_dynamo(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                      const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    struct pkv_text *t = &w->text;
    (void)err;
    add_row(w, spec);
    add_ids(w, spec, texts);
    add_string(t, "request_id", spec->id);
    add_string(t, "session_id", spec->session);
    if (spec->follows)
        add_ms(t, "delay", spec->delay_ns);
    pkv_text_add(t, "}\n");
    return 0;
}

/* Sessions that begin when others are over are known to the native format only. */
static bool but_in_loops(const struct pkv_trace_writer *w, const struct pkv_request_spec *spec)
{
    (void)w;
    return spec->loop == NULL;
}

static bool always(const struct pkv_trace_writer *w, const struct pkv_request_spec *spec)
{
    (void)w;
    (void)spec;
    return true;
}

/* Numbers for those without: beyond any that a trace has given so far. */
#define FIRST_CHAT (UINT64_C(1) << 40)

/* The chat of a row and the one before it in its session, -1 = none; the session's last is noted.
 * A session is then known by the chat it began with, so that its name is a number, too. */
static int find_chats(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                      uint64_t *out_chat, int64_t *out_parent, struct pkv_err *err)
{
    uint64_t root;
    if (!spec->id || !pkv_write_is_number(spec->id, out_chat)) {
        *out_chat = FIRST_CHAT + spec->row;
        if (spec->id)
            pkv_write_lose(w, PKV_LOSS_ID);
    }
    *out_parent = -1;
    if (!spec->session)
        return 0;
    uint64_t *last = pkv_id_map_at(&w->map, pkv_write_session(spec), err);
    if (!last)
        return -1;
    if (*last)
        *out_parent = (int64_t)(*last - 1);
    else if (pkv_write_is_number(spec->session, &root) && root != *out_chat)
        *out_parent = (int64_t)root;
    *last = *out_chat + 1;
    return 0;
}

static int row_bailian(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                       const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    struct pkv_text *t = &w->text;
    uint64_t chat;
    int64_t parent;
    if (find_chats(w, spec, &chat, &parent, err) < 0)
        return -1;
    pkv_text_fmt(t, "{\"chat_id\": %" PRIu64 ", \"parent_chat_id\": %" PRId64 ", \"timestamp\": ",
                 chat, parent);
    pkv_text_ratio(t, spec->arrival_ns, PKV_NS_PER_S, 9);
    add_number(t, "input_length", spec->num_prompt_tokens);
    add_number(t, "output_length", spec->num_output_tokens);
    pkv_text_add(t, ", \"type\": \"text\"");
    if (spec->turn)
        add_number(t, "turn", spec->turn);
    add_ids(w, spec, texts);
    pkv_text_add(t, "}\n");
    return 0;
}

const struct pkv_encoder pkv_encoder_native = {
    .name = "native", .content = PKV_WRITE_SEGMENTS, .unit_ns = 1, .holds = ~0u,
    .can_follow = always, .row = row_native,
};
const struct pkv_encoder pkv_encoder_mooncake = {
    .name = "mooncake", .content = PKV_WRITE_IDS, .unit_ns = 1, .holds = BIT(PKV_LOSS_NO_OUTPUT),
    .row = row_mooncake,
};
const struct pkv_encoder pkv_encoder_dynamo = {
    .name = "dynamo", .content = PKV_WRITE_IDS, .unit_ns = 1,
    .holds = BIT(PKV_LOSS_NO_OUTPUT) | BIT(PKV_LOSS_ID) | BIT(PKV_LOSS_SESSION),
    .can_follow = but_in_loops, .row = row_dynamo,
};
const struct pkv_encoder pkv_encoder_bailian = {
    .name = "bailian", .content = PKV_WRITE_IDS, .unit_ns = 1, .hash_block_size = 16,
    .holds = BIT(PKV_LOSS_ID) | BIT(PKV_LOSS_SESSION) | BIT(PKV_LOSS_TURN), .row = row_bailian,
};
