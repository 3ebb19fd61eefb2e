/*
 * trace_file.h - a trace written to a file that appears whole, or to standard output.
 */
#ifndef PKV_TOOLS_TRACE_FILE_H
#define PKV_TOOLS_TRACE_FILE_H

#include "base/out.h"
#include "pagedkv/trace.h"

/* For pkv_trace_writer_config; ctx is the struct pkv_out. */
int cli_trace_put(void *ctx, const char *bytes, size_t length, struct pkv_err *err);

/* All rows of a source as a native trace at path ("-" = standard output). texts(ctx) are those of the
 * row given last. 0, or -1 with nothing left behind. */
int cli_trace_write(const char *path, const struct pkv_source *source,
                    const struct pkv_trace_texts *(*texts)(const void *ctx), const void *ctx,
                    uint64_t *out_rows, struct pkv_err *err);

#endif
