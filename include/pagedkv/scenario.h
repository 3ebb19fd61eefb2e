/*
 * scenario.h - YAML in, a checked configuration out.
 *
 * One rule for what wins: preset, then every explicit key, then settings (flags of the program
 * before --set). All three go through one table of keys. Unknown keys, wrong types, impossible
 * combinations and exclusive pairs are PKV_ERR_INPUT with file, line and column; a setting's place
 * is its origin.
 */
#ifndef PAGEDKV_SCENARIO_H
#define PAGEDKV_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/engine.h"
#include "pagedkv/err.h"
#include "pagedkv/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One key given outside the file. Settings of origin "--set" win over all others; of two with the
 * same key the later one wins. A setting replaces what the file says with another key for the same
 * thing (kv.num_gpu_blocks over kv.num_blocks, traffic.trace over traffic.requests). */
struct pkv_setting {
    const char *key;       /* dotted path, "scheduler.preset" */
    const char *value;     /* YAML: a scalar, or flow style; text and paths need no quotes */
    const char *origin;    /* shown in errors: "--set", "--block-size" */
};

struct pkv_scenario {
    char *title, *question;            /* owned; NULL = none */
    char *preset;                      /* owned */
    struct pkv_sched_config sched;
    struct pkv_step_time step_time;
    bool step_time_given;              /* it is not the default, which is not calibrated */
    uint64_t seed;
    bool is_trace;                     /* traffic: a trace, or synthetic */
    char *trace;                       /* owned; path as to be opened */
    struct pkv_trace_options trace_options;
    struct pkv_synth_config synth;
    int64_t target_ttft_ns, target_itl_ns;   /* 0 = none */
    int64_t measure_after_ns, measure_until_ns;   /* what figures cover; until 0 = to the end */
    int64_t horizon_ns;                /* 0 = none */
    struct pkv_scenario_private *private_;   /* owned */
};

/* path NULL = no file, only settings (what `replay` does). Relative paths in the file start from
 * the file's folder, those in settings from the current one. */
struct pkv_scenario *pkv_scenario_load(const char *path, const struct pkv_setting *settings,
                                       size_t num_settings, struct pkv_err *err);
void pkv_scenario_destroy(struct pkv_scenario *scenario);

/* The scenario as it will run, every key written out, as YAML; loading it gives the same run. Paths
 * are written absolute, so that it may be loaded from any folder. Ends with NUL; free with
 * pkv_scenario_free_text(). */
char *pkv_scenario_resolved(const struct pkv_scenario *scenario, struct pkv_err *err);
void pkv_scenario_free_text(char *text);
/* Would the resolved text name the same files? YAML is UTF-8, and a path may be any bytes: -1 with
 * PKV_ERR_INPUT when one is not UTF-8. */
int pkv_scenario_check_paths(const struct pkv_scenario *scenario, struct pkv_err *err);
/* SHA-256 of the resolved text as 64 hex digits and NUL. The folders of trace paths do not count,
 * so the sum is that of the scenario wherever it lies. */
void pkv_scenario_sha256(const char *resolved, char out[65]);

/* The traffic it names. The caller closes. */
struct pkv_traffic {
    struct pkv_trace *trace;    /* owned; or NULL */
    struct pkv_synth *synth;    /* owned; or NULL */
    struct pkv_source source;
};
int pkv_scenario_open_traffic(const struct pkv_scenario *scenario, struct pkv_traffic *out,
                              struct pkv_err *err);
void pkv_traffic_close(struct pkv_traffic *traffic);

/* A grid: keys, each with the values it takes. Its configurations are all their combinations, the
 * first key changing slowest; a configuration is the scenario with one value of each key, which
 * wins over everything else that is said about it. */
struct pkv_grid_axis {
    char *key;               /* owned; dotted path */
    char **values;           /* owned, [num_values]; as written */
    size_t num_values;       /* 1 or more */
};
struct pkv_grid {
    struct pkv_grid_axis *axes;        /* owned, [num_axes] */
    size_t num_axes;                   /* 1 or more */
    struct pkv_scenario **scenarios;   /* owned, [num], each owned: the configurations in order */
    size_t num;                        /* 1 .. PKV_GRID_MAX */
};
#define PKV_GRID_MAX 4096u

/* The grid of a scenario's `vary:`, a map of dotted keys to lists of values; every configuration is
 * loaded, and so checked, as pkv_scenario_load() does.
 *   varies   [num_varies] if there are any they stand for the whole of `vary:`: a key, its values
 *            parted by commas (those in quotes or brackets part nothing), each written as that of a
 *            setting; origin as for settings
 *   errors   PKV_ERR_INPUT at the key or the value: unknown key, wrong value, an empty list, a key
 *            twice, nothing to vary, more than PKV_GRID_MAX configurations; PKV_ERR_MEMORY */
struct pkv_grid *pkv_grid_load(const char *path, const struct pkv_setting *settings,
                               size_t num_settings, const struct pkv_setting *varies,
                               size_t num_varies, struct pkv_err *err);
void pkv_grid_destroy(struct pkv_grid *grid);
/* Which of its values has a key in a configuration? */
size_t pkv_grid_place(const struct pkv_grid *grid, size_t configuration, size_t axis);

/* The settings file of a recorded engine log (NAME.config.json), read strictly. */
struct pkv_recording {
    struct pkv_sched_config sched;
    bool log_blocks;
    uint64_t max_steps;
    uint32_t stuck_steps;
    char *trace;               /* owned; NULL = the requests file has the prompts. Resolved path */
    uint64_t trace_rows;
    int64_t trace_step_ms;
    uint32_t tokens_per_hash_id;
};
/* preset NULL or "vllm" = every setting from the file; another preset's settings win over it. */
struct pkv_recording *pkv_recording_load(const char *path, const char *preset,
                                         struct pkv_err *err);
void pkv_recording_destroy(struct pkv_recording *recording);

#ifdef __cplusplus
}
#endif
#endif
