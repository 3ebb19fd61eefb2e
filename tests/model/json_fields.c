/*
 * json_fields.c - see json_fields.h.
 */
#include "json_fields.h"

#include <stdlib.h>
#include <string.h>

static const char *skip(const char *p, const char *these)
{
    return p + strspn(p, these);
}

/* End of the value at p: the comma or bracket behind it at the same depth. */
static const char *value_end(const char *p)
{
    int depth = 0;

    for (; *p != '\0'; p++) {
        if (*p == '"')
            for (p++; *p != '"'; p++) { }
        else if (*p == '[' || *p == '{')
            depth++;
        else if (depth == 0 && (*p == ',' || *p == '}' || *p == ']'))
            break;
        else if (*p == ']' || *p == '}')
            depth--;
    }
    return p;
}

bool json_next(const char **at, struct json_field *out)
{
    const char *p = skip(*at, "{, \n"), *end;

    if (*p != '"')
        return false;
    out->name = p + 1;
    out->name_length = strcspn(out->name, "\"");
    p = skip(out->name + out->name_length + 1, ": ");
    end = value_end(p);
    out->value = p;
    out->value_length = (size_t)(end - p);
    *at = end;
    return true;
}

bool json_find(const char *object, const char *name, struct json_field *out)
{
    size_t length = strlen(name);

    while (json_next(&object, out))
        if (out->name_length == length && memcmp(out->name, name, length) == 0)
            return true;
    return false;
}

int64_t json_number(const char *object, const char *name, int64_t other)
{
    struct json_field field;

    if (!json_find(object, name, &field) || field.value[0] == 'n')
        return other;
    return strtoll(field.value, NULL, 10);
}

bool json_is(const char *object, const char *name, const char *text)
{
    struct json_field field;

    return json_find(object, name, &field) && field.value_length == strlen(text) &&
           memcmp(field.value, text, field.value_length) == 0;
}

/* Objects by key, everything else by text. */
static bool same_value(const struct json_field *a, const struct json_field *b)
{
    const char *at_a = a->value, *at_b = b->value;
    struct json_field in_a, in_b;
    char name[64];

    if (a->value_length != b->value_length)
        return false;
    if (a->value[0] != '{')
        return memcmp(a->value, b->value, a->value_length) == 0;
    while (json_next(&at_a, &in_a)) {
        if (!json_next(&at_b, &in_b) || in_a.name_length >= sizeof name)
            return false;
        memcpy(name, in_a.name, in_a.name_length);
        name[in_a.name_length] = '\0';
        if (!json_find(b->value, name, &in_b) || !same_value(&in_a, &in_b))
            return false;
    }
    return true;
}

const char *json_first_difference(const char *a, const char *b, struct json_field *in_a,
                                  struct json_field *in_b)
{
    static char name[64];

    while (json_next(&a, in_a)) {
        if (in_a->name_length >= sizeof name)
            abort();
        memcpy(name, in_a->name, in_a->name_length);
        name[in_a->name_length] = '\0';
        if (!json_find(b, name, in_b)) {
            *in_b = (struct json_field){ "", "(missing)", 0, strlen("(missing)") };
            return name;
        }
        if (!same_value(in_a, in_b))
            return name;
    }
    return NULL;
}
