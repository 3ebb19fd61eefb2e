/*
 * trace_info.c - what is in a trace: arrivals, lengths, sharing, sessions, in one pass.
 *
 * The pass is that of pkv_waste_measure(), which finds the peaks; here its source is looked at on
 * the way. Rows that follow others come when a replay lets them: they are left out of whatever is about
 * time, and so do not reach the other pass. Arrivals are counted in bins that double their width when the
 * trace outgrows them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id_map.h"
#include "pagedkv/report.h"
#include "report/trace_prev.h"
#include "trace/block_ids.h"

#define FIRST_BIN_NS INT64_C(1000000)
#define DEFAULT_BLOCK_SIZE 16u

/* How a block was seen so far. */
#define SEEN 1u
#define SEEN_FULL 2u
#define SEEN_BEFORE_NOW 4u      /* in a row of an earlier time */

struct lengths {
    uint32_t *values;           /* [num] owned */
    size_t num, capacity;
};
struct block {
    uint64_t id;
    bool is_full;
};
struct gatherer {
    struct pkv_trace *trace;
    struct pkv_source source;
    struct pkv_trace_info *out;
    struct lengths prompt, output, shared;
    struct pkv_id_map seen;          /* block -> SEEN.. */
    struct block *blocks;            /* [num_blocks] owned; of the row at hand, as far as others
                                      * can have them */
    size_t num_blocks, blocks_capacity;
    uint64_t own_blocks;             /* of all rows: those that nobody else can have */
    uint64_t *pending;               /* [num_pending] owned; blocks of rows of the time at hand */
    size_t num_pending, pending_capacity;
    struct pkv_id_map sessions, tenants;
    struct trace_prev prev;
    uint64_t at_once;
    double gap_squares;
    int64_t last_ns;
};

static int add_length(struct lengths *l, uint32_t value, struct pkv_err *err)
{
    if (pkv_grow(&l->values, &l->capacity, l->num + 1, sizeof *l->values, err) < 0)
        return -1;
    l->values[l->num++] = value;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void finish_lengths(struct lengths *l, struct pkv_lengths_info *out)
{
    *out = (struct pkv_lengths_info){.num = l->num};
    if (l->num > 0) {
        qsort(l->values, l->num, sizeof *l->values, by_number);
        out->p50 = l->values[(l->num * 50 + 99) / 100 - 1];
        out->p90 = l->values[(l->num * 90 + 99) / 100 - 1];
        out->p99 = l->values[(l->num * 99 + 99) / 100 - 1];
        out->max = l->values[l->num - 1];
    }
    for (size_t i = 0; i < l->num; i++)
        out->sum += l->values[i];
    pkv_free(l->values);
}

static void count_arrival(struct pkv_trace_info *info, int64_t ns)
{
    while (ns / info->bin_ns >= PKV_ARRIVAL_BINS) {
        for (size_t i = 0; i < PKV_ARRIVAL_BINS / 2; i++)
            info->arrivals[i] = info->arrivals[2 * i] + info->arrivals[2 * i + 1];
        memset(info->arrivals + PKV_ARRIVAL_BINS / 2, 0, sizeof info->arrivals / 2);
        info->bin_ns *= 2;
        info->num_bins = (info->num_bins + 1) / 2;
    }
    uint32_t bin = (uint32_t)(ns / info->bin_ns);
    info->arrivals[bin]++;
    info->num_bins = bin + 1;
}

/* What was seen at the former time is seen before now. */
static int settle_pending(struct gatherer *g, struct pkv_err *err)
{
    for (size_t i = 0; i < g->num_pending; i++) {
        uint64_t *flags = pkv_id_map_at(&g->seen, g->pending[i], err);
        if (!flags)
            return -1;
        *flags |= SEEN_BEFORE_NOW;
    }
    g->num_pending = 0;
    return 0;
}

static int note_time(struct gatherer *g, int64_t ns, struct pkv_err *err)
{
    struct pkv_trace_info *info = g->out;
    bool is_first = info->timed_rows++ == 0, is_new = is_first || ns != g->last_ns;
    if (is_first) {
        info->first_ns = ns;
    } else {
        double gap = (double)(ns - g->last_ns);
        g->gap_squares += gap * gap;
    }
    if (is_new && settle_pending(g, err) < 0)
        return -1;
    info->distinct_times += is_new ? 1 : 0;
    g->at_once = is_new ? 1 : g->at_once + 1;
    info->most_at_once = g->at_once > info->most_at_once ? g->at_once : info->most_at_once;
    g->last_ns = info->last_ns = ns;
    count_arrival(info, ns);
    return 0;
}

/* The blocks of a row up to its own text, which only a session repeats. */
static int walk_blocks(struct gatherer *g, const struct pkv_content *content,
                       const struct pkv_trace_texts *texts, bool in_session, struct pkv_err *err)
{
    struct pkv_block_walk walk;
    uint64_t id;
    uint32_t tokens;
    g->num_blocks = 0;
    pkv_block_walk_begin(&walk, content, texts, g->out->block_size);
    while (pkv_block_walk_next(&walk, &id, &tokens) && (in_session || !walk.met_own)) {
        if (pkv_grow(&g->blocks, &g->blocks_capacity, g->num_blocks + 1, sizeof *g->blocks,
                     err) < 0)
            return -1;
        g->blocks[g->num_blocks++] = (struct block){id, tokens == g->out->block_size};
    }
    return 0;
}

/* How many leading blocks were seen in this way. */
static uint64_t leading(const struct gatherer *g, uint64_t flag)
{
    for (size_t i = 0; i < g->num_blocks; i++) {
        const uint64_t *flags = pkv_id_map_find(&g->seen, g->blocks[i].id);
        if (!flags || !(*flags & flag) || (flag == SEEN_FULL && !g->blocks[i].is_full))
            return i;
    }
    return g->num_blocks;
}

static uint64_t add_hits(struct gatherer *g, enum pkv_prefix_rule rule, uint64_t blocks,
                         uint64_t hit, uint64_t tokens)
{
    struct pkv_prefix_hits *h = &g->out->hits[rule];
    uint64_t hit_tokens = hit * g->out->block_size;
    hit_tokens = hit_tokens < tokens ? hit_tokens : tokens;
    h->blocks += blocks;
    h->hit_blocks += hit;
    h->tokens += tokens;
    h->hit_tokens += hit_tokens;
    return hit_tokens;
}

static int look_up(struct gatherer *g, uint64_t tokens, struct pkv_err *err)
{
    struct pkv_trace_info *info = g->out;
    uint64_t full = tokens / info->block_size, one_left = (tokens - 1) / info->block_size;
    uint64_t all = one_left + 1;
    uint64_t hit = leading(g, SEEN), hit_full = leading(g, SEEN_FULL);
    uint64_t hit_tokens = add_hits(g, PKV_PREFIX_ALL, all, hit, tokens);
    add_hits(g, PKV_PREFIX_FULL, full, hit_full, tokens);
    add_hits(g, PKV_PREFIX_ONE_LEFT, full, hit_full < one_left ? hit_full : one_left, tokens);
    add_hits(g, PKV_PREFIX_BLIND, all, leading(g, SEEN_BEFORE_NOW), tokens);
    g->own_blocks += all - g->num_blocks;
    info->rows_fully_hit += hit == all;
    info->mean_row_hit_tokens += (double)hit_tokens / (double)tokens;
    info->mean_row_hit_blocks += (double)hit / (double)all;
    return hit > 0 ? add_length(&g->shared, (uint32_t)hit_tokens, err) : 0;
}

static int note_blocks(struct gatherer *g, struct pkv_err *err)
{
    if (pkv_grow(&g->pending, &g->pending_capacity, g->num_pending + g->num_blocks,
                 sizeof *g->pending, err) < 0)
        return -1;
    for (size_t i = 0; i < g->num_blocks; i++) {
        uint64_t *flags = pkv_id_map_at(&g->seen, g->blocks[i].id, err);
        if (!flags)
            return -1;
        *flags |= SEEN | (g->blocks[i].is_full ? SEEN_FULL : 0);
        g->pending[g->num_pending++] = g->blocks[i].id;
    }
    return 0;
}

/* One more row of that name; how many there are now in *out. */
static int count_name(struct pkv_id_map *map, const char *name, uint64_t *out,
                      struct pkv_err *err)
{
    uint64_t *rows = pkv_id_map_at(map, pkv_hash_name(name, strlen(name)), err);
    if (!rows)
        return -1;
    *out = ++*rows;
    return 0;
}

static int note_names(struct gatherer *g, const struct pkv_request_spec *spec,
                      struct pkv_err *err)
{
    struct pkv_trace_info *info = g->out;
    uint64_t rows = 0;
    if (spec->tenant && count_name(&g->tenants, spec->tenant, &rows, err) < 0)
        return -1;
    info->rows_that_follow += spec->follows ? 1 : 0;
    if (!spec->session)
        return 0;
    if (count_name(&g->sessions, spec->session, &rows, err) < 0)
        return -1;
    info->rows_in_sessions++;
    info->most_turns = rows > info->most_turns ? rows : info->most_turns;
    return 0;
}

static int note_row(struct gatherer *g, const struct pkv_request_spec *spec, struct pkv_err *err)
{
    struct pkv_content content = spec->content;
    struct pkv_trace_texts texts = *pkv_trace_texts(g->trace);
    if ((!spec->follows && note_time(g, spec->arrival_ns, err) < 0) || note_names(g, spec, err) < 0 ||
        trace_prev_put(&g->prev, spec, &content, &texts, err) < 0 ||
        walk_blocks(g, &content, &texts, spec->session != NULL, err) < 0 ||
        look_up(g, spec->num_prompt_tokens, err) < 0 || note_blocks(g, err) < 0 ||
        add_length(&g->prompt, spec->num_prompt_tokens, err) < 0 ||
        add_length(&g->output, spec->num_output_tokens, err) < 0)
        return -1;
    g->out->rows++;
    return 0;
}

/* The source of the pass, rows that have a time: the first row tells whether blocks are those of ids. */
static int next_row(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct gatherer *g = ctx;
    int more;
    while ((more = g->source.next(g->source.ctx, out, err)) > 0) {
        if (g->out->block_size == 0) {
            bool has_ids = pkv_trace_texts(g->trace)->spans[0].kind == PKV_ORIGIN_HASH_ID;
            g->out->block_size = has_ids ? pkv_trace_options(g->trace)->hash_block_size
                                         : DEFAULT_BLOCK_SIZE;
        }
        if (note_row(g, out, err) < 0)
            return -1;
        if (!out->follows)
            break;
    }
    return more;
}

static void finish(struct gatherer *g)
{
    struct pkv_trace_info *info = g->out;
    info->distinct_blocks = g->seen.num + g->own_blocks;
    info->sessions = g->sessions.num;
    info->tenants = g->tenants.num;
    finish_lengths(&g->prompt, &info->prompt);
    finish_lengths(&g->output, &info->output);
    finish_lengths(&g->shared, &info->shared);
    if (info->rows > 0) {
        info->mean_row_hit_tokens /= (double)info->rows;
        info->mean_row_hit_blocks /= (double)info->rows;
    }
    if (info->timed_rows > 1 && info->last_ns > info->first_ns) {
        double num = (double)(info->timed_rows - 1);
        double mean = (double)(info->last_ns - info->first_ns) / num;
        double variance = g->gap_squares / num - mean * mean;
        info->gap_mean_ns = mean;
        info->gap_cv = variance > 0 ? sqrt(variance) / mean : 0;
    }
    pkv_id_map_free(&g->seen);
    pkv_id_map_free(&g->sessions);
    pkv_id_map_free(&g->tenants);
    trace_prev_free(&g->prev);
    pkv_free(g->blocks);
    pkv_free(g->pending);
}

int pkv_trace_info_read(struct pkv_trace *trace, uint32_t block_size, int64_t token_ns,
                        struct pkv_trace_info *out, struct pkv_err *err)
{
    struct gatherer g = {.trace = trace, .source = pkv_trace_source(trace), .out = out};
    struct pkv_source source = {.next = next_row, .ctx = &g};
    struct pkv_waste_config config = {
        .token_ns = {token_ns}, .num_token_times = 1, .block_size = 1,
    };
    struct pkv_waste waste;
    *out = (struct pkv_trace_info){
        .block_size = block_size, .token_ns = token_ns, .bin_ns = FIRST_BIN_NS,
    };
    int status = pkv_waste_measure(&source, &config, &waste, err);
    finish(&g);
    out->peak_running = waste.sweeps[0].running;
    out->peak_tokens = waste.sweeps[0].tokens;
    return status;
}
