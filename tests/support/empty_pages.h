/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * empty_pages.h - shared by the unit tests of empty pages: a memory with a clock of the test, and
 * the pages that it must have.
 */
#ifndef QUIRE_TESTS_SUPPORT_EMPTY_PAGES_H
#define QUIRE_TESTS_SUPPORT_EMPTY_PAGES_H

#include "src/core/state/memory.h"
#include "tests/support/fixture.h"

enum { PAGE = 4096, MAX_COUNT = 16 };
#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

static uint64_t test_time;

static inline uint64_t read_time(void *user)
{
    CHECK(user == &test_time);
    return test_time;
}

static inline void make(fixture *f, uint32_t shards, quire_page_policy pages)
{
    test_time = 1000;
    fixture_make(f, &(quire_memory_options){
                        .shards = shards, .pages = pages, .clock = {read_time, &test_time}});
}

/* The memory has this many whole pages, in the order of their numbers. */
static inline void fill(fixture *f, quire_allocation *full, int count)
{
    for (int i = 0; i < count; i++) {
        full[i] = ALLOCATE(f, .size = PAGE);
        CHECK_EQ(fixture_info(f, full[i]).page, i);
    }
}

static inline void let_go(fixture *f, quire_allocation allocation)
{
    CHECK_OK(quire_free(f->memory, allocation));
    CHECK_OK(quire_memory_check(f->memory));
}

static inline void expect_empty(fixture *f, uint64_t bytes)
{
    quire_memory_stats stats = fixture_stats(f);
    CHECK_OK(quire_memory_check(f->memory));
    CHECK_EQ(stats.empty_bytes, bytes);
    CHECK_EQ(stats.reserved_bytes, f->fake.page_bytes);
    CHECK_EQ(stats.page_count, f->fake.pages);
}

static inline bool is_there(fixture *f, uint32_t page)
{
    quire_page_info info;
    quire_result result = quire_page_get_info(f->memory, page, &info);
    CHECK(!result || result == QUIRE_ERROR_OUT_OF_RANGE);
    return !result;
}

#endif
