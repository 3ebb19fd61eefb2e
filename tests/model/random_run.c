/*
 * random_run.c - see random_run.h.
 */
#include "random_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next(struct random_run *run)
{
    uint64_t z = run->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t below(struct random_run *run, uint32_t n)
{
    return (uint32_t)(next(run) % n);
}

static uint32_t between(struct random_run *run, uint32_t low, uint32_t high)
{
    return low + below(run, high - low + 1);
}

/* True in n of 100 cases. */
static bool chance(struct random_run *run, uint32_t n)
{
    return below(run, 100) < n;
}

static void choose(struct random_run *run, enum pkv_choice choice, const char *name)
{
    const struct pkv_policy_info *info = pkv_policy_find(choice, name);

    if (info == NULL) {
        fprintf(stderr, "no policy %s\n", name);
        abort();
    }
    pkv_policies_set(&run->sched.policies, choice, info);
}

/* Shares in millionths; the rest small enough to bite. */
static void draw_ratio(struct random_run *run, int64_t *params)
{
    params[0] = between(run, 0, 10) * 100000;
    params[1] = between(run, 0, 10) * 100000;
    params[2] = between(run, 1, 12);
    params[3] = between(run, 0, 6);
    params[4] = between(run, 1, 30);
    params[5] = between(run, 1, 15) * 100000;
}

/* The numbers of lpm and vtc, small ones more often than those that they come with. */
static void draw_order_params(struct random_run *run, int64_t *params)
{
    const char *name = run->sched.policies.order->info.name;

    if (strcmp(name, "lpm") == 0) {
        params[0] = chance(run, 50) ? 0 : between(run, 1, 20);
        params[1] = chance(run, 60) ? 0 : chance(run, 30) ? 128 : between(run, 1, 8);
        params[2] = chance(run, 30) ? 0 : chance(run, 20) ? 32 : between(run, 1, 12);
    } else if (strcmp(name, "vtc") == 0 && chance(run, 70)) {
        params[0] = between(run, 0, 5000);
        params[1] = between(run, 0, 5000);
    }
}

/* The first of every choice, then those of the engine's two queues or a free mix. */
static void draw_policies(struct random_run *run)
{
    static const char *const orders[] = { "fcfs", "priority", "sjf", "sjf_true", "ljf", "lof",
                                          "edf", "random", "lpm", "dfs_weight", "vtc" };
    static const char *const preempts[] = {
        "newest", "priority", "oldest", "fewest_outputs", "least_lost", "most_blocks",
        "largest_remaining", "least_preempted", "fit", "random", "never" };
    static const char *const requeues[] = { "front", "by_order", "tail" };
    static const char *const admits[] = { "whole_prompt", "first_chunk", "reserve_max",
                                          "future_peak", "mc_sf", "static_batch", "ratio" };
    static const char *const publishes[] = { "computed", "chunk_end", "finish" };
    static const char *const mixes[] = { "mixed", "prefill_first", "decode_first",
                                         "separate_with_limit" };
    bool mixed = chance(run, 60);
    uint32_t queue = below(run, 2), num;

    for (int choice = 0; choice < PKV_CHOICE_COUNT; choice++) {
        size_t num_known;

        choose(run, (enum pkv_choice)choice,
               pkv_policy_list((enum pkv_choice)choice, &num_known)[0]->name);
    }
    choose(run, PKV_CHOICE_ORDER, orders[mixed ? below(run, 11) : queue]);
    draw_order_params(run, run->sched.policies.params[PKV_CHOICE_ORDER]);
    choose(run, PKV_CHOICE_PREEMPT, preempts[mixed ? below(run, 11) : queue]);
    choose(run, PKV_CHOICE_REQUEUE, requeues[mixed ? below(run, 3) : queue]);
    num = below(run, 16);
    choose(run, PKV_CHOICE_ADMIT, admits[num < 8 ? num / 4 : num < 10 ? 2 : num < 12 ? num - 7
                                                                           : num / 2 - 1]);
    if (num >= 14)
        draw_ratio(run, run->sched.policies.params[PKV_CHOICE_ADMIT]);
    choose(run, PKV_CHOICE_ON_BLOCKED, mixed && chance(run, 60) ? "skip"
                                       : chance(run, 30) ? "latch" : "stop");
    run->sched.policies.params[PKV_CHOICE_ON_BLOCKED][0] = chance(run, 50) ? 0 : between(run, 1, 4);
    choose(run, PKV_CHOICE_GROW, chance(run, 25) ? "whole_batch" : "one_by_one");
    choose(run, PKV_CHOICE_MIX, mixes[chance(run, 50) ? 0 : below(run, 4)]);
    run->sched.policies.params[PKV_CHOICE_MIX][0] = between(run, 1, 4);
    choose(run, PKV_CHOICE_PUBLISH, mixed && chance(run, 55) ? publishes[below(run, 3)] : "alloc");
    run->sched.seed = next(run);
}

/* Half of the runs have one group of full attention, as most models do. Sizes are often equal. */
static void draw_groups(struct random_run *run)
{
    static const struct pkv_group_ops *const kinds[] = {
        &pkv_group_full, &pkv_group_full, &pkv_group_full, &pkv_group_sliding, &pkv_group_sliding,
        &pkv_group_sliding, &pkv_group_chunked, &pkv_group_chunked, &pkv_group_state };
    struct pkv_sched_config *c = &run->sched;
    uint32_t size = between(run, 1, 8);
    bool equal = chance(run, 50);

    c->num_groups = chance(run, 50) ? 1 : between(run, 1, 3);
    for (uint32_t g = 0; g < c->num_groups; g++) {
        struct pkv_group_config *group = &c->groups[g];

        *group = (struct pkv_group_config){ .ops = &pkv_group_full, .block_size = size };
        if (c->num_groups > 1 || chance(run, 15))
            group->ops = kinds[below(run, 9)];
        if (!equal)
            group->block_size = chance(run, 70) ? 1u << below(run, 4) : between(run, 1, 6);
        if (group->ops == &pkv_group_state)
            group->size = between(run, 1, 2);
        else if (group->ops != &pkv_group_full)
            group->size = between(run, 1, chance(run, 50) ? 12 : 40);
    }
}

static void draw_config(struct random_run *run)
{
    static const double watermarks[] = { 0.0, 0.0, 0.0, 0.05, 0.1, 0.3, 0.6 };
    struct pkv_sched_config *c = &run->sched;

    c->num_blocks = between(run, 3, chance(run, 50) ? 10 : 40);
    draw_groups(run);
    c->chunk_end = chance(run, 50) ? PKV_CHUNK_END_FREE : PKV_CHUNK_END_KEEP;
    c->prefix_cache = chance(run, 75);
    c->has_null_block = chance(run, 50);
    c->max_num_seqs = chance(run, 50) ? 0 : between(run, 1, 6);
    c->max_num_batched_tokens = chance(run, 30) ? 0 : between(run, 1, 40);
    c->long_prefill_token_threshold = chance(run, 70) ? 0 : between(run, 1, 12);
    c->max_model_len = chance(run, 60) ? 0 : between(run, 2, 60);
    c->enable_chunked_prefill = chance(run, 70);
    c->watermark = watermarks[below(run, 7)];
    c->unhashed_free = chance(run, 50) ? PKV_END_HEAD : PKV_END_TAIL;
    c->blocked_prefill = chance(run, 50) ? PKV_BLOCKED_PREFILL_STOP : PKV_BLOCKED_PREFILL_SKIP;
    c->priority_victim = chance(run, 50) ? PKV_PRIORITY_VICTIM_VLLM : PKV_PRIORITY_VICTIM_SAFE;
    c->oversized = chance(run, 60) ? PKV_OVERSIZED_REJECT : PKV_OVERSIZED_WAIT;
    c->fork = chance(run, 45);
    c->beam_drop = between(run, 0, 10) * 100;
    run->every_step = chance(run, 50);
    run->stuck_steps = between(run, 1, 3);
}

static bool is_plain(const struct random_run *run)
{
    return run->sched.num_groups == 1 && run->sched.groups[0].ops == &pkv_group_full;
}

/* A host that is sometimes too small, and a link that takes a part of a step or several for a block; then
 * the pool is small more often, so that somebody is given up. */
static void draw_swap(struct random_run *run)
{
    struct pkv_swap_config *w = &run->sched.swap;

    w->num_host_blocks = between(run, 0, chance(run, 30) ? 12 : 200);
    w->bytes_per_token = between(run, 1, 64);
    w->link.bytes_per_s = UINT64_C(1000000) * between(run, 20, 2000);
    w->link.latency_ns = between(run, 0, chance(run, 50) ? 100 : 1500);
    if (chance(run, 40) || !is_plain(run) || run->sched.fork)
        return;
    choose(run, PKV_CHOICE_ON_PREEMPT, chance(run, 65) ? "swap" : "auto");
    if (chance(run, 60))
        run->sched.num_blocks = between(run, 4, 14);
}

/* Drafts, steps that overlap, or neither; neither where they are refused. */
static void draw_speculation(struct random_run *run)
{
    struct pkv_speculation *s = &run->sched.speculation;
    uint32_t kind = below(run, 10);

    run->sched.lookahead_at_admission = chance(run, 70);
    if (run->sched.policies.admit->needs_token_steps || run->sched.policies.on_preempt->swaps ||
        run->sched.fork)
        return;
    run->sched.async_scheduling = kind < 3;
    if (kind < 3 || kind > 6)
        return;
    s->method = (enum pkv_speculation_method)between(run, PKV_SPECULATION_DRAFT_MODEL,
                                                     PKV_SPECULATION_NGRAM);
    if (s->method == PKV_SPECULATION_EAGLE && !is_plain(run))
        s->method = PKV_SPECULATION_DRAFT_MODEL;
    s->num_tokens = between(run, 1, 5);
    s->acceptance_rate = below(run, 11) / 10.0;
    s->num_accepted = chance(run, 50) ? 0 : between(run, 1, 5);
    for (uint32_t i = 0; i < s->num_accepted; i++)
        s->accepted[i] = between(run, 0, s->num_tokens);
}

static void draw_step_time(struct random_run *run)
{
    struct pkv_step_time *t = &run->step_time;

    t->law = chance(run, 50) ? PKV_STEP_TIME_FIXED : PKV_STEP_TIME_AFFINE;
    t->fixed_ns = chance(run, 50) ? 1000 : between(run, 1, 5000);
    t->base_ns = between(run, 1, 2000);
    t->per_prefill_token_ns = between(run, 0, 150);
    t->per_decode_ns = between(run, 0, 60);
    t->per_context_token_ns = between(run, 0, 4);
}

/* A prefix of a shared text, an earlier request's answer, text of its own; in one piece or two. */
static void add_text(struct random_run *run, struct pkv_request_spec *spec, uint64_t origin,
                     uint32_t first, uint32_t count)
{
    struct pkv_span *spans = run->spans[spec->row];
    size_t num = spec->content.num_prompt_spans;
    uint32_t cut = count > 1 && chance(run, 40) ? between(run, 1, count - 1) : count;

    if (count == 0 || num + 2 > RANDOM_RUN_MAX_SPANS)
        return;
    spans[num++] = (struct pkv_span){ origin, first, cut };
    if (cut < count)
        spans[num++] = (struct pkv_span){ origin, first + cut, count - cut };
    spec->content.num_prompt_spans = num;
    spec->num_prompt_tokens += count;
}

static void draw_prompt(struct random_run *run, struct pkv_request_spec *spec, uint32_t longest)
{
    uint32_t room = between(run, 1, longest), part = between(run, 0, room);

    spec->content.prompt = run->spans[spec->row];
    if (chance(run, 60))
        add_text(run, spec, pkv_origin(PKV_ORIGIN_NAME, below(run, 3)), 0, part);
    if (spec->row > 0 && chance(run, 30)) {
        uint32_t earlier = below(run, (uint32_t)spec->row);

        part = between(run, 0, room - spec->num_prompt_tokens);
        add_text(run, spec, pkv_origin(PKV_ORIGIN_OUTPUT, earlier), 0, part);
    }
    if (room > spec->num_prompt_tokens)
        add_text(run, spec, pkv_origin(PKV_ORIGIN_OWN, spec->row), 0,
                 room - spec->num_prompt_tokens);
}

/* A conversation: the former prompt and answer, then something new. */
static void draw_next_turn(struct random_run *run, struct pkv_request_spec *spec, uint32_t longest)
{
    const struct pkv_request_spec *former = spec - 1 - below(run, (uint32_t)spec->row);
    uint32_t left = longest;

    spec->content = former->content;
    spec->content.num_prompt_spans = 0;
    spec->content.prompt = run->spans[spec->row];
    for (size_t i = 0; i < former->content.num_prompt_spans && left > 0; i++) {
        struct pkv_span s = former->content.prompt[i];

        s.count = s.count < left ? s.count : left;
        add_text(run, spec, s.origin, s.first, s.count);
        left = longest - spec->num_prompt_tokens;
    }
    add_text(run, spec, former->content.output_origin, 0,
             former->num_output_tokens < left ? former->num_output_tokens : left);
    if (spec->num_prompt_tokens < longest)
        add_text(run, spec, pkv_origin(PKV_ORIGIN_OWN, spec->row), 0, 1);
}

static void draw_outputs(struct random_run *run, struct pkv_request_spec *spec)
{
    uint32_t kind = below(run, 10);

    spec->num_output_tokens = kind == 0 ? 0 : kind < 7 ? between(run, 1, 8) : between(run, 1, 30);
    spec->max_tokens = spec->num_output_tokens;
    if (chance(run, 20))
        spec->max_tokens = between(run, 0, 30);
}

/* Most ask for one answer; samples may have lengths of their own. */
static void draw_samples(struct random_run *run, struct pkv_request_spec *spec)
{
    if (chance(run, 65))
        return;
    spec->num_samples = between(run, 1, RANDOM_RUN_MAX_SAMPLES);
    spec->is_beam_search = run->sched.fork && chance(run, 35);
    if (spec->is_beam_search || chance(run, 50))
        return;
    spec->sample_output_tokens = run->outputs[spec->row];
    for (uint32_t i = 0; i < spec->num_samples; i++)
        run->outputs[spec->row][i] = between(run, chance(run, 10) ? 0 : 1, 16);
}

static void draw_request(struct random_run *run, int64_t arrival_ns, uint32_t longest)
{
    static const char *const tenants[] = { NULL, "a", "a", "b", "c" };
    struct pkv_request_spec *spec = &run->specs[run->num_specs];

    memset(spec, 0, sizeof *spec);
    spec->row = run->num_specs++;
    if (chance(run, 70)) {
        snprintf(run->ids[spec->row], sizeof run->ids[0], "r%u", (unsigned)spec->row);
        spec->id = run->ids[spec->row];
    }
    spec->arrival_ns = arrival_ns;
    spec->abort_ns = chance(run, 20) ? arrival_ns + between(run, 0, 30000) : PKV_NO_TIME;
    spec->deadline_ns = chance(run, 40) ? arrival_ns + between(run, 0, 9) * 1000 : PKV_NO_TIME;
    spec->priority = (int64_t)below(run, 4) - 1;
    spec->tenant = tenants[below(run, 5)];
    draw_outputs(run, spec);
    draw_samples(run, spec);
    spec->content.root = chance(run, 80) ? 0 : pkv_content_root("s", NULL);
    if (spec->row > 0 && chance(run, 25))
        draw_next_turn(run, spec, longest);
    else
        draw_prompt(run, spec, longest);
    spec->content.output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, spec->row);
    spec->content.output_first = 0;
}

void random_run_draw(struct random_run *run, uint64_t seed)
{
    int64_t arrival_ns = 0;
    uint32_t num, longest, gap;

    memset(run, 0, sizeof *run);
    run->seed = seed;
    run->state = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    draw_policies(run);
    draw_config(run);
    if (run->sched.policies.admit->counts_tokens && !is_plain(run))
        choose(run, PKV_CHOICE_ADMIT, "whole_prompt");
    draw_step_time(run);
    draw_swap(run);
    draw_speculation(run);
    num = between(run, 1, RANDOM_RUN_MAX_REQUESTS);
    gap = chance(run, 50) ? 1500 : chance(run, 50) ? 10000 : 150000;
    longest = chance(run, 50) ? 20 : 60;
    for (uint32_t i = 0; i < num; i++) {
        draw_request(run, arrival_ns, longest);
        arrival_ns += chance(run, 40) ? 0 : between(run, 0, gap);
    }
}

static void print_speculation(const struct pkv_sched_config *c)
{
    const struct pkv_speculation *s = &c->speculation;

    printf("#   async %d, lookahead at admission %d, speculation %s", c->async_scheduling,
           c->lookahead_at_admission, pkv_speculation_method_name(s->method));
    if (s->method != PKV_SPECULATION_NONE)
        printf(" of %u, rate %g, accepted [", s->num_tokens, s->acceptance_rate);
    for (uint32_t i = 0; i < s->num_accepted; i++)
        printf("%s%u", i > 0 ? ", " : "", s->accepted[i]);
    printf("%s\n", s->method != PKV_SPECULATION_NONE ? "]" : "");
}

static void print_request(const struct pkv_request_spec *spec)
{
    printf("#   row %" PRIu64 " at %" PRId64, spec->row, spec->arrival_ns);
    if (spec->abort_ns != PKV_NO_TIME)
        printf(" abort %" PRId64, spec->abort_ns);
    if (spec->tenant != NULL)
        printf(" of %s", spec->tenant);
    printf(" priority %" PRId64 " prompt %u output %u max_tokens %u root %" PRIx64 ":",
           spec->priority, spec->num_prompt_tokens, spec->num_output_tokens, spec->max_tokens,
           spec->content.root);
    for (uint32_t i = 0; i < spec->num_samples; i++)
        printf(" %s%u", i > 0 ? "" : spec->is_beam_search ? "beams " : "samples ",
               pkv_spec_outputs(spec, i));
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++) {
        const struct pkv_span *s = &spec->content.prompt[i];

        printf(" %04" PRIx64 "[%u+%u]", s->origin >> 48, s->first, s->count);
    }
    printf("\n");
}

static int next_spec(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct random_traffic *traffic = ctx;

    (void)err;
    if (traffic->next == traffic->run->num_specs)
        return 0;
    *out = traffic->run->specs[traffic->next++];
    return 1;
}

struct pkv_source random_source(struct random_traffic *traffic)
{
    return (struct pkv_source){ .next = next_spec, .ctx = traffic };
}

void random_run_print(const struct random_run *run)
{
    const struct pkv_sched_config *c = &run->sched;
    const struct pkv_step_time *t = &run->step_time;

    printf("# seed %" PRIu64 "\n#  ", run->seed);
    for (int choice = 0; choice < PKV_CHOICE_COUNT; choice++)
        printf(" %s: %s", pkv_choice_name((enum pkv_choice)choice),
               pkv_policies_get(&c->policies, (enum pkv_choice)choice)->name);
    printf(" (max_overtakes %" PRId64 ", max_consecutive_prefills %" PRId64
           ", of the order %" PRId64 " %" PRId64 " %" PRId64 ")\n",
           c->policies.params[PKV_CHOICE_ON_BLOCKED][0], c->policies.params[PKV_CHOICE_MIX][0],
           c->policies.params[PKV_CHOICE_ORDER][0], c->policies.params[PKV_CHOICE_ORDER][1],
           c->policies.params[PKV_CHOICE_ORDER][2]);
    printf("#   groups:");
    for (uint32_t g = 0; g < c->num_groups; g++)
        printf(" {%s %u, blocks of %u}", pkv_group_name(&c->groups[g]), c->groups[g].size,
               c->groups[g].block_size);
    printf(", chunk end %s\n", c->chunk_end == PKV_CHUNK_END_KEEP ? "keep" : "free");
    printf("#   %u blocks, null block %d, prefix cache %d, seqs %u, budget %u, threshold %u, "
           "max_model_len %u\n", c->num_blocks, c->has_null_block,
           c->prefix_cache, c->max_num_seqs, c->max_num_batched_tokens,
           c->long_prefill_token_threshold, c->max_model_len);
    printf("#   chunked %d, watermark %g, unhashed to %s, blocked prefill %s, victim %s, "
           "oversized %s, every step %d, stuck steps %u\n", c->enable_chunked_prefill,
           c->watermark, c->unhashed_free == PKV_END_HEAD ? "head" : "tail",
           c->blocked_prefill == PKV_BLOCKED_PREFILL_STOP ? "stop" : "skip",
           c->priority_victim == PKV_PRIORITY_VICTIM_VLLM ? "vllm" : "safe",
           c->oversized == PKV_OVERSIZED_REJECT ? "reject" : "wait", run->every_step,
           run->stuck_steps);
    print_speculation(c);
    printf("#   %" PRIu64 " host blocks, %" PRIu64 " bytes a token, link %" PRIu64 " bytes/s, %" PRId64
           " ns\n", c->swap.num_host_blocks, c->swap.bytes_per_token, c->swap.link.bytes_per_s,
           c->swap.link.latency_ns);
    printf("#   fork %d, beam drop %u\n", c->fork, c->beam_drop);
    if (t->law == PKV_STEP_TIME_FIXED)
        printf("#   fixed %" PRId64 " ns\n", t->fixed_ns);
    else
        printf("#   affine %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 " ns\n", t->base_ns,
               t->per_prefill_token_ns, t->per_decode_ns, t->per_context_token_ns);
    for (size_t i = 0; i < run->num_specs; i++)
        print_request(&run->specs[i]);
}
