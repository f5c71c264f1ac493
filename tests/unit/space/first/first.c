/*
 * first.c - the first fit retires numbers, and changes nothing when host memory is exhausted.
 * (tests/plain/space_model.c compares its places with a naive search of all gaps.)
 */
#include "src/space/first/first.h"

#include "src/base/handle.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static quire_space *make_space(uint64_t size)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit.algorithm = QUIRE_FIT_FIRST, .size = size};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static qi_first *records(quire_space *space)
{
    return (qi_first *)(void *)space;
}

static quire_placement take(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
    CHECK_OK(quire_space_check(space));
    return at;
}

static void give(quire_space *space, quire_range range)
{
    CHECK_OK(quire_space_free(space, range));
    CHECK_OK(quire_space_check(space));
}

UNIT(first, a_failed_request_does_not_count_padding_as_free)
{
    quire_space *space = make_space(1000);
    quire_placement at;
    take(space, 10, 1);
    take(space, 100, 256);
    CHECK_FAILS(quire_space_allocate(space, 700, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no free range of 700 at a multiple of 1: the space is "
                                  "exhausted, with 644 free in 1 region; largest free range 644");
    end_space(space);
}

/* ---- host memory is exhausted -------------------------------------------------------------- */

UNIT(first, allocating_without_host_memory_changes_nothing)
{
    quire_space *space = make_space(100000);
    uint64_t refused = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        quire_placement at;
        test_memory_fail(unit_memory_state(), 1, true);
        quire_result result = quire_space_allocate(space, 10, 1, 0, &at);
        test_memory_fail(unit_memory_state(), 0, false);
        if (result) {
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_EQ(at.range.id, 0);
            CHECK_EQ(space->live_count, i);
            refused++;
            at = take(space, 10, 1);
        }
        CHECK_EQ(at.offset, i * 10);
    }
    CHECK(refused >= 4 && refused <= 10); /* the array doubles */
    end_space(space);
}

UNIT(first, adding_a_region_without_host_memory_changes_nothing)
{
    for (uint64_t call = 1; call <= 4; call++) { /* regions, line, nodes */
        quire_space *space = make_space(0);
        uint32_t region = 77;
        test_memory_fail(unit_memory_state(), call, true);
        quire_result result = quire_space_add_region(space, 100, 0, &region);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(result, call <= 3 ? QUIRE_ERROR_OUT_OF_HOST_MEMORY : QUIRE_SUCCESS);
        CHECK_EQ(space->region_count, call == 4);
        CHECK_EQ(space->line.count, call == 4);
        CHECK_EQ(space->region_bytes, call == 4 ? 100 : 0);
        CHECK_OK(quire_space_check(space));
        if (result)
            CHECK_OK(quire_space_add_region(space, 100, 0, &region));
        CHECK_EQ(region, 0);
        CHECK_EQ(take(space, 100, 1).offset, 0);
        end_space(space);
    }
}

/* ---- generations and trimming -------------------------------------------------------------- */

/* Gives the number of a live range its last generation. */
static quire_range age(quire_space *space, quire_range range)
{
    uint32_t slot = qi_handle_slot(range.id);
    records(space)->nodes[slot].generation = QI_LAST_GENERATION;
    return (quire_range){qi_handle(space->tag, QI_LAST_GENERATION, slot)};
}

static void expect_never_again(quire_space *space, quire_range old)
{
    quire_range ranges[100];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            ranges[i] = take(space, 1, 1).range;
            CHECK(qi_handle_slot(ranges[i].id) != qi_handle_slot(old.id));
        }
        for (int i = 0; i < 100; i++)
            give(space, ranges[i]);
    }
    CHECK_FAILS(quire_space_free(space, old), QUIRE_ERROR_STALE_HANDLE);
}

UNIT(first, a_worn_number_is_retired_when_its_range_merges)
{
    quire_space *space = make_space(4096);
    quire_range old = age(space, take(space, 100, 1).range);
    give(space, old);
    CHECK_EQ(space->pool.retired, 1);
    expect_never_again(space, old);
    end_space(space);
}

UNIT(first, a_worn_number_keeps_its_free_range_until_that_is_allocated)
{
    quire_space *space = make_space(4096);
    take(space, 10, 1);
    quire_range old = age(space, take(space, 50, 1).range);
    take(space, 10, 1);
    give(space, old);
    CHECK_EQ(space->pool.retired, 0);
    give(space, take(space, 20, 1).range);
    CHECK_EQ(space->pool.retired, 0);
    CHECK_EQ(take(space, 50, 1).offset, 10);
    CHECK_EQ(space->pool.retired, 1);
    expect_never_again(space, old);
    end_space(space);
}

UNIT(first, the_last_generation_is_handed_out_once)
{
    quire_space *space = make_space(4096);
    quire_range range = take(space, 100, 1).range;
    uint32_t slot = qi_handle_slot(range.id);
    give(space, range);
    records(space)->nodes[slot].generation = QI_LAST_GENERATION - 1;
    range = take(space, 100, 1).range;
    CHECK_EQ(range.id, qi_handle(space->tag, QI_LAST_GENERATION, slot));
    give(space, range);
    CHECK_EQ(space->pool.retired, 1);
    expect_never_again(space, range);
    end_space(space);
}

UNIT(first, trimming_keeps_live_and_free_ranges)
{
    quire_space *space = make_space(100000);
    static quire_range ranges[3000];
    for (uint64_t i = 0; i < 3000; i++)
        CHECK_EQ((ranges[i] = take(space, 20, 1).range).id == 0, false);
    for (int i = 40; i < 3000; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
    for (int i = 0; i < 40; i += 2)
        CHECK_OK(quire_space_free(space, ranges[i]));
    uint32_t capacity = space->pool.capacity;
    test_memory_fail(unit_memory_state(), 1, true);
    quire_space_trim(space);
    CHECK_EQ(space->pool.capacity, capacity);
    test_memory_fail(unit_memory_state(), 0, false);
    quire_space_trim(space);
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->pool.capacity, 64);
    for (int i = 1; i < 40; i += 2) {
        quire_placement at;
        CHECK_OK(quire_space_get(space, ranges[i], &at));
        CHECK_EQ(at.offset, 20 * i);
    }
    for (int i = 0; i < 1000; i++)
        take(space, 20, 1);
    end_space(space);
}
