/*
 * copy_region.c - merges, divides and compares copy regions (see copy_region.h).
 *
 * Overflow is checked once, when the extents are computed (qi_copy_region_extent_overflows). All
 * other functions rely on that.
 */
#include "src/core/copy/copy_region.h"

#include "src/base/bits.h"

bool qi_copy_region_extent_overflows(const qi_copy_region *region, const qi_copy_region_side *side,
                                     uint64_t *extent)
{
    uint64_t rows = 0, slices = 0;
    return qi_multiply_overflows(region->rows - 1, side->row, &rows) ||
           qi_multiply_overflows(region->slices - 1, side->slice, &slices) ||
           qi_add_overflows(rows, slices, extent) ||
           qi_add_overflows(*extent, region->size, extent);
}

uint64_t qi_copy_region_extent(const qi_copy_region *region, const qi_copy_region_side *side)
{
    return (region->slices - 1) * side->slice + (region->rows - 1) * side->row + region->size;
}

/* Whether the rows of each slice follow each other without a gap. */
static bool are_rows_tight(const qi_copy_region *region, const qi_copy_region_side *side)
{
    return region->rows == 1 || side->row == region->size;
}

/* Whether the slices follow each other without a gap, given that their rows do. */
static bool are_slices_tight(const qi_copy_region *region, const qi_copy_region_side *side)
{
    return region->slices == 1 || side->slice == region->size * region->rows;
}

bool qi_copy_region_is_tight(const qi_copy_region *region, const qi_copy_region_side *side)
{
    return are_rows_tight(region, side) && are_slices_tight(region, side);
}

/*
 * Turns slices into rows of one slice where all rows have the same distance: slices of one row
 * each, or slices that follow each other at the distance of the rows.
 */
static void flatten(qi_copy_region *region)
{
    bool is_even = region->rows == 1 || (region->to.slice == region->rows * region->to.row &&
                                         region->from.slice == region->rows * region->from.row);
    if (region->slices == 1 || !is_even)
        return;
    if (region->rows == 1) {
        region->to.row = region->to.slice;
        region->from.row = region->from.slice;
    }
    region->rows *= region->slices;
    region->slices = 1;
}

void qi_copy_region_merge(qi_copy_region *region)
{
    if (are_rows_tight(region, &region->to) && are_rows_tight(region, &region->from)) {
        region->size *= region->rows;
        region->rows = 1;
    }
    flatten(region);
    if (are_rows_tight(region, &region->to) && are_rows_tight(region, &region->from)) {
        region->size *= region->rows; /* the slices became rows */
        region->rows = 1;
    }
}

qi_copy_region qi_copy_region_part(const qi_copy_region *region, uint64_t done, uint64_t room)
{
    uint64_t slice_bytes = region->size * region->rows;
    uint64_t slice = done / slice_bytes, in_slice = done % slice_bytes;
    uint64_t row = in_slice / region->size, byte = in_slice % region->size;
    qi_copy_region part = *region;
    part.to.offset = qi_copy_region_at(&region->to, row, slice) + byte;
    part.from.offset = qi_copy_region_at(&region->from, row, slice) + byte;
    if (!in_slice && room >= slice_bytes) {
        uint64_t slices = room / slice_bytes, left = region->slices - slice;
        part.slices = slices < left ? slices : left;
        return part;
    }
    part.slices = 1;
    if (!byte && room >= region->size) {
        uint64_t rows = room / region->size, left = region->rows - row;
        part.rows = rows < left ? rows : left;
        return part;
    }
    uint64_t left = region->size - byte;
    part.rows = 1;
    part.size = room < left ? room : left;
    return part;
}

/*
 * Whether a row of this end has a byte in [begin, begin + size). Rows ascend and do not overlap, so
 * only the last row that begins before the end of the range can.
 */
static bool reaches(const qi_copy_region *region, const qi_copy_region_side *side, uint64_t begin)
{
    uint64_t last = begin + region->size - 1;
    if (last < side->offset)
        return false;
    uint64_t distance = last - side->offset, slice = 0, row = 0;
    if (region->slices > 1)
        slice =
            distance / side->slice < region->slices ? distance / side->slice : region->slices - 1;
    distance -= slice * side->slice;
    if (region->rows > 1)
        row = distance / side->row < region->rows ? distance / side->row : region->rows - 1;
    return qi_copy_region_at(side, row, slice) + region->size > begin;
}

bool qi_copy_region_overlaps(const qi_copy_region *region)
{
    uint64_t to_end = region->to.offset + qi_copy_region_extent(region, &region->to);
    uint64_t from_end = region->from.offset + qi_copy_region_extent(region, &region->from);
    if (region->to.offset >= from_end || region->from.offset >= to_end)
        return false;
    for (uint64_t slice = 0; slice < region->slices; slice++)
        for (uint64_t row = 0; row < region->rows; row++)
            if (reaches(region, &region->from, qi_copy_region_at(&region->to, row, slice)))
                return true;
    return false;
}
