/*
 * test_scenario_errors.c - every kind of wrong scenario, the place it is reported at, and words
 * that must stand in the sentence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "scenario_fixture.h"

/* Lines and columns were counted by hand; SYNTHETIC's traffic begins in line 2. */
#define POOL "kv: {num_blocks: 5}\n"
#define SYNTHETIC POOL "traffic:\n  requests: 3\n  prompt_tokens: 8\n  output_tokens: 4\n"

struct wrong {
    const char *text;
    unsigned line, column;
    const char *words;
};

static const struct wrong wrongs[] = {
    /* the document */
    { "", 0, 0, "is empty" },
    { "# nothing but a comment\n", 0, 0, "is empty" },
    { "- kv\n", 1, 1, "a scenario is a map of keys" },
    { "just words\n", 1, 1, "a scenario is a map of keys" },
    { "kv: {num_blocks: 5\ntraffic: {trace: a}\n", 2, 8, "" },
    { "kv: {num_blocks: 5, num_blocks: 6}\n", 1, 21, "'num_blocks' is here twice" },
    { "kv: {c: 1, b: 2, a: 3, b: 4, a: 5, b: 6}\n", 1, 24, "'b' is here twice" },
    { "title: gr\xfc\xdf\n", 1, 10, "byte 0xfc does not belong here: the text is not UTF-8" },
    { MINIMAL "---\nkv: {}\n", 3, 1, "a second document" },
    { "kv: &pool {num_blocks: 5}\nscheduler: *pool\n", 1, 11, "anchors are not read" },
    { "kv: *pool\n", 1, 5, "aliases are not read" },
    { "kv: {<<: {a: 1}, num_blocks: 5}\n", 1, 6, "merge keys" },
    { "kv: {num_blocks: !!int 5}\n", 1, 24, "tags are not read" },
    { "kv: {[1]: 5}\n", 1, 6, "cannot be a key" },
    { "title: 'never ends\n", 1, 9, "without closing quote" },
    { "title: a\n\tkv: 1\n", 1, 8, "multiline" },
    /* keys */
    { MINIMAL "horzon: 10s\n", 3, 1, "unknown key 'horzon'; the nearest is 'horizon'; known: title" },
    { "kv: {num_blocks: 5, blocksize: 4}\n", 1, 21,
      "unknown key 'kv.blocksize'; the nearest is 'kv.block_size'; known in kv: " },
    { "kv:\n  num_blocks: 5\n  \xc3\xa9t\xc3\xa9: {x: 1}\n", 3, 3, "unknown key 'kv.\xc3\xa9t" },
    { "kv: {\xc3\xa9: 1}\n", 1, 6, "unknown key" },
    { "kv: {num_blocks: 5, groups: [{type: full}]}\nquestion: \xc3\xa9\xc3\xa9 {\nx: 1\n", 3, 1,
      "unknown key 'x'" },
    { "kv.num_blocks: 5\n", 1, 1, "unknown key 'kv.num_blocks'" },
    { MINIMAL "scheduler: {preset: vllm, aging_tokens: 4}\n", 3, 27, "aging_tokens" },
    { "kv: 5\n", 1, 5, "kv: keys belong here" },
    { "kv: [a]\n", 1, 5, "kv: keys belong here" },
    { "kv:\ntraffic: {trace: a}\n", 1, 1, "kv: keys belong here" },
    { MINIMAL "step_time: [1]\n", 3, 12, "step_time: keys belong here" },
    /* what is missing */
    { POOL, 0, 0, "no traffic: give traffic.trace or traffic.requests" },
    { "traffic: {trace: a}\n", 0, 0, "no pool: give kv.num_blocks, kv.num_gpu_blocks, or" },
    { "title: t\n", 0, 0, "no pool" },
    { POOL "traffic: {requests: 3, output_tokens: 1}\n", 2, 21,
      "traffic.prompt_tokens.law is missing" },
    { POOL "traffic: {requests: 3, prompt_tokens: 1}\n", 2, 21,
      "traffic.output_tokens.law is missing" },
    { SYNTHETIC "  arrivals: {law: poisson}\n", 6, 19, "traffic.arrivals.rate_per_s is missing" },
    { SYNTHETIC "  aborts: {share: 0.5}\n", 6, 19, "traffic.aborts.max is missing" },
    { SYNTHETIC "  prefixes: {num: 2}\n", 6, 19, "traffic.prefixes.tokens.law is missing" },
    { MINIMAL "step_time: {model: fixed}\n", 3, 20, "step_time.ms is missing" },
    /* contiguous layouts */
    { MINIMAL "scheduler: {layout: contiguous_pow2}\n", 3, 21,
      "layout: contiguous_pow2 goes without a prefix cache; say kv.prefix_cache: false" },
    { "kv: {num_blocks: 5, prefix_cache: true}\nscheduler: {preset: orca-oracle}\n"
      "traffic: {trace: t.jsonl}\n", 1, 35,
      "layout: contiguous_exact goes without a prefix cache" },
    { MINIMAL "scheduler: {preset: orca-max}\n", 3, 21,
      "contiguous_max reserves max_model_len positions, and there is no scheduler.max_model_len" },
    /* swapping */
    { MINIMAL "scheduler: {on_preempt: swap}\n", 3, 25,
      "on_preempt: swap copies blocks to the host, and there is no kv.host_blocks" },
    { "kv: {num_blocks: 5, host_blocks: 4, prefix_cache: false}\n"
      "scheduler: {on_preempt: auto, layout: contiguous_exact}\ntraffic: {trace: t.jsonl}\n", 2, 25,
      "on_preempt: auto moves blocks one by one, and layout: contiguous_exact gives them in one piece" },
    { "kv: {num_blocks: 5, host_blocks: 4, groups: [{type: sliding, window: 8}]}\n"
      "scheduler: {on_preempt: swap}\ntraffic: {trace: t.jsonl}\n", 1, 45,
      "on_preempt: swap moves the blocks of one growing table and serves one group of full attention" },
    { "kv: {num_blocks: 5, host_blocks: 4}\nscheduler: {on_preempt: swap, async_scheduling: true}\n"
      "traffic: {trace: t.jsonl}\n", 2, 25, "on_preempt: swap moves blocks between steps that do not "
      "overlap and bring one token; it goes without async_scheduling" },
    { "kv: {num_blocks: 5, host_blocks: 4}\nscheduler: {on_preempt: auto}\ntraffic: {trace: t.jsonl}\n"
      "speculation: {method: ngram, num_tokens: 2, acceptance_rate: 1}\n", 2, 25,
      "on_preempt: auto moves blocks between steps that do not overlap and bring one token; it goes "
      "without speculation" },
    { "kv: {num_blocks: 5, bytes_per_token: 4}\ntraffic: {trace: t.jsonl}\n", 1, 21,
      "kv.bytes_per_token: has no meaning while kv.host_blocks is 0" },
    { "kv: {num_blocks: 5, host_blocks: 4}\nlink: {bandwidth: 0}\ntraffic: {trace: t.jsonl}\n", 2, 19,
      "link.bandwidth: 0 is not within 1" },
    { "kv: {num_blocks: 5, host_blocks: 4}\nlink: {bandwidth: 5 parsecs}\n", 2, 19,
      "link.bandwidth: '5 parsecs'" },
    { "kv: {num_blocks: 5, host_blocks: 4}\nlink: {latency: 5}\ntraffic: {trace: t.jsonl}\n", 2, 17,
      "link.latency: '5' has no unit" },
    { "kv: {num_blocks: 5, host_blocks: 4}\nlink: {colour: 5us}\n", 2, 8,
      "unknown key 'link.colour'; known in link: bandwidth, latency" },
    /* types */
    { "kv: {num_blocks: many}\n", 1, 18, "kv.num_blocks: 'many' is not a whole number" },
    { "kv: {num_blocks: -5}\n", 1, 18, "'-5' is negative" },
    { "kv: {num_blocks: 5.0}\n", 1, 18, "'5.0' is not a whole number" },
    { "kv: {num_blocks: 5e3}\n", 1, 18, "'5e3' is not a whole number" },
    { "kv: {num_blocks: \"5\"}\n", 1, 18, "in quotes is text" },
    { "kv: {num_blocks: [5]}\n", 1, 18, "a list stands where a whole number belongs" },
    { "kv: {num_blocks: {a: 5}}\n", 1, 18, "a map of keys stands where a whole number belongs" },
    { "kv: {num_blocks: true}\n", 1, 18, "'true' is not a whole number" },
    { "kv:\n  num_blocks:\n", 2, 3, "kv.num_blocks: has no value" },
    { "kv: {num_blocks: null}\n", 1, 18, "has no value" },
    { "kv: {num_blocks: ~}\n", 1, 18, "has no value" },
    { "kv: {num_blocks: 5, prefix_cache: 1}\n", 1, 35, "'1' is neither true nor false" },
    { "kv: {num_blocks: 5, prefix_cache: yes}\n", 1, 35, "'yes' is neither true nor false" },
    { "kv: {num_blocks: 5, prefix_cache: 'true'}\n", 1, 35, "in quotes is text" },
    { MINIMAL "title: [a]\n", 3, 8, "title: a list stands where text belongs" },
    { POOL "traffic: {trace: [a]}\n", 2, 18, "a list stands where a path belongs" },
    { POOL "traffic: {trace: ''}\n", 2, 18, "is empty" },
    { MINIMAL "scheduler: {watermark: little}\n", 3, 24, "'little' is not a number" },
    { MINIMAL "targets: {ttft_ms: soon}\n", 3, 20, "targets.ttft_ms: 'soon' is not a time" },
    { MINIMAL "targets: {ttft_ms: 5 weeks}\n", 3, 20, "unknown unit" },
    /* ranges */
    { "kv: {num_blocks: 0}\n", 1, 18, "kv.num_blocks: 0 is below 1" },
    { "kv: {num_blocks: 2147483647}\n", 1, 18, "is larger than 2147483646" },
    { "kv: {num_blocks: 99999999999999999999999}\n", 1, 18, "is larger than 2147483646" },
    { "kv: {num_gpu_blocks: 1}\n", 1, 22, "kv.num_gpu_blocks: 1 is below 2" },
    { "kv: {num_blocks: 5, block_size: 0}\n", 1, 33, "kv.block_size: 0 is below 1" },
    { MINIMAL "scheduler: {watermark: 1.01}\n", 3, 24, "1.01 is not within 0 .. 1" },
    { MINIMAL "scheduler: {watermark: -0.1}\n", 3, 24, "-0.1 is not within 0 .. 1" },
    { MINIMAL "scheduler: {watermark: nan}\n", 3, 24, "not a number" },
    { MINIMAL "targets: {itl_ms: 0}\n", 3, 19, "0 is too short" },
    { MINIMAL "targets: {itl_ms: -1ms}\n", 3, 19, "-1ms is negative" },
    { POOL "traffic: {requests: 0, prompt_tokens: 1, output_tokens: 1}\n", 2, 21, "0 is below 1" },
    { POOL "traffic: {trace: a, speedup: 0}\n", 2, 30, "traffic.speedup: '0'" },
    { POOL "traffic: {trace: a, speedup: -1}\n", 2, 30, "traffic.speedup: '-1'" },
    { POOL "traffic: {trace: a, speedup: 0.0000001}\n", 2, 30, "traffic.speedup" },
    { POOL "traffic: {trace: a, seed: 18446744073709551616}\n", 2, 27, "is larger than" },
    { SYNTHETIC "  prefixes: {num: 1, tokens: 4, share: 2}\n", 6, 40, "2 is not within 0 .. 1" },
    /* words */
    { MINIMAL "scheduler: {preset: vlm}\n", 3, 21,
      "'vlm' is not known; the nearest is 'vllm'; known: vllm, vllm-async, vllm-0.19" },
    { MINIMAL "scheduler: {order: sjff}\n", 3, 20,
      "'sjff' is not known; the nearest is 'sjf'; known: fcfs, priority" },
    { MINIMAL "scheduler: {policy: lifo}\n", 3, 21, "known: fcfs, priority" },
    { MINIMAL "scheduler: {unhashed_free: middle}\n", 3, 28, "known: head, tail" },
    { MINIMAL "scheduler: {oversized: ignore}\n", 3, 24, "known: reject, wait" },
    { MINIMAL "step_time: {model: quadratic}\n", 3, 20, "known: fixed, affine" },
    { SYNTHETIC "  arrivals: {law: weekly}\n", 6, 19, "known: constant, poisson, at_once" },
    { POOL "traffic: {trace: a, format: word}\n", 2, 29, "'word' is not known; known: auto, " },
    /* exclusive keys */
    { "kv:\n  num_blocks: 50\n  budget: 10GiB\n", 3, 3,
      "kv.budget and kv.num_blocks (line 2) exclude" },
    { "kv: {model: x, budget: 10GiB, num_blocks: 50}\n", 1, 31, "kv.num_blocks and kv.budget" },
    { "kv: {num_blocks: 5, num_gpu_blocks: 6}\n", 1, 21, "kv.num_gpu_blocks and kv.num_blocks" },
    { MINIMAL "scheduler:\n  policy: priority\n  order: fcfs\n", 5, 3,
      "scheduler.order and scheduler.policy (line 4)" },
    { MINIMAL "scheduler: {requeue: front, policy: fcfs}\n", 3, 29,
      "scheduler.policy and scheduler.requeue" },
    { MINIMAL "scheduler: {reserve_full_isl: true, admit: first_chunk}\n", 3, 37,
      "scheduler.admit and scheduler.reserve_full_isl" },
    { POOL "traffic:\n  trace: a\n  requests: 4\n", 4, 3,
      "traffic.requests and traffic.trace (line 3)" },
    { POOL "traffic:\n  requests: 4\n  trace: a\n", 4, 3,
      "traffic.trace and traffic.requests (line 3)" },
    /* keys without meaning */
    { MINIMAL "step_time: {model: affine, ms: 1}\n", 3, 28, "step_time.model is affine" },
    { MINIMAL "step_time: {ms: 1}\n", 3, 13, "step_time.model is affine" },
    { MINIMAL "step_time: {model: fixed, ms: 1, base_ms: 2}\n", 3, 34, "step_time.model is fixed" },
    { SYNTHETIC "  sort: true\n", 6, 3, "there is no traffic.trace" },
    { POOL "traffic: {trace: a, prompt_tokens: 4}\n", 2, 21, "there is no traffic.requests" },
    { SYNTHETIC "  arrivals: {law: at_once, rate_per_s: 3}\n", 6, 28, "law is at_once" },
    { SYNTHETIC "  prefixes: {share: 0.5}\n", 6, 14, "traffic.prefixes.num is 0" },
    { MINIMAL "scheduler: {max_overtakes: 3}\n", 3, 13, "a parameter of on_blocked: skip" },
    { MINIMAL "scheduler: {on_blocked: skip, max_overtakes: -1}\n", 3, 46, "-1 is not within" },
    { MINIMAL "scheduler: {on_blocked: skip, max_overtakes: two}\n", 3, 46, "'two' is not" },
    /* lengths, priorities, groups */
    { POOL "traffic: {requests: 1, output_tokens: 1, prompt_tokens: 0}\n", 2, 57, "0 is below 1" },
    { POOL "traffic: {requests: 1, output_tokens: 1, prompt_tokens: {law: uniform, "
      "min: 9}}\n", 2, 77,
      "traffic.prompt_tokens.max is missing" },
    { POOL "traffic: {requests: 1, output_tokens: 1, prompt_tokens: {law: uniform, min: 9, "
      "max: 8}}\n",
      2, 85, "traffic.prompt_tokens: max 8 is below min 9" },
    { SYNTHETIC "  priorities: 3\n", 6, 15, "a list of priorities" },
    { SYNTHETIC "  priorities: []\n", 6, 15, "a list of priorities" },
    { SYNTHETIC "  priorities: [0, high]\n", 6, 19, "'high' is not a whole number" },
    { SYNTHETIC "  priorities: [{priority: 1, weight: 0}]\n", 6, 38, "a weight is above 0" },
    { SYNTHETIC "  priorities: [{weight: 1}]\n", 6, 16, "priority is missing" },
    { SYNTHETIC "  priorities: [{priority: 1, share: 1}]\n", 6, 30, "unknown key 'share'" },
    { SYNTHETIC "  priorities: [{priority: 1, wieght: 1}]\n", 6, 30,
      "unknown key 'wieght'; the nearest is 'weight'; known: priority, weight" },
    { SYNTHETIC "  aborts: {share: 1, min: 9ms, max: 8ms}\n", 6, 37, "max is below min" },
    { SYNTHETIC "  aborts: {share: 1, max: 8}\n", 6, 27, "'8' has no unit" },
    { "kv: {num_blocks: 5, groups: [{type: full}, {type: mamba}]}\n", 1, 51,
      "'mamba' is not known; known: full, sliding, chunked, state" },
    { "kv: {num_blocks: 5, groups: [{type: slidng, window: 4}]}\n", 1, 37,
      "'slidng' is not known; the nearest is 'sliding'; known" },
    { "kv: {num_blocks: 5, groups: [{type: sliding, window: 0}]}\n", 1, 54,
      "window 0 is below 1" },
    { "kv: {num_blocks: 5, groups: [{type: sliding}]}\n", 1, 30,
      "a group of type sliding has a window" },
    { "kv: {num_blocks: 5, groups: [{type: chunked, chunk: -1}]}\n", 1, 53, "'-1' is negative" },
    { "kv: {num_blocks: 5, groups: [{type: chunked, window: 4}]}\n", 1, 46,
      "unknown key 'window'; known: type, block_size, chunk" },
    { "kv: {num_blocks: 5, groups: [{type: state, blocks: 0}]}\n", 1, 52,
      "blocks 0 is below 1" },
    { "kv: {num_blocks: 5, groups: [{type: full}, {type: full}, {type: full}, {type: full}, "
      "{type: full}, {type: full}, {type: full}, {type: full}, {type: full}]}\n", 1, 142,
      "at most 8 groups" },
    { "kv: {num_blocks: 5, groups: [{type: full, block_size: 1048575}, {type: full, "
      "block_size: 1048576}]}\n", 1, 29, "no common multiple" },
    { "kv: {num_blocks: 5, prefix_cache: false, groups: [{type: sliding, window: 4}]}\n"
      "scheduler: {layout: contiguous_exact}\n", 1, 50, "one group of full attention" },
    { "kv: {num_blocks: 5, groups: [{type: full}, {type: sliding, window: 4}]}\n"
      "scheduler: {admit: ratio}\n", 1, 29,
      "admit: ratio reckons in tokens of one growing table and serves one group of full attention" },
    { "kv: {num_blocks: 5, groups: [{type: full, window: 4}]}\n", 1, 43, "unknown key 'window'" },
    { "kv: {num_blocks: 5, groups: [full]}\n", 1, 30, "a group is a map" },
    { "kv: {num_blocks: 5, groups: [{type: full, block_size: 0}]}\n", 1, 55, "0 is below 1" },
    /* times that are no whole number of nanoseconds */
    { MINIMAL "step_time: {model: affine, base_ms: 0.0000001}\n", 3, 37,
      "0.0000001 is not a whole" },
    { MINIMAL "step_time: {model: affine, per_context_token_ns: 0.5}\n", 3, 50,
      "0.5 is not a whole" },
    { MINIMAL "step_time: {model: affine, base_ms: 0}\n", 3, 37, "0 is too short" },
    { MINIMAL "step_time: affine:10,0.02500001,0,0\n", 3, 12, "0.02500001 is not a whole" },
    { MINIMAL "step_time: affine:10,0.025,0\n", 3, 12, "is neither fixed:MS nor affine" },
    { MINIMAL "step_time: affine:10,0.025,0,0,0\n", 3, 12, "is neither fixed:MS nor affine" },
    { MINIMAL "step_time: fixed\n", 3, 12, "is neither fixed:MS nor affine" },
    { MINIMAL "step_time: fixed:\n  1\n", 3, 0, "" },
    { MINIMAL "step_time: fixed:0\n", 3, 12, "0 is too short" },
    { MINIMAL "step_time: fixed:fast\n", 3, 12, "'fast' is not a time" },
    /* speculation */
    { MINIMAL "speculation: {method: medusa, num_tokens: 3}\n", 3, 23,
      "'medusa' is not known; known: none, draft_model, eagle, ngram" },
    { MINIMAL "speculation: {method: eagle, acceptance_rate: 1}\n", 3, 23,
      "speculation.num_tokens is missing; speculation.method asks for it" },
    { MINIMAL "speculation: {method: eagle, num_tokens: 2}\n", 3, 23,
      "speculation.acceptance_rate is missing; speculation.method asks for it" },
    { MINIMAL "speculation: {num_tokens: 2}\n", 3, 15,
      "speculation.num_tokens: has no meaning while speculation.method is none" },
    { MINIMAL "speculation: {method: ngram, num_tokens: 65, acceptance_rate: 1}\n", 3, 42,
      "'65' is larger than 64" },
    { MINIMAL "speculation: {method: ngram, num_tokens: 0, acceptance_rate: 1}\n", 3, 42,
      "speculation.num_tokens: 0 is below 1" },
    { MINIMAL "speculation: {method: ngram, num_tokens: 4, acceptance_rate: 1.1}\n", 3, 62,
      "1.1 is not within 0 .. 1" },
    { MINIMAL "speculation: {method: ngram, num_tokens: 4, accepted: [1], acceptance_rate: 1}\n",
      3, 60, "speculation.acceptance_rate: speculation.accepted says which drafts are right" },
    { MINIMAL "speculation: {method: ngram, num_tokens: 4, accepted: [1, 5]}\n", 3, 59,
      "'5' is larger than 4" },
    { MINIMAL "speculation: {method: ngram, num_tokens: 4, accepted: 3}\n", 3, 55,
      "a list of numbers of drafts" },
    { MINIMAL "scheduler: {async_scheduling: true}\n"
      "speculation: {method: eagle, num_tokens: 2, acceptance_rate: 1}\n", 4, 23,
      "does not go together with async_scheduling" },
    { MINIMAL "scheduler: {preset: orca-oracle, async_scheduling: true}\n", 3, 52,
      "layout: contiguous_exact gives a request all its blocks at once; it goes without "
      "async_scheduling" },
    { "kv: {num_blocks: 5, groups: [{type: sliding, window: 8}]}\ntraffic: {trace: a.jsonl}\n"
      "speculation: {method: eagle, num_tokens: 2, acceptance_rate: 1}\n", 3, 23,
      "speculation.method: eagle drops the last block of a hit and serves one group of full attention" },
    { "kv: {num_blocks: 5, groups: [{type: full}, {type: full}]}\ntraffic: {trace: a.jsonl}\n"
      "speculation: {method: eagle, num_tokens: 2, acceptance_rate: 1}\n", 3, 23,
      "speculation.method: eagle drops the last block of a hit and serves one group of full attention" },
    { MINIMAL "scheduler: {admit: mc_sf}\n"
      "speculation: {method: ngram, num_tokens: 2, acceptance_rate: 1}\n", 3, 20,
      "admit: mc_sf looks into a future of one token a step; it goes without speculation" },
    { MINIMAL "scheduler: {preset: mc-sf, async_scheduling: true}\n", 3, 46,
      "it goes without async_scheduling" },
    { MINIMAL "scheduler: {fork: true, async_scheduling: true}\n", 3, 19,
      "fork: does not go together with async_scheduling in this version" },
    { MINIMAL "scheduler: {preset: vllm-async, fork: on}\n", 3, 39,
      "fork: does not go together with async_scheduling in this version" },
    { MINIMAL "speculation: {method: ngram, num_tokens: 2, acceptance_rate: 1}\n"
      "scheduler: {fork: on}\n", 4, 19, "fork: does not go together with speculation in this version" },
    { "kv: {num_blocks: 100, host_blocks: 100}\ntraffic: {trace: t.jsonl}\n"
      "scheduler: {on_preempt: swap, fork: on}\n", 3, 37,
      "fork: does not go together with on_preempt: swap in this version" },
    /* a model's keys */
    { "kv: {budget: 40GiB}\n", 1, 14, "there is no kv.model" },
    { "kv: {num_blocks: 5, model: llama}\n", 1, 28, "kv.model: 'llama' is neither" },
    { "kv: {num_blocks: 5, dtype: fp8}\n", 1, 21, "kv.dtype: is for a model" },
    { "kv: {num_blocks: 5, tp: 2}\n", 1, 21, "kv.tp: is for a model" },
    { "kv: {num_blocks: 5, pp: 2}\n", 1, 21, "kv.pp: is for a model" },
    { "kv: {budget: 1GiB, model: phi-4-14b, tp: 4}\n", 1, 42, "kv.tp: TP 4 does not divide 10" },
    { "kv: {budget: 40GiBs, model: phi-4-14b}\n", 1, 14, "kv.budget: '40GiBs'" },
    { "kv: {budget: 1GiB, model: phi-4-14b, groups: [{type: full}]}\n", 1, 38, "exclude each other" },
    /* windows, grids */
    { MINIMAL "measure: {after: 1}\n", 3, 18, "'1' has no unit" },
    { MINIMAL "measure: {until: soon}\n", 3, 18, "'soon' is not a time" },
    { MINIMAL "measure: {after: 2s, until: 2s}\n", 3, 29, "measure: until is not above after" },
    { MINIMAL "measure: {until: 0s}\n", 3, 18, "0s is too short" },
    { MINIMAL "horizon: 0s\n", 3, 10, "0s is too short" },
    { MINIMAL "horizon: end\n", 3, 10, "'end' is not a time" },
    { MINIMAL "vary: [1]\n", 3, 7, "vary: keys with lists of values belong here" },
    { MINIMAL "vary: {kv.num_blocks: 7}\n", 3, 23, "vary: kv.num_blocks: a list of values" },
    { MINIMAL "vary: {kv.num_blocks: []}\n", 3, 23, "kv.num_blocks: the list of values is empty" },
    { MINIMAL "vary:\n  kv.num_block: [1, 2]\n", 4, 3,
      "unknown key 'kv.num_block'; the nearest is 'kv.num_blocks'; known in kv" },
    { MINIMAL "vary:\n  kv.num_blocks: [1, ten]\n", 4, 22, "'ten' is not a whole number" },
    { MINIMAL "vary: {scheduler.preempt: [newest, nearest]}\n", 3, 36, "'nearest'" },
    { MINIMAL "vary: {horizon: [1]}\n", 3, 18, "'1' has no unit" },
    { MINIMAL "vary: {vary: [1]}\n", 3, 8, "a grid cannot be varied" },
    { MINIMAL "vary: {kv: [1]}\n", 3, 13, "kv: keys belong here" },
    { SYNTHETIC "  sessions: {turns: 3}\n", 6, 21,
      "traffic.sessions.turn_tokens.law is missing; traffic.sessions.turns asks for it" },
};
#define NUM_WRONGS ((int)(sizeof(wrongs) / sizeof(*wrongs)))

static void expect_failure(const char *path, const struct pkv_setting *settings, size_t num,
                           struct pkv_err *err)
{
    struct pkv_scenario *s = pkv_scenario_load(path, settings, num, err);

    ck_assert_msg(s == NULL, "this was taken for right: %s", num ? settings[0].value : path);
    ck_assert_int_eq(err->code, PKV_ERR_INPUT);
    ck_assert_ptr_null(strchr(err->text, '\n'));
}

START_TEST(wrong_scenarios_are_refused_at_their_place)
{
    const struct wrong *w = &wrongs[_i];
    struct pkv_err err = { .code = PKV_ERR_NONE };

    fixture_write("wrong.yaml", w->text);
    expect_failure(fixture_path("wrong.yaml"), NULL, 0, &err);
    ck_assert_str_eq(err.path, fixture_path("wrong.yaml"));
    ck_assert_msg(strstr(err.text, w->words), "'%s' does not say '%s'", err.text, w->words);
    ck_assert_msg(err.line == w->line && (w->column == 0 || err.column == w->column),
                  "%llu:%u instead of %u:%u: %s\n%s", (unsigned long long)err.line, err.column,
                  w->line, w->column, err.text, w->text);
}
END_TEST

struct wrong_setting {
    const char *key, *value, *origin, *words;
};

static const struct wrong_setting wrong_settings[] = {
    { "kv.num_blocks", "many", "--set", "kv.num_blocks: 'many' is not a whole number" },
    { "kv.num_blocks", "", "--num-blocks", "kv.num_blocks: has no value" },
    { "kv.num_blocks", "[1", "--set", "kv.num_blocks: '[1' is not a value" },
    { "kv.num_blocks", "[1]", "--set", "a list stands where" },
    { "kv.num_blocks", "1\n---\n2", "--set", "kv.num_blocks: " },
    { "kv.numblocks", "5", "--set",
      "unknown key 'kv.numblocks'; the nearest is 'kv.num_blocks'; known in kv: block_size" },
    { "blocks", "5", "--set", "unknown key 'blocks'; known: title" },
    { "num_blocks", "5", "--set", "unknown key 'num_blocks'; the nearest is 'kv.num_blocks'; known: " },
    { "trafic.seed", "5", "--set", "unknown key 'trafic.seed'; the nearest is 'traffic.seed'" },
    { "trafic", "5", "--set", "unknown key 'trafic'; the nearest is 'traffic'; known: " },
    { "scheduler.aging_token", "5", "--set", "; the nearest is 'scheduler.aging_tokens'; known in " },
    { "scheduler.zzz", "5", "--set", "unknown key 'scheduler.zzz'; known in scheduler: " },
    { "scheduler.policy", "priorty", "--set", "not known; the nearest is 'priority'; known: fcfs, " },
    { "step_time.model", "affin", "--set", "'affin' is not known; the nearest is 'affine'; known: " },
    { "", "5", "--set", "unknown key ''" },
    { "kv", "5", "--set", "kv: keys belong here" },
    { "step_time", "fixed:0.0000001", "--step-time", "is not a whole number of nanoseconds" },
    { "scheduler.preset", "none", "--preset", "'none' is not known; known: vllm" },
    { "scheduler.max_overtakes", "4", "--set", "a parameter of on_blocked: skip" },
    { "traffic.arrivals.law", "at_once", "--set", "there is no traffic.requests" },
    { "kv.budget", "40GiB", "--kv-budget", "there is no kv.model" },
};
#define NUM_WRONG_SETTINGS ((int)(sizeof(wrong_settings) / sizeof(*wrong_settings)))

START_TEST(wrong_settings_are_refused_with_their_origin_and_key)
{
    const struct wrong_setting *w = &wrong_settings[_i];
    const struct pkv_setting setting = { .key = w->key, .value = w->value, .origin = w->origin };
    struct pkv_err err = { .code = PKV_ERR_NONE };

    fixture_write("right.yaml", MINIMAL);
    expect_failure(fixture_path("right.yaml"), &setting, 1, &err);
    ck_assert_str_eq(err.path, w->origin);
    ck_assert_uint_eq(err.line, 0);
    ck_assert_msg(strstr(err.text, w->words), "'%s' does not say '%s'", err.text, w->words);
}
END_TEST

START_TEST(a_pair_within_the_settings_is_refused)
{
    const struct pkv_setting flags[] = {
        { .key = "kv.num_blocks", .value = "5", .origin = "--num-blocks" },
        { .key = "kv.num_gpu_blocks", .value = "6", .origin = "--num-gpu-blocks" },
    };
    const struct pkv_setting sets[] = {
        { .key = "scheduler.policy", .value = "fcfs", .origin = "--set" },
        { .key = "scheduler.preempt", .value = "newest", .origin = "--set" },
    };
    struct pkv_err err = { .code = PKV_ERR_NONE };

    fixture_write("right.yaml", MINIMAL);
    expect_failure(fixture_path("right.yaml"), flags, 2, &err);
    ck_assert_str_eq(err.path, "--num-gpu-blocks");
    ck_assert_ptr_nonnull(strstr(err.text, "kv.num_gpu_blocks and kv.num_blocks exclude"));
    expect_failure(fixture_path("right.yaml"), sets, 2, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "scheduler.preempt and scheduler.policy exclude"));
}
END_TEST

START_TEST(files_that_cannot_be_read_are_named)
{
    struct pkv_err err = { .code = PKV_ERR_NONE };
    FILE *file;

    expect_failure(fixture_path("missing.yaml"), NULL, 0, &err);
    ck_assert_str_eq(err.path, fixture_path("missing.yaml"));
    ck_assert_ptr_nonnull(strstr(err.text, "cannot be opened"));
    expect_failure(fixture_path(NULL), NULL, 0, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "is a directory"));

    file = fopen(fixture_path("nul.yaml"), "wb");
    ck_assert_ptr_nonnull(file);
    fwrite("kv: {}\n\0", 1, 8, file);
    fclose(file);
    expect_failure(fixture_path("nul.yaml"), NULL, 0, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "NUL character"));
    fixture_write("latin.yaml", "title: caf\xe9\n" MINIMAL);
    expect_failure(fixture_path("latin.yaml"), NULL, 0, &err);
}
END_TEST

START_TEST(nesting_without_end_is_refused)
{
    char text[2000] = "kv: ";
    struct pkv_err err = { .code = PKV_ERR_NONE };

    for (int i = 0; i < 50; i++)
        strcat(text, "[");
    for (int i = 0; i < 50; i++)
        strcat(text, "]");
    fixture_write("deep.yaml", text);
    expect_failure(fixture_path("deep.yaml"), NULL, 0, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "nested too deep"));
}
END_TEST

START_TEST(without_a_file_the_settings_must_say_enough)
{
    const struct pkv_setting setting = { .key = "traffic.trace", .value = "t.jsonl",
                                         .origin = "TRACE" };
    struct pkv_err err = { .code = PKV_ERR_NONE };

    expect_failure(NULL, &setting, 1, &err);
    ck_assert_str_eq(err.path, "");
    ck_assert_ptr_nonnull(strstr(err.text, "no pool"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenario_errors");
    TCase *tests = tcase_create("errors");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, fixture_begin, fixture_end);
    tcase_add_loop_test(tests, wrong_scenarios_are_refused_at_their_place, 0, NUM_WRONGS);
    tcase_add_loop_test(tests, wrong_settings_are_refused_with_their_origin_and_key, 0,
                        NUM_WRONG_SETTINGS);
    tcase_add_test(tests, a_pair_within_the_settings_is_refused);
    tcase_add_test(tests, files_that_cannot_be_read_are_named);
    tcase_add_test(tests, nesting_without_end_is_refused);
    tcase_add_test(tests, without_a_file_the_settings_must_say_enough);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
