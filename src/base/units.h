/*
 * units.h - numbers as people write them. All parse the whole text or refuse it, and say why.
 */
#ifndef PKV_BASE_UNITS_H
#define PKV_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0, or -1 when text is not such a number or is out of range. why (may be NULL) gets a phrase that
 * goes after the text: "is not a whole number", "is negative", "is larger than 4294967295"; it is
 * good until the thread's next call here. */
int pkv_parse_u64(const char *text, size_t length, uint64_t max, uint64_t *out, const char **why);
int pkv_parse_i64(const char *text, size_t length, int64_t *out, const char **why);
int pkv_parse_double(const char *text, size_t length, double *out, const char **why);

/* A decimal number (optional sign, digits, point, digits, e-notation) of units of `unit_ns`
 * nanoseconds, exact: digits below a nanosecond are cut, never rounded through a double.
 * unit_ns is a power of ten. */
int pkv_parse_decimal_ns(const char *text, size_t length, int64_t unit_ns, int64_t *out,
                         const char **why);

/* The same to the nearest nanosecond, half a one up. rounded: there are digits below one. */
int pkv_parse_nearest_ns(const char *text, size_t length, int64_t unit_ns, int64_t *out,
                         bool *rounded, const char **why);

/* A decimal number, no exponent, times `scale` (a power of ten): exact, or refused when its digits go
 * below 1/scale. */
int pkv_parse_scaled(const char *text, size_t length, int64_t scale, int64_t *out,
                     const char **why);

/* Times: "1ms", "2.5s", "10us", "3ns", "2m", "1h"; a bare number is in bare_unit_ns. */
int pkv_parse_time_ns(const char *text, size_t length, int64_t bare_unit_ns, int64_t *out,
                      const char **why);

/* Bytes: "40GiB", "80GB", "512MiB", "1TiB", "4096B". GB is 10^9, GiB 2^30. Only 0 needs no unit. */
int pkv_parse_bytes(const char *text, size_t length, uint64_t *out, const char **why);

/* "1,234,567" into out (32 bytes are enough). returns out. */
char *pkv_format_count(uint64_t n, char *out);
/* "12.3 ms", "1.50 s", "2 h 3 min": for people, rounded to nearest. */
char *pkv_format_duration(int64_t ns, char *out, size_t size);

#endif
