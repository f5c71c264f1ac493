/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_allocate.c - a plan as one allocation with views.
 */
#include "quire/host.h"
#include "quire/plan.h"
#include "quire/quire.h"

#include <string.h>

#include "tests/support/unit.h"

enum { ITEMS = 4 };

static const quire_plan_item items[ITEMS] = {{.size = 4096, .last_use = 2, .alignment = 64},
                                             {.size = 1000, .first_use = 1, .last_use = 3},
                                             {.size = 4096, .first_use = 3, .last_use = 4},
                                             {.size = 100, .arena = 2}};
static const quire_plan_arena arenas[] = {{0}, {0}, {64}};
static const quire_plan_problem problem = {
    .items = items, .item_count = ITEMS, .arenas = arenas, .arena_count = 3};

typedef struct bench {
    quire_device *device;
    quire_memory *memory;
    quire_plan_place places[ITEMS];
} bench;

static void make(bench *b)
{
    CHECK_OK(quire_host_open(NULL, &b->device));
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE};
    CHECK_OK(quire_memory_create(b->device, &options, &b->memory));
    CHECK_OK(quire_plan(&problem, NULL, b->places, NULL));
}

static void end(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    CHECK_OK(quire_memory_destroy(&b->memory));
    CHECK_OK(quire_device_destroy(&b->device));
}

UNIT(plan_allocate, each_item_has_a_view)
{
    bench b;
    make(&b);
    quire_allocation whole;
    quire_allocation_info info;
    quire_view views[ITEMS];
    const quire_allocation_options options = {.name = "activations", .info = &info};
    CHECK_OK(quire_plan_allocate(b.memory, &problem, b.places, 1, &options, &whole, views));
    CHECK_EQ(info.requested, 5096);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(views[i].allocation.id == whole.id && views[i].size == items[i].size);
        CHECK_EQ(views[i].offset, b.places[i].offset);
    }
    CHECK(!views[3].allocation.id && !views[3].size);
    CHECK_EQ((info.offset + views[0].offset) % 64, 0);
    CHECK_OK(quire_view_write(b.memory, views[1], 0, "abc", 4));
    CHECK_OK(quire_view_write(b.memory, views[0], 0, "xyz", 4));
    char text[4];
    CHECK_OK(quire_view_read(b.memory, views[1], 0, text, 4));
    CHECK_STR(text, "abc");
    CHECK_OK(quire_free(b.memory, whole));
    CHECK_OK(quire_plan_allocate(b.memory, &problem, b.places, 2, NULL, &whole, views));
    CHECK(views[3].size == 100 && !views[0].size);
    CHECK_OK(quire_free(b.memory, whole));
    /* nothing is in arena 3 */
    CHECK_OK(quire_plan_allocate(b.memory, &problem, b.places, 3, NULL, &whole, views));
    CHECK(!whole.id && !views[3].size);
    end(&b);
}

UNIT(plan_allocate, what_is_wrong_allocates_nothing)
{
    bench b;
    make(&b);
    quire_allocation whole = {7};
    quire_view views[ITEMS];
    static const struct {
        uint32_t arena;
        quire_allocation_options options;
        uint64_t offset; /* of item 1 */
        quire_result result;
        const char *says;
    } cases[] = {
        {0, {.name = "x"}, 4096, QUIRE_ERROR_INVALID_ARGUMENT, "no arena 0: there are 3"},
        {4, {.name = "x"}, 4096, QUIRE_ERROR_INVALID_ARGUMENT, "no arena 4"},
        {1, {.size = 8}, 4096, QUIRE_ERROR_INVALID_ARGUMENT, "the plan sets size"},
        {1, {.offset_alignment = 3}, 4096, QUIRE_ERROR_INVALID_ARGUMENT, "offset_alignment"},
        {1, {.name = "x"}, 0, QUIRE_ERROR_OVERLAP, "share bytes"},
        {1, {.alignment = 3}, 4096, QUIRE_ERROR_INVALID_ARGUMENT, "alignment"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_plan_place places[ITEMS] = {{0, 1}, {cases[i].offset, 1}, {5120, 1}, {0, 2}};
        CHECK_FAILS(quire_plan_allocate(b.memory, &problem, places, cases[i].arena,
                                        &cases[i].options, &whole, views),
                    cases[i].result);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK(!whole.id && !views[0].size);
    }
    CHECK_FAILS(quire_plan_allocate(NULL, &problem, b.places, 1, NULL, &whole, views),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_plan_allocate(b.memory, NULL, b.places, 1, NULL, &whole, views),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_plan_allocate(b.memory, &problem, NULL, 1, NULL, &whole, views),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_plan_allocate(b.memory, &problem, b.places, 1, NULL, NULL, views),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_plan_allocate(b.memory, &problem, b.places, 1, NULL, &whole, NULL),
                QUIRE_ERROR_INVALID_ARGUMENT);
    end(&b);
}

/* Texel buffers of 3 components beside vertices: no power of two suits both. */
UNIT(plan_allocate, alignments_may_be_any_numbers)
{
    const quire_plan_item some[] = {{.size = 120, .alignment = 12}, {.size = 64, .alignment = 32}};
    const quire_plan_problem both = {.items = some, .item_count = 2};
    quire_plan_place places[2];
    quire_allocation whole;
    quire_allocation_info info;
    quire_view views[2];
    bench b;
    make(&b);
    CHECK_OK(quire_plan(&both, NULL, places, NULL));
    const quire_allocation_options options = {.info = &info};
    CHECK_OK(quire_plan_allocate(b.memory, &both, places, 1, &options, &whole, views));
    CHECK_EQ(info.offset % 96, 0);
    CHECK_EQ((info.offset + views[0].offset) % 12, 0);
    CHECK_EQ((info.offset + views[1].offset) % 32, 0);
    CHECK_OK(quire_free(b.memory, whole));
    end(&b);
}
