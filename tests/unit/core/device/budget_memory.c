/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget_memory.c - limits of the number of pages of a device and of the bytes of a memory, and
 * pages that turn out larger than requested.
 */
#include "tests/support/budget.h"

UNIT_PREPARED(budget_memory, the_callers_page_limit_holds_beside_the_backends, b)
{
    b->fake.info.limits.max_pages = 3;
    fixture_open(b, &(quire_memory_options){.pages = POLICY});
    CHECK_OK(quire_device_set_page_limit(b->device, 2));
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = 1, .dedicated = true);
    REFUSE(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    REFUSE(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1, .dedicated = true);
    CHECK_HAS(quire_last_error(),
              "a new page would exceed the device's limit of 2 pages (2 in use)");
    CHECK_OK(quire_device_set_page_limit(b->device, 10));
    ALLOCATE(b, .size = PAGE);
    REFUSE(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    CHECK_HAS(quire_last_error(),
              "a new page would exceed the device's limit of 3 pages (3 in use)");
    CHECK_OK(quire_device_set_page_limit(b->device, 1)); /* below what there is */
    REFUSE(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
}

/* ---- memories ----------------------------------------------------------------------------- */

UNIT_MEMORY(budget_memory, a_memorys_limit_holds_for_its_pages, b, .name = "weights",
            .limit = PAGE + PAGE / 2, .pages = POLICY)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b->memory, &info));
    CHECK_EQ(info.limit, PAGE + PAGE / 2);
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(page_size(b, ALLOCATE(b, .size = 100)), PAGE / 2);
    REFUSE(b, OVER, .size = PAGE);
    REFUSE(b, OVER, .size = 256, .dedicated = true);
    CHECK_HAS(quire_last_error(),
              "would exceed the 96 KiB limit of memory 'weights' (96 KiB in use)");
    CHECK_OK(quire_memory_set_limit(b->memory, 2 * PAGE));
    ALLOCATE(b, .size = PAGE / 2, .dedicated = true);
    CHECK_OK(quire_memory_set_limit(b->memory, 0));
    CHECK_OK(quire_memory_get_info(b->memory, &info));
    CHECK_EQ(info.limit, 0);
    ALLOCATE(b, .size = 4 * PAGE);
}

UNIT_PREPARED(budget_memory, a_memorys_limit_may_be_a_share_of_its_heap, b)
{
    b->fake.info.heaps[0].size = 4 * PAGE + 8;
    fixture_open(b, &(quire_memory_options){.limit = QUIRE_PERCENT_OF_HEAP(50), .pages = POLICY});
    const struct {
        uint64_t given, limit;
    } cases[] = {{QUIRE_PERCENT_OF_HEAP(50), 2 * PAGE + 4},
                 {QUIRE_PERCENT_OF_HEAP(1), PAGE / 25},
                 {QUIRE_PERCENT_OF_HEAP(100), 4 * PAGE + 8},
                 {PAGE, PAGE},
                 {QUIRE_PERCENT_OF_HEAP(0) - 1, QUIRE_PERCENT_OF_HEAP(0) - 1},
                 {UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_memory *memory = NULL;
        quire_memory_info info;
        CHECK_OK(quire_memory_create(b->device, &(quire_memory_options){.limit = cases[i].given},
                                     &memory));
        CHECK_OK(quire_memory_get_info(memory, &info));
        CHECK_EQ(info.limit, cases[i].limit);
        CHECK_OK(quire_memory_set_limit(memory, 7));
        CHECK_OK(quire_memory_set_limit(memory, cases[i].given));
        CHECK_OK(quire_memory_get_info(memory, &info));
        CHECK_EQ(info.limit, cases[i].limit);
        CHECK_FAILS(quire_memory_set_limit(memory, QUIRE_PERCENT_OF_HEAP(101)),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_OK(quire_memory_destroy(&memory));
    }
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE);
    REFUSE(b, OVER, .size = PAGE);
}

UNIT_ON(budget_memory, a_memorys_limit_does_not_apply_to_others, fixture, b, make(b), fixture_end)
{
    quire_memory *other = NULL;
    quire_allocation made;
    CHECK_OK(quire_memory_create(b->device, &(quire_memory_options){.limit = PAGE, .pages = POLICY},
                                 &other));
    for (int i = 0; i < 3; i++)
        ALLOCATE(b, .size = PAGE);
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = PAGE}, &made));
    CHECK_FAILS(quire_allocate(other, &(quire_allocation_options){.size = 1}, &made), OVER);
    quire_memory_destroy_all(&other);
}

UNIT_ON(budget_memory, a_memory_with_a_lower_limit_destroys_its_empty_pages_at_once, fixture, b,
        make(b), fixture_end)
{
    quire_allocation made[4];
    for (int i = 0; i < 4; i++)
        made[i] = ALLOCATE(b, .size = PAGE);
    for (int i = 1; i < 4; i++)
        CHECK_OK(quire_free(b->memory, made[i]));
    CHECK_OK(quire_memory_set_limit(b->memory, 4 * PAGE));
    CHECK_EQ(b->fake.pages, 4);
    CHECK_OK(quire_memory_set_limit(b->memory, 3 * PAGE));
    CHECK_EQ(b->fake.pages, 3);
    CHECK_OK(quire_memory_set_limit(b->memory, PAGE / 2)); /* the first page is in use */
    CHECK_EQ(b->fake.pages, 1);
    REFUSE(b, OVER, .size = 1);
    CHECK_OK(quire_free(b->memory, made[0]));
    ALLOCATE(b, .size = PAGE); /* the existing page */
    CHECK_OK(quire_memory_set_limit(b->memory, 0));
    CHECK_EQ(b->fake.pages, 1);
}

/* ---- pages that turn out larger ----------------------------------------------------------- */

enum { ROUNDED = 100000 };

UNIT_ON(budget_memory, bytes_beyond_the_requested_page_size_count, fixture, b, make_strict(b, 0, 0),
        fixture_end)
{
    b->fake.page_rounding = ROUNDED;
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 2 * ROUNDED));
    CHECK_OK(quire_memory_set_limit(b->memory, 2 * ROUNDED));
    ALLOCATE(b, .size = 1, .dedicated = true);
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(budget_of(b, 0).reserved, 2 * ROUNDED);
    CHECK_EQ(budget_of(b, 0).available, 0);
    REFUSE(b, OVER, .size = PAGE);
}

UNIT_EACH(budget_memory, a_page_that_turns_out_too_large_is_destroyed, fixture, b, by, 0, 3,
          make_strict(b, by == 0 ? ROUNDED - 1 : 0, 0), fixture_end)
{
    b->fake.page_rounding = ROUNDED;
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, by == 1 ? ROUNDED - 1 : 0));
    CHECK_OK(quire_memory_set_limit(b->memory, by == 2 ? ROUNDED - 1 : 0));
    REFUSE(b, OVER, .size = PAGE);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 1);
    REFUSE(b, OVER, .size = PAGE, .dedicated = true);
    REFUSE(b, OVER, .size = 1); /* each smaller page turns out as large */
    CHECK_EQ(b->fake.pages, 0);
    CHECK_EQ(budget_of(b, 0).reserved, 0);
    fake_set_budget(&b->fake, 0, 0, 0);
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 0));
    CHECK_OK(quire_memory_set_limit(b->memory, 0));
    ALLOCATE(b, .size = PAGE);
}

UNIT_ON(budget_memory, a_refusal_of_the_larger_page_is_none_by_the_backend, fixture, b,
        make_strict(b, ROUNDED - 1, 0), fixture_end)
{
    b->fake.page_rounding = ROUNDED;
    REFUSE(b, OVER, .size = 1);
    b->fake.page_rounding = 0;
    fake_set_budget(&b->fake, 0, 0, 0);
    CHECK_EQ(page_size(b, ALLOCATE(b, .size = 1)), PAGE); /* no size counts as refused */
}

/* The bytes of the page that is destroyed are available to the next size. */
UNIT_EACH(budget_memory, the_largest_half_that_fits_follows_a_page_that_turned_out_too_large,
          fixture, b, by, 0, 3, make_strict(b, by == 0 ? PAGE : 0, 0), fixture_end)
{
    b->fake.page_rounding = 3 * PAGE / 8; /* a page of 8 eighths has 9, one of 4 has 6 */
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, by == 1 ? PAGE : 0));
    CHECK_OK(quire_memory_set_limit(b->memory, by == 2 ? PAGE : 0));
    CHECK_EQ(page_size(b, ALLOCATE(b, .size = 1)), 3 * PAGE / 4);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
}
