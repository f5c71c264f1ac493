/*
 * page_dedicated.c - dedicated pages: when they are created, their properties, and when they are
 * destroyed.
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
    quire_allocation allocation;
    quire_allocation_options options = {.size = size, .dedicated = dedicated};
    CHECK_OK(quire_allocate(b->memory, &options, &allocation));
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

CASE(a_flag_requests_one, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation own = allocate(b, 100, true);
    expect_dedicated(b, own, 256);
    CHECK_EQ(fixture_info(b, own).size, 100);
    CHECK_EQ(fixture_info(b, own).requested, 100);
    CHECK(!fixture_info(b, allocate(b, 100, false)).dedicated);
    expect_dedicated(b, allocate(b, 100, true), 256);
    CHECK_EQ(b->fake.pages, 3);
}

CASE(the_rest_of_the_page_is_unused, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation own = allocate(b, 300, true);
    expect_dedicated(b, own, 512);
    CHECK(fixture_info(b, allocate(b, 10, false)).page != fixture_info(b, own).page);
}

CASE(requests_from_the_threshold_on_get_one,
     (quire_page_policy){.page_size = PAGE, .dedicated_threshold = 1000})
{
    CHECK(!fixture_info(b, allocate(b, 999, false)).dedicated);
    expect_dedicated(b, allocate(b, 1000, false), 1024);
    expect_dedicated(b, allocate(b, 100000, false), 100096);
}

CASE(the_threshold_compares_the_requested_size_without_padding,
     (quire_page_policy){.page_size = PAGE,
                         .dedicated_threshold = 1000,
                         .size_granularity = 512,
                         .extra_padding = 600})
{
    CHECK(!fixture_info(b, allocate(b, 999, false)).dedicated);
    quire_allocation own = allocate(b, 1000, false);
    expect_dedicated(b, own, 2048);
    CHECK_EQ(fixture_info(b, own).size, 2048); /* 1000 + 600, rounded up */
}

CASE(every_object_gets_one_if_the_policy_says_so,
     (quire_page_policy){.dedicated = QUIRE_DEDICATED_ALWAYS})
{
    for (uint64_t i = 1; i <= 5; i++)
        expect_dedicated(b, allocate(b, i * 256, false), i * 256);
    CHECK_EQ(b->fake.pages, 5);
    CHECK_EQ(b->fake.page_bytes, 15 * 256);
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(b->memory, &stats));
    CHECK_EQ(stats.largest_free, 0);
    CHECK_EQ(stats.free_bytes, 0);
}

CASE(the_policy_can_exclude_them,
     (quire_page_policy){.page_size = PAGE, .dedicated = QUIRE_DEDICATED_NEVER})
{
    quire_allocation none = {1};
    CHECK_FAILS(quire_allocate(b->memory,
                               &(quire_allocation_options){.size = 100, .dedicated = true}, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "the policy of memory 'memory' has none");
    CHECK_EQ(none.id, 0);
    CHECK_EQ(b->fake.pages, 0);
    quire_allocation large = allocate(b, 5 * PAGE, false);
    CHECK(!fixture_info(b, large).dedicated); /* a shared page that is large enough */
    CHECK_EQ(b->fake.pages, 1);
}

UNIT(page_dedicated, with_one_shared_page_and_no_dedicated_ones_larger_requests_are_refused)
{
    fixture b;
    quire_allocation none = {1};
    fixture_prepare(&b);
    fixture_open(&b, &(quire_memory_options){
                         .fit.algorithm = QUIRE_FIT_LINEAR,
                         .pages = {.page_size = PAGE, .dedicated = QUIRE_DEDICATED_NEVER}});
    CHECK(!fixture_info(&b, allocate(&b, PAGE / 2, false)).dedicated);
    CHECK_FAILS(quire_allocate(b.memory, &(quire_allocation_options){.size = PAGE + 1}, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(none.id, 0);
    CHECK_EQ(b.fake.pages, 1);
    fixture_end(&b);
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
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(b->memory, &stats));
    CHECK_EQ(stats.pages_created, 2);
    CHECK_EQ(stats.pages_destroyed, 1);
    CHECK_EQ(stats.empty_bytes, PAGE);
}

CASE(a_trim_does_not_destroy_one_in_use, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation own = allocate(b, 100, true);
    uint64_t released = 1;
    CHECK_OK(quire_memory_trim(b->memory, 0, &released));
    CHECK_EQ(released, 0);
    expect_dedicated(b, own, 256);
}

CASE(an_abort_destroys_it_too, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation own;
    quire_allocation_options options = {.size = 100, .dedicated = true};
    CHECK_OK(quire_reserve(b->memory, &options, &own));
    CHECK_EQ(b->fake.pages, 1);
    CHECK_OK(quire_abort(b->memory, own));
    CHECK_EQ(b->fake.pages, 1); /* retained for the next one */
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK_EQ(b->fake.pages, 0);
}

CASE(there_are_at_most_as_many_as_the_policy_has_pages,
     (quire_page_policy){.dedicated = QUIRE_DEDICATED_ALWAYS, .max_pages = 2})
{
    quire_allocation first = allocate(b, 1, false), none;
    allocate(b, 1, false);
    CHECK_FAILS(quire_allocate(b->memory, &(quire_allocation_options){.size = 1}, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
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
