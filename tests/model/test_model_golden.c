/*
 * test_model_golden.c - the model alone against the recorded logs of the real scheduler.
 *
 * Every recording whose prompts are written out is run
 * through the model and compared in all fields, line by line; so the model may judge the product.
 * The recordings of the older scheduler are used where its order is first come, first served.
 * Needs the recordings beside the source tree; without them the test is skipped.
 *
 *   test_model_golden [SOURCE_ROOT]
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "json_fields.h"
#include "model.h"

#define STEP_NS INT64_C(1000000)
#define SKIPPED 77

struct load {
    struct pkv_request_spec *specs;    /* [num], owned with what they point to */
    size_t num;
    char *salts[64];                   /* owned: those seen, root = place + 1 */
    size_t num_salts;
};

/* A whole file, plain or gzipped. NULL when there is none. */
static char *read_file(const char *path)
{
    size_t room = 1 << 16, length = 0;
    gzFile file = gzopen(path, "rb");
    char *text;
    int got;

    if (file == NULL)
        return NULL;
    text = malloc(room);
    while (text != NULL && (got = gzread(file, text + length, (unsigned)(room - length - 1))) > 0) {
        length += (size_t)got;
        if (room - length < 1 << 15)
            text = realloc(text, room *= 2);
    }
    gzclose(file);
    if (text == NULL)
        abort();
    text[length] = '\0';
    return text;
}

static char *read_beside(const char *folder, const char *name, const char *ending)
{
    char path[1024];
    char *text;

    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    text = read_file(path);
    if (text != NULL)
        return text;
    snprintf(path, sizeof path, "%s/%s%s.gz", folder, name, ending);
    return read_file(path);
}

/* The next line, its newline made a NUL. NULL at the end. */
static char *next_line(char **at)
{
    char *line = *at, *end;

    if (*line == '\0')
        return NULL;
    end = line + strcspn(line, "\n");
    *at = *end == '\n' ? end + 1 : end;
    *end = '\0';
    return line;
}

static uint64_t root_of(struct load *load, const struct json_field *salt)
{
    size_t i = 0;

    while (i < load->num_salts && strncmp(load->salts[i], salt->value, salt->value_length) != 0)
        i++;
    if (i == load->num_salts) {
        if (i == sizeof load->salts / sizeof load->salts[0])
            abort();
        load->salts[load->num_salts++] = strndup(salt->value, salt->value_length);
    }
    return i + 1;
}

static uint32_t read_prompt(const char *text, struct pkv_content *content)
{
    struct pkv_span *spans = calloc(strlen(text) / 2 + 1, sizeof *spans);
    uint32_t sum = 0;
    size_t num = 0;

    if (spans == NULL)
        abort();
    for (const char *p = text + 1; *p == '[' || *p == ','; p = strchr(p, ']') + 1) {
        unsigned long long first = 0, count = 0;

        p += *p == ',';
        if (sscanf(p, "[%llu,%llu]", &first, &count) != 2)
            abort();
        spans[num++] = (struct pkv_span){ first >> 32, (uint32_t)first, (uint32_t)count };
        sum += (uint32_t)count;
    }
    content->prompt = spans;
    content->num_prompt_spans = num;
    return sum;
}

static void read_request(struct load *load, const char *line)
{
    struct pkv_request_spec *spec = &load->specs[load->num];
    uint64_t first_output = (UINT64_C(1) << 40) + ((uint64_t)load->num << 20);
    int64_t abort_step = json_number(line, "abort_step", -1);
    struct json_field field;

    spec->row = load->num++;
    spec->id = json_find(line, "id", &field)
        ? strndup(field.value + 1, field.value_length - 2) : NULL;
    spec->arrival_ns = json_number(line, "arrival_step", 0) * STEP_NS;
    spec->abort_ns = abort_step < 0 ? PKV_NO_TIME : abort_step * STEP_NS;
    spec->priority = json_number(line, "priority", 0);
    spec->max_tokens = (uint32_t)json_number(line, "max_tokens", 0);
    spec->num_output_tokens = spec->max_tokens;
    spec->content.output_origin = first_output >> 32;
    spec->content.output_first = (uint32_t)first_output;
    if (json_find(line, "cache_salt", &field))
        spec->content.root = root_of(load, &field);
    if (!json_find(line, "prompt", &field))
        abort();
    spec->num_prompt_tokens = read_prompt(field.value, &spec->content);
}

static void read_load(struct load *load, char *text)
{
    size_t num = 0;
    char *line;

    for (const char *p = text; *p != '\0'; p++)
        num += *p == '\n';
    load->specs = calloc(num + 1, sizeof *load->specs);
    if (load->specs == NULL)
        abort();
    while ((line = next_line(&text)) != NULL)
        read_request(load, line);
}

static void free_load(struct load *load)
{
    for (size_t i = 0; i < load->num; i++) {
        free((void *)(uintptr_t)load->specs[i].id);
        free((void *)(uintptr_t)load->specs[i].content.prompt);
    }
    for (size_t i = 0; i < load->num_salts; i++)
        free(load->salts[i]);
    free(load->specs);
}

static enum model_group_kind kind_of(const char *group)
{
    if (json_is(group, "type", "\"full\""))
        return MODEL_GROUP_FULL;
    if (json_is(group, "type", "\"sliding\""))
        return MODEL_GROUP_SLIDING;
    if (json_is(group, "type", "\"chunked\""))
        return MODEL_GROUP_CHUNKED;
    abort();
}

static void read_groups(struct model_config *c, const char *text)
{
    struct json_field groups;
    const char *at, *end;

    if (!json_find(text, "groups", &groups))
        abort();
    end = groups.value + groups.value_length;
    for (at = strchr(groups.value, '{'); at != NULL && at < end; at = strchr(at + 1, '{')) {
        struct model_group *group = &c->groups[c->num_groups++];

        group->kind = kind_of(at);
        group->block_size = (uint32_t)json_number(at, "block_size", 0);
        group->size = (uint32_t)(json_number(at, "window", 0) + json_number(at, "chunk", 0));
    }
    model_groups_finish_config(c);
}

/* {"k": 3, "method": "eagle", "accept": [2, 0, 1]}; both methods ask for as many positions ahead. */
static void read_speculation(struct model_config *c, const char *text)
{
    const char *k = strstr(text, "\"k\":"), *accept = strstr(text, "\"accept\":");

    if (k == NULL || accept == NULL)
        return;
    c->num_drafts = c->lookahead = (uint32_t)strtoul(k + 4, NULL, 10);
    c->drops_last_hit = strstr(text, "\"eagle\"") != NULL;
    for (char *p = strchr(accept, '['); p != NULL && *p != ']'; c->num_accepted++) {
        c->accepted[c->num_accepted] = (uint32_t)strtoul(p + 1, &p, 10);
        p += strcspn(p, ",]");
    }
}

static void read_config(struct model_config *c, const char *text, bool old)
{
    bool priority = json_is(text, "policy", "\"priority\"");
    struct json_field field;
    double watermark = 0;

    c->order = priority ? MODEL_ORDER_PRIORITY : MODEL_ORDER_FCFS;
    c->preempt = priority ? MODEL_PREEMPT_PRIORITY : MODEL_PREEMPT_NEWEST;
    c->requeue = priority ? MODEL_REQUEUE_BY_ORDER : MODEL_REQUEUE_FRONT;
    c->admit = !old && json_is(text, "reserve_full_isl", "true") ? MODEL_ADMIT_WHOLE_PROMPT
                                                                  : MODEL_ADMIT_FIRST_CHUNK;
    c->skip_blocked_prefill = old;
    c->unhashed_to_head = !old;
    c->chunked_prefill = json_is(text, "enable_chunked_prefill", "true");
    c->prefix_cache = json_is(text, "enable_prefix_caching", "true");
    c->log_blocks = json_is(text, "log_blocks", "true");
    read_groups(c, text);
    c->keeps_chunk_end = old;
    c->num_blocks = (uint32_t)json_number(text, "num_blocks", 0) - 1;
    c->first_block_id = 1;
    if (!old && json_find(text, "watermark", &field))
        watermark = strtod(field.value, NULL);
    c->num_watermark_blocks = (uint32_t)(watermark * (c->num_blocks + 1));
    c->max_num_seqs = (uint32_t)json_number(text, "max_num_seqs", 0);
    c->max_num_batched_tokens = (uint32_t)json_number(text, "max_num_batched_tokens", 0);
    c->long_prefill_token_threshold =
        (uint32_t)json_number(text, "long_prefill_token_threshold", 0);
    if (c->long_prefill_token_threshold == 0)
        c->long_prefill_token_threshold = UINT32_MAX;
    c->max_model_len = (uint32_t)json_number(text, "max_model_len", 0);
    c->max_steps = (uint64_t)json_number(text, "max_steps", 0);
    c->stuck_steps = (uint32_t)json_number(text, "stuck_steps", 0);
    c->async = json_is(text, "async_scheduling", "true");
    c->row_ns = STEP_NS;
    c->lookahead_at_admission = !old;
    read_speculation(c, text);
    c->step_time = (struct pkv_step_time){ .law = PKV_STEP_TIME_FIXED, .fixed_ns = STEP_NS };
    c->every_step = true;
    c->log_step_ns = STEP_NS;
}

/* Nothing the model does not know, and prompts written out? */
static bool is_known(const char *config)
{
    struct json_field trace;

    return !json_find(config, "trace", &trace);
}

static int differs(const char *what, const char *recorded, const char *ours)
{
    struct json_field a, b;
    const char *name = json_first_difference(recorded, ours, &a, &b);

    if (name == NULL)
        return 0;
    printf("# %s, step %lld, field %s:\n#   recorded %.*s\n#   model    %.*s\n", what,
           (long long)json_number(recorded, "step", -1), name, (int)a.value_length, a.value,
           (int)b.value_length, b.value);
    return -1;
}

static int compare_log(const char *what, struct model *m, char *log)
{
    char *line, ours[128];

    while ((line = next_line(&log)) != NULL) {
        if (json_is(line, "stuck", "true")) {
            snprintf(ours, sizeof ours, "{\"step\":%lld,\"stuck\":%s,\"n_waiting\":%zu,"
                     "\"n_running\":%zu}", (long long)(model_row(m)->time_ns / STEP_NS),
                     model_totals(m).stuck ? "true" : "false", model_num_waiting(m),
                     model_num_running(m));
            if (differs(what, line, ours) < 0)
                return -1;
            continue;
        }
        if (!model_next(m)) {
            printf("# %s: the model ends before %s\n", what, line);
            return -1;
        }
        if (differs(what, line, model_line(m)) < 0)
            return -1;
    }
    if (!model_next(m))
        return 0;
    printf("# %s: the model goes on: %s\n", what, model_line(m));
    return -1;
}

/* 0 equal, -1 different, 1 no such recording. */
static int check_recording(const char *folder, const char *name, const char *config, bool old)
{
    char *log = read_beside(folder, name, old ? ".steps.v0110.jsonl" : ".steps.jsonl");
    char *requests = log != NULL ? read_beside(folder, name, ".requests.jsonl") : NULL;
    struct model_config c = { 0 };
    struct load load = { 0 };
    struct model *m;
    char what[256];
    int result;

    if (log == NULL || requests == NULL) {
        free(log);
        free(requests);
        return 1;
    }
    snprintf(what, sizeof what, "%s%s", name, old ? " (older scheduler)" : "");
    read_config(&c, config, old);
    read_load(&load, requests);
    m = model_create(&c, load.specs, load.num);
    result = compare_log(what, m, log);
    model_destroy(m);
    free_load(&load);
    free(requests);
    free(log);
    return result;
}

static int num_checked, num_failed;

static void report(const char *name, const char *tree, int result)
{
    if (result == 1)
        return;
    num_checked++;
    num_failed += result != 0;
    printf("%s %d - %s %s\n", result == 0 ? "ok" : "not ok", num_checked, name, tree);
}

static void check_scenario(const char *folder, const char *name)
{
    char *config = read_beside(folder, name, ".config.json");

    if (config != NULL && is_known(config)) {
        report(name, "new", check_recording(folder, name, config, false));
        if (json_is(config, "policy", "\"fcfs\""))
            report(name, "old", check_recording(folder, name, config, true));
    }
    free(config);
}

static int is_config(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), ending = strlen(".config.json");

    return length > ending && strcmp(entry->d_name + length - ending, ".config.json") == 0;
}

int main(int argc, char **argv)
{
    const char *shared = getenv("PKV_SHARED");
    struct dirent **entries = NULL;
    char folder[512];
    int num;

    snprintf(folder, sizeof folder, "%s%s/golden", shared != NULL ? shared : argc > 1 ? argv[1] : ".",
             shared != NULL ? "" : "/../shared");
    num = scandir(folder, &entries, is_config, alphasort);
    if (num < 0) {
        printf("1..0 # SKIP no recordings in %s\n", folder);
        return SKIPPED;
    }
    for (int i = 0; i < num; i++) {
        entries[i]->d_name[strlen(entries[i]->d_name) - strlen(".config.json")] = '\0';
        check_scenario(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    printf("1..%d\n", num_checked);
    return num_failed > 0 || num_checked == 0;
}
