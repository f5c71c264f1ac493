/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * chunk_starts.c - starts in an elastic page: the granule before another one, also chunks away, and
 * chunks that get and lose their bitmaps.
 */
#include "src/core/find/chunk_starts.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { SHIFT = 7, CHUNK = 1 << SHIFT, CHUNKS = 200 };

typedef struct bench {
    qi_host host;
    qi_chunk_starts starts;
} bench;

static void begin(bench *b)
{
    *b = (bench){.starts.shift = SHIFT};
    CHECK_OK(qi_host_init(&b->host, unit_memory()));
}

static void end(bench *b)
{
    qi_chunk_starts_release(&b->starts, &b->host);
}

#define CASE(name) UNIT_ON(chunk_starts, name, bench, b, begin(b), end)

/* Returns the granule before, or UINT64_MAX. */
static uint64_t before(const bench *b, uint64_t granule)
{
    uint64_t found = 0;
    return qi_chunk_starts_before(&b->starts, granule, &found) ? found : UINT64_MAX;
}

static void cover(bench *b, uint64_t first, uint64_t count)
{
    CHECK(qi_chunk_starts_cover(&b->starts, &b->host, first, count));
}

CASE(the_start_before_may_be_chunks_away)
{
    CHECK_EQ(before(b, 0), UINT64_MAX);
    cover(b, 3, 1);
    cover(b, 90, 2);
    CHECK_EQ(before(b, 1000 * CHUNK), UINT64_MAX);
    qi_chunk_starts_add(&b->starts, 3 * CHUNK + 5);
    qi_chunk_starts_add(&b->starts, 3 * CHUNK + 5); /* again */
    CHECK_EQ(before(b, 3 * CHUNK + 4), UINT64_MAX);
    CHECK_EQ(before(b, 3 * CHUNK + 5), 3 * CHUNK + 5);
    CHECK_EQ(before(b, 50 * CHUNK), 3 * CHUNK + 5);
    CHECK_EQ(before(b, 91 * CHUNK), 3 * CHUNK + 5);
    qi_chunk_starts_add(&b->starts, 91 * CHUNK);
    CHECK_EQ(before(b, 91 * CHUNK), 91 * CHUNK);
    CHECK_EQ(before(b, 1000 * CHUNK), 91 * CHUNK); /* behind the last chunk */
    qi_chunk_starts_remove(&b->starts, 3 * CHUNK + 5);
    qi_chunk_starts_remove(&b->starts, 3 * CHUNK + 5); /* again */
    CHECK_EQ(before(b, 90 * CHUNK), UINT64_MAX);
}

/* Granules of removed starts count as absent, also if their chunk has lost its bitmap. */
CASE(bitmaps_go_with_the_memory)
{
    cover(b, 0, 10);
    const uint64_t blocks = unit_memory_state()->blocks;
    qi_chunk_starts_add(&b->starts, 4 * CHUNK);
    qi_chunk_starts_uncover(&b->starts, &b->host, 2, 5);
    CHECK_EQ(unit_memory_state()->blocks, blocks - 4); /* the chunk with a start keeps its own */
    qi_chunk_starts_remove(&b->starts, 3 * CHUNK);
    CHECK_EQ(before(b, 9 * CHUNK), 4 * CHUNK);
    cover(b, 2, 5);
    CHECK_EQ(unit_memory_state()->blocks, blocks);
}

CASE(without_host_memory_nothing_is_lost)
{
    cover(b, 0, 2);
    qi_chunk_starts_add(&b->starts, CHUNK + 1);
    for (uint64_t at = 1; at < 4; at++) {
        test_memory_fail(unit_memory_state(), at, true);
        CHECK(!qi_chunk_starts_cover(&b->starts, &b->host, 40, 1));
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(before(b, 100 * CHUNK), CHUNK + 1);
    }
    cover(b, 40, 1);
    CHECK_EQ(before(b, 100 * CHUNK), CHUNK + 1);
}

CASE(starts_at_random)
{
    bool set[CHUNKS * CHUNK / 8] = {false}; /* every eighth granule */
    test_random random = {7};
    cover(b, 0, CHUNKS);
    for (int i = 0; i < 20000; i++) {
        const uint64_t number = random_below(&random, CHUNKS * CHUNK / 8);
        const uint64_t at = random_below(&random, CHUNKS * CHUNK);
        uint64_t expected = at / 8;
        set[number] = !random_below(&random, 20); /* most chunks have no start */
        if (set[number])
            qi_chunk_starts_add(&b->starts, number * 8);
        else
            qi_chunk_starts_remove(&b->starts, number * 8);
        while (expected != UINT64_MAX && !set[expected])
            expected--;
        CHECK_EQ(before(b, at), expected == UINT64_MAX ? expected : expected * 8);
    }
}
