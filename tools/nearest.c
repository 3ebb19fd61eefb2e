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

const char *cli_nearest(const char *text, const char *const *words, size_t num)
{
    const char *best = NULL;
    size_t best_edits = 0;
    for (size_t i = 0; i < num; i++) {      /* ties: the one that stands first */
        size_t edits = num_edits(text, words[i]);
        if (best == NULL || edits < best_edits) {
            best = words[i];
            best_edits = edits;
        }
    }
    return best;
}
