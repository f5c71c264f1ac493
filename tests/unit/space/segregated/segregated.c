/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * segregated.c - which free range the segregated fit chooses, how many it examines, and what
 * happens to the rest of a range.
 */
#include "src/space/segregated/segregated.h"

#include "tests/support/space_steps.h"

/* A space with granules of one byte, laid out by hand. A hole stays live until it is opened. */
enum { MAX_HOLES = 256 };

typedef struct bench {
    quire_space *space;
    uint64_t laid; /* bytes laid out so far */
    quire_range holes[MAX_HOLES];
    int count;
} bench;

static bench make_bench(uint64_t size)
{
    bench b = {.space = new_space((quire_space_options){.size = size, .fit.granule = 1})};
    CHECK_OK(qi_segregated_reserve(qi_segregated_of(b.space), 600)); /* 16 buckets per class */
    return b;
}

static quire_range expect_at(bench *b, uint64_t size, uint64_t alignment, uint64_t offset)
{
    quire_placement at = take_aligned(b->space, size, alignment);
    CHECK_EQ(at.offset, offset);
    CHECK_EQ(at.size, size);
    CHECK_EQ(at.left_padding, 0);
    CHECK_OK(quire_space_check(b->space));
    return at.range;
}

/* Lays out a hole: live bytes up to it and one live byte after it. */
static void lay_hole(bench *b, uint64_t offset, uint64_t size)
{
    CHECK(b->count < MAX_HOLES && offset > b->laid);
    take_bytes(b->space, offset - b->laid);
    b->holes[b->count++] = expect_at(b, size, 1, offset);
    take_bytes(b->space, 1);
    b->laid = offset + size + 1;
}

/* Allocates all free bytes after it. */
static void fill_rest(bench *b)
{
    take_bytes(b->space, b->space->region_bytes - b->laid);
}

static void open_holes(bench *b, int from, int below)
{
    for (int i = from; i < below; i++)
        give(b->space, b->holes[i]);
}

/* ---- the direct choice and the bounded search ------------------------------------------------ */

static const struct scene {
    const char *name;
    struct {
        uint64_t offset, size;
    } holes[3];
    struct {
        uint64_t size, alignment, offset;
    } requests[3];
} scenes[] = {
    {"the size itself, then the next class that has a range, then a lower and larger range",
     {{10, 100}, {200, 40}, {300, 42}},
     {{40, 1, 200}, {40, 1, 300}, {40, 1, 10}}},
    {"of two in a class the lower bucket",
     {{5000, 1000}, {40000, 1000}},
     {{1000, 1, 5000}, {1000, 1, 40000}}},
    {"a lower bucket that is too small is skipped: both are in the class of 992 to 1007",
     {{5000, 995}, {40000, 1005}},
     {{1000, 1, 40000}, {995, 1, 5000}}},
    {"in the next class the lowest bucket", {{5000, 1000}, {40000, 992}}, {{970, 1, 5000}}},
    {"a class in a later word of bits", {{1, 60000}}, {{3, 1, 1}, {59997, 1, 4}}},
    {"beside one of its class and bucket that is too small",
     {{5000, 1005}, {6100, 995}},
     {{1000, 1, 5000}}},
    {"an aligned range of the same class", {{1000, 300}, {8192, 300}}, {{300, 256, 8192}}},
    {"a range with room for any padding", {{1001, 300}, {2001, 560}}, {{300, 256, 2048}}},
    {"less than 300 + 255, but its alignment needs less padding",
     {{1001, 300}, {2048, 400}},
     {{300, 256, 2048}}},
};

/* The holes are opened in both orders. Nothing else is free. */
static void play(const struct scene *scene, bool is_reversed)
{
    bench b = make_bench(1 << 16);
    for (int i = 0; i < 3 && scene->holes[i].size; i++)
        lay_hole(&b, scene->holes[i].offset, scene->holes[i].size);
    fill_rest(&b);
    for (int i = 0; i < b.count; i++)
        give(b.space, b.holes[is_reversed ? b.count - 1 - i : i]);
    for (int i = 0; i < 3 && scene->requests[i].size; i++)
        expect_at(&b, scene->requests[i].size, scene->requests[i].alignment,
                  scene->requests[i].offset);
    end_space(b.space);
}

UNIT(segregated, the_range_that_is_chosen)
{
    for (uint32_t i = 0; i < 2 * sizeof scenes / sizeof *scenes; i++) {
        unit_note(scenes[i / 2].name, i % 2);
        play(&scenes[i / 2], i % 2);
    }
}

UNIT(segregated, nothing_is_found_where_alignment_leaves_too_little)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 257, 554); /* [257, 811): 299 bytes from 512 on */
    fill_rest(&b);
    open_holes(&b, 0, 1);
    expect_no_space(b.space, (quire_range_options){.size = 300, .alignment = 256});
    CHECK_STR(quire_last_error(),
              "no free range of 300 at a multiple of 256: none that is large enough has such a "
              "place, with 554 free in 1 region; largest free range 554");
    expect_at(&b, 299, 256, 512);
    end_space(b.space);
}

UNIT(segregated, the_largest_sizes_are_distinguished)
{
    bench b = {.space = new_space((quire_space_options){.size = UINT32_MAX, .fit.granule = 1})};
    quire_range large = expect_at(&b, UINT32_MAX - 100, 1 << 21, 0);
    /* size and alignment exceed the space */
    expect_no_space(b.space, (quire_range_options){.size = 100, .alignment = 1 << 21});
    give(b.space, expect_at(&b, 100, 1, UINT32_MAX - 100));
    give(b.space, large);
    give(b.space, expect_at(&b, UINT32_MAX, 1, 0));
    expect_at(&b, 1, 1, 0);
    expect_no_space(b.space, (quire_range_options){.size = UINT32_MAX});
    expect_at(&b, UINT32_MAX - 1, 1, 1);
    end_space(b.space);
}

/* ---- the full pass ------------------------------------------------------------------------- */

enum { CROWD = 125, LARGE = 118 };

/* Free ranges of 995 in one class, and after more of them than the bounded search examines, one of
   1005. */
static bench make_crowded_class(void)
{
    bench b = make_bench(1 << 17);
    for (uint64_t i = 0; i < CROWD; i++)
        lay_hole(&b, 1 + i * 1010, i == LARGE ? 1005 : 995);
    fill_rest(&b);
    open_holes(&b, LARGE, LARGE + 1); /* freed first, so that it is the last of its list */
    open_holes(&b, 0, LARGE);
    open_holes(&b, LARGE + 1, CROWD);
    return b;
}

UNIT(segregated, the_full_pass_finds_what_the_bounded_search_misses)
{
    bench b = make_crowded_class();
    quire_range_options wanted = {.size = 1000, .bounded = true};
    expect_no_space(b.space, wanted);
    take_bytes(b.space, 995);
    CHECK_EQ(stats_of(b.space).full_passes, 0);
    CHECK_EQ(take_bytes(b.space, 1000).offset, 1 + LARGE * 1010);
    wanted.bounded = false;
    for (; wanted.size > 997; wanted.size--) /* smaller ones, which no earlier refusal covers */
        expect_no_space(b.space, wanted);
    wanted.bounded = true;
    expect_no_space(b.space, wanted);
    CHECK_EQ(stats_of(b.space).full_passes, 4);
    CHECK_EQ(stats_of(b.space).full_pass_hits, 1);
    end_space(b.space);
}

UNIT(segregated, the_full_pass_finds_the_only_aligned_range_of_many)
{
    bench b = make_bench(1 << 17);
    for (uint64_t i = 0; i < 120; i++)
        lay_hole(&b, 1 + i * 1024, 600); /* 1 byte after a multiple of 512: 89 bytes remain */
    lay_hole(&b, 126976, 550);
    fill_rest(&b);
    open_holes(&b, 0, 121);
    expect_no_space(b.space, (quire_range_options){.size = 551, .alignment = 512});
    CHECK_EQ(take_aligned(b.space, 550, 512).offset, 126976);
    end_space(b.space);
}
