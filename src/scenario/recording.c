/*
 * recording.c - the settings file of a recorded engine log, NAME.config.json.
 *
 * Most of its keys are keys of a scenario under the engine's own names, so they go through the same
 * list; what this version does not replay is refused at its place. A recording says every setting;
 * another preset's switches may be laid over them, but never its policy (fcfs or priority).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/units.h"
#include "scenario/scenario_private.h"

#define MAX_STEPS UINT64_C(1000000000000)

/* Keys that are a scenario's, and what is meant where they are left out. */
static const struct engine_key {
    const char *name, *meaning, *standard;
} engine_keys[] = {
    { "block_size", "kv.block_size", "16" },
    { "num_blocks", "kv.num_gpu_blocks", "64" },
    { "max_num_seqs", "scheduler.max_num_seqs", "128" },
    { "max_num_batched_tokens", "scheduler.max_num_batched_tokens", "2048" },
    { "enable_prefix_caching", "kv.prefix_cache", "true" },
    { "enable_chunked_prefill", "scheduler.enable_chunked_prefill", "true" },
    { "policy", "scheduler.policy", "fcfs" },
    { "long_prefill_token_threshold", "scheduler.long_prefill_token_threshold", "0" },
    { "watermark", "scheduler.watermark", "0" },
    { "reserve_full_isl", "scheduler.reserve_full_isl", "true" },
    { "max_model_len", "scheduler.max_model_len", "1048576" },
    { "groups", "kv.groups", "[{type: full}]" },
    { "async_scheduling", "scheduler.async_scheduling", "false" },
};
#define NUM_ENGINE_KEYS (sizeof(engine_keys) / sizeof(*engine_keys))

/* Keys of the recorder, and for people. */
static const char *const other_keys[] = {
    "name", "note", "trees", "engine", "spec", "prefix_match_unit", "log_blocks", "max_steps",
    "stuck_steps", "trace",
};

static const struct engine_key *find_engine_key(const char *name)
{
    for (size_t i = 0; i < NUM_ENGINE_KEYS; i++)
        if (strcmp(engine_keys[i].name, name) == 0)
            return &engine_keys[i];
    return NULL;
}

static bool is_other_key(const char *name)
{
    for (size_t i = 0; i < sizeof(other_keys) / sizeof(*other_keys); i++)
        if (strcmp(other_keys[i], name) == 0)
            return true;
    return false;
}

static int fail_unknown_setting(const struct node *node, struct pkv_err *err)
{
    struct pkv_nearest nearest;
    char hint[PKV_SUGGESTION_SIZE];

    pkv_nearest_begin(&nearest, node->key);
    for (size_t i = 0; i < NUM_ENGINE_KEYS; i++)
        pkv_nearest_offer(&nearest, engine_keys[i].name);
    for (size_t i = 0; i < sizeof(other_keys) / sizeof(*other_keys); i++)
        pkv_nearest_offer(&nearest, other_keys[i]);
    return node_fail_key(node, err, "unknown key '%.80s' in the settings of a recording%s", node->key,
                         pkv_nearest_say(&nearest, "", hint));
}

static int take_count(const struct node *map, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, struct pkv_err *err)
{
    const struct node *node = node_child(map, key);
    const struct value v = { .node = node, .shown = key };
    const char *why;

    if (!node)
        return 0;
    if (value_want_number(&v, "a whole number", err) < 0)
        return -1;
    if (pkv_parse_u64(node->text, node->length, max, out, &why) < 0)
        return value_fail(&v, err, "'%.40s' %s", node->text, why);
    if (*out < min)
        return value_fail(&v, err, "%.40s is below %llu", node->text, (unsigned long long)min);
    return 0;
}

/* What must be null, as this version knows no more. */
static int want_null(const struct node *root, const char *key, const char *what,
                     struct pkv_err *err)
{
    const struct node *node = node_child(root, key);

    if (!node || node_is_null(node))
        return 0;
    return node_fail(node, err, "%s: this version replays one full-attention group without "
                     "speculation and async scheduling; %s", key, what);
}

/* "trace": {"file", "rows", "step_ms", "tokens_per_hash_id"}, every one of them. */
static int read_trace(struct pkv_recording *r, const struct node *root, const char *folder,
                      struct pkv_err *err)
{
    static const char *const names[] = { "file", "rows", "step_ms", "tokens_per_hash_id" };
    const struct node *trace = node_child(root, "trace");
    const struct value v = { .node = trace, .shown = "trace" };
    struct value file = { .shown = "trace.file" };
    uint64_t step_ms = 0, tokens = 0;

    if (!trace)
        return 0;
    if (trace->kind != NODE_MAP)
        return value_fail(&v, err, "a map of file, rows, step_ms and tokens_per_hash_id belongs "
                          "here");
    for (size_t i = 0; i < 4; i++)
        if (!node_child(trace, names[i]))
            return value_fail(&v, err, "%s is missing", names[i]);
    for (const struct node *child = trace->children; child; child = child->next)
        if (strcmp(child->key, names[0]) != 0 && strcmp(child->key, names[1]) != 0 &&
            strcmp(child->key, names[2]) != 0 && strcmp(child->key, names[3]) != 0)
            return fail_unknown_word("trace", child, names, 4, err);
    file.node = node_child(trace, "file");
    if (value_want_scalar(&file, "a path", err) < 0 ||
        take_count(trace, "rows", 1, INT64_MAX, &r->trace_rows, err) < 0 ||
        take_count(trace, "step_ms", 1, 1000000000, &step_ms, err) < 0 ||
        take_count(trace, "tokens_per_hash_id", 1, 1 << 20, &tokens, err) < 0)
        return -1;
    r->trace_step_ms = (int64_t)step_ms;
    r->tokens_per_hash_id = (uint32_t)tokens;
    r->trace = path_join(folder, file.node->text, err);
    return r->trace ? 0 : -1;
}

static int read_recorder(struct pkv_recording *r, const struct node *root, const char *folder,
                         struct pkv_err *err)
{
    const struct node *log_blocks = node_child(root, "log_blocks");
    const struct value v = { .node = log_blocks, .shown = "log_blocks" };
    uint64_t stuck_steps = 3;

    r->max_steps = 1000000;
    r->log_blocks = true;
    if (want_null(root, "spec", "spec must be null", err) < 0 ||
        want_null(root, "prefix_match_unit", "prefix_match_unit must be null", err) < 0 ||
        take_count(root, "max_steps", 1, MAX_STEPS, &r->max_steps, err) < 0 ||
        take_count(root, "stuck_steps", 1, UINT32_MAX, &stuck_steps, err) < 0)
        return -1;
    r->stuck_steps = (uint32_t)stuck_steps;
    if (log_blocks && value_read_flag(&v, &r->log_blocks, err) < 0)
        return -1;
    return read_trace(r, root, folder, err);
}

/* Another engine's settings have other keys: say so before one of them is called unknown. */
static int check_engine(const struct node *root, struct pkv_err *err)
{
    const struct node *engine = node_child(root, "engine");

    if (engine && (engine->kind != NODE_SCALAR || strcmp(engine->text, "vllm") != 0))
        return node_fail(engine, err, "engine: this version replays logs of vllm, not of '%.40s'",
                         engine->kind == NODE_SCALAR ? engine->text : "?");
    return 0;
}

static int give_settings(struct loader *l, const struct node *root, struct pkv_err *err)
{
    for (size_t i = 0; i < NUM_ENGINE_KEYS; i++)
        if (loader_give_text(l, engine_keys[i].meaning, engine_keys[i].standard, "",
                             LAYER_STANDARD, err) < 0)
            return -1;
    for (const struct node *child = root->children; child; child = child->next) {
        const struct engine_key *key = find_engine_key(child->key);

        if (!key && !is_other_key(child->key))
            return fail_unknown_setting(child, err);
        if (key && loader_give(l, key->meaning, key->name, child, LAYER_FILE, err) < 0)
            return -1;
    }
    return 0;
}

static int give_presets(struct loader *l, const char *name, struct pkv_err *err)
{
    const struct node node = { .kind = NODE_SCALAR, .path = "", .text = name,
                               .length = strlen(name) };
    const struct value v = { .scenario = l->scenario, .key = KEY_PRESET, .source = KEY_PRESET,
                             .node = &node, .shown = "preset" };
    const struct pkv_preset *base = pkv_preset_find("vllm");

    PKV_ASSERT(base);
    if (value_read(&v, err) < 0 || loader_give_preset(l, base, true, LAYER_PRESET, err) < 0)
        return -1;
    if (strcmp(name, base->name) == 0)
        return 0;
    return loader_give_preset(l, pkv_preset_find(name), false, LAYER_FORCED, err);
}

static int load(struct pkv_recording *r, struct loader *l, const char *path, const char *preset,
                struct pkv_err *err)
{
    const char *slash = strrchr(path, '/');
    struct node *root;

    l->path = path;
    l->folder = forest_copy(&l->forest, path, slash ? (size_t)(slash - path) + 1 : 0, err);
    if (!l->folder || tree_load(&l->forest, path, TREE_JSON, &root, err) < 0)
        return -1;
    if (root->kind != NODE_MAP)
        return node_fail(root, err, "the settings of a recording are one JSON object");
    if (check_engine(root, err) < 0 || give_settings(l, root, err) < 0 ||
        give_presets(l, preset ? preset : "vllm", err) < 0 ||
        loader_read(l, KEY_BLOCK_SIZE, KEY_LOOKAHEAD, err) < 0 ||
        read_recorder(r, root, l->folder, err) < 0)
        return -1;
    r->sched = l->scenario->sched;
    r->sched.has_null_block = true;
    r->sched.oversized = PKV_OVERSIZED_WAIT;   /* as the engine does: a misfit waits for ever */
    return 0;
}

struct pkv_recording *pkv_recording_load(const char *path, const char *preset,
                                         struct pkv_err *err)
{
    struct loader l = { .path = "", .folder = "" };
    struct pkv_recording *r = pkv_alloc(1, sizeof(*r), err);
    int result = -1;

    l.scenario = r ? scenario_create(err) : NULL;
    if (l.scenario)
        result = load(r, &l, path, preset, err);
    forest_finish(&l.forest);
    pkv_scenario_destroy(l.scenario);
    if (result == 0)
        return r;
    pkv_recording_destroy(r);
    return NULL;
}

void pkv_recording_destroy(struct pkv_recording *recording)
{
    if (!recording)
        return;
    pkv_free(recording->trace);
    pkv_free(recording);
}
