/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * names.h - sums the ranges that live now by the first part of their names (qi_owners_part).
 *
 * A name whose last range is freed leaves the table, so that memory does not grow with the names of
 * a long run. A zeroed table with a host is empty. Not thread-safe.
 */
#ifndef QUIRE_SRC_TOOL_TOP_NAMES_H
#define QUIRE_SRC_TOOL_TOP_NAMES_H

#include "src/base/id_map.h"

typedef struct name_sum {
    char *name; /* "" for ranges without a name; NULL: the place is free */
    uint64_t hash;
    uint64_t bytes, ranges; /* ranges is above 0 */
    uint32_t next;          /* number + 1 of the next sum with this hash, or of the next free
                               place; 0 ends the list */
} name_sum;

typedef struct name_sums {
    qi_host *host;     /* of by_hash */
    qi_id_map by_hash; /* number of the first sum with a hash */
    name_sum *places;  /* a sum keeps its number */
    size_t room, used; /* places; those that were ever taken */
    uint32_t free;     /* number + 1 of the first free place */
    size_t count;      /* sums */
} name_sums;

/* Adds a range. Writes the number of its sum. Returns false if host memory is exhausted. */
QUIRE_MUST_USE bool add_named_range(name_sums *names, const char *name, uint64_t bytes,
                                    uint32_t *number);

/* Removes a range from the sum with this number. */
void remove_named_range(name_sums *names, uint32_t number, uint64_t bytes);

/*
 * Returns all sums, the most bytes first, equal ones by name; NULL if host memory is exhausted. The
 * caller frees the array, which is valid until the next change.
 */
const name_sum **sort_names(const name_sums *names);

void finish_names(name_sums *names);

#endif
