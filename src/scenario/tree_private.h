/*
 * tree_private.h - a document as a plain tree with places, so that only one file knows libfyaml.
 */
#ifndef PKV_SCENARIO_TREE_PRIVATE_H
#define PKV_SCENARIO_TREE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

/* One value. Children of a list or a map hang in the order in which they were written. */
struct node {
    enum node_kind kind;
    bool quoted;                 /* a scalar in quotes, or a block of text: text whatever it says */
    const char *path;            /* document or origin; "" when there is none */
    uint64_t line;               /* 0 = no line */
    uint32_t column;             /* in bytes; 0 = no column */
    const char *text;            /* scalars; ends with NUL */
    size_t length;
    const char *key;             /* in a map; else NULL */
    uint64_t key_line;
    uint32_t key_column;
    struct node *children, *next;
};

/* Memory of any number of trees, given back together. Zero-initialise. */
struct forest {
    struct forest_piece *pieces;   /* owned */
};
void forest_finish(struct forest *forest);
void *forest_alloc(struct forest *forest, size_t size, struct pkv_err *err);   /* zeroed */
char *forest_copy(struct forest *forest, const char *text, size_t length, struct pkv_err *err);

/* A scalar made by the program, not in quotes. path and key stand in errors about it. */
struct node *node_scalar(struct forest *forest, const char *path, const char *key,
                         const char *text, size_t length, struct pkv_err *err);

enum tree_format { TREE_YAML, TREE_JSON };

/* Exactly one document. Refused with their place: anything after it, aliases, anchors, tags, merge
 * keys, equal keys in one map, keys that are not scalars. numbered = false leaves out line and
 * column (the value of a setting).
 *   path     stands in errors; copied
 *   returns  0 and the root, or -1 */
int tree_parse(struct forest *forest, const char *path, const char *text, size_t length,
               enum tree_format format, bool numbered, struct node **out, struct pkv_err *err);
/* The same with a file's content. Errors: missing, a directory, unreadable, empty, over 16 MiB. */
int tree_load(struct forest *forest, const char *path, enum tree_format format,
              struct node **out, struct pkv_err *err);

bool node_is_null(const struct node *node);   /* nothing, ~ or null, not in quotes */
const struct node *node_child(const struct node *map, const char *key);   /* NULL = none */

/* PKV_ERR_INPUT at the place of the value, or of its key. */
int node_fail(const struct node *node, struct pkv_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int node_fail_key(const struct node *node, struct pkv_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
