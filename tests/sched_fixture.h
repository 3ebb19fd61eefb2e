/*
 * sched_fixture.h - a small scheduler, requests of their own text, and single steps.
 */
#ifndef TESTS_SCHED_FIXTURE_H
#define TESTS_SCHED_FIXTURE_H

#include <stdint.h>

#include "pagedkv/sched.h"

/* The first policy of every choice (what preset vllm uses), blocks of 16 tokens, chunked prefill,
 * no prefix cache, nothing limited. */
struct pkv_sched_config base_config(uint32_t num_blocks);
/* A policy of the registry by its word. */
void set(struct pkv_sched_config *config, enum pkv_choice choice, const char *name);
struct pkv_sched *make_sched(const struct pkv_sched_config *config);

/* max_tokens is num_output. Refused or not: the status tells. */
struct pkv_request *add(struct pkv_sched *sched, uint64_t row, uint32_t num_prompt,
                        uint32_t num_output, int64_t priority);

void expect_sched_sound(struct pkv_sched *sched);
/* The two halves of a step, for tests in which plans overlap; each is audited. */
struct pkv_plan *plan_one(struct pkv_sched *sched);
void commit_one(struct pkv_sched *sched, struct pkv_plan *plan);
uint32_t num_keys(struct pkv_sched *sched);
/* One step; finished requests are forgotten. The plan is still there to read. */
const struct pkv_plan *step(struct pkv_sched *sched);
uint32_t num_used(struct pkv_sched *sched);
/* The waiting rows from the head on, as text: "2 3 1". */
void expect_waiting(struct pkv_sched *sched, const char *rows);

#endif
