/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * owners.h - sums live bytes by the first part of the allocations' names, for a report.
 *
 * The first part of a name ends before the first '/', '.' or ':' that follows another character.
 * Leading separators belong to it. A qi_owners belongs to one thread, without a lock, and takes
 * host memory from the given callbacks. Invariant: at least a quarter of the places in `sums` is
 * free.
 */
#ifndef QUIRE_SRC_RENDER_OWNERS_H
#define QUIRE_SRC_RENDER_OWNERS_H

#include "src/base/host_memory.h"

typedef struct qi_owner_sum {
    char *name; /* the first part; "" for allocations without a name; NULL: the place is free */
    uint64_t live_bytes;
    uint64_t count;
    bool taken; /* returned by qi_owners_take_largest */
} qi_owner_sum;

typedef struct qi_owners {
    qi_host host;
    qi_owner_sum *sums; /* hash table with open addressing: each name is at the next free place */
    uint64_t room;      /* places: a power of two, or 0 */
    uint64_t count;     /* names */
} qi_owners;

QUIRE_MUST_USE quire_result qi_owners_init(qi_owners *owners, const quire_host_memory *callbacks);
void qi_owners_finish(qi_owners *owners);

/* Returns the length of the first part of a name, in bytes. */
size_t qi_owners_part(const char *name);

/* Adds an allocation. Returns false if host memory is exhausted. */
QUIRE_MUST_USE bool qi_owners_add(qi_owners *owners, const char *name, uint64_t bytes);

/*
 * Returns the sum with the most bytes that was not yet taken, and marks it as taken. Of equal sums,
 * the first in the order of names. NULL if all are taken.
 */
const qi_owner_sum *qi_owners_take_largest(qi_owners *owners);

/* Returns the total of the sums that were not taken. *names receives their number. */
qi_owner_sum qi_owners_rest(const qi_owners *owners, uint64_t *names);

#endif
