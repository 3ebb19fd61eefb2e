/*
 * grow_one_by_one.c - running requests grow one after another; each shortage is met when it is met.
 */
#include "pagedkv/policy.h"

const struct pkv_grow_ops pkv_grow_one_by_one = {
    .info = {.name = "one_by_one",
             .summary = "in admission order; who lacks a block preempts until it has one",
             .source = "vLLM V1, vllm/v1/core/sched/scheduler.py"},
    .shape = PKV_GROW_ONE_BY_ONE,
};
