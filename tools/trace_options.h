/*
 * trace_options.h - the options of commands that read a trace and run nothing: how to read it.
 */
#ifndef PKV_TOOLS_TRACE_OPTIONS_H
#define PKV_TOOLS_TRACE_OPTIONS_H

#include "cli.h"
#include "pagedkv/trace.h"

struct cli_trace_options {
    const char *format, *columns, *time_unit;
    uint64_t hash_block_size, limit;          /* 0 = not given */
    bool sort, lenient_ids;
};

/* Rows of a command's table; the struct above is its values' member `member`. */
#define CLI_TRACE_AT(values, member, field) \
    (offsetof(values, member) + offsetof(struct cli_trace_options, field))
#define CLI_TRACE_OPTIONS(values, member)                                                          \
    {.name = "format", .arg = "NAME", .fallback = "found by content",                              \
     .help = "format of the trace; `pagedkv formats` lists them", .kind = CLI_WORD,                \
     .offset = CLI_TRACE_AT(values, member, format)},                                              \
    {.name = "columns", .arg = "ROLE=NAME,...",                                                    \
     .help = "read any CSV by its header: arrival=, prompt=, output= and, if there, id=, tenant=, " \
             "session=, priority=, max_tokens=", .kind = CLI_WORD,                                 \
     .offset = CLI_TRACE_AT(values, member, columns)},                                             \
    {.name = "time-unit", .arg = "UNIT", .fallback = "s",                                          \
     .help = "of the arrivals in such a CSV: s, ms, us, ns or date", .kind = CLI_WORD,             \
     .offset = CLI_TRACE_AT(values, member, time_unit)},                                           \
    {.name = "hash-block-size", .arg = "N", .fallback = "512",                                     \
     .help = "tokens that one hash id of the trace stands for; left out, 16 under the format "     \
             "bailian", .kind = CLI_COUNT,                                                         \
     .offset = CLI_TRACE_AT(values, member, hash_block_size)},                                     \
    {.name = "limit", .arg = "N", .fallback = "all", .help = "read only the first N rows",         \
     .kind = CLI_COUNT, .offset = CLI_TRACE_AT(values, member, limit)},                            \
    {.name = "sort",                                                                               \
     .help = "sort the rows by arrival; else the first one out of order is an error",              \
     .kind = CLI_SWITCH, .offset = CLI_TRACE_AT(values, member, sort)},                            \
    {.name = "lenient-ids", .help = "pad or cut the hash ids of a row whose number does not fit "  \
     "its length; else it is an error", .kind = CLI_SWITCH,                                        \
     .offset = CLI_TRACE_AT(values, member, lenient_ids)}

/* As the reader takes them. 0, or -1 with PKV_ERR_INPUT: a block size out of range. */
int cli_trace_settle(const struct cli_trace_options *given, struct pkv_trace_options *out,
                     struct pkv_err *err);
/* The file's name for a heading; "-" is standard input. */
const char *cli_trace_name(const char *path);

#endif
