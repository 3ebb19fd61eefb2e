/*
 * remake_text.c - how near a trace that was made comes to the one it was made after.
 *
 * Where the source was scaled, what a figure should have become is told only if that follows from the
 * scale; else there is nothing to deviate from.
 */
#include <inttypes.h>
#include <math.h>

#include "report/report_private.h"

#define NUM_WIDTH 14
#define UNKNOWN (-1.0)

static void add_cell(struct pkv_text *t, double value, const char *unit)
{
    struct pkv_text cell = {0};
    bool is_whole = value >= 0 && value < 1e15 && fabs(value - floor(value)) <= 0;
    if (value < 0)
        pkv_text_add(&cell, "-");
    else if (is_whole)
        add_grouped(&cell, (uint64_t)value);
    else
        add_rate(&cell, value);
    if (value >= 0)
        pkv_text_add(&cell, unit);
    pkv_text_fmt(t, "%*s", NUM_WIDTH, cell.text ? cell.text : "");
    t->failed |= cell.failed;
    pkv_text_free(&cell);
}

static void add_row(struct pkv_text *t, const char *name, const char *unit, double source,
                    double wanted, double made)
{
    pkv_text_fmt(t, "%-26s", name);
    add_cell(t, source, unit);
    add_cell(t, wanted, unit);
    add_cell(t, made, unit);
    if (wanted > 0) {
        double percent = 100 * (made / wanted - 1);
        pkv_text_fmt(t, "%+*.1f %%", NUM_WIDTH - 2, fabs(percent) < 0.05 ? 0 : percent);
    }
    else
        pkv_text_fmt(t, "%*s", NUM_WIDTH, wanted < 0 ? "-" : made > 0 ? "not 0" : "none");
    pkv_text_add(t, "\n");
}

static double mean(const struct pkv_lengths_info *l)
{
    return l->num > 0 ? (double)l->sum / (double)l->num : 0;
}

static void add_lengths(struct pkv_text *t, const char *const names[4],
                        const struct pkv_lengths_info *source, const struct pkv_lengths_info *made,
                        double wanted_mean, bool same)
{
    add_row(t, names[0], "", mean(source), wanted_mean, mean(made));
    add_row(t, names[1], "", source->p50, same ? source->p50 : UNKNOWN, made->p50);
    add_row(t, names[2], "", source->p90, same ? source->p90 : UNKNOWN, made->p90);
    add_row(t, names[3], "", source->p99, same ? source->p99 : UNKNOWN, made->p99);
}

static double rate(const struct pkv_trace_info *info)
{
    return info->gap_mean_ns > 0 ? 1e9 / info->gap_mean_ns : 0;
}

static double hit_percent(const struct pkv_trace_info *info)
{
    const struct pkv_prefix_hits *h = &info->hits[PKV_PREFIX_ALL];
    return h->tokens > 0 ? 100 * (double)h->hit_tokens / (double)h->tokens : 0;
}

char *pkv_remake_text(const struct pkv_remake_config *config,
                      const struct pkv_remake_figures *figures, const struct pkv_trace_info *source,
                      const struct pkv_trace_info *made, struct pkv_err *err)
{
    static const char *const prompts[] = {"prompt tokens, mean", "  p50", "  p90", "  p99"};
    static const char *const outputs[] = {"output tokens, mean", "  p50", "  p90", "  p99"};
    bool same_length = fabs(config->prefix_length - 1) <= 0;
    bool same_tree = same_length && fabs(config->roots - 1) <= 0 &&
                     figures->made_rows == figures->rows;
    struct pkv_text t = {0};
    pkv_text_fmt(&t, "%-26s%*s%*s%*s%*s\n", "", NUM_WIDTH, "source", NUM_WIDTH, "wanted", NUM_WIDTH,
                 "made", NUM_WIDTH, "deviation");
    add_row(&t, "rows", "", (double)figures->rows, (double)figures->made_rows, (double)made->rows);
    add_row(&t, "arrivals a second", "", rate(source), rate(source) * config->rate, rate(made));
    add_row(&t, "cv of the gaps", "", source->gap_cv, source->gap_cv, made->gap_cv);
    add_lengths(&t, prompts, &source->prompt, &made->prompt, figures->mean_made_prompt_tokens,
                same_length);
    add_lengths(&t, outputs, &source->output, &made->output, mean(&source->output), true);
    add_row(&t, "shared first texts", "", (double)figures->roots,
            config->prefix_length > 0 ? (double)figures->wanted_roots : 0,
            (double)figures->made_roots);
    add_row(&t, "prompt tokens met before", " %", hit_percent(source),
            same_tree ? hit_percent(source) : UNKNOWN, hit_percent(made));
    add_row(&t, "different blocks", "", (double)source->distinct_blocks,
            same_tree ? (double)source->distinct_blocks : UNKNOWN, (double)made->distinct_blocks);
    pkv_text_fmt(&t, "What is shared is found, here and there, in whole blocks of %" PRIu32 " tokens.\n",
                 figures->block_size);
    return take_text(&t, err);
}
