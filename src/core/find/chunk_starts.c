/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * chunk_starts.c - an allocation may begin several chunks before an address that it contains, so
 * that a search goes on in the last chunk before that has starts.
 */
#include "src/core/find/chunk_starts.h"

#include "src/base/bitmap.h"

static uint32_t granules_of(const qi_chunk_starts *starts)
{
    return UINT32_C(1) << starts->shift;
}

static void release_bitmap(const qi_chunk_starts *starts, qi_host *host, uint64_t *bitmap)
{
    qi_host_release(host, bitmap, qi_bitmap_words(granules_of(starts)), sizeof *bitmap);
}

static void release_used(const qi_chunk_starts *starts, qi_host *host)
{
    if (starts->used)
        qi_host_release(host, starts->used, qi_bitmap_words(starts->room), sizeof *starts->used);
}

void qi_chunk_starts_release(qi_chunk_starts *starts, qi_host *host)
{
    for (uint32_t i = 0; i < starts->room; i++)
        if (starts->bitmaps[i])
            release_bitmap(starts, host, starts->bitmaps[i]);
    qi_host_release(host, starts->bitmaps, starts->room, sizeof *starts->bitmaps);
    release_used(starts, host);
    starts->room = 0;
}

/* Makes room for chunks below `end`. */
static bool make_room(qi_chunk_starts *starts, qi_host *host, uint64_t end)
{
    if (end <= starts->room)
        return true;
    qi_chunk_starts larger = *starts;
    larger.room = 2 * starts->room > end ? 2 * starts->room : (uint32_t)end;
    larger.used = qi_host_allocate(host, qi_bitmap_words(larger.room), sizeof *larger.used);
    if (!larger.used)
        return false;
    larger.bitmaps =
        qi_host_resize(host, starts->bitmaps, starts->room, larger.room, sizeof *larger.bitmaps);
    if (!larger.bitmaps) {
        release_used(&larger, host);
        return false;
    }
    for (uint32_t i = 0; i < starts->room; i++)
        if (qi_bitmap_has(starts->used, i))
            qi_bitmap_add(larger.used, larger.room, i);
    release_used(starts, host);
    *starts = larger;
    return true;
}

bool qi_chunk_starts_cover(qi_chunk_starts *starts, qi_host *host, uint64_t first, uint64_t count)
{
    if (!make_room(starts, host, first + count))
        return false;
    for (uint64_t i = first; i < first + count; i++) {
        if (starts->bitmaps[i])
            continue;
        starts->bitmaps[i] =
            qi_host_allocate(host, qi_bitmap_words(granules_of(starts)), sizeof(uint64_t));
        if (!starts->bitmaps[i])
            return false;
    }
    return true;
}

void qi_chunk_starts_uncover(qi_chunk_starts *starts, qi_host *host, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count && i < starts->room; i++) {
        if (!starts->bitmaps[i] || qi_bitmap_has(starts->used, (uint32_t)i))
            continue;
        release_bitmap(starts, host, starts->bitmaps[i]);
        starts->bitmaps[i] = NULL;
    }
}

void qi_chunk_starts_add(qi_chunk_starts *starts, uint64_t granule)
{
    const uint32_t chunk = (uint32_t)(granule >> starts->shift);
    const uint32_t number = (uint32_t)granule & (granules_of(starts) - 1);
    if (qi_bitmap_has(starts->bitmaps[chunk], number))
        return;
    qi_bitmap_add(starts->bitmaps[chunk], granules_of(starts), number);
    if (!qi_bitmap_has(starts->used, chunk))
        qi_bitmap_add(starts->used, starts->room, chunk);
}

void qi_chunk_starts_remove(qi_chunk_starts *starts, uint64_t granule)
{
    const uint32_t chunk = (uint32_t)(granule >> starts->shift);
    const uint32_t number = (uint32_t)granule & (granules_of(starts) - 1);
    if (chunk < starts->room && starts->bitmaps[chunk] &&
        qi_bitmap_has(starts->bitmaps[chunk], number) &&
        qi_bitmap_remove(starts->bitmaps[chunk], granules_of(starts), number))
        qi_bitmap_remove(starts->used, starts->room, chunk);
}

bool qi_chunk_starts_before(const qi_chunk_starts *starts, uint64_t granule, uint64_t *found)
{
    const uint32_t granules = granules_of(starts);
    uint64_t chunk = granule >> starts->shift;
    uint32_t number = (uint32_t)granule & (granules - 1);
    uint32_t start = granules; /* none */
    if (!starts->room)
        return false;
    if (chunk >= starts->room) {
        chunk = starts->room - 1;
        number = granules - 1;
    }
    if (qi_bitmap_has(starts->used, (uint32_t)chunk))
        start = qi_bitmap_previous(starts->bitmaps[chunk], granules, number);
    if (start == granules && chunk) {
        chunk = qi_bitmap_previous(starts->used, starts->room, (uint32_t)chunk - 1);
        if (chunk < starts->room)
            start = qi_bitmap_previous(starts->bitmaps[chunk], granules, granules - 1);
    }
    *found = (chunk << starts->shift) + start;
    return start < granules;
}
