/*
 * compare_groups.c - what one run did for each tenant and for each priority.
 *
 * Counts are summed as requests end. Times are kept, one small record a request, until the run is
 * over, and then laid out group by group: means and the 99th percentile (nearest rank) are exact.
 *
 *   every request is in one group of each kind
 *
 * The service that a tenant received is counted as the cost of Virtual Token Counters is: a prompt
 * token of an admitted request counts 1, a generated one 2, what is computed again nothing (Sheng et
 * al., Fairness in Serving Large Language Models, OSDI 2024). It is told a second of the tenant's own
 * span, from its first arrival to its last end.
 */
#include "report/compare_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"

#define PROMPT_WEIGHT 1u
#define OUTPUT_WEIGHT 2u
#define FEWEST_SLOTS 16u

struct run_group {
    struct group_key key;
    char *tenant;                 /* owned; what the key points to */
    uint64_t requests, completed, prompt_tokens, output_tokens, preemptions;
    int64_t first_arrival_ns, last_end_ns;
    bool has_unfinished;
};

enum member_time { MEMBER_TTFT, MEMBER_E2E, MEMBER_TIME_COUNT };
struct group_member {
    uint32_t groups[GROUP_KIND_COUNT];
    int64_t ns[MEMBER_TIME_COUNT];    /* PKV_NO_TIME = it did not complete */
};

const struct figure_info group_figure_infos[GROUP_FIGURE_COUNT] = {
#define FIGURE_ROW(sym, name, heading, unit, better) [sym] = {name, heading, unit, better},
    GROUP_FIGURES(FIGURE_ROW)
#undef FIGURE_ROW
};

const char *const group_kind_names[GROUP_KIND_COUNT] = {
#define KIND_NAME(sym, word) [sym] = word,
    GROUP_KINDS(KIND_NAME)
#undef KIND_NAME
};

int group_key_compare(const struct group_key *a, const struct group_key *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (!a->tenant || !b->tenant)
        return (a->tenant != NULL) - (b->tenant != NULL);
    return strcmp(a->tenant, b->tenant);
}

/* ---- which group ---- */

static uint64_t hash_of(const struct group_key *key)
{
    uint64_t hash = pkv_mix((uint64_t)key->kind, (uint64_t)key->priority);
    for (const char *c = key->tenant; c && *c; c++)
        hash = pkv_mix(hash, (unsigned char)*c);
    return hash;
}

/* The slot of a key, or the empty one in which it would be; some slot is empty. */
static size_t *slot_of(const struct run_groups *g, const struct group_key *key)
{
    size_t mask = g->num_slots - 1, i = (size_t)hash_of(key) & mask;
    while (g->slots[i] > 0 && group_key_compare(&g->groups[g->slots[i] - 1].key, key) != 0)
        i = (i + 1) & mask;
    return &g->slots[i];
}

/* Twice as many slots, so that at most half of them are taken. */
static int add_slots(struct run_groups *g, struct pkv_err *err)
{
    size_t num = g->num_slots > 0 ? 2 * g->num_slots : FEWEST_SLOTS;
    size_t *slots = pkv_alloc(num, sizeof *slots, err);
    if (!slots)
        return -1;
    pkv_free(g->slots);
    g->slots = slots;
    g->num_slots = num;
    for (size_t i = 0; i < g->num; i++)
        *slot_of(g, &g->groups[i].key) = i + 1;
    return 0;
}

static int add_group(struct run_groups *g, const struct group_key *key, size_t *slot,
                     struct pkv_err *err)
{
    struct run_group group = {.key = *key, .first_arrival_ns = INT64_MAX,
                              .last_end_ns = INT64_MIN};
    if (pkv_grow(&g->groups, &g->capacity, g->num + 1, sizeof *g->groups, err) < 0)
        return -1;
    if (key->tenant) {
        group.tenant = pkv_strdup(key->tenant, err);
        if (!group.tenant)
            return -1;
        group.key.tenant = group.tenant;
    }
    g->groups[g->num++] = group;
    *slot = g->num;
    return 0;
}

/* Requests of one group often come in a row. */
static int find_group(struct run_groups *g, const struct group_key *key, uint32_t *out,
                      struct pkv_err *err)
{
    size_t *last = &g->last[key->kind];
    if (g->num == 0 || group_key_compare(&g->groups[*last].key, key) != 0) {
        if (2 * (g->num + 1) > g->num_slots && add_slots(g, err) < 0)
            return -1;
        size_t *slot = slot_of(g, key);
        if (*slot == 0 && add_group(g, key, slot, err) < 0)
            return -1;
        *last = *slot - 1;
    }
    PKV_ASSERT(*last < UINT32_MAX);
    *out = (uint32_t)*last;
    return 0;
}

/* ---- the sink ---- */

static void count_request(struct run_group *group, const struct pkv_request_row *row)
{
    const struct pkv_request *r = row->request;
    int64_t end_ns = row->finish_ns != PKV_NO_TIME ? row->finish_ns : r->arrival_ns;
    group->requests++;
    group->completed += row->status == PKV_REQUEST_COMPLETED;
    group->has_unfinished |= row->status == PKV_REQUEST_UNFINISHED;
    group->prompt_tokens += r->admitted_ns != PKV_NO_TIME ? r->seq.num_prompt_tokens : 0;
    group->output_tokens += r->num_emitted;
    group->preemptions += r->num_preemptions;
    if (r->arrival_ns < group->first_arrival_ns)
        group->first_arrival_ns = r->arrival_ns;
    if (end_ns > group->last_end_ns)
        group->last_end_ns = end_ns;
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct run_groups *g = ctx;
    const struct pkv_request *r = row->request;
    const struct group_key keys[GROUP_KIND_COUNT] = {
        [GROUP_TENANT] = {.kind = GROUP_TENANT, .tenant = r->tenant},
        [GROUP_PRIORITY] = {.kind = GROUP_PRIORITY, .priority = r->priority}};
    struct group_member member = {.ns = {PKV_NO_TIME, PKV_NO_TIME}};
    if (!is_in_window(&g->window, r->arrival_ns))
        return 0;
    for (size_t kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        if (find_group(g, &keys[kind], &member.groups[kind], err) < 0)
            return -1;
        count_request(&g->groups[member.groups[kind]], row);
    }
    if (r->first_token_ns == PKV_NO_TIME)
        return 0;
    member.ns[MEMBER_TTFT] = r->first_token_ns - r->arrival_ns;
    if (row->status == PKV_REQUEST_COMPLETED)
        member.ns[MEMBER_E2E] = row->finish_ns - r->arrival_ns;
    if (pkv_grow(&g->members, &g->members_capacity, g->num_members + 1, sizeof *g->members, err) < 0)
        return -1;
    g->members[g->num_members++] = member;
    return 0;
}

struct pkv_sink run_groups_sink(struct run_groups *groups)
{
    return (struct pkv_sink){.request = on_request, .ctx = groups};
}

void run_groups_finish(struct run_groups *g)
{
    for (size_t i = 0; i < g->num; i++)
        pkv_free(g->groups[i].tenant);
    pkv_free(g->groups);
    pkv_free(g->slots);
    pkv_free(g->members);
    *g = (struct run_groups){.groups = NULL};
}

const struct group_key *run_groups_key(const struct run_groups *g, size_t i)
{
    return &g->groups[i].key;
}

/* ---- the figures ---- */

static void put(struct group_figures *out, enum group_figure figure, double value)
{
    out->has[figure] = true;
    out->values[figure] = value;
}

static void put_counts(struct group_figures *out, const struct run_group *group, int64_t run_end_ns)
{
    bool lasts = group->has_unfinished && run_end_ns > group->last_end_ns;
    int64_t span_ns = (lasts ? run_end_ns : group->last_end_ns) - group->first_arrival_ns;
    double service = (double)(group->prompt_tokens * PROMPT_WEIGHT +
                              group->output_tokens * OUTPUT_WEIGHT);
    put(out, GROUP_REQUESTS, (double)group->requests);
    put(out, GROUP_COMPLETED, (double)group->completed);
    put(out, GROUP_OUTPUT, (double)group->output_tokens);
    put(out, GROUP_PREEMPTIONS, (double)group->preemptions);
    if (span_ns > 0)
        put(out, GROUP_SERVICE, service * 1e9 / (double)span_ns);
    else if (group->prompt_tokens + group->output_tokens == 0)
        put(out, GROUP_SERVICE, 0);    /* all of it rejected at once */
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* The rank-th smallest of num numbers, from 0; moves them about. Hoare's selection: O(num), also
 * where many are the same. */
static int64_t select_rank(int64_t *values, size_t num, size_t rank)
{
    size_t low = 0, high = num - 1;
    while (low < high) {
        int64_t pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap(&values[i++], &values[j--]);
        }
        if (rank <= j)
            high = j;
        else
            low = j + 1;
    }
    return values[rank];
}

static void put_times(struct group_figures *out, int64_t *times, size_t num,
                      enum group_figure mean, enum group_figure p99)
{
    __int128 sum = 0;
    if (num == 0)
        return;
    for (size_t i = 0; i < num; i++)
        sum += times[i];
    put(out, mean, (double)sum / (double)num);
    put(out, p99, (double)select_rank(times, num, num - num / 100 - 1));
}

/* One kind of time of all groups of a kind. ends: [g->num + 1] of scratch; times: of members. */
static void read_times(const struct run_groups *g, enum group_kind kind, enum member_time time,
                       size_t *ends, int64_t *times, struct group_figures *out)
{
    enum group_figure mean = time == MEMBER_TTFT ? GROUP_TTFT_MEAN : GROUP_E2E_MEAN;
    enum group_figure p99 = time == MEMBER_TTFT ? GROUP_TTFT_P99 : GROUP_E2E_P99;
    memset(ends, 0, (g->num + 1) * sizeof *ends);
    for (size_t i = 0; i < g->num_members; i++)
        if (g->members[i].ns[time] != PKV_NO_TIME)
            ends[g->members[i].groups[kind] + 1]++;
    for (size_t i = 1; i <= g->num; i++)
        ends[i] += ends[i - 1];
    for (size_t i = 0; i < g->num_members; i++)    /* ends[k]: from the begin of k to its end */
        if (g->members[i].ns[time] != PKV_NO_TIME)
            times[ends[g->members[i].groups[kind]]++] = g->members[i].ns[time];
    for (size_t i = 0, begin = 0; i < g->num; begin = ends[i++])
        if (g->groups[i].key.kind == kind)
            put_times(&out[i], times + begin, ends[i] - begin, mean, p99);
}

int run_groups_read(const struct run_groups *g, int64_t end_ns, struct group_figures *out,
                    struct pkv_err *err)
{
    size_t *ends = pkv_alloc(g->num + 1, sizeof *ends, err);
    int64_t *times = ends ? pkv_alloc(g->num_members, sizeof *times, err) : NULL;
    for (size_t i = 0; i < g->num && times; i++)
        put_counts(&out[i], &g->groups[i], end_ns);
    for (int kind = 0; kind < GROUP_KIND_COUNT && times; kind++)
        for (int time = 0; time < MEMBER_TIME_COUNT; time++)
            read_times(g, (enum group_kind)kind, (enum member_time)time, ends, times, out);
    pkv_free(ends);
    pkv_free(times);
    return times ? 0 : -1;
}
