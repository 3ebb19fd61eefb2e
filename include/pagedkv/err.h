/*
 * err.h - what went wrong, in one sentence with its place.
 *
 * Three kinds of bad are kept apart in this library. Wrong input returns -1 (or NULL) and fills a
 * struct pkv_err. A "no" is a named outcome of the call. A wrong program aborts (PKV_ASSERT).
 * Nothing below tools/ prints, exits, or reads the clock or the environment.
 */
#ifndef PAGEDKV_ERR_H
#define PAGEDKV_ERR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum pkv_err_code {
    PKV_ERR_NONE,
    PKV_ERR_INPUT,       /* the user's input is wrong; the text says what, the place says where */
    PKV_ERR_MEMORY,      /* an allocation failed */
    PKV_ERR_IO,          /* reading or writing failed half-way: disk full, device error */
    PKV_ERR_AUDIT,       /* an invariant does not hold; the text begins with its id, "P2: ..." */
    PKV_ERR_INTERRUPTED  /* the caller asked the run to stop; what was done so far is kept */
};

/* A plain value; copy it freely. Texts too long for their field end in "...". */
struct pkv_err {
    enum pkv_err_code code;
    char path[512];      /* file at fault, "" when there is none, "-" for standard input */
    uint64_t line;       /* from 1; 0 = no line */
    uint32_t column;     /* from 1, in bytes; 0 = no column */
    char text[512];      /* one sentence, no full stop, no newline */
};

/* Fill *err (NULL is allowed) and return -1, so that "return pkv_fail(...)" reads well. */
int pkv_fail(struct pkv_err *err, enum pkv_err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with PKV_ERR_INPUT and a place. path may be NULL; line and column may be 0. */
int pkv_fail_at(struct pkv_err *err, const char *path, uint64_t line, uint32_t column,
                const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Write "path:line:column: text" (parts that are absent are left out) and end it with NUL.
 *   returns   the length that the whole text has, as snprintf does */
size_t pkv_err_format(const struct pkv_err *err, char *out, size_t size);

/* Called by PKV_ASSERT: prints nothing below tools/, but leaves the sentence for a debugger and
 * a core dump in pkv_assert_text, then aborts. */
void pkv_assert_failed(const char *file, int line, const char *what) __attribute__((noreturn));

/* On in every build: a wrong program stops where it is wrong. */
#define PKV_ASSERT(cond) \
    ((cond) ? (void)0 : pkv_assert_failed(__FILE__, __LINE__, #cond))

/* A place that no right program comes to; what says what should have been there. */
#define PKV_UNREACHABLE(what) pkv_assert_failed(__FILE__, __LINE__, "not " what)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
