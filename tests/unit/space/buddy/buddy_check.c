/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buddy_check.c - the check of the buddy fit finds every kind of damage to its records, with the
 * right message, and reads nothing that it has not verified.
 */
#include "src/space/buddy/buddy.h"

#include "tests/support/damage.h"
#include "tests/support/space_steps.h"

/*
 * Two regions with a largest alignment of 256. The first has 8192 bytes: live A (4) and B (4) at
 * its start, free 8, 16 and so on, live C (64) at 256. The second has 100: 64, 32, 4, all free.
 */
typedef struct bench {
    quire_space *space;
    qi_buddy *b;
    qi_buddy_region *regions;
    qi_buddy_node *A, *B, *C, *nodes;
    uint32_t a, b_, c;
} bench;

static uint32_t take(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
    return qi_handle_slot(at.range.id);
}

static bench make_bench(void)
{
    bench b = {0};
    uint32_t region = 0;
    quire_space_options options = {.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 1},
                                   .size = 8192};
    options.fit.max_alignment = 256;
    b.space = new_space(options);
    b.a = take(b.space, 4, 1);
    b.b_ = take(b.space, 4, 1);
    b.c = take(b.space, 64, 256);
    CHECK_OK(quire_space_add_region(b.space, 100, 0, &region));
    b.b = qi_buddy_of(b.space);
    b.regions = b.b->regions;
    b.nodes = b.b->nodes;
    b.A = &b.nodes[b.a];
    b.B = &b.nodes[b.b_];
    b.C = &b.nodes[b.c];
    CHECK_OK(quire_space_check(b.space)); /* sorts the list: A, B, C */
    CHECK_EQ(b.regions[0].newest, b.a);
    CHECK_EQ(b.A->next, b.b_);
    CHECK_EQ(b.B->next, b.c);
    CHECK_EQ(b.C->place, 256);
    return b;
}

UNIT(buddy_check, tables_and_layouts)
{
    bench b = make_bench();
    const char *const tables = "the tables have a wrong size";
    const char *const bitmaps = "the bitmaps of a region do not match its size";
    qi_buddy_layout *l = &b.regions[1].layout;
    uint32_t capacity = b.b->capacity;
    DAMAGE(b.b->nodes, (uintptr_t)(b.nodes + 1), tables);
    DAMAGE(b.b->granule_shift, 1, tables);
    DAMAGE(b.b->granule_shift, 64, tables);
    DAMAGE(b.b->capacity, b.b->capacity + 1, tables);
    DAMAGE(b.b->stride, b.b->stride + 1, tables);
    DAMAGE(b.regions[1].words, 0, bitmaps);
    DAMAGE(l->begin, 1, bitmaps);
    DAMAGE(l->end, 99, bitmaps);
    DAMAGE(l->order_count, 9, bitmaps);
    DAMAGE(l->word_count, 3, bitmaps);
    DAMAGE(l->first[2], 0, bitmaps);
    DAMAGE(b.space->regions[1].start, 1, bitmaps);
    DAMAGE(b.space->regions[1].size, 0, bitmaps);
    DAMAGE(b.space->regions[1].size, UINT64_MAX, bitmaps);
    DAMAGE(b.space->regions[1].start, UINT64_MAX, bitmaps);
    DAMAGE(b.space->regions[2].used, true, bitmaps);
    DAMAGE(b.regions[2].words, (uintptr_t)b.regions[1].words, "bitmaps of an unused region exist");
    /* records of two regions exist; the record after them belongs to no region */
    CHECK(capacity > 2);
    DAMAGE(b.b->capacity, 1, bitmaps);
    b.b->capacity = 2;
    b.regions[2].words = b.regions[1].words;
    b.regions[2].orders = UINT64_MAX;
    CHECK_OK(quire_space_check(b.space));
    b.regions[2] = (qi_buddy_region){0};
    b.b->capacity = capacity;
    end_space(b.space);
    /* less than a granule apart the bitmaps would have the same layout */
    quire_space_options options = {.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 16},
                                   .size = 8192};
    b.space = new_space(options);
    DAMAGE(b.space->regions[0].start, b.space->regions[0].start + 1, bitmaps);
    DAMAGE(b.space->regions[0].size, 8192 + 15, bitmaps);
    end_space(b.space);
}

UNIT(buddy_check, the_list_of_live_ranges)
{
    bench b = make_bench();
    const char *const link = "a range is not linked with those of its region";
    const uint32_t top = b.space->pool.top, wrong[] = {b.c, top, UINT32_MAX, b.b_ + 100},
                   wrong_last[] = {b.a, top, UINT32_MAX, b.b_ + 100};
    DAMAGE_BY_EACH(b.A->next, wrong, link);
    DAMAGE_BY_EACH(b.A->before, wrong, link);
    DAMAGE_BY_EACH(b.B->before, wrong, link);
    DAMAGE_BY_EACH(b.C->before, wrong_last, link);
    DAMAGE_BY_EACH(b.regions[0].newest, wrong, link);
    DAMAGE(b.B->next, b.a, link); /* a circle */
    DAMAGE(b.A->region, 1, link);
    DAMAGE(b.C->region, UINT32_MAX, link);
    DAMAGE(b.regions[1].newest, b.a, link);
    DAMAGE(b.B->generation, b.B->generation + 1, "a region lists a range that is not live");
    DAMAGE(b.regions[0].newest, 0, "a part of a region is neither free nor live");
    end_space(b.space);
}

UNIT(buddy_check, places_and_orders_of_live_ranges)
{
    bench b = make_bench();
    const char *const gap = "a part of a region is neither free nor live";
    const char *const overlap = "a range overlaps what lies below it";
    const char *const large = "a range is larger than its place allows";
    DAMAGE(b.A->place, 1, gap);
    DAMAGE(b.B->place, 0, "space:"); /* over A */
    DAMAGE(b.B->place, 2, overlap);
    DAMAGE(b.A->order, 3, overlap);
    DAMAGE(b.A->order, 1, gap);
    DAMAGE(b.B->order, 3, large);
    DAMAGE(b.C->order, QI_ORDERS, overlap);
    DAMAGE(b.C->order, UINT32_MAX, overlap);
    DAMAGE(b.C->order, 14, large);
    DAMAGE(b.C->place, 8192, gap);
    DAMAGE(b.C->order, 7, "a block is marked free where none begins");
    /* a range after its region: `more` belongs to the other one */
    CHECK_OK(quire_space_clear(b.space));
    uint32_t whole = take(b.space, 8192, 1), more = take(b.space, 64, 1);
    b.nodes[whole].next = more;
    b.nodes[more].before = whole;
    b.nodes[more].region = 0;
    b.nodes[more].place = 8192;
    b.regions[1].newest = 0;
    EXPECT_REPORT("a range lies above the end of its region");
    b.nodes[whole].next = b.nodes[more].before = 0;
    b.nodes[more].region = 1;
    b.nodes[more].place = 0;
    b.regions[1].newest = more;
    end_space(b.space);
}

/* ---- free blocks --------------------------------------------------------------------------- */

static uint64_t *bits_of(const bench *b, uint32_t region, uint32_t order)
{
    return b->regions[region].words + b->regions[region].layout.first[order];
}

UNIT(buddy_check, bits_and_marks_of_free_blocks)
{
    bench b = make_bench();
    const char *const gap = "a part of a region is neither free nor live";
    const char *const summary = "a summary of free blocks is wrong";
    const char *const orders = "the bits of a region's free orders are wrong";
    const char *const regions = "the regions with free blocks of an order are wrong";
    uint64_t *eights = bits_of(&b, 0, 3), *ones = bits_of(&b, 0, 0), own = b.regions[0].orders;
    CHECK_EQ(eights[0], 2); /* free at 8 */
    DAMAGE(eights[0], 0, gap);
    DAMAGE(eights[0], 3, "two buddies are free"); /* below A */
    DAMAGE(eights[0], 2 | UINT64_C(1) << 34, "a block is marked free where none begins");
    DAMAGE(bits_of(&b, 1, 1)[0], 1, orders);
    DAMAGE(eights[1], 2, summary);
    DAMAGE(ones[8192 / 64], 1, summary); /* it has 3 levels */
    DAMAGE(ones[8192 / 64 + 2], 1, summary);
    DAMAGE(bits_of(&b, 1, 0)[1], UINT64_C(1) << 36, summary);
    DAMAGE(b.regions[0].orders, own | 4, orders);
    DAMAGE(b.regions[0].orders, own | UINT64_C(1) << 40, orders);
    DAMAGE(b.regions[0].orders, own ^ 1 << 3, gap);
    DAMAGE(*qi_buddy_regions_of(b.b, 3), 0, regions);
    DAMAGE(*qi_buddy_regions_of(b.b, 3), 3, regions);
    DAMAGE(*qi_buddy_regions_of(b.b, 0), 1, regions);
    DAMAGE(*qi_buddy_regions_of(b.b, 0), UINT64_C(1) << 63, regions);
    DAMAGE(*qi_buddy_regions_of(b.b, 31), 1, regions);
    DAMAGE(b.b->orders, b.b->orders | 1, "the bits of the free orders are wrong");
    DAMAGE(b.b->orders, b.b->orders ^ 8, "the bits of the free orders are wrong");
    end_space(b.space);
}

/* The first granule alone is free, and one whose bit lies in the 65th or last word of its level. */
UNIT(buddy_check, sound_bits_at_both_ends_of_a_level)
{
    bench b = make_bench();
    CHECK_OK(quire_space_clear(b.space));
    CHECK_OK(quire_space_remove_region(b.space, 1));
    uint32_t lowest = take(b.space, 1, 1), last = 0;
    quire_range first = {qi_handle(b.space->tag, b.nodes[lowest].generation, lowest)};
    do
        last = take(b.space, 1, 1);
    while (b.b->nodes[last].place != 4096);
    CHECK_OK(quire_space_check(b.space));
    while (b.b->nodes[last].place != 8190)
        last = take(b.space, 1, 1);
    CHECK_OK(quire_space_check(b.space));
    CHECK_OK(quire_space_free(b.space, first));
    end_space(b.space);
}

/* Moves a free block of the second region to the lists of another order. */
static void expect_moved_found(uint32_t from, uint64_t was, uint32_t to, uint64_t becomes,
                               bool fill, const char *words)
{
    bench b = make_bench();
    if (fill) /* of the second region 32 + 4 bytes remain */
        CHECK_EQ(b.nodes[take(b.space, 64, 1)].region, 0);
    uint64_t *old = bits_of(&b, 1, from), *new = bits_of(&b, 1, to);
    uint64_t orders = UINT64_C(1) << from | UINT64_C(1) << to;
    CHECK_EQ(*old, was);
    *old = 0;
    *new = becomes;
    b.regions[1].orders ^= orders;
    EXPECT_REPORT(words);
    b.regions[1].orders ^= orders;
    *old = was;
    *new = 0;
    end_space(b.space);
}

UNIT(buddy_check, blocks_of_a_wrong_order)
{
    /* 32 at 64 become two blocks of 16 that did not merge */
    expect_moved_found(5, 4, 4, 0x30, true, "two buddies are free");
    /* 4 at 96, the last, become 8 */
    expect_moved_found(2, UINT64_C(1) << 24, 3, 1 << 12, false,
                       "a free block reaches beyond its region");
}

/* ---- counts, and random damage -------------------------------------------------------------- */

UNIT(buddy_check, counts_and_numbers_without_a_range)
{
    bench b = make_bench();
    const char *const live = "the live statistics do not match the ranges";
    DAMAGE(b.space->live_bytes, 73, live);
    DAMAGE(b.space->live_count, 4, live);
    DAMAGE(b.space->padding_bytes, 1, live);
    DAMAGE(b.space->pool.spare, b.space->pool.spare + 1, live);
    DAMAGE(b.b->free_count, 3, "the number of free blocks is wrong");
    DAMAGE(b.space->region_bytes, 8293, "the sums of live and free bytes are not the size");
    DAMAGE(b.space->region_count, 3, "the number of regions is wrong");
    quire_range ranges[3];
    for (int i = 0; i < 3; i++)
        ranges[i] = take_bytes(b.space, 10).range;
    CHECK_OK(quire_space_free_batch(b.space, ranges, 3));
    uint32_t spare = b.space->pool.unused;
    CHECK(spare != 0);
    DAMAGE(b.nodes[spare].generation, b.nodes[spare].generation + 1, "space:");
    DAMAGE(b.nodes[spare].next, spare, "space:");
    DAMAGE(b.space->pool.unused, b.a, "space:");
    DAMAGE(b.space->pool.unused, UINT32_MAX, "space:");
    DAMAGE(b.nodes[b.space->pool.top].generation, 1, "space:");
    DAMAGE(b.nodes[0].generation, 1, "space:");
    DAMAGE(b.space->pool.top, b.space->pool.capacity + 1, "more numbers are in use");
    end_space(b.space);
}

UNIT(buddy_check, the_checker_survives_random_damage)
{
    bench b = make_bench();
    for (uint64_t i = 0; i < 40; i++) {
        uint32_t made = take(b.space, 1 + i * 5, 1);
        quire_range range = {qi_handle(b.space->tag, b.b->nodes[made].generation, made)};
        if (i % 3 == 0)
            CHECK_OK(quire_space_free(b.space, range));
    }
    const size_t links = offsetof(qi_buddy_region, orders), rest = sizeof *b.regions - links;
    const damage_target nodes = {b.b->nodes, b.space->pool.top * sizeof *b.nodes, 0, 0};
    const damage_target targets[] = {
        nodes,
        nodes,
        {b.regions[0].words, b.regions[0].layout.word_count * sizeof(uint64_t), 0, 0},
        {(char *)&b.regions[0] + links, rest, 0, 0},
        {(char *)&b.regions[1] + links, rest, 0, 0},
    };
    SURVIVE_RANDOM_DAMAGE(targets, 25000);
    end_space(b.space);
}
