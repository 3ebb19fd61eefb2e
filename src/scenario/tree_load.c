/*
 * tree_load.c - a whole configuration file into memory, then into a tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "scenario/tree_private.h"

#define MAX_BYTES ((size_t)16 << 20)

/* Read to the end of the file. *out is owned by the caller also on failure. */
static int read_all(int fd, const char *path, char **out, size_t *out_length, struct pkv_err *err)
{
    size_t capacity = 0, length = 0;

    for (;;) {
        ssize_t got;

        if (length > MAX_BYTES)
            return pkv_fail_at(err, path, 0, 0, "is larger than 16 MiB; it is not a configuration");
        if (pkv_grow(out, &capacity, length + 4096, 1, err) < 0)
            return -1;
        got = read(fd, *out + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return pkv_fail_at(err, path, 0, 0, "cannot be read: %s", strerror(errno));
        if (got == 0)
            break;
        length += (size_t)got;
    }
    *out_length = length;
    return 0;
}

int tree_load(struct forest *forest, const char *path, enum tree_format format,
              struct node **out, struct pkv_err *err)
{
    struct stat info;
    char *text = NULL;
    size_t length = 0;
    int result = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return pkv_fail_open(err, path, errno);
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        pkv_fail_at(err, path, 0, 0, "is a directory, not a file");
        goto out;
    }
    if (read_all(fd, path, &text, &length, err) < 0)
        goto out;
    if (length == 0) {
        pkv_fail_at(err, path, 0, 0, "is empty");
        goto out;
    }
    result = tree_parse(forest, path, text, length, format, true, out, err);
out:
    pkv_free(text);
    close(fd);
    return result;
}
