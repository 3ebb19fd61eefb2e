/*
 * random_run.h - a small run drawn from a seed: a configuration and its requests.
 *
 * Everything is tiny, so that rare branches happen: pools of a few blocks, blocks of a few tokens,
 * budgets that bind. All policies and switches are drawn.
 */
#ifndef TESTS_RANDOM_RUN_H
#define TESTS_RANDOM_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/engine.h"
#include "pagedkv/model.h"
#include "pagedkv/request.h"
#include "pagedkv/sched.h"

#define RANDOM_RUN_MAX_REQUESTS 24u
#define RANDOM_RUN_MAX_SPANS 8u
#define RANDOM_RUN_MAX_SAMPLES 4u

struct random_run {
    uint64_t seed;
    struct pkv_sched_config sched;
    struct pkv_step_time step_time;
    bool every_step;
    uint32_t stuck_steps;
    struct pkv_request_spec specs[RANDOM_RUN_MAX_REQUESTS];
    size_t num_specs;
    struct pkv_span spans[RANDOM_RUN_MAX_REQUESTS][RANDOM_RUN_MAX_SPANS];
    uint32_t outputs[RANDOM_RUN_MAX_REQUESTS][RANDOM_RUN_MAX_SAMPLES];
    char ids[RANDOM_RUN_MAX_REQUESTS][8];
    uint64_t state;   /* of the draws */
};

void random_run_draw(struct random_run *run, uint64_t seed);
/* Its requests, one after the other, for an engine. */
struct random_traffic {
    const struct random_run *run;    /* borrowed */
    size_t next;
};
struct pkv_source random_source(struct random_traffic *traffic);
/* All of it as comments, for whoever has to find out why. */
void random_run_print(const struct random_run *run);

#endif
