/*
 * content.c - where tokens come from: origins that never meet, names, and the root of a chain.
 */
#include <string.h>

#include "base/mix.h"
#include "pagedkv/cache.h"

uint64_t pkv_origin(enum pkv_origin_kind kind, uint64_t number)
{
    /* Bijective within a kind; kinds differ by what is mixed in between two rounds. */
    return pkv_scramble(pkv_scramble(number) ^ pkv_scramble((uint64_t)kind + 1));
}

bool pkv_origin_is_named(enum pkv_origin_kind kind, uint64_t number)
{
    switch (kind) {
    case PKV_ORIGIN_TOKEN:      /* from token id 2^40 on: answers, and texts that had no ids */
        return number < 256;
    case PKV_ORIGIN_HASH_ID:
    case PKV_ORIGIN_NAME:
    case PKV_ORIGIN_PREFIX:
        return true;
    case PKV_ORIGIN_OWN:
    case PKV_ORIGIN_OUTPUT:
    case PKV_ORIGIN_SAMPLE:
    case PKV_ORIGIN_PREV:
        break;
    }
    return false;
}

uint64_t pkv_hash_name(const char *text, size_t length)
{
    uint64_t hash = pkv_mix(0, length);
    for (size_t done = 0; done < length; done += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && done + i < length; i++)
            word |= (uint64_t)(unsigned char)text[done + i] << (8 * i);
        hash = pkv_mix(hash, word);
    }
    return hash;
}

uint64_t pkv_content_root(const char *salt, const char *adapter)
{
    enum { TAG_SALT = 1, TAG_ADAPTER = 2 };
    uint64_t root = 0;
    if (salt)
        root = pkv_mix(pkv_mix(root, TAG_SALT), pkv_hash_name(salt, strlen(salt)));
    if (adapter)
        root = pkv_mix(pkv_mix(root, TAG_ADAPTER), pkv_hash_name(adapter, strlen(adapter)));
    return root;
}
