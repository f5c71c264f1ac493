/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sweep.h - places ranges in the order of time: fast for any number of ranges.
 */
#ifndef QUIRE_SRC_PLAN_SWEEP_H
#define QUIRE_SRC_PLAN_SWEEP_H

#include "src/plan/effort.h"

/*
 * Stacks the ranges that live in the section `start`, and goes from there to the last section and
 * to the first: what begins (or ends, on the way back) takes the smallest hole that has room. Of
 * ranges that are to be placed at one time, `order` says which comes first. Writes the offsets and
 * the peak, UINT64_MAX if the peak does not stay below `limit` or the effort is over. The line is
 * prepared and has one arena, no range has a fixed offset, and none are kept apart. Fails with
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_plan_sweep(const qi_plan_line *line, uint32_t start,
                                          const uint32_t *order, uint64_t limit,
                                          qi_plan_effort *effort, qi_host *host, uint64_t *offsets,
                                          uint64_t *peak);

#endif
