/*
 * contiguous_bounds.c - when the page of a contiguous memory must not grow: for a request that
 * fits, beyond the device's page limit, and if the backend created another page than requested.
 */
#include "src/core/page/backing.h"

#include "tests/support/fixture.h"

enum { KIB = 1024, PAGE = 64 * KIB, MAX_SIZE = 1024 * KIB };

static const quire_memory_options contiguous = {
    .name = "one", .contiguous = true, .address_space = MAX_SIZE, .pages = {.page_size = PAGE}};

static void prepare(fixture *f)
{
    fixture_prepare(f);
    fake_offer_growth(&f->fake);
}

/* Requests growth like a request that found no room. */
static qi_resize_result grow_for(fixture *f, uint64_t size, uint64_t alignment,
                                 quire_result expected)
{
    qi_shard *shard = f->memory->shards[0];
    qi_resize_result growth = QI_RESIZE_AWAITED;
    qi_page_progress progress = {0};
    qi_lock_acquire(&shard->lock);
    quire_result result = qi_contiguous_grow_for(shard, size, alignment, &growth, &progress);
    qi_lock_release(&shard->lock);
    CHECK_EQ(result, expected);
    CHECK_OK(quire_memory_check(f->memory));
    return growth;
}

/* Returns the bytes of the page afterwards. */
static uint64_t ask(fixture *f, uint64_t size, uint64_t alignment, qi_resize_result expected)
{
    CHECK_EQ(grow_for(f, size, alignment, QUIRE_SUCCESS), expected);
    return fixture_stats(f).reserved_bytes;
}

#define CASE(name) UNIT_ON(contiguous_bounds, name, fixture, f, prepare(f), fixture_end)

/* Another thread may have freed the room while this one had released the lock. */
CASE(the_page_does_not_grow_if_the_request_fits)
{
    fixture_open(f, &contiguous);
    ALLOCATE(f, .size = 40 * KIB);
    CHECK_EQ(ask(f, 24 * KIB - 1, 1, QI_RESIZE_NONE), PAGE);
    CHECK_EQ(ask(f, 24 * KIB, 1, QI_RESIZE_NONE), PAGE);
    CHECK_EQ(ask(f, 16 * KIB, 16 * KIB, QI_RESIZE_NONE), PAGE); /* from offset 48 KiB on */
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 0);
    CHECK_EQ(ask(f, 24 * KIB + 1, 1, QI_RESIZE_DONE), 2 * PAGE);
}

CASE(the_page_grows_if_the_aligned_request_does_not_fit)
{
    fixture_open(f, &contiguous);
    ALLOCATE(f, .size = 40 * KIB);
    CHECK_EQ(ask(f, 16 * KIB + 1, 16 * KIB, QI_RESIZE_DONE), 2 * PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 1);
}

/* Sizes and alignments whose end exceeds 64 bits. */
CASE(the_page_does_not_grow_for_sizes_that_overflow)
{
    fixture_open(f, &contiguous);
    ALLOCATE(f, .size = 40 * KIB);
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 255, UINT64_MAX - 48 * KIB, MAX_SIZE + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_EQ(grow_for(f, sizes[i], 1, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY), QI_RESIZE_NONE);
        CHECK_HAS(quire_last_error(), "and can grow to 1 MiB");
    }
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 0);
    CHECK_EQ(fixture_stats(f).reserved_bytes, PAGE);
    CHECK_EQ(ask(f, 24 * KIB + 1, 1, QI_RESIZE_DONE), 2 * PAGE); /* growth is possible */
}

CASE(the_page_does_not_exceed_the_devices_largest_page)
{
    f->fake.info.limits.max_page = 5 * PAGE + 100; /* no multiple of the granularity */
    fixture_open(f, &contiguous);
    ALLOCATE(f, .size = PAGE);
    uint64_t max_size = f->fake.last_page.max_size;
    CHECK(max_size <= f->fake.info.limits.max_page);
    CHECK(f->fake.info.limits.max_page - max_size < f->fake.info.limits.page_granularity);
    for (int i = 1; i < 5; i++)
        ALLOCATE(f, .size = PAGE);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = PAGE);
    CHECK_EQ(fixture_stats(f).page_count, 1);
    CHECK_OK(quire_memory_check(f->memory));
}

/* ---- a backend that creates another page than requested -------------------------------------- */

static quire_result (*make_page)(void *state, const quire_page_request *request,
                                 quire_native_page *page);
static void (*destroy_page)(void *state, const quire_native_page *page);
static int64_t off; /* error of the returned size in bytes */

static quire_result make_other_page(void *state, const quire_page_request *request,
                                    quire_native_page *page)
{
    quire_result result = make_page(state, request, page);
    if (!result && request->max_size)
        page->size += (uint64_t)off;
    return result;
}

/* The core destroys the page that was reported to it. */
static void destroy_other_page(void *state, const quire_native_page *page)
{
    quire_native_page made = *page;
    made.size -= (uint64_t)off;
    destroy_page(state, &made);
}

static void expect_refused(int64_t bytes)
{
    fixture f;
    prepare(&f);
    make_page = f.fake.table.page_create;
    destroy_page = f.fake.table.page_destroy;
    f.fake.table.page_create = make_other_page;
    f.fake.table.page_destroy = destroy_other_page;
    fixture_open(&f, &contiguous);
    off = bytes;
    ALLOCATE_FAILS(&f, QUIRE_ERROR_BACKEND_FAILURE, .size = PAGE);
    CHECK_HAS(quire_last_error(), "the backend made a page that may grow to");
    CHECK_EQ(f.fake.pages, 0);
    quire_budget_info budget;
    CHECK_OK(quire_device_get_budget(f.device, 0, &budget));
    CHECK_EQ(budget.reserved, 0);
    CHECK_EQ(fixture_stats(&f).reserved_bytes, 0);
    CHECK_OK(quire_memory_check(f.memory));
    off = 0;
    ALLOCATE(&f, .size = PAGE);
    fixture_end(&f);
}

UNIT(contiguous_bounds, a_page_with_fewer_or_more_addresses_than_requested_is_refused)
{
    expect_refused(-4096);
    expect_refused(4096);
}
