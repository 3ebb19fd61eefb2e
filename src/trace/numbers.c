/*
 * numbers.c - see numbers.h.
 *
 * Every law but constant and uniform is given by its mean m and its coefficient of variation c.
 * lognormal: the logarithm has variance s2 = log(1 + c^2) and mean log m - s2 / 2. gamma: shape
 * 1 / c^2 and scale m c^2. Weibull: the shape that has c, and the scale that then has m.
 */
#include "trace/numbers.h"

#include <math.h>

#include "base/draws.h"

const char *pkv_number_law_name(enum pkv_number_law law)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { PKV_NUMBER_LAWS(PKV_NAME) };
#undef PKV_NAME
    PKV_ASSERT((unsigned)law < PKV_NUMBER_LAW_COUNT);
    return names[law];
}

static int fail_range(const char *what, const char *which, double value, double min, double max,
                      struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_INPUT, "%s: %s %g is out of range: it must be %g to %g", what,
                    which, value, min, max);
}

/* The coefficients of variation that a law can have. */
static int check_cv(const struct pkv_number *n, const char *what, struct pkv_err *err)
{
    bool is_lognormal = n->law == PKV_NUMBER_LOGNORMAL;
    double min = is_lognormal ? 0 : 0.01, max = is_lognormal ? 1000 : 100;
    return n->cv >= min && n->cv <= max ? 0 : fail_range(what, "cv", n->cv, min, max, err);
}

static int check(const struct pkv_number *n, const char *what, struct pkv_err *err)
{
    const double most = 1e15;
    if ((unsigned)n->law >= PKV_NUMBER_LAW_COUNT)
        return pkv_fail(err, PKV_ERR_INPUT, "%s: law %u is unknown", what, (unsigned)n->law);
    if (!(n->min >= 0 && n->min <= most) || !(n->max >= 0 && n->max <= most))
        return fail_range(what, n->min >= 0 && n->min <= most ? "max" : "min",
                          n->min >= 0 && n->min <= most ? n->max : n->min, 0, most, err);
    if ((n->max > 0 || n->law == PKV_NUMBER_UNIFORM) && n->max < n->min)
        return pkv_fail(err, PKV_ERR_INPUT, "%s: max %g is below min %g", what, n->max, n->min);
    switch (n->law) {
    case PKV_NUMBER_NONE:
    case PKV_NUMBER_UNIFORM:
        return 0;
    case PKV_NUMBER_CONSTANT:
        return n->value >= 0 && n->value <= most ? 0
             : fail_range(what, "value", n->value, 0, most, err);
    case PKV_NUMBER_EXPONENTIAL: case PKV_NUMBER_LOGNORMAL: case PKV_NUMBER_GAMMA:
    case PKV_NUMBER_WEIBULL: case PKV_NUMBER_LAW_COUNT:
        break;
    }
    if (!(n->mean >= 1e-9 && n->mean <= most))
        return fail_range(what, "mean", n->mean, 1e-9, most, err);
    return n->law == PKV_NUMBER_EXPONENTIAL ? 0 : check_cv(n, what, err);
}

int pkv_numbers_init(struct pkv_numbers *s, const struct pkv_number *law, const char *what,
                     uint64_t seed, const char *stream, struct pkv_err *err)
{
    double variance = law->cv * law->cv;
    if (check(law, what, err) < 0)
        return -1;
    *s = (struct pkv_numbers){.law = *law};
    pkv_rng_init(&s->rng, seed, stream);
    if (law->law == PKV_NUMBER_LOGNORMAL) {
        variance = pkv_log(1 + variance);
        s->shape = sqrt(variance);
        s->scale = pkv_log(law->mean) - variance / 2;
    } else if (law->law == PKV_NUMBER_GAMMA) {
        s->shape = 1 / variance;
        s->scale = law->mean * variance;
    } else if (law->law == PKV_NUMBER_WEIBULL) {
        s->shape = pkv_weibull_shape(law->cv);
        s->scale = law->mean * pkv_exp(-pkv_log_gamma(1 + 1 / s->shape));
    }
    return 0;
}

static double draw(struct pkv_numbers *s)
{
    const struct pkv_number *law = &s->law;
    switch (law->law) {
    case PKV_NUMBER_NONE:
        return 0;
    case PKV_NUMBER_CONSTANT:
        return law->value;
    case PKV_NUMBER_UNIFORM:
        return law->min + pkv_rng_unit(&s->rng) * (law->max - law->min);
    case PKV_NUMBER_EXPONENTIAL:
        return law->mean * pkv_rng_exponential(&s->rng);
    case PKV_NUMBER_LOGNORMAL:
        return pkv_exp(s->scale + s->shape * pkv_rng_normal(&s->rng));
    case PKV_NUMBER_GAMMA:
        return s->scale * pkv_rng_gamma(&s->rng, s->shape);
    case PKV_NUMBER_WEIBULL:
        return s->scale * pkv_rng_weibull(&s->rng, s->shape);
    case PKV_NUMBER_LAW_COUNT:
        break;
    }
    PKV_UNREACHABLE("a law of the list");
}

double pkv_numbers_draw(struct pkv_numbers *s)
{
    double number = draw(s);
    if (s->law.law == PKV_NUMBER_NONE || s->law.law == PKV_NUMBER_CONSTANT)
        return number;
    if (s->law.max > 0 && number > s->law.max)
        return s->law.max;
    return number < s->law.min ? s->law.min : number;
}
