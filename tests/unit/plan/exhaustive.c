/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * exhaustive.c - every instance of four items of few sizes, alignments and times, beside every
 * order of its items.
 */
#include "quire/plan.h"

#include "tests/support/unit.h"

enum { ITEMS = 4, SIZES = 3, TIMES = 3, KINDS = SIZES * 2 * TIMES * (TIMES + 1) / 2 };

static quire_plan_item kinds[KINDS];

static void make_kinds(void)
{
    uint32_t count = 0;
    for (uint32_t number = 0; number < SIZES * 2 * TIMES * TIMES; number++) {
        quire_plan_item kind = {.size = 1 + number % SIZES,
                                .alignment = 1 + number / SIZES % 2,
                                .first_use = number / SIZES / 2 % TIMES,
                                .last_use = number / SIZES / 2 / TIMES};
        if (kind.first_use <= kind.last_use)
            kinds[count++] = kind;
    }
    CHECK_EQ(count, KINDS);
}

static bool meet(const quire_plan_item *a, const quire_plan_item *b)
{
    return a->first_use <= b->last_use && b->first_use <= a->last_use;
}

/* The least peak if each item is placed above those before it that it meets. */
static uint64_t least_peak(const quire_plan_item *items, uint64_t *ends, uint32_t placed,
                           uint64_t peak)
{
    uint64_t best = placed == (1u << ITEMS) - 1 ? peak : UINT64_MAX;
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (placed >> i & 1)
            continue;
        uint64_t at = 0;
        for (uint32_t k = 0; k < ITEMS; k++)
            if (placed >> k & 1 && meet(&items[i], &items[k]) && ends[k] > at)
                at = ends[k];
        at += at % items[i].alignment; /* which is 1 or 2 */
        ends[i] = at + items[i].size;
        uint64_t found = least_peak(items, ends, placed | 1u << i, ends[i] > peak ? ends[i] : peak);
        best = found < best ? found : best;
    }
    return best;
}

static void compare(const quire_plan_item *items)
{
    const quire_plan_problem problem = {.items = items, .item_count = ITEMS};
    quire_plan_place places[ITEMS];
    quire_plan_info info;
    uint64_t ends[ITEMS], peak;
    CHECK_OK(quire_plan(&problem, NULL, places, &info));
    CHECK_OK(quire_plan_check(&problem, places, &peak, NULL));
    CHECK_EQ(info.peak_bytes, peak);
    CHECK_EQ(peak, least_peak(items, ends, 0, 0));
    CHECK(info.proven_optimal && info.lower_bound_bytes == peak);
}

/* Instances that differ in the order of their items alone are tried once. */
UNIT(exhaustive, plans_of_four_items_are_the_best_of_all_orders)
{
    make_kinds();
    for (uint32_t a = 0; a < KINDS; a++)
        for (uint32_t b = a; b < KINDS; b++)
            for (uint32_t c = b; c < KINDS; c++)
                for (uint32_t d = c; d < KINDS; d++) {
                    const quire_plan_item items[] = {kinds[c], kinds[a], kinds[d], kinds[b]};
                    compare(items);
                }
}
