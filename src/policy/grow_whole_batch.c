/*
 * grow_whole_batch.c - first the blocks that all running requests need in this step are summed up; while
 * fewer are free somebody is given up; then all that are left grow.
 *
 * So whoever is given up has taken nothing in this step, and the order of growth decides nothing but
 * whom the shortage is named after. One is always kept: the last one, alone, gives itself up only if
 * the pool is too small for it.
 *
 * After retract_decode of SGLang (python/sglang/srt/managers/schedule_batch.py).
 */
#include "pagedkv/policy.h"

const struct pkv_grow_ops pkv_grow_whole_batch = {
    .info = {.name = "whole_batch",
             .summary = "who is too much for the free blocks is given up before anybody grows",
             .source = "after source of SGLang 0.5.18 (2026-08-21), retract_decode; the rule alone, in "
                       "blocks of this pool"},
    .shape = PKV_GROW_WHOLE_BATCH,
};
