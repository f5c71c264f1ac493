/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing.c - regions with holes: which of several windows is taken, slabs and refusals beside
 * holes, host memory that fails, and damage. (Everything else: tests/plain/backing_model.c.)
 */
#include "src/space/segregated/lists.h"

#include "tests/support/damage.h"
#include "tests/support/space_steps.h"

enum { GRANULE = 256, CHUNK = 16, GRANULES = 64 * CHUNK };

/* A region of 64 chunks, all holes at first. */
typedef struct bench {
    quire_space *space;
    qi_segregated *s;
    uint32_t region;
} bench;

static bench make_bench(quire_fit_options fit)
{
    bench b = {0};
    fit.granule = GRANULE;
    b.space = new_space((quire_space_options){.fit = fit});
    b.s = qi_segregated_of(b.space);
    CHECK_OK(qi_space_add_hole(b.space, GRANULES * GRANULE, 0, 0, CHUNK * GRANULE, &b.region));
    return b;
}

static void end_bench(bench *b)
{
    CHECK_OK(quire_space_check(b->space));
    quire_space_destroy(&b->space);
}

/* Finds a window and makes it free. Sizes and offsets are granules. */
static uint64_t back(bench *b, uint64_t size)
{
    qi_window window;
    CHECK(qi_space_find_window(b->space, size * GRANULE, 1, &window));
    CHECK_OK(qi_space_reserve_window(b->space, &window));
    qi_space_open_window(b->space, &window);
    return window.offset / GRANULE;
}

static quire_range take(bench *b, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(b->space, size * GRANULE, 1, 0, &at));
    return at.range;
}

static void expect_window(const bench *b, uint64_t size, uint64_t offset, uint64_t unbacked)
{
    qi_window window;
    CHECK(qi_space_find_window(b->space, size * GRANULE, 1, &window));
    CHECK_EQ(window.offset / GRANULE, offset * CHUNK);
    CHECK_EQ(window.unbacked / GRANULE, unbacked * CHUNK);
}

/* Backs the region and fills it with ranges of one chunk, then frees these and takes their chunks
   in turn: a hole at each of the numbers. */
static void dig(bench *b, const uint32_t *holes, uint32_t count)
{
    quire_range ranges[64];
    qi_chunk_run run;
    back(b, GRANULES);
    for (int i = 0; i < 64; i++)
        ranges[i] = take(b, CHUNK);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(quire_space_free(b->space, ranges[holes[i]]));
        CHECK_OK(qi_space_take_chunks(b->space, 1, false, &run));
        CHECK_EQ(run.offset / GRANULE / CHUNK, holes[i]);
    }
}

/* ---- the choice ----------------------------------------------------------------------------- */

UNIT(backing, a_window_takes_few_chunks_then_a_small_run_then_the_lowest_place)
{
    bench b = make_bench((quire_fit_options){0});
    const uint32_t holes[] = {3, 4, 5, 10, 11, 20, 30, 40, 41};
    dig(&b, holes, 9);
    expect_window(&b, 1, 20, 1);         /* runs of one chunk serve; 20 is below 30 */
    expect_window(&b, CHUNK + 1, 10, 2); /* of 10, 40 and 3, the first two are small */
    expect_window(&b, 2 * CHUNK + 1, 3, 3);
    qi_window window;
    CHECK(!qi_space_find_window(b.space, 3 * CHUNK * GRANULE + 1, 1, &window));
    end_bench(&b);
}

UNIT(backing, free_ranges_beside_a_hole_save_chunks)
{
    bench b = make_bench((quire_fit_options){0});
    quire_range ranges[64];
    qi_chunk_run run;
    back(&b, GRANULES);
    for (int i = 0; i < 64; i++)
        ranges[i] = take(&b, CHUNK);
    for (int i = 8; i < 11; i++)
        CHECK_OK(quire_space_free(b.space, ranges[i]));
    CHECK_OK(qi_space_take_chunks(b.space, 1, false, &run)); /* the highest: 10 */
    CHECK_EQ(run.offset / GRANULE / CHUNK, 10);
    expect_window(&b, 3 * CHUNK, 8, 1);
    CHECK_EQ(back(&b, 3 * CHUNK), 8 * CHUNK);
    take(&b, 3 * CHUNK);
    end_bench(&b);
}

UNIT(backing, chunks_are_taken_in_rows_from_the_largest_ranges)
{
    bench b = make_bench((quire_fit_options){0});
    qi_chunk_run run;
    back(&b, GRANULES);
    take(&b, 1); /* chunk 0 is not whole any more */
    CHECK_OK(qi_space_take_chunks(b.space, 5, false, &run));
    CHECK_EQ(run.region, b.region);
    CHECK_EQ(run.offset / GRANULE, 59 * CHUNK);
    CHECK_EQ(run.size / GRANULE, 5 * CHUNK);
    CHECK_OK(qi_space_take_chunks(b.space, UINT64_MAX, false, &run));
    CHECK_EQ(run.offset / GRANULE, CHUNK);
    CHECK_EQ(b.space->hole_nodes, 1); /* both runs are one hole */
    CHECK_OK(qi_space_take_chunks(b.space, 1, true, &run));
    CHECK_EQ(run.size, 0);
    end_bench(&b);
}

/* ---- beside other parts of the fit ---------------------------------------------------------- */

/* A range of 31 granules, whose only whole chunk leaves 15 of them, is spared for one of 16. */
UNIT(backing, chunks_are_taken_where_they_leave_the_least)
{
    bench b = make_bench((quire_fit_options){0});
    qi_chunk_run run;
    CHECK_EQ(back(&b, GRANULES), 0);
    (void)take(&b, CHUNK - 15);
    quire_range large = take(&b, 31);
    (void)take(&b, CHUNK);
    quire_range whole = take(&b, CHUNK);
    (void)take(&b, GRANULES - 4 * CHUNK);
    CHECK_OK(quire_space_free(b.space, large));
    CHECK_OK(quire_space_free(b.space, whole));
    CHECK_OK(qi_space_take_chunks(b.space, 1, false, &run));
    CHECK_EQ(run.offset / GRANULE, 3 * CHUNK);
    CHECK_OK(qi_space_take_chunks(b.space, 1, false, &run));
    CHECK_EQ(run.offset / GRANULE, CHUNK);
    end_bench(&b);
}

UNIT(backing, an_opened_window_ends_remembered_refusals)
{
    bench b = make_bench((quire_fit_options){0});
    quire_placement at;
    qi_window window;
    CHECK_EQ(b.space->allocate_range(b.space, GRANULE, 1, 0, QI_EXHAUSTIVE, &at),
             QUIRE_ERROR_NO_SPACE);
    CHECK(qi_space_find_window(b.space, GRANULE, 1, &window));
    CHECK_OK(qi_space_reserve_window(b.space, &window));
    CHECK_EQ(b.space->allocate_range(b.space, GRANULE, 1, 0, QI_EXHAUSTIVE, &at),
             QUIRE_ERROR_NO_SPACE);
    qi_space_open_window(b.space, &window);
    take(&b, 1);
    end_bench(&b);
}

UNIT(backing, an_empty_slab_keeps_its_chunk_until_all_are_wanted)
{
    bench b = make_bench((quire_fit_options){.slabs = true});
    qi_chunk_run run;
    back(&b, CHUNK);
    CHECK_OK(quire_space_free(b.space, take(&b, 1)));
    CHECK_OK(qi_space_take_chunks(b.space, 1, false, &run));
    CHECK_EQ(run.size, 0);
    CHECK_OK(qi_space_take_chunks(b.space, 1, true, &run));
    CHECK_EQ(run.size / GRANULE, CHUNK);
    end_bench(&b);
}

UNIT(backing, clear_and_trim_leave_the_holes)
{
    bench b = make_bench((quire_fit_options){0});
    quire_space_stats stats;
    back(&b, 3 * CHUNK);
    take(&b, CHUNK + 1);
    CHECK_OK(quire_space_clear(b.space));
    qi_space_trim(b.space);
    qi_space_get_stats(b.space, &stats);
    CHECK_EQ(stats.free_bytes, 3 * CHUNK * GRANULE);
    CHECK_EQ(b.space->hole_bytes, (GRANULES - 3 * CHUNK) * GRANULE);
    CHECK_OK(qi_space_remove_region(b.space, b.region));
    CHECK_EQ(b.space->hole_bytes, 0);
    end_bench(&b);
}

/* ---- host memory ---------------------------------------------------------------------------- */

UNIT(backing, each_request_for_host_memory_may_fail)
{
    quire_result result = QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    for (uint64_t call = 1; result; call++) {
        bench b = {.space = new_space((quire_space_options){.fit = {.granule = GRANULE}})};
        qi_window window;
        test_memory_fail(unit_memory_state(), call, false);
        result = qi_space_add_hole(b.space, GRANULES * GRANULE, 0, 0, CHUNK * GRANULE, &b.region);
        for (int i = 0; i < 40 && !result; i++) { /* grows the records */
            CHECK(qi_space_find_window(b.space, GRANULE, 1, &window));
            result = qi_space_reserve_window(b.space, &window);
        }
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        end_bench(&b);
    }
}

/* ---- damage --------------------------------------------------------------------------------- */

UNIT(backing, damage)
{
    bench b = make_bench((quire_fit_options){0});
    const uint32_t holes[] = {3, 7};
    qi_window window;
    dig(&b, holes, 2);
    uint32_t first = b.s->first_hole, second = b.s->nodes[first].next, live = 0;
    for (live = 1; !(b.s->nodes[live].generation & 1); live++)
        continue;
    DAMAGE(b.s->first_hole, second, "the list of holes is damaged");
    DAMAGE(b.s->first_hole, 0, "the list does not have every hole exactly once");
    DAMAGE(b.s->nodes[second].back, 0, "the list of holes is damaged");
    DAMAGE(b.s->nodes[first].next, live, "the list of holes is damaged");
    DAMAGE(b.s->nodes[first].generation, b.s->nodes[first].generation + 1,
           "a hole is free or live");
    DAMAGE(b.s->nodes[first].owner, 1, "a range is in the ring of another region");
    DAMAGE(b.s->nodes[first].owner, UINT32_C(1) << QI_PIECE_SHIFT,
           "a range is in the ring of another region");
    DAMAGE(b.s->is_hole[live / 64], b.s->is_hole[live / 64] | UINT64_C(1) << live % 64,
           "a hole is free or live");
    DAMAGE(b.s->is_hole[first / 64], b.s->is_hole[first / 64] ^ UINT64_C(1) << first % 64,
           "a range is neither free nor live");
    DAMAGE(b.s->chunk, 2 * CHUNK, "a hole begins or ends inside a chunk");
    DAMAGE(b.s->hole_capacity, 1, "the tables have a wrong size");
    DAMAGE(b.space->hole_nodes, 3, "");
    DAMAGE(b.space->hole_bytes, 0, "the sums of the holes are wrong");
    CHECK(qi_space_find_window(b.space, GRANULE, 1, &window));
    CHECK_OK(qi_space_reserve_window(b.space, &window));
    CHECK_OK(quire_space_check(b.space));
    DAMAGE(b.s->nodes[window.node].owner, 0, "the list does not have every hole exactly once");
    end_bench(&b);
}
