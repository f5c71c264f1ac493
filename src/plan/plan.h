/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan.h - plans: offsets for ranges whose lifetimes are known before the first is used.
 *
 * The functions have no state and take no lock: arrays in, arrays out. Their host memory comes from
 * `host` and is released before they return.
 */
#ifndef QUIRE_SRC_PLAN_PLAN_H
#define QUIRE_SRC_PLAN_PLAN_H

#include "quire/plan.h"
#include "src/base/host_memory.h"

/* quire_plan and quire_plan_check, whose pointers are checked. */
QUIRE_MUST_USE quire_result qi_plan(const quire_plan_problem *problem,
                                    const quire_plan_options *options, qi_host *host,
                                    quire_plan_place *places, quire_plan_info *info);
QUIRE_MUST_USE quire_result qi_plan_check(const quire_plan_problem *problem,
                                          const quire_plan_place *places, uint64_t *peaks,
                                          qi_host *host);

/* The number of arenas: one if the problem names none. */
static inline uint32_t qi_plan_arena_count(const quire_plan_problem *problem)
{
    return problem->arena_count ? problem->arena_count : 1;
}

/* The capacity of arena i from 0; UINT64_MAX: none. */
static inline uint64_t qi_plan_capacity(const quire_plan_problem *problem, uint32_t i)
{
    uint64_t capacity = problem->arena_count ? problem->arenas[i].capacity : 0;
    return capacity ? capacity : UINT64_MAX;
}

#endif
