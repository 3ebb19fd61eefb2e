/*
 * engine_fixture.h - runs of a few requests, and everything the engine told about them.
 */
#ifndef TESTS_ENGINE_FIXTURE_H
#define TESTS_ENGINE_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "pagedkv/engine.h"

#define MS INT64_C(1000000)
#define MOST_REQUESTS 8
#define MOST_TOLD 256

/* One row of traffic. Times are in ns; abort_ns 0 = never; max_tokens 0 = the output. */
struct asked {
    int64_t arrival_ns, abort_ns;
    uint32_t num_prompt, num_output, max_tokens;
    uint32_t num_samples;              /* 0 = one answer */
    const uint32_t *outputs;           /* [num_samples], or NULL = num_output each */
    bool is_beam_search;
};

struct told_event {
    enum pkv_event_kind kind;
    uint64_t step, row, grower_row, parent_row;
    char id[16];
    uint32_t shared_blocks, freed_blocks;
    enum pkv_limit limit;
    uint64_t need_blocks;
    uint32_t free_blocks;
    size_t num_holders;
    uint64_t holder_rows[PKV_MAX_HOLDERS];
    uint32_t holder_blocks[PKV_MAX_HOLDERS];
    uint32_t num_blocks;               /* of a swap, as the next two */
    uint64_t num_bytes;
    int64_t time_ns, done_ns;
};

struct told_request {
    uint64_t row;
    enum pkv_request_status status;
    uint32_t num_emitted, peak_blocks;
    char reason[256];
};

/* A run: what goes in, and what came out. */
struct run {
    struct pkv_engine_config config;
    struct asked asked[MOST_REQUESTS];
    size_t num_asked, num_given;
    struct pkv_span prompt;            /* of the row given last */
    int result;
    struct pkv_err err;
    struct pkv_engine_figures figures;
    struct told_event events[MOST_TOLD];
    size_t num_events;
    struct told_request requests[MOST_REQUESTS];
    size_t num_requests;
    struct pkv_step_row steps[MOST_TOLD];
    size_t num_steps;
};

/* A run on so many blocks of 16 tokens as preset vllm does it, without prefix cache; a step takes
 * one millisecond; all invariants are checked after every step. */
void begin_run(struct run *run, uint32_t num_blocks);
void ask(struct run *run, struct asked asked);
/* To its end, whatever that is. The account of requests and blocks is checked here. */
void do_run(struct run *run);
/* The same, and the run ended without an error in this way. */
void expect_outcome(struct run *run, enum pkv_outcome outcome);
/* The events of one kind about one row, in their order. */
size_t events_of(const struct run *run, enum pkv_event_kind kind, uint64_t row,
                 const struct told_event **out);

#endif
