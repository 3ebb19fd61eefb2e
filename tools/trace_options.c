/*
 * trace_options.c - see trace_options.h.
 */
#include "trace_options.h"

#include <string.h>

#define MAX_BLOCK_SIZE (1u << 20)

int cli_trace_settle(const struct cli_trace_options *given, struct pkv_trace_options *out,
                     struct pkv_err *err)
{
    if (given->hash_block_size > MAX_BLOCK_SIZE)
        return pkv_fail_at(err, "--hash-block-size", 0, 0, "is not within 1 .. %u",
                           MAX_BLOCK_SIZE);
    *out = (struct pkv_trace_options){
        .format = given->format,
        .columns = given->columns,
        .time_unit = given->time_unit,
        .hash_block_size = (uint32_t)given->hash_block_size,
        .lenient_ids = given->lenient_ids,
        .sort = given->sort,
        .limit = given->limit,
    };
    return 0;
}

const char *cli_trace_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0)
        return "standard input";
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}
