/*
 * damage.c - see damage.h.
 */
#include "damage.h"

#include <string.h>

static const char *const words[] = {
    "0", "-1", "1.5", "1e99", "99999999999999999999", "2147483648", "null", "true", "\"\"", "[]",
    "{}", "[", "]", "}", ",", "\"", "\n", "\\u0000", "\xff", "NaN", "@prev", "session", "n", "-2",
    "0.99999999995", "9223372036854775807",
};
#define NUM_WORDS (sizeof words / sizeof *words)

size_t damage(struct pkv_rng *rng, uint8_t *bytes, size_t size)
{
    size_t at = (size_t)pkv_rng_below(rng, size);
    size_t count = 1 + (size_t)pkv_rng_below(rng, 8);
    if (count > size - at)
        count = size - at;
    switch (pkv_rng_below(rng, 5)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << pkv_rng_below(rng, 8));
        return size;
    case 1:
        memmove(bytes + at, bytes + at + count, size - at - count);
        return size - count > 0 ? size - count : 1;
    case 2: {
        const char *word = words[pkv_rng_below(rng, NUM_WORDS)];
        size_t length = strlen(word);
        if (size + length > DAMAGE_MAX_SIZE)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        memcpy(bytes + at, word, length);
        return size + length;
    }
    case 3:                                        /* say a part twice */
        if (size + count > DAMAGE_MAX_SIZE)
            return size;
        memmove(bytes + at + count, bytes + at, size - at);
        return size + count;
    default:
        return at > 0 ? at : 1;                    /* cut */
    }
}
