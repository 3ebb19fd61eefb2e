/*
 * input.c - raw bytes from a file, standard input or memory, and the choice of an unpacker.
 *
 * The first bytes are read ahead to find the packing, then given out again before the rest: so
 * nothing is ever sought in, and a pipe works like a file.
 */
#include "trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "trace/input_private.h"

struct pkv_input {
    char *path;                         /* owned */
    int fd;                             /* owned unless 0; -1 = memory */
    const char *memory;                 /* borrowed */
    size_t memory_left;
    char head[sizeof ((struct pkv_unpack_ops *)0)->magic];
    size_t head_length, head_given;     /* bytes read ahead, and given out again */
    const struct pkv_unpack_ops *ops;   /* NULL = not packed */
    void *state;                        /* owned, of ops */
};

static int read_fd(struct pkv_input *in, char *buffer, size_t room, size_t *out,
                   struct pkv_err *err)
{
    ssize_t num;
    do
        num = read(in->fd, buffer, room);
    while (num < 0 && errno == EINTR);
    if (num < 0) {
        pkv_fail_at(err, in->path, 0, 0, "cannot be read: %s", strerror(errno));
        if (err)
            err->code = errno == EISDIR ? PKV_ERR_INPUT : PKV_ERR_IO;
        return -1;
    }
    *out = (size_t)num;
    return 0;
}

int pkv_input_read_raw(struct pkv_input *in, char *buffer, size_t room, size_t *out,
                       struct pkv_err *err)
{
    size_t ahead = in->head_length - in->head_given;
    if (ahead > 0) {
        *out = ahead < room ? ahead : room;
        memcpy(buffer, in->head + in->head_given, *out);
        in->head_given += *out;
        return 0;
    }
    if (in->fd >= 0)
        return read_fd(in, buffer, room, out, err);
    *out = in->memory_left < room ? in->memory_left : room;
    if (*out)
        memcpy(buffer, in->memory, *out);
    in->memory += *out;
    in->memory_left -= *out;
    return 0;
}

/* Read the first bytes and keep them. */
static int read_head(struct pkv_input *in, struct pkv_err *err)
{
    size_t length = 0;
    while (length < sizeof in->head) {
        size_t num;
        if (pkv_input_read_raw(in, in->head + length, sizeof in->head - length, &num, err) < 0)
            return -1;
        if (num == 0)
            break;
        length += num;
    }
    in->head_length = length;
    return 0;
}

/* Text of two bytes a character, as spreadsheets write "Unicode text". */
static bool is_utf16(const char *head, size_t length)
{
    return length >= 2 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0 ||
                           (length >= 4 && !head[0] != !head[1] && !head[0] == !head[2] &&
                            !head[1] == !head[3]));
}

/* What people use and what is not read is better named than taken for a broken trace. */
static int refuse_others(const struct pkv_input *in, struct pkv_err *err)
{
    static const struct { const char *magic; size_t length; const char *words; } others[] = {
        {"BZh", 3, "is packed with bzip2, which is not read; .gz, .zst and .xz are"},
        {"PK\003\004", 4, "is packed with zip, which is not read; .gz, .zst and .xz are; a workbook "
         "(.xlsx, .ods) is saved as CSV first"},
        {"\004\042\115\030", 4, "is packed with lz4, which is not read; .gz, .zst and .xz are"},
        {"7z\274\257", 4, "is packed with 7z, which is not read; .gz, .zst and .xz are"},
        {"PAR1", 4, "is Parquet, which is not read; write it as CSV"},
        {"SQLite", 6, "is a database of SQLite; write its table as CSV"},
    };
    if (is_utf16(in->head, in->head_length))
        return pkv_fail_at(err, in->path, 0, 0, "is UTF-16 text; save it as CSV in UTF-8, or: iconv -f "
                           "UTF-16 -t UTF-8");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (in->head_length >= others[i].length &&
            memcmp(in->head, others[i].magic, others[i].length) == 0)
            return pkv_fail_at(err, in->path, 0, 0, "%s", others[i].words);
    return 0;
}

static int find_unpacker(struct pkv_input *in, struct pkv_err *err)
{
    static const struct pkv_unpack_ops *const known[] = {
        &pkv_unpack_gzip, &pkv_unpack_zstd, &pkv_unpack_xz,
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (in->head_length >= known[i]->magic_length &&
            memcmp(in->head, known[i]->magic, known[i]->magic_length) == 0)
            in->ops = known[i];
    if (!in->ops)
        return refuse_others(in, err);
    in->state = in->ops->create(in, err);
    return in->state ? 0 : -1;
}

static int open_file(struct pkv_input *in, struct pkv_err *err)
{
    struct stat info;
    in->fd = strcmp(in->path, "-") == 0 ? 0 : open(in->path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0)
        return pkv_fail_open(err, in->path, errno);
    if (fstat(in->fd, &info) == 0 && S_ISDIR(info.st_mode))
        return pkv_fail_at(err, in->path, 0, 0, "is a directory, not a file");
    return 0;
}

static struct pkv_input *create(const char *path, struct pkv_err *err)
{
    struct pkv_input *in = pkv_alloc(1, sizeof *in, err);
    if (!in)
        return NULL;
    in->fd = -1;
    in->path = pkv_strdup(path, err);
    if (in->path)
        return in;
    pkv_input_close(in);
    return NULL;
}

struct pkv_input *pkv_input_open(const char *path, struct pkv_err *err)
{
    struct pkv_input *in = create(path, err);
    if (in && open_file(in, err) == 0 && read_head(in, err) == 0 && find_unpacker(in, err) == 0)
        return in;
    pkv_input_close(in);
    return NULL;
}

struct pkv_input *pkv_input_open_memory(const char *name, const void *bytes, size_t length,
                                        struct pkv_err *err)
{
    struct pkv_input *in = create(name, err);
    if (in) {
        in->memory = bytes;
        in->memory_left = length;
    }
    if (in && read_head(in, err) == 0 && find_unpacker(in, err) == 0)
        return in;
    pkv_input_close(in);
    return NULL;
}

void pkv_input_close(struct pkv_input *in)
{
    if (!in)
        return;
    if (in->state)
        in->ops->destroy(in->state);
    if (in->fd > 0)
        close(in->fd);
    pkv_free(in->path);
    pkv_free(in);
}

const char *pkv_input_path(const struct pkv_input *in)
{
    return in->path;
}

int pkv_input_read(struct pkv_input *in, char *buffer, size_t room, size_t *out,
                   struct pkv_err *err)
{
    if (in->ops)
        return in->ops->read(in->state, buffer, room, out, err);
    return pkv_input_read_raw(in, buffer, room, out, err);
}
