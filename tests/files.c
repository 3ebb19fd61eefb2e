/*
 * files.c - a folder of its own for a test, and whole files as text.
 */
#include "files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

const char *make_folder(void)
{
    static char name[32];

    strcpy(name, "pagedkv_test_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(name));
    return name;
}

char *path_in(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    ck_assert_ptr_nonnull(path);
    snprintf(path, size, "%s/%s", folder, name);
    return path;
}

/* Calls each on every file of a folder. */
static size_t walk(const char *folder, void (*each)(const char *path))
{
    DIR *dir = opendir(folder);
    size_t num = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        num++;
        if (each) {
            char *path = path_in(folder, entry->d_name);
            each(path);
            free(path);
        }
    }
    closedir(dir);
    return num;
}

static void remove_one(const char *path)
{
    ck_assert_int_eq(remove(path), 0);
}

void remove_folder(const char *folder)
{
    walk(folder, remove_one);
    ck_assert_int_eq(rmdir(folder), 0);
}

size_t num_files(const char *folder)
{
    return walk(folder, NULL);
}

bool file_exists(const char *folder, const char *name)
{
    char *path = path_in(folder, name);
    struct stat there;
    bool exists = stat(path, &there) == 0;

    free(path);
    return exists;
}

char *read_text(const char *folder, const char *name)
{
    char *path = path_in(folder, name);
    FILE *file = fopen(path, "rb");
    char *text = malloc((size_t)1 << 22);
    size_t length;

    ck_assert_msg(file != NULL, "%s cannot be read", path);
    ck_assert_ptr_nonnull(text);
    length = fread(text, 1, ((size_t)1 << 22) - 1, file);
    text[length] = '\0';
    fclose(file);
    free(path);
    return text;
}

void write_text(const char *folder, const char *name, const char *text)
{
    char *path = path_in(folder, name);
    FILE *file = fopen(path, "wb");

    ck_assert_msg(file != NULL, "%s cannot be written", path);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
    free(path);
}
