/*
 * plan_groups.c - the groups of a model laid over ranks, as groups of a cache.
 */
#include <string.h>

#include "scenario/scenario_private.h"

static struct pkv_group_config group_of(const struct pkv_kv_plan *plan,
                                        const struct pkv_kv_group *group)
{
    struct pkv_group_config out = { .ops = &pkv_group_full, .block_size = group->block_size };

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
    if (plan->config.dcp > 1)
        return pkv_fail(err, PKV_ERR_INPUT, "DCP is not simulated");
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
