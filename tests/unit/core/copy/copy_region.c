/*
 * copy_region.c - copy regions against a model that lists every byte: extents, merging, parts, and
 * which regions overlap.
 */
#include "src/core/copy/copy_path.h"

#include <string.h>

#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { ROOM = 4096, ROUNDS = 20000 };

/* One side of a region, at a random offset, sometimes with gaps. */
static qi_copy_region_side random_side(test_random *r, const qi_copy_region *region,
                                       uint64_t max_offset)
{
    qi_copy_region_side side = {.offset = random_below(r, max_offset)};
    side.row = region->size + (random_below(r, 2) ? random_below(r, 20) : 0);
    uint64_t slice = (region->rows - 1) * side.row + region->size;
    uint64_t usual = region->rows * side.row;
    side.slice = random_below(r, 2) ? usual : slice + random_below(r, 50);
    return side;
}

static qi_copy_region random_region(test_random *r)
{
    qi_copy_region region = {.size = 1 + random_below(r, 12),
                             .rows = 1 + random_below(r, 5),
                             .slices = 1 + random_below(r, 4)};
    region.to = random_side(r, &region, 300);
    region.from = random_side(r, &region, 300);
    return region;
}

/* The n-th byte of the region at one end. */
static uint64_t byte_at(const qi_copy_region *region, const qi_copy_region_side *side, uint64_t n)
{
    uint64_t row = n / region->size;
    return qi_copy_region_at(side, row % region->rows, row / region->rows) + n % region->size;
}

static void expect_same_bytes(const qi_copy_region *expected, const qi_copy_region *actual)
{
    CHECK_EQ(qi_copy_region_bytes(actual), qi_copy_region_bytes(expected));
    for (uint64_t i = 0; i < qi_copy_region_bytes(expected); i++) {
        CHECK_EQ(byte_at(actual, &actual->to, i), byte_at(expected, &expected->to, i));
        CHECK_EQ(byte_at(actual, &actual->from, i), byte_at(expected, &expected->from, i));
    }
}

UNIT(copy_region, extents_reach_from_the_first_to_the_last_byte)
{
    test_random r = {1};
    for (int round = 0; round < ROUNDS; round++) {
        qi_copy_region region = random_region(&r);
        uint64_t extent = 0, last = byte_at(&region, &region.to, qi_copy_region_bytes(&region) - 1);
        CHECK(!qi_copy_region_extent_overflows(&region, &region.to, &extent));
        CHECK_EQ(extent, last + 1 - region.to.offset);
        CHECK_EQ(qi_copy_region_extent(&region, &region.to), extent);
        CHECK_EQ(qi_copy_region_is_tight(&region, &region.to),
                 extent == qi_copy_region_bytes(&region));
    }
}

UNIT(copy_region, merging_keeps_every_byte_and_is_complete)
{
    test_random r = {2};
    for (int round = 0; round < ROUNDS; round++) {
        qi_copy_region region = random_region(&r), merged = region;
        qi_copy_region_merge(&merged);
        expect_same_bytes(&region, &merged);
        qi_copy_region again = merged;
        qi_copy_region_merge(&again);
        CHECK(again.rows == merged.rows && again.slices == merged.slices);
        CHECK(merged.rows > 1 || merged.slices == 1);
        if (qi_copy_region_is_tight(&region, &region.to) &&
            qi_copy_region_is_tight(&region, &region.from))
            CHECK_EQ(merged.rows * merged.slices, 1);
    }
}

UNIT(copy_region, slices_of_tight_rows_become_rows)
{
    qi_copy_region region = {.size = 4,
                             .rows = 8,
                             .slices = 3,
                             .to = {.row = 4, .slice = 100},
                             .from = {.row = 4, .slice = 32}};
    qi_copy_region_merge(&region);
    CHECK_EQ(region.size, 32);
    CHECK_EQ(region.rows, 3);
    CHECK_EQ(region.slices, 1);
    CHECK_EQ(region.to.row, 100);
    CHECK_EQ(region.from.row, 32);
}

UNIT(copy_region, parts_of_any_size_follow_each_other)
{
    test_random r = {3};
    for (int round = 0; round < ROUNDS; round++) {
        qi_copy_region region = random_region(&r);
        uint64_t room = 1 + random_below(&r, 80), all = qi_copy_region_bytes(&region), done = 0;
        while (done < all) {
            qi_copy_region part = qi_copy_region_part(&region, done, room);
            uint64_t bytes = qi_copy_region_bytes(&part);
            CHECK(bytes > 0 && bytes <= room && bytes <= all - done);
            for (uint64_t i = 0; i < bytes; i++) {
                CHECK_EQ(byte_at(&part, &part.to, i), byte_at(&region, &region.to, done + i));
                CHECK_EQ(byte_at(&part, &part.from, i), byte_at(&region, &region.from, done + i));
            }
            done += bytes;
        }
    }
}

static bool model_overlaps(const qi_copy_region *region)
{
    static bool is_taken[ROOM];
    memset(is_taken, 0, sizeof is_taken);
    for (uint64_t i = 0; i < qi_copy_region_bytes(region); i++)
        is_taken[byte_at(region, &region->to, i)] = true;
    for (uint64_t i = 0; i < qi_copy_region_bytes(region); i++)
        if (is_taken[byte_at(region, &region->from, i)])
            return true;
    return false;
}

UNIT(copy_region, regions_overlap_only_if_they_share_a_byte)
{
    test_random r = {5};
    int shared = 0, apart = 0;
    for (int round = 0; round < ROUNDS; round++) {
        qi_copy_region region = random_region(&r), merged = region;
        bool expected = model_overlaps(&region);
        CHECK_EQ(qi_copy_region_overlaps(&region), expected);
        qi_copy_region_merge(&merged);
        CHECK_EQ(qi_copy_region_overlaps(&merged), expected);
        expected ? shared++ : apart++;
    }
    CHECK(shared > ROUNDS / 10 && apart > ROUNDS / 10);
}
