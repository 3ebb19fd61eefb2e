/*
 * out.c - buffered files that appear whole or not at all.
 *
 * What is not an ordinary file (a terminal, a pipe, a device) cannot be renamed onto: it is written
 * straight. A write that failed is remembered and everything after it thrown away, so that callers
 * look once, at flush or commit.
 */
#include "base/out.h"

#include "base/alloc.h"
#include "base/format_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)64 << 10)

struct pkv_out {
    int fd;
    int failure;       /* errno of the first write that failed; 0 = none */
    char *path;        /* owned; the final name */
    char *partial;     /* owned; NULL = written straight */
    size_t used;
    char buffer[BUFFER_SIZE];
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
    pkv_free(out->path);
    pkv_free(out->partial);
    pkv_free(out);
}

static int is_standard_output(const struct pkv_out *out)
{
    return out->fd == STDOUT_FILENO && strcmp(out->path, "-") == 0;
}

/* Decide where the bytes go, and open that. */
static int open_target(struct pkv_out *out, struct pkv_err *err)
{
    struct stat there;
    if (strcmp(out->path, "-") == 0) {
        out->fd = STDOUT_FILENO;
        return 0;
    }
    int exists = stat(out->path, &there) == 0;
    if (exists && S_ISDIR(there.st_mode))
        return fail_with_path(err, PKV_ERR_INPUT, out->path, "cannot be written", EISDIR);
    if (!exists || S_ISREG(there.st_mode)) {
        out->partial = join(out->path, "", ".partial", err);
        if (!out->partial)
            return -1;
    }
    out->fd = open(out->partial ? out->partial : out->path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out->fd < 0)
        return fail_with_path(err, PKV_ERR_INPUT, out->path, "cannot be written", errno);
    return 0;
}

struct pkv_out *pkv_out_open(const char *dir, const char *name, struct pkv_err *err)
{
    struct pkv_out *out = pkv_alloc(1, sizeof *out, err);
    if (!out)
        return NULL;
    out->fd = -1;
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
        }
    }
}

static void empty_buffer(struct pkv_out *out)
{
    write_all(out, out->buffer, out->used);
    out->used = 0;
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

int pkv_out_commit(struct pkv_out *out, struct pkv_err *err)
{
    int status = pkv_out_flush(out, err);
    if (!is_standard_output(out) && close(out->fd) < 0 && status == 0)
        status = fail_with_path(err, PKV_ERR_IO, out->path, "writing failed", errno);
    if (status == 0 && out->partial && rename(out->partial, out->path) < 0)
        status = fail_with_path(err, PKV_ERR_IO, out->path, "cannot be put in its place", errno);
    if (status < 0 && out->partial)
        unlink(out->partial);
    destroy(out);
    return status;
}

void pkv_out_drop(struct pkv_out *out)
{
    if (!out)
        return;
    if (!is_standard_output(out))
        close(out->fd);
    if (out->partial)
        unlink(out->partial);
    destroy(out);
}
