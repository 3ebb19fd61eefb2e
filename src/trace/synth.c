/*
 * synth.c - synthetic traffic, drawn request by request; memory does not follow their number.
 *
 * Each law has a random stream of its own, and a request takes its draws whether they are used or
 * not, so that changing one law (or a share) leaves all others as they were. Of a conversation all
 * turns are given right behind the first one.
 */
#include "pagedkv/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/synth_private.h"

#define NS_PER_MS 1e6
#define MAX_CONTEXT_TOKENS UINT64_C(1073741823)

/* The conversation at hand. */
struct talk {
    uint32_t turn, num_turns;           /* turn: that of the row given last, from 1 */
    uint64_t context_tokens;            /* what it said, prompt and answer */
    int64_t priority;
    const char *tenant;
};

struct pkv_synth {
    struct pkv_synth_config config;     /* what it points to: owned copies below */
    int64_t *priorities;                /* [num_priorities] owned */
    double *weights;                    /* [num_priorities] owned */
    struct pkv_synth_tenant *tenants;   /* [num_tenants] owned, names too */
    double weight_sum, tenant_weight_sum;
    struct pkv_arrivals arrivals;
    struct pkv_prefixes prefixes;
    struct pkv_lengths *prompt, *output, *turns, *turn_tokens;   /* owned; turns NULL = no sessions */
    struct pkv_numbers ratio, delay, abort_after;
    struct pkv_rng priority, abort_share, abort_time, tenant, session_share;
    uint64_t row, num_talks;
    uint32_t *outputs;                  /* [samples] owned: of the row at hand */
    struct talk talk;
    char session[24];
    struct pkv_span spans[PKV_MAX_PREFIX_DEPTH + 1];
    struct pkv_trace_text texts[PKV_MAX_PREFIX_DEPTH + 1];
    struct pkv_trace_texts given;
};

/* --- what is possible ------------------------------------------------------------------------ */

static bool is_share(double x)
{
    return x >= 0 && x <= 1;
}

static int check_priorities(const struct pkv_synth_config *c, struct pkv_err *err)
{
    double sum = 0;
    for (size_t i = 0; i < c->num_priorities; i++) {
        double weight = c->priority_weights[i];
        if (!(weight >= 0 && weight <= 1e15))
            return pkv_fail(err, PKV_ERR_INPUT, "weight %g of priority %" PRId64 " is out of "
                            "range: it must be 0 to 1e15", weight, c->priorities[i]);
        sum += weight;
    }
    if (c->num_priorities > 0 && !(sum > 0))
        return pkv_fail(err, PKV_ERR_INPUT, "the weights of the priorities sum up to 0");
    return 0;
}

static int check_tenants(const struct pkv_synth_config *c, struct pkv_err *err)
{
    double sum = 0;
    for (size_t i = 0; i < c->num_tenants; i++) {
        const struct pkv_synth_tenant *tenant = &c->tenants[i];
        if (!(tenant->weight >= 0 && tenant->weight <= 1e15))
            return pkv_fail(err, PKV_ERR_INPUT, "weight %g of tenant %s is out of range: it must be "
                            "0 to 1e15", tenant->weight, tenant->name);
        sum += tenant->weight;
    }
    if (c->num_tenants > 0 && !(sum > 0))
        return pkv_fail(err, PKV_ERR_INPUT, "the weights of the tenants sum up to 0");
    return 0;
}

static int check(const struct pkv_synth_config *c, struct pkv_err *err)
{
    if (c->num_requests == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "the number of requests is 0");
    if (check_priorities(c, err) < 0 || check_tenants(c, err) < 0)
        return -1;
    const double shares[] = {c->prefix_share, c->abort_share, c->session_share};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (!is_share(shares[i]))
            return pkv_fail(err, PKV_ERR_INPUT, "a share of %g is out of range: it must be 0 to 1",
                            shares[i]);
    if (c->abort_min_ns < 0 || c->abort_max_ns < c->abort_min_ns)
        return pkv_fail(err, PKV_ERR_INPUT, "aborts between %" PRId64 " and %" PRId64 " ns after "
                        "arrival are impossible", c->abort_min_ns, c->abort_max_ns);
    if (c->samples > PKV_MAX_SAMPLES || c->beam_width > PKV_MAX_SAMPLES ||
        (c->samples > 1 && c->beam_width > 1))
        return pkv_fail(err, PKV_ERR_INPUT, "%u samples and %u beams are impossible: at most %u, and "
                        "one of them", c->samples, c->beam_width, PKV_MAX_SAMPLES);
    if ((c->samples > 1 || c->beam_width > 1) &&
        (c->session_share > 0 || c->arrival == PKV_ARRIVAL_CLOSED_LOOP))
        return pkv_fail(err, PKV_ERR_INPUT, "several answers in a session are impossible: the next turn "
                        "follows one of them");
    return 0;
}

/* --- beginning ------------------------------------------------------------------------------- */

static int copy_priorities(struct pkv_synth *s, struct pkv_err *err)
{
    const struct pkv_synth_config *c = &s->config;
    s->priorities = pkv_alloc(c->num_priorities, sizeof *s->priorities, err);
    s->weights = pkv_alloc(c->num_priorities, sizeof *s->weights, err);
    if (!s->priorities || !s->weights)
        return -1;
    for (size_t i = 0; i < c->num_priorities; i++) {
        s->priorities[i] = c->priorities[i];
        s->weights[i] = c->priority_weights[i];
        s->weight_sum += s->weights[i];
    }
    return 0;
}

static int copy_tenants(struct pkv_synth *s, struct pkv_err *err)
{
    const struct pkv_synth_config *c = &s->config;
    s->tenants = pkv_alloc(c->num_tenants, sizeof *s->tenants, err);
    if (!s->tenants)
        return -1;
    for (size_t i = 0; i < c->num_tenants; i++) {
        s->tenants[i] = c->tenants[i];
        s->tenants[i].name = pkv_strdup(c->tenants[i].name, err);
        if (!s->tenants[i].name)
            return -1;
        s->tenant_weight_sum += s->tenants[i].weight;
    }
    return 0;
}

static void begin_streams(struct pkv_synth *s)
{
    uint64_t seed = s->config.seed;
    pkv_rng_init(&s->priority, seed, "priority");
    pkv_rng_init(&s->abort_share, seed, "abort share");
    pkv_rng_init(&s->abort_time, seed, "abort time");
    pkv_rng_init(&s->tenant, seed, "tenant");
    pkv_rng_init(&s->session_share, seed, "session share");
}

static int begin_lengths(struct pkv_synth *s, struct pkv_err *err)
{
    const struct pkv_synth_config *c = &s->config;
    s->prompt = pkv_lengths_create(&c->prompt, PKV_LENGTH_OF_PROMPT, NULL, c->seed, err);
    if (s->prompt)
        s->output = pkv_lengths_create(&c->output, PKV_LENGTH_OF_OUTPUT, s->prompt, c->seed, err);
    if (!s->output || c->session_share <= 0)
        return s->output ? 0 : -1;
    s->turns = pkv_lengths_create(&c->turns, PKV_LENGTH_OF_SESSION, NULL, c->seed, err);
    if (s->turns)
        s->turn_tokens = pkv_lengths_create(&c->turn_tokens, PKV_LENGTH_OF_TURN, NULL, c->seed, err);
    return s->turn_tokens ? 0 : -1;
}

static int begin_numbers(struct pkv_synth *s, struct pkv_err *err)
{
    const struct pkv_synth_config *c = &s->config;
    if (pkv_numbers_init(&s->ratio, &c->max_tokens_ratio, "the ratio of max_tokens", c->seed,
                         "max tokens", err) < 0 ||
        pkv_numbers_init(&s->delay, &c->delay_ms, "the delay of a turn", c->seed, "turn delay",
                         err) < 0)
        return -1;
    return pkv_numbers_init(&s->abort_after, &c->abort_after_ms, "the time of aborts", c->seed,
                            "abort after", err);
}

struct pkv_synth *pkv_synth_create(const struct pkv_synth_config *config, struct pkv_err *err)
{
    if (check(config, err) < 0)
        return NULL;
    struct pkv_synth *s = pkv_alloc(1, sizeof *s, err);
    if (!s)
        return NULL;
    s->config = *config;
    begin_streams(s);
    s->outputs = pkv_alloc(config->samples, sizeof *s->outputs, err);
    if (s->outputs && pkv_arrivals_init(&s->arrivals, &s->config, err) == 0 && begin_lengths(s, err) == 0 &&
        begin_numbers(s, err) == 0 && copy_priorities(s, err) == 0 && copy_tenants(s, err) == 0 &&
        pkv_prefixes_init(&s->prefixes, &s->config, err) == 0) {
        s->config.priorities = s->priorities;
        s->config.priority_weights = s->weights;
        s->config.tenants = s->tenants;
        return s;
    }
    pkv_synth_destroy(s);
    return NULL;
}

void pkv_synth_destroy(struct pkv_synth *s)
{
    if (!s)
        return;
    pkv_lengths_destroy(s->prompt);
    pkv_lengths_destroy(s->output);
    pkv_lengths_destroy(s->turns);
    pkv_lengths_destroy(s->turn_tokens);
    pkv_prefixes_finish(&s->prefixes);
    for (size_t i = 0; s->tenants && i < s->config.num_tenants; i++)
        pkv_free((char *)s->tenants[i].name);
    pkv_free(s->tenants);
    pkv_free(s->priorities);
    pkv_free(s->weights);
    pkv_free(s->outputs);
    pkv_free(s);
}

/* --- a row ----------------------------------------------------------------------------------- */

/* Time to the abort, or PKV_NO_TIME. */
static int64_t draw_abort(struct pkv_synth *s)
{
    const struct pkv_synth_config *c = &s->config;
    uint64_t spread = (uint64_t)(c->abort_max_ns - c->abort_min_ns);
    bool aborts = pkv_rng_unit(&s->abort_share) < c->abort_share;
    int64_t after = c->abort_min_ns + (int64_t)pkv_rng_below(&s->abort_time, spread + 1);
    double after_ns = pkv_numbers_draw(&s->abort_after) * NS_PER_MS + 0.5;
    if (!aborts)
        return PKV_NO_TIME;
    if (c->abort_after_ms.law == PKV_NUMBER_NONE)
        return after;
    return after_ns < 0x1p62 ? (int64_t)after_ns : INT64_C(1) << 62;
}

static int set_times(struct pkv_synth *s, struct pkv_request_spec *out, struct pkv_err *err)
{
    int64_t after = draw_abort(s);
    if (!out->follows) {
        if (pkv_arrivals_next(&s->arrivals, s->row, &out->arrival_ns, err) < 0)
            return -1;
        if (after != PKV_NO_TIME && after > INT64_MAX - out->arrival_ns)
            return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " would be aborted beyond %"
                            PRId64 " ns", s->row, INT64_MAX);
        if (after != PKV_NO_TIME)
            after += out->arrival_ns;
    } else {
        out->arrival_ns = s->arrivals.now_ns;
    }
    out->abort_ns = after;
    return 0;
}

static int64_t draw_priority(struct pkv_synth *s)
{
    const struct pkv_synth_config *c = &s->config;
    if (c->num_priorities == 0)
        return 0;
    double at = pkv_rng_unit(&s->priority) * s->weight_sum;
    double sum = 0;
    size_t last = 0;
    for (size_t i = 0; i < c->num_priorities; i++) {
        if (s->weights[i] == 0)
            continue;
        last = i;
        sum += s->weights[i];
        if (at < sum)
            break;
    }
    return s->priorities[last];
}

/* Who asks, and how urgently. */
static void draw_owner(struct pkv_synth *s, struct talk *out)
{
    const struct pkv_synth_tenant *tenant = NULL;
    out->priority = draw_priority(s);
    out->tenant = NULL;
    if (s->config.num_tenants == 0)
        return;
    double at = pkv_rng_unit(&s->tenant) * s->tenant_weight_sum, sum = 0;
    for (size_t i = 0; i < s->config.num_tenants && !(at < sum); i++) {
        if (s->tenants[i].weight == 0)
            continue;
        tenant = &s->tenants[i];
        sum += tenant->weight;
    }
    out->tenant = tenant->name;
    if (tenant->has_priority)
        out->priority = tenant->priority;
}

static void add_span(struct pkv_synth *s, struct pkv_content *content, enum pkv_origin_kind kind,
                     uint64_t number, uint32_t count)
{
    size_t i = content->num_prompt_spans++;
    uint64_t origin = kind == PKV_ORIGIN_PREFIX ? pkv_prefix_origin(number) : pkv_origin(kind, number);
    s->spans[i] = (struct pkv_span){origin, 0, count};
    s->texts[i] = (struct pkv_trace_text){kind, number, NULL};
}

/* The prompt: what was said before, or a shared prefix, or nothing; then text of the request's own. */
static void draw_prompt(struct pkv_synth *s, struct pkv_request_spec *out)
{
    struct pkv_prefix prefix;
    struct pkv_content *content = &out->content;
    uint32_t length = pkv_lengths_draw(s->prompt), before;
    pkv_prefixes_draw(&s->prefixes, &prefix);
    *content = (struct pkv_content){
        .root = pkv_content_root(NULL, NULL), .prompt = s->spans,
        .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, s->row),
    };
    if (s->talk.turn > 0) {
        before = (uint32_t)s->talk.context_tokens;
        length = before + pkv_lengths_draw(s->turn_tokens);
        add_span(s, content, PKV_ORIGIN_PREV, 0, before);
    } else {
        before = prefix.sum_tokens;
        for (uint32_t i = 0; i < prefix.depth; i++)
            add_span(s, content, PKV_ORIGIN_PREFIX, prefix.text[i], prefix.tokens[i]);
    }
    if (length <= before)
        length = before + 1;
    content->num_named_tokens = before;
    add_span(s, content, PKV_ORIGIN_OWN, s->row, length - before);
    out->num_prompt_tokens = length;
    s->given = (struct pkv_trace_texts){s->texts, NULL, NULL};
}

/* What the scheduler is told is the longest of the samples, or more than that. */
static void draw_outputs(struct pkv_synth *s, struct pkv_request_spec *out)
{
    const struct pkv_synth_config *c = &s->config;
    out->is_beam_search = c->beam_width > 1;
    out->num_samples = out->is_beam_search ? c->beam_width : c->samples;
    uint32_t num = c->samples > 1 ? c->samples : 1, longest = 0;
    for (uint32_t i = 0; i < num; i++) {
        uint32_t length = pkv_lengths_draw(s->output);
        if (c->samples > 1)
            s->outputs[i] = length;
        longest = length > longest ? length : longest;
    }
    double told = pkv_numbers_draw(&s->ratio) * longest + 0.5;
    out->sample_output_tokens = c->samples > 1 ? s->outputs : NULL;
    out->num_output_tokens = longest;
    out->max_tokens = longest ? longest : 1;
    if (told > out->max_tokens)
        out->max_tokens = told < (double)MAX_CONTEXT_TOKENS ? (uint32_t)told
                                                            : (uint32_t)MAX_CONTEXT_TOKENS;
}

static int64_t draw_delay(struct pkv_synth *s)
{
    double ns = pkv_numbers_draw(&s->delay) * NS_PER_MS + 0.5;
    return ns < 0x1p62 ? (int64_t)ns : INT64_C(1) << 62;
}

/* A closed loop whose users hold conversations, one after the other. */
static bool is_loop_of_talks(const struct pkv_synth *s)
{
    return s->turns && s->config.arrival == PKV_ARRIVAL_CLOSED_LOOP;
}

/* Is this row the next turn of the conversation at hand? Else a new one begins, or none. */
static void begin_turn(struct pkv_synth *s, struct pkv_request_spec *out)
{
    struct talk *talk = &s->talk;
    if (talk->turn < talk->num_turns) {
        out->follows = true;
        out->delay_ns = draw_delay(s);
    } else {
        draw_owner(s, talk);
        talk->turn = talk->num_turns = 0;
        if (s->turns && pkv_rng_unit(&s->session_share) < s->config.session_share)
            talk->num_turns = pkv_lengths_draw(s->turns);
        if (is_loop_of_talks(s) && talk->num_turns == 0)
            talk->num_turns = 1;
        else if (talk->num_turns == 1 && !is_loop_of_talks(s))
            talk->num_turns = 0;
        if (talk->num_turns > 0)
            snprintf(s->session, sizeof s->session, "s%" PRIu64, s->num_talks++);
    }
    out->priority = talk->priority;
    out->tenant = talk->tenant;
}

/* Once its lengths are known: is it the last turn? */
static void end_turn(struct pkv_synth *s, struct pkv_request_spec *out)
{
    struct talk *talk = &s->talk;
    uint64_t most = s->config.max_context_tokens;
    if (talk->num_turns == 0)
        return;
    talk->context_tokens = (uint64_t)out->num_prompt_tokens + out->num_output_tokens;
    if (talk->context_tokens >= (most ? most : MAX_CONTEXT_TOKENS) ||
        s->row + 1 == s->config.num_requests)
        talk->num_turns = talk->turn + 1;
    out->session = s->session;
    out->turn = ++talk->turn;
    out->is_last = talk->turn == talk->num_turns;
}

/* The first conversation of each user comes at once, each later one when another is over. */
static void join_loop_of_talks(struct pkv_synth *s, struct pkv_request_spec *out)
{
    out->loop = "loop";
    if (s->talk.turn > 0)
        return;
    out->follows = s->num_talks > s->config.concurrency;
    out->delay_ns = out->follows ? s->config.loop_delay_ns : 0;
}

/* The first rows of a closed loop come at once, each later one follows one that ends. */
static void join_loop(struct pkv_synth *s, struct pkv_request_spec *out)
{
    if (is_loop_of_talks(s))
        join_loop_of_talks(s, out);
    if (is_loop_of_talks(s) || s->config.arrival != PKV_ARRIVAL_CLOSED_LOOP)
        return;
    out->session = "loop";
    out->follows = s->row >= s->config.concurrency;
    out->delay_ns = out->follows ? s->config.loop_delay_ns : 0;
    out->is_last = s->row + 1 == s->config.num_requests;
}

static int source_next(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct pkv_synth *s = ctx;
    if (s->row == s->config.num_requests)
        return 0;
    *out = (struct pkv_request_spec){.row = s->row, .deadline_ns = PKV_NO_TIME};
    begin_turn(s, out);
    join_loop(s, out);
    if (set_times(s, out, err) < 0)
        return -1;
    draw_prompt(s, out);
    draw_outputs(s, out);
    end_turn(s, out);
    s->row++;
    return 1;
}

struct pkv_source pkv_synth_source(struct pkv_synth *s)
{
    return (struct pkv_source){
        .next = source_next, .ctx = s,
        .has_followers = s->turns || s->config.arrival == PKV_ARRIVAL_CLOSED_LOOP,
    };
}

const struct pkv_trace_texts *pkv_synth_texts(const struct pkv_synth *s)
{
    return &s->given;
}
