/*
 * synth_private.h - lengths drawn from a law.
 */
#ifndef PKV_TRACE_SYNTH_PRIVATE_H
#define PKV_TRACE_SYNTH_PRIVATE_H

#include "pagedkv/trace.h"

#define PKV_LENGTH_USES(X)                                                     \
    X(PKV_LENGTH_OF_PROMPT, "prompt")                                          \
    X(PKV_LENGTH_OF_OUTPUT, "output")                                          \
    X(PKV_LENGTH_OF_PREFIX, "prefix")
enum pkv_length_use {
#define PKV_ENUM(sym, word) sym,
    PKV_LENGTH_USES(PKV_ENUM)
#undef PKV_ENUM
    PKV_LENGTH_USE_COUNT
};

struct pkv_lengths;
/* What the lengths are for names their stream, and tells which length of a trace's rows is meant
 * (a prefix is drawn from prompts). Only outputs may be 0.
 * errors: PKV_ERR_INPUT (impossible law, the trace's own), PKV_ERR_MEMORY */
struct pkv_lengths *pkv_lengths_create(const struct pkv_length *law, enum pkv_length_use use,
                                       uint64_t seed, struct pkv_err *err);
void pkv_lengths_destroy(struct pkv_lengths *lengths);
uint32_t pkv_lengths_draw(struct pkv_lengths *lengths);

#endif
