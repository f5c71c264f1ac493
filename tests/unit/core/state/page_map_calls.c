/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_map_calls.c - pages that are mapped on demand: calls that read or write bytes map them while
 * they run, once, and only where they use the map.
 */
#include "tests/support/on_demand.h"

#include <stdio.h>

#include "quire/transfer.h"

enum { SIZE = 1000 };

static char bytes[SIZE];

/* ---- one allocation ----------------------------------------------------------------------- */

static void check_each(fixture *f, quire_allocation a, uint64_t by_sync)
{
    CHECK_OK(quire_write(f->memory, a, 0, "abc", 3));
    expect_maps(f, 0, 1);
    CHECK_OK(quire_read(f->memory, a, 0, bytes, SIZE));
    CHECK(!memcmp(bytes, "abc", 3));
    expect_maps(f, 0, 1);
    CHECK_OK(quire_fill(f->memory, a, &(quire_fill_options){.value = 7}, NULL));
    expect_maps(f, 0, 1);
    CHECK_OK(quire_flush(f->memory, a, 0, 0));
    expect_maps(f, 0, by_sync);
    CHECK_OK(quire_invalidate(f->memory, a, 1, 1));
    expect_maps(f, 0, by_sync);
    CHECK_OK(quire_write(f->memory, a, 0, NULL, 0));
    CHECK_FAILS(quire_write(f->memory, a, SIZE, "x", 1), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_flush(f->memory, a, 0, SIZE + 1), QUIRE_ERROR_OUT_OF_RANGE);
    expect_maps(f, 0, 0);
}

UNIT(page_map_calls, each_call_maps_the_page_once)
{
    static const uint32_t kinds[] = {COHERENT, CACHED, WINDOW};
    for (int k = 0; k < 3; k++) {
        fixture f;
        begin_on_demand(&f, kinds[k]);
        quire_allocation a = ALLOCATE(&f, .size = SIZE);
        expect_maps(&f, 0, 0);
        check_each(&f, a, kinds[k] == CACHED); /* coherent kinds are not flushed */
        quire_allocation zero = ALLOCATE(&f, .size = SIZE, .zero = true);
        expect_maps(&f, 0, 1);
        CHECK_OK(quire_read(f.memory, zero, 0, bytes, SIZE));
        CHECK(!bytes[0] && !memcmp(bytes, bytes + 1, SIZE - 1));
        expect_maps(&f, 0, 1);
        fixture_end(&f);
    }
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(page_map_calls, name, fixture, f, begin_on_demand(f, __VA_ARGS__), fixture_end)

CASE(no_call_maps_a_page_that_is_mapped, CACHED)
{
    quire_allocation a = ALLOCATE(f, .size = SIZE);
    map(f, a);
    expect_maps(f, 1, 1);
    CHECK_OK(quire_write(f->memory, a, 0, "abc", 3));
    CHECK_OK(quire_read(f->memory, a, 0, bytes, 3));
    CHECK_OK(quire_fill(f->memory, a, &(quire_fill_options){.value = 7}, NULL));
    CHECK_OK(quire_flush(f->memory, a, 0, 0));
    ALLOCATE(f, .size = SIZE, .zero = true);
    expect_maps(f, 1, 0);
    unmap(f, a);
    expect_maps(f, 0, 0);
}

CASE(a_zeroed_allocation_that_stays_mapped_is_mapped_once, CACHED)
{
    quire_allocation a = ALLOCATE(f, .size = SIZE, .zero = true, .mapped = true);
    expect_maps(f, 1, 1);
    CHECK_EQ(*(char *)fixture_info(f, a).host, 0);
}

/* ---- lists -------------------------------------------------------------------------------- */

UNIT(page_map_calls, a_list_of_flushes_maps_each_page_once)
{
    static const uint32_t kinds[] = {COHERENT, CACHED};
    for (int k = 0; k < 2; k++) {
        fixture f;
        begin_on_demand(&f, kinds[k]);
        quire_view views[4] = {{ALLOCATE(&f, .size = SIZE), 0, 0},
                               {ALLOCATE(&f, .size = SIZE), 0, 0},
                               {ALLOCATE(&f, .size = SIZE, .dedicated = true), 0, 0}};
        views[3] = (quire_view){views[0].allocation, 0, SIZE + 1};
        CHECK_OK(quire_flush_batch(f.memory, views, 3));
        expect_maps(&f, 0, kinds[k] == CACHED ? 2 : 0);
        CHECK_OK(quire_invalidate_batch(f.memory, views, 3));
        expect_maps(&f, 0, kinds[k] == CACHED ? 2 : 0);
        CHECK_FAILS(quire_flush_batch(f.memory, views, 4), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_EQ(f.fake.maps, 0);
        for (int i = 0; i < 3; i++)
            CHECK_OK(quire_free(f.memory, views[i].allocation));
        fixture_end(&f);
    }
}

CASE(a_batch_of_writes_or_reads_maps_each_page_once, CACHED)
{
    char found[3];
    quire_allocation a = ALLOCATE(f, .size = SIZE), b = ALLOCATE(f, .size = SIZE);
    quire_allocation own = ALLOCATE(f, .size = SIZE, .dedicated = true);
    const quire_write_item writes[] = {
        {a, 0, "a", 1}, {a, 5, "c", 1}, {b, 0, "b", 1}, {own, 9, "o", 1}};
    const quire_read_item reads[] = {
        {a, 5, found, 1}, {b, 0, found + 1, 1}, {own, 9, found + 2, 1}, {a, 0, NULL, 0}};
    CHECK_OK(quire_write_batch(f->memory, writes, 4, NULL, NULL));
    expect_maps(f, 0, 2);
    CHECK_OK(quire_read_batch(f->memory, reads, 4));
    CHECK(!memcmp(found, "cbo", 3));
    expect_maps(f, 0, 2);
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Copies between two memories, there and back. The host reads WINDOW and COHERENT slowly. */
UNIT(page_map_calls, a_copy_maps_the_pages_that_the_host_reads_or_writes)
{
    static const struct {
        const char *name;
        uint32_t kind, other;
        bool offers_copies, refuses_them;
        uint64_t maps; /* of each copy */
    } rows[] = {
        {"by the host", CACHED, COHERENT, false, false, 2},
        {"with device memory", CACHED, DEVICE, false, false, 1},
        {"by the backend", WINDOW, COHERENT, true, false, 0},
        {"refused by the backend", WINDOW, COHERENT, true, true, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f;
        quire_memory *other;
        quire_allocation theirs;
        printf("# %s\n", rows[i].name);
        fixture_prepare(&f);
        if (rows[i].offers_copies)
            fake_offer_copies(&f.fake);
        const quire_memory_options first = on_demand_options(rows[i].kind),
                                   second = on_demand_options(rows[i].other);
        fixture_open(&f, &first);
        CHECK_OK(quire_memory_create(f.device, &second, &other));
        const quire_allocation mine = ALLOCATE(&f, .size = SIZE);
        CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = SIZE}, &theirs));
        CHECK_OK(quire_fill(f.memory, mine, &(quire_fill_options){.value = 'a'}, NULL));
        f.fake.calls[FAKE_MAP] = 0;
        f.fake.unsupported = rows[i].refuses_them ? FAKE_COPY_PAGES : f.fake.unsupported;
        const quire_copy_end here = {.memory = f.memory, .allocation = mine},
                             there = {.memory = other, .allocation = theirs};
        CHECK_OK(quire_copy(&(quire_copy_options){.to = there, .from = here, .size = SIZE}, NULL));
        expect_maps(&f, 0, rows[i].maps);
        CHECK_OK(quire_read(other, theirs, 0, bytes, SIZE));
        CHECK(bytes[0] == 'a' && !memcmp(bytes, bytes + 1, SIZE - 1));
        f.fake.calls[FAKE_MAP] = 0;
        CHECK_OK(quire_copy(&(quire_copy_options){.to = here, .from = there, .size = SIZE}, NULL));
        expect_maps(&f, 0, rows[i].maps);
        quire_memory_destroy_all(&other);
        fixture_end(&f);
    }
}

CASE(a_copy_within_a_page_maps_it_once, CACHED)
{
    quire_allocation a = ALLOCATE(f, .size = SIZE), b = ALLOCATE(f, .size = SIZE);
    CHECK_OK(quire_fill(f->memory, a, &(quire_fill_options){.value = 'a'}, NULL));
    f->fake.calls[FAKE_MAP] = 0;
    const quire_copy_options options = {.to = {.memory = f->memory, .allocation = b},
                                        .from = {.memory = f->memory, .allocation = a},
                                        .size = SIZE};
    CHECK_OK(quire_copy(&options, NULL));
    expect_maps(f, 0, 1);
    CHECK_OK(quire_read(f->memory, b, 0, bytes, SIZE));
    CHECK(bytes[0] == 'a' && !memcmp(bytes, bytes + 1, SIZE - 1));
}

CASE(overlapping_ends_are_refused_and_nothing_stays_mapped, CACHED)
{
    quire_allocation a = ALLOCATE(f, .size = SIZE);
    const quire_copy_options options = {.to = {.memory = f->memory, .allocation = a, .offset = 1},
                                        .from = {.memory = f->memory, .allocation = a},
                                        .size = SIZE - 1};
    CHECK_FAILS(quire_copy(&options, NULL), QUIRE_ERROR_OVERLAP);
    CHECK_EQ(f->fake.maps, 0);
}
