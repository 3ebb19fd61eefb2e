/*
 * setup_kv.c - in the head of a run: the model behind its pool, and the memory of its ranks.
 */
#include "report/size_private.h"

static const char *last_part(const char *path)
{
    const char *part = path;
    for (const char *c = path; *c; c++)
        part = *c == '/' && c[1] ? c + 1 : part;
    return part;
}

static void add_rank(struct page *p, struct pkv_text *t, const struct pkv_scenario_kv *kv,
                     uint32_t i)
{
    const struct pkv_kv_rank *r = &kv->fit.ranks[i];
    if (kv->fit.num_ranks > 1) {
        pkv_text_fmt(t, "stage %u", r->stage);
        if (!kv->fit.alike)
            pkv_text_fmt(t, " rank %u", r->tp_rank);
        pkv_text_add(t, ": ");
    }
    add_bytes(t, r->pool_bytes);
    if (r->block_bytes > 0) {
        pkv_text_add(t, " holds ");
        add_counted(t, r->num_blocks, "block");
        pkv_text_add(t, " of ");
        add_bytes(t, r->block_bytes);
    }
    if (kv->fit.num_ranks > 1 && i == kv->fit.limiting_rank)
        pkv_text_add(t, ", the fewest, which rules");
    if (r->stranded_bytes > 0) {
        pkv_text_add(t, "; stranded ");
        add_bytes(t, r->stranded_bytes);
    }
    put_item(p, i == 0 ? "memory" : "", t);
}

void page_kv(struct page *p, const struct pkv_scenario *s)
{
    const struct pkv_scenario_kv *kv = s->kv;
    struct pkv_text t = {0};
    if (!kv)
        return;
    pkv_text_fmt(&t, "%s, %s", last_part(kv->model.name),
                 pkv_kv_dtype_name(kv->plan.config.dtype));
    if (kv->plan.config.tp > 1)
        pkv_text_fmt(&t, ", TP %u", kv->plan.config.tp);
    if (kv->plan.num_stages > 1)
        pkv_text_fmt(&t, ", PP %u", kv->plan.num_stages);
    if (kv->plan.config.num_draft_layers > 0) {
        pkv_text_add(&t, ", ");
        add_counted(&t, kv->plan.config.num_draft_layers, "draft layer");
    }
    pkv_text_add(&t, ": ");
    add_bytes(&t, kv->plan.position_bytes);
    pkv_text_add(&t, kv->plan.config.tp > 1 ? " a position on one TP rank" : " a position");
    put_item(p, "model", &t);
    if (kv->model.note[0])
        page_item(p, "", kv->model.note);
    for (uint32_t i = 0; kv->num_pools > 0 && i < kv->fit.num_ranks; i++)
        add_rank(p, &t, kv, i);
    pkv_text_free(&t);
}
