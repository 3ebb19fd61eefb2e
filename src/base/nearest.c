/*
 * nearest.c - which known word was probably meant, and which file.
 */
#include "base/nearest.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/out.h"

#define MAX_WORD 64u
#define MIN_NAME 3u     /* fewer letters begin too many files to mean one of them */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits from a to b; only the first MAX_WORD letters count. */
static size_t num_edits(const char *a, const char *b)
{
    size_t row[MAX_WORD + 1];
    size_t a_length = smaller(strlen(a), MAX_WORD), b_length = smaller(strlen(b), MAX_WORD);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = smaller(replaced, 1 + smaller(row[j], row[j - 1]));
        }
    }
    return row[b_length];
}

/* What has to be nearer than the first letters of what was written allow. */
static void begin(struct pkv_nearest *nearest, const char *text, size_t length)
{
    nearest->text = text;
    nearest->cost = smaller(length, MAX_WORD) / 3 + 1;
    nearest->best[0] = '\0';
}

void pkv_nearest_begin(struct pkv_nearest *nearest, const char *text)
{
    begin(nearest, text, strlen(text));
}

static size_t cost_of(const struct pkv_nearest *nearest, const char *word)
{
    const char *text = nearest->text;
    return strncmp(text, word, strlen(text)) == 0 ? 0 : num_edits(text, word);
}

static void keep(struct pkv_nearest *nearest, size_t cost, const char *name)
{
    nearest->cost = cost;
    snprintf(nearest->best, sizeof nearest->best, "%s", name);
}

void pkv_nearest_offer_as(struct pkv_nearest *nearest, const char *word, const char *name)
{
    size_t cost = cost_of(nearest, word);
    if (nearest->text[0] && cost < nearest->cost && strlen(name) < sizeof nearest->best)
        keep(nearest, cost, name);
}

void pkv_nearest_offer(struct pkv_nearest *nearest, const char *word)
{
    pkv_nearest_offer_as(nearest, word, word);
}

const char *pkv_nearest_say(const struct pkv_nearest *nearest, const char *dashes,
                            char out[PKV_SUGGESTION_SIZE])
{
    const char *quote = *dashes ? "" : "'";
    out[0] = '\0';
    if (nearest->best[0])
        snprintf(out, PKV_SUGGESTION_SIZE, "; the nearest is %s%s%s%s", quote, dashes, nearest->best,
                 quote);
    return out;
}

const char *pkv_suggest(char out[PKV_SUGGESTION_SIZE], const char *text, const char *dashes,
                        const char *const *words, size_t num)
{
    struct pkv_nearest nearest;
    pkv_nearest_begin(&nearest, text);
    for (size_t i = 0; i < num; i++)
        pkv_nearest_offer(&nearest, words[i]);
    return pkv_nearest_say(&nearest, dashes, out);
}

/* ---- files ---- */

static bool is_file_in(DIR *dir, const char *name)
{
    struct stat there;
    return fstatat(dirfd(dir), name, &there, 0) == 0 && !S_ISDIR(there.st_mode);
}

/* A folder is read in no order, so of equally near names the first by its bytes is kept. */
static void offer_file(struct pkv_nearest *nearest, DIR *dir, const char *name)
{
    size_t cost = cost_of(nearest, name);
    bool nearer = cost < nearest->cost ||
                  (cost == nearest->cost && nearest->best[0] && strcmp(name, nearest->best) < 0);
    if (nearer && name[0] != '.' && strlen(name) < sizeof nearest->best && is_file_in(dir, name))
        keep(nearest, cost, name);
}

static void look_in(struct pkv_nearest *nearest, const char *folder)
{
    const char *stem_end = strrchr(nearest->text, '.');
    const struct dirent *entry;
    DIR *dir = opendir(*folder ? folder : ".");
    begin(nearest, nearest->text, stem_end ? (size_t)(stem_end - nearest->text)
                                           : strlen(nearest->text));
    if (!dir)
        return;
    while (strlen(nearest->text) >= MIN_NAME && (entry = readdir(dir)) != NULL)
        offer_file(nearest, dir, entry->d_name);
    closedir(dir);
}

static void find_file(struct pkv_text *out, const char *path)
{
    static const char *const below[] = {"", "scenarios/", "traces/", "scenarios/traces/"};
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash + 1 - path) : 0;
    struct pkv_nearest nearest = {.text = path + length};
    struct pkv_text folder = {0};
    for (int here = 0; here <= (length > 0) && !nearest.best[0]; here++)
        for (size_t i = 0; i < sizeof below / sizeof *below && !nearest.best[0]; i++) {
            pkv_text_clear(&folder);
            pkv_text_fmt(&folder, "%.*s%s", here ? 0 : (int)length, path, below[i]);
            if (!folder.failed)
                look_in(&nearest, folder.text ? folder.text : "");
        }
    if (nearest.best[0])
        pkv_text_fmt(out, "; the nearest is '%s%s'", folder.text ? folder.text : "", nearest.best);
    out->failed |= folder.failed;
    pkv_text_free(&folder);
}

int pkv_fail_open(struct pkv_err *err, const char *path, int why)
{
    struct pkv_text nearest = {0};
    if (why == ENOENT)
        find_file(&nearest, path);
    /* Too long a name, or no memory for it: the error is told without. */
    bool told = nearest.text && !nearest.failed && nearest.length < sizeof err->text / 2;
    pkv_fail_at(err, path, 0, 0, "cannot be opened: %s%s", strerror(why), told ? nearest.text : "");
    pkv_text_free(&nearest);
    return -1;
}
