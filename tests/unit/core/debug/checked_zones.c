/*
 * checked_zones.c - limits of the red zones of checked builds: zones after ranges in a much larger
 * block, and pages that are destroyed.
 */
#include "src/base/poison.h"
#include "tests/support/unit.h"
#include "tests/support/watched.h"

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

UNIT_ON(checked_zones, the_cost_of_a_large_zone_is_bounded, watched, w,
        make_large_zone(w, KIND_DEVICE), watched_end)
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

UNIT(checked_zones, both_ends_of_a_large_zone_are_checked)
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
UNIT_ON(checked_zones, bytes_before_a_large_zone_are_the_callers, watched, w, watched_prepare(w),
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

UNIT(checked_zones, a_destroyed_page_is_not_poisoned)
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
