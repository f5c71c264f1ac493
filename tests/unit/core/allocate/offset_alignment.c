/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * offset_alignment.c - offsets that are multiples of any number: in each fit, with alignments and
 * atoms, in dedicated pages and batches, and which numbers are refused.
 */
#include "src/core/checked.h"
#include "tests/support/fixture.h"

enum { PAGE = 64 * 1024, MIB = 1024 * 1024 };

/* Allocates, and checks that the range lies where it should. */
static quire_allocation_info place(fixture *f, const quire_allocation_options *options)
{
    quire_allocation_options with = *options;
    quire_allocation_info info;
    quire_allocation made;
    with.info = &info;
    CHECK_OK(quire_allocate(f->memory, &with, &made));
    CHECK_EQ(info.offset % options->offset_alignment, 0);
    CHECK_EQ(info.offset % (options->alignment + !options->alignment), 0);
    CHECK(info.size >= options->size && info.requested == options->size);
    CHECK_OK(quire_memory_check(f->memory));
    return info;
}

static const quire_fit FITS[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};

UNIT(offset_alignment, offsets_are_multiples_in_each_fit)
{
    static const uint64_t numbers[] = {1, 2, 3, 6, 7, 12, 100, 255, 256, 384, 1000, 4095, 12288};
    for (size_t fit = 0; fit < sizeof FITS / sizeof *FITS; fit++) {
        fixture f;
        fixture_make(&f,
                     &(quire_memory_options){.fit.algorithm = FITS[fit], .pages.page_size = MIB});
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            place(&f, &(quire_allocation_options){.size = 100, .offset_alignment = numbers[i]});
            place(&f, &(quire_allocation_options){
                          .size = 5000, .alignment = 64, .offset_alignment = numbers[i]});
            ALLOCATE(&f, .size = 13);
        }
        fixture_end(&f);
    }
}

#define CASE(name, ...) UNIT_MEMORY(offset_alignment, name, f, __VA_ARGS__)

/* The bytes before the offset belong to the allocation. Slabs and the fits round up to 128. */
CASE(a_range_has_the_bytes_that_it_needs_and_no_more, .fit.algorithm = QUIRE_FIT_FIRST,
     .pages.page_size = PAGE)
{
    ALLOCATE(f, .size = 128);
    quire_memory_stats before = fixture_stats(f);
    quire_allocation_info info =
        place(f, &(quire_allocation_options){.size = 1000, .offset_alignment = 384});
    CHECK_EQ(info.offset, 384);
    if (!QI_IS_CHECKED) {
        CHECK_EQ(info.left_padding, 256);
        CHECK_EQ(info.size, 1000);
        CHECK_EQ(fixture_stats(f).live_bytes - before.live_bytes, 1256); /* 1000 + 384 - 128 */
    }
}

CASE(an_atom_and_an_alignment_divide_the_offset_too, .kind.mask = 1 << 2, .pages.page_size = PAGE)
{
    for (int i = 0; i < 5; i++) {
        quire_allocation_info info =
            place(f, &(quire_allocation_options){
                         .size = 10, .alignment = 512, .offset_alignment = 3, .host_write = true});
        CHECK_EQ(info.offset % (3 * 512), 0);
        info = place(
            f, &(quire_allocation_options){.size = 10, .offset_alignment = 3, .host_write = true});
        CHECK_EQ(info.offset % (3 * UINT64_C(64)), 0); /* kind 2 is flushed in atoms of 64 */
        CHECK_EQ(info.size % 64, 0);
    }
}

CASE(batches_and_pages_of_their_own, .pages.page_size = PAGE)
{
    quire_allocation many[20];
    quire_allocation_info infos[20];
    ALLOCATE(f, .size = 1);
    quire_allocation_info info = place(
        f,
        &(quire_allocation_options){.size = 3 * PAGE, .offset_alignment = 384, .dedicated = true});
    CHECK(info.dedicated && (QI_IS_CHECKED || info.offset == 0));
    CHECK_OK(quire_allocate_batch(
        f->memory, &(quire_allocation_options){.size = 50, .offset_alignment = 96, .info = infos},
        many, 20));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(infos[i].offset % 96, 0);
    CHECK_OK(quire_free_batch(f->memory, many, 20));
}

CASE(numbers_that_no_offset_can_have_are_refused, .fit.max_alignment = 4096)
{
    ALLOCATE_FAILS(f, QUIRE_ERROR_INVALID_ARGUMENT, .size = 1, .offset_alignment = 4097);
    CHECK_STR(quire_last_error(), "offset_alignment 4097 with alignment 1: memory 'memory' allows "
                                  "multiples up to 4096");
    ALLOCATE_FAILS(f, QUIRE_ERROR_INVALID_ARGUMENT, .size = 1, .alignment = 2048,
                   .offset_alignment = 3);
    ALLOCATE_FAILS(f, QUIRE_ERROR_INVALID_ARGUMENT, .size = UINT64_MAX,
                   .offset_alignment = UINT64_MAX);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = UINT64_MAX, .offset_alignment = 3);
}

/* Pages begin at multiples of 256 only, so that an address and an offset cannot both have 512. */
UNIT_PREPARED(offset_alignment, pages_that_begin_anywhere, f)
{
    f->fake.info.limits.page_alignment = 256;
    f->fake.address_step = 256;
    fixture_open(f, &(quire_memory_options){.pages.page_size = PAGE});
    for (int i = 0; i < 10; i++)
        place(f, &(quire_allocation_options){.size = 10, .offset_alignment = 3 * 1024});
    ALLOCATE_FAILS(f, QUIRE_ERROR_UNSUPPORTED, .size = 1, .alignment = 512, .offset_alignment = 3);
    CHECK_STR(quire_last_error(), "offset_alignment 3 with alignment 512: pages of the device "
                                  "begin at multiples of 256");
}
