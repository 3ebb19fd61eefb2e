/*
 * openmetrics_text.c - which metrics there are, and how a scrape of one is written.
 *
 * Numbers are exact decimals: seconds with all nanoseconds, a share to 17 digits behind the point.
 */
#include "report/openmetrics_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define DEFAULT_MAX_MODEL_LEN 131072u    /* for bounds of lengths, where there is no limit */

static const struct { enum om_kind kind; const char *name, *help; } families[] = {
#define ROW(sym, kind, name, help) {kind, name, help},
    OM_COUNTERS(ROW)
#undef ROW
#define ROW(sym, name, bounds, help) {OM_HISTOGRAM, name, help},
    OM_HISTOGRAMS(ROW)
#undef ROW
};

static const enum om_bounds bounds_of[] = {
#define ROW(sym, name, bounds, help) bounds,
    OM_HISTOGRAMS(ROW)
#undef ROW
};

static const char *const end_words[] = {
#define ROW(sym, word) word,
    OM_ENDS(ROW)
#undef ROW
};

/* The last one cannot happen here. */
static const char *const sources[] = {"local_compute", "local_cache_hit", "external_kv_transfer"};

static const int64_t ttft_ms[] = {1, 5, 10, 20, 40, 60, 80, 100, 250, 500, 750, 1000, 2500, 5000, 7500,
                                  10000, 20000, 40000, 80000, 160000, 640000, 2560000};
static const int64_t gap_ms[] = {10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2500, 5000,
                                 7500, 10000, 20000, 40000, 80000};
static const int64_t request_ms[] = {300, 500, 800, 1000, 1500, 2000, 2500, 5000, 10000, 15000, 20000,
                                     30000, 40000, 50000, 60000, 120000, 240000, 480000, 960000,
                                     1920000, 7680000};
static const int64_t step_tokens[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

static bool is_time(enum om_bounds bounds)
{
    return bounds <= OM_BOUNDS_REQUEST;
}

static void set_bounds(struct om_layout *l, enum om_bounds bounds, const int64_t *values, size_t num)
{
    memcpy(l->bounds[bounds], values, num * sizeof *values);
    l->num_bounds[bounds] = num;
}

/* 1, 2, 5, 10, ... up to the longest request. */
static void set_lengths(struct om_layout *l, uint32_t longest)
{
    static const int64_t mantissas[] = {1, 2, 5};
    int64_t power = 1;
    size_t num = 0;
    for (size_t i = 0; mantissas[i % 3] * power <= longest && num < OM_MAX_BOUNDS; i++) {
        l->bounds[OM_BOUNDS_LENGTH][num++] = mantissas[i % 3] * power;
        power *= i % 3 == 2 ? 10 : 1;
    }
    l->num_bounds[OM_BOUNDS_LENGTH] = num;
}

static struct om_metric *add_metric(struct om_layout *l, unsigned family, size_t num_slots)
{
    struct om_metric *m = &l->metrics[l->num++];
    PKV_ASSERT(l->num <= OM_MAX_METRICS);
    *m = (struct om_metric){.family = family, .slot = l->num_slots, .num_slots = num_slots};
    l->num_slots += num_slots;
    return m;
}

static void add_label(struct om_layout *l, enum om_family family, const char *name, const char *value)
{
    struct om_metric *m = add_metric(l, family, 1);
    snprintf(m->label, sizeof m->label, "%s=\"%s\"", name, value);
}

static void add_info(struct om_layout *l, const struct pkv_sched_config *sched)
{
    struct om_metric *m = add_metric(l, OM_INFO, 1);
    snprintf(m->label, sizeof m->label,
             "block_size=\"%" PRIu32 "\",enable_prefix_caching=\"%s\",num_gpu_blocks=\"%" PRIu64 "\"",
             pkv_groups_block_size(sched->groups, sched->num_groups),
             sched->prefix_cache ? "True" : "False", (uint64_t)sched->num_blocks + 1);
}

static void add_drafts(struct om_layout *l, const struct pkv_speculation *speculation)
{
    char place[16];
    if (speculation->method == PKV_SPECULATION_NONE)
        return;
    for (unsigned family = OM_DRAFTS; family < OM_ACCEPTED_AT; family++)
        add_metric(l, family, 1);
    for (uint32_t i = 0; i < speculation->num_tokens; i++) {
        snprintf(place, sizeof place, "%" PRIu32, i);
        add_label(l, OM_ACCEPTED_AT, "position", place);
    }
}

/* Backslash, quote and newline as the format has them; other text as it is. */
static int set_model_name(struct om_layout *l, const char *name, struct pkv_err *err)
{
    if (!name || !pkv_is_utf8(name, strlen(name), NULL))
        name = "pagedkv";
    for (const char *c = name; *c; c++) {
        if (*c == '\\' || *c == '"')
            pkv_text_bytes(&l->model_name, "\\", 1);
        pkv_text_bytes(&l->model_name, *c == '\n' ? "\\n" : c, *c == '\n' ? 2 : 1);
    }
    return l->model_name.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory") : 0;
}

int om_layout_init(struct om_layout *l, const struct pkv_scenario *scenario, struct pkv_err *err)
{
    const struct pkv_sched_config *sched = &scenario->sched;
    memset(l, 0, sizeof *l);
    l->num_blocks = sched->num_blocks;
    set_bounds(l, OM_BOUNDS_TTFT, ttft_ms, sizeof ttft_ms / sizeof *ttft_ms);
    set_bounds(l, OM_BOUNDS_GAP, gap_ms, sizeof gap_ms / sizeof *gap_ms);
    set_bounds(l, OM_BOUNDS_REQUEST, request_ms, sizeof request_ms / sizeof *request_ms);
    set_bounds(l, OM_BOUNDS_STEP, step_tokens, sizeof step_tokens / sizeof *step_tokens);
    set_lengths(l, sched->max_model_len ? sched->max_model_len : DEFAULT_MAX_MODEL_LEN);
    add_metric(l, OM_RUNNING, 1);
    add_metric(l, OM_WAITING, 1);
    add_label(l, OM_WAITING_WHY, "reason", "capacity");
    add_label(l, OM_WAITING_WHY, "reason", "deferred");
    add_metric(l, OM_USAGE, 1);
    add_info(l, sched);
    for (unsigned family = OM_PREEMPTIONS; family < OM_BY_SOURCE; family++)
        add_metric(l, family, 1);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        add_label(l, OM_BY_SOURCE, "source", sources[i]);
    for (unsigned family = OM_GENERATED; family < OM_SUCCESS; family++)
        add_metric(l, family, 1);
    for (size_t i = 0; i < OM_END_COUNT; i++)
        add_label(l, OM_SUCCESS, "finished_reason", end_words[i]);
    add_drafts(l, &sched->speculation);
    for (unsigned h = 0; h < OM_HISTOGRAM_COUNT; h++)
        add_metric(l, OM_FIRST_HISTOGRAM + h, l->num_bounds[bounds_of[h]] + 3);
    return set_model_name(l, scenario->kv_model, err);
}

void om_layout_finish(struct om_layout *l)
{
    pkv_text_free(&l->model_name);
}

size_t om_bucket(const struct om_layout *l, enum om_histogram histogram, int64_t value)
{
    enum om_bounds bounds = bounds_of[histogram];
    int64_t unit = is_time(bounds) ? OM_NS_PER_MS : 1;
    size_t i = 0;
    while (i < l->num_bounds[bounds] && value > l->bounds[bounds][i] * unit)
        i++;
    return i;
}

/* A sum is its 128 bits in two slots. */
static void pack_tally(const struct om_tally *tally, int64_t *slots, size_t num_counts)
{
    uint64_t so_far = 0;
    unsigned __int128 sum = (unsigned __int128)tally->sum;
    for (size_t i = 0; i < num_counts; i++)
        slots[i] = (int64_t)(so_far += tally->counts[i]);
    slots[num_counts] = (int64_t)(sum >> 64);
    slots[num_counts + 1] = (int64_t)(uint64_t)sum;
}

static uint64_t from_source(size_t source, const struct om_counts *c)
{
    const uint64_t tokens[] = {c->prompt_tokens - c->cached_tokens, c->cached_tokens, 0};
    return tokens[source];
}

static uint64_t value_of(unsigned family, size_t nth, const struct om_counts *c,
                         const struct om_gauges *g)
{
    switch ((enum om_family)family) {
    case OM_RUNNING:       return (uint64_t)g->running;
    case OM_WAITING:       return (uint64_t)g->waiting;
    case OM_WAITING_WHY:   return nth == 0 ? (uint64_t)g->waiting : 0;   /* nobody is put off */
    case OM_USAGE:         return (uint64_t)g->used_blocks;
    case OM_INFO:          return 1;
    case OM_PREEMPTIONS:   return c->preemptions;
    case OM_PROMPT_TOKENS: return c->prompt_tokens;
    case OM_CACHED_TOKENS: return c->cached_tokens;
    case OM_BY_SOURCE:     return from_source(nth, c);
    case OM_GENERATED:     return c->generated;
    case OM_QUERIES:       return c->queries;
    case OM_HITS:          return c->hits;
    case OM_SUCCESS:       return c->ends[nth];
    case OM_DRAFTS:        return c->drafts;
    case OM_DRAFT_TOKENS:  return c->draft_tokens;
    case OM_ACCEPTED:      return c->accepted;
    case OM_ACCEPTED_AT:   return c->accepted_at[nth];
    case OM_FIRST_HISTOGRAM: break;
    }
    PKV_UNREACHABLE("a family of single values");
}

void om_pack(const struct om_layout *l, const struct om_counts *counts,
             const struct om_gauges *gauges, int64_t *slots)
{
    size_t nth = 0;
    for (size_t i = 0; i < l->num; i++) {
        const struct om_metric *m = &l->metrics[i];
        nth = i > 0 && m[-1].family == m->family ? nth + 1 : 0;
        if (m->family >= OM_FIRST_HISTOGRAM)
            pack_tally(&counts->tallies[m->family - OM_FIRST_HISTOGRAM], slots + m->slot,
                       m->num_slots - 2);
        else
            slots[m->slot] = (int64_t)value_of(m->family, nth, counts, gauges);
    }
}

/* ---- the text ---- */

/* vLLM's way: "0.001", "2.5", "10.0", and "1e+06" from a million on. */
static void add_bound(struct pkv_text *t, int64_t value, bool is_ms)
{
    size_t before = t->length;
    int64_t rest = value, power = 0;
    for (; rest % 10 == 0; power++)
        rest /= 10;
    if (!is_ms && value >= 1000000) {
        pkv_text_fmt(t, "%" PRId64 "e+%02" PRId64, rest, power);
        return;
    }
    pkv_text_ratio(t, value, is_ms ? 1000 : 1, 3);
    if (!t->failed && !memchr(t->text + before, '.', t->length - before))
        pkv_text_add(t, ".0");
}

static void start_line(struct om_writer *w, struct pkv_text *t, const char *suffix, size_t bound)
{
    const struct om_metric *m = w->metric;
    bool has_model = m->family != OM_INFO;
    pkv_text_clear(t);
    pkv_text_fmt(t, "vllm:%s%s{engine=\"0\"", families[m->family].name, suffix);
    if (has_model)
        pkv_text_fmt(t, ",model_name=\"%s\"", w->layout->model_name.text);
    if (m->label[0])
        pkv_text_fmt(t, ",%s", m->label);
    if (strcmp(suffix, "_bucket") == 0) {
        enum om_bounds bounds = bounds_of[m->family - OM_FIRST_HISTOGRAM];
        pkv_text_add(t, ",le=\"");
        if (bound < w->layout->num_bounds[bounds])
            add_bound(t, w->layout->bounds[bounds][bound], is_time(bounds));
        else
            pkv_text_add(t, "+Inf");
        pkv_text_add(t, "\"");
    }
    pkv_text_add(t, "} ");
}

/* Text that memory was lacking for is told of in the end. */
static void put(struct om_writer *w, const struct pkv_text *t)
{
    if (t->length > 0)
        pkv_out_bytes(w->out, t->text, t->length);
}

static void start_family(struct om_writer *w)
{
    static const char *const types[] = {"gauge", "gauge", "counter", "histogram"};
    unsigned family = w->metric->family;
    if (w->metric > w->layout->metrics && w->metric[-1].family == family)
        return;
    const char *name = families[family].name, *unit = strrchr(name, '_');
    pkv_text_clear(&w->number);
    pkv_text_fmt(&w->number, "# TYPE vllm:%s %s\n", name, types[families[family].kind]);
    if (unit && strcmp(unit, "_seconds") == 0)
        pkv_text_fmt(&w->number, "# UNIT vllm:%s seconds\n", name);
    pkv_text_fmt(&w->number, "# HELP vllm:%s %s\n", name, families[family].help);
    put(w, &w->number);
}

void om_writer_begin(struct om_writer *w, size_t metric)
{
    w->metric = &w->layout->metrics[metric];
    start_family(w);
    if (families[w->metric->family].kind != OM_HISTOGRAM) {
        bool counts = families[w->metric->family].kind == OM_COUNTER;
        start_line(w, &w->starts[0], counts ? "_total" : "", 0);
        return;
    }
    size_t num = w->metric->num_slots - 2;
    for (size_t i = 0; i < num; i++)
        start_line(w, &w->starts[i], "_bucket", i);
    start_line(w, &w->starts[num], "_count", 0);
    start_line(w, &w->starts[num + 1], "_sum", 0);
}

/* Readers that keep milliseconds cut 1000 times the seconds as binary has them: 2.01 becomes 2009. There
 * the time is written a ten-millionth of a second later. */
static bool would_be_cut(int64_t time_ms)
{
    return (int64_t)((double)time_ms / 1000.0 * 1000.0) != time_ms;
}

static void write_line(struct om_writer *w, size_t start, int64_t time_ms)
{
    static const char digits[] = "0123456789";
    char ms[] = {'.', digits[time_ms / 100 % 10], digits[time_ms / 10 % 10], digits[time_ms % 10]};
    put(w, &w->starts[start]);
    put(w, &w->number);
    pkv_out_char(w->out, ' ');
    pkv_out_i64(w->out, time_ms / 1000);
    pkv_out_bytes(w->out, ms, sizeof ms);
    if (would_be_cut(time_ms))
        pkv_out_text(w->out, "0001");
    pkv_out_char(w->out, '\n');
}

static void write_number(struct om_writer *w, size_t start, int64_t value, int64_t time_ms)
{
    pkv_text_clear(&w->number);
    pkv_text_i64(&w->number, value);
    write_line(w, start, time_ms);
}

static void write_sum(struct om_writer *w, const int64_t *slots, int64_t time_ms)
{
    size_t num = w->metric->num_slots - 2;
    bool is_ns = is_time(bounds_of[w->metric->family - OM_FIRST_HISTOGRAM]);
    __int128 sum = (__int128)((unsigned __int128)(uint64_t)slots[num] << 64 | (uint64_t)slots[num + 1]);
    pkv_text_clear(&w->number);
    pkv_text_ratio(&w->number, sum, is_ns ? 1000000000 : 1, 9);
    write_line(w, num + 1, time_ms);
}

void om_writer_scrape(struct om_writer *w, const int64_t *slots, int64_t time_ms)
{
    size_t num = w->metric->num_slots - 2;
    switch (families[w->metric->family].kind) {
    case OM_GAUGE:
    case OM_COUNTER:
        write_number(w, 0, slots[0], time_ms);
        return;
    case OM_SHARE:
        pkv_text_clear(&w->number);
        pkv_text_ratio(&w->number, slots[0], w->layout->num_blocks, 17);
        write_line(w, 0, time_ms);
        return;
    case OM_HISTOGRAM:
        for (size_t i = 0; i < num; i++)
            write_number(w, i, slots[i], time_ms);
        write_number(w, num, slots[num - 1], time_ms);
        write_sum(w, slots, time_ms);
        return;
    }
}

int om_writer_check(const struct om_writer *w, struct pkv_err *err)
{
    bool failed = w->number.failed;
    for (size_t i = 0; i < sizeof w->starts / sizeof *w->starts; i++)
        failed = failed || w->starts[i].failed;
    return failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory") : pkv_out_check(w->out, err);
}

void om_writer_finish(struct om_writer *w)
{
    for (size_t i = 0; i < sizeof w->starts / sizeof *w->starts; i++)
        pkv_text_free(&w->starts[i]);
    pkv_text_free(&w->number);
}
