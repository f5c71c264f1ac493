/*
 * buddy_check.c - the check of the buddy fit finds every kind of damage to its records, with the
 * right message, and reads nothing that it has not verified.
 */
#include "src/space/buddy/buddy.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

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
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &b.space));
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

static void end_bench(bench *b)
{
    CHECK_OK(quire_space_check(b->space));
    quire_space_destroy(&b->space);
}

/* Sets a field, expects the message, and restores the field. */
#define DAMAGE(b, field, value, message)                                                           \
    do {                                                                                           \
        __typeof__(field) kept = (field);                                                          \
        (field) = (__typeof__(field))(value);                                                      \
        CHECK_FAILS(quire_space_check((b)->space), QUIRE_ERROR_CORRUPTED);                         \
        CHECK_HAS(quire_last_error(), message);                                                    \
        (field) = kept;                                                                            \
        CHECK_OK(quire_space_check((b)->space));                                                   \
    } while (0)

UNIT(buddy_check, the_tables)
{
    bench b = make_bench();
    const char *const message = "the tables have a wrong size";
    DAMAGE(&b, b.b->nodes, b.nodes + 1, message);
    DAMAGE(&b, b.b->granule_shift, 1, message);
    DAMAGE(&b, b.b->granule_shift, 64, message);
    DAMAGE(&b, b.b->capacity, b.b->capacity + 1, message);
    DAMAGE(&b, b.b->stride, b.b->stride + 1, message);
    end_bench(&b);
}

UNIT(buddy_check, the_layout_of_a_region)
{
    bench b = make_bench();
    const char *const message = "the bitmaps of a region do not match its size";
    qi_buddy_layout *l = &b.regions[1].layout;
    DAMAGE(&b, b.regions[1].words, NULL, message);
    DAMAGE(&b, l->begin, 1, message);
    DAMAGE(&b, l->end, 99, message);
    DAMAGE(&b, l->order_count, 9, message);
    DAMAGE(&b, l->word_count, 3, message);
    DAMAGE(&b, l->first[2], 0, message);
    DAMAGE(&b, b.space->regions[1].start, 1, message);
    DAMAGE(&b, b.space->regions[1].size, 0, message);
    DAMAGE(&b, b.space->regions[1].size, UINT64_MAX, message);
    DAMAGE(&b, b.space->regions[1].start, UINT64_MAX, message);
    DAMAGE(&b, b.space->regions[2].used, true, message);
    DAMAGE(&b, b.regions[2].words, b.regions[1].words, "bitmaps of an unused region exist");
    end_bench(&b);
}

/* Records of two regions exist; the record after them belongs to no region. */
UNIT(buddy_check, records_without_a_region)
{
    bench b = make_bench();
    uint32_t capacity = b.b->capacity;
    CHECK(capacity > 2);
    DAMAGE(&b, b.b->capacity, 1, "the bitmaps of a region do not match its size");
    b.b->capacity = 2;
    b.regions[2].words = b.regions[1].words;
    b.regions[2].orders = UINT64_MAX;
    CHECK_OK(quire_space_check(b.space));
    b.regions[2] = (qi_buddy_region){0};
    b.b->capacity = capacity;
    end_bench(&b);
}

/* Less than a granule apart the bitmaps would have the same layout. */
UNIT(buddy_check, places_between_granules)
{
    bench b = {0};
    const char *const message = "the bitmaps of a region do not match its size";
    quire_space_options options = {.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 16},
                                   .size = 8192};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &b.space));
    DAMAGE(&b, b.space->regions[0].start, b.space->regions[0].start + 1, message);
    DAMAGE(&b, b.space->regions[0].size, 8192 + 15, message);
    end_bench(&b);
}

UNIT(buddy_check, the_list_of_live_ranges)
{
    bench b = make_bench();
    const char *const message = "a range is not linked with those of its region";
    const uint32_t top = b.space->pool.top;
    const uint32_t wrong[] = {b.c, top, UINT32_MAX, b.b_ + 100};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        DAMAGE(&b, b.A->next, wrong[i], message);
        DAMAGE(&b, b.A->before, wrong[i], message);
        DAMAGE(&b, b.B->before, wrong[i], message);
        DAMAGE(&b, b.C->before, wrong[i] == b.c ? b.a : wrong[i], message);
        DAMAGE(&b, b.regions[0].newest, wrong[i], message);
    }
    DAMAGE(&b, b.B->next, b.a, message); /* a circle */
    DAMAGE(&b, b.A->region, 1, message);
    DAMAGE(&b, b.C->region, UINT32_MAX, message);
    DAMAGE(&b, b.regions[1].newest, b.a, message);
    DAMAGE(&b, b.B->generation, b.B->generation + 1, "a region lists a range that is not live");
    DAMAGE(&b, b.regions[0].newest, 0, "a part of a region is neither free nor live");
    end_bench(&b);
}

UNIT(buddy_check, places_and_orders_of_live_ranges)
{
    bench b = make_bench();
    const char *const gap = "a part of a region is neither free nor live";
    DAMAGE(&b, b.A->place, 1, gap);
    DAMAGE(&b, b.B->place, 0, "space:"); /* over A */
    DAMAGE(&b, b.B->place, 2, "a range overlaps what lies below it");
    DAMAGE(&b, b.A->order, 3, "a range overlaps what lies below it");
    DAMAGE(&b, b.A->order, 1, gap);
    DAMAGE(&b, b.B->order, 3, "a range is larger than its place allows");
    DAMAGE(&b, b.C->order, QI_ORDERS, "a range overlaps what lies below it");
    DAMAGE(&b, b.C->order, UINT32_MAX, "a range overlaps what lies below it");
    DAMAGE(&b, b.C->order, 14, "a range is larger than its place allows");
    DAMAGE(&b, b.C->place, 8192, gap);
    DAMAGE(&b, b.C->order, 7, "a block is marked free where none begins");
    end_bench(&b);
}

UNIT(buddy_check, a_range_after_its_region)
{
    bench b = make_bench();
    CHECK_OK(quire_space_clear(b.space));
    uint32_t whole = take(b.space, 8192, 1), more = take(b.space, 64, 1);
    b.nodes[whole].next = more; /* which belongs to the other region */
    b.nodes[more].before = whole;
    b.nodes[more].region = 0;
    b.nodes[more].place = 8192;
    b.regions[1].newest = 0;
    CHECK_FAILS(quire_space_check(b.space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "a range lies above the end of its region");
    b.nodes[whole].next = b.nodes[more].before = 0;
    b.nodes[more].region = 1;
    b.nodes[more].place = 0;
    b.regions[1].newest = more;
    end_bench(&b);
}

/* ---- free blocks --------------------------------------------------------------------------- */

static uint64_t *bits_of(const bench *b, uint32_t region, uint32_t order)
{
    return b->regions[region].words + b->regions[region].layout.first[order];
}

UNIT(buddy_check, bits_of_free_blocks)
{
    bench b = make_bench();
    uint64_t *eights = bits_of(&b, 0, 3), *ones = bits_of(&b, 0, 0);
    CHECK_EQ(eights[0], 2); /* free at 8 */
    DAMAGE(&b, eights[0], 0, "a part of a region is neither free nor live");
    DAMAGE(&b, eights[0], 3, "two buddies are free"); /* below A */
    DAMAGE(&b, eights[0], 2 | UINT64_C(1) << 34, "a block is marked free where none begins");
    DAMAGE(&b, bits_of(&b, 1, 1)[0], 1, "the bits of a region's free orders are wrong");
    DAMAGE(&b, eights[1], 2, "a summary of free blocks is wrong");
    DAMAGE(&b, ones[8192 / 64], 1, "a summary of free blocks is wrong"); /* it has 3 levels */
    DAMAGE(&b, ones[8192 / 64 + 2], 1, "a summary of free blocks is wrong");
    DAMAGE(&b, bits_of(&b, 1, 0)[1], UINT64_C(1) << 36, "a summary of free blocks is wrong");
    end_bench(&b);
}

/* The first granule alone is free, and a granule whose bit lies in the 65th word of its level. */
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
    CHECK_OK(quire_space_free(b.space, first));
    end_bench(&b);
}

UNIT(buddy_check, two_buddies_that_did_not_merge)
{
    bench b = make_bench();
    /* 32 + 4 bytes of the second region, or of this one, are free */
    uint32_t high = take(b.space, 64, 1);
    CHECK_EQ(b.nodes[high].region, 0);
    CHECK_OK(quire_space_check(b.space));
    uint64_t *words = bits_of(&b, 1, 5), *fours = bits_of(&b, 1, 4);
    CHECK_EQ(words[0], 4); /* 32 at 64 becomes two blocks of 16 that did not merge */
    words[0] = 0;
    fours[0] = 0x30;
    b.regions[1].orders ^= 0x30;
    CHECK_FAILS(quire_space_check(b.space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "two buddies are free");
    b.regions[1].orders ^= 0x30;
    words[0] = 4;
    fours[0] = 0;
    end_bench(&b);
}

UNIT(buddy_check, a_free_block_outside_its_region)
{
    bench b = make_bench();
    uint64_t *fours = bits_of(&b, 1, 2), *eights = bits_of(&b, 1, 3);
    CHECK_EQ(fours[0], UINT64_C(1) << 24); /* 4 at 96, the last */
    fours[0] = 0;
    eights[0] = 1 << 12;
    b.regions[1].orders ^= 0xc;
    CHECK_FAILS(quire_space_check(b.space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "a free block reaches beyond its region");
    b.regions[1].orders ^= 0xc;
    fours[0] = UINT64_C(1) << 24;
    eights[0] = 0;
    end_bench(&b);
}

UNIT(buddy_check, marks_of_orders)
{
    bench b = make_bench();
    const char *const message = "the regions with free blocks of an order are wrong";
    uint64_t orders = b.regions[0].orders;
    DAMAGE(&b, b.regions[0].orders, orders | 4, "the bits of a region's free orders are wrong");
    DAMAGE(&b, b.regions[0].orders, orders | UINT64_C(1) << 40, "free orders are wrong");
    DAMAGE(&b, b.regions[0].orders, orders ^ 1 << 3, "neither free nor live");
    DAMAGE(&b, *qi_buddy_regions_of(b.b, 3), 0, message);
    DAMAGE(&b, *qi_buddy_regions_of(b.b, 3), 3, message);
    DAMAGE(&b, *qi_buddy_regions_of(b.b, 0), 1, message);
    DAMAGE(&b, *qi_buddy_regions_of(b.b, 0), UINT64_C(1) << 63, message);
    DAMAGE(&b, *qi_buddy_regions_of(b.b, 31), 1, message);
    DAMAGE(&b, b.b->orders, b.b->orders | 1, "the bits of the free orders are wrong");
    DAMAGE(&b, b.b->orders, b.b->orders ^ 8, "the bits of the free orders are wrong");
    end_bench(&b);
}

/* ---- counts and sums ----------------------------------------------------------------------- */

UNIT(buddy_check, counts_and_sums)
{
    bench b = make_bench();
    const char *const message = "the live statistics do not match the ranges";
    DAMAGE(&b, b.space->live_bytes, 73, message);
    DAMAGE(&b, b.space->live_count, 4, message);
    DAMAGE(&b, b.space->padding_bytes, 1, message);
    DAMAGE(&b, b.space->pool.spare, b.space->pool.spare + 1, message);
    DAMAGE(&b, b.b->free_count, 3, "the number of free blocks is wrong");
    DAMAGE(&b, b.space->region_bytes, 8293,
           "the sums of live and free bytes are not the size of the regions");
    DAMAGE(&b, b.space->region_count, 3, "the number of regions is wrong");
    end_bench(&b);
}

UNIT(buddy_check, numbers_without_a_range)
{
    bench b = make_bench();
    quire_placement at[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_space_allocate(b.space, 10, 1, 0, &at[i]));
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_space_free(b.space, at[i].range));
    uint32_t spare = b.space->pool.unused;
    CHECK(spare != 0);
    DAMAGE(&b, b.nodes[spare].generation, b.nodes[spare].generation + 1, "space:");
    DAMAGE(&b, b.nodes[spare].next, spare, "space:");
    DAMAGE(&b, b.space->pool.unused, b.a, "space:");
    DAMAGE(&b, b.space->pool.unused, UINT32_MAX, "space:");
    DAMAGE(&b, b.nodes[b.space->pool.top].generation, 1, "space:");
    DAMAGE(&b, b.nodes[0].generation, 1, "space:");
    DAMAGE(&b, b.space->pool.top, b.space->pool.capacity + 1, "more numbers are in use");
    end_bench(&b);
}

/* ---- random damage ------------------------------------------------------------------------- */

/* Bytes of the nodes, of a region's bitmaps and of its record, four at a time. */
UNIT(buddy_check, the_checker_survives_random_damage)
{
    bench b = make_bench();
    for (uint64_t i = 0; i < 40; i++) {
        uint32_t made = take(b.space, 1 + i * 5, 1);
        quire_range range = {qi_handle(b.space->tag, b.nodes[made].generation, made)};
        if (i % 3 == 0)
            CHECK_OK(quire_space_free(b.space, range));
        b.nodes = b.b->nodes;
    }
    static unsigned char nodes[4096], words[8192];
    qi_buddy_region regions[2];
    size_t node_size = b.space->pool.top * sizeof *b.nodes;
    size_t word_size = b.regions[0].layout.word_count * sizeof(uint64_t);
    CHECK(node_size <= sizeof nodes && word_size <= sizeof words);
    memcpy(nodes, b.nodes, node_size);
    memcpy(words, b.regions[0].words, word_size);
    memcpy(regions, b.regions, sizeof regions);
    uint64_t *bits = b.regions[0].words;
    test_random r = {17};
    for (int i = 0; i < 50000; i++) {
        for (int j = 0; j < 4; j++) {
            static const size_t links = offsetof(qi_buddy_region, orders);
            uint64_t kind = random_below(&r, 4);
            unsigned char *at = (unsigned char *)b.nodes + random_below(&r, node_size);
            if (kind == 0)
                at = (unsigned char *)bits + random_below(&r, word_size);
            if (kind == 1)
                at = (unsigned char *)b.regions + links + random_below(&r, sizeof *regions - links);
            *at = (unsigned char)(random_next(&r) & random_next(&r));
        }
        quire_result result = quire_space_check(b.space);
        CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_CORRUPTED);
        memcpy(b.nodes, nodes, node_size);
        memcpy(bits, words, word_size);
        memcpy(b.regions, regions, sizeof regions); /* a check may have sorted both lists */
    }
    end_bench(&b);
}
