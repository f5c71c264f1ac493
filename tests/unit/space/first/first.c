/*
 * first.c - the first fit places every range where a naive search of all gaps places it, keeps left
 * paddings, retires numbers, and changes nothing when host memory is exhausted.
 */
#include "src/space/first/first.h"

#include "src/base/handle.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static quire_space *make_space(uint64_t size)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit.algorithm = QUIRE_FIT_FIRST, .size = size};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static qi_first *records(quire_space *space)
{
    return (qi_first *)(void *)space;
}

static quire_placement take(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
    CHECK_OK(quire_space_check(space));
    return at;
}

static void give(quire_space *space, quire_range range)
{
    CHECK_OK(quire_space_free(space, range));
    CHECK_OK(quire_space_check(space));
}

static uint64_t free_count(const quire_space *space)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_get_stats(space, &stats));
    return stats.free_count;
}

/* ---- against a naive search ----------------------------------------------------------------- */

enum { MOST = 120, SIZE = 1 << 20 };

/* The live ranges in address order. A range begins before its left padding. */
typedef struct model {
    struct {
        uint64_t begin, offset, end;
        quire_range range;
    } live[MOST];
    int count;
} model;

/* Returns the index of the first gap that holds the request, from *offset on; -1 means none. */
static int naive_place(const model *m, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    for (int i = 0; i <= m->count; i++) {
        uint64_t begin = i ? m->live[i - 1].end : 0;
        uint64_t end = i < m->count ? m->live[i].begin : SIZE;
        *offset = (begin + alignment - 1) / alignment * alignment;
        if (begin < end && *offset + size <= end)
            return i;
    }
    return -1;
}

static void take_in_both(quire_space *space, model *m, uint64_t size, uint64_t alignment)
{
    uint64_t offset = 0;
    quire_placement at;
    int index = naive_place(m, size, alignment, &offset);
    if (index < 0) {
        CHECK_FAILS(quire_space_allocate(space, size, alignment, 0, &at), QUIRE_ERROR_NO_SPACE);
        return;
    }
    uint64_t begin = index ? m->live[index - 1].end : 0;
    at = take(space, size, alignment);
    CHECK_EQ(at.offset, offset);
    CHECK_EQ(at.left_padding, offset - begin);
    CHECK_EQ(at.size, size);
    memmove(&m->live[index + 1], &m->live[index], sizeof m->live[0] * (size_t)(m->count - index));
    m->live[index].begin = begin;
    m->live[index].offset = offset;
    m->live[index].end = offset + size;
    m->live[index].range = at.range;
    m->count++;
}

static void give_in_both(quire_space *space, model *m, int index)
{
    give(space, m->live[index].range);
    m->count--;
    memmove(&m->live[index], &m->live[index + 1], sizeof m->live[0] * (size_t)(m->count - index));
}

UNIT(first, every_range_lies_where_a_naive_search_places_it)
{
    static model m;
    quire_space *space = make_space(SIZE);
    test_random r = {16};
    for (int i = 0; i < 8000; i++) {
        bool fills = i / 400 % 2 == 0;
        if (m.count < MOST && (!m.count || random_below(&r, 100) < (fills ? 75 : 25)))
            take_in_both(space, &m, random_size(&r, 1 << 16), UINT64_C(1) << random_below(&r, 19));
        else
            give_in_both(space, &m, (int)random_below(&r, (uint64_t)m.count));
    }
    end_space(space);
}

/* ---- remainders and paddings --------------------------------------------------------------- */

UNIT(first, an_exactly_used_gap_leaves_no_free_range)
{
    quire_space *space = make_space(1000);
    quire_range first = take(space, 300, 1).range;
    take(space, 700, 1);
    CHECK_EQ(free_count(space), 0);
    give(space, first);
    CHECK_EQ(free_count(space), 1);
    CHECK_EQ(take(space, 300, 1).offset, 0);
    CHECK_EQ(free_count(space), 0);
    end_space(space);
}

UNIT(first, padding_belongs_to_the_range_and_is_freed_with_it)
{
    quire_space *space = make_space(1000);
    take(space, 10, 1);
    quire_placement padded = take(space, 100, 256), at;
    CHECK_EQ(padded.left_padding, 246);
    CHECK_EQ(space->padding_bytes, 246);
    CHECK_EQ(take(space, 1, 1).offset, 356); /* no range is placed in the padding */
    CHECK_OK(quire_space_get(space, padded.range, &at));
    CHECK(!memcmp(&at, &padded, sizeof at));
    give(space, padded.range);
    CHECK_EQ(space->padding_bytes, 0);
    CHECK_EQ(take(space, 346, 1).offset, 10);
    end_space(space);
}

UNIT(first, a_failed_request_does_not_count_padding_as_free)
{
    quire_space *space = make_space(1000);
    quire_placement at;
    take(space, 10, 1);
    take(space, 100, 256);
    CHECK_FAILS(quire_space_allocate(space, 700, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no free range of 700 at a multiple of 1: the space is "
                                  "exhausted, with 644 free in 1 region; largest free range 644");
    end_space(space);
}

UNIT(first, padding_may_fill_a_gap_to_its_end)
{
    quire_space *space = make_space(1024);
    take(space, 513, 1);
    quire_placement at = take(space, 256, 256);
    CHECK_EQ(at.offset, 768);
    CHECK_EQ(at.left_padding, 255);
    CHECK_EQ(free_count(space), 0);
    give(space, at.range);
    CHECK_EQ(take(space, 511, 1).offset, 513);
    end_space(space);
}

UNIT(first, neighbours_merge_in_every_order_of_release)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        quire_space *space = make_space(600);
        quire_range ranges[3];
        for (int j = 0; j < 3; j++)
            ranges[j] = take(space, 150, 64).range; /* the second and third range have padding */
        for (int j = 0; j < 3; j++)
            give(space, ranges[orders[i][j]]);
        CHECK_EQ(free_count(space), 1);
        CHECK_EQ(take(space, 600, 1).offset, 0);
        end_space(space);
    }
}

UNIT(first, regions_are_searched_in_order_of_address_on_the_line)
{
    quire_space *space = make_space(100);
    uint32_t second = 0, third = 0;
    CHECK_OK(quire_space_add_region(space, 200, 0, &second));
    CHECK_OK(quire_space_add_region(space, 300, 0, &third));
    CHECK_EQ(take(space, 150, 1).region, second);
    CHECK_EQ(take(space, 150, 1).region, third);
    CHECK_EQ(take(space, 50, 1).region, 0);
    CHECK_EQ(take(space, 60, 1).region, third);
    CHECK_EQ(take(space, 50, 1).region, 0);
    CHECK_EQ(take(space, 50, 1).region, second);
    end_space(space);
}

/* ---- host memory is exhausted -------------------------------------------------------------- */

UNIT(first, allocating_without_host_memory_changes_nothing)
{
    quire_space *space = make_space(100000);
    uint64_t refused = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        quire_placement at;
        test_memory_fail(unit_memory_state(), 1, true);
        quire_result result = quire_space_allocate(space, 10, 1, 0, &at);
        test_memory_fail(unit_memory_state(), 0, false);
        if (result) {
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_EQ(at.range.id, 0);
            CHECK_EQ(space->live_count, i);
            refused++;
            at = take(space, 10, 1);
        }
        CHECK_EQ(at.offset, i * 10);
    }
    CHECK(refused >= 4 && refused <= 10); /* the array doubles */
    end_space(space);
}

UNIT(first, adding_a_region_without_host_memory_changes_nothing)
{
    for (uint64_t call = 1; call <= 4; call++) { /* regions, line, nodes */
        quire_space *space = make_space(0);
        uint32_t region = 77;
        test_memory_fail(unit_memory_state(), call, true);
        quire_result result = quire_space_add_region(space, 100, 0, &region);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(result, call <= 3 ? QUIRE_ERROR_OUT_OF_HOST_MEMORY : QUIRE_SUCCESS);
        CHECK_EQ(space->region_count, call == 4);
        CHECK_EQ(space->line.count, call == 4);
        CHECK_EQ(space->region_bytes, call == 4 ? 100 : 0);
        CHECK_OK(quire_space_check(space));
        if (result)
            CHECK_OK(quire_space_add_region(space, 100, 0, &region));
        CHECK_EQ(region, 0);
        CHECK_EQ(take(space, 100, 1).offset, 0);
        end_space(space);
    }
}

/* ---- generations and trimming -------------------------------------------------------------- */

/* Gives the number of a live range its last generation. */
static quire_range age(quire_space *space, quire_range range)
{
    uint32_t slot = qi_handle_slot(range.id);
    records(space)->nodes[slot].generation = QI_LAST_GENERATION;
    return (quire_range){qi_handle(space->tag, QI_LAST_GENERATION, slot)};
}

static void expect_never_again(quire_space *space, quire_range old)
{
    quire_range ranges[100];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            ranges[i] = take(space, 1, 1).range;
            CHECK(qi_handle_slot(ranges[i].id) != qi_handle_slot(old.id));
        }
        for (int i = 0; i < 100; i++)
            give(space, ranges[i]);
    }
    CHECK_FAILS(quire_space_free(space, old), QUIRE_ERROR_STALE_HANDLE);
}

UNIT(first, a_worn_number_is_retired_when_its_range_merges)
{
    quire_space *space = make_space(4096);
    quire_range old = age(space, take(space, 100, 1).range);
    give(space, old);
    CHECK_EQ(space->pool.retired, 1);
    expect_never_again(space, old);
    end_space(space);
}

UNIT(first, a_worn_number_keeps_its_free_range_until_that_is_allocated)
{
    quire_space *space = make_space(4096);
    take(space, 10, 1);
    quire_range old = age(space, take(space, 50, 1).range);
    take(space, 10, 1);
    give(space, old);
    CHECK_EQ(space->pool.retired, 0);
    give(space, take(space, 20, 1).range);
    CHECK_EQ(space->pool.retired, 0);
    CHECK_EQ(take(space, 50, 1).offset, 10);
    CHECK_EQ(space->pool.retired, 1);
    expect_never_again(space, old);
    end_space(space);
}

UNIT(first, the_last_generation_is_handed_out_once)
{
    quire_space *space = make_space(4096);
    quire_range range = take(space, 100, 1).range;
    uint32_t slot = qi_handle_slot(range.id);
    give(space, range);
    records(space)->nodes[slot].generation = QI_LAST_GENERATION - 1;
    range = take(space, 100, 1).range;
    CHECK_EQ(range.id, qi_handle(space->tag, QI_LAST_GENERATION, slot));
    give(space, range);
    CHECK_EQ(space->pool.retired, 1);
    expect_never_again(space, range);
    end_space(space);
}

UNIT(first, trimming_keeps_live_and_free_ranges)
{
    quire_space *space = make_space(100000);
    static quire_range ranges[3000];
    for (uint64_t i = 0; i < 3000; i++)
        CHECK_EQ((ranges[i] = take(space, 20, 1).range).id == 0, false);
    for (int i = 40; i < 3000; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
    for (int i = 0; i < 40; i += 2)
        CHECK_OK(quire_space_free(space, ranges[i]));
    uint32_t capacity = space->pool.capacity;
    test_memory_fail(unit_memory_state(), 1, true);
    quire_space_trim(space);
    CHECK_EQ(space->pool.capacity, capacity);
    test_memory_fail(unit_memory_state(), 0, false);
    quire_space_trim(space);
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->pool.capacity, 64);
    for (int i = 1; i < 40; i += 2) {
        quire_placement at;
        CHECK_OK(quire_space_get(space, ranges[i], &at));
        CHECK_EQ(at.offset, 20 * i);
    }
    for (int i = 0; i < 1000; i++)
        take(space, 20, 1);
    end_space(space);
}
