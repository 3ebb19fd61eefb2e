/*
 * json_fields.h - the fields of a JSON object as pieces of its text; enough for recorded logs,
 * which have no escapes.
 */
#ifndef TESTS_JSON_FIELDS_H
#define TESTS_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_field {
    const char *name, *value;            /* point into the object's text */
    size_t name_length, value_length;
};

/* The first field at or after *at (the object's text, or where the last call stopped).
 *   returns  false at the end of the object */
bool json_next(const char **at, struct json_field *out);
bool json_find(const char *object, const char *name, struct json_field *out);

/* A number, or other if there is no such field or it is null. */
int64_t json_number(const char *object, const char *name, int64_t other);
/* Is the field there, and is this its text ("true", "\"fcfs\"")? */
bool json_is(const char *object, const char *name, const char *text);

/* The name of the first field of a whose text in b is another, or that b does not have; NULL when
 * there is none. The values are left in *in_a and *in_b. */
const char *json_first_difference(const char *a, const char *b, struct json_field *in_a,
                                  struct json_field *in_b);

#endif
