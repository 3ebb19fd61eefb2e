/*
 * size_log.c - a start-up log held against a model, figure by figure.
 *
 * Memory is printed to 0.01 GiB, so it stands for a range of block counts; tokens stand for one
 * count, or under the old rule for as many as there are groups. Of these the first is taken that is
 * in the range and has the printed concurrency. As blocks and tokens are made of each other here,
 * they tell a model only where memory is printed beside them.
 */
#include "report/size_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum log_verdict { LOG_AGREES, LOG_SMALLEST_RANK, LOG_DIFFERS };

struct log_check {
    const char *name;
    enum log_verdict verdict;
    uint64_t printed, low, high;     /* what it may be */
};

#define MAX_CHECKS 4u
struct log_view {
    const struct pkv_startup_log *log;
    const struct pkv_kv_model *model;    /* NULL = unknown */
    struct pkv_kv_plan plan;
    uint64_t block_bytes;                /* of the largest stage; 0 = unknown */
    uint64_t num_blocks;                 /* 0 = it cannot be told */
    bool has_range;
    uint64_t low, high;                  /* blocks that the printed memory may stand for */
    const char *rule;                    /* by which the tokens were printed */
    struct log_check checks[MAX_CHECKS];
    size_t num_checks;
    enum pkv_log_answer answer;
};

static void find_range(struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    uint64_t least = UINT64_MAX, slack = log->is_sglang ? 2 : 1;
    if (v->block_bytes == 0)
        return;
    if (log->memory_bytes > 0) {
        v->low = v->high = log->memory_bytes / v->block_bytes;
        v->has_range = true;
        return;
    }
    for (uint32_t i = 0; i < log->num_memories; i++)
        least = log->memories[i] < least ? log->memories[i] : least;
    if (log->num_memories == 0 || least == 0)
        return;
    v->low = (uint64_t)(((unsigned __int128)(2 * least - slack) << 30) / 200 / v->block_bytes);
    v->high = (uint64_t)(((unsigned __int128)(2 * least + slack) << 30) / 200 / v->block_bytes);
    v->has_range = true;
}

static uint64_t blocks_per_request(const struct log_view *v, uint64_t length)
{
    return pkv_kv_request_blocks(&v->plan, length);
}

static bool has_concurrency(const struct log_view *v, uint64_t num_blocks)
{
    const struct pkv_startup_log *log = v->log;
    if (log->concurrency_len == 0)
        return true;
    return size_hundredths(num_blocks, blocks_per_request(v, log->concurrency_len)) ==
           log->concurrency_hundredths;
}

static bool is_in_range(const struct log_view *v, uint64_t num_blocks)
{
    return !v->has_range || (num_blocks >= v->low && num_blocks <= v->high);
}

/* Blocks that the old rule prints so, the best of them; false = none. */
static bool try_old_rule(struct log_view *v, uint64_t *out)
{
    uint64_t size = pkv_kv_smallest_block(&v->plan), first;
    if (v->log->tokens % size != 0 ||
        __builtin_mul_overflow(v->log->tokens / size, v->plan.num_groups, &first))
        return false;
    *out = first;
    for (uint64_t n = first; n < first + v->plan.num_groups; n++)
        if (is_in_range(v, n) && has_concurrency(v, n)) {
            *out = n;
            return true;
        }
    return false;
}

static bool try_new_rule(struct log_view *v, uint64_t *out)
{
    uint64_t length = v->log->concurrency_len > 0 ? v->log->concurrency_len
                                                  : v->log->max_model_len;
    unsigned __int128 product;
    if (length == 0)
        return false;
    product = (unsigned __int128)v->log->tokens * blocks_per_request(v, length);
    *out = (uint64_t)((product + length - 1) / length);
    return is_in_range(v, *out) && has_concurrency(v, *out) &&
           pkv_kv_tokens_new_rule(&v->plan, *out, length) == v->log->tokens;
}

static bool is_old_rule(const struct log_view *v, uint64_t num_blocks)
{
    return pkv_kv_tokens_old_rule(&v->plan, num_blocks) == v->log->tokens;
}

static void find_blocks(struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    uint64_t by_old = 0, by_new = 0;
    v->num_blocks = log->num_gpu_blocks;
    if (v->num_blocks == 0 && log->memory_bytes > 0 && v->block_bytes > 0)
        v->num_blocks = v->low;
    if (log->tokens == 0)
        return;
    if (v->num_blocks > 0) {
        v->rule = is_old_rule(v, v->num_blocks) ? "old" : "new";
    } else if (try_old_rule(v, &by_old)) {
        v->num_blocks = by_old;
        v->rule = "old";
    } else if (try_new_rule(v, &by_new)) {
        v->num_blocks = by_new;
        v->rule = "new";
    } else {
        v->num_blocks = by_old > 0 ? by_old : by_new;
        v->rule = by_old > 0 ? "old" : "new";
    }
}

/* Ranks printed different memory, and not all of them printed theirs; or the user says so. */
static bool may_be_less(const struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    uint64_t ranks = (uint64_t)v->plan.config.tp * v->plan.num_stages;
    bool differ = log->ranks_differ;
    for (uint32_t i = 1; i < log->num_memories && log->num_memories < ranks; i++)
        differ |= log->memories[i] != log->memories[0];
    return differ;
}

static void add_check(struct log_view *v, const char *name, uint64_t printed, uint64_t low,
                      uint64_t high, bool may_be_less)
{
    bool fits = printed >= low && printed <= high;
    v->checks[v->num_checks++] = (struct log_check){
        .name = name, .printed = printed, .low = low, .high = high,
        .verdict = fits ? LOG_AGREES
                        : may_be_less && printed < low ? LOG_SMALLEST_RANK : LOG_DIFFERS};
}

/* What depends on blocks has to be that of the log's own blocks, and within that of its memory. */
static void check_derived(struct log_view *v, const char *name, uint64_t printed,
                          uint64_t (*of)(const struct log_view *, uint64_t num_blocks))
{
    uint64_t own = of(v, v->num_blocks);
    if (own == printed && v->has_range)
        add_check(v, name, printed, of(v, v->low), of(v, v->high), may_be_less(v));
    else
        add_check(v, name, printed, own, own, false);
}

static uint64_t tokens_of(const struct log_view *v, uint64_t num_blocks)
{
    const struct pkv_startup_log *log = v->log;
    uint64_t length = log->concurrency_len > 0 ? log->concurrency_len : log->max_model_len;
    if (is_old_rule(v, v->num_blocks) || length == 0)
        return pkv_kv_tokens_old_rule(&v->plan, num_blocks);
    return pkv_kv_tokens_new_rule(&v->plan, num_blocks, length);
}

static uint64_t concurrency_of(const struct log_view *v, uint64_t num_blocks)
{
    return size_hundredths(num_blocks, blocks_per_request(v, v->log->concurrency_len));
}

/* The swap space was given in whole GiB, 4 if nobody said. */
static void check_cpu_blocks(struct log_view *v)
{
    uint64_t printed = v->log->num_cpu_blocks, near = printed;
    for (uint64_t gib = 1; gib <= 1024; gib++) {
        uint64_t blocks = (gib << 30) / v->block_bytes;
        if (gib == 1 || (blocks <= printed ? printed - blocks : blocks - printed) <
                            (near <= printed ? printed - near : near - printed))
            near = blocks;
    }
    add_check(v, "cpu_blocks", printed, near, near, false);
}

static void check_all(struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    bool of_memory = v->has_range && log->memory_bytes > 0 && log->num_gpu_blocks == 0;
    if (v->has_range && v->num_blocks > 0 && !of_memory)
        add_check(v, "blocks", v->num_blocks, v->low, v->high, may_be_less(v));
    if (log->tokens > 0 && v->num_blocks > 0)
        check_derived(v, "tokens", log->tokens, tokens_of);
    if (log->concurrency_len > 0 && v->num_blocks > 0)
        check_derived(v, "concurrency_hundredths", log->concurrency_hundredths, concurrency_of);
    v->answer = v->has_range && v->num_checks > 0 ? PKV_LOG_AGREES : PKV_LOG_CANNOT_TELL;
    if (log->num_cpu_blocks > 0 && v->block_bytes > 0)
        check_cpu_blocks(v);
    for (size_t i = 0; i < v->num_checks; i++)
        if (v->checks[i].verdict == LOG_DIFFERS)
            v->answer = PKV_LOG_DIFFERS;
}

/* Nothing is known of the model: one value a token, which is enough for counts of blocks. */
static int plan_blindly(struct log_view *v, struct pkv_err *err)
{
    const struct pkv_kv_type type = {.kind = PKV_KV_FULL, .num_kv_heads = 1, .head_dim_k = 1};
    struct pkv_kv_model model = {.num_layers = 1, .num_types = 1, .types = {type}};
    const struct pkv_kv_config config = {
        .dtype = PKV_KV_INT8, .tp = 1, .dcp = 1, .num_stages = 1, .stage_layers = {1},
        .block_size = v->log->block_size > 0 ? v->log->block_size : v->log->is_sglang ? 1 : 16};
    return pkv_kv_plan_make(&model, &config, &v->plan, err);
}

static int make_view(struct log_view *v, const struct pkv_kv_config *config, struct pkv_err *err)
{
    if (!v->model) {
        if (plan_blindly(v, err) < 0)
            return -1;
    } else {
        if (pkv_kv_plan_make(v->model, config, &v->plan, err) < 0)
            return -1;
        for (uint32_t i = 0; i < v->plan.num_stages; i++)
            if (v->plan.stages[i].block_bytes > v->block_bytes)
                v->block_bytes = v->plan.stages[i].block_bytes;
    }
    find_range(v);
    find_blocks(v);
    check_all(v);
    return 0;
}

/* ---- the kv: part ---- */

/* Groups are written as a scenario has them: the general block size is that of the first one. */
static int add_groups(struct pkv_text *t, const struct log_view *v, struct pkv_err *err)
{
    struct pkv_sched_config groups = {.num_groups = 0};
    char *text;
    if (!v->model || v->plan.num_groups == 1) {
        pkv_text_fmt(t, "  block_size: %u\n", v->plan.config.block_size);
        return 0;
    }
    if (pkv_scenario_plan_groups(&v->plan, &groups, err) < 0)
        return -1;
    text = pkv_scenario_groups_text(&groups, err);
    if (!text)
        return -1;
    pkv_text_fmt(t, "  block_size: %u\n  groups: %s\n", groups.groups[0].block_size, text);
    pkv_scenario_free_text(text);
    return 0;
}

static int add_kv_part(struct pkv_text *t, const struct log_view *v, struct pkv_err *err)
{
    pkv_text_add(t, "kv:\n");
    if (add_groups(t, v, err) < 0)
        return -1;
    if (v->num_blocks > 0)
        pkv_text_fmt(t, "  %s: %" PRIu64 "\n",
                     v->log->has_null_block ? "num_gpu_blocks" : "num_blocks", v->num_blocks);
    if (v->log->prefix_cache_off)
        pkv_text_add(t, "  prefix_cache: false\n");
    if (v->log->max_model_len > 0 || v->log->max_num_batched_tokens > 0)
        pkv_text_add(t, "scheduler:\n");
    if (v->log->max_model_len > 0)
        pkv_text_fmt(t, "  max_model_len: %" PRIu64 "\n", v->log->max_model_len);
    if (v->log->max_num_batched_tokens > 0)
        pkv_text_fmt(t, "  max_num_batched_tokens: %" PRIu64 "\n", v->log->max_num_batched_tokens);
    return 0;
}

/* ---- text ---- */

static const char *const verdicts[] = {
    [LOG_AGREES] = "agrees", [LOG_SMALLEST_RANK] = "smallest_rank", [LOG_DIFFERS] = "differs"};

static void add_hundredths(struct pkv_text *t, uint64_t n)
{
    pkv_text_fmt(t, "%" PRIu64 ".%02u", n / 100, (unsigned)(n % 100));
}

static void add_printed(struct page *p, struct pkv_text *t, const struct log_view *v)
{
    const struct pkv_startup_log *log = v->log;
    pkv_text_fmt(t, "%s", log->is_sglang ? "SGLang" : log->has_null_block ? "vLLM V1" : "vLLM V0");
    if (log->model[0])
        pkv_text_fmt(t, ", %s", log->model);
    for (uint32_t i = 0; i < log->num_memories; i++) {
        pkv_text_add(t, "; ");
        add_hundredths(t, log->memories[i]);
        pkv_text_add(t, " GiB for the cache");
    }
    if (log->memory_bytes > 0) {
        pkv_text_add(t, "; ");
        add_bytes(t, log->memory_bytes);
        pkv_text_add(t, " for the cache");
    }
    put_item(p, "log", t);
}

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
    add(t, c->low);
    if (c->high != c->low) {
        pkv_text_add(t, " to ");
        add(t, c->high);
    }
    if (strcmp(c->name, "tokens") == 0 && v->rule)
        pkv_text_fmt(t, " by the %s rule", v->rule);
    if (c->verdict == LOG_SMALLEST_RANK && strcmp(c->name, "blocks") == 0) {
        unsigned __int128 bytes = (unsigned __int128)c->printed * v->block_bytes;
        pkv_text_add(t, ". They take ");
        add_bytes(t, bytes < UINT64_MAX ? (uint64_t)bytes : UINT64_MAX);
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
                                   : "it takes the memory of the pool, and blocks, tokens or, beside "
                                     "exact bytes, a concurrency");
    for (size_t i = 0; i < v->num_checks; i++) {
        const struct log_check *c = &v->checks[i];
        if (strcmp(c->name, "blocks") == 0 && c->verdict == LOG_DIFFERS && c->printed < c->low &&
            v->plan.config.tp * v->plan.num_stages > 1)
            page_item(p, "", "if another rank has less memory than is printed, say --ranks-differ");
    }
}

static int write_text(struct page *p, const struct log_view *v, struct pkv_err *err)
{
    struct pkv_text t = {0};
    int result;
    add_printed(p, &t, v);
    if (v->model) {
        pkv_text_fmt(&t, "%s: a block of ", v->model->name);
        add_counted(&t, v->plan.config.block_size, "token");
        pkv_text_add(&t, " takes ");
        add_bytes(&t, v->block_bytes);
        put_item(p, "model", &t);
    } else {
        page_item(p, "model", "not known: counts are held against each other only");
    }
    for (size_t i = 0; i < v->num_checks; i++) {
        add_check_text(&t, v, &v->checks[i]);
        put_item(p, i == 0 ? "checks" : "", &t);
    }
    add_verdict(p, v);
    pkv_text_add(&p->text, "\n");
    pkv_text_free(&t);
    result = add_kv_part(&p->text, v, err);
    return result;
}

static int write_json(struct pkv_text *t, const struct log_view *v, struct pkv_err *err)
{
    static const char *const words[] = {[PKV_LOG_AGREES] = "agrees", [PKV_LOG_DIFFERS] = "differs",
                                        [PKV_LOG_CANNOT_TELL] = "cannot_tell"};
    struct pkv_text part = {0};
    pkv_text_add(t, "{\n  \"schema\": 1,\n  \"model\": ");
    pkv_text_json(t, v->model ? v->model->name : v->log->model);
    pkv_text_fmt(t, ",\n  \"block_size_tokens\": %u,\n  \"num_groups\": %u",
                 v->plan.config.block_size, v->plan.num_groups);
    if (v->block_bytes > 0)
        pkv_text_fmt(t, ",\n  \"block_bytes\": %" PRIu64, v->block_bytes);
    pkv_text_fmt(t, ",\n  \"num_gpu_blocks\": %" PRIu64, v->num_blocks);
    if (v->has_range)
        pkv_text_fmt(t, ",\n  \"lowest_blocks\": %" PRIu64 ",\n  \"highest_blocks\": %" PRIu64,
                     v->low, v->high);
    if (v->rule)
        pkv_text_fmt(t, ",\n  \"tokens\": %" PRIu64 ",\n  \"token_rule\": \"%s\"", v->log->tokens,
                     v->rule);
    pkv_text_add(t, ",\n  \"checks\": [");
    for (size_t i = 0; i < v->num_checks; i++) {
        const struct log_check *c = &v->checks[i];
        pkv_text_fmt(t, "%s    {\"check\": \"%s\", \"printed\": %" PRIu64 ", \"lowest\": %" PRIu64
                     ", \"highest\": %" PRIu64 ", \"verdict\": \"%s\"}", i > 0 ? ",\n" : "\n",
                     c->name, c->printed, c->low, c->high, verdicts[c->verdict]);
    }
    pkv_text_fmt(t, "%s],\n  \"agrees\": %s,\n  \"verdict\": \"%s\",\n  \"scenario\": ",
                 v->num_checks > 0 ? "\n  " : "", v->answer == PKV_LOG_AGREES ? "true" : "false",
                 words[v->answer]);
    if (add_kv_part(&part, v, err) < 0) {
        pkv_text_free(&part);
        return -1;
    }
    pkv_text_json(t, part.text ? part.text : "");
    pkv_text_add(t, "\n}\n");
    t->failed |= part.failed;
    pkv_text_free(&part);
    return 0;
}

char *pkv_size_log(const struct pkv_startup_log *log, const struct pkv_kv_model *model,
                   const struct pkv_kv_config *config, const struct pkv_report_style *style,
                   bool json, enum pkv_log_answer *out_answer, struct pkv_err *err)
{
    struct log_view v = {.log = log, .model = model};
    struct page p = {.style = style};
    if (make_view(&v, config, err) < 0)
        return NULL;
    *out_answer = v.answer;
    if (json ? write_json(&p.text, &v, err) < 0 : write_text(&p, &v, err) < 0) {
        pkv_text_free(&p.text);
        return NULL;
    }
    return take_text(&p.text, err);
}
