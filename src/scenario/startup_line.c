/*
 * startup_line.c - a line of a start-up log: what stands behind a phrase, and what a key is set to.
 */
#include <ctype.h>
#include <string.h>

#include "scenario/startup_private.h"

/* Digits, with commas between them. False = none. */
bool line_take_count(const char **text, uint64_t *out)
{
    const char *c = *text;
    uint64_t n = 0;

    if (!isdigit((unsigned char)*c))
        return false;
    for (; isdigit((unsigned char)*c) || (*c == ',' && isdigit((unsigned char)c[1])); c++)
        if (*c != ',') {
            if (n > (UINT64_MAX - 9) / 10)
                return false;
            n = n * 10 + (uint64_t)(*c - '0');
        }
    *text = c;
    *out = n;
    return true;
}

/* A decimal in hundredths; further digits are left out. */
bool line_take_hundredths(const char *text, uint32_t *out)
{
    uint64_t whole;
    uint32_t part = 0;

    if (!line_take_count(&text, &whole) || whole > UINT32_MAX / 200)
        return false;
    if (*text == '.' && isdigit((unsigned char)text[1])) {
        part = (uint32_t)(text[1] - '0') * 10;
        if (isdigit((unsigned char)text[2]))
            part += (uint32_t)(text[2] - '0');
    }
    *out = (uint32_t)whole * 100 + part;
    return true;
}

const char *line_after(const char *line, const char *phrase)
{
    const char *found = strstr(line, phrase);

    return found ? found + strlen(phrase) : NULL;
}

/* The value of a setting, written key=value, 'key': value or "key": value; NULL = not in the line. */
const char *line_setting(const char *line, const char *key)
{
    size_t length = strlen(key);

    for (const char *at = line; (at = strstr(at, key)) != NULL; at += length) {
        const char *end = at + length;

        if (at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
            continue;
        end += *end == '\'' || *end == '"';
        if (*end != '=' && *end != ':')
            continue;
        for (end++; *end == ' ';)
            end++;
        return end;
    }
    return NULL;
}

/* A word, in quotes or not. */
void line_set_word(const char *line, const char *key, char *out, size_t size)
{
    const char *value = line_setting(line, key);
    size_t length;

    if (!value)
        return;
    value += *value == '\'' || *value == '"';
    length = strcspn(value, "'\", )}\n");
    if (length > 0 && length < size && strncmp(value, "None", 4) != 0) {
        memcpy(out, value, length);
        out[length] = '\0';
    }
}
