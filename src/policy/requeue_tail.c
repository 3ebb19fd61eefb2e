/*
 * requeue_tail.c - the one given up waits behind all others.
 */
#include "pagedkv/policy.h"

const struct pkv_requeue_ops pkv_requeue_tail = {
    .info = {.name = "tail",
             .summary = "behind everybody who waits",
             .source = "SGLang, retract_decode"},
    .place = PKV_PLACE_TAIL,
};
