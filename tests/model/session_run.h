/*
 * session_run.h - a random run whose requests follow one another, and the same requests as they came:
 * each at the time and with the prompt that the ends of others gave it. The second is what the model
 * is given, which knows nothing of sessions.
 */
#ifndef TESTS_SESSION_RUN_H
#define TESTS_SESSION_RUN_H

#include "pagedkv/engine.h"
#include "random_run.h"

struct session_run {
    struct pkv_request_spec asked[RANDOM_RUN_MAX_REQUESTS];
    struct pkv_span spans[RANDOM_RUN_MAX_REQUESTS][RANDOM_RUN_MAX_SPANS];
    size_t num_asked, next;
    struct pkv_request_spec came[RANDOM_RUN_MAX_REQUESTS];
    struct pkv_span *came_spans[RANDOM_RUN_MAX_REQUESTS];   /* owned */
    size_t num_came, num_followed;
};

/* Requests of the run, most of them in one of a few sessions. */
void session_run_draw(struct session_run *session, const struct random_run *run);
/* Run them by the product, and put those that came into the run in their stead.
 *   returns  false, with nothing changed, when that run did not come to its end */
bool session_run_flatten(struct session_run *session, struct random_run *run,
                         const struct pkv_engine_config *config);
void session_run_finish(struct session_run *session);
/* The requests as asked for, from the first one on. */
struct pkv_source session_run_source(struct session_run *session);

#endif
