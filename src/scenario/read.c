/*
 * read.c - the given values are read in the order of the list of keys, then what fits only together
 * is looked at.
 *
 * A key that has no meaning as the scenario stands (the rate of arrivals that come all at once) is
 * an error when it was said beside, or after, what takes its meaning away. Said in an earlier layer
 * it is dropped: --set traffic.arrivals.law=at_once need not unsay the file's rate.
 */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "scenario/scenario_private.h"

static enum key_id choice_key(enum pkv_choice choice)
{
    for (int id = KEY_NONE + 1; id < KEY_COUNT; id++)
        if (keys[id].kind == KIND_CHOICE && keys[id].choice == choice)
            return (enum key_id)id;
    PKV_UNREACHABLE("a choice has no key");
}

const struct pkv_policy_param *policy_param_find(const struct pkv_policy_info *policy,
                                                 const char *name)
{
    for (size_t i = 0; i < policy->num_params; i++)
        if (strcmp(policy->params[i].name, name) == 0)
            return &policy->params[i];
    return NULL;
}

bool loader_is_of_file(const struct given *said)
{
    return said->layer == LAYER_FILE || (said->layer == LAYER_VARIED && said->node->line > 0);
}

static enum layer decider_layer(const struct loader *l, enum key_id decider)
{
    enum layer trace = l->given[KEY_TRACE].layer, requests = l->given[KEY_REQUESTS].layer;

    if (decider == KEY_TRACE || decider == KEY_REQUESTS)
        return trace > requests ? trace : requests;
    return l->given[decider].layer;
}

/* The nearest decider that takes the key's meaning away. */
static enum key_id find_obstacle(const struct pkv_scenario *s, enum key_id id)
{
    enum key_id decider = keys[id].decider;

    if (keys[decider].decider != KEY_NONE && !key_applies(s, decider))
        return find_obstacle(s, decider);
    return decider;
}

static int fail_without_meaning(const struct loader *l, enum key_id id, enum key_id decider,
                                struct pkv_err *err)
{
    const struct given *said = &l->given[id];
    const struct pkv_scenario *s = l->scenario;

    if (decider == KEY_TRACE)
        return node_fail_key(said->node, err, "%s: is for a trace, and there is no traffic.trace",
                             said->shown);
    if (decider == KEY_REQUESTS)
        return node_fail_key(said->node, err, "%s: is for synthetic traffic, and there is no "
                             "traffic.requests", said->shown);
    if (keys[decider].kind == KIND_ACCEPTED)
        return node_fail_key(said->node, err, "%s: %s says which drafts are right", said->shown,
                             keys[decider].name);
    if (decider == KEY_MODEL)
        return node_fail_key(said->node, err, "%s: is for a model, and there is no kv.model",
                             said->shown);
    if (keys[decider].kind == KIND_WORD)
        return node_fail_key(said->node, err, "%s: has no meaning while %s is %s", said->shown,
                             keys[decider].name,
                             keys[decider].words[*(const unsigned *)key_field(s, decider)]);
    return node_fail_key(said->node, err, "%s: has no meaning while %s is %s", said->shown,
                         keys[decider].name, keys[decider].kind == KIND_BOOL ? "false" : "0");
}

/* The place of a key that is not there is that of the key that asks for it. */
static int fail_missing(const struct loader *l, enum key_id id, struct pkv_err *err)
{
    enum key_id decider = keys[id].decider;
    const struct given *asks;

    while (l->given[decider].source == KEY_NONE && keys[decider].decider != KEY_NONE)
        decider = keys[decider].decider;
    asks = &l->given[decider];
    if (asks->source == KEY_NONE)
        return pkv_fail_at(err, l->path, 0, 0, "%s is missing", keys[id].name);
    return node_fail(asks->node, err, "%s is missing; %s asks for it", keys[id].name,
                     asks->shown);
}

static void set_first_policy(struct pkv_scenario *s, enum pkv_choice choice)
{
    size_t num;
    const struct pkv_policy_info *const *list = pkv_policy_list(choice, &num);

    PKV_ASSERT(num > 0);
    pkv_policies_set(&s->sched.policies, choice, list[0]);
}

int loader_read_key(struct loader *l, enum key_id id, struct pkv_err *err)
{
    struct pkv_scenario *s = l->scenario;
    const struct key *key = &keys[id];
    const struct given *said = &l->given[id];
    struct value v = { .scenario = s, .key = id, .source = id, .shown = key->name, .folder = "" };

    if (!key_applies(s, id)) {
        enum key_id obstacle = find_obstacle(s, id);

        if (said->source == KEY_NONE || said->layer < decider_layer(l, obstacle))
            return 0;
        return fail_without_meaning(l, id, obstacle, err);
    }
    if (said->source != KEY_NONE) {
        v.source = said->source;
        v.node = said->node;
        v.shown = said->shown;
        v.folder = loader_is_of_file(said) ? l->folder : "";
        return value_read(&v, err);
    }
    if (key->standard) {
        const struct node standard = { .kind = NODE_SCALAR, .path = "", .text = key->standard,
                                       .length = strlen(key->standard) };

        v.node = &standard;
        return value_read(&v, err);
    }
    if (key->kind == KIND_CHOICE)
        set_first_policy(s, key->choice);
    return key->required ? fail_missing(l, id, err) : 0;
}

/* Whose parameter is it, if not of a policy that was chosen? */
static int fail_param(const struct loader *l, const struct param_given *p, struct pkv_err *err)
{
    for (int c = 0; c < PKV_CHOICE_COUNT; c++) {
        enum pkv_choice choice = (enum pkv_choice)c;
        const struct given *said = &l->given[choice_key(choice)];
        size_t num;
        const struct pkv_policy_info *const *list = pkv_policy_list(choice, &num);

        for (size_t i = 0; i < num; i++) {
            if (!policy_param_find(list[i], p->name))
                continue;
            if (said->source != KEY_NONE && p->given.layer < said->layer)
                return 0;
            return node_fail_key(p->given.node, err, "%s: is a parameter of %s: %s, and %s is %s",
                                 p->given.shown, pkv_choice_name(choice), list[i]->name,
                                 pkv_choice_name(choice),
                                 pkv_policies_get(&l->scenario->sched.policies, choice)->name);
        }
    }
    PKV_UNREACHABLE("a parameter of no policy was given");
}

static int read_param(const struct param_given *p, const struct pkv_policy_param *param,
                      int64_t *out, struct pkv_err *err)
{
    const struct value v = { .node = p->given.node, .shown = p->given.shown };
    const char *why;

    char min[32], max[32];

    if (value_want_number(&v, param->scale > 1 ? "a number" : "a whole number", err) < 0)
        return -1;
    if (param->scale > 1 ? pkv_parse_scaled(v.node->text, v.node->length, param->scale, out, &why)
                         : pkv_parse_i64(v.node->text, v.node->length, out, &why))
        return value_fail(&v, err, "'%.40s' %s", v.node->text, why);
    if (*out >= param->min && *out <= param->max)
        return 0;
    pkv_policy_param_write(param, param->min, min, sizeof(min));
    pkv_policy_param_write(param, param->max, max, sizeof(max));
    return value_fail(&v, err, "%.40s is not within %s .. %s", v.node->text, min, max);
}

/* Parameters of the chosen policies, each with its value or its default; then those of others. */
static int read_params(struct loader *l, struct pkv_err *err)
{
    struct pkv_policies *policies = &l->scenario->sched.policies;
    bool used[MAX_PARAMS_GIVEN] = { false };

    for (int c = 0; c < PKV_CHOICE_COUNT; c++) {
        const struct pkv_policy_info *policy = pkv_policies_get(policies, (enum pkv_choice)c);

        for (size_t i = 0; i < policy->num_params; i++) {
            const struct pkv_policy_param *param = &policy->params[i];
            int64_t *field = &policies->params[c][i];

            *field = param->preset;
            for (size_t k = 0; k < l->num_params; k++) {
                if (strcmp(l->params[k].name, param->name) != 0)
                    continue;
                used[k] = true;
                if (read_param(&l->params[k], param, field, err) < 0)
                    return -1;
            }
        }
    }
    for (size_t k = 0; k < l->num_params; k++)
        if (!used[k] && fail_param(l, &l->params[k], err) < 0)
            return -1;
    return 0;
}

/* Fail at the most telling of the keys that were given; what a preset says has no place of its own. */
static int fail_at_given(const struct loader *l, const enum key_id *ids, size_t num,
                         const char *text, struct pkv_err *err)
{
    for (size_t i = 0; i < num; i++)
        if (l->given[ids[i]].source != KEY_NONE && l->given[ids[i]].layer > LAYER_PRESET)
            return node_fail(l->given[ids[i]].node, err, "%s", text);
    return pkv_fail_at(err, l->path, 0, 0, "%s", text);
}

static int check_length(const struct loader *l, const struct pkv_length *length, enum key_id law,
                        struct pkv_err *err)
{
    /* LENGTH_KEYS lists law, value, min, max in this order. */
    const enum key_id ids[] = { (enum key_id)(law + 3), (enum key_id)(law + 2), law };
    int section = (int)(strrchr(keys[law].name, '.') - keys[law].name);
    char text[160];

    if (!key_applies(l->scenario, ids[0]) ||
        (length->max >= length->min && length->max > 0) ||
        (length->max == 0 && length->law != PKV_LENGTH_UNIFORM && length->law != PKV_LENGTH_ZIPF))
        return 0;
    if (l->given[ids[0]].source == KEY_NONE)
        snprintf(text, sizeof(text), "%s is missing; the law %s asks for it", keys[ids[0]].name,
                 pkv_length_law_name(length->law));
    else
        snprintf(text, sizeof(text), "%.*s: max %u is below min %u", section, keys[law].name,
                 length->max, length->min);
    return fail_at_given(l, ids, sizeof(ids) / sizeof(*ids), text, err);
}

static int check_number(const struct loader *l, const struct pkv_number *number, enum key_id law,
                        struct pkv_err *err)
{
    /* NUMBER_KEYS lists law, value, min, max in this order. */
    const enum key_id ids[] = { (enum key_id)(law + 3), (enum key_id)(law + 2), law };
    int section = (int)(strrchr(keys[law].name, '.') - keys[law].name);
    char text[160];

    if (!key_applies(l->scenario, ids[0]) || number->max >= number->min ||
        (number->max <= 0 && number->law != PKV_NUMBER_UNIFORM))
        return 0;
    snprintf(text, sizeof(text), "%.*s: max %g is below min %g", section, keys[law].name,
             number->max, number->min);
    return fail_at_given(l, ids, sizeof(ids) / sizeof(*ids), text, err);
}

static int check_numbers(const struct loader *l, struct pkv_err *err)
{
    const struct pkv_synth_config *c = &l->scenario->synth;

    if (check_number(l, &c->max_tokens_ratio, KEY_RATIO_LAW, err) < 0 ||
        check_number(l, &c->delay_ms, KEY_TURN_DELAY_LAW, err) < 0)
        return -1;
    return check_number(l, &c->abort_after_ms, KEY_ABORT_AFTER_LAW, err);
}

static int check_samples(const struct loader *l, struct pkv_err *err)
{
    static const enum key_id widths[] = { KEY_BEAM_WIDTH, KEY_SAMPLES };
    const struct pkv_scenario *s = l->scenario;

    if (s->synth.beam_width > 1 && s->synth.samples > 1)
        return fail_at_given(l, widths, 2, "traffic.samples and traffic.beam_width exclude each other",
                             err);
    if (s->synth.beam_width > 1 && !s->sched.fork)
        return fail_at_given(l, widths, 1, "traffic.beam_width: beams need scheduler.fork: on", err);
    return 0;
}

static int check_traffic(const struct loader *l, struct pkv_err *err)
{
    const struct pkv_scenario *s = l->scenario;
    static const enum key_id aborts[] = { KEY_ABORT_MAX, KEY_ABORT_MIN };

    if (!s->trace && s->synth.num_requests == 0)
        return pkv_fail_at(err, l->path, 0, 0,
                           "no traffic: give traffic.trace or traffic.requests");
    if (check_length(l, &s->synth.prompt, KEY_PROMPT_LAW, err) < 0 ||
        check_length(l, &s->synth.output, KEY_OUTPUT_LAW, err) < 0 ||
        check_length(l, &s->synth.prefix_tokens, KEY_PREFIX_LAW, err) < 0 ||
        check_length(l, &s->synth.turns, KEY_TURNS_LAW, err) < 0 ||
        check_length(l, &s->synth.turn_tokens, KEY_TURN_LAW, err) < 0 ||
        check_numbers(l, err) < 0)
        return -1;
    if (s->synth.abort_max_ns < s->synth.abort_min_ns)
        return fail_at_given(l, aborts, 2, "traffic.aborts: max is below min", err);
    return check_samples(l, err);
}

static int check_window(const struct loader *l, struct pkv_err *err)
{
    static const enum key_id window[] = { KEY_MEASURE_UNTIL, KEY_MEASURE_AFTER };
    const struct pkv_scenario *s = l->scenario;

    if (s->measure_until_ns > 0 && s->measure_until_ns <= s->measure_after_ns)
        return fail_at_given(l, window, 2, "measure: until is not above after", err);
    return 0;
}

/* A layout of runs keeps nothing to share, and one that reserves the longest request must know it. */
static int check_layout(const struct loader *l, struct pkv_err *err)
{
    static const enum key_id cache[] = { KEY_PREFIX_CACHE, KEY_LAYOUT, KEY_PRESET };
    static const enum key_id length[] = { KEY_LAYOUT, KEY_PRESET };
    static const enum key_id fork[] = { KEY_FORK, KEY_LAYOUT, KEY_PRESET };
    const struct pkv_sched_config *c = &l->scenario->sched;
    const struct pkv_layout_ops *layout = c->policies.layout;
    char text[160];

    if (layout->create && c->fork) {
        snprintf(text, sizeof(text), "layout: %s gives blocks in one piece and shares none; say "
                 "scheduler.fork: off", layout->info.name);
        return fail_at_given(l, fork, sizeof(fork) / sizeof(*fork), text, err);
    }
    if (layout->create && c->prefix_cache) {
        snprintf(text, sizeof(text), "layout: %s goes without a prefix cache; say kv.prefix_cache: "
                 "false", layout->info.name);
        return fail_at_given(l, cache, sizeof(cache) / sizeof(*cache), text, err);
    }
    if (layout->needs_max_model_len && c->max_model_len == 0) {
        snprintf(text, sizeof(text), "layout: %s reserves max_model_len positions, and there is no "
                 "scheduler.max_model_len", layout->info.name);
        return fail_at_given(l, length, sizeof(length) / sizeof(*length), text, err);
    }
    return 0;
}

/* Some can do with one group of full attention only. */
static int check_groups(const struct loader *l, struct pkv_err *err)
{
    static const enum key_id layout[] = { KEY_GROUPS, KEY_LAYOUT, KEY_PRESET };
    static const enum key_id admit[] = { KEY_GROUPS, KEY_ADMIT, KEY_PRESET };
    static const enum key_id method[] = { KEY_SPECULATION, KEY_GROUPS };
    static const enum key_id swap[] = { KEY_GROUPS, KEY_ON_PREEMPT, KEY_PRESET };
    const struct pkv_sched_config *c = &l->scenario->sched;
    const struct pkv_policies *p = &c->policies;
    char text[160];

    if (c->num_groups == 1 && c->groups[0].ops == &pkv_group_full)
        return 0;
    if (p->layout->create) {
        snprintf(text, sizeof(text), "layout: %s gives blocks in one piece and serves one group of "
                 "full attention", p->layout->info.name);
        return fail_at_given(l, layout, sizeof(layout) / sizeof(*layout), text, err);
    }
    if (p->admit->counts_tokens) {
        snprintf(text, sizeof(text), "admit: %s reckons in tokens of one growing table and serves one "
                 "group of full attention", p->admit->info.name);
        return fail_at_given(l, admit, sizeof(admit) / sizeof(*admit), text, err);
    }
    if (c->speculation.method == PKV_SPECULATION_EAGLE)
        return fail_at_given(l, method, sizeof(method) / sizeof(*method), "speculation.method: eagle "
                             "drops the last block of a hit and serves one group of full attention",
                             err);
    if (p->on_preempt->swaps) {
        snprintf(text, sizeof(text), "on_preempt: %s moves the blocks of one growing table and serves "
                 "one group of full attention", p->on_preempt->info.name);
        return fail_at_given(l, swap, sizeof(swap) / sizeof(*swap), text, err);
    }
    return 0;
}

/* What the scheduler would refuse without a place. */
static int check_speculation(const struct loader *l, struct pkv_err *err)
{
    static const enum key_id speculation[] = { KEY_SPECULATION, KEY_ASYNC_SCHEDULING };
    static const enum key_id layout[] = { KEY_LAYOUT, KEY_SPECULATION, KEY_ASYNC_SCHEDULING,
                                          KEY_PRESET };
    static const enum key_id admit[] = { KEY_ADMIT, KEY_SPECULATION, KEY_ASYNC_SCHEDULING,
                                         KEY_PRESET };
    const struct pkv_sched_config *c = &l->scenario->sched;
    bool speculates = c->speculation.method != PKV_SPECULATION_NONE;
    char text[160];

    if (speculates && c->async_scheduling)
        return fail_at_given(l, speculation, 2, "speculation: does not go together with "
                             "async_scheduling in this version", err);
    if (c->policies.layout->create && (speculates || c->async_scheduling)) {
        snprintf(text, sizeof(text), "layout: %s gives a request all its blocks at once; it goes "
                 "without %s", c->policies.layout->info.name,
                 speculates ? "speculation" : "async_scheduling");
        return fail_at_given(l, layout, sizeof(layout) / sizeof(*layout), text, err);
    }
    if (c->policies.admit->needs_token_steps && (speculates || c->async_scheduling)) {
        snprintf(text, sizeof(text), "admit: %s looks into a future of one token a step; it goes "
                 "without %s", c->policies.admit->info.name,
                 speculates ? "speculation" : "async_scheduling");
        return fail_at_given(l, admit, sizeof(admit) / sizeof(*admit), text, err);
    }
    return 0;
}

/* Swapping needs a host, blocks that lie alone, and steps that do not overlap and bring one token. */
static int check_swap(const struct loader *l, struct pkv_err *err)
{
    static const enum key_id ids[] = { KEY_ON_PREEMPT, KEY_LAYOUT, KEY_SPECULATION,
                                       KEY_ASYNC_SCHEDULING, KEY_PRESET };
    const struct pkv_sched_config *c = &l->scenario->sched;
    const char *name = c->policies.on_preempt->info.name;
    char text[160];

    if (!c->policies.on_preempt->swaps)
        return 0;
    if (c->swap.num_host_blocks == 0)
        snprintf(text, sizeof(text), "on_preempt: %s copies blocks to the host, and there is no "
                 "kv.host_blocks", name);
    else if (c->policies.layout->create)
        snprintf(text, sizeof(text), "on_preempt: %s moves blocks one by one, and layout: %s gives "
                 "them in one piece", name, c->policies.layout->info.name);
    else if (c->speculation.method != PKV_SPECULATION_NONE || c->async_scheduling)
        snprintf(text, sizeof(text), "on_preempt: %s moves blocks between steps that do not overlap and "
                 "bring one token; it goes without %s", name,
                 c->async_scheduling ? "async_scheduling" : "speculation");
    else
        return 0;
    return fail_at_given(l, ids, sizeof(ids) / sizeof(*ids), text, err);
}

/* Samples that fork get one token a step, known when the next is planned. */
static int check_fork(const struct loader *l, struct pkv_err *err)
{
    static const enum key_id fork[] = { KEY_FORK, KEY_SPECULATION, KEY_ASYNC_SCHEDULING,
                                        KEY_ON_PREEMPT, KEY_PRESET };
    const struct pkv_sched_config *c = &l->scenario->sched;
    bool speculates = c->speculation.method != PKV_SPECULATION_NONE;
    const struct pkv_on_preempt_ops *on_preempt = c->policies.on_preempt;
    char text[160];

    if (!c->fork || (!speculates && !c->async_scheduling && !on_preempt->swaps))
        return 0;
    if (on_preempt->swaps)
        snprintf(text, sizeof(text), "fork: does not go together with on_preempt: %s in this version; "
                 "say scheduler.fork: off", on_preempt->info.name);
    else
        snprintf(text, sizeof(text), "fork: does not go together with %s in this version; say "
                 "scheduler.fork: off", speculates ? "speculation" : "async_scheduling");
    return fail_at_given(l, fork, sizeof(fork) / sizeof(*fork), text, err);
}

int loader_read(struct loader *l, enum key_id first, enum key_id last, struct pkv_err *err)
{
    for (int id = (int)first; id <= (int)last; id++)
        if (loader_read_key(l, (enum key_id)id, err) < 0)
            return -1;
    if (first <= KEY_GROUPS && KEY_GROUPS <= last && groups_read_block_sizes(l, err) < 0)
        return -1;
    if (loader_settle_kv(l, err) < 0)
        return -1;
    if (l->scenario->sched.num_blocks == 0)
        return pkv_fail_at(err, l->path, 0, 0, "no pool: give kv.num_blocks, kv.num_gpu_blocks, or "
                           "kv.budget with kv.model");
    if (read_params(l, err) < 0 || check_layout(l, err) < 0 || check_groups(l, err) < 0 ||
        check_speculation(l, err) < 0 || check_swap(l, err) < 0 || check_fork(l, err) < 0 ||
        check_window(l, err) < 0)
        return -1;
    return last >= KEY_REQUESTS ? check_traffic(l, err) : 0;
}
