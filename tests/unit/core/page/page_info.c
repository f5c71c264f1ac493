/*
 * page_info.c - the info of a page, and what the backend receives when one is created.
 */
#include "tests/support/fixture.h"

enum { PAGE = 4096 };

static void make(fixture *b, const quire_memory_options *options)
{
    fixture_prepare(b);
    b->fake.info.exportable = true;
    fixture_open(b, options);
}

static quire_page_info page_info(fixture *b, uint32_t page)
{
    quire_page_info info;
    CHECK_OK(quire_page_get_info(b->memory, page, &info));
    return info;
}

#define CASE(name, ...) UNIT_ON(page_info, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

CASE(statistics_follow_the_allocations_and_the_peak_stays,
     &(quire_memory_options){.pages = {.page_size = PAGE}})
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

CASE(the_largest_free_range_may_be_anywhere,
     &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST, .pages = {.page_size = PAGE}})
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

CASE(a_new_page_with_an_old_number_starts_a_new_peak,
     &(quire_memory_options){.pages = {.page_size = PAGE}})
{
    CHECK_OK(quire_free(b->memory, ALLOCATE(b, .size = PAGE)));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    ALLOCATE(b, .size = 256);
    CHECK_EQ(page_info(b, 0).peak_live_bytes, 256);
}

CASE(a_host_visible_page_is_mappable_and_has_the_backends_addresses,
     &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .pages = {.page_size = PAGE}})
{
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE);
    CHECK(page_info(b, 0).mappable);
    CHECK_EQ(page_info(b, 0).address, UINT64_C(4) << 30);
    CHECK_EQ(page_info(b, 1).address, UINT64_C(8) << 30);
    CHECK_EQ(b->fake.maps, 2); /* mapped at creation */
}

UNIT(page_info, the_backend_receives_the_purpose_of_the_page)
{
    fixture b;
    quire_intent shared = QUIRE_INTENT_HOST_WRITE | QUIRE_INTENT_EXPORT;
    make(&b, &(quire_memory_options){.name = "frames",
                                     .kind.intent = shared,
                                     .fit.max_alignment = 8192,
                                     .pages = {.page_size = PAGE}});
    ALLOCATE(&b, .size = 100);
    const quire_page_request *request = &b.fake.last_page;
    CHECK_EQ(request->kind, 3);
    CHECK_EQ(request->size, PAGE);
    CHECK_EQ(request->alignment, 8192);
    CHECK_STR(request->label, "frames");
    CHECK(request->exportable && !request->dedicated);
    ALLOCATE(&b, .size = 300, .dedicated = true);
    CHECK(request->dedicated);
    CHECK_EQ(request->size, 512);
    fixture_end(&b);
}

CASE(a_memory_without_that_intent_requests_no_export, NULL)
{
    ALLOCATE(b, .size = 100);
    CHECK(!b->fake.last_page.exportable);
    CHECK_EQ(b->fake.last_page.alignment, UINT64_C(2) << 20);
    CHECK_EQ(b->fake.last_page.size, UINT64_C(1) << 20);
}
