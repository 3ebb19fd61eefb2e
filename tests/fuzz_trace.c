/*
 * fuzz_trace.c - any bytes as a trace: no reader may crash, hang, leak or give a wrong row.
 *
 * The first byte chooses the reader and the options, the rest is the file, packed or not. With
 * -Dfuzz=true this is a libFuzzer target. Without, main() takes good files of every format and
 * damages them by a seeded stream: the same damage in every run.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pagedkv/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const struct pkv_request_spec *spec, uint64_t row, int64_t last_ns)
{
    uint64_t sum = 0;
    PKV_ASSERT(spec->row == row);
    PKV_ASSERT(spec->arrival_ns >= last_ns && spec->arrival_ns >= 0);
    PKV_ASSERT(spec->abort_ns == PKV_NO_TIME || spec->abort_ns >= spec->arrival_ns);
    PKV_ASSERT(spec->max_tokens > 0);
    PKV_ASSERT(!spec->id || *spec->id);
    PKV_ASSERT(!spec->tenant || *spec->tenant);
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        const struct pkv_span *span = &spec->content.prompt[i];
        PKV_ASSERT(span->count > 0 && span->count - 1 <= UINT32_MAX - span->first);
        sum += span->count;
    }
    PKV_ASSERT(sum > 0 && sum == spec->num_prompt_tokens);
}

static void read_all(const uint8_t *bytes, size_t size, const struct pkv_trace_options *options)
{
    struct pkv_err err = {0};
    struct pkv_request_spec spec;
    int64_t last_ns = 0;
    int more = -1;
    struct pkv_trace *t = pkv_trace_open_memory("fuzz", bytes, size, options, &err);
    if (t) {
        struct pkv_source source = pkv_trace_source(t);
        for (uint64_t row = 0; (more = source.next(source.ctx, &spec, &err)) > 0; row++) {
            check_row(&spec, row, last_ns);
            last_ns = spec.arrival_ns;
        }
    }
    PKV_ASSERT((more < 0) == (err.code != PKV_ERR_NONE));
    PKV_ASSERT(more == 0 || strlen(err.text) > 5);
    pkv_trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        NULL, "native", "mooncake", "azure", "burstgpt", "tokens", NULL, NULL,
    };
    if (size == 0)
        return 0;
    struct pkv_trace_options options = {
        .format = formats[data[0] & 7],
        .sort = data[0] & 8,
        .lenient_ids = data[0] & 16,
        .hash_block_size = data[0] & 32 ? 3 : 0,
        .speedup_num = data[0] & 64 ? 7 : 0,
        .speedup_den = data[0] & 128 ? 2 : 0,
    };
    read_all(data + 1, size - 1, &options);
    return 0;
}

#ifndef PKV_LIBFUZZER
#include "base/rng.h"

#define NUM_INPUTS 120000
#define MAX_SIZE 1024

static const char *const seeds[] = {
    "{\"timestamp\":0,\"input_length\":9,\"output_length\":3,\"hash_ids\":[18446744073709551615]}\n"
    "{\"timestamp\":1.25e1,\"input_length\":1300,\"output_length\":0,\"hash_ids\":[0,1,2]}\n",
    "{\"arrival_ms\":4,\"prompt\":[[\"g1\",32],[null,1]],\"output_tokens\":2,\"id\":\"r\\u00e91\","
    "\"max_tokens\":7,\"priority\":-1,\"deadline_ms\":9.5,\"salt\":\"a\",\"adapter\":\"b\","
    "\"tenant\":\"c\",\"abort_ms\":5}\n{\"timestamp\":5,\"prompt\":16,\"output_length\":1}\n",
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2024-05-10 00:00:00.009930+00:00,3180,8\r\n",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,\"Conversation, log\"\n45.5,ChatGPT,1087,0,1087,API log\n",
    "{\"id\":\"t1\",\"arrival_step\":15,\"prompt\":[[1099511627776,5],[4294967290,9]],"
    "\"max_tokens\":7,\"cache_salt\":\"x\",\"priority\":2,\"abort_step\":30}\n",
};
#define NUM_SEEDS (sizeof seeds / sizeof *seeds)

static const char *const words[] = {
    "0", "-1", "1.5", "1e99", "99999999999999999999", "2147483648", "null", "true", "\"\"", "[]",
    "{}", "[", "]", "}", ",", "\"", "\n", "\\u0000", "\xff", "NaN", "@prev", "session", "n",
};
#define NUM_WORDS (sizeof words / sizeof *words)

/* One change at a random place; returns the new size. */
static size_t damage(struct pkv_rng *rng, uint8_t *bytes, size_t size)
{
    size_t at = (size_t)pkv_rng_below(rng, size);
    size_t count = 1 + (size_t)pkv_rng_below(rng, 8);
    if (count > size - at)
        count = size - at;
    switch (pkv_rng_below(rng, 5)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << pkv_rng_below(rng, 8));
        return size;
    case 1:
        memmove(bytes + at, bytes + at + count, size - at - count);
        return size - count > 0 ? size - count : 1;
    case 2: {
        const char *word = words[pkv_rng_below(rng, NUM_WORDS)];
        size_t length = strlen(word);
        if (size + length > MAX_SIZE)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        memcpy(bytes + at, word, length);
        return size + length;
    }
    case 3:                                        /* say a part twice */
        if (size + count > MAX_SIZE)
            return size;
        memmove(bytes + at + count, bytes + at, size - at);
        return size + count;
    default:
        return at > 0 ? at : 1;                    /* cut */
    }
}

int main(void)
{
    struct pkv_rng rng;
    static uint8_t bytes[MAX_SIZE];
    pkv_rng_init(&rng, 1, "fuzz");
    for (int i = 0; i < NUM_INPUTS; i++) {
        const char *seed = seeds[pkv_rng_below(&rng, NUM_SEEDS)];
        size_t size = strlen(seed) + 1;
        /* Mostly found by content: a reader forced onto another's rows ends at once. */
        bytes[0] = (uint8_t)(pkv_rng_below(&rng, 4) ? pkv_rng_u64(&rng) & 0xf8 : pkv_rng_u64(&rng));
        memcpy(bytes + 1, seed, size - 1);
        for (uint64_t n = 1 + pkv_rng_below(&rng, 3); n > 0; n--)
            size = damage(&rng, bytes, size);
        uint8_t *exact = malloc(size);             /* so that a look beyond the end is seen */
        if (!exact)
            return EXIT_FAILURE;
        memcpy(exact, bytes, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    return EXIT_SUCCESS;
}
#endif
