/*
 * settings.c - scenario keys given on the command line.
 */
#include <string.h>

#include "base/alloc.h"
#include "cli.h"

static void free_setting(const struct pkv_setting *setting)
{
    pkv_free((void *)(uintptr_t)setting->key);
    pkv_free((void *)(uintptr_t)setting->value);
    pkv_free((void *)(uintptr_t)setting->origin);
}

static char *copy(const char *text, size_t length, struct pkv_err *err)
{
    char *out = pkv_alloc(length + 1, 1, err);
    if (out != NULL)
        memcpy(out, text, length);
    return out;
}

int cli_settings_add(struct cli_settings *settings, const char *key, size_t key_length,
                     const char *value, const char *origin, struct pkv_err *err)
{
    struct pkv_setting setting = {
        .key = copy(key, key_length, err),
        .value = copy(value, strlen(value), err),
        .origin = copy(origin, strlen(origin), err),
    };
    if (setting.key == NULL || setting.value == NULL || setting.origin == NULL ||
        pkv_grow(&settings->items, &settings->capacity, settings->num + 1,
                 sizeof *settings->items, err) < 0) {
        free_setting(&setting);
        return -1;
    }
    settings->items[settings->num++] = setting;
    return 0;
}

/* A double-quoted YAML scalar; bytes of UTF-8 stand for themselves. */
static void quote(struct pkv_text *out, const char *text)
{
    pkv_text_add(out, "\"");
    for (const char *c = text; *c != 0; c++) {
        if (*c == '"' || *c == '\\')
            pkv_text_fmt(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            pkv_text_fmt(out, "\\x%02x", (unsigned)*c);
        else
            pkv_text_bytes(out, c, 1);
    }
    pkv_text_add(out, "\"");
}

int cli_settings_add_text(struct cli_settings *settings, const char *key, const char *text,
                          const char *origin, struct pkv_err *err)
{
    struct pkv_text quoted = {0};
    int rc = -1;
    quote(&quoted, text);
    if (quoted.failed)
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory");
    else
        rc = cli_settings_add(settings, key, strlen(key), quoted.text, origin, err);
    pkv_text_free(&quoted);
    return rc;
}

/* A path is taken byte by byte unless it begins with a quote. */
int cli_settings_add_path(struct cli_settings *settings, const char *key, const char *path,
                          const char *origin, struct pkv_err *err)
{
    struct pkv_text text = {0};
    int rc = -1;
    pkv_text_add(&text, path[0] == '"' || path[0] == '\'' ? "./" : "");
    pkv_text_add(&text, path);
    if (text.failed)
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory");
    else
        rc = cli_settings_add(settings, key, strlen(key), text.text, origin, err);
    pkv_text_free(&text);
    return rc;
}

int cli_settings_append(struct cli_settings *into, struct cli_settings *from, struct pkv_err *err)
{
    if (from->num == 0)
        return 0;
    if (pkv_grow(&into->items, &into->capacity, into->num + from->num, sizeof *into->items,
                 err) < 0)
        return -1;
    memcpy(into->items + into->num, from->items, from->num * sizeof *from->items);
    into->num += from->num;
    from->num = 0;
    return 0;
}

void cli_settings_free(struct cli_settings *settings)
{
    for (size_t i = 0; i < settings->num; i++)
        free_setting(&settings->items[i]);
    pkv_free(settings->items);
    memset(settings, 0, sizeof *settings);
}
