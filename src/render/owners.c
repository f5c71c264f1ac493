/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * owners.c - a hash table of name parts (see owners.h).
 */
#include "src/render/owners.h"

#include <string.h>

#include "quire/allocation.h"

static const char SEPARATORS[] = "/.:";

enum { FIRST_ROOM = 64 }; /* places of the first table */

quire_result qi_owners_init(qi_owners *owners, const quire_host_memory *callbacks)
{
    *owners = (qi_owners){.sums = NULL};
    return qi_host_init(&owners->host, callbacks);
}

void qi_owners_finish(qi_owners *owners)
{
    for (uint64_t i = 0; i < owners->room; i++)
        qi_host_release_text(&owners->host, owners->sums[i].name);
    qi_host_release(&owners->host, owners->sums, owners->room, sizeof *owners->sums);
    owners->sums = NULL;
    owners->room = owners->count = 0;
}

/* FNV-1a. */
static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return hash;
}

/* Returns the place of this name, or the free place where it belongs. One is always free. */
static qi_owner_sum *find(qi_owner_sum *sums, uint64_t room, const char *name)
{
    uint64_t at = hash_of(name) & (room - 1);
    while (sums[at].name && strcmp(sums[at].name, name))
        at = (at + 1) & (room - 1);
    return &sums[at];
}

/* Doubles the table if fewer than a quarter of its places are free. Returns false without
   memory. */
static bool make_room(qi_owners *owners)
{
    if (owners->room && owners->count < owners->room / 4 * 3)
        return true;
    uint64_t room = owners->room ? owners->room * 2 : FIRST_ROOM;
    qi_owner_sum *sums = qi_host_allocate(&owners->host, room, sizeof *sums);
    if (!sums)
        return false;
    for (uint64_t i = 0; i < owners->room; i++)
        if (owners->sums[i].name)
            *find(sums, room, owners->sums[i].name) = owners->sums[i];
    qi_host_release(&owners->host, owners->sums, owners->room, sizeof *owners->sums);
    owners->sums = sums;
    owners->room = room;
    return true;
}

size_t qi_owners_part(const char *name)
{
    size_t lead = strspn(name, SEPARATORS);
    return lead + strcspn(name + lead, SEPARATORS);
}

static void copy_part(const char *name, char part[QUIRE_MAX_NAME + 1])
{
    size_t length = qi_owners_part(name);
    if (length > QUIRE_MAX_NAME)
        length = QUIRE_MAX_NAME;
    memcpy(part, name, length);
    part[length] = '\0';
}

/* A name whose text cannot be copied is not counted. */
bool qi_owners_add(qi_owners *owners, const char *name, uint64_t bytes)
{
    char part[QUIRE_MAX_NAME + 1];
    copy_part(name, part);
    if (!make_room(owners))
        return false;
    qi_owner_sum *sum = find(owners->sums, owners->room, part);
    if (!sum->name) {
        sum->name = qi_host_copy_text(&owners->host, part);
        owners->count += sum->name != NULL;
    }
    if (!sum->name)
        return false;
    sum->live_bytes += bytes;
    sum->count++;
    return true;
}

static bool comes_before(const qi_owner_sum *a, const qi_owner_sum *b)
{
    if (a->live_bytes != b->live_bytes)
        return a->live_bytes > b->live_bytes;
    return strcmp(a->name, b->name) < 0;
}

const qi_owner_sum *qi_owners_take_largest(qi_owners *owners)
{
    qi_owner_sum *largest = NULL;
    for (uint64_t i = 0; i < owners->room; i++) {
        qi_owner_sum *sum = &owners->sums[i];
        if (sum->name && !sum->taken && (!largest || comes_before(sum, largest)))
            largest = sum;
    }
    if (largest)
        largest->taken = true;
    return largest;
}

qi_owner_sum qi_owners_rest(const qi_owners *owners, uint64_t *names)
{
    qi_owner_sum rest = {.name = NULL};
    *names = 0;
    for (uint64_t i = 0; i < owners->room; i++) {
        const qi_owner_sum *sum = &owners->sums[i];
        if (!sum->name || sum->taken)
            continue;
        rest.live_bytes += sum->live_bytes;
        rest.count += sum->count;
        ++*names;
    }
    return rest;
}
