/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * solve.h - the best plan of a line within an effort.
 */
#ifndef QUIRE_SRC_PLAN_SOLVE_H
#define QUIRE_SRC_PLAN_SOLVE_H

#include "src/plan/effort.h"

typedef struct qi_plan_solution {
    uint64_t *offsets; /* of each range; the caller's */
    uint64_t peak;     /* UINT64_MAX: there is no plan yet */
    uint64_t bound;    /* no plan has a lower peak */
} qi_plan_solution;

/*
 * Looks for the plan of the lowest peak, until the effort is over, the peak is at most `enough`, or
 * none is lower. The first method ends whatever the effort. There may be no plan: a range fits only
 * between two offsets, and others are there. Fails with OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_plan_solve(const qi_plan_line *line, uint64_t enough, uint64_t seed,
                                          qi_plan_effort *effort, qi_host *host,
                                          qi_plan_solution *solution);

#endif
