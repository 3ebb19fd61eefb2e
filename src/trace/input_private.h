/*
 * input_private.h - between input.c, which has the raw bytes, and the unpackers.
 */
#ifndef PKV_TRACE_INPUT_PRIVATE_H
#define PKV_TRACE_INPUT_PRIVATE_H

#include "trace/input.h"

#define PKV_INPUT_CHUNK ((size_t)1 << 16)

struct pkv_unpack_ops {
    unsigned char magic[6];      /* first bytes of the packed data */
    size_t magic_length;
    void *(*create)(struct pkv_input *input, struct pkv_err *err);
    void (*destroy)(void *state);
    /* as pkv_input_read() */
    int (*read)(void *state, char *buffer, size_t room, size_t *out, struct pkv_err *err);
};
extern const struct pkv_unpack_ops pkv_unpack_gzip;
extern const struct pkv_unpack_ops pkv_unpack_zstd;
extern const struct pkv_unpack_ops pkv_unpack_xz;

/* The bytes as they are in the file; *out 0 = the end. */
int pkv_input_read_raw(struct pkv_input *input, char *buffer, size_t room, size_t *out,
                       struct pkv_err *err);

#endif
