/*
 * size_log_page.c - a start-up log held against a model, for people and as JSON.
 */
#include "report/size_log_private.h"

#include <inttypes.h>
#include <string.h>

static const char *const verdicts[] = {
    [LOG_AGREES] = "agrees", [LOG_SMALLEST_RANK] = "smallest_rank", [LOG_DIFFERS] = "differs"};

static void add_hundredths(struct pkv_text *t, uint64_t n)
{
    pkv_text_fmt(t, "%" PRIu64 ".%02u", n / 100, (unsigned)(n % 100));
}

static void add_memory(struct pkv_text *t, const struct pkv_log_memory *m)
{
    uint64_t unit = 1;
    for (uint32_t i = 0; i < m->places; i++)
        unit *= 10;
    pkv_text_fmt(t, "%" PRIu64, m->printed / unit);
    if (m->places > 0)
        pkv_text_fmt(t, ".%0*" PRIu64, (int)m->places, m->printed % unit);
    pkv_text_add(t, " GiB");
}

static bool is_same_memory(const struct pkv_log_memory *a, const struct pkv_log_memory *b)
{
    return a->printed == b->printed && a->places == b->places;
}

static void add_printed(struct page *p, struct pkv_text *t, const struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    pkv_text_fmt(t, "%s", log->is_sglang ? "SGLang" : log->has_null_block ? "vLLM V1" : "vLLM V0");
    if (log->model[0])
        pkv_text_fmt(t, ", %s", log->model);
    for (uint32_t i = 0, end; i < log->num_memories; i = end) {
        for (end = i + 1; end < log->num_memories &&
                          is_same_memory(&log->memories[i], &log->memories[end]); end++) {
        }
        pkv_text_add(t, "; ");
        if (end - i > 1)
            pkv_text_fmt(t, "%u times ", end - i);
        add_memory(t, &log->memories[i]);
        pkv_text_add(t, " for the cache");
    }
    if (log->memory_bytes > 0) {
        pkv_text_add(t, "; ");
        add_bytes(t, log->memory_bytes);
        pkv_text_add(t, " for the cache");
    }
    put_item(p, "log", t);
}

/* ---- ranks ---- */

static void add_range(struct pkv_text *t, uint64_t low, uint64_t high,
                      void (*add)(struct pkv_text *, uint64_t))
{
    add(t, low);
    if (high == low)
        return;
    pkv_text_add(t, " to ");
    add(t, high);
}

/* Of the ranks that are known. */
static bool is_limiting(const struct log_view *v, uint32_t rank)
{
    return v->limiting_rank == (int32_t)rank && v->num_blocks >= v->ranks[rank].low;
}

static void add_place(struct pkv_text *t, const struct log_view *v, const struct log_rank *r,
                      uint32_t num)
{
    bool has_stage = v->plan.num_stages > 1 && r->stage >= 0;
    if (has_stage)
        pkv_text_fmt(t, "stage %d", (int)r->stage);
    if (num > 1)
        pkv_text_fmt(t, "%s%u ranks", has_stage ? ", " : "", num);
    else if (r->tp_rank >= 0 && v->plan.config.tp > 1)
        pkv_text_fmt(t, "%srank %d", has_stage ? " " : "", (int)r->tp_rank);
    else if (!has_stage)
        pkv_text_add(t, "a rank");
    pkv_text_add(t, ": ");
}

static void add_rank(struct pkv_text *t, const struct log_view *v, uint32_t at, uint32_t num)
{
    const struct log_rank *r = &v->ranks[at];
    uint64_t low, high;
    add_place(t, v, r, num);
    if (r->memory)
        add_memory(t, r->memory);
    else
        add_bytes(t, r->low_bytes);
    if (r->block_bytes == 0)
        return;
    pkv_text_add(t, " / ");
    add_bytes(t, r->block_bytes);
    pkv_text_add(t, " = ");
    add_range(t, r->low, r->high, add_grouped);
    pkv_text_add(t, " blocks");
    if (is_limiting(v, at) && v->num_ranks > 1)
        pkv_text_add(t, ": the fewest, so all ranks have so many");
    if (v->num_blocks == 0 || is_limiting(v, at) ||
        !log_stranded(r, v->num_blocks, &low, &high))
        return;
    pkv_text_add(t, "; stranded ");
    add_range(t, low, high, add_bytes);
}

static bool are_alike(const struct log_rank *a, const struct log_rank *b)
{
    return a->stage == b->stage && a->low_bytes == b->low_bytes && a->high_bytes == b->high_bytes;
}

static bool has_smallest_rank(const struct log_view *v)
{
    for (size_t i = 0; i < v->num_checks; i++)
        if (v->checks[i].verdict == LOG_SMALLEST_RANK)
            return true;
    return false;
}

/* Where there is more than one memory, or one that is not the smallest. */
static void add_ranks(struct page *p, struct pkv_text *t, const struct log_view *v)
{
    if (v->num_ranks < 2 && !has_smallest_rank(v))
        return;
    for (uint32_t i = 0, end; i < v->num_ranks; i = end) {
        for (end = i + 1; end < v->num_ranks && are_alike(&v->ranks[i], &v->ranks[end]); end++) {
        }
        add_rank(t, v, i, end - i);
        put_item(p, i == 0 ? "memory" : "", t);
    }
}

/* ---- text ---- */

static void add_check_text(struct pkv_text *t, const struct log_view *v, const struct log_check *c)
{
    bool is_ratio = strcmp(c->name, "concurrency_hundredths") == 0;
    void (*add)(struct pkv_text *, uint64_t) = is_ratio ? add_hundredths : add_grouped;
    pkv_text_fmt(t, "%s: ", verdicts[c->verdict]);
    add(t, c->printed);
    pkv_text_add(t, is_ratio ? " requests of the greatest length" : " ");
    if (!is_ratio)
        pkv_text_add(t, strcmp(c->name, "cpu_blocks") == 0 ? "CPU blocks" : c->name);
    pkv_text_add(t, "; computed ");
    add_range(t, c->low, c->high, add);
    if (strcmp(c->name, "tokens") == 0 && v->rule)
        pkv_text_fmt(t, " by the %s rule", v->rule);
    if (c->verdict == LOG_SMALLEST_RANK && strcmp(c->name, "blocks") == 0) {
        const struct log_rank *r = &v->ranks[v->limiting_rank >= 0 ? v->limiting_rank : 0];
        uint64_t size = r->block_bytes > 0 ? r->block_bytes : v->block_bytes;
        pkv_text_add(t, ". They take ");
        add_bytes(t, c->printed * size);   /* no more than the rank has */
        pkv_text_add(t, ", less than this rank has: another rank had no more, and the smallest rank "
                     "rules");
    }
}

static void add_verdict(struct page *p, const struct log_view *v)
{
    static const char *const words[] = {
        [PKV_LOG_AGREES] = "the log agrees with the model",
        [PKV_LOG_DIFFERS] = "the log does not agree with the model",
        [PKV_LOG_CANNOT_TELL] = "the log does not say enough to tell"};
    page_item(p, "verdict", words[v->answer]);
    if (v->answer == PKV_LOG_CANNOT_TELL)
        page_item(p, "", !v->model ? "no model is known to hold it against"
                         : log_has_other_pools(v) ? "SGLang has a pool for each kind of layer, and the log "
                                                    "has the size of one"
                         : v->log->is_overridden ? "num_gpu_blocks_override stands above the memory"
                                   : "it takes the memory of the pool, and blocks, tokens or, beside "
                                     "exact bytes, a concurrency");
    for (size_t i = 0; i < v->num_checks; i++) {
        const struct log_check *c = &v->checks[i];
        if (strcmp(c->name, "blocks") == 0 && c->verdict == LOG_DIFFERS && c->printed < c->low &&
            v->plan.config.tp * v->plan.num_stages > 1)
            page_item(p, "", "if another rank has less memory than is printed, say --ranks-differ");
    }
}

static void add_part(struct page *p, const struct log_view *v)
{
    struct pkv_text part = {0};
    struct pkv_err why = {0};
    if (log_add_kv_part(&part, v, &why) < 0) {
        page_item(p, "no kv: part", why.text);
    } else {
        pkv_text_add(&p->text, "\n");
        pkv_text_bytes(&p->text, part.text, part.length);
    }
    p->text.failed |= part.failed || why.code == PKV_ERR_MEMORY;
    pkv_text_free(&part);
}

char *log_text(const struct log_view *v, const struct pkv_report_style *style, struct pkv_err *err)
{
    struct page p = {.style = style};
    struct pkv_text t = {0};
    add_printed(&p, &t, v);
    if (v->model) {
        pkv_text_fmt(&t, "%s: a block of ", v->model->name);
        add_counted(&t, v->plan.config.block_size, "token");
        pkv_text_add(&t, " takes ");
        add_bytes(&t, v->block_bytes);
        put_item(&p, "model", &t);
    } else {
        page_item(&p, "model", "not known: counts are held against each other only");
    }
    add_ranks(&p, &t, v);
    for (size_t i = 0; i < v->num_checks; i++) {
        add_check_text(&t, v, &v->checks[i]);
        put_item(&p, i == 0 ? "checks" : "", &t);
    }
    add_verdict(&p, v);
    pkv_text_free(&t);
    add_part(&p, v);
    return take_text(&p.text, err);
}

/* ---- JSON ---- */

static void pair(struct pkv_text *t, const char *key, uint64_t n)
{
    pkv_text_fmt(t, ", \"%s\": %" PRIu64, key, n);
}

static void rank_json(struct pkv_text *t, const struct log_view *v, uint32_t at)
{
    const struct log_rank *r = &v->ranks[at];
    uint64_t low, high;
    pkv_text_fmt(t, "    {\"limiting\": %s", is_limiting(v, at) ? "true" : "false");
    if (r->stage >= 0)
        pair(t, "stage", (uint64_t)r->stage);
    if (r->tp_rank >= 0)
        pair(t, "tp_rank", (uint64_t)r->tp_rank);
    pair(t, "lowest_pool_bytes", r->low_bytes);
    pair(t, "highest_pool_bytes", r->high_bytes);
    if (r->block_bytes > 0) {
        pair(t, "block_bytes", r->block_bytes);
        pair(t, "lowest_blocks", r->low);
        pair(t, "highest_blocks", r->high);
        if (v->num_blocks > 0 && log_stranded(r, v->num_blocks, &low, &high)) {
            pair(t, "lowest_stranded_bytes", low);
            pair(t, "highest_stranded_bytes", high);
        }
    }
    pkv_text_add(t, "}");
}

static void figures_json(struct pkv_text *t, const struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    pkv_text_add(t, "{\n  \"schema\": 1,\n  \"engine\": ");
    pkv_text_json(t, log->is_sglang ? "sglang" : log->has_null_block ? "vllm_v1" : "vllm_v0");
    pkv_text_add(t, ",\n  \"model\": ");
    pkv_text_json(t, v->model ? v->model->name : log->model);
    pkv_text_fmt(t, ",\n  \"block_size_tokens\": %u,\n  \"num_groups\": %u",
                 v->plan.config.block_size, v->plan.num_groups);
    if (v->block_bytes > 0)
        pkv_text_fmt(t, ",\n  \"block_bytes\": %" PRIu64, v->block_bytes);
    pkv_text_fmt(t, ",\n  \"num_gpu_blocks\": %" PRIu64, v->num_blocks);
    if (v->has_range)
        pkv_text_fmt(t, ",\n  \"lowest_blocks\": %" PRIu64 ",\n  \"highest_blocks\": %" PRIu64,
                     v->low, v->high);
    for (uint32_t i = 0; i < v->num_ranks; i++) {
        pkv_text_add(t, i > 0 ? ",\n" : ",\n  \"ranks\": [\n");
        rank_json(t, v, i);
    }
    pkv_text_add(t, v->num_ranks > 0 ? "\n  ]" : "");
    if (v->rule)
        pkv_text_fmt(t, ",\n  \"tokens\": %" PRIu64 ",\n  \"token_rule\": \"%s\"", log->tokens,
                     v->rule);
}

static void checks_json(struct pkv_text *t, const struct log_view *v)
{
    static const char *const words[] = {[PKV_LOG_AGREES] = "agrees", [PKV_LOG_DIFFERS] = "differs",
                                        [PKV_LOG_CANNOT_TELL] = "cannot_tell"};
    pkv_text_add(t, ",\n  \"checks\": [");
    for (size_t i = 0; i < v->num_checks; i++) {
        const struct log_check *c = &v->checks[i];
        const char *unit = strstr(c->name, "blocks") ? "blocks" : strcmp(c->name, "tokens") == 0
                                                                      ? "tokens" : "hundredths";
        pkv_text_fmt(t, "%s    {\"check\": \"%s\", \"printed_%s\": %" PRIu64 ", \"lowest_%s\": %" PRIu64
                     ", \"highest_%s\": %" PRIu64 ", \"verdict\": \"%s\"}", i > 0 ? ",\n" : "\n",
                     c->name, unit, c->printed, unit, c->low, unit, c->high, verdicts[c->verdict]);
    }
    pkv_text_fmt(t, "%s],\n  \"agrees\": %s,\n  \"verdict\": \"%s\"",
                 v->num_checks > 0 ? "\n  " : "", v->answer == PKV_LOG_AGREES ? "true" : "false",
                 words[v->answer]);
}

char *log_json(const struct log_view *v, struct pkv_err *err)
{
    struct pkv_text t = {0}, part = {0};
    struct pkv_err why = {0};
    bool has_part = log_add_kv_part(&part, v, &why) == 0;
    figures_json(&t, v);
    checks_json(&t, v);
    pkv_text_add(&t, has_part ? ",\n  \"scenario\": " : ",\n  \"no_scenario\": ");
    pkv_text_json(&t, has_part && part.text ? part.text : why.text);
    pkv_text_add(&t, "\n}\n");
    t.failed |= part.failed || why.code == PKV_ERR_MEMORY;
    pkv_text_free(&part);
    return take_text(&t, err);
}
