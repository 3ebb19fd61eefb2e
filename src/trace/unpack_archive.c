/*
 * unpack_archive.c - zstd and xz data by libarchive, as one raw stream.
 *
 * Only the filter that the first bytes name is switched on, and libarchive must have found it:
 * otherwise it would hand the packed bytes through as if they were text.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/input_private.h"

struct unpack {
    struct pkv_input *input;     /* borrowed */
    struct archive *archive;     /* owned */
    const char *name;            /* of the packing, for sentences */
    int filter;                  /* libarchive's code of it */
    bool opened, at_end;
    struct pkv_err raw_err;      /* what reading the file said, when it failed */
    char packed[PKV_INPUT_CHUNK];
};

static la_ssize_t give_packed(struct archive *archive, void *ctx, const void **out)
{
    struct unpack *u = ctx;
    size_t num;
    if (pkv_input_read_raw(u->input, u->packed, sizeof u->packed, &num, &u->raw_err) < 0) {
        archive_set_error(archive, EIO, "cannot be read");
        return ARCHIVE_FATAL;
    }
    *out = u->packed;
    return (la_ssize_t)num;
}

/* libarchive's words into ours. */
static int translate(struct unpack *u, struct pkv_err *err)
{
    const char *path = pkv_input_path(u->input);
    const char *said = archive_error_string(u->archive);
    if (u->raw_err.code != PKV_ERR_NONE) {
        if (err)
            *err = u->raw_err;
        return -1;
    }
    if (archive_errno(u->archive) == ENOMEM)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room to unpack %s data", u->name);
    if (said && (strstr(said, "No progress is possible") || strstr(said, "runcated")))
        return pkv_fail_at(err, path, 0, 0, "the %s data is cut off", u->name);
    return pkv_fail_at(err, path, 0, 0, "the %s data is damaged (%s)", u->name,
                       said ? said : "unknown fault");
}

static void destroy(void *state)
{
    struct unpack *u = state;
    archive_read_free(u->archive);
    pkv_free(u);
}

static struct unpack *create(struct pkv_input *input, const char *name, int filter,
                             struct pkv_err *err)
{
    struct unpack *u = pkv_alloc(1, sizeof *u, err);
    if (!u)
        return NULL;
    u->input = input;
    u->name = name;
    u->filter = filter;
    u->archive = archive_read_new();
    if (u->archive && archive_read_support_format_raw(u->archive) == ARCHIVE_OK &&
        archive_read_support_format_empty(u->archive) == ARCHIVE_OK)
        return u;
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room to unpack %s data", name);
    destroy(u);
    return NULL;
}

/* A filter that libarchive can only run as another program is as good as none. */
static void *with_filter(struct unpack *u, int (*support)(struct archive *), struct pkv_err *err)
{
    if (!u || support(u->archive) == ARCHIVE_OK)
        return u;
    pkv_fail_at(err, pkv_input_path(u->input), 0, 0, "this build cannot unpack %s data", u->name);
    destroy(u);
    return NULL;
}

static void *create_zstd(struct pkv_input *input, struct pkv_err *err)
{
    struct unpack *u = create(input, "zstd", ARCHIVE_FILTER_ZSTD, err);
    return with_filter(u, archive_read_support_filter_zstd, err);
}

static void *create_xz(struct pkv_input *input, struct pkv_err *err)
{
    struct unpack *u = create(input, "xz", ARCHIVE_FILTER_XZ, err);
    return with_filter(u, archive_read_support_filter_xz, err);
}

static int begin(struct unpack *u, struct pkv_err *err)
{
    struct archive_entry *entry;
    u->opened = true;
    if (archive_read_open(u->archive, u, NULL, give_packed, NULL) != ARCHIVE_OK)
        return translate(u, err);
    int status = archive_read_next_header(u->archive, &entry);
    if (status != ARCHIVE_OK && status != ARCHIVE_EOF)
        return translate(u, err);
    u->at_end = status == ARCHIVE_EOF;
    if (archive_filter_code(u->archive, 0) != u->filter)
        return pkv_fail_at(err, pkv_input_path(u->input), 0, 0, "the %s data is damaged (its "
                           "header is not one)", u->name);
    return 0;
}

static int read_archive(void *state, char *buffer, size_t room, size_t *out, struct pkv_err *err)
{
    struct unpack *u = state;
    if (!u->opened && begin(u, err) < 0)
        return -1;
    la_ssize_t num = u->at_end ? 0 : archive_read_data(u->archive, buffer, room);
    if (num < 0)
        return translate(u, err);
    *out = (size_t)num;
    return 0;
}

const struct pkv_unpack_ops pkv_unpack_zstd = {
    .magic = {0x28, 0xb5, 0x2f, 0xfd}, .magic_length = 4,
    .create = create_zstd, .destroy = destroy, .read = read_archive,
};
const struct pkv_unpack_ops pkv_unpack_xz = {
    .magic = {0xfd, '7', 'z', 'X', 'Z', 0}, .magic_length = 6,
    .create = create_xz, .destroy = destroy, .read = read_archive,
};
