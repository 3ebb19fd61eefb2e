/*
 * startup_log.c - what vLLM or SGLang printed when it started, as far as it is about memory.
 *
 * Lines are looked through for known phrases, and for settings written key=value or 'key': value;
 * colours and whatever stands before them do not matter. Of a figure that is printed more than once
 * the last one counts, but for memory, which every rank prints. Later versions of an engine may
 * word things anew: what is not recognised is not there.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "pagedkv/scenario.h"

/* Digits, with commas between them. False = none. */
static bool take_count(const char **text, uint64_t *out)
{
    const char *c = *text;
    uint64_t n = 0;

    if (!isdigit((unsigned char)*c))
        return false;
    for (; isdigit((unsigned char)*c) || (*c == ',' && isdigit((unsigned char)c[1])); c++)
        if (*c != ',') {
            if (n > (UINT64_MAX - 9) / 10)
                return false;
            n = n * 10 + (uint64_t)(*c - '0');
        }
    *text = c;
    *out = n;
    return true;
}

/* A decimal in hundredths; further digits are left out. */
static bool take_hundredths(const char *text, uint32_t *out)
{
    uint64_t whole;
    uint32_t part = 0;

    if (!take_count(&text, &whole) || whole > UINT32_MAX / 200)
        return false;
    if (*text == '.' && isdigit((unsigned char)text[1])) {
        part = (uint32_t)(text[1] - '0') * 10;
        if (isdigit((unsigned char)text[2]))
            part += (uint32_t)(text[2] - '0');
    }
    *out = (uint32_t)whole * 100 + part;
    return true;
}

static const char *after(const char *line, const char *phrase)
{
    const char *found = strstr(line, phrase);

    return found ? found + strlen(phrase) : NULL;
}

/* The value of a setting, written key=value, 'key': value or "key": value; NULL = not in the line. */
static const char *setting(const char *line, const char *key)
{
    size_t length = strlen(key);

    for (const char *at = line; (at = strstr(at, key)) != NULL; at += length) {
        const char *end = at + length;

        if (at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
            continue;
        end += *end == '\'' || *end == '"';
        if (*end != '=' && *end != ':')
            continue;
        for (end++; *end == ' ';)
            end++;
        return end;
    }
    return NULL;
}

static void set_count(const char *line, const char *key, uint64_t *out)
{
    const char *value = setting(line, key);

    if (value)
        take_count(&value, out);
}

static void set_u32(const char *line, const char *key, uint32_t *out)
{
    uint64_t n = *out;

    set_count(line, key, &n);
    if (n <= INT32_MAX)
        *out = (uint32_t)n;
}

/* A word, in quotes or not. */
static void set_word(const char *line, const char *key, char *out, size_t size)
{
    const char *value = setting(line, key);
    size_t length;

    if (!value)
        return;
    value += *value == '\'' || *value == '"';
    length = strcspn(value, "'\", )}\n");
    if (length > 0 && length < size && strncmp(value, "None", 4) != 0) {
        memcpy(out, value, length);
        out[length] = '\0';
    }
}

static void phrase_count(const char *line, const char *phrase, uint64_t *out)
{
    const char *value = after(line, phrase);

    if (value)
        take_count(&value, out);
}

static void add_memory(struct pkv_startup_log *log, const char *value)
{
    uint32_t hundredths;

    if (value && take_hundredths(value, &hundredths) && log->num_memories < PKV_LOG_MAX_MEMORIES)
        log->memories[log->num_memories++] = hundredths;
}

static void read_concurrency(struct pkv_startup_log *log, const char *line)
{
    const char *value = after(line, "aximum concurrency for ");
    uint64_t length;

    if (!value || !take_count(&value, &length))
        return;
    value = after(value, "per request: ");
    if (value && take_hundredths(value, &log->concurrency_hundredths))
        log->concurrency_len = length;
}

/* "#tokens: 367404, K size: 8.23 GB, V size: 8.23 GB"; latent caches have one size. It says GB and
 * means GiB. */
static void read_sglang(struct pkv_startup_log *log, const char *line)
{
    const char *k = after(line, ", K size: "), *v = after(line, ", V size: ");
    const char *both = after(line, "KV size: ");
    uint32_t sum = 0, part = 0;
    uint64_t tokens = 0;

    phrase_count(line, "#tokens: ", &tokens);
    if (tokens == 0)
        set_count(line, "max_total_num_tokens", &tokens);
    if (tokens == 0)
        return;
    log->is_sglang = true;
    log->tokens = tokens;
    if (k && v && take_hundredths(k, &sum) && take_hundredths(v, &part))
        log->memories[0] = sum + part;
    else if (both && take_hundredths(both, &sum))
        log->memories[0] = sum;
    else
        return;
    log->num_memories = 1;
}

static void read_vllm(struct pkv_startup_log *log, const char *line)
{
    uint64_t block_size = 0;

    phrase_count(line, "# GPU blocks: ", &log->num_gpu_blocks);
    phrase_count(line, "# cuda blocks: ", &log->num_gpu_blocks);
    phrase_count(line, "# CPU blocks: ", &log->num_cpu_blocks);
    phrase_count(line, "num_gpu_blocks is: ", &log->num_gpu_blocks);
    set_count(line, "num_gpu_blocks_override", &log->num_gpu_blocks);
    phrase_count(line, "KV cache size: ", &log->tokens);
    add_memory(log, after(line, "vailable KV cache memory: "));
    add_memory(log, after(line, "reserved for KV Cache is "));
    set_count(line, "kv_cache_memory_bytes", &log->memory_bytes);
    set_count(line, "KV_CACHE_MEMORY_BYTES", &log->memory_bytes);
    phrase_count(line, "etting attention block size to ", &block_size);
    if (block_size > 0 && block_size <= 1u << 20)
        log->block_size = (uint32_t)block_size;
    read_concurrency(log, line);
}

static void read_settings(struct pkv_startup_log *log, const char *line)
{
    const char *cache = setting(line, "enable_prefix_caching");

    if (!log->model[0])
        set_word(line, "model", log->model, sizeof(log->model));
    if (!log->model[0])
        set_word(line, "model_path", log->model, sizeof(log->model));
    set_word(line, "kv_cache_dtype", log->kv_dtype, sizeof(log->kv_dtype));
    set_word(line, "dtype", log->dtype, sizeof(log->dtype));
    set_count(line, "max_seq_len", &log->max_model_len);
    set_count(line, "max_model_len", &log->max_model_len);
    set_count(line, "context_len", &log->max_model_len);
    set_count(line, "max_num_batched_tokens", &log->max_num_batched_tokens);
    set_u32(line, "tensor_parallel_size", &log->tp);
    set_u32(line, "tp_size", &log->tp);
    set_u32(line, "pipeline_parallel_size", &log->pp);
    set_u32(line, "pp_size", &log->pp);
    set_u32(line, "decode_context_parallel_size", &log->dcp);
    set_u32(line, "num_speculative_tokens", &log->num_speculative_tokens);
    set_u32(line, "block_size", &log->block_size);
    set_u32(line, "page_size", &log->block_size);
    log->async_scheduling |= strstr(line, "Asynchronous scheduling is enabled") != NULL;
    if (cache)
        log->prefix_cache_off = strncmp(cache, "False", 5) == 0;
}

/* Without the sequences that colour a terminal. */
static void strip_colours(char *line)
{
    char *out = line;

    for (char *c = line; *c; c++) {
        if (c[0] == '\033' && c[1] == '[') {
            while (*c && !isalpha((unsigned char)*c))
                c++;
            if (!*c)
                break;
            continue;
        }
        *out++ = *c;
    }
    *out = '\0';
}

static void read_text(struct pkv_startup_log *log, char *text)
{
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');

        if (end)
            *end = '\0';
        strip_colours(line);
        read_settings(log, line);
        read_vllm(log, line);
        read_sglang(log, line);
        line = end ? end + 1 : NULL;
    }
}

#define MAX_BYTES (64u << 20)

static int load(const char *path, struct pkv_text *out, struct pkv_err *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char piece[16384];
    size_t num;
    int failed;

    if (!file)
        return pkv_fail_at(err, path, 0, 0, "this log cannot be opened");
    while ((num = fread(piece, 1, sizeof(piece), file)) > 0 && out->length < MAX_BYTES) {
        for (size_t i = 0; i < num; i++)
            piece[i] = piece[i] == '\0' || piece[i] == '\r' ? ' ' : piece[i];
        pkv_text_bytes(out, piece, num);
    }
    failed = ferror(file);
    if (file != stdin)
        fclose(file);
    if (failed)
        return pkv_fail_at(err, path, 0, 0, "this log cannot be read");
    return out->failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a log") : 0;
}

int pkv_startup_log_read(const char *path, struct pkv_startup_log *out, struct pkv_err *err)
{
    struct pkv_text text = { .text = NULL };
    int result = load(path, &text, err);

    *out = (struct pkv_startup_log){ .tp = 0 };
    if (result == 0 && text.text)
        read_text(out, text.text);
    pkv_text_free(&text);
    if (result < 0)
        return -1;
    if (out->max_model_len == 0)
        out->max_model_len = out->concurrency_len;
    out->has_null_block = !out->is_sglang && out->num_cpu_blocks == 0;
    if (out->num_gpu_blocks == 0 && out->tokens == 0 && out->memory_bytes == 0 &&
        out->num_memories == 0)
        return pkv_fail_at(err, path, 0, 0, "no line of this log says how large the pool is, like "
                           "'GPU KV cache size: 42,656 tokens'");
    return 0;
}
