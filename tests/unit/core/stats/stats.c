/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stats.c - the statistics of memories and devices after known sequences. The check of the records
 * is in stats_check.c.
 */
#include "tests/support/fixture.h"

enum { PAGE = 65536 };

static quire_memory_stats stats_of(quire_memory *memory)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.free_bytes, stats.reserved_bytes - stats.live_bytes);
    CHECK(stats.empty_bytes <= stats.free_bytes);
    CHECK(stats.metadata_bytes <= stats.metadata_peak);
    return stats;
}

static quire_device_stats device_stats(const fixture *b)
{
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(b->device, &stats));
    return stats;
}

#define CASE(name, ...) UNIT_MEMORY(stats, name, b, __VA_ARGS__)

CASE(a_new_memory_uses_only_its_own_records, 0)
{
    quire_memory_stats stats = stats_of(b->memory);
    CHECK(stats.metadata_bytes > 0);
    stats.metadata_bytes = stats.metadata_peak = 0;
    const quire_memory_stats zero = {0};
    CHECK(!memcmp(&stats, &zero, sizeof zero));
}

CASE(statistics_follow_the_allocations, .pages = {.page_size = PAGE})
{
    quire_allocation first = ALLOCATE(b, .size = 1000), second = ALLOCATE(b, .size = 500);
    quire_memory_stats stats = stats_of(b->memory);
    CHECK_EQ(stats.live_bytes, 1024 + 512);
    CHECK_EQ(stats.empty_bytes, 0);
    CHECK_EQ(stats.largest_free, PAGE - 1536);
    CHECK_EQ(stats.allocations, 2);
    CHECK_OK(quire_free(b->memory, first));
    stats = stats_of(b->memory);
    CHECK_EQ(stats.frees, 1);
    CHECK_EQ(stats.largest_free, PAGE - 1536); /* the free range before it is separate */
    CHECK_OK(quire_free(b->memory, second));
    stats = stats_of(b->memory);
    CHECK_EQ(stats.empty_bytes, PAGE);
    CHECK_EQ(stats.largest_free, PAGE);
}

CASE(each_peak_is_independent_of_the_others, .pages = {.page_size = PAGE})
{
    quire_allocation large = ALLOCATE(b, .size = 60000); /* peak of requested bytes */
    CHECK_OK(quire_free(b->memory, large));
    quire_allocation small[150];
    for (int i = 0; i < 150; i++)
        small[i] = ALLOCATE(b, .size = 1); /* peak of allocations */
    for (int i = 0; i < 150; i++)
        CHECK_OK(quire_free(b->memory, small[i]));
    quire_allocation pages[3];
    for (int i = 0; i < 3; i++)
        pages[i] = ALLOCATE(b, .size = 33 * 1024); /* peak of pages and of live bytes */
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_free(b->memory, pages[i]));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    ALLOCATE(b, .size = 100);
    quire_memory_stats stats = stats_of(b->memory);
    CHECK_EQ(stats.peak_live_bytes, 3 * 33 * 1024);
    CHECK_EQ(stats.peak_requested_bytes, 3 * 33 * 1024);
    CHECK_EQ(stats.peak_allocation_count, 150);
    CHECK_EQ(stats.peak_reserved_bytes, 3 * PAGE);
    CHECK_EQ(stats.peak_page_count, 3);
    CHECK_EQ(stats.pages_created, 4);
    CHECK_EQ(stats.pages_destroyed, 3);
    CHECK_EQ(stats.page_count, 1);
    CHECK_EQ(stats.allocations, 155);
    CHECK_EQ(stats.frees, 154);
}

CASE(failures_are_refusals_for_lack_of_memory_pages_or_handles,
     .pages = {.page_size = PAGE, .max_pages = 1})
{
    quire_allocation none, whole = ALLOCATE(b, .size = PAGE);
    quire_allocation_options wrong = {.size = 0}, large = {.size = UINT64_MAX}, other = {.size = 1};
    CHECK_FAILS(quire_allocate(b->memory, &wrong, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(stats_of(b->memory).failures, 0);
    CHECK_FAILS(quire_allocate(b->memory, &large, &none), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_FAILS(quire_allocate(b->memory, &other, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_FAILS(quire_reserve(b->memory, &other, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    quire_memory_stats stats = stats_of(b->memory);
    CHECK_EQ(stats.failures, 3);
    CHECK_EQ(stats.full_passes, 1); /* neither more than all pages hold nor the same again */
    CHECK_EQ(stats.full_pass_hits, 0);
    CHECK_EQ(stats.allocations, 1);
    CHECK_OK(quire_free(b->memory, whole));
}

CASE(backend_calls_and_their_time_are_counted_for_the_memory_and_the_device, .kind.mask = 4,
     .pages = {.page_size = PAGE})
{
    b->fake.slow_ms = 20;
    quire_allocation allocation = ALLOCATE(b, .size = 100); /* create, map */
    CHECK_EQ(stats_of(b->memory).backend_calls, 2);
    CHECK(stats_of(b->memory).backend_nanoseconds >= 20000000);
    CHECK_OK(quire_flush(b->memory, allocation, 0, 0)); /* one more */
    CHECK_OK(quire_free(b->memory, allocation));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL)); /* unmap, destroy */
    CHECK_EQ(stats_of(b->memory).backend_calls, 5);
    quire_requirements needs;
    CHECK_OK(quire_image_get_requirements(b->device, &(quire_image_options){.width = 1}, &needs));
    CHECK_EQ(stats_of(b->memory).backend_calls, 5); /* not counted for the memory */
    CHECK_EQ(device_stats(b).backend_calls, 6);
    CHECK(device_stats(b).backend_nanoseconds >= stats_of(b->memory).backend_nanoseconds);
}

UNIT(stats, every_kind_of_backend_call_is_counted)
{
    fixture b;
    fixture_make(&b, &(quire_memory_options){.pages = {.page_size = PAGE}});
    uint64_t expected = 0;
    char byte = 0;
    quire_image image = IMAGE(&b, .width = 1);
    CHECK_EQ(stats_of(b.memory).backend_calls, expected += 3); /* object, page, bind */
    CHECK_OK(quire_write(b.memory, image.allocation, 0, &byte, 1));
    CHECK_EQ(stats_of(b.memory).backend_calls, expected += 1);
    CHECK_OK(quire_read(b.memory, image.allocation, 0, &byte, 1));
    CHECK_EQ(stats_of(b.memory).backend_calls, expected += 1);
    CHECK_OK(quire_free(b.memory, image.allocation));
    CHECK_EQ(stats_of(b.memory).backend_calls, expected += 1);
    CHECK_EQ(device_stats(&b).backend_calls, expected);
    fixture_end(&b);
    fixture_make(&b, &(quire_memory_options){.kind.mask = 4});
    quire_allocation allocation = ALLOCATE(&b, .size = 1);
    expected = stats_of(b.memory).backend_calls;
    CHECK_OK(quire_invalidate(b.memory, allocation, 0, 0));
    CHECK_EQ(stats_of(b.memory).backend_calls, expected + 1);
    fake_fail(&b.fake, 1, false, QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(quire_flush(b.memory, allocation, 0, 0), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(stats_of(b.memory).backend_calls, expected + 2); /* failed calls count too */
    fixture_end(&b);
}

CASE(metadata_is_every_byte_allocated_with_the_callbacks, .pages = {.page_size = PAGE})
{
    uint64_t before = stats_of(b->memory).metadata_bytes;
    CHECK_EQ(device_stats(b).metadata_bytes, unit_memory_state()->bytes);
    quire_allocation live[500];
    for (int i = 0; i < 500; i++) {
        quire_allocation_options options = {.size = 1, .name = "a name of its own"};
        CHECK_OK(quire_allocate(b->memory, &options, &live[i]));
    }
    uint64_t full = stats_of(b->memory).metadata_bytes;
    CHECK(full > before + 500 * sizeof "a name of its own");
    CHECK_EQ(device_stats(b).metadata_bytes, unit_memory_state()->bytes);
    for (int i = 0; i < 500; i++)
        CHECK_OK(quire_free(b->memory, live[i]));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK(stats_of(b->memory).metadata_bytes < full / 2);
    CHECK(stats_of(b->memory).metadata_peak >= full);
    CHECK_EQ(device_stats(b).metadata_bytes, unit_memory_state()->bytes);
}

CASE(fragmentation_is_reported_by_four_values, .pages = {.page_size = PAGE})
{
    quire_fragmentation f = stats_of(b->memory).fragmentation;
    CHECK(f.reserved == 0 && f.free == 0); /* no free byte: no fragmentation */
    quire_allocation quarter[4];
    for (int i = 0; i < 4; i++)
        quarter[i] = ALLOCATE(b, .size = PAGE / 4 - 100);
    f = stats_of(b->memory).fragmentation;
    CHECK(f.reserved == 0); /* filled to the last granule */
    CHECK(f.free == 0);
    CHECK_EQ(f.internal, 400);
    CHECK_EQ(f.split, 0);
    CHECK_OK(quire_free(b->memory, quarter[0]));
    CHECK_OK(quire_free(b->memory, quarter[2]));
    f = stats_of(b->memory).fragmentation;
    CHECK(f.free == 0.5); /* two holes of a quarter each */
    CHECK_EQ(f.internal, 200);
    CHECK_EQ(f.split, PAGE / 2);
    CHECK_OK(quire_free(b->memory, quarter[1]));
    f = stats_of(b->memory).fragmentation;
    CHECK(f.free == 0); /* one hole of three quarters */
    CHECK_OK(quire_free(b->memory, quarter[3]));
    f = stats_of(b->memory).fragmentation;
    CHECK_EQ(f.internal, 0);
    CHECK_EQ(f.split, 0); /* an empty page can be released */
}

CASE(the_peaks_show_the_bytes_of_pages_above_their_contents, .pages = {.page_size = PAGE})
{
    quire_allocation allocation = ALLOCATE(b, .size = PAGE / 4);
    CHECK(stats_of(b->memory).fragmentation.reserved == 0.75);
    CHECK_OK(quire_free(b->memory, allocation));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK(stats_of(b->memory).fragmentation.reserved == 0.75);
}

CASE(the_statistics_of_a_device_are_the_sums_of_its_memories, .pages = {.page_size = PAGE})
{
    quire_memory *other = NULL;
    CHECK_OK(quire_memory_create(b->device,
                                 &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                         .fit.algorithm = QUIRE_FIT_FIRST,
                                                         .pages = {.page_size = 1024}},
                                 &other));
    ALLOCATE(b, .size = 1000);
    quire_allocation theirs;
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 600}, &theirs));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 600}, &theirs));
    quire_device_stats stats = device_stats(b);
    CHECK_EQ(stats.memory_count, 2);
    CHECK_EQ(stats.heap_reserved_bytes[0], PAGE);
    CHECK_EQ(stats.heap_reserved_bytes[1], 2048);
    CHECK_EQ(stats.heap_reserved_bytes[2], 0);
    CHECK_EQ(stats.reserved_bytes, PAGE + 2048);
    CHECK_EQ(stats.live_bytes, 1024 + 1200);
    CHECK_EQ(stats.allocation_count, 3);
    CHECK_EQ(stats.page_count, 3);
    CHECK_EQ(stats.backend_calls,
             stats_of(b->memory).backend_calls + stats_of(other).backend_calls);
    quire_memory_destroy_all(&other);
    stats = device_stats(b);
    CHECK_EQ(stats.memory_count, 1);
    CHECK_EQ(stats.heap_reserved_bytes[1], 0);
    CHECK_EQ(stats.reserved_bytes, PAGE);
    CHECK_EQ(stats.peak_reserved_bytes, PAGE + 2048);
    CHECK_EQ(stats.allocation_count, 1);
}
