/*
 * box.h - what a copy moves: rows of bytes that lie at one place and go to another. Integers in,
 * integers out.
 *
 * Row i of slice k begins at offset + i * row + k * slice, at either end. Rows and slices follow
 * each other upwards and never overlap: row >= size, and slice >= the bytes from the first to the
 * last of a slice.
 */
#ifndef QUIRE_SRC_MEMORY_BOX_H
#define QUIRE_SRC_MEMORY_BOX_H

#include "quire/base.h"

/* Where the rows lie at one end. */
typedef struct qi_box_side {
    uint64_t offset;
    uint64_t row, slice; /* bytes from one to the next */
} qi_box_side;

typedef struct qi_box {
    uint64_t size, rows, slices; /* bytes of a row; each above 0 */
    qi_box_side to, from;
} qi_box;

/* All bytes; they are known to be countable. */
static inline uint64_t qi_box_bytes(const qi_box *box)
{
    return box->size * box->rows * box->slices;
}

/* Where a row begins. */
static inline uint64_t qi_box_at(const qi_box_side *side, uint64_t row, uint64_t slice)
{
    return side->offset + row * side->row + slice * side->slice;
}

/* Bytes from the first to the last at one end, gaps included. */
QUIRE_MUST_USE bool qi_box_extent_overflows(const qi_box *box, const qi_box_side *side,
                                            uint64_t *extent);

/* The same of a box whose extents are known to be countable. */
uint64_t qi_box_extent(const qi_box *box, const qi_box_side *side);

/* Whether the bytes lie one after the other, without a gap. */
bool qi_box_is_tight(const qi_box *box, const qi_box_side *side);

/* The same bytes in fewer rows: those that follow each other without a gap at both ends are one. */
void qi_box_merge(qi_box *box);

/*
 * The part behind the first `done` bytes, which are fewer than all: as many whole slices, or whole
 * rows of one, or bytes of one row, as `room` bytes hold. Room is above 0.
 */
qi_box qi_box_part(const qi_box *box, uint64_t done, uint64_t room);

/* Whether a byte lies in a row of both ends, whose offsets count from one place. */
bool qi_box_overlaps(const qi_box *box);

#endif
