/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_fault.c - pages that cannot be created as requested: a backend with too little memory, one
 * that fails to create or map a page, one that violates its contract, and exhausted host memory.
 */
#include <stdio.h>

#include "tests/support/fixture.h"

enum { PAGE = 65536 };

/* A memory with small pages, host-visible or not. */
static void open_prepared(fixture *b, quire_memory_flags flags, uint64_t page_size)
{
    quire_memory_options options = {.kind.required = flags, .pages = {.page_size = page_size}};
    fixture_open(b, &options);
}

static void make(fixture *b, quire_memory_flags flags)
{
    fixture_prepare(b);
    open_prepared(b, flags, PAGE);
}

static uint64_t page_size(fixture *b, uint32_t page)
{
    quire_page_info info;
    CHECK_OK(quire_page_get_info(b->memory, page, &info));
    return info.size;
}

/* The allocation fails with this code and leaves nothing of the page. */
static void expect_nothing_left(fixture *b, const quire_allocation_options *options,
                                quire_result code)
{
    quire_memory_stats before = fixture_stats(b);
    quire_allocation none = {1};
    CHECK_FAILS(quire_allocate(b->memory, options, &none), code);
    CHECK_EQ(none.id, 0);
    quire_memory_stats after = fixture_stats(b);
    CHECK_EQ(after.page_count, before.page_count);
    CHECK_EQ(after.reserved_bytes, before.reserved_bytes);
    CHECK_EQ(after.allocation_count, before.allocation_count);
    CHECK_EQ(after.failures, before.failures + 1);
    CHECK_EQ(b->fake.pages, before.page_count);
    quire_device_stats device;
    CHECK_OK(quire_device_get_stats(b->device, &device));
    CHECK_EQ(device.page_count, before.page_count);
    CHECK_EQ(device.reserved_bytes, before.reserved_bytes);
    CHECK_OK(quire_memory_check(b->memory));
}

#define CASE(name, ...) UNIT_ON(page_fault, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

/* ---- too little memory -------------------------------------------------------------------- */

CASE(a_smaller_page_is_created_if_the_backend_has_too_little, QUIRE_DEVICE_LOCAL)
{
    b->fake.page_budget = PAGE / 4;
    ALLOCATE(b, .size = 1000);
    CHECK_EQ(page_size(b, 0), PAGE / 4);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 3);
    b->fake.page_budget = 0;
    CHECK_OK(quire_memory_set_limit(b->memory, 0)); /* forgets the refused size */
    ALLOCATE(b, .size = PAGE /
                        4); /* the policy continues from its own size, not from the created one */
    CHECK_EQ(page_size(b, 1), PAGE);
}

CASE(a_page_becomes_no_smaller_than_its_request, QUIRE_DEVICE_LOCAL)
{
    b->fake.page_budget = 1024;
    expect_nothing_left(b, &(quire_allocation_options){.size = 5000},
                        QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(quire_last_native_code(), -7);
    CHECK_HAS(quire_last_error(), "the fake is full");
    CHECK_HAS(quire_last_error(),
              "cannot allocate 4.88 KiB: the fake is full; memory 'memory' (kind 0");
    CHECK(b->fake.last_page.size >= 5120);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 5); /* 64, 32, 16, 8 and 5 KiB */
}

CASE(a_request_is_not_refused_if_the_backend_has_enough_for_it, QUIRE_DEVICE_LOCAL)
{
    b->fake.page_budget = 30 * 1024; /* a page of 32 KiB is too large, one of 16 KiB too small */
    ALLOCATE(b, .size = 20 * 1024);
    CHECK(page_size(b, 0) >= 20 * 1024);
}

CASE(other_failures_are_not_retried, QUIRE_DEVICE_LOCAL)
{
    fake_fail(&b->fake, 1, false, QUIRE_ERROR_DEVICE_LOST);
    expect_nothing_left(b, &(quire_allocation_options){.size = 100}, QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(b->fake.fallible_calls, 1);
    CHECK_EQ(quire_last_native_code(), -13);
    CHECK_HAS(quire_last_error(), "fake failure 1");
}

CASE(a_request_that_fits_a_page_is_served_after_the_refusal, QUIRE_DEVICE_LOCAL)
{
    quire_allocation largest = ALLOCATE(b, .size = PAGE - 1024);
    fake_fail(&b->fake, 1, true, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    expect_nothing_left(b, &(quire_allocation_options){.size = 2048},
                        QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), ": largest free range 1 KiB of 1 KiB free in 1 page");
    ALLOCATE(b, .size = 1024);
    CHECK_OK(quire_free(b->memory, largest));
    ALLOCATE(b, .size = 2048);
}

UNIT_PREPARED(page_fault, each_size_requested_from_the_backend_is_a_multiple_of_its_granularity, b)
{
    b->fake.info.limits.page_granularity = 4096;
    open_prepared(b, QUIRE_DEVICE_LOCAL, 3 * 4096);
    b->fake.page_budget = 4096;
    ALLOCATE(b, .size = 100);
    CHECK_EQ(page_size(b, 0), 4096); /* half of three is one */
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
}

/* ---- failing to map ----------------------------------------------------------------------- */

CASE(a_page_that_cannot_be_mapped_is_destroyed, QUIRE_HOST_VISIBLE)
{
    fake_fail(&b->fake, 2, false, QUIRE_ERROR_NOT_PERMITTED); /* create, map */
    expect_nothing_left(b, &(quire_allocation_options){.size = 100}, QUIRE_ERROR_NOT_PERMITTED);
    CHECK_EQ(quire_last_native_code(), -13);
    CHECK_HAS(quire_last_error(), "fake failure 2");
    expect_nothing_left(b, &(quire_allocation_options){.size = UINT64_C(1) << 31},
                        QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    ALLOCATE(b, .size = 100); /* D9: it can be mapped later */
    CHECK_EQ(b->fake.maps, 1);
}

static quire_result map_to_null(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    (void)page;
    *pointer = NULL;
    return QUIRE_SUCCESS;
}

UNIT_PREPARED(page_fault, a_page_mapped_to_null_is_a_backend_failure, b)
{
    b->fake.table.map = map_to_null;
    open_prepared(b, QUIRE_HOST_VISIBLE, PAGE);
    expect_nothing_left(b, &(quire_allocation_options){.size = 100}, QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_HAS(quire_last_error(), "mapped a page to NULL");
}

/* ---- answers that violate the contract --------------------------------------------------- */

static quire_result answer;

static quire_result create_answering(void *state, const quire_page_request *request,
                                     quire_native_page *page)
{
    (void)state;
    (void)request;
    (void)page;
    return answer;
}

UNIT(page_fault, an_answer_that_breaks_the_contract_is_a_backend_failure)
{
    const quire_result answers[] = {(quire_result)5, (quire_result)-77, QUIRE_ERROR_STALE_HANDLE,
                                    QUIRE_ERROR_NO_SPACE, QUIRE_ERROR_OUT_OF_RANGE};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        fixture b;
        fixture_prepare(&b);
        b.fake.table.page_create = create_answering;
        answer = answers[i];
        open_prepared(&b, QUIRE_DEVICE_LOCAL, PAGE);
        expect_nothing_left(&b, &(quire_allocation_options){.size = 100},
                            QUIRE_ERROR_BACKEND_FAILURE);
        CHECK_EQ(quire_last_native_code(), (int64_t)answers[i]);
        CHECK_HAS(quire_last_error(), "which a backend must not");
        fixture_end(&b);
    }
}

UNIT_PREPARED(page_fault, a_failure_without_a_reason_is_reported_as_such, b)
{
    b->fake.table.page_create = create_answering;
    answer = QUIRE_ERROR_NOT_PERMITTED;
    open_prepared(b, QUIRE_DEVICE_LOCAL, PAGE);
    expect_nothing_left(b, &(quire_allocation_options){.size = 100}, QUIRE_ERROR_NOT_PERMITTED);
    CHECK_HAS(quire_last_error(), "backend fake failed and gave no reason");
}

UNIT_PREPARED(page_fault, no_page_is_created_without_addresses_on_the_line, b)
{
    fixture_open(b, &(quire_memory_options){.fit = {.algorithm = QUIRE_FIT_SEGREGATED,
                                                    .granule = 1,
                                                    .max_alignment = UINT64_C(1) << 30},
                                            .pages = {.page_size = 1 << 20}});
    quire_allocation allocation;
    quire_allocation_options options = {.size = 1 << 20};
    while (!quire_allocate(b->memory, &options, &allocation))
        CHECK(b->fake.pages < 5000);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_OUT_OF_RANGE);
    uint64_t calls = b->fake.calls[FAKE_PAGE_CREATE];
    options.size = UINT64_C(1) << 30;
    expect_nothing_left(b, &options, QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "of a memory with granule 1");
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], calls);
}

UNIT_PREPARED(page_fault, empty_pages_release_their_addresses_on_the_line_first, b)
{
    enum { COUNT = 4 };
    const uint64_t gib = UINT64_C(1) << 30;
    fixture_open(b, &(quire_memory_options){.fit = {.granule = 1, .max_alignment = gib},
                                            .pages = {.page_size = 1 << 20}});
    quire_allocation small[COUNT];
    for (int i = 0; i < COUNT; i++) /* one page each, 1 GiB apart: they use up the address line */
        small[i] = ALLOCATE(b, .size = 1 << 20);
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_free(b->memory, small[i]));
    CHECK_EQ(b->fake.pages, COUNT);
    ALLOCATE(b, .size = gib);
    CHECK_EQ(b->fake.pages, 1);
}

/* ---- sizes other than requested ----------------------------------------------------------- */

static quire_result (*real_page_create)(void *, const quire_page_request *, quire_native_page *);

static int64_t more; /* bytes than requested */

static quire_result create_other(void *state, const quire_page_request *request,
                                 quire_native_page *page)
{
    quire_page_request other = *request;
    other.size += (uint64_t)more;
    return real_page_create(state, &other, page);
}

static void open_with_others(fixture *b, int64_t by)
{
    more = by;
    real_page_create = b->fake.table.page_create;
    b->fake.table.page_create = create_other;
    open_prepared(b, QUIRE_DEVICE_LOCAL, PAGE);
}

UNIT_PREPARED(page_fault, a_page_smaller_than_requested_is_a_backend_failure, b)
{
    open_with_others(b, -256);
    expect_nothing_left(b, &(quire_allocation_options){.size = 100}, QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_HAS(quire_last_error(), "63.75 KiB where 64 KiB were requested");
}

UNIT_PREPARED(page_fault, a_page_larger_than_requested_is_used_up_to_whole_granules, b)
{
    open_with_others(b, 1000);
    ALLOCATE(b, .size = PAGE + 768);
    ALLOCATE(b, .size = PAGE - 256);
    ALLOCATE(b, .size = 1024); /* the rest of the second page */
    CHECK_EQ(b->fake.pages, 2);
    CHECK_EQ(page_size(b, 1), PAGE + 1000);
    CHECK_EQ(fixture_stats(b).reserved_bytes, b->fake.page_bytes);
}

/* ---- successes ---------------------------------------------------------------------------- */

CASE(a_failure_on_the_way_to_a_success_is_not_the_threads_last_error, QUIRE_DEVICE_LOCAL)
{
    ALLOCATE_FAILS(b, QUIRE_ERROR_INVALID_ARGUMENT, .alignment = 3);
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", quire_last_error());
    b->fake.page_budget = PAGE / 2;
    ALLOCATE(b, .size = 1000); /* no free range, and no page of the preferred size */
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
    ALLOCATE(b, .size = 100, .alignment = 4096);
    b->fake.page_budget = 0;
    ALLOCATE(b, .size = 100, .dedicated = true);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(quire_last_native_code(), 0);
    CHECK_STR(quire_last_error(), sentence);
}

CASE(the_number_of_a_page_that_cannot_be_created_is_reused, QUIRE_DEVICE_LOCAL)
{
    ALLOCATE(b, .size = PAGE);
    fake_fail(&b->fake, 1, true, QUIRE_ERROR_NOT_PERMITTED);
    expect_nothing_left(b, &(quire_allocation_options){.size = PAGE}, QUIRE_ERROR_NOT_PERMITTED);
    expect_nothing_left(b, &(quire_allocation_options){.size = PAGE}, QUIRE_ERROR_NOT_PERMITTED);
    fake_fail(&b->fake, 0, false, QUIRE_SUCCESS);
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = PAGE)).page, 1);
}
