/*
 * compare_fixture.h - comparisons of small grids, for tests with values worked out by hand.
 */
#ifndef TESTS_COMPARE_FIXTURE_H
#define TESTS_COMPARE_FIXTURE_H

#include "report/compare_private.h"

/* One request of 8 prompt and 6 output tokens: the first step computes the prompt and gives the
 * first token, five more give the rest. */
#define SMALL                                                                        \
    "kv: {block_size: 4, num_blocks: 8}\nstep_time: {model: fixed, ms: 1}\n"         \
    "traffic: {requests: 1, prompt_tokens: 8, output_tokens: 6}\n"

/* The grid of a scenario, which must be right, written into the fixture's folder. */
struct pkv_grid *grid_of(const char *text);
struct pkv_compare *compare_of(const struct pkv_grid *grid, unsigned threads, uint32_t seeds);
void expect_has(const char *text, const char *part);

#endif
