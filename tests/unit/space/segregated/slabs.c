/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs.c - which requests share a slab, how slabs grow and are cached, and what happens in a full
 * space. (slabs_model.c compares the life of slots, and of regions with slabs, with an oracle.)
 */
#include "tests/support/slabs.h"

static quire_space *make_space(uint64_t size, uint64_t granule)
{
    return make_slab_space((quire_space_options){.size = size, .fit.granule = granule});
}

static uint64_t up_to(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

/* ---- classes ------------------------------------------------------------------------------- */

UNIT(slabs, a_slot_is_at_most_an_eighth_larger_than_the_size_at_its_alignment)
{
    quire_space *space = make_space(64 << 20, 1);
    for (uint64_t alignment = 1; alignment <= 4096; alignment *= 2)
        for (uint64_t size = 1; size <= 4096; size += size < 300 ? 1 : 37) {
            const quire_placement at = take_aligned(space, size, alignment);
            const uint64_t needed = up_to(size, alignment);
            CHECK(is_slot(at.range));
            CHECK(at.size >= needed && (at.size - needed) * 8 <= needed);
            CHECK_EQ(at.size % alignment, 0);
            CHECK_EQ(at.offset % alignment, 0);
            CHECK_EQ(at.left_padding, 0);
        }
    end_slab_space(space);
}

/* For every granule and every size up to two granules the class is that of whole granules. */
UNIT(slabs, the_smallest_slot_is_one_granule)
{
    for (uint64_t granule = 1; granule <= 4096; granule *= 2) {
        quire_space *space = make_space(8 << 20, granule);
        quire_placement at = take_slot_for(space, granule, 0);
        CHECK(is_slot(at.range));
        CHECK_EQ(at.size, granule);
        CHECK_EQ(take_slot_for(space, 1, 0).size, granule);
        if (granule < 4096)
            CHECK_EQ(take_slot_for(space, granule + 1, 0).size, 2 * granule);
        end_slab_space(space);
    }
}

UNIT(slabs, a_size_or_alignment_above_4_kib_uses_no_slot)
{
    quire_space *space = make_space(1 << 20, 1);
    quire_placement at = take_bytes(space, 4097);
    CHECK(!is_slot(at.range));
    CHECK_EQ(at.size, 4097);
    at = take_aligned(space, 10, 8192);
    CHECK(!is_slot(at.range));
    CHECK_EQ(at.size, 10);
    CHECK_EQ(at.offset % 8192, 0);
    CHECK(is_slot(take_aligned(space, 4096, 4096).range));
    end_slab_space(space);
}

/* ---- growth -------------------------------------------------------------------------------- */

UNIT(slabs, slabs_grow_with_their_class_up_to_64_slots_and_256_kib)
{
    static const uint64_t sizes[] = {1, 256, 4096, 3000};
    for (int c = 0; c < 4; c++) {
        quire_space *space = make_space(64 << 20, 1);
        uint32_t largest = 0;
        for (uint64_t i = 0; i < 2000; i++) {
            quire_placement at = take_slot_for(space, sizes[c], 0);
            const qi_slab *slab = &slabs_of(space)->items[slab_number(at.range)];
            uint64_t before = i - (slab->live - 1u); /* slots of the class when it was created */
            CHECK(slab->slots <= 4 || slab->slots * UINT64_C(4) <= before);
            CHECK(slab->slots * at.size <= 256 << 10);
            largest = slab->slots > largest ? slab->slots : largest;
        }
        CHECK_EQ(largest, 64);
        end_slab_space(space);
    }
}

/* A slab has at most 256 KiB and at least two slots. */
UNIT(slabs, large_granules_give_small_slabs_or_none)
{
    static const uint64_t slots[] = {32, 16, 8, 4, 2, 0, 0};
    for (uint32_t i = 0; i < 7; i++) {
        uint64_t granule = UINT64_C(8192) << i;
        quire_space *space = make_space(granule * 1000, granule);
        quire_placement at;
        for (int j = 0; j < 500; j++)
            at = take_slot_for(space, 1, 0);
        CHECK_EQ(at.size, granule);
        CHECK_EQ(is_slot(at.range), slots[i] != 0);
        if (slots[i])
            CHECK_EQ(slabs_of(space)->items[slab_number(at.range)].slots, slots[i]);
        end_slab_space(space);
    }
}

UNIT(slabs, one_empty_slab_per_class_is_cached_and_the_second_destroyed)
{
    quire_space *space = make_space(1 << 20, 1);
    quire_range a[4], b[4], other = take_slot_for(space, 200, 0).range;
    for (int i = 0; i < 4; i++)
        a[i] = take_slot_for(space, 100, 0).range;
    for (int i = 0; i < 4; i++)
        b[i] = take_slot_for(space, 100, 0).range;
    CHECK(slab_number(a[0]) != slab_number(b[0]));
    CHECK_EQ(slabs_of(space)->count, 3);
    for (int i = 0; i < 4; i++)
        give_sound(space, b[i]);
    CHECK_EQ(slabs_of(space)->count, 3);
    CHECK_EQ(slabs_of(space)->empty, 1);
    for (int i = 0; i < 4; i++)
        give_sound(space, a[i]);
    CHECK_EQ(slabs_of(space)->count, 2);
    CHECK_EQ(slabs_of(space)->empty, 1);
    give_sound(space, other); /* another class keeps its own cached slab */
    CHECK_EQ(slabs_of(space)->count, 2);
    CHECK_EQ(slabs_of(space)->empty, 2);
    CHECK_EQ(slab_number(take_slot_for(space, 100, 0).range), slab_number(b[0]));
    CHECK_EQ(slabs_of(space)->empty, 1);
    end_slab_space(space);
}

UNIT(slabs, the_number_of_a_destroyed_slab_is_reused)
{
    quire_space *space = make_space(1 << 20, 1);
    for (uint64_t i = 0; i < 200; i++) {
        quire_range range = take_slot_for(space, 1 + i % 50 * 80, 0).range;
        give_sound(space, range);
        qi_slabs_release_empty(qi_segregated_of(space));
        expect_sound(space);
    }
    CHECK_EQ(slabs_of(space)->top, 2);
    end_slab_space(space);
}

/* ---- a full space -------------------------------------------------------------------------- */

UNIT(slabs, with_little_free_space_slabs_are_smaller_and_then_none)
{
    quire_space *space = make_space(700, 1);
    quire_placement at;
    for (int i = 0; i < 6; i++) { /* 4 in the first, 2 in the second slab */
        at = take_slot_for(space, 100, 0);
        CHECK(is_slot(at.range));
        CHECK_EQ(at.size, 104);
    }
    expect_no_space(space, (quire_range_options){.size = 100});
    at = take_bytes(space, 76); /* 700 - 6 * 104, too little for two */
    CHECK(!is_slot(at.range));
    CHECK_EQ(at.size, 76);
    expect_sound(space);
    expect_no_space(space, (quire_range_options){.size = 1});
    CHECK_STR(quire_last_error(), "no free range of 1 at a multiple of 1: the space is exhausted, "
                                  "with 0 free in 1 region; largest free range 0");
    end_slab_space(space);
}

UNIT(slabs, cached_slabs_are_released_before_a_request_fails)
{
    static const uint64_t sizes[] = {2000, 4 * 4096};
    for (int c = 0; c < 4; c++) {
        quire_space *space = make_space(32000, 1);
        quire_range range = take_slot_for(space, 4000, 0).range; /* 4 slots of 4096 */
        take_bytes(space, 32000 - 4 * 4096);
        give_sound(space, range);
        CHECK_EQ(slabs_of(space)->empty, 1);
        take_with(space, (quire_range_options){.size = sizes[c % 2], .bounded = c / 2});
        CHECK_EQ(slabs_of(space)->empty, 0);
        end_slab_space(space);
    }
}

UNIT(slabs, a_failed_request_releases_cached_slabs_and_makes_one_full_pass)
{
    quire_space *space = make_space(32000, 1);
    give_sound(space, take_slot_for(space, 100, 0).range);
    CHECK_EQ(slabs_of(space)->empty, 1);
    expect_no_space(space, (quire_range_options){.size = 32001});
    quire_range whole = take_bytes(space, 32000).range;
    CHECK_EQ(stats_of(space).full_passes, 0);
    CHECK_OK(quire_space_free(space, whole));
    take_bytes(space, 20000);
    give_sound(space, take_slot_for(space, 100, 0).range);
    CHECK_EQ(slabs_of(space)->empty, 1);
    expect_no_space(space, (quire_range_options){.size = 20000});
    CHECK_EQ(slabs_of(space)->empty, 0);
    CHECK_EQ(stats_of(space).full_passes, 1);
    end_slab_space(space);
}

/* Slots of one class fill the space. Freed, they leave an empty slab, which the space keeps. */
UNIT(slabs, the_lowest_address_is_outside_of_slabs_and_takes_the_place_of_empty_ones)
{
    quire_space *space = make_space(4096, 1);
    quire_placement slots[4];
    for (int i = 0; i < 4; i++)
        slots[i] = take_bytes(space, 100);
    const quire_range_options options = {.size = 100, .lowest = true};
    quire_placement at = take_with(space, options);
    CHECK(!is_slot(at.range));
    CHECK(at.offset >= slots[3].offset + slots[3].size);
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_space_free(space, slots[i].range));
    at = take_with(space, options);
    CHECK_EQ(at.offset, 0);
    CHECK_EQ(at.size, 100);
    end_slab_space(space);
}

/* ---- regions ------------------------------------------------------------------------------- */
