/*
 * trace_private.h - between trace.c, which owns what all formats share, and one reader a format.
 *
 * A reader turns one line into a spec with raw times. Everything that does not depend on the format
 * is done behind it: order, sorting, rebasing of dates, speed-up, limit, numbering.
 */
#ifndef PKV_TRACE_TRACE_PRIVATE_H
#define PKV_TRACE_TRACE_PRIVATE_H

#include "pagedkv/trace.h"
#include "trace/csv_private.h"
#include "trace/input.h"
#include "trace/json_scan.h"

#define PKV_MAX_LENGTH_TOKENS UINT64_C(2147483647)   /* prompt and output fit 32 bits together */
#define PKV_NS_PER_MS INT64_C(1000000)
#define PKV_NS_PER_S INT64_C(1000000000)

/* Text of a row that lives until the next one; grows, ends with NUL. */
struct pkv_slot {
    char *text;                  /* owned */
    size_t capacity;
};

/* A row as its reader found it. Times of the spec are those of the file; its row and the pointers
 * to what the trace holds are filled in behind the reader. */
struct pkv_row {
    struct pkv_request_spec spec;
    uint32_t arrival_column;     /* for the sentence about rows out of order */
    uint32_t prev_column;        /* of the text of the session's former row; 0 = has none */
};

/* What the spans of a row are of; names stand in one text, since it moves as it grows. */
struct pkv_row_texts {
    struct pkv_trace_texts given;          /* what the caller sees; spans are those below */
    struct pkv_trace_text *spans;          /* [num] owned */
    size_t *name_at;                       /* [num] owned; PKV_NO_TEXT = none */
    size_t num, spans_capacity, name_at_capacity;
    char *names;                           /* [names_length] owned */
    size_t names_length, names_capacity;
};
#define PKV_NO_TEXT SIZE_MAX

enum pkv_row_kind { PKV_ROW_GIVEN, PKV_ROW_NO_OUTPUT };   /* a reader's answer; -1 = error */

struct pkv_reader {
    struct pkv_trace_format info;
    bool has_header;             /* CSV: the first line names the columns */
    bool has_followers;          /* rows may follow others of their session */
    bool has_dates;              /* arrivals are dates: the first row's becomes 0 */
    uint32_t hash_block_size;    /* tokens of a hash id; 0 = 512 */
    const struct pkv_csv_layout *layout;   /* CSV only; NULL = made at the beginning */
    /* How sure this is the format of the first line (0 = not at all). keys: names of the columns or
     * of the fields of the first row. */
    int (*rate)(const struct pkv_reader *reader, const struct pkv_field *keys, size_t num_keys);
    int (*begin)(struct pkv_trace *trace, struct pkv_err *err);   /* with the header split in csv */
    int (*read)(struct pkv_trace *trace, const char *text, size_t length, struct pkv_row *out,
                struct pkv_err *err);
    void (*finish)(void *state);           /* frees trace->state; NULL = there is none */
};
extern const struct pkv_reader pkv_reader_native;
extern const struct pkv_reader pkv_reader_mooncake;
extern const struct pkv_reader pkv_reader_dynamo;
extern const struct pkv_reader pkv_reader_azure;
extern const struct pkv_reader pkv_reader_burstgpt;
extern const struct pkv_reader pkv_reader_vidur;
extern const struct pkv_reader pkv_reader_splitwise;
extern const struct pkv_reader pkv_reader_blis;
extern const struct pkv_reader pkv_reader_llmservingsim;
extern const struct pkv_reader pkv_reader_bailian;
extern const struct pkv_reader pkv_reader_tokens;
extern const struct pkv_reader pkv_reader_csv;      /* found by that columns are given */
extern const struct pkv_reader pkv_reader_joined;   /* not listed: needs a second trace */

struct pkv_sorted;               /* sort.c: rows kept to be given in time order */

struct pkv_trace {
    struct pkv_input *input;     /* owned */
    struct pkv_lines lines;
    const struct pkv_reader *reader;
    struct pkv_trace_options options;   /* zeros replaced by what they stand for */
    struct pkv_trace_notes notes;
    struct pkv_trace *prompts;   /* owned; joined: the trace that holds the prompts */
    uint64_t prompts_given;      /* rows taken from it */
    struct pkv_request_spec prompts_spec;
    struct pkv_sorted *sorted;   /* owned; under options.sort, once all rows are read */
    struct pkv_csv csv;
    const struct pkv_csv_layout *layout;   /* of a CSV read by it; borrowed from reader or state */
    const char *head;            /* [head_length] CSV: the head line, only while the reader begins */
    size_t head_length;
    void *state;                 /* owned; the reader's own */
    uint64_t num_read;           /* rows read and not left out */
    int64_t last_arrival_ns, base_ns;
    bool has_dates;
    bool ended;
    struct pkv_err failure;      /* what ended it; given again on every later call */
    /* The row at hand. */
    struct pkv_span *spans;      /* owned */
    size_t num_spans, spans_capacity;
    uint32_t num_named_tokens;   /* of these spans, before the first text of the run's own */
    bool has_own_text;
    uint64_t *hash_ids;          /* owned */
    size_t num_hash_ids, hash_ids_capacity;
    uint32_t *outputs;           /* owned: lengths of its samples, where they differ */
    size_t num_outputs, outputs_capacity;
    struct pkv_slot id, tenant, salt, adapter, session, loop, scratch;
    /* The same under options.keep_texts: what each span is of. */
    struct pkv_row_texts texts;
};

/* For readers. */
const char *pkv_trace_path(const struct pkv_trace *trace);
int pkv_slot_set(struct pkv_slot *slot, const struct pkv_json_text *string, struct pkv_err *err);
/* A CSV field: 1; 0 when it is empty; -1 = PKV_ERR_MEMORY, or a NUL, with its place. */
int pkv_slot_set_field(struct pkv_trace *trace, struct pkv_slot *slot,
                       const struct pkv_field *field, struct pkv_err *err);
/* Split a row of a CSV; another number of fields than the header has is an error. */
int pkv_row_split(struct pkv_trace *trace, const char *text, size_t length, struct pkv_err *err);
/* read_csv.c: a CSV by trace->layout, its head split. */
int pkv_csv_begin(struct pkv_trace *trace, struct pkv_err *err);
int pkv_csv_read(struct pkv_trace *trace, const char *text, size_t length, struct pkv_row *out,
                 struct pkv_err *err);
/* csv_columns.c: where the column of that name stands, PKV_CSV_NONE = nowhere. -1 = twice. */
int pkv_csv_find(struct pkv_trace *trace, const char *name, size_t *out, struct pkv_err *err);
/* It is needed and is not there: which is like it, and which there are. is_told as in a layout. */
int pkv_csv_missing(const struct pkv_trace *trace, const char *name, bool is_told, struct pkv_err *err);
/* "'a', 'b' and 3 more", as many as fit into size bytes. Returns out. */
const char *pkv_csv_list(const struct pkv_field *names, size_t num, char *out, size_t size);
/* Begin a row: no spans, nothing given, max_tokens and times unset. */
void pkv_row_begin(struct pkv_trace *trace, struct pkv_row *row);
int pkv_row_add_span(struct pkv_trace *trace, struct pkv_trace_text of, uint32_t first,
                     uint32_t count, struct pkv_err *err);
/* The same from the row's own text. */
int pkv_row_add_own(struct pkv_trace *trace, uint32_t first, uint32_t count, struct pkv_err *err);
/* The first `length` tokens as blocks of the row's hash ids, the last one partly filled. Their
 * number, which the caller has checked by pkv_row_want_ids(), may be wrong under lenient_ids: it is
 * mended, and counted. */
int pkv_row_add_hash_ids(struct pkv_trace *trace, uint64_t length, struct pkv_err *err);
uint64_t pkv_row_want_ids(const struct pkv_trace *trace, uint64_t length);
/* Point the spec to the spans and fill in the number of prompt tokens. */
void pkv_row_end(struct pkv_trace *trace, struct pkv_row *row);

/* sort.c */
struct pkv_sorted *pkv_sorted_create(struct pkv_err *err);
void pkv_sorted_destroy(struct pkv_sorted *sorted);
/* texts NULL = none are kept. */
int pkv_sorted_add(struct pkv_sorted *sorted, const struct pkv_request_spec *spec,
                   const struct pkv_trace_texts *texts, struct pkv_err *err);
void pkv_sorted_order(struct pkv_sorted *sorted);   /* by arrival, ties by order of adding */
bool pkv_sorted_next(struct pkv_sorted *sorted, struct pkv_request_spec *out,
                     struct pkv_row_texts *texts);

/* row_texts.c */
int pkv_row_texts_add(struct pkv_row_texts *texts, const struct pkv_trace_text *of,
                      struct pkv_err *err);
/* Point the names of all spans to where they stand now. */
void pkv_row_texts_end(struct pkv_row_texts *texts);
void pkv_row_texts_clear(struct pkv_row_texts *texts);
void pkv_row_texts_free(struct pkv_row_texts *texts);

#endif
