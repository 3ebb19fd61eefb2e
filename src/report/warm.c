/*
 * warm.c - cache.csv of a former run (metrics/cache_file.c), for a cache of equal groups to begin with.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "pagedkv/metrics.h"
#include "report/diff_private.h"

#define NUM_COLUMNS 4u
static const char columns[] = "blocks,identity,second,twin";

struct reader {
    struct side side;
    struct row row;
    struct pkv_cache_state *out;
    bool has_second_keys;     /* the run's groups can have them */
    size_t capacity;          /* of out->blocks */
    uint64_t *line_numbers;   /* [capacity] owned: where each of them stands */
    uint32_t done;            /* blocks of the file, empty ones included */
};

/* The line there is, or where the next one would have stood. */
static uint64_t line_number(const struct reader *r)
{
    return r->side.lines.number + (r->side.text == NULL);
}

/* What follows "# name " in the current line; NULL with an error. */
static const char *head(const struct reader *r, const char *name, size_t *out_length,
                        struct pkv_err *err)
{
    const struct side *s = &r->side;
    size_t length = strlen(name);
    if (s->text && s->length > length + 3 && memcmp(s->text, "# ", 2) == 0 &&
        memcmp(s->text + 2, name, length) == 0 && s->text[length + 2] == ' ') {
        *out_length = s->length - length - 3;
        return s->text + length + 3;
    }
    pkv_fail_at(err, s->path, line_number(r), 1, "%s '# %s ...', as a run's " PKV_CACHE_FILE " does",
                s->text ? "does not say" : "ends before it says", name);
    return NULL;
}

static int head_number(struct reader *r, const char *name, uint64_t max, uint64_t *out,
                       struct pkv_err *err)
{
    size_t length;
    const char *why, *text = head(r, name, &length, err);
    if (!text)
        return -1;
    uint32_t column = (uint32_t)(text - r->side.text) + 1;
    if (pkv_parse_u64(text, length, max, out, &why) < 0)
        return pkv_fail_at(err, r->side.path, r->side.lines.number, column, "%s '%.*s' %s", name,
                           length < 40 ? (int)length : 40, text, why);
    if (*out == 0)
        return pkv_fail_at(err, r->side.path, r->side.lines.number, column, "%s is 0", name);
    return 0;
}

static int check_scheme(struct reader *r, struct pkv_err *err)
{
    uint64_t scheme;
    if (head_number(r, "identities", UINT32_MAX, &scheme, err) < 0)
        return -1;
    if (scheme == PKV_CACHE_SCHEME)
        return side_next(&r->side, err);
    return pkv_fail_at(err, r->side.path, r->side.lines.number, 14, "its identities are made in way %"
                       PRIu64 ", those of this version in way %u: no block would be found again",
                       scheme, PKV_CACHE_SCHEME);
}

static int check_groups(struct reader *r, const char *groups, struct pkv_err *err)
{
    size_t length;
    const char *text = head(r, "groups", &length, err);
    if (!text)
        return -1;
    if (length == strlen(groups) && memcmp(text, groups, length) == 0)
        return side_next(&r->side, err);
    return pkv_fail_at(err, r->side.path, r->side.lines.number, 10, "this cache is of groups (kind:block "
                       "size) %.*s, and the run has %s: a block holds other tokens",
                       length < 200 ? (int)length : 200, text, groups);
}

static int read_head(struct reader *r, const char *groups, struct pkv_err *err)
{
    uint64_t num;
    if (check_scheme(r, err) < 0 || check_groups(r, groups, err) < 0 ||
        head_number(r, "blocks", INT32_MAX, &num, err) < 0 || side_next(&r->side, err) < 0 ||
        head_number(r, "runs", UINT32_MAX - 1, &r->out->num_runs, err) < 0 ||
        side_next(&r->side, err) < 0)
        return -1;
    r->out->num = (uint32_t)num;
    if (r->side.text && r->side.length == sizeof columns - 1 &&
        memcmp(r->side.text, columns, sizeof columns - 1) == 0)
        return 0;
    return pkv_fail_at(err, r->side.path, line_number(r), 1, "%s '%s'",
                       r->side.text ? "is not" : "ends before its header", columns);
}

static int fail_field(const struct reader *r, size_t i, const char *what, struct pkv_err *err)
{
    size_t length = r->row.lengths[i];
    return pkv_fail_at(err, r->side.path, r->side.lines.number,
                       (uint32_t)(r->row.fields[i] - r->side.text) + 1, "'%.*s' %s",
                       length < 40 ? (int)length : 40, r->row.fields[i], what);
}

static int read_count(const struct reader *r, size_t i, uint32_t max, uint32_t *out,
                      struct pkv_err *err)
{
    const char *why;
    uint64_t number;
    if (pkv_parse_u64(r->row.fields[i], r->row.lengths[i], max, &number, &why) < 0)
        return fail_field(r, i, why, err);
    *out = (uint32_t)number;
    return 0;
}

/* 16 hexadecimal digits, or nothing: 0. */
static int read_key(const struct reader *r, size_t i, uint64_t *out, struct pkv_err *err)
{
    static const char digits[] = "0123456789abcdef";
    *out = 0;
    for (size_t k = 0; k < r->row.lengths[i]; k++) {
        const char *digit = r->row.fields[i][k] ? strchr(digits, r->row.fields[i][k]) : NULL;
        if (!digit || r->row.lengths[i] != 16)
            return fail_field(r, i, "is no identity of 16 digits, 0 to f", err);
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    if (r->row.lengths[i] > 0 && *out == 0)
        return fail_field(r, i, "is no identity", err);
    return 0;
}

static int keep_block(struct reader *r, const struct pkv_kept_block *block, struct pkv_err *err)
{
    struct pkv_cache_state *out = r->out;
    size_t capacity = r->capacity;
    if (pkv_grow(&out->blocks, &capacity, (size_t)out->num_kept + 1, sizeof *out->blocks, err) < 0 ||
        pkv_grow(&r->line_numbers, &r->capacity, (size_t)out->num_kept + 1, sizeof *r->line_numbers,
                 err) < 0)
        return -1;
    r->line_numbers[out->num_kept] = r->side.lines.number;
    out->blocks[out->num_kept++] = *block;
    return 0;
}

static int read_row(struct reader *r, struct pkv_err *err)
{
    struct pkv_kept_block block = {0};
    uint32_t num = 0, left = r->out->num - r->done;
    if (side_split(&r->side, &r->row, err) < 0)
        return -1;
    if (r->row.num != NUM_COLUMNS)
        return pkv_fail_at(err, r->side.path, r->side.lines.number, 0, "a row of %zu fields under a "
                           "header of %u", r->row.num, NUM_COLUMNS);
    if (read_count(r, 0, UINT32_MAX, &num, err) < 0 || read_key(r, 1, &block.key, err) < 0 ||
        read_key(r, 2, &block.second_key, err) < 0)
        return -1;
    if (num == 0 || num > left || (block.key && num > 1))
        return fail_field(r, 0, block.key && num > 1 ? "blocks of one identity: each has a row of its own"
                                : num == 0           ? "is no number of blocks"
                                                     : "blocks are more than are left", err);
    if (!block.key && (block.second_key || r->row.lengths[3] > 0))
        return fail_field(r, 1, "is empty, but not what follows it", err);
    if (block.second_key && !r->has_second_keys)
        return fail_field(r, 2, "is a second identity, which no block of these groups has", err);
    if (block.key && read_count(r, 3, UINT32_MAX, &block.twin, err) < 0)
        return -1;
    block.place = r->done;
    r->done += num;
    return block.key ? keep_block(r, &block, err) : 0;
}

struct twin { uint64_t key, line; uint32_t number; };

static int by_key(const void *a, const void *b)
{
    const struct twin *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Blocks with one identity are numbered by age, from 0. */
static int check_twins(const struct reader *r, struct pkv_err *err)
{
    uint32_t num = r->out->num_kept, expected = 0;
    struct twin *twins = pkv_alloc((size_t)num + 1, sizeof *twins, err);
    if (!twins)
        return -1;
    for (uint32_t i = 0; i < num; i++)
        twins[i] = (struct twin){r->out->blocks[i].key, r->line_numbers[i], r->out->blocks[i].twin};
    qsort(twins, num, sizeof *twins, by_key);
    int result = 0;
    for (uint32_t i = 0; i < num && result == 0; i++) {
        expected = i > 0 && twins[i].key == twins[i - 1].key ? expected + 1 : 0;
        if (twins[i].number < expected)
            result = pkv_fail_at(err, r->side.path, twins[i].line, 0, "is the second block of identity %016"
                                 PRIx64 " that is its twin %" PRIu32, twins[i].key, twins[i].number);
        if (twins[i].number > expected)
            result = pkv_fail_at(err, r->side.path, twins[i].line, 0, "is twin %" PRIu32 " of identity %016"
                                 PRIx64 ", but no block is its twin %" PRIu32, twins[i].number,
                                 twins[i].key, expected);
    }
    pkv_free(twins);
    return result;
}

static int read_all(struct reader *r, const char *groups, struct pkv_err *err)
{
    if (read_head(r, groups, err) < 0 || side_next(&r->side, err) < 0)
        return -1;
    while (r->side.text)
        if (read_row(r, err) < 0 || side_next(&r->side, err) < 0)
            return -1;
    if (r->done == r->out->num)
        return check_twins(r, err);
    return pkv_fail_at(err, r->side.path, r->side.lines.number, 0, "ends after %" PRIu32 " of its %"
                       PRIu32 " blocks", r->done, r->out->num);
}

int pkv_warm_read(const char *dir, const struct pkv_sched_config *sched,
                  struct pkv_cache_state *out, struct pkv_err *err)
{
    char groups[PKV_GROUPS_LABEL_SIZE];
    struct reader r = {
        .out = out,
        .has_second_keys = pkv_groups_have_second_keys(sched->groups, sched->num_groups),
    };
    struct pkv_text path = {0};
    int result = -1;
    *out = (struct pkv_cache_state){0};
    if (sched->policies.evict->needs_hint)
        return pkv_fail(err, PKV_ERR_INPUT, "kv.warm: evict %s goes by more than an order, and no more is "
                        "kept of a former run", sched->policies.evict->info.name);
    pkv_groups_label(sched->groups, sched->num_groups, groups);
    pkv_text_fmt(&path, "%s/" PKV_CACHE_FILE, dir);
    if (path.failed)
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the name of " PKV_CACHE_FILE);
    else if (side_open(&r.side, path.text, err) == 0)
        result = read_all(&r, groups, err);
    side_close(&r.side);
    pkv_free(r.line_numbers);
    pkv_text_free(&path);
    if (result < 0)
        pkv_cache_state_free(out);
    return result;
}
