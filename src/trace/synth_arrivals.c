/*
 * synth_arrivals.c - when requests come: one law, one random stream.
 *
 * Times are whole nanoseconds: a constant rate carries its remainder, so it does not drift; of the
 * other laws each gap is rounded to the nearest. Rates that change: a diurnal one by thinning
 * (Lewis and Shedler 1979), a spike and bursts by walking the stretches of constant rate with one
 * exponential number.
 */
#include <inttypes.h>

#include "trace/synth_private.h"

#define NANO UINT64_C(1000000000)

const char *pkv_arrival_law_name(enum pkv_arrival_law law)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { PKV_ARRIVAL_LAWS(PKV_NAME) };
#undef PKV_NAME
    PKV_ASSERT((unsigned)law < PKV_ARRIVAL_LAW_COUNT);
    return names[law];
}

static bool has_rate(enum pkv_arrival_law law)
{
    return law != PKV_ARRIVAL_AT_ONCE && law != PKV_ARRIVAL_CLOSED_LOOP;
}

static int check_shape(const struct pkv_synth_config *c, struct pkv_err *err)
{
    if (c->arrival == PKV_ARRIVAL_BURSTS && (c->on_ns <= 0 || c->off_ns <= 0))
        return pkv_fail(err, PKV_ERR_INPUT, "bursts that are on for %" PRId64 " ns and off for %"
                        PRId64 " ns are impossible", c->on_ns, c->off_ns);
    if (c->arrival == PKV_ARRIVAL_DIURNAL &&
        (c->period_ns <= 0 || !(c->amplitude >= 0 && c->amplitude <= 1)))
        return pkv_fail(err, PKV_ERR_INPUT, "a diurnal rate with a period of %" PRId64 " ns and an "
                        "amplitude of %g is out of range: it must be 0 to 1", c->period_ns,
                        c->amplitude);
    if (c->arrival == PKV_ARRIVAL_SPIKE &&
        (c->spike_at_ns < 0 || c->spike_for_ns < 0 || c->spike_for_ns > INT64_MAX - c->spike_at_ns ||
         !(c->spike_factor >= 0 && c->spike_factor <= 1e6)))
        return pkv_fail(err, PKV_ERR_INPUT, "a spike at %" PRId64 " ns for %" PRId64 " ns with a "
                        "factor of %g is out of range", c->spike_at_ns, c->spike_for_ns,
                        c->spike_factor);
    if (c->arrival == PKV_ARRIVAL_CLOSED_LOOP && (c->concurrency == 0 || c->loop_delay_ns < 0))
        return pkv_fail(err, PKV_ERR_INPUT, "a closed loop of %" PRIu32 " with a delay of %" PRId64
                        " ns is impossible", c->concurrency, c->loop_delay_ns);
    return 0;
}

static int check(const struct pkv_synth_config *c, struct pkv_err *err)
{
    if ((unsigned)c->arrival >= PKV_ARRIVAL_LAW_COUNT)
        return pkv_fail(err, PKV_ERR_INPUT, "arrival law %u is unknown", (unsigned)c->arrival);
    if (has_rate(c->arrival) && !(c->rate_per_s >= 1e-9 && c->rate_per_s <= 1e9))
        return pkv_fail(err, PKV_ERR_INPUT, "a rate of %g requests a second is out of range: it "
                        "must be 1e-9 to 1e9", c->rate_per_s);
    return check_shape(c, err);
}

static double draw_on(struct pkv_arrivals *a)
{
    return pkv_rng_exponential(&a->rng) * (double)a->config->on_ns;
}

/* A rate is taken to a billionth of a request a second, so that 0.1 is a tenth. */
int pkv_arrivals_init(struct pkv_arrivals *a, const struct pkv_synth_config *c, struct pkv_err *err)
{
    if (check(c, err) < 0)
        return -1;
    *a = (struct pkv_arrivals){.config = c};
    pkv_rng_init(&a->rng, c->seed, "arrival");
    if (!has_rate(c->arrival))
        return 0;
    a->rate_nano = (uint64_t)(c->rate_per_s * 1e9 + 0.5);
    a->period_ns = NANO * NANO / a->rate_nano;
    a->period_rest = NANO * NANO % a->rate_nano;
    a->mean_gap_ns = 1e18 / (double)a->rate_nano;
    if (c->arrival == PKV_ARRIVAL_BURSTS)
        a->on_left_ns = draw_on(a);
    if (c->arrival != PKV_ARRIVAL_GAMMA && c->arrival != PKV_ARRIVAL_WEIBULL)
        return 0;
    const struct pkv_number gaps = {
        .law = c->arrival == PKV_ARRIVAL_GAMMA ? PKV_NUMBER_GAMMA : PKV_NUMBER_WEIBULL,
        .mean = 1, .cv = c->arrival_cv,
    };
    return pkv_numbers_init(&a->gaps, &gaps, "arrivals", c->seed, "arrival", err);
}

static uint64_t constant_gap(struct pkv_arrivals *a)
{
    if (a->num == 0)
        return 0;
    a->rest += a->period_rest;
    if (a->rest < a->rate_nano)
        return a->period_ns;
    a->rest -= a->rate_nano;
    return a->period_ns + 1;
}

/* While on the rate is so much higher that all the time together has the rate asked for. */
static double bursts_gap(struct pkv_arrivals *a)
{
    double on = (double)a->config->on_ns, off = (double)a->config->off_ns;
    double left = pkv_rng_exponential(&a->rng) * a->mean_gap_ns * (on / (on + off)), gap = 0;
    while (left > a->on_left_ns) {
        left -= a->on_left_ns;
        gap += a->on_left_ns + pkv_rng_exponential(&a->rng) * off;
        a->on_left_ns = draw_on(a);
    }
    a->on_left_ns -= left;
    return gap + left;
}

/* Candidates come at the highest rate; each is taken with the share that the rate there has of it. */
static double diurnal_gap(struct pkv_arrivals *a)
{
    int64_t period = a->config->period_ns;
    double amplitude = a->config->amplitude, gap = 0;
    for (;;) {
        gap += pkv_rng_exponential(&a->rng) * a->mean_gap_ns / (1 + amplitude);
        double turns = ((double)(a->now_ns % period) + gap) / (double)period;
        if (turns >= 0x1p52)
            return gap;
        double rate = 1 + amplitude * pkv_sin_turn(turns - (double)(uint64_t)turns);
        if (pkv_rng_unit(&a->rng) * (1 + amplitude) < rate)
            return gap;
    }
}

static double spike_gap(struct pkv_arrivals *a)
{
    const struct pkv_synth_config *c = a->config;
    const int64_t ends[] = {c->spike_at_ns, c->spike_at_ns + c->spike_for_ns};
    const double rates[] = {1, c->spike_factor};
    double left = pkv_rng_exponential(&a->rng) * a->mean_gap_ns, gap = 0;
    for (int i = 0; i < 2; i++) {
        double stretch = (double)(ends[i] - a->now_ns) - gap;
        if (stretch <= 0)
            continue;
        if (left < stretch * rates[i])
            return gap + left / rates[i];
        left -= stretch * rates[i];
        gap += stretch;
    }
    return gap + left;
}

static double draw_gap(struct pkv_arrivals *a)
{
    switch (a->config->arrival) {
    case PKV_ARRIVAL_POISSON:
        return pkv_rng_exponential(&a->rng) * a->mean_gap_ns;
    case PKV_ARRIVAL_GAMMA:
    case PKV_ARRIVAL_WEIBULL:
        return pkv_numbers_draw(&a->gaps) * a->mean_gap_ns;
    case PKV_ARRIVAL_BURSTS:
        return bursts_gap(a);
    case PKV_ARRIVAL_DIURNAL:
        return diurnal_gap(a);
    case PKV_ARRIVAL_SPIKE:
        return spike_gap(a);
    case PKV_ARRIVAL_CONSTANT:
    case PKV_ARRIVAL_AT_ONCE:
    case PKV_ARRIVAL_CLOSED_LOOP:
    case PKV_ARRIVAL_LAW_COUNT:
        break;
    }
    return 0;
}

/* The gap before the next request: constant begins at 0, what is drawn with a gap. */
int pkv_arrivals_next(struct pkv_arrivals *a, uint64_t row, int64_t *out_ns, struct pkv_err *err)
{
    uint64_t gap_ns;
    if (a->config->arrival == PKV_ARRIVAL_CONSTANT) {
        gap_ns = constant_gap(a);
    } else {
        double gap = draw_gap(a) + 0.5;
        gap_ns = gap < 0x1p63 ? (uint64_t)gap : UINT64_MAX;
    }
    if (gap_ns > (uint64_t)(INT64_MAX - a->now_ns))
        return pkv_fail(err, PKV_ERR_INPUT, "request %" PRIu64 " would arrive beyond %" PRId64
                        " ns: the rate is too low for so many", row, INT64_MAX);
    a->now_ns += (int64_t)gap_ns;
    a->num++;
    *out_ns = a->now_ns;
    return 0;
}
