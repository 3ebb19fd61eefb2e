/*
 * date_private.h - dates of traces as nanoseconds since 1970, UTC.
 */
#ifndef PKV_TRACE_DATE_PRIVATE_H
#define PKV_TRACE_DATE_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

/* "2023-11-16 18:15:46.6805900", 'T' for the space allowed, then nothing (UTC), "Z", or an offset
 * "+02:00", "+0200", "+02". Fraction digits below a nanosecond are cut.
 *   returns  0, or -1 with a phrase that goes after the text */
int pkv_parse_date_ns(const char *text, size_t length, int64_t *out, const char **why);

#endif
