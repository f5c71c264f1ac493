/*
 * space_misuse.c - handles that are stale, foreign or forged: the code and the message of each.
 * (Every function called wrongly: tests/misuse/space.c.)
 */
#include "quire/space.h"

#include <stdio.h>

#include "src/base/handle.h"
#include "src/space/space.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};
enum { FITS = sizeof fits / sizeof *fits };

static quire_space *make_space(quire_fit fit)
{
    quire_space *space = NULL;
    quire_space_options options = {
        .fit.algorithm = fit, .size = 1 << 20, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_range take(quire_space *space, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, 1, 0, &at));
    return at.range;
}

static bool is_zero(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const char *)bytes)[i])
            return false;
    return true;
}

/* ---- ranges that are not live in this space ------------------------------------------------- */

/* All three functions that take a range reject it. */
static void expect_refused(quire_space *space, quire_range range, quire_result code)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at);
    CHECK_FAILS(quire_space_free(space, range), code);
    CHECK_FAILS(quire_space_set_user(space, range, 1), code);
    CHECK_FAILS(quire_space_get(space, range, &at), code);
    CHECK(is_zero(&at, sizeof at));
}

UNIT(space_misuse, the_null_range_is_an_invalid_argument)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        expect_refused(space, (quire_range){0}, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "{0}");
        end_space(space);
    }
}

UNIT(space_misuse, a_freed_range_is_stale)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        take(space, 10);
        quire_range merged = take(space, 100), lone = take(space, 100);
        take(space, 10);
        CHECK_OK(quire_space_free(space, lone)); /* stays as a free range */
        expect_refused(space, lone, QUIRE_ERROR_STALE_HANDLE);
        CHECK_OK(quire_space_free(space, merged));
        expect_refused(space, merged, QUIRE_ERROR_STALE_HANDLE);
        expect_refused(space, lone, QUIRE_ERROR_STALE_HANDLE);
        char words[64];
        snprintf(words, sizeof words, "range 0x%" PRIx64 " is not live", lone.id);
        CHECK_HAS(quire_last_error(), words);
        CHECK_EQ(space->live_count, 2);
        end_space(space);
    }
}

UNIT(space_misuse, a_stale_range_stays_stale_when_its_number_is_reused)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        quire_range old[1000];
        for (int j = 0; j < 1000; j++) {
            old[j] = take(space, 100);
            for (int k = 0; k < j; k += 37)
                CHECK(old[k].id != old[j].id);
            CHECK_OK(quire_space_free(space, old[j]));
        }
        take(space, 100);
        for (int j = 0; j < 1000; j++)
            expect_refused(space, old[j], QUIRE_ERROR_STALE_HANDLE);
        end_space(space);
    }
}

UNIT(space_misuse, a_range_of_another_space_is_foreign)
{
    for (int i = 0; i < FITS * FITS; i++) {
        quire_space *space = make_space(fits[i % FITS]), *other = make_space(fits[i / FITS]);
        quire_range ours = take(space, 100), theirs = take(other, 100);
        expect_refused(space, theirs, QUIRE_ERROR_FOREIGN_HANDLE);
        char words[64];
        snprintf(words, sizeof words, "range 0x%" PRIx64 " belongs to another space", theirs.id);
        CHECK_HAS(quire_last_error(), words);
        expect_refused(other, ours, QUIRE_ERROR_FOREIGN_HANDLE);
        CHECK_OK(quire_space_free(space, ours));
        CHECK_OK(quire_space_free(other, theirs));
        end_space(space);
        end_space(other);
    }
}

/* ---- forged ids ---------------------------------------------------------------------------- */

enum { LIVE = 40 };

/* A space in which numbers are live, free, spare, retired, or belong to a region. */
static quire_space *make_busy_space(quire_fit fit, quire_range *live)
{
    quire_space *space = make_space(fit);
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

static void expect_unchanged(const quire_space *space, const quire_range *live)
{
    quire_placement at;
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->live_count, LIVE);
    for (int i = 0; i < LIVE; i++) {
        CHECK_OK(quire_space_get(space, live[i], &at));
        CHECK_EQ(at.user, 0);
    }
}

UNIT(space_misuse, random_ids_are_never_accepted)
{
    for (int i = 0; i < FITS; i++) {
        quire_range live[LIVE];
        quire_space *space = make_busy_space(fits[i], live);
        test_random r = {21};
        for (int j = 0; j < 100000; j++) {
            uint64_t id = random_next(&r);
            if (!id || is_one_of(live, id))
                continue;
            bool ours = qi_handle_tag(id) == space->tag;
            expect_refused(space, (quire_range){id},
                           ours ? QUIRE_ERROR_STALE_HANDLE : QUIRE_ERROR_FOREIGN_HANDLE);
        }
        expect_unchanged(space, live);
        end_space(space);
    }
}

/* The right tag, with numbers and generations in the range that occurs. */
UNIT(space_misuse, plausible_forged_ids_are_never_accepted)
{
    for (int i = 0; i < FITS; i++) {
        quire_range live[LIVE];
        quire_space *space = make_busy_space(fits[i], live);
        uint32_t accepted = 0;
        for (uint32_t slot = 0; slot < 2 * space->pool.capacity; slot++) {
            for (uint32_t generation = 0; generation < 20; generation++) {
                quire_range range = {qi_handle(space->tag, generation, slot)};
                if (is_one_of(live, range.id))
                    accepted++;
                else
                    expect_refused(space, range, QUIRE_ERROR_STALE_HANDLE);
            }
        }
        CHECK_EQ(accepted, LIVE);
        expect_unchanged(space, live);
        end_space(space);
    }
}

UNIT(space_misuse, ids_at_the_limits_are_rejected)
{
    const uint32_t slots[] = {0, 1, QI_SLOT_COUNT / 2, QI_SLOT_COUNT - 1};
    const uint32_t generations[] = {0, 1, QI_LAST_GENERATION - 1, QI_LAST_GENERATION};
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]), *empty = NULL;
        quire_space_options options = {.fit.algorithm = fits[i], .host_memory = unit_memory()};
        CHECK_OK(quire_space_create(&options, &empty)); /* has no array of nodes yet */
        for (int j = 0; j < 16; j++) {
            uint32_t slot = slots[j / 4], generation = generations[j % 4];
            expect_refused(space, (quire_range){qi_handle(space->tag, generation, slot)},
                           QUIRE_ERROR_STALE_HANDLE);
            expect_refused(empty, (quire_range){qi_handle(empty->tag, generation, slot)},
                           QUIRE_ERROR_STALE_HANDLE);
        }
        end_space(space);
        end_space(empty);
    }
}
