/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan.c - quire_plan and quire_plan_check: what is refused, and plans of small random problems
 * beside definitions that try every order or look at every pair.
 */
#include "quire/plan.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/host_memory.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

static quire_plan_problem problem_of(const quire_plan_item *items, uint32_t count)
{
    return (quire_plan_problem){.items = items, .item_count = count};
}

/* ---- refusals ------------------------------------------------------------------------------ */

UNIT(plan, null_pointers_are_named)
{
    const quire_plan_item items[] = {{.size = 1}};
    quire_plan_problem problem = problem_of(items, 1);
    quire_plan_place places[1];
    quire_plan_info info = {.peak_bytes = 7};
    CHECK_FAILS(quire_plan(NULL, NULL, places, &info), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(info.peak_bytes, 0);
    CHECK_FAILS(quire_plan(&problem, NULL, NULL, &info), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "places");
    CHECK_FAILS(quire_plan_check(NULL, places, NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_plan_check(&problem, NULL, NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    problem.items = NULL;
    CHECK_FAILS(quire_plan(&problem, NULL, places, &info), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "problem->items");
    problem = problem_of(items, 1);
    problem.arena_count = 1;
    CHECK_FAILS(quire_plan(&problem, NULL, places, &info), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "problem->arenas");
    problem = problem_of(items, 1);
    problem.separation_count = 1;
    CHECK_FAILS(quire_plan_check(&problem, places, NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "problem->separations");
    problem = problem_of(items, 1);
    problem.unused[1] = 1;
    CHECK_FAILS(quire_plan(&problem, NULL, places, &info), QUIRE_ERROR_INVALID_ARGUMENT);
    problem.unused[1] = 0;
    const quire_plan_options options = {.unused = {1}};
    CHECK_FAILS(quire_plan(&problem, &options, places, &info), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_plan(&problem, NULL, places, NULL));
    CHECK(places[0].offset == 0 && places[0].arena == 1);
    problem = problem_of(NULL, 0);
    CHECK_OK(quire_plan(&problem, NULL, NULL, &info));
    CHECK(!info.peak_bytes && info.proven_optimal);
    CHECK_OK(quire_plan_check(&problem, NULL, NULL, NULL));
}

UNIT(plan, items_that_no_plan_can_have_are_named)
{
    static const quire_plan_arena arenas[] = {{100}, {0}, {200}};
    static const struct {
        quire_plan_item item;
        uint32_t arena_count;
        quire_result result;
        const char *says;
    } cases[] = {
        {{.size = 0}, 0, QUIRE_ERROR_INVALID_ARGUMENT, "item 1 of the plan has size 0"},
        {{.size = 1, .first_use = 6, .last_use = 5},
         0,
         QUIRE_ERROR_INVALID_ARGUMENT,
         "item 1 of the plan is first used at 6 and last used at 5"},
        {{.size = UINT64_MAX}, 0, QUIRE_ERROR_INVALID_ARGUMENT, "items up to 1 of the plan exceed"},
        {{.size = 1, .alignment = UINT64_C(1) << 50}, 0, QUIRE_ERROR_INVALID_ARGUMENT, "exceed"},
        {{.size = 1, .is_fixed = true, .fixed_offset = UINT64_MAX},
         0,
         QUIRE_ERROR_INVALID_ARGUMENT,
         "exceed 2^50"},
        {{.size = (UINT64_C(1) << 50) - 1}, 0, QUIRE_ERROR_INVALID_ARGUMENT, "exceed 2^50"},
        {{.size = 1, .is_fixed = true, .fixed_offset = 6, .alignment = 4},
         0,
         QUIRE_ERROR_INVALID_ARGUMENT,
         "fixed offset 6, which is no multiple of its alignment 4"},
        {{.size = 1, .arena = 2}, 0, QUIRE_ERROR_INVALID_ARGUMENT, "names arena 2 of 1"},
        {{.size = 1, .arena = 4}, 3, QUIRE_ERROR_INVALID_ARGUMENT, "names arena 4 of 3"},
        {{.size = 1, .is_fixed = true}, 3, QUIRE_ERROR_INVALID_ARGUMENT, "names none of 3 arenas"},
        {{.size = 101, .arena = 1},
         3,
         QUIRE_ERROR_NO_SPACE,
         "item 1 of the plan has 101 B: the largest arena that it may use has 100 B"},
        {{.size = 101, .name = "weights"},
         1,
         QUIRE_ERROR_NO_SPACE,
         "item 1 ('weights') of the plan has 101 B"},
        {{.size = 10, .arena = 1, .is_fixed = true, .fixed_offset = 91},
         3,
         QUIRE_ERROR_OUT_OF_RANGE,
         "at the fixed offset 91: its arena has 100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const quire_plan_item items[] = {{.size = 1, .first_use = 1, .last_use = 1}, cases[i].item};
        quire_plan_problem problem = problem_of(items, 2);
        problem.arenas = arenas;
        problem.arena_count = cases[i].arena_count;
        quire_plan_place places[2] = {{0, 1}, {0, 1}};
        CHECK_FAILS(quire_plan(&problem, NULL, places, NULL), cases[i].result);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK_FAILS(quire_plan_check(&problem, places, NULL, NULL), cases[i].result);
        CHECK_HAS(quire_last_error(), cases[i].says);
        problem.item_count = 1;
        CHECK_OK(quire_plan(&problem, NULL, places, NULL));
    }
}

UNIT(plan, aliases_and_separations_that_contradict_are_named)
{
    static const quire_plan_arena arenas[] = {{0}, {10}};
    static const struct {
        quire_plan_item a, b;
        quire_plan_separation apart;
        quire_result result;
        const char *says;
    } cases[] = {
        {{.size = 1, .alias_group = 3, .arena = 1},
         {.size = 1, .alias_group = 3, .arena = 2},
         {0, 2},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "items 0 and 1 of alias group 3 name the arenas 1 and 2"},
        {{.size = 1, .alias_group = 3, .arena = 1, .is_fixed = true},
         {.size = 1, .alias_group = 3, .arena = 1, .is_fixed = true, .fixed_offset = 8},
         {0, 2},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "items 0 and 1 of alias group 3 have the fixed offsets 0 and 8"},
        {{.size = 1, .alias_group = 3, .arena = 1, .is_fixed = true, .fixed_offset = 8},
         {.size = 1, .alias_group = 3, .alignment = 16},
         {0, 2},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "the fixed offset 8 of alias group 3 is no multiple of 16"},
        {{.size = 1, .alias_group = 3, .alignment = (UINT64_C(1) << 49) - 1},
         {.size = 1, .alias_group = 3, .alignment = UINT64_C(1) << 48},
         {0, 2},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "sizes and alignments exceed 2^50"},
        {{.size = 11, .alias_group = 3},
         {.size = 1, .alias_group = 3, .arena = 2},
         {0, 2},
         QUIRE_ERROR_NO_SPACE,
         "alias group 3 of the plan has 11 B"},
        {{.size = 2, .alias_group = 3},
         {.size = 1, .alias_group = 3, .arena = 2, .is_fixed = true, .fixed_offset = 9},
         {0, 2},
         QUIRE_ERROR_OUT_OF_RANGE,
         "alias group 3 has 2 B at the fixed offset 9"},
        {{.size = 1, .alias_group = 3},
         {.size = 1, .alias_group = 3},
         {0, 1},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "separation 0 of the plan: the items 0 and 1 are the same"},
        {{.size = 1}, {.size = 1}, {2, 2}, QUIRE_ERROR_INVALID_ARGUMENT, "the same bytes"},
        {{.size = 1},
         {.size = 1},
         {2, 3},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "separation 0 of the plan is of the items 2 and 3: there are 3"},
        {{.size = 4, .arena = 1, .is_fixed = true},
         {.size = 4, .arena = 1, .is_fixed = true, .fixed_offset = 3},
         {0, 2},
         QUIRE_ERROR_OVERLAP,
         "items 0 and 1 of the plan share bytes of arena 1 from offset 3 on"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const quire_plan_item items[] = {cases[i].a, cases[i].b, {.size = 1}};
        quire_plan_problem problem = problem_of(items, 3);
        problem.arenas = arenas;
        problem.arena_count = 2;
        problem.separations = &cases[i].apart;
        problem.separation_count = 1;
        quire_plan_place places[3];
        CHECK_FAILS(quire_plan(&problem, NULL, places, NULL), cases[i].result);
        CHECK_HAS(quire_last_error(), cases[i].says);
    }
}

UNIT(plan, plans_that_are_wrong_are_named)
{
    const quire_plan_item items[] = {{.size = 10, .last_use = 4},
                                     {.size = 10, .alignment = 4, .first_use = 5, .last_use = 8},
                                     {.size = 6, .first_use = 4, .last_use = 5},
                                     {.size = 1, .first_use = 9, .last_use = 9, .alias_group = 1},
                                     {.size = 2, .first_use = 9, .last_use = 9, .alias_group = 1},
                                     {.size = 3, .first_use = 10, .last_use = 10, .arena = 2}};
    static const quire_plan_separation apart[] = {{0, 4}};
    static const quire_plan_place good[] = {{0, 1}, {0, 1}, {10, 1}, {10, 1}, {10, 1}, {0, 2}};
    static const struct {
        uint32_t item;
        quire_plan_place place;
        quire_result result;
        const char *says;
    } cases[] = {
        {1, {2, 1}, QUIRE_ERROR_INVALID_ARGUMENT, "offset 2, which is no multiple of 4"},
        {2,
         {11, 1},
         QUIRE_ERROR_OUT_OF_RANGE,
         "item 2 of the plan has 6 bytes at offset 11: arena 1 has 16"},
        {2, {UINT64_MAX, 1}, QUIRE_ERROR_OUT_OF_RANGE, "item 2"},
        {2, {9, 1}, QUIRE_ERROR_OVERLAP, "items 0 and 2 of the plan share bytes of arena 1"},
        {2, {9, 2}, QUIRE_SUCCESS, ""},
        {0, {6, 1}, QUIRE_ERROR_OVERLAP, "items 0 and 2"},
        {0, {0, 3}, QUIRE_ERROR_INVALID_ARGUMENT, "item 0 of the plan is in arena 3 of 2"},
        {0, {0, 0}, QUIRE_ERROR_INVALID_ARGUMENT, "item 0 of the plan is in arena 0 of 2"},
        {5, {0, 1}, QUIRE_ERROR_INVALID_ARGUMENT, "is in arena 1 and names arena 2"},
        {4, {12, 1}, QUIRE_ERROR_INVALID_ARGUMENT, "items 3 and 4 of alias group 1"},
        {0, {0, 2}, QUIRE_SUCCESS, ""},
        {0, {1, 1}, QUIRE_ERROR_OVERLAP, "items 0 and 2"},
        {2, {0, 2}, QUIRE_SUCCESS, ""},
    };
    quire_plan_problem problem = problem_of(items, 6);
    problem.arenas = (quire_plan_arena[]){{16}, {0}};
    problem.arena_count = 2;
    problem.separations = apart;
    problem.separation_count = 1;
    uint64_t peaks[2];
    CHECK_OK(quire_plan_check(&problem, good, peaks, NULL));
    CHECK(peaks[0] == 16 && peaks[1] == 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_plan_place places[6];
        memcpy(places, good, sizeof places);
        places[cases[i].item] = cases[i].place;
        quire_result result = quire_plan_check(&problem, places, peaks, NULL);
        CHECK_EQ(result, cases[i].result);
        if (result) {
            CHECK_HAS(quire_last_error(), cases[i].says);
            CHECK(!peaks[0] && !peaks[1]);
        }
    }
    quire_plan_place places[6];
    memcpy(places, good, sizeof places);
    places[3].offset = places[4].offset = 9;
    CHECK_FAILS(quire_plan_check(&problem, places, peaks, NULL), QUIRE_ERROR_OVERLAP);
    CHECK_HAS(quire_last_error(), "items 0 and 4 of the plan share bytes and are separated");
}

/* ---- what a plan is ------------------------------------------------------------------------ */

UNIT(plan, a_capacity_that_is_too_small_is_refused_with_the_bytes_that_are_needed)
{
    const quire_plan_item items[] = {{.size = 10}, {.size = 10}, {.size = 5, .alignment = 8}};
    quire_plan_arena arena = {24};
    quire_plan_problem problem = problem_of(items, 3);
    problem.arenas = &arena;
    problem.arena_count = 1;
    quire_plan_place places[3];
    quire_plan_info info;
    CHECK_FAILS(quire_plan(&problem, NULL, places, &info), QUIRE_ERROR_NO_SPACE);
    CHECK_HAS(quire_last_error(),
              "no plan fits: the items need 25 bytes or more, and there are 24");
    CHECK_EQ(info.peak_bytes, 0);
    arena.capacity = 25;
    CHECK_OK(quire_plan(&problem, NULL, places, &info));
    CHECK(info.peak_bytes == 25 && info.proven_optimal);
}

UNIT(plan, items_of_any_arena_fill_those_with_a_capacity_first)
{
    const quire_plan_item items[] = {
        {.size = 60}, {.size = 60}, {.size = 40}, {.size = 30}, {.size = 5, .arena = 1}};
    const quire_plan_arena arenas[] = {{0}, {100}, {0}, {60}};
    quire_plan_problem problem = problem_of(items, 5);
    problem.arenas = arenas;
    problem.arena_count = 4;
    quire_plan_place places[5];
    quire_plan_info info;
    uint64_t peaks[4];
    CHECK_OK(quire_plan(&problem, NULL, places, &info));
    CHECK_OK(quire_plan_check(&problem, places, peaks, NULL));
    CHECK_EQ(places[4].arena, 1);
    CHECK_EQ(peaks[2], 0); /* the second without a capacity is for items that name it */
    CHECK(peaks[0] >= 35 && peaks[0] <= 65);
    CHECK_EQ(info.peak_bytes, peaks[0] + peaks[1] + peaks[3]);
    CHECK_EQ(info.lower_bound_bytes, 195);
}

static bool stop_at_once(void *user, const quire_plan_info *best)
{
    ++*(int *)user;
    CHECK(best->peak_bytes > 0);
    return false;
}

enum { MANY = 4000 };

/* Too many items for the search, and no order reaches their largest load. */
static void random_many(quire_plan_item items[MANY])
{
    test_random rng = {3};
    for (uint32_t i = 0; i < MANY; i++) {
        items[i] = (quire_plan_item){.size = 5000 + random_below(&rng, 2000),
                                     .first_use = i,
                                     .last_use = i + 10 + random_below(&rng, 2)};
    }
}

UNIT(plan, limits_and_the_caller_end_the_work)
{
    static quire_plan_item items[MANY];
    static quire_plan_place places[MANY], again[MANY];
    quire_plan_info info, other;
    int calls = 0;
    random_many(items);
    quire_plan_problem problem = problem_of(items, MANY);
    quire_plan_options options = {
        .time_limit_ns = UINT64_C(3600000000000), .progress = stop_at_once, .user = &calls};
    CHECK_OK(quire_plan(&problem, &options, places, &info));
    CHECK_EQ(calls, 1);
    CHECK_OK(quire_plan_check(&problem, places, NULL, NULL));
    options = (quire_plan_options){.time_limit_ns = 20000000};
    CHECK_OK(quire_plan(&problem, &options, places, &info));
    CHECK(info.wall_ns >= 20000000 && info.wall_ns < UINT64_C(60000000000));
    options = (quire_plan_options){.step_limit = 20000000, .seed = 5};
    CHECK_OK(quire_plan(&problem, &options, places, &info));
    CHECK_OK(quire_plan(&problem, &options, again, &other));
    CHECK(info.steps >= 20000000 && info.steps < 20200000);
    CHECK_EQ(info.steps, other.steps);
    CHECK(!memcmp(places, again, sizeof places));
    options.step_limit = 1;
    CHECK_OK(quire_plan(&problem, &options, places, &other));
    CHECK(other.peak_bytes > info.peak_bytes);
    CHECK_OK(quire_plan_check(&problem, places, NULL, NULL));
}

UNIT(plan, every_failure_of_host_memory_is_reported)
{
    quire_plan_item items[40];
    quire_plan_place places[40];
    test_random rng = {8};
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t first = random_below(&rng, 20);
        items[i] = (quire_plan_item){.size = 1 + random_below(&rng, 500),
                                     .alignment = random_below(&rng, 20),
                                     .first_use = first,
                                     .last_use = first + random_below(&rng, 10),
                                     .alias_group = i < 2};
    }
    const quire_plan_separation apart[] = {{0, 39}, {1, 38}};
    quire_plan_problem problem = problem_of(items, 40);
    problem.separations = apart;
    problem.separation_count = 2;
    const quire_plan_options options = {.step_limit = 300000, .host_memory = unit_memory()};
    uint64_t at = 1;
    for (quire_result result = QUIRE_ERROR_OUT_OF_HOST_MEMORY; result; at++) {
        test_memory_fail(unit_memory_state(), at, false);
        result = quire_plan(&problem, &options, places, NULL);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
    CHECK(at > 60);
    at = 1;
    for (quire_result result = QUIRE_ERROR_OUT_OF_HOST_MEMORY; result; at++) {
        test_memory_fail(unit_memory_state(), at, false);
        result = quire_plan_check(&problem, places, NULL, unit_memory());
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
    CHECK(at > 6);
    test_memory_fail(unit_memory_state(), 0, false);
}

/* ---- small problems ------------------------------------------------------------------------ */

enum { MOST = 8 };

/* A problem of at most 8 items that the tests solve in another way: by every order. */
typedef struct small {
    quire_plan_item items[MOST];
    quire_plan_separation apart[2];
    quire_plan_arena arenas[2];
    quire_plan_problem problem;
} small;

/* What is one in the problem: an item, or an alias group with what its items need. */
typedef struct unit {
    uint64_t size, alignment, first, last, fixed;
    bool is_fixed;
    uint32_t arena;
} unit;

typedef struct brute {
    unit units[MOST];
    uint32_t count;
    uint32_t unit_of[MOST];
    bool meets[MOST][MOST];
    uint64_t offsets[MOST];
    bool is_placed[MOST];
    uint32_t arena_of[MOST];
    uint64_t best;
} brute;

static uint64_t least_common(uint64_t a, uint64_t b)
{
    uint64_t multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

static void find_units(const quire_plan_problem *problem, brute *b)
{
    *b = (brute){.count = 0};
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const quire_plan_item *item = &problem->items[i];
        const uint64_t alignment = item->alignment ? item->alignment : 1;
        uint32_t j = 0;
        while (j < i && (!item->alias_group || problem->items[j].alias_group != item->alias_group))
            j++;
        b->unit_of[i] = j < i ? b->unit_of[j] : b->count;
        unit *u = &b->units[b->unit_of[i]];
        if (j == i) {
            *u = (unit){item->size,         alignment,      item->first_use, item->last_use,
                        item->fixed_offset, item->is_fixed, item->arena};
            b->count++;
            continue;
        }
        u->size = item->size > u->size ? item->size : u->size;
        u->alignment = least_common(u->alignment, alignment);
        u->first = item->first_use < u->first ? item->first_use : u->first;
        u->last = item->last_use > u->last ? item->last_use : u->last;
    }
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t j = 0; j < b->count; j++)
            b->meets[i][j] = i != j && b->units[i].first <= b->units[j].last &&
                             b->units[j].first <= b->units[i].last;
    for (uint32_t i = 0; i < problem->separation_count; i++) {
        uint32_t x = b->unit_of[problem->separations[i].first];
        uint32_t y = b->unit_of[problem->separations[i].second];
        b->meets[x][y] = b->meets[y][x] = true;
    }
}

/* The least peak of the units of an arena, each placed above those before it. */
static void try_orders(brute *b, uint32_t arena, uint32_t left, uint64_t peak)
{
    if (peak >= b->best)
        return;
    if (!left) {
        b->best = peak;
        return;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        const unit *u = &b->units[i];
        if (b->is_placed[i] || b->arena_of[i] != arena)
            continue;
        uint64_t at = 0;
        for (uint32_t j = 0; j < b->count; j++)
            if (b->is_placed[j] && b->arena_of[j] == arena && b->meets[i][j] &&
                b->offsets[j] + b->units[j].size > at)
                at = b->offsets[j] + b->units[j].size;
        at = (at + u->alignment - 1) / u->alignment * u->alignment;
        if (u->is_fixed && at > u->fixed)
            continue;
        b->offsets[i] = u->is_fixed ? u->fixed : at;
        b->is_placed[i] = true;
        uint64_t end = b->offsets[i] + u->size;
        try_orders(b, arena, left - 1, end > peak ? end : peak);
        b->is_placed[i] = false;
    }
}

/* UINT64_MAX: there is no plan. */
static uint64_t least_peak(brute *b, uint32_t arena)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->count; i++)
        count += b->arena_of[i] == arena;
    b->best = UINT64_MAX;
    try_orders(b, arena, count, 0);
    return b->best;
}

/* By definition: every pair. */
static bool is_plan(const quire_plan_problem *problem, const quire_plan_place *places)
{
    brute b;
    find_units(problem, &b);
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const quire_plan_item *item = &problem->items[i];
        if (item->alignment && places[i].offset % item->alignment)
            return false;
        if (item->is_fixed && places[i].offset != item->fixed_offset)
            return false;
        if (item->arena && places[i].arena != item->arena)
            return false;
        if (problem->arena_count && problem->arenas[places[i].arena - 1].capacity &&
            places[i].offset + item->size > problem->arenas[places[i].arena - 1].capacity)
            return false;
        for (uint32_t j = 0; j < i; j++) {
            uint32_t x = b.unit_of[i], y = b.unit_of[j];
            bool same = places[i].arena == places[j].arena;
            if (x == y && (!same || places[i].offset != places[j].offset))
                return false;
            if (x != y && b.meets[x][y] && same &&
                places[i].offset < places[j].offset + b.units[y].size &&
                places[j].offset < places[i].offset + b.units[x].size)
                return false;
        }
    }
    return true;
}

static void random_small(test_random *rng, small *s, uint32_t most)
{
    memset(s, 0, sizeof *s);
    uint32_t count = 2 + (uint32_t)random_below(rng, most - 1);
    uint64_t times = 2 + random_below(rng, 9), sizes = 2 + random_below(rng, 8);
    bool has_alignments = random_below(rng, 2), has_extras = random_below(rng, 2);
    uint64_t grain = 1 + random_below(rng, 3); /* divides each alignment, but for 0 */
    bool has_zeros = random_below(rng, 2);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t first = random_below(rng, times);
        s->items[i] = (quire_plan_item){
            .size = 1 + random_below(rng, sizes),
            .alignment = has_alignments ? grain * (random_below(rng, 3) + !has_zeros) : 0,
            .first_use = first,
            .last_use = first + random_below(rng, times)};
        if (has_extras && !random_below(rng, 5))
            s->items[i].alias_group = 1 + (uint32_t)random_below(rng, 2);
    }
    if (has_extras && !random_below(rng, 3)) {
        quire_plan_item *item = &s->items[random_below(rng, count)];
        item->is_fixed = !item->alias_group;
        item->fixed_offset = item->is_fixed ? 36 * random_below(rng, 3) : 0;
    }
    s->problem = problem_of(s->items, count);
    s->problem.separations = s->apart;
    for (uint64_t pairs = has_extras ? random_below(rng, 3) : 0; pairs; pairs--) {
        uint32_t a = (uint32_t)random_below(rng, count), b = (uint32_t)random_below(rng, count);
        uint32_t group = s->items[a].alias_group;
        if (a != b && !(group && group == s->items[b].alias_group))
            s->apart[s->problem.separation_count++] = (quire_plan_separation){a, b};
    }
}

/* A plan, its peak and its bound beside the best of all orders. There are steps for a proof. */
static void check_small(small *s, uint64_t seed)
{
    brute b;
    quire_plan_place places[MOST];
    quire_plan_info info;
    const quire_plan_options options = {.seed = seed, .step_limit = UINT64_C(2000000000)};
    find_units(&s->problem, &b);
    uint64_t best = least_peak(&b, 0);
    CHECK(best != UINT64_MAX);
    CHECK_OK(quire_plan(&s->problem, &options, places, &info));
    CHECK(is_plan(&s->problem, places));
    CHECK_OK(quire_plan_check(&s->problem, places, NULL, NULL));
    CHECK_EQ(info.peak_bytes, best);
    CHECK(info.proven_optimal && info.lower_bound_bytes == best);
    /* told the capacity */
    s->problem.arenas = s->arenas;
    s->problem.arena_count = 1;
    s->arenas[0].capacity = best;
    CHECK_OK(quire_plan(&s->problem, &options, places, &info));
    CHECK(is_plan(&s->problem, places));
    s->arenas[0].capacity = best - 1;
    if (best > 1) {
        quire_result result = quire_plan(&s->problem, &options, places, &info);
        CHECK(result == QUIRE_ERROR_NO_SPACE || result == QUIRE_ERROR_OUT_OF_RANGE);
    }
}

/* QUIRE_TEST_PLANS: how many; --full asks for a million. */
static uint64_t plans(void)
{
    const char *text = getenv("QUIRE_TEST_PLANS");
    return text ? strtoull(text, NULL, 10) : 1000;
}

UNIT(plan, small_plans_are_the_best_of_all_orders)
{
    test_random rng = {plans()};
    for (uint64_t i = 0; i < plans(); i++) {
        small s;
        random_small(&rng, &s, 6);
        check_small(&s, i);
    }
    for (uint64_t i = 0; i < plans() / 50; i++) {
        small s;
        random_small(&rng, &s, MOST);
        check_small(&s, i);
    }
}

/* Whether the items can be divided between two arenas, by every division. */
static bool can_divide(brute *b, const small *s)
{
    for (uint32_t division = 0; division < 1u << b->count; division++) {
        bool is_allowed = true;
        for (uint32_t i = 0; i < b->count; i++) {
            b->arena_of[i] = division >> i & 1;
            is_allowed &= !b->units[i].arena || b->units[i].arena == b->arena_of[i] + 1;
        }
        if (is_allowed && least_peak(b, 0) <= s->arenas[0].capacity &&
            least_peak(b, 1) <= s->arenas[1].capacity)
            return true;
    }
    return false;
}

UNIT(plan, small_plans_in_two_arenas_are_found_if_there_are_any)
{
    test_random rng = {plans() + 1};
    uint64_t found = 0, refused = 0;
    for (uint64_t i = 0; i < plans() / 2; i++) {
        small s;
        brute b;
        quire_plan_place places[MOST];
        random_small(&rng, &s, 6);
        for (uint32_t k = 0; k < s.problem.item_count; k++) {
            if (s.items[k].is_fixed || (!s.items[k].alias_group && !random_below(&rng, 4)))
                s.items[k].arena = 1 + (uint32_t)random_below(&rng, 2);
        }
        s.arenas[0].capacity = 1 + random_below(&rng, 20);
        s.arenas[1].capacity = 1 + random_below(&rng, 20);
        s.problem.arenas = s.arenas;
        s.problem.arena_count = 2;
        find_units(&s.problem, &b);
        bool is_possible = can_divide(&b, &s);
        quire_result result = quire_plan(&s.problem, NULL, places, NULL);
        CHECK_EQ(result == QUIRE_SUCCESS, is_possible);
        if (!result)
            CHECK(is_plan(&s.problem, places));
        found += is_possible;
        refused += !is_possible;
    }
    CHECK(found > plans() / 20 && refused > plans() / 20);
}

/* Cuts a rectangle of times and bytes into items that fill it. */
static uint32_t cut(test_random *rng, quire_plan_item *items, uint32_t count, uint64_t times,
                    uint64_t bytes)
{
    struct {
        uint64_t first, last, size;
    } parts[64] = {{0, times - 1, bytes}};
    uint32_t made = 1;
    while (made < count) {
        const uint32_t i = (uint32_t)random_below(rng, made);
        const uint64_t length = parts[i].last - parts[i].first + 1;
        parts[made] = parts[i];
        if (random_below(rng, 2) && length > 1) {
            parts[i].last = parts[i].first + random_below(rng, length - 1);
            parts[made++].first = parts[i].last + 1;
        } else if (parts[i].size > 1) {
            parts[i].size = 1 + random_below(rng, parts[i].size - 1);
            parts[made].size -= parts[i].size;
            made++;
        }
    }
    for (uint32_t i = 0; i < made; i++)
        items[i] = (quire_plan_item){
            .size = parts[i].size, .first_use = parts[i].first, .last_use = parts[i].last};
    return made;
}

/* Each network fills an arena without a gap, so that the arenas have no byte to spare. */
UNIT(plan, three_networks_in_one_list_are_planned_for_three_arenas)
{
    test_random rng = {21};
    const quire_plan_arena arenas[] = {{1000}, {2000}, {1000}};
    for (int step = 0; step < 20; step++) {
        quire_plan_item items[60];
        quire_plan_place places[60];
        quire_plan_info info;
        uint32_t count = 0;
        for (int i = 0; i < 3; i++)
            count += cut(&rng, items + count, 20, 1000, arenas[i].capacity);
        quire_plan_problem problem = problem_of(items, count);
        problem.arenas = arenas;
        problem.arena_count = 3;
        CHECK_OK(quire_plan(&problem, NULL, places, &info));
        CHECK_OK(quire_plan_check(&problem, places, NULL, NULL));
        CHECK(info.peak_bytes == 4000 && info.proven_optimal);
    }
}

/* Rounded up to the alignment two items have 32 bytes, but each may be the highest of an arena. */
UNIT(plan, the_bound_of_several_arenas_does_not_count_padding)
{
    const quire_plan_item items[] = {{.size = 9, .alignment = 8}, {.size = 9, .alignment = 8}};
    const quire_plan_arena arenas[2][2] = {{{16}, {16}}, {{16}, {0}}};
    for (int i = 0; i < 2; i++) {
        quire_plan_problem problem = problem_of(items, 2);
        problem.arenas = arenas[i];
        problem.arena_count = 2;
        quire_plan_place places[2];
        quire_plan_info info;
        CHECK_OK(quire_plan(&problem, NULL, places, &info));
        CHECK(info.peak_bytes == 18 && info.lower_bound_bytes == 18 && info.proven_optimal);
    }
}

UNIT(plan, arenas_that_their_items_overfill_are_refused)
{
    const quire_plan_item items[] = {{.size = 9, .arena = 1}, {.size = 9, .arena = 1}, {.size = 5}};
    const quire_plan_arena arenas[] = {{17}, {0}};
    quire_plan_problem problem = problem_of(items, 3);
    problem.arenas = arenas;
    problem.arena_count = 2;
    quire_plan_place places[3];
    CHECK_FAILS(quire_plan(&problem, NULL, places, NULL), QUIRE_ERROR_NO_SPACE);
    CHECK_HAS(quire_last_error(),
              "no plan was found in which each arena has room for the items that name it");
}

/* 4000 items for which no plan reaches the bound, then 20 of which only the search finds one. */
UNIT(plan, every_arena_has_its_part_of_the_effort)
{
    static quire_plan_item items[MANY + 20];
    static quire_plan_place places[MANY + 20];
    const quire_plan_arena arenas[2] = {{0}, {0}};
    test_random rng = {22};
    uint64_t peaks[2];
    random_many(items);
    cut(&rng, items + MANY, 20, 1000, 5000);
    for (uint32_t i = 0; i < MANY + 20; i++)
        items[i].arena = 1 + i / MANY;
    quire_plan_problem problem = problem_of(items, MANY + 20);
    problem.arenas = arenas;
    problem.arena_count = 2;
    CHECK_OK(quire_plan(&problem, NULL, places, NULL));
    CHECK_OK(quire_plan_check(&problem, places, peaks, NULL));
    CHECK_EQ(peaks[1], 5000);
    items[MANY].is_fixed = true; /* no sweep can place it */
    CHECK_OK(quire_plan(&problem, &(quire_plan_options){.step_limit = 1}, places, NULL));
    CHECK_OK(quire_plan_check(&problem, places, peaks, NULL));
}

/* The check agrees with its definition for plans of any offsets. */
UNIT(plan, the_check_finds_every_overlap)
{
    test_random rng = {12};
    uint32_t good = 0;
    for (int step = 0; step < 5000; step++) {
        small s;
        quire_plan_place places[MOST];
        quire_plan_info info;
        random_small(&rng, &s, MOST);
        CHECK_OK(quire_plan(&s.problem, &(quire_plan_options){.step_limit = 1000}, places, &info));
        for (uint64_t changes = random_below(&rng, 3); changes; changes--)
            places[random_below(&rng, s.problem.item_count)].offset =
                random_below(&rng, info.peak_bytes + 5);
        bool expected = is_plan(&s.problem, places);
        CHECK_EQ(quire_plan_check(&s.problem, places, NULL, NULL) == QUIRE_SUCCESS, expected);
        good += expected;
    }
    CHECK(good > 1500 && good < 4000);
}
