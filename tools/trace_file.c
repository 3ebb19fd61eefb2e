/*
 * trace_file.c - see trace_file.h.
 */
#include "trace_file.h"

int cli_trace_put(void *ctx, const char *bytes, size_t length, struct pkv_err *err)
{
    struct pkv_out *out = ctx;
    pkv_out_bytes(out, bytes, length);
    return pkv_out_check(out, err);
}

int cli_trace_write(const char *path, const struct pkv_source *source,
                    const struct pkv_trace_texts *(*texts)(const void *ctx), const void *ctx,
                    uint64_t *out_rows, struct pkv_err *err)
{
    struct pkv_out *out = pkv_out_open(NULL, path, err);
    struct pkv_trace_writer_config config = {.format = "native", .put = cli_trace_put, .ctx = out};
    struct pkv_trace_writer *writer = out ? pkv_trace_writer_create(&config, err) : NULL;
    struct pkv_request_spec spec;
    int more = writer ? 1 : -1;
    *out_rows = 0;
    while (more > 0 && (more = source->next(source->ctx, &spec, err)) > 0) {
        if (pkv_trace_writer_row(writer, &spec, texts(ctx), err) < 0)
            more = -1;
        ++*out_rows;
    }
    if (more == 0)
        more = pkv_trace_writer_end(writer, err);
    pkv_trace_writer_destroy(writer);
    if (more == 0)
        return pkv_out_commit(out, err);
    pkv_out_drop(out);
    return -1;
}
