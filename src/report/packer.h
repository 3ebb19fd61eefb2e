/*
 * packer.h - a file that appears whole (base/out.h), packed by gzip when its name ends in ".gz".
 *
 * When the disk is full a plain file keeps its whole rows, and its tail behind them. Half of a packed one
 * would be of no use to anybody, so nothing is kept of it.
 */
#ifndef PKV_REPORT_PACKER_H
#define PKV_REPORT_PACKER_H

#include <stdbool.h>
#include <stddef.h>

#include "pagedkv/err.h"

struct packer;
/* tail: a constant, the last words. */
struct packer *packer_open(const char *path, const char *tail, struct pkv_err *err);
/* A row: the file may be cut behind it. -1 with PKV_ERR_MEMORY; a write that fails is told by check. */
int packer_row(struct packer *p, const char *text, size_t length, struct pkv_err *err);
/* Has a write failed so far? 0, or -1 with PKV_ERR_IO. */
int packer_check(const struct packer *p, struct pkv_err *err);
/* Add the last words, and take the name; -1 also when that is not all. The object is gone in every case.
 *   out_kept  is there a file of it, whole or cut? */
int packer_commit(struct packer *p, bool *out_kept, struct pkv_err *err);
/* Nothing is left. NULL is fine. */
void packer_drop(struct packer *p);

#endif
