/*
 * sim.h - a scenario, run as a whole: the one call sequence for whoever wants the results of a run and
 * not its parts.
 *
 *   pkv_sim_create()   reads the scenario and its settings, opens its traffic
 *   pkv_sim_run()      to the end, or until pkv_sim_stop()
 *   pkv_sim_finish()   reckons the figures, writes the files that are wanted
 *   pkv_sim_columns()  steps and requests as arrays (columns.h), pkv_sim_summary_json() the figures
 *   pkv_sim_destroy()
 *
 * No globals: one sim is used by one thread at a time, several run side by side. The same scenario and
 * settings give the same results as `pagedkv run`, byte for byte.
 */
#ifndef PAGEDKV_SIM_H
#define PAGEDKV_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/columns.h"
#include "pagedkv/engine.h"
#include "pagedkv/err.h"
#include "pagedkv/metrics.h"
#include "pagedkv/scenario.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* "0.1.0" */
const char *pkv_version(void);

/* ---- the parts ---- */

/* What a scenario says of the record of its run. Files are the caller's to add. */
struct pkv_metrics_config pkv_sim_metrics_config(const struct pkv_scenario *scenario);
/* And of its engine. Sinks, checks and when to stop are the caller's to add. */
struct pkv_engine_config pkv_sim_engine_config(const struct pkv_scenario *scenario,
                                               const struct pkv_traffic *traffic);
/* Which files (of enum pkv_file, 0 = all) there are to write: without a prefix cache there is no state of
 * one, and asking for it is PKV_ERR_INPUT. */
int pkv_sim_files(const struct pkv_scenario *scenario, unsigned files, unsigned *out,
                  struct pkv_err *err);
/* May these files (of enum pkv_file) be written to dir? -1 with PKV_ERR_INPUT when one is read by the
 * run. path = the scenario's own file, NULL = none. */
int pkv_sim_spare(const struct pkv_scenario *scenario, const char *path, const char *dir,
                  unsigned files, struct pkv_err *err);

/* ---- the whole ---- */

struct pkv_sim_config {
    /* The scenario: a file, or else YAML text with the name that stands for its path in errors, or
     * neither: then the settings are all there is. */
    const char *path, *text, *text_name;
    const struct pkv_setting *settings;   /* [num_settings] */
    size_t num_settings;
    const char *dir;                      /* where files go, made if missing; NULL = no files */
    unsigned files;                       /* of enum pkv_file; 0 = all */
    bool check;                           /* recount all invariants after every step */
    struct pkv_columns_config columns;    /* every and on_change are those of steps.csv, too */
};

struct pkv_sim;
/* Nothing of config is needed any more once this has returned.
 *   errors  PKV_ERR_INPUT with a place, PKV_ERR_MEMORY */
struct pkv_sim *pkv_sim_create(const struct pkv_sim_config *config, struct pkv_err *err);
void pkv_sim_destroy(struct pkv_sim *sim);   /* columns and texts with it */
/* Once. 0 with the outcome in the figures, or -1 as pkv_engine_run(). */
int pkv_sim_run(struct pkv_sim *sim, struct pkv_err *err);
/* May be called from any thread, and from a signal handler: the run ends with the step at hand, with
 * outcome interrupted. */
void pkv_sim_stop(struct pkv_sim *sim);
/* Once, after the run, also after one that failed: what was done is kept. wall_ns = how long it took, for
 * the summary. 0, or -1 with PKV_ERR_IO or PKV_ERR_MEMORY. */
int pkv_sim_finish(struct pkv_sim *sim, int64_t wall_ns, struct pkv_err *err);

/* After finish, borrowed: the text of summary.json; of scenario.yaml. */
const char *pkv_sim_summary_json(const struct pkv_sim *sim);
const char *pkv_sim_scenario_yaml(const struct pkv_sim *sim);
const struct pkv_columns *pkv_sim_columns(const struct pkv_sim *sim);
/* After the run: how it ended, and what it was stuck on, if it was. */
const struct pkv_engine_figures *pkv_sim_figures(const struct pkv_sim *sim);
/* The same in words, "" = it was not stuck. */
const char *pkv_sim_diagnosis(const struct pkv_sim *sim);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
