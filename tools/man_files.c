/*
 * man_files.c - pagedkv-files(5): every column, field and key that a run writes.
 *
 * A test holds the names against files that the program wrote.
 */
#include "man.h"

static const struct man_fact steps[] = {
    {"step", "number of the step, from 0"},
    {"time_ns", "when it begins, in nanoseconds of virtual time"},
    {"dur_ns", "how long it takes"},
    {"waiting", "requests in the queue, those preempted included"},
    {"running", "requests that hold blocks"},
    {"free_blocks", "blocks that nobody holds"},
    {"used_blocks", "blocks that somebody holds"},
    {"cached_blocks", "free blocks that still have an identity and can be hit"},
    {"free_blocks_end", "free blocks after the step, when the finished have given theirs back"},
    {"admitted", "requests admitted for the first time in this step"},
    {"resumed", "preempted requests admitted again"},
    {"preempted", "requests that lost their blocks in this step"},
    {"finished", "requests whose last token this step brought"},
    {"rejected", "requests refused on arrival, as they could never run"},
    {"aborted", "requests cancelled before the step"},
    {"preemptions_total", "preemptions so far"},
    {"sched_tokens", "tokens computed in this step"},
    {"prefill_tokens", "of these, tokens of requests that got more than one"},
    {"decode_tokens", "of these, tokens of requests that got one"},
    {"recomputed_tokens", "of these, tokens that had been computed before and were lost"},
    {"hit_tokens", "tokens that admitted requests found in cached blocks"},
    {"evicted_blocks", "blocks whose identity was lost to a taker"},
    {"stored_tokens", "different positions in held blocks; a shared one counts once"},
    {"context_tokens", "sum over the scheduled requests of the positions they attend to"},
    {"swapped_out_blocks", "blocks that begin to go to the host in this step (on_preempt: swap, auto)"},
    {"swapped_in_blocks", "blocks that begin to come back"},
    {"max_gap_ns", "largest gap between two tokens of one request that ended in this step"},
    {"limit", "why the first in line was not admitted: 0 the queue was empty, 1 all that came were "
              "admitted, 2 blocks, 3 token budget, 4 sequences, 5 gate, watermark or reserve, "
              "6 latch: nobody was looked at, 7 a preemption in this step, or its blocks are on their "
              "way to the host"},
};

static const struct man_fact requests[] = {
    {"id", "of the trace, else the number of the row, from 0"},
    {"arrival_ns", "when it came"},
    {"admitted_ns", "when it was first admitted"},
    {"first_token_ns", "when its first token came out"},
    {"finish_ns", "when its last token came out, or when it was aborted"},
    {"status", "completed, rejected, aborted, or unfinished: still live when the run ended"},
    {"reason", "why it was rejected or is unfinished"},
    {"prompt_tokens", "length of the prompt"},
    {"output_tokens", "tokens that came out"},
    {"hit_tokens", "tokens found in cached blocks at its first admission"},
    {"recomputed_tokens", "tokens computed again after preemptions"},
    {"preemptions", "how often it lost its blocks"},
    {"peak_blocks", "most blocks held at once, shared ones included"},
    {"max_gap_ns", "largest gap between two of its tokens"},
    {"queue_ns", "from arrival to first admission, the rest of the step under way included"},
    {"tenant", "as in the trace"},
    {"priority", "as in the trace; smaller is sooner"},
};

static const struct man_fact events[] = {
    {"time_ns, step, kind, id", "in every line: when, in which step, what, and to whom"},
    {"arrive", "prompt_tokens; output_tokens, the number that it will produce; of one that follows another "
               "of its session also former_tokens, how much of its prompt was said before, and "
               "retained_tokens, how much of that is cached now"},
    {"reject", "reason"},
    {"admit, resume", "need_blocks, which it took; free_blocks, which there were; hit_tokens; "
                      "sched_tokens in this step"},
    {"blocked", "the first in line was refused: limit, by the numbers of steps.csv; need_blocks, what "
                "was asked for, watermark and reserve included; free_blocks; holders, who holds the "
                "most: at most five pairs of id and number of blocks; while the queue is shut by a "
                "latch, of whoever would be first, and refused_step, in which step and refused, by "
                "whose refusal it was shut; without refused, that one is gone"},
    {"fork", "from, the sample whose blocks it shares from here on; shared_blocks, and shared_tokens in "
             "them; freed_blocks, of its own, of a beam that gives way"},
    {"preempt", "for, the request that was short of blocks; freed_blocks; lost_tokens, computed "
                "positions that were given up"},
    {"first_token", "nothing more"},
    {"finish", "output_tokens"},
    {"abort", "was, its status until then; freed_blocks"},
    {"swap_out", "behind a preempt: its blocks go to the host; blocks, bytes; done_ns, when the link "
                 "will be through with them and they are free"},
    {"swap_in", "behind a resume: they come back; the same"},
};

static const struct man_fact summary[] = {
    {"schema", "1; raised when a key changes its meaning"},
    {"requests", "arrived, completed, rejected, aborted, unfinished"},
    {"tokens", "prompt (of admitted requests), output, scheduled, recomputed; queried and hit: of the "
               "look-ups at first admissions; resumed_queried and resumed_hit: at later ones"},
    {"blocks", "num_blocks, num_gpu_blocks (with the null block), block_size; allocated, released, "
               "copied: how often in the run"},
    {"preemptions", "in the whole run"},
    {"evicted_blocks", "in the whole run"},
    {"steps", "number of steps"},
    {"makespan_ns", "from the first arrival to the end of the last step"},
    {"peak", "used_blocks, waiting, running: the most at any step"},
    {"mean", "weighted by time: used_frac, the share of blocks held; slot_use_frac, the share of all "
             "positions of the pool that are stored; running; waiting"},
    {"latency_ms", "ttft (arrival to first token), tpot (mean time between the tokens of a completed "
                   "request), itl (every gap between two tokens), max_gap (the largest of a request), "
                   "e2e (arrival to last token), queue (arrival to first admission), each with "
                   "count, sum_ns, mean, p50, p90, p95, p99, max"},
    {"throughput", "requests_per_s, output_tokens_per_s"},
    {"sessions", "only where requests followed others: turns, how many; former_tokens, what had been said "
                 "before them; retained_tokens, what of that was still cached when they came"},
    {"goodput", "requests within the targets, requests_per_s, output_tokens_per_s; only with targets"},
    {"limit_frac", "share of time by limit, by names: idle 0, nothing 1, blocks 2, token budget 3, "
                   "sequences 4, gate 5, latch 6, preempted 7"},
    {"wall_ns", "time that the run took; the only number that differs from run to run"},
    {"version", "of the program"},
    {"seed", "of the run"},
    {"scenario_sha256", "of scenario.yaml, less the folders of its trace paths"},
    {"outcome", "done; stuck: nothing can change any more; livelock: the same goes on for ever; "
                "interrupted; max_steps: a limit that only the library sets; horizon: that of the "
                "scenario; failed: a disk full, no memory. All but done cover what was done until then"},
    {"samples", "only where several answers were asked for: requests that did, samples, forks, "
                "forked_tokens taken over, dropped_beams, copied_blocks; shared_frac and "
                "peak_shared_frac, saved of the blocks in all tables; ttft_ms and e2e_ms, arrival to the "
                "first token of any sample of a request, and to the end of its last"},
    {"warm", "only after a warm start: blocks with content that the cache began with; left_out, further ones "
             "of the former run for which the pool is too small"},
    {"whole", "only with a window (measure), which all other figures then cover but swap's "
              "peak_host_blocks, which is the whole run's: requests, preemptions and makespan_ns of the "
              "whole run. Turns, drafts, transfers and forks count with the step in which they were "
              "(turns: before which they came), samples with the arrival of their request"},
    {"waste", "only under a contiguous layout: shares of all positions of the pool, weighted by time: "
              "reserved_frac, held for later tokens of their requests; internal_frac, held and never "
              "used: the rest of a guess, of a power of two of blocks, of a last block; external_frac, "
              "free while the first in line found no run long enough"},
    {"speculation", "only with drafts: verifications, times that drafts of a request were computed; "
                    "drafted, how many in all; accepted, those that were right, also where they came after "
                    "the request's last token; emitted, tokens that came out of these times, the one "
                    "behind the drafts included"},
    {"swap", "only with kv.host_blocks: preemptions that went to the host, host_full: those that would "
             "have, had there been room; blocks and bytes out and in; link_busy_ns, the time the link "
             "takes for all that was queued; host_blocks, and the most of them in use"},
};

static const struct man_fact compare[] = {
    {"configuration", "its number, from 1, and behind it the value of each varied key"},
    {"outcome", "done, stuck or livelock, as in summary.json; not_run: interrupted before its end"},
    {"completed", "requests that got all their tokens"},
    {"rejected", "requests that could never run"},
    {"aborted", "requests given up by their users"},
    {"unfinished", "requests still live when the run ended"},
    {"preemptions", "in the whole run"},
    {"recomputed_frac", "share of the scheduled tokens that had been computed before"},
    {"swapped_bytes", "moved to the host and back; only with kv.host_blocks"},
    {"makespan_ns", "from the first arrival to the end of the last step"},
    {"requests_per_s", "completed requests over the makespan"},
    {"output_tokens_per_s", "over the makespan"},
    {"good_frac", "share of the requests within the targets; only with targets"},
    {"good_requests_per_s", "the same over the makespan"},
    {"ttft_mean_ms", "arrival to first token"},
    {"ttft_p99_ms", "99th percentile of it"},
    {"tpot_mean_ms", "mean time between the tokens of a completed request"},
    {"itl_mean_ms", "every gap between two tokens of a request"},
    {"itl_p99_ms", "99th percentile of them"},
    {"max_gap_p99_ms", "99th percentile of the largest gap of each request"},
    {"e2e_mean_ms", "arrival to last token"},
    {"e2e_p99_ms", "99th percentile of it"},
    {"queue_p99_ms", "arrival to first admission, 99th percentile"},
    {"running_mean", "requests running at once, weighted by time"},
    {"used_frac", "share of blocks held, weighted by time"},
    {"slot_use_frac", "share of all positions of the pool that are stored, weighted by time"},
    {"hit_frac", "share of the tokens looked up at first admissions that were found"},
    {"jain_service", "Jain's fairness index of service_per_s over the tenants, see fairness.csv; only "
                     "with two or more"},
    {"jain_ttft", "the same of their ttft_mean_ms; empty as well when a tenant got no token"},
    {"better", "requests that took less from arrival to end than in configuration 1"},
    {"worse", "requests that took more"},
    {"same", "requests that took as long"},
    {"lost", "requests completed in configuration 1 and not here"},
    {"gained", "requests completed here and not in configuration 1"},
    {"better_p50_ms", "by how much the better ones were better, in the median"},
    {"worse_p50_ms", "the same of the worse ones"},
};

static const struct man_fact fairness[] = {
    {"configuration", "its number, as in compare.csv"},
    {"group", "tenant or priority: what the requests of the row have in common"},
    {"name", "of the tenant, empty for requests without one; or the priority"},
    {"requests", "that arrived"},
    {"completed", "of these, those that got all their tokens"},
    {"output_tokens", "that came out, also for aborted requests"},
    {"service_per_s", "service received a second, from its first arrival to its last end: a prompt "
                      "token of an admitted request counts 1, an output token 2, what is computed again "
                      "nothing"},
    {"preemptions", "of its requests"},
    {"ttft_mean_ms", "arrival to first token"},
    {"ttft_p99_ms", "99th percentile of it; exact"},
    {"e2e_mean_ms", "arrival to last token"},
    {"e2e_p99_ms", "99th percentile of it; exact"},
};

static const struct man_fact overlay[] = {
    {"configuration", "its number, as in compare.csv"},
    {"begin_ns", "of the bin, from the first arrival on"},
    {"end_ns", "begin_ns of the next; in a configuration's last bin its run ended"},
    {"free_blocks_min", "fewest blocks that nobody held, at any time of the bin"},
    {"free_blocks_max", "most of them"},
    {"waiting_min", "fewest requests in the queue"},
    {"waiting_max", "most of them"},
    {"running_min", "fewest requests that held blocks"},
    {"running_max", "most of them"},
    {"preemptions_total", "preemptions up to the end of the bin"},
};

static const struct man_fact openmetrics[] = {
    {"num_requests_running, num_requests_waiting", "gauges: as running and waiting of the step under way"},
    {"num_requests_waiting_by_reason", "the same by reason: capacity all, deferred none"},
    {"kv_cache_usage_perc", "used_blocks of the step under way, as a share of all: 1 is full"},
    {"cache_config_info", "1; its labels are the block size, the number of blocks with vLLM's null block, "
                          "and whether there is a prefix cache"},
    {"num_preemptions", "counter: preemptions_total of the step under way"},
    {"prompt_tokens, prompt_tokens_cached", "prompts of requests that have a first token, and what of them "
                                            "their first admission found"},
    {"prompt_tokens_by_source", "the same prompts by source: local_compute, local_cache_hit; "
                                "external_kv_transfer stays 0"},
    {"generation_tokens", "tokens that came out"},
    {"prefix_cache_queries, prefix_cache_hits", "tokens looked up and found at first admissions"},
    {"request_success", "by finished_reason: stop (less than max_tokens), length, abort; error and "
                        "repetition stay 0"},
    {"spec_decode_num_drafts, spec_decode_num_draft_tokens, spec_decode_num_accepted_tokens, "
     "spec_decode_num_accepted_tokens_per_pos", "with drafts: times that drafts were computed, drafts, those "
     "that were right, and those by their position"},
    {"time_to_first_token_seconds", "histogram, of all that have one"},
    {"inter_token_latency_seconds", "of each output behind the first; tokens that drafts bring together are "
                                    "one output"},
    {"request_time_per_output_token_seconds", "of a completed request, as all below: its mean gap, 0 of one "
                                              "token"},
    {"e2e_request_latency_seconds, request_queue_time_seconds, request_inference_time_seconds, "
     "request_prefill_time_seconds, request_decode_time_seconds",
     "from arrival to end, from arrival to first admission, from there to the end, to the first token, and "
     "from that to the end"},
    {"request_prompt_tokens, request_generation_tokens, request_prefill_kv_computed_tokens",
     "its prompt, its answer, its prompt without what its first admission found"},
    {"iteration_tokens_total", "of each step that brought tokens: these, and of prompts whose first token is "
                               "among them what was not found"},
};

static const struct man_fact perfetto[] = {
    {"requests", "a process: a thread \"lane N\" for as many requests as were live at once, a slice with the "
                 "id of a request from its arrival to its end, and in it its phases; threads preemptions and "
                 "rejections with a mark for each. An arrow goes from who was short of blocks to who was "
                 "preempted for it"},
    {"waiting", "a phase: arrival to first admission, queue_ns"},
    {"prefill", "admission to first token"},
    {"decode", "from the first token on"},
    {"preempted, swapped", "it lost its blocks and waits again; swapped with copies on the host"},
    {"swap in", "admitted again, until the first step that begins when its blocks are back"},
    {"recompute", "admitted again, until all that had been computed is so again, or a token comes out"},
    {"pool", "a process: counters blocks (free, used, cached), requests (waiting, running), preemptions "
             "(total), tokens (scheduled), as in steps.csv, written where they change"},
};

static const struct man_fact cache[] = {
    {"blocks", "how many; more than one only of those without an identity"},
    {"identity", "16 hexadecimal digits: the hash of all tokens up to the end of the block, and its group; "
                 "empty: none"},
    {"second", "the same of a block that is larger than the unit of hashing, for the end of a prompt in "
               "it; no prompt is hit by it"},
    {"twin", "of blocks with one identity, how many are older: the oldest is hit"},
};

#define FACTS(array) array, sizeof array / sizeof *array

void man_files(struct pkv_text *out)
{
    man_heading(out, "files", 5);
    man_line(out, "the files that a run leaves");
    pkv_text_add(out, ".SH DESCRIPTION\n");
    man_line(out, "A run with -o DIR leaves steps.csv, requests.csv, events.jsonl, summary.json, "
                  "scenario.yaml, report.html and cache.csv. Times are nanoseconds of virtual time where a "
                  "name ends in _ns. What never happened is empty.");
    man_facts(out, "STEPS.CSV", "One row a step. Counts are taken right after scheduling, but for "
              "free_blocks_end and finished. Under --every and --on-change rows are left out; the "
              "numbers of the steps tell which.", FACTS(steps));
    man_facts(out, "REQUESTS.CSV", "One row a request, in the order in which they ended.",
              FACTS(requests));
    man_facts(out, "EVENTS.JSONL", "One line for each thing that happened to a request. By kind:",
              FACTS(events));
    man_facts(out, "SUMMARY.JSON", "Counts, sums, means and maxima are exact; percentiles are at most "
              "2^-10 too large.", FACTS(summary));
    pkv_text_add(out, ".SH SCENARIO.YAML\n");
    man_line(out, "The scenario with every key written out; running it gives the same files.");
    pkv_text_add(out, ".SH REPORT.HTML\n");
    man_line(out, "The run as a page that stands alone and loads nothing from anywhere. Its data lie in "
                  "script elements that no browser runs: \"pkv-summary\" is summary.json, "
                  "\"pkv-scenario\" scenario.yaml as a JSON text, \"pkv-steps\" and \"pkv-requests\" "
                  "are tables of the columns above, however steps.csv was thinned out; \"pkv-blockmap\" "
                  "and those whose names begin so are the pool over time. pagedkv-report(1) "
                  "makes it of the other files.");
    man_facts(out, "CACHE.CSV", "What lay free in the cache when the run was over, in the order in which it "
              "would have been taken: for --warm. Blocks still held then count as given back, in the "
              "order of the requests. Four lines come first: # identities, how they are made (1); # groups, "
              "kind:block size:window of each; # blocks, of the pool; # runs, whose content is in it. There "
              "is none without a prefix cache, or of a run that failed.", FACTS(cache));
    man_facts(out, "OPENMETRICS", "Of --openmetrics FILE: vLLM's metrics as a scraper would have had them, "
              "names beginning with vllm:, in virtual time from 0, one scrape each --scrape-interval, the "
              "last one at the end. Counts and sums of a step come with its end, those of its schedule with "
              "its beginning.", FACTS(openmetrics));
    man_facts(out, "PERFETTO", "Of --perfetto FILE: a Chrome trace in JSON to open in ui.perfetto.dev, "
              "packed when FILE ends in .gz. Times are microseconds with three decimals, exact. The phases "
              "of a request follow one another without a gap and add up to its row of requests.csv.",
              FACTS(perfetto));
    man_json(out);
    man_facts(out, "COMPARE.CSV", "Of pagedkv compare: one row a configuration. Each figure is "
              "followed by NAME_diff_percent, the difference to configuration 1 (empty when that is 0 "
              "and this is not), and NAME_best, 1 at the best ones (several if they are equal; none if all "
              "are, or if what tells the best from configuration 1 may be noise, or 1, being the best, "
              "from another). With --seeds figures and counts of requests are means and sums over the "
              "seeds, and NAME_half95, half the 95 % interval, NAME_diff and NAME_diff_half95, the mean "
              "difference seed by seed with its interval, "
              "stand among them; with --batches mean latencies have such intervals, over stretches of "
              "time. compare.json has the same.", FACTS(compare));
    man_facts(out, "FAIRNESS.CSV", "Of pagedkv compare: one row for each configuration of each tenant, "
              "then of each priority. Figures are followed by the same columns as in compare.csv, with "
              "intervals over seeds only. Jain's index of n tenants' figures x is (sum x)^2 / (n sum "
              "x^2): 1 when all are the same, 1/n when one tenant has everything. compare.json has the "
              "same under tenants and priorities.", FACTS(fairness));
    man_facts(out, "OVERLAY.CSV", "Of pagedkv compare: each configuration over time, of the first seed, "
              "in bins of one width for all of them, at most 1,000. A run's peaks survive, however "
              "short. A shorter run has fewer rows.", FACTS(overlay));
    pkv_text_add(out, ".SH SEE ALSO\n\\fBpagedkv\\-run\\fR(1), \\fBpagedkv\\-replay\\fR(1), "
                      "\\fBpagedkv\\-scenario\\fR(5)\n");
}
