/*
 * model.h - how long one scheduler step takes, and a block on the link to the host.
 *
 * Time is virtual and an integer number of nanoseconds. Two laws:
 *   fixed    every step takes fixed_ns
 *   affine   max(base_ns, prefill_tokens * per_prefill_token_ns) + decodes * per_decode_ns
 *            + context_tokens * per_context_token_ns
 * A step that schedules nothing takes fixed_ns, or base_ns.
 */
#ifndef PAGEDKV_MODEL_H
#define PAGEDKV_MODEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PKV_STEP_TIME_LAWS(X)        \
    X(PKV_STEP_TIME_FIXED, "fixed")  \
    X(PKV_STEP_TIME_AFFINE, "affine")

enum pkv_step_time_law {
#define PKV_ENUM(sym, word) sym,
    PKV_STEP_TIME_LAWS(PKV_ENUM)
#undef PKV_ENUM
    PKV_STEP_TIME_LAW_COUNT
};

struct pkv_step_time {
    enum pkv_step_time_law law;
    int64_t fixed_ns;              /* > 0 under fixed */
    int64_t base_ns;               /* > 0 under affine, so that virtual time always advances */
    int64_t per_prefill_token_ns;  /* >= 0 */
    int64_t per_decode_ns;         /* >= 0 */
    int64_t per_context_token_ns;  /* >= 0 */
};

/* What one step computes. A scheduled request with more than one token counts its tokens as
 * prefill tokens; one with a single token is a decode. */
struct pkv_step_work {
    uint64_t num_prefill_tokens;
    uint64_t num_decodes;
    uint64_t num_context_tokens;   /* sum over scheduled requests of computed + scheduled positions */
};

/* Duration of a step in ns, > 0. What does not fit below PKV_LONGEST_STEP_NS (73 years) comes back as
 * that: no duration, but a reason to stop. */
#define PKV_LONGEST_STEP_NS (INT64_MAX / 4)
int64_t pkv_step_time_ns(const struct pkv_step_time *law, const struct pkv_step_work *work);

const char *pkv_step_time_law_name(enum pkv_step_time_law law);

/* The link between the pool and the host. Blocks go over it one by one, each a transfer with a latency
 * of its own, whatever lies beside it in memory: many small blocks are slow, as the vLLM paper found
 * (Kwon et al., SOSP 2023, section 7.3). */
struct pkv_link {
    uint64_t bytes_per_s;   /* > 0 */
    int64_t latency_ns;     /* >= 0, of one block */
};

/* num_blocks blocks one after another, each latency + bytes / bandwidth, rounded up to a whole ns. At most
 * PKV_LONGEST_STEP_NS, which stands for all that is longer. */
int64_t pkv_link_time_ns(const struct pkv_link *link, uint64_t num_blocks, uint64_t block_bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
