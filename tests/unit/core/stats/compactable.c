/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compactable.c - what a compaction would free, before one begins: pages, moves and bytes, which
 * pages stay, how many allocations are looked at; and that a compaction then does so.
 */
#include "src/core/stats/compactable.h"

#include "quire/compact.h"
#include "quire/stream.h"
#include "src/core/checked.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

enum { PAGE = 65536, PART = PAGE / 4, PARTS = 16 };

static void begin(fixture *f, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    all.shards = 1;
    all.pages.page_size = PAGE;
    fixture_make(f, &all);
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(compactable, name, fixture, f, begin(f, &(quire_memory_options){__VA_ARGS__}),         \
            fixture_end)

/* Four pages with four parts each. */
static void put(fixture *f, quire_allocation made[PARTS], int fixed)
{
    for (int i = 0; i < PARTS; i++)
        made[i] = ALLOCATE(f, .size = PART, .movable = i != fixed);
}

static void free_parts(fixture *f, const quire_allocation made[PARTS], const char *parts)
{
    for (; *parts; parts++)
        CHECK_OK(quire_free(f->memory, made[*parts - 'a']));
}

static void expect(fixture *f, uint64_t pages, uint64_t moves)
{
    const qi_compactable most = qi_compactable_get(f->memory, UINT64_MAX);
    CHECK_EQ(most.pages, pages);
    CHECK_EQ(most.page_bytes, pages * PAGE);
    CHECK_EQ(most.moves, moves);
    CHECK_EQ(most.move_bytes, moves * PART);
}

static quire_compact_stats compact(fixture *f)
{
    quire_compaction *c = NULL;
    quire_compact_stats done;
    CHECK_OK(quire_compact_begin(f->memory, &c));
    CHECK_OK(quire_compact_step(c, NULL, &done));
    quire_compact_end(&c);
    return done;
}

/* ---- what is counted ---------------------------------------------------------------------- */

CASE(pages_by_their_bytes, .name = "m")
{
    quire_allocation made[PARTS];
    expect(f, 0, 0);
    put(f, made, -1);
    expect(f, 0, 0);
    free_parts(f, made, "abc"); /* the first has one part left, and no other has room */
    expect(f, 0, 0);
    free_parts(f, made, "e");
    expect(f, 1, 1);
    free_parts(f, made,
               "ijm"); /* the second and the fourth have room for two parts, not for three */
    expect(f, 1, 1);
    free_parts(f, made, "n");
    expect(f, 2, 3);
    CHECK_EQ(compact(f).pages_freed, 2);
    expect(f, 0, 0);
}

CASE(a_page_with_one_fixed_allocation_stays, .name = "m")
{
    quire_allocation made[PARTS];
    put(f, made, 3);
    free_parts(f, made, "abcefijk"); /* a fixed part, two, one and four are left */
    expect(f, 2, 3);
    CHECK_OK(quire_free(f->memory, made[3]));
    expect(f, 1, 1);
    free_parts(f, made, "mno");
    expect(f, 2, 2);
}

CASE(what_waits_for_a_point_stays, .name = "m")
{
    quire_allocation made[PARTS];
    quire_stream *stream = NULL;
    put(f, made, -1);
    free_parts(f, made, "abefg");
    expect(f, 1, 1);
    CHECK_OK(quire_stream_create(f->device, &(quire_stream_options){.capture = true}, &stream));
    CHECK_OK(quire_free_on_stream(f->memory, made[7], stream));
    expect(f, 1, 2);
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(full_and_dedicated_pages_do_not_count, .name = "m")
{
    ALLOCATE(f, .size = 2 * PAGE, .dedicated = true, .movable = true);
    ALLOCATE(f, .size = PAGE - 256, .movable = true);
    ALLOCATE(f, .size = PAGE - 256, .movable = true);
    expect(f, 0, 0);
}

CASE(a_limit_of_records, .name = "m")
{
    quire_allocation made[PARTS];
    put(f, made, -1);
    free_parts(f, made, "abcefijkmn"); /* one, two, one and two parts are left */
    expect(f, 2, 2);
    CHECK_EQ(qi_compactable_get(f->memory, 1).pages, 1);
    CHECK_EQ(qi_compactable_get(f->memory, 2).pages, 2);
    CHECK_EQ(qi_compactable_get(f->memory, 0).pages, 0);
}

/* More pages than are sorted at a time. */
CASE(many_pages, .name = "m")
{
    enum { PAGES = 300 };
    quire_allocation made[PAGES][2];
    for (int i = 0; i < PAGES; i++)
        for (int j = 0; j < 2; j++)
            made[i][j] = ALLOCATE(f, .size = PAGE / 2, .movable = true);
    expect(f, 0, 0);
    for (int i = 0; i < PAGES; i++)
        CHECK_OK(quire_free(f->memory, made[i][i % 2]));
    const qi_compactable most = qi_compactable_get(f->memory, UINT64_MAX);
    CHECK_EQ(most.pages, PAGES / 2);
    CHECK_EQ(most.moves, PAGES / 2);
    CHECK_EQ(compact(f).pages_freed, PAGES / 2);
}

CASE(memories_that_cannot_be_compacted, .name = "m", .fit.algorithm = QUIRE_FIT_FIRST)
{
    quire_allocation made[PARTS];
    quire_compact_stats most;
    put(f, made, -1);
    free_parts(f, made, "abcefijk");
    expect(f, 0, 0);
    CHECK_FAILS(quire_compact_estimate(f->memory, &most), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(),
              "memory 'm' cannot be compacted: its fit is not the segregated one");
}

/* ---- what is said of it ------------------------------------------------------------------- */

CASE(the_public_estimate, .name = "m")
{
    quire_allocation made[PARTS];
    quire_compact_stats most;
    put(f, made, -1);
    CHECK_OK(quire_compact_estimate(f->memory, &most));
    CHECK(most.is_complete);
    free_parts(f, made, "abcefgij");
    CHECK_OK(quire_compact_estimate(f->memory, &most));
    CHECK(!most.is_complete);
    CHECK_EQ(most.pages_freed, 2);
    CHECK_EQ(most.bytes_freed, 2 * PAGE);
    CHECK_EQ(most.moves, 2);
    CHECK_EQ(most.bytes_moved, 2 * PART);
}

CASE(a_refusal_says_what_compaction_would_free, .pages.max_pages = 4)
{
    quire_allocation made[PARTS];
    put(f, made, -1);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = PART);
    CHECK(!strstr(quire_last_error(), "compaction"));
    free_parts(f, made, "abcefgij");
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE);
    CHECK_HAS(quire_last_error(),
              "free in 4 pages, of which compaction would free up to 2 (128 KiB). Tried: ");
    CHECK_EQ(compact(f).pages_freed, 2);
    ALLOCATE(f, .size = PAGE);
    ALLOCATE(f, .size = PAGE);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE);
    CHECK(!strstr(quire_last_error(), "compaction"));
}

/* ---- beside compaction -------------------------------------------------------------------- */

/* A compaction never frees more, and with parts of one size as much. */
static void compare(fixture *f, test_random *random, uint64_t largest)
{
    enum { MOST = 400 };
    quire_allocation made[MOST];
    const bool is_equal = !largest;
    for (int i = 0; i < MOST; i++)
        made[i] = ALLOCATE(f, .size = is_equal ? PAGE / 16 : 1 + random_below(random, largest),
                           .movable = random_below(random, 40) != 0);
    for (int i = 0; i < MOST; i++)
        if (random_below(random, 3))
            CHECK_OK(quire_free(f->memory, made[i]));
    const qi_compactable most = qi_compactable_get(f->memory, UINT64_MAX);
    const quire_compact_stats done = compact(f);
    CHECK(done.pages_freed <= most.pages);
    CHECK(most.pages);
    if (is_equal)
        CHECK_EQ(done.pages_freed, most.pages);
}

CASE(a_compaction_does_what_was_said, .name = "m")
{
    test_random random = {1};
    for (int i = 0; i < 4; i++)
        compare(f, &random, 0);
    for (int i = 0; i < 4; i++)
        compare(f, &random, PAGE / 8);
}
