/*
 * keys_private.h - every key of a scenario, once: its name, what stands under it, where it goes,
 * what it is when left out, and when it has a meaning at all.
 *
 * Reading, overriding, presets, defaults and printing all walk this one list.
 */
#ifndef PKV_SCENARIO_KEYS_PRIVATE_H
#define PKV_SCENARIO_KEYS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/scenario.h"

enum key_kind {
    KIND_NONE,
    KIND_TEXT,
    KIND_PATH,        /* a file; relative to the scenario's folder when it stands in the scenario */
    KIND_BOOL,
    KIND_U32,
    KIND_U64,
    KIND_DOUBLE,
    KIND_MS,          /* a time; a bare number is in ms */
    KIND_NS,          /* a time; a bare number is in ns */
    KIND_TIME,        /* a time; a bare number has no meaning */
    KIND_TIME_OR_END, /* the same, or `end`, which is 0 */
    KIND_BYTES,       /* with a unit; a bare number only where the key is named after bytes */
    KIND_WORD,        /* one of a list */
    KIND_CHOICE,      /* a policy of the registry */
    KIND_PRESET,
    KIND_FORMAT,      /* of a trace; auto = found by content */
    KIND_SPEEDUP,
    KIND_GROUPS,
    KIND_MODEL,       /* the name of a known model, or the path of its config.json */
    KIND_STAGES,      /* layers of pipeline stages */
    KIND_PRIORITIES,
    KIND_ACCEPTED,    /* numbers of drafts that are right, one after the other */
    KIND_TENANTS,
    /* Other names of keys: what they say goes to the keys in `means`, nothing is printed. */
    KIND_GPU_BLOCKS,
    KIND_BUDGET,      /* bytes for blocks, which a model makes a number of */
    KIND_SCHEDULING_POLICY,
    KIND_FULL_ISL,
    KIND_VARY         /* keys with lists of values; of a grid, not of a run */
};

#define MAX_COUNT INT32_MAX               /* tokens, blocks, sequences: two of them fit 32 bits */
#define MAX_STEP_NS INT64_C(1000000000000000)   /* 11 days */
#define MAX_SPAN_NS (INT64_MAX / 4)

#define FIELD(member) .field = offsetof(struct pkv_scenario, member)
#define RANGE(low, high) .min = (double)(low), .max = (double)(high)
#define WORDS(list) .words = list
#define MEANS(...) .means = { __VA_ARGS__ }
/* The key has a meaning only while another one has one of these values. */
#define UNDER(id, values) .decider = KEY_##id, .when = (values)
#define GIVEN (1u << 1)                   /* a decider that is no word: it is there, or above 0 */
#define NOT_GIVEN (1u << 0)
#define IS(word) (1u << (word))
#define SPECULATES                                                                              \
    (IS(PKV_SPECULATION_DRAFT_MODEL) | IS(PKV_SPECULATION_EAGLE) | IS(PKV_SPECULATION_NGRAM))
#define ANY_BUT(bits) (~(unsigned)(bits))
#define CUT_LAWS ANY_BUT(IS(PKV_LENGTH_CONSTANT))
#define MEAN_LAWS (IS(PKV_LENGTH_LOGNORMAL) | IS(PKV_LENGTH_GAMMA) | IS(PKV_LENGTH_PARETO_LOGNORMAL))
#define RATE_LAWS ANY_BUT(IS(PKV_ARRIVAL_AT_ONCE) | IS(PKV_ARRIVAL_CLOSED_LOOP))
#define NUMBER_CV_LAWS \
    (IS(PKV_NUMBER_LOGNORMAL) | IS(PKV_NUMBER_GAMMA) | IS(PKV_NUMBER_WEIBULL))
#define NUMBER_MEAN_LAWS (NUMBER_CV_LAWS | IS(PKV_NUMBER_EXPONENTIAL))

#define LENGTH_KEYS(X, ID, name, member, low, decider_id)                                       \
    X(ID##_LAW, name ".law", .kind = KIND_WORD, FIELD(member.law), WORDS(length_laws),          \
      .required = true, UNDER(decider_id, GIVEN))                                               \
    X(ID##_VALUE, name ".value", .kind = KIND_U32, FIELD(member.value), RANGE(low, MAX_COUNT),  \
      .required = true, UNDER(ID##_LAW, IS(PKV_LENGTH_CONSTANT)))                               \
    X(ID##_MIN, name ".min", .kind = KIND_U32, FIELD(member.min), RANGE(low, MAX_COUNT),        \
      .standard = #low, UNDER(ID##_LAW, CUT_LAWS))                                              \
    X(ID##_MAX, name ".max", .kind = KIND_U32, FIELD(member.max), RANGE(0, MAX_COUNT),          \
      .standard = "0", UNDER(ID##_LAW, CUT_LAWS))                                               \
    X(ID##_MEAN, name ".mean", .kind = KIND_DOUBLE, FIELD(member.mean), RANGE(1e-9, MAX_COUNT), \
      .required = true, UNDER(ID##_LAW, MEAN_LAWS))                                             \
    X(ID##_CV, name ".cv", .kind = KIND_DOUBLE, FIELD(member.cv), RANGE(0, 1000),               \
      .required = true, UNDER(ID##_LAW, MEAN_LAWS))                                             \
    X(ID##_EXPONENT, name ".exponent", .kind = KIND_DOUBLE, FIELD(member.exponent),             \
      RANGE(0, 100), .required = true, UNDER(ID##_LAW, IS(PKV_LENGTH_ZIPF)))                    \
    X(ID##_TAIL_SHARE, name ".tail_share", .kind = KIND_DOUBLE, FIELD(member.tail_share),       \
      RANGE(0, 1), .required = true, UNDER(ID##_LAW, IS(PKV_LENGTH_PARETO_LOGNORMAL)))          \
    X(ID##_TAIL_ALPHA, name ".tail_alpha", .kind = KIND_DOUBLE, FIELD(member.tail_alpha),       \
      RANGE(0.01, 1000), .required = true, UNDER(ID##_LAW, IS(PKV_LENGTH_PARETO_LOGNORMAL)))    \
    X(ID##_TAIL_MIN, name ".tail_min", .kind = KIND_U32, FIELD(member.tail_min),                \
      RANGE(1, MAX_COUNT), .required = true, UNDER(ID##_LAW, IS(PKV_LENGTH_PARETO_LOGNORMAL)))  \
    X(ID##_TRACE, name ".trace", .kind = KIND_PATH, FIELD(member.trace), .required = true,      \
      UNDER(ID##_LAW, IS(PKV_LENGTH_EMPIRICAL)))

#define NUMBER_KEYS(X, ID, name, member, decider_id)                                            \
    X(ID##_LAW, name ".law", .kind = KIND_WORD, FIELD(member.law), WORDS(number_laws),          \
      .standard = "none", UNDER(decider_id, GIVEN))                                             \
    X(ID##_VALUE, name ".value", .kind = KIND_DOUBLE, FIELD(member.value), RANGE(0, 1e15),      \
      .required = true, UNDER(ID##_LAW, IS(PKV_NUMBER_CONSTANT)))                               \
    X(ID##_MIN, name ".min", .kind = KIND_DOUBLE, FIELD(member.min), RANGE(0, 1e15),            \
      .standard = "0", UNDER(ID##_LAW, IS(PKV_NUMBER_UNIFORM) | NUMBER_MEAN_LAWS))              \
    X(ID##_MAX, name ".max", .kind = KIND_DOUBLE, FIELD(member.max), RANGE(0, 1e15),            \
      .standard = "0", UNDER(ID##_LAW, IS(PKV_NUMBER_UNIFORM) | NUMBER_MEAN_LAWS))              \
    X(ID##_MEAN, name ".mean", .kind = KIND_DOUBLE, FIELD(member.mean), RANGE(1e-9, 1e15),      \
      .required = true, UNDER(ID##_LAW, NUMBER_MEAN_LAWS))                                      \
    X(ID##_CV, name ".cv", .kind = KIND_DOUBLE, FIELD(member.cv), RANGE(0, 1000),               \
      .required = true, UNDER(ID##_LAW, NUMBER_CV_LAWS))

#define CHOICE(X, id, word, choice_id, member)                                                  \
    X(id, "scheduler." word, .kind = KIND_CHOICE, .choice = choice_id,                          \
      FIELD(sched.policies.member))

/* In the order in which they are read and printed: a decider before what it decides. */
#define SCENARIO_KEYS(X)                                                                        \
    X(TITLE, "title", .kind = KIND_TEXT, FIELD(title))                                          \
    X(QUESTION, "question", .kind = KIND_TEXT, FIELD(question))                                 \
    X(BLOCK_SIZE, "kv.block_size", .kind = KIND_U32, FIELD(sched.groups[0].block_size),         \
      RANGE(1, 1 << 20), .standard = "16")                                                      \
    X(NUM_BLOCKS, "kv.num_blocks", .kind = KIND_U32, FIELD(sched.num_blocks),                   \
      RANGE(1, MAX_COUNT - 1))                                                                  \
    X(NUM_GPU_BLOCKS, "kv.num_gpu_blocks", .kind = KIND_GPU_BLOCKS, RANGE(2, MAX_COUNT),        \
      MEANS(KEY_NUM_BLOCKS))                                                                    \
    X(BUDGET, "kv.budget", .kind = KIND_BUDGET, MEANS(KEY_NUM_BLOCKS))                          \
    X(MODEL, "kv.model", .kind = KIND_MODEL, FIELD(kv_model))                                   \
    X(DTYPE, "kv.dtype", .kind = KIND_WORD, FIELD(kv_dtype), WORDS(kv_dtypes),                  \
      .standard = "auto", UNDER(MODEL, GIVEN))                                                  \
    X(TP, "kv.tp", .kind = KIND_U32, FIELD(kv_tp), RANGE(1, 65536), .standard = "1",            \
      UNDER(MODEL, GIVEN))                                                                      \
    X(PP, "kv.pp", .kind = KIND_U32, FIELD(kv_pp), RANGE(1, PKV_KV_MAX_STAGES),                 \
      .standard = "1", UNDER(MODEL, GIVEN))                                                     \
    X(PP_LAYERS, "kv.pp_layers", .kind = KIND_STAGES, FIELD(kv_num_stages), UNDER(MODEL, GIVEN))\
    X(DRAFT_LAYERS, "kv.draft_layers", .kind = KIND_U32, FIELD(kv_draft_layers),                \
      RANGE(0, PKV_KV_MAX_STAGES), UNDER(MODEL, GIVEN))                                         \
    X(PREFIX_CACHE, "kv.prefix_cache", .kind = KIND_BOOL, FIELD(sched.prefix_cache),            \
      .standard = "true")                                                                       \
    X(WARM, "kv.warm", .kind = KIND_PATH, FIELD(warm), UNDER(PREFIX_CACHE, GIVEN))              \
    X(GROUPS, "kv.groups", .kind = KIND_GROUPS, FIELD(sched.num_groups))                        \
    X(HOST_BLOCKS, "kv.host_blocks", .kind = KIND_U64, FIELD(sched.swap.num_host_blocks),       \
      RANGE(0, MAX_COUNT))                                                                      \
    X(BYTES_PER_TOKEN, "kv.bytes_per_token", .kind = KIND_BYTES,                                \
      FIELD(sched.swap.bytes_per_token), RANGE(1, INT64_C(1) << 40), .standard = "128KiB",      \
      UNDER(HOST_BLOCKS, GIVEN))                                                                \
    X(LINK_BANDWIDTH, "link.bandwidth", .kind = KIND_BYTES,                                     \
      FIELD(sched.swap.link.bytes_per_s), RANGE(1, INT64_MAX), .standard = "25GB",              \
      UNDER(HOST_BLOCKS, GIVEN))                                                                \
    X(LINK_LATENCY, "link.latency", .kind = KIND_TIME, FIELD(sched.swap.link.latency_ns),       \
      RANGE(0, MAX_STEP_NS), .standard = "10us", UNDER(HOST_BLOCKS, GIVEN))                     \
    X(PRESET, "scheduler.preset", .kind = KIND_PRESET, FIELD(preset), .standard = "vllm")       \
    X(POLICY, "scheduler.policy", .kind = KIND_SCHEDULING_POLICY,                               \
      MEANS(KEY_ORDER, KEY_PREEMPT, KEY_REQUEUE))                                               \
    CHOICE(X, ORDER, "order", PKV_CHOICE_ORDER, order)                                          \
    X(RESERVE_FULL_ISL, "scheduler.reserve_full_isl", .kind = KIND_FULL_ISL, MEANS(KEY_ADMIT))  \
    CHOICE(X, ADMIT, "admit", PKV_CHOICE_ADMIT, admit)                                          \
    CHOICE(X, ON_BLOCKED, "on_blocked", PKV_CHOICE_ON_BLOCKED, on_blocked)                      \
    CHOICE(X, PREEMPT, "preempt", PKV_CHOICE_PREEMPT, preempt)                                  \
    CHOICE(X, ON_PREEMPT, "on_preempt", PKV_CHOICE_ON_PREEMPT, on_preempt)                      \
    CHOICE(X, REQUEUE, "requeue", PKV_CHOICE_REQUEUE, requeue)                                  \
    CHOICE(X, GROW, "grow", PKV_CHOICE_GROW, grow)                                              \
    CHOICE(X, PUBLISH, "publish", PKV_CHOICE_PUBLISH, publish)                                  \
    CHOICE(X, MIX, "mix", PKV_CHOICE_MIX, mix)                                                  \
    CHOICE(X, EVICT, "evict", PKV_CHOICE_EVICT, evict)                                          \
    CHOICE(X, CACHE, "cache", PKV_CHOICE_CACHE, cache)                                          \
    CHOICE(X, LAYOUT, "layout", PKV_CHOICE_LAYOUT, layout)                                      \
    X(WATERMARK, "scheduler.watermark", .kind = KIND_DOUBLE, FIELD(sched.watermark),            \
      RANGE(0, 1), .standard = "0")                                                             \
    X(UNHASHED_FREE, "scheduler.unhashed_free", .kind = KIND_WORD, FIELD(sched.unhashed_free),  \
      WORDS(pool_ends), .standard = "head")                                                     \
    X(BLOCKED_PREFILL, "scheduler.blocked_prefill", .kind = KIND_WORD,                          \
      FIELD(sched.blocked_prefill), WORDS(blocked_prefills), .standard = "stop")                \
    X(PRIORITY_VICTIM, "scheduler.priority_victim", .kind = KIND_WORD,                          \
      FIELD(sched.priority_victim), WORDS(priority_victims), .standard = "vllm")                \
    X(CHUNK_END, "scheduler.chunk_end", .kind = KIND_WORD, FIELD(sched.chunk_end),              \
      WORDS(chunk_ends), .standard = "free")                                                    \
    X(OVERSIZED, "scheduler.oversized", .kind = KIND_WORD, FIELD(sched.oversized),              \
      WORDS(oversized_ways), .standard = "reject")                                              \
    X(FORK, "scheduler.fork", .kind = KIND_BOOL, FIELD(sched.fork), .standard = "false")        \
    X(BEAM_DROP, "scheduler.beam_drop", .kind = KIND_DOUBLE, FIELD(beam_drop), RANGE(0, 1),     \
      .standard = "0.1", UNDER(FORK, GIVEN))                                                    \
    X(MAX_NUM_SEQS, "scheduler.max_num_seqs", .kind = KIND_U32, FIELD(sched.max_num_seqs),      \
      RANGE(0, MAX_COUNT), .standard = "256")                                                   \
    X(MAX_NUM_BATCHED_TOKENS, "scheduler.max_num_batched_tokens", .kind = KIND_U32,             \
      FIELD(sched.max_num_batched_tokens), RANGE(0, MAX_COUNT), .standard = "8192")             \
    X(ENABLE_CHUNKED_PREFILL, "scheduler.enable_chunked_prefill", .kind = KIND_BOOL,            \
      FIELD(sched.enable_chunked_prefill), .standard = "true")                                  \
    X(LONG_PREFILL_TOKEN_THRESHOLD, "scheduler.long_prefill_token_threshold", .kind = KIND_U32, \
      FIELD(sched.long_prefill_token_threshold), RANGE(0, MAX_COUNT), .standard = "0")          \
    X(MAX_MODEL_LEN, "scheduler.max_model_len", .kind = KIND_U32, FIELD(sched.max_model_len),   \
      RANGE(0, MAX_COUNT), .standard = "0")                                                     \
    X(ASYNC_SCHEDULING, "scheduler.async_scheduling", .kind = KIND_BOOL,                        \
      FIELD(sched.async_scheduling), .standard = "false")                                       \
    X(LOOKAHEAD, "scheduler.lookahead_at_admission", .kind = KIND_BOOL,                         \
      FIELD(sched.lookahead_at_admission), .standard = "true")                                  \
    X(SPECULATION, "speculation.method", .kind = KIND_WORD, FIELD(sched.speculation.method),    \
      WORDS(speculation_methods), .standard = "none")                                           \
    X(NUM_DRAFTS, "speculation.num_tokens", .kind = KIND_U32,                                   \
      FIELD(sched.speculation.num_tokens), RANGE(1, PKV_MAX_DRAFTS), .required = true,          \
      UNDER(SPECULATION, SPECULATES))                                                           \
    X(ACCEPTED, "speculation.accepted", .kind = KIND_ACCEPTED,                                  \
      FIELD(sched.speculation.num_accepted), RANGE(0, PKV_MAX_DRAFTS),                          \
      UNDER(SPECULATION, SPECULATES))                                                           \
    X(ACCEPTANCE_RATE, "speculation.acceptance_rate", .kind = KIND_DOUBLE,                      \
      FIELD(sched.speculation.acceptance_rate), RANGE(0, 1), .required = true,                  \
      UNDER(ACCEPTED, NOT_GIVEN))                                                               \
    X(STEP_TIME, "step_time.model", .kind = KIND_WORD, FIELD(step_time.law),                    \
      WORDS(step_time_laws), .standard = "affine")                                              \
    X(FIXED_MS, "step_time.ms", .kind = KIND_MS, FIELD(step_time.fixed_ns),                     \
      RANGE(1, MAX_STEP_NS), .required = true, UNDER(STEP_TIME, IS(PKV_STEP_TIME_FIXED)))       \
    X(BASE_MS, "step_time.base_ms", .kind = KIND_MS, FIELD(step_time.base_ns),                  \
      RANGE(1, MAX_STEP_NS), .standard = "10", UNDER(STEP_TIME, IS(PKV_STEP_TIME_AFFINE)))      \
    X(PER_PREFILL_TOKEN_MS, "step_time.per_prefill_token_ms", .kind = KIND_MS,                  \
      FIELD(step_time.per_prefill_token_ns), RANGE(0, MAX_STEP_NS), .standard = "0.025",        \
      UNDER(STEP_TIME, IS(PKV_STEP_TIME_AFFINE)))                                               \
    X(PER_DECODE_MS, "step_time.per_decode_ms", .kind = KIND_MS,                                \
      FIELD(step_time.per_decode_ns), RANGE(0, MAX_STEP_NS), .standard = "0",                   \
      UNDER(STEP_TIME, IS(PKV_STEP_TIME_AFFINE)))                                               \
    X(PER_CONTEXT_TOKEN_NS, "step_time.per_context_token_ns", .kind = KIND_NS,                  \
      FIELD(step_time.per_context_token_ns), RANGE(0, MAX_STEP_NS), .standard = "0",            \
      UNDER(STEP_TIME, IS(PKV_STEP_TIME_AFFINE)))                                               \
    X(TRACE, "traffic.trace", .kind = KIND_PATH, FIELD(trace))                                  \
    X(FORMAT, "traffic.format", .kind = KIND_FORMAT, FIELD(trace_options.format),               \
      .standard = "auto", UNDER(TRACE, GIVEN))                                                  \
    X(COLUMNS, "traffic.columns", .kind = KIND_TEXT, FIELD(trace_options.columns),              \
      UNDER(TRACE, GIVEN))                                                                      \
    X(TIME_UNIT, "traffic.time_unit", .kind = KIND_TEXT, FIELD(trace_options.time_unit),        \
      UNDER(TRACE, GIVEN))                                                                      \
    X(LENIENT_IDS, "traffic.lenient_ids", .kind = KIND_BOOL, FIELD(trace_options.lenient_ids),  \
      .standard = "false", UNDER(TRACE, GIVEN))                                                 \
    X(SORT, "traffic.sort", .kind = KIND_BOOL, FIELD(trace_options.sort), .standard = "false",  \
      UNDER(TRACE, GIVEN))                                                                      \
    X(LIMIT, "traffic.limit", .kind = KIND_U64, FIELD(trace_options.limit),                     \
      RANGE(1, INT64_MAX), UNDER(TRACE, GIVEN))                                                 \
    X(SPEEDUP, "traffic.speedup", .kind = KIND_SPEEDUP, FIELD(trace_options.speedup_num),       \
      .standard = "1", UNDER(TRACE, GIVEN))                                                     \
    X(REQUESTS, "traffic.requests", .kind = KIND_U64, FIELD(synth.num_requests),                \
      RANGE(1, INT64_MAX))                                                                      \
    X(ARRIVALS_LAW, "traffic.arrivals.law", .kind = KIND_WORD, FIELD(synth.arrival),            \
      WORDS(arrival_laws), .standard = "at_once", UNDER(REQUESTS, GIVEN))                       \
    X(ARRIVALS_RATE, "traffic.arrivals.rate_per_s", .kind = KIND_DOUBLE,                        \
      FIELD(synth.rate_per_s), RANGE(1e-9, 1e9), .required = true,                              \
      UNDER(ARRIVALS_LAW, RATE_LAWS))                                                           \
    X(ARRIVALS_CV, "traffic.arrivals.cv", .kind = KIND_DOUBLE, FIELD(synth.arrival_cv),         \
      RANGE(0.01, 100), .required = true,                                                       \
      UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_GAMMA) | IS(PKV_ARRIVAL_WEIBULL)))                     \
    X(ARRIVALS_ON, "traffic.arrivals.on", .kind = KIND_TIME, FIELD(synth.on_ns),                \
      RANGE(1, MAX_SPAN_NS), .required = true, UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_BURSTS)))     \
    X(ARRIVALS_OFF, "traffic.arrivals.off", .kind = KIND_TIME, FIELD(synth.off_ns),             \
      RANGE(1, MAX_SPAN_NS), .required = true, UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_BURSTS)))     \
    X(ARRIVALS_PERIOD, "traffic.arrivals.period", .kind = KIND_TIME, FIELD(synth.period_ns),    \
      RANGE(1, MAX_SPAN_NS), .required = true, UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_DIURNAL)))    \
    X(ARRIVALS_AMPLITUDE, "traffic.arrivals.amplitude", .kind = KIND_DOUBLE,                    \
      FIELD(synth.amplitude), RANGE(0, 1), .required = true,                                    \
      UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_DIURNAL)))                                             \
    X(ARRIVALS_AT, "traffic.arrivals.at", .kind = KIND_TIME, FIELD(synth.spike_at_ns),          \
      RANGE(0, MAX_SPAN_NS), .required = true, UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_SPIKE)))      \
    X(ARRIVALS_FOR, "traffic.arrivals.for", .kind = KIND_TIME, FIELD(synth.spike_for_ns),       \
      RANGE(0, MAX_SPAN_NS), .required = true, UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_SPIKE)))      \
    X(ARRIVALS_FACTOR, "traffic.arrivals.factor", .kind = KIND_DOUBLE,                          \
      FIELD(synth.spike_factor), RANGE(0, 1e6), .required = true,                               \
      UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_SPIKE)))                                               \
    X(ARRIVALS_CONCURRENCY, "traffic.arrivals.concurrency", .kind = KIND_U32,                   \
      FIELD(synth.concurrency), RANGE(1, MAX_COUNT), .required = true,                          \
      UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_CLOSED_LOOP)))                                         \
    X(ARRIVALS_DELAY, "traffic.arrivals.delay", .kind = KIND_TIME, FIELD(synth.loop_delay_ns),  \
      RANGE(0, MAX_SPAN_NS), .standard = "0s",                                                  \
      UNDER(ARRIVALS_LAW, IS(PKV_ARRIVAL_CLOSED_LOOP)))                                         \
    LENGTH_KEYS(X, PROMPT, "traffic.prompt_tokens", synth.prompt, 1, REQUESTS)                  \
    LENGTH_KEYS(X, OUTPUT, "traffic.output_tokens", synth.output, 0, REQUESTS)                  \
    NUMBER_KEYS(X, RATIO, "traffic.max_tokens_ratio", synth.max_tokens_ratio, REQUESTS)         \
    X(PREFIX_NUM, "traffic.prefixes.num", .kind = KIND_U32, FIELD(synth.prefix_num),            \
      RANGE(0, 1 << 20), .standard = "0", UNDER(REQUESTS, GIVEN))                               \
    X(PREFIX_DEPTH, "traffic.prefixes.depth", .kind = KIND_U32, FIELD(synth.prefix_depth),      \
      RANGE(1, PKV_MAX_PREFIX_DEPTH), .standard = "1", UNDER(PREFIX_NUM, GIVEN))                \
    X(PREFIX_ZIPF, "traffic.prefixes.zipf", .kind = KIND_DOUBLE, FIELD(synth.prefix_zipf),      \
      RANGE(0, 100), .standard = "0", UNDER(PREFIX_NUM, GIVEN))                                 \
    X(PREFIX_SHARE, "traffic.prefixes.share", .kind = KIND_DOUBLE, FIELD(synth.prefix_share),   \
      RANGE(0, 1), .standard = "1", UNDER(PREFIX_NUM, GIVEN))                                   \
    LENGTH_KEYS(X, PREFIX, "traffic.prefixes.tokens", synth.prefix_tokens, 1, PREFIX_NUM)       \
    X(SESSION_SHARE, "traffic.sessions.share", .kind = KIND_DOUBLE, FIELD(synth.session_share), \
      RANGE(0, 1), .standard = "0", UNDER(REQUESTS, GIVEN))                                     \
    LENGTH_KEYS(X, TURNS, "traffic.sessions.turns", synth.turns, 1, SESSION_SHARE)              \
    LENGTH_KEYS(X, TURN, "traffic.sessions.turn_tokens", synth.turn_tokens, 1, SESSION_SHARE)   \
    NUMBER_KEYS(X, TURN_DELAY, "traffic.sessions.delay_ms", synth.delay_ms, SESSION_SHARE)      \
    X(MAX_CONTEXT_TOKENS, "traffic.sessions.max_context_tokens", .kind = KIND_U32,              \
      FIELD(synth.max_context_tokens), RANGE(0, MAX_COUNT), .standard = "0",                    \
      UNDER(SESSION_SHARE, GIVEN))                                                              \
    X(PRIORITIES, "traffic.priorities", .kind = KIND_PRIORITIES, FIELD(synth.num_priorities),   \
      UNDER(REQUESTS, GIVEN))                                                                   \
    X(TENANTS, "traffic.tenants", .kind = KIND_TENANTS, FIELD(synth.num_tenants),               \
      UNDER(REQUESTS, GIVEN))                                                                   \
    X(ABORT_SHARE, "traffic.aborts.share", .kind = KIND_DOUBLE, FIELD(synth.abort_share),       \
      RANGE(0, 1), .standard = "0", UNDER(REQUESTS, GIVEN))                                     \
    NUMBER_KEYS(X, ABORT_AFTER, "traffic.aborts.after_ms", synth.abort_after_ms, ABORT_SHARE)   \
    X(ABORT_MIN, "traffic.aborts.min", .kind = KIND_TIME, FIELD(synth.abort_min_ns),            \
      RANGE(0, MAX_SPAN_NS), .standard = "0s", UNDER(ABORT_AFTER_LAW, IS(PKV_NUMBER_NONE)))     \
    X(ABORT_MAX, "traffic.aborts.max", .kind = KIND_TIME, FIELD(synth.abort_max_ns),            \
      RANGE(0, MAX_SPAN_NS), .required = true, UNDER(ABORT_AFTER_LAW, IS(PKV_NUMBER_NONE)))     \
    X(SAMPLES, "traffic.samples", .kind = KIND_U32, FIELD(synth.samples),                       \
      RANGE(1, PKV_MAX_SAMPLES), .standard = "1", UNDER(REQUESTS, GIVEN))                       \
    X(BEAM_WIDTH, "traffic.beam_width", .kind = KIND_U32, FIELD(synth.beam_width),              \
      RANGE(1, PKV_MAX_SAMPLES), .standard = "1", UNDER(REQUESTS, GIVEN))                       \
    X(HASH_BLOCK_SIZE, "traffic.hash_block_size", .kind = KIND_U32,                             \
      FIELD(trace_options.hash_block_size), RANGE(0, 1 << 20), .standard = "0")                 \
    X(SEED, "traffic.seed", .kind = KIND_U64, FIELD(seed), RANGE(0, UINT64_MAX),                \
      .standard = "1")                                                                          \
    X(TTFT_MS, "targets.ttft_ms", .kind = KIND_MS, FIELD(target_ttft_ns),                       \
      RANGE(1, MAX_SPAN_NS))                                                                    \
    X(ITL_MS, "targets.itl_ms", .kind = KIND_MS, FIELD(target_itl_ns), RANGE(1, MAX_SPAN_NS))   \
    X(MEASURE_AFTER, "measure.after", .kind = KIND_TIME, FIELD(measure_after_ns),               \
      RANGE(0, MAX_SPAN_NS), .standard = "0s")                                                  \
    X(MEASURE_UNTIL, "measure.until", .kind = KIND_TIME_OR_END, FIELD(measure_until_ns),        \
      RANGE(1, MAX_SPAN_NS), .standard = "end")                                                 \
    X(HORIZON, "horizon", .kind = KIND_TIME, FIELD(horizon_ns), RANGE(1, MAX_SPAN_NS))          \
    X(VARY, "vary", .kind = KIND_VARY)

enum key_id {
    KEY_NONE,
#define KEY_ENUM(id, ...) KEY_##id,
    SCENARIO_KEYS(KEY_ENUM)
#undef KEY_ENUM
    KEY_COUNT
};

#define MAX_MEANINGS 3

struct key {
    const char *name;                /* dotted path */
    enum key_kind kind;
    bool required;                   /* whenever it has a meaning */
    const char *standard;            /* its value when nobody says one; NULL = none */
    size_t field;                    /* offset in struct pkv_scenario */
    double min, max;                 /* ends included; whole numbers beyond 2^53 are not bounded */
    enum key_id decider;             /* KEY_NONE = always has a meaning */
    unsigned when;                   /* bits of the decider's values */
    const char *const *words;        /* KIND_WORD: ends with NULL; index = value */
    enum pkv_choice choice;
    enum key_id means[MAX_MEANINGS]; /* other names only; KEY_NONE = the key itself */
};

bool key_is_named_bytes(const struct key *key);
extern const struct key keys[KEY_COUNT];   /* keys[KEY_NONE] is no key */

enum key_id key_find(const char *name);    /* KEY_NONE = no such key */

/* A map of keys. */
enum section_form {
    SECTION_PLAIN,
    SECTION_STEP_TIME,   /* may be written "fixed:1" or "affine:10,0.025,0,0" */
    SECTION_LENGTH,      /* may be written as a bare number: a constant */
    SECTION_NUMBER       /* the same, and the number need not be whole */
};
struct section {
    const char *name;
    enum section_form form;
    bool is_whole;       /* giving the map anew replaces all that was said before */
};
const struct section *section_find(const char *name);   /* NULL = no such section */
const char *section_name(size_t i);                     /* NULL = there are no more */

/* "block_size, num_blocks, ..." of a section ("" = the top), into out; cut with "...". */
void section_list(const char *name, char *out, size_t size);

/* Where a key's value is. */
static inline const void *key_field(const struct pkv_scenario *s, enum key_id id)
{
    return (const char *)s + keys[id].field;
}

/* Has the key a meaning, as the scenario stands? */
bool key_applies(const struct pkv_scenario *s, enum key_id id);

#endif
