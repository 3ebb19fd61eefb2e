/*
 * requeue_by_order.c - the one given up waits where the order puts it.
 */
#include "pagedkv/policy.h"

const struct pkv_requeue_ops pkv_requeue_by_order = {
    .info = {.name = "by_order",
             .summary = "where the order puts it",
             .source = "vLLM V1, policy priority"},
    .place = PKV_PLACE_BY_ORDER,
};
