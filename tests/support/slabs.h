/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs.h - shared by the tests of slabs: spaces with slabs, and statistics compared with a walk.
 */
#ifndef QUIRE_TESTS_SUPPORT_SLABS_H
#define QUIRE_TESTS_SUPPORT_SLABS_H

#include "src/base/handle.h"
#include "src/space/segregated/slabs.h"
#include "tests/support/space_steps.h"

static inline quire_space *make_slab_space(quire_space_options options)
{
    options.fit.slabs = true;
    return new_space(options);
}

static inline qi_slabs *slabs_of(quire_space *space)
{
    return qi_segregated_of(space)->slabs;
}

typedef struct slab_walk {
    uint64_t live, free, live_bytes, free_bytes;
} slab_walk;

static inline bool add_slab_item(void *user, const quire_space_item *item)
{
    slab_walk *walk = user;
    *(item->is_free ? &walk->free : &walk->live) += 1;
    *(item->is_free ? &walk->free_bytes : &walk->live_bytes) += item->size;
    return true;
}

/* Statistics match a walk, and the check finds no damage. */
static inline void expect_sound(const quire_space *space)
{
    slab_walk walk = {0};
    const quire_space_stats stats = stats_of(space);
    CHECK_OK(quire_space_check(space));
    CHECK_OK(quire_space_walk(space, add_slab_item, &walk));
    CHECK_EQ(stats.live_count, walk.live);
    CHECK_EQ(stats.free_count, walk.free);
    CHECK_EQ(stats.live_bytes, walk.live_bytes);
    CHECK_EQ(stats.free_bytes, walk.free_bytes);
}

static inline quire_placement take_slot_for(quire_space *space, uint64_t size, uint64_t user)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, 1, user, &at));
    return at;
}

static inline bool is_slot(quire_range range)
{
    return (qi_handle_slot(range.id) & QI_SLAB_SLOT) != 0;
}

/* The number of the slab that a slot belongs to. */
static inline uint32_t slab_number(quire_range range)
{
    return (qi_handle_slot(range.id) & (QI_SLAB_SLOT - 1)) / QI_SLAB_SLOTS;
}

static inline void give_sound(quire_space *space, quire_range range)
{
    CHECK_OK(quire_space_free(space, range));
    expect_sound(space);
}

/* Every call rejects the range, and nothing changes. */
static inline void expect_rejected_sound(quire_space *space, quire_range range, quire_result code)
{
    uint64_t live = space->live_count;
    expect_rejected(space, range, code);
    CHECK_EQ(space->live_count, live);
    expect_sound(space);
}

static inline void end_slab_space(quire_space *space)
{
    expect_sound(space);
    quire_space_destroy(&space);
}

#endif
