/*
 * tree.c - YAML and JSON to a plain tree; the one file that knows libfyaml.
 *
 * Built from the parser's events and not from libfyaml's own documents: events show a second
 * document, aliases, anchors and tags, all of which a configuration has no use for, and let our
 * own allocations fail without harm.
 */
#include "scenario/tree_private.h"

#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/out.h"

#define MAX_DEPTH 32u

struct forest_piece {
    struct forest_piece *next;
    _Alignas(max_align_t) unsigned char bytes[];
};

void *forest_alloc(struct forest *forest, size_t size, struct pkv_err *err)
{
    struct forest_piece *piece = pkv_alloc(1, sizeof(*piece) + size, err);

    if (!piece)
        return NULL;
    piece->next = forest->pieces;
    forest->pieces = piece;
    return piece->bytes;
}

char *forest_copy(struct forest *forest, const char *text, size_t length, struct pkv_err *err)
{
    char *copy = forest_alloc(forest, length + 1, err);

    if (copy && length > 0)
        memcpy(copy, text, length);
    return copy;
}

void forest_finish(struct forest *forest)
{
    while (forest->pieces) {
        struct forest_piece *piece = forest->pieces;

        forest->pieces = piece->next;
        pkv_free(piece);
    }
}

struct node *node_scalar(struct forest *forest, const char *path, const char *key,
                         const char *text, size_t length, struct pkv_err *err)
{
    struct node *node = forest_alloc(forest, sizeof(*node), err);

    if (!node)
        return NULL;
    *node = (struct node){ .kind = NODE_SCALAR, .path = path, .key = key, .length = length };
    node->text = forest_copy(forest, text, length, err);
    return node->text ? node : NULL;
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && !node->quoted &&
           (node->length == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

const struct node *node_child(const struct node *map, const char *key)
{
    const struct node *child = map->children;

    while (child && strcmp(child->key, key) != 0)
        child = child->next;
    return child;
}

static int fail_at(const char *path, uint64_t line, uint32_t column, struct pkv_err *err,
                   const char *fmt, va_list args)
{
    char text[sizeof(err->text)];

    vsnprintf(text, sizeof(text), fmt, args);
    return pkv_fail_at(err, path, line, column, "%s", text);
}

int node_fail(const struct node *node, struct pkv_err *err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (node->line > 0)
        fail_at(node->path, node->line, node->column, err, fmt, args);
    else   /* a value that is not there has its key's place */
        fail_at(node->path, node->key_line, node->key_column, err, fmt, args);
    va_end(args);
    return -1;
}

int node_fail_key(const struct node *node, struct pkv_err *err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail_at(node->path, node->key_line, node->key_column, err, fmt, args);
    va_end(args);
    return -1;
}

/* Reading of one document. */
struct reading {
    struct forest *forest;
    struct fy_parser *parser;
    struct fy_diag *diag;
    const char *path, *text;
    size_t length;
    bool numbered, is_json;
    struct pkv_err *err;
    /* Where place() was last: lines are counted on from there, as events come in order. */
    size_t *line_begin, *seen;
};

/* Where an event begins. libfyaml's columns count characters, ours bytes; its marks of texts in
 * quotes and of aliases stand behind the first sign. */
static void place(const struct reading *r, struct fy_event *event, uint64_t *out_line,
                  uint32_t *out_column)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    size_t at = mark && mark->input_pos <= r->length ? mark->input_pos : 0;

    if (!r->numbered || !mark) {
        *out_line = 0;
        *out_column = 0;
        return;
    }
    if (at > 0 && (event->type == FYET_ALIAS || event->type == FYET_SCALAR) &&
        strchr("\"'*", r->text[at - 1]))
        at--;
    for (; *r->seen < at; ++*r->seen)
        if (strchr("\n\r", r->text[*r->seen]))
            *r->line_begin = *r->seen + 1;
    *out_line = (uint64_t)mark->line + 1;
    *out_column = at < *r->line_begin ? 0 : (uint32_t)(at - *r->line_begin) + 1;
}

static int fail_event(const struct reading *r, struct fy_event *event, const char *what)
{
    uint64_t line;
    uint32_t column;

    place(r, event, &line, &column);
    return pkv_fail_at(r->err, r->path, line, column, "%s", what);
}

/* Sentences of libfyaml that are misspelt, or say little, in better words. */
static const char *reword(const char *said)
{
    static const struct { const char *said, *better; } words[] = {
        { "invalid tab as indendation in a mapping", "a tab cannot indent the keys of a mapping" },
        { "wrongly indented entry seperator in flow mode", "wrongly indented comma in flow mode" },
        { "missing document start", "a second value begins here; a file is one map of keys" },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i].said, said) == 0)
            return words[i].better;
    return said;
}

/* The same of JSON, whose things have other names; longer ones first. */
static void reword_json(const char *said, char *out, size_t size)
{
    static const struct { const char *said, *better; } words[] = {
        { "single quoted scalars not supported in JSON mode",
          "a string stands in double quotes, not in single ones" },
        { "Invalid JSON plain scalar", "is no JSON value: a number, true, false, null, or a string in "
                                       "double quotes" },
        { "missing document start", "a second value begins here; a file is one JSON object" },
        { "flow sequence", "array" }, { "flow mapping", "object" }, { "block sequence", "array" },
        { "block mapping", "object" }, { "plain scalar", "value" }, { "sequence", "array" },
        { "mapping", "object" }, { "scalar", "value" }, { "document", "value" },
    };
    size_t used = 0;

    while (*said && used + 1 < size) {
        size_t i = 0, num = sizeof(words) / sizeof(*words);

        while (i < num && strncmp(said, words[i].said, strlen(words[i].said)) != 0)
            i++;
        if (i == num) {
            out[used++] = *said++;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%s", words[i].better);
        said += strlen(words[i].said);
    }
    out[used < size ? used : size - 1] = '\0';
}

/* The first sentence libfyaml has about the text. */
static int fail_syntax(const struct reading *r)
{
    void *iter = NULL;
    const struct fy_diag_error *e = fy_diag_errors_iterate(r->diag, &iter);
    char json[256];
    const char *said = json;

    if (!e)
        return pkv_fail_at(r->err, r->path, 0, 0, "cannot be read as %s",
                           r->is_json ? "JSON" : "a document");
    if (r->is_json)
        reword_json(e->msg, json, sizeof(json));
    else
        said = reword(e->msg);
    if (!r->numbered || e->line <= 0)
        return pkv_fail_at(r->err, r->path, 0, 0, "%s", said);
    return pkv_fail_at(r->err, r->path, (uint64_t)e->line,
                       e->column > 0 ? (uint32_t)e->column : 0, "%s", said);
}

static struct fy_event *next_event(const struct reading *r)
{
    struct fy_event *event = fy_parser_parse(r->parser);

    if (!event)
        fail_syntax(r);
    return event;
}

/* What a configuration has no use for, said at its place. */
static int refuse_extras(const struct reading *r, struct fy_event *event)
{
    struct fy_token *anchor = NULL, *tag = NULL;

    if (event->type == FYET_ALIAS)
        return fail_event(r, event, "aliases are not read here; write the value again");
    if (event->type == FYET_SCALAR) {
        anchor = event->scalar.anchor;
        tag = event->scalar.tag;
    } else if (event->type == FYET_SEQUENCE_START) {
        anchor = event->sequence_start.anchor;
        tag = event->sequence_start.tag;
    } else if (event->type == FYET_MAPPING_START) {
        anchor = event->mapping_start.anchor;
        tag = event->mapping_start.tag;
    }
    if (anchor)
        return fail_event(r, event, "anchors are not read here; write the value again");
    if (tag)
        return fail_event(r, event, "tags are not read here; write the value alone");
    return 0;
}

static int read_children(const struct reading *r, struct node *parent, unsigned depth);

/* The value that begins with event, which is given back in every case. */
static struct node *read_value(const struct reading *r, struct fy_event *event, unsigned depth)
{
    struct node *node = NULL;
    int result = refuse_extras(r, event);

    if (result == 0 && depth > MAX_DEPTH)
        result = fail_event(r, event, "values are nested too deep");
    if (result == 0)
        node = forest_alloc(r->forest, sizeof(*node), r->err);
    if (node) {
        node->path = r->path;
        place(r, event, &node->line, &node->column);
        node->kind = event->type == FYET_MAPPING_START    ? NODE_MAP
                     : event->type == FYET_SEQUENCE_START ? NODE_LIST
                                                          : NODE_SCALAR;
    }
    if (node && node->kind == NODE_SCALAR) {
        const char *text = fy_token_get_text(event->scalar.value, &node->length);

        node->quoted = fy_token_scalar_style(event->scalar.value) != FYSS_PLAIN;
        node->text = forest_copy(r->forest, text, node->length, r->err);
        if (!node->text)
            node = NULL;
    }
    fy_parser_event_free(r->parser, event);
    if (node && node->kind != NODE_SCALAR && read_children(r, node, depth + 1) < 0)
        return NULL;
    return node;
}

/* One key of a map and its place in it. */
struct key_place {
    const struct node *node;
    size_t place;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key_place *x = a, *y = b;
    int order = strcmp(x->node->key, y->node->key);

    return order != 0 ? order : x->place < y->place ? -1 : 1;
}

static int fail_twice(const struct reading *r, const struct node *first, const struct node *again)
{
    if (r->numbered)
        return node_fail_key(again, r->err, "key '%s' is here twice; the first one is in line %llu",
                             again->key, (unsigned long long)first->key_line);
    return node_fail_key(again, r->err, "key '%s' is here twice", again->key);
}

/* Equal keys stand side by side once they are sorted; of several the one that comes first in the
 * text is told. */
static int refuse_equal_keys(const struct reading *r, const struct node *map, size_t num)
{
    const struct key_place *found = NULL;
    struct key_place *sorted;
    size_t at = 0;
    int result = 0;

    if (num < 2)
        return 0;
    sorted = pkv_alloc(num, sizeof(*sorted), r->err);
    if (!sorted)
        return -1;
    for (const struct node *child = map->children; child; child = child->next, at++)
        sorted[at] = (struct key_place){ child, at };
    qsort(sorted, num, sizeof(*sorted), compare_keys);
    for (at = 1; at < num; at++)
        if (strcmp(sorted[at - 1].node->key, sorted[at].node->key) == 0 &&
            (!found || sorted[at].place < found->place))
            found = &sorted[at];
    if (found)
        result = fail_twice(r, found[-1].node, found->node);
    pkv_free(sorted);
    return result;
}

static int take_key(const struct reading *r, const struct node *key, struct node *value)
{
    if (key->kind != NODE_SCALAR)
        return node_fail(key, r->err, "a list or a map cannot be a key");
    if (!key->quoted && strcmp(key->text, "<<") == 0)
        return node_fail(key, r->err, "merge keys are not read here; write the keys again");
    if (strlen(key->text) != key->length)
        return node_fail(key, r->err, "a key cannot hold a NUL character");
    value->key = key->text;
    value->key_line = key->line;
    value->key_column = key->column;
    return 0;
}

/* Everything up to the end of a list or a map. */
static int read_children(const struct reading *r, struct node *parent, unsigned depth)
{
    struct node **end = &parent->children;
    size_t num = 0;

    for (;;) {
        struct fy_event *event = next_event(r);
        struct node *key = NULL, *value;

        if (!event)
            return -1;
        if (event->type == FYET_MAPPING_END || event->type == FYET_SEQUENCE_END) {
            fy_parser_event_free(r->parser, event);
            return parent->kind == NODE_MAP ? refuse_equal_keys(r, parent, num) : 0;
        }
        if (parent->kind == NODE_MAP) {
            key = read_value(r, event, depth);
            event = key ? next_event(r) : NULL;
        }
        if (!event || !(value = read_value(r, event, depth)))
            return -1;
        if (key && take_key(r, key, value) < 0)
            return -1;
        *end = value;
        end = &value->next;
        num++;
    }
}

/* The stream's events up to the first value, or to its end when there is none. */
static int read_stream(const struct reading *r, struct node **out)
{
    struct node *root = NULL;

    for (;;) {
        struct fy_event *event = next_event(r);

        if (!event)
            return -1;
        switch ((int)event->type) {
        case FYET_STREAM_START:
        case FYET_DOCUMENT_END:
            break;
        case FYET_DOCUMENT_START:
            if (root) {
                fail_event(r, event, "a second document begins here; one is read");
                fy_parser_event_free(r->parser, event);
                return -1;
            }
            break;
        case FYET_STREAM_END:
            fy_parser_event_free(r->parser, event);
            *out = root;
            return root ? 0 : pkv_fail_at(r->err, r->path, 0, 0, "is empty");
        default:
            root = read_value(r, event, 0);
            if (!root)
                return -1;
            continue;
        }
        fy_parser_event_free(r->parser, event);
    }
}

static void say_nothing(struct fy_diag *diag, void *user, const char *text, size_t length)
{
    (void)diag;
    (void)user;
    (void)text;
    (void)length;
}

/* Is it text at all? */
static int refuse_bytes(const struct reading *r)
{
    const char *nul = memchr(r->text, '\0', r->length);
    uint64_t line = 1;
    size_t at, begin = 0;

    if (nul)
        return pkv_fail_at(r->err, r->path, 0, 0, "holds a NUL character; it is not a text file");
    if (pkv_is_utf8(r->text, r->length, &at))
        return 0;
    for (size_t i = 0; i < at; i++)
        if (r->text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    return pkv_fail_at(r->err, r->path, r->numbered ? line : 0,
                       r->numbered ? (uint32_t)(at - begin) + 1 : 0,
                       "byte 0x%02x does not belong here: the text is not UTF-8",
                       (unsigned)(unsigned char)r->text[at]);
}

int tree_parse(struct forest *forest, const char *path, const char *text, size_t length,
               enum tree_format format, bool numbered, struct node **out, struct pkv_err *err)
{
    const struct fy_diag_cfg quiet = { .output_fn = say_nothing, .level = FYET_ERROR };
    struct fy_parse_cfg config = {
        .flags = FYPCF_DEFAULT_PARSE | (format == TREE_JSON ? FYPCF_JSON_FORCE : FYPCF_JSON_NONE),
    };
    size_t line_begin = 0, seen = 0;
    struct reading r = { .forest = forest, .text = text, .length = length, .numbered = numbered,
                         .is_json = format == TREE_JSON,
                         .err = err, .line_begin = &line_begin, .seen = &seen };
    int result = -1;

    r.path = forest_copy(forest, path, strlen(path), err);
    if (!r.path || refuse_bytes(&r) < 0)
        return -1;
    r.diag = fy_diag_create(&quiet);
    if (!r.diag)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory while reading '%s'", path);
    fy_diag_set_collect_errors(r.diag, true);
    config.diag = r.diag;
    r.parser = fy_parser_create(&config);
    if (!r.parser || fy_parser_set_string(r.parser, text, length) != 0)
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory while reading '%s'", path);
    else
        result = read_stream(&r, out);
    if (r.parser)
        fy_parser_destroy(r.parser);
    fy_diag_destroy(r.diag);
    return result;
}
