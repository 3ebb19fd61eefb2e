/*
 * test_sizing.c - sizes of models through the library: figures worked out by hand, and for every
 * known model what must hold on any ranks with any memory.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "files.h"
#include "pagedkv/report.h"
#include "pagedkv/scenario.h"
#include "pagedkv/sizing.h"

#define GIB (UINT64_C(1) << 30)

static struct pkv_kv_model known(const char *name)
{
    struct pkv_kv_model model;

    ck_assert_msg(pkv_kv_model_find(name, &model), "%s", name);
    return model;
}

static struct pkv_kv_config config_of(const struct pkv_kv_model *model)
{
    return (struct pkv_kv_config){ .dtype = model->dtype, .fp32_state = model->fp32_state,
                                   .block_size = 16, .tp = 1, .dcp = 1, .num_stages = 1,
                                   .stage_layers = { model->num_layers },
                                   .state_mode = PKV_KV_STATE_ALIGN, .in_flight_tokens = 8192 };
}

static struct pkv_kv_plan plan_of(const struct pkv_kv_model *model)
{
    struct pkv_kv_config config = config_of(model);
    struct pkv_kv_plan plan;
    struct pkv_err err;

    ck_assert_msg(pkv_kv_plan_make(model, &config, &plan, &err) == 0, "%s", err.text);
    return plan;
}

START_TEST(worked_example)
{
    static struct pkv_kv_fit fit;
    struct pkv_kv_model model = known("llama-3.1-70b");
    struct pkv_kv_plan plan = plan_of(&model);
    uint64_t pool = 40 * GIB;

    ck_assert_uint_eq(plan.position_bytes, 327680);
    ck_assert_uint_eq(plan.stages[0].block_bytes, 5242880);
    ck_assert_int_eq(pkv_kv_fit_make(&plan, &pool, 1, &fit, NULL), 0);
    ck_assert_uint_eq(fit.num_blocks, 8192);
    ck_assert_uint_eq(fit.ranks[0].stranded_bytes, 0);
    ck_assert_uint_eq(pkv_kv_payload_requests(&model, &plan, &fit, 4096), 32);
    ck_assert_uint_eq((fit.num_blocks - 1) / pkv_kv_request_blocks(&plan, 4096), 31);
    ck_assert_uint_eq((fit.num_blocks - 1) / pkv_kv_request_blocks(&plan, 5120), 25);
    ck_assert_uint_eq(pkv_kv_sequence_bytes(&model, &plan, PKV_KV_ALL_STAGES, 32768), 10 * GIB);
    ck_assert_uint_eq(pkv_kv_tokens_old_rule(&plan, 8192), 131072);
    ck_assert_uint_eq(pkv_kv_longest_request(&plan, 8191, 1 << 20), 131056);
    ck_assert_uint_eq(pkv_kv_longest_request(&plan, 0, 1 << 20), 0);
}
END_TEST

START_TEST(splits)
{
    static const uint32_t vllm[][4] = { { 15, 15, 16, 15 }, { 23, 24, 24, 23 }, { 31, 32, 32, 31 } };
    static const uint32_t layers[] = { 61, 94, 126 };
    uint32_t out[PKV_KV_MAX_STAGES];

    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(pkv_kv_split(PKV_KV_SPLIT_VLLM, layers[i], 4, out, NULL), 0);
        ck_assert_mem_eq(out, vllm[i], sizeof(vllm[i]));
    }
    ck_assert_int_eq(pkv_kv_split(PKV_KV_SPLIT_SGLANG, 61, 4, out, NULL), 0);
    ck_assert_uint_eq(out[2], 15);
    ck_assert_uint_eq(out[3], 16);
    ck_assert_int_eq(pkv_kv_split(PKV_KV_SPLIT_VLLM, 3, 4, out, NULL), -1);
    ck_assert_int_eq(pkv_kv_split(PKV_KV_SPLIT_VLLM, 3, 0, out, NULL), -1);
}
END_TEST

/* A page of n layers where each type has its own: Gemma 3 1B pads 22 windows to 6 groups of 4; types
 * that are nearly as many (12 and 13) are padded to one group each. */
START_TEST(group_sizes)
{
    struct pkv_kv_model model = known("gemma-3-1b");
    struct pkv_kv_plan plan = plan_of(&model);
    struct pkv_kv_type sliding = { .kind = PKV_KV_SLIDING, .num_kv_heads = 1, .head_dim_k = 8,
                                   .head_dim_v = 8, .window = 4 };
    struct pkv_kv_type full = { .kind = PKV_KV_FULL, .num_kv_heads = 1, .head_dim_k = 8,
                                .head_dim_v = 8 };

    ck_assert_uint_eq(plan.group_size, 4);
    ck_assert_uint_eq(plan.num_groups, 7);
    model = (struct pkv_kv_model){ .num_layers = 25 };
    for (uint32_t i = 0; i < 25; i++)
        model.layers[i] = (uint8_t)pkv_kv_model_add_type(&model, i % 2 ? &sliding : &full, NULL);
    plan = plan_of(&model);
    ck_assert_uint_eq(plan.group_size, 13);
    ck_assert_uint_eq(plan.num_groups, 2);
    ck_assert_uint_eq(plan.stages[0].block_bytes, 13 * 16 * 32);
    full.head_dim_v = 12;   /* pages of 16 x 32 and of 16 x 40 bytes */
    model.types[0] = full;
    ck_assert_int_eq(pkv_kv_plan_make(&model, &plan.config, &plan, NULL), -1);
}
END_TEST

static void check_fit(const struct pkv_kv_plan *plan, struct pkv_rng *rng)
{
    static struct pkv_kv_fit fit;
    uint64_t pools[PKV_KV_MAX_RANKS];
    size_t num = plan->num_stages * (pkv_rng_below(rng, 2) ? plan->config.tp : 1);
    bool limited = false;

    for (size_t i = 0; i < num; i++)
        pools[i] = pkv_rng_below(rng, 80 * GIB);
    ck_assert_int_eq(pkv_kv_fit_make(plan, pools, num, &fit, NULL), 0);
    for (uint32_t i = 0; i < fit.num_ranks; i++) {
        const struct pkv_kv_rank *rank = &fit.ranks[i];
        unsigned __int128 used = (unsigned __int128)fit.num_blocks * rank->block_bytes;

        ck_assert(used + rank->stranded_bytes == rank->pool_bytes);
        limited |= rank->stranded_bytes < rank->block_bytes;
    }
    ck_assert(limited);
}

/* The longest request that fits fits, and one position more does not. */
static void check_longest(const struct pkv_kv_plan *plan, struct pkv_rng *rng)
{
    uint64_t num_blocks = pkv_rng_below(rng, 20000);
    uint64_t longest = pkv_kv_longest_request(plan, num_blocks, UINT64_C(1) << 40);

    if (longest > 0)
        ck_assert_uint_le(pkv_kv_request_blocks(plan, longest), num_blocks);
    if (longest < UINT64_C(1) << 40)
        ck_assert_uint_gt(pkv_kv_request_blocks(plan, longest + 1), num_blocks);
}

/* Of any engine; DCP more often where it goes, which is on latent caches and heads that are copied. */
static struct pkv_kv_config random_config(const struct pkv_kv_model *model, struct pkv_rng *rng)
{
    struct pkv_kv_config config = config_of(model);
    struct pkv_kv_engine engine = {
        .max_num_batched_tokens = pkv_rng_below(rng, 3) * 4096,
        .async_scheduling = pkv_rng_below(rng, 2) > 0,
        .prefix_cache = pkv_rng_below(rng, 2) > 0,
        .num_draft_layers = pkv_rng_below(rng, 3) > 0 ? 0 : 1 + (uint32_t)pkv_rng_below(rng, 3),
        .num_speculative_tokens = pkv_rng_below(rng, 2) > 0 ? 0 : (uint32_t)pkv_rng_below(rng, 9),
    };

    config.tp = 1u << pkv_rng_below(rng, 6);
    config.dcp = pkv_rng_below(rng, 2) > 0 ? 1 : 1u << pkv_rng_below(rng, 4);
    config.num_stages = 1 + (uint32_t)pkv_rng_below(rng, 8);
    config.dtype = (enum pkv_kv_dtype)pkv_rng_below(rng, PKV_KV_DTYPE_COUNT);
    config.block_size = 1u << pkv_rng_below(rng, 9);
    pkv_kv_config_engine(&config, &engine);
    if (pkv_rng_below(rng, 4) == 0)
        config.state_mode = PKV_KV_STATE_ALL;
    config.no_windows = pkv_rng_below(rng, 4) == 0;
    config.fp32_state = pkv_rng_below(rng, 2) > 0;
    return config;
}

/* What of the draw came through: all of it, and with DCP, drafts, and state beside drafts. */
struct made {
    unsigned all, dcp, drafts, states;
};

static void count_made(const struct pkv_kv_plan *plan, struct made *made)
{
    made->all++;
    made->dcp += plan->config.dcp > 1;
    made->drafts += plan->config.num_draft_layers > 0;
    made->states += plan->state_total_bytes > 0 && plan->config.num_speculative_tokens > 0;
}

/* Every layer that stores, draft layers with them, is in one group, and a block on a stage has room
 * for a page of each of its layers in the fullest group. */
static void check_layers(const struct pkv_kv_model *model, const struct pkv_kv_plan *plan)
{
    uint32_t grouped = 0, storing = plan->config.num_draft_layers;
    uint64_t position_bytes = 0;

    for (uint32_t i = 0; i < plan->num_groups; i++) {
        ck_assert_uint_le(plan->groups[i].num_layers, plan->group_size);
        grouped += plan->groups[i].num_layers;
    }
    for (uint32_t i = 0; i < model->num_layers; i++)
        storing += model->layers[i] != PKV_KV_NO_TYPE;
    ck_assert_uint_eq(grouped, storing);
    for (uint32_t i = 0; i < plan->num_stages; i++) {
        const struct pkv_kv_stage *s = &plan->stages[i];
        unsigned __int128 room = (unsigned __int128)s->block_bytes * plan->num_groups;

        ck_assert(room >= (unsigned __int128)s->position_bytes * pkv_kv_smallest_block(plan) /
                              plan->config.dcp + s->state_bytes);
        position_bytes += s->position_bytes;
    }
    ck_assert_uint_eq(position_bytes, plan->position_bytes);
}

static void check_plan(const struct pkv_kv_model *model, struct pkv_rng *rng, struct made *made)
{
    static struct pkv_kv_plan plan;
    struct pkv_kv_config config = random_config(model, rng);

    if (pkv_kv_split(PKV_KV_SPLIT_VLLM, model->num_layers, config.num_stages, config.stage_layers,
                     NULL) < 0 ||
        pkv_kv_plan_make(model, &config, &plan, NULL) < 0)
        return;
    count_made(&plan, made);
    check_layers(model, &plan);
    check_fit(&plan, rng);
    check_longest(&plan, rng);
}

START_TEST(all_models_on_any_ranks)
{
    struct made made = { 0 };
    struct pkv_rng rng;

    pkv_rng_init(&rng, 19, "ranks");
    ck_assert_uint_ge(pkv_kv_model_count(), 50);
    for (size_t i = 0; i < pkv_kv_model_count(); i++) {
        struct pkv_kv_model model = known(pkv_kv_model_info(i)->name);

        for (unsigned round = 0; round < 80; round++)
            check_plan(&model, &rng, &made);
    }
    ck_assert_uint_gt(made.all, 500);
    ck_assert_uint_gt(made.dcp, 30);
    ck_assert_uint_gt(made.drafts, 100);
    ck_assert_uint_gt(made.states, 20);
}
END_TEST

START_TEST(large_numbers)
{
    struct pkv_kv_model model = known("opt-66b");
    struct pkv_kv_plan plan = plan_of(&model);
    static struct pkv_kv_fit fit;
    uint64_t pool = UINT64_MAX;

    ck_assert_uint_eq(pkv_kv_sequence_bytes(&model, &plan, PKV_KV_ALL_STAGES, UINT64_MAX), UINT64_MAX);
    ck_assert_int_eq(pkv_kv_fit_make(&plan, &pool, 1, &fit, NULL), 0);
    ck_assert_uint_eq(fit.num_blocks, UINT64_MAX / plan.stages[0].block_bytes);
    ck_assert_uint_eq(pkv_kv_tokens_new_rule(&plan, UINT64_MAX, 1 << 20), UINT64_MAX);
    model.types[0].num_kv_heads = 65536;
    model.types[0].head_dim_k = 512;
    ck_assert_int_eq(pkv_kv_model_check(&model, NULL), -1);
    model.types[0].num_kv_heads = 0;
    ck_assert_int_eq(pkv_kv_model_check(&model, NULL), -1);
}
END_TEST

START_TEST(budget_terms)
{
    struct pkv_kv_budget b = { .total_bytes = 1001, .share_millionths = 900000,
                               .weights_bytes = 500, .activation_bytes = 200, .other_bytes = 100,
                               .graphs_bytes = 99 };
    uint64_t pool = 0;

    ck_assert_int_eq(pkv_kv_budget_pool(&b, &pool, NULL), 0);   /* 900.9, cut */
    ck_assert_uint_eq(pool, 1);
    b.graphs_bytes = 100;
    ck_assert_int_eq(pkv_kv_budget_pool(&b, &pool, NULL), -1);
    b.share_millionths = 1000001;
    ck_assert_int_eq(pkv_kv_budget_pool(&b, &pool, NULL), -1);
    b = (struct pkv_kv_budget){ .total_bytes = UINT64_MAX, .share_millionths = 1000000,
                                .weights_bytes = UINT64_MAX, .other_bytes = UINT64_MAX };
    ck_assert_int_eq(pkv_kv_budget_pool(&b, &pool, NULL), -1);
}
END_TEST

static const char config_text[] =
    "{\"model_type\": \"gemma4\", \"text_config\": {\"model_type\": \"gemma4_text\", "
    "\"num_hidden_layers\": 12, \"num_attention_heads\": 16, \"num_key_value_heads\": 8, "
    "\"num_global_key_value_heads\": 2, \"head_dim\": 256, \"global_head_dim\": 512, "
    "\"sliding_window\": 1024, \"dtype\": \"bfloat16\"}}";

/* Whatever allocation fails, the error says so and nothing is lost. */
START_TEST(config_without_memory)
{
    const char *folder = make_folder();
    struct pkv_kv_model model;
    struct pkv_err err;
    uint64_t n = 0;
    char *path;

    write_text(folder, "config.json", config_text);
    path = path_in(folder, "config.json");
    do {
        err = (struct pkv_err){ PKV_ERR_NONE };
        pkv_alloc_fail_at(++n, 1);
        if (pkv_kv_model_load(path, &model, &err) == 0)
            break;
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    } while (n < 1000);
    pkv_alloc_fail_at(0, 0);
    ck_assert_uint_gt(n, 3);
    ck_assert_uint_lt(n, 1000);
    ck_assert_uint_eq(plan_of(&model).position_bytes, (2 * 2 * 1024 + 10 * 8 * 512) * 2);
    free(path);
    remove_folder(folder);
}
END_TEST

/* A config cut anywhere, or with a byte replaced, is read or refused with a place. */
START_TEST(config_damaged)
{
    const char *folder = make_folder();
    char text[sizeof(config_text)];
    struct pkv_kv_model model;
    struct pkv_rng rng;
    char *path;

    path = path_in(folder, "config.json");
    pkv_rng_init(&rng, 5, "damage");
    for (unsigned round = 0; round < 400; round++) {
        struct pkv_err err = { PKV_ERR_NONE };

        memcpy(text, config_text, sizeof(text));
        if (round % 2)
            text[1 + pkv_rng_below(&rng, sizeof(text) - 2)] = '\0';
        else
            text[pkv_rng_below(&rng, sizeof(text) - 1)] = (char)(32 + pkv_rng_below(&rng, 95));
        write_text(folder, "config.json", text);
        if (pkv_kv_model_load(path, &model, &err) == 0)
            continue;
        ck_assert_int_eq(err.code, PKV_ERR_INPUT);
        ck_assert_str_eq(err.path, path);
        ck_assert_uint_gt(err.line, 0);
    }
    free(path);
    remove_folder(folder);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("sizing");
    TCase *t = tcase_create("sizing");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, worked_example);
    tcase_add_test(t, splits);
    tcase_add_test(t, group_sizes);
    tcase_add_test(t, all_models_on_any_ranks);
    tcase_add_test(t, large_numbers);
    tcase_add_test(t, budget_terms);
    tcase_add_test(t, config_without_memory);
    tcase_add_test(t, config_damaged);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());

    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
