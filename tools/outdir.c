/*
 * outdir.c - the directory of -o, made if missing and, when the run fails on its input, gone again.
 *
 * What was there before is measured first, as a length of the path: undoing is then removing the
 * last part of the path until that length is reached. Only empty directories are ever removed.
 */
#include "outdir.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/out.h"
#include "cli.h"
#include "pagedkv/metrics.h"

static void cut_slashes(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = 0;
}

/* Cut the last part off; false when there is none left. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return false;
    *slash = 0;
    cut_slashes(path);
    return true;
}

/* How much of path exists. */
static int measure(const char *path, size_t *out, struct pkv_err *err)
{
    struct stat info;
    char *part = pkv_strdup(path, err);
    if (part == NULL)
        return -1;
    *out = 0;
    do {
        if (stat(part, &info) == 0) {
            *out = strlen(part);
            break;
        }
    } while (cut_last(part));
    pkv_free(part);
    return 0;
}

int cli_outdir_make(struct cli_outdir *dir, const char *path, struct pkv_err *err)
{
    memset(dir, 0, sizeof *dir);
    if (path == NULL)
        return 0;
    if (path[0] == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "-o: the name of the directory is empty");
    dir->path = pkv_strdup(path, err);
    if (dir->path == NULL)
        return -1;
    cut_slashes(dir->path);
    if (measure(dir->path, &dir->kept_length, err) < 0)
        return -1;
    if (pkv_make_dir(dir->path, err) < 0) {
        cli_outdir_unmake(dir);
        return -1;
    }
    return 0;
}

void cli_outdir_unmake(struct cli_outdir *dir)
{
    if (dir->path == NULL)
        return;
    while (strlen(dir->path) > dir->kept_length) {
        rmdir(dir->path);      /* fails on one that is not empty, which is then kept */
        if (!cut_last(dir->path))
            break;
    }
    dir->path[0] = 0;
}

static const struct { unsigned bit; const char *name; } known[] = {
#define ROW(sym, bit, name) {bit, name},
    PKV_FILES(ROW)
#undef ROW
};

void cli_outdir_say_older(const struct cli_outdir *dir, unsigned files)
{
    char path[4096], list[128] = "";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t used = strlen(list);
        snprintf(path, sizeof path, "%s/%s", dir->path, known[i].name);
        if (!(files & known[i].bit) && access(path, F_OK) == 0)
            snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", known[i].name);
    }
    if (list[0] != 0)
        cli_complain("%s: left from an earlier run: %s", dir->path, list);
}

/* The first of these files of a run in dir that path would get in the way of; NULL = none. */
static const char *find_clash(const char *dir, unsigned files, const char *path)
{
    struct pkv_text file = {0};
    const char *found = NULL;
    for (size_t i = 0; found == NULL && i < sizeof known / sizeof *known; i++) {
        pkv_text_clear(&file);
        pkv_text_fmt(&file, "%s/%s", dir, known[i].name);
        if ((files & known[i].bit) != 0 && !file.failed && pkv_out_same(file.text, path))
            found = known[i].name;
    }
    pkv_text_free(&file);
    return found;
}

int cli_outdir_spare(const struct cli_outdir *dir, unsigned files, const char *path, const char *flag,
                     struct pkv_err *err)
{
    const char *name = dir->path != NULL ? find_clash(dir->path, files, path) : NULL;
    if (name == NULL)
        return 0;
    if (strcmp(path, "-") == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "%s: %s/%s is a file that the run writes as well; name "
                        "another", flag, dir->path, name);
    return pkv_fail(err, PKV_ERR_INPUT, "%s: %s is a file that the run writes as well; name another", flag,
                    path);
}

int cli_outdir_spare_former(const char *dir, const char *path, const char *flag, struct pkv_err *err)
{
    if (find_clash(dir, PKV_FILE_ALL, path) == NULL)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, "%s: %s: this would write over the run in %s, whose cache is read; "
                    "name another file", flag, path, dir);
}

void cli_outdir_list(const struct cli_outdir *dir, unsigned files, struct pkv_text *list)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((files & known[i].bit) != 0)
            pkv_text_fmt(list, "%s%s/%s", list->length > 0 ? ", " : "", dir->path, known[i].name);
}

void cli_outdir_free(struct cli_outdir *dir)
{
    pkv_free(dir->path);
    dir->path = NULL;
}
