/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_attempt.c - the page size that a backend refused is remembered: how many calls of the
 * backend a full heap costs, and what makes the memory forget the size.
 */
#include "tests/support/fixture.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

enum { REQUESTS = 256 };

static uint64_t created(const fixture *f)
{
    return f->fake.calls[FAKE_PAGE_CREATE];
}

static quire_result try_size(fixture *f, uint64_t size)
{
    quire_allocation made;
    return quire_allocate(f->memory, &(quire_allocation_options){.size = size}, &made);
}

/* A memory of pages of 32 MiB on a backend that has `bytes`, all of which are in use. */
static void make_full(fixture *f, uint64_t bytes, const quire_memory_options *options)
{
    fixture_make(f, options);
    f->fake.page_budget = bytes;
    for (uint64_t used = 0; used < bytes; used += MIB)
        ALLOCATE(f, .size = MIB);
    CHECK_EQ(f->fake.page_bytes, bytes);
    CHECK_EQ(fixture_stats(f).free_bytes, 0);
}

static const quire_memory_options LARGE = {.pages.page_size = 32 * MIB};

#define CASE(name, ...)                                                                            \
    UNIT_ON(page_attempt, name, fixture, f, make_full(f, __VA_ARGS__), fixture_end)

/* ---- the cost of a full heap ---------------------------------------------------------------- */

CASE(a_full_heap_costs_one_call_for_each_request, 256 * MIB, &LARGE)
{
    uint64_t before = created(f);
    CHECK_EQ(before, 8);
    CHECK_FAILS(try_size(f, 4096), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(created(f), before + 14); /* 32 MiB, 16 MiB, ... 4 KiB */
    for (int i = 1; i < REQUESTS; i++)
        CHECK_FAILS(try_size(f, 4096), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(created(f), before + 14 + REQUESTS - 1);
}

UNIT_PREPARED(page_attempt, a_full_heap_costs_an_elastic_memory_one_call_for_each_request, f)
{
    fake_offer_growth(&f->fake);
    f->fake.page_budget = 4 * MIB;
    fixture_open(f, &(quire_memory_options){
                        .elastic = true, .address_space = 64 * MIB, .pages.page_size = 64 * KIB});
    ALLOCATE(f, .size = 4 * MIB);
    for (int i = 0; i < REQUESTS; i++)
        CHECK_FAILS(try_size(f, 1 * MIB), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], REQUESTS); /* no fewer chunks are requested */
}

/* Pages that fit begin below the size that was refused. Each costs one refused call at most. */
CASE(a_heap_that_is_nearly_full_costs_few_refused_calls, 256 * MIB, &LARGE)
{
    f->fake.page_budget += 10 * MIB;
    uint64_t before = created(f);
    quire_result result;
    do
        result = try_size(f, 64 * KIB);
    while (!result);
    CHECK_EQ(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(f->fake.page_bytes, 266 * MIB); /* nothing is left over */
    uint64_t pages = fixture_stats(f).page_count - 8;
    CHECK(created(f) - before <= 2 * pages + 10);
}

/* ---- forgetting ----------------------------------------------------------------------------- */

/* After a refusal down to 4 KiB the backend has room again. Returns how large the next page is. */
static uint64_t next_page(fixture *f)
{
    f->fake.page_budget = 0;
    ALLOCATE(f, .size = 4096);
    return f->fake.last_page.size;
}

static void make_refused(fixture *f)
{
    make_full(f, 64 * MIB, &LARGE);
    CHECK_FAILS(try_size(f, 1 * MIB), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
}

#define REFUSED_CASE(name) UNIT_ON(page_attempt, name, fixture, f, make_refused(f), fixture_end)

REFUSED_CASE(pages_grow_again_by_doubling)
{
    CHECK_EQ(next_page(f), 512 * KIB); /* below the refused size, 1 MiB */
    uint64_t last = 512 * KIB;
    for (int i = 0; i < 8; i++) {
        ALLOCATE(f, .size = last - (i ? 0 : 4096)); /* fills the page */
        ALLOCATE(f, .size = 4096);
        CHECK(f->fake.last_page.size == 2 * last || f->fake.last_page.size == 32 * MIB);
        last = f->fake.last_page.size;
        ALLOCATE(f, .size = last - 4096);
        ALLOCATE(f, .size = 4096);
        last = f->fake.last_page.size;
        if (last == 32 * MIB)
            break;
    }
    CHECK_EQ(last, 32 * MIB);
}

REFUSED_CASE(a_request_of_the_refused_size_is_requested_and_forgets_it)
{
    f->fake.page_budget = 0;
    uint64_t before = created(f);
    ALLOCATE(f, .size = 1 * MIB);
    CHECK_EQ(f->fake.last_page.size, 1 * MIB);
    CHECK_EQ(created(f), before + 1);
    ALLOCATE(f, .size = 4096);
    CHECK_EQ(f->fake.last_page.size, 32 * MIB);
}

UNIT(page_attempt, a_page_destroyed_by_any_memory_of_the_heap_forgets_it)
{
    for (uint32_t kind = 0; kind < 2; kind++) { /* of heap 0 and of heap 1 */
        fixture f;
        quire_memory *other = NULL;
        quire_allocation made;
        fixture_make(&f, &LARGE);
        CHECK_OK(quire_memory_create(
            f.device, &(quire_memory_options){.kind.mask = 1 << kind, .pages.page_size = MIB},
            &other));
        CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = MIB}, &made));
        for (int i = 0; i < 32; i++)
            ALLOCATE(&f, .size = MIB);
        f.fake.page_budget = f.fake.page_bytes;
        CHECK_FAILS(try_size(&f, 1 * MIB), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        CHECK_OK(quire_free(other, made));
        CHECK_OK(quire_memory_trim(other, 0, NULL));
        CHECK_EQ(next_page(&f), kind ? 512 * KIB : 32 * MIB);
        quire_memory_destroy_all(&other);
        fixture_end(&f);
    }
}

UNIT(page_attempt, a_limit_that_is_set_forgets_it)
{
    for (int i = 0; i < 4; i++) {
        fixture f;
        make_refused(&f);
        if (i == 0)
            CHECK_OK(quire_memory_set_limit(f.memory, 512 * MIB));
        else if (i < 3)
            CHECK_OK(quire_device_set_heap_limit(f.device, i == 1 ? 0 : 1, 512 * MIB));
        CHECK_EQ(next_page(&f), i < 2 ? 32 * MIB : 512 * KIB);
        fixture_end(&f);
    }
}

REFUSED_CASE(what_one_memory_was_refused_means_nothing_to_another)
{
    quire_memory *other = NULL;
    quire_allocation made;
    f->fake.page_budget = 0;
    CHECK_OK(quire_memory_create(f->device, &LARGE, &other));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 4096}, &made));
    CHECK_EQ(f->fake.last_page.size, 32 * MIB);
    quire_memory_destroy_all(&other);
}

/* The driver may refuse the object's page for a reason that other pages do not have. */
UNIT_ON(page_attempt, what_the_page_of_an_object_was_refused_means_nothing_to_others, fixture, f,
        fixture_make(f, &LARGE), fixture_end)
{
    quire_buffer buffer;
    f->fake.object_needs =
        (quire_requirements){.size = 4096, .alignment = 256, .kind_mask = 1, .dedicated = true};
    f->fake.page_budget = 1;
    CHECK_FAILS(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 10}, &buffer),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(created(f), 1);
    CHECK_EQ(next_page(f), 32 * MIB);
}

/* Raising a limit needs nothing to be forgotten: sizes beyond a limit are not remembered. */
UNIT_MEMORY(page_attempt, only_what_the_backend_refuses_is_remembered, f,
            .pages.page_size = 32 * MIB, .limit = MIB)
{
    ALLOCATE(f, .size = MIB);
    CHECK_FAILS(try_size(f, 4096), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(created(f), 1); /* 32, 16, 8, 4 and 2 MiB exceed the limit */
    CHECK_OK(quire_memory_set_limit(f->memory, 0));
    ALLOCATE(f, .size = 4096);
    CHECK_EQ(f->fake.last_page.size, 32 * MIB);
}

CASE(each_shard_begins_below_the_size_that_another_was_refused, 64 * MIB,
     &(quire_memory_options){.pages.page_size = 32 * MIB, .shards = 2})
{
    CHECK_FAILS(try_size(f, 4096), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    uint64_t before = created(f);
    f->fake.page_budget += 4096;
    ALLOCATE_ELSEWHERE(f, .size = 4096);
    CHECK_EQ(created(f), before + 1);
}
