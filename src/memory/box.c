/*
 * box.c - see box.h.
 */
#include "src/memory/box.h"

#include "src/base/bits.h"

bool qi_box_extent_overflows(const qi_box *box, const qi_box_side *side, uint64_t *extent)
{
    uint64_t rows = 0, slices = 0;
    return qi_multiply_overflows(box->rows - 1, side->row, &rows) ||
           qi_multiply_overflows(box->slices - 1, side->slice, &slices) ||
           qi_add_overflows(rows, slices, extent) || qi_add_overflows(*extent, box->size, extent);
}

uint64_t qi_box_extent(const qi_box *box, const qi_box_side *side)
{
    return (box->slices - 1) * side->slice + (box->rows - 1) * side->row + box->size;
}

/* The rows of each slice follow each other; so do the slices. */
static bool are_rows_tight(const qi_box *box, const qi_box_side *side)
{
    return box->rows == 1 || side->row == box->size;
}

static bool are_slices_tight(const qi_box *box, const qi_box_side *side)
{
    return box->slices == 1 || side->slice == box->size * box->rows;
}

bool qi_box_is_tight(const qi_box *box, const qi_box_side *side)
{
    return are_rows_tight(box, side) && are_slices_tight(box, side);
}

/* Slices of one row are rows; rows at one distance throughout are of one slice. */
static void flatten(qi_box *box)
{
    bool is_even = box->rows == 1 || (box->to.slice == box->rows * box->to.row &&
                                      box->from.slice == box->rows * box->from.row);
    if (box->slices == 1 || !is_even)
        return;
    if (box->rows == 1) {
        box->to.row = box->to.slice;
        box->from.row = box->from.slice;
    }
    box->rows *= box->slices;
    box->slices = 1;
}

void qi_box_merge(qi_box *box)
{
    if (are_rows_tight(box, &box->to) && are_rows_tight(box, &box->from)) {
        box->size *= box->rows;
        box->rows = 1;
    }
    flatten(box);
    if (are_rows_tight(box, &box->to) && are_rows_tight(box, &box->from)) {
        box->size *= box->rows; /* what were slices */
        box->rows = 1;
    }
}

qi_box qi_box_part(const qi_box *box, uint64_t done, uint64_t room)
{
    uint64_t slice_bytes = box->size * box->rows;
    uint64_t slice = done / slice_bytes, in_slice = done % slice_bytes;
    uint64_t row = in_slice / box->size, byte = in_slice % box->size;
    qi_box part = *box;
    part.to.offset = qi_box_at(&box->to, row, slice) + byte;
    part.from.offset = qi_box_at(&box->from, row, slice) + byte;
    if (!in_slice && room >= slice_bytes) {
        uint64_t slices = room / slice_bytes, left = box->slices - slice;
        part.slices = slices < left ? slices : left;
        return part;
    }
    part.slices = 1;
    if (!byte && room >= box->size) {
        uint64_t rows = room / box->size, left = box->rows - row;
        part.rows = rows < left ? rows : left;
        return part;
    }
    uint64_t left = box->size - byte;
    part.rows = 1;
    part.size = room < left ? room : left;
    return part;
}

/*
 * Whether a row of the side has a byte in [begin, begin + size). Rows do not overlap, so that only
 * the last one that begins below the end can.
 */
static bool reaches(const qi_box *box, const qi_box_side *side, uint64_t begin)
{
    uint64_t last = begin + box->size - 1;
    if (last < side->offset)
        return false;
    uint64_t distance = last - side->offset, slice = 0, row = 0;
    if (box->slices > 1)
        slice = distance / side->slice < box->slices ? distance / side->slice : box->slices - 1;
    distance -= slice * side->slice;
    if (box->rows > 1)
        row = distance / side->row < box->rows ? distance / side->row : box->rows - 1;
    return qi_box_at(side, row, slice) + box->size > begin;
}

bool qi_box_overlaps(const qi_box *box)
{
    uint64_t to_end = box->to.offset + qi_box_extent(box, &box->to);
    uint64_t from_end = box->from.offset + qi_box_extent(box, &box->from);
    if (box->to.offset >= from_end || box->from.offset >= to_end)
        return false;
    for (uint64_t slice = 0; slice < box->slices; slice++)
        for (uint64_t row = 0; row < box->rows; row++)
            if (reaches(box, &box->from, qi_box_at(&box->to, row, slice)))
                return true;
    return false;
}
