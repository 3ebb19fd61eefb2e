/*
 * format_private.h - digits and JSON characters, shared by files and growing text.
 */
#ifndef PKV_BASE_FORMAT_PRIVATE_H
#define PKV_BASE_FORMAT_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#define PKV_DIGITS_MAX 20u    /* a 64-bit number with its sign */
#define PKV_JSON_UNIT_MAX 6u

/* Both write no NUL and return the number of characters. */
size_t pkv_put_u64(char *out, uint64_t n);
size_t pkv_put_i64(char *out, int64_t n);

/* The first character of text (not at its end) as it stands in a JSON string.
 *   out      [PKV_JSON_UNIT_MAX], *out_num bytes of it are written
 *   returns  bytes of text used up; a byte that is not UTF-8 is one character */
size_t pkv_json_unit(const char *text, char *out, size_t *out_num);

/* Bytes of the UTF-8 character that text begins with, at most length of them; 0 = it is none. */
size_t pkv_utf8_length(const char *text, size_t length);

#endif
