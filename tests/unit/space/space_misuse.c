/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_misuse.c - handles that are stale, foreign or forged: the code and the message of each.
 * (Every function called wrongly: tests/misuse/space.c.)
 */
#include <stdio.h>

#include "src/base/handle.h"
#include "src/space/segregated/slabs.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"

enum { SIZE = 1 << 20, LIVE = 40 };

static quire_range take(quire_space *space, uint64_t size)
{
    return take_bytes(space, size).range;
}

/* ---- ranges that are not live in this space ------------------------------------------------- */

UNIT(space_misuse, a_freed_range_is_stale)
{
    for (int i = 0; i < SPACE_COUNT; i++) {
        quire_space *space = space_number(i, SIZE);
        expect_rejected(space, (quire_range){0}, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "{0}");
        take(space, 10);
        quire_range merged = take(space, 100), lone = take(space, 100);
        take(space, 10);
        CHECK_OK(quire_space_free(space, lone)); /* stays as a free range */
        expect_rejected(space, lone, QUIRE_ERROR_STALE_HANDLE);
        CHECK_OK(quire_space_free(space, merged));
        expect_rejected(space, merged, QUIRE_ERROR_STALE_HANDLE);
        expect_rejected(space, lone, QUIRE_ERROR_STALE_HANDLE);
        char words[64];
        snprintf(words, sizeof words, "range 0x%" PRIx64 " is not live", lone.id);
        CHECK_HAS(quire_last_error(), words);
        CHECK_EQ(space->live_count, 2);
        end_space(space);
    }
}

/* The number of a slab is reused for slots of other sizes. */
UNIT(space_misuse, a_stale_range_stays_stale_when_its_number_is_reused)
{
    for (int i = 0; i < SPACE_COUNT; i++) {
        quire_space *space = space_number(i, SIZE);
        quire_range old[1000];
        for (int j = 0; j < 1000; j++) {
            old[j] = take(space, 100 + 100 * (uint64_t)(j % 3));
            for (int k = 0; k < j; k += 37)
                CHECK(old[k].id != old[j].id);
            CHECK_OK(quire_space_free(space, old[j]));
            if (j % 10 == 0)
                quire_space_trim(space); /* destroys empty slabs */
        }
        take(space, 100);
        for (int j = 0; j < 1000; j++)
            expect_rejected(space, old[j], QUIRE_ERROR_STALE_HANDLE);
        end_space(space);
    }
}

UNIT(space_misuse, a_range_of_another_space_is_foreign)
{
    for (int i = 0; i < SPACE_COUNT * SPACE_COUNT; i++) {
        quire_space *space = space_number(i % SPACE_COUNT, SIZE),
                    *other = space_number(i / SPACE_COUNT, SIZE);
        quire_range ours = take(space, 100), theirs = take(other, 100);
        expect_rejected(space, theirs, QUIRE_ERROR_FOREIGN_HANDLE);
        char words[64];
        snprintf(words, sizeof words, "range 0x%" PRIx64 " belongs to another space", theirs.id);
        CHECK_HAS(quire_last_error(), words);
        expect_rejected(other, ours, QUIRE_ERROR_FOREIGN_HANDLE);
        CHECK_OK(quire_space_free(space, ours));
        CHECK_OK(quire_space_free(other, theirs));
        end_space(space);
        end_space(other);
    }
}

/* ---- forged ids ---------------------------------------------------------------------------- */

/* A space in which numbers are live, free, spare, retired, or belong to a region. */
static quire_space *make_busy_space(int number, quire_range *live)
{
    quire_space *space = space_number(number, SIZE);
    quire_range freed[LIVE];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LIVE; i++) {
            live[i] = take(space, 256);
            freed[i] = take(space, 256);
        }
        for (int i = 0; i < LIVE; i++) {
            CHECK_OK(quire_space_free(space, freed[i]));
            if (round < 2)
                CHECK_OK(quire_space_free(space, live[i]));
        }
    }
    return space;
}

static bool is_one_of(const quire_range *ranges, uint64_t id)
{
    for (int i = 0; i < LIVE; i++)
        if (ranges[i].id == id)
            return true;
    return false;
}

/* Rejects the id unless it is live. Returns whether it is. */
static bool try_forged(quire_space *space, const quire_range *live, uint64_t id)
{
    if (!id || is_one_of(live, id))
        return id != 0;
    expect_rejected(space, (quire_range){id},
                    qi_handle_tag(id) == space->tag ? QUIRE_ERROR_STALE_HANDLE
                                                    : QUIRE_ERROR_FOREIGN_HANDLE);
    return false;
}

/* Random ids, and ids of this space with numbers and generations in the range that occurs. */
UNIT(space_misuse, forged_ids_are_never_accepted)
{
    for (int i = 0; i < SPACE_COUNT; i++) {
        quire_range live[LIVE];
        quire_space *space = make_busy_space(i, live);
        test_random r = {21};
        const uint32_t most = 2 * space->pool.capacity + 16 * QI_SLAB_SLOTS;
        uint32_t accepted = 0;
        for (int j = 0; j < 100000; j++)
            try_forged(space, live, random_next(&r));
        for (uint32_t slot = 0; slot < most; slot++)
            for (uint32_t generation = 0; generation < 20; generation++) {
                accepted += try_forged(space, live, qi_handle(space->tag, generation, slot));
                accepted +=
                    try_forged(space, live, qi_handle(space->tag, generation, slot | QI_SLAB_SLOT));
            }
        CHECK_EQ(accepted, LIVE);
        CHECK_OK(quire_space_check(space));
        CHECK_EQ(space->live_count, LIVE);
        for (int j = 0; j < LIVE; j++) {
            quire_placement at;
            CHECK_OK(quire_space_get(space, live[j], &at));
            CHECK_EQ(at.user, 0);
        }
        end_space(space);
    }
}

UNIT(space_misuse, ids_at_the_limits_are_rejected)
{
    const uint32_t slots[] = {0, 1, QI_SLOT_COUNT / 2, QI_SLOT_COUNT - 1};
    const uint32_t generations[] = {0, 1, QI_LAST_GENERATION - 1, QI_LAST_GENERATION};
    for (int i = 0; i < 2 * SPACE_COUNT; i++) {
        /* without a region a space has no array of nodes yet */
        quire_space *space = space_number(i / 2, i % 2 ? SIZE : 0);
        for (int j = 0; j < 16; j++)
            expect_rejected(space,
                            (quire_range){qi_handle(space->tag, generations[j % 4], slots[j / 4])},
                            QUIRE_ERROR_STALE_HANDLE);
        end_space(space);
    }
}
