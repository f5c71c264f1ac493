/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_map.c - pages that are mapped on demand: by maps, by allocations that are mapped while they
 * live, in every sort of page. tests/model/page_map.c has every interleaving of threads.
 */
#include "tests/support/on_demand.h"

/* ---- maps --------------------------------------------------------------------------------- */

UNIT(page_map, a_page_is_mapped_from_its_first_map_to_its_last_unmap)
{
    static const uint32_t kinds[] = {COHERENT, CACHED, WINDOW};
    for (int k = 0; k < 3; k++) {
        fixture f;
        begin_on_demand(&f, kinds[k]);
        quire_allocation a = ALLOCATE(&f, .size = 100), b = ALLOCATE(&f, .size = 100);
        expect_maps(&f, 0, 0);
        char *first = map(&f, a), *second = map(&f, b);
        CHECK_EQ(second - first, fixture_info(&f, b).offset - fixture_info(&f, a).offset);
        memset(first, 1, 100);
        memset(second, 2, 100);
        CHECK(map(&f, a) == first);
        expect_maps(&f, 1, 1);
        unmap(&f, a);
        unmap(&f, a);
        expect_maps(&f, 1, 0);
        CHECK_FAILS(quire_unmap(f.memory, a), QUIRE_ERROR_NOT_MAPPED);
        unmap(&f, b);
        expect_maps(&f, 0, 0);
        CHECK_EQ(*map(&f, b), 2);
        expect_maps(&f, 1, 1);
        CHECK_FAILS(quire_free(f.memory, b), QUIRE_ERROR_BUSY);
        unmap(&f, b);
        CHECK_OK(quire_free(f.memory, a));
        CHECK_OK(quire_free(f.memory, b));
        expect_maps(&f, 0, 0);
        fixture_end(&f);
    }
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(page_map, name, fixture, f, begin_on_demand(f, __VA_ARGS__), fixture_end)

CASE(every_page_has_its_own_users, COHERENT)
{
    quire_allocation shared = ALLOCATE(f, .size = 100);
    quire_allocation own = ALLOCATE(f, .size = 100, .dedicated = true);
    CHECK(fixture_info(f, own).dedicated);
    map(f, own);
    expect_maps(f, 1, 1);
    map(f, shared);
    expect_maps(f, 2, 1);
    unmap(f, own);
    expect_maps(f, 1, 0);
    CHECK_OK(quire_free(f->memory, own));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL)); /* destroys a page that is not mapped */
    unmap(f, shared);
    expect_maps(f, 0, 0);
}

UNIT_MEMORY(page_map, without_the_option_pages_are_mapped_when_they_are_made, f,
            .kind.mask = 1u << COHERENT)
{
    quire_allocation a = ALLOCATE(f, .size = 100);
    expect_maps(f, 1, 1);
    map(f, a);
    unmap(f, a);
    expect_maps(f, 1, 0);
}

CASE(a_memory_that_is_not_host_visible_has_no_maps, DEVICE)
{
    void *pointer = NULL;
    quire_allocation a = ALLOCATE(f, .size = 100, .zero = true);
    CHECK_FAILS(quire_map(f->memory, a, &pointer), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_OK(quire_write(f->memory, a, 0, "x", 1));
    expect_maps(f, 0, 0);
}

/* ---- pages of other sorts ----------------------------------------------------------------- */

UNIT_PREPARED(page_map, an_elastic_page_keeps_its_map, f)
{
    fake_offer_growth(&f->fake);
    quire_memory_options options = on_demand_options(COHERENT);
    options.elastic = true;
    options.address_space = 16 * PAGE_SIZE;
    fixture_open(f, &options);
    quire_allocation a = ALLOCATE(f, .size = PAGE_SIZE / 2, .mapped = true);
    char *first = fixture_info(f, a).host;
    expect_maps(f, 1, 1);
    quire_allocation b = ALLOCATE(f, .size = 4 * PAGE_SIZE);
    CHECK_EQ(fixture_stats(f).page_count, 1);
    CHECK_EQ(map(f, b) - first, fixture_info(f, b).offset - fixture_info(f, a).offset);
    memset(map(f, b), 3, 4 * PAGE_SIZE);
    expect_maps(f, 1, 0);
    unmap(f, b);
    unmap(f, b);
    CHECK_OK(quire_free(f->memory, b));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_OK(quire_free(f->memory, a));
    expect_maps(f, 0, 0);
}

CASE(adopted_memory_is_mapped_on_demand, COHERENT)
{
    const uint64_t size = 4096;
    quire_allocation_info info;
    quire_allocation a;
    const quire_allocation_options plain = {.size = size};
    CHECK_OK(quire_page_adopt(f->memory, &size, &plain, &a));
    expect_maps(f, 0, 0);
    CHECK_OK(quire_free(f->memory, a));
    const quire_allocation_options options = {.size = size, .mapped = true, .info = &info};
    CHECK_OK(quire_page_adopt(f->memory, &size, &options, &a));
    expect_maps(f, 1, 1);
    memset(info.host, 1, size);
    CHECK_OK(quire_free(f->memory, a));
    expect_maps(f, 0, 0);
}

UNIT(page_map, a_page_that_moves_to_another_shard_is_mapped_there)
{
    fixture f;
    quire_memory_options options = on_demand_options(COHERENT);
    options.shards = 2;
    options.pages.max_pages = 1;
    fixture_make(&f, &options);
    quire_allocation a = ALLOCATE(&f, .size = 100, .mapped = true);
    CHECK_OK(quire_free(f.memory, a));
    expect_maps(&f, 0, 1);
    a = ALLOCATE_ELSEWHERE(&f, .size = 100, .mapped = true);
    expect_maps(&f, 1, 1);
    CHECK_OK(quire_free(f.memory, a)); /* through the inbox of the other shard: unmapped at once */
    expect_maps(&f, 0, 0);
    fixture_end(&f);
}

UNIT(page_map, allocations_are_found_by_device_address_only)
{
    fixture f;
    quire_memory_options options = on_demand_options(COHERENT);
    options.find_by_address = true;
    fixture_make(&f, &options);
    quire_allocation a = ALLOCATE(&f, .size = 100, .mapped = true), found;
    quire_allocation_info info = fixture_info(&f, a);
    CHECK(info.address && info.address != (uintptr_t)info.host);
    CHECK_OK(quire_memory_find(f.memory, info.address + 7, &found));
    CHECK_EQ(found.id, a.id);
    CHECK_FAILS(quire_memory_find(f.memory, (uintptr_t)info.host, &found),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_OK(quire_free(f.memory, a));
    expect_maps(&f, 0, 1);
    fixture_end(&f);
}

/* ---- what is reported --------------------------------------------------------------------- */

CASE(a_page_is_mappable_whether_it_is_mapped_or_not, COHERENT)
{
    quire_page_info info;
    quire_native native;
    quire_allocation a = ALLOCATE(f, .size = 100), b = ALLOCATE(f, .size = 100, .mapped = true);
    for (int mapped = 1; mapped >= 0; mapped--) {
        CHECK_OK(quire_page_get_info(f->memory, 0, &info));
        CHECK(info.mappable);
        CHECK_OK(quire_allocation_get_native(f->memory, a, &native));
        CHECK(native.host == NULL);
        CHECK(fixture_info(f, a).host == NULL);
        if (!mapped)
            break;
        CHECK_OK(quire_allocation_get_native(f->memory, b, &native));
        CHECK(native.host == fixture_info(f, b).host && native.host);
        CHECK_OK(quire_free(f->memory, b));
    }
}

CASE(the_calls_of_the_backend_are_counted, COHERENT)
{
    quire_allocation a = ALLOCATE(f, .size = 100);
    uint64_t before = fixture_stats(f).backend_calls;
    map(f, a);
    CHECK_EQ(fixture_stats(f).backend_calls, before + 1);
    unmap(f, a);
    CHECK_EQ(fixture_stats(f).backend_calls, before + 2);
}

enum { THREADS = 4, ROUNDS = 3000 };
