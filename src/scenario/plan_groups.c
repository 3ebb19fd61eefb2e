/*
 * plan_groups.c - the groups of a model laid over ranks, as groups of a cache.
 *
 * State that is kept for every block of positions takes as many blocks as full attention does. Ranks
 * that share a context (DCP) each hold a part of a block's positions, so a block of the cache is one
 * on each of them, and has the tokens of all.
 */
#include <string.h>

#include "scenario/scenario_private.h"

static struct pkv_group_config group_of(const struct pkv_kv_plan *plan,
                                        const struct pkv_kv_group *group)
{
    struct pkv_group_config out = { .ops = &pkv_group_full,
                                    .block_size = group->block_size * plan->config.dcp };

    switch (group->kind) {
    case PKV_KV_FULL:
    case PKV_KV_LATENT:
        break;
    case PKV_KV_SLIDING:
        out.ops = &pkv_group_sliding;
        out.size = group->window;
        break;
    case PKV_KV_CHUNKED:
        out.ops = &pkv_group_chunked;
        out.size = group->window;
        break;
    case PKV_KV_STATE:
        if (plan->config.state_mode == PKV_KV_STATE_ALL)
            break;
        out.ops = &pkv_group_state;
        out.size = (plan->config.state_mode == PKV_KV_STATE_NONE ? 1 : 2) +
                   plan->config.num_speculative_tokens;
        break;
    case PKV_KV_KIND_COUNT:
        PKV_UNREACHABLE("a kind of group");
    }
    return out;
}

int pkv_scenario_plan_groups(const struct pkv_kv_plan *plan, struct pkv_sched_config *out,
                             struct pkv_err *err)
{
    if (plan->num_groups > PKV_MAX_GROUPS)
        return pkv_fail(err, PKV_ERR_INPUT, "this model has %u KV groups, and a cache at most %u",
                        plan->num_groups, PKV_MAX_GROUPS);
    for (uint32_t i = 0; i < plan->num_groups; i++)
        if (plan->groups[i].block_size > PKV_MAX_BLOCK_SIZE / plan->config.dcp)
            return pkv_fail(err, PKV_ERR_INPUT, "blocks of %u tokens on each of %u DCP ranks are more "
                            "than %u", plan->groups[i].block_size, plan->config.dcp,
                            PKV_MAX_BLOCK_SIZE);
    out->num_groups = plan->num_groups;
    for (uint32_t i = 0; i < plan->num_groups; i++)
        out->groups[i] = group_of(plan, &plan->groups[i]);
    return pkv_groups_check(out->groups, out->num_groups, err);
}

char *pkv_scenario_groups_text(const struct pkv_sched_config *config, struct pkv_err *err)
{
    struct pkv_text text = { .text = NULL };

    groups_write(&text, config);
    if (!text.failed)
        return text.text;
    pkv_text_free(&text);
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the KV groups");
    return NULL;
}
