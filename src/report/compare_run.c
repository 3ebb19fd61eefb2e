/*
 * compare_run.c - the runs of a comparison, side by side on threads.
 *
 * Runs are numbered seed by seed, within a seed in the order of the grid, and handed out in that
 * order; results go to places of their own. A run waits for the first one of its seed before it is
 * compared with it, which was handed out earlier, so there is always one that can go on, and at
 * most one array of times a thread and one a seed under way are alive.
 *
 * An error stops the runs behind it and not those before it: they may fail, too, and the earliest
 * failure is the one told, whatever the number of threads.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "pagedkv/sim.h"
#include "report/compare_private.h"

/* The first run of a seed. */
struct first_run {
    bool ended;
    struct run_times times;       /* while anybody may look */
    size_t num_waited_for;        /* runs of this seed that have not ended */
};

struct crew {
    const struct pkv_compare_config *config;
    struct pkv_compare *compare;
    size_t num_runs;
    int64_t first_width_ns;       /* of the bins over time: no step is shorter */
    pthread_mutex_t lock;         /* of all below but first_failed */
    pthread_cond_t changed;       /* a first run ended */
    size_t next, num_ended;
    struct first_run *firsts;     /* owned, [num_seeds] */
    bool stopped;
    struct pkv_err failure;       /* of run first_failed */
    _Atomic size_t first_failed;  /* SIZE_MAX = none */
};

/* One run under way. */
struct run {
    struct crew *crew;
    size_t number, configuration, seed;
    struct pkv_scenario scenario;      /* a shallow copy, with its seed */
    struct pkv_traffic traffic;        /* owned, as all below */
    struct pkv_metrics *metrics;
    struct pkv_engine *engine;
    struct run_times times;
    struct run_groups groups;
    struct group_figures *group_figures;   /* [groups.num], once it is done */
    struct run_series series;
    struct run_figures figures;
    struct kept_run kept;              /* if the page asks for it */
};

static bool should_stop(void *ctx)
{
    const struct run *r = ctx;
    const struct pkv_compare_config *config = r->crew->config;
    return atomic_load(&r->crew->first_failed) < r->number ||
           (config->should_stop && config->should_stop(config->ctx));
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct run *r = ctx;
    (void)sched;
    return run_series_add(&r->series, pkv_engine_figures(r->engine)->first_arrival_ns, row, err);
}

static int open_run(struct run *r, struct pkv_err *err)
{
    const struct pkv_metrics_config metrics = pkv_sim_metrics_config(&r->scenario);
    if (pkv_scenario_open_traffic(&r->scenario, &r->traffic, err) < 0)
        return -1;
    r->metrics = pkv_metrics_create(&metrics, err);
    if (!r->metrics)
        return -1;
    struct pkv_engine_config engine = pkv_sim_engine_config(&r->scenario, &r->traffic);
    engine.sinks[engine.num_sinks++] = pkv_metrics_sink(r->metrics);
    engine.sinks[engine.num_sinks++] = run_times_sink(&r->times);
    engine.sinks[engine.num_sinks++] = run_groups_sink(&r->groups);
    if (r->seed == 0)
        engine.sinks[engine.num_sinks++] = (struct pkv_sink){.step = on_step, .ctx = r};
    engine.check = r->crew->config->check;
    engine.should_stop = should_stop;
    engine.stop_ctx = r;
    r->engine = pkv_engine_create(&engine, err);
    return r->engine ? 0 : -1;
}

static void put_jain(struct run *r, enum figure out, enum group_figure of)
{
    r->figures.has[out] = run_groups_jain(&r->groups, r->group_figures, of,
                                          &r->figures.values[out]);
}

static int read_groups(struct run *r, int64_t end_ns, struct pkv_err *err)
{
    r->group_figures = pkv_alloc(r->groups.num, sizeof *r->group_figures, err);
    if (!r->group_figures || run_groups_read(&r->groups, end_ns, r->group_figures, err) < 0)
        return -1;
    put_jain(r, FIGURE_JAIN_SERVICE, GROUP_SERVICE);
    put_jain(r, FIGURE_JAIN_TTFT, GROUP_TTFT_MEAN);
    return 0;
}

/* The metrics outlive the run. */
static void keep_run(struct run *r)
{
    r->kept.metrics = r->metrics;
    r->metrics = NULL;
    r->kept.has_notes = r->traffic.trace != NULL;
    if (r->kept.has_notes)
        r->kept.notes = *pkv_trace_notes(r->traffic.trace);
}

static int go(struct run *r, struct pkv_err *err)
{
    const struct pkv_run_info no_files = {.version = ""};
    if (should_stop(r))
        return 0;
    if (open_run(r, err) < 0 || pkv_engine_run(r->engine, err) < 0)
        return -1;
    const struct pkv_engine_figures *figures = pkv_engine_figures(r->engine);
    if (figures->outcome == PKV_OUTCOME_INTERRUPTED)
        return 0;
    if (pkv_metrics_finish(r->metrics, figures, &no_files, err) < 0 ||
        read_groups(r, figures->end_ns, err) < 0)
        return -1;
    run_figures_read(&r->figures, pkv_metrics_summary(r->metrics));
    if (r->crew->config->version && r->seed == 0 && r->configuration < COMPARE_PAGE_RUNS)
        keep_run(r);
    return 0;
}

static void close_run(struct run *r)
{
    pkv_engine_destroy(r->engine);
    pkv_metrics_destroy(r->metrics);
    pkv_traffic_close(&r->traffic);
}

/* With the lock, as all below. */
static void fail_run(struct run *r, const struct pkv_err *err)
{
    struct crew *crew = r->crew;
    r->figures.done = false;
    if (r->number >= atomic_load(&crew->first_failed))
        return;
    atomic_store(&crew->first_failed, r->number);
    crew->failure = *err;
}

/* Keep the times of a seed's first run, or compare with them. */
static int pair_up(struct run *r, struct first_run *first, struct pkv_err *err)
{
    struct crew *crew = r->crew;
    struct pkv_compare *c = crew->compare;
    if (r->configuration == 0) {
        first->times = r->times;
        r->times = (struct run_times){.rows = NULL};
        if (r->figures.done && c->num_batches > 1)
            batches_read(c->batches, c->num_batches, &first->times, &first->times);
        first->ended = true;
        pthread_cond_broadcast(&crew->changed);
        return 0;
    }
    while (!first->ended)
        pthread_cond_wait(&crew->changed, &crew->lock);
    if (!r->figures.done || !c->runs[r->seed].done)
        return 0;
    if (c->num_batches > 1)
        batches_read(&c->batches[r->configuration * c->num_batches], c->num_batches,
                     &first->times, &r->times);
    return pairs_add(&c->pairs[r->configuration], &first->times, &r->times, err);
}

static int add_groups(struct run *r, struct pkv_err *err)
{
    struct pkv_compare *c = r->crew->compare;
    if (!r->figures.done)
        return 0;
    return compare_groups_add(&c->groups, &r->groups, r->group_figures,
                              r->configuration * c->num_seeds + r->seed, c->num * c->num_seeds, err);
}

static void hand_in(struct run *r)
{
    struct crew *crew = r->crew;
    struct pkv_compare *c = crew->compare;
    struct first_run *first = &crew->firsts[r->seed];
    struct pkv_err err = {0};
    if (r->configuration == 0)        /* before it is told to have ended */
        c->runs[r->seed] = r->figures;
    if (pair_up(r, first, &err) < 0 || add_groups(r, &err) < 0)
        fail_run(r, &err);
    c->runs[r->configuration * c->num_seeds + r->seed] = r->figures;
    if (--first->num_waited_for == 0)
        run_times_finish(&first->times);
    run_times_finish(&r->times);
    run_groups_finish(&r->groups);
    pkv_free(r->group_figures);
    if (r->figures.done && r->seed == 0)
        c->series[r->configuration] = r->series;
    else
        run_series_finish(&r->series);
    if (r->seed == 0)
        c->kept[r->configuration] = r->kept;
    c->num_done += r->figures.done;
    crew->stopped |= !r->figures.done;
    crew->num_ended++;
    if (crew->config->progress)
        crew->config->progress(crew->config->ctx, crew->num_ended, crew->num_runs);
}

static void begin_run(struct crew *crew, struct run *r)
{
    const struct pkv_compare *c = crew->compare;
    size_t number = crew->next++;
    memset(r, 0, sizeof *r);
    r->crew = crew;
    r->number = number;
    r->configuration = number % c->num;
    r->seed = number / c->num;
    r->scenario = *c->grid->scenarios[r->configuration];
    r->scenario.seed += r->seed;
    r->scenario.sched.seed = r->scenario.synth.seed = r->scenario.seed;
    r->series.width_ns = crew->first_width_ns;
    r->times.window = r->groups.window =
        (struct request_window){r->scenario.measure_after_ns, r->scenario.measure_until_ns};
}

static void *work(void *ctx)
{
    struct crew *crew = ctx;
    struct run r;
    pthread_mutex_lock(&crew->lock);
    while (crew->next < crew->num_runs && !crew->stopped) {
        struct pkv_err err = {0};
        begin_run(crew, &r);
        pthread_mutex_unlock(&crew->lock);
        int rc = go(&r, &err);
        close_run(&r);
        pthread_mutex_lock(&crew->lock);
        if (rc < 0)
            fail_run(&r, &err);
        hand_in(&r);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* This thread is one of them; if others cannot be had, it does their work. */
static int run_all(struct crew *crew, struct pkv_err *err)
{
    size_t wanted = crew->config->num_threads - 1, num = 0;
    if (wanted > crew->num_runs - 1)
        wanted = crew->num_runs - 1;
    pthread_t *threads = pkv_alloc(wanted, sizeof *threads, err);
    if (!threads)
        return -1;
    while (num < wanted && pthread_create(&threads[num], NULL, work, crew) == 0)
        num++;
    work(crew);
    for (size_t i = 0; i < num; i++)
        pthread_join(threads[i], NULL);
    pkv_free(threads);
    return 0;
}

/* Is what a path names read from its beginning each time it is opened? */
static bool can_be_read_again(const char *path)
{
    struct stat info;
    return strcmp(path, "-") != 0 && (stat(path, &info) < 0 || S_ISREG(info.st_mode) ||
                                      S_ISDIR(info.st_mode));
}

static int check_scenario(const struct pkv_scenario *s, size_t num_runs, uint32_t num_seeds,
                          struct pkv_err *err)
{
    if (s->is_trace && num_runs > 1 && !can_be_read_again(s->trace))
        return pkv_fail_at(err, s->trace, 0, 0, "can be read only once, and each run reads its "
                           "trace anew; a file is needed");
    if (s->is_trace && num_seeds > 1)
        return pkv_fail(err, PKV_ERR_INPUT, "several seeds are for synthetic traffic "
                        "(traffic.requests): a trace is the same whatever the seed");
    if (s->warm)
        return pkv_fail(err, PKV_ERR_INPUT, "kv.warm: every run of a comparison begins with an empty "
                        "cache; leave it out");
    if (s->seed > UINT64_MAX - (num_seeds - 1))
        return pkv_fail(err, PKV_ERR_INPUT, "%u seeds from %llu on are beyond 64 bits", num_seeds,
                        (unsigned long long)s->seed);
    return 0;
}

static int check(const struct pkv_compare_config *config, size_t *failed, struct pkv_err *err)
{
    const struct pkv_grid *grid = config->grid;
    for (size_t i = 0; i < grid->num_axes && config->num_seeds > 1; i++)
        if (strcmp(grid->axes[i].key, "traffic.seed") == 0)
            return pkv_fail(err, PKV_ERR_INPUT, "traffic.seed is varied, and several seeds are "
                            "wanted of each configuration; give one of the two");
    for (size_t i = 0; i < grid->num; i++) {
        *failed = i;
        if (check_scenario(grid->scenarios[i], grid->num * config->num_seeds, config->num_seeds,
                           err) < 0)
            return -1;
    }
    return 0;
}

/* The least that a step can take. */
static int64_t shortest_step_ns(const struct pkv_step_time *t)
{
    return t->law == PKV_STEP_TIME_FIXED ? t->fixed_ns : t->base_ns;
}

static int64_t shortest_of_all_ns(const struct pkv_grid *grid)
{
    int64_t shortest_ns = INT64_MAX;
    for (size_t i = 0; i < grid->num; i++) {
        int64_t step_ns = shortest_step_ns(&grid->scenarios[i]->step_time);
        shortest_ns = step_ns < shortest_ns ? step_ns : shortest_ns;
    }
    return shortest_ns;
}

/* 0 when not all steps of all configurations take the same. */
static int64_t common_step_ns(const struct pkv_grid *grid)
{
    for (size_t i = 0; i < grid->num; i++) {
        const struct pkv_step_time *t = &grid->scenarios[i]->step_time;
        if (t->law != PKV_STEP_TIME_FIXED || t->fixed_ns != grid->scenarios[0]->step_time.fixed_ns)
            return 0;
    }
    return grid->scenarios[0]->step_time.fixed_ns;
}

static struct pkv_compare *create(const struct pkv_compare_config *config, struct pkv_err *err)
{
    struct pkv_compare *c = pkv_alloc(1, sizeof *c, err);
    if (!c)
        return NULL;
    c->grid = config->grid;
    c->num = config->grid->num;
    c->num_seeds = config->num_seeds;
    c->step_ns = common_step_ns(c->grid);
    c->runs = pkv_alloc(c->num * c->num_seeds, sizeof *c->runs, err);
    c->pairs = c->runs ? pkv_alloc(c->num, sizeof *c->pairs, err) : NULL;
    c->num_batches = c->num_seeds > 1 || compare_varies_traffic(c) ? 0 : config->num_batches;
    c->batches = c->pairs ? pkv_alloc(c->num * c->num_batches, sizeof *c->batches, err) : NULL;
    c->series = c->batches ? pkv_alloc(c->num, sizeof *c->series, err) : NULL;
    c->kept = c->series ? pkv_alloc(c->num, sizeof *c->kept, err) : NULL;
    c->version = config->version;
    bool failed = !c->kept;
    for (size_t i = 0; i < c->num && !failed; i++)
        failed = pairs_init(&c->pairs[i], err) < 0;
    if (!failed)
        return c;
    pkv_compare_destroy(c);
    return NULL;
}

void pkv_compare_destroy(struct pkv_compare *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->num && c->pairs; i++)
        pairs_finish(&c->pairs[i]);
    for (size_t i = 0; i < c->num && c->series; i++)
        run_series_finish(&c->series[i]);
    for (size_t i = 0; i < c->num && c->kept; i++)
        pkv_metrics_destroy(c->kept[i].metrics);
    pkv_free(c->kept);
    pkv_free(c->series);
    compare_groups_finish(&c->groups);
    pkv_free(c->batches);
    pkv_free(c->pairs);
    pkv_free(c->runs);
    pkv_free(c);
}

static void finish_crew(struct crew *crew)
{
    for (size_t i = 0; i < crew->compare->num_seeds && crew->firsts; i++)
        run_times_finish(&crew->firsts[i].times);
    pkv_free(crew->firsts);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
}

static int run_crew(const struct pkv_compare_config *config, struct pkv_compare *c,
                    size_t *failed, struct pkv_err *err)
{
    struct crew crew = {.config = config, .compare = c, .num_runs = c->num * c->num_seeds,
                        .first_width_ns = shortest_of_all_ns(c->grid), .first_failed = SIZE_MAX};
    int status = -1;
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.changed, NULL);
    crew.firsts = pkv_alloc(c->num_seeds, sizeof *crew.firsts, err);
    for (size_t i = 0; i < c->num_seeds && crew.firsts; i++)
        crew.firsts[i].num_waited_for = c->num;
    if (crew.firsts)
        status = run_all(&crew, err);
    if (status == 0 && crew.first_failed != SIZE_MAX) {
        *failed = crew.first_failed % c->num;
        if (err)
            *err = crew.failure;
        status = -1;
    }
    finish_crew(&crew);
    return status;
}

struct pkv_compare *pkv_compare_run(const struct pkv_compare_config *config, size_t *out_failed,
                                    struct pkv_err *err)
{
    size_t failed = 0;
    PKV_ASSERT(config->num_threads > 0 && config->num_seeds > 0 &&
               config->num_batches <= PKV_COMPARE_MAX_BATCHES);
    struct pkv_compare *c = check(config, &failed, err) < 0 ? NULL : create(config, err);
    if (c && run_crew(config, c, &failed, err) < 0) {
        pkv_compare_destroy(c);
        c = NULL;
    }
    if (out_failed)
        *out_failed = failed;
    return c;
}
