/*
 * page.c - the pages of a memory: their numbers, sizes and limits, when empty ones are kept and
 * destroyed, and their statistics. Dedicated and weakly aligned pages are in page_dedicated.c and
 * page_address.c, failures in page_fault.c.
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

static quire_allocation allocate(quire_memory *memory, uint64_t size)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &allocation));
    return allocation;
}

static uint32_t page_of(quire_memory *memory, quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, allocation, &info));
    return info.page;
}

static void expect_page(quire_memory *memory, uint32_t page, uint64_t size)
{
    quire_page_info info;
    CHECK_OK(quire_page_get_info(memory, page, &info));
    CHECK_EQ(info.page, page);
    CHECK_EQ(info.size, size);
}

static void expect_no_page(quire_memory *memory, uint32_t page)
{
    quire_page_info info = {.size = 1};
    CHECK_FAILS(quire_page_get_info(memory, page, &info), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(info.size, 0);
}

static void expect_refused(quire_memory *memory, uint64_t size, quire_result code, const char *says)
{
    quire_allocation none = {1};
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = size}, &none), code);
    CHECK_HAS(quire_last_error(), says);
    CHECK_EQ(none.id, 0);
}

static quire_memory_stats stats_of(quire_memory *memory)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    return stats;
}

#define CASE(name, ...) UNIT_ON(page, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

/* ---- numbers ------------------------------------------------------------------------------ */

CASE(numbers_are_stable_and_the_lowest_free_one_is_reused, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation full[4];
    for (uint32_t i = 0; i < 4; i++) {
        full[i] = allocate(b->memory, PAGE);
        CHECK_EQ(page_of(b->memory, full[i]), i);
    }
    CHECK_OK(quire_free(b->memory, full[1]));
    CHECK_OK(quire_free(b->memory, full[2]));
    expect_page(b->memory, 1, PAGE); /* retained */
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    expect_no_page(b->memory, 1);
    expect_no_page(b->memory, 2);
    CHECK_EQ(page_of(b->memory, full[3]), 3);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, PAGE)), 1);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, PAGE)), 2);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, PAGE)), 4);
    expect_no_page(b->memory, 5);
    expect_no_page(b->memory, UINT32_MAX);
    CHECK_HAS(quire_last_error(), "no page 4294967295");
}

CASE(shared_and_dedicated_pages_count_in_one_row,
     (quire_page_policy){.page_size = PAGE, .dedicated_threshold = 2048})
{
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 100)), 0);
    quire_allocation dedicated = allocate(b->memory, 2048);
    CHECK_EQ(page_of(b->memory, dedicated), 1);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 2047)), 0);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 2047)), 2);
    CHECK_OK(quire_free(b->memory, dedicated));
    for (int i = 0; i < 2; i++)
        CHECK_EQ(page_of(b->memory, allocate(b->memory, 1792)), i ? 2 : 0);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 512)),
             1); /* a shared page with the number of the dedicated one */
}

CASE(a_shared_page_after_many_dedicated_ones_is_found, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation_options dedicated = {.size = 256, .dedicated = true};
    quire_allocation allocation;
    for (int i = 0; i < 40; i++)
        CHECK_OK(quire_allocate(b->memory, &dedicated, &allocation));
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 100)), 40);
}

/* ---- sizes -------------------------------------------------------------------------------- */

CASE(a_request_above_the_page_size_gets_a_page_whose_rest_is_shared,
     (quire_page_policy){.page_size = PAGE})
{
    quire_allocation large = allocate(b->memory, 10000);
    expect_page(b->memory, 0, 10240); /* rounded up to the granularity */
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 10)), 1);
    CHECK_OK(quire_free(b->memory, large));
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 9000)), 0);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 1000)), 0);
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
        allocate(b->memory, sizes[i]);
        expect_page(b->memory, i, sizes[i]);
    }
    CHECK_EQ(stats_of(b->memory).reserved_bytes, 5632);
}

CASE(neither_large_nor_dedicated_pages_change_the_growth,
     (quire_page_policy){.page_size = 1024, .growth_percent = 100, .max_page = 8192})
{
    ALLOCATE(b, .size = 256, .dedicated = true);
    allocate(b->memory, 5000);
    expect_page(b->memory, 1, 5120); /* instead of the first size, 1024 */
    allocate(b->memory, 2048);
    expect_page(b->memory, 2, 2048);
}

UNIT_PREPARED(page, the_devices_largest_page_overrides_the_policy, b)
{
    b->fake.info.limits.max_page = 5000; /* pages of 4864, because the granularity is 256 */
    open_prepared(b, (quire_page_policy){.page_size = 65536});
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b->memory, &info));
    CHECK_EQ(info.page_size, 4864);
    allocate(b->memory, 100);
    expect_page(b->memory, 0, 4864);
    allocate(b->memory, 4864); /* as large as a page */
    expect_refused(b->memory, 4865, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   "4.75 KiB can never fit: the largest page of the device has 4.88 KiB");
}

CASE(more_than_the_heap_is_refused_without_a_backend_call, (quire_page_policy){.page_size = PAGE})
{
    expect_refused(b->memory, (UINT64_C(1) << 30) + 1, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   "(1073741825 bytes) can never fit: the heap of memory kind 0 has 1 GiB in all");
    expect_refused(b->memory, UINT64_MAX, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "1 GiB in all");
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 0);
    CHECK_EQ(stats_of(b->memory).failures, 2);
}

/* ---- limits of number --------------------------------------------------------------------- */

CASE(the_policys_page_limit_holds, (quire_page_policy){.page_size = PAGE, .max_pages = 2})
{
    quire_allocation first = allocate(b->memory, PAGE), second = allocate(b->memory, 2048);
    expect_refused(b->memory, PAGE, QUIRE_ERROR_TOO_MANY_PAGES,
                   "memory 'weights' has 2 pages, the maximum of its policy");
    CHECK_HAS(quire_last_error(), "cannot allocate 4 KiB: ");
    CHECK_HAS(quire_last_error(), "largest free range 2 KiB of 2 KiB free in 2 pages");
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 2048)),
             1); /* a request that fits is still served */
    CHECK_OK(quire_free(b->memory, first));
    CHECK_EQ(page_of(b->memory, allocate(b->memory, 100)), 0);
    CHECK_OK(quire_free(b->memory, second));
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
}

CASE(an_empty_page_is_destroyed_for_one_that_is_large_enough,
     (quire_page_policy){.page_size = PAGE, .max_pages = 1})
{
    CHECK_OK(quire_free(b->memory, allocate(b->memory, PAGE)));
    allocate(b->memory, 2 * PAGE);
    expect_page(b->memory, 0, 2 * PAGE);
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
    allocate(b->memory, PAGE);
    allocate(b->memory, PAGE);
    allocate(other, PAGE);
    expect_refused(other, PAGE, QUIRE_ERROR_TOO_MANY_PAGES, "the device's limit of 3 pages");
    expect_refused(b->memory, PAGE, QUIRE_ERROR_TOO_MANY_PAGES, "the device's limit of 3 pages");
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(b->device, &stats));
    CHECK_EQ(stats.page_count, 3);
    quire_memory_destroy_all(&other);
    allocate(b->memory, PAGE);
}

UNIT_PREPARED(page, more_pages_than_a_limit_that_is_advice, b)
{
    b->fake.info.limits.max_pages = 1;
    b->fake.info.limits.max_pages_is_advice = true;
    open_prepared(b, (quire_page_policy){.page_size = PAGE});
    for (int i = 0; i < 3; i++)
        allocate(b->memory, PAGE);
    CHECK_OK(quire_device_set_page_limit(b->device, 4)); /* the caller's own is none */
    allocate(b->memory, PAGE);
    expect_refused(b->memory, PAGE, QUIRE_ERROR_TOO_MANY_PAGES, "the device's limit of 4 pages");
}

/* ---- empty pages -------------------------------------------------------------------------- */

CASE(all_empty_pages_are_released_when_a_page_must_be_created,
     (quire_page_policy){.page_size = PAGE})
{
    quire_allocation full[3];
    for (int i = 0; i < 3; i++)
        full[i] = allocate(b->memory, PAGE);
    CHECK_OK(quire_free(b->memory, full[0]));
    CHECK_OK(quire_free(b->memory, full[2]));
    CHECK_EQ(b->fake.pages, 3);
    CHECK_EQ(page_of(b->memory, allocate(b->memory, PAGE + 1)), 0);
    CHECK_EQ(b->fake.pages, 2);
    expect_no_page(b->memory, 2);
    quire_allocation_options dedicated = {.size = 256, .dedicated = true};
    quire_allocation allocation;
    CHECK_OK(quire_free(b->memory, full[1]));
    CHECK_OK(quire_allocate(b->memory, &dedicated, &allocation)); /* likewise for a dedicated one */
    CHECK_EQ(page_of(b->memory, allocation), 1);
    CHECK_EQ(b->fake.pages, 2);
}

CASE(a_trim_keeps_at_most_its_target_and_the_lowest_numbers, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation full[5];
    for (int i = 0; i < 5; i++)
        full[i] = allocate(b->memory, PAGE);
    static const int freed[] = {0, 1, 3, 4};
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_free(b->memory, full[freed[i]]));
    uint64_t released = 1;
    CHECK_OK(quire_memory_trim(b->memory, 4 * PAGE, &released));
    CHECK_EQ(released, 0);
    CHECK_OK(quire_memory_trim(b->memory, 3 * PAGE - 1,
                               &released)); /* two pages remain below the target */
    CHECK_EQ(released, 2 * PAGE);
    expect_no_page(b->memory, 4);
    expect_no_page(b->memory, 3);
    expect_page(b->memory, 1, PAGE);
    CHECK_OK(quire_memory_trim(b->memory, UINT64_MAX, &released));
    CHECK_EQ(released, 0);
    CHECK_OK(quire_memory_trim(b->memory, 0, &released));
    CHECK_EQ(released, 2 * PAGE);
    CHECK_EQ(page_of(b->memory, full[2]), 2);
    CHECK_EQ(b->fake.pages, 1);
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
