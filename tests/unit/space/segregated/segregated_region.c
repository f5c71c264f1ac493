/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * segregated_region.c - tables, regions and figures of the segregated fit: tables that grow with
 * the regions, buckets that widen with the line, host memory that is exhausted half way, trimming.
 */
#include "src/space/segregated/segregated.h"

#include "tests/support/space_steps.h"

/* Regions lie close together. */
static quire_space *make_space(uint64_t size)
{
    return new_space(
        (quire_space_options){.size = size, .fit = {.granule = 1, .max_alignment = 1}});
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
        add_region(space, steps[i].size, 0);
        /* one bucket per class, because there are few nodes */
        CHECK_EQ(s->list_count, steps[i].classes);
    }
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
        add_region(space, sizes[i], 0);
        extent += sizes[i];
        CHECK_EQ(s->row_shift, 4);
        CHECK((extent - 1) >> s->bucket_shift < 16);
        CHECK(!s->bucket_shift || (extent - 1) >> (s->bucket_shift - 1) >= 16);
    }
    end_space(space);
}

UNIT(segregated_region, every_free_range_is_listed_again_when_buckets_widen)
{
    quire_space *space = make_space(100);
    add_region(space, 100, 0);
    CHECK_OK(quire_space_remove_region(space, 0)); /* its numbers 1 and 2 go to ranges */
    quire_range first = take_bytes(space, 10).range, second = take_bytes(space, 10).range;
    take_bytes(space, 10);
    CHECK_OK(quire_space_free(space, first));
    CHECK(qi_node_is_free(qi_segregated_of(space), 1));
    add_region(space, 1 << 20, 0);
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
    uint32_t second = add_region(space, 1 << 20, 0);
    for (int i = 0; i < 3000; i++)
        take_bytes(space, 20);
    CHECK_OK(quire_space_clear(space));
    CHECK(space->pool.capacity >= 3000);
    CHECK_OK(quire_space_remove_region(space, second));
    CHECK_EQ(space->pool.capacity, 32);
    end_space(space);
}

/* ---- the largest free range ---------------------------------------------------------------- */
