/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_linear.c - memories with the linear fit: one shared page, used as a stack or a ring, and
 * dedicated ones beside it.
 */
#include "tests/support/fixture.h"

enum { PAGE = 65536 };

static void make(fixture *b, quire_memory_flags flags)
{
    fixture_prepare(b);
    fixture_open(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR,
                                            .kind.required = flags,
                                            .pages = {.page_size = PAGE}});
}

static quire_allocation take(fixture *b, uint64_t size)
{
    return ALLOCATE(b, .size = size);
}

static void give(fixture *b, quire_allocation allocation)
{
    CHECK_OK(quire_free(b->memory, allocation));
    CHECK_OK(quire_memory_check(b->memory));
}

static uint64_t offset_of(fixture *b, quire_allocation allocation)
{
    quire_allocation_info info = fixture_info(b, allocation);
    CHECK(!info.dedicated);
    CHECK_EQ(info.page, 0);
    return info.offset;
}

#define CASE(name, ...) UNIT_ON(page_linear, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

CASE(the_shared_page_is_a_ring, QUIRE_HOST_VISIBLE)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b->memory, &info));
    CHECK_EQ(info.fit, QUIRE_FIT_LINEAR);
    CHECK_EQ(info.granule, 1);
    quire_allocation first = take(b, 30000), second = take(b, 30000);
    CHECK_EQ(offset_of(b, first), 0);
    CHECK_EQ(offset_of(b, second), 30000);
    give(b, first);
    quire_allocation third = take(b, 20000);
    CHECK_EQ(offset_of(b, third), 0);
    quire_page_info page;
    CHECK_OK(quire_page_get_info(b->memory, 0, &page));
    CHECK_EQ(page.free_bytes, PAGE - 50000);
    CHECK_EQ(page.largest_free, 10000);
    quire_allocation fourth = take(b, 5000);
    give(b, third); /* the gap of 20000 before it is not reusable yet */
    CHECK_OK(quire_page_get_info(b->memory, 0, &page));
    CHECK_EQ(page.largest_free, PAGE - 60000);
    give(b, second);
    give(b, fourth);
    CHECK_EQ(offset_of(b, take(b, PAGE)), 0);
    CHECK_EQ(b->fake.pages, 1);
}

CASE(a_full_page_refuses_with_a_message, QUIRE_HOST_VISIBLE)
{
    quire_allocation low = take(b, PAGE / 2);
    take(b, PAGE / 2);
    ALLOCATE_FAILS(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    CHECK_HAS(quire_last_error(), "has 1 shared page and cannot have another");
    CHECK_HAS(quire_last_error(), ": largest free range 0 B");
    CHECK_EQ(b->fake.pages, 1);
    give(b, low);
    CHECK_EQ(offset_of(b, take(b, PAGE / 2)), 0);
}

CASE(a_request_larger_than_the_page_gets_a_dedicated_page, 0)
{
    quire_allocation large = take(b, PAGE + 1), small = take(b, 100);
    CHECK(fixture_info(b, large).dedicated);
    CHECK(!fixture_info(b, small).dedicated);
    quire_allocation whole = take(b, PAGE + 1);
    CHECK(fixture_info(b, whole).dedicated);
    CHECK(fixture_info(b, ALLOCATE(b, .size = 10, .dedicated = true)).dedicated);
    CHECK_EQ(b->fake.pages, 4);
    give(b, small);
    CHECK(!fixture_info(b, take(b, PAGE)).dedicated);
    give(b, large);
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK_EQ(b->fake.pages, 3);
}

CASE(the_page_is_destroyed_and_created_again, QUIRE_HOST_VISIBLE)
{
    for (int i = 0; i < 3; i++) {
        uint64_t released = 0;
        quire_allocation a = take(b, 100);
        CHECK_EQ(offset_of(b, a), 0);
        CHECK_OK(quire_memory_trim(b->memory, 0, &released));
        CHECK_EQ(released, 0);
        give(b, a);
        CHECK_OK(quire_memory_trim(b->memory, 0, &released));
        CHECK_EQ(released, PAGE);
        CHECK_EQ(b->fake.pages, 0);
    }
}

CASE(a_page_made_smaller_by_a_lack_of_memory_is_replaced_by_a_larger_one, 0)
{
    b->fake.page_budget = PAGE / 2;
    quire_allocation a = take(b, 1000);
    CHECK_EQ(b->fake.page_bytes, PAGE / 2);
    ALLOCATE_FAILS(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE);
    b->fake.page_budget = 0;
    give(b, a);
    CHECK_EQ(offset_of(b, take(b, PAGE)), 0);
    CHECK_EQ(b->fake.page_bytes, PAGE);
}

/* The page is aligned to 64 and not more. */
UNIT_PREPARED(page_linear, alignment_holds_at_the_native_address, b)
{
    b->fake.address_step = 64;
    b->fake.info.limits.page_alignment = 64;
    fixture_open(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR,
                                            .pages = {.page_size = PAGE}});
    for (uint64_t alignment = 1; alignment <= 4096; alignment *= 4) {
        quire_allocation_info info =
            fixture_info(b, ALLOCATE(b, .size = 3, .alignment = alignment));
        CHECK_EQ(info.address % alignment, 0);
    }
}

/* ---- the upper end -------------------------------------------------------------------------- */

CASE(the_shared_page_is_two_stacks, 0)
{
    quire_allocation low = take(b, 30000), high = ALLOCATE(b, .size = 20000, .upper = true),
                     next = ALLOCATE(b, .size = 10000, .upper = true, .name = "next"), none;
    CHECK_EQ(offset_of(b, low), 0);
    CHECK_EQ(offset_of(b, high), PAGE - 20000);
    CHECK_EQ(offset_of(b, next), PAGE - 30000);
    quire_allocation_options options = {.size = 10000, .upper = true};
    CHECK_FAILS(quire_allocate(b->memory, &options, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    give(b, next);
    quire_allocation two[2];
    options.size = 5000;
    CHECK_OK(quire_allocate_batch(b->memory, &options, two, 2));
    CHECK_EQ(offset_of(b, two[0]), PAGE - 25000);
    CHECK_EQ(offset_of(b, two[1]), PAGE - 30000);
    give(b, high); /* the gap stays until the later ones are freed */
    give(b, two[1]);
    give(b, two[0]);
    CHECK_EQ(offset_of(b, ALLOCATE(b, .size = 35536, .upper = true)), 30000);
}

UNIT_PREPARED(page_linear, an_upper_end_that_does_not_exist_is_refused, b)
{
    quire_memory *other;
    quire_allocation none;
    quire_stream *stream;
    const quire_allocation_options upper = {.size = 100, .upper = true};
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    fake_offer_streams(&b->fake);
    fixture_open(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR});
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    CHECK_OK(quire_memory_create(b->device, NULL, &other));
    ALLOCATE_FAILS(b, invalid, .size = 100, .upper = true, .stream = stream);
    ALLOCATE_FAILS(b, invalid, .size = 100, .upper = true, .dedicated = true);
    fixture_allocate(b, &upper);
    CHECK_FAILS(quire_allocate(other, &upper, &none), invalid);
    CHECK_HAS(quire_last_error(), "upper end");
    CHECK_FAILS(quire_reserve(other, &upper, &none), invalid);
    CHECK_FAILS(quire_allocate_batch(other, &upper, &none, 1), invalid);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_memory_destroy(&other));
}
