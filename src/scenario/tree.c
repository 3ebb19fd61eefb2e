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
#include <string.h>

#include "base/alloc.h"

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
    bool numbered;
    struct pkv_err *err;
};

/* Where an event begins. libfyaml's columns count characters, ours bytes; its marks of texts in
 * quotes and of aliases stand behind the first sign. */
static void place(const struct reading *r, struct fy_event *event, uint64_t *out_line,
                  uint32_t *out_column)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    size_t at = mark && mark->input_pos <= r->length ? mark->input_pos : 0;
    size_t begin;

    if (!r->numbered || !mark) {
        *out_line = 0;
        *out_column = 0;
        return;
    }
    if (at > 0 && (event->type == FYET_ALIAS || event->type == FYET_SCALAR) &&
        strchr("\"'*", r->text[at - 1]))
        at--;
    begin = at;
    while (begin > 0 && r->text[begin - 1] != '\n' && r->text[begin - 1] != '\r')
        begin--;
    *out_line = (uint64_t)mark->line + 1;
    *out_column = (uint32_t)(at - begin) + 1;
}

static int fail_event(const struct reading *r, struct fy_event *event, const char *what)
{
    uint64_t line;
    uint32_t column;

    place(r, event, &line, &column);
    return pkv_fail_at(r->err, r->path, line, column, "%s", what);
}

/* The first sentence libfyaml has about the text. */
static int fail_syntax(const struct reading *r)
{
    void *iter = NULL;
    const struct fy_diag_error *e = fy_diag_errors_iterate(r->diag, &iter);

    if (!e)
        return pkv_fail_at(r->err, r->path, 0, 0, "cannot be read as a document");
    if (!r->numbered || e->line <= 0)
        return pkv_fail_at(r->err, r->path, 0, 0, "%s", e->msg);
    return pkv_fail_at(r->err, r->path, (uint64_t)e->line,
                       e->column > 0 ? (uint32_t)e->column : 0, "%s", e->msg);
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

static int take_key(const struct reading *r, const struct node *map, const struct node *key,
                    struct node *value)
{
    const struct node *same;

    if (key->kind != NODE_SCALAR)
        return node_fail(key, r->err, "a list or a map cannot be a key");
    if (!key->quoted && strcmp(key->text, "<<") == 0)
        return node_fail(key, r->err, "merge keys are not read here; write the keys again");
    if (strlen(key->text) != key->length)
        return node_fail(key, r->err, "a key cannot hold a NUL character");
    same = node_child(map, key->text);
    if (same && r->numbered)
        return node_fail(key, r->err, "key '%s' is here twice; the first one is in line %llu",
                         key->text, (unsigned long long)same->key_line);
    if (same)
        return node_fail(key, r->err, "key '%s' is here twice", key->text);
    value->key = key->text;
    value->key_line = key->line;
    value->key_column = key->column;
    return 0;
}

/* Everything up to the end of a list or a map. */
static int read_children(const struct reading *r, struct node *parent, unsigned depth)
{
    struct node **end = &parent->children;

    for (;;) {
        struct fy_event *event = next_event(r);
        struct node *key = NULL, *value;

        if (!event)
            return -1;
        if (event->type == FYET_MAPPING_END || event->type == FYET_SEQUENCE_END) {
            fy_parser_event_free(r->parser, event);
            return 0;
        }
        if (parent->kind == NODE_MAP) {
            key = read_value(r, event, depth);
            event = key ? next_event(r) : NULL;
        }
        if (!event || !(value = read_value(r, event, depth)))
            return -1;
        if (key && take_key(r, parent, key, value) < 0)
            return -1;
        *end = value;
        end = &value->next;
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

int tree_parse(struct forest *forest, const char *path, const char *text, size_t length,
               enum tree_format format, bool numbered, struct node **out, struct pkv_err *err)
{
    const struct fy_diag_cfg quiet = { .output_fn = say_nothing, .level = FYET_ERROR };
    struct fy_parse_cfg config = {
        .flags = FYPCF_DEFAULT_PARSE | (format == TREE_JSON ? FYPCF_JSON_FORCE : FYPCF_JSON_NONE),
    };
    struct reading r = { .forest = forest, .text = text, .length = length, .numbered = numbered,
                         .err = err };
    int result = -1;

    r.path = forest_copy(forest, path, strlen(path), err);
    if (!r.path)
        return -1;
    if (memchr(text, '\0', length))
        return pkv_fail_at(err, path, 0, 0, "holds a NUL character; it is not a text file");
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
