/*
 * order_fixture.h - requests that share texts and have tenants, one of them running at a time.
 */
#ifndef TESTS_ORDER_FIXTURE_H
#define TESTS_ORDER_FIXTURE_H

#include <stdint.h>

#include "sched_fixture.h"

/* A prompt: shared texts by name, `count` tokens of each from its beginning, then text of its own. */
struct asked_for {
    uint64_t row;
    struct { uint64_t name; uint32_t count; } shared[2];
    uint32_t num_own, num_output;
    const char *tenant, *salt;
};

struct pkv_request *add_one(struct pkv_sched *sched, struct asked_for a);
/* One runs at a time, with the prefix cache. */
struct pkv_sched_config one_at_a_time(const char *order, uint32_t num_blocks, uint32_t block_size);
/* A parameter of the order. */
void set_param(struct pkv_sched_config *config, const char *name, int64_t value);
/* A step: the row that comes in; nobody else does. */
uint64_t row_admitted(struct pkv_sched *sched);
void cancel(struct pkv_sched *sched, struct pkv_request *request);

#endif
