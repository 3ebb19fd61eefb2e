/*
 * csv_private.h - a line of comma-separated values, and columns found by name.
 *
 * RFC 4180 but for line breaks inside quotes, which no trace has: a quote must close on its line.
 */
#ifndef PKV_TRACE_CSV_PRIVATE_H
#define PKV_TRACE_CSV_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

struct pkv_field {
    const char *text;        /* without quotes around it */
    size_t length;
    uint32_t column;         /* byte where it begins, from 1 */
};

#define PKV_CSV_ROLES(X)                                                            \
    X(PKV_CSV_ARRIVAL) X(PKV_CSV_PROMPT) X(PKV_CSV_OUTPUT)
enum pkv_csv_role {
#define PKV_ENUM(sym) sym,
    PKV_CSV_ROLES(PKV_ENUM)
#undef PKV_ENUM
    PKV_CSV_ROLE_COUNT
};

struct pkv_csv {
    struct pkv_field *fields;                  /* [num_fields] owned; of the line split last */
    size_t num_fields, capacity;
    size_t num_columns;                        /* of the header */
    size_t index[PKV_CSV_ROLE_COUNT];          /* column of each role */
};

int pkv_csv_split(struct pkv_csv *csv, const char *path, uint64_t line, const char *text,
                  size_t length, struct pkv_err *err);
void pkv_csv_finish(struct pkv_csv *csv);

#endif
