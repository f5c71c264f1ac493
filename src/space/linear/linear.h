/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear.h - the records of the linear fit: a ring of the live ranges in address order; free bytes
 * have no record. Files outside this folder use the fit only through qi_linear_fit. The space has
 * no lock: the caller serializes all calls.
 *
 * The region holds two groups of ranges. A lower range is placed above the newest lower one; at the
 * end of the region placement restarts at the region's start (it *wraps*). An upper range is placed
 * below the newest upper one, from the end of the region downward. Only live ranges have a record.
 * The records form one ring in address order, closed by record 0, which stands for the region. A
 * freed range leaves a gap between its neighbours and no record, so that nothing is swept later. A
 * gap is usable if it is next to the newest lower range, below the oldest one, or below the newest
 * upper one. Every operation takes a fixed number of steps, except an allocation that grows the
 * records or resets all numbers.
 *
 *     | free | oldest ... newest |        free        | upper ... |
 *     | ... newest |     free     | oldest ... | free | upper ... |     wrapped
 *
 * A clear moves the whole ring to the chain of unused numbers and starts a new epoch. A record is
 * live while its epoch is that of the space. A clear therefore touches no record, and the ranges
 * from before are stale.
 *
 * Generations: a number counts its uses, all 2^26 - 1 of them. (In the other fits the lowest bit of
 * the generation says whether a range is live, which halves the uses.) Per-frame use consumes the
 * generations of all numbers of a frame evenly: at 1000 clears a second they last 18 hours. If an
 * allocation finds a used-up number in an empty space, it resets all numbers; they then name later
 * slots (`window`). The same few records thus serve as long as slots last: 2^52 ids in all, 142
 * years with 1000 frames a second and 1000 ranges per frame. A used-up number that is found while
 * ranges live is retired until the next reset. A space that is never empty loses 48 bytes per 67
 * million ranges this way.
 *
 * Invariants:
 *  - addresses rise along the ring, and ranges do not overlap
 *  - not wrapped: the oldest lower range is the first of the ring, and the newest is the last
 *    before the upper ones; wrapped: the oldest follows the newest
 *  - gaps is the number of neighbours in the ring, record 0 included, that do not touch
 *  - every slot that was handed out is at most window + pool.top - 1
 */
#ifndef QUIRE_SRC_SPACE_LINEAR_LINEAR_H
#define QUIRE_SRC_SPACE_LINEAR_LINEAR_H

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/space/space.h"

typedef struct qi_linear_record {
    uint32_t generation; /* uses so far; first, followed by next, as pool.h requires */
    uint32_t next;       /* the neighbour above; unused: the next unused number */
    uint32_t before;     /* the neighbour below */
    uint32_t left_padding;
    uint64_t epoch;  /* live: that of the space; 0 after a free */
    uint64_t offset; /* bytes on the line, after the left padding */
    uint64_t size;   /* bytes */
    uint64_t user;
} qi_linear_record;

typedef struct qi_linear {
    quire_space space; /* must be first: the part that all fits share */
    qi_linear_record *records;
    uint64_t epoch; /* from 1; rises with each clear */
    uint64_t gaps;
    uint32_t oldest, newest; /* lower ranges; 0: none */
    uint32_t upper;          /* the newest upper range; 0: none */
    uint32_t window;         /* slot = number + window */
} qi_linear;

static inline qi_linear *qi_linear_of(quire_space *space)
{
    return (qi_linear *)(void *)space;
}

static inline const qi_linear *qi_linear_of_const(const quire_space *space)
{
    return (const qi_linear *)(const void *)space;
}

/*
 * Begin and end of a record. Record 0 has the end of the region as its offset, and a size that
 * leads back to the region's start modulo 2^64. As a neighbour above it thus begins at the region's
 * end, and as a neighbour below it ends at the region's start, without a special case.
 */
static inline uint64_t qi_linear_begin(const qi_linear_record *record)
{
    return record->offset - record->left_padding;
}

static inline uint64_t qi_linear_end(const qi_linear_record *record)
{
    return record->offset + record->size;
}

/* Whether the newest lower range is the topmost range: the next neighbour is the region's end. */
static inline bool qi_linear_can_wrap(const qi_linear *l)
{
    return l->records[l->newest].next == 0;
}

static inline void qi_linear_describe(const qi_linear *l, uint32_t number, quire_placement *out)
{
    const qi_linear_record *record = &l->records[number];
    *out = (quire_placement){
        .range.id = qi_handle(l->space.tag, record->generation, number + l->window),
        .offset = record->offset - l->space.regions[0].start,
        .left_padding = record->left_padding,
        .size = record->size,
        .user = record->user,
    };
}

/* check.c: verifies every record. Returns CORRUPTED with a sentence. */
quire_result qi_linear_check(const quire_space *space);

#endif
