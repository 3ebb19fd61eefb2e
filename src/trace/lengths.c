/*
 * lengths.c - lengths in tokens, drawn from a law and cut to its limits.
 *
 * lognormal: for mean m and coefficient of variation c of the length itself, the logarithm has
 * variance s2 = log(1 + c^2) and mean log m - s2 / 2 (the standard moments turned around). Draws
 * are rounded to the nearest token, at least 1. Cutting at max makes the mean of what is drawn
 * smaller than m.
 */
#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "trace/synth_private.h"

/* A prefix, a prompt and an output fit 32 bits together. */
#define MAX_TOKENS UINT32_C(1073741823)

struct pkv_lengths {
    struct pkv_length law;       /* its trace is not kept */
    struct pkv_rng rng;
    double mu, sigma;            /* lognormal */
    uint32_t *table;             /* [table_num] owned; empirical */
    size_t table_num, table_capacity;
};

const char *pkv_length_law_name(enum pkv_length_law law)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { PKV_LENGTH_LAWS(PKV_NAME) };
#undef PKV_NAME
    PKV_ASSERT((unsigned)law < PKV_LENGTH_LAW_COUNT);
    return names[law];
}

static const char *use_name(enum pkv_length_use use)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { PKV_LENGTH_USES(PKV_NAME) };
#undef PKV_NAME
    return names[use];
}

static int check_range(const struct pkv_length *l, enum pkv_length_use use, uint32_t least,
                       struct pkv_err *err)
{
    if (l->max > MAX_TOKENS || l->min > MAX_TOKENS)
        return pkv_fail(err, PKV_ERR_INPUT, "%s lengths may be at most %" PRIu32 " tokens, not "
                        "%" PRIu32, use_name(use), MAX_TOKENS, l->max > l->min ? l->max : l->min);
    if (l->max != 0 && l->max < l->min)
        return pkv_fail(err, PKV_ERR_INPUT, "%s lengths from %" PRIu32 " to %" PRIu32 " are "
                        "impossible", use_name(use), l->min, l->max);
    if (l->law == PKV_LENGTH_UNIFORM && (l->max < least || l->min < least))
        return pkv_fail(err, PKV_ERR_INPUT, "%s lengths from %" PRIu32 " to %" PRIu32 " must be "
                        "at least %" PRIu32, use_name(use), l->min, l->max, least);
    return 0;
}

static int check(const struct pkv_length *l, enum pkv_length_use use, struct pkv_err *err)
{
    uint32_t least = use == PKV_LENGTH_OF_OUTPUT ? 0 : 1;
    if (check_range(l, use, least, err) < 0)
        return -1;
    switch (l->law) {
    case PKV_LENGTH_CONSTANT:
        if (l->value < least || l->value > MAX_TOKENS)
            return pkv_fail(err, PKV_ERR_INPUT, "a %s length of %" PRIu32 " tokens is out of "
                            "range: it must be %" PRIu32 " to %" PRIu32, use_name(use), l->value,
                            least, MAX_TOKENS);
        return 0;
    case PKV_LENGTH_UNIFORM:
        return 0;
    case PKV_LENGTH_LOGNORMAL:
        if (!(l->mean >= 1 && l->mean <= MAX_TOKENS) || !(l->cv >= 0 && l->cv <= 1000))
            return pkv_fail(err, PKV_ERR_INPUT, "a %s length with mean %g and cv %g is out of "
                            "range: mean must be at least 1, cv 0 to 1000", use_name(use),
                            l->mean, l->cv);
        return 0;
    case PKV_LENGTH_EMPIRICAL:
        if (l->trace)
            return 0;
        return pkv_fail(err, PKV_ERR_INPUT, "the empirical %s length names no trace",
                        use_name(use));
    case PKV_LENGTH_LAW_COUNT:
        break;
    }
    return pkv_fail(err, PKV_ERR_INPUT, "%s length law %u is unknown", use_name(use),
                    (unsigned)l->law);
}

static int read_table(struct pkv_lengths *l, enum pkv_length_use use, struct pkv_err *err)
{
    struct pkv_request_spec spec;
    int more;
    /* Lengths need no order and no particular size of hash blocks. */
    struct pkv_trace_options options = {.lenient_ids = true, .sort = true};
    struct pkv_trace *trace = pkv_trace_open(l->law.trace, &options, err);
    if (!trace)
        return -1;
    struct pkv_source source = pkv_trace_source(trace);
    while ((more = source.next(source.ctx, &spec, err)) > 0) {
        more = pkv_grow(&l->table, &l->table_capacity, l->table_num + 1, sizeof *l->table, err);
        if (more < 0)
            break;
        l->table[l->table_num++] = use == PKV_LENGTH_OF_OUTPUT ? spec.num_output_tokens
                                                               : spec.num_prompt_tokens;
    }
    pkv_trace_close(trace);
    return more;
}

struct pkv_lengths *pkv_lengths_create(const struct pkv_length *law, enum pkv_length_use use,
                                       uint64_t seed, struct pkv_err *err)
{
    static const char *const streams[] = {
        [PKV_LENGTH_OF_PROMPT] = "prompt tokens", [PKV_LENGTH_OF_OUTPUT] = "output tokens",
        [PKV_LENGTH_OF_PREFIX] = "prefix tokens",
    };
    if (check(law, use, err) < 0)
        return NULL;
    struct pkv_lengths *l = pkv_alloc(1, sizeof *l, err);
    if (!l)
        return NULL;
    l->law = *law;
    pkv_rng_init(&l->rng, seed, streams[use]);
    if (law->law == PKV_LENGTH_LOGNORMAL) {
        double variance = pkv_log(1 + law->cv * law->cv);
        l->mu = pkv_log(law->mean) - variance / 2;
        l->sigma = sqrt(variance);
    }
    if (law->law == PKV_LENGTH_EMPIRICAL && read_table(l, use, err) < 0) {
        pkv_lengths_destroy(l);
        return NULL;
    }
    l->law.trace = NULL;
    return l;
}

void pkv_lengths_destroy(struct pkv_lengths *l)
{
    if (!l)
        return;
    pkv_free(l->table);
    pkv_free(l);
}

static uint32_t cut(const struct pkv_length *law, uint32_t length)
{
    uint32_t max = law->max ? law->max : MAX_TOKENS;
    return length > max ? max : length < law->min ? law->min : length;
}

uint32_t pkv_lengths_draw(struct pkv_lengths *l)
{
    const struct pkv_length *law = &l->law;
    switch (law->law) {
    case PKV_LENGTH_CONSTANT:
        return cut(law, law->value);
    case PKV_LENGTH_UNIFORM:
        return law->min + (uint32_t)pkv_rng_below(&l->rng, (uint64_t)law->max - law->min + 1);
    case PKV_LENGTH_LOGNORMAL: {
        double length = pkv_exp(l->mu + l->sigma * pkv_rng_normal(&l->rng)) + 0.5;
        if (length < 1)
            return cut(law, 1);
        return cut(law, length < MAX_TOKENS ? (uint32_t)length : MAX_TOKENS);
    }
    case PKV_LENGTH_EMPIRICAL:
        return cut(law, l->table[pkv_rng_below(&l->rng, l->table_num)]);
    case PKV_LENGTH_LAW_COUNT:
        break;
    }
    PKV_UNREACHABLE("a law of the list");
}
