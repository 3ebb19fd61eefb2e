/*
 * trace.h - where requests come from: traces on disk, and synthetic traffic.
 *
 * A trace is read row by row; memory does not grow with its length (but under `sort`). Formats are
 * found by content; .gz, .zst and .xz are unpacked by content, "-" is standard input. Every broken
 * row is an error with file, line and column (PKV_ERR_INPUT); nothing is skipped silently: what a
 * format's readers are expected to leave out is counted in the notes.
 *
 *   format         first row looks like                               times
 *   native         {"timestamp": 0, "input_length": 9, ...}           ms; a superset of mooncake
 *   mooncake       native rows with hash_ids                          ms
 *   dynamo         native rows with input_tokens, session_id, delay   ms
 *   azure          TIMESTAMP,ContextTokens,GeneratedTokens            dates, 7 fraction digits
 *   burstgpt       Timestamp,Model,Request tokens,...                 s
 *   vidur          arrived_at,num_prefill_tokens,num_decode_tokens    s, or none at all
 *   splitwise      request_id,...,arrival_timestamp,...,prompt_size   s
 *   blis           request_id,client_id,...,arrival_time_us,...       us
 *   llmservingsim  {"input_toks": 9, "arrival_time_ns": 0, ...}       ns
 *   bailian        {"chat_id": 1, "parent_chat_id": -1, ...}          s
 *   tokens         {"id": "a", "arrival_step": 1, "prompt": [[7,3]]}  steps of 1 ms
 *   csv            any header; options say which columns              as options say
 */
#ifndef PAGEDKV_TRACE_H
#define PAGEDKV_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/engine.h"
#include "pagedkv/err.h"
#include "pagedkv/info.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What `pagedkv formats` lists. */
struct pkv_trace_format {
    const char *name, *summary, *source;
    const char *example;         /* how its first line may look */
};
const struct pkv_trace_format *const *pkv_trace_format_list(size_t *out_num);

#define PKV_MAX_SAMPLES 1024u    /* answers that one row may ask for */

struct pkv_trace_options {
    const char *format;          /* NULL = find it */
    /* Any CSV: "arrival=ts,prompt=in,output=out", each role with the name of its column; prompt and
     * output are required, without arrival all come at time 0; further roles: id, tenant, session,
     * priority, max_tokens. Times count from the first row if that one lies after 2000, as seconds
     * since 1970. NULL = the format tells. */
    const char *columns;
    const char *time_unit;       /* of such an arrival: s, ms, us, ns, date; NULL = s */
    uint32_t hash_block_size;    /* tokens a hash id stands for; 0 = as the format has it, or 512 */
    bool lenient_ids;            /* pad or cut hash ids whose number is not ceil(length / block) */
    bool without_beams;          /* rows with a beam_width above 1 are an error */
    bool sort;                   /* read all rows, then give them in time order */
    uint64_t limit;              /* rows; 0 = all */
    uint64_t speedup_num, speedup_den;  /* all times are divided by num / den; 0 = 1 */
    bool sessions;               /* give rows that follow others; else they are an error */
    bool keep_texts;             /* for pkv_trace_texts() */
};

/* What a reader met that its user should know. */
struct pkv_trace_notes {
    const char *format;
    uint64_t rows;               /* given out */
    uint64_t skipped_no_output;  /* rows without a response, left out */
    uint64_t ids_padded;         /* rows mended under lenient_ids */
    uint64_t rows_own_text;      /* rows whose whole prompt is their own: nobody can share it */
    bool has_prompts;            /* a row told more of its prompt than a length */
    uint64_t rows_read;          /* more than rows under sort with a limit */
    bool untimed;                /* no arrival times: all rows come at time 0 */
    uint64_t rows_rounded;       /* arrival times with digits below a nanosecond, now the nearest */
    uint64_t fields_left_out;    /* values of fields that are known and mean nothing here */
    uint64_t blank_lines;
    bool has_crlf, has_bom;      /* lines end with CR LF; a byte order mark comes first */
    bool has_open_end;           /* the last line has no end */
};

struct pkv_trace;
/* errors: PKV_ERR_INPUT (missing, a directory, unreadable, empty, unknown format), PKV_ERR_MEMORY */
struct pkv_trace *pkv_trace_open(const char *path, const struct pkv_trace_options *options,
                                 struct pkv_err *err);
/* The same from memory, for tests and fuzzing; name stands in errors. bytes outlive the trace. */
struct pkv_trace *pkv_trace_open_memory(const char *name, const void *bytes, size_t length,
                                        const struct pkv_trace_options *options,
                                        struct pkv_err *err);
/* Rows of a recorded load that name the row of another trace for their prompt (trace_row, with
 * prompt_len to check it; rows must not fall). The prompts' trace is in format mooncake with
 * tokens_per_hash_id tokens an id (0 = 512). options are for the rows, less the format. */
struct pkv_trace *pkv_trace_open_joined(const char *requests_path, const char *trace_path,
                                        uint32_t tokens_per_hash_id,
                                        const struct pkv_trace_options *options,
                                        struct pkv_err *err);
void pkv_trace_close(struct pkv_trace *trace);
struct pkv_source pkv_trace_source(struct pkv_trace *trace);
const struct pkv_trace_notes *pkv_trace_notes(const struct pkv_trace *trace);
/* The options as they hold now that the format is known: 0 and NULL are filled in. */
const struct pkv_trace_options *pkv_trace_options(const struct pkv_trace *trace);

/* What the prompt of a row is made of, which the origins of its spans do not tell any more. */
struct pkv_trace_text {
    enum pkv_origin_kind kind;
    uint64_t number;             /* as for pkv_origin() */
    const char *name;            /* of PKV_ORIGIN_NAME; else NULL */
};
struct pkv_trace_texts {
    const struct pkv_trace_text *spans;   /* [num_prompt_spans] */
    const char *salt, *adapter;           /* NULL = none */
};
/* Of the row given last, until the next one; under options.keep_texts. */
const struct pkv_trace_texts *pkv_trace_texts(const struct pkv_trace *trace);

/* Writing a trace in a format. What the format cannot hold is left out of a row and counted, once a
 * row and kind; the sentence goes behind "1,234 rows: ". */
#define PKV_TRACE_LOSSES(X)                                                                        \
    X(PKV_LOSS_NO_OUTPUT, "left out; the format has no requests without output")                   \
    X(PKV_LOSS_FOLLOWS, "left out; they come after another row, and the format knows only times")  \
    X(PKV_LOSS_LARGE, "left out; too many tokens for the format")                                  \
    X(PKV_LOSS_BEGIN, "what is before the first arrival, which the format makes 0")                \
    X(PKV_LOSS_TIME, "arrival times cut to what the format counts in")                             \
    X(PKV_LOSS_CONTENT, "what their prompts have in common with others")                           \
    X(PKV_LOSS_BLOCKS, "what they have in common beyond whole blocks of hash ids")                 \
    X(PKV_LOSS_ANSWERS, "that their prompts contain answers of other rows")                        \
    X(PKV_LOSS_ID, "ids, replaced by numbers") X(PKV_LOSS_TENANT, "tenants")                       \
    X(PKV_LOSS_SESSION, "sessions") X(PKV_LOSS_TURN, "numbers of turns")                           \
    X(PKV_LOSS_LOOP, "that their sessions are in a loop")                                          \
    X(PKV_LOSS_MAX_TOKENS, "max_tokens other than the output")                                     \
    X(PKV_LOSS_PRIORITY, "priorities") X(PKV_LOSS_DEADLINE, "deadlines")                           \
    X(PKV_LOSS_ABORT, "aborts") X(PKV_LOSS_SALT, "salts") X(PKV_LOSS_ADAPTER, "adapters")       \
    X(PKV_LOSS_BREAKS, "line breaks in names, written as blanks")                                  \
    X(PKV_LOSS_SAMPLES, "several answers a row (n, beams); the longest is written")

enum pkv_trace_loss {
#define PKV_ENUM(sym, text) sym,
    PKV_TRACE_LOSSES(PKV_ENUM)
#undef PKV_ENUM
    PKV_TRACE_LOSS_COUNT
};
const char *pkv_trace_loss_text(enum pkv_trace_loss loss);

struct pkv_trace_writer_config {
    const char *format;            /* any of the list but csv */
    uint32_t hash_block_size;      /* tokens of a hash id that is written; 0 = as the format has it */
    uint32_t from_block_size;      /* tokens of a hash id that was read; 0 = 512 */
    int (*put)(void *ctx, const char *bytes, size_t length, struct pkv_err *err);
    void *ctx;
};
struct pkv_trace_writer;
/* errors: PKV_ERR_INPUT (format), PKV_ERR_MEMORY; then those of put */
struct pkv_trace_writer *pkv_trace_writer_create(const struct pkv_trace_writer_config *config,
                                                 struct pkv_err *err);
void pkv_trace_writer_destroy(struct pkv_trace_writer *writer);
/* texts are those of pkv_trace_texts(). Formats of token ids keep a number for each text. */
int pkv_trace_writer_row(struct pkv_trace_writer *writer, const struct pkv_request_spec *spec,
                         const struct pkv_trace_texts *texts, struct pkv_err *err);
int pkv_trace_writer_end(struct pkv_trace_writer *writer, struct pkv_err *err);
/* [PKV_TRACE_LOSS_COUNT] rows */
const uint64_t *pkv_trace_writer_losses(const struct pkv_trace_writer *writer);
/* Tokens of a hash id in the rows written so far; 0 = they have none. */
uint32_t pkv_trace_writer_block_size(const struct pkv_trace_writer *writer);

/* Synthetic traffic. Each law draws from a stream of its own, named by the seed and what it is for,
 * so that changing one leaves the others as they were. Logarithms and the like are the library's own:
 * the same numbers on every machine. */
#define PKV_ARRIVAL_LAWS(X)                                                       \
    X(PKV_ARRIVAL_CONSTANT, "constant")   /* every 1 / rate */                        \
    X(PKV_ARRIVAL_POISSON, "poisson")                                             \
    X(PKV_ARRIVAL_AT_ONCE, "at_once")     /* all at time 0 */                         \
    X(PKV_ARRIVAL_GAMMA, "gamma")         /* gaps with mean 1 / rate and cv */        \
    X(PKV_ARRIVAL_WEIBULL, "weibull")     /* the same */                              \
    X(PKV_ARRIVAL_BURSTS, "bursts")       /* poisson while on, none while off */      \
    X(PKV_ARRIVAL_DIURNAL, "diurnal")     /* poisson, its rate swings as a sine */    \
    X(PKV_ARRIVAL_SPIKE, "spike")         /* poisson, its rate is higher for a time */ \
    X(PKV_ARRIVAL_CLOSED_LOOP, "closed_loop")   /* whoever ends is followed by the next */
#define PKV_LENGTH_LAWS(X)                                                        \
    X(PKV_LENGTH_CONSTANT, "constant")                                            \
    X(PKV_LENGTH_UNIFORM, "uniform")      /* min .. max, ends included */             \
    X(PKV_LENGTH_LOGNORMAL, "lognormal")  /* mean and cv of the length itself */      \
    X(PKV_LENGTH_EMPIRICAL, "empirical")  /* drawn from the rows of a trace */        \
    X(PKV_LENGTH_GAMMA, "gamma")          /* mean and cv */                           \
    X(PKV_LENGTH_ZIPF, "zipf")            /* min .. max, n with weight n^-exponent */ \
    X(PKV_LENGTH_PARETO_LOGNORMAL, "pareto_lognormal")   /* lognormal, a share of it pareto */ \
    X(PKV_LENGTH_JOINT, "joint")          /* outputs: of the row the empirical prompt is of */
#define PKV_NUMBER_LAWS(X)                                                        \
    X(PKV_NUMBER_NONE, "none")                                                    \
    X(PKV_NUMBER_CONSTANT, "constant")                                            \
    X(PKV_NUMBER_UNIFORM, "uniform")                                              \
    X(PKV_NUMBER_EXPONENTIAL, "exponential")   /* mean */                             \
    X(PKV_NUMBER_LOGNORMAL, "lognormal")       /* mean and cv, as the two below */    \
    X(PKV_NUMBER_GAMMA, "gamma")                                                  \
    X(PKV_NUMBER_WEIBULL, "weibull")

enum pkv_arrival_law {
#define PKV_ENUM(sym, word) sym,
    PKV_ARRIVAL_LAWS(PKV_ENUM)
    PKV_ARRIVAL_LAW_COUNT
};
enum pkv_length_law {
    PKV_LENGTH_LAWS(PKV_ENUM)
    PKV_LENGTH_LAW_COUNT
};
enum pkv_number_law {
    PKV_NUMBER_LAWS(PKV_ENUM)
#undef PKV_ENUM
    PKV_NUMBER_LAW_COUNT
};
const char *pkv_arrival_law_name(enum pkv_arrival_law law);
const char *pkv_length_law_name(enum pkv_length_law law);
const char *pkv_number_law_name(enum pkv_number_law law);

struct pkv_length {
    enum pkv_length_law law;
    uint32_t value;               /* constant */
    uint32_t min, max;            /* uniform, zipf; others are cut to them (max 0 = no cut) */
    double mean, cv;              /* lognormal, gamma, pareto_lognormal (of its lognormal part) */
    double exponent;              /* zipf: 0 .. 100 */
    /* pareto_lognormal: so many of the draws are of the tail, which begins at tail_min and of which
     * what is above x falls as x^-tail_alpha. */
    double tail_share, tail_alpha;
    uint32_t tail_min;
    const char *trace;            /* empirical: path; prompt or output by what the law is for */
};

/* A number that need not be whole. */
struct pkv_number {
    enum pkv_number_law law;
    double value;                 /* constant */
    double min, max;              /* uniform; others but constant are cut to them (max 0 = no cut) */
    double mean, cv;
};

/* Who asks: drawn by weight. */
struct pkv_synth_tenant {
    const char *name;
    double weight;
    bool has_priority;            /* its requests have this one and not one that is drawn */
    int64_t priority;
};

#define PKV_MAX_PREFIX_DEPTH 8u
#define PKV_MAX_PREFIXES 1048576u

struct pkv_synth_config {
    uint64_t num_requests;
    uint64_t seed;
    enum pkv_arrival_law arrival;
    double rate_per_s;            /* the mean in the long run, of a spike that outside of it; all laws
                                   * but at_once and closed_loop */
    double arrival_cv;            /* gamma, weibull: 0.01 .. 100 */
    int64_t on_ns, off_ns;        /* bursts: means of how long, exponential; > 0. It begins on */
    int64_t period_ns;            /* diurnal: > 0 */
    double amplitude;             /* diurnal: rate (1 + amplitude sin(2 pi t / period)); 0 .. 1 */
    int64_t spike_at_ns, spike_for_ns;   /* spike: >= 0 */
    double spike_factor;          /* rate within it, of the rate outside; 0 .. 1e6 */
    uint32_t concurrency;         /* closed_loop: so many come at time 0; > 0 */
    int64_t loop_delay_ns;        /* closed_loop: between an end and the next; >= 0 */
    struct pkv_length prompt, output;
    /* max_tokens: the output times a number, rounded, and never below the output. */
    struct pkv_number max_tokens_ratio;
    /* Shared prefixes: a share of the requests begins with one of `num` texts, drawn evenly, or the
     * k-th with a weight of k^-zipf. With a depth each text goes on in one of `num` ways of its own,
     * and so on. The prefix is part of the prompt length; a prompt not longer than it gets prefix + 1
     * token. */
    uint32_t prefix_num;          /* 0 = none */
    uint32_t prefix_depth;        /* 0 or 1 = flat; at most PKV_MAX_PREFIX_DEPTH. All texts together
                                   * are at most PKV_MAX_PREFIXES */
    double prefix_zipf;           /* 0 .. 100 */
    struct pkv_length prefix_tokens;   /* one draw for each text */
    double prefix_share;          /* 0 .. 1 */
    /* Conversations: a share of the arrivals are the first of `turns` requests. Each later one comes
     * delay_ms after the end of the former, and its prompt is all that was said, and turn_tokens more.
     * Tenant, priority and prefix are those of the first. None follows once prompt and output of the
     * former have reached max_context_tokens. All are counted in num_requests. */
    double session_share;         /* 0 .. 1; 0 = none */
    struct pkv_length turns, turn_tokens;
    struct pkv_number delay_ms;
    uint32_t max_context_tokens;  /* 0 = no end */
    /* Priorities: level i with weight[i] of the sum. num 0 = all 0. */
    const int64_t *priorities;    /* [num_priorities] borrowed */
    const double *priority_weights;
    size_t num_priorities;
    const struct pkv_synth_tenant *tenants;   /* [num_tenants] borrowed, copied; names, too */
    size_t num_tenants;
    /* Aborts: a share of the requests is cancelled, so many ms after arrival, or without such a law
     * evenly spread over [min, max]. */
    double abort_share;
    struct pkv_number abort_after_ms;
    int64_t abort_min_ns, abort_max_ns;
    /* Each request asks for so many answers: parallel samples, each with a length of its own, or one
     * search with so many beams. 0 and 1 = one answer; not both above 1. */
    uint32_t samples, beam_width;
};

struct pkv_synth;
struct pkv_synth *pkv_synth_create(const struct pkv_synth_config *config, struct pkv_err *err);
void pkv_synth_destroy(struct pkv_synth *synth);
struct pkv_source pkv_synth_source(struct pkv_synth *synth);
/* Of the row given last, until the next one; for pkv_trace_writer_row(). */
const struct pkv_trace_texts *pkv_synth_texts(const struct pkv_synth *synth);

/* A trace made after another one: its rows in another order, with their gaps, lengths and the prefixes
 * that two or more of them share; what a row shares with nobody becomes text of its own. Rows stay
 * together in runs, so that what follows closely in the source does so here. Everything may be scaled.
 * Without scaling, and with as many rows as the source has, gaps, lengths and shared prefixes are those
 * of the source; only their order is drawn. */
struct pkv_remake_config {
    uint64_t num_requests;        /* 0 = as many as the source has. Beyond these it begins again: then
                                   * all that is shared is new but the texts that prompts begin with */
    uint64_t run;                 /* rows that stay together; 0 = 100 */
    uint64_t seed;
    double rate;                  /* gaps are divided by it; 1e-6 .. 1e6 */
    double prefix_length;         /* what is shared becomes so much longer; 0 .. 1000 */
    double roots;                 /* so many times as many texts that prompts begin with: all that goes on
                                   * from one in the same way stays together; 0.001 .. 1000 */
};
struct pkv_remake;
/* Read a trace, opened with keep_texts, to its end. What is shared is found in blocks of its hash ids,
 * or of 16 tokens where it has none.
 *   errors   the trace's, PKV_ERR_INPUT (config), PKV_ERR_MEMORY
 *   cost     80 bytes a row, 40 to 60 a different block */
struct pkv_remake *pkv_remake_create(struct pkv_trace *trace, const struct pkv_remake_config *config,
                                     struct pkv_err *err);
void pkv_remake_destroy(struct pkv_remake *remake);
struct pkv_source pkv_remake_source(struct pkv_remake *remake);
const struct pkv_trace_texts *pkv_remake_texts(const struct pkv_remake *remake);

/* What was found, and what is to come out. */
struct pkv_remake_figures {
    uint64_t rows, made_rows;
    uint32_t block_size;
    uint64_t roots, wanted_roots; /* texts that two or more prompts begin with */
    uint64_t made_roots;          /* so far */
    uint64_t texts;               /* shared ones, roots included */
    double mean_prompt_tokens, mean_made_prompt_tokens;   /* over the rows of the source */
};
const struct pkv_remake_figures *pkv_remake_figures(const struct pkv_remake *remake);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
