/*
 * groups_fixture.c - see groups_fixture.h.
 */
#include "groups_fixture.h"

#include <stdio.h>
#include <string.h>

#include <check.h>

struct pkv_cache *make_groups(uint32_t num_blocks, bool prefix_cache,
                              const struct pkv_group_config *groups, uint32_t num_groups)
{
    struct pkv_cache_config config =
        cache_config(num_blocks, 1, prefix_cache, PKV_END_HEAD, PKV_PUBLISH_ALLOC);
    struct pkv_err err = { 0 };
    struct pkv_cache *cache;

    memcpy(config.groups, groups, num_groups * sizeof *groups);
    config.num_groups = num_groups;
    cache = pkv_cache_create(&config, &err);
    ck_assert_msg(cache != NULL, "%s", err.text);
    return cache;
}

struct pkv_seq begin_text(struct pkv_cache *cache, uint32_t num_tokens)
{
    struct pkv_span text[] = { { 5, 0, num_tokens } };

    return begin(cache, text, 1, 0);
}

struct pkv_hit hit_of(struct pkv_cache *cache, uint32_t num_tokens)
{
    struct pkv_seq seq = begin_text(cache, num_tokens);
    struct pkv_hit hit;

    ck_assert_int_eq(pkv_cache_prepare(cache, &seq, num_tokens, NULL), 0);
    pkv_cache_find_prefix(cache, &seq, &hit);
    pkv_seq_finish(cache, &seq);
    return hit;
}

void lose(struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group, uint32_t index)
{
    cache_forget_keys(cache, seq->tables[group].ids[index]);
}

void expect_sound_alone(const struct pkv_cache *cache, const struct pkv_seq *seq)
{
    expect_sound(cache, (const struct pkv_seq *[]){ seq }, 1);
}

void expect_free(const struct pkv_cache *cache, const char *ids)
{
    pkv_block_id list[64];
    char text[256] = "";
    uint32_t num = pkv_pool_list_free(cache->pool, list);

    for (uint32_t i = 0; i < num; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u", i > 0 ? " " : "",
                 list[i]);
    ck_assert_str_eq(text, ids);
}
