/*
 * lengths.c - lengths in tokens, drawn from a law and cut to its limits.
 *
 * lognormal and gamma are the numbers of numbers.c, rounded to the nearest token, at least 1. Cutting
 * at max makes the mean of what is drawn smaller than the mean of the law.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "trace/synth_private.h"

/* A prefix, a prompt and an output fit 32 bits together. */
#define MAX_TOKENS UINT32_C(1073741823)

struct pkv_lengths {
    struct pkv_length law;       /* its trace is not kept */
    struct pkv_numbers numbers;  /* what is drawn before it is rounded; its stream is that of all laws */
    struct pkv_zipf zipf;
    const struct pkv_lengths *prompts;   /* borrowed; joint */
    uint32_t *table;             /* [table_num] owned; empirical */
    uint32_t *outputs;           /* [table_num] owned; of the same rows; prompts only */
    size_t table_num, table_capacity, outputs_capacity;
    size_t last;                 /* the place in the table that was drawn last */
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
#define PKV_NAME(sym, word, stream) [sym] = word,
    static const char *const names[] = { PKV_LENGTH_USES(PKV_NAME) };
#undef PKV_NAME
    return names[use];
}

static int check_range(const struct pkv_length *l, enum pkv_length_use use, uint32_t least,
                       struct pkv_err *err)
{
    bool is_range = l->law == PKV_LENGTH_UNIFORM || l->law == PKV_LENGTH_ZIPF;
    if (l->law == PKV_LENGTH_ZIPF)
        least = 1;
    if (l->max > MAX_TOKENS || l->min > MAX_TOKENS)
        return pkv_fail(err, PKV_ERR_INPUT, "%s lengths may be at most %" PRIu32 " tokens, not "
                        "%" PRIu32, use_name(use), MAX_TOKENS, l->max > l->min ? l->max : l->min);
    if (l->max != 0 && l->max < l->min)
        return pkv_fail(err, PKV_ERR_INPUT, "%s lengths from %" PRIu32 " to %" PRIu32 " are "
                        "impossible", use_name(use), l->min, l->max);
    if (is_range && (l->max < least || l->min < least))
        return pkv_fail(err, PKV_ERR_INPUT, "%s lengths from %" PRIu32 " to %" PRIu32 " must be "
                        "at least %" PRIu32, use_name(use), l->min, l->max, least);
    return 0;
}

static int check_mean(const struct pkv_length *l, enum pkv_length_use use, struct pkv_err *err)
{
    double least_cv = l->law == PKV_LENGTH_GAMMA ? 0.01 : 0;
    double most_cv = l->law == PKV_LENGTH_GAMMA ? 100 : 1000;
    if (!(l->mean >= 1 && l->mean <= MAX_TOKENS) || !(l->cv >= least_cv && l->cv <= most_cv))
        return pkv_fail(err, PKV_ERR_INPUT, "a %s length with mean %g and cv %g is out of range: "
                        "mean must be at least 1, cv %g to %g", use_name(use), l->mean, l->cv,
                        least_cv, most_cv);
    return 0;
}

static int check_tail(const struct pkv_length *l, enum pkv_length_use use, struct pkv_err *err)
{
    if (!(l->tail_share >= 0 && l->tail_share <= 1) ||
        !(l->tail_alpha >= 0.01 && l->tail_alpha <= 1000) || l->tail_min == 0 ||
        l->tail_min > MAX_TOKENS)
        return pkv_fail(err, PKV_ERR_INPUT, "a %s length with a tail from %" PRIu32 ", alpha %g and "
                        "a share of %g is out of range: it must begin at 1 or above, alpha be 0.01 "
                        "to 1000 and the share 0 to 1", use_name(use), l->tail_min, l->tail_alpha,
                        l->tail_share);
    return check_mean(l, use, err);
}

static int check_law(const struct pkv_length *l, enum pkv_length_use use,
                     const struct pkv_lengths *prompts, uint32_t least, struct pkv_err *err)
{
    switch (l->law) {
    case PKV_LENGTH_CONSTANT:
        if (l->value < least || l->value > MAX_TOKENS)
            return pkv_fail(err, PKV_ERR_INPUT, "a %s length of %" PRIu32 " tokens is out of "
                            "range: it must be %" PRIu32 " to %" PRIu32, use_name(use), l->value,
                            least, MAX_TOKENS);
        return 0;
    case PKV_LENGTH_UNIFORM:
        return 0;
    case PKV_LENGTH_ZIPF:
        if (!(l->exponent >= 0 && l->exponent <= 100))
            return pkv_fail(err, PKV_ERR_INPUT, "a %s length with exponent %g is out of range: it "
                            "must be 0 to 100", use_name(use), l->exponent);
        return 0;
    case PKV_LENGTH_LOGNORMAL:
    case PKV_LENGTH_GAMMA:
        return check_mean(l, use, err);
    case PKV_LENGTH_PARETO_LOGNORMAL:
        return check_tail(l, use, err);
    case PKV_LENGTH_EMPIRICAL:
        if (l->trace)
            return 0;
        return pkv_fail(err, PKV_ERR_INPUT, "the empirical %s length names no trace",
                        use_name(use));
    case PKV_LENGTH_JOINT:
        if (use == PKV_LENGTH_OF_OUTPUT && prompts && prompts->table)
            return 0;
        return pkv_fail(err, PKV_ERR_INPUT, "a joint %s length is impossible: joint is for outputs, "
                        "and takes those of the rows that empirical prompts are of", use_name(use));
    case PKV_LENGTH_LAW_COUNT:
        break;
    }
    return pkv_fail(err, PKV_ERR_INPUT, "%s length law %u is unknown", use_name(use),
                    (unsigned)l->law);
}

static int add_row(struct pkv_lengths *l, enum pkv_length_use use,
                   const struct pkv_request_spec *spec, struct pkv_err *err)
{
    size_t num = l->table_num + 1;
    if (pkv_grow(&l->table, &l->table_capacity, num, sizeof *l->table, err) < 0 ||
        pkv_grow(&l->outputs, &l->outputs_capacity, num, sizeof *l->outputs, err) < 0)
        return -1;
    l->table[l->table_num] = use == PKV_LENGTH_OF_OUTPUT ? spec->num_output_tokens
                                                         : spec->num_prompt_tokens;
    l->outputs[l->table_num++] = spec->num_output_tokens;
    return 0;
}

static int read_table(struct pkv_lengths *l, enum pkv_length_use use, struct pkv_err *err)
{
    struct pkv_request_spec spec;
    int more;
    /* Lengths need no order and no particular size of hash blocks. */
    struct pkv_trace_options options = {.lenient_ids = true, .sort = true, .sessions = true};
    struct pkv_trace *trace = pkv_trace_open(l->law.trace, &options, err);
    if (!trace)
        return -1;
    struct pkv_source source = pkv_trace_source(trace);
    while ((more = source.next(source.ctx, &spec, err)) > 0) {
        more = add_row(l, use, &spec, err);
        if (more < 0)
            break;
    }
    pkv_trace_close(trace);
    return more;
}

/* The law of the numbers that are rounded. */
static struct pkv_number number_of(const struct pkv_length *law)
{
    struct pkv_number n = {.mean = law->mean, .cv = law->cv};
    if (law->law == PKV_LENGTH_LOGNORMAL || law->law == PKV_LENGTH_PARETO_LOGNORMAL)
        n.law = PKV_NUMBER_LOGNORMAL;
    if (law->law == PKV_LENGTH_GAMMA)
        n.law = PKV_NUMBER_GAMMA;
    return n;
}

struct pkv_lengths *pkv_lengths_create(const struct pkv_length *law, enum pkv_length_use use,
                                       const struct pkv_lengths *prompts, uint64_t seed,
                                       struct pkv_err *err)
{
#define PKV_STREAM(sym, word, stream) [sym] = stream,
    static const char *const streams[] = { PKV_LENGTH_USES(PKV_STREAM) };
#undef PKV_STREAM
    uint32_t least = use == PKV_LENGTH_OF_OUTPUT ? 0 : 1;
    if (check_range(law, use, least, err) < 0 || check_law(law, use, prompts, least, err) < 0)
        return NULL;
    struct pkv_lengths *l = pkv_alloc(1, sizeof *l, err);
    if (!l)
        return NULL;
    const struct pkv_number number = number_of(law);
    l->law = *law;
    l->prompts = prompts;
    if (law->law == PKV_LENGTH_ZIPF)
        pkv_zipf_init(&l->zipf, law->exponent, law->min, law->max);
    if (pkv_numbers_init(&l->numbers, &number, use_name(use), seed, streams[use], err) < 0 ||
        (law->law == PKV_LENGTH_EMPIRICAL && read_table(l, use, err) < 0)) {
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
    pkv_free(l->outputs);
    pkv_free(l);
}

static uint32_t cut(const struct pkv_length *law, uint32_t length)
{
    uint32_t max = law->max ? law->max : MAX_TOKENS;
    return length > max ? max : length < law->min ? law->min : length;
}

static uint32_t round_to_tokens(const struct pkv_length *law, double number)
{
    number += 0.5;
    if (number < 1)
        return cut(law, 1);
    return cut(law, number < MAX_TOKENS ? (uint32_t)number : MAX_TOKENS);
}

uint32_t pkv_lengths_draw(struct pkv_lengths *l)
{
    const struct pkv_length *law = &l->law;
    struct pkv_rng *rng = &l->numbers.rng;
    switch (law->law) {
    case PKV_LENGTH_CONSTANT:
        return cut(law, law->value);
    case PKV_LENGTH_UNIFORM:
        return law->min + (uint32_t)pkv_rng_below(rng, (uint64_t)law->max - law->min + 1);
    case PKV_LENGTH_LOGNORMAL:
    case PKV_LENGTH_GAMMA:
        return round_to_tokens(law, pkv_numbers_draw(&l->numbers));
    case PKV_LENGTH_ZIPF:
        return (uint32_t)pkv_zipf_draw(&l->zipf, rng);
    case PKV_LENGTH_PARETO_LOGNORMAL:
        return round_to_tokens(law, pkv_rng_unit(rng) < law->tail_share
                                        ? law->tail_min * pkv_rng_pareto(rng, law->tail_alpha)
                                        : pkv_numbers_draw(&l->numbers));
    case PKV_LENGTH_EMPIRICAL:
        l->last = (size_t)pkv_rng_below(rng, l->table_num);
        return cut(law, l->table[l->last]);
    case PKV_LENGTH_JOINT:
        return cut(law, l->prompts->outputs[l->prompts->last]);
    case PKV_LENGTH_LAW_COUNT:
        break;
    }
    PKV_UNREACHABLE("a law of the list");
}
