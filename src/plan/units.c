/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * units.c - checks problems, and merges aliases.
 */
#include "src/plan/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- checks -------------------------------------------------------------------------------- */

/* Writes " ('name')" if there is a name. */
static void write_name(const quire_plan_problem *problem, uint32_t item, char text[48])
{
    const char *name = problem->items[item].name;
    *text = '\0';
    if (name)
        snprintf(text, 48, " ('%.40s')", name);
}

qi_plan_name_text qi_plan_name(const quire_plan_problem *problem, uint32_t item)
{
    qi_plan_name_text made;
    char name[48];
    write_name(problem, item, name);
    snprintf(made.text, sizeof made.text, "item %" PRIu32 "%s", item, name);
    return made;
}

qi_plan_name_text qi_plan_names(const quire_plan_problem *problem, uint32_t a, uint32_t b)
{
    qi_plan_name_text made;
    char first[48], second[48];
    write_name(problem, a, first);
    write_name(problem, b, second);
    snprintf(made.text, sizeof made.text, "items %" PRIu32 "%s and %" PRIu32 "%s", a, first, b,
             second);
    return made;
}

/* The largest arena that an item may use. */
static uint64_t largest_arena(const quire_plan_problem *problem, const quire_plan_item *item)
{
    if (item->arena)
        return qi_plan_capacity(problem, item->arena - 1);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < qi_plan_arena_count(problem); i++)
        qi_raise(&largest, qi_plan_capacity(problem, i));
    return largest;
}

static quire_result check_arena(const quire_plan_problem *problem, uint32_t i)
{
    const quire_plan_item *item = &problem->items[i];
    const uint32_t arenas = qi_plan_arena_count(problem);
    if (item->arena > arenas)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT, "%t of the plan names arena %u of %u",
                              qi_plan_name(problem, i).text, item->arena, arenas);
    if (item->is_fixed && !item->arena && arenas > 1)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "%t of the plan has a fixed offset, but names none of %u arenas",
                              qi_plan_name(problem, i).text, arenas);
    const uint64_t most = largest_arena(problem, item);
    if (item->size > most)
        return qi_fail_naming(QUIRE_ERROR_NO_SPACE,
                              "%t of the plan has %b: the largest arena that it may use has %b",
                              qi_plan_name(problem, i).text, item->size, most);
    if (item->is_fixed && item->fixed_offset > most - item->size)
        return qi_fail_naming(QUIRE_ERROR_OUT_OF_RANGE,
                              "%t of the plan has %b at the fixed offset %u: its arena has %u",
                              qi_plan_name(problem, i).text, item->size, item->fixed_offset, most);
    return QUIRE_SUCCESS;
}

static quire_result check_item(const quire_plan_problem *problem, uint32_t i, uint64_t *sum)
{
    const quire_plan_item *item = &problem->items[i];
    const uint64_t fixed = item->is_fixed ? item->fixed_offset : 0;
    if (!item->size)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT, "%t of the plan has size 0",
                              qi_plan_name(problem, i).text, 0);
    if (item->first_use > item->last_use)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "%t of the plan is first used at %u and last used at %u",
                              qi_plan_name(problem, i).text, item->first_use, item->last_use);
    if (item->size >= QI_PLAN_MOST_BYTES || item->alignment >= QI_PLAN_MOST_BYTES ||
        fixed >= QI_PLAN_MOST_BYTES ||
        *sum + item->size + item->alignment + fixed >= QI_PLAN_MOST_BYTES)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "the sizes, alignments and fixed offsets of the items up to %u of the "
                            "plan exceed 2^50",
                            i);
    *sum += item->size + item->alignment + fixed;
    if (fixed && item->alignment > 1 && fixed % item->alignment)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "item %u of the plan has the fixed offset %u, which is no multiple of "
                            "its alignment %u",
                            i, fixed, item->alignment);
    return check_arena(problem, i);
}

static quire_result check_separation(const quire_plan_problem *problem, uint32_t i)
{
    const quire_plan_separation *pair = &problem->separations[i];
    if (pair->first >= problem->item_count || pair->second >= problem->item_count)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "separation %u of the plan is of the items %u and %u: there are %u", i,
                            pair->first, pair->second, problem->item_count);
    const uint32_t group = problem->items[pair->first].alias_group;
    if (pair->first == pair->second || (group && group == problem->items[pair->second].alias_group))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "separation %u of the plan: the items %u and %u are the same bytes", i,
                            pair->first, pair->second);
    return QUIRE_SUCCESS;
}

quire_result qi_plan_check_problem(const quire_plan_problem *problem)
{
    uint64_t sum = 0;
    if (problem->item_count > QI_PLAN_MOST_ITEMS || problem->arena_count > QI_PLAN_MOST_ARENAS)
        return qi_fail_with(
            QUIRE_ERROR_INVALID_ARGUMENT, "the plan has %u items and %u arenas: %u and %u at most",
            problem->item_count, problem->arena_count, QI_PLAN_MOST_ITEMS, QI_PLAN_MOST_ARENAS);
    quire_result result = qi_check_unused(problem, "quire_plan_problem");
    for (uint32_t i = 0; i < problem->item_count && !result; i++)
        result = check_item(problem, i, &sum);
    for (uint32_t i = 0; i < problem->separation_count && !result; i++)
        result = check_separation(problem, i);
    return result;
}

/* ---- units --------------------------------------------------------------------------------- */

/* An item and its alias group. */
typedef struct member {
    uint32_t group, item;
} member;

static int by_group(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* Adds item i to a unit of which item `other` is. */
static quire_result merge(const quire_plan_problem *problem, quire_plan_item *unit, uint32_t other,
                          uint32_t i)
{
    const quire_plan_item *item = &problem->items[i];
    if (item->arena && unit->arena && item->arena != unit->arena)
        return qi_fail_naming(
            QUIRE_ERROR_INVALID_ARGUMENT, "%t of alias group %u name the arenas %u and %u",
            qi_plan_names(problem, other, i).text, item->alias_group, unit->arena, item->arena);
    if (item->is_fixed && unit->is_fixed && item->fixed_offset != unit->fixed_offset)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "%t of alias group %u have the fixed offsets %u and "
                              "%u",
                              qi_plan_names(problem, other, i).text, item->alias_group,
                              unit->fixed_offset, item->fixed_offset);
    const uint64_t a = unit->alignment ? unit->alignment : 1;
    const uint64_t b = item->alignment ? item->alignment : 1;
    if (qi_multiply_overflows(a / qi_gcd(a, b), b, &unit->alignment))
        unit->alignment = UINT64_MAX; /* check_unit refuses it */
    qi_raise(&unit->size, item->size);
    qi_raise(&unit->last_use, item->last_use);
    if (item->first_use < unit->first_use)
        unit->first_use = item->first_use;
    if (item->arena)
        unit->arena = item->arena;
    if (item->is_fixed) {
        unit->is_fixed = true;
        unit->fixed_offset = item->fixed_offset;
    }
    return QUIRE_SUCCESS;
}

/* The unit as a whole fits its arena, and its offset suits it. */
static quire_result check_unit(const quire_plan_problem *problem, const quire_plan_item *unit,
                               uint32_t item, uint64_t *sum)
{
    if (unit->alignment >= QI_PLAN_MOST_BYTES - *sum - unit->size)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "alias group %u of the plan needs offsets that are multiples of %u: "
                            "sizes and alignments exceed 2^50",
                            problem->items[item].alias_group, unit->alignment);
    *sum += unit->size + unit->alignment;
    if (unit->size > largest_arena(problem, unit))
        return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                            "alias group %u of the plan has %b: the largest arena that it may use "
                            "has %b",
                            problem->items[item].alias_group, unit->size,
                            largest_arena(problem, unit));
    if (!unit->is_fixed)
        return QUIRE_SUCCESS;
    if (unit->fixed_offset % (unit->alignment ? unit->alignment : 1))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "the fixed offset %u of alias group %u is no multiple of %u",
                            unit->fixed_offset, problem->items[item].alias_group, unit->alignment);
    if (unit->fixed_offset > largest_arena(problem, unit) - unit->size)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "alias group %u has %b at the fixed offset %u: its arena has %u",
                            problem->items[item].alias_group, unit->size, unit->fixed_offset,
                            largest_arena(problem, unit));
    return QUIRE_SUCCESS;
}

/* Units in the order of the groups; those of items without one come first. */
static quire_result merge_all(const member *members, qi_plan_units *units)
{
    const quire_plan_problem *problem = units->problem;
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const uint32_t item = members[i].item;
        if (!i || !members[i].group || members[i].group != members[i - 1].group) {
            units->merged[units->count] = problem->items[item];
            units->merged[units->count].alias_group = 0;
            units->item_of[units->count++] = item;
        } else {
            quire_result result = merge(problem, &units->merged[units->count - 1],
                                        units->item_of[units->count - 1], item);
            if (result)
                return result;
        }
        units->unit_of[item] = units->count - 1;
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < units->count; i++) {
        quire_result result = check_unit(problem, &units->merged[i], units->item_of[i], &sum);
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

quire_result qi_plan_units_make(const quire_plan_problem *problem, qi_host *host,
                                qi_plan_units *units)
{
    const uint32_t count = problem->item_count;
    bool has_aliases = false;
    *units = (qi_plan_units){.problem = problem, .items = problem->items, .count = count};
    for (uint32_t i = 0; i < count && !has_aliases; i++)
        has_aliases = problem->items[i].alias_group;
    if (!has_aliases)
        return QUIRE_SUCCESS;
    units->count = 0;
    units->unit_of = qi_host_allocate(host, count, sizeof *units->unit_of);
    units->item_of = qi_host_allocate(host, count, sizeof *units->item_of);
    units->merged = qi_host_allocate(host, count, sizeof *units->merged);
    units->items = units->merged;
    member *members = qi_host_allocate(host, count, sizeof *members);
    quire_result result;
    if (units->unit_of && units->item_of && units->merged && members) {
        for (uint32_t i = 0; i < count; i++)
            members[i] = (member){problem->items[i].alias_group, i};
        qsort(members, count, sizeof *members, by_group);
        result = merge_all(members, units);
    } else {
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
    }
    qi_host_release(host, members, count, sizeof *members);
    return result;
}

void qi_plan_units_release(qi_plan_units *units, qi_host *host)
{
    const uint32_t count = units->problem->item_count;
    qi_host_release(host, units->unit_of, count, sizeof *units->unit_of);
    qi_host_release(host, units->item_of, count, sizeof *units->item_of);
    qi_host_release(host, units->merged, count, sizeof *units->merged);
}
