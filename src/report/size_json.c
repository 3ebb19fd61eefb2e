/*
 * size_json.c - the answer to a question of size as JSON.
 *
 * Every figure is an exact integer, and its key says what it counts: bytes, tokens, blocks, layers,
 * requests, hundredths. What was not asked, has no meaning or is 2^64 or more is left out.
 */
#include "report/size_private.h"

#include <inttypes.h>

#include "base/alloc.h"

static void pair(struct pkv_text *t, const char *indent, const char *key, uint64_t n)
{
    pkv_text_fmt(t, ",\n%s\"%s\": %" PRIu64, indent, key, n);
}

/* A sum that may have been cut: 2^64 or more is left out, as it is no exact figure. */
static void cut_pair(struct pkv_text *t, const char *indent, const char *key, uint64_t n)
{
    if (n < UINT64_MAX)
        pair(t, indent, key, n);
}

static void text_pair(struct pkv_text *t, const char *indent, const char *key, const char *text)
{
    pkv_text_fmt(t, ",\n%s\"%s\": ", indent, key);
    pkv_text_json(t, text);
}

static void add_type(struct pkv_text *t, const struct size_answer *a, uint32_t i)
{
    const struct pkv_kv_type *type = &a->q->model.types[i];
    uint32_t tp = a->plan.config.tp;
    pkv_text_fmt(t, "    {\"kind\": \"%s\", \"num_layers\": %u", pkv_kv_kind_name(type->kind),
                 size_layers_of(a, i));
    if (type->kind == PKV_KV_LATENT) {
        pkv_text_fmt(t, ", \"latent_values\": %u, \"rope_values\": %u", type->latent_dim,
                     type->rope_dim);
        if (type->index_dim > 0)
            pkv_text_fmt(t, ", \"index_values\": %u", type->index_dim);
    } else if (type->kind != PKV_KV_STATE) {
        pkv_text_fmt(t, ", \"num_kv_heads\": %u, \"num_kv_heads_per_rank\": %u, "
                     "\"head_dim_k\": %u, \"head_dim_v\": %u", type->num_kv_heads,
                     type->num_kv_heads > tp ? type->num_kv_heads / tp : 1, type->head_dim_k,
                     type->head_dim_v);
    }
    if (type->window > 0)
        pkv_text_fmt(t, ", \"window_tokens\": %u", type->window);
    if (type->kind == PKV_KV_STATE)
        pkv_text_fmt(t, ", \"layer_state_bytes\": %" PRIu64 "}", a->plan.state_bytes[i]);
    else
        pkv_text_fmt(t, ", \"layer_position_bytes\": %" PRIu64 "}", a->plan.type_bytes[i]);
}

static void add_model(struct pkv_text *t, const struct size_answer *a)
{
    const struct pkv_kv_model *m = &a->q->model;
    pkv_text_add(t, "{\n  \"schema\": 1,\n  \"model\": ");
    pkv_text_json(t, m->name);
    if (m->note[0])
        text_pair(t, "  ", "note", m->note);
    pair(t, "  ", "num_layers", m->num_layers);
    pkv_text_add(t, ",\n  \"layer_types\": [\n");
    for (uint32_t i = 0; i < m->num_types; i++) {
        add_type(t, a, i);
        pkv_text_add(t, i + 1 < m->num_types ? ",\n" : "\n  ]");
    }
    text_pair(t, "  ", "kv_dtype", pkv_kv_dtype_name(a->plan.config.dtype));
    if (a->plan.state_total_bytes > 0)
        text_pair(t, "  ", "state_dtype", a->plan.config.fp32_state
                                              ? "fp32" : pkv_kv_dtype_name(m->dtype));
    pair(t, "  ", "tp", a->plan.config.tp);
    pair(t, "  ", "pp", a->plan.num_stages);
    pair(t, "  ", "dcp", a->plan.config.dcp);
    pair(t, "  ", "num_draft_layers", a->plan.config.num_draft_layers);
}

static void add_position(struct pkv_text *t, const struct size_answer *a)
{
    pair(t, "  ", "position_bytes", a->plan.position_bytes);
    pair(t, "  ", "growing_position_bytes", a->plan.growing_bytes);
    cut_pair(t, "  ", "window_sequence_bytes", a->window_bytes);
    pair(t, "  ", "state_sequence_bytes", a->plan.state_total_bytes);
    cut_pair(t, "  ", "fixed_sequence_bytes", a->fixed_bytes);
    pair(t, "  ", "block_size_tokens", a->plan.config.block_size);
    if (a->plan.page_bytes > 0)
        pair(t, "  ", "page_bytes", a->plan.page_bytes);
    if (a->plan.state_total_bytes > 0)
        pair(t, "  ", "state_page_padding_bytes", a->plan.state_padding_bytes);
    pair(t, "  ", "group_size_layers", a->plan.group_size);
    pkv_text_add(t, ",\n  \"groups\": [\n");
    for (uint32_t i = 0; i < a->plan.num_groups; i++) {
        const struct pkv_kv_group *g = &a->plan.groups[i];
        pkv_text_fmt(t, "    {\"kind\": \"%s\", \"block_size_tokens\": %u, \"num_layers\": %u, "
                     "\"padding_layers\": %u", pkv_kv_kind_name(g->kind), g->block_size,
                     g->num_layers, a->plan.group_size - g->num_layers);
        if (g->window > 0)
            pkv_text_fmt(t, ", \"window_tokens\": %u", g->window);
        pkv_text_add(t, i + 1 < a->plan.num_groups ? "},\n" : "}\n  ]");
    }
}

static void add_stages(struct pkv_text *t, const struct size_answer *a)
{
    pkv_text_add(t, ",\n  \"stages\": [\n");
    for (uint32_t i = 0; i < a->plan.num_stages; i++) {
        const struct pkv_kv_stage *s = &a->plan.stages[i];
        pkv_text_fmt(t, "    {\"stage\": %u, \"num_layers\": %u, \"position_bytes\": %" PRIu64
                     ", \"growing_position_bytes\": %" PRIu64 ", \"state_sequence_bytes\": %" PRIu64
                     ", \"block_layers\": %u, \"block_bytes\": %" PRIu64 "}%s\n", i, s->num_layers,
                     s->position_bytes, s->growing_bytes, s->state_bytes, s->block_layers,
                     s->block_bytes, i + 1 < a->plan.num_stages ? "," : "\n  ]");
    }
}

static void add_budget(struct pkv_text *t, const struct pkv_size_budget *b)
{
    pkv_text_add(t, ",\n  \"budget\": {\n    \"total_from\": ");
    pkv_text_json(t, b->total_source);
    pair(t, "    ", "total_bytes", b->terms.total_bytes);
    pair(t, "    ", "utilisation_millionths", b->terms.share_millionths);
    pair(t, "    ", "weights_bytes", b->terms.weights_bytes);
    pkv_text_fmt(t, ",\n    \"weights_estimated\": %s", b->weights_estimated ? "true" : "false");
    pair(t, "    ", "activation_bytes", b->terms.activation_bytes);
    pkv_text_fmt(t, ",\n    \"activation_given\": %s", b->activation_given ? "true" : "false");
    pair(t, "    ", "other_bytes", b->terms.other_bytes);
    pkv_text_fmt(t, ",\n    \"other_given\": %s", b->other_given ? "true" : "false");
    pair(t, "    ", "graphs_bytes", b->terms.graphs_bytes);
    pkv_text_fmt(t, ",\n    \"graphs_given\": %s", b->graphs_given ? "true" : "false");
    pkv_text_add(t, "\n  }");
}

static void add_ranks(struct pkv_text *t, const struct size_answer *a)
{
    pkv_text_add(t, ",\n  \"ranks\": [\n");
    for (uint32_t i = 0; i < a->fit.num_ranks; i++) {
        const struct pkv_kv_rank *r = &a->fit.ranks[i];
        pkv_text_fmt(t, "    {\"stage\": %u, ", r->stage);
        if (!a->fit.alike)
            pkv_text_fmt(t, "\"tp_rank\": %u, ", r->tp_rank);
        pkv_text_fmt(t, "\"pool_bytes\": %" PRIu64 ", \"block_bytes\": %" PRIu64, r->pool_bytes,
                     r->block_bytes);
        if (r->block_bytes > 0)
            pkv_text_fmt(t, ", \"num_blocks\": %" PRIu64, r->num_blocks);
        pkv_text_fmt(t, ", \"stranded_bytes\": %" PRIu64 ", \"limiting\": %s}%s\n",
                     r->stranded_bytes, i == a->fit.limiting_rank ? "true" : "false",
                     i + 1 < a->fit.num_ranks ? "," : "\n  ]");
    }
}

/* Where one request of the greatest length does not fit, the engine says how many bytes it would need
 * and which length fits, and has no ratio to print. */
static void add_max_len(struct pkv_text *t, const struct size_answer *a)
{
    if (a->max_len == 0)
        return;
    pair(t, "  ", "max_model_len_tokens", a->max_len);
    if (!a->has_pool)
        return;
    pkv_text_fmt(t, ",\n  \"max_model_len_fits\": %s", a->max_len_fits ? "true" : "false");
    pair(t, "  ", "longest_request_tokens", a->longest);
    if (!a->max_len_fits) {
        uint64_t bytes;
        if (!__builtin_mul_overflow(a->max_len_blocks, a->block_bytes, &bytes))
            pair(t, "  ", "max_model_len_request_bytes", bytes);
        return;
    }
    pair(t, "  ", "max_model_len_request_blocks", a->max_len_blocks);
    pair(t, "  ", "tokens_new_rule", pkv_kv_tokens_new_rule(&a->plan, a->fit.num_blocks, a->max_len));
    pair(t, "  ", "max_concurrency_hundredths", size_hundredths(a->fit.num_blocks,
                                                                a->max_len_blocks));
}

static void add_pool(struct pkv_text *t, const struct size_answer *a)
{
    if (a->has_pool) {
        add_ranks(t, a);
        pair(t, "  ", "num_gpu_blocks", a->fit.num_blocks);
        pair(t, "  ", "num_blocks", a->num_usable);
        pair(t, "  ", "tokens_old_rule", pkv_kv_tokens_old_rule(&a->plan, a->fit.num_blocks));
    }
    add_max_len(t, a);
}

static void length_bytes(struct pkv_text *t, const char *key, uint64_t n)
{
    if (n < UINT64_MAX)
        pkv_text_fmt(t, ", \"%s\": %" PRIu64, key, n);
}

static void add_lengths(struct pkv_text *t, const struct size_answer *a)
{
    pkv_text_add(t, ",\n  \"lengths\": [");
    for (size_t i = 0; i < a->num_lengths; i++) {
        const struct size_length *l = &a->lengths[i];
        pkv_text_fmt(t, "%s    {\"positions_tokens\": %" PRIu64 ", \"request_blocks\": %" PRIu64,
                     i > 0 ? ",\n" : "\n", l->positions, l->blocks);
        length_bytes(t, "payload_bytes", l->payload_bytes);
        length_bytes(t, "held_bytes", l->held_bytes);
        pkv_text_add(t, "}");
    }
    pkv_text_add(t, a->num_lengths > 0 ? "\n  ]" : "]");
}

static void add_requests(struct pkv_text *t, const struct size_answer *a)
{
    const struct pkv_size_question *q = a->q;
    uint64_t end = q->prompt + q->output - (q->output > 0 ? 1 : 0);
    if (q->prompt == 0)
        return;
    pkv_text_add(t, ",\n  \"requests\": {");
    pkv_text_fmt(t, "\n    \"prompt_tokens\": %" PRIu64, q->prompt);
    pair(t, "    ", "output_tokens", q->output);
    pair(t, "    ", "end_positions_tokens", end);
    pair(t, "    ", "prompt_blocks", pkv_kv_request_blocks(&a->plan, q->prompt));
    pair(t, "    ", "reserved_blocks", pkv_kv_request_blocks(&a->plan, q->prompt + q->output));
    pair(t, "    ", "end_blocks", pkv_kv_request_blocks(&a->plan, end));
    if (a->has_pool) {
        pair(t, "    ", "payload_requests",
             pkv_kv_payload_requests(&q->model, &a->plan, &a->fit, q->prompt));
        pair(t, "    ", "prompt_requests", size_requests(a, q->prompt));
        pair(t, "    ", "reserved_requests", size_requests(a, q->prompt + q->output));
        pair(t, "    ", "end_requests", size_requests(a, end));
    }
    pkv_text_add(t, "\n  }");
}

char *pkv_size_json(const struct pkv_size_question *question, struct pkv_err *err)
{
    struct pkv_text t = {0};
    struct size_answer *a = size_answer(question, err);
    if (!a)
        return NULL;
    add_model(&t, a);
    add_position(&t, a);
    add_stages(&t, a);
    if (question->budget)
        add_budget(&t, question->budget);
    add_pool(&t, a);
    add_lengths(&t, a);
    add_requests(&t, a);
    pkv_text_add(&t, "\n}\n");
    pkv_free(a);
    return take_text(&t, err);
}
