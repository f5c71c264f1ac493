/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * on_demand.h - shared by the unit tests of map_on_demand: a memory of the fake backend whose pages
 * are mapped while they are used, and how often the backend was called to map one.
 */
#ifndef QUIRE_TESTS_SUPPORT_ON_DEMAND_H
#define QUIRE_TESTS_SUPPORT_ON_DEMAND_H

#include "tests/support/fixture.h"

/* The kinds of the fake. */
enum { DEVICE = 0, COHERENT = 1, CACHED = 2, WINDOW = 3 };

enum { PAGE_SIZE = 64 * 1024 };

static inline quire_memory_options on_demand_options(uint32_t kind)
{
    return (quire_memory_options){
        .kind.mask = UINT32_C(1) << kind, .map_on_demand = true, .pages = {.page_size = PAGE_SIZE}};
}

static inline void begin_on_demand(fixture *f, uint32_t kind)
{
    const quire_memory_options options = on_demand_options(kind);
    fixture_make(f, &options);
}

/* Checks how many pages are mapped now, and how often one was mapped since the last check. */
static inline void expect_maps(fixture *f, uint64_t now, uint64_t calls)
{
    CHECK_EQ(f->fake.maps, now);
    CHECK_EQ(f->fake.calls[FAKE_MAP], calls);
    f->fake.calls[FAKE_MAP] = 0;
}

static inline char *map(fixture *f, quire_allocation allocation)
{
    void *pointer = NULL;
    CHECK_OK(quire_map(f->memory, allocation, &pointer));
    CHECK(pointer != NULL);
    return pointer;
}

static inline void unmap(fixture *f, quire_allocation allocation)
{
    CHECK_OK(quire_unmap(f->memory, allocation));
}

#endif
