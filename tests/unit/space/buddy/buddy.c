/*
 * buddy.c - the buddy fit: what it rejects, full passes, nested walks and worn numbers.
 * (tests/plain/space_model.c compares the place of every block with an oracle.)
 */
#include "src/space/buddy/buddy.h"

#include "src/base/handle.h"
#include "tests/support/buddy.h"
#include "tests/support/random.h"

/* ---- sizes and alignments ------------------------------------------------------------------ */

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
