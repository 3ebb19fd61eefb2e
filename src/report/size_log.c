/*
 * size_log.c - a start-up log held against a model, figure by figure.
 *
 * Memory is printed to 0.01 GiB, so it stands for a range of block counts; tokens stand for one
 * count, or under the old rule for as many as there are groups. Of these the first is taken that is
 * in the range and has the printed concurrency. As blocks and tokens are made of each other here,
 * they tell a model only where memory is printed beside them.
 */
#include "report/size_log_private.h"

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
        add_check(v, name, printed, of(v, v->low), of(v, v->high), log_may_be_less(v));
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
        add_check(v, "blocks", v->num_blocks, v->low, v->high, log_may_be_less(v));
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
    const uint32_t dcp = v->log->dcp > 1 ? v->log->dcp : 1;
    struct pkv_kv_model model = {.num_layers = 1, .num_types = 1, .types = {type}};
    const struct pkv_kv_config config = {
        .dtype = PKV_KV_INT8, .tp = 2 * dcp, .dcp = dcp, .num_stages = 1, .stage_layers = {1},
        .block_size = v->log->block_size > 0 ? v->log->block_size : v->log->is_sglang ? 1 : 16};
    return pkv_kv_plan_make(&model, &config, &v->plan, err);
}

bool log_has_other_pools(const struct log_view *v)
{
    return v->log->is_sglang && v->plan.num_groups > 1;
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
    v->answer = PKV_LOG_CANNOT_TELL;
    if (log_has_other_pools(v))
        return 0;
    log_find_range(v);
    v->has_range &= !v->log->is_overridden;
    find_blocks(v);
    check_all(v);
    return 0;
}

char *pkv_size_log(const struct pkv_startup_log *log, const struct pkv_kv_model *model,
                   const struct pkv_kv_config *config, const struct pkv_report_style *style,
                   bool json, enum pkv_log_answer *out_answer, struct pkv_err *err)
{
    struct log_view v = {.log = log, .model = model};
    if (make_view(&v, config, err) < 0)
        return NULL;
    *out_answer = v.answer;
    return json ? log_json(&v, err) : log_text(&v, style, err);
}
