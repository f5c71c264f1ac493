/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_address.c - pages whose native address is less aligned than the ranges placed in them:
 * alignments hold for the absolute address, and no range exceeds its page.
 */
#include "tests/support/fixture.h"

#include <stdio.h>

/* Pages `step` bytes above a multiple of 4 GiB, which report an alignment of `promise`. */
static void make(fixture *b, uint64_t step, uint64_t promise, const quire_memory_options *options)
{
    fixture_prepare(b);
    b->fake.address_step = step;
    b->fake.info.limits.page_alignment = promise;
    b->fake.info.limits.page_granularity = 16;
    fixture_open(b, options);
}

/* An allocation has its alignment by address and is inside its page. */
static quire_allocation_info expect_good(fixture *b, quire_allocation allocation, uint64_t size,
                                         uint64_t alignment)
{
    quire_allocation_info info;
    quire_page_info page;
    CHECK_OK(quire_allocation_get_info(b->memory, allocation, &info));
    CHECK_OK(quire_page_get_info(b->memory, info.page, &page));
    CHECK_EQ(info.address, page.address + info.offset);
    CHECK_EQ(info.address % alignment, 0);
    CHECK(info.size >= size);
    CHECK(info.left_padding <= info.offset);
    CHECK(info.offset + info.size <= page.size);
    return info;
}

static quire_allocation_info allocate(fixture *b, uint64_t size, uint64_t alignment, bool dedicated)
{
    quire_allocation allocation =
        ALLOCATE(b, .size = size, .alignment = alignment, .dedicated = dedicated);
    return expect_good(b, allocation, size, alignment);
}

static void try_all_alignments(uint64_t step, quire_fit fit, bool dedicated)
{
    fixture b;
    make(&b, step, step,
         &(quire_memory_options){.fit.algorithm = fit, .pages = {.page_size = 65536}});
    for (uint64_t alignment = 1; alignment <= UINT64_C(2) << 20; alignment *= 2) {
        allocate(&b, 1, alignment, dedicated);
        allocate(&b, 1000, alignment, dedicated);
        allocate(&b, 65536, alignment,
                 dedicated); /* a page created for it must include the slack */
    }
    fixture_end(&b);
}

UNIT(page_address, every_alignment_holds)
{
    static const struct {
        uint64_t step;
        quire_fit fit;
        bool dedicated;
    } rows[] = {
        {64, QUIRE_FIT_SEGREGATED, false}, {64, QUIRE_FIT_FIRST, false},
        {64, QUIRE_FIT_BUDDY, false},      {16, QUIRE_FIT_SEGREGATED, false},
        {16, QUIRE_FIT_FIRST, false},      {16, QUIRE_FIT_BUDDY, false},
        {64, QUIRE_FIT_SEGREGATED, true},  {16, QUIRE_FIT_FIRST, true},
        {16, QUIRE_FIT_BUDDY, true},       {16, QUIRE_FIT_LINEAR, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("# step %d, fit %d, dedicated %d\n", (int)rows[i].step, (int)rows[i].fit,
               rows[i].dedicated);
        try_all_alignments(rows[i].step, rows[i].fit, rows[i].dedicated);
    }
}

#define CASE(name, ...) UNIT_ON(page_address, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

CASE(a_dedicated_allocation_keeps_its_left_padding, 64, 64,
     &(quire_memory_options){.pages = {.page_size = 65536}})
{
    quire_allocation_info info = allocate(b, 1000, 1024, true);
    CHECK_EQ(info.left_padding, 960);
    CHECK_EQ(info.offset, 960);
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(stats.live_bytes, 1960);
    CHECK_EQ(stats.reserved_bytes, 2048); /* exactly four granules and the slack */
}

CASE(the_region_of_a_page_above_a_granule_has_its_full_size, 512, 512,
     &(quire_memory_options){.pages = {.page_size = 4096}})
{
    CHECK_EQ(allocate(b, 4096, 1, false).offset, 0);
    CHECK_EQ(b->fake.pages, 1);
}

/*
 * page_alignment 0: pages have the alignment that the core requests, which is at least a granule.
 */
UNIT_PREPARED(page_address, granules_above_the_largest_alignment_hold, b)
{
    b->fake.info.limits.page_alignment = 0;
    fixture_open(b, &(quire_memory_options){.fit = {.granule = 65536, .max_alignment = 4096},
                                            .pages = {.page_size = 65536}});
    ALLOCATE(b, .size = 65536);
    CHECK_EQ(b->fake.last_page.alignment, 65536);
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 5000000)).offset, 0);
}

/*
 * A backend whose pages are less aligned than reported (page_alignment 0: as requested) violates
 * its contract. Even then no byte outside a page may be allocated.
 */
static void try_broken_promise(uint64_t promise, bool dedicated)
{
    fixture b;
    make(&b, 64, promise, &(quire_memory_options){.pages = {.page_size = 4096}});
    quire_allocation allocation;
    quire_allocation_options options = {.size = 4096, .alignment = 4096, .dedicated = dedicated};
    if (!quire_allocate(b.memory, &options, &allocation))
        expect_good(&b, allocation, 4096, 4096);
    else
        CHECK_EQ(quire_last_result(), QUIRE_ERROR_BACKEND_FAILURE);
    fixture_end(&b);
}

UNIT(page_address, no_range_exceeds_a_page_less_aligned_than_promised)
{
    for (int i = 0; i < 4; i++)
        try_broken_promise(i % 2 ? 4096 : 0, i >= 2);
}

/* A flush covers whole atoms of the page: neighbours in one atom would not be independent. */
CASE(a_kind_with_atoms_needs_pages_aligned_to_them, 32, 32, &(quire_memory_options){.kind.mask = 1})
{
    quire_memory *memory = NULL;
    quire_memory_options flushed = {.kind.mask = 4}; /* non-coherent, the atom is 64 */
    CHECK_FAILS(quire_memory_create(b->device, &flushed, &memory), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "kind 2 is flushed in atoms of 64 B");
    CHECK_HAS(quire_last_error(), "pages to 32 B only");
}
