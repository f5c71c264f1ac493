/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * line.h - places a region on the line of a space, in the lowest gap that fits, so that low
 * addresses stay dense.
 *
 * The line owns one array of stretches, sorted by address and disjoint; a stretch is the place of a
 * region. Insertions and removals move the array; they happen once per page, next to a backend
 * call. A full-gap hint makes a series of regions of one size skip the gaps that are known to be
 * too small. No lock: the caller serializes all calls.
 */
#ifndef QUIRE_SRC_SPACE_LINE_H
#define QUIRE_SRC_SPACE_LINE_H

#include "src/base/host_memory.h"

typedef struct qi_stretch {
    uint64_t start, end; /* bytes on the line */
} qi_stretch;

typedef struct qi_line {
    qi_stretch *stretches; /* sorted, disjoint */
    uint32_t count, capacity;
    uint64_t limit;   /* bytes; no stretch reaches beyond */
    uint64_t max_gap; /* upper bound of the gaps below the last stretch */

    /*
     * Hint: none of the gaps before the `full` lowest stretches has a place of full_size bytes that
     * is congruent to full_base modulo full_alignment. A search for such a place skips these gaps.
     */
    uint32_t full;
    uint64_t full_size, full_base, full_alignment;
} qi_line;

void qi_line_init(qi_line *line, uint64_t limit);
void qi_line_finish(qi_line *line, qi_host *host);

/*
 * Takes the lowest place of `size` bytes that is congruent to `base` modulo `alignment`, a power of
 * two. Fails with OUT_OF_RANGE or OUT_OF_HOST_MEMORY and then changes nothing.
 */
QUIRE_MUST_USE quire_result qi_line_place(qi_line *line, qi_host *host, uint64_t size,
                                          uint64_t base, uint64_t alignment, uint64_t *start);

/* Removes the stretch that starts at `start`. */
void qi_line_remove(qi_line *line, uint64_t start);

/*
 * Gives the stretch that starts at `start` a new size above 0. Fails with OUT_OF_RANGE if it would
 * reach the next stretch or the limit, and then changes nothing.
 */
QUIRE_MUST_USE quire_result qi_line_resize(qi_line *line, uint64_t start, uint64_t size);

/* For checks: whether all invariants of the line hold. */
bool qi_line_is_sound(const qi_line *line);

/* Whether a stretch has exactly this start and size. */
bool qi_line_has(const qi_line *line, uint64_t start, uint64_t size);

/* End of the last stretch; 0 if the line is empty. */
uint64_t qi_line_extent(const qi_line *line);

#endif
