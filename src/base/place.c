/*
 * place.c - which file a path is: what an output would write over.
 *
 * Two paths are one place when the same folder has it under the same name, whether it is there yet or not,
 * or when both are the same ordinary file. An output takes the place beside its own, too, until it is done.
 */
#include "base/out.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/units.h"

int pkv_out_descriptor(const char *path)
{
    static const struct { const char *path; int fd; } names[] = {
        {"-", STDOUT_FILENO}, {"/dev/stdout", STDOUT_FILENO}, {"/dev/stderr", STDERR_FILENO}};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i].path) == 0)
            return names[i].fd;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        uint64_t fd;
        if (strncmp(path, folders[i], length) == 0 &&
            pkv_parse_u64(path + length, strlen(path + length), INT32_MAX, &fd, NULL) == 0)
            return (int)fd;
    }
    return -1;
}

static bool look(const char *path, int standard_fd, struct stat *out)
{
    return (strcmp(path, "-") == 0 ? fstat(standard_fd, out) : stat(path, out)) == 0;
}

static bool is_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool find_file(const char *path, int standard_fd, struct stat *out)
{
    return look(path, standard_fd, out) && S_ISREG(out->st_mode);
}

static bool is_file(const char *path, const struct stat *other)
{
    struct stat there;
    return find_file(path, STDOUT_FILENO, &there) && is_one(&there, other);
}

static void add_path(struct pkv_text *t, const char *dir, const char *name)
{
    if (dir)
        pkv_text_fmt(t, "%s/%s", dir, name);
    else
        pkv_text_add(t, name);
}

static int fail_no_room(struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a path");
}

int pkv_out_spare(const char *dir, const char *name, const char *input, struct pkv_err *err)
{
    struct stat read;
    struct pkv_text path = {0}, partial = {0};
    if (!input || !find_file(input, STDIN_FILENO, &read))
        return 0;
    add_path(&path, dir, name);
    add_path(&partial, dir, name);
    pkv_text_add(&partial, PKV_OUT_PARTIAL);
    bool is_printed = strcmp(name, "-") == 0;
    int status = path.failed || partial.failed ? fail_no_room(err) : 0;
    if (status == 0 && (is_file(path.text, &read) || (!is_printed && is_file(partial.text, &read))))
        status = pkv_fail_at(err, path.text, 0, 0, "this would write over the input (%s); name another "
                             "file", input);
    pkv_text_free(&path);
    pkv_text_free(&partial);
    return status;
}

/* Have both the same last part, and is it in the same folder? suffix: of a's. */
static bool is_same_entry(const char *a, const char *suffix, const char *b)
{
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    const char *name_a = slash_a ? slash_a + 1 : a, *name_b = slash_b ? slash_b + 1 : b;
    size_t length = strlen(name_a);
    struct stat folder_a, folder_b;
    struct pkv_text t = {0}, u = {0};
    if (strncmp(name_a, name_b, length) != 0 || strcmp(name_b + length, suffix) != 0)
        return false;
    pkv_text_fmt(&t, "%.*s.", (int)(name_a - a), a);
    pkv_text_fmt(&u, "%.*s.", (int)(name_b - b), b);
    bool same = !t.failed && !u.failed && look(t.text, -1, &folder_a) && look(u.text, -1, &folder_b) &&
                is_one(&folder_a, &folder_b);
    pkv_text_free(&t);
    pkv_text_free(&u);
    return same;
}

/* What is written there is one text: an ordinary file, a pipe. /dev/null takes any number. */
static bool is_one_text(const char *a, const char *b)
{
    struct stat at_a, at_b;
    if (!look(a, STDOUT_FILENO, &at_a) || !look(b, STDOUT_FILENO, &at_b) || !is_one(&at_a, &at_b))
        return false;
    return !S_ISCHR(at_a.st_mode);
}

bool pkv_out_same(const char *a, const char *b)
{
    int fd = pkv_out_descriptor(a), other = pkv_out_descriptor(b);
    if (is_one_text(a, b) || (fd >= 0 && fd == other))
        return true;
    if (fd >= 0 || other >= 0)
        return false;
    struct stat at;
    if (look(a, -1, &at) && !S_ISREG(at.st_mode))
        return false;
    return is_same_entry(a, "", b) || is_same_entry(a, PKV_OUT_PARTIAL, b) ||
           is_same_entry(b, PKV_OUT_PARTIAL, a);
}
