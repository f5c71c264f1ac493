/*
 * checked.c - red zones and debug patterns of checked builds, on every memory kind: what is found
 * and reported, and what is the same as in other builds. The quarantine is in quarantine.c.
 */
#include "src/base/poison.h"
#include "tests/support/unit.h"
#include "tests/support/watched.h"

enum { SIZE = 100 };

/* ---- damage that is found ----------------------------------------------------------------- */

static void expect_message(const char *where, const char *byte)
{
    CHECK_HAS(quire_last_error(), "memory 'memory'");
    CHECK_HAS(quire_last_error(), "'weights'");
    CHECK_HAS(quire_last_error(), "100 bytes at page 0 offset ");
    CHECK_HAS(quire_last_error(), "user data 77");
    CHECK_HAS(quire_last_error(), where);
    CHECK_HAS(quire_last_error(), byte);
}

/*
 * A check finds a stray write beside an allocation, the next check finds it again, and so does the
 * free.
 */
static void find_beside(uint32_t kind, int64_t at, const char *where, const char *byte)
{
    watched w;
    watched_make(&w, kind);
    watched_allocate(&w, SIZE, "before");
    quire_allocation weights = watched_allocate(&w, SIZE, "weights");
    watched_allocate(&w, SIZE, "after");
    CHECK_OK(quire_memory_check(w.memory));
    quire_native native = watched_native(&w, weights);
    watched_spoil(&w, &native, at);
    CHECK_FAILS(quire_memory_check(w.memory), QUIRE_ERROR_CORRUPTED);
    expect_message(where, byte);
    CHECK_HAS(w.log, quire_last_error());
    CHECK_FAILS(quire_memory_check(w.memory), QUIRE_ERROR_CORRUPTED);
    w.log[0] = '\0';
    CHECK_FAILS(quire_free(w.memory, weights), QUIRE_ERROR_CORRUPTED);
    expect_message(where, byte);
    CHECK_HAS(w.log, quire_last_error());
    CHECK_FAILS(quire_free(w.memory, weights), QUIRE_ERROR_STALE_HANDLE); /* it is freed */
    watched_end(&w);
}

UNIT(checked, a_write_to_either_end_of_a_zone_is_found_on_every_kind)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        find_beside(kind, SIZE, "overwritten after its last byte: 1 byte, ", "at byte 100,");
        find_beside(kind, SIZE + 63, "after its last byte", "at byte 163,");
        find_beside(kind, -1, "overwritten before its first byte: 1 byte, ", "at byte -1,");
        find_beside(kind, -64, "before its first byte", "at byte -64,");
    }
}

UNIT_EACH(checked, damage_is_found_on_dedicated_pages_and_in_reserved_ranges, watched, w, kind, 0,
          KINDS, watched_make(w, kind), watched_end)
{
    quire_allocation own, reserved;
    quire_allocation_options options = {.size = SIZE, .dedicated = true};
    CHECK_OK(quire_allocate(w->memory, &options, &own));
    CHECK_OK(quire_reserve(w->memory, &(quire_allocation_options){.size = SIZE}, &reserved));
    quire_native at = watched_native(w, own), there = watched_native(w, reserved);
    watched_spoil(w, &at, SIZE);
    watched_spoil(w, &there, -1);
    CHECK_FAILS(quire_free(w->memory, own), QUIRE_ERROR_CORRUPTED);
    CHECK_FAILS(quire_abort(w->memory, reserved), QUIRE_ERROR_CORRUPTED);
    CHECK_OK(quire_memory_check(w->memory));
}

UNIT(checked, destroying_a_memory_reports_damage)
{
    watched w;
    watched_make(&w, KIND_DEVICE);
    quire_native native = watched_native(&w, watched_allocate(&w, SIZE, "weights"));
    watched_spoil(&w, &native, SIZE);
    watched_end(&w);
    CHECK_HAS(w.log, "'weights'");
    CHECK_HAS(w.log, "after its last byte");
}

UNIT(checked, there_is_a_zone_before_ranges_up_to_alignments_of_256)
{
    for (uint64_t alignment = 1; alignment <= 4096; alignment *= 2) {
        watched w;
        quire_allocation allocation;
        watched_make(&w, KIND_COHERENT);
        quire_allocation_options options = {.size = SIZE, .alignment = alignment};
        CHECK_OK(quire_allocate(w.memory, &options, &allocation));
        quire_allocation_info info = watched_info(&w, allocation);
        CHECK_EQ(info.address % alignment, 0);
        CHECK_EQ(info.left_padding, alignment > 256 ? 0 : alignment > 64 ? alignment : 64);
        quire_native native = watched_native(&w, allocation);
        if (alignment <= 256)
            watched_spoil(&w, &native, -1);
        CHECK_EQ(quire_free(w.memory, allocation),
                 alignment <= 256 ? QUIRE_ERROR_CORRUPTED : QUIRE_SUCCESS);
        watched_end(&w);
    }
}

UNIT_EACH(checked, fresh_bytes_have_the_debug_pattern_unless_they_are_zero, watched, w, kind, 0,
          KINDS, watched_make(w, kind), watched_end)
{
    unsigned char bytes[SIZE];
    quire_allocation zeroed;
    CHECK_OK(quire_read(w->memory, watched_allocate(w, SIZE, NULL), 0, bytes, SIZE));
    for (int i = 0; i < SIZE; i++)
        CHECK_EQ(bytes[i], 0xff);
    CHECK_OK(quire_allocate(w->memory, &(quire_allocation_options){.size = SIZE, .zero = true},
                            &zeroed));
    CHECK_OK(quire_read(w->memory, zeroed, 0, bytes, SIZE));
    for (int i = 0; i < SIZE; i++)
        CHECK_EQ(bytes[i], 0);
    CHECK_OK(quire_memory_check(w->memory)); /* the zeros did not overwrite the zone */
}

UNIT_EACH(checked, both_ends_of_large_ranges_have_the_debug_pattern, watched, w, kind, 0, KINDS,
          watched_make(w, kind), watched_end)
{
    const uint64_t large = UINT64_C(4) << 20;
    quire_native native = watched_native(w, watched_allocate(w, large, NULL));
    CHECK_EQ(watched_byte(w, &native, 0), 0xff);
    CHECK_EQ(watched_byte(w, &native, 131071), 0xff);
    CHECK_EQ(watched_byte(w, &native, (int64_t)large - 131072), 0xff);
    CHECK_EQ(watched_byte(w, &native, (int64_t)large - 1), 0xff);
}

/* ---- same as in other builds -------------------------------------------------------------- */

UNIT_EACH(checked, reported_sizes_exclude_zones, watched, w, kind, 0, KINDS, watched_make(w, kind),
          watched_end)
{
    quire_allocation_info info = watched_info(w, watched_allocate(w, SIZE, NULL));
    CHECK_EQ(info.requested, SIZE);
    CHECK_EQ(info.size, 256); /* the granule */
    CHECK_EQ(watched_native(w, w->allocation).size, info.size);
    quire_memory_info memory;
    CHECK_OK(quire_memory_get_info(w->memory, &memory));
    CHECK(memory.checked);
}

UNIT_ON(checked, requested_padding_is_the_callers, watched, w, watched_prepare(w), watched_end)
{
    watched_open(w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                            .pages = {.extra_padding = 32}});
    quire_native native = watched_native(w, watched_allocate(w, SIZE, NULL));
    watched_spoil(w, &native, SIZE + 31);
    CHECK_OK(quire_memory_check(w->memory));
    watched_spoil(w, &native, SIZE + 32);
    CHECK_FAILS(quire_memory_check(w->memory), QUIRE_ERROR_CORRUPTED);
}

UNIT_ON(checked, zones_have_no_owner, watched, w, watched_prepare(w), watched_end)
{
    quire_allocation found;
    watched_open(w,
                 &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT, .find_by_address = true});
    quire_allocation_info info = watched_info(w, watched_allocate(w, SIZE, NULL));
    CHECK_OK(quire_memory_find(w->memory, info.address, &found));
    CHECK_EQ(found.id, w->allocation.id);
    CHECK_OK(quire_memory_find(w->memory, info.address + info.size - 1, &found));
    CHECK_EQ(found.id, w->allocation.id);
    CHECK_FAILS(quire_memory_find(w->memory, info.address + info.size, &found),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_memory_find(w->memory, info.address - 1, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_free_at_address(w->memory, info.address - 1, NULL), QUIRE_ERROR_OUT_OF_RANGE);
}

UNIT(checked, a_request_of_the_one_page_of_the_linear_fit_is_served)
{
    for (uint64_t less = 0; less < 512; less += 8) {
        watched w;
        watched_prepare(&w);
        watched_open(&w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                                 .fit.algorithm = QUIRE_FIT_LINEAR,
                                                 .pages = {.page_size = 65536}});
        watched_allocate(&w, 65536 - less, NULL);
        watched_end(&w);
    }
}

UNIT(checked, a_memory_without_checks_reports_it_once)
{
    watched w;
    quire_memory_info info;
    watched_prepare(&w);
    w.fake.table.features &= ~(QUIRE_BACKEND_COPY_TO_PAGE | QUIRE_BACKEND_COPY_FROM_PAGE);
    w.fake.table.copy_to_page = NULL;
    w.fake.table.copy_from_page = NULL;
    watched_open(&w, &(quire_memory_options){.name = "far", .kind.mask = 1 << KIND_DEVICE});
    CHECK_STR(w.log, "memory 'far' of kind 0 has no red zones: it cannot be mapped, and backend "
                     "fake cannot copy in both directions\n");
    CHECK_OK(quire_memory_get_info(w.memory, &info));
    CHECK(!info.checked);
    CHECK_EQ(watched_info(&w, watched_allocate(&w, SIZE, NULL)).left_padding, 0);
    CHECK_OK(quire_free(w.memory, w.allocation));
    CHECK_OK(quire_memory_check(w.memory));
    watched_end(&w);
    CHECK_EQ(strchr(w.log, '\n')[1], '\0');
}

UNIT_ON(checked, a_backend_that_fails_to_copy_fails_no_call, watched, w,
        watched_make(w, KIND_DEVICE), watched_end)
{
    watched_allocate(w, SIZE, NULL); /* creates the page */
    CHECK_FAILS(quire_free(NULL, w->allocation), QUIRE_ERROR_INVALID_ARGUMENT);
    char before[256];
    strncat(strcpy(before, ""), quire_last_error(), sizeof before - 1);
    fake_fail(&w->fake, 1, true, QUIRE_ERROR_DEVICE_LOST);
    CHECK_OK(quire_free(w->memory, w->allocation));
    watched_allocate(w, SIZE, NULL);
    CHECK_OK(quire_memory_check(w->memory));
    CHECK_OK(quire_free(w->memory, w->allocation));
    CHECK_STR(quire_last_error(), before);
}

UNIT(checked, only_live_bytes_are_unpoisoned)
{
    for (uint32_t kind = KIND_COHERENT; kind < KINDS && qi_poison_works(); kind++) {
        watched w;
        watched_make(&w, kind);
        const char *bytes = watched_native(&w, watched_allocate(&w, SIZE, NULL)).host;
        CHECK(!qi_is_poisoned(bytes) && !qi_is_poisoned(bytes + SIZE - 1));
        CHECK(qi_is_poisoned(bytes - 1) && qi_is_poisoned(bytes + SIZE));
        CHECK(qi_is_poisoned(bytes + 4096)); /* never allocated */
        CHECK_OK(quire_memory_check(w.memory));
        CHECK(qi_is_poisoned(bytes - 1) && qi_is_poisoned(bytes + SIZE));
        CHECK_OK(quire_free(w.memory, w.allocation));
        CHECK(qi_is_poisoned(bytes) && qi_is_poisoned(bytes + SIZE - 1));
        watched_settle(&w);
        CHECK(qi_is_poisoned(bytes) && qi_is_poisoned(bytes + SIZE - 1));
        watched_end(&w);
    }
}
