/*
 * drafts.c - speculation: how far past its known tokens a request is computed, and what of that was
 * right.
 *
 * After a step that brought a token out, a request has drafts proposed. The next step computes them
 * along with its one known token; those before the first wrong one are accepted and come out with
 * the token that follows them. The positions of the others are given back, their blocks are not. A
 * draft's place has no identity before its token is known.
 *
 * Whether a draft is right belongs to the seed, the request and the token it guesses, so that the
 * same request has the same luck under every policy.
 *
 *   drafts proposed = 0, or num_tokens of the configuration       lookahead = positions asked for beyond
 *
 * Source: vllm/v1/core/sched/scheduler.py, schedule() and update_from_output();
 * kv_cache_manager.py, allocate_slots().
 */
#include "base/mix.h"
#include "sched/sched_private.h"

const char *pkv_speculation_method_name(enum pkv_speculation_method method)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PKV_SPECULATION_METHODS(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)method < PKV_SPECULATION_METHOD_COUNT);
    return names[method];
}

uint32_t pkv_speculation_num_drafts(const struct pkv_speculation *speculation)
{
    return speculation->method == PKV_SPECULATION_NONE ? 0 : speculation->num_tokens;
}

uint32_t pkv_speculation_lookahead(const struct pkv_speculation *speculation)
{
    switch (speculation->method) {
    case PKV_SPECULATION_NONE:
    case PKV_SPECULATION_NGRAM:
        return 0;
    case PKV_SPECULATION_DRAFT_MODEL:
    case PKV_SPECULATION_EAGLE:
        return speculation->num_tokens;
    case PKV_SPECULATION_METHOD_COUNT:
        break;
    }
    PKV_UNREACHABLE("a method of speculation");
}

int drafts_check_config(const struct pkv_sched_config *config, struct pkv_err *err)
{
    const struct pkv_speculation *sp = &config->speculation;
    bool speculates = sp->method != PKV_SPECULATION_NONE;
    if (config->policies.layout->create && (speculates || config->async_scheduling))
        return pkv_fail(err, PKV_ERR_INPUT, "layout %s gives a request all its blocks at once: no "
                        "speculation, no async_scheduling", config->policies.layout->info.name);
    if (config->policies.admit->needs_token_steps && (speculates || config->async_scheduling))
        return pkv_fail(err, PKV_ERR_INPUT, "admit %s looks into a future of one token a step: no "
                        "speculation, no async_scheduling", config->policies.admit->info.name);
    if (!speculates)
        return 0;
    bool is_plain = config->num_groups == 1 && config->groups[0].ops == &pkv_group_full;
    if (sp->method == PKV_SPECULATION_EAGLE && !is_plain)
        return pkv_fail(err, PKV_ERR_INPUT, "speculation method eagle drops the last block of a hit and "
                        "serves one group of full attention");
    if (sp->num_tokens == 0 || sp->num_tokens > PKV_MAX_DRAFTS)
        return pkv_fail(err, PKV_ERR_INPUT, "speculation proposes 1 to %u drafts, not %u",
                        PKV_MAX_DRAFTS, sp->num_tokens);
    if (!(sp->acceptance_rate >= 0 && sp->acceptance_rate <= 1) ||
        sp->num_accepted > PKV_MAX_ACCEPTED)
        return pkv_fail(err, PKV_ERR_INPUT, "an acceptance rate is 0 to 1 and a pattern has at most "
                        "%u numbers, not %g and %u", PKV_MAX_ACCEPTED, sp->acceptance_rate,
                        sp->num_accepted);
    if (config->async_scheduling)
        return pkv_fail(err, PKV_ERR_INPUT, "speculation and async_scheduling do not go together in "
                        "this version");
    return 0;
}

/* --- how far --------------------------------------------------------------------------------- */

uint32_t drafts_that_fit(const struct pkv_sched *s, const struct pkv_request *r,
                         uint32_t num_known_tokens)
{
    uint32_t last = s->max_model_len - 1;   /* the token that reaches the limit is never stored */
    uint32_t room = last > num_known_tokens ? last - num_known_tokens : 0;
    return r->num_drafts < room ? r->num_drafts : room;
}

uint32_t drafts_positions(const struct pkv_sched *s, uint32_t num_positions)
{
    uint64_t end = (uint64_t)num_positions + s->lookahead;
    end = end < s->max_model_len ? end : s->max_model_len;
    return end > num_positions ? (uint32_t)end : num_positions;
}

uint32_t drafts_in_step(const struct pkv_sched *s)
{
    uint64_t most = sched_first_chunk(&s->config, s->num_drafts + 1);
    most = most < s->max_budget ? most : s->max_budget;
    return most > 0 ? (uint32_t)most - 1 : 0;
}

uint64_t drafts_peak_positions(const struct pkv_sched *s, uint32_t num_output_tokens,
                               uint64_t num_positions)
{
    uint64_t num_drafts = num_output_tokens > 1 ? drafts_in_step(s) : 0;
    uint64_t end = num_positions + num_drafts + s->lookahead;
    end = end < s->max_model_len ? end : s->max_model_len;
    return end > num_positions ? end : num_positions;
}

bool drafts_pad(const struct pkv_sched *s, const struct pkv_plan *plan)
{
    /* Only those who have sampled have drafts, so one without is in its prefill. */
    if (s->num_drafts == 0 || !s->config.lookahead_at_admission || plan->num_grown == 0)
        return false;
    for (size_t i = 0; i < plan->num_grown; i++)
        if (plan->entries[i].ref.request->num_drafts == 0)
            return false;
    return true;
}

/* --- what was right -------------------------------------------------------------------------- */

static bool is_right(const struct pkv_sched *s, const struct pkv_request *r, uint32_t token)
{
    enum { DRAFTS = 0x64726166 };   /* a stream of its own */
    uint64_t key = pkv_mix(pkv_mix(pkv_scramble(s->config.seed), DRAFTS), r->row);
    uint64_t lot = pkv_scramble(pkv_mix(key, token));
    return (double)(lot >> 11) < s->config.speculation.acceptance_rate * 0x1p53;
}

uint32_t drafts_accepted(const struct pkv_sched *s, const struct pkv_request *r,
                         uint32_t num_drafts)
{
    const struct pkv_speculation *sp = &s->config.speculation;
    uint32_t num = 0;
    if (sp->num_accepted > 0) {
        num = sp->accepted[(r->row + r->num_emitted) % sp->num_accepted];
        return num < num_drafts ? num : num_drafts;
    }
    while (num < num_drafts && is_right(s, r, r->num_emitted + num))
        num++;
    return num;
}
