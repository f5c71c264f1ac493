/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.c - the pages of a memory: their numbers, sizes and limits, when empty ones are kept and
 * destroyed, their statistics, and what the backend receives when one is created. Dedicated and
 * weakly aligned pages are in page_dedicated.c and page_address.c, failures in page_fault.c.
 */
#include "src/core/state/memory.h"
#include "tests/support/fixture.h"
#include "src/core/page/life.h"

enum { PAGE = 4096 };

static void open_prepared(fixture *b, quire_page_policy pages)
{
    quire_memory_options options = {.name = "weights", .pages = pages};
    fixture_open(b, &options);
}

static void make(fixture *b, quire_page_policy pages)
{
    fixture_prepare(b);
    open_prepared(b, pages);
}

static uint32_t page_of(fixture *b, quire_allocation allocation)
{
    return fixture_info(b, allocation).page;
}

static quire_page_info page_info(fixture *b, uint32_t page)
{
    quire_page_info info;
    CHECK_OK(quire_page_get_info(b->memory, page, &info));
    CHECK_EQ(info.page, page);
    return info;
}

static void expect_no_page(fixture *b, uint32_t page)
{
    quire_page_info info = {.size = 1};
    CHECK_FAILS(quire_page_get_info(b->memory, page, &info), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(info.size, 0);
}

static void expect_refused(fixture *b, uint64_t size, quire_result code, const char *says)
{
    ALLOCATE_FAILS(b, code, .size = size);
    CHECK_HAS(quire_last_error(), says);
}

#define CASE(name, ...) UNIT_ON(page, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

/* ---- numbers ------------------------------------------------------------------------------ */

CASE(numbers_are_stable_and_the_lowest_free_one_is_reused, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation full[4];
    for (uint32_t i = 0; i < 4; i++) {
        full[i] = ALLOCATE(b, .size = PAGE);
        CHECK_EQ(page_of(b, full[i]), i);
    }
    CHECK_OK(quire_free(b->memory, full[1]));
    CHECK_OK(quire_free(b->memory, full[2]));
    CHECK_EQ(page_info(b, 1).size, PAGE); /* retained */
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    expect_no_page(b, 1);
    expect_no_page(b, 2);
    CHECK_EQ(page_of(b, full[3]), 3);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = PAGE)), 1);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = PAGE)), 2);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = PAGE)), 4);
    expect_no_page(b, 5);
    expect_no_page(b, UINT32_MAX);
    CHECK_HAS(quire_last_error(), "no page 4294967295");
}

CASE(shared_and_dedicated_pages_count_in_one_row,
     (quire_page_policy){.page_size = PAGE, .dedicated_threshold = 2048})
{
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 100)), 0);
    quire_allocation dedicated = ALLOCATE(b, .size = 2048);
    CHECK_EQ(page_of(b, dedicated), 1);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 2047)), 0);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 2047)), 2);
    CHECK_OK(quire_free(b->memory, dedicated));
    for (int i = 0; i < 2; i++)
        CHECK_EQ(page_of(b, ALLOCATE(b, .size = 1792)), i ? 2 : 0);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 512)),
             1); /* a shared page with the number of the dedicated one */
}

CASE(a_shared_page_after_many_dedicated_ones_is_found, (quire_page_policy){.page_size = PAGE})
{
    for (int i = 0; i < 40; i++)
        ALLOCATE(b, .size = 256, .dedicated = true);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 100)), 40);
}

/* ---- sizes -------------------------------------------------------------------------------- */

CASE(a_request_above_the_page_size_gets_a_page_whose_rest_is_shared,
     (quire_page_policy){.page_size = PAGE})
{
    quire_allocation large = ALLOCATE(b, .size = 10000);
    CHECK_EQ(page_info(b, 0).size, 10240); /* rounded up to the granularity */
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 10)), 1);
    CHECK_OK(quire_free(b->memory, large));
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 9000)), 0);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 1000)), 0);
    CHECK_EQ(b->fake.last_page.size, PAGE); /* the next one had the usual size */
}

CASE(the_first_page_and_growth_follow_the_policy,
     (quire_page_policy){
         .page_size = 1024, .first_page_size = 512, .growth_percent = 100, .max_page = 2048})
{
    static const uint64_t sizes[] = {512, 1024, 2048, 2048};
    quire_memory_info info;
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_OK(quire_memory_get_info(b->memory, &info));
        CHECK_EQ(info.page_size, sizes[i]);
        ALLOCATE(b, .size = sizes[i]);
        CHECK_EQ(page_info(b, i).size, sizes[i]);
    }
    CHECK_EQ(fixture_stats(b).reserved_bytes, 5632);
}

CASE(neither_large_nor_dedicated_pages_change_the_growth,
     (quire_page_policy){.page_size = 1024, .growth_percent = 100, .max_page = 8192})
{
    ALLOCATE(b, .size = 256, .dedicated = true);
    ALLOCATE(b, .size = 5000);
    CHECK_EQ(page_info(b, 1).size, 5120); /* instead of the first size, 1024 */
    ALLOCATE(b, .size = 2048);
    CHECK_EQ(page_info(b, 2).size, 2048);
}

UNIT_PREPARED(page, the_devices_largest_page_overrides_the_policy, b)
{
    b->fake.info.limits.max_page = 5000; /* pages of 4864, because the granularity is 256 */
    open_prepared(b, (quire_page_policy){.page_size = 65536});
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b->memory, &info));
    CHECK_EQ(info.page_size, 4864);
    ALLOCATE(b, .size = 100);
    CHECK_EQ(page_info(b, 0).size, 4864);
    ALLOCATE(b, .size = 4864); /* as large as a page */
    expect_refused(b, 4865, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   "4.75 KiB can never fit: the largest page of the device has 4.88 KiB");
}

CASE(more_than_the_heap_is_refused_without_a_backend_call, (quire_page_policy){.page_size = PAGE})
{
    expect_refused(b, (UINT64_C(1) << 30) + 1, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   "(1073741825 bytes) can never fit: the heap of memory kind 0 has 1 GiB in all");
    expect_refused(b, UINT64_MAX, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "1 GiB in all");
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 0);
    CHECK_EQ(fixture_stats(b).failures, 2);
}

/* ---- limits of number --------------------------------------------------------------------- */

CASE(the_policys_page_limit_holds, (quire_page_policy){.page_size = PAGE, .max_pages = 2})
{
    quire_allocation first = ALLOCATE(b, .size = PAGE), second = ALLOCATE(b, .size = 2048);
    expect_refused(b, PAGE, QUIRE_ERROR_TOO_MANY_PAGES,
                   "memory 'weights' has 2 pages, the maximum of its policy");
    CHECK_HAS(quire_last_error(), "cannot allocate 4 KiB: ");
    CHECK_HAS(quire_last_error(), "largest free range 2 KiB of 2 KiB free in 2 pages");
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 2048)), 1); /* a request that fits is still served */
    CHECK_OK(quire_free(b->memory, first));
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 100)), 0);
    CHECK_OK(quire_free(b->memory, second));
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
}

CASE(an_empty_page_is_destroyed_for_one_that_is_large_enough,
     (quire_page_policy){.page_size = PAGE, .max_pages = 1})
{
    CHECK_OK(quire_free(b->memory, ALLOCATE(b, .size = PAGE)));
    ALLOCATE(b, .size = 2 * PAGE);
    CHECK_EQ(page_info(b, 0).size, 2 * PAGE);
    CHECK_EQ(b->fake.pages, 1);
}

UNIT_PREPARED(page, the_devices_page_limit_is_shared_by_its_memories, b)
{
    b->fake.info.limits.max_pages = 3;
    open_prepared(b, (quire_page_policy){.page_size = PAGE});
    quire_memory *other = NULL;
    quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                    .pages = {.page_size = PAGE}};
    CHECK_OK(quire_memory_create(b->device, &options, &other));
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE);
    const quire_allocation_options whole = {.size = PAGE};
    quire_allocation theirs;
    CHECK_OK(quire_allocate(other, &whole, &theirs));
    CHECK_FAILS(quire_allocate(other, &whole, &theirs), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "the device's limit of 3 pages");
    expect_refused(b, PAGE, QUIRE_ERROR_TOO_MANY_PAGES, "the device's limit of 3 pages");
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(b->device, &stats));
    CHECK_EQ(stats.page_count, 3);
    quire_memory_destroy_all(&other);
    ALLOCATE(b, .size = PAGE);
}

UNIT_PREPARED(page, more_pages_than_a_limit_that_is_advice, b)
{
    b->fake.info.limits.max_pages = 1;
    b->fake.info.limits.max_pages_is_advice = true;
    open_prepared(b, (quire_page_policy){.page_size = PAGE});
    for (int i = 0; i < 3; i++)
        ALLOCATE(b, .size = PAGE);
    CHECK_OK(quire_device_set_page_limit(b->device, 4)); /* the caller's own is none */
    ALLOCATE(b, .size = PAGE);
    expect_refused(b, PAGE, QUIRE_ERROR_TOO_MANY_PAGES, "the device's limit of 4 pages");
}

/* ---- empty pages -------------------------------------------------------------------------- */

CASE(all_empty_pages_are_released_when_a_page_must_be_created,
     (quire_page_policy){.page_size = PAGE})
{
    quire_allocation full[3];
    for (int i = 0; i < 3; i++)
        full[i] = ALLOCATE(b, .size = PAGE);
    CHECK_OK(quire_free(b->memory, full[0]));
    CHECK_OK(quire_free(b->memory, full[2]));
    CHECK_EQ(b->fake.pages, 3);
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = PAGE + 1)), 0);
    CHECK_EQ(b->fake.pages, 2);
    expect_no_page(b, 2);
    CHECK_OK(quire_free(b->memory, full[1])); /* likewise for a dedicated page */
    CHECK_EQ(page_of(b, ALLOCATE(b, .size = 256, .dedicated = true)), 1);
    CHECK_EQ(b->fake.pages, 2);
}

CASE(a_trim_keeps_at_most_its_target_and_the_lowest_numbers, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation full[5];
    for (int i = 0; i < 5; i++)
        full[i] = ALLOCATE(b, .size = PAGE);
    static const int freed[] = {0, 1, 3, 4};
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_free(b->memory, full[freed[i]]));
    uint64_t released = 1;
    CHECK_OK(quire_memory_trim(b->memory, 4 * PAGE, &released));
    CHECK_EQ(released, 0);
    CHECK_OK(quire_memory_trim(b->memory, 3 * PAGE - 1,
                               &released)); /* two pages remain below the target */
    CHECK_EQ(released, 2 * PAGE);
    expect_no_page(b, 4);
    expect_no_page(b, 3);
    CHECK_EQ(page_info(b, 1).size, PAGE);
    CHECK_OK(quire_memory_trim(b->memory, UINT64_MAX, &released));
    CHECK_EQ(released, 0);
    CHECK_OK(quire_memory_trim(b->memory, 0, &released));
    CHECK_EQ(released, 2 * PAGE);
    CHECK_EQ(page_of(b, full[2]), 2);
    CHECK_EQ(b->fake.pages, 1);
}

/* ---- what is reported, and what the backend receives ---------------------------------------- */

static void make_exportable(fixture *b, quire_memory_options options)
{
    fixture_prepare(b);
    b->fake.info.exportable = true;
    fixture_open(b, &options);
}

#define INFO(name, ...)                                                                            \
    UNIT_ON(page, name, fixture, b, make_exportable(b, __VA_ARGS__), fixture_end)

INFO(statistics_follow_the_allocations_and_the_peak_stays,
     (quire_memory_options){.pages = {.page_size = PAGE}})
{
    quire_allocation first = ALLOCATE(b, .size = 1000), second = ALLOCATE(b, .size = 500);
    quire_page_info info = page_info(b, 0);
    CHECK_EQ(info.live_bytes, 1024 + 512);
    CHECK_EQ(info.free_bytes, PAGE - 1536);
    CHECK_EQ(info.largest_free, PAGE - 1536);
    CHECK_EQ(info.allocation_count, 2);
    CHECK_EQ(info.peak_live_bytes, 1536);
    CHECK(!info.dedicated && !info.mappable);
    CHECK_OK(quire_free(b->memory, first));
    info = page_info(b, 0);
    CHECK_EQ(info.live_bytes, 512);
    CHECK_EQ(info.largest_free, PAGE - 1536); /* the free range before it is smaller */
    CHECK_EQ(info.peak_live_bytes, 1536);
    CHECK_OK(quire_free(b->memory, second));
    info = page_info(b, 0);
    CHECK_EQ(info.live_bytes, 0);
    CHECK_EQ(info.largest_free, PAGE);
    CHECK_EQ(info.allocation_count, 0);
    CHECK_EQ(info.peak_live_bytes, 1536);
}

INFO(the_largest_free_range_may_be_anywhere,
     (quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST, .pages = {.page_size = PAGE}})
{
    quire_allocation first = ALLOCATE(b, .size = 800), second = ALLOCATE(b, .size = 1800);
    quire_allocation third = ALLOCATE(b, .size = 700);
    CHECK_EQ(page_info(b, 0).largest_free, 796); /* after it, and smaller than the live ranges */
    CHECK_OK(quire_free(b->memory, first));
    CHECK_EQ(page_info(b, 0).largest_free, 800); /* before it */
    CHECK_OK(quire_free(b->memory, third));
    CHECK_EQ(page_info(b, 0).largest_free, 1496); /* after it again, merged */
    CHECK_OK(quire_free(b->memory, second));
    CHECK_EQ(page_info(b, 0).largest_free, PAGE);
}

INFO(a_new_page_with_an_old_number_starts_a_new_peak,
     (quire_memory_options){.pages = {.page_size = PAGE}})
{
    CHECK_OK(quire_free(b->memory, ALLOCATE(b, .size = PAGE)));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    ALLOCATE(b, .size = 256);
    CHECK_EQ(page_info(b, 0).peak_live_bytes, 256);
}

INFO(a_host_visible_page_is_mappable_and_has_the_backends_addresses,
     (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .pages = {.page_size = PAGE}})
{
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE);
    CHECK(page_info(b, 0).mappable);
    CHECK_EQ(page_info(b, 0).address, UINT64_C(4) << 30);
    CHECK_EQ(page_info(b, 1).address, UINT64_C(8) << 30);
    CHECK_EQ(b->fake.maps, 2); /* mapped at creation */
}

static const quire_intent SHARED = QUIRE_INTENT_HOST_WRITE | QUIRE_INTENT_EXPORT;

INFO(the_backend_receives_the_purpose_of_the_page,
     (quire_memory_options){.name = "frames",
                            .kind.intent = SHARED,
                            .fit.max_alignment = 8192,
                            .pages = {.page_size = PAGE}})
{
    const quire_page_request *request = &b->fake.last_page;
    ALLOCATE(b, .size = 100);
    CHECK_EQ(request->kind, 3);
    CHECK_EQ(request->size, PAGE);
    CHECK_EQ(request->alignment, 8192);
    CHECK_STR(request->label, "frames");
    CHECK(request->exportable && !request->dedicated);
    ALLOCATE(b, .size = 300, .dedicated = true);
    CHECK(request->dedicated);
    CHECK_EQ(request->size, 512);
}

INFO(a_memory_without_that_intent_requests_no_export, (quire_memory_options){0})
{
    ALLOCATE(b, .size = 100);
    CHECK(!b->fake.last_page.exportable);
    CHECK_EQ(b->fake.last_page.alignment, UINT64_C(2) << 20);
    CHECK_EQ(b->fake.last_page.size, UINT64_C(1) << 20);
}

/* ---- waiting for pages of other threads ----------------------------------------------------- */

static bool waits(fixture *f, qi_page_wait *wait)
{
    qi_shard *shard = f->memory->shards[0];
    qi_lock_acquire(&shard->lock);
    bool is_over = !qi_page_wait_for_change(shard, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, wait);
    qi_lock_release(&shard->lock);
    return !is_over;
}

/* A page begun since then may contain released memory. If nothing has changed, none does. */
UNIT_MEMORY(page, a_request_refused_after_a_change_waits_for_all_pages_being_created_then, f, 0)
{
    qi_pages *pages = &f->memory->pages;
    qi_page_wait wait = {.changes = pages->changes};
    pages->changes++; /* after the page was requested, and before it was refused */
    pages->turns = 7;
    CHECK(waits(f, &wait));
    CHECK_EQ(wait.turn, 7);
    wait.changes = pages->changes;
    pages->turns = 9;
    CHECK(!waits(f, &wait)); /* no page is being created */
    CHECK_EQ(wait.turn, 9);
    pages->turns = 10;
    CHECK(!waits(f, &wait));
    CHECK_EQ(wait.turn, 9);
}
