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
#include "pagedkv/sizing.h"
#include "pagedkv/trace.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* One key given outside the file. Settings of origin "--set" win over all others; of two with the
 * same key the later one wins. A setting replaces what the file says with another key for the same
 * thing (kv.num_gpu_blocks over kv.num_blocks, traffic.trace over traffic.requests). */
struct pkv_setting {
    const char *key;       /* dotted path, "scheduler.preset" */
    const char *value;     /* YAML: a scalar, or flow style; text and paths need no quotes */
    const char *origin;    /* shown in errors: "--set", "--block-size" */
};

/* What a model makes of the pool. */
struct pkv_scenario_kv {
    struct pkv_kv_model model;
    struct pkv_kv_plan plan;
    uint32_t block_size;               /* tokens, the general one */
    uint64_t pools[PKV_KV_MAX_RANKS];  /* [num_pools] bytes, see pkv_kv_fit_make() */
    size_t num_pools;                  /* 0 = the number of blocks was given */
    struct pkv_kv_fit fit;             /* when there are pools */
    uint64_t stage_layers[PKV_KV_MAX_STAGES];   /* [kv_num_stages] */
};

struct pkv_scenario {
    char *title, *question;            /* owned; NULL = none */
    char *preset;                      /* owned */
    struct pkv_sched_config sched;
    struct pkv_step_time step_time;
    bool step_time_given;              /* it is not the default, which is not calibrated */
    uint64_t seed;
    char *kv_model;                    /* owned; a known name or a path; NULL = none */
    unsigned kv_dtype;                 /* 0 = that of the weights, else an enum pkv_kv_dtype + 1 */
    uint32_t kv_tp, kv_pp, kv_num_stages;   /* the last: stages whose layers are given, 0 = none */
    uint32_t kv_draft_layers;
    struct pkv_scenario_kv *kv;        /* owned; NULL = neither a model nor a budget */
    char *warm;                        /* owned; folder of the run whose cache it begins with; NULL = empty */
    bool is_trace;                     /* traffic: a trace, or synthetic */
    char *trace;                       /* owned; path as to be opened */
    struct pkv_trace_options trace_options;
    struct pkv_synth_config synth;
    double beam_drop;                  /* share; sched has it in thousandths */
    int64_t target_ttft_ns, target_itl_ns;   /* 0 = none */
    int64_t measure_after_ns, measure_until_ns;   /* what figures cover; until 0 = to the end */
    int64_t horizon_ns;                /* 0 = none */
    struct pkv_scenario_private *private_;   /* owned */
};

/* path NULL = no file, only settings (what `replay` does). Relative paths in the file start from
 * the file's folder, those in settings from the current one. */
struct pkv_scenario *pkv_scenario_load(const char *path, const struct pkv_setting *settings,
                                       size_t num_settings, struct pkv_err *err);
/* The same of a text that is in no file. `name` stands for a path in errors; relative paths start from
 * the current folder. */
struct pkv_scenario *pkv_scenario_parse(const char *name, const char *text,
                                        const struct pkv_setting *settings, size_t num_settings,
                                        struct pkv_err *err);
void pkv_scenario_destroy(struct pkv_scenario *scenario);

/* The scenario as it will run, every key written out, as YAML; loading it gives the same run. Paths
 * are written absolute, so that it may be loaded from any folder. Ends with NUL; free with
 * pkv_scenario_free_text(). */
char *pkv_scenario_resolved(const struct pkv_scenario *scenario, struct pkv_err *err);
void pkv_scenario_free_text(char *text);
/* Would the resolved text name the same files? YAML is UTF-8, and a path may be any bytes: -1 with
 * PKV_ERR_INPUT when one is not UTF-8. */
int pkv_scenario_check_paths(const struct pkv_scenario *scenario, struct pkv_err *err);
/* May DIR/NAME (dir NULL = name is the whole path) be written? -1 with PKV_ERR_INPUT when it is the
 * scenario's own file (path, NULL = none), or one that it names: a trace, a model's config. */
int pkv_scenario_spare(const struct pkv_scenario *scenario, const char *path, const char *dir,
                       const char *name, struct pkv_err *err);
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

/* The KV sizes of a model from its config.json as Hugging Face has it, nested text models with it. What
 * the config does not say and its class has no default for is PKV_ERR_INPUT with file, line, column
 * and the key; a model_type that is not known is taken as plain attention if no key speaks against
 * it, and out->note says so. */
int pkv_kv_model_load(const char *path, struct pkv_kv_model *out, struct pkv_err *err);
/* The same by name: one that is known, else a path. */
int pkv_kv_model_open(const char *name_or_path, struct pkv_kv_model *out, struct pkv_err *err);

/* The groups of a plan as a cache has them. 0, or -1 with PKV_ERR_INPUT when a cache has no room for so
 * many of them, or their blocks do not go together. */
int pkv_scenario_plan_groups(const struct pkv_kv_plan *plan, struct pkv_sched_config *out,
                             struct pkv_err *err);
/* "[{type: full}, {type: sliding, window: 1024}]". Free with pkv_scenario_free_text(). */
char *pkv_scenario_groups_text(const struct pkv_sched_config *config, struct pkv_err *err);

/* Memory for the cache, as one rank printed it. */
#define PKV_LOG_MAX_MEMORIES 256u
struct pkv_log_memory {
    uint64_t printed;                /* GiB times 10^places */
    uint32_t places;                 /* decimals that were printed */
    uint32_t num_terms;              /* figures added up here, each of which had been rounded */
    int32_t stage, tp_rank, rank;    /* as its line is marked, -1 = it is not; rank: of all stages */
};

/* What an engine printed when it started, vLLM or SGLang; 0, "" or false = it did not say. */
struct pkv_startup_log {
    bool is_sglang;
    bool has_null_block;             /* vLLM V1: one of the blocks is never used */
    char model[PKV_KV_NAME_SIZE];
    char kv_dtype[32], dtype[32];    /* as written; "auto" means that of the weights */
    uint64_t kv_dtype_line;          /* where that stands in the log; column 0 = not known */
    uint32_t kv_dtype_column;
    uint64_t num_gpu_blocks, num_cpu_blocks, tokens;
    bool is_overridden;              /* the blocks are what somebody asked for, whatever the memory */
    uint32_t block_size;             /* as set, or as it was raised beside recurrent state */
    uint64_t memory_bytes;           /* of the pool on every rank, exact */
    struct pkv_log_memory memories[PKV_LOG_MAX_MEMORIES];   /* [num_memories] */
    uint32_t num_memories;
    uint64_t max_model_len, concurrency_len;   /* the latter: of which the concurrency speaks */
    uint32_t concurrency_hundredths;
    uint32_t tp, pp, dcp;
    uint64_t tp_line, pp_line, dcp_line;   /* where these stand; 0 = nowhere */
    uint64_t max_num_batched_tokens, max_num_seqs;
    uint32_t num_speculative_tokens;
    char draft_method[32];           /* as written, or what its model's name tells */
    bool prefix_cache_off, chunked_prefill_off, async_scheduling;
    bool ranks_differ;               /* set by the caller: a rank has less memory than is printed */
};
/* path "-" = standard input. A last line without its end may be cut: a number or word that touches the
 * end of the file is not taken. errors: PKV_ERR_INPUT when nothing in it says how large the pool is, when
 * more than PKV_LOG_MAX_MEMORIES ranks do, when a setting's number is above what any engine has, and
 * when a line has more than 64 MiB.
 *   cost  a line at a time: memory of the longest one */
int pkv_startup_log_read(const char *path, struct pkv_startup_log *out, struct pkv_err *err);

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

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
