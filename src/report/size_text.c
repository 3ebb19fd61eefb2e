/*
 * size_text.c - the answer to a question of size, for people.
 *
 * The order is that of the questions: what does a position cost, what is a block, what fits, how
 * long, how many. Exact integers first, KiB, MiB or GiB beside them.
 */
#include "report/size_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/units.h"


static void add_type(struct pkv_text *t, const struct size_answer *a, uint32_t i)
{
    const struct pkv_kv_type *type = &a->q->model.types[i];
    const char *heads = type->num_kv_heads == 1 ? "" : "s";
    pkv_text_fmt(t, "%u %s", size_layers_of(a, i), pkv_kv_kind_name(type->kind));
    if (type->window > 0) {
        pkv_text_add(t, type->kind == PKV_KV_SLIDING ? ", window " : ", chunk ");
        add_grouped(t, type->window);
    }
    if (type->kind == PKV_KV_LATENT)
        pkv_text_fmt(t, " (%u + %u values%s)", type->latent_dim, type->rope_dim,
                     type->index_dim > 0 ? ", with an indexer" : "");
    else if (type->kind != PKV_KV_STATE && type->head_dim_k == type->head_dim_v)
        pkv_text_fmt(t, " (%u KV head%s of %u)", type->num_kv_heads, heads, type->head_dim_k);
    else if (type->kind != PKV_KV_STATE)
        pkv_text_fmt(t, " (%u KV head%s of %u and %u)", type->num_kv_heads, heads,
                     type->head_dim_k, type->head_dim_v);
}

static void add_model(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    const struct pkv_kv_model *m = &a->q->model;
    uint32_t idle = m->num_layers;
    pkv_text_fmt(t, "%s: ", m->name);
    add_counted(t, m->num_layers, "layer");
    pkv_text_add(t, ": ");
    for (uint32_t i = 0; i < m->num_types; i++) {
        pkv_text_add(t, i > 0 ? "; " : "");
        add_type(t, a, i);
        idle -= size_layers_of(a, i);
    }
    if (idle > 0)
        pkv_text_fmt(t, "; %u that store nothing", idle);
    put_item(p, "model", t);
    if (m->note[0])
        page_item(p, "", m->note);
}

static void add_ranks(struct pkv_text *t, const struct size_answer *a)
{
    const struct pkv_kv_config *c = &a->plan.config;
    enum pkv_kv_dtype stored = pkv_kv_stored_dtype(&a->q->model, c->dtype);
    pkv_text_fmt(t, "cache %s", pkv_kv_dtype_name(c->dtype));
    if (stored != c->dtype)
        pkv_text_fmt(t, ", stored as %s beside a sparse indexer", pkv_kv_dtype_name(stored));
    if (a->plan.state_total_bytes > 0)
        pkv_text_fmt(t, ", state %s", c->fp32_state ? "fp32" : pkv_kv_dtype_name(a->q->model.dtype));
    pkv_text_fmt(t, "; TP %u", c->tp);
    if (c->dcp > 1)
        pkv_text_fmt(t, ", DCP %u", c->dcp);
    if (a->plan.num_stages > 1)
        pkv_text_fmt(t, ", PP %u with ", a->plan.num_stages);
    for (uint32_t i = 0; i < a->plan.num_stages && a->plan.num_stages > 1; i++)
        pkv_text_fmt(t, "%s%u", i > 0 ? "+" : "", a->plan.stages[i].num_layers);
    if (a->plan.num_stages > 1)
        pkv_text_add(t, " layers");
    if (c->num_draft_layers > 0)
        pkv_text_fmt(t, "; %u draft layer%s with them", c->num_draft_layers,
                     c->num_draft_layers > 1 ? "s" : "");
}

static void add_position(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    bool is_split = a->plan.config.tp > 1;
    add_ranks(t, a);
    put_item(p, "ranks", t);
    add_bytes(t, a->plan.position_bytes);
    pkv_text_fmt(t, " in all layers%s", is_split ? " of one TP rank" : "");
    if (a->plan.config.dcp > 1)
        pkv_text_fmt(t, ", which has one position in %u", a->plan.config.dcp);
    put_item(p, "a position", t);
    add_bytes(t, a->plan.growing_bytes);
    pkv_text_add(t, " of that goes on growing");
    put_item(p, "", t);
    for (uint32_t i = 0; i < a->plan.num_stages && a->plan.num_stages > 1; i++) {
        const struct pkv_kv_stage *s = &a->plan.stages[i];
        pkv_text_fmt(t, "stage %u: ", i);
        add_counted(t, s->num_layers, "layer");
        pkv_text_add(t, ", ");
        add_bytes(t, s->position_bytes);
        pkv_text_add(t, " a position; a block ");
        add_bytes(t, s->block_bytes);
        put_item(p, "", t);
    }
    if (a->fixed_bytes == 0)
        return;
    add_bytes_or_more(t, a->window_bytes);
    pkv_text_add(t, " in full windows and ");
    add_bytes(t, a->plan.state_total_bytes);
    pkv_text_add(t, " of state are fixed for each sequence");
    put_item(p, "", t);
}

static void add_group(struct page *p, struct pkv_text *t, const struct size_answer *a, uint32_t at,
                      uint32_t num)
{
    const struct pkv_kv_group *g = &a->plan.groups[at];
    uint32_t padding = 0;
    for (uint32_t i = at; i < at + num; i++)
        padding += a->plan.group_size - a->plan.groups[i].num_layers;
    pkv_text_fmt(t, "%u %s", num, pkv_kv_kind_name(g->kind));
    if (g->window > 0)
        pkv_text_fmt(t, " %u", g->window);
    pkv_text_fmt(t, " of %u layer%s in blocks of %u", a->plan.group_size,
                 a->plan.group_size == 1 ? "" : "s", g->block_size);
    if (padding > 0)
        pkv_text_fmt(t, ", %u of the layers padding", padding);
    put_item(p, at == 0 ? "groups" : "", t);
}

static void add_blocks(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    add_counted(t, a->plan.config.block_size, "token");
    pkv_text_add(t, "; ");
    add_bytes(t, a->block_bytes);
    if (a->plan.page_bytes > 0) {
        pkv_text_add(t, ": pages of ");
        add_bytes(t, a->plan.page_bytes);
        pkv_text_fmt(t, " in %u layer%s", a->plan.group_size, a->plan.group_size > 1 ? "s" : "");
    }
    put_item(p, "a block", t);
    if (a->plan.config.block_size != a->q->config.block_size) {
        pkv_text_add(t, "raised from ");
        add_counted(t, a->q->config.block_size, "token");
        pkv_text_add(t, ", so that a page holds a state; ");
        add_bytes(t, a->plan.state_padding_bytes);
        pkv_text_add(t, " of each page of state are padding");
        put_item(p, "", t);
    }
    for (uint32_t i = 0, end; i < a->plan.num_groups; i = end) {
        for (end = i + 1; end < a->plan.num_groups &&
                          a->plan.groups[end].type == a->plan.groups[i].type; end++) {
        }
        add_group(p, t, a, i, end - i);
    }
}

static void add_term(struct pkv_text *t, const char *name, uint64_t n, const char *how)
{
    pkv_text_fmt(t, " - %s ", name);
    add_bytes(t, n);
    pkv_text_add(t, how);
}

static void add_budget(struct page *p, struct pkv_text *t, const struct pkv_size_budget *b)
{
    const struct pkv_kv_budget *terms = &b->terms;
    add_bytes(t, terms->total_bytes);
    pkv_text_fmt(t, " (%s) x ", b->total_source);
    pkv_text_ratio(t, terms->share_millionths, 1000000, 6);
    add_term(t, "weights", terms->weights_bytes, b->weights_estimated ? " [estimate]" : "");
    add_term(t, "activation", terms->activation_bytes,
             b->activation_given ? "" : " [not given]");
    add_term(t, "other", terms->other_bytes, b->other_given ? "" : " [not given]");
    add_term(t, "graphs", terms->graphs_bytes, b->graphs_given ? "" : " [not given]");
    put_item(p, "budget", t);
    if (!b->activation_given)
        page_item(p, "", "what is not given counts as 0, so the pool is the most there could be; "
                  "activation is what the engine's profiling run prints, and is not predicted here");
}

static void add_pool(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    for (uint32_t i = 0; i < a->fit.num_ranks; i++) {
        const struct pkv_kv_rank *r = &a->fit.ranks[i];
        bool many = a->fit.num_ranks > 1;
        if (many)
            pkv_text_fmt(t, "stage %u", r->stage);
        if (!a->fit.alike)
            pkv_text_fmt(t, " rank %u", r->tp_rank);
        pkv_text_add(t, many ? ": " : "");
        add_bytes(t, r->pool_bytes);
        if (r->block_bytes > 0) {
            pkv_text_add(t, " / ");
            add_bytes(t, r->block_bytes);
            pkv_text_add(t, " = ");
            add_counted(t, r->num_blocks, "block");
        }
        if (many && i == a->fit.limiting_rank)
            pkv_text_add(t, ": the fewest, so all ranks have so many");
        if (r->stranded_bytes > 0) {
            pkv_text_add(t, "; stranded ");
            add_bytes(t, r->stranded_bytes);
        }
        put_item(p, i == 0 ? "pool" : "", t);
    }
    add_grouped(t, a->fit.num_blocks);
    pkv_text_add(t, " physical, ");
    add_grouped(t, a->num_usable);
    pkv_text_add(t, a->q->has_null_block ? " usable (one is the null block)" : " usable");
    put_item(p, "blocks", t);
}

static void add_tokens(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    add_grouped(t, pkv_kv_tokens_old_rule(&a->plan, a->fit.num_blocks));
    pkv_text_fmt(t, " by the old rule of printing them: blocks // %u group%s x %" PRIu64,
                 a->plan.num_groups, a->plan.num_groups > 1 ? "s" : "",
                 pkv_kv_smallest_block(&a->plan));
    put_item(p, "tokens", t);
    if (a->max_len == 0)
        return;
    if (a->max_len_fits) {
        uint64_t ratio = size_hundredths(a->fit.num_blocks, a->max_len_blocks);
        add_grouped(t, pkv_kv_tokens_new_rule(&a->plan, a->fit.num_blocks, a->max_len));
        pkv_text_add(t, " by the new rule: blocks x ");
        add_grouped(t, a->max_len);
        pkv_text_add(t, " / the ");
        add_counted(t, a->max_len_blocks, "block");
        pkv_text_fmt(t, " of one request of that length; maximum concurrency %" PRIu64 ".%02u",
                     ratio / 100, (unsigned)(ratio % 100));
        put_item(p, "", t);
        return;
    }
    pkv_text_add(t, "one request of max_model_len ");
    add_grouped(t, a->max_len);
    pkv_text_add(t, " does not fit, so the engine does not start; the longest that fits has ");
    add_counted(t, a->longest, "token");
    put_item(p, "", t);
}

static void add_lengths(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    for (size_t i = 0; i < a->num_lengths; i++) {
        const struct size_length *l = &a->lengths[i];
        add_counted(t, l->positions, "position");
        pkv_text_add(t, ": ");
        add_bytes_or_more(t, l->payload_bytes);
        pkv_text_add(t, " in ");
        add_counted(t, l->blocks, "block");
        pkv_text_add(t, a->max_len > 0 && l->positions > a->max_len
                            ? "; longer than this model goes" : "");
        put_item(p, i == 0 ? "lengths" : "", t);
    }
}

static void add_request_line(struct page *p, struct pkv_text *t, const char *name, uint64_t num,
                             const char *how)
{
    add_counted(t, num, "request");
    pkv_text_add(t, how);
    put_item(p, name, t);
}

/* What fits is of no use when the model does not go so far. */
static void add_limit(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    uint64_t tokens = a->q->prompt + a->q->output;
    if (a->q->prompt == 0 || a->max_len == 0 || tokens <= a->max_len)
        return;
    pkv_text_add(t, "no request has so many: prompt and output are ");
    add_counted(t, tokens, "token");
    pkv_text_add(t, ", and max_model_len is ");
    add_grouped(t, a->max_len);
    put_item(p, "limit", t);
}

static void add_requests(struct page *p, struct pkv_text *t, const struct size_answer *a)
{
    const struct pkv_size_question *q = a->q;
    uint64_t end = q->prompt + q->output - (q->output > 0 ? 1 : 0);
    char how[160], shown[32];
    if (q->prompt == 0)
        return;
    if (!a->has_pool) {
        add_counted(t, pkv_kv_request_blocks(&a->plan, q->prompt), "block");
        pkv_text_add(t, " for the prompt, ");
        add_grouped(t, pkv_kv_request_blocks(&a->plan, end));
        pkv_text_add(t, " at the end, of prompt + output - 1 positions");
        put_item(p, "a request", t);
        return;
    }
    snprintf(how, sizeof how, " by payload: the bytes of %s prompt positions each, now",
             pkv_format_count(q->prompt, shown));
    add_request_line(p, t, "fit", pkv_kv_payload_requests(&q->model, &a->plan, &a->fit, q->prompt),
                     how);
    add_request_line(p, t, "", size_requests(a, q->prompt), " by usable blocks, now");
    if (q->output == 0)
        return;
    snprintf(how, sizeof how, " with prompt and output reserved, %s positions each",
             pkv_format_count(q->prompt + q->output, shown));
    add_request_line(p, t, "", size_requests(a, q->prompt + q->output), how);
    snprintf(how, sizeof how, " to the end: prompt + output - 1 = %s positions each",
             pkv_format_count(end, shown));
    add_request_line(p, t, "", size_requests(a, end), how);
}

char *pkv_size_text(const struct pkv_size_question *question, const struct pkv_report_style *style,
                    struct pkv_err *err)
{
    struct page p = {.style = style};
    struct pkv_text t = {0};
    struct size_answer *a = size_answer(question, err);
    if (!a)
        return NULL;
    add_model(&p, &t, a);
    add_position(&p, &t, a);
    add_blocks(&p, &t, a);
    if (question->budget)
        add_budget(&p, &t, question->budget);
    if (a->has_pool) {
        add_pool(&p, &t, a);
        add_tokens(&p, &t, a);
    }
    add_lengths(&p, &t, a);
    add_requests(&p, &t, a);
    add_limit(&p, &t, a);
    pkv_text_free(&t);
    pkv_free(a);
    return take_text(&p.text, err);
}
