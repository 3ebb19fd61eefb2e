/*
 * sched.c - who comes in and who leaves: create, add, abort, forget, drain.
 *
 * A request that could never run is refused when it comes, with both numbers, so that no queue can
 * hang behind it (unless oversized: wait asks for the raw engine).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "sched/sched_private.h"

const char *pkv_limit_name(enum pkv_limit limit)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PKV_LIMITS(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)limit < PKV_LIMIT_COUNT);
    return names[limit];
}

/* Truncated as Python does: 0.29 x 100 gives 28. */
static uint32_t watermark_blocks(const struct pkv_sched_config *config)
{
    uint32_t counted = config->num_blocks + (config->has_null_block ? 1 : 0);
    return (uint32_t)(config->watermark * (double)counted);
}

static struct pkv_cache *create_cache(const struct pkv_sched_config *config, struct pkv_err *err)
{
    struct pkv_cache_config cache = {
        .pool = {.num_blocks = config->num_blocks,
                 .evict = config->policies.evict,
                 .layout = config->policies.layout,
                 .seed = config->seed},
        .num_groups = config->num_groups,
        .prefix_cache = config->prefix_cache,
        .unhashed_free = config->unhashed_free,
        .publish = config->policies.publish->when,
        .max_ahead_tokens = pkv_speculation_num_drafts(&config->speculation) +
                            pkv_speculation_lookahead(&config->speculation),
        .drops_last_hit = config->speculation.method == PKV_SPECULATION_EAGLE,
        .keeps_copies = config->policies.on_preempt->swaps != NULL,
        .num_host_blocks = (uint32_t)config->swap.num_host_blocks,
    };
    for (uint32_t g = 0; g < config->num_groups && g < PKV_MAX_GROUPS; g++)
        cache.groups[g] = config->groups[g];
    cache.keeps_chunk_end = config->chunk_end == PKV_CHUNK_END_KEEP;
    return pkv_cache_create(&cache, err);
}

int sched_reserve_pass(struct pkv_sched *s, size_t num, struct pkv_err *err)
{
    const struct pkv_admit_ops *admit = s->config.policies.admit;
    size_t size = admit->pass_size + num * admit->pass_size_each;
    return pkv_grow(&s->pass, &s->pass_capacity, size, 1, err);
}

static int create_policy_states(struct pkv_sched *s, struct pkv_err *err)
{
    const struct pkv_policies *p = &s->config.policies;
    s->pass = pkv_alloc(1, p->admit->pass_size, err);
    s->pass_capacity = p->admit->pass_size;
    s->order_state = s->pass ? pkv_alloc(1, p->order->state_size, err) : NULL;
    s->order_state_capacity = p->order->state_size;
    s->admit_state = s->order_state ? pkv_alloc(1, p->admit->state_size, err) : NULL;
    s->preempt_state = s->admit_state ? pkv_alloc(1, p->preempt->state_size, err) : NULL;
    s->mix_state = s->preempt_state ? pkv_alloc(1, p->mix->state_size, err) : NULL;
    if (!s->mix_state)
        return -1;
    if (p->order->init)
        p->order->init(s->order_state, p->params[PKV_CHOICE_ORDER]);
    if (p->admit->init)
        p->admit->init(s->admit_state, p->params[PKV_CHOICE_ADMIT]);
    if (p->preempt->init)
        p->preempt->init(s->preempt_state, p->params[PKV_CHOICE_PREEMPT]);
    if (p->mix->init)
        p->mix->init(s->mix_state, p->params[PKV_CHOICE_MIX]);
    return 0;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX / b ? a * b : UINT64_MAX;
}

/* A window keeps what a step in flight looks at, so two steps' tokens may lie before it. */
static void set_most_tokens(struct pkv_sched *s)
{
    uint64_t num_steps = s->config.async_scheduling ? 2 : 1;
    uint64_t threshold = s->config.long_prefill_token_threshold;
    uint64_t chunk = threshold && threshold < s->max_budget ? threshold : s->max_budget;
    s->view.max_step_tokens = times(s->max_budget, num_steps);
    chunk = times(chunk, num_steps);
    s->view.max_chunk_tokens = chunk <= UINT64_MAX - s->lookahead ? chunk + s->lookahead : UINT64_MAX;
}

struct pkv_sched *pkv_sched_create(const struct pkv_sched_config *config, struct pkv_err *err)
{
    if (!(config->watermark >= 0 && config->watermark <= 1)) {
        pkv_fail(err, PKV_ERR_INPUT, "the watermark is a share, 0 to 1, not %g", config->watermark);
        return NULL;
    }
    if (drafts_check_config(config, err) < 0 || swap_check_config(config, err) < 0 ||
        gang_check_config(config, err) < 0)
        return NULL;
    struct pkv_sched *s = pkv_alloc(1, sizeof(*s), err);
    if (!s)
        return NULL;
    s->config = *config;
    s->num_drafts = pkv_speculation_num_drafts(&config->speculation);
    s->lookahead = pkv_speculation_lookahead(&config->speculation);
    s->swap.is_on = config->policies.on_preempt->swaps != NULL;
    s->max_budget = config->max_num_batched_tokens ? config->max_num_batched_tokens : UINT64_MAX;
    s->max_seqs = config->max_num_seqs ? config->max_num_seqs : UINT64_MAX;
    s->max_model_len = config->max_model_len ? config->max_model_len : UINT32_MAX;
    s->cache = create_cache(config, err);
    s->store = s->cache ? pkv_request_store_create(err) : NULL;
    s->waiting = s->store ? pkv_waiting_create(err) : NULL;
    if (!s->waiting || create_policy_states(s, err) < 0 || steady_init(s, err) < 0) {
        pkv_sched_destroy(s);
        return NULL;
    }
    s->view = (struct pkv_sched_view){
        .cache = s->cache,
        .num_blocks = config->num_blocks,
        .num_watermark_blocks = watermark_blocks(config),
        .num_drafts = drafts_in_step(s),
        .num_lookahead_tokens = s->lookahead,
        .max_model_len = s->max_model_len,
        .takes_runs = pkv_cache_takes_runs(s->cache),
        .prefix_cache = config->prefix_cache,
        .seed = config->seed,
    };
    set_most_tokens(s);
    return s;
}

void pkv_sched_destroy(struct pkv_sched *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < 2; i++) {
        pkv_free(s->slots[i].plan.entries);
        pkv_free(s->slots[i].plan.admissions);
        pkv_free(s->slots[i].plan.preemptions);
        pkv_free(s->slots[i].plan.finished);
        pkv_free(s->slots[i].plan.forks);
    }
    steady_free(s);
    swap_free(s);
    pkv_request_store_destroy(s->store, s->cache);
    pkv_waiting_destroy(s->waiting);
    pkv_cache_destroy(s->cache);
    pkv_free(s->running);
    pkv_free(s->aside);
    pkv_free(s->deferred);
    pkv_free(s->pass);
    pkv_free(s->order_state);
    pkv_free(s->ranking);
    pkv_free(s->rank_keys);
    pkv_free(s->tenant_tokens);
    pkv_free(s->admit_state);
    pkv_free(s->preempt_state);
    pkv_free(s->mix_state);
    pkv_free(s);
}

void sched_update_view(struct pkv_sched *s)
{
    s->view.running = s->running;
    s->view.num_running = s->num_running;
    s->view.resuming = s->swap.resuming;
    s->view.num_resuming = s->swap.num_resuming;
    s->view.num_waiting = pkv_waiting_num(s->waiting) + s->num_aside + s->num_deferred;
    s->view.num_free_blocks = pkv_cache_num_free(s->cache);
}

void sched_observe(struct pkv_sched *s, const struct pkv_plan *plan)
{
    const struct pkv_policies *p = &s->config.policies;
    if (!p->order->observe && !p->admit->observe && !p->preempt->observe && !p->mix->observe)
        return;
    const struct lesson *lesson = sched_lesson(s, plan);
    const struct pkv_step_facts facts = {
        .num_tokens = plan->num_tokens,
        .num_prefill_tokens = plan->num_prefill_tokens,
        .num_decodes = plan->num_decodes,
        .num_admitted = plan->num_admissions,
        .num_preempted = plan->num_preemptions,
        .num_finished = plan->num_finished,
        .is_idle = s->num_running == 0 && pkv_waiting_num(s->waiting) == 0 &&
                   s->swap.num_resuming == 0,
        .parts = lesson->parts,
        .num_survivors = lesson->num_survivors,
        .sum_emitted = lesson->sum_emitted,
        .sum_max_tokens = lesson->sum_max_tokens,
        .tenants = s->tenant_tokens,
        .num_tenants = s->num_tenants,
    };
    if (p->order->observe)
        p->order->observe(s->order_state, &facts);
    if (p->admit->observe)
        p->admit->observe(s->admit_state, &facts);
    if (p->preempt->observe)
        p->preempt->observe(s->preempt_state, &facts);
    if (p->mix->observe)
        p->mix->observe(s->mix_state, &facts);
}

bool sched_counts_overtakes(const struct pkv_sched *s)
{
    const struct pkv_policies *p = &s->config.policies;
    return p->on_blocked->counts_overtakes &&
           p->on_blocked->counts_overtakes(p->params[PKV_CHOICE_ON_BLOCKED]);
}

/* Where the whole queue is ranked, one that comes between two passes stands behind those ranked, and
 * before the tail. */
int64_t sched_order_key(const struct pkv_sched *s, const struct pkv_request *r)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    return order->rank ? INT64_MAX - 1 : order->key(s->order_state, &s->view, r);
}

void sched_note_peak(struct pkv_request *r)
{
    uint32_t num_blocks = pkv_seq_num_blocks(&r->seq);
    if (num_blocks > r->peak_blocks)
        r->peak_blocks = num_blocks;
}

/* --- coming in ------------------------------------------------------------------------------- */

static uint64_t end_with(const struct pkv_sched *s, const struct pkv_request *r,
                         uint32_t num_output_tokens)
{
    uint64_t prompt = r->seq.num_prompt_tokens;
    uint64_t end = prompt + (num_output_tokens ? num_output_tokens : 1) - 1;
    uint64_t last = s->max_model_len - 1;   /* the token that reaches the limit is never stored */
    end = end < last ? end : last;
    return end > prompt ? end : prompt;     /* a prompt beyond it ends with its first token */
}

uint64_t sched_end_positions(const struct pkv_sched *s, const struct pkv_request *r)
{
    return end_with(s, r, r->num_output_tokens);
}

static uint64_t peak_with(const struct pkv_sched *s, const struct pkv_request *r,
                          uint32_t num_output_tokens)
{
    uint64_t end = end_with(s, r, num_output_tokens) + flight_overrun(s, r);
    return drafts_peak_positions(s, num_output_tokens, end);
}

uint64_t sched_positions_wanted(const struct pkv_sched *s, const struct pkv_request *r,
                                uint32_t num_output_tokens)
{
    uint64_t positions = peak_with(s, r, num_output_tokens);
    if (!s->config.policies.admit->positions_wanted)
        return positions;
    uint64_t wanted = s->config.policies.admit->positions_wanted(r);
    wanted = drafts_peak_positions(s, r->max_tokens, wanted);
    return wanted > positions ? wanted : positions;
}

uint32_t sched_table_positions(const struct pkv_sched *s, const struct pkv_request *r,
                               uint64_t num_positions)
{
    uint64_t end = peak_with(s, r, r->num_output_tokens), room = pkv_cache_room(s->cache);
    uint64_t known = drafts_positions(s, r->seq.num_known_tokens);
    end = end > num_positions ? end : num_positions;
    end = end > known ? end : known;
    return (uint32_t)(end < room ? end : room);
}

uint32_t sched_run_blocks(const struct pkv_sched *s, const struct pkv_request *r)
{
    return pkv_cache_reserve_blocks(s->cache, r->seq.num_prompt_tokens,
                                    (uint32_t)sched_end_positions(s, r), s->max_model_len);
}

uint64_t pkv_sched_end_positions(const struct pkv_sched *s, const struct pkv_request *r)
{
    return sched_end_positions(s, r);
}

uint64_t pkv_sched_promised_positions(const struct pkv_sched *s)
{
    uint64_t num = 0;
    for (size_t i = 0; i < s->num_running; i++)
        num += sched_end_positions(s, s->running[i]);
    return num;
}

uint64_t pkv_sched_blocks_for(const struct pkv_sched *s, uint64_t num_positions)
{
    uint64_t most = s->view.max_chunk_tokens;
    if (s->config.policies.admit->counts_budget && s->view.max_step_tokens > most)
        most = s->view.max_step_tokens;
    return pkv_cache_blocks_for(s->cache, num_positions, most);
}

uint64_t pkv_sched_peak_blocks(const struct pkv_sched *s, const struct pkv_request *r)
{
    if (pkv_cache_takes_runs(s->cache))
        return sched_run_blocks(s, r);
    return pkv_sched_blocks_for(s, sched_positions_wanted(s, r, r->num_output_tokens));
}

uint32_t sched_first_chunk(const struct pkv_sched_config *config, uint32_t num_tokens)
{
    uint32_t threshold = config->long_prefill_token_threshold;
    return threshold && num_tokens > threshold ? threshold : num_tokens;
}

static bool are_too_many(const struct pkv_sched *s, const struct pkv_request_spec *spec,
                         const struct pkv_request *r, char *reason, size_t size)
{
    uint64_t blocks = gang_peak_blocks(s, r, spec);
    if (spec->num_samples > s->max_seqs) {
        snprintf(reason, size, "its %" PRIu32 " samples exceed max_num_seqs %" PRIu64,
                 spec->num_samples, s->max_seqs);
        return true;
    }
    if (blocks <= s->config.num_blocks)
        return false;
    snprintf(reason, size, "its %" PRIu32 " samples need %" PRIu64 " blocks, the pool has %" PRIu32,
             spec->num_samples, blocks, s->config.num_blocks);
    return true;
}

static bool takes_too_much(const struct pkv_sched *s, const struct pkv_request_spec *spec,
                           const struct pkv_request *r, char *reason, size_t size)
{
    if (s->config.fork && spec->num_samples > 1)
        return are_too_many(s, spec, r, reason, size);
    uint64_t blocks = pkv_sched_peak_blocks(s, r);
    if (blocks <= s->config.num_blocks)
        return false;
    snprintf(reason, size, "needs %s%" PRIu64 " blocks, the pool has %" PRIu32,
             pkv_cache_takes_runs(s->cache) ? "a run of " : "", blocks, s->config.num_blocks);
    return true;
}

/* Says why a request could never run; false when it could. */
static bool can_never_run(const struct pkv_sched *s, const struct pkv_request_spec *spec,
                          const struct pkv_request *r, char *reason, size_t size)
{
    uint32_t prompt = r->seq.num_prompt_tokens;
    uint64_t longest = (uint64_t)prompt + r->max_tokens;
    if (longest > s->max_model_len) {
        snprintf(reason, size,
                 "prompt %" PRIu32 " + max_tokens %" PRIu32 " = %" PRIu64
                 " tokens exceed max_model_len %" PRIu32,
                 prompt, r->max_tokens, longest, s->max_model_len);
        return true;
    }
    uint32_t first = sched_first_chunk(&s->config, prompt);
    if (!s->config.enable_chunked_prefill && first > s->max_budget) {
        snprintf(reason, size,
                 "without chunked prefill %" PRIu32 " prompt tokens exceed the token budget %" PRIu64,
                 first, s->max_budget);
        return true;
    }
    return takes_too_much(s, spec, r, reason, size);
}

int pkv_sched_add(struct pkv_sched *s, const struct pkv_request_spec *spec,
                  struct pkv_request **out, char *reason, size_t reason_size, struct pkv_err *err)
{
    size_t num_live = pkv_request_store_num_live(s->store) + 1;
    if (pkv_waiting_reserve(s->waiting, num_live, err) < 0 ||
        pkv_grow(&s->aside, &s->aside_capacity, num_live, sizeof(struct pkv_request *), err) < 0)
        return -1;
    struct pkv_request *r = pkv_request_open(s->store, s->cache, spec, err);
    if (!r)
        return -1;
    if (tenants_add(s, r, err) < 0) {
        pkv_request_close(s->store, s->cache, r);
        return -1;
    }
    *out = r;
    bool rejects = s->config.oversized == PKV_OVERSIZED_REJECT;
    if (rejects && can_never_run(s, spec, r, reason, reason_size)) {
        pkv_request_set_status(r, PKV_REQUEST_REJECTED);
        return 0;
    }
    if (gang_add(s, r, spec))
        return 0;
    sched_update_view(s);
    sched_joined(s, r);
    pkv_waiting_put_new(s->waiting, r, sched_order_key(s, r));
    return 0;
}

/* --- leaving --------------------------------------------------------------------------------- */

void sched_remove_running(struct pkv_sched *s, size_t index)
{
    s->latch.is_shut = false;
    s->num_running--;
    for (size_t i = index; i < s->num_running; i++)
        s->running[i] = s->running[i + 1];
}

/* The next of its samples takes its place in the queue. */
static void leave_waiting(struct pkv_sched *s, struct pkv_request *r)
{
    if (r->status == PKV_REQUEST_RESUMING) {
        swap_abort(s, r);
        return;
    }
    bool in_queue = !pkv_sample_follows(r);
    if (in_queue) {
        pkv_waiting_remove(s->waiting, r);
        sched_left(s, r);
    }
    struct pkv_request *next = gang_leave(s, r);
    if (!next)
        return;
    next->waiting_node.key[0] = r->waiting_node.key[0];
    next->waiting_node.key[1] = r->waiting_node.key[1];
    sched_joined(s, next);
    pkv_waiting_put_back(s->waiting, next);
}

static void leave_queues(struct pkv_sched *s, struct pkv_request *r)
{
    if (r->status != PKV_REQUEST_RUNNING) {
        leave_waiting(s, r);
        return;
    }
    gang_leave(s, r);
    steady_abort(s, r);
    size_t i = 0;
    while (i < s->num_running && s->running[i] != r)
        i++;
    PKV_ASSERT(i < s->num_running);
    sched_remove_running(s, i);
}

uint32_t pkv_sched_abort(struct pkv_sched *s, struct pkv_request *r)
{
    PKV_ASSERT(s->num_out <= s->config.async_scheduling);
    uint32_t landed = r->status == PKV_REQUEST_RUNNING ? flight_landed_positions(s, r) : 0;
    leave_queues(s, r);
    sched_publish_end(s, r, landed);
    uint32_t freed = pkv_cache_release(s->cache, &r->seq);
    pkv_request_set_status(r, PKV_REQUEST_ABORTED);
    return freed;
}

void pkv_sched_forget(struct pkv_sched *s, struct pkv_request *r)
{
    pkv_request_close(s->store, s->cache, r);
}

static int by_row(const void *a, const void *b)
{
    const struct pkv_request *const *x = a, *const *y = b;
    return ((*x)->row > (*y)->row) - ((*x)->row < (*y)->row);
}

/* Needs no memory, as it may be called for want of it: the list of those put aside has had room for
 * all live requests since they came. */
void pkv_sched_drain(struct pkv_sched *s, void (*each)(void *ctx, struct pkv_request *request),
                     void *ctx)
{
    struct pkv_request **all = s->aside;
    size_t num_queued = pkv_waiting_num(s->waiting), num_waiting = pkv_sched_num_waiting(s);
    size_t num = s->num_running + num_waiting;
    swap_finish_all(s);
    PKV_ASSERT(num + s->swap.num_resuming <= s->aside_capacity && s->num_aside == 0);
    pkv_sched_list_waiting(s, all);
    while (num_queued-- > 0)
        pkv_waiting_remove(s->waiting, pkv_waiting_any(s->waiting, num_queued));
    s->num_followers = 0;
    for (size_t i = 0; i < s->num_running; i++) {
        steady_leave(s, s->running[i]);
        all[num_waiting + i] = s->running[i];
    }
    for (size_t i = 0; i < s->swap.num_resuming; i++)
        all[num++] = s->swap.resuming[i];
    s->num_running = s->swap.num_resuming = 0;
    s->latch.is_shut = false;
    if (num == 0)
        return;
    qsort(all, num, sizeof(struct pkv_request *), by_row);
    for (size_t i = 0; i < num; i++) {
        pkv_cache_release(s->cache, &all[i]->seq);
        pkv_sample_leave(all[i]);
        pkv_request_set_status(all[i], PKV_REQUEST_UNFINISHED);
        each(ctx, all[i]);
        pkv_sched_forget(s, all[i]);
    }
}

uint32_t sched_known_tokens(const struct pkv_request *r)
{
    return r->seq.num_known_tokens + r->num_in_flight;
}

/* --- reading --------------------------------------------------------------------------------- */

const struct pkv_sched_config *pkv_sched_config(const struct pkv_sched *s)
{
    return &s->config;
}

struct pkv_cache *pkv_sched_cache(struct pkv_sched *s)
{
    return s->cache;
}

void pkv_sched_refresh(struct pkv_sched *s)
{
    steady_refresh(s);
}

size_t pkv_sched_num_running(const struct pkv_sched *s)
{
    return s->num_running;
}

struct pkv_request *pkv_sched_running(const struct pkv_sched *s, size_t i)
{
    PKV_ASSERT(i < s->num_running);
    return s->running[i];
}

size_t pkv_sched_num_waiting(const struct pkv_sched *s)
{
    return pkv_waiting_num(s->waiting) + s->num_followers;
}

struct pkv_request *pkv_sched_head(const struct pkv_sched *s)
{
    return pkv_waiting_head(s->waiting);
}

void pkv_sched_list_waiting(const struct pkv_sched *s, struct pkv_request **out)
{
    size_t num = pkv_waiting_num(s->waiting), place = pkv_sched_num_waiting(s);
    pkv_waiting_list(s->waiting, out);
    while (num-- > 0 && place > num + 1) {   /* those behind their first, from the end on */
        struct pkv_request *first = out[num], *each = first;
        do {
            each = each->sample.prev;
            out[--place] = each;
        } while (each != first);
    }
}

uint64_t pkv_sched_num_preemptions(const struct pkv_sched *s)
{
    return s->num_preemptions;
}
