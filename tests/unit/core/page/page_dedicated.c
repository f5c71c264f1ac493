/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_dedicated.c - dedicated pages: when they are created, their properties, and how many there
 * may be.
 */
#include "tests/support/fixture.h"

enum { PAGE = 4096 };

static void make(fixture *b, quire_page_policy pages)
{
    fixture_prepare(b);
    fixture_open(b, &(quire_memory_options){.pages = pages});
}

static quire_allocation allocate(fixture *b, uint64_t size, bool dedicated)
{
    quire_allocation allocation = ALLOCATE(b, .size = size, .dedicated = dedicated);
    return allocation;
}

#define CASE(name, ...) UNIT_ON(page_dedicated, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

/* The allocation has a dedicated page of this size. */
static void expect_dedicated(fixture *b, quire_allocation allocation, uint64_t page_size)
{
    quire_allocation_info info = fixture_info(b, allocation);
    quire_page_info page;
    CHECK(info.dedicated);
    CHECK_EQ(info.offset, 0);
    CHECK_EQ(info.left_padding, 0);
    CHECK_OK(quire_page_get_info(b->memory, info.page, &page));
    CHECK(page.dedicated);
    CHECK_EQ(page.size, page_size);
    CHECK_EQ(page.allocation_count, 1);
    CHECK_EQ(page.live_bytes, info.size);
    CHECK_EQ(page.free_bytes, page_size - info.size);
    CHECK_EQ(page.largest_free, 0); /* no other allocation can use the rest */
}

/* The size of the dedicated page and of the range in it, or 0 for a range of a shared page. */
UNIT(page_dedicated, the_flag_the_threshold_and_the_policy_request_one)
{
    const quire_page_policy plain = {.page_size = PAGE},
                            always = {.dedicated = QUIRE_DEDICATED_ALWAYS},
                            limited = {.page_size = PAGE, .dedicated_threshold = 1000},
                            padded = {.page_size = PAGE,
                                      .dedicated_threshold = 1000,
                                      .size_granularity = 512,
                                      .extra_padding = 600};
    const struct {
        const quire_page_policy *pages;
        uint64_t size;
        bool flag;
        uint64_t page, held;
    } rows[] = {
        {&plain, 100, true, 256, 100},       {&plain, 100, false, 0, 0},
        {&plain, 300, true, 512, 300},       {&limited, 999, false, 0, 0},
        {&limited, 1000, false, 1024, 1000}, {&limited, 100000, false, 100096, 100000},
        {&padded, 999, false, 0, 0}, /* the threshold is of the requested size */
        {&padded, 1000, false, 2048, 2048},  {&always, 256, false, 256, 256},
        {&always, 1280, false, 1280, 1280},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture b;
        make(&b, *rows[i].pages);
        quire_allocation one = allocate(&b, rows[i].size, rows[i].flag);
        quire_allocation other = allocate(&b, rows[i].size, rows[i].flag);
        if (!rows[i].page) {
            CHECK(!fixture_info(&b, one).dedicated && !fixture_info(&b, other).dedicated);
        } else {
            expect_dedicated(&b, one, rows[i].page);
            expect_dedicated(&b, other, rows[i].page);
            CHECK_EQ(fixture_info(&b, one).size, rows[i].held);
            CHECK_EQ(fixture_info(&b, one).requested, rows[i].size);
            CHECK_EQ(fixture_stats(&b).largest_free, 0);
            CHECK_EQ(fixture_stats(&b).free_bytes, 2 * (rows[i].page - rows[i].held));
            CHECK(fixture_info(&b, allocate(&b, 10, false)).page > 1); /* the rest is unused */
            CHECK_EQ(b.fake.pages, 3);
        }
        fixture_end(&b);
    }
}

CASE(the_policy_can_exclude_them,
     (quire_page_policy){.page_size = PAGE, .dedicated = QUIRE_DEDICATED_NEVER})
{
    ALLOCATE_FAILS(b, QUIRE_ERROR_INVALID_ARGUMENT, .size = 100, .dedicated = true);
    CHECK_HAS(quire_last_error(), "the policy of memory 'memory' has none");
    CHECK_EQ(b->fake.pages, 0);
    quire_allocation large = allocate(b, 5 * PAGE, false);
    CHECK(!fixture_info(b, large).dedicated); /* a shared page that is large enough */
    CHECK_EQ(b->fake.pages, 1);
}

UNIT_PREPARED(page_dedicated,
              with_one_shared_page_and_no_dedicated_ones_larger_requests_are_refused, b)
{
    fixture_open(b, &(quire_memory_options){
                        .fit.algorithm = QUIRE_FIT_LINEAR,
                        .pages = {.page_size = PAGE, .dedicated = QUIRE_DEDICATED_NEVER}});
    CHECK(!fixture_info(b, allocate(b, PAGE / 2, false)).dedicated);
    ALLOCATE_FAILS(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE + 1);
    CHECK_EQ(b->fake.pages, 1);
}

CASE(a_dedicated_page_is_destroyed_at_once_if_nothing_is_retained,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = PAGE})
{
    quire_allocation own = allocate(b, 5000, true), shared = allocate(b, 100, false);
    CHECK_EQ(b->fake.pages, 2);
    CHECK_OK(quire_free(b->memory, own));
    CHECK_EQ(b->fake.pages, 1);
    CHECK_EQ(b->fake.page_bytes, PAGE);
    CHECK_OK(quire_free(b->memory, shared));
    CHECK_EQ(b->fake.pages, 1); /* a shared page is retained */
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(stats.pages_created, 2);
    CHECK_EQ(stats.pages_destroyed, 1);
    CHECK_EQ(stats.empty_bytes, PAGE);
}

CASE(there_are_at_most_as_many_as_the_policy_has_pages,
     (quire_page_policy){.dedicated = QUIRE_DEDICATED_ALWAYS, .max_pages = 2})
{
    quire_allocation first = allocate(b, 1, false);
    allocate(b, 1, false);
    ALLOCATE_FAILS(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    CHECK_OK(quire_free(b->memory, first));
    CHECK_EQ(fixture_info(b, allocate(b, 1, false)).page, 0);
}

CASE(it_is_not_made_smaller_if_the_backend_has_too_little, (quire_page_policy){.page_size = PAGE})
{
    b->fake.page_budget = 8192;
    quire_allocation none;
    quire_allocation_options options = {.size = 10000, .dedicated = true};
    CHECK_FAILS(quire_allocate(b->memory, &options, &none), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(quire_last_native_code(), -7);
    CHECK_HAS(quire_last_error(), "the fake is full");
}
