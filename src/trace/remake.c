/*
 * remake.c - a trace made after another one.
 *
 * A row is kept as its last shared block, the tokens beyond, its gap and what else it asks for. What it
 * shares is told as a list of named texts, one for each stretch of blocks that the same rows have. To
 * scale a prefix its ends are scaled, so that the parts add up. A root is split by what comes behind it:
 * rows that go on in the same way keep the same one, and so does all that they share.
 */
#include "pagedkv/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "base/rng.h"
#include "trace/prefix_tree.h"
#include "trace/trace_private.h"

#define DEFAULT_RUN 100u
#define DEFAULT_BLOCK_SIZE 16u
#define NAME_SIZE 40u

struct kept {
    uint32_t shared, last;       /* shared: the last shared block, PREFIX_NONE = none */
    uint32_t prompt, output, max_tokens;
    uint32_t tenant;             /* number + 1; 0 = none */
    int64_t gap_ns, priority, abort_after_ns, deadline_after_ns;
};

struct pkv_remake {
    struct pkv_remake_config config;
    struct pkv_remake_figures figures;
    struct prefix_tree tree;
    struct kept *rows;           /* [num_rows] owned */
    size_t num_rows, rows_capacity;
    char **tenants;              /* [num_tenants] owned, each owned */
    size_t num_tenants, tenants_capacity;
    struct pkv_id_map tenant_ids;
    size_t *order;               /* [num_rows] owned: of the present round */
    struct pkv_id_map first_rows;    /* name of a first text -> rows made that begin with it */
    struct pkv_rng order_rng, root_rng;
    uint64_t row;
    double time_ns;              /* of the gaps, not scaled */
    int64_t gap_ns;              /* the mean one */
    struct pkv_span *spans;      /* owned, as all below: the row at hand */
    struct pkv_trace_text *texts;
    char (*names)[NAME_SIZE];
    uint32_t *heads;
    size_t spans_capacity, texts_capacity, names_capacity, heads_capacity;
    struct pkv_trace_texts given;
};

/* --- reading --------------------------------------------------------------------------------- */

static int fail_range(const char *what, double value, double min, double max, struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_INPUT, "%s of %g is out of range: it must be %g to %g", what, value,
                    min, max);
}

static int check(const struct pkv_remake_config *c, struct pkv_err *err)
{
    if (!(c->rate >= 1e-6 && c->rate <= 1e6))
        return fail_range("a rate", c->rate, 1e-6, 1e6, err);
    if (!(c->prefix_length >= 0 && c->prefix_length <= 1000))
        return fail_range("a prefix length", c->prefix_length, 0, 1000, err);
    if (!(c->roots >= 0.001 && c->roots <= 1000))
        return fail_range("a number of roots", c->roots, 0.001, 1000, err);
    return 0;
}

static int number_tenant(struct pkv_remake *r, const char *name, uint32_t *out, struct pkv_err *err)
{
    *out = 0;
    if (!name)
        return 0;
    uint64_t *entry = pkv_id_map_at(&r->tenant_ids, pkv_hash_name(name, strlen(name)), err);
    if (!entry)
        return -1;
    if (*entry == 0) {
        if (pkv_grow(&r->tenants, &r->tenants_capacity, r->num_tenants + 1, sizeof *r->tenants,
                     err) < 0 ||
            !(r->tenants[r->num_tenants] = pkv_strdup(name, err)))
            return -1;
        *entry = ++r->num_tenants;
    }
    *out = (uint32_t)*entry;
    return 0;
}

static int64_t after(int64_t time_ns, int64_t arrival_ns)
{
    return time_ns == PKV_NO_TIME ? PKV_NO_TIME : time_ns - arrival_ns;
}

static int keep_row(struct pkv_remake *r, const struct pkv_trace *trace,
                    const struct pkv_request_spec *spec, int64_t former_ns, struct pkv_err *err)
{
    if (pkv_grow(&r->rows, &r->rows_capacity, r->num_rows + 1, sizeof *r->rows, err) < 0)
        return -1;
    struct kept *row = &r->rows[r->num_rows];
    *row = (struct kept){
        .prompt = spec->num_prompt_tokens, .output = spec->num_output_tokens,
        .max_tokens = spec->max_tokens, .priority = spec->priority,
        .gap_ns = spec->arrival_ns - former_ns,
        .abort_after_ns = after(spec->abort_ns, spec->arrival_ns),
        .deadline_after_ns = after(spec->deadline_ns, spec->arrival_ns),
    };
    r->num_rows++;
    if (spec->num_samples > 1)
        return pkv_fail(err, PKV_ERR_INPUT, "row %" PRIu64 " (from 0) asks for %" PRIu32 " answers, and "
                        "synth from makes rows with one", spec->row, spec->num_samples);
    if (number_tenant(r, spec->tenant, &row->tenant, err) < 0)
        return -1;
    return prefix_tree_add(&r->tree, &spec->content, pkv_trace_texts(trace), &row->last, err);
}

static int read_rows(struct pkv_remake *r, struct pkv_trace *trace, struct pkv_err *err)
{
    struct pkv_source source = pkv_trace_source(trace);
    struct pkv_request_spec spec;
    int64_t first_ns = 0, former_ns = 0;
    int more;
    while ((more = source.next(source.ctx, &spec, err)) > 0) {
        if (r->num_rows == 0) {
            bool has_ids = pkv_trace_texts(trace)->spans[0].kind == PKV_ORIGIN_HASH_ID;
            r->tree.block_size = has_ids ? pkv_trace_options(trace)->hash_block_size
                                         : DEFAULT_BLOCK_SIZE;
            first_ns = former_ns = spec.arrival_ns;
        }
        if (keep_row(r, trace, &spec, former_ns, err) < 0)
            return -1;
        former_ns = spec.arrival_ns;
    }
    if (r->num_rows > 1)
        r->gap_ns = (former_ns - first_ns) / (int64_t)(r->num_rows - 1);
    if (r->num_rows > 0)
        r->rows[0].gap_ns = r->gap_ns;       /* nobody came before it */
    return more;
}

/* Tokens that come first in the row and are shared; the last block may be cut. */
static uint32_t shared_tokens(const struct pkv_remake *r, const struct kept *row)
{
    if (row->shared == PREFIX_NONE)
        return 0;
    uint64_t end = (uint64_t)(r->tree.nodes[row->shared].depth + 1) * r->tree.block_size;
    return end < row->prompt ? (uint32_t)end : row->prompt;
}

static uint32_t scaled(const struct pkv_remake *r, uint64_t tokens)
{
    double length = (double)tokens * r->config.prefix_length + 0.5;
    return length < (double)(PKV_MAX_LENGTH_TOKENS / 2) ? (uint32_t)length
                                                        : (uint32_t)(PKV_MAX_LENGTH_TOKENS / 2);
}

/* A prompt has at least one token. */
static uint32_t made_tokens(const struct pkv_remake *r, const struct kept *row)
{
    uint32_t shared = shared_tokens(r, row), sum = scaled(r, shared) + (row->prompt - shared);
    return sum ? sum : 1;
}

static uint64_t num_wanted_roots(const struct pkv_remake *r)
{
    double num = r->tree.num_roots * r->config.roots;
    return num < 1 ? r->tree.num_roots > 0 : (uint64_t)num;
}

static int settle(struct pkv_remake *r, struct pkv_err *err)
{
    struct pkv_remake_figures *f = &r->figures;
    double prompt = 0, made = 0;
    prefix_tree_number(&r->tree);
    for (size_t i = 0; i < r->num_rows; i++) {
        r->rows[i].shared = prefix_tree_shared(&r->tree, r->rows[i].last);
        prompt += r->rows[i].prompt;
        made += made_tokens(r, &r->rows[i]);
    }
    if (r->config.num_requests == 0)
        r->config.num_requests = r->num_rows;
    if (r->config.run == 0)
        r->config.run = DEFAULT_RUN;
    *f = (struct pkv_remake_figures){
        .rows = r->num_rows, .made_rows = r->config.num_requests,
        .block_size = r->tree.block_size, .roots = r->tree.num_roots,
        .wanted_roots = num_wanted_roots(r), .texts = r->tree.num_texts,
        .mean_prompt_tokens = prompt / (double)r->num_rows,
        .mean_made_prompt_tokens = made / (double)r->num_rows,
    };
    pkv_rng_init(&r->order_rng, r->config.seed, "order");
    pkv_rng_init(&r->root_rng, r->config.seed, "root");
    r->order = pkv_alloc(r->num_rows, sizeof *r->order, err);
    return r->order ? 0 : -1;
}

struct pkv_remake *pkv_remake_create(struct pkv_trace *trace, const struct pkv_remake_config *config,
                                     struct pkv_err *err)
{
    if (check(config, err) < 0)
        return NULL;
    struct pkv_remake *r = pkv_alloc(1, sizeof *r, err);
    if (!r)
        return NULL;
    r->config = *config;
    if (read_rows(r, trace, err) == 0 && settle(r, err) == 0)
        return r;
    pkv_remake_destroy(r);
    return NULL;
}

void pkv_remake_destroy(struct pkv_remake *r)
{
    if (!r)
        return;
    prefix_tree_free(&r->tree);
    for (size_t i = 0; i < r->num_tenants; i++)
        pkv_free(r->tenants[i]);
    pkv_free(r->tenants);
    pkv_id_map_free(&r->tenant_ids);
    pkv_free(r->rows);
    pkv_free(r->order);
    pkv_id_map_free(&r->first_rows);
    pkv_free(r->spans);
    pkv_free(r->texts);
    pkv_free(r->names);
    pkv_free(r->heads);
    pkv_free(r);
}

const struct pkv_remake_figures *pkv_remake_figures(const struct pkv_remake *r)
{
    return &r->figures;
}

/* --- making ---------------------------------------------------------------------------------- */

/* Runs of rows in a drawn order; the last one may be short. */
static void draw_order(struct pkv_remake *r)
{
    size_t run = r->config.run < r->num_rows ? (size_t)r->config.run : r->num_rows;
    size_t num_runs = (r->num_rows + run - 1) / run, used = 0;
    size_t *first = r->order + (r->num_rows - num_runs);   /* not written over before it is read */
    for (size_t i = 0; i < num_runs; i++) {
        size_t k = (size_t)pkv_rng_below(&r->order_rng, i + 1);
        first[i] = first[k];
        first[k] = i * run;
    }
    for (size_t i = 0; i < num_runs; i++) {
        size_t from = first[i];
        for (size_t k = from; k < from + run && k < r->num_rows; k++)
            r->order[used++] = k;
    }
}

/* Which of the made roots stands for the row's: of those it is split into by what comes behind it, or
 * with fewer roots the one that several share. */
static uint64_t pick_root(struct pkv_remake *r, uint32_t root, uint32_t behind)
{
    double roots = r->config.roots;
    uint64_t low = (uint64_t)(root * roots), high = (uint64_t)((root + 1.0) * roots);
    uint64_t lot = pkv_rng_u64(&r->root_rng);
    if (behind != PREFIX_NONE)
        lot = pkv_scramble(pkv_mix(pkv_scramble(r->config.seed), behind));
    uint64_t made = high > low + 1 ? low + lot % (high - low) : low;
    return made < r->figures.wanted_roots ? made : r->figures.wanted_roots - 1;
}

/* The texts that the row shares, the first one last. */
static int list_heads(struct pkv_remake *r, uint32_t node, size_t *out_num, struct pkv_err *err)
{
    *out_num = 0;
    while (node != PREFIX_NONE) {
        node = prefix_tree_head(&r->tree, node);
        if (pkv_grow(&r->heads, &r->heads_capacity, *out_num + 1, sizeof *r->heads, err) < 0)
            return -1;
        r->heads[(*out_num)++] = node;
        node = r->tree.nodes[node].parent;
    }
    return 0;
}

static int make_room(struct pkv_remake *r, size_t num, struct pkv_err *err)
{
    if (pkv_grow(&r->spans, &r->spans_capacity, num, sizeof *r->spans, err) < 0 ||
        pkv_grow(&r->texts, &r->texts_capacity, num, sizeof *r->texts, err) < 0)
        return -1;
    return pkv_grow(&r->names, &r->names_capacity, num, sizeof *r->names, err);
}

static void add_named(struct pkv_remake *r, struct pkv_content *content, uint32_t count)
{
    size_t i = content->num_prompt_spans++;
    uint64_t number = pkv_hash_name(r->names[i], strlen(r->names[i]));
    r->spans[i] = (struct pkv_span){pkv_origin(PKV_ORIGIN_NAME, number), 0, count};
    r->texts[i] = (struct pkv_trace_text){PKV_ORIGIN_NAME, number, r->names[i]};
}

static void add_own(struct pkv_remake *r, struct pkv_content *content, uint32_t count)
{
    size_t i = content->num_prompt_spans++;
    r->spans[i] = (struct pkv_span){pkv_origin(PKV_ORIGIN_OWN, r->row), 0, count};
    r->texts[i] = (struct pkv_trace_text){PKV_ORIGIN_OWN, r->row, NULL};
}

/* From the root on; a text that is scaled to nothing is left out. */
static void add_shared(struct pkv_remake *r, const struct kept *row, size_t num_heads,
                       struct pkv_content *content)
{
    uint32_t shared = shared_tokens(r, row), done = 0;
    uint64_t round = r->row / r->num_rows;
    for (size_t i = num_heads; i-- > 0;) {
        uint64_t end = i > 0 ? (uint64_t)r->tree.nodes[r->heads[i - 1]].depth * r->tree.block_size
                             : shared;
        uint32_t count = scaled(r, end) - done;
        char *name = r->names[content->num_prompt_spans];
        if (i + 1 == num_heads)
            snprintf(name, NAME_SIZE, "root %" PRIu64,
                     pick_root(r, r->tree.nodes[r->heads[i]].root,
                               i > 0 ? r->heads[i - 1] : PREFIX_NONE));
        else
            snprintf(name, NAME_SIZE, "text %" PRIu32 ".%" PRIu64, r->heads[i], round);
        if (count > 0)
            add_named(r, content, count);
        done += count;
    }
}

/* A text that was scaled to nothing begins no prompt; what is behind it then does. */
static int count_first(struct pkv_remake *r, const struct pkv_content *content, struct pkv_err *err)
{
    if (content->num_prompt_spans == 0)
        return 0;
    uint64_t *rows = pkv_id_map_at(&r->first_rows, r->texts[0].number, err);
    if (!rows)
        return -1;
    r->figures.made_roots += ++*rows == 2;
    return 0;
}

static int make_prompt(struct pkv_remake *r, const struct kept *row, struct pkv_request_spec *out,
                       struct pkv_err *err)
{
    size_t num_heads;
    struct pkv_content *content = &out->content;
    if (list_heads(r, row->shared, &num_heads, err) < 0 || make_room(r, num_heads + 1, err) < 0)
        return -1;
    *content = (struct pkv_content){
        .root = pkv_content_root(NULL, NULL), .prompt = r->spans,
        .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, r->row),
    };
    out->num_prompt_tokens = made_tokens(r, row);
    uint32_t shared = shared_tokens(r, row), own = out->num_prompt_tokens - scaled(r, shared);
    content->num_named_tokens = out->num_prompt_tokens - own;
    add_shared(r, row, num_heads, content);
    if (count_first(r, content, err) < 0)
        return -1;
    if (own > 0)
        add_own(r, content, own);
    r->given = (struct pkv_trace_texts){r->texts, NULL, NULL};
    return 0;
}

static bool add_time(int64_t *out, int64_t from_ns, int64_t after_ns)
{
    *out = PKV_NO_TIME;
    if (after_ns == PKV_NO_TIME)
        return true;
    if (after_ns > INT64_MAX - from_ns)
        return false;
    *out = from_ns + after_ns;
    return true;
}

static int set_times(struct pkv_remake *r, const struct kept *row, struct pkv_request_spec *out,
                     struct pkv_err *err)
{
    r->time_ns += r->row > 0 ? (double)row->gap_ns : 0;
    double arrival = r->time_ns / r->config.rate + 0.5;
    if (arrival >= 0x1p63)
        return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " would arrive beyond %" PRId64
                        " ns: the rate is too low for so many", r->row, INT64_MAX);
    out->arrival_ns = (int64_t)arrival;
    if (!add_time(&out->abort_ns, out->arrival_ns, row->abort_after_ns) ||
        !add_time(&out->deadline_ns, out->arrival_ns, row->deadline_after_ns))
        return pkv_fail(err, PKV_ERR_INPUT, "a time of request %" PRIu64 " would be beyond %" PRId64
                        " ns", r->row, INT64_MAX);
    return 0;
}

static int source_next(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct pkv_remake *r = ctx;
    if (r->row == r->config.num_requests)
        return 0;
    if (r->row % r->num_rows == 0)
        draw_order(r);
    const struct kept *row = &r->rows[r->order[r->row % r->num_rows]];
    *out = (struct pkv_request_spec){
        .row = r->row, .priority = row->priority, .num_output_tokens = row->output,
        .max_tokens = row->max_tokens, .tenant = row->tenant ? r->tenants[row->tenant - 1] : NULL,
    };
    if (set_times(r, row, out, err) < 0 || make_prompt(r, row, out, err) < 0)
        return -1;
    r->row++;
    return 1;
}

struct pkv_source pkv_remake_source(struct pkv_remake *r)
{
    return (struct pkv_source){.next = source_next, .ctx = r};
}

const struct pkv_trace_texts *pkv_remake_texts(const struct pkv_remake *r)
{
    return &r->given;
}
