/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * line.h - what is placed: ranges on one line of addresses, and the sections of their lifetimes.
 *
 * Arenas lie on the line one after the other; no range lies across the border of two. The last
 * arena has no end. The peak of a plan is the largest end of a range on the line.
 *
 * A section is a largest set of ranges that live at one time: no other time has these ranges and
 * more. Every time lies in a section or in a part of one. Ranges meet if they have a section in
 * common, or are kept apart.
 */
#ifndef QUIRE_SRC_PLAN_LINE_H
#define QUIRE_SRC_PLAN_LINE_H

#include "src/base/host_memory.h"

/* Offsets, and sums of sizes and alignments, stay below it. */
#define QI_PLAN_LIMIT (UINT64_C(1) << 62)

typedef struct qi_plan_range {
    uint64_t size;
    uint64_t room;        /* the size, rounded up to the grain of the line */
    uint64_t alignment;   /* above 0; of the offset from the begin of its arena */
    uint64_t low, high;   /* it begins at or above `low` and ends at or below `high` */
    uint64_t first, last; /* the times at which it lives, both included */
    uint32_t begin, end;  /* its sections: from begin until before end */
} qi_plan_range;

typedef struct qi_plan_line {
    qi_plan_range *ranges;
    uint32_t count;
    uint32_t arena_count;  /* above 0 */
    const uint64_t *bases; /* where each arena begins; the first is 0 */
    uint32_t section_count;
    uint64_t *loads; /* of each section: the sum of the rooms */
    uint64_t grain;  /* the offset of each range is a multiple of it, so that one range takes its
                        room from another unless nothing lies above it */
    /* Range i is kept apart from those in apart[apart_starts[i]] until before apart_starts[i + 1];
       each pair is there twice. Both NULL: there are none. */
    const uint32_t *apart_starts;
    const uint32_t *apart;
    uint64_t overlap; /* the largest sum of sizes at one time */
    uint64_t bound;   /* no plan has a lower peak */
} qi_plan_line;

/*
 * Finds the grain, the rooms, the sections, the loads, the overlap and the bound; the other members
 * are set. Fails with OUT_OF_HOST_MEMORY. Release it with qi_plan_line_release, after a failure
 * too.
 */
QUIRE_MUST_USE quire_result qi_plan_line_prepare(qi_plan_line *line, qi_host *host);
void qi_plan_line_release(qi_plan_line *line, qi_host *host);

/* The lowest offset from `at` on where a range may begin. Its end may be above `high`. */
uint64_t qi_plan_lift_slow(const qi_plan_line *line, const qi_plan_range *range, uint64_t at);

static inline uint64_t qi_plan_align(uint64_t offset, uint64_t alignment)
{
    if (alignment == 1)
        return offset;
    uint64_t over = offset % alignment;
    return over ? offset + alignment - over : offset;
}

static inline uint64_t qi_plan_lift(const qi_plan_line *line, const qi_plan_range *range,
                                    uint64_t at)
{
    if (at < range->low)
        at = range->low;
    return line->arena_count == 1 ? qi_plan_align(at, range->alignment)
                                  : qi_plan_lift_slow(line, range, at);
}

static inline bool qi_plan_is_fixed(const qi_plan_range *range)
{
    return range->high - range->low == range->size;
}

#endif
