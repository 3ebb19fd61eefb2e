/*
 * mix.h - mixing of 64-bit numbers into hashes: one multiplication to 128 bits, folded.
 *
 * After the idea of wyhash (Wang Yi): fold(a * b) spreads every input bit over the whole result.
 */
#ifndef PKV_BASE_MIX_H
#define PKV_BASE_MIX_H

#include <stdint.h>

static inline uint64_t pkv_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Add one number to a running hash. */
static inline uint64_t pkv_mix(uint64_t hash, uint64_t number)
{
    return pkv_fold(hash ^ UINT64_C(0xa0761d6478bd642f), number ^ UINT64_C(0xe7037ed1a0b428db));
}

/* A bijection of 64 bits (finaliser of MurmurHash3): different in, different out. */
static inline uint64_t pkv_scramble(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    x ^= x >> 33;
    return x;
}

#endif
