/*
 * choice.c - the choices by number: their words, and their places in struct pkv_policies.
 */
#include <inttypes.h>
#include <stdio.h>

#include "pagedkv/policy.h"

const char *pkv_choice_name(enum pkv_choice choice)
{
#define PKV_NAME(sym, word, summary) [sym] = word,
    static const char *const names[] = {PKV_CHOICES(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)choice < PKV_CHOICE_COUNT);
    return names[choice];
}

const char *pkv_choice_summary(enum pkv_choice choice)
{
#define PKV_SUMMARY(sym, word, summary) [sym] = summary,
    static const char *const summaries[] = {PKV_CHOICES(PKV_SUMMARY)};
#undef PKV_SUMMARY
    PKV_ASSERT((unsigned)choice < PKV_CHOICE_COUNT);
    return summaries[choice];
}

/* Every ops struct begins with its info, so a pointer to the one is a pointer to the other. */
#define PLACES(X)                                                                       \
    X(PKV_CHOICE_ORDER, order, pkv_order_ops)                                           \
    X(PKV_CHOICE_ADMIT, admit, pkv_admit_ops)                                           \
    X(PKV_CHOICE_ON_BLOCKED, on_blocked, pkv_on_blocked_ops)                            \
    X(PKV_CHOICE_PREEMPT, preempt, pkv_preempt_ops)                                     \
    X(PKV_CHOICE_ON_PREEMPT, on_preempt, pkv_on_preempt_ops)                            \
    X(PKV_CHOICE_REQUEUE, requeue, pkv_requeue_ops)                                     \
    X(PKV_CHOICE_GROW, grow, pkv_grow_ops)                                              \
    X(PKV_CHOICE_PUBLISH, publish, pkv_publish_ops)                                     \
    X(PKV_CHOICE_MIX, mix, pkv_mix_ops)                                                 \
    X(PKV_CHOICE_EVICT, evict, pkv_evict_ops)                                           \
    X(PKV_CHOICE_CACHE, cache, pkv_cache_kind_ops)                                      \
    X(PKV_CHOICE_LAYOUT, layout, pkv_layout_ops)

void pkv_policies_set(struct pkv_policies *policies, enum pkv_choice choice,
                      const struct pkv_policy_info *info)
{
    PKV_ASSERT(info->num_params <= PKV_MAX_POLICY_PARAMS);
    for (size_t i = 0; i < info->num_params; i++)
        policies->params[choice][i] = info->params[i].preset;
    switch (choice) {
#define PKV_SET(sym, place, type)                                                       \
    case sym:                                                                           \
        policies->place = (const struct type *)info;                                    \
        return;
        PLACES(PKV_SET)
#undef PKV_SET
    case PKV_CHOICE_COUNT:
        break;
    }
    PKV_UNREACHABLE("a choice");
}

const struct pkv_policy_info *pkv_policies_get(const struct pkv_policies *policies,
                                               enum pkv_choice choice)
{
    switch (choice) {
#define PKV_GET(sym, place, type)                                                       \
    case sym:                                                                           \
        return policies->place ? &policies->place->info : NULL;
        PLACES(PKV_GET)
#undef PKV_GET
    case PKV_CHOICE_COUNT:
        break;
    }
    PKV_UNREACHABLE("a choice");
}

void pkv_policy_param_write(const struct pkv_policy_param *param, int64_t value, char *out,
                            size_t size)
{
    int64_t scale = param->scale > 1 ? param->scale : 1;
    int num_decimals = 0;
    /* 64 bits have no more than 18; an optimizing compiler that is not told warns of the width. */
    for (int64_t rest = scale; rest > 1 && num_decimals < 18; rest /= 10)
        num_decimals++;
    while (num_decimals > 0 && value % 10 == 0) {
        value /= 10;
        scale /= 10;
        num_decimals--;
    }
    int64_t whole = value / scale, part = value % scale;
    if (num_decimals == 0)
        snprintf(out, size, "%" PRId64, value);
    else
        snprintf(out, size, "%s%" PRId64 ".%0*" PRId64, value < 0 && whole == 0 ? "-" : "", whole,
                 num_decimals, part < 0 ? -part : part);
}
