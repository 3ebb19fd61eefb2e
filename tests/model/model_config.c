/*
 * model_config.c - a scheduler's configuration read by the words its policies are called.
 */
#include <stdlib.h>
#include <string.h>

#include "cache/cache_private.h"
#include "model_private.h"

/* Place of a word in a list; a word the model does not know ends the test. */
static int word(const char *name, const char *const *words, int num)
{
    for (int i = 0; i < num; i++)
        if (strcmp(name, words[i]) == 0)
            return i;
    abort();
}

#define WORD(name, ...)                                                        \
    word((name), (const char *const[]){ __VA_ARGS__ },                         \
         (int)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)))

static uint32_t or_unlimited(uint32_t n)
{
    return n > 0 ? n : UINT32_MAX;
}

static double least(double a, double b) { return a < b ? a : b; }

/* Parameters in their order; shares come as millionths. */
static void read_ratio(struct model_config *out, const int64_t *params)
{
    out->ratio_init = least((double)params[0] / 1e6 * ((double)params[5] / 1e6), 1);
    out->ratio_min = least(out->ratio_init * ((double)params[1] / 1e6), 1);
    out->ratio_step = (out->ratio_init - out->ratio_min) / (double)params[2];
    out->retract_steps = params[3];
    out->clip_tokens = params[4];
}

static void read_policies(struct model_config *out, const struct pkv_policies *p)
{
    out->order = (enum model_order)WORD(p->order->info.name, "fcfs", "priority", "sjf",
                                        "sjf_true", "ljf", "lof", "edf", "random", "lpm",
                                        "dfs_weight", "vtc");
    out->admit = (enum model_admit)WORD(p->admit->info.name, "whole_prompt", "first_chunk",
                                        "reserve_max", "future_peak", "mc_sf", "static_batch", "ratio");
    if (out->admit == MODEL_ADMIT_RATIO)
        read_ratio(out, p->params[PKV_CHOICE_ADMIT]);
    out->preempt = (enum model_preempt)WORD(
        p->preempt->info.name, "newest", "priority", "oldest", "fewest_outputs", "least_lost",
        "most_blocks", "largest_remaining", "least_preempted", "fit", "random", "never");
    out->requeue = (enum model_requeue)WORD(p->requeue->info.name, "front", "by_order", "tail");
    out->on_preempt = (enum model_on_preempt)WORD(p->on_preempt->info.name, "recompute", "swap", "auto");
    out->skip_blocked = WORD(p->on_blocked->info.name, "stop", "skip", "latch") == 1;
    out->latch = WORD(p->on_blocked->info.name, "stop", "skip", "latch") == 2;
    out->publish = (enum model_publish)WORD(p->publish->info.name, "alloc", "computed",
                                            "chunk_end", "finish");
    out->whole_batch = WORD(p->grow->info.name, "one_by_one", "whole_batch") == 1;
    out->mix = (enum model_mix)WORD(p->mix->info.name, "mixed", "prefill_first", "decode_first",
                                    "separate_with_limit");
    out->max_consecutive_prefills = p->params[PKV_CHOICE_MIX][0];
    out->max_overtakes = p->params[PKV_CHOICE_ON_BLOCKED][0];
    out->aging_tokens = p->params[PKV_CHOICE_ORDER][0];
    out->lpm_max_waiting = p->params[PKV_CHOICE_ORDER][1];
    out->in_batch_tokens = p->params[PKV_CHOICE_ORDER][2];
    out->prompt_weight = p->params[PKV_CHOICE_ORDER][0];
    out->output_weight = p->params[PKV_CHOICE_ORDER][1];
}

static void read_speculation(struct model_config *out, const struct pkv_speculation *s)
{
    bool asks = s->method == PKV_SPECULATION_DRAFT_MODEL || s->method == PKV_SPECULATION_EAGLE;

    out->num_drafts = s->method == PKV_SPECULATION_NONE ? 0 : s->num_tokens;
    out->lookahead = asks ? s->num_tokens : 0;
    out->drops_last_hit = s->method == PKV_SPECULATION_EAGLE;
    out->acceptance_rate = s->acceptance_rate;
    out->num_accepted = s->num_accepted;
    memcpy(out->accepted, s->accepted, sizeof out->accepted);
}

void model_config_read(struct model_config *out, const struct pkv_sched_config *s)
{
    read_policies(out, &s->policies);
    read_speculation(out, &s->speculation);
    out->lookahead_at_admission = s->lookahead_at_admission;
    out->async = s->async_scheduling;
    out->skip_blocked_prefill = s->blocked_prefill == PKV_BLOCKED_PREFILL_SKIP;
    out->chunked_prefill = s->enable_chunked_prefill;
    out->prefix_cache = s->prefix_cache;
    out->unhashed_to_head = s->unhashed_free == PKV_END_HEAD;
    out->drop_cancelled = s->priority_victim == PKV_PRIORITY_VICTIM_SAFE;
    out->reject_oversized = s->oversized == PKV_OVERSIZED_REJECT;
    out->num_host_blocks = s->swap.num_host_blocks;
    out->bytes_per_token = s->swap.bytes_per_token;
    out->link_bytes_per_s = s->swap.link.bytes_per_s;
    out->link_latency_ns = s->swap.link.latency_ns;
    out->fork = s->fork;
    out->beam_drop = s->beam_drop;
    out->seed = s->seed;
    out->num_groups = s->num_groups;
    for (uint32_t g = 0; g < s->num_groups; g++)
        out->groups[g] = (struct model_group){
            (enum model_group_kind)WORD(s->groups[g].ops->name, "full", "sliding",
                                        "chunked", "state"),
            s->groups[g].block_size, s->groups[g].size };
    out->keeps_chunk_end = s->chunk_end == PKV_CHUNK_END_KEEP;
    model_groups_finish_config(out);
    out->num_blocks = s->num_blocks;
    out->first_block_id = 1;
    out->num_watermark_blocks =
        (uint32_t)(s->watermark * (double)(s->num_blocks + (s->has_null_block ? 1 : 0)));
    out->max_num_seqs = or_unlimited(s->max_num_seqs);
    out->max_num_batched_tokens = or_unlimited(s->max_num_batched_tokens);
    out->long_prefill_token_threshold = or_unlimited(s->long_prefill_token_threshold);
    out->max_model_len = or_unlimited(s->max_model_len);
}
