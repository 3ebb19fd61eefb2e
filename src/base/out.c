/*
 * out.c - buffered files that take their name when they are done.
 *
 * What is not an ordinary file (a terminal, a pipe, a device) cannot be renamed onto: it is written
 * straight. A write that failed is remembered and everything after it thrown away, so that callers
 * look once, at flush or commit. Where rows end is marked bit by bit for the buffer and kept as one
 * number for what is written, so that a file can be cut behind its last whole row.
 *
 *   O1  whole_bytes + tail_length <= written_bytes, but for whole_bytes 0, and the bytes before it are
 *       whole rows: a tail goes over what is cut off, so that a full disk has room for it
 *   O2  no two writers ever share a partial file: each holds a lock on its own until that has its
 *       name; one without a lock was left by a killed writer and is taken over
 */
#include "base/out.h"

#include "base/alloc.h"
#include "base/format_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)64 << 10)

#define MAX_WRITERS 1000u    /* of one file at a time */

struct pkv_out {
    int fd;            /* -1 = closed */
    int lock_fd;       /* the partial file again: its lock outlives fd; -1 = none */
    int failure;       /* errno of the first write that failed; 0 = none */
    char *path;        /* owned; the final name */
    char *partial;     /* owned; NULL = written straight */
    uint64_t written_bytes, whole_bytes;     /* in the file; up to the last row end in it */
    const char *tail;  /* "" = none */
    size_t tail_length;
    size_t used;
    char buffer[BUFFER_SIZE];
    unsigned char row_ends[BUFFER_SIZE / 8];   /* a bit a byte of the buffer: a row ends with it */
};

static int fail_with_path(struct pkv_err *err, enum pkv_err_code code, const char *path,
                          const char *doing, int number)
{
    pkv_fail(err, code, "%s: %s", doing, strerror(number));
    if (err)
        snprintf(err->path, sizeof err->path, "%s", path);
    return -1;
}

static char *join(const char *a, const char *between, const char *b, struct pkv_err *err)
{
    size_t size = strlen(a) + strlen(between) + strlen(b) + 1;
    char *joined = pkv_alloc(size, 1, err);
    if (joined)
        snprintf(joined, size, "%s%s%s", a, between, b);
    return joined;
}

static void destroy(struct pkv_out *out)
{
    if (out->lock_fd >= 0)
        close(out->lock_fd);
    pkv_free(out->path);
    pkv_free(out->partial);
    pkv_free(out);
}

static int is_standard_output(const struct pkv_out *out)
{
    return out->fd == STDOUT_FILENO && strcmp(out->path, "-") == 0;
}

/* Is what is open an ordinary file of ours, and still the one with that name? */
static bool has_name(int fd, const char *path)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 && lstat(path, &named) == 0 && S_ISREG(open_one.st_mode) &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino &&
           open_one.st_nlink == 1 && open_one.st_uid == geteuid();
}

/* Make out->partial, or take it over from a killed writer. -1 with errno EEXIST when it is somebody
 * else's. Links are not followed, and a pipe is not waited for. */
static int take_partial(const struct pkv_out *out)
{
    int fd = open(out->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool is_new = fd >= 0;
    if (!is_new && errno != EEXIST)
        return -1;
    if (!is_new)
        fd = open(out->partial, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        /* Where a file system knows no locks, one that was just made is ours all the same. */
        bool is_ours = is_locked || (is_new && errno != EWOULDBLOCK);
        if (is_ours && has_name(fd, out->partial) && ftruncate(fd, 0) == 0)
            return fd;
        close(fd);
    }
    errno = EEXIST;
    return -1;
}

static int make_partial(struct pkv_out *out, struct pkv_err *err)
{
    size_t size = strlen(out->path) + sizeof ".1000" PKV_OUT_PARTIAL;
    out->partial = pkv_alloc(size, 1, err);
    if (!out->partial)
        return -1;
    for (unsigned n = 1; n <= MAX_WRITERS && out->fd < 0; n++) {
        if (n == 1)
            snprintf(out->partial, size, "%s" PKV_OUT_PARTIAL, out->path);
        else
            snprintf(out->partial, size, "%s.%u" PKV_OUT_PARTIAL, out->path, n);
        out->fd = take_partial(out);
        if (out->fd < 0 && errno != EEXIST)
            break;
    }
    if (out->fd >= 0)
        out->lock_fd = fcntl(out->fd, F_DUPFD_CLOEXEC, 0);
    if (out->fd >= 0 && out->lock_fd >= 0)
        return 0;
    fail_with_path(err, PKV_ERR_INPUT, out->path, "cannot be written", errno);
    if (out->fd >= 0) {
        close(out->fd);
        unlink(out->partial);
    }
    return -1;
}

/* What the shell opened under a name of the system's is written to where it stands; an ordinary file too,
 * as that name is nobody's to replace. */
static int take_descriptor(struct pkv_out *out, struct pkv_err *err)
{
    int fd = pkv_out_descriptor(out->path), flags = fcntl(fd, F_GETFL);
    bool is_for_reading = flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;
    out->fd = flags >= 0 && !is_for_reading ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (out->fd >= 0)
        return 0;
    return fail_with_path(err, PKV_ERR_INPUT, out->path, "cannot be written",
                          is_for_reading ? EBADF : errno);
}

/* Decide where the bytes go, and open that. */
static int open_target(struct pkv_out *out, struct pkv_err *err)
{
    struct stat there;
    if (strcmp(out->path, "-") == 0) {
        out->fd = STDOUT_FILENO;
        return 0;
    }
    if (pkv_out_descriptor(out->path) >= 0)
        return take_descriptor(out, err);
    int exists = stat(out->path, &there) == 0;
    if (exists && S_ISDIR(there.st_mode))
        return fail_with_path(err, PKV_ERR_INPUT, out->path, "cannot be written", EISDIR);
    if (!exists || S_ISREG(there.st_mode))
        return make_partial(out, err);
    out->fd = open(out->path, O_WRONLY | O_CLOEXEC);
    if (out->fd < 0)
        return fail_with_path(err, PKV_ERR_INPUT, out->path, "cannot be written", errno);
    return 0;
}

struct pkv_out *pkv_out_open(const char *dir, const char *name, struct pkv_err *err)
{
    struct pkv_out *out = pkv_alloc(1, sizeof *out, err);
    if (!out)
        return NULL;
    out->fd = out->lock_fd = -1;
    out->tail = "";
    out->path = dir ? join(dir, "/", name, err) : join("", "", name, err);
    if (!out->path || open_target(out, err) < 0) {
        destroy(out);
        return NULL;
    }
    return out;
}

static void write_all(struct pkv_out *out, const char *bytes, size_t length)
{
    while (length > 0 && !out->failure) {
        ssize_t written = write(out->fd, bytes, length);
        if (written < 0 && errno != EINTR)
            out->failure = errno;
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
            out->written_bytes += (uint64_t)written;
        }
    }
}

static int is_row_end(const struct pkv_out *out, size_t at)
{
    return out->row_ends[at / 8] >> at % 8 & 1;
}

static void empty_buffer(struct pkv_out *out)
{
    uint64_t before = out->written_bytes;
    write_all(out, out->buffer, out->used);
    for (size_t num = (size_t)(out->written_bytes - before); num > 0; num--)
        if (is_row_end(out, num - 1) && before + num + out->tail_length <= out->written_bytes) {
            out->whole_bytes = before + num;
            break;
        }
    memset(out->row_ends, 0, (out->used + 7) / 8);
    out->used = 0;
}

void pkv_out_end_with(struct pkv_out *out, const char *tail)
{
    out->tail = tail;
    out->tail_length = strlen(tail);
}

void pkv_out_end_row(struct pkv_out *out)
{
    if (out->failure)
        return;
    if (out->used == 0 && out->tail_length == 0)
        out->whole_bytes = out->written_bytes;
    else if (out->used > 0)
        out->row_ends[(out->used - 1) / 8] |= (unsigned char)(1u << (out->used - 1) % 8);
}

/* Where the next num bytes go; num is small against the buffer. */
static char *reserve(struct pkv_out *out, size_t num)
{
    if (BUFFER_SIZE - out->used < num)
        empty_buffer(out);
    return out->buffer + out->used;
}

void pkv_out_bytes(struct pkv_out *out, const char *bytes, size_t length)
{
    if (length > BUFFER_SIZE / 2) {
        empty_buffer(out);
        write_all(out, bytes, length);
        return;
    }
    memcpy(reserve(out, length), bytes, length);
    out->used += length;
}

void pkv_out_text(struct pkv_out *out, const char *text)
{
    pkv_out_bytes(out, text, strlen(text));
}

void pkv_out_char(struct pkv_out *out, char c)
{
    *reserve(out, 1) = c;
    out->used++;
}

void pkv_out_u64(struct pkv_out *out, uint64_t n)
{
    out->used += pkv_put_u64(reserve(out, PKV_DIGITS_MAX), n);
}

void pkv_out_i64(struct pkv_out *out, int64_t n)
{
    out->used += pkv_put_i64(reserve(out, PKV_DIGITS_MAX), n);
}

void pkv_out_csv_row(struct pkv_out *out, const int64_t *values, size_t num)
{
    char *begin = reserve(out, num * (PKV_DIGITS_MAX + 1)), *at = begin;
    for (size_t i = 0; i < num; i++) {
        int64_t n = values[i];
        if (n >= 0 && n < 10)
            *at++ = (char)('0' + n);
        else
            at += pkv_put_i64(at, n);
        *at++ = i + 1 < num ? ',' : '\n';
    }
    out->used += (size_t)(at - begin);
    pkv_out_end_row(out);
}

void pkv_out_json_text(struct pkv_out *out, const char *text)
{
    pkv_out_char(out, '"');
    while (*text) {
        size_t num = 0;
        text += pkv_json_unit(text, reserve(out, PKV_JSON_UNIT_MAX), &num);
        out->used += num;
    }
    pkv_out_char(out, '"');
}

int pkv_out_check(const struct pkv_out *out, struct pkv_err *err)
{
    if (out && out->failure)
        return fail_with_path(err, PKV_ERR_IO, out->path, "writing failed", out->failure);
    return 0;
}

int pkv_out_flush(struct pkv_out *out, struct pkv_err *err)
{
    empty_buffer(out);
    return pkv_out_check(out, err);
}

void pkv_out_spoil(struct pkv_out *out)
{
    out->used = 0;
    out->whole_bytes = 0;
    if (!out->failure)
        out->failure = ECANCELED;
}

/* Leave the whole rows of a file whose writing failed, or whose writer failed within a row. */
static void cut(struct pkv_out *out)
{
    ssize_t length = (ssize_t)out->tail_length;
    off_t end = (off_t)(out->whole_bytes + out->tail_length);
    if (!out->partial || out->whole_bytes == 0 ||
        pwrite(out->fd, out->tail, out->tail_length, (off_t)out->whole_bytes) != length ||
        ftruncate(out->fd, end) < 0)
        out->whole_bytes = 0;
}

int pkv_out_close(struct pkv_out *out, struct pkv_err *err)
{
    if (!out->failure)
        pkv_out_text(out, out->tail);
    int status = pkv_out_flush(out, err);
    int ends_in_a_row = out->tail_length == 0 && out->whole_bytes > 0 &&
                        out->whole_bytes < out->written_bytes;
    if (out->fd >= 0 && (status < 0 || ends_in_a_row))
        cut(out);
    if (out->fd >= 0 && !is_standard_output(out) && close(out->fd) < 0 && status == 0) {
        out->failure = errno;
        out->whole_bytes = 0;    /* who knows what is there */
        status = pkv_out_check(out, err);
    }
    out->fd = -1;
    return status;
}

int pkv_out_has_rows(const struct pkv_out *out)
{
    return !out->failure || out->whole_bytes > 0;
}

int pkv_out_install(struct pkv_out *out, struct pkv_err *err)
{
    int status = 0;
    if (out->partial && rename(out->partial, out->path) < 0) {
        status = fail_with_path(err, PKV_ERR_IO, out->path, "cannot be put in its place", errno);
        unlink(out->partial);
    }
    destroy(out);
    return status;
}

int pkv_out_commit(struct pkv_out *out, struct pkv_err *err)
{
    int status = pkv_out_close(out, err);
    if (!pkv_out_has_rows(out))
        pkv_out_drop(out);
    else if (pkv_out_install(out, status < 0 ? NULL : err) < 0)
        status = -1;
    return status;
}

void pkv_out_drop(struct pkv_out *out)
{
    if (!out)
        return;
    if (out->fd >= 0 && !is_standard_output(out))
        close(out->fd);
    if (out->partial)
        unlink(out->partial);
    destroy(out);
}

void pkv_out_drop_with_former(struct pkv_out *out)
{
    if (out && out->partial)
        unlink(out->path);
    pkv_out_drop(out);
}
