/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stretch.c - the goal of a free range: allocations leave a stretch of a page, for places in the
 * same page or in others. Which stretch, what keeps one from becoming free, limits, a stream, and
 * moves of the caller.
 */
#include <string.h>

#include "tests/support/compacted.h"
#include "tests/support/random.h"

enum { PAGE = 65536, PARTS = 8, PART = PAGE / PARTS };

typedef struct scene {
    compacted b;
    quire_allocation parts[2 * PARTS]; /* of two pages; {0}: freed */
} scene;

static void begin(scene *s, uint32_t shards)
{
    memset(s, 0, sizeof *s);
    compacted_prepare(&s->b);
    compacted_open(&s->b, &(quire_memory_options){.shards = shards, .pages.page_size = PAGE});
}

static void end(scene *s)
{
    compacted_end(&s->b);
}

#define CASE(name) UNIT_ON(stretch, name, scene, s, begin(s, 1), end)

/* A page, or two, as a text: 'x' is a movable part, 'f' a fixed one, '-' a free one. */
static void put(scene *s, const char *pages)
{
    for (int i = 0; pages[i]; i++) {
        const uint64_t number = (uint64_t)i;
        s->parts[i] = ALLOCATE(&s->b.f, .size = PART, .movable = pages[i] != 'f');
        CHECK_OK(quire_write(s->b.f.memory, s->parts[i], 0, &number, sizeof number));
    }
    for (int i = 0; pages[i]; i++)
        if (pages[i] == '-') {
            CHECK_OK(quire_free(s->b.f.memory, s->parts[i]));
            s->parts[i].id = 0;
        }
}

/* Every part has its contents. Returns which have left the places that they were put at. */
static uint32_t moved(scene *s)
{
    uint32_t numbers = 0;
    CHECK_OK(quire_memory_check(s->b.f.memory));
    for (uint32_t i = 0; i < 2 * PARTS; i++) {
        uint64_t number = 99;
        if (!s->parts[i].id)
            continue;
        CHECK_OK(quire_read(s->b.f.memory, s->parts[i], 0, &number, sizeof number));
        CHECK_EQ(number, i);
        const quire_allocation_info info = fixture_info(&s->b.f, s->parts[i]);
        if (info.page != i / PARTS || info.offset != i % PARTS * PART)
            numbers |= UINT32_C(1) << i;
    }
    return numbers;
}

static uint64_t largest(scene *s)
{
    return fixture_stats(&s->b.f).largest_free;
}

static quire_compact_stats step(scene *s, uint64_t parts)
{
    quire_compact_stats done;
    const quire_compact_limits limits = {.largest_free = parts * PART};
    CHECK_OK(quire_compact_step(s->b.c, &limits, &done));
    CHECK(done.is_complete);
    return done;
}

/* ---- which stretch ------------------------------------------------------------------------ */

CASE(one_move_joins_three_parts)
{
    put(s, "x-x-x-x-");
    CHECK_EQ(step(s, 1).moves, 0); /* a free range has the size */
    CHECK_EQ(step(s, 3).moves, 1);
    CHECK(largest(s) >= 3 * PART);
    moved(s);
}

CASE(all_free_bytes_of_a_page_become_one_range)
{
    put(s, "x-x-x-x-");
    CHECK_EQ(step(s, 4).moves, 2);
    CHECK_EQ(largest(s), 4 * PART);
    CHECK_EQ(fixture_stats(&s->b.f).page_count, 1);
    moved(s);
}

CASE(what_is_larger_than_all_free_bytes_moves_nothing)
{
    put(s, "x-x-x-x-");
    CHECK_EQ(step(s, 5).moves, 0);
    CHECK_EQ(step(s, 9).moves, 0);
    CHECK_EQ(moved(s), 0);
}

CASE(the_stretch_with_the_fewest_live_bytes)
{
    put(s, "-xxx--x-");
    CHECK_EQ(step(s, 4).moves, 1);
    CHECK_EQ(moved(s), 1 << 6);
    CHECK_EQ(largest(s), 4 * PART);
}

CASE(a_place_in_another_page)
{
    put(s, "xxx-x-xxxxxxxxx-"); /* of the page with the most free bytes; it has no other room */
    CHECK_EQ(step(s, 3).moves, 1);
    CHECK_EQ(moved(s), 1 << 4);
    CHECK_EQ(fixture_info(&s->b.f, s->parts[4]).page, 1);
    CHECK_EQ(largest(s), 3 * PART);
}

CASE(pages_that_can_be_freed_come_first)
{
    put(s, "x-x-x-x-xxx-xxx-");
    const quire_compact_stats done = step(s, PARTS);
    CHECK_EQ(done.pages_freed, 0); /* two parts have room */
    CHECK_EQ(done.moves, 0);
    CHECK_OK(quire_free(s->b.f.memory, s->parts[0]));
    CHECK_OK(quire_free(s->b.f.memory, s->parts[2]));
    s->parts[0].id = s->parts[2].id = 0;
    CHECK_EQ(step(s, 4).pages_freed, 1);
    moved(s);
}

/* ---- what keeps one ----------------------------------------------------------------------- */

CASE(a_fixed_part_divides_a_page)
{
    put(s, "x-xf-x-x");
    CHECK_EQ(step(s, 4).moves, 0); /* three parts are free, on both sides */
    CHECK_EQ(moved(s), 0);
    CHECK_EQ(step(s, 3).moves, 1); /* the one between two free ones */
    CHECK_EQ(moved(s), 1 << 5);
    CHECK_EQ(largest(s), 3 * PART);
}

CASE(a_held_part_stays)
{
    put(s, "f-x-f-f-");
    CHECK_OK(quire_allocation_hold(s->b.f.memory, s->parts[2]));
    CHECK_EQ(step(s, 3).moves, 0);
    CHECK_OK(quire_allocation_release(s->b.f.memory, s->parts[2]));
    CHECK_EQ(step(s, 3).moves, 1);
    CHECK_EQ(moved(s), 1 << 2);
}

/* ---- steps -------------------------------------------------------------------------------- */

CASE(a_stretch_takes_several_steps)
{
    quire_compact_stats done = {.moves = 0};
    quire_compact_limits limits = {.moves = 1, .largest_free = 8 * PART / 2};
    int steps = 0;
    put(s, "x-x-x-x-");
    for (; !done.is_complete; steps++) {
        CHECK_OK(quire_compact_step(s->b.c, &limits, &done));
        CHECK(done.moves <= (uint64_t)steps + 1 && steps < 10);
        limits.largest_free = 0; /* what has begun goes on */
    }
    CHECK_EQ(done.moves, 2);
    CHECK_EQ(largest(s), 4 * PART);
}

CASE(on_a_stream_the_range_is_free_after_the_copies)
{
    quire_compact_stats done;
    const quire_compact_limits limits = {.largest_free = 4 * PART};
    put(s, "x-x-x-x-");
    CHECK_OK(quire_compact_step_on_stream(s->b.c, &limits, s->b.stream, &done));
    CHECK(done.is_complete);
    CHECK_EQ(done.moves, 2);
    CHECK(largest(s) < 4 * PART);
    compacted_run_stream(&s->b);
    CHECK_EQ(largest(s), 4 * PART);
    moved(s);
}

static uint64_t offer(scene *s, quire_compact_move *moves, bool *is_complete)
{
    uint64_t count;
    const quire_compact_limits limits = {.largest_free = 4 * PART};
    CHECK_OK(quire_compact_offer(s->b.c, &limits, moves, PARTS, &count, is_complete));
    return count;
}

CASE(moves_of_the_caller)
{
    quire_compact_move moves[PARTS];
    bool is_complete;
    put(s, "x-x-x-x-");
    CHECK_EQ(offer(s, moves, &is_complete), 2);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(quire_copy(
            &(quire_copy_options){.to = {.memory = s->b.f.memory, .allocation = moves[i].target},
                                  .from = {.memory = s->b.f.memory, .allocation = moves[i].source}},
            NULL));
        CHECK_OK(quire_compact_accept(s->b.c, &moves[i], NULL));
    }
    CHECK_EQ(largest(s), 4 * PART);
    CHECK_EQ(offer(s, moves, &is_complete), 0);
    CHECK(is_complete);
    moved(s);
}

CASE(a_move_that_is_declined_ends_the_stretch)
{
    quire_compact_move moves[PARTS];
    bool is_complete;
    put(s, "x-x-x-x-");
    CHECK_EQ(offer(s, moves, &is_complete), 2);
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_compact_decline(s->b.c, &moves[i]));
    CHECK_EQ(offer(s, moves, &is_complete), 0);
    CHECK(is_complete);
    CHECK_EQ(moved(s), 0);
}

UNIT_ON(stretch, each_shard_is_looked_at, scene, s, begin(s, 4), end)
{
    put(s, "x-x-x-x-");
    CHECK_EQ(step(s, 4).moves, 2);
    CHECK_EQ(largest(s), 4 * PART);
}

/* ---- random pages ------------------------------------------------------------------------- */

/* All parts are movable and equal. The page with the most free parts then gives a range of any size
   up to these, unless one of the two pages becomes free. */
CASE(a_range_of_all_free_parts_of_the_freest_page_can_be_had)
{
    test_random random = {1};
    uint64_t before = 0;
    for (int round = 0; round < 40; round++) {
        char pages[2 * PARTS + 1] = "";
        uint64_t free_parts[2] = {0};
        for (int i = 0; i < 2 * PARTS; i++) {
            const bool is_free = i % PARTS && random_below(&random, 3) == 0;
            pages[i] = is_free ? '-' : 'x';
            free_parts[i / PARTS] += is_free;
        }
        put(s, pages);
        const uint64_t most = free_parts[free_parts[1] > free_parts[0]];
        const uint64_t wanted = 1 + random_below(&random, most + !most);
        const uint64_t freed = step(s, wanted).pages_freed;
        if (most && freed == before)
            CHECK(largest(s) >= wanted * PART);
        before = freed;
        CHECK_OK(quire_memory_check(s->b.f.memory));
        for (int i = 0; i < 2 * PARTS; i++)
            if (s->parts[i].id)
                CHECK_OK(quire_free(s->b.f.memory, s->parts[i]));
        CHECK_OK(quire_memory_trim(s->b.f.memory, 0, NULL));
    }
}
