/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_memory.c - no host memory: a request, a batch, a region that is added and a trim fail as a
 * whole, with every fit, and succeed afterwards.
 */
#include "src/space/segregated/segregated.h"
#include "tests/support/shape.h"
#include "tests/support/space_steps.h"

static quire_space *make_space(quire_fit fit, uint64_t size)
{
    return new_space((quire_space_options){
        .fit = {.algorithm = fit, .granule = 1, .max_alignment = 1}, .size = size});
}

UNIT(space_memory, allocating_without_host_memory_changes_nothing)
{
    enum { COUNT = 3000 };
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_space(FITS[i], 1 << 20);
        uint64_t refused = 0, growths = 0;
        for (uint64_t j = 0; j < COUNT; j++) {
            bool upper = FITS[i] == QUIRE_FIT_LINEAR && j % 2;
            quire_range_options options = {.size = 16, .upper = upper};
            quire_placement at;
            quire_space_stats before = stats_of(space), after;
            test_memory_fail(unit_memory_state(), 1, true);
            quire_result result = quire_space_allocate_with(space, &options, &at);
            test_memory_fail(unit_memory_state(), 0, false);
            if (result) {
                CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
                CHECK_HAS(quire_last_error(), "ranges");
                CHECK_EQ(at.range.id | at.size, 0);
                after = stats_of(space);
                CHECK(!memcmp(&before, &after, sizeof before));
                CHECK_OK(quire_space_check(space));
                refused++;
                CHECK_OK(quire_space_allocate_with(space, &options, &at));
            }
            uint64_t step = FITS[i] == QUIRE_FIT_LINEAR ? j / 2 : j;
            CHECK_EQ(at.offset, upper ? (1 << 20) - (step + 1) * 16 : step * 16);
        }
        for (qi_pool pool = {.capacity = 32}; pool.capacity <= COUNT; growths++)
            pool.capacity = qi_pool_next_capacity(&pool);
        CHECK_EQ(refused, growths);
        end_space(space);
    }
}

/* Adds a region while host memory fails from one call on. Returns whether it was refused. */
static bool add_fails(quire_fit fit, uint64_t regions, uint64_t call)
{
    quire_space *space = make_space(fit, 0);
    uint32_t region = 77;
    for (uint64_t i = 0; i < regions; i++)
        CHECK_OK(quire_space_add_region(space, 16 + i, 0, &region));
    shape before = shape_of(space);
    test_memory_fail(unit_memory_state(), call, true);
    quire_result result = quire_space_add_region(space, 100, 0, &region);
    test_memory_fail(unit_memory_state(), 0, false);
    if (result) {
        shape after = shape_of(space);
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_EQ(region, 0);
        shape_compare(&before, &after, false);
        CHECK_EQ(space->region_count, regions);
        CHECK_EQ(space->line.count, regions);
        shape_end(&after);
        CHECK_OK(quire_space_add_region(space, 100, 0, &region));
    }
    CHECK_EQ(region, regions);
    CHECK_EQ(take_bytes(space, 64).region, regions);
    shape_end(&before);
    end_space(space);
    return result != QUIRE_SUCCESS;
}

/* For the first region: regions, line, numbers, tables. They have to grow for some later ones. */
UNIT(space_memory, adding_a_region_without_host_memory_changes_nothing)
{
    static const uint64_t calls[REGIONS_FIT_COUNT][3] = {{5, 2, 3}, {3, 1, 2}, {6, 4, 5}};
    for (int i = 0; i < REGIONS_FIT_COUNT; i++)
        for (uint64_t regions = 0; regions < 9; regions += 4) {
            uint64_t count = 0;
            while (add_fails(FITS[i], regions, count + 1))
                count++;
            CHECK_EQ(count, calls[i][regions / 4]);
        }
}

UNIT(space_memory, trimming_keeps_live_ranges_and_without_host_memory_everything)
{
    enum { PEAK = 3000 };
    static quire_placement live[PEAK];
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_space(FITS[i], PEAK * 16);
        for (int j = 0; j < PEAK; j++)
            live[j] = take_bytes(space, 16);
        for (int j = 0; j < PEAK; j++)
            if (j >= 40 || j % 2 == 0)
                CHECK_OK(quire_space_free(space, live[j].range));
        uint32_t capacity = space->pool.capacity;
        test_memory_fail(unit_memory_state(), 1, true);
        quire_space_trim(space);
        CHECK_EQ(space->pool.capacity, capacity);
        test_memory_fail(unit_memory_state(), 0, false);
        quire_space_trim(space);
        CHECK_OK(quire_space_check(space));
        CHECK_EQ(space->pool.capacity, 64);
        for (int j = 1; j < 40; j += 2) {
            quire_placement at;
            CHECK_OK(quire_space_get(space, live[j].range, &at));
            CHECK(!memcmp(&at, &live[j], sizeof at));
        }
        for (int j = 40; j < PEAK; j++)
            take_bytes(space, 16);
        end_space(space);
    }
}

/* ---- batches: none of their ranges stays, and the placements keep the user values ---------- */

/* More than one search takes, and more than the first records number. */
enum { MANY = 400 };

typedef struct request {
    uint64_t size, alignment;
} request;

/* Leaves holes that hold some ranges each, but no whole batch. */
static void break_up(quire_space *space)
{
    quire_range ranges[64];
    for (int i = 0; i < 64; i++)
        ranges[i] = take_bytes(space, 16384).range;
    for (int i = 0; i < 64; i += 2)
        CHECK_OK(quire_space_free(space, ranges[i]));
}

static quire_space *make_batch_space(quire_space_options options, bool in_pieces)
{
    options.size = 1 << 20;
    options.fit.max_alignment = 4096;
    quire_space *space = new_space(options);
    if (in_pieces &&
        options.fit.algorithm != QUIRE_FIT_LINEAR) /* free space remains at the end only */
        break_up(space);
    return space;
}

/* Without the free ranges, because the fit may cache free slots. */
static shape live_shape_of(const quire_space *space)
{
    shape s = shape_of(space);
    uint64_t live = 0;
    for (uint64_t i = 0; i < s.count; i++)
        if (!s.items[i].is_free)
            s.items[live++] = s.items[i];
    s.count = live;
    return s;
}

static bool has_slabs(const quire_space *space)
{
    return space->fit == &qi_segregated_fit && qi_segregated_of_const(space)->slabs;
}

static void set_users(quire_placement *placements)
{
    for (uint64_t i = 0; i < MANY; i++)
        placements[i] = (quire_placement){.user = 1000 + i};
}

/* Zeroed except for the user values. */
static void expect_no_placement(const quire_placement *placements)
{
    for (uint64_t i = 0; i < MANY; i++) {
        const quire_placement none = {.user = 1000 + i};
        CHECK(!memcmp(&placements[i], &none, sizeof none));
    }
}

static void expect_placed(const quire_space *space, const quire_placement *placements)
{
    for (uint64_t i = 0; i < MANY; i++) {
        quire_placement at;
        CHECK_OK(quire_space_get(space, placements[i].range, &at));
        CHECK_EQ(at.user, 1000 + i);
        CHECK_EQ(at.offset, placements[i].offset);
    }
}

/* Fails each call to allocate of the batch in turn. Returns the number of failed calls. */
static uint64_t fail_each_step(quire_space *space, request asked, bool from_then)
{
    shape (*const what_holds)(const quire_space *) = has_slabs(space) ? live_shape_of : shape_of;
    static quire_placement placements[MANY];
    for (uint64_t call = 1;; call++) {
        shape before = what_holds(space);
        set_users(placements);
        test_memory_fail(unit_memory_state(), call, from_then);
        quire_result result =
            quire_space_allocate_batch(space, asked.size, asked.alignment, placements, MANY);
        test_memory_fail(unit_memory_state(), 0, false);
        if (!result) {
            expect_placed(space, placements);
            shape_end(&before);
            return call - 1;
        }
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        expect_no_placement(placements);
        shape after = what_holds(space);
        shape_compare(&before, &after, true);
        shape_end(&before);
        shape_end(&after);
    }
}

static void with_each_request(quire_space_options options, uint64_t least)
{
    static const request requests[] = {{256, 256}, {100, 1}, {257, 256}, {512, 512}};
    uint64_t failures = 0;
    for (int i = 0; i < 4; i++)
        for (int how = 0; how < 4; how++) {
            quire_space *space = make_batch_space(options, how & 1);
            failures += fail_each_step(space, requests[i], how & 2);
            end_space(space);
        }
    CHECK(failures >= least);
}

UNIT(space_memory, a_batch_without_host_memory_leaves_no_range)
{
    static const struct {
        quire_space_options options;
        uint64_t least;
    } rows[] = {
        {{.fit.granule = 16}, 32},
        {{.fit = {.granule = 16, .least_fragmentation = true}}, 32},
        {{.fit = {.granule = 16, .slabs = true}}, 16},
        {{.fit.algorithm = QUIRE_FIT_FIRST}, 16},
        {{.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 16}}, 16},
        {{.fit.algorithm = QUIRE_FIT_LINEAR}, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        with_each_request(rows[i].options, rows[i].least);
}
