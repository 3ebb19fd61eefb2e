/*
 * err.c - filling an error, and stopping a wrong program.
 */
#include "pagedkv/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_text.h"

char pkv_assert_text[512];

static void copy_text(char *out, size_t size, const char *text)
{
    size_t length = strlen(text);
    if (length < size) {
        memcpy(out, text, length + 1);
        return;
    }
    memcpy(out, text, size - 4);
    memcpy(out + size - 4, "...", 4);
}

static void fill_text(struct pkv_err *err, const char *fmt, va_list args)
{
    char text[sizeof err->text * 2];
    vsnprintf(text, sizeof text, fmt, args);
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    copy_text(err->text, sizeof err->text, text);
}

int pkv_fail(struct pkv_err *err, enum pkv_err_code code, const char *fmt, ...)
{
    if (!err)
        return -1;
    err->code = code;
    err->path[0] = '\0';
    err->line = 0;
    err->column = 0;
    va_list args;
    va_start(args, fmt);
    fill_text(err, fmt, args);
    va_end(args);
    return -1;
}

int pkv_fail_at(struct pkv_err *err, const char *path, uint64_t line, uint32_t column,
                const char *fmt, ...)
{
    if (!err)
        return -1;
    err->code = PKV_ERR_INPUT;
    copy_text(err->path, sizeof err->path, path ? path : "");
    err->line = line;
    err->column = column;
    va_list args;
    va_start(args, fmt);
    fill_text(err, fmt, args);
    va_end(args);
    return -1;
}

size_t pkv_err_format(const struct pkv_err *err, char *out, size_t size)
{
    char place[sizeof err->path + 64];
    place[0] = '\0';
    if (err->path[0] && err->line && err->column)
        snprintf(place, sizeof place, "%s:%" PRIu64 ":%" PRIu32 ": ", err->path, err->line,
                 err->column);
    else if (err->path[0] && err->line)
        snprintf(place, sizeof place, "%s:%" PRIu64 ": ", err->path, err->line);
    else if (err->path[0])
        snprintf(place, sizeof place, "%s: ", err->path);
    int length = snprintf(out, size, "%s%s", place, err->text);
    return length < 0 ? 0 : (size_t)length;
}

void pkv_assert_failed(const char *file, int line, const char *what)
{
    snprintf(pkv_assert_text, sizeof pkv_assert_text, "%s:%d: %s", file, line, what);
    abort();
}
