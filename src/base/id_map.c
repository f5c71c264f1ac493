/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * id_map.c - linear probing from the place of a seeded hash, in a table that is at least half
 * empty.
 */
#include "src/base/id_map.h"

#include <time.h>

enum { FIRST_CAPACITY = 64 };

/* SplitMix64's finalizer: each bit of the result depends on all bits of the number. */
static uint64_t mix(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ number >> 27) * UINT64_C(0x94D049BB133111EB);
    return number ^ number >> 31;
}

/* Mixes the address of the table and the time, which the author of a trace cannot predict. */
static uint64_t choose_seed(const qi_id_entry *entries)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t when = (uint64_t)time.tv_sec << 30 ^ (uint64_t)time.tv_nsec;
    uint64_t seed = mix(mix(when) ^ (uintptr_t)entries);
    return seed ? seed : 1;
}

/* The index where probing for an id starts. */
static uint64_t home_of(const qi_id_map *map, uint64_t id)
{
    return mix(id ^ map->seed) & (map->capacity - 1);
}

void qi_id_map_finish(qi_id_map *map, qi_host *host)
{
    qi_host_release(host, map->entries, map->capacity, sizeof *map->entries);
    *map = (qi_id_map){0};
}

/* The index of an id, or of the empty entry where it belongs. */
static uint64_t place_of(const qi_id_map *map, uint64_t id)
{
    uint64_t at = home_of(map, id);
    while (map->entries[at].id && map->entries[at].id != id)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

const uint32_t *qi_id_map_find(const qi_id_map *map, uint64_t id)
{
    if (!map->capacity)
        return NULL;
    const qi_id_entry *entry = &map->entries[place_of(map, id)];
    return entry->id ? &entry->number : NULL;
}

/* Doubles the table. At least half of its entries stay empty. False without host memory. */
static bool grow(qi_id_map *map, qi_host *host)
{
    qi_id_map larger = {.capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY};
    larger.entries = qi_host_allocate(host, larger.capacity, sizeof *larger.entries);
    if (!larger.entries)
        return false;
    larger.seed = map->seed ? map->seed : choose_seed(larger.entries);
    for (uint64_t i = 0; i < map->capacity; i++)
        if (map->entries[i].id)
            larger.entries[place_of(&larger, map->entries[i].id)] = map->entries[i];
    larger.count = map->count;
    qi_id_map_finish(map, host);
    *map = larger;
    return true;
}

bool qi_id_map_add(qi_id_map *map, qi_host *host, uint64_t id, uint32_t number)
{
    if (map->count * 2 >= map->capacity && !grow(map, host))
        return false;
    map->entries[place_of(map, id)] = (qi_id_entry){id, number};
    map->count++;
    return true;
}

void qi_id_map_remove(qi_id_map *map, uint64_t id)
{
    uint64_t mask = map->capacity - 1, hole = place_of(map, id);
    map->count--;
    for (uint64_t at = (hole + 1) & mask; map->entries[at].id; at = (at + 1) & mask) {
        uint64_t home = home_of(map, map->entries[at].id);
        /* An entry fills the hole if the hole lies between its home and its present place. */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole].id = 0;
}
