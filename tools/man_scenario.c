/*
 * man_scenario.c - pagedkv-scenario(5): every key of a scenario.
 *
 * The words that the registries know (policies, their parameters, presets, formats) are taken from
 * them; a test holds the other names against the keys that the program knows.
 */
#include "man.h"
#include "pagedkv/policy.h"

static const struct man_fact top[] = {
    {"title", "shown above the summary"},
    {"question", "what the run is to answer; shown too"},
    {"kv.block_size", "tokens in a block; 16"},
    {"kv.num_blocks", "usable blocks; this, num_gpu_blocks or budget is required"},
    {"kv.num_gpu_blocks", "the same as vLLM counts them: one more, its null block"},
    {"kv.budget", "the pool in bytes, like 40GiB or 40GB, of which kv.model makes blocks; for every rank, "
                  "or a list: one for each pipeline stage, or for each rank. The rank with the fewest "
                  "blocks rules"},
    {"kv.model", "a known model (pagedkv models) or the path of its config.json: it makes blocks of "
                 "bytes, and KV groups of its layers, so groups may not be given beside it"},
    {"kv.dtype", "of the cache: auto (that of the weights), bf16, fp16, fp32, fp8, int8, nvfp4, q8_0, q4_0, "
                 "fp8_token_head, int8_token_head, fp8_ds_mla"},
    {"kv.tp", "tensor parallel ranks of the model; 1"},
    {"kv.pp", "its pipeline stages; 1"},
    {"kv.pp_layers", "layers of each of them, like [56, 8]; left out: dealt out evenly"},
    {"kv.draft_layers", "layers of a draft head or model that the cache holds beside the model's, each as "
                        "its last one; left out: with speculation.method eagle the model's own for it "
                        "(MTP) or 1, else 0"},
    {"kv.prefix_cache", "look prompts up in cached blocks; true"},
    {"kv.warm", "the folder of a former run: the cache begins with what that one left (cache.csv), of which "
                "the groups must be the same. Hits are of texts that are the same in both: named ones, hash "
                "ids, token ids below 2^40; a larger pool has empty blocks before it, of a smaller one "
                "what would have been taken first is left out. Not for a comparison"},
    {"kv.host_blocks", "room for copies on the host, for on_preempt: swap and auto; 0"},
    {"kv.bytes_per_token", "with host_blocks: what a token takes of a block; that of the model on the rank "
                           "that holds most of it, without a model 128KiB"},
    {"kv.groups", "kinds of layers that share the pool, each with its own block table, at most 8; "
                  "[{type: full}]. Also {type: sliding, window: 1024}, {type: chunked, chunk: 8192} "
                  "and {type: state, blocks: 1}; block_size may stand in each"},
};

static const struct man_fact link_facts[] = {
    {"bandwidth", "bytes a second between pool and host, with a unit, both ways together; 25GB"},
    {"latency", "of each block; 10us"},
};

static const struct man_fact grid[] = {
    {"vary", "{KEY: [VALUE, ...], ...}: dotted keys, each with the values that it takes in pagedkv "
             "compare; a run leaves it aside, and so does compare with --vary, which replaces this "
             "section"},
};

static const struct man_fact scheduler[] = {
    {"preset", "bundle of choices and switches; vllm"},
    {"policy", "fcfs or priority: another word for order, preempt and requeue at once"},
    {"reserve_full_isl", "another word for admit: true is whole_prompt, false is first_chunk"},
    {"watermark", "share of the pool, 0 to 1, that an admission must leave free; 0"},
    {"unhashed_free", "head or tail: where freed blocks without identity go in the free queue"},
    {"blocked_prefill", "stop or skip: without chunked prefill, what a prompt over the rest of the "
                        "budget does to those behind it"},
    {"priority_victim", "vllm or safe: whether tokens that were cancelled keep their identities"},
    {"chunk_end", "free or keep: whether a chunked group holds on to its last hashed block when the "
                  "chunk is over"},
    {"oversized", "reject or wait: what becomes of a request that could never run"},
    {"fork", "on: the samples of a request share its prompt's blocks and copy on write, and are given up "
             "together, without speculation, async_scheduling and swapping; off: each is admitted by "
             "itself. false"},
    {"beam_drop", "with fork, the share of beams that give way to others at each token; 0.1"},
    {"max_num_seqs", "most running requests; 256, 0 is unlimited"},
    {"max_num_batched_tokens", "most tokens in a step; 8192, 0 is unlimited"},
    {"enable_chunked_prefill", "cut prompts to the budget; true"},
    {"long_prefill_token_threshold", "most tokens of one prompt in a step; 0 is none"},
    {"max_model_len", "longest request, prompt and output together; 0 is none"},
    {"async_scheduling", "schedule a step while the one before it runs; false"},
    {"lookahead_at_admission", "with speculation: an admission asks for the positions ahead as growth does, "
                               "and one with a single token left beside pure decodes is padded with "
                               "drafts; true"},
};

static const struct man_fact speculation[] = {
    {"method", "none, draft_model, eagle or ngram. With draft_model and eagle a request has blocks for "
               "num_tokens positions more than it computes; eagle computes the last block of a hit anew "
               "and goes with one group of full attention only; none"},
    {"num_tokens", "drafts a request has in each step after its prefill, 1 to 64"},
    {"accepted", "[3, 0, 1]: so many drafts are right, one number after the other, by the row and the tokens "
                 "that are out; instead of acceptance_rate"},
    {"acceptance_rate", "0 to 1: the chance of each draft to be right, drawn from the seed, the row and the "
                        "token's place; those before the first wrong one are accepted"},
};

static const struct man_fact step_time[] = {
    {"model", "fixed or affine. The whole may be written fixed:MS or affine:A,B,C,D"},
    {"ms", "fixed: how long each step takes"},
    {"base_ms", "affine: the least that a step takes; 10"},
    {"per_prefill_token_ms", "affine: per token of a prompt, when their sum is above base_ms; 0.025"},
    {"per_decode_ms", "affine: per decode, added; 0"},
    {"per_context_token_ns", "affine: per position attended to, added; 0"},
};

static const struct man_fact traffic[] = {
    {"trace", "path of a trace, from the scenario's folder; - is standard input"},
    {"format", "of the trace; auto: by its content"},
    {"columns", "for any other CSV: arrival=NAME,prompt=NAME,output=NAME and, if there, id, tenant, "
     "session, priority, max_tokens"},
    {"time_unit", "of the arrivals in such a CSV: s, ms, us, ns or date; s"},
    {"hash_block_size", "tokens that a hash id stands for; 0 = as the format has it (bailian 16, all "
     "others 512)"},
    {"lenient_ids", "mend rows whose number of hash ids does not fit; false"},
    {"sort", "sort the rows by arrival; false"},
    {"limit", "only the first rows, at least 1; left out: all"},
    {"speedup", "divide times of arrival, abort and deadline by it; 1"},
    {"requests", "synthetic traffic: how many; excludes trace"},
    {"arrivals", "{law, rate_per_s, ...}: constant, poisson; gamma and weibull (cv of the gaps); bursts (on, "
                 "off: how long on average, poisson while on); diurnal (period, amplitude: the rate "
                 "swings as a sine); spike (at, for, factor: the rate within). Without a rate: at_once; "
                 "closed_loop (concurrency, delay: whoever ends is followed by the next; with sessions: "
                 "a conversation that is over by the next one)"},
    {"prompt_tokens", "a number, or {law, ...}: constant (value), uniform (min, max), lognormal (mean, "
                      "cv), gamma (the same), zipf (exponent, min, max), pareto_lognormal (mean, cv; "
                      "tail_share, tail_alpha, tail_min: so many are of the tail), empirical (trace: "
                      "lengths are drawn from its rows); min and max cut"},
    {"output_tokens", "the same; 0 is allowed. joint: that of the row that the empirical prompt is of"},
    {"max_tokens_ratio", "a number, or {law, ...}: max_tokens is the output times it, and never below the "
                         "output. Laws: constant (value), uniform (min, max), exponential (mean), "
                         "lognormal, gamma and weibull (mean, cv); min and max cut; none"},
    {"prefixes", "{num, tokens, share}: so many texts, so long, begin this share of the prompts; zipf: the "
                 "kth with a weight of k^-zipf; depth: each text goes on in num ways, and so on"},
    {"sessions", "{turns, turn_tokens, delay_ms, share, max_context_tokens}: this share of the arrivals "
                 "begins a conversation of so many requests (a length), each later one delay_ms (a law "
                 "as for max_tokens_ratio) after the end of the former; its prompt is all that was said, "
                 "and turn_tokens more (a length). None follows once the context has reached "
                 "max_context_tokens; 0 is no end"},
    {"priorities", "[{priority, weight}, ...]: drawn by weight"},
    {"tenants", "[{name, weight, priority}, ...]: drawn by weight; one with a priority has that"},
    {"aborts", "{share, min, max}: this share is cancelled, min to max after arrival; or after_ms: a law as "
               "for max_tokens_ratio"},
    {"samples", "answers that each request asks for, each with a length of its own; 1"},
    {"beam_width", "beams that each request is searched with; needs fork; 1"},
    {"seed", "of everything that is drawn; 1"},
};

static const struct man_fact targets[] = {
    {"ttft_ms", "goodput counts requests whose first token came within this"},
    {"itl_ms", "and whose every gap between two tokens was within this"},
};

static const struct man_fact measure[] = {
    {"after", "requests that come earlier, and steps that begin earlier, are not in the figures of the "
              "summary; 0s"},
    {"until", "nor are those from here on, or end; end. The files have all rows in any case"},
};

static const struct man_fact horizon[] = {
    {"horizon", "no step begins at or after this time, and who comes for such a step has not come; left "
                "out: the run goes on to its end"},
};

/* A choice with the words that it may be. */
static void choice(struct pkv_text *out, enum pkv_choice c)
{
    size_t num;
    const struct pkv_policy_info *const *list = pkv_policy_list(c, &num);
    struct pkv_text text = {0};
    pkv_text_fmt(&text, "%s:", pkv_choice_summary(c));
    for (size_t i = 0; i < num; i++) {
        pkv_text_fmt(&text, "%s %s (%s)", i > 0 ? ";" : "", list[i]->name, list[i]->summary);
        for (size_t k = 0; k < list[i]->num_params; k++) {
            const struct pkv_policy_param *p = &list[i]->params[k];
            char preset[32];
            pkv_policy_param_write(p, p->preset, preset, sizeof preset);
            pkv_text_fmt(&text, ", with the key %s: %s (%s)", p->name, p->summary, preset);
        }
    }
    pkv_text_fmt(out, ".TP\n\\fB%s\\fR\n", pkv_choice_name(c));
    man_line(out, text.text != NULL ? text.text : "");
    out->failed |= text.failed;
    pkv_text_free(&text);
}

#define FACTS(array) array, sizeof array / sizeof *array

void man_scenario(struct pkv_text *out)
{
    man_heading(out, "scenario", 5);
    man_line(out, "a run described in YAML");
    pkv_text_add(out, ".SH DESCRIPTION\n");
    man_line(out, "All keys but the pool and the traffic may be left out; what then holds stands behind "
                  "a semicolon. Unknown keys, wrong types and impossible combinations are errors with "
                  "line and column. What wins: the preset, then every key of the file, then flags, then "
                  "--set KEY=VALUE with the key's dotted name.\n\n"
                  "Times may be written 250us, 1ms or 2.5s.");
    man_facts(out, "POOL", NULL, FACTS(top));
    man_facts(out, "LINK", "Keys below link, with kv.host_blocks:", FACTS(link_facts));
    man_facts(out, "SCHEDULER", "Keys below scheduler:", FACTS(scheduler));
    for (int c = 0; c < PKV_CHOICE_COUNT; c++)
        choice(out, (enum pkv_choice)c);
    man_facts(out, "SPECULATION", "Keys below speculation:", FACTS(speculation));
    man_facts(out, "STEP TIME", "Keys below step_time:", FACTS(step_time));
    man_facts(out, "TRAFFIC", "Keys below traffic:", FACTS(traffic));
    man_facts(out, "GRID", NULL, FACTS(grid));
    man_facts(out, "TARGETS", "Keys below targets:", FACTS(targets));
    man_facts(out, "MEASURE", "Keys below measure:", FACTS(measure));
    man_facts(out, "HORIZON", NULL, FACTS(horizon));
    pkv_text_add(out, ".SH SEE ALSO\n\\fBpagedkv\\-run\\fR(1), \\fBpagedkv\\-policies\\fR(1), "
                      "\\fBpagedkv\\-presets\\fR(1), \\fBpagedkv\\-files\\fR(5)\n");
}
