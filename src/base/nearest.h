/*
 * nearest.h - which known word was probably meant.
 *
 * A word that what was written begins is the nearest; else the one with the fewest edits (insert,
 * drop or replace a letter) from it, if these are at most a third of what was written. Of equally
 * near ones the first that is offered.
 */
#ifndef PKV_BASE_NEAREST_H
#define PKV_BASE_NEAREST_H

#include <stddef.h>

#include "pagedkv/err.h"

#define PKV_NEAREST_SIZE 128u      /* of the longest word that is kept */
#define PKV_SUGGESTION_SIZE (PKV_NEAREST_SIZE + 32u)

struct pkv_nearest {
    const char *text;              /* borrowed: what was written */
    size_t cost;                   /* of the best; one that costs less is nearer */
    char best[PKV_NEAREST_SIZE];   /* "" = none is near */
};

void pkv_nearest_begin(struct pkv_nearest *nearest, const char *text);
/* cost  O(length of both) */
void pkv_nearest_offer(struct pkv_nearest *nearest, const char *word);
/* The same, and what is kept and shown is another name of the word. */
void pkv_nearest_offer_as(struct pkv_nearest *nearest, const char *word, const char *name);

/* "; the nearest is 'word'", or "" when none is near. dashes: what stands before a word instead of
 * quotes, "" = quotes. Returns out. */
const char *pkv_nearest_say(const struct pkv_nearest *nearest, const char *dashes,
                            char out[PKV_SUGGESTION_SIZE]);
/* All of it for an array of words [num]. Returns out. */
const char *pkv_suggest(char out[PKV_SUGGESTION_SIZE], const char *text, const char *dashes,
                        const char *const *words, size_t num);

/* "cannot be opened: ..." for a file, why being the errno. One that is not there has the nearest name
 * beside it: in its folder, in scenarios/ or traces/ below that, or in these below the current one. The
 * end of a name (".yaml") does not make two names near.
 *   returns  -1, with PKV_ERR_INPUT */
int pkv_fail_open(struct pkv_err *err, const char *path, int why);

#endif
