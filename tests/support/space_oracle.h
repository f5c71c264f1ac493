/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_oracle.h - the naive oracle of space_model.c: one owner per unit of every region, from
 * which alone it computes how a fit must answer a request.
 */
#ifndef QUIRE_TESTS_SUPPORT_SPACE_ORACLE_H
#define QUIRE_TESTS_SUPPORT_SPACE_ORACLE_H

#include "quire/space.h"
#include "src/space/segregated/classes.h"
#include "src/space/space.h"
#include "tests/support/check.h"

enum { MAX_REGIONS = 12, MAX_LIVE = 400 };

typedef struct model_region {
    bool used;
    uint64_t base;
    uint32_t units;
    uint32_t origin; /* units from the last multiple of the largest alignment to the base */
    uint16_t *owner; /* index of the live range + 1, or 0 */
} model_region;

typedef struct model_range {
    quire_placement at;
    uint64_t first, end; /* units, left padding included */
    bool optimal;
} model_range;

typedef struct world {
    quire_space *space;
    quire_fit fit;
    uint64_t unit, max_alignment;
    uint64_t granularity;              /* above the unit, or 0 if kinds may share */
    uint32_t max_size, max_align_log2; /* of requests: units, and log2 of bytes */
    model_region regions[MAX_REGIONS];
    model_range live[MAX_LIVE];
    int live_count;
    uint64_t live_units;
} world;

typedef struct model_request {
    uint64_t size, alignment; /* bytes */
    bool optimal;
} model_request;

/* ---- the oracle --------------------------------------------------------------------------- */

/* The first unit of a run of free units at or after `from`; its length in *length, 0 at the end. */
static inline uint32_t next_hole(const model_region *r, uint32_t from, uint32_t *length)
{
    while (from < r->units && r->owner[from])
        from++;
    uint32_t end = from;
    while (end < r->units && !r->owner[end])
        end++;
    *length = end - from;
    return from;
}

/* Bytes to skip in a hole at `unit` for an alignment. */
static inline uint64_t padding_at(const world *w, const model_region *r, uint64_t unit,
                                  uint64_t alignment)
{
    return (UINT64_C(0) - (r->base + unit * w->unit)) & (alignment - 1);
}

/* Returns whether a resource of this kind lies on a unit; left padding has no kind. */
static inline bool is_of_kind(const world *w, const model_region *r, uint64_t unit, bool optimal)
{
    uint16_t owner = r->owner[unit];
    if (!owner)
        return false;
    const model_range *range = &w->live[owner - 1];
    return range->optimal == optimal && unit * w->unit >= range->at.offset;
}

/* Returns whether one lies on the existing ones of the units [first, end) of a region. */
static inline bool has_kind(const world *w, const model_region *r, uint64_t first, uint64_t end,
                            bool optimal)
{
    for (uint64_t i = first; i < end && i < r->units; i++)
        if (is_of_kind(w, r, i, optimal))
            return true;
    return false;
}

/* Units from the start of a unit's stretch to the unit; fewer if the region begins in the stretch.
   */
static inline uint64_t into_stretch(const world *w, const model_region *r, uint64_t unit)
{
    uint64_t into = (r->base + unit * w->unit) % w->granularity / w->unit;
    return into < unit ? into : unit;
}

/* Units from a unit to the next start of a stretch. */
static inline uint64_t to_stretch(const world *w, const model_region *r, uint64_t unit)
{
    return (UINT64_C(0) - (r->base + unit * w->unit)) % w->granularity / w->unit;
}

/* Returns whether no range of the other kind shares a stretch with the units [first, end). */
static inline bool is_apart(const world *w, const model_region *r, uint64_t first, uint64_t end,
                            bool optimal)
{
    return !w->granularity || !has_kind(w, r, first - into_stretch(w, r, first),
                                        end + to_stretch(w, r, end), !optimal);
}

/* The units of a hole that ranges of this kind may lie on. */
static inline void usable(const world *w, const model_region *r, bool optimal, uint64_t *first,
                          uint64_t *end)
{
    if (!w->granularity || w->fit != QUIRE_FIT_SEGREGATED)
        return; /* the other fits let optimal ranges take whole stretches */
    uint64_t below = into_stretch(w, r, *first), above = to_stretch(w, r, *end);
    if (has_kind(w, r, *first - below, *first, !optimal))
        *first += to_stretch(w, r, *first);
    if (has_kind(w, r, *end, *end + above, !optimal)) {
        uint64_t into = (r->base + *end * w->unit) % w->granularity / w->unit;
        *end = into < *end ? *end - into : 0;
    }
}

/* Returns whether any hole of a region holds the request, and the first place. */
static inline bool fits_in(const world *w, const model_region *r, const model_request *request,
                           uint64_t *offset)
{
    uint32_t length = 0;
    for (uint32_t at = next_hole(r, 0, &length); length; at = next_hole(r, at + length, &length)) {
        uint64_t first = at, end = at + length;
        usable(w, r, request->optimal, &first, &end);
        uint64_t padding = padding_at(w, r, first, request->alignment);
        if (first * w->unit + padding + request->size <= end * w->unit) {
            *offset = first * w->unit + padding;
            return true;
        }
    }
    return false;
}

/* The regions in the order of the line. */
static inline int line_order(const world *w, int *order)
{
    int count = 0;
    for (int i = 0; i < MAX_REGIONS; i++) {
        if (!w->regions[i].used)
            continue;
        int at = count++;
        for (; at > 0 && w->space->regions[order[at - 1]].start > w->space->regions[i].start; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return count;
}

/* The maximum size of a region in units: up to the next region on the line. */
static inline uint64_t max_units(const world *w, uint32_t number)
{
    const qi_region *regions = w->space->regions;
    uint64_t start = regions[number].start, next = w->space->line.limit;
    for (int i = 0; i < MAX_REGIONS; i++)
        if (w->regions[i].used && regions[i].start > start && regions[i].start < next)
            next = regions[i].start;
    return (next - start) / w->unit;
}

/* The unit after the last owned one. */
static inline uint32_t end_of_live(const model_region *r)
{
    uint32_t end = r->units;
    while (end && !r->owner[end - 1])
        end--;
    return end;
}

static inline bool fits_anywhere(const world *w, const model_request *request, int *region,
                                 uint64_t *offset)
{
    int order[MAX_REGIONS], count = line_order(w, order);
    for (int i = 0; i < count; i++) {
        *region = order[i];
        if (fits_in(w, &w->regions[order[i]], request, offset))
            return true;
    }
    return false;
}

/* Returns whether the segregated fit must find a place. */
static inline bool is_promised(const world *w, const model_request *request)
{
    uint64_t step = request->alignment > w->granularity ? request->alignment : w->granularity;
    uint64_t extra = step > w->unit ? step / w->unit - 1 : 0;
    extra += w->granularity ? w->granularity / w->unit - 1 : 0; /* at the upper end */
    uint64_t sure = (request->size + w->unit - 1) / w->unit + extra;
    uint32_t class = qi_class_of_range((uint32_t)sure).index;
    for (int i = 0; i < MAX_REGIONS; i++) {
        const model_region *r = &w->regions[i];
        uint32_t length = 0;
        for (uint32_t at = r->used ? next_hole(r, 0, &length) : 0; length;
             at = next_hole(r, at + length, &length))
            if (qi_class_of_range(length).index > class)
                return true;
    }
    return false;
}

/* ---- the oracle of the buddy fit ---------------------------------------------------------- */

typedef struct model_block {
    int region;
    uint32_t unit, units; /* the second is a power of two; 0 means no block */
} model_block;

/*
 * The free block at or after a unit: holes are cut into the largest powers of two that lie at
 * multiples of their size, counted from the origin. Blocks merge whenever they can, so these are
 * the free blocks.
 */
static inline model_block next_block(const model_region *r, uint32_t from)
{
    uint32_t length = 0, unit = next_hole(r, from, &length), units = length > 0;
    while (units && units * 2 <= length && (unit + r->origin) % (units * 2) == 0)
        units *= 2;
    return (model_block){.unit = unit, .units = units};
}

/* The block to take for this many units, among those at a multiple of `step` units. */
static inline model_block smallest_block(const world *w, uint32_t units, uint32_t step)
{
    model_block best = {0};
    for (int i = 0; i < MAX_REGIONS; i++) {
        const model_region *r = &w->regions[i];
        model_block block = {0};
        for (uint32_t from = 0; r->used && (block = next_block(r, from)).units;
             from = block.unit + block.units)
            if (block.units >= units && (block.unit + r->origin) % step == 0 &&
                (!best.units || block.units < best.units))
                best = (model_block){.region = i, .unit = block.unit, .units = block.units};
    }
    return best;
}

static inline uint64_t power_at_least(uint64_t value)
{
    uint64_t power = 1;
    while (power < value)
        power *= 2;
    return power;
}

/* Where the buddy fit must place a request; no block if the request must fail. */
static inline model_block buddy_place(const world *w, const model_request *request, bool bounded)
{
    uint32_t units = (uint32_t)power_at_least((request->size + w->unit - 1) / w->unit);
    uint32_t step = request->alignment > w->unit ? (uint32_t)(request->alignment / w->unit) : 1;
    model_block block = smallest_block(w, units > step ? units : step, 1);
    return block.units || bounded ? block : smallest_block(w, units, step);
}

static inline void own(world *w, const model_range *range, uint16_t owner)
{
    model_region *r = &w->regions[range->at.region];
    for (uint64_t i = range->first; i < range->end; i++) {
        CHECK(!r->owner[i] != !owner); /* free before it is taken, taken before it is freed */
        r->owner[i] = owner;
    }
}

#endif
