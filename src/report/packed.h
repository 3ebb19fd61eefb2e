/*
 * packed.h - tables of whole numbers for report.html, packed row by row while a run goes on.
 *
 * A table is written as an island, a script element that a browser does not run:
 *
 *   <script type="text/plain" id="pkv-steps">{"columns":["step","limit"],"linear":["step"],"less":{},
 *   "plus":{},"rows":3}      (on one line)
 *   H4sIAAAA...
 *   H4sIAAAA...
 *   </script>
 *
 * Behind the line of JSON stands one line for each column, in their order: base64 of gzip of varints
 * (LEB128). Each is the zigzag of a value's difference to the one above, the first one's to 0; zigzag of d
 * is 2 d, or -2 d - 1 when d is negative. Differences of 0, which most are, are counted: a 0 is followed
 * by how many there are in a row. Of columns under "linear", those which grow evenly, differences of these
 * differences are written. Of a column under "less" its difference to the other's value in the same row,
 * of one under "plus" their sum, is packed in the place of the value. All wrap around in 64 bits; what a
 * page reads has to be exact below 2^53.
 *
 * Memory: under 50 kB a column, and what the values take packed, of which most repeat.
 */
#ifndef PKV_REPORT_PACKED_H
#define PKV_REPORT_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"

struct packed;

/* columns: [num], names, borrowed for the table's life. errors: PKV_ERR_MEMORY */
struct packed *packed_create(const char *const *columns, size_t num, struct pkv_err *err);
void packed_destroy(struct packed *table);
/* A column that mostly goes on as it went, as time does. Before the first row. */
void packed_set_linear(struct packed *table, size_t column);
/* A column that says nearly the same as another one, or (mirrored) what that lacks. The other has no such
 * setting itself. */
void packed_set_like(struct packed *table, size_t column, size_t other, bool mirrored);
/* values: [num]. After a failure the table is to be destroyed.
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int packed_row(struct packed *table, const int64_t *values, struct pkv_err *err);
uint64_t packed_num_rows(const struct packed *table);
/* The island "pkv-" + prefix + name. No row can be added any more; write it once.
 *   prefix   of the run on its page; it and the name have letters, digits and hyphens
 *   returns  0, or -1 with PKV_ERR_MEMORY; write errors are out's */
int packed_write(struct packed *table, const char *prefix, const char *name, struct pkv_out *out,
                 struct pkv_err *err);

/* A column of texts, which is an island of its own: {"texts":N}, then one line of base64 of gzip of the
 * texts, each with a newline behind it; a backslash in it stands as \\, a newline as \n. */
struct packed_texts;
struct packed_texts *packed_texts_create(struct pkv_err *err);
void packed_texts_destroy(struct packed_texts *texts);
int packed_texts_add(struct packed_texts *texts, const char *text, struct pkv_err *err);
int packed_texts_write(struct packed_texts *texts, const char *prefix, const char *name,
                       struct pkv_out *out, struct pkv_err *err);

#endif
