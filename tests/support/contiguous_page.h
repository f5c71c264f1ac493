/*
 * contiguous_page.h - shared by the unit tests of contiguous memories: a memory whose only page
 * grows, and the sizes that it must have.
 */
#ifndef QUIRE_TESTS_SUPPORT_CONTIGUOUS_PAGE_H
#define QUIRE_TESTS_SUPPORT_CONTIGUOUS_PAGE_H

#include "src/core/page/backing.h"

#include <sched.h>

#include "quire/host.h"
#include "tests/support/crew.h"
#include "tests/support/fixture.h"

enum { KIB = 1024, PAGE = 64 * KIB, MAX_SIZE = 1024 * KIB };

static inline void make_with(fixture *f, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    fixture_prepare(f);
    fake_offer_growth(&f->fake);
    all.contiguous = true;
    if (!all.address_space)
        all.address_space = MAX_SIZE;
    if (!all.pages.page_size)
        all.pages.page_size = PAGE;
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

/* The memory has one page of this many bytes, which the backend and the budgets report too. */
static inline void expect_page(const fixture *f, uint64_t bytes)
{
    quire_page_info page;
    quire_budget_info budget;
    quire_memory_stats stats = stats_of(f);
    CHECK_EQ(stats.page_count, 1);
    CHECK_EQ(stats.reserved_bytes, bytes);
    CHECK_OK(quire_page_get_info(f->memory, 0, &page));
    CHECK_EQ(page.size, bytes);
    CHECK_EQ(page.live_bytes + page.free_bytes, bytes);
    CHECK_EQ(f->fake.page_bytes, bytes);
    CHECK_EQ(f->fake.pages, 1);
    CHECK_OK(quire_device_get_budget(f->device, 0, &budget));
    CHECK_EQ(budget.reserved, bytes);
}

#endif
