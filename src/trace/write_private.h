/*
 * write_private.h - between write.c, which counts what is lost, and one encoder a format.
 *
 * An encoder appends a row to the text of the writer; write.c has left out the rows that it cannot
 * take and has counted everything that the encoder's table does not say it can hold. What depends
 * on a value (a priority below 0, a second shared text) the encoder counts by itself.
 */
#ifndef PKV_TRACE_WRITE_PRIVATE_H
#define PKV_TRACE_WRITE_PRIVATE_H

#include "base/id_map.h"
#include "base/out.h"
#include "pagedkv/trace.h"

#define PKV_LOSS_BIT(loss) (1u << (loss))

/* How a format says what prompts have in common. */
enum pkv_write_content {
    PKV_WRITE_LENGTHS,         /* not at all */
    PKV_WRITE_PREFIX,          /* one named text at the beginning */
    PKV_WRITE_IDS,             /* hash ids of blocks */
    PKV_WRITE_SEGMENTS,        /* named texts, or hash ids */
    PKV_WRITE_TOKENS           /* token ids */
};

/* How the prompt of one row is said where the format has ids or segments. */
enum pkv_write_form {
    PKV_FORM_LENGTH,           /* it is the row's own text */
    PKV_FORM_IDS,              /* the hash ids it came with */
    PKV_FORM_SEGMENTS,
    PKV_FORM_BLOCKS            /* hash ids made here */
};

struct pkv_encoder {
    const char *name;
    enum pkv_write_content content;
    unsigned holds;                /* bits of losses that never happen */
    int64_t unit_ns;               /* what arrivals are counted in */
    uint64_t max_prompt_tokens;    /* 0 = all */
    uint64_t max_output_tokens;
    uint32_t hash_block_size;      /* 0 = that of the rows */
    bool starts_at_zero;           /* arrivals count from the first row's */
    bool has_answers;              /* prompts may contain answers of former rows */
    bool (*can_follow)(const struct pkv_trace_writer *writer,
                       const struct pkv_request_spec *spec);   /* NULL = no row can */
    void (*begin)(struct pkv_trace_writer *writer);   /* a header; NULL = none */
    int (*row)(struct pkv_trace_writer *writer, const struct pkv_request_spec *spec,
               const struct pkv_trace_texts *texts, struct pkv_err *err);
    void (*end)(struct pkv_trace_writer *writer);     /* what is still open; NULL = nothing */
};
extern const struct pkv_encoder pkv_encoder_native;
extern const struct pkv_encoder pkv_encoder_mooncake;
extern const struct pkv_encoder pkv_encoder_dynamo;
extern const struct pkv_encoder pkv_encoder_bailian;
extern const struct pkv_encoder pkv_encoder_azure;
extern const struct pkv_encoder pkv_encoder_burstgpt;
extern const struct pkv_encoder pkv_encoder_vidur;
extern const struct pkv_encoder pkv_encoder_splitwise;
extern const struct pkv_encoder pkv_encoder_blis;
extern const struct pkv_encoder pkv_encoder_llmservingsim;
extern const struct pkv_encoder pkv_encoder_tokens;

struct pkv_trace_writer {
    struct pkv_trace_writer_config config;    /* zeros replaced */
    const struct pkv_encoder *encoder;
    struct pkv_text text;                     /* owned; not given away yet */
    uint64_t num_rows;                        /* given to it, those left out included */
    uint64_t num_written;
    unsigned lost;                            /* bits: of the row at hand */
    bool has_ids;                             /* a row was written with hash ids */
    uint64_t losses[PKV_TRACE_LOSS_COUNT];
    struct pkv_id_map map;                    /* bailian: last chat of a session + 1; token ids:
                                               * number of a text + 1 */
    uint64_t num_texts;
    /* llmservingsim: the session whose line is open. */
    bool is_open;
    uint64_t open_session;                    /* pkv_write_session() of it */
    uint32_t open_turns;
};

enum pkv_write_form pkv_write_form_of(const struct pkv_trace_writer *writer,
                                      const struct pkv_request_spec *spec,
                                      const struct pkv_trace_texts *texts);
void pkv_write_lose(struct pkv_trace_writer *writer, enum pkv_trace_loss loss);
/* The id, or the row's number. */
void pkv_write_id(struct pkv_trace_writer *writer, const struct pkv_request_spec *spec,
                  char out[24], const char **out_id);
/* Upper halves of token ids: from 2^40 on they are answers (see read_tokens.c), from 2^63 on, texts that a
 * writer has numbered. */
#define PKV_FIRST_ANSWER_NUMBER 256u
#define PKV_FIRST_TEXT_NUMBER (UINT64_C(1) << 31)
static inline bool pkv_write_is_answer(const struct pkv_trace_text *of)
{
    return of->kind == PKV_ORIGIN_TOKEN && of->number >= PKV_FIRST_ANSWER_NUMBER &&
           of->number < PKV_FIRST_TEXT_NUMBER;
}
uint64_t pkv_write_session(const struct pkv_request_spec *spec);   /* hash of its name; 0 = none */
/* Is the text a whole number below 2^53, without a sign and zeros before it? */
bool pkv_write_is_number(const char *text, uint64_t *out);

#endif
