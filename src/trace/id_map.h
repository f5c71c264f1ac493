/*
 * id_map.h - from the ids of a trace to small numbers: an open-addressing hash table with linear
 * probing, whose entries move up when one is removed, so that it never fills with tombstones.
 *
 * Where an id stands depends on a seed that each map chooses for itself, so that nobody can write a
 * trace whose ids gather in one place. Nobody sees where ids stand: results do not depend on it.
 */
#ifndef QUIRE_SRC_TRACE_ID_MAP_H
#define QUIRE_SRC_TRACE_ID_MAP_H

#include "src/base/host_memory.h"

typedef struct qi_id_entry {
    uint64_t id; /* 0: empty; ids are positive */
    uint32_t number;
} qi_id_entry;

typedef struct qi_id_map {
    qi_id_entry *entries;
    uint64_t capacity; /* a power of two, or 0 */
    uint64_t count;
    uint64_t seed; /* 0: chosen with the first entry */
} qi_id_map;

void qi_id_map_finish(qi_id_map *map, qi_host *host);

/* The number of an id, or NULL when it is not there. */
const uint32_t *qi_id_map_find(const qi_id_map *map, uint64_t id);

/* Adds an id that is not there. False when host memory is out. */
QUIRE_MUST_USE bool qi_id_map_add(qi_id_map *map, qi_host *host, uint64_t id, uint32_t number);

/* Removes an id that is there. */
void qi_id_map_remove(qi_id_map *map, uint64_t id);

#endif
