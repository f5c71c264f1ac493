/*
 * empty_dedicated.c - dedicated pages without allocations: the requests that reuse them.
 */
#include "tests/support/empty_pages.h"

/* ---- dedicated ------------------------------------------------------------------------------ */

static quire_allocation dedicated(fixture *f, uint64_t size)
{
    return ALLOCATE(f, .size = size, .dedicated = true);
}

/* Whether a request of this size reuses the only empty dedicated page of 8 KiB. */
static bool gets_page_of_8_kib(uint64_t size)
{
    fixture f;
    make(&f, 1, (quire_page_policy){.page_size = PAGE});
    let_go(&f, dedicated(&f, 8 * KIB));
    quire_allocation own = dedicated(&f, size);
    CHECK_EQ(fixture_info(&f, own).size, size);
    CHECK(fixture_info(&f, own).dedicated);
    CHECK_EQ(fixture_stats(&f).empty_bytes, 0);
    bool gets = f.fake.calls[FAKE_PAGE_CREATE] == 1;
    CHECK_OK(quire_memory_check(f.memory));
    fixture_end(&f);
    return gets;
}

UNIT(empty_dedicated, a_dedicated_page_serves_requests_from_seven_eighths_of_it)
{
    CHECK(gets_page_of_8_kib(8 * KIB));
    CHECK(gets_page_of_8_kib(8 * KIB - 1));
    CHECK(gets_page_of_8_kib(7 * KIB));
    CHECK(gets_page_of_8_kib(7 * KIB - 255)); /* pages are of 256 bytes */
    CHECK(!gets_page_of_8_kib(7 * KIB - 256));
    CHECK(!gets_page_of_8_kib(4 * KIB));
    CHECK(!gets_page_of_8_kib(8 * KIB + 1));
    CHECK(!gets_page_of_8_kib(100));
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(empty_dedicated, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

CASE(dedicated_pages_of_many_sizes_are_distinguished, 1, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation own[MAX_COUNT];
    for (uint64_t i = 0; i < MAX_COUNT; i++)
        own[i] = dedicated(f, (i + 1) * 64 * KIB);
    for (uint64_t i = 0; i < MAX_COUNT; i++)
        let_go(f, own[i]);
    for (uint64_t i = MAX_COUNT;
         i-- > 8;) { /* starting with the largest: no request took the page of another */
        own[i] = dedicated(f, (i + 1) * 64 * KIB);
        CHECK(fixture_info(f, own[i]).page >= i);
    }
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], MAX_COUNT);
    CHECK_EQ(fixture_stats(f).page_count, MAX_COUNT);
}

CASE(dedicated_pages_are_bounded_by_age_and_bytes_like_others, 1,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 10 * KIB})
{
    quire_allocation shared = ALLOCATE(f, .size = PAGE), first = dedicated(f, 3 * KIB);
    quire_allocation second = dedicated(f, 5 * KIB);
    let_go(f, first);
    let_go(f, shared);
    expect_empty(f, 7 * KIB);
    let_go(f, second); /* 12 KiB: the first page is destroyed */
    expect_empty(f, 9 * KIB);
    CHECK(!is_there(f, 1));
}

CASE(shared_pages_never_serve_dedicated_requests, 1, (quire_page_policy){.page_size = PAGE})
{
    let_go(f, ALLOCATE(f, .size = PAGE));
    quire_page_info page;
    quire_allocation own = dedicated(f, PAGE);
    CHECK_OK(quire_page_get_info(f->memory, fixture_info(f, own).page, &page));
    CHECK(page.dedicated);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 2);
}

UNIT(empty_dedicated, dedicated_pages_never_serve_shared_requests)
{
    for (uint32_t shards = 1; shards <= 2; shards++) {
        fixture f;
        make(&f, shards, (quire_page_policy){.page_size = PAGE});
        let_go(&f, dedicated(&f, PAGE));
        fixture_free_elsewhere(&f, ALLOCATE_ELSEWHERE(&f, .size = PAGE, .dedicated = true));
        quire_allocation shared = ALLOCATE(&f, .size = PAGE);
        CHECK(!fixture_info(&f, shared).dedicated);
        CHECK_EQ(f.fake.last_page.dedicated, false);
        CHECK_OK(quire_memory_check(f.memory));
        fixture_end(&f);
    }
}

CASE(a_dedicated_page_enlarged_by_the_policy_is_reused, 1,
     (quire_page_policy){.page_size = 64 * KIB, .page_granularity = 64 * KIB})
{
    let_go(f, dedicated(f, 1000));
    CHECK_EQ(f->fake.page_bytes, 64 * KIB);
    let_go(f, dedicated(f, 1000));
    let_go(f, dedicated(f, 60 * KIB)); /* and for every request that gets a page of that size */
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

CASE(a_dedicated_page_that_could_not_be_rounded_is_reused, 1,
     (quire_page_policy){.page_size = 64 * KIB, .page_granularity = 64 * KIB})
{
    f->fake.page_budget = 8 * KIB;
    let_go(f, dedicated(f, 7 * KIB));
    uint64_t calls = f->fake.calls[FAKE_PAGE_CREATE];
    let_go(f, dedicated(f, 7 * KIB));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], calls);
}

/* A backend need not report that it rounds. */
CASE(a_dedicated_page_enlarged_by_the_backend_is_reused, 1,
     (quire_page_policy){.page_size = 64 * KIB})
{
    f->fake.page_rounding = 64 * KIB;
    let_go(f, dedicated(f, 1000));
    CHECK_EQ(f->fake.page_bytes, 64 * KIB);
    let_go(f, dedicated(f, 1000));
    let_go(f, dedicated(f, 900));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    quire_allocation first =
        dedicated(f, 1025); /* there is room, but a larger page was requested */
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 2);
    let_go(f, first);
}

UNIT_PREPARED(empty_dedicated, a_dedicated_page_is_reused_at_another_alignment, f)
{
    f->fake.address_step = f->fake.info.limits.page_alignment = 256;
    fixture_open(f, &(quire_memory_options){.pages.page_size = PAGE});
    quire_allocation own = ALLOCATE(f, .size = 64 * KIB, .alignment = 4096, .dedicated = true);
    CHECK_EQ(fixture_info(f, own).address % 4096, 0);
    let_go(f, own);
    own = ALLOCATE(f, .size = 64 * KIB, .alignment = 1024, .dedicated = true);
    CHECK_EQ(fixture_info(f, own).address % 1024, 0);
    CHECK(fixture_info(f, own).left_padding < 1024);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_OK(quire_memory_check(f->memory));
}

/* ---- short-lived allocations ---------------------------------------------------------------- */

/* Allocates and frees 640 MiB in pieces of 16 MiB. */
static void play_frame(fixture *f)
{
    quire_allocation piece[40];
    for (int i = 0; i < 40; i++)
        piece[i] = ALLOCATE(f, .size = 16 * MIB);
    for (int i = 0; i < 40; i++)
        CHECK_OK(quire_free(f->memory, piece[i]));
}

UNIT_MEMORY(empty_dedicated, transients_of_each_frame_cost_no_backend_call, f,
            .pages.page_size = 32 * MIB)
{
    play_frame(f);
    uint64_t calls = f->fake.fallible_calls, pages = f->fake.pages;
    CHECK_EQ(pages * 32 * MIB, 640 * MIB);
    for (int frame = 1; frame < 100; frame++)
        play_frame(f);
    CHECK_EQ(f->fake.fallible_calls, calls);
    CHECK_EQ(fixture_stats(f).pages_destroyed, 0);
}

UNIT_MEMORY(empty_dedicated, a_repeated_large_dedicated_allocation_creates_one_page, f, 0)
{
    for (int i = 0; i < 200; i++)
        CHECK_OK(quire_free(f->memory, dedicated(f, 200 * MIB)));
    CHECK_EQ(f->fake.fallible_calls, 2); /* describe, create */
    CHECK_EQ(fixture_stats(f).pages_created, 1);
    CHECK_EQ(fixture_stats(f).pages_destroyed, 0);
}
