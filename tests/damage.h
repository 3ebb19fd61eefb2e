/*
 * damage.h - good files made bad, by a seeded stream.
 */
#ifndef PKV_TESTS_DAMAGE_H
#define PKV_TESTS_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

#define DAMAGE_MAX_SIZE 1024u

/* One change at a random place of bytes[DAMAGE_MAX_SIZE], of which size > 0 are the file; returns its
 * new size. */
size_t damage(struct pkv_rng *rng, uint8_t *bytes, size_t size);

#endif
