/*
 * synth_prefix.c - a tree of texts that prompts begin with.
 *
 * Every text has `num` children; level k has num^k texts, numbered behind those of the levels above,
 * the children of one text side by side. One draw a level picks the child, whether the prefix is used
 * or not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/synth_private.h"

/* Texts of all levels together; more than allowed = the limit and one. */
static uint64_t count_texts(uint32_t num, uint32_t depth)
{
    uint64_t sum = 0, level = 1;
    for (uint32_t i = 0; i < depth && sum <= PKV_MAX_PREFIXES; i++) {
        level *= num;
        sum += level;
    }
    return sum <= PKV_MAX_PREFIXES ? sum : PKV_MAX_PREFIXES + 1;
}

static int check(const struct pkv_synth_config *c, struct pkv_err *err)
{
    if (c->prefix_depth > PKV_MAX_PREFIX_DEPTH)
        return pkv_fail(err, PKV_ERR_INPUT, "prefixes with a depth of %u are out of range: it must "
                        "be at most %u", c->prefix_depth, PKV_MAX_PREFIX_DEPTH);
    if (!(c->prefix_zipf >= 0 && c->prefix_zipf <= 100))
        return pkv_fail(err, PKV_ERR_INPUT, "prefixes with a zipf of %g are out of range: it must "
                        "be 0 to 100", c->prefix_zipf);
    if (count_texts(c->prefix_num, c->prefix_depth ? c->prefix_depth : 1) > PKV_MAX_PREFIXES)
        return pkv_fail(err, PKV_ERR_INPUT, "%u prefixes with a depth of %u are more than %u texts",
                        c->prefix_num, c->prefix_depth, PKV_MAX_PREFIXES);
    return 0;
}

int pkv_prefixes_init(struct pkv_prefixes *p, const struct pkv_synth_config *c, struct pkv_err *err)
{
    *p = (struct pkv_prefixes){.num = c->prefix_num, .share = c->prefix_share,
                               .depth = c->prefix_depth ? c->prefix_depth : 1};
    pkv_rng_init(&p->share_rng, c->seed, "prefix share");
    pkv_rng_init(&p->pick_rng, c->seed, "prefix pick");
    if (p->num == 0)
        return 0;
    if (check(c, err) < 0)
        return -1;
    uint64_t num = count_texts(p->num, p->depth);
    pkv_zipf_init(&p->zipf, c->prefix_zipf, 1, p->num);
    struct pkv_lengths *lengths = pkv_lengths_create(&c->prefix_tokens, PKV_LENGTH_OF_PREFIX, NULL,
                                                     c->seed, err);
    if (!lengths)
        return -1;
    p->tokens = pkv_alloc((size_t)num, sizeof *p->tokens, err);
    for (uint64_t i = 0; p->tokens && i < num; i++)
        p->tokens[i] = pkv_lengths_draw(lengths);
    pkv_lengths_destroy(lengths);
    return p->tokens ? 0 : -1;
}

void pkv_prefixes_finish(struct pkv_prefixes *p)
{
    pkv_free(p->tokens);
}

void pkv_prefix_name(uint64_t number, char out[PKV_PREFIX_NAME_SIZE])
{
    snprintf(out, PKV_PREFIX_NAME_SIZE, "prefix %" PRIu64, number);
}

uint64_t pkv_prefix_origin(uint64_t number)
{
    char name[PKV_PREFIX_NAME_SIZE];
    pkv_prefix_name(number, name);
    return pkv_origin(PKV_ORIGIN_NAME, pkv_hash_name(name, strlen(name)));
}

static uint64_t pick(struct pkv_prefixes *p)
{
    return p->zipf.exponent > 0 ? pkv_zipf_draw(&p->zipf, &p->pick_rng) - 1
                                : pkv_rng_below(&p->pick_rng, p->num);
}

void pkv_prefixes_draw(struct pkv_prefixes *p, struct pkv_prefix *out)
{
    uint64_t place = 0, level = 1, above = 0;
    *out = (struct pkv_prefix){0};
    if (p->num == 0)
        return;
    for (uint32_t i = 0; i < p->depth; i++) {
        place = place * p->num + pick(p);
        out->text[i] = above + place;
        out->tokens[i] = p->tokens[above + place];
        out->sum_tokens += out->tokens[i];
        level *= p->num;
        above += level;
    }
    if (pkv_rng_unit(&p->share_rng) < p->share)
        out->depth = p->depth;
    else
        out->sum_tokens = 0;
}
