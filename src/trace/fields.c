/*
 * fields.c - what the readers of JSON rows share.
 */
#include "trace/fields_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"

int pkv_fields_find(const char *const *words, int num_words, const char *text, size_t length)
{
    for (int i = 0; i < num_words; i++)
        if (length > 0 && words[i][0] == text[0] && strncmp(words[i], text, length) == 0 &&
            words[i][length] == '\0')
            return i;
    return -1;
}

static int fail_unknown(const struct pkv_fields *f, const struct pkv_json_text *key,
                        struct pkv_err *err)
{
    char shown[61], hint[PKV_SUGGESTION_SIZE];
    struct pkv_nearest nearest;
    snprintf(shown, sizeof shown, "%.*s", key->length > 60 ? 60 : (int)key->length, key->text);
    pkv_nearest_begin(&nearest, shown);
    for (int i = 0; i < f->num_words; i++)
        if (f->allowed & PKV_FIELD_BIT(i))
            pkv_nearest_offer(&nearest, f->words[i]);
    return pkv_json_fail_at(&f->j, key->column, err, "field '%s' is unknown%s", shown,
                            pkv_nearest_say(&nearest, "", hint));
}

int pkv_fields_next(struct pkv_fields *f, struct pkv_err *err)
{
    struct pkv_json_text key;
    int more = pkv_json_next_member(&f->j, &key, err);
    if (more <= 0)
        return more;
    f->at = pkv_fields_find(f->words, f->num_words, key.text, key.length);
    if (f->at < 0 || !(f->allowed & PKV_FIELD_BIT(f->at)))
        return fail_unknown(f, &key, err);
    if (pkv_fields_has(f, f->at))
        return pkv_json_fail_at(&f->j, key.column, err, "field '%s' stands here a second time",
                                f->words[f->at]);
    f->seen |= PKV_FIELD_BIT(f->at);
    f->column[f->at] = pkv_json_column(&f->j);
    return 1;
}

bool pkv_fields_has(const struct pkv_fields *f, int field)
{
    return (f->seen & PKV_FIELD_BIT(field)) != 0;
}

int pkv_fields_fail(const struct pkv_fields *f, int field, struct pkv_err *err, const char *fmt,
                    ...)
{
    char sentence[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    return pkv_json_fail_at(&f->j, f->column[field], err, "%s %s", f->words[field], sentence);
}

int pkv_fields_text(struct pkv_fields *f, struct pkv_slot *slot, struct pkv_err *err)
{
    struct pkv_json_text raw;
    if (pkv_json_string(&f->j, &raw, err) < 0)
        return -1;
    if (raw.length == 0)
        return pkv_fields_fail(f, f->at, err, "is empty; leave it out where there is none");
    return pkv_slot_set(slot, &raw, err);
}

int pkv_fields_ids(struct pkv_fields *f, struct pkv_trace *t, struct pkv_err *err)
{
    int more = 1;
    if (pkv_json_enter_array(&f->j, err) < 0)
        return -1;
    while (more > 0) {
        size_t num;
        if (pkv_grow(&t->hash_ids, &t->hash_ids_capacity, t->num_hash_ids + 1,
                     sizeof *t->hash_ids, err) < 0)
            return -1;
        more = pkv_json_u64_items(&f->j, t->hash_ids + t->num_hash_ids,
                                  t->hash_ids_capacity - t->num_hash_ids, &num, err);
        t->num_hash_ids += num;
    }
    return more;
}

int pkv_fields_read(struct pkv_fields *f, int (*take)(void *ctx, int field, struct pkv_err *err),
                    void *ctx, struct pkv_err *err)
{
    int more;
    if (pkv_json_enter_object(&f->j, err) < 0)
        return -1;
    while ((more = pkv_fields_next(f, err)) > 0)
        if (take(ctx, f->at, err) < 0)
            return -1;
    return more;
}

int pkv_fields_need(const struct pkv_fields *f, uint32_t required, uint32_t column,
                    struct pkv_err *err)
{
    for (int i = 0; i < f->num_words; i++)
        if (required & ~f->seen & PKV_FIELD_BIT(i))
            return pkv_json_fail_at(&f->j, column, err, "this %s has no %s",
                                    column > 1 ? "request" : "row", f->words[i]);
    return 0;
}
