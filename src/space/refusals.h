/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * refusals.h - the requests that a space is known to have no range for. A full search that finds
 * nothing records its request here. A request at least as large and at least as aligned, for the
 * same tiling, is then refused without a search. Whatever can create or enlarge a free range
 * forgets all refusals: qi_space_forget_refusals in space.h.
 *
 * The record is exact. For each tiling and alignment it holds the smallest size that is refused.
 */
#ifndef QUIRE_SRC_SPACE_REFUSALS_H
#define QUIRE_SRC_SPACE_REFUSALS_H

#include "src/base/bits.h"

/* Alignments from 1 to the largest that a space accepts, 1 GiB. */
enum { QI_ALIGNMENT_COUNT = 31 };

/*
 * Invariant while any is true: the sizes of one tiling never increase with the alignment, because
 * what does not fit with an alignment does not fit with a larger one.
 */
typedef struct qi_refusals {
    bool any;                                   /* false: the sizes are not valid */
    uint64_t least_size[2][QI_ALIGNMENT_COUNT]; /* [optimal][log2 of the alignment], bytes */
} qi_refusals;

/* Whether this request is known to be refused. The alignment is a power of two up to 1 GiB. */
static inline bool qi_refusals_cover(const qi_refusals *refusals, uint64_t size, uint64_t alignment,
                                     bool optimal)
{
    return refusals->any && size >= refusals->least_size[optimal][qi_lowest_bit(alignment)];
}

void qi_refusals_add(qi_refusals *refusals, uint64_t size, uint64_t alignment, bool optimal);

#endif
