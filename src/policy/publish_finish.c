/*
 * publish_finish.c - nothing answers look-ups until the request ends, by itself or by an abort. One that
 * is preempted leaves nothing behind.
 */
#include "pagedkv/policy.h"

const struct pkv_publish_ops pkv_publish_finish = {
    .info = {.name = "finish",
             .summary = "when the request ends",
             .source = "ours"},
    .when = PKV_PUBLISH_FINISH,
};
