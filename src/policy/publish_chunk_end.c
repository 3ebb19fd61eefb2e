/*
 * publish_chunk_end.c - a full block answers look-ups after the chunk of a prompt that filled it; what
 * is decoded does so only when the request ends, by itself or by an abort.
 *
 * So one that is preempted while it decodes leaves its prompt behind, and not its answer.
 */
#include "pagedkv/policy.h"

const struct pkv_publish_ops pkv_publish_chunk_end = {
    .info = {.name = "chunk_end",
             .summary = "prompts after the chunk that computed them, answers when the request ends",
             .source = "after source of SGLang 0.5.18 (2026-08-21), which inserts into its tree at "
                       "these moments; here in whole blocks of this pool"},
    .when = PKV_PUBLISH_CHUNK_END,
};
