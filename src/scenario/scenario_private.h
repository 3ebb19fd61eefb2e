/*
 * scenario_private.h - from given values to a configuration.
 *
 *   gather   every value said, in its layer, is put under the key it is for   gather.c
 *   read     the values are read in the order of the list of keys             read.c, value.c
 *   check    what fits only together is looked at                             read.c
 */
#ifndef PKV_SCENARIO_PRIVATE_H
#define PKV_SCENARIO_PRIVATE_H

#include "base/out.h"
#include "pagedkv/policy.h"
#include "pagedkv/scenario.h"
#include "scenario/keys_private.h"
#include "scenario/tree_private.h"

#define NAME_SIZE 160u      /* of a key's dotted name */

/* The later layer wins. */
enum layer {
    LAYER_STANDARD,   /* nobody said it */
    LAYER_PRESET,
    LAYER_FILE,
    LAYER_FLAG,       /* settings but for those of --set */
    LAYER_SET,
    LAYER_VARIED,     /* a value of a grid */
    LAYER_FORCED      /* a preset that wins over a recording's own settings */
};

/* A value and who said it. */
struct given {
    enum key_id source;         /* the key it was said with; KEY_NONE = not given */
    const struct node *node;    /* borrowed from the forest */
    const char *shown;          /* that key's name in sentences */
    enum layer layer;
};

/* The same for a policy's parameter, a key that the registry knows. */
struct param_given {
    const char *name;           /* without "scheduler." */
    struct given given;
};
#define MAX_PARAMS_GIVEN 16u

struct loader {
    struct pkv_scenario *scenario;   /* what is being made; borrowed */
    struct forest forest;            /* owned */
    const char *path;                /* of the file, for errors; "" = none */
    const char *folder;              /* of the file, with its last '/'; "" = the current one */
    struct given given[KEY_COUNT];
    struct param_given params[MAX_PARAMS_GIVEN];
    size_t num_params;
};

/* Put a value under a dotted name: a key, a section, or a policy's parameter. shown NULL = name. */
int loader_give(struct loader *l, const char *name, const char *shown, const struct node *node,
                enum layer layer, struct pkv_err *err);
/* All keys of a map that stands for the section `prefix` ("" = the top). */
int loader_give_map(struct loader *l, const char *prefix, const struct node *map,
                    enum layer layer, struct pkv_err *err);
/* A value written outside a file. */
int loader_give_text(struct loader *l, const char *name, const char *text, const char *origin,
                     enum layer layer, struct pkv_err *err);
/* A preset's settings. choices false = leave out whom it takes, prefers and gives up (the policy of
 * the engine), for a recording that says so itself. */
int loader_give_preset(struct loader *l, const struct pkv_preset *preset, bool choices,
                       enum layer layer, struct pkv_err *err);

/* -1: no key has this dotted name. What was probably meant, and what there is. */
int fail_unknown_key(const char *name, const char *shown, const struct node *node,
                     struct pkv_err *err);
/* The same for one in a map of few keys: the words [num]. */
int fail_unknown_word(const char *shown, const struct node *node, const char *const *words, size_t num,
                      struct pkv_err *err);

/* The value that such a text is, not put anywhere. NULL with an error. */
struct node *loader_text_node(struct loader *l, const char *name, const char *text,
                              const char *origin, struct pkv_err *err);

/* Everything that the file (NULL = none) and the settings say, put under its keys. */
int loader_gather(struct loader *l, const char *path, const struct pkv_setting *settings,
                  size_t num_settings, struct pkv_err *err);
/* A scenario of what was gathered; l->scenario is not used. NULL with an error. */
struct pkv_scenario *loader_make(struct loader *l, struct pkv_err *err);

/* Who says how many turns a conversation has, and not which share of the requests are its first, means
 * all of them. */
int loader_settle_sessions(struct loader *l, struct pkv_err *err);
/* Read one key, or its default. Its decider must have been read. */
int loader_read_key(struct loader *l, enum key_id id, struct pkv_err *err);
/* Does the value stand in the file, so that its paths start there? */
bool loader_is_of_file(const struct given *said);
/* Every group's block size, once the general one and the groups are read; do they fit together? */
int groups_read_block_sizes(struct loader *l, struct pkv_err *err);
/* Read the keys first .. last and look at what fits only together. */
int loader_read(struct loader *l, enum key_id first, enum key_id last, struct pkv_err *err);

const struct pkv_policy_param *policy_param_find(const struct pkv_policy_info *policy,
                                                 const char *name);

/* One value on its way into the scenario. */
struct value {
    struct pkv_scenario *scenario;
    enum key_id key;            /* where it goes */
    enum key_id source;         /* how it is read */
    const struct node *node;
    const char *shown;
    const char *folder;         /* for KIND_PATH */
};
int value_read(const struct value *v, struct pkv_err *err);
int value_fail(const struct value *v, struct pkv_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* 0 when the node is a plain scalar that is not empty; `what` belongs there. */
int value_want_scalar(const struct value *v, const char *what, struct pkv_err *err);
int value_want_number(const struct value *v, const char *what, struct pkv_err *err);
/* Where the value goes. */
void *value_field(const struct value *v);
int value_read_flag(const struct value *v, bool *out, struct pkv_err *err);
/* Put an owned text in its place; NULL = it could not be made. */
int value_keep_text(const struct value *v, char *text);
/* A path as it is to be opened: folder before it unless it is absolute or "-". */
char *path_join(const char *folder, const char *path, struct pkv_err *err);

/* By kind. */
int value_read_word(const struct value *v, struct pkv_err *err);
int value_read_choice(const struct value *v, struct pkv_err *err);
int value_read_scheduling_policy(const struct value *v, struct pkv_err *err);
int value_read_full_isl(const struct value *v, struct pkv_err *err);
int value_read_preset(const struct value *v, struct pkv_err *err);
int value_read_format(const struct value *v, struct pkv_err *err);
int value_read_groups(const struct value *v, struct pkv_err *err);
int value_read_model(const struct value *v, struct pkv_err *err);
int value_read_stages(const struct value *v, struct pkv_err *err);
int value_read_budget(const struct value *v, struct pkv_err *err);
int value_read_priorities(const struct value *v, struct pkv_err *err);
int value_read_accepted(const struct value *v, struct pkv_err *err);
int value_read_tenants(const struct value *v, struct pkv_err *err);
int value_read_vary(const struct value *v, struct pkv_err *err);   /* changes nothing */

void groups_write(struct pkv_text *out, const struct pkv_sched_config *c);

/* A model makes its groups and, of a budget, the number of blocks. After all keys have been read. */
int loader_settle_kv(struct loader *l, struct pkv_err *err);

struct pkv_scenario *scenario_create(struct pkv_err *err);   /* empty, with one full group */

/* What the scenario owns beside its texts. */
struct pkv_scenario_private {
    int64_t *priorities;        /* owned */
    double *weights;            /* owned */
    struct pkv_synth_tenant *tenants;   /* [synth.num_tenants] owned, names too */
    /* Where the file names its trace, for one that cannot be opened; trace_line 0 = a setting did. */
    char *path;                 /* owned */
    uint64_t trace_line;
    uint32_t trace_column;
};

#endif
