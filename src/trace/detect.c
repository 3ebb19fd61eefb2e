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

static void fail_unknown(const struct pkv_trace *t, const char *text, size_t length,
                         struct pkv_err *err)
{
    char names[256];
    if (is_blis_header(text, length)) {
        pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "this is the header of a BLIS trace; "
                    "its rows are in the CSV beside it");
        return;
    }
    pkv_fail_at(err, pkv_trace_path(t), t->lines.number, 0, "the format is unknown (known: %s; "
                "pagedkv formats shows how they look); a CSV with other columns is read by "
                "--columns arrival=NAME,prompt=NAME,output=NAME", list_names(names, sizeof names));
}

const struct pkv_reader *pkv_detect_reader(struct pkv_trace *t, const char *text, size_t length,
                                           struct pkv_err *err)
{
    const struct pkv_reader *best = NULL;
    int best_rate = 0;
    bool rows = is_object(text, length);
    if ((rows ? split_row(t, text, length, err)
              : pkv_csv_split(&t->csv, pkv_trace_path(t), t->lines.number, text, length,
                              err)) < 0)
        return NULL;
    for (size_t i = 0; i < NUM_READERS; i++) {
        if (readers[i]->has_header == rows)
            continue;
        int rate = readers[i]->rate(readers[i], t->csv.fields, t->csv.num_fields);
        if (rate > best_rate) {
            best_rate = rate;
            best = readers[i];
        }
    }
    if (!best)
        fail_unknown(t, text, length, err);
    return best;
}
