/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic_page.h - shared by the unit tests of elastic memories: a memory with chunks of 16 KiB,
 * and the bytes that its page must have.
 */
#ifndef QUIRE_TESTS_SUPPORT_ELASTIC_PAGE_H
#define QUIRE_TESTS_SUPPORT_ELASTIC_PAGE_H

#include "tests/support/fixture.h"

enum { KIB = 1024, CHUNK = 16 * KIB, CHUNKS = 64 };

static inline void make_with(fixture *f, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    fixture_prepare(f);
    fake_offer_growth(&f->fake);
    all.elastic = true;
    all.pages.page_size = CHUNK; /* the other fields of the policy are the caller's */
    if (!all.address_space)
        all.address_space = CHUNKS * CHUNK;
    fixture_open(f, &all);
}

static inline void make(fixture *f)
{
    make_with(f, &(quire_memory_options){.name = "one"});
}

static inline quire_memory_stats stats_of(const fixture *f)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(f->memory, &stats));
    CHECK_OK(quire_memory_check(f->memory));
    return stats;
}

/* The memory has one page, of which this many chunks have memory. The backend and the budgets
   agree. */
static inline void expect_chunks(const fixture *f, uint64_t count)
{
    quire_page_info page;
    quire_budget_info budget;
    quire_memory_stats stats = stats_of(f);
    CHECK_EQ(stats.page_count, 1);
    CHECK_EQ(stats.reserved_bytes, count * CHUNK);
    CHECK_OK(quire_page_get_info(f->memory, 0, &page));
    CHECK_EQ(page.size, count * CHUNK);
    CHECK_EQ(page.live_bytes + page.free_bytes, count * CHUNK);
    CHECK_EQ(f->fake.page_bytes, count * CHUNK);
    CHECK_OK(quire_device_get_budget(f->device, 0, &budget));
    CHECK_EQ(budget.reserved, count * CHUNK);
}

/* Allocations of whole chunks side by side, from the start of the page. */
static inline void fill_chunks(fixture *f, quire_allocation *made, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        made[i] = ALLOCATE(f, .size = CHUNK);
        CHECK_EQ(fixture_info(f, made[i]).offset, i * CHUNK);
    }
}

/* Frees every second one, so that no two free chunks touch. */
static inline void free_odd_ones(fixture *f, const quire_allocation *made, uint32_t count)
{
    for (uint32_t i = 1; i < count; i += 2)
        CHECK_OK(quire_free(f->memory, made[i]));
}

#endif
