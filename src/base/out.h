/*
 * out.h - buffered files that take their name when they are done, growing text, and JSON.
 *
 * A file is written beside its final name, as NAME.partial (NAME.2.partial, ... while others write
 * the same file), and renamed when it is done. One that is dropped leaves nothing; what a killed
 * writer left behind is taken over by the next. When a write
 * fails, the disk being full, what had been written is cut behind its last whole row and kept;
 * nothing is kept of a file whose writer marks no rows. What is no ordinary file (a pipe, a device,
 * a descriptor as /dev/stdout) is written straight.
 * Numbers are formatted by hand: a row of 28 integers takes about 100 ns.
 */
#ifndef PKV_BASE_OUT_H
#define PKV_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"

/* ---- place.c: before anything is opened ---- */

#define PKV_OUT_PARTIAL ".partial"    /* what a file is called until it is done: its name and this */

/* Would writing DIR/NAME (as pkv_out_open()) destroy `input`, an ordinary file that is read as well, under
 * this name, by a link, or as the file written beside it? Either may be "-"; input NULL, or one that is not
 * there, is never destroyed. 0, or -1 with PKV_ERR_INPUT and the path of the output. */
int pkv_out_spare(const char *dir, const char *name, const char *input, struct pkv_err *err);
/* Would two outputs with these paths get into each other's way? "-" is standard output. A device, as
 * /dev/null, takes any number. */
bool pkv_out_same(const char *a, const char *b);
/* The descriptor that a path is a name of: "-", /dev/stdout, /dev/fd/3 ... -1 = none. */
int pkv_out_descriptor(const char *path);

/* ---- out.c ---- */

struct pkv_out;

/* Open DIR/NAME for writing (dir NULL = name is the whole path; name "-" = standard output, which
 * is never renamed). errors: PKV_ERR_INPUT when it cannot be made, PKV_ERR_MEMORY. */
struct pkv_out *pkv_out_open(const char *dir, const char *name, struct pkv_err *err);
/* Write errors are kept and reported by check, flush or commit: callers need not look each time. */
void pkv_out_bytes(struct pkv_out *out, const char *bytes, size_t length);
void pkv_out_text(struct pkv_out *out, const char *text);
void pkv_out_char(struct pkv_out *out, char c);
void pkv_out_i64(struct pkv_out *out, int64_t n);
void pkv_out_u64(struct pkv_out *out, uint64_t n);
/* The file ends with this text, also when it is cut behind a row, as what a JSON array is closed by. tail:
 * a constant. To be said before anything is written. */
void pkv_out_end_with(struct pkv_out *out, const char *tail);
/* A row ends here: the file may be cut behind it. */
void pkv_out_end_row(struct pkv_out *out);
/* A row of a CSV file: the numbers, commas, a newline, the end of the row. num is at most 1,000. */
void pkv_out_csv_row(struct pkv_out *out, const int64_t *values, size_t num);
/* A JSON string with its quotes; text that is not UTF-8 is kept readable as \u00XX of its bytes. */
void pkv_out_json_text(struct pkv_out *out, const char *text);
/* Has a write failed so far? 0, or -1 with PKV_ERR_IO: disk full ... NULL is fine. */
int pkv_out_check(const struct pkv_out *out, struct pkv_err *err);
int pkv_out_flush(struct pkv_out *out, struct pkv_err *err);
/* Its writer could not go on: nothing of it is kept. */
void pkv_out_spoil(struct pkv_out *out);
/* Flush and close, cut when a write failed; the name is not taken yet. 0, or -1 with PKV_ERR_IO. */
int pkv_out_close(struct pkv_out *out, struct pkv_err *err);
/* After close: is there something to keep, the whole file or at least one row of it? */
int pkv_out_has_rows(const struct pkv_out *out);
/* After close: take the name. The object is gone in every case. */
int pkv_out_install(struct pkv_out *out, struct pkv_err *err);
/* Close, and take the name if there is something to keep. -1 also when that is not all. The object
 * is gone in every case. */
int pkv_out_commit(struct pkv_out *out, struct pkv_err *err);
/* Close and remove what was written. NULL is fine. */
void pkv_out_drop(struct pkv_out *out);
/* The same, and remove an ordinary file that has the final name, from an earlier run. */
void pkv_out_drop_with_former(struct pkv_out *out);

/* Text that grows; text[length] is NUL once something was added. Zero-initialise, finish with
 * pkv_text_free(). */
struct pkv_text {
    char *text;            /* owned */
    size_t length, capacity;
    int failed;            /* an allocation failed; the text is cut */
};
void pkv_text_add(struct pkv_text *t, const char *text);
void pkv_text_bytes(struct pkv_text *t, const char *bytes, size_t length);
void pkv_text_fmt(struct pkv_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pkv_text_u64(struct pkv_text *t, uint64_t n);
void pkv_text_i64(struct pkv_text *t, int64_t n);
/* A field of a CSV row, quoted when it has to be. */
void pkv_text_csv(struct pkv_text *t, const char *text);
/* As pkv_out_json_text(). */
void pkv_text_json(struct pkv_text *t, const char *text);
/* Text from outside as a terminal may have it: control characters and bytes that are no UTF-8 are
 * shown as \xNN. */
void pkv_text_visible(struct pkv_text *t, const char *bytes, size_t length);
/* Is all of it UTF-8? Else *out_at (NULL is allowed) is the first byte that is not. */
int pkv_is_utf8(const char *bytes, size_t length, size_t *out_at);
/* num / den with at most num_decimals decimals (at most 30), cut, without zeros at the end. den = 0
 * gives 0. num >= 0, num / den < 2^64, den < 2^123. */
void pkv_text_ratio(struct pkv_text *t, __int128 num, __int128 den, unsigned num_decimals);
void pkv_text_clear(struct pkv_text *t);
void pkv_text_free(struct pkv_text *t);

/* Make a directory and its parents. 0, or -1 with PKV_ERR_INPUT and the path. */
int pkv_make_dir(const char *path, struct pkv_err *err);

#endif
