/*
 * buddy.c - the buddy fit: choosing, splitting and coalescing blocks, the cost of an alignment,
 * walks and handles.
 */
#include "src/space/buddy/buddy.h"

#include "src/base/handle.h"
#include "tests/support/buddy.h"
#include "tests/support/random.h"

/* ---- sizes and alignments ------------------------------------------------------------------ */

UNIT(buddy, the_placement_reports_the_whole_block)
{
    quire_space *space = NULL;
    quire_space_options options = {
        .fit.algorithm = QUIRE_FIT_BUDDY, .size = 1 << 20, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    CHECK_EQ(stats_of(space).granule, 256);
    const uint64_t sizes[][2] = {{1, 256},     {256, 256},     {257, 512},
                                 {512, 512},   {768, 1024},    {1025, 2048},
                                 {5000, 8192}, {65536, 65536}, {65537, 1 << 17}};
    uint64_t live = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        quire_placement at = take(space, sizes[i][0], 1), got;
        CHECK_EQ(at.size, sizes[i][1]);
        CHECK_EQ(at.offset % at.size, 0);
        CHECK_OK(quire_space_get(space, at.range, &got));
        CHECK(!memcmp(&at, &got, sizeof at));
        live += at.size;
        CHECK_EQ(stats_of(space).live_bytes, live);
    }
    end_space(space);
}

UNIT(buddy, sizes_above_every_block_are_rejected)
{
    quire_space *space = make_space(0, 1);
    add(space, 768, 0);
    add(space, 768, 0);
    const uint64_t sizes[] = {513, 768, 769, 1536, 1537, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        refuse(space, sizes[i], 1);
    }
    CHECK_EQ(stats_of(space).full_passes, 0); /* a full pass could not find more */
    take(space, 512, 1);
    CHECK_EQ(take(space, 512, 1).region, 1);
    end_space(space);
}

UNIT(buddy, blocks_skipped_for_alignment_stay_free)
{
    quire_space *space = make_space(1024, 512);
    quire_range low = take(space, 1, 512).range;
    CHECK_EQ(stats_of(space).free_bytes, 1023);
    quire_placement high = take(space, 3, 512);
    CHECK_EQ(high.offset, 512);
    CHECK_EQ(high.size, 4);
    picture p = look(space);
    const uint64_t sizes[] = {1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 4, 4, 8, 16, 32, 64, 128, 256};
    CHECK_EQ(p.count, 18);
    for (int i = 0; i < 18; i++)
        CHECK_EQ(p.items[i].size, sizes[i]);
    CHECK(!p.items[0].is_free && !p.items[10].is_free);
    give(space, low);
    give(space, high.range);
    expect_free(space, 0, (const uint64_t[]){1024, 0});
    end_space(space);
}

/* Leaves the granule at 512 free, between a live one and ones that are not aligned to 512. */
static quire_space *make_hidden(void)
{
    quire_space *space = make_space(1024, 512);
    CHECK_EQ(take(space, 1, 512).offset, 0);
    quire_placement hidden = take(space, 1, 512);
    CHECK_EQ(hidden.offset, 512);
    CHECK_EQ(take(space, 1, 1).offset, 1);
    CHECK_EQ(take(space, 1, 1).offset, 513);
    give(space, hidden.range);
    return space;
}

UNIT(buddy, a_full_pass_finds_small_aligned_blocks)
{
    quire_space *space = make_hidden();
    quire_placement at;
    const quire_range_options bounded = {.size = 1, .alignment = 512, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(space, &bounded, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(stats_of(space).full_passes, 0);
    CHECK_OK(quire_space_allocate(space, 1, 512, 7, &at));
    CHECK_EQ(at.offset, 512);
    CHECK_EQ(stats_of(space).full_passes, 1);
    CHECK_EQ(stats_of(space).full_pass_hits, 1);
    CHECK_FAILS(quire_space_allocate(space, 1, 512, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(stats_of(space).full_passes, 2);
    CHECK_EQ(stats_of(space).full_pass_hits, 1);
    end_space(space);
}

UNIT(buddy, a_full_pass_may_split_the_block_it_finds)
{
    quire_space *space = make_hidden();
    quire_placement at;
    uint32_t region = add(space, 300, 512 - 44); /* 256 at the aligned offset 44 */
    CHECK_OK(quire_space_allocate(space, 1, 512, 0, &at));
    CHECK_EQ(at.region, 0);
    CHECK_OK(quire_space_allocate(space, 2, 512, 0, &at));
    CHECK_EQ(at.region, region);
    CHECK_EQ(at.offset, 44);
    CHECK_EQ(at.size, 2);
    CHECK_EQ(stats_of(space).full_pass_hits, 2);
    end_space(space);
}

UNIT(buddy, every_alignment_holds_for_the_native_address)
{
    for (uint64_t base = 0; base < 2048; base += 37) {
        quire_space *space = make_space(0, 256);
        add(space, 5000, 1 + base % 7);
        uint32_t region = add(space, 5000, base);
        for (uint64_t alignment = 1; alignment <= 256; alignment *= 2)
            for (int i = 0; i < 5; i++) {
                quire_placement at = take(space, 9, alignment);
                uint64_t native = (at.region == region ? base : 1 + base % 7) + at.offset;
                CHECK_EQ(native % alignment, 0);
                CHECK(at.offset + at.size <= 5000);
            }
        end_space(space);
    }
}

/* ---- choosing, splitting and merging ------------------------------------------------------- */

UNIT(buddy, the_smallest_block_that_holds_the_request_is_split)
{
    quire_space *space = make_space(1024, 1);
    CHECK_EQ(take(space, 100, 1).offset, 0);
    CHECK_EQ(take(space, 1, 1).offset, 128); /* the first of 128, 256 and 512 */
    CHECK_EQ(take(space, 1, 1).offset, 129);
    CHECK_EQ(take(space, 65, 1).offset, 256);
    CHECK_EQ(take(space, 65, 1).offset, 384);
    CHECK_EQ(take(space, 33, 1).offset, 192);
    CHECK_EQ(take(space, 257, 1).offset, 512);
    CHECK_EQ(stats_of(space).largest_free, 32);
    end_space(space);
}

UNIT(buddy, of_equal_blocks_the_lowest_is_taken)
{
    quire_space *space = make_space(1024, 1);
    quire_range ranges[8];
    for (int i = 0; i < 8; i++)
        ranges[i] = take(space, 128, 1).range;
    for (int i = 7; i > 0; i -= 2)
        give(space, ranges[i]);
    for (uint64_t i = 1; i < 8; i += 2)
        CHECK_EQ(take(space, 128, 1).offset, i * 128);
    refuse(space, 1, 1);
    end_space(space);
}

UNIT(buddy, blocks_merge_in_every_order_of_release)
{
    for (int order = 0; order < 256; order++) { /* four choices among four */
        quire_space *space = make_space(1024, 1);
        quire_range ranges[4];
        int left[4] = {0, 1, 2, 3};
        for (int i = 0; i < 4; i++)
            ranges[i] = take(space, 256, 1).range;
        for (int i = 0; i < 4; i++) {
            int which = (order >> 2 * i & 3) % (4 - i);
            give(space, ranges[left[which]]);
            left[which] = left[3 - i];
        }
        expect_free(space, 0, (const uint64_t[]){1024, 0});
        end_space(space);
    }
}

UNIT(buddy, free_neighbours_that_are_no_buddies_do_not_merge)
{
    quire_space *space = make_space(1024, 1);
    quire_range ranges[4];
    for (int i = 0; i < 4; i++)
        ranges[i] = take(space, 256, 1).range;
    give(space, ranges[1]);
    give(space, ranges[2]);
    CHECK_EQ(look(space).free_count, 2);
    CHECK_EQ(stats_of(space).largest_free, 256);
    refuse(space, 257, 1);
    give(space, ranges[0]);
    CHECK_EQ(stats_of(space).largest_free, 512);
    CHECK_EQ(take(space, 512, 1).offset, 0);
    end_space(space);
}

UNIT(buddy, a_block_does_not_merge_with_a_part_of_its_buddy)
{
    quire_space *space = make_space(1024, 1);
    quire_range low = take(space, 512, 1).range, part = take(space, 256, 1).range;
    give(space, low);
    CHECK_EQ(look(space).free_count, 2);
    CHECK_EQ(stats_of(space).largest_free, 512);
    give(space, part);
    expect_free(space, 0, (const uint64_t[]){1024, 0});
    end_space(space);
}

/* ---- the walk ------------------------------------------------------------------------------ */

typedef struct tour {
    const quire_space *space;
    uint64_t end, count;
    bool is_inner;
} tour;

static bool follow(void *user, const quire_space_item *item)
{
    tour *t = user;
    quire_placement at;
    CHECK_EQ(item->offset, t->end);
    t->end += item->size;
    t->count++;
    if (item->is_free)
        return true;
    CHECK_OK(quire_space_get(t->space, item->range, &at));
    CHECK_EQ(at.offset, item->offset);
    CHECK_EQ(at.size, item->size);
    CHECK_EQ(at.user, item->user);
    if (t->count % 100 == 0 && !t->is_inner) { /* a nested walk does not disturb it */
        tour inner = {.space = t->space, .is_inner = true};
        CHECK_OK(quire_space_walk(t->space, follow, &inner));
    }
    return true;
}

UNIT(buddy, a_walk_visits_ranges_by_address_in_any_order_of_allocation)
{
    enum { SIZE = 1 << 12, MOST = SIZE / 4 };
    static quire_range ranges[MOST];
    quire_space *space = make_space(SIZE, 1);
    test_random random = {5};
    for (int i = 0; i < MOST; i++)
        ranges[i] = take(space, 4, 1).range;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 300; i++) {
            quire_range *one = &ranges[random_below(&random, MOST)];
            if (one->id)
                CHECK_OK(quire_space_free(space, *one));
            one->id = 0;
        }
        for (int i = 0; i < 250; i++) {
            quire_range *one = &ranges[random_below(&random, MOST)];
            quire_placement at;
            if (!one->id && !quire_space_allocate(space, 3, 1, random_next(&random), &at))
                *one = at.range;
        }
        tour t = {.space = space};
        CHECK_OK(quire_space_walk(space, follow, &t));
        CHECK_EQ(t.end, SIZE);
        CHECK_EQ(t.count, stats_of(space).live_count + stats_of(space).free_count);
    }
    end_space(space);
}

/* ---- handles ------------------------------------------------------------------------------- */

UNIT(buddy, a_batch_frees_all_ranges_or_none)
{
    quire_space *space = make_space(1024, 1);
    quire_range ranges[5];
    for (int i = 0; i < 4; i++)
        ranges[i] = take(space, 256, 1).range;
    ranges[4] = ranges[1];
    CHECK_FAILS(quire_space_free_batch(space, ranges, 5), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(stats_of(space).live_bytes, 1024);
    CHECK_OK(quire_space_free_batch(space, ranges, 4));
    expect_free(space, 0, (const uint64_t[]){1024, 0});
    end_space(space);
}

static qi_buddy_node *node_of(quire_space *space, quire_range range)
{
    return &qi_buddy_of(space)->nodes[qi_handle_slot(range.id)];
}

UNIT(buddy, a_worn_number_is_retired)
{
    quire_space *space = make_space(4096, 1);
    quire_range range = take(space, 100, 1).range;
    uint32_t slot = qi_handle_slot(range.id);
    give(space, range);
    node_of(space, range)->generation = QI_LAST_GENERATION - 1;
    range = take(space, 100, 1).range;
    CHECK_EQ(range.id, qi_handle(space->tag, QI_LAST_GENERATION, slot));
    give(space, range);
    CHECK_EQ(space->pool.retired, 1);
    for (int i = 0; i < 200; i++)
        CHECK(qi_handle_slot(take(space, 1, 1).range.id) != slot);
    CHECK_FAILS(quire_space_free(space, range), QUIRE_ERROR_STALE_HANDLE);
    end_space(space);
}
