/*
 * requeue_front.c - the one given up is the next to be looked at.
 */
#include "pagedkv/policy.h"

const struct pkv_requeue_ops pkv_requeue_front = {
    .info = {.name = "front",
             .summary = "before everybody who waits",
             .source = "vLLM V1, policy fcfs"},
    .place = PKV_PLACE_FRONT,
};
