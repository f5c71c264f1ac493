/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * region.c - adds, removes and resizes the regions of a space: their numbers, their places on the
 * line, and the calls to the fit. Sizes and addresses are checked here because a memory passes on
 * what a backend reported.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/space/space.h"

/* Removing a region trims the pool if fewer than one node number in TRIM_FRACTION is in use. */
enum { FIRST_REGIONS = 4, TRIM_FRACTION = 8 };

/* Returns the lowest unused region number and makes room for its record. */
static quire_result next_region(quire_space *space, uint32_t *number)
{
    uint32_t i = space->region_hint;
    if (space->region_count == space->region_capacity) {
        uint32_t old = space->region_capacity, capacity = old ? old * 2 : FIRST_REGIONS;
        qi_region *regions =
            qi_host_resize(&space->host, space->regions, old, capacity, sizeof *regions);
        if (!regions)
            return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                "no host memory for the records of %u region%s", capacity);
        space->regions = regions;
        space->region_capacity = capacity;
        i = old;
    }
    while (space->regions[i].used)
        i++;
    *number = space->region_hint = i;
    return QUIRE_SUCCESS;
}

/* Size and base of a new region, and the number of regions that the fit allows. */
static quire_result validate_new(const quire_space *space, uint64_t size, uint64_t base)
{
    if (!size || size & (space->granule - 1) || base & (space->granule - 1))
        return qi_fail_with(
            QUIRE_ERROR_INVALID_ARGUMENT,
            "a region of %u byte%s at %x: both must be multiples of fit.granule, %u here, "
            "and the size above 0",
            size, base, space->granule);
    if (!qi_range_fits(base, size - 1, UINT64_MAX))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region of %u byte%s at %x reaches beyond the last address", size,
                            base);
    if (space->fit->max_regions && space->region_count >= space->fit->max_regions)
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                            "the space has %u region, as many as its fit takes: remove it before "
                            "adding another",
                            space->region_count);
    return QUIRE_SUCCESS;
}

/* Takes a number, a place on the line, then the fit; undoes the place if the fit fails. */
quire_result qi_space_add_region(quire_space *space, uint64_t size, uint64_t base, uint32_t *region)
{
    *region = 0;
    quire_result result = validate_new(space, size, base);
    if (result)
        return result;
    uint32_t number = 0;
    uint64_t start = 0;
    result = next_region(space, &number);
    if (!result)
        result =
            qi_line_place(&space->line, &space->host, size, base, space->max_alignment, &start);
    if (result)
        return result;
    space->regions[number] = (qi_region){.start = start, .size = size, .base = base, .used = true};
    result = space->fit->add_region(space, number);
    if (result) {
        qi_line_remove(&space->line, start);
        space->regions[number].used = false;
        return result;
    }
    qi_space_forget_refusals(space);
    space->region_count++;
    space->region_bytes += size;
    *region = number;
    return QUIRE_SUCCESS;
}

quire_result qi_space_remove_region(quire_space *space, uint32_t region)
{
    qi_space_flush_deferred(space);
    if (space->fit->release_cached)
        space->fit->release_cached(space);
    if (!space->fit->region_is_empty(space, region))
        return qi_fail_with(QUIRE_ERROR_BUSY, "region %u still has live ranges", region);
    space->fit->remove_region(space, region);
    qi_line_remove(&space->line, space->regions[region].start);
    space->regions[region].used = false;
    if (region < space->region_hint)
        space->region_hint = region;
    space->region_count--;
    space->region_bytes -= space->regions[region].size;
    if (qi_pool_used(&space->pool) < space->pool.capacity / TRIM_FRACTION)
        space->fit->trim(space);
    return QUIRE_SUCCESS;
}

/* ---- resizing ----------------------------------------------------------------------------- */

uint64_t qi_space_free_at_end(const quire_space *space, uint32_t region)
{
    if (!space->fit->free_at_end)
        return 0;
    qi_space_flush_deferred(space);
    return space->fit->free_at_end(space, region);
}

/* Resizes the place on the line, then the fit. Restores the place if the fit fails. */
static quire_result grow_region(quire_space *space, uint32_t number, uint64_t size)
{
    qi_region *region = &space->regions[number];
    qi_space_flush_deferred(space); /* a deferred free at the end coalesces with the added bytes */
    quire_result result = qi_line_resize(&space->line, region->start, size);
    if (result)
        return result;
    result = space->fit->resize_region(space, number, size);
    if (result) {
        qi_ignore(qi_line_resize(&space->line, region->start, region->size));
        return result;
    }
    qi_space_forget_refusals(space);
    space->region_bytes += size - region->size;
    region->size = size;
    return QUIRE_SUCCESS;
}

/* A visit: records the end of the last live range of a region. */
static bool note_live_end(void *user, const quire_space_item *item)
{
    uint64_t *end = user;
    if (!item->is_free)
        *end = item->offset + item->size;
    return true;
}

/* If the last live range is a slot, the slab that holds it may reach further than the slot. */
static quire_result refuse_to_shrink(const quire_space *space, uint32_t number, uint64_t size)
{
    uint64_t live_end = 0;
    qi_space_walk_region(space, number, note_live_end, &live_end);
    if (live_end > size)
        return qi_fail_with(QUIRE_ERROR_BUSY,
                            "region %u cannot shrink to %u byte%s: live ranges reach beyond, the "
                            "last one to %u",
                            number, size, live_end);
    return qi_fail_with(QUIRE_ERROR_BUSY,
                        "region %u cannot shrink to %u byte%s: no live range reaches beyond, but "
                        "the slab of one does, to %u",
                        number, size,
                        space->regions[number].size - qi_space_free_at_end(space, number));
}

/* Releases cached slabs only if they are in the way. Cannot fail after the size was verified. */
static quire_result shrink_region(quire_space *space, uint32_t number, uint64_t size)
{
    qi_region *region = &space->regions[number];
    uint64_t removed = region->size - size;
    if (qi_space_free_at_end(space, number) < removed && space->fit->release_cached)
        space->fit->release_cached(space);
    if (qi_space_free_at_end(space, number) < removed)
        return refuse_to_shrink(space, number, size);
    qi_ignore(space->fit->resize_region(space, number, size));
    qi_ignore(qi_line_resize(&space->line, region->start, size));
    space->region_bytes -= removed;
    region->size = size;
    return QUIRE_SUCCESS;
}

quire_result qi_space_resize_region(quire_space *space, uint32_t region, uint64_t size)
{
    const qi_region *resized = &space->regions[region];
    if (!size || size & (space->granule - 1))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region of %u byte%s: that must be a multiple of the granule %u, "
                            "above 0",
                            size, space->granule);
    if (!qi_range_fits(resized->base, size - 1, UINT64_MAX))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region of %u byte%s at %x reaches beyond the last address", size,
                            resized->base);
    if (!space->fit->resize_region)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "quire_space_resize_region: regions of this fit cannot be resized");
    if (size == resized->size)
        return QUIRE_SUCCESS;
    return size > resized->size ? grow_region(space, region, size)
                                : shrink_region(space, region, size);
}

/* ---- holes -------------------------------------------------------------------------------- */

/* The region has no window yet: its first one begins at its start. */
static quire_result back_start(quire_space *space, uint64_t backed)
{
    qi_window window;
    if (!backed || !qi_space_find_window(space, backed, 1, &window))
        return QUIRE_SUCCESS;
    quire_result result = qi_space_reserve_window(space, &window);
    if (!result)
        qi_space_open_window(space, &window);
    return result;
}

/* The region is made like any other, and then hollowed. */
quire_result qi_space_add_hole(quire_space *space, uint64_t size, uint64_t backed, uint64_t base,
                               uint64_t chunk, uint32_t *region)
{
    quire_result result = qi_space_add_region(space, size, base, region);
    if (result)
        return result;
    result = space->fit->backing->hollow(space, *region, chunk);
    if (!result)
        result = back_start(space, backed);
    if (result)
        qi_ignore(qi_space_remove_region(space, *region)); /* empty: this cannot fail */
    return result;
}

bool qi_space_find_window(const quire_space *space, uint64_t size, uint64_t alignment,
                          qi_window *window)
{
    qi_space_flush_deferred(space);
    return space->fit->backing->find_window(space, size, alignment, window);
}

bool qi_space_find_hole(const quire_space *space, uint64_t size, qi_window *window)
{
    return space->fit->backing->find_hole(space, size, window);
}

quire_result qi_space_reserve_window(quire_space *space, qi_window *window)
{
    qi_space_flush_deferred(space);
    return space->fit->backing->reserve_window(space, window);
}

bool qi_space_next_piece(const quire_space *space, const qi_window *window, qi_piece piece,
                         qi_chunk_run *run)
{
    return space->fit->backing->next_piece(space, window, piece, run);
}

bool qi_space_find_room(const quire_space *space, uint64_t size, uint64_t alignment,
                        qi_window *window)
{
    return space->fit->backing->find_room(space, size, alignment, window);
}

void qi_space_keep_window(quire_space *space, const qi_window *window, uint32_t user)
{
    space->fit->backing->keep_window(space, window, user);
}

quire_result qi_space_part_of_window(quire_space *space, const qi_window *window, uint64_t offset,
                                     uint64_t size, qi_window *part)
{
    return space->fit->backing->part_of_window(space, window, offset, size, part);
}

void qi_space_mark_pieces(quire_space *space, const qi_window *part, qi_piece from, qi_piece to)
{
    space->fit->backing->mark_pieces(space, part, from, to);
}

void qi_space_mark_waiting(quire_space *space, const qi_window *part, uint32_t number)
{
    space->fit->backing->mark_waiting(space, part, number);
}

void qi_space_end_waiting(quire_space *space, const qi_window *window, uint32_t number)
{
    space->fit->backing->end_waiting(space, window, number);
}

void qi_space_open_window(quire_space *space, const qi_window *window)
{
    qi_space_flush_deferred(space);
    space->fit->backing->open_window(space, window);
    qi_space_forget_refusals(space);
}

void qi_space_close_window(quire_space *space, const qi_window *window)
{
    qi_space_flush_deferred(space);
    space->fit->backing->close_window(space, window);
    qi_space_forget_refusals(space);
}

quire_result qi_space_take_chunks(quire_space *space, uint64_t max, bool all, qi_chunk_run *taken)
{
    qi_space_flush_deferred(space);
    if (all && space->fit->release_cached)
        space->fit->release_cached(space);
    return space->fit->backing->take_chunks(space, max, all, taken);
}

/* ---- chunks that sleep ------------------------------------------------------------------- */

quire_result qi_space_set_aside(quire_space *space)
{
    return space->fit->backing->asleep->set_aside(space);
}

void qi_space_take_aside(quire_space *space)
{
    space->fit->backing->asleep->take_aside(space);
}

quire_result qi_space_sleep_chunk(quire_space *space, quire_range range, uint64_t offset,
                                  bool (*test)(const void *user, uint64_t value), const void *user,
                                  bool *falls_asleep)
{
    qi_space_flush_deferred(space);
    return space->fit->backing->asleep->sleep_chunk(space, range, offset, test, user, falls_asleep);
}

bool qi_space_chunk_sleeps(const quire_space *space, quire_range range, uint64_t offset)
{
    return space->fit->backing->asleep->chunk_sleeps(space, range, offset);
}

void qi_space_wake_chunk(quire_space *space, quire_range range, uint64_t offset)
{
    qi_space_flush_deferred(space);
    space->fit->backing->asleep->wake_chunk(space, range, offset);
    qi_space_forget_refusals(space);
}

void qi_space_free_asleep(quire_space *space, quire_range range)
{
    qi_space_flush_deferred(space);
    space->fit->backing->asleep->free_asleep(space, range);
    qi_space_forget_refusals(space);
}

/* ---- the line ----------------------------------------------------------------------------- */

uint64_t qi_space_line_left(const quire_space *space)
{
    uint64_t left = space->line.limit - qi_line_extent(&space->line);
    uint64_t step = space->max_alignment; /* places on the line are multiples of a granule */
    uint64_t padding = step > space->granule ? step - space->granule : 0;
    return left > padding ? left - padding : 0;
}

uint64_t qi_space_line_max(const quire_space *space)
{
    uint64_t after_last = space->line.limit - qi_line_extent(&space->line);
    return space->line.max_gap > after_last ? space->line.max_gap : after_last;
}
