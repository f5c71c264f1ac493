/*
 * copy_region.h - the shape of a copy: rows of bytes at two ends. Pure arithmetic on integers,
 * without state or locks.
 *
 * Row i of slice k begins at offset + i * row + k * slice, at either end. Invariant: rows and
 * slices have ascending addresses and do not overlap, that is, row >= size, and slice >= the bytes
 * from the first byte to the last byte of a slice.
 */
#ifndef QUIRE_SRC_CORE_COPY_COPY_REGION_H
#define QUIRE_SRC_CORE_COPY_COPY_REGION_H

#include "quire/base.h"

/* Positions of the rows at one end; bytes. */
typedef struct qi_copy_region_side {
    uint64_t offset;
    uint64_t row, slice; /* distance from one to the next */
} qi_copy_region_side;

typedef struct qi_copy_region {
    uint64_t size, rows, slices; /* bytes of a row, rows of a slice, slices; each above 0 */
    qi_copy_region_side to, from;
} qi_copy_region;

/* Bytes of all rows. Requires that the extents were checked, so that nothing overflows. */
static inline uint64_t qi_copy_region_bytes(const qi_copy_region *region)
{
    return region->size * region->rows * region->slices;
}

/* The offset of a row at one end. */
static inline uint64_t qi_copy_region_at(const qi_copy_region_side *side, uint64_t row,
                                         uint64_t slice)
{
    return side->offset + row * side->row + slice * side->slice;
}

/* Computes the bytes from the first to the last at one end, gaps included. Returns true where they
   exceed 64 bits. */
QUIRE_MUST_USE bool qi_copy_region_extent_overflows(const qi_copy_region *region,
                                                    const qi_copy_region_side *side,
                                                    uint64_t *extent);

/* Returns the extent at one end, for a region whose extents were checked. */
uint64_t qi_copy_region_extent(const qi_copy_region *region, const qi_copy_region_side *side);

/* Whether there are no gaps between the rows at one end. */
bool qi_copy_region_is_tight(const qi_copy_region *region, const qi_copy_region_side *side);

/* Joins rows that have no gap between them at both ends, so that fewer and longer rows remain. */
void qi_copy_region_merge(qi_copy_region *region);

/*
 * Returns the next part to copy after the first `done` bytes, which are fewer than all: as many
 * whole slices, or whole rows of one slice, or bytes of one row, as `room` bytes hold. `room` is
 * above 0.
 */
qi_copy_region qi_copy_region_part(const qi_copy_region *region, uint64_t done, uint64_t room);

/* Whether a row of one end shares a byte with a row of the other. The offsets of both ends must
   count from the same address. */
bool qi_copy_region_overlaps(const qi_copy_region *region);

#endif
