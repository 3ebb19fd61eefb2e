/*
 * setup.c - what was run, in a few lines: only what is not plain from the preset's name.
 */
#include "report/report_private.h"

#include <string.h>

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void add_traffic(struct page *p, const struct pkv_scenario *s,
                        const struct pkv_trace_notes *notes)
{
    struct pkv_text t = {0};
    if (s->is_trace) {
        pkv_text_add(&t, s->trace && strcmp(s->trace, "-") != 0 ? last_part(s->trace)
                                                                : "standard input");
        if (notes && notes->format)
            pkv_text_fmt(&t, " (%s)", notes->format);
    } else {
        add_counted(&t, s->synth.num_requests, "synthetic request");
        pkv_text_fmt(&t, ", arrivals %s, seed %llu", pkv_arrival_law_name(s->synth.arrival),
                     (unsigned long long)s->seed);
    }
    page_item(p, "traffic", t.text ? t.text : "");
    pkv_text_clear(&t);
    if (notes && notes->skipped_no_output > 0) {
        add_counted(&t, notes->skipped_no_output, "row");
        pkv_text_add(&t, " skipped: no response");
        page_item(p, "", t.text ? t.text : "");
    }
    pkv_text_clear(&t);
    if (notes && notes->ids_padded > 0) {
        add_counted(&t, notes->ids_padded, "row");
        pkv_text_add(&t, " mended: as many hash ids as the prompt has blocks");
        page_item(p, "", t.text ? t.text : "");
    }
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

void add_kv_groups(struct pkv_text *t, const struct pkv_group_config *groups, uint32_t num_groups)
{
    uint32_t block_size = pkv_groups_block_size(groups, num_groups);
    if (num_groups == 1 && groups[0].size == 0)
        return;
    for (uint32_t g = 0; g < num_groups; g++) {
        pkv_text_fmt(t, "%s%s", g ? ", " : "", pkv_group_name(&groups[g]));
        if (groups[g].size > 0)
            pkv_text_fmt(t, " %u", groups[g].size);
        if (groups[g].block_size != block_size)
            pkv_text_fmt(t, " in blocks of %u", groups[g].block_size);
    }
}

static void add_pool(struct page *p, const struct pkv_sched_config *c)
{
    struct pkv_text t = {0};
    add_counted(&t, c->num_blocks, "block");
    pkv_text_add(&t, " of ");
    add_counted(&t, pkv_groups_block_size(c->groups, c->num_groups), "token");
    if (c->has_null_block) {
        pkv_text_add(&t, " (num_gpu_blocks ");
        add_grouped(&t, (uint64_t)c->num_blocks + 1);
        pkv_text_add(&t, ")");
    }
    pkv_text_add(&t, c->prefix_cache ? ", prefix cache on" : ", prefix cache off");
    page_item(p, "pool", t.text ? t.text : "");
    pkv_text_clear(&t);
    add_kv_groups(&t, c->groups, c->num_groups);
    if (t.length > 0)
        page_item(p, "KV groups", t.text);
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

/* What the preset says about a key; NULL when it says nothing. */
static const char *preset_value(const struct pkv_preset *preset, const char *key)
{
    for (size_t i = 0; preset && i < preset->num_settings; i++)
        if (strcmp(preset->settings[i].key, key) == 0)
            return preset->settings[i].value;
    return NULL;
}

static void add_if_other(struct pkv_text *t, const struct pkv_preset *preset, const char *key,
                         const char *value)
{
    const char *usual = preset_value(preset, key);
    if (!usual || strcmp(usual, value) != 0)
        pkv_text_fmt(t, ", %s: %s", key, value);
}

/* Choices and switches that differ from the preset's. */
static void add_differences(struct pkv_text *t, const struct pkv_scenario *s)
{
    const struct pkv_preset *preset = s->preset ? pkv_preset_find(s->preset) : NULL;
    const struct pkv_sched_config *c = &s->sched;
    for (int i = 0; i < PKV_CHOICE_COUNT; i++) {
        const struct pkv_policy_info *info = pkv_policies_get(&c->policies, (enum pkv_choice)i);
        if (info)
            add_if_other(t, preset, pkv_choice_name((enum pkv_choice)i), info->name);
    }
    add_if_other(t, preset, "unhashed_free", c->unhashed_free == PKV_END_HEAD ? "head" : "tail");
    add_if_other(t, preset, "priority_victim",
                 c->priority_victim == PKV_PRIORITY_VICTIM_VLLM ? "vllm" : "safe");
    add_if_other(t, preset, "oversized",
                 c->oversized == PKV_OVERSIZED_REJECT ? "reject" : "wait");
    if (c->fork)
        pkv_text_add(t, ", fork on");
    if (!c->enable_chunked_prefill) {
        pkv_text_add(t, ", chunked prefill off");
        add_if_other(t, preset, "blocked_prefill",
                     c->blocked_prefill == PKV_BLOCKED_PREFILL_STOP ? "stop" : "skip");
    }
    if (c->async_scheduling && !preset_value(preset, "async_scheduling"))
        pkv_text_add(t, ", async scheduling");
    if (c->speculation.method != PKV_SPECULATION_NONE) {
        const char *usual = preset_value(preset, "lookahead_at_admission");
        if (c->lookahead_at_admission != !usual)
            add_if_other(t, NULL, "lookahead_at_admission",
                         c->lookahead_at_admission ? "true" : "false");
        pkv_text_fmt(t, ", %s with ", pkv_speculation_method_name(c->speculation.method));
        add_counted(t, c->speculation.num_tokens, "draft");
    }
    if (c->watermark > 0) {
        pkv_text_add(t, ", watermark ");
        pkv_text_ratio(t, (__int128)(c->watermark * 1e6 + 0.5), 1000000, 6);
    }
}

static void add_limit(struct pkv_text *t, uint32_t limit, const char *word)
{
    if (limit > 0)
        add_counted(t, limit, word);
    else
        pkv_text_fmt(t, "unlimited %ss", word);
}

static bool is_order(const struct pkv_scenario *s, const char *name)
{
    return strcmp(s->sched.policies.order->info.name, name) == 0;
}

static bool is_by_priority(const struct pkv_scenario *s)
{
    return !is_order(s, "fcfs");
}

static void add_host(struct page *p, const struct pkv_sched_config *c)
{
    struct pkv_text t = {0};
    if (!c->policies.on_preempt->swaps)
        return;
    add_counted(&t, c->swap.num_host_blocks, "block");
    pkv_text_add(&t, " over a link of ");
    pkv_text_ratio(&t, c->swap.link.bytes_per_s, 1000000000, 3);
    pkv_text_add(&t, " GB/s and ");
    add_time(&t, c->swap.link.latency_ns);
    pkv_text_add(&t, " for each block of ");
    add_counted(&t, pkv_swap_block_bytes(c), "byte");
    page_item(p, "host", t.text ? t.text : "");
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

static void add_scheduler(struct page *p, const struct pkv_scenario *s)
{
    struct pkv_text t = {0};
    const struct pkv_sched_config *c = &s->sched;
    pkv_text_fmt(&t, "preset %s", s->preset ? s->preset : "vllm");
    add_differences(&t, s);
    pkv_text_add(&t, c->max_num_seqs > 0 ? "; at most " : "; ");
    add_limit(&t, c->max_num_seqs, "sequence");
    pkv_text_add(&t, " and ");
    add_limit(&t, c->max_num_batched_tokens, "token");
    pkv_text_add(&t, " a step");
    if (c->max_model_len > 0) {
        pkv_text_add(&t, ", max_model_len ");
        add_grouped(&t, c->max_model_len);
    }
    page_item(p, "scheduler", t.text ? t.text : "");
    const struct pkv_preset *preset = s->preset ? pkv_preset_find(s->preset) : NULL;
    if (preset && preset->priority_note && is_by_priority(s))
        page_item(p, "", preset->priority_note);
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

static void add_part(struct pkv_text *t, int64_t ns, const char *of_what)
{
    if (ns == 0)
        return;
    pkv_text_add(t, " + ");
    add_time(t, ns);
    pkv_text_add(t, of_what);
}

static void add_step_time(struct page *p, const struct pkv_scenario *s)
{
    struct pkv_text t = {0};
    const struct pkv_step_time *law = &s->step_time;
    switch (law->law) {
    case PKV_STEP_TIME_FIXED:
        add_time(&t, law->fixed_ns);
        pkv_text_add(&t, ", fixed: latencies are counted in steps");
        break;
    case PKV_STEP_TIME_AFFINE:
        if (law->per_prefill_token_ns > 0)
            pkv_text_add(&t, "the larger of ");
        add_time(&t, law->base_ns);
        if (law->per_prefill_token_ns > 0) {
            pkv_text_add(&t, " and ");
            add_time(&t, law->per_prefill_token_ns);
            pkv_text_add(&t, " a prefill token");
        }
        add_part(&t, law->per_decode_ns, " a decode");
        add_part(&t, law->per_context_token_ns, " a context token");
        break;
    case PKV_STEP_TIME_LAW_COUNT:
        break;
    }
    page_item(p, "step time", t.text ? t.text : "");
    if (!s->step_time_given)
        page_item(p, "", "step time is a round figure, not calibrated");
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

void page_unused(struct page *p, const struct pkv_scenario *scenario,
                 const struct pkv_summary *summary)
{
    struct pkv_text t = {0};
    if (summary->num_with_priority > 0 && !is_by_priority(scenario)) {
        add_counted(&t, summary->num_with_priority, "request");
        pkv_text_add(&t, summary->num_with_priority == 1 ? " has a priority" : " have a priority");
        pkv_text_add(&t, ", which is not looked at: order is fcfs");
        page_item(p, "", t.text ? t.text : "");
    }
    pkv_text_clear(&t);
    if (summary->num_with_deadline > 0 && !is_order(scenario, "edf")) {
        add_counted(&t, summary->num_with_deadline, "request");
        pkv_text_add(&t, summary->num_with_deadline == 1 ? " has a deadline" : " have a deadline");
        pkv_text_add(&t, ", which only order: edf looks at");
        page_item(p, "", t.text ? t.text : "");
    }
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

static void add_warm(struct page *p, const char *dir)
{
    struct pkv_text t = {0};
    if (!dir)
        return;
    const char *name = last_part(dir);
    pkv_text_add(&t, "the cache begins with what a former run left in ");
    pkv_text_visible(&t, name, strlen(name));
    page_item(p, "warm", t.text ? t.text : "");
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

void page_setup(struct page *p, const struct pkv_scenario *scenario,
                const struct pkv_trace_notes *notes)
{
    if (scenario->title) {
        page_ink(p, INK_HEAD);
        page_wrap(p, 0, scenario->title);
        page_ink(p, INK_PLAIN);
    }
    if (scenario->question)
        page_item(p, "question", scenario->question);
    add_traffic(p, scenario, notes);
    add_pool(p, &scenario->sched);
    add_warm(p, scenario->warm);
    page_kv(p, scenario);
    add_host(p, &scenario->sched);
    add_scheduler(p, scenario);
    add_step_time(p, scenario);
}
