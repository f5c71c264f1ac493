/*
 * box.h - what a copy moves: rows of bytes that lie at one place and go to another. Integers in,
 * integers out.
 *
 * Row i of slice k begins at offset + i * row + k * slice, at either end. Rows and slices follow
 * each other upwards and never overlap: row >= size, and slice >= the bytes from the first to the
 * last of a slice.
 */
#ifndef QUIRE_SRC_CORE_COPY_COPY_REGION_H
#define QUIRE_SRC_CORE_COPY_COPY_REGION_H

#include "quire/base.h"

/* Where the rows lie at one end. */
typedef struct qi_copy_region_side {
    uint64_t offset;
    uint64_t row, slice; /* bytes from one to the next */
} qi_copy_region_side;

typedef struct qi_copy_region {
    uint64_t size, rows, slices; /* bytes of a row; each above 0 */
    qi_copy_region_side to, from;
} qi_copy_region;

/* All bytes; they are known to be countable. */
static inline uint64_t qi_copy_region_bytes(const qi_copy_region *region)
{
    return region->size * region->rows * region->slices;
}

/* Where a row begins. */
static inline uint64_t qi_copy_region_at(const qi_copy_region_side *side, uint64_t row,
                                         uint64_t slice)
{
    return side->offset + row * side->row + slice * side->slice;
}

/* Bytes from the first to the last at one end, gaps included. */
QUIRE_MUST_USE bool qi_copy_region_extent_overflows(const qi_copy_region *region,
                                                    const qi_copy_region_side *side,
                                                    uint64_t *extent);

/* The same of a box whose extents are known to be countable. */
uint64_t qi_copy_region_extent(const qi_copy_region *region, const qi_copy_region_side *side);

/* Whether the bytes lie one after the other, without a gap. */
bool qi_copy_region_is_tight(const qi_copy_region *region, const qi_copy_region_side *side);

/* The same bytes in fewer rows: those that follow each other without a gap at both ends are one. */
void qi_copy_region_merge(qi_copy_region *region);

/*
 * The part behind the first `done` bytes, which are fewer than all: as many whole slices, or whole
 * rows of one, or bytes of one row, as `room` bytes hold. Room is above 0.
 */
qi_copy_region qi_copy_region_part(const qi_copy_region *region, uint64_t done, uint64_t room);

/* Whether a byte lies in a row of both ends, whose offsets count from one place. */
bool qi_copy_region_overlaps(const qi_copy_region *region);

#endif
