/*
 * json_scan.h - a strict JSON pull scanner over one text in memory, and comparison of values.
 *
 * The caller asks for what it expects, in order; nothing is built and nothing is allocated. Values
 * are slices of the text. Every error is PKV_ERR_INPUT with path, line and the column where the
 * text stops being what was asked for. Strict: RFC 8259 and no more (no NaN, no leading zeros, no
 * comments, no trailing commas, strings must be UTF-8); nesting is limited to PKV_JSON_MAX_DEPTH.
 *
 *     pkv_json_init(&j, path, line, text, length);
 *     if (pkv_json_enter_object(&j, err) < 0) return -1;
 *     while ((more = pkv_json_next_member(&j, &key, err)) > 0)
 *         ... take one value: pkv_json_u64, _string, _value, enter_array ...
 *     if (more < 0 || pkv_json_end(&j, err) < 0) return -1;
 *
 * The scanner holds one line of a JSON Lines file, so a column is a byte of that line, from 1.
 */
#ifndef PKV_TRACE_JSON_SCAN_H
#define PKV_TRACE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

#define PKV_JSON_MAX_DEPTH 32u

#define PKV_JSON_KINDS(X)                                                   \
    X(PKV_JSON_NONE, "nothing")      /* end of the text, or no value begins so */ \
    X(PKV_JSON_OBJECT, "an object")                                         \
    X(PKV_JSON_ARRAY, "a list")                                             \
    X(PKV_JSON_STRING, "a string")                                          \
    X(PKV_JSON_NUMBER, "a number")                                          \
    X(PKV_JSON_TRUE, "true")                                                \
    X(PKV_JSON_FALSE, "false")                                              \
    X(PKV_JSON_NULL, "null")

enum pkv_json_kind {
#define PKV_ENUM(sym, word) sym,
    PKV_JSON_KINDS(PKV_ENUM)
#undef PKV_ENUM
    PKV_JSON_KIND_COUNT
};
const char *pkv_json_kind_name(enum pkv_json_kind kind);   /* "a number": for sentences */

struct pkv_json {
    const char *path;            /* borrowed; stands in errors */
    uint64_t line;
    const char *begin, *at, *end;   /* borrowed text */
    bool first;                  /* just after '{' or '[': no comma is due */
};

/* A slice of the text. */
struct pkv_json_text {
    const char *text;            /* not NUL-terminated; a string's is without its quotes */
    size_t length;
    bool has_escapes;            /* strings: pkv_json_unescape() before use */
    uint32_t column;
};
struct pkv_json_value {
    struct pkv_json_text raw;    /* the whole value; a string's with its quotes */
    enum pkv_json_kind kind;
};

void pkv_json_init(struct pkv_json *j, const char *path, uint64_t line, const char *text,
                   size_t length);
uint32_t pkv_json_column(const struct pkv_json *j);
/* -1 with the sentence and the place of the scanner, or of a slice. */
int pkv_json_fail(const struct pkv_json *j, struct pkv_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int pkv_json_fail_at(const struct pkv_json *j, uint32_t column, struct pkv_err *err,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* What begins next, by its first character. */
enum pkv_json_kind pkv_json_peek(struct pkv_json *j);

/* Walk an object or a list: enter, then next until it says 0. Between two calls of next exactly one
 * value has to be taken.
 *   returns   enter: 0; next: 1 = at a value, 0 = it ended; -1 with an error */
int pkv_json_enter_object(struct pkv_json *j, struct pkv_err *err);
int pkv_json_next_member(struct pkv_json *j, struct pkv_json_text *out_key, struct pkv_err *err);
int pkv_json_enter_array(struct pkv_json *j, struct pkv_err *err);
int pkv_json_next_item(struct pkv_json *j, struct pkv_err *err);
/* The same for a list of fixed length: an end too early or too late is an error. 0 or -1. */
int pkv_json_need_item(struct pkv_json *j, const char *wanted, struct pkv_err *err);
int pkv_json_need_array_end(struct pkv_json *j, struct pkv_err *err);

/* Take one value of a kind; another kind is an error that names both. */
int pkv_json_number(struct pkv_json *j, struct pkv_json_text *out, struct pkv_err *err);
int pkv_json_u64(struct pkv_json *j, uint64_t max, uint64_t *out, struct pkv_err *err);
int pkv_json_i64(struct pkv_json *j, int64_t *out, struct pkv_err *err);
/* Items of a list that was entered, up to `room` of them: 1 = there are more, 0 = it ended, -1. */
int pkv_json_u64_items(struct pkv_json *j, uint64_t *out, size_t room, size_t *out_num,
                       struct pkv_err *err);
int pkv_json_string(struct pkv_json *j, struct pkv_json_text *out, struct pkv_err *err);
/* Take any value; out may be NULL. */
int pkv_json_value(struct pkv_json *j, struct pkv_json_value *out, struct pkv_err *err);
/* Nothing but white space is left. */
int pkv_json_end(struct pkv_json *j, struct pkv_err *err);

/* Write the characters of a string slice; never more than its length. returns bytes written. */
size_t pkv_json_unescape(const struct pkv_json_text *string, char *out);
bool pkv_json_text_is(const struct pkv_json_text *string, const char *word);

/* Scan the inside of a value taken before. */
void pkv_json_reopen(struct pkv_json *j, const struct pkv_json *from,
                     const struct pkv_json_value *value);

/* Where two values differ first, walking a: "blocks.r1[0][3]". A side that is absent has kind
 * PKV_JSON_NONE. */
struct pkv_json_difference {
    char path[192];              /* "" = the values themselves; long ones are cut */
    struct pkv_json_value a, b;
};
/* Equal: the same kind; numbers of the same value however written; strings of the same characters;
 * lists item by item; objects by key, in any order. Values must have been taken by
 * pkv_json_value(). out may be NULL.
 *   cost      O(length) when keys come in the same order */
bool pkv_json_equal(const struct pkv_json_value *a, const struct pkv_json_value *b,
                    struct pkv_json_difference *out);

#endif
