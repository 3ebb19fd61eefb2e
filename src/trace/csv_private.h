/*
 * csv_private.h - a line of comma-separated values, and columns found by name.
 *
 * RFC 4180 but for line breaks inside quotes, which no trace has: a quote must close on its line; and
 * blanks around a field are none of it. Where the head line says so, semicolons, tabs or bars stand in
 * the place of the commas.
 */
#ifndef PKV_TRACE_CSV_PRIVATE_H
#define PKV_TRACE_CSV_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

struct pkv_field {
    const char *text;        /* without quotes and blanks around it */
    size_t length;
    uint32_t column;         /* byte where it begins, from 1 */
    bool is_quoted;          /* a quote in the text is doubled */
};

/* What a column may say, and what it is called where a user tells the columns. */
#define PKV_CSV_ROLES(X)                                                            \
    X(PKV_CSV_ARRIVAL, "arrival") X(PKV_CSV_PROMPT, "prompt")                       \
    X(PKV_CSV_OUTPUT, "output") X(PKV_CSV_ID, "id") X(PKV_CSV_TENANT, "tenant")     \
    X(PKV_CSV_SESSION, "session") X(PKV_CSV_PRIORITY, "priority")                   \
    X(PKV_CSV_MAX_TOKENS, "max_tokens") X(PKV_CSV_BATCH, "batch")
enum pkv_csv_role {
#define PKV_ENUM(sym, word) sym,
    PKV_CSV_ROLES(PKV_ENUM)
#undef PKV_ENUM
    PKV_CSV_ROLE_COUNT
};
#define PKV_CSV_BIT(role) (1u << (role))

/* The columns of a format by their names. Times must be parsed to the nanosecond. */
struct pkv_csv_layout {
    const char *columns[PKV_CSV_ROLE_COUNT];   /* NULL = none has this role */
    unsigned optional;                         /* bits of roles whose column may be missing */
    /* rounded (never NULL): the text has digits below a nanosecond, out is the nearest one */
    int (*parse_time)(const char *text, size_t length, int64_t *out, bool *rounded,
                      const char **why);
    /* What would make a time that it refuses readable: "; ..." or "", good until the next call on
     * this thread. NULL = nothing is known. */
    const char *(*mend_time)(const char *text, size_t length);
    bool is_told;                              /* the names come from the options */
};

struct pkv_csv {
    struct pkv_field *fields;                  /* [num_fields] owned; of the line split last */
    size_t num_fields, capacity;
    char separator;                            /* 0 = a comma */
    size_t num_columns;                        /* of the header */
    size_t index[PKV_CSV_ROLE_COUNT];          /* column of each role; PKV_CSV_NONE = none */
};
#define PKV_CSV_NONE SIZE_MAX
#define PKV_CSV_NS_OF_2000 (INT64_C(946684800) * 1000000000)   /* since 1970 */

int pkv_csv_split(struct pkv_csv *csv, const char *path, uint64_t line, const char *text,
                  size_t length, struct pkv_err *err);
/* Split a head line at commas, semicolons, tabs or bars, whichever make most names known: count tells
 * how many are. Of equals the former, where none is known the first that parts the line. Sets the
 * separator. */
int pkv_csv_split_head(struct pkv_csv *csv, const char *path, uint64_t line, const char *text,
                       size_t length,
                       int (*count)(const void *ctx, const struct pkv_field *names, size_t num),
                       const void *ctx, struct pkv_err *err);
void pkv_csv_finish(struct pkv_csv *csv);
bool pkv_csv_is(const struct pkv_field *field, const char *name);
/* Write what the field says, without a NUL behind it; never more than its length. returns bytes. */
size_t pkv_csv_unquote(const struct pkv_field *field, char *out);

/* How to write a number that cannot be read: "; ..." or "", good until the next call on this thread. */
const char *pkv_csv_mend_number(const char *text, size_t length);

/* A decimal of units of unit_ns to the nearest nanosecond; not negative. */
int pkv_csv_parse_time(const char *text, size_t length, int64_t unit_ns, int64_t *out,
                       bool *rounded, const char **why);

#endif
