/*
 * unpack_gzip.c - gzip data by zlib: members one after another, each with its CRC and length.
 *
 * Bytes behind the last member that are no further member are an error: gzip would warn, but a
 * damaged header of a second member looks just like that.
 */
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "trace/input_private.h"

struct gzip {
    struct pkv_input *input;     /* borrowed */
    z_stream z;
    bool in_member;              /* the end of the file would be too early here */
    bool at_end;                 /* the file gave all it had */
    char packed[PKV_INPUT_CHUNK];
};

static voidpf zlib_alloc(voidpf opaque, uInt num, uInt size)
{
    (void)opaque;
    return pkv_alloc(num, size, NULL);
}

static void zlib_free(voidpf opaque, voidpf memory)
{
    (void)opaque;
    pkv_free(memory);
}

static void *create(struct pkv_input *input, struct pkv_err *err)
{
    struct gzip *g = pkv_alloc(1, sizeof *g, err);
    if (!g)
        return NULL;
    g->input = input;
    g->z.zalloc = zlib_alloc;
    g->z.zfree = zlib_free;
    if (inflateInit2(&g->z, 16 + MAX_WBITS) == Z_OK)
        return g;
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room to unpack gzip data");
    pkv_free(g);
    return NULL;
}

static void destroy(void *state)
{
    struct gzip *g = state;
    inflateEnd(&g->z);
    pkv_free(g);
}

static int refill(struct gzip *g, struct pkv_err *err)
{
    size_t num;
    if (pkv_input_read_raw(g->input, g->packed, sizeof g->packed, &num, err) < 0)
        return -1;
    g->at_end = num == 0;
    g->z.next_in = (Bytef *)g->packed;
    g->z.avail_in = (uInt)num;
    return 0;
}

/* One call of zlib. */
static int inflate_some(struct gzip *g, struct pkv_err *err)
{
    const char *path = pkv_input_path(g->input);
    g->in_member = true;
    int status = inflate(&g->z, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
        g->in_member = false;
        inflateReset(&g->z);
        return 0;
    }
    if (status == Z_OK || status == Z_BUF_ERROR)
        return 0;
    if (status == Z_MEM_ERROR)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room to unpack gzip data");
    return pkv_fail_at(err, path, 0, 0, "the gzip data is damaged (%s)",
                       g->z.msg ? g->z.msg : "it needs a dictionary");
}

static int read_gzip(void *state, char *buffer, size_t room, size_t *out, struct pkv_err *err)
{
    struct gzip *g = state;
    uInt want = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
    g->z.next_out = (Bytef *)buffer;
    g->z.avail_out = want;
    while (g->z.avail_out == want) {
        if (g->z.avail_in == 0 && refill(g, err) < 0)
            return -1;
        if (g->at_end && g->in_member)
            return pkv_fail_at(err, pkv_input_path(g->input), 0, 0, "the gzip data is cut off");
        if (g->at_end)
            break;
        if (inflate_some(g, err) < 0)
            return -1;
    }
    *out = want - g->z.avail_out;
    return 0;
}

const struct pkv_unpack_ops pkv_unpack_gzip = {
    .magic = {0x1f, 0x8b}, .magic_length = 2,
    .create = create, .destroy = destroy, .read = read_gzip,
};
