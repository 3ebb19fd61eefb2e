/*
 * outdir.h - the directory of -o, made if missing and, when the run fails on its input, gone again.
 */
#ifndef PKV_TOOLS_OUTDIR_H
#define PKV_TOOLS_OUTDIR_H

#include <stddef.h>

#include "base/out.h"
#include "pagedkv/err.h"

struct cli_outdir {
    char *path;             /* owned; NULL = no directory */
    size_t kept_length;     /* leading bytes of path that were there before */
};

/* Make path and its parents. path NULL = no directory. 0, or -1 with an error. */
int cli_outdir_make(struct cli_outdir *dir, const char *path, struct pkv_err *err);
/* Remove those directories that cli_outdir_make() made, if they are empty. */
void cli_outdir_unmake(struct cli_outdir *dir);
/* Name on stderr the files of a run that lie there but are not of this one, which wrote `files` (of
 * enum pkv_file). */
void cli_outdir_say_older(const struct cli_outdir *dir, unsigned files);
/* Is path ("-" = standard output) none of the files that a run writes there (files as above)? 0, or -1 with
 * PKV_ERR_INPUT that names the flag path came from. */
int cli_outdir_spare(const struct cli_outdir *dir, unsigned files, const char *path, const char *flag,
                     struct pkv_err *err);
/* The same for the directory of a former run that is read: is path none of the files that a run leaves? */
int cli_outdir_spare_former(const char *dir, const char *path, const char *flag, struct pkv_err *err);
/* Add those of `files` to a list, with the directory, parted by commas. */
void cli_outdir_list(const struct cli_outdir *dir, unsigned files, struct pkv_text *list);
void cli_outdir_free(struct cli_outdir *dir);

#endif
