/*
 * tenants.c - see tenants.h. A table of numbers, open to the next free slot; names are never
 * forgotten, so a number means the same tenant for the whole run.
 */
#include "request/tenants.h"

#include <string.h>

#include "base/alloc.h"

void tenants_free(struct tenants *tenants)
{
    for (size_t i = 0; i < tenants->num; i++)
        pkv_free(tenants->names[i]);
    pkv_free(tenants->names);
    pkv_free(tenants->slots);
}

/* Where the name stands, or would. */
static uint32_t *find_slot(const struct tenants *tenants, const char *name)
{
    size_t mask = tenants->num_slots - 1;
    size_t i = pkv_hash_name(name, strlen(name)) & mask;
    while (tenants->slots[i] && strcmp(tenants->names[tenants->slots[i] - 1], name) != 0)
        i = (i + 1) & mask;
    return &tenants->slots[i];
}

static int make_room(struct tenants *tenants, struct pkv_err *err)
{
    if (pkv_grow(&tenants->names, &tenants->capacity, tenants->num + 1, sizeof(*tenants->names),
                 err) < 0)
        return -1;
    if (2 * (tenants->num + 1) <= tenants->num_slots)
        return 0;
    size_t num_slots = tenants->num_slots ? 2 * tenants->num_slots : 16;
    uint32_t *slots = pkv_alloc(num_slots, sizeof(*slots), err);
    if (!slots)
        return -1;
    pkv_free(tenants->slots);
    tenants->slots = slots;
    tenants->num_slots = num_slots;
    for (size_t i = 0; i < tenants->num; i++)
        *find_slot(tenants, tenants->names[i]) = (uint32_t)i + 1;
    return 0;
}

int tenants_number(struct tenants *tenants, const char *name, uint32_t *out, struct pkv_err *err)
{
    *out = 0;
    if (!name)
        return 0;
    if (make_room(tenants, err) < 0)
        return -1;
    uint32_t *slot = find_slot(tenants, name);
    if (*slot == 0) {
        tenants->names[tenants->num] = pkv_strdup(name, err);
        if (!tenants->names[tenants->num])
            return -1;
        *slot = (uint32_t)++tenants->num;
    }
    *out = *slot;
    return 0;
}
