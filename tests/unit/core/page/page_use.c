/*
 * page_use.c - memories with the default page sizes, which follow use: what they reserve, which
 * pages count, and how trims, refusals, shards, preallocation and growing pages fit in.
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

/* ---- one shard ------------------------------------------------------------------------------ */

UNIT(page_use, a_memory_with_few_bytes_reserves_one_mebibyte)
{
    fixture f;
    fixture_make(&f, NULL);
    CHECK_EQ(next_page(&f), MIB);
    for (int i = 0; i < 200; i++)
        ALLOCATE(&f, .size = KIB);
    expect_reserved(&f, 1, 1);
    CHECK_EQ(next_page(&f), MIB);
    fixture_end(&f);
}

UNIT(page_use, pages_double_the_memory_and_the_next_size_is_reported)
{
    static const uint64_t sizes[] = {1, 1, 2, 4, 8, 16, 32, 32};
    fixture f;
    fixture_make(&f, NULL);
    uint64_t live = 0, reserved = 0;
    for (uint32_t page = 0; page < 8; page++) {
        CHECK_EQ(next_page(&f), sizes[page] * MIB);
        reserved += sizes[page];
        for (; live < reserved; live++)
            CHECK_EQ(fixture_info(&f, ALLOCATE(&f, .size = MIB)).page, page);
        CHECK_EQ(size_of_page(&f, page), sizes[page] * MIB);
    }
    expect_reserved(&f, 96, 8);
    fixture_end(&f);
}

UNIT(page_use, an_explicit_size_stays_fixed)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.pages.page_size = 2 * MIB});
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(next_page(&f), 2 * MIB);
        ALLOCATE(&f, .size = 2 * MIB);
    }
    expect_reserved(&f, 20, 10);
    fixture_end(&f);
}

UNIT(page_use, dedicated_pages_do_not_count)
{
    fixture f;
    fixture_make(&f, NULL);
    ALLOCATE(&f, .size = 64 * MIB, .dedicated = true);
    CHECK_EQ(next_page(&f), MIB);
    ALLOCATE(&f, .size = KIB);
    expect_reserved(&f, 65, 2);
    fixture_end(&f);
}

UNIT(page_use, a_large_request_gets_the_next_doubling_and_counts)
{
    fixture f;
    fixture_make(&f, NULL);
    ALLOCATE(&f, .size = 5 * MIB);
    expect_reserved(&f, 8, 1);
    ALLOCATE(&f, .size = 3 * MIB); /* in the rest of that page */
    expect_reserved(&f, 8, 1);
    CHECK_EQ(next_page(&f), 8 * MIB);
    ALLOCATE(&f, .size = 40 * MIB);
    expect_reserved(&f, 48, 2);
    CHECK_EQ(next_page(&f), 32 * MIB);
    fixture_end(&f);
}

UNIT(page_use, requests_that_grow_slowly_create_few_pages)
{
    fixture f;
    fixture_make(&f, NULL);
    for (uint64_t size = 256 * KIB; size <= 32 * MIB; size += 256 * KIB)
        CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = size)));
    CHECK_EQ(f.fake.calls[FAKE_PAGE_CREATE], 6); /* 1, 2, 4, 8, 16 and 32 MiB */
    expect_reserved(&f, 32, 1);
    fixture_end(&f);
}

/* ---- pages that leave ----------------------------------------------------------------------- */

UNIT(page_use, a_trim_of_a_large_memory_keeps_the_page_size)
{
    fixture f;
    fixture_make(&f, NULL);
    quire_allocation kept[64], last = {0};
    for (int i = 0; i < 64; i++)
        kept[i] = ALLOCATE(&f, .size = MIB);
    last = ALLOCATE(&f, .size = 32 * MIB);
    expect_reserved(&f, 96, 8);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_free(f.memory, last));
        CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
        expect_reserved(&f, 64, 7);
        CHECK_EQ(next_page(&f), 32 * MIB);
        last = ALLOCATE(&f, .size = KIB);
        expect_reserved(&f, 96, 8);
    }
    for (int i = 0; i < 64; i++)
        CHECK_OK(quire_free(f.memory, kept[i]));
    CHECK_OK(quire_free(f.memory, last));
    CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
    CHECK_EQ(next_page(&f), MIB); /* an empty memory starts again */
    fixture_end(&f);
}

UNIT(page_use, a_page_that_cannot_be_made_does_not_count)
{
    fixture f;
    fixture_make(&f, NULL);
    quire_allocation none;
    f.fake.fail_at = 1;
    f.fake.fail_from_then = true;
    f.fake.fail_with = QUIRE_ERROR_BACKEND_FAILURE;
    CHECK_FAILS(quire_allocate(f.memory, &(quire_allocation_options){.size = 9 * MIB}, &none),
                QUIRE_ERROR_BACKEND_FAILURE);
    f.fake.fail_at = 0;
    CHECK_EQ(next_page(&f), MIB);
    expect_reserved(&f, 0, 0);
    fixture_end(&f);
}

UNIT(page_use, a_page_that_was_halved_counts_with_its_size)
{
    fixture f;
    fixture_make(&f, NULL);
    for (int i = 0; i < 16; i++)
        ALLOCATE(&f, .size = MIB);
    f.fake.page_budget = 21 * MIB; /* of the 16 MiB that the policy says, 4 remain */
    ALLOCATE(&f, .size = MIB);
    expect_reserved(&f, 20, 6);
    CHECK_EQ(next_page(&f), 16 * MIB);
    f.fake.page_budget = 0;
    fixture_end(&f);
}

/* ---- one page for all, and a limited number of pages ---------------------------------------- */

UNIT(page_use, the_only_page_of_the_linear_fit_has_the_full_size)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR});
    CHECK_EQ(next_page(&f), 32 * MIB);
    ALLOCATE(&f, .size = KIB);
    expect_reserved(&f, 32, 1);
    fixture_end(&f);
}

UNIT(page_use, a_limited_number_of_pages_does_not_limit_the_bytes)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.pages.max_pages = 2});
    for (int i = 0; i < 64; i++)
        ALLOCATE(&f, .size = MIB);
    expect_reserved(&f, 64, 2);
    fixture_end(&f);
}

UNIT(page_use, a_contiguous_page_doubles)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.contiguous = true});
    static const uint64_t reached[] = {1, 2, 4, 8, 16, 32, 64, 96, 128};
    uint64_t live = 0;
    for (size_t i = 0; i < sizeof reached / sizeof *reached; i++) {
        for (; live < reached[i]; live++)
            ALLOCATE(&f, .size = MIB);
        expect_reserved(&f, reached[i], 1);
    }
    CHECK_EQ(f.fake.calls[FAKE_PAGE_RESIZE], 8);
    fixture_end(&f);
}

UNIT(page_use, a_contiguous_page_that_was_cut_counts_with_its_size)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.contiguous = true});
    quire_allocation low = ALLOCATE(&f, .size = MIB), high = ALLOCATE(&f, .size = 20 * MIB);
    expect_reserved(&f, 21, 1);
    CHECK_EQ(next_page(&f), 16 * MIB);
    CHECK_OK(quire_free(f.memory, high));
    CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
    expect_reserved(&f, 1, 1);
    CHECK_EQ(next_page(&f), MIB);
    CHECK_OK(quire_free(f.memory, low));
    fixture_end(&f);
}

/* ---- preallocation -------------------------------------------------------------------------- */

UNIT(page_use, preallocated_pages_are_as_large_as_their_bytes)
{
    fixture f;
    fixture_make(&f, NULL);
    CHECK_OK(quire_memory_preallocate(f.memory, 64 * MIB));
    expect_reserved(&f, 64, 2);
    CHECK_EQ(next_page(&f), 32 * MIB);
    CHECK_OK(quire_memory_preallocate(f.memory, 0));
    CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
    CHECK_OK(quire_memory_preallocate(f.memory, 5 * MIB));
    expect_reserved(&f, 8, 1);
    ALLOCATE(&f, .size = 5 * MIB);
    expect_reserved(&f, 8, 1);
    fixture_end(&f);
}

UNIT(page_use, every_shard_gets_its_part_of_preallocated_bytes)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.shards = 4});
    CHECK_OK(quire_memory_preallocate(f.memory, 64 * MIB));
    expect_reserved(&f, 64, 4);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(f.memory->shards[i]->shared_bytes, 16 * MIB);
    fixture_end(&f);
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

UNIT(page_use, pages_that_are_being_made_count)
{
    fixture f;
    crew c;
    job jobs[4];
    fixture_make(&f, NULL);
    crew_start(&c, 4);
    f.fake.slow_ms = 100;
    for (uint32_t i = 0; i < 4; i++) {
        jobs[i] = (job){.memory = f.memory, .size = 900 * KIB};
        crew_tell(&c, i + 1, allocate, &jobs[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        crew_await(&c, i + 1);
        CHECK_EQ(jobs[i].result, QUIRE_SUCCESS);
    }
    f.fake.slow_ms = 0;
    expect_reserved(&f, 4, 3); /* 1, 1 and 2 MiB; the fourth thread waits for the third page */
    crew_end(&c);
    fixture_end(&f);
}

UNIT(page_use, each_shard_starts_small_in_a_large_memory)
{
    fixture f;
    crew c;
    fixture_make(&f, &(quire_memory_options){.shards = 4});
    crew_start(&c, 3);
    for (int i = 0; i < 64; i++)
        ALLOCATE(&f, .size = MIB);
    expect_reserved(&f, 64, 7);
    for (uint32_t i = 1; i <= 3; i++) {
        job j = {.memory = f.memory, .size = KIB};
        crew_do(&c, i, allocate, &j);
        CHECK_EQ(j.result, QUIRE_SUCCESS);
        expect_reserved(&f, 64 + i, 7 + i);
    }
    job j = {.memory = f.memory, .size = MIB};
    crew_do(&c, 1, allocate, &j);
    expect_reserved(&f, 64 + 3 + 8, 11); /* eight times the shard's 1 MiB */
    crew_end(&c);
    fixture_end(&f);
}

UNIT(page_use, a_page_that_moves_counts_in_its_new_shard)
{
    fixture f;
    crew c;
    fixture_make(&f, &(quire_memory_options){.shards = 2});
    crew_start(&c, 1);
    CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = 4 * MIB)));
    CHECK_EQ(f.memory->shards[0]->shared_bytes, 4 * MIB);
    job j = {.memory = f.memory, .size = KIB};
    crew_do(&c, 1, allocate, &j);
    CHECK_EQ(j.result, QUIRE_SUCCESS);
    expect_reserved(&f, 4, 1);
    CHECK_EQ(f.memory->shards[0]->shared_bytes, 0);
    CHECK_EQ(f.memory->shards[1]->shared_bytes, 4 * MIB);
    crew_end(&c);
    fixture_end(&f);
}
