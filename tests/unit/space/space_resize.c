/*
 * space_resize.c - regions of a space grow and shrink at their end: added bytes are free
 * immediately, live ranges stay in place, and a failed call changes nothing.
 */
#include <stdio.h>

#include "src/base/bits.h"
#include "tests/support/resize.h"

/* ---- growing ------------------------------------------------------------------------------- */

/* A space of one granule has the smallest tables. */
UNIT(space_resize, growth_exceeds_the_classes_of_the_tables)
{
    const uint64_t large = UINT64_C(1) << 39;
    for (int i = 0; i < 2 * SETUPS; i++) {
        bool is_full = i % 2;
        quire_space *space = make_space(setups[i / 2], 256);
        if (is_full)
            take(space, 256);
        resize(space, 0, large);
        CHECK_EQ(stats_of(space).largest_free, large - (is_full ? 256 : 0));
        CHECK_EQ(take(space, large / 2).size, large / 2);
        resize(space, 0, large + 256);
        end_space(space);
    }
}

UNIT(space_resize, ranges_freed_before_the_tables_grow_are_found_afterwards)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 100 * U);
        quire_range ranges[99];
        for (int j = 0; j < 99; j++)
            ranges[j] = take(space, U).range;
        for (int j = 0; j < 98; j += 2)
            CHECK_OK(quire_space_free(space, ranges[j]));
        resize(space, 0, UINT64_C(1) << 38);
        for (int j = 0; j < 49; j++)
            CHECK(take(space, U).offset < 98 * U);
        CHECK_EQ(take(space, U).offset, 99 * U);
        end_space(space);
    }
}

/* ---- shrinking ----------------------------------------------------------------------------- */

UNIT(space_resize, a_region_shrinks_to_the_end_of_its_last_live_range_and_no_further)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 10 * U);
        quire_range low = take(space, U).range, last = take(space, 2 * U).range;
        CHECK_OK(quire_space_free(space, low));
        refuse(space, 0, space->granule, QUIRE_ERROR_BUSY);
        refuse(space, 0, 3 * U - space->granule, QUIRE_ERROR_BUSY);
        CHECK_HAS(quire_last_error(), "region 0 cannot shrink to ");
        CHECK_HAS(quire_last_error(), "the last one to 24576");
        resize(space, 0, 4 * U);
        expect_free(space, 2, 2 * U);
        resize(space, 0, 3 * U); /* no byte of the last free range remains */
        expect_free(space, 1, U);
        refuse(space, 0, 3 * U - space->granule, QUIRE_ERROR_BUSY);
        CHECK_OK(quire_space_free(space, last));
        resize(space, 0, space->granule);
        expect_free(space, 1, space->granule);
        end_space(space);
    }
}

UNIT(space_resize, an_empty_slab_at_the_end_does_not_prevent_shrinking)
{
    for (int i = 0; i < SETUPS; i++) {
        if (!setups[i].fit.slabs)
            continue;
        quire_space *space = make_space(setups[i], 4 * U);
        quire_range block = take(space, 3 * U).range, slots[2];
        slots[0] = take(space, 300).range;
        slots[1] = take(space, 1000).range; /* of another slab */
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
UNIT(space_resize, a_failed_shrink_names_the_end_of_the_last_live_range_or_slab)
{
    const char *const live = "live ranges reach beyond, the last one";
    const char *const slab = "no live range reaches beyond, but the slab of one does,";
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 4 * U);
        quire_placement first = take(space, 300), other = take(space, 2 * U);
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
UNIT(space_resize, deferred_ranges_at_the_end_count_as_free)
{
    enum { CROWD = 17000 };
    quire_space *space = make_space((quire_space_options){0}, CROWD * 256);
    defer_frees(space, CROWD / 2);
    static quire_range crowd[CROWD];
    for (int i = 0; i < CROWD; i++)
        crowd[i] = take(space, 256).range;
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

UNIT(space_resize, a_region_grows_up_to_the_next_one_on_the_line)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 4 * U);
        uint32_t middle = add(space, 4 * U, 0);
        add(space, 4 * U, 0);
        refuse(space, 0, 4 * U + space->granule, QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_HAS(quire_last_error(), "another lies on the line 32768 bytes from there");
        CHECK_OK(quire_space_remove_region(space, middle));
        refuse(space, 0, 8 * U + space->granule, QUIRE_ERROR_OUT_OF_RANGE);
        resize(space, 0, 8 * U);
        resize(space, 0, 2 * U);
        middle = add(space, 6 * U, 0); /* fills the gap */
        CHECK_EQ(space->regions[middle].start, 2 * U);
        refuse(space, 0, 2 * U + space->granule, QUIRE_ERROR_OUT_OF_RANGE);
        resize(space, 2, 9 * U);
        end_space(space);
    }
}

UNIT(space_resize, the_last_region_grows_up_to_the_end_of_the_line)
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
        CHECK_EQ(add(space, whole - U, U), 1);
        end_space(space);
    }
}

UNIT(space_resize, a_region_ends_within_the_addresses_of_its_base)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 0);
        uint32_t region = add(space, 2 * U, 0 - 4 * U);
        resize(space, region, 4 * U);
        refuse(space, region, 4 * U + space->granule, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "reaches beyond the last address");
        end_space(space);
    }
}

UNIT(space_resize, wrong_arguments_are_rejected)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 4 * U);
        const uint32_t wrong[] = {1, 3, 4, 1000, UINT32_MAX};
        CHECK_FAILS(quire_space_resize_region(NULL, 0, U), QUIRE_ERROR_INVALID_ARGUMENT);
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++)
            refuse(space, wrong[j], U, QUIRE_ERROR_INVALID_ARGUMENT);
        refuse(space, 0, 0, QUIRE_ERROR_INVALID_ARGUMENT);
        if (space->granule > 1) {
            refuse(space, 0, U + 1, QUIRE_ERROR_INVALID_ARGUMENT);
            refuse(space, 0, UINT64_MAX, QUIRE_ERROR_INVALID_ARGUMENT);
            CHECK_HAS(quire_last_error(), "a multiple of the granule 256");
        }
        end_space(space);
    }
}

UNIT(space_resize, regions_of_the_other_fits_cannot_be_resized)
{
    const quire_fit fits[] = {QUIRE_FIT_BUDDY, QUIRE_FIT_LINEAR};
    for (int i = 0; i < 2; i++) {
        quire_space *space = make_space((quire_space_options){.fit.algorithm = fits[i]}, 4 * U);
        for (uint64_t size = U; size <= 8 * U; size += U)
            refuse(space, 0, size, QUIRE_ERROR_UNSUPPORTED);
        refuse(space, 0, 0, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(qi_space_free_at_end(space, 0), 0);
        end_space(space);
    }
}
