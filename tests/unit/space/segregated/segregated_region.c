/*
 * segregated_region.c - tables, regions and figures of the segregated fit: tables that grow with
 * the regions, buckets that widen with the line, host memory that is exhausted half way, trimming.
 */
#include "src/space/segregated/segregated.h"

#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static quire_space *make_space(uint64_t size)
{
    quire_space *space = NULL;
    quire_space_options options = {.size = size, .fit.granule = 1, .host_memory = unit_memory()};
    options.fit.max_alignment = 1; /* regions lie close together */
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static uint32_t add(quire_space *space, uint64_t size)
{
    uint32_t region = 99;
    CHECK_OK(quire_space_add_region(space, size, 0, &region));
    CHECK_OK(quire_space_check(space));
    return region;
}

/* ---- tables -------------------------------------------------------------------------------- */

UNIT(segregated_region, tables_cover_the_class_of_the_largest_region)
{
    quire_space *space = make_space(0);
    const qi_segregated *s = qi_segregated_of(space);
    const struct {
        uint64_t size;
        uint32_t classes;
    } steps[] = {{1, 32},       {31, 32},   {64, 64},       {1 << 10, 192},
                 {1 << 9, 192}, {100, 192}, {1 << 20, 512}, {1u << 31, 864}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        add(space, steps[i].size);
        /* one bucket per class, because there are few nodes */
        CHECK_EQ(s->list_count, steps[i].classes);
    }
    end_space(space);
}

UNIT(segregated_region, tables_keep_their_lists_when_they_grow)
{
    quire_space *space = make_space(0);
    for (int i = 0; i < 60; i++)
        add(space, 32);
    const qi_segregated *s = qi_segregated_of(space);
    uint32_t shift = s->bucket_shift;
    add(space, 97); /* a class above the tables, on a line that is hardly longer */
    CHECK_EQ(s->bucket_shift, shift);
    CHECK_EQ(s->list_count >> s->row_shift, 96);
    for (int i = 0; i < 60; i++)
        CHECK(take_bytes(space, 32).region < 60);
    CHECK_EQ(take_bytes(space, 97).region, 60);
    end_space(space);
}

UNIT(segregated_region, a_request_above_the_tables_finds_nothing)
{
    quire_space *space = make_space(0);
    for (int i = 0; i < 100; i++)
        add(space, 32);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(space, 3000, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_FAILS(quire_space_allocate(space, 64, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_FAILS(quire_space_allocate(space, 33, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_OK(quire_space_allocate(space, 32, 1, 0, &at));
    end_space(space);
}

/* ---- buckets ------------------------------------------------------------------------------- */

/* With room for so many nodes a class has 16 buckets. */
static void make_room_for_many(quire_space *space)
{
    CHECK_OK(qi_segregated_reserve(qi_segregated_of(space), 2100));
    CHECK_EQ(qi_segregated_of(space)->row_shift, qi_segregated_of(space)->list_count ? 4 : 0);
}

UNIT(segregated_region, buckets_are_the_narrowest_that_cover_the_line)
{
    quire_space *space = make_space(0);
    const qi_segregated *s = qi_segregated_of(space);
    uint64_t extent = 0;
    make_room_for_many(space);
    const uint64_t sizes[] = {1, 15, 1, 15, 1, 1000, 20000, 1, 1 << 20, 1 << 30};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        add(space, sizes[i]);
        extent += sizes[i];
        CHECK_EQ(s->row_shift, 4);
        CHECK((extent - 1) >> s->bucket_shift < 16);
        CHECK(!s->bucket_shift || (extent - 1) >> (s->bucket_shift - 1) >= 16);
    }
    end_space(space);
}

UNIT(segregated_region, ranges_move_to_the_right_bucket_when_buckets_widen)
{
    quire_space *space = make_space(1600);
    make_room_for_many(space);
    quire_range ranges[16];
    for (int i = 0; i < 16; i++)
        ranges[i] = take_bytes(space, 100).range;
    for (int i = 0; i < 16; i += 2)
        CHECK_OK(quire_space_free(space, ranges[i]));
    add(space, 16000); /* buckets of 128 become buckets of 2048: all holes are in the first */
    CHECK_EQ(qi_segregated_of(space)->bucket_shift, 11);
    for (int i = 0; i < 8; i++) {
        quire_placement at = take_bytes(space, 100);
        CHECK_EQ(at.region, 0);
        CHECK_EQ(at.offset % 200, 0);
    }
    CHECK_EQ(take_bytes(space, 100).region, 1);
    end_space(space);
}

UNIT(segregated_region, every_free_range_is_listed_again_when_buckets_widen)
{
    quire_space *space = make_space(100);
    add(space, 100);
    CHECK_OK(quire_space_remove_region(space, 0)); /* its numbers 1 and 2 go to ranges */
    quire_range first = take_bytes(space, 10).range, second = take_bytes(space, 10).range;
    take_bytes(space, 10);
    CHECK_OK(quire_space_free(space, first));
    CHECK(qi_node_is_free(qi_segregated_of(space), 1));
    add(space, 1 << 20);
    CHECK_OK(quire_space_free(space, second));
    CHECK_EQ(take_bytes(space, 20).offset, 0);
    end_space(space);
}

/* More nodes mean more buckets; ranges listed before are found in the new buckets. */
UNIT(segregated_region, the_number_of_buckets_follows_the_nodes)
{
    enum { MOST = 4000 };
    quire_space *space = make_space(MOST * 16);
    const qi_segregated *s = qi_segregated_of(space);
    static quire_range ranges[MOST];
    for (int i = 0; i < MOST; i++) {
        ranges[i] = take_bytes(space, 16).range;
        uint32_t capacity = space->pool.capacity;
        CHECK_EQ(s->row_shift, capacity <= 64 ? 0 : capacity <= 512 ? 2 : 4);
    }
    CHECK_EQ(s->row_shift, 4);
    CHECK_OK(quire_space_check(space));
    for (int i = MOST - 1; i >= 100; i--)
        CHECK_OK(quire_space_free(space, ranges[i]));
    for (int i = 0; i < 100; i += 2)
        CHECK_OK(quire_space_free(space, ranges[i]));
    quire_space_trim(space);
    CHECK_EQ(s->row_shift, 2); /* 101 ranges remain */
    CHECK_OK(quire_space_check(space));
    for (int i = 0; i < 50; i++)
        CHECK(take_bytes(space, 16).offset < UINT64_C(100) * 16);
    end_space(space);
}

UNIT(segregated_region, growing_without_host_memory_changes_nothing)
{
    for (uint64_t call = 1; call <= 3; call++) { /* free bits, tables, nodes */
        quire_space *space = make_space(1 << 20);
        while (space->pool.capacity < 64 || space->pool.spare >= 2)
            take_bytes(space, 20);
        uint64_t live = space->live_count;
        quire_placement at;
        test_memory_fail(unit_memory_state(), call, true);
        CHECK_FAILS(quire_space_allocate(space, 20, 1, 0, &at), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(space->live_count, live);
        CHECK_OK(quire_space_check(space));
        take_bytes(space, 20);
        CHECK_EQ(qi_segregated_of(space)->row_shift, 2);
        end_space(space);
    }
}

UNIT(segregated_region, buckets_stay_wide_when_the_line_gets_shorter)
{
    quire_space *space = make_space(16);
    uint32_t far = add(space, 1 << 20);
    uint32_t shift = qi_segregated_of(space)->bucket_shift;
    CHECK_OK(quire_space_remove_region(space, far));
    CHECK_EQ(qi_segregated_of(space)->bucket_shift, shift);
    add(space, 16);
    CHECK_EQ(take_bytes(space, 16).region + take_bytes(space, 16).region, 1); /* either first */
    end_space(space);
}

/* ---- host memory is exhausted -------------------------------------------------------------- */

/* Adds a region while one host allocation fails. Returns whether that allocation was made. */
static bool fails_at(quire_space *space, uint64_t size, uint64_t call)
{
    quire_space_stats before, after;
    uint32_t region = 77;
    CHECK_OK(quire_space_get_stats(space, &before));
    test_memory_fail(unit_memory_state(), call, false);
    quire_result result = quire_space_add_region(space, size, 0, &region);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_OK(quire_space_check(space));
    if (!result)
        return false;
    CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(region, 0);
    CHECK_EQ(space->line.count, space->region_count);
    CHECK_OK(quire_space_get_stats(space, &after));
    before.metadata_bytes = after.metadata_bytes; /* an array may have grown already */
    before.metadata_peak = after.metadata_peak;
    CHECK(!memcmp(&before, &after, sizeof before));
    return true;
}

/* Fails every host allocation of adding a second region in turn; returns their number. */
static uint64_t fail_each(uint64_t first, uint64_t second)
{
    for (uint64_t call = 1;; call++) {
        quire_space *space = make_space(first);
        bool failed = fails_at(space, second, call);
        uint32_t number = failed ? add(space, second) : first != 0;
        CHECK_EQ(number, first != 0);
        CHECK_EQ(take_bytes(space, second).region, number);
        end_space(space);
        if (!failed)
            return call - 1;
    }
}

UNIT(segregated_region, adding_a_region_without_host_memory_changes_nothing)
{
    CHECK_EQ(fail_each(0, 100), 5); /* regions, line, free bits, nodes, tables */
    CHECK_EQ(fail_each(100, 100), 0);
    CHECK_EQ(fail_each(100, 1 << 20), 1);
}

/* ---- trimming ------------------------------------------------------------------------------ */

UNIT(segregated_region, a_trim_without_host_memory_keeps_the_space_sound)
{
    for (uint64_t call = 1; call <= 2; call++) { /* the nodes, then the free bits */
        quire_space *space = make_space(1 << 20);
        quire_range ranges[3000];
        for (int i = 0; i < 3000; i++)
            ranges[i] = take_bytes(space, 20).range;
        for (int i = 1; i < 3000; i++)
            CHECK_OK(quire_space_free(space, ranges[i]));
        uint32_t capacity = space->pool.capacity;
        test_memory_fail(unit_memory_state(), call, true);
        quire_space_trim(space);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_OK(quire_space_check(space));
        CHECK_EQ(space->pool.capacity, call == 1 ? capacity : 32);
        CHECK_EQ(qi_segregated_of(space)->free_capacity, capacity);
        for (int i = 0; i < 5000; i++)
            take_bytes(space, 20);
        end_space(space);
    }
}

UNIT(segregated_region, removing_a_region_trims_once_nearly_all_records_are_unused)
{
    quire_space *space = make_space(100);
    uint32_t second = add(space, 1 << 20);
    for (int i = 0; i < 3000; i++)
        take_bytes(space, 20);
    CHECK_OK(quire_space_clear(space));
    CHECK(space->pool.capacity >= 3000);
    CHECK_OK(quire_space_remove_region(space, second));
    CHECK_EQ(space->pool.capacity, 32);
    end_space(space);
}

/* ---- the largest free range ---------------------------------------------------------------- */

UNIT(segregated_region, a_full_space_has_no_largest_free_range)
{
    quire_space *space = make_space(100);
    CHECK_EQ(largest_free_of(space), 100);
    take_bytes(space, 100);
    CHECK_EQ(largest_free_of(space), 0);
    end_space(space);
    space = make_space(0);
    CHECK_EQ(largest_free_of(space), 0);
    end_space(space);
}
