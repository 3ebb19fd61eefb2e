/*
 * scenario.c - a scenario made from a file and settings, its traffic, its end.
 */
#include <string.h>

#include "base/alloc.h"
#include "scenario/scenario_private.h"

static void close_up(struct loader *l)
{
    struct pkv_scenario *s = l->scenario;
    static const struct pkv_step_time standard = { .law = PKV_STEP_TIME_AFFINE,
                                                   .base_ns = 10000000,
                                                   .per_prefill_token_ns = 25000 };

    s->sched.has_null_block = true;   /* every preset of this version is the same engine's */
    s->sched.seed = s->seed;
    s->sched.beam_drop = (uint32_t)(s->beam_drop * 1000 + 0.5);
    s->trace_options.without_beams = !s->sched.fork;
    s->synth.seed = s->seed;
    s->is_trace = s->trace != NULL;
    s->step_time_given = s->step_time.law != standard.law ||
                         s->step_time.base_ns != standard.base_ns ||
                         s->step_time.per_prefill_token_ns != standard.per_prefill_token_ns ||
                         s->step_time.per_decode_ns != standard.per_decode_ns ||
                         s->step_time.per_context_token_ns != standard.per_context_token_ns;
}

/* For errors that come when the trace is opened. */
static int keep_trace_place(const struct loader *l, struct pkv_err *err)
{
    const struct given *trace = &l->given[KEY_TRACE];
    struct pkv_scenario_private *kept = l->scenario->private_;

    if (trace->source == KEY_NONE || !loader_is_of_file(trace))
        return 0;
    kept->path = pkv_strdup(l->path, err);
    if (!kept->path)
        return -1;
    kept->trace_line = trace->node->line;
    kept->trace_column = trace->node->column;
    return 0;
}

static int give_root(struct loader *l, const struct node *root, struct pkv_err *err)
{
    if (root->kind != NODE_MAP)
        return node_fail(root, err, "a scenario is a map of keys, like 'kv: {num_blocks: 1000}'");
    return loader_give_map(l, "", root, LAYER_FILE, err);
}

static int give_file(struct loader *l, const char *path, struct pkv_err *err)
{
    const char *slash = strrchr(path, '/');
    struct node *root;

    l->path = path;
    l->folder = forest_copy(&l->forest, path, slash ? (size_t)(slash - path) + 1 : 0, err);
    if (!l->folder || tree_load(&l->forest, path, TREE_YAML, &root, err) < 0)
        return -1;
    return give_root(l, root, err);
}

static int give_settings(struct loader *l, const struct pkv_setting *settings, size_t num,
                         struct pkv_err *err)
{
    for (size_t i = 0; i < num; i++) {
        bool is_set = strcmp(settings[i].origin, "--set") == 0;

        if (loader_give_text(l, settings[i].key, settings[i].value, settings[i].origin,
                             is_set ? LAYER_SET : LAYER_FLAG, err) < 0)
            return -1;
    }
    return 0;
}

/* The preset's name is read first: what it says stands below everything else. */
static int give_preset(struct loader *l, struct pkv_err *err)
{
    const struct pkv_preset *preset;

    if (loader_read_key(l, KEY_PRESET, err) < 0)
        return -1;
    preset = pkv_preset_find(l->scenario->preset);
    PKV_ASSERT(preset);
    return loader_give_preset(l, preset, true, LAYER_PRESET, err);
}

struct pkv_scenario *scenario_create(struct pkv_err *err)
{
    struct pkv_scenario *s = pkv_alloc(1, sizeof(*s), err);

    if (!s)
        return NULL;
    s->private_ = pkv_alloc(1, sizeof(*s->private_), err);
    if (!s->private_) {
        pkv_free(s);
        return NULL;
    }
    s->sched.groups[0].ops = &pkv_group_full;
    s->sched.num_groups = 1;
    return s;
}

int loader_gather(struct loader *l, const char *path, const struct pkv_setting *settings,
                  size_t num_settings, struct pkv_err *err)
{
    l->path = l->folder = "";
    if (path && give_file(l, path, err) < 0)
        return -1;
    return give_settings(l, settings, num_settings, err);
}

struct pkv_scenario *loader_make(struct loader *l, struct pkv_err *err)
{
    struct pkv_scenario *made = scenario_create(err);

    l->scenario = made;
    if (!made)
        return NULL;
    if (give_preset(l, err) < 0 || loader_settle_sessions(l, err) < 0 ||
        loader_read(l, KEY_NONE + 1, KEY_COUNT - 1, err) < 0 ||
        keep_trace_place(l, err) < 0) {
        pkv_scenario_destroy(made);
        l->scenario = made = NULL;
    } else {
        close_up(l);
    }
    return made;
}

struct pkv_scenario *pkv_scenario_load(const char *path, const struct pkv_setting *settings,
                                       size_t num_settings, struct pkv_err *err)
{
    struct loader l = { .scenario = NULL };
    struct pkv_scenario *made = NULL;

    if (loader_gather(&l, path, settings, num_settings, err) == 0)
        made = loader_make(&l, err);
    forest_finish(&l.forest);
    return made;
}

struct pkv_scenario *pkv_scenario_parse(const char *name, const char *text,
                                        const struct pkv_setting *settings, size_t num_settings,
                                        struct pkv_err *err)
{
    struct loader l = { .path = name, .folder = "" };
    struct pkv_scenario *made = NULL;
    struct node *root;

    if (tree_parse(&l.forest, name, text, strlen(text), TREE_YAML, true, &root, err) == 0 &&
        give_root(&l, root, err) == 0 && give_settings(&l, settings, num_settings, err) == 0)
        made = loader_make(&l, err);
    forest_finish(&l.forest);
    return made;
}

void pkv_scenario_destroy(struct pkv_scenario *s)
{
    if (!s)
        return;
    pkv_free(s->title);
    pkv_free(s->question);
    pkv_free(s->preset);
    pkv_free(s->trace);
    pkv_free(s->warm);
    pkv_free(s->kv_model);
    pkv_free(s->kv);
    pkv_free((char *)s->trace_options.columns);
    pkv_free((char *)s->trace_options.time_unit);
    pkv_free((char *)s->synth.prompt.trace);
    pkv_free((char *)s->synth.output.trace);
    pkv_free((char *)s->synth.prefix_tokens.trace);
    pkv_free((char *)s->synth.turns.trace);
    pkv_free((char *)s->synth.turn_tokens.trace);
    for (size_t i = 0; i < s->synth.num_tenants; i++)
        pkv_free((char *)s->private_->tenants[i].name);
    pkv_free(s->private_->tenants);
    pkv_free(s->private_->path);
    pkv_free(s->private_->priorities);
    pkv_free(s->private_->weights);
    pkv_free(s->private_);
    pkv_free(s);
}

/* A fault of the file as a whole is one of the line that names it. */
static int fail_trace(const struct pkv_scenario *s, struct pkv_err *err)
{
    const struct pkv_scenario_private *place = s->private_;

    if (err && err->code == PKV_ERR_INPUT && err->line == 0 && place->trace_line > 0) {
        const struct pkv_err why = *err;

        pkv_fail_at(err, place->path, place->trace_line, place->trace_column,
                    "traffic.trace: '%.200s' %s", s->trace, why.text);
    }
    return -1;
}

int pkv_scenario_open_traffic(const struct pkv_scenario *scenario, struct pkv_traffic *out,
                              struct pkv_err *err)
{
    *out = (struct pkv_traffic){ .trace = NULL };
    if (scenario->is_trace) {
        struct pkv_trace_options options = scenario->trace_options;

        options.sessions = true;
        out->trace = pkv_trace_open(scenario->trace, &options, err);
        if (!out->trace)
            return fail_trace(scenario, err);
        out->source = pkv_trace_source(out->trace);
        return 0;
    }
    out->synth = pkv_synth_create(&scenario->synth, err);
    if (!out->synth)
        return -1;
    out->source = pkv_synth_source(out->synth);
    return 0;
}

void pkv_traffic_close(struct pkv_traffic *traffic)
{
    if (traffic->trace)
        pkv_trace_close(traffic->trace);
    if (traffic->synth)
        pkv_synth_destroy(traffic->synth);
    *traffic = (struct pkv_traffic){ .trace = NULL };
}
