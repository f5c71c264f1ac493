/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * line.c - a region takes the lowest address of the line that fits and is congruent to its base;
 * compared with a naive search of all gaps.
 */
#include "src/space/line.h"

#include "src/base/bits.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

typedef struct bench {
    qi_host host;
    qi_line line;
} bench;

static bench make_line(uint64_t limit)
{
    bench b;
    CHECK_OK(qi_host_init(&b.host, unit_memory()));
    qi_line_init(&b.line, limit);
    return b;
}

static void end_line(bench *b)
{
    qi_line_finish(&b->line, &b->host);
    CHECK_EQ(qi_line_extent(&b->line), 0);
    CHECK_EQ(qi_atomic_load_u64(&b->host.bytes), 0);
}

static void expect_at(bench *b, uint64_t size, uint64_t base, uint64_t alignment, uint64_t place)
{
    uint64_t start = UINT64_MAX;
    CHECK_OK(qi_line_place(&b->line, &b->host, size, base, alignment, &start));
    CHECK_EQ(start, place);
}

/* The invariants that line.h states about the records; the check of the line must agree. */
static void expect_sound(const qi_line *line)
{
    CHECK(qi_line_is_sound(line));
    uint64_t end = 0;
    CHECK(line->count <= line->capacity);
    for (uint32_t i = 0; i < line->count; i++) {
        const qi_stretch *s = &line->stretches[i];
        CHECK(s->start >= end && s->end > s->start && s->end <= line->limit);
        CHECK(s->start - end <= line->max_gap);
        CHECK(qi_line_has(line, s->start, s->end - s->start));
        end = s->end;
    }
    CHECK_EQ(qi_line_extent(line), end);
}

UNIT(line, an_empty_line_ends_at_0)
{
    bench b = make_line(100);
    CHECK_EQ(qi_line_extent(&b.line), 0);
    expect_sound(&b.line);
    end_line(&b);
}

UNIT(line, the_limit_is_reached_and_not_exceeded)
{
    bench b = make_line(1 << 20);
    uint64_t start = 0;
    CHECK_FAILS(qi_line_place(&b.line, &b.host, (1 << 20) + 1, 0, 1, &start),
                QUIRE_ERROR_OUT_OF_RANGE);
    expect_at(&b, 1 << 19, 0, 1, 0);
    CHECK_FAILS(qi_line_place(&b.line, &b.host, (1 << 19) + 1, 0, 1, &start),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_STR(
        quire_last_error(),
        "a region of 524289 bytes does not fit on the line: 524288 of 1048576 are taken; a space "
        "with a larger granule reaches further");
    CHECK_FAILS(qi_line_place(&b.line, &b.host, 1 << 19, 1, 2, &start), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(qi_line_place(&b.line, &b.host, UINT64_MAX, 0, 1, &start),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(b.line.count, 1);
    expect_at(&b, 1 << 19, 0, 1, 1 << 19);
    expect_sound(&b.line);
    end_line(&b);
}

UNIT(line, the_end_of_a_stretch_moves_up_to_the_next_one)
{
    bench b = make_line(1000);
    expect_at(&b, 100, 0, 1, 0);
    expect_at(&b, 100, 0, 512, 512);
    CHECK_OK(qi_line_resize(&b.line, 0, 512));
    CHECK(qi_line_has(&b.line, 0, 512) && qi_line_has(&b.line, 512, 100));
    const uint64_t wrong[] = {513, 1000, UINT64_MAX};
    for (int i = 0; i < 3; i++)
        CHECK_FAILS(qi_line_resize(&b.line, 0, wrong[i]), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_STR(quire_last_error(),
              "a region cannot end 18446744073709551615 bytes from its start: another lies on the "
              "line 512 bytes from there");
    CHECK(qi_line_has(&b.line, 0, 512));
    CHECK_OK(qi_line_resize(&b.line, 512, 488));
    CHECK_EQ(qi_line_extent(&b.line), 1000);
    CHECK_FAILS(qi_line_resize(&b.line, 512, 489), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "the line ends 488 bytes from there");
    CHECK_OK(qi_line_resize(&b.line, 512, 1));
    expect_sound(&b.line);
    end_line(&b);
}

UNIT(line, without_host_memory_nothing_changes)
{
    bench b = make_line(10000);
    uint64_t start = 0;
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(qi_line_place(&b.line, &b.host, 10, 0, 1, &start), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_HAS(quire_last_error(), "8 regions");
    CHECK_EQ(b.line.count, 0);
    test_memory_fail(unit_memory_state(), 0, false);
    for (uint64_t i = 0; i < 8; i++)
        expect_at(&b, 10, 0, 1, i * 10);
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(qi_line_place(&b.line, &b.host, 10, 0, 1, &start), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_HAS(quire_last_error(), "16 regions");
    CHECK_EQ(b.line.count, 8);
    expect_sound(&b.line);
    test_memory_fail(unit_memory_state(), 0, false);
    expect_at(&b, 10, 0, 1, 80);
    end_line(&b);
}

/* ---- the maximum gap -------------------------------------------------------------------------
 * It saves a search if no gap can fit, so it must never be too small. It is exact where that costs
 * nothing. */

UNIT(line, a_new_gap_updates_the_maximum_exactly)
{
    bench b = make_line(1 << 20);
    expect_at(&b, 10, 0, 1, 0);
    CHECK_EQ(b.line.max_gap, 0);
    expect_at(&b, 10, 0, 1024, 1024);
    CHECK_EQ(b.line.max_gap, 1014);
    expect_at(&b, 2000, 0, 1, 1034);
    qi_line_remove(&b.line, 1034); /* the last stretch: no gap after it */
    CHECK_EQ(b.line.max_gap, 1014);
    expect_at(&b, 2000, 0, 1, 1034);
    expect_at(&b, 1500, 0, 1, 3034);
    qi_line_remove(&b.line, 1034);
    CHECK_EQ(b.line.max_gap, 2000);
    end_line(&b);
}

UNIT(line, a_gap_that_widens_after_a_stretch_updates_the_maximum_exactly)
{
    bench b = make_line(1 << 20);
    expect_at(&b, 1000, 0, 1, 0);
    expect_at(&b, 1000, 0, 1, 1000);
    CHECK_OK(qi_line_resize(&b.line, 1000, 10)); /* the last stretch: no gap after it */
    CHECK_EQ(b.line.max_gap, 0);
    CHECK_OK(qi_line_resize(&b.line, 0, 300));
    CHECK_EQ(b.line.max_gap, 700);
    /* an upper bound; the next search computes the exact value */
    CHECK_OK(qi_line_resize(&b.line, 0, 400));
    CHECK_EQ(b.line.max_gap, 700);
    expect_at(&b, 601, 0, 1, 1010);
    CHECK_EQ(b.line.max_gap, 600);
    expect_at(&b, 600, 0, 1, 400);
    end_line(&b);
}

UNIT(line, a_failed_search_computes_the_largest_gap)
{
    bench b = make_line(1 << 20);
    for (uint64_t i = 0; i < 6; i++)
        expect_at(&b, 100, 0, 1, i * 100);
    qi_line_remove(&b.line, 100);
    qi_line_remove(&b.line, 200); /* a gap of 200 */
    qi_line_remove(&b.line, 400);
    expect_at(&b, 150, 0, 1, 100); /* 50 of it remain */
    CHECK_EQ(b.line.max_gap, 200);
    expect_at(&b, 120, 0, 1, 600);
    CHECK_EQ(b.line.max_gap, 100);
    expect_at(&b, 100, 0, 1, 400);
    expect_at(&b, 60, 0, 1, 720);
    CHECK_EQ(b.line.max_gap, 50);
    end_line(&b);
}

/* ---- damage -------------------------------------------------------------------------------- */

static void expect_unsound(qi_line *line, uint64_t *field, uint64_t value)
{
    uint64_t kept = *field;
    *field = value;
    CHECK(!qi_line_is_sound(line));
    *field = kept;
    CHECK(qi_line_is_sound(line));
}

UNIT(line, stretches_that_overlap_or_leave_the_line_are_found)
{
    bench b = make_line(1000);
    expect_at(&b, 50, 0, 1, 0);
    for (uint64_t i = 0; i < 3; i++)
        expect_at(&b, 100, 0, 1, 50 + 100 * i);
    qi_line_remove(&b.line, 0);
    qi_line_remove(&b.line, 150); /* 50 to 150 and 250 to 350 are free; the largest gap is 100 */
    qi_stretch *s = b.line.stretches;
    expect_sound(&b.line);
    expect_unsound(&b.line, &s[0].end, 251);
    expect_unsound(&b.line, &s[0].end, 50);
    expect_unsound(&b.line, &s[0].end, 10);
    expect_unsound(&b.line, &s[0].end, UINT64_MAX);
    expect_unsound(&b.line, &s[0].start, 101);
    expect_unsound(&b.line, &s[1].start, 149);
    expect_unsound(&b.line, &s[1].end, 1001);
    expect_unsound(&b.line, &b.line.limit, 349);
    expect_unsound(&b.line, &b.line.max_gap, 99); /* the gap would never be reused */
    /* an upper bound, so a larger value is no damage */
    b.line.max_gap = UINT64_MAX;
    expect_unsound(&b.line, &s[0].end, 251);
    expect_unsound(&b.line, &s[0].end, 50);
    uint32_t count = b.line.count;
    b.line.count = b.line.capacity + 1;
    CHECK(!qi_line_is_sound(&b.line));
    b.line.count = count;
    end_line(&b);
}

UNIT(line, only_an_existing_stretch_is_reported)
{
    bench b = make_line(1000);
    CHECK(!qi_line_has(&b.line, 0, 0));
    expect_at(&b, 100, 0, 1, 0);
    expect_at(&b, 200, 0, 1, 100);
    CHECK(qi_line_has(&b.line, 0, 100) && qi_line_has(&b.line, 100, 200));
    CHECK(!qi_line_has(&b.line, 0, 300) && !qi_line_has(&b.line, 100, 199));
    CHECK(!qi_line_has(&b.line, 99, 201) && !qi_line_has(&b.line, 300, 1));
    CHECK(!qi_line_has(&b.line, UINT64_MAX, 101));
    end_line(&b);
}

/* ---- against a naive search ----------------------------------------------------------------- */

/* Returns the lowest address that fits, from the stretches alone; the limit if none fits. */
static uint64_t naive_place(const qi_line *line, uint64_t size, uint64_t base, uint64_t alignment)
{
    for (uint32_t i = 0; i <= line->count; i++) {
        uint64_t place = i ? line->stretches[i - 1].end : 0;
        uint64_t end = i < line->count ? line->stretches[i].start : line->limit;
        while (place % alignment != base % alignment)
            place++;
        if (place + size <= end)
            return place;
    }
    return line->limit;
}

static void place_at(bench *b, uint64_t size, uint64_t base, uint64_t alignment)
{
    uint64_t expected = naive_place(&b->line, size, base, alignment), start = 0;
    if (expected < b->line.limit) {
        CHECK_OK(qi_line_place(&b->line, &b->host, size, base, alignment, &start));
        CHECK_EQ(start, expected);
    } else {
        CHECK_FAILS(qi_line_place(&b->line, &b->host, size, base, alignment, &start),
                    QUIRE_ERROR_OUT_OF_RANGE);
    }
}

static void place_one(bench *b, test_random *r)
{
    uint64_t size = random_size(r, 600), base = random_next(r);
    place_at(b, size, base, UINT64_C(1) << random_below(r, 7));
}

/* Regions like those of pages: few sizes, most bases aligned, one alignment. */
static void place_page(bench *b, test_random *r)
{
    static const uint64_t sizes[] = {16, 48, 60, 64, 200};
    uint64_t base = random_below(r, 8) ? 0 : random_below(r, 4) * 16;
    place_at(b, sizes[random_below(r, 5)], base, 64);
}

/* Resizes a random stretch. The call succeeds if the new end does not exceed the next stretch. */
static void resize_one(bench *b, test_random *r)
{
    uint32_t index = (uint32_t)random_below(r, b->line.count);
    uint64_t start = b->line.stretches[index].start, size = random_size(r, 600);
    uint64_t next = index + 1 < b->line.count ? b->line.stretches[index + 1].start : b->line.limit;
    quire_result result = qi_line_resize(&b->line, start, size);
    CHECK_EQ(result, start + size > next ? QUIRE_ERROR_OUT_OF_RANGE : QUIRE_SUCCESS);
    CHECK(result || qi_line_has(&b->line, start, size));
}

/* The line is filled and emptied several times: gaps open and close, and at times it is full. */
static void churn(void (*place)(bench *, test_random *), uint64_t seed)
{
    bench b = make_line(8000);
    test_random r = {seed};
    for (int i = 0; i < 20000; i++) {
        bool fills = i / 500 % 2 == 0;
        if (!b.line.count || random_below(&r, 100) < (fills ? 70 : 30))
            place(&b, &r);
        else if (random_below(&r, 3) == 0)
            resize_one(&b, &r);
        else
            qi_line_remove(&b.line, b.line.stretches[random_below(&r, b.line.count)].start);
        expect_sound(&b.line);
    }
    end_line(&b);
}

UNIT(line, random_regions_lie_where_a_naive_search_places_them)
{
    churn(place_one, 10);
}

UNIT(line, regions_of_few_sizes_lie_where_a_naive_search_places_them)
{
    churn(place_page, 11);
}
