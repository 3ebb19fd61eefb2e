/*
 * admit_ratio.c - let one in if what it may generate fits beside a share of what the running ones may
 * still generate; the share, the ratio, falls while decoding goes well and is set anew by preemptions.
 *
 * In tokens, with p the block size:
 *
 *     E = known - hit       N = min(max(max_tokens - out, 0), clip)
 *     admit if  E + N + p < tokens of free blocks - those of the hit that lie free - offset
 *
 * offset sums up, over running from the first on, min(max_tokens - out, clip) x ratio, and what is left
 * of a prompt in pieces in full; then, for each one taken in this pass, its tokens of this step in whole
 * blocks, p, and min(max_tokens, clip) if its prompt ends in this step. What those taken hold by now
 * counts as free again, so that it is not counted twice. One that comes back from the host is reckoned
 * with as those that run, behind them, from then on. All of it is doubles, added in that order.
 *
 * The ratio begins at init. Each step that decodes, and does nothing else, lowers it by a fixed step,
 * down to min. After preemptions it is  min(1, (sum out + n x retract_decode_steps) / (sum max_tokens + 1))
 * over the n who run on, before the step's tokens; with nobody left it stays. When all is done it is init
 * again; an engine that meets no idle step between two requests would not set it.
 *
 * Samples that are admitted together are reckoned with N and p for each, and E once.
 *
 * SGLang's intake cuts max_tokens so that whoever is alone passes. Here whoever finds nobody running
 * is let in if its known tokens fit, whatever the estimate says; so nobody waits for ever. Under a layout
 * of runs nothing is taken after the admission, so nothing is estimated.
 *
 * Tokens are those of one table that grows, so windows and states are refused.
 *
 * After PrefillAdder and new_token_ratio of SGLang 0.5.18 (python/sglang/srt/managers).
 */
#include "policy/admit_ratio.h"

enum { INIT, MIN_FACTOR, DECAY_STEPS, RETRACT_STEPS, CLIP, CONSERVATIVENESS };

#define SCALE 1000000

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static void init(void *state, const int64_t *params)
{
    struct ratio_state *s = state;
    double first = (double)params[INIT] / SCALE;
    double conservativeness = (double)params[CONSERVATIVENESS] / SCALE;
    s->init = smaller(first * conservativeness, 1);
    s->min = smaller(s->init * ((double)params[MIN_FACTOR] / SCALE), 1);
    s->step = (s->init - s->min) / (double)params[DECAY_STEPS];
    s->retract_steps = params[RETRACT_STEPS];
    s->clip = params[CLIP];
    s->ratio = s->init;
}

static void observe(void *state, const struct pkv_step_facts *facts)
{
    struct ratio_state *s = state;
    bool is_clean = facts->num_decodes > 0 && facts->num_prefill_tokens == 0 &&
                    facts->num_admitted == 0 && (facts->parts & PKV_MIX_DECODES);
    if (facts->num_survivors > 0) {
        uint64_t to_come = (uint64_t)s->retract_steps * facts->num_survivors;
        s->ratio = smaller((double)(facts->sum_emitted + to_come) /
                               (double)(facts->sum_max_tokens + 1), 1);
    } else if (is_clean && facts->num_preempted == 0) {
        double next = s->ratio - s->step;
        s->ratio = next > s->min ? next : s->min;
    }
    if (facts->is_idle)
        s->ratio = s->init;
}

/* --- a pass ---------------------------------------------------------------------------------- */

/* It may have said more than it was allowed. */
static uint64_t to_come(const struct ratio_state *s, const struct pkv_request *r)
{
    uint64_t rest = r->max_tokens > r->num_emitted ? r->max_tokens - r->num_emitted : 0;
    return rest < (uint64_t)s->clip ? rest : (uint64_t)s->clip;
}

/* Of a prompt in pieces; the one token that a decoding request has to compute is not a rest. Drafts, and
 * the place of a token in flight, may be computed beyond what is known. */
static uint32_t rest_of_prompt(const struct pkv_request *r)
{
    uint32_t known = r->seq.num_known_tokens, done = r->seq.num_computed_tokens;
    uint32_t rest = known > done ? known - done : 0;
    if (pkv_sample_follows(r))
        return 0;   /* another one computes it */
    return rest == 1 && r->num_emitted > 0 && !r->sample.waits_for_fork ? 0 : rest;
}

/* Of all that are admitted with it, in no more than so many tokens each. */
static uint64_t all_to_come(const struct ratio_state *s, const struct pkv_request *r,
                            uint64_t (*of_each)(const struct ratio_state *s,
                                                const struct pkv_request *r))
{
    uint64_t sum = of_each(s, r);
    const struct pkv_request *other = r->sample.next;
    for (; r->sample.waits_for_fork && other != r; other = other->sample.next)
        sum += of_each(s, other);
    return sum;
}

static uint64_t most_to_come(const struct ratio_state *s, const struct pkv_request *r)
{
    return r->max_tokens < s->clip ? r->max_tokens : (uint64_t)s->clip;
}

static uint64_t num_admitted(const struct pkv_request *r)
{
    return r->sample.waits_for_fork ? pkv_sample_count(r) : 1;
}

/* Of one that is in and has its blocks: they are free no more. */
static void set_aside(const struct ratio_state *s, struct ratio_pass *pass,
                      const struct pkv_request *r)
{
    pass->offset += rest_of_prompt(r);
    pass->offset += (double)to_come(s, r) * s->ratio;
}

static void begin(const void *state, const struct pkv_sched_view *view, void *scratch)
{
    const struct ratio_state *s = state;
    struct ratio_pass *pass = scratch;
    *pass = (struct ratio_pass){0};
    for (size_t i = 0; i < pkv_view_num_in(view); i++)
        set_aside(s, pass, pkv_view_in(view, i));
}

/* Nobody to estimate: all blocks are there. */
static enum pkv_admit_verdict consider_alone(const struct pkv_sched_view *view,
                                             const struct pkv_candidate *c, uint64_t *need_blocks)
{
    const struct pkv_seq *seq = &c->request->seq;
    uint64_t need = pkv_cache_need(view->cache, seq, c->hit, seq->num_known_tokens);
    if (need > *need_blocks)
        *need_blocks = need;
    return *need_blocks > view->num_free_blocks ? PKV_ADMIT_GATE : PKV_ADMIT;
}

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *scratch, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    const struct ratio_state *s = state;
    const struct ratio_pass *pass = scratch;
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    if (view->takes_runs)
        return PKV_ADMIT;
    if (pkv_view_num_in(view) == 0)
        return consider_alone(view, c, need_blocks);
    uint64_t size = pkv_cache_block_size(view->cache);
    uint64_t locked = c->hit->num_free_blocks * size;
    uint64_t free = view->num_free_blocks * size + pass->num_taken_tokens - locked;
    uint64_t asked = c->request->seq.num_known_tokens - c->hit->num_tokens +
                     all_to_come(s, c->request, to_come) + num_admitted(c->request) * size;
    if ((double)asked < (double)free - pass->offset)
        return PKV_ADMIT;
    double in_all = (double)(asked + locked) + pass->offset - (double)pass->num_taken_tokens;
    uint64_t need = (uint64_t)(in_all / (double)size) + 1;   /* more than that, not as much */
    *need_blocks = need > view->num_free_blocks ? need : view->num_free_blocks + UINT64_C(1);
    return PKV_ADMIT_GATE;
}

static void took(const void *state, const struct pkv_sched_view *view, void *scratch,
                 const struct pkv_candidate *c)
{
    const struct ratio_state *s = state;
    struct ratio_pass *pass = scratch;
    const struct pkv_request *r = c->request;
    if (r->status == PKV_REQUEST_RESUMING) {
        set_aside(s, pass, r);
        return;
    }
    uint64_t size = pkv_cache_block_size(view->cache);
    uint64_t taken = (c->need_blocks - c->hit->num_free_blocks) * size;
    bool is_whole = c->hit->num_tokens + c->num_tokens >= r->seq.num_known_tokens;
    uint64_t most = all_to_come(s, r, most_to_come);
    pass->num_taken_tokens += taken;
    pass->offset += (double)(taken + (is_whole ? most : 0) + num_admitted(r) * size);
}

static const struct pkv_policy_param params[] = {
    [INIT] = {.name = "init_new_token_ratio",
              .summary = "share of the output to come that is set aside at first",
              .preset = 7 * SCALE / 10, .min = 0, .max = SCALE, .scale = SCALE},
    [MIN_FACTOR] = {.name = "min_new_token_ratio_factor",
                    .summary = "the least share, as a part of the first one",
                    .preset = 14 * SCALE / 100, .min = 0, .max = SCALE, .scale = SCALE},
    [DECAY_STEPS] = {.name = "new_token_ratio_decay_steps",
                     .summary = "decode steps from the first share to the least",
                     .preset = 600, .min = 1, .max = UINT32_MAX},
    [RETRACT_STEPS] = {.name = "retract_decode_steps",
                       .summary = "tokens each survivor is given in the estimate after a preemption",
                       .preset = 20, .min = 0, .max = UINT32_MAX},
    [CLIP] = {.name = "clip_max_new_tokens",
              .summary = "no more than so many tokens to come are reckoned with",
              .preset = 4096, .min = 1, .max = UINT32_MAX},
    [CONSERVATIVENESS] = {.name = "schedule_conservativeness",
                          .summary = "the first share is multiplied by it, up to 1",
                          .preset = SCALE, .min = 0, .max = INT64_C(1000) * SCALE, .scale = SCALE},
};

const struct pkv_admit_ops pkv_admit_ratio = {
    .info = {.name = "ratio",
             .summary = "its whole output must fit beside a learnt share of what the others may say",
             .source = "rule of SGLang 0.5.18's PrefillAdder, in blocks of this pool; not the whole "
                       "engine",
             .params = params,
             .num_params = sizeof params / sizeof params[0]},
    .pass_size = sizeof(struct ratio_pass),
    .begin = begin,
    .consider = consider,
    .took = took,
    .ignores_idle_steps = true,
    .counts_tokens = true,
    .state_size = sizeof(struct ratio_state),
    .init = init,
    .observe = observe,
};
