/*
 * input.h - bytes of a file, unpacked on the way, and its lines.
 *
 * What a file is packed with is told by its first bytes, never by its name. gzip is unpacked by
 * zlib, which checks the CRC of every member (libarchive 3.6 does not); zstd and xz by libarchive.
 * Data that is cut off or damaged is PKV_ERR_INPUT: what was given out before may be used, but the
 * end is never reached silently. A zstd frame written without its checksum has nothing to tell a
 * damaged byte by; `zstd` writes one unless told not to.
 */
#ifndef PKV_TRACE_INPUT_H
#define PKV_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

struct pkv_input;

/* path "-" = standard input. errors: PKV_ERR_INPUT (missing, a directory, unreadable), _MEMORY. */
struct pkv_input *pkv_input_open(const char *path, struct pkv_err *err);
/* The same bytes from memory, which must outlive the input; name stands in errors. */
struct pkv_input *pkv_input_open_memory(const char *name, const void *bytes, size_t length,
                                        struct pkv_err *err);
void pkv_input_close(struct pkv_input *input);
const char *pkv_input_path(const struct pkv_input *input);

/* Up to `room` (> 0) unpacked bytes; *out 0 = the end. 0, or -1 with PKV_ERR_INPUT (damaged),
 * PKV_ERR_IO (the device), PKV_ERR_MEMORY. */
int pkv_input_read(struct pkv_input *input, char *buffer, size_t room, size_t *out,
                   struct pkv_err *err);

#define PKV_MAX_LINE_BYTES ((size_t)64 << 20)

/* Lines of an input, from the first. */
struct pkv_lines {
    struct pkv_input *input;    /* borrowed */
    uint64_t number;            /* of the line given last, from 1 */
    char *buffer;               /* owned */
    size_t capacity, begin, end;
    bool at_end;                /* the input gave all it had */
    bool has_crlf, has_bom, has_open_end;   /* of the lines given: see struct pkv_trace_notes */
    const char *kept;           /* line put back; NULL = none */
    size_t kept_length;
};
void pkv_lines_init(struct pkv_lines *lines, struct pkv_input *input);
void pkv_lines_finish(struct pkv_lines *lines);

/* The next line, without its end (LF or CR LF; the last one may lack it); a byte order mark before
 * the first one is left out. The text lives until the next call.
 *   returns  1, 0 at the end, -1 with an error of the input or of a line over PKV_MAX_LINE_BYTES
 *   cost     one memchr over the text */
int pkv_lines_next(struct pkv_lines *lines, const char **out_text, size_t *out_length,
                   struct pkv_err *err);
/* Give the line that came last once more. */
void pkv_lines_put_back(struct pkv_lines *lines, const char *text, size_t length);

#endif
