/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * course.h - for the tests of quire/preset.h: requests, and the pages that the library creates for
 * them, in a memory of the fake backend whose policy is a preset.
 */
#ifndef QUIRE_TESTS_SUPPORT_COURSE_H
#define QUIRE_TESTS_SUPPORT_COURSE_H

#include "tests/support/fixture.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)

/* A request, and the size of the page created for it; 0 means none. */
typedef struct row {
    uint64_t request;
    uint64_t page_size;
    bool dedicated;
} row;

/* A device of the fake backend whose first heap has this size; its pages are multiples of 256. */
static inline void open_heap(fixture *b, uint64_t heap)
{
    fixture_prepare(b);
    b->fake.info.heaps[0].size = heap;
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
}

static inline void make(fixture *b, quire_page_policy policy)
{
    CHECK_OK(quire_memory_create(b->device, &(quire_memory_options){.pages = policy}, &b->memory));
}

static inline quire_allocation expect_row(fixture *b, row expected)
{
    uint64_t calls = b->fake.calls[FAKE_PAGE_CREATE];
    quire_allocation made = ALLOCATE(b, .size = expected.request);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], calls + (expected.page_size != 0));
    if (expected.page_size) {
        CHECK_EQ(b->fake.last_page.size, expected.page_size);
        CHECK_EQ(b->fake.last_page.dedicated, expected.dedicated);
    }
    return made;
}

/* All requests in order in one memory. */
#define EXPECT_COURSE(b, ...)                                                                      \
    expect_course((b), (const row[]){__VA_ARGS__}, sizeof((const row[]){__VA_ARGS__}) / sizeof(row))

static inline void expect_course(fixture *b, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_row(b, rows[i]);
}

/* Each request as the first one of a memory. */
#define EXPECT_FIRST(b, policy, ...)                                                               \
    expect_first((b), (policy), (const row[]){__VA_ARGS__},                                        \
                 sizeof((const row[]){__VA_ARGS__}) / sizeof(row))

static inline void expect_first(fixture *b, quire_page_policy policy, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        make(b, policy);
        expect_row(b, rows[i]);
        quire_memory_destroy_all(&b->memory);
    }
    make(b, policy);
}

#endif
