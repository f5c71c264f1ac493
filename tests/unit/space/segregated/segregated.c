/*
 * segregated.c - which free range the segregated fit chooses, how many it examines, and what
 * happens to the rest of a range.
 */
#include "src/space/segregated/segregated.h"

#include "tests/support/unit.h"

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
    bench b = {0};
    quire_space_options options = {.size = size, .fit.granule = 1, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &b.space));
    CHECK_OK(qi_segregated_reserve(qi_segregated_of(b.space), 600)); /* 16 buckets per class */
    return b;
}

static void end_bench(bench *b)
{
    CHECK_OK(quire_space_check(b->space));
    quire_space_destroy(&b->space);
}

static quire_placement take(bench *b, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(b->space, size, alignment, 0, &at));
    CHECK_OK(quire_space_check(b->space));
    return at;
}

static quire_range expect_at(bench *b, uint64_t size, uint64_t alignment, uint64_t offset)
{
    quire_placement at = take(b, size, alignment);
    CHECK_EQ(at.offset, offset);
    CHECK_EQ(at.size, size);
    CHECK_EQ(at.left_padding, 0);
    return at.range;
}

static void give(bench *b, quire_range range)
{
    CHECK_OK(quire_space_free(b->space, range));
    CHECK_OK(quire_space_check(b->space));
}

/* Lays out a hole: live bytes up to it and one live byte after it. */
static void lay_hole(bench *b, uint64_t offset, uint64_t size)
{
    CHECK(b->count < MAX_HOLES && offset > b->laid);
    take(b, offset - b->laid, 1);
    b->holes[b->count++] = expect_at(b, size, 1, offset);
    take(b, 1, 1);
    b->laid = offset + size + 1;
}

/* Allocates all free bytes after it. */
static void fill_rest(bench *b)
{
    take(b, b->space->region_bytes - b->laid, 1);
}

static void open_holes(bench *b, int from, int below)
{
    for (int i = from; i < below; i++)
        give(b, b->holes[i]);
}

/* ---- the direct choice --------------------------------------------------------------------- */

UNIT(segregated, a_range_of_the_size_itself_goes_before_lower_and_larger_ones)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 10, 100);
    lay_hole(&b, 200, 40);
    lay_hole(&b, 300, 42);
    open_holes(&b, 0, 3);
    expect_at(&b, 40, 1, 200);
    expect_at(&b, 40, 1, 300); /* then the next class that has a range */
    expect_at(&b, 40, 1, 10);
    end_bench(&b);
}

UNIT(segregated, of_two_in_a_class_the_lower_bucket_is_taken_in_any_order_of_frees)
{
    for (int low_first = 0; low_first < 2; low_first++) {
        bench b = make_bench(1 << 16);
        lay_hole(&b, 5000, 1000);
        lay_hole(&b, 40000, 1000);
        give(&b, b.holes[!low_first]);
        give(&b, b.holes[low_first]);
        expect_at(&b, 1000, 1, 5000);
        expect_at(&b, 1000, 1, 40000);
        end_bench(&b);
    }
}

UNIT(segregated, a_lower_bucket_that_is_too_small_is_skipped)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 5000, 995); /* both in the class of 992 to 1007 */
    lay_hole(&b, 40000, 1005);
    open_holes(&b, 0, 2);
    expect_at(&b, 1000, 1, 40000);
    expect_at(&b, 995, 1, 5000);
    end_bench(&b);
}

UNIT(segregated, in_the_next_class_the_lowest_bucket_is_taken)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 5000, 1000);
    lay_hole(&b, 40000, 992);
    open_holes(&b, 0, 2);
    expect_at(&b, 970, 1, 5000);
    end_bench(&b);
}

UNIT(segregated, a_class_in_a_later_word_of_bits_is_found)
{
    bench b = make_bench(1 << 20);
    lay_hole(&b, 1, 200000);
    fill_rest(&b);
    open_holes(&b, 0, 1);
    expect_at(&b, 3, 1, 1);
    expect_at(&b, 199997, 1, 4);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(b.space, 1, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    end_bench(&b);
}

/* ---- the bounded search -------------------------------------------------------------------- */

UNIT(segregated, a_range_after_one_of_its_class_that_is_too_small_is_found)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 5000, 1005);
    lay_hole(&b, 6100, 995);
    fill_rest(&b);
    open_holes(&b, 0, 2);
    expect_at(&b, 1000, 1, 5000);
    end_bench(&b);
}

UNIT(segregated, an_aligned_range_of_the_same_class_is_found)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 1000, 300);
    lay_hole(&b, 8192, 300);
    open_holes(&b, 0, 2);
    expect_at(&b, 300, 256, 8192);
    end_bench(&b);
}

UNIT(segregated, a_range_with_room_for_any_padding_is_found)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 1001, 300);
    lay_hole(&b, 2001, 560);
    fill_rest(&b);
    open_holes(&b, 0, 2);
    expect_at(&b, 300, 256, 2048);
    end_bench(&b);
}

UNIT(segregated, an_aligned_range_between_the_sizes_is_found)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 1001, 300);
    lay_hole(&b, 2048, 400); /* less than 300 + 255, but its alignment needs less padding */
    fill_rest(&b);
    open_holes(&b, 0, 2);
    expect_at(&b, 300, 256, 2048);
    end_bench(&b);
}

UNIT(segregated, nothing_is_found_where_alignment_leaves_too_little)
{
    bench b = make_bench(1 << 16);
    lay_hole(&b, 257, 554); /* [257, 811): 299 bytes from 512 on */
    fill_rest(&b);
    open_holes(&b, 0, 1);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(b.space, 300, 256, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(),
              "no free range of 300 at a multiple of 256: none that is large enough has such a "
              "place, with 554 free in 1 region; largest free range 554");
    expect_at(&b, 299, 256, 512);
    end_bench(&b);
}

UNIT(segregated, size_plus_alignment_may_exceed_the_space)
{
    bench b = {0};
    quire_space_options options = {
        .size = UINT32_MAX, .fit.granule = 1, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &b.space));
    expect_at(&b, UINT32_MAX - 100, 1 << 21, 0);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(b.space, 100, 1 << 21, 0, &at), QUIRE_ERROR_NO_SPACE);
    expect_at(&b, 100, 1, UINT32_MAX - 100);
    end_bench(&b);
}

UNIT(segregated, the_largest_sizes_are_distinguished)
{
    bench b = {0};
    quire_space_options options = {
        .size = UINT32_MAX, .fit.granule = 1, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &b.space));
    quire_range whole = expect_at(&b, UINT32_MAX, 1, 0);
    give(&b, whole);
    expect_at(&b, 1, 1, 0);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(b.space, UINT32_MAX, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    expect_at(&b, UINT32_MAX - 1, 1, 1);
    end_bench(&b);
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
    quire_placement at;
    const quire_range_options bounded = {.size = 1000, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(b.space, &bounded, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(b.space->full_passes, 0);
    CHECK_OK(quire_space_allocate(b.space, 1000, 1, 0, &at));
    CHECK_EQ(at.offset, 1 + LARGE * 1010);
    end_bench(&b);
}

UNIT(segregated, full_passes_and_their_hits_are_counted_separately)
{
    bench b = make_crowded_class();
    quire_placement at;
    quire_space_stats stats;
    CHECK_OK(quire_space_allocate(b.space, 995, 1, 0, &at)); /* needs no full pass */
    CHECK_OK(quire_space_allocate(b.space, 1000, 1, 0, &at));
    for (uint64_t i = 0; i < 3; i++) /* smaller ones, which no earlier refusal covers */
        CHECK_FAILS(quire_space_allocate(b.space, 1000 - i, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    const quire_range_options bounded = {.size = 997, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(b.space, &bounded, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_OK(quire_space_get_stats(b.space, &stats));
    CHECK_EQ(stats.full_passes, 4);
    CHECK_EQ(stats.full_pass_hits, 1);
    end_bench(&b);
}

UNIT(segregated, the_full_pass_finds_the_only_aligned_range_of_many)
{
    bench b = make_bench(1 << 17);
    for (uint64_t i = 0; i < 120; i++)
        lay_hole(&b, 1 + i * 1024, 600); /* 1 byte after a multiple of 512: 89 bytes remain */
    lay_hole(&b, 126976, 550);
    fill_rest(&b);
    open_holes(&b, 0, 121);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(b.space, 551, 512, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_OK(quire_space_allocate(b.space, 550, 512, 0, &at));
    CHECK_EQ(at.offset, 126976);
    end_bench(&b);
}
