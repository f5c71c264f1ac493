/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * asleep.c - chunks that sleep, beside an oracle that knows for each granule whose it is and for
 * each chunk whether it has memory: random ranges fall asleep, wake and are freed between others.
 */
#include "src/space/segregated/lists.h"

#include "tests/support/damage.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"

enum { GRANULE = 256, CHUNK = 16, CHUNKS = 64, GRANULES = CHUNKS * CHUNK, MAX_RANGES = 256 };

typedef enum state { HOLE = 0, BACKED, ASLEEP } state;

typedef struct range {
    quire_range range;
    uint64_t begin, size; /* granules; size 0: none */
    bool asleep;
} range;

typedef struct bench {
    quire_space *space;
    qi_segregated *s;
    uint32_t region;
    range ranges[MAX_RANGES];
    uint32_t owner[GRANULES]; /* number of the range, plus 1; 0: none */
    state chunks[CHUNKS];
    uint64_t falls; /* chunks that fell asleep */
} bench;

static void begin(bench *b)
{
    *b = (bench){.space = NULL};
    b->space = new_space((quire_space_options){.fit = {.granule = GRANULE}});
    b->s = qi_segregated_of(b->space);
    CHECK_OK(qi_space_add_hole(b->space, GRANULES * GRANULE, 0, 0, CHUNK * GRANULE, &b->region));
}

static void finish(bench *b)
{
    CHECK_OK(quire_space_check(b->space));
    quire_space_destroy(&b->space);
}

#define CASE(name) UNIT_ON(asleep, name, bench, b, begin(b), finish)

/* ---- steps ---------------------------------------------------------------------------------- */

static uint64_t last_chunk(const range *r)
{
    return (r->begin + r->size - 1) / CHUNK;
}

/* Backs what a request of this size lacks. Returns false if no window has room. */
static bool back(bench *b, uint64_t size)
{
    qi_window window;
    if (!qi_space_find_window(b->space, size * GRANULE, 1, &window))
        return false;
    CHECK_OK(qi_space_reserve_window(b->space, &window));
    qi_space_open_window(b->space, &window);
    for (uint64_t i = window.offset / GRANULE; i < (window.offset + window.size) / GRANULE; i++) {
        CHECK(b->chunks[i / CHUNK] != ASLEEP);
        b->chunks[i / CHUNK] = BACKED;
    }
    return true;
}

/* Allocates range `number`. Backs chunks for it if there is no room. */
static bool take(bench *b, uint32_t number, uint64_t size)
{
    quire_placement at;
    range *r = &b->ranges[number];
    if (quire_space_allocate(b->space, size * GRANULE, 1, number, &at) &&
        (!back(b, size) || quire_space_allocate(b->space, size * GRANULE, 1, number, &at)))
        return false;
    *r = (range){at.range, at.offset / GRANULE, at.size / GRANULE, false};
    for (uint64_t i = 0; i < r->size; i++) {
        CHECK(!b->owner[r->begin + i]);
        CHECK_EQ(b->chunks[(r->begin + i) / CHUNK], BACKED);
        b->owner[r->begin + i] = number + 1;
    }
    return true;
}

static bool chunk_is_empty(const bench *b, uint64_t chunk)
{
    for (uint64_t i = 0; i < CHUNK; i++)
        if (b->owner[chunk * CHUNK + i])
            return false;
    return true;
}

static void release(bench *b, uint32_t number)
{
    range *r = &b->ranges[number];
    if (r->asleep)
        qi_space_free_asleep(b->space, r->range);
    else
        CHECK_OK(quire_space_free(b->space, r->range));
    for (uint64_t i = 0; i < r->size; i++)
        b->owner[r->begin + i] = 0;
    for (uint64_t c = r->begin / CHUNK; c <= last_chunk(r); c++)
        if (b->chunks[c] == ASLEEP && chunk_is_empty(b, c))
            b->chunks[c] = HOLE;
    *r = (range){.size = 0};
}

static bool is_asleep(const void *user, uint64_t value)
{
    const bench *b = user;
    return b->ranges[value].asleep;
}

static bool all_sleep(const bench *b, uint64_t chunk)
{
    for (uint64_t i = 0; i < CHUNK; i++) {
        const uint32_t owner = b->owner[chunk * CHUNK + i];
        if (owner && !b->ranges[owner - 1].asleep)
            return false;
    }
    return true;
}

/* Ranges fall asleep; then those of their chunks that have no other ranges. */
static void fall_asleep(bench *b, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(qi_space_set_aside(b->space));
        b->ranges[numbers[i]].asleep = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const range *r = &b->ranges[numbers[i]];
        for (uint64_t c = r->begin / CHUNK; c <= last_chunk(r); c++) {
            bool falls_asleep;
            CHECK_OK(qi_space_sleep_chunk(b->space, r->range, c * CHUNK * GRANULE, is_asleep, b,
                                          &falls_asleep));
            CHECK_EQ(falls_asleep, b->chunks[c] == BACKED && all_sleep(b, c));
            b->falls += falls_asleep;
            if (falls_asleep)
                b->chunks[c] = ASLEEP;
        }
    }
}

static void wake(bench *b, uint32_t number)
{
    range *r = &b->ranges[number];
    for (uint64_t c = r->begin / CHUNK; c <= last_chunk(r); c++) {
        const uint64_t offset = c * CHUNK * GRANULE;
        CHECK_EQ(qi_space_chunk_sleeps(b->space, r->range, offset), b->chunks[c] == ASLEEP);
        if (b->chunks[c] == ASLEEP)
            qi_space_wake_chunk(b->space, r->range, offset);
        b->chunks[c] = BACKED;
    }
    qi_space_take_aside(b->space);
    r->asleep = false;
}

/* ---- comparison ----------------------------------------------------------------------------- */

typedef struct walk {
    const bench *b;
    bool is_free[GRANULES];
} walk;

static bool visit(void *user, const quire_space_item *item)
{
    walk *w = user;
    for (uint64_t i = item->offset / GRANULE; i < (item->offset + item->size) / GRANULE; i++) {
        w->is_free[i] = item->is_free;
        CHECK_EQ(w->b->owner[i], item->is_free ? 0 : item->user + 1);
    }
    return true;
}

/* What is free is exactly what has memory and no range. */
static void compare(const bench *b)
{
    walk w = {.b = b};
    uint64_t asleep = 0, backed = 0, live = 0;
    CHECK_OK(quire_space_check(b->space));
    qi_space_walk_region(b->space, b->region, visit, &w);
    for (uint64_t i = 0; i < GRANULES; i++) {
        CHECK_EQ(w.is_free[i], b->chunks[i / CHUNK] == BACKED && !b->owner[i]);
        asleep += b->chunks[i / CHUNK] == ASLEEP && b->owner[i];
        backed += b->chunks[i / CHUNK] == BACKED;
        live += b->owner[i] != 0;
    }
    CHECK_EQ(b->space->asleep_bytes, asleep * GRANULE);
    CHECK_EQ(b->space->live_bytes, live * GRANULE);
    CHECK_EQ(b->space->region_bytes - b->space->asleep_bytes, backed * GRANULE);
}

/* ---- cases ---------------------------------------------------------------------------------- */

CASE(a_chunk_sleeps_only_with_all_its_ranges)
{
    take(b, 0, CHUNK / 2); /* chunk 0 */
    take(b, 1, 2 * CHUNK); /* the rest of 0, chunk 1, half of 2 */
    take(b, 2, 4);
    CHECK_EQ(b->ranges[2].begin / CHUNK, 2);
    fall_asleep(b, (uint32_t[]){1}, 1);
    CHECK_EQ(b->chunks[0], BACKED);
    CHECK_EQ(b->chunks[1], ASLEEP);
    CHECK_EQ(b->chunks[2], BACKED);
    fall_asleep(b, (uint32_t[]){0, 2}, 2);
    CHECK_EQ(b->chunks[0], ASLEEP);
    CHECK_EQ(b->chunks[2], ASLEEP);
    compare(b);
    CHECK_EQ(b->space->region_bytes, b->space->asleep_bytes);
    wake(b, 1);
    compare(b);
    CHECK_EQ(b->chunks[0], BACKED); /* with it, of 0 and 2 too */
}

CASE(what_is_free_in_it_serves_no_request)
{
    take(b, 0, 4);
    fall_asleep(b, (uint32_t[]){0}, 1);
    take(b, 1, 4);
    CHECK_EQ(b->ranges[1].begin / CHUNK, 1);
    wake(b, 0);
    take(b, 2, 4);
    CHECK_EQ(b->ranges[2].begin / CHUNK, b->ranges[0].begin / CHUNK);
    compare(b);
}

CASE(the_last_range_leaves_a_hole)
{
    for (uint32_t i = 0; i < 4; i++)
        take(b, i, CHUNK / 4);
    fall_asleep(b, (uint32_t[]){0, 1, 2, 3}, 4);
    release(b, 1);
    release(b, 3);
    release(b, 2);
    compare(b);
    CHECK_EQ(b->chunks[0], ASLEEP);
    release(b, 0);
    compare(b);
    CHECK_EQ(b->space->hole_bytes, GRANULES * GRANULE);
    CHECK_EQ(b->space->hole_nodes, 1);
}

CASE(a_range_beside_one_that_is_awake_leaves_free_bytes_and_a_hole)
{
    take(b, 0, CHUNK / 2);
    take(b, 1, 3 * CHUNK);
    take(b, 2, CHUNK / 2);
    fall_asleep(b, (uint32_t[]){1}, 1);
    release(b, 1);
    compare(b);
    CHECK_EQ(b->chunks[0], BACKED);
    CHECK_EQ(b->chunks[1], HOLE);
    CHECK_EQ(b->chunks[2], HOLE);
    CHECK_EQ(b->chunks[3], BACKED);
}

/* Sleeps every range of a random group, wakes, frees and allocates; in the end all wake. */
static void run(bench *b, uint64_t seed, int steps)
{
    test_random random = {seed};
    for (int step = 0; step < steps; step++) {
        const uint32_t number = (uint32_t)random_below(&random, MAX_RANGES / 2);
        range *r = &b->ranges[number];
        const uint64_t choice = random_below(&random, 16);
        uint32_t group[MAX_RANGES], count = 0;
        qi_chunk_run run;
        if (choice == 0) {
            const uint64_t one_in = 1 + random_below(&random, 4);
            for (uint32_t i = 0; i < MAX_RANGES; i++)
                if (b->ranges[i].size && !b->ranges[i].asleep && !random_below(&random, one_in))
                    group[count++] = i;
            fall_asleep(b, group, count);
        } else if (choice == 1) {
            CHECK_OK(qi_space_take_chunks(b->space, 1 + random_below(&random, 3), true, &run));
            for (uint64_t i = 0; i < run.size / GRANULE / CHUNK; i++)
                b->chunks[run.offset / GRANULE / CHUNK + i] = HOLE;
        } else if (r->size && r->asleep && choice < 10) {
            wake(b, number);
        } else if (r->size) {
            release(b, number);
        } else {
            take(b, number, random_size(&random, choice == 2 ? 5 * CHUNK : CHUNK + 4));
        }
        compare(b);
    }
    for (uint32_t i = 0; i < MAX_RANGES; i++)
        if (b->ranges[i].asleep)
            wake(b, i);
    compare(b);
    CHECK_EQ(b->space->asleep_bytes, 0);
    CHECK(b->falls > 50);
}

CASE(random_ranges_agree_with_the_oracle)
{
    run(b, 1, TEST_ROUNDS(8000));
}

/* Each request for host memory fails in turn: the ranges and chunks are as before. */
CASE(without_host_memory_nothing_sleeps)
{
    bool falls_asleep;
    quire_result result = QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < 3; i++)
        take(b, i, 4);
    b->ranges[0].asleep = b->ranges[1].asleep = b->ranges[2].asleep = true;
    for (uint64_t call = 1; result; call++) {
        test_memory_fail(unit_memory_state(), call, false);
        result = qi_space_sleep_chunk(b->space, b->ranges[1].range, 0, is_asleep, b, &falls_asleep);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(call < 10 && (!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY));
        CHECK_OK(quire_space_check(b->space));
        CHECK_EQ(b->space->asleep_bytes, result ? 0 : 12 * GRANULE);
    }
    for (int i = 0; i < 200; i++) { /* grows the records */
        test_memory_fail(unit_memory_state(), 1, true);
        result = qi_space_set_aside(b->space);
        test_memory_fail(unit_memory_state(), 0, false);
        if (result)
            CHECK_OK(qi_space_set_aside(b->space));
    }
    for (int i = 0; i < 200; i++)
        qi_space_take_aside(b->space);
    qi_space_wake_chunk(b->space, b->ranges[2].range, 0);
}

UNIT(asleep, damage)
{
    bench b;
    begin(&b);
    take(&b, 0, 4);
    fall_asleep(&b, (uint32_t[]){0}, 1);
    take(&b, 1, 4);
    CHECK_OK(quire_space_check(b.space));
    const uint32_t aside = b.s->first_aside;
    DAMAGE(b.space->asleep_bytes, 0, "the sum of what sleeps is wrong");
    DAMAGE(b.s->is_asleep[0], 0, "");
    DAMAGE(b.s->is_asleep[0], UINT64_MAX, "a range that is not live is in a chunk that sleeps");
    DAMAGE(b.s->first_aside, b.s->nodes[aside].next, "the sums of the holes are wrong");
    DAMAGE(b.s->nodes[aside].size, 1, "the chain of the numbers put aside is damaged");
    DAMAGE(b.s->nodes[aside].next, aside, "the sums of the holes are wrong");
    finish(&b);
}
