/*
 * fields_private.h - the fields of a JSON row: each known, each at most once.
 */
#ifndef PKV_TRACE_FIELDS_PRIVATE_H
#define PKV_TRACE_FIELDS_PRIVATE_H

#include "trace/trace_private.h"

#define PKV_MAX_FIELDS 32
#define PKV_FIELD_BIT(field) (UINT32_C(1) << (field))

struct pkv_fields {
    struct pkv_json j;
    const char *const *words;             /* [num_words] borrowed; at most PKV_MAX_FIELDS */
    int num_words;
    uint32_t allowed, seen;               /* bits of words */
    uint32_t column[PKV_MAX_FIELDS];      /* of the value, of seen ones */
    int at;                               /* the field whose value is due */
};

/* Which word it is, or -1. */
int pkv_fields_find(const char *const *words, int num_words, const char *text, size_t length);

/* On to the next field: 1 = its value is due, 0 = the row ended, -1 = unknown, repeated, broken.
 * The caller enters the object before and calls pkv_json_end() behind. */
int pkv_fields_next(struct pkv_fields *fields, struct pkv_err *err);
bool pkv_fields_has(const struct pkv_fields *fields, int field);

/* -1 and "WORD sentence" at the value of a field. */
int pkv_fields_fail(const struct pkv_fields *fields, int field, struct pkv_err *err,
                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Take the value that is due as a text that is not empty. */
int pkv_fields_text(struct pkv_fields *fields, struct pkv_slot *slot, struct pkv_err *err);
/* Take all fields of the object that is due, each by take(). 0, or -1 */
int pkv_fields_read(struct pkv_fields *fields,
                    int (*take)(void *ctx, int field, struct pkv_err *err), void *ctx,
                    struct pkv_err *err);
/* -1 and "this row has no WORD" (a request, where it stands within the row) at `column` for the first
 * of the required bits that was not seen. */
int pkv_fields_need(const struct pkv_fields *fields, uint32_t required, uint32_t column,
                    struct pkv_err *err);
/* Take the value that is due as a list of numbers, behind those in the hash_ids of the row. */
int pkv_fields_ids(struct pkv_fields *fields, struct pkv_trace *trace, struct pkv_err *err);

#endif
