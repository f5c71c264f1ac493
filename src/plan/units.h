/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * units.h - problems are checked, and the items of an alias group become one unit.
 */
#ifndef QUIRE_SRC_PLAN_UNITS_H
#define QUIRE_SRC_PLAN_UNITS_H

#include "src/plan/plan.h"

enum { QI_PLAN_MOST_ITEMS = 1 << 30, QI_PLAN_MOST_ARENAS = 1024 };

/* Sums of sizes, alignments and fixed offsets are below it. */
#define QI_PLAN_MOST_BYTES (UINT64_C(1) << 50)

/* Items in a sentence: "item 3", or "item 3 ('weights')"; "items 3 and 4". Use the text in one
   expression. */
typedef struct qi_plan_name_text {
    char text[128];
} qi_plan_name_text;

qi_plan_name_text qi_plan_name(const quire_plan_problem *problem, uint32_t item);
qi_plan_name_text qi_plan_names(const quire_plan_problem *problem, uint32_t a, uint32_t b);

/*
 * Checks items and arenas one by one: sizes, times, sums, arenas, fixed offsets, separations. Fails
 * with INVALID_ARGUMENT, OUT_OF_RANGE or NO_SPACE, which name the item.
 */
QUIRE_MUST_USE quire_result qi_plan_check_problem(const quire_plan_problem *problem);

/*
 * What is placed. A unit is an item, or all items of an alias group as one: the largest size, an
 * alignment that suits all, the time from the first use to the last. Its alias_group is 0.
 */
typedef struct qi_plan_units {
    const quire_plan_problem *problem;
    const quire_plan_item *items;
    uint32_t count;
    uint32_t *unit_of;       /* of each item; NULL: there are no aliases, and unit i is item i */
    uint32_t *item_of;       /* of each unit, an item of it; NULL as well */
    quire_plan_item *merged; /* `items`, if there are aliases */
} qi_plan_units;

/*
 * The problem has been checked and outlives the units. Fails with INVALID_ARGUMENT, which names
 * aliases that contradict each other, and OUT_OF_HOST_MEMORY. Release it in each case.
 */
QUIRE_MUST_USE quire_result qi_plan_units_make(const quire_plan_problem *problem, qi_host *host,
                                               qi_plan_units *units);
void qi_plan_units_release(qi_plan_units *units, qi_host *host);

/* Fails with OVERLAP if two units with fixed offsets share bytes. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_plan_check_fixed(const qi_plan_units *units, qi_host *host);

/* The unit of an item, and an item of a unit. */
static inline uint32_t qi_plan_unit_of(const qi_plan_units *units, uint32_t item)
{
    return units->unit_of ? units->unit_of[item] : item;
}

static inline uint32_t qi_plan_item_of(const qi_plan_units *units, uint32_t unit)
{
    return units->item_of ? units->item_of[unit] : unit;
}

#endif
