/*
 * synth_private.h - the parts of synthetic traffic: when requests come, how long they are, which
 * prefix they share.
 */
#ifndef PKV_TRACE_SYNTH_PRIVATE_H
#define PKV_TRACE_SYNTH_PRIVATE_H

#include "base/draws.h"
#include "pagedkv/trace.h"
#include "trace/numbers.h"

/* lengths.c */
#define PKV_LENGTH_USES(X)                                                     \
    X(PKV_LENGTH_OF_PROMPT, "prompt", "prompt tokens")                         \
    X(PKV_LENGTH_OF_OUTPUT, "output", "output tokens")                         \
    X(PKV_LENGTH_OF_PREFIX, "prefix", "prefix tokens")                         \
    X(PKV_LENGTH_OF_TURN, "turn", "turn tokens")                               \
    X(PKV_LENGTH_OF_SESSION, "session", "turns")
enum pkv_length_use {
#define PKV_ENUM(sym, word, stream) sym,
    PKV_LENGTH_USES(PKV_ENUM)
#undef PKV_ENUM
    PKV_LENGTH_USE_COUNT
};

struct pkv_lengths;
/* What the lengths are for names their stream, and tells which length of a trace's rows is meant
 * (all but outputs are drawn from prompts). Only outputs may be 0. prompts: for the joint law, else
 * not looked at; borrowed.
 * errors: PKV_ERR_INPUT (impossible law, the trace's own), PKV_ERR_MEMORY */
struct pkv_lengths *pkv_lengths_create(const struct pkv_length *law, enum pkv_length_use use,
                                       const struct pkv_lengths *prompts, uint64_t seed,
                                       struct pkv_err *err);
void pkv_lengths_destroy(struct pkv_lengths *lengths);
uint32_t pkv_lengths_draw(struct pkv_lengths *lengths);

/* synth_arrivals.c */
struct pkv_arrivals {
    const struct pkv_synth_config *config;   /* borrowed */
    struct pkv_rng rng;
    uint64_t num;                        /* given so far */
    uint64_t period_ns, period_rest, rest, rate_nano;   /* constant: 1e18 / rate_nano, exact */
    double mean_gap_ns;
    struct pkv_numbers gaps;             /* gamma, weibull; of mean 1 */
    double on_left_ns;                   /* bursts */
    int64_t now_ns;
};
int pkv_arrivals_init(struct pkv_arrivals *arrivals, const struct pkv_synth_config *config,
                      struct pkv_err *err);
/* When the next one comes. errors: PKV_ERR_INPUT, beyond virtual time; row stands in it */
int pkv_arrivals_next(struct pkv_arrivals *arrivals, uint64_t row, int64_t *out_ns,
                      struct pkv_err *err);

/* synth_prefix.c: the texts are numbered level by level. */
struct pkv_prefixes {
    uint32_t num, depth;
    double share;
    struct pkv_zipf zipf;
    uint32_t *tokens;                    /* [num of all levels] owned */
    struct pkv_rng share_rng, pick_rng;
};
struct pkv_prefix {
    uint64_t text[PKV_MAX_PREFIX_DEPTH];
    uint32_t tokens[PKV_MAX_PREFIX_DEPTH];
    uint32_t depth;                      /* 0 = none is shared */
    uint32_t sum_tokens;
};
int pkv_prefixes_init(struct pkv_prefixes *prefixes, const struct pkv_synth_config *config,
                      struct pkv_err *err);
void pkv_prefixes_finish(struct pkv_prefixes *prefixes);
void pkv_prefixes_draw(struct pkv_prefixes *prefixes, struct pkv_prefix *out);
/* A text goes by the name under which it is written into a trace. */
#define PKV_PREFIX_NAME_SIZE 32u
void pkv_prefix_name(uint64_t number, char out[PKV_PREFIX_NAME_SIZE]);
uint64_t pkv_prefix_origin(uint64_t number);

#endif
