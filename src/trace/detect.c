/*
 * detect.c - the format of a trace, by the names in its first line: columns of a header, or fields
 * of a row. The reader that knows most of them wins; a name it does not know is then its error.
 */
#include "trace/detect_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define READERS(X)                                                                    \
    X(native) X(mooncake) X(dynamo) X(azure) X(burstgpt) X(vidur) X(splitwise)        \
    X(blis) X(llmservingsim) X(bailian) X(tokens) X(csv)

static const struct pkv_reader *const readers[] = {
#define PKV_READER(name) &pkv_reader_##name,
    READERS(PKV_READER)
#undef PKV_READER
};
#define NUM_READERS (sizeof readers / sizeof *readers)

const struct pkv_trace_format *const *pkv_trace_format_list(size_t *out_num)
{
    static const struct pkv_trace_format *const formats[] = {
#define PKV_INFO(name) &pkv_reader_##name.info,
        READERS(PKV_INFO)
#undef PKV_INFO
    };
    *out_num = NUM_READERS;
    return formats;
}

static const char *list_names(char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < NUM_READERS; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "",
                                 readers[i]->info.name);
    return out;
}

const struct pkv_reader *pkv_detect_by_name(const char *name, struct pkv_err *err)
{
    char names[256];
    for (size_t i = 0; i < NUM_READERS; i++)
        if (strcmp(readers[i]->info.name, name) == 0)
            return readers[i];
    pkv_fail(err, PKV_ERR_INPUT, "'%s' is no trace format (known: %s)", name,
             list_names(names, sizeof names));
    return NULL;
}

int pkv_detect_first_line(struct pkv_trace *t, const char **out_text, size_t *out_length,
                          struct pkv_err *err)
{
    int more;
    while ((more = pkv_lines_next(&t->lines, out_text, out_length, err)) > 0)
        for (size_t i = 0; i < *out_length; i++)
            if (!strchr(" \t\r", (*out_text)[i]) || !(*out_text)[i])
                return 1;
    return more;
}

/* The field names of a row into t->csv, as a header's would be. */
static int split_row(struct pkv_trace *t, const char *text, size_t length, struct pkv_err *err)
{
    struct pkv_csv *csv = &t->csv;
    struct pkv_json j;
    struct pkv_json_text key;
    int more;
    csv->num_fields = 0;
    pkv_json_init(&j, pkv_trace_path(t), t->lines.number, text, length);
    if (pkv_json_enter_object(&j, err) < 0)
        return -1;
    while ((more = pkv_json_next_member(&j, &key, err)) > 0) {
        if (pkv_grow(&csv->fields, &csv->capacity, csv->num_fields + 1, sizeof *csv->fields,
                     err) < 0 ||
            pkv_json_value(&j, NULL, err) < 0)
            return -1;
        csv->fields[csv->num_fields++] = (struct pkv_field){
            .text = key.text, .length = key.length, .column = key.column,
        };
    }
    return more < 0 ? -1 : pkv_json_end(&j, err);
}

static bool is_object(const char *text, size_t length)
{
    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    return length > 0 && *text == '{';
}

/* A BLIS trace is two files, and this may be the wrong one. */
static bool is_blis_header(const char *text, size_t length)
{
    static const char key[] = "trace_version:";
    return length >= sizeof key - 1 && memcmp(text, key, sizeof key - 1) == 0;
}

/* What was found in place of a format's names, and how it is read all the same. */
static void fail_unknown(const struct pkv_trace *t, const char *text, size_t length, bool rows,
                         struct pkv_err *err)
{
    char names[160], there[130];
    if (is_blis_header(text, length)) {
        pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "this is the header of a BLIS trace; "
                    "its rows are in the CSV beside it");
        return;
    }
    pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "the format is unknown (known: %s; "
                "pagedkv formats shows how they look); %s%s", list_names(names, sizeof names),
                rows ? "make rows with other names native ones, with timestamp (ms), input_length, "
                       "output_length: this one has "
                     : "a CSV with other columns is read by --columns "
                       "arrival=NAME,prompt=NAME,output=NAME: this one has ",
                pkv_csv_list(t->csv.fields, t->csv.num_fields, there, sizeof there));
}

/* The reader that knows most of the names. */
static const struct pkv_reader *best_reader(bool rows, const struct pkv_field *names, size_t num,
                                            int *out_rate)
{
    const struct pkv_reader *best = NULL;
    *out_rate = 0;
    for (size_t i = 0; i < NUM_READERS; i++) {
        int rate = readers[i]->has_header == rows ? 0 : readers[i]->rate(readers[i], names, num);
        if (rate > *out_rate) {
            *out_rate = rate;
            best = readers[i];
        }
    }
    return best;
}

/* ctx: the reader, NULL = any of them. */
static int count_known(const void *ctx, const struct pkv_field *names, size_t num)
{
    const struct pkv_reader *reader = ctx;
    int rate;
    if (reader)
        return reader->rate(reader, names, num);
    best_reader(false, names, num, &rate);
    return rate;
}

/* A program that writes all rows as one value. */
static bool is_array(const char *text, size_t length)
{
    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    return length > 0 && *text == '[';
}

int pkv_detect_split_head(struct pkv_trace *t, const struct pkv_reader *reader, const char *text,
                          size_t length, struct pkv_err *err)
{
    if (is_object(text, length))
        return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "this is a row of JSON; format %s "
                           "is CSV, and its first line names the columns", reader->info.name);
    return pkv_csv_split_head(&t->csv, pkv_trace_path(t), t->lines.number, text, length, count_known,
                              reader, err);
}

const struct pkv_reader *pkv_detect_reader(struct pkv_trace *t, const char *text, size_t length,
                                           struct pkv_err *err)
{
    bool rows = is_object(text, length);
    int rate;
    if (is_array(text, length)) {
        pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "this file is one JSON array; a trace has "
                    "one object on each line, as jq -c '.[]' writes them");
        return NULL;
    }
    if ((rows ? split_row(t, text, length, err)
              : pkv_csv_split_head(&t->csv, pkv_trace_path(t), t->lines.number, text, length, count_known,
                                   NULL, err)) < 0)
        return NULL;
    const struct pkv_reader *best = best_reader(rows, t->csv.fields, t->csv.num_fields, &rate);
    if (!best)
        fail_unknown(t, text, length, rows, err);
    return best;
}
