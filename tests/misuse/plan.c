/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan.c - every wrong use of quire/plan.h: the documented code, a sentence, zeroed outputs,
 * nothing changed. tests/unit/plan/plan.c has more problems that no plan can have.
 */
#include "quire/plan.h"

#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

enum { ITEMS = 2 };

static bench b;
static quire_memory *memory;
static quire_plan_item items[ITEMS];
static quire_plan_place places[ITEMS];
static quire_plan_problem problem;

static void begin(void)
{
    bench_begin(&b, true);
    CHECK(bench_open(&b) && bench_memory(&b, &(quire_memory_options){.kind.mask = 1}));
    memory = b.memories[0];
    refusal_begin(&b);
}

static void end(void)
{
    bench_end(&b);
}

/* A valid problem and its plan, to be changed. */
static void make_good(void)
{
    items[0] = (quire_plan_item){.size = 100, .last_use = 1};
    items[1] = (quire_plan_item){.size = 50, .first_use = 1, .last_use = 2};
    problem = (quire_plan_problem){.items = items, .item_count = ITEMS};
    places[0] = (quire_plan_place){0, 1};
    places[1] = (quire_plan_place){100, 1};
    CHECK_OK(quire_plan_check(&problem, places, NULL, NULL));
}

/* No function takes the problem. */
static void refuse(quire_result code)
{
    quire_plan_info info;
    quire_plan_place made[ITEMS];
    uint64_t peaks[1];
    quire_allocation allocation;
    quire_view views[ITEMS];
    REFUSE_OUT(code, info, quire_plan(&problem, NULL, made, &info));
    REFUSE_OUT(code, peaks, quire_plan_check(&problem, places, peaks, NULL));
    REFUSE_OUT(code, allocation,
               quire_plan_allocate(memory, &problem, places, 1, NULL, &allocation, views));
    REFUSE_OUT(code, views,
               quire_plan_allocate(memory, &problem, places, 1, NULL, &allocation, views));
}

static void problems(void)
{
    make_good();
    items[1].size = 0;
    refuse(INVALID);
    make_good();
    items[0].first_use = 2;
    refuse(INVALID);
    make_good();
    items[1].arena = 2;
    refuse(INVALID);
    make_good();
    problem.arenas = &(quire_plan_arena){99};
    problem.arena_count = 1;
    refuse(NO_SPACE);
    make_good();
    problem.separations = &(quire_plan_separation){1, 1};
    problem.separation_count = 1;
    refuse(INVALID);
    make_good();
    problem.unused[3] = 1;
    refuse(INVALID);
    make_good();
    problem.item_count = UINT32_MAX;
    REFUSE(INVALID, quire_plan(&problem, NULL, places, NULL));
}

static void pointers(void)
{
    quire_plan_info info;
    quire_allocation allocation;
    quire_view views[ITEMS];
    make_good();
    REFUSE_OUT(INVALID, info, quire_plan(NULL, NULL, places, &info));
    REFUSE_OUT(INVALID, info, quire_plan(&problem, NULL, NULL, &info));
    REFUSE(INVALID, quire_plan_check(NULL, places, NULL, NULL));
    REFUSE(INVALID, quire_plan_check(&problem, NULL, NULL, NULL));
    REFUSE_OUT(INVALID, allocation,
               quire_plan_allocate(NULL, &problem, places, 1, NULL, &allocation, views));
    REFUSE_OUT(INVALID, allocation,
               quire_plan_allocate(memory, NULL, places, 1, NULL, &allocation, views));
    REFUSE_OUT(INVALID, allocation,
               quire_plan_allocate(memory, &problem, NULL, 1, NULL, &allocation, views));
    REFUSE_OUT(INVALID, views, quire_plan_allocate(memory, &problem, places, 1, NULL, NULL, views));
    REFUSE_OUT(INVALID, allocation,
               quire_plan_allocate(memory, &problem, places, 1, NULL, &allocation, NULL));
    problem.items = NULL;
    refuse(INVALID);
}

static void *allocate_nothing(void *user, size_t size, size_t alignment)
{
    (void)user, (void)size, (void)alignment;
    return NULL;
}

static void options(void)
{
    const quire_host_memory half = {.user = &b, .allocate = allocate_nothing};
    quire_plan_info info;
    uint64_t peaks[1];
    make_good();
    REFUSE_OUT(INVALID, info,
               quire_plan(&problem, &(quire_plan_options){.unused = {1}}, places, &info));
    REFUSE_OUT(INVALID, info,
               quire_plan(&problem, &(quire_plan_options){.host_memory = &half}, places, &info));
    REFUSE_OUT(INVALID, peaks, quire_plan_check(&problem, places, peaks, &half));
}

static void plans(void)
{
    quire_allocation allocation;
    quire_view views[ITEMS];
    make_good();
    places[1].offset = 99;
    REFUSE(QUIRE_ERROR_OVERLAP, quire_plan_check(&problem, places, NULL, NULL));
    REFUSE_OUT(QUIRE_ERROR_OVERLAP, views,
               quire_plan_allocate(memory, &problem, places, 1, NULL, &allocation, views));
    make_good();
    places[1].offset = UINT64_MAX;
    REFUSE(OUTSIDE, quire_plan_check(&problem, places, NULL, NULL));
    make_good();
    places[1].arena = 0;
    REFUSE(INVALID, quire_plan_check(&problem, places, NULL, NULL));
    make_good();
    for (uint32_t arena = 0; arena <= 2; arena += 2)
        REFUSE_OUT(INVALID, allocation,
                   quire_plan_allocate(memory, &problem, places, arena, NULL, &allocation, views));
    REFUSE_OUT(INVALID, allocation,
               quire_plan_allocate(memory, &problem, places, 1,
                                   &(quire_allocation_options){.size = 1}, &allocation, views));
    REFUSE_OUT(INVALID, views,
               quire_plan_allocate(memory, &problem, places, 1,
                                   &(quire_allocation_options){.alignment = 3}, &allocation,
                                   views));
}

static const misuse_case cases[] = {
    {"problems", problems}, {"null pointers", pointers}, {"options", options}, {"plans", plans},
    {NULL, NULL},
};

static const char *const headers[] = {"plan.h", NULL};

const misuse_area misuse_plan = {"plan", begin, end, cases, headers};
