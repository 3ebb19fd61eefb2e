/*
 * size_log_private.h - a start-up log held against a model, between the files that do it.
 */
#ifndef PKV_REPORT_SIZE_LOG_PRIVATE_H
#define PKV_REPORT_SIZE_LOG_PRIVATE_H

#include "report/size_private.h"

enum log_verdict { LOG_AGREES, LOG_SMALLEST_RANK, LOG_DIFFERS };

struct log_check {
    const char *name;
    enum log_verdict verdict;
    uint64_t printed, low, high;     /* what it may be */
};

/* A memory that was printed, as the rank it is of. */
struct log_rank {
    int32_t stage, tp_rank;          /* -1 = the log does not say */
    const struct pkv_log_memory *memory;   /* NULL = given in bytes */
    uint64_t low_bytes, high_bytes;  /* that it may stand for */
    uint64_t block_bytes;            /* 0 = it stores nothing, or which stage it is decides */
    uint64_t low, high;              /* blocks that these hold */
};

#define MAX_CHECKS 4u
struct log_view {
    const struct pkv_startup_log *log;
    const struct pkv_kv_model *model;    /* NULL = unknown */
    struct pkv_kv_plan plan;
    uint64_t block_bytes;                /* of the largest stage; 0 = unknown */
    uint64_t num_blocks;                 /* 0 = it cannot be told */
    struct log_rank ranks[PKV_LOG_MAX_MEMORIES];
    uint32_t num_ranks;                  /* 0 = no model, or no memory */
    int32_t limiting_rank;               /* of these with the fewest blocks; -1 = which, is not known */
    bool has_range;
    uint64_t low, high;                  /* blocks that the printed memory may stand for */
    const char *rule;                    /* by which the tokens were printed */
    struct log_check checks[MAX_CHECKS];
    size_t num_checks;
    enum pkv_log_answer answer;
};

/* SGLang keeps layers of full attention, windows and state in pools of their own, of which it prints
 * one: such a log is not held against groups that share a pool. */
bool log_has_other_pools(const struct log_view *v);

/* Fills ranks, the range and the limiting rank; the plan is made, block_bytes known. */
void log_find_range(struct log_view *v);
/* May the engine have fewer blocks than the memory that was printed holds? */
bool log_may_be_less(const struct log_view *v);
/* Bytes that so many blocks leave of a rank's memory; false = they are more than it has. */
bool log_stranded(const struct log_rank *rank, uint64_t num_blocks, uint64_t *out_low,
                  uint64_t *out_high);

/* The kv: part of a scenario with this pool. 0; or -1 with PKV_ERR_INPUT and why there can be none. */
int log_add_kv_part(struct pkv_text *t, const struct log_view *v, struct pkv_err *err);

char *log_text(const struct log_view *v, const struct pkv_report_style *style, struct pkv_err *err);
char *log_json(const struct log_view *v, struct pkv_err *err);

#endif
