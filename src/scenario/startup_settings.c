/*
 * startup_settings.c - what a start-up log says of the engine: its model, its ranks, its scheduler.
 *
 * Of a setting that is printed more than once the last one counts, but of the model the first.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "scenario/startup_private.h"

/* Where a value in brackets ends, behind the last one. */
static char *end_of_brackets(char *open)
{
    int depth = 0;

    for (char *c = open; *c; c++) {
        depth += *c == '{' || *c == '(' || *c == '[';
        depth -= *c == '}' || *c == ')' || *c == ']';
        if (depth == 0)
            return c + 1;
    }
    return open + strlen(open);
}

/* Of numbers, as the engine's ranks, blocks and drafts are bounded where they are sized. */
#define MAX_RANKS 65536u
#define MAX_BLOCK_SIZE (1u << 20)
#define MAX_DRAFTS 4096u
#define MAX_TOKENS (UINT64_C(1) << 40)

static void keep_bad(struct startup_reader *r, const char *key, const char *digits, uint64_t most)
{
    int length = 0;

    if (r->bad_line > 0)
        return;
    r->bad_line = r->line;
    r->bad_most = most;
    snprintf(r->bad_key, sizeof(r->bad_key), "%.*s", (int)strcspn(key, ":"), key);
    while (isdigit((unsigned char)digits[length]) ||
           (digits[length] == ',' && isdigit((unsigned char)digits[length + 1])))
        length++;
    snprintf(r->bad_number, sizeof(r->bad_number), "%.*s", length, digits);
}

bool startup_take(struct startup_reader *r, const char *key, const char **text, uint64_t most,
                  uint64_t *out)
{
    const char *digits = *text;
    uint64_t n;

    if (!digits || !isdigit((unsigned char)*digits))
        return false;
    if (!line_take_count(text, &n) || n > most) {
        keep_bad(r, key, digits, most);
        return false;
    }
    *out = n;
    return true;
}

/* The line where it stood; 0 = it is not here. */
static uint64_t set_number(struct startup_reader *r, const char *line, const char *key, uint64_t most,
                           uint64_t *out)
{
    const char *digits = line_setting(line, key);

    return startup_take(r, key, &digits, most, out) || r->bad_line == r->line ? r->line : 0;
}

static void set_u32(struct startup_reader *r, const char *line, const char *key, uint32_t most,
                    uint32_t *out, uint64_t *out_line)
{
    uint64_t n = *out, at = set_number(r, line, key, most, &n);

    *out = (uint32_t)n;
    if (at > 0 && out_line)
        *out_line = at;
}

/* Of a method that is not named the model's name tells, as it does to the engine. */
static void read_drafts(struct startup_reader *r, const char *text)
{
    struct pkv_startup_log *log = r->log;
    char model[PKV_KV_NAME_SIZE] = "";

    set_u32(r, text, "num_speculative_tokens", MAX_DRAFTS, &log->num_speculative_tokens, NULL);
    set_u32(r, text, "num_spec_tokens", MAX_DRAFTS, &log->num_speculative_tokens, NULL);
    line_set_word(text, "method", log->draft_method, sizeof(log->draft_method));
    line_set_word(text, "model", model, sizeof(model));
    if (log->draft_method[0] || !model[0])
        return;
    strcpy(log->draft_method, strstr(model, "ngram") ? "ngram"
                              : strstr(model, "eagle") || strstr(model, "EAGLE") ? "eagle"
                                                                                 : "draft_model");
}

/* Settings of drafts and of compilation stand in brackets within the line and may be named like those
 * of the engine: they are read apart, and blank in the line afterwards. */
void startup_read_nested(struct startup_reader *r, char *line)
{
    static const char *const names[] = { "speculative_config", "speculative-config", "hf_overrides",
                                         "hf-overrides", "compilation_config",
                                         "compilation-config" };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *at = line;

        while ((at = strstr(at, names[i])) != NULL) {
            char *end, kept;

            at += strlen(names[i]);
            at += strspn(at, "'\": =");
            while (isalnum((unsigned char)*at) || *at == '_' || *at == '.')
                at++;
            if (*at != '{' && *at != '(')
                continue;
            end = end_of_brackets(at);
            kept = *end;
            *end = '\0';
            if (i < 2)
                read_drafts(r, at);
            *end = kept;
            memset(at, ' ', (size_t)(end - at));
        }
    }
}

static void read_switches(struct startup_reader *r, const char *line)
{
    struct pkv_startup_log *log = r->log;
    const char *cache = line_setting(line, "enable_prefix_caching");
    const char *radix = line_setting(line, "disable_radix_cache");
    const char *async = line_setting(line, "async_scheduling");
    const char *chunked = line_setting(line, "chunked_prefill_enabled");

    if (!chunked)
        chunked = line_setting(line, "enable_chunked_prefill");
    if (cache)
        log->prefix_cache_off = strncmp(cache, "False", 5) == 0;
    if (radix)
        log->prefix_cache_off = strncmp(radix, "True", 4) == 0;
    r->has_cache_word |= (cache && strncmp(cache, "None", 4) != 0) || radix;
    if (async)
        log->async_scheduling = strncmp(async, "True", 4) == 0;
    log->async_scheduling |= strstr(line, "Asynchronous scheduling is enabled") != NULL;
    if (chunked)
        log->chunked_prefill_off = strncmp(chunked, "False", 5) == 0;
}

void startup_read_settings(struct startup_reader *r, const char *line)
{
    struct pkv_startup_log *log = r->log;

    if (!log->model[0])
        line_set_word(line, "model", log->model, sizeof(log->model));
    if (!log->model[0])
        line_set_word(line, "model_path", log->model, sizeof(log->model));
    if (line_setting(line, "kv_cache_dtype"))
        log->kv_dtype_line = r->line;
    line_set_word(line, "kv_cache_dtype", log->kv_dtype, sizeof(log->kv_dtype));
    line_set_word(line, "dtype", log->dtype, sizeof(log->dtype));
    set_number(r, line, "max_seq_len", MAX_TOKENS, &log->max_model_len);
    set_number(r, line, "max_model_len", MAX_TOKENS, &log->max_model_len);
    set_number(r, line, "context_len", MAX_TOKENS, &log->max_model_len);
    set_number(r, line, "max_num_batched_tokens", MAX_TOKENS, &log->max_num_batched_tokens);
    set_number(r, line, "max_num_seqs", MAX_TOKENS, &log->max_num_seqs);
    set_number(r, line, "max_running_requests", MAX_TOKENS, &log->max_num_seqs);
    set_u32(r, line, "tensor_parallel_size", MAX_RANKS, &log->tp, &log->tp_line);
    set_u32(r, line, "tp_size", MAX_RANKS, &log->tp, &log->tp_line);
    set_u32(r, line, "pipeline_parallel_size", PKV_KV_MAX_STAGES, &log->pp, &log->pp_line);
    set_u32(r, line, "pp_size", PKV_KV_MAX_STAGES, &log->pp, &log->pp_line);
    set_u32(r, line, "decode_context_parallel_size", MAX_RANKS, &log->dcp, &log->dcp_line);
    set_u32(r, line, "num_speculative_tokens", MAX_DRAFTS, &log->num_speculative_tokens, NULL);
    set_u32(r, line, "block_size", MAX_BLOCK_SIZE, &log->block_size, NULL);
    set_u32(r, line, "page_size", MAX_BLOCK_SIZE, &log->block_size, NULL);
    read_switches(r, line);
}
