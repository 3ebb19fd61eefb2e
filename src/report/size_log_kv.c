/*
 * size_log_kv.c - what a start-up log says of its engine, as a part of a scenario.
 *
 * The scenario has the pool of the log: as many blocks of as many tokens in the same groups. What the
 * log says of the scheduler and of drafts goes with it; what it cannot say is named beside it.
 */
#include "report/size_log_private.h"

#include <inttypes.h>
#include <string.h>

static bool is_plain(const struct pkv_sched_config *groups)
{
    return groups->num_groups == 1 && groups->groups[0].ops == &pkv_group_full;
}

static int add_groups(struct pkv_text *t, const struct log_view *v,
                      const struct pkv_sched_config *groups, struct pkv_err *err)
{
    char *text;
    pkv_text_fmt(t, "  block_size: %u", groups->groups[0].block_size);
    if (v->plan.config.dcp > 1)
        pkv_text_fmt(t, "   # %u on each of %u DCP ranks", v->plan.config.block_size,
                     v->plan.config.dcp);
    pkv_text_add(t, "\n");
    if (is_plain(groups))
        return 0;
    text = pkv_scenario_groups_text(groups, err);
    if (!text)
        return -1;
    pkv_text_fmt(t, "  groups: %s\n", text);
    pkv_scenario_free_text(text);
    return 0;
}

static void add_number(struct pkv_text *t, const char *key, uint64_t n)
{
    if (n > 0)
        pkv_text_fmt(t, "  %s: %" PRIu64 "\n", key, n);
}

/* Without chunks a step holds the longest prompt, where nobody says how much it holds. */
static uint64_t batched_tokens(const struct pkv_startup_log *log)
{
    uint64_t least = 2048;
    if (log->max_num_batched_tokens > 0 || !log->chunked_prefill_off || log->max_model_len == 0)
        return log->max_num_batched_tokens;
    return log->max_model_len > least ? log->max_model_len : least;
}

static void add_scheduler(struct pkv_text *t, const struct pkv_startup_log *log)
{
    size_t before = t->length;
    pkv_text_add(t, "scheduler:\n");
    size_t empty = t->length;
    add_number(t, "max_model_len", log->max_model_len);
    add_number(t, "max_num_batched_tokens", batched_tokens(log));
    add_number(t, "max_num_seqs", log->max_num_seqs);
    if (log->chunked_prefill_off)
        pkv_text_add(t, "  enable_chunked_prefill: false\n");
    if (log->async_scheduling && log->num_speculative_tokens == 0)
        pkv_text_add(t, "  async_scheduling: true\n");
    if (log->async_scheduling && log->num_speculative_tokens > 0)
        pkv_text_add(t, "  async_scheduling: false   # it was on, which is not simulated with drafts\n");
    if (t->length == empty && !t->failed) {
        t->length = before;
        t->text[before] = '\0';
    }
}

/* A draft head (eagle, MTP) drops the last block of a hit, which is simulated for one group only; what
 * is left of it beside several groups is a draft model. */
static void add_method(struct pkv_text *t, const struct pkv_startup_log *log,
                       const struct pkv_sched_config *groups)
{
    const char *said = log->draft_method;
    bool is_head = !said[0] || strstr(said, "eagle") || strstr(said, "mtp");
    if (is_head && !is_plain(groups))
        pkv_text_add(t, "  method: draft_model   # a draft head, which also drops the last block of a "
                     "hit\n");
    else
        pkv_text_fmt(t, "  method: %s\n", is_head ? "eagle" : strcmp(said, "draft_model") == 0
                                                                  ? "draft_model" : "ngram");
}

static int add_drafts(struct pkv_text *t, const struct pkv_startup_log *log,
                      const struct pkv_sched_config *groups, struct pkv_err *err)
{
    if (log->num_speculative_tokens == 0)
        return 0;
    if (log->num_speculative_tokens > PKV_MAX_DRAFTS)
        return pkv_fail(err, PKV_ERR_INPUT, "the log has %u drafts a step, and at most %u are "
                        "simulated", log->num_speculative_tokens, PKV_MAX_DRAFTS);
    pkv_text_add(t, "speculation:\n");
    add_method(t, log, groups);
    pkv_text_fmt(t, "  num_tokens: %u\n"
                 "  acceptance_rate: 0   # a log of the start cannot say it\n",
                 log->num_speculative_tokens);
    return 0;
}

/* More than a scenario can have are no error of the log. */
static int check(const char *what, uint64_t n, struct pkv_err *err)
{
    if (n <= INT32_MAX)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, "the log has %" PRIu64 " %s, and at most %d are simulated", n, what,
                    INT32_MAX);
}

static int add_blocks(struct pkv_text *t, const struct log_view *v, struct pkv_err *err)
{
    const char *key = v->log->has_null_block ? "num_gpu_blocks" : "num_blocks";
    if (v->num_blocks == 1 && v->log->has_null_block)
        return pkv_fail(err, PKV_ERR_INPUT, "the one block of the log is the null block");
    if (v->num_blocks > 0)
        add_number(t, key, v->num_blocks);
    else
        pkv_text_fmt(t, "  # %s: the log does not tell\n", key);
    return check("blocks", v->num_blocks, err);
}

int log_add_kv_part(struct pkv_text *t, const struct log_view *v, struct pkv_err *err)
{
    struct pkv_sched_config groups = {.num_groups = 0};
    if (log_has_other_pools(v))
        return pkv_fail(err, PKV_ERR_INPUT, "SGLang has a pool for each kind of layer, and the log has the "
                        "size of one");
    if (pkv_scenario_plan_groups(&v->plan, &groups, err) < 0 ||
        check("positions a request", v->log->max_model_len, err) < 0 ||
        check("tokens a step", v->log->max_num_batched_tokens, err) < 0 ||
        check("sequences", v->log->max_num_seqs, err) < 0)
        return -1;
    pkv_text_add(t, "kv:\n");
    if (add_groups(t, v, &groups, err) < 0 || add_blocks(t, v, err) < 0)
        return -1;
    if (v->log->prefix_cache_off)
        pkv_text_add(t, "  prefix_cache: false\n");
    add_scheduler(t, v->log);
    return add_drafts(t, v->log, &groups, err);
}
