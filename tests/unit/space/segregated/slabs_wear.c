/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs_wear.c - what happens to a slot whose generations are used up, to its slab, and to the
 * number of the slab.
 */
#include <stdlib.h>

#include "tests/support/slabs.h"

enum { SIZE = 8 << 20 };

static quire_space *make_space(void)
{
    return make_slab_space((quire_space_options){.size = SIZE, .fit.granule = 1});
}

/* Leaves one or two generations to a slot, which is free or live. */
static void age(quire_space *space, quire_range *range)
{
    uint32_t index = qi_handle_slot(range->id) & (QI_SLAB_SLOT - 1);
    uint32_t *generation = &slabs_of(space)->generations[index];
    *generation = QI_LAST_GENERATION - !(*generation & 1);
    range->id = qi_handle(space->tag, QI_LAST_GENERATION, qi_handle_slot(range->id));
}

UNIT(slabs_wear, a_worn_slot_is_not_handed_out_again)
{
    quire_space *space = make_space();
    quire_range keep = take_slot_for(space, 100, 0).range, old = take_slot_for(space, 100, 0).range;
    age(space, &old);
    expect_sound(space);
    give_sound(space, old);
    expect_rejected_sound(space, old, QUIRE_ERROR_STALE_HANDLE);
    for (int i = 0; i < 100; i++)
        CHECK(qi_handle_slot(take_slot_for(space, 100, 0).range.id) != qi_handle_slot(old.id));
    give_sound(space, keep);
    CHECK_EQ(qi_handle_slot(take_slot_for(space, 100, 0).range.id), qi_handle_slot(keep.id));
    end_slab_space(space);
}

UNIT(slabs_wear, a_slab_of_worn_slots_is_destroyed_and_its_number_abandoned)
{
    quire_space *space = make_space();
    for (int batch = 0; batch < 2; batch++) {
        quire_range ranges[4];
        for (int i = 0; i < 4; i++) {
            ranges[i] = take_slot_for(space, 100, 0).range;
            age(space, &ranges[i]);
        }
        uint32_t number = slab_number(ranges[0]);
        if (batch)
            CHECK_OK(quire_space_free_batch(space, ranges, 4));
        for (int i = 0; i < 4 && !batch; i++)
            give_sound(space, ranges[i]);
        expect_sound(space);
        CHECK_EQ(slabs_of(space)->count, 0);
        CHECK_EQ(space->fit->largest_free(space), SIZE);
        for (uint64_t i = 0; i < 200; i++)
            CHECK(slab_number(take_slot_for(space, 1 + i * 20, 0).range) != number);
        for (int i = 0; i < 4; i++)
            expect_rejected_sound(space, ranges[i], QUIRE_ERROR_STALE_HANDLE);
        CHECK_OK(quire_space_clear(space));
    }
    end_slab_space(space);
}

/* The slab was full until it was destroyed, so no list of its class held it: the others stay
   listed. */
UNIT(slabs_wear, a_slab_of_worn_slots_is_destroyed_and_others_of_its_class_stay)
{
    quire_space *space = make_space();
    quire_range ranges[4];
    for (int i = 0; i < 4; i++) {
        ranges[i] = take_slot_for(space, 100, 0).range;
        age(space, &ranges[i]);
    }
    uint32_t other = slab_number(take_slot_for(space, 100, 0).range);
    CHECK(other != slab_number(ranges[0]));
    for (int i = 0; i < 4; i++)
        give_sound(space, ranges[i]);
    CHECK_EQ(slabs_of(space)->count, 1);
    CHECK_EQ(slab_number(take_slot_for(space, 100, 0).range), other);
    end_slab_space(space);
}

/* All numbers are in use or abandoned. To reach this state by allocations takes many bytes. */
UNIT(slabs_wear, without_numbers_for_slabs_the_fit_serves)
{
    quire_space *space = make_space();
    qi_slabs *slabs = slabs_of(space);
    slabs->top = slabs->capacity = QI_MAX_SLABS;
    quire_placement at = take_slot_for(space, 100, 5);
    CHECK(!is_slot(at.range));
    CHECK_EQ(at.size, 100);
    CHECK_EQ(at.user, 5);
    slabs->top = slabs->capacity = 0;
    end_slab_space(space);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = ((const quire_range *)a)->id, y = ((const quire_range *)b)->id;
    return (x > y) - (x < y);
}

/* Slots near their last generation in slabs that are created, destroyed and trimmed. */
UNIT(slabs_wear, no_id_is_handed_out_twice)
{
    enum { ROUNDS = 40, SLOTS = 150 };
    static quire_range all[ROUNDS * SLOTS];
    quire_space *space = make_space();
    size_t count = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        size_t first = count;
        for (uint64_t i = 0; i < SLOTS; i++) {
            all[count] = take_slot_for(space, 100 + (round + i) % 3 * 50, 0).range;
            if (i % 7 == round % 7)
                age(space, &all[count]);
            count++;
        }
        expect_sound(space);
        for (size_t i = first; i < count; i++)
            CHECK_OK(quire_space_free(space, all[i]));
        expect_sound(space);
        if (round % 4 == 0)
            quire_space_trim(space);
    }
    qsort(all, count, sizeof *all, compare);
    for (size_t i = 1; i < count; i++)
        CHECK(all[i - 1].id != all[i].id);
    end_slab_space(space);
}

UNIT(slabs_wear, a_worn_slot_keeps_the_records_where_they_are)
{
    quire_space *space = make_space();
    for (uint64_t i = 0; i < 500; i++)
        take_slot_for(space, 1 + i * 8, 0);
    CHECK_OK(quire_space_clear(space));
    uint32_t capacity = slabs_of(space)->capacity;
    slabs_of(space)->generations[5 * QI_SLAB_SLOTS + 3] = QI_LAST_GENERATION - 1;
    quire_space_trim(space);
    CHECK_EQ(slabs_of(space)->capacity, capacity);
    expect_sound(space);
    end_slab_space(space);
}
