/*
 * sim.c - a run from its scenario to its figures, the record kept in memory, in files, or both.
 *
 * What a scenario's keys mean for the parts of a run is said here once, for the program as well.
 */
#include "pagedkv/sim.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "pagedkv/report.h"

struct pkv_sim {
    struct pkv_scenario *scenario;   /* owned, as all pointers below */
    char *resolved;
    struct pkv_traffic traffic;
    struct pkv_metrics *metrics;
    struct pkv_columns *columns;
    struct pkv_html *html;           /* NULL = no report.html is wanted */
    struct pkv_engine *engine;
    struct pkv_engine_figures figures;   /* the engine's, which is gone once all is reckoned */
    const char *json;                /* borrowed from metrics */
    atomic_bool is_to_stop;
};

struct pkv_metrics_config pkv_sim_metrics_config(const struct pkv_scenario *scenario)
{
    const struct pkv_sched_config *sched = &scenario->sched;
    return (struct pkv_metrics_config){
        .block_size = pkv_groups_block_size(sched->groups, sched->num_groups),
        .num_gpu_blocks = sched->num_blocks + 1,
        .has_speculation = sched->speculation.method != PKV_SPECULATION_NONE,
        .has_waste = sched->policies.layout->create != NULL,
        .after_ns = scenario->measure_after_ns,
        .until_ns = scenario->measure_until_ns,
        .target_ttft_ns = scenario->target_ttft_ns,
        .target_itl_ns = scenario->target_itl_ns,
    };
}

struct pkv_engine_config pkv_sim_engine_config(const struct pkv_scenario *scenario,
                                               const struct pkv_traffic *traffic)
{
    return (struct pkv_engine_config){
        .sched = scenario->sched,
        .step_time = scenario->step_time,
        .source = traffic->source,
        .horizon_ns = scenario->horizon_ns,
        .stuck_steps = 1,
    };
}

int pkv_sim_files(const struct pkv_scenario *scenario, unsigned files, unsigned *out,
                  struct pkv_err *err)
{
    *out = files != 0 ? files : PKV_FILE_ALL;
    if (scenario->sched.prefix_cache)
        return 0;
    *out &= ~(unsigned)PKV_FILE_CACHE;
    if ((files & PKV_FILE_CACHE) == 0)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, "there is no cache to write: kv.prefix_cache is false");
}

int pkv_sim_spare(const struct pkv_scenario *scenario, const char *path, const char *dir,
                  unsigned files, struct pkv_err *err)
{
    static const struct { unsigned bit; const char *name; } known[] = {
#define ROW(sym, bit, name) {bit, name},
        PKV_FILES(ROW)
#undef ROW
    };
    for (size_t i = 0; dir && i < sizeof known / sizeof *known; i++)
        if ((files & known[i].bit) != 0 &&
            pkv_scenario_spare(scenario, path, dir, known[i].name, err) < 0)
            return -1;
    return 0;
}

static bool should_stop(void *ctx)
{
    const struct pkv_sim *sim = ctx;
    return atomic_load_explicit(&sim->is_to_stop, memory_order_relaxed);
}

static struct pkv_scenario *load(const struct pkv_sim_config *c, struct pkv_err *err)
{
    if (c->path || !c->text)
        return pkv_scenario_load(c->path, c->settings, c->num_settings, err);
    return pkv_scenario_parse(c->text_name ? c->text_name : "", c->text, c->settings, c->num_settings,
                              err);
}

static int open_record(struct pkv_sim *sim, const struct pkv_sim_config *c, struct pkv_err *err)
{
    struct pkv_metrics_config metrics = pkv_sim_metrics_config(sim->scenario);
    metrics.dir = c->dir;
    if (pkv_sim_files(sim->scenario, c->files, &metrics.files, err) < 0)
        return -1;
    metrics.every = c->columns.every;
    metrics.on_change = c->columns.on_change;
    if (c->dir && (metrics.files & PKV_FILE_SCENARIO) != 0 &&
        pkv_scenario_check_paths(sim->scenario, err) < 0)
        return -1;
    if (pkv_sim_spare(sim->scenario, c->path, c->dir, metrics.files, err) < 0)
        return -1;
    sim->columns = pkv_columns_create(&c->columns, err);
    sim->metrics = sim->columns ? pkv_metrics_create(&metrics, err) : NULL;
    if (!sim->metrics || !c->dir || (metrics.files & PKV_FILE_REPORT) == 0)
        return sim->metrics ? 0 : -1;
    const struct pkv_html_config page = {.dir = c->dir, .scenario = sim->scenario};
    sim->html = pkv_html_create(&page, err);
    return sim->html ? 0 : -1;
}

static int open_engine(struct pkv_sim *sim, const struct pkv_sim_config *c, struct pkv_err *err)
{
    struct pkv_engine_config engine = pkv_sim_engine_config(sim->scenario, &sim->traffic);
    engine.sinks[engine.num_sinks++] = pkv_metrics_sink(sim->metrics);
    engine.sinks[engine.num_sinks++] = pkv_columns_sink(sim->columns);
    if (sim->html)
        engine.sinks[engine.num_sinks++] = pkv_html_sink(sim->html);
    engine.check = c->check;
    engine.should_stop = should_stop;
    engine.stop_ctx = sim;
    struct pkv_cache_state warm = {0};
    if (sim->scenario->warm &&
        pkv_warm_read(sim->scenario->warm, &sim->scenario->sched, &warm, err) < 0)
        return -1;
    engine.warm = sim->scenario->warm ? &warm : NULL;
    sim->engine = pkv_engine_create(&engine, err);
    pkv_cache_state_free(&warm);
    return sim->engine ? 0 : -1;
}

/* What only a run under way needs: columns may be looked at for a long time. */
static void close_engine(struct pkv_sim *sim)
{
    pkv_engine_destroy(sim->engine);
    sim->engine = NULL;
    pkv_traffic_close(&sim->traffic);
}

struct pkv_sim *pkv_sim_create(const struct pkv_sim_config *config, struct pkv_err *err)
{
    struct pkv_sim *sim = pkv_alloc(1, sizeof *sim, err);
    if (!sim)
        return NULL;
    atomic_init(&sim->is_to_stop, false);
    sim->scenario = load(config, err);
    if (sim->scenario)
        sim->resolved = pkv_scenario_resolved(sim->scenario, err);
    if (sim->resolved && pkv_scenario_open_traffic(sim->scenario, &sim->traffic, err) == 0 &&
        open_record(sim, config, err) == 0 && open_engine(sim, config, err) == 0)
        return sim;
    pkv_sim_destroy(sim);
    return NULL;
}

void pkv_sim_destroy(struct pkv_sim *sim)
{
    if (!sim)
        return;
    close_engine(sim);
    pkv_metrics_destroy(sim->metrics);
    pkv_columns_destroy(sim->columns);
    pkv_html_destroy(sim->html);
    pkv_scenario_free_text(sim->resolved);
    pkv_scenario_destroy(sim->scenario);
    pkv_free(sim);
}

int pkv_sim_run(struct pkv_sim *sim, struct pkv_err *err)
{
    int status = pkv_engine_run(sim->engine, err);
    sim->figures = *pkv_engine_figures(sim->engine);
    return status;
}

void pkv_sim_stop(struct pkv_sim *sim)
{
    atomic_store_explicit(&sim->is_to_stop, true, memory_order_relaxed);
}

/* A page is written where the other files are kept, as that of another run must not stand among them. */
static int write_page(struct pkv_sim *sim, const struct pkv_run_info *info,
                      const struct pkv_trace_notes *notes, struct pkv_err *err)
{
    const struct pkv_html_run run = {.metrics = sim->metrics, .notes = notes, .info = info};
    return sim->html ? pkv_html_write(sim->html, &run, err) : 0;
}

int pkv_sim_finish(struct pkv_sim *sim, int64_t wall_ns, struct pkv_err *err)
{
    char sha256[65];
    pkv_scenario_sha256(sim->resolved, sha256);
    const struct pkv_run_info info = {
        .version = pkv_version(),
        .seed = sim->scenario->seed,
        .scenario_sha256 = sha256,
        .scenario_yaml = sim->resolved,
        .wall_ns = wall_ns,
        .cache = pkv_engine_cache(sim->engine),
    };
    struct pkv_trace_notes notes = {0};
    bool has_notes = sim->traffic.trace != NULL;
    if (has_notes)
        notes = *pkv_trace_notes(sim->traffic.trace);
    int status = pkv_metrics_finish(sim->metrics, &sim->figures, &info, err);
    close_engine(sim);
    if ((status == 0 || pkv_metrics_has_kept(sim->metrics)) &&
        write_page(sim, &info, has_notes ? &notes : NULL, status < 0 ? NULL : err) < 0)
        status = -1;
    if (pkv_columns_finish(sim->columns, status < 0 ? NULL : err) < 0)
        status = -1;
    sim->json = pkv_metrics_json(sim->metrics, &info, status < 0 ? NULL : err);
    return sim->json ? status : -1;
}

const char *pkv_sim_summary_json(const struct pkv_sim *sim)
{
    return sim->json;
}

const char *pkv_sim_scenario_yaml(const struct pkv_sim *sim)
{
    return sim->resolved;
}

const struct pkv_columns *pkv_sim_columns(const struct pkv_sim *sim)
{
    return sim->columns;
}

const struct pkv_engine_figures *pkv_sim_figures(const struct pkv_sim *sim)
{
    return &sim->figures;
}

const char *pkv_sim_diagnosis(const struct pkv_sim *sim)
{
    return sim->figures.diagnosis;
}
