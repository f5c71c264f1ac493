/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_check.c - quire_plan_check accepts exactly the plans that a definition accepts which looks
 * at every pair of items.
 *
 * All instances of three items: sizes, alignments, times, fixed offsets, and arenas of items and of
 * places, from 0 to 3; offsets of places and capacities from 0 to 7; none to two arenas; a
 * separation or none, of items from 0 to 3; three patterns of alias groups. Without aliases CBMC
 * takes two to four minutes. Four items were not tried.
 */
#include "src/plan/plan.h"
#include "tests/cbmc/proof.h"

enum { ITEMS = 3 };

typedef struct instance {
    quire_plan_item items[ITEMS];
    quire_plan_arena arenas[2];
    quire_plan_separation apart;
    quire_plan_problem problem;
    quire_plan_place places[ITEMS];
} instance;

#ifdef __CPROVER__

/* 0 until before 2^count. Bits that are known to be 0 spare CBMC whole dividers. */
static uint64_t any_bits(uint32_t count)
{
    return any_u64() & ((UINT64_C(1) << count) - 1);
}

static uint64_t rarely_any_bits(uint32_t count, uint64_t otherwise)
{
    (void)otherwise;
    return any_bits(count);
}

#else

static uint64_t any_bits(uint32_t count)
{
    return any_below(UINT64_C(1) << count);
}

/* Otherwise hardly a random instance would be a plan. */
static uint64_t rarely_any_bits(uint32_t count, uint64_t otherwise)
{
    return any_below(8) ? otherwise : any_bits(count);
}

#endif

static void any_instance(instance *any, const uint32_t groups[ITEMS])
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint64_t first = any_bits(2), at = any_bits(3);
        any->items[i] = (quire_plan_item){.size = rarely_any_bits(2, 1 + any_below(2)),
                                          .alignment = rarely_any_bits(2, 0),
                                          .first_use = first,
                                          .last_use = rarely_any_bits(2, first),
                                          .fixed_offset = rarely_any_bits(2, at),
                                          .arena = (uint32_t)rarely_any_bits(2, 0),
                                          .alias_group = groups[i],
                                          .is_fixed = rarely_any_bits(1, false)};
        any->places[i] = (quire_plan_place){at, (uint32_t)rarely_any_bits(2, 1)};
        if (groups[i] && i && groups[i] == groups[0])
            any->places[i].offset = rarely_any_bits(3, any->places[0].offset);
    }
    for (uint32_t i = 0; i < 2; i++)
        any->arenas[i].capacity = rarely_any_bits(3, 0);
    any->apart = (quire_plan_separation){(uint32_t)any_bits(2), (uint32_t)rarely_any_bits(2, 1)};
    any->problem = (quire_plan_problem){.items = any->items,
                                        .arenas = any->arenas,
                                        .separations = &any->apart,
                                        .item_count = ITEMS,
                                        .arena_count = (uint32_t)any_below(3),
                                        .separation_count = (uint32_t)any_bits(1)};
}

/* ---- the definition ------------------------------------------------------------------------ */

static bool are_the_same(const instance *given, uint32_t a, uint32_t b)
{
    uint32_t group = given->items[a].alias_group;
    return a == b || (group && group == given->items[b].alias_group);
}

static bool is_good_item(const instance *given, uint32_t i)
{
    const quire_plan_item *item = &given->items[i];
    const uint32_t arenas = given->problem.arena_count;
    return item->size && item->first_use <= item->last_use &&
           (!item->is_fixed || item->arena || arenas < 2);
}

static bool is_at_a_good_place(const instance *given, uint32_t i)
{
    const quire_plan_item *item = &given->items[i];
    const quire_plan_place *at = &given->places[i];
    const uint32_t arenas = given->problem.arena_count;
    if (at->arena < 1 || at->arena > (arenas ? arenas : 1))
        return false;
    const uint64_t capacity = arenas ? given->arenas[at->arena - 1].capacity : 0;
    return (!item->arena || at->arena == item->arena) &&
           (!item->is_fixed || at->offset == item->fixed_offset) &&
           (!item->alignment || at->offset % item->alignment == 0) &&
           (!capacity || at->offset + item->size <= capacity);
}

static bool is_good_separation(const instance *given)
{
    const quire_plan_separation *apart = &given->apart;
    const uint32_t count = given->problem.item_count;
    return !given->problem.separation_count || (apart->first < count && apart->second < count &&
                                                !are_the_same(given, apart->first, apart->second));
}

/* Whether some alias of the one lives when some alias of the other does, or between two such. */
static bool live_at_one_time(const instance *given, uint32_t a, uint32_t b)
{
    uint64_t first[2] = {UINT64_MAX, UINT64_MAX}, last[2] = {0, 0};
    for (uint32_t i = 0; i < given->problem.item_count; i++) {
        const quire_plan_item *item = &given->items[i];
        for (uint32_t side = 0; side < 2; side++)
            if (are_the_same(given, side ? b : a, i)) {
                first[side] = item->first_use < first[side] ? item->first_use : first[side];
                last[side] = item->last_use > last[side] ? item->last_use : last[side];
            }
    }
    return first[0] <= last[1] && first[1] <= last[0];
}

static bool are_separated(const instance *given, uint32_t a, uint32_t b)
{
    const quire_plan_separation *apart = &given->apart;
    return given->problem.separation_count &&
           ((are_the_same(given, a, apart->first) && are_the_same(given, b, apart->second)) ||
            (are_the_same(given, a, apart->second) && are_the_same(given, b, apart->first)));
}

static bool is_a_good_pair(const instance *given, uint32_t a, uint32_t b)
{
    const quire_plan_place *x = &given->places[a], *y = &given->places[b];
    if (are_the_same(given, a, b))
        return x->arena == y->arena && x->offset == y->offset;
    return x->arena != y->arena || x->offset + given->items[a].size <= y->offset ||
           y->offset + given->items[b].size <= x->offset ||
           (!live_at_one_time(given, a, b) && !are_separated(given, a, b));
}

static bool is_plan(const instance *given)
{
    const uint32_t count = given->problem.item_count;
    bool is_good = is_good_separation(given);
    for (uint32_t i = 0; i < count; i++) {
        is_good = is_good && is_good_item(given, i) && is_at_a_good_place(given, i);
        for (uint32_t k = 0; k < i; k++)
            is_good = is_good && is_a_good_pair(given, k, i);
    }
    return is_good;
}

static uint64_t largest_end(const instance *given, uint32_t arena)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < given->problem.item_count; i++) {
        uint64_t end = given->places[i].offset + given->items[i].size;
        largest = given->places[i].arena == arena && end > largest ? end : largest;
    }
    return largest;
}

/* ---- the proofs ---------------------------------------------------------------------------- */

#ifdef __CPROVER__

extern bool plan_must_succeed;

/* In plan_stubs.c a failure of what the definition accepts is an error and ends the path. */
static void check(const instance *given)
{
    qi_host host = {0};
    uint64_t peaks[2] = {0, 0};
    plan_must_succeed = is_plan(given);
    (void)!qi_plan_check(&given->problem, given->places, peaks, &host);
    PROVE(plan_must_succeed);
    for (uint32_t i = 0; i < 2; i++)
        PROVE(peaks[i] == largest_end(given, i + 1));
}

#else

static void check(const instance *given)
{
    qi_host host;
    uint64_t peaks[2] = {0, 0};
    PROVE(!qi_host_init(&host, NULL));
    bool is_accepted = !qi_plan_check(&given->problem, given->places, peaks, &host);
    PROVE(is_accepted == is_plan(given));
    for (uint32_t i = 0; i < 2; i++)
        PROVE(peaks[i] == (is_accepted ? largest_end(given, i + 1) : 0));
}

#endif

/* The alias groups are constants: CBMC then knows how many units there are. */
static void check_any(const uint32_t groups[ITEMS])
{
    instance any;
    any_instance(&any, groups);
    check(&any);
}

PROOF(the_check_is_exact_without_aliases)
{
    static const uint32_t groups[ITEMS] = {0, 0, 0};
    check_any(groups);
}

PROOF(the_check_is_exact_if_an_item_lies_between_two_aliases)
{
    static const uint32_t groups[ITEMS] = {1, 0, 1};
    check_any(groups);
}

PROOF(the_check_is_exact_if_all_items_are_aliases)
{
    static const uint32_t groups[ITEMS] = {1, 1, 1};
    check_any(groups);
}
