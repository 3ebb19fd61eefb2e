/*
 * model_rank.c - orders that look at the whole queue: every request gets a number, the smallest first.
 *
 * Texts are compared token by token, trees are made by asking each pair, and the future of a fair
 * queue is tried out one admission at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

/* Between two passes a newcomer stands behind those ranked. */
#define UNRANKED (INT64_MAX - 1)
#define SHARES (INT64_MAX - 2)

bool model_ranks(const struct model *m)
{
    return m->config.order == MODEL_ORDER_LPM || m->config.order == MODEL_ORDER_DFS_WEIGHT ||
           m->config.order == MODEL_ORDER_VTC;
}

/* In tokens. */
static uint32_t num_hit(const struct model *m, const struct model_request *r)
{
    struct model_hit hit = { 0 };
    uint32_t num;

    model_find_prefix(m, r, &hit);
    num = hit.num_tokens;
    model_hit_finish(&hit);
    return num;
}

/* First tokens that two texts have in common; none if their salts differ. */
static uint32_t num_shared(const struct model_request *a, const struct model_request *b)
{
    uint32_t num = 0;

    while (num <= a->num_known && num <= b->num_known &&
           a->text[num].origin == b->text[num].origin &&
           a->text[num].position == b->text[num].position)
        num++;
    return num > 0 ? num - 1 : 0;
}

/* --- longest prefix -------------------------------------------------------------------------- */

/* Does r find next to nothing, and begin as one before it does that keeps its place? */
static bool goes_last(const struct model *m, const struct model_request *r)
{
    int64_t enough = m->config.in_batch_tokens;

    if (enough == 0 || (int64_t)num_hit(m, r) > enough)
        return false;
    for (const struct model_request *w = m->waiting; w != r; w = w->next)
        if ((int64_t)num_hit(m, w) <= enough &&
            num_shared(w, r) >= enough && !goes_last(m, w))
            return true;
    return false;
}

static int64_t lpm_rank(const struct model *m, const struct model_request *r)
{
    if (m->config.lpm_max_waiting > 0 &&
        (int64_t)model_num_queued(m) > m->config.lpm_max_waiting)
        return 0;
    if (goes_last(m, r))
        return SHARES;
    return -(int64_t)num_hit(m, r) - m->config.aging_tokens * r->num_missed;
}

/* --- the tree of those waiting --------------------------------------------------------------- */

struct leaf {
    struct model_request *request;
    uint32_t num_units;              /* found */
    bool done;
};

/* Leaves that lie under the same node as l, `depth` units down. */
static bool is_with(const struct model *m, const struct leaf *a, const struct leaf *l,
                    uint32_t depth)
{
    return a->num_units >= depth && l->num_units >= depth &&
           (a == l || depth == 0 ||
            num_shared(a->request, l->request) >= depth * m->config.unit) &&
           (depth > 0 || !a->done);
}

static size_t weight(const struct model *m, const struct leaf *leaves, size_t num,
                     const struct leaf *l, uint32_t depth)
{
    size_t sum = 0;

    for (size_t i = 0; i < num; i++)
        sum += is_with(m, &leaves[i], l, depth);
    return sum;
}

/* The node `depth` units down that l lies under: its heaviest child first, itself last. Leaves are
 * in the order of arrival. */
static void walk_node(const struct model *m, struct leaf *leaves, size_t num, const struct leaf *l,
                      uint32_t depth, int64_t *rank)
{
    for (;;) {
        const struct leaf *child = NULL;
        size_t most = 0;

        for (size_t i = 0; i < num; i++) {
            if (leaves[i].done || leaves[i].num_units <= depth ||
                (depth > 0 && !is_with(m, &leaves[i], l, depth)))
                continue;
            if (weight(m, leaves, num, &leaves[i], depth + 1) > most) {
                child = &leaves[i];
                most = weight(m, leaves, num, &leaves[i], depth + 1);
            }
        }
        if (child == NULL)
            break;
        walk_node(m, leaves, num, child, depth + 1, rank);
    }
    for (size_t i = 0; i < num; i++)
        if (!leaves[i].done && leaves[i].num_units == depth &&
            (depth == 0 || is_with(m, &leaves[i], l, depth))) {
            leaves[i].done = true;
            leaves[i].request->rank = (*rank)++;
        }
}

/* --- fair shares ----------------------------------------------------------------------------- */

struct model_tenant *model_tenant(struct model *m, const char *name)
{
    for (size_t i = 0; i < m->num_tenants; i++) {
        const char *known = m->tenants[i].name;

        if (known == name || (known != NULL && name != NULL && strcmp(known, name) == 0))
            return &m->tenants[i];
    }
    m->tenants[m->num_tenants].name = name;
    return &m->tenants[m->num_tenants++];
}

static bool has_waiting(const struct model *m, const struct model_tenant *tenant)
{
    for (const struct model_request *r = m->waiting; r != NULL; r = r->next)
        if (r->tenant == tenant)
            return true;
    return false;
}

void model_miss(struct model *m, int64_t num_passes)
{
    for (struct model_request *r = m->waiting; r != NULL; r = r->next)
        r->num_missed += num_passes;
}

void model_comes(struct model *m, struct model_request *r)
{
    int64_t least = INT64_MAX;

    r->num_missed = 0;
    r->rank = UNRANKED;
    if (has_waiting(m, r->tenant))
        return;
    for (const struct model_request *w = m->waiting; w != NULL; w = w->next)
        least = w->tenant->counter < least ? w->tenant->counter : least;
    if (m->waiting == NULL)
        least = m->last_left != NULL ? m->last_left->counter : 0;
    if (r->tenant->counter < least)
        r->tenant->counter = least;
}

/* Who would be admitted next, among those not done. */
static struct leaf *next_of_all(struct leaf *leaves, size_t num)
{
    struct leaf *next = NULL;

    for (size_t i = 0; i < num; i++)
        if (!leaves[i].done &&
            (next == NULL || leaves[i].request->tenant->counter < next->request->tenant->counter))
            next = &leaves[i];
    return next;
}

static void try_out(struct model *m, struct leaf *leaves, size_t num, int64_t *rank)
{
    int64_t *kept = model_alloc(m->num_tenants, sizeof *kept);
    struct leaf *next;

    for (size_t i = 0; i < m->num_tenants; i++)
        kept[i] = m->tenants[i].counter;
    while ((next = next_of_all(leaves, num)) != NULL) {
        next->done = true;
        next->request->rank = (*rank)++;
        if (!next->request->was_preempted)
            next->request->tenant->counter += m->config.prompt_weight * next->request->num_prompt;
    }
    for (size_t i = 0; i < m->num_tenants; i++)
        m->tenants[i].counter = kept[i];
    free(kept);
}

/* --- the queue ------------------------------------------------------------------------------- */

/* All who wait, by arrival. */
static struct leaf *list_waiting(const struct model *m, size_t num)
{
    struct leaf *leaves = model_alloc(num, sizeof *leaves);
    size_t n = 0;

    for (size_t i = 0; i < m->num_arrived; i++)
        for (struct model_request *r = m->waiting; r != NULL; r = r->next)
            if (r == &m->requests[i])
                leaves[n++] = (struct leaf){ r, num_hit(m, r) / m->config.unit, false };
    return leaves;
}

static void give_ranks(struct model *m, struct leaf *leaves, size_t num)
{
    int64_t rank = 0;

    switch (m->config.order) {
    case MODEL_ORDER_LPM:
        for (size_t i = 0; i < num; i++)
            leaves[i].request->rank = m->config.prefix_cache ? lpm_rank(m, leaves[i].request) : 0;
        return;
    case MODEL_ORDER_DFS_WEIGHT:
        walk_node(m, leaves, num, NULL, 0, &rank);
        return;
    case MODEL_ORDER_VTC:
        try_out(m, leaves, num, &rank);
        return;
    case MODEL_ORDER_FCFS: case MODEL_ORDER_PRIORITY: case MODEL_ORDER_SJF:
    case MODEL_ORDER_SJF_TRUE: case MODEL_ORDER_LJF: case MODEL_ORDER_LOF: case MODEL_ORDER_EDF:
    case MODEL_ORDER_RANDOM:
        break;
    }
    abort();
}

/* Those at an end of the queue stay there. */
static int place(const struct model_request *a, const struct model_request *b)
{
    int end_a = a->fronted ? -1 : a->tailed, end_b = b->fronted ? -1 : b->tailed;

    if (end_a != end_b)
        return end_a < end_b ? -1 : 1;
    if (end_a != 0)
        return 0;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

void model_rank(struct model *m)
{
    size_t num = model_num_queued(m);
    struct leaf *leaves;

    if (!model_ranks(m) || num == 0)
        return;
    leaves = list_waiting(m, num);
    give_ranks(m, leaves, num);
    free(leaves);
    DL_SORT(m->waiting, place);
}
