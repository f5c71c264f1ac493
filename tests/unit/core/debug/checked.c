/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
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

UNIT_EACH_KIND(checked, damage_is_found_on_dedicated_pages_and_in_reserved_ranges)
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

UNIT_EACH_KIND(checked, fresh_bytes_have_the_debug_pattern_unless_they_are_zero)
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

UNIT_EACH_KIND(checked, both_ends_of_large_ranges_have_the_debug_pattern)
{
    const uint64_t large = UINT64_C(4) << 20;
    quire_native native = watched_native(w, watched_allocate(w, large, NULL));
    CHECK_EQ(watched_byte(w, &native, 0), 0xff);
    CHECK_EQ(watched_byte(w, &native, 131071), 0xff);
    CHECK_EQ(watched_byte(w, &native, (int64_t)large - 131072), 0xff);
    CHECK_EQ(watched_byte(w, &native, (int64_t)large - 1), 0xff);
}

/* ---- same as in other builds -------------------------------------------------------------- */

UNIT_EACH_KIND(checked, reported_sizes_exclude_zones)
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

/* ---- large zones ----------------------------------------------------------------------------- */

#define MIB UINT64_C(1048576)

enum { EDGE = 131072 };

/* A request of the buddy fit whose block has nearly three MiB after the requested bytes. */
static quire_native make_large_zone(watched *w, uint32_t kind)
{
    watched_prepare(w);
    watched_open(w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                            .fit.algorithm = QUIRE_FIT_BUDDY,
                                            .pages = {.page_size = 8 * MIB}});
    return watched_native(w, watched_allocate(w, 5 * MIB, "weights"));
}

UNIT_ON(checked, the_cost_of_a_large_zone_is_bounded, watched, w, make_large_zone(w, KIND_DEVICE),
        watched_end)
{
    CHECK(w->fake.calls[FAKE_COPY_TO] < 100); /* 8 KiB per call: both ends of range and zone */
    CHECK_OK(quire_memory_check(w->memory));
    CHECK(w->fake.calls[FAKE_COPY_FROM] < 100);
}

static void expect_found(watched *w, const quire_native *native, uint64_t at, bool is_found)
{
    watched_spoil(w, native, (int64_t)at);
    if (is_found)
        CHECK_FAILS(quire_memory_check(w->memory), QUIRE_ERROR_CORRUPTED);
    else
        CHECK_OK(quire_memory_check(w->memory));
    watched_spoil(w, native, (int64_t)at);
    CHECK_OK(quire_memory_check(w->memory));
}

UNIT(checked, both_ends_of_a_large_zone_are_checked)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        watched w;
        quire_native native = make_large_zone(&w, kind);
        uint64_t tail = 5 * MIB, end = 8 * MIB - native.offset;
        CHECK_EQ(watched_byte(&w, &native, (int64_t)tail), 0xb5);
        CHECK_EQ(watched_byte(&w, &native, (int64_t)end - 1), 0xb5);
        expect_found(&w, &native, tail, true);
        expect_found(&w, &native, tail + EDGE - 1, true);
        expect_found(&w, &native, tail + EDGE, false);
        expect_found(&w, &native, end - EDGE - 1, false);
        expect_found(&w, &native, end - EDGE, true);
        expect_found(&w, &native, end - 1, true);
        watched_spoil(&w, &native, (int64_t)end - 1);
        CHECK_FAILS(quire_free(w.memory, w.allocation), QUIRE_ERROR_CORRUPTED);
        CHECK_HAS(quire_last_error(), "after its last byte: 1 byte, ");
        watched_end(&w);
    }
}

static quire_result (*invalidate)(void *state, const quire_native_page *page, uint64_t offset,
                                  uint64_t size);
static uint64_t zone_begin, zone_reads;

static quire_result invalidate_zone_only(void *state, const quire_native_page *page,
                                         uint64_t offset, uint64_t size)
{
    zone_reads += offset + size > zone_begin;
    CHECK(offset + size <= zone_begin || offset >= zone_begin);
    return invalidate(state, page, offset, size);
}

/*
 * The host wrote bytes and did not flush them: reading the zone after them must not invalidate
 * them.
 */
UNIT_ON(checked, bytes_before_a_large_zone_are_the_callers, watched, w, watched_prepare(w),
        watched_end)
{
    invalidate = w->fake.table.invalidate;
    w->fake.table.invalidate = invalidate_zone_only;
    zone_reads = 0;
    watched_open(w, &(quire_memory_options){.kind.mask = UINT32_C(1) << KIND_CACHED,
                                            .fit.algorithm = QUIRE_FIT_BUDDY,
                                            .pages = {.page_size = 8 * MIB}});
    quire_allocation allocation = watched_allocate(w, 5 * MIB + 7, "weights");
    zone_begin = watched_info(w, allocation).offset + 5 * MIB + 7;
    CHECK_OK(quire_memory_check(w->memory));
    CHECK_EQ(zone_reads, 2);
    CHECK_OK(quire_memory_check(w->memory));
    zone_begin = UINT64_MAX; /* the bytes of a freed range belong to no caller */
}

static void (*destroy_page)(void *state, const quire_native_page *page);
static uint64_t opened_pages;

/* A backend may touch every byte of a page that it destroys: no byte is poisoned then. */
static void destroy_if_open(void *state, const quire_native_page *page)
{
    const unsigned char *bytes = fake_bytes(page);
    for (uint64_t at = 0; at < page->size; at += 8)
        CHECK(!qi_is_poisoned(bytes + at));
    opened_pages++;
    destroy_page(state, page);
}

UNIT(checked, a_destroyed_page_is_not_poisoned)
{
    for (uint32_t kind = KIND_COHERENT; kind < KINDS; kind++) {
        watched w;
        watched_prepare(&w);
        destroy_page = w.fake.table.page_destroy;
        w.fake.table.page_destroy = destroy_if_open;
        opened_pages = 0;
        watched_open(&w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                                 .pages = {.page_size = 65536}});
        const char *bytes = watched_native(&w, watched_allocate(&w, 100, NULL)).host;
        CHECK(!qi_poison_works() || qi_is_poisoned(bytes - 1));
        watched_allocate(&w, 100000, NULL); /* a dedicated page */
        watched_end(&w);
        CHECK_EQ(opened_pages, 2);
    }
}
