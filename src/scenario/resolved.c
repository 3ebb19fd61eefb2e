/*
 * resolved.c - the scenario written out: every key that has a meaning, with its value.
 *
 * The text loads back to the same run from any folder, so paths of traces are written absolute. Its
 * SHA-256 leaves the folders of these paths out: the same scenario has the same sum wherever it
 * lies.
 */
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/out.h"
#include "base/units.h"
#include "pagedkv/metrics.h"
#include "scenario/scenario_private.h"

#define NS_PER_MS UINT64_C(1000000)

/* The path from the root; "-" and what cannot be made so stay as they are. */
static void add_whole_path(struct pkv_text *out, const char *path)
{
    char folder[4096];

    if (path[0] != '/' && strcmp(path, "-") != 0 && getcwd(folder, sizeof(folder))) {
        while (strncmp(path, "./", 2) == 0)
            path += 2;
        pkv_text_fmt(out, "%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/");
    }
    pkv_text_add(out, path);
}

static void write_path(struct pkv_text *out, const char *path)
{
    struct pkv_text whole = { .text = NULL };

    add_whole_path(&whole, path);
    if (!whole.failed)
        pkv_text_json(out, whole.text);
    out->failed |= whole.failed;
    pkv_text_free(&whole);
}

/* A quotient whose denominator divides 10^6, in decimal digits. */
static void write_fraction(struct pkv_text *out, uint64_t num, uint64_t den)
{
    char digits[8];
    uint64_t behind = num % den * (1000000 / den);
    size_t length = 6;

    pkv_text_u64(out, num / den);
    snprintf(digits, sizeof(digits), "%06" PRIu64, behind);
    while (length > 0 && digits[length - 1] == '0')
        length--;
    if (length > 0) {
        pkv_text_add(out, ".");
        pkv_text_bytes(out, digits, length);
    }
}

/* Do these digits read back to the number? The point of another locale is made one on the way. */
static bool reads_back(char *digits, double number)
{
    double back = 0;

    for (char *c = digits; *c; c++)
        if (!strchr("0123456789+-eE", *c))
            *c = '.';
    return pkv_parse_double(digits, strlen(digits), &back, NULL) == 0 && !(back < number) &&
           !(back > number);
}

/* The fewest digits that read back to the same double, with an exponent only where there would be
 * many zeros. */
static void write_double(struct pkv_text *out, double number)
{
    char digits[64];
    bool found = false;

    for (int decimals = 0; decimals <= 17 && number < 1e15 && !found; decimals++) {
        snprintf(digits, sizeof(digits), "%.*f", decimals, number);
        found = reads_back(digits, number);
    }
    for (int precision = 1; precision <= 17 && !found; precision++) {
        snprintf(digits, sizeof(digits), "%.*g", precision, number);
        found = reads_back(digits, number);
    }
    pkv_text_add(out, digits);
}

/* In the largest unit that leaves no rest. */
static void write_time(struct pkv_text *out, uint64_t ns)
{
    static const struct { uint64_t ns; const char *name; } units[] = {
        { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" }
    };
    size_t i = 0;

    while (ns % units[i].ns > 0)
        i++;
    pkv_text_u64(out, ns / units[i].ns);
    pkv_text_add(out, units[i].name);
}

static void write_priorities(struct pkv_text *out, const struct pkv_synth_config *synth)
{
    pkv_text_add(out, "[");
    for (size_t i = 0; i < synth->num_priorities; i++) {
        pkv_text_fmt(out, "%s{priority: %" PRId64 ", weight: ", i ? ", " : "",
                     synth->priorities[i]);
        write_double(out, synth->priority_weights[i]);
        pkv_text_add(out, "}");
    }
    pkv_text_add(out, "]");
}

static void write_accepted(struct pkv_text *out, const struct pkv_speculation *speculation)
{
    for (uint32_t i = 0; i < speculation->num_accepted; i++)
        pkv_text_fmt(out, "%s%" PRIu32, i ? ", " : "[", speculation->accepted[i]);
    pkv_text_add(out, "]");
}

static void write_model(struct pkv_text *out, const char *model)
{
    struct pkv_kv_model known;

    if (pkv_kv_model_find(model, &known))
        pkv_text_json(out, known.name);
    else
        write_path(out, model);
}

static void write_numbers(struct pkv_text *out, const uint64_t *numbers, size_t num,
                          const char *unit)
{
    pkv_text_add(out, "[");
    for (size_t i = 0; i < num; i++)
        pkv_text_fmt(out, "%s%" PRIu64 "%s", i > 0 ? ", " : "", numbers[i], unit);
    pkv_text_add(out, "]");
}

/* A model's groups may have blocks of other sizes than the general one. */
static uint64_t u32_value(const struct pkv_scenario *s, enum key_id id)
{
    return id == KEY_BLOCK_SIZE && s->kv ? s->kv->block_size
                                         : *(const uint32_t *)key_field(s, id);
}

static void write_tenants(struct pkv_text *out, const struct pkv_synth_config *synth)
{
    pkv_text_add(out, "[");
    for (size_t i = 0; i < synth->num_tenants; i++) {
        const struct pkv_synth_tenant *tenant = &synth->tenants[i];

        pkv_text_add(out, i ? ", {name: " : "{name: ");
        pkv_text_json(out, tenant->name);
        pkv_text_add(out, ", weight: ");
        write_double(out, tenant->weight);
        if (tenant->has_priority)
            pkv_text_fmt(out, ", priority: %" PRId64, tenant->priority);
        pkv_text_add(out, "}");
    }
    pkv_text_add(out, "]");
}

static void write_value(struct pkv_text *out, const struct pkv_scenario *s, enum key_id id)
{
    const void *at = key_field(s, id);
    const char *format = s->trace_options.format;

    switch (keys[id].kind) {
    case KIND_TEXT:       pkv_text_json(out, *(char *const *)at); break;
    case KIND_PATH:       write_path(out, *(char *const *)at); break;
    case KIND_BOOL:       pkv_text_add(out, *(const bool *)at ? "true" : "false"); break;
    case KIND_U32:        pkv_text_u64(out, u32_value(s, id)); break;
    case KIND_U64:        pkv_text_u64(out, *(const uint64_t *)at); break;
    case KIND_BYTES:
        pkv_text_u64(out, *(const uint64_t *)at);
        pkv_text_add(out, key_is_named_bytes(&keys[id]) ? "" : "B");
        break;
    case KIND_DOUBLE:     write_double(out, *(const double *)at); break;
    case KIND_MS:         write_fraction(out, *(const uint64_t *)at, NS_PER_MS); break;
    case KIND_NS:         pkv_text_u64(out, *(const uint64_t *)at); break;
    case KIND_TIME:       write_time(out, *(const uint64_t *)at); break;
    case KIND_TIME_OR_END:
        if (*(const uint64_t *)at > 0)
            write_time(out, *(const uint64_t *)at);
        else
            pkv_text_add(out, "end");
        break;
    case KIND_WORD:       pkv_text_add(out, keys[id].words[*(const unsigned *)at]); break;
    case KIND_CHOICE:
        pkv_text_add(out, pkv_policies_get(&s->sched.policies, keys[id].choice)->name);
        break;
    case KIND_PRESET:     pkv_text_add(out, s->preset); break;
    case KIND_FORMAT:     pkv_text_add(out, format ? format : "auto"); break;
    case KIND_SPEEDUP:
        write_fraction(out, s->trace_options.speedup_num, s->trace_options.speedup_den);
        break;
    case KIND_GROUPS:     groups_write(out, &s->sched); break;
    case KIND_BUDGET:     write_numbers(out, s->kv->pools, s->kv->num_pools, "B"); break;
    case KIND_MODEL:      write_model(out, s->kv_model); break;
    case KIND_STAGES:     write_numbers(out, s->kv->stage_layers, s->kv_num_stages, ""); break;
    case KIND_PRIORITIES: write_priorities(out, &s->synth); break;
    case KIND_ACCEPTED:   write_accepted(out, &s->sched.speculation); break;
    case KIND_TENANTS:    write_tenants(out, &s->synth); break;
    case KIND_NONE: case KIND_GPU_BLOCKS: case KIND_SCHEDULING_POLICY: case KIND_FULL_ISL:
    case KIND_VARY:
        PKV_UNREACHABLE("this key is not written");
    }
}

/* Is there a value to write? What may be left out and has no default is 0 when it was. */
static bool has_value(const struct pkv_scenario *s, enum key_id id)
{
    const void *at = key_field(s, id);

    if (!key_applies(s, id) || (id == KEY_NUM_BLOCKS && s->kv && s->kv->num_pools > 0) ||
        (id == KEY_GROUPS && s->kv))
        return false;
    switch (keys[id].kind) {
    case KIND_TEXT: case KIND_PATH: case KIND_MODEL: return *(char *const *)at != NULL;
    case KIND_STAGES: return s->kv_num_stages > 0;
    case KIND_BUDGET: return s->kv && s->kv->num_pools > 0;
    case KIND_U64: case KIND_MS: case KIND_TIME:
        return keys[id].standard || keys[id].required || *(const uint64_t *)at > 0;
    case KIND_PRIORITIES: return s->synth.num_priorities > 0;
    case KIND_ACCEPTED: return s->sched.speculation.num_accepted > 0;
    case KIND_TENANTS:    return s->synth.num_tenants > 0;
    case KIND_BOOL: case KIND_U32: case KIND_DOUBLE: case KIND_NS: case KIND_TIME_OR_END: case KIND_WORD:
    case KIND_BYTES:
    case KIND_CHOICE: case KIND_PRESET: case KIND_FORMAT: case KIND_SPEEDUP: case KIND_GROUPS:
        return true;
    case KIND_NONE: case KIND_GPU_BLOCKS: case KIND_SCHEDULING_POLICY: case KIND_FULL_ISL:
    case KIND_VARY:
        break;
    }
    return false;
}

/* Headings of the sections that begin with this key, and its own name. Returns the depth. */
static unsigned write_name(struct pkv_text *out, const char *name, const char *former)
{
    unsigned depth = 0;
    const char *part = name;
    bool same = true;

    for (const char *dot = strchr(part, '.'); dot; dot = strchr(part, '.')) {
        size_t end = (size_t)(dot - name) + 1;

        same = same && strncmp(name, former, end) == 0;
        if (!same)
            pkv_text_fmt(out, "%*s%.*s:\n", (int)(2 * depth), "", (int)(dot - part), part);
        part = dot + 1;
        depth++;
    }
    pkv_text_fmt(out, "%*s%s: ", (int)(2 * depth), "", part);
    return depth;
}

static void write_params(struct pkv_text *out, const struct pkv_scenario *s,
                         enum pkv_choice choice, unsigned depth)
{
    const struct pkv_policies *policies = &s->sched.policies;
    const struct pkv_policy_info *policy = pkv_policies_get(policies, choice);
    char value[32];

    for (size_t i = 0; i < policy->num_params; i++) {
        pkv_policy_param_write(&policy->params[i], policies->params[choice][i], value,
                               sizeof(value));
        pkv_text_fmt(out, "%*s%s: %s\n", (int)(2 * depth), "", policy->params[i].name, value);
    }
}

char *pkv_scenario_resolved(const struct pkv_scenario *scenario, struct pkv_err *err)
{
    struct pkv_text out = { .text = NULL };
    const char *former = "";

    pkv_text_fmt(&out, "# Every key of the run. num_gpu_blocks, which counts the null block, is "
                 "%" PRIu64 ".\n",
                 (uint64_t)scenario->sched.num_blocks + scenario->sched.has_null_block);
    for (int i = KEY_NONE + 1; i < KEY_COUNT; i++) {
        enum key_id id = (enum key_id)i;
        unsigned depth;

        if (!has_value(scenario, id))
            continue;
        depth = write_name(&out, keys[id].name, former);
        write_value(&out, scenario, id);
        pkv_text_add(&out, "\n");
        if (keys[id].kind == KIND_CHOICE)
            write_params(&out, scenario, keys[id].choice, depth);
        former = keys[id].name;
    }
    if (!out.failed)
        return out.text;
    pkv_text_free(&out);
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory while writing out the scenario");
    return NULL;
}

int pkv_scenario_check_paths(const struct pkv_scenario *scenario, struct pkv_err *err)
{
    struct pkv_text whole = { .text = NULL };
    int result = 0;

    for (int i = KEY_NONE + 1; i < KEY_COUNT && result == 0; i++) {
        enum key_id id = (enum key_id)i;

        if ((keys[id].kind != KIND_PATH && keys[id].kind != KIND_MODEL) || !has_value(scenario, id))
            continue;
        pkv_text_clear(&whole);
        add_whole_path(&whole, *(char *const *)key_field(scenario, id));
        if (whole.failed)
            result = pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a path");
        else if (!pkv_is_utf8(whole.text, whole.length, NULL))
            result = pkv_fail_at(err, whole.text, 0, 0, "this path is not UTF-8, so scenario.yaml "
                                 "cannot name it; rename it, or leave scenario.yaml out (--files)");
    }
    pkv_text_free(&whole);
    return result;
}

/* Of a folder that is named one file is read. */
static int spare_warm(const char *warm, const char *dir, const char *name, struct pkv_err *err)
{
    struct pkv_text path = { .text = NULL };
    int result;

    pkv_text_fmt(&path, "%s/" PKV_CACHE_FILE, warm);
    result = path.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a path")
                         : pkv_out_spare(dir, name, path.text, err);
    pkv_text_free(&path);
    return result;
}

int pkv_scenario_spare(const struct pkv_scenario *scenario, const char *path, const char *dir,
                       const char *name, struct pkv_err *err)
{
    int result = pkv_out_spare(dir, name, path, err);

    for (int i = KEY_NONE + 1; i < KEY_COUNT && result == 0; i++) {
        enum key_id id = (enum key_id)i;

        if (id == KEY_WARM && has_value(scenario, id))
            result = spare_warm(scenario->warm, dir, name, err);
        else if ((keys[id].kind == KIND_PATH || keys[id].kind == KIND_MODEL) &&
                 has_value(scenario, id))
            result = pkv_out_spare(dir, name, *(char *const *)key_field(scenario, id), err);
    }
    return result;
}

void pkv_scenario_free_text(char *text)
{
    pkv_free(text);
}

/* The part of a line that is a folder in a trace's or a config's path: from, to. Empty for other
 * lines. */
static void find_folder(const char *line, size_t length, size_t *out_from, size_t *out_to)
{
    static const char *const names[] = { "trace: \"", "model: \"", "warm: \"" };
    size_t at = strspn(line, " "), i = 0, num = sizeof(names) / sizeof(*names);

    *out_from = *out_to = 0;
    while (i < num && strncmp(line + at, names[i], strlen(names[i])) != 0)
        i++;
    if (i == num)
        return;
    *out_from = *out_to = at + strlen(names[i]);
    for (at = *out_from; at < length; at++)
        if (line[at] == '/')
            *out_to = at + 1;
}

void pkv_scenario_sha256(const char *resolved, char out[65])
{
    SHA2_CTX context;

    SHA256Init(&context);
    while (*resolved) {
        size_t length = strcspn(resolved, "\n"), from, to;

        length += resolved[length] == '\n';
        find_folder(resolved, length, &from, &to);
        SHA256Update(&context, (const uint8_t *)resolved, from);
        SHA256Update(&context, (const uint8_t *)resolved + to, length - to);
        resolved += length;
    }
    SHA256End(&context, out);
}
