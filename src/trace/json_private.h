/*
 * json_private.h - shared by the files of the scanner.
 */
#ifndef PKV_TRACE_JSON_PRIVATE_H
#define PKV_TRACE_JSON_PRIVATE_H

#include "trace/json_scan.h"

/* One character of the inside of a string, *at moved on; -1 when it is not allowed. *at < end. */
int32_t pkv_json_next_char(const char **at, const char *end);

#endif
