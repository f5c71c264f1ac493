/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_use.c - memories with the default page sizes, which follow use: what they reserve, which
 * pages count, and how trims, refusals, shards, preallocation and elastic pages fit in.
 */
#include "tests/support/fixture.h"

#include "src/core/state/memory.h"
#include "tests/support/crew.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static uint64_t next_page(fixture *f)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(f->memory, &info));
    return info.page_size;
}

static void expect_reserved(fixture *f, uint64_t mib, uint64_t pages)
{
    quire_memory_stats stats = fixture_stats(f);
    CHECK_OK(quire_memory_check(f->memory));
    CHECK_EQ(stats.reserved_bytes, mib * MIB);
    CHECK_EQ(stats.page_count, pages);
    CHECK_EQ(f->fake.page_bytes, mib * MIB);
}

static uint64_t size_of_page(fixture *f, uint32_t number)
{
    quire_page_info page;
    CHECK_OK(quire_page_get_info(f->memory, number, &page));
    return page.size;
}

#define CASE(name, ...) UNIT_MEMORY(page_use, name, f, __VA_ARGS__)

/* ---- one shard ------------------------------------------------------------------------------ */

CASE(a_memory_with_few_bytes_reserves_one_mebibyte, 0)
{
    CHECK_EQ(next_page(f), MIB);
    for (int i = 0; i < 200; i++)
        ALLOCATE(f, .size = KIB);
    expect_reserved(f, 1, 1);
    CHECK_EQ(next_page(f), MIB);
}

CASE(pages_grow_with_the_memory_and_the_next_size_is_reported, 0)
{
    for (uint64_t reserved = 0, page = 0; reserved < 128 * MIB; page++) {
        uint64_t next = next_page(f);
        CHECK_EQ(next >= 32 * MIB, reserved >= 108 * MIB);
        CHECK(next == MIB || next * 3 <= reserved);
        for (uint64_t used = 0; used + 64 * KIB <= next; used += 64 * KIB)
            CHECK_EQ(fixture_info(f, ALLOCATE(f, .size = 64 * KIB)).page, page);
        CHECK_EQ(size_of_page(f, (uint32_t)page), next);
        reserved += next;
    }
}

CASE(an_explicit_size_stays_fixed, .pages.page_size = 2 * MIB)
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(next_page(f), 2 * MIB);
        ALLOCATE(f, .size = 2 * MIB);
    }
    expect_reserved(f, 20, 10);
}

CASE(dedicated_pages_do_not_count, 0)
{
    ALLOCATE(f, .size = 64 * MIB, .dedicated = true);
    CHECK_EQ(next_page(f), MIB);
    ALLOCATE(f, .size = KIB);
    expect_reserved(f, 65, 2);
}

CASE(a_large_request_gets_a_page_of_its_size_which_counts, 0)
{
    ALLOCATE(f, .size = 20 * MIB - KIB);
    expect_reserved(f, 20, 1);
    ALLOCATE(f, .size = KIB); /* in the rest of that page */
    expect_reserved(f, 20, 1);
    CHECK_EQ(next_page(f) / KIB, 2560); /* 20 / 12 + 20 * 20 / 500 MiB are 2525 KiB */
    ALLOCATE(f, .size = 100 * MIB);
    expect_reserved(f, 120, 2);
    CHECK_EQ(next_page(f), 32 * MIB);
}

CASE(requests_that_grow_slowly_create_few_pages, 0)
{
    for (uint64_t size = 4 * MIB; size <= 8 * MIB; size += 16 * KIB)
        CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = size)));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1 + 64); /* of 257 requests */
    expect_reserved(f, 8, 1);
}

/* ---- pages that leave ----------------------------------------------------------------------- */

CASE(a_trim_of_a_large_memory_keeps_the_page_size, 0)
{
    quire_allocation kept[4], last = {0};
    for (int i = 0; i < 4; i++)
        kept[i] = ALLOCATE(f, .size = 32 * MIB);
    for (int i = 0; i < 3; i++) {
        expect_reserved(f, 128, 4);
        CHECK_EQ(next_page(f), 32 * MIB);
        last = ALLOCATE(f, .size = KIB);
        expect_reserved(f, 160, 5);
        CHECK_OK(quire_free(f->memory, last));
        CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    }
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_free(f->memory, kept[i]));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_EQ(next_page(f), MIB); /* an empty memory starts again */
}

CASE(a_page_that_cannot_be_made_does_not_count, 0)
{
    f->fake.fail_at = 1;
    f->fake.fail_from_then = true;
    f->fake.fail_with = QUIRE_ERROR_BACKEND_FAILURE;
    ALLOCATE_FAILS(f, QUIRE_ERROR_BACKEND_FAILURE, .size = 9 * MIB);
    f->fake.fail_at = 0;
    CHECK_EQ(next_page(f), MIB);
    expect_reserved(f, 0, 0);
}

CASE(a_page_that_was_halved_counts_with_its_size, 0)
{
    ALLOCATE(f, .size = 80 * MIB);
    f->fake.page_budget = 85 * MIB; /* the policy says 19 MiB, of which a quarter fits */
    ALLOCATE(f, .size = MIB);
    uint64_t reserved = fixture_stats(f).reserved_bytes;
    CHECK(reserved > 84 * MIB && reserved <= 85 * MIB);
    CHECK_EQ(f->memory->pages.shared_bytes, reserved);
    CHECK_EQ(f->fake.page_bytes, reserved);
    f->fake.page_budget = 0;
}

/* ---- one page for all, and a limited number of pages ---------------------------------------- */

CASE(the_only_page_of_the_linear_fit_has_the_full_size, .fit.algorithm = QUIRE_FIT_LINEAR)
{
    CHECK_EQ(next_page(f), 32 * MIB);
    ALLOCATE(f, .size = KIB);
    expect_reserved(f, 32, 1);
}

CASE(a_limited_number_of_pages_does_not_limit_the_bytes, .pages.max_pages = 2)
{
    for (int i = 0; i < 64; i++)
        ALLOCATE(f, .size = MIB);
    expect_reserved(f, 64, 2);
}

/* Chunks do not become larger with the memory: each comes when it is needed. */
UNIT_PREPARED(page_use, an_elastic_page_gets_chunks_of_one_size, f)
{
    const uint64_t chunk = 256 * KIB;
    fake_offer_growth(&f->fake);
    fixture_open(f, &(quire_memory_options){.elastic = true});
    for (uint64_t live = 64 * KIB; live <= 64 * MIB; live += 64 * KIB) {
        ALLOCATE(f, .size = 64 * KIB);
        CHECK_EQ(fixture_stats(f).reserved_bytes, (live + chunk - 1) / chunk * chunk);
        CHECK_EQ(next_page(f), chunk);
    }
    expect_reserved(f, 64, 1);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 64 * MIB / chunk - 1);
}

/* ---- preallocation -------------------------------------------------------------------------- */

CASE(preallocated_pages_are_as_large_as_their_bytes, 0)
{
    CHECK_OK(quire_memory_preallocate(f->memory, 64 * MIB));
    expect_reserved(f, 64, 2);
    CHECK_EQ(next_page(f), 32 * MIB);
    CHECK_OK(quire_memory_preallocate(f->memory, 0));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_OK(quire_memory_preallocate(f->memory, 5 * MIB));
    expect_reserved(f, 5, 1);
    ALLOCATE(f, .size = 5 * MIB);
    expect_reserved(f, 5, 1);
}

CASE(every_shard_gets_its_part_of_preallocated_bytes, .shards = 4)
{
    CHECK_OK(quire_memory_preallocate(f->memory, 64 * MIB));
    expect_reserved(f, 64, 4);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(f->memory->shards[i]->shared_bytes, 16 * MIB);
}

/* ---- several threads ------------------------------------------------------------------------ */

typedef struct job {
    quire_memory *memory;
    uint64_t size;
    quire_result result;
} job;

static void allocate(void *user)
{
    job *j = user;
    quire_allocation out;
    j->result = quire_allocate(j->memory, &(quire_allocation_options){.size = j->size}, &out);
}

UNIT_MEMORY(page_use, pages_that_are_being_made_count, f, 0)
{
    crew c;
    job jobs[4];
    ALLOCATE(f, .size = 60 * MIB);
    crew_start(&c, 4);
    f->fake.slow_ms = 100;
    for (uint32_t i = 0; i < 4; i++) {
        jobs[i] = (job){.memory = f->memory, .size = 11 * MIB};
        crew_tell(&c, i + 1, allocate, &jobs[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        crew_await(&c, i + 1);
        CHECK_EQ(jobs[i].result, QUIRE_SUCCESS);
    }
    f->fake.slow_ms = 0;
    /* 12, 16 and 23 MiB; the fourth thread waits for the third page */
    CHECK_EQ(fixture_stats(f).page_count, 4);
    CHECK_EQ(fixture_stats(f).reserved_bytes / MIB, 60 + 51);
    crew_end(&c);
}

UNIT_MEMORY(page_use, each_shard_starts_small_in_a_large_memory, f, .shards = 4)
{
    crew c;
    crew_start(&c, 3);
    ALLOCATE(f, .size = 512 * MIB);
    for (uint32_t i = 1; i <= 3; i++) {
        job j = {.memory = f->memory, .size = KIB};
        crew_do(&c, i, allocate, &j);
        CHECK_EQ(j.result, QUIRE_SUCCESS);
        expect_reserved(f, 512 + i, 1 + i);
    }
    job j = {.memory = f->memory, .size = MIB};
    crew_do(&c, 1, allocate, &j); /* as beside 32 times the shard's 1 MiB */
    CHECK_EQ(fixture_stats(f).reserved_bytes / MIB, 512 + 3 + 4);
    crew_end(&c);
}

CASE(a_page_that_moves_counts_in_its_new_shard, .shards = 2)
{
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 4 * MIB)));
    CHECK_EQ(f->memory->shards[0]->shared_bytes, 4 * MIB);
    ALLOCATE_ELSEWHERE(f, .size = KIB);
    expect_reserved(f, 4, 1);
    CHECK_EQ(f->memory->shards[0]->shared_bytes, 0);
    CHECK_EQ(f->memory->shards[1]->shared_bytes, 4 * MIB);
}
