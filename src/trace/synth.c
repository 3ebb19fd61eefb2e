/*
 * synth.c - synthetic traffic, drawn request by request; memory does not follow their number.
 *
 * Each law has a random stream of its own, and a request takes its draws whether they are used or
 * not, so that changing one law (or a share) leaves all others as they were. Times are whole
 * nanoseconds: a constant rate carries its remainder, so it does not drift.
 */
#include "pagedkv/trace.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "trace/synth_private.h"

#define NANO UINT64_C(1000000000)

struct pkv_synth {
    struct pkv_synth_config config;     /* priorities and weights: owned copies below */
    int64_t *priorities;                /* [num_priorities] owned */
    double *weights;                    /* [num_priorities] owned */
    double weight_sum;
    struct pkv_lengths *prompt, *output, *prefix;   /* owned */
    uint32_t *prefix_tokens;            /* [prefix_num] owned */
    struct pkv_rng arrival, prefix_share, prefix_pick, priority, abort_share, abort_time;
    uint64_t period_ns, period_rest, rest, rate_nano;   /* constant: 1e18 / rate_nano, exact */
    double mean_gap_ns;                 /* poisson */
    int64_t now_ns;
    uint64_t row;
    struct pkv_span spans[2];
};

const char *pkv_arrival_law_name(enum pkv_arrival_law law)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { PKV_ARRIVAL_LAWS(PKV_NAME) };
#undef PKV_NAME
    PKV_ASSERT((unsigned)law < PKV_ARRIVAL_LAW_COUNT);
    return names[law];
}

static bool is_share(double x)
{
    return x >= 0 && x <= 1;
}

static int check_arrival(const struct pkv_synth_config *c, struct pkv_err *err)
{
    if ((unsigned)c->arrival >= PKV_ARRIVAL_LAW_COUNT)
        return pkv_fail(err, PKV_ERR_INPUT, "arrival law %u is unknown", (unsigned)c->arrival);
    if (c->arrival != PKV_ARRIVAL_AT_ONCE && !(c->rate_per_s >= 1e-9 && c->rate_per_s <= 1e9))
        return pkv_fail(err, PKV_ERR_INPUT, "a rate of %g requests a second is out of range: it "
                        "must be 1e-9 to 1e9", c->rate_per_s);
    return 0;
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

static int check(const struct pkv_synth_config *c, struct pkv_err *err)
{
    if (c->num_requests == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "the number of requests is 0");
    if (check_arrival(c, err) < 0 || check_priorities(c, err) < 0)
        return -1;
    if (!is_share(c->prefix_share) || !is_share(c->abort_share))
        return pkv_fail(err, PKV_ERR_INPUT, "a share of %g is out of range: it must be 0 to 1",
                        is_share(c->prefix_share) ? c->abort_share : c->prefix_share);
    if (c->abort_min_ns < 0 || c->abort_max_ns < c->abort_min_ns)
        return pkv_fail(err, PKV_ERR_INPUT, "aborts between %" PRId64 " and %" PRId64 " ns after "
                        "arrival are impossible", c->abort_min_ns, c->abort_max_ns);
    return 0;
}

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
    s->config.priorities = s->priorities;
    s->config.priority_weights = s->weights;
    return 0;
}

static int draw_prefixes(struct pkv_synth *s, struct pkv_err *err)
{
    const struct pkv_synth_config *c = &s->config;
    if (c->prefix_num == 0)
        return 0;
    s->prefix = pkv_lengths_create(&c->prefix_tokens, PKV_LENGTH_OF_PREFIX, c->seed, err);
    s->prefix_tokens = pkv_alloc(c->prefix_num, sizeof *s->prefix_tokens, err);
    if (!s->prefix || !s->prefix_tokens)
        return -1;
    for (uint32_t i = 0; i < c->prefix_num; i++)
        s->prefix_tokens[i] = pkv_lengths_draw(s->prefix);
    return 0;
}

static void begin_streams(struct pkv_synth *s)
{
    uint64_t seed = s->config.seed;
    pkv_rng_init(&s->arrival, seed, "arrival");
    pkv_rng_init(&s->prefix_share, seed, "prefix share");
    pkv_rng_init(&s->prefix_pick, seed, "prefix pick");
    pkv_rng_init(&s->priority, seed, "priority");
    pkv_rng_init(&s->abort_share, seed, "abort share");
    pkv_rng_init(&s->abort_time, seed, "abort time");
}

/* A rate is taken to a billionth of a request a second, so that 0.1 is a tenth. */
static void begin_arrivals(struct pkv_synth *s)
{
    if (s->config.arrival == PKV_ARRIVAL_AT_ONCE)
        return;
    s->rate_nano = (uint64_t)(s->config.rate_per_s * 1e9 + 0.5);
    s->period_ns = NANO * NANO / s->rate_nano;
    s->period_rest = NANO * NANO % s->rate_nano;
    s->mean_gap_ns = 1e18 / (double)s->rate_nano;
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
    begin_arrivals(s);
    s->prompt = pkv_lengths_create(&config->prompt, PKV_LENGTH_OF_PROMPT, config->seed, err);
    if (s->prompt)
        s->output = pkv_lengths_create(&config->output, PKV_LENGTH_OF_OUTPUT, config->seed, err);
    if (s->output && copy_priorities(s, err) == 0 && draw_prefixes(s, err) == 0)
        return s;
    pkv_synth_destroy(s);
    return NULL;
}

void pkv_synth_destroy(struct pkv_synth *s)
{
    if (!s)
        return;
    pkv_lengths_destroy(s->prompt);
    pkv_lengths_destroy(s->output);
    pkv_lengths_destroy(s->prefix);
    pkv_free(s->prefix_tokens);
    pkv_free(s->priorities);
    pkv_free(s->weights);
    pkv_free(s);
}

/* The gap before the next request: constant begins at 0, poisson with a gap. */
static uint64_t draw_gap(struct pkv_synth *s)
{
    switch (s->config.arrival) {
    case PKV_ARRIVAL_CONSTANT:
        if (s->row == 0)
            return 0;
        s->rest += s->period_rest;
        if (s->rest < s->rate_nano)
            return s->period_ns;
        s->rest -= s->rate_nano;
        return s->period_ns + 1;
    case PKV_ARRIVAL_POISSON: {
        double gap = pkv_rng_exponential(&s->arrival) * s->mean_gap_ns + 0.5;
        return gap < 0x1p63 ? (uint64_t)gap : UINT64_MAX;
    }
    case PKV_ARRIVAL_AT_ONCE:
    case PKV_ARRIVAL_LAW_COUNT:
        break;
    }
    return 0;
}

static int set_times(struct pkv_synth *s, struct pkv_request_spec *out, struct pkv_err *err)
{
    const struct pkv_synth_config *c = &s->config;
    uint64_t gap = draw_gap(s);
    uint64_t spread = (uint64_t)(c->abort_max_ns - c->abort_min_ns);
    bool aborts = pkv_rng_unit(&s->abort_share) < c->abort_share;
    uint64_t after = (uint64_t)c->abort_min_ns + pkv_rng_below(&s->abort_time, spread + 1);
    if (gap > (uint64_t)(INT64_MAX - s->now_ns))
        return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " would arrive beyond %" PRId64
                        " ns: the rate is too low for so many", s->row, INT64_MAX);
    s->now_ns += (int64_t)gap;
    if (aborts && after > (uint64_t)(INT64_MAX - s->now_ns))
        return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " would be aborted beyond %" PRId64
                        " ns", s->row, INT64_MAX);
    out->arrival_ns = s->now_ns;
    out->abort_ns = aborts ? s->now_ns + (int64_t)after : PKV_NO_TIME;
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

/* The prompt: a shared prefix or none, then text of the request's own. */
static void draw_prompt(struct pkv_synth *s, struct pkv_request_spec *out)
{
    const struct pkv_synth_config *c = &s->config;
    uint32_t length = pkv_lengths_draw(s->prompt);
    uint32_t prefix = 0, num = 0;
    if (c->prefix_num > 0) {
        uint64_t pick = pkv_rng_below(&s->prefix_pick, c->prefix_num);
        if (pkv_rng_unit(&s->prefix_share) < c->prefix_share) {
            prefix = s->prefix_tokens[pick];
            s->spans[num++] = (struct pkv_span){pkv_origin(PKV_ORIGIN_PREFIX, pick), 0, prefix};
        }
    }
    if (length <= prefix)
        length = prefix + 1;
    s->spans[num++] = (struct pkv_span){
        pkv_origin(PKV_ORIGIN_OWN, s->row), 0, length - prefix,
    };
    out->num_prompt_tokens = length;
    out->content = (struct pkv_content){
        .root = pkv_content_root(NULL, NULL), .prompt = s->spans, .num_prompt_spans = num,
        .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, s->row),
    };
}

static int source_next(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct pkv_synth *s = ctx;
    if (s->row == s->config.num_requests)
        return 0;
    *out = (struct pkv_request_spec){.row = s->row, .deadline_ns = PKV_NO_TIME};
    if (set_times(s, out, err) < 0)
        return -1;
    out->priority = draw_priority(s);
    draw_prompt(s, out);
    out->num_output_tokens = pkv_lengths_draw(s->output);
    out->max_tokens = out->num_output_tokens ? out->num_output_tokens : 1;
    s->row++;
    return 1;
}

struct pkv_source pkv_synth_source(struct pkv_synth *s)
{
    return (struct pkv_source){.next = source_next, .ctx = s};
}
