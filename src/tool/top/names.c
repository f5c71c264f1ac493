/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * names.c - finds a sum by the hash of its name; sums with one hash are in a list (see names.h).
 */
#include "src/tool/top/names.h"

#include <stdlib.h>
#include <string.h>

#include "src/render/owners.h"

enum { FIRST_ROOM = 64 };

/* FNV-1a. Not 0, which the map does not take. */
static uint64_t hash_of(const char *name, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return hash ? hash : 1;
}

/* Returns the number + 1 of the first sum with a hash; 0: there is none. */
static uint32_t first_of(const name_sums *names, uint64_t hash)
{
    const uint32_t *number = qi_id_map_find(&names->by_hash, hash);
    return number ? *number + 1 : 0;
}

static bool has_name(const name_sum *sum, const char *name, size_t length)
{
    return !strncmp(sum->name, name, length) && !sum->name[length];
}

static bool take_place(name_sums *names, uint32_t *number)
{
    if (names->free) {
        *number = names->free - 1;
        names->free = names->places[*number].next;
        return true;
    }
    if (names->used == names->room) {
        size_t room = names->room ? names->room * 2 : FIRST_ROOM;
        name_sum *places = realloc(names->places, room * sizeof *places);
        if (!places)
            return false;
        names->places = places;
        names->room = room;
    }
    *number = (uint32_t)names->used++;
    return true;
}

static void free_place(name_sums *names, uint32_t number)
{
    name_sum *place = &names->places[number];
    free(place->name);
    *place = (name_sum){.next = names->free};
    names->free = number + 1;
}

/* The new sum is the first or, so that the map does not change, the second one with its hash. */
static bool add_sum(name_sums *names, const char *name, size_t length, uint32_t *number)
{
    uint64_t hash = hash_of(name, length);
    uint32_t first = first_of(names, hash);
    if (!take_place(names, number))
        return false;
    name_sum *sum = &names->places[*number];
    *sum = (name_sum){.name = strndup(name, length), .hash = hash};
    if (!sum->name || (!first && !qi_id_map_add(&names->by_hash, names->host, hash, *number))) {
        free_place(names, *number);
        return false;
    }
    if (first) {
        sum->next = names->places[first - 1].next;
        names->places[first - 1].next = *number + 1;
    }
    names->count++;
    return true;
}

/* The map has room for another entry when it has just lost one. */
static void remove_sum(name_sums *names, uint32_t number)
{
    const name_sum *sum = &names->places[number];
    uint32_t *link = NULL;
    for (uint32_t at = first_of(names, sum->hash); at != number + 1; at = *link)
        link = &names->places[at - 1].next;
    if (link) {
        *link = sum->next;
    } else {
        qi_id_map_remove(&names->by_hash, sum->hash);
        if (sum->next && !qi_id_map_add(&names->by_hash, names->host, sum->hash, sum->next - 1))
            abort();
    }
    free_place(names, number);
    names->count--;
}

bool add_named_range(name_sums *names, const char *name, uint64_t bytes, uint32_t *number)
{
    size_t length = qi_owners_part(name);
    uint32_t at = first_of(names, hash_of(name, length));
    while (at && !has_name(&names->places[at - 1], name, length))
        at = names->places[at - 1].next;
    *number = at - 1;
    if (!at && !add_sum(names, name, length, number))
        return false;
    names->places[*number].bytes += bytes;
    names->places[*number].ranges++;
    return true;
}

void remove_named_range(name_sums *names, uint32_t number, uint64_t bytes)
{
    name_sum *sum = &names->places[number];
    sum->bytes -= bytes;
    if (!--sum->ranges)
        remove_sum(names, number);
}

static int by_bytes(const void *one, const void *other)
{
    const name_sum *a = *(const name_sum *const *)one, *b = *(const name_sum *const *)other;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes)
                                : strcmp(a->name, b->name);
}

const name_sum **sort_names(const name_sums *names)
{
    const name_sum **found = calloc(names->count + 1, sizeof *found);
    size_t count = 0;
    for (size_t i = 0; found && i < names->used; i++)
        if (names->places[i].name)
            found[count++] = &names->places[i];
    if (found)
        qsort(found, count, sizeof *found, by_bytes);
    return found;
}

void finish_names(name_sums *names)
{
    for (size_t i = 0; i < names->used; i++)
        free(names->places[i].name);
    free(names->places);
    qi_id_map_finish(&names->by_hash, names->host);
    *names = (name_sums){.host = names->host};
}
