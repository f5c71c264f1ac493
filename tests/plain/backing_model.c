/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing_model.c - random operations on a region with holes against a naive oracle.
 *
 * The oracle keeps the state of every granule: free, live, a hole, or reserved for a window. It
 * checks:
 *  - the walk shows exactly the live and the free granules of the oracle
 *  - a window is found if and only if some run of free granules and holes has room for the request;
 *    for an alignment of one granule no place needs fewer new chunks
 *  - a window has only free granules and holes, its edges in holes are those of chunks, and it
 *    holds the request; its holes are reported one by one
 *  - while a window is reserved nothing is placed in it; opened, all of it is free; closed, all of
 *    it is as before
 *  - chunks that are taken were free and whole, and are in a row; with `all`, none is taken only if
 *    no chunk is free
 *  - statistics and quire_space_check agree
 *
 * Allocations and frees go on while windows are reserved. Half of the spaces defer frees. The seed
 * reproduces a run.
 */
#include <stdio.h>
#include <string.h>

#include "src/space/segregated/segregated.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

enum { GRANULE = 256, GRANULES = 768, MAX_LIVE = 300, STEPS_A_WORLD = 4000, MAX_WINDOWS = 3 };

typedef enum state { FREE, LIVE, HOLE, RESERVED, RESERVED_HOLE } state;

typedef struct world {
    quire_space *space;
    uint32_t region, chunk; /* granules */
    uint8_t is[GRANULES];   /* a state */
    quire_placement live[MAX_LIVE];
    int live_count;
    qi_window windows[MAX_WINDOWS];
    int window_count;
} world;

static test_random rng;
static uint64_t total_steps, seed, found, closed, taken, refused, trimmed;

/* ---- the oracle --------------------------------------------------------------------------- */

static void set(world *w, uint64_t offset, uint64_t size, state now)
{
    CHECK(offset % GRANULE == 0 && size % GRANULE == 0 && offset + size <= GRANULES * GRANULE);
    memset(w->is + offset / GRANULE, (int)now, size / GRANULE);
}

static uint64_t count(const world *w, state which)
{
    uint64_t granules = 0;
    for (uint32_t i = 0; i < GRANULES; i++)
        granules += w->is[i] == which;
    return granules;
}

static bool is_all(const world *w, uint64_t begin, uint64_t size, state one, state other)
{
    for (uint64_t i = begin; i < begin + size; i++)
        if (i >= GRANULES || (w->is[i] != one && w->is[i] != other))
            return false;
    return true;
}

/* The granules to back for a range that begins here: whole chunks. */
static uint64_t cost_at(const world *w, uint64_t begin, uint64_t size)
{
    uint64_t cost = 0, last = UINT64_MAX;
    for (uint64_t i = begin; i < begin + size; i++)
        if (w->is[i] == HOLE && i / w->chunk != last) {
            last = i / w->chunk;
            cost += w->chunk;
        }
    return cost;
}

/* The least cost of a place for the request that touches a hole; UINT64_MAX if there is none. */
static uint64_t least_cost(const world *w, uint64_t size, uint64_t alignment)
{
    uint64_t least = UINT64_MAX;
    for (uint64_t i = 0; i + size <= GRANULES; i += alignment) {
        uint64_t cost = is_all(w, i, size, FREE, HOLE) ? cost_at(w, i, size) : 0;
        if (cost && cost < least)
            least = cost;
    }
    return least;
}

static bool has_whole_chunk(const world *w)
{
    for (uint64_t i = 0; i + w->chunk <= GRANULES; i += w->chunk)
        if (is_all(w, i, w->chunk, FREE, FREE))
            return true;
    return false;
}

/* ---- comparison --------------------------------------------------------------------------- */

typedef struct seen {
    const world *w;
    uint64_t live, free;
} seen;

static bool visit(void *user, const quire_space_item *item)
{
    seen *s = user;
    state expected = item->is_free ? FREE : LIVE;
    CHECK(is_all(s->w, item->offset / GRANULE, item->size / GRANULE, expected, expected));
    *(item->is_free ? &s->free : &s->live) += item->size / GRANULE;
    return true;
}

static void compare(const world *w)
{
    seen s = {w, 0, 0};
    quire_space_stats stats;
    CHECK_OK(quire_space_check(w->space));
    qi_space_walk(w->space, visit, &s);
    CHECK_EQ(s.live, count(w, LIVE));
    CHECK_EQ(s.free, count(w, FREE));
    qi_space_get_stats(w->space, &stats);
    CHECK_EQ(stats.live_count, (uint64_t)w->live_count);
    CHECK_EQ(stats.free_bytes, s.free * GRANULE);
    CHECK_EQ(w->space->hole_bytes, (GRANULES - s.free - s.live) * GRANULE);
}

/* ---- operations --------------------------------------------------------------------------- */

/* Allocates by the bounded search or a full one. Returns whether it has found a place. */
static bool allocate(world *w, uint64_t size, uint64_t alignment, uint32_t flags)
{
    quire_placement at = {.user = 0};
    if (w->live_count == MAX_LIVE ||
        w->space->allocate_range(w->space, size * GRANULE, alignment * GRANULE, 0, flags, &at))
        return false;
    CHECK(is_all(w, at.offset / GRANULE, size, FREE, FREE));
    CHECK_EQ(at.offset / GRANULE % alignment, 0);
    CHECK_EQ(at.size, size * GRANULE);
    set(w, at.offset, at.size, LIVE);
    w->live[w->live_count++] = at;
    return true;
}

static void release(world *w)
{
    if (!w->live_count)
        return;
    quire_placement *at = &w->live[random_below(&rng, (uint64_t)w->live_count)];
    CHECK_OK(w->space->free_range(w->space, at->range));
    set(w, at->offset, at->size, FREE);
    *at = w->live[--w->live_count];
}

/* Marks the pieces of a window: those that are holes are what the space reports. */
static void mark_window(world *w, const qi_window *window)
{
    qi_chunk_run run = {0};
    uint64_t begin = window->offset / GRANULE, end = begin + window->size / GRANULE, unbacked = 0;
    for (uint64_t i = begin; i < end; i++) {
        CHECK(w->is[i] == FREE || w->is[i] == HOLE);
        w->is[i] = w->is[i] == FREE ? RESERVED : RESERVED_HOLE;
    }
    while (qi_space_next_hole(w->space, window, &run)) {
        CHECK(is_all(w, run.offset / GRANULE, run.size / GRANULE, RESERVED_HOLE, RESERVED_HOLE));
        CHECK(run.offset / GRANULE % w->chunk == 0 && run.size / GRANULE % w->chunk == 0);
        unbacked += run.size;
    }
    CHECK_EQ(unbacked, window->unbacked);
}

/* Whether the window holds the request at some multiple of the alignment. */
static bool holds(const qi_window *window, uint64_t size, uint64_t alignment)
{
    uint64_t begin = (window->offset / GRANULE + alignment - 1) / alignment * alignment;
    return begin + size <= (window->offset + window->size) / GRANULE;
}

static void find(world *w, uint64_t size, uint64_t alignment)
{
    qi_window window;
    uint64_t least = least_cost(w, size, alignment);
    bool is_found = qi_space_find_window(w->space, size * GRANULE, alignment * GRANULE, &window);
    CHECK_EQ(is_found, least != UINT64_MAX);
    if (!is_found)
        return;
    found++;
    CHECK(holds(&window, size, alignment));
    CHECK(window.unbacked / GRANULE >= least);
    if (alignment == 1)
        CHECK_EQ(window.unbacked / GRANULE, least);
    if (w->window_count == MAX_WINDOWS)
        return;
    CHECK_OK(qi_space_reserve_window(w->space, &window));
    mark_window(w, &window);
    w->windows[w->window_count++] = window;
}

static void end_window(world *w)
{
    if (!w->window_count)
        return;
    qi_window *window = &w->windows[random_below(&rng, (uint64_t)w->window_count)];
    uint64_t begin = window->offset / GRANULE, end = begin + window->size / GRANULE;
    bool fails = random_below(&rng, 4) == 0;
    for (uint64_t i = begin; i < end; i++)
        w->is[i] = w->is[i] == RESERVED || !fails ? FREE : HOLE;
    (fails ? qi_space_close_window : qi_space_open_window)(w->space, window);
    closed += fails;
    *window = w->windows[--w->window_count];
}

static void take_chunks(world *w)
{
    qi_chunk_run run;
    bool all = random_below(&rng, 2), has = has_whole_chunk(w);
    uint64_t max = 1 + random_below(&rng, 4);
    CHECK_OK(qi_space_take_chunks(w->space, max, all, &run));
    CHECK(run.size ? has : !has || !all);
    CHECK(run.size / GRANULE % w->chunk == 0 && run.offset / GRANULE % w->chunk == 0);
    CHECK(run.size / GRANULE / w->chunk <= max);
    CHECK(is_all(w, run.offset / GRANULE, run.size / GRANULE, FREE, FREE));
    set(w, run.offset, run.size, HOLE);
    taken += run.size != 0;
}

/* A request that finds no place looks for a window, as a memory does. */
static void request(world *w)
{
    uint64_t size = random_size(&rng, random_below(&rng, 8) ? 40 : 200);
    uint64_t alignment = random_below(&rng, 4) ? 1 : UINT64_C(1) << random_below(&rng, 6);
    bool is_full = random_below(&rng, 2);
    if (w->live_count == MAX_LIVE || allocate(w, size, alignment, is_full ? QI_EXHAUSTIVE : QI_TRY))
        return;
    refused++;
    find(w, size, alignment);
}

/* ---- worlds ------------------------------------------------------------------------------- */

static void begin_world(world *w, const quire_host_memory *memory)
{
    *w = (world){.chunk = UINT32_C(1) << random_below(&rng, 7)};
    quire_space_options options = {
        .fit = {.granule = GRANULE, .least_fragmentation = random_below(&rng, 2)},
        .host_memory = memory};
    CHECK_OK(qi_space_create(&options, &w->space));
    if (random_below(&rng, 2)) { /* frees are deferred from the first number on */
        qi_segregated_of(w->space)->defer_from = 0;
        qi_segregated_choose_free(qi_segregated_of(w->space));
    }
    CHECK_OK(qi_space_add_hole(w->space, GRANULES * GRANULE, 0, 0, w->chunk * GRANULE, &w->region));
    memset(w->is, HOLE, GRANULES);
}

static void step(world *w, uint64_t number)
{
    bool is_filling = number / 300 % 2 == 0;
    uint64_t what = random_below(&rng, 100);
    if (what < (is_filling ? 50u : 30u))
        request(w);
    else if (what < 75)
        release(w);
    else if (what < 85)
        end_window(w);
    else if (what < 95)
        take_chunks(w);
    else if (what < 96) {
        qi_space_trim(w->space);
        trimmed++;
    }
    if (number % 8 == 0)
        compare(w);
}

static void end_world(world *w)
{
    while (w->window_count)
        end_window(w);
    while (w->live_count)
        release(w);
    compare(w);
    CHECK_OK(qi_space_remove_region(w->space, w->region));
    CHECK_OK(quire_space_check(w->space));
    CHECK_EQ(w->space->hole_bytes + w->space->region_bytes, 0);
    qi_space_destroy(w->space);
}

static void holes(void)
{
    static world w;
    test_memory memory;
    test_memory_init(&memory);
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world(&w, &memory.callbacks);
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step(&w, i);
        end_world(&w);
        CHECK_EQ(memory.blocks, 0);
    }
    CHECK(found && closed && taken && refused && trimmed); /* each occurred */
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 10000000);
    seed = plain_option(argc, argv, "seed", 1);
    rng.state = seed;
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, total_steps);
    plain_case("regions with holes match the oracle", holes);
    printf("# %" PRIu64 " windows, %" PRIu64 " of them closed; %" PRIu64 " runs of chunks taken\n",
           found, closed, taken);
    return plain_end();
}
