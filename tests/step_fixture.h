/*
 * step_fixture.h - runs of a few requests on a few blocks, looked at step by step: every page is kept.
 */
#ifndef TESTS_STEP_FIXTURE_H
#define TESTS_STEP_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/report.h"

#define MS INT64_C(1000000)
#define MOST_ROWS 64
#define MOST_PAGES 24

/* A prompt of num_common tokens that all have and num_own of its own. */
struct asked {
    const char *id;
    int64_t at_ms;
    uint32_t num_common, num_own, num_output;
};

struct walk {
    struct pkv_scenario scenario;
    struct asked asked[MOST_ROWS];
    size_t num_asked, num_given;
    struct pkv_span spans[2];
    struct pkv_stepper *stepper;
    struct pkv_sink also;         /* beside the stepper's; ctx NULL = none */
    struct pkv_report_style style;
    enum pkv_pause next;          /* where every pause goes on to; PKV_PAUSE_STEP: the next step */
    const char *only;
    char *pages[MOST_PAGES];
    uint64_t steps[MOST_PAGES];
    size_t num_pages;
};

/* Blocks of two tokens, as preset vllm does it but for what a test changes; a step takes 1 ms. */
void begin_walk(struct walk *w, uint32_t num_blocks, bool prefix_cache);
void set_choice(struct walk *w, enum pkv_choice choice, const char *name);
void ask(struct walk *w, const char *id, int64_t at_ms, uint32_t num_common, uint32_t num_own,
         uint32_t num_output);
int try_walk(struct walk *w, struct pkv_err *err);
void walk(struct walk *w);       /* to its end, which is no error */
void end_walk(struct walk *w);

void expect_page(const struct walk *w, size_t i, const char *want);
void expect_has(const struct walk *w, size_t i, const char *part);
void expect_lacks(const struct walk *w, size_t i, const char *part);
void expect_steps(const struct walk *w, size_t num, const uint64_t *steps);

#endif
