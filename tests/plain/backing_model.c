/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing_model.c - random operations on a region with holes against a naive oracle.
 *
 * The oracle keeps the state of every granule: free, live, a hole, reserved for a window, or a
 * piece of a kept window. It checks:
 *  - the walk shows exactly the live and the free granules of the oracle
 *  - a window is found if and only if some run of free granules and holes has room for the request;
 *    for an alignment of one granule no place needs fewer new chunks
 *  - a window has only free granules and holes, its edges in holes are those of chunks, and it
 *    holds the request; its holes are reported one by one
 *  - while a window is reserved nothing is placed in it; opened, all of it is free; closed, all of
 *    it is as before
 *  - room for a kept window is found if and only if a hole has it; its pieces become what they are
 *    marked as, are reported in their order, and do not touch pieces that are alike; the walk shows
 *    it as one range; closed, its holes are holes and all else is free
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

enum { MAX_KEPT = 4, POINTS = 3 };

typedef enum state {
    FREE,
    LIVE,
    HOLE,
    RESERVED,
    RESERVED_HOLE,
    KEPT /* and, above it, the pieces of kept windows in the order of qi_piece */
} state;

typedef struct world {
    quire_space *space;
    uint32_t region, chunk;  /* granules */
    uint8_t is[GRANULES];    /* a state */
    uint8_t point[GRANULES]; /* that a waiting piece waits for */
    quire_placement live[MAX_LIVE];
    int live_count;
    qi_window windows[MAX_WINDOWS];
    int window_count;
    qi_window kept[MAX_KEPT]; /* size 0: none */
} world;

static test_random rng;
static uint64_t total_steps, seed, found, closed, taken, refused, trimmed, kept, marked;

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
    uint64_t live, free, kept;
} seen;

static bool visit(void *user, const quire_space_item *item)
{
    seen *s = user;
    if (!item->is_free && !item->range.id) { /* a kept window */
        const qi_window *window = &s->w->kept[item->user];
        CHECK(item->user < MAX_KEPT && item->offset == window->offset &&
              item->size == window->size);
        s->kept += item->size / GRANULE;
        return true;
    }
    state expected = item->is_free ? FREE : LIVE;
    CHECK(is_all(s->w, item->offset / GRANULE, item->size / GRANULE, expected, expected));
    *(item->is_free ? &s->free : &s->live) += item->size / GRANULE;
    return true;
}

static bool is_alike(const world *w, uint64_t one, uint64_t other)
{
    return w->is[one] == w->is[other] &&
           (w->is[one] != KEPT + QI_PIECE_WAITING || w->point[one] == w->point[other]);
}

/* Each piece of a kept window is a run of its state that no state like it touches. */
static void compare_pieces(const world *w, const qi_window *window)
{
    const uint64_t begin = window->offset / GRANULE, end = begin + window->size / GRANULE;
    for (int piece = QI_PIECE_HOLE; window->size && piece <= QI_PIECE_WAITING; piece++) {
        const uint8_t is = (uint8_t)(KEPT + piece);
        qi_chunk_run run = {0};
        uint64_t granules = 0;
        while (qi_space_next_piece(w->space, window, (qi_piece)piece, &run)) {
            const uint64_t first = run.offset / GRANULE, after = first + run.size / GRANULE;
            CHECK(first >= begin && after <= end);
            CHECK(is_all(w, first, after - first, (state)is, (state)is));
            CHECK(first == begin || !is_alike(w, first - 1, first));
            CHECK(after == end || !is_alike(w, after - 1, after));
            granules += after - first;
        }
        for (uint64_t i = begin; i < end; i++)
            granules -= w->is[i] == is;
        CHECK_EQ(granules, 0);
    }
}

static void compare(const world *w)
{
    seen s = {.w = w};
    quire_space_stats stats;
    CHECK_OK(quire_space_check(w->space));
    qi_space_walk(w->space, visit, &s);
    CHECK_EQ(s.live, count(w, LIVE));
    CHECK_EQ(s.free, count(w, FREE));
    qi_space_get_stats(w->space, &stats);
    CHECK_EQ(stats.live_count, (uint64_t)w->live_count);
    CHECK_EQ(stats.free_bytes, s.free * GRANULE);
    CHECK_EQ(w->space->hole_bytes, (GRANULES - s.free - s.live) * GRANULE);
    for (int i = 0; i < MAX_KEPT; i++) {
        s.kept -= w->kept[i].size / GRANULE;
        compare_pieces(w, &w->kept[i]);
    }
    CHECK_EQ(s.kept, 0);
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
    while (qi_space_next_piece(w->space, window, QI_PIECE_HOLE, &run)) {
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

/* ---- kept windows ------------------------------------------------------------------------- */

static bool has_room(const world *w, uint64_t size, uint64_t alignment)
{
    for (uint64_t i = 0; i + size <= GRANULES; i += w->chunk)
        if (i % alignment == 0 && is_all(w, i, size, HOLE, HOLE))
            return true;
    return false;
}

static void keep(world *w, int which)
{
    qi_window *window = &w->kept[which];
    const uint64_t size = (1 + random_below(&rng, 12)) * w->chunk;
    const uint64_t alignment = UINT64_C(1) << random_below(&rng, 9);
    if (!qi_space_find_room(w->space, size * GRANULE, alignment * GRANULE, window)) {
        CHECK(!has_room(w, size, alignment));
        window->size = 0;
        return;
    }
    CHECK_EQ(window->size, size * GRANULE);
    CHECK(window->offset / GRANULE % alignment == 0 && window->offset / GRANULE % w->chunk == 0);
    CHECK(is_all(w, window->offset / GRANULE, size, HOLE, HOLE));
    CHECK_OK(qi_space_reserve_window(w->space, window));
    qi_space_keep_window(w->space, window, (uint32_t)which);
    set(w, window->offset, window->size, KEPT);
    kept++;
}

/* Pieces of a part that are about to leave wait for a point, and leave at it. */
static void begin_point(world *w, const qi_window *part, uint32_t number)
{
    qi_space_mark_waiting(w->space, part, number);
    for (uint64_t i = part->offset / GRANULE; i < (part->offset + part->size) / GRANULE; i++)
        if (w->is[i] == KEPT + QI_PIECE_LEAVING) {
            w->is[i] = KEPT + QI_PIECE_WAITING;
            w->point[i] = (uint8_t)number;
        }
}

static void end_point(world *w, const qi_window *window, uint32_t number)
{
    qi_space_end_waiting(w->space, window, number);
    for (uint64_t i = window->offset / GRANULE; i < (window->offset + window->size) / GRANULE; i++)
        if (w->is[i] == KEPT + QI_PIECE_WAITING && w->point[i] == number)
            w->is[i] = KEPT + QI_PIECE_LEAVING;
}

static void mark(world *w, const qi_window *window)
{
    const uint64_t chunks = window->size / GRANULE / w->chunk, first = random_below(&rng, chunks);
    const uint64_t offset = first * w->chunk * GRANULE + window->offset;
    const uint64_t size = (1 + random_below(&rng, chunks - first)) * w->chunk * GRANULE;
    const int from = (int)random_below(&rng, 5), to = (int)random_below(&rng, 4);
    qi_window part;
    if (!random_below(&rng, 4)) {
        end_point(w, window, 1 + (uint32_t)random_below(&rng, POINTS));
        return;
    }
    CHECK_OK(qi_space_part_of_window(w->space, window, offset, size, &part));
    if (from == QI_PIECE_LEAVING && random_below(&rng, 2)) {
        begin_point(w, &part, 1 + (uint32_t)random_below(&rng, POINTS));
        return;
    }
    qi_space_mark_pieces(w->space, &part, (qi_piece)from, (qi_piece)to);
    for (uint64_t i = offset / GRANULE; i < (offset + size) / GRANULE; i++)
        if (w->is[i] == KEPT + from)
            w->is[i] = (uint8_t)(KEPT + to);
    marked++;
}

static void give_up(world *w, qi_window *window)
{
    const uint64_t begin = window->offset / GRANULE, end = begin + window->size / GRANULE;
    for (uint64_t i = begin; i < end; i++)
        w->is[i] = w->is[i] == KEPT + QI_PIECE_HOLE ? HOLE : FREE;
    qi_space_close_window(w->space, window);
    window->size = 0;
}

static void step_kept(world *w)
{
    const int which = (int)random_below(&rng, MAX_KEPT);
    if (!w->kept[which].size)
        keep(w, which);
    else if (random_below(&rng, 8))
        mark(w, &w->kept[which]);
    else
        give_up(w, &w->kept[which]);
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
    else if (what < 98)
        step_kept(w);
    else if (what < 99) {
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
    for (int i = 0; i < MAX_KEPT; i++)
        if (w->kept[i].size)
            give_up(w, &w->kept[i]);
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
    CHECK(found && closed && taken && refused && trimmed && kept && marked); /* each occurred */
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
