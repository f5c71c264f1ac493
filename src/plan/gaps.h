/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * gaps.h - places ranges in an order, each in a gap between those that were placed before.
 */
#ifndef QUIRE_SRC_PLAN_GAPS_H
#define QUIRE_SRC_PLAN_GAPS_H

#include "src/plan/effort.h"

typedef struct qi_plan_span_set {
    struct qi_plan_span *spans;
    uint32_t count, room;
} qi_plan_span_set;

typedef struct qi_plan_gaps {
    const qi_plan_line *line;
    qi_host *host;
    uint32_t leaves; /* a power of two */
    qi_plan_span_set *some, *cover;
    uint32_t *askers;
    uint64_t room;          /* spans that the sets have room for */
    uint64_t most_room;     /* an order that needs more is given up */
    qi_plan_span_set apart; /* of the range that is placed: those it is kept apart from */
    bool is_out_of_memory;
} qi_plan_gaps;

/* Fails with OUT_OF_HOST_MEMORY. Release it in each case. The line is prepared. */
QUIRE_MUST_USE quire_result qi_plan_gaps_make(qi_plan_gaps *gaps, const qi_plan_line *line,
                                              qi_host *host);
void qi_plan_gaps_release(qi_plan_gaps *gaps);

/*
 * Places the ranges of an order, each in the lowest gap that it fits in, or in the narrowest.
 * Writes their offsets and returns the peak; UINT64_MAX if the peak does not stay below `limit`, a
 * range fits nowhere, the effort is over, the sets need more than most_room, or host memory is
 * exhausted (see is_out_of_memory).
 */
uint64_t qi_plan_place(qi_plan_gaps *gaps, const uint32_t *order, bool narrowest, uint64_t limit,
                       qi_plan_effort *effort, uint64_t *offsets);

#endif
