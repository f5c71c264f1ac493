/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan.c - the public functions of quire/plan.h: check pointers, call src/plan, and allocate what a
 * plan needs.
 */
#include "src/plan/plan.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

static const char *missing_array(const quire_plan_problem *problem, const quire_plan_place *places)
{
    if (problem->item_count && !problem->items)
        return "problem->items";
    if (problem->arena_count && !problem->arenas)
        return "problem->arenas";
    if (problem->separation_count && !problem->separations)
        return "problem->separations";
    return problem->item_count && !places ? "places" : NULL;
}

quire_result quire_plan(const quire_plan_problem *problem, const quire_plan_options *options,
                        quire_plan_place *places, quire_plan_info *info)
{
    const quire_plan_options defaults = {0};
    quire_plan_info made = {0};
    qi_host host;
    if (info)
        *info = made;
    if (!problem)
        return qi_fail_null("quire_plan", "problem");
    const char *missing = missing_array(problem, places);
    if (missing)
        return qi_fail_null("quire_plan", missing);
    options = options ? options : &defaults;
    quire_result result = qi_host_init(&host, options->host_memory);
    if (!result)
        result = qi_plan(problem, options, &host, places, &made);
    if (!result && info)
        *info = made;
    return result;
}

quire_result quire_plan_check(const quire_plan_problem *problem, const quire_plan_place *places,
                              uint64_t *peaks, const quire_host_memory *host_memory)
{
    qi_host host;
    if (!problem)
        return qi_fail_null("quire_plan_check", "problem");
    for (uint32_t i = 0; peaks && i < qi_plan_arena_count(problem); i++)
        peaks[i] = 0;
    const char *missing = missing_array(problem, places);
    if (missing)
        return qi_fail_null("quire_plan_check", missing);
    quire_result result = qi_host_init(&host, host_memory);
    return result ? result : qi_plan_check(problem, places, peaks, &host);
}

/* ---- a plan in a memory -------------------------------------------------------------------- */

/* What the bytes of an arena need. */
typedef struct needs {
    uint64_t size, alignment;
} needs;

static quire_result find_needs(const quire_plan_problem *problem, const quire_plan_place *places,
                               uint32_t arena, needs *n)
{
    *n = (needs){0, 1};
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const quire_plan_item *item = &problem->items[i];
        if (places[i].arena != arena)
            continue;
        qi_raise(&n->size, places[i].offset + item->size);
        const uint64_t divisor = qi_gcd(n->alignment, item->alignment);
        if (item->alignment &&
            qi_multiply_overflows(n->alignment / divisor, item->alignment, &n->alignment))
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "no number is a multiple of the alignments of the items up to %u",
                                i);
    }
    return QUIRE_SUCCESS;
}

static quire_result allocate(quire_memory *memory, const needs *n,
                             const quire_allocation_options *options, quire_allocation *allocation)
{
    quire_allocation_options wanted = options ? *options : (quire_allocation_options){0};
    if (wanted.size || wanted.offset_alignment)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_plan_allocate: the plan sets size and offset_alignment");
    wanted.size = n->size;
    if (!qi_is_power_of_two(n->alignment))
        wanted.offset_alignment = n->alignment;
    if (!wanted.alignment ||
        qi_is_power_of_two(wanted.alignment)) /* another one is refused below */
        qi_raise(&wanted.alignment, UINT64_C(1) << qi_lowest_bit(n->alignment));
    return quire_allocate(memory, &wanted, allocation);
}

quire_result quire_plan_allocate(quire_memory *memory, const quire_plan_problem *problem,
                                 const quire_plan_place *places, uint32_t arena,
                                 const quire_allocation_options *options,
                                 quire_allocation *allocation, quire_view *views)
{
    needs n;
    if (allocation)
        *allocation = (quire_allocation){0};
    if (problem && views)
        memset(views, 0, problem->item_count * sizeof *views);
    if (!memory || !problem || !allocation || (problem->item_count && !views))
        return qi_fail_null("quire_plan_allocate", !memory       ? "memory"
                                                   : !problem    ? "problem"
                                                   : !allocation ? "allocation"
                                                                 : "views");
    quire_result result = quire_plan_check(problem, places, NULL, NULL);
    if (result)
        return result;
    if (!arena || arena > qi_plan_arena_count(problem))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "the plan has no arena %u: there are %u",
                            arena, qi_plan_arena_count(problem));
    result = find_needs(problem, places, arena, &n);
    if (!result && n.size)
        result = allocate(memory, &n, options, allocation);
    for (uint32_t i = 0; i < problem->item_count && !result; i++)
        if (places[i].arena == arena)
            views[i] = (quire_view){*allocation, places[i].offset, problem->items[i].size};
    return result;
}
