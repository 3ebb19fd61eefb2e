/*
 * packer.c - a file that appears whole, packed or not.
 *
 * The header of gzip has a time and a name in it; both are left out, so that the same run gives the same
 * bytes.
 */
#include "report/packer.h"

#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/out.h"

#define CHUNK_SIZE ((size_t)32 << 10)
#define AS_GZIP (16 + MAX_WBITS)
#define MEMORY_LEVEL 8    /* zlib's default */

struct packer {
    struct pkv_out *out;      /* owned */
    const char *tail;
    bool is_packed;
    z_stream z;
    unsigned char chunk[CHUNK_SIZE];
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

static int begin_packing(struct packer *p, struct pkv_err *err)
{
    p->z.zalloc = zlib_alloc;
    p->z.zfree = zlib_free;
    if (deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, AS_GZIP, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room to pack a file");
    p->is_packed = true;
    return 0;
}

struct packer *packer_open(const char *path, const char *tail, struct pkv_err *err)
{
    size_t length = strlen(path);
    struct packer *p = pkv_alloc(1, sizeof *p, err);
    if (!p)
        return NULL;
    p->tail = tail;
    p->out = pkv_out_open(NULL, path, err);
    bool is_packed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    if (p->out && !is_packed)
        pkv_out_end_with(p->out, tail);
    if (p->out && (!is_packed || begin_packing(p, err) == 0))
        return p;
    packer_drop(p);
    return NULL;
}

static void pack(struct packer *p, const char *text, size_t length, int flush)
{
    p->z.next_in = (z_const Bytef *)(uintptr_t)text;
    p->z.avail_in = (uInt)length;
    do {
        p->z.next_out = p->chunk;
        p->z.avail_out = CHUNK_SIZE;
        int status = deflate(&p->z, flush);
        PKV_ASSERT(status != Z_STREAM_ERROR);
        pkv_out_bytes(p->out, (const char *)p->chunk, CHUNK_SIZE - p->z.avail_out);
    } while (p->z.avail_out == 0);
}

int packer_row(struct packer *p, const char *text, size_t length, struct pkv_err *err)
{
    if (p->is_packed) {
        if (length > UINT32_MAX)
            return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room to pack a row");
        pack(p, text, length, Z_NO_FLUSH);
        return 0;
    }
    pkv_out_bytes(p->out, text, length);
    pkv_out_end_row(p->out);
    return 0;
}

int packer_check(const struct packer *p, struct pkv_err *err)
{
    return pkv_out_check(p->out, err);
}

static void end_packing(struct packer *p)
{
    if (p->is_packed)
        deflateEnd(&p->z);
    p->is_packed = false;
}

int packer_commit(struct packer *p, bool *out_kept, struct pkv_err *err)
{
    struct pkv_out *out = p->out;
    if (p->is_packed)
        pack(p, p->tail, strlen(p->tail), Z_FINISH);
    end_packing(p);
    pkv_free(p);
    int status = pkv_out_close(out, err);
    *out_kept = pkv_out_has_rows(out);
    if (!*out_kept) {
        pkv_out_drop(out);
    } else if (pkv_out_install(out, status < 0 ? NULL : err) < 0) {
        *out_kept = false;
        status = -1;
    }
    return status;
}

void packer_drop(struct packer *p)
{
    if (!p)
        return;
    end_packing(p);
    pkv_out_drop(p->out);
    pkv_free(p);
}
