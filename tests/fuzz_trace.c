/*
 * fuzz_trace.c - any bytes as a trace: no reader may crash, hang, leak or give a wrong row.
 *
 * The first byte chooses the reader and the options, the rest is the file, packed or not; rows are
 * then written in one format or another. With -Dfuzz=true this is a libFuzzer target, which keeps to
 * the one reader that PKV_FUZZ_FORMAT names. Without, main() takes good files of every format and
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
    PKV_ASSERT(spec->abort_ns == PKV_NO_TIME || spec->follows ||
               spec->abort_ns >= spec->arrival_ns);
    PKV_ASSERT(spec->delay_ns >= 0 && (!spec->follows || spec->session));
    PKV_ASSERT(spec->max_tokens > 0);
    PKV_ASSERT(!spec->id || *spec->id);
    PKV_ASSERT(!spec->tenant || *spec->tenant);
    PKV_ASSERT(!spec->session || *spec->session);
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        const struct pkv_span *span = &spec->content.prompt[i];
        PKV_ASSERT(span->count > 0 && span->count - 1 <= UINT32_MAX - span->first);
        sum += span->count;
    }
    PKV_ASSERT(sum > 0 && sum == spec->num_prompt_tokens);
}

/* What is kept beside the spans is what they are of. */
static void check_texts(const struct pkv_request_spec *spec, const struct pkv_trace_texts *texts)
{
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        const struct pkv_trace_text *of = &texts->spans[i];
        PKV_ASSERT(pkv_origin(of->kind, of->number) == spec->content.prompt[i].origin);
        PKV_ASSERT((of->kind == PKV_ORIGIN_NAME) == (of->name != NULL));
        PKV_ASSERT(!of->name || pkv_hash_name(of->name, strlen(of->name)) == of->number);
    }
    PKV_ASSERT(pkv_content_root(texts->salt, texts->adapter) == spec->content.root);
}

static int put(void *ctx, const char *bytes, size_t length, struct pkv_err *err)
{
    (void)err;
    PKV_ASSERT(length > 0 && bytes[0] != '\0');
    *(size_t *)ctx += length;
    return 0;
}

/* A writer for the trace that was opened; the format by its name's sake. */
static struct pkv_trace_writer *open_writer(const struct pkv_trace *t, size_t size,
                                            size_t *written)
{
    static const char *const formats[] = {
        "native", "mooncake", "dynamo", "bailian", "azure", "burstgpt", "vidur", "splitwise", "blis",
        "llmservingsim", "tokens",
    };
    struct pkv_trace_writer_config config = {
        .format = formats[size % (sizeof formats / sizeof *formats)],
        .from_block_size = pkv_trace_options(t)->hash_block_size, .put = put, .ctx = written,
    };
    struct pkv_trace_writer *w = pkv_trace_writer_create(&config, NULL);
    PKV_ASSERT(w != NULL);
    return w;
}

#define MAX_WRITTEN_TOKENS 4096u   /* some formats write every token */

static void read_all(const uint8_t *bytes, size_t size, const struct pkv_trace_options *options)
{
    struct pkv_err err = {0};
    struct pkv_request_spec spec;
    int64_t last_ns = 0;
    int more = -1;
    struct pkv_trace *t = pkv_trace_open_memory("fuzz", bytes, size, options, &err);
    if (t) {
        struct pkv_source source = pkv_trace_source(t);
        size_t written = 0;
        struct pkv_trace_writer *w = open_writer(t, size, &written);
        for (uint64_t row = 0; (more = source.next(source.ctx, &spec, &err)) > 0; row++) {
            check_row(&spec, row, last_ns);
            check_texts(&spec, pkv_trace_texts(t));
            last_ns = spec.arrival_ns;
            if (spec.num_prompt_tokens <= MAX_WRITTEN_TOKENS)
                PKV_ASSERT(pkv_trace_writer_row(w, &spec, pkv_trace_texts(t), NULL) == 0);
        }
        PKV_ASSERT(pkv_trace_writer_end(w, NULL) == 0);
        pkv_trace_writer_destroy(w);
    }
    PKV_ASSERT((more < 0) == (err.code != PKV_ERR_NONE));
    PKV_ASSERT(more == 0 || strlen(err.text) > 5);
    pkv_trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        NULL, "native", "azure", "tokens", "blis", "llmservingsim", "bailian", "csv",
    };
    static const char *const units[] = {NULL, "date", "ms", "ns"};
    if (size == 0)
        return 0;
    const char *forced = getenv("PKV_FUZZ_FORMAT");
    const char *format = forced ? forced : formats[data[0] & 7];
    bool told = format && strcmp(format, "csv") == 0;
    struct pkv_trace_options options = {
        .format = format,
        .columns = told ? "arrival=a,prompt=b,output=c,id=d,tenant=e,session=f,priority=g" : NULL,
        .time_unit = told ? units[data[0] >> 6] : NULL,
        .sessions = true,
        .keep_texts = true,
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
#include "damage.h"

#define NUM_INPUTS 200000
#define MAX_SIZE DAMAGE_MAX_SIZE

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
    "{\"created_time\":1.5,\"input_tokens\":600,\"output_tokens\":4,\"hash_ids\":[7,8],"
    "\"session_id\":\"a\",\"request_id\":\"r\"}\n"
    "{\"prompt\":[[\"@prev\",70],[null,3]],\"output_length\":5,\"session_id\":\"a\",\"delay\":20}\n",
    "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n5.8926549999999995,91,16\n",
    "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.85\n",
    "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
    "0,2,0,1,1,4096,32\n",
    "request_id,tenant_id,vllm_priority,session_id,round_index,prefix_group,prefix_length,"
    "input_tokens,output_tokens,deadline_us,slo_target_us,server_input_tokens,arrival_time_us,"
    "send_time_us,adapter\n0,t,3,s,0,g,128,307,20,9000,500,440,100,200,l\n"
    "1,,0,,0,,0,307,21,0,0,311,300,0,\n2,,0,s,1,,0,30,0,0,0,0,400,0,\"a, b\"\n",
    "{\"input_toks\":4,\"output_toks\":2,\"arrival_time_ns\":5,\"input_tok_ids\":[1,2,9,4294967296],"
    "\"output_tok_ids\":[3,4]}\n{\"session_id\":\"t\",\"arrival_time_ns\":10,\"sub_requests\":["
    "{\"input_toks\":1472,\"output_toks\":133,\"tool_duration_ns\":127348767},"
    "{\"input_toks\":1,\"output_toks\":125,\"tool_duration_ns\":0,\"input_tok_ids\":[7]}]}\n",
    "{\"chat_id\":159,\"parent_chat_id\":-1,\"timestamp\":61.114,\"input_length\":33,\"output_length\":"
    "132,\"type\":\"text\",\"turn\":1,\"hash_ids\":[1089,1090,1091]}\n{\"chat_id\":7,\"parent_chat_id\":"
    "159,\"timestamp\":62.5,\"input_length\":16,\"output_length\":80,\"turn\":2,\"hash_ids\":[1089]}\n",
    "sep=;\n\"a\"; b;c;d;e;f;g\n1700000000,5;7.0;3;x;\"y\";s;-1\n1700000001;1.234;4;;;;0\n;;;;;;\n",
    "a,b,c,d,e,f,g\n1.25,7,3,x,\"y \"\"z\"\"\",s,-1\n2,8,4,,,,0\n",
};
#define NUM_SEEDS (sizeof seeds / sizeof *seeds)

int main(void)
{
    struct pkv_rng rng;
    static uint8_t bytes[MAX_SIZE];
    pkv_rng_init(&rng, 1, "fuzz");
    for (int i = 0; i < NUM_INPUTS; i++) {
        size_t which = (size_t)pkv_rng_below(&rng, NUM_SEEDS);
        const char *seed = seeds[which];
        size_t size = strlen(seed) + 1;
        /* Mostly found by content: a reader forced onto another's rows ends at once. */
        bytes[0] = (uint8_t)(pkv_rng_below(&rng, 4) ? pkv_rng_u64(&rng) & 0xf8 : pkv_rng_u64(&rng));
        bytes[0] |= which >= NUM_SEEDS - 2 ? 7 : 0;       /* their columns must be told */
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
