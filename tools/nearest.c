/*
 * nearest.c - which known word was probably meant.
 */
#include <string.h>

#include "cli.h"

#define MAX_WORD 64u

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, drop, replace a letter) from a to b; only the first MAX_WORD letters count. */
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

/* The first word that text is the beginning of, else the one with the fewest edits if these are at
 * most a third of the text; ties: the one that stands first. */
static const char *nearest(const char *text, const char *const *words, size_t num)
{
    const char *best = NULL;
    size_t length = strlen(text), best_edits = length / 3 + 1;
    for (size_t i = 0; i < num && length > 0; i++)
        if (strncmp(text, words[i], length) == 0)
            return words[i];
    for (size_t i = 0; i < num; i++) {
        size_t edits = num_edits(text, words[i]);
        if (edits < best_edits) {
            best = words[i];
            best_edits = edits;
        }
    }
    return best;
}

const char *cli_suggest(char out[CLI_SUGGESTION_SIZE], const char *text, const char *dashes,
                        const char *const *words, size_t num)
{
    const char *best = nearest(text, words, num);
    out[0] = 0;
    if (best != NULL)
        snprintf(out, CLI_SUGGESTION_SIZE, "; the nearest is %s%s%s%s", *dashes ? "" : "'", dashes,
                 best, *dashes ? "" : "'");
    return out;
}
