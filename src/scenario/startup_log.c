/*
 * startup_log.c - what vLLM or SGLang printed when it started, as far as it is about memory.
 *
 * Lines are looked through for known phrases, and for settings written key=value or 'key': value;
 * colours do not matter, and what stands before them only where it names a rank. Every rank prints
 * its memory, and with that may print its own tokens, of which the engine uses the fewest. Where an
 * engine starts anew, or a rank prints its memory again, what was printed before is forgotten. Later
 * versions of an engine may word things anew: what is not recognised is not there.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "scenario/startup_private.h"

#define MAX_PLACES 9u    /* of GiB: the tenth is less than a byte */

#define MAX_GIB (1u << 30)
#define MAX_BYTES (UINT64_C(1) << 60)
#define MAX_COUNT (UINT64_C(1) << 52)   /* of tokens and blocks */

static bool take_memory(struct startup_reader *r, const char *key, const char *text,
                        struct pkv_log_memory *out)
{
    uint64_t n;
    uint32_t places = 0;

    if (!startup_take(r, key, &text, MAX_GIB, &n))
        return false;
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text) && places < MAX_PLACES; text++, places++)
            n = n * 10 + (uint64_t)(*text - '0');
    *out = (struct pkv_log_memory){ .printed = n, .places = places, .num_terms = 1 };
    return true;
}

/* Both rounded, so their sum is as far off as both together. */
static struct pkv_log_memory add_up(struct pkv_log_memory a, struct pkv_log_memory b)
{
    for (; a.places < b.places; a.places++)
        a.printed *= 10;
    for (; b.places < a.places; b.places++)
        b.printed *= 10;
    a.printed += b.printed;
    a.num_terms += b.num_terms;
    return a;
}

/* ---- memory, rank by rank ---- */

/* "TP3", "_PP1" or "rank=2" before `end`; -1 = there is no such mark. */
static int32_t find_mark(const char *line, const char *end, const char *word, bool in_names)
{
    size_t length = strlen(word);

    for (const char *at = line; (at = strstr(at, word)) != NULL && at < end; at += length) {
        const char *digits = at + length;
        uint64_t n;

        if (at > line && (isalnum((unsigned char)at[-1]) || (at[-1] == '_' && !in_names)))
            continue;
        digits += !in_names && (*digits == '=' || *digits == ' ');
        if (line_take_count(&digits, &n) && n < INT32_MAX)
            return (int32_t)n;
    }
    return -1;
}

static void mark(struct pkv_log_memory *memory, const char *line, const char *end)
{
    memory->stage = find_mark(line, end, "PP", true);
    memory->tp_rank = find_mark(line, end, "TP", true);
    memory->rank = find_mark(line, end, "rank", false);
    if (memory->rank < 0)
        memory->rank = find_mark(line, end, "Rank", false);
}

static bool is_marked(const struct pkv_log_memory *m)
{
    return m->stage >= 0 || m->tp_rank >= 0 || m->rank >= 0;
}

/* Where the same rank stands already; num_memories = nowhere. */
static uint32_t find_rank(const struct pkv_startup_log *log, const struct pkv_log_memory *m)
{
    uint32_t i = 0;

    while (i < log->num_memories && (!is_marked(m) || log->memories[i].stage != m->stage ||
                                     log->memories[i].tp_rank != m->tp_rank ||
                                     log->memories[i].rank != m->rank))
        i++;
    return i;
}

/* Has every rank printed its memory, and then somebody what it comes to? */
static bool is_told(const struct pkv_startup_log *log)
{
    return log->tp > 0 && log->num_memories >= log->tp * (uint64_t)(log->pp > 0 ? log->pp : 1);
}

static void forget(struct pkv_startup_log *log)
{
    log->tokens = log->num_gpu_blocks = log->num_cpu_blocks = log->concurrency_len = 0;
    log->concurrency_hundredths = log->num_memories = 0;
    log->is_overridden = false;
}

static void add_memory(struct startup_reader *r, const struct pkv_log_memory *memory)
{
    struct pkv_startup_log *log = r->log;
    uint32_t at = find_rank(log, memory);
    bool is_again = at < log->num_memories || (!is_marked(memory) && is_told(log));

    if (is_again && (log->tokens > 0 || log->num_gpu_blocks > 0)) {
        forget(log);
        at = 0;
    }
    if (at == PKV_LOG_MAX_MEMORIES) {
        r->overfull_line = r->line;
        return;
    }
    log->memories[at] = *memory;
    log->num_memories += at == log->num_memories;
}

/* A phrase may begin with a capital or not: the key, as errors have it, is the phrase without that. */
static void phrase_memory(struct startup_reader *r, const char *line, const char *phrase,
                          const char *key)
{
    const char *value = line_after(line, phrase);
    struct pkv_log_memory memory;

    if (!take_memory(r, key, value, &memory))
        return;
    mark(&memory, line, value);
    add_memory(r, &memory);
}

/* ---- what the memory comes to ---- */

/* Of what several ranks print of themselves the least is the engine's. */
static bool is_news(const struct pkv_startup_log *log, uint64_t former, uint64_t n)
{
    return former == 0 || log->num_memories < 2 || n <= former;
}

/* As startup_take(), of what stands behind a phrase, or of a setting. */
static bool phrase_count(struct startup_reader *r, const char *line, const char *phrase, uint64_t *out)
{
    const char *value = line_after(line, phrase);

    return startup_take(r, phrase, &value, MAX_COUNT, out);
}

static bool setting_count(struct startup_reader *r, const char *line, const char *key, uint64_t most,
                          uint64_t *out)
{
    const char *value = line_setting(line, key);

    return startup_take(r, key, &value, most, out);
}

static void read_tokens(struct startup_reader *r, const char *line)
{
    struct pkv_startup_log *log = r->log;
    uint64_t tokens = 0;

    phrase_count(r, line, "KV cache size: ", &tokens);
    if (tokens > 0 && is_news(log, log->tokens, tokens))
        log->tokens = tokens;
}

static void read_concurrency(struct startup_reader *r, const char *line)
{
    struct pkv_startup_log *log = r->log;
    const char *value = line_after(line, "aximum concurrency for "), *whole;
    uint32_t hundredths;
    uint64_t length, times;

    if (!startup_take(r, "maximum concurrency for", &value, MAX_COUNT, &length))
        return;
    value = whole = line_after(value, "per request: ");
    if (!startup_take(r, "maximum concurrency", &whole, UINT32_MAX / 200, &times) ||
        !line_take_hundredths(value, &hundredths) ||
        !is_news(log, log->concurrency_hundredths, hundredths))
        return;
    log->concurrency_hundredths = hundredths;
    log->concurrency_len = length;
}

#define MAX_TERMS 4u    /* K and V of two pools */

/* A rank that speaks of as many tokens once more has a pool for drafts beside the other one. */
static void add_pool(struct startup_reader *r, struct pkv_log_memory *memory, uint64_t tokens)
{
    struct pkv_startup_log *log = r->log;
    uint32_t at = is_marked(memory) ? find_rank(log, memory) : 0;

    if (at < log->num_memories && tokens == log->tokens &&
        log->memories[at].num_terms + memory->num_terms <= MAX_TERMS) {
        log->memories[at] = add_up(log->memories[at], *memory);
        return;
    }
    if (!is_marked(memory))
        log->num_memories = 0;
    add_memory(r, memory);
}

/* "#tokens: 367404, K size: 8.23 GB, V size: 8.23 GB"; latent caches have one size. It says GB and
 * means GiB. */
static void read_sglang(struct startup_reader *r, const char *line)
{
    const char *k = line_after(line, ", K size: "), *v = line_after(line, ", V size: ");
    const char *both = line_after(line, "KV size: ");
    struct pkv_log_memory memory = { .places = 0 }, part;
    uint64_t tokens = 0;
    bool has_memory;

    phrase_count(r, line, "#tokens: ", &tokens);
    if (tokens == 0)
        setting_count(r, line, "max_total_num_tokens", MAX_COUNT, &tokens);
    if (tokens == 0)
        return;
    has_memory = k && v ? take_memory(r, "K size", k, &memory) && take_memory(r, "V size", v, &part)
                        : take_memory(r, "KV size", both, &memory);
    if (has_memory) {
        if (k && v)
            memory = add_up(memory, part);
        mark(&memory, line, k && v ? k : both);
        add_pool(r, &memory, tokens);
    }
    r->log->is_sglang = true;
    r->log->tokens = tokens;
}

static void read_override(struct startup_reader *r, const char *line)
{
    struct pkv_startup_log *log = r->log;
    uint64_t blocks = 0;

    setting_count(r, line, "num_gpu_blocks_override", MAX_COUNT, &blocks);
    if (blocks == 0)
        return;
    log->num_gpu_blocks = blocks;
    log->is_overridden = true;
}

static void read_vllm(struct startup_reader *r, const char *line)
{
    struct pkv_startup_log *log = r->log;
    const char *size = line_after(line, "etting attention block size to ");
    uint64_t block_size = 0;

    phrase_memory(r, line, "vailable KV cache memory: ", "KV cache memory");
    phrase_memory(r, line, "reserved for KV Cache is ", "reserved for KV Cache");
    phrase_count(r, line, "# GPU blocks: ", &log->num_gpu_blocks);
    phrase_count(r, line, "# cuda blocks: ", &log->num_gpu_blocks);
    phrase_count(r, line, "# CPU blocks: ", &log->num_cpu_blocks);
    phrase_count(r, line, "num_gpu_blocks is: ", &log->num_gpu_blocks);
    read_override(r, line);
    setting_count(r, line, "kv_cache_memory_bytes", MAX_BYTES, &log->memory_bytes);
    setting_count(r, line, "KV_CACHE_MEMORY_BYTES", MAX_BYTES, &log->memory_bytes);
    if (startup_take(r, "attention block size", &size, 1u << 20, &block_size) && block_size > 0)
        log->block_size = (uint32_t)block_size;
    read_tokens(r, line);
    read_concurrency(r, line);
    r->is_v1 |= strstr(line, "V1 LLM engine") != NULL;
    r->is_v0 |= strstr(line, "# CPU blocks: ") || strstr(line, "reserved for KV Cache is ") ||
                strstr(line, "V0 LLM engine") || strstr(line, "nitializing an LLM engine");
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

/* Behind the colours a column would be another one. */
static void read_line(struct startup_reader *r, char *line)
{
    const char *dtype = line_setting(line, "kv_cache_dtype");

    r->line++;
    if (dtype)
        r->log->kv_dtype_column = (uint32_t)(dtype - line) + 1 + (*dtype == '\'' || *dtype == '"');
    strip_colours(line);
    if (strstr(line, "LLM engine (v") || strstr(line, "server_args="))
        forget(r->log);
    startup_read_nested(r, line);
    startup_read_settings(r, line);
    read_vllm(r, line);
    read_sglang(r, line);
}

/* Whoever writes a log, or cut it, may stop within a number or a word: the last one of a line that does
 * not end counts only where a sign behind it closes it. */
static void drop_unfinished(struct pkv_text *text)
{
    size_t length = text->length;

    if (length > 1 && text->text[length - 1] == 'x' && isdigit((unsigned char)text->text[length - 2]))
        return;
    while (length > 0 && !strchr(" \t\n)]}'\"", text->text[length - 1]))
        length--;
    text->text[length] = '\0';
    text->length = length;
}

#define MAX_LINE_BYTES (64u << 20)

/* The lines that are whole; what is behind them is moved to the front. */
static void read_lines(struct startup_reader *r, struct pkv_text *text, bool is_last)
{
    char *line = text->text, *end;

    while ((end = memchr(line, '\n', text->length - (size_t)(line - text->text))) != NULL) {
        *end = '\0';
        read_line(r, line);
        line = end + 1;
    }
    text->length -= (size_t)(line - text->text);
    memmove(text->text, line, text->length + 1);
    if (is_last)
        drop_unfinished(text);
    if (is_last && text->length > 0)
        read_line(r, text->text);
}

static int read_file(struct startup_reader *r, const char *path, FILE *file, struct pkv_err *err)
{
    struct pkv_text text = { .text = NULL };
    char piece[65536];
    size_t num;
    int result = 0;

    while (result == 0 && (num = fread(piece, 1, sizeof(piece), file)) > 0) {
        for (size_t i = 0; i < num; i++)
            piece[i] = piece[i] == '\0' || piece[i] == '\r' ? ' ' : piece[i];
        pkv_text_bytes(&text, piece, num);
        if (text.failed)
            result = pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a log");
        else if (memchr(piece, '\n', num))
            read_lines(r, &text, false);
        else if (text.length > MAX_LINE_BYTES)
            result = pkv_fail_at(err, path, r->line + 1, 0, "this line of the log has more than 64 MiB");
    }
    if (result == 0 && ferror(file))
        result = pkv_fail_at(err, path, 0, 0, "this log cannot be read");
    if (result == 0 && text.text)
        read_lines(r, &text, true);
    pkv_text_free(&text);
    return result;
}

/* vLLM V0 kept prompts only when told to. */
static void settle(struct startup_reader *r)
{
    struct pkv_startup_log *log = r->log;
    bool is_v0 = !log->is_sglang && r->is_v0 && !r->is_v1;

    if (log->max_model_len == 0)
        log->max_model_len = log->concurrency_len;
    log->has_null_block = !log->is_sglang && !is_v0;
    log->prefix_cache_off |= is_v0 && !r->has_cache_word;
}

int pkv_startup_log_read(const char *path, struct pkv_startup_log *out, struct pkv_err *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    struct startup_reader r = { .log = out };
    int result;

    *out = (struct pkv_startup_log){ .tp = 0 };
    if (!file)
        return pkv_fail_at(err, path, 0, 0, "this log cannot be opened");
    result = read_file(&r, path, file, err);
    if (file != stdin)
        fclose(file);
    if (result < 0)
        return -1;
    if (r.overfull_line > 0)
        return pkv_fail_at(err, path, r.overfull_line, 0, "more than %u ranks print their memory",
                           PKV_LOG_MAX_MEMORIES);
    if (r.bad_line > 0)
        return pkv_fail_at(err, path, r.bad_line, 0, "%s: %s is above %llu", r.bad_key, r.bad_number,
                           (unsigned long long)r.bad_most);
    settle(&r);
    if (out->num_gpu_blocks == 0 && out->tokens == 0 && out->memory_bytes == 0 &&
        out->num_memories == 0)
        return pkv_fail_at(err, path, 0, 0, "no line of this log says how large the pool is, like "
                           "'GPU KV cache size: 42,656 tokens'");
    return 0;
}
