/*
 * trace.c - open a trace, find its format, and give its rows in order.
 *
 * The way of a row: line -> reader (spec with the file's own times) -> order or sort -> dates
 * rebased -> speed-up -> numbered. Memory holds one row, all of them only under `sort`.
 *
 *   T1  arrivals never fall from row to row
 *   T2  rows are numbered from 0 without gaps
 *   T3  the prompt spans of a row sum up to its prompt tokens, and are never empty
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/out.h"
#include "trace/detect_private.h"
#include "trace/trace_private.h"

#define DEFAULT_HASH_BLOCK_SIZE 512u
#define MAX_SPEEDUP_TERM UINT64_C(1000000000)   /* products of remainders fit 64 bits */

const char *pkv_trace_path(const struct pkv_trace *t)
{
    return pkv_input_path(t->input);
}

int pkv_slot_set(struct pkv_slot *slot, const struct pkv_json_text *string, struct pkv_err *err)
{
    if (pkv_grow(&slot->text, &slot->capacity, string->length + 1, 1, err) < 0)
        return -1;
    slot->text[pkv_json_unescape(string, slot->text)] = '\0';
    return 0;
}

int pkv_slot_set_field(struct pkv_trace *t, struct pkv_slot *slot, const struct pkv_field *field,
                       struct pkv_err *err)
{
    if (memchr(field->text, '\0', field->length))
        return pkv_fail_at(err, pkv_trace_path(t), t->lines.number, field->column,
                           "this text has a NUL in it");
    if (pkv_grow(&slot->text, &slot->capacity, field->length + 1, 1, err) < 0)
        return -1;
    slot->text[pkv_csv_unquote(field, slot->text)] = '\0';
    return field->length > 0;
}

int pkv_row_split(struct pkv_trace *t, const char *text, size_t length, struct pkv_err *err)
{
    struct pkv_csv *csv = &t->csv;
    if (pkv_csv_split(csv, pkv_trace_path(t), t->lines.number, text, length, err) < 0)
        return -1;
    if (csv->num_fields != csv->num_columns)
        return pkv_fail_at(err, pkv_trace_path(t), t->lines.number,
                           csv->fields[csv->num_fields - 1].column,
                           "this row has %zu fields, the header has %zu%s", csv->num_fields,
                           csv->num_columns, csv->num_fields > csv->num_columns && csv->separator == ','
                           ? "; a value with a comma in it stands in quotes" : "");
    return 0;
}

void pkv_row_begin(struct pkv_trace *t, struct pkv_row *row)
{
    t->num_spans = t->num_hash_ids = t->num_outputs = 0;
    t->num_named_tokens = 0;
    t->has_own_text = false;
    pkv_row_texts_clear(&t->texts);
    *row = (struct pkv_row){
        .spec = {.abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME},
    };
    row->spec.content.root = pkv_content_root(NULL, NULL);
    row->spec.content.output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, t->num_read);
}

int pkv_row_add_span(struct pkv_trace *t, struct pkv_trace_text of, uint32_t first,
                     uint32_t count, struct pkv_err *err)
{
    if (pkv_grow(&t->spans, &t->spans_capacity, t->num_spans + 1, sizeof *t->spans, err) < 0 ||
        (t->options.keep_texts && pkv_row_texts_add(&t->texts, &of, err) < 0))
        return -1;
    t->spans[t->num_spans++] = (struct pkv_span){pkv_origin(of.kind, of.number), first, count};
    t->has_own_text |= of.kind != PKV_ORIGIN_PREV && !pkv_origin_is_named(of.kind, of.number);
    t->num_named_tokens += t->has_own_text ? 0 : count;
    return 0;
}

int pkv_row_add_own(struct pkv_trace *t, uint32_t first, uint32_t count, struct pkv_err *err)
{
    return pkv_row_add_span(t, (struct pkv_trace_text){PKV_ORIGIN_OWN, t->num_read, NULL}, first,
                            count, err);
}

uint64_t pkv_row_want_ids(const struct pkv_trace *t, uint64_t length)
{
    uint64_t block = t->options.hash_block_size;
    return (length + block - 1) / block;
}

int pkv_row_add_hash_ids(struct pkv_trace *t, uint64_t length, struct pkv_err *err)
{
    uint64_t block = t->options.hash_block_size, left = length;
    t->notes.ids_padded += t->num_hash_ids != pkv_row_want_ids(t, length) ? 1 : 0;
    for (size_t i = 0; i < t->num_hash_ids && left > 0; i++) {
        uint64_t count = left < block ? left : block;
        struct pkv_trace_text of = {PKV_ORIGIN_HASH_ID, t->hash_ids[i], NULL};
        if (pkv_row_add_span(t, of, 0, (uint32_t)count, err) < 0)
            return -1;
        left -= count;
    }
    return left == 0 ? 0 : pkv_row_add_own(t, 0, (uint32_t)left, err);
}

void pkv_row_end(struct pkv_trace *t, struct pkv_row *row)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < t->num_spans; i++)
        sum += t->spans[i].count;
    row->spec.num_prompt_tokens = sum;
    row->spec.content.prompt = t->spans;
    row->spec.content.num_prompt_spans = t->num_spans;
    row->spec.content.num_named_tokens = t->num_named_tokens;
}

static int set_options(struct pkv_trace *t, const struct pkv_trace_options *options,
                       struct pkv_err *err)
{
    struct pkv_trace_options *o = &t->options;
    if (options)
        *o = *options;
    if (!o->speedup_num)
        o->speedup_num = 1;
    if (!o->speedup_den)
        o->speedup_den = 1;
    if (o->speedup_num > MAX_SPEEDUP_TERM || o->speedup_den > MAX_SPEEDUP_TERM)
        return pkv_fail(err, PKV_ERR_INPUT, "a speed-up of %" PRIu64 " / %" PRIu64 " is out of "
                        "range: both numbers may be at most %" PRIu64, o->speedup_num,
                        o->speedup_den, MAX_SPEEDUP_TERM);
    return 0;
}

/* The reader that the options ask for; NULL = the content tells, or an error. */
static const struct pkv_reader *named_reader(const struct pkv_trace_options *o,
                                             struct pkv_err *err)
{
    const struct pkv_reader *reader = o->columns ? &pkv_reader_csv : NULL;
    if (o->format && !(reader = pkv_detect_by_name(o->format, err)))
        return NULL;
    if (o->columns && reader != &pkv_reader_csv)
        pkv_fail(err, PKV_ERR_INPUT, "format '%s' has columns of its own; columns are for any "
                 "other CSV (format csv)", o->format);
    else if (!o->columns && reader == &pkv_reader_csv)
        pkv_fail(err, PKV_ERR_INPUT, "format 'csv' needs to be told its columns: "
                 "arrival=NAME,prompt=NAME,output=NAME");
    else
        return reader;
    return NULL;
}

/* Find the reader by the first line, and let it see the header. */
static int begin(struct pkv_trace *t, const struct pkv_reader *reader, struct pkv_err *err)
{
    const char *text;
    size_t length;
    int more = pkv_detect_first_line(t, &text, &length, err);
    if (more > 0 && length == 5 && memcmp(text, "sep=", 4) == 0)   /* for spreadsheets; not a head */
        more = pkv_detect_first_line(t, &text, &length, err);
    if (more < 0)
        return -1;
    if (!more)
        return pkv_fail_at(err, pkv_trace_path(t), 0, 0, "is empty");
    if (!reader && !(reader = pkv_detect_reader(t, text, length, err)))
        return -1;
    t->reader = reader;
    t->has_dates = reader->has_dates;
    t->notes.format = reader->info.name;
    if (!t->options.hash_block_size)
        t->options.hash_block_size =
            reader->hash_block_size ? reader->hash_block_size : DEFAULT_HASH_BLOCK_SIZE;
    if (!reader->has_header) {
        pkv_lines_put_back(&t->lines, text, length);
        return 0;
    }
    if (pkv_detect_split_head(t, reader, text, length, err) < 0)
        return -1;
    t->head = text;
    t->head_length = length;
    int status = reader->begin(t, err);
    t->head = NULL;
    return status;
}

static struct pkv_trace *open_trace(struct pkv_input *input, const struct pkv_reader *reader,
                                    const struct pkv_trace_options *options, struct pkv_err *err)
{
    struct pkv_trace *t = input ? pkv_alloc(1, sizeof *t, err) : NULL;
    if (!t) {
        pkv_input_close(input);
        return NULL;
    }
    t->input = input;
    pkv_lines_init(&t->lines, input);
    t->last_arrival_ns = INT64_MIN;
    bool is_named = options && (options->format || options->columns);
    if (set_options(t, options, err) == 0 &&
        (!is_named || (reader = named_reader(&t->options, err))) && begin(t, reader, err) == 0)
        return t;
    pkv_trace_close(t);
    return NULL;
}

struct pkv_trace *pkv_trace_open(const char *path, const struct pkv_trace_options *options,
                                 struct pkv_err *err)
{
    return open_trace(pkv_input_open(path, err), NULL, options, err);
}

struct pkv_trace *pkv_trace_open_memory(const char *name, const void *bytes, size_t length,
                                        const struct pkv_trace_options *options,
                                        struct pkv_err *err)
{
    return open_trace(pkv_input_open_memory(name, bytes, length, err), NULL, options, err);
}

struct pkv_trace *pkv_trace_open_joined(const char *requests_path, const char *trace_path,
                                        uint32_t tokens_per_hash_id,
                                        const struct pkv_trace_options *options,
                                        struct pkv_err *err)
{
    struct pkv_trace_options outer = options ? *options : (struct pkv_trace_options){0};
    struct pkv_trace_options inner = {.hash_block_size = tokens_per_hash_id, .format = "mooncake"};
    outer.format = outer.columns = NULL;
    outer.keep_texts = false;
    struct pkv_trace *t = open_trace(pkv_input_open(requests_path, err), &pkv_reader_joined,
                                     &outer, err);
    if (!t)
        return NULL;
    t->prompts = pkv_trace_open(trace_path, &inner, err);
    if (t->prompts)
        return t;
    pkv_trace_close(t);
    return NULL;
}

void pkv_trace_close(struct pkv_trace *t)
{
    if (!t)
        return;
    pkv_trace_close(t->prompts);
    pkv_sorted_destroy(t->sorted);
    if (t->reader && t->reader->finish)
        t->reader->finish(t->state);
    pkv_csv_finish(&t->csv);
    pkv_lines_finish(&t->lines);
    pkv_input_close(t->input);
    pkv_free(t->spans);
    pkv_free(t->hash_ids);
    pkv_free(t->outputs);
    pkv_free(t->id.text);
    pkv_free(t->tenant.text);
    pkv_free(t->salt.text);
    pkv_free(t->adapter.text);
    pkv_free(t->session.text);
    pkv_free(t->loop.text);
    pkv_free(t->scratch.text);
    pkv_row_texts_free(&t->texts);
    pkv_free(t);
}

const struct pkv_trace_notes *pkv_trace_notes(const struct pkv_trace *t)
{
    return &t->notes;
}

const struct pkv_trace_options *pkv_trace_options(const struct pkv_trace *t)
{
    return &t->options;
}

const struct pkv_trace_texts *pkv_trace_texts(const struct pkv_trace *t)
{
    PKV_ASSERT(t->options.keep_texts);
    return &t->texts.given;
}

/* A row of a table without a value in it is a blank line, too: programs write them below the last. */
static bool is_blank(const struct pkv_trace *t, const char *text, size_t length)
{
    char separator = t->reader->has_header ? t->csv.separator : ' ';
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != separator)
            return false;
    return true;
}

/* Is there no text in the prompt that another row could have, too? */
static bool is_own_text(const struct pkv_trace *t, const struct pkv_request_spec *spec)
{
    uint64_t own = pkv_origin(PKV_ORIGIN_OWN, t->num_read);
    for (size_t i = 0; i < spec->content.num_prompt_spans; i++)
        if (spec->content.prompt[i].origin != own)
            return false;
    return true;
}

static int out_of_order(struct pkv_trace *t, const struct pkv_row *row, struct pkv_err *err)
{
    /* In the unit of the file: the CSV formats tell seconds, or dates. */
    bool seconds = t->reader->has_header;
    uint64_t ns = (uint64_t)t->last_arrival_ns - (uint64_t)row->spec.arrival_ns;
    struct pkv_text early = {0};
    pkv_text_ratio(&early, ns, seconds ? PKV_NS_PER_S : PKV_NS_PER_MS, 9);
    pkv_fail_at(err, pkv_trace_path(t), t->lines.number, row->arrival_column,
                "this row arrives %s %s before the one above it; rows must stand in time order, or "
                "be sorted (--sort, or traffic.sort)", early.text ? early.text : "",
                seconds ? "s" : "ms");
    pkv_text_free(&early);
    return -1;
}

/* Rows that are left out have their time like all others: they stand in order, and dates count from
 * the first row of the file, under sort from the earliest. */
static int note_time(struct pkv_trace *t, const struct pkv_row *row, struct pkv_err *err)
{
    int64_t arrival_ns = row->spec.arrival_ns;
    bool is_first = t->last_arrival_ns == INT64_MIN;
    if (t->has_dates && (is_first || arrival_ns < t->base_ns))
        t->base_ns = arrival_ns;
    if (!t->options.sort && arrival_ns < t->last_arrival_ns)
        return out_of_order(t, row, err);
    t->last_arrival_ns = arrival_ns;
    return 0;
}

/* Rows that need the end of another are only for those who can wait for it. */
static int check_session(struct pkv_trace *t, const struct pkv_row *row, struct pkv_err *err)
{
    if (t->options.sessions || (!row->spec.follows && !row->prev_column))
        return 0;
    return pkv_fail_at(err, pkv_trace_path(t), t->lines.number,
                       row->spec.follows ? row->arrival_column : row->prev_column,
                       "%s the former row of its session, and only a run knows when that ends",
                       row->spec.follows ? "this row comes after" : "this prompt contains");
}

/* What the lines were like, as far as they were read. */
static void note_lines(struct pkv_trace *t)
{
    t->notes.has_crlf = t->lines.has_crlf;
    t->notes.has_bom = t->lines.has_bom;
    t->notes.has_open_end = t->lines.has_open_end;
}

/* The next row of the file, in its order: 1, 0, -1. Lines without a character are no rows. */
static int read_row(struct pkv_trace *t, struct pkv_row *row, struct pkv_err *err)
{
    const char *text;
    size_t length;
    int more;
    while ((more = pkv_lines_next(&t->lines, &text, &length, err)) > 0) {
        if (is_blank(t, text, length)) {
            t->notes.blank_lines++;
            continue;
        }
        pkv_row_begin(t, row);
        int kind = t->reader->read(t, text, length, row, err);
        if (kind < 0 || check_session(t, row, err) < 0 || note_time(t, row, err) < 0)
            return -1;
        if (kind == PKV_ROW_NO_OUTPUT) {
            t->notes.skipped_no_output++;
            continue;
        }
        if (!row->spec.content.prompt)
            pkv_row_end(t, row);
        pkv_row_texts_end(&t->texts);
        t->notes.rows_own_text += is_own_text(t, &row->spec) ? 1 : 0;
        t->notes.rows_read = ++t->num_read;
        note_lines(t);
        return 1;
    }
    note_lines(t);
    return more;
}

static int read_all_sorted(struct pkv_trace *t, struct pkv_err *err)
{
    struct pkv_row row;
    int more;
    t->sorted = pkv_sorted_create(err);
    if (!t->sorted)
        return -1;
    while ((more = read_row(t, &row, err)) > 0)
        if (pkv_sorted_add(t->sorted, &row.spec,
                           t->options.keep_texts ? &t->texts.given : NULL, err) < 0)
            return -1;
    pkv_sorted_order(t->sorted);
    return more;
}

/* The next row in time order: 1, 0, -1. */
static int next_in_order(struct pkv_trace *t, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct pkv_row row;
    if (t->options.sort) {
        if (!t->sorted && read_all_sorted(t, err) < 0)
            return -1;
        return pkv_sorted_next(t->sorted, out, &t->texts);
    }
    int more = read_row(t, &row, err);
    if (more <= 0)
        return more;
    *out = row.spec;
    return 1;
}

static bool rebase(int64_t *time_ns, int64_t base_ns)
{
    if (base_ns < 0 && *time_ns > INT64_MAX + base_ns)
        return false;
    *time_ns -= base_ns;
    return true;
}

/* floor(time * den / num) without a wider type. */
static bool divide(int64_t *time_ns, uint64_t num, uint64_t den)
{
    if (*time_ns == PKV_NO_TIME)
        return true;
    uint64_t time = (uint64_t)*time_ns;
    uint64_t whole = time / num, rest = time % num;
    if (whole > (uint64_t)INT64_MAX / den)
        return false;
    uint64_t sum = whole * den + rest * den / num;
    if (sum > INT64_MAX)
        return false;
    *time_ns = (int64_t)sum;
    return true;
}

static int set_times(struct pkv_trace *t, struct pkv_request_spec *spec, struct pkv_err *err)
{
    uint64_t num = t->options.speedup_num, den = t->options.speedup_den;
    if (!rebase(&spec->arrival_ns, t->base_ns) || !divide(&spec->arrival_ns, num, den) ||
        !divide(&spec->abort_ns, num, den) || !divide(&spec->deadline_ns, num, den) ||
        !divide(&spec->delay_ns, num, den))
        return pkv_fail_at(err, pkv_trace_path(t), t->options.sort ? 0 : t->lines.number, 0,
                           "a time of this row comes out beyond %" PRId64 " ns", INT64_MAX);
    return 0;
}

static int no_requests(struct pkv_trace *t, struct pkv_err *err)
{
    uint64_t num = t->notes.skipped_no_output;
    if (num == 1)
        return pkv_fail_at(err, pkv_trace_path(t), 0, 0, "has no requests: its one row is without output");
    if (num > 1)
        return pkv_fail_at(err, pkv_trace_path(t), 0, 0, "has no requests: all %" PRIu64
                           " rows are without output", num);
    return pkv_fail_at(err, pkv_trace_path(t), 0, 0, "has no requests");
}

static int next_row(struct pkv_trace *t, struct pkv_request_spec *out, struct pkv_err *err)
{
    if (t->options.limit && t->notes.rows == t->options.limit)
        return 0;
    int more = next_in_order(t, out, err);
    if (more == 0 && t->notes.rows == 0)
        return no_requests(t, err);
    if (more <= 0)
        return more;
    if (set_times(t, out, err) < 0)
        return -1;
    out->row = t->notes.rows++;
    return 1;
}

static int source_next(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct pkv_trace *t = ctx;
    int more = t->ended ? 0 : next_row(t, out, &t->failure);
    t->ended |= more <= 0;
    if (t->failure.code == PKV_ERR_NONE)
        return more;
    if (err)
        *err = t->failure;
    return -1;
}

struct pkv_source pkv_trace_source(struct pkv_trace *t)
{
    return (struct pkv_source){
        .next = source_next, .ctx = t,
        .has_followers = t->options.sessions && t->reader->has_followers,
    };
}
