/*
 * elastic_shrink.c - the page of an elastic memory releases its free end: by a trim, a lower limit,
 * and before others lack memory.
 */
#include "tests/support/elastic_page.h"

#define CASE(name) UNIT_ON(elastic_shrink, name, fixture, f, make(f), fixture_end)

/* ---- shrinking ------------------------------------------------------------------------------ */

CASE(a_trim_releases_the_free_end)
{
    uint64_t released = 0;
    ALLOCATE(f, .size = 40 * KIB);
    quire_allocation second = ALLOCATE(f, .size = 80 * KIB);
    CHECK_OK(quire_free(f->memory, second));
    expect_page(f, 128 * KIB);
    CHECK_OK(quire_memory_trim(f->memory, 50 * KIB, &released));
    CHECK_EQ(released, 38 * KIB);
    expect_page(f, 90 * KIB);
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 50 * KIB);
    expect_page(f, 40 * KIB);
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 0);
    CHECK_EQ(fixture_info(f, ALLOCATE(f, .size = 8 * KIB)).offset, 40 * KIB);
}

CASE(an_allocation_at_the_end_keeps_the_free_range_before_it)
{
    uint64_t released = 1;
    quire_allocation low = ALLOCATE(f, .size = 60 * KIB);
    ALLOCATE(f, .size = 60 * KIB);
    CHECK_OK(quire_free(f->memory, low));
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 8 * KIB);
    expect_page(f, 120 * KIB);
}

CASE(the_empty_page_is_destroyed_and_another_is_created)
{
    uint64_t released = 0;
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 100 * KIB)));
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 100 * KIB);
    CHECK_EQ(f->fake.pages, 0);
    CHECK_EQ(stats_of(f).reserved_bytes, 0);
    ALLOCATE(f, .size = 10 * KIB);
    expect_page(f, PAGE);
}

CASE(the_free_end_is_released_before_others_lack_memory)
{
    f->fake.page_budget = 200 * KIB;
    ALLOCATE(f, .size = 20 * KIB);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 150 * KIB)));
    ALLOCATE(f, .size = 180 * KIB, .dedicated = true);
    CHECK_EQ(f->fake.page_bytes, 200 * KIB);
    stats_of(f);
}

CASE(a_lower_limit_releases_the_free_end)
{
    ALLOCATE(f, .size = 40 * KIB);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 80 * KIB)));
    CHECK_OK(quire_memory_set_limit(f->memory, 50 * KIB));
    expect_page(f, 40 * KIB);
}

CASE(preallocated_bytes_are_at_its_end)
{
    CHECK_OK(quire_memory_preallocate(f->memory, 300 * KIB));
    expect_page(f, 5 * PAGE);
    ALLOCATE(f, .size = 20 * KIB);
    quire_allocation other = ALLOCATE(f, .size = 10 * KIB, .dedicated = true);
    CHECK_EQ(f->fake.page_bytes,
             310 * KIB); /* the rest of its free end was released for the other page */
    CHECK_OK(quire_free(f->memory, other));
    uint64_t resizes = f->fake.calls[FAKE_PAGE_RESIZE];
    ALLOCATE(f, .size = 280 * KIB);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_RESIZE], resizes);
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_EQ(stats_of(f).reserved_bytes, 300 * KIB);
}
