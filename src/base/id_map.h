/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * id_map.h - maps ids, of a trace for example, to small numbers: a hash table with open addressing
 * and linear probing. Removing an entry moves later ones back, so the table has no tombstones.
 *
 * Each map chooses a seed for its hash, so that nobody can write a trace whose ids all collide. The
 * order of entries is not observable, so results do not depend on the seed. Not thread-safe. A
 * zeroed map is empty.
 */
#ifndef QUIRE_SRC_BASE_ID_MAP_H
#define QUIRE_SRC_BASE_ID_MAP_H

#include "src/base/host_memory.h"

typedef struct qi_id_entry {
    uint64_t id; /* 0 means empty; ids are positive */
    uint32_t number;
} qi_id_entry;

typedef struct qi_id_map {
    qi_id_entry *entries;
    uint64_t capacity; /* a power of two, or 0 */
    uint64_t count;
    uint64_t seed; /* 0 until the first entry is added */
} qi_id_map;

/* Frees the table; the map is empty then. `host` is the same in all calls for a map. */
void qi_id_map_finish(qi_id_map *map, qi_host *host);

/* Returns the number of an id, valid until the next change of the map, or NULL. */
const uint32_t *qi_id_map_find(const qi_id_map *map, uint64_t id);

/* Adds an id, which must not be in the map. Returns false if host memory is exhausted. */
QUIRE_MUST_USE bool qi_id_map_add(qi_id_map *map, qi_host *host, uint64_t id, uint32_t number);

/* Removes an id, which must be in the map. */
void qi_id_map_remove(qi_id_map *map, uint64_t id);

#endif
