/*
 * publish_computed.c - a full block answers look-ups after the step that computed it.
 */
#include "pagedkv/policy.h"

const struct pkv_publish_ops pkv_publish_computed = {
    .info = {.name = "computed",
             .summary = "after the step that computed it",
             .source = "ours"},
    .when = PKV_PUBLISH_COMPUTED,
};
