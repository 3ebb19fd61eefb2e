/*
 * test_trace_convert.c - random requests, written in every format and read again.
 *
 * What the writer does not say it lost must come back: times, lengths, names, sessions, and of the
 * prompts the length of what each two have in common, which is all that a prefix cache can see.
 * Then once more, back to the native format.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "pagedkv/trace.h"

#define MAX_ROWS 24
#define MAX_SPANS 256
#define MAX_PARTS 7
#define NAME_SIZE 16
#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define BIT(loss) (1u << (loss))

struct row {
    struct pkv_request_spec spec;
    struct pkv_span spans[MAX_SPANS];
    struct pkv_trace_text of[MAX_SPANS];
    char names[MAX_SPANS][NAME_SIZE];
    char id[24], tenant[NAME_SIZE], session[24], loop[24], salt[NAME_SIZE], adapter[NAME_SIZE];
    unsigned lost;
    bool is_left_out;
};
struct file {
    struct row row[MAX_ROWS];
    size_t num;
    uint32_t block_size;
};
struct text {
    char bytes[1 << 20];
    size_t length;
};

static struct text text;

/* --- rows that own what they point to -------------------------------------------------------- */

static const char *keep(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
    return from ? to : NULL;
}

static void keep_row(struct row *r, const struct pkv_request_spec *spec,
                     const struct pkv_trace_texts *texts)
{
    size_t num = spec->content.num_prompt_spans;
    ck_assert_uint_le(num, MAX_SPANS);
    r->spec = *spec;
    r->lost = 0;
    r->is_left_out = false;
    memcpy(r->spans, spec->content.prompt, num * sizeof *r->spans);
    for (size_t i = 0; i < num; i++) {
        r->of[i] = texts->spans[i];
        r->of[i].name = keep(r->names[i], NAME_SIZE, texts->spans[i].name);
    }
    r->spec.content.prompt = r->spans;
    r->spec.id = keep(r->id, sizeof r->id, spec->id);
    r->spec.tenant = keep(r->tenant, sizeof r->tenant, spec->tenant);
    r->spec.session = keep(r->session, sizeof r->session, spec->session);
    r->spec.loop = keep(r->loop, sizeof r->loop, spec->loop);
    keep(r->salt, sizeof r->salt, texts->salt);
    keep(r->adapter, sizeof r->adapter, texts->adapter);
}

static struct pkv_trace_texts texts_of(const struct row *r)
{
    return (struct pkv_trace_texts){r->of, *r->salt ? r->salt : NULL,
                                    *r->adapter ? r->adapter : NULL};
}

/* --- random rows ----------------------------------------------------------------------------- */

static struct pkv_rng rng;

static uint32_t below(uint32_t n)
{
    return (uint32_t)pkv_rng_below(&rng, n);
}

static void add_span(struct row *r, struct pkv_trace_text of, uint32_t first, uint32_t count)
{
    size_t i = r->spec.content.num_prompt_spans++;
    if (of.name) {
        of.name = keep(r->names[i], NAME_SIZE, of.name);
        of.number = pkv_hash_name(of.name, strlen(of.name));
    }
    r->of[i] = of;
    r->spans[i] = (struct pkv_span){pkv_origin(of.kind, of.number), first, count};
    r->spec.num_prompt_tokens += count;
}

enum kind { LENGTHS, IDS, SEGMENTS, PREFIXES, TOKENS, SESSIONS, NUM_KINDS };

static void add_name(struct row *r)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "g%u", below(3));
    add_span(r, (struct pkv_trace_text){PKV_ORIGIN_NAME, 0, name}, 0, 1 + below(80));
}

static void add_own(struct row *r, uint32_t first)
{
    add_span(r, (struct pkv_trace_text){PKV_ORIGIN_OWN, r->spec.row, NULL}, first, 1 + below(90));
}

static void add_prompt(struct row *r, enum kind kind, uint32_t block_size)
{
    uint32_t num = 1 + below(MAX_PARTS - 1);
    switch (kind) {
    case LENGTHS:
        break;
    case IDS:      /* an id has one parent, as in the public traces */
        for (uint64_t i = 0, id = below(2); i < num; i++, id = id * 3 + below(2))
            add_span(r, (struct pkv_trace_text){PKV_ORIGIN_HASH_ID, id * 10 + i, NULL}, 0,
                     i + 1 < num ? block_size : 1 + below(block_size));
        return;
    case SEGMENTS:
        for (uint32_t i = 1; i < num; i++)
            add_name(r);
        break;
    case PREFIXES:
        add_name(r);
        break;
    case TOKENS:
        for (uint32_t i = 0; i < num; i++)
            add_span(r, (struct pkv_trace_text){PKV_ORIGIN_TOKEN, below(2), NULL}, below(2) * 20,
                     10 + below(3) * 10);
        return;
    case SESSIONS:
        if (r->spec.follows && below(2))
            add_span(r, (struct pkv_trace_text){PKV_ORIGIN_PREV, 0, NULL}, 0, 1 + below(50));
        break;
    case NUM_KINDS:
        break;
    }
    add_own(r, 0);
}

/* What a CSV has to quote, and what it need not. */
static const char *const hard_names[] = {
    "t, 0", " a ", "\tx", "b;c", "\"q\"", "'q'", "# x", "é",
};

static void add_names(struct row *r, enum kind kind, const struct row *former)
{
    struct pkv_request_spec *s = &r->spec;
    char *out = r->id;
    if (below(2))
        s->id = (snprintf(out, sizeof r->id, below(2) ? "%" PRIu64 : "r\"%" PRIu64, s->row), out);
    out = r->tenant;
    if (below(2))
        s->tenant = keep(out, NAME_SIZE, hard_names[below(sizeof hard_names / sizeof *hard_names)]);
    snprintf(r->salt, NAME_SIZE, "%s", below(6) ? "" : "salt");
    snprintf(r->adapter, NAME_SIZE, "%s", below(6) ? "" : "lora");
    if (kind != SESSIONS)
        return;
    s->follows = former && former->spec.session && below(2);
    snprintf(r->session, sizeof r->session, "s%" PRIu64, s->row);
    if (s->follows)
        snprintf(r->session, sizeof r->session, "%s", former->session);
    s->session = s->follows || below(2) ? r->session : NULL;
    s->turn = !s->session ? 0 : s->follows ? former->spec.turn + 1 : 1;
    if (s->session && below(3) == 0)
        s->loop = (snprintf(r->loop, sizeof r->loop, "l%u", below(2)), r->loop);
    s->delay_ns = s->follows ? (int64_t)below(5000) * 1000 : 0;
}

static void make_row(struct row *r, enum kind kind, uint32_t block_size, uint64_t number,
                     const struct row *former)
{
    static const int64_t units[] = {1, 100, 1000, 1000000, 1000000000};
    int64_t gap = (int64_t)below(4) * units[below(NUM(units))];
    *r = (struct row){.spec = {.row = number, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME}};
    struct pkv_request_spec *s = &r->spec;
    s->arrival_ns = (former ? former->spec.arrival_ns : 0) + gap;
    s->num_output_tokens = below(8) ? 1 + below(500) : 0;
    s->max_tokens = below(4) && s->num_output_tokens ? s->num_output_tokens : 1 + below(600);
    s->priority = below(3) ? 0 : (int64_t)below(5) - 2;
    add_names(r, kind, former);
    if (s->follows)
        s->arrival_ns = former->spec.arrival_ns;
    if (below(5) == 0)
        s->abort_ns = s->arrival_ns + below(1000) * units[below(NUM(units))];
    if (below(5) == 0)
        s->deadline_ns = s->arrival_ns + below(1000) * units[below(NUM(units))];
    add_prompt(r, kind, block_size);
    struct pkv_trace_texts texts = texts_of(r);
    s->content.prompt = r->spans;
    s->content.root = pkv_content_root(texts.salt, texts.adapter);
    s->content.output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, number);
}

static void make_file(struct file *f, enum kind kind)
{
    f->block_size = below(2) ? 512 : 16;
    f->num = 1 + below(MAX_ROWS);
    for (size_t i = 0; i < f->num; i++)
        make_row(&f->row[i], kind, f->block_size, i, i ? &f->row[i - 1] : NULL);
}

/* --- there and back -------------------------------------------------------------------------- */

static int put(void *ctx, const char *bytes, size_t length, struct pkv_err *err)
{
    struct text *t = ctx;
    (void)err;
    ck_assert_uint_lt(t->length + length, sizeof t->bytes);
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
    return 0;
}

/* Write the rows; each learns what was lost of it. */
static uint32_t write_file(struct file *f, const char *format, struct text *out)
{
    struct pkv_trace_writer_config config = {
        .format = format, .from_block_size = f->block_size, .put = put, .ctx = out,
    };
    struct pkv_err err = {0};
    struct pkv_trace_writer *w = pkv_trace_writer_create(&config, &err);
    const unsigned away = BIT(PKV_LOSS_NO_OUTPUT) | BIT(PKV_LOSS_FOLLOWS) | BIT(PKV_LOSS_LARGE);
    out->length = 0;
    ck_assert_msg(w != NULL, "%s", err.text);
    for (size_t i = 0; i < f->num; i++) {
        uint64_t before[PKV_TRACE_LOSS_COUNT];
        struct pkv_trace_texts texts = texts_of(&f->row[i]);
        memcpy(before, pkv_trace_writer_losses(w), sizeof before);
        ck_assert_int_eq(pkv_trace_writer_row(w, &f->row[i].spec, &texts, &err), 0);
        f->row[i].lost = 0;
        for (int loss = 0; loss < PKV_TRACE_LOSS_COUNT; loss++)
            if (pkv_trace_writer_losses(w)[loss] > before[loss])
                f->row[i].lost |= BIT(loss);
        f->row[i].is_left_out = (f->row[i].lost & away) != 0;
    }
    ck_assert_int_eq(pkv_trace_writer_end(w, &err), 0);
    uint32_t block_size = pkv_trace_writer_block_size(w);
    pkv_trace_writer_destroy(w);
    return block_size;
}

static void read_file(struct file *f, const char *format, uint32_t block_size)
{
    struct pkv_trace_options options = {
        .format = format, .hash_block_size = block_size, .sessions = true, .keep_texts = true,
    };
    struct pkv_err err = {0};
    struct pkv_request_spec spec;
    struct pkv_trace *t = pkv_trace_open_memory("rows", text.bytes, text.length, &options, &err);
    ck_assert_msg(t != NULL, "%s: %s\n%.*s", format, err.text, (int)text.length, text.bytes);
    struct pkv_source source = pkv_trace_source(t);
    int more;
    f->num = 0;
    f->block_size = block_size;
    while ((more = source.next(source.ctx, &spec, &err)) > 0)
        keep_row(&f->row[f->num++], &spec, pkv_trace_texts(t));
    ck_assert_msg(more == 0, "%s:%" PRIu64 ":%u: %s\n%.*s", format, err.line, err.column, err.text,
                  (int)text.length, text.bytes);
    pkv_trace_close(t);
}

/* How much two prompts have in common from their beginning. */
static uint32_t common(const struct row *a, const struct row *b)
{
    uint32_t sum = 0;
    size_t i = 0, j = 0;
    uint32_t in_i = 0, in_j = 0;
    if (a->spec.content.root != b->spec.content.root)
        return 0;
    while (i < a->spec.content.num_prompt_spans && j < b->spec.content.num_prompt_spans) {
        const struct pkv_span *x = &a->spans[i], *y = &b->spans[j];
        if (x->origin != y->origin || x->first + in_i != y->first + in_j)
            break;
        uint32_t left_x = x->count - in_i, left_y = y->count - in_j;
        uint32_t count = left_x < left_y ? left_x : left_y;
        sum += count;
        in_i += count;
        in_j += count;
        if (in_i == x->count)
            i++, in_i = 0;
        if (in_j == y->count)
            j++, in_j = 0;
    }
    return sum;
}

#define HELD(loss) (!(lost & BIT(loss)))

static void expect_equal(const struct row *a, const struct row *b, unsigned lost)
{
    const struct pkv_request_spec *x = &a->spec, *y = &b->spec;
    if (HELD(PKV_LOSS_TIME) && HELD(PKV_LOSS_BEGIN))
        ck_assert_int_eq(x->arrival_ns, y->arrival_ns);
    ck_assert_uint_eq(x->num_prompt_tokens, y->num_prompt_tokens);
    ck_assert_uint_eq(x->num_output_tokens, y->num_output_tokens);
    if (HELD(PKV_LOSS_MAX_TOKENS))
        ck_assert_uint_eq(x->max_tokens, y->max_tokens);
    if (HELD(PKV_LOSS_PRIORITY))
        ck_assert_int_eq(x->priority, y->priority);
    if (HELD(PKV_LOSS_ID) && x->id)
        ck_assert_str_eq(x->id, y->id ? y->id : "none");
    if (HELD(PKV_LOSS_TENANT))
        ck_assert_str_eq(a->tenant, b->tenant);
    if (HELD(PKV_LOSS_SALT))
        ck_assert_str_eq(a->salt, b->salt);
    if (HELD(PKV_LOSS_ADAPTER))
        ck_assert_str_eq(a->adapter, b->adapter);
    if (HELD(PKV_LOSS_ABORT))
        ck_assert_int_eq(x->abort_ns, y->abort_ns);
    if (HELD(PKV_LOSS_DEADLINE))
        ck_assert_int_eq(x->deadline_ns, y->deadline_ns);
    if (HELD(PKV_LOSS_TURN) && x->session)
        ck_assert_uint_eq(x->turn, y->turn);
    if (HELD(PKV_LOSS_LOOP))
        ck_assert_str_eq(a->loop, b->loop);
    ck_assert_int_eq(x->follows, y->follows);
    ck_assert_int_eq(x->delay_ns, y->delay_ns);
}

static bool same_session(const struct row *a, const struct row *b)
{
    return a->spec.session && b->spec.session && strcmp(a->session, b->session) == 0;
}

/* a[i] became b[i]; lost[i] on the way. */
static void expect_pair(const struct row *a, const struct row *b, size_t i, size_t j,
                        unsigned lost, bool cuts)
{
    const unsigned content = BIT(PKV_LOSS_CONTENT) | BIT(PKV_LOSS_BLOCKS) | BIT(PKV_LOSS_ANSWERS);
    if (!(lost & BIT(PKV_LOSS_SESSION)))
        ck_assert_int_eq(same_session(&a[i], &a[j]), same_session(&b[i], &b[j]));
    if (!(lost & (content | BIT(PKV_LOSS_SALT) | BIT(PKV_LOSS_ADAPTER))))
        ck_assert_uint_eq(common(&a[i], &a[j]), common(&b[i], &b[j]));
    else if (cuts && !(lost & (BIT(PKV_LOSS_CONTENT) | BIT(PKV_LOSS_ANSWERS))))
        ck_assert_uint_le(common(&b[i], &b[j]), common(&a[i], &a[j]));
}

/* Those of f that were written, against what came back. ids: chains of blocks hold the root, too. */
static void compare(const struct file *f, const struct file *back, bool ids)
{
    static struct row kept[MAX_ROWS];
    size_t num = 0;
    for (size_t i = 0; i < f->num; i++)
        if (!f->row[i].is_left_out) {
            kept[num] = f->row[i];
            kept[num].spec.content.prompt = kept[num].spans;
            num++;
        }
    ck_assert_uint_eq(num, back->num);
    bool begins = num > 0 && kept[0].lost & BIT(PKV_LOSS_BEGIN);
    for (size_t i = 0; i < num; i++) {
        expect_equal(&kept[i], &back->row[i],
                     kept[i].lost | (begins ? BIT(PKV_LOSS_BEGIN) : 0));
        for (size_t j = 0; j < i; j++) {
            unsigned lost = kept[i].lost | kept[j].lost;
            if (ids)    /* ids say it all */
                lost &= ~(BIT(PKV_LOSS_SALT) | BIT(PKV_LOSS_ADAPTER));
            expect_pair(kept, back->row, i, j, lost, ids);
        }
    }
}

static const struct { const char *name; bool ids; } formats[] = {
    {"native", false}, {"mooncake", true}, {"dynamo", true}, {"bailian", true}, {"azure", false},
    {"burstgpt", false}, {"vidur", false}, {"splitwise", false}, {"blis", false},
    {"llmservingsim", false}, {"tokens", false},
};

START_TEST(there_and_back)
{
    static struct file from, there, back;
    pkv_rng_init(&rng, (uint64_t)_i + 1, formats[_i].name);
    for (int round = 0; round < 100; round++) {
        make_file(&from, (enum kind)below(NUM_KINDS));
        uint32_t block_size = write_file(&from, formats[_i].name, &text);
        size_t written = 0;
        for (size_t i = 0; i < from.num; i++)
            written += !from.row[i].is_left_out;
        if (written == 0)
            continue;
        read_file(&there, formats[_i].name, block_size);
        compare(&from, &there, formats[_i].ids);
        block_size = write_file(&there, "native", &text);
        read_file(&back, "native", block_size);
        compare(&there, &back, true);
    }
}
END_TEST

/* Native holds all but ranges of token ids; and says nothing was lost. */
START_TEST(native_holds_all)
{
    static struct file from;
    pkv_rng_init(&rng, 7, "native holds all");
    for (int round = 0; round < 100; round++) {
        make_file(&from, (enum kind)below(NUM_KINDS));
        bool has_ranges = from.row[0].of[0].kind == PKV_ORIGIN_TOKEN;
        write_file(&from, "native", &text);
        for (size_t i = 0; i < from.num; i++)
            ck_assert_uint_eq(from.row[i].lost, has_ranges ? BIT(PKV_LOSS_BLOCKS) : 0);
    }
}
END_TEST

/* What is written, to the letter. */
static const struct { const char *format, *text; } letters[] = {
    {"native", "{\"timestamp\": 1.5, \"input_length\": 7, \"output_length\": 3, \"prompt\": "
               "[[\"g\", 4], [null, 3]], \"id\": \"a\"}\n"},
    {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n1970-01-01 00:00:00.0015000,7,3\n"},
    {"burstgpt", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                 "0.0015,-,7,3,10,API log\n"},
    {"vidur", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0015,7,3\n"},
    {"splitwise", "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,"
                  "token_size\na,2,0,0.0015,1,7,3\n"},
    {"tokens", "{\"id\": \"a\", \"arrival_step\": 1, \"prompt\": [[9223372041149743104, 4], "
               "[9223372045444710400, 3]], \"max_tokens\": 3}\n"},
};

START_TEST(to_the_letter)
{
    struct file f = {.num = 1, .block_size = 512};
    struct row *r = &f.row[0];
    r->spec = (struct pkv_request_spec){
        .arrival_ns = 1500000, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_output_tokens = 3, .max_tokens = 3, .id = "a",
        .content = {.prompt = r->spans},
    };
    add_span(r, (struct pkv_trace_text){PKV_ORIGIN_NAME, 0, "g"}, 0, 4);
    add_span(r, (struct pkv_trace_text){PKV_ORIGIN_OWN, 0, NULL}, 0, 3);
    write_file(&f, letters[_i].format, &text);
    text.bytes[text.length] = '\0';
    ck_assert_str_eq(text.bytes, letters[_i].text);
}
END_TEST

START_TEST(unknown_formats)
{
    struct pkv_trace_writer_config config = {.format = "csv"};
    struct pkv_err err = {0};
    ck_assert_ptr_null(pkv_trace_writer_create(&config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert(strstr(err.text, "'csv' is no format to write (known: native, ") != NULL);
}
END_TEST

static int convert(const struct file *f, const char *format)
{
    struct pkv_trace_writer_config config = {.format = format, .put = put, .ctx = &text};
    struct pkv_err err = {0};
    struct pkv_trace_writer *w = pkv_trace_writer_create(&config, &err);
    int status = w ? 0 : -1;
    text.length = 0;
    for (size_t i = 0; i < f->num && status == 0; i++) {
        struct pkv_trace_texts texts = texts_of(&f->row[i]);
        status = pkv_trace_writer_row(w, &f->row[i].spec, &texts, &err);
    }
    if (status == 0)
        status = pkv_trace_writer_end(w, &err);
    pkv_trace_writer_destroy(w);
    ck_assert_int_eq(err.code, status < 0 ? PKV_ERR_MEMORY : PKV_ERR_NONE);
    return status;
}

START_TEST(memory_runs_out)
{
    static struct file f;
    bool failed = true;
    pkv_rng_init(&rng, 3, "memory");
    make_file(&f, SESSIONS);
    for (uint64_t n = 1; failed; n++) {
        ck_assert_uint_lt(n, 1000);
        pkv_alloc_fail_at(n, 1);
        failed = convert(&f, formats[_i].name) < 0;
        pkv_alloc_fail_at(0, 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_convert");
    TCase *c = tcase_create("trace_convert");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, there_and_back, 0, NUM(formats));
    tcase_add_test(c, native_holds_all);
    tcase_add_loop_test(c, to_the_letter, 0, NUM(letters));
    tcase_add_test(c, unknown_formats);
    tcase_add_loop_test(c, memory_runs_out, 0, NUM(formats));
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
