/*
 * detect_private.h - which reader a trace needs.
 */
#ifndef PKV_TRACE_DETECT_PRIVATE_H
#define PKV_TRACE_DETECT_PRIVATE_H

#include "trace/trace_private.h"

/* The first line with a character in it: 1, 0, -1. */
int pkv_detect_first_line(struct pkv_trace *trace, const char **out_text, size_t *out_length,
                          struct pkv_err *err);
/* The reader for a trace that begins with this line. NULL with an error that lists the known
 * formats, or says where the line itself is broken. */
const struct pkv_reader *pkv_detect_reader(struct pkv_trace *trace, const char *text,
                                           size_t length, struct pkv_err *err);
/* Split the head line for a reader of CSV, at what parts the fields of this file. */
int pkv_detect_split_head(struct pkv_trace *trace, const struct pkv_reader *reader, const char *text,
                          size_t length, struct pkv_err *err);
/* The reader of that name, or NULL with an error. */
const struct pkv_reader *pkv_detect_by_name(const char *name, struct pkv_err *err);

#endif
