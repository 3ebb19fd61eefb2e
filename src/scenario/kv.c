/*
 * kv.c - a model in a scenario: it makes the groups of the cache, and blocks of a budget of bytes.
 *
 * The values are kept as they are said, and settled together when all of them are known: how many
 * blocks a budget comes to depends on the model, its data type and its ranks, each of which another
 * layer may say anew.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/units.h"
#include "scenario/scenario_private.h"

static struct pkv_scenario_kv *need_kv(struct pkv_scenario *s, struct pkv_err *err)
{
    if (!s->kv)
        s->kv = pkv_alloc(1, sizeof(*s->kv), err);
    return s->kv;
}

int value_read_model(const struct value *v, struct pkv_err *err)
{
    struct pkv_kv_model known;
    char *path;

    if (value_want_scalar(v, "the name of a model or the path of its config.json", err) < 0)
        return -1;
    if (v->node->length == 0)
        return value_fail(v, err, "is empty; a model's name or a path belongs here");
    if (pkv_kv_model_find(v->node->text, &known))
        return value_keep_text(v, pkv_strdup(known.name, err));
    path = path_join(v->folder, v->node->text, err);
    if (path && access(path, F_OK) != 0 && !strstr(path, ".json")) {
        char hint[PKV_KV_NEAREST_SIZE];

        pkv_free(path);
        return value_fail(v, err, "'%.80s' is neither a known model (`pagedkv models` lists them) "
                          "nor a file%s", v->node->text,
                          pkv_kv_model_nearest(v->node->text, hint));
    }
    return value_keep_text(v, path);
}

/* Values of a list, or of one scalar parted by commas. */
static int read_numbers(const struct value *v, const char *what, size_t room,
                        int (*parse)(const char *, size_t, uint64_t *, const char **),
                        uint64_t *out, size_t *out_num, struct pkv_err *err)
{
    const struct node *item = v->node->kind == NODE_LIST ? v->node->children : v->node;

    *out_num = 0;
    if (!item)
        return value_fail(v, err, "the list is empty; %s belongs here", what);
    for (; item; item = v->node->kind == NODE_LIST ? item->next : NULL) {
        const struct value one = { .node = item, .shown = v->shown };

        if (value_want_number(&one, what, err) < 0)
            return -1;
        for (const char *text = item->text;; text++) {
            size_t length = strcspn(text, ",");
            const char *why = "";

            if (*out_num == room)
                return value_fail(&one, err, "more than %zu values", room);
            if (parse(text, length, &out[(*out_num)++], &why) < 0)
                return value_fail(&one, err, "'%.*s' %s", (int)(length < 40 ? length : 40), text,
                                  why);
            text += length;
            if (!*text)
                break;
        }
    }
    return 0;
}

static int parse_layers(const char *text, size_t length, uint64_t *out, const char **why)
{
    return pkv_parse_u64(text, length, PKV_KV_MAX_LAYERS, out, why);
}

int value_read_stages(const struct value *v, struct pkv_err *err)
{
    struct pkv_scenario_kv *kv = need_kv(v->scenario, err);
    size_t num = 0;

    if (!kv || read_numbers(v, "a list of layers, like [56, 8]", PKV_KV_MAX_STAGES, parse_layers,
                            kv->stage_layers, &num, err) < 0)
        return -1;
    v->scenario->kv_num_stages = (uint32_t)num;
    return 0;
}

int value_read_budget(const struct value *v, struct pkv_err *err)
{
    struct pkv_scenario_kv *kv = need_kv(v->scenario, err);

    return kv ? read_numbers(v, "a number of bytes, like 40GiB", PKV_KV_MAX_RANKS, pkv_parse_bytes,
                             kv->pools, &kv->num_pools, err)
              : -1;
}

/* An error that has no place of its own is one of the key. */
static int fail_at(const struct given *said, const struct pkv_err *why, struct pkv_err *err)
{
    if (why->code != PKV_ERR_INPUT || why->path[0]) {
        if (err)
            *err = *why;
        return -1;
    }
    return node_fail(said->node, err, "%s: %s", said->shown, why->text);
}

/* Which key an error about ranks is told at: of those given the one said last, TP first. */
static const struct given *told_at(const struct loader *l)
{
    static const enum key_id ids[] = { KEY_TP, KEY_DTYPE, KEY_PP_LAYERS, KEY_PP, KEY_DRAFT_LAYERS };
    const struct given *found = &l->given[KEY_MODEL];

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        const struct given *said = &l->given[ids[i]];

        if (said->source != KEY_NONE &&
            (found == &l->given[KEY_MODEL] || said->layer > found->layer))
            found = said;
    }
    return found;
}

static const struct given *stages_said(const struct loader *l)
{
    const struct given *list = &l->given[KEY_PP_LAYERS], *number = &l->given[KEY_PP];

    if (list->source != KEY_NONE && (number->source == KEY_NONE || list->layer >= number->layer))
        return list;
    return number->source != KEY_NONE ? number : &l->given[KEY_MODEL];
}

static int split(struct pkv_scenario *s, struct pkv_kv_config *out, struct pkv_err *err)
{
    const struct pkv_scenario_kv *kv = s->kv;

    if (s->kv_num_stages == 0) {
        out->num_stages = s->kv_pp;
        return pkv_kv_split(PKV_KV_SPLIT_VLLM, kv->model.num_layers, s->kv_pp, out->stage_layers,
                            err);
    }
    if (s->kv_pp > 1 && s->kv_pp != s->kv_num_stages)
        return pkv_fail(err, PKV_ERR_INPUT, "%u stage%s, and kv.pp is %u", s->kv_num_stages,
                        s->kv_num_stages == 1 ? "" : "s", s->kv_pp);
    out->num_stages = s->kv_pp = s->kv_num_stages;
    for (uint32_t i = 0; i < s->kv_num_stages; i++)
        out->stage_layers[i] = (uint32_t)kv->stage_layers[i];
    return 0;
}

/* EAGLE's head, or the model's own layers for it, are in the cache beside the model's; whose layers a
 * draft model has is for kv.draft_layers to say. */
static void settle_drafts(struct loader *l)
{
    struct pkv_scenario *s = l->scenario;
    uint32_t own = s->kv->model.num_mtp_layers;

    if (l->given[KEY_DRAFT_LAYERS].source == KEY_NONE)
        s->kv_draft_layers = s->sched.speculation.method != PKV_SPECULATION_EAGLE ? 0 : own > 0 ? own : 1;
}

static struct pkv_kv_engine engine_of(const struct pkv_scenario *s)
{
    const struct pkv_sched_config *c = &s->sched;

    return (struct pkv_kv_engine){
        .max_num_batched_tokens = c->max_num_batched_tokens,
        .async_scheduling = c->async_scheduling,
        .prefix_cache = c->prefix_cache,
        .num_draft_layers = s->kv_draft_layers,
        .num_speculative_tokens =
            c->speculation.method == PKV_SPECULATION_NONE ? 0 : c->speculation.num_tokens,
    };
}

static int plan(struct loader *l, struct pkv_err *err)
{
    struct pkv_scenario *s = l->scenario;
    struct pkv_scenario_kv *kv = s->kv;
    struct pkv_kv_config config = { .dtype = kv->model.dtype, .fp32_state = kv->model.fp32_state };
    struct pkv_kv_engine engine;
    struct pkv_err why = {0};

    settle_drafts(l);
    engine = engine_of(s);
    pkv_kv_config_engine(&config, &engine);
    if (s->kv_dtype > 0)
        config.dtype = (enum pkv_kv_dtype)(s->kv_dtype - 1);
    config.block_size = s->sched.groups[0].block_size;
    config.tp = s->kv_tp;
    config.dcp = 1;
    if (split(s, &config, &why) < 0)
        return fail_at(stages_said(l), &why, err);
    if (pkv_kv_plan_make(&kv->model, &config, &kv->plan, &why) < 0)
        return fail_at(told_at(l), &why, err);
    kv->block_size = kv->plan.config.block_size;
    if (pkv_scenario_plan_groups(&kv->plan, &s->sched, &why) < 0)
        return fail_at(&l->given[KEY_MODEL], &why, err);
    return 0;
}

static int count_blocks(struct loader *l, struct pkv_err *err)
{
    struct pkv_scenario_kv *kv = l->scenario->kv;
    const struct given *budget = &l->given[KEY_NUM_BLOCKS];
    struct pkv_err why = {0};

    if (pkv_kv_fit_make(&kv->plan, kv->pools, kv->num_pools, &kv->fit, &why) < 0)
        return fail_at(budget, &why, err);
    if (kv->fit.num_blocks < 2)
        return node_fail(budget->node, err, "%s: %s fits, and one is the null block; a block takes "
                         "%llu bytes on that rank", budget->shown,
                         kv->fit.num_blocks == 0 ? "no block" : "one block",
                         (unsigned long long)kv->fit.ranks[kv->fit.limiting_rank].block_bytes);
    if (kv->fit.num_blocks > MAX_COUNT)
        return node_fail(budget->node, err, "%s: %llu blocks are more than %d", budget->shown,
                         (unsigned long long)kv->fit.num_blocks, MAX_COUNT);
    l->scenario->sched.num_blocks = (uint32_t)kv->fit.num_blocks - 1;
    return 0;
}

/* What a token takes on the link to the host, where nobody says it: on the rank that has most of it, as
 * each rank moves its own part over a link of its own. */
static void size_tokens(struct loader *l)
{
    const struct pkv_kv_plan *plan = &l->scenario->kv->plan;
    uint64_t most = 0;

    for (uint32_t i = 0; i < plan->num_stages; i++)
        most = plan->stages[i].block_bytes > most ? plan->stages[i].block_bytes : most;
    if (l->given[KEY_BYTES_PER_TOKEN].source == KEY_NONE && most > 0)
        l->scenario->sched.swap.bytes_per_token =
            (most + l->scenario->kv->block_size - 1) / l->scenario->kv->block_size;
}

int loader_settle_kv(struct loader *l, struct pkv_err *err)
{
    struct pkv_scenario *s = l->scenario;
    const struct given *model = &l->given[KEY_MODEL], *groups = &l->given[KEY_GROUPS];
    struct pkv_err why = {0};

    if (model->source == KEY_NONE && s->kv)
        return node_fail(l->given[KEY_NUM_BLOCKS].node, err, "kv.budget: how many blocks that is "
                         "depends on the model, and there is no kv.model");
    if (model->source == KEY_NONE)
        return 0;
    if (groups->source != KEY_NONE)
        return node_fail_key(groups->node, err, "%s and %s exclude each other: a model has its own "
                             "groups", groups->shown, model->shown);
    if (!need_kv(s, err))
        return -1;
    if (pkv_kv_model_open(s->kv_model, &s->kv->model, &why) < 0)
        return fail_at(model, &why, err);
    if (plan(l, err) < 0)
        return -1;
    size_tokens(l);
    return s->kv->num_pools > 0 ? count_blocks(l, err) : 0;
}
