/*
 * write_csv.c - rows with a header line: Azure, BurstGPT, Vidur, splitwise-sim, BLIS.
 *
 * Columns, units and order are those of read_csv.c's and read_blis.c's sources. Azure's dates begin
 * on 1970-01-01. Of what nobody told, BLIS gets what its own generator writes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/trace_private.h"
#include "trace/write_private.h"

#define BIT(loss) PKV_LOSS_BIT(loss)
#define NS_PER_US INT64_C(1000)

/* A row is a line: line breaks in a name become blanks. */
static void add_name(struct pkv_trace_writer *w, const char *name)
{
    struct pkv_text flat = {0};
    if (!strpbrk(name, "\r\n")) {
        pkv_text_csv(&w->text, name);
        return;
    }
    pkv_write_lose(w, PKV_LOSS_BREAKS);
    for (; *name; name++)
        pkv_text_bytes(&flat, *name == '\r' || *name == '\n' ? " " : name, 1);
    pkv_text_csv(&w->text, flat.text ? flat.text : "");
    w->text.failed |= flat.failed;
    pkv_text_free(&flat);
}

static void begin_azure(struct pkv_trace_writer *w)
{
    pkv_text_add(&w->text, "TIMESTAMP,ContextTokens,GeneratedTokens\n");
}

/* Days since 1970 to a date: the way back of date.c, with years that begin in March. */
static void add_date(struct pkv_text *t, int64_t ns)
{
    int64_t days = ns / PKV_NS_PER_S / 86400, clock = ns / PKV_NS_PER_S % 86400;
    int64_t shifted = days + 719468, cycle = shifted / 146097;
    int64_t day = shifted % 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    int64_t month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    month += month < 10 ? 3 : -9;
    pkv_text_fmt(t, "%04d-%02d-%02d %02d:%02d:%02d.%07d",
                 (int)(year + cycle * 400 + (month <= 2)), (int)month, (int)day + 1,
                 (int)(clock / 3600), (int)(clock / 60 % 60), (int)(clock % 60),
                 (int)(ns % PKV_NS_PER_S / 100));
}

static int row_azure(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                     const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    (void)texts;
    (void)err;
    add_date(&w->text, spec->arrival_ns);
    pkv_text_fmt(&w->text, ",%" PRIu32 ",%" PRIu32 "\n", spec->num_prompt_tokens,
                 spec->num_output_tokens);
    return 0;
}

static void add_seconds(struct pkv_text *t, int64_t ns)
{
    pkv_text_ratio(t, ns, PKV_NS_PER_S, 9);
}

static void begin_burstgpt(struct pkv_trace_writer *w)
{
    pkv_text_add(&w->text, "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n");
}

static int row_burstgpt(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                        const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    (void)texts;
    (void)err;
    add_seconds(&w->text, spec->arrival_ns);
    pkv_text_fmt(&w->text, ",-,%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",API log\n",
                 spec->num_prompt_tokens, spec->num_output_tokens,
                 (uint64_t)spec->num_prompt_tokens + spec->num_output_tokens);
    return 0;
}

static void begin_vidur(struct pkv_trace_writer *w)
{
    pkv_text_add(&w->text, "arrived_at,num_prefill_tokens,num_decode_tokens\n");
}

static int row_vidur(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                     const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    (void)texts;
    (void)err;
    add_seconds(&w->text, spec->arrival_ns);
    pkv_text_fmt(&w->text, ",%" PRIu32 ",%" PRIu32 "\n", spec->num_prompt_tokens,
                 spec->num_output_tokens);
    return 0;
}

static void begin_splitwise(struct pkv_trace_writer *w)
{
    pkv_text_add(&w->text, "request_id,request_type,application_id,arrival_timestamp,batch_size,"
                 "prompt_size,token_size\n");
}

/* Type 2 is inference with a language model. */
static int row_splitwise(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                         const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    char number[24];
    const char *id;
    (void)texts;
    (void)err;
    pkv_write_id(w, spec, number, &id);
    add_name(w, id);
    pkv_text_add(&w->text, ",2,0,");
    add_seconds(&w->text, spec->arrival_ns);
    pkv_text_fmt(&w->text, ",1,%" PRIu32 ",%" PRIu32 "\n", spec->num_prompt_tokens,
                 spec->num_output_tokens);
    return 0;
}

static void begin_blis(struct pkv_trace_writer *w)
{
    pkv_text_add(&w->text, "request_id,client_id,tenant_id,slo_class,vllm_priority,session_id,"
                 "round_index,prefix_group,prefix_length,streaming,input_tokens,output_tokens,"
                 "text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,"
                 "deadline_us,slo_target_us,server_input_tokens,arrival_time_us,send_time_us,"
                 "first_chunk_time_us,last_chunk_time_us,num_chunks,status,error_message,"
                 "finish_reason,adapter\n");
}

/* The name and length of what the prompt begins with; NULL = its own text. */
static const char *prefix_of(const struct pkv_request_spec *spec,
                             const struct pkv_trace_texts *texts, const struct pkv_trace_writer *w,
                             uint32_t *out_tokens)
{
    bool is_named = texts->spans[0].kind == PKV_ORIGIN_NAME &&
                    !(w->lost & BIT(PKV_LOSS_CONTENT));
    *out_tokens = is_named ? spec->content.prompt[0].count : 0;
    return is_named ? texts->spans[0].name : NULL;
}

/* 0 means none, so a time that comes out as 0 is lost; one that is cut is, too. */
static int64_t blis_us(struct pkv_trace_writer *w, int64_t ns, int64_t from_us,
                       enum pkv_trace_loss loss)
{
    int64_t us = ns / NS_PER_US - from_us;
    if (us <= 0 || ns % NS_PER_US != 0)
        pkv_write_lose(w, loss);
    return us < 0 ? 0 : us;
}

static void add_blis_times(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                           int64_t at_us)
{
    int64_t deadline_us = 0, target_us = 0;
    if (spec->abort_ns != PKV_NO_TIME)
        deadline_us = blis_us(w, spec->abort_ns, 0, PKV_LOSS_ABORT);
    if (spec->deadline_ns != PKV_NO_TIME)
        target_us = blis_us(w, spec->deadline_ns, at_us, PKV_LOSS_DEADLINE);
    pkv_text_fmt(&w->text, "%" PRId64 ",%" PRId64 ",0,%" PRId64 ",%" PRId64 ",0,0,0,ok,,,",
                 deadline_us, target_us, at_us, at_us);
}

static void add_blis_names(struct pkv_trace_writer *w, const struct pkv_request_spec *spec)
{
    uint64_t number = 0;
    bool is_number = spec->id && pkv_write_is_number(spec->id, &number);
    if (spec->id && !is_number)
        pkv_write_lose(w, PKV_LOSS_ID);
    if (spec->priority < 0)
        pkv_write_lose(w, PKV_LOSS_PRIORITY);
    if (spec->session ? spec->turn == 0 : spec->turn != 0)
        pkv_write_lose(w, PKV_LOSS_TURN);
    pkv_text_fmt(&w->text, "%" PRIu64 ",,", is_number ? number : spec->row);
    add_name(w, spec->tenant ? spec->tenant : "");
    pkv_text_fmt(&w->text, ",,%" PRId64 ",", spec->priority < 0 ? 0 : spec->priority);
    add_name(w, spec->session ? spec->session : "");
    pkv_text_fmt(&w->text, ",%" PRIu32 ",", spec->turn ? spec->turn - 1 : 0);
}

static int row_blis(struct pkv_trace_writer *w, const struct pkv_request_spec *spec,
                    const struct pkv_trace_texts *texts, struct pkv_err *err)
{
    uint32_t prefix;
    const char *group = prefix_of(spec, texts, w, &prefix);
    (void)err;
    add_blis_names(w, spec);
    add_name(w, group ? group : "");
    pkv_text_fmt(&w->text, ",%" PRIu32 ",true,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",0,0,0,0,,",
                 prefix, spec->num_prompt_tokens - prefix, spec->num_output_tokens,
                 spec->num_prompt_tokens - prefix);
    add_blis_times(w, spec, spec->arrival_ns / NS_PER_US);
    add_name(w, texts->adapter ? texts->adapter : "");
    pkv_text_add(&w->text, "\n");
    return 0;
}

const struct pkv_encoder pkv_encoder_azure = {
    .name = "azure", .content = PKV_WRITE_LENGTHS, .unit_ns = 100, .starts_at_zero = true,
    .begin = begin_azure, .row = row_azure,
};
const struct pkv_encoder pkv_encoder_burstgpt = {
    .name = "burstgpt", .content = PKV_WRITE_LENGTHS, .unit_ns = 1,
    .begin = begin_burstgpt, .row = row_burstgpt,
};
const struct pkv_encoder pkv_encoder_vidur = {
    .name = "vidur", .content = PKV_WRITE_LENGTHS, .unit_ns = 1,
    .begin = begin_vidur, .row = row_vidur,
};
const struct pkv_encoder pkv_encoder_splitwise = {
    .name = "splitwise", .content = PKV_WRITE_LENGTHS, .unit_ns = 1, .holds = BIT(PKV_LOSS_ID),
    .begin = begin_splitwise, .row = row_splitwise,
};
const struct pkv_encoder pkv_encoder_blis = {
    .name = "blis", .content = PKV_WRITE_PREFIX, .unit_ns = NS_PER_US,
    .holds = BIT(PKV_LOSS_ID) | BIT(PKV_LOSS_TENANT) | BIT(PKV_LOSS_SESSION) |
             BIT(PKV_LOSS_TURN) | BIT(PKV_LOSS_PRIORITY) | BIT(PKV_LOSS_DEADLINE) |
             BIT(PKV_LOSS_ABORT) | BIT(PKV_LOSS_ADAPTER),
    .begin = begin_blis, .row = row_blis,
};
