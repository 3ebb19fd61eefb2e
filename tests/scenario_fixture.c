/*
 * scenario_fixture.c - see scenario_fixture.h.
 */
#include "scenario_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

static char folder[64];

void fixture_begin(void)
{
    strcpy(folder, "scenario-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char name[512];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (unlink(name) != 0)
            remove_all(name);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

void fixture_end(void)
{
    remove_all(folder);
}

const char *fixture_path(const char *name)
{
    static char paths[5][256];
    static unsigned next;
    char *path = paths[next++ % 5];

    snprintf(path, sizeof(paths[0]), "%s%s%s", folder, name ? "/" : "", name ? name : "");
    return path;
}

void fixture_write(const char *name, const char *text)
{
    FILE *file = fopen(fixture_path(name), "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
}

void fixture_make_dir(const char *name)
{
    ck_assert_int_eq(mkdir(fixture_path(name), 0777), 0);
}

struct pkv_scenario *fixture_load(const char *text, const struct pkv_setting *settings,
                                  size_t num_settings)
{
    struct pkv_err err = { .code = PKV_ERR_NONE };
    struct pkv_scenario *s;
    char where[1200];

    fixture_write("scenario.yaml", text);
    s = pkv_scenario_load(fixture_path("scenario.yaml"), settings, num_settings, &err);
    pkv_err_format(&err, where, sizeof(where));
    ck_assert_msg(s != NULL, "%s\n%s", where, text);
    return s;
}

struct pkv_scenario *fixture_load_set(const char *text, const char *const *pairs)
{
    struct pkv_setting settings[8];
    size_t num = 0;

    for (; pairs[2 * num]; num++)
        settings[num] = (struct pkv_setting){ .key = pairs[2 * num], .value = pairs[2 * num + 1],
                                              .origin = "--set" };
    return fixture_load(text, settings, num);
}
