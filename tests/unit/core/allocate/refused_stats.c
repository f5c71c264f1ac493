/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * refused_stats.c - the statistics after a request that was placed and could not be completed:
 * failures are counted, peaks and all other counters stay.
 */
#include "tests/support/fixture.h"
#include "tests/support/on_stream.h"

enum { PAGE = 65536, DEVICE = 0 };

static void make(fixture *f, uint32_t kind)
{
    fixture_prepare(f);
    fake_offer_streams(&f->fake);
    fixture_open(f, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                            .fit.granule = 4096,
                                            .pages = {.page_size = PAGE, .max_pages = 1}});
    ALLOCATE(f, .size = 1);
}

/* The statistics are the same except for this many more failures. */
static void check_same(fixture *f, const quire_memory_stats *before, uint64_t failures)
{
    quire_memory_stats after = fixture_stats(f);
    CHECK_EQ(after.live_bytes, before->live_bytes);
    CHECK_EQ(after.requested_bytes, before->requested_bytes);
    CHECK_EQ(after.allocation_count, before->allocation_count);
    CHECK_EQ(after.peak_live_bytes, before->peak_live_bytes);
    CHECK_EQ(after.peak_requested_bytes, before->peak_requested_bytes);
    CHECK_EQ(after.peak_allocation_count, before->peak_allocation_count);
    CHECK_EQ(after.peak_reserved_bytes, before->peak_reserved_bytes);
    CHECK_EQ(after.allocations, before->allocations);
    CHECK_EQ(after.frees, before->frees);
    CHECK_EQ(after.deferred_count, before->deferred_count);
    CHECK_EQ(after.failures, before->failures + failures);
    CHECK_OK(quire_memory_check(f->memory));
}

#define CASE(name, ...) UNIT_ON(refused_stats, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

CASE(above_the_limit_of_a_name_on_a_stream, DEVICE)
{
    quire_stream *stream = NULL;
    quire_allocation made, none = {1};
    CHECK_OK(quire_stream_create(f->device, NULL, &stream));
    const quire_allocation_options named = {.size = 90, .name = "x"}, other = {.size = 90};
    CHECK_OK(quire_memory_set_name_limit(f->memory, "x", 100));
    quire_memory_stats before = fixture_stats(f);
    CHECK_FAILS(allocate_on_stream(f->memory, &named, stream, &none), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(none.id, 0);
    check_same(f, &before, 1);
    /* a waiting range is neither taken nor released, whether the limit refuses before or after */
    for (uint64_t limit = 1; limit <= 100; limit += 99) {
        CHECK_OK(quire_memory_set_name_limit(f->memory, "x", limit));
        CHECK_OK(allocate_on_stream(f->memory, &other, stream, &made));
        CHECK(fake_stream_submit(quire_stream_native(stream)) > 1);
        CHECK_OK(quire_free_on_stream(f->memory, made, stream));
        before = fixture_stats(f);
        CHECK_EQ(before.deferred_count, 1);
        CHECK_FAILS(allocate_on_stream(f->memory, &named, stream, &none), QUIRE_ERROR_OVER_BUDGET);
        check_same(f, &before, 1);
        fake_stream_run(quire_stream_native(stream), 10);
        CHECK_OK(quire_collect(f->memory, &(uint64_t){0}));
        CHECK_EQ(fixture_stats(f).deferred_count, 0);
    }
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(zeros_that_cannot_be_written, DEVICE)
{
    const quire_memory_stats before = fixture_stats(f);
    fake_fail(&f->fake, 1, false, QUIRE_ERROR_BACKEND_FAILURE);
    ALLOCATE_FAILS(f, QUIRE_ERROR_BACKEND_FAILURE, .size = 100, .zero = true);
    check_same(f, &before, 1);
}

CASE(an_object_that_cannot_be_bound, DEVICE)
{
    quire_buffer none;
    const quire_buffer_options options = {.size = 100, .usage = QUIRE_USAGE_STORAGE};
    const quire_memory_stats before = fixture_stats(f);
    fake_fail(&f->fake, 2, false, QUIRE_ERROR_BACKEND_FAILURE); /* object, bind */
    CHECK_FAILS(quire_buffer_create(f->memory, &options, &none), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(f->fake.failed_call, FAKE_OBJECT_BIND);
    check_same(f, &before, 0);
}
