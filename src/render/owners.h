/*
 * owners.h - live bytes by the first part of the allocations' names, for a report.
 *
 * A part ends before the first '/', '.' or ':' behind the name's beginning. Not thread-safe; takes
 * host memory from the given callbacks.
 */
#ifndef QUIRE_SRC_RENDER_OWNERS_H
#define QUIRE_SRC_RENDER_OWNERS_H

#include "src/base/host_memory.h"

typedef struct qi_owner_sum {
    char *name; /* the part; "" for those without a name; NULL: the place is free */
    uint64_t live_bytes;
    uint64_t count;
    bool taken;
} qi_owner_sum;

typedef struct qi_owners {
    qi_host host;
    qi_owner_sum *sums; /* by the hash of their names, each at the next free place */
    uint64_t room;      /* a power of two, or 0 */
    uint64_t count;
} qi_owners;

QUIRE_MUST_USE quire_result qi_owners_init(qi_owners *owners, const quire_host_memory *callbacks);
void qi_owners_finish(qi_owners *owners);

/* Adds an allocation. False: there is no host memory. */
QUIRE_MUST_USE bool qi_owners_add(qi_owners *owners, const char *name, uint64_t bytes);

/* The one with the most bytes that was not taken yet, of equal ones the first by name; or NULL. */
const qi_owner_sum *qi_owners_take_largest(qi_owners *owners);

/* All that was not taken, and how many names that is. */
qi_owner_sum qi_owners_rest(const qi_owners *owners, uint64_t *names);

#endif
