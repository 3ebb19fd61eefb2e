/*
 * compare_fairness.c - tenants and priorities over all runs, and how evenly tenants fare.
 *
 * Runs are taken in as they end, in whatever order; groups stand in an order of their own, so it
 * does not show.
 *
 * Jain's index: Jain, Chiu, Hawe, A Quantitative Measure of Fairness and Discrimination for Resource
 * Allocation in Shared Computer Systems, 1984.
 */
#include "report/compare_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Where a key stands, or would. */
static size_t place_of(const struct compare_groups *all, const struct group_key *key)
{
    size_t low = 0, high = all->num;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group_key_compare(&all->items[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of a group that a run does not have nothing happened. */
static int init_group(struct compare_group *group, const struct group_key *key, size_t num_runs,
                      struct pkv_err *err)
{
    static const enum group_figure counts[] = {GROUP_REQUESTS, GROUP_COMPLETED, GROUP_OUTPUT,
                                               GROUP_PREEMPTIONS};
    *group = (struct compare_group){.key = *key};
    group->runs = pkv_alloc(num_runs, sizeof *group->runs, err);
    if (!group->runs)
        return -1;
    for (size_t run = 0; run < num_runs; run++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            group->runs[run].has[counts[i]] = true;
    if (!key->tenant)
        return 0;
    group->key.tenant = group->tenant = pkv_strdup(key->tenant, err);
    return group->tenant ? 0 : -1;
}

static void finish_group(struct compare_group *group)
{
    pkv_free(group->tenant);
    pkv_free(group->runs);
}

static struct compare_group *find_group(struct compare_groups *all, const struct group_key *key,
                                        size_t num_runs, struct pkv_err *err)
{
    size_t place = place_of(all, key);
    struct compare_group group;
    if (place < all->num && group_key_compare(&all->items[place].key, key) == 0)
        return &all->items[place];
    if (pkv_grow(&all->items, &all->capacity, all->num + 1, sizeof *all->items, err) < 0)
        return NULL;
    if (init_group(&group, key, num_runs, err) < 0) {
        finish_group(&group);
        return NULL;
    }
    memmove(&all->items[place + 1], &all->items[place],
            (all->num - place) * sizeof *all->items);
    all->items[place] = group;
    all->num++;
    return &all->items[place];
}

/* A group of a run by its key. */
struct sorted { const struct group_key *key; size_t index; };

static int compare_sorted(const void *a, const void *b)
{
    return group_key_compare(((const struct sorted *)a)->key, ((const struct sorted *)b)->key);
}

/* In order, so that the first run's groups are put one behind the other. */
int compare_groups_add(struct compare_groups *all, const struct run_groups *groups,
                       const struct group_figures *figures, size_t run, size_t num_runs,
                       struct pkv_err *err)
{
    struct sorted *sorted = pkv_alloc(groups->num, sizeof *sorted, err);
    int status = sorted ? 0 : -1;
    for (size_t i = 0; i < groups->num && sorted; i++)
        sorted[i] = (struct sorted){run_groups_key(groups, i), i};
    if (sorted && groups->num > 0)
        qsort(sorted, groups->num, sizeof *sorted, compare_sorted);
    for (size_t i = 0; i < groups->num && status == 0; i++) {
        struct compare_group *group = find_group(all, sorted[i].key, num_runs, err);
        if (group)
            group->runs[run] = figures[sorted[i].index];
        status = group ? 0 : -1;
    }
    pkv_free(sorted);
    return status;
}

void compare_groups_finish(struct compare_groups *all)
{
    for (size_t i = 0; i < all->num; i++)
        finish_group(&all->items[i]);
    pkv_free(all->items);
    *all = (struct compare_groups){.items = NULL};
}

size_t compare_groups_of(const struct compare_groups *all, enum group_kind kind, size_t *out_first)
{
    size_t first = 0, num = 0;
    while (first < all->num && all->items[first].key.kind != kind)
        first++;
    while (first + num < all->num && all->items[first + num].key.kind == kind)
        num++;
    *out_first = first;
    return num;
}

void jain_add(struct jain *jain, double value)
{
    jain->num++;
    jain->sum += value;
    jain->squares += value * value;
}

bool jain_read(const struct jain *jain, double *out)
{
    if (jain->num < 2 || !(jain->squares > 0))
        return false;
    *out = jain->sum * jain->sum / ((double)jain->num * jain->squares);
    return true;
}

bool run_groups_jain(const struct run_groups *groups, const struct group_figures *figures,
                     enum group_figure figure, double *out)
{
    struct jain jain = {0};
    for (size_t i = 0; i < groups->num; i++) {
        if (run_groups_key(groups, i)->kind != GROUP_TENANT)
            continue;
        if (!figures[i].has[figure])
            return false;
        jain_add(&jain, figures[i].values[figure]);
    }
    return jain_read(&jain, out);
}
