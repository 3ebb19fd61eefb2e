/*
 * files.h - a folder of its own for a test, and whole files as text. Failures fail the test.
 */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* A new folder below the current one; its name is good until the process ends. */
const char *make_folder(void);
/* With all files in it; no folders inside. */
void remove_folder(const char *folder);
/* FOLDER/NAME in a buffer of its own; free() it. */
char *path_in(const char *folder, const char *name);
char *read_text(const char *folder, const char *name);   /* free() it */
void write_text(const char *folder, const char *name, const char *text);
bool file_exists(const char *folder, const char *name);
size_t num_files(const char *folder);

#endif
