/*
 * publish_alloc.c - a full block answers look-ups as soon as its tokens are scheduled.
 */
#include "pagedkv/policy.h"

const struct pkv_publish_ops pkv_publish_alloc = {
    .info = {.name = "alloc",
             .summary = "when its tokens are scheduled, so that a twin in the same step hits",
             .source = "vLLM V1, allocate_slots"},
    .when = PKV_PUBLISH_ALLOC,
};
