/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs_life.c - numbers and user values of slots, trim, and exhausted host memory. (Their handles
 * are in space_misuse.c, batches in space_batch.c, a clear in slabs_model.c.)
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/support/slabs.h"

enum { SIZE = 8 << 20 };

static quire_space *make_space(void)
{
    return make_slab_space((quire_space_options){.size = SIZE, .fit.granule = 1});
}

static uint64_t user_of(const quire_space *space, quire_range range)
{
    quire_placement at;
    CHECK_OK(quire_space_get(space, range, &at));
    return at.user;
}

/* ---- handles ------------------------------------------------------------------------------- */

/* Without slabs, the numbers of ranges extend into the numbers of slots. */
UNIT(slabs_life, without_slabs_ranges_use_all_numbers)
{
    quire_space *space = space_of(QUIRE_FIT_SEGREGATED, 1000);
    qi_segregated *s = qi_segregated_of(space), kept = *s;
    size_t bytes = (QI_SLAB_SLOT + 64) * sizeof *s->nodes;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(map != MAP_FAILED);
    memcpy(map, s->nodes, space->pool.capacity * sizeof *s->nodes);
    s->nodes = space->pool.items = map;
    s->is_free = calloc(QI_SLAB_SLOT / 64 + 1, sizeof *s->is_free);
    CHECK(s->is_free);
    s->is_free[0] = kept.is_free[0];
    space->pool.top = QI_SLAB_SLOT + 1;
    space->pool.spare = 63;
    quire_range ranges[4];
    for (uint64_t i = 0; i < 4; i++) {
        ranges[i] = take_slot_for(space, 10, i).range;
        CHECK(qi_handle_slot(ranges[i].id) > QI_SLAB_SLOT);
        CHECK_EQ(user_of(space, ranges[i]), i);
    }
    CHECK_OK(quire_space_set_user(space, ranges[1], 50));
    CHECK_EQ(user_of(space, ranges[1]), 50);
    ranges[3].id ^= UINT64_C(1) << QI_SLOT_BITS;
    CHECK_FAILS(quire_space_free_batch(space, ranges, 4), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(space->live_count, 4);
    CHECK_OK(quire_space_free_batch(space, ranges, 3));
    CHECK_EQ(space->live_count, 1);
    free(s->is_free);
    *s = kept;
    munmap(map, bytes);
    quire_space_destroy(&space);
}

/* ---- trim ---------------------------------------------------------------------------------- */

UNIT(slabs_life, trim_releases_records_and_old_handles_stay_stale)
{
    enum { COUNT = 4000 };
    static quire_range ranges[COUNT];
    quire_space *space = make_slab_space((quire_space_options){.size = 64 << 20, .fit.granule = 1});
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < COUNT; i++)
            ranges[i] = take_slot_for(space, 1 + i * 11 % 4096, 0).range;
        CHECK(slabs_of(space)->capacity > 16);
        for (int i = 1; i < COUNT; i++)
            CHECK_OK(quire_space_free(space, ranges[i]));
        quire_space_trim(space);
        CHECK(slabs_of(space)->capacity > 16); /* one slot is live */
        expect_sound(space);
        CHECK_OK(quire_space_free(space, ranges[0]));
        quire_space_trim(space);
        CHECK_EQ(slabs_of(space)->capacity, 16);
        CHECK_EQ(slabs_of(space)->count, 0);
        expect_sound(space);
        for (int used = 0; used < 2; used++)
            for (int i = 0; i < COUNT; i++) {
                if (used && i < 500)
                    take_slot_for(space, 1 + (uint64_t)i * 8, 0);
                CHECK_FAILS(quire_space_free(space, ranges[i]), QUIRE_ERROR_STALE_HANDLE);
            }
        CHECK_OK(quire_space_clear(space));
    }
    end_slab_space(space);
}

UNIT(slabs_life, trim_does_not_need_host_memory)
{
    quire_space *space = make_space();
    for (uint64_t i = 0; i < 500; i++)
        take_slot_for(space, 1 + i * 8, 1);
    CHECK_OK(quire_space_clear(space));
    test_memory_fail(unit_memory_state(), 1, true);
    quire_space_trim(space);
    test_memory_fail(unit_memory_state(), 0, false);
    expect_sound(space);
    CHECK_EQ(user_of(space, take_slot_for(space, 8, 9).range), 9);
    end_slab_space(space);
}

/* ---- user values --------------------------------------------------------------------------- */

UNIT(slabs_life, the_first_user_value_other_than_0_allocates_their_storage)
{
    quire_space *space = make_space();
    quire_range a = take_slot_for(space, 100, 0).range, b = take_slot_for(space, 100, 0).range;
    CHECK_OK(quire_space_set_user(space, a, 0));
    CHECK(!slabs_of(space)->users);
    CHECK_EQ(user_of(space, a), 0);
    quire_range c = take_slot_for(space, 100, UINT64_MAX - 1).range;
    CHECK(slabs_of(space)->users);
    CHECK_EQ(user_of(space, a), 0);
    CHECK_EQ(user_of(space, c), UINT64_MAX - 1);
    CHECK_OK(quire_space_set_user(space, b, 5));
    CHECK_OK(quire_space_set_user(space, c, 0));
    CHECK_EQ(user_of(space, b), 5);
    CHECK_EQ(user_of(space, c), 0);
    give_sound(space, b);
    CHECK_EQ(user_of(space, take_slot_for(space, 100, 0).range), 0); /* not the value of b */
    quire_range last = take_slot_for(space, 100, 123).range;
    for (uint64_t i = 0; i < 5000; i++) /* the array grows */
        CHECK_EQ(take_slot_for(space, 16 + i % 90, i).user, i);
    CHECK_EQ(user_of(space, last), 123);
    CHECK_OK(quire_space_set_user(space, a, 77));
    CHECK_EQ(user_of(space, a), 77);
    end_slab_space(space);
}

/* A range that is not a slot or not live needs no storage for user values. */
UNIT(slabs_life, storage_for_user_values_is_allocated_for_live_slots_only)
{
    quire_space *space = make_space();
    quire_range slot = take_slot_for(space, 100, 0).range, old = take_slot_for(space, 100, 0).range;
    quire_range large = take_slot_for(space, 5000, 4).range;
    give_sound(space, old);
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_OK(quire_space_set_user(space, large, 6));
    CHECK_FAILS(quire_space_set_user(space, old, 6), QUIRE_ERROR_STALE_HANDLE);
    CHECK_FAILS(quire_space_set_user(space, slot, 6), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_OK(quire_space_set_user(space, slot, 0));
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK(!slabs_of(space)->users);
    CHECK_EQ(user_of(space, large), 6);
    CHECK_EQ(user_of(space, slot), 0);
    end_slab_space(space);
}

/* ---- host memory is exhausted -------------------------------------------------------------- */

/* Fails each call to allocate in turn, from the first to the last; the last run succeeds. */
static uint64_t allocate_against_failures(quire_space *space, uint64_t size, uint64_t user)
{
    quire_placement at;
    for (uint64_t call = 1;; call++) {
        uint64_t live = space->live_count, bytes = space->live_bytes;
        test_memory_fail(unit_memory_state(), call, false);
        quire_result result = quire_space_allocate(space, size, 1, user, &at);
        test_memory_fail(unit_memory_state(), 0, false);
        if (!result) {
            CHECK_EQ(user_of(space, at.range), user);
            return call - 1;
        }
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_EQ(at.range.id, 0);
        CHECK_EQ(space->live_count, live);
        CHECK_EQ(space->live_bytes, bytes);
        expect_sound(space);
    }
}

UNIT(slabs_life, allocation_survives_each_failed_host_allocation)
{
    for (uint64_t first_user = 0; first_user < 3; first_user++) {
        quire_space *space = make_space();
        uint64_t failures = 0;
        for (uint64_t i = 0; i < 300; i++)
            failures += allocate_against_failures(space, 1 + i * 13 % 4096, i / 100 >= first_user);
        CHECK(failures >= 9);
        end_slab_space(space);
    }
}
