/* Which steps of a small run preempt somebody, and how few blocks were free then. */
#include <inttypes.h>
#include <stdio.h>

#include "pagedkv/engine.h"
#include "pagedkv/scenario.h"

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    (void)ctx, (void)sched, (void)err;
    if (row->preempted > 0)
        printf("step %" PRId64 ": %" PRId64 " preempted, %" PRId64 " waiting, %" PRId64
               " blocks free\n", row->step, row->preempted, row->waiting, row->free_blocks);
    return 0;
}

int main(void)
{
    const struct pkv_setting settings[] = {   /* keys of a scenario; a file would do as well */
        {"kv.num_blocks", "24", "example"},
        {"step_time", "{model: fixed, ms: 1}", "example"},
        {"traffic.requests", "8", "example"},
        {"traffic.arrivals", "{law: constant, rate_per_s: 100}", "example"},
        {"traffic.prompt_tokens", "100", "example"},
        {"traffic.output_tokens", "60", "example"},
    };
    struct pkv_err err = {.code = PKV_ERR_NONE};
    struct pkv_traffic traffic = {0};
    struct pkv_engine *engine = NULL;
    struct pkv_scenario *scenario =
        pkv_scenario_load(NULL, settings, sizeof settings / sizeof *settings, &err);
    if (scenario != NULL && pkv_scenario_open_traffic(scenario, &traffic, &err) == 0) {
        struct pkv_engine_config config = {
            .sched = scenario->sched, .step_time = scenario->step_time, .source = traffic.source,
            .sinks = {{.step = on_step}}, .num_sinks = 1, .stuck_steps = 1,
        };
        engine = pkv_engine_create(&config, &err);
    }
    int rc = engine != NULL ? pkv_engine_run(engine, &err) : -1;
    if (rc == 0)
        printf("%" PRIu64 " completed\n", pkv_engine_figures(engine)->completed);
    else
        fprintf(stderr, "%s\n", err.text);
    pkv_engine_destroy(engine);
    pkv_traffic_close(&traffic);
    pkv_scenario_destroy(scenario);
    return rc == 0 ? 0 : 1;
}
