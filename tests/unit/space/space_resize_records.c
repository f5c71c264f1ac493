/*
 * space_resize_records.c - the records of regions that grow and shrink: exhausted host memory and
 * renumbered records.
 */
#include "tests/support/resize.h"

/* ---- host memory and records ---------------------------------------------------------------- */

/*
 * Full regions of U bytes with as much free line after each; the first ones grow until no number is
 * spare. Returns the last region, which does not grow.
 */
static uint32_t use_all_numbers(quire_space *space)
{
    uint32_t last = add(space, 2 * U, 0);
    take(space, U);
    /* the next region is placed first, or it would take the free line */
    while (space->pool.spare > last) {
        uint32_t next = add(space, 2 * U, 0);
        resize(space, last, U);
        take(space, U);
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
    CHECK_EQ(take(space, far - U).region, last);
    shape_end(&before);
    end_space(space);
    return result != QUIRE_SUCCESS;
}

UNIT(space_resize_records, growing_without_host_memory_changes_nothing)
{
    for (int i = 0; i < SETUPS; i++) {
        uint64_t calls = 0;
        while (fails_at(&setups[i], calls + 1))
            calls++;
        CHECK_EQ(calls,
                 setups[i].fit.algorithm == QUIRE_FIT_FIRST ? 1 : 3); /* free bits, nodes, tables */
    }
}

UNIT(space_resize_records, shrinking_takes_no_host_memory)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 100 * U);
        take(space, U);
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
UNIT(space_resize_records, cleared_and_trimmed_spaces_keep_the_resized_regions)
{
    for (int i = 0; i < SETUPS; i++) {
        quire_space *space = make_space(setups[i], 64 * U);
        uint32_t second = add(space, 64 * U, U);
        for (int j = 0; j < 128; j++)
            take(space, U);
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
        CHECK_EQ(take(space, (UINT64_C(1) << 37)).region, second);
        end_space(space);
    }
}
