/*
 * dir.c - making a directory and its parents.
 */
#include "base/out.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int is_directory(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

/* One level; being there already is fine. */
static int make_one(const char *path, struct pkv_err *err)
{
    if (mkdir(path, 0777) == 0)
        return 0;
    int why = errno;    /* looking whether it is there would write over it */
    if (is_directory(path))
        return 0;
    return pkv_fail_at(err, path, 0, 0, "directory cannot be made: %s",
                       strerror(why == EEXIST ? ENOTDIR : why));
}

int pkv_make_dir(const char *path, struct pkv_err *err)
{
    char *copy = pkv_strdup(path, err);
    int status = copy ? 0 : -1;
    for (char *slash = copy; status == 0 && slash && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        status = make_one(copy, err);
        *slash = '/';
    }
    if (status == 0 && make_one(path, err) < 0)
        status = -1;
    pkv_free(copy);
    return status;
}
