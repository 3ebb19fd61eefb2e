/*
 * startup_settings.c - what a start-up log says of the engine: its model, its ranks, its scheduler.
 *
 * Of a setting that is printed more than once the last one counts, but of the model the first.
 */
#include <ctype.h>
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

/* Of a method that is not named the model's name tells, as it does to the engine. */
static void read_drafts(struct pkv_startup_log *log, const char *text)
{
    char model[PKV_KV_NAME_SIZE] = "";

    line_set_u32(text, "num_speculative_tokens", &log->num_speculative_tokens);
    line_set_u32(text, "num_spec_tokens", &log->num_speculative_tokens);
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
void startup_read_nested(struct pkv_startup_log *log, char *line)
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
                read_drafts(log, at);
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
    line_set_count(line, "max_seq_len", &log->max_model_len);
    line_set_count(line, "max_model_len", &log->max_model_len);
    line_set_count(line, "context_len", &log->max_model_len);
    line_set_count(line, "max_num_batched_tokens", &log->max_num_batched_tokens);
    line_set_count(line, "max_num_seqs", &log->max_num_seqs);
    line_set_count(line, "max_running_requests", &log->max_num_seqs);
    line_set_u32(line, "tensor_parallel_size", &log->tp);
    line_set_u32(line, "tp_size", &log->tp);
    line_set_u32(line, "pipeline_parallel_size", &log->pp);
    line_set_u32(line, "pp_size", &log->pp);
    line_set_u32(line, "decode_context_parallel_size", &log->dcp);
    line_set_u32(line, "num_speculative_tokens", &log->num_speculative_tokens);
    line_set_u32(line, "block_size", &log->block_size);
    line_set_u32(line, "page_size", &log->block_size);
    read_switches(r, line);
}
