/*
 * space_batch_memory.c - a batch of ranges whose host memory fails at one of its steps: none of its
 * ranges stays allocated, and the placements keep the user values.
 */
#include "src/space/segregated/segregated.h"
#include "tests/support/shape.h"
#include "tests/support/unit.h"

/* More than one search takes, and more than the first records number. */
enum { MANY = 400 };

typedef struct request {
    uint64_t size, alignment;
} request;

/* Leaves holes that hold some ranges each, but no whole batch. */
static void break_up(quire_space *space)
{
    quire_range ranges[64];
    for (int i = 0; i < 64; i++) {
        quire_placement at;
        CHECK_OK(quire_space_allocate(space, 16384, 1, 0, &at));
        ranges[i] = at.range;
    }
    for (int i = 0; i < 64; i += 2)
        CHECK_OK(quire_space_free(space, ranges[i]));
}

static quire_space *make_space(quire_space_options options, bool in_pieces)
{
    quire_space *space = NULL;
    options.size = 1 << 20;
    options.fit.max_alignment = 4096;
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
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
            quire_space *space = make_space(options, how & 1);
            failures += fail_each_step(space, requests[i], how & 2);
            CHECK_OK(quire_space_check(space));
            quire_space_destroy(&space);
        }
    CHECK(failures >= least);
}

UNIT(space_batch_memory, the_segregated_fit)
{
    with_each_request((quire_space_options){.fit.granule = 16}, 32);
    with_each_request((quire_space_options){.fit = {.granule = 16, .least_fragmentation = true}},
                      32);
}

UNIT(space_batch_memory, slabs)
{
    with_each_request((quire_space_options){.fit = {.granule = 16, .slabs = true}}, 16);
}

UNIT(space_batch_memory, the_other_fits)
{
    with_each_request((quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST}, 16);
    with_each_request((quire_space_options){.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 16}},
                      16);
    with_each_request((quire_space_options){.fit.algorithm = QUIRE_FIT_LINEAR}, 16);
}
