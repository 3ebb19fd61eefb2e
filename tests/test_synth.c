/*
 * test_synth.c - synthetic traffic: the laws, exact times, and that no law shifts another.
 *
 * First values of each law were computed by another program from the description in rng.c and
 * synth.c; means and shares are checked within several standard deviations.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "files.h"
#include "pagedkv/trace.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define S INT64_C(1000000000)
#define MAX_DRAWN 20000

static const int64_t levels[] = {-1, 0, 7};
static const double weights[] = {1, 0, 3};

static struct pkv_synth_config base_config(void)
{
    return (struct pkv_synth_config){
        .num_requests = 2000, .seed = 1,
        .arrival = PKV_ARRIVAL_POISSON, .rate_per_s = 4,
        .prompt = {.law = PKV_LENGTH_LOGNORMAL, .mean = 161, .cv = 1.2},
        .output = {.law = PKV_LENGTH_UNIFORM, .min = 10, .max = 20},
        .prefix_num = 3, .prefix_share = 0.5,
        .prefix_tokens = {.law = PKV_LENGTH_UNIFORM, .min = 1, .max = 4},
        .priorities = levels, .priority_weights = weights, .num_priorities = 3,
        .abort_share = 0.25, .abort_min_ns = S, .abort_max_ns = 3 * S,
    };
}

struct drawn {
    struct pkv_request_spec spec;
    struct pkv_span spans[2];
};
static struct drawn drawn[MAX_DRAWN], other[MAX_DRAWN];

static size_t draw(const struct pkv_synth_config *config, struct drawn *out)
{
    struct pkv_err err = {0};
    struct pkv_synth *synth = pkv_synth_create(config, &err);
    ck_assert_msg(synth != NULL, "%s", err.text);
    struct pkv_source source = pkv_synth_source(synth);
    uint64_t allocations = pkv_alloc_count();
    size_t num = 0;
    struct pkv_request_spec spec;
    memset(out, 0, sizeof *out * MAX_DRAWN);
    while (source.next(source.ctx, &spec, &err) > 0) {
        uint64_t sum = 0;
        ck_assert_uint_lt(num, MAX_DRAWN);
        ck_assert_uint_eq(spec.row, num);
        ck_assert_uint_le(spec.content.num_prompt_spans, 2);
        for (size_t i = 0; i < spec.content.num_prompt_spans; i++) {
            ck_assert_uint_gt(spec.content.prompt[i].count, 0);
            sum += spec.content.prompt[i].count;
            out[num].spans[i] = spec.content.prompt[i];
        }
        ck_assert_uint_eq(sum, spec.num_prompt_tokens);
        ck_assert_uint_eq(spec.max_tokens, spec.num_output_tokens ? spec.num_output_tokens : 1);
        out[num++].spec = spec;
    }
    ck_assert_int_eq(err.code, PKV_ERR_NONE);
    ck_assert_uint_eq(pkv_alloc_count(), allocations);   /* memory does not follow their number */
    pkv_synth_destroy(synth);
    return num;
}

START_TEST(constant_rate_does_not_drift)
{
    struct pkv_synth_config config = base_config();
    struct pkv_request_spec spec;
    config.arrival = PKV_ARRIVAL_CONSTANT;
    config.rate_per_s = 3;
    config.num_requests = 300001;
    struct pkv_synth *synth = pkv_synth_create(&config, NULL);
    struct pkv_source source = pkv_synth_source(synth);
    for (int64_t i = 0; source.next(source.ctx, &spec, NULL) > 0; i++)
        if (spec.arrival_ns != i * S / 3)
            ck_abort_msg("request %lld at %lld ns", (long long)i, (long long)spec.arrival_ns);
    ck_assert_int_eq(spec.arrival_ns, 100000 * S);
    pkv_synth_destroy(synth);
}
END_TEST

START_TEST(a_tenth_is_a_tenth)
{
    struct pkv_synth_config config = base_config();
    config.arrival = PKV_ARRIVAL_CONSTANT;
    config.rate_per_s = 0.1;
    config.num_requests = 100;
    draw(&config, drawn);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(drawn[i].spec.arrival_ns, i * 10 * S);
}
END_TEST

START_TEST(all_at_once)
{
    struct pkv_synth_config config = base_config();
    config.arrival = PKV_ARRIVAL_AT_ONCE;
    config.rate_per_s = 0;
    size_t num = draw(&config, drawn);
    ck_assert_uint_eq(num, 2000);
    for (size_t i = 0; i < num; i++)
        ck_assert_int_eq(drawn[i].spec.arrival_ns, 0);
}
END_TEST

START_TEST(poisson)
{
    static const int64_t first[] = {
        INT64_C(775612598), INT64_C(852045725), INT64_C(1488278192), INT64_C(1646285751),
        INT64_C(2156393489),
    };
    struct pkv_synth_config config = base_config();
    config.num_requests = MAX_DRAWN;
    draw(&config, drawn);
    double squares = 0;
    for (int i = 0; i < NUM(first); i++)
        ck_assert_int_eq(drawn[i].spec.arrival_ns, first[i]);
    for (int i = 1; i < MAX_DRAWN; i++) {
        double gap = (double)(drawn[i].spec.arrival_ns - drawn[i - 1].spec.arrival_ns) / 1e9;
        ck_assert_double_ge(gap, 0);
        squares += gap * gap;
    }
    /* mean 1/4; second moment 2/16 */
    ck_assert_double_eq_tol((double)drawn[MAX_DRAWN - 1].spec.arrival_ns / 1e9 / MAX_DRAWN, 0.25,
                            0.01);
    ck_assert_double_eq_tol(squares / MAX_DRAWN, 0.125, 0.01);
}
END_TEST

START_TEST(lognormal)
{
    static const uint32_t first[] = {61, 273, 293, 62, 373, 67, 141, 6};
    struct pkv_synth_config config = base_config();
    config.num_requests = MAX_DRAWN;
    config.prefix_num = 0;
    draw(&config, drawn);
    double sum = 0, squares = 0;
    for (int i = 0; i < NUM(first); i++)
        ck_assert_uint_eq(drawn[i].spec.num_prompt_tokens, first[i]);
    for (int i = 0; i < MAX_DRAWN; i++) {
        double length = drawn[i].spec.num_prompt_tokens;
        sum += length;
        squares += length * length;
    }
    double mean = sum / MAX_DRAWN;
    ck_assert_double_eq_tol(mean, 161, 5);
    ck_assert_double_eq_tol(sqrt(squares / MAX_DRAWN - mean * mean) / mean, 1.2, 0.1);
    config.prompt.min = 100;
    config.prompt.max = 200;
    draw(&config, other);
    for (int i = 0; i < MAX_DRAWN; i++) {
        uint32_t uncut = drawn[i].spec.num_prompt_tokens;
        ck_assert_uint_eq(other[i].spec.num_prompt_tokens,
                          uncut < 100 ? 100 : uncut > 200 ? 200 : uncut);
    }
    config.prompt = (struct pkv_length){.law = PKV_LENGTH_LOGNORMAL, .mean = 161, .cv = 0};
    draw(&config, drawn);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(drawn[i].spec.num_prompt_tokens, 161);
}
END_TEST

START_TEST(uniform)
{
    static const uint32_t first[] = {16, 17, 14, 11, 12, 16, 16, 19};
    struct pkv_synth_config config = base_config();
    unsigned counts[21] = {0};
    size_t num = draw(&config, drawn);
    for (int i = 0; i < NUM(first); i++)
        ck_assert_uint_eq(drawn[i].spec.num_output_tokens, first[i]);
    for (size_t i = 0; i < num; i++) {
        ck_assert_uint_ge(drawn[i].spec.num_output_tokens, 10);
        ck_assert_uint_le(drawn[i].spec.num_output_tokens, 20);
        counts[drawn[i].spec.num_output_tokens]++;
    }
    for (int i = 10; i <= 20; i++)                /* expected 182, deviation 13 */
        ck_assert(counts[i] > 120 && counts[i] < 250);
}
END_TEST

START_TEST(empirical)
{
    const char *folder = make_folder();
    write_text(folder, "trace",     /* out of order: for lengths it does not matter */
               "{\"timestamp\":9,\"input_length\":11,\"output_length\":0}\n"
               "{\"timestamp\":0,\"input_length\":2000,\"output_length\":7}\n"
               "{\"timestamp\":0,\"input_length\":11,\"output_length\":7}\n");
    char *path = path_in(folder, "trace");
    struct pkv_synth_config config = base_config();
    config.prompt = (struct pkv_length){.law = PKV_LENGTH_EMPIRICAL, .trace = path, .max = 1000};
    config.output = (struct pkv_length){.law = PKV_LENGTH_EMPIRICAL, .trace = path};
    config.prefix_num = 0;
    size_t num = draw(&config, drawn), num_long = 0, num_zero = 0;
    for (size_t i = 0; i < num; i++) {
        uint32_t prompt = drawn[i].spec.num_prompt_tokens;
        ck_assert(prompt == 11 || prompt == 1000);
        ck_assert(drawn[i].spec.num_output_tokens == 0 || drawn[i].spec.num_output_tokens == 7);
        num_long += prompt == 1000;
        num_zero += drawn[i].spec.num_output_tokens == 0;
    }
    ck_assert(num_long > 550 && num_long < 780);  /* a third of 2,000, deviation 21 */
    ck_assert(num_zero > 550 && num_zero < 780);
    write_text(folder, "trace", "{\"timestamp\":0,\"input_length\":-1,\"output_length\":7}\n");
    struct pkv_err err = {0};
    ck_assert_ptr_null(pkv_synth_create(&config, &err));
    ck_assert_str_eq(err.path, path);
    ck_assert_uint_eq(err.line, 1);
    free(path);
    remove_folder(folder);
}
END_TEST

START_TEST(shared_prefixes)
{
    struct pkv_synth_config config = base_config();
    size_t num = draw(&config, drawn), shared = 0;
    uint32_t tokens[3] = {0};
    for (size_t i = 0; i < num; i++) {
        const struct drawn *d = &drawn[i];
        const struct pkv_span *own = &d->spans[d->spec.content.num_prompt_spans - 1];
        ck_assert_uint_eq(own->origin, pkv_origin(PKV_ORIGIN_OWN, i));
        ck_assert_uint_eq(own->first, 0);
        if (d->spec.content.num_prompt_spans == 1)
            continue;
        shared++;
        uint64_t k = 0;
        for (; k < 3; k++) {   /* a prefix is the text of the name that `gen` writes */
            const char *const names[] = {"prefix 0", "prefix 1", "prefix 2"};
            uint64_t name = pkv_hash_name(names[k], strlen(names[k]));
            if (d->spans[0].origin == pkv_origin(PKV_ORIGIN_NAME, name))
                break;
        }
        ck_assert_uint_lt(k, 3);
        ck_assert(tokens[k] == 0 || tokens[k] == d->spans[0].count);
        tokens[k] = d->spans[0].count;
    }
    ck_assert(shared > 880 && shared < 1120);     /* half of 2,000, deviation 22 */
    ck_assert(tokens[0] && tokens[1] && tokens[2]);
    config.prefix_tokens = (struct pkv_length){.law = PKV_LENGTH_CONSTANT, .value = 100};
    config.prompt = (struct pkv_length){.law = PKV_LENGTH_CONSTANT, .value = 100};
    config.prefix_share = 1;
    draw(&config, drawn);
    ck_assert_uint_eq(drawn[0].spec.num_prompt_tokens, 101);   /* prefix + 1 token of its own */
    config.prompt.value = 150;
    draw(&config, drawn);
    ck_assert_uint_eq(drawn[0].spec.num_prompt_tokens, 150);
    ck_assert_uint_eq(drawn[0].spans[1].count, 50);
}
END_TEST

START_TEST(priorities_and_aborts)
{
    struct pkv_synth_config config = base_config();
    size_t num = draw(&config, drawn), urgent = 0, aborted = 0;
    for (size_t i = 0; i < num; i++) {
        const struct pkv_request_spec *spec = &drawn[i].spec;
        ck_assert(spec->priority == -1 || spec->priority == 7);   /* weight 0 is never drawn */
        urgent += spec->priority == -1;
        if (spec->abort_ns == PKV_NO_TIME)
            continue;
        aborted++;
        ck_assert_int_ge(spec->abort_ns - spec->arrival_ns, S);
        ck_assert_int_le(spec->abort_ns - spec->arrival_ns, 3 * S);
    }
    ck_assert(urgent > 400 && urgent < 600);      /* a quarter of 2,000, deviation 19 */
    ck_assert(aborted > 400 && aborted < 600);
}
END_TEST

/* Change one law; everything that it does not govern stays, bit for bit. */
enum part { ARRIVAL, PROMPT, OUTPUT, PREFIX, PRIORITY, ABORT };

static struct pkv_length uniform_to(uint32_t min, uint32_t max)
{
    return (struct pkv_length){.law = PKV_LENGTH_UNIFORM, .min = min, .max = max};
}

static void change(struct pkv_synth_config *c, enum part part)
{
    static const double swapped[] = {3, 1, 0};
    switch (part) {
    case ARRIVAL:  c->arrival = PKV_ARRIVAL_CONSTANT; c->rate_per_s = 9; break;
    case PROMPT:   c->prompt = uniform_to(9, 99); break;
    case OUTPUT:   c->output = uniform_to(10, 50); break;
    case PREFIX:   c->prefix_share = 0.9; c->prefix_num = 5; break;
    case PRIORITY: c->priority_weights = swapped; break;
    case ABORT:    c->abort_share = 0.5; c->abort_max_ns = 9 * S; break;
    }
}

START_TEST(no_law_shifts_another)
{
    enum part part = (enum part)_i;
    struct pkv_synth_config config = base_config();
    config.prompt.min = 9;                        /* longer than every prefix */
    size_t num = draw(&config, drawn), differ = 0;
    change(&config, part);
    ck_assert_uint_eq(draw(&config, other), num);
    for (size_t i = 0; i < num; i++) {
        const struct pkv_request_spec *a = &drawn[i].spec, *b = &other[i].spec;
        bool same[] = {
            [ARRIVAL] = a->arrival_ns == b->arrival_ns,
            [PROMPT] = a->num_prompt_tokens == b->num_prompt_tokens,
            [OUTPUT] = a->num_output_tokens == b->num_output_tokens,
            [PREFIX] = a->content.num_prompt_spans == b->content.num_prompt_spans &&
                       (a->content.num_prompt_spans == 1 ||
                        memcmp(drawn[i].spans, other[i].spans, sizeof drawn[i].spans[0]) == 0),
            [PRIORITY] = a->priority == b->priority,
            [ABORT] = a->abort_ns == b->abort_ns ||
                      (a->abort_ns != PKV_NO_TIME && b->abort_ns != PKV_NO_TIME &&
                       a->abort_ns - a->arrival_ns == b->abort_ns - b->arrival_ns),
        };
        for (int k = 0; k < NUM(same); k++)
            ck_assert_msg(same[k] || k == (int)part, "part %d of request %zu has changed", k, i);
        differ += !same[part];
    }
    ck_assert_uint_gt(differ, num / 10);          /* and the change was one */
}
END_TEST

START_TEST(same_seed_same_bytes)
{
    struct pkv_synth_config config = base_config();
    size_t num = draw(&config, drawn);
    draw(&config, other);
    for (size_t i = 0; i < num; i++)              /* borrowed pointers are not content */
        drawn[i].spec.content.prompt = other[i].spec.content.prompt = NULL;
    ck_assert_mem_eq(drawn, other, sizeof drawn);
    config.seed = 2;
    draw(&config, other);
    ck_assert_int_ne(drawn[0].spec.arrival_ns, other[0].spec.arrival_ns);
}
END_TEST

static void no_requests(struct pkv_synth_config *c) { c->num_requests = 0; }
static void no_rate(struct pkv_synth_config *c) { c->rate_per_s = 0; }
static void negative_rate(struct pkv_synth_config *c) { c->rate_per_s = -1; }
static void nan_rate(struct pkv_synth_config *c) { c->rate_per_s = NAN; }
static void share_over_1(struct pkv_synth_config *c) { c->prefix_share = 1.5; }
static void negative_share(struct pkv_synth_config *c) { c->abort_share = -0.5; }
static void aborts_backwards(struct pkv_synth_config *c) { c->abort_max_ns = 5; }
static void weight_sum_0(struct pkv_synth_config *c)
{
    c->priority_weights = weights + 1;
    c->num_priorities = 1;
}
static void prompt_0(struct pkv_synth_config *c) { c->prompt.law = PKV_LENGTH_CONSTANT; }
static void mean_0(struct pkv_synth_config *c) { c->prompt.mean = 0; }
static void negative_cv(struct pkv_synth_config *c) { c->prompt.cv = -1; }
static void max_below_min(struct pkv_synth_config *c) { c->output.min = 21; }
static void uniform_from_0(struct pkv_synth_config *c) { c->prompt = uniform_to(0, 5); }
static void no_trace(struct pkv_synth_config *c) { c->prompt.law = PKV_LENGTH_EMPIRICAL; }
static void too_long(struct pkv_synth_config *c) { c->output.max = UINT32_C(2000000000); }

static const struct {
    void (*spoil)(struct pkv_synth_config *c);
    const char *words;
} wrong[] = {
    {no_requests, "the number of requests is 0"},
    {no_rate, "a rate of 0 requests a second is out of range"},
    {negative_rate, "a rate of -1 requests"},
    {nan_rate, "out of range"},
    {share_over_1, "a share of 1.5 is out of range"},
    {negative_share, "a share of -0.5 is out of range"},
    {aborts_backwards, "aborts between 1000000000 and 5 ns after arrival are impossible"},
    {weight_sum_0, "the weights of the priorities sum up to 0"},
    {prompt_0, "a prompt length of 0 tokens is out of range"},
    {mean_0, "a prompt length with mean 0"},
    {negative_cv, "cv -1"},
    {max_below_min, "output lengths from 21 to 20 are impossible"},
    {uniform_from_0, "prompt lengths from 0 to 5 must be at least 1"},
    {no_trace, "the empirical prompt length names no trace"},
    {too_long, "output lengths may be at most 1073741823 tokens, not 2000000000"},
};

START_TEST(wrong_config)
{
    struct pkv_synth_config config = base_config();
    struct pkv_err err = {0};
    wrong[_i].spoil(&config);
    ck_assert_ptr_null(pkv_synth_create(&config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_msg(strstr(err.text, wrong[_i].words) != NULL, "%s", err.text);
}
END_TEST

START_TEST(arrivals_beyond_time)
{
    struct pkv_synth_config config = base_config();
    struct pkv_err err = {0};
    struct pkv_request_spec spec;
    config.rate_per_s = 1e-9;
    struct pkv_synth *synth = pkv_synth_create(&config, &err);
    struct pkv_source source = pkv_synth_source(synth);
    int more;
    while ((more = source.next(source.ctx, &spec, &err)) > 0)
        ck_assert_int_ge(spec.arrival_ns, 0);
    ck_assert_int_eq(more, -1);
    ck_assert_ptr_nonnull(strstr(err.text, "beyond 9223372036854775807 ns"));
    pkv_synth_destroy(synth);
}
END_TEST

/* Everything at once: a tree of prefixes, tenants, conversations. */
static struct pkv_synth_config full_config(void)
{
    static const struct pkv_synth_tenant tenants[] = {
        {.name = "a", .weight = 3, .has_priority = true, .priority = 5}, {.name = "b", .weight = 1},
        {.name = "never", .weight = 0},
    };
    struct pkv_synth_config config = base_config();
    config.prefix_depth = 2;
    config.tenants = tenants;
    config.num_tenants = 3;
    config.session_share = 1;
    config.turns = uniform_to(1, 4);
    config.turn_tokens = uniform_to(1, 9);
    config.max_context_tokens = 400;
    return config;
}

/* Tenants by weight, each with its priority; a conversation keeps them. */
START_TEST(conversations)
{
    struct pkv_synth_config config = full_config();
    size_t num_a = 0, num_talks = 0;
    struct pkv_synth *synth = pkv_synth_create(&config, NULL);
    struct pkv_source source = pkv_synth_source(synth);
    struct pkv_request_spec spec, former = {.is_last = true};
    ck_assert(source.has_followers);
    while (source.next(source.ctx, &spec, NULL) > 0) {
        bool is_a = strcmp(spec.tenant, "a") == 0;
        ck_assert(is_a ? spec.priority == 5 : spec.priority == -1 || spec.priority == 7);
        ck_assert(is_a || strcmp(spec.tenant, "b") == 0);
        ck_assert(spec.follows == (former.session && !former.is_last));
        if (spec.follows) {
            uint32_t before = former.num_prompt_tokens + former.num_output_tokens;
            ck_assert_uint_lt(before, 400);
            ck_assert_uint_eq(spec.content.prompt[0].origin, pkv_origin(PKV_ORIGIN_PREV, 0));
            ck_assert_uint_eq(spec.content.prompt[0].count, before);
            ck_assert_uint_le(spec.num_prompt_tokens - before, 9);
            ck_assert_uint_eq(spec.turn, former.turn + 1);
            ck_assert_str_eq(spec.tenant, former.tenant);
            ck_assert_int_eq(spec.priority, former.priority);
            ck_assert_int_eq(spec.arrival_ns, former.arrival_ns);
        } else {
            num_talks++;
            num_a += is_a;
            ck_assert_uint_le(spec.turn, 1);
        }
        ck_assert(!spec.session || spec.is_last || spec.turn < 4);
        former = spec;
    }
    ck_assert_uint_eq(former.row, config.num_requests - 1);
    ck_assert(!former.session || former.is_last);
    /* Three of four; the deviation is below 16 where there are fewer than 1,400. */
    ck_assert_uint_lt(num_talks, 1400);
    ck_assert_double_eq_tol((double)num_a, 0.75 * (double)num_talks, 80);
    pkv_synth_destroy(synth);
}
END_TEST

static const char *const rows =
    "{\"timestamp\":0,\"input_length\":1500,\"output_length\":1,\"hash_ids\":[1,2,3],\"tenant\":\"a\"}\n"
    "{\"timestamp\":4,\"input_length\":1100,\"output_length\":1,\"hash_ids\":[1,2,4],\"tenant\":\"b\"}\n"
    "{\"timestamp\":9,\"input_length\":900,\"output_length\":2,\"hash_ids\":[1,5]}\n";

static int remake(struct pkv_err *err)
{
    const struct pkv_trace_options options = {.keep_texts = true};
    const struct pkv_remake_config config = {.rate = 1, .prefix_length = 1, .roots = 2,
                                             .num_requests = 7};
    struct pkv_trace *trace = pkv_trace_open_memory("rows", rows, strlen(rows), &options, err);
    struct pkv_remake *made = trace ? pkv_remake_create(trace, &config, err) : NULL;
    struct pkv_request_spec spec;
    int more = made ? 1 : -1;
    while (more > 0) {
        struct pkv_source source = pkv_remake_source(made);
        more = source.next(source.ctx, &spec, err);
    }
    pkv_remake_destroy(made);
    pkv_trace_close(trace);
    return more;
}

START_TEST(memory_runs_out_for_a_trace_made_after_another)
{
    int result = -1;
    for (uint64_t n = 1; result < 0; n++) {
        struct pkv_err err = {0};
        ck_assert_uint_lt(n, 200);
        pkv_alloc_fail_at(n, 1);
        result = remake(&err);
        pkv_alloc_fail_at(0, 0);
        ck_assert_int_eq(err.code, result == 0 ? PKV_ERR_NONE : PKV_ERR_MEMORY);
    }
}
END_TEST

START_TEST(memory_runs_out)
{
    struct pkv_synth_config config = full_config();
    struct pkv_synth *synth = NULL;
    for (uint64_t n = 1; !synth; n++) {
        struct pkv_err err = {0};
        ck_assert_uint_lt(n, 100);
        pkv_alloc_fail_at(n, 1);
        synth = pkv_synth_create(&config, &err);
        pkv_alloc_fail_at(0, 0);
        ck_assert_int_eq(err.code, synth ? PKV_ERR_NONE : PKV_ERR_MEMORY);
    }
    pkv_synth_destroy(synth);
}
END_TEST

START_TEST(laws_have_names)
{
    ck_assert_str_eq(pkv_arrival_law_name(PKV_ARRIVAL_AT_ONCE), "at_once");
    ck_assert_str_eq(pkv_length_law_name(PKV_LENGTH_LOGNORMAL), "lognormal");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("synth");
    TCase *c = tcase_create("synth");
    tcase_add_test(c, constant_rate_does_not_drift);
    tcase_add_test(c, a_tenth_is_a_tenth);
    tcase_add_test(c, all_at_once);
    tcase_add_test(c, poisson);
    tcase_add_test(c, lognormal);
    tcase_add_test(c, uniform);
    tcase_add_test(c, empirical);
    tcase_add_test(c, shared_prefixes);
    tcase_add_test(c, priorities_and_aborts);
    tcase_add_loop_test(c, no_law_shifts_another, ARRIVAL, ABORT + 1);
    tcase_add_test(c, same_seed_same_bytes);
    tcase_add_loop_test(c, wrong_config, 0, NUM(wrong));
    tcase_add_test(c, arrivals_beyond_time);
    tcase_add_test(c, conversations);
    tcase_add_test(c, memory_runs_out);
    tcase_add_test(c, memory_runs_out_for_a_trace_made_after_another);
    tcase_add_test(c, laws_have_names);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
