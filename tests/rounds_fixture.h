/*
 * rounds_fixture.h - an admit policy in the rounds by which Past-Future's authors measured theirs.
 *
 * All requests wait from the start, in order; memory is tokens without blocks. A round is some decode
 * steps, then one look at the queue. In a decode step each running request gets a token and leaves
 * when it has all; then usage is sampled, and while it is above the memory the one let in last goes
 * back to the front and keeps what it has generated. After the look at the queue usage is sampled once
 * more. The run stops when nobody waits any more.
 *
 * The policy sees blocks of one token, and a candidate that asks for its prompt alone. A request is
 * shown with at most max_tokens - 1 generated tokens, as the authors' sums of maxima do not follow
 * one that outgrows them.
 *
 * Past-Future (Gong et al., ASPLOS 2025), its behaviour analysis.
 */
#ifndef TESTS_ROUNDS_FIXTURE_H
#define TESTS_ROUNDS_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

struct rounds_row { uint32_t num_prompt, num_output; };

struct rounds_config {
    const char *admit;              /* the policy's word */
    uint32_t memory_tokens;
    uint32_t watermark_tokens;
    uint32_t max_tokens;            /* what the policy is told of each request */
    uint32_t num_steps;             /* decode steps in a round */
    uint32_t enough_prompt_tokens;  /* a look at the queue ends when so many were let in */
};

struct rounds_figures {
    uint64_t num_steps, num_rounds;
    uint64_t num_usages, usage_sum; /* samples of the tokens held */
    uint64_t peak_sum;              /* over the rounds: the true future peak of those who run */
    uint64_t num_evicted, num_finished;
};

void run_rounds(const struct rounds_config *config, const struct rounds_row *rows, size_t num,
                struct rounds_figures *out);

#endif
