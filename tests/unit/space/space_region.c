/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_region.c - regions of a space: their numbers and native bases; they grow and shrink at
 * their end: added bytes are free immediately, live ranges stay in place, and a failed call changes
 * nothing. (tests/plain/space_model.c adds, resizes and removes regions at random.)
 */
#include <stdio.h>

#include "src/base/bits.h"
#include "src/space/space.h"
#include "tests/support/defer.h"
#include "tests/support/shape.h"
#include "tests/support/space_steps.h"

static quire_space *make_plain(quire_fit fit, uint64_t max_alignment)
{
    return new_space(
        (quire_space_options){.fit = {.algorithm = fit, .max_alignment = max_alignment}});
}

static void remove_region(quire_space *space, uint32_t region)
{
    CHECK_OK(quire_space_remove_region(space, region));
    CHECK_OK(quire_space_check(space));
}

/* ---- numbers ------------------------------------------------------------------------------- */

UNIT(space_region, a_thousand_regions_are_added_and_removed)
{
    for (int i = 0; i < 2; i++) {
        quire_space *space = make_plain(FITS[i], 1);
        quire_range ranges[1000];
        for (uint32_t j = 0; j < 1000; j++)
            CHECK_EQ(add_region(space, 1024, 0), j);
        for (int j = 0; j < 1000; j++)
            ranges[j] = take_bytes(space, 1024).range;
        CHECK_EQ(stats_of(space).free_bytes, 0);
        for (int j = 0; j < 1000; j++)
            CHECK_OK(quire_space_free(space, ranges[j]));
        for (uint32_t j = 0; j < 1000; j += 2)
            remove_region(space, j);
        CHECK_EQ(stats_of(space).free_bytes, 500 * 1024);
        for (uint32_t j = 1; j < 1000; j += 2)
            remove_region(space, j);
        CHECK_EQ(stats_of(space).region_bytes, 0);
        CHECK_EQ(add_region(space, 1024, 0), 0);
        end_space(space);
    }
}

UNIT(space_region, the_line_left_is_the_size_of_a_region_that_always_fits)
{
    const uint64_t bases[] = {0, 256, UINT64_C(0x7fff000000000100)};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            quire_space *space = make_plain(FITS[i], 65536);
            uint64_t whole = qi_space_line_left(space);
            add_region(space, 256, bases[0]);
            CHECK(qi_space_line_left(space) < whole);
            add_region(space, qi_space_line_left(space), bases[j]);
            CHECK(qi_space_line_left(space) <= 65536);
            end_space(space);
        }
    }
}

/* The end, base + size, is 2^64 there, which no number of 64 bits has. */
UNIT(space_region, a_region_may_have_the_last_address)
{
    enum { SIZE = 1 << 16 };
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_plain(FITS[i], SIZE);
        const uint64_t granule = stats_of(space).granule, base = 0 - (uint64_t)SIZE;
        uint32_t region = 77;
        CHECK_FAILS(quire_space_add_region(space, SIZE + granule, base, &region),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "reaches beyond the last address");
        CHECK_FAILS(quire_space_add_region(space, SIZE, base + granule, &region),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        add_region(space, SIZE, base);
        CHECK_EQ(take_aligned(space, SIZE, SIZE).offset, 0);
        CHECK_OK(quire_space_clear(space));
        CHECK_EQ(take_bytes(space, SIZE / 2).offset, 0);
        CHECK_EQ(take_aligned(space, SIZE / 2, SIZE / 2).offset, SIZE / 2);
        CHECK_OK(quire_space_clear(space));
        remove_region(space, 0);
        end_space(space);
    }
}

UNIT(space_region, a_region_that_cannot_be_removed_or_resized_is_named)
{
    for (int i = 0; i < 2; i++) {
        quire_space *space = make_plain(FITS[i], 0);
        add_region(space, 256, 0);
        CHECK_FAILS(quire_space_remove_region(space, UINT32_MAX), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "no region 4294967295");
        take_bytes(space, 256);
        CHECK_FAILS(quire_space_remove_region(space, 0), QUIRE_ERROR_BUSY);
        CHECK_HAS(quire_last_error(), " still has live ranges");
        if (space->granule > 1) {
            CHECK_FAILS(quire_space_resize_region(space, 0, 257), QUIRE_ERROR_INVALID_ARGUMENT);
            CHECK_HAS(quire_last_error(), "a multiple of the granule 256");
        }
        end_space(space);
    }
}

/* ---- regions that are resized ---------------------------------------------------------------- */

#define U UINT64_C(8192) /* above the maximum size of slots */

/* The two fits whose regions can be resized, with each of their options. */
static const quire_space_options setups[] = {
    {.fit.algorithm = QUIRE_FIT_SEGREGATED},
    {.fit = {.algorithm = QUIRE_FIT_SEGREGATED, .slabs = true}},
    {.fit = {.algorithm = QUIRE_FIT_SEGREGATED, .least_fragmentation = true}},
    {.fit = {.algorithm = QUIRE_FIT_SEGREGATED, .slabs = true, .least_fragmentation = true}},
    {.fit.algorithm = QUIRE_FIT_FIRST},
};
enum { SETUPS = sizeof setups / sizeof *setups };

static quire_space *make_space(quire_space_options options, uint64_t size)
{
    options.size = size;
    if (options.fit.algorithm == QUIRE_FIT_SEGREGATED)
        options.fit.granule = 256;   /* regions grow beyond the line of the default */
    options.fit.max_alignment = 256; /* regions lie close together */
    quire_space *space = new_space(options);
    if (options.fit.least_fragmentation) /* half of the setups defer their frees as well */
        defer_frees(space, 0);
    return space;
}

static void resize(quire_space *space, uint32_t region, uint64_t size)
{
    uint64_t rest = space->region_bytes - space->regions[region].size;
    CHECK_OK(quire_space_resize_region(space, region, size));
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->regions[region].size, size);
    CHECK_EQ(stats_of(space).region_bytes, rest + size);
}

/* A failed call changes no range and no statistics, except for host memory that is kept for later.
   */
static void refuse(quire_space *space, uint32_t region, uint64_t size, quire_result code)
{
    shape before = shape_of(space);
    quire_space_stats old = stats_of(space);
    CHECK_FAILS(quire_space_resize_region(space, region, size), code);
    shape after = shape_of(space);
    quire_space_stats now = stats_of(space);
    shape_compare(&before, &after, true);
    old.metadata_bytes = now.metadata_bytes;
    old.metadata_peak = now.metadata_peak;
    CHECK(!memcmp(&old, &now, sizeof old));
    shape_end(&before);
    shape_end(&after);
}

static void expect_free(const quire_space *space, uint64_t count, uint64_t bytes)
{
    CHECK_EQ(stats_of(space).free_count, count);
    CHECK_EQ(stats_of(space).free_bytes, bytes);
}

/* ---- growing ------------------------------------------------------------------------------- */

/* A space of one granule has the smallest tables. */
UNIT(space_region, growth_exceeds_the_classes_of_the_tables)
{
    const uint64_t large = UINT64_C(1) << 39;
    for (int i = 0; i < 2 * SETUPS; i++) {
        bool is_full = i % 2;
        quire_space *space = make_space(setups[i / 2], 256);
        if (is_full)
            take_bytes(space, 256);
        resize(space, 0, large);
        CHECK_EQ(stats_of(space).largest_free, large - (is_full ? 256 : 0));
        CHECK_EQ(take_bytes(space, large / 2).size, large / 2);
        resize(space, 0, large + 256);
        end_space(space);
    }
}

/* ---- shrinking ----------------------------------------------------------------------------- */

UNIT(space_region, an_empty_slab_at_the_end_does_not_prevent_shrinking)
{
    for (int i = 0; i < SETUPS; i++) {
        if (!setups[i].fit.slabs)
            continue;
        quire_space *space = make_space(setups[i], 4 * U);
        quire_range block = take_bytes(space, 3 * U).range, slots[2];
        slots[0] = take_bytes(space, 300).range;
        slots[1] = take_bytes(space, 1000).range; /* of another slab */
        CHECK_FAILS(quire_space_resize_region(space, 0, 3 * U), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_space_free(space, slots[0]));
        CHECK_FAILS(quire_space_resize_region(space, 0, 3 * U), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_space_free(space, slots[1]));
        CHECK(qi_space_free_at_end(space, 0) < U); /* the empty slab is cached */
        resize(space, 0, 3 * U);
        CHECK_OK(quire_space_free(space, block));
        end_space(space);
    }
}

static uint64_t end_of(const quire_placement *at)
{
    return at->offset + at->size;
}

static void expect_named(quire_space *space, uint64_t size, const char *what, uint64_t end)
{
    char message[128];
    snprintf(message, sizeof message, "%s to %llu", what, (unsigned long long)end);
    CHECK_FAILS(quire_space_resize_region(space, 0, size), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), message);
}

/* A slab ends after its live slots: the message names its true end. */
UNIT(space_region, a_failed_shrink_names_the_end_of_the_last_live_range_or_slab)
{
    const char *const live = "live ranges reach beyond, the last one";
    const char *const slab = "no live range reaches beyond, but the slab of one does,";
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 4 * U);
        quire_placement first = take_bytes(space, 300), other = take_bytes(space, 2 * U);
        uint64_t least = end_of(&first) + qi_padding(end_of(&first), space->granule);
        expect_named(space, U / 2, live, end_of(&other));
        CHECK_OK(quire_space_free(space, other.range));
        uint64_t reached = 4 * U - qi_space_free_at_end(space, 0);
        CHECK(setups[i].fit.slabs ? reached > least : reached == least);
        if (setups[i].fit.slabs) {
            expect_named(space, least, slab, reached);
            expect_named(space, reached - space->granule, slab, reached);
            expect_named(space, least - space->granule, live, end_of(&first));
        }
        resize(space, 0, reached);
        end_space(space);
    }
}

/* With so many records the free is deferred. */
UNIT(space_region, deferred_ranges_at_the_end_count_as_free)
{
    enum { CROWD = 17000 };
    quire_space *space = make_space((quire_space_options){0}, CROWD * 256);
    defer_frees(space, CROWD / 2);
    static quire_range crowd[CROWD];
    for (int i = 0; i < CROWD; i++)
        crowd[i] = take_bytes(space, 256).range;
    CHECK_OK(quire_space_free(space, crowd[CROWD - 1]));
    CHECK_EQ(qi_space_free_at_end(space, 0), 256);
    CHECK_OK(quire_space_free(space, crowd[CROWD - 2]));
    uint32_t used = qi_pool_used(&space->pool);
    CHECK_OK(quire_space_resize_region(space, 0, (CROWD + 2) * 256));
    CHECK_EQ(qi_pool_used(&space->pool), used - 1); /* merged, and nothing is deferred */
    expect_free(space, 1, 4 * 256);
    CHECK_OK(quire_space_free(space, crowd[CROWD - 3]));
    resize(space, 0, (CROWD - 3) * 256);
    expect_free(space, 0, 0);
    end_space(space);
}

/* ---- places -------------------------------------------------------------------------------- */

UNIT(space_region, the_last_region_grows_up_to_the_end_of_the_line)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], U);
        uint64_t whole = space->line.limit;
        refuse(space, 0, whole + space->granule, QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_HAS(quire_last_error(), "the line ends");
        refuse(space, 0, 0 - space->granule, QUIRE_ERROR_OUT_OF_RANGE);
        resize(space, 0, whole);
        CHECK_EQ(stats_of(space).largest_free, whole);
        resize(space, 0, U);
        CHECK_EQ(add_region(space, whole - U, U), 1);
        end_space(space);
    }
}

UNIT(space_region, a_region_ends_within_the_addresses_of_its_base)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 0);
        uint32_t region = add_region(space, 2 * U, 0 - 4 * U);
        resize(space, region, 4 * U);
        refuse(space, region, 4 * U + space->granule, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "reaches beyond the last address");
        end_space(space);
    }
}

/* ---- host memory and records ---------------------------------------------------------------- */

/*
 * Full regions of U bytes with as much free line after each; the first ones grow until no number is
 * spare. Returns the last region, which does not grow.
 */
static uint32_t use_all_numbers(quire_space *space)
{
    uint32_t last = add_region(space, 2 * U, 0);
    take_bytes(space, U);
    /* the next region is placed first, or it would take the free line */
    while (space->pool.spare > last) {
        uint32_t next = add_region(space, 2 * U, 0);
        resize(space, last, U);
        take_bytes(space, U);
        last = next;
    }
    resize(space, last, U);
    for (uint32_t i = 0; space->pool.spare; i++)
        resize(space, i, 2 * U);
    return last;
}

/* Grows a full region far while one host allocation fails. Returns whether it was made. */
static bool fails_at(const quire_space_options *options, uint64_t call)
{
    const uint64_t far = UINT64_C(1) << 36;
    quire_space *space = make_space(*options, 0);
    uint32_t last = use_all_numbers(space);
    shape before = shape_of(space);
    test_memory_fail(unit_memory_state(), call, false);
    quire_result result = quire_space_resize_region(space, last, far);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_OK(quire_space_check(space));
    if (result) {
        shape after = shape_of(space);
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        shape_compare(&before, &after, true);
        CHECK_EQ(stats_of(space).largest_free, U);
        shape_end(&after);
        resize(space, last, far);
    }
    CHECK_EQ(stats_of(space).largest_free, far - U);
    CHECK_EQ(take_bytes(space, far - U).region, last);
    shape_end(&before);
    end_space(space);
    return result != QUIRE_SUCCESS;
}

UNIT(space_region, growing_without_host_memory_changes_nothing)
{
    for (int i = 0; i < SETUPS; i++) {
        uint64_t calls = 0;
        while (fails_at(&setups[i], calls + 1))
            calls++;
        CHECK_EQ(calls,
                 setups[i].fit.algorithm == QUIRE_FIT_FIRST ? 1 : 3); /* free bits, nodes, tables */
    }
}

UNIT(space_region, shrinking_takes_no_host_memory)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 100 * U);
        take_bytes(space, U);
        test_memory_fail(unit_memory_state(), 1, true);
        resize(space, 0, 50 * U);
        /* merging takes none either if the tables already cover the size */
        resize(space, 0, 60 * U);
        resize(space, 0, U);
        test_memory_fail(unit_memory_state(), 0, false);
        end_space(space);
    }
}

/* An empty space renumbers its regions after any resizing. */
UNIT(space_region, cleared_and_trimmed_spaces_keep_the_resized_regions)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 64 * U);
        uint32_t second = add_region(space, 64 * U, U);
        for (int j = 0; j < 128; j++)
            take_bytes(space, U);
        resize(space, second, UINT64_C(1) << 36);
        CHECK_OK(quire_space_clear(space));
        expect_free(space, 2, (UINT64_C(1) << 36) + 64 * U);
        resize(space, 0, 2 * U);
        resize(space, second, 3 * U);
        quire_space_trim(space);
        CHECK_OK(quire_space_check(space));
        expect_free(space, 2, 5 * U);
        resize(space, second, UINT64_C(1) << 37);
        resize(space, 0, 64 * U);
        CHECK_EQ(take_bytes(space, (UINT64_C(1) << 37)).region, second);
        end_space(space);
    }
}
