/*
 * tenants.h - names of tenants to small numbers, from 1 in the order in which they first appear.
 */
#ifndef PKV_REQUEST_TENANTS_H
#define PKV_REQUEST_TENANTS_H

#include "pagedkv/request.h"

struct tenants {
    char **names;              /* [num], owned, each owned; number - 1 is the index */
    size_t num, capacity;
    uint32_t *slots;           /* [num_slots], owned: a number, or 0 */
    size_t num_slots;          /* a power of two, at least twice num */
};

void tenants_free(struct tenants *tenants);
/* name NULL = 0 */
int tenants_number(struct tenants *tenants, const char *name, uint32_t *out, struct pkv_err *err);

#endif
