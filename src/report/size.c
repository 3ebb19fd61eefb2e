/*
 * size.c - a question of size, answered.
 *
 * Lengths that nobody asked for are shown as far as one request of them fits.
 */
#include "report/size_private.h"

#include "base/alloc.h"

static const uint64_t usual_lengths[] = {4096, 32768, 131072};
#define NUM_USUAL (sizeof usual_lengths / sizeof *usual_lengths)

/* num_gpu_blocks says how many blocks every rank has, so their memory follows. */
static int fit_blocks(struct size_answer *a, struct pkv_err *err)
{
    uint64_t pools[PKV_KV_MAX_STAGES];
    for (uint32_t i = 0; i < a->plan.num_stages; i++)
        if (__builtin_mul_overflow(a->q->num_gpu_blocks, a->plan.stages[i].block_bytes, &pools[i]))
            return pkv_fail(err, PKV_ERR_INPUT, "%llu blocks are more than 2^64 bytes",
                            (unsigned long long)a->q->num_gpu_blocks);
    return pkv_kv_fit_make(&a->plan, pools, a->plan.num_stages, &a->fit, err);
}

static int fit(struct size_answer *a, struct pkv_err *err)
{
    const struct pkv_size_question *q = a->q;
    a->has_pool = q->num_pools > 0 || q->num_gpu_blocks > 0;
    if (!a->has_pool)
        return 0;
    if (q->num_gpu_blocks > 0 ? fit_blocks(a, err) < 0
                              : pkv_kv_fit_make(&a->plan, q->pools, q->num_pools, &a->fit, err) < 0)
        return -1;
    if (a->fit.num_blocks < 1u + q->has_null_block) {
        const struct pkv_kv_rank *r = &a->fit.ranks[a->fit.limiting_rank];
        return pkv_fail(err, PKV_ERR_INPUT, "nothing fits: a block takes %llu bytes, and the memory of "
                        "%llu bytes on that rank holds %s", (unsigned long long)r->block_bytes,
                        (unsigned long long)r->pool_bytes,
                        a->fit.num_blocks == 0 ? "none" : "one, which is the null block");
    }
    a->num_usable = a->fit.num_blocks - q->has_null_block;
    return 0;
}

static struct size_length length_of(const struct size_answer *a, uint64_t positions)
{
    struct size_length l = {.positions = positions};
    uint64_t stored = pkv_kv_sequence_bytes(&a->q->model, &a->plan, PKV_KV_ALL_STAGES, positions);
    if (__builtin_add_overflow(stored, a->plan.state_total_bytes, &l.payload_bytes))
        l.payload_bytes = UINT64_MAX;
    l.blocks = pkv_kv_request_blocks(&a->plan, positions);
    if (__builtin_mul_overflow(l.blocks, a->block_bytes, &l.held_bytes))
        l.held_bytes = UINT64_MAX;
    return l;
}

static void fill_lengths(struct size_answer *a)
{
    const struct pkv_size_question *q = a->q;
    const uint64_t *lengths = q->num_lengths > 0 ? q->lengths : usual_lengths;
    size_t num = q->num_lengths > 0 ? q->num_lengths : NUM_USUAL;
    for (size_t i = 0; i < num; i++) {
        struct size_length l = length_of(a, lengths[i]);
        if (q->num_lengths > 0 || !a->has_pool || l.blocks <= a->num_usable)
            a->lengths[a->num_lengths++] = l;
    }
}

/* The engine lets a model start when one request of the greatest length has blocks enough, the null
 * block among them. */
static void fill_max_len(struct size_answer *a)
{
    a->max_len = a->q->max_model_len > 0 ? a->q->max_model_len : a->q->model.max_model_len;
    if (a->max_len == 0)
        return;
    a->max_len_blocks = pkv_kv_request_blocks(&a->plan, a->max_len);
    if (!a->has_pool)
        return;
    a->max_len_fits = a->max_len_blocks <= a->fit.num_blocks;
    a->longest = pkv_kv_longest_request(&a->plan, a->fit.num_blocks, a->max_len);
}

/* Groups count the layers of a draft as well; those that are charged at full length have no windows. */
static uint64_t window_bytes(const struct size_answer *a)
{
    unsigned __int128 sum = 0;
    for (uint32_t i = 0; i < a->plan.num_groups; i++) {
        const struct pkv_kv_group *g = &a->plan.groups[i];
        if (g->kind == PKV_KV_SLIDING || g->kind == PKV_KV_CHUNKED)
            sum += (unsigned __int128)a->plan.type_bytes[g->type] * g->window * g->num_layers;
    }
    return sum < UINT64_MAX ? (uint64_t)sum : UINT64_MAX;
}

struct size_answer *size_answer(const struct pkv_size_question *question, struct pkv_err *err)
{
    struct size_answer *a = pkv_alloc(1, sizeof *a, err);
    if (!a)
        return NULL;
    a->q = question;
    if (pkv_kv_plan_make(&question->model, &question->config, &a->plan, err) < 0 ||
        fit(a, err) < 0) {
        pkv_free(a);
        return NULL;
    }
    for (uint32_t i = 0; i < a->plan.num_stages; i++)
        a->block_bytes += a->plan.stages[i].block_bytes;
    a->window_bytes = window_bytes(a);
    if (__builtin_add_overflow(a->window_bytes, a->plan.state_total_bytes, &a->fixed_bytes))
        a->fixed_bytes = UINT64_MAX;
    fill_lengths(a);
    fill_max_len(a);
    return a;
}

uint64_t size_requests(const struct size_answer *a, uint64_t num_positions)
{
    uint64_t need = pkv_kv_request_blocks(&a->plan, num_positions);
    return need > 0 ? a->num_usable / need : 0;
}

uint32_t size_layers_of(const struct size_answer *a, uint32_t type)
{
    const struct pkv_kv_model *m = &a->q->model;
    uint32_t num = 0;
    for (uint32_t i = 0; i < m->num_layers; i++)
        num += m->layers[i] == type;
    return num;
}

uint64_t size_hundredths(uint64_t num, uint64_t den)
{
    unsigned __int128 twice = (unsigned __int128)num * 200;
    unsigned __int128 whole = twice / den / 2, rest = twice - whole * 2 * den;
    bool up = rest > den || (rest == den && whole % 2 == 1);
    whole += up;
    return whole < UINT64_MAX ? (uint64_t)whole : UINT64_MAX;
}

void put_item(struct page *p, const char *name, struct pkv_text *t)
{
    page_item(p, name, t->text ? t->text : "");
    p->text.failed |= t->failed;
    pkv_text_clear(t);
}

void add_bytes_or_more(struct pkv_text *t, uint64_t n)
{
    if (n < UINT64_MAX)
        add_bytes(t, n);
    else
        pkv_text_add(t, "2^64 B or more");
}

void add_bytes(struct pkv_text *t, uint64_t n)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    while (unit < 3 && n >> (10 * (unit + 2)) > 0)
        unit++;
    add_grouped(t, n);
    pkv_text_add(t, " B");
    if (n < 1024)
        return;
    pkv_text_add(t, " (");
    pkv_text_ratio(t, n, (__int128)1 << (10 * (unit + 1)), 3);
    pkv_text_fmt(t, " %s)", units[unit]);
}
