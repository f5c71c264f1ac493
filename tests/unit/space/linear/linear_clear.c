/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear_clear.c - clearing the linear fit in constant time: a clear touches two records, old
 * handles stay stale, worn numbers move to new slots; and the host memory of the fit.
 */
#define _DEFAULT_SOURCE /* anonymous mappings */
#include <sys/mman.h>

#include "src/space/linear/linear.h"
#include "tests/support/space_steps.h"

enum { MANY = 3000 };

static quire_range ranges[MANY], older[MANY];

static quire_space *make_space(void)
{
    return space_of(QUIRE_FIT_LINEAR, 1 << 20);
}

static qi_linear *records(quire_space *space)
{
    return (qi_linear *)(void *)space;
}

static void fill(quire_space *space, int count)
{
    for (int i = 0; i < count; i++)
        ranges[i] = take_bytes(space, 10).range;
}

static void clear(quire_space *space)
{
    CHECK_OK(quire_space_clear(space));
    CHECK_OK(quire_space_check(space));
}

static void expect_stale(quire_space *space, const quire_range *old, int count)
{
    for (int i = 0; i < count; i++)
        expect_rejected(space, old[i], QUIRE_ERROR_STALE_HANDLE);
}

/* ---- in O(1) ------------------------------------------------------------------------------- */

/* Host memory in separate mappings, so that a part of it can be made inaccessible. */
static void *map(void *user, size_t size, size_t alignment)
{
    (void)user, (void)alignment;
    void *pointer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pointer == MAP_FAILED ? NULL : pointer;
}

static void unmap(void *user, void *pointer, size_t size, size_t alignment)
{
    (void)user, (void)alignment;
    CHECK_EQ(munmap(pointer, size), 0);
}

/* Records between the first and the last live one are inaccessible: a clear does not touch them. */
UNIT(linear_clear, a_clear_reaches_no_record_between_the_first_and_the_last)
{
    enum { LIVE = 60000, PAGE = 65536 };
    const quire_host_memory mapped = {.allocate = map, .release = unmap};
    const quire_space_options options = {
        .fit.algorithm = QUIRE_FIT_LINEAR, .size = 1 << 20, .host_memory = &mapped};
    quire_space *space = NULL;
    CHECK_OK(quire_space_create(&options, &space));
    for (int i = 0; i < LIVE; i++)
        take_bytes(space, 10);
    char *items = space->pool.items;
    size_t last = LIVE * sizeof(qi_linear_record) / PAGE * PAGE;
    CHECK(last > 40 * PAGE);
    CHECK_EQ(mprotect(items + PAGE, last - PAGE, PROT_NONE), 0);
    CHECK_OK(quire_space_clear(space));
    CHECK_EQ(mprotect(items + PAGE, last - PAGE, PROT_READ | PROT_WRITE), 0);
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->live_count, 0);
    end_space(space);
}

/* The same for the written records, at every count. */
UNIT(linear_clear, a_clear_writes_two_records_for_any_number_of_ranges)
{
    for (size_t count = 1; count <= MANY; count *= 3) {
        quire_space *space = make_space();
        static qi_linear_record before[MANY + 1];
        fill(space, (int)count);
        memcpy(before, records(space)->records, sizeof *before * (count + 1));
        CHECK_OK(quire_space_clear(space));
        int changed = 0;
        for (size_t i = 0; i <= count; i++)
            changed += memcmp(&before[i], &records(space)->records[i], sizeof *before) != 0;
        CHECK(changed <= 2);
        CHECK_OK(quire_space_check(space));
        end_space(space);
    }
}

/* ---- state after a clear ------------------------------------------------------------------- */

UNIT(linear_clear, frames_without_end_take_no_more_host_memory)
{
    quire_space *space = make_space();
    fill(space, 300);
    clear(space);
    uint64_t bytes = unit_memory_state()->bytes, calls = unit_memory_state()->calls;
    for (int frame = 0; frame < 20000; frame++) {
        fill(space, 10 + frame % 290);
        CHECK_OK(quire_space_clear(space));
    }
    CHECK_EQ(unit_memory_state()->bytes, bytes);
    CHECK_EQ(unit_memory_state()->calls, calls);
    end_space(space);
}

/* ---- wear ---------------------------------------------------------------------------------- */

/* Sets the generation of every number, as many uses would. */
static void age_all(quire_space *space, uint32_t uses)
{
    CHECK_EQ(space->live_count, 0);
    for (uint32_t i = 1; i < space->pool.top; i++)
        records(space)->records[i].generation = uses;
}

UNIT(linear_clear, worn_numbers_move_to_new_slots_when_the_space_is_empty)
{
    quire_space *space = make_space();
    fill(space, 1000);
    clear(space);
    age_all(space, QI_LAST_GENERATION - 1);
    fill(space, 1000); /* the last generation of each */
    CHECK_EQ(qi_handle_generation(ranges[0].id), QI_LAST_GENERATION);
    memcpy(older, ranges, sizeof older);
    clear(space);
    uint64_t bytes = unit_memory_state()->bytes;
    for (int window = 1; window <= 50; window++) {
        fill(space, 1000);
        CHECK_OK(quire_space_check(space));
        CHECK_EQ(records(space)->window, 1000 * window);
        CHECK_EQ(qi_handle_slot(ranges[0].id), 1000 * window + 1);
        CHECK_EQ(qi_handle_generation(ranges[0].id), 1);
        CHECK_EQ(space->pool.retired, 0);
        expect_stale(space, older, 1000);
        CHECK_OK(quire_space_free(space, ranges[999]));
        clear(space);
        age_all(space, QI_LAST_GENERATION);
    }
    CHECK_EQ(unit_memory_state()->bytes, bytes);
    end_space(space);
}

UNIT(linear_clear, a_worn_number_is_retired_until_the_space_is_empty)
{
    quire_space *space = make_space();
    quire_placement first = take_bytes(space, 10);
    quire_range old = take_bytes(space, 10).range;
    uint32_t number = qi_handle_slot(old.id);
    records(space)->records[number].generation = QI_LAST_GENERATION;
    old.id = qi_handle(space->tag, QI_LAST_GENERATION, number);
    CHECK_OK(quire_space_free(space, old));
    CHECK_OK(quire_space_check(space));
    for (int i = 0; i < 3; i++) {
        quire_range other = take_bytes(space, 10).range;
        CHECK(qi_handle_slot(other.id) != number);
        CHECK_EQ(space->pool.retired, 1);
        CHECK_OK(quire_space_check(space));
        CHECK_OK(quire_space_free(space, other));
        expect_stale(space, &old, 1);
    }
    CHECK_OK(quire_space_free(space, first.range));
    age_all(space, QI_LAST_GENERATION);
    records(space)->records[number].generation = QI_LAST_GENERATION + 1;
    take_bytes(space, 10);
    CHECK_EQ(space->pool.retired, 0);
    CHECK_OK(quire_space_check(space));
    end_space(space);
}

/* Above the last window numbers are retired; when all are, allocations fail. */
UNIT(linear_clear, allocations_fail_when_all_slots_are_worn)
{
    quire_space *space = make_space();
    quire_placement at;
    take_bytes(space, 10);
    clear(space);
    records(space)->window = QI_SLOT_COUNT - 32 - 1;
    age_all(space, QI_LAST_GENERATION);
    CHECK_EQ(qi_handle_slot(take_bytes(space, 10).range.id),
             QI_SLOT_COUNT - 32 + 1); /* the last one */
    CHECK_EQ(records(space)->window, QI_SLOT_COUNT - 32);
    clear(space);
    for (int i = 0; i < 31; i++)
        ranges[i] = take_bytes(space, 10).range;
    CHECK_EQ(qi_handle_slot(ranges[30].id), QI_SLOT_COUNT - 1);
    CHECK_FAILS(quire_space_allocate(space, 10, 1, 0, &at), QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
    CHECK_STR(quire_last_error(), "the space has 31 ranges, as many as it can number: 67108832 "
                                  "slots are worn");
    CHECK_OK(quire_space_check(space));
    clear(space);
    age_all(space, QI_LAST_GENERATION);
    CHECK_FAILS(quire_space_allocate(space, 10, 1, 0, &at), QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
    CHECK_EQ(space->pool.retired, 31);
    CHECK_EQ(space->live_count, 0);
    end_space(space);
}

/* ---- host memory --------------------------------------------------------------------------- */

UNIT(linear_clear, removing_the_region_releases_the_records_of_a_peak)
{
    quire_space *space = make_space();
    uint64_t before = unit_memory_state()->bytes;
    uint32_t region = 0;
    fill(space, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(quire_space_free(space, ranges[(i * 7 + 1) % MANY]));
    CHECK_OK(quire_space_remove_region(space, 0));
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(unit_memory_state()->bytes, before);
    CHECK_OK(quire_space_add_region(space, 4096, 0, &region));
    take_bytes(space, 4096);
    end_space(space);
}

/* A number used an odd number of times does not pass its generation to the next peak. */
UNIT(linear_clear, trims_between_peaks_never_hand_out_an_id_twice)
{
    quire_space *space = make_space();
    for (int round = 1; round <= 6; round++) {
        for (int frame = 0; frame < round; frame++) {
            fill(space, MANY / round);
            if (frame + 1 < round)
                CHECK_OK(quire_space_clear(space));
        }
        if (round > 1)
            expect_stale(space, older, MANY / round);
        memcpy(older, ranges, sizeof older);
        clear(space);
        quire_space_trim(space);
        CHECK_OK(quire_space_check(space));
    }
    end_space(space);
}
